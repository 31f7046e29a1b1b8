/* tenant.h: which hosts are one tenant's. What hosts of two tenants say is kept apart: jobs of one name are two jobs, and
 * one tenant's word alone doesn't wake the other. */
#pragma once
#include "service/controller/controller.h"

#define TENANT_NONE 0 /* no scope sees it: the operator's own */

/* After tokens were made, revoked or have expired, or members changed. -ENOMEM: as it was. */
MUST_CHECK int tenant_refresh(struct controller *c);
/* Of a host that is new. */
void tenant_place(struct controller *c, struct fleet_host *h);
void tenant_close(struct controller *c);

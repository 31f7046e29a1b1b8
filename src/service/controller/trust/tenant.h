/* tenant.h: the hosts of one tenant. Reports of different tenants are kept apart: jobs of one name are two jobs. One tenant's
 * report alone does not page another tenant. */
#pragma once
#include "service/controller/controller.h"

#define TENANT_NONE 0 /* no scope matches it: the operator's own host */

/* Call it after tokens were made, revoked or have expired, or members changed. -ENOMEM: the tenants stay the same. */
MUST_CHECK int tenant_refresh(struct controller *c);
/* Places a new host. */
void tenant_place(struct controller *c, struct fleet_host *h);
void tenant_close(struct controller *c);

/* fleet_config_store.h: the configuration's versions as one value of the store. */
#pragma once
#include "service/controller/fleet/fleet_config.h"

MUST_CHECK int fleet_config_save(struct controller *c);
/* After a failed write: reads memory from the disk again. */
void fleet_config_reload(struct controller *c);

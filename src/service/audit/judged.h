/* judged.h: judges sheets. The memory is computed in advance, so there is room for all results, whatever hosts send. */
#pragma once
#include "core/audit/judge.h"

/* Returns 0 or -ENOMEM. The caller ends it with judged_done(), owns sheets and settings, and keeps them until then. */
int judged(struct audit *a, const struct sheet *sheets, uint32_t count,
           const struct audit_settings *settings);
void judged_done(struct audit *a);

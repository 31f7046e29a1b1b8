/* judged.h: sheets judged, in memory that is counted beforehand: however much hosts send, there is room for all that comes
 * of it. */
#pragma once
#include "core/audit/judge.h"

/* 0; -ENOMEM. Must be ended with judged_done. Sheets and settings are the caller's and must outlast it. */
int judged(struct audit *a, const struct sheet *sheets, uint32_t count,
           const struct audit_settings *settings);
void judged_done(struct audit *a);

/* reader_terms.h: a reader's result from a member's terms. It is written from their description (core/clock/clock.h),
 * deliberately without clock_terms_read(): otherwise a mistake there could hide itself. */
#pragma once
#include "core/clock/clock.h"

/* The reading at `at` of the member's own clock. */
struct clock_reading reader_terms(const struct clock_terms *terms, struct nic_time at);

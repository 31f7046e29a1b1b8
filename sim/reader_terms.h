/* reader_terms.h: what a reader would make of a member's terms. Written from their description (core/clock/clock.h), on purpose
 * without clock_terms_read(): a mistake there must not hide itself. */
#pragma once
#include "core/clock/clock.h"

/* At `at` of the member's own clock. */
struct clock_reading reader_terms(const struct clock_terms *terms, struct nic_time at);

/* reader.h: what a program on a simulated host would read off its clock page. Written from the page's description
 * (wire/clock_page.h), on purpose without its code: a mistake there must not hide itself. */
#pragma once
#include "wire/clock_page.h"
#include <stdbool.h>
#include <stdint.h>

struct reading {
    enum clock_page_status status;
    int64_t fleet_ns;
    double fraction;
    double hard_ns;        /* half a width */
    double statistical_ns; /* half a width */
};

/* The page as of host time `raw`. */
struct reading reader_read(const struct clock_page_terms *page, int64_t raw);

/* reader.h: the reading of a program on a simulated host from its clock page. It is written from the page's description
 * (wire/clock_page.h), deliberately without its code: otherwise a mistake there could hide itself. */
#pragma once
#include "wire/clock_page.h"
#include <stdbool.h>
#include <stdint.h>

struct reading {
    enum clock_page_status status;
    int64_t fleet_ns;
    double fraction;
    double hard_ns;        /* half of the width */
    double statistical_ns; /* half of the width */
};

/* Reads the page at host time `raw`. */
struct reading reader_read(const struct clock_page_terms *page, int64_t raw);

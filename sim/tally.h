/* tally.h: counts of numbers, for quantiles: exact to 1 ns below 4,096, to 1.6 % above. The checkers' own. */
#pragma once
#include <stdint.h>

enum { TALLY_EXACT = 4096, TALLY_OCTAVES = 40, TALLY_STEPS = 64 };

struct tally {
    uint64_t count;
    double max;
    uint64_t exact[TALLY_EXACT];
    uint64_t coarse[TALLY_OCTAVES * TALLY_STEPS];
};

/* value >= 0 */
void tally_add(struct tally *t, double value);
/* The q quantile, 0 < q <= 1: middle of its bin; NAN when empty. */
double tally_quantile(const struct tally *t, double q);

/* tally.c: bins of 1 ns, then 64 to the octave. */
#include "sim/tally.h"

#include <math.h>

void tally_add(struct tally *t, double value)
{
    t->count++;
    t->max = value > t->max ? value : t->max;
    if (value < TALLY_EXACT) {
        t->exact[(int)value]++;
        return;
    }
    int octave = 0;
    const double m = frexp(value / TALLY_EXACT, &octave); /* m in [0.5, 1) */
    int bin = (octave - 1) * TALLY_STEPS + (int)((m - 0.5) * 2 * TALLY_STEPS);
    bin = bin < TALLY_OCTAVES * TALLY_STEPS ? bin : TALLY_OCTAVES * TALLY_STEPS - 1;
    t->coarse[bin]++;
}

double tally_quantile(const struct tally *t, double q)
{
    const double wanted = q * (double)t->count;
    double seen = 0;

    if (t->count == 0) {
        return NAN;
    }
    for (int i = 0; i < TALLY_EXACT; i++) {
        seen += (double)t->exact[i];
        if (seen >= wanted) {
            return i + 0.5;
        }
    }
    for (int i = 0; i < TALLY_OCTAVES * TALLY_STEPS; i++) {
        seen += (double)t->coarse[i];
        if (seen >= wanted) {
            const double base = ldexp(TALLY_EXACT, i / TALLY_STEPS);
            return base * (1 + (i % TALLY_STEPS + 0.5) / TALLY_STEPS);
        }
    }
    return t->max;
}

/* sample.c: see sample.h. */
#include "stats/sample.h"

#include <math.h>

int sample_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int sample_order_int(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

void sample_insert(double *sorted, size_t count, double value)
{
    for (; count > 0 && sorted[count - 1] > value; count--) {
        sorted[count] = sorted[count - 1];
    }
    sorted[count] = value;
}

void sample_insert_int(int64_t *sorted, size_t count, int64_t value)
{
    for (; count > 0 && sorted[count - 1] > value; count--) {
        sorted[count] = sorted[count - 1];
    }
    sorted[count] = value;
}

void sample_sort(double *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        sample_insert(values, i, values[i]);
    }
}

void sample_sort_int(int64_t *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        sample_insert_int(values, i, values[i]);
    }
}

static size_t rank_of(size_t count, double q)
{
    const double rank = ceil(q * (double)count);

    return rank <= 1 ? 0 : rank >= (double)count ? count - 1 : (size_t)rank - 1;
}

double sample_quantile(const double *sorted, size_t count, double q)
{
    return count > 0 ? sorted[rank_of(count, q)] : NAN;
}

int64_t sample_quantile_int(const int64_t *sorted, size_t count, double q)
{
    return count > 0 ? sorted[rank_of(count, q)] : INT64_MIN;
}

double sample_median(const double *sorted, size_t count)
{
    return count > 0 ? (sorted[(count - 1) / 2] + sorted[count / 2]) / 2 : NAN;
}

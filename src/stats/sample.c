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

/* Moves values[at] to its place in the heap of `count` values, the largest first. */
static void sift_int(int64_t *values, size_t count, size_t at)
{
    const int64_t value = values[at];

    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && values[child + 1] > values[child];
        if (values[child] <= value) {
            break;
        }
        values[at] = values[child];
        at = child;
    }
    values[at] = value;
}

void sample_sort_int(int64_t *values, size_t count)
{
    for (size_t i = count / 2; i > 0; i--) {
        sift_int(values, count, i - 1);
    }
    for (size_t end = count; end > 1; end--) {
        const int64_t greatest = values[0];
        values[0] = values[end - 1];
        values[end - 1] = greatest;
        sift_int(values, end - 1, 0);
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

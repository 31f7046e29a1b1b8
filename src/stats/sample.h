/* sample.h: quantiles of samples that fit in memory. They must be sorted: by sample_sort(), or one by one by sample_insert() if
 * they are few (its time grows with the square). Outside the core, many samples may be sorted by qsort() with the orders below
 * (the C library's qsort may allocate). */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* For qsort(): ascending; doubles without NAN. */
int sample_order(const void *a, const void *b);
int sample_order_int(const void *a, const void *b); /* for int64_t */

/* Inserts `value` into the `count` ascending values of `sorted`, which has room for one more; no NAN. */
void sample_insert(double *sorted, size_t count, double value);
void sample_insert_int(int64_t *sorted, size_t count, int64_t value);
/* Ascending, in place; no NAN. Integers use a heap, so there may be many. */
void sample_sort(double *values, size_t count);
void sample_sort_int(int64_t *values, size_t count);

/* The smallest value that a share q (0 … 1) of all don't exceed (nearest rank, ceil(q count)), as in histogram_quantile(). NAN,
 * INT64_MIN: none. */
double sample_quantile(const double *sorted, size_t count, double q);
int64_t sample_quantile_int(const int64_t *sorted, size_t count, double q);
/* For an even count the mean of the middle two. NAN: none. */
double sample_median(const double *sorted, size_t count);

/* sample.h: quantiles of samples that fit in memory. They want them sorted: by sample_sort(), or one by one as they
 * come, by sample_insert(), where they are few (insertion: time grows with the square); by qsort() and the orders
 * below where they are many and no core module (the C library's may allocate). */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* For qsort(): ascending; of doubles without NAN. */
int sample_order(const void *a, const void *b);
int sample_order_int(const void *a, const void *b); /* of int64_t */

/* Puts `value` in its place among the `count` values of `sorted`, which has room for one more: ascending, no NAN. */
void sample_insert(double *sorted, size_t count, double value);
void sample_insert_int(int64_t *sorted, size_t count, int64_t value);
/* Ascending, in place; no NAN. Integers by a heap: many are fine. */
void sample_sort(double *values, size_t count);
void sample_sort_int(int64_t *values, size_t count);

/* The smallest value that a share q (0 … 1) of all don't exceed (nearest rank, ceil(q count)), as of
 * histogram_quantile(). NAN, INT64_MIN: none. */
double sample_quantile(const double *sorted, size_t count, double q);
int64_t sample_quantile_int(const int64_t *sorted, size_t count, double q);
/* Of an even count the mean of the middle two. NAN: none. */
double sample_median(const double *sorted, size_t count);

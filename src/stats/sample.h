/* sample.h: quantiles of samples that fit in memory, sorted by the caller: qsort() with the order
 * below where the C library's may be used, insertion where not (core). */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* For qsort(): ascending; of doubles without NAN. */
int sample_order(const void *a, const void *b);
int sample_order_int(const void *a, const void *b); /* of int64_t */

/* The smallest value that a share q (0 … 1) of all don't exceed (nearest rank, ceil(q count)), as of
 * histogram_quantile(). NAN, INT64_MIN: none. */
double sample_quantile(const double *sorted, size_t count, double q);
int64_t sample_quantile_int(const int64_t *sorted, size_t count, double q);
/* Of an even count the mean of the middle two. NAN: none. */
double sample_median(const double *sorted, size_t count);

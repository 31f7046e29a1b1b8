/* rank.h: one rank of `foliot perf`: rank.c opens and closes it, size.c uses it. Functions return 0 or -errno, and have printed
 * the reason on stderr. */
#pragma once
#include "app/perf/perf.h"

#define SAMPLE_MAX 65536 /* times kept for one size */

struct rank {
    const struct perf_options *options;
    struct meet meet;
    struct net_client net;
    void *context;
    int device_count;
    struct plan plan;
    struct engine engine;
    char *buffers[2]; /* input, output */
    size_t buffer_size;
    struct perf_report report;
    double *samples;
};

void rank_say(const struct rank *rank, const char *what, const char *why);
/* Runs one size, out of place and in place: moves data, times and checks. All ranks call it together and get the same row. */
MUST_CHECK int rank_run_size(struct rank *rank, size_t bytes, struct perf_row *ret_row);
/* Opens the plugin, the connections and the buffers. The ranks have met already. */
MUST_CHECK int rank_open(struct rank *rank, struct perf_member *ret_member);
void rank_close(struct rank *rank);

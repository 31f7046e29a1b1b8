/* rank.h: one rank of `foliot perf`, as rank.c opens and closes it and size.c uses it. Functions return 0 or -errno and
 * have said why on stderr. */
#pragma once
#include "app/perf/perf.h"

#define SAMPLE_MAX 65536 /* times kept of one size */

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
/* One size, out of place and in place: played, timed, checked; all ranks have the same row. All ranks at once. */
MUST_CHECK int rank_run_size(struct rank *rank, size_t bytes, struct perf_row *ret_row);
/* Its plugin, its connections, its buffers. options->meet was met. */
MUST_CHECK int rank_open(struct rank *rank, struct perf_member *ret_member);
void rank_close(struct rank *rank);

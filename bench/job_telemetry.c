/* job_telemetry.c: the cost of telemetry for a job: for each received chunk (all stages, their quantiles), and for each job
 * page written. The chunk's cost is the receiver's, with the real clock. The sender's cost is two readings of that clock. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "now.h"
#include "report.h"
#include "transport/internal.h"
#include "transport/tcp.h"

#define RUNS   9
#define CHUNKS 1000000
#define LANES  4

static double per_chunk(struct lane_set *set)
{
    struct io *io = set->transport->io;
    struct lane_chunk chunk = {.length = 65536, .queued_ns = 1200, .sent_bound_ns = 300};
    struct mono now = io->now(io);
    struct io_stamp stamp = io->stamp(io);
    const int64_t begin = now_ns(CLOCK_MONOTONIC);

    for (uint32_t i = 0; i < CHUNKS; i++) {
        chunk.sent.ns = stamp.at.ns - 4000 - (i * 7919 & 0xffff);
        chunk.queued_ns = i & 0xfff;
        delay_on_chunk(set, now, i % LANES, &chunk, &stamp);
    }
    return (double)(now_ns(CLOCK_MONOTONIC) - begin) / CHUNKS;
}

static double per_stamp(struct lane_set *set)
{
    struct io *io = set->transport->io;
    const int64_t begin = now_ns(CLOCK_MONOTONIC);
    int64_t sum = 0;

    for (uint32_t i = 0; i < CHUNKS; i++) {
        sum += io->stamp(io).at.ns;
    }
    return sum == 1 ? 0 : (double)(now_ns(CLOCK_MONOTONIC) - begin) / CHUNKS;
}

int main(int argc, char *argv[])
{
    struct report report;
    struct tcp *tcp = NULL;
    struct transport *transport = calloc(1, sizeof(*transport));
    struct lane_set *set = calloc(1, sizeof(*set));
    struct stream *stream =
        calloc(1, sizeof(*stream)); /* one for all lanes: credit needs an owner */
    double chunks[RUNS], stamps[RUNS];

    if (transport == NULL || set == NULL || stream == NULL || tcp_open(&tcp, "/sys") < 0) {
        fputs("job_telemetry: no memory, or no sockets\n", stderr);
        return EXIT_FAILURE;
    }
    transport->io = tcp_io(tcp);
    set->transport = transport;
    for (uint32_t i = 0; i < LANES; i++) {
        set->streams[i] = stream;
    }
    set->unsynced_base = INT64_MIN;
    report_init(&report, "job_telemetry", argc, argv);
    per_chunk(set);
    for (int run = 0; run < RUNS; run++) {
        chunks[run] = per_chunk(set);
        stamps[run] = per_stamp(set);
    }
    report_add_runs(
        &report,
        &(struct report_row){.id = "job.telemetry.chunk_ns",
                             .unit = "ns",
                             .must = 50,
                             .aim = 20,
                             .better = REPORT_LOWER,
                             .note = "per chunk received: three stages, floors, quantiles"},
        chunks, RUNS);
    report_add_runs(&report,
                    &(struct report_row){.id = "job.telemetry.stamp_ns",
                                         .unit = "ns",
                                         .must = REPORT_NONE,
                                         .aim = REPORT_NONE,
                                         .better = REPORT_LOWER,
                                         .note = "of which reading the clock as fleet time"},
                    stamps, RUNS);
    delay_free(set);
    free(stream);
    free(set);
    free(transport);
    tcp_close(tcp);
    return report_finish(&report) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

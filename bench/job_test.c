/* job_test.c: what an empty test() costs a process, alone and with 255 idle communicators to the same peer
 * beside it: of a receive that nothing comes for, and of a send that isn't posted. Two transports of
 * one process over the loopback. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "loopback.h"
#include "now.h"
#include "report.h"
#include "stats/sample.h"
#include "transport/transport.h"

#define IDLE     255
#define RUNS     9
#define TESTS    20000
#define WAIT_S   20
#define SMALL    8 /* while nothing larger is awaited each poll asks the kernel */
#define SIZE     (1 << 20)
#define WARM_UPS 1000

struct link {
    struct transport_comm *out, *in;
};

static bool join(struct transport *from, struct transport *to, struct link *link)
{
    struct transport_listener *listener;
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    uint64_t state = 0;

    *link = (struct link){0};
    if (transport_listen(to, 0, handle, &listener) < 0) {
        return false;
    }
    for (int i = 0; i < WAIT_S * 10000 && (link->out == NULL || link->in == NULL); i++) {
        if (link->out == NULL && transport_connect(from, 0, handle, &state, &link->out) < 0) {
            return false;
        }
        if (link->in == NULL && transport_accept(listener, &link->in) < 0) {
            return false;
        }
        loopback_wait_us(100);
    }
    transport_close_listener(listener);
    return link->out != NULL && link->in != NULL;
}

/* ns of one; negative: it failed or got done. */
static double empty_test(struct transport_request *request)
{
    bool done = false;
    double begin = 0;

    for (int i = -WARM_UPS; i < TESTS; i++) {
        begin = i == 0 ? (double)now_ns(CLOCK_MONOTONIC) : begin;
        if (transport_test(request, &done, NULL) < 0 || done) {
            return -1;
        }
    }
    return ((double)now_ns(CLOCK_MONOTONIC) - begin) / TESTS;
}

static bool measure(struct transport_request *requests[2], double ret_ns[2][RUNS])
{
    for (int run = 0; run < RUNS; run++) {
        for (int k = 0; k < 2; k++) {
            ret_ns[k][run] = empty_test(requests[k]);
            if (ret_ns[k][run] < 0) {
                return false;
            }
        }
    }
    for (int k = 0; k < 2; k++) {
        qsort(ret_ns[k], RUNS, sizeof(double), sample_order);
    }
    return true;
}

int main(int argc, char *argv[])
{
    static uint8_t from[SIZE], to[SMALL];
    static struct link idle[IDLE];
    struct transport *here = loopback_open(0), *there = loopback_open(0);
    struct transport_request *requests[2] = {0}; /* a receive, a send */
    double alone[2][RUNS], beside[2][RUNS], worst = 0;
    const size_t before = mallinfo2().uordblks;
    struct link out, in;
    struct report report;
    char note[160];

    if (here == NULL || there == NULL || !join(here, there, &out) || !join(there, here, &in) ||
        transport_receive(in.in, to, SMALL, 0, false, NULL, &requests[0]) < 0 ||
        transport_send(out.out, from, SIZE, 0, NULL, &requests[1]) < 0 || requests[0] == NULL ||
        requests[1] == NULL || !measure(requests, alone)) {
        fprintf(stderr, "job_test: %s\n", transport_why());
        return EXIT_FAILURE;
    }
    const double pair_kb = (double)(mallinfo2().uordblks - before) / 2e3;
    for (int i = 0; i < IDLE; i++) { /* as many beside the receive as beside the send */
        struct link back;
        if (!join(here, there, &idle[i]) || !join(there, here, &back)) {
            fprintf(stderr, "job_test: connect: %s\n", transport_why());
            return EXIT_FAILURE;
        }
    }
    if (!measure(requests, beside)) {
        return EXIT_FAILURE;
    }
    for (int k = 0; k < 2; k++) {
        const double ratio = beside[k][RUNS / 2] / alone[k][RUNS / 2];
        worst = ratio > worst ? ratio : worst;
    }
    snprintf(note, sizeof(note), "alone, beside 255: receive %.0f, %.0f ns; send %.0f, %.0f ns",
             alone[0][RUNS / 2], beside[0][RUNS / 2], alone[1][RUNS / 2], beside[1][RUNS / 2]);
    report_init(&report, "job_test", argc, argv);
    report_one(&report, "job.idle_comm_ns", worst, "ratio", 1.2, 1.0, REPORT_LOWER, note);
    report_one(&report, "job.memory_per_pair_kb", pair_kb, "kB", REPORT_NONE, 64, REPORT_LOWER,
               "a sending and a receiving peer, 4 lanes each, a communicator each way");
    return report_finish(&report) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

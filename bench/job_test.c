/* job_test.c: the cost of an empty test() for a process, alone and with 255 idle communicators to the same peer. It tests a
 * receive without a message, and a send that isn't posted. It uses two transports of one process over the loopback, and two
 * more that are alone. */
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
#define SMALL    8 /* while nothing larger is expected, each poll asks the kernel */
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

/* ns of one test; negative: it failed, or the request was done. */
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

/* Two transports that are connected in both directions, with a receive without a message and a send that isn't posted. */
struct side {
    struct transport *here, *there;
    struct transport_request *requests[2];
};

static bool side_open(struct side *s)
{
    static uint8_t from[SIZE], to[SMALL];
    struct link out, in;

    *s = (struct side){.here = loopback_open(0), .there = loopback_open(0)};
    return s->here != NULL && s->there != NULL && join(s->here, s->there, &out) &&
           join(s->there, s->here, &in) &&
           transport_receive(in.in, to, SMALL, 0, false, NULL, &s->requests[0]) == 0 &&
           transport_send(out.out, from, SIZE, 0, NULL, &s->requests[1]) == 0 &&
           s->requests[0] != NULL && s->requests[1] != NULL;
}

/* It takes turns, because a shared processor's speed varies by a factor of two. */
static bool measure(const struct side *alone, const struct side *beside, double ret_ns[2][2][RUNS],
                    double ret_ratios[2][RUNS])
{
    for (int run = 0; run < RUNS; run++) {
        for (int k = 0; k < 2; k++) {
            ret_ns[0][k][run] = empty_test(alone->requests[k]);
            ret_ns[1][k][run] = empty_test(beside->requests[k]);
            if (ret_ns[0][k][run] < 0 || ret_ns[1][k][run] < 0) {
                return false;
            }
            ret_ratios[k][run] = ret_ns[1][k][run] / ret_ns[0][k][run];
        }
    }
    for (int k = 0; k < 2; k++) {
        qsort(ret_ns[0][k], RUNS, sizeof(double), sample_order);
        qsort(ret_ns[1][k], RUNS, sizeof(double), sample_order);
        qsort(ret_ratios[k], RUNS, sizeof(double), sample_order);
    }
    return true;
}

int main(int argc, char *argv[])
{
    double ns[2][2][RUNS], ratios[2][RUNS];
    const size_t before = mallinfo2().uordblks;
    struct side alone, beside;
    struct report report;
    char note[160];

    if (!side_open(&alone)) {
        fprintf(stderr, "job_test: %s\n", transport_why());
        return EXIT_FAILURE;
    }
    const double pair_kb = (double)(mallinfo2().uordblks - before) / 2e3;
    bool good = side_open(&beside);
    for (int i = 0; i < IDLE && good; i++) { /* as many for the receive as for the send */
        struct link out, back;
        good = join(beside.here, beside.there, &out) && join(beside.there, beside.here, &back);
    }
    if (!good || !measure(&alone, &beside, ns, ratios)) {
        fprintf(stderr, "job_test: %s\n", transport_why());
        return EXIT_FAILURE;
    }
    const int middle = RUNS / 2, worst = ratios[1][middle] > ratios[0][middle];
    snprintf(note, sizeof(note),
             "in turns; alone, beside 255: receive %.0f, %.0f ns; send %.0f, %.0f ns",
             ns[0][0][middle], ns[1][0][middle], ns[0][1][middle], ns[1][1][middle]);
    report_init(&report, "job_test", argc, argv);
    struct report_row row = {
        .id = "job.idle_comm_ns", .unit = "ratio", .must = 1.2, .aim = 1.0, .better = REPORT_LOWER};
    snprintf(row.note, sizeof(row.note), "%s", note);
    report_add_runs(&report, &row, ratios[worst], RUNS);
    report_one(&report, "job.memory_per_pair_kb", pair_kb, "kB", REPORT_NONE, 64, REPORT_LOWER,
               "a sending and a receiving peer, 4 lanes each, a communicator each way");
    return report_finish(&report) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

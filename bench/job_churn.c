/* job_churn.c: makes, uses and destroys a thousand communicators between two transports of this process, over the loopback,
 * each with its own lanes. It counts the descriptors, threads and memory that remain.
 *
 * Before the count begins, two hundred communicators have come and gone: things that are made once for good (tables, caches of
 * the allocator) then exist. */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loopback.h"
#include "report.h"
#include "transport/internal.h"

#define WARM     200
#define COMMS    1000
#define SIZE     65536
#define LIMIT_MS 20000

static double entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = -3; /* ., .. and this folder's own descriptor */

    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

struct left {
    double files, threads, heap;
};

static struct left left_now(void)
{
    return (struct left){entries("/proc/self/fd"), entries("/proc/self/task"),
                         (double)mallinfo2().uordblks};
}

struct pair {
    struct transport_listener *listener;
    struct transport_comm *sender, *receiver;
};

static bool meet(struct transport *from, struct transport *to, struct pair *pair)
{
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    uint64_t state = 0;

    if (transport_listen(to, 0, handle, &pair->listener) < 0) {
        return false;
    }
    for (int i = 0; i < LIMIT_MS * 10 && (pair->sender == NULL || pair->receiver == NULL); i++) {
        if ((pair->sender == NULL &&
             transport_connect(from, 0, handle, &state, &pair->sender) < 0) ||
            (pair->receiver == NULL && transport_accept(pair->listener, &pair->receiver) < 0)) {
            return false;
        }
        loopback_wait_us(100);
    }
    transport_close_listener(pair->listener);
    return pair->sender != NULL && pair->receiver != NULL;
}

static bool use(const struct pair *pair, const char *out, char *in)
{
    struct transport_request *requests[2] = {NULL};
    bool posted[2] = {false}, done[2] = {false};

    for (int i = 0; i < LIMIT_MS * 10 && !(done[0] && done[1]); i++) {
        int r = posted[0] ? 0 : transport_send(pair->sender, out, SIZE, 1, NULL, &requests[0]);
        if (r == 0 && !posted[1]) {
            r = transport_receive(pair->receiver, in, SIZE, 1, false, NULL, &requests[1]);
        }
        for (int k = 0; r == 0 && k < 2; k++) {
            posted[k] = posted[k] || requests[k] != NULL;
            r = posted[k] && !done[k] ? transport_test(requests[k], &done[k], NULL) : 0;
        }
        if (r < 0) {
            return false;
        }
        loopback_wait_us(20);
    }
    return done[0] && done[1] && memcmp(out, in, SIZE) == 0;
}

static bool churn(struct transport *from, struct transport *to, int count)
{
    static char out[SIZE], in[SIZE];

    for (int i = 0; i < count; i++) {
        struct pair pair = {0};
        memset(out, i, sizeof(out));
        if (!meet(from, to, &pair) || !use(&pair, out, in)) {
            fprintf(stderr, "job_churn: communicator %d: %s\n", i, transport_why());
            return false;
        }
        transport_close(pair.sender);
        transport_close(pair.receiver);
    }
    return true;
}

/* Waits for the background work of closed communicators. */
static struct left settle(double files)
{
    struct left now = left_now();

    for (int ms = 0; now.files > files && ms < LIMIT_MS; ms += 100) {
        loopback_wait_us(100000);
        now = left_now();
    }
    loopback_wait_us(2000000);
    return left_now();
}

static void add(struct report *report, const char *id, const char *unit, double value, double must,
                const char *note)
{
    report_one(report, id, value, unit, must, REPORT_NONE, REPORT_LOWER, note);
}

int main(int argc, char *argv[])
{
    struct transport *from = loopback_open(0), *to = loopback_open(0);
    const struct left none = left_now();
    static struct report report;
    struct timespec begin, end;

    if (from == NULL || to == NULL || !churn(from, to, WARM)) {
        return EXIT_FAILURE;
    }
    const struct left before = settle(none.files);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (!churn(from, to, COMMS)) {
        return EXIT_FAILURE;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    const struct left after = settle(before.files);
    report_init(&report, "job_churn", argc, argv);
    add(&report, "job.churn.files", "left", after.files - before.files, 0,
        "1,000 communicators made, used and destroyed, each with lanes of its own");
    add(&report, "job.churn.threads", "left", after.threads - before.threads, 0, "the same");
    add(&report, "job.churn.memory", "bytes each", (after.heap - before.heap) / COMMS, 8,
        "of the heap in use, the thousand against what came before");
    add(&report, "job.churn.ms", "ms each",
        ((double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6) /
            COMMS,
        REPORT_NONE, "from listen to closed, one after the other");
    return report_finish(&report) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

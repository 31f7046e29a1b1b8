/* job_idle.c: the cost of 256 idle connections for a process: 64 peers (transports of another process) with four lanes each
 * over the loopback, with open communicators and nothing posted. Only the hub's processor time counts, over seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loopback.h"
#include "report.h"
#include "transport/internal.h"

#define PEERS    64
#define LANES    4
#define RUNS     7
#define RUN_MS   1000
#define SETTLE_S 2
#define LIMIT_S  20

static double cpu_ms(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

/* Connects to all, and waits until its standard input ends. */
static int be_peers(int handles)
{
    for (int i = 0; i < PEERS; i++) {
        struct transport *transport = loopback_open(LANES);
        struct transport_comm *comm = NULL;
        uint8_t handle[TRANSPORT_HANDLE_SIZE];
        uint64_t state = 0;
        if (transport == NULL || read(handles, handle, sizeof(handle)) != sizeof(handle)) {
            return EXIT_FAILURE;
        }
        while (comm == NULL) {
            if (transport_connect(transport, 0, handle, &state, &comm) < 0) {
                fprintf(stderr, "job_idle: connect: %s\n", transport_why());
                return EXIT_FAILURE;
            }
            loopback_wait_us(1000);
        }
    }
    return read(handles, &(char){0}, 1) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static uint32_t connections(const struct transport *transport)
{
    return __atomic_load_n(&transport->sockets, __ATOMIC_RELAXED);
}

/* The other process may connect only while this one accepts. */
static bool meet(struct transport *hub, int handles)
{
    for (int i = 0; i < PEERS; i++) {
        struct transport_listener *listener;
        struct transport_comm *comm = NULL;
        uint8_t handle[TRANSPORT_HANDLE_SIZE];
        if (transport_listen(hub, 0, handle, &listener) < 0 ||
            write(handles, handle, sizeof(handle)) != sizeof(handle)) {
            return false;
        }
        for (int ms = 0; comm == NULL && ms < LIMIT_S * 1000; ms++) {
            if (transport_accept(listener, &comm) < 0) {
                fprintf(stderr, "job_idle: accept: %s\n", transport_why());
                return false;
            }
            loopback_wait_us(1000);
        }
        if (comm == NULL) {
            return false;
        }
        transport_close_listener(listener);
    }
    for (int ms = 0; connections(hub) < PEERS * LANES && ms < LIMIT_S * 1000; ms++) {
        loopback_wait_us(1000);
    }
    return connections(hub) == PEERS * LANES;
}

int main(int argc, char *argv[])
{
    const struct report_row row = {.id = "job.loopback.idle_256.cpu",
                                   .unit = "% of a core",
                                   .must = 0.5,
                                   .aim = 0.05,
                                   .better = REPORT_LOWER,
                                   .note =
                                       "64 peers x 4 lanes, communicators open, nothing posted"};
    struct report report;
    double percent[RUNS];
    int pipes[2];

    if (pipe(pipes) < 0) {
        return EXIT_FAILURE;
    }
    const pid_t child = fork();
    if (child <= 0) {
        close(pipes[1]);
        _exit(child == 0 ? be_peers(pipes[0]) : EXIT_FAILURE);
    }
    close(pipes[0]);
    struct transport *hub = loopback_open(LANES);
    if (hub == NULL || !meet(hub, pipes[1])) {
        fprintf(stderr, "job_idle: %u of %u connections came about\n",
                hub != NULL ? connections(hub) : 0, PEERS * LANES);
        close(pipes[1]);
        return EXIT_FAILURE;
    }
    loopback_wait_us(1000000L * SETTLE_S);
    for (int run = 0; run < RUNS; run++) {
        const double before = cpu_ms();
        loopback_wait_us(1000L * RUN_MS);
        percent[run] = (cpu_ms() - before) * 100 / RUN_MS;
    }
    report_init(&report, "job_idle", argc, argv);
    report_add_runs(&report, &row, percent, RUNS);
    close(pipes[1]);
    (void)waitpid(child, NULL, 0);
    return report_finish(&report) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

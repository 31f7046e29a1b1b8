/* clock_cost.c: the cost of one host's node in a fleet of 100 and in a large one, with caches of its own.
 *
 *     build/bench/clock_cost [HOSTS [SECONDS]]
 *
 * HOSTS: of the large fleet (1000; the row asks for 10000), SECONDS: simulated (60). It plays a simulated fleet and records
 * one host from its start: every packet, stamp, second clock and routers' answer. Then it replays that recording alone, as on
 * a machine of its own, and measures the processor time, minus the time to read the recording. In the fleet's own process each
 * host's memory is out of the cache, so that measures the simulator (cost.scale.sim). */
#include "report.h"
#include "service/record/record.h"
#include "service/record/recorder.h"
#include "sim/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define HOSTS_FEW    100
#define HOSTS_WANTED 10000
#define SECONDS      60
#define RECORD_BYTES (1LL << 30)
#define PLAYS        5 /* the least counts: other load only adds time */
#define HOSTS_A_LEAF 16
#define SPINES       4

struct cost {
    double us_per_s; /* of the node */
    long events, actions;
};

static double cpu_s(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec * 1e-6;
}

/* Records one host for `seconds` of a fleet; -errno. */
static int record_one(int hosts, double seconds, struct recording *ret)
{
    struct scenario *s = calloc(1, sizeof(*s));
    struct world *w = NULL;
    int r = s == NULL ? -ENOMEM : 0;

    if (r == 0) {
        scenario_init(s);
        s->fabric.hosts = hosts;
        s->fabric.nics_per_host = 1;
        s->fabric.leaves = (hosts + HOSTS_A_LEAF - 1) / HOSTS_A_LEAF;
        s->fabric.spines = SPINES;
        s->duration_ns = (int64_t)(seconds * 1e9);
        r = world_new(&w, s, 1);
    }
    if (r == 0) {
        r = recorder_open(&w->recorder, "/tmp", RECORD_BYTES);
    }
    if (r == 0) {
        w->record_host = hosts / 2;
        world_run(w, s->duration_ns);
        r = recorder_save(w->recorder, ret);
        w->recorder = recorder_close(w->recorder);
    }
    world_free(w);
    free(s);
    return r;
}

/* The processor time of only reading the recording. */
static int read_only(const char *path, double *ret_s)
{
    struct record *record = NULL;
    enum node_event_kind kind;
    struct mono now;
    const void *event;
    int r = record_open(&record, path);

    if (r < 0) {
        return r;
    }
    const double before = cpu_s();
    while ((r = record_next(record, &kind, &now, &event)) > 0) {
    }
    *ret_s = cpu_s() - before;
    record_close(record);
    return r;
}

static void on_action(void *context, struct mono now, const struct node_action *action)
{
    (void)context;
    (void)now;
    (void)action;
}

static int play_once(const char *path, double *ret_s, struct record_outcome *ret_outcome)
{
    struct record *record = NULL;
    struct node *node = NULL;
    int r = record_open(&record, path);

    if (r < 0) {
        return r;
    }
    const double before = cpu_s();
    r = record_play(record, false, on_action, NULL, &node, ret_outcome);
    *ret_s = cpu_s() - before;
    node_free(r < 0 ? NULL : node);
    record_close(record);
    return r < 0 ? r : ret_outcome->damage != 0 ? -EPROTO : 0;
}

static int cost_of(int hosts, double seconds, struct cost *ret)
{
    struct recording recording;
    struct record_outcome outcome = {0};
    double read_s = 1e9, play_s = 1e9;
    char path[64];
    int r = record_one(hosts, seconds, &recording);

    if (r < 0) {
        return r;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", recording.fd);
    for (int i = 0; i < PLAYS && r == 0; i++) {
        double one = 0, other = 0;
        r = read_only(path, &one);
        r = r < 0 ? r : play_once(path, &other, &outcome);
        read_s = one < read_s ? one : read_s;
        play_s = other < play_s ? other : play_s;
    }
    close(recording.fd);
    *ret = (struct cost){.us_per_s = (play_s - read_s) * 1e6 / seconds,
                         .events = outcome.events,
                         .actions = outcome.actions};
    return r;
}

int main(int argc, char **argv)
{
    static struct report report;
    const int hosts = argc > 1 ? atoi(argv[1]) : 1000;
    const double seconds = argc > 2 ? atof(argv[2]) : SECONDS;
    const bool whole = hosts >= HOSTS_WANTED && seconds >= SECONDS;
    struct cost few, many;
    char id[64], note[120];

    if (argc > 3 || hosts <= HOSTS_FEW || !(seconds > 0)) {
        fputs("usage: clock_cost [HOSTS [SECONDS]]\n", stderr);
        return 2;
    }
    report_init(&report, whole ? "clock-cost-soak" : "clock-cost", argc, argv);
    int r = cost_of(HOSTS_FEW, seconds, &few);
    r = r < 0 ? r : cost_of(hosts, seconds, &many);
    if (r < 0) {
        fprintf(stderr, "clock_cost: %s\n", strerror(-r));
        return 1;
    }
    snprintf(note, sizeof(note), "%ld events and %ld actions of one host in %.0f s", few.events,
             few.actions, seconds);
    report_simulated(&report, "clock.cost.cpu_us.100", few.us_per_s, "us/s", REPORT_NONE,
                     REPORT_NONE, REPORT_LOWER, note);
    snprintf(id, sizeof(id), "clock.cost.cpu_us.%d", hosts);
    snprintf(note, sizeof(note), "%ld events and %ld actions of one host in %.0f s", many.events,
             many.actions, seconds);
    report_simulated(&report, id, many.us_per_s, "us/s", REPORT_NONE, REPORT_NONE, REPORT_LOWER,
                     note);
    snprintf(id, sizeof(id), whole ? "clock.cost.cpu_ratio" : "clock.cost.cpu_ratio.%d", hosts);
    snprintf(note, sizeof(note),
             "%d hosts against %d, %.0f s from the start, discovery and second clock", hosts,
             HOSTS_FEW, seconds);
    report_simulated(&report, id, many.us_per_s / few.us_per_s, "x", 1.3, 1.1, REPORT_LOWER, note);
    return report_finish(&report) < 0;
}

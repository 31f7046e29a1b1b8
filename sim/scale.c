/* scale.c: `foliot sim scale`: measures the cost of one host as the fleet grows, and extrapolates it. */
#include "base/bug.h"
#include "platform/config/command_line.h"
#include "platform/metrics/own.h"
#include "sim/check.h"
#include "sim/sim.h"
#include "sim/world.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Processor time without the kernel's: the first touch of each host's memory doesn't count. */
static double cpu_now(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec * 1e-6;
}

int sim_scale_measure(int hosts, double seconds, struct sim_scale_point *ret_point)
{
    struct scenario *s = calloc(1, sizeof(*s));
    struct world *w = NULL;

    if (s == NULL) {
        return -ENOMEM;
    }
    scenario_init(s);
    s->fabric.network = NETWORK_ABSTRACT;
    s->fabric.hosts = hosts;
    s->fabric.nics_per_host = 1;
    s->clocks.guard = false;
    s->duration_ns = (int64_t)(seconds * 1e9);
    const uint64_t before = own_memory_bytes();
    const int r = world_new(&w, s, 1);
    if (r < 0) {
        free(s);
        return r;
    }
    const int64_t warm = s->duration_ns / 4;
    world_run(w, warm);
    const double cpu = cpu_now();
    const uint64_t probes = w->probes, events = w->events;
    world_run(w, s->duration_ns);
    const double span = (double)(s->duration_ns - warm) * 1e-9 * hosts;
    *ret_point = (struct sim_scale_point){
        .hosts = hosts,
        .cpu_us_per_host_s = (cpu_now() - cpu) * 1e6 / span,
        .packets_per_host_s = (double)(w->probes - probes) / span,
        .events_per_host_s = (double)(w->events - events) / span,
        .memory_kib_per_host = ((double)own_memory_bytes() - (double)before) / 1024 / hosts};
    world_free(w);
    free(s);
    return 0;
}

enum { POINTS_MOST = 16 };
struct scale_hosts {
    int hosts[POINTS_MOST], count;
};

/* "100,1000" */
static bool take_hosts(const char *text, void *to)
{
    struct scale_hosts *h = to;

    h->count = 0;
    for (char *end = NULL; h->count < POINTS_MOST; text = end + 1) {
        const long value = strtol(text, &end, 10);
        if (end == text || value < 2 || value > 100000 || (*end != ',' && *end != '\0')) {
            return false;
        }
        h->hosts[h->count++] = (int)value;
        if (*end == '\0') {
            return true;
        }
    }
    return false;
}

static void print_end(const struct sim_scale_point *points, int count)
{
    if (count < 2) {
        return;
    }
    const struct sim_scale_point *a = &points[0], *b = &points[count - 1];
    const double growth = b->packets_per_host_s / a->packets_per_host_s;
    const double power =
        log(b->cpu_us_per_host_s / a->cpu_us_per_host_s) / log((double)b->hosts / a->hosts);
    printf(
        "Simulated. From %d to %d hosts: packets per host x %.3f, events per host x %.3f, CPU per "
        "host as N^%.2f\n(of this process: every host's memory is out of the cache when its turn "
        "comes).\n",
        a->hosts, b->hosts, growth, b->events_per_host_s / a->events_per_host_s, power);
    printf(
        "100,000 hosts, extrapolated: %.0f packets and at most %.0f us a second and host, %.2f MiB "
        "a host.\n",
        b->packets_per_host_s,
        b->cpu_us_per_host_s * pow(100000.0 / b->hosts, power > 0 ? power : 0),
        b->memory_kib_per_host / 1024);
}

static void print_point(const struct sim_scale_point *p, bool json, bool first, bool last)
{
    if (json) {
        printf("%s{\"hosts\":%d,\"packets_per_host_s\":%.3f,\"events_per_host_s\":%.3f,"
               "\"cpu_us_per_host_s\":%.3f,\"memory_kib_per_host\":%.1f}%s",
               first ? "[" : ",", p->hosts, p->packets_per_host_s, p->events_per_host_s,
               p->cpu_us_per_host_s, p->memory_kib_per_host, last ? "]\n" : "");
    } else {
        if (first) {
            printf("%8s %14s %14s %14s %14s\n", "hosts", "packets/host/s", "events/host/s",
                   "us CPU/host/s", "KiB/host");
        }
        printf("%8d %14.1f %14.1f %14.1f %14.1f\n", p->hosts, p->packets_per_host_s,
               p->events_per_host_s, p->cpu_us_per_host_s, p->memory_kib_per_host);
    }
    fflush(stdout);
}

int sim_scale(int argc, char **argv)
{
    struct scale_hosts h = {{100, 1000, 10000}, 3};
    double seconds = 1;
    bool json = false;
    int first = 0;
    struct sim_scale_point points[POINTS_MOST];
    const struct option_entry entries[] = {
        {"hosts", 'n', OPTION_OWN, &h, .take = take_hosts, .value = "N,N,...",
         .expected = "at most 16 numbers from 2 to 100000, with commas between them",
         .help = "sizes of the fleet (100,1000,10000)"},
        {"seconds", 's', OPTION_NUMBER, &seconds, 0.1, 1e6, .value = "S",
         .help = "simulated time of each size (1)"},
        {"json", 'j', OPTION_FLAG, &json, .help = "one JSON array"},
        {"help", 'h', OPTION_HELP, .help = "this text"},
    };
    const struct option_set set = {.program = "foliot sim scale",
                                   .usage =
                                       "usage: foliot sim scale [OPTIONS]\n"
                                       "Measures how the cost of a host grows with the fleet.\n\n",
                                   .entries = entries,
                                   .count = ARRAY_COUNT(entries)};
    const int early = command_line_read(&set, argc, argv, &first);

    if (early != COMMAND_LINE_GOOD) {
        return early;
    }
    for (int i = 0; i < h.count; i++) {
        if (sim_scale_measure(h.hosts[i], seconds, &points[i]) < 0) {
            fprintf(stderr, "foliot sim scale: no memory for %d hosts\n", h.hosts[i]);
            return 2;
        }
        print_point(&points[i], json, i == 0, i + 1 == h.count);
    }
    if (!json) {
        print_end(points, h.count);
    }
    return 0;
}

/* scale.c: `foliot sim scale`: what one host costs as the fleet grows, measured, and what that says beyond. */
#include "sim/check.h"
#include "sim/sim.h"
#include "sim/world.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct point {
    int hosts;
    double cpu_us_per_host_s, packets_per_host_s, memory_kib_per_host, start_s, p99_ns;
};

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long memory_kib(void)
{
    long pages = 0, ignored = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f != NULL) {
        if (fscanf(f, "%ld %ld", &ignored, &pages) != 2) {
            pages = 0;
        }
        fclose(f);
    }
    return pages * 4;
}

static int measure(int hosts, double seconds, struct point *ret)
{
    struct scenario *s = calloc(1, sizeof(*s));
    struct world *w = NULL;

    if (s == NULL) {
        return -1;
    }
    scenario_init(s);
    s->fabric.network = NETWORK_ABSTRACT;
    s->fabric.hosts = hosts;
    s->fabric.nics_per_host = 1;
    s->clocks.guard = false;
    s->duration_ns = (int64_t)(seconds * 1e9);
    const long before = memory_kib();
    if (world_new(&w, s, 1) < 0) {
        free(s);
        return -1;
    }
    const int64_t warm = s->duration_ns / 4;
    world_run(w, warm);
    const double cpu = cpu_now();
    const uint64_t probes = w->probes;
    world_run(w, s->duration_ns);
    const double span = (double)(s->duration_ns - warm) * 1e-9 * hosts;
    *ret = (struct point){.hosts = hosts,
                          .cpu_us_per_host_s = (cpu_now() - cpu) * 1e6 / span,
                          .packets_per_host_s = (double)(w->probes - probes) / span,
                          .memory_kib_per_host = (double)(memory_kib() - before) / hosts,
                          .start_s = w->check->first_good >= 0 ? (double)w->check->first_good * 1e-9
                                                               : INFINITY,
                          .p99_ns = tally_quantile(&w->check->windows[0].pair, 0.99)};
    world_free(w);
    free(s);
    return 0;
}

static int take_hosts(const char *text, int *hosts, int max)
{
    int n = 0;

    for (char *end = NULL; n < max; text = end + 1) {
        const long value = strtol(text, &end, 10);
        if (end == text || value < 2 || value > 100000 || (*end != ',' && *end != '\0')) {
            return -1;
        }
        hosts[n++] = (int)value;
        if (*end == '\0') {
            break;
        }
    }
    return n;
}

static void print_table(const struct point *points, int count)
{
    printf("%8s %14s %14s %14s\n", "hosts", "packets/host/s", "us CPU/host/s", "KiB/host");
    for (int i = 0; i < count; i++) {
        printf("%8d %14.1f %14.1f %14.1f\n", points[i].hosts, points[i].packets_per_host_s,
               points[i].cpu_us_per_host_s, points[i].memory_kib_per_host);
    }
    if (count < 2) {
        return;
    }
    const struct point *a = &points[0], *b = &points[count - 1];
    const double growth = b->packets_per_host_s / a->packets_per_host_s;
    const double power =
        log(b->cpu_us_per_host_s / a->cpu_us_per_host_s) / log((double)b->hosts / a->hosts);
    printf("simulated: packets per host x %.3f from %d to %d hosts; CPU per host grows as N^%.3f "
           "(the simulator's "
           "own caches included).\nAt 100,000 hosts that would be %.0f packets and %.0f us a "
           "second and host.\n",
           growth, a->hosts, b->hosts, power, b->packets_per_host_s,
           b->cpu_us_per_host_s * pow(100000.0 / b->hosts, power));
}

int sim_scale(int argc, char **argv)
{
    static const struct option options[] = {{"hosts", required_argument, NULL, 'n'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {"json", no_argument, NULL, 'j'},
                                            {NULL, 0, NULL, 0}};
    int hosts[16] = {100, 1000, 10000}, count = 3, option;
    double seconds = 4;
    bool json = false;
    struct point points[16];

    optind = 1;
    while ((option = getopt_long(argc, argv, "n:s:j", options, NULL)) != -1) {
        if (option == 'n') {
            count = take_hosts(optarg, hosts, 16);
        } else if (option == 's') {
            seconds = strtod(optarg, NULL);
        } else if (option == 'j') {
            json = true;
        } else {
            return 2;
        }
    }
    if (count < 1 || !(seconds >= 0.1)) {
        fprintf(stderr, "foliot sim scale: expected --hosts N,N,... and --seconds S\n");
        return 2;
    }
    for (int i = 0; i < count; i++) {
        if (measure(hosts[i], seconds, &points[i]) < 0) {
            fprintf(stderr, "foliot sim scale: no memory for %d hosts\n", hosts[i]);
            return 2;
        }
        if (json) {
            printf("%s{\"hosts\":%d,\"packets_per_host_s\":%.3f,\"cpu_us_per_host_s\":%.3f,"
                   "\"memory_kib_per_host\":%.1f}%s",
                   i == 0 ? "[" : ",", hosts[i], points[i].packets_per_host_s,
                   points[i].cpu_us_per_host_s, points[i].memory_kib_per_host,
                   i + 1 == count ? "]\n" : "");
        }
    }
    if (!json) {
        print_table(points, count);
    }
    return 0;
}

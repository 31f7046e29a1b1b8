/* traffic.c: `foliot lab traffic`: its arguments and its output. */
#include "lab/traffic.h"

#include "base/bug.h"
#include "base/limits.h"
#include "lab/traffic_run.h"
#include "platform/config/command_line.h"
#include "platform/json/json.h"
#include "stats/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FLOW_MAX   8192
#define REPEAT_MAX 1000

static const char usage[] = "Usage: foliot lab traffic [OPTIONS]\n"
                            "Sends data between the NICs of a lab and prints how much arrived.\n"
                            "\n";

struct options {
    struct traffic_wish wish;
    struct traffic_config config;
    int from_host, from_nic, to_host, to_nic;
    bool to_given;
    double seconds;
    int repeat;
    bool json, paced;
};

static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
    (void)signal;
    stopped = 1;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- options ---- */

struct nic_option {
    int *host, *nic;
    bool *given; /* NULL: not needed */
};

static bool take_nic(const char *text, void *to)
{
    const struct nic_option *o = to;
    int used = 0;
    if (o->given != NULL) {
        *o->given = true;
    }
    return sscanf(text, "%d.%d%n", o->host, o->nic, &used) == 2 && text[used] == '\0';
}

static int read_table(struct options *o, int argc, char **argv)
{
    static const char *const patterns[] = {"cross",  "fill", "leaf", "all-to-all",
                                           "incast", "one",  NULL};
    struct nic_option from = {&o->from_host, &o->from_nic, NULL},
                      to = {&o->to_host, &o->to_nic, &o->to_given};
    double load_percent = 0, job_bytes = 0;
    const struct option_entry entries[] = {
        {"pattern", 0, OPTION_CHOICE, &o->wish.pattern, .choices = patterns, .value = "P",
         .help = "cross (default: each NIC to its counterpart on the next leaf), fill (that and "
                 "within the leaf: every link at the load), leaf (only that), all-to-all, incast, "
                 "one"},
        {"load", 0, OPTION_NUMBER, &load_percent, 0.01, 100, .value = "PCT",
         .help = "share of each link to fill, paced; trunks too (default 80)"},
        {"rate", 0, OPTION_NUMBER, &o->wish.rate_mbps, 0.01, 1e6, .value = "MBIT",
         .help = "instead: the rate of each sending NIC; incast: the rate at the sink"},
        {"greedy", 0, OPTION_FLAG, &o->wish.greedy,
         .help = "unpaced: each flow takes all that TCP gets"},
        {"flows", 0, OPTION_INT, &o->wish.flows, 1, 64, .value = "N",
         .help =
             "flows for each pair of NICs, each with its own source port (default: 4 across, 1 in "
             "all-to-all)"},
        {"from", 0, OPTION_OWN, &from, .take = take_nic, .expected = "a NIC such as 0.1: HOST.NIC",
         .value = "H.N", .help = "one: the sender"},
        {"to", 0, OPTION_OWN, &to, .take = take_nic, .expected = "a NIC such as 0.1: HOST.NIC",
         .value = "H.N", .help = "one, incast: the receiver"},
        {"udp", 0, OPTION_FLAG, &o->config.udp, .help = "datagrams instead of TCP"},
        {"high", 0, OPTION_FLAG, &o->config.high_class, .help = "use the probes' class (DSCP CS6)"},
        {"ipv6", 0, OPTION_FLAG, &o->config.ipv6, .help = "over IPv6"},
        {"any-port", 0, OPTION_FLAG, &o->config.any_port, .help = "don't spread flows evenly"},
        {"check", 0, OPTION_FLAG, &o->config.check, .help = "compare every byte (TCP)"},
        {"seconds", 0, OPTION_NUMBER, &o->seconds, 0, 1e7, .value = "S",
         .help = "how long (default 10; 0: until interrupted)"},
        {"job", 0, OPTION_NUMBER, &job_bytes, 1, 1e12, .value = "BYTES",
         .help =
             "a transfer job: each flow carries BYTES, and the time is measured until the last has "
             "arrived; unpaced unless --load or --rate is given"},
        {"repeat", 0, OPTION_INT, &o->repeat, 1, REPEAT_MAX, .value = "N",
         .help = "repeat the job so many times"},
        {"json", 0, OPTION_FLAG, &o->json, .help = "one JSON object"},
        {"help", 'h', OPTION_HELP, .help = "this text"},
    };
    const struct option_set set = {.program = "foliot lab traffic",
                                   .usage = usage,
                                   .entries = entries,
                                   .count = ARRAY_COUNT(entries)};
    int first = 0;
    const int status = command_line_read(&set, argc, argv, &first);
    o->wish.load = load_percent > 0 ? load_percent / 100 : o->wish.load;
    o->paced = load_percent > 0 || o->wish.rate_mbps > 0;
    o->config.job_bytes = (int64_t)job_bytes;
    return status;
}

/* COMMAND_LINE_GOOD, or the exit status. */
static int read_options(struct options *o, int argc, char **argv)
{
    const int status = read_table(o, argc, argv);
    if (status != COMMAND_LINE_GOOD) {
        return status;
    }
    if (o->config.udp && (o->config.check || o->config.job_bytes > 0)) {
        fprintf(stderr, "foliot lab traffic: --check and --job need TCP\n");
        return 2;
    }
    if (o->config.job_bytes > 0 && !o->paced) {
        o->wish.greedy = true;
    } else if (!o->paced && !o->wish.greedy) {
        o->wish.load = 0.8;
    }
    if (o->wish.flows == 0) {
        bool many = o->wish.pattern == TRAFFIC_PATTERN_ALL_TO_ALL ||
                    o->wish.pattern == TRAFFIC_PATTERN_INCAST || o->wish.greedy;
        o->wish.flows = many ? 1 : 4;
    }
    return COMMAND_LINE_GOOD;
}

/* ---- the lab for the plan ---- */

static int list_nics(const struct lab *lab, struct traffic_nic *nics)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    int count = 0;
    for (int h = 0; h < f->hosts; h++) {
        for (int n = 0; n < f->nics_per_host; n++) {
            nics[count++] = (struct traffic_nic){h, n, lab_leaf_of(lab, h, n)};
        }
    }
    return count;
}

static int find_nic(const struct traffic_nic *nics, int count, int host, int nic)
{
    for (int i = 0; i < count; i++) {
        if (nics[i].host == host && nics[i].nic == nic) {
            return i;
        }
    }
    return -1;
}

static int make_plan(struct options *o, const struct lab *lab, struct traffic_nic *nics,
                     struct traffic_flow *flows)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    int count = list_nics(lab, nics);
    struct traffic_fabric fabric = {
        .nics = nics,
        .nic_count = count,
        .spines = f->spines,
        .link_mbps = f->link_mbps,
        .trunk_mbps = scenario_trunk_mbps(f),
    };
    o->wish.from = find_nic(nics, count, o->from_host, o->from_nic);
    o->wish.to = find_nic(nics, count, o->to_host, o->to_nic);
    if (o->wish.pattern == TRAFFIC_PATTERN_ONE && !o->to_given) {
        o->wish.to = count - 1;
    }
    int r = traffic_plan(&fabric, &o->wish, flows, FLOW_MAX);
    if (r < 0) {
        fprintf(stderr, "foliot lab traffic: %s\n",
                r == -ENOSPC ? "too many flows"
                             : "no flow fits: unknown NIC, or too few leaves or hosts");
        return r;
    }
    o->config.lab = lab;
    o->config.nics = nics;
    o->config.nic_count = count;
    o->config.flows = flows;
    o->config.flow_count = r;
    return 0;
}

/* ---- reports ---- */

struct totals {
    double offered_mbps, sent_mbps, received_mbps, lowest_mbps, highest_mbps;
    uint64_t bad;
};

static struct totals sum_up(const struct traffic *t, const struct options *o, double seconds)
{
    struct totals s = {.lowest_mbps = 1e18};
    for (int i = 0; i < o->config.flow_count; i++) {
        const struct traffic_flow_state *f = traffic_flow_state(t, i);
        double mbps = (double)f->received * 8e-6 / seconds;
        s.offered_mbps += o->config.flows[i].rate_bps * 1e-6;
        s.sent_mbps += (double)f->sent * 8e-6 / seconds;
        s.received_mbps += mbps;
        s.lowest_mbps = mbps < s.lowest_mbps ? mbps : s.lowest_mbps;
        s.highest_mbps = mbps > s.highest_mbps ? mbps : s.highest_mbps;
        s.bad += f->bad;
    }
    return s;
}

static int print_json(struct json_writer *j)
{
    const char *text;
    size_t size;
    int r = json_writer_finish(j, &text, &size);
    if (r == 0) {
        fwrite(text, 1, size, stdout);
        fflush(stdout);
    }
    json_writer_done(j);
    return r < 0 ? 1 : 0;
}

static int report_load(const struct traffic *t, const struct options *o, double seconds)
{
    struct totals s = sum_up(t, o, seconds);
    if (!o->json) {
        printf("%d flows for %.1f s: %.1f Mbit/s arrived of %.1f sent", o->config.flow_count,
               seconds, s.received_mbps, s.sent_mbps);
        if (s.offered_mbps > 0) {
            printf(", %.1f wanted", s.offered_mbps);
        }
        printf("; per flow %.1f to %.1f\n", s.lowest_mbps, s.highest_mbps);
        if (o->config.check) {
            printf("every byte compared: %llu wrong\n", (unsigned long long)s.bad);
        }
        return s.bad > 0 ? 1 : 0;
    }
    struct json_writer j;
    json_writer_init(&j, 1 << 20);
    json_put_object(&j, NULL);
    json_put_int(&j, "version", 1);
    json_put_int(&j, "flows", o->config.flow_count);
    json_put_double(&j, "seconds", seconds);
    json_put_double(&j, "offered_mbps", s.offered_mbps);
    json_put_double(&j, "sent_mbps", s.sent_mbps);
    json_put_double(&j, "received_mbps", s.received_mbps);
    json_put_double(&j, "flow_mbps_min", s.lowest_mbps);
    json_put_double(&j, "flow_mbps_max", s.highest_mbps);
    json_put_bool(&j, "checked", o->config.check);
    json_put_uint(&j, "bad_bytes", s.bad);
    json_put_end(&j);
    return print_json(&j) != 0 || s.bad > 0 ? 1 : 0;
}

static int report_jobs(const struct options *o, const double *seconds, int count, uint64_t bad)
{
    double sorted[REPEAT_MAX];
    double bytes = (double)o->config.job_bytes * o->config.flow_count;
    memcpy(sorted, seconds, sizeof(double) * (size_t)count);
    qsort(sorted, (size_t)count, sizeof(double), sample_order);
    double median = sample_median(sorted, (size_t)count);
    if (!o->json) {
        printf("%d transfers of %.1f MB over %d flows: median %.3f s (%.3f to %.3f), %.1f Mbit/s\n",
               count, bytes * 1e-6, o->config.flow_count, median, sorted[0], sorted[count - 1],
               bytes * 8e-6 / median);
        return bad > 0 ? 1 : 0;
    }
    struct json_writer j;
    json_writer_init(&j, 1 << 20);
    json_put_object(&j, NULL);
    json_put_int(&j, "version", 1);
    json_put_int(&j, "flows", o->config.flow_count);
    json_put_double(&j, "bytes", bytes);
    json_put_double(&j, "median_s", median);
    json_put_double(&j, "median_mbps", bytes * 8e-6 / median);
    json_put_uint(&j, "bad_bytes", bad);
    json_put_array(&j, "seconds");
    for (int i = 0; i < count; i++) {
        json_put_double(&j, NULL, seconds[i]);
    }
    json_put_end(&j);
    json_put_end(&j);
    return print_json(&j) != 0 || bad > 0 ? 1 : 0;
}

/* ---- runs ---- */

static int broken(int r)
{
    fprintf(stderr, "foliot lab traffic: a connection broke: %s\n", strerror(-r));
    return 1;
}

/* The first half second isn't counted: flows are starting. */
static int run_load(struct traffic *t, const struct options *o)
{
    int r = traffic_run(t, 500000000, &stopped);
    traffic_mark(t);
    int64_t start = now_ns();
    if (r == 0 && !stopped) {
        r = traffic_run(t, (int64_t)(o->seconds * 1e9), &stopped);
    }
    double seconds = (double)(now_ns() - start) * 1e-9;
    if (r < 0) {
        return broken(r);
    }
    return report_load(t, o, seconds > 1e-3 ? seconds : 1e-3);
}

static int run_jobs(struct traffic *t, const struct options *o)
{
    static double seconds[REPEAT_MAX];
    int count = 0;
    while (count < o->repeat && !stopped) {
        int64_t start = now_ns();
        int r = traffic_run(t, 120000000000, &stopped);
        if (r < 0) {
            return broken(r);
        }
        if (!stopped) {
            seconds[count++] = (double)(now_ns() - start) * 1e-9;
        }
    }
    return count == 0 ? 1 : report_jobs(o, seconds, count, sum_up(t, o, 1).bad);
}

int lab_traffic_main(const char *name, int argc, char **argv)
{
    static struct lab lab;
    static struct traffic_nic nics[LAB_HOST_MAX * HOST_NIC_MAX];
    static struct traffic_flow flows[FLOW_MAX];
    struct options o = {.seconds = 10, .repeat = 1};
    const int early = read_options(&o, argc, argv);
    if (early != COMMAND_LINE_GOOD) {
        return early;
    }
    int r = lab_open(&lab, name);
    if (r < 0) {
        fprintf(stderr,
                "foliot lab traffic: there is no lab '%s': `foliot lab --name %s up` makes one\n",
                name, name);
        return 1;
    }
    if ((lab.scenario.fabric.ip & (o.config.ipv6 ? IP_V6 : IP_V4)) == 0) {
        fprintf(stderr, "foliot lab traffic: lab '%s' has no %s addresses\n", name,
                o.config.ipv6 ? "IPv6" : "IPv4");
        return 1;
    }
    if (make_plan(&o, &lab, nics, flows) < 0) {
        return 1;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    struct traffic *t = traffic_new(&o.config);
    if (t == NULL) {
        return 1;
    }
    int status = o.config.job_bytes > 0 ? run_jobs(t, &o) : run_load(t, &o);
    traffic_free(t);
    return status;
}

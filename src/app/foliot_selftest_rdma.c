/* foliot_selftest_rdma.c: `foliot selftest rdma`: this host's RDMA ports, the abilities of their library, and whether a queue
 * pair is silent after its marker has come. It works without an agent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/foliot_selftest_rdma.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"
#include "platform/rdma/trial.h"

#define ROUNDS_USUAL  60
#define ROUNDS_MOST   100000
#define WRITE_SIZE    65536
#define WATCH_MS      15.0
#define WATCH_MS_MOST 10000

struct selftest_rdma {
    const char *device, *library, *root, *record;
    double rounds, watch_ms;
    bool json;
    struct rdma_port facts[RDMA_PORT_MAX];
    struct port ports[RDMA_PORT_MAX];
    int count;
    char why[256]; /* why the library can't be used; "": it can */
    struct selftest_record recording;
};

const char *selftest_verdict(enum verdict v)
{
    return v == VERDICT_SAFE ? "silent" : v == VERDICT_UNSAFE ? "not silent" : "unknown";
}

static int take_options(struct selftest_rdma *s, int argc, char *argv[])
{
    const struct option_entry own[] = {
        {"device", 0, OPTION_TEXT, &s->device, .expected = "the name of an RDMA device"},
        {"rounds", 0, OPTION_NUMBER, &s->rounds, 0, ROUNDS_MOST},
        {"look", 0, OPTION_NUMBER, &s->watch_ms, 1, WATCH_MS_MOST},
        {"library", 0, OPTION_TEXT, &s->library, .expected = "a file"},
        {"root", 0, OPTION_TEXT, &s->root, .expected = "a folder that holds sys/class/infiniband"},
        {"record", 0, OPTION_TEXT, &s->record, .expected = "a file"},
        {"json", 0, OPTION_FLAG, &s->json},
    };
    int first;
    const int r = command_read(command_find("selftest"), own, ARRAY_COUNT(own), argc, argv, &first);

    if (r == 0 && first != argc) {
        fprintf(stderr, "foliot selftest rdma: expected options only, found '%s'\n", argv[first]);
        return EXIT_USAGE;
    }
    return r;
}

static bool failed(struct port *p, int r, const char *step)
{
    if (r < 0) {
        p->step = step;
        p->error = r;
    }
    return r < 0;
}

static enum verdict judge(const struct rdma_trial *t)
{
    return t->moved_after_marker > 0 || t->out_of_order > 0             ? VERDICT_UNSAFE
           : t->error == 0 && t->rounds > 0 && t->no_marker < t->rounds ? VERDICT_SAFE
                                                                        : VERDICT_UNKNOWN;
}

static void try_port(struct selftest_rdma *s, struct port *p, struct rdma_device *d)
{
    const struct rdma_port *f = p->facts;
    struct rdma_trial_config config = {.port = f->port,
                                       .rounds = (uint32_t)s->rounds,
                                       .size = WRITE_SIZE,
                                       .watch_ms = (uint32_t)s->watch_ms,
                                       .seed = (uint32_t)time(NULL)};

    if (failed(p, rdma_device_limits(d, &p->limits), "asking for the device's limits") ||
        failed(p, rdma_device_port(d, f->port, &p->now), "asking for the port's state")) {
        return;
    }
    p->opened = true;
    p->gid_count = rdma_device_gids(d, f->port, p->gids, RDMA_GID_MAX);
    if (config.rounds == 0 || p->now.state != RDMA_PORT_ACTIVE || p->gid == NULL) {
        return;
    }
    const int index = rdma_device_gid_index(d, f->port, p->gid->gid, p->gid->type);
    if (failed(p, index, "finding the GID")) {
        return;
    }
    memcpy(config.gid, p->gid->gid, sizeof(config.gid));
    config.gid_index = (uint8_t)index;
    config.lid = p->now.lid;
    config.global = p->now.grh_required;
    config.mtu = p->now.active_mtu;
    rdma_trial_fence(d, &config, &p->trial);
    p->tried = true;
    p->verdict = judge(&p->trial);
    failed(p, p->trial.error, p->trial.what);
}

static void try_all(struct selftest_rdma *s, struct rdma_verbs *verbs)
{
    for (int i = 0; i < s->count; i++) {
        struct port *p = &s->ports[i];
        struct rdma_device *d = NULL;
        if (!failed(p, rdma_device_open(verbs, p->facts->device, &d), "opening the device")) {
            try_port(s, p, d);
            if (p->step == NULL) {
                failed(p, rdma_device_close(d), "closing the device");
            } else {
                (void)rdma_device_close(d);
            }
        }
    }
}

/* Reads the ports of the wanted device, or of all devices. */
static int read_ports(struct selftest_rdma *s)
{
    struct sysfs tree;
    int r = s->root != NULL ? sysfs_open(&tree, s->root) : 0;

    if (r < 0) {
        return r;
    }
    if (s->record != NULL) {
        selftest_record_begin(&s->recording, s->root);
    }
    r = rdma_ports_read(s->root != NULL ? &tree : NULL, s->facts, RDMA_PORT_MAX);
    if (s->root != NULL) {
        sysfs_close(&tree);
    }
    for (int i = 0; i < r; i++) {
        if (s->device == NULL || strcmp(s->facts[i].device, s->device) == 0) {
            s->ports[s->count++] = (struct port){.facts = &s->facts[i],
                                                 .gid = rdma_gid_choose(&s->facts[i], NULL),
                                                 .verdict = VERDICT_UNKNOWN};
        }
    }
    return r;
}

/* ---- output ---- */

static struct cell gid_text(const struct rdma_gid *gid)
{
    uint8_t v4[4];
    const uint8_t *g = gid != NULL ? gid->gid : NULL;

    if (g == NULL) {
        return text_format("none");
    }
    if (rdma_gid_ipv4(gid, v4)) {
        return text_format("%u: %u.%u.%u.%u", gid->index, v4[0], v4[1], v4[2], v4[3]);
    }
    return text_format("%u: %02x%02x:%02x%02x:…:%02x%02x:%02x%02x", gid->index, g[0], g[1], g[2],
                       g[3], g[12], g[13], g[14], g[15]);
}

/* The reason why a port can't carry lanes over queue pairs, and what to do. NULL: it can. */
static const char *advice(const struct selftest_rdma *s, const struct port *p)
{
    return p->facts->state != RDMA_PORT_ACTIVE
               ? (p->facts->state == RDMA_PORT_INIT
                      ? "the cable is there, and no subnet manager has been: start one, or look "
                        "why it doesn't reach this port"
                      : "the port isn't active: look at its cable and its switch")
           : p->gid == NULL ? "it has no RoCE v2 GID with an address that a router carries: give "
                              "its interface an address, and switch RoCE v2 on"
           : s->why[0] != '\0' ? "nothing can be tested without the library: install rdma-core"
           : p->error == -EACCES || p->error == -EPERM ? "be root, or get access to /dev/infiniband"
           : p->error == -ENOMEM          ? "memory could not be pinned: raise `ulimit -l`"
           : p->verdict == VERDICT_UNSAFE ? "bytes moved after the marker: this device must not "
                                            "have direct lanes; please report it, with --json"
                                          : NULL;
}

static void print_port(const struct selftest_rdma *s, const struct port *p)
{
    const struct rdma_trial *t = &p->trial;
    const char *what_to_do = advice(s, p);

    if (p->opened) {
        printf("%s/%u: MTU %u of %u, %u queue pairs, %u requests each, GPU memory by DMA-BUF: %s, "
               "completions with the device's time: %s\n",
               p->facts->device, p->facts->port, p->now.active_mtu, p->now.mtu, p->limits.qp,
               p->limits.sends, p->limits.dmabuf ? "yes" : "no",
               p->limits.cqe_stamps ? "yes" : "no");
    }
    if (p->tried) {
        printf("%s/%u: %u rounds, %llu writes: bytes moved after the marker in %u, after the call "
               "alone in %u; marker %s median, %s largest; pair made in %s median\n",
               p->facts->device, p->facts->port, t->rounds, (unsigned long long)t->writes,
               t->moved_after_marker, t->moved_after_return, text_ns(t->marker_ns_p50).text,
               text_ns(t->marker_ns_max).text, text_ns(t->connect_ns_p50).text);
    }
    if (t->no_marker > 0) {
        printf("%s/%u: the marker didn't come within a second in %u rounds\n", p->facts->device,
               p->facts->port, t->no_marker);
    }
    if (p->step != NULL) {
        printf("%s/%u: %s: %s\n", p->facts->device, p->facts->port, p->step, strerror(-p->error));
    }
    if (what_to_do != NULL) {
        printf("%s/%u: %s\n", p->facts->device, p->facts->port, what_to_do);
    }
}

static void print_table(const struct selftest_rdma *s)
{
    static const char *const titles[] = {"PORT",       "INTERFACE", "LINK",     "STATE", "RATE",
                                         "GID TO USE", "LID",       "FIRMWARE", "FENCE", NULL};
    struct libscols_table *table = table_new(titles);

    for (int i = 0; table != NULL && i < s->count; i++) {
        const struct rdma_port *f = s->ports[i].facts;
        struct libscols_line *line = table_line(table);
        table_put(line, 0, text_format("%s/%u", f->device, f->port).text);
        table_put(line, 1, f->if_name[0] != '\0' ? f->if_name : "–");
        table_put(line, 2,
                  f->layer == RDMA_LAYER_INFINIBAND ? "InfiniBand"
                  : f->layer == RDMA_LAYER_ETHERNET ? "RoCE"
                                                    : "unknown");
        table_put(line, 3, rdma_port_state_name(f->state));
        table_put(line, 4,
                  f->rate_mbps > 0 ? text_rate((int64_t)f->rate_mbps * 1000000).text : "–");
        table_put(line, 5, gid_text(s->ports[i].gid).text);
        table_put(line, 6,
                  f->lid != 0 ? text_format("%u, %u paths", f->lid, 1u << f->lmc).text : "–");
        table_put(line, 7, f->firmware[0] != '\0' ? f->firmware : "–");
        table_put_status(line, 8, selftest_verdict(s->ports[i].verdict));
    }
    if (table != NULL) {
        table_show(table, stdout);
    }
    if (s->why[0] != '\0') {
        printf("the library: %s\n", s->why);
    }
    for (int i = 0; i < s->count; i++) {
        print_port(s, &s->ports[i]);
    }
    fputs("This test does not show: two hosts, a path that dies, memory of GPUs, queues under "
          "congestion, the fence under other devices' load.\n",
          stdout);
}

static json_t *counters_json(const struct rdma_port *f)
{
    json_t *all = json_object();

    for (int i = 0; i < RDMA_COUNTER_COUNT; i++) {
        if (f->counters[i] != RDMA_COUNTER_NONE) {
            json_object_set_new(all, rdma_counter_name(i),
                                json_integer((json_int_t)f->counters[i]));
        }
    }
    return all;
}

static json_t *gids_json(const struct rdma_port *f)
{
    json_t *all = json_array();

    for (uint32_t i = 0; i < f->gid_count; i++) {
        char text[33];
        for (int k = 0; k < 16; k++) {
            snprintf(text + 2 * k, 3, "%02x", f->gids[i].gid[k]);
        }
        json_array_append_new(all, json_pack("{s:i, s:s, s:s, s:s}", "index", f->gids[i].index,
                                             "type", rdma_gid_type_name(f->gids[i].type), "gid",
                                             text, "interface", f->gids[i].if_name));
    }
    return all;
}

static json_t *fence_json(const struct port *p)
{
    const struct rdma_trial *t = &p->trial;

    return !p->tried ? json_null()
                     : json_pack("{s:i, s:I, s:i, s:i, s:I, s:i, s:i, s:I, s:I, s:I}", "rounds",
                                 (int)t->rounds, "writes", (json_int_t)t->writes,
                                 "moved_after_return", (int)t->moved_after_return,
                                 "moved_after_marker", (int)t->moved_after_marker,
                                 "bytes_after_marker", (json_int_t)t->bytes_after_marker,
                                 "out_of_order", (int)t->out_of_order, "no_marker",
                                 (int)t->no_marker, "marker_ns_p50", (json_int_t)t->marker_ns_p50,
                                 "marker_ns_max", (json_int_t)t->marker_ns_max, "connect_ns_p50",
                                 (json_int_t)t->connect_ns_p50);
}

static json_t *port_json(const struct selftest_rdma *s, const struct port *p)
{
    const struct rdma_port *f = p->facts;
    const char *what_to_do = advice(s, p);
    json_t *error = p->step != NULL
                        ? json_pack("{s:s, s:s}", "step", p->step, "error", strerror(-p->error))
                        : json_null();

    return json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:I, s:i, s:i, s:i, s:s, s:o, s:o?, s:o, s:o, s:s, s:o, s:o}",
        "device", f->device, "port", (int)f->port, "interface", f->if_name, "link",
        f->layer == RDMA_LAYER_INFINIBAND ? "infiniband"
        : f->layer == RDMA_LAYER_ETHERNET ? "roce"
                                          : "unknown",
        "state", rdma_port_state_name(f->state), "rate_bps", (json_int_t)f->rate_mbps * 1000000,
        "lid", f->lid, "lmc", f->lmc, "mtu", (int)p->now.active_mtu, "firmware", f->firmware,
        "gids", gids_json(f), "gid_index",
        p->gid != NULL ? json_integer(p->gid->index) : json_null(), "counters", counters_json(f),
        "fence", fence_json(p), "verdict", selftest_verdict(p->verdict), "error", error, "advice",
        what_to_do != NULL ? json_string(what_to_do) : json_null());
}

static void print_json(const struct selftest_rdma *s)
{
    json_t *ports = json_array();

    for (int i = 0; i < s->count; i++) {
        json_array_append_new(ports, port_json(s, &s->ports[i]));
    }
    json_t *all =
        json_pack("{s:i, s:s, s:o, s:o}", "version", 1, "kind", "selftest-rdma", "library_error",
                  s->why[0] != '\0' ? json_string(s->why) : json_null(), "ports", ports);
    if (all != NULL) {
        json_dumpf(all, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(all);
    }
}

/* argv as in main(), from the word rdma on. */
int selftest_rdma(int argc, char *argv[])
{
    struct selftest_rdma *s = calloc(1, sizeof(*s));
    struct rdma_verbs *verbs = NULL;

    if (s == NULL) {
        fputs("foliot selftest rdma: out of memory\n", stderr);
        return EXIT_NOT_WELL;
    }
    s->rounds = ROUNDS_USUAL;
    s->watch_ms = WATCH_MS;
    int status = take_options(s, argc, argv);
    if (status != EXIT_WELL) {
        free(s);
        return status == COMMAND_HELPED ? EXIT_WELL : status;
    }
    const int found = read_ports(s);
    if (found < 0) {
        fprintf(stderr, "foliot selftest rdma: RDMA ports of %s: %s\n",
                s->root != NULL ? s->root : "this host", strerror(-found));
        status = EXIT_NOT_WELL;
    } else if (s->count == 0) {
        fprintf(stderr,
                "foliot selftest rdma: expected RDMA ports%s%s, found none: without their "
                "driver Foliot's lanes are TCP connections\n",
                s->device != NULL ? " of " : "", s->device != NULL ? s->device : "");
        status = EXIT_NOT_WELL;
    } else {
        if (rdma_verbs_open(&verbs, s->library, s->why, sizeof(s->why)) == 0) {
            try_all(s, verbs);
            rdma_verbs_close(verbs);
        }
        s->json ? print_json(s) : print_table(s);
        const int kept = s->record == NULL
                             ? 0
                             : selftest_record_write(&s->recording, s->record, s->ports, s->count);
        if (kept < 0) {
            fprintf(stderr, "foliot selftest rdma: %s: expected a file that can be written: %s\n",
                    s->record, strerror(-kept));
            status = EXIT_NOT_WELL;
        }
        for (int i = 0; i < s->count; i++) {
            status =
                s->ports[i].verdict == VERDICT_SAFE || (s->rounds == 0 && s->ports[i].step == NULL)
                    ? status
                    : EXIT_NOT_WELL;
        }
    }
    selftest_record_end(&s->recording);
    free(s);
    return status;
}

/* scenario.c: reads a scenario. The tables below are the language: a key, what it holds, where it
 * goes. */
#include "service/scenario/fields.h"

#include "base/time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPAN_MAX 1e18

/* ---- fabric, clocks ---- */
static const char *const network_words[] = {"fabric", "abstract", NULL};
static const char *const wiring_words[] = {"host", "rail", NULL};
static const char *const ip_words[] = {"none", "4", "6", "both", NULL};
static const char *const stamps_words[] = {"software", "nic", NULL};

#define FABRIC(member) offsetof(struct scenario_fabric, member)
static const struct field fabric_fields[] = {
    {"network", FIELD_CHOICE, FABRIC(network), .choices = network_words},
    {"hosts", FIELD_INT, FABRIC(hosts), 1, 100000},
    {"nics_per_host", FIELD_INT, FABRIC(nics_per_host), 1, 16},
    {"wiring", FIELD_CHOICE, FABRIC(wiring), .choices = wiring_words},
    {"leaves", FIELD_INT, FABRIC(leaves), 1, 1024},
    {"spines", FIELD_INT, FABRIC(spines), 1, 256},
    {"ip", FIELD_CHOICE, FABRIC(ip), .choices = ip_words},
    {"link_mbps", FIELD_NUMBER, FABRIC(link_mbps), 1, 1e6},
    {"trunk_mbps", FIELD_NUMBER, FABRIC(trunk_mbps), 0, 1e6},
    {"buffer_bytes", FIELD_BYTES, FABRIC(buffer_bytes), 3000, 1e9},
    {"drops", FIELD_BOOL, FABRIC(drops)},
    {"probe_class", FIELD_BOOL, FABRIC(probe_class)},
    {"routers_answer", FIELD_BOOL, FABRIC(routers_answer)},
    {"edges_per_nic", FIELD_INT, FABRIC(edges_per_nic), 0, 64},
    {"cable", FIELD_SPAN, FABRIC(cable_ns), 0, 1e9},
    {"switch", FIELD_SPAN, FABRIC(switch_ns), 0, 1e9},
    {"delay_min", FIELD_SPAN, FABRIC(delay_ns_min), 0, 1e9},
    {"delay_max", FIELD_SPAN, FABRIC(delay_ns_max), 0, 1e9},
    {"paths", FIELD_INT, FABRIC(paths), 1, 8},
    {"queued_share", FIELD_SHARE, FABRIC(queued_share), 0, 1},
    {"queue", FIELD_SPAN, FABRIC(queue_ns), 0, 1e9},
    {"asymmetric_share", FIELD_SHARE, FABRIC(asymmetric_share), 0, 1},
    {"asymmetry", FIELD_SPAN, FABRIC(asymmetry_ns), 0, 1e9},
    {"asymmetry_uniform", FIELD_SPAN, FABRIC(asymmetry_uniform_ns), 0, 1e9},
    {"asymmetry_per_path", FIELD_BOOL, FABRIC(asymmetry_per_path)},
};

#define CLOCKS(member) offsetof(struct scenario_clocks, member)
static const struct field clocks_fields[] = {
    {"stamps", FIELD_CHOICE, CLOCKS(stamps), .choices = stamps_words},
    {"noise", FIELD_SPAN_DOUBLE, CLOCKS(noise_ns), 0, 1e9},
    {"jitter", FIELD_SPAN_DOUBLE, CLOCKS(jitter_ns), 0, 1e9},
    {"quantum", FIELD_SPAN_DOUBLE, CLOCKS(quantum_ns), 0, 1e6},
    {"offset", FIELD_SPAN, CLOCKS(offset_ns), 0, 1e15},
    {"ppm", FIELD_NUMBER, CLOCKS(ppm), 0, 400},
    {"wander", FIELD_NUMBER, CLOCKS(wander), 0, 1e4},
    {"ramp_ppb_s", FIELD_NUMBER, CLOCKS(ramp_ppb_s), 0, 1e4},
    {"ramp_for", FIELD_SPAN, CLOCKS(ramp_for_ns), 0, SPAN_MAX},
    {"ramp_every", FIELD_SPAN, CLOCKS(ramp_every_ns), 0, SPAN_MAX},
    {"ramp_share", FIELD_SHARE, CLOCKS(ramp_share), 0, 1},
    {"nic_read", FIELD_SPAN_DOUBLE, CLOCKS(nic_read_ns), 0, 1e6},
    {"nic_read_noise", FIELD_SPAN_DOUBLE, CLOCKS(nic_read_noise_ns), 0, 1e6},
    {"one_tx_stamp", FIELD_BOOL, CLOCKS(one_tx_stamp)},
    {"anchors", FIELD_INT, CLOCKS(anchors), 0, 1e6},
    {"anchor_bound", FIELD_SPAN, CLOCKS(anchor_bound_ns), 0, 1e12},
    {"edge_limit", FIELD_SPAN, CLOCKS(edge_limit_ns), 0, 1e9},
    {"guard", FIELD_BOOL, CLOCKS(guard)},
    {"warm_start", FIELD_BOOL, CLOCKS(warm_start)},
};

/* ---- traffic ---- */
static const char *const traffic_words[] = {"flow", "incast", "all-to-all", "standing", NULL};
#define TRAFFIC(member) offsetof(struct scenario_traffic, member)
static const struct field traffic_fields[] = {
    {"kind", FIELD_CHOICE, TRAFFIC(kind), .choices = traffic_words},
    {"from", FIELD_TARGET, TRAFFIC(from)},
    {"to", FIELD_TARGET, TRAFFIC(to)},
    {"load", FIELD_SHARE, TRAFFIC(load), 0, 0.99},
    {"greedy", FIELD_BOOL, TRAFFIC(greedy)},
    {"fan", FIELD_INT, TRAFFIC(fan), 2, 64},
    {"burst_bytes", FIELD_BYTES, TRAFFIC(burst_bytes), 1000, 1e9},
    {"queue_bytes", FIELD_BYTES, TRAFFIC(queue_bytes), 0, 1e9},
    {"start", FIELD_SPAN, TRAFFIC(start_ns), 0, SPAN_MAX},
    {"end", FIELD_SPAN, TRAFFIC(end_ns), 0, SPAN_MAX},
};

/* ---- faults ---- */
static const char *const direction_words[] = {"both", "up", "down", NULL};
static const char *const lie_words[] = {"random",    "colluding", "drifting",
                                        "two-faced", "oldest",    NULL};
#define FAULT(member) offsetof(struct scenario_fault, member)
static const struct field fault_fields[] = {
    {"target", FIELD_TARGET, FAULT(target)},
    {"at", FIELD_SPAN, FAULT(at_ns), 0, SPAN_MAX},
    {"for", FIELD_SPAN, FAULT(for_ns), 0, SPAN_MAX},
    {"direction", FIELD_CHOICE, FAULT(direction), .choices = direction_words},
    {"loss", FIELD_SHARE, FAULT(loss), 0, 1},
    {"rate_mbps", FIELD_NUMBER, FAULT(rate_mbps), 0.01, 1e6},
    {"delay", FIELD_SPAN, FAULT(delay_ns), 0, 1e10},
    {"jitter", FIELD_SPAN, FAULT(jitter_ns), 0, 1e10},
    {"step", FIELD_SPAN, FAULT(step_ns), -1e16, 1e16},
    {"ppm", FIELD_NUMBER, FAULT(ppm), -1000, 1000},
    {"lie", FIELD_CHOICE, FAULT(lie), .choices = lie_words},
    {"size", FIELD_SPAN, FAULT(size_ns), -1e16, 1e16},
    {"rate_ppb", FIELD_NUMBER, FAULT(rate_ppb), -1e6, 1e6},
    {"count", FIELD_INT, FAULT(count), 1, 1000000},
    {"down", FIELD_SPAN, FAULT(down_ns), 1, SPAN_MAX},
    {"up", FIELD_SPAN, FAULT(up_ns), 1, SPAN_MAX},
    {"every", FIELD_SPAN, FAULT(every_ns), 1, SPAN_MAX},
    {"share", FIELD_SHARE, FAULT(share), 0, 1},
    {"turn", FIELD_SPAN, FAULT(turn_ns), 1, SPAN_MAX},
    {"reroute", FIELD_SPAN, FAULT(reroute_ns), 0, SPAN_MAX},
    {"version", FIELD_INT, FAULT(version), 1, 255},
};

/* What each fault may be aimed at, bits of enum scenario_target_kind, and the field that it can't
 * do without. */
#define T(kind) (1u << TARGET_##kind)
static const struct {
    unsigned targets;
    const char *needs;
} fault_rules[FAULT_KINDS] = {
    [FAULT_CARRIER] = {T(NIC), NULL},
    [FAULT_FLAP] = {T(NIC) | T(TRUNK), "down"},
    [FAULT_BLACKHOLE] = {T(EDGE) | T(NIC) | T(TRUNK) | T(SPINE), NULL},
    [FAULT_LOSS] = {T(EDGE) | T(NIC) | T(TRUNK) | T(SPINE) | T(ALL), "loss"},
    [FAULT_BROWNOUT] = {T(NIC) | T(TRUNK), "rate_mbps"},
    [FAULT_DELAY] = {T(EDGE) | T(NIC) | T(TRUNK), "delay"},
    [FAULT_TRUNK] = {T(TRUNK), NULL},
    [FAULT_SPINE] = {T(SPINE), NULL},
    [FAULT_AGENT_KILL] = {T(HOSTS) | T(ALL), NULL},
    [FAULT_AGENT_STOP] = {T(HOSTS) | T(ALL), "for"},
    [FAULT_AGENT_STARVE] = {T(HOSTS) | T(ALL), "share"},
    [FAULT_AGENT_RESTART] = {T(HOSTS) | T(ALL), NULL},
    [FAULT_CLOCK_STEP] = {T(HOSTS) | T(NIC), "step"},
    [FAULT_CLOCK_FREQ] = {T(HOSTS) | T(NIC), "ppm"},
    [FAULT_LIAR] = {T(HOSTS), "lie"},
    [FAULT_ASYMMETRY] = {T(EDGE) | T(EDGES), "delay"},
    [FAULT_SUSPEND] = {T(HOSTS), "for"},
    [FAULT_REBOOT] = {T(HOSTS) | T(ALL), "for"},
    [FAULT_PARTITION] = {T(HOSTS), "for"},
    [FAULT_NIC_VANISH] = {T(NIC), "for"},
    [FAULT_NIC_STEER] = {T(NIC) | T(HOSTS), "ppm"},
    [FAULT_REPLAY] = {T(EDGE), "every"},
    [FAULT_FORGE] = {T(EDGE), "every"},
    [FAULT_ANCHOR_LOST] = {T(HOSTS) | T(ALL), NULL},
    [FAULT_KEY_ROTATE] = {T(ALL), NULL},
    [FAULT_VERSION] = {T(HOSTS) | T(ALL), "version"},
    [FAULT_PEERS] = {T(HOSTS), "for"},
};

static bool nic_fits(const struct scenario_fabric *f, struct scenario_nic nic)
{
    return nic.host < f->hosts && nic.nic < f->nics_per_host;
}

/* A target that the fabric doesn't have is an error of the file. */
static int check_target(const struct config_node *node, const struct scenario_fabric *f,
                        const struct scenario_target *t, struct config_error *error)
{
    switch (t->kind) {
    case TARGET_HOSTS:
        if (t->share > 0 || t->last < f->hosts) {
            return 0;
        }
        return config_expected(node, error, "a host below %d", f->hosts);
    case TARGET_NIC:
        if (nic_fits(f, t->from)) {
            return 0;
        }
        return config_expected(node, error, "a NIC of %d hosts x %d NICs", f->hosts,
                               f->nics_per_host);
    case TARGET_EDGE:
        if (!nic_fits(f, t->from) || !nic_fits(f, t->to) || t->from.host == t->to.host) {
            return config_expected(node, error, "two NICs of different hosts (%d hosts x %d NICs)",
                                   f->hosts, f->nics_per_host);
        }
        if (t->path >= (f->network == NETWORK_FABRIC ? f->spines : f->paths)) {
            return config_expected(node, error, "a path below %d",
                                   f->network == NETWORK_FABRIC ? f->spines : f->paths);
        }
        return 0;
    case TARGET_LEAF:
        return t->first < f->leaves ? 0
                                    : config_expected(node, error, "a leaf below %d", f->leaves);
    case TARGET_SPINE:
        return t->first < f->spines ? 0
                                    : config_expected(node, error, "a spine below %d", f->spines);
    case TARGET_TRUNK:
        return t->first < f->leaves && t->last < f->spines
                   ? 0
                   : config_expected(node, error, "a trunk LEAF-SPINE of %d leaves and %d spines",
                                     f->leaves, f->spines);
    default:
        return 0;
    }
}

static int read_fault(const struct config_node *node, const struct scenario *s,
                      struct scenario_fault *ret, struct config_error *error)
{
    static const char *const extra[] = {"kind", NULL};
    struct scenario_fault f = {.count = 1,
                               .turn_ns = 100 * NS_PER_MS,
                               .every_ns = 100 * NS_PER_MS,
                               .line = (int)config_line(node),
                               .target = {.kind = TARGET_NONE, .path = -1}};
    const char *words[FAULT_KINDS + 1] = {0};
    const struct config_node *place = NULL;
    int kind = 0, r;

    for (int i = 0; i < FAULT_KINDS; i++) {
        words[i] = scenario_fault_name((enum scenario_fault_kind)i);
    }
    r = scenario_fields_read(node, fault_fields, ARRAY_COUNT(fault_fields), extra, &f, error);
    if (r == 0) {
        r = config_require(node, "kind", &place, error);
    }
    if (r == 0) {
        r = config_choice(node, "kind", words, &kind, error);
    }
    if (r == 0) {
        f.kind = (enum scenario_fault_kind)kind;
        r = config_require(node, "target", &place, error);
    }
    if (r == 0 && (fault_rules[kind].targets & (1u << f.target.kind)) == 0) {
        r = config_expected(place, error, "a target that a fault '%s' can have", words[kind]);
    }
    if (r == 0) {
        r = check_target(place, &s->fabric, &f.target, error);
    }
    if (r == 0 && fault_rules[kind].needs != NULL) {
        const struct config_node *unused = NULL;
        r = config_require(node, fault_rules[kind].needs, &unused, error);
    }
    if (r == 0 && f.at_ns > s->duration_ns) {
        r = config_expected(node, error, "a fault that begins before the scenario ends");
    }
    if (r == 0) {
        *ret = f;
    }
    return r;
}

/* ---- bounds ---- */
#define BOUND(member) offsetof(struct scenario_bound, member)
static const struct field bound_fields[] = {
    {"from", FIELD_SPAN, BOUND(from_ns), 0, SPAN_MAX},
    {"until", FIELD_SPAN, BOUND(until_ns), 0, SPAN_MAX},
    {"fault", FIELD_INT, BOUND(fault), 0, SCENARIO_FAULT_MAX - 1},
};
static const char *const world_words[] = {"none", "sim", "lab", "both", NULL};

static int read_relation(const struct config_node *node, struct scenario_bound *b,
                         struct config_error *error)
{
    static const char *const words[] = {"below", "above", "equals"};
    int found = 0;

    for (unsigned i = 0; i < ARRAY_COUNT(words); i++) {
        if (config_get(node, words[i]) != NULL) {
            const int r = config_double(node, words[i], -1e18, 1e18, &b->limit, error);
            if (r < 0) {
                return r;
            }
            b->relation = (enum scenario_relation)i;
            found++;
        }
    }
    return found == 1
               ? 0
               : config_fail(node, error,
                             "expected one of below, above, equals in this bound, found %d", found);
}

static int read_bound(const struct config_node *node, const struct scenario *s,
                      struct scenario_bound *ret, struct config_error *error)
{
    static const char *const extra[] = {"what", "below", "above", "equals", "world", NULL};
    struct scenario_bound b = {
        .until_ns = s->duration_ns, .fault = -1, .world = s->world, .line = (int)config_line(node)};
    const struct config_node *place = NULL;
    const struct scenario_metric *metric = NULL;
    int world = (int)s->world;
    int r;

    r = scenario_fields_read(node, bound_fields, ARRAY_COUNT(bound_fields), extra, &b, error);
    if (r == 0) {
        r = config_require(node, "what", &place, error);
    }
    if (r == 0) {
        const char *text = config_text(place);
        metric = text != NULL ? scenario_metric_find(text) : NULL;
        if (metric == NULL) {
            return config_expected(place, error, "a metric that docs/scenarios.md lists");
        }
        snprintf(b.what, sizeof(b.what), "%s", text);
        r = read_relation(node, &b, error);
    }
    if (r == 0 && config_get(node, "world") != NULL) {
        r = config_choice(node, "world", world_words, &world, error);
    }
    if (r < 0) {
        return r;
    }
    b.world = (unsigned)world & s->world & metric->world;
    if (b.world == 0) {
        return config_expected(node, error, "a metric of a world that this scenario is for");
    }
    if (b.fault >= s->fault_count) {
        return config_expected(node, error, "a fault below %d", s->fault_count);
    }
    *ret = b;
    return 0;
}

/* ---- lists ---- */
static int read_traffic(const struct config_node *node, const struct scenario *s,
                        struct scenario_traffic *ret, struct config_error *error)
{
    struct scenario_traffic t = {.fan = 8,
                                 .burst_bytes = 1 << 20,
                                 .queue_bytes = 100000,
                                 .load = 0.5,
                                 .end_ns = s->duration_ns,
                                 .from = {.kind = TARGET_ALL, .path = -1},
                                 .to = {.kind = TARGET_ALL, .path = -1}};
    const struct config_node *unused = NULL;
    int r =
        scenario_fields_read(node, traffic_fields, ARRAY_COUNT(traffic_fields), NULL, &t, error);

    if (r == 0) {
        r = config_require(node, "kind", &unused, error);
    }
    if (r == 0) {
        r = check_target(node, &s->fabric, &t.from, error);
    }
    if (r == 0) {
        r = check_target(node, &s->fabric, &t.to, error);
    }
    if (r == 0) {
        *ret = t;
    }
    return r;
}

static int open_list(const struct config_node *root, const char *key, size_t ceiling,
                     const struct config_node **ret_first, struct config_error *error)
{
    const struct config_node *list = config_get(root, key);

    *ret_first = NULL;
    if (list == NULL) {
        return 0;
    }
    if (config_kind(list) != CONFIG_LIST) {
        return config_expected(list, error, "a list of %s", key);
    }
    if (config_count(list) > ceiling) {
        return config_expected(list, error, "at most %zu %s", ceiling, key);
    }
    *ret_first = config_first(list);
    return 0;
}

static int read_lists(const struct config_node *root, struct scenario *s,
                      struct config_error *error)
{
    const struct config_node *n = NULL;
    int r = open_list(root, "traffic", SCENARIO_TRAFFIC_MAX, &n, error);

    for (; r == 0 && n != NULL; n = config_next(n)) {
        r = read_traffic(n, s, &s->traffic[s->traffic_count], error);
        s->traffic_count++;
    }
    if (r == 0) {
        r = open_list(root, "faults", SCENARIO_FAULT_MAX, &n, error);
    }
    for (; r == 0 && n != NULL; n = config_next(n)) {
        r = read_fault(n, s, &s->fault[s->fault_count], error);
        s->fault_count++;
    }
    if (r == 0) {
        r = open_list(root, "bounds", SCENARIO_BOUND_MAX, &n, error);
    }
    for (; r == 0 && n != NULL; n = config_next(n)) {
        r = read_bound(n, s, &s->bound[s->bound_count], error);
        s->bound_count++;
    }
    return r;
}

/* ---- the whole ---- */
void scenario_init(struct scenario *s)
{
    *s = (struct scenario){
        .name = "unnamed",
        .world = SCENARIO_BOTH,
        .seed = 1,
        .duration_ns = 30 * NS_PER_S,
        .fabric = {.network = NETWORK_FABRIC,
                   .hosts = 8,
                   .nics_per_host = 2,
                   .wiring = WIRING_HOST,
                   .leaves = 2,
                   .spines = 4,
                   .ip = IP_V4,
                   .link_mbps = 200,
                   .buffer_bytes = 1000000,
                   .probe_class = true,
                   .routers_answer = true,
                   .cable_ns = 500,
                   .switch_ns = 600,
                   .delay_ns_min = 2000,
                   .delay_ns_max = 10000,
                   .paths = 4,
                   .queued_share = 0.3,
                   .queue_ns = 1000},
        .clocks = {.stamps = STAMPS_SOFTWARE,
                   .noise_ns = 20,
                   .jitter_ns = 0,
                   .offset_ns = 3600 * NS_PER_S,
                   .ppm = 100,
                   .wander = 10,
                   .ramp_share = 1,
                   .nic_read_ns = 700,
                   .nic_read_noise_ns = 100,
                   .anchor_bound_ns = 1000000,
                   .guard = true,
                   .warm_start = true},
    };
}

double scenario_trunk_mbps(const struct scenario_fabric *f)
{
    return f->trunk_mbps > 0 ? f->trunk_mbps : f->link_mbps;
}

static int read_text(const struct config_node *root, const char *key, char *ret, size_t size,
                     struct config_error *error)
{
    const char *text = NULL;
    int r = config_string(root, key, &text, error);

    if (r < 0 || text == NULL) {
        return r;
    }
    if (strlen(text) >= size) {
        return config_expected(config_get(root, key), error, "'%s' of at most %zu bytes", key,
                               size - 1);
    }
    memcpy(ret, text, strlen(text) + 1);
    return 0;
}

static int read_head(const struct config_node *root, struct scenario *s, struct config_error *error)
{
    int64_t seed = (int64_t)s->seed;
    int world = (int)s->world;
    struct span duration = span_ns(s->duration_ns);
    int r = read_text(root, "name", s->name, sizeof(s->name), error);

    if (r == 0) {
        r = read_text(root, "why", s->why, sizeof(s->why), error);
    }
    if (r == 0) {
        r = config_choice(root, "world", world_words, &world, error);
    }
    if (r == 0 && world == 0) {
        r = config_expected(config_get(root, "world"), error, "sim, lab or both");
    }
    if (r == 0) {
        r = config_bool(root, "slow", &s->slow, error);
    }
    if (r == 0) {
        r = config_bool(root, "wire", &s->wire, error);
    }
    if (r == 0) {
        r = config_int(root, "seed", 0, INT64_MAX, &seed, error);
    }
    if (r == 0) {
        r = config_span(root, "duration", span_ms(1), span_s(30 * 86400), &duration, error);
    }
    s->seed = (uint64_t)seed;
    s->world = (unsigned)world;
    s->duration_ns = duration.ns;
    return r;
}

static int read_section(const struct config_node *root, const char *key, const struct field *fields,
                        size_t count, void *base, struct config_error *error)
{
    const struct config_node *section = config_get(root, key);
    return section == NULL ? 0 : scenario_fields_read(section, fields, count, NULL, base, error);
}

static int read_scenario(const struct config_node *root, struct scenario *s,
                         struct config_error *error)
{
    static const char *const keys[] = {"name",   "why",      "world",  "slow",   "wire",
                                       "seed",   "duration", "fabric", "clocks", "traffic",
                                       "faults", "bounds",   NULL};
    int r = config_allow(root, keys, error);

    if (r == 0) {
        r = read_head(root, s, error);
    }
    if (r == 0) {
        r = read_section(root, "fabric", fabric_fields, ARRAY_COUNT(fabric_fields), &s->fabric,
                         error);
    }
    if (r == 0) {
        r = read_section(root, "clocks", clocks_fields, ARRAY_COUNT(clocks_fields), &s->clocks,
                         error);
    }
    if (r == 0 && s->fabric.ip == 0) {
        r = config_fail(config_get(root, "fabric"), error, "expected ip 4, 6 or both, found none");
    }
    if (r == 0 && s->fabric.delay_ns_max < s->fabric.delay_ns_min) {
        r = config_fail(config_get(root, "fabric"), error,
                        "expected delay_min at most delay_max, found more");
    }
    return r == 0 ? read_lists(root, s, error) : r;
}

static int finish(int r, struct config *config, struct scenario *ret, struct config_error *error)
{
    struct scenario *s = NULL;

    if (r == 0) {
        s = malloc(sizeof(*s));
        r = s == NULL ? -ENOMEM : 0;
    }
    if (r == 0) {
        scenario_init(s);
        r = read_scenario(config_root(config), s, error);
    }
    if (r == 0) {
        *ret = *s;
    }
    free(s);
    config_free(config);
    return r;
}

int scenario_load(const char *path, struct scenario *ret, struct config_error *error)
{
    struct config *config = NULL;
    const int r = config_load(path, &config, error);

    return finish(r, config, ret, error);
}

int scenario_parse(const char *name, const char *text, size_t size, struct scenario *ret,
                   struct config_error *error)
{
    struct config *config = NULL;
    const int r = config_parse(name, text, size, &config, error);

    return finish(r, config, ret, error);
}

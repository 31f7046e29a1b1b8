/* language.c: the language of scenarios as tables: a key, its type, its place in the struct; and the defaults. Reader and
 * writer use the same tables, so neither can miss a key. */
#include "service/scenario/fields.h"

#include "base/time.h"
#include "wire/probe_field.h"

#include <string.h>

/* ---- fabric, clocks ---- */
static const char *const network_words[] = {"fabric", "abstract", NULL};
static const char *const wiring_words[] = {"host", "rail", NULL};
static const char *const ip_words[] = {"none", "4", "6", "both", NULL};
static const char *const stamps_words[] = {"software", "nic", "mixed", NULL};

#define FABRIC(member) offsetof(struct scenario_fabric, member)
const struct field scenario_fabric_fields[] = {
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
    {"answers_per_s", FIELD_NUMBER, FABRIC(answers_s), 0, 1e6},
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
const size_t scenario_fabric_field_count = ARRAY_COUNT(scenario_fabric_fields);

#define CLOCKS(member) offsetof(struct scenario_clocks, member)
const struct field scenario_clocks_fields[] = {
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
    {"anchors_named", FIELD_BOOL, CLOCKS(anchors_named)},
    {"anchor_bound", FIELD_SPAN, CLOCKS(anchor_bound_ns), 0, 1e12},
    {"edge_limit", FIELD_SPAN, CLOCKS(edge_limit_ns), 0, 1e9},
    {"guard", FIELD_BOOL, CLOCKS(guard)},
    {"warm_start", FIELD_BOOL, CLOCKS(warm_start)},
};
const size_t scenario_clocks_field_count = ARRAY_COUNT(scenario_clocks_fields);

/* ---- traffic ---- */
static const char *const traffic_words[] = {"flow", "incast", "all-to-all", "standing", NULL};
#define TRAFFIC(member) offsetof(struct scenario_traffic, member)
const struct field scenario_traffic_fields[] = {
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
const size_t scenario_traffic_field_count = ARRAY_COUNT(scenario_traffic_fields);

/* ---- faults ---- */
static const char *const direction_words[] = {"both", "up", "down", NULL};
static const char *const lie_words[] = {"random", "colluding", "drifting", "two-faced", "oldest",
                                        "frozen", "ends",      "utc",      NULL};
static const char *const class_words[] = {"any", "job", "clock", NULL};
#define FAULT(member) offsetof(struct scenario_fault, member)
const struct field scenario_fault_fields[] = {
    {"target", FIELD_TARGET, FAULT(target)},
    {"at", FIELD_SPAN, FAULT(at_ns), 0, SPAN_MAX},
    {"for", FIELD_SPAN, FAULT(for_ns), 0, SPAN_MAX},
    {"direction", FIELD_CHOICE, FAULT(direction), .choices = direction_words},
    {"loss", FIELD_SHARE, FAULT(loss), 0, 1},
    {"class", FIELD_CHOICE, FAULT(net_class), .choices = class_words},
    {"above_bytes", FIELD_INT, FAULT(above_bytes), 1, 65535},
    {"rate_mbps", FIELD_NUMBER, FAULT(rate_mbps), 0.01, 1e6},
    {"delay", FIELD_SPAN, FAULT(delay_ns), 0, 1e10},
    {"jitter", FIELD_SPAN, FAULT(jitter_ns), 0, 1e10},
    {"step", FIELD_SPAN, FAULT(step_ns), -1e16, 1e16},
    {"ppm", FIELD_NUMBER, FAULT(ppm), -1000, 1000},
    {"lie", FIELD_CHOICE, FAULT(lie), .choices = lie_words},
    {"size", FIELD_SPAN, FAULT(size_ns), -1e16, 1e16},
    {"rate_ppb", FIELD_NUMBER, FAULT(rate_ppb), -1e6, 1e6},
    {"field", FIELD_CHOICE, FAULT(field), .choices = probe_field_names},
    {"amount", FIELD_BYTES, FAULT(amount), -9e18, 9e18},
    {"count", FIELD_INT, FAULT(count), 1, 1000000},
    {"down", FIELD_SPAN, FAULT(down_ns), 1, SPAN_MAX},
    {"up", FIELD_SPAN, FAULT(up_ns), 1, SPAN_MAX},
    {"every", FIELD_SPAN, FAULT(every_ns), 1, SPAN_MAX},
    {"share", FIELD_SHARE, FAULT(share), 0, 1},
    {"turn", FIELD_SPAN, FAULT(turn_ns), 1, SPAN_MAX},
    {"reroute", FIELD_SPAN, FAULT(reroute_ns), 0, SPAN_MAX},
    {"version", FIELD_INT, FAULT(version), 1, 255},
    {"told", FIELD_BOOL, FAULT(told)},
};
const size_t scenario_fault_field_count = ARRAY_COUNT(scenario_fault_fields);

#define T(kind) (1u << TARGET_##kind)
const struct fault_rule scenario_fault_rules[FAULT_KINDS] = {
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

/* ---- defaults ---- */
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
                   .anchors_named = true,
                   .guard = true,
                   .warm_start = true},
    };
}

double scenario_trunk_mbps(const struct scenario_fabric *f)
{
    return f->trunk_mbps > 0 ? f->trunk_mbps : f->link_mbps;
}

bool scenario_nics_stamp(const struct scenario_clocks *c, int host)
{
    return c->stamps == STAMPS_NIC || (c->stamps == STAMPS_MIXED && host % 2 == 0);
}

void scenario_traffic_init(struct scenario_traffic *t, const struct scenario *s)
{
    *t = (struct scenario_traffic){.fan = 8,
                                   .burst_bytes = 1 << 20,
                                   .queue_bytes = 100000,
                                   .load = 0.5,
                                   .end_ns = s->duration_ns,
                                   .from = {.kind = TARGET_ALL, .path = -1},
                                   .to = {.kind = TARGET_ALL, .path = -1}};
}

void scenario_fault_init(struct scenario_fault *f)
{
    *f = (struct scenario_fault){.count = 1,
                                 .turn_ns = 100 * NS_PER_MS,
                                 .every_ns = 100 * NS_PER_MS,
                                 .told = true,
                                 .target = {.kind = TARGET_NONE, .path = -1}};
    while (strcmp(probe_field_names[f->field], "map_x") != 0) {
        f->field++;
    }
}

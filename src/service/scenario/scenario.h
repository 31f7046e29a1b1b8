/* scenario.h: one test of the whole system as a file: a fabric, its clocks, traffic, faults in
 * time, and the bounds that must hold. `foliot lab` plays it with real packets, `foliot sim` in a
 * simulated world.
 *
 * This is the model and its reader; docs/scenarios.md is the language. Every field has a default,
 * so a lab file (`foliot lab up FILE`) is a scenario with only `fabric` and `clocks`. Nothing here
 * runs anything.
 *
 * Errors carry file, line and column, what was expected and what was found. The struct owns no
 * memory beyond itself: copy it as you like; it is large (about 100 KB), so keep it off small
 * stacks. */
#pragma once
#include "base/bug.h"
#include "platform/config/config.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    SCENARIO_NAME_SIZE = 64,
    SCENARIO_WHY_SIZE = 512,
    SCENARIO_TEXT_SIZE = 64,
    SCENARIO_TRAFFIC_MAX = 16,
    SCENARIO_FAULT_MAX = 64,
    SCENARIO_BOUND_MAX = 64,
};

enum scenario_world {
    SCENARIO_SIM = 1,
    SCENARIO_LAB = 2,
    SCENARIO_BOTH = 3,
};

/* ---- fabric ---- */
enum scenario_network {
    NETWORK_FABRIC,   /* leaves and spines with real queues */
    NETWORK_ABSTRACT, /* per edge and path a fixed delay plus random queueing; simulator only */
};
enum scenario_wiring {
    WIRING_HOST, /* all NICs of a host on one leaf: hosts are cut into `leaves` equal runs */
    WIRING_RAIL, /* rail r on leaf r % leaves */
};
enum scenario_ip {
    IP_V4 = 1,
    IP_V6 = 2,
    IP_BOTH = 3,
};

struct scenario_fabric {
    enum scenario_network network;
    int hosts;         /* default 8 */
    int nics_per_host; /* default 2 */
    enum scenario_wiring wiring;
    int leaves; /* default 2 */
    int spines; /* default 4; a path between leaves is named by its spine */
    enum scenario_ip ip;
    double link_mbps;     /* host to leaf; lab 200 */
    double trunk_mbps;    /* leaf to spine; 0: as link_mbps: read it by scenario_trunk_mbps() */
    int64_t buffer_bytes; /* a queue; default 1 MB */
    bool drops;           /* sim: a full queue drops; default false: the sender is held back */
    bool probe_class;     /* probes have a class of their own above the rest; default true */
    bool routers_answer;  /* a switch answers a probe whose TTL ran out; default true */
    double answers_s;     /* and so many a second at most; 0: all (simulator) */
    int edges_per_nic;    /* peers that a NIC probes; 0: the program's default */
    int64_t cable_ns;     /* one link's own delay; default 500 (simulator) */
    int64_t switch_ns;    /* one switch's own delay; default 600 (simulator) */
    /* abstract network only */
    int64_t delay_ns_min, delay_ns_max; /* fixed delay per path, uniform; 2,000 and 10,000 */
    int paths;                          /* paths per NIC pair; default 4 */
    double queued_share;                /* share of packets that wait; default 0.3 */
    int64_t queue_ns;                   /* their mean wait, exponential; default 1,000 */
    double asymmetric_share;            /* share of edges whose two directions differ */
    int64_t asymmetry_ns;               /* by this much (half each way) */
    int64_t asymmetry_uniform_ns;       /* or: every edge by uniform ± this */
    bool asymmetry_per_path;            /* drawn per path; default: shared by an edge's paths */
};

/* ---- clocks ---- */
enum scenario_stamps {
    STAMPS_SOFTWARE, /* the host's clock stamps for all its NICs */
    STAMPS_NIC,      /* each NIC stamps by a clock of its own */
    STAMPS_MIXED,    /* the NICs of hosts 0, 2, 4 … do so; the clock of each other host stamps */
};

struct scenario_clocks {
    enum scenario_stamps stamps;
    double noise_ns;     /* one stamp's Gaussian noise */
    double jitter_ns;    /* one stamp's one-sided lateness, exponential with this mean (software) */
    double quantum_ns;   /* stamps are multiples of this; 0: 1 */
    int64_t offset_ns;   /* oscillators start apart by uniform ± this */
    double ppm;          /* and run apart by uniform ± this */
    double wander;       /* random walk of the rate, ppb per square root of a second */
    double ramp_ppb_s;   /* temperature: the rate moves by ± this per second ... */
    int64_t ramp_for_ns; /* ... for this long, each ... */
    int64_t ramp_every_ns;    /* ... this often; 0: never */
    double ramp_share;        /* share of the oscillators that see it */
    double nic_read_ns;       /* a NIC clock's read over PCIe: mean delay ... */
    double nic_read_noise_ns; /* ... and its one-sided noise */
    bool one_tx_stamp;        /* a NIC holds one transmit stamp: the second of a pair gets none */
    int anchors;              /* hosts that know UTC */
    bool anchors_named;       /* the fleet's file names them */
    int64_t anchor_bound_ns;
    int64_t edge_limit_ns; /* the fleet's edge limit; 0: what doctor would propose */
    bool guard;            /* hosts have a second clock to compare with; default true */
    bool warm_start;       /* a restarted agent finds its saved state; default true */
};

/* ---- what a line is about ---- */
enum scenario_target_kind {
    TARGET_NONE,
    TARGET_ALL,   /* all */
    TARGET_HOSTS, /* host 3 | hosts 0-3 | hosts 10% (drawn by the seed) */
    TARGET_NIC,   /* nic 3.1 */
    TARGET_LEAF,  /* leaf 0 */
    TARGET_SPINE, /* spine 2 */
    TARGET_TRUNK, /* trunk 0-2: leaf 0 to spine 2 */
    TARGET_EDGE,  /* edge 0.0>5.1 | edge 0.0>5.1 path 2 (by way of spine 2) | edge 0.0-5.1 (both
                     ways) */
    TARGET_EDGES, /* edges 10% (drawn by the seed) */
};
struct scenario_nic {
    int host, nic;
};
struct scenario_target {
    enum scenario_target_kind kind;
    int first,
        last;     /* hosts, both included; leaf and spine: first; trunk: leaf first, spine last */
    double share; /* 0 < share <= 1 where a share was given; else 0 */
    struct scenario_nic from, to; /* nic: from */
    int path;                     /* an edge's; -1: all */
    bool both_ways;               /* an edge's */
};

/* ---- traffic ---- */
enum scenario_traffic_kind {
    TRAFFIC_FLOW,       /* one transfer, from -> to */
    TRAFFIC_INCAST,     /* groups of `fan` hosts send bursts to one */
    TRAFFIC_ALL_TO_ALL, /* every NIC to every other of its rail */
    TRAFFIC_STANDING,   /* a queue held at queue_bytes on every link of `to` */
};
struct scenario_traffic {
    enum scenario_traffic_kind kind;
    struct scenario_target from, to;
    double load;              /* share of the link that it fills */
    bool greedy;              /* an unpaced TCP transfer (lab) */
    int fan;                  /* default 8 */
    int64_t burst_bytes;      /* default 1 MiB */
    int64_t queue_bytes;      /* default 100 KB */
    int64_t start_ns, end_ns; /* default 0 and the scenario's end */
};

/* ---- faults ---- */
enum scenario_fault_kind {
    FAULT_CARRIER,       /* nic: no carrier */
    FAULT_FLAP,          /* nic or trunk: `count` times down for `down`, up for `up` */
    FAULT_BLACKHOLE,     /* edge, nic, trunk or spine: packets vanish, carrier stays */
    FAULT_LOSS,          /* the same targets: `loss` of the packets vanish */
    FAULT_BROWNOUT,      /* nic or trunk: only rate_mbps */
    FAULT_DELAY,         /* edge, nic or trunk: delay_ns more, plus one-sided jitter_ns */
    FAULT_TRUNK,         /* trunk down; routing heals after reroute */
    FAULT_SPINE,         /* spine down; the same */
    FAULT_AGENT_KILL,    /* hosts: the agent is gone for `for`, then started */
    FAULT_AGENT_STOP,    /* hosts: SIGSTOP for `for` */
    FAULT_AGENT_STARVE,  /* hosts: `share` of the time without a CPU, in turns of `turn` */
    FAULT_AGENT_RESTART, /* hosts: killed and started, one after another, every `every` */
    FAULT_CLOCK_STEP,    /* hosts or nic: step_ns */
    FAULT_CLOCK_FREQ,    /* hosts or nic: ppm more from now on (or for `for`) */
    FAULT_LIAR,          /* hosts: lie, size_ns; simulator */
    FAULT_ASYMMETRY,     /* edge or edges: one direction longer by delay_ns, the other shorter;
                            simulator */
    FAULT_SUSPEND,       /* hosts: sleep for `for`; the raw clock stands still */
    FAULT_REBOOT,      /* hosts: everything is lost, raw clock from zero, after `for`; simulator */
    FAULT_PARTITION,   /* hosts: cut off from all others; simulator */
    FAULT_NIC_VANISH,  /* nic: gone, back after `for` with a new carrier count; simulator */
    FAULT_NIC_STEER,   /* nic or hosts: somebody steers the NIC clock by ppm for `for`; simulator */
    FAULT_REPLAY,      /* edge: recorded probes are played again, every `every`; simulator */
    FAULT_FORGE,       /* edge: probes with a wrong tag, every `every`; simulator */
    FAULT_ANCHOR_LOST, /* hosts: no UTC any more; simulator */
    FAULT_KEY_ROTATE,  /* hosts: a second key, then only it; simulator */
    FAULT_VERSION,     /* hosts: agents of wire version `version`; simulator */
    FAULT_PEERS,       /* all: the peers list is reloaded, `hosts` taken out for `for`; simulator */
    FAULT_KINDS
};
enum scenario_direction {
    TOWARDS_BOTH,
    TOWARDS_UP,   /* nic: away from the host; trunk: leaf to spine */
    TOWARDS_DOWN, /* nic: towards the host; trunk: spine to leaf */
};
enum scenario_lie {
    LIE_RANDOM,    /* another value in each probe, ± size_ns (or amount, where a field is given) */
    LIE_COLLUDING, /* all liars of one mind: + size_ns */
    LIE_DRIFTING,  /* + rate_ppb, up to size_ns: stays inside the gate */
    LIE_TWO_FACED, /* + size_ns to half of the peers, - size_ns to the others */
    LIE_OLDEST,    /* claims to be of the oldest timeline */
    LIE_FROZEN,    /* what it sent first, again and again */
    LIE_ENDS,      /* the ends of what the field can hold, at random */
    LIE_UTC,       /* forges eight anchors, size_ns off */
};

enum scenario_class {
    CLASS_ANY,
    CLASS_JOB,   /* of packets in the job's class only */
    CLASS_CLOCK, /* of those in the probes' own */
};
struct scenario_fault {
    enum scenario_fault_kind kind;
    struct scenario_target target;
    int64_t at_ns;
    int64_t for_ns; /* 0: till the end */
    enum scenario_direction direction;
    double loss; /* 0..1 */
    enum scenario_class
        net_class;   /* black hole, loss: simulator only; brown-out: lab only, the job's */
    int above_bytes; /* black hole: only IP packets longer than that */
    double rate_mbps;
    int64_t delay_ns, jitter_ns;
    int64_t step_ns;
    double ppm;
    enum scenario_lie lie;
    int64_t size_ns;
    double rate_ppb;
    int field;      /* what of its probes it lies in: index into probe_fields; default map_x */
    int64_t amount; /* by how much, in the field's own units; 0: size_ns */
    int count;      /* default 1 */
    int64_t down_ns, up_ns;
    int64_t every_ns;
    double share; /* agent-starve */
    int64_t turn_ns;
    int64_t reroute_ns; /* trunk, spine: until routing has healed; default 0: ECMP knows at once */
    int version;
    bool
        told; /* suspend: the kernel knows of it; false: a virtual machine that is paused or moved; simulator */
    int line; /* where it stands in the file */
};

/* ---- bounds ---- */
enum scenario_relation {
    BOUND_BELOW, /* value <= limit */
    BOUND_ABOVE, /* value >= limit */
    BOUND_EQUALS,
};
struct scenario_bound {
    char what[SCENARIO_TEXT_SIZE]; /* a metric's name: docs/scenarios.md lists them */
    int64_t from_ns, until_ns;     /* default: the whole run */
    enum scenario_relation relation;
    double limit;
    int fault;      /* which fault (0-based, in file order) a detection metric is about; -1: all */
    unsigned world; /* where it binds; default as the scenario */
    int line;
};

struct scenario {
    char name[SCENARIO_NAME_SIZE];
    char why[SCENARIO_WHY_SIZE]; /* the user who would have been hurt */
    unsigned world;              /* enum scenario_world, bits */
    bool slow;                   /* not part of the quick suite */
    bool wire;                   /* simulator: every probe is encoded, authenticated and decoded */
    uint64_t seed;
    int64_t duration_ns;
    struct scenario_fabric fabric;
    struct scenario_clocks clocks;
    struct scenario_traffic traffic[SCENARIO_TRAFFIC_MAX];
    int traffic_count;
    struct scenario_fault
        fault[SCENARIO_FAULT_MAX]; /* sorted by at_ns as given: file order is kept */
    int fault_count;
    struct scenario_bound bound[SCENARIO_BOUND_MAX];
    int bound_count;
};

/* The defaults: the lab's fabric of 8 hosts, no traffic, no faults. */
void scenario_init(struct scenario *s);
/* Of one line of traffic of s, of one fault. */
void scenario_traffic_init(struct scenario_traffic *t, const struct scenario *s);
void scenario_fault_init(struct scenario_fault *f);

/* The rate of a trunk link: trunk_mbps, or link_mbps where nothing was said of trunks. */
double scenario_trunk_mbps(const struct scenario_fabric *f);
/* Do that host's NICs stamp by clocks of their own? */
bool scenario_nics_stamp(const struct scenario_clocks *c, int host);
/* Reads a file, a buffer. 0; -EINVAL: the text is wrong, error says where and how; -errno: it
 * couldn't be read. Outputs only on success. `name` is what errors call the buffer.
 */
MUST_CHECK int scenario_load(const char *path, struct scenario *ret, struct config_error *error);
MUST_CHECK int scenario_parse(const char *name, const char *text, size_t size, struct scenario *ret,
                              struct config_error *error);

/* Writes the file that scenario_load() would read to the same: keys that have their default are left out. Times of an
 * int64_t are exact. 0, -EIO. */
MUST_CHECK int scenario_write(const struct scenario *s, FILE *to);

/* A metric that a bound may name. Every one is computed by the world's checkers against the truth.
 */
struct scenario_metric {
    const char *name;
    unsigned world; /* where it can be measured */
    bool at_fault;  /* about detecting injected faults */
    const char *text;
};
/* NULL: no such metric. */
const struct scenario_metric *scenario_metric_find(const char *name);

/* Names as the language writes them: for tables and messages. */
const char *scenario_fault_name(enum scenario_fault_kind kind);
/* "edge 0.0>5.1 path 2", as the file would write it. */
void scenario_target_text(const struct scenario_target *target, char *ret_text, size_t size);
/* "20s", "1.5ms", "-3us": a sign, a decimal number, a unit of ns us ms s min h. 0 or -EINVAL. */
MUST_CHECK int scenario_duration(const char *text, int64_t *ret_ns);
/* A target as the language writes it. 0 or -EINVAL. */
MUST_CHECK int scenario_target_parse(const char *text, struct scenario_target *ret);

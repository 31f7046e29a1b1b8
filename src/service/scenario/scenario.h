/* scenario.h: one test of the whole system as a file: a fabric, its clocks, traffic, faults over time, and the bounds that
 * must hold. `foliot lab` plays it with real packets, `foliot sim` in a simulated world.
 *
 * This file has the model and its reader. docs/scenarios.md describes the language. Every field has a default, so a lab file
 * (`foliot lab up FILE`) is a scenario with only `fabric` and `clocks`. Nothing here runs a scenario.
 *
 * Errors have file, line and column, what was expected and what was found. The struct owns no other memory, so it may be
 * copied. It is large (about 100 KB): keep it off small stacks. */
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
    int spines; /* default 4; a path between leaves has the name of its spine */
    enum scenario_ip ip;
    double link_mbps;     /* host to leaf; lab 200 */
    double trunk_mbps;    /* leaf to spine; 0: like link_mbps; read it with scenario_trunk_mbps() */
    int64_t buffer_bytes; /* a queue; default 1 MB */
    /* sim: a full queue drops packets; default false: the sender is held back */
    bool drops;
    bool probe_class;    /* probes have a class of their own above the rest; default true */
    bool routers_answer; /* a switch answers a probe whose TTL ran out; default true */
    double answers_s;    /* at most this many answers per second; 0: all (simulator) */
    int edges_per_nic;   /* peers that a NIC probes; 0: the program's default */
    int64_t cable_ns;    /* one link's own delay; default 500 (simulator) */
    int64_t switch_ns;   /* one switch's own delay; default 600 (simulator) */
    /* abstract network only */
    int64_t delay_ns_min, delay_ns_max; /* fixed delay per path, uniform; 2,000 and 10,000 */
    int paths;                          /* paths per NIC pair; default 4 */
    double queued_share;                /* share of packets that wait; default 0.3 */
    int64_t queue_ns;                   /* mean of their wait, exponential; default 1,000 */
    double asymmetric_share;            /* share of edges whose two directions differ */
    int64_t asymmetry_ns;               /* by this much (half each way) */
    int64_t asymmetry_uniform_ns;       /* or: every edge, uniform ± this */
    bool asymmetry_per_path;            /* drawn per path; default: shared by an edge's paths */
};

/* ---- clocks ---- */
enum scenario_stamps {
    STAMPS_SOFTWARE, /* the host's clock stamps for all its NICs */
    STAMPS_NIC,      /* each NIC stamps with its own clock */
    /* like STAMPS_NIC for hosts 0, 2, 4 …; like STAMPS_SOFTWARE for the other hosts */
    STAMPS_MIXED,
};

struct scenario_clocks {
    enum scenario_stamps stamps;
    double noise_ns; /* Gaussian noise of one stamp */
    /* one-sided lateness of one stamp, exponential with this mean (software) */
    double jitter_ns;
    double quantum_ns;        /* stamps are multiples of this; 0: 1 */
    int64_t offset_ns;        /* oscillators start with offsets, uniform ± this */
    double ppm;               /* their rates differ, uniform ± this */
    double wander;            /* random walk of the rate, ppb per square root of a second */
    double ramp_ppb_s;        /* temperature: the rate moves by ± this per second ... */
    int64_t ramp_for_ns;      /* ... for this long, each ... */
    int64_t ramp_every_ns;    /* ... this often; 0: never */
    double ramp_share;        /* share of the oscillators that see it */
    double nic_read_ns;       /* mean delay of reading a NIC clock over PCIe ... */
    double nic_read_noise_ns; /* ... and its one-sided noise */
    bool one_tx_stamp;        /* a NIC holds one transmit stamp: the second of a pair gets none */
    int anchors;              /* hosts with known UTC */
    bool anchors_named;       /* the fleet's file names them */
    int64_t anchor_bound_ns;
    int64_t edge_limit_ns; /* the fleet's edge limit; 0: the value that doctor proposes */
    bool guard;            /* hosts have a second clock to compare with; default true */
    bool warm_start;       /* a restarted agent reads its saved state; default true */
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
    /* edge 0.0>5.1 | edge 0.0>5.1 path 2 (through spine 2) | edge 0.0-5.1 (both directions) */
    TARGET_EDGE,
    TARGET_EDGES, /* edges 10% (drawn by the seed) */
};
struct scenario_nic {
    int host, nic;
};
struct scenario_target {
    enum scenario_target_kind kind;
    int first,
        /* hosts: both included; leaf and spine: first; trunk: first is the leaf, last the spine */
        last;
    double share;                 /* 0 < share <= 1 if a share was given; else 0 */
    struct scenario_nic from, to; /* nic: from */
    int path;                     /* of an edge; -1: all */
    bool both_ways;               /* of an edge */
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
    double load;              /* part of the link's rate */
    bool greedy;              /* an unpaced TCP transfer (lab) */
    int fan;                  /* default 8 */
    int64_t burst_bytes;      /* default 1 MiB */
    int64_t queue_bytes;      /* default 100 KB */
    int64_t start_ns, end_ns; /* default 0, and the scenario's end */
};

/* ---- faults ---- */
enum scenario_fault_kind {
    FAULT_CARRIER,       /* nic: no carrier */
    FAULT_FLAP,          /* nic or trunk: `count` times down for `down`, up for `up` */
    FAULT_BLACKHOLE,     /* edge, nic, trunk or spine: packets vanish, carrier stays */
    FAULT_LOSS,          /* the same targets: `loss` of the packets vanish */
    FAULT_BROWNOUT,      /* nic or trunk: the rate is rate_mbps */
    FAULT_DELAY,         /* edge, nic or trunk: delay_ns more, plus one-sided jitter_ns */
    FAULT_TRUNK,         /* trunk down; routing heals after reroute */
    FAULT_SPINE,         /* spine down; the same */
    FAULT_AGENT_KILL,    /* hosts: the agent is killed, and started again after `for` */
    FAULT_AGENT_STOP,    /* hosts: SIGSTOP for `for`, then SIGCONT */
    FAULT_AGENT_STARVE,  /* hosts: `share` of the time without a CPU, in turns of `turn` */
    FAULT_AGENT_RESTART, /* hosts: killed and started, one after another, every `every` */
    FAULT_CLOCK_STEP,    /* hosts or nic: step_ns */
    FAULT_CLOCK_FREQ,    /* hosts or nic: ppm more from now on (or for `for`) */
    FAULT_LIAR,          /* hosts: lie, size_ns; simulator */
    FAULT_ASYMMETRY,     /* edge or edges: one direction longer by delay_ns, the other shorter;
                            simulator */
    FAULT_SUSPEND,       /* hosts: suspended for `for`; the raw clock stands still */
    /* hosts: all state is lost, the raw clock begins at zero, after `for`; simulator */
    FAULT_REBOOT,
    FAULT_PARTITION,  /* hosts: cut off from all others; simulator */
    FAULT_NIC_VANISH, /* nic: vanishes, returns after `for` with a new carrier count; simulator */
    /* nic or hosts: another program steers the NIC clock by ppm for `for`; simulator */
    FAULT_NIC_STEER,
    FAULT_REPLAY,      /* edge: recorded probes are sent again, every `every`; simulator */
    FAULT_FORGE,       /* edge: probes with a wrong tag, every `every`; simulator */
    FAULT_ANCHOR_LOST, /* hosts: no UTC any more; simulator */
    FAULT_KEY_ROTATE,  /* hosts: get a second key, then only this key; simulator */
    FAULT_VERSION,     /* hosts: agents of wire version `version`; simulator */
    FAULT_PEERS,       /* all: the peers list is reloaded without `hosts` for `for`; simulator */
    FAULT_KINDS
};
enum scenario_direction {
    TOWARDS_BOTH,
    TOWARDS_UP,   /* nic: away from the host; trunk: leaf to spine */
    TOWARDS_DOWN, /* nic: towards the host; trunk: spine to leaf */
};
enum scenario_lie {
    LIE_RANDOM,    /* another value in each probe, ± size_ns (or ± amount, if a field is given) */
    LIE_COLLUDING, /* all liars add the same: + size_ns */
    LIE_DRIFTING,  /* + rate_ppb, up to size_ns: stays inside the gate */
    LIE_TWO_FACED, /* + size_ns to half of the peers, - size_ns to the other half */
    LIE_OLDEST,    /* pretends to be on the oldest timeline */
    LIE_FROZEN,    /* repeats its first values */
    LIE_ENDS,      /* the least and greatest values of the field, at random */
    LIE_UTC,       /* pretends eight anchors, size_ns off */
};

enum scenario_class {
    CLASS_ANY,
    CLASS_JOB,   /* only packets in the job's class */
    CLASS_CLOCK, /* only packets in the probes' class */
};
struct scenario_fault {
    enum scenario_fault_kind kind;
    struct scenario_target target;
    int64_t at_ns;
    int64_t for_ns; /* 0: until the end */
    enum scenario_direction direction;
    double loss; /* 0..1 */
    enum scenario_class
        net_class;   /* black hole, loss: simulator only; brown-out: lab only, the job's class */
    int above_bytes; /* black hole: only IP packets longer than this */
    double rate_mbps;
    int64_t delay_ns, jitter_ns;
    int64_t step_ns;
    double ppm;
    enum scenario_lie lie;
    int64_t size_ns;
    double rate_ppb;
    /* the field of its probes that is wrong: index of probe_fields; default map_x */
    int field;
    int64_t amount; /* the error, in the field's own units; 0: size_ns */
    int count;      /* default 1 */
    int64_t down_ns, up_ns;
    int64_t every_ns;
    double share; /* agent-starve */
    int64_t turn_ns;
    /* trunk, spine: time until routing is repaired; default 0: ECMP reacts at once */
    int64_t reroute_ns;
    int version;
    bool told; /* suspend: the kernel notices it; false: a paused or moved VM; simulator */
    int line;  /* line in the file */
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
    int fault;      /* the fault (0-based, in file order) of a detection metric; -1: all */
    unsigned world; /* where the bound applies; default: like the scenario */
    int line;
};

struct scenario {
    char name[SCENARIO_NAME_SIZE];
    char why[SCENARIO_WHY_SIZE]; /* the user who would be hurt without this test */
    unsigned world;              /* bits of enum scenario_world */
    bool slow;                   /* not part of the quick suite */
    bool wire;                   /* simulator: every probe is encoded, authenticated and decoded */
    uint64_t seed;
    int64_t duration_ns;
    struct scenario_fabric fabric;
    struct scenario_clocks clocks;
    struct scenario_traffic traffic[SCENARIO_TRAFFIC_MAX];
    int traffic_count;
    struct scenario_fault
        fault[SCENARIO_FAULT_MAX]; /* in file order; their at_ns need not be in order */
    int fault_count;
    struct scenario_bound bound[SCENARIO_BOUND_MAX];
    int bound_count;
};

/* Sets the defaults: the lab's fabric of 8 hosts, no traffic, no faults. */
void scenario_init(struct scenario *s);
/* Set the defaults of one line of traffic of s, and of one fault. */
void scenario_traffic_init(struct scenario_traffic *t, const struct scenario *s);
void scenario_fault_init(struct scenario_fault *f);

/* The rate of a trunk link: trunk_mbps, or link_mbps if trunk_mbps is 0. */
double scenario_trunk_mbps(const struct scenario_fabric *f);
/* True if this host's NICs stamp with clocks of their own. */
bool scenario_nics_stamp(const struct scenario_clocks *c, int host);
/* Reads a file, or a buffer. Returns 0; -EINVAL: the text is wrong, error has place and reason; -errno: it can't be read.
 * Outputs are set only on success. `name`: the buffer's name in errors. */
MUST_CHECK int scenario_load(const char *path, struct scenario *ret, struct config_error *error);
MUST_CHECK int scenario_parse(const char *name, const char *text, size_t size, struct scenario *ret,
                              struct config_error *error);

/* Writes a file that scenario_load() reads to an equal scenario. Keys with their default are left out. int64_t times are
 * exact. Returns 0 or -EIO. */
MUST_CHECK int scenario_write(const struct scenario *s, FILE *to);

/* A metric that a bound may name. The world's checkers compute each of them from the truth. */
struct scenario_metric {
    const char *name;
    unsigned world; /* the worlds that can measure it */
    bool at_fault;  /* about the detection of injected faults */
    const char *text;
};
/* NULL: no such metric. */
const struct scenario_metric *scenario_metric_find(const char *name);

/* Names as in the language, for tables and messages. */
const char *scenario_fault_name(enum scenario_fault_kind kind);
/* "edge 0.0>5.1 path 2", as in a file. */
void scenario_target_text(const struct scenario_target *target, char *ret_text, size_t size);
/* Parses "20s", "1.5ms", "-3us": a sign, a decimal number, a unit of ns us ms s min h. Returns 0 or -EINVAL. */
MUST_CHECK int scenario_duration(const char *text, int64_t *ret_ns);
/* Parses a target in the language's form. Returns 0 or -EINVAL. */
MUST_CHECK int scenario_target_parse(const char *text, struct scenario_target *ret);

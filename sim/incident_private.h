/* incident_private.h: the world of incident_world.h, shared by its own files only. */
#pragma once
#include "base/prng.h"
#include "sim/incident_world.h"

enum {
    NICS = 2, /* of a host; each is at a leaf of its rail */
    LEAF_HOSTS = 16,
    SPINES = 4,
    PEERS = 8,                       /* NICs that send to a NIC */
    PORTS = 4,                       /* paths of each, by as many spines */
    INCOMING = NICS * PEERS * PORTS, /* paths that a host reports */
    REPORT_S = 10,
    BEAT_S = 2,
    SEEN_S = 2, /* until the receiver finds a path dead */
    /* until a fault has its name: all reports have come, and the rules have waited */
    SETTLE_S = 30,
    GONE_S = 150, /* an incident may stay open so much longer than its fault */
    FAULT_MAX = 8,
    LOSSY_S =
        5, /* and up to 13 s more, until a path that isn't dead any more is known to lose a share */
    /* the longest time that a rule waits before it reports a share of losses, and a little more */
    RULES_S = 330,
    FINDING_HOSTS = 24, /* hosts that open a finding of one fault */
    FINDING_MAX =
        2 *
        FINDING_HOSTS, /* with those of faults that are over, if this fault keeps their path dead */
    PATHS = 16384,
    JUDGED_MAX = 4096,
    TRIAL_S = 300, /* a new configuration is tried at this interval, */
    WATCH_S = 60,  /* for so long, */
    TRIED_BY = 4   /* by so many hosts */
};

enum fault_kind {
    FAULT_SENDS,
    FAULT_RECEIVES,
    FAULT_NIC,
    FAULT_UP,
    FAULT_DOWN,
    FAULT_TRUNK,
    FAULT_KINDS
};

struct way {
    uint32_t from, to, port;
    uint32_t leaf_from, leaf_to, spine; /* spine SPINES: none, both NICs are at one leaf */
};
enum way_state {
    WAY_CLEAN,
    WAY_DOUBTED,
    WAY_LOSSY,
    WAY_DEAD
}; /* DOUBTED: its receiver doesn't know yet that it is lossy */
struct told_way {
    uint8_t state;
    uint32_t loss_ppm;
};
struct word {
    uint32_t host, way; /* the host, and the number of its path */
    uint32_t number, since_s, heard_s;
    bool lossy;          /* its path loses a share */
    struct element word; /* the element, as that host guesses */
};
struct fault {
    enum fault_kind kind, then; /* then: the kind from turn_s on */
    bool used, seen, over, turned, missed, twice, again;
    uint32_t from_s, until_s, nic, leaf, spine, number;
    uint32_t turn_s; /* it recovers in part then; 0: it doesn't */
    uint32_t lossy_s,
        /* loss_ppm > 0: from turn_s on it loses a share, and hosts report that from lossy_s on */
        loss_ppm;
    struct word findings[FINDING_MAX];
    uint32_t finding_count;
    uint64_t incident; /* the incident of it, once it was settled; 0: none yet */
    uint32_t reopened; /* how often that incident was reopened by then */
    uint32_t vague_s;  /* when it could not be told from an open incident's element; 0: never */
};

struct world {
    struct incident_world_config config;
    struct incident_world_result result;
    struct prng prng;
    struct brain *brain;
    struct way *ways;      /* INCOMING of each host */
    struct told_way *told; /* of each way, the last report */
    uint32_t *reported_s;
    struct fault faults[FAULT_MAX], past[FAULT_MAX]; /* past: a ring of faults that are over */
    uint32_t past_next, numbers, leaves, round, sweep, version;
    uint64_t complained[JUDGED_MAX]; /* former incidents, by number modulo */
    struct rollout_canary canaries[TRIED_BY];
    uint32_t tried_by[TRIED_BY], tried_s; /* 0: nothing is on trial */
    struct mono now;
    uint32_t now_s;
};

static inline bool incident_of_nic(const struct fault *x)
{
    return x->kind <= FAULT_NIC;
}
/* The way crosses the element, in the direction that is broken now. */
bool incident_swallows(const struct fault *x, const struct way *way);
/* Hosts on its ways notice the fault: it has begun, and isn't over. */
bool incident_is_felt(const struct world *w, const struct fault *x);

/* incident_judge.c: compares the brain's answers with the truth, once a second. */
void incident_judge(struct world *w);

/* incident_private.h: the world of incident_world.h, shared by its own files only. */
#pragma once
#include "base/prng.h"
#include "sim/incident_world.h"

enum {
    NICS = 2, /* of a host; each hangs on a leaf of its rail */
    LEAF_HOSTS = 16,
    SPINES = 4,
    PEERS = 8,                       /* that send to a NIC */
    PORTS = 4,                       /* paths of each, by as many spines */
    INCOMING = NICS * PEERS * PORTS, /* paths that a host reports */
    REPORT_S = 10,
    BEAT_S = 2,
    SEEN_S = 2,    /* until a path is dead for its receiver */
    SETTLE_S = 30, /* until a fault has its name: reports of all have come, and rules have waited */
    GONE_S = 150,  /* an incident stays open so much longer than its fault at most */
    FAULT_MAX = 8,
    LOSSY_S =
        5, /* and 13 s more at most, until a path that isn't dead any more is known to lose a share */
    RULES_S =
        330, /* the longest that a rule waits before it tells of a share that is lost, and a bit */
    FINDING_HOSTS = 24, /* that open a finding of one fault */
    FINDING_MAX =
        2 *
        FINDING_HOSTS, /* those of faults that are over, whose path is dead by this one, included */
    PATHS = 16384,
    JUDGED_MAX = 4096,
    TRIAL_S = 300, /* a new configuration is tried so often, */
    WATCH_S = 60,  /* so long, */
    TRIED_BY = 4   /* by so many */
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
    uint32_t leaf_from, leaf_to, spine; /* spine SPINES: none, both hang on one leaf */
};
enum way_state {
    WAY_CLEAN,
    WAY_DOUBTED,
    WAY_LOSSY,
    WAY_DEAD
}; /* DOUBTED: its receiver isn't sure yet that it is lossy */
struct told_way {
    uint8_t state;
    uint32_t loss_ppm;
};
struct word {
    uint32_t host, way; /* whose, and of which path of it */
    uint32_t number, since_s, heard_s;
    bool lossy;          /* its path loses a share */
    struct element word; /* what it may be, for that host */
};
struct fault {
    enum fault_kind kind, then; /* then: from turn_s on */
    bool used, seen, over, turned, missed, twice, again;
    uint32_t from_s, until_s, nic, leaf, spine, number;
    uint32_t turn_s; /* it recovers in part then; 0: it doesn't */
    uint32_t lossy_s,
        loss_ppm; /* loss_ppm > 0: from turn_s on it loses a share, and hosts tell so from lossy_s on */
    struct word findings[FINDING_MAX];
    uint32_t finding_count;
    uint64_t incident; /* that was told of it, once it was settled; 0: none yet */
    uint32_t reopened; /* how often that one was by then */
    uint32_t vague_s;  /* when nobody could tell it from what was told; 0: never */
};

struct world {
    struct incident_world_config config;
    struct incident_world_result result;
    struct prng prng;
    struct brain *brain;
    struct way *ways;      /* INCOMING of each host */
    struct told_way *told; /* of each, as it was last reported */
    uint32_t *reported_s;
    struct fault faults[FAULT_MAX], past[FAULT_MAX]; /* past: a ring of those over */
    uint32_t past_next, numbers, leaves, round, sweep, version;
    uint64_t complained[JUDGED_MAX]; /* incidents that were, by number modulo */
    struct rollout_canary canaries[TRIED_BY];
    uint32_t tried_by[TRIED_BY], tried_s; /* 0: nothing is tried */
    struct mono now;
    uint32_t now_s;
};

static inline bool incident_of_nic(const struct fault *x)
{
    return x->kind <= FAULT_NIC;
}
/* The way crosses it, in the direction that is broken now. */
bool incident_swallows(const struct fault *x, const struct way *way);
/* That fault is felt by those on the way: it has begun, and isn't over. */
bool incident_is_felt(const struct world *w, const struct fault *x);

/* incident_judge.c: compares what the brain answers with what is so; once a second. */
void incident_judge(struct world *w);

/* internal.h: the node's data, for its own files only. */
#pragma once
#include "base/bug.h"
#include "base/prng.h"
#include "core/clock/clock.h"
#include "core/clock/host_leaf.h"
#include "core/link/link.h"
#include "core/mesh/mesh.h"
#include "core/node/node.h"

#define FINDING_OPEN_MAX 256
#define FINDING_QUEUE    128
#define QUERY_MAX        32
#define DEATHS_MAX       8

struct member {
    struct clock *clock; /* NULL: a NIC clock that was not read yet */
    uint8_t domain;
    uint32_t number;      /* in the fleet: the lowest NIC id among those that it stamps */
    uint32_t local;       /* a NIC of the domain, for brackets */
    struct nic_time last; /* its last known time */
    struct mono last_mono;
    bool synced;                      /* its status is SYNCED */
    int64_t bound_ns;                 /* of a difference with a peer, statistical; -1: none */
    struct clock_published published; /* at the last tick: the content of packets */
    struct {
        bool waits;
        struct nic_time at;
        int64_t utc_ns;
        double bound_ns;
    } anchor; /* for a NIC's clock: UTC as the host got it, until a bracket confirms it */
};
/* The clock edge of a mesh edge. */
struct edge_link {
    uint32_t generation; /* of the mesh edge; 0: none */
    int member, clock_edge;
    uint32_t peer;      /* the peer's number among the clocks */
    uint32_t nic, host; /* the peer's NIC; its host, as passed to the clock */
    /* by its packets, the clock of its host stamps there; until one arrives, the same as here */
    bool software;
    bool heard;
    bool tried;
    struct mono in_step; /* when it last reported to be in step; at first, when the edge began */
};
/* A second local clock compared with the host's: the line through the recent past, and how well it is kept. */
struct guard_line {
    uint32_t source; /* 0: free */
    uint32_t count;
    struct mono at, start; /* of the last comparison; of the start of the fit */
    int64_t offset_ns;     /* other - host at `at`, by the line */
    double rate;           /* d(other - host) / d host */
    int64_t start_offset_ns;
};
#define GUARD_SOURCES 4
#define GUARD_NS      500.0 /* G: what one comparison may miss */
#define GUARD_COUNT   100   /* readings until the line between two clocks is known */
#define GUARD_RATE    60e-6 /* J: a jump of that rate is marked before the truth leaves the bound */
struct node_query {
    uint32_t number; /* 0: free */
    struct nic_id subject, asked;
    uint32_t member;
    uint32_t about; /* the member in question */
    bool triangle;  /* asked for node_triangle.c */
    uint32_t by;    /* the member that is asked */
    struct mono at;
};

/* Recent deaths of a path. */
struct path_flaps {
    uint32_t count;
    uint32_t number; /* of the finding about it; 0: none */
    struct mono first, last;
};
#define TRIANGLE_MAX 64
struct node_triangle {
    struct mono asked;
    uint32_t turn, count;
    double residuals[TRIANGLE_MAX]; /* the newest, a ring */
};
/* One path and direction that is dead, lossy or slow. */
struct bad_path {
    uint8_t kind; /* FINDING_NONE: it is healthy */
    uint8_t path, direction;
    bool waiting; /* not reported yet, and not joined to another one */
    int edge;
    uint32_t proof, incident; /* number of its finding */
    struct mono since, decided;
    int64_t numbers[4];      /* for a slow one */
    struct path_flaps flaps; /* kept when the other fields are cleared */
};
struct open_finding {
    struct finding finding;
    uint64_t key;   /* the subject: findings with the same key are one */
    uint64_t cause; /* for a path's finding: the same for those with one suspect */
    int edge;       /* -1: none */
    uint32_t generation;
    uint32_t paths;   /* paths that are still bad */
    struct mono back; /* when the first of them worked again; MONO_NEVER: none did */
    uint32_t local;   /* the own NIC for a silent peer */
    bool held;        /* the inference names it: it stays open without bad paths */
    bool said;
    /* for a flapping path: that finding reports it, unless this death lasts until `say` */
    bool quiet;
    uint32_t flap;      /* number of that finding; 0: none */
    struct mono say;    /* when to report it: similar ones are collected first */
    struct mono looked; /* when an unknown suspect was last looked at again */
    struct mono calm;   /* when a flapping path's finding ends, without a further death */
};

/* A finding of dead paths, or of a silent peer, that was reported. */
struct said_death {
    struct mono since;
    struct mono over; /* MONO_NEVER: not yet */
    uint64_t cause;
    uint32_t number;
    bool named;
};

struct node {
    struct node_config config;
    struct node_settings initial; /* from config, at the start */
    struct mesh *mesh;
    struct member members[HOST_NIC_MAX];
    uint32_t member_count;
    uint8_t member_of[HOST_NIC_MAX]; /* by local NIC */
    bool has_leaf;                   /* the host clock is a leaf of its NICs */
    struct host_leaf leaf;
    struct mono leaf_due;
    struct mono clock_ticked; /* by the host's clock */
    struct clock_terms
        in_step; /* of the host's clock, when it was last SYNCED; status UNKNOWN: never */
    /* since then: it wasn't SYNCED; the cause has been reported; a second clock contradicted the host's own */
    bool was_out, jump_told, guard_broke;
    struct edge_link *links;
    struct clock_saved *saved; /* for each member, from before a restart; NULL: none */
    uint32_t mesh_generation;
    bool edges_joined; /* to their clocks: no edge waits for its NIC's time */
    struct link *ports[HOST_NIC_MAX];
    struct clock_terms terms; /* of the host clock */
    bool terms_changed, mesh_changed;
    struct mono mesh_page_due;
    struct guard_line guards[GUARD_SOURCES];
    struct open_finding open[FINDING_OPEN_MAX];
    uint32_t open_count, finding_number;
    struct finding queue[FINDING_QUEUE];
    uint32_t queue_head, queue_count;
    struct bad_path *bad; /* by edge, path and direction */
    uint32_t bad_waiting;
    struct said_death deaths[DEATHS_MAX]; /* the newest, a ring */
    uint32_t death_count;
    struct mono incident_due;
    /* unknown suspects are looked at again; until then */
    struct mono incident_again, incident_until;
    struct mono deaf_at[HOST_NIC_MAX]; /* when that NIC last heard no peer */
    struct node_query queries[QUERY_MAX];
    uint32_t query_number;
    struct node_triangle triangle;
    struct mono now, late_since;
    bool late_said;
    struct span late_sum;
    struct mono checked; /* counters, for findings */
    struct node_counters checked_counters;
    uint64_t checked_stamped[HOST_NIC_MAX], checked_missing[HOST_NIC_MAX];
    uint32_t bad_packet_error; /* of the last bad packet */
    struct node_counters counters;
};

/* node_clock.c */
int node_clock_new(struct node *n, struct mono now);
/* That member's clock, now that its time is known. */
int node_clock_start(struct node *n, uint32_t index, struct nic_time now, int64_t wall_minus_ns);
void node_clock_free(struct node *n);
/* The list changed: bounds use the present fleet's number of hops. */
void node_clock_follow_hops(struct node *n);
void node_clock_heard(struct node *n, struct mono now, const struct node_receive *event,
                      const struct mesh_heard *heard);
void node_clock_fill(struct node *n, uint32_t local, struct probe *probe);
void node_clock_on_bracket(struct node *n, struct mono now, uint32_t member, bool continued);
void node_clock_tick(struct node *n, struct mono now);
struct mono node_clock_deadline(const struct node *n);
void node_clock_ask(struct node *n, struct mono now, uint32_t member, uint32_t about);
void node_astray_check(struct node *n, struct mono now);
void node_clock_query(struct node *n, struct mono now, const struct node_receive *event);

/* node_edge.c */
void node_clock_sync_edges(struct node *n, struct mono now);
void node_clock_follow_stamps(struct node *n, struct mono now, int edge, bool software);
void node_clock_repath(struct node *n, struct mono now, int edge, uint8_t path);
/* The saved state of that member, as for clock_restore(). */
int node_clock_restore(struct node *n, struct mono now, uint32_t member, struct nic_time at);

/* node_jump.c */
void node_jump_told(struct node *n);
void node_jump_tick(struct node *n, struct mono now);
void node_jump_push(struct node *n, struct mono now, double by_ns, bool host);

/* node_digest.c */
bool node_digest_fill(const struct node *n, uint32_t local, struct probe *probe);
void node_digest_heard(struct node *n, struct mono now, const struct node_receive *event);

/* node_incident.c */
void node_incident_news(struct node *n, struct mono now); /* others reported losses */
void node_finding_path(struct node *n, struct mono now, const struct mesh_verdict *v);
void node_incident_forget(struct node *n, struct mono now, int edge);
void node_incident_tick(struct node *n, struct mono now);
/* That finding reports an outage: the inference's result for the same time is no news. */
void node_incident_note(struct node *n, const struct finding *f, uint64_t cause);
void node_incident_over(struct node *n, struct mono now, uint32_t number);
/* True if a finding reports what the inference found, which lasted until then: paths were proven dead meanwhile, or a peer was
 * silent. */
bool node_incident_says(const struct node *n, const struct mesh_fault *f, struct mono until);
bool node_incident_at(const struct node *n, struct mono since);

/* node_triangle.c */
void node_triangle_tick(struct node *n, struct mono now);
void node_triangle_answer(struct node *n, const struct node_query *q, const struct clock_answer *a);

/* node_flap.c */
void node_flap_died(struct path_flaps *flaps, struct mono since);
struct open_finding *node_flap_joins(struct node *n, struct bad_path *b,
                                     struct open_finding *incident);
struct mono node_flap_due(const struct node *n);
void node_flap_tick(struct node *n, struct mono now);

/* node_finding.c */
uint64_t node_finding_key(enum finding_kind kind, uint64_t a, uint64_t b, uint64_t c);
struct open_finding *node_finding_find(struct node *n, uint64_t key);
struct open_finding *node_finding_open(struct node *n, uint64_t key, enum finding_kind kind,
                                       struct mono since, struct mono say);
void node_finding_close_at(struct node *n, struct mono now, uint32_t index);
/* It may not be open. */
void node_finding_close_key(struct node *n, struct mono now, uint64_t key);
/* The beginning is known better now. */
void node_finding_since(struct node *n, struct finding *f, struct mono since);
void node_finding_push(struct node *n, struct finding *f);
void node_finding_tick(struct node *n, struct mono now);
struct mono node_finding_due(const struct node *n);
void node_finding_clock(struct node *n, struct mono now, uint32_t member,
                        const struct clock_action *action);
void node_finding_link(struct node *n, struct mono now, uint32_t local,
                       const struct link_message *message);
void node_finding_counters(struct node *n, struct mono now);
void node_finding_late(struct node *n, struct mono now, struct span late);

/* node_silent.c */
/* Edges to that host, and those of them without incoming packets. */
void node_host_edges(const struct node *n, struct mono now, struct host_id host,
                     uint32_t *ret_silent, uint32_t *ret_all);
void node_finding_silent(struct node *n, struct mono now, const struct mesh_verdict *v);
/* The time for which its paths gather is over: the finding is told, or is part of another one. */
void node_silent_due(struct node *n, struct mono now, struct open_finding *o);

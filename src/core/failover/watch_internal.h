/* watch_internal.h: shared by the watch's files. */
#pragma once
#include "core/failover/damping.h"
#include "core/failover/watch.h"
#include "stats/least.h"

#define ACTIONS         256
#define WATCH_STALLS_NS (5 * NS_PER_S)

struct wlane {
    bool used, standby, first;
    bool leaving; /* the peer drains it */
    uint8_t own_nic, peer_nic;
    enum lane_state state;
    enum lane_reason reason;
    uint32_t epoch;
    struct mono since, active_at;
    /* round trips and silence */
    bool sampled;
    int64_t srtt_ns, rttvar_ns, backlog_ns;
    const struct lane_load
        *load;         /* unacknowledged, by the sender's count; NULL: nothing was ever sent */
    bool told;         /* a report was written that the peer's kernel may not have */
    bool settled;      /* the peer's kernel has all that was written: nothing can be missing */
    int64_t silent_ns; /* observed time without progress, while it owes some */
    /* of the present doubt: the part of its silence that silent_ns has no more; its longest silence; D as long as it may get */
    int64_t silent_before_ns, silence_ns, longest_ns;
    int64_t alone_ns; /* the part of it in which others were heard */
    /* how long it was silent alone and came back by itself, of late; negative */
    struct least stalls;
    int64_t hushed_ns;    /* observed time since the others brought something back */
    uint64_t others;      /* and the number of times that they had */
    uint64_t others_at;   /* the set's progress count when the silence began */
    uint64_t progress;    /* of this lane */
    uint64_t progress_at; /* its own count when the silence began */
    uint32_t acked;       /* since it entered this state */
    bool doubled;         /* draining, and its chunks are also sent over others */
    bool proven;          /* since it entered this state: its path brought something back */
    /* pings */
    uint32_t sequence; /* the last one sent */
    bool pinged;       /* and not answered yet */
    struct mono ping_at;
    uint32_t trial_pings, trial_pongs;
    /* the kernel's reports */
    struct mono asked_at;
    uint64_t segments, resent;           /* at the beginning of the present window */
    double loss;                         /* of the last full window; < 0 unknown */
    uint64_t seen_segments, seen_resent; /* at the last report */
    int64_t rtt_ns, rtt_ns_var, rtt_ns_min;
    int64_t resend_ns; /* before it fell silent: each timeout doubles it */
    bool kernel;       /* the kernel reports something */
    /* coming back */
    struct damping damping;
    struct mono retry_at;
    struct span connect_limit;
    bool answered;     /* connecting: the peer's kernel accepted the connection */
    uint8_t same_path; /* a carrier took it down: so many tries with its former path remain */
    uint32_t failovers;
};
struct wnic {
    bool known, up, counted;
    uint32_t down_count;
    struct damping damping;
};
struct watch {
    struct watch_config config;
    struct wlane lanes[LANE_MAX];
    struct wnic own[WATCH_NIC_MAX], peer[WATCH_NIC_MAX];
    const struct lane_load *loads; /* by lane; NULL: there is no sender */
    uint64_t progress;             /* of all lanes */
    struct mono looked, heard;
    int64_t unheard_ns; /* observed */
    int64_t unusable_ns;
    int64_t untaken_ns; /* observed, while chunks are in flight, are owed, and none is taken */
    bool on_their_way;
    bool observe, fenced;
    bool owing, kept, parted, failed, dead, tell;
    struct mono dead_at, forced_at;
    struct mono kept_at; /* the last ping for that purpose */
    uint32_t kept_turn;
    uint32_t caution; /* recent mistaken doubts: the required silence is doubled so many times */
    struct mono mistaken_at;
    uint32_t doubts, mistakes;
    struct watch_action actions[ACTIONS];
    uint32_t action_head, action_count;
    struct bug_note bug;
};

void watch_push(struct watch *w, struct watch_action action);
void watch_event(struct watch *w, struct mono now, uint32_t lane, enum lane_event event,
                 enum lane_reason reason);
#define CAUTION_MAX 2 /* so many times D is doubled at most */
struct span watch_timeout(const struct watch *w, const struct wlane *x);
#define PING_NS (100 * NS_PER_MS)
void watch_ping(struct watch *w, struct mono now, uint32_t lane);
/* The lane just fell silent, or again. */
void watch_quiet(struct watch *w, struct wlane *x);
void watch_came_back(struct watch *w, struct wlane *x);
/* Time to judge: the kernel has no news of it, or isn't asked. */
void watch_judge(struct watch *w, struct mono now, uint32_t lane);
/* D, doubled as often as it may be. */
int64_t watch_longest_doubt(const struct watch *w, const struct wlane *x);
/* The number of unacknowledged chunks. */
static inline uint32_t watch_left(const struct wlane *x)
{
    return x->load != NULL ? x->load->chunks : 0;
}
/* The silence that the present doubt began with lasted so long by then, however much of it silent_ns has. */
static inline void watch_silent_since(struct wlane *x, int64_t ns)
{
    x->silent_before_ns = ns - x->silent_ns;
}
/* It owes an answer. */
bool watch_waiting(const struct wlane *x);
bool watch_held(const struct watch *w, struct mono now, const struct wlane *x);
bool watch_cut(const struct watch *w, const struct wlane *x);

/* watch.h: which lanes of a set live: from everything that can tell, so that no single source is
 * needed.
 *
 * One per lane set and end. Facts in (sent, acknowledged, pongs, carrier, resets, the peer's word,
 * the probe mesh's, the kernel's), actions out: connect, close, ping, tell the peer, send elsewhere
 * as well, give up.
 *
 * Doubt is cheap, and soon taken back; a verdict is dear, and late. A lane that owes an answer
 * is *silent* while nothing comes back by it. It is judged against the set's others, which are
 * pinged as soon as it is silent for half of D: at D, when any other has brought something back
 * meanwhile, it is doubted (SUSPECT), and with it all that have been silent for so long, too:
 * those of its NIC or path. To doubt costs bytes: what hangs on it goes by another lane as well
 * (WATCH_DOUBLE), new chunks avoid it. When all that was on it has arrived, or a ping sent
 * since, that ends at once (WATCH_TRUST); a single acknowledgement may be one of before. After 1
 * s without any it is given up (down), and its connection made anew. If nobody says anything,
 * the peer's host may stand still: lanes are doubted at 1.5 D, so that those that are down are
 * tried again, and given up after 1 s, one at a time, never the last.
 *
 * Who is silent: the kernel's word. The peer's kernel acknowledges bytes though its process is
 * stopped or starved, and so does our own take note of it; a path that swallows packets
 * acknowledges nothing. So a lane that seems silent to us is asked after (WATCH_ASK_KERNEL, each
 * 5 ms): bytes acknowledged since, none on their way, a window that is closed: it isn't silent.
 * Nor is one whose peer has all that was written: until something is written again it is asked each 100 ms, and not at all
 * if nothing is owed.
 * Fenced sets (watch_fenced). What a doubted lane has may go nowhere else before it is silent at the peer, so doubt helps nobody:
 * it is given up after 2 D in which others were heard; doubts don't double D here. Later where one of the others was silent alone
 * for more than D in the last 5 to 10 s, and came back by itself (that, and D): so much this machine makes of a good path. And
 * not before what was lost alone has been sent again and answered: a TCP connection waits 200 ms and more with it, where a queue
 * pair waits 67. One on trial with no chunks on it holds nothing up: its D is the longest.
 * D = clamp(2 srtt + 4 rttvar of the kernel, 40 ms, 200 ms), doubled up to twice for 10 s after
 * each doubt that was gone within 500 ms. Where no kernel says anything: D = T = clamp(4 (srtt +
 * 4 rttvar) + backlog / rate, 5 ms, 200 ms) of chunks; of a lane that owes a pong only, 200 ms.
 * On RC never asked.
 *
 * Observed time. Only time during which this process looked counts: each watch_look adds at most
 * 20 ms (without the kernel's word: max(1 ms, T/16)), so one that was starved or stopped needs
 * several looks to accuse anybody. Drain the sockets before each look.
 *
 * Nothing left. No lane usable for 1 s: WATCH_PARTED, retry all NIC pairs each 0.1 to 1 s.
 * `patience` after the last sign of life while something is owed: WATCH_FAIL. At once (<= 2 s) if
 * the peer's process is known to be dead.
 *
 * Who connects: one end of the set. The other one, which accepts, runs the same machine; its lanes
 * wait for HELLO instead (watch_on_hello), and it never emits WATCH_CONNECT. Either end may send. As
 * an end that accepts can't make a lane, the other one keeps watch for it (watch_on_kept): a ping now
 * and then though nothing is owed.
 *
 * Lanes are numbered alike at both ends; own_nic and peer_nic are small numbers that the caller
 * gives; lanes that share one fall together when its carrier does. Bounded, no allocation after
 * watch_new. Drain watch_next_action after every call. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/failover/lane.h"
#include "core/failover/lane_load.h"
#include "wire/lane.h"

#define WATCH_NIC_MAX 16

struct watch;

struct watch_config {
    bool accepts;            /* lanes; else it connects them */
    bool queue_pairs;        /* limit 2 T */
    struct span patience;    /* 0: 60 s */
    struct span timeout_min; /* 0: 5 ms */
    struct span timeout_max; /* 0: 200 ms; also T without a sample */
};

struct watch_lane_config {
    uint8_t own_nic, peer_nic; /* < WATCH_NIC_MAX */
    bool standby;              /* weight 0 while the others carry half of what they could */
};

enum watch_action_kind {
    WATCH_CONNECT, /* (lane, epoch): open a new connection, entropy as you like; then watch_on_hello or
                         watch_on_lost */
    WATCH_CLOSE, /* (lane, epoch): close it now, hard (TCP: linger 0; RC: to ERR), tell ledger or sender.
                         reason says why; closed: for good */
    WATCH_PING,   /* (lane, epoch): send PING with `sequence` */
    WATCH_DOUBLE, /* lane is suspect: sender_on_suspect, ledger_report_again */
    WATCH_TRUST,  /* no longer: sender_on_trusted */
    WATCH_TELL,   /* send a STATE with lane states (watch_lane) on every lane that can carry it */
    WATCH_ASK_KERNEL, /* lane: read TCP_INFO, then watch_on_kernel */
    WATCH_PARTED,     /* no way to the peer; for people. Retries go on */
    WATCH_REJOINED,   /* there is one again */
    WATCH_FAIL, /* patience is over, or the peer is dead: ncclRemoteError on every request of the set */
};
struct watch_action {
    enum watch_action_kind kind;
    uint8_t lane;
    uint32_t epoch;
    uint32_t sequence;
    enum lane_reason reason;
    bool closed;
    bool dead; /* WATCH_FAIL: the process is known to be dead */
    bool
        same_path; /* WATCH_CONNECT: a carrier took it down. Its path was good: by that again, if you can */
};

/* A lane as it is now; also what STATE says of it. */
struct watch_lane {
    bool used; /* the set has that lane */
    bool standby;
    bool cut; /* one of its NICs has no carrier, as far as is known */
    enum lane_state state;
    enum lane_reason reason; /* why it is not ACTIVE */
    uint32_t epoch;
    double weight;       /* 0..1 share for the scheduler; 0: no chunks */
    bool probe_only;     /* suspect: one chunk at a time */
    struct span timeout; /* T */
    uint32_t failovers;  /* of this lane, ever */
    struct mono since;   /* in this state */
};

/* NULL: no memory or out of range. */
struct watch *watch_new(const struct watch_config *config, struct mono now);
void watch_free(struct watch *w); /* accepts NULL */

/* What is unacknowledged on each lane (sender_loads), from now on; must stay. Without it nothing is. */
void watch_loads(struct watch *w, const struct lane_load *loads);

/* Observe: measure and accuse nobody. Lanes go down only when their connection does. */
void watch_observe(struct watch *w, bool on);

/* Chunks of this set leave a lane only once it is given up. */
void watch_fenced(struct watch *w);

/* A lane joins. Who connects: WATCH_CONNECT with epoch 1 follows (delayed: not at once,
 * for standbys on demand). Who accepts: waits for HELLO. */
MUST_CHECK int watch_lane_add(struct watch *w, struct mono now, uint32_t lane,
                              const struct watch_lane_config *config);
/* Who accepts: the lane comes by other NICs than last time; before watch_on_hello. */
void watch_lane_nics(struct watch *w, uint32_t lane, const struct watch_lane_config *config);
/* Who connects: move the lane to another path, or leave the set. repath: make before break is the
 * caller's: connect a new lane number first, then this one drains and closes. close: at once. */
void watch_lane_repath(struct watch *w, struct mono now, uint32_t lane);
void watch_lane_close(struct watch *w, struct mono now, uint32_t lane);
/* The number is free to be added again after it is CLOSED and this was called; epochs go on. */
void watch_lane_remove(struct watch *w, uint32_t lane);

/* -- facts about one lane; those of an epoch that isn't the present one are ignored. */
/* Who connects: HELLO_OK came. Who accepts: HELLO was accepted; its epoch may be any above the present one.
 * */
void watch_on_hello(struct watch *w, struct mono now, uint32_t lane, uint32_t epoch,
                    struct span rtt); /* < 0: not measured */
/* Who connects: the peer's kernel took the connection; its process has yet to say hello, and may be busy with those of a
 * thousand others: no sooner by being asked again. */
void watch_on_answered(struct watch *w, uint32_t lane, uint32_t epoch);
/* So many chunks were put on it just now, and are in its load. backlog: (unacknowledged bytes) / rate, as the scheduler knows
 * it. */
void watch_on_sent(struct watch *w, struct mono now, uint32_t lane, uint32_t chunks,
                   struct span backlog);
/* rtt: bound -> acknowledged of the newest, or < 0: none. by_itself: the report came by the
 * lane that it speaks of; else nothing is said of that lane's way back. */
void watch_on_acked(struct watch *w, struct mono now, uint32_t lane, uint32_t chunks,
                    struct span rtt, struct span backlog, bool by_itself);
void watch_on_pong(struct watch *w, struct mono now, uint32_t lane, uint32_t epoch,
                   uint32_t sequence);
/* A report was written to it, whose arrival its kernel alone can tell. */
void watch_on_told(struct watch *w, uint32_t lane);
/* Anything at all arrived on it: the peer is alive. */
void watch_on_heard(struct watch *w, struct mono now, uint32_t lane);
/* Reset, refused, ended, damaged, a protocol error, an RC completion in error. */
void watch_on_lost(struct watch *w, struct mono now, uint32_t lane, uint32_t epoch,
                   enum lane_reason reason);
/* From the peer's STATE: how it sees the lane. */
void watch_on_peer(struct watch *w, struct mono now, uint32_t lane, uint32_t epoch,
                   enum lane_state state, enum lane_reason reason);
/* What the kernel says of a connection. */
struct watch_kernel {
    bool known; /* it says anything at all */
    bool acked; /* the peer's has acknowledged more bytes since asked last */
    bool
        idle; /* nothing is on its way: all is acknowledged, or the peer wants nothing now and says so */
    bool empty; /* nothing waits to go, either */
    bool whole; /* all that was written by the last WATCH_DOUBLE of the lane is acknowledged */
    uint64_t segments,
        resent; /* TCP's data segments sent, and sent again, since the connection began */
    struct span rtt, rtt_var, rtt_min; /* smoothed, its variation, least; 0: not known */
    struct span resend; /* that it waits before it sends the last segment again; 0: not known */
};
/* A lane that loses more than its siblings is lost (1 % costs TCP half its rate), unless its round
 * trip is far above its least: a queue that others fill as well is for the scheduler to avoid. */
void watch_on_kernel(struct watch *w, struct mono now, uint32_t lane,
                     const struct watch_kernel *kernel);
void watch_on_hint(struct watch *w, struct mono now, uint32_t lane);

/* -- facts about NICs and the peer. down_count: the carrier's down counter, so that a flap between
 * two events counts; 0 if not known. */
void watch_on_carrier(struct watch *w, struct mono now, bool own, uint32_t nic, bool up,
                      uint32_t down_count);
/* Its listener refuses, its lanes ended without CLOSE: the process is gone. Or its host says so. */
void watch_on_peer_dead(struct watch *w, struct mono now);
/* Its listener takes connections after all. No sign of life: its kernel takes them for a process that is stopped. */
void watch_on_peer_there(struct watch *w);
/* Requests wait (chunks unacknowledged, receives posted, CLOSE owed): silence counts. */
void watch_on_owing(struct watch *w, struct mono now, bool owing);
/* Who connects: the peer may have something to send at any time, and can't make a lane itself. Who accepts, with no
 * communicator left: the peer may be gone. One lane is pinged each eighth of the patience, every 5 s at least, each time
 * another one. */
void watch_on_kept(struct watch *w, bool kept);
/* Chunks are on their way, or must go once more. That none of them is taken for the patience is WATCH_FAIL, too,
 * though the peer be heard: its path loses whatever is large. */
void watch_on_their_way(struct watch *w, bool any);

/* Time in: all sockets were drained just before. */
void watch_look(struct watch *w, struct mono now);
/* When to look next at the latest; MONO_NEVER. */
struct mono watch_deadline(const struct watch *w);
bool watch_next_action(struct watch *w, struct watch_action *ret_action);

void watch_lane_get(const struct watch *w, struct mono now, uint32_t lane,
                    struct watch_lane *ret_lane);
/* Bit k: lane k takes chunks and has weight > 0. */
uint32_t watch_carriers(const struct watch *w, struct mono now);
/* Bit k: lane k is a standby that is well and isn't needed now: a way over other NICs. */
uint32_t watch_spares(const struct watch *w, struct mono now);
/* Bit k: frames can be written to lane k (STATE, PING, OPEN). */
uint32_t watch_connected(const struct watch *w);
/* Bit k: lane k is doubted. */
uint32_t watch_doubted(const struct watch *w);
/* How often a lane was doubted, and how often that was over within 500 ms. */
void watch_doubts(const struct watch *w, uint32_t *ret_doubts, uint32_t *ret_mistakes);
const struct bug_note *watch_bug(const struct watch *w);

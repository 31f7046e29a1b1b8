/* watch.h: decides which lanes of a set work, from all available facts, so that no single source is needed.
 *
 * One for each lane set and end. Facts in (sent, acknowledged, pongs, carrier, resets, reports of the peer, of the probe mesh, of
 * the kernel); actions out: connect, close, ping, report to the peer, send elsewhere as well, give up.
 *
 * A doubt is cheap and quickly taken back; a verdict is expensive and late. A lane that owes an answer is *silent* while nothing
 * comes back over it. It is judged against the set's other lanes, which are pinged when it has been silent for half of D. At D,
 * if another lane has brought something back meanwhile, it is doubted (SUSPECT), and with it all lanes that have been silent for
 * as long: those of its NIC or path. A doubt costs bytes: the lane's chunks are sent over another lane as well (WATCH_DOUBLE),
 * and new chunks avoid it. When all its chunks have arrived, or a later ping, the doubt ends at once (WATCH_TRUST); a single
 * acknowledgement may be an old one. After 1 s without any it is given up (down), and its connection made anew. If no lane
 * answers, the peer's host may stand still: lanes are doubted at 1.5 D, so that lanes that are down are tried again, and given up
 * after 1 s, one at a time, never the last one.
 *
 * The kernel shows who is silent. The peer's kernel acknowledges bytes even if its process is stopped or starved, and the own
 * kernel records that. A path that drops packets acknowledges nothing. So for a lane that seems silent the kernel is asked
 * (WATCH_ASK_KERNEL, every 5 ms): with newly acknowledged bytes, no bytes in flight, or a closed window it isn't silent. Nor is a
 * lane whose peer has all written bytes: until something is written again it is asked every 100 ms, and not at all if nothing is
 * owed.
 *
 * Fenced sets (watch_fenced). Chunks of a doubted lane may not be sent elsewhere before the lane is silent at the peer, so a
 * doubt doesn't help: the lane is given up after 2 D in which others were heard, and doubts don't double D here. It is given up
 * later if another lane was silent alone for more than D in the last 5 to 10 s, and came back by itself (after that time, plus
 * D): this machine does that to good paths. And it isn't given up before a single loss was sent again and answered: a TCP
 * connection waits 200 ms and more for that, a queue pair 67. A lane on trial without chunks delays nothing: its D is the
 * longest.
 *
 * D = clamp(2 srtt + 4 rttvar of the kernel, 40 ms, 200 ms), doubled up to twice, to 200 ms at most, for 10 s after each mistake:
 * a doubt in a silence that D doubled twice would have spared. Silence ends with the first sign of life. A lane that is doubted
 * together with another one has been silent as long as that one. Without a kernel's report: D = T = clamp(4 (srtt + 4 rttvar) +
 * backlog / rate, 5 ms, 200 ms) of chunks; for a lane that only owes a pong, 200 ms. On RC the kernel is never asked.
 *
 * Observed time. Only time in which this process looked counts: each watch_look adds at most 20 ms (without the kernel's report:
 * max(1 ms, T/16)). So a process that was starved or stopped needs several looks before it accuses a lane. Read all sockets
 * before each look.
 *
 * Nothing left. No lane is usable for 1 s: WATCH_PARTED, and all NIC pairs are retried every 0.1 to 1 s. `patience` after the
 * last sign of life while something is owed: WATCH_FAIL. At once (<= 2 s) if the peer's process is known to be dead.
 *
 * One end of the set connects. The other one, which accepts, runs the same machine; its lanes wait for HELLO instead
 * (watch_on_hello), and it never emits WATCH_CONNECT. Either end may send. The accepting end can't make a lane, so the other one
 * keeps checking for it (watch_on_kept): a ping now and then even if nothing is owed.
 *
 * Lanes have the same numbers at both ends; own_nic and peer_nic are small numbers from the caller. Lanes with a common NIC go
 * down together with its carrier. Bounded, no allocation after watch_new. Call watch_next_action until false after every call. */
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
    bool accepts;            /* this end accepts lanes; false: it connects them */
    bool queue_pairs;        /* limit 2 T */
    struct span patience;    /* 0: 60 s */
    struct span timeout_min; /* 0: 5 ms */
    struct span timeout_max; /* 0: 200 ms; also T without a sample */
};

struct watch_lane_config {
    uint8_t own_nic, peer_nic; /* < WATCH_NIC_MAX */
    bool standby;              /* weight 0 while the other lanes carry half of their capacity */
};

enum watch_action_kind {
    /* (lane, epoch): open a new connection, with any entropy; then watch_on_hello or watch_on_lost */
    WATCH_CONNECT,
    /* (lane, epoch): close it now, hard (TCP: linger 0; RC: to ERR), and inform ledger or sender. reason: why; closed: for
     * good */
    WATCH_CLOSE,
    WATCH_PING,   /* (lane, epoch): send PING with `sequence` */
    WATCH_DOUBLE, /* lane is suspect: sender_on_suspect, ledger_report_again */
    WATCH_TRUST,  /* no longer suspect: sender_on_trusted */
    WATCH_TELL,   /* send a STATE with lane states (watch_lane) on every lane that can carry it */
    WATCH_ASK_KERNEL, /* lane: read TCP_INFO, then watch_on_kernel */
    WATCH_PARTED,     /* no path to the peer; for people. Retries go on */
    WATCH_REJOINED,   /* a path exists again */
    /* patience is over, or the peer is dead: ncclRemoteError for every request of the set */
    WATCH_FAIL,
};
struct watch_action {
    enum watch_action_kind kind;
    uint8_t lane;
    uint32_t epoch;
    uint32_t sequence;
    enum lane_reason reason;
    bool closed;
    bool dead; /* WATCH_FAIL: the peer's process is known to be dead */
    /* WATCH_CONNECT: a carrier took it down, and its path was good: use the same one again, if possible */
    bool same_path;
};

/* The present state of a lane; also for STATE. */
struct watch_lane {
    bool used; /* the set has this lane */
    bool standby;
    bool cut; /* one of its NICs has no carrier, as far as is known */
    enum lane_state state;
    enum lane_reason reason; /* the reason why it is not ACTIVE */
    uint32_t epoch;
    double weight;       /* its share for the scheduler, 0..1; 0: no chunks */
    bool probe_only;     /* suspect: one chunk at a time */
    struct span timeout; /* T */
    uint32_t failovers;  /* of this lane, since the start */
    struct mono since;   /* since it entered this state */
};

/* NULL: out of memory, or out of range. */
struct watch *watch_new(const struct watch_config *config, struct mono now);
void watch_free(struct watch *w); /* NULL is allowed */

/* The unacknowledged data on each lane (sender_loads), from now on; the array must stay. Without it there is none. */
void watch_loads(struct watch *w, const struct lane_load *loads);

/* Observe mode: measures, and accuses no lane. Lanes go down only with their connection. */
void watch_observe(struct watch *w, bool on);

/* Chunks of this set leave a lane only when it is given up. */
void watch_fenced(struct watch *w);

/* Adds a lane. Connecting end: WATCH_CONNECT with epoch 1 follows (delayed: not at once, for standbys on demand). Accepting end:
 * waits for HELLO. */
MUST_CHECK int watch_lane_add(struct watch *w, struct mono now, uint32_t lane,
                              const struct watch_lane_config *config);
/* Accepting end: the lane uses other NICs than last time; called before watch_on_hello. */
void watch_lane_nics(struct watch *w, uint32_t lane, const struct watch_lane_config *config);
/* Connecting end: moves the lane to another path, or removes it. repath: the caller must connect a new lane number first; then
 * this one drains and closes. close: at once. */
void watch_lane_repath(struct watch *w, struct mono now, uint32_t lane);
void watch_lane_close(struct watch *w, struct mono now, uint32_t lane);
/* Frees the number for another lane, after it is CLOSED; epochs continue. */
void watch_lane_remove(struct watch *w, uint32_t lane);

/* -- facts about one lane; those of another than the present epoch are ignored. */
/* Connecting end: HELLO_OK came. Accepting end: HELLO was accepted; its epoch may be any above the present one. */
void watch_on_hello(struct watch *w, struct mono now, uint32_t lane, uint32_t epoch,
                    struct span rtt); /* < 0: not measured */
/* Connecting end: the peer's kernel accepted the connection. Its process has not sent HELLO yet; it may be busy with a thousand
 * others, and asking again would not help. */
void watch_on_answered(struct watch *w, uint32_t lane, uint32_t epoch);
/* So many chunks were put on it just now, and are in its load. backlog: (unacknowledged bytes) / rate, by the scheduler. */
void watch_on_sent(struct watch *w, struct mono now, uint32_t lane, uint32_t chunks,
                   struct span backlog);
/* rtt: from binding to acknowledgement of the newest chunk; < 0: none. by_itself: the report came over the lane that it is about;
 * otherwise it shows nothing about that lane's way back. */
void watch_on_acked(struct watch *w, struct mono now, uint32_t lane, uint32_t chunks,
                    struct span rtt, struct span backlog, bool by_itself);
void watch_on_pong(struct watch *w, struct mono now, uint32_t lane, uint32_t epoch,
                   uint32_t sequence);
/* A report was written to it; only its kernel can show that it arrived. */
void watch_on_told(struct watch *w, uint32_t lane);
/* Any data arrived on it: the peer is alive. */
void watch_on_heard(struct watch *w, struct mono now, uint32_t lane);
/* Reset, refused, ended, damaged, a protocol error, an RC completion with an error. */
void watch_on_lost(struct watch *w, struct mono now, uint32_t lane, uint32_t epoch,
                   enum lane_reason reason);
/* From the peer's STATE: the lane's state there. */
void watch_on_peer(struct watch *w, struct mono now, uint32_t lane, uint32_t epoch,
                   enum lane_state state, enum lane_reason reason);
/* The kernel's report about a connection. */
struct watch_kernel {
    bool known; /* the kernel reports anything */
    bool acked; /* the peer's kernel acknowledged more bytes since the last report */
    bool idle;  /* nothing is in flight: all is acknowledged, or the peer's window is closed */
    bool empty; /* and nothing waits to be sent */
    bool whole; /* all bytes written before the lane's last WATCH_DOUBLE are acknowledged */
    uint64_t segments,
        resent; /* TCP's data segments sent, and sent again, since the connection began */
    struct span rtt, rtt_var, rtt_min; /* smoothed, variation, least; 0: not known */
    struct span resend; /* the wait before the last segment is sent again; 0: not known */
};
/* A lane that loses more than its siblings is given up (1 % costs TCP half its rate), unless its round trip is far above its
 * least: queues that others also fill are for the scheduler to avoid. */
void watch_on_kernel(struct watch *w, struct mono now, uint32_t lane,
                     const struct watch_kernel *kernel);
void watch_on_hint(struct watch *w, struct mono now, uint32_t lane);

/* -- facts about NICs and the peer. down_count: the carrier's down counter, so that a flap between two events counts; 0: not
 * known. */
void watch_on_carrier(struct watch *w, struct mono now, bool own, uint32_t nic, bool up,
                      uint32_t down_count);
/* The peer's listener refuses, and its lanes ended without CLOSE: the process is gone. Or its host reports that. */
void watch_on_peer_dead(struct watch *w, struct mono now);
/* The peer's listener accepts connections after all. This is no sign of life: its kernel also accepts them for a stopped
 * process. */
void watch_on_peer_there(struct watch *w);
/* Requests wait (chunks unacknowledged, receives posted, CLOSE owed): silence counts. */
void watch_on_owing(struct watch *w, struct mono now, bool owing);
/* Connecting end: the peer may have something to send at any time, and can't make a lane itself. Accepting end without
 * communicators: the peer may be gone. One lane is pinged every eighth of the patience, at least every 5 s, each time another
 * one. */
void watch_on_kept(struct watch *w, bool kept);
/* Chunks are in flight, or must be sent once more. If none of them is taken for the patience, that is WATCH_FAIL, too, even if
 * the peer is heard: its path loses large packets. */
void watch_on_their_way(struct watch *w, bool any);

/* Time in: all sockets were read just before. */
void watch_look(struct watch *w, struct mono now);
/* The latest time of the next look; MONO_NEVER. */
struct mono watch_deadline(const struct watch *w);
bool watch_next_action(struct watch *w, struct watch_action *ret_action);

void watch_lane_get(const struct watch *w, struct mono now, uint32_t lane,
                    struct watch_lane *ret_lane);
/* Bit k: lane k takes chunks and has weight > 0. */
uint32_t watch_carriers(const struct watch *w, struct mono now);
/* Bit k: lane k is a healthy standby that isn't needed now: a path over other NICs. */
uint32_t watch_spares(const struct watch *w, struct mono now);
/* Bit k: frames can be written to lane k (STATE, PING, OPEN). */
uint32_t watch_connected(const struct watch *w);
/* Bit k: lane k is doubted. */
uint32_t watch_doubted(const struct watch *w);
/* The number of doubts, and of those that were mistakes. */
void watch_doubts(const struct watch *w, uint32_t *ret_doubts, uint32_t *ret_mistakes);
const struct bug_note *watch_bug(const struct watch *w);

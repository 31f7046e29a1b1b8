/* out_lane.c: the end that connects a set makes its lanes: it connects, sends HELLO, and proves that the HELLO is fresh. */
#include <errno.h>
#include <string.h>

#include "transport/internal.h"

#define REFUSALS_MAX 8
#define REFUSALS_MIN 3
#define REFUSED_NS   (5 * NS_PER_S)

void out_start_lanes(struct lane_set *set, struct mono now)
{
    struct watch_lane_config lane = {.own_nic = (uint8_t)set->nic};

    if (set->lanes_added) {
        return;
    }
    set->lanes_added = true;
    set->lanes = ceiling_lanes(set->transport);
    for (uint32_t i = 0; i < set->lanes; i++) {
        set->lane_nics[i].own = (uint8_t)set->nic;
        if (watch_lane_add(set->watch, now, i, &lane) < 0) {
            break;
        }
    }
}

/* same_path: with the port of the last connection, which is hashed to the same links; if that port is taken, with any. */
static int connect_lane(struct lane_set *set, uint32_t lane, uint32_t epoch, bool same_path)
{
    struct transport *t = set->transport;
    const struct own_nic *nic = &t->nics[set->lane_nics[lane].own];
    struct io_connect connect =
        peer_connect(t, &nic->config.address, &set->peers[set->lane_nics[lane].peer].address);
    int conn;

    connect.device = peer_device(set, nic, &connect.to, epoch);
    connect.from.port = same_path ? set->lane_nics[lane].port : 0;
    int r = t->io->connect(t->io, &connect, &conn);
    if (r < 0 && connect.from.port != 0) {
        connect.from.port = 0;
        r = t->io->connect(t->io, &connect, &conn);
    }
    if (r < 0) {
        return r;
    }
    set->streams[lane] = stream_new(conn, epoch);
    if (set->streams[lane] == NULL) {
        t->io->close(t->io, conn, true);
        return -ENOMEM;
    }
    ceiling_opened(t);
    set->present |= 1u << lane;
    set->streams[lane]->connecting = true;
    set->streams[lane]->own_nic = set->lane_nics[lane].own;
    set->streams[lane]->peer_nic = set->lane_nics[lane].peer;
    set->streams[lane]->local = connect.from;
    set->streams[lane]->peer = connect.to;
    return 0;
}

/* Nobody listens there and no lane is left: the process is gone. Or it was never reached, and another own NIC may get another
 * answer. */
static void refused(struct lane_set *set, struct mono now, uint32_t lane, int r)
{
    if (r == -ECONNREFUSED && watch_connected(set->watch) == 0 && !first_nic_undecided(set) &&
        peer_refuses(set, set->lane_nics[lane].own, set->lane_nics[lane].peer)) {
        watch_on_peer_dead(set->watch, now);
    }
}

void out_connect(struct lane_set *set, struct mono now, const struct watch_action *action)
{
    const uint32_t lane = action->lane, epoch = action->epoch;

    lane_set_close_stream(set, lane, true);
    if (set->streams[lane] != NULL) { /* the last one isn't silent: its count isn't known */
        watch_on_lost(set->watch, now, lane, epoch, LANE_REASON_RESET);
        return;
    }
    set->lane_nics[lane].tries += set->lane_nics[lane].tries < UINT8_MAX;
    int r = connect_lane(set, lane, epoch, action->same_path);
    first_nic_on_connect(set, now, r);
    if (r < 0) {
        refused(set, now, lane, r);
        if (ceiling_refused(set, r) == 0) {
            watch_on_lost(set->watch, now, lane, epoch, LANE_REASON_RESET);
        }
        return;
    }
    set->streams[lane]->began = now;
    out_handshake(set, now, lane);
    lane_set_touch(set);
}

/* It is the same each time, except the nonce. */
static void hello_encode(const struct lane_set *set, uint32_t lane,
                         uint8_t bytes[static LANE_HELLO_SIZE])
{
    const struct transport *t = set->transport;
    const struct stream *stream = set->streams[lane];
    struct lane_hello hello = {.newest = t->config.version,
                               .lowest = LANE_VERSION_LOWEST,
                               .lane = (uint16_t)lane,
                               .standby = set->lane_nics[lane].standby,
                               .joined = stream->joined,
                               .lanes = (uint16_t)(t->config.lanes + t->config.standbys),
                               .epoch = stream->epoch,
                               .own_context = set->own_context,
                               .peer_context = set->peer_context,
                               .set = set->number,
                               .pid = t->pid,
                               .rank = LANE_RANK_UNKNOWN};

    if (set->fenced && set->ledger != NULL) {
        hello.last_taken = ledger_lane_taken(set->ledger, lane, &hello.last_epoch);
    }
    memcpy(hello.nonce, stream->nonce, sizeof(hello.nonce));
    memcpy(hello.own_address, stream->local.ip, 16);
    memcpy(hello.peer_address, stream->peer.ip, 16);
    memcpy(hello.host, t->host, sizeof(hello.host));
    memcpy(hello.nic, t->nics[stream->own_nic].config.name, sizeof(hello.nic));
    lane_hello_encode(bytes, &hello, set->nonce, set->key);
}

static void greet(struct lane_set *set, uint32_t lane)
{
    struct io *io = set->transport->io;
    struct stream *stream = set->streams[lane];
    uint8_t bytes[LANE_HELLO_SIZE];

    io->random(io, stream->nonce, sizeof(stream->nonce));
    stream->joined = set->ledger != NULL;
    hello_encode(set, lane, bytes);
    (void)stream_control(stream, bytes, sizeof(bytes));
}

/* Proves that the HELLO was sent now, and is not a recorded one. */
static void prove(struct lane_set *set, uint32_t lane, const struct lane_hello *answer,
                  const uint8_t hello[static LANE_HELLO_SIZE])
{
    uint8_t bytes[LANE_PROOF_SIZE];

    lane_proof_encode(bytes, hello, answer->nonce, set->key, set->fenced);
    (void)stream_control(set->streams[lane], bytes, sizeof(bytes));
}

void out_handshake(struct lane_set *set, struct mono now, uint32_t lane)
{
    struct stream *stream = set->streams[lane];
    struct io *io = set->transport->io;
    const int r = io->connected(io, stream->conn, &stream->local);

    if (r == -EAGAIN) {
        return;
    }
    if (r < 0) {
        first_nic_on_connect(set, now, r);
        refused(set, now, lane, r);
        lane_set_lost(set, now, lane, LANE_REASON_RESET);
        return;
    }
    stream->connecting = false;
    watch_on_answered(set->watch, lane, stream->epoch);
    greet(set, lane);
    (void)stream_flush(set, stream); /* an error shows again at the next turn */
}

/* -- the receiver's answers ------------------------------------------------------------------- */

/* Does the answer say that the set is fenced? Then the lane's last connection is silent at the peer, and the answer has the
 * peer's count of it. */
static bool on_fence(struct lane_set *set, uint32_t lane, const struct lane_hello *answer)
{
    if (set->version == 0 && answer->fenced && set->transport->config.fenced) {
        set->fenced = true;
        watch_fenced(set->watch);
        sender_fence(set->sender);
        if (answer->newest >= LANE_POST_VERSION) {
            sender_posts(set->sender);
        }
        if (set->ledger != NULL) {
            ledger_fence(set->ledger);
        }
    }
    return !set->fenced || set->sender == NULL ||
           sender_on_fenced(set->sender, lane, answer->epoch, answer->last_epoch,
                            answer->last_taken) == 0;
}

static int on_hello_ok(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
                       size_t size)
{
    struct stream *stream = set->streams[lane];
    struct lane_hello answer;
    uint8_t hello[LANE_HELLO_SIZE];
    const enum lane_error error =
        lane_hello_decode(frame, size, stream->nonce, set->key, &answer, NULL);

    if (error != LANE_ERROR_NONE || !answer.answer || answer.lane != lane ||
        answer.epoch != stream->epoch || answer.own_context != set->peer_context ||
        (set->version != 0 && set->version != answer.newest)) {
        return -EPROTO;
    }
    if (!on_fence(set, lane, &answer)) {
        return -EPROTO;
    }
    hello_encode(set, lane, hello); /* as it was sent: before the lane is open */
    if (lane_set_open_lane(set, now, lane, stream->epoch, mono_sub(now, stream->began)) < 0) {
        return -EPROTO;
    }
    if (set->version == 0) {
        set->joined = now;
        set->version = answer.newest;
        set->leaving = false; /* one of its communicators may have moved to the peer's set */
        lane_set_grant(set);
    }
    set->refusals = 0;
    set->lane_nics[lane].tries = 0;
    set->lane_nics[lane].was_up = true;
    set->lane_nics[lane].port = stream->local.port;
    memcpy(set->host, answer.host, sizeof(set->host));
    if (stream->peer_nic == 0) {
        memcpy(set->peer_device, answer.nic, sizeof(set->peer_device));
    }
    set->pid = answer.pid;
    if (set->version >= 4) {
        prove(set, lane, &answer, hello);
    }
    lane_set_shaken(set, now, lane);
    lane_set_tell_nics(set, stream);
    return 0;
}

/* One refusal may be due to a damaged HELLO. Many in a row, or several over seconds, are meant. */
static bool refused_for_good(struct lane_set *set, struct mono now)
{
    if (set->refusals++ == 0) {
        set->refused_since = now;
    }
    return set->refusals >= REFUSALS_MAX ||
           (set->refusals >= REFUSALS_MIN && mono_sub(now, set->refused_since).ns > REFUSED_NS);
}

static int on_hello_no(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
                       size_t size)
{
    struct lane_refusal refusal;
    char text[PEER_TEXT];

    if (lane_refusal_decode(frame, size, &refusal) != LANE_ERROR_NONE) {
        return -EPROTO;
    }
    if (refusal.reason == LANE_NO_FULL) {
        ceiling_turned_away(set, now, lane);
    }
    if (refusal.reason == LANE_NO_LANE || refusal.reason == LANE_NO_FULL ||
        refusal.reason == LANE_NO_YOURS || !refused_for_good(set, now)) {
        return -ECONNREFUSED; /* this lane, this time */
    }
    switch (refusal.reason) {
    case LANE_NO_VERSION:
        lane_set_fail(
            set, -EPROTONOSUPPORT,
            "%s has versions %u to %u of Foliot's lanes, this end %u to %u: upgrade one end",
            lane_set_peer(set, text), refusal.lowest, refusal.newest, LANE_VERSION_LOWEST,
            LANE_VERSION);
        return 0;
    case LANE_NO_KEY:
        lane_set_fail(set, -EKEYREJECTED, "%s holds another job's key", lane_set_peer(set, text));
        return 0;
    case LANE_NO_MODE:
        lane_set_fail(set, -EPROTONOSUPPORT, "%s has turned Foliot off", lane_set_peer(set, text));
        return 0;
    case LANE_NO_CONTEXT:
        lane_set_fail(set, -ECONNABORTED, "%s is gone: another process listens there",
                      lane_set_peer(set, text));
        return 0;
    default:
        return -ECONNREFUSED;
    }
}

int out_hello(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
              size_t size)
{
    return frame[0] == LANE_HELLO_OK   ? on_hello_ok(set, now, lane, frame, size)
           : frame[0] == LANE_HELLO_NO ? on_hello_no(set, now, lane, frame, size)
                                       : -EPROTO;
}

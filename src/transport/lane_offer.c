/* lane_offer.c: a lane that began as a TCP connection continues over a queue pair, if both ends have one and it works.
 *
 *   who connects   opens ── OFFER ──────────────► opens, connects   the other end
 *                  connects ◄────────── ACCEPT ──
 *                  ══ PROBE ════════════════════►                   ═ over the queue pair
 *                  ◄════════════════════ PROBE ══
 *                  ── SWITCH ───────────────────► reads the queue pair from here on; as soon as it can:
 *                  ◄─────────────────── SWITCH ──
 *
 * Nothing waits for that: until SWITCH, and for ever if it fails, the lane is a TCP connection. PROBE is as large as a cell: so
 * it also finds paths that take only small packets. A failed attempt is repeated later, each time after a longer pause. So a lane
 * whose queue pair died comes back over TCP, and over a queue pair when that works again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/internal.h"
#include "transport/lane_pair.h"

#define OFFER_NS                                                                                   \
    (5 * NS_PER_S)             /* from open to PROBE: it may take a second to resolve a neighbour */
#define AGAIN_NS      NS_PER_S /* after the first failure */
#define AGAIN_SHIFTS  6
#define LASTS_NS      (10 * NS_PER_S) /* a queue pair that lived so long was a good one */
#define SETTING_UP_NS NS_PER_MS       /* between two looks at one that is being made */
/* a connection from which data came within this time is healthy */
#define MUTE_NS (200 * NS_PER_MS)
#define MANY_LANES                                                                                 \
    64 /* of the process: above this number, and above four times as many, each has fewer cells */

static const struct io_qp_timeouts timeouts = {
    .timeout = QP_TIMEOUT, .retries = 6, .rnr_timer = 12, .rnr_retries = 7};

static uint32_t cell_count(const struct transport *t)
{
    const uint32_t lanes = __atomic_load_n(&t->sockets, __ATOMIC_RELAXED);

    return lanes <= MANY_LANES ? 32 : lanes <= 4 * MANY_LANES ? 16 : 8;
}

static void offer_later(struct lane_set *set, struct mono now, uint32_t lane)
{
    set->pair_tries[lane].again = mono_add(now, span_ns(AGAIN_NS << set->pair_tries[lane].fails));
    set->pair_tries[lane].fails += set->pair_tries[lane].fails < AGAIN_SHIFTS;
}

void lane_pair_lost(struct lane_set *set, struct mono now, uint32_t lane)
{
    const struct lane_pair *qp = set->streams[lane]->qp;
    if (qp != NULL && qp->direct && qp->broke.status == IO_QP_REFUSED && set->sender != NULL) {
        sender_forget_keys(set->sender, qp->peer_device); /* the device may have been away */
    }
    const bool lasted =
        qp != NULL && qp->step == PAIR_UP && mono_sub(now, qp->up_at).ns >= LASTS_NS;

    set->pair_tries[lane].unlucky =
        qp != NULL && qp->step == PAIR_UP && !lasted && (set->traffic.retired >> lane & 1) == 0;
    if (lasted) {
        set->pair_tries[lane].fails = 0;
    } else if (qp != NULL && qp->error != 0 && !qp->answers) {
        offer_later(set, now, lane);
    }
}

static bool wants_direct(const struct lane_set *set)
{
    return post_needed(set) && set->transport->config.direct;
}

/* The device whose keys in POST are for this end, from 1 on; 0: none. */
static uint8_t own_device(const struct lane_set *set, const struct lane_pair *qp)
{
    const uint32_t most = set->version >= LANE_KEYS_VERSION ? IO_RDMA_DEVICES : LANE_POST_KEYS;

    return wants_direct(set) && qp->cells.device < most ? (uint8_t)(1 + qp->cells.device) : 0;
}

/* Queues QP; false: no room now. */
static bool tell(struct lane_set *set, uint32_t lane, enum lane_qp_step step, uint32_t attempt)
{
    struct stream *stream = set->streams[lane];
    const struct lane_pair *qp = stream->qp;
    struct lane_qp frame = {
        .step = step, .lane = (uint16_t)lane, .epoch = stream->epoch, .attempt = attempt};
    uint8_t bytes[LANE_QP_SIZE];

    if (step == LANE_QP_OFFER || step == LANE_QP_ACCEPT) {
        frame.qp = qp->own.qp;
        frame.psn = qp->own.psn;
        frame.lid = qp->own.lid;
        frame.mtu_shift = qp->own.mtu_shift;
        frame.sl = qp->own.sl;
        frame.pkey = set->version >= LANE_PKEY_VERSION ? qp->own.pkey : 0;
        memcpy(frame.gid, qp->own.gid, sizeof(frame.gid));
        frame.cells = (uint16_t)qp->count;
        frame.device = own_device(set, qp);
        frame.cell_size = COPY_CELL_SIZE;
    }
    lane_qp_encode(bytes, &frame);
    return stream_control(stream, bytes, sizeof(bytes));
}

/* The same ports give the same path, for the data that we send. */
static uint32_t path_of(const struct stream *stream)
{
    return (uint32_t)hash_u64(stream->local.port, stream->peer.port);
}

uint16_t lane_pair_port(const struct stream *stream)
{
    const struct lane_pair *qp = stream->qp;
    const uint32_t path = qp->path != 0 ? qp->path : path_of(stream);

    return qp->own.lid != 0 ? 0 : (uint16_t)(IO_ROCE_FIRST_PORT | io_roce_label(path));
}

/* offer: the one that this end answers; NULL: this end offers. */
static int begin(struct lane_set *set, struct mono now, uint32_t lane, const struct lane_qp *offer,
                 uint32_t attempt)
{
    const struct transport *t = set->transport;
    struct stream *stream = set->streams[lane];
    const struct own_nic *nic = &t->nics[stream->own_nic];
    const uint32_t count = cell_count(t);
    const struct io_qp_config config = {.nic = nic->config.address,
                                        .device = nic->config.name,
                                        .sends = count,
                                        .receives = count,
                                        .cell_size = COPY_CELL_SIZE,
                                        .path = path_of(stream),
                                        .peer = stream->peer,
                                        .luck = set->pair_tries[lane].unlucky,
                                        .writes = wants_direct(set),
                                        .traffic_class = t->config.pair_class,
                                        .sl = t->config.pair_sl,
                                        .pkey = offer != NULL ? offer->pkey : 0};
    struct lane_pair *qp = calloc(1, sizeof(*qp));

    if (qp == NULL) {
        return -ENOMEM;
    }
    const int r = t->rdma->open(t->rdma, &config, &qp->qp);
    if (r < 0) {
        free(qp);
        return r;
    }
    qp->answers = offer != NULL;
    qp->attempt = attempt;
    qp->count = qp->posted = count;
    /* The offering end gives up first: when the answering end does, it won't write SWITCH any more. */
    qp->until = mono_add(now, span_ns(qp->answers ? 2 * OFFER_NS : OFFER_NS));
    qp->out_at = UINT64_MAX;
    stream->qp = qp;
    stream->kind = &lane_copy;
    stream->armed = 0;
    return 0;
}

/* Both ends have made it, and nothing came, while the connection beside it works: it is no fault of the path, which would end
 * both. Reported once. */
static void tell_mute(struct lane_set *set, uint32_t lane, int error)
{
    const struct stream *stream = set->streams[lane];
    const struct mono now = set->transport->io->now(set->transport->io);
    struct watch_lane state;
    char text[PEER_TEXT];

    watch_lane_get(set->watch, now, lane, &state);
    if (set->pairs_mute || stream->qp->step != PAIR_PROVING || error == -ECONNREFUSED ||
        error == -ECANCELED || state.state != LANE_ACTIVE ||
        mono_sub(now, stream->read_at).ns > MUTE_NS) {
        return;
    }
    set->pairs_mute = true;
    say(set->transport, TRANSPORT_WARN,
        "queue pairs between NIC %s and %s bring nothing, connections do; lanes go over TCP: "
        "expected "
        "that UDP port 4791 isn't filtered (RoCE), that both ports have the same partition, one as "
        "a full member (InfiniBand), and packets as large as the ports' MTU to pass",
        set->transport->nics[stream->own_nic].config.name, lane_set_peer(set, text));
}

/* Before SWITCH: the lane stays on TCP. */
static void give_up(struct lane_set *set, uint32_t lane, int error)
{
    struct stream *stream = set->streams[lane];
    struct lane_pair *qp = stream->qp;
    struct io_rdma *rdma = set->transport->rdma;
    char text[PEER_TEXT], broke[LANE_WHY_SIZE];

    say(set->transport, TRANSPORT_TRACE, "lane %u.%u of %s: no queue pair (%s): over TCP%s", lane,
        stream->epoch, lane_set_peer(set, text), strerror(-error), why_lane(stream, broke));
    tell_mute(set, lane, error);
    set->pair_tries[lane].unlucky = (qp->path != 0 || qp->own.lid != 0) && qp->step == PAIR_PROVING;
    if (qp->answers || qp->step > PAIR_OPENING) {
        (void)tell(set, lane, LANE_QP_REFUSE, qp->attempt); /* no room: the peer's time runs out */
    }
    if (!qp->answers) {
        offer_later(set, set->transport->io->now(set->transport->io), lane);
    }
    if (qp->direct && qp->said) { /* the peer may write already, before we have read its SWITCH */
        lane_pair_fence(set, 1u << lane);
        if (stream->dead) {
            return;
        }
    }
    rdma->close(rdma, qp->qp, false);
    free(qp);
    stream->qp = NULL;
    stream->kind = &lane_tcp;
    stream->armed = 0;
    stream->held = false;
}

/* What we write goes over the queue pair from here on, as soon as nothing else waits to be written. */
static void switch_over(struct lane_set *set, uint32_t lane)
{
    struct stream *stream = set->streams[lane];
    struct lane_pair *qp = stream->qp;

    stream->held = !stream_idle(stream);
    if (stream->held || !tell(set, lane, LANE_QP_SWITCH, qp->attempt)) {
        return;
    }
    qp->out_at = stream->bytes_out + LANE_QP_SIZE;
    if (qp->direct) {
        scheduler_lane_writes(&set->scheduler, lane);
    }
    stream->armed = 0;
    (void)stream_flush(set, stream); /* an error shows again at the next turn */
}

/* The set's lanes between the same NICs, with paths that were chosen. */
static void others_of(const struct lane_set *set, uint32_t lane, struct io_qp_others *ret)
{
    const struct stream *own = set->streams[lane];

    ret->count = 0;
    for (uint32_t lanes = set->present & ~(1u << lane); lanes != 0; lanes &= lanes - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(lanes);
        const struct stream *other = set->streams[i];
        if (other->qp == NULL || other->qp->path == 0 || other->dead ||
            other->own_nic != own->own_nic || !io_address_same_ip(&other->peer, &own->peer)) {
            continue;
        }
        ret->paths[ret->count++] = other->qp->path;
        if (set->traffic.from == (int)i) { /* this lane is made because that path is contended */
            ret->paths[ret->count++] = other->qp->path;
        }
    }
}

/* Chooses its path. False: not yet. A chosen path that brought nothing isn't chosen again: then the path is left to chance, as it
 * is if no paths are known. A path may answer and yet be dead farther on. */
static bool is_routed(struct lane_set *set, uint32_t lane)
{
    const struct stream *stream = set->streams[lane];
    struct lane_pair *qp = stream->qp;
    struct io_rdma *rdma = set->transport->rdma;
    struct io_qp_others others;

    if (!qp->routed && rdma->choose != NULL && !set->pair_tries[lane].unlucky) {
        others_of(set, lane, &others);
        const int r = rdma->choose(rdma, qp->qp, &stream->peer, &others, &qp->path);
        if (r == -EAGAIN) {
            return false;
        }
        if (r == 0) {
            say(set->transport, TRANSPORT_TRACE, "lane %u.%u: sends from UDP port %u", lane,
                stream->epoch, IO_ROCE_FIRST_PORT | qp->path);
        } else {
            say(set->transport, TRANSPORT_TRACE, "lane %u.%u: no path is known: %s", lane,
                stream->epoch, strerror(-r));
        }
    }
    qp->routed = true;
    return true;
}

/* -- one step after another ------------------------------------------------------------------- */

static void connect_pair(struct lane_set *set, uint32_t lane)
{
    struct lane_pair *qp = set->streams[lane]->qp;
    struct io_rdma *rdma = set->transport->rdma;

    qp->direct = own_device(set, qp) != 0 && qp->device_told != 0;
    qp->peer_device = qp->direct ? qp->device_told - 1 : 0;
    qp->out_count -= qp->direct; /* one is never used: the marker */
    const int r = rdma->connect(rdma, qp->qp, &qp->peer, &timeouts);

    if (r < 0) {
        give_up(set, lane, r);
        return;
    }
    qp->step = PAIR_CONNECTING;
    if (qp->direct) {
        post_renew(set);
    }
}

static void on_opened(struct lane_set *set, uint32_t lane)
{
    struct lane_pair *qp = set->streams[lane]->qp;
    struct io_rdma *rdma = set->transport->rdma;
    const int r = rdma->opened(rdma, qp->qp, &qp->own, &qp->cells);

    if (r < 0 && r != -EAGAIN) {
        give_up(set, lane, r);
    } else if (r == 0 && !is_routed(set, lane)) {
        return;
    } else if (r == 0 && qp->answers) {
        connect_pair(set, lane);
    } else if (r == 0 && tell(set, lane, LANE_QP_OFFER, qp->attempt)) {
        qp->step = PAIR_OFFERED;
    }
}

static void on_connected(struct lane_set *set, uint32_t lane)
{
    struct stream *stream = set->streams[lane];
    struct lane_pair *qp = stream->qp;
    struct io_rdma *rdma = set->transport->rdma;
    const int r = rdma->connected(rdma, qp->qp);

    if (r < 0 && r != -EAGAIN) {
        give_up(set, lane, r);
    } else if (r == 0 && (qp->answers ? tell(set, lane, LANE_QP_ACCEPT, qp->attempt)
                                      : lane_pair_say(set, stream, LANE_CELL_PROBE,
                                                      qp->out_size - LANE_CELL_SIZE))) {
        qp->step = PAIR_PROVING;
    }
}

static void on_proving(struct lane_set *set, struct mono now, uint32_t lane)
{
    struct stream *stream = set->streams[lane];
    struct lane_pair *qp = stream->qp;

    lane_pair_poll(set, stream);
    if (qp->error != 0) {
        give_up(set, lane, qp->error);
        return;
    }
    if (qp->probed && qp->answers && !qp->said) { /* this end now waits for SWITCH */
        qp->said = lane_pair_say(set, stream, LANE_CELL_PROBE, qp->out_size - LANE_CELL_SIZE);
    } else if (qp->probed && !qp->answers) {
        qp->step = PAIR_UP;
        qp->up_at = now;
    }
}

static void advance(struct lane_set *set, struct mono now, uint32_t lane)
{
    struct stream *stream = set->streams[lane];
    const struct lane_pair *qp = stream->qp;

    if (qp->step != PAIR_UP && now.ns >= qp->until.ns) {
        give_up(set, lane, -ETIMEDOUT);
        return;
    }
    switch (qp->step) {
    case PAIR_OPENING:
        on_opened(set, lane);
        break;
    case PAIR_OFFERED:
        break;
    case PAIR_CONNECTING:
        on_connected(set, lane);
        break;
    case PAIR_PROVING:
        on_proving(set, now, lane);
        break;
    case PAIR_UP:
        if (qp->out_at == UINT64_MAX) {
            switch_over(set, lane);
        }
        break;
    }
}

static bool may_offer(const struct lane_set *set, struct mono now, uint32_t lane)
{
    const struct stream *stream = set->streams[lane];

    return set->connects && set->version >= LANE_QP_VERSION && set->mode != TRANSPORT_OBSERVE &&
           stream->shaken && !set->leaving && set->error == 0 &&
           now.ns >= set->pair_tries[lane].again.ns && !peer_here(set->transport, &stream->peer);
}

void lane_pair_look(struct lane_set *set, struct mono now)
{
    for (uint32_t lanes = set->transport->rdma != NULL ? set->present : 0; lanes != 0;
         lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        struct stream *stream = set->streams[lane];
        if (stream->dead || stream->connecting) {
            continue;
        }
        if (stream->qp == NULL && may_offer(set, now, lane) &&
            begin(set, now, lane, NULL, ++set->pair_tries[lane].attempts) < 0) {
            offer_later(set, now, lane);
        }
        if (stream->qp != NULL) {
            advance(set, now, lane);
        }
    }
}

struct mono lane_pair_deadline(const struct lane_set *set, struct mono now)
{
    struct mono next = MONO_NEVER;

    for (uint32_t lanes = set->transport->rdma != NULL ? set->present : 0; lanes != 0;
         lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        const struct stream *stream = set->streams[lane];
        const struct mono soon = mono_add(now, span_ns(SETTING_UP_NS));
        if (stream->fencing) {
            next = mono_min(next, soon);
        }
        if (stream->dead || stream->connecting) {
            continue;
        }
        const struct mono again = set->pair_tries[lane].again;
        if (stream->qp == NULL && may_offer(set, again, lane)) {
            next = mono_min(next, mono_before(soon, again) ? again : soon);
        } else if (stream->qp != NULL &&
                   (stream->qp->out_at == UINT64_MAX || stream->qp->fin_at.ns != 0)) {
            next = mono_min(next, soon);
        }
    }
    return next;
}

/* -- the peer's frames ------------------------------------------------------------------------ */

static void take_end(struct lane_pair *qp, const struct lane_qp *frame)
{
    qp->peer = (struct io_qp_end){.qp = frame->qp,
                                  .psn = frame->psn,
                                  .lid = frame->lid,
                                  .mtu_shift = frame->mtu_shift,
                                  .sl = frame->sl,
                                  .pkey = frame->pkey};
    memcpy(qp->peer.gid, frame->gid, sizeof(qp->peer.gid));
    qp->out_count = frame->cells;
    qp->device_told = frame->device;
    qp->out_size = frame->cell_size < COPY_CELL_SIZE ? frame->cell_size : COPY_CELL_SIZE;
}

/* A RoCE port's GID is its address. It must be the other end of the connection, so that our NIC sends nowhere else. An InfiniBand
 * port's GID isn't an address. */
static bool is_peers(const struct stream *stream, const struct lane_qp *frame)
{
    return frame->lid != 0 || memcmp(frame->gid, stream->peer.ip, sizeof(frame->gid)) == 0;
}

/* A queue pair holds registered memory until a second after its end: a peer that offers one after another gets at most two a
 * second. A peer of ours waits AGAIN_NS after a failure. To this machine a connection is faster; a peer with some NICs that are
 * not ours may not know that it is on this machine. */
static bool may_answer(const struct lane_set *set, struct mono now, uint32_t lane,
                       const struct lane_qp *frame)
{
    return set->transport->rdma != NULL && now.ns >= set->pair_tries[lane].again.ns &&
           is_peers(set->streams[lane], frame) &&
           !peer_here(set->transport, &set->streams[lane]->peer);
}

static int on_offer(struct lane_set *set, struct mono now, uint32_t lane,
                    const struct lane_qp *frame)
{
    struct stream *stream = set->streams[lane];

    if (set->connects || (stream->qp != NULL && stream->qp->in)) {
        return -EPROTO;
    }
    if (stream->qp != NULL) { /* that one was given up, but no word of it came */
        give_up(set, lane, -ECANCELED);
    }
    if (stream->dead) {
        return -ECONNRESET;
    }
    if (!may_answer(set, now, lane, frame) || begin(set, now, lane, frame, frame->attempt) < 0) {
        (void)tell(set, lane, LANE_QP_REFUSE, frame->attempt);
        return 0;
    }
    set->pair_tries[lane].again = mono_add(now, span_ns(AGAIN_NS / 2));
    take_end(stream->qp, frame);
    return 0;
}

static int on_switch(struct lane_set *set, struct mono now, uint32_t lane,
                     const struct lane_qp *frame)
{
    struct lane_pair *qp = set->streams[lane]->qp;

    if (qp == NULL || qp->attempt != frame->attempt || qp->step < PAIR_PROVING || qp->in) {
        return -ECONNRESET; /* it is over here, and the peer writes to it */
    }
    qp->in = true;
    if (qp->answers) {
        qp->step = PAIR_UP;
        qp->up_at = now;
    }
    set->streams[lane]->armed = 0;
    say(set->transport, TRANSPORT_TRACE, "lane %u.%u: over a queue pair%s", lane,
        set->streams[lane]->epoch, qp->direct ? " that writes" : "");
    return 0;
}

int lane_pair_on_frame(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *bytes,
                       size_t size)
{
    struct lane_pair *qp = set->streams[lane]->qp;
    struct lane_qp frame;
    const enum lane_error error = lane_qp_decode(bytes, size, &frame);

    if (error != LANE_ERROR_NONE || set->version < LANE_QP_VERSION || frame.lane != lane ||
        frame.epoch != set->streams[lane]->epoch) {
        return error == LANE_ERROR_CRC ? -EBADMSG : -EPROTO;
    }
    const bool meant = qp != NULL && qp->attempt == frame.attempt;
    switch (frame.step) {
    case LANE_QP_OFFER:
        return on_offer(set, now, lane, &frame);
    case LANE_QP_ACCEPT:
        if (meant && !qp->answers && qp->step == PAIR_OFFERED) {
            take_end(qp, &frame);
            if (is_peers(set->streams[lane], &frame)) {
                connect_pair(set, lane);
            } else {
                give_up(set, lane, -EADDRNOTAVAIL);
            }
        }
        return 0;
    case LANE_QP_REFUSE:
        if (meant && (qp->in || qp->out_at != UINT64_MAX)) {
            return -ECONNRESET;
        }
        if (meant) {
            give_up(set, lane, -ECONNREFUSED);
        }
        return 0;
    default:
        return on_switch(set, now, lane, &frame);
    }
}

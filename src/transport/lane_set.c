/* lane_set.c: a lane set at either end: its life, the frames that both ends understand, its turns. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/internal.h"

#define TURNS       32 /* each lane has its turn within so many polls */
#define TURNS_LARGE 4  /* while large messages are awaited */
/* a call goes on for so long if posts take long: other sets have their turn, too */
#define TURNS_NS (10 * NS_PER_MS)

/* -- life ------------------------------------------------------------------------------------- */

int lane_set_new(struct transport *t, bool connects, uint32_t nic, uint64_t peer_context,
                 struct lane_set **ret_set)
{
    const struct watch_config watch = {.accepts = !connects, .patience = t->config.patience};
    struct lane_set *set = calloc(1, sizeof(*set));
    uint32_t index = 0;

    if (set == NULL) {
        return -ENOMEM;
    }
    while (index < SETS_MAX && t->sets[index] != NULL) {
        index++;
    }
    set->transport = t;
    set->connects = connects;
    set->nic = nic;
    set->own_context = t->nics[nic].context;
    set->peer_context = peer_context;
    set->began = set->lonely = set->first.since = t->io->now(t->io);
    set->unsynced_base = INT64_MIN;
    set->report_by = MONO_NEVER;
    set->parted_at = MONO_NEVER;
    set->arrived = CREDIT_NO_ARRIVALS;
    least_init(&set->floor_ns, set->began);
    least_init(&set->slot_copy_ns, set->began);
    least_init(&set->back_ns, set->began);
    set->window = CREDIT_UNLIMITED;
    set->knock = -1;
    set->watch = watch_new(&watch, set->lonely);
    scheduler_init(&set->scheduler, set->lonely);
    traffic_init(set, set->lonely);
    yield_init(set, set->lonely);
    const int r = connects ? lane_set_add_sender(set, set->began) : lane_set_add_ledger(set);
    pthread_mutex_init(&set->lock, NULL);
    if (index == SETS_MAX || set->watch == NULL || r < 0) {
        lane_set_free(set);
        return index == SETS_MAX ? -ENOBUFS : -ENOMEM;
    }
    set->mode = TRANSPORT_FULL; /* watch and scheduler begin with this */
    mode_apply(set);
    set->index = index;
    set->generation = ++t->generations;
    set->number = connects ? set->generation : 0;
    __atomic_store_n(&t->sets[index], set, __ATOMIC_RELEASE);
    if (index >= t->set_count) {
        __atomic_store_n(&t->set_count, index + 1, __ATOMIC_RELEASE);
    }
    *ret_set = set;
    return 0;
}

void lane_set_free(struct lane_set *set)
{
    if (set->knock >= 0) {
        set->transport->io->close(set->transport->io, set->knock, true);
    }
    lane_pair_end(set);
    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        while (set->streams[lane] != NULL) { /* until it is silent, which takes little time */
            lane_set_close_stream(set, lane, true);
        }
    }
    while (set->comms != NULL) {
        struct transport_comm *comm = set->comms;
        set->comms = comm->next;
        comm_free(comm);
    }
    watch_free(set->watch);
    sender_free(set->sender);
    ledger_free(set->ledger);
    slots_free(set);
    copies_end(set);
    delay_free(set);
    pthread_mutex_destroy(&set->lock);
    free(set);
}

void lane_set_touch(struct lane_set *set)
{
    struct transport *t = set->transport;
    uint64_t *word = &t->active[set->index / 64];
    const uint64_t bit = 1ull << (set->index % 64);

    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & bit) == 0) {
        __atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
    }
    /* Does the housekeeping sleep for longer than it should? It wakes every POLLED_NS while there is something to do. */
    if (__atomic_load_n(&t->sleeping_until, __ATOMIC_SEQ_CST) >
        __atomic_load_n(&set->polled_ns, __ATOMIC_RELAXED) + 2 * POLLED_NS) {
        t->io->kick(t->io);
    }
}

void lane_set_fail(struct lane_set *set, int error, const char *format, ...)
{
    va_list arguments;

    if (set->error != 0) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(set->why, sizeof(set->why), format, arguments);
    va_end(arguments);
    set->error = error;
    say(set->transport, TRANSPORT_WARN, "%s", set->why);
    /* Whatever state the peer has, no byte passes any more. */
    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        if (set->streams[lane] != NULL) {
            set->streams[lane]->dead = true;
            set->any_dead = true;
        }
    }
    lane_set_touch(set);
}

void lane_set_fail_bug(struct lane_set *set, const struct bug_note *bug)
{
    char text[PEER_TEXT];

    lane_set_fail(set, -ENOTRECOVERABLE,
                  "a bug of Foliot's own: %s does not hold (%s:%d); peer: %s", bug->condition,
                  bug->file, bug->line, lane_set_peer(set, text));
}

/* -- frames of both ends ---------------------------------------------------------------------- */

static bool is_sent_on(const struct lane_set *set, uint32_t comm)
{
    return (set->sender != NULL && sender_comm_progress(set->sender, comm, NULL, NULL)) ||
           comm_find(set, true, comm) != NULL;
}

static void on_state(struct lane_set *set, struct mono now, uint32_t by,
                     const struct lane_report *report)
{
    const bool newer = (int32_t)(report->sequence - set->peer_sequence) > 0;

    if (newer) {
        set->peer_sequence = report->sequence;
        set->peer_receivers = report->receivers;
        set->peer_receivers_at = now;
    }
    for (uint32_t k = 0; k < report->lane_count; k++) {
        const struct lane_state_lane *lane = &report->lanes[k];
        if (newer) { /* an older one that came over a slower lane: only cumulative values count */
            watch_on_peer(set->watch, now, lane->lane, lane->epoch, lane->state, lane->reason);
            if (set->connects && lane->state == LANE_DRAINING) {
                ceiling_asked(set, now, lane->lane, lane->epoch);
            } else if (set->connects && lane->state == LANE_SUSPECT &&
                       lane->reason == LANE_REASON_REPATH) {
                traffic_on_asked(set, now, lane->lane, lane->epoch);
            }
        }
    }
    for (uint32_t k = 0; newer && set->fenced && set->ledger != NULL && k < report->lane_count;
         k++) {
        const struct lane_state_lane *lane = &report->lanes[k];
        if (lane->fenced_below == 0) {
            ledger_lane_heard(set->ledger, lane->lane, lane->epoch, lane->state);
        }
    }
    if (set->sender != NULL) { /* the peer has more to learn from it */
        out_on_state(set, now, by, report);
    }
    if (newer) {
        lane_set_heard_fences(set, report);
    }
    if (report->comm != LANE_COMM_NONE && report->posted > report->placed &&
        (set->connects || lane_set_both(set)) && !is_sent_on(set, report->comm)) {
        comm_unknown(set, by, true, report->comm, 0); /* given up here: nothing more will come */
    }
}

static int on_ping(struct lane_set *set, struct mono now, uint32_t lane,
                   const struct lane_ping *ping)
{
    struct io *io = set->transport->io;
    uint8_t bytes[LANE_PING_SIZE];
    struct lane_ping pong = *ping;

    if (ping->answer) {
        watch_on_pong(set->watch, now, lane, ping->epoch, ping->sequence);
        return 0;
    }
    struct io_stamp stamp = io->stamp(io);
    pong.answer = true;
    pong.received = stamp.at;
    pong.received_bound_ns = stamp.half_ns;
    lane_ping_encode(bytes, &pong);
    (void)stream_control(set->streams[lane], bytes, sizeof(bytes)); /* full: it asks again */
    return 0;
}

int lane_set_frame(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
                   size_t size)
{
    struct stream *stream = set->streams[lane];
    enum lane_error error = LANE_ERROR_TYPE;

    if (!stream->shaken) {
        return -ENOENT; /* a frame of the handshake: for the sender */
    }
    switch (frame[0]) {
    case LANE_STATE: {
        struct lane_report report;
        error = lane_report_decode(frame, size, set->version, &report);
        if (error == LANE_ERROR_NONE) {
            on_state(set, now, lane, &report);
            return 0;
        }
        break;
    }
    case LANE_PING:
    case LANE_PONG: {
        struct lane_ping ping;
        error = lane_ping_decode(frame, size, &ping);
        if (error == LANE_ERROR_NONE) {
            return on_ping(set, now, lane, &ping);
        }
        break;
    }
    case LANE_CLOSE: {
        struct lane_close close;
        error = lane_close_decode(frame, size, &close);
        if (error == LANE_ERROR_NONE) {
            comm_on_close(set, now, lane, &close);
            return 0;
        }
        break;
    }
    case LANE_NICS:
        return lane_set_on_nics(set, now, frame, size);
    case LANE_QP:
        return lane_pair_on_frame(set, now, lane, frame, size);
    default:
        return -ENOENT;
    }
    return error == LANE_ERROR_CRC ? -EBADMSG : -EPROTO;
}

/* -- progress --------------------------------------------------------------------------------- */

static void read_lane(struct lane_set *set, uint32_t lane, struct mono now)
{
    struct stream *stream = set->streams[lane];

    if (stream->connecting) {
        out_handshake(set, now, lane);
        return;
    }
    ssize_t n = stream_read(set, lane, stream, now);
    if (n < 0) {
        if (n == -EPIPE) {
            stream->ended = true;
        }
        lane_set_lost(set, now, lane, set->leaving ? LANE_REASON_CLOSE : set_reason((int)n));
    } else if (n > 0) {
        if (set->ledger == NULL) { /* else in.c first looks at the lane that brings chunks */
            set->hot = (uint8_t)lane;
        }
        set->reads++;
        set->empty_polls = 0;
        stream->read_at = now;
        watch_on_heard(set->watch, now, lane);
    }
}

static void write_lane(struct lane_set *set, uint32_t lane, struct mono now)
{
    struct stream *stream = set->streams[lane];

    if (!stream->connecting && !stream_idle(stream)) {
        lane_set_flush(set, now, 1u << lane);
    }
}

/* True if there is anything that the peer must still get from us, or we from it. */
bool lane_set_owes(const struct lane_set *set)
{
    if (set->opening > 0 || set->parting_comms > 0 ||
        (set->sender != NULL && sender_busy_count(set->sender) > 0)) {
        return true;
    }
    for (const struct transport_comm *comm = set->ledger != NULL ? set->comms : NULL; comm != NULL;
         comm = comm->next) {
        if (!comm->sending &&
            (comm->state != COMM_OPEN || !ledger_comm_idle(set->ledger, comm->number))) {
            return true;
        }
    }
    return false;
}

/* Does this poll look at that lane, too? Callers that spin make millions of polls a second. The lane that had data last is looked
 * at each time, and so are those over which large messages are spread. The others are looked at in turn, and none is if something
 * came: that makes a round trip of 8 bytes fast. The watch needs a look at each lane, but to this machine not at one that was
 * just read in vain. */
static bool due(const struct lane_set *set, struct mono now, uint32_t lane, bool look, bool came)
{
    const struct stream *stream = set->streams[lane];
    const uint32_t turns = set->scheduler.one_way ? TURNS : TURNS_LARGE;

    if (look && (!set->scheduler.one_way || stream->connecting ||
                 mono_sub(now, stream->dry_at).ns >= LOOK_NS)) {
        return true;
    }
    if (set->large > 0 && (stream->reading || (set->polls + lane) % turns == 0 ||
                           mono_sub(now, stream->read_at).ns < BUSY_NS)) {
        return true;
    }
    return stream->reading || (!came && (set->polls + lane) % TURNS == 0);
}

/* The lane that had data last comes first. */
static void exchange(struct lane_set *set, struct mono now, bool all, bool look)
{
    const uint64_t before = set->reads;
    uint32_t lanes = set->present, lane = set->hot;

    for (; lanes != 0;
         lanes &= ~(1u << lane), lane = lanes != 0 ? (uint32_t)__builtin_ctz(lanes) : 0) {
        if ((lanes >> lane & 1) == 0) {
            continue;
        }
        if (set->streams[lane] != NULL && !set->streams[lane]->dead &&
            (all || lane == set->hot || due(set, now, lane, look, set->reads != before))) {
            read_lane(set, lane, now);
        }
        if (set->streams[lane] != NULL && !set->streams[lane]->dead) {
            write_lane(set, lane, now);
        }
    }
}

/* A caller with many requests asks for each of them, and each look at a lane is a system call: one look serves all of them. Not
 * while only small messages are awaited, nor while a posted receive must be reported. */
static bool just_looked(const struct lane_set *set, struct mono now)
{
    return set->large > 0 && !set->report_posted && mono_sub(now, set->empty_at).ns < EMPTY_NS;
}

/* The watch looks right after data came: the process that got it isn't waiting yet, and its answer takes time. During a wait the
 * look would delay it. */
static bool look_due(const struct lane_set *set, struct mono now, bool all)
{
    const int64_t late = now.ns - set->next_look.ns;

    return late >= 0 && (all || set->empty_polls == 0 || late >= LOOK_NS);
}

/* True: posts took long. What came meanwhile should be read, and then there may be more to send. */
static bool send_and_report(struct lane_set *set, struct mono now, bool all, bool came)
{
    bool more = false;

    lane_set_act(set, now);
    if (set->error == 0) {
        if (set->sender != NULL) {
            out_openings(set, now);
            more = out_pump(set, now);
        }
        if (set->ledger != NULL) {
            in_reports(set, now, all, came);
        }
    }
    return more && set->error == 0;
}

void lane_set_progress(struct lane_set *set, struct mono now, bool all)
{
    const bool look = look_due(set, now, all);
    const uint64_t before = set->reads;

    if (!all && !look && just_looked(set, now)) {
        return;
    }
    set->polls++;
    exchange(set, now, all, look);
    if (look) {
        set->next_look = mono_add(now, span_ns(LOOK_NS));
        mode_apply(set);
        lane_pair_look(set, now);
        if (set->connects) {
            first_nic_look(set, now);
        }
        if (set->connects && set->mode != TRANSPORT_OBSERVE) {
            ceiling_look(set, now);
            standby_look(set, now);
        }
        if (set->sender != NULL && sender_bug(set->sender) != NULL) {
            lane_set_fail_bug(set, sender_bug(set->sender)); /* it sends no more */
        }
        if (set->sender != NULL && set->mode != TRANSPORT_OBSERVE) {
            out_look(set, now);
            traffic_look(set, now);
            credit_count(set, now);
        }
        if (set->ledger != NULL) {
            credit_look(set, now);
            slots_look(set, now);
        }
        lane_set_knock(set, now);
        watch_on_owing(set->watch, now, lane_set_owes(set));
        watch_on_their_way(set->watch, set->sender != NULL && sender_on_their_way(set->sender));
        /* The accepting end waits for the other end to close, but that may have closed without a word: one reset is sent. */
        watch_on_kept(set->watch,
                      set->connects
                          ? lane_set_both(set) && set->comm_count > 0
                          : set->comm_count == 0 && mono_sub(now, set->lonely).ns > SET_LINGER_NS);
        mesh_hint(set, now);
        watch_look(set->watch, now);
    }
    bool more = send_and_report(set, now, all, set->reads != before);
    struct mono at = now;
    while (more && mono_sub(at, now).ns < TURNS_NS) {
        const uint64_t reads = set->reads;
        at = set->transport->io->now(set->transport->io);
        set->polls++;
        exchange(set, at, false, false);
        more = send_and_report(set, at, false, set->reads != reads);
    }
    comm_closings(set, at);
    lane_set_act(set, at);
    if (set->reads == before) {
        set->empty_at = at;
        set->empty_polls++;
    }
    lane_set_note_unattended(set);
}

/* -- sets that are not polled ----------------------------------------------------------------- */

static bool unwritten(const struct lane_set *set)
{
    for (uint32_t lanes = set->present; lanes != 0; lanes &= lanes - 1) {
        const struct stream *stream = set->streams[__builtin_ctz(lanes)];
        if (stream->shaken && !stream->dead && !stream_idle(stream)) {
            return true;
        }
    }
    return false;
}

/* A message that is copied is done, and a receive is done when its bytes are there: then nobody polls the set for it. But the
 * message may still wait for a bounce slot, its rest for room in the kernel, and the sender for the report. */
void lane_set_note_unattended(struct lane_set *set)
{
    const bool unattended = set->awaited == 0 && set->error == 0 && !set->leaving &&
                            ((set->sender != NULL && sender_waiting(set->sender)) ||
                             set->report_soon || set->report_posted || unwritten(set));

    if (unattended != set->unattended) {
        __atomic_store_n(&set->unattended, unattended, __ATOMIC_RELAXED);
        if (unattended) {
            __atomic_fetch_or(&set->transport->unattended, 1ull << (set->index % 64),
                              __ATOMIC_RELAXED);
        }
    }
}

/* Locks are only tried: a thread that holds one serves that set. The time is read for each set, under its lock: the caller's call
 * or another set may have taken milliseconds. */
void lane_set_attend(struct transport *t)
{
    uint64_t bits = __atomic_load_n(&t->unattended, __ATOMIC_RELAXED);

    if (bits == 0 || pthread_mutex_trylock(&t->lock) != 0) {
        return;
    }
    for (; bits != 0; bits &= bits - 1) {
        const uint32_t bit = (uint32_t)__builtin_ctzll(bits);
        bool again = false;
        __atomic_fetch_and(&t->unattended, ~(1ull << bit), __ATOMIC_RELAXED);
        for (uint32_t i = bit; i < t->set_count; i += 64) {
            struct lane_set *set = t->sets[i];
            if (set == NULL || !__atomic_load_n(&set->unattended, __ATOMIC_RELAXED)) {
                continue;
            }
            if (pthread_mutex_trylock(&set->lock) == 0) {
                lane_set_progress(set, t->io->now(t->io), false);
                again = again || set->unattended;
                pthread_mutex_unlock(&set->lock);
            } else {
                again = true;
            }
        }
        if (again) {
            __atomic_fetch_or(&t->unattended, 1ull << bit, __ATOMIC_RELAXED);
        }
    }
    pthread_mutex_unlock(&t->lock);
}

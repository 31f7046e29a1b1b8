/* serve.c: the housekeeping: connections to the listener, and sets that are not polled but owe something.
 *
 * There is one thread for a process. While the application polls a set, this thread looks at it every 10 ms without its lock.
 * Once the polling ends, the set's connections are armed in epoll and served as events and deadlines come. A set that owes
 * nothing leaves the list of active ones. If no set is active, the thread sleeps until an event comes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "transport/internal.h"

#define EVENTS       64
#define TAG_LISTENER ((uint64_t)SETS_MAX * LANE_MAX)
#define TAG_PENDING  (TAG_LISTENER + HOST_NIC_MAX)
#define PORT_TRIES   16 /* until a port is free at all own addresses */
#define YOUNG_NS     (100 * NS_PER_MS)
#define ROOM_NS      (10 * NS_PER_MS) /* until a connection may have been asked to close */
#define NO_FILES_NS  (100 * NS_PER_MS)
#define LEAVE_TRIES  32

/* -- the listener ----------------------------------------------------------------------------- */

static void stop_listening(struct transport *t)
{
    while (t->listening_count > 0) {
        t->io->close(t->io, t->listening[--t->listening_count], false);
    }
}

/* An own address that an earlier NIC has, too. */
static bool is_repeated(const struct transport *t, uint32_t nic)
{
    for (uint32_t i = 0; i < nic; i++) {
        if (io_address_same_ip(&t->nics[i].config.address, &t->nics[nic].config.address)) {
            return true;
        }
    }
    return false;
}

static void why_not_listening(const struct transport *t, uint32_t nic, int r)
{
    char address[IO_ADDRESS_TEXT], ports[32] = "";

    if (t->config.port_high != 0) {
        snprintf(ports, sizeof(ports), " of %u to %u", t->config.port_low, t->config.port_high);
    }
    why("no port%s to listen on at NIC %s (%s): %s", ports, t->nics[nic].config.name,
        io_address_text(&t->nics[nic].config.address, address), strerror(-r));
}

/* Listens at the NICs' addresses and nowhere else, on one port. */
static int listen_once(struct transport *t)
{
    uint16_t low = t->config.port_low, high = t->config.port_high, port = 0;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < t->config.nic_count; i++) {
        uint32_t *count = &t->listening_count;
        if (is_repeated(t, i)) {
            continue;
        }
        r = t->io->listen(t->io, &t->nics[i].config.address, low, high, &t->listening[*count],
                          &port);
        if (r == 0) {
            r = t->io->arm(t->io, t->listening[*count], TAG_LISTENER + *count, IO_IN);
            (*count)++;
            low = high = port;
        }
        if (r < 0) {
            why_not_listening(t, i, r);
        }
    }
    if (r < 0) {
        stop_listening(t);
        port = 0;
    }
    __atomic_store_n(&t->port, port, __ATOMIC_RELAXED); /* peers may get it now */
    return r;
}

int serve_listen(struct transport *t)
{
    int r = 0;

    pthread_mutex_lock(&t->listen_lock);
    for (int i = 0; t->listening_count == 0 && i < PORT_TRIES && (i == 0 || r == -EADDRINUSE);
         i++) {
        r = listen_once(t);
    }
    pthread_mutex_unlock(&t->listen_lock);
    return r;
}

static void forget(struct transport *t, uint32_t i)
{
    if (t->pending[i]->conn >= 0) {
        t->io->close(t->io, t->pending[i]->conn, true);
    }
    if (t->pending[i]->greeted) {
        ceiling_left(t);
    }
    free(t->pending[i]);
    t->pending[i] = t->pending[--t->pending_count];
    if (i < t->pending_count) { /* it has a new number, which its event must name */
        (void)!t->io->arm(t->io, t->pending[i]->conn, TAG_PENDING + i, IO_IN);
    }
}

static uint32_t pending_max(const struct transport *t)
{
    const uint32_t share = t->config.sockets / 8; /* they are half of what the process may open */

    return share < PENDING_MIN ? PENDING_MIN : share < PENDING_MAX ? share : PENDING_MAX;
}

/* The one that has been silent for the longest: of that address, or of all (NULL). Connections with a proof of the key aren't
 * counted. */
static uint32_t oldest(const struct transport *t, const struct io_address *of, uint32_t *ret_count)
{
    uint32_t found = 0;

    *ret_count = 0;
    for (uint32_t i = 0; i < t->pending_count; i++) {
        if (!t->pending[i]->greeted &&
            (of == NULL || io_address_same_ip(&t->pending[i]->peer, of))) {
            found = *ret_count == 0 || t->pending[i]->until.ns < t->pending[found]->until.ns
                        ? i
                        : found;
            ++*ret_count;
        }
    }
    return found;
}

/* True if nobody new can be accepted until one of those has spoken or closed. */
static bool is_full(struct transport *t, struct mono now)
{
    uint32_t count, i = oldest(t, NULL, &count);

    if (count < pending_max(t)) {
        return false;
    }
    if (mono_sub(now, t->pending[i]->until).ns < YOUNG_NS - HANDSHAKE_NS) {
        return true;
    }
    forget(t, i);
    return false;
}

/* Makes room for one more in the list. */
static bool has_place(struct transport *t)
{
    if (t->pending_count < t->pending_capacity) {
        return true;
    }
    const uint32_t capacity = t->pending_capacity > 0 ? t->pending_capacity * 2 : PENDING_MIN;
    struct pending **list = realloc(t->pending, capacity * sizeof(struct pending *));
    if (list == NULL) {
        return false;
    }
    t->pending = list;
    t->pending_capacity = capacity;
    return true;
}

/* A connection was accepted. Its first data has mostly arrived already. */
static void welcome(struct transport *t, struct mono now, const struct pending *one)
{
    struct pending *pending = malloc(sizeof(*pending));
    uint32_t count, i = oldest(t, &one->peer, &count);

    if (count >= pending_max(t) / 4) {
        forget(t, i);
    }
    if (pending == NULL || !has_place(t)) {
        t->io->close(t->io, one->conn, true);
        free(pending);
        return;
    }
    *pending = *one;
    pending->until = mono_add(now, span_ns(HANDSHAKE_NS));
    i = t->pending_count++;
    t->pending[i] = pending;
    if (greeting_read(t, pending)) {
        forget(t, i);
    } else {
        (void)!t->io->arm(t->io, pending->conn, TAG_PENDING + i, IO_IN);
    }
}

static void on_listener(struct transport *t, struct mono now, uint32_t index)
{
    for (int i = 0; i < EVENTS; i++) {
        struct pending one = {0};
        if (is_full(t, now)) {
            t->listen_again = mono_add(now, span_ns(ROOM_NS));
            return;
        }
        const int r = t->io->accept(t->io, t->listening[index], &one.conn, &one.local, &one.peer);
        if (r == -EINTR) {
            continue;
        }
        if (r == -EMFILE || r == -ENFILE || r == -ENOBUFS || r == -ENOMEM) {
            say(t, TRANSPORT_WARN, "can't accept a lane: %s; trying again", strerror(-r));
            t->listen_again = mono_add(now, span_ns(NO_FILES_NS));
            return; /* it isn't armed until then: it would wake this thread all the time */
        }
        if (r < 0) {
            break;
        }
        welcome(t, now, &one);
    }
    (void)!t->io->arm(t->io, t->listening[index], TAG_LISTENER + index, IO_IN);
}

/* -- sets ------------------------------------------------------------------------------------- */

static struct lane_set *lane_set_at(struct transport *t, uint32_t index)
{
    return __atomic_load_n(&t->sets[index], __ATOMIC_ACQUIRE);
}

static struct mono earlier(struct mono a, struct mono b)
{
    return mono_min(a, b);
}

static void arm(struct lane_set *set)
{
    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        struct stream *stream = set->streams[lane];
        if (stream != NULL && !stream->dead) {
            const uint32_t events =
                stream->connecting ? IO_OUT : IO_IN | (stream_idle(stream) ? 0 : IO_OUT);
            if (stream->armed != events && stream->kind->arm(set, lane, events) == 0) {
                stream->armed = (uint8_t)events;
            }
        }
    }
}

/* Sends CLOSE for all, then ends the connections in order, so that it arrives. */
static void take_leave(struct lane_set *set)
{
    const struct lane_close close = {.reason = LANE_REASON_CLOSE, .comm = LANE_COMM_NONE};
    uint8_t bytes[LANE_CLOSE_SIZE];

    lane_close_encode(bytes, &close);
    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        struct stream *stream = set->streams[lane];
        bool said = false;
        if (stream == NULL) {
            continue;
        }
        if (stream->shaken && !stream->dead && set->error == 0 && !set->leaving) {
            said = stream_control(stream, bytes, sizeof(bytes));
            for (int i = 0; said && i < LEAVE_TRIES && !stream_idle(stream); i++) {
                (void)stream_flush(set, stream); /* a kernel may take only some of it */
            }
            said = said && stream_idle(stream);
        }
        lane_set_close_stream(set, lane, !said);
    }
}

static void free_comms(struct lane_set *set, struct mono now)
{
    struct transport_comm **at = &set->comms;

    while (*at != NULL) {
        struct transport_comm *comm = *at;
        if (comm->released && comm->book_closed) {
            *at = comm->next;
            comm_free(comm);
            set->comm_count--;
            set->parting_comms--;
            set->lonely = now;
        } else {
            at = &comm->next;
        }
    }
}

static bool has_streams(const struct lane_set *set)
{
    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        if (set->streams[lane] != NULL) {
            return true;
        }
    }
    return false;
}

/* True if nobody needs the set any more. Both locks are held. */
static bool is_over(const struct lane_set *set, struct mono now)
{
    const bool lonely = now.ns - set->lonely.ns > SET_LINGER_NS ||
                        __atomic_load_n(&set->transport->leaving, __ATOMIC_RELAXED) != 0;

    return set->comm_count == 0 &&
           (set->leaving || set->error != 0 || (lonely && (set->connects || !has_streams(set))));
}

/* Serves one set; false: it is gone. */
static bool serve_set(struct transport *t, struct lane_set *set, struct mono now)
{
    pthread_mutex_lock(&t->lock);
    pthread_mutex_lock(&set->lock);
    free_comms(set, now);
    if (is_over(set, now)) {
        page_sum(set, now, &t->past);
        t->sets[set->index] = NULL;
        __atomic_fetch_and(&t->active[set->index / 64], ~(1ull << (set->index % 64)),
                           __ATOMIC_SEQ_CST);
        pthread_mutex_unlock(&t->lock);
        take_leave(set);
        pthread_mutex_unlock(&set->lock);
        lane_set_free(set);
        return false;
    }
    pthread_mutex_unlock(&t->lock);
    if (set->comm_count == 0) { /* only a look finds that it is time to check the peer */
        set->next_look = now;
    }
    lane_set_progress(set, now, true);
    arm(set);
    set->served = now;
    set->deadline = earlier(watch_deadline(set->watch), comm_deadline(set));
    if (set->sender != NULL) {
        set->deadline = earlier(set->deadline, yield_deadline(set, now));
    }
    if (set->ledger != NULL) {
        set->deadline = earlier(set->deadline, ledger_deadline(set->ledger));
    }
    const struct mono lingered = mono_add(set->lonely, span_ns(SET_LINGER_NS + 1));
    if (set->comm_count == 0 && mono_before(now, lingered)) {
        set->deadline = earlier(set->deadline, lingered);
    }
    set->deadline = earlier(set->deadline, lane_pair_deadline(set, now));
    if (set->any_dead) { /* a lane that isn't silent yet */
        set->deadline = earlier(set->deadline, mono_add(now, span_ns(NS_PER_MS)));
    }
    if (lane_set_owes(set)) { /* a thread may begin to poll it, or stop */
        set->deadline = earlier(set->deadline, mono_add(now, span_ns(100 * NS_PER_MS)));
    }
    if (set->deadline.ns == INT64_MAX) {
        set->deadline.ns = 0; /* it is served at once when it is active again */
        __atomic_fetch_and(&t->active[set->index / 64], ~(1ull << (set->index % 64)),
                           __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&set->lock);
    return true;
}

/* True if a call from above serves the set now. If a device works in the caller's time, that takes milliseconds. */
static bool is_in_hand(struct lane_set *set)
{
    if (pthread_mutex_trylock(&set->lock) != 0) {
        return true;
    }
    pthread_mutex_unlock(&set->lock);
    return false;
}

/* Serves all active sets that are due; returns when the next one is. */
static struct mono serve_sets(struct transport *t, struct mono now)
{
    const uint32_t count = __atomic_load_n(&t->set_count, __ATOMIC_ACQUIRE);
    struct mono next = MONO_NEVER;

    for (uint32_t word = 0; word * 64 < count; word++) {
        uint64_t bits = __atomic_load_n(&t->active[word], __ATOMIC_SEQ_CST);
        for (; bits != 0; bits &= bits - 1) {
            struct lane_set *set = lane_set_at(t, word * 64 + (uint32_t)__builtin_ctzll(bits));
            const int64_t polled =
                set != NULL ? __atomic_load_n(&set->polled_ns, __ATOMIC_RELAXED) : 0;
            if (set == NULL) {
                continue;
            }
            if (now.ns - polled < UNPOLLED_NS || is_in_hand(set)) {
                next = earlier(next, (struct mono){now.ns + POLLED_NS});
                set->deadline = now; /* at once when the polling stops */
                continue;
            }
            /* It was polled since: the deadline doesn't include what was sent then. */
            if (set->deadline.ns <= now.ns || set->stirred || polled >= set->served.ns) {
                set->stirred = false;
                if (!serve_set(t, set, now)) {
                    continue;
                }
            }
            if (set->deadline.ns != 0) {
                next = earlier(next, set->deadline);
            }
        }
    }
    return next;
}

static void on_set_event(struct transport *t, uint64_t tag)
{
    struct lane_set *set = lane_set_at(t, (uint32_t)(tag / LANE_MAX));

    if (set != NULL) {
        pthread_mutex_lock(&set->lock);
        if (set->streams[tag % LANE_MAX] != NULL) {
            set->streams[tag % LANE_MAX]->armed = 0;
        }
        pthread_mutex_unlock(&set->lock);
        set->stirred = true;
        __atomic_fetch_or(&t->active[set->index / 64], 1ull << (set->index % 64), __ATOMIC_SEQ_CST);
    }
}

/* -- links ------------------------------------------------------------------------------------ */

static void tell_carrier(struct transport *t, struct mono now, uint32_t nic)
{
    const uint32_t count = __atomic_load_n(&t->set_count, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0; i < count; i++) {
        struct lane_set *set = lane_set_at(t, i);
        if (set != NULL) {
            pthread_mutex_lock(&set->lock);
            watch_on_carrier(set->watch, now, true, nic, t->nics[nic].carrier != 0,
                             t->nics[nic].downs);
            for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
                struct stream *stream = set->streams[lane];
                if (stream != NULL && stream->shaken && !stream->dead && stream->own_nic != nic) {
                    lane_set_tell_nics(set, stream);
                }
            }
            lane_set_progress(set, now, true);
            pthread_mutex_unlock(&set->lock);
        }
    }
}

/* If an interface belongs to an RDMA port, the interface decides: of a bond one port may be down while the other one carries. The
 * device's report is then only a hint. Without an interface it is the only source. */
static int carrier_of(const struct transport *t, const struct own_nic *nic, uint32_t *downs)
{
    struct io_rdma *rdma = t->rdma;
    const int carrier = t->io->carrier(t->io, nic->config.name, downs);
    uint32_t more = 0;
    const int port = rdma != NULL && rdma->carrier != NULL
                         ? rdma->carrier(rdma, &nic->config.address, nic->config.name, &more)
                         : -ENODEV;

    *downs = carrier < 0 && port >= 0 ? more : *downs + more;
    return carrier >= 0 || port < 0 ? carrier : port;
}

/* Reads what only the drivers know: carriers, and their messages for people. */
static void look_at_host(struct transport *t, struct mono now)
{
    char text[WHY_SIZE];

    for (uint32_t i = 0; i < t->config.nic_count; i++) {
        struct own_nic *nic = &t->nics[i];
        uint32_t downs = nic->downs;
        const int carrier = carrier_of(t, nic, &downs);
        const bool first = nic->carrier < 0;
        if (carrier < 0 || (carrier == nic->carrier && downs == nic->downs)) {
            continue;
        }
        nic->carrier = carrier;
        nic->downs = downs;
        if (!first || carrier == 0) {
            say(t, TRANSPORT_TRACE, "NIC %s: carrier %s, down %u times", nic->config.name,
                carrier ? "up" : "down", downs);
            tell_carrier(t, now, i);
        }
    }
    if (t->io->trouble != NULL && t->io->trouble(t->io, text, sizeof(text))) {
        say(t, TRANSPORT_WARN, "%s", text);
    }
    if (t->rdma != NULL && t->rdma->trouble != NULL &&
        t->rdma->trouble(t->rdma, text, sizeof(text))) {
        say(t, TRANSPORT_WARN, "%s", text);
    }
    t->next_carrier = mono_add(now, span_ns(CARRIER_NS));
}

/* -- the loop --------------------------------------------------------------------------------- */

static bool any_active(const struct transport *t)
{
    const uint32_t count = __atomic_load_n(&t->set_count, __ATOMIC_ACQUIRE);

    for (uint32_t word = 0; word * 64 < count; word++) {
        if (__atomic_load_n(&t->active[word], __ATOMIC_SEQ_CST) != 0) {
            return true;
        }
    }
    return false;
}

static void serve_pending(struct transport *t, struct mono now)
{
    for (uint32_t i = t->pending_count; i-- > 0;) {
        if (now.ns >= t->pending[i]->until.ns) {
            forget(t, i);
        }
    }
}

static void on_events(struct transport *t, struct mono now, const struct io_event *events,
                      int count)
{
    for (int i = 0; i < count; i++) {
        const uint64_t tag = events[i].tag;
        if (tag < TAG_LISTENER) {
            on_set_event(t, tag);
        } else if (tag < TAG_PENDING) {
            on_listener(t, now, (uint32_t)(tag - TAG_LISTENER));
        } else if (tag == IO_TAG_LINKS) {
            t->next_carrier = t->next_page = now;
        } else if (tag - TAG_PENDING < t->pending_count) {
            const uint32_t k = (uint32_t)(tag - TAG_PENDING);
            if (greeting_read(t, t->pending[k])) {
                forget(t, k);
            } else {
                (void)!t->io->arm(t->io, t->pending[k]->conn, tag, IO_IN);
            }
        }
    }
}

static struct mono next_deadline(struct transport *t, struct mono now)
{
    struct mono next = serve_sets(t, now);

    if (any_active(t)) {
        next = earlier(next, t->next_carrier);
    }
    for (uint32_t i = 0; i < t->pending_count; i++) {
        next = earlier(next, t->pending[i]->until);
    }
    if (t->listen_again.ns != 0) {
        next = earlier(next, t->listen_again);
    }
    return next;
}

struct mono transport_serve(struct transport *t, struct mono until)
{
    struct io_event events[EVENTS];
    struct mono now = t->io->now(t->io), next = next_deadline(t, now), wake;

    wake = earlier(next, until);
    wake = wake.ns < now.ns ? now : wake;
    __atomic_store_n(&t->sleeping_until, wake.ns, __ATOMIC_SEQ_CST);
    if (wake.ns > now.ns && next.ns == INT64_MAX && any_active(t)) {
        wake = now; /* it became active while the thread was elsewhere */
    }
    int count = t->io->wait(t->io, wake, events, EVENTS);
    __atomic_store_n(&t->sleeping_until, 0, __ATOMIC_SEQ_CST);
    now = t->io->now(t->io);
    if (t->listen_again.ns != 0 && now.ns >= t->listen_again.ns) {
        t->listen_again.ns = 0;
        for (uint32_t i = 0; i < t->listening_count; i++) {
            on_listener(t, now, i);
        }
    }
    mode_look(t, now);
    on_events(t, now, events, count);
    while (t->rdma != NULL && (count = t->rdma->events(t->rdma, events, EVENTS)) > 0) {
        on_events(t, now, events, count);
    }
    serve_pending(t, now);
    if (now.ns >= t->next_carrier.ns && any_active(t)) {
        look_at_host(t, now);
        mesh_look(t, now);
        ceiling_trim(t, now);
        copies_look(t, now);
    }
    if (now.ns >= t->next_page.ns) {
        page_write(t, now);
    }
    return next_deadline(t, now);
}

/* The application has left: the thread pays the debts, and then frees the transport. */
static void pay_alone(struct transport *t)
{
    void (*const ended)(void *, enum transport_rest) = t->config.ended;
    void *const context = t->config.ended_context;

    pthread_mutex_lock(&t->lock); /* transport_free kicks under it */
    pthread_mutex_unlock(&t->lock);
    page_close(t); /* the job is over */
    while (transport_owes(t)) {
        (void)transport_serve(t, MONO_NEVER);
    }
    ended(context, transport_end(t) ? TRANSPORT_GONE : TRANSPORT_IN_USE);
}

void *serve_thread(void *transport)
{
    struct transport *t = transport;

    (void)prctl(PR_SET_NAME, "foliot");
    while (__atomic_load_n(&t->stop, __ATOMIC_SEQ_CST) == 0) {
        if (__atomic_load_n(&t->alone, __ATOMIC_SEQ_CST) != 0) {
            pay_alone(t);
            break;
        }
        (void)transport_serve(t, MONO_NEVER);
    }
    return NULL;
}

bool serve_end(struct transport *t, bool keep)
{
    bool in_use = false;

    page_close(t);
    follow_end(&t->host_switch);
    follow_end(&t->mesh.file);
    for (uint32_t i = 0; i < t->set_count; i++) {
        struct lane_set *set = t->sets[i];
        if (set == NULL) {
            continue;
        }
        pthread_mutex_lock(&set->lock);
        comm_write_off(set, t->io->now(t->io));
        if (!keep) {
            free_comms(set, t->io->now(t->io));
        }
        take_leave(set);
        set->leaving = true;
        in_use = in_use || set->comm_count > 0;
        if (keep || set->comm_count > 0) { /* the process exits meanwhile: calls may still come */
            set->error = set->error != 0 ? set->error : -ESHUTDOWN;
            pthread_mutex_unlock(&set->lock);
            continue;
        }
        pthread_mutex_unlock(&set->lock);
        t->sets[i] = NULL;
        lane_set_free(set);
    }
    while (t->pending_count > 0) {
        forget(t, 0);
    }
    free(t->pending);
    t->pending = NULL;
    t->pending_capacity = 0;
    pthread_mutex_lock(&t->listen_lock);
    stop_listening(t);
    pthread_mutex_unlock(&t->listen_lock);
    return in_use;
}

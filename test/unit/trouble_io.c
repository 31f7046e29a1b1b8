/* trouble_io.c: see trouble_io.h */
#include "trouble_io.h"

#include <errno.h>
#include <pthread.h>

static bool unlucky(struct trouble *trouble, uint32_t per_million)
{
    return per_million > 0 && prng_below(&trouble->prng, 1000000) < per_million;
}

static bool is_cut(const struct trouble *trouble, int conn)
{
    return trouble->cut != 0 && trouble->via[conn % 256] == trouble->cut;
}

/* The kernel takes it, and sends it again and again. */
static ssize_t swallow(const struct iovec *parts, int count)
{
    size_t size = 0;

    for (int i = 0; i < count; i++) {
        size += parts[i].iov_len;
    }
    return (ssize_t)size;
}

static ssize_t trouble_send(struct io *io, int conn, const struct iovec *parts, int count)
{
    struct trouble *trouble = (struct trouble *)(void *)io;
    struct iovec part = parts[0];

    trouble->sends++;
    if (unlucky(trouble, trouble->reset_per_million) || is_cut(trouble, conn)) {
        trouble->resets++;
        return -ECONNRESET;
    }
    if (trouble->mute[conn % 256]) {
        return swallow(parts, count);
    }
    if (!trouble->trickle || prng_below(&trouble->prng, 2) == 0) {
        return trouble->real->send(trouble->real, conn, parts, count);
    }
    part.iov_len = 1 + prng_below(&trouble->prng, part.iov_len);
    return trouble->real->send(trouble->real, conn, &part, 1);
}

static ssize_t trouble_receive(struct io *io, int conn, const struct iovec *parts, int count,
                               struct io_stamp *ret_stamp)
{
    struct trouble *trouble = (struct trouble *)(void *)io;
    struct iovec part = parts[0];

    if (unlucky(trouble, trouble->reset_per_million) || is_cut(trouble, conn)) {
        trouble->resets++;
        return -ECONNRESET;
    }
    if (trouble->mute[conn % 256]) {
        return -EAGAIN;
    }
    if (trouble->trickle && prng_below(&trouble->prng, 2) == 0) {
        part.iov_len = 1 + prng_below(&trouble->prng, part.iov_len);
        count = 1;
    }
    if (trouble->receive_most > 0 && part.iov_len > trouble->receive_most) {
        part.iov_len = trouble->receive_most;
        count = 1;
    }
    ssize_t n =
        trouble->real->receive(trouble->real, conn, count == 1 ? &part : parts, count, ret_stamp);
    trouble->receives += n > 0;
    if (n > 0 && unlucky(trouble, trouble->flip_per_million)) {
        const size_t at =
            prng_below(&trouble->prng, (uint64_t)n < part.iov_len ? (uint64_t)n : part.iov_len);
        ((uint8_t *)part.iov_base)[at] ^= (uint8_t)(1u << prng_below(&trouble->prng, 8));
        trouble->flips++;
    }
    return n;
}

/* All other calls go straight to the real one. */
#define REAL(io) (((struct trouble *)(void *)(io))->real)
int64_t trouble_skipped_ns;
bool trouble_slowed, trouble_threads;
/* Threads of queue pairs read the clock, too. */
static pthread_mutex_t clock_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t lost_ns, skipped_ns; /* time that passed outside and not here; and here only */
static struct mono last;

static struct mono look(struct io *io)
{
    const struct mono real = REAL(io)->now(REAL(io));

    if (trouble_threads) { /* a sleeping thread sleeps outside */
        return mono_add(real, span_ns(trouble_skipped_ns - lost_ns));
    }
    if (last.ns == 0) {
        last = mono_add(real, span_ns(trouble_skipped_ns));
        skipped_ns = trouble_skipped_ns;
    }
    const int64_t passed = real.ns - lost_ns + skipped_ns - last.ns;
    const int64_t counts = trouble_slowed              ? TROUBLE_SLOWED_NS
                           : passed < TROUBLE_STALL_NS ? passed
                                                       : TROUBLE_STALL_NS;
    lost_ns += passed - counts;
    last = mono_add(last, span_ns(counts + trouble_skipped_ns - skipped_ns));
    skipped_ns = trouble_skipped_ns;
    return last;
}

static struct mono real_now(struct io *io)
{
    pthread_mutex_lock(&clock_lock);
    const struct mono now = look(io);
    pthread_mutex_unlock(&clock_lock);
    return now;
}
static struct io_stamp real_stamp(struct io *io)
{
    return REAL(io)->stamp(REAL(io));
}
static void real_random(struct io *io, void *bytes, size_t size)
{
    REAL(io)->random(REAL(io), bytes, size);
}
static int real_listen(struct io *io, const struct io_address *at, uint16_t low, uint16_t high,
                       int *ret_conn, uint16_t *ret_port)
{
    return REAL(io)->listen(REAL(io), at, low, high, ret_conn, ret_port);
}
static int real_accept(struct io *io, int listener, int *ret_conn, struct io_address *ret_local,
                       struct io_address *ret_peer)
{
    return REAL(io)->accept(REAL(io), listener, ret_conn, ret_local, ret_peer);
}
static int real_connect(struct io *io, const struct io_connect *connect_to, int *ret_conn)
{
    struct trouble *trouble = (struct trouble *)(void *)io;
    const uint8_t from = connect_to->from.ip[14], to = connect_to->to.ip[14];
    const bool astray = trouble->rails && (from != to || from == trouble->cut);

    if (astray && trouble->astray < 0) {
        return trouble->astray;
    }
    int r = REAL(io)->connect(REAL(io), connect_to, ret_conn);
    if (r == 0) {
        trouble->via[*ret_conn % 256] = from;
        trouble->lost[*ret_conn % 256] = astray;
    }
    return r;
}
static void real_carry(struct io *io, int conn, const struct io_connect *how)
{
    REAL(io)->carry(REAL(io), conn, how);
}
static int real_connected(struct io *io, int conn, struct io_address *ret_local)
{
    return ((struct trouble *)(void *)io)->lost[conn % 256]
               ? -EAGAIN
               : REAL(io)->connected(REAL(io), conn, ret_local);
}
static void real_close(struct io *io, int conn, bool reset)
{
    ((struct trouble *)(void *)io)->mute[conn % 256] = false;
    REAL(io)->close(REAL(io), conn, reset);
}
static void real_info(struct io *io, int conn, struct io_info *ret)
{
    const struct trouble *trouble = (struct trouble *)(void *)io;

    REAL(io)->info(REAL(io), conn, ret);
    ret->unacked += trouble->mute[conn % 256];
    if (trouble->rtt_ns > 0) {
        ret->rtt_ns = trouble->rtt_ns;
        ret->unacked = 5;
        ret->bytes_acked = 1;
        ret->ack_age_ns = NS_PER_MS;
    }
}
static void real_pace(struct io *io, int conn, uint64_t bytes_per_s)
{
    REAL(io)->pace(REAL(io), conn, bytes_per_s);
}
static int real_arm(struct io *io, int conn, uint64_t tag, uint32_t events)
{
    return REAL(io)->arm(REAL(io), conn, tag, events);
}
/* A waiting caller knows how much time passes: all of it, up to its limit. */
static int real_wait(struct io *io, struct mono until, struct io_event *ret_events, int capacity)
{
    const struct mono begin = REAL(io)->now(REAL(io)),
                      end = mono_add(until, span_ns(lost_ns - trouble_skipped_ns));
    const int r = REAL(io)->wait(REAL(io), end, ret_events, capacity);

    if (!trouble_threads && mono_before(begin, end)) {
        pthread_mutex_lock(&clock_lock);
        const struct mono woke = mono_min(REAL(io)->now(REAL(io)), end),
                          here = mono_add(woke, span_ns(skipped_ns - lost_ns));
        last = mono_before(last, here) ? here : last;
        pthread_mutex_unlock(&clock_lock);
    }
    return r;
}
static void real_kick(struct io *io)
{
    REAL(io)->kick(REAL(io));
}
static int real_carrier(struct io *io, const char *device, uint32_t *ret_downs)
{
    if (((struct trouble *)(void *)io)->no_interface) {
        return -ENODEV;
    }
    if (((struct trouble *)(void *)io)->no_carrier) {
        *ret_downs = 1;
        return 0;
    }
    return REAL(io)->carrier(REAL(io), device, ret_downs);
}

struct io *trouble_io(struct trouble *trouble, struct io *real)
{
    trouble->real = real;
    trouble->io = (struct io){.now = real_now,
                              .stamp = real_stamp,
                              .random = real_random,
                              .listen = real_listen,
                              .accept = real_accept,
                              .carry = real_carry,
                              .connect = real_connect,
                              .connected = real_connected,
                              .send = trouble_send,
                              .receive = trouble_receive,
                              .close = real_close,
                              .info = real_info,
                              .pace = real_pace,
                              .arm = real_arm,
                              .wait = real_wait,
                              .kick = real_kick,
                              .carrier = real_carrier};
    return &trouble->io;
}

/* tcp_clock.c: raw clock, fleet time and the kernel's stamps, cheap enough for each chunk. */
#include "base/prng.h"
#include "foliot/clock.h"
#include "transport/tcp_private.h"

#define CLOCK_CACHE_NS   100000 /* an oscillator with an error of 100 ppm is 10 ns off by then */
#define CACHE_ERROR_NS   25     /* that error, and rounding */
#define REALTIME_KEEP_NS 5000000
/* the kernel changes the rate of CLOCK_REALTIME by 2^-11 = 488 ppm at most */
#define STEERED_SHIFT 11
#define STAMP_OLD_NS  (10 * NS_PER_S)

static int64_t read_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

struct mono tcp_now(struct io *io)
{
    (void)io;
    return (struct mono){read_ns(CLOCK_MONOTONIC_RAW)};
}

void tcp_clock_init(struct tcp *tcp)
{
    tcp->unsynced_offset = read_ns(CLOCK_REALTIME) - read_ns(CLOCK_MONOTONIC_RAW);
    tcp->cached_raw = INT64_MIN / 2;
    tcp->realtime_raw = INT64_MIN / 2;
}

/* The page's stamp for a raw time, without the cache. */
static struct io_stamp ask(struct tcp *tcp, int64_t raw)
{
    struct foliot_time time;
    const enum foliot_status status = foliot_from_raw(raw, &time);

    if (status == FOLIOT_UNKNOWN || status == FOLIOT_DISRUPTED || time.likely_ns == INT64_MAX ||
        time.likely_ns >= IO_HALF_UNKNOWN) {
        return (struct io_stamp){.at = {raw + tcp->unsynced_offset}, .half_ns = IO_HALF_UNKNOWN};
    }
    return (struct io_stamp){
        .at = {time.estimate_ns},
        .half_ns = (uint32_t)time.likely_ns,
        .epoch = (uint32_t)hash_u64(time.timeline, time.epoch) | 1,
    };
}

/* The cached pair, if it is near enough to `raw`. */
static bool cached(struct tcp *tcp, int64_t raw, struct io_stamp *ret)
{
    const uint32_t before = __atomic_load_n(&tcp->sequence, __ATOMIC_ACQUIRE);
    const int64_t base = __atomic_load_n(&tcp->cached_raw, __ATOMIC_ACQUIRE);
    const int64_t at = __atomic_load_n(&tcp->cached_at, __ATOMIC_ACQUIRE);
    const uint32_t half = __atomic_load_n(&tcp->cached_half, __ATOMIC_ACQUIRE);
    const uint32_t epoch = __atomic_load_n(&tcp->cached_epoch, __ATOMIC_ACQUIRE);

    if ((before & 1) != 0 || raw - base > CLOCK_CACHE_NS || base - raw > CLOCK_CACHE_NS ||
        __atomic_load_n(&tcp->sequence, __ATOMIC_RELAXED) != before) {
        return false;
    }
    *ret = (struct io_stamp){.at = {at + (raw - base)}, .half_ns = half, .epoch = epoch};
    if (half != IO_HALF_UNKNOWN) {
        ret->half_ns += CACHE_ERROR_NS;
    }
    return true;
}

static void renew(struct tcp *tcp, int64_t raw, const struct io_stamp *stamp)
{
    uint32_t before = __atomic_load_n(&tcp->sequence, __ATOMIC_RELAXED);

    if ((before & 1) != 0 ||
        !__atomic_compare_exchange_n(&tcp->sequence, &before, before + 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
        return; /* another thread renews it */
    }
    __atomic_store_n(&tcp->cached_raw, raw, __ATOMIC_RELEASE);
    __atomic_store_n(&tcp->cached_at, stamp->at.ns, __ATOMIC_RELEASE);
    __atomic_store_n(&tcp->cached_half, stamp->half_ns, __ATOMIC_RELEASE);
    __atomic_store_n(&tcp->cached_epoch, stamp->epoch, __ATOMIC_RELEASE);
    __atomic_store_n(&tcp->sequence, before + 2, __ATOMIC_RELEASE);
}

static struct io_stamp stamp_of_raw(struct tcp *tcp, int64_t raw, int64_t now)
{
    struct io_stamp stamp;

    if (!cached(tcp, raw, &stamp)) {
        stamp = ask(tcp, raw);
        if (raw == now) {
            renew(tcp, raw, &stamp);
        }
    }
    return stamp;
}

struct io_stamp tcp_stamp(struct io *io)
{
    const int64_t now = read_ns(CLOCK_MONOTONIC_RAW);

    return stamp_of_raw(io->driver, now, now);
}

void tcp_stamp_of(struct tcp *tcp, const struct timespec *kernel, struct io_stamp *ret)
{
    const int64_t now = read_ns(CLOCK_MONOTONIC_RAW);
    const int64_t at = (int64_t)kernel->tv_sec * NS_PER_S + kernel->tv_nsec;

    if (at == 0) {
        *ret = stamp_of_raw(tcp, now, now);
        return;
    }
    int64_t seen = __atomic_load_n(&tcp->realtime_raw, __ATOMIC_ACQUIRE);
    int64_t raw = at - __atomic_load_n(&tcp->realtime_offset, __ATOMIC_RELAXED);
    /* It is renewed when it is old, and when a stamp looks wrong: CLOCK_REALTIME was set. Two threads that do so at once both
     * write good values. */
    if (now - seen > REALTIME_KEEP_NS || raw > now || now - raw > STAMP_OLD_NS) {
        const int64_t offset = read_ns(CLOCK_REALTIME) - read_ns(CLOCK_MONOTONIC_RAW);
        __atomic_store_n(&tcp->realtime_offset, offset, __ATOMIC_RELAXED);
        __atomic_store_n(&tcp->realtime_raw, now, __ATOMIC_RELEASE);
        seen = now;
        raw = at - offset;
    }
    if (raw > now + NS_PER_MS || now - raw > STAMP_OLD_NS) {
        /* the stamp is of another clock than the one that was read: invalid */
        *ret = stamp_of_raw(tcp, now, now);
        return;
    }
    raw = raw > now ? now : raw;
    *ret = stamp_of_raw(tcp, raw, now);
    ret->kernel = true;
    if (ret->half_ns != IO_HALF_UNKNOWN) {
        ret->half_ns += (uint32_t)((now - raw + (now - seen)) >> STEERED_SHIFT) + 50;
    }
}

/* credit.c: see credit.h. */
#include "core/traffic/credit.h"

#define INTERVAL_NS   (2 * NS_PER_MS)
#define INTERVAL_RTTS 4
#define INTERVAL_MAX  (200 * NS_PER_MS)
/* an interval has room for at least so many, at the last interval's rate */
#define CHUNKS      16
#define STANDING    3
#define TARGET_NS   (20 * NS_PER_US)
#define DRY_SHARE   0.95
#define TOO_WIDE    8
#define ALONE_NS    (100 * NS_PER_MS)
#define POOR_SHARE  0.9
#define POOR        8
#define MOST_MEMORY 16 /* intervals */
/* it grows by two for each such interval, and falls by one for each other one */
#define ELSEWHERE     16
#define ELSEWHERE_NS  (500 * NS_PER_MS) /* and for so long; afterwards not again for */
#define BAR_ELSEWHERE (8 * NS_PER_S)
#define LESS_SHARE    0.97
/* in links: an exchange demands one, two senders without other receivers demand two */
#define OVERLOAD   1.5
#define BAR_MIN_NS NS_PER_S
#define BAR_MAX_NS (64 * NS_PER_S)

void credit_init(struct credit *c, struct mono now)
{
    *c = (struct credit){.interval = 1,
                         .began = now,
                         .queue_ns = CREDIT_QUEUE_UNKNOWN,
                         .queue_last_ns = CREDIT_QUEUE_UNKNOWN,
                         .alone = MONO_NEVER,
                         .barred = now,
                         .bar = span_ns(BAR_MIN_NS)};
}

void credit_on_rtt(struct credit *c, struct span rtt)
{
    if (rtt.ns > 0 && (c->rtt_ns == 0 || rtt.ns < c->rtt_ns)) {
        c->rtt_ns = rtt.ns;
    }
}

void credit_on_arrivals(struct credit *c, struct mono now, const struct credit_arrivals *a)
{
    credit_tick(c, now);
    c->bytes += a->bytes;
    c->queue_ns = a->queue_ns < c->queue_ns ? a->queue_ns : c->queue_ns;
    c->delay_ns += a->delay_ns;
    c->delays += a->delays;
    c->noise_ns = a->noise_ns > c->noise_ns ? a->noise_ns : c->noise_ns;
    c->chunk_now = a->chunk > c->chunk_now ? a->chunk : c->chunk_now;
    c->chunk = c->chunk_now > c->chunk ? c->chunk_now : c->chunk;
    c->comms += a->comms;
    c->sets += a->first;
    c->demand += a->first ? 1.0 / (a->receivers > 0 ? a->receivers : 1) : 0;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The time until so many bytes have come, at the last interval's rate. */
static int64_t time_of(const struct credit *c, double bytes)
{
    return c->rate > 0 ? (int64_t)(bytes / c->rate) : 0;
}

static int64_t target_of(const struct credit *c)
{
    const int64_t own = larger(c->rtt_ns / 2, time_of(c, 2.0 * c->chunk));

    return larger(larger(own, TARGET_NS), c->noise_ns);
}

/* Long enough for chunks of all senders, and for the effect of the last grant. */
static int64_t length_of(const struct credit *c)
{
    const double chunks = c->active > CHUNKS / 2 ? 2.0 * c->active : CHUNKS;
    const int64_t base = larger(INTERVAL_RTTS * c->rtt_ns, time_of(c, chunks * c->chunk));
    const int64_t shows = c->window > 0 && c->queue_last_ns != CREDIT_QUEUE_UNKNOWN
                              ? c->rtt_ns + c->queue_last_ns
                              : 0;
    const int64_t length = larger(larger(INTERVAL_NS, base), shows);

    return length < INTERVAL_MAX ? length : INTERVAL_MAX;
}

static void end(struct credit *c)
{
    c->window = 0;
    c->standing = c->poor = c->elsewhere = 0;
}

/* Bytes in flight if the link is full, with that queue before it and with the queues elsewhere. */
static double needed(const struct credit *c, int64_t queue_ns)
{
    return c->rate_most * (double)(c->rtt_ns + queue_ns + c->elsewhere_ns);
}

/* For the ending interval: the mean excess of chunks' delays over the least one. */
static int64_t delay_elsewhere(const struct credit *c)
{
    const double mean = c->delays > 0 ? c->delay_ns / c->delays : 0;

    return c->delays > 0 && mean > (double)c->queue_ns ? (int64_t)(mean - (double)c->queue_ns) : 0;
}

static void mean_add(struct credit_mean *mean, double bytes, int64_t ns)
{
    mean->bytes += bytes;
    mean->ns += ns;
    if (mean->ns > ELSEWHERE_NS) {
        mean->bytes /= 2;
        mean->ns /= 2;
    }
}

static bool comes_less(const struct credit *c)
{
    return c->held.bytes * (double)c->free.ns < LESS_SHARE * c->free.bytes * (double)c->held.ns;
}

static void consider(struct credit *c, struct mono now, bool stands)
{
    if (!stands) {
        c->standing = 0;
        return;
    }
    c->rate_before = c->standing == 0 || c->rate < c->rate_before ? c->rate : c->rate_before;
    if (++c->standing >= STANDING && !mono_before(now, c->barred)) {
        c->window = needed(c, c->queue_last_ns);
        c->poor = 0;
        c->begins++;
        c->held = (struct credit_mean){0};
        c->limited = now;
    }
}

static void bar(struct credit *c, struct mono now)
{
    c->harms++;
    c->barred = mono_add(now, c->bar);
    c->bar.ns = c->bar.ns * 2 < BAR_MAX_NS ? c->bar.ns * 2 : BAR_MAX_NS;
}

/* Less comes than before although a queue stands: other traffic takes what these limits leave. */
static bool harmful(struct credit *c, struct mono now, bool stands)
{
    c->poor = stands && c->rate < POOR_SHARE * c->rate_before ? c->poor + 1 : 0;
    if (c->poor < POOR) {
        return false;
    }
    bar(c, now);
    return true;
}

/* Limits no longer help: chunks still wait, but not before this link. */
static bool in_vain(struct credit *c, struct mono now)
{
    const int64_t here = larger(c->queue_last_ns, target_of(c));

    if (c->queue_last_ns == CREDIT_QUEUE_UNKNOWN) {
        return false;
    }
    c->elsewhere += c->elsewhere_ns > 2 * here ? 2 : c->elsewhere > 0 ? -1 : 0;
    c->elsewhere = c->elsewhere < ELSEWHERE ? c->elsewhere : ELSEWHERE;
    if (c->elsewhere < ELSEWHERE || mono_sub(now, c->limited).ns < ELSEWHERE_NS || !comes_less(c)) {
        return false;
    }
    c->bar.ns = larger(c->bar.ns, BAR_ELSEWHERE);
    bar(c, now);
    return true;
}

/* The link must not run dry. But the effect of each step shows as a queue only when the link is full again. */
static void widen(struct credit *c, int64_t target, double least)
{
    const double step = c->rate * (double)target / 2, more = c->window / 8;

    c->window += c->rate < DRY_SHARE * c->rate_before && more > step ? more : step;
    if (c->window > TOO_WIDE * (needed(c, target) + least)) {
        end(c);
    }
}

static void adjust(struct credit *c)
{
    const int64_t target = target_of(c), queue = c->queue_last_ns;
    const double least = (double)(c->chunk > 0 ? c->chunk : 1) * (c->active > 0 ? c->active : 1);

    if (queue > target) {
        const double less = c->rate * (double)(queue - target);
        const double enough = needed(c, target), before = c->window;
        const double after = before - (less < before / 2 ? less : before / 2);
        c->window = after > enough ? after : before < enough ? before : enough;
        c->window = c->window > least ? c->window : least;
    } else if (queue < target / 2) {
        c->window = c->window > least ? c->window : least;
        widen(c, target, least);
    }
}

static void judge(struct credit *c, struct mono now)
{
    const bool known = c->queue_last_ns != CREDIT_QUEUE_UNKNOWN;
    const bool many = c->sets > 1 && c->demand > OVERLOAD;
    const bool stands = known && many && c->queue_last_ns > target_of(c);

    c->alone = many ? MONO_NEVER : mono_min(c->alone, now);
    if (c->window <= 0) {
        consider(c, now, stands);
    } else if ((!many && mono_sub(now, c->alone).ns >= ALONE_NS) || harmful(c, now, stands) ||
               in_vain(c, now)) {
        end(c);
    } else if (known) {
        adjust(c);
    }
}

void credit_tick(struct credit *c, struct mono now)
{
    const int64_t ns = mono_sub(now, c->began).ns;

    if (ns < length_of(c) || c->bug.condition != NULL) {
        return;
    }
    if (!HOLDS(&c->bug, c->window >= 0 && c->rate >= 0)) {
        end(c);
        return;
    }
    c->rate = (double)c->bytes / (double)ns;
    c->rate_most -= c->rate_most / MOST_MEMORY;
    c->rate_most = c->rate > c->rate_most ? c->rate : c->rate_most;
    if (c->sets > 1) {
        mean_add(c->window > 0 ? &c->held : &c->free, (double)c->bytes, ns);
    }
    c->queue_last_ns = c->queue_ns;
    c->elsewhere_ns = delay_elsewhere(c);
    c->active = c->comms;
    judge(c, now);
    c->interval++;
    c->began = now;
    c->bytes = 0;
    c->delay_ns = c->delays = 0;
    c->queue_ns = CREDIT_QUEUE_UNKNOWN;
    c->sets = c->comms = 0;
    c->demand = 0;
    /* a size that is no longer sent is forgotten */
    c->chunk = c->chunk_now > 0 ? c->chunk_now : c->chunk;
    c->chunk_now = 0;
    c->noise_ns = c->noise_ns / 2;
}

uint64_t credit_window(const struct credit *c)
{
    const double share = c->window / (c->active > 0 ? c->active : 1);

    if (c->window <= 0 || c->bug.condition != NULL) {
        return CREDIT_UNLIMITED;
    }
    return share > c->chunk ? (uint64_t)share : c->chunk;
}

const struct bug_note *credit_bug(const struct credit *c)
{
    return c->bug.condition != NULL ? &c->bug : NULL;
}

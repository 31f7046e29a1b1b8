/* matrix_plan.c: tournaments by the circle method, and an order of rounds that is drawn. */
#include "core/audit/matrix_plan.h"

#include <stddef.h>

#include "base/limits.h"
#include "base/prng.h"
#include "base/time.h"

static uint32_t even(uint32_t n)
{
    return n + n % 2;
}

/* The opponent of `a` of n players in round t of n - 1 (n even; player n - 1 stays, the others rotate). n may be one more than
 * there are players: the opponent of that one rests. */
static uint32_t opponent(uint32_t n, uint32_t t, uint32_t a)
{
    const uint32_t circle = n - 1;
    if (a == circle) { /* 2 b = t modulo an odd number */
        return (uint32_t)((uint64_t)t * (n / 2) % circle);
    }
    const uint32_t b = (t + circle - a) % circle;
    return b == a ? circle : b;
}

/* The inverse: the round in which these two meet. */
static uint32_t meeting(uint32_t n, uint32_t a, uint32_t b)
{
    const uint32_t circle = n - 1;
    return a == circle ? 2 * b % circle : b == circle ? 2 * a % circle : (a + b) % circle;
}

static uint32_t rail_rounds(const struct matrix_plan *p)
{
    return p->hosts > 1 ? even(p->hosts) - 1 : 0;
}

static uint32_t cross_rounds(const struct matrix_plan *p)
{
    return p->rails > 1 && !p->rails_only ? (even(p->rails) - 1) * p->hosts : 0;
}

uint32_t matrix_rail_rounds(const struct matrix_plan *p)
{
    return rail_rounds(p);
}

uint32_t matrix_rounds(const struct matrix_plan *p)
{
    return rail_rounds(p) + cross_rounds(p);
}

uint32_t matrix_port(const struct matrix_plan *p, uint32_t round, uint32_t packet)
{
    return round < rail_rounds(p) && packet < p->packets ? packet : 0;
}

bool matrix_is_marked(const struct matrix_plan *p, uint32_t round, uint32_t packet)
{
    return p->dscp != 0 && round < rail_rounds(p) && packet == p->packets - 1;
}

int64_t matrix_end_ns(const struct matrix_plan *p)
{
    return p->begin_ns + (int64_t)matrix_rounds(p) * p->round_ns;
}

int64_t matrix_answer_ns(const struct matrix_plan *p, uint32_t host)
{
    return matrix_end_ns(p) + (int64_t)host * p->rails * MATRIX_ROW_NS;
}

const char *matrix_plan_wrong(const struct matrix_plan *p)
{
    if (p->hosts < 2 || p->rails == 0 || p->hosts > MATRIX_NICS_MAX || p->rails > MATRIX_NICS_MAX ||
        (uint64_t)p->hosts * p->rails > MATRIX_NICS_MAX) {
        return "it is for two hosts at least and 16,384 NICs at most";
    }
    if (p->dscp > MATRIX_DSCP_MAX) {
        return "a DSCP is 63 at most";
    }
    if (p->packets < 2 || p->packets > MATRIX_PACKETS_MAX) {
        return "2 to 7 packets of a pair are sent";
    }
    if (p->round_ns < MATRIX_ROUND_NS_MIN || p->round_ns > NS_PER_S || p->gap_ns < NS_PER_MS ||
        p->gap_ns * (p->packets - 1) + 2 * MATRIX_GUARD_NS > p->round_ns) {
        return "a round takes 5 ms to 1 s, and its packets fit into it";
    }
    if (matrix_rounds(p) > AUDIT_ROUNDS_MAX || p->begin_ns <= 0 ||
        matrix_rounds(p) * p->round_ns > MATRIX_S_MAX * NS_PER_S) {
        return "all rounds take half an hour at most";
    }
    return NULL;
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        const uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A stride that visits all `count` rounds, near their golden section: so each stretch is spread evenly. */
static uint32_t find_stride(uint64_t seed, uint32_t count)
{
    uint32_t step = (uint32_t)(0.6180339887 * count) + (uint32_t)(hash_u64(seed, count) % 8);
    if (step == 0) {
        step = 1;
    }
    while (common_divisor(step, count) != 1) {
        step++;
    }
    return step % count == 0 ? 1 : step % count;
}

enum { OF_RAILS, OF_CROSS };

static uint32_t count_of(const struct matrix_plan *p, int part)
{
    return part == OF_RAILS ? rail_rounds(p) : cross_rounds(p);
}

void matrix_plan_ready(struct matrix_plan *p)
{
    for (int part = OF_RAILS; part <= OF_CROSS; part++) {
        const uint32_t count = count_of(p, part);
        p->stride[part] = count > 0 ? find_stride(p->seed, count) : 0;
    }
}

static uint32_t stride(const struct matrix_plan *p, int part)
{
    return p->stride[part] != 0 ? p->stride[part] : find_stride(p->seed, count_of(p, part));
}

/* The place of the k-th round in the drawn order, and back. */
static uint32_t drawn(const struct matrix_plan *p, int part, uint32_t k)
{
    const uint32_t count = count_of(p, part);
    return (
        uint32_t)(((uint64_t)k * stride(p, part) + (uint32_t)hash_u64(p->seed, ~(uint64_t)count)) %
                  count);
}

static uint32_t drawn_back(const struct matrix_plan *p, int part, uint32_t at)
{
    const uint32_t count = count_of(p, part), first = drawn(p, part, 0);
    const int64_t step = stride(p, part);
    /* Euclid's algorithm: y * step = next modulo count */
    int64_t r = count, next = step, x = 0, y = 1;
    while (next > 0) {
        const int64_t quotient = r / next, rest = r - quotient * next, z = x - quotient * y;
        r = next;
        next = rest;
        x = y;
        y = z;
    }
    const uint64_t inverse = (uint64_t)(x % (int64_t)count + (int64_t)count) % count;
    return (uint32_t)((at + count - first) % count * inverse % count);
}

static uint32_t cross_partner(const struct matrix_plan *p, uint32_t k, uint32_t host, uint32_t rail)
{
    const uint32_t other = opponent(even(p->rails), k / p->hosts, rail), shift = k % p->hosts;
    if (other >= p->rails) {
        return MATRIX_NONE;
    }
    const uint32_t far =
        rail < other ? (host + shift) % p->hosts : (host + p->hosts - shift) % p->hosts;
    return far * p->rails + other;
}

uint32_t matrix_partner(const struct matrix_plan *p, uint32_t round, uint32_t nic)
{
    const uint32_t rails = rail_rounds(p), host = nic / p->rails, rail = nic % p->rails;
    if (round >= rails) {
        const uint32_t k = round - rails;
        return k < cross_rounds(p) ? cross_partner(p, drawn(p, OF_CROSS, k), host, rail)
                                   : MATRIX_NONE;
    }
    const uint32_t far = opponent(even(p->hosts), drawn(p, OF_RAILS, round), host);
    return far < p->hosts ? far * p->rails + rail : MATRIX_NONE;
}

uint32_t matrix_round_of(const struct matrix_plan *p, uint32_t nic, uint32_t other)
{
    const uint32_t rails = rail_rounds(p), h = nic / p->rails, r = nic % p->rails,
                   g = other / p->rails, s = other % p->rails;
    if (nic == other || (p->rails_only && r != s)) {
        return MATRIX_NONE;
    }
    if (r == s) {
        return drawn_back(p, OF_RAILS, meeting(even(p->hosts), h, g));
    }
    const uint32_t shift = (r < s ? g + p->hosts - h : h + p->hosts - g) % p->hosts;
    const uint32_t k = meeting(even(p->rails), r, s) * p->hosts + shift;
    return rails + drawn_back(p, OF_CROSS, k);
}

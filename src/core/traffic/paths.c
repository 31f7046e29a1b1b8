/* paths.c: see paths.h. */
#include "core/traffic/paths.h"

#include <string.h>

#include "base/bug.h"
#include "base/prng.h"

#define SHARED     2 /* the cost of another lane at a hop with the same router */
#define UNKNOWN    1 /* and at a hop with an unknown one */
#define HOP_BITS   8
#define OTHERS_MAX 100 /* their costs at one hop are below 2^HOP_BITS */

void paths_init(struct paths *p, const uint16_t *ports, uint32_t count)
{
    memset(p, 0, sizeof(*p));
    for (uint32_t i = 0; i < count && p->count < PATH_PORTS_MAX; i++) {
        if (ports[i] != 0) {
            p->ports[p->count++] = ports[i];
        }
    }
}

void paths_on_answer(struct paths *p, uint32_t port, uint32_t hop, const uint8_t router[16])
{
    uint64_t halves[2];

    if (port >= p->count || hop >= PATH_HOPS_MAX) {
        return;
    }
    memcpy(halves, router, sizeof(halves));
    const uint64_t name = hash_u64(halves[0], halves[1]);
    p->routers[port][hop] = name != 0 ? name : 1;
}

/* True if some ports' answers differ there: a hop with one common router shows nothing. */
static bool tells(const struct paths *p, uint32_t hop)
{
    uint64_t first = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        const uint64_t router = p->routers[i][hop];
        if (first != 0 && router != 0 && router != first) {
            return true;
        }
        first = router != 0 ? router : first;
    }
    return false;
}

/* Bit k: hop k distinguishes ports. */
static uint32_t telling_hops(const struct paths *p)
{
    uint32_t hops = 0;

    for (uint32_t hop = 0; hop < PATH_HOPS_MAX; hop++) {
        hops |= tells(p, hop) ? 1u << hop : 0;
    }
    return hops;
}

bool paths_known(const struct paths *p)
{
    return telling_hops(p) != 0;
}

_Static_assert(HOP_BITS *PATH_HOPS_MAX < 64, "a cost has room for each hop");

/* The cost of a shared path at that hop: a nearer hop outweighs all further ones. */
static uint64_t weigh(uint32_t hop, uint64_t cost)
{
    return cost << (HOP_BITS * (PATH_HOPS_MAX - 1 - hop));
}

static uint32_t compare(uint64_t x, uint64_t y)
{
    return x == 0 || y == 0 ? UNKNOWN : x == y ? SHARED : 0;
}

/* The cost of port i beside a lane with port j; j == p->count: that lane's routers are unknown. telling: the hops that count. */
static uint64_t beside(const struct paths *p, uint32_t telling, uint32_t i, uint32_t j)
{
    uint64_t cost = i == j ? weigh(PATH_HOPS_MAX - 1, 1) : 0;

    for (; telling != 0; telling &= telling - 1) {
        const uint32_t hop = (uint32_t)__builtin_ctz(telling);
        cost += weigh(hop, i == j         ? SHARED
                           : j < p->count ? compare(p->routers[i][hop], p->routers[j][hop])
                                          : UNKNOWN);
    }
    return cost;
}

static uint64_t silence(const struct paths *p, uint32_t telling, uint32_t port)
{
    uint64_t cost = 0;

    for (; telling != 0; telling &= telling - 1) {
        const uint32_t hop = (uint32_t)__builtin_ctz(telling);
        cost += p->routers[port][hop] == 0 ? weigh(hop, UNKNOWN) : 0;
    }
    return cost;
}

int paths_choose(struct paths *p, const uint16_t *others, uint32_t count, uint32_t first)
{
    const uint32_t telling = telling_hops(p);
    uint64_t least = UINT64_MAX;
    int best = -1;

    ASSERT(count <= OTHERS_MAX);
    for (uint32_t k = 0; k < p->count; k++) {
        const uint32_t i = (first % p->count + k) % p->count;
        uint64_t cost = silence(p, telling, i);
        for (uint32_t o = 0; o < count; o++) {
            uint32_t j = 0;
            while (j < p->count && p->ports[j] != others[o]) {
                j++;
            }
            cost += beside(p, telling, i, j);
        }
        if (cost < least || (cost == least && p->taken[i] < p->taken[best])) {
            least = cost;
            best = (int)i;
        }
    }
    if (best >= 0) {
        p->taken[best]++;
    }
    return best;
}

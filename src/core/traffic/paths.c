/* paths.c: see paths.h. */
#include "core/traffic/paths.h"

#include <string.h>

#include "base/prng.h"

#define SHARED  2 /* what another lane counts where it has the same path, */
#define UNKNOWN 1 /* and where nobody knows */

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

/* Whether some ports' answers differ there: where all have the same router, it tells nothing. */
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

bool paths_known(const struct paths *p)
{
    bool known = false;

    for (uint32_t hop = 0; hop < PATH_HOPS_MAX; hop++) {
        known = known || tells(p, hop);
    }
    return known;
}

/* Routers between which paths differ didn't answer all of its packets. */
static bool silent(const struct paths *p, uint32_t port)
{
    bool missing = false;

    for (uint32_t hop = 0; hop < PATH_HOPS_MAX; hop++) {
        missing = missing || (p->routers[port][hop] == 0 && tells(p, hop));
    }
    return missing;
}

static uint32_t shares(const struct paths *p, uint32_t a, uint32_t b)
{
    for (uint32_t hop = 0; hop < PATH_HOPS_MAX; hop++) {
        const uint64_t x = p->routers[a][hop], y = p->routers[b][hop];
        if (x != 0 && y != 0 && x != y) {
            return 0;
        }
    }
    return a == b || (paths_known(p) && !silent(p, a) && !silent(p, b)) ? SHARED : UNKNOWN;
}

int paths_choose(struct paths *p, const uint16_t *others, uint32_t count, uint32_t first)
{
    uint32_t least = UINT32_MAX;
    int best = -1;

    for (uint32_t k = 0; k < p->count; k++) {
        const uint32_t i = (first % p->count + k) % p->count;
        uint32_t shared = silent(p, i) ? UNKNOWN : 0;
        for (uint32_t o = 0; o < count; o++) {
            uint32_t j = 0;
            while (j < p->count && p->ports[j] != others[o]) {
                j++;
            }
            shared += j < p->count ? shares(p, i, j) : UNKNOWN;
        }
        if (shared < least || (shared == least && p->taken[i] < p->taken[best])) {
            least = shared;
            best = (int)i;
        }
    }
    if (best >= 0) {
        p->taken[best]++;
    }
    return best;
}

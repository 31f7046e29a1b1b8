/* reach.c: see reach.h. */
#include "core/audit/reach.h"

#include "base/prng.h"

/* All hosts are in a ring. Each one's peers are at two strides, before and behind it. */
uint32_t reach_peers(uint64_t seed, uint32_t count, uint32_t index,
                     uint32_t ret_peers[static REACH_PEERS])
{
    const uint32_t half = count / 2;
    uint32_t strides[REACH_PEERS / 2] = {1, 2}, n = 0;
    struct prng p;

    if (count < 2) {
        return 0;
    }
    if (half > REACH_PEERS / 2) {
        prng_init(&p, seed);
        strides[0] = 1 + (uint32_t)prng_below(&p, half);
        strides[1] = 1 + (uint32_t)prng_below(&p, half - 1);
        strides[1] += strides[1] >= strides[0];
    }
    for (int k = 0; k < REACH_PEERS / 2 && strides[k] <= half; k++) {
        ret_peers[n++] = (index + strides[k]) % count;
        if (strides[k] * 2 != count) { /* else both are the same host */
            ret_peers[n++] = (index + count - strides[k]) % count;
        }
    }
    return n;
}

/* badstart.bpf.c: an unlucky draw of ports, at a leaf's ports to its hosts: until UNTIL_NS all connections between two hosts are
 * put on one uplink, whatever their ports are. A connection stays on its uplink. Later ones get any uplink, at random, as with
 * random ports. Compiled and attached by balance.py. The mark that it sets selects the route.
 *
 * FIRST_HOST, LAST_HOST: this leaf's own. DRAW: a number that selects the uplink of each two hosts. */
#include "uplinks.bpf.h"

struct {
    int (*type)[BPF_MAP_TYPE_LRU_HASH];
    struct flow *key;
    __u32 *value;
    int (*max_entries)[16384];
    int (*pinning)[1]; /* pinned by name: the leaf's ports share it */
} foliot_uplinks SECTION(".maps");

/* The uplink of two hosts, in one direction. */
static __u32 drawn(const struct flow *flow)
{
    __u32 x = (__u32)flow->source[1] << 16 | (__u32)flow->destination[1] << 8 | DRAW;

    x = (x ^ x >> 16) * 0x7feb352dU;
    x = (x ^ x >> 15) * 0x846ca68bU;
    return (x ^ x >> 16) % UPLINKS;
}

SECTION("tc") int badstart(struct __sk_buff *skb)
{
    struct flow flow = {0};

    if (!leaves(skb, &flow)) {
        return TC_ACT_UNSPEC;
    }
    const __u32 *known = map_lookup(&foliot_uplinks, &flow);
    __u32 uplink = known != NULL ? *known : now_ns() < UNTIL_NS ? drawn(&flow) : chance() % UPLINKS;
    if (known == NULL) {
        map_update(&foliot_uplinks, &flow, &uplink, BPF_ANY);
    }
    skb->mark = MARK + uplink;
    return TC_ACT_UNSPEC;
}

SECTION("license") char terms_of_use[] = "Apache-2.0";

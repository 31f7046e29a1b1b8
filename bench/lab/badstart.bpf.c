/* badstart.bpf.c: an unlucky draw of ports, at a leaf's ports to its hosts: until UNTIL_NS all connections between two hosts
 * are put on one uplink, whatever their ports. A connection stays where it was put. Later ones go to any uplink, by chance, as
 * ports would have it. Compiled and attached by balance.py; the mark that it leaves chooses the route.
 *
 * FIRST_HOST, LAST_HOST: this leaf's own. DRAW: which uplink is whose. */
#include "uplinks.bpf.h"

struct {
    int (*type)[BPF_MAP_TYPE_LRU_HASH];
    struct flow *key;
    __u32 *value;
    int (*max_entries)[16384];
    int (*pinning)[1]; /* by name: the leaf's ports share it */
} foliot_uplinks SECTION(".maps");

/* Of two hosts, one way. */
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

/* balance.bpf.c: plays a switch with dynamic load balancing, at a leaf's ports to its hosts: each flowlet takes the uplink with
 * the shortest queue. Compiled and attached by balance.py. The mark that it sets selects the route.
 *
 * It keeps a queue for each uplink. Sent packets fill the queue, and the uplink's exact rate drains it. So its length is exact
 * and known at once, which it is in no switch: this is an upper bound of what switches do. FIRST_HOST, LAST_HOST: this leaf's
 * own. RATE_MBPS, BUFFER_BYTES: of an uplink. SLOW_UPLINK (or -1) has a tenth of the rate. */
#include "uplinks.bpf.h"

#define GAP_NS 10000000ULL

static long (*lock)(struct bpf_spin_lock *) = (void *)BPF_FUNC_spin_lock;
static long (*unlock)(struct bpf_spin_lock *) = (void *)BPF_FUNC_spin_unlock;

struct flowlet {
    __u64 last_ns;
    __u32 uplink;
    __u32 reserved;
};
struct leaf {
    struct bpf_spin_lock lock;
    __u32 reserved;
    __u64 at_ns;
    __u64 queue_ns[UPLINKS]; /* time until everything that waits there has left */
};

struct {
    int (*type)[BPF_MAP_TYPE_LRU_HASH];
    struct flow *key;
    struct flowlet *value;
    int (*max_entries)[4096];
    int (*pinning)[1]; /* pinned by name: the leaf's ports share them */
} foliot_flowlets SECTION(".maps");
struct {
    int (*type)[BPF_MAP_TYPE_ARRAY];
    __u32 *key;
    struct leaf *value;
    int (*max_entries)[1];
    int (*pinning)[1];
} foliot_leaf SECTION(".maps");

static __u64 cost_ns(__u64 bytes, __u32 uplink)
{
    return bytes * 8000 / RATE_MBPS * ((int)uplink == SLOW_UPLINK ? 10 : 1);
}

SECTION("tc") int balance(struct __sk_buff *skb)
{
    struct flow flow = {0};
    const __u64 now = now_ns();
    const __u64 bytes = skb->len + (skb->gso_segs > 1 ? (skb->gso_segs - 1) * 66ULL : 0);
    const __u32 zero = 0, first = chance() % UPLINKS;

    if (!leaves(skb, &flow)) {
        return TC_ACT_UNSPEC;
    }
    struct leaf *leaf = map_lookup(&foliot_leaf, &zero);
    struct flowlet *known = map_lookup(&foliot_flowlets, &flow);
    if (leaf == NULL) {
        return TC_ACT_UNSPEC;
    }
    const int keep = known != NULL && now - known->last_ns < GAP_NS;
    __u32 uplink = keep ? known->uplink % UPLINKS : first;
    lock(&leaf->lock);
    const __u64 passed = now > leaf->at_ns ? now - leaf->at_ns : 0;
    leaf->at_ns += passed;
    __u64 least = ~0ULL;
#pragma unroll
    for (__u32 i = 0; i < UPLINKS; i++) {
        const __u32 k = (first + i) % UPLINKS;
        leaf->queue_ns[k] = leaf->queue_ns[k] > passed ? leaf->queue_ns[k] - passed : 0;
        if (!keep && leaf->queue_ns[k] < least) {
            least = leaf->queue_ns[k];
            uplink = k;
        }
    }
    if (leaf->queue_ns[uplink % UPLINKS] + cost_ns(bytes, uplink) <=
        cost_ns(BUFFER_BYTES, uplink)) { /* else it is dropped there */
        leaf->queue_ns[uplink % UPLINKS] += cost_ns(bytes, uplink);
    }
    unlock(&leaf->lock);
    const struct flowlet seen = {.last_ns = now, .uplink = uplink};
    map_update(&foliot_flowlets, &flow, &seen, BPF_ANY);
    skb->mark = MARK + uplink;
    return TC_ACT_UNSPEC;
}

SECTION("license") char terms_of_use[] = "Apache-2.0";

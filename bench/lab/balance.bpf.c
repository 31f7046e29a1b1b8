/* balance.bpf.c: what a switch with dynamic load balancing does, at a leaf's ports to its hosts: each
 * flowlet goes by the uplink with the shortest queue. Compiled and attached by balance.py; the mark
 * that it leaves chooses the route.
 *
 * Queues are kept here, one an uplink, filled by what is sent and drained at the uplink's very rate:
 * exact and known at once, which no switch has: an upper bound of what switches do. FIRST_HOST,
 * LAST_HOST: this leaf's own; RATE_MBPS, BUFFER_BYTES of an uplink; SLOW_UPLINK (or -1) has a tenth
 * of the rate. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stddef.h>

#define UPLINKS       4
#define GAP_NS        10000000ULL
#define MARK          1 /* and the uplink's number */
#define SECTION(name) __attribute__((section(name), used))
#define ADDRESSES                                                                                  \
    26 /* of source and destination, then both ports: Ethernet and IPv4 without options before them */

static void *(*map_lookup)(void *, const void *) = (void *)BPF_FUNC_map_lookup_elem;
static long (*map_update)(void *, const void *, const void *,
                          __u64) = (void *)BPF_FUNC_map_update_elem;
static __u64 (*now_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static __u32 (*chance)(void) = (void *)BPF_FUNC_get_prandom_u32;
static long (*load)(const struct __sk_buff *, __u32, void *,
                    __u32) = (void *)BPF_FUNC_skb_load_bytes;
static long (*lock)(struct bpf_spin_lock *) = (void *)BPF_FUNC_spin_lock;
static long (*unlock)(struct bpf_spin_lock *) = (void *)BPF_FUNC_spin_unlock;

struct flow {
    __u8 source[4], destination[4];
    __u16 ports[2];
};
struct flowlet {
    __u64 last_ns;
    __u32 uplink;
    __u32 reserved;
};
struct leaf {
    struct bpf_spin_lock lock;
    __u32 reserved;
    __u64 at_ns;
    __u64 queue_ns[UPLINKS]; /* how long until what waits there has left */
};

struct {
    int (*type)[BPF_MAP_TYPE_LRU_HASH];
    struct flow *key;
    struct flowlet *value;
    int (*max_entries)[4096];
    int (*pinning)[1]; /* by name: the leaf's ports share them */
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

    if (skb->protocol != __builtin_bswap16(0x0800) ||
        load(skb, ADDRESSES, &flow, sizeof(flow)) < 0 || flow.destination[0] != 10 ||
        (flow.destination[1] >= FIRST_HOST && flow.destination[1] <= LAST_HOST)) {
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

/* uplinks.bpf.h: what the programs at a leaf's ports to its hosts share: the flow of a packet that leaves the leaf, and the mark
 * that chooses its uplink's route. Compiled and attached by balance.py. FIRST_HOST, LAST_HOST: the leaf's own. */
#pragma once
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stddef.h>

#define UPLINKS       4
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

struct flow {
    __u8 source[4], destination[4];
    __u16 ports[2];
};

/* 0: not IPv4, or for a host of this leaf. */
static int leaves(const struct __sk_buff *skb, struct flow *ret_flow)
{
    return skb->protocol == __builtin_bswap16(0x0800) &&
           load(skb, ADDRESSES, ret_flow, sizeof(*ret_flow)) >= 0 &&
           ret_flow->destination[0] == 10 &&
           !(ret_flow->destination[1] >= FIRST_HOST && ret_flow->destination[1] <= LAST_HOST);
}

/* ud.h: a UD queue pair of one port: packets to and from any port, and when each of them left and came.
 *
 * When is a span of the caller's clock, not a moment: the truth lies in it.
 *  - A packet left after it was given to the queue pair and before its completion was seen.
 *  - A packet came after the last look that would have seen it and before the look that did. So who looks seldom knows little:
 *    call rdma_ud_receive in a tight loop while a packet is expected.
 *  - Where the device stamps completions and tells its clock, the span is its stamp, as wide as its clock is known: some 100 ns.
 *    Else it is that of the looks. rdma_ud_device_stamps() tells which.
 * A packet has come when its completion is there: what the device takes to write it is part of the way.
 *
 * An address names the GID by value. Ways to addresses (address handles) are kept, the one that was used longest ago goes.
 * Making one may take up to a second where the neighbour has to be resolved first: nothing else here waits. What was kept is
 * forgotten by closing: do so when the port's GID changes. One thread at a time. */
#pragma once
#include "platform/rdma/verbs.h"

#define RDMA_UD_SIZE 256 /* bytes of a packet, at most */

struct rdma_ud;

struct rdma_ud_config {
    uint32_t port;
    uint8_t gid[16]; /* the own one, by value */
    uint32_t gid_type;
    uint32_t key; /* Q_Key that a packet must have; its highest bit must be 0 */
    uint64_t tag; /* rdma_device_armed() tells it */
    int64_t (*now_ns)(void *context);
    void *context;
};
/* -ENOENT: the port has no such GID. -ENOMEM, also where `ulimit -l` is too small; what the library answers. */
MUST_CHECK int rdma_ud_open(struct rdma_device *d, const struct rdma_ud_config *config,
                            struct rdma_ud **ret_ud);
struct rdma_ud *rdma_ud_close(struct rdma_ud *u); /* NULL is fine; returns NULL */

struct rdma_ud_address {
    uint8_t gid[16];
    uint16_t lid; /* InfiniBand */
    bool global;  /* with a global route header: RoCE always */
    uint32_t qp, key;
};
void rdma_ud_address(const struct rdma_ud *u, struct rdma_ud_address *ret_own);
bool rdma_ud_device_stamps(const struct rdma_ud *u);

struct rdma_span {
    int64_t earliest_ns, latest_ns;
    bool device;
};
struct rdma_ud_way {
    uint8_t traffic_class; /* DSCP << 2 */
    uint8_t sl;            /* InfiniBand */
};
/* Waits until the packet has left: some microseconds. -ETIME: it hasn't within 5 ms, and may still. -EAGAIN: too many such.
 * -EIO: the queue pair is broken: close it. Else what the library answers to the address: it can't be reached. */
MUST_CHECK int rdma_ud_send(struct rdma_ud *u, const struct rdma_ud_address *to,
                            const struct rdma_ud_way *way, const void *bytes, uint32_t size,
                            struct rdma_span *ret_left);

struct rdma_ud_packet {
    uint8_t bytes[RDMA_UD_SIZE];
    uint32_t size, from_qp;
    struct rdma_span came;
};
/* -EAGAIN: none. -EIO: as above. */
MUST_CHECK int rdma_ud_receive(struct rdma_ud *u, struct rdma_ud_packet *ret_packet);
/* As rdma_cq_arm(): look again afterwards. */
MUST_CHECK int rdma_ud_arm(struct rdma_ud *u);

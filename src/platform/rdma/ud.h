/* ud.h: a UD queue pair of one port: sends packets to any port, receives packets from any port, and gives the time of both.
 *
 * A time is a span of the caller's clock, not a moment: the true time is in it.
 * - A packet was sent after it was given to the queue pair, and before its completion was seen.
 * - A packet arrived after the last poll that would have seen it, and before the poll that saw it. So rare polls give wide
 *   spans: call rdma_ud_receive in a tight loop while a packet is expected.
 * - If the device stamps completions and its clock can be read, the span is around the stamp, as wide as the clock's
 *   uncertainty: some 100 ns. Else it is the span of the polls. rdma_ud_device_stamps() tells which.
 *
 * A packet has arrived when its completion is there: the device's time to write it is part of the delay.
 *
 * An address has the GID by value. Address handles are kept; the one that was unused for longest is removed. Making one may
 * take up to a second, if the neighbour must be resolved first. Nothing else here waits. Closing removes all handles: do this
 * when the port's GID changes. Only one thread at a time. */
#pragma once
#include "platform/rdma/verbs.h"

#define RDMA_UD_SIZE 256 /* largest packet, bytes */

struct rdma_ud;

struct rdma_ud_config {
    uint32_t port;
    uint8_t gid[16]; /* the own GID, by value */
    uint32_t gid_type;
    uint32_t key; /* Q_Key that a received packet must have; its highest bit must be 0 */
    uint64_t tag; /* returned by rdma_device_armed() */
    int64_t (*now_ns)(void *context);
    void *context;
};
/* -ENOENT: the port has no such GID. -ENOMEM, also if `ulimit -l` is too small; else the library's error. */
MUST_CHECK int rdma_ud_open(struct rdma_device *d, const struct rdma_ud_config *config,
                            struct rdma_ud **ret_ud);
struct rdma_ud *rdma_ud_close(struct rdma_ud *u); /* accepts NULL; returns NULL */

struct rdma_ud_address {
    uint8_t gid[16];
    uint16_t lid; /* InfiniBand */
    bool global;  /* with a global route header: always for RoCE */
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
    uint32_t flow_label;   /* RoCE: decides the port, 0xc000 + its 14 bits; 0: the device does */
};
/* Waits until the packet is sent: some microseconds. -ETIME: it was not sent within 5 ms, and may still be. -EAGAIN: too many
 * such packets. -EIO: the queue pair is broken: close it. Else the library's error for the address: it can't be reached. */
MUST_CHECK int rdma_ud_send(struct rdma_ud *u, const struct rdma_ud_address *to,
                            const struct rdma_ud_way *way, const void *bytes, uint32_t size,
                            struct rdma_span *ret_left);

struct rdma_ud_packet {
    uint8_t bytes[RDMA_UD_SIZE];
    uint32_t size, from_qp;
    struct rdma_span came;
};
/* -EAGAIN: no packet. -EIO: as above. */
MUST_CHECK int rdma_ud_receive(struct rdma_ud *u, struct rdma_ud_packet *ret_packet);
/* As rdma_cq_arm(): poll again after it. */
MUST_CHECK int rdma_ud_arm(struct rdma_ud *u);

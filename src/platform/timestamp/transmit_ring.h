/* transmit_ring.h: assigns transmit stamps to packets.
 *
 * The kernel numbers the stamped packets of a socket 0, 1, 2, … (SO_TIMESTAMPING with OPT_ID). It returns the number with the
 * stamp on the error queue, in any order, late, or never. This ring has the last 128 numbers of one socket. A stamp is
 * accepted only for a waiting packet, and only if it is between the call that sent the packet and now. A packet that is
 * overwritten, or waits for more than 3 s, is reported as missing.
 *
 * Pure: no I/O, no clock. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define TRANSMIT_RING_SIZE  128
#define TRANSMIT_TIMEOUT_NS 3000000000LL

struct transmit_slot {
    uint64_t token;
    int64_t called_ns; /* the kernel's REALTIME just before the call */
    uint32_t key;
    bool waits;
};
struct transmit_ring {
    struct transmit_slot slots[TRANSMIT_RING_SIZE];
    uint32_t next;   /* the kernel's number of the next packet */
    uint32_t oldest; /* no earlier packet waits */
};

/* A packet was sent. True: it overwrote an older one; *ret_lost is that packet's token: its stamp is missing. */
bool transmit_ring_add(struct transmit_ring *ring, uint64_t token, int64_t called_ns,
                       uint64_t *ret_lost);
/* A stamp came. False: no packet waits for it, or it is impossible. */
bool transmit_ring_take(struct transmit_ring *ring, uint32_t key, int64_t stamp_ns, int64_t now_ns,
                        uint64_t *ret_token);
/* The same for a stamp of the NIC's clock. stamp_watch.h compares it with the time of the call. */
bool transmit_ring_take_hardware(struct transmit_ring *ring, uint32_t key, uint64_t *ret_token,
                                 int64_t *ret_called_ns);
/* The next packet that waited too long (all = true: any waiting packet); false: none. */
bool transmit_ring_expire(struct transmit_ring *ring, int64_t now_ns, bool all,
                          uint64_t *ret_token);

/* transmit_ring.h: which transmit stamp belongs to which packet.
 *
 * The kernel numbers the stamped packets of a socket 0, 1, 2, … (SO_TIMESTAMPING with OPT_ID) and
 * gives the number back with the stamp, on the error queue, in any order, late, or never. Here lies
 * what is waited for: the last 128 numbers of one socket. A stamp is taken only for a packet that
 * waits, and only if it lies between the call that sent it and now. What is overwritten or waits
 * for more than 3 s comes out as missing.
 *
 * Pure: no I/O, no clock. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define TRANSMIT_RING_SIZE  128
#define TRANSMIT_TIMEOUT_NS 3000000000LL

struct transmit_slot {
    uint64_t token;
    int64_t called_ns; /* kernel REALTIME just before the call */
    uint32_t key;
    bool waits;
};
struct transmit_ring {
    struct transmit_slot slots[TRANSMIT_RING_SIZE];
    uint32_t next;   /* the kernel's number of the next packet */
    uint32_t oldest; /* nothing before it waits */
};

/* A packet went out. True: an older one was overwritten, *ret_lost is its token: missing. */
bool transmit_ring_add(struct transmit_ring *ring, uint64_t token, int64_t called_ns,
                       uint64_t *ret_lost);
/* A stamp came. False: nobody waits for it, or it can't be true. */
bool transmit_ring_take(struct transmit_ring *ring, uint32_t key, int64_t stamp_ns, int64_t now_ns,
                        uint64_t *ret_token);
/* The same for a stamp of the NIC's clock, which stamp_watch.h compares with the call's time. */
bool transmit_ring_take_hardware(struct transmit_ring *ring, uint32_t key, uint64_t *ret_token,
                                 int64_t *ret_called_ns);
/* Next packet that waited too long (or, all = true, any that waits); false: none. */
bool transmit_ring_expire(struct transmit_ring *ring, int64_t now_ns, bool all,
                          uint64_t *ret_token);

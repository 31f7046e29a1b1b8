/* trouble_io.h: the transport's sockets with bad luck: resets, bytes that trickle, bits that flip, NICs that die. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"
#include "transport/io.h"

struct trouble {
    struct io io; /* first: what the transport sees */
    struct io *real;
    struct prng prng;
    uint32_t reset_per_million, flip_per_million;
    bool trickle;
    uint32_t receive_most;                   /* of one call, bytes; 0: as many as there are */
    uint32_t resets, flips, sends, receives; /* those that brought something */
    uint32_t
        rtt_ns; /* not 0: the kernel's value, with something on its way and the peer just heard */
    bool rails; /* a NIC reaches only its counterpart */
    int astray; /* the kernel's answer for other connections: -errno; 0: nothing ever */
    bool no_carrier;   /* for any NIC, as the kernel reports it */
    bool no_interface; /* the kernel has none of these names */
    uint8_t cut;       /* third byte of a dead NIC's addresses; 0: none */
    uint8_t via[256];  /* that byte for connections made here */
    bool lost[256];    /* connections that are never answered */
    bool mute[256];    /* connections that died in silence: nothing goes out or comes in */
};

/* Between two readings of the clock at most so much time passes here: if the machine pauses in the middle of a test, that is no
 * pause of a peer or of a path. */
#define TROUBLE_STALL_NS  2000000
#define TROUBLE_SLOWED_NS 10

/* How far the time here is ahead of the time outside, ns: so that a test needn't wait. */
extern int64_t trouble_skipped_ns;
extern bool trouble_slowed;  /* TROUBLE_SLOWED_NS pass from one reading to the next */
extern bool trouble_threads; /* a transport has its thread: time passes as outside */

/* Returns the table that a transport gets in place of `real`. `trouble` holds it; its other fields belong to the caller. */
struct io *trouble_io(struct trouble *trouble, struct io *real);

/* ways.h: finds slow trunks by the speed of packet trains over single ways through the fabric (check be.bw.path). A path of
 * core/mesh is one that probes measure; a way is one that a train of a test took.
 *
 * A way is slow if it carried less than PERF_SLOW of the best way of the same NIC: so a slow NIC alone has no slow ways. A trunk
 * is two neighbouring hops on ways, in either direction. It is slow if all ways over it were slow, for three quarters of the NICs
 * that tried it. That must hold without all reports of any one host, of its own NICs and of its partners': so no single host
 * makes a trunk slow. If other ways are as slow, trains were late for another reason, as on busy hosts, and no trunk is named. No
 * single host can cause that, either. If the same slow ways cross several trunks, the slow one is the one that more hosts found
 * narrow (hop `narrow`), by a margin that one host's votes can't make. If that is undecided, all of them are named as possible.
 *
 * Sans-I/O. Memory is the caller's: ways_size bytes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

enum { WAYS_TRUNKS_MAX = 32, WAY_NAME_SIZE = 46 };

struct way {
    uint32_t host, nic, partner;
    double rate;  /* bytes a second; 0: not known: too little of its trains came */
    double share; /* of the best way of the same NIC; set by ways_judge */
    uint8_t hop_count,
        /* narrow: the link to this hop, from 1, is slower than those before; 0: not known */
        narrow;
    char hops[PATH_HOP_MAX][WAY_NAME_SIZE]; /* "-": silent */
};
struct way_trunk {
    const char *ends[2]; /* in the order of strcmp */
    /* of the better direction that is slow: the median over NICs of their best way */
    double rate;
    uint32_t votes; /* hosts that found it narrow, in each direction */
    bool sure;      /* false: one of several trunks that the same ways cross */
};
struct ways {
    struct way *all;
    struct way_link *links;
    double *rates;
    struct way_word *words; /* by host, for one link */
    uint32_t count, capacity, hosts;
    uint32_t left_out; /* ways or trunks that didn't fit */
    bool uneven;       /* most ways beside those trunks are slow as well: no trunk is named */
    double usual;      /* 0: not known */
    struct way_trunk trunks[WAYS_TRUNKS_MAX];
    uint32_t trunk_count;
};

size_t ways_size(uint32_t hosts);
void ways_init(struct ways *w, uint32_t hosts, void *memory);
/* The ways of a NIC follow one another. Ways that don't fit are left out. */
void ways_add(struct ways *w, const struct way *way);
void ways_judge(struct ways *w);
/* Each of its routers answered, and there are at least two: a slow trunk on it would be named. */
bool way_is_seen(const struct way *way);
/* Slower than it should be, or so lossy that its rate is not known. */
bool way_is_slow(const struct way *way);
/* It crosses the trunk and is slow. */
bool way_is_slow_by(const struct way *way, const struct way_trunk *trunk);

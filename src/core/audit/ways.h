/* ways.h: which trunk is slow, by how fast trains of packets came over single ways through the fabric (check be.bw.path; a
 * path of core/mesh is one that probes measure, a way one that a train of a test took).
 *
 * A way is slow if it carried less than PERF_SLOW of the best way of the same NIC: so a slow NIC has no slow ways. A trunk is two
 * neighbours on ways, in either direction. It is slow if all ways over it were, for three quarters of the NICs that tried it, and
 * would still be without all that any one host told, of its own NICs and of its partners': so no host's word makes a trunk slow.
 * Where other ways are as slow, trains came late for another reason, as on busy hosts, and no trunk is named. No
 * host's word alone makes it so, either.
 * Of trunks that the same slow ways cross it is the one that more hosts found to be narrow (hop `narrow`), by a margin that one
 * host's votes don't make; where that is open, all of them are named as possible.
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
    double rate;  /* bytes a second; 0: nothing is known: too little of its trains came */
    double share; /* of the best of the same NIC: by ways_judge */
    uint8_t hop_count,
        narrow; /* narrow: the link to this hop, from 1, is slower than before; 0: not known */
    char hops[PATH_HOP_MAX][WAY_NAME_SIZE]; /* "-": silent */
};
struct way_trunk {
    const char *ends[2]; /* in the order of strcmp */
    double rate;         /* the best of a NIC in the middle; the better direction that is slow */
    uint32_t votes;      /* hosts that found it narrow there, in each direction */
    bool sure;           /* else it is one of those of the same ways */
};
struct ways {
    struct way *all;
    struct way_link *links;
    double *rates;
    struct way_word *words; /* by host, of one link */
    uint32_t count, capacity, hosts;
    uint32_t left_out; /* ways or trunks: there was no room */
    bool uneven;       /* most ways beside those trunks are slow as well: none is named */
    double usual;      /* 0: not known */
    struct way_trunk trunks[WAYS_TRUNKS_MAX];
    uint32_t trunk_count;
};

size_t ways_size(uint32_t hosts);
void ways_init(struct ways *w, uint32_t hosts, void *memory);
/* Those of a NIC one behind the other. More than there is room for are left out. */
void ways_add(struct ways *w, const struct way *way);
void ways_judge(struct ways *w);
/* Each of its routers answered, and there are two at least: a slow trunk on it would be named. */
bool way_is_seen(const struct way *way);
/* Slower than it should be, or so lossy that nobody knows. */
bool way_is_slow(const struct way *way);
/* It goes over the trunk and is slow. */
bool way_is_slow_by(const struct way *way, const struct way_trunk *trunk);

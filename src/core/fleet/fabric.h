/* fabric.h: the middle of the fabric, as the fleet's own packets pass it: switches, and the trunks between them.
 *
 * Hosts tell which switches each of their ways passes. Two that follow on each other are a trunk, in the direction in which
 * packets pass it. A switch's tier is its place on ways, counted from the nearer end: 0 a leaf, 1 a spine. A trunk that no way
 * passes any more is kept for FABRIC_GONE_NS: what died is routed around, and is what the picture is looked at for.
 *
 * What is on a trunk is told by what arrives over the ways that pass it, as its receivers report it: a good way acquits all
 * that it passes, so a trunk is as good as its best way. Its load in bits is nobody's knowledge, for no switch is asked for
 * counters; delays on its best way are the nearest to it.
 *
 * Switches without names: an answer's address stands for the leaf of the NIC beside it, where that is known; else
 * a switch that answers with two addresses looks like two.
 *
 * Pure, told the time; all memory is claimed by fabric_new, and touched only as far as it is used. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/hash_index.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/finding/element.h"
#include "core/fleet/locate.h"

#define FABRIC_SWITCH_MAX 4096
/* First named by one host, since the start: a host can't fill the table for the others. */
#define FABRIC_SWITCH_HOST_MAX 256
#define FABRIC_TRUNK_MAX       65536
#define FABRIC_GONE_NS         (24 * 3600 * NS_PER_S)
#define FABRIC_LOOK_PATHS                                                                          \
    100000 /* good paths looked at in one look; of more an even part. All that are bad are */

struct fabric_way { /* how many switches a host's own packets pass, and which */
    uint32_t local, peer;
    uint16_t port, hops;
    uint16_t switches[PATH_HOP_MAX]; /* number + 1; 0: not known */
};

struct fabric_switch {
    char name[64];
    struct place place; /* as findings mean it; PLACE_NONE: by a name of its own */
    uint8_t tier;
    uint32_t ways; /* places on ways now */
};
struct fabric_trunk {
    uint16_t from, to;
    uint32_t ways;               /* that pass it now */
    struct mono gone;            /* since when; ways: 0 */
    uint32_t alive, lossy, dead; /* of the paths over it that somebody receives, at the last look */
    int32_t owd_p50, owd_p99;    /* delay codes, of the path with the least p99 */
    uint32_t loss_ppm;           /* the least; meaningless unless one is alive or lossy */
};
struct fabric {
    struct fabric_switch *switches;
    struct fabric_trunk *trunks;
    uint32_t switch_count, trunk_count;
    struct hash_index by_name, by_ends; /* into switches, trunks */
    uint64_t ways, ways_known; /* that hosts told of; of these whose switches are all known */
    struct mono looked, dropped;
    uint64_t each, seen; /* of a look: one good path of so many is looked at; so many came by */
};

struct fabric *fabric_new(void);              /* NULL: no memory */
struct fabric *fabric_free(struct fabric *f); /* NULL is fine; returns NULL */

/* ---- switches ---- */

/* Number + 1 of a switch by its name; 0: none was ever told of. */
uint32_t fabric_find_switch(const struct fabric *f, const char *name);
/* Number + 1 of the switch that findings mean by it; 0: none. */
uint32_t fabric_find_place(const struct fabric *f, const struct place *place);
/* Of a number + 1; NULL for 0. */
const char *fabric_switch_name(const struct fabric *f, uint32_t number);
/* The name of a switch that is called so in answers: its own, or that of the leaf, if it isn't empty, of the NIC beside it. */
const char *fabric_name_of(const char *said, const char *leaf);
/* Number + 1 of the switch of that name, a new one if need be; `said`: as it is called in answers; *named: how many its teller
 * has named first. 0: it has no name, or there are too many. *ret_refused: this teller has named too many. */
uint32_t fabric_on_switch(struct fabric *f, const char *name, const char *said, uint32_t *named,
                          bool *ret_refused);
/* Any switch of it is known. NULL: none is. */
bool fabric_names_way(const struct fabric_way *way);

/* ---- trunks ---- */

/* A host's ways are these now, or are no more. What stays is told to be there first, and gone then. */
void fabric_on_ways(struct fabric *f, const struct fabric_way *ways, uint32_t count,
                    struct mono now);
void fabric_on_ways_gone(struct fabric *f, const struct fabric_way *ways, uint32_t count,
                         struct mono now);
/* "good", "lossy", "dead", "unknown": nobody reports of it; "gone": no way passes it any more. */
const char *fabric_trunk_state(const struct fabric_trunk *t);

/* ---- a look at what is on them ---- */

enum fabric_path_state {
    FABRIC_PATH_UNKNOWN,
    FABRIC_PATH_ALIVE,
    FABRIC_PATH_LOSSY,
    FABRIC_PATH_DEAD
};
struct fabric_path {
    enum fabric_path_state state;
    int32_t p50, p99; /* delay codes */
    uint32_t loss_ppm;
};
/* True: a look begins, at so many paths; the last one is older than that. */
bool fabric_look(struct fabric *f, uint64_t paths, struct span age, struct mono now);
/* A path in that state is one of those that are looked at: asked once of each. */
bool fabric_looks_at(struct fabric *f, enum fabric_path_state state);
void fabric_on_path(struct fabric *f, const struct fabric_way *way, const struct fabric_path *path);

/* ---- its elements, for the inference (core/fleet/inquiry.h) and back ---- */

/* The route's boxes: none unless the whole way is known. NULL: it isn't. */
void fabric_route(const struct fabric *f, const struct fabric_way *way, struct locate_route *route);
/* A trunk from the leaf upwards, as agents name it. */
struct element fabric_element(const struct fabric *f, const struct locate_element *e);
/* False: what it names isn't known here. */
bool fabric_locate(const struct fabric *f, const struct element *e, struct locate_element *ret);

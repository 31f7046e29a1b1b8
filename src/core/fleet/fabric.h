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
 * WHOSE ADDRESS IT IS is decided by how many hosts tell it, as long as their ways have it. The name of the switch beside a NIC
 * is the word of that NIC's host, whoever tells of the way to it: an address has as many votes as hosts tell it, or as hosts
 * name its switch, whichever is fewer. One host can't give a switch another's address, or take away its own. Nor can it keep its
 * places from others: where none is free those with one vote give way, to who is the first for few of them.
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
    uint16_t switches[PATH_HOP_MAX];  /* number + 1; 0: not known */
    uint16_t addresses[PATH_HOP_MAX]; /* what fabric_on_address gave; 0: not known */
};

struct fabric_teller {
    uint32_t host, namer; /* by index: whose way it is; whose word is the name of the switch */
};

#define FABRIC_ADDRESS_MAX 16

struct fabric_address {
    uint8_t address[16];
    uint64_t namers;      /* one bit of 64 for each, since somebody told it */
    uint32_t hosts, turn; /* that tell it now; the last table that was counted */
    uint32_t put, life;   /* before that table; how many addresses have had this place */
    struct fabric_teller first;
};
struct fabric_switch {
    char name[64];
    struct place
        place; /* as findings mean it, by its number or most hosts' address; PLACE_NONE: by a name of its own */
    struct fabric_address addresses[FABRIC_ADDRESS_MAX];
    uint8_t address_count;
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
    uint32_t turn;                      /* tables of ways that came or went */
    uint64_t ways, ways_known; /* that hosts told of; of these whose switches are all known */
    struct mono looked, dropped, made_room;
    uint64_t each, seen; /* of a look: one good path of so many is looked at; so many came by */
};

struct fabric *fabric_new(void);              /* NULL: no memory */
struct fabric *fabric_free(struct fabric *f); /* NULL is fine; returns NULL */

/* ---- switches ---- */

/* Number + 1 of a switch by its name; 0: none was ever told of. */
uint32_t fabric_find_switch(const struct fabric *f, const char *name);
/* Number + 1 of the switch that findings mean by it, by most hosts' word; 0: none. */
uint32_t fabric_find_place(const struct fabric *f, const struct place *place);
/* Of a number + 1; NULL for 0. */
const char *fabric_switch_name(const struct fabric *f, uint32_t number);
/* The name of a switch that is called so in answers: its own, or that of the leaf, if it isn't empty, of the NIC beside it. */
const char *fabric_name_of(const char *said, const char *leaf);
/* Number + 1 of the switch of that name, a new one if need be; *named: how many its teller has named first. 0: it has no name,
 * or there are too many. *ret_refused: this teller has named too many. */
uint32_t fabric_on_switch(struct fabric *f, const char *name, uint32_t *named, bool *ret_refused);
/* Which address of a switch it answered with, for a way to keep, a new one if need be. 0: it isn't one, or there are too many. */
uint16_t fabric_on_address(struct fabric *f, uint32_t number, const char *said,
                           struct fabric_teller by);
/* A switch, number + 1, that this host names with an address, alone, that several tell of another one with a name, *ret_other.
 * `ways`: that host's, told before; *at: where the last call stopped. 0: none so far. */
uint32_t fabric_contradicted(const struct fabric *f, uint32_t host, const struct fabric_way *ways,
                             uint32_t count, uint32_t *at, uint32_t *ret_other);
/* Any switch of it is known. NULL: none is. */
bool fabric_names_way(const struct fabric_way *way);

/* ---- trunks ---- */

/* All of a host's ways are these now, or are no more. What stays is told to be there first, and gone then. */
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

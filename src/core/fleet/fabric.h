/* fabric.h: the middle of the fabric, as the fleet's own packets cross it: switches, and the trunks between them.
 *
 * Hosts report the switches on each of their ways. Two consecutive switches are a trunk, in the direction of the packets. A
 * switch's tier is its place on ways, counted from the nearer end: 0 a leaf, 1 a spine. A trunk that no way crosses any more is
 * kept for FABRIC_GONE_NS: a dead trunk is routed around, and it is what people look for.
 *
 * The state of a trunk comes from the paths that cross it, as their receivers report them. A good path acquits all trunks on its
 * way, so a trunk is as good as its best path. Its load in bits is unknown, because no switch is asked for counters; the delays
 * of its best path come nearest to that.
 *
 * A SWITCH'S ADDRESS is decided by the number of hosts that report it, as long as their ways contain it. The name of the switch
 * beside a NIC comes from that NIC's host, whichever host reports the way to it. An address has as many votes as hosts report it,
 * or as hosts name its switch, whichever is fewer. A single host can't give a switch another switch's address, or take its own
 * away. Nor can it use up the places: if none is free, those with one vote give way to hosts that hold few of them.
 *
 * Switches without names: the address of an answer stands for the leaf of the NIC beside it, if that is known. Otherwise a switch
 * that answers with two addresses looks like two.
 *
 * Pure; time is an argument. fabric_new() claims all memory, and only used memory is touched. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/hash_index.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/finding/element.h"
#include "core/fleet/locate.h"

#define FABRIC_SWITCH_MAX 4096
/* The limit of switches that one host named first, since the start: a host can't fill the table for the others. */
#define FABRIC_SWITCH_HOST_MAX 256
#define FABRIC_TRUNK_MAX       65536
#define FABRIC_GONE_NS         (24 * 3600 * NS_PER_S)
#define FABRIC_LOOK_PATHS                                                                          \
    100000 /* good paths that one look reads; of more, an even selection. All bad ones are read */

struct fabric_way { /* the switches that a host's own packets pass, in order */
    uint32_t local, peer;
    uint16_t port, hops;
    uint16_t switches[PATH_HOP_MAX];  /* number + 1; 0: not known */
    uint16_t addresses[PATH_HOP_MAX]; /* results of fabric_on_address(); 0: not known */
};

struct fabric_teller {
    /* by index: the host that reports the way, and the host whose switch name is used */
    uint32_t host, namer;
};

#define FABRIC_ADDRESS_MAX 16

struct fabric_address {
    uint8_t address[16];
    uint64_t namers;      /* one of 64 bits for each host that named it so far */
    uint32_t hosts, turn; /* hosts that report it now; the last table that was counted */
    /* put: the table before it was added; life: the number of addresses that had this place */
    uint32_t put, life;
    struct fabric_teller first;
};
struct fabric_switch {
    char name[64];
    /* the place in findings, by its number or by most hosts' address; PLACE_NONE: it has a name of its own */
    struct place place;
    struct fabric_address addresses[FABRIC_ADDRESS_MAX];
    uint8_t address_count;
    uint8_t tier;
    uint32_t ways; /* its places on present ways */
};
struct fabric_trunk {
    uint16_t from, to;
    uint32_t ways;               /* ways that cross it now */
    struct mono gone;            /* since when no way crosses it; ways: 0 */
    uint32_t alive, lossy, dead; /* paths over it with a receiver's report, at the last look */
    int32_t owd_p50, owd_p99;    /* delay codes of the path with the least p99 */
    uint32_t loss_ppm;           /* the lowest loss; meaningless unless a path is alive or lossy */
};
struct fabric {
    struct fabric_switch *switches;
    struct fabric_trunk *trunks;
    uint32_t switch_count, trunk_count;
    struct hash_index by_name, by_ends; /* into switches, trunks */
    uint32_t turn;                      /* number of tables that were added or removed */
    uint64_t ways, ways_known;          /* reported ways; those with known switches only */
    struct mono looked, dropped, made_room;
    uint64_t each, seen; /* of a look: one in so many good paths is read; number of paths so far */
};

struct fabric *fabric_new(void);              /* NULL: out of memory */
struct fabric *fabric_free(struct fabric *f); /* NULL is allowed; returns NULL */

/* ---- switches ---- */

/* Number + 1 of a switch by its name; 0: none was ever reported. */
uint32_t fabric_find_switch(const struct fabric *f, const char *name);
/* Number + 1 of the switch that findings call by this place, by most hosts' reports; 0: none. */
uint32_t fabric_find_place(const struct fabric *f, const struct place *place);
/* The name for a number + 1; NULL for 0. */
const char *fabric_switch_name(const struct fabric *f, uint32_t number);
/* The name of a switch from its answers: its own name, or that of the leaf beside the NIC, if it isn't empty. */
const char *fabric_name_of(const char *said, const char *leaf);
/* Number + 1 of the switch of that name, a new one if necessary; *named: how many switches its reporter has named first. 0: it
 * has no name, or there are too many. *ret_refused: this reporter has named too many. */
uint32_t fabric_on_switch(struct fabric *f, const char *name, uint32_t *named, bool *ret_refused);
/* The number of the switch's answering address, for a way, a new one if necessary. 0: no valid address, or too many. */
uint16_t fabric_on_address(struct fabric *f, uint32_t number, const char *said,
                           struct fabric_teller by);
/* Finds a switch, number + 1, for which this host alone reports an address that several hosts report for another switch with a
 * name, *ret_other. `ways`: that host's ways, already reported; *at: where the last call stopped. 0: none so far. */
uint32_t fabric_contradicted(const struct fabric *f, uint32_t host, const struct fabric_way *ways,
                             uint32_t count, uint32_t *at, uint32_t *ret_other);
/* True if any switch of the way is known. NULL: none is. */
bool fabric_names_way(const struct fabric_way *way);

/* ---- trunks ---- */

/* Adds (or removes) all ways of a host. For a way that stays, the new table must be added first and the old one removed then. */
void fabric_on_ways(struct fabric *f, const struct fabric_way *ways, uint32_t count,
                    struct mono now);
void fabric_on_ways_gone(struct fabric *f, const struct fabric_way *ways, uint32_t count,
                         struct mono now);
/* "good", "lossy", "dead"; "unknown": no host reports about it; "gone": no way crosses it any more. */
const char *fabric_trunk_state(const struct fabric_trunk *t);

/* ---- a look at the figures of trunks ---- */

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
/* True: a look begins over so many paths; the last one is older than `age`. */
bool fabric_look(struct fabric *f, uint64_t paths, struct span age, struct mono now);
/* True if the look reads a path in that state: called once for each. */
bool fabric_looks_at(struct fabric *f, enum fabric_path_state state);
void fabric_on_path(struct fabric *f, const struct fabric_way *way, const struct fabric_path *path);

/* ---- elements, to and from the inference (core/fleet/inquiry.h) ---- */

/* Sets the route's boxes; none unless the whole way is known. NULL: it isn't. */
void fabric_route(const struct fabric *f, const struct fabric_way *way, struct locate_route *route);
/* The element of findings; a trunk goes from the leaf upwards, as agents name it. */
struct element fabric_element(const struct fabric *f, const struct locate_element *e);
/* False: its name isn't known here. */
bool fabric_locate(const struct fabric *f, const struct element *e, struct locate_element *ret);

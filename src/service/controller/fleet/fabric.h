/* fabric.h: the middle of the fabric, as the fleet's own packets pass it: switches, and the trunks between them.
 *
 * Hosts say which switches each of their ways passes (PathTable.router). Two that follow on each other are a trunk, in the
 * direction in which packets pass it. A switch's tier is its place on ways, counted from the nearer end: 0 a leaf, 1 a spine.
 * A trunk that no way passes any more is kept for FABRIC_GONE_NS: what died is routed around, and is what the picture is
 * looked at for.
 *
 * What is on a trunk is told by what arrives over the ways that pass it, as its receivers report it: a good way acquits all
 * that it passes, so a trunk is as good as its best way. Its load in bits is nobody's knowledge, for no switch is asked for
 * counters; delays on its best way are the nearest to it.
 *
 * Switches without names: an answer's address stands for the leaf of the NIC beside it, where that is known; else
 * a switch that answers with two addresses looks like two. */
#pragma once
#include "core/finding/element.h"
#include "service/controller/controller.h"

#define FABRIC_SWITCH_MAX 4096
/* First named by one host, since the controller started: a host can't fill the table for the others. */
#define FABRIC_SWITCH_HOST_MAX 256
#define FABRIC_TRUNK_MAX       65536
#define FABRIC_GONE_NS         (24 * 3600 * NS_PER_S)
#define FABRIC_LOOK_PATHS                                                                          \
    100000 /* good paths looked at in one look; of more an even part. All that are bad are */

struct fabric_switch {
    char name[64];
    struct place place; /* as findings mean it; PLACE_NONE: by a name of its own */
    uint8_t tier;
    uint32_t ways; /* places on ways now */
};
struct fabric_trunk {
    uint16_t from, to;
    uint32_t ways;               /* that pass it now */
    int64_t gone_utc_ns;         /* ways: 0 */
    uint32_t alive, lossy, dead; /* of the paths over it that somebody receives, at the last look */
    int32_t owd_p50, owd_p99;    /* delay codes, of the path with the least p99 */
    uint32_t loss_ppm;           /* the least; meaningless unless one is alive or lossy */
};
struct fabric {
    struct fabric_switch *switches;
    struct fabric_trunk *trunks;
    uint32_t switch_count, trunk_count, trunk_capacity;
    struct hash_index by_name, by_ends; /* into switches, trunks */
    uint64_t ways, ways_known; /* that hosts told of; of these whose switches are all known */
    struct mono looked, dropped;
};

MUST_CHECK int fabric_open(struct controller *c);
void fabric_close(struct controller *c);
/* Number + 1 of a switch by its name; 0: none was ever told of. */
uint32_t fabric_find_switch(const struct fabric *f, const char *name);
/* Number + 1 of the switch that findings mean by it; 0: none. */
uint32_t fabric_find_place(const struct fabric *f, const struct place *place);
/* Of a number + 1; NULL for 0. */
const char *fabric_switch_name(const struct fabric *f, uint32_t number);
/* Any switch of it is known. NULL: none is. */
bool fabric_names_way(const struct fleet_hops *way);
/* The one that a NIC's own packets pass first; NULL: not known. */
const char *fabric_first_switch(const struct controller *c, const struct fleet_nic *nic);
/* The switches of a host's ways, in the order of the table, into `hops`, one for each way; a table that
 * isn't consistent names none. */
void fabric_name_ways(struct controller *c, struct fleet_host *h,
                      const Foliot__V1__PathTable *table, struct fleet_hops *hops);
/* A host's ways are these now, or are no more. */
void fabric_add_ways(struct controller *c, const struct fleet_hops *hops, uint32_t count);
void fabric_take_ways(struct controller *c, const struct fleet_hops *hops, uint32_t count);
/* What is on the trunks: as it is now, or was at most a report's interval ago. */
void fabric_look(struct controller *c);
/* "good", "lossy", "dead", "unknown": nobody reports of it; "gone": no way passes it any more. */
const char *fabric_trunk_state(const struct fabric_trunk *t);

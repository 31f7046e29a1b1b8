/* locate.h: which element of the fabric is at fault: one inference for a host and for a controller.
 *
 * A path crosses elements: its NICs, each with its link, the trunks between routers in the direction of its packets,
 * the routers, the hosts. What is told of it are trials: of all packets of a path within some 100 ms one, which came or
 * was lost (those sent together share their queues, and tell no more than one). All paths that can be heard are weighed
 * together. The answer is the smallest set of elements that explains the losses and that no clean path contradicts;
 * several faults at once are several elements.
 *
 * Rules that all of it rests on:
 * - Evidence counts by the time its packet was *sent*. A verdict (alive, dead) has no time and is never evidence. A
 *   packet whose fate nobody knows (sender or receiver late, silent, no stamp) is left out: neither clean nor lost.
 * - Elements that the same observed paths cross are one class: no observer can tell them apart, and the answer names
 *   them all. The same holds for sets: all trunks of a spine that anybody uses *are* the spine.
 * - Named is what beats the best explanation without it by odds of 10⁶, in three looks running, 100 ms apart, and still
 *   beats it without any one host's word (that host's own elements and the own host's word aside). Else the answer is
 *   `unknown, one of …`.
 * - Background is what the median element of each kind loses, over minutes, and its bursts count as one; an element
 *   must lose more than twice that.
 *
 * Pure: told the time, no memory claimed after locate_new. Times are of the caller's one clock; a host maps what others
 * tell to its own. Cost: a trial costs some adds; nothing is looked at while nothing is lost; a look counts again only
 * the elements that lost something. Formulas: docs/locate.md. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/finding/finding.h"

struct locate;

#define LOCATE_LIMIT     13.8 /* ln 10⁶ */
#define LOCATE_LOOKS     3
#define LOCATE_PERIOD    (100 * NS_PER_MS) /* of looks, and of a trial */
#define LOCATE_FAULT_MAX 4                 /* told at once; others wait until one of them is over */
#define LOCATE_ONE_OF    8                 /* elements of one answer that are told by name */
#define LOCATE_CASE_MAX  16

/* One element. Directions are those of packets: a NIC's DIRECTION_OUT is its sending side with the link up to the leaf,
 * DIRECTION_IN its receiving side; a trunk's DIRECTION_OUT is from router a to router b. DIRECTION_BOTH: all of it. */
struct locate_element {
    uint8_t
        kind; /* enum element_kind; ELEMENT_UNKNOWN: one path alone, whose every element carries others */
    uint8_t direction; /* enum finding_direction */
    uint64_t a, b;     /* host or NIC number, or the router's key; b of a trunk; path number */
};

struct locate_box {
    uint64_t key; /* of a router, the caller's: alike on every host that should agree */
    uint8_t kind; /* ELEMENT_LEAF, ELEMENT_SPINE or ELEMENT_ROUTER */
};

/* Whatever their directions. */
static inline bool locate_same_thing(const struct locate_element *x, const struct locate_element *y)
{
    return x->kind == y->kind && ((x->a == y->a && x->b == y->b) ||
                                  (x->kind == ELEMENT_TRUNK && x->a == y->b && x->b == y->a));
}

/* A path in one direction. */
struct locate_route {
    struct host_id from_host, to_host;
    struct nic_id from, to;
    struct host_id teller; /* whose word its trials are: the receiver's, usually */
    uint8_t box_count;     /* 0: its ways are not known, only its ends are elements */
    struct locate_box boxes[PATH_HOP_MAX];
};

struct locate_config {
    uint32_t path_limit;
    uint32_t element_limit; /* 0: enough for path_limit paths */
    struct host_id own;     /* whose word needs no second; HOST_NONE: a controller */
    bool one_word;          /* name on one host's word alone */
    /* What no element at fault loses at most, and what one at fault loses, where both are known beforehand; 0: learned. */
    double background, share;
    struct span
        calm; /* between looks while nothing is in sight that isn't named; 0: LOCATE_PERIOD */
};

/* One fault, from its first answer to its end. */
enum locate_state { LOCATE_UNKNOWN, LOCATE_NAMED, LOCATE_ENDED };
struct locate_case {
    uint64_t
        number; /* of the first element and the second it began in: alike on hosts that see it */
    uint32_t serial; /* from its first answer to its end */
    uint64_t class;  /* of the paths that its elements cross */
    uint8_t state;   /* enum locate_state */
    uint8_t count;   /* of elements */
    bool alike;      /* no observer can tell them apart; else: not yet */
    uint32_t total;  /* elements that may be it, those without room included */
    /* Likeliest first. Named: elements[0] is it, or one of those that nobody can tell from it. */
    struct locate_element elements[LOCATE_ONE_OF];
    uint32_t paths, witnesses; /* that lost something through it; hosts that tell so, 64: or more */
    uint32_t sent, lost;       /* trials, in the window that decided */
    double share;              /* of them that it loses */
    double margin;             /* ln of the odds against the best explanation without it */
    struct mono opened, named;
    /* It began between the last packet through it that came and the first that did not; the same for its end. */
    struct mono began_low, began_high, ended_low, ended_high;
};

/* NULL: no memory. */
struct locate *locate_new(const struct locate_config *config);
struct locate *locate_free(struct locate *l); /* NULL is fine; returns NULL */

/* Path number 0 .. path_limit - 1 goes that way from now on; what was known of the number is forgotten, unless the route
 * is as it was. */
void locate_path_set(struct locate *l, uint32_t path, const struct locate_route *route);
void locate_path_clear(struct locate *l, uint32_t path);
/* What was told of it is forgotten, and its route is not: nobody tells of it until somebody does. */
void locate_trials_clear(struct locate *l, uint32_t path);
/* A packet of the path that was sent then came, or was lost; one in LOCATE_PERIOD. They may be told in any order within
 * 1.6 s. */
void locate_on_trial(struct locate *l, uint32_t path, struct mono sent, bool lost);

/* The same of several at a time, at most 255 of a path within 50 ms. */
void locate_on_trials(struct locate *l, uint32_t path, struct mono sent, uint32_t count,
                      uint32_t lost);

/* One look at the last 1.6 s, against that background: what explains that path's losses. No case comes of it; its state is
 * LOCATE_NAMED if nothing else does nearly as well. False: nothing was lost that asks for a fault. */
bool locate_answer(struct locate *l, struct mono now, double background, uint32_t path,
                   struct locate_case *ret_case);

/* Looks if it is time to. */
void locate_tick(struct locate *l, struct mono now);
struct mono locate_deadline(const struct locate *l); /* MONO_NEVER: nothing was lost */

/* When a NIC or trunk of that path was gone, of those the one that lost most, if nearly all that it lost lately was lost in
 * one run: it began and ended between two packets each. ended_high MONO_NEVER: no packet is known yet to have come since. */
struct outage {
    struct mono began_low, began_high, ended_low, ended_high;
};
bool locate_outage(struct locate *l, struct mono now, uint32_t path, struct outage *ret_outage);

/* The cases that are open, oldest first. */
uint32_t locate_case_count(const struct locate *l);
const struct locate_case *locate_case_get(const struct locate *l, uint32_t index);
/* What changed since it was asked last: opened, named, renamed, ended. False: nothing. */
bool locate_next_change(struct locate *l, struct locate_case *ret_case);
/* The share of trials that the fabric loses with nothing at fault, as far as known. */
double locate_background(const struct locate *l);
/* Whether paths that cross none of the elements of a case that ended lost packets in the very same time: more failed than it. */
bool locate_has_twin(const struct locate *l, const struct locate_case *c);
/* Whether that path crosses one of the case's elements, and something was told of it since its trials were cleared. */
bool locate_explains(const struct locate *l, const struct locate_case *c, uint32_t path);

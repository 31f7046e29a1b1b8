/* locate.h: finds the element of the fabric that is at fault: one inference for hosts and for the controller.
 *
 * A path crosses elements: its NICs, each with its link, the trunks between routers in the direction of its packets, the routers,
 * the hosts. Its input is trials: of all packets of a path within about 100 ms one, which arrived or was lost (packets that are
 * sent together share their queues, and show no more than one). All paths that can be heard are weighed together. The answer is
 * the smallest set of elements that explains the losses and that no clean path contradicts; several faults at once are several
 * elements.
 *
 * The rules behind it:
 *   - Evidence counts by the time when its packet was *sent*. A verdict (alive, dead) has no time and is never evidence. A
 *     packet with an unknown fate (sender or receiver late, silent, no stamp) is left out: it is neither clean nor lost.
 *   - Elements that the same observed paths cross are one class: no observer can tell them apart, and the answer names
 *     them all. The same holds for sets: all used trunks of a spine *are* the spine.
 *   - An element is named if it beats the best explanation without it by odds of 10⁶, in three consecutive looks, 100 ms apart,
 *     and still does so without any single host's reports (except that host's own elements, and the reports of the own host).
 *     Otherwise the answer is `unknown, one of …`.
 *   - Background is the loss of the median element of each kind, over minutes, and a burst counts as one loss. An element must
 *     lose more than twice that.
 *
 * Pure; time is an argument, and no memory is claimed after locate_new(). All times are those of the caller's one clock; a host
 * converts the reports of others. Cost: a trial costs some additions; without losses there is no look; a look only counts the
 * elements with losses again. Formulas: docs/locate.md. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/finding/finding.h"

struct locate;

#define LOCATE_LIMIT  13.8 /* ln 10⁶ */
#define LOCATE_LOOKS  3
#define LOCATE_PERIOD (100 * NS_PER_MS) /* between two looks, and the length of a trial */
/* reported at the same time; others wait until one of them is over */
#define LOCATE_FAULT_MAX 4
#define LOCATE_ONE_OF    8 /* elements of one answer that are named */
#define LOCATE_CASE_MAX  16

/* One element. Directions are those of packets: a NIC's DIRECTION_OUT is its sending side with the link up to the leaf,
 * DIRECTION_IN its receiving side; a trunk's DIRECTION_OUT is from router a to router b. DIRECTION_BOTH: both directions. */
struct locate_element {
    /* enum element_kind; ELEMENT_UNKNOWN: one path alone, although all its elements carry others */
    uint8_t kind;
    uint8_t direction; /* enum finding_direction */
    uint64_t a, b;     /* host or NIC number, or the router's key; b for a trunk; path number */
};

struct locate_box {
    uint64_t key; /* of a router, chosen by the caller: the same on every host that should agree */
    uint8_t kind; /* ELEMENT_LEAF, ELEMENT_SPINE or ELEMENT_ROUTER */
};

/* Compares without directions. */
static inline bool locate_same_thing(const struct locate_element *x, const struct locate_element *y)
{
    return x->kind == y->kind && ((x->a == y->a && x->b == y->b) ||
                                  (x->kind == ELEMENT_TRUNK && x->a == y->b && x->b == y->a));
}

/* A path in one direction. */
struct locate_route {
    struct host_id from_host, to_host;
    struct nic_id from, to;
    struct host_id teller; /* the host that reports its trials: usually the receiver */
    uint8_t box_count;     /* 0: the way is not known, and only the ends are elements */
    struct locate_box boxes[PATH_HOP_MAX];
};

struct locate_config {
    uint32_t path_limit;
    uint32_t element_limit; /* 0: enough for path_limit paths */
    struct host_id own;     /* the host whose reports need no second one; HOST_NONE: a controller */
    bool one_word;          /* one host's reports suffice for a name */
    /* background: the largest loss of a healthy element; share: the loss of a faulty one, if both are known beforehand; 0:
     * learned. */
    double background, share;
    struct span calm; /* between looks while no loss without a name is visible; 0: LOCATE_PERIOD */
};

/* One fault, from its first answer to its end. */
enum locate_state { LOCATE_UNKNOWN, LOCATE_NAMED, LOCATE_ENDED };
struct locate_case {
    /* from the first element and the second in which it began: the same on all hosts that see it */
    uint64_t number;
    uint32_t serial; /* the same from its first answer to its end */
    uint64_t class;  /* of the paths through its elements */
    uint8_t state;   /* enum locate_state */
    uint8_t count;   /* of elements */
    bool alike;      /* no observer can tell them apart; false: not yet */
    bool single;     /* only one path with trials crosses it, so that path alone may be at fault */
    uint32_t total;  /* number of possible elements, also those without room */
    /* Likeliest first. Named: elements[0] is it, or one of those that nobody can distinguish from it. */
    struct locate_element elements[LOCATE_ONE_OF];
    /* paths with losses through it; hosts that report such paths, 64: or more */
    uint32_t paths, witnesses;
    uint32_t sent, lost; /* trials, in the deciding window */
    double share;        /* the share of trials that it loses */
    double margin;       /* ln of the odds against the best explanation without it */
    struct mono opened, named;
    /* It began between the last packet through it that arrived and the first that did not; its end likewise. */
    struct mono began_low, began_high, ended_low, ended_high;
};

/* NULL: out of memory. */
struct locate *locate_new(const struct locate_config *config);
struct locate *locate_free(struct locate *l); /* NULL is allowed; returns NULL */

/* Path number 0 .. path_limit - 1 has that route from now on. Earlier trials of the number are forgotten, unless the route is the
 * same. */
void locate_path_set(struct locate *l, uint32_t path, const struct locate_route *route);
void locate_path_clear(struct locate *l, uint32_t path);
/* Forgets the path's trials, but keeps its route: it has no reports until the next one. */
void locate_trials_clear(struct locate *l, uint32_t path);
/* A packet of the path that was sent then arrived or was lost; one in LOCATE_PERIOD. Within 1.6 s they may come in any order. */
void locate_on_trial(struct locate *l, uint32_t path, struct mono sent, bool lost);

/* The same for several at once, at most 255 of a path within 50 ms. */
void locate_on_trials(struct locate *l, uint32_t path, struct mono sent, uint32_t count,
                      uint32_t lost);

/* One look at the last 1.6 s, against that background: the explanation of that path's losses. It makes no case; the state is
 * LOCATE_NAMED if no other explanation is nearly as good. False: no loss needs a fault. */
bool locate_answer(struct locate *l, struct mono now, double background, uint32_t path,
                   struct locate_case *ret_case);

/* Makes a look if it is time. */
void locate_tick(struct locate *l, struct mono now);
struct mono locate_deadline(const struct locate *l); /* MONO_NEVER: there is no loss */

/* The time when a NIC or trunk of that path was gone, for the element with the most losses, if nearly all its recent losses are
 * one run. It began and ended between two packets each. ended_high MONO_NEVER: no later packet is known to have arrived yet. */
struct outage {
    struct mono began_low, began_high, ended_low, ended_high;
};
bool locate_outage(struct locate *l, struct mono now, uint32_t path, struct outage *ret_outage);

/* The open cases, oldest first. */
uint32_t locate_case_count(const struct locate *l);
const struct locate_case *locate_case_get(const struct locate *l, uint32_t index);
/* The next change since the last call: opened, named, renamed, ended. False: none. */
bool locate_next_change(struct locate *l, struct locate_case *ret_case);
/* The share of trials that a healthy fabric loses, as far as known. */
double locate_background(const struct locate *l);
/* True if paths that cross none of the elements of an ended case lost packets in the very same time: then more than that element
 * failed. */
bool locate_has_twin(const struct locate *l, const struct locate_case *c);
/* True if that path crosses one of the case's elements, and had reports since its trials were cleared. */
bool locate_explains(const struct locate *l, const struct locate_case *c, uint32_t path);

/* element.h: one thing of a fleet that a finding, an event or an incident is about: what kind of thing, where it is, and which
 * of its directions. It travels as this from the inference to the page. element_text makes words of it, at the end, and
 * nothing makes an element of words. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"

enum element_kind {
    ELEMENT_UNKNOWN,
    ELEMENT_HOST,   /* a */
    ELEMENT_NIC,    /* a: the NIC or its link to the leaf */
    ELEMENT_LEAF,   /* a */
    ELEMENT_SPINE,  /* a */
    ELEMENT_ROUTER, /* a, tier unknown */
    ELEMENT_TRUNK,  /* the link between a and b, two routers */
    /* What only alerts are about. */
    ELEMENT_PATH,  /* all ways from NIC a to NIC b */
    ELEMENT_CLOCK, /* of host a */
    ELEMENT_AGENT, /* of host a, its certificate included; without a: the controller */
    ELEMENT_JOB,
    ELEMENT_RAIL,
    ELEMENT_FLEET,
    ELEMENT_RULE,
    ELEMENT_KIND_COUNT
};
enum place_kind { PLACE_NONE, PLACE_HOST, PLACE_NIC, PLACE_LEAF, PLACE_SPINE, PLACE_ROUTER };
#define PLACE_KIND_COUNT 6

/* One box of the fabric. number is the host, NIC, leaf or spine number; UINT32_MAX: only the address is known. */
struct place {
    uint32_t kind;
    uint32_t number;
    uint8_t address[16]; /* IPv6, or IPv4 mapped into it; zero when unknown */
};

/* direction: enum finding_direction, that of the packets: a NIC's and a host's OUT is what it sends, IN what it receives;
 * a trunk's and a path's OUT is from a to b. BOTH: all of it. NONE: not known. */
struct element {
    uint32_t kind, direction;
    struct place a, b;
};

/* What may be at fault where nobody can tell yet which: likeliest first. More in total than are listed: others may be it, too. */
#define ELEMENT_ONE_OF 4
struct element_choice {
    uint32_t count, total;
    struct element one_of[ELEMENT_ONE_OF];
};

/* Turns ids into the names of the fleet file. A NULL function or result: "host 3", "nic 7" stand in. */
struct finding_names {
    const char *(*host)(void *context, struct host_id host);
    const char *(*nic)(void *context, struct nic_id nic);
    void *context;
    /* the host that it is of; NULL: not known */
    const char *(*host_of)(void *context, struct nic_id nic);
    /* switch and port that it hangs on; NULL: not known */
    const char *(*port)(void *context, struct nic_id nic);
    /* Whose clock tells since when, where a host knew no UTC ("the controller's"); NULL: nobody's. */
    const char *receiver;
    int64_t received_since_ns; /* by it */
};

/* Nothing is known of it. */
struct element element_unknown(void);
struct element element_of(enum element_kind kind, enum place_kind place, uint32_t number);
/* The element that a box of the fabric is. */
struct element element_at(const struct place *place);
bool element_same(const struct element *x, const struct element *y);

/* The same thing in another direction is one. Without room it counts in the total. */
void element_choice_add(struct element_choice *choice, const struct element *e);
/* Something may be both, as far as is listed. */
bool element_choice_meets(const struct element_choice *x, const struct element_choice *y);

/* Short stable words for JSON: "trunk", "leaf", "out"; NULL: of no known number. */
const char *element_kind_word(uint32_t kind);
const char *place_kind_word(uint32_t kind);
const char *direction_word(uint32_t direction); /* NULL: not known */
/* The other way round; ELEMENT_UNKNOWN, PLACE_NONE: no such word. */
uint32_t element_kind_of(const char *word);
uint32_t place_kind_of(const char *word);
uint32_t direction_of(const char *word);

/* "trunk leaf0 - spine1", "host1/nic0 or its link"; always terminated, like snprintf. names may be NULL. */
size_t element_text(const struct element *e, const struct finding_names *names, char *ret_text,
                    size_t size);
/* "unknown", "unknown, one of spine1, trunk leaf0 - spine1 and others" */
size_t element_choice_text(const struct element_choice *choice, const struct finding_names *names,
                           char *ret_text, size_t size);
/* "leaf0", "router 10.0.0.7", "host1/nic0" */
size_t place_text(const struct place *p, const struct finding_names *names, char *ret_text,
                  size_t size);

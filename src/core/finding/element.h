/* element.h: an element of a fleet that a finding, an event or an incident is about: its kind, its place, and its direction. It
 * stays in this form from the inference to the web page. Only element_text() turns it into words, at the end. No code turns words
 * back into an element. */
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
    /* These are subjects of alerts only. */
    ELEMENT_PATH,  /* all paths from NIC a to NIC b */
    ELEMENT_CLOCK, /* of host a */
    ELEMENT_AGENT, /* of host a, with its certificate; without a: the controller */
    ELEMENT_JOB,
    ELEMENT_RAIL,
    ELEMENT_FLEET,
    ELEMENT_RULE,
    ELEMENT_KIND_COUNT
};
enum place_kind { PLACE_NONE, PLACE_HOST, PLACE_NIC, PLACE_LEAF, PLACE_SPINE, PLACE_ROUTER };
#define PLACE_KIND_COUNT 6

/* A switch, router, host or NIC. number: the host's, NIC's, leaf's or spine's number; UINT32_MAX: only the address is known. */
struct place {
    uint32_t kind;
    uint32_t number;
    uint8_t address[16]; /* IPv6, or IPv4 mapped into it; zero when unknown */
};

/* direction: enum finding_direction, for packets. For a NIC or a host, OUT is what it sends and IN what it receives. For a trunk
 * or a path, OUT goes from a to b. BOTH: both directions. NONE: not known. */
struct element {
    uint32_t kind, direction;
    struct place a, b;
};

/* The elements that may be at fault if the suspect is unknown, likeliest first. If total is above count, other elements are
 * possible, too. */
#define ELEMENT_ONE_OF 4
struct element_choice {
    uint32_t count, total;
    struct element one_of[ELEMENT_ONE_OF];
};

/* Turns ids into the names of the fleet file. If a function or its result is NULL, "host 3" or "nic 7" is used. */
struct finding_names {
    const char *(*host)(void *context, struct host_id host);
    const char *(*nic)(void *context, struct nic_id nic);
    void *context;
    /* the NIC's host; NULL: not known */
    const char *(*host_of)(void *context, struct nic_id nic);
    /* the switch and port at the other end of its cable; NULL: not known */
    const char *(*port)(void *context, struct nic_id nic);
    /* The owner of the clock in received_since_ns, if a host knew no UTC ("the controller's"); NULL: none. */
    const char *receiver;
    int64_t received_since_ns; /* the time by that clock */
};

/* The unknown element. */
struct element element_unknown(void);
struct element element_of(enum element_kind kind, enum place_kind place, uint32_t number);
/* The element for a switch, router, host or NIC. */
struct element element_at(const struct place *place);
bool element_same(const struct element *x, const struct element *y);

/* The same element in another direction counts as the same. If the list is full, only the total grows. */
void element_choice_add(struct element_choice *choice, const struct element *e);
/* True if the lists have an element in common, as far as they go. */
bool element_choice_meets(const struct element_choice *x, const struct element_choice *y);

/* Short stable words for JSON: "trunk", "leaf", "out"; NULL: an unknown number. */
const char *element_kind_word(uint32_t kind);
const char *place_kind_word(uint32_t kind);
const char *direction_word(uint32_t direction); /* NULL: not known */
/* The number of a word; ELEMENT_UNKNOWN, PLACE_NONE: no such word. */
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

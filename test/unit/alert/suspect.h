/* suspect.h: an element by its name in a test: "trunk leaf3 - spine1", "host0/ib3", "host0", "leaf3", "router 10.0.4.1". */
#pragma once
#include <stdio.h>

#include "base/ip.h"
#include "core/finding/element.h"

#define SUSPECT_NICS 8 /* of a host */

static inline struct element suspect_named(enum element_kind kind, const char *name)
{
    struct element e = element_unknown();
    unsigned x = 0, y = 0;
    char address[64] = "", other[64] = "";

    if (kind == ELEMENT_UNKNOWN || name == NULL) {
        return e;
    }
    if (sscanf(name, "trunk leaf%u - spine%u", &x, &y) == 2) {
        e = element_of(ELEMENT_TRUNK, PLACE_LEAF, x);
        e.b = (struct place){.kind = PLACE_SPINE, .number = y};
    } else if (sscanf(name, "trunk router %63s - router %63s", address, other) == 2) {
        e = element_of(ELEMENT_TRUNK, PLACE_ROUTER, UINT32_MAX);
        e.b.kind = PLACE_ROUTER;
        e.kind = ip_parse(address, e.a.address) && ip_parse(other, e.b.address) ? ELEMENT_TRUNK
                                                                                : ELEMENT_UNKNOWN;
    } else if (sscanf(name, "host%u/ib%u", &x, &y) == 2) {
        e = element_of(ELEMENT_NIC, PLACE_NIC, x * SUSPECT_NICS + y);
    } else if (sscanf(name, "host%u", &x) == 1) {
        e = element_of(ELEMENT_HOST, PLACE_HOST, x);
    } else if (sscanf(name, "leaf%u", &x) == 1) {
        e = element_of(ELEMENT_LEAF, PLACE_LEAF, x);
    } else if (sscanf(name, "spine%u", &x) == 1) {
        e = element_of(ELEMENT_SPINE, PLACE_SPINE, x);
    } else if (sscanf(name, "router %63s", address) == 1) {
        e = element_of(ELEMENT_ROUTER, PLACE_ROUTER, UINT32_MAX);
        e.kind = ip_parse(address, e.a.address) ? ELEMENT_ROUTER : ELEMENT_UNKNOWN;
    }
    return e;
}

/* Without sure: unknown, one of that element and others. */
static inline void suspect_set(struct alert_finding *f, struct element suspect, bool sure)
{
    f->suspect = sure ? suspect : element_unknown();
    f->choice = (struct element_choice){0};
    if (!sure && suspect.kind != ELEMENT_UNKNOWN) {
        element_choice_add(&f->choice, &suspect);
        f->choice.total++;
    }
}

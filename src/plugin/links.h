/* links.h: what kind of thing each interface is, by the kernel's own word (rtnetlink), whatever its name. */
#pragma once
#include <stdbool.h>

#include "base/bug.h"

#define LINKS_MAX 256

struct link {
    char name[16];
    char kind
        [16]; /* "veth", "bridge", "vlan", ...; "": a piece of hardware, or the kernel doesn't say */
    char port_of[16]; /* kind of what it is a port of: "bridge", "bond"; "": of nothing */
};

/* Those of this network name space; the number, or -errno. */
MUST_CHECK int links_read(struct link *ret_links, int capacity);
/* It leads out of this host, or out of this container: no switch, tunnel or dead end made of software. */
bool links_carries(const struct link *links, int count, const char *name);

/* links.h: the kind of each interface, as the kernel (rtnetlink) reports it, whatever its name. */
#pragma once
#include <stdbool.h>

#include "base/bug.h"

#define LINKS_MAX 256

struct link {
    char name[16];
    char
        kind[16]; /* "veth", "bridge", "vlan", ...; "": hardware, or the kernel doesn't report it */
    /* the kind of the interface that it is a port of: "bridge", "bond"; "": none */
    char port_of[16];
};

/* The links of this network name space. Returns their number, or -errno. */
MUST_CHECK int links_read(struct link *ret_links, int capacity);
/* It leads out of this host, or out of this container: it is no switch, tunnel or dead end made of software. */
bool links_carries(const struct link *links, int count, const char *name);

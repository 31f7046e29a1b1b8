/* topology.h: the fabric as somebody declared it: hosts, their NICs, rails, leaves, spines; by versions; and where what is
 * seen differs.
 *
 * Seen is: who is a member, with which NICs, rails and leaves they joined, what their agents last said, and which NICs are one
 * switch apart, as the mesh found out (fleet_path_hops). A NIC is seen at the leaf to whose declared NICs most of its ways
 * of one switch lead; where none is known, it is not seen anywhere, and not called miscabled.
 *
 * A version is a YAML text that was declared once, and stays; the last TOPOLOGY_KEPT are in the store, as one value. */
#pragma once
#include "service/controller/controller.h"

#define TOPOLOGY_TEXT_MAX (900 << 10) /* some 10,000 NICs */
#define TOPOLOGY_KEPT     10
#define TOPOLOGY_NAME_MAX 64

struct topology_leaf {
    char name[TOPOLOGY_NAME_MAX];
};
struct topology_nic {
    char name[IF_NAMESIZE], port[TOPOLOGY_NAME_MAX]; /* port: of the leaf; empty: not said */
    int32_t rail;                                    /* -1: not said */
    uint32_t leaf;                                   /* index; UINT32_MAX: not said */
};
struct topology_host {
    char name[TLS_NAME_MAX + 1];
    uint32_t first, count; /* of nics */
    unsigned line;
};

struct topology { /* one text, read */
    struct topology_leaf *leaves, *spines;
    struct topology_host *hosts;
    struct topology_nic *nics;
    uint32_t leaf_count, spine_count, host_count, nic_count;
};
/* -EINVAL with "NAME:LINE:COLUMN: expected X, found Y"; -ENOMEM. */
MUST_CHECK int topology_parse(const char *name, const char *text, struct topology *ret,
                              struct config_error *error);
void topology_done(struct topology *t);
/* Of leaves or spines the one of that name; `count`: none is. */
uint32_t topology_find(const struct topology_leaf *list, uint32_t count, const char *name);

struct topology_version {
    uint64_t version;
    int64_t at_ns;
    char who[64], why[160];
    char *text;
};
struct declared {
    struct topology_version versions[TOPOLOGY_KEPT]; /* newest first */
    uint32_t count;
    struct topology now; /* of the newest; empty: none was declared */
};
MUST_CHECK int declared_load(struct controller *c);
void declared_free(struct controller *c);
/* In force when it returns 0; not yet on the disk: the caller commits. -EINVAL: error says where. */
MUST_CHECK int declared_put(struct controller *c, const char *text, const char *who,
                            const char *why, struct config_error *error);

/* ---- topology_compare.c ---- */
enum difference_kind {
    DIFFERENCE_MISSING_HOST, /* declared, no member */
    DIFFERENCE_SILENT_HOST,  /* declared and a member, but nothing current is heard of it */
    DIFFERENCE_UNDECLARED_HOST,
    DIFFERENCE_MISSING_NIC,
    DIFFERENCE_UNDECLARED_NIC,
    DIFFERENCE_WRONG_RAIL,
    DIFFERENCE_WRONG_LEAF, /* the host joined with another */
    DIFFERENCE_MISCABLED,  /* seen, or said by its switch, to be at another leaf or port */
    DIFFERENCE_NO_LINK,
};
struct difference {
    enum difference_kind kind;
    const char *host; /* NULL never; borrowed from topology or fleet */
    const char *nic;  /* NULL: about the host */
    uint32_t id;      /* of the NIC; UINT32_MAX: none */
    char declared[140], found[140], text[600];
};
const char *difference_word(enum difference_kind kind);
struct topology_view {
    uint32_t *seen;   /* by NIC id: leaf that it is seen at; UINT32_MAX: not seen */
    uint32_t *of_nic; /* by NIC id: declared NIC; UINT32_MAX: undeclared */
    struct difference *differences;
    size_t count, capacity;
    bool failed;
};
/* -ENOMEM. Nothing declared: no differences. */
MUST_CHECK int topology_compare(const struct controller *c, struct topology_view *ret);
void topology_view_done(struct topology_view *v);

/* topology.h: the declared fabric: hosts, their NICs, rails, leaves, spines, in versions; and the differences from what is
 * seen.
 *
 * These facts are seen: the members; the NICs, rails and leaves of their joins; their agents' last reports; and pairs of NICs
 * with one switch between them, as the mesh found (fleet_path_hops). A NIC is seen at a leaf if most of its one-switch paths
 * lead to NICs that are declared at this leaf. If no such path is known, the NIC is not seen at any leaf, and not reported as
 * miscabled.
 *
 * A version is a YAML text that was declared once; it does not change. The last TOPOLOGY_KEPT are in the store, as one value. */
#pragma once
#include "service/controller/controller.h"

#define TOPOLOGY_TEXT_MAX (900 << 10) /* for some 10,000 NICs */
#define TOPOLOGY_KEPT     10
#define TOPOLOGY_NAME_MAX 64

struct topology_leaf {
    char name[TOPOLOGY_NAME_MAX];
};
struct topology_nic {
    char name[IF_NAMESIZE], port[TOPOLOGY_NAME_MAX]; /* port: of the leaf; empty: not declared */
    int32_t rail;                                    /* -1: not declared */
    uint32_t leaf;                                   /* index; UINT32_MAX: not declared */
};
struct topology_host {
    char name[TLS_NAME_MAX + 1];
    uint32_t first, count; /* range of nics */
    unsigned line;
};

struct topology { /* the contents of one text */
    struct topology_leaf *leaves, *spines;
    struct topology_host *hosts;
    struct topology_nic *nics;
    uint32_t leaf_count, spine_count, host_count, nic_count;
};
/* -EINVAL with "NAME:LINE:COLUMN: expected X, found Y"; -ENOMEM. */
MUST_CHECK int topology_parse(const char *name, const char *text, struct topology *ret,
                              struct config_error *error);
void topology_done(struct topology *t);
/* Index of the leaf or spine with that name; `count`: none. */
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
    struct topology now; /* from the newest version; empty: none was declared */
};
MUST_CHECK int declared_load(struct controller *c);
void declared_free(struct controller *c);
/* If it returns 0, the text is in force, but not yet on the disk: the caller commits. -EINVAL: error has the place. */
MUST_CHECK int declared_put(struct controller *c, const char *text, const char *who,
                            const char *why, struct config_error *error);

/* ---- topology_compare.c ---- */
enum difference_kind {
    DIFFERENCE_MISSING_HOST, /* declared, but no member */
    DIFFERENCE_SILENT_HOST,  /* declared and a member, but without a current report */
    DIFFERENCE_UNDECLARED_HOST,
    DIFFERENCE_MISSING_NIC,
    DIFFERENCE_UNDECLARED_NIC,
    DIFFERENCE_WRONG_RAIL,
    DIFFERENCE_WRONG_LEAF, /* the host joined with another leaf */
    DIFFERENCE_MISCABLED,  /* seen, or reported by its switch, at another leaf or port */
    DIFFERENCE_NO_LINK,
};
struct difference {
    enum difference_kind kind;
    const char *host; /* never NULL; owned by topology or fleet */
    const char *nic;  /* NULL: the difference is about the host */
    uint32_t id;      /* id of the NIC; UINT32_MAX: none */
    char declared[140], found[140], text[600];
};
const char *difference_word(enum difference_kind kind);
struct topology_view {
    uint32_t *seen;   /* by NIC id: the leaf where it is seen; UINT32_MAX: not seen */
    uint32_t *of_nic; /* by NIC id: index of the declared NIC; UINT32_MAX: undeclared */
    struct difference *differences;
    size_t count, capacity;
    bool failed;
};
/* -ENOMEM. If no topology is declared, there are no differences. */
MUST_CHECK int topology_compare(const struct controller *c, struct topology_view *ret);
void topology_view_done(struct topology_view *v);

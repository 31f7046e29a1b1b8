/* mesh_page.h: the mesh's verdicts in shared memory: for each pair of NICs, path and direction. The agent writes it. A job's
 * transport reads it: it must learn within milliseconds that a path is dead, without a question to any process.
 *
 * It has a header and an array of entries of one cache line, each with its own sequence lock (as in clock_page.h), so that a
 * changed verdict disturbs no reader of another one. An entry keeps its index as long as its `generation` stays: a reader
 * searches once, then reads that index and compares.
 *
 * A reader must compare header.written with its raw clock: an agent that died leaves its last verdicts in the page, and after
 * MESH_PAGE_STALE_NS they are void. A missing verdict is not a good verdict. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/id.h"
#include "base/limits.h"

#define MESH_PAGE_NAME      "mesh.page"
#define MESH_PAGE_MAGIC     0x314853454d4f46ULL /* "FOMESH1" */
#define MESH_PAGE_VERSION   1
#define MESH_PAGE_ENTRY_MAX (2 * MEMBER_EDGE_MAX * EDGE_PATH_MAX)
#define MESH_PAGE_STALE_NS  1000000000LL
#define MESH_PAGE_OWD_NONE  INT32_MIN /* not measured */

enum mesh_page_state {
    MESH_PAGE_NONE,    /* the entry is free, or there is no verdict yet */
    MESH_PAGE_OK,      /* packets arrive */
    MESH_PAGE_SUSPECT, /* one is overdue; a burst is on its way */
    MESH_PAGE_DEAD,    /* none arrives: a black hole or a link down */
    MESH_PAGE_LOSSY,   /* some packets don't arrive */
};
enum mesh_page_direction {
    MESH_PAGE_OUT, /* local NIC -> peer */
    MESH_PAGE_IN,
};

/* 56 bytes + sequence = one cache line. */
struct mesh_page_entry {
    struct nic_id local, peer;
    uint64_t path;        /* signature of the hops it takes; 0: routers are silent */
    uint16_t source_port; /* UDP, of the sender in this direction: it selects the path in ECMP */
    uint8_t state;        /* enum mesh_page_state */
    uint8_t direction;    /* enum mesh_page_direction */
    uint32_t generation;  /* another number when the entry is given to another path */
    int32_t owd_ns_p50;   /* last 10 s; MESH_PAGE_OWD_NONE: none */
    int32_t owd_ns_floor; /* lowest seen on this path */
    /* of both delays, by the clocks: statistical; UINT32_MAX: not synchronised */
    uint32_t bound_ns;
    uint32_t loss_ppm; /* over the last 10 s */
    int64_t since;     /* begin of the state: fleet time ns, 0: not known */
    uint32_t reorder_ppm;
    uint32_t addresses; /* mesh_page_addresses() of the two NICs; 0: not known */
};
_Static_assert(sizeof(struct mesh_page_entry) == 56, "one cache line with its sequence");

struct mesh_page_header {
    uint64_t magic;
    uint32_t version;
    uint32_t capacity; /* entries that the file has room for */
    uint32_t count;    /* entries used so far; grows */
    uint32_t agent;    /* its process id, for people */
    uint64_t timeline;
    uint32_t epoch;
    uint32_t generation; /* + 1 whenever any state changed: a reader polls this word */
    int64_t written;     /* host's raw clock, ns: the last time the agent looked at all verdicts */
};
_Static_assert(sizeof(struct mesh_page_header) == 48, "shared memory layout");

struct mesh_page_memory {
    uint64_t sequence;
    uint64_t header[6];
    uint64_t reserved;
    struct {
        uint64_t sequence;
        uint64_t words[7];
    } entries[];
};
_Static_assert(sizeof(struct mesh_page_memory) == 64, "entries are cache lines");

static inline size_t mesh_page_size(uint32_t capacity)
{
    return sizeof(struct mesh_page_memory) + (size_t)capacity * 64;
}

/* By this a reader without fleet numbers finds its pair of NICs: a hash of their addresses (IPv4 as ::ffff:a.b.c.d) as this end
 * has them, never 0. Two pairs in 4e9 share one: so it is good for hints only. */
uint32_t mesh_page_addresses(const uint8_t local[static 16], const uint8_t peer[static 16]);

/* -- writer */
void mesh_page_init(struct mesh_page_memory *memory, uint32_t capacity, uint64_t nonce);
/* Fills in magic, version and capacity. */
void mesh_page_write_header(struct mesh_page_memory *memory, const struct mesh_page_header *header);
/* index < capacity. It writes nothing if nothing changed. True: the state changed (the caller updates header.generation). */
bool mesh_page_write(struct mesh_page_memory *memory, uint32_t index,
                     const struct mesh_page_entry *entry);

/* -- readers; size: of the mapping. Safe with any bytes. */
MUST_CHECK bool mesh_page_read_header(const struct mesh_page_memory *memory, size_t size,
                                      struct mesh_page_header *ret);
MUST_CHECK bool mesh_page_read(const struct mesh_page_memory *memory, size_t size, uint32_t index,
                               struct mesh_page_entry *ret);
/* The index of the verdict on that path, by searching; UINT32_MAX: there is none. */
uint32_t mesh_page_find(const struct mesh_page_memory *memory, size_t size, struct nic_id local,
                        struct nic_id peer, uint16_t source_port,
                        enum mesh_page_direction direction);

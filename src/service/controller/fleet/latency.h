/* latency.h: the latency matrix, NIC by NIC, as it is now, as it was, or as it was measured on demand: only
 * cells that somebody measured.
 *
 * Rows receive: cells of row i are cells[first[i]] to cells[first[i + 1]], `from` ascending, both indices
 * into nics. A cell is made of the pair's paths: median of their medians, worst tail, loss and state. What a
 * silent host said last is no cell's value: now its cells are there with state 0; of an earlier moment they are
 * missing, as is whatever wasn't reported within look_ns before it. */
#pragma once
#include <net/if.h>

#include "service/controller/history/series.h"

#define LATENCY_HEAD_SIZE   24
#define LATENCY_CELL_SIZE   9                       /* sender 4, two delay codes, state 1 */
#define LATENCY_CELL_SIZE_2 (LATENCY_CELL_SIZE + 2) /* and how many paths, how many dead ones */

struct latency_nic {
    uint32_t id;
    uint32_t rail;
    char host[TLS_NAME_MAX + 1], name[IF_NAMESIZE];
    char leaf
        [64]; /* where it joined, else the switch that its packets pass first; empty: not known */
};

struct latency_cell {
    uint32_t from, to;
    int32_t p50, p99; /* delay codes */
    uint32_t loss_ppm;
    uint8_t state; /* PathState; 0: not known */
    uint8_t paths, paths_dead;
};

struct latency_matrix {
    struct latency_nic *nics;
    uint32_t *index_of; /* by NIC id: index, UINT32_MAX: none */
    uint32_t nic_count, id_count, *first;
    struct latency_cell *cells; /* in no order before latency_order */
    size_t count, capacity;
    bool failed;     /* out of memory */
    int64_t step_ns; /* the coarsest step that an earlier moment was read at; 0: now */
};

/* The NICs of all members that are seen (by host index; NULL: all), by leaf, host and number, so that
 * neighbours in the fabric are neighbours in the matrix. -ENOMEM. */
MUST_CHECK int latency_init(struct latency_matrix *m, const struct controller *c,
                            const uint8_t *visible);
void latency_done(struct latency_matrix *m);

/* All cells of a host's NICs as they are. */
void latency_add_host(struct latency_matrix *m, const struct fleet_host *h, bool known);

/* One cell, of the paths of one pair, 1 to EDGE_PATH_MAX. */
void latency_add_pair(struct latency_matrix *m, const struct fleet_path *paths, uint32_t count);

struct latency_moment {
    int64_t at_ns, now_ns, keep_fine_ns;
    int64_t look_ns; /* a whole number of slots: three reports, as for who is stale now */
};
/* All cells of a host's NICs as they were; any thread, with a store of its own. */
MUST_CHECK int latency_read_host(struct latency_matrix *m, struct store *store,
                                 const struct history_host *host,
                                 const struct latency_moment *moment);

/* After all hosts. -ENOMEM. */
MUST_CHECK int latency_order(struct latency_matrix *m);

/* Little endian, as docs/openapi.yaml has it under application/octet-stream. at_ns 0: now. version: 1, or 2, which has each
 * cell's paths, each NIC's leaf and rail. -ENOMEM. */
MUST_CHECK int latency_encode(const struct latency_matrix *m, int version, int64_t at_ns,
                              struct message_buffer *ret);

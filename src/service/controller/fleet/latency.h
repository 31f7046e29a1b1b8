/* latency.h: the latency matrix, NIC by NIC: the present one, an earlier one, or one measured on demand. It has only measured
 * cells.
 *
 * Rows receive. The cells of row i are cells[first[i]] to cells[first[i + 1]], with ascending `from`. Both are indices of
 * nics. A cell is made of the pair's paths: median of their medians, worst tail, loss and state. Old values of a silent host
 * are not shown: now its cells have state 0. In a matrix of an earlier moment they are missing, like all cells that were not
 * reported within look_ns before. */
#pragma once
#include <net/if.h>

#include "service/controller/history/series.h"

#define LATENCY_HEAD_SIZE 24
#define LATENCY_CELL_SIZE 9 /* sender 4, two delay codes 2 each, state 1 */
/* and the number of paths, the number of dead paths */
#define LATENCY_CELL_SIZE_2 (LATENCY_CELL_SIZE + 2)

struct latency_nic {
    uint32_t id;
    uint32_t rail;
    char host[TLS_NAME_MAX + 1], name[IF_NAMESIZE];
    char
        leaf[64]; /* the leaf from its join, else the first switch on its paths; empty: not known */
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
    uint32_t *index_of; /* index by NIC id; UINT32_MAX: none */
    uint32_t nic_count, id_count, *first;
    struct latency_cell *cells; /* unsorted before latency_order */
    size_t count, capacity;
    bool failed;     /* out of memory */
    int64_t step_ns; /* the coarsest step that was read for an earlier moment; 0: now */
};

/* Adds the NICs of all visible members (by host index; NULL: all), sorted by leaf, host and number. So NICs that are near each
 * other in the fabric are near in the matrix. -ENOMEM. */
MUST_CHECK int latency_init(struct latency_matrix *m, const struct controller *c,
                            const uint8_t *visible);
void latency_done(struct latency_matrix *m);

/* Adds all present cells of a host's NICs. */
void latency_add_host(struct latency_matrix *m, const struct fleet_host *h, bool known);

/* Adds one cell from the paths of one pair, 1 to EDGE_PATH_MAX. */
void latency_add_pair(struct latency_matrix *m, const struct fleet_path *paths, uint32_t count);

struct latency_moment {
    int64_t at_ns, now_ns, keep_fine_ns;
    int64_t look_ns; /* a whole number of slots: three reports, as for a stale host */
};
/* Adds all cells of a host's NICs at an earlier moment. Any thread may call it with a store of its own. */
MUST_CHECK int latency_read_host(struct latency_matrix *m, struct store *store,
                                 const struct history_host *host,
                                 const struct latency_moment *moment);

/* Called after all hosts are added. -ENOMEM. */
MUST_CHECK int latency_order(struct latency_matrix *m);

/* Encodes as described in docs/openapi.yaml for application/octet-stream, little endian. at_ns 0: now. version: 1 or 2;
 * version 2 adds each cell's paths, and each NIC's leaf and rail. -ENOMEM. */
MUST_CHECK int latency_encode(const struct latency_matrix *m, int version, int64_t at_ns,
                              struct message_buffer *ret);

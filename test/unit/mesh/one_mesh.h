/* one_mesh.h: a mesh of one NIC with some peers and without a network, for tests that set and read its data. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mesh/internal.h"

enum { PEERS = 4, PATHS = 4, PORT_BASE = 7640 };

static struct mesh *m;
static struct mono now;
static struct mesh_peer peers[PEERS];

static inline int begin(void **state)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        peers[i] = (struct mesh_peer){.nic = {i}, .host = {10 + i}, .leaf = LEAF_UNKNOWN};
    }
    const struct mesh_config config = {.nic_count = 1,
                                       .nics = {{0}},
                                       .queue_ns = {5000},
                                       .drain_ns = {20000},
                                       .fleet = {.seed = 7, .peers = peers, .peer_count = PEERS},
                                       .seed = 3,
                                       .port_base = PORT_BASE,
                                       .edge_limit = 28,
                                       .ring_peers = 16,
                                       .full_limit = 20,
                                       .path_limit = PATHS,
                                       .interval = span_ms(100),
                                       .grid = span_ms(5),
                                       .late = span_ms(25)};
    (void)state;
    now = (struct mono){1000 * NS_PER_S};
    m = mesh_new(&config, now);
    return m == NULL;
}

static inline int end(void **state)
{
    (void)state;
    mesh_free(m);
    return 0;
}

static inline struct mesh_edge *edge_of(uint32_t nic, int *ret_edge)
{
    *ret_edge = mesh_edge_find(m, 0, (struct nic_id){nic});
    assert_true(*ret_edge >= 0);
    return &m->edges[*ret_edge];
}

static inline struct mono after(int64_t ns)
{
    return mono_add(now, span_ns(ns));
}

/* Routers, identified by the last byte of their addresses. */
static inline uint16_t router(uint8_t number)
{
    uint8_t address[16] = {[15] = number};

    return (uint16_t)mesh_router(m, address);
}

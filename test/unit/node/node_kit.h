/* node_kit.h: one node without a network, in a fleet of four hosts with two NICs each. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/node/internal.h"
#include "node_invariant.h"

#define KIT_HOSTS 4
#define KIT_NICS  2
#define KIT_PEERS (KIT_HOSTS * KIT_NICS)

static struct node *node;
static struct mono now = {1000 * NS_PER_S};

static inline struct node_config kit_config(void)
{
    static struct mesh_peer peers[KIT_PEERS];

    for (uint32_t i = 0; i < KIT_PEERS; i++) {
        peers[i] = (struct mesh_peer){
            .nic = {i}, .host = {i / KIT_NICS}, .rail = (uint16_t)(i % KIT_NICS)};
    }
    return (struct node_config){
        .host = {0},
        .nic_count = KIT_NICS,
        .nics = {{.nic = {0}, .stamps = STAMP_SOFTWARE}, {.nic = {1}, .stamps = STAMP_SOFTWARE}},
        .fleet = {.seed = 7, .peers = peers, .peer_count = KIT_PEERS},
        .seed = 1,
        .no_discovery = 1};
}

static inline void kit_start_with(const struct node_config *config)
{
    node = node_free(node);
    now = (struct mono){1000 * NS_PER_S};
    assert_int_equal(node_new(&node, config, now), 0);
}

static inline void kit_start(void)
{
    const struct node_config config = kit_config();
    kit_start_with(&config);
}

static inline int kit_end(void **state)
{
    node = node_free(node);
    return 0;
}

static inline void kit_check(void)
{
    const char *broken = node_invariant(node);
    if (broken != NULL) {
        fail_msg("%s", broken);
    }
}

/* A tick. All its actions except findings are dropped. */
static inline void kit_tick(void)
{
    struct node_action a;

    node_tick(node, now);
    kit_check();
    while (node_next_action(node, &a)) {
    }
}

static inline uint32_t kit_edges(void)
{
    struct node_edge e;
    uint32_t count = 0;

    for (uint32_t i = 0; i < node_edge_count(node); i++) {
        count += node_edge_get(node, i, now, &e);
    }
    return count;
}

static inline struct node_counters kit_counters(void)
{
    struct node_counters c;

    node_counters_get(node, &c);
    return c;
}

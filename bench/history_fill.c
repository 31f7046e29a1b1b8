/* history_fill.c: makes a past for the hosts of bench/fleet_load.c: chunks of ten seconds' values, as the controller seals
 * them, in a store whose controller is stopped.
 *
 * usage: history_fill STORE HOST_ID FIRST_NIC FLEET_NICS NICS PEERS PATHS HOURS END_UTC_S
 * Prints "chunks N bytes N samples N". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "base/time.h"
#include "core/fleet/delay_code.h"
#include "platform/store/chunk.h"
#include "platform/store/store.h"

enum { SLOTS = 60, SERIES_MAX = 16384 };
#define CHUNK_NS (600 * NS_PER_S)

static struct {
    uint64_t number[9];
    struct chunk_series *series;
    size_t count, samples;
    uint64_t prng;
} world;

static uint64_t draw(void)
{
    return world.prng = hash_u64(world.prng, 1);
}

static int64_t *add(uint32_t metric, uint32_t local, uint32_t peer, uint32_t port)
{
    struct chunk_series *s = &world.series[world.count++];
    s->key = (struct chunk_key){metric, local, peer, port};
    world.samples += SLOTS;
    return s->values;
}

static void add_path(uint32_t local, uint32_t peer, uint32_t port, int64_t base)
{
    int64_t *p50 = add(METRIC_OWD_P50, local, peer, port),
            *p99 = add(METRIC_OWD_P99, local, peer, port),
            *loss = add(METRIC_LOSS_PPM, local, peer, port),
            *state = add(METRIC_PATH_STATE, local, peer, port);
    for (int i = 0; i < SLOTS; i++) {
        p50[i] = delay_encode(base + (int64_t)(draw() % 60));
        p99[i] = delay_encode(base + 300 + (int64_t)(draw() % 900));
        loss[i] = 0;
        state[i] = 1;
    }
}

static int compare(const void *a, const void *b)
{
    return chunk_key_compare(&((const struct chunk_series *)a)->key,
                             &((const struct chunk_series *)b)->key);
}

static void fill(void)
{
    const uint64_t first = world.number[1], fleet = world.number[2], nics = world.number[3],
                   peers = world.number[4], paths = world.number[5];
    world.count = 0;
    for (uint64_t i = 0; i < nics; i++) {
        for (uint64_t k = 0; k < peers; k++) {
            const uint64_t pair = hash_u64(first + i, k);
            for (uint64_t p = 0; p < paths; p++) {
                add_path((uint32_t)(first + i), (uint32_t)(pair % fleet), (uint32_t)(7640 + p),
                         2000 + (int64_t)(hash_u64(pair, p) % 6000));
            }
        }
        for (uint32_t m = METRIC_PORT_RX_BPS; m <= METRIC_PORT_TX_DROPS; m++) {
            int64_t *v = add(m, (uint32_t)(first + i), 0, 0);
            for (int s = 0; s < SLOTS; s++) {
                v[s] = m <= METRIC_PORT_TX_BPS
                           ? (int64_t)(300000000000ULL + draw() % 50000000000ULL)
                           : 1;
            }
        }
    }
    for (uint32_t m = METRIC_CLOCK_HARD_NS; m <= METRIC_AGENT_STAMPS_MISSING; m++) {
        int64_t *v = add(m, CHUNK_HOST, 0, 0);
        for (int s = 0; s < SLOTS; s++) {
            v[s] = m == METRIC_CLOCK_HARD_NS || m == METRIC_CLOCK_STATISTICAL_NS
                       ? 4000 + (int64_t)(draw() % 500)
                   : m == METRIC_AGENT_CPU_PPM ? 3000 + (int64_t)(draw() % 1000)
                   : m == METRIC_AGENT_MEMORY  ? 12000000 + (int64_t)(draw() % 16) * 4096
                                               : 1;
        }
    }
    qsort(world.series, world.count, sizeof(world.series[0]), compare);
}

int main(int argc, char **argv)
{
    struct store *store = NULL;
    struct message_buffer packed = {0};
    char words[256];
    size_t chunks = 0, bytes = 0;
    if (argc != 10) {
        fputs("usage: history_fill STORE HOST_ID FIRST_NIC FLEET_NICS NICS PEERS PATHS HOURS END\n",
              stderr);
        return 2;
    }
    for (int i = 2; i < 10; i++) {
        world.number[i - 2] = strtoull(argv[i], NULL, 10);
    }
    world.prng = world.number[1] + 1;
    world.series = calloc(SERIES_MAX, sizeof(*world.series));
    int64_t *values = calloc((size_t)SERIES_MAX * SLOTS, sizeof(*values));
    if (world.series == NULL || values == NULL ||
        world.number[3] * (4 * world.number[4] * world.number[5] + 9) + 9 > SERIES_MAX) {
        fputs("history_fill: too much\n", stderr);
        return 1;
    }
    for (size_t i = 0; i < SERIES_MAX; i++) {
        world.series[i].values = values + i * SLOTS;
    }
    const struct store_options options = {.path = argv[1]};
    int r = store_open(&options, &store, words);
    const int64_t end = (int64_t)world.number[7] * NS_PER_S / CHUNK_NS * CHUNK_NS;
    for (int64_t at = end - (int64_t)world.number[6] * 3600 * NS_PER_S; at < end && r == 0;
         at += CHUNK_NS) {
        const struct chunk_head head = {at, 10 * NS_PER_S, SLOTS};
        fill();
        r = chunk_encode(&head, world.series, world.count, &packed);
        const struct store_chunk chunk = {
            0, (int64_t)world.number[0], at, at + CHUNK_NS, packed.bytes, packed.size};
        r = r < 0 ? r : store_chunk_put(store, &chunk);
        chunks++;
        bytes += packed.size;
    }
    r = r < 0 ? r : store_commit(store);
    if (r < 0) {
        fprintf(stderr, "history_fill: %d %s\n", r, words);
        return 1;
    }
    printf("chunks %zu bytes %zu samples %zu\n", chunks, bytes, world.samples);
    store_close(store);
    message_buffer_done(&packed);
    free(values);
    free(world.series);
    return 0;
}

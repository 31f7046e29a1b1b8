/* The latency matrix of an earlier time, from a real store's chunks: the values that were known then, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/endian.h"
#include "core/fleet/delay_code.h"
#include "service/controller/fleet/latency.h"

enum { NICS = 4, SLOTS = 60 };
#define HOUR  (3600 * NS_PER_S)
#define BEGIN (500000 * HOUR) /* of the chunks; a whole number of days and a bit */

static char folder[64];

static int make_folder(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/foliot-latency-XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"s.db", "s.db-wal", "s.db-shm", "s.db.lock"};
    char path[128];
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

/* NICs 1 and 3 of host 7 receive; NIC 2 has left the fleet. */
static struct fleet_host host = {.id = 7, .name = "h7", .member = true};
static struct fleet_nic nics[NICS];
static struct fleet_nic *nic_list[NICS];
static struct controller world = {.nics = nic_list, .nic_count = NICS};

static void build_world(void)
{
    for (uint32_t i = 0; i < NICS; i++) {
        nics[i] = (struct fleet_nic){.id = i, .host = &host};
        snprintf(nics[i].name, sizeof(nics[i].name), "eth%u", i);
        nic_list[i] = i == 2 ? NULL : &nics[i];
    }
}

struct sample {
    uint32_t local, peer, port;
    int slot;
    int64_t p50, p99, loss, state; /* p50 0: none */
};

/* Writes one chunk of these at a tier. */
static void put_chunk(struct store *s, int tier, int64_t from_ns, int64_t step_ns,
                      const struct sample *samples, size_t count)
{
    const struct chunk_head head = {from_ns, step_ns, SLOTS};
    struct series_builder b;
    struct message_buffer bytes = {0};
    builder_init(&b, &head);
    for (size_t i = 0; i < count; i++) {
        const struct sample *v = &samples[i];
        const int64_t at = from_ns + v->slot * step_ns;
        struct chunk_key key = {METRIC_PATH_STATE, v->local, v->peer, v->port};
        builder_put(&b, &key, at, v->state);
        key.metric = METRIC_LOSS_PPM;
        builder_put(&b, &key, at, v->loss);
        if (v->p50 != 0) {
            key.metric = METRIC_OWD_P50;
            builder_put(&b, &key, at, delay_encode(v->p50));
            key.metric = METRIC_OWD_P99;
            builder_put(&b, &key, at, delay_encode(v->p99));
        }
    }
    assert_int_equal(builder_encode(&b, &bytes), 0);
    const struct store_chunk chunk = {tier,        host.id,   from_ns, from_ns + SLOTS * step_ns,
                                      bytes.bytes, bytes.size};
    assert_int_equal(store_chunk_put(s, &chunk), 0);
    builder_done(&b);
    message_buffer_done(&bytes);
}

static struct store *open_store(void)
{
    struct store *s = NULL;
    char path[128], words[256] = "";
    snprintf(path, sizeof(path), "%s/s.db", folder);
    const struct store_options options = {.path = path, .create = true};
    assert_int_equal(store_open(&options, &s, words), 0);
    return s;
}

static struct latency_matrix read_at(int64_t at_ns, int64_t now_ns)
{
    const struct history_host known = {.id = host.id, .nics = {1, 3}, .nic_count = 2};
    const struct latency_moment moment = {at_ns, now_ns, 48 * HOUR, 3 * CONTROLLER_SLOT_NS};
    struct latency_matrix m;
    struct store *s = NULL;
    char path[128], words[256] = "";
    snprintf(path, sizeof(path), "%s/s.db", folder);
    const struct store_options options = {.path = path, .helper = true};
    assert_int_equal(store_open(&options, &s, words), 0);
    assert_int_equal(latency_init(&m, &world, NULL), 0);
    assert_int_equal(latency_read_host(&m, s, &known, &moment), 0);
    assert_int_equal(latency_order(&m), 0);
    store_close(s);
    return m;
}

static const struct latency_cell *find(const struct latency_matrix *m, uint32_t from, uint32_t to)
{
    const struct latency_cell *found = NULL;
    for (size_t i = 0; i < m->count; i++) {
        const struct latency_cell *c = &m->cells[i];
        if (m->nics[c->from].id == from && m->nics[c->to].id == to) {
            assert_null(found); /* a pair is one cell */
            found = c;
        }
    }
    return found;
}

static void what_was_known_then(void **state)
{
    const struct sample samples[] = {
        {1, 0, 10, 20, 1000, 5000, 0, 1},
        {1, 0, 11, 20, 3000, 94000, 70, 3}, /* two paths, a pair */
        {1, 3, 10, 20, 2000, 4000, 0, 1},
        {1, 2, 10, 20, 2000, 4000, 0, 1}, /* 2 has left */
        {1, 0, 10, 21, 1100, 1200, 0, 1}, /* 1 from 3: no longer measured */
        {3, 1, 10, 22, 0, 0, 1000000, 4}, /* dead: no delay, but a cell */
    };
    const int64_t step = CONTROLLER_SLOT_NS, now = BEGIN + HOUR;
    struct store *s = open_store();
    put_chunk(s, 0, BEGIN, step, samples, ARRAY_COUNT(samples));
    assert_int_equal(store_commit(s), 0);

    struct latency_matrix m = read_at(BEGIN + 20 * step + 1, now);
    assert_int_equal(m.nic_count, 3);
    assert_int_equal(m.count, 2);
    assert_int_equal(m.step_ns, step);
    const struct latency_cell *cell = find(&m, 0, 1);
    assert_non_null(cell);
    assert_int_equal(cell->p50, delay_encode(3000)); /* the upper one of two */
    assert_int_equal(cell->p99, delay_encode(94000));
    assert_int_equal(cell->loss_ppm, 70);
    assert_int_equal(cell->state, 3);
    assert_non_null(find(&m, 3, 1));
    latency_done(&m);

    m = read_at(BEGIN + 22 * step - 1, now);
    assert_int_equal(m.count, 1); /* the earlier slot's values may no longer be true */
    assert_int_equal(find(&m, 0, 1)->p50, delay_encode(1100));
    latency_done(&m);

    m = read_at(BEGIN + 23 * step, now); /* its slot is empty: the last report counts */
    assert_int_equal(m.count, 1);
    assert_int_equal(find(&m, 1, 3)->state, 4);
    assert_int_equal(find(&m, 1, 3)->p50, DELAY_CODE_NONE);
    latency_done(&m);

    m = read_at(BEGIN + 26 * step, now); /* silent for too long: nothing was known */
    assert_int_equal(m.count, 0);
    assert_int_equal(m.nic_count, 3);
    latency_done(&m);
    m = read_at(BEGIN + 20 * step - 1, now); /* and before that nothing was measured */
    assert_int_equal(m.count, 0);
    latency_done(&m);
    store_close(s);
}

static void coarser_only_when_finer_is_gone(void **state)
{
    const struct sample samples[] = {{1, 0, 10, 6, 7000, 9000, 0, 1}};
    const int64_t step = 300 * NS_PER_S, at = BEGIN + 6 * step + 5;
    struct store *s = open_store();
    put_chunk(s, 1, BEGIN, step, samples, ARRAY_COUNT(samples));
    assert_int_equal(store_commit(s), 0);
    struct latency_matrix m = read_at(at, at + 100 * HOUR);
    assert_int_equal(m.count, 1);
    assert_int_equal(m.step_ns, step);
    latency_done(&m);
    m = read_at(at, at + HOUR); /* fine ones are still kept: the host was silent at that time */
    assert_int_equal(m.count, 0);
    latency_done(&m);
    m = read_at(BEGIN + 8 * step, BEGIN + 100 * HOUR); /* another of its slots */
    assert_int_equal(m.count, 0);
    latency_done(&m);
    store_close(s);
}

/* Version 2 has two more bytes for each cell, before the names. */
static void bytes_are_as_described_in(int version)
{
    struct fleet_path paths[] = {
        {.local = 3, .peer = 1, .p50 = -5, .p99 = 300, .state = 1},
        {.local = 3, .peer = 0, .p50 = 9, .p99 = 10, .state = 4},
        {.local = 3, .peer = 0, .port = 1, .p50 = 9, .p99 = 10, .state = 1},
        {.local = UINT32_MAX, .peer = 0, .p50 = 9, .p99 = 10, .state = 1},
        {.local = 0, .peer = 3, .p50 = 7, .p99 = 8, .state = 1}};
    struct fleet_host all = {.paths = paths, .path_count = ARRAY_COUNT(paths)};
    struct latency_matrix m;
    struct message_buffer b = {0};
    assert_int_equal(latency_init(&m, &world, NULL), 0);
    latency_add_host(&m, &all, true);
    assert_int_equal(latency_order(&m), 0);
    assert_int_equal(latency_encode(&m, version, 77, &b), 0);
    const uint32_t n = 3, cells = 3, first[] = {0, 1, 1, 3}, from[] = {2, 0, 1};
    const uint8_t *p = b.bytes + LATENCY_HEAD_SIZE;
    assert_memory_equal(b.bytes, version == 1 ? "FLX1" : "FLX2", 4);
    assert_int_equal(le32_get(b.bytes + 4), n);
    assert_int_equal(le32_get(b.bytes + 8), cells);
    assert_int_equal(le64_get(b.bytes + 16), 77);
    assert_int_equal(le32_get(p + 8), 3); /* the third NIC is number 3 */
    for (uint32_t i = 0; i <= n; i++) {
        assert_int_equal(le32_get(p + 4 * (n + i)), first[i]);
    }
    p += 4 * (2 * n + 1);
    for (uint32_t i = 0; i < cells; i++) {
        assert_int_equal(le32_get(p + 4 * i), from[i]);
    }
    assert_int_equal((int16_t)le16_get(p + 4 * cells + 4), -5);
    assert_int_equal((int16_t)le16_get(p + 6 * cells + 4), 300);
    assert_int_equal(p[8 * cells + 1], 4);
    p += 9 * cells;
    if (version == 2) {
        assert_memory_equal(p, "\x01\x02\x01\x00\x01\x00", 2 * cells); /* paths; of them dead */
        p += 2 * cells;
    }
    const char *names =
        version == 1 ? "h7/eth0\nh7/eth1\nh7/eth3\n" : "h7/eth0\t\t0\nh7/eth1\t\t0\nh7/eth3\t\t0\n";
    assert_memory_equal(p, names, strlen(names));
    assert_ptr_equal(p + strlen(names), b.bytes + b.size);
    message_buffer_done(&b);
    latency_done(&m);
}

static void bytes_are_as_described(void **state)
{
    bytes_are_as_described_in(1);
    bytes_are_as_described_in(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_known_then, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(coarser_only_when_finer_is_gone, make_folder,
                                        remove_folder),
        cmocka_unit_test(bytes_are_as_described),
    };
    build_world();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

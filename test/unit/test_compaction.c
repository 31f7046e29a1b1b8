/* Reports are sealed into chunks by the real thread: nothing that one host sends is the store's trouble. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/controller/controller.h"
#include "service/controller/history/compaction.h"
#include "service/controller/history/series.h"
#include "service/controller/history/worker.h"

enum { HOSTS = 2, PATHS = 4200 };
#define LONG_AGO (4 * 3600 * NS_PER_S) /* no more of it is expected */

static char folder[64];
static struct controller world;
static struct fleet_host hosts[HOSTS];
static struct fleet_host *host_list[HOSTS];
static struct fleet_nic nics[HOSTS];
static struct fleet_nic *nic_list[HOSTS];

static int begin(void **state)
{
    char path[96], words[256];
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/foliot-compaction-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/s.db", folder);
    world = (struct controller){
        .hosts = host_list, .host_count = HOSTS, .nics = nic_list, .nic_count = HOSTS};
    json_writer_init(&world.json, 1 << 20);
    const struct store_options options = {.path = path, .create = true};
    assert_int_equal(store_open(&options, &world.store, words), 0);
    assert_int_equal(store_commit(world.store), 0);
    for (uint32_t i = 0; i < HOSTS; i++) {
        hosts[i] = (struct fleet_host){.index = i, .member = true, .nics = {i}, .nic_count = 1};
        snprintf(hosts[i].name, sizeof(hosts[i].name), "h%u", i);
        nics[i] = (struct fleet_nic){.id = i, .host = &hosts[i], .name = "eth0"};
        host_list[i] = &hosts[i];
        nic_list[i] = &nics[i];
        const struct store_host row = {.name = hosts[i].name,
                                       .state = STORE_HOST_MEMBER,
                                       .serial = "1",
                                       .serial_before = "",
                                       .pin = "",
                                       .version = ""};
        assert_int_equal(store_host_put(world.store, &row, &hosts[i].id), 0);
    }
    assert_true(sd_event_new(&world.loop) >= 0);
    assert_int_equal(worker_open(world.loop, path, &world.keeper), 0);
    return 0;
}

static int end(void **state)
{
    static const char *const names[] = {"s.db", "s.db-wal", "s.db-shm", "s.db.lock"};
    char path[96];
    (void)state;
    worker_close(world.keeper);
    sd_event_unref(world.loop);
    store_close(world.store);
    json_writer_done(&world.json);
    for (size_t i = 0; i < CONTROLLER_RECENT; i++) {
        free(world.recent[i].text);
        free(world.recent[i].body);
    }
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void put_packed(const ProtobufCMessage *message, struct message_buffer *packed)
{
    struct message_buffer encoded = {0};
    assert_int_equal(message_encode(message, &encoded), 0);
    assert_int_equal(message_pack(encoded.bytes, encoded.size, packed), 0);
    message_buffer_done(&encoded);
}

/* A table of `count` paths into the host's NIC, and one report about them. */
static void put_report(const struct fleet_host *h, uint64_t generation, size_t count, int64_t at_ns)
{
    struct message_buffer packed = {0};
    uint32_t *columns = calloc(3 * count, sizeof(*columns));
    int32_t *delays = calloc(count, sizeof(*delays));
    assert_non_null(columns);
    assert_non_null(delays);
    for (size_t i = 0; i < count; i++) {
        columns[i] = h->nics[0];
        columns[count + i] = (uint32_t)(100 + i + count * generation);
        columns[2 * count + i] = 7640;
        delays[i] = 20;
    }
    Foliot__V1__PathTable table = FOLIOT__V1__PATH_TABLE__INIT;
    table.generation = generation;
    table.n_local = table.n_peer = table.n_port = count;
    table.local = columns;
    table.peer = columns + count;
    table.port = columns + 2 * count;
    put_packed(&table.base, &packed);
    assert_int_equal(
        store_table_put(world.store, h->id, generation, at_ns, packed.bytes, packed.size), 0);
    Foliot__V1__PathRollup paths = FOLIOT__V1__PATH_ROLLUP__INIT;
    paths.generation = generation;
    paths.n_owd_p50 = paths.n_owd_p99 = count;
    paths.owd_p50 = paths.owd_p99 = delays;
    Foliot__V1__Clock clock = FOLIOT__V1__CLOCK__INIT;
    Foliot__V1__Report report = FOLIOT__V1__REPORT__INIT;
    report.covers_ms = 1000;
    report.paths = &paths;
    report.clock = &clock;
    put_packed(&report.base, &packed);
    assert_int_equal(store_report_put(world.store, h->id, at_ns, packed.bytes, packed.size), 0);
    message_buffer_done(&packed);
    free(columns);
    free(delays);
}

struct found {
    size_t chunks, paths, others;
};

static int see_chunk(void *context, int64_t from_ns, const void *body, size_t size)
{
    struct found *f = context;
    struct chunk *chunk = NULL;
    (void)from_ns;
    assert_int_equal(chunk_decode(body, size, NULL, &chunk), 0);
    f->chunks++;
    for (size_t i = 0; i < chunk_series_count(chunk); i++) {
        const bool of_host = chunk_series_get(chunk, i)->key.local == CHUNK_HOST;
        f->paths += !of_host;
        f->others += of_host;
    }
    chunk_free(chunk);
    return 0;
}

static int see_report(void *context, int64_t at_ns, const void *body, size_t size)
{
    (void)at_ns, (void)body, (void)size;
    ++*(size_t *)context;
    return 0;
}

static size_t waiting_reports(const struct fleet_host *h)
{
    size_t count = 0;
    assert_int_equal(store_reports(world.store, h->id, 0, INT64_MAX, see_report, &count), 0);
    return count;
}

static struct found chunks_of(int tier, const struct fleet_host *h)
{
    struct found f = {0};
    assert_int_equal(store_chunks(world.store, tier, h->id, 0, INT64_MAX, see_chunk, &f), 0);
    return f;
}

static void seal_all(void)
{
    assert_int_equal(store_commit(world.store), 0);
    for (uint32_t i = 0; i < HOSTS; i++) {
        hosts[i].committed_at_ns = controller_utc_ns();
        compaction_some(&world);
    }
    for (int turn = 0; worker_waiting(world.keeper) > 0; turn++) {
        assert_in_range(turn, 0, 10000);
        assert_true(sd_event_run(world.loop, 1000000) >= 0);
    }
}

/* One report of 4,200 paths into one NIC, with four series for each: more than a section of a chunk has room for. */
static void more_series_than_a_chunk_holds(void **state)
{
    const int64_t at = controller_utc_ns() - LONG_AGO;
    (void)state;
    put_report(&hosts[0], 1, PATHS, at);
    put_report(&hosts[1], 1, 10, at);
    seal_all();
    assert_int_equal(world.count.commit_failures, 0);
    assert_false(world.store_broken);
    const struct found f = chunks_of(0, &hosts[0]), other = chunks_of(0, &hosts[1]);
    assert_int_equal(f.chunks, 1);
    assert_int_equal(f.paths, CHUNK_SERIES_MAX);
    assert_true(f.others > 0); /* the host's own aren't pushed out */
    assert_int_equal(other.chunks, 1);
    assert_int_equal(other.paths, 40);
    assert_int_equal(waiting_reports(&hosts[0]) + waiting_reports(&hosts[1]), 0);
    assert_int_equal(world.count.values_dropped, 4 * PATHS - CHUNK_SERIES_MAX);
    assert_int_equal(world.count.sealed, 2);
    assert_true(hosts[0].history_ns != 0); /* the log named the host */
    assert_int_equal(hosts[1].history_ns, 0);
}

/* One path after the other in a day, as if addresses of lanes change: each chunk of ten minutes is good, the day's has too
 * many. */
static void more_series_in_a_day_than_a_chunk_holds(void **state)
{
    const int64_t day = series_tiers[1].chunk_ns, from = (controller_utc_ns() / day - 2) * day;
    (void)state;
    for (uint64_t n = 0; n < 10; n++) {
        put_report(&hosts[0], n + 1, 512, from + (int64_t)n * CONTROLLER_SEAL_NS);
    }
    hosts[0].sealed_ns = from;
    for (int turn = 0; waiting_reports(&hosts[0]) > 0; turn++) {
        assert_in_range(turn, 0, 20);
        seal_all();
    }
    assert_int_equal(store_commit(world.store), 0);
    put_report(&hosts[0], 11, 1, from + day); /* the day is over */
    seal_all();
    seal_all();
    assert_int_equal(world.count.commit_failures, 0);
    assert_int_equal(world.count.sealed, 10 + 1 + 1); /* each once, and the day */
    assert_int_equal(chunks_of(0, &hosts[0]).paths, 10 * 4 * 512 + 4);
    const struct found f = chunks_of(1, &hosts[0]);
    assert_int_equal(f.chunks, 1);
    assert_int_equal(f.paths, CHUNK_SERIES_MAX);
    assert_int_equal(waiting_reports(&hosts[0]), 0);
}

/* Values that take more bytes than a section may unpack to. */
static void a_chunk_that_nobody_could_read(void **state)
{
    enum { SERIES = CHUNK_SERIES_MAX };
    static int64_t values[CHUNK_SLOT_MAX];
    struct message_buffer bytes = {0};
    struct chunk_series *series = calloc(SERIES, sizeof(*series));
    (void)state;
    assert_non_null(series);
    for (uint32_t i = 0; i < CHUNK_SLOT_MAX; i++) {
        values[i] = i % 2 == 0 ? INT64_MAX : 0;
    }
    for (uint32_t i = 0; i < SERIES; i++) {
        series[i] =
            (struct chunk_series){.key = {.metric = METRIC_OWD_P50, .peer = i}, .values = values};
    }
    const struct chunk_head head = {0, NS_PER_S, CHUNK_SLOT_MAX};
    assert_int_equal(chunk_encode(&head, series, SERIES, &bytes), -EMSGSIZE);
    assert_int_equal(chunk_encode(&head, series, 100, &bytes), 0);
    message_buffer_done(&bytes);
    free(series);
}

static int see_run(void *context, const struct store_audit_run *run)
{
    (void)context;
    (void)run;
    return 0;
}

/* Kept audits are checked after an audit's end, until all old ones are removed. */
static void old_audits_go_after_the_next_one(void **state)
{
    enum { RUNS = 2500 };
    int seconds = 0;
    (void)state;
    for (int64_t i = 1; i <= RUNS; i++) {
        const struct store_audit_run run = {i, 5, "{}"};
        assert_int_equal(store_audit_run_put(world.store, &run), 0);
    }
    assert_int_equal(store_commit(world.store), 0);
    compaction_expire(&world);
    assert_int_equal(store_audit_run_get(world.store, 1, see_run, NULL), 0);
    for (world.expire.audits = true; world.expire.audits; seconds++) {
        assert_in_range(seconds, 0, RUNS / 100);
        world.expire.due = (struct mono){0};
        compaction_expire(&world);
    }
    assert_in_range(seconds, 2, RUNS / 100); /* not all in one turn of the loop */
    assert_int_equal(store_audit_run_get(world.store, RUNS, see_run, NULL), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(more_series_than_a_chunk_holds, begin, end),
        cmocka_unit_test_setup_teardown(more_series_in_a_day_than_a_chunk_holds, begin, end),
        cmocka_unit_test(a_chunk_that_nobody_could_read),
        cmocka_unit_test_setup_teardown(old_audits_go_after_the_next_one, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Bodies of hosts that are much alike: they take little room, and each is read back as it was put in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/prng.h"
#include "platform/message/message.h"
#include "platform/store/sql.h"
#include "platform/store/store.h"

enum { HOSTS = 300, TEXT = 24 << 10, ROOM = 1200 /* of a host, bytes: many rows fit a page */ };

static char folder[64], path[96];
static char text[TEXT];

static int make_folder(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/foliot-alike-XXXXXX");
    const bool made = mkdtemp(folder) != NULL;
    snprintf(path, sizeof(path), "%s/s.db", folder);
    return made ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"s.db", "s.db-wal", "s.db-shm", "s.db.lock"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static struct store *open_store(bool helper)
{
    struct store *s = NULL;
    char words[256] = "";
    const struct store_options options = {.path = path, .create = !helper, .helper = helper};
    assert_int_equal(store_open(&options, &s, words), 0);
    return s;
}

static int64_t ask(struct store *s, const char *what)
{
    sqlite3_stmt *q = NULL;
    assert_int_equal(sqlite3_prepare_v2(s->db, what, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    const int64_t value = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return value;
}

static void change(struct store *s, const char *how)
{
    char *words = NULL;
    if (sqlite3_exec(s->db, how, NULL, NULL, &words) != SQLITE_OK) {
        fail_msg("%s", words);
    }
}

/* The facts of a host of one of three products, with numbers of its own, at one time. In `text`; returns the size. */
static size_t facts_of(int64_t host, uint64_t time)
{
    size_t used = 0;
    for (uint64_t i = 0; i < 300; i++) {
        const uint64_t word = hash_u64(i, (uint64_t)host % 3),
                       own = hash_u64(word, time * 1000 + (uint64_t)host);
        const int n =
            snprintf(text + used, sizeof(text) - used, "fact.%05u\tvalue\teth%u\t%u\t/sys/%06u\n",
                     (unsigned)(word % 100000), (unsigned)(word % 7),
                     i % 4 == 0 ? (unsigned)(own % 100000) : 0, (unsigned)(word % 1000003));
        used += (size_t)n;
    }
    return used;
}

static void put_look(struct store *s, int64_t host, uint64_t time)
{
    const struct store_look l = {.host = host,
                                 .at_ns = (int64_t)time,
                                 .refused = "",
                                 .now = text,
                                 .now_size = facts_of(host, time)};
    assert_int_equal(store_look_put(s, &l), 0);
}

static void put_past(struct store *s, int64_t host, uint64_t time)
{
    struct message_buffer packed = {0};
    uint8_t hash[STORE_HASH_SIZE] = {(uint8_t)host, (uint8_t)(host >> 8), (uint8_t)time, 1};
    assert_int_equal(message_pack(text, facts_of(host, time), &packed), 0);
    assert_int_equal(store_part_now_put(s, host, (int64_t)time, hash, packed.bytes, packed.size),
                     0);
    message_buffer_done(&packed);
}

static void put_results(struct store *s, int64_t host, uint64_t time)
{
    const struct store_audit_host h = {.run = (int64_t)time,
                                       .host = host,
                                       .at_ns = (int64_t)time,
                                       .marks = "PPF",
                                       .gate = "pass",
                                       .line = "well",
                                       .body = text,
                                       .size = facts_of(host, time)};
    assert_int_equal(store_audit_host_put(s, &h), 0);
}

static void put_own(struct store *s, int64_t host, uint64_t time)
{
    uint8_t hash[STORE_HASH_SIZE] = {(uint8_t)host, (uint8_t)(host >> 8), (uint8_t)time, 2};
    const size_t size = facts_of(host, time);
    assert_int_equal(store_part_put(s, host, STORE_PART_OWN, (int64_t)time, hash, text, size), 0);
}

static int check_look(void *context, const struct store_look *l)
{
    if (l->host > HOSTS) { /* it isn't like the others */
        return 0;
    }
    ++*(int *)context;
    assert_int_equal(l->now_size, facts_of(l->host, (uint64_t)l->at_ns));
    assert_memory_equal(l->now, text, l->now_size);
    return 0;
}

static int64_t host_of_part; /* a part doesn't name it */

static int check_part(void *context, const struct store_part *p)
{
    ++*(int *)context;
    assert_int_equal(p->size, facts_of(host_of_part, (uint64_t)p->at_ns));
    assert_memory_equal(p->body, text, p->size);
    return 0;
}

static int check_results(void *context, const struct store_audit_host *h)
{
    ++*(int *)context;
    assert_int_equal(h->size, facts_of(h->host, (uint64_t)h->run));
    assert_memory_equal(h->body, text, h->size);
    return 0;
}

/* All of one time is there, as it was. */
static void check_all(struct store *s, uint64_t time)
{
    int looks = 0, parts = 0, results = 0;
    assert_int_equal(store_looks(s, 0, check_look, &looks), 0);
    assert_int_equal(store_audit_hosts(s, (int64_t)time, check_results, &results), 0);
    for (int64_t host = 1; host <= HOSTS; host++) {
        host_of_part = host;
        assert_int_equal(store_parts(s, host, (int64_t)time, check_part, &parts), 0);
        assert_int_equal(store_part_now(s, host, (int64_t)time, (int64_t)time, check_part, &parts),
                         0);
    }
    assert_int_equal(looks, HOSTS);
    assert_int_equal(results, HOSTS);
    assert_int_equal(parts, 2 * HOSTS);
}

static int64_t used(struct store *s)
{
    return (ask(s, "PRAGMA page_count") - ask(s, "PRAGMA freelist_count")) *
           ask(s, "PRAGMA page_size");
}

/* Closes the store. Returns the number of bases of kind `now`. */
static int64_t check_room(struct store *s)
{
    void (*const puts[])(struct store *, int64_t, uint64_t) = {put_look, put_past, put_results,
                                                               put_own};
    for (uint64_t time = 1; time <= 2; time++) {
        for (size_t i = 0; i < sizeof(puts) / sizeof(puts[0]); i++) {
            const int64_t before = used(s);
            for (int64_t host = 1; host <= HOSTS; host++) {
                puts[i](s, host, time);
            }
            assert_int_equal(store_commit(s), 0);
            assert_true(used(s) - before < HOSTS * ROOM);
        }
        store_close(s);
        s = open_store(false);
        struct store *beside = open_store(true); /* as a thread that judges */
        check_all(beside, time);
        check_all(s, time);
        store_close(beside);
    }
    const int64_t bases = ask(s, "SELECT count(*) FROM alike WHERE kind = 'now'");
    store_close(s);
    return bases;
}

/* What differs by host takes the room of what differs. A process that opens the file later packs beside the bases of before. */
static void hosts_that_are_alike_take_little_room(void **state)
{
    assert_in_range(check_room(open_store(false)), 1, 3);
}

static void put_random_look(struct store *s, struct prng *p, int64_t host, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)prng_below(p, 256);
    }
    const struct store_look l = {.host = host, .refused = "", .now = text, .now_size = size};
    assert_int_equal(store_look_put(s, &l), 0);
}

/* A base of random bytes takes its whole size alone. This says nothing about other bodies. */
static void random_bytes_of_one_host_take_no_room_of_others(void **state)
{
    struct store *s = open_store(false);
    struct prng p;
    prng_init(&p, 6);
    put_random_look(s, &p, HOSTS + 1, TEXT);
    assert_int_equal(store_commit(s), 0);
    assert_in_range(check_room(s), 2, 4);
}

static int count_part(void *context, const struct store_part *p)
{
    ++*(int *)context;
    assert_int_equal(p->size, 3000);
    return 0;
}

/* One host's bodies, each unlike all others, take no base from other hosts. */
static void a_host_that_is_like_no_other_takes_no_room_of_others(void **state)
{
    struct store *s = open_store(false);
    struct prng p;
    prng_init(&p, 7);
    for (uint8_t time = 1; time <= 40; time++) {
        struct message_buffer packed = {0};
        const uint8_t hash[STORE_HASH_SIZE] = {time, 3};
        put_random_look(s, &p, HOSTS + 1, 3000);
        assert_int_equal(store_part_put(s, HOSTS + 1, STORE_PART_OWN, time, hash, text, 3000), 0);
        assert_int_equal(message_pack(text, 3000, &packed), 0);
        assert_int_equal(store_part_now_put(s, HOSTS + 1, time, hash, packed.bytes, packed.size),
                         0);
        message_buffer_done(&packed);
    }
    assert_int_equal(store_commit(s), 0);
    assert_in_range(check_room(s), 2, 12); /* eight at most are that host's */
    s = open_store(false);
    for (uint8_t time = 1; time <= 40; time++) { /* what was beside a base that is retired */
        int parts = 0;
        assert_int_equal(store_part_now(s, HOSTS + 1, time, time, count_part, &parts), 0);
        assert_int_equal(parts, 1);
    }
    store_close(s);
}

/* A host alone whose body changes between three shapes has three bases, however often it changes and however many others have. */
static void three_shapes_of_one_host_are_three_bases(void **state)
{
    struct store *s = open_store(false);
    for (int shape = 0; shape < 9; shape++) { /* of two hosts each */
        for (int64_t host = 2; host < 4; host++) {
            struct prng p;
            prng_init(&p, 101 + (uint64_t)shape);
            put_random_look(s, &p, 10 * shape + host, 3000);
        }
    }
    for (int time = 0; time < 30; time++) {
        struct prng p;
        prng_init(&p, 11 + (uint64_t)(time % 3));
        put_random_look(s, &p, 1, 3000);
    }
    assert_int_equal(store_commit(s), 0);
    assert_int_equal(ask(s, "SELECT count(*) FROM alike"), 9 + 3);
    store_close(s);
}

/* Commits, and reads all looks with a store that has no base in memory. */
static void looks_are_there_after_restart(struct store *s, int count)
{
    int looks = 0;
    assert_int_equal(store_commit(s), 0);
    store_close(s);
    s = open_store(false);
    assert_int_equal(store_looks(s, 0, check_look, &looks), 0);
    assert_int_equal(looks, count);
    store_close(s);
}

/* A base that was rolled back is none. */
static void a_rolled_back_body_is_no_base(void **state)
{
    struct store *s = open_store(false);
    put_look(s, 3, 1);
    store_rollback(s);
    assert_int_equal(ask(s, "SELECT count(*) FROM alike"), 0);
    put_look(s, 6, 1); /* the same product */
    looks_are_there_after_restart(s, 1);
}

/* Bases go after the last body beside them, and not before. */
static void bases_go_with_their_bodies(void **state)
{
    struct store *s = open_store(false);
    const struct store_audit_run run = {1, 5, "{\"state\":\"done\"}"};
    assert_int_equal(store_audit_run_put(s, &run), 0);
    put_results(s, 3, 1);
    put_past(s, 3, 1);
    put_look(s, 6, 1);
    put_past(s, 4, 1); /* of another product, and nothing else is beside it */
    for (int64_t host = 3; host <= 4; host++) { /* later ones replace them */
        uint8_t hash[STORE_HASH_SIZE] = {9};
        struct message_buffer packed = {0};
        assert_int_equal(message_pack("x", 1, &packed), 0);
        assert_int_equal(store_part_now_put(s, host, 50, hash, packed.bytes, packed.size), 0);
        message_buffer_done(&packed);
    }
    assert_int_equal(ask(s, "SELECT count(*) FROM alike"), 3);
    assert_int_equal(store_audit_expire(s, 1, 1, 100), 0);
    assert_int_equal(ask(s, "SELECT count(*) FROM alike"), 3);
    assert_int_equal(store_audit_expire(s, 10, 100, 100),
                     1 + 1 + 2 + 2 + 2); /* results, run, parts, bodies, bases */
    assert_int_equal(ask(s, "SELECT count(*) FROM alike"), 1);
    put_look(s, 7, 1); /* the product whose base is gone */
    looks_are_there_after_restart(s, 2);
}

/* Bodies that have nothing in common: a few become bases, the others stand alone. */
static void bodies_that_are_unlike_stand_alone(void **state)
{
    struct store *s = open_store(false);
    struct prng p;
    prng_init(&p, 5);
    for (int64_t host = 1; host <= 60; host++) {
        put_random_look(s, &p, host, 3000);
    }
    assert_in_range(ask(s, "SELECT count(*) FROM alike"), 1, 16);
    assert_in_range(ask(s, "SELECT sum(length(now)) FROM host_look"), 100000, 60 * 3100);
    store_close(s);
}

static int no_look(void *context, const struct store_look *l)
{
    fail();
    return 0;
}

static void a_damaged_base_is_no_sheet(void **state)
{
    static const char *const ways[] = {"UPDATE alike SET body = x'28b52ffd'", "DELETE FROM alike"};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct store *s = open_store(false);
        put_look(s, 1, 1);
        assert_int_equal(store_commit(s), 0);
        change(s, ways[i]);
        store_close(s);
        s = open_store(false);
        assert_int_equal(store_looks(s, 0, no_look, NULL), -EUCLEAN);
        change(s, "DELETE FROM host_look; DELETE FROM alike");
        store_close(s);
    }
}

static bool no_memory; /* for a base, in libzstd */

size_t ZSTD_DCtx_refPrefix(ZSTD_DCtx *context, const void *prefix, size_t size)
{
    size_t (*real)(ZSTD_DCtx *, const void *, size_t);
    *(void **)&real = dlsym(RTLD_NEXT, "ZSTD_DCtx_refPrefix");
    return no_memory ? (size_t)-ZSTD_error_memory_allocation : real(context, prefix, size);
}

static int no_part(void *context, const struct store_part *p)
{
    fail();
    return 0;
}

static int no_results(void *context, const struct store_audit_host *h)
{
    fail();
    return 0;
}

static void nothing_is_read(struct store *s, int error)
{
    assert_int_equal(store_looks(s, 0, no_look, NULL), error);
    assert_int_equal(store_part_now(s, 1, 1, 1, no_part, NULL), error);
    assert_int_equal(store_audit_hosts(s, 1, no_results, NULL), error);
}

/* The controller ends if the store is damaged, and tries again after other errors. */
static void other_errors_are_no_damage(void **state)
{
    struct store *s = open_store(false);
    int looks = 0;
    put_look(s, 1, 1);
    put_past(s, 1, 1);
    put_results(s, 1, 1);
    assert_int_equal(store_commit(s), 0);
    no_memory = true;
    nothing_is_read(s, -ENOMEM);
    no_memory = false;
    assert_int_equal(store_looks(s, 0, check_look, &looks), 0);
    assert_int_equal(looks, 1);
    store_close(s);
    s = open_store(false);
    change(s, "DROP TABLE alike");
    nothing_is_read(s, -EIO);
    store_close(s);
}

/* Rows of an earlier release have no base. */
static void rows_of_an_earlier_release_are_read(void **state)
{
    struct store *s = open_store(false);
    struct message_buffer packed = {0};
    int looks = 0;
    change(s, "DROP INDEX host_look_base; DROP INDEX fact_body_base; DROP TABLE alike;"
              "ALTER TABLE host_look DROP COLUMN base; ALTER TABLE fact_body DROP COLUMN base;"
              "ALTER TABLE audit_host DROP COLUMN base; PRAGMA user_version = 5;");
    assert_int_equal(message_pack(text, facts_of(1, 7), &packed), 0);
    assert_int_equal(
        sql_run(s,
                "INSERT INTO host_look(host, at_ns, left_out, refused, now) VALUES(1, 7, 0, '', ?)",
                "b", packed.bytes, packed.size),
        0);
    assert_int_equal(store_commit(s), 0);
    message_buffer_done(&packed);
    store_close(s);
    s = open_store(false);
    put_look(s, 2, 7);
    assert_int_equal(store_looks(s, 0, check_look, &looks), 0);
    assert_int_equal(looks, 2);
    store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hosts_that_are_alike_take_little_room, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(three_shapes_of_one_host_are_three_bases, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(random_bytes_of_one_host_take_no_room_of_others,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_host_that_is_like_no_other_takes_no_room_of_others,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_rolled_back_body_is_no_base, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(bases_go_with_their_bodies, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(bodies_that_are_unlike_stand_alone, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_damaged_base_is_no_sheet, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(other_errors_are_no_damage, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(rows_of_an_earlier_release_are_read, make_folder,
                                        remove_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

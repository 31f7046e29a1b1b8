/* The store: committed data are there after kill -9, a failed write leaves the last commit, chunks return their content, and
 * damage is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/prng.h"
#include "platform/message/message.h"
#include "platform/store/chunk.h"
#include "platform/store/sql.h"
#include "platform/store/store.h"

static char folder[64];

static int make_folder(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/foliot-store-XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"s.db",     "s.db-wal", "s.db-shm",     "s.db.lock", "b.db",
                                        "b.db-wal", "b.db-shm", "b.db-journal", "b.db.lock"};
    char path[128];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static struct store *open_store(const char *name, int expected)
{
    struct store *s = NULL;
    char path[128], words[256] = "";
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    const struct store_options options = {.path = path, .create = true};
    const int r = store_open(&options, &s, words);
    if (r != expected) {
        print_error("%s: %d, %s\n", path, r, words);
    }
    assert_int_equal(r, expected);
    return s;
}

static int64_t add_host(struct store *s, const char *name)
{
    int64_t id = 0;
    const struct store_host h = {.name = name,
                                 .state = STORE_HOST_MEMBER,
                                 .serial = "01",
                                 .serial_before = "",
                                 .pin = "",
                                 .version = "1"};
    assert_int_equal(store_host_put(s, &h, &id), 0);
    return id;
}

static int take_host(void *context, const struct store_host *h)
{
    *(struct store_host *)context = *h;
    return 0;
}

static int count_blob(void *context, int64_t at_ns, const void *body, size_t size)
{
    (*(int64_t *)context)++;
    return 0;
}

static int count_finding(void *context, const struct store_finding *f)
{
    (*(int64_t *)context)++;
    return 0;
}

static int read_name(void *context, const struct store_finding *f)
{
    snprintf(context, 32, "%s", f->named);
    return 0;
}

static int count_event(void *context, const struct store_event *e)
{
    int64_t *last = context;
    assert_true(e->id > *last);
    *last = e->id;
    return 0;
}

static void keeps_what_is_committed(void **state)
{
    struct store *s = open_store("s.db", 0);
    const int64_t host = add_host(s, "h1");
    assert_int_equal(store_report_put(s, host, 1000, "abc", 3), 0);
    assert_int_equal(store_host_cursor(s, host, 0xffffffffffffffffULL, 5), 0);
    assert_int_equal(store_commit(s), 0);
    assert_int_equal(store_report_put(s, host, 2000, "def", 3), 0);
    store_close(s); /* not committed */
    s = open_store("s.db", 0);
    struct store_host h = {0};
    int64_t count = 0;
    assert_int_equal(store_hosts(s, take_host, &h), 0);
    assert_true(h.stream == 0xffffffffffffffffULL && h.number == 5);
    assert_int_equal(store_reports(s, host, 0, INT64_MAX, count_blob, &count), 0);
    assert_int_equal(count, 1);
    /* one name, one member */
    const struct store_host again = {.name = "h1",
                                     .state = STORE_HOST_MEMBER,
                                     .serial = "",
                                     .serial_before = "",
                                     .pin = "",
                                     .version = ""};
    int64_t id = 0;
    assert_int_equal(store_host_put(s, &again, &id), -EEXIST);
    store_close(s);
}

static void keeps_a_second_one_out(void **state)
{
    struct store *s = open_store("s.db", 0);
    assert_null(open_store("s.db", -EBUSY));
    store_close(s);
    store_close(open_store("s.db", 0));
}

/* A child writes, and reports what was acknowledged. It is killed at any moment. */
static void survives_kill(void **state)
{
    for (unsigned round = 0; round < 12; round++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct store *s = NULL;
            char path[128], words[256];
            snprintf(path, sizeof(path), "%s/s.db", folder);
            const struct store_options options = {.path = path, .create = true};
            if (store_open(&options, &s, words) < 0) {
                _exit(1);
            }
            int64_t id = 0;
            for (int64_t n = 0;; n++) {
                const struct store_event e = {
                    .at_ns = n, .kind = "link", .word = "up", .body = "{}"};
                if (store_event_put(s, &e, &id) < 0 || store_commit(s) < 0 ||
                    write(fds[1], &id, sizeof(id)) != (ssize_t)sizeof(id)) {
                    _exit(1);
                }
            }
        }
        close(fds[1]);
        int64_t acknowledged = 0, id = 0, last = 0;
        for (unsigned n = 0; n < 5 + 3 * round; n++) {
            assert_int_equal(read(fds[0], &id, sizeof(id)), sizeof(id));
            acknowledged = id;
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(fds[0], &id, sizeof(id)) == (ssize_t)sizeof(id)) {
            acknowledged = id;
        }
        close(fds[0]);
        struct store *s = open_store("s.db", 0);
        const struct store_event_filter all = {.limit = INT32_MAX};
        assert_int_equal(store_events(s, &all, count_event, &last), 0);
        assert_true(last >= acknowledged && last <= acknowledged + 1);
        store_close(s);
    }
}

/* Not one more byte fits: the commit fails and reports that, and the store goes on once there is room. */
static void survives_a_full_disk(void **state)
{
    struct store *s = open_store("s.db", 0);
    const int64_t host = add_host(s, "h1");
    static uint8_t body[100000];
    struct rlimit before, tight = {200000, RLIM_INFINITY};
    int64_t committed = 0, count = 0;
    int r = 0;
    assert_int_equal(store_commit(s), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    for (int i = 0; i < 20 && r == 0; i++) {
        r = store_report_put(s, host, i, body, sizeof(body));
        r = r < 0 ? r : store_commit(s);
        committed += r == 0;
    }
    if (store_dirty(s)) {
        store_rollback(s);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(r < 0 && committed < 20);
    assert_int_equal(store_report_put(s, host, 100, "x", 1), 0);
    assert_int_equal(store_commit(s), 0);
    store_close(s);
    s = open_store("s.db", 0);
    assert_int_equal(store_reports(s, host, 0, INT64_MAX, count_blob, &count), 0);
    assert_int_equal(count, committed + 1);
    store_close(s);
}

static void refuses_damage(void **state)
{
    struct store *s = open_store("s.db", 0);
    static uint8_t body[3000];
    for (int i = 0; i < 300; i++) {
        assert_int_equal(store_report_put(s, 1, i, body, sizeof(body)), 0);
    }
    assert_int_equal(store_commit(s), 0);
    struct store_backup *b = NULL;
    char path[128];
    snprintf(path, sizeof(path), "%s/b.db", folder);
    assert_int_equal(store_backup_open(s, path, &b), 0);
    int r = store_backup_step(b, 10);
    assert_int_equal(r, 1);
    assert_int_equal(store_report_put(s, 1, 1000, body, 10), 0); /* meanwhile */
    assert_int_equal(store_commit(s), 0);
    while ((r = store_backup_step(b, 20)) > 0) {
    }
    assert_int_equal(r, 0);
    store_backup_close(b);
    store_close(s);
    snprintf(path, sizeof(path), "%s/s.db", folder);
    const int fd = open(path, O_RDWR);
    static uint8_t noise[40000];
    memset(noise, 0x5a, sizeof(noise));
    assert_int_equal(pwrite(fd, noise, sizeof(noise), 16384), sizeof(noise));
    close(fd);
    assert_null(open_store("s.db", -EUCLEAN));
    s = open_store("b.db", 0);
    int64_t count = 0;
    assert_int_equal(store_reports(s, 1, 0, INT64_MAX, count_blob, &count), 0);
    assert_true(count >= 300);
    store_close(s);
}

static void findings_stay_closed(void **state)
{
    struct store *s = open_store("s.db", 0);
    struct store_finding f = {.host = 1,
                              .opened_ns = 10,
                              .updated_ns = 10,
                              .run = 3,
                              .number = 4,
                              .kind = "path-dead",
                              .body = "{}"};
    int64_t id = 0, again = 0;
    struct store_finding_filter filter = {.open = 1, .limit = 10};
    char named[32] = "";
    assert_int_equal(store_finding_put(s, &f, &id), 0);
    assert_int_equal(store_finding_name(s, f.host, f.run, f.number, "{\"kind\":\"nic\"}"), 0);
    assert_int_equal(store_finding_put(s, &f, NULL), 0); /* an update leaves it its name */
    assert_int_equal(store_findings(s, &filter, read_name, named), 0);
    assert_string_equal(named, "{\"kind\":\"nic\"}");
    f.closed_ns = f.updated_ns = 20;
    assert_int_equal(store_finding_put(s, &f, &again), 0);
    assert_int_equal(id, again);
    f.closed_ns = 0; /* an update that came late */
    f.updated_ns = 30;
    assert_int_equal(store_finding_put(s, &f, &again), 0);
    int64_t open = 0;
    assert_int_equal(store_findings(s, &filter, count_finding, &open), 0);
    assert_int_equal(open, 0);
    store_close(s);
}

/* Beside the writer: reads committed data, of one moment, and puts the log into the file. */
static void a_helper_reads_and_checkpoints(void **state)
{
    struct store *s = open_store("s.db", 0), *helper = NULL;
    char path[128], words[256] = "", body[1000] = "x";
    snprintf(path, sizeof(path), "%s/s.db", folder);
    const struct store_options options = {.path = path, .helper = true};
    assert_int_equal(store_open(&options, &helper, words), 0);
    store_has_helper(s);
    const int64_t host = add_host(s, "h1");
    assert_int_equal(store_commit(s), 0);
    int64_t count = 0;
    assert_int_equal(store_report_put(s, host, 1, body, sizeof(body)), 0);
    assert_int_equal(store_reports(helper, host, 0, 9, count_blob, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(store_commit(s), 0);
    assert_int_equal(store_snapshot(helper), 0);
    assert_int_equal(store_reports(helper, host, 0, 9, count_blob, &count), 0);
    assert_int_equal(store_report_put(s, host, 2, body, sizeof(body)), 0);
    assert_int_equal(store_commit(s), 0);
    count = 0;
    assert_int_equal(store_reports(helper, host, 0, 9, count_blob, &count), 0);
    assert_int_equal(count, 1);
    store_snapshot_end(helper);
    assert_int_equal(store_report_put(helper, host, 3, body, 1), -EROFS); /* it is no writer */
    store_rollback(helper);
    while (store_log_pages(s) < STORE_LOG_PAGES + 10) { /* not before it is asked to */
        for (int64_t i = 0; i < 2000; i++) {
            assert_int_equal(store_report_put(s, host, 10 + i, body, sizeof(body)), 0);
        }
        assert_int_equal(store_commit(s), 0);
    }
    assert_int_equal(store_checkpoint(helper), 0);
    assert_int_equal(store_checkpoint(s), 0);
    assert_int_equal(store_log_pages(s), 0);
    assert_int_equal(store_report_put(s, host, 3, body, 1), 0);
    assert_int_equal(store_commit(s), 0);
    assert_true(store_log_pages(s) < 20); /* the log began again */
    store_close(helper);
    store_close(s);
}

static int copy_to(const char *from, const char *to)
{
    char command[256];
    snprintf(command, sizeof(command), "cp %s/%s %s/%s", folder, from, folder, to);
    return system(command);
}

static int64_t size_of(const char *name)
{
    char path[128];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return stat(path, &st) == 0 ? st.st_size : -1;
}

/* After a kill -9: opening reads the log and writes nothing. Otherwise it would sync while all wait. */
static void opening_after_a_kill_writes_nothing(void **state)
{
    struct store *s = open_store("s.db", 0);
    char body[1000] = "x";
    store_has_helper(s);
    const int64_t host = add_host(s, "h1");
    assert_int_equal(store_commit(s), 0);
    assert_int_equal(store_checkpoint(s), 0);
    while (store_log_pages(s) < 1200) { /* more than SQLite's own limit for copying it */
        for (int64_t i = 0; i < 2000; i++) {
            assert_int_equal(store_report_put(s, host, 10 + i, body, sizeof(body)), 0);
        }
        assert_int_equal(store_commit(s), 0);
    }
    assert_int_equal(copy_to("s.db", "b.db"), 0);
    assert_int_equal(copy_to("s.db-wal", "b.db-wal"), 0);
    store_close(s);
    const int64_t file = size_of("b.db"), log = size_of("b.db-wal");
    s = open_store("b.db", 0);
    assert_int_equal(size_of("b.db"), file);
    assert_int_equal(size_of("b.db-wal"), log);
    int64_t count = 0;
    assert_int_equal(store_reports(s, host, 0, INT64_MAX, count_blob, &count), 0);
    assert_true(count >= 2000);
    store_close(s);
}

/* ---- room ---- */

static void put_reports(struct store *s, int64_t host, int64_t from, int64_t count)
{
    static uint8_t body[3000];
    for (int64_t i = from; i < from + count; i++) {
        assert_int_equal(store_report_put(s, host, i, body, sizeof(body)), 0);
    }
}

/* Retention has deleted most rows: the file gets shorter, a few pages at a time, down to the room that it keeps for new rows, and
 * no remaining row is lost. */
static void gives_back_what_was_deleted(void **state)
{
    enum { STEP = 16 };
    struct store *s = open_store("s.db", 0);
    const int64_t host = add_host(s, "h1");
    put_reports(s, host, 1, 3000);
    assert_int_equal(store_commit(s), 0);
    assert_int_equal(store_checkpoint(s), 0);
    const int64_t full = size_of("s.db");
    assert_int_equal(store_shrink(s, STEP), 0); /* nothing is empty */
    assert_false(store_dirty(s));
    assert_int_equal(store_sealed(s, host, 2900), 0);
    assert_int_equal(store_commit(s), 0);
    int r = 0, steps = 0;
    while ((r = store_shrink(s, STEP)) > 0) {
        assert_in_range(r, 1, STEP);
        assert_int_equal(store_commit(s), 0);
        steps++;
    }
    assert_int_equal(r, 0);
    assert_true(steps > 10);
    assert_int_equal(store_checkpoint(s), 0);
    assert_in_range(size_of("s.db"), 1, full / 10);
    int64_t count = 0;
    char words[256] = "";
    assert_int_equal(store_reports(s, host, 0, INT64_MAX, count_blob, &count), 0);
    assert_int_equal(count, 101);
    assert_int_equal(store_check(s, words), 0);
    store_close(s);
}

/* Rows come and go: new rows use the old rows' room; it isn't given back and taken again. */
static void keeps_room_for_the_next_rows(void **state)
{
    struct store *s = open_store("s.db", 0);
    const int64_t host = add_host(s, "h1");
    put_reports(s, host, 1, 3000);
    assert_int_equal(store_commit(s), 0);
    for (int64_t i = 0; i < 10; i++) {
        assert_int_equal(store_sealed(s, host, 200 * (i + 1)), 0);
        assert_int_equal(store_shrink(s, 1000), 0);
        put_reports(s, host, 3001 + 200 * i, 200);
        assert_int_equal(store_commit(s), 0);
    }
    store_close(s);
}

static int count_audit(void *context, const struct store_audit *a)
{
    (*(int64_t *)context)++;
    return 0;
}

/* A user who changes things all day doesn't fill the disk for ever. Young rows stay. */
static void lets_go_of_what_is_old(void **state)
{
    struct store *s = open_store("s.db", 0);
    int64_t left = 0, last = 0;
    for (int64_t i = 0; i < 10; i++) {
        const struct store_audit a = {.at_ns = i, .who = "w", .what = "silence.make", .detail = ""};
        const struct store_event e = {.at_ns = i, .kind = "link", .word = "up", .body = "{}"};
        assert_int_equal(store_audit_put(s, &a), 0);
        assert_int_equal(store_event_put(s, &e, NULL), 0);
    }
    assert_int_equal(store_events_expire(s, 7, 4), 4);
    assert_int_equal(store_events_expire(s, 7, 4), 3);
    assert_int_equal(store_events_expire(s, 7, 4), 0);
    assert_int_equal(store_audits(s, 0, 100, count_audit, &left), 0);
    assert_int_equal(left, 3);
    const struct store_event_filter all = {.limit = 100};
    assert_int_equal(store_events(s, &all, count_event, &last), 0);
    assert_int_equal(last, 10);
    store_close(s);
}

static int count_host(void *context, const struct store_audit_host *h)
{
    ++*(int64_t *)context;
    return 0;
}

static int count_run(void *context, const struct store_audit_run *run)
{
    ++*(int64_t *)context;
    return 0;
}

static int note_part(void *context, const struct store_part *part)
{
    char *told = context;
    snprintf(told + strlen(told), 80, "%s=%.*s ", part->part, (int)part->size,
             (const char *)part->body);
    return 0;
}

static void put_part(struct store *s, int64_t host, const char *part, int64_t at_ns, uint8_t hash,
                     const char *body)
{
    const uint8_t hashes[STORE_HASH_SIZE] = {hash};
    assert_int_equal(store_part_put(s, host, part, at_ns, hashes, body, strlen(body)), 0);
}

/* Two times of a host: only changed parts are read. A part that returned to its old content isn't. */
static void tells_the_parts_that_are_others(void **state)
{
    struct store *s = open_store("s.db", 0);
    const struct {
        int64_t at_ns, than_ns;
        const char *told;
    } cases[] = {{150, 250, "os=a "}, {250, 150, "os=b rdma=r "},
                 {250, 350, "os=b "}, {350, 150, "rdma=r "},
                 {150, 350, ""},      {250, 260, ""},
                 {50, 150, ""},       {150, 50, "net=n os=a "}};
    put_part(s, 1, "os", 100, 1, "a");
    put_part(s, 1, "net", 100, 2, "n");
    put_part(s, 1, "os", 200, 3, "b");
    put_part(s, 1, "rdma", 200, 4, "r");
    put_part(s, 1, "os", 300, 1, "a"); /* as before */
    put_part(s, 2, "os", 200, 4, "r"); /* another host's */
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char told[256] = "";
        assert_int_equal(store_parts_other(s, 1, cases[i].at_ns, cases[i].than_ns, note_part, told),
                         0);
        assert_string_equal(told, cases[i].told);
    }
    store_close(s);
}

static int note_at(void *context, const struct store_part *part)
{
    *(int64_t *)context = part->at_ns;
    return 0;
}

static int64_t now_at(struct store *s, int64_t from_ns, int64_t to_ns)
{
    int64_t at = 0;
    assert_int_equal(store_part_now(s, 1, from_ns, to_ns, note_at, &at), 0);
    return at;
}

static void put_now(struct store *s, int64_t at_ns, uint8_t hash)
{
    struct message_buffer packed = {0};
    const uint8_t hashes[STORE_HASH_SIZE] = {hash};
    assert_int_equal(message_pack("x", 1, &packed), 0);
    assert_int_equal(store_part_now_put(s, 1, at_ns, hashes, packed.bytes, packed.size), 0);
    message_buffer_done(&packed);
}

/* Counters of earlier audits: which one a later sheet is compared with, and how long they stay. */
static void keeps_what_was_for_some_days(void **state)
{
    struct store *s = open_store("s.db", 0);
    char told[256] = "";
    put_part(s, 1, "os", 10, 9, "a");
    for (uint8_t i = 1; i <= 5; i++) {
        put_now(s, i * 100, i);
    }
    put_now(s, 600, 5); /* the same values again are kept, too: they are of another time */
    assert_int_equal(now_at(s, 250, 450), 300); /* the oldest of these */
    assert_int_equal(now_at(s, 320, 380), 300); /* none: the newest before */
    assert_int_equal(now_at(s, 100, 100), 100);
    assert_int_equal(now_at(s, 50, 90), 0);
    assert_int_equal(now_at(s, 550, 700), 600);
    assert_int_equal(store_part_now_is(s, 1, 250, 300), 1);
    assert_int_equal(store_part_now_is(s, 1, 310, 390), 0);
    const int64_t host = add_host(s, "h1"), other = add_host(s, "h2"); /* the first host is 1 */
    assert_int_equal(host, 1);
    assert_int_equal(store_part_now_count(s, 250, 500), 1);
    assert_int_equal(store_part_now_count(s, 310, 390), 0);
    put_part(s, other, "os", 350, 9, "a"); /* no measurements */
    assert_int_equal(store_part_now_count(s, 310, 390), 0);
    assert_int_equal(store_parts(s, 1, INT64_MAX, note_part, told), 0);
    assert_string_equal(told, "os=a "); /* nor with an earlier release, which has the same query */
    /* an audit that began and ended about 200 was accepted */
    const struct store_audit_run run = {190, 210, "{\"accepted\":{\"at_utc_ns\":900}}"};
    assert_int_equal(store_audit_run_put(s, &run), 0);
    assert_int_equal(store_audit_expire(s, 0, 450, 100), 4); /* 100 and 300, each with its body */
    assert_int_equal(now_at(s, 0, 150), 0);
    assert_int_equal(now_at(s, 0, 450), 200);
    assert_int_equal(now_at(s, 250, 450), 400); /* the one that was valid then */
    assert_int_equal(now_at(s, 450, 550), 500);
    store_close(s);
}

static int count_work(void *context)
{
    ++*(uint64_t *)context;
    return 0;
}

/* Steps of SQLite's machine, in hundreds, to delete two parts of each of 200 hosts. */
static uint64_t work_to_expire(int64_t runs)
{
    struct store *s = open_store("s.db", 0);
    uint64_t work = 0;
    for (int64_t i = 1; i <= runs; i++) {
        const struct store_audit_run run = {1000 + i, 5000, "{\"state\":\"done\"}"};
        assert_int_equal(store_audit_run_put(s, &run), 0);
    }
    for (int64_t host = 1; host <= 200; host++) {
        put_part(s, host, "os", 10, 1, "a");
        put_part(s, host, "os", 20, 2, "b");
        put_part(s, host, "os", 30, 3, "c");
    }
    sqlite3_progress_handler(s->db, 100, count_work, &work);
    assert_int_equal(store_audit_expire(s, 100, 0, 1000), 402);
    sqlite3_progress_handler(s->db, 0, NULL, NULL);
    store_rollback(s); /* the next one finds an empty store */
    store_close(s);
    return work;
}

/* The controller's loop waits for it: the body of a run isn't read again for each part of each host. */
static void expires_in_time_of_the_parts_whatever_the_runs(void **state)
{
    const uint64_t few = work_to_expire(30), many = work_to_expire(300);
    assert_in_range(many, few, 2 * few);
}

/* Rows beyond the limit of a call are deleted by the next calls, and no run before its results. */
static void expires_some_rows_at_a_time(void **state)
{
    struct store *s = open_store("s.db", 0);
    int64_t left = 0;
    int gone = 0;
    for (int64_t run = 1; run <= 3; run++) {
        const struct store_audit_run row = {run, 50, "{\"state\":\"done\"}"};
        assert_int_equal(store_audit_run_put(s, &row), 0);
        for (int64_t host = 1; host <= 4; host++) {
            const struct store_audit_host h = {
                .run = run, .host = host, .marks = "P", .gate = "pass", .line = "", .body = ""};
            assert_int_equal(store_audit_host_put(s, &h), 0);
            put_now(s, run * 100, (uint8_t)run);
        }
    }
    for (int calls = 0, r = 5; r == 5; calls++) {
        assert_in_range(calls, 0, 10);
        r = store_audit_expire(s, 3, 300, 5);
        assert_in_range(r, 0, 5);
        gone += r;
        assert_int_equal(store_audit_hosts(s, 1, count_host, &left), 0);
        if (left > 0) {
            assert_int_equal(store_audit_run_get(s, 1, count_run, &left), 0);
        }
        left = 0;
    }
    assert_int_equal(gone, 2 * 4 + 2 + 2 + 2); /* results, runs, parts, bodies */
    assert_int_equal(store_audit_expire(s, 3, 300, 5), 0);
    assert_int_equal(store_audit_hosts(s, 3, count_host, &left), 0);
    assert_int_equal(left, 4);
    assert_int_equal(store_audit_run_get(s, 2, count_run, &left), -ENOENT);
    assert_int_equal(now_at(s, 0, 900), 300);
    store_close(s);
}

/* If paths change often, there are many tables. A report that may still need one finds it. */
static void forgets_tables_that_no_report_needs(void **state)
{
    struct store *s = open_store("s.db", 0);
    const int64_t host = add_host(s, "h1"), other = add_host(s, "h2"), day = 86400000000000;
    int64_t count = 0;
    for (int64_t i = 1; i <= 3; i++) {
        assert_int_equal(store_table_put(s, host, (uint64_t)i, i * day, "t", 1), 0);
    }
    assert_int_equal(store_table_put(s, other, 1, day, "t", 1), 0);
    assert_int_equal(store_sealed(s, host, 2 * day), 0);
    assert_int_equal(store_table_get(s, host, 1, count_blob, &count), 0); /* of yesterday */
    assert_int_equal(store_table_put(s, host, 2, 4 * day, "t", 1), 0);    /* in use again */
    assert_int_equal(store_sealed(s, host, 9 * day), 0);
    assert_int_equal(store_table_get(s, host, 1, count_blob, &count), -ENOENT);
    assert_int_equal(store_table_get(s, host, 3, count_blob, &count), -ENOENT);
    assert_int_equal(store_table_get(s, host, 2, count_blob, &count), 0);
    assert_int_equal(store_table_get(s, other, 1, count_blob, &count), 0);
    store_close(s);
}

/* ---- chunks ---- */

enum { SLOTS = 60, SERIES = 200 };

static void fill(struct chunk_series *series, int64_t values[SERIES][SLOTS])
{
    uint64_t h = 9;
    for (uint32_t i = 0; i < SERIES; i++) {
        series[i] =
            (struct chunk_series){{1 + i / 50, 3 + i % 50 / 25, 100 + i, 7640 + i % 4}, values[i]};
        for (uint32_t k = 0; k < SLOTS; k++) {
            h = hash_u64(h, 5);
            values[i][k] = i % 7 == 0 ? 5 : h % 11 == 0 ? CHUNK_NONE : 400 + (int64_t)(h >> 60);
            if (i == 1) {
                values[i][k] = (k & 1) != 0 ? INT64_MAX : INT64_MIN + 1;
            }
        }
    }
}

static int compare(const void *a, const void *b)
{
    return chunk_key_compare(&((const struct chunk_series *)a)->key,
                             &((const struct chunk_series *)b)->key);
}

static void chunks_hold_what_was_put_in(void **state)
{
    static int64_t values[SERIES][SLOTS];
    struct chunk_series series[SERIES];
    const struct chunk_head head = {1700000000000000000LL, 10000000000LL, SLOTS};
    struct message_buffer b = {0};
    struct chunk *c = NULL;
    fill(series, values);
    qsort(series, SERIES, sizeof(series[0]), compare);
    assert_int_equal(chunk_encode(&head, series, SERIES, &b), 0);
    assert_int_equal(chunk_decode(b.bytes, b.size, NULL, &c), 0);
    assert_int_equal(chunk_series_count(c), SERIES);
    for (size_t i = 0; i < SERIES; i++) {
        assert_int_equal(chunk_key_compare(&chunk_series_get(c, i)->key, &series[i].key), 0);
        assert_memory_equal(chunk_series_get(c, i)->values, series[i].values,
                            SLOTS * sizeof(int64_t));
    }
    chunk_free(c);
    struct message_buffer scratch = {0};
    struct chunk_head read;
    int64_t column[CHUNK_SLOT_MAX];
    for (size_t i = 0; i < SERIES; i++) { /* each alone */
        assert_int_equal(chunk_column(b.bytes, b.size, &series[i].key, &scratch, &read, column), 0);
        assert_true(read.from_ns == head.from_ns && read.slot_count == SLOTS);
        assert_memory_equal(column, series[i].values, SLOTS * sizeof(int64_t));
    }
    const struct chunk_key unknown = {1, 4, 99999, 7640}, elsewhere = {1, 99, 100, 7640};
    assert_int_equal(chunk_column(b.bytes, b.size, &unknown, &scratch, &read, column), -ENOENT);
    assert_int_equal(chunk_column(b.bytes, b.size, &elsewhere, &scratch, &read, column), -ENOENT);
    const uint32_t one = 4, none = 99;
    assert_int_equal(chunk_decode(b.bytes, b.size, &one, &c), 0);
    assert_int_equal(chunk_series_count(c), SERIES / 2);
    chunk_free(c);
    assert_int_equal(chunk_decode(b.bytes, b.size, &none, &c), -ENOENT);
    for (size_t n = 0; n < b.size; n++) { /* cut anywhere: refused */
        assert_int_equal(chunk_decode(b.bytes, n, NULL, &c), -EBADMSG);
        if (n < b.size / 2) { /* in the first section, or before it */
            assert_int_equal(chunk_column(b.bytes, n, &series[0].key, &scratch, &read, column),
                             -EBADMSG);
        }
    }
    for (size_t n = 0; n < b.size; n++) { /* any bit: refused, or other values, never worse */
        b.bytes[n] ^= 0x10;
        if (chunk_decode(b.bytes, b.size, NULL, &c) == 0) {
            chunk_free(c);
        }
        if (chunk_column(b.bytes, b.size, &series[90].key, &scratch, &read, column) == 0) {
            assert_true(read.slot_count <= CHUNK_SLOT_MAX);
        }
        b.bytes[n] ^= 0x10;
    }
    message_buffer_done(&scratch);
    message_buffer_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_what_is_committed, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(keeps_a_second_one_out, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(keeps_what_was_for_some_days, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(expires_in_time_of_the_parts_whatever_the_runs, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(expires_some_rows_at_a_time, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(tells_the_parts_that_are_others, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(survives_kill, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(survives_a_full_disk, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(refuses_damage, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(findings_stay_closed, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_helper_reads_and_checkpoints, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(opening_after_a_kill_writes_nothing, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(gives_back_what_was_deleted, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(keeps_room_for_the_next_rows, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(lets_go_of_what_is_old, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(forgets_tables_that_no_report_needs, make_folder,
                                        remove_folder),
        cmocka_unit_test(chunks_hold_what_was_put_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

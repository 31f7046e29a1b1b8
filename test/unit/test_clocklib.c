/* libfoliot-clock from a program's side: before there is an agent, with one, after it died, with its successor, with garbage in
 * the file, across threads and fork. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/time.h"
#include "clocklib/map.h"
#include "foliot/clock.h"
#include "wire/clock_page.h"

static int64_t kernel_ns(clockid_t id)
{
    struct timespec t;

    (void)syscall(SYS_clock_gettime, id, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* Replaces libc's. At most a millisecond passes from one look to the next. A page is old after two seconds, and a busy machine
 * may pause for longer in the middle of a test. */
int clock_gettime(clockid_t id, struct timespec *ret)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int64_t last_ns, lost_ns;
    int64_t raw_ns, ns;

    pthread_mutex_lock(&lock);
    do { /* both at once */
        raw_ns = kernel_ns(CLOCK_MONOTONIC_RAW);
        ns = id == CLOCK_MONOTONIC_RAW ? raw_ns : kernel_ns(id);
    } while (id != CLOCK_MONOTONIC_RAW && kernel_ns(CLOCK_MONOTONIC_RAW) - raw_ns > 50 * NS_PER_US);
    const int64_t stall_ns = last_ns != 0 ? raw_ns - last_ns - NS_PER_MS : 0;
    lost_ns += stall_ns > 0 ? stall_ns : 0;
    last_ns = raw_ns;
    ns -= lost_ns;
    *ret = (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
    pthread_mutex_unlock(&lock);
    return 0;
}

static char dir[] = "/tmp/foliot-clocklib-XXXXXX";
static char file[64], temporary[64];

static int64_t read_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void read_boot_id(uint8_t *id)
{
    char text[40] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    int digits = 0;

    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    fclose(f);
    for (const char *p = text; *p != 0 && digits < 32; p++) {
        unsigned digit;
        if (*p != '-' && sscanf((char[]){*p, 0}, "%x", &digit) == 1) {
            id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | digit);
            digits++;
        }
    }
}

/* Fleet time = raw + x. */
static struct clock_page page_now(int64_t x)
{
    const int64_t now = read_ns(CLOCK_MONOTONIC_RAW);
    const struct linear_map map = {.r = now, .x = x};
    struct clock_page page = {
        .terms = {.status = CLOCK_PAGE_SYNCED,
                  .timeline = 9,
                  .epoch = 1,
                  .written = now,
                  .since = now - 10 * NS_PER_S,
                  .void_after = INT64_MAX,
                  .line_from = now,
                  .map_from = now,
                  .prior = map,
                  .line = map,
                  .map = map,
                  .h_ns = 5000,
                  .rate_limit = 2e-6,
                  .rate_drift = 1e-7,
                  .p00 = 100,
                  .guard = INT64_MAX,
                  .pass_raw = now,
                  .pass_coarse = read_ns(CLOCK_REALTIME_COARSE),
                  .pass_suspended = read_ns(CLOCK_BOOTTIME) - read_ns(CLOCK_MONOTONIC)},
        .utc_minus_fleet_ns = -7,
        .utc_bound_ns = 1000,
        .realtime_since = INT64_MIN,
        .nic_count = 1,
        .nics = {{.name = "eth0",
                  .nic = 1,
                  .status = CLOCK_PAGE_SYNCED,
                  .map = map,
                  .h_ns = 10,
                  .statistical_ns = 5}},
    };

    read_boot_id(page.boot_id);
    return page;
}

/* Starts an agent: a new file, renamed over the old one. */
static struct clock_page_memory *agent_starts(uint64_t nonce, const struct clock_page *page)
{
    const int fd = open(temporary, O_RDWR | O_CREAT | O_EXCL, 0644);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, CLOCK_PAGE_SIZE), 0);
    struct clock_page_memory *memory =
        mmap(NULL, CLOCK_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(memory != MAP_FAILED);
    close(fd);
    clock_page_init(memory, nonce);
    if (page != NULL) {
        clock_page_write(memory, page);
    }
    assert_int_equal(rename(temporary, file), 0);
    return memory;
}

static void agent_ends(struct clock_page_memory *memory)
{
    munmap(memory, CLOCK_PAGE_SIZE);
}

/* Begins each test like a new process. */
static int forget(void **state)
{
    for (int i = 0; i < PAGE_MAP_SLOTS; i++) {
        if (page_map.slots[i] != NULL) {
            munmap(page_map.slots[i], CLOCK_PAGE_SIZE);
        }
    }
    memset(&page_map, 0, sizeof(page_map));
    unlink(file);
    return 0;
}

static void no_agent(void **state)
{
    struct foliot_time now;
    int64_t utc, bound;

    assert_int_equal(foliot_clock_open(), -ENOENT);
    assert_int_equal(foliot_now(&now), FOLIOT_UNKNOWN);
    assert_true(now.earliest_ns == INT64_MIN && now.latest_ns == INT64_MAX);
    assert_int_equal(foliot_from_monotonic(1, &now), FOLIOT_UNKNOWN);
    assert_int_equal(foliot_from_realtime(1, &now), FOLIOT_UNKNOWN);
    assert_int_equal(foliot_from_nic("eth0", 1, &now), FOLIOT_UNKNOWN);
    assert_int_equal(foliot_utc(0, &utc, &bound), -ENODATA);
}

/* The age of the page, with which bounds grow: a machine may pause between any two lines. */
static int64_t age_of(const struct foliot_time *t, int64_t x, const struct clock_page *page)
{
    return t->estimate_ns - x - page->terms.written;
}

static void in_step(void **state)
{
    const int64_t x = 1790000000 * NS_PER_S;
    const struct clock_page page = page_now(x);
    struct clock_page_memory *memory = agent_starts(2, &page);
    struct foliot_time now, before = {.estimate_ns = INT64_MIN};
    int64_t utc, bound;

    assert_int_equal(foliot_clock_open(), 0);
    for (int i = 0; i < 1000; i++) {
        const int64_t raw = read_ns(CLOCK_MONOTONIC_RAW);
        assert_int_equal(foliot_now(&now), FOLIOT_SYNCED);
        assert_true(now.estimate_ns >= raw + x);
        assert_true(now.estimate_ns <= read_ns(CLOCK_MONOTONIC_RAW) + x);
        assert_true(now.estimate_ns >= before.estimate_ns);
        assert_true(now.earliest_ns < now.estimate_ns && now.latest_ns > now.estimate_ns);
        assert_true(now.latest_ns - now.earliest_ns < 20000 + age_of(&now, x, &page) / 100000);
        assert_int_equal(now.likely_ns, 61);
        before = now;
    }
    assert_int_equal(foliot_utc(now.estimate_ns, &utc, &bound), 0);
    assert_true(utc == now.estimate_ns - 7);
    assert_in_range(bound, 1000, 1000 + age_of(&now, x, &page) / 5000 + 1); /* 200 ppm of it */
    /* an hour ago UTC may have been different */
    assert_int_equal(foliot_utc(now.estimate_ns - 3600 * NS_PER_S, &utc, &bound), 0);
    assert_true(bound > 700 * NS_PER_MS && bound < 750 * NS_PER_MS);
    agent_ends(memory);
}

static void earlier_stamps(void **state)
{
    const int64_t x = 1790000000 * NS_PER_S;
    const struct clock_page page = page_now(x);
    struct clock_page_memory *memory = agent_starts(2, &page);
    const int64_t before = read_ns(CLOCK_MONOTONIC_RAW);
    const int64_t monotonic = read_ns(CLOCK_MONOTONIC);
    const int64_t realtime = read_ns(CLOCK_REALTIME);
    const int64_t after = read_ns(CLOCK_MONOTONIC_RAW);
    struct foliot_time t;

    usleep(3000);
    assert_int_equal(foliot_from_raw(before, &t), FOLIOT_SYNCED);
    assert_true(t.estimate_ns == before + x);
    assert_int_equal(foliot_from_monotonic(monotonic, &t), FOLIOT_SYNCED);
    assert_true(t.latest_ns >= before + x && t.earliest_ns <= after + x);
    assert_true(t.likely_ns < 61 + 500000 + (read_ns(CLOCK_MONOTONIC) - monotonic) / 1000);
    assert_int_equal(foliot_from_realtime(realtime, &t), FOLIOT_SYNCED);
    assert_true(t.latest_ns >= before + x && t.earliest_ns <= after + x);
    assert_int_equal(foliot_from_nic("eth0", before, &t), FOLIOT_SYNCED);
    assert_true(t.estimate_ns == before + x);
    /* An unknown time isn't guessed. */
    assert_int_equal(foliot_from_nic("eth1", before, &t), FOLIOT_UNKNOWN);
    assert_int_equal(foliot_from_raw(before - 11 * NS_PER_S, &t), FOLIOT_UNKNOWN);
    assert_int_equal(foliot_from_raw(after + 3600 * NS_PER_S, &t), FOLIOT_UNKNOWN);
    assert_int_equal(foliot_from_monotonic(INT64_MIN, &t), FOLIOT_UNKNOWN);
    assert_int_equal(foliot_from_realtime(INT64_MAX, &t), FOLIOT_UNKNOWN);
    agent_ends(memory);
}

static void realtime_was_set(void **state)
{
    struct clock_page page = page_now(0);
    struct foliot_time t;

    page.terms.pass_coarse -= NS_PER_S; /* set a second ahead since the agent looked */
    struct clock_page_memory *memory = agent_starts(2, &page);
    assert_int_equal(foliot_from_realtime(read_ns(CLOCK_REALTIME), &t), FOLIOT_UNKNOWN);
    assert_int_equal(foliot_now(&t), FOLIOT_SYNCED); /* raw time isn't affected */
    page = page_now(0);
    page.realtime_since = page.terms.written - NS_PER_MS;
    clock_page_write(memory, &page);
    assert_int_equal(foliot_from_realtime(read_ns(CLOCK_REALTIME) - NS_PER_S, &t), FOLIOT_UNKNOWN);
    assert_int_equal(foliot_from_realtime(read_ns(CLOCK_REALTIME), &t), FOLIOT_SYNCED);
    agent_ends(memory);
}

static void the_host_slept(void **state)
{
    struct clock_page page = page_now(0);
    struct foliot_time now;

    page.terms.pass_coarse -= 5 * NS_PER_S; /* raw stood still for 5 s, wall time went on */
    page.terms.pass_suspended -= 5 * NS_PER_S;
    struct clock_page_memory *memory = agent_starts(2, &page);
    assert_int_equal(foliot_now(&now), FOLIOT_DISRUPTED);
    assert_true(now.latest_ns == INT64_MAX);
    assert_int_equal(foliot_from_nic("eth0", 1, &now), FOLIOT_DISRUPTED);
    agent_ends(memory);
}

static void the_agent_died_and_came_back(void **state)
{
    struct clock_page page = page_now(0);
    struct foliot_time now;

    page.terms.written -= 3 * NS_PER_S;
    struct clock_page_memory *first = agent_starts(2, &page);
    assert_int_equal(foliot_now(&now), FOLIOT_HOLDOVER);
    agent_ends(first);
    unlink(file); /* removed: the old page goes on ageing */
    assert_int_equal(foliot_now(&now), FOLIOT_HOLDOVER);
    page = page_now(0);
    page.terms.timeline = 10;
    struct clock_page_memory *second = agent_starts(4, &page);
    page_map.tried_ns = 0; /* in a running program: 100 ms later */
    (void)foliot_now(&now);
    assert_int_equal(foliot_now(&now), FOLIOT_SYNCED);
    assert_int_equal(now.timeline, 10);
    for (uint64_t i = 11; i < 11 + 3 * PAGE_MAP_SLOTS; i++) { /* an agent that keeps failing */
        agent_ends(second);
        page = page_now(0);
        page.terms.timeline = i;
        second = agent_starts(2 * i, &page);
        assert_int_equal(foliot_clock_open(), 0);
        assert_int_equal(foliot_now(&now), FOLIOT_SYNCED);
        assert_int_equal(now.timeline, i);
    }
    agent_ends(second);
}

static void from_an_earlier_boot(void **state)
{
    struct clock_page page = page_now(0);
    struct foliot_time now;

    page.boot_id[0] ^= 1;
    struct clock_page_memory *memory = agent_starts(2, &page);
    assert_int_equal(foliot_clock_open(), -ESTALE);
    assert_int_equal(foliot_now(&now), FOLIOT_UNKNOWN);
    agent_ends(memory);
}

static void rubbish(void **state)
{
    struct foliot_time now;
    struct clock_page page = page_now(0);

    struct clock_page_memory *memory = agent_starts(2, NULL); /* nothing published yet */
    assert_int_equal(foliot_clock_open(), -EAGAIN);
    memory->words[0] = 1;
    assert_int_equal(foliot_clock_open(), -EPROTO);
    assert_int_equal(foliot_now(&now), FOLIOT_UNKNOWN);
    clock_page_write(memory, &page);
    assert_int_equal(foliot_clock_open(), 0);
    memset(memory, 0xff, CLOCK_PAGE_SIZE); /* overwritten while it is mapped */
    assert_int_equal(foliot_now(&now), FOLIOT_UNKNOWN);
    memset(memory, 0xee, CLOCK_PAGE_SIZE);
    assert_int_equal(foliot_now(&now), FOLIOT_UNKNOWN);
    agent_ends(memory);
    forget(NULL);
    assert_int_equal(mkdir(file, 0755), 0);
    assert_int_equal(foliot_clock_open(), -EPROTO);
    rmdir(file);
    assert_int_equal(close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644)), 0); /* empty */
    assert_int_equal(foliot_clock_open(), -EPROTO);
}

static void *read_always(void *arg)
{
    struct foliot_time now;
    int64_t before = INT64_MIN;

    for (int i = 0; i < 20000; i++) {
        if (foliot_now(&now) == FOLIOT_SYNCED) {
            if (now.estimate_ns < before) {
                return (void *)1;
            }
            before = now.estimate_ns;
        }
    }
    return NULL;
}

static void threads_and_restarts(void **state)
{
    struct clock_page page = page_now(0);
    struct clock_page_memory *memory = agent_starts(2, &page);
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_always, NULL), 0);
    }
    for (uint64_t i = 0; i < PAGE_MAP_SLOTS - 1; i++) {
        agent_ends(memory);
        page.terms.written = read_ns(CLOCK_MONOTONIC_RAW);
        memory = agent_starts(100 + 1000 * i, &page);
        assert_int_equal(foliot_clock_open(), 0);
        usleep(200);
    }
    for (int i = 0; i < 3; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    agent_ends(memory);
}

/* A fork() in the middle of another thread's opening: the child opens for itself. */
static void fork_is_safe(void **state)
{
    const struct clock_page page = page_now(0);
    struct clock_page_memory *memory = agent_starts(2, &page);
    struct foliot_time now;
    int status;

    page_map.owner = getpid();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(foliot_now(&now) == FOLIOT_SYNCED ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    page_map.owner = 0;
    agent_ends(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(no_agent, forget),
        cmocka_unit_test_setup(in_step, forget),
        cmocka_unit_test_setup(earlier_stamps, forget),
        cmocka_unit_test_setup(realtime_was_set, forget),
        cmocka_unit_test_setup(the_host_slept, forget),
        cmocka_unit_test_setup(the_agent_died_and_came_back, forget),
        cmocka_unit_test_setup(from_an_earlier_boot, forget),
        cmocka_unit_test_setup(rubbish, forget),
        cmocka_unit_test_setup(threads_and_restarts, forget),
        cmocka_unit_test_setup(fork_is_safe, forget),
    };

    if (mkdtemp(dir) == NULL) {
        return 1;
    }
    snprintf(file, sizeof(file), "%s/%s", dir, CLOCK_PAGE_NAME);
    snprintf(temporary, sizeof(temporary), "%s/temporary", dir);
    setenv("FOLIOT_RUNTIME_DIR", dir, 1);
    unsetenv(OSCILLATOR_ENV);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(file);
    rmdir(dir);
    return failed;
}

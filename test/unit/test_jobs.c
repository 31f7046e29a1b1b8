/* test_jobs.c: job pages as the agent finds them: live processes, dead ones, changes, and other users' files. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "service/agent/jobs.h"

struct page {
    char path[128];
    int fd;
    struct job_page_memory *memory;
    struct job_page_header header;
    struct job_page_lane lane;
};

static char folder[64];
static struct jobs *jobs;
static struct mono now = {1000 * NS_PER_S};

static int begin(void **state)
{
    const char *folders[] = {folder};

    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/foliot-jobs-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(jobs_new(&jobs, folders, 1), 0);
    return 0;
}

static int end(void **state)
{
    char command[128];

    (void)state;
    jobs_free(jobs);
    snprintf(command, sizeof(command), "%s/job-x.page", folder);
    unlink(command);
    return rmdir(folder);
}

static void store(struct page *page)
{
    job_page_write_lane(page->memory, 0, &page->lane);
    job_page_write_header(page->memory, &page->header);
    assert_int_equal(pwrite(page->fd, page->memory, sizeof(*page->memory), 0),
                     sizeof(*page->memory));
}

static void open_page(struct page *page, const char *name)
{
    *page = (struct page){.memory = calloc(1, sizeof(*page->memory))};
    snprintf(page->path, sizeof(page->path), "%s/%s", folder, name);
    page->fd = open(page->path, O_RDWR | O_CREAT | O_EXCL, 0644);
    assert_true(page->fd >= 0);
    assert_int_equal(flock(page->fd, LOCK_EX | LOCK_NB), 0);
    job_page_init(page->memory, 2);
    page->header = (struct job_page_header){
        .pid = 4242, .lane_count = 1, .written = 1, .job = "77", .rank = 3, .ranks = 8};
    page->lane = (struct job_page_lane){.generation = 1,
                                        .lane = 2,
                                        .sending = 1,
                                        .state = LANE_ACTIVE,
                                        .epoch = 1,
                                        .peer_host = "host4",
                                        .own_nic = "eth0",
                                        .peer_nic = "eth1"};
    store(page);
}

static void close_page(struct page *page, bool orderly)
{
    if (orderly) {
        unlink(page->path);
    }
    close(page->fd);
    free(page->memory);
}

static void look(int64_t seconds)
{
    now.ns += seconds * NS_PER_S;
    jobs_look(jobs, now);
}

static const struct job_event *newest(void)
{
    uint64_t first;
    const uint64_t count = jobs_events(jobs, &first);

    assert_true(count > 0);
    return jobs_event(jobs, count - 1);
}

/* Ten pages among 20,000 files of another user: none is hidden for longer than a few looks. */
static void many_files_hide_no_page(void **state)
{
    enum { FILES = 20000, PAGES = 10, LOOKS = FILES / 4096 + 2 };
    struct page pages[PAGES];
    char name[128];

    (void)state;
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "%s/other-%d", folder, i);
        const int fd = open(name, O_WRONLY | O_CREAT, 0644);
        assert_true(fd >= 0);
        close(fd);
        if (i % (FILES / PAGES) == 0) {
            snprintf(name, sizeof(name), "job-%d-a.page", i);
            open_page(&pages[i / (FILES / PAGES)], name);
        }
    }
    for (int i = 0; i < LOOKS; i++) {
        look(1);
    }
    assert_int_equal(jobs_count(jobs), PAGES);
    for (int i = 0; i < PAGES; i++) {
        close_page(&pages[i], true);
    }
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "%s/other-%d", folder, i);
        unlink(name);
    }
}

/* Twelve pages of root, then two of another user: both of these are among the eight that are shown. */
static void each_user_has_a_share(void **state)
{
    enum { PAGES = 14, OTHERS = 2, TOLD = 8 };
    const struct job_process *told[PAGES];
    struct page pages[PAGES];
    char name[32];
    int others = 0;

    (void)state;
    if (geteuid() != 0) {
        skip(); /* only root can make another user's page */
    }
    for (int i = 0; i < PAGES; i++) {
        snprintf(name, sizeof(name), "job-%d-a.page", i);
        open_page(&pages[i], name);
        assert_int_equal(fchown(pages[i].fd, i < PAGES - OTHERS ? 0 : 12345, (gid_t)-1), 0);
        look(1);
    }
    assert_int_equal(jobs_fair(jobs, TOLD, told), TOLD);
    for (int i = 0; i < TOLD; i++) {
        others += told[i]->user == 12345;
    }
    assert_int_equal(others, OTHERS);
    assert_int_equal(jobs_fair(jobs, 100, told), PAGES); /* all, each once */
    for (int i = 0; i < PAGES; i++) {
        for (int k = 0; k < i; k++) {
            assert_ptr_not_equal(told[i], told[k]);
        }
    }
    for (int i = 0; i < PAGES; i++) {
        close_page(&pages[i], true);
    }
}

static void a_process_lives_and_ends(void **state)
{
    struct page page;

    (void)state;
    open_page(&page, "job-1-a.page");
    look(1);
    assert_int_equal(jobs_count(jobs), 1);
    assert_string_equal(jobs_get(jobs, 0)->header.job, "77");
    assert_int_equal(jobs_get(jobs, 0)->state, JOB_RUNNING);
    assert_int_equal(newest()->kind, JOB_EVENT_STARTED);
    page.header.written += NS_PER_S;
    page.lane.bytes = 125000000;
    store(&page);
    look(1);
    assert_int_equal(jobs_get(jobs, 0)->rate_out_bps, 1000000000);
    assert_int_equal(jobs_get(jobs, 0)->lanes[0].rate_bps, 1000000000);
    look(10); /* nothing is written without traffic: the page stays */
    assert_int_equal(jobs_get(jobs, 0)->state, JOB_IDLE);
    assert_int_equal(jobs_get(jobs, 0)->rate_out_bps, 0);
    close_page(&page, true);
    look(1);
    assert_int_equal(jobs_get(jobs, 0)->state, JOB_ENDED);
    assert_int_equal(newest()->kind, JOB_EVENT_ENDED);
    look(JOBS_ENDED_NS / NS_PER_S + 2);
    assert_int_equal(jobs_count(jobs), 0);
}

static void is_class(uint8_t traffic_class, uint8_t sl)
{
    const struct job_class class = jobs_class(jobs, now);

    assert_int_equal(class.traffic_class, traffic_class);
    assert_int_equal(class.sl, sl);
}

static void mark(struct page *page, uint8_t traffic_class, uint8_t sl)
{
    page->lane.pair = (uint8_t)(JOB_PAGE_PAIR | sl << JOB_PAGE_SL_SHIFT);
    page->lane.traffic_class = traffic_class;
    page->header.written++;
    store(page);
}

/* Each process has one vote, by its lanes over queue pairs of RDMA NICs. The page of an ended process doesn't count. */
static void the_class_is_that_of_most_processes(void **state)
{
    static const char *const nics[] = {"eth0", "eth7"};
    struct page pages[4];

    (void)state;
    jobs_class_nics(jobs, nics, 2);
    is_class(0, 0);
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof(name), "job-%d-a.page", i + 1);
        open_page(&pages[i], name);
    }
    pages[0].lane.traffic_class = 136; /* a connection's */
    store(&pages[0]);
    mark(&pages[1], 106, 15);
    strcpy(pages[2].lane.own_nic, "eth1"); /* no RDMA NIC */
    mark(&pages[2], 106, 3);
    look(1);
    is_class(0, 0);
    pages[3].header.lane_count = 64; /* many lanes are one vote */
    for (uint32_t i = 1; i < 64; i++) {
        pages[3].lane.generation = i + 1;
        pages[3].lane.pair = JOB_PAGE_PAIR | 5 << JOB_PAGE_SL_SHIFT;
        pages[3].lane.traffic_class = 8;
        job_page_write_lane(pages[3].memory, i, &pages[3].lane);
    }
    pages[3].lane.generation = 1;
    mark(&pages[3], 8, 5);
    look(1);
    is_class(8, 5);
    mark(&pages[1], 106, 3);
    strcpy(pages[2].lane.own_nic, "eth7");
    mark(&pages[2], 106, 3);
    look(1);
    is_class(8, 5); /* it stays while no other has led for long */
    look(20);
    is_class(8, 5);
    mark(&pages[2], 8, 5);
    look(1);
    is_class(8, 5);
    mark(&pages[2], 106, 3);
    look(1);
    is_class(8, 5);
    look(29);
    is_class(8, 5);
    look(1);
    is_class(106, 3);
    close_page(&pages[1], true);
    close_page(&pages[2], true);
    look(1);
    is_class(8, 5); /* no page has the other any more */
    close_page(&pages[0], true);
    close_page(&pages[3], true);
    look(1);
    is_class(0, 0);
}

/* For lanes that go from one address to another over queue pairs of RoCE. An older page has no port: a delay is at that place. */
static void paths_are_those_of_running_lanes(void **state)
{
    static const uint16_t ports[] = {0xc300, 0xc100, 0xffff, 0xc200, 0xc100};
    static const uint8_t own[16] = {[15] = 1}, peer[16] = {[15] = 2}, other[16] = {[15] = 3};
    uint16_t found[JOBS_PORTS_MAX];
    struct page page;

    (void)state;
    open_page(&page, "job-1-a.page");
    page.header.lane_count = 9;
    for (uint32_t i = 0; i < 9; i++) {
        page.lane.generation = i + 1;
        page.lane.sending = 1;
        page.lane.state = LANE_ACTIVE;
        page.lane.pair = JOB_PAGE_PAIR | JOB_PAGE_PORT;
        page.lane.path_port = i < 5 ? ports[i] : 0xc001 + i;
        memcpy(page.lane.own_address, own, 16);
        memcpy(page.lane.peer_address, i == 5 ? other : peer, 16);
        page.lane.pair = i == 6 ? JOB_PAGE_PAIR : page.lane.pair;
        page.lane.state = i == 7 ? LANE_DOWN : page.lane.state;
        page.lane.path_port = i == 8 ? 0x1bbf : page.lane.path_port; /* no port of RoCE */
        job_page_write_lane(page.memory, i, &page.lane);
    }
    page.lane.generation = 1; /* store() writes the first one */
    page.lane.pair = JOB_PAGE_PAIR | JOB_PAGE_PORT;
    page.lane.path_port = ports[0];
    memcpy(page.lane.peer_address, peer, 16);
    store(&page);
    look(1);
    assert_int_equal(jobs_ports(jobs, own, peer, found, JOBS_PORTS_MAX), 4);
    assert_true(found[0] == 0xc100 && found[1] == 0xc200 && found[2] == 0xc300 &&
                found[3] == 0xffff);
    assert_int_equal(jobs_ports(jobs, own, peer, found, 2), 2);
    assert_true(found[0] == 0xc100 && found[1] == 0xc200);
    assert_int_equal(jobs_ports(jobs, own, other, found, JOBS_PORTS_MAX), 1);
    assert_int_equal(jobs_ports(jobs, peer, own, found, JOBS_PORTS_MAX), 0);
    close_page(&page, true);
    look(1);
    assert_int_equal(jobs_ports(jobs, own, peer, found, JOBS_PORTS_MAX), 0);
}

static void a_killed_process_is_known_by_its_lock(void **state)
{
    struct page page;

    (void)state;
    open_page(&page, "job-1-a.page");
    look(1);
    page.header.failovers = 5; /* its last words */
    page.header.written++;
    store(&page);
    close_page(&page, false);
    look(1);
    assert_int_equal(jobs_get(jobs, 0)->state, JOB_KILLED);
    assert_int_equal(jobs_get(jobs, 0)->header.failovers, 5);
    assert_int_equal(newest()->kind, JOB_EVENT_KILLED);
    assert_int_equal(access(page.path, F_OK), -1); /* nothing is left */
}

/* All users share /dev/shm: a dead process's page is removed, once, and nothing else. */
static void a_killed_process_leaves_no_page_in_a_shared_folder(void **state)
{
    const char *folders[] = {"/nowhere", folder};
    struct page page, living;
    char foreign[128];

    (void)state;
    jobs_free(jobs);
    assert_int_equal(jobs_new(&jobs, folders, 2), 0);
    open_page(&page, "job-1-a.page");
    open_page(&living, "job-2-b.page");
    snprintf(foreign, sizeof(foreign), "%s/job-3-c.page", folder);
    int fd = open(foreign, O_RDWR | O_CREAT | O_EXCL, 0644); /* as large as a page, but not one */
    assert_int_equal(ftruncate(fd, sizeof(*page.memory)), 0);
    close(fd);
    look(1);
    close_page(&page, false);
    look(1);
    assert_int_equal(newest()->kind, JOB_EVENT_KILLED);
    assert_int_equal(access(page.path, F_OK), -1);
    assert_int_equal(access(living.path, F_OK), 0);
    assert_int_equal(access(foreign, F_OK), 0);
    close_page(&living, true);
    unlink(foreign);
}

static void what_failover_did_is_told_with_its_reason(void **state)
{
    struct page page;

    (void)state;
    open_page(&page, "job-1-a.page");
    look(1);
    page.header.written += NS_PER_S;
    page.lane.failovers = 1;
    page.lane.state = LANE_DOWN;
    page.lane.reason = LANE_REASON_CARRIER;
    page.lane.since_ms = 400;
    store(&page);
    look(1);
    assert_int_equal(newest()->kind, JOB_EVENT_FAILOVER);
    assert_int_equal(newest()->reason, LANE_REASON_CARRIER);
    assert_int_equal(newest()->at.ns, now.ns - 400 * NS_PER_MS);
    assert_string_equal(newest()->peer_host, "host4");
    assert_int_equal(jobs_get(jobs, 0)->state, JOB_PARTED); /* its only lane */
    page.header.written += NS_PER_S;
    page.lane.state = LANE_ACTIVE;
    page.lane.epoch = 2;
    page.lane.since_ms = 100;
    store(&page);
    look(1);
    assert_int_equal(newest()->kind, JOB_EVENT_FAILBACK);
    assert_int_equal(jobs_get(jobs, 0)->state, JOB_RUNNING);
    page.header.written += NS_PER_S;
    page.lane.failovers = 4; /* down and up between two looks */
    store(&page);
    look(1);
    assert_int_equal(newest()->kind, JOB_EVENT_FAILBACK);
    page.header.written += NS_PER_S;
    page.lane.epoch = 9;
    page.lane.reason = LANE_REASON_REPATH;
    store(&page);
    look(1);
    assert_int_equal(newest()->kind, JOB_EVENT_REPATH);
    close_page(&page, true);
}

static void what_is_no_page_is_refused(void **state)
{
    struct page page;
    char path[128], target[128];

    (void)state;
    open_page(&page, "job-1-a.page");
    snprintf(path, sizeof(path), "%s/job-2-b.page", folder);
    assert_int_equal(symlink("job-1-a.page", path), 0);
    snprintf(target, sizeof(target), "%s/job-3-c.page", folder);
    assert_int_equal(mkfifo(target, 0644), 0);
    look(1);
    assert_int_equal(jobs_count(jobs), 1);
    assert_int_equal(jobs_refused(jobs), 1);
    unlink(path);
    unlink(target);
    assert_int_equal(ftruncate(page.fd, 100), 0); /* cut while the agent reads it */
    look(1);
    assert_int_equal(jobs_count(jobs), 1);
    assert_string_equal(jobs_get(jobs, 0)->header.job, "77"); /* as last read */
    close_page(&page, true);
}

static void any_bytes_are_safe(void **state)
{
    struct page page;
    struct prng prng;

    (void)state;
    prng_init(&prng, 7);
    open_page(&page, "job-1-a.page");
    for (int i = 0; i < 300; i++) {
        uint8_t bytes[4096];
        for (size_t k = 0; k < sizeof(bytes); k++) {
            bytes[k] = (uint8_t)prng_u64(&prng);
        }
        page.header.written = (int64_t)prng_u64(&prng);
        page.header.lane_count = (uint32_t)prng_below(&prng, JOB_PAGE_LANES_MAX + 2);
        store(&page);
        assert_true(
            pwrite(page.fd, bytes, sizeof(bytes), (off_t)(256 + prng_below(&prng, 200000))) > 0);
        look(1);
        assert_true(jobs_get(jobs, 0)->lane_count <= JOB_PAGE_LANES_MAX);
    }
    close_page(&page, true);
}

static void no_user_has_all_places(void **state)
{
    static struct page pages[JOB_PROCESS_OF_USER_MAX + 3];
    char name[32];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(pages); i++) {
        snprintf(name, sizeof(name), "job-%zu-a.page", i);
        open_page(&pages[i], name);
    }
    look(1);
    assert_int_equal(jobs_count(jobs), JOB_PROCESS_OF_USER_MAX);
    assert_true(jobs_refused(jobs) >= 3);
    for (size_t i = 0; i < ARRAY_COUNT(pages); i++) {
        close_page(&pages[i], true);
    }
    look(1);
    open_page(&pages[0], "job-new-a.page"); /* an ended process makes room */
    look(1);
    assert_int_equal(newest()->kind, JOB_EVENT_STARTED);
    close_page(&pages[0], true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_process_lives_and_ends),
        TEST(the_class_is_that_of_most_processes),
        TEST(paths_are_those_of_running_lanes),
        TEST(a_killed_process_is_known_by_its_lock),
        TEST(a_killed_process_leaves_no_page_in_a_shared_folder),
        TEST(what_failover_did_is_told_with_its_reason),
        TEST(what_is_no_page_is_refused),
        TEST(any_bytes_are_safe),
        TEST(no_user_has_all_places),
        TEST(many_files_hide_no_page),
        TEST(each_user_has_a_share),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

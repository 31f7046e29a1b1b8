/* The book of jobs: each process finds its own job, also after jobs have left the book and others have their places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "service/controller/controller.h"
#include "service/controller/fleet/host.h"
#include "service/controller/job/job.h"

enum { HOSTS = 17 };
static struct controller world;
static struct fleet_host hosts[HOSTS];
static struct fleet_host *host_list[HOSTS];

static int begin(void **state)
{
    (void)state;
    world = (struct controller){.hosts = host_list, .host_count = HOSTS};
    for (uint32_t i = 0; i < HOSTS; i++) {
        hosts[i] = (struct fleet_host){.id = i + 1, .index = i, .member = true};
        snprintf(hosts[i].name, sizeof(hosts[i].name), "h%u", i);
        host_list[i] = &hosts[i];
    }
    return job_open(&world);
}

static int end(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < HOSTS; i++) {
        job_forget_host(&hosts[i]);
    }
    job_close(&world);
    return 0;
}

/* A rollup of `count` processes of user 1000, each with a job of its own: PREFIX0, PREFIX1, … */
static void report(struct fleet_host *h, const char *prefix, uint32_t count, int64_t at_ns)
{
    static Foliot__V1__JobProcess processes[JOB_HOST_MAX];
    static Foliot__V1__JobProcess *pointers[JOB_HOST_MAX];
    static char names[JOB_HOST_MAX][64];
    Foliot__V1__Report m = FOLIOT__V1__REPORT__INIT;
    for (uint32_t i = 0; i < count; i++) {
        foliot__v1__job_process__init(&processes[i]);
        snprintf(names[i], sizeof(names[i]), "%s%u", prefix, i);
        processes[i].job = prefix[0] != 0 ? names[i] : (char *)(uintptr_t) "";
        processes[i].pid = 50 + i;
        processes[i].user = 1000;
        processes[i].state = FOLIOT__V1__JOB_STATE__JOB_RUNNING;
        pointers[i] = &processes[i];
    }
    m.covers_ms = 10000;
    m.n_jobs = count;
    m.jobs = pointers;
    assert_int_equal(job_on_report(&world, h, &m, at_ns), 0);
}

static bool is_in_book(const struct fleet_job *job)
{
    uint32_t i = 0;
    while (i < job_count(&world) && job_get(&world, i) != job) {
        i++;
    }
    return i < job_count(&world);
}

static void jobs_of_two_hosts_and_users(void **state)
{
    (void)state;
    report(&hosts[0], "train", 3, NS_PER_S);
    report(&hosts[1], "train", 2, NS_PER_S);
    report(&hosts[2], "", 1, NS_PER_S); /* without a name */
    assert_int_equal(job_count(&world), 4);
    assert_ptr_equal(job_of(&world, &hosts[0], &hosts[0].jobs[1]),
                     job_of(&world, &hosts[1], &hosts[1].jobs[1]));
    assert_string_equal(job_of(&world, &hosts[2], &hosts[2].jobs[0])->name, "50@h2");
    hosts[0].jobs[0].user = 7; /* then it isn't the same */
    assert_null(job_of(&world, &hosts[0], &hosts[0].jobs[0]));
}

static void a_place_that_is_another_jobs_now(void **state)
{
    char prefix[16];
    uint32_t gone = 0;
    (void)state;
    for (uint32_t i = 0; i < HOSTS; i++) {
        snprintf(prefix, sizeof(prefix), "h%u-", i);
        report(&hosts[i], prefix, JOB_HOST_MAX, (int64_t)(i + 1) * 1000 * NS_PER_S);
    }
    assert_int_equal(job_count(&world), JOB_MAX);
    for (uint32_t i = 0; i < HOSTS; i++) {
        for (uint32_t k = 0; k < hosts[i].job_count; k++) {
            const struct fleet_job_process *p = &hosts[i].jobs[k];
            const struct fleet_job *job = job_of(&world, &hosts[i], p);
            gone += job == NULL;
            if (job != NULL) {
                assert_string_equal(job->name, p->job);
                assert_true(is_in_book(job));
            }
        }
    }
    assert_int_equal(gone, HOSTS * JOB_HOST_MAX - JOB_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(jobs_of_two_hosts_and_users, begin, end),
        cmocka_unit_test_setup_teardown(a_place_that_is_another_jobs_now, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

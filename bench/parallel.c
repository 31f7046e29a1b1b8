/* parallel.c: see parallel.h. */
#include "parallel.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void *parallel_memory(size_t size)
{
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static bool begin(void (*job)(int index), int index)
{
    fflush(stdout); /* otherwise the child prints it, too */
    const pid_t child = fork();

    if (child == 0) {
        job(index);
        fflush(stdout);
        _exit(0);
    }
    return child > 0;
}

int parallel_run(int count, void (*job)(int index))
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int next = 0, ended = 0, died = 0, status;

    while (ended < count) {
        while (next < count && next - ended < processors && begin(job, next)) {
            next++;
        }
        if (next == ended || wait(&status) < 0) {
            fprintf(stderr, "%d jobs couldn't begin\n", count - next);
            return died + count - ended;
        }
        ended++;
        died += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return died;
}

static struct part {
    bool ended;
    struct report report;
} * parts;
static struct report *whole;
static void (*part_job)(struct report *report, int index);
static int part_count;

static void join(struct report *report)
{
    for (int i = 0; i < part_count; i++) {
        for (int k = 0; parts[i].ended && k < parts[i].report.count; k++) {
            report_add(report, &parts[i].report.rows[k]);
        }
    }
}

static void run_part(int index)
{
    part_job(&parts[index].report, index);
    parts[index].ended = true;
    join(whole); /* this process's own rows */
    if (report_write(whole) < 0) {
        fprintf(stderr, "the rows so far couldn't be written\n");
    }
}

int parallel_report(struct report *report, int count, void (*job)(struct report *report, int index))
{
    parts = parallel_memory((size_t)count * sizeof(*parts));
    part_job = job;
    part_count = count;
    whole = report;
    if (parts == NULL) {
        return count;
    }
    const int died = parallel_run(count, run_part);

    join(report);
    return died;
}

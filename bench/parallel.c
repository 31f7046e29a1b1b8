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
    const pid_t child = fork();

    if (child == 0) {
        job(index);
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

static struct report *parts;
static void (*part_job)(struct report *report, int index);

static void run_part(int index)
{
    part_job(&parts[index], index);
}

int parallel_report(struct report *report, int count, void (*job)(struct report *report, int index))
{
    parts = parallel_memory((size_t)count * sizeof(*parts));
    part_job = job;
    if (parts == NULL) {
        return count;
    }
    const int died = parallel_run(count, run_part);

    for (int i = 0; i < count; i++) {
        for (int k = 0; k < parts[i].count; k++) {
            report_add(report, &parts[i].rows[k]);
        }
    }
    return died;
}

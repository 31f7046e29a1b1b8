/* job_pattern.c: the jobs of the simulated processes, and which process sends to which. */
#include "sim/job_private.h"

uint32_t pattern_sharing(const struct job_world *w)
{
    return w->config.sharing > 1 ? w->config.sharing : 1;
}

static uint32_t job_of(const struct job_world *w, uint32_t process)
{
    return w->config.sharing > 1 ? process % w->config.sharing
           : w->config.jobs > 1  ? process / w->config.leaves % w->config.jobs
                                 : 0;
}

bool pattern_low(const struct job_world *w, uint32_t process)
{
    const uint32_t which =
        w->config.jobs > 1 || w->config.sharing > 1 ? job_of(w, process) : process;

    return w->config.low_every != 0 && which % w->config.low_every == 0;
}

uint32_t pattern_next(const struct job_world *w, uint32_t process)
{
    uint32_t next = process;

    do {
        next = (next + 1) % w->config.hosts;
    } while (job_of(w, next) != job_of(w, process));
    return next;
}

bool pattern_talks(const struct job_world *w, uint32_t from, uint32_t to)
{
    switch (w->config.pattern) {
    case JOB_PAIRS:
        return from != to && job_of(w, from) == job_of(w, to);
    case JOB_RING:
        return to == pattern_next(w, from);
    case JOB_STAR:
        return from != to && (from == 0 || to == 0);
    case JOB_INCAST:
        return from != 0 && to == 0;
    case JOB_HALVES:
        return from < w->config.hosts / 2 && to >= w->config.hosts / 2;
    }
    return false;
}

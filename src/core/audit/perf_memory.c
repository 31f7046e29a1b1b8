/* perf_memory.c: the bandwidth of each host's own memory. All hosts measure it in one step, each by itself. A host that carries
 * less than most of its kind measures it once more, and the better result counts: so a single bad moment fails nobody. */
#include "core/audit/perf_internal.h"
#include "stats/sample.h"

static bool takes_part(const struct perf *p, uint32_t host)
{
    return !p->no_memory && p->hosts[host].there && p->hosts[host].memory && !p->gone[host];
}

static void add_step(struct perf *p, bool (*wanted)(const struct perf *, uint32_t))
{
    uint32_t step = PERF_NOBODY;
    for (uint32_t i = 0; i < p->count; i++) {
        if (!wanted(p, i)) {
            continue;
        }
        if (step == PERF_NOBODY) {
            step = perf_add_step(
                p, &(struct perf_step){.kind = PERF_MEMORY, .lanes = 1, .nic = PERF_NOBODY});
        }
        perf_put(p, step, i, i, 0);
    }
    if (step != PERF_NOBODY) {
        perf_end_step(p, step);
    }
}

void perf_add_memory(struct perf *p)
{
    add_step(p, takes_part);
}

static bool is_doubted(const struct perf *p, uint32_t host)
{
    return takes_part(p, host) && perf_memory_doubted(p, host);
}

/* The usual value of hosts of one kind; uses the scratch. */
static double usual_of(const struct perf *p, uint32_t kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->hosts[i].kind == kind && p->memory[i].best.outcome == PERF_DONE) {
            p->scratch[n++] = p->memory[i].best.rate;
        }
    }
    sample_sort(p->scratch, n);
    return n > 0 ? sample_median(p->scratch, n) : -1;
}

bool perf_memory_doubted(const struct perf *p, uint32_t host)
{
    const struct perf_memory *m = &p->memory[host];
    return m->best.outcome == PERF_DONE && m->tried == 1 &&
           m->best.rate < (1 - p->memory_practical) * m->usual;
}

void perf_add_memory_again(struct perf *p)
{
    double usual[PERF_KINDS_MAX];
    for (uint32_t kind = 0; kind < PERF_KINDS_MAX; kind++) {
        usual[kind] = usual_of(p, kind);
    }
    for (uint32_t i = 0; i < p->count; i++) {
        p->memory[i].usual = p->hosts[i].kind < PERF_KINDS_MAX ? usual[p->hosts[i].kind] : -1;
    }
    add_step(p, is_doubted);
}

/* A failure after a result doesn't replace it. */
void perf_take_memory(struct perf *p)
{
    for (uint32_t step = 0; step < p->step_count; step++) {
        for (uint32_t i = 0; p->steps[step].kind == PERF_MEMORY && i < p->count; i++) {
            const struct perf_result *r = perf_result_at(p, step, i);
            struct perf_memory *m = &p->memory[i];
            const bool done = r->outcome == PERF_DONE;
            if (r->outcome == PERF_NOT_RUN) {
                continue;
            }
            m->tried += done;
            m->runs += done ? r->runs : 0;
            if (m->best.outcome != PERF_DONE || (done && r->rate > m->best.rate)) {
                m->best = *r;
            }
        }
    }
}

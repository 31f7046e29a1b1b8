/* perf_offer.c: see perf_offer.h. */
#include "core/audit/perf_offer.h"

#include "core/audit/perf.h"

static bool is_test(const struct perf_task *t)
{
    const bool well = t->ranks >= 2 && t->ranks <= AUDIT_RANKS_MAX && t->rank < t->ranks &&
                      t->lanes >= 1 && t->lanes <= AUDIT_LANES_MAX && t->port >= 1024 &&
                      t->port <= UINT16_MAX;
    return well && (!t->alltoall || (t->ways == 0 && t->incast == 0)) &&
           (t->ways == 0 || (t->ranks == 2 && t->ways <= PERF_TURNS)) &&
           (t->incast == 0 || (t->ways == 0 && t->incast <= 64 && t->ranks <= PERF_INCAST_MOST));
}

static bool is_memory(const struct perf_task *t)
{
    return t->ranks == 1 && t->rank == 0 && t->ways == 0 && t->incast == 0 && !t->alltoall &&
           t->nic_count == 0;
}

static const char *task_wrong(const struct perf_task *t, const struct plan_host *h)
{
    bool own = t->nic_count > 0 && t->nic_count <= HOST_NIC_MAX;
    for (uint32_t i = 0; own && i < t->nic_count; i++) {
        own = plan_find_own(h, t->nics[i]) != PLAN_NONE;
    }
    return t->ranks == 0               ? NULL
           : t->memory && is_memory(t) ? NULL
           : t->memory || !is_test(t)  ? "a step's numbers are none of a test's"
           : !own                      ? "it has a NIC that is not this host's"
           : plan_find_member(h, t->leader) == PLAN_NONE
               ? "one of these NICs is not in its list of members, or not yet"
               : NULL;
}

static bool is_too_much(const struct perf_offer *o)
{
    return o->count > AUDIT_STEPS_MAX || o->step_ms < 100 || o->step_ms > AUDIT_STEP_MS_MAX ||
           o->timed_ms < 1 || o->timed_ms >= o->step_ms || o->secret_size != PERF_SECRET_SIZE ||
           o->count * o->step_ms > AUDIT_PLAN_MS_MAX;
}

const char *perf_offer_wrong(const struct perf_offer *o, const struct plan_host *h)
{
    const char *wrong = is_too_much(o) ? "it is more than an agent does for anybody"
                                       : plan_wrong(h, o->fleet_version, o->begin_ns);
    for (size_t i = 0; wrong == NULL && i < o->count; i++) {
        wrong = task_wrong(&o->tasks[i], h);
    }
    return wrong;
}

uint64_t perf_offer_ms(const struct perf_offer *o)
{
    uint64_t ms = 0;
    for (size_t i = 0; i < o->count; i++) {
        ms += o->tasks[i].ranks > 0 ? o->step_ms : 0;
    }
    return ms;
}

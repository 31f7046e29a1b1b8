/* cost.c: how long an audit takes. The same numbers make the plans: matrix.c, perf.c, core/audit/perf.c. A test compares the
 * first plan of pairs and the matrix with them. */
#include "service/controller/audit/cost.h"

#include "service/controller/audit/matrix.h"
#include "service/controller/audit/perf.h"

static int64_t matrix_cost(uint32_t hosts, uint32_t rails)
{
    const int64_t begin = NS_PER_S; /* any */
    struct matrix_plan p = {.hosts = hosts, .rails = rails};
    audit_matrix_times(&p, begin);
    return matrix_plan_wrong(&p) == NULL ? matrix_answer_ns(&p, hosts - 1) - begin : 0;
}

/* Steps for pairs of the NICs at one place, which n hosts have (perf_add_pairs). */
static uint32_t pair_steps(uint32_t n)
{
    return n < 2 ? 0 : (n == 2 ? 1 : 2 + n % 2) + 1; /* each way through the fabric */
}

void audit_cost_of(const uint32_t *nics, uint32_t hosts, uint32_t beat_ms, struct audit_cost *ret)
{
    const int64_t step = PERF_STEP_MS * NS_PER_MS,
                  meet = step + (PERF_ALL_MS + 2 * (int64_t)hosts) * NS_PER_MS;
    uint32_t rails = 0, steps = 0, incasts = 0;
    *ret = (struct audit_cost){.hosts = hosts, .lead_ns = audit_lead_ns(beat_ms)};
    for (uint32_t i = 0; i < hosts; i++) {
        ret->nics += nics[i];
        rails = nics[i] > rails ? nics[i] : rails;
    }
    for (uint32_t nic = 0; nic < rails; nic++) {
        uint32_t have = 0;
        for (uint32_t i = 0; i < hosts; i++) {
            have += nics[i] > nic;
        }
        steps += pair_steps(have);
        incasts += have >= PERF_INCAST_LEAST;
    }
    ret->matrix_ns = matrix_cost(hosts, rails);
    ret->packets = ret->nics > 0 ? AUDIT_MATRIX_PACKETS * (ret->nics - 1) : 0;
    if (steps > 0) {
        /* the tournament of n hosts has n - 1 rounds; of an odd number one sits out */
        const uint32_t even = hosts + hosts % 2, wanted = PERF_PERMUTATIONS + hosts % 2,
                       permutations = wanted < even - 1 ? wanted : even - 1;
        ret->pairs_no_roce_ns = (1 + steps) * step;
        ret->pairs_ns = ret->pairs_no_roce_ns + incasts * step;
        ret->fabric_ns = permutations * step;
        ret->fabric_nccl_ns = (permutations + 1) * meet;
        ret->rings_ns = PERF_ROWS * meet;
        ret->round_ns = meet + ret->lead_ns;
    }
}

bool audit_left(const struct controller *c, const struct audit_run *run, int64_t *ret_left_ns,
                int64_t *ret_stage_ns)
{
    const struct audit_matrix *m = run->second ? run->again : run->matrix;
    int64_t now, begin, end;
    if (!audit_fleet_now(c, &now)) {
        return false;
    }
    if (run->state == AUDIT_MEASURING && m != NULL) {
        begin = m->plan.begin_ns;
        end = matrix_answer_ns(&m->plan, m->plan.hosts - 1);
    } else if (run->state == AUDIT_TESTING && run->perf != NULL) {
        begin = run->perf->begin_ns;
        end = begin + (int64_t)run->perf->core.step_count * run->perf->step_ms * NS_PER_MS;
    } else {
        return false;
    }
    *ret_stage_ns = end - begin;
    *ret_left_ns = end > now ? end - now : 0;
    return true;
}

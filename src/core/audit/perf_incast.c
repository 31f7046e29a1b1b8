/* perf_incast.c: many hosts send to one at once. The hosts, leaf by leaf, are cut into groups of one size: as many groups as
 * leaves, if four can send in each. The first host of a group receives. */
#include "core/audit/perf_internal.h"

/* The number of leaves, which follow one another in p->order. */
static uint32_t count_leaves(const struct perf *p, uint32_t nic, uint32_t n)
{
    uint32_t leaves = n > 0;
    for (uint32_t k = 1; k < n; k++) {
        leaves += p->hosts[p->order[k]].leaf[nic] != p->hosts[p->order[k - 1]].leaf[nic];
    }
    return leaves;
}

void perf_add_incast(struct perf *p, uint32_t nic)
{
    const uint32_t all = perf_order_by_leaf(p, nic);
    uint32_t n = 0;
    for (uint32_t k = 0; k < all; k++) {
        if (p->hosts[p->order[k]].incast) {
            p->order[n++] = p->order[k];
        }
    }
    if (n < PERF_INCAST_LEAST) {
        return;
    }
    uint32_t size = n / count_leaves(p, nic, n);
    size = size < PERF_INCAST_LEAST  ? PERF_INCAST_LEAST
           : size > PERF_INCAST_MOST ? PERF_INCAST_MOST
                                     : size;
    const uint32_t step = perf_add_step(
        p, &(struct perf_step){.kind = PERF_INCAST, .lanes = 1, .nic = nic, .nics = 1});
    for (uint32_t k = 0; k + n % size < n; k++) { /* hosts that are left over take no part */
        perf_put(p, step, p->order[k], k / size, k % size);
    }
    perf_end_step(p, step);
}

/* The count of packets that came is the receiver's own report, and judges only its own port. */
void perf_take_incasts(struct perf *p)
{
    for (uint32_t step = 0; step < p->step_count; step++) {
        for (uint32_t i = 0; p->steps[step].kind == PERF_INCAST && i < p->count; i++) {
            const struct perf_part *part = perf_part_at(p, step, i);
            const struct perf_result *r = perf_result_at(p, step, i);
            if (part->ranks > 1 && part->rank == 0 && r->outcome == PERF_DONE) {
                perf_nic_at(p, i, p->steps[step].nic)->incast =
                    (struct perf_incast){.senders = part->ranks - 1,
                                         .sent = r->sent,
                                         .came = r->came,
                                         .marked = r->marked <= r->came ? r->marked : r->came,
                                         .rate = r->rate};
            }
        }
    }
}

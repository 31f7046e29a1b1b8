/* job_order.c: decides when a flow's next message may go: steps, chains, operations, bursts and rests, late receivers. */
#include "sim/job_rank.h"

/* True if all ranks of its job have finished the operations before the message's. */
static bool operated(const struct job_world *w, const struct flow *f, uint32_t message)
{
    const uint32_t sharing = pattern_sharing(w), each = w->config.operation;

    if (each == 0 || message % each != 0) {
        return true;
    }
    for (uint32_t i = 0; i < w->flow_count; i++) {
        const struct flow *other = &w->flows[i];
        if (other->to % sharing == f->to % sharing && other->in.over < message) {
            return false;
        }
    }
    return true;
}

/* True if the message that this one passes on has come. For all-to-all: the process has received as many from every other. */
static bool passed(const struct job_world *w, const struct flow *f, uint32_t message)
{
    const struct process *p = &w->processes[f->from];

    if (w->config.chain == 0 || message < w->config.chain) {
        return true;
    }
    if (w->config.pattern == JOB_RING) {
        return message - w->config.chain < w->flows[f->before].in.over;
    }
    for (uint32_t i = 0; i < p->flow_count; i++) {
        const struct flow *other = &w->flows[p->flows[i]];
        if (other->to == f->from && message - w->config.chain >= other->in.over) {
            return false;
        }
    }
    return true;
}

/* True if the burst before is done and its rest is over or has begun; the rest begins with the burst's last message. */
static bool rested(struct job_world *w, const struct flow *f, struct side *side)
{
    if (w->config.burst == 0 || side->next == 0 || side->next % w->config.burst != 0 ||
        side->rested == side->next || pattern_low(w, f->from)) {
        return true;
    }
    if (side->over == side->next) {
        side->not_before = w->now + w->config.rest_ns;
        side->rested = side->next;
    }
    return false;
}

static bool released(const struct job_world *w, uint32_t message)
{
    return w->config.step_ns == 0 || message < w->step;
}

/* While all send to one process, the other flows rest. */
static bool gathered(const struct job_world *w, const struct flow *f)
{
    return w->config.gather_ns == 0 || w->over || w->now < START_NS + w->config.gather_ns ||
           f->to == w->config.hosts - 1;
}

/* True if receivers of that process's messages may begin. */
static bool is_late_enough(const struct job_world *w, const struct flow *f)
{
    const int64_t until = w->processes[f->from].late_until;

    return w->config.late_ns == 0 || (until != 0 && w->now >= until);
}

bool order_send(struct job_world *w, struct flow *f)
{
    struct side *side = &f->out;

    return released(w, side->next) && passed(w, f, side->next) && operated(w, f, side->next) &&
           rested(w, f, side) && gathered(w, f) && w->now >= side->not_before;
}

bool order_receive(const struct job_world *w, const struct flow *f)
{
    return released(w, f->in.next) && is_late_enough(w, f);
}

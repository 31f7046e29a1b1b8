/* clocks.c: what the node must know of the host's clocks besides packets. */
#include "service/agent/agent.h"

#include <syslog.h>

/* A second clock of the host against its raw clock: each round, so that a rate jump is seen before
 * it hurts. */
static void compare_clocks(struct agent *a)
{
    struct node_bracket b;
    if (!time_source_lab_bracket(a->source, 0, &b)) {
        return; /* guard=peers */
    }
    const struct node_guard event = {
        .before = b.before, .other_ns = b.nic.ns, .after = b.after, .source = 1};
    agent_feed(a, NODE_EVENT_GUARD, &event);
}

void agent_clocks_round(struct agent *a)
{
    struct node_clock_fact fact;
    while (time_source_next_fact(a->source, &fact)) {
        static const char *const names[] = {
            [CLOCK_FACT_SUSPENDED] = "the host was suspended",
            [CLOCK_FACT_SOURCE] = "the kernel changed its clock source",
            [CLOCK_FACT_VM_MARKER] = "the virtual machine was moved or restored",
            [CLOCK_FACT_STEERED] = "somebody steers a NIC's clock",
            [CLOCK_FACT_REALTIME_STEP] = "CLOCK_REALTIME was set"};
        agent_say(LOG_NOTICE, "%s (%+lld us)", names[fact.kind],
                  (long long)(fact.amount_ns / 1000));
        agent_feed(a, NODE_EVENT_CLOCK_FACT, &fact);
    }
    compare_clocks(a);
}

void agent_clocks_slow(struct agent *a)
{
    if (time_source_lab_nic_stamps(a->source)) {
        for (uint32_t i = 0; i < a->config->nic_count; i++) {
            struct node_bracket best = {0}, b;
            for (int k = 0; k < 9 && time_source_lab_bracket(a->source, i, &b); k++) {
                if (k == 0 ||
                    mono_sub(b.after, b.before).ns < mono_sub(best.after, best.before).ns) {
                    best = b;
                }
            }
            if (best.after.ns != best.before.ns) {
                agent_feed(a, NODE_EVENT_BRACKET, &best);
            }
        }
    }
    if (a->now.ns - a->anchor_ns >= NS_PER_S || a->now.ns < a->anchor_ns) {
        a->anchor_ns = a->now.ns;
        time_source_anchor(a->source, &a->anchor);
        agent_feed(a, NODE_EVENT_ANCHOR, &a->anchor);
    }
}

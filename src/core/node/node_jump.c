/* node_jump.c: finds out whether the host's clock stood still or jumped without any message about it.
 *
 * No program can set the raw clock of a host. But a hypervisor can stop it: a virtual machine that is paused or moved finds its
 * clocks unchanged, and its kernel may never be told. Then the former line is behind. So, when the host is in step again, the
 * bounds of the old line and of the new one have no common point: its own clock broke a premise in between, or the time that it
 * takes from its peers did. */
#include <math.h>

#include "core/node/internal.h"

#define GUARD_FRESH_NS (100 * NS_PER_MS)
#define STOOD_NS       1e6 /* the stamps of peers alone show less than this (CLOCK_ACTION_STEP) */

void node_jump_told(struct node *n)
{
    n->jump_told = true;
}

/* A second clock that contradicted the host's own is proof. One that agreed with it all the time shows that the peers' time
 * moved. Without one, two peers prove it. Of two hosts nobody can know which one's clock broke. */
static bool own_clock_broke(const struct node *n, struct mono now)
{
    struct clock_report report;

    if (n->guard_broke || n->has_leaf) { /* a leaf's clock is compared with the NICs' own */
        return true;
    }
    for (uint32_t i = 0; i < GUARD_SOURCES; i++) {
        if (n->guards[i].count > GUARD_COUNT &&
            mono_sub(now, n->guards[i].at).ns < GUARD_FRESH_NS) { /* it still answers */
            return false;
        }
    }
    clock_report(n->members[node_host_member(n)].clock, (struct nic_time){now.ns}, &report);
    return report.peers_live >= 2;
}

/* by_ns: how far its time must be set ahead. host: for the host's own clock. */
void node_jump_push(struct node *n, struct mono now, double by_ns, bool host)
{
    struct finding f;
    const bool stood = host && by_ns >= STOOD_NS;

    finding_init(&f, FINDING_CLOCK_STEP, now);
    f.number = ++n->finding_number;
    f.from_host = n->config.host;
    f.numbers[0] = (int64_t)by_ns;
    f.numbers[1] = stood;
    f.advice = stood ? ADVICE_SHOW_PAUSES : ADVICE_CHECK_CLOCK;
    f.rules_out = RULES_OUT_NETWORK;
    node_finding_push(n, &f);
    n->jump_told = n->jump_told || host;
}

void node_jump_tick(struct node *n, struct mono now)
{
    struct clock_terms is;

    node_clock_page(n, &is);
    if (is.status != CLOCK_SYNCED) {
        n->was_out = true;
        return;
    }
    if (n->was_out && !n->jump_told && n->in_step.status == CLOCK_SYNCED &&
        n->in_step.timeline == is.timeline) {
        const struct clock_reading before =
                                       clock_terms_read(&n->in_step, (struct nic_time){now.ns}),
                                   after = clock_terms_read(&is, (struct nic_time){now.ns});
        const double by_ns = (double)fleet_time_sub(after.time, before.time).ns;
        if (before.hard_ns >= 0 && after.hard_ns >= 0 &&
            fabs(by_ns) > STOOD_NS + before.hard_ns + after.hard_ns && own_clock_broke(n, now)) {
            node_jump_push(n, now, by_ns, true);
        }
    }
    n->in_step = is;
    n->was_out = n->jump_told = n->guard_broke = false;
}

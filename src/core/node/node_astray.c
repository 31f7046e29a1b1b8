/* node_astray.c: hosts that report for long that their clocks are not in step.
 *
 * Such a peer moves nobody, because only core members take part. So it is no liar, whatever else it reports. Its own agent may
 * see no fault, or be broken. Its neighbours report it to operators, if they are in step themselves and most of their neighbours
 * are, too. */
#include "core/node/internal.h"

#define ASTRAY_NS (60 * NS_PER_S)
#define LATELY_NS (3 * NS_PER_S)

struct steps {
    uint32_t in, all; /* in: edges whose peer is in step; all: edges that are heard */
};

static bool counts(const struct node *n, struct mono now, int edge, struct mesh_edge_info *ret_info)
{
    return mesh_edge_info(n->mesh, now, edge, ret_info) && !ret_info->silent &&
           ret_info->heard.ns != MONO_NEVER.ns && n->links[edge].generation == ret_info->generation;
}

/* Counts the edges to `host`, or, with HOST_NONE, all edges. */
static struct steps count_steps(const struct node *n, struct mono now, struct host_id host)
{
    struct steps s = {0, 0};
    struct mesh_edge_info info;

    for (int edge = 0; edge < mesh_edge_capacity(n->mesh); edge++) {
        if (counts(n, now, edge, &info) &&
            (host_id_equal(host, HOST_NONE) || host_id_equal(host, info.host))) {
            s.all++;
            s.in += mono_sub(now, n->links[edge].in_step).ns < LATELY_NS;
        }
    }
    return s;
}

static void say(struct node *n, struct mono now, const struct mesh_edge_info *info, int edge,
                struct steps all)
{
    const uint64_t key = node_finding_key(FINDING_CLOCK_ASTRAY, info->host.index, 0, 0);
    const struct mono since = n->links[edge].in_step;

    if (node_finding_find(n, key) || mono_sub(now, since).ns < ASTRAY_NS) {
        return;
    }
    struct open_finding *o = node_finding_open(n, key, FINDING_CLOCK_ASTRAY, since, now);
    if (!o) {
        return;
    }
    o->finding.numbers[0] = mono_sub(now, since).ns / NS_PER_S;
    o->finding.numbers[1] = all.in;
    o->finding.numbers[2] = all.all;
    o->finding.from_host = info->host;
    o->finding.suspect.kind = ELEMENT_HOST;
    o->finding.suspect.a = (struct place){.kind = PLACE_HOST, .number = info->host.index};
    o->finding.rules_out = RULES_OUT_OWN_HOST;
    o->finding.advice = ADVICE_ASK_ITS_CLOCK;
}

/* Every ten seconds. A host that isn't in step itself, or not with most neighbours, can't judge others. */
void node_astray_check(struct node *n, struct mono now)
{
    const struct steps all = count_steps(n, now, HOST_NONE);
    struct mesh_edge_info info;
    struct clock_terms terms;

    node_clock_page(n, &terms);
    const bool good = terms.status == CLOCK_SYNCED && 2 * all.in > all.all;
    for (uint32_t i = 0; i < n->open_count; i++) {
        const struct steps s = count_steps(n, now, n->open[i].finding.from_host);
        if (n->open[i].finding.kind == FINDING_CLOCK_ASTRAY && (!good || s.all == 0 || s.in > 0)) {
            node_finding_close_at(n, now, i--);
        }
    }
    for (int edge = 0; good && edge < mesh_edge_capacity(n->mesh); edge++) {
        if (counts(n, now, edge, &info) && count_steps(n, now, info.host).in == 0) {
            say(n, now, &info, edge, all);
        }
    }
}

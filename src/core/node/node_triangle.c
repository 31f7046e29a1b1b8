/* node_triangle.c: how exactly the errors of three edges cancel.
 *
 * Two neighbours P and Q that also measure each other close a loop: P ahead of this host, plus Q ahead of P, minus Q ahead of
 * this host. Clocks cancel in that sum, asymmetries of ways don't: it shows what no single edge can show. Every few seconds one
 * neighbour is asked about another one. A neighbour that doesn't know the other reports that, and nothing is counted. */
#include <math.h>
#include <string.h>

#include "stats/sample.h"

#include "core/node/internal.h"

#define ASK_NS (2 * NS_PER_S)

/* One of the live edges, to another host than `other`'s and from the same own member; -1: none. */
static int some_edge(const struct node *n, struct mono now, uint64_t hash, int other,
                     struct mesh_edge_info *ret_info)
{
    const int capacity = mesh_edge_capacity(n->mesh);
    const struct host_id host = ret_info->host;
    uint32_t count = 0;
    int chosen = -1;

    for (int edge = 0; edge < capacity; edge++) {
        struct mesh_edge_info info;

        if (!mesh_edge_info(n->mesh, now, edge, &info) || info.silent ||
            info.heard.ns == MONO_NEVER.ns || n->links[edge].clock_edge < 0 ||
            (other >= 0 &&
             (n->links[edge].member != n->links[other].member || host_id_equal(info.host, host)))) {
            continue;
        }
        count++;
        if (hash_u64(hash, count) % count == 0) { /* each with the same probability */
            chosen = edge;
            *ret_info = info;
        }
    }
    return chosen;
}

void node_triangle_tick(struct node *n, struct mono now)
{
    const int capacity = mesh_edge_capacity(n->mesh);
    struct mesh_edge_info info = {.host = HOST_NONE}, third;

    if (mono_sub(now, n->triangle.asked).ns < ASK_NS || capacity == 0) {
        return;
    }
    n->triangle.asked = now;
    n->triangle.turn++;
    int asked = some_edge(n, now, hash_u64(n->config.seed, n->triangle.turn * 2u), -1, &info);
    third = info;
    int about = asked < 0 ? -1
                          : some_edge(n, now, hash_u64(n->config.seed, n->triangle.turn * 2u + 1u),
                                      asked, &third);
    if (about < 0) {
        return;
    }
    struct node_query *q = &n->queries[(n->query_number + 1) % QUERY_MAX];
    const struct probe_query query = {.subject = {n->links[about].peer},
                                      .number = n->query_number + 1};
    if (!mesh_query(n->mesh, info.local, info.nic, &query, false)) {
        return;
    }
    n->query_number++;
    *q = (struct node_query){.number = n->query_number,
                             .subject = query.subject,
                             .asked = info.nic,
                             .member = (uint32_t)n->links[asked].member,
                             .about = query.subject.index,
                             .triangle = true,
                             .by = n->links[asked].peer,
                             .at = now};
}

void node_triangle_answer(struct node *n, const struct node_query *q, const struct clock_answer *a)
{
    ASSERT(q->member < n->member_count);
    const struct clock *clock = n->members[q->member].clock;
    const struct clock_answer to_asked = clock_answer(clock, q->by);
    const struct clock_answer to_third = clock_answer(clock, q->about);
    struct node_triangle *t = &n->triangle;

    if (a->known && to_asked.known && to_third.known) {
        t->residuals[t->count++ % TRIANGLE_MAX] =
            fabs(to_asked.level_ns + a->level_ns - to_third.level_ns);
    }
}

void node_triangles(const struct node *n, struct node_triangles *ret)
{
    const struct node_triangle *t = &n->triangle;
    double sorted[TRIANGLE_MAX];

    *ret = (struct node_triangles){.count = t->count < TRIANGLE_MAX ? t->count : TRIANGLE_MAX};
    for (uint32_t i = 0; i < ret->count; i++) {
        sample_insert(sorted, i, t->residuals[i]);
    }
    if (ret->count > 0) {
        ret->residual_ns_p50 = sorted[ret->count / 2];
        ret->residual_ns_max = sorted[ret->count - 1];
    }
}

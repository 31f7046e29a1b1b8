/* trace.c: finds where a path ends. A path that is overdue or dead is traced at once: packets with hop limits 1, 2, 3 ... over
 * its own source port. The last router that still answers shows where it ends. A router without a route reports that itself. */
#include <string.h>

#include "core/mesh/hops.h"

#define TRACE_AGAIN    (110 * NS_PER_MS)
#define TRACE_SHARED   (100 * NS_PER_MS)
#define TRACE_OLD      (2 * NS_PER_S)
#define TRACE_ROUNDS   2
#define TRACE_APART_US 100000
#define STANDS_US      500000 /* the fate of a path's next packet is known then */

/* Another path of this NIC with the same hops was traced just now: its answers are used. */
static const struct path_out *traced_alike(const struct mesh *m, struct mono now, uint32_t local,
                                           const struct path_out *out)
{
    const int first = (int)local * m->config.edge_limit;

    for (int edge = first; edge < first + m->config.edge_limit; edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            const struct path_out *other = &e->out[p];
            if (other != out && out->signature != 0 && other->signature == out->signature &&
                other->trace_rounds > out->trace_rounds &&
                mono_sub(now, other->traced).ns < TRACE_SHARED) {
                return other;
            }
        }
    }
    return NULL;
}

/* True if the trace's first packet was sent after the path's first loss. A path may be traced because it was just slow, and die
 * later; then its routers' answers show nothing about the death. The first lost packet is not known exactly: packets of a path
 * follow each other closely, and not each of them is acknowledged; of the next ones at least one would be. */
static bool trace_counts(const struct path_out *out, struct mono now)
{
    const struct sent_slot *last = &out->sent[out->acked % SLOT_COUNT];

    for (uint32_t seq = out->acked + 1; last->seq == out->acked && seq != out->seq_next; seq++) {
        const struct sent_slot *slot = &out->sent[seq % SLOT_COUNT];

        if (slot->seq == seq && slot->at_us - last->at_us >= TRACE_APART_US) { /* modulo 2^32 */
            const uint32_t age_us = (uint32_t)(now.ns / NS_PER_US) - slot->at_us;
            return mono_sub(now, out->trace_began).ns <= (int64_t)age_us * NS_PER_US;
        }
    }
    return false;
}

/* The path lost a packet that was sent after the hop's answer: the hole was still there. Packets that prove a death are sent
 * before it is proven; and the fate of any packet is known when the next ones should have come. Else the answer may have come
 * through because the hole was over. */
static bool answer_counts(const struct path_out *out, struct mono now, int hop)
{
    const int64_t age_us = (uint32_t)(now.ns / NS_PER_US) - out->trace_at_us[hop]; /* modulo 2^32 */
    const bool dead = out->half.state == PATH_DEAD && out->proven.ns != 0;
    const int64_t proven_us = dead ? mono_sub(now, out->proven).ns / NS_PER_US : STANDS_US;

    return age_us >= STANDS_US || age_us >= proven_us + PROOF_WAIT_NS / NS_PER_US;
}

int trace_reached(const struct path_out *out, struct mono now)
{
    int last = -1;

    if (out->trace_rounds == 0 || out->trace_answered == 0 || !out->acked_any ||
        !trace_counts(out, now)) {
        return -1;
    }
    for (int hop = 0; hop < out->hop_count; hop++) {
        last =
            (out->trace_answered & (1u << hop)) != 0 && answer_counts(out, now, hop) ? hop : last;
    }
    return last;
}

void discovery_trace(struct mesh *m, struct mono now, int edge, uint8_t path)
{
    struct mesh_edge *e = &m->edges[edge];
    struct path_out *out = &e->out[path];
    const struct path_out *alike;

    if (m->config.no_discovery || out->hop_count == 0 || path >= e->path_count) {
        return;
    }
    /* a packet that came since means that the path died anew: earlier answers prove nothing */
    if (out->trace_rounds > 0 &&
        (mono_sub(now, out->traced).ns > TRACE_OLD ||
         (out->half.heard.ns != MONO_NEVER.ns && out->half.heard.ns > out->traced.ns))) {
        out->trace_rounds = 0;
    }
    if (out->trace_rounds > 0 && out->acked_any && !trace_counts(out, now)) {
        out->trace_rounds = 0;
    }
    if (out->trace_rounds >= TRACE_ROUNDS ||
        (out->trace_rounds > 0 && mono_sub(now, out->traced).ns < TRACE_AGAIN)) {
        return;
    }
    out->trace_answered = out->trace_rounds == 0 ? 0 : out->trace_answered;
    ASSERT(out->hop_count <= MESH_HOP_MAX); /* one packet for each, and one bit for each answer */
    alike = traced_alike(m, now, e->local, out);
    out->trace_began = out->trace_rounds == 0 ? now : out->trace_began;
    out->trace_rounds++;
    out->traced = now;
    if (alike) {
        for (uint32_t hop = 0; hop < MESH_HOP_MAX; hop++) {
            if ((alike->trace_answered & ~out->trace_answered & (1u << hop)) != 0) {
                out->trace_at_us[hop] = alike->trace_at_us[hop];
            }
        }
        out->trace_answered |= alike->trace_answered;
        out->traced = alike->traced;
        out->trace_began =
            alike->trace_began.ns < out->trace_began.ns ? alike->trace_began : out->trace_began;
        return;
    }
    for (uint8_t ttl = 1; ttl <= out->hop_count; ttl++) {
        if (mesh_credit(m, now, &m->nics[e->local].probe_credit)) {
            discovery_send(m, edge, out->half.port,
                           discovery_seq(e->generation, path, ttl, TRACE_FLAG), ttl);
        }
    }
}

static void note_answer(struct mesh *m, struct mono now, uint32_t local, uint64_t signature,
                        uint8_t hop)
{
    const int first = (int)local * m->config.edge_limit;

    for (int edge = first; edge < first + m->config.edge_limit; edge++) {
        struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            struct path_out *out = &e->out[p];
            if (signature != 0 && out->signature == signature && out->trace_rounds > 0 &&
                mono_sub(now, out->traced).ns < TRACE_OLD &&
                (out->trace_answered & (1u << hop)) == 0) {
                out->trace_answered |= (uint8_t)(1u << hop);
                out->trace_at_us[hop] = (uint32_t)(now.ns / NS_PER_US);
            }
        }
    }
}

/* A traced path's own routers are recognised by their addresses, because short quotes don't contain the hop limit. */
bool discovery_trace_answer(struct mesh *m, struct mono now, int edge, uint16_t source_port,
                            uint32_t router)
{
    struct mesh_edge *e = &m->edges[edge];

    for (uint8_t p = 0; p < e->path_count; p++) {
        struct path_out *out = &e->out[p];

        if (out->half.port != source_port || out->trace_rounds == 0 ||
            mono_sub(now, out->traced).ns > NS_PER_S) {
            continue;
        }
        for (uint8_t hop = 0; hop < out->hop_count; hop++) {
            if (out->hops[hop] == router) {
                note_answer(m, now, e->local, out->signature, hop);
                mesh_verdict_push(m, (struct mesh_verdict){.kind = MESH_TRACED,
                                                           .edge = edge,
                                                           .path = p,
                                                           .direction = DIRECTION_OUT,
                                                           .since = now});
                return true;
            }
        }
    }
    return false;
}

void mesh_on_no_route(struct mesh *m, struct mono now, uint32_t local, struct nic_id peer,
                      uint16_t source_port, const uint8_t address[static 16])
{
    const int edge = mesh_edge_find(m, local, peer);
    const uint32_t router = edge >= 0 ? mesh_router(m, address) : 0;

    for (uint8_t p = 0; router != 0 && p < m->edges[edge].path_count; p++) {
        struct path_out *out = &m->edges[edge].out[p];

        for (uint8_t hop = 0; out->half.port == source_port && hop < out->hop_count; hop++) {
            if (out->hops[hop] == 0 || !hops_same_router(m, out->hops[hop], router)) {
                continue;
            }
            out->trace_answered = out->trace_rounds == 0 ? 0 : out->trace_answered;
            out->trace_began = out->trace_rounds == 0 ? now : out->trace_began;
            out->trace_rounds = out->trace_rounds == 0 ? 1 : out->trace_rounds;
            out->traced = now;
            note_answer(m, now, local, out->signature, hop);
            m->counters.hops_heard++;
            mesh_verdict_push(m, (struct mesh_verdict){.kind = MESH_TRACED,
                                                       .edge = edge,
                                                       .path = p,
                                                       .direction = DIRECTION_OUT,
                                                       .since = now});
        }
    }
}

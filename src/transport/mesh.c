/* mesh.c: the agent's reports about the paths to a peer: the probe mesh finds dead pairs of NICs, whether jobs send or not.
 *
 * The agent's page (wire/mesh_page.h) names a pair by its addresses. A lane has a path of its own. So the page says something
 * about lanes only if all ways out, or all ways in, that the mesh probes between two NICs are dead. The watch takes it as a hint,
 * which never outweighs a fresh acknowledgement. Without an agent, or when its page stands still, there is no hint.
 *
 * The housekeeping reads the page every 10 ms while anything is active, and makes a short list. Threads that serve a set read
 * that list. */
#include "transport/internal.h"
#include "wire/mesh_page.h"

/* The entries of a pair follow one another. */
struct tally {
    uint32_t addresses, ways[2], dead[2]; /* by enum mesh_page_direction */
};

static void count(struct tally *tally, const struct mesh_page_entry *entry)
{
    tally->ways[entry->direction]++;
    tally->dead[entry->direction] += entry->state == MESH_PAGE_DEAD;
}

static void finish(struct mesh_view *v, uint32_t *dead_count, const struct tally *tally)
{
    for (int d = MESH_PAGE_OUT; d <= MESH_PAGE_IN; d++) {
        if (tally->addresses != 0 && tally->ways[d] > 0 && tally->dead[d] == tally->ways[d] &&
            *dead_count < MESH_DEAD_MAX) {
            __atomic_store_n(&v->dead[(*dead_count)++], tally->addresses, __ATOMIC_RELAXED);
            return;
        }
    }
}

static void read_verdicts(struct mesh_view *v, uint32_t entries)
{
    struct tally tally = {0};
    uint32_t dead_count = 0;

    for (uint32_t i = 0; i < entries; i++) {
        struct mesh_page_entry entry;
        if (!mesh_page_read(v->file.memory, v->file.size, i, &entry) ||
            entry.state == MESH_PAGE_NONE) {
            continue;
        }
        if (entry.addresses != tally.addresses) {
            finish(v, &dead_count, &tally);
            tally = (struct tally){.addresses = entry.addresses};
        }
        count(&tally, &entry);
    }
    finish(v, &dead_count, &tally);
    __atomic_store_n(&v->dead_count, dead_count, __ATOMIC_RELEASE);
}

void mesh_look(struct transport *t, struct mono now)
{
    struct mesh_view *v = &t->mesh;
    struct mesh_page_header header;

    if (t->config.mesh_file == NULL) {
        return;
    }
    if (follow_look(&v->file, now, t->config.mesh_file, mesh_page_size(0),
                    mesh_page_size(MESH_PAGE_ENTRY_MAX))) {
        v->written = 0;
        __atomic_store_n(&v->dead_count, 0, __ATOMIC_RELEASE);
    }
    if (v->file.memory == NULL || !mesh_page_read_header(v->file.memory, v->file.size, &header)) {
        return;
    }
    if (header.written != v->written) {
        v->written = header.written;
        v->written_at = now;
        read_verdicts(v, header.count);
    } else if (mono_sub(now, v->written_at).ns > MESH_PAGE_STALE_NS) {
        __atomic_store_n(&v->dead_count, 0, __ATOMIC_RELEASE); /* the page is too old */
    }
}

static bool dead(const struct mesh_view *v, const struct stream *stream, uint32_t dead_count)
{
    const uint32_t addresses = mesh_page_addresses(stream->local.ip, stream->peer.ip);

    for (uint32_t i = 0; i < dead_count; i++) {
        if (__atomic_load_n(&v->dead[i], __ATOMIC_RELAXED) == addresses) {
            return true;
        }
    }
    return false;
}

void mesh_hint(struct lane_set *set, struct mono now)
{
    const struct mesh_view *v = &set->transport->mesh;
    const uint32_t dead_count = __atomic_load_n(&v->dead_count, __ATOMIC_ACQUIRE);

    for (uint32_t lane = 0; dead_count > 0 && lane < LANE_MAX; lane++) {
        const struct stream *stream = set->streams[lane];
        if (stream != NULL && stream->shaken && !stream->dead && dead(v, stream, dead_count)) {
            watch_on_hint(set->watch, now, lane);
        }
    }
}

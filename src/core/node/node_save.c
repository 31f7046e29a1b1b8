/* node_save.c: the state that survives a restart of the agent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/node/internal.h"

#define SAVED_MAGIC   0x46534156u
#define SAVED_VERSION 1

struct saved_header {
    uint32_t magic, version, size, member_count, edge_count, reserved;
};

static size_t size_of(uint32_t members, uint32_t edges)
{
    return sizeof(struct saved_header) + members * sizeof(struct clock_saved) +
           edges * sizeof(struct mesh_saved_edge);
}

size_t node_saved_size(const struct node *n)
{
    return size_of(n->member_count, (uint32_t)mesh_edge_capacity(n->mesh));
}

void node_save(const struct node *n, struct mono now, void *ret_bytes)
{
    const uint32_t edges = (uint32_t)mesh_edge_capacity(n->mesh);
    const struct saved_header header = {.magic = SAVED_MAGIC,
                                        .version = SAVED_VERSION,
                                        .size = (uint32_t)node_saved_size(n),
                                        .member_count = n->member_count,
                                        .edge_count = edges};
    uint8_t *at = ret_bytes;

    memset(ret_bytes, 0, node_saved_size(n));
    memcpy(at, &header, sizeof(header));
    at += sizeof(header);
    for (uint32_t i = 0; i < n->member_count; i++, at += sizeof(struct clock_saved)) {
        struct clock_saved saved;
        struct nic_time member_now;

        if (n->members[i].clock && node_member_time(n, i, now, &member_now)) {
            memset(&saved, 0, sizeof(saved));
            clock_save(n->members[i].clock, member_now, &saved);
            memcpy(at, &saved, sizeof(saved));
        }
    }
    for (uint32_t i = 0; i < edges; i++, at += sizeof(struct mesh_saved_edge)) {
        struct mesh_saved_edge saved;

        if (mesh_save_edge(n->mesh, (int)i, &saved)) {
            memcpy(at, &saved, sizeof(saved));
        }
    }
}

int node_restore(struct node *n, struct mono now, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    struct saved_header header;
    int r = -EINVAL;

    if (size < sizeof(header)) {
        return -EINVAL;
    }
    memcpy(&header, at, sizeof(header));
    at += sizeof(header);
    if (header.magic != SAVED_MAGIC || header.version != SAVED_VERSION || header.size != size ||
        header.member_count != n->member_count || header.edge_count > MEMBER_EDGE_MAX ||
        size_of(header.member_count, header.edge_count) != size) {
        return -EINVAL;
    }
    free(n->saved);
    n->saved = calloc(n->member_count, sizeof(*n->saved));
    if (!n->saved) {
        return -ENOMEM;
    }
    memcpy(n->saved, at, n->member_count * sizeof(*n->saved));
    at += n->member_count * sizeof(*n->saved);
    for (uint32_t i = 0; i < header.edge_count; i++, at += sizeof(struct mesh_saved_edge)) {
        struct mesh_saved_edge saved;

        memcpy(&saved, at, sizeof(saved));
        mesh_restore_edge(n->mesh, now, &saved);
    }
    for (uint32_t i = 0; i < n->member_count;
         i++) { /* NIC clocks follow when they are first read */
        struct nic_time member_now;

        if (n->members[i].clock && node_member_time(n, i, now, &member_now) &&
            node_clock_restore(n, now, i, member_now) == 0) {
            r = 0;
        } else if (!n->members[i].clock) {
            r = 0;
        }
    }
    return r;
}

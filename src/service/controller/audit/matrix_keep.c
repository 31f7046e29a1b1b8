/* matrix_keep.c: keeps the last matrix in the store. So a controller that starts again shows it and compares the next one with
 * it. The format is the packed memory. A matrix of a release with another memory layout is not read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "service/controller/audit/matrix.h"

#define NAME "audit.matrix"

enum { MAGIC = 0x6d617431, KEPT_MAX = 32 << 20 };

/* Followed by places, hosts, notes, leaves' names, NICs, and, if there are cells: delays, sent, heard. */
struct kept {
    uint32_t magic, size, place_size, nic_size;
    uint32_t family, leaves, has_cells;
    int64_t run;
    uint64_t name, fleet_version;
    struct matrix m; /* its pointers are not valid */
};

struct part {
    void *at;
    size_t size;
};
enum { PARTS = 8 };

static void parts_of(struct audit_matrix *x, bool cells, struct part ret[static PARTS])
{
    const size_t n = x->m.count, hosts = x->plan.hosts;

    ret[0] = (struct part){x->places, n * sizeof(*x->places)};
    ret[1] = (struct part){x->hosts, hosts * sizeof(*x->hosts)};
    ret[2] = (struct part){x->notes, hosts * sizeof(*x->notes)};
    ret[3] = (struct part){x->leaves.names, x->leaves.count * sizeof(*x->leaves.names)};
    ret[4] = (struct part){x->m.nics, n * sizeof(*x->m.nics)};
    ret[5] = (struct part){x->m.delay, cells ? n * n * sizeof(*x->m.delay) : 0};
    ret[6] = (struct part){x->m.sent, cells ? n * n : 0};
    ret[7] = (struct part){x->m.heard, cells ? n * n : 0};
}

static size_t size_of(const struct part parts[static PARTS])
{
    size_t size = sizeof(struct kept);

    for (int i = 0; i < PARTS; i++) {
        size += parts[i].size;
    }
    return size;
}

int audit_matrix_save(struct store *store, const struct audit_matrix *x)
{
    struct kept kept = {.magic = MAGIC,
                        .size = sizeof(kept),
                        .place_size = sizeof(*x->places),
                        .nic_size = sizeof(*x->m.nics),
                        .family = x->family,
                        .leaves = x->leaves.count,
                        .has_cells = x->m.delay != NULL,
                        .run = x->run,
                        .name = x->name,
                        .fleet_version = x->fleet_version,
                        .m = x->m};
    struct message_buffer packed = {0};
    struct part parts[PARTS];
    size_t used = sizeof(kept);

    kept.m.nics = NULL;
    kept.m.row = kept.m.column = NULL;
    kept.m.scratch = NULL;
    kept.m.delay = NULL;
    kept.m.sent = kept.m.heard = NULL;
    parts_of((struct audit_matrix *)(uintptr_t)x, kept.has_cells, parts);
    uint8_t *all = malloc(size_of(parts));
    if (all == NULL) {
        return -ENOMEM;
    }
    memcpy(all, &kept, sizeof(kept));
    for (int i = 0; i < PARTS; i++) {
        if (parts[i].size > 0) {
            memcpy(all + used, parts[i].at, parts[i].size);
            used += parts[i].size;
        }
    }
    int r = message_pack(all, used, &packed);
    r = r < 0 ? r : store_put(store, NAME, packed.bytes, packed.size);
    message_buffer_done(&packed);
    free(all);
    return r;
}

/* Checks that names have an end, and that leaf numbers are valid. */
static bool is_sound(const struct audit_matrix *x)
{
    for (uint32_t i = 0; i < x->m.count; i++) {
        const struct matrix_nic *n = &x->m.nics[i];
        if (memchr(x->places[i].name, 0, sizeof(x->places[i].name)) == NULL ||
            (n->leaf != MATRIX_LEAF_NONE && n->leaf >= x->leaves.count) ||
            (n->leaf_found != MATRIX_LEAF_NONE && n->leaf_found >= x->leaves.count) ||
            n->why >= MATRIX_WHY_COUNT) {
            return false;
        }
    }
    for (uint32_t i = 0; i < x->plan.hosts; i++) {
        if (memchr(x->notes[i], 0, sizeof(x->notes[i])) == NULL) {
            return false;
        }
    }
    for (uint32_t i = 0; i < x->leaves.count; i++) {
        if (memchr(x->leaves.names[i], 0, sizeof(x->leaves.names[i])) == NULL) {
            return false;
        }
    }
    return true;
}

static int unpack(const struct message_buffer *all, struct audit_matrix *x)
{
    struct part parts[PARTS];
    struct kept kept;
    size_t used = sizeof(kept);

    if (all->size < sizeof(kept)) {
        return -EPROTO;
    }
    memcpy(&kept, all->bytes, sizeof(kept));
    if (kept.magic != MAGIC || kept.size != sizeof(kept) || kept.place_size != sizeof(*x->places) ||
        kept.nic_size != sizeof(*x->m.nics) || matrix_plan_wrong(&kept.m.plan) != NULL ||
        kept.m.count != kept.m.plan.hosts * kept.m.plan.rails || kept.leaves > kept.m.count) {
        return -EPROTO;
    }
    x->plan = kept.m.plan;
    x->run = kept.run;
    x->name = kept.name;
    x->family = kept.family;
    x->fleet_version = kept.fleet_version;
    x->leaves.count = kept.leaves;
    x->judged = true;
    const int r = audit_matrix_claim(x);
    if (r < 0) {
        return r;
    }
    const struct matrix place = x->m;
    x->m = kept.m;
    x->m.nics = place.nics;
    x->m.row = place.row;
    x->m.column = place.column;
    x->m.scratch = place.scratch;
    x->m.delay = place.delay;
    x->m.sent = place.sent;
    x->m.heard = place.heard;
    parts_of(x, kept.has_cells != 0, parts);
    if (size_of(parts) != all->size) {
        return -EPROTO;
    }
    for (int i = 0; i < PARTS; i++) {
        memcpy(parts[i].at, all->bytes + used, parts[i].size);
        used += parts[i].size;
    }
    if (!kept.has_cells) {
        audit_matrix_forget_cells(x);
    }
    return is_sound(x) ? 0 : -EPROTO;
}

int audit_matrix_load(struct store *store, struct audit_matrix **ret)
{
    struct audit_matrix *x = calloc(1, sizeof(*x));
    struct message_buffer all = {0};
    char *packed = NULL;
    size_t size;
    int r = x == NULL ? -ENOMEM : store_get(store, NAME, &packed, &size);

    r = r < 0 ? r : message_unpack(packed, size, KEPT_MAX, &all);
    r = r < 0 ? r : unpack(&all, x);
    message_buffer_done(&all);
    free(packed);
    if (r == 0) {
        *ret = x;
        return 0;
    }
    audit_matrix_free(x);
    return r == -ENOENT || r == -EPROTO || r == -EBADMSG || r == -EMSGSIZE ? -ENOENT : r;
}

/* matrix_again.c: which hosts measure again, and with whom. */
#include "core/audit/matrix_again.h"

enum {
    /* hosts of a leaf: one more than is needed to show where another NIC hangs (matrix.c) */
    LEAF_PARTNERS = 4,
    PARTNERS_EACH = 4,
    AGAIN_LEAST = 16
};

/* Its rows came. A partner that reports nothing is no witness. */
static bool can_tell(const struct matrix *m, uint32_t host)
{
    for (uint32_t k = 0; k < m->plan.rails; k++) {
        const struct matrix_nic *n = &m->nics[host * m->plan.rails + k];
        if (n->there && n->told) {
            return true;
        }
    }
    return false;
}

static bool hangs_on(const struct matrix *m, uint32_t host, uint16_t leaf)
{
    for (uint32_t k = 0; k < m->plan.rails; k++) {
        const struct matrix_nic *n = &m->nics[host * m->plan.rails + k];
        if (n->there && n->leaf == leaf) {
            return true;
        }
    }
    return false;
}

static uint32_t add_of_leaf(const struct matrix *m, const bool *doubted, uint16_t leaf, bool *hosts)
{
    uint32_t partners = 0, added = 0;
    for (uint32_t h = 0; leaf != MATRIX_LEAF_NONE && h < m->plan.hosts; h++) {
        if (partners < LEAF_PARTNERS && !doubted[h] && hangs_on(m, h, leaf) && can_tell(m, h)) {
            partners++;
            added += !hosts[h];
            hosts[h] = true;
        }
    }
    return added;
}

/* A block that a doubted host is part of: adds hosts of both leaves. */
static uint32_t add_of_block(const struct matrix *m, const bool *doubted,
                             const struct matrix_late *l, bool *hosts)
{
    bool told = false;
    for (uint32_t h = 0; h < m->plan.hosts && l->block && !told; h++) {
        told = doubted[h] && hangs_on(m, h, (uint16_t)l->from);
    }
    return told ? add_of_leaf(m, doubted, (uint16_t)l->from, hosts) +
                      add_of_leaf(m, doubted, (uint16_t)l->to, hosts)
                : 0;
}

uint32_t matrix_again(const struct matrix *m, const bool *doubted, const struct matrix_late *late,
                      uint32_t late_count, bool *ret_hosts)
{
    const uint32_t hosts = m->plan.hosts;
    uint32_t count = 0;
    for (uint32_t h = 0; h < hosts; h++) {
        ret_hosts[h] = doubted[h];
        count += doubted[h];
    }
    if (count == 0) {
        return 0;
    }
    const uint64_t many = (uint64_t)count * (1 + PARTNERS_EACH);
    const uint32_t least = many > AGAIN_LEAST ? (many < hosts ? (uint32_t)many : hosts)
                                              : (hosts < AGAIN_LEAST ? hosts : AGAIN_LEAST);
    for (uint32_t i = 0; i < m->count && count < hosts; i++) {
        if (doubted[i / m->plan.rails] && m->nics[i].there) {
            count += add_of_leaf(m, doubted, m->nics[i].leaf, ret_hosts);
            count += add_of_leaf(m, doubted, m->nics[i].leaf_found, ret_hosts);
        }
    }
    for (uint32_t i = 0; i < late_count; i++) {
        count += add_of_block(m, doubted, &late[i], ret_hosts);
    }
    /* The others come from all over the fleet: one host of every `step`, then the next ones. */
    const uint32_t step = least > 0 && hosts / least > 0 ? hosts / least : 1;
    for (uint32_t first = 0; first < step; first++) {
        for (uint32_t h = first; h < hosts && count < least; h += step) {
            if (!ret_hosts[h] && can_tell(m, h)) {
                ret_hosts[h] = true;
                count++;
            }
        }
    }
    return count;
}

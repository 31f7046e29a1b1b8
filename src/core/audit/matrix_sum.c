/* matrix_sum.c: counts the packets of all cells, and finds whose fault it is that some did not come, or came with another
 * mark. */
#include "core/audit/matrix_internal.h"
#include "core/fleet/delay_code.h"

enum {
    PARTED_LEAST = 4, /* hosts: with fewer, two would be most of them */
    THIN_FEW = 2,     /* other cells of a NIC that lose some packets by chance */
    THIN_LEAF = 3,    /* NICs of a leaf: with fewer, two would be most of them */
    MARKED_LEAST = 2  /* partners: one partner's cells are the report of one host */
};

static void add_mark(struct matrix_marks *x, bool changed, bool near)
{
    x->came++;
    x->changed += changed;
    x->near += near;
    x->near_changed += near && changed;
}

/* Between rails all packets take one path: a partial loss is chance. The marked packet is known to have come only if all came. */
static void add_rail_cell(struct matrix *m, uint32_t i, uint32_t j, const struct matrix_cell *c)
{
    struct matrix_nic *from = &m->nics[i], *to = &m->nics[j];
    if (from->rail != to->rail) {
        return;
    }
    const bool thin = c->heard > 0 && c->heard < c->sent, near = matrix_is_near(m, i, j);
    from->rail_out++;
    to->rail_in++;
    from->thin_out += thin;
    to->thin_in += thin;
    from->marked += c->marked;
    to->marked += c->marked;
    if (c->marked && c->sent > 0 && c->heard == c->sent) {
        add_mark(&from->marks_out, !c->kept, near);
        add_mark(&to->marks_in, !c->kept, near);
        m->far_came += !near;
        m->far_changed += !near && !c->kept;
    }
}

/* The NICs of a host follow one another, and so do the cells with them. */
static void add_lost(struct matrix_lost *x, uint32_t host, uint32_t lost)
{
    x->all += lost;
    x->now = (x->now_host == host ? x->now : 0) + lost;
    x->now_host = host;
    if (x->now > x->worst) {
        x->worst = x->now;
        x->worst_host = host;
    }
}

/* By how much the dead cells exceed half, in halves of a cell. */
static int64_t surplus(uint32_t cells, uint32_t dead)
{
    return 2 * (int64_t)dead - cells;
}

static void add_dead(struct matrix_dead *x, uint32_t host, bool dead)
{
    if (x->hosts == 0 || x->host != host) {
        if (surplus(x->cells, x->dead) > surplus(x->worst_cells, x->worst_dead)) {
            x->worst_cells = x->cells;
            x->worst_dead = x->dead;
        }
        x->hosts++;
        x->host = host;
        x->cells = x->dead = 0;
    }
    x->cells++;
    x->dead += dead;
}

static void add_cell(struct matrix *m, uint32_t from, uint32_t to)
{
    const struct matrix_cell c = matrix_cell_of(m, from, to);
    struct matrix_nic *a = &m->nics[from], *b = &m->nics[to];
    a->cells++;
    b->cells++;
    m->cells++;
    m->unmeasured[c.why]++;
    if (c.why != MATRIX_FINE && (c.why != MATRIX_CLOCK || c.heard == 0)) {
        a->unmeasured++;
        b->unmeasured++;
        a->why_not[c.why]++;
        b->why_not[c.why]++;
        return;
    }
    m->measured += c.why == MATRIX_FINE;
    a->sent_out += c.sent;
    a->lost_out += (uint32_t)(c.sent - c.heard);
    b->sent_in += c.sent;
    b->lost_in += (uint32_t)(c.sent - c.heard);
    add_lost(&a->part_out, b->host, c.heard > 0 ? (uint32_t)(c.sent - c.heard) : 0);
    add_lost(&b->part_in, a->host, c.heard > 0 ? (uint32_t)(c.sent - c.heard) : 0);
    a->measured_out++;
    b->measured_in++;
    a->dead_out += c.heard == 0;
    b->dead_in += c.heard == 0;
    add_dead(&a->dead_to, b->host, c.heard == 0);
    add_dead(&b->dead_from, a->host, c.heard == 0);
    add_rail_cell(m, from, to, &c);
    a->delay_known = a->delay_known || c.delay != DELAY_CODE_NONE;
    b->delay_known = b->delay_known || c.delay != DELAY_CODE_NONE;
}

static bool is_mute(const struct matrix_nic *n)
{
    return surplus(n->measured_out, n->dead_out) > 0;
}

static bool is_deaf(const struct matrix_nic *n)
{
    return surplus(n->measured_in, n->dead_in) > 0;
}

/* The same without any one host. */
static bool is_surely(uint32_t cells, uint32_t dead, const struct matrix_dead *x)
{
    const int64_t now = surplus(x->cells, x->dead), worst = surplus(x->worst_cells, x->worst_dead),
                  all = surplus(cells, dead);
    return all - (now > worst ? now : worst) > 0 && all > 0;
}

/* If a fabric falls into halves, each NIC is deaf for most others. */
static bool is_parted(const struct matrix *m)
{
    uint32_t known = 0, cut = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        const struct matrix_nic *n = &m->nics[i];
        known += n->measured_out + n->measured_in > 0;
        cut += is_mute(n) || is_deaf(n);
    }
    return m->plan.hosts >= PARTED_LEAST && 2 * cut > known;
}

/* One dead trunk of several takes a part of all packets that most NICs of its leaf send, or get. */
static void find_thin_leaves(struct matrix *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        uint32_t known = 0, out = 0, in = 0;
        for (uint32_t j = 0; j < m->count; j++) {
            const struct matrix_nic *n = &m->nics[j];
            const bool same =
                n->there && n->leaf == m->nics[i].leaf && n->rail_out + n->rail_in > 0;
            known += same;
            out += same && 4 * n->thin_out > n->rail_out;
            in += same && 4 * n->thin_in > n->rail_in;
        }
        m->nics[i].leaf_thin_out = known >= THIN_LEAF && 2 * out > known;
        m->nics[i].leaf_thin_in = known >= THIN_LEAF && 2 * in > known;
    }
}

/* Between leaves most packets of the other NICs come with another mark: a spine changes it, or their leaves do. */
static bool others_change(const struct matrix *m, const struct matrix_nic *n)
{
    const struct matrix_marks *out = &n->marks_out, *in = &n->marks_in;
    const uint64_t came = m->far_came - (out->came - out->near) - (in->came - in->near),
                   changed = m->far_changed - (out->changed - out->near_changed) -
                             (in->changed - in->near_changed);
    return 2 * changed > came;
}

/* Most marks of a NIC change in this direction. If marks within its leaf change too, its port or its leaf is the cause. Packets
 * through a spine show that only if other NICs' packets keep their mark there. One partner's report alone proves neither. */
static bool changes(const struct matrix *m, const struct matrix_nic *n,
                    const struct matrix_marks *x)
{
    if (x->came < MARKED_LEAST || 2 * x->changed <= x->came ||
        (x->near > 0 && 2 * x->near_changed <= x->near)) {
        return false;
    }
    return x->near >= MARKED_LEAST || !others_change(m, n);
}

/* Blames the end of which most marked packets come with another mark. */
static void blame_mark(struct matrix *m, uint32_t from, uint32_t to, const struct matrix_cell *c)
{
    struct matrix_nic *a = &m->nics[from], *b = &m->nics[to];
    if (a->rail != b->rail || !c->marked || c->kept || c->sent == 0 || c->heard < c->sent) {
        return;
    }
    const bool out = changes(m, a, &a->marks_out), in = changes(m, b, &b->marks_in);
    a->marks_out.own += out;
    b->marks_in.own += in;
    for (int k = 0; k < 2 && !out && !in; k++) {
        struct matrix_nic *n = k == 0 ? a : b;
        n->changed_elsewhere++;
        n->changed_within += matrix_is_near(m, from, to);
        n->changed_across += a->leaf_now != MATRIX_LEAF_NONE && b->leaf_now != MATRIX_LEAF_NONE &&
                             a->leaf_now != b->leaf_now;
    }
}

/* It lost more with its worst host than with all others together: so the others are chance, and no loss of the NIC's own. */
static bool is_of_one_host(const struct matrix_lost *x)
{
    return 2 * x->worst > x->all;
}

/* A loss is blamed on the end that loses the larger share of all its packets, without those with its worst host. If its partner
 * here is that worst host, and most is lost with it, the loss is the pair's: either of both may report something false. */
static void blame_loss(struct matrix_nic *a, struct matrix_nic *b, uint32_t lost)
{
    const struct matrix_lost *out = &a->part_out, *in = &b->part_in;
    const uint64_t x = (uint64_t)(out->all - out->worst) * b->sent_in,
                   y = (uint64_t)(in->all - in->worst) * a->sent_out;
    const bool own_out = x >= y && out->worst_host != b->host,
               own_in = y >= x && in->worst_host != a->host;
    a->own_lost_out += own_out ? lost : 0;
    b->own_lost_in += own_in ? lost : 0;
    if (!own_out && !own_in && is_of_one_host(x >= y ? out : in)) {
        a->pair_lost += lost;
        b->pair_lost += lost;
    }
}

/* A NIC is deaf or mute if more than half of its cells in that direction are dead. If it met one host only, the fault may be at
 * either end. */
static void blame_dead(const struct matrix *m, struct matrix_nic *a, struct matrix_nic *b)
{
    const bool mute = !m->parted && is_surely(a->measured_out, a->dead_out, &a->dead_to),
               deaf = !m->parted && is_surely(b->measured_in, b->dead_in, &b->dead_from);
    a->own_dead_out += mute;
    b->own_dead_in += deaf;
    if (!mute && !deaf) {
        a->partners++;
        b->partners++;
        a->alone += a->dead_to.hosts == 1 && is_mute(a);
        b->alone += b->dead_from.hosts == 1 && is_deaf(b);
    }
}

static void blame_cell(struct matrix *m, uint32_t from, uint32_t to)
{
    const struct matrix_cell c = matrix_cell_of(m, from, to);
    struct matrix_nic *a = &m->nics[from], *b = &m->nics[to];
    if (c.why != MATRIX_FINE && c.why != MATRIX_CLOCK) {
        return;
    }
    blame_mark(m, from, to, &c);
    if (c.heard >= c.sent) {
        return;
    }
    if (c.heard == 0) {
        blame_dead(m, a, b);
        return;
    }
    if (a->rail == b->rail && (a->leaf != b->leaf || a->leaf == MATRIX_LEAF_NONE) &&
        (a->leaf_thin_out || b->leaf_thin_in)) {
        a->shared_lost += a->leaf_thin_out ? (uint32_t)(c.sent - c.heard) : 0;
        b->shared_lost += b->leaf_thin_in ? (uint32_t)(c.sent - c.heard) : 0;
        return;
    }
    blame_loss(a, b, (uint32_t)(c.sent - c.heard));
}

void matrix_add_up(struct matrix *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        for (uint32_t j = 0; j < m->count; j++) {
            if (matrix_two_hosts(m, i, j)) {
                add_cell(m, i, j);
            }
        }
    }
    m->parted = is_parted(m);
    find_thin_leaves(m);
    for (uint32_t i = 0; i < m->count; i++) {
        for (uint32_t j = 0; j < m->count; j++) {
            if (matrix_two_hosts(m, i, j)) {
                blame_cell(m, i, j);
            }
        }
    }
}

/* Some of its cells are thin, but no more than chance makes. */
static bool few(uint32_t thin)
{
    return thin > 0 && thin <= 1 + THIN_FEW;
}

static bool is_thin(const struct matrix *m, uint32_t from, uint32_t to, struct matrix_thin *ret)
{
    if (m->nics[from].rail != m->nics[to].rail || !matrix_two_hosts(m, from, to)) {
        return false;
    }
    const struct matrix_cell c = matrix_cell_of(m, from, to);
    *ret = (struct matrix_thin){.from = from, .to = to, .sent = c.sent, .heard = c.heard};
    return (c.why == MATRIX_FINE || c.why == MATRIX_CLOCK) && c.heard > 0 && c.heard < c.sent;
}

static bool was_thin(const struct matrix_first *first, uint32_t from, uint32_t to)
{
    struct matrix_thin t;
    return first == NULL ||
           (first->places[from] != MATRIX_NONE && first->places[to] != MATRIX_NONE &&
            is_thin(first->m, first->places[from], first->places[to], &t));
}

/* On one rail each partner is another host. If no leaf is known, all are taken to be behind the same trunks. */
static uint32_t count_partners(const struct matrix *m, const struct matrix_first *first,
                               uint32_t nic, bool out, uint16_t leaf)
{
    struct matrix_thin t;
    uint32_t count = 0;
    for (uint32_t k = 0; k < m->count; k++) {
        const uint32_t from = out ? nic : k, to = out ? k : nic;
        count += m->nics[k].leaf == leaf && is_thin(m, from, to, &t) && was_thin(first, from, to);
    }
    return count;
}

bool matrix_next_thin(const struct matrix *m, const struct matrix_first *first, uint32_t nic,
                      uint32_t *at, struct matrix_thin *ret)
{
    while (*at < 2 * m->count) {
        const uint32_t other = *at / 2;
        const bool out = (*at)++ % 2 == 0;
        const uint32_t from = out ? nic : other, to = out ? other : nic;
        if (few(m->nics[from].thin_out) && few(m->nics[to].thin_in) && is_thin(m, from, to, ret)) {
            ret->partners = count_partners(m, first, nic, out, m->nics[other].leaf);
            return true;
        }
    }
    return false;
}

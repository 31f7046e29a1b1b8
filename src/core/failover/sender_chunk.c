/* sender_chunk.c: cuts messages, chooses the next chunk, binds it to a lane, takes it back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/failover/sender_internal.h"

bool sender_return(struct sender *s, const struct entry *e)
{
    struct out_comm *c = sender_comm_find(s, e->comm);
    struct out_message *m = c != NULL ? sender_message(c, e->message) : NULL;

    if (m == NULL || bit_get(&m->taken, e->index) || !bit_get(&m->sent, e->index)) {
        return false; /* done, taken elsewhere, or in the pool already */
    }
    bit_clear(&m->sent, e->index);
    m->first_clear = e->index < m->first_clear ? e->index : m->first_clear;
    m->returned++;
    c->returned++;
    s->returned++;
    s->pending += chunk_length(m, e->index);
    return true;
}

void sender_withdraw(struct sender *s, const struct entry *e)
{
    struct out_comm *c = sender_comm_find(s, e->comm);
    struct out_message *m = c != NULL ? sender_message(c, e->message) : NULL;

    if (m != NULL && !bit_get(&m->sent, e->index)) {
        bit_set(&m->sent, e->index);
        m->returned--;
        c->returned--;
        s->returned--;
        s->pending -= chunk_length(m, e->index);
    }
}

/* ---- groups: the buffer of each message ------------------------------------------------------ */

static struct post *post_at(const struct out_comm *c, uint64_t number)
{
    return &c->posts[number % ((uint64_t)COMM_WINDOW * 2 * c->group_max)];
}

/* Compares all but the keys: those belong to the devices that the receiver's lanes use by now. */
static bool post_equal(const struct lane_post *a, const struct lane_post *b)
{
    return a->first == b->first && a->index == b->index && a->count == b->count &&
           a->tag == b->tag && a->size == b->size && a->address == b->address;
}

/* A message that has its buffer takes the last reported keys. */
static void renew_keys(struct out_comm *c, const struct lane_post *post)
{
    for (uint32_t i = 0; i < post->count; i++) {
        struct out_message *m = sender_message(c, post->first + i);
        if (m != NULL && m->matched && m->buffer == post->index) {
            m->keys = post->keys;
        }
    }
}

int sender_on_post(struct sender *s, const struct lane_post *post)
{
    struct out_comm *c = sender_comm_find(s, post->comm);

    if (c == NULL || post->first + post->index < c->placed) {
        return 0; /* late */
    }
    if (c->posts == NULL && s->config.posts) { /* it was opened before that was known */
        c->posts = calloc((size_t)COMM_WINDOW * 2 * c->group_max, sizeof(struct post));
        if (c->posts == NULL) {
            return 0; /* it is reported again */
        }
    }
    if (c->posts == NULL || post->count > c->group_max ||
        post->first + post->count - c->placed > (uint64_t)COMM_WINDOW * 2 * c->group_max) {
        return -EPROTO;
    }
    struct post *p = post_at(c, post->first + post->index);
    if (p->known && p->post.first + p->post.index == post->first + post->index) {
        if (!post_equal(&p->post, post)) {
            return -EPROTO;
        }
        p->post.keys = post->keys;
        renew_keys(c, post);
        return 0;
    }
    *p = (struct post){.known = true, .post = *post};
    return 0;
}

static void forget_key(struct lane_keys *keys, uint32_t device)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        keys->rkeys[i] = keys->devices[i] == device ? 0 : keys->rkeys[i];
    }
}

void sender_forget_keys(struct sender *s, uint32_t device)
{
    for (uint32_t i = 0; i < s->comm_count; i++) {
        struct out_comm *c = s->open[i];
        for (uint32_t k = 0; k < COMM_WINDOW; k++) {
            forget_key(&c->messages[k].keys, device);
        }
        for (uint32_t k = 0; c->posts != NULL && k < COMM_WINDOW * 2 * c->group_max; k++) {
            forget_key(&c->posts[k].post.keys, device);
        }
    }
}

/* Messages take, in their order, the first free buffer of their group with their tag. */
static bool match(const struct sender *s, struct out_comm *c, struct out_message *m)
{
    const struct post *any;
    uint64_t first = 0;

    if (c->posts == NULL || m->matched) {
        return m->matched || !s->config.posts;
    }
    if (c->group_max > 1 && m->number > c->placed) {
        const struct out_message *before = sender_message(c, m->number - 1);
        if (before != NULL && !before->matched) {
            return false; /* in order: otherwise two with one tag could be exchanged */
        }
    }
    any = post_at(c, m->number); /* any buffer of the same group */
    if (!any->known || any->post.first + any->post.index != m->number) {
        return false;
    }
    first = any->post.first;
    for (uint32_t i = 0; i < any->post.count; i++) {
        const struct post *p = post_at(c, first + i);
        if (!p->known || p->post.first != first || p->post.index != i) {
            return false; /* an earlier buffer may be the right one */
        }
        if (p->matched || (c->group_max > 1 && p->post.tag != m->tag)) {
            continue;
        }
        post_at(c, first + i)->matched = true;
        m->matched = true;
        m->buffer = (uint8_t)i;
        /* otherwise it fits nowhere, and the receiver must find that out */
        if (m->size <= p->post.size) {
            m->address = p->post.address;
            m->keys = p->post.keys;
        }
        return true;
    }
    return false;
}

/* ---- what may be sent ------------------------------------------------------------------------ */

/* A free slot that is large enough; the large ones are kept for messages that need them. */
static int slot_free(const struct sender *s, uint32_t size)
{
    const uint32_t large = s->config.slots - s->config.large;
    const uint32_t begin = size <= LANE_EAGER_SIZE_MAX ? 0 : large;
    const uint32_t end = size <= LANE_EAGER_SIZE_MAX ? s->small
                         : size <= s->hold           ? large + s->large
                                                     : 0;

    for (uint32_t i = begin; i < end; i++) {
        if (!(s->slots_used >> i & 1)) {
            return (int)i;
        }
    }
    return -1;
}

/* True if the receiver's grant suffices. Small messages need no grant, because asking would cost more. Nor does a chunk while
 * none is in flight: the receiver can't know the size of the next one, and only it could grant more. */
static bool is_granted(const struct out_comm *c, const struct out_message *m, uint32_t length)
{
    return c->granted == UINT64_MAX || c->started + length <= c->granted || c->on_lanes == 0 ||
           m->size <= LANE_EAGER_SIZE_MAX;
}

/* True if the message's next new chunk may be sent. */
static bool may_start(struct sender *s, struct out_comm *c, struct out_message *m, uint32_t wanted,
                      bool *ret_eager)
{
    const uint8_t grid = m->grid != 0 ? m->grid : lane_grid(m->size, wanted);
    const uint32_t offset = m->fresh << grid;
    const uint32_t length = m->size - offset < 1u << grid ? m->size - offset : 1u << grid;

    *ret_eager = false;
    if (!c->confirmed) {
        return false;
    }
    if (m->number < c->posted && match(s, c, m)) {
        return is_granted(c, m, length);
    }
    *ret_eager = c->group_max == 1 && length == m->size && slot_free(s, m->size) >= 0 &&
                 is_granted(c, m, length);
    return *ret_eager;
}

/* Bit k: the chunk is on lane k. */
static uint32_t lanes_of(const struct sender *s, uint32_t comm, uint64_t message, uint32_t index)
{
    uint32_t lanes = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct out_lane *x = &s->lanes[i];
        for (uint32_t k = 0; k < x->load->chunks; k++) {
            const struct entry *e = &x->entries[(x->head + k) % SENDER_LANE_CHUNKS];
            if (e->comm == comm && e->message == message && e->index == index) {
                lanes |= 1u << i;
            }
        }
    }
    return lanes;
}

static void describe(const struct out_comm *c, const struct out_message *m, uint32_t index,
                     uint8_t grid, struct sender_chunk *ret)
{
    const uint32_t offset = index << grid;

    *ret = (struct sender_chunk){
        .comm = c->number,
        .message = m->number,
        .cookie = m->cookie,
        .offset = offset,
        .length = m->size - offset < 1u << grid ? m->size - offset : 1u << grid,
        .size = m->size,
        .eager = m->eager,
        .resent = index < m->fresh,
        .queued = m->queued,
        .source = m->source != NULL ? m->source + offset : NULL,
        .address = m->address != 0 ? m->address + offset : 0,
    };
    ret->keys = m->keys;
}

static bool next_returned(struct sender *s, struct out_comm *c, uint32_t usable,
                          struct sender_chunk *ret)
{
    for (uint64_t number = c->placed; c->returned > 0 && number < c->count; number++) {
        struct out_message *m = sender_message(c, number);
        if (m == NULL || m->returned == 0) {
            continue;
        }
        for (uint32_t i = m->first_clear; i < m->fresh; i++) {
            if (bit_get(&m->sent, i)) {
                continue;
            }
            const uint32_t on = lanes_of(s, c->number, number, i);
            if ((usable & ~on) != 0) {
                describe(c, m, i, m->grid, ret);
                ret->not_on = on;
                ret->gates = m->returned == 1 && m->fresh == m->chunks;
                return true;
            }
        }
    }
    return false;
}

/* Within a comm, messages are sent in order; small ones of other comms may come first. */
static bool next_fresh(struct sender *s, struct out_comm *c, uint32_t wanted, bool small,
                       struct sender_chunk *ret)
{
    bool eager;

    if (c->cursor >= c->count) {
        return false;
    }
    struct out_message *m = sender_message(c, c->cursor);
    if (!HOLDS(&s->bug, m != NULL) || (small && m->size > LANE_EAGER_SIZE_MAX) ||
        !may_start(s, c, m, wanted, &eager)) {
        return false;
    }
    describe(c, m, m->fresh, m->grid != 0 ? m->grid : lane_grid(m->size, wanted), ret);
    ret->eager = eager;
    ret->gates = ret->offset + ret->length == m->size && m->returned == 0;
    return true;
}

bool sender_next(struct sender *s, uint32_t usable, uint32_t wanted_size,
                 struct sender_chunk *ret_chunk)
{
    if (s->bug.condition != NULL || usable == 0 || !sender_waiting(s)) {
        return false;
    }
    for (uint32_t i = 0; s->returned > 0 && i < s->busy_count; i++) {
        struct out_comm *c = s->open[i];
        if (c->returned > 0 && next_returned(s, c, usable, ret_chunk)) {
            return true;
        }
    }
    for (int small = 1; small >= 0; small--) {
        for (uint32_t i = 0; i < s->busy_count; i++) {
            struct out_comm *c = s->open[(s->turn + i) % s->busy_count];
            if (next_fresh(s, c, wanted_size, small, ret_chunk)) {
                return true;
            }
        }
    }
    return false;
}

/* ---- binding ----------------------------------------------------------------------------------- */

static void cut(struct sender *s, struct out_message *m, const struct sender_chunk *chunk)
{
    m->grid = LANE_CHUNK_SHIFT_MIN;
    while (m->grid < LANE_CHUNK_SHIFT_MAX && chunk->length > 1u << m->grid) {
        m->grid++;
    }
    m->chunks = lane_chunk_count(m->size, m->grid);
    if (chunk->eager) {
        m->eager = true;
        m->slot = (uint8_t)slot_free(s, m->size);
        s->slots_used |= 1u << m->slot;
        s->slot_comm[m->slot] = chunk->comm;
        s->counters.eager++;
    }
}

static void on_lane(struct sender *s, struct mono now, struct out_lane *x, struct out_comm *c,
                    struct out_message *m, const struct sender_chunk *chunk)
{
    const uint32_t index = chunk->offset >> m->grid;
    struct entry *e = &x->entries[(x->head + x->load->chunks) % SENDER_LANE_CHUNKS];

    *e = (struct entry){.comm = c->number,
                        .message = m->number,
                        .index = index,
                        .bytes = chunk->length,
                        .doubled = chunk->not_on != 0,
                        .alone = x->load->chunks == 0,
                        .bound = now};
    x->load->chunks++;
    x->sent++;
    x->load->bytes += chunk->length;
    e->load = (uint32_t)x->load->bytes;
    c->on_lanes++;
    bit_set(&m->sent, index);
    while (m->first_clear < m->chunks && bit_get(&m->sent, m->first_clear)) {
        m->first_clear++;
    }
    s->pending -= chunk->length;
    if (index < m->fresh) {
        m->returned--;
        c->returned--;
        s->returned--;
        s->counters.resent++;
        s->counters.resent_bytes += chunk->length;
        return;
    }
    m->fresh++;
    c->started += chunk->length;
    s->counters.chunks++;
    s->counters.bytes += chunk->length;
    if (m->fresh == m->chunks) {
        c->cursor = m->number + 1;
        s->unsent--;
        s->turn = c->place + 1;
    }
}

int sender_bind(struct sender *s, struct mono now, const struct sender_chunk *chunk, uint32_t lane,
                struct lane_chunk *ret_header)
{
    struct out_comm *c = sender_comm_find(s, chunk->comm);
    struct out_message *m = c != NULL ? sender_message(c, chunk->message) : NULL;

    if (m == NULL || lane >= LANE_MAX || !s->lanes[lane].open || (chunk->not_on >> lane & 1)) {
        return -EINVAL;
    }
    struct out_lane *x = &s->lanes[lane];
    if (x->load->chunks == SENDER_LANE_CHUNKS) {
        return -EAGAIN;
    }
    if (m->grid == 0 && chunk->offset == 0) {
        cut(s, m, chunk);
    }
    if (m->grid == 0 || chunk->offset >> m->grid > m->fresh ||
        chunk->offset >> m->grid >= m->chunks || bit_get(&m->sent, chunk->offset >> m->grid) ||
        chunk->length != chunk_length(m, chunk->offset >> m->grid)) {
        return -EINVAL;
    }
    *ret_header = (struct lane_chunk){
        .flags = (uint8_t)((m->eager ? LANE_CHUNK_EAGER : 0) |
                           (chunk->offset >> m->grid < m->fresh ? LANE_CHUNK_RESENT : 0)),
        .buffer = m->buffer,
        .slot = m->eager ? m->slot : 0,
        .grid = m->grid,
        .lane = (uint16_t)lane,
        .epoch = x->epoch,
        .comm = c->number,
        .tag = m->tag,
        .message = m->number,
        .offset = chunk->offset,
        .length = chunk->length,
        .size = m->size,
        .sent_bound_ns = LANE_BOUND_UNKNOWN,
    };
    on_lane(s, now, x, c, m, chunk);
    return 0;
}

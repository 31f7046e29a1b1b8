/* sender_lane.c: the chunks on the lanes of the sending end: until they are taken, once more when the lane dies or is doubted,
 * and on two lanes at once when one is slow. */
#include "core/failover/sender.h"

#include <errno.h>
#include <stdlib.h>

#include "core/failover/sender_internal.h"

void sender_posts(struct sender *s)
{
    s->config.posts = true;
}

void sender_fence(struct sender *s)
{
    s->config.fenced = true;
}

int sender_lane_open(struct sender *s, uint32_t lane, uint32_t epoch)
{
    if (lane >= LANE_MAX) {
        return -EINVAL;
    }
    struct out_lane *x = &s->lanes[lane];
    if (epoch <= x->epoch) {
        return -ESTALE;
    }
    if (x->open || x->held) {
        return -EBUSY;
    }
    if (!HOLDS(&s->bug, x->load->chunks == 0)) {
        return -EBUSY;
    }
    if (x->entries == NULL) {
        x->entries = calloc(SENDER_LANE_CHUNKS, sizeof(*x->entries));
    }
    if (x->entries == NULL) {
        return -ENOMEM;
    }
    x->open = true;
    x->doubted = false;
    x->epoch = epoch;
    x->sent = x->taken = 0;
    x->head = 0;
    return 0;
}

static struct entry *lane_entry(struct out_lane *x, uint32_t i)
{
    return &x->entries[(x->head + i) % SENDER_LANE_CHUNKS];
}

/* True if a chunk of this lane is on another live lane without a doubt, and not only to test that one. Only doubled chunks can
 * be. */
static bool elsewhere(struct sender *s, const struct out_lane *but, const struct entry *e)
{
    for (uint32_t i = 0; e->doubled && i < LANE_MAX; i++) {
        struct out_lane *x = &s->lanes[i];
        for (uint32_t k = 0; x != but && !x->doubted && k < x->load->chunks; k++) {
            const struct entry *other = lane_entry(x, k);
            if (other->comm == e->comm && other->message == e->message &&
                other->index == e->index && !other->asking) {
                return true;
            }
        }
    }
    return false;
}

static void lane_empty(struct sender *s, struct out_lane *x)
{
    for (uint32_t i = 0; i < x->load->chunks; i++) {
        const struct entry *e = lane_entry(x, i);
        struct out_comm *c = sender_comm_find(s, e->comm);
        if (c != NULL) {
            c->on_lanes--;
        }
        if (!elsewhere(s, x, e)) {
            sender_return(s, e);
        }
    }
    *x->load = (struct lane_load){0};
    x->held = false;
}

void sender_on_lane_down(struct sender *s, uint32_t lane, uint32_t epoch)
{
    if (lane >= LANE_MAX || s->lanes[lane].epoch != epoch || !s->lanes[lane].open) {
        return;
    }
    struct out_lane *x = &s->lanes[lane];
    x->open = false;
    if (s->config.fenced) {
        x->held = true;
    } else {
        lane_empty(s, x);
    }
}

static uint32_t offer_again(struct sender *s, struct out_lane *x)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < x->load->chunks; i++) {
        struct entry *e = lane_entry(x, i);
        if (!elsewhere(s, x, e)) {
            e->doubled = true;
            count += sender_return(s, e);
        }
    }
    s->counters.hedged += count;
    return count;
}

uint32_t sender_on_suspect(struct sender *s, uint32_t lane)
{
    if (lane >= LANE_MAX || !s->lanes[lane].open || s->config.fenced) {
        return 0;
    }
    s->lanes[lane].doubted = true;
    return offer_again(s, &s->lanes[lane]);
}

void sender_on_trusted(struct sender *s, uint32_t lane)
{
    if (lane >= LANE_MAX || !s->lanes[lane].open || !s->lanes[lane].doubted) {
        return;
    }
    struct out_lane *x = &s->lanes[lane];
    x->doubted = false;
    for (uint32_t i = 0; i < x->load->chunks; i++) {
        if (!lane_entry(x, i)->asking) {
            sender_withdraw(s, lane_entry(x, i));
        }
    }
}

static bool double_entry(struct sender *s, struct entry *e)
{
    const bool returned = sender_return(s, e);

    e->doubled = true;
    s->counters.hedged += returned;
    return returned;
}

bool sender_double(struct sender *s, uint32_t lane)
{
    if (lane >= LANE_MAX || !s->lanes[lane].open || s->config.fenced ||
        s->loads[lane].chunks == 0) {
        return false;
    }
    struct entry *e = lane_entry(&s->lanes[lane], s->loads[lane].chunks - 1);
    if (e->doubled) {
        return false;
    }
    e->asking = true;
    return double_entry(s, e);
}

bool sender_hedge(struct sender *s, uint32_t lane, struct mono before, bool more)
{
    if (lane >= LANE_MAX || !s->lanes[lane].open || s->config.fenced || s->pending > 0 ||
        s->returned > 0) {
        return false;
    }
    struct out_lane *x = &s->lanes[lane];
    for (uint32_t i = 0; i < (more ? x->load->chunks : x->load->chunks > 0) &&
                         mono_before(lane_entry(x, i)->bound, before);
         i++) {
        if (!lane_entry(x, i)->doubled) {
            return double_entry(s, lane_entry(x, i));
        }
    }
    return false;
}

const struct lane_load *sender_loads(const struct sender *s)
{
    return s->loads;
}

void sender_lane_info(const struct sender *s, uint32_t lane, struct sender_lane_info *ret_info)
{
    const struct out_lane *x;

    if (lane >= LANE_MAX) {
        *ret_info = (struct sender_lane_info){.oldest = MONO_NEVER};
        return;
    }
    x = &s->lanes[lane];
    *ret_info = (struct sender_lane_info){
        .open = x->open,
        .held = x->held,
        .epoch = x->epoch,
        .chunks = x->load->chunks,
        .bytes = x->load->bytes,
        .sent = x->sent,
        .taken = x->taken,
        .oldest = x->load->chunks > 0 ? x->entries[x->head].bound : MONO_NEVER,
        .oldest_bytes = x->load->chunks > 0 ? x->entries[x->head].bytes : 0,
    };
}

/* ---- facts from the receiver ----------------------------------------------------------------- */

static void take(struct sender *s, struct out_lane *x, struct sender_acked *acked)
{
    const struct entry *e = lane_entry(x, 0);
    struct out_comm *c = sender_comm_find(s, e->comm);
    struct out_message *m = c != NULL ? sender_message(c, e->message) : NULL;

    acked->chunks++;
    acked->bytes += e->bytes;
    acked->sent = e->bound;
    acked->load = e->load;
    acked->alone = e->alone;
    x->load->bytes -= e->bytes;
    if (c != NULL) {
        c->on_lanes--;
    }
    if (m != NULL && !bit_get(&m->taken, e->index)) {
        bit_set(&m->taken, e->index);
        sender_withdraw(s, e); /* it waited in the pool to be sent elsewhere, too */
    }
    x->head = (x->head + 1) % SENDER_LANE_CHUNKS;
    x->load->chunks--;
    x->taken++;
}

int sender_on_taken(struct sender *s, struct mono now, uint32_t lane, uint32_t epoch,
                    uint64_t taken, struct sender_acked *ret_acked)
{
    struct sender_acked acked = {.sent = now};

    if (lane >= LANE_MAX || (epoch == s->lanes[lane].epoch && taken > s->lanes[lane].sent)) {
        return -EPROTO;
    }
    struct out_lane *x = &s->lanes[lane];
    while (x->open && epoch == x->epoch && x->taken < taken) {
        if (!HOLDS(&s->bug, x->load->chunks > 0)) {
            return -EPROTO;
        }
        take(s, x, &acked);
    }
    *ret_acked = acked;
    return 0;
}

/* The receiver has fenced the open or held epoch, with that count. */
static int fenced(struct sender *s, struct out_lane *x, uint64_t taken)
{
    struct sender_acked acked;

    if (taken > x->sent || taken < x->taken) {
        return -EPROTO;
    }
    while (x->taken < taken) {
        if (!HOLDS(&s->bug, x->load->chunks > 0)) {
            return -EPROTO;
        }
        take(s, x, &acked);
    }
    x->open = false;
    lane_empty(s, x);
    return 0;
}

int sender_on_fenced(struct sender *s, uint32_t lane, uint32_t below, uint32_t epoch,
                     uint64_t taken)
{
    if (lane >= LANE_MAX || !s->config.fenced || epoch >= below) {
        return -EPROTO;
    }
    struct out_lane *x = &s->lanes[lane];
    if (x->epoch >= below || x->epoch < epoch || (!x->held && !x->open)) {
        return 0; /* about another epoch, or known already */
    }
    return fenced(s, x, x->epoch == epoch ? taken : x->taken);
}

int sender_on_state(struct sender *s, struct mono now, const struct lane_state_lane *lane,
                    struct sender_acked *ret_acked)
{
    if (lane->fenced_below != 0) {
        *ret_acked = (struct sender_acked){.sent = now};
        return sender_on_fenced(s, lane->lane, lane->fenced_below, lane->epoch, lane->taken);
    }
    return sender_on_taken(s, now, lane->lane, lane->epoch, lane->taken, ret_acked);
}

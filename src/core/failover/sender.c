/* sender.c: lanes, comms and messages of the sending end; which chunk goes next: sender_chunk.c. */
#include "core/failover/sender.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/failover/sender_internal.h"

/* ---- life ---------------------------------------------------------------------------------- */

struct sender *sender_new(const struct sender_config *config)
{
    struct sender *s;

    if (config->slots > LANE_EAGER_SLOTS_MAX || config->large > config->slots ||
        config->comms == 0 || config->comms > SET_COMMS_MAX) {
        return NULL;
    }
    s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    s->config = *config;
    s->comms = calloc(config->comms, sizeof(struct comm *));
    s->open = calloc(config->comms, sizeof(struct comm *));
    if (s->comms == NULL || s->open == NULL) {
        sender_free(s);
        return NULL;
    }
    return s;
}

void sender_large(struct sender *s, bool on)
{
    s->large = on;
}

static void comm_free(struct comm *c)
{
    if (c != NULL) {
        free(c->posts);
        free(c);
    }
}

void sender_free(struct sender *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; i < s->comm_count; i++) {
        comm_free(s->open[i]);
    }
    free(s->comms);
    free(s->open);
    free(s);
}

const struct bug_note *sender_bug(const struct sender *s)
{
    return s->bug.condition != NULL ? &s->bug : NULL;
}

void sender_counters_get(const struct sender *s, struct sender_counters *ret_counters)
{
    *ret_counters = s->counters;
}

bool sender_waiting(const struct sender *s)
{
    return s->unsent > 0 || s->returned > 0;
}

uint32_t sender_slots(const struct sender *s)
{
    uint32_t count = 0;

    for (uint32_t used = s->slots_used; used != 0; used &= used - 1) {
        count++;
    }
    return count;
}

uint64_t sender_pending_bytes(const struct sender *s)
{
    return s->pending;
}

bool sender_on_their_way(const struct sender *s)
{
    bool any = s->returned > 0;

    for (uint32_t i = 0; i < LANE_MAX && !any; i++) {
        any = s->lanes[i].count > 0;
    }
    return any;
}

/* ---- lanes --------------------------------------------------------------------------------- */

int sender_lane_open(struct sender *s, uint32_t lane, uint32_t epoch)
{
    struct lane *x;

    if (lane >= LANE_MAX) {
        return -EINVAL;
    }
    x = &s->lanes[lane];
    if (epoch <= x->epoch) {
        return -ESTALE;
    }
    if (x->open || x->held) {
        return -EBUSY;
    }
    if (!HOLDS(&s->bug, x->count == 0)) {
        return -EBUSY;
    }
    x->open = true;
    x->doubted = false;
    x->epoch = epoch;
    x->sent = x->taken = x->bytes = 0;
    x->head = 0;
    return 0;
}

static struct entry *lane_entry(struct lane *x, uint32_t i)
{
    return &x->entries[(x->head + i) % SENDER_LANE_CHUNKS];
}

/* Is a chunk of this lane's on another live lane that nobody doubts, and not only to ask how that one is? Only doubled ones can
 * be. */
static bool elsewhere(struct sender *s, const struct lane *but, const struct entry *e)
{
    for (uint32_t i = 0; e->doubled && i < LANE_MAX; i++) {
        struct lane *x = &s->lanes[i];
        for (uint32_t k = 0; x != but && !x->doubted && k < x->count; k++) {
            const struct entry *other = lane_entry(x, k);
            if (other->comm == e->comm && other->message == e->message &&
                other->index == e->index && !other->asking) {
                return true;
            }
        }
    }
    return false;
}

static void lane_empty(struct sender *s, struct lane *x)
{
    for (uint32_t i = 0; i < x->count; i++) {
        const struct entry *e = lane_entry(x, i);
        struct comm *c = sender_comm_find(s, e->comm);
        if (c != NULL) {
            c->on_lanes--;
        }
        if (!elsewhere(s, x, e)) {
            sender_return(s, e);
        }
    }
    x->count = 0;
    x->bytes = 0;
    x->held = false;
}

void sender_on_lane_down(struct sender *s, uint32_t lane, uint32_t epoch)
{
    struct lane *x;

    if (lane >= LANE_MAX || s->lanes[lane].epoch != epoch || !s->lanes[lane].open) {
        return;
    }
    x = &s->lanes[lane];
    x->open = false;
    if (s->config.queue_pairs) {
        x->held = true;
    } else {
        lane_empty(s, x);
    }
}

static uint32_t offer_again(struct sender *s, struct lane *x)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < x->count; i++) {
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
    if (lane >= LANE_MAX || !s->lanes[lane].open || s->config.queue_pairs) {
        return 0;
    }
    s->lanes[lane].doubted = true;
    return offer_again(s, &s->lanes[lane]);
}

void sender_on_trusted(struct sender *s, uint32_t lane)
{
    struct lane *x;

    if (lane >= LANE_MAX || !s->lanes[lane].open || !s->lanes[lane].doubted) {
        return;
    }
    x = &s->lanes[lane];
    x->doubted = false;
    for (uint32_t i = 0; i < x->count; i++) {
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
    struct entry *e;

    if (lane >= LANE_MAX || !s->lanes[lane].open || s->config.queue_pairs ||
        s->lanes[lane].count == 0) {
        return false;
    }
    e = lane_entry(&s->lanes[lane], s->lanes[lane].count - 1);
    e->asking = !e->doubled;
    return e->asking && double_entry(s, e);
}

bool sender_hedge(struct sender *s, uint32_t lane, struct mono before)
{
    struct lane *x;
    struct entry *e;

    if (lane >= LANE_MAX || !s->lanes[lane].open || s->config.queue_pairs || s->pending > 0 ||
        s->returned > 0 || s->lanes[lane].count == 0) {
        return false;
    }
    x = &s->lanes[lane];
    e = lane_entry(x, 0);
    if (!mono_before(e->bound, before) || e->doubled) {
        return false;
    }
    return double_entry(s, e);
}

void sender_lane_info(const struct sender *s, uint32_t lane, struct sender_lane_info *ret_info)
{
    const struct lane *x;

    if (lane >= LANE_MAX) {
        *ret_info = (struct sender_lane_info){.oldest = MONO_NEVER};
        return;
    }
    x = &s->lanes[lane];
    *ret_info = (struct sender_lane_info){
        .open = x->open,
        .epoch = x->epoch,
        .chunks = x->count,
        .bytes = x->bytes,
        .sent = x->sent,
        .taken = x->taken,
        .oldest = x->count > 0 ? x->entries[x->head].bound : MONO_NEVER,
        .oldest_bytes = x->count > 0 ? x->entries[x->head].bytes : 0,
    };
}

/* ---- comms --------------------------------------------------------------------------------- */

struct comm *sender_comm_find(const struct sender *s, uint32_t number)
{
    struct comm *c = s->comms[number % s->config.comms];

    return c != NULL && c->number == number ? c : NULL;
}

/* Numbers are never used again, so one whose place is taken is skipped: each comm lies where its number
 * says. The receiver is told of none that was skipped. */
int64_t sender_comm_open(struct sender *s, uint32_t group_max)
{
    struct comm *c;

    if (group_max == 0 || group_max > COMM_GROUP_MAX) {
        return -EINVAL;
    }
    if (s->comm_count == s->config.comms || s->next_comm >= LANE_COMM_NONE - SET_COMMS_MAX) {
        return -ENOBUFS;
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return -ENOMEM;
    }
    if (group_max > 1 || s->config.queue_pairs) {
        c->posts = calloc((size_t)COMM_WINDOW * 2 * group_max, sizeof(struct post));
        if (c->posts == NULL) {
            free(c);
            return -ENOMEM;
        }
    }
    while (s->comms[s->next_comm % s->config.comms] != NULL) {
        s->next_comm++;
    }
    c->number = s->next_comm++;
    c->group_max = group_max;
    c->granted = UINT64_MAX;
    s->comms[c->number % s->config.comms] = c;
    c->place = s->comm_count++;
    s->open[c->place] = c;
    return c->number;
}

bool sender_comm_confirmed(const struct sender *s, uint32_t number)
{
    const struct comm *c = sender_comm_find(s, number);

    return c != NULL && c->confirmed;
}

bool sender_comm_idle(const struct sender *s, uint32_t number)
{
    const struct comm *c = sender_comm_find(s, number);

    return c == NULL || c->placed == c->count;
}

bool sender_comm_progress(const struct sender *s, uint32_t number, uint64_t *ret_sent,
                          uint64_t *ret_placed)
{
    const struct comm *c = sender_comm_find(s, number);

    if (c == NULL) {
        return false;
    }
    if (ret_sent != NULL) {
        *ret_sent = c->count;
    }
    if (ret_placed != NULL) {
        *ret_placed = c->placed;
    }
    return true;
}

/* What the message still has in the pool. */
static uint64_t message_pending(const struct message *m)
{
    uint64_t bytes = 0;

    if (m->grid == 0) {
        return m->size;
    }
    for (uint32_t i = m->first_clear; i < m->chunks; i++) {
        bytes += bit_get(m->sent, i) ? 0 : chunk_length(m, i);
    }
    return bytes;
}

static void message_end(struct sender *s, struct comm *c, struct message *m)
{
    if (!m->used) {
        return;
    }
    s->pending -= message_pending(m);
    s->unsent -= m->grid == 0 || m->fresh < m->chunks;
    s->returned -= m->returned;
    c->returned -= m->returned;
    if (m->eager) {
        s->slots_used &= ~(1u << m->slot);
    }
    m->used = false;
}

void sender_comm_close(struct sender *s, uint32_t number)
{
    struct comm *c = sender_comm_find(s, number);

    if (c == NULL) {
        return;
    }
    s->undone -= c->placed - c->done;
    for (uint32_t i = 0; i < COMM_WINDOW; i++) {
        struct message *m = &c->messages[i];
        m->eager = m->eager && c->peer_closed; /* else the receiver may still hold its slot */
        message_end(s, c, m);
    }
    s->comms[number % s->config.comms] = NULL;
    s->open[c->place] = s->open[--s->comm_count];
    s->open[c->place]->place = c->place;
    comm_free(c);
}

void sender_on_peer_close(struct sender *s, uint32_t number)
{
    struct comm *c = sender_comm_find(s, number);

    if (c != NULL) {
        c->peer_closed = true;
        return;
    }
    for (uint32_t i = 0; i < s->config.slots; i++) {
        if ((s->slots_used >> i & 1) && s->slot_comm[i] == number) {
            s->slots_used &= ~(1u << i);
        }
    }
}

/* ---- messages ------------------------------------------------------------------------------- */

struct message *sender_message(struct comm *c, uint64_t number)
{
    struct message *m = &c->messages[number % COMM_WINDOW];

    return m->used && m->number == number ? m : NULL;
}

int sender_send(struct sender *s, struct mono now, uint32_t number,
                const struct sender_message *message, uint64_t *ret_message)
{
    struct comm *c = sender_comm_find(s, number);
    struct message *m;

    if (c == NULL || message->size > LANE_MESSAGE_SIZE_MAX) {
        return -EINVAL;
    }
    if (s->bug.condition != NULL) {
        return -EIO;
    }
    if (c->count - c->done >= COMM_WINDOW) {
        return -EAGAIN;
    }
    m = &c->messages[c->count % COMM_WINDOW];
    *m = (struct message){
        .used = true,
        .number = c->count,
        .source = message->source,
        .size = message->size,
        .tag = message->tag,
        .cookie = message->cookie,
        .queued = now,
    };
    *ret_message = c->count++;
    s->pending += m->size;
    s->unsent++;
    s->counters.messages++;
    return 0;
}

bool sender_next_done(struct sender *s, struct sender_done *ret_done)
{
    for (uint32_t i = 0; s->undone > 0 && i < s->comm_count; i++) {
        const uint32_t place = (s->done_turn + i) % s->comm_count;
        struct comm *c = s->open[place];
        if (c->done == c->placed) {
            continue;
        }
        const struct message *m = &c->messages[c->done % COMM_WINDOW];
        *ret_done =
            (struct sender_done){.comm = c->number, .message = m->number, .cookie = m->cookie};
        c->done++;
        s->undone--;
        s->done_turn = place;
        return true;
    }
    return false;
}

bool sender_source_needed(const struct sender *s, uint32_t number, uint64_t message)
{
    struct comm *c = sender_comm_find(s, number);

    return c != NULL && message >= c->placed && sender_message(c, message) != NULL;
}

/* ---- facts from the receiver ----------------------------------------------------------------- */

static void take(struct sender *s, struct lane *x, struct sender_acked *acked)
{
    const struct entry *e = lane_entry(x, 0);
    struct comm *c = sender_comm_find(s, e->comm);
    struct message *m = c != NULL ? sender_message(c, e->message) : NULL;

    acked->chunks++;
    acked->bytes += e->bytes;
    acked->sent = e->bound;
    acked->load = e->load;
    acked->alone = e->alone;
    x->bytes -= e->bytes;
    if (c != NULL) {
        c->on_lanes--;
    }
    if (m != NULL && !bit_get(m->taken, e->index)) {
        bit_set(m->taken, e->index);
        sender_withdraw(s, e); /* waited in the pool to go elsewhere, too */
    }
    x->head = (x->head + 1) % SENDER_LANE_CHUNKS;
    x->count--;
    x->taken++;
}

int sender_on_taken(struct sender *s, struct mono now, uint32_t lane, uint32_t epoch,
                    uint64_t taken, struct sender_acked *ret_acked)
{
    struct sender_acked acked = {.sent = now};
    struct lane *x;

    if (lane >= LANE_MAX || (epoch == s->lanes[lane].epoch && taken > s->lanes[lane].sent)) {
        return -EPROTO;
    }
    x = &s->lanes[lane];
    while (x->open && epoch == x->epoch && x->taken < taken) {
        if (!HOLDS(&s->bug, x->count > 0)) {
            return -EPROTO;
        }
        take(s, x, &acked);
    }
    *ret_acked = acked;
    return 0;
}

int sender_on_fenced(struct sender *s, uint32_t lane, uint32_t epoch, uint64_t taken)
{
    struct sender_acked acked;
    struct lane *x;

    if (lane >= LANE_MAX || !s->config.queue_pairs) {
        return -EPROTO;
    }
    x = &s->lanes[lane];
    if (x->epoch != epoch || (!x->held && !x->open)) {
        return 0; /* known already */
    }
    if (taken > x->sent || taken < x->taken) {
        return -EPROTO;
    }
    while (x->taken < taken) {
        if (!HOLDS(&s->bug, x->count > 0)) {
            return -EPROTO;
        }
        take(s, x, &acked);
    }
    x->open = false;
    lane_empty(s, x);
    return 0;
}

int sender_on_report(struct sender *s, struct mono now, const struct lane_report *r)
{
    struct comm *c = sender_comm_find(s, r->comm);

    (void)now;
    if (r->comm == LANE_COMM_NONE || c == NULL) {
        return 0; /* about lanes, or late */
    }
    /* Placed beyond what was begun is a peer that isn't ours; so is posted below placed. */
    if (r->placed > c->count || r->posted < r->placed) {
        return -EPROTO;
    }
    if (!c->confirmed || (int32_t)(r->sequence - c->sequence) > 0) {
        c->sequence = r->sequence;
        c->granted = r->granted;
    }
    c->confirmed = true;
    c->posted = r->posted > c->posted ? r->posted : c->posted;
    for (; c->placed < r->placed; c->placed++) {
        struct message *m = sender_message(c, c->placed);
        if (!HOLDS(&s->bug, m != NULL) || m->fresh == 0 || m->fresh < m->chunks) {
            return -EPROTO; /* not even sent whole */
        }
        message_end(s, c, m);
        s->undone++;
        c->cursor = c->cursor > c->placed ? c->cursor : c->placed + 1;
    }
    return 0;
}

int sender_on_progress(struct sender *s, struct mono now, uint32_t number, uint64_t placed,
                       uint64_t posted, uint64_t granted)
{
    const struct comm *c = sender_comm_find(s, number);

    return c == NULL
               ? 0
               : sender_on_report(
                     s, now,
                     &(struct lane_report){.comm = number,
                                           .sequence = c->sequence,
                                           .placed = placed,
                                           .posted = posted,
                                           .granted = granted > c->granted ? granted : c->granted});
}

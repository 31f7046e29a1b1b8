/* sender.c: comms and messages of the sending end. sender_chunk.c chooses the next chunk; sender_lane.c has the chunks on
 * lanes. */
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
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        s->lanes[i].load = &s->loads[i];
    }
    s->small = config->slots;
    s->hold = LANE_LARGE_SIZE_MAX;
    s->places = comm_places(config->comms);
    s->comms = calloc(s->places, sizeof(struct out_comm *));
    s->open = calloc(s->places, sizeof(struct out_comm *));
    if (s->comms == NULL || s->open == NULL) {
        sender_free(s);
        return NULL;
    }
    return s;
}

void sender_slots_granted(struct sender *s, uint32_t small, uint32_t large)
{
    if (HOLDS(&s->bug, large <= s->config.large &&
                           small <= s->config.slots - (large > 0 ? s->config.large : 0))) {
        s->small = small;
        s->large = large;
    }
}

void sender_slots_hold(struct sender *s, uint32_t size)
{
    s->hold = size;
}

static void comm_free(struct out_comm *c)
{
    if (c != NULL) {
        for (uint32_t i = 0; i < COMM_WINDOW; i++) {
            free(c->messages[i].sent.more);
            free(c->messages[i].taken.more);
        }
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
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        free(s->lanes[i].entries);
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
        any = s->loads[i].chunks > 0;
    }
    return any;
}

/* ---- comms --------------------------------------------------------------------------------- */

struct out_comm *sender_comm_find(const struct sender *s, uint32_t number)
{
    struct out_comm *c = s->comms[number % s->places];

    return c != NULL && c->number == number ? c : NULL;
}

/* Doubles the places: numbers with different places keep different ones. */
static int more_places(struct sender *s)
{
    const uint32_t places = s->places * 2;
    struct out_comm **open = calloc(places, sizeof(struct out_comm *));
    struct out_comm **comms = calloc(places, sizeof(struct out_comm *));

    if (open == NULL || comms == NULL) {
        free(open);
        free(comms);
        return -ENOMEM;
    }
    memcpy(open, s->open, s->comm_count * sizeof(struct out_comm *));
    free(s->open);
    s->open = open;
    for (uint32_t i = 0; i < s->comm_count; i++) {
        comms[s->open[i]->number % places] = s->open[i];
    }
    free(s->comms);
    s->comms = comms;
    s->places = places;
    return 0;
}

/* Numbers are never reused. A number whose place is taken is skipped, so each comm is at the place of its number. The receiver
 * does not need to know skipped ones. */
int64_t sender_comm_open(struct sender *s, uint32_t group_max)
{
    struct out_comm *c;

    if (group_max == 0 || group_max > COMM_GROUP_MAX) {
        return -EINVAL;
    }
    if (s->comm_count == s->config.comms || s->next_comm >= LANE_COMM_NONE - SET_COMMS_MAX) {
        return -ENOBUFS;
    }
    if (s->comm_count * 2 >= s->places && s->places < s->config.comms && more_places(s) < 0) {
        return -ENOMEM;
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return -ENOMEM;
    }
    if (group_max > 1 || s->config.posts) {
        c->posts = calloc((size_t)COMM_WINDOW * 2 * group_max, sizeof(struct post));
        if (c->posts == NULL) {
            free(c);
            return -ENOMEM;
        }
    }
    while (s->comms[s->next_comm % s->places] != NULL) {
        s->next_comm++;
    }
    c->number = s->next_comm++;
    c->group_max = group_max;
    c->granted = UINT64_MAX;
    s->comms[c->number % s->places] = c;
    c->place = s->comm_count++;
    s->open[c->place] = c;
    return c->number;
}

static void move_to(struct sender *s, struct out_comm *c, uint32_t place)
{
    struct out_comm *other = s->open[place];

    s->open[c->place] = other;
    other->place = c->place;
    s->open[place] = c;
    c->place = place;
}

static void comm_busy(struct sender *s, struct out_comm *c)
{
    if (c->place >= s->busy_count) {
        move_to(s, c, s->busy_count++);
    }
}

static void comm_idle(struct sender *s, struct out_comm *c)
{
    if (c->place < s->busy_count) {
        move_to(s, c, --s->busy_count);
    }
}

uint32_t sender_busy_count(const struct sender *s)
{
    return s->busy_count;
}

uint32_t sender_busy_comm(const struct sender *s, uint32_t index)
{
    return s->open[index]->number;
}

bool sender_comm_confirmed(const struct sender *s, uint32_t number)
{
    const struct out_comm *c = sender_comm_find(s, number);

    return c != NULL && c->confirmed;
}

bool sender_comm_idle(const struct sender *s, uint32_t number)
{
    const struct out_comm *c = sender_comm_find(s, number);

    return c == NULL || c->placed == c->count;
}

bool sender_comm_progress(const struct sender *s, uint32_t number, uint64_t *ret_sent,
                          uint64_t *ret_placed)
{
    const struct out_comm *c = sender_comm_find(s, number);

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

/* The bytes of the message that are still in the pool. */
static uint64_t message_pending(const struct out_message *m)
{
    uint64_t bytes = 0;

    if (m->grid == 0) {
        return m->size;
    }
    for (uint32_t i = m->first_clear; i < m->chunks; i++) {
        bytes += bit_get(&m->sent, i) ? 0 : chunk_length(m, i);
    }
    return bytes;
}

static void message_end(struct sender *s, struct out_comm *c, struct out_message *m)
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
    struct out_comm *c = sender_comm_find(s, number);

    if (c == NULL) {
        return;
    }
    s->undone -= c->placed - c->done;
    for (uint32_t i = 0; i < COMM_WINDOW; i++) {
        struct out_message *m = &c->messages[i];
        m->eager = m->eager && c->peer_closed; /* otherwise the receiver may still hold its slot */
        message_end(s, c, m);
    }
    s->comms[number % s->places] = NULL;
    comm_idle(s, c);
    move_to(s, c, --s->comm_count);
    comm_free(c);
}

void sender_on_peer_close(struct sender *s, uint32_t number)
{
    struct out_comm *c = sender_comm_find(s, number);

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

struct out_message *sender_message(struct out_comm *c, uint64_t number)
{
    struct out_message *m = &c->messages[number % COMM_WINDOW];

    return m->used && m->number == number ? m : NULL;
}

int sender_send(struct sender *s, struct mono now, uint32_t number,
                const struct sender_message *message, uint64_t *ret_message)
{
    struct out_comm *c = sender_comm_find(s, number);

    if (c == NULL || message->size > LANE_MESSAGE_SIZE_MAX) {
        return -EINVAL;
    }
    if (s->bug.condition != NULL) {
        return -EIO;
    }
    if (c->count - c->done >= COMM_WINDOW) {
        return -EAGAIN;
    }
    struct out_message *m = &c->messages[c->count % COMM_WINDOW];
    if (chunk_bits_begin(&m->sent, message->size) < 0 ||
        chunk_bits_begin(&m->taken, message->size) < 0) {
        return -ENOMEM;
    }
    *m = (struct out_message){
        .sent = m->sent,
        .taken = m->taken,
        .used = true,
        .number = c->count,
        .source = message->source,
        .size = message->size,
        .tag = message->tag,
        .cookie = message->cookie,
        .queued = now,
    };
    *ret_message = c->count++;
    comm_busy(s, c);
    s->pending += m->size;
    s->unsent++;
    s->counters.messages++;
    return 0;
}

bool sender_next_done(struct sender *s, struct sender_done *ret_done)
{
    for (uint32_t i = 0; s->undone > 0 && i < s->busy_count; i++) {
        const uint32_t place = (s->done_turn + i) % s->busy_count;
        struct out_comm *c = s->open[place];
        if (c->done == c->placed) {
            continue;
        }
        const struct out_message *m = &c->messages[c->done % COMM_WINDOW];
        *ret_done =
            (struct sender_done){.comm = c->number, .message = m->number, .cookie = m->cookie};
        c->done++;
        s->undone--;
        s->done_turn = place;
        if (c->done == c->count) {
            comm_idle(s, c);
        }
        return true;
    }
    return false;
}

bool sender_source_needed(const struct sender *s, uint32_t number, uint64_t message)
{
    struct out_comm *c = sender_comm_find(s, number);

    return c != NULL && message >= c->placed && sender_message(c, message) != NULL;
}

bool sender_source_moved(struct sender *s, uint32_t number, uint64_t message, const uint8_t *source)
{
    struct out_comm *c = sender_comm_find(s, number);
    struct out_message *m = c != NULL ? sender_message(c, message) : NULL;

    if (m == NULL) {
        return false;
    }
    m->source = source;
    return true;
}

bool sender_placed(const struct sender *s, uint32_t number, uint64_t message)
{
    const struct out_comm *c = sender_comm_find(s, number);

    return c != NULL && message < c->placed;
}

/* ---- facts from the receiver ----------------------------------------------------------------- */

int sender_on_report(struct sender *s, struct mono now, const struct lane_report *r)
{
    struct out_comm *c = sender_comm_find(s, r->comm);

    (void)now;
    if (r->comm == LANE_COMM_NONE || c == NULL) {
        return 0; /* a report about lanes, or an old one */
    }
    /* a peer that has placed messages that were never begun is not a valid one; nor is one with posted below placed */
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
        struct out_message *m = sender_message(c, c->placed);
        if (!HOLDS(&s->bug, m != NULL) || m->fresh == 0 || m->fresh < m->chunks) {
            return -EPROTO; /* it was not even sent completely */
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
    const struct out_comm *c = sender_comm_find(s, number);

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

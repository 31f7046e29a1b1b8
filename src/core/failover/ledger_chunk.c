/* ledger_chunk.c: decides where the bytes of a chunk go, and when the chunk counts. Each turn decides anew from the ledger's
 * state: a lane only keeps what it is reading, and whether it holds the claim. */
#include <string.h>

#include "core/failover/ledger_internal.h"

/* A frame that no sender of ours sends, and that no damage can produce. */
static enum ledger_verdict nonsense(struct ledger *l)
{
    l->nonsense = true;
    (void)bug_noted(&l->bug, "the peer says once what can't be", __FILE__, __LINE__);
    return LEDGER_BROKEN;
}

/* A forbidden frame. Once it may be damage that a checksum missed: the lane is closed. Twice for one message means that the peer
 * isn't a valid one. */
static enum ledger_verdict refuse(struct ledger *l, uint32_t comm, uint64_t message)
{
    struct refused *r = &l->refused;

    l->counters.refused++;
    if (r->count == 0 || r->comm != comm || r->message != message) {
        *r = (struct refused){.comm = comm, .message = message};
    }
    r->count++;
    return r->count < 2 ? LEDGER_LANE_DOWN : nonsense(l);
}

void ledger_chunk_forget(struct ledger *l, uint32_t lane)
{
    struct in_lane *x = &l->lanes[lane];

    if (x->place == READING_SLOT) {
        for (uint32_t i = 0; i < l->config.slots; i++) {
            if (l->slots[i].state == SLOT_FILLING && l->slots[i].lane == (int32_t)lane) {
                slot_become(l, &l->slots[i], SLOT_EMPTY);
            }
        }
    }
    x->place = READING_NONE;
}

static bool same_chunk(const struct lane_chunk *a, const struct lane_chunk *b)
{
    return a->comm == b->comm && a->message == b->message && a->offset == b->offset;
}

static bool claimed(const struct ledger *l, const struct lane_chunk *chunk)
{
    for (uint32_t lanes = l->lanes_open; lanes != 0; lanes &= lanes - 1) {
        const struct in_lane *x = &l->lanes[__builtin_ctz(lanes)];
        if (x->place == READING_BUFFER && same_chunk(&x->chunk, chunk)) {
            return true;
        }
    }
    return false;
}

static bool is_set(const struct in_message *m, const struct lane_chunk *chunk)
{
    const uint32_t index = chunk->offset >> chunk->grid;

    return bit_get(&m->bits, index);
}

/* The posted buffer for the chunk; NULL: its message is done. */
static struct in_message *buffer_of(struct in_comm *c, const struct lane_chunk *chunk)
{
    if (ledger_message_done(c, chunk->message)) {
        return NULL;
    }
    struct in_message *m = ledger_message(c, chunk->message);
    return m != NULL ? ledger_message(c, m->first + chunk->buffer) : NULL;
}

/* The first chunk of a message fixes how it is cut and, in a group, which buffer it fills. */
static bool fits(struct in_comm *c, struct in_message *m, const struct lane_chunk *chunk)
{
    if (m->seen) {
        return m->sender_message == chunk->message && m->grid == chunk->grid &&
               m->got_size == chunk->size;
    }
    if (chunk->size > m->size || (c->group_max > 1 && chunk->tag != m->tag)) {
        return false;
    }
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct in_message *other = &c->messages[(m->first + i) % c->capacity];
        if (other->seen && other->sender_message == chunk->message) {
            return false;
        }
    }
    m->seen = true;
    m->sender_message = chunk->message;
    m->grid = chunk->grid;
    m->got_size = chunk->size;
    m->chunks = m->left = lane_chunk_count(chunk->size, chunk->grid);
    return true;
}

/* True if its first chunk shows that the message is larger than the waiting receive. */
static bool is_misfit(const struct in_comm *c, const struct in_message *m,
                      const struct lane_chunk *chunk)
{
    return !m->seen && chunk->size > m->size && (c->group_max == 1 || chunk->tag == m->tag);
}

/* True if that bounce slot exists and the whole message fits into it. */
static bool slot_holds(const struct ledger *l, const struct lane_chunk *chunk)
{
    const bool large = chunk->slot + l->config.large >= l->config.slots;

    return chunk->slot < l->config.slots && chunk->length == chunk->size &&
           chunk->size <= (large ? l->slots_hold : LANE_EAGER_SIZE_MAX);
}

/* An eager chunk without a posted receive. */
static enum ledger_verdict begin_early(struct ledger *l, struct in_comm *c, uint32_t lane,
                                       const struct lane_chunk *chunk)
{
    struct in_lane *x = &l->lanes[lane];
    struct slot *s = ledger_slot_of(l, c->number, chunk->message);

    if (c->group_max != 1 || !slot_holds(l, chunk) || chunk->message - c->posted >= COMM_WINDOW) {
        return refuse(l, chunk->comm, chunk->message);
    }
    if (s == NULL) {
        s = &l->slots[chunk->slot];
        /* the sender may reuse a slot only after its message was placed */
        if (s->state != SLOT_EMPTY) {
            return refuse(l, chunk->comm, chunk->message);
        }
        if (l->config.fenced) {
            x->place = READING_STAGING;
            return LEDGER_OK;
        }
        *s = (struct slot){.comm = c->number,
                           .message = chunk->message,
                           .size = chunk->size,
                           .lane = (int32_t)lane};
        slot_become(l, s, SLOT_FILLING);
        x->place = READING_SLOT;
        return LEDGER_OK;
    }
    if (s != &l->slots[chunk->slot] || s->size != chunk->size) {
        return refuse(l, chunk->comm, chunk->message);
    }
    x->place = s->state == SLOT_FULL ? READING_BIN : READING_STAGING;
    return LEDGER_OK;
}

static enum ledger_verdict check_header(struct ledger *l, uint32_t lane, uint32_t epoch,
                                        const struct lane_chunk *chunk)
{
    if (l->bug.condition != NULL) {
        return LEDGER_BROKEN;
    }
    if (lane >= LANE_MAX || !l->lanes[lane].open || l->lanes[lane].epoch != epoch) {
        return LEDGER_LANE_DOWN; /* late: that connection is over */
    }
    if (chunk->lane != lane || chunk->epoch != epoch) {
        return refuse(l, chunk->comm, chunk->message);
    }
    l->counters.resent += (chunk->flags & LANE_CHUNK_RESENT) != 0;
    return LEDGER_OK;
}

enum ledger_verdict ledger_begin(struct ledger *l, struct mono now, uint32_t lane, uint32_t epoch,
                                 const struct lane_chunk *chunk, struct ledger_target *ret_target)
{
    enum ledger_verdict verdict = check_header(l, lane, epoch, chunk);
    struct in_message *m;

    if (verdict != LEDGER_OK) {
        return verdict;
    }
    struct in_lane *x = &l->lanes[lane];
    if (!HOLDS(&l->bug, x->place == READING_NONE)) {
        return LEDGER_BROKEN;
    }
    struct in_comm *c = ledger_comm_find(l, chunk->comm);
    if (c == NULL && !ledger_comm_was(l, chunk->comm)) {
        return refuse(l, chunk->comm, chunk->message);
    }
    if (c == NULL || c->misfit) {
        x->place = READING_BIN;
    } else if (chunk->message >= c->posted) {
        verdict = chunk->flags & LANE_CHUNK_EAGER ? begin_early(l, c, lane, chunk)
                                                  : refuse(l, chunk->comm, chunk->message);
    } else {
        m = buffer_of(c, chunk);
        if (m == NULL && !ledger_message_done(c, chunk->message)) {
            verdict = refuse(l, chunk->comm, chunk->message); /* the group has no such buffer */
        } else if (m == NULL) {
            x->place = READING_BIN;
        } else if (is_misfit(c, m, chunk)) {
            ledger_misfit_note(l, c, m, chunk->size);
            x->place = READING_BIN;
        } else if (!fits(c, m, chunk)) {
            verdict = refuse(l, chunk->comm, chunk->message);
        } else if (is_set(m, chunk)) {
            x->place = READING_BIN;
        } else {
            x->place = m->staged || l->config.fenced || claimed(l, chunk) ? READING_STAGING
                                                                          : READING_BUFFER;
        }
    }
    if (verdict != LEDGER_OK) {
        return verdict;
    }
    x->chunk = *chunk;
    x->got = 0;
    if (c != NULL && c->repeat_at.ns != INT64_MAX) {
        c->repeat = l->config.report_repeat;
        c->repeat_at = mono_add(now, c->repeat);
    }
    return ledger_target(l, lane, epoch, ret_target);
}

/* Checks the lane's destination for changes since the last turn: it may only change to the bin. */
static void look_again(struct ledger *l, uint32_t lane)
{
    struct in_lane *x = &l->lanes[lane];
    struct in_comm *c = ledger_comm_find(l, x->chunk.comm);
    const struct in_message *m;
    const struct slot *s;

    if (x->place == READING_BIN) {
        return;
    }
    if (c == NULL || c->misfit || ledger_message_done(c, x->chunk.message)) {
        x->place = READING_BIN;
        return;
    }
    s = x->chunk.flags & LANE_CHUNK_EAGER ? ledger_slot_of(l, c->number, x->chunk.message) : NULL;
    if (x->place == READING_SLOT) {
        if (s == NULL || s->state != SLOT_FILLING || s->lane != (int32_t)lane) {
            x->place = READING_BIN;
        }
        return;
    }
    m = buffer_of(c, &x->chunk);
    if ((m != NULL && m->seen && is_set(m, &x->chunk)) || (s != NULL && s->state == SLOT_FULL)) {
        x->place = READING_BIN;
    }
}

static enum ledger_verdict check_reading(struct ledger *l, uint32_t lane, uint32_t epoch)
{
    if (l->bug.condition != NULL) {
        return LEDGER_BROKEN;
    }
    if (lane >= LANE_MAX || !l->lanes[lane].open || l->lanes[lane].epoch != epoch) {
        return LEDGER_LANE_DOWN;
    }
    return HOLDS(&l->bug, l->lanes[lane].place != READING_NONE) ? LEDGER_OK : LEDGER_BROKEN;
}

enum ledger_verdict ledger_target(struct ledger *l, uint32_t lane, uint32_t epoch,
                                  struct ledger_target *ret_target)
{
    static const enum ledger_place places[] = {[READING_BUFFER] = LEDGER_BUFFER,
                                               [READING_STAGING] = LEDGER_STAGING,
                                               [READING_SLOT] = LEDGER_SLOT,
                                               [READING_BIN] = LEDGER_BIN};
    const enum ledger_verdict verdict = check_reading(l, lane, epoch);

    if (verdict != LEDGER_OK) {
        return verdict;
    }
    look_again(l, lane);
    struct in_lane *x = &l->lanes[lane];
    *ret_target = (struct ledger_target){.place = places[x->place],
                                         .slot = x->chunk.slot,
                                         .at = x->got,
                                         .left = x->chunk.length - x->got};
    if (x->place == READING_BUFFER) {
        const struct in_message *m = buffer_of(ledger_comm_find(l, x->chunk.comm), &x->chunk);
        if (!HOLDS(&l->bug, m != NULL && m->seen &&
                                (uint64_t)x->chunk.offset + x->chunk.length <= m->size)) {
            return LEDGER_BROKEN;
        }
        ret_target->to = m->data + x->chunk.offset + x->got;
    }
    return LEDGER_OK;
}

enum ledger_verdict ledger_got(struct ledger *l, uint32_t lane, uint32_t epoch, uint32_t bytes)
{
    const enum ledger_verdict verdict = check_reading(l, lane, epoch);

    if (verdict != LEDGER_OK) {
        return verdict;
    }
    if (!HOLDS(&l->bug, bytes <= l->lanes[lane].chunk.length - l->lanes[lane].got)) {
        return LEDGER_BROKEN;
    }
    l->lanes[lane].got += bytes;
    return LEDGER_OK;
}

/* ---- complete chunks ------------------------------------------------------------------------- */

/* A verified eager chunk of a message without a posted receive: it waits in its slot. */
static enum ledger_verdict settle_early(struct ledger *l, const struct in_lane *x,
                                        struct ledger_copy *copy)
{
    struct slot *s = ledger_slot_of(l, x->chunk.comm, x->chunk.message);

    if (s == NULL) { /* the lane that filled the slot went down: this lane takes it over */
        s = &l->slots[x->chunk.slot];
        if (s->state != SLOT_EMPTY) { /* and the sender has reused it for another message since */
            return refuse(l, x->chunk.comm, x->chunk.message);
        }
        *s = (struct slot){
            .comm = x->chunk.comm, .message = x->chunk.message, .size = x->chunk.size};
    }
    if (x->place == READING_STAGING) {
        *copy = (struct ledger_copy){.wanted = x->chunk.length > 0,
                                     .staging = true,
                                     .lane = (uint8_t)x->chunk.lane,
                                     .slot = x->chunk.slot,
                                     .size = x->chunk.length};
    }
    slot_become(l, s, SLOT_FULL);
    l->counters.eager_early++;
    return LEDGER_OK;
}

static enum ledger_verdict settle(struct ledger *l, struct in_lane *x, struct in_comm *c,
                                  struct ledger_copy *copy)
{
    if (x->chunk.message >= c->posted) {
        return settle_early(l, x, copy);
    }
    struct in_message *m = buffer_of(c, &x->chunk);
    /* a receive was posted since, and is smaller than the early message */
    if (m != NULL && is_misfit(c, m, &x->chunk)) {
        ledger_misfit_note(l, c, m, x->chunk.size);
        ledger_chunk_forget(l, (uint32_t)(x - l->lanes));
        return LEDGER_OK;
    }
    if (m == NULL || !fits(c, m, &x->chunk)) {
        return refuse(l, x->chunk.comm, x->chunk.message);
    }
    if (x->place != READING_BUFFER) {
        *copy = (struct ledger_copy){.wanted = x->chunk.length > 0,
                                     .ordered = m->staged,
                                     .staging = x->place == READING_STAGING,
                                     .lane = (uint8_t)x->chunk.lane,
                                     .slot = x->chunk.slot,
                                     .to = m->data + x->chunk.offset,
                                     .size = x->chunk.length};
        l->counters.staged += x->place == READING_STAGING;
    }
    struct slot *s =
        x->chunk.flags & LANE_CHUNK_EAGER ? ledger_slot_of(l, c->number, x->chunk.message) : NULL;
    if (s != NULL) { /* the lane that fills it discards the rest from now on */
        slot_become(l, s, SLOT_EMPTY);
    }
    ledger_chunk_set(l, c, m, x->chunk.offset >> x->chunk.grid, x->chunk.length);
    return l->bug.condition != NULL ? LEDGER_BROKEN : LEDGER_OK;
}

enum ledger_verdict ledger_end(struct ledger *l, struct mono now, uint32_t lane, uint32_t epoch,
                               bool crc_fits, struct ledger_copy *ret_copy)
{
    enum ledger_verdict verdict = check_reading(l, lane, epoch);
    struct ledger_copy copy = {.wanted = false};

    if (verdict != LEDGER_OK) {
        return verdict;
    }
    struct in_lane *x = &l->lanes[lane];
    if (!HOLDS(&l->bug, x->got == x->chunk.length)) {
        return LEDGER_BROKEN;
    }
    look_again(l, lane);
    struct in_comm *c = ledger_comm_find(l, x->chunk.comm);
    if (x->place == READING_BIN) {
        l->counters.binned++;
        if (c != NULL) { /* the sender doesn't know yet: the report was lost */
            c->news = l->news = true;
        }
    } else if (!crc_fits) {
        l->counters.damaged++;
        ledger_chunk_forget(l, lane);
        return LEDGER_LANE_DOWN;
    } else {
        verdict = settle(l, x, c, &copy);
        if (verdict != LEDGER_OK) {
            ledger_chunk_forget(l, lane);
            return verdict;
        }
    }
    x->place = READING_NONE;
    x->taken++;
    if (c != NULL) {
        c->lane = (int)lane;
    }
    ledger_report_chunk(l, now, lane, x->chunk.length);
    *ret_copy = copy;
    return LEDGER_OK;
}

/* ---- queue pairs ----------------------------------------------------------------------------- */

/* The bytes are where the sender put them; it sends this chunk on one queue pair at a time. */
static enum ledger_verdict written(struct ledger *l, struct in_lane *x, struct ledger_copy *copy)
{
    struct in_comm *c = ledger_comm_find(l, x->chunk.comm);
    struct slot *s;

    if (c == NULL) {
        return ledger_comm_was(l, x->chunk.comm) ? LEDGER_OK
                                                 : refuse(l, x->chunk.comm, x->chunk.message);
    }
    if (x->chunk.message >= c->posted) {
        s = &l->slots[x->chunk.slot];
        if (!(x->chunk.flags & LANE_CHUNK_EAGER) || c->group_max != 1 ||
            !slot_holds(l, &x->chunk) || s->state != SLOT_EMPTY) {
            return refuse(l, x->chunk.comm, x->chunk.message);
        }
        *s = (struct slot){
            .comm = x->chunk.comm, .message = x->chunk.message, .size = x->chunk.size};
        x->place = READING_SLOT;
        return settle_early(l, x, copy);
    }
    struct in_message *m = buffer_of(c, &x->chunk);
    if (m == NULL || (m->seen && is_set(m, &x->chunk))) {
        return nonsense(l); /* its NIC wrote where it must not any more: worse than a closed lane */
    }
    x->place = x->chunk.flags & LANE_CHUNK_EAGER ? READING_SLOT : READING_BUFFER;
    return settle(l, x, c, copy);
}

enum ledger_verdict ledger_on_written(struct ledger *l, struct mono now, uint32_t lane,
                                      uint32_t epoch, const struct lane_chunk *chunk, bool crc_fits,
                                      struct ledger_copy *ret_copy)
{
    enum ledger_verdict verdict = check_header(l, lane, epoch, chunk);
    struct ledger_copy copy = {.wanted = false};

    if (verdict != LEDGER_OK) {
        return verdict;
    }
    struct in_lane *x = &l->lanes[lane];
    if (!HOLDS(&l->bug, x->way == LEDGER_WRITES && x->place == READING_NONE)) {
        return LEDGER_BROKEN;
    }
    if (!crc_fits) {
        l->counters.damaged++;
        return LEDGER_LANE_DOWN;
    }
    x->chunk = *chunk;
    verdict = written(l, x, &copy);
    x->place = READING_NONE;
    if (verdict != LEDGER_OK) {
        return verdict;
    }
    x->taken++;
    ledger_report_chunk(l, now, lane, chunk->length);
    *ret_copy = copy;
    return LEDGER_OK;
}

/* ledger.c: the receiver's record: life of lanes and comms, receives, chunks. Reports to the sender: ledger_report.c. */
#include "core/failover/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/failover/ledger_internal.h"

#define ALL_BELOW(count) ((count) == 64 ? UINT64_MAX : (1ULL << (count)) - 1)

/* ---- life ---------------------------------------------------------------------------------- */

struct ledger *ledger_new(const struct ledger_config *config)
{
    struct ledger *l;

    if (config->slots > LANE_EAGER_SLOTS_MAX || config->large > config->slots ||
        config->comms == 0 || config->comms > SET_COMMS_MAX) {
        return NULL;
    }
    l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return NULL;
    }
    l->config = *config;
    l->slots_hold = LANE_LARGE_SIZE_MAX;
    ledger_report_init(l);
    l->places = comm_places(config->comms);
    l->comms = calloc(l->places, sizeof(struct in_comm *));
    l->open = calloc(l->places, sizeof(struct in_comm *));
    if (l->comms == NULL || l->open == NULL) {
        ledger_free(l);
        return NULL;
    }
    return l;
}

void ledger_fence(struct ledger *l)
{
    l->config.fenced = true;
}

void ledger_slots_hold(struct ledger *l, uint32_t size)
{
    l->slots_hold = size;
}

static void comm_free(struct in_comm *c)
{
    for (uint32_t i = 0; i < c->capacity; i++) {
        free(c->messages[i].bits.more);
    }
    free(c);
}

void ledger_free(struct ledger *l)
{
    if (l == NULL) {
        return;
    }
    for (uint32_t i = 0; i < l->open_count; i++) {
        comm_free(l->open[i]);
    }
    free(l->comms);
    free(l->open);
    free(l);
}

bool ledger_broken(const struct ledger *l)
{
    return l->bug.condition != NULL;
}

const struct bug_note *ledger_bug(const struct ledger *l)
{
    return l->bug.condition != NULL && !l->nonsense ? &l->bug : NULL;
}

void ledger_counters_get(const struct ledger *l, struct ledger_counters *ret_counters)
{
    *ret_counters = l->counters;
}

/* ---- lanes --------------------------------------------------------------------------------- */

int ledger_lane_open(struct ledger *l, uint32_t lane, uint32_t epoch, enum ledger_way way)
{
    if (lane >= LANE_MAX || (way == LEDGER_WRITES && !l->config.fenced)) {
        return -EINVAL;
    }
    struct in_lane *x = &l->lanes[lane];
    if (epoch <= x->epoch || epoch < x->barred) {
        return -ESTALE;
    }
    if (x->open) {
        return -EBUSY;
    }
    *x = (struct in_lane){
        .open = true, .epoch = epoch, .way = way, .barred = epoch, .unreported_since = MONO_NEVER};
    l->lanes_open |= 1u << lane;
    ledger_fence_heard(l, lane);
    ledger_report_all(l); /* reports without any open lane were lost */
    return 0;
}

void ledger_lane_down(struct ledger *l, uint32_t lane, uint32_t epoch)
{
    if (lane >= LANE_MAX || epoch != l->lanes[lane].epoch || !l->lanes[lane].open) {
        return;
    }
    l->lanes[lane].open = false;
    l->lanes_open &= ~(1u << lane);
    ledger_chunk_forget(l, lane);
    ledger_report_all(l);
    l->lanes[lane].barred = epoch + 1;
    if (l->config.fenced) {
        ledger_fence_tell(l, lane);
    }
}

void ledger_lane_bar(struct ledger *l, uint32_t lane, uint32_t epoch)
{
    if (lane < LANE_MAX && HOLDS(&l->bug, !l->lanes[lane].open) && epoch > l->lanes[lane].barred) {
        l->lanes[lane].barred = epoch;
    }
}

void ledger_lane_heard(struct ledger *l, uint32_t lane, uint32_t epoch, enum lane_state state)
{
    if (lane >= LANE_MAX || !l->config.fenced || l->lanes[lane].open ||
        epoch < l->lanes[lane].epoch) {
        return;
    }
    struct in_lane *x = &l->lanes[lane];
    if (state == LANE_CLOSED ||
        (state != LANE_CONNECTING && state != LANE_DOWN && epoch >= x->barred)) {
        ledger_fence_heard(l, lane);
    } else if (state == LANE_DOWN && epoch >= x->barred) {
        x->barred = epoch + 1;
        ledger_fence_tell(l, lane);
    }
}

uint64_t ledger_lane_taken(const struct ledger *l, uint32_t lane, uint32_t *ret_epoch)
{
    if (lane >= LANE_MAX) {
        return 0;
    }
    if (ret_epoch != NULL) {
        *ret_epoch = l->lanes[lane].epoch;
    }
    return l->lanes[lane].taken;
}

/* ---- comms --------------------------------------------------------------------------------- */

struct in_comm *ledger_comm_find(const struct ledger *l, uint32_t number)
{
    /* numbers grow, so most comms are at the place of their number */
    for (uint32_t i = 0; i < l->places; i++) {
        struct in_comm *c = l->comms[(number + i) % l->places];
        if (c != NULL && c->number == number) {
            return c;
        }
        if (c == NULL && !l->displaced) {
            return NULL;
        }
    }
    return NULL;
}

/* True if that number was ever opened. Below the floor, all were. */
bool ledger_comm_was(const struct ledger *l, uint32_t number)
{
    if (number < l->comm_floor) {
        return true;
    }
    return number - l->comm_floor < COMM_AHEAD &&
           (l->opened[number % COMM_AHEAD / 64] >> number % 64 & 1);
}

/* Numbers that the sender skipped, or gave up before its OPEN, are never opened: the floor passes them. */
static void comm_note(struct ledger *l, uint32_t number)
{
    if (number - l->comm_floor >= 2 * COMM_AHEAD) {
        memset(l->opened, 0, sizeof(l->opened));
        l->comm_floor = number - COMM_AHEAD + 1;
    }
    for (; number - l->comm_floor >= COMM_AHEAD; l->comm_floor++) {
        l->opened[l->comm_floor % COMM_AHEAD / 64] &= ~(1ULL << l->comm_floor % 64);
    }
    l->opened[number % COMM_AHEAD / 64] |= 1ULL << number % 64;
    while (l->opened[l->comm_floor % COMM_AHEAD / 64] >> l->comm_floor % 64 & 1) {
        l->opened[l->comm_floor % COMM_AHEAD / 64] &= ~(1ULL << l->comm_floor % 64);
        l->comm_floor++;
    }
}

/* Puts the comm at its number's place, or at the next free one; there is one. */
static void put(struct ledger *l, struct in_comm *c)
{
    uint32_t place = c->number % l->places;

    while (l->comms[place] != NULL) {
        place = (place + 1) % l->places;
        l->displaced = true;
    }
    l->comms[place] = c;
}

static int more_places(struct ledger *l)
{
    const uint32_t places = l->places * 2;
    struct in_comm **open = calloc(places, sizeof(struct in_comm *));
    struct in_comm **comms = calloc(places, sizeof(struct in_comm *));

    if (open == NULL || comms == NULL) {
        free(open);
        free(comms);
        return -ENOMEM;
    }
    memcpy(open, l->open, l->open_count * sizeof(struct in_comm *));
    free(l->open);
    l->open = open;
    free(l->comms);
    l->comms = comms;
    l->places = places;
    l->displaced = false;
    for (uint32_t i = 0; i < l->open_count; i++) {
        put(l, l->open[i]);
    }
    return 0;
}

int ledger_comm_open(struct ledger *l, uint32_t number, uint32_t group_max)
{
    struct in_comm *c;
    const uint32_t capacity = COMM_WINDOW * group_max;

    if (group_max == 0 || group_max > COMM_GROUP_MAX || number == LANE_COMM_NONE) {
        return -EINVAL;
    }
    if (ledger_comm_was(l, number)) {
        return -EALREADY;
    }
    if (l->open_count == l->config.comms) {
        return -ENOBUFS;
    }
    if (l->open_count * 2 >= l->places && l->places < l->config.comms && more_places(l) < 0) {
        return -ENOMEM;
    }
    c = calloc(1, sizeof(*c) + capacity * sizeof(struct in_message));
    if (c == NULL) {
        return -ENOMEM;
    }
    c->number = number;
    c->group_max = group_max;
    c->capacity = capacity;
    c->window = UINT64_MAX;
    c->granted = UINT64_MAX;
    c->news = true;
    c->repeat_at = MONO_NEVER;
    c->lane = -1;
    put(l, c);
    c->place = l->open_count++;
    l->open[c->place] = c;
    comm_note(l, number);
    l->news = true;
    return 0;
}

static void empty_slots(struct ledger *l, uint32_t number)
{
    for (uint32_t k = 0; k < LANE_EAGER_SLOTS_MAX; k++) {
        if (l->slots[k].state != SLOT_EMPTY && l->slots[k].comm == number) {
            slot_become(l, &l->slots[k], SLOT_EMPTY);
        }
    }
}

void ledger_comm_close(struct ledger *l, uint32_t number)
{
    for (uint32_t i = 0; i < l->places; i++) {
        if (l->comms[i] == NULL || l->comms[i]->number != number) {
            continue;
        }
        empty_slots(l, number);
        l->open[l->comms[i]->place] = l->open[--l->open_count];
        l->open[l->comms[i]->place]->place = l->comms[i]->place;
        comm_free(l->comms[i]);
        l->comms[i] = NULL;
        l->displaced = true; /* others may be beyond the gap */
        return;
    }
}

bool ledger_slots_used(const struct ledger *l)
{
    return l->slots_used != 0;
}

bool ledger_comm_idle(const struct ledger *l, uint32_t number)
{
    const struct in_comm *c = ledger_comm_find(l, number);

    return c == NULL || c->placed == c->posted;
}

bool ledger_comm_progress(const struct ledger *l, uint32_t number, uint64_t *ret_placed,
                          uint64_t *ret_posted)
{
    const struct in_comm *c = ledger_comm_find(l, number);

    if (c == NULL) {
        return false;
    }
    if (ret_placed != NULL) {
        *ret_placed = c->placed;
    }
    if (ret_posted != NULL) {
        *ret_posted = c->posted;
    }
    return true;
}

/* ---- receives ------------------------------------------------------------------------------ */

/* Buffers of a group are filled in any order, and messages complete in any order: done_mask is by message. */
static bool is_complete(const struct in_comm *c, uint64_t message)
{
    const struct in_message *m = &c->messages[message % c->capacity];
    const struct in_message *first = &c->messages[m->first % c->capacity];

    return first->done_mask >> (message - m->first) & 1;
}

/* The entry of that number; NULL: not posted, or done and its entry reused. */
struct in_message *ledger_message(struct in_comm *c, uint64_t number)
{
    struct in_message *m = &c->messages[number % c->capacity];

    return number < c->posted && m->number == number && m->group_count != 0 ? m : NULL;
}

bool ledger_message_done(struct in_comm *c, uint64_t number)
{
    return number < c->placed || (ledger_message(c, number) != NULL && is_complete(c, number));
}

struct slot *ledger_slot_of(struct ledger *l, uint32_t comm, uint64_t message)
{
    for (uint32_t used = l->slots_used; used != 0; used &= used - 1) {
        struct slot *s = &l->slots[__builtin_ctz(used)];
        if (s->comm == comm && s->message == message) {
            return s;
        }
    }
    return NULL;
}

/* A receive completes as a whole; `placed` advances over complete ones. */
static void message_done(struct ledger *l, struct in_comm *c, struct in_message *m)
{
    struct in_message *first = &c->messages[m->first % c->capacity];
    const uint32_t bit = 1u << (m->sender_message - m->first);

    if (!HOLDS(&l->bug, m->first == first->number &&
                            m->sender_message - m->first < m->group_count && !m->complete &&
                            !(first->done_mask & bit))) {
        return;
    }
    m->complete = true;
    first->done_mask |= bit;
    c->news = l->news = true;
    while (c->placed < c->posted && is_complete(c, c->placed)) {
        c->placed++;
    }
    if (first->done_mask != (1u << first->group_count) - 1) {
        return;
    }
    if (!HOLDS(&l->bug, c->done_count < COMM_WINDOW && c->in_flight > 0)) {
        return;
    }
    struct done *d = &c->done[(c->done_head + c->done_count++) % COMM_WINDOW];
    *d = (struct done){.cookie = first->cookie, .count = first->group_count};
    for (uint32_t i = 0; i < first->group_count; i++) {
        d->sizes[i] = c->messages[(m->first + i) % c->capacity].got_size;
    }
    c->in_flight--;
    l->done_total++;
}

static int post_check(const struct ledger *l, const struct in_comm *c,
                      const struct ledger_receive *receive)
{
    if (l->bug.condition != NULL) {
        return -EIO;
    }
    if (c == NULL || receive->count == 0 || receive->count > c->group_max) {
        return -EINVAL;
    }
    for (uint32_t i = 0; i < receive->count; i++) {
        if (receive->buffers[i].size > LANE_MESSAGE_SIZE_MAX) {
            return -EINVAL;
        }
    }
    /* entries are reused only below `placed`; done requests that were not fetched yet count as in flight */
    if (c->in_flight + c->done_count >= COMM_REQUESTS_MAX ||
        c->posted + receive->count - c->placed > c->capacity) {
        return -EAGAIN;
    }
    return 0;
}

/* A mistake of the program or of its peer: both ends of that comm learn of it, and other comms are not affected. */
void ledger_misfit_note(struct ledger *l, struct in_comm *c, const struct in_message *m,
                        uint32_t size)
{
    if (!c->misfit) {
        l->misfit = (struct ledger_misfit){
            .comm = c->number, .message = m->number, .size = size, .room = m->size};
        l->misfit_news = c->misfit = true;
        empty_slots(l, c->number); /* the sender gets the report and counts the slots as free */
    }
}

bool ledger_next_misfit(struct ledger *l, struct ledger_misfit *ret_misfit)
{
    const bool news = l->misfit_news;

    if (news) {
        *ret_misfit = l->misfit;
    }
    l->misfit_news = false;
    return news;
}

static void comes_whole(struct in_message *m, uint32_t size, uint8_t grid)
{
    m->seen = true;
    m->sender_message = m->number;
    m->grid = grid;
    m->chunks = m->left = 1;
    m->got_size = size;
}

/* The lane that fills the slot continues in the buffer, behind the bytes that it has read. No other lane has the chunk's claim,
 * because until now none could get it. */
static void fill_buffer(struct ledger *l, struct slot *s, struct in_message *m,
                        struct ledger_copy *ret_copy)
{
    struct in_lane *x = &l->lanes[s->lane];

    *ret_copy = (struct ledger_copy){
        .wanted = x->got > 0, .slot = (uint8_t)(s - l->slots), .to = m->data, .size = x->got};
    comes_whole(m, s->size, x->chunk.grid);
    x->place = READING_BUFFER;
    slot_become(l, s, SLOT_EMPTY);
}

/* The message came early. If it is complete, one copy finishes it. */
static int post_early(struct ledger *l, struct in_comm *c, struct in_message *m,
                      struct ledger_copy *ret_copy)
{
    struct slot *s = ledger_slot_of(l, c->number, m->number);

    if (s == NULL || (s->state == SLOT_FILLING && m->staged)) {
        return 0; /* its lane has read half of it and continues in the slot */
    }
    if (s->size > m->size) {
        ledger_misfit_note(l, c, m, s->size);
        return -EMSGSIZE;
    }
    if (s->state == SLOT_FILLING) {
        fill_buffer(l, s, m, ret_copy);
        return 0;
    }
    *ret_copy = (struct ledger_copy){.wanted = s->size > 0,
                                     .ordered = m->staged,
                                     .slot = (uint8_t)(s - l->slots),
                                     .to = m->data,
                                     .size = s->size};
    comes_whole(m, s->size, LANE_CHUNK_SHIFT_MIN);
    slot_become(l, s, SLOT_EMPTY);
    ledger_chunk_set(l, c, m, 0, s->size);
    return 0;
}

int ledger_post(struct ledger *l, struct mono now, uint32_t comm,
                const struct ledger_receive *receive, uint64_t *ret_first,
                struct ledger_copy *ret_copy)
{
    struct in_comm *c = ledger_comm_find(l, comm);
    int r = post_check(l, c, receive);

    for (uint32_t i = 0; r == 0 && i < receive->count; i++) {
        r = chunk_bits_begin(&c->messages[(c->posted + i) % c->capacity].bits,
                             receive->buffers[i].size);
    }
    if (r < 0) {
        return r;
    }
    *ret_copy = (struct ledger_copy){.wanted = false};
    *ret_first = c->posted;
    for (uint32_t i = 0; i < receive->count; i++) {
        struct in_message *m = &c->messages[(c->posted + i) % c->capacity];
        *m = (struct in_message){
            .bits = m->bits,
            .number = c->posted + i,
            .first = c->posted,
            .group_count = (uint8_t)receive->count,
            .index = (uint8_t)i,
            .staged = receive->staged,
            .data = receive->buffers[i].data,
            .size = receive->buffers[i].size,
            .tag = receive->buffers[i].tag,
            .cookie = receive->cookie,
        };
    }
    c->posted += receive->count;
    c->in_flight++;
    c->news = l->news = true;
    if (c->repeat_at.ns == INT64_MAX) {
        c->repeat = l->config.report_repeat;
        c->repeat_at = mono_add(now, c->repeat);
        l->repeat_at = mono_min(l->repeat_at, c->repeat_at);
    }
    if (c->group_max == 1) {
        r = post_early(l, c, ledger_message(c, *ret_first), ret_copy);
    }
    return r;
}

bool ledger_post_frame(const struct ledger *l, uint32_t comm, uint64_t message,
                       struct lane_post *ret_post)
{
    struct in_comm *c = ledger_comm_find(l, comm);
    const struct in_message *m = c != NULL ? ledger_message(c, message) : NULL;

    if (m == NULL || m->seen || m->complete) {
        return false;
    }
    *ret_post = (struct lane_post){.index = m->index,
                                   .count = m->group_count,
                                   .comm = comm,
                                   .first = m->first,
                                   .address = m->staged ? 0 : (uint64_t)(uintptr_t)m->data,
                                   .size = m->size,
                                   .tag = m->tag};
    return true;
}

bool ledger_next_done(struct ledger *l, struct ledger_done *ret_done)
{
    if (l->done_total == 0 || l->bug.condition != NULL) {
        return false;
    }
    for (uint32_t i = 0; i < l->open_count; i++) {
        struct in_comm *c = l->open[(l->done_turn + i) % l->open_count];
        if (c->done_count == 0) {
            continue;
        }
        const struct done *d = &c->done[c->done_head];
        *ret_done = (struct ledger_done){.comm = c->number, .cookie = d->cookie, .count = d->count};
        memcpy(ret_done->sizes, d->sizes, sizeof(d->sizes));
        c->done_head = (c->done_head + 1) % COMM_WINDOW;
        c->done_count--;
        l->done_total--;
        l->done_turn = c->place;
        return true;
    }
    l->done_total = 0; /* those were of closed comms */
    return false;
}

/* ---- a chunk is set -------------------------------------------------------------------------- */

/* The only place where a bit goes from 0 to 1. */
void ledger_chunk_set(struct ledger *l, struct in_comm *c, struct in_message *m, uint32_t index,
                      uint32_t length)
{
    if (!HOLDS(&l->bug, index < m->chunks && m->left > 0 && !bit_get(&m->bits, index))) {
        return;
    }
    bit_set(&m->bits, index);
    m->left--;
    c->unique += length;
    l->counters.chunks++;
    l->counters.bytes += length;
    ledger_window_update(l, c);
    if (m->left == 0) {
        for (uint32_t i = 0; i < m->chunks; i += 64) {
            const uint32_t count = m->chunks - i < 64 ? m->chunks - i : 64;
            if (!HOLDS(&l->bug, *chunk_bits_word(&m->bits, i) == ALL_BELOW(count))) {
                return;
            }
        }
        message_done(l, c, m);
    }
}

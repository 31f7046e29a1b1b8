/* lane_world_app.c: the application at both ends: it opens, sends, posts, closes and aborts, and checks what arrives. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lane_world_internal.h"

/* ---- the truth ---------------------------------------------------------------------------------- */

uint8_t world_truth(const struct world *w, uint32_t comm, uint64_t message, uint32_t cell)
{
    return (uint8_t)(hash_u64(((uint64_t)w->here << 40) + comm * 1000ULL + message, cell) %
                     199); /* different from the marks above */
}

uint32_t world_cells_of(uint32_t size)
{
    return (size + CELL - 1) / CELL;
}

static struct traffic *traffic_of(struct world *w, uint32_t number)
{
    for (uint32_t i = 0; i < w->traffic_count; i++) {
        if (w->traffic[i].number == number) {
            return &w->traffic[i];
        }
    }
    return NULL;
}

/* The present content of the source. */
uint8_t world_source(struct world *w, uint32_t comm, uint64_t message, uint32_t cell)
{
    const struct traffic *t = traffic_of(w, comm);

    return t->ended_here || message < t->send_done ? REUSED : world_truth(w, comm, message, cell);
}

/* The message for a posted buffer: the nth message of a tag goes to the nth buffer of that tag. */
static uint32_t message_for(const struct traffic *t, uint32_t place)
{
    const uint32_t first = t->firsts[place];
    uint32_t nth = 0;

    if (t->group_max == 1) {
        return place;
    }
    for (uint32_t i = first; i < place; i++) {
        nth += t->post_tags[i] == t->post_tags[place];
    }
    for (uint32_t i = first; i < first + t->groups[place]; i++) {
        if (t->tags[i] == t->post_tags[place] && nth-- == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* ---- the application ----------------------------------------------------------------------------- */

static void traffic_make(struct world *w, struct traffic *t)
{
    t->count = 4 + world_below(w, MESSAGES - 4);
    for (uint32_t first = 0; first < t->count;) {
        uint32_t n = 1 + world_below(w, t->group_max);
        n = n < t->count - first ? n : t->count - first;
        for (uint32_t i = first; i < first + n; i++) {
            const uint32_t kind = world_below(w, 8);
            t->sizes[i] = kind == 0  ? 0
                          : kind < 4 ? 1 + world_below(w, LANE_EAGER_SIZE_MAX)
                                     : 1 + world_below(w, MESSAGE_MAX);
            t->firsts[i] = first;
            t->groups[i] = n;
            t->tags[i] = (int32_t)world_below(w, 3);
        }
        for (uint32_t i = 0; i < n; i++) { /* posted in another order */
            t->post_tags[first + i] = t->tags[first + (i + 1) % n];
        }
        first += n;
    }
}

void world_comm_open(struct world *w)
{
    struct traffic *t = &w->traffic[w->traffic_count];
    uint32_t open = 0;

    for (uint32_t i = 0; i < w->traffic_count; i++) {
        open += w->traffic[i].open || w->traffic[i].ending;
    }
    if (open == COMMS || w->traffic_count == COMMS_MAX) {
        return;
    }
    *t = (struct traffic){
        .used = true, .open = true, .group_max = world_below(w, 2) ? 1 : w->config.group_max};
    int64_t number = sender_comm_open(w->sender, t->group_max);
    if (number < 0) {
        world_wrong(w, "no comm could be opened");
        return;
    }
    t->number = (uint32_t)number;
    t->lazy = world_below(w, 3) == 0;
    traffic_make(w, t);
    w->traffic_count++;
}

struct traffic *world_any_open(struct world *w)
{
    struct traffic *t = w->traffic_count > 0 ? &w->traffic[world_below(w, w->traffic_count)] : NULL;

    return t != NULL && t->open ? t : NULL;
}

void world_app_open_there(struct world *w)
{
    struct traffic *t = w->traffic_count > 0 ? &w->traffic[world_below(w, w->traffic_count)] : NULL;

    if (t == NULL || (!t->open && !t->opened_there)) {
        return; /* a late OPEN of a comm that was closed long ago is ignored */
    }
    int r = ledger_comm_open(w->ledger, t->number, t->group_max); /* sometimes twice */
    if (r != (t->opened_there ? -EALREADY : 0)) {
        world_wrong(w, "OPEN not answered as it should be");
    }
    t->opened_there = true;
}

void world_app_send(struct world *w)
{
    struct traffic *t = world_any_open(w);
    uint64_t message;

    if (t == NULL || t->sent == t->count) {
        return;
    }
    int r = sender_send(w->sender, w->now, t->number,
                        &(struct sender_message){
                            .size = t->sizes[t->sent], .tag = t->tags[t->sent], .cookie = t->sent},
                        &message);
    if (r == -EAGAIN) {
        return;
    }
    if (r != 0 || message != t->sent) {
        world_wrong(w, "a send was refused");
    }
    t->sent++;
}

static uint32_t buffer_take(struct world *w, uint32_t size)
{
    for (uint32_t i = 0; i < BUFFERS; i++) {
        const uint32_t id = w->buffer_turn++ % BUFFERS;
        struct buffer *b = &w->buffers[id];
        if (b->used) {
            continue;
        }
        for (uint32_t k = 0; b->released && k < CELLS; k++) {
            if (b->cells[k] != RELEASED) {
                world_wrong(w, "memory changed after its receive was done");
            }
        }
        *b = (struct buffer){.used = true, .size = size};
        memset(b->cells, FRESH, CELLS);
        return id;
    }
    world_wrong(w, "the world ran out of buffers");
    return 0;
}

static void buffer_release(struct world *w, uint32_t id)
{
    w->buffers[id].used = false;
    w->buffers[id].released = true;
    memset(w->buffers[id].cells, RELEASED, CELLS);
}

static uint8_t *address_of(uint32_t id)
{
    return (uint8_t *)(uintptr_t)((uint64_t)(id + 1) << BUFFER_SHIFT);
}

uint8_t *world_cells_at(struct world *w, uint64_t address, uint32_t cells)
{
    const uint64_t id = (address >> BUFFER_SHIFT) - 1;
    const uint32_t cell = (uint32_t)(address & ((1u << BUFFER_SHIFT) - 1)) / CELL;
    static uint8_t waste[CHUNK_CELLS];

    if (id >= BUFFERS || cell + cells > CELLS) {
        world_wrong(w, "a write outside of all buffers");
        return waste;
    }
    return w->buffers[id].cells + cell;
}

void world_copy_do(struct world *w, const struct ledger_copy *copy)
{
    const uint8_t *from = copy->staging ? w->staging[copy->lane] : w->slots[copy->slot];
    uint8_t *to;

    if (copy->wanted) {
        to = copy->to != NULL
                 ? world_cells_at(w, (uint64_t)(uintptr_t)copy->to, world_cells_of(copy->size))
                 : w->slots[copy->slot];
        memcpy(to, from, world_cells_of(copy->size));
    }
}

void world_posts_send(struct world *w, struct traffic *t)
{
    struct message_back back = {.post = true};

    for (uint64_t m = 0; m < t->posted; m++) {
        const int lane = world_any_lane_there(w);
        if (lane >= 0 && ledger_post_frame(w->ledger, t->number, m, &back.frame)) {
            world_send_back(w, (uint32_t)lane, &back);
        }
    }
}

void world_app_post(struct world *w)
{
    struct traffic *t = world_any_open(w);
    struct ledger_receive receive = {.staged = world_below(w, 8) == 0 && !is_fenced(w)};
    struct ledger_copy copy;
    uint64_t first;

    if (t == NULL || !t->opened_there || t->posted == t->count ||
        (t->lazy && w->chaos && world_below(w, 15) != 0)) {
        return;
    }
    receive.count = t->groups[t->posted];
    receive.cookie = t->posted;
    for (uint32_t i = 0; i < receive.count; i++) {
        const uint32_t place = t->posted + i;
        const uint32_t size = t->sizes[message_for(t, place)];
        const uint32_t more = world_below(w, 2) ? 0 : world_below(w, MESSAGE_MAX - size + 1);
        t->buffers[place] = buffer_take(w, size + more);
        receive.buffers[i] = (struct ledger_buffer){
            .data = address_of(t->buffers[place]), .size = size + more, .tag = t->post_tags[place]};
    }
    int r = ledger_post(w->ledger, w->now, t->number, &receive, &first, &copy);
    if (r != 0 || first != t->posted) {
        world_wrong(w, "a receive was refused");
        return;
    }
    world_copy_do(w, &copy);
    t->posted += receive.count;
    if (t->group_max > 1 || is_fenced(w)) {
        world_posts_send(w, t);
    }
}

/* A receive is done: its content must be right, and it must be the first time. */
static void receive_check(struct world *w, const struct ledger_done *done)
{
    struct traffic *t = traffic_of(w, done->comm);
    const uint32_t first = (uint32_t)done->cookie;

    if (t == NULL || t->ended_there || first >= t->posted || done->count != t->groups[first] ||
        t->posted_done[first]) {
        world_wrong(w, "a receive that nobody waits for is done");
        return;
    }
    t->posted_done[first] = true;
    for (uint32_t i = 0; i < done->count; i++) {
        const uint32_t message = message_for(t, first + i), size = t->sizes[message];
        const struct buffer *b = &w->buffers[t->buffers[first + i]];
        if (done->sizes[i] != size) {
            world_wrong(w, "a receive has the wrong size");
        }
        for (uint32_t k = 0; k < CELLS; k++) {
            if (b->cells[k] !=
                (k < world_cells_of(size) ? world_truth(w, t->number, message, k) : FRESH)) {
                world_wrong(w, "a receive has wrong bytes");
            }
        }
        t->received[message] = true;
        buffer_release(w, t->buffers[first + i]);
        w->result->receives++;
    }
}

/* True if a message has arrived, although others of its group may be on their way. */
static bool arrived(const struct world *w, const struct traffic *t, uint32_t message)
{
    for (uint32_t place = 0; place < t->posted; place++) {
        const struct buffer *b = &w->buffers[t->buffers[place]];
        if (message_for(t, place) != message) {
            continue;
        }
        for (uint32_t k = 0; k < world_cells_of(t->sizes[message]); k++) {
            if (b->cells[k] != world_truth(w, t->number, message, k)) {
                return false;
            }
        }
        return true;
    }
    return false;
}

void world_dones(struct world *w)
{
    struct ledger_done done;
    struct sender_done sent;

    while (ledger_next_done(w->ledger, &done)) {
        receive_check(w, &done);
    }
    while (sender_next_done(w->sender, &sent)) {
        struct traffic *t = traffic_of(w, sent.comm);
        if (t == NULL || t->ended_here || sent.message != t->send_done ||
            sent.cookie != sent.message) {
            world_wrong(w, "a send is done out of turn");
        } else if (!t->ended_there && !t->received[sent.message] &&
                   !arrived(w, t, (uint32_t)sent.message)) {
            world_wrong(w, "a send is done before its bytes are there");
        } else {
            t->send_done++;
        }
    }
}

/* Each end closes at its own time. Then the application of that end has its memory back. */
static void end_here(struct world *w, struct traffic *t)
{
    sender_comm_close(w->sender, t->number);
    t->ended_here = true;
}

static void end_there(struct world *w, struct traffic *t)
{
    if (t->opened_there) {
        ledger_comm_close(w->ledger, t->number);
    }
    for (uint32_t i = 0; i < t->posted; i++) {
        if (!t->posted_done[t->firsts[i]]) {
            buffer_release(w, t->buffers[i]);
        }
    }
    t->ended_there = true;
}

static void traffic_end(struct world *w, struct traffic *t, bool abort)
{
    t->open = false;
    t->aborted = abort;
    t->ending = true;
    w->result->aborted += abort;
    if (world_below(w, 2)) {
        end_here(w, t);
    } else {
        end_there(w, t);
    }
}

/* The end `from` writes CLOSE about a communicator on which it sends (or receives). The other end reads it, in the half that has
 * this communicator. */
static void close_comes(struct world *w, const struct traffic *t, uint32_t from)
{
    const struct lane_close close = {.flags = halves_close_flag(from == w->here),
                                     .comm = t->number};

    if (world_for(w, !from, halves_of_close(&close)) != w) {
        world_wrong(w, "a CLOSE was taken for one of the other direction");
    }
}

static void tell_sender(struct world *w, const struct traffic *t)
{
    close_comes(w, t, !w->here);
    sender_on_peer_close(w->sender, t->number);
}

/* The other end follows. The receiver's CLOSE reaches the sender. */
static void app_follow(struct world *w)
{
    for (uint32_t i = 0; i < w->traffic_count; i++) {
        struct traffic *t = &w->traffic[i];
        if (!t->ending || world_below(w, 8) != 0) {
            continue;
        }
        if (!t->ended_here) {
            if (world_below(w, 2)) {
                tell_sender(w, t);
            }
            end_here(w, t);
        } else if (!t->ended_there) {
            close_comes(w, t, w->here);
            end_there(w, t);
        } else {
            tell_sender(w, t);
            t->ending = false;
        }
    }
}

void world_app_close(struct world *w)
{
    struct traffic *t = world_any_open(w);

    app_follow(w);
    if (t == NULL) {
        return;
    }
    if (t->send_done == t->count) {
        traffic_end(w, t, false);
    } else if (w->chaos && !is_fenced(w) && world_below(w, 60) == 0) {
        /* An abort resets the lanes with an unfinished frame. */
        for (uint32_t i = 0; i < LANES; i++) {
            const struct conn *c = &w->conns[i];
            if (sender_open(w, i) && c->count > 0 &&
                c->frames[(c->head + c->count - 1) % FRAMES].written <
                    c->frames[(c->head + c->count - 1) % FRAMES].cells) {
                world_sender_down(w, i);
            }
        }
        traffic_end(w, t, true);
    }
}

/* lane_world.c: see lane_world.h. One byte stands for a cell of 512, so that a run costs microseconds; the
 * ledger only does arithmetic with addresses, and ours name a buffer and a place in it. */
#include "lane_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/failover/ledger.h"
#include "core/failover/sender.h"

#define LANES        4
#define CELL         512u
#define MESSAGES     24 /* of one comm */
#define MESSAGE_MAX  (40u << 10)
#define CELLS        (MESSAGE_MAX / CELL)
#define CHUNK_CELLS  32
#define BUFFERS      256
#define FRAMES       32
#define REPORTS      32
#define COMMS        3 /* at a time */
#define COMMS_MAX    12
#define SLOTS        3
#define BUFFER_SHIFT 20
#define FRESH        0x11 /* memory as the application gave it */
#define RELEASED     0xee /* and after it took it back */
#define REUSED       0xdd /* a source after its send is done */

struct frame {
    struct lane_chunk chunk;
    uint32_t cells, written, arrived, read;
    bool begun, header_arrived;
    uint64_t address; /* queue pairs: where the WRITE goes */
    uint8_t data[CHUNK_CELLS];
};
struct message_back {
    bool post, fence; /* a POST; or a report, or the end of (lane, epoch) with its count */
    struct lane_report report;
    struct lane_post frame;
    uint32_t lane, epoch;
    uint64_t taken;
};
/* One connection, (lane, epoch). */
struct conn {
    uint32_t epoch;
    bool sender_open, receiver_open;
    bool cut_there, cut_back; /* nothing passes any more */
    uint32_t head, count;
    struct frame frames[FRAMES];
    uint32_t back_head, back_count;
    struct message_back back[REPORTS];
};
struct traffic {
    bool used, open, aborted; /* open: at both ends */
    bool lazy;                /* posts late */
    bool ending;              /* aborted at one end, not yet at the other */
    bool ended_here, ended_there;
    bool opened_there;
    uint32_t number, group_max, count;
    uint32_t sizes[MESSAGES], firsts[MESSAGES], groups[MESSAGES];
    int32_t tags[MESSAGES], post_tags[MESSAGES];
    uint32_t sent, send_done, posted; /* messages */
    bool received[MESSAGES], posted_done[MESSAGES];
    uint32_t buffers[MESSAGES]; /* by posted place */
};
struct buffer {
    bool used, released;
    uint32_t size;
    uint8_t cells[CELLS];
};
struct world {
    struct lane_world_config config;
    struct prng prng;
    struct mono now;
    struct sender *sender;
    struct ledger *ledger;
    struct conn conns[LANES];
    uint8_t staging[LANES][CHUNK_CELLS];
    uint8_t slots[SLOTS][LANE_EAGER_SIZE_MAX / CELL];
    struct traffic traffic[COMMS_MAX];
    uint32_t traffic_count;
    struct buffer buffers[BUFFERS];
    uint32_t buffer_turn;
    bool chaos;
    struct lane_world_result *result;
};

static void wrong(struct world *w, const char *what)
{
    if (w->result->wrong == NULL) {
        w->result->wrong = what;
    }
}

static uint32_t below(struct world *w, uint32_t bound)
{
    return (uint32_t)prng_below(&w->prng, bound);
}

/* ---- the truth ---------------------------------------------------------------------------------- */

static uint8_t truth(uint32_t comm, uint64_t message, uint32_t cell)
{
    return (uint8_t)(hash_u64(comm * 1000ULL + message, cell) % 199); /* none of the marks above */
}

static uint32_t cells_of(uint32_t size)
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

/* What stands at the source when it is read now. */
static uint8_t source(struct world *w, uint32_t comm, uint64_t message, uint32_t cell)
{
    const struct traffic *t = traffic_of(w, comm);

    return t->ended_here || message < t->send_done ? REUSED : truth(comm, message, cell);
}

/* Which message the posted place must get: the nth message of a tag goes to the nth buffer of that tag. */
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
    t->count = 4 + below(w, MESSAGES - 4);
    for (uint32_t first = 0; first < t->count;) {
        uint32_t n = 1 + below(w, t->group_max);
        n = n < t->count - first ? n : t->count - first;
        for (uint32_t i = first; i < first + n; i++) {
            const uint32_t kind = below(w, 8);
            t->sizes[i] = kind == 0  ? 0
                          : kind < 4 ? 1 + below(w, LANE_EAGER_SIZE_MAX)
                                     : 1 + below(w, MESSAGE_MAX);
            t->firsts[i] = first;
            t->groups[i] = n;
            t->tags[i] = (int32_t)below(w, 3);
        }
        for (uint32_t i = 0; i < n; i++) { /* posted in another order */
            t->post_tags[first + i] = t->tags[first + (i + 1) % n];
        }
        first += n;
    }
}

static void comm_open(struct world *w)
{
    struct traffic *t = &w->traffic[w->traffic_count];
    uint32_t open = 0;
    int64_t number;

    for (uint32_t i = 0; i < w->traffic_count; i++) {
        open += w->traffic[i].open || w->traffic[i].ending;
    }
    if (open == COMMS || w->traffic_count == COMMS_MAX) {
        return;
    }
    *t = (struct traffic){
        .used = true, .open = true, .group_max = below(w, 2) ? 1 : w->config.group_max};
    number = sender_comm_open(w->sender, t->group_max);
    if (number < 0) {
        wrong(w, "no comm could be opened");
        return;
    }
    t->number = (uint32_t)number;
    t->lazy = below(w, 3) == 0;
    traffic_make(w, t);
    w->traffic_count++;
}

static struct traffic *any_open(struct world *w)
{
    struct traffic *t = w->traffic_count > 0 ? &w->traffic[below(w, w->traffic_count)] : NULL;

    return t != NULL && t->open ? t : NULL;
}

static void app_open_there(struct world *w)
{
    struct traffic *t = w->traffic_count > 0 ? &w->traffic[below(w, w->traffic_count)] : NULL;
    int rc;

    if (t == NULL || (!t->open && !t->opened_there)) {
        return; /* an OPEN that comes late, of a comm closed long ago, is no news either */
    }
    rc = ledger_comm_open(w->ledger, t->number, t->group_max); /* twice, now and then */
    if (rc != (t->opened_there ? -EALREADY : 0)) {
        wrong(w, "OPEN not answered as it should be");
    }
    t->opened_there = true;
}

static void app_send(struct world *w)
{
    struct traffic *t = any_open(w);
    uint64_t message;
    int rc;

    if (t == NULL || t->sent == t->count) {
        return;
    }
    rc = sender_send(w->sender, w->now, t->number,
                     &(struct sender_message){
                         .size = t->sizes[t->sent], .tag = t->tags[t->sent], .cookie = t->sent},
                     &message);
    if (rc == -EAGAIN) {
        return;
    }
    if (rc != 0 || message != t->sent) {
        wrong(w, "a send was refused");
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
                wrong(w, "memory changed after its receive was done");
            }
        }
        *b = (struct buffer){.used = true, .size = size};
        memset(b->cells, FRESH, CELLS);
        return id;
    }
    wrong(w, "the world ran out of buffers");
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

static uint8_t *cells_at(struct world *w, uint64_t address, uint32_t cells)
{
    const uint64_t id = (address >> BUFFER_SHIFT) - 1;
    const uint32_t cell = (uint32_t)(address & ((1u << BUFFER_SHIFT) - 1)) / CELL;
    static uint8_t waste[CHUNK_CELLS];

    if (id >= BUFFERS || cell + cells > CELLS) {
        wrong(w, "a write outside of all buffers");
        return waste;
    }
    return w->buffers[id].cells + cell;
}

static void copy_do(struct world *w, const struct ledger_copy *copy)
{
    const uint8_t *from = copy->staging ? w->staging[copy->lane] : w->slots[copy->slot];
    uint8_t *to;

    if (copy->wanted) {
        to = copy->to != NULL ? cells_at(w, (uint64_t)(uintptr_t)copy->to, cells_of(copy->size))
                              : w->slots[copy->slot];
        memcpy(to, from, cells_of(copy->size));
    }
}

static void send_back(struct world *w, uint32_t lane, const struct message_back *message)
{
    struct conn *c = &w->conns[lane];

    if (c->receiver_open && c->back_count < REPORTS) {
        c->back[(c->back_head + c->back_count++) % REPORTS] = *message;
    }
}

static int any_lane_there(struct world *w)
{
    for (uint32_t i = 0, from = below(w, LANES); i < LANES; i++) {
        const uint32_t lane = (from + i) % LANES;
        if (w->conns[lane].receiver_open && w->conns[lane].back_count < REPORTS) {
            return (int)lane;
        }
    }
    return -1;
}

static void posts_send(struct world *w, struct traffic *t)
{
    struct message_back back = {.post = true};

    for (uint64_t m = 0; m < t->posted; m++) {
        const int lane = any_lane_there(w);
        if (lane >= 0 && ledger_post_frame(w->ledger, t->number, m, &back.frame)) {
            send_back(w, (uint32_t)lane, &back);
        }
    }
}

static void app_post(struct world *w)
{
    struct traffic *t = any_open(w);
    struct ledger_receive receive = {.staged = below(w, 8) == 0 && !w->config.queue_pairs};
    struct ledger_copy copy;
    uint64_t first;
    int rc;

    if (t == NULL || !t->opened_there || t->posted == t->count ||
        (t->lazy && w->chaos && below(w, 15) != 0)) {
        return;
    }
    receive.count = t->groups[t->posted];
    receive.cookie = t->posted;
    for (uint32_t i = 0; i < receive.count; i++) {
        const uint32_t place = t->posted + i;
        const uint32_t size = t->sizes[message_for(t, place)];
        const uint32_t more = below(w, 2) ? 0 : below(w, MESSAGE_MAX - size + 1);
        t->buffers[place] = buffer_take(w, size + more);
        receive.buffers[i] = (struct ledger_buffer){
            .data = address_of(t->buffers[place]), .size = size + more, .tag = t->post_tags[place]};
    }
    rc = ledger_post(w->ledger, w->now, t->number, &receive, &first, &copy);
    if (rc != 0 || first != t->posted) {
        wrong(w, "a receive was refused");
        return;
    }
    copy_do(w, &copy);
    t->posted += receive.count;
    if (t->group_max > 1 || w->config.queue_pairs) {
        posts_send(w, t);
    }
}

/* A receive is done: is it what was sent, and for the first time? */
static void receive_check(struct world *w, const struct ledger_done *done)
{
    struct traffic *t = traffic_of(w, done->comm);
    const uint32_t first = (uint32_t)done->cookie;

    if (t == NULL || t->ended_there || first >= t->posted || done->count != t->groups[first] ||
        t->posted_done[first]) {
        wrong(w, "a receive that nobody waits for is done");
        return;
    }
    t->posted_done[first] = true;
    for (uint32_t i = 0; i < done->count; i++) {
        const uint32_t message = message_for(t, first + i), size = t->sizes[message];
        const struct buffer *b = &w->buffers[t->buffers[first + i]];
        if (done->sizes[i] != size) {
            wrong(w, "a receive has the wrong size");
        }
        for (uint32_t k = 0; k < CELLS; k++) {
            if (b->cells[k] != (k < cells_of(size) ? truth(t->number, message, k) : FRESH)) {
                wrong(w, "a receive has wrong bytes");
            }
        }
        t->received[message] = true;
        buffer_release(w, t->buffers[first + i]);
        w->result->receives++;
    }
}

/* One of a group whose other messages are still on their way. */
static bool arrived(struct world *w, const struct traffic *t, uint32_t message)
{
    for (uint32_t place = 0; place < t->posted; place++) {
        const struct buffer *b = &w->buffers[t->buffers[place]];
        if (message_for(t, place) != message) {
            continue;
        }
        for (uint32_t k = 0; k < cells_of(t->sizes[message]); k++) {
            if (b->cells[k] != truth(t->number, message, k)) {
                return false;
            }
        }
        return true;
    }
    return false;
}

static void dones(struct world *w)
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
            wrong(w, "a send is done out of turn");
        } else if (!t->ended_there && !t->received[sent.message] &&
                   !arrived(w, t, (uint32_t)sent.message)) {
            wrong(w, "a send is done before its bytes are there");
        } else {
            t->send_done++;
        }
    }
}

/* Each end closes in its own time; the application has its memory back when its end has. */
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
    if (below(w, 2)) {
        end_here(w, t);
    } else {
        end_there(w, t);
    }
}

/* The other end follows; CLOSE tells the sender when the receiver has. */
static void app_follow(struct world *w)
{
    for (uint32_t i = 0; i < w->traffic_count; i++) {
        struct traffic *t = &w->traffic[i];
        if (!t->ending || below(w, 8) != 0) {
            continue;
        }
        if (!t->ended_here) {
            if (below(w, 2)) {
                sender_on_peer_close(w->sender, t->number);
            }
            end_here(w, t);
        } else if (!t->ended_there) {
            end_there(w, t);
        } else {
            sender_on_peer_close(w->sender, t->number);
            t->ending = false;
        }
    }
}

static void app_close(struct world *w)
{
    struct traffic *t = any_open(w);

    app_follow(w);
    if (t == NULL) {
        return;
    }
    if (t->send_done == t->count) {
        traffic_end(w, t, false);
    } else if (w->chaos && !w->config.queue_pairs && below(w, 60) == 0) {
        /* An abort resets lanes that owe the rest of a frame: here simply all that have any. */
        for (uint32_t i = 0; i < LANES; i++) {
            struct conn *c = &w->conns[i];
            if (c->sender_open && c->count > 0 &&
                c->frames[(c->head + c->count - 1) % FRAMES].written <
                    c->frames[(c->head + c->count - 1) % FRAMES].cells) {
                c->sender_open = false;
                sender_on_lane_down(w->sender, i, c->epoch);
            }
        }
        traffic_end(w, t, true);
    }
}

/* ---- lanes ------------------------------------------------------------------------------------- */

static void receiver_down(struct world *w, uint32_t lane);

static void connect_lane(struct world *w, uint32_t lane)
{
    struct conn *c = &w->conns[lane];
    const uint32_t epoch = c->epoch + 1;

    if (c->sender_open) {
        return;
    }
    /* HELLO with a higher epoch tells the receiver that the old one is over. */
    if (c->receiver_open) {
        receiver_down(w, lane);
    }
    if (sender_lane_open(w->sender, lane, epoch) != 0) {
        return; /* queue pairs: its fence has not been told yet */
    }
    if (ledger_lane_open(w->ledger, lane, epoch) != 0) {
        wrong(w, "a new epoch was refused");
    }
    if (ledger_lane_open(w->ledger, lane, epoch) != -ESTALE) {
        wrong(w, "an epoch was accepted twice");
    }
    *c = (struct conn){.epoch = epoch, .sender_open = true, .receiver_open = true};
}

static void sender_down(struct world *w, uint32_t lane)
{
    struct conn *c = &w->conns[lane];

    if (c->sender_open) {
        c->sender_open = false;
        sender_on_lane_down(w->sender, lane, c->epoch);
    }
}

static void deliver(struct world *w, uint32_t lane);

/* The receiver gives up: from here nothing of that connection is read. Queue pairs: what has landed before
 * the flush is booked first; then the count may be told. */
static void receiver_down(struct world *w, uint32_t lane)
{
    struct conn *c = &w->conns[lane];
    struct message_back back = {.fence = true, .lane = lane, .epoch = c->epoch};

    if (!c->receiver_open) {
        return;
    }
    ledger_lane_down(w->ledger, lane, c->epoch);
    c->receiver_open = false;
    c->count = 0;
    if (ledger_lane_open(w->ledger, lane, c->epoch) != -ESTALE) { /* a HELLO played again */
        wrong(w, "an epoch came back");
    }
    if (w->config.queue_pairs) {
        back.taken = ledger_lane_taken(w->ledger, lane, NULL);
        /* Told over and over until it is known; here: at once, over a way that may be long. */
        if (sender_on_fenced(w->sender, lane, c->epoch, back.taken) != 0) {
            wrong(w, "the fence's count was refused");
        }
        c->sender_open = false;
    }
}

static void pump(struct world *w)
{
    struct sender_chunk chunk;
    struct lane_chunk header;
    uint32_t usable = 0;
    int rc;

    for (uint32_t i = 0; i < LANES; i++) {
        usable |= w->conns[i].sender_open && w->conns[i].count < FRAMES - 1 ? 1u << i : 0;
    }
    if (!sender_next(w->sender, usable, 8192u << below(w, 2), &chunk)) {
        return;
    }
    for (uint32_t i = 0, from = below(w, LANES); i < LANES; i++) {
        const uint32_t lane = (from + i) % LANES;
        struct conn *c = &w->conns[lane];
        if (!((usable & ~chunk.not_on) >> lane & 1)) {
            continue;
        }
        rc = sender_bind(w->sender, w->now, &chunk, lane, &header);
        if (rc != 0) {
            wrong(w, "a chunk could not be bound");
            return;
        }
        if (c->receiver_open || !c->sender_open) {
            struct frame *f = &c->frames[(c->head + c->count++) % FRAMES];
            *f = (struct frame){.chunk = header, .cells = cells_of(header.length)};
            f->chunk.flags |= header.offset + header.length == header.size ? LANE_CHUNK_LAST : 0;
            f->address = chunk.address;
            if (w->config.queue_pairs) { /* the NIC reads the source as it sends */
                for (uint32_t k = 0; k < f->cells; k++) {
                    f->data[k] = source(w, header.comm, header.message, header.offset / CELL + k);
                }
                f->written = f->cells;
            }
        }
        return;
    }
}

/* The sender's kernel takes a piece more of what the frames still owe: copied from the source now. */
static void write_some(struct world *w, uint32_t lane)
{
    struct conn *c = &w->conns[lane];

    for (uint32_t i = 0; i < c->count && c->sender_open; i++) {
        struct frame *f = &c->frames[(c->head + i) % FRAMES];
        uint32_t n = f->cells - f->written;
        if (n == 0) {
            continue;
        }
        n = below(w, 3) ? n : 1 + below(w, n);
        for (uint32_t k = f->written; k < f->written + n; k++) {
            f->data[k] =
                sender_source_needed(w->sender, f->chunk.comm, f->chunk.message)
                    ? source(w, f->chunk.comm, f->chunk.message, f->chunk.offset / CELL + k)
                    : 0xcc; /* the zero page */
        }
        if (w->chaos && w->config.damage_every > 0 && below(w, w->config.damage_every) == 0) {
            f->data[f->written + below(w, n)] ^= 0x40;
        }
        f->written += n;
        return;
    }
}

static bool crc_fits(const struct frame *f)
{
    for (uint32_t k = 0; k < f->cells; k++) {
        if (f->data[k] != truth(f->chunk.comm, f->chunk.message, f->chunk.offset / CELL + k)) {
            return false;
        }
    }
    return true;
}

static void frame_end(struct world *w, uint32_t lane, const struct ledger_copy *copy)
{
    struct conn *c = &w->conns[lane];

    copy_do(w, copy);
    c->head = (c->head + 1) % FRAMES;
    c->count--;
}

/* RC: the WRITE lands, whoever owns that memory now; a while later its SEND completes. */
static void deliver_written(struct world *w, uint32_t lane)
{
    struct conn *c = &w->conns[lane];
    struct frame *f = &c->frames[c->head];
    struct ledger_copy copy;
    enum ledger_verdict verdict;

    if (!f->header_arrived) {
        uint8_t *to = f->chunk.flags & LANE_CHUNK_EAGER ? w->slots[f->chunk.slot]
                      : f->cells > 0                    ? cells_at(w, f->address, f->cells)
                                                        : NULL;
        for (uint32_t k = 0; k < f->cells; k++) {
            to[k] = f->data[k];
        }
        f->header_arrived = true;
        if (below(w, 2)) {
            return;
        }
    }
    verdict = ledger_on_written(w->ledger, w->now, lane, c->epoch, &f->chunk, true, &copy);
    if (verdict != LEDGER_OK) {
        wrong(w, "the ledger refused what was written");
        return;
    }
    frame_end(w, lane, &copy);
}

static void read_piece(struct world *w, uint32_t lane, struct frame *f,
                       const struct ledger_target *target)
{
    struct conn *c = &w->conns[lane];
    const uint32_t n = f->written - f->read < 1 ? 0
                       : below(w, 3)            ? f->written - f->read
                                                : 1 + below(w, f->written - f->read);
    const uint32_t before = f->read * CELL;
    const uint32_t after = f->read + n == f->cells ? f->chunk.length : (f->read + n) * CELL;
    uint8_t *to = NULL;

    if (target->left != f->chunk.length - before) {
        wrong(w, "the ledger lost count of a chunk");
        return;
    }
    if (target->place == LEDGER_BUFFER && n > 0) {
        to = cells_at(w, (uint64_t)(uintptr_t)target->to, n);
    } else if (target->place == LEDGER_STAGING) {
        to = w->staging[lane] + target->at / CELL;
    } else if (target->place == LEDGER_SLOT) {
        to = w->slots[target->slot] + target->at / CELL;
    }
    for (uint32_t k = 0; k < n && to != NULL; k++) {
        to[k] = f->data[f->read + k];
    }
    f->read += n;
    if (n > 0 && ledger_got(w->ledger, lane, c->epoch, after - before) != LEDGER_OK) {
        wrong(w, "the ledger refused bytes that it asked for");
    }
}

/* A turn of the receiver on a lane. */
static void deliver(struct world *w, uint32_t lane)
{
    struct conn *c = &w->conns[lane];
    struct frame *f = &c->frames[c->head];
    struct ledger_target target;
    struct ledger_copy copy;
    enum ledger_verdict verdict;

    if (c->count == 0 || !c->receiver_open || c->cut_there) {
        return;
    }
    if (w->config.queue_pairs) {
        deliver_written(w, lane);
        return;
    }
    verdict = f->begun ? ledger_target(w->ledger, lane, c->epoch, &target)
                       : ledger_begin(w->ledger, w->now, lane, c->epoch, &f->chunk, &target);
    if (verdict != LEDGER_OK) {
        wrong(w, "the ledger refused a chunk");
        return;
    }
    f->begun = true;
    read_piece(w, lane, f, &target);
    if (f->read < f->cells || f->written < f->cells) {
        return;
    }
    verdict = ledger_end(w->ledger, w->now, lane, c->epoch, crc_fits(f), &copy);
    if (verdict == LEDGER_LANE_DOWN) { /* damaged */
        receiver_down(w, lane);
    } else if (verdict != LEDGER_OK) {
        wrong(w, "the ledger broke");
    } else {
        frame_end(w, lane, &copy);
    }
}

static void report(struct world *w)
{
    struct message_back back = {.post = false};
    struct traffic *t;
    int lane, any;

    if (any_lane_there(w) < 0) {
        return;
    }
    if (ledger_next_report(w->ledger, w->now, &back.report, &lane)) {
        any = any_lane_there(w);
        if (lane < 0 || w->conns[lane].back_count == REPORTS || below(w, 3) == 0) {
            lane = any;
        }
        send_back(w, (uint32_t)lane, &back);
    }
    t = any_open(w); /* POSTs may be lost, too: again */
    if (t != NULL && below(w, 8) == 0 && t->opened_there &&
        (t->group_max > 1 || w->config.queue_pairs)) {
        posts_send(w, t);
    }
}

static void hear(struct world *w, uint32_t lane)
{
    struct conn *c = &w->conns[lane];
    struct sender_acked acked;
    struct message_back back;

    if (c->back_count == 0 || c->cut_back) {
        return;
    }
    back = c->back[c->back_head];
    c->back_head = (c->back_head + 1) % REPORTS;
    c->back_count--;
    if (!c->sender_open) {
        return;
    }
    if (back.post) {
        if (sender_on_post(w->sender, &back.frame) != 0) {
            wrong(w, "a POST was refused");
        }
        return;
    }
    for (uint32_t i = 0; i < back.report.lane_count; i++) {
        const struct lane_state_lane *x = &back.report.lanes[i];
        if (sender_on_taken(w->sender, w->now, x->lane, x->epoch, x->taken, &acked) != 0) {
            wrong(w, "a count was refused");
        }
    }
    if (sender_on_report(w->sender, w->now, &back.report) != 0) {
        wrong(w, "a report was refused");
    }
}

/* ---- faults ------------------------------------------------------------------------------------ */

static void fault(struct world *w)
{
    const uint32_t lane = below(w, LANES);
    struct conn *c = &w->conns[lane];

    w->result->faults++;
    switch (below(w, 10)) {
    case 0: /* a black hole, or half of one */
        c->cut_there = true;
        c->cut_back = below(w, 2);
        break;
    case 1:
        c->cut_back = true;
        break;
    case 2: /* both ends at once */
        sender_down(w, lane);
        receiver_down(w, lane);
        break;
    case 3: /* only the sender gives up: what is on its way still comes, for as long as it likes */
        sender_down(w, lane);
        break;
    case 4:
        receiver_down(w, lane);
        break;
    case 5: /* suspect: everything goes elsewhere, too, and the old lane recovers */
        (void)sender_on_suspect(w->sender, lane);
        break;
    case 6:
        (void)sender_hedge(w->sender, lane, w->now);
        break;
    case 7: /* the doubt is over */
        sender_on_trusted(w->sender, lane);
        break;
    case 8: /* a bit flips */
        if (!w->config.queue_pairs && c->count > 0) {
            struct frame *f = &c->frames[(c->head + below(w, c->count)) % FRAMES];
            if (f->written > f->read) {
                f->data[f->read + below(w, f->written - f->read)] ^= 0x40;
            }
        }
        break;
    default: /* double fault */
        sender_down(w, lane);
        c = &w->conns[below(w, LANES)];
        c->cut_there = c->cut_back = true;
        break;
    }
}

/* What detection does sooner or later, here at random: a cut lane is given up by either end. */
static void detect(struct world *w)
{
    const uint32_t lane = below(w, LANES);
    struct conn *c = &w->conns[lane];

    if ((c->cut_there || c->cut_back || !c->receiver_open) && below(w, 4) == 0) {
        sender_down(w, lane);
    }
    if ((c->cut_there || c->cut_back || !c->sender_open) && below(w, 8) == 0) {
        receiver_down(w, lane);
    }
    if (!c->sender_open && below(w, 6) == 0) {
        connect_lane(w, lane);
    }
}

static void step(struct world *w)
{
    const uint32_t lane = below(w, LANES);

    w->now.ns += 1000 + below(w, 100000);
    switch (below(w, 16)) {
    case 0:
        app_send(w);
        break;
    case 1:
        app_post(w);
        break;
    case 2:
        app_open_there(w);
        break;
    case 3:
        app_close(w);
        break;
    case 4:
    case 5:
        pump(w);
        break;
    case 6:
    case 7:
    case 8:
        write_some(w, lane);
        break;
    case 9:
    case 10:
    case 11:
        deliver(w, lane);
        break;
    case 12:
        report(w);
        break;
    case 13:
    case 14:
        hear(w, lane);
        break;
    default:
        comm_open(w);
        detect(w);
        break;
    }
    if (w->chaos && w->config.fault_every > 0 && below(w, w->config.fault_every) == 0) {
        fault(w);
    }
    dones(w);
}

static bool all_done(const struct world *w)
{
    for (uint32_t i = 0; i < w->traffic_count; i++) {
        if (w->traffic[i].open || w->traffic[i].ending) {
            return false;
        }
    }
    return true;
}

static void finish(struct world *w)
{
    struct ledger_counters ledger;
    struct sender_counters sender;

    for (uint32_t i = 0; i < LANES; i++) { /* the fabric is whole again; ends find out */
        if (w->conns[i].cut_there || w->conns[i].cut_back || !w->conns[i].sender_open ||
            !w->conns[i].receiver_open) {
            sender_down(w, i);
            receiver_down(w, i);
            connect_lane(w, i);
        }
    }
    w->chaos = false;
    w->traffic_count = w->traffic_count > 0 ? w->traffic_count : 0;
    for (uint32_t i = 0; i < 60000 && w->result->wrong == NULL && !all_done(w); i++) {
        step(w);
    }
    if (!all_done(w)) {
        wrong(w, "not everything arrived after the faults ended");
    }
    for (uint32_t i = 0; i < BUFFERS; i++) {
        for (uint32_t k = 0; w->buffers[i].released && !w->buffers[i].used && k < CELLS; k++) {
            if (w->buffers[i].cells[k] != RELEASED) {
                wrong(w, "memory changed after its receive was done");
            }
        }
    }
    ledger_counters_get(w->ledger, &ledger);
    sender_counters_get(w->sender, &sender);
    if (ledger_broken(w->ledger)) {
        wrong(w, ledger_bug(w->ledger) != NULL ? ledger_bug(w->ledger)->condition
                                               : "what came was called nonsense");
    }
    if (sender_bug(w->sender) != NULL) {
        wrong(w, sender_bug(w->sender)->condition);
    }
    if (w->result->wrong == NULL && sender_pending_bytes(w->sender) != 0) {
        wrong(w, "the sender's pool is not empty at the end");
    }
    w->result->resent = sender.resent;
    w->result->binned = ledger.binned;
    w->result->staged = ledger.staged;
    w->result->eager_early = ledger.eager_early;
    w->result->damaged = ledger.damaged;
}

void lane_world_run(const struct lane_world_config *config, struct lane_world_result *ret_result)
{
    static struct world memory; /* large; one world at a time */
    struct world *w = &memory;

    memset(w, 0, sizeof(*w));
    *ret_result = (struct lane_world_result){.wrong = NULL};
    w->config = *config;
    w->result = ret_result;
    w->chaos = true;
    prng_init(&w->prng, config->seed);
    w->sender = sender_new(&(struct sender_config){
        .slots = SLOTS, .comms = COMMS, .queue_pairs = config->queue_pairs});
    w->ledger = ledger_new(&(struct ledger_config){
        .slots = SLOTS, .comms = COMMS, .queue_pairs = config->queue_pairs});
    if (w->sender == NULL || w->ledger == NULL) {
        wrong(w, "no memory");
    } else {
        for (uint32_t i = 0; i < LANES; i++) {
            connect_lane(w, i);
        }
        for (uint32_t i = 0; i < config->steps && ret_result->wrong == NULL; i++) {
            step(w);
        }
        finish(w);
    }
    sender_free(w->sender);
    ledger_free(w->ledger);
}

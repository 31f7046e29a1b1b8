/* lane_world_lanes.c: connections that carry frames in one direction and reports in the other, in pieces, out of step, cut and
 * damaged; TCP, or queue pairs, whose writes land by themselves. */
#include <errno.h>
#include <string.h>

#include "lane_world_internal.h"

void world_send_back(struct world *w, uint32_t lane, const struct message_back *message)
{
    struct conn *c = &w->conns[lane];

    if (receiver_talks(w, lane) && c->back_count < REPORTS) {
        c->back[(c->back_head + c->back_count++) % REPORTS] = *message;
    }
}

int world_any_lane_there(struct world *w)
{
    for (uint32_t i = 0, from = world_below(w, LANES); i < LANES; i++) {
        const uint32_t lane = (from + i) % LANES;
        if (receiver_talks(w, lane) && w->conns[lane].back_count < REPORTS) {
            return (int)lane;
        }
    }
    return -1;
}

static struct sender *sender_at(struct world *w, uint32_t end)
{
    return w->here == end ? w->sender : w->other != NULL ? w->other->sender : NULL;
}

static struct ledger *ledger_at(struct world *w, uint32_t end)
{
    return w->here != end ? w->ledger : w->other != NULL ? w->other->ledger : NULL;
}

static void empty(struct world *w, uint32_t lane)
{
    if (w != NULL) {
        w->conns[lane].head = w->conns[lane].count = 0;
        w->conns[lane].back_head = w->conns[lane].back_count = 0;
    }
}

/* Opens it in both halves of that end. No half may open it twice. */
static void open_at(struct world *w, uint32_t lane, uint32_t epoch, uint32_t end)
{
    const enum ledger_way way = w->lines[lane].writes ? LEDGER_WRITES : LEDGER_READS;

    if (halves_lane_open(sender_at(w, end), ledger_at(w, end), lane, epoch, way) != 0) {
        world_wrong(w, "a new epoch was refused");
    }
    w->lines[lane].open[end] = true;
}

/* The content of one end's greeting: the epoch that it opened last, and how much of it arrived. */
static void last_words(struct world *w, uint32_t lane, uint32_t from, uint32_t below)
{
    const struct ledger *ledger = ledger_at(w, from);
    struct sender *sender = sender_at(w, !from);
    uint32_t epoch;

    if (ledger != NULL && sender != NULL) {
        const uint64_t taken = ledger_lane_taken(ledger, lane, &epoch);
        if (sender_on_fenced(sender, lane, below, epoch, taken) != 0) {
            world_wrong(w, "the count in a greeting was refused");
        }
    }
}

static bool is_lost(struct world *w)
{
    return w->chaos && world_below(w, 8) == 0;
}

/* HELLO, HELLO_OK and PROOF, each of which may be lost. Each end is silent before it reports how much arrived. So if no other
 * lane is left, the new one carries the old one's fence. */
static void connect_fenced(struct world *w, uint32_t lane, uint32_t epoch)
{
    struct line *line = &w->lines[lane];

    if (is_lost(w)) {
        return;
    }
    world_end_silent(w, lane, 1);
    line->epoch = epoch;
    line->writes = w->config.queue_pairs || world_below(w, 2);
    line->cut[0] = line->cut[1] = false;
    empty(w, lane);
    empty(w->other, lane);
    last_words(w, lane, 0, epoch);
    if (ledger_at(w, 1) != NULL) {
        ledger_lane_bar(ledger_at(w, 1), lane, epoch);
        if (ledger_lane_open(ledger_at(w, 1), lane, epoch - 1, LEDGER_READS) != -ESTALE) {
            world_wrong(w, "an epoch was opened after its fence was told");
        }
    }
    if (is_lost(w)) {
        return;
    }
    last_words(w, lane, 1, epoch);
    open_at(w, lane, epoch, 0);
    if (is_lost(w)) {
        return;
    }
    open_at(w, lane, epoch, 1);
    world_refuses(w, lane, epoch);
}

void world_connect_lane(struct world *w, uint32_t lane)
{
    struct line *line = &w->lines[lane];
    const uint32_t epoch = line->epoch + 1;

    if (line->open[0] || line->buried) {
        return;
    }
    if (is_fenced(w)) {
        connect_fenced(w, lane, epoch);
        return;
    }
    /* HELLO with a higher epoch shows the accepting end that the old one is over. */
    if (line->open[1]) {
        world_end_down(w, lane, 1);
    }
    open_at(w, lane, epoch, 1);
    open_at(w, lane, epoch, 0);
    line->epoch = epoch;
    line->cut[0] = line->cut[1] = false;
    empty(w, lane);
    empty(w->other, lane);
    world_refuses(w, lane, epoch);
}

/* An end that opened an epoch has got the end of the earlier ones. An end that gave an epoch up waits for its end. */
void world_epochs_told(struct world *w, uint32_t lane)
{
    const struct line *line = &w->lines[lane];

    for (uint32_t end = 0; end < 2; end++) {
        if (ledger_at(w, !end) != NULL) {
            ledger_lane_heard(ledger_at(w, !end), lane, line->epoch,
                              line->open[end] && !line->shut[end] ? LANE_ACTIVE : LANE_DOWN);
        }
    }
}

/* A replayed HELLO: both halves refuse it. */
void world_refuses(struct world *w, uint32_t lane, uint32_t epoch)
{
    for (struct world *each = w; each != NULL; each = each == w ? w->other : NULL) {
        if (ledger_lane_open(each->ledger, lane, epoch, LEDGER_READS) != -ESTALE) {
            world_wrong(w, "an epoch was accepted twice");
        }
        if (sender_lane_open(each->sender, lane, epoch) != -ESTALE) {
            world_wrong(w, "an epoch was accepted twice by a sender");
        }
    }
}

/* A queue pair was ordered to be silent, but isn't yet. What arrived so far may be reported, but not as final. */
static void shut(struct world *w, uint32_t lane, uint32_t end)
{
    struct line *line = &w->lines[lane];
    struct message_back back = {.report = {.comm = LANE_COMM_NONE, .lane_count = 1}};
    struct world *in = world_for(w, end, HALF_LEDGER);

    line->shut[end] = true;
    if (sender_at(w, end) != NULL) {
        sender_on_lane_down(sender_at(w, end), lane, line->epoch);
    }
    if (ledger_at(w, end) == NULL) {
        return;
    }
    const int by = world_any_lane_there(in);
    back.report.lanes[0] =
        (struct lane_state_lane){.lane = (uint16_t)lane,
                                 .state = LANE_DOWN,
                                 .epoch = line->epoch,
                                 .taken = ledger_lane_taken(ledger_at(w, end), lane, NULL)};
    if (by >= 0) {
        world_send_back(in, (uint32_t)by, &back);
    }
}

void world_end_silent(struct world *w, uint32_t lane, uint32_t end)
{
    struct line *line = &w->lines[lane];

    if (!line->open[end]) {
        return;
    }
    line->open[end] = line->shut[end] = false;
    halves_lane_down(sender_at(w, end), ledger_at(w, end), lane, line->epoch);
    for (struct world *each = w; each != NULL; each = each == w ? w->other : NULL) {
        if (each->here != end) {
            each->conns[lane].count = 0;
        }
    }
    if (!is_fenced(w)) {
        world_refuses(w, lane, line->epoch);
    }
}

/* That end gives up. A connection is read no more. A queue pair still executes requests until it is silent. */
void world_end_down(struct world *w, uint32_t lane, uint32_t end)
{
    if (w->lines[lane].writes && w->lines[lane].open[end] && w->chaos) {
        shut(w, lane, end);
    } else {
        world_end_silent(w, lane, end);
    }
}

void world_sender_down(struct world *w, uint32_t lane)
{
    world_end_down(w, lane, w->here);
}

void world_receiver_down(struct world *w, uint32_t lane)
{
    world_end_down(w, lane, !w->here);
}

void world_pump(struct world *w)
{
    struct sender_chunk chunk;
    struct lane_chunk header;
    uint32_t usable = 0;
    int r;

    for (uint32_t i = 0; i < LANES; i++) {
        usable |= sender_open(w, i) && w->conns[i].count < FRAMES - 1 ? 1u << i : 0;
    }
    if (!sender_next(w->sender, usable, 8192u << world_below(w, 2), &chunk)) {
        return;
    }
    for (uint32_t i = 0, from = world_below(w, LANES); i < LANES; i++) {
        const uint32_t lane = (from + i) % LANES;
        struct conn *c = &w->conns[lane];
        if (!((usable & ~chunk.not_on) >> lane & 1)) {
            continue;
        }
        r = sender_bind(w->sender, w->now, &chunk, lane, &header);
        if (r != 0) {
            world_wrong(w, "a chunk could not be bound");
            return;
        }
        if (receiver_open(w, lane) || !sender_open(w, lane)) {
            struct frame *f = &c->frames[(c->head + c->count++) % FRAMES];
            *f = (struct frame){.chunk = header, .cells = world_cells_of(header.length)};
            f->chunk.flags |= header.offset + header.length == header.size ? LANE_CHUNK_LAST : 0;
            f->address = chunk.address;
            if (w->lines[lane].writes) { /* the NIC reads the source as it sends */
                for (uint32_t k = 0; k < f->cells; k++) {
                    f->data[k] =
                        world_source(w, header.comm, header.message, header.offset / CELL + k);
                }
                f->written = f->cells;
            }
        }
        return;
    }
}

/* The sender's kernel takes another piece of the frames: it is copied from the source now. */
void world_write_some(struct world *w, uint32_t lane)
{
    struct conn *c = &w->conns[lane];

    for (uint32_t i = 0; i < c->count && sender_open(w, lane); i++) {
        struct frame *f = &c->frames[(c->head + i) % FRAMES];
        uint32_t n = f->cells - f->written;
        if (n == 0) {
            continue;
        }
        n = world_below(w, 3) ? n : 1 + world_below(w, n);
        for (uint32_t k = f->written; k < f->written + n; k++) {
            f->data[k] =
                sender_source_needed(w->sender, f->chunk.comm, f->chunk.message)
                    ? world_source(w, f->chunk.comm, f->chunk.message, f->chunk.offset / CELL + k)
                    : 0xcc; /* the zero page */
        }
        if (w->chaos && w->config.damage_every > 0 && world_below(w, w->config.damage_every) == 0) {
            f->data[f->written + world_below(w, n)] ^= 0x40;
        }
        f->written += n;
        return;
    }
}

static bool crc_fits(const struct world *w, const struct frame *f)
{
    for (uint32_t k = 0; k < f->cells; k++) {
        if (f->data[k] !=
            world_truth(w, f->chunk.comm, f->chunk.message, f->chunk.offset / CELL + k)) {
            return false;
        }
    }
    return true;
}

static void frame_end(struct world *w, uint32_t lane, const struct ledger_copy *copy)
{
    struct conn *c = &w->conns[lane];

    world_copy_do(w, copy);
    c->head = (c->head + 1) % FRAMES;
    c->count--;
}

/* RC: the WRITE lands, whoever owns that memory now. Its SEND completes a little later. */
static void deliver_written(struct world *w, uint32_t lane)
{
    struct conn *c = &w->conns[lane];
    struct frame *f = &c->frames[c->head];
    struct ledger_copy copy;
    enum ledger_verdict verdict;

    if (!f->header_arrived) {
        uint8_t *to = f->chunk.flags & LANE_CHUNK_EAGER ? w->slots[f->chunk.slot]
                      : f->cells > 0                    ? world_cells_at(w, f->address, f->cells)
                                                        : NULL;
        for (uint32_t k = 0; k < f->cells; k++) {
            to[k] = f->data[k];
        }
        f->header_arrived = true;
        if (world_below(w, 2)) {
            return;
        }
    }
    verdict =
        ledger_on_written(w->ledger, w->now, lane, w->lines[lane].epoch, &f->chunk, true, &copy);
    if (verdict != LEDGER_OK) {
        world_wrong(w, "the ledger refused what was written");
        return;
    }
    frame_end(w, lane, &copy);
}

static void read_piece(struct world *w, uint32_t lane, struct frame *f,
                       const struct ledger_target *target)
{
    const uint32_t n = f->written - f->read < 1 ? 0
                       : world_below(w, 3)      ? f->written - f->read
                                                : 1 + world_below(w, f->written - f->read);
    const uint32_t before = f->read * CELL;
    const uint32_t after = f->read + n == f->cells ? f->chunk.length : (f->read + n) * CELL;
    uint8_t *to = NULL;

    if (is_fenced(w) && (target->place == LEDGER_BUFFER || target->place == LEDGER_SLOT)) {
        world_wrong(w, "a piece goes where a WRITE may have been");
    }
    if (target->left != f->chunk.length - before) {
        world_wrong(w, "the ledger lost count of a chunk");
        return;
    }
    if (target->place == LEDGER_BUFFER && n > 0) {
        to = world_cells_at(w, (uint64_t)(uintptr_t)target->to, n);
    } else if (target->place == LEDGER_STAGING) {
        to = w->staging[lane] + target->at / CELL;
    } else if (target->place == LEDGER_SLOT) {
        to = w->slots[target->slot] + target->at / CELL;
    }
    for (uint32_t k = 0; k < n && to != NULL; k++) {
        to[k] = f->data[f->read + k];
    }
    f->read += n;
    if (n > 0 && ledger_got(w->ledger, lane, w->lines[lane].epoch, after - before) != LEDGER_OK) {
        world_wrong(w, "the ledger refused bytes that it asked for");
    }
}

/* One turn of the receiver on a lane. */
void world_deliver(struct world *w, uint32_t lane)
{
    struct conn *c = &w->conns[lane];
    struct frame *f = &c->frames[c->head];
    struct ledger_target target;
    struct ledger_copy copy;

    if (c->count == 0 || !receiver_open(w, lane) || cut_there(w, lane)) {
        return;
    }
    if (w->lines[lane].writes) {
        deliver_written(w, lane);
        return;
    }
    enum ledger_verdict verdict =
        f->begun ? ledger_target(w->ledger, lane, w->lines[lane].epoch, &target)
                 : ledger_begin(w->ledger, w->now, lane, w->lines[lane].epoch, &f->chunk, &target);
    if (verdict != LEDGER_OK) {
        world_wrong(w, "the ledger refused a chunk");
        return;
    }
    f->begun = true;
    read_piece(w, lane, f, &target);
    if (f->read < f->cells || f->written < f->cells) {
        return;
    }
    verdict = ledger_end(w->ledger, w->now, lane, w->lines[lane].epoch, crc_fits(w, f), &copy);
    if (verdict == LEDGER_LANE_DOWN) { /* damaged */
        world_receiver_down(w, lane);
    } else if (verdict != LEDGER_OK) {
        world_wrong(w, "the ledger broke");
    } else {
        frame_end(w, lane, &copy);
    }
}

void world_report(struct world *w)
{
    struct message_back back = {.post = false};
    int lane, any;

    if (world_any_lane_there(w) < 0) {
        return;
    }
    if (ledger_next_report(w->ledger, w->now, &back.report, &lane)) {
        for (uint32_t i = 0; lane == LEDGER_EVERY_LANE && i < LANES; i++) {
            world_send_back(w, i, &back);
        }
        if (lane == LEDGER_EVERY_LANE) {
            return;
        }
        any = world_any_lane_there(w);
        if (lane < 0 || w->conns[lane].back_count == REPORTS || world_below(w, 3) == 0) {
            lane = any;
        }
        world_send_back(w, (uint32_t)lane, &back);
    }
    struct traffic *t = world_any_open(w); /* POSTs may be lost, too: again */
    if (t != NULL && world_below(w, 8) == 0 && t->opened_there &&
        (t->group_max > 1 || is_fenced(w))) {
        world_posts_send(w, t);
    }
}

void world_hear(struct world *w, uint32_t lane)
{
    struct conn *c = &w->conns[lane];
    struct sender_acked acked;

    if (c->back_count == 0 || cut_back(w, lane)) {
        return;
    }
    struct message_back back = c->back[c->back_head];
    c->back_head = (c->back_head + 1) % REPORTS;
    c->back_count--;
    if (!sender_open(w, lane)) {
        return;
    }
    w = world_for(w, w->here, halves_of_frame(back.post ? LANE_POST : LANE_STATE));
    if (back.post) {
        if (sender_on_post(w->sender, &back.frame) != 0) {
            world_wrong(w, "a POST was refused");
        }
        return;
    }
    for (uint32_t i = 0; i < back.report.lane_count; i++) {
        const struct lane_state_lane *x = &back.report.lanes[i];
        if (sender_on_state(w->sender, w->now, x, &acked) != 0) {
            world_wrong(w, "a count was refused");
        }
        if (x->fenced_below != 0 && x->epoch == w->lines[x->lane].epoch &&
            sender_open(w, x->lane)) {
            world_sender_down(w, x->lane);
        }
    }
    if (sender_on_report(w->sender, w->now, &back.report) != 0) {
        world_wrong(w, "a report was refused");
    }
}

/* lane_world.c: see lane_world.h. Time, faults, and the conditions at the end. */
#include <string.h>

#include "lane_world_internal.h"

void world_wrong(struct world *w, const char *what)
{
    if (w->result->wrong == NULL) {
        w->result->wrong = what;
    }
}

uint32_t world_below(struct world *w, uint32_t bound)
{
    return (uint32_t)prng_below(w->prng, bound);
}

/* ---- faults ------------------------------------------------------------------------------------ */

static void fault(struct world *w)
{
    const uint32_t lane = world_below(w, LANES);
    struct conn *c = &w->conns[lane];
    struct line *line = &w->lines[lane];

    w->result->faults++;
    switch (world_below(w, 10)) {
    case 0: /* a black hole, or half of one */
        line->cut[w->here] = true;
        line->cut[!w->here] = world_below(w, 2);
        break;
    case 1:
        line->cut[!w->here] = true;
        break;
    case 2: /* both ends at once */
        world_sender_down(w, lane);
        world_receiver_down(w, lane);
        break;
    case 3: /* only the sender gives up: packets on their way still arrive, at any later time */
        world_sender_down(w, lane);
        break;
    case 4:
        world_receiver_down(w, lane);
        break;
    case 5: /* suspect: everything goes over other lanes, too, and the old lane recovers */
        (void)sender_on_suspect(w->sender, lane);
        break;
    case 6:
        (void)(world_below(w, 2) == 0
                   ? sender_hedge(w->sender, lane, w->now, world_below(w, 2) == 0)
                   : sender_double(w->sender, lane));
        break;
    case 7: /* the lane is no longer doubted */
        sender_on_trusted(w->sender, lane);
        break;
    case 8: /* a bit flips */
        if (!line->writes && c->count > 0) {
            struct frame *f = &c->frames[(c->head + world_below(w, c->count)) % FRAMES];
            if (f->written > f->read) {
                f->data[f->read + world_below(w, f->written - f->read)] ^= 0x40;
            }
        }
        break;
    default: /* double fault */
        world_sender_down(w, lane);
        line = &w->lines[world_below(w, LANES)];
        line->cut[0] = line->cut[1] = true;
        break;
    }
}

/* In place of the detectors, at random times: either end gives a cut lane up. */
static void detect(struct world *w)
{
    const uint32_t lane = world_below(w, LANES);
    struct line *line = &w->lines[lane];

    if ((line->cut[0] || line->cut[1] || !line->open[1]) && world_below(w, 4) == 0) {
        world_end_down(w, lane, 0);
    }
    if ((line->cut[0] || line->cut[1] || !line->open[0]) && world_below(w, 8) == 0) {
        world_end_down(w, lane, 1);
    }
    for (uint32_t end = 0; end < 2; end++) {
        if (line->shut[end] && world_below(w, 2)) {
            world_end_silent(w, lane, end);
        }
    }
    if (is_fenced(w) && world_below(w, 4) == 0) {
        world_epochs_told(w, lane);
    }
    if (!line->open[0] && world_below(w, 6) == 0) {
        world_connect_lane(w, lane);
    }
}

static void step(struct world *w)
{
    const uint32_t lane = world_below(w, LANES);

    w->now.ns += 1000 + world_below(w, 100000);
    switch (world_below(w, 16)) {
    case 0:
        world_app_send(w);
        break;
    case 1:
        world_app_post(w);
        break;
    case 2:
        world_app_open_there(w);
        break;
    case 3:
        world_app_close(w);
        break;
    case 4:
    case 5:
        world_pump(w);
        break;
    case 6:
    case 7:
    case 8:
        world_write_some(w, lane);
        break;
    case 9:
    case 10:
    case 11:
        world_deliver(w, lane);
        break;
    case 12:
        world_report(w);
        break;
    case 13:
    case 14:
        world_hear(w, lane);
        break;
    default:
        world_comm_open(w);
        detect(w);
        break;
    }
    if (w->chaos && w->config.fault_every > 0 && world_below(w, w->config.fault_every) == 0) {
        fault(w);
    }
    world_dones(w);
}

/* Both directions, in random order. */
static void step_any(struct world *w)
{
    struct world *one = w->other != NULL && world_below(w, 2) ? w->other : w;

    step(one);
    (one == w && w->other != NULL ? w->other : w)->now = one->now;
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

/* The fabric is repaired. The ends find that out, and in time everything arrives. */
static void calm_down(struct world *w)
{
    w->chaos = false;
    if (w->other != NULL) {
        w->other->chaos = false;
    }
    if (is_fenced(w)) { /* one stays dead: only reports over the others show its end */
        w->lines[w->config.seed % LANES].buried = w->lines[w->config.seed % LANES].cut[0] = true;
    }
    for (uint32_t i = 0; i < LANES; i++) {
        const struct line *line = &w->lines[i];
        if (line->cut[0] || line->cut[1] || !line->open[0] || !line->open[1]) {
            world_end_silent(w, i, 0);
            world_end_silent(w, i, 1);
            world_connect_lane(w, i);
        }
    }
    for (uint32_t i = 0; i < 120000 && w->result->wrong == NULL &&
                         !(all_done(w) && (w->other == NULL || all_done(w->other)));
         i++) {
        step_any(w);
    }
}

static void judge(struct world *w)
{
    struct ledger_counters ledger;
    struct sender_counters sender;

    if (!all_done(w)) {
        world_wrong(w, "not everything arrived after the faults ended");
    }
    for (uint32_t i = 0; i < BUFFERS; i++) {
        for (uint32_t k = 0; w->buffers[i].released && !w->buffers[i].used && k < CELLS; k++) {
            if (w->buffers[i].cells[k] != RELEASED) {
                world_wrong(w, "memory changed after its receive was done");
            }
        }
    }
    ledger_counters_get(w->ledger, &ledger);
    sender_counters_get(w->sender, &sender);
    if (ledger_broken(w->ledger)) {
        world_wrong(w, ledger_bug(w->ledger) != NULL ? ledger_bug(w->ledger)->condition
                                                     : "what came was called nonsense");
    }
    if (sender_bug(w->sender) != NULL) {
        world_wrong(w, sender_bug(w->sender)->condition);
    }
    if (w->result->wrong == NULL && sender_pending_bytes(w->sender) != 0) {
        world_wrong(w, "the sender's pool is not empty at the end");
    }
    w->result->resent += sender.resent;
    w->result->binned += ledger.binned;
    w->result->staged += ledger.staged;
    w->result->eager_early += ledger.eager_early;
    w->result->damaged += ledger.damaged;
}

/* Makes a direction that begins at that end. False: no memory. */
static bool begin(struct world *w, const struct lane_world_config *config, uint32_t here)
{
    w->config = *config;
    w->here = here;
    w->chaos = true;
    w->sender = sender_new(&(struct sender_config){.slots = SLOTS,
                                                   .large = LARGE,
                                                   .comms = COMMS,
                                                   .fenced = is_fenced(w),
                                                   .posts = is_fenced(w)});
    w->ledger = ledger_new(&(struct ledger_config){
        .slots = SLOTS, .large = LARGE, .comms = COMMS, .fenced = is_fenced(w)});
    if (w->sender == NULL || w->ledger == NULL) {
        return false;
    }
    if (config->seed % 4 != 0) { /* else the peer is an older version */
        sender_slots_granted(w->sender, config->seed % 8 == 1 ? 1 : SLOTS - LARGE,
                             config->seed % 8 == 2 ? 0 : LARGE);
    }
    return true;
}

static void play(struct world *w, uint32_t steps)
{
    for (uint32_t i = 0; i < LANES; i++) {
        world_connect_lane(w, i);
    }
    for (uint32_t i = 0; i < steps && w->result->wrong == NULL; i++) {
        step_any(w);
    }
    calm_down(w);
    judge(w);
    if (w->other != NULL) {
        judge(w->other);
    }
}

void lane_world_run(const struct lane_world_config *config, struct lane_world_result *ret_result)
{
    static struct world memory[2]; /* static because they are large; one world at a time */
    struct line lines[LANES] = {0};
    struct world *w = &memory[0];
    struct prng prng;

    memset(memory, 0, sizeof(memory));
    *ret_result = (struct lane_world_result){.wrong = NULL};
    prng_init(&prng, config->seed);
    for (uint32_t i = 0; i < 2; i++) {
        memory[i].result = ret_result;
        memory[i].prng = &prng;
        memory[i].lines = lines;
        memory[i].other = config->both ? &memory[!i] : NULL;
    }
    if (begin(w, config, 0) && (!config->both || begin(w->other, config, 1))) {
        play(w, config->both ? 2 * config->steps : config->steps);
    } else {
        world_wrong(w, "no memory");
    }
    for (uint32_t i = 0; i < 2; i++) {
        sender_free(memory[i].sender);
        ledger_free(memory[i].ledger);
    }
}

/* measure.c: measurements on demand: waves, and what comes back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/fleet/delay_code.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/latency.h"
#include "service/controller/fleet/measure.h"
#include "service/controller/fleet/state.h"

#define PATIENCE_NS (20 * NS_PER_S) /* on top of what a wave takes: beats, a restart of the agent */
#define LOST_MAX    UINT16_MAX

int measures_open(struct controller *c)
{
    c->measures = calloc(1, sizeof(*c->measures));
    if (c->measures == NULL) {
        return -ENOMEM;
    }
    /* so that an agent doesn't take a run of this controller for one of the controller before its restart */
    if (getrandom(&c->measures->next_run, sizeof(c->measures->next_run), 0) < 0) {
        c->measures->next_run = (uint32_t)controller_mono().ns;
    }
    return 0;
}

void measures_close(struct controller *c)
{
    for (uint32_t i = 0; c->measures != NULL && i < MEASUREMENT_KEPT; i++) {
        measurement_free(c->measures->kept[i]);
    }
    free(c->measures);
    c->measures = NULL;
}

const char *measure_unfit(const struct controller *c, const struct fleet_host *h)
{
    const enum freshness f = fleet_freshness(c, h, controller_mono());
    if (!h->member) {
        return "it is no member any more";
    }
    if (f == FRESHNESS_NEVER || !h->reported) {
        return "it was not heard yet";
    }
    if (f == FRESHNESS_STALE) {
        return "it is silent";
    }
    if ((h->features & FOLIOT__V1__FEATURE__FEATURE_MEASURE) == 0) {
        return "its agent is too old to measure on demand: update it";
    }
    if (h->clock.status != FOLIOT__V1__CLOCK_STATUS__CLOCK_STATUS_SYNCED &&
        h->clock.status != FOLIOT__V1__CLOCK_STATUS__CLOCK_STATUS_HOLDOVER) {
        return "its clock is not in step with the fleet: one-way delays would mean nothing";
    }
    return NULL;
}

struct measurement *measurement_running(const struct controller *c)
{
    struct measurement *m = c->measures != NULL ? c->measures->kept[0] : NULL;
    return m != NULL && m->state == MEASUREMENT_RUNNING ? m : NULL;
}

struct measurement *measurement_find(const struct controller *c, uint32_t id)
{
    for (uint32_t i = 0; i < MEASUREMENT_KEPT; i++) {
        if (c->measures->kept[i] != NULL && c->measures->kept[i]->id == id) {
            return c->measures->kept[i];
        }
    }
    return NULL;
}

/* ---- making one ---- */

struct measurement *measurement_new(enum measurement_kind kind, const char *who)
{
    struct measurement *m = calloc(1, sizeof(*m));
    if (m != NULL) {
        m->kind = kind;
        m->rate = MEASUREMENT_RATE;
        snprintf(m->who, sizeof(m->who), "%s", who);
    }
    return m;
}

struct measurement *measurement_free(struct measurement *m)
{
    if (m != NULL) {
        free(m->pairs);
        free(m->rows);
        free(m->askers);
        free(m->skipped);
        free(m);
    }
    return NULL;
}

/* Room for one more of a list that doubles. */
static int grow(void *list, uint32_t count, uint32_t *capacity, size_t size)
{
    void **memory = list;
    if (count < *capacity) {
        return 0;
    }
    const uint32_t wanted = *capacity * 2 + 64;
    void *larger = realloc(*memory, wanted * size);
    if (larger == NULL) {
        return -ENOMEM;
    }
    *memory = larger;
    *capacity = wanted;
    return 0;
}

int measurement_add(struct measurement *m, struct fleet_host *by, uint32_t from, uint32_t to)
{
    struct measurement_asker *last = m->asker_count > 0 ? &m->askers[m->asker_count - 1] : NULL;
    if (last == NULL || last->host != by) {
        if (grow(&m->askers, m->asker_count, &m->asker_capacity, sizeof(m->askers[0])) < 0) {
            return -ENOMEM;
        }
        last = &m->askers[m->asker_count++];
        *last = (struct measurement_asker){.host = by, .first = m->pair_count};
    }
    if (grow(&m->pairs, m->pair_count, &m->pair_capacity, sizeof(m->pairs[0])) < 0) {
        return -ENOMEM;
    }
    m->pairs[m->pair_count++] = (struct measured_pair){from, to};
    last->count++;
    return 0;
}

int measurement_skip(struct measurement *m, const struct fleet_host *h, const char *why)
{
    char(*larger)[160] = realloc(m->skipped, (m->skipped_count + 1) * sizeof(*larger));
    if (larger == NULL) {
        return -ENOMEM;
    }
    m->skipped = larger;
    snprintf(m->skipped[m->skipped_count++], sizeof(*larger), "%s: %s", h->name, why);
    return 0;
}

int measurement_begin(struct controller *c, struct measurement *m)
{
    struct measures *all = c->measures;
    m->rows =
        m->pair_count > 0 ? calloc((size_t)m->pair_count * m->ports, sizeof(m->rows[0])) : NULL;
    const int r = measurement_running(c) != NULL ? -EBUSY
                  : m->pair_count == 0           ? -ENODATA
                  : m->rows == NULL              ? -ENOMEM
                                                 : 0;
    if (r < 0) {
        measurement_free(m);
        return r;
    }
    measurement_free(all->kept[MEASUREMENT_KEPT - 1]);
    memmove(&all->kept[1], &all->kept[0], (MEASUREMENT_KEPT - 1) * sizeof(all->kept[0]));
    for (uint32_t i = 1; i < MEASUREMENT_KEPT && m->kind == MEASUREMENT_MATRIX; i++) {
        if (all->kept[i] != NULL && all->kept[i]->kind == MEASUREMENT_MATRIX) {
            all->kept[i] = measurement_free(all->kept[i]); /* these are large: one is enough */
        }
    }
    all->kept[0] = m;
    m->id = ++all->next_id;
    m->started_ns = controller_utc_ns();
    m->started = controller_mono();
    c->revision++;
    return 0;
}

/* ---- while it runs ---- */

static void end(struct controller *c, struct measurement *m, enum measurement_state state)
{
    char body[200];
    m->state = state;
    m->ended_ns = controller_utc_ns();
    for (uint32_t i = 0; i < m->asker_count; i++) {
        m->askers[i].wave = 0;
    }
    c->revision++;
    snprintf(body, sizeof(body), "{\"measurement\":%u,\"kind\":\"%s\",\"host\":\"%s\"}", m->id,
             m->kind == MEASUREMENT_CHECK ? "host-check" : "matrix",
             m->host != NULL ? m->host->name : "");
    const struct store_event event = {.at_ns = m->ended_ns,
                                      .kind = "controller",
                                      .word = state == MEASUREMENT_DONE ? "measured"
                                                                        : "measuring-stopped",
                                      .body = body};
    const int r = state_event(c, &event);
    if (r < 0) {
        controller_store_failed(c, r, "a measurement's end");
    } else {
        controller_touch(c);
    }
}

void measurement_stop(struct controller *c, struct measurement *m, const char *why)
{
    if (m->state == MEASUREMENT_RUNNING) {
        snprintf(m->why, sizeof(m->why), "%s", why);
        end(c, m, MEASUREMENT_STOPPED);
    }
}

uint64_t measurement_packets(const struct measurement *m)
{
    return (uint64_t)m->pair_count * m->ports * m->packets;
}

uint64_t measurement_packets_sent(const struct measurement *m)
{
    uint64_t sent = 0;
    for (uint32_t i = 0; i < m->asker_count; i++) {
        const struct measurement_asker *a = &m->askers[i];
        sent += (uint64_t)a->next * m->ports * m->packets + (a->wave > 0 ? a->wave_sent : 0);
    }
    return sent;
}

static uint32_t wave_size(const struct measurement *m)
{
    const uint32_t fit = MEASURE_PACKET_MAX / (m->ports * m->packets);
    return fit < MEASURE_PAIR_MAX ? fit : MEASURE_PAIR_MAX;
}

static int64_t wave_ns(const struct measurement *m, uint32_t pairs)
{
    return (int64_t)pairs * m->ports * m->packets * NS_PER_S / m->rate + NS_PER_S;
}

int64_t measurement_left_ns(const struct controller *c, const struct measurement *m)
{
    int64_t left = 0;
    for (uint32_t i = 0; i < m->asker_count && m->state == MEASUREMENT_RUNNING; i++) {
        const struct measurement_asker *a = &m->askers[i];
        const uint32_t pairs = a->count - a->next;
        const int64_t waves = (pairs + wave_size(m) - 1) / wave_size(m);
        const int64_t takes = wave_ns(m, pairs) -
                              (a->wave > 0 ? (int64_t)a->wave_sent * NS_PER_S / m->rate : 0) +
                              waves * (int64_t)c->config.beat_ms * NS_PER_MS;
        left = pairs > 0 && takes > left ? takes : left;
    }
    return left;
}

static struct measurement_asker *asker_of(struct measurement *m, const struct fleet_host *h)
{
    for (uint32_t i = 0; m != NULL && i < m->asker_count; i++) {
        if (m->askers[i].host == h) {
            return &m->askers[i];
        }
    }
    return NULL;
}

static void give_up(struct measurement_asker *a, const char *why)
{
    a->next = a->count;
    a->wave = 0;
    snprintf(a->trouble, sizeof(a->trouble), "%s", why);
}

static void end_if_all_are_through(struct controller *c, struct measurement *m)
{
    for (uint32_t i = 0; i < m->asker_count; i++) {
        if (m->askers[i].next < m->askers[i].count) {
            return;
        }
    }
    end(c, m, MEASUREMENT_DONE);
}

void measurement_fill_matrix(const struct measurement *m, struct latency_matrix *matrix)
{
    struct fleet_path paths[EDGE_PATH_MAX];
    for (uint32_t pair = 0; pair < m->pair_count; pair++) {
        uint32_t count = 0;
        for (uint32_t port = 0; port < m->ports && count < EDGE_PATH_MAX; port++) {
            const struct measured_row *r = &m->rows[(size_t)pair * m->ports + port];
            if (r->measured) {
                paths[count++] = (struct fleet_path){
                    .local = m->pairs[pair].to,
                    .peer = m->pairs[pair].from,
                    .state = r->answered == 0 ? FOLIOT__V1__PATH_STATE__PATH_STATE_DEAD
                             : r->lost > 0    ? FOLIOT__V1__PATH_STATE__PATH_STATE_LOSSY
                                              : FOLIOT__V1__PATH_STATE__PATH_STATE_ALIVE,
                    .p50 = r->answered > 0 ? r->p50 : DELAY_CODE_NONE,
                    .p99 = r->answered > 0 ? r->p99 : DELAY_CODE_NONE,
                    .loss_ppm =
                        r->answered == 0 ? 1000000 : (uint32_t)(r->lost * 1000000ULL / r->sent)};
            }
        }
        if (count > 0) {
            latency_add_pair(matrix, paths, count);
        }
    }
}

static int16_t code(int32_t value)
{
    return value > DELAY_CODE_MAX || value < -DELAY_CODE_MAX ? DELAY_CODE_NONE : (int16_t)value;
}

/* What an agent says is believed as far as it may be true: never more answers than packets, never more than was asked. */
static bool take_rows(struct measurement *m, struct measurement_asker *a,
                      const Foliot__V1__Measured *r)
{
    const size_t count = (size_t)a->wave * m->ports;
    if (r->n_sent != count || r->n_answered != count || r->n_lost != count ||
        r->n_owd_p50 != count || r->n_owd_p99 != count) {
        return false;
    }
    struct measured_row *rows = &m->rows[(size_t)(a->first + a->next) * m->ports];
    for (size_t i = 0; i < count; i++) {
        const uint32_t sent = r->sent[i] < m->packets ? r->sent[i] : m->packets;
        const uint32_t answered = r->answered[i] < sent ? r->answered[i] : sent;
        const bool known = r->lost[i] >= 0 && (uint32_t)r->lost[i] <= sent && answered > 0;
        rows[i] = (struct measured_row){.p50 = code(r->owd_p50[i]),
                                        .p99 = code(r->owd_p99[i]),
                                        .sent = (uint16_t)sent,
                                        .answered = (uint16_t)answered,
                                        .lost = known ? (uint16_t)r->lost[i] : 0,
                                        .lost_known = known,
                                        .measured = sent > 0};
    }
    m->port = r->port <= UINT16_MAX ? r->port : 0;
    m->bound_ns = r->bound_ns > m->bound_ns ? r->bound_ns : m->bound_ns;
    return true;
}

void measure_heard(struct controller *c, struct fleet_host *h, const Foliot__V1__Batch *batch)
{
    struct measurement *m = measurement_running(c);
    struct measurement_asker *a = asker_of(m, h);
    const Foliot__V1__Measured *r = batch->measured;
    h->features = batch->features;
    if (a == NULL || r == NULL || a->wave == 0 || r->run != a->run) {
        return;
    }
    if (r->state == FOLIOT__V1__MEASURE_STATE__MEASURE_REFUSED) {
        char why[120];
        snprintf(why, sizeof(why), "%.119s", r->refused);
        give_up(a, why);
    } else if (r->state == FOLIOT__V1__MEASURE_STATE__MEASURE_DONE) {
        if (take_rows(m, a, r)) {
            a->next += a->wave;
            a->wave = 0;
        } else {
            give_up(a, "its answer has the wrong number of paths");
        }
    } else {
        const uint32_t all = a->wave * m->ports * m->packets;
        a->wave_sent = r->packets_sent < all ? r->packets_sent : all;
    }
    c->revision++;
    end_if_all_are_through(c, m);
}

Foliot__V1__Measure *measure_for(struct controller *c, const struct fleet_host *h)
{
    struct measurement *m = measurement_running(c);
    struct measurement_asker *a = asker_of(m, h);
    if (a == NULL || a->next == a->count) {
        return NULL;
    }
    if (a->wave == 0) {
        const uint32_t left = a->count - a->next;
        a->wave = left < wave_size(m) ? left : wave_size(m);
        a->run = ++c->measures->next_run != 0 ? c->measures->next_run : ++c->measures->next_run;
        a->wave_sent = 0;
        a->until = mono_add(controller_mono(), span_ns(wave_ns(m, a->wave) + PATIENCE_NS));
    }
    struct measure_request *memory = &c->measures->request;
    foliot__v1__measure__init(&memory->message);
    for (uint32_t i = 0; i < a->wave; i++) {
        memory->local[i] = m->pairs[a->first + a->next + i].from;
        memory->peer[i] = m->pairs[a->first + a->next + i].to;
    }
    memory->message.run = a->run;
    memory->message.n_local = memory->message.n_peer = a->wave;
    memory->message.local = memory->local;
    memory->message.peer = memory->peer;
    memory->message.ports = m->ports;
    memory->message.packets = m->packets;
    memory->message.rate = m->rate;
    return &memory->message;
}

void measure_watch(struct controller *c)
{
    struct measurement *m = measurement_running(c);
    const struct mono now = controller_mono();
    if (m == NULL) {
        return;
    }
    if (mono_sub(now, m->started).ns > MEASUREMENT_S_MAX * NS_PER_S) {
        measurement_stop(c, m, "it took too long");
        return;
    }
    for (uint32_t i = 0; i < m->asker_count; i++) {
        struct measurement_asker *a = &m->askers[i];
        if (a->next == a->count) {
            continue;
        }
        const char *why = measure_unfit(c, a->host);
        if (why != NULL) {
            give_up(a, why);
        } else if (a->wave > 0 && mono_before(a->until, now)) {
            give_up(a, "it didn't report its measurements in time");
        }
    }
    end_if_all_are_through(c, m);
}

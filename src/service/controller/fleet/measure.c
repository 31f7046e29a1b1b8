/* measure.c: measurements on demand: waves of requests, and their results. */
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

int measures_open(struct controller *c)
{
    c->measures = calloc(1, sizeof(*c->measures));
    if (c->measures == NULL) {
        return -ENOMEM;
    }
    /* so an agent does not confuse a run with one from before the controller's restart */
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
    const struct wave_host is = {
        .member = h->member,
        .reported = h->reported,
        .able = (h->features & FOLIOT__V1__FEATURE__FEATURE_MEASURE) != 0,
        .timed = h->clock.status == FOLIOT__V1__CLOCK_STATUS__CLOCK_STATUS_SYNCED ||
                 h->clock.status == FOLIOT__V1__CLOCK_STATUS__CLOCK_STATUS_HOLDOVER,
        .freshness = fleet_freshness(c, h, controller_mono())};
    return wave_unfit(&is);
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
        m->plan.rate = MEASUREMENT_RATE;
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

/* Makes room for one more entry; the list's size doubles. */
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
    last->asks.count++;
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
    m->rows = m->pair_count > 0 ? calloc((size_t)m->pair_count * m->plan.ports, sizeof(m->rows[0]))
                                : NULL;
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
            /* matrices are large: only the newest is kept */
            all->kept[i] = measurement_free(all->kept[i]);
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
        m->askers[i].asks.wave = 0;
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
    return (uint64_t)m->pair_count * m->plan.ports * m->plan.packets;
}

uint64_t measurement_packets_sent(const struct measurement *m)
{
    uint64_t sent = 0;
    for (uint32_t i = 0; i < m->asker_count; i++) {
        sent += wave_packets(&m->askers[i].asks, &m->plan);
    }
    return sent;
}

int64_t measurement_left_ns(const struct controller *c, const struct measurement *m)
{
    int64_t left = 0;
    for (uint32_t i = 0; i < m->asker_count && m->state == MEASUREMENT_RUNNING; i++) {
        const struct span one = wave_left(&m->askers[i].asks, &m->plan, span_ms(c->config.beat_ms));
        left = one.ns > left ? one.ns : left;
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
    wave_give_up(&a->asks);
    snprintf(a->trouble, sizeof(a->trouble), "%s", why);
}

static void end_if_all_are_through(struct controller *c, struct measurement *m)
{
    for (uint32_t i = 0; i < m->asker_count; i++) {
        if (m->askers[i].asks.next < m->askers[i].asks.count) {
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
        for (uint32_t port = 0; port < m->plan.ports && count < EDGE_PATH_MAX; port++) {
            const struct wave_row *r = &m->rows[(size_t)pair * m->plan.ports + port];
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

static bool take_rows(struct measurement *m, struct measurement_asker *a,
                      const Foliot__V1__Measured *r)
{
    const size_t count = (size_t)a->asks.wave * m->plan.ports;
    if (r->n_sent != count || r->n_answered != count || r->n_lost != count ||
        r->n_owd_p50 != count || r->n_owd_p99 != count) {
        return false;
    }
    struct wave_row *rows = &m->rows[(size_t)(a->first + a->asks.next) * m->plan.ports];
    for (size_t i = 0; i < count; i++) {
        const struct wave_told told = {r->sent[i], r->answered[i], r->lost[i], r->owd_p50[i],
                                       r->owd_p99[i]};
        rows[i] = wave_row(&m->plan, &told);
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
    if (a == NULL || r == NULL || a->asks.wave == 0 || r->run != a->asks.run) {
        return;
    }
    if (r->state == FOLIOT__V1__MEASURE_STATE__MEASURE_REFUSED) {
        char why[120];
        snprintf(why, sizeof(why), "%.119s", r->refused);
        give_up(a, why);
    } else if (r->state == FOLIOT__V1__MEASURE_STATE__MEASURE_DONE) {
        if (take_rows(m, a, r)) {
            wave_on_done(&a->asks);
        } else {
            give_up(a, "its answer has the wrong number of paths");
        }
    } else {
        wave_on_progress(&a->asks, &m->plan, r->packets_sent);
    }
    c->revision++;
    end_if_all_are_through(c, m);
}

Foliot__V1__Measure *measure_for(struct controller *c, const struct fleet_host *h)
{
    struct measurement *m = measurement_running(c);
    struct measurement_asker *a = asker_of(m, h);
    if (a == NULL || a->asks.next == a->asks.count) {
        return NULL;
    }
    if (a->asks.wave == 0) {
        c->measures->next_run += c->measures->next_run == UINT32_MAX ? 2 : 1; /* never 0 */
    }
    (void)wave_next(&a->asks, &m->plan, c->measures->next_run, controller_mono());
    struct measure_request *memory = &c->measures->request;
    foliot__v1__measure__init(&memory->message);
    for (uint32_t i = 0; i < a->asks.wave; i++) {
        memory->local[i] = m->pairs[a->first + a->asks.next + i].from;
        memory->peer[i] = m->pairs[a->first + a->asks.next + i].to;
    }
    memory->message.run = a->asks.run;
    memory->message.n_local = memory->message.n_peer = a->asks.wave;
    memory->message.local = memory->local;
    memory->message.peer = memory->peer;
    memory->message.ports = m->plan.ports;
    memory->message.packets = m->plan.packets;
    memory->message.rate = m->plan.rate;
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
        if (a->asks.next == a->asks.count) {
            continue;
        }
        const char *why = measure_unfit(c, a->host);
        if (why != NULL) {
            give_up(a, why);
        } else if (wave_is_late(&a->asks, now)) {
            give_up(a, "it didn't report its measurements in time");
        }
    }
    end_if_all_are_through(c, m);
}

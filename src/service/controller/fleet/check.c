/* check.c: may this host join? It decides which paths are measured for this answer, and writes the sentence.
 *
 * Paths between the host and a sample of its cohort are measured, in both directions. As many paths among the cohort's own
 * hosts are measured at the same time and in the same way. The host's paths are compared with those (core/fleet/admit.h). */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/fleet/admit.h"
#include "core/fleet/delay_code.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/levels.h"
#include "service/controller/fleet/measure.h"

#define REASON_MAX (8 * 2 * HOST_NIC_MAX)

/* ---- the plan ---- */

static bool share_leaf(const struct fleet_nic *a, const struct fleet_nic *b)
{
    return a->leaf[0] != 0 && strcmp(a->leaf, b->leaf) == 0;
}

static const struct fleet_nic *nic_of(const struct controller *c, const struct fleet_host *h,
                                      uint32_t i)
{
    return c->nics[h->nics[i]];
}

/* Near hosts have a leaf in common. If leaves are not known, no host is near. */
static bool is_near(const struct controller *c, const struct fleet_host *a,
                    const struct fleet_host *b)
{
    for (uint32_t i = 0; i < a->nic_count; i++) {
        for (uint32_t k = 0; k < b->nic_count; k++) {
            if (share_leaf(nic_of(c, a, i), nic_of(c, b, k))) {
                return true;
            }
        }
    }
    return false;
}

struct cohort {
    struct fleet_host *hosts[2 * CHECK_PEER_MAX];
    uint64_t order[2 * CHECK_PEER_MAX]; /* random order: hosts with the lowest numbers stay */
    uint32_t near, far;                 /* near hosts are in the first half */
};

static void draw(struct cohort *k, struct fleet_host *h, bool near, uint64_t order)
{
    uint32_t *count = near ? &k->near : &k->far, base = near ? 0 : CHECK_PEER_MAX;
    uint32_t at = base + *count;
    if (*count < CHECK_PEER_MAX) {
        (*count)++;
    } else {
        at = base;
        for (uint32_t i = base; i < base + CHECK_PEER_MAX; i++) {
            at = k->order[i] > k->order[at] ? i : at;
        }
        if (k->order[at] < order) {
            return;
        }
    }
    k->hosts[at] = h;
    k->order[at] = order;
}

static bool has_link(const struct fleet_nic *n)
{
    return n->state != FOLIOT__V1__PORT_STATE__PORT_DOWN &&
           n->state != FOLIOT__V1__PORT_STATE__PORT_GONE;
}

/* The host's own NICs always take part: a missing link is part of the answer. A peer's NIC without link does not: its lost
 * packets would count against the host. */
static bool takes_part(const struct measurement *m, const struct fleet_nic *n)
{
    return n->host == m->host || has_link(n);
}

/* Adds pairs from one host to another: NICs of the same rail or leaf. If there are none: the first NIC of each. */
static int add_pairs(const struct controller *c, struct measurement *m, struct fleet_host *from,
                     const struct fleet_host *to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < from->nic_count; i++) {
        for (uint32_t k = 0; k < to->nic_count; k++) {
            const struct fleet_nic *a = nic_of(c, from, i), *b = nic_of(c, to, k);
            if (a->rail != b->rail && !share_leaf(a, b)) {
                continue;
            }
            count++;
            if (takes_part(m, a) && takes_part(m, b)) {
                if (measurement_add(m, from, a->id, b->id) < 0) {
                    return -ENOMEM;
                }
            }
        }
    }
    return count > 0 || from->nic_count == 0 || to->nic_count == 0
               ? 0
               : measurement_add(m, from, from->nics[0], to->nics[0]);
}

/* Adds all pairs that one host of the cohort sends to: to the host, to the next two hosts of its own half, and to one host of
 * the other half. */
static int add_peer(const struct controller *c, struct measurement *m, const struct cohort *k,
                    uint32_t number)
{
    const uint32_t base = number < CHECK_PEER_MAX ? 0 : CHECK_PEER_MAX,
                   count = base == 0 ? k->near : k->far, others = base == 0 ? k->far : k->near;
    int r = add_pairs(c, m, k->hosts[number], m->host);
    for (uint32_t i = 1; i <= 2 && i < count && r == 0; i++) {
        r = add_pairs(c, m, k->hosts[number], k->hosts[base + (number - base + i) % count]);
    }
    if (others > 0 && r == 0) {
        r = add_pairs(c, m, k->hosts[number],
                      k->hosts[CHECK_PEER_MAX - base + (number - base) % others]);
    }
    return r;
}

static int fill(const struct controller *c, struct measurement *m, const struct cohort *k)
{
    int r = 0;
    for (uint32_t pass = 0; pass < 2 && r == 0; pass++) {
        /* so the host's own pairs are consecutive */
        for (uint32_t i = 0; i < 2 * CHECK_PEER_MAX && r == 0; i++) {
            if (i % CHECK_PEER_MAX < (i < CHECK_PEER_MAX ? k->near : k->far)) {
                r = pass == 0 ? add_pairs(c, m, m->host, k->hosts[i]) : add_peer(c, m, k, i);
            }
        }
    }
    return r;
}

static void set_pace(struct measurement *m, uint32_t seconds)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < m->asker_count; i++) {
        most = m->askers[i].asks.count > most ? m->askers[i].asks.count : most;
    }
    m->plan.ports = CHECK_PORTS;
    const uint32_t packets = seconds * m->plan.rate / (most * m->plan.ports);
    m->plan.packets = packets < 10 ? 10 : packets > 200 ? 200 : packets;
}

/* Notes the NICs of a cohort's host that are left out. */
static int skip_linkless(const struct controller *c, struct measurement *m,
                         const struct fleet_host *h)
{
    int r = 0;
    for (uint32_t i = 0; i < h->nic_count && r == 0 && m->skipped_count < CHECK_PEER_MAX; i++) {
        const struct fleet_nic *n = nic_of(c, h, i);
        char why[64];
        if (!has_link(n)) {
            snprintf(why, sizeof(why), "its %s has no link", n->name);
            r = measurement_skip(m, h, why);
        }
    }
    return r;
}

struct measurement *check_plan(struct controller *c, struct fleet_host *host, const char *who,
                               uint32_t seconds, const char **ret_code, char ret_words[200])
{
    struct cohort k = {.near = 0};
    struct measurement *m = NULL;
    const char *why = measure_unfit(c, host);
    int r = 0;
    *ret_code = "host-unfit";
    if (why != NULL) {
        snprintf(ret_words, 200, "%s can't be checked: %s", host->name, why);
        return NULL;
    }
    m = measurement_new(MEASUREMENT_CHECK, who);
    for (uint32_t i = 0; i < c->host_count && m != NULL && r == 0; i++) {
        struct fleet_host *h = c->hosts[i];
        if (h == host || !h->member || h->nic_count == 0) {
            continue;
        }
        why = measure_unfit(c, h);
        if (why == NULL) {
            draw(&k, h, is_near(c, host, h), hash_u64(c->measures->next_run, i));
            r = skip_linkless(c, m, h);
        } else if (m->skipped_count < CHECK_PEER_MAX) {
            r = measurement_skip(m, h, why);
        }
    }
    if (m != NULL && r == 0) {
        m->host = host;
        r = fill(c, m, &k);
    }
    if (m == NULL || r < 0) {
        *ret_code = "memory";
        snprintf(ret_words, 200, "out of memory");
        return measurement_free(m);
    }
    if (m->pair_count == 0) {
        *ret_code = "no-cohort";
        snprintf(ret_words, 200, "%s can't be checked: no other host can be asked%s%s", host->name,
                 m->skipped_count > 0 ? "; " : "", m->skipped_count > 0 ? m->skipped[0] : "");
        return measurement_free(m);
    }
    set_pace(m, seconds);
    return m;
}

/* ---- the answer ---- */

struct verdict {
    struct controller *c;
    const struct measurement *m;
    struct admit_path *paths; /* in the order of the rows */
    uint32_t count;
    enum admit_answer answer;
    char sentence[800]; /* about the first of the worst reasons */
    enum admit_answer sentence_of;
};

static uint32_t own_number(const struct fleet_host *h, uint32_t nic)
{
    for (uint32_t i = 0; i < h->nic_count; i++) {
        if (h->nics[i] == nic) {
            return i;
        }
    }
    return UINT32_MAX;
}

static int64_t delay(int16_t code)
{
    return code != DELAY_CODE_NONE ? delay_decode(code) : ADMIT_NO_DELAY;
}

static void fill_path(const struct verdict *v, uint32_t row, struct admit_path *p)
{
    const struct measured_pair *pair = &v->m->pairs[row / v->m->plan.ports];
    const struct wave_row *r = &v->m->rows[row];
    const struct fleet_nic *from = fleet_find_nic(v->c, pair->from),
                           *to = fleet_find_nic(v->c, pair->to);
    const uint32_t sends = own_number(v->m->host, pair->from),
                   hears = own_number(v->m->host, pair->to);
    *p = (struct admit_path){.nic = sends != UINT32_MAX ? sends : hears,
                             .own = sends != UINT32_MAX || hears != UINT32_MAX,
                             .out = sends != UINT32_MAX,
                             .near = from != NULL && to != NULL && share_leaf(from, to),
                             .measured = r->measured && from != NULL && to != NULL,
                             .sent = r->sent,
                             .answered = r->answered,
                             .lost = r->lost_known ? r->lost : -1,
                             .bound_ns = v->m->bound_ns,
                             .owd_ns_p50 = delay(r->p50),
                             .owd_ns_p99 = delay(r->p99)};
}

static void nic_name(const struct controller *c, uint32_t id,
                     char ret[TLS_NAME_MAX + IF_NAMESIZE + 2])
{
    const struct fleet_nic *n = fleet_find_nic(c, id);
    snprintf(ret, TLS_NAME_MAX + IF_NAMESIZE + 2, "%s/%s", n != NULL ? n->host->name : "?",
             n != NULL ? n->name : "?");
}

static void reason_open(struct verdict *v, struct json_writer *j, enum admit_answer answer,
                        const char *check, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static void reason_open(struct verdict *v, struct json_writer *j, enum admit_answer answer,
                        const char *check, const char *format, ...)
{
    static const char *const words[] = {"good", "unknown", "bad"};
    char text[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (v->sentence[0] == 0 || answer > v->sentence_of) {
        snprintf(v->sentence, sizeof(v->sentence), "%s", text);
        v->sentence_of = answer;
    }
    v->answer = answer > v->answer ? answer : v->answer;
    json_put_object(j, NULL);
    json_put_string(j, "check", check);
    json_put_string(j, "result", words[answer]);
    json_put_string(j, "text", text);
}

/* Adds reasons that the host itself reports. */
static void put_own_word(struct verdict *v, struct json_writer *j)
{
    const struct controller *c = v->c;
    const struct fleet_host *h = v->m->host;
    const char *why = measure_unfit(c, h);
    if (why != NULL) {
        reason_open(v, j, ADMIT_UNKNOWN, "agent", "%s: %s; earlier measurements are not used",
                    h->name, why);
        json_put_end(j);
        return;
    }
    for (uint32_t i = 0; i < h->nic_count; i++) {
        const struct fleet_nic *n = nic_of(c, h, i);
        if (!has_link(n)) {
            reason_open(
                v, j, ADMIT_NO, "link",
                "%s/%s has no link; suspected: its cable or the switch port; plug it in, then "
                "check again",
                h->name, n->name);
            json_put_end(j);
        }
    }
    for (uint32_t i = 0; i < v->m->asker_count; i++) {
        if (v->m->askers[i].trouble[0] != 0) {
            reason_open(v, j, ADMIT_UNKNOWN, "measuring", "%s didn't measure all: %s",
                        v->m->askers[i].host->name, v->m->askers[i].trouble);
            json_put_end(j);
        }
    }
}

static const char *check_word(enum admit_kind kind)
{
    static const char *const words[] = {"paths", "dead",       "fabric",   "loss",  "delay",
                                        "tail",  "unmeasured", "timeless", "cohort"};
    return words[kind];
}

/* The suspect. If most paths of the NIC and direction are bad, it is this NIC. Else it is the way between two NICs. */
static void suspect(const struct verdict *v, const struct admit_reason *r, const char *own,
                    char ret[240])
{
    if (r->paths_bad * 5 >= r->paths * 4) {
        snprintf(ret, 240, "%s, its cable or its switch port", own);
    } else {
        const struct measured_pair *pair = &v->m->pairs[r->worst / v->m->plan.ports];
        char peer[TLS_NAME_MAX + IF_NAMESIZE + 2];
        nic_name(v->c, r->out ? pair->to : pair->from, peer);
        snprintf(ret, 240, "some of the paths between %s and %s", own, peer);
    }
}

/* Describes the other direction of the same NIC. */
static const char *other_direction(const struct admit_reason *all, size_t count,
                                   const struct admit_reason *r)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i].nic == r->nic && all[i].out != r->out && all[i].kind == ADMIT_WELL) {
            return "well";
        }
    }
    return "not well either";
}

static const char *near_word(const struct admit_reason *r)
{
    return r->near ? "same leaf" : "across leaves";
}

static void what_text(const struct verdict *v, const struct admit_reason *r, char ret[200])
{
    const double us = 1e-3, percent = 1e-4;
    switch (r->kind) {
    case ADMIT_DEAD:
        snprintf(ret, 200, "no answer on %u of %u paths (%s); in its cohort %.0f %% are dead",
                 r->paths_bad, r->paths, near_word(r), (double)r->cohort * percent);
        break;
    case ADMIT_SHARED:
        snprintf(ret, 200,
                 "no answer on %u of %u paths (%s), but in its cohort %.0f %% are dead, too: "
                 "the fault is in the fabric, not at the host",
                 r->paths_bad, r->paths, near_word(r), (double)r->cohort * percent);
        break;
    case ADMIT_LOSSY:
        snprintf(ret, 200, "%.2f %% lost, on %u of %u paths, where its cohort lost %.2f %%",
                 (double)r->value * percent, r->paths_bad, r->paths, (double)r->cohort * percent);
        break;
    case ADMIT_SLOW:
    case ADMIT_TAIL:
        snprintf(ret, 200,
                 "%s one-way delay %.1f us where its cohort has %.1f us (%s), on %u of %u paths",
                 r->kind == ADMIT_SLOW ? "median" : "99th percentile of", (double)r->value * us,
                 (double)r->cohort * us, near_word(r), r->paths_bad, r->paths);
        break;
    case ADMIT_UNMEASURED:
        snprintf(ret, 200, "%u of %u paths were not measured", r->paths_bad, r->paths);
        break;
    case ADMIT_TIMELESS:
        snprintf(ret, 200, "%u of %u paths answer, but by clocks that aren't in step", r->paths_bad,
                 r->paths);
        break;
    case ADMIT_ALONE:
        snprintf(ret, 200, "no path of its cohort to compare with (%s)", near_word(r));
        break;
    case ADMIT_WELL:
        snprintf(ret, 200,
                 "like its cohort; median one-way delay of the slowest of %u paths %.1f us",
                 r->paths, (double)(r->value != ADMIT_NO_DELAY ? r->value : 0) * us);
        break;
    }
    (void)v;
}

static void put_reason(struct verdict *v, struct json_writer *j, const struct admit_reason *all,
                       size_t count, const struct admit_reason *r)
{
    const enum admit_answer answer = admit_answer_of(r->kind);
    const struct measured_pair *pair = &v->m->pairs[r->worst / v->m->plan.ports];
    const uint32_t own_nic = v->m->host->nics[r->nic];
    char own[TLS_NAME_MAX + IF_NAMESIZE + 2], ends[200], what[200], whom[240] = "";
    nic_name(v->c, own_nic, own);
    snprintf(ends, sizeof(ends), "%s -> %s", r->out ? own : "its cohort",
             r->out ? "its cohort" : own);
    what_text(v, r, what);
    if (answer == ADMIT_NO) {
        suspect(v, r, own, whom);
        reason_open(
            v, j, answer, check_word(r->kind),
            "%s: %s; the other direction is %s; suspected: %s; look there, then check again", ends,
            what, other_direction(all, count, r), whom);
    } else {
        reason_open(v, j, answer, check_word(r->kind), "%s: %s", ends, what);
    }
    json_put_uint(j, "nic", own_nic);
    json_put_string(j, "direction", r->out ? "out" : "in");
    json_put_uint(j, "paths", r->paths);
    json_put_uint(j, "paths_bad", r->paths_bad);
    const bool figures = r->kind == ADMIT_LOSSY || r->kind == ADMIT_SLOW || r->kind == ADMIT_TAIL;
    json_put_int_if(j, "value", figures, r->value);
    json_put_int_if(j, "cohort", figures, r->cohort);
    json_put_object(j, "worst");
    json_put_uint(j, "from", pair->from);
    json_put_uint(j, "to", pair->to);
    json_put_uint(j, "port", v->m->port + r->worst % v->m->plan.ports);
    json_put_end(j);
    json_put_string(j, "suspect", whom[0] != 0 ? whom : NULL);
    json_put_end(j);
}

/* A path's value for a level; -1: not measured. */
static int64_t level_value(const struct verdict *v, const struct level *l, uint32_t row)
{
    const struct admit_path *p = &v->paths[row];
    const struct measured_pair *pair = &v->m->pairs[row / v->m->plan.ports];
    const int64_t ns = l->kind == LEVEL_OWD_P50 ? p->owd_ns_p50 : p->owd_ns_p99;
    if (!p->measured) {
        return -1;
    }
    if (l->kind == LEVEL_HOPS) {
        const uint32_t hops =
            fleet_path_hops(v->c, pair->from, pair->to, v->m->port + row % v->m->plan.ports);
        return hops != 0 ? (int64_t)hops : -1;
    }
    if (l->kind == LEVEL_LOSS) {
        return p->answered == 0 ? 1000000 : p->lost < 0 ? -1 : (int64_t)p->lost * 1000000 / p->sent;
    }
    return p->answered == 0 || ns == ADMIT_NO_DELAY ? -1 : ns < 0 ? 0 : ns;
}

/* A level counts for the paths that were measured here. Missing hops are no fault: only the mesh measures them. */
static void put_level(struct verdict *v, struct json_writer *j, const struct level *l)
{
    uint32_t about = 0, known = 0, beyond = 0, others_beyond = 0;
    int64_t worst = -1;
    uint32_t worst_row = 0;
    for (uint32_t row = 0; row < v->count; row++) {
        const struct measured_pair *pair = &v->m->pairs[row / v->m->plan.ports];
        const struct fleet_nic *from = fleet_find_nic(v->c, pair->from),
                               *to = fleet_find_nic(v->c, pair->to);
        if (from == NULL || to == NULL) {
            continue;
        }
        const struct levels_nic sends = {from->leaf, from->rail}, receives = {to->leaf, to->rail};
        if (!levels_about(v->c->levels, l, &sends, &receives)) {
            continue;
        }
        const int64_t value = level_value(v, l, row);
        if (!v->paths[row].own) {
            others_beyond += value > l->limit;
            continue;
        }
        about++;
        known += value >= 0;
        beyond += value > l->limit;
        worst_row = value > worst ? row : worst_row;
        worst = value > worst ? value : worst;
    }
    if (about == 0 || (known == 0 && l->kind == LEVEL_HOPS)) {
        return;
    }
    char from[TLS_NAME_MAX + IF_NAMESIZE + 2], to[TLS_NAME_MAX + IF_NAMESIZE + 2];
    nic_name(v->c, v->m->pairs[worst_row / v->m->plan.ports].from, from);
    nic_name(v->c, v->m->pairs[worst_row / v->m->plan.ports].to, to);
    if (beyond > 0) {
        reason_open(v, j, ADMIT_NO, "level",
                    "%s -> %s: beyond the service level %s; so are %u of the host's %u paths that "
                    "the level is "
                    "about, and %u of its cohort's",
                    from, to, l->name, beyond, about, others_beyond);
    } else {
        reason_open(v, j, known < about && l->kind != LEVEL_HOPS ? ADMIT_UNKNOWN : ADMIT_YES,
                    "level", "the service level %s is kept on %u of %u paths, %u were not measured",
                    l->name, known, about, about - known);
    }
    json_put_string(j, "level", l->name);
    json_put_int_if(j, "value", worst >= 0, worst);
    json_put_int(j, "limit", l->limit);
    json_put_end(j);
}

static void put_paths(const struct verdict *v, struct json_writer *j)
{
    json_put_array(j, "paths");
    for (uint32_t row = 0; row < v->count; row++) {
        const struct measured_pair *pair = &v->m->pairs[row / v->m->plan.ports];
        const struct admit_path *p = &v->paths[row];
        const uint32_t port = v->m->port + row % v->m->plan.ports;
        const uint32_t hops = fleet_path_hops(v->c, pair->from, pair->to, port);
        const bool timed = p->answered > 0 && p->owd_ns_p50 != ADMIT_NO_DELAY;
        json_put_object(j, NULL);
        json_put_uint(j, "from", pair->from);
        json_put_uint(j, "to", pair->to);
        json_put_uint(j, "port", port);
        json_put_bool(j, "own", p->own);
        json_put_bool(j, "measured", p->measured);
        json_put_uint(j, "sent", p->sent);
        json_put_uint(j, "answered", p->answered);
        json_put_int_if(j, "lost", p->lost >= 0, p->lost);
        json_put_int_if(j, "owd_ns_p50", timed, p->owd_ns_p50);
        json_put_int_if(j, "owd_ns_p99", timed, p->owd_ns_p99);
        json_put_int_if(j, "hops", hops != 0, hops);
        json_put_end(j);
    }
    json_put_end(j);
}

int check_put(struct controller *c, struct json_writer *j, const struct measurement *m)
{
    static const char *const answers[] = {"yes", "unknown", "no"};
    struct verdict v = {.c = c, .m = m, .count = m->pair_count * m->plan.ports};
    size_t count = 0;
    int64_t *scratch = calloc(v.count, sizeof(*scratch));
    struct admit_reason *reasons = calloc(REASON_MAX, sizeof(*reasons));
    v.paths = calloc(v.count, sizeof(*v.paths));
    if (v.paths == NULL || scratch == NULL || reasons == NULL) {
        free(v.paths);
        free(scratch);
        free(reasons);
        return -ENOMEM;
    }
    for (uint32_t row = 0; row < v.count; row++) {
        fill_path(&v, row, &v.paths[row]);
    }
    json_put_array(j, "reasons");
    put_own_word(&v, j);
    (void)admit_judge(v.paths, v.count, m->host->nic_count, scratch, reasons, REASON_MAX, &count);
    for (size_t i = 0; i < count; i++) {
        put_reason(&v, j, reasons, count, &reasons[i]);
    }
    for (uint32_t l = 0; l < c->levels->count; l++) {
        put_level(&v, j, &c->levels->entries[l].level);
    }
    json_put_end(j);
    const bool over = m->state == MEASUREMENT_DONE;
    json_put_string(j, "answer",
                    m->state == MEASUREMENT_RUNNING ? NULL
                    : over                          ? answers[v.answer]
                                                    : answers[ADMIT_UNKNOWN]);
    json_put_string(j, "sentence", over ? v.sentence : m->why[0] != 0 ? m->why : NULL);
    put_paths(&v, j);
    free(v.paths);
    free(scratch);
    free(reasons);
    return 0;
}

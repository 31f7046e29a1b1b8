/* matrix.c: every NIC with every NIC, as part of an audit. */
#include "service/controller/audit/matrix.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/plain.h"
#include "base/prng.h"
#include "core/audit/fact.h"
#include "core/audit/matrix_again.h"
#include "service/controller/audit/cost.h"
#include "service/controller/fleet/fleet.h"

enum {
    DSCP_USUAL = 26, /* RoCE's usual DSCP, if none is declared */
    THIN_TOLD = 32   /* facts about lossy paths, per host */
};
#define FLEET_OFF_NS (86400 * NS_PER_S)

struct audit_matrix *audit_matrix_free(struct audit_matrix *x)
{
    if (x != NULL) {
        free(x->places);
        free(x->wanted);
        free(x->hosts);
        free(x->answered);
        free(x->rows);
        free(x->notes);
        free(x->leaves.names);
        free(x->names);
        free(x->words);
        free(x->paths);
        free(x->wells);
        free(x->late_lines);
        free(x->memory);
        free(x);
    }
    return NULL;
}

/* Frees the cells. The results of each NIC stay. */
void audit_matrix_forget_cells(struct audit_matrix *x)
{
    /* the NICs are first in memory */
    void *smaller = realloc(x->memory, x->m.count * sizeof(*x->m.nics));
    x->memory = smaller != NULL ? smaller : x->memory;
    x->m.nics = x->memory;
    x->m.delay = NULL;
    x->m.sent = x->m.heard = NULL;
}

uint32_t audit_matrix_row(const struct audit_matrix *x, int64_t host)
{
    for (uint32_t i = 0; i < x->plan.hosts; i++) {
        if (x->hosts[i] == host) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* ---- the plan ---- */

/* The clock is not checked here: the host itself has newer information than its last report. */
static enum matrix_why unfit(const struct controller *c, const struct audit_member *member,
                             const char **ret_words)
{
    const struct fleet_host *h = c->hosts[member->index];
    const enum freshness f = fleet_freshness(c, h, controller_mono());
    *ret_words = "";
    if (member->off) {
        *ret_words = member->note;
        return MATRIX_REFUSED;
    }
    if (f == FRESHNESS_NEVER || f == FRESHNESS_STALE) {
        *ret_words = "it is silent";
        return MATRIX_SILENT;
    }
    if ((h->features & FOLIOT__V1__FEATURE__FEATURE_MATRIX) == 0) {
        *ret_words = "its agent is too old to take part: update it";
        return MATRIX_OLD;
    }
    return MATRIX_FINE;
}

int audit_matrix_claim(struct audit_matrix *x)
{
    const size_t hosts = x->plan.hosts, places = hosts * x->plan.rails;
    x->places = calloc(places, sizeof(*x->places));
    x->wanted = calloc(places, sizeof(*x->wanted));
    x->hosts = calloc(hosts, sizeof(*x->hosts));
    x->answered = calloc(hosts, sizeof(*x->answered));
    x->rows = calloc(hosts, sizeof(*x->rows));
    x->notes = calloc(hosts, sizeof(*x->notes));
    x->names = calloc(hosts, sizeof(*x->names));
    x->leaves.names = calloc(places, sizeof(*x->leaves.names));
    x->memory = malloc(matrix_size(&x->plan));
    if (x->places == NULL || x->wanted == NULL || x->hosts == NULL || x->answered == NULL ||
        x->rows == NULL || x->notes == NULL || x->names == NULL || x->leaves.names == NULL ||
        x->memory == NULL) {
        return -ENOMEM;
    }
    matrix_init(&x->m, &x->plan, x->memory);
    x->none = "";
    return 0;
}

/* Seconds since the clock came into step, as far as reports show. The plan's rounds begin some beats later. */
static uint32_t steady_s(const struct fleet_host *h)
{
    return h->steady.ns == 0 ? MATRIX_STEADY
                             : (uint32_t)(mono_sub(controller_mono(), h->steady).ns / NS_PER_S);
}

static void place_nic(struct audit_matrix *x, const struct fleet_nic *nic, uint32_t place,
                      enum matrix_why why)
{
    struct matrix_nic *n = &x->m.nics[place];
    x->places[place].id = nic->id + 1;
    snprintf(x->places[place].name, sizeof(x->places[place].name), "%s", nic->name);
    x->wanted[place] = why == MATRIX_FINE ? nic->id + 1 : 0;
    n->there = true;
    n->why = (uint8_t)(why == MATRIX_FINE ? MATRIX_SILENT : why);
    n->leaf = audit_leaf_number(&x->leaves, nic->leaf);
    n->steady_s = steady_s(nic->host);
}

static bool takes_part(const struct controller *c, const struct audit_member *m)
{
    return m->measures && c->hosts[m->index]->nic_count > 0;
}

/* Fills the places. Returns how many hosts take part. */
static uint32_t fill(struct controller *c, const struct audit_run *run, struct audit_matrix *x)
{
    uint32_t row = 0, fit = 0;
    for (uint32_t i = 0; i < x->m.count; i++) {
        x->m.nics[i].there = false;
    }
    for (uint32_t i = 0; i < run->count; i++) {
        const struct fleet_host *h = c->hosts[run->members[i].index];
        if (!takes_part(c, &run->members[i])) {
            continue;
        }
        const char *words;
        const enum matrix_why why = unfit(c, &run->members[i], &words);
        x->hosts[row] = h->id;
        snprintf(x->names[row], sizeof(x->names[row]), "%s", h->name);
        x->answered[row] = why != MATRIX_FINE;
        snprintf(x->notes[row], sizeof(x->notes[row]), "%s", words);
        fit += why == MATRIX_FINE;
        for (uint32_t k = 0; k < h->nic_count; k++) {
            const struct fleet_nic *nic = fleet_find_nic(c, h->nics[k]);
            if (nic != NULL) {
                place_nic(x, nic, row * x->plan.rails + k, why);
            }
        }
        row++;
    }
    return fit;
}

bool audit_fleet_now(const struct controller *c, int64_t *ret_ns)
{
    const int64_t utc = controller_utc_ns();
    return fleet_time_now(&c->audits->fleet, controller_mono(), ret_ns) &&
           *ret_ns > utc - FLEET_OFF_NS && *ret_ns < utc + FLEET_OFF_NS;
}

/* The declared DSCP of jobs. */
uint8_t audit_job_dscp(const struct controller *c, const struct audit_run *run)
{
    const struct check_setting *s =
        &run->settings->checks[check_number(check_by_id("be.roce.dscp_path"))];
    int64_t dscp;
    if (audit_check_off(c, run, "be.roce.dscp_path") != NULL) {
        return 0;
    }
    return s->declared != NULL && fact_number(s->declared, &dscp) && dscp >= 0 &&
                   dscp <= MATRIX_DSCP_MAX
               ? (uint8_t)dscp
               : DSCP_USUAL;
}

/* Slow rounds if they do not take too long: they cost a host less. */
void audit_matrix_times(struct matrix_plan *p, int64_t begin_ns)
{
    p->packets = AUDIT_MATRIX_PACKETS;
    p->round_ns = MATRIX_ROUND_NS_USUAL;
    if (matrix_rounds(p) * p->round_ns > MATRIX_PATIENT_NS) {
        p->round_ns = MATRIX_ROUND_NS_LARGE;
    }
    p->gap_ns = p->round_ns / (2 * AUDIT_MATRIX_PACKETS);
    p->begin_ns = begin_ns;
}

int audit_matrix_new(struct controller *c, const struct audit_run *run, struct audit_matrix **ret,
                     char why[AUDIT_WORDS_SIZE])
{
    struct audit_matrix *x = calloc(1, sizeof(*x));
    int64_t now;
    snprintf(why, AUDIT_WORDS_SIZE, "out of memory");
    if (x == NULL) {
        return -ENOMEM;
    }
    x->run = run->id;
    x->family = run->family;
    x->fleet_version = c->fleet_version;
    x->plan.seed = (uint64_t)run->id + run->number; /* another order than in the matrix before */
    for (uint32_t i = 0; i < run->count; i++) {
        const struct fleet_host *h = c->hosts[run->members[i].index];
        if (takes_part(c, &run->members[i])) {
            x->plan.hosts++;
            x->plan.rails = h->nic_count > x->plan.rails ? h->nic_count : x->plan.rails;
        }
    }
    const char *wrong = "fleet time is not known";
    if (audit_fleet_now(c, &now)) {
        const uint64_t before = run->matrix != NULL ? run->matrix->name : (uint64_t)run->id;
        x->name =
            (uint64_t)now > before ? (uint64_t)now : before + 1; /* agents know plans by names */
        audit_matrix_times(&x->plan, now + audit_lead_ns(c->config.beat_ms));
        x->plan.dscp = audit_job_dscp(c, run);
        wrong = matrix_plan_wrong(&x->plan);
    }
    int r = wrong != NULL ? -ENODATA : audit_matrix_claim(x);
    if (r == 0 && fill(c, run, x) < 2) {
        wrong = "fewer than two hosts can take part";
        r = -ENODATA;
    }
    if (r < 0) {
        snprintf(why, AUDIT_WORDS_SIZE, "%s", r == -ENODATA ? wrong : "out of memory");
        audit_matrix_free(x);
        return r;
    }
    x->until = mono_add(controller_mono(),
                        span_ns(matrix_end_ns(&x->plan) - now + MATRIX_WAIT_S * NS_PER_S));
    *ret = x;
    return 0;
}

/* ---- a second one ---- */

bool audit_matrix_doubts(struct audit_run *run)
{
    const struct audit_matrix *x = run->matrix;
    const uint32_t hosts = x->plan.hosts;
    bool *doubted = calloc(hosts, sizeof(*doubted)), *all = calloc(hosts, sizeof(*all));
    uint32_t count = 0;
    for (uint32_t i = 0; doubted != NULL && i < run->failure_count; i++) {
        const struct audit_failure *f = &run->failures[i];
        const uint32_t row = audit_matrix_row(x, run->members[f->sheet].host);
        if ((f->check->flags & CHECK_MATRIX) != 0 && row != UINT32_MAX) {
            doubted[row] = run->members[f->sheet].doubted = true;
        }
    }
    if (doubted != NULL && all != NULL) {
        count = matrix_again(&x->m, doubted, x->late, x->late_count, all);
    }
    for (uint32_t i = 0; i < run->count; i++) {
        const uint32_t row = audit_matrix_row(x, run->members[i].host);
        run->members[i].measures = count > 0 && row != UINT32_MAX && all[row];
    }
    free(doubted);
    free(all);
    return count > 0;
}

/* The matrix whose rounds are running; NULL: none. */
static struct audit_matrix *under_way(const struct controller *c)
{
    const struct audit_run *run = c->audits != NULL ? c->audits->running : NULL;
    return run == NULL || run->state != AUDIT_MEASURING ? NULL
           : run->second                                ? run->again
                                                        : run->matrix;
}

Foliot__V1__Matrix *audit_matrix_for(struct controller *c, const struct fleet_host *h,
                                     uint64_t held, Foliot__V1__Matrix *memory)
{
    const struct audit_matrix *x = under_way(c);
    const uint32_t row = x != NULL ? audit_matrix_row(x, h->id) : UINT32_MAX;
    if (row == UINT32_MAX || x->answered[row] || c->audits->running->stopping ||
        (h->features & FOLIOT__V1__FEATURE__FEATURE_MATRIX) == 0) {
        return NULL;
    }
    foliot__v1__matrix__init(memory);
    memory->audit = x->name;
    if (held == memory->audit) {
        return memory;
    }
    memory->fleet_version = x->fleet_version;
    memory->hosts = x->plan.hosts;
    memory->rails = x->plan.rails;
    memory->n_nic = x->m.count;
    memory->nic = x->wanted;
    memory->packets = x->plan.packets;
    memory->begin_ns = (uint64_t)x->plan.begin_ns;
    memory->round_us = (uint32_t)(x->plan.round_ns / NS_PER_US);
    memory->gap_us = (uint32_t)(x->plan.gap_ns / NS_PER_US);
    memory->seed = x->plan.seed;
    memory->rails_only = x->plan.rails_only;
    memory->family = x->family;
    memory->dscp = x->plan.dscp;
    return memory;
}

/* ---- rows ---- */

static void refuse(struct audit_matrix *x, uint32_t row, const char *words)
{
    plain_text(words, x->notes[row], sizeof(x->notes[row]));
    x->answered[row] = true;
    for (uint32_t k = 0; k < x->plan.rails; k++) {
        x->m.nics[row * x->plan.rails + k].why = MATRIX_REFUSED;
    }
}

void audit_matrix_leave(struct audit_matrix *x, int64_t host, const char *words)
{
    const uint32_t row = audit_matrix_row(x, host);
    if (row != UINT32_MAX && !x->answered[row]) {
        refuse(x, row, words);
    }
}

void audit_matrix_cut(struct audit_matrix *x)
{
    for (uint32_t i = 0; i < x->plan.hosts; i++) {
        for (uint32_t k = 0; k < x->plan.rails && !x->answered[i]; k++) {
            struct matrix_nic *n = &x->m.nics[i * x->plan.rails + k];
            n->why = n->told ? n->why : MATRIX_STOPPED;
        }
        x->cut = x->cut || !x->answered[i];
    }
    x->none = x->cut ? "not-run: the audit was stopped before" : "";
}

void audit_matrix_take(struct controller *c, const struct fleet_host *h,
                       const Foliot__V1__MatrixRow *message)
{
    struct audit_matrix *x = under_way(c);
    const uint32_t row = x != NULL ? audit_matrix_row(x, h->id) : UINT32_MAX;
    const uint32_t rounds = x != NULL ? matrix_rounds(&x->plan) : 0;
    if (row == UINT32_MAX || message->audit != x->name || x->answered[row]) {
        return; /* late, or not asked for */
    }
    if (message->refused[0] != 0) {
        refuse(x, row, message->refused);
        return;
    }
    if (message->sent.len != rounds || message->heard.len != rounds ||
        message->delay.len != (size_t)rounds * 2) {
        return;
    }
    int16_t *delay = malloc((size_t)rounds * sizeof(*delay));
    uint32_t expected = 0;
    for (uint32_t k = 0; k < rounds && delay != NULL; k++) {
        delay[k] = (int16_t)le16_get(message->delay.data + (size_t)2 * k);
    }
    for (uint32_t k = 0; k < x->plan.rails; k++) {
        const uint32_t place = row * x->plan.rails + k;
        expected += x->places[place].id != 0;
        if (delay != NULL && x->places[place].id == message->nic + 1 &&
            matrix_take(&x->m, place, message->sent.data, message->heard.data, delay, rounds,
                        message->bound_ns) == 0) {
            x->rows[row]++;
        }
    }
    x->answered[row] = x->rows[row] == expected;
    free(delay);
}

uint32_t audit_matrix_waits(const struct audit_matrix *x)
{
    uint32_t waits = 0;
    for (uint32_t i = 0; i < x->plan.hosts; i++) {
        waits += !x->answered[i];
    }
    return mono_sub(controller_mono(), x->until).ns >= 0 ? 0 : waits;
}

/* ---- what they amount to ---- */

static bool same_places(const struct audit_matrix *x, const struct audit_matrix *y)
{
    if (y == NULL || y->m.delay == NULL || x->m.count != y->m.count ||
        x->plan.rails != y->plan.rails || x->family != y->family) {
        return false;
    }
    for (uint32_t i = 0; i < x->m.count; i++) {
        if (x->places[i].id != y->places[i].id) {
            return false;
        }
    }
    return true;
}

/* The first matrix' place of the NIC at this place of the second one. MATRIX_NONE: not in the first one. */
static uint32_t place_in(const struct audit_matrix *first, const struct audit_matrix *again,
                         uint32_t at)
{
    const uint32_t row = audit_matrix_row(first, again->hosts[at / again->plan.rails]),
                   rail = at % again->plan.rails;
    if (row == UINT32_MAX || rail >= first->plan.rails || again->places[at].id == 0) {
        return MATRIX_NONE;
    }
    const uint32_t place = row * first->plan.rails + rail;
    return again->places[at].id == first->places[place].id ? place : MATRIX_NONE;
}

/* Copies the drift that the first matrix found. A matrix of some hosts is not compared with an earlier one. */
static void take_drift(struct audit_matrix *again, const struct matrix_first *first)
{
    for (uint32_t i = 0; i < again->m.count; i++) {
        if (first->places[i] != MATRIX_NONE) {
            const struct matrix_nic *was = &first->m->nics[first->places[i]];
            again->m.nics[i].drift_known = was->drift_known;
            again->m.nics[i].drift_out_ns = was->drift_out_ns;
            again->m.nics[i].drift_in_ns = was->drift_in_ns;
        }
    }
}

/* Finds lossy paths of one NIC. told: number found at its host so far. */
static void find_paths(struct audit_matrix *x, const struct matrix_first *first, uint32_t place,
                       uint32_t *told)
{
    struct matrix_thin t;
    uint32_t at = 0;
    while (*told < THIN_TOLD && matrix_next_thin(&x->m, first, place, &at, &t)) {
        const uint32_t other = t.from == place ? t.to : t.from;
        struct audit_path *p = &x->paths[x->path_count++];
        p->row = place / x->plan.rails;
        p->peer = other / x->plan.rails;
        snprintf(p->subject, sizeof(p->subject), "%s %s %s", x->places[place].name,
                 x->names[p->peer], x->places[other].name);
        snprintf(p->value, sizeof(p->value), "lost %d of %u %s there, with %u partners",
                 t.sent - t.heard, t.sent, t.from == place ? "to" : "from", t.partners);
        (*told)++;
    }
}

static int find_all_paths(struct audit_matrix *x, const struct matrix_first *first)
{
    x->paths = calloc((size_t)x->plan.hosts * THIN_TOLD, sizeof(*x->paths));
    x->wells = calloc(x->plan.hosts, sizeof(*x->wells));
    if (x->paths == NULL || x->wells == NULL) {
        return -ENOMEM;
    }
    for (uint32_t row = 0; row < x->plan.hosts; row++) {
        uint32_t told = 0, measured = 0;
        for (uint32_t k = 0; k < x->plan.rails; k++) {
            const uint32_t place = row * x->plan.rails + k;
            measured += x->m.nics[place].rail_out + x->m.nics[place].rail_in;
            find_paths(x, first, place, &told);
        }
        if (measured > 0) {
            snprintf(x->wells[row], sizeof(x->wells[row]), "well, %u pairs", measured);
        }
    }
    struct audit_path *smaller = realloc(x->paths, (x->path_count + 1) * sizeof(*x->paths));
    x->paths = smaller != NULL ? smaller : x->paths;
    return 0;
}

/* of: the first matrix; `first` has its places. */
static int judge(struct audit_matrix *x, const struct audit_matrix *before,
                 const struct matrix_first *first, const struct audit_matrix *of)
{
    if (x->judged) {
        return 0;
    }
    const char **leaves = calloc(x->leaves.count + 1, sizeof(*leaves));
    x->words = calloc(x->m.count, sizeof(*x->words));
    if (leaves == NULL || x->words == NULL) {
        free(leaves);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < x->leaves.count; i++) {
        leaves[i] = x->leaves.names[i];
    }
    matrix_judge(&x->m, same_places(x, before) ? &before->m : NULL);
    if (first != NULL) {
        take_drift(x, first);
    }
    for (uint32_t i = 0; i < x->m.count; i++) {
        (void)matrix_words(&x->m, i, leaves, x->words[i]);
    }
    free(leaves);
    int r = find_all_paths(x, first);
    r = r < 0 ? r : audit_matrix_find_late(x, of);
    x->judged = r == 0;
    return r;
}

int audit_matrix_judge(struct audit_matrix *x, const struct audit_matrix *before)
{
    return judge(x, before, NULL, NULL);
}

int audit_matrix_judge_again(struct audit_matrix *again, const struct audit_matrix *first)
{
    uint32_t *places = malloc(again->m.count * sizeof(*places));
    if (places == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < again->m.count; i++) {
        places[i] = place_in(first, again, i);
    }
    const int r = judge(again, NULL, &(struct matrix_first){&first->m, places}, first);
    free(places);
    return r;
}

static void add_fact(struct sheet *sheet, enum fact_id id, const char *subject, const char *value)
{
    sheet->facts[sheet->count++] = (struct fact){.id = (uint16_t)id,
                                                 .state = FACT_VALUE,
                                                 .subject = subject,
                                                 .value = value,
                                                 .source = "every NIC with every NIC"};
}

/* Adds the lossy paths. An unmeasured host does not pass: it gets a fact without a value. */
static void add_paths(const struct audit_matrix *x, uint32_t row, struct sheet *sheet)
{
    uint32_t told = 0;
    for (uint32_t k = 0; k < x->path_count; k++) {
        if (x->paths[k].row == row) {
            add_fact(sheet, FACT_MATRIX_PATH, x->paths[k].subject, x->paths[k].value);
            sheet->facts[sheet->count - 1].peer = x->names[x->paths[k].peer];
            told++;
        }
    }
    if (told == 0) {
        const bool well = x->wells[row][0] != 0;
        add_fact(sheet, FACT_MATRIX_PATH, "", well ? x->wells[row] : x->none);
        sheet->facts[sheet->count - 1].state = well ? FACT_VALUE : FACT_TIMEOUT;
    }
}

int audit_matrix_facts(const struct audit_matrix *x, int64_t host, struct sheet *sheet)
{
    const uint32_t row = audit_matrix_row(x, host);
    const uint32_t more =
        x->plan.rails + THIN_TOLD + 1 + (row != UINT32_MAX ? audit_matrix_late_facts(x, row) : 0);
    struct fact *larger = realloc(sheet->facts, (sheet->count + more) * sizeof(*sheet->facts));
    if (larger == NULL) {
        return -ENOMEM;
    }
    sheet->facts = larger;
    for (uint32_t k = 0; row != UINT32_MAX && k < x->plan.rails; k++) {
        const uint32_t place = row * x->plan.rails + k;
        if (x->places[place].id != 0) {
            add_fact(sheet, FACT_MATRIX, x->places[place].name, x->words[place]);
        }
    }
    if (row != UINT32_MAX) {
        add_paths(x, row, sheet);
        audit_matrix_add_late(x, row, sheet);
    }
    sheet->capacity = sheet->count;
    return 0;
}

/* perf.c: tests of bandwidth and of collectives, as part of an audit. */
#include "service/controller/audit/perf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/plain.h"
#include "core/audit/part.h"
#include "service/controller/audit/cost.h"
#include "service/controller/fleet/fleet.h"

enum { KIND_SIZE = 64 };
_Static_assert(sizeof(*((struct audit_leaves *)0)->names) == KIND_SIZE, "a name fits");

struct audit_perf *audit_perf_free(struct audit_perf *x)
{
    if (x != NULL) {
        for (uint32_t i = 0; x->who != NULL && i < x->count; i++) {
            free(x->who[i].facts);
            free(x->who[i].text);
        }
        free(x->hosts);
        free(x->who);
        free(x->leaves.names);
        free(x->kinds.names);
        free(x->memory);
        free(x);
    }
    return NULL;
}

/* ---- whom ---- */

static const char *misfit(const struct controller *c, const struct fleet_host *h)
{
    const enum freshness f = fleet_freshness(c, h, controller_mono());
    return f == FRESHNESS_NEVER || f == FRESHNESS_STALE             ? "silent"
           : (h->features & FOLIOT__V1__FEATURE__FEATURE_PERF) == 0 ? "old-agent"
                                                                    : NULL;
}

/* What its sheet tells of a host. */
struct seen {
    char kind[KIND_SIZE]; /* its product */
    bool roce;            /* it has a RoCE port */
};

static void see(const struct fact *f, struct seen *seen)
{
    if (f->id == FACT_OS_PRODUCT && f->state == FACT_VALUE) {
        snprintf(seen->kind, sizeof(seen->kind), "%s", f->value);
    }
    seen->roce = seen->roce || (f->id == FACT_PORT_LAYER && f->state == FACT_VALUE &&
                                strcmp(f->value, "Ethernet") == 0);
}

static int see_part(void *context, const struct store_part *part)
{
    struct sheet s = {.capacity = sheet_part_facts(part->body, part->size),
                      .text_size = part->size + 1};
    if (strcmp(part->part, sheet_part_name(SECTION_OS)) != 0 &&
        strcmp(part->part, sheet_part_name(SECTION_RDMA)) != 0) {
        return 0;
    }
    s.facts = calloc(s.capacity + 1, sizeof(*s.facts));
    s.text = malloc(s.text_size);
    if (s.facts == NULL || s.text == NULL) {
        free(s.facts);
        free(s.text);
        return -ENOMEM;
    }
    sheet_part_decode(&s, part->body, part->size);
    for (uint32_t i = 0; i < s.count; i++) {
        see(&s.facts[i], context);
    }
    free(s.facts);
    free(s.text);
    return 0;
}

/* A host is of the kind that is declared, else of its product's: as results are compared. */
static int see_host(struct controller *c, const struct audit_run *run, struct audit_perf *x,
                    const struct fleet_host *h, struct perf_host *host)
{
    const char *declared = audit_declared_cohort(&run->settings->settings, h->name);
    struct seen seen = {.kind = ""};
    const int r = store_parts(c->store, h->id, INT64_MAX, see_part, &seen);
    if (declared != NULL) {
        snprintf(seen.kind, sizeof(seen.kind), "%s", declared);
    }
    host->kind = audit_leaf_number(&x->kinds, seen.kind);
    host->alltoall = (h->features & FOLIOT__V1__FEATURE__FEATURE_ALLTOALL) != 0;
    host->memory = (h->features & FOLIOT__V1__FEATURE__FEATURE_MEMORY) != 0;
    host->incast = seen.roce && (h->features & FOLIOT__V1__FEATURE__FEATURE_INCAST) != 0 &&
                   audit_incast_off(c, run) == NULL;
    return r;
}

static int add_host(struct controller *c, const struct audit_run *run, struct audit_perf *x,
                    const struct fleet_host *h)
{
    struct audit_perf_host *who = &x->who[x->count];
    struct perf_host *host = &x->hosts[x->count++];
    who->id = h->id;
    who->misfit = misfit(c, h);
    host->there = who->misfit == NULL;
    for (uint32_t k = 0; k < h->nic_count; k++) {
        const struct fleet_nic *nic = fleet_find_nic(c, h->nics[k]);
        if (nic != NULL) {
            who->nics[who->nic_count] = nic->id;
            snprintf(who->names[who->nic_count], IF_NAMESIZE, "%s", nic->name);
            host->leaf[who->nic_count++] = audit_leaf_number(&x->leaves, nic->leaf);
        }
    }
    host->nics = who->nic_count;
    return see_host(c, run, x, h, host);
}

/* Numbers in names by their size: gpu-2 is before gpu-10. */
static int by_name(const void *a, const void *b)
{
    const struct fleet_host *const *x = a, *const *y = b;
    return strverscmp((*x)->name, (*y)->name);
}

static uint32_t host_of(const struct audit_perf *x, int64_t id)
{
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->who[i].id == id) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* Its checks have that reason, and no test is planned with it. */
static void mind_off(const struct audit_run *run, struct audit_perf *x)
{
    for (uint32_t i = 0; i < run->count; i++) {
        const struct audit_member *m = &run->members[i];
        const uint32_t host = m->off ? host_of(x, m->host) : UINT32_MAX;
        if (host != UINT32_MAX) {
            x->hosts[host].there = false;
            x->who[host].outcome = PERF_REFUSED;
            snprintf(x->who[host].note, sizeof(x->who[host].note), "%s", m->note);
        }
    }
}

/* A stage is of what the ones before it left well: a broken link makes all others look slow. */
static void mind_blocked(const struct audit_run *run, struct audit_perf *x)
{
    for (uint32_t i = 0; i < run->count; i++) {
        const struct audit_member *m = &run->members[i];
        const uint32_t host = m->blocked[0] != 0 ? host_of(x, m->host) : UINT32_MAX;
        if (host != UINT32_MAX && x->hosts[host].there) {
            x->hosts[host].there = false;
            x->who[host].outcome = PERF_REFUSED;
            snprintf(x->who[host].note, sizeof(x->who[host].note), "%s fails here, and blocks jobs",
                     m->blocked);
        }
    }
}

static int add_hosts(struct controller *c, const struct audit_run *run, struct audit_perf *x)
{
    const struct fleet_host **hosts = calloc(run->count + 1, sizeof(const struct fleet_host *));
    uint32_t count = 0, nics = 0;
    for (uint32_t i = 0; hosts != NULL && i < run->count; i++) {
        const struct fleet_host *h = c->hosts[run->members[i].index];
        if (run->members[i].asked && h->nic_count > 0 && count < PERF_HOSTS_MAX) {
            hosts[count++] = h;
            nics += h->nic_count;
        }
    }
    x->hosts = calloc(count + 1, sizeof(*x->hosts));
    x->who = calloc(count + 1, sizeof(*x->who));
    x->leaves.names = calloc(nics + 1, sizeof(*x->leaves.names));
    x->kinds.names = calloc(count + 1, sizeof(*x->kinds.names));
    x->memory = malloc(perf_size(count));
    if (hosts == NULL || x->hosts == NULL || x->who == NULL || x->leaves.names == NULL ||
        x->kinds.names == NULL || x->memory == NULL) {
        free(hosts);
        return -ENOMEM;
    }
    qsort(hosts, count, sizeof(const struct fleet_host *), by_name);
    int r = 0;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        r = add_host(c, run, x, hosts[i]);
    }
    free(hosts);
    mind_off(run, x);
    mind_blocked(run, x);
    return r;
}

/* ---- plans ---- */

/* Tests of the present plan are of more than two hosts. */
static bool all_meet(const struct perf *p)
{
    bool any = p->stage > PERF_FABRIC;
    for (uint32_t step = 0; step < p->step_count; step++) {
        any = any || p->steps[step].kind == PERF_ALLTOALL;
    }
    return any;
}

/* A host that refused, or where a job runs, is asked no more. -EIO: there are no random numbers. */
static int begin_plan(const struct controller *c, struct audit_perf *x, int64_t now)
{
    if (getrandom(x->secret, sizeof(x->secret), 0) != (ssize_t)sizeof(x->secret)) {
        return -EIO;
    }
    x->name = (uint64_t)now > x->name ? (uint64_t)now : x->name + 1;
    x->fleet_version = c->fleet_version;
    x->begin_ns = now + audit_lead_ns(c->config.beat_ms);
    x->step_ms = PERF_STEP_MS + (all_meet(&x->core) ? PERF_ALL_MS + 2 * x->count : 0);
    x->left = 0;
    for (uint32_t step = 0; step < x->core.step_count; step++) {
        for (uint32_t i = 0; i < x->count; i++) {
            x->left += x->core.parts[(size_t)step * x->count + i].group != PERF_NOBODY;
        }
    }
    x->tests += x->left;
    x->made = controller_mono();
    x->until =
        mono_add(controller_mono(),
                 span_ns(x->begin_ns - now + (int64_t)x->core.step_count * x->step_ms * NS_PER_MS +
                         PERF_WAIT_NS));
    return 0;
}

/* Why fewer than two hosts can take part. */
static void tell_too_few(const struct audit_perf *x, char why[AUDIT_WORDS_SIZE])
{
    uint32_t old = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        old += x->who[i].misfit != NULL && strcmp(x->who[i].misfit, "old-agent") == 0;
    }
    int used = snprintf(why, AUDIT_WORDS_SIZE, "fewer than two hosts can take part");
    if (old > 0) {
        snprintf(why + used, AUDIT_WORDS_SIZE - (size_t)used, ": %u agents are too old", old);
    }
}

/* A share that matters to this check. */
static double practical_of(const struct audit_run *run, const char *id)
{
    const struct check *check = check_by_id(id);
    const struct check_setting *set = &run->settings->checks[check_number(check)];
    return set->has_fail ? set->fail : check->fail;
}

/* Of a run whose members are there. */
static int begin_first(struct controller *c, const struct audit_run *run, struct audit_perf *x,
                       int64_t now, char why[AUDIT_WORDS_SIZE])
{
    const int r =
        perf_init(&x->core,
                  &(struct perf_config){
                      .hosts = x->hosts,
                      .count = x->count,
                      .wants_rings = run->wants_nccl,
                      .no_ways = audit_check_off(c, run, "be.bw.path") != NULL,
                      .no_permutations = audit_check_off(c, run, "be.bw.permutation") != NULL,
                      .no_alltoall = audit_check_off(c, run, "nccl.alltoall") != NULL,
                      .no_memory = audit_check_off(c, run, "node.mem_bw") != NULL,
                      .seed = (uint64_t)run->id,
                      .practical = practical_of(run, "be.bw.pair"),
                      .memory_practical = practical_of(run, "node.mem_bw")},
                  x->memory);
    if (r < 0) {
        tell_too_few(x, why);
        return r;
    }
    x->run = run->id;
    x->name = (uint64_t)run->id;
    x->dscp = audit_job_dscp(c, run);
    snprintf(why, AUDIT_WORDS_SIZE, "there are no random numbers");
    return begin_plan(c, x, now);
}

int audit_perf_new(struct controller *c, const struct audit_run *run, struct audit_perf **ret,
                   char why[AUDIT_WORDS_SIZE])
{
    struct audit_perf *x = calloc(1, sizeof(*x));
    int64_t now = 0;
    int r = x == NULL ? -ENOMEM : 0;
    snprintf(why, AUDIT_WORDS_SIZE, "out of memory");
    if (r == 0 && !audit_fleet_now(c, &now)) {
        snprintf(why, AUDIT_WORDS_SIZE, "fleet time is not known");
        r = -ENODATA;
    }
    if (r == 0) {
        r = add_hosts(c, run, x);
        if (r < 0 && r != -ENOMEM) {
            snprintf(why, AUDIT_WORDS_SIZE, "what the hosts are can't be read: %.100s",
                     strerror(-r));
        }
    }
    r = r < 0 ? r : begin_first(c, run, x, now, why);
    if (r < 0) {
        audit_perf_free(x);
        return r;
    }
    *ret = x;
    return 0;
}

bool audit_perf_waits(const struct audit_perf *x)
{
    return x->left > 0 && mono_sub(controller_mono(), x->until).ns < 0;
}

static void keep_pairs(struct audit_perf_host *w)
{
    w->pairs.outcome = w->outcome;
    memcpy(w->pairs.note, w->note, sizeof(w->note));
}

/* A ring that another host ended is run again: that it failed before is nothing of this host's. */
static void take_back_rings(struct audit_perf *x)
{
    for (uint32_t i = 0; i < x->count; i++) {
        struct audit_perf_host *w = &x->who[i];
        if (perf_in_rings(&x->core, i)) {
            w->outcome = w->pairs.outcome;
            memcpy(w->note, w->pairs.note, sizeof(w->note));
        }
    }
}

bool audit_perf_sum_up(struct audit_perf *x)
{
    const bool rings = x->core.stage == PERF_RINGS;
    for (uint32_t i = 0; i < x->count; i++) {
        const uint8_t missing = (uint8_t)perf_missing(&x->core, i);
        x->who[i].outcome = missing > x->who[i].outcome ? missing : x->who[i].outcome;
        if (!rings) {
            keep_pairs(&x->who[i]);
        }
    }
    const bool more = perf_next(&x->core);
    if (more && rings && x->core.stage == PERF_RINGS) {
        take_back_rings(x);
    }
    return more;
}

bool audit_perf_next(struct controller *c, struct audit_perf *x)
{
    int64_t now = 0;
    x->tests -= x->left; /* nothing comes of these */
    if (x->core.stage == PERF_RINGS) {
        x->rows_ms += (uint32_t)(mono_sub(controller_mono(), x->made).ns / NS_PER_MS);
    }
    return audit_perf_sum_up(x) && audit_fleet_now(c, &now) && begin_plan(c, x, now) == 0;
}

static const struct audit_perf *testing(const struct controller *c)
{
    const struct audit_run *run = c->audits != NULL ? c->audits->running : NULL;
    return run != NULL && run->state == AUDIT_TESTING ? run->perf : NULL;
}

static void fill_step(const struct audit_perf *x, uint32_t step, uint32_t host,
                      struct audit_perf_reply *memory)
{
    const struct perf_step *s = &x->core.steps[step];
    const struct perf_part *part = perf_part_of(&x->core, step, host);
    Foliot__V1__PerfStep *to = &memory->steps[step];
    const uint32_t first = s->nic != PERF_NOBODY ? s->nic : 0;
    foliot__v1__perf_step__init(to);
    to->rank = part->rank;
    to->ranks = part->ranks;
    if (part->ranks > 0) {
        to->leader = x->who[part->leader].nics[first];
        to->port = PERF_PORT + step % 16; /* the one before may still be closing */
        to->lanes = s->lanes;
        to->ways = s->kind == PERF_WAYS ? 1 + part->group % PERF_TURNS : 0;
        to->incast = s->kind == PERF_INCAST ? 1u + x->dscp : 0;
        to->alltoall = s->kind == PERF_ALLTOALL;
        to->memory = s->kind == PERF_MEMORY;
        to->nics = memory->nics[step];
        for (; to->n_nics < s->nics; to->n_nics++) {
            to->nics[to->n_nics] = x->who[host].nics[first + to->n_nics];
        }
    }
}

Foliot__V1__Perf *audit_perf_for(struct controller *c, const struct fleet_host *h, uint64_t held,
                                 struct audit_perf_reply *memory)
{
    const struct audit_perf *x = testing(c);
    const uint32_t host = x != NULL ? host_of(x, h->id) : UINT32_MAX;
    if (host == UINT32_MAX || !x->hosts[host].there || c->audits->running->stopping) {
        return NULL;
    }
    foliot__v1__perf__init(&memory->perf);
    memory->perf.audit = x->name;
    if (held != x->name) {
        for (uint32_t step = 0; step < x->core.step_count; step++) {
            fill_step(x, step, host, memory);
            memory->pointers[step] = &memory->steps[step];
        }
        memory->perf.fleet_version = x->fleet_version;
        memory->perf.begin_ns = (uint64_t)x->begin_ns;
        memory->perf.step_ms = x->step_ms;
        memory->perf.timed_ms = PERF_TIMED_MS;
        memory->perf.secret =
            (ProtobufCBinaryData){sizeof(x->secret), (uint8_t *)(uintptr_t)x->secret};
        memory->perf.n_steps = x->core.step_count;
        memory->perf.steps = memory->pointers;
    }
    return &memory->perf;
}

/* ---- results ---- */

static void take_way(struct audit_perf *x, uint32_t step, uint32_t host,
                     const Foliot__V1__PerfWay *from)
{
    struct way way = {.rate = (double)from->rate};
    for (; way.hop_count < from->n_hops && way.hop_count < PATH_HOP_MAX; way.hop_count++) {
        plain_text(from->hops[way.hop_count], way.hops[way.hop_count], WAY_NAME_SIZE);
    }
    way.narrow = from->narrow <= way.hop_count ? (uint8_t)from->narrow : 0;
    perf_take_way(&x->core, step, host, &way);
}

static void take_one(struct audit_perf *x, uint32_t step, uint32_t host,
                     const struct perf_result *r, const Foliot__V1__PerfRow *row)
{
    if (x->core.results[(size_t)step * x->count + host].outcome == PERF_SILENT) {
        perf_take(&x->core, step, host, r);
        for (size_t i = 0; r->outcome == PERF_DONE && i < row->n_ways && i < PERF_WAYS_MOST; i++) {
            take_way(x, step, host, row->ways[i]);
        }
        x->left--;
        x->done++;
    }
}

void audit_perf_leave(struct audit_perf *x, int64_t host, const char *words)
{
    const uint32_t i = host_of(x, host);
    if (i == UINT32_MAX || !x->hosts[i].there) {
        return;
    }
    for (uint32_t step = 0; step < x->core.step_count; step++) {
        struct perf_result *r = &x->core.results[(size_t)step * x->count + i];
        const bool waits = r->outcome == PERF_SILENT;
        x->left -= waits;
        x->tests -= waits;
        if (waits) {
            snprintf(r->words, sizeof(r->words), "%s", words);
        }
    }
    perf_leave(&x->core, i);
    x->hosts[i].there = false;
    x->who[i].outcome = PERF_REFUSED;
    snprintf(x->who[i].note, sizeof(x->who[i].note), "%s", words);
}

static void forget(struct perf_result *r, const char *words)
{
    r->outcome =
        r->outcome == PERF_REFUSED && strcmp(r->words, words) == 0 ? PERF_NOT_RUN : r->outcome;
}

/* A collective that a host was still in is as those that never began. */
static void forget_collectives(struct audit_perf *x, uint32_t host, const char *words)
{
    for (uint32_t row = 0; x->core.wants_rings && row < PERF_ROWS; row++) {
        forget(&x->core.rows[(size_t)row * x->count + host], words);
    }
    forget(&x->core.fabric[host].alltoall, words);
}

void audit_perf_cut(struct audit_perf *x, const char *words)
{
    const uint32_t tests = x->tests;
    bool *left = calloc(x->count + 1, sizeof(*left));
    for (uint32_t i = 0; i < x->count; i++) {
        const bool well = x->hosts[i].there && x->who[i].outcome <= PERF_DONE;
        audit_perf_leave(x, x->who[i].id, words);
        if (left != NULL) {
            left[i] = well;
        }
    }
    (void)audit_perf_sum_up(x); /* what did come is counted; nobody is left for another plan */
    for (uint32_t i = 0; left != NULL && i < x->count; i++) {
        if (left[i]) {
            x->who[i].outcome = PERF_NOT_RUN;
            forget_collectives(x, i, words);
        }
    }
    x->tests = tests;
    free(left);
}

void audit_perf_take(struct controller *c, const struct fleet_host *h,
                     const Foliot__V1__PerfRow *row)
{
    struct audit_perf *x = (struct audit_perf *)(uintptr_t)testing(c);
    const uint32_t host = x != NULL ? host_of(x, h->id) : UINT32_MAX;
    if (host == UINT32_MAX || row->audit != x->name || row->outcome <= PERF_NOT_RUN ||
        row->outcome == PERF_SILENT || row->outcome >= PERF_OUTCOME_COUNT) {
        return; /* late, or of nobody's asking, or of words that nobody knows */
    }
    struct perf_result r = {.outcome = (uint8_t)row->outcome,
                            .rate = (double)row->rate,
                            .runs = row->runs,
                            .spread = row->spread,
                            .wrong = row->wrong,
                            .init_ms = row->init_ms,
                            .sent = row->sent,
                            .came = row->came,
                            .marked = row->marked,
                            .busy = row->busy < 10000 ? row->busy * 1e-4 : 1};
    for (; r.arrivals < PERF_ARRIVALS && r.arrivals < row->n_work; r.arrivals++) {
        const uint32_t work = row->work[r.arrivals];
        r.work[r.arrivals] = (uint16_t)(work < UINT16_MAX ? work : UINT16_MAX);
    }
    for (; r.parts < PERF_PARTS && r.parts < row->n_part_rate && r.parts < row->n_part_waited;
         r.parts++) {
        const uint32_t rate = row->part_rate[r.parts], waited = row->part_waited[r.parts];
        r.part_rate[r.parts] = (uint16_t)(rate < 10000 ? rate : 10000);
        r.part_waited[r.parts] = (uint16_t)(waited < 10000 ? waited : 10000);
    }
    plain_text(row->network, r.network, sizeof(r.network));
    plain_text(row->words, r.words, sizeof(r.words));
    const bool alone = row->step < x->core.step_count && row->outcome == PERF_FAILED &&
                       x->core.steps[row->step].kind == PERF_MEMORY;
    if (r.words[0] != 0 && !alone) {
        snprintf(x->who[host].note, sizeof(x->who[host].note), "%s", r.words);
    }
    for (uint32_t step = 0; step < x->core.step_count; step++) {
        if (step == row->step || row->step == UINT32_MAX) {
            take_one(x, step, host, &r, row);
        }
    }
}

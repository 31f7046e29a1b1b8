/* judge.c: judges all hosts of the fleet together, in the keeper thread. It reads their sheets from the store and keeps equal
 * contents once in memory. Results are grouped by host, as they are kept and shown. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/audit/part.h"
#include "service/audit/judged.h"
#include "service/audit/result_json.h"
#include "service/audit/sheet.h"
#include "service/controller/audit/history.h"
#include "service/controller/audit/matrix.h"
#include "service/controller/audit/past.h"
#include "service/controller/audit/perf.h"
#include "service/controller/history/worker.h"

enum {
    RESULTS_JSON = 3 << 20, /* limit of one host; the store reads at most 4 MiB */
    JSON_MAX = 4 << 20
};

struct judge_job {
    struct worker_job job;
    struct controller *c;
    int64_t run;
    struct audit_member *members; /* a copy */
    char (*names)[TLS_NAME_MAX + 1];
    uint32_t count;
    bool second, stopped, gates;
    char (*blocked)[CHECK_ID_SIZE]; /* gates: by member */
    struct audit_file *settings;
    int64_t began_utc_ns;
    struct audit_matrix *matrix, *again;
    struct audit_perf *perf;
    const struct audit_matrix *before;
    struct audit_failure *first; /* failures of the first look */
    uint32_t first_count;
    int r;
    struct audit_outcome *outcome;
    struct audit_failure *failures;
    uint32_t failure_count;
};

/* ---- sheets ---- */

struct content { /* facts of a part; hosts with equal parts share it */
    uint8_t hash[STORE_HASH_SIZE];
    struct sheet sheet;
};
struct pool {
    struct content *contents;
    uint32_t count, room;
    struct hash_index index;
    struct sheet *sheets;
    struct sheet now; /* the sheet that is being made */
    const char *name;
    const struct audit_matrix *matrix; /* NULL: none */
    const struct audit_perf *perf;     /* NULL: none */
    struct audit_history *history;     /* NULL: none */
    struct audit_accepted accepted;    /* the accepted audit for comparison */
};

static int decode(const void *text, size_t size, struct sheet *ret)
{
    *ret = (struct sheet){.capacity = sheet_part_facts(text, size), .text_size = size + 1};
    ret->facts = calloc(ret->capacity, sizeof(*ret->facts));
    ret->text = malloc(ret->text_size);
    if (ret->facts == NULL || ret->text == NULL) {
        free(ret->facts);
        free(ret->text);
        return -ENOMEM;
    }
    sheet_part_decode(ret, text, size);
    return 0;
}

static int join(struct sheet *to, const struct sheet *part)
{
    struct fact *larger =
        part->count > 0 ? realloc(to->facts, (to->count + part->count) * sizeof(*larger)) : NULL;
    if (part->count == 0) {
        return 0;
    }
    if (larger == NULL) {
        return -ENOMEM;
    }
    memcpy(larger + to->count, part->facts, part->count * sizeof(*larger));
    to->facts = larger;
    to->count += part->count;
    to->capacity = to->count;
    return 0;
}

static uint64_t hash_of(const uint8_t hash[STORE_HASH_SIZE])
{
    uint64_t h;
    memcpy(&h, hash, sizeof(h));
    return h;
}

static const struct sheet *find_content(const struct pool *p, const uint8_t *hash)
{
    uint32_t i;
    for (uint32_t at = hash_index_first(&p->index, hash_of(hash));
         (i = hash_index_entry(&p->index, at)) != HASH_INDEX_NONE;
         at = hash_index_next(&p->index, at)) {
        if (memcmp(p->contents[i].hash, hash, STORE_HASH_SIZE) == 0) {
            return &p->contents[i].sheet;
        }
    }
    return NULL;
}

static int grow(struct pool *p)
{
    const uint32_t room = p->room * 2 + 256;
    struct content *larger = realloc(p->contents, room * sizeof(*larger));
    if (larger == NULL || hash_index_room(&p->index, room) < 0) {
        p->contents = larger != NULL ? larger : p->contents;
        return -ENOMEM;
    }
    p->contents = larger;
    p->room = room;
    for (uint32_t i = 0; i < p->count; i++) {
        hash_index_put(&p->index, hash_of(p->contents[i].hash), i);
    }
    return 0;
}

static int add_part(void *context, const struct store_part *part)
{
    struct pool *p = context;
    const struct sheet *known = find_content(p, part->hash);
    if (known == NULL) {
        int r = p->count == p->room ? grow(p) : 0;
        r = r < 0 ? r : decode(part->body, part->size, &p->contents[p->count].sheet);
        if (r < 0) {
            return r;
        }
        memcpy(p->contents[p->count].hash, part->hash, STORE_HASH_SIZE);
        hash_index_put(&p->index, hash_of(part->hash), p->count);
        known = &p->contents[p->count++].sheet;
    }
    return join(&p->now, known);
}

static int add_look(void *context, const struct store_look *look)
{
    struct pool *p = context;
    struct sheet own;
    int r = decode(look->now, look->now_size, &own);
    if (r < 0) {
        return r;
    }
    r = join(&p->now, &own);
    free(own.facts);
    p->now.text = own.text; /* the sheet owns the text from now on */
    p->now.at_utc_ns = look->at_ns;
    p->now.left_out += look->left_out;
    p->now.missing = look->refused[0] != 0 ? REASON_NO_SOURCE : REASON_NONE;
    return r;
}

static int make_sheet(struct pool *p, struct store *store, int64_t host, int64_t at_ns,
                      struct sheet *ret)
{
    /* never NULL: an empty sheet is sorted and searched like any other */
    p->now = (struct sheet){.host = p->name, .facts = calloc(1, sizeof(struct fact))};
    int r = p->now.facts == NULL ? -ENOMEM : 0;
    /* added before the facts of files: of two results of one test the first is kept */
    r = r < 0 || p->perf == NULL ? r : audit_perf_facts(p->perf, host, false, &p->now);
    r = r < 0 ? r : store_looks(store, host, add_look, p);
    r = r < 0 ? r : store_parts(store, host, at_ns, add_part, p);
    r = r < 0 || p->perf == NULL ? r : audit_perf_facts(p->perf, host, true, &p->now);
    r = r < 0 || p->matrix == NULL ? r : audit_matrix_facts(p->matrix, host, &p->now);
    r = r < 0 || p->history == NULL ? r : audit_history_fact(p->history, p->name, &p->now);
    if (r == 0 && p->now.count > SHEET_FACTS_MAX) { /* a sheet with left_out > 0 is not judged */
        p->now.left_out += p->now.count - SHEET_FACTS_MAX;
        p->now.count = SHEET_FACTS_MAX;
    }
    if (r == 0) {
        sheet_finish(&p->now);
    }
    *ret = p->now;
    return r;
}

/* ---- owners of identities ---- */

struct owner {
    const struct sheet *is;
    int64_t since_ns;
};

/* True if each identity fact of `is` has the same value in `was`. No two hosts may share such facts. */
static bool same_identity(const struct sheet *is, const struct sheet *was)
{
    static const enum fact_id identities[] = {FACT_OS_MACHINE_ID, FACT_RDMA_GUID};
    uint32_t count;
    for (size_t i = 0; i < ARRAY_COUNT(identities); i++) {
        const struct fact *f = sheet_first(is, identities[i], &count);
        for (uint32_t k = 0; k < count; k++) {
            const struct fact *other = sheet_find(was, identities[i], f[k].subject);
            if (other == NULL || other->state != f[k].state ||
                strcmp(other->value, f[k].value) != 0) {
                return false;
            }
        }
    }
    return true;
}

static int older_identity(void *context, const struct store_part *part)
{
    struct owner *o = context;
    struct sheet was;
    int r = decode(part->body, part->size, &was);
    if (r < 0) {
        return r;
    }
    sheet_finish(&was);
    r = !same_identity(o->is, &was);
    o->since_ns = r == 0 ? part->at_ns : o->since_ns;
    free(was.facts);
    free(was.text);
    return r;
}

/* Since when the host has had its identity. A copied host got it later than the original. */
static int find_owner(struct store *store, int64_t host, struct sheet *s)
{
    struct owner o = {.is = s};
    const int r = store_part_versions(store, host, sheet_part_name(PART_OWN), older_identity, &o);
    s->own_since_ns = o.since_ns;
    return r;
}

static void pool_done(struct pool *p, uint32_t sheets)
{
    for (uint32_t i = 0; p->sheets != NULL && i < sheets; i++) {
        sheet_done(&p->sheets[i]);
    }
    for (uint32_t i = 0; i < p->count; i++) {
        sheet_done(&p->contents[i].sheet);
    }
    free(p->sheets);
    free(p->contents);
    audit_history_free(p->history);
    hash_index_done(&p->index);
}

int audit_sheet(struct store *store, int64_t host, const char *name, int64_t at_ns,
                struct sheet **ret_sheet)
{
    struct pool p = {.name = name};
    struct sheet found, *s = sheet_new();
    int r = s == NULL ? -ENOMEM : make_sheet(&p, store, host, at_ns, &found);
    if (s != NULL) {
        s->host = sheet_keep(s, name);
        s->at_utc_ns = found.at_utc_ns;
        s->left_out = found.left_out;
        for (uint32_t i = 0; r == 0 && i < found.count; i++) {
            sheet_add(s, &found.facts[i]);
        }
        free(found.facts);
        free(found.text);
    }
    pool_done(&p, 0);
    if (r < 0) {
        sheet_free(s);
        return r;
    }
    sheet_finish(s);
    *ret_sheet = s;
    return 0;
}

static int add_facts(void *context, const struct store_part *part)
{
    sheet_part_decode(context, part->body, part->size);
    return 0;
}

static int add_left_out(void *context, const struct store_look *look)
{
    struct sheet *s = context;
    s->left_out += look->left_out;
    return 0;
}

int audit_sheet_other(struct store *store, int64_t host, int64_t at_ns, int64_t than_ns,
                      struct sheet **ret_sheet)
{
    struct sheet *s = sheet_new();
    int r = s == NULL ? -ENOMEM : store_parts_other(store, host, at_ns, than_ns, add_facts, s);
    r = r < 0 || s->count == 0 ? r : store_looks(store, host, add_left_out, s);
    if (r < 0) {
        sheet_free(s);
        return r;
    }
    sheet_finish(s);
    *ret_sheet = s;
    return 0;
}

/* ---- judged ---- */

/* Failures of hosts that are asked, and results for which a host must be asked again, in the order of the results. */
static bool is_kept(const struct judge_job *k, const struct audit_result *r,
                    struct audit_failure *ret)
{
    return audit_failure_of(r, ret) && k->members[r->sheet].asked;
}

static int keep_failures(struct judge_job *k, const struct audit *a)
{
    struct audit_failure is;
    for (uint32_t i = 0; i < a->count; i++) {
        k->failure_count += is_kept(k, &a->results[i], &is);
    }
    k->failures = calloc(k->failure_count + 1, sizeof(*k->failures));
    uint32_t n = 0;
    for (uint32_t i = 0; k->failures != NULL && i < a->count; i++) {
        if (is_kept(k, &a->results[i], &is)) {
            is.subject = strdup(is.subject);
            if (is.subject == NULL) {
                return -ENOMEM;
            }
            k->failures[n++] = is;
        }
    }
    return k->failures == NULL ? -ENOMEM : 0;
}

/* If there is no room for all results, this is noted once. */
static void put_result(struct json_writer *j, const struct audit *a, const struct audit_result *r,
                       bool *full)
{
    struct audit_result last = *r;
    last.note = "this host has more results than there is room for: its facts have all";
    if (j->size < RESULTS_JSON) {
        result_write(j, a, r);
    } else if (!*full) {
        result_write(j, a, &last);
        *full = true;
    }
}

/* Results of each host, in the order of results. */
static int fill_found(const struct judge_job *k, const struct audit *a, uint32_t sheet,
                      bool suspect[static CHECKS_MAX], struct audit_found *f)
{
    const struct gate gate = gate_of(a, sheet);
    struct json_writer j;
    char line[GATE_LINE_SIZE];
    const char *text;
    size_t size;
    bool full = false;
    memset(f->marks, ' ', CATALOGUE_COUNT);
    json_writer_init(&j, JSON_MAX);
    json_put_array(&j, NULL);
    for (uint32_t i = 0; i < a->count; i++) {
        const struct audit_result *r = &a->results[i];
        if (r->sheet != sheet) {
            continue;
        }
        char *mark = &f->marks[check_number(r->check)];
        const enum audit_status before = audit_mark_status(*mark);
        *mark = r->status < before ? audit_status_mark(r->status) : *mark;
        suspect[check_number(r->check)] |= r->suspect;
        if (r->status < AUDIT_PASS) {
            put_result(&j, a, r, &full);
        }
    }
    json_put_end(&j);
    const int r = json_writer_finish(&j, &text, &size);
    f->host = k->members[sheet].host;
    f->at_ns = a->sheets[sheet].at_utc_ns;
    f->gate = (uint8_t)gate.status;
    if (gate.status < AUDIT_PASS && gate.worst != NULL && gate.worst->status == gate.status) {
        snprintf(f->gate_check, sizeof(f->gate_check), "%s", gate.worst->check->id);
    }
    const bool of_this = f->at_ns >= k->began_utc_ns && a->sheets[sheet].missing == REASON_NONE;
    const int kept = of_this ? audit_past_pack(&a->sheets[sheet], &f->past) : 0;
    f->line = strdup(gate_line(&gate, line));
    f->results = r == 0 ? strndup(text, size) : NULL;
    f->size = size;
    json_writer_done(&j);
    return r < 0 ? r : kept < 0 ? kept : f->line == NULL || f->results == NULL ? -ENOMEM : 0;
}

static int by_sheet(const void *x, const void *y)
{
    const struct audit_result *a = x, *b = y;
    if (a->sheet != b->sheet) {
        return a->sheet < b->sheet ? -1 : 1;
    }
    if (a->check != b->check) {
        return check_number(a->check) < check_number(b->check) ? -1 : 1;
    }
    return strcmp(a->subject, b->subject);
}

/* Sorts the results by host, so that each result is visited once. */
static int fill_outcome(struct judge_job *k, struct audit *a)
{
    uint32_t from = 0, asked = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        asked += k->members[i].asked;
    }
    k->outcome = audit_outcome_new(k->run, asked);
    if (k->outcome == NULL) {
        return -ENOMEM;
    }
    qsort(a->results, a->count, sizeof(*a->results), by_sheet);
    for (uint32_t i = 0; i < k->count; i++) {
        struct audit one = *a;
        uint32_t to = from;
        while (to < a->count && a->results[to].sheet == i) {
            to++;
        }
        one.results = a->results + from;
        one.count = to - from;
        from = to;
        if (k->members[i].asked) {
            const int r = fill_found(k, &one, i, k->outcome->suspect,
                                     &k->outcome->found[k->outcome->count++]);
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

/* Only checks before the tests: group 5 has the checks of tests. */
static void find_blocked(struct judge_job *k, const struct audit *a)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const struct audit_result *r = &a->results[i];
        if (r->status == AUDIT_FAIL && r->severity == SEVERITY_BLOCK && r->check->group < 5 &&
            k->blocked[r->sheet][0] == 0) {
            snprintf(k->blocked[r->sheet], sizeof(k->blocked[0]), "%s", r->check->id);
        }
    }
}

static int judge_all(struct judge_job *k, struct store *store, struct pool *p)
{
    struct audit a = {0};
    bool *looked = calloc(k->count + 1, sizeof(*looked)),
         *measured = calloc(k->count + 1, sizeof(*measured));
    int r = looked == NULL || measured == NULL ? -ENOMEM : 0;
    r = r < 0 || k->matrix == NULL ? r : audit_matrix_judge(k->matrix, k->before);
    r = r < 0 || k->again == NULL ? r : audit_matrix_judge_again(k->again, k->matrix);
    r = r < 0 || k->perf == NULL ? r : audit_perf_judge(k->perf);
    r = r < 0 ? r : audit_history_new(store, controller_utc_ns(), &p->history);
    p->perf = k->perf;
    r = r < 0 ? r : audit_accepted_newest(store, &p->accepted);
    for (uint32_t i = 0; i < k->count && r == 0; i++) {
        measured[i] = k->again != NULL && k->members[i].doubted;
        p->matrix = measured[i] ? k->again : k->matrix;
        p->name = k->names[i];
        r = make_sheet(p, store, k->members[i].host, INT64_MAX, &p->sheets[i]);
        r = r < 0 ? r : find_owner(store, k->members[i].host, &p->sheets[i]);
        r = r < 0 ? r : audit_past_add(store, k->members[i].host, &p->accepted, &p->sheets[i]);
        looked[i] = k->members[i].looked;
        if (k->members[i].missing != REASON_NONE) {
            p->sheets[i].missing = k->members[i].missing;
            p->sheets[i].missing_note = k->members[i].note;
        } else if (p->sheets[i].at_utc_ns == 0) {
            p->sheets[i].missing = REASON_NOT_RUN;
            p->sheets[i].missing_note = "it was never looked at";
        }
    }
    k->settings->settings.began_utc_ns = k->began_utc_ns;
    r = r < 0 ? r : judged(&a, p->sheets, k->count, &k->settings->settings);
    if (r == 0 && k->gates) {
        find_blocked(k, &a);
    } else if (r == 0 && k->second) {
        audit_confirm_first(&a, k->first, k->first_count,
                            &(struct audit_again){looked, measured, k->stopped});
    } else if (r == 0 && k->stopped) {
        audit_unconfirmed(&a);
    } else if (r == 0) {
        r = keep_failures(k, &a);
    }
    if (r == 0 && !k->gates && (k->second || k->stopped || k->failure_count == 0)) {
        r = fill_outcome(k, &a);
    }
    judged_done(&a);
    free(looked);
    free(measured);
    return r;
}

static void run_judge(struct worker_job *job, struct store *store)
{
    struct judge_job *k = (struct judge_job *)job;
    struct pool p = {.sheets = calloc(k->count + 1, sizeof(*p.sheets))};
    k->r = p.sheets == NULL ? -ENOMEM : store_snapshot(store);
    if (k->r == 0) {
        k->r = judge_all(k, store, &p);
        store_snapshot_end(store);
    }
    pool_done(&p, k->count);
}

static void end_judge(struct worker_job *job)
{
    struct judge_job *k = (struct judge_job *)job;
    audit_failures_free(k->first, k->first_count);
    if (k->r < 0) {
        audit_failures_free(k->failures, k->failure_count);
        audit_outcome_free(k->outcome);
        k->failures = NULL;
        k->failure_count = 0;
        k->outcome = NULL;
    }
    audit_judged(k->c, &(struct audit_judged){.run = k->run,
                                              .r = k->r,
                                              .outcome = k->outcome,
                                              .failures = k->failures,
                                              .failure_count = k->failure_count,
                                              .settings = k->settings,
                                              .matrix = k->matrix,
                                              .again = k->again,
                                              .perf = k->perf,
                                              .stopped = k->stopped,
                                              .gates = k->gates,
                                              .blocked = k->blocked});
    free(k->blocked);
    free(k->members);
    free(k->names);
    free(k);
}

int audit_judge_begin(struct controller *c, struct audit_run *run, bool gates)
{
    struct judge_job *k = calloc(1, sizeof(*k));
    if (k == NULL) {
        return -ENOMEM;
    }
    *k = (struct judge_job){.job = {.run = run_judge, .done = end_judge},
                            .c = c,
                            .run = run->id,
                            .count = run->count,
                            .second = run->second,
                            .stopped = run->stopping,
                            .gates = gates,
                            .r = -ECANCELED};
    k->members = calloc(run->count + 1, sizeof(*k->members));
    k->names = calloc(run->count + 1, sizeof(*k->names));
    k->blocked = calloc(run->count + 1, sizeof(*k->blocked));
    if (k->members == NULL || k->names == NULL || k->blocked == NULL) {
        free(k->members);
        free(k->blocked);
        free(k->names);
        free(k);
        return -ENOMEM;
    }
    memcpy(k->members, run->members, run->count * sizeof(*k->members));
    for (uint32_t i = 0; i < run->count; i++) {
        snprintf(k->names[i], sizeof(k->names[i]), "%s", c->hosts[run->members[i].index]->name);
    }
    k->settings = run->settings;
    k->matrix = run->matrix;
    k->began_utc_ns = run->started_ns;
    k->before = c->audits->matrix;
    run->matrix = NULL;
    k->again = run->again;
    run->again = NULL;
    k->perf = run->perf;
    run->perf = NULL;
    k->first = run->failures;
    k->first_count = run->failure_count;
    run->settings = NULL;
    run->failures = NULL;
    run->failure_count = 0;
    worker_add(c->keeper, &k->job, false);
    return 0;
}

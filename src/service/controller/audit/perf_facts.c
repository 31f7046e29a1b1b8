/* perf_facts.c: what an audit's tests amount to: facts of each host, and "tests" of the run. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/audit/fact.h"
#include "platform/json/json.h"
#include "service/controller/audit/perf.h"

enum { FACTS_MOST = 96, TEXT_SIZE = 6144 };

static void add(struct audit_perf_host *w, enum fact_id id, const char *subject, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

static void add(struct audit_perf_host *w, enum fact_id id, const char *subject, const char *format,
                ...)
{
    va_list arguments;
    if (w->fact_count == FACTS_MOST || w->text_used + FACT_VALUE_MAX > TEXT_SIZE) {
        return;
    }
    char *text = w->text + w->text_used;
    va_start(arguments, format);
    const int size = vsnprintf(text, FACT_VALUE_MAX, format, arguments);
    va_end(arguments);
    w->text_used += (size_t)size + 1;
    w->facts[w->fact_count++] = (struct fact){.id = (uint16_t)id,
                                              .state = FACT_VALUE,
                                              .subject = subject,
                                              .value = text,
                                              .source = "this audit's tests"};
}

static double pair_of(const struct perf *p, uint32_t host, uint32_t nic)
{
    return p->pair[(size_t)host * HOST_NIC_MAX + nic];
}

/* Each NIC by the better of its partners; the host by the worst of its NICs, in thousandths of Gbit/s. */
static void add_pairs(const struct perf *p, uint32_t host, struct audit_perf_host *w)
{
    double least = -1;
    uint32_t runs = 0;
    for (uint32_t nic = 0; nic < w->nic_count; nic++) {
        const double rate = pair_of(p, host, nic);
        if (rate >= 0) {
            runs += p->tried[(size_t)host * HOST_NIC_MAX + nic];
            least = least < 0 || rate < least ? rate : least;
            add(w, FACT_PERF_NIC, w->names[nic], "%.3f of %.3f Gbit/s with %u partners",
                rate * 8e-9, p->usual[nic] * 8e-9, p->tried[(size_t)host * HOST_NIC_MAX + nic]);
        }
    }
    if (least >= 0) {
        add(w, FACT_TEST_RATE, "pair_bw", "%lld", llround(least * 8e-6));
        add(w, FACT_TEST_RUNS, "pair_bw", "%u", runs);
    }
}

static void add_row(const struct perf *p, uint32_t host, uint32_t row, struct audit_perf_host *w)
{
    static const char *const names[PERF_ROWS] = {"allreduce-q1",  "allreduce-q2",  "allreduce-q4",
                                                 "allreduce-q8",  "allreduce-q1h", "allreduce-q2h",
                                                 "allreduce-q4h", "allreduce-q8h"};
    const struct perf_result *r = &p->rows[(size_t)row * p->count + host];
    if (r->outcome == PERF_DONE) {
        add(w, FACT_TEST_RATE, names[row], "%lld", llround(r->rate * 1e-6));
        add(w, FACT_TEST_RUNS, names[row], "%u", r->runs);
        add(w, FACT_TEST_SPREAD, names[row], "%u", r->spread);
        add(w, FACT_TEST_WRONG, names[row], "%llu", (unsigned long long)r->wrong);
        add(w, FACT_TEST_NETWORK, names[row], "%s", r->network[0] != 0 ? r->network : "none");
        add(w, FACT_TEST_INIT, names[row], "%u", r->init_ms);
    }
}

static void add_late(const struct perf *p, uint32_t host, struct audit_perf_host *w)
{
    uint32_t late = 0, arrivals = 0;
    for (uint32_t row = 0; row < PERF_ROWS; row++) {
        const struct perf_result *r = &p->rows[(size_t)row * p->count + host];
        if (r->outcome == PERF_DONE) {
            late += r->late;
            arrivals += r->arrivals;
        }
    }
    if (arrivals > 0) {
        add(w, FACT_PERF_LATE, "", "%u of %u", late, arrivals);
    }
}

static void add_search(const struct audit_perf *x, uint32_t host, struct audit_perf_host *w)
{
    const struct perf *p = &x->core;
    const double best = p->best * 1e-9, expected = p->expected * 1e-9;
    for (uint32_t k = 0; p->searched && k < p->search.named_count; k++) {
        const struct search_named *n = &p->search.named[k];
        if (p->ring[1][n->member] == host && n->with == SEARCH_NONE) {
            add(w, FACT_PERF_SEARCH, "", "alone %.3f of %.3f GB/s", p->named_rate[host] * 1e-9,
                expected);
            return;
        }
        if (n->with != SEARCH_NONE &&
            (p->ring[1][n->member] == host || p->ring[1][n->with] == host)) {
            add(w, FACT_PERF_SEARCH, "", "pair %.3f of %.3f GB/s", best, expected);
            return;
        }
    }
    if (p->best < 0) {
        return;
    }
    add(w, FACT_PERF_SEARCH, "", "%s %.3f of %.3f GB/s",
        !p->slow                          ? "well"
        : !p->searched || p->unproven > 0 ? "unfinished"
        : p->search.named_count == 0      ? "nobody"
                                          : "others",
        best, expected);
}

static int judge_host(struct audit_perf *x, uint32_t host)
{
    struct audit_perf_host *w = &x->who[host];
    w->facts = calloc(FACTS_MOST, sizeof(*w->facts));
    w->text = malloc(TEXT_SIZE);
    if (w->facts == NULL || w->text == NULL) {
        return -ENOMEM;
    }
    const char *name = perf_outcome_name((enum perf_outcome)w->outcome);
    add(w, FACT_PERF, "", w->note[0] != 0 ? "%s: %s" : "%s", x->hosts[host].there ? name : "silent",
        w->note);
    add_pairs(&x->core, host, w);
    if (x->core.wants_rings) {
        for (uint32_t row = 0; row < PERF_ROWS; row++) {
            add_row(&x->core, host, row, w);
        }
        add_late(&x->core, host, w);
        add_search(x, host, w);
    }
    return 0;
}

int audit_perf_judge(struct audit_perf *x)
{
    int r = 0;
    for (uint32_t i = 0; i < x->count && r == 0 && !x->judged; i++) {
        r = judge_host(x, i);
    }
    x->judged = x->judged || r == 0;
    return r;
}

int audit_perf_facts(const struct audit_perf *x, int64_t host, struct sheet *sheet)
{
    for (uint32_t i = 0; i < x->count; i++) {
        const struct audit_perf_host *w = &x->who[i];
        if (w->id == host) {
            struct fact *larger =
                realloc(sheet->facts, (sheet->count + w->fact_count + 1) * sizeof(*sheet->facts));
            if (larger == NULL) {
                return -ENOMEM;
            }
            sheet->facts = larger;
            for (uint32_t k = 0; k < w->fact_count; k++) {
                sheet->facts[sheet->count++] = w->facts[k];
            }
            sheet->capacity = sheet->count;
        }
    }
    return 0;
}

/* ---- the run ---- */

static void write_row(const struct audit_perf *x, uint32_t row, struct json_writer *j)
{
    const struct perf *p = &x->core;
    const struct perf_result *is = NULL;
    uint32_t hosts = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct perf_result *r = &p->rows[(size_t)row * p->count + i];
        hosts += r->outcome != PERF_NOT_RUN;
        is = is == NULL || r->outcome > is->outcome ? r : is;
    }
    json_put_object(j, NULL);
    json_put_uint(j, "lanes", perf_lanes(row));
    json_put_string(j, "order", row < PERF_LANES_COUNT ? "name" : "leaf");
    json_put_uint(j, "hosts", hosts);
    json_put_string(j, "outcome",
                    perf_outcome_name(is != NULL ? (enum perf_outcome)is->outcome : PERF_NOT_RUN));
    json_put_int_if(j, "busbw", is != NULL && is->outcome == PERF_DONE,
                    is != NULL ? llround(is->rate) : 0);
    json_put_int_if(j, "spread_1e4", is != NULL && is->outcome == PERF_DONE,
                    is != NULL ? is->spread : 0);
    json_put_end(j);
}

static void write_named(const struct audit_perf *x, struct json_writer *j)
{
    const struct perf *p = &x->core;
    json_put_array(j, "named");
    for (uint32_t k = 0; p->searched && k < p->search.named_count; k++) {
        const struct search_named *n = &p->search.named[k];
        json_put_object(j, NULL);
        json_put_int(j, "host", x->who[p->ring[1][n->member]].id);
        json_put_int_if(j, "with", n->with != SEARCH_NONE,
                        n->with != SEARCH_NONE ? x->who[p->ring[1][n->with]].id : 0);
        json_put_end(j);
    }
    json_put_end(j);
}

void audit_perf_write(const struct audit_perf *x, struct json_writer *j)
{
    const struct perf *p = &x->core;
    json_put_object(j, "tests");
    json_put_int_if(j, "expected", p->plans > 1, llround(p->expected));
    json_put_array(j, "rows");
    for (uint32_t row = 0; p->wants_rings && p->plans > 2 && row < PERF_ROWS; row++) {
        write_row(x, row, j);
    }
    json_put_end(j);
    json_put_bool(j, "slow", p->slow);
    json_put_bool(j, "searched", p->searched);
    json_put_uint(j, "rounds", p->search.rounds);
    write_named(x, j);
    json_put_end(j);
}

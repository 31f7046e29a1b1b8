/* perf_facts.c: what an audit's tests amount to: facts of each host, and "tests" of the run. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/audit/fact.h"
#include "platform/json/json.h"
#include "service/controller/audit/perf.h"

/* Of one host: its outcome, NICs, slow trunks, of each collective seven facts, and twelve of all. Texts: what a test was not done
 * for, a trunk's name, and a line of each fact; the last one may be of any length. */
enum {
    ROW_FACTS = 7,
    FACTS_MOST = 1 + 2 * HOST_NIC_MAX + WAYS_TRUNKS_MAX + ROW_FACTS * (PERF_ROWS + 1) + 12,
    LINE_SIZE = 128,
    TEXT_SIZE = (3 + PERF_ROWS) * (AUDIT_WORDS_SIZE + 32) + WAYS_TRUNKS_MAX * 2 * WAY_NAME_SIZE +
                FACTS_MOST * LINE_SIZE + FACT_VALUE_MAX
};

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

/* There is none, and why: "failed: no connections". A check of it is unknown, and never one that nobody asked for. */
static void add_missing(struct audit_perf_host *w, enum fact_id id, const char *subject,
                        const char *why)
{
    if (w->fact_count < FACTS_MOST) {
        w->facts[w->fact_count++] = (struct fact){.id = (uint16_t)id,
                                                  .state = FACT_TIMEOUT,
                                                  .subject = subject,
                                                  .value = why,
                                                  .source = "this audit's tests"};
    }
}

/* Kept with the host's texts. */
static const char *keep(struct audit_perf_host *w, const char *outcome, const char *words)
{
    char *text = w->text + w->text_used;
    if (w->text_used + AUDIT_WORDS_SIZE + 32 > TEXT_SIZE) {
        return outcome;
    }
    const int size =
        snprintf(text, AUDIT_WORDS_SIZE + 32, words[0] != 0 ? "%s: %s" : "%s", outcome, words);
    w->text_used += (size_t)size + 1;
    return text;
}

/* What the whole of it came to. */
static const char *outcome_of(const struct audit_perf *x, uint32_t host)
{
    return x->who[host].misfit != NULL ? x->who[host].misfit
                                       : perf_outcome_name((enum perf_outcome)x->who[host].outcome);
}

/* What the rule of be.bw.pair reads behind the rates. */
static const char *const verdicts[] = {
    [PERF_NOT_COMPARED] = "not compared", [PERF_ALIKE] = "alike",
    [PERF_SCREENED] = "not tested again", [PERF_CLEARED] = "alike when tested again",
    [PERF_UNPROVEN] = "unproven",         [PERF_SLOWER] = "slower",
    [PERF_UNTOLD] = "not told apart"};

/* Of a NIC that looks slow, and that too few tests tell of: it may be as good as any. */
static bool is_unsure(const struct perf *p, uint32_t host, uint32_t nic)
{
    const struct perf_nic *n = &p->nic[(size_t)host * HOST_NIC_MAX + nic];
    return n->verdict == PERF_NOT_COMPARED
               ? n->tried < 2 && n->rate < (1 - p->practical) * perf_usual(p, host, nic)
               : n->verdict == PERF_SCREENED;
}

static void add_nic(const struct perf *p, uint32_t host, uint32_t nic, struct audit_perf_host *w)
{
    const struct perf_nic *n = &p->nic[(size_t)host * HOST_NIC_MAX + nic];
    add(w, FACT_PERF_NIC, w->names[nic],
        "%.3f of %.3f Gbit/s with %u partners: %s, of %u, %u retests, %.1f %% slower, processors "
        "%.1f %%",
        n->rate * 8e-9, perf_usual(p, host, nic) * 8e-9, n->tried, verdicts[n->verdict],
        perf_cohort(p, host, nic), n->retest.count,
        n->retest.count > 0 ? 100 * outlier_worse(&n->retest) / perf_usual(p, host, nic) : 0,
        100 * n->busy);
}

/* Each NIC by its retests, else by the best of its partners; the host by the worst of its NICs, in thousandths of Gbit/s. A NIC
 * that too few tests tell of makes the host unjudged. */
static void add_pairs(const struct perf *p, uint32_t host, struct audit_perf_host *w,
                      const char *outcome)
{
    double least = INFINITY;
    uint32_t runs = 0, unsure = 0, again = 0;
    for (uint32_t nic = 0; nic < w->nic_count; nic++) {
        const struct perf_nic *n = &p->nic[(size_t)host * HOST_NIC_MAX + nic];
        if (perf_is_measured(p, host, nic)) {
            runs += n->tried;
            unsure += is_unsure(p, host, nic);
            again += n->verdict == PERF_SCREENED;
            least = fmin(least, n->rate);
            add_nic(p, host, nic, w);
        } else {
            add_missing(w, FACT_PERF_NIC, w->names[nic], outcome);
            unsure++;
        }
    }
    const bool lasting = strcmp(outcome, "done") == 0 || strncmp(outcome, "failed", 6) == 0;
    const bool any = least < INFINITY;
    if (unsure == 0 && any) {
        add(w, FACT_TEST_RATE, "pair_bw", "%lld", llround(least * 8e-6));
        add(w, FACT_TEST_RUNS, "pair_bw", "%u", runs);
    } else {
        add_missing(w, FACT_TEST_RATE, "pair_bw",
                    again > 0 && any && lasting
                        ? "failed: a NIC looks slow, and could not be tested again beside others"
                    : !any || strcmp(outcome, "done") != 0
                        ? outcome
                        : "failed: one partner alone told of a NIC");
    }
}

/* Of a host that can be in an incast: one of a leaf receives. */
static void add_incasts(const struct perf *p, uint32_t host, struct audit_perf_host *w,
                        const char *outcome)
{
    for (uint32_t nic = 0; p->hosts[host].incast && nic < w->nic_count; nic++) {
        const struct perf_incast *is = &p->nic[(size_t)host * HOST_NIC_MAX + nic].incast;
        if (is->senders > 0) {
            const double ms =
                is->rate > 0 ? (double)is->came * PERF_INCAST_BYTES / is->rate * 1e3 : 0;
            add(w, FACT_PERF_INCAST, w->names[nic],
                "marked %llu of %llu, sent %llu, %.3f Gbit/s for %.0f ms, from %u hosts",
                (unsigned long long)is->marked, (unsigned long long)is->came,
                (unsigned long long)is->sent, is->rate * 8e-9, ms, is->senders);
        } else if (strcmp(outcome, "done") == 0) {
            add(w, FACT_PERF_INCAST, w->names[nic], "none");
        } else {
            add_missing(w, FACT_PERF_INCAST, w->names[nic], outcome);
        }
    }
}

static void add_truth(const struct perf *p, uint32_t host, struct audit_perf_host *w,
                      const char *outcome)
{
    const enum perf_truth truth = perf_truth_of(p, host);
    uint32_t wrong = 0;
    for (uint32_t nic = 0; nic < w->nic_count; nic++) {
        wrong += p->nic[(size_t)host * HOST_NIC_MAX + nic].wrong;
    }
    if (truth == PERF_RIGHT || truth == PERF_WRONG) {
        add(w, FACT_TEST_WRONG, "pairs", "%u", truth == PERF_WRONG ? wrong : 0);
    } else {
        add_missing(w, FACT_TEST_WRONG, "pairs",
                    truth == PERF_UNSURE ? "failed: wrong values beside one partner, and no other"
                                         : outcome);
    }
}

/* A collective that was done. */
static void add_collective(const struct perf *p, uint32_t host, struct audit_perf_host *w,
                           const char *name, const struct perf_result *r, uint32_t hosts)
{
    add(w, FACT_TEST_RATE, name, "%lld", llround(r->rate * 1e-6));
    add(w, FACT_TEST_RUNS, name, "%u", r->runs);
    add(w, FACT_TEST_RANKS, name, "%u", hosts);
    add(w, FACT_TEST_SPREAD, name, "%u", r->spread);
    add(w, FACT_TEST_NETWORK, name, "%s", r->network[0] != 0 ? r->network : "none");
    add(w, FACT_TEST_INIT, name, "%u", r->init_ms);
    if (r->wrong == 0 || perf_truth_of(p, host) == PERF_WRONG) {
        add(w, FACT_TEST_WRONG, name, "%llu", (unsigned long long)r->wrong);
    } else { /* who receives them sees them: they may be any other host's */
        add_missing(w, FACT_TEST_WRONG, name,
                    "failed: wrong values that may be another host's; whose they are, pairs tell");
    }
}

/* What remains of the spread of the first collective's runs. None if this host's agent doesn't tell. */
static void add_waited(const struct perf *p, uint32_t host, struct audit_perf_host *w)
{
    double two, one;
    if (perf_spread_left(p, host, &two, &one)) {
        add(w, FACT_PERF_WAITED, "",
            "%.2f %% left without its waiting and that of two others, %.2f %% without that of one",
            two, one);
    }
}

static const char *why_in_no_ring(const struct perf *p, const char *outcome)
{
    return strcmp(outcome, "done") != 0 ? outcome
           : p->ring_count < 2          ? "not-run: fewer than two hosts could take part"
                               : "not-run: of its NICs fewer were measured than of most hosts";
}

static const char *why_missing(struct audit_perf_host *w, const struct perf_result *r,
                               const char *why)
{
    return r->outcome != PERF_NOT_RUN
               ? keep(w, perf_outcome_name((enum perf_outcome)r->outcome), r->words)
               : why;
}

static void add_row(const struct perf *p, uint32_t host, uint32_t row, struct audit_perf_host *w,
                    const char *outcome)
{
    static const char *const names[PERF_ROWS] = {"allreduce-q1",  "allreduce-q2",  "allreduce-q4",
                                                 "allreduce-q8",  "allreduce-q1h", "allreduce-q2h",
                                                 "allreduce-q4h", "allreduce-q8h"};
    static const enum fact_id ids[ROW_FACTS] = {
        FACT_TEST_RATE,  FACT_TEST_RUNS,    FACT_TEST_RANKS, FACT_TEST_SPREAD,
        FACT_TEST_WRONG, FACT_TEST_NETWORK, FACT_TEST_INIT};
    const struct perf_result *r = &p->rows[(size_t)row * p->count + host];
    if (r->outcome == PERF_DONE) {
        add_collective(p, host, w, names[row], r, p->together[row].hosts);
        return;
    }
    const char *why = why_missing(w, r, why_in_no_ring(p, outcome));
    for (size_t k = 0; k < sizeof(ids) / sizeof(ids[0]); k++) {
        add_missing(w, ids[k], names[row], why);
    }
}

/* Without one its own check alone is unknown: those that block jobs have the rows of rings to go by. */
static void add_alltoall(const struct perf *p, uint32_t host, struct audit_perf_host *w,
                         const char *outcome)
{
    const struct perf_fabric *f = &p->fabric[host];
    if (!p->no_alltoall && f->alltoall.outcome == PERF_DONE) {
        add_collective(p, host, w, "alltoall", &f->alltoall, f->ranks);
    } else if (!p->no_alltoall) {
        add_missing(w, FACT_TEST_RATE, "alltoall",
                    why_missing(w, &f->alltoall,
                                p->hosts[host].there && !p->hosts[host].alltoall
                                    ? "old-agent"
                                    : why_in_no_ring(p, outcome)));
    }
}

/* What a NIC carries when all hosts meet others at once, in thousandths of Gbit/s. */
static void add_permutations(const struct perf *p, uint32_t host, struct audit_perf_host *w,
                             const char *outcome)
{
    const double rate = perf_permuted(p, host);
    if (p->no_permutations) {
        return;
    }
    if (rate < 0) {
        add_missing(w, FACT_TEST_RATE, "permutation_bw", why_in_no_ring(p, outcome));
        return;
    }
    add(w, FACT_TEST_RATE, "permutation_bw", "%lld", llround(rate * 8e-6));
    add(w, FACT_TEST_RUNS, "permutation_bw", "%u", p->fabric[host].count);
}

static void add_late(const struct perf *p, uint32_t host, struct audit_perf_host *w,
                     const char *outcome)
{
    uint32_t late = 0, arrivals = 0;
    for (uint32_t row = 0; row < PERF_ROWS; row++) {
        const struct perf_result *r = &p->rows[(size_t)row * p->count + host];
        if (r->outcome == PERF_DONE && p->together[row].hosts > 2) {
            late += r->late;
            arrivals += r->arrivals;
        }
    }
    if (arrivals > 0) {
        add(w, FACT_PERF_LATE, "", "%u of %u", late, arrivals);
    } else {
        add_missing(w, FACT_PERF_LATE, "",
                    strcmp(outcome, "done") != 0 ? outcome : "not-run: no test of three hosts");
    }
}

static void add_search(const struct audit_perf *x, uint32_t host, struct audit_perf_host *w,
                       const char *outcome)
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
    if (p->best < 0 || !perf_in_rings(p, host)) {
        add_missing(w, FACT_PERF_SEARCH, "",
                    strcmp(outcome, "done") != 0 ? outcome : "not-run: it was in no ring");
        return;
    }
    const bool unproven = !p->searched || p->search.unproven > 0 || p->search.full;
    add(w, FACT_PERF_SEARCH, "", "%s %.3f of %.3f GB/s",
        !p->slow                                  ? "well"
        : unproven && !perf_cleared(p, host)      ? (p->excused > 0 ? "processors" : "unfinished")
        : p->search.named_count == 0 && !unproven ? "nobody"
                                                  : "others",
        best, expected);
}

/* Of a host's own ways: how many there are of each kind, and which slow trunks they cross. */
struct ways_of_host {
    uint32_t own, seen, direct, slow, lost;
    uint32_t crossed; /* bit k: trunk k */
};
_Static_assert(WAYS_TRUNKS_MAX <= 32, "a bit for each trunk");

static void count_way(const struct ways *w, const struct way *way, struct ways_of_host *of)
{
    if (way->rate == 0) {
        of->lost++;
        return;
    }
    of->own++;
    of->seen += way_is_seen(way);
    of->direct += way->hop_count == 1;
    of->slow += way_is_slow(way);
    for (uint32_t k = 0; k < w->trunk_count && way_is_slow(way); k++) {
        of->crossed |= way_is_slow_by(way, &w->trunks[k]) ? 1u << k : 0;
    }
}

/* The slow trunks that this host's packets go over. They are no host's fault, and of all hosts that use them. */
static void add_ways(const struct ways *ways, const struct ways_of_host *of,
                     struct audit_perf_host *w, const char *outcome)
{
    for (uint32_t left = of->crossed; left != 0; left &= left - 1) {
        const struct way_trunk *trunk = &ways->trunks[__builtin_ctz(left)];
        char name[2 * WAY_NAME_SIZE];
        snprintf(name, sizeof(name), "%s/%s", trunk->ends[0], trunk->ends[1]);
        add(w, FACT_PERF_PATH, keep(w, name, ""), "%.3f of %.3f Gbit/s%s", trunk->rate * 8e-9,
            ways->usual * 8e-9, trunk->sure ? "" : ", it or another one of the same paths");
    }
    if (of->crossed != 0) {
        return;
    }
    if (of->own > 0 && of->direct == of->own) {
        add(w, FACT_PERF_PATH, "", "none");
    } else if (of->own > 0 && (of->slow > 0 || of->lost > 0)) {
        add_missing(w, FACT_PERF_PATH, "",
                    of->slow == 0 ? "not-run: of what went by one path less than half came"
                    : ways->uneven
                        ? "not-run: most paths are slow beside the best: no trunk is why, busy "
                          "hosts may be"
                        : "not-run: a path is slow, and too few hosts tell by which trunk");
    } else if (ways->left_out > 0) {
        add_missing(w, FACT_PERF_PATH, "",
                    "not-run: more paths or slow trunks than there is room for");
    } else if (of->seen > 0) {
        add(w, FACT_PERF_PATH, "", "well, %u paths", of->seen);
    } else {
        add_missing(w, FACT_PERF_PATH, "",
                    strcmp(outcome, "done") != 0 ? outcome
                    : of->own > 0                ? "not-run: routers on its paths do not answer"
                                                 : "not-run: of its paths none was measured");
    }
}

/* Of the host's own memory, in thousandths of GB/s. Without a result that of a file counts, if there is one: the last facts. */
static void add_memory(const struct perf *p, uint32_t host, struct audit_perf_host *w,
                       const char *outcome)
{
    const struct perf_memory *m = &p->memory[host];
    const struct perf_result *r = &m->best;
    const uint32_t before = w->fact_count;
    if (p->no_memory) {
        return;
    }
    if (r->outcome == PERF_DONE && !perf_memory_doubted(p, host)) {
        add(w, FACT_TEST_RATE, "mem_bw", "%lld", llround(r->rate * 1e-6));
        add(w, FACT_TEST_RUNS, "mem_bw", "%u", m->runs);
        add(w, FACT_TEST_SPREAD, "mem_bw", "%u", r->spread);
        return;
    }
    const bool old = p->hosts[host].there && !p->hosts[host].memory;
    add_missing(w, FACT_TEST_RATE, "mem_bw",
                r->outcome == PERF_DONE
                    ? "failed: its memory looks slow, and could not be measured again"
                : r->outcome == PERF_FAILED && r->busy > 0 ? keep(w, "busy", r->words)
                : old                                      ? "old-agent"
                : strcmp(outcome, "done") == 0 && r->outcome == PERF_NOT_RUN
                    ? "not-run: its test was not planned"
                    : why_missing(w, r, outcome));
    w->weak = w->fact_count - before;
}

static int judge_host(struct audit_perf *x, uint32_t host, const struct ways_of_host *ways)
{
    struct audit_perf_host *w = &x->who[host];
    w->facts = calloc(FACTS_MOST, sizeof(*w->facts));
    w->text = malloc(TEXT_SIZE);
    if (w->facts == NULL || w->text == NULL) {
        return -ENOMEM;
    }
    const char *outcome = keep(w, outcome_of(x, host), w->note);
    add(w, FACT_PERF, "", "%s", outcome);
    add_pairs(&x->core, host, w, outcome);
    add_incasts(&x->core, host, w, outcome);
    add_ways(&x->core.ways, ways, w, outcome);
    add_permutations(&x->core, host, w, outcome);
    if (x->core.wants_rings) {
        add_truth(&x->core, host, w, outcome);
        for (uint32_t row = 0; row < PERF_ROWS; row++) {
            add_row(&x->core, host, row, w, outcome);
        }
        add_alltoall(&x->core, host, w, outcome);
        add_late(&x->core, host, w, outcome);
        add_waited(&x->core, host, w);
        add_search(x, host, w, outcome);
    }
    add_memory(&x->core, host, w, outcome); /* last: some of it is weak */
    return 0;
}

int audit_perf_judge(struct audit_perf *x)
{
    struct ways *w = &x->core.ways;
    struct ways_of_host *ways = calloc(x->count + 1, sizeof(*ways));
    int r = ways == NULL ? -ENOMEM : 0;
    if (r == 0 && !x->judged) {
        ways_judge(w);
    }
    for (uint32_t i = 0; i < w->count && r == 0; i++) {
        count_way(w, &w->all[i], &ways[w->all[i].host]);
    }
    for (uint32_t i = 0; i < x->count && r == 0 && !x->judged; i++) {
        r = judge_host(x, i, &ways[i]);
    }
    x->judged = x->judged || r == 0;
    free(ways);
    return r;
}

int audit_perf_facts(const struct audit_perf *x, int64_t host, bool weak, struct sheet *sheet)
{
    for (uint32_t i = 0; i < x->count; i++) {
        const struct audit_perf_host *w = &x->who[i];
        if (w->id == host) {
            const uint32_t first = weak ? w->fact_count - w->weak : 0,
                           end = weak ? w->fact_count : w->fact_count - w->weak;
            struct fact *larger =
                realloc(sheet->facts, (sheet->count + end - first + 1) * sizeof(*sheet->facts));
            if (larger == NULL) {
                return -ENOMEM;
            }
            sheet->facts = larger;
            for (uint32_t k = first; k < end; k++) {
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
    const struct perf_together *all = &p->together[row];
    const struct perf_result *is = NULL; /* of one that was in it */
    for (uint32_t i = 0; i < x->count && all->outcome == PERF_DONE && is == NULL; i++) {
        const struct perf_result *r = &p->rows[(size_t)row * p->count + i];
        is = r->outcome == PERF_DONE ? r : NULL;
    }
    json_put_object(j, NULL);
    json_put_uint(j, "lanes", perf_lanes(row));
    json_put_string(j, "order", row < PERF_LANES_COUNT ? "name" : "leaf");
    json_put_uint(j, "hosts", all->hosts);
    json_put_string(j, "outcome", perf_outcome_name((enum perf_outcome)all->outcome));
    json_put_int_if(j, "busbw", is != NULL, llround(all->rate));
    json_put_int_if(j, "spread_1e4", is != NULL, is != NULL ? is->spread : 0);
    json_put_int_if(j, "busy_1e4", is != NULL, llround(all->busy * 1e4));
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

static void write_nic(const struct audit_perf *x, uint32_t host, uint32_t nic,
                      struct json_writer *j)
{
    const struct perf *p = &x->core;
    const struct perf_nic *n = &p->nic[(size_t)host * HOST_NIC_MAX + nic];
    const double usual = perf_usual(p, host, nic);
    json_put_object(j, NULL);
    json_put_int(j, "host", x->who[host].id);
    json_put_string(j, "nic", x->who[host].names[nic]);
    json_put_int_if(j, "rate", n->tried > 0, llround(n->rate));
    json_put_int_if(j, "usual", usual > 0, llround(usual));
    json_put_uint(j, "partners", n->tried);
    json_put_uint(j, "retests", n->retest.count);
    json_put_int_if(j, "slower_1e4", n->retest.count > 0 && usual > 0,
                    usual > 0 ? llround(1e4 * outlier_worse(&n->retest) / usual) : 0);
    json_put_string(j, "verdict", verdicts[n->verdict]);
    json_put_end(j);
}

/* All of them; of many those alone that are not as others are. */
static void write_nics(const struct audit_perf *x, struct json_writer *j)
{
    enum { ALL_MOST = 512 };
    uint32_t all = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        all += x->who[i].nic_count;
    }
    json_put_array(j, "nics");
    for (uint32_t i = 0; i < x->count; i++) {
        for (uint32_t nic = 0; nic < x->who[i].nic_count; nic++) {
            if (all <= ALL_MOST ||
                x->core.nic[(size_t)i * HOST_NIC_MAX + nic].verdict != PERF_ALIKE) {
                write_nic(x, i, nic, j);
            }
        }
    }
    json_put_end(j);
}

static void write_memory(const struct audit_perf *x, struct json_writer *j)
{
    json_put_array(j, "memory");
    for (uint32_t i = 0; i < x->count; i++) {
        const struct perf_memory *m = &x->core.memory[i];
        const bool done = m->best.outcome == PERF_DONE;
        if (m->best.outcome != PERF_NOT_RUN) {
            json_put_object(j, NULL);
            json_put_int(j, "host", x->who[i].id);
            json_put_string(j, "outcome", perf_outcome_name((enum perf_outcome)m->best.outcome));
            json_put_int_if(j, "rate", done, llround(m->best.rate));
            json_put_uint(j, "runs", m->runs);
            json_put_int_if(j, "spread_1e4", done, m->best.spread);
            json_put_end(j);
        }
    }
    json_put_end(j);
}

void audit_perf_write(const struct audit_perf *x, struct json_writer *j)
{
    const struct perf *p = &x->core;
    json_put_object(j, "tests");
    json_put_int_if(j, "expected", p->stage > PERF_PAIRS_AGAIN, llround(p->expected));
    write_nics(x, j);
    write_memory(x, j);
    json_put_array(j, "rows");
    for (uint32_t row = 0; p->wants_rings && p->stage >= PERF_RINGS && row < PERF_ROWS; row++) {
        write_row(x, row, j);
    }
    json_put_end(j);
    json_put_int_if(j, "rows_ms", x->rows_ms > 0, x->rows_ms);
    json_put_bool(j, "slow", p->slow);
    json_put_bool(j, "processors", p->excused > 0);
    json_put_bool(j, "searched", p->searched);
    json_put_uint(j, "rounds", p->search.rounds);
    write_named(x, j);
    json_put_end(j);
}

/* rules_tests.c: rules of tests that somebody ran (facts test.*), and of the values that jobs are given. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/audit/rule_list.h"

enum { RUNS_LEAST = 3 };

/* The outcome of this audit's tests of the host: a word of core/audit/perf.h, or more. NULL: it made none. */
static const char *tested(struct judging *j)
{
    const struct fact *perf = sheet_find(j->sheet, FACT_PERF, "");

    return perf != NULL && perf->state == FACT_VALUE ? perf->value : NULL;
}

void rule_not_measured(struct judging *j, const char *why)
{
    static const struct {
        const char *word;
        enum audit_reason reason;
        const char *note;
    } words[] = {{"busy", REASON_BUSY, "a job runs here"},
                 {"preempted", REASON_PREEMPTED, "a job began during the test"},
                 {"silent", REASON_TIMEOUT, "its tests told nothing"},
                 {"clock", REASON_CLOCK, "the clocks allow no one-way delays"},
                 {"old-agent", REASON_OLD_AGENT, "its agent is too old to take part: update it"}};

    judge_end(j, AUDIT_UNKNOWN, NULL, NULL);
    j->result->reason = REASON_NOT_RUN;
    j->result->note = why;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strncmp(why, words[i].word, strlen(words[i].word)) == 0) {
            j->result->reason = (uint8_t)words[i].reason;
            j->result->note = strchr(why, ':') != NULL ? why : words[i].note;
        }
    }
}

/* False: no results are kept, or nobody ran this test; the verdict is set then. */
static bool kept(struct judging *j, enum fact_id id, const char *name, const struct fact **ret)
{
    const struct fact *fact = judge_look(j, id, name);
    const struct fact *folder =
        fact == NULL || fact->state != FACT_VALUE ? judge_look(j, FACT_TEST, "") : NULL;
    const char *perf = tested(j);

    if (fact != NULL && fact->state != FACT_VALUE && perf != NULL) {
        rule_not_measured(j, fact->value);
        return false;
    }
    if (folder != NULL) {
        if (folder->state == FACT_ABSENT) {
            judge_skip(j, "no results of tests are kept here: /var/lib/foliot/tests");
        } else {
            judge_unknown(j, folder);
        }
        return false;
    }
    if (fact == NULL || fact->state != FACT_VALUE) {
        judge_unknown(j, fact);
        if (fact == NULL || fact->state == FACT_ABSENT) {
            j->result->reason = REASON_NOT_RUN;
            j->result->note = "nobody ran it: its result is not kept";
        }
        return false;
    }
    *ret = fact;
    return true;
}

static bool test_number(struct judging *j, enum fact_id id, const char *name, int64_t *ret)
{
    const struct fact *fact;

    return kept(j, id, name, &fact) && fact_number(fact->value, ret);
}

/* This audit's result for an interface in tests of pairs (service/controller/audit/perf_facts.c). */
struct tested_nic {
    double rate, usual, worse; /* worse: by its retests, in percent */
    /* the share of its best test in which processors may have been the limit, in percent */
    double busy;
    unsigned partners, cohort, retests;
    char verdict[32];
};

static bool read_tested(const struct fact *f, struct tested_nic *ret)
{
    const char *busy = strstr(f->value, ", processors ");

    if (busy == NULL || sscanf(busy, ", processors %lf %%", &ret->busy) != 1) {
        ret->busy = 0; /* an earlier release's audit */
    }
    return f->state == FACT_VALUE &&
           sscanf(f->value,
                  "%lf of %lf Gbit/s with %u partners: %31[^,], of %u, %u retests, %lf %% slower",
                  &ret->rate, &ret->usual, &ret->partners, ret->verdict, &ret->cohort,
                  &ret->retests, &ret->worse) == 7;
}

static double share_of(const struct tested_nic *nic)
{
    return nic->usual > 0 ? nic->rate / nic->usual : 1;
}

static bool is_slower(const struct tested_nic *nic)
{
    return strcmp(nic->verdict, "slower") == 0;
}

/* The worse interface of the host, else the slowest; the note names it. False: this audit didn't test them. */
static bool name_slow_nic(struct judging *j, struct tested_nic *ret)
{
    uint32_t count;
    const struct fact *f = sheet_first(j->sheet, FACT_PERF_NIC, &count);
    bool any = false;

    for (uint32_t i = 0; strcmp(j->check->words, "pair_bw") == 0 && i < count; i++) {
        struct tested_nic nic;
        if (read_tested(&f[i], &nic) &&
            (!any || is_slower(&nic) > is_slower(ret) ||
             (is_slower(&nic) == is_slower(ret) && share_of(&nic) < share_of(ret)))) {
            *ret = nic;
            any = true;
            j->result->note = judge_format(j, "%s: %.3f of %.3f Gbit/s with %u partners",
                                           f[i].subject, nic.rate, nic.usual, nic.partners);
        }
    }
    return any;
}

/* It carries less than that, but would not without the time that processors may have taken. */
static bool is_excused(const struct tested_nic *nic, double least)
{
    return nic->rate < least && nic->rate >= least * (1 - nic->busy / 100);
}

static void judge_excused(struct judging *j, const char *found, const struct tested_nic *nic)
{
    const char *note = j->result->note;

    judge_end(j, AUDIT_UNKNOWN, found, judge_format(j, "%.3f", nic->usual));
    j->result->reason = REASON_BUSY;
    j->result->note = judge_format(
        j, "%s; in %.0f %% of its best test processors may have been the limit", note, nic->busy);
}

/* By tests of this audit. The first tests only choose the candidates for retests; the retests decide. */
static void judge_pairs(struct judging *j, const char *found, const struct tested_nic *nic)
{
    const char *note = j->result->note;

    if (strcmp(nic->verdict, "not compared") == 0) {
        judge_end(j, AUDIT_UNKNOWN, found, NULL);
        j->result->reason = REASON_SMALL_COHORT;
        j->result->note = "too few others to compare it with";
        return;
    }
    if (strcmp(nic->verdict, "not told apart") == 0 &&
        is_excused(nic, nic->usual * (1 - j->fail))) {
        judge_excused(j, found, nic);
        return;
    }
    if (strcmp(nic->verdict, "not told apart") == 0) {
        judge_end(j, AUDIT_UNKNOWN, found, judge_format(j, "%.3f", nic->usual));
        j->result->reason = REASON_NOT_RUN;
        j->result->note =
            judge_format(j, "%s; tests vary by as much here: are the hosts busy?", note);
        return;
    }
    judge_end(j,
              is_slower(nic)                          ? AUDIT_FAIL
              : strcmp(nic->verdict, "unproven") == 0 ? AUDIT_WARN
                                                      : AUDIT_PASS,
              found, judge_format(j, "%.3f", nic->usual));
    j->result->cohort = nic->cohort;
    j->result->basis = judge_format(j, "the median of %u", nic->cohort);
    j->result->note = j->result->status == AUDIT_PASS ? note
                      : j->result->status == AUDIT_FAIL
                          ? judge_format(j, "%s; %.1f %% slower than those beside it in %u retests",
                                         note, nic->worse, nic->retests)
                          : judge_format(j,
                                         "%s; %.1f %% slower in %u retests, and so are others by "
                                         "chance",
                                         note, nic->worse, nic->retests);
}

/* The result that the check's words name: below the declared value by more than a share, or below the cohort's median. */
void rule_test_rate(struct judging *j)
{
    const char *declared = j->setting != NULL ? j->setting->declared : NULL;
    int64_t rate;

    if (!test_number(j, FACT_TEST_RATE, j->check->words, &rate)) {
        return;
    }
    const char *found = judge_format(j, "%.3f", (double)rate / 1000);
    struct tested_nic nic = {.partners = 0};
    const bool own = name_slow_nic(j, &nic);
    if (declared == NULL && own) {
        judge_pairs(j, found, &nic);
        return;
    }
    if (declared == NULL) {
        const struct fact *runs = sheet_find(j->sheet, FACT_TEST_RUNS, j->check->words);
        const uint32_t before = j->audit->item_count;
        int64_t count = 1;
        judge_join(j, "", found, (double)rate);
        if (j->audit->item_count > before) {
            const bool known = runs != NULL && fact_number(runs->value, &count),
                       again = tested(j) == NULL || strcmp(j->check->words, "permutation_bw") != 0;
            j->audit->items[before].once = !known || count < RUNS_LEAST || !again;
        }
        return;
    }
    const double expected = strtod(declared, NULL), least = expected * (1 - j->fail);
    if (!(expected > 0)) {
        judge_skip(j, "what is declared is no number");
        return;
    }
    if (own && nic.partners == 1 && (double)rate / 1000 < expected * (1 - j->fail / 2)) {
        judge_end(j, AUDIT_UNKNOWN, found, NULL);
        j->result->reason = REASON_NOT_RUN;
        j->result->note = "slow with its only partner: which of both it is takes a third host";
        return;
    }
    if (own && is_excused(&nic, least)) {
        judge_excused(j, found, &nic);
        return;
    }
    judge_end(j,
              (double)rate / 1000 < least                          ? AUDIT_FAIL
              : (double)rate / 1000 < expected * (1 - j->fail / 2) ? AUDIT_WARN
                                                                   : AUDIT_PASS,
              found, judge_format(j, "%.3f, as declared, less %.15g %%", expected, j->fail * 100));
}

void rule_test_gain(struct judging *j)
{
    int64_t one, eight;

    if (!test_number(j, FACT_TEST_RATE, "allreduce-q1", &one) ||
        !test_number(j, FACT_TEST_RATE, "allreduce-q8", &eight)) {
        return;
    }
    const struct fact *late = sheet_find(j->sheet, FACT_PERF_LATE, "");
    if (tested(j) != NULL && late != NULL && late->state != FACT_VALUE) {
        /* a rate between two hosts may rest on one host's report */
        rule_not_measured(j, late->value);
        return;
    }
    if (one <= 0) {
        judge_skip(j, "one queue pair carried nothing");
        return;
    }
    const double gain = (double)eight / (double)one;
    judge_end(j, gain > j->fail || gain < j->warn ? AUDIT_FAIL : AUDIT_PASS,
              judge_format(j, "%.2f", gain),
              judge_format(j, "between %.15g and %.15g", j->warn, j->fail));
    j->result->note = gain > j->fail   ? "flows of one queue pair meet on one path"
                      : gain < j->warn ? "queue pairs cost more than they bring"
                                       : "";
}

/* In all hosts' runs one that waits for a processor makes all others wait. A host's own report excuses it, and reports of others
 * that two of them confirm. A single other host's report may be false: it makes a failure a warning, and it takes no excuse away.
 * False: it is neither. */
static bool is_of_processors(struct judging *j, const char *found, const char *limit)
{
    const struct fact *f = judge_look(j, FACT_PERF_WAITED, "");
    double two, one;

    if (f == NULL || f->state != FACT_VALUE ||
        sscanf(f->value,
               "%lf %% left without its waiting and that of two others, %lf %% without that of one",
               &two, &one) != 2 ||
        (one > j->fail && two > j->fail)) {
        return false;
    }
    judge_end(j, two > j->fail ? AUDIT_WARN : AUDIT_UNKNOWN, found, limit);
    if (two > j->fail) {
        j->result->note = "by the report of one other host it waited for processors";
    } else {
        j->result->reason = REASON_BUSY;
        j->result->note = judge_format(
            j, "the test waited for processors: without that its runs differ by %.2f %%", two);
    }
    return true;
}

/* In ten-thousandths. */
void rule_test_spread(struct judging *j)
{
    int64_t runs, spread;

    if (!test_number(j, FACT_TEST_RUNS, "allreduce-q1", &runs) ||
        !test_number(j, FACT_TEST_SPREAD, "allreduce-q1", &spread)) {
        return;
    }
    if (runs < RUNS_LEAST) {
        judge_end(j, AUDIT_UNKNOWN, NULL, "three runs or more");
        j->result->reason = REASON_NOT_RUN;
        j->result->note = "fewer than three runs are kept";
        return;
    }
    const char *found =
                   judge_format(j, "%.2f %% of %lld runs", (double)spread / 100, (long long)runs),
               *limit = judge_format(j, "at most %.15g %%", j->fail);
    const bool fails = (double)spread > j->fail * 100;
    if (!fails || !is_of_processors(j, found, limit)) {
        judge_end(j, fails ? AUDIT_FAIL : AUDIT_PASS, found, limit);
    }
}

/* Every result that is kept must be correct. */
void rule_test_correct(struct judging *j)
{
    int64_t wrong;

    if (!judge_number(j, FACT_TEST_WRONG, j->subject, &wrong)) {
        return;
    }
    if (wrong < 0) {
        judge_skip(j, "its result was not compared (-c 1)");
    } else {
        judge_end(j, wrong > 0 ? AUDIT_FAIL : AUDIT_PASS,
                  judge_format(j, "%lld wrong values", (long long)wrong), "none");
    }
}

void rule_test_network(struct judging *j)
{
    const char *network = judge_text(j, FACT_TEST_NETWORK, j->subject);

    if (network == NULL) {
        return;
    }
    if (strcmp(network, "none") == 0) {
        judge_skip(j, "it was run without NCCL's log (NCCL_DEBUG=INFO)");
    } else if (strcmp(network, "Socket") == 0) {
        judge_end(j, AUDIT_FAIL, "sockets", "a plugin, or RDMA");
    } else {
        judge_join(j, j->subject, network, 0);
    }
}

void rule_test_init(struct judging *j)
{
    int64_t ms;

    if (!judge_number(j, FACT_TEST_INIT, j->subject, &ms)) {
        return;
    }
    if (ms < 0) {
        judge_skip(j, "it was run without NCCL's log (NCCL_DEBUG=INFO)");
    } else {
        judge_end(j, (double)ms > j->fail * 1000 ? AUDIT_FAIL : AUDIT_PASS,
                  judge_format(j, "%.1f s", (double)ms / 1000),
                  judge_format(j, "at most %.15g s", j->fail));
    }
}

/* It passes only if no test was left out. */
void rule_test_dcgm(struct judging *j)
{
    int pass, fail, warn, skip, other;
    const struct fact *fact;

    if (!kept(j, FACT_TEST_DCGM, "", &fact)) {
        return;
    }
    if (sscanf(fact->value, "pass %d, fail %d, warn %d, skip %d, other %d", &pass, &fail, &warn,
               &skip, &other) != 5) {
        judge_unknown(j, NULL);
        return;
    }
    if (fail == 0 && warn == 0 && skip + other > 0) {
        judge_end(j, AUDIT_UNKNOWN, fact->value, "all of it was run");
        j->result->reason = REASON_NOT_RUN;
        return;
    }
    judge_end(j, fail > 0 ? AUDIT_FAIL : warn > 0 ? AUDIT_WARN : AUDIT_PASS, fact->value, "pass");
}

/* ---- tests of this audit ---- */

static const char *perf_text(struct judging *j, enum fact_id id)
{
    const struct fact *fact = judge_look(j, id, "");
    const char *why = tested(j);

    if (fact != NULL && fact->state == FACT_VALUE) {
        return fact->value;
    }
    if (why != NULL && fact != NULL) {
        rule_not_measured(j, fact->value);
    } else if (why == NULL) {
        judge_unknown(j, fact);
    } else { /* if it should have run them, there is a reason why it didn't */
        judge_skip(j, "this audit made no tests of collectives: --nccl does");
    }
    return NULL;
}

/* A host that comes last, and late, to many collectives makes all others wait. */
void rule_straggler(struct judging *j)
{
    const char *text = perf_text(j, FACT_PERF_LATE);
    unsigned late, of;

    if (text == NULL) {
        return;
    }
    if (sscanf(text, "%u of %u", &late, &of) != 2 || of == 0 || late > of) {
        judge_unknown(j, NULL);
        return;
    }
    judge_end(j, late > j->fail * of ? AUDIT_FAIL : AUDIT_PASS,
              judge_format(j, "last and more than 1 ms late %u times of %u", late, of),
              judge_format(j, "at most %.15g %%", j->fail * 100));
}

/* The port's rate in Gbit/s, as the port and its interface report it; a driver may lack one of them. 0: neither is known. */
static double port_speed(struct judging *j, const char *net)
{
    const struct fact *port = judge_look(j, FACT_PORT_RATE, j->subject),
                      *speed = judge_look(j, FACT_NET_SPEED, net);
    double gbps = 0;
    int64_t mbps = 0;

    if (port == NULL || port->state != FACT_VALUE ||
        sscanf(port->value, "%lf Gb/sec", &gbps) != 1) {
        gbps = 0;
    }
    if (speed == NULL || speed->state != FACT_VALUE || !fact_number(speed->value, &mbps)) {
        mbps = 0;
    }
    return fmax(gbps, (double)mbps * 1e-3);
}

struct incast {
    unsigned long long marked, came, sent;
    double rate, ms; /* Gbit/s, and for how long */
    unsigned senders;
};

/* If more comes than the port carries, a queue grows and stays. Other tests' rates can't show whether it did: a processor may
 * limit those tests as it limits this one. */
static void judge_incast(struct judging *j, const struct incast *is, const char *net)
{
    enum { LEAST_MS = 500 /* most of the second in which they send */ };
    const double speed = is->marked == 0 ? port_speed(j, net) : 0;
    const bool full = speed > 0 && is->rate >= j->fail * speed;

    judge_end(j,
              is->marked > 0               ? AUDIT_PASS
              : full && is->ms >= LEAST_MS ? AUDIT_FAIL
                                           : AUDIT_UNKNOWN,
              judge_format(j, "%llu of %llu packets marked, %.3f Gbit/s for %.0f ms", is->marked,
                           is->came, is->rate, is->ms),
              "some are, where the link is full");
    if (j->result->status != AUDIT_UNKNOWN) {
        return;
    }
    j->result->reason = speed > 0 ? REASON_NOT_RUN : REASON_NO_SOURCE;
    j->result->note =
        speed <= 0 ? "what the port carries is not known"
        : !full    ? judge_format(j,
                                  "%u hosts did not fill the port of %.15g Gbit/s by packets of "
                                     "UDP: no queue grew",
                                  is->senders, speed)
                   : "its packets came for less than half a second: no queue stood there";
}

/* By the port's interface: one host of each leaf receives packets of several others at once. */
void rule_ecn_live(struct judging *j)
{
    const char *net = judge_text(j, FACT_PORT_NET, j->subject);
    const struct fact *fact = net != NULL ? sheet_find(j->sheet, FACT_PERF_INCAST, net) : NULL;
    struct incast is;

    if (net == NULL) {
        return;
    }
    if (fact == NULL) {
        judge_skip(j, tested(j) == NULL ? "not tested: foliot audit run --fleet --bandwidth does"
                                        : "its interface is in no such test: its agent is too old, "
                                          "or be.roce.dscp_path is off");
        return;
    }
    fact = judge_look(j, FACT_PERF_INCAST, net);
    if (fact->state != FACT_VALUE && tested(j) != NULL) {
        rule_not_measured(j, fact->value);
    } else if (fact->state != FACT_VALUE) {
        judge_unknown(j, fact);
    } else if (strcmp(fact->value, "none") == 0) {
        judge_skip(j, "another host of its leaf received, or there were fewer than five to send");
    } else if (sscanf(fact->value,
                      "marked %llu of %llu, sent %llu, %lf Gbit/s for %lf ms, from %u hosts",
                      &is.marked, &is.came, &is.sent, &is.rate, &is.ms, &is.senders) != 6) {
        judge_unknown(j, NULL);
    } else {
        judge_incast(j, &is, net);
    }
}

/* A trunk, named by its ends. Without a subject: no trunk is slow. */
void rule_slow_path(struct judging *j)
{
    const struct fact *fact = judge_look(j, FACT_PERF_PATH, j->subject);
    double rate, usual;
    unsigned paths;

    if (fact == NULL || fact->state != FACT_VALUE) {
        judge_unknown(j, fact);
    } else if (sscanf(fact->value, "well, %u paths", &paths) == 1) {
        judge_end(j, AUDIT_PASS, judge_format(j, "%u paths", paths), "no trunk on them is slow");
    } else if (strcmp(fact->value, "none") == 0) {
        judge_skip(j, "its packets cross no trunk: one router is on each of its paths");
    } else if (sscanf(fact->value, "%lf of %lf Gbit/s", &rate, &usual) == 2) {
        judge_end(j, AUDIT_FAIL, judge_format(j, "%.3f Gbit/s", rate),
                  judge_format(j, "%.3f Gbit/s, what paths carry here, less 20 %%", usual));
        j->result->note = strstr(fact->value, "another") != NULL
                              ? "it, or another trunk of the same paths"
                              : "trains of packets are slow from this trunk on";
    } else {
        judge_unknown(j, NULL);
    }
}

void rule_bisect(struct judging *j)
{
    const char *text = perf_text(j, FACT_PERF_SEARCH);
    double rate, expected;
    char word[16];

    if (text == NULL) {
        return;
    }
    if (sscanf(text, "%15[a-z] %lf of %lf GB/s", word, &rate, &expected) != 3) {
        judge_unknown(j, NULL);
        return;
    }
    const char *found = judge_format(j, "%.3f GB/s", rate),
               *least = judge_format(j, "%.3f GB/s, what pairs carry, less 20 %%", expected);
    if (strcmp(word, "well") == 0) {
        judge_end(j, AUDIT_PASS, found, least);
    } else if (strcmp(word, "others") == 0) {
        judge_end(j, AUDIT_PASS, found, least);
        j->result->note = "the set is slow by others";
    } else if (strcmp(word, "alone") == 0) {
        judge_end(j, AUDIT_FAIL, found, least);
        j->result->note = "whatever set it is in is slow, and the same without it is not";
    } else if (strcmp(word, "pair") == 0) {
        judge_end(j, AUDIT_WARN, found, least);
        j->result->note = "slow only together with one other host";
    } else if (strcmp(word, "nobody") == 0) {
        judge_end(j, AUDIT_WARN, found, least);
        j->result->note = "all together are slow, and no part of them is: what is shared, or many "
                          "at once";
    } else if (strcmp(word, "processors") == 0) {
        judge_end(j, AUDIT_UNKNOWN, found, least);
        j->result->reason = REASON_BUSY;
        j->result->note = "all together are slow, and processors may have been the limit at most "
                          "hosts: no host is named for it";
    } else {
        judge_end(j, AUDIT_UNKNOWN, found, least);
        j->result->reason = REASON_NOT_RUN;
        j->result->note = "all together are slow, and the search for the reason has not ended";
    }
}

/* ---- values that jobs are given ---- */

void rule_nccl(struct judging *j)
{
    const struct fact *library = judge_look(j, FACT_JOB_NCCL, "");

    if (library != NULL && library->state == FACT_ABSENT) {
        judge_skip(j, "no libnccl.so.2 on this host: jobs bring their own");
        return;
    }
    j->result->fact_count = 0;
    rule_same(j);
}

void rule_plugin(struct judging *j)
{
    const struct fact *plugin = judge_look(j, FACT_JOB_PLUGIN, "");

    if (plugin != NULL && plugin->state == FACT_ABSENT) {
        judge_skip(j, "NCCL_NET_PLUGIN is not set for all jobs");
        return;
    }
    if (plugin == NULL || plugin->state != FACT_VALUE) {
        judge_unknown(j, plugin);
        return;
    }
    const bool there = strncmp(plugin->value, "missing ", 8) != 0;
    judge_end(j, there ? AUDIT_PASS : AUDIT_FAIL, plugin->value, "a library that is there");
}

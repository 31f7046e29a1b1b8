/* rules_matrix.c: rules of a matrix of all NICs: the text of matrix_words for one interface. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/audit/matrix_part.h"
#include "core/audit/rule_list.h"

struct words {
    unsigned cells, unmeasured, dead_out, dead_in, sent_out, lost_out, sent_in, lost_in;
    /* partners with which nothing passes one way, through no fault of this NIC alone */
    unsigned partners;
    char why[16]; /* the reason for most unmeasured cells */
    long long out, in, limit, bound, near, far, drift_out, drift_in;
    unsigned dead_alone; /* dead cells of a NIC that met one host only */
    unsigned steady;     /* seconds; UINT_MAX: its clock was never seen out of step */
    unsigned shared;     /* lost packets, like those of most others of its leaf */
    unsigned alone;      /* packets lost with one host, while fewer are lost with all others */
    unsigned marked, remarked_out, remarked_in, elsewhere, within, across; /* cells */
    bool unmarked; /* no packet in the cells of its rail was marked */
    bool delays, leaves, drifts, parted, marks, late_by_one;
    char leaf[64], declared[64];
};

static void missing(struct judging *j, const char *why)
{
    static const struct {
        enum matrix_why why;
        enum audit_reason reason;
        const char *words;
    } all[] = {{MATRIX_SILENT, REASON_TIMEOUT, "the host told nothing of its packets"},
               {MATRIX_CLOCK, REASON_CLOCK, "the clock was not in step with the fleet's"},
               {MATRIX_LATE, REASON_TIMEOUT, "the agent had no processor at its rounds"},
               {MATRIX_PORT, REASON_NO_SOURCE, "the agent could not send from it: foliot links"},
               {MATRIX_BUSY, REASON_BUSY, "a job runs, and so many packets are not for beside it"},
               {MATRIX_STOPPED, REASON_NOT_RUN, "the audit was stopped before"},
               {MATRIX_REFUSED, REASON_NOT_RUN, "the agent refused to take part"},
               {MATRIX_OLD, REASON_OLD_AGENT, "the agent is too old to take part: update it"}};
    judge_end(j, AUDIT_UNKNOWN, NULL, NULL);
    j->result->reason = REASON_NO_SOURCE;
    j->result->note = "this is not what a matrix tells";
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(matrix_why_name(all[i].why), why) == 0) {
            j->result->reason = (uint8_t)all[i].reason;
            j->result->note = all[i].words;
        }
    }
}

static bool words_of(const char *text, struct words *w)
{
    const char *out = strstr(text, ", out "), *leaf = strstr(text, ", leaf "),
               *drift = strstr(text, ", drift_out "), *why = strstr(text, ", why "),
               *steady = strstr(text, ", steady "), *shared = strstr(text, ", shared "),
               *alone = strstr(text, ", alone "), *marked = strstr(text, ", marked "),
               *dead = strstr(text, ", dead_alone ");
    *w = (struct words){.why = "",
                        .steady = UINT_MAX,
                        .parted = strstr(text, ", parted") != NULL,
                        .late_by_one = strstr(text, ", late_by_one") != NULL};
    w->delays = out != NULL && sscanf(out, ", out %lld, in %lld, limit %lld, bound %lld", &w->out,
                                      &w->in, &w->limit, &w->bound) == 4;
    w->leaves =
        leaf != NULL && sscanf(leaf, ", leaf %63[^,], declared %63[^,], near %lld, far %lld",
                               w->leaf, w->declared, &w->near, &w->far) == 4;
    w->drifts = drift != NULL &&
                sscanf(drift, ", drift_out %lld, drift_in %lld", &w->drift_out, &w->drift_in) == 2;
    w->marks = marked != NULL &&
               sscanf(marked,
                      ", marked %u, remarked_out %u, remarked_in %u, elsewhere %u, within %u, "
                      "across %u",
                      &w->marked, &w->remarked_out, &w->remarked_in, &w->elsewhere, &w->within,
                      &w->across) == 6;
    w->unmarked = strstr(text, ", unmarked ") != NULL;
    if ((shared != NULL && sscanf(shared, ", shared %u", &w->shared) != 1) ||
        (alone != NULL && sscanf(alone, ", alone %u", &w->alone) != 1) ||
        (dead != NULL && sscanf(dead, ", dead_alone %u", &w->dead_alone) != 1) ||
        (marked != NULL && !w->marks) ||
        (why != NULL && sscanf(why, ", why %15[a-z-]", w->why) != 1) ||
        (steady != NULL && sscanf(steady, ", steady %u", &w->steady) != 1)) {
        return false;
    }
    return sscanf(text,
                  "cells %u, unmeasured %u, dead_out %u, dead_in %u, partners %u, sent_out %u, "
                  "lost_out %u, sent_in %u, lost_in %u",
                  &w->cells, &w->unmeasured, &w->dead_out, &w->dead_in, &w->partners, &w->sent_out,
                  &w->lost_out, &w->sent_in, &w->lost_in) == 9;
}

/* False: the verdict is set already. Some measured cells are enough: medians use those. */
static bool matrix_of(struct judging *j, struct words *w)
{
    const char *text = judge_text(j, FACT_MATRIX, j->subject);
    if (text == NULL) {
        return false;
    }
    if (!words_of(text, w) || w->cells < w->unmeasured) {
        missing(j, "");
        return false;
    }
    if (w->cells == 0) {
        judge_skip(j, "no other host was to be measured");
        return false;
    }
    if (w->unmeasured == w->cells) {
        missing(j, w->why);
        return false;
    }
    if (w->unmeasured > 0) {
        j->result->note = judge_format(j, "%u of %u cells are not measured, most: %s",
                                       w->unmeasured, w->cells, w->why);
    }
    return true;
}

void rule_matrix_reach(struct judging *j)
{
    struct words w;
    if (!matrix_of(j, &w)) {
        return;
    }
    const bool out = w.dead_out > 0, in = w.dead_in > 0;
    if (w.parted && w.partners > 0) {
        judge_end(j, AUDIT_UNKNOWN, judge_format(j, "nothing arrives in %u cells", w.partners),
                  NULL);
        j->result->reason = REASON_NO_MAJORITY;
        j->result->note = "most interfaces do not reach half of the others: the fabric is parted, "
                          "and nobody knows who is on the right side";
    } else if (out || in) {
        judge_end(j, AUDIT_FAIL,
                  judge_format(j, "of %u cells nothing arrives of %u from here, and of %u to here",
                               w.cells - w.unmeasured, w.dead_out, w.dead_in),
                  "packets arrive both ways");
    } else if (w.dead_alone > 0) {
        judge_end(j, AUDIT_UNKNOWN, judge_format(j, "nothing arrives in %u cells", w.dead_alone),
                  "packets arrive both ways");
        j->result->reason = REASON_NO_MAJORITY;
        j->result->note = "it was measured with one other host alone: which of both is at fault a "
                          "third one tells";
    } else if (w.partners > 0) {
        judge_end(j, AUDIT_WARN,
                  judge_format(j, "nothing arrives in %u cells, one way", w.partners),
                  "packets arrive both ways");
    } else {
        judge_end(j, AUDIT_PASS, judge_format(j, "%u cells", w.cells - w.unmeasured),
                  "packets arrive both ways");
    }
}

void rule_matrix_loss(struct judging *j)
{
    enum { LEAST_LOST = 4, LEAST_SENT = 100 };
    struct words w;
    if (!matrix_of(j, &w)) {
        return;
    }
    const unsigned sent = w.sent_out + w.sent_in, lost = w.lost_out + w.lost_in;
    const double out = w.sent_out > 0 ? (double)w.lost_out / w.sent_out : 0,
                 in = w.sent_in > 0 ? (double)w.lost_in / w.sent_in : 0,
                 worst = out > in ? out : in;
    if (sent < LEAST_SENT) {
        missing(j, w.why[0] != 0 ? w.why : "");
        return;
    }
    /* these are without the worst host, with which at least one more was lost */
    judge_end(j,
              lost + 1 < LEAST_LOST || worst <= j->warn ? AUDIT_PASS
              : worst > j->fail                         ? AUDIT_FAIL
                                                        : AUDIT_WARN,
              judge_format(j, "%u of %u sent, %u of %u to here", w.lost_out, w.sent_out, w.lost_in,
                           w.sent_in),
              judge_format(j, "at most %.15g", worst > j->fail ? j->fail : j->warn));
    if (j->result->status == AUDIT_PASS && w.shared >= LEAST_LOST) {
        j->result->status = AUDIT_WARN;
        j->result->note = judge_format(j,
                                       "%u more are lost with those of most interfaces of its "
                                       "leaf: a trunk is dead, or the leaf loses them",
                                       w.shared);
    } else if (j->result->status == AUDIT_PASS && w.alone >= LEAST_LOST) {
        j->result->status = AUDIT_WARN;
        j->result->note =
            judge_format(j,
                         "%u more are lost with one host alone: on the way between the two, or one "
                         "of both tells what is not so",
                         w.alone);
    }
}

/* A direction between this interface and another one of its rail. Without a subject: all packets came, or the losses were
 * chance. */
void rule_matrix_path(struct judging *j)
{
    enum { WITNESSES_LEAST = 2 };
    const char *text = judge_text(j, FACT_MATRIX_PATH, j->subject);
    unsigned lost, sent, pairs, partners;
    char way[8];
    if (text == NULL) {
        return;
    }
    if (sscanf(text, "well, %u pairs", &pairs) == 1) {
        judge_end(j, AUDIT_PASS, judge_format(j, "%u pairs", pairs), "packets of all ports arrive");
    } else if (sscanf(text, "lost %u of %u %7[a-z] there, with %u partners", &lost, &sent, way,
                      &partners) == 4) {
        judge_end(j, partners >= WITNESSES_LEAST ? AUDIT_FAIL : AUDIT_WARN,
                  judge_format(
                      j, "%u of %u packets, each by a port of its own, do not arrive %s", lost,
                      sent, strcmp(way, "to") == 0 ? "from here to there" : "from there to here"),
                  "packets of all ports arrive");
        j->result->note =
            partners >= WITNESSES_LEAST
                ? judge_format(j, "the same with %u interfaces of that leaf", partners)
                : "with this one alone: a path between the two, or one of both tells what is not "
                  "so";
    } else {
        judge_unknown(j, NULL);
    }
}

/* The cause of these blocks: a leaf, if most blocks from it or to it are late; else something between the two leaves. */
static const char *whose(unsigned from_late, unsigned from, unsigned to_late, unsigned to)
{
    return from > 1 && 2 * from_late > from ? "so are most from the first leaf: its ways up"
           : to > 1 && 2 * to_late > to
               ? "so are most to the second leaf: the ways down to it"
               : "from the first leaf to the second alone: a spine or a trunk between them";
}

/* A block between two leaves ("LEAF LEAF"), or a direction between two interfaces. Without a subject: there is none. */
void rule_matrix_late(struct judging *j)
{
    const char *text = judge_text(j, FACT_MATRIX_LATE, j->subject);
    unsigned late, cells, from_late, from, to_late, to;
    long long ns, limit;
    char way[8];
    if (text == NULL) {
        return;
    }
    if (strcmp(text, "well") == 0) {
        judge_end(j, AUDIT_PASS, "none", "no later than both ends are");
    } else if (sscanf(text, "later %lld ns %7[a-z] there, limit %lld", &ns, way, &limit) == 3) {
        judge_end(j, AUDIT_WARN,
                  judge_format(j, "%lld ns later %s than both ends are", ns,
                               strcmp(way, "to") == 0 ? "to there" : "from there"),
                  judge_format(j, "at most %lld ns", limit));
        j->result->note = "with this one alone: the path between the two, or one of both tells "
                          "what is not so";
    } else if (sscanf(text,
                      "block %u of %u cells, later %lld ns, of blocks from there %u of %u, to "
                      "there %u of %u",
                      &late, &cells, &ns, &from_late, &from, &to_late, &to) == 7) {
        judge_end(j, AUDIT_FAIL,
                  judge_format(j,
                               "%u of %u pairs from the first to the second are late, by %lld "
                               "ns on average",
                               late, cells, ns),
                  "no later than both ends are");
        j->result->note = whose(from_late, from, to_late, to);
    } else {
        judge_unknown(j, NULL);
    }
}

/* Lists what is known of the marks. */
static void judge_marks(struct judging *j, const struct words *w)
{
    const bool own = w->remarked_out > 0 || w->remarked_in > 0;

    judge_end(j,
              own                ? AUDIT_FAIL
              : w->elsewhere > 0 ? AUDIT_WARN
                                 : AUDIT_PASS,
              own ? judge_format(j,
                                 "with another DSCP arrive those of %u interfaces from here, of %u "
                                 "to here, of %u tried",
                                 w->remarked_out, w->remarked_in, w->marked)
              : w->elsewhere > 0
                  ? judge_format(j, "of %u of %u with another DSCP", w->elsewhere, w->marked)
                  : judge_format(j, "%u tried", w->marked),
              "as they were sent");
    j->result->note =
        own ? (w->remarked_out == 0  ? "what comes to it: its leaf, or what is before it"
               : w->remarked_in == 0 ? "what it sends: its own port of the leaf rewrites it"
                                     : "both ways: its own port of the leaf rewrites it, or all of "
                                       "the leaf")
        : w->elsewhere == 0 ? ""
        : w->within > 0 ? "between interfaces of its leaf: a port of it rewrites it, or all of it"
        : w->across == w->elsewhere ? "between leaves alone: a spine, a trunk or the other leaf "
                                      "rewrites it"
                                    : "on some ways alone: a leaf, a spine or a trunk rewrites it";
}

/* Judges by the port's interface. */
void rule_dscp_path(struct judging *j)
{
    const char *net = judge_text(j, FACT_PORT_NET, j->subject), *text;
    struct words w;
    uint32_t count;
    int64_t dscp;
    if (net == NULL) {
        return;
    }
    if (j->setting != NULL && j->setting->declared != NULL &&
        fact_number(j->setting->declared, &dscp) && dscp == 0) {
        judge_skip(j, "DSCP 0 is declared, which unmarked packets have, too: nothing is marked");
        return;
    }
    if (sheet_first(j->sheet, FACT_MATRIX, &count) == NULL) {
        judge_skip(j, "not measured: foliot audit run --fleet --matrix does");
        return;
    }
    if (sheet_find(j->sheet, FACT_MATRIX, net) == NULL) {
        judge_skip(j, "its interface was in no matrix");
        return;
    }
    text = judge_text(j, FACT_MATRIX, net);
    if (text == NULL) {
        return;
    }
    if (!words_of(text, &w)) {
        missing(j, "");
    } else if (w.marks && w.marked > 0) {
        judge_marks(j, &w);
    } else if (w.marks) {
        judge_end(j, AUDIT_UNKNOWN, NULL, "as they were sent");
        j->result->reason = REASON_NOT_RUN;
        j->result->note = "each pair lost a packet: whether the marked one came nobody knows";
    } else if (w.unmarked) {
        missing(j, matrix_why_name(MATRIX_OLD));
    } else if (w.why[0] != 0) {
        missing(j, w.why);
    } else {
        judge_skip(j, "no other host has an interface of its rail");
    }
}

static bool delays_of(struct judging *j, struct words *w)
{
    if (!matrix_of(j, w)) {
        return false;
    }
    if (!w->delays) {
        missing(j, matrix_why_name(MATRIX_CLOCK));
    }
    return w->delays;
}

/* A clock that has just come into step is still settling, and moves all delays of its host. */
static bool is_young(struct judging *j, const struct words *w)
{
    enum { CLOCK_YOUNG_S = 60 };
    if (w->steady >= CLOCK_YOUNG_S) {
        return false;
    }
    judge_end(j, AUDIT_UNKNOWN, j->result->found, NULL);
    j->result->reason = REASON_YOUNG;
    j->result->note =
        judge_format(j, "its clock was in step for %u s only: look again in a minute", w->steady);
    return true;
}

void rule_matrix_delay(struct judging *j)
{
    struct words w;
    if (!delays_of(j, &w)) {
        return;
    }
    const double least = (double)w.limit > j->fail ? (double)w.limit : j->fail,
                 bounds = 3 * (double)w.bound;
    const double worst = (double)(w.out > w.in ? w.out : w.in);
    /* a clock error makes one side later and the other one earlier by as much: the sum of both is free of it */
    const bool surely = (double)(w.out + w.in) > 2 * least;
    const bool both = (double)w.out > least && (double)w.in > least;
    const char *found =
        judge_format(j, "%lld ns more than others sending, %lld ns receiving", w.out, w.in);
    if (worst > least && w.late_by_one) {
        judge_end(j, AUDIT_UNKNOWN, found, judge_format(j, "at most %.0f ns", least));
        j->result->reason = REASON_NO_MAJORITY;
        j->result->note = "it was measured with one other host alone: which of both is late a "
                          "third one tells";
        return;
    }
    if (worst > least && worst <= bounds && !surely) {
        missing(j, matrix_why_name(MATRIX_CLOCK));
        j->result->note =
            judge_format(j, "the clocks' bounds are %lld ns: too wide to tell", w.bound);
        return;
    }
    judge_end(j, worst > least ? AUDIT_FAIL : AUDIT_PASS, found,
              judge_format(j, "at most %.0f ns", surely || least > bounds ? least : bounds));
    if (worst > least && !surely && is_young(j, &w)) {
        return;
    }
    if (worst > least && worst <= bounds) {
        j->result->note = judge_format(
            j, "both sides together; which one the clocks do not tell: their bounds are %lld ns",
            w.bound);
    } else if (worst > least && !both) {
        j->result->note = w.out > w.in ? "its sending side alone" : "its receiving side alone";
    }
}

/* The interface that hangs where this one should: the two cables are exchanged. "": none. */
static const char *exchanged(struct judging *j, const struct words *own)
{
    const struct audit *a = j->audit;
    for (uint32_t i = 0; i < a->sheet_count; i++) {
        uint32_t count;
        const struct fact *f = sheet_first(&a->sheets[i], FACT_MATRIX, &count);
        for (uint32_t k = 0; k < count; k++) {
            struct words w;
            if (f[k].state == FACT_VALUE && words_of(f[k].value, &w) && w.leaves &&
                strcmp(w.leaf, own->declared) == 0 && strcmp(w.declared, own->leaf) == 0) {
                return judge_format(j, "its cable and that of %s %s look exchanged",
                                    a->sheets[i].host, f[k].subject);
            }
        }
    }
    return "";
}

void rule_matrix_leaf(struct judging *j)
{
    struct words w;
    if (!delays_of(j, &w)) {
        return;
    }
    if (!w.leaves) {
        judge_skip(j, "no leaf is declared, or delays do not tell leaves apart");
    } else if (strcmp(w.leaf, w.declared) == 0) {
        judge_end(j, AUDIT_PASS, w.leaf[0] != 0 ? judge_format(j, "%s", w.leaf) : NULL, NULL);
    } else {
        judge_end(j, AUDIT_FAIL, judge_format(j, "as near as those of %s", w.leaf),
                  judge_format(j, "%s, as declared", w.declared));
        j->result->note = exchanged(j, &w);
    }
}

/* This interface's value in the audit that a person accepted; else its value in the matrix before. False: there is neither. */
static bool drift_of(struct judging *j, struct words *w)
{
    const struct sheet *accepted = j->sheet->accepted;
    const struct fact *f = accepted != NULL ? sheet_find(accepted, FACT_MATRIX, j->subject) : NULL;
    struct words then;
    if (f == NULL || f->state != FACT_VALUE || !words_of(f->value, &then) || !then.delays) {
        return w->drifts;
    }
    judge_rest(j, f);
    j->result->baseline = accepted->run;
    w->drift_out = w->out - then.out;
    w->drift_in = w->in - then.in;
    w->bound = then.bound > w->bound ? then.bound : w->bound;
    return true;
}

bool matrix_delays_differ(const struct check *c, const struct fact *was, const struct fact *is,
                          char ret_was[static 64], char ret_is[static 64])
{
    struct words before, after;
    if (was == NULL || is == NULL || was->state != FACT_VALUE || is->state != FACT_VALUE ||
        !words_of(was->value, &before) || !words_of(is->value, &after) || !before.delays ||
        !after.delays) {
        return false;
    }
    const long long bound = before.bound > after.bound ? before.bound : after.bound,
                    out = llabs(after.out - before.out), in = llabs(after.in - before.in);
    snprintf(ret_was, 64, "%+lld ns sending, %+lld ns receiving", before.out, before.in);
    snprintf(ret_is, 64, "%+lld ns sending, %+lld ns receiving", after.out, after.in);
    return (double)(out > in ? out : in) > c->warn + 3 * (double)bound;
}

void rule_matrix_drift(struct judging *j)
{
    struct words w;
    if (!delays_of(j, &w)) {
        return;
    }
    if (!drift_of(j, &w)) {
        judge_skip(j, "no audit with a matrix is accepted, and there is none before this one");
        return;
    }
    const double limit = j->warn + 3 * (double)w.bound;
    const double out = (double)(w.drift_out < 0 ? -w.drift_out : w.drift_out),
                 in = (double)(w.drift_in < 0 ? -w.drift_in : w.drift_in);
    const bool drifted = out > limit || in > limit;
    judge_end(j, drifted ? AUDIT_WARN : AUDIT_PASS,
              judge_format(j, "%+lld ns sending, %+lld ns receiving", w.drift_out, w.drift_in),
              judge_format(j, "within %.0f ns of %s", limit,
                           j->result->baseline != NULL ? "then" : "the matrix before"));
    j->result->basis = j->result->baseline != NULL ? j->result->baseline : "";
    if (drifted) {
        (void)is_young(j, &w);
    }
}

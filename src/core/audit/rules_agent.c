/* rules_agent.c: rules for facts from the host's agent: clock, paths to neighbours, switches, delays of a job's messages. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/audit/mention.h"
#include "core/audit/rule_list.h"

static void not_measured(struct judging *j, enum audit_reason reason, const char *note)
{
    judge_end(j, AUDIT_UNKNOWN, NULL, NULL);
    j->result->reason = (uint8_t)reason;
    j->result->note = note;
}

/* ---- the agent, its clock ---- */

void rule_agent(struct judging *j)
{
    const char *agent = judge_text(j, FACT_AGENT, ""), *version;

    if (agent != NULL && strcmp(agent, "running") != 0) {
        judge_end(j, AUDIT_FAIL, "it does not answer", "an agent that answers");
        return;
    }
    version = agent != NULL ? judge_text(j, FACT_AGENT_VERSION, "") : NULL;
    if (version != NULL) {
        judge_join(j, "", version, 0);
    }
}

void rule_clock_bound(struct judging *j)
{
    const char *status = judge_text(j, FACT_CLOCK_STATUS, ""),
               *stamps = status != NULL ? judge_text(j, FACT_CLOCK_STAMPS, "") : NULL;
    int64_t bound;

    if (stamps == NULL || !judge_number(j, FACT_CLOCK_BOUND, "", &bound)) {
        return;
    }
    if (strcmp(status, "SYNCED") != 0 || bound < 0) {
        not_measured(j, REASON_CLOCK, "the clock is not in step with the fleet's");
        return;
    }
    const double limit = strcmp(stamps, "hardware") == 0 ? j->fail : j->warn;
    judge_end(j, (double)bound > limit ? AUDIT_FAIL : AUDIT_PASS,
              judge_format(j, "%lld ns, %s stamps", (long long)bound, stamps),
              judge_format(j, "at most %.15g ns", limit));
}

/* International atomic time is 37 s ahead of UTC. */
void rule_utc(struct judging *j)
{
    const char *text = judge_text(j, FACT_CLOCK_UTC, "");
    int64_t us;

    if (text == NULL) {
        return;
    }
    if (!fact_number(text, &us)) {
        not_measured(j, REASON_CLOCK, "fleet time is not known, or is not UTC");
        return;
    }
    const double ms = (double)(us < 0 ? -us : us) / 1000;
    judge_end(j,
              ms > j->fail   ? AUDIT_FAIL
              : ms > j->warn ? AUDIT_WARN
                             : AUDIT_PASS,
              judge_format(j, "%.3f ms from fleet time", (double)us / 1000),
              judge_format(j, "at most %.15g ms", ms > j->fail ? j->fail : j->warn));
    if (ms > 36500 && ms < 37500) {
        j->result->note = "37 s: one of both is atomic time";
    }
}

void rule_clock_rate(struct judging *j)
{
    const char *text = judge_text(j, FACT_CLOCK_RATE, "");
    int64_t ppb;

    if (text == NULL) {
        return;
    }
    if (!fact_number(text, &ppb)) {
        not_measured(j, REASON_CLOCK, "the clock's rate is not known yet");
    } else if ((double)(ppb < 0 ? -ppb : ppb) > j->fail * 1000) {
        judge_end(j, AUDIT_FAIL, judge_format(j, "%.3f ppm", (double)ppb / 1000),
                  judge_format(j, "at most %.15g ppm", j->fail));
    } else {
        judge_join(j, "", text, (double)ppb);
    }
}

/* ---- paths to a neighbour ---- */

struct edge {
    char kind[32];
    unsigned paths, alive, dead_out, dead_in;
    int hops;
    long long sent, lost, out, in, late, bound;
    bool timed, silent;
};

/* The format of service/inspect/agent.c. */
static bool edge_words(const char *text, struct edge *e)
{
    const char *delays = strstr(text, ", least ");

    e->silent = strstr(text, ", silent") != NULL;
    e->timed = delays != NULL && sscanf(delays, ", least %lld out %lld in, late %lld, bound %lld",
                                        &e->out, &e->in, &e->late, &e->bound) == 4;
    return sscanf(text,
                  "%31[^,], hops %d, paths %u, alive %u, dead %u out %u in, sent %lld, lost %lld",
                  e->kind, &e->hops, &e->paths, &e->alive, &e->dead_out, &e->dead_in, &e->sent,
                  &e->lost) == 8;
}

static bool edge_of(struct judging *j, const char *subject, struct edge *e)
{
    const char *text = judge_text(j, FACT_EDGE, subject);

    if (text == NULL) {
        return false;
    }
    if (!edge_words(text, e)) {
        not_measured(j, REASON_NO_SOURCE, "this is not what an agent tells");
        return false;
    }
    return true;
}

/* A neighbour that is switched off is as silent as one whose NIC is cut off. */
static const char *unheard(const struct edge *e)
{
    return e->silent
               ? "nothing is heard from it: whether it is off or cut off, every NIC with every "
                 "NIC tells (--matrix)"
               : "its paths were not measured yet";
}

static bool is_rail(const struct edge *e)
{
    return strcmp(e->kind, "rail") == 0;
}

static void reached(struct judging *j, bool rails)
{
    struct edge e;

    if (!edge_of(j, j->subject, &e)) {
        return;
    }
    if (is_rail(&e) != rails) {
        judge_skip(j, rails ? "no neighbour on its rail: be.conn.cross"
                            : "a neighbour on its rail: be.conn.matrix");
    } else if (e.paths > 0 && (e.dead_out == e.paths || e.dead_in == e.paths)) {
        judge_end(j, AUDIT_FAIL,
                  e.dead_out != e.paths  ? "nothing arrives from there"
                  : e.dead_in != e.paths ? "nothing arrives there"
                                         : "nothing arrives, either way",
                  "packets arrive both ways");
    } else if (e.alive == 0) {
        not_measured(j, REASON_NOT_RUN, unheard(&e));
    } else {
        judge_end(j, AUDIT_PASS, judge_format(j, "%u paths", e.paths), "packets arrive both ways");
    }
}

void rule_reach_rail(struct judging *j)
{
    reached(j, true);
}

void rule_reach_cross(struct judging *j)
{
    reached(j, false);
}

/* Some of the paths are dead. */
void rule_paths(struct judging *j)
{
    struct edge e;

    if (!edge_of(j, j->subject, &e)) {
        return;
    }
    const unsigned dead = e.dead_out > e.dead_in ? e.dead_out : e.dead_in;
    if (e.paths > 0 && (e.dead_out == e.paths || e.dead_in == e.paths)) {
        judge_skip(j, "nothing arrives on any path: be.conn.matrix, be.conn.cross");
    } else if (e.alive == 0) {
        not_measured(j, REASON_NOT_RUN, unheard(&e));
    } else {
        judge_end(j, dead > 0 ? AUDIT_FAIL : AUDIT_PASS,
                  judge_format(j, "%u of %u paths dead", dead, e.paths), "all paths alive");
    }
}

/* The last 16 packets of full size, sent over all paths in turn: one path of four is a quarter of them. */
void rule_full_size(struct judging *j)
{
    enum { LEAST_TRIED = 8 };
    const char *text = judge_text(j, FACT_EDGE_FULL, j->subject);
    int lost, tried;

    if (text == NULL) {
        return;
    }
    if (sscanf(text, "lost %d of %d", &lost, &tried) != 2 || lost < 0 || tried < lost) {
        not_measured(j, REASON_OLD_AGENT, "this agent tells nothing of packets of full size");
    } else if (tried < LEAST_TRIED) {
        not_measured(j, REASON_NOT_RUN,
                     tried == 0 ? "the neighbour has not answered a packet of full size"
                                : "fewer than 8 packets of full size were tried");
    } else {
        const double share = (double)lost / tried;
        judge_end(j,
                  share > j->fail   ? AUDIT_FAIL
                  : share > j->warn ? AUDIT_WARN
                                    : AUDIT_PASS,
                  judge_format(j, "%d of %d lost", lost, tried), "they come as short ones do");
    }
}

void rule_path_count(struct judging *j)
{
    struct edge e;

    if (!edge_of(j, j->subject, &e)) {
        return;
    }
    if (e.hops < 0) { /* within a leaf there is only one path */
        not_measured(j, REASON_NOT_RUN, "how many hops lie between is not known");
        return;
    }
    judge_join(j, judge_format(j, "%s, %d hops", e.kind, e.hops),
               judge_format(j, "%u paths", e.paths), 0);
}

void rule_probe_loss(struct judging *j)
{
    enum { LEAST_PACKETS = 100000 };
    struct edge e;

    if (!edge_of(j, j->subject, &e)) {
        return;
    }
    if (e.sent < LEAST_PACKETS || e.lost < 0) {
        not_measured(j, REASON_NOT_RUN, "fewer than 100,000 packets were sent");
        return;
    }
    const double share = (double)e.lost / (double)e.sent;
    judge_end(j,
              share > j->fail   ? AUDIT_FAIL
              : share > j->warn ? AUDIT_WARN
                                : AUDIT_PASS,
              judge_format(j, "%lld of %lld", e.lost, e.sent),
              judge_format(j, "at most %.1e", share > j->fail ? j->fail : j->warn));
}

bool edge_delay_of(const char *text, struct edge_delay *ret)
{
    struct edge e;

    if (!edge_words(text, &e) || !e.timed || e.bound < 0 || e.hops < 0) {
        return false;
    }
    *ret = (struct edge_delay){e.out < e.in ? e.out : e.in, e.bound, e.hops, is_rail(&e)};
    return true;
}

static bool timed(struct judging *j, struct edge *e)
{
    if (!edge_of(j, j->subject, e)) {
        return false;
    }
    if (!e->timed || e->bound < 0) {
        not_measured(j, REASON_CLOCK, "the clocks allow no one-way delay");
    }
    return e->timed && e->bound >= 0;
}

/* The faster direction is compared with neighbours that are as many hops away; be.lat.asym judges the other direction. A
 * difference that three bounds of the clocks explain doesn't count. */
void rule_delay(struct judging *j)
{
    struct edge e;

    if (!timed(j, &e)) {
        return;
    }
    if (e.hops < 0) {
        not_measured(j, REASON_NOT_RUN, "how many hops lie between is not known");
        return;
    }
    const long long least = e.out < e.in ? e.out : e.in;
    judge_join_apart(j, judge_format(j, "%s, %d hops", e.kind, e.hops),
                     judge_format(j, "%lld ns", least), (double)least, (double)(3 * e.bound));
}

void rule_asymmetry(struct judging *j)
{
    struct edge e;

    if (timed(j, &e)) {
        const long long difference = e.out > e.in ? e.out - e.in : e.in - e.out;
        const double limit = 3 * (double)e.bound + j->fail;
        judge_end(j, (double)difference > limit ? AUDIT_FAIL : AUDIT_PASS,
                  judge_format(j, "%lld ns out, %lld ns in", e.out, e.in),
                  judge_format(j, "at most %.0f ns apart", limit));
    }
}

void rule_jitter(struct judging *j)
{
    struct edge e;

    if (timed(j, &e)) {
        judge_end(j, (double)e.late > j->fail * 1000 ? AUDIT_FAIL : AUDIT_PASS,
                  judge_format(j, "%.1f us", (double)e.late / 1000),
                  judge_format(j, "at most %.15g us above the least", j->fail));
    }
}

/* A job may use pairs that probes don't. Then the job's lane is compared with the farthest neighbour of its interface: no way
 * through the fabric is much longer. NULL: no neighbour of the interface has a delay. */
static const char *farthest(const struct judging *j, struct edge *ret)
{
    const size_t own = strcspn(j->subject, " ");
    uint32_t count;
    const struct fact *f = sheet_first(j->sheet, FACT_EDGE, &count), *far = NULL;

    for (uint32_t i = 0; i < count; i++) {
        struct edge e;
        if (f[i].state == FACT_VALUE && strcspn(f[i].subject, " ") == own &&
            strncmp(f[i].subject, j->subject, own) == 0 && edge_words(f[i].value, &e) && e.timed &&
            e.bound >= 0 && (far == NULL || e.in > ret->in)) {
            *ret = e;
            far = &f[i];
        }
    }
    return far != NULL ? far->subject : NULL;
}

/* A job's own messages against probes between the same two NICs. Messages also take the time of programs and their queues. So the
 * usual difference is that of other lanes, on any host. */
void rule_inband(struct judging *j)
{
    struct audit *a = j->audit;
    const uint32_t before = a->item_count;
    int64_t delay;
    struct edge e;

    if (!judge_number(j, FACT_LANE, j->subject, &delay)) {
        return;
    }
    const char *far = sheet_find(j->sheet, FACT_EDGE, j->subject) == NULL ? farthest(j, &e) : NULL;
    if (far != NULL) {
        (void)judge_text(j, FACT_EDGE, far); /* the evidence */
    } else if (!timed(j, &e)) {
        return;
    }
    if (e.in <= 0) {
        judge_skip(j, "the delay of probes is within the clocks' error");
        return;
    }
    const double ratio = (double)delay / (double)e.in;
    judge_join(j, "", judge_format(j, "%.1f times the probes' delay", ratio), ratio);
    if (a->item_count > before) {
        a->items[before].product = "";
    }
    if (far != NULL) {
        j->result->note = judge_format(j, "probes of %s: none go where these messages do", far);
    }
}

/* The site's condition for a spare host in another one's place: "hops 3 us 12"; either one alone is allowed. */
void rule_spare(struct judging *j)
{
    const char *declared = judge_declared(j), *hops, *us;
    int hops_most = INT_MAX;
    double us_most = INFINITY;
    struct edge e;

    if (declared == NULL) {
        return;
    }
    hops = strstr(declared, "hops ");
    us = strstr(declared, "us ");
    const bool has_hops = hops != NULL && sscanf(hops, "hops %d", &hops_most) == 1,
               has_us = us != NULL && sscanf(us, "us %lf", &us_most) == 1;
    if (!has_hops && !has_us) {
        judge_skip(j, "what is declared is not like 'hops 3 us 12'");
        return;
    }
    if (has_us ? !timed(j, &e) : !edge_of(j, j->subject, &e)) {
        return;
    }
    if (has_hops && e.hops < 0) {
        not_measured(j, REASON_NOT_RUN, "how many hops lie between is not known");
        return;
    }
    /* the clocks' bound is error, not distance */
    const double least = has_us ? (double)(e.out > e.in ? e.out : e.in) / 1000 : 0,
                 bound = has_us ? (double)e.bound / 1000 : 0;
    const bool far = (has_hops && e.hops > hops_most) || least - bound > us_most;
    judge_end(j, far ? AUDIT_FAIL : AUDIT_PASS,
              has_us ? judge_format(j, "%d hops, %.1f us", e.hops, least)
                     : judge_format(j, "%d hops", e.hops),
              declared);
}

/* ---- the front end, in the format of service/agent/reach.c ---- */

void rule_fe_reach(struct judging *j)
{
    const char *text = judge_text(j, FACT_FE_PEER, j->subject);

    if (text != NULL) {
        judge_end(j, strcmp(text, "reached") == 0 ? AUDIT_PASS : AUDIT_FAIL, text, "reached");
    }
}

void rule_fe_path(struct judging *j)
{
    const char *text = judge_text(j, FACT_FE_PATH, j->subject);
    char how[32];
    unsigned mtu;

    if (text == NULL) {
        return;
    }
    if (strncmp(text, "short ", 6) == 0) {
        not_measured(j, REASON_TIMEOUT, "nothing came back for short packets either");
    } else if (sscanf(text, "full %u %31[^\n]", &mtu, how) != 2 || strcmp(how, "not known") == 0) {
        not_measured(j, REASON_NO_SOURCE, "the size of the interface's packets is not known");
    } else {
        judge_end(j, strcmp(how, "came") == 0 ? AUDIT_PASS : AUDIT_FAIL,
                  judge_format(j, "packets of %u bytes: %s", mtu, how),
                  "they come as short ones do");
    }
}

/* ---- the past ---- */

/* The format of service/controller/audit/history.c. Hosts of all products are compared. */
void rule_history(struct judging *j)
{
    const char *text = judge_text(j, FACT_HISTORY, "");
    struct audit *a = j->audit;
    const uint32_t before = a->item_count;
    unsigned incidents, score;

    if (text == NULL) {
        return;
    }
    if (sscanf(text, "incidents %u, score %u", &incidents, &score) != 2) {
        not_measured(j, REASON_NO_SOURCE, "this is not what a controller tells");
        return;
    }
    judge_join(j, "",
               incidents == 1 ? "1 incident in 30 days"
                              : judge_format(j, "%u incidents in 30 days", incidents),
               score);
    if (a->item_count > before) {
        a->items[before].product = "";
    }
}

/* ---- switches ---- */

enum { ON_SWITCH_LEAST = 5 };

/* The name that two thirds of a switch's interfaces report, over all hosts; NULL: there is none. */
static const char *name_on(const struct audit *a, const char *far)
{
    const char *best = NULL;
    uint32_t all = 0, most = 0, count;
    const struct audit_mention *m = audit_mentions_of(a, FACT_NET_SWITCH, far, &count);

    for (uint32_t i = 0; i < count; i++) {
        if (m[i].fact->state != FACT_VALUE) {
            continue;
        }
        all++;
        if (most == 0) { /* majority vote; a second pass verifies it */
            best = m[i].fact->subject;
            most = 1;
        } else {
            most = strcmp(best, m[i].fact->subject) == 0 ? most + 1 : most - 1;
        }
    }
    most = 0;
    for (uint32_t i = 0; best != NULL && i < count; i++) {
        most += m[i].fact->state == FACT_VALUE && strcmp(best, m[i].fact->subject) == 0;
    }
    return all >= ON_SWITCH_LEAST && most * 3 >= all * 2 ? best : NULL;
}

/* The interface of this host that hangs where `name` should: the two cables are exchanged. NULL: none. */
static const char *exchanged_with(struct judging *j, const char *should)
{
    const struct fact *other = sheet_find(j->sheet, FACT_NET_SWITCH, should);
    const char *its =
        other != NULL && other->state == FACT_VALUE ? name_on(j->audit, other->value) : NULL;

    return its != NULL && strcmp(its, j->subject) == 0 ? should : NULL;
}

static void rail(struct judging *j, bool swaps)
{
    const char *far = judge_text(j, FACT_NET_SWITCH, j->subject), *should, *other;

    if (far == NULL) {
        return;
    }
    if (strcmp(far, "none") == 0) {
        not_measured(j, REASON_NO_SOURCE, "its switch does not tell its name (LLDP)");
        return;
    }
    should = name_on(j->audit, far);
    if (should == NULL) {
        judge_skip(j, "its switch is of no one rail, or too few are known on it");
        return;
    }
    other = strcmp(should, j->subject) == 0 ? NULL : exchanged_with(j, should);
    if (strcmp(should, j->subject) == 0) {
        judge_end(j, AUDIT_PASS, far, NULL);
    } else if (swaps) {
        judge_end(j, other != NULL ? AUDIT_FAIL : AUDIT_PASS,
                  other != NULL ? judge_format(j, "exchanged with %s", other) : far,
                  "its own switch");
    } else if (other != NULL) {
        judge_skip(j, "exchanged with another one of this host: be.topo.swap");
    } else {
        judge_end(j, AUDIT_FAIL, far, judge_format(j, "there hang %s of the other hosts", should));
    }
}

void rule_rail(struct judging *j)
{
    rail(j, false);
}

void rule_swap(struct judging *j)
{
    rail(j, true);
}

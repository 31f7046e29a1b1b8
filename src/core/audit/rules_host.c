/* rules_host.c: rules of processors, memory, kernel, time, disks, programs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/audit/past.h"
#include "core/audit/rule_list.h"

/* A number of the host. */
static bool host_number(struct judging *j, enum fact_id id, int64_t *ret)
{
    return judge_number(j, id, "", ret);
}

/* The smaller of both is judged. */
void rule_net_buf(struct judging *j)
{
    const char *declared = judge_declared(j);
    int64_t send, receive, least;

    if (declared == NULL || !host_number(j, FACT_OS_WMEM_MAX, &send) ||
        !host_number(j, FACT_OS_RMEM_MAX, &receive)) {
        return;
    }
    if (!fact_number(declared, &least)) {
        judge_skip(j, "what is declared is no number");
        return;
    }
    judge_end(j, send < least || receive < least ? AUDIT_FAIL : AUDIT_PASS,
              judge_format(j, "rmem_max %lld, wmem_max %lld", (long long)receive, (long long)send),
              judge_format(j, "at least %lld, as declared", (long long)least));
    judge_found_in(j, receive < least ? FACT_OS_RMEM_MAX : FACT_OS_WMEM_MAX);
}

/* Drivers that are part of the kernel have no build of their own. */
void rule_module(struct judging *j)
{
    const struct fact *build = judge_look(j, FACT_OS_MODULE_BUILD, j->subject);

    if (build != NULL && build->state == FACT_ABSENT) {
        judge_skip(j, "it comes with the kernel: cfg.sw.kernel");
    } else if (build == NULL || build->state != FACT_VALUE) {
        judge_unknown(j, build);
    } else {
        judge_join(j, j->subject, build->value, 0);
    }
}

void rule_disk(struct judging *j)
{
    if (j->subject[0] == '/') {
        rule_at_most(j);
        return;
    }
    const char *state = judge_text(j, FACT_NVME_STATE, j->subject);
    if (state != NULL) {
        judge_end(j, strcmp(state, "live") == 0 ? AUDIT_PASS : AUDIT_FAIL, state, "live");
    }
}

void rule_log(struct judging *j)
{
    static const struct {
        uint16_t fact;
        const char *what;
    } kinds[] = {{FACT_OS_LOG_LOCKUP, "lockups or hung tasks"},
                 {FACT_OS_LOG_MCE, "machine checks"},
                 {FACT_OS_LOG_NIC, "errors of a NIC"},
                 {FACT_OS_LOG_POWER, "reports of too little PCIe power"}};
    int64_t n, lost, lines;

    if (!host_number(j, FACT_OS_LOG, &lines) || !host_number(j, FACT_OS_LOG_LOST, &lost)) {
        return;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!host_number(j, kinds[i].fact, &n)) {
            return;
        }
        if (n > 0) {
            judge_end(j, AUDIT_FAIL, judge_format(j, "%lld %s", (long long)n, kinds[i].what),
                      "none since boot");
            return;
        }
    }
    if (lost > 0 || lines == 0) {
        judge_end(j, AUDIT_UNKNOWN, NULL, NULL);
        j->result->reason = REASON_STALE;
        j->result->note = "the kernel's ring has lost its beginning, and the rest is clean";
        return;
    }
    judge_end(j, AUDIT_PASS, "none", "none since boot");
}

/* One of the codes of the text "48 79", separated by blanks. */
static bool has_code(const char *text, const char *codes)
{
    char code[16];

    for (const char *at = codes; *at != '\0';) {
        const size_t size = strcspn(at, " ");
        snprintf(code, sizeof(code), "%.*s", (int)size, at);
        for (const char *t = text; *t != '\0';) {
            const size_t n = strcspn(t, " ");
            if (n == strlen(code) && strncmp(t, code, n) == 0) {
                return true;
            }
            t += n + (t[n] == ' ');
        }
        at += size + (at[size] == ' ');
    }
    return false;
}

void rule_xid(struct judging *j)
{
    const char *codes = judge_text(j, FACT_OS_LOG_XID, "");
    int64_t lost;

    if (codes == NULL || !host_number(j, FACT_OS_LOG_LOST, &lost)) {
        return;
    }
    if (has_code(codes, j->check->words)) {
        judge_end(j, AUDIT_FAIL, codes, "none of the codes that stop a job");
    } else if (strcmp(codes, "none") != 0) {
        judge_end(j, AUDIT_WARN, codes, "no Xid since boot");
    } else if (lost > 0) {
        judge_end(j, AUDIT_UNKNOWN, NULL, NULL);
        j->result->reason = REASON_STALE;
        j->result->note = "the kernel's ring has lost its beginning, and the rest is clean";
    } else {
        judge_end(j, AUDIT_PASS, codes, "no Xid since boot");
    }
}

/* Uncorrected errors count since boot, corrected ones by the day. */
void rule_ecc(struct judging *j)
{
    int64_t ue;
    struct past_count ce;

    if (!judge_number(j, FACT_MEM_UE, j->subject, &ue) || !past_count(j, FACT_MEM_CE, &ce)) {
        return;
    }
    const double days = fmax(ce.seconds / 86400, 1);
    judge_end(j,
              (double)ue > j->fail                ? AUDIT_FAIL
              : (double)ce.count > j->warn * days ? AUDIT_WARN
                                                  : AUDIT_PASS,
              judge_format(j, "%lld uncorrected since boot, %lld corrected %s", (long long)ue,
                           (long long)ce.count, past_words(j, &ce)),
              judge_format(j, "none uncorrected, at most %.15g corrected a day", j->warn));
    judge_found_in(j, (double)ue > j->fail || ce.count == 0 ? FACT_MEM_UE : FACT_MEM_CE);
}

void rule_mem_free(struct judging *j)
{
    int64_t total, available;

    if (!host_number(j, FACT_MEM_TOTAL, &total) ||
        !host_number(j, FACT_MEM_AVAILABLE, &available)) {
        return;
    }
    if (total <= 0 || available < 0 || available > total) {
        judge_unknown(j, NULL);
        return;
    }
    const double share = (double)available / (double)total * 100;
    judge_end(j, share < j->fail ? AUDIT_FAIL : AUDIT_PASS, judge_format(j, "%.0f %%", share),
              judge_format(j, "at least %.15g %% of %lld MiB", j->fail, (long long)total / 1024));
}

/* A command line can be compared, key by key, only with a declared one or a common one. */
void rule_pending(struct judging *j)
{
    const char *runs = judge_text(j, FACT_OS_KERNEL, ""),
               *newest = runs != NULL ? judge_text(j, FACT_OS_KERNEL_NEWEST, "") : NULL;

    if (newest != NULL) {
        judge_end(j, strcmp(runs, newest) == 0 ? AUDIT_PASS : AUDIT_WARN, runs, newest);
        j->result->note = strcmp(runs, newest) == 0 ? "" : "a restart is pending";
    }
}

void rule_processes(struct judging *j)
{
    int64_t zombies, blocked;

    if (host_number(j, FACT_OS_ZOMBIES, &zombies) && host_number(j, FACT_OS_BLOCKED, &blocked)) {
        judge_end(
            j,
            (double)zombies > j->fail   ? AUDIT_FAIL
            : (double)blocked > j->warn ? AUDIT_WARN
                                        : AUDIT_PASS,
            judge_format(j, "%lld zombies, %lld blocked", (long long)zombies, (long long)blocked),
            judge_format(j, "at most %.15g and %.15g", j->fail, j->warn));
    }
}

/* The format of service/inspect/bmc.c: the controller compares with its own limits. */
static void controllers_word(struct judging *j)
{
    static const char bad[] = " failed critical no-input ",
                      doubtful[] = " near-limit not-redundant full ";
    const char *state = judge_text(j, FACT_SENSOR_STATE, j->subject);
    char word[32];

    if (state == NULL) {
        return;
    }
    snprintf(word, sizeof(word), " %.28s ", state);
    if (strcmp(state, "absent") == 0) {
        judge_skip(j, "nothing is fitted there");
    } else if (strcmp(state, "ok") == 0 || strstr(bad, word) != NULL ||
               strstr(doubtful, word) != NULL) {
        judge_end(j,
                  strcmp(state, "ok") == 0    ? AUDIT_PASS
                  : strstr(bad, word) != NULL ? AUDIT_FAIL
                                              : AUDIT_WARN,
                  state, "ok");
    } else {
        judge_end(j, AUDIT_UNKNOWN, state, "ok");
        j->result->reason = REASON_NO_SOURCE;
        j->result->note = "this is no word of a state";
    }
}

void rule_sensor(struct judging *j)
{
    int64_t now, limit;

    if (strncmp(j->subject, "bmc/", 4) == 0) {
        controllers_word(j);
        return;
    }
    if (!judge_number(j, FACT_SENSOR_C, j->subject, &now) ||
        !judge_number(j, FACT_SENSOR_LIMIT, j->subject, &limit)) {
        return;
    }
    if (limit <= 0) {
        judge_skip(j, "the sensor has no critical temperature");
        return;
    }
    judge_end(j,
              now >= limit                                    ? AUDIT_FAIL
              : (double)now >= (double)limit - j->warn * 1000 ? AUDIT_WARN
                                                              : AUDIT_PASS,
              judge_format(j, "%.1f °C", (double)now / 1000),
              judge_format(j, "%.15g °C below %.1f °C", j->warn, (double)limit / 1000));
}

void rule_retrans(struct judging *j)
{
    enum { SENT_LEAST = 1000 };
    static const enum fact_id ids[] = {FACT_OS_SEGMENTS, FACT_OS_RETRANS};
    int64_t counted[2], sent, again;
    struct past_count time;

    if (!past_counts(j, ids, 2, counted, &time)) {
        return;
    }
    /* if these are few, it takes all that were ever sent */
    if (counted[0] < SENT_LEAST && time.since == SINCE_LOOK) {
        if (!host_number(j, FACT_OS_SEGMENTS, &sent) || !host_number(j, FACT_OS_RETRANS, &again)) {
            return;
        }
        counted[0] = sent;
        counted[1] = again;
        time.since = SINCE_BOOT;
        time.seconds = time.up_s;
    }
    if (counted[0] < SENT_LEAST) {
        judge_skip(j, "fewer than 1,000 segments were sent since boot");
        return;
    }
    const double share = (double)counted[1] / (double)counted[0] * 100;
    const bool beyond = judge_beyond((double)counted[1], j->fail / 100 * (double)counted[0]);
    judge_end(j,
              share <= j->fail ? AUDIT_PASS
              : beyond         ? AUDIT_FAIL
                               : AUDIT_WARN,
              judge_format(j, "%.3f %% %s", share, past_words(j, &time)),
              judge_format(j, "at most %.15g %%", j->fail));
    if (j->result->status == AUDIT_WARN) {
        j->result->note =
            judge_format(j, "%lld segments: chance may be the reason", (long long)counted[1]);
    }
}

void rule_steers(struct judging *j)
{
    const char *steers = judge_text(j, FACT_TIME_STEERS, "");

    if (steers != NULL) {
        judge_end(j,
                  strcmp(steers, "none") == 0   ? AUDIT_WARN
                  : strchr(steers, ' ') != NULL ? AUDIT_FAIL
                                                : AUDIT_PASS,
                  steers, "exactly one");
    }
}

void rule_site(struct judging *j)
{
    const struct fact *output = judge_look(j, FACT_SITE_OUTPUT, j->subject);
    const char *line = output != NULL && output->state == FACT_VALUE ? output->value : "";
    int64_t status;

    if (!judge_number(j, FACT_SITE_STATUS, j->subject, &status)) {
        return;
    }
    if (status < 0 || status > 2) {
        judge_end(j, AUDIT_UNKNOWN, line, "exit status 0, 1 or 2");
        j->result->reason = REASON_NO_SOURCE;
        j->result->note = judge_format(j, "exit status %lld", (long long)status);
        return;
    }
    judge_end(j,
              status == 0   ? AUDIT_PASS
              : status == 1 ? AUDIT_WARN
                            : AUDIT_FAIL,
              line, "exit status 0");
}

/* Variables of /etc/nccl.conf: none may switch a transport off, and all hosts must have the same. */
void rule_nccl_conf(struct judging *j)
{
    char text[FACT_VALUE_MAX] = "";
    size_t used = 0;
    uint32_t count;
    const struct fact *set = sheet_first(j->sheet, FACT_JOB_SETTING, &count);

    for (uint32_t i = 0; i < count; i++) {
        if (set[i].state == FACT_ABSENT) {
            judge_skip(j, "no /etc/nccl.conf: nothing is set for all jobs");
            return;
        }
        if (set[i].state != FACT_VALUE) {
            judge_unknown(j, judge_look(j, set[i].id, set[i].subject));
            return;
        }
        const bool off = (strcmp(set[i].subject, "NCCL_IB_DISABLE") == 0 ||
                          strcmp(set[i].subject, "NCCL_P2P_DISABLE") == 0) &&
                         strcmp(set[i].value, "1") == 0;
        const int n = snprintf(text + used, sizeof(text) - used, "%s%s=%s", i > 0 ? " " : "",
                               set[i].subject, set[i].value);
        if (off || n < 0 || (size_t)n >= sizeof(text) - used) {
            judge_look(j, set[i].id, set[i].subject);
            judge_end(j, off ? AUDIT_FAIL : AUDIT_UNKNOWN, judge_format(j, "%s=1", set[i].subject),
                      "no transport is switched off");
            j->result->reason = off ? REASON_NONE : REASON_NO_SOURCE;
            return;
        }
        used += (size_t)n;
    }
    if (count == 0) {
        judge_unknown(j, NULL);
        return;
    }
    judge_look(j, set[0].id, set[0].subject);
    judge_join(j, "", judge_format(j, "%s", text), 0);
}

void rule_sockets(struct judging *j)
{
    const struct fact *set = judge_look(j, FACT_JOB_SOCKETS, "");

    if (set != NULL && set->state == FACT_ABSENT) {
        judge_skip(j, "NCCL_SOCKET_IFNAME is not set for all jobs");
        return;
    }
    j->result->fact_count = 0;
    const char *interfaces = judge_text(j, FACT_JOB_SOCKETS, "");
    if (interfaces != NULL && strcmp(interfaces, "none") == 0) {
        judge_end(j, AUDIT_FAIL, interfaces, "an interface that is up");
    } else if (interfaces != NULL) {
        judge_join(j, "", interfaces, 0);
    }
}

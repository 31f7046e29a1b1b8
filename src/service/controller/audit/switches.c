/* switches.c: what audit.yaml switches off, before or during an audit. A host that is off takes no part until the audit ends.
 * Packets end when their class is switched off, or the check that needs them. */
#include <stdio.h>

#include "service/controller/audit/matrix.h"
#include "service/controller/audit/perf.h"

/* ---- checks and classes: of the run's own settings, and of those that came since ---- */

/* Who switched a check off. The switch of the passive class is ignored: it stops checks that read files, and no packets.
 * Results of tests are read from files, too. */
static const char *off_in(const struct audit_file *file, const struct check *check)
{
    const char *by = file != NULL ? file->checks[check_number(check)].off : NULL;
    return by != NULL                                    ? by
           : file != NULL && check->cost != COST_PASSIVE ? file->settings.class_off[check->cost]
                                                         : NULL;
}

const char *audit_check_off(const struct controller *c, const struct audit_run *run, const char *id)
{
    const struct check *check = check_by_id(id);
    const char *by = off_in(run->settings, check);
    return by != NULL ? by : off_in(c->audits->in_force, check);
}

const char *audit_class_off(const struct controller *c, const struct audit_run *run,
                            enum check_cost cost)
{
    const struct audit_file *now = c->audits->in_force;
    const char *by = run->settings != NULL ? run->settings->settings.class_off[cost] : NULL;
    return by != NULL ? by : now != NULL ? now->settings.class_off[cost] : NULL;
}

const char *audit_reach_off(const struct controller *c, const struct audit_run *run)
{
    const char *by = audit_check_off(c, run, "fe.reach");
    return by != NULL && audit_check_off(c, run, "fe.path_mtu") != NULL ? by : NULL;
}

/* An incast needs the jobs' mark: without it, it would have another class than jobs, and its result would say nothing about
 * that class. */
const char *audit_incast_off(const struct controller *c, const struct audit_run *run)
{
    const char *by = audit_check_off(c, run, "be.roce.ecn_live");
    return by != NULL ? by : audit_check_off(c, run, "be.roce.dscp_path");
}

static const char *step_off(const struct controller *c, const struct audit_run *run, uint8_t kind)
{
    return kind == PERF_WAYS     ? audit_check_off(c, run, "be.bw.path")
           : kind == PERF_INCAST ? audit_incast_off(c, run)
           : kind == PERF_MEMORY ? audit_check_off(c, run, "node.mem_bw")
                                 : NULL;
}

/* Pairs are tested before collectives: a switch that ends one of them ends both. */
const char *audit_tests_off(const struct controller *c, const struct audit_run *run)
{
    const char *off = audit_class_off(c, run, COST_BANDWIDTH);
    const struct perf *now = run->perf != NULL ? &run->perf->core : NULL;
    off = off == NULL && run->wants_nccl ? audit_class_off(c, run, COST_EXCLUSIVE) : off;
    off = off == NULL ? audit_check_off(c, run, "be.bw.pair") : off;
    for (uint32_t i = 0; off == NULL && now != NULL && i < now->step_count; i++) {
        off = step_off(c, run, now->steps[i].kind);
    }
    return off;
}

/* ---- hosts ---- */

static void leave(const struct audit_run *run, const struct audit_member *m, const char *words)
{
    if (run->state == AUDIT_MEASURING) {
        audit_matrix_leave(run->second ? run->again : run->matrix, m->host, words);
    } else if (run->state == AUDIT_TESTING) {
        audit_perf_leave(run->perf, m->host, words);
    }
}

void audit_switch_off(const struct controller *c, struct audit_run *run,
                      const struct audit_file *file)
{
    for (uint32_t i = 0; i < run->count && file->settings.hosts_off_count > 0; i++) {
        struct audit_member *m = &run->members[i];
        const char *by = audit_host_off(&file->settings, c->hosts[m->index]->name);
        if (by == NULL || m->off) {
            continue;
        }
        m->off = true;
        snprintf(m->note, sizeof(m->note), "switched off by %.100s", by);
        if (m->waits || m->missing != REASON_NONE) {
            m->missing = REASON_NOT_RUN;
        }
        run->unanswered -= m->waits;
        m->waits = false;
        leave(run, m, m->note);
    }
}

/* With the next beat agents drop the plan. */
static void mind_matrix(const struct controller *c, const struct audit_run *run)
{
    const struct audit_matrix *x = run->second ? run->again : run->matrix;
    const char *by = audit_class_off(c, run, COST_PACKETS), *what = "packets are";
    char words[AUDIT_WORDS_SIZE];
    if (by == NULL && x->plan.dscp != 0) {
        by = audit_check_off(c, run, "be.roce.dscp_path");
        what = "its marked packets are";
    }
    if (by == NULL) {
        return;
    }
    snprintf(words, sizeof(words), "%s switched off by %.100s", what, by);
    for (uint32_t i = 0; i < run->count; i++) {
        leave(run, &run->members[i], words);
    }
}

void audit_mind_switches(struct controller *c)
{
    struct audit_run *run = c->audits->running;
    const struct audit_file *file = c->audits->in_force;
    char why[AUDIT_WORDS_SIZE];
    if (run == NULL || file == NULL) {
        return;
    }
    if (file->fleet_off != NULL) {
        snprintf(why, sizeof(why), "audits are switched off by %.100s", file->fleet_off);
        audit_stop(c, why);
        return;
    }
    audit_switch_off(c, run, file);
    if (run->state == AUDIT_MEASURING) {
        mind_matrix(c, run);
    }
}

/* run_end.c: how an audit ends: it is done, or it was stopped. The results are kept. A stopped audit is judged by the results
 * so far. Stages that had not begun are planned first: so each of their checks is unknown, with a reason. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "service/controller/audit/matrix.h"
#include "service/controller/audit/past.h"
#include "service/controller/audit/perf.h"
#include "service/controller/audit/run.h"

/* Writes everything again, because a rollback removes what was written before. */
static void save_end(struct controller *c)
{
    struct audits *a = c->audits;
    const int r = a->came != NULL ? audit_outcome_save(c, a->came) : 0;
    a->refused = false;
    c->expire.audits = true;
    if (r < 0) {
        controller_store_failed(c, r, "an audit's results");
    } else {
        audit_run_save(c, a->ended, a->came);
    }
}

void audit_save_end(struct controller *c)
{
    const struct audits *a = c->audits;
    if (a->ended != NULL && a->refused && !mono_before(controller_mono(), a->again)) {
        save_end(c);
    }
}

const struct audit_run *audit_in_memory(const struct controller *c, int64_t run)
{
    const struct audits *a = c->audits;
    return a->running != NULL && a->running->id == run             ? a->running
           : a->refused && a->ended != NULL && a->ended->id == run ? a->ended
                                                                   : NULL;
}

/* The end is on the disk, or a newer end replaces it. */
static void forget_end(struct audits *a)
{
    a->ended = audit_run_free(a->ended);
    a->came = audit_outcome_free(a->came);
    a->refused = false;
}

void audit_run_end_kept(struct controller *c)
{
    struct audits *a = c->audits;
    if (a->ended == NULL || a->refused) {
        return;
    }
    if (a->came != NULL) {
        audit_outcome_keep(c, a->came);
        a->came = NULL;
    }
    forget_end(a);
}

/* A stopped audit does not change the gate, alerts and metrics: a host that it did not look at may have passed before. */
static void end_run(struct controller *c, enum audit_run_state state, struct audit_outcome *o)
{
    struct audits *a = c->audits;
    struct audit_run *run = a->running;
    const bool learns = o != NULL && state == AUDIT_DONE;
    run->state = state;
    run->ended_ns = controller_utc_ns();
    forget_end(a);
    a->ended = run;
    a->came = o;
    a->running = NULL;
    save_end(c);
    for (uint32_t i = 0; learns && i < o->count; i++) {
        (void)audit_learn(c, o, &o->found[i]); /* if out of memory: the old state stays */
    }
    if (learns && run->whole) {
        audit_summarise(c, run, o);
    }
    /* a client that sees the end reads next what other threads read from the disk */
    controller_commit(c);
}

/* ---- stopped ---- */

static void stop_words(const struct audit_run *run, char ret[static AUDIT_WORDS_SIZE])
{
    snprintf(ret, AUDIT_WORDS_SIZE, "the audit was stopped: %.130s", run->why);
}

/* In a second look the first sheets stay. */
static void give_up_sheets(struct audit_run *run)
{
    char words[AUDIT_WORDS_SIZE];
    stop_words(run, words);
    for (uint32_t i = 0; i < run->count; i++) {
        struct audit_member *m = &run->members[i];
        if (m->waits && !run->second) {
            audit_run_leave_out(m, REASON_NOT_RUN, words);
        }
        m->waits = false;
    }
    run->unanswered = 0;
}

void audit_run_give_up(struct controller *c, struct audit_run *run)
{
    give_up_sheets(run);
    end_run(c, AUDIT_STOPPED, NULL);
}

void audit_stop(struct controller *c, const char *why)
{
    struct audit_run *run = c->audits->running;
    if (run == NULL || run->stopping) {
        return;
    }
    run->stopping = true;
    run->stopped = controller_mono();
    snprintf(run->why, sizeof(run->why), "%s", why);
    if (run->settings == NULL && run->state != AUDIT_JUDGING) { /* audit.yaml is refused */
        audit_run_give_up(c, run);
    } else {
        audit_run_save(c, run, NULL); /* the commit also writes all sheets that arrived */
    }
}

void audit_run_cut(struct controller *c, struct audit_run *run)
{
    char words[AUDIT_WORDS_SIZE];
    stop_words(run, words);
    give_up_sheets(run);
    if (run->state == AUDIT_MEASURING) {
        audit_matrix_cut(run->second ? run->again : run->matrix);
    } else if (!run->second && run->wants_matrix && run->matrix == NULL &&
               audit_run_plan_matrix(c, run)) {
        audit_matrix_cut(run->matrix);
    }
    if (run->state == AUDIT_TESTING ||
        (!run->second && run->wants_perf && run->perf == NULL && audit_run_plan_tests(c, run))) {
        audit_perf_cut(run->perf, words);
    }
    audit_run_judge(c, run);
    if (c->audits->running == run) {
        audit_run_save(c, run, NULL);
    }
}

/* ---- judged ---- */

/* The last matrix is shown, and the next one is compared with it. */
static void keep_matrix(struct controller *c, struct audit_run *run)
{
    struct audit_matrix *x = run->matrix;
    run->matrix = NULL;
    if (x != NULL && x->cut) { /* it has less than the matrix before */
        audit_matrix_free(x);
    } else if (x != NULL) {
        if (x->m.count > MATRIX_CELLS_KEPT) {
            audit_matrix_forget_cells(x);
        }
        audit_matrix_free(c->audits->matrix);
        c->audits->matrix = x;
        const int r = audit_matrix_save(c->store, x);
        if (r < 0) {
            controller_store_failed(c, r, "an audit's matrix");
        }
    }
}

static void count_covered(struct audit_run *run)
{
    if (run->matrix != NULL) {
        run->covered.cells = run->matrix->m.measured;
        run->covered.cells_of = run->matrix->m.cells;
    }
    if (run->perf != NULL) {
        run->covered.tests = run->perf->done;
        run->covered.tests_of = run->perf->tests;
    }
}

void audit_judged(struct controller *c, const struct audit_judged *j)
{
    struct audit_run *run = c->audits->running;
    if (run == NULL || run->id != j->run ||
        j->r == -ECANCELED) { /* stopped meanwhile, or the controller is stopping */
        audit_outcome_free(j->outcome);
        audit_failures_free(j->failures, j->failure_count);
        audit_run_settings_free(j->settings);
        audit_matrix_free(j->matrix);
        audit_matrix_free(j->again);
        audit_perf_free(j->perf);
        return;
    }
    run->matrix = j->matrix;
    run->again = j->again;
    run->perf = j->perf;
    if (j->r < 0) {
        char why[AUDIT_WORDS_SIZE];
        snprintf(why, sizeof(why), "it could not be judged: %.100s", strerror(-j->r));
        controller_say(LOG_ERR, "audit %lld: %s", (long long)j->run, why);
        snprintf(run->why, sizeof(run->why), "%s", why);
        end_run(c, AUDIT_STOPPED, NULL);
        audit_run_settings_free(j->settings);
    } else if (j->gates) {
        audit_run_gated(c, run, j);
    } else if (j->outcome == NULL) {
        audit_run_look_again(c, run, j);
    } else {
        audit_failures_free(j->failures, j->failure_count);
        audit_run_settings_free(j->settings);
        count_covered(run);
        keep_matrix(c, run);
        if (!j->stopped) { /* a stop came too late: everything was looked at */
            run->why[0] = 0;
        }
        end_run(c, j->stopped ? AUDIT_STOPPED : AUDIT_DONE, j->outcome);
    }
}

/* run.c: an audit from its beginning to its end: whom it asks, who has answered, when it is judged. run_keep.c keeps it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "service/controller/audit/matrix.h"
#include "service/controller/audit/perf.h"
#include "service/controller/audit/run.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/state.h"

#define AGAIN_S      10 /* a full disk is asked so often whether it takes what it refused */
#define FLEET_OFF_NS (3600 * NS_PER_S) /* so far off a host's word of fleet time is not taken */

static const char *const states[] = {"reading", "measuring", "testing",
                                     "judging", "done",      "stopped"};

void audit_failures_free(struct audit_failure *failures, uint32_t count)
{
    for (uint32_t i = 0; failures != NULL && i < count; i++) {
        free((char *)(uintptr_t)failures[i].subject);
    }
    free(failures);
}

void audit_run_settings_free(struct audit_file *settings)
{
    if (settings != NULL) {
        audit_file_done(settings);
        free(settings);
    }
}

struct audit_run *audit_run_free(struct audit_run *run)
{
    if (run != NULL) {
        audit_run_settings_free(run->settings);
        audit_failures_free(run->failures, run->failure_count);
        audit_matrix_free(run->matrix);
        audit_matrix_free(run->again);
        audit_perf_free(run->perf);
        free(run->reach);
        free(run->members);
        free(run);
    }
    return NULL;
}

const char *audit_state_name(enum audit_run_state state)
{
    return states[state];
}

uint16_t audit_leaf_number(struct audit_leaves *leaves, const char *name)
{
    for (uint32_t i = 0; i < leaves->count; i++) {
        if (strcmp(leaves->names[i], name) == 0) {
            return (uint16_t)i;
        }
    }
    if (name[0] == 0 || leaves->count >= UINT16_MAX) {
        return UINT16_MAX;
    }
    snprintf(leaves->names[leaves->count], sizeof(leaves->names[0]), "%s", name);
    return (uint16_t)leaves->count++;
}

/* ---- fleet time ---- */

void audit_heard(struct controller *c, const struct fleet_host *h, const Foliot__V1__Batch *batch)
{
    if (c->audits != NULL) {
        fleet_time_hear(&c->audits->fleet, h->id, batch->now_fleet, controller_mono());
    }
}

static int take_id(void *context, const struct store_audit_run *row)
{
    *(int64_t *)context = row->id;
    return 0;
}

/* Of now: as the hosts tell it; without them, or where it is far off, of our own clock. Later than all before it: the newest
 * audit is the one with the greatest name. */
static int name_of_now(const struct controller *c, int64_t *ret_name)
{
    const int64_t utc = controller_utc_ns();
    int64_t fleet = 0, newest = 0;
    const bool known = fleet_time_now(&c->audits->fleet, controller_mono(), &fleet) &&
                       fleet > utc - FLEET_OFF_NS && fleet < utc + FLEET_OFF_NS;
    const int r = store_audit_runs(c->store, 0, 1, take_id, &newest);
    *ret_name = known ? fleet : utc;
    *ret_name = *ret_name > newest ? *ret_name : newest + 1;
    return r;
}

/* ---- whom it asks ---- */

static void leave_out(struct audit_member *m, enum audit_reason reason, const char *note)
{
    m->waits = false;
    m->missing = (uint8_t)reason;
    snprintf(m->note, sizeof(m->note), "%s", note);
}

static void ask(struct controller *c, struct audit_member *m)
{
    const struct fleet_host *h = c->hosts[m->index];
    const enum freshness f = fleet_freshness(c, h, controller_mono());
    m->waits = true;
    m->looked = false;
    m->missing = REASON_NONE;
    if (f == FRESHNESS_NEVER || f == FRESHNESS_STALE) {
        leave_out(m, REASON_NOT_RUN,
                  f == FRESHNESS_NEVER ? "it was not heard yet" : "it is silent");
    } else if ((h->features & FOLIOT__V1__FEATURE__FEATURE_LOOK) == 0) {
        leave_out(m, REASON_OLD_AGENT, "its agent is too old to be asked: update it");
    }
}

void audit_run_look(struct controller *c, struct audit_run *run)
{
    run->state = AUDIT_READING;
    run->ready = false;
    run->until = mono_add(controller_mono(), span_s(AUDIT_WAIT_S));
    run->unanswered = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        run->unanswered += run->members[i].waits;
    }
}

int audit_run_settings(const struct controller *c, struct audit_file **ret,
                       struct config_error *error)
{
    struct audit_file *file = calloc(1, sizeof(*file));
    if (file == NULL) {
        return -ENOMEM;
    }
    if (audit_file_load(audit_settings_path(c), file, error) < 0) {
        free(file);
        return -EINVAL;
    }
    *ret = file;
    return 0;
}

int audit_run_fill(const struct controller *c, struct audit_run *run)
{
    run->members = calloc(c->host_count + 1, sizeof(*run->members));
    for (uint32_t i = 0; run->members != NULL && i < c->host_count; i++) {
        if (c->hosts[i]->member) {
            run->members[run->count++] = (struct audit_member){.host = c->hosts[i]->id, .index = i};
        }
    }
    return run->members == NULL ? -ENOMEM : 0;
}

static void mind_host_off(const struct controller *c, const struct audit_run *run,
                          struct audit_member *m)
{
    const char *by = audit_host_off(&run->settings->settings, c->hosts[m->index]->name);
    char note[AUDIT_WORDS_SIZE];
    if (by != NULL) {
        snprintf(note, sizeof(note), "switched off by %.100s", by);
        leave_out(m, REASON_NOT_RUN, note);
    }
}

int audit_begin(struct controller *c, const struct audit_wish *wish, struct config_error *error)
{
    struct audits *a = c->audits;
    if (a->running != NULL || a->refused) {
        return -EBUSY;
    }
    struct audit_run *run = calloc(1, sizeof(*run));
    int r = run == NULL ? -ENOMEM : audit_run_settings(c, &run->settings, error);
    if (r == 0 && run->settings->fleet_off != NULL) {
        snprintf(error->text, sizeof(error->text), "audits are switched off by %.200s",
                 run->settings->fleet_off);
        r = -EPERM;
    }
    r = r < 0 ? r : audit_run_fill(c, run);
    r = r < 0 ? r : name_of_now(c, &run->id);
    if (r < 0) {
        audit_run_free(run);
        return r;
    }
    run->started_ns = controller_utc_ns();
    run->number = 1;
    run->wants_matrix = wish->matrix;
    run->family = wish->family;
    run->wants_nccl = wish->nccl;
    run->wants_perf = wish->bandwidth || wish->nccl;
    run->whole = wish->hosts == NULL;
    a->attempt_ns = run->whole ? run->started_ns : a->attempt_ns;
    snprintf(run->who, sizeof(run->who), "%s", wish->who);
    for (uint32_t i = 0; i < run->count; i++) {
        run->members[i].asked = wish->hosts == NULL || wish->hosts[run->members[i].index];
        if (run->members[i].asked) {
            ask(c, &run->members[i]);
            mind_host_off(c, run, &run->members[i]);
        }
    }
    if (run->settings->settings.class_off[COST_PACKETS] == NULL) {
        audit_reach_draw(c, run);
    }
    audit_run_look(c, run);
    a->running = run;
    audit_run_save(c, run, NULL);
    return 0;
}

Foliot__V1__Look *audit_look_for(struct controller *c, const struct fleet_host *h,
                                 struct audit_look_reply *memory)
{
    const struct audit_run *run = c->audits != NULL ? c->audits->running : NULL;
    if (run == NULL || run->state != AUDIT_READING || run->ready ||
        (h->features & FOLIOT__V1__FEATURE__FEATURE_LOOK) == 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < run->count; i++) {
        if (run->members[i].host == h->id && run->members[i].waits) {
            const struct audit_known *known = audit_known_of(c, h);
            foliot__v1__look__init(&memory->look);
            memory->look.audit = (uint64_t)run->id;
            memory->look.number = run->number;
            memory->look.whole = known != NULL && known->whole;
            audit_reach_put(c, run, i, memory);
            return &memory->look;
        }
    }
    return NULL;
}

/* ---- its way ---- */

/* All of it, or nothing: a rollback takes what was written before. */
static void save_end(struct controller *c)
{
    struct audits *a = c->audits;
    int r = a->came != NULL ? audit_outcome_save(c, a->came) : 0;
    a->refused = false;
    r = r < 0 ? r : store_audit_expire(c->store, controller_utc_ns() - AUDIT_KEEP_NS, 0);
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

/* It is on the disk, or one after it is more worth keeping. */
static void forget_end(struct audits *a)
{
    a->ended = audit_run_free(a->ended);
    a->came = audit_outcome_free(a->came);
    a->refused = false;
}

static void end_run(struct controller *c, enum audit_run_state state, const char *why,
                    struct audit_outcome *o)
{
    struct audits *a = c->audits;
    struct audit_run *run = a->running;
    run->state = state;
    run->ended_ns = controller_utc_ns();
    snprintf(run->why, sizeof(run->why), "%s", why);
    forget_end(a);
    a->ended = run;
    a->came = o;
    a->running = NULL;
    save_end(c);
    for (uint32_t i = 0; o != NULL && i < o->count; i++) {
        (void)audit_learn(c, o, &o->found[i]); /* without memory: as it was */
    }
    if (o != NULL && run->whole) {
        audit_summarise(c, run, o);
    }
}

void audit_stop(struct controller *c, const char *why)
{
    if (c->audits->running != NULL) {
        end_run(c, AUDIT_STOPPED, why, NULL);
    }
}

/* Hosts with a failure are looked at once more. */
static void look_again(struct controller *c, struct audit_run *run, struct audit_failure *failures,
                       uint32_t count, struct audit_file *settings)
{
    run->failures = failures;
    run->failure_count = count;
    run->settings = settings;
    run->second = true;
    run->number++;
    for (uint32_t i = 0; i < count; i++) {
        struct audit_member *m = &run->members[failures[i].sheet];
        if (!m->waits && m->missing == REASON_NONE) {
            ask(c, m);
        }
    }
    audit_run_look(c, run);
    audit_run_save(c, run, NULL);
}

/* People look at the last one, and the next is compared with it. */
static void keep_matrix(struct controller *c, struct audit_run *run)
{
    struct audit_matrix *x = run->matrix;
    run->matrix = NULL;
    if (x != NULL) {
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

void audit_judged(struct controller *c, const struct audit_judged *j)
{
    struct audit_run *run = c->audits->running;
    if (run == NULL || run->id != j->run ||
        j->r == -ECANCELED) { /* stopped meanwhile; or all of it stops */
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
        end_run(c, AUDIT_STOPPED, why, NULL);
        audit_run_settings_free(j->settings);
    } else if (j->outcome == NULL) {
        look_again(c, run, j->failures, j->failure_count, j->settings);
    } else {
        audit_failures_free(j->failures, j->failure_count);
        audit_run_settings_free(j->settings);
        keep_matrix(c, run);
        end_run(c, AUDIT_DONE, "", j->outcome);
    }
}

static void judge_now(struct controller *c, struct audit_run *run)
{
    run->state = AUDIT_JUDGING;
    if (audit_judge_begin(c, run) < 0) {
        audit_stop(c, "out of memory");
    }
}

/* Why a class of checks is off; NULL: it is on. */
static const char *class_off(const struct controller *c, enum check_cost cost)
{
    const struct audit_file *file = c->audits->in_force;
    return file != NULL ? file->settings.class_off[cost] : NULL;
}

static void go_on(struct controller *c, struct audit_run *run);

/* Who was asked takes part with all its NICs; why there is no matrix is kept with the run. */
static void measure_now(struct controller *c, struct audit_run *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        run->members[i].measures = run->members[i].asked;
    }
    const char *off = class_off(c, COST_PACKETS);
    int r = 0;
    if (off != NULL) {
        snprintf(run->matrix_why, sizeof(run->matrix_why), "packets are switched off by %.100s",
                 off);
        r = -EPERM;
    } else {
        r = audit_matrix_new(c, run, &run->matrix, run->matrix_why);
    }
    if (r < 0) {
        controller_say(LOG_WARNING, "audit %lld: no matrix of all NICs: %s", (long long)run->id,
                       run->matrix_why);
        run->wants_matrix = false;
        go_on(c, run);
    } else {
        run->matrix_why[0] = 0;
        run->state = AUDIT_MEASURING;
    }
    audit_run_save(c, run, NULL);
}

/* Hosts that the first matrix would fail. Without a second one nobody knows. */
static void measure_again(struct controller *c, struct audit_run *run)
{
    char why[AUDIT_WORDS_SIZE] = "packets are switched off";
    run->again_tried = true;
    if (class_off(c, COST_PACKETS) == NULL && audit_matrix_new(c, run, &run->again, why) == 0) {
        run->state = AUDIT_MEASURING;
        audit_run_save(c, run, NULL);
        return;
    }
    controller_say(LOG_WARNING, "audit %lld: what its matrix found is not measured again: %s",
                   (long long)run->id, why);
    go_on(c, run);
}

/* Pairs are tested before collectives: either class ends both. */
static bool tests_off(const struct controller *c, struct audit_run *run)
{
    const char *off = class_off(c, COST_BANDWIDTH);
    off = off == NULL && run->wants_nccl ? class_off(c, COST_EXCLUSIVE) : off;
    if (off != NULL) {
        snprintf(run->perf_why, sizeof(run->perf_why), "such tests are switched off by %.100s",
                 off);
    }
    return off != NULL;
}

static void test_now(struct controller *c, struct audit_run *run)
{
    int r = 0;
    if (tests_off(c, run)) {
        r = -EPERM;
    } else {
        r = audit_perf_new(c, run, &run->perf, run->perf_why);
    }
    if (r < 0) {
        controller_say(LOG_WARNING, "audit %lld: no tests: %s", (long long)run->id, run->perf_why);
        run->wants_perf = run->wants_nccl = false;
        judge_now(c, run);
    } else {
        run->perf_why[0] = 0;
        run->state = AUDIT_TESTING;
    }
    audit_run_save(c, run, NULL);
}

/* The stages that come before the verdict, each once. */
static void go_on(struct controller *c, struct audit_run *run)
{
    if (run->wants_matrix && !run->second && run->matrix == NULL) {
        measure_now(c, run);
    } else if (run->second && run->matrix != NULL && !run->again_tried &&
               audit_matrix_doubts(run)) {
        measure_again(c, run);
    } else if (run->wants_perf && !run->second && run->perf == NULL) {
        test_now(c, run);
    } else {
        judge_now(c, run);
    }
}

void audit_on_commit(struct controller *c)
{
    struct audit_run *run = c->audits != NULL ? c->audits->running : NULL;
    for (uint32_t i = 0; run != NULL && i < run->count; i++) {
        run->members[i].unsaved = false;
    }
    if (c->audits != NULL && c->audits->ended != NULL && !c->audits->refused) {
        if (c->audits->came != NULL) {
            audit_outcome_keep(c, c->audits->came);
            c->audits->came = NULL;
        }
        forget_end(c->audits);
    }
    if (run == NULL || run->state != AUDIT_READING || !run->ready || c->keeper == NULL) {
        return;
    }
    go_on(c, run);
}

void audit_on_rollback(struct controller *c)
{
    struct audit_run *run = c->audits != NULL ? c->audits->running : NULL;
    if (c->audits != NULL && c->audits->ended != NULL) {
        c->audits->refused = true;
        c->audits->again = mono_add(controller_mono(), span_s(AGAIN_S));
    }
    for (uint32_t i = 0; run != NULL && i < run->count; i++) {
        struct audit_member *m = &run->members[i];
        if (m->unsaved) {
            m->unsaved = m->looked = run->ready = false;
            m->missing = REASON_NONE;
            m->waits = true;
            run->unanswered++;
        }
    }
}

/* Who has left the fleet meanwhile is not waited for. */
void audit_mind_left(struct controller *c)
{
    struct audit_run *run = c->audits->running;
    static const char left[] = "it has left the fleet meanwhile";
    for (uint32_t i = 0; run != NULL && i < run->count; i++) {
        struct audit_member *m = &run->members[i];
        if (c->hosts[m->index]->member) {
            continue;
        }
        if (run->state == AUDIT_READING && m->waits) {
            m->waits = false; /* what was read before, of a second look, stays */
            run->unanswered--;
            if (!run->second) {
                leave_out(m, REASON_NOT_RUN, left);
            }
        } else if (run->state == AUDIT_MEASURING) {
            audit_matrix_leave(run->second ? run->again : run->matrix, m->host, left);
        } else if (run->state == AUDIT_TESTING) {
            audit_perf_leave(run->perf, m->host, left);
        }
    }
}

/* After a restart all sheets may be there before any host is: who isn't heard takes no part in what is measured. */
static bool all_heard(const struct controller *c, const struct audit_run *run)
{
    for (uint32_t i = 0; run->resumed && i < run->count; i++) {
        const struct audit_member *m = &run->members[i];
        const struct fleet_host *h = c->hosts[m->index];
        if (m->asked && m->missing == REASON_NONE && h->member &&
            fleet_freshness(c, h, controller_mono()) == FRESHNESS_NEVER) {
            return false;
        }
    }
    return true;
}

void audit_watch(struct controller *c)
{
    struct audit_run *run = c->audits != NULL ? c->audits->running : NULL;
    if (run != NULL && run->state == AUDIT_MEASURING &&
        audit_matrix_waits(run->second ? run->again : run->matrix) == 0) {
        go_on(c, run);
    }
    if (run != NULL && run->state == AUDIT_TESTING &&
        (tests_off(c, run) || (!audit_perf_waits(run->perf) && !audit_perf_next(c, run->perf)))) {
        judge_now(c, run); /* with its next beat no agent has the plan any more */
    }
    if (run == NULL || run->state != AUDIT_READING) {
        return;
    }
    const bool late = mono_sub(controller_mono(), run->until).ns >= 0;
    for (uint32_t i = 0; late && i < run->count; i++) {
        if (run->members[i].waits && run->second) {
            run->members[i].waits = false; /* its first sheet stays; what fails there is unknown */
        } else if (run->members[i].waits) {
            leave_out(&run->members[i], REASON_TIMEOUT, "it gave no sheet in time");
        }
    }
    if (late || run->ready || (run->unanswered == 0 && all_heard(c, run))) {
        run->ready = true;
        controller_touch(c); /* judged is what is on the disk */
    }
}

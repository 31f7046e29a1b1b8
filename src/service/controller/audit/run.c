/* run.c: the course of an audit: which hosts it asks, which have answered, when it is judged. run_keep.c stores it. */
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

/* fleet time that is farther off than this is not accepted */
#define FLEET_OFF_NS (3600 * NS_PER_S)

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

/* Names a run by the present fleet time that hosts report. If there is none, or if it is far off, the controller's clock is
 * used. The name is greater than all earlier ones: the newest audit has the greatest name. */
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

void audit_run_leave_out(struct audit_member *m, enum audit_reason reason, const char *note)
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
        audit_run_leave_out(m, REASON_NOT_RUN,
                            f == FRESHNESS_NEVER ? "it was not heard yet" : "it is silent");
    } else if ((h->features & FOLIOT__V1__FEATURE__FEATURE_LOOK) == 0) {
        audit_run_leave_out(m, REASON_OLD_AGENT, "its agent is too old to be asked: update it");
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
        }
    }
    audit_run_look(c, run);
    audit_switch_off(c, run, run->settings);
    if (audit_reach_off(c, run) == NULL) {
        audit_reach_draw(c, run);
    }
    a->running = run;
    audit_run_save(c, run, NULL);
    return 0;
}

Foliot__V1__Look *audit_look_for(struct controller *c, const struct fleet_host *h,
                                 struct audit_look_reply *memory)
{
    const struct audit_run *run = c->audits != NULL ? c->audits->running : NULL;
    if (run == NULL || run->state != AUDIT_READING || run->ready || run->stopping ||
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

void audit_run_look_again(struct controller *c, struct audit_run *run, const struct audit_judged *j)
{
    run->failures = j->failures;
    run->failure_count = j->failure_count;
    run->settings = j->settings;
    run->second = true;
    run->number++;
    for (uint32_t i = 0; i < run->failure_count; i++) {
        struct audit_member *m = &run->members[run->failures[i].sheet];
        if (m->off) {
            m->looked = false; /* no second look: the first one does not count as one */
        } else if (!m->waits && m->missing == REASON_NONE) {
            ask(c, m);
        }
    }
    audit_run_look(c, run);
    audit_run_save(c, run, NULL);
}

static void judge_now(struct controller *c, struct audit_run *run, bool gates)
{
    run->state = AUDIT_JUDGING;
    if (audit_judge_begin(c, run, gates) < 0) {
        audit_judged(c, &(struct audit_judged){.run = run->id,
                                               .r = -ENOMEM,
                                               .matrix = run->matrix,
                                               .again = run->again,
                                               .perf = run->perf});
    }
}

void audit_run_judge(struct controller *c, struct audit_run *run)
{
    judge_now(c, run, false);
}

static void go_on(struct controller *c, struct audit_run *run);

/* All asked hosts take part with all their NICs. The reason for having no matrix is kept with the run. */
bool audit_run_plan_matrix(struct controller *c, struct audit_run *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        run->members[i].measures = run->members[i].asked;
    }
    const char *off = audit_class_off(c, run, COST_PACKETS);
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
    } else {
        run->matrix_why[0] = 0;
    }
    return r == 0;
}

static void measure_now(struct controller *c, struct audit_run *run)
{
    if (audit_run_plan_matrix(c, run)) {
        run->state = AUDIT_MEASURING;
    } else {
        go_on(c, run);
    }
    audit_run_save(c, run, NULL);
}

/* Measures the hosts that fail in the first matrix. Without a second matrix their results are unknown. */
static void measure_again(struct controller *c, struct audit_run *run)
{
    char why[AUDIT_WORDS_SIZE] = "packets are switched off";
    run->again_tried = true;
    if (audit_class_off(c, run, COST_PACKETS) == NULL &&
        audit_matrix_new(c, run, &run->again, why) == 0) {
        run->state = AUDIT_MEASURING;
        audit_run_save(c, run, NULL);
        return;
    }
    controller_say(LOG_WARNING, "audit %lld: the failures of its matrix are not measured again: %s",
                   (long long)run->id, why);
    go_on(c, run);
}

static bool tests_off(const struct controller *c, struct audit_run *run)
{
    const char *off = audit_tests_off(c, run);
    if (off != NULL) {
        snprintf(run->perf_why, sizeof(run->perf_why), "such tests are switched off by %.100s",
                 off);
    }
    return off != NULL;
}

bool audit_run_plan_tests(struct controller *c, struct audit_run *run)
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
    } else {
        run->perf_why[0] = 0;
    }
    return r == 0;
}

static void test_now(struct controller *c, struct audit_run *run)
{
    if (audit_run_plan_tests(c, run)) {
        run->state = AUDIT_TESTING;
    } else {
        audit_run_judge(c, run);
    }
    audit_run_save(c, run, NULL);
}

/* Goes on to the next stage before the verdict. Each stage runs once. */
static void go_on(struct controller *c, struct audit_run *run)
{
    if (run->wants_matrix && !run->second && run->matrix == NULL) {
        measure_now(c, run);
    } else if (run->second && run->matrix != NULL && !run->again_tried &&
               audit_matrix_doubts(run)) {
        measure_again(c, run);
    } else if (run->wants_perf && !run->second && run->perf == NULL && !run->gated) {
        judge_now(c, run, true);
    } else if (run->wants_perf && !run->second && run->perf == NULL) {
        test_now(c, run);
    } else {
        audit_run_judge(c, run);
    }
}

void audit_run_gated(struct controller *c, struct audit_run *run, const struct audit_judged *j)
{
    run->settings = j->settings;
    run->gated = true;
    for (uint32_t i = 0; i < run->count; i++) {
        snprintf(run->members[i].blocked, sizeof(run->members[i].blocked), "%s", j->blocked[i]);
    }
    if (run->stopping) {
        audit_run_cut(c, run);
    } else {
        go_on(c, run);
    }
}

/* After a restart all sheets may be in the store before any host is heard. A host that is not heard can't take part in
 * measurements, so the run waits for it. */
static bool all_heard(const struct controller *c, const struct audit_run *run)
{
    for (uint32_t i = 0; run->resumed && i < run->count; i++) {
        const struct audit_member *m = &run->members[i];
        const struct fleet_host *h = c->hosts[m->index];
        if (m->asked && !m->off && m->missing == REASON_NONE && h->member &&
            fleet_freshness(c, h, controller_mono()) == FRESHNESS_NEVER) {
            return false;
        }
    }
    return true;
}

void audit_on_commit(struct controller *c)
{
    struct audit_run *run = c->audits != NULL ? c->audits->running : NULL;
    for (uint32_t i = 0; run != NULL && i < run->count; i++) {
        run->members[i].unsaved = false;
    }
    if (c->audits != NULL) {
        audit_run_end_kept(c);
    }
    if (run == NULL || c->keeper == NULL) {
        return;
    }
    if (run->stopping && run->state != AUDIT_JUDGING) {
        if (all_heard(c, run) ||
            !mono_before(controller_mono(), run->until)) { /* else wait: after a restart */
            audit_run_cut(c, run);
        }
    } else if (run->state == AUDIT_READING && run->ready) {
        go_on(c, run);
    }
}

void audit_on_rollback(struct controller *c)
{
    struct audit_run *run = c->audits != NULL ? c->audits->running : NULL;
    c->expire.audits = true; /* expired rows that were removed are back */
    if (c->audits != NULL && c->audits->ended != NULL) {
        c->audits->refused = true;
        c->audits->again = mono_add(controller_mono(), span_s(AUDIT_AGAIN_S));
    }
    for (uint32_t i = 0; run != NULL && i < run->count; i++) {
        struct audit_member *m = &run->members[i];
        if (m->unsaved) {
            m->unsaved = m->looked = run->ready = false;
            m->missing = m->off ? REASON_NOT_RUN : REASON_NONE;
            m->waits = !m->off;
            run->unanswered += m->waits;
        }
    }
}

/* Hosts that left the fleet meanwhile are not waited for. */
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
            m->waits = false; /* in a second look the first sheet stays */
            run->unanswered--;
            if (!run->second) {
                audit_run_leave_out(m, REASON_NOT_RUN, left);
            }
        } else if (run->state == AUDIT_MEASURING) {
            audit_matrix_leave(run->second ? run->again : run->matrix, m->host, left);
        } else if (run->state == AUDIT_TESTING) {
            audit_perf_leave(run->perf, m->host, left);
        }
    }
}

/* The next commit starts the judging. A full disk allows no commit. Then the run is given up after some time: otherwise agents
 * would go on measuring, and no other audit could begin. */
static void watch_stopping(struct controller *c, struct audit_run *run)
{
    const struct mono now = controller_mono();

    run->stopped = c->store_broken ? run->stopped : now;
    if (mono_sub(now, run->stopped).ns >= AUDIT_STOP_S * NS_PER_S) {
        audit_run_give_up(c, run);
    } else {
        controller_touch(c);
    }
}

void audit_watch(struct controller *c)
{
    struct audit_run *run = c->audits != NULL ? c->audits->running : NULL;
    if (run != NULL && run->stopping) {
        if (run->state != AUDIT_JUDGING) {
            watch_stopping(c, run);
        }
        return;
    }
    if (run != NULL && run->state == AUDIT_MEASURING &&
        audit_matrix_waits(run->second ? run->again : run->matrix) == 0) {
        go_on(c, run);
    }
    if (run != NULL && run->state == AUDIT_TESTING &&
        (tests_off(c, run) || (!audit_perf_waits(run->perf) && !audit_perf_next(c, run->perf)))) {
        audit_run_judge(c, run); /* with the next beat agents drop the plan */
    }
    if (run == NULL || run->state != AUDIT_READING) {
        return;
    }
    const bool late = mono_sub(controller_mono(), run->until).ns >= 0;
    for (uint32_t i = 0; late && i < run->count; i++) {
        if (run->members[i].waits && run->second) {
            run->members[i].waits = false; /* its first sheet stays; its failures become unknown */
        } else if (run->members[i].waits) {
            audit_run_leave_out(&run->members[i], REASON_TIMEOUT, "it sent no sheet in time");
        }
    }
    if (late || run->ready || (run->unanswered == 0 && all_heard(c, run))) {
        run->ready = true;
        controller_touch(c); /* the judge reads what is on the disk */
    }
}

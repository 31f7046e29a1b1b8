/* run.c: `foliot lab run`: brings a lab up, plays the scenario, judges it, and removes the lab. */
#include "lab/run.h"

#include "base/bug.h"
#include "base/time.h"
#include "lab/eval_read.h"
#include "lab/fault.h"
#include "lab/job.h"
#include "lab/lab.h"
#include "lab/roce.h"
#include "lab/run_agents.h"
#include "lab/run_judge.h"
#include "lab/traffic.h"
#include "platform/config/command_line.h"
#include "platform/json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READ_EVERY_NS       (20 * NS_PER_MS)
#define CHANGES_SHOWN       32
#define GAP_WORTH_SAYING_NS (200 * NS_PER_MS)
#define JOB_PATIENCE_NS     (180 * NS_PER_S) /* for the job to end after the scenario */

static const char usage[] =
    "Usage: foliot lab run [--json] [--findings] [--keep] [--agent PROGRAM] [--roce] SCENARIO…\n"
    "Plays scenarios with real packets and judges their bounds against the truth.\n"
    "With --roce they are played in a virtual machine whose NICs have RDMA devices, and a job "
    "over\n"
    "queue pairs runs meanwhile: the job must go on, without a wrong value.\n"
    "\n";

static const char after[] =
    "\n"
    "Exit status: 0 all bounds hold, 1 a bound is broken, 2 a scenario couldn't be played.\n";

struct options {
    bool is_json, keeps, findings, roce;
    const char *agent;
};

struct play {
    struct lab lab;
    struct run_judge judge;
    struct eval_reader reader;
    struct eval_reading readings[EVAL_CLOCK_MAX];
    struct run_agents *agents;
    struct lab_job job;
    struct lab_job_result job_result;
    pid_t traffic[SCENARIO_TRAFFIC_MAX];
    int fault_id[SCENARIO_FAULT_MAX]; /* 0: not begun, -1: over */
    int64_t begin_raw_ns;
};

static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
    (void)signal;
    stopped = 1;
}

/* ---- traffic: child processes of `foliot lab traffic` ---- */

static void traffic_start(struct play *p, int index)
{
    const struct scenario_traffic *t = &p->lab.scenario.traffic[index];
    char load[32];
    char from[32];
    char to[32];
    char *argv[16] = {(char *)"traffic", (char *)"--seconds", (char *)"0", (char *)"--pattern"};
    int argc = 4;
    argv[argc++] = (char *)(t->kind == TRAFFIC_FLOW     ? "one"
                            : t->kind == TRAFFIC_INCAST ? "incast"
                                                        : "all-to-all");
    if (t->greedy) {
        argv[argc++] = (char *)"--greedy";
    } else {
        snprintf(load, sizeof(load), "%g", t->load * 100.0);
        argv[argc++] = (char *)"--load";
        argv[argc++] = load;
    }
    snprintf(from, sizeof(from), "%d.%d", t->from.from.host, t->from.from.nic);
    snprintf(to, sizeof(to), "%d.%d", t->to.from.host, t->to.from.nic);
    if (t->kind == TRAFFIC_FLOW) {
        argv[argc++] = (char *)"--from";
        argv[argc++] = from;
    }
    if (t->kind != TRAFFIC_ALL_TO_ALL && t->to.kind == TARGET_NIC) {
        argv[argc++] = (char *)"--to";
        argv[argc++] = to;
    }
    fflush(NULL);
    p->traffic[index] = fork();
    if (p->traffic[index] == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, STDOUT_FILENO);
        _exit(lab_traffic_main(p->lab.name, argc, argv));
    }
}

static void traffic_stop(struct play *p, int index)
{
    if (p->traffic[index] > 0) {
        kill(p->traffic[index], SIGINT);
        waitpid(p->traffic[index], NULL, 0);
    }
    p->traffic[index] = -1;
}

static void traffic_tick(struct play *p, int64_t now_ns)
{
    const struct scenario *s = &p->lab.scenario;
    for (int i = 0; i < s->traffic_count; i++) {
        int64_t end_ns = s->traffic[i].end_ns > 0 ? s->traffic[i].end_ns : s->duration_ns;
        if (p->traffic[i] == 0 && now_ns >= s->traffic[i].start_ns) {
            traffic_start(p, i);
        } else if (p->traffic[i] > 0 && now_ns >= end_ns) {
            traffic_stop(p, i);
        }
    }
}

/* ---- faults ---- */

struct search {
    int id;
    bool is_there;
};

static void visit_fault(const struct lab_fault *state, void *data)
{
    struct search *s = data;
    s->is_there = s->is_there || state->id == s->id;
}

static int faults_tick(struct play *p, int64_t now_ns)
{
    const struct scenario *s = &p->lab.scenario;
    for (int i = 0; i < s->fault_count; i++) {
        if (p->fault_id[i] == 0 && now_ns >= s->fault[i].at_ns) {
            run_judge_fault(&p->judge, lab_raw_ns() - p->begin_raw_ns, i, true);
            int r = lab_fault_start(&p->lab, &s->fault[i], &p->fault_id[i]);
            if (r < 0) {
                char text[LAB_TEXT_SIZE];
                lab_fault_text(&s->fault[i], text);
                fprintf(stderr, "foliot lab: %s: %s\n", text, strerror(-r));
                return r;
            }
        } else if (p->fault_id[i] > 0) {
            struct search search = {.id = p->fault_id[i]};
            lab_fault_each(&p->lab, visit_fault, &search);
            if (!search.is_there) {
                run_judge_fault(&p->judge, lab_raw_ns() - p->begin_raw_ns, i, false);
                p->fault_id[i] = -1;
            }
        }
    }
    return 0;
}

/* ---- the run ---- */

static int play_through(struct play *p, const char **ret_step)
{
    const struct scenario *s = &p->lab.scenario;
    int r = 0;
    while (r == 0 && !stopped) {
        int64_t now_ns = lab_raw_ns() - p->begin_raw_ns;
        if (now_ns >= s->duration_ns) {
            break;
        }
        *ret_step = "a fault can't be set";
        r = faults_tick(p, now_ns);
        traffic_tick(p, now_ns);
        run_agents_poll(p->agents, lab_raw_ns() - p->begin_raw_ns);
        int64_t raw_ns = eval_read(&p->reader, p->readings);
        if (r == 0) {
            *ret_step = "the clocks' readings can't be judged";
            r = run_judge_readings(&p->judge, raw_ns - p->begin_raw_ns, p->readings);
        }
        struct timespec t = {.tv_nsec = READ_EVERY_NS - (lab_raw_ns() - p->begin_raw_ns - now_ns)};
        if (t.tv_nsec > 0) {
            nanosleep(&t, NULL);
        }
    }
    return stopped ? -EINTR : r;
}

static const char *relation(const struct scenario_bound *b)
{
    return b->relation == BOUND_BELOW ? "<=" : b->relation == BOUND_ABOVE ? ">=" : "=";
}

static bool binds_here(const struct scenario_bound *b)
{
    return (b->world & SCENARIO_LAB) != 0;
}

/* Prints the hosts that left SYNCED and came back: they often explain a broken bound. */
static void print_changes(const struct play *p)
{
    const struct eval *e = &p->judge.second;
    bool was_synced[LAB_HOST_MAX] = {false};
    int shown = 0;
    for (size_t i = 0; i < e->change_count && shown < CHANGES_SHOWN; i++) {
        const struct eval_change *c = &e->changes[i];
        if (c->clock < LAB_HOST_MAX && was_synced[c->clock]) {
            printf("  %8.3f s  host%d is %s, epoch %u\n", (double)c->raw_ns * 1e-9, c->clock,
                   eval_status_name(c->status), c->epoch);
            shown++;
        }
        if (c->clock < LAB_HOST_MAX) {
            was_synced[c->clock] = was_synced[c->clock] || c->status == EVAL_SYNCED;
        }
    }
    if (p->judge.longest_gap_ns > GAP_WORTH_SAYING_NS) {
        printf("  this machine stood still for up to %.3f s\n",
               (double)p->judge.longest_gap_ns * 1e-9);
    }
}

static void print_job(const struct play *p)
{
    const struct lab_job_result *r = &p->job_result;
    printf("  %s  a job of %d ranks (hosts", lab_job_is_well(r) ? "holds " : "BROKEN",
           p->job.rank_count);
    for (int i = 0; i < p->job.rank_count; i++) {
        printf("%s %d", i > 0 ? "," : "", p->job.rank_host[i]);
    }
    printf("): %d messages, longest wait %.0f ms, %d lanes over queue pairs, %d given up, ",
           r->receives, r->gap_ms, r->pairs, r->given_up);
    if (r->wrong < 0) {
        printf("values not checked; exit status %d\n", r->status);
    } else {
        printf("%.0f wrong values\n", r->wrong);
    }
}

static void put_job(struct json_writer *j, const struct play *p)
{
    const struct lab_job_result *r = &p->job_result;
    json_put_object(j, "job");
    json_put_array(j, "hosts");
    for (int i = 0; i < p->job.rank_count; i++) {
        json_put_int(j, NULL, p->job.rank_host[i]);
    }
    json_put_end(j);
    json_put_int(j, "messages", r->receives);
    json_put_double(j, "longest_wait_ms", r->gap_ms);
    json_put_int(j, "queue_pairs", r->pairs);
    json_put_int(j, "lanes_given_up", r->given_up);
    if (r->wrong < 0) {
        json_put_null(j, "wrong");
    } else {
        json_put_double(j, "wrong", r->wrong);
    }
    json_put_bool(j, "holds", lab_job_is_well(r));
    json_put_end(j);
}

/* A fleet without agents reports no fault, so bounds on wrong findings would hold. */
static bool agents_have_answered(const struct play *p)
{
    bool all = true;
    for (int h = 0; h < p->lab.scenario.fabric.hosts; h++) {
        all = all && p->judge.has_answered[h];
        if (!p->judge.has_answered[h]) {
            fprintf(stderr,
                    "foliot lab: host%d's agent never answered: `foliot lab run --keep` leaves its "
                    "log in " LAB_ROOT "/%s/host%d/agent.log\n",
                    h, p->lab.name, h);
        }
    }
    return all;
}

static bool print_text(struct play *p)
{
    const struct scenario *s = &p->lab.scenario;
    bool all = agents_have_answered(p);
    printf("%s: %d hosts x %d NICs, %g s in the lab\n", s->name, s->fabric.hosts,
           s->fabric.nics_per_host, (double)s->duration_ns * 1e-9);
    for (int i = 0; i < s->bound_count; i++) {
        const struct scenario_bound *b = &s->bound[i];
        char text[40];
        if (!binds_here(b)) {
            continue;
        }
        double value = run_judge_value(&p->judge, i);
        bool holds = run_judge_holds(b, value);
        all = all && holds;
        if (isfinite(value)) {
            snprintf(text, sizeof(text), "%.6g", value);
        } else {
            snprintf(text, sizeof(text), isnan(value) ? "nothing measured" : "never");
        }
        printf("  %s  %-32s %16s  %s %g\n", holds ? "holds " : "BROKEN", b->what, text, relation(b),
               b->limit);
    }
    for (int i = 0; i < p->judge.unexplained_count; i++) {
        printf("  no fault explains: %s\n", p->judge.unexplained[i]);
    }
    if (p->lab.has_engines) {
        print_job(p);
        all = all && lab_job_is_well(&p->job_result);
    }
    if (!all) {
        print_changes(p);
    }
    printf("  %s\n", all ? "PASS" : "FAIL");
    return all;
}

static bool print_json(struct play *p)
{
    const struct scenario *s = &p->lab.scenario;
    struct json_writer j;
    bool all = agents_have_answered(p);
    const char *text;
    size_t size;
    json_writer_init(&j, 1 << 20);
    json_put_object(&j, NULL);
    json_put_string(&j, "scenario", s->name);
    json_put_bool(&j, "simulated", false);
    json_put_uint(&j, "seed", s->seed);
    json_put_array(&j, "bounds");
    for (int i = 0; i < s->bound_count; i++) {
        const struct scenario_bound *b = &s->bound[i];
        if (binds_here(b)) {
            double value = run_judge_value(&p->judge, i);
            bool holds = run_judge_holds(b, value);
            all = all && holds;
            json_put_object(&j, NULL);
            json_put_string(&j, "what", b->what);
            json_put_string(&j, "relation", relation(b));
            json_put_double(&j, "limit", b->limit);
            json_put_double(&j, "value", value);
            json_put_bool(&j, "holds", holds);
            json_put_int(&j, "line", b->line);
            json_put_end(&j);
        }
    }
    json_put_end(&j);
    json_put_array(&j, "unexplained");
    for (int i = 0; i < p->judge.unexplained_count; i++) {
        json_put_string(&j, NULL, p->judge.unexplained[i]);
    }
    json_put_end(&j);
    if (p->lab.has_engines) {
        put_job(&j, p);
        all = all && lab_job_is_well(&p->job_result);
    }
    json_put_bool(&j, "holds", all);
    json_put_end(&j);
    if (json_writer_finish(&j, &text, &size) == 0) {
        fwrite(text, 1, size, stdout);
    }
    json_writer_done(&j);
    return all;
}

static void end_job(struct play *p)
{
    p->job_result = lab_job_end(&p->job, JOB_PATIENCE_NS);
    if (p->lab.has_engines && !lab_job_is_well(&p->job_result)) {
        lab_job_show_log(&p->job, stderr);
    }
}

/* 0, 1: the scenario was judged; else -errno. */
static int play(struct play *p, const struct options *o)
{
    p->begin_raw_ns = lab_raw_ns();
    const char *step = "no memory for the readings";
    int r = run_judge_init(&p->judge, &p->lab);
    p->judge.findings = o->findings ? stderr : NULL;
    p->agents = r == 0 ? run_agents_new(&p->judge) : NULL;
    r = r == 0 && p->agents == NULL ? -ENOMEM : r;
    if (r == 0) {
        step = "the lab's oscillators can't be read";
        r = eval_reader_open(&p->reader, &p->lab);
    }
    if (r == 0 && p->lab.has_engines) {
        step = "the job can't be started";
        r = lab_job_start(&p->job, &p->lab);
    }
    if (r == 0) {
        r = play_through(p, &step);
        for (int i = 0; i < p->lab.scenario.traffic_count; i++) {
            traffic_stop(p, i);
        }
        if (r == 0) {
            run_agents_totals(p->agents, lab_raw_ns() - p->begin_raw_ns);
            end_job(p);
            r = (o->is_json ? print_json(p) : print_text(p)) ? 0 : 1;
        }
        eval_reader_close(&p->reader);
    }
    run_agents_free(p->agents);
    run_judge_done(&p->judge);
    if (r < 0) {
        fprintf(stderr, "foliot lab: %s: %s%s%s\n", p->lab.scenario.name, r != -EINTR ? step : "",
                r != -EINTR ? ": " : "", r == -EINTR ? "interrupted" : strerror(-r));
    }
    return r;
}

/* Refuses scenarios that the lab can't play, before it begins. */
static bool can_play(const struct scenario *s, const char *file)
{
    const char *wrong =
        (s->world & SCENARIO_LAB) == 0 ? "one for the simulator only: `foliot sim run`" : NULL;
    for (int i = 0; i < s->traffic_count; i++) {
        wrong = s->traffic[i].kind == TRAFFIC_STANDING
                    ? "standing queues, which only the simulator has"
                    : wrong;
    }
    for (int i = 0; i < s->fault_count; i++) {
        const char *cannot = lab_fault_cannot(&s->fault[i]);
        wrong = cannot != NULL ? cannot : wrong;
    }
    if (wrong != NULL) {
        fprintf(stderr, "foliot lab: %s: expected a scenario for the lab, found %s\n", file, wrong);
    }
    return wrong == NULL;
}

/* Reads and checks each file here, before a machine boots that plays them all. */
static int run_in_machine(const char *name, const struct options *o, int first, int argc,
                          char **argv)
{
    static struct lab lab;
    char why[LAB_ROCE_WHY_SIZE];
    int64_t duration_ns = 0;
    if (o->keeps) {
        fputs("foliot lab run: --keep: the machine ends with the run; `foliot lab up --roce FILE` "
              "leaves one\n",
              stderr);
        return 2;
    }
    for (int i = first; i < argc; i++) {
        if (lab_describe(&lab, name, argv[i]) < 0 || !can_play(&lab.scenario, argv[i])) {
            return 2;
        }
        if (!lab_roce_can(&lab.scenario, why)) {
            fprintf(stderr, "foliot lab: %s: expected a scenario for --roce, found %s\n", argv[i],
                    why);
            return 2;
        }
        duration_ns += lab.scenario.duration_ns;
    }
    return lab_roce_run(name, duration_ns, argc, argv);
}

static int run_file(const char *name, const char *file, const struct options *o)
{
    struct play *p = calloc(1, sizeof(*p));
    int status = 2;
    if (p == NULL || lab_describe(&p->lab, name, file) < 0 || !can_play(&p->lab.scenario, file)) {
        free(p);
        return 2;
    }
    p->lab.has_engines = o->roce;
    if (!o->is_json) {
        printf("%s: %s\n", p->lab.scenario.name, p->lab.scenario.why);
        fflush(stdout);
    }
    if (lab_bring_up(&p->lab, true, o->agent, 0) == 0) {
        int r = play(p, o);
        status = r < 0 ? 2 : r;
    }
    if (!o->keeps && lab_fabric_down(name) < 0) {
        fprintf(stderr, "foliot lab: lab '%s': not all of it could be removed\n", name);
        status = 2;
    }
    free(p);
    return status;
}

int lab_run_main(const char *name, int argc, char **argv)
{
    struct options o = {0};
    const struct option_entry entries[] = {
        {"json", 0, OPTION_FLAG, &o.is_json, .help = "print one JSON object for each scenario"},
        {"findings", 0, OPTION_FLAG, &o.findings, .help = "print findings as they come"},
        {"keep", 0, OPTION_FLAG, &o.keeps, .help = "leave the lab up afterwards"},
        {"agent", 0, OPTION_TEXT, &o.agent, .value = "PROGRAM", .help = "the agents' program"},
        {"roce", 0, OPTION_FLAG, &o.roce,
         .help = "in a virtual machine with RDMA devices, together with a job; needs no root"},
        {"help", 'h', OPTION_HELP, .help = "this text"},
    };
    const struct option_set set = {.program = "foliot lab run",
                                   .usage = usage,
                                   .after = after,
                                   .entries = entries,
                                   .count = ARRAY_COUNT(entries),
                                   .words_least = 1,
                                   .words_most = argc,
                                   .words = "a scenario's file"};
    char program[PATH_MAX];
    int worst = 0, first = 0;
    const int early = command_line_read(&set, argc, argv, &first);
    if (early != COMMAND_LINE_GOOD) {
        return early;
    }
    if (o.agent != NULL && strchr(o.agent, '/') != NULL) {
        if (realpath(o.agent, program) == NULL) {
            fprintf(stderr, "foliot lab: %s: %s\n", o.agent, strerror(errno));
            return 2;
        }
        o.agent = program;
    }
    if (o.roce && !lab_roce_is_inside()) {
        return run_in_machine(name, &o, first, argc, argv);
    }
    if (lab_is_there(name)) {
        fprintf(stderr, "foliot lab: lab '%s' exists already: `foliot lab --name %s down` first\n",
                name, name);
        return 2;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    for (int i = first; i < argc && !stopped; i++) {
        int status = run_file(name, argv[i], &o);
        worst = status > worst ? status : worst;
    }
    return worst;
}

/* perf.c: this host's ranks of an audit's tests (core/audit/perf.h). The agent accepts or refuses the controller's plan. Each
 * step of the plan is a `foliot perf --agent` of its own. Its result goes to the controller when the step is over.
 *
 * No step begins while a job runs here, or while a link or a GPU is in use without the page of a job. If a job begins, the test
 * ends at once: the agent closes the program's input, and that ends the program. The test also ends if the controller no longer
 * asks for it, or is silent for three beats and two seconds. The agent's own limits (base/limits.h) apply, whoever asks. Nothing
 * in this file waits. */
#include <arpa/inet.h>
#include <errno.h>
#include <foliot.pb-c.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

#include "base/ip.h"
#include "base/plain.h"
#include "core/audit/budget.h"
#include "core/audit/perf.h"
#include "core/audit/perf_offer.h"
#include "core/audit/quiet.h"
#include "service/agent/agent.h"
#include "service/agent/answers.h"
#include "service/agent/program.h"

#define LATE_NS  (300 * NS_PER_MS) /* a step that could not begin until then is not begun */
#define LOOK_NS  (100 * NS_PER_MS) /* at jobs' pages, under a test */
#define END_NS   (100 * NS_PER_MS) /* the rest of a step is ended so long before the next one */
#define TELL_NS  (300 * NS_PER_MS) /* a rank reports its result so long before that */
#define TRACE_NS (500 * NS_PER_MS) /* time in which two ranks meet and trace their ways */
#define COUNT_NS NS_PER_S          /* links are counted so often */
#define LAST_NS  (5 * NS_PER_S)    /* counters may be so old: 2 s, and a late round */

enum { WAYS_OF_STEP = 12 };

struct agent_perf {
    struct plan_hold plan;
    int64_t begin_ns, step_ns;
    uint32_t timed_ms, count, next; /* next: the first step that has not begun */
    struct perf_task steps[AUDIT_STEPS_MAX];
    uint8_t secret[PERF_SECRET_SIZE];
    struct allowance budget; /* budget.h: of tests */
    struct program program;  /* of the step that runs, next - 1 */
    struct mono began;       /* when it was started */
    bool told;               /* its result was sent */
    bool timeless;           /* fleet time was unknown at some moment since the last step */
    bool ending;             /* that program was still ending when the next step was due */
    struct mono look, until;
    struct mono counted, explained_until;
    struct quiet links[HOST_NIC_MAX];
    sd_event_source *readable;
    char text[5120]; /* 12 ways of 6 hops */
    size_t used;
};

int agent_perf_open(struct agent *a)
{
    a->perf = calloc(1, sizeof(*a->perf));
    if (a->perf == NULL) {
        return -ENOMEM;
    }
    a->perf->program = PROGRAM_NONE;
    return 0;
}

uint64_t agent_perf_held(const struct agent *a)
{
    return a->perf->plan.name;
}

/* Closes the program's input, which ends it. */
static void end_step(const struct agent *a)
{
    struct agent_perf *p = a->perf;
    if (p->program.fd >= 0) {
        budget_tested(&p->budget, mono_sub(a->now, p->began).ns, a->now);
    }
    p->readable = sd_event_source_disable_unref(p->readable);
    program_close(&p->program);
    p->used = 0;
}

void agent_perf_close(struct agent *a)
{
    if (a->perf != NULL) {
        end_step(a);
        free(a->perf);
        a->perf = NULL;
    }
}

/* ---- answers ---- */

static void send_row(struct agent *a, Foliot__V1__PerfRow *row)
{
    row->audit = a->perf->plan.name;
    const int r = agent_uplink_perf(a, row);
    if (r < 0) {
        agent_say(LOG_WARNING, "the result of an audit's test can't be sent: %s", strerror(-r));
    }
}

static void answer(struct agent *a, uint32_t step, enum perf_outcome outcome, const char *words)
{
    Foliot__V1__PerfRow row = FOLIOT__V1__PERF_ROW__INIT;
    row.step = step;
    row.outcome = outcome;
    row.words = (char *)(uintptr_t)words;
    send_row(a, &row);
}

/* Numbers, one after the other. */
static size_t read_work(const char *text, uint32_t work[PERF_ARRIVALS])
{
    size_t count = 0;
    int used;
    for (; count < PERF_ARRIVALS && sscanf(text, "%5" SCNu32 "%n", &work[count], &used) == 1;
         count++) {
        text += used;
    }
    return count;
}

struct ways_row {
    Foliot__V1__PerfWay ways[WAYS_OF_STEP], *pointers[WAYS_OF_STEP];
    char names[WAYS_OF_STEP][PATH_HOP_MAX][INET6_ADDRSTRLEN], *hops[WAYS_OF_STEP][PATH_HOP_MAX];
};

static void name_hop(const struct agent *a, const char *address, char name[INET6_ADDRSTRLEN])
{
    uint8_t router[16];
    if (!ip_parse(address, router) || !answer_router_name(a, router, name)) {
        snprintf(name, INET6_ADDRSTRLEN, "-");
    }
}

/* RATE/NARROW/HOP/HOP…, one after the other. */
static void read_ways(const struct agent *a, char *text, struct ways_row *w,
                      Foliot__V1__PerfRow *row)
{
    char *rest = text, *one;
    row->ways = w->pointers;
    while (row->n_ways < WAYS_OF_STEP && (one = strtok_r(NULL, " ", &rest)) != NULL) {
        Foliot__V1__PerfWay *way = &w->ways[row->n_ways];
        char *parts = one, *part;
        int used = 0;
        foliot__v1__perf_way__init(way);
        if (sscanf(one, "%" SCNu64 "/%" SCNu32 "%n", &way->rate, &way->narrow, &used) != 2) {
            continue;
        }
        parts += used;
        way->hops = w->hops[row->n_ways];
        while (way->n_hops < PATH_HOP_MAX && (part = strtok_r(NULL, "/", &parts)) != NULL) {
            way->hops[way->n_hops] = w->names[row->n_ways][way->n_hops];
            name_hop(a, part, way->hops[way->n_hops]);
            way->n_hops++;
        }
        w->pointers[row->n_ways++] = way;
    }
}

/* Reads the result of a test of memory. False: the line is something else. */
static bool read_memory(const char *text, Foliot__V1__PerfRow *row, char words[PERF_WORDS_SIZE])
{
    if (sscanf(text, "memory rate %" SCNu64 " runs %" SCNu32 " spread %" SCNu32, &row->rate,
               &row->runs, &row->spread) == 3) {
        row->outcome = PERF_DONE;
        return true;
    }
    if (sscanf(text, "busy %" SCNu32, &row->busy) == 1) {
        row->outcome = PERF_FAILED;
        snprintf(words, PERF_WORDS_SIZE, "other work had its processors for %.1f %% of a run",
                 row->busy * 0.01);
        row->words = words;
        return true;
    }
    return false;
}

/* parts: room for the row's two lists. text: " parts RATE WAITED RATE WAITED"; NULL: a program of before, or a kernel that
 * doesn't tell. */
static void read_parts(const char *text, Foliot__V1__PerfRow *row, uint32_t parts[2][PERF_PARTS])
{
    size_t count = 0;
    int used = 0;

    for (text = text != NULL ? text + strlen(" parts") : ""; count < PERF_PARTS; text += used) {
        if (sscanf(text, " %" SCNu32 " %" SCNu32 "%n", &parts[0][count], &parts[1][count], &used) !=
            2) {
            break;
        }
        count++;
    }
    row->part_rate = parts[0];
    row->part_waited = parts[1];
    row->n_part_rate = row->n_part_waited = count;
}

/* A line of `foliot perf --agent`. */
static void read_result(struct agent *a)
{
    struct agent_perf *p = a->perf;
    Foliot__V1__PerfRow row = FOLIOT__V1__PERF_ROW__INIT;
    struct ways_row ways;
    char network[32], words[PERF_WORDS_SIZE];
    uint32_t work[PERF_ARRIVALS], parts[2][PERF_PARTS];
    int used = 0;
    p->text[p->used] = 0;
    p->text[strcspn(p->text, "\n")] = 0;
    row.step = p->next - 1;
    if (p->steps[p->next - 1].memory && read_memory(p->text, &row, words)) {
        /* all of it is there */
    } else if (p->steps[p->next - 1].ways && strncmp(p->text, "ways", 4) == 0) {
        row.outcome = PERF_DONE;
        read_ways(a, p->text + 4, &ways, &row);
    } else if (p->steps[p->next - 1].incast &&
               sscanf(p->text,
                      "incast sent %" SCNu64 " came %" SCNu64 " marked %" SCNu64 " rate %" SCNu64,
                      &row.sent, &row.came, &row.marked, &row.rate) == 4) {
        row.outcome = PERF_DONE;
    } else if (sscanf(p->text,
                      "rate %" SCNu64 " runs %" SCNu32 " spread %" SCNu32 " wrong %" SCNu64
                      " init %" SCNu32 " network %31s work%n",
                      &row.rate, &row.runs, &row.spread, &row.wrong, &row.init_ms, network,
                      &used) == 6 &&
               used > 0) {
        row.outcome = PERF_DONE;
        row.work = work;
        row.n_work = read_work(p->text + used, work);
        row.network = network;
        const char *late = strstr(p->text + used, " late ");
        if (late == NULL || sscanf(late, " late %" SCNu32, &row.busy) != 1) {
            row.busy = 0; /* a program of before */
        }
        read_parts(strstr(p->text + used, " parts "), &row, parts);
    } else {
        const bool told = strncmp(p->text, "failed ", 7) == 0;
        plain_text(told ? p->text + 7 : "foliot perf ended without a word", words, sizeof(words));
        row.outcome = PERF_FAILED;
        row.words = words;
    }
    send_row(a, &row);
}

/* ---- the plan ---- */

static void drop(struct agent *a)
{
    end_step(a);
    a->perf->plan.held = false;
}

static uint32_t own_number(const struct agent *a, uint32_t local)
{
    return a->config->peers[a->config->nics[local].peer].nic.index;
}

static uint32_t find_own(const struct agent *a, uint32_t number)
{
    uint32_t i = 0;
    while (i < a->config->nic_count && own_number(a, i) != number) {
        i++;
    }
    return i;
}

static void read_task(const Foliot__V1__PerfStep *s, struct perf_task *ret)
{
    *ret = (struct perf_task){.rank = s->rank,
                              .ranks = s->ranks,
                              .leader = s->leader,
                              .port = s->port,
                              .lanes = s->lanes,
                              .ways = s->ways,
                              .incast = s->incast,
                              .alltoall = s->alltoall,
                              .memory = s->memory,
                              .nic_count = s->n_nics <= HOST_NIC_MAX ? (uint32_t)s->n_nics
                                                                     : HOST_NIC_MAX + 1};
    for (uint32_t i = 0; i < ret->nic_count && i < HOST_NIC_MAX; i++) {
        ret->nics[i] = s->nics[i];
    }
}

/* Returns NULL, or the reason of the refusal. */
static const char *begin(struct agent *a, const Foliot__V1__Perf *w)
{
    struct agent_perf *p = a->perf;
    struct agent_plan_host h;
    for (size_t i = 0; i < w->n_steps && i < AUDIT_STEPS_MAX; i++) {
        read_task(w->steps[i], &p->steps[i]);
    }
    const struct perf_offer offer = {.fleet_version = w->fleet_version,
                                     .begin_ns = (int64_t)w->begin_ns,
                                     .step_ms = w->step_ms,
                                     .timed_ms = w->timed_ms,
                                     .secret_size = w->secret.len,
                                     .count = w->n_steps,
                                     .tasks = p->steps};
    if (agent_plan_host(a, &h) < 0) {
        return "it is out of memory";
    }
    const char *wrong = perf_offer_wrong(&offer, &h.host);
    free(h.members);
    wrong = wrong != NULL ? wrong : budget_tests_wrong(&p->budget, perf_offer_ms(&offer), a->now);
    if (wrong != NULL) {
        return wrong;
    }
    memcpy(p->secret, w->secret.data, PERF_SECRET_SIZE);
    p->count = (uint32_t)w->n_steps;
    p->next = 0;
    p->timeless = p->ending = false;
    p->begin_ns = (int64_t)w->begin_ns;
    p->step_ns = w->step_ms * NS_PER_MS;
    p->timed_ms = w->timed_ms;
    return NULL;
}

void agent_perf_take(struct agent *a, const Foliot__V1__Perf *w)
{
    struct agent_perf *p = a->perf;
    const struct plan_heard heard =
        plan_hear(&p->plan, w != NULL ? w->audit : 0, w != NULL && w->n_steps > 0, a->now);
    if (heard.ends) {
        agent_say(LOG_INFO, "an audit's tests were ended by the controller");
        drop(a);
    }
    if (!heard.begins) {
        return;
    }
    const char *why = begin(a, w);
    p->plan.held = why == NULL;
    if (why != NULL) {
        agent_say(LOG_WARNING, "tests that the controller asks for are refused: %s", why);
        answer(a, UINT32_MAX, PERF_REFUSED, why);
    }
    agent_uplink_beat(a); /* it needn't be sent again */
}

/* ---- a step ---- */

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *context)
{
    struct agent *a = context;
    struct agent_perf *p = a->perf;
    const ssize_t n = read(fd, p->text + p->used, sizeof(p->text) - 1 - p->used);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    p->used += n > 0 ? (size_t)n : 0;
    if (n <= 0 || memchr(p->text, '\n', p->used) != NULL || p->used + 1 == sizeof(p->text)) {
        if (!p->told) {
            read_result(a);
        }
        p->told = true; /* it may still wait for other ranks that are not done */
        p->used = 0;
    }
    if (n <= 0) {
        end_step(a);
    }
    return 0;
}

/* False: a NIC has left the fleet meanwhile, and the other ranks use the plan's number of NICs. */
static bool name_nics(const struct agent *a, const struct perf_task *s, char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t i = 0; i < s->nic_count && used < size; i++) {
        const uint32_t own = find_own(a, s->nics[i]);
        if (own == a->config->nic_count) {
            return false;
        }
        used += (size_t)snprintf(text + used, size - used, "%c%s", used > 0 ? ',' : '=',
                                 a->config->nics[own].name);
    }
    return true;
}

/* The rank's patience: whole seconds that leave time for the test itself. A rank that waited longer would be ended before it
 * could report its reason. */
static int patience_of(const struct agent_perf *p)
{
    const int64_t left = p->step_ns - END_NS - p->timed_ms * NS_PER_MS;
    return left > NS_PER_S ? (int)(left / NS_PER_S) : 1;
}

/* For the step that begins: the time from now until its pair looks where a way is narrow, and the time that it has for that.
 * After trains and traces, the turns of all pairs fill the rest of the step. Fleet time keeps them apart. */
static void find_turn(struct agent *a, const struct perf_task *s, int *ret_in_ms, int *ret_ms)
{
    const struct agent_perf *p = a->perf;
    const int64_t first = p->timed_ms * NS_PER_MS + TRACE_NS,
                  turn = (p->step_ns - END_NS - TELL_NS - first) / PERF_TURNS;
    int64_t now = 0;
    *ret_in_ms = *ret_ms = 0;
    if (s->ways > 0) {
        const int64_t at = p->begin_ns + (p->next - 1) * p->step_ns + first + (s->ways - 1) * turn;
        const bool known = agent_fleet_ns(a, a->now, &now);
        *ret_in_ms = known && at > now ? (int)((at - now) / NS_PER_MS) : 1;
        *ret_ms = turn > 0 ? (int)(turn / NS_PER_MS) : 0;
    }
}

static void name_secret(const struct agent_perf *p, char text[2 * PERF_SECRET_SIZE + 1])
{
    for (size_t i = 0; i < PERF_SECRET_SIZE; i++) {
        snprintf(text + 2 * i, 3, "%02x", p->secret[i]);
    }
}

static int send_line(const struct agent_perf *p, const char *line, int size, int room)
{
    return size >= room                                                    ? -ENAMETOOLONG
           : send(p->program.fd, line, (size_t)size, MSG_NOSIGNAL) != size ? -EIO
                                                                           : 0;
}

/* -ENXIO: what it needs has left the fleet meanwhile. */
static int send_plan(struct agent *a, const struct perf_task *s)
{
    struct agent_perf *p = a->perf;
    char line[1024], nics[320], address[INET6_ADDRSTRLEN], secret[2 * PERF_SECRET_SIZE + 1];
    uint32_t index = 0;
    int look_ms, turn_ms;
    if (s->memory) {
        const int size = snprintf(line, sizeof(line), "memory run %" PRIu32 "\n", p->timed_ms);
        return send_line(p, line, size, sizeof(line));
    }
    if (!agent_config_find(a->config, (struct nic_id){s->leader}, &index) ||
        !name_nics(a, s, nics, sizeof(nics))) {
        return -ENXIO;
    }
    const struct agent_peer *leader = &a->config->more[index];
    if (leader->address4.s_addr != 0) {
        inet_ntop(AF_INET, &leader->address4, address, sizeof(address));
    } else {
        inet_ntop(AF_INET6, &leader->address6, address, sizeof(address));
    }
    name_secret(p, secret);
    find_turn(a, s, &look_ms, &turn_ms);
    const int size =
        snprintf(line, sizeof(line),
                 "rank %" PRIu32 " of %" PRIu32 " port %" PRIu32 " lanes %" PRIu32 " run %" PRIu32
                 " patience %d ways %d turn %d incast %" PRIu32
                 " alltoall %d at %s nics %s folder %s secret %s\n",
                 s->rank, s->ranks, s->port, s->lanes, p->timed_ms, patience_of(p), look_ms,
                 turn_ms, s->incast, s->alltoall, address, nics, a->config->runtime_dir, secret);
    return send_line(p, line, size, sizeof(line));
}

static void start(struct agent *a, const struct perf_task *s)
{
    struct agent_perf *p = a->perf;
    static char word[] = "perf", option[] = "--agent";
    char *const arguments[] = {a->config->perf, word, option, NULL};
    p->began = a->now;
    int r = program_open(&p->program, arguments);
    r = r < 0 ? r : send_plan(a, s);
    r = r < 0 ? r : sd_event_add_io(a->loop, &p->readable, p->program.fd, EPOLLIN, on_readable, a);
    if (r < 0) {
        char why[PERF_WORDS_SIZE];
        if (r == -ENXIO) {
            snprintf(why, sizeof(why), "a NIC of this step has left the fleet meanwhile");
        } else {
            snprintf(why, sizeof(why),
                     r == -ENOENT ? "%.90s is not there: systemctl enable --now foliot-perf.socket"
                                  : "%.90s: %s",
                     a->config->perf, strerror(-r));
        }
        agent_say(LOG_WARNING, "an audit's test can't begin: %s", why);
        answer(a, p->next - 1, r == -ENXIO ? PERF_FAILED : PERF_REFUSED, why);
        end_step(a);
    }
}

static bool job_is_here(struct agent *a)
{
    jobs_look(a->jobs, a->now);
    return agent_job_runs(a);
}

/* ---- use of links ---- */

bool agent_traffic_explained(const struct agent *a)
{
    return a->perf != NULL && mono_before(a->now, a->perf->explained_until);
}

static void count_links(struct agent *a)
{
    struct agent_perf *p = a->perf;
    const bool tests = p->program.fd >= 0 || p->program.child != 0;
    const bool due = mono_sub(a->now, p->counted).ns >= COUNT_NS;
    if (tests || (due && agent_job_runs(a))) {
        p->explained_until = mono_add(a->now, span_ns(LAST_NS));
    }
    if (!due) {
        return;
    }
    p->counted = a->now;
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        const struct link_interface *l = link_monitor_get(a->links, a->nics[i].slot);
        quiet_look(&p->links[i], a->now, l->rx_bytes + l->tx_bytes, l->speed_mbps,
                   agent_traffic_explained(a));
    }
}

/* A use of this host that no page of a job explains, in words; NULL: none. */
static const char *stranger(const struct agent *a)
{
    const int64_t users = agent_gpu_users(a);
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        if (!quiet_is(&a->perf->links[i], a->now)) {
            return "a link carried traffic within the last minute that is of no known job";
        }
    }
    return !agent_verbs_quiet(a) ? "an RDMA port carried traffic within the last minute that is "
                                   "of no known job"
           : users > 0           ? "a process uses a GPU"
           : users < 0           ? "whether a process uses a GPU is not known"
                                 : NULL;
}

/* Begins the step that is due. Earlier steps that never began are reported as failed. */
static void next_step(struct agent *a, int64_t now)
{
    struct agent_perf *p = a->perf;
    const uint32_t due = (uint32_t)((now - p->begin_ns) / p->step_ns);
    for (; p->next < p->count && p->next <= due; p->next++) {
        const struct perf_task *s = &p->steps[p->next];
        const bool late = now > p->begin_ns + p->next * p->step_ns + LATE_NS;
        if (s->ranks == 0) {
            continue;
        }
        if (!late && program_is_left(&p->program)) {
            p->ending = true;
            return; /* that of the step before is still ending: no reason to refuse */
        }
        if (late) {
            answer(a, p->next, PERF_FAILED,
                   p->timeless ? "this host had no fleet time when it was to begin"
                   : p->ending ? "the test before it had not ended"
                               : "the agent had no processor in time");
        } else if (job_is_here(a)) {
            answer(a, p->next, PERF_BUSY, "");
        } else if (stranger(a) != NULL) {
            answer(a, p->next, PERF_BUSY, stranger(a));
        } else {
            p->next++;
            p->look = mono_add(a->now, span_ns(LOOK_NS));
            p->until = mono_add(a->now, span_ns(p->begin_ns + p->next * p->step_ns - END_NS - now));
            p->told = p->timeless = p->ending = false;
            start(a, s);
            return;
        }
    }
    p->timeless = p->ending = false; /* for the next step only what happens from now on counts */
}

static void mind_step(struct agent *a)
{
    struct agent_perf *p = a->perf;
    const uint32_t step = p->next - 1;
    if (!mono_before(a->now, p->until)) {
        end_step(a);
        if (!p->told) {
            answer(a, step, PERF_FAILED, "it took longer than its time");
        }
    } else if (!mono_before(a->now, p->look)) {
        p->look = mono_add(a->now, span_ns(LOOK_NS));
        if (job_is_here(a)) {
            end_step(a);
            agent_say(LOG_INFO, "a job begins: an audit's test is ended");
            if (!p->told) {
                answer(a, step, PERF_PREEMPTED, "");
            }
        }
    }
}

/* A plan is held only as long as the controller can end it. */
static void mind_controller(struct agent *a)
{
    if (plan_is_alone(&a->perf->plan, a->settings.beat_ms, a->now)) {
        agent_say(LOG_WARNING, "an audit's tests are ended: the controller is silent");
        drop(a);
        answer(a, UINT32_MAX, PERF_FAILED, "the controller was silent: the tests were ended");
    }
}

void agent_perf_round(struct agent *a)
{
    struct agent_perf *p = a->perf;
    int64_t now = 0;
    mind_controller(a);
    (void)program_is_left(&p->program);
    count_links(a);
    if (p->program.fd >= 0) {
        mind_step(a);
    }
    if (!p->plan.held) {
        return;
    }
    if (!agent_fleet_ns(a, a->now, &now)) {
        p->timeless = true;
        return; /* missed steps are reported when fleet time is known again */
    }
    if (p->program.fd < 0 && now >= p->begin_ns) {
        next_step(a, now);
    }
    if (p->program.fd < 0 && p->next == p->count) {
        p->plan.held = false;
    }
}

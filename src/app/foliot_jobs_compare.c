/* foliot_jobs_compare.c: `foliot jobs compare`: compares two runs of a job, flow by flow, and finds the flow that makes the
 * difference. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_foreign.h"
#include "app/foliot_jobs.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"

#define SHOWN_MAX  20
#define STANDS_OUT 3.0 /* times the usual value of its run */

struct run {
    json_t *file;
    const char *job;
    struct flows flows;
    int64_t rate_bps, failovers, stalled_ns, processes;
};

enum stage { STAGE_SENDER, STAGE_NETWORK, STAGE_RECEIVER, STAGE_COUNT };
static const char *const stage_names[STAGE_COUNT] = {
    "sender (posted → sent)", "network (sent → received)", "receiver (received → consumed)"};

/* One flow in both runs; NULL: the run lacks it. */
struct pair {
    const struct flow *first, *second;
    bool slow; /* stands out */
};

/* What slow flows may have in common: the NIC or the host of one end. */
struct share {
    bool to, nic;
    size_t flows, slow;
};

struct comparison {
    struct run runs[2];
    struct pair *pairs; /* sorted by the increase in the second run; owned */
    size_t pair_count;
    const struct flow *odd; /* stands out most in the second run */
    size_t slow_count;      /* flows that stand out, `odd` included */
    enum stage odd_stage;
    double odd_ns, usual_ns[STAGE_COUNT], first_usual_ns[STAGE_COUNT];
};

static int64_t number(const json_t *object, const char *name)
{
    int64_t value;

    return field_get(object, name, &value) ? value : 0;
}

static void count_processes(struct run *run, json_t *const answers[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *processes = json_object_get(answers[i], "processes");
        for (size_t k = 0; k < json_array_size(processes); k++) {
            const json_t *process = json_array_get(processes, k);
            if (strcmp(job_id(process).text, run->job) == 0) {
                run->processes++;
                run->rate_bps += number(process, "rate_out_bps");
                run->failovers += number(process, "failovers");
                run->stalled_ns = number(process, "stalled_ns") > run->stalled_ns
                                      ? number(process, "stalled_ns")
                                      : run->stalled_ns;
            }
        }
    }
}

static int load(struct run *run, const char *path)
{
    json_error_t error;
    json_t **list;

    run->file = json_load_file(path, 0, &error);
    foreign_show(run->file, NULL);
    run->job = field_string(run->file, "job");
    json_t *answers = json_object_get(run->file, "answers");
    if (strcmp(field_string(run->file, "kind"), "job-run") != 0 || !json_is_array(answers)) {
        fprintf(stderr, "foliot jobs: %s: expected a file of `foliot jobs ID --save FILE`%s%s\n",
                path, run->file == NULL ? ", found: " : "",
                run->file == NULL ? foreign_text(error.text).text : "");
        return -EINVAL;
    }
    size_t count = json_array_size(answers);
    list = calloc(count + 1, sizeof(*list));
    for (size_t i = 0; list != NULL && i < count; i++) {
        list[i] = json_array_get(answers, i);
    }
    if (list != NULL) {
        jobs_drop_earlier_runs(list, count);
        count_processes(run, list, count);
    }
    int r = list == NULL ? -ENOMEM : flows_collect(&run->flows, list, count, run->job);
    free(list);
    return r;
}

/* The median of a stage. If the clocks aren't synchronised: its excess above the least. FLOW_UNKNOWN: neither is known. */
static int64_t of_stage(const struct flow *flow, enum stage stage)
{
    if (flow == NULL) {
        return FLOW_UNKNOWN;
    }
    switch (stage) {
    case STAGE_SENDER:
        return flow->queued_ns_p50;
    case STAGE_RECEIVER:
        return flow->consumed_ns_p50;
    default:
        return flow->owd_ns_p50 == FLOW_UNKNOWN        ? FLOW_UNKNOWN
               : flow->bound_ns != FLOW_UNKNOWN        ? flow->owd_ns_p50
               : flow->owd_ns_floor == FLOW_UNKNOWN    ? FLOW_UNKNOWN
               : flow->owd_ns_p50 > flow->owd_ns_floor ? flow->owd_ns_p50 - flow->owd_ns_floor
                                                       : 0;
    }
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

/* The median over the run's flows with traffic; 0: not known. */
static double usual(const struct flows *flows, enum stage stage)
{
    double *values = calloc(flows->count + 1, sizeof(*values)), median = 0;
    size_t count = 0;

    for (size_t i = 0; values != NULL && i < flows->count; i++) {
        const int64_t ns = of_stage(&flows->list[i], stage);
        if (ns != FLOW_UNKNOWN) {
            values[count++] = (double)ns;
        }
    }
    if (count > 0) {
        qsort(values, count, sizeof(*values), by_value);
        median = values[count / 2];
    }
    free(values);
    return median;
}

/* Ranks are the same in both runs. Processes and ports differ; hosts may differ. */
static bool same_end(const struct flow_end *a, const struct flow_end *b)
{
    return strcmp(a->nic, b->nic) == 0 &&
           (a->rank != FLOW_UNKNOWN && b->rank != FLOW_UNKNOWN ? a->rank == b->rank
                                                               : strcmp(a->host, b->host) == 0);
}

static int64_t growth(const struct pair *pair)
{
    int64_t most = INT64_MIN;

    for (int s = 0; s < STAGE_COUNT; s++) {
        const int64_t first = of_stage(pair->first, (enum stage)s);
        const int64_t second = of_stage(pair->second, (enum stage)s);
        if (second != FLOW_UNKNOWN) {
            const int64_t more = second - (first == FLOW_UNKNOWN ? 0 : first);
            most = more > most ? more : most;
        }
    }
    return most;
}

static int by_growth(const void *x, const void *y)
{
    const int64_t a = growth(x), b = growth(y);

    return (a < b) - (a > b);
}

/* Matches each flow of the second run with a free flow of the first run that has the same ends: first on the same lane, then
 * on any lane. Each run draws anew which of a pair's lanes uses which pair of NICs. */
static void match_lanes(struct comparison *c, bool used[], bool any_lane)
{
    const struct flows *first = &c->runs[0].flows;

    for (size_t i = 0; i < c->pair_count; i++) {
        struct pair *pair = &c->pairs[i];
        for (size_t k = 0; k < first->count && pair->first == NULL; k++) {
            const struct flow *flow = &first->list[k];
            if (!used[k] && (any_lane || flow->lane == pair->second->lane) &&
                same_end(&flow->from, &pair->second->from) &&
                same_end(&flow->to, &pair->second->to)) {
                pair->first = flow;
                used[k] = true;
            }
        }
    }
}

static int match(struct comparison *c)
{
    const struct flows *first = &c->runs[0].flows, *second = &c->runs[1].flows;
    bool *used = calloc(first->count + 1, sizeof(*used));

    c->pairs = calloc(first->count + second->count + 1, sizeof(*c->pairs));
    if (c->pairs == NULL || used == NULL) {
        free(used);
        return -ENOMEM;
    }
    for (size_t i = 0; i < second->count; i++) {
        c->pairs[c->pair_count++].second = &second->list[i];
    }
    match_lanes(c, used, false);
    match_lanes(c, used, true);
    for (size_t k = 0; k < first->count; k++) {
        if (!used[k]) {
            c->pairs[c->pair_count++].first = &first->list[k];
        }
    }
    free(used);
    qsort(c->pairs, c->pair_count, sizeof(*c->pairs), by_growth);
    return 0;
}

/* How many times the usual value of its run the flow takes in that stage. 0: the flow was as slow in the first run, so it
 * explains nothing. */
static double slowness(const struct comparison *c, const struct pair *pair, enum stage stage)
{
    const int64_t first = of_stage(pair->first, stage), second = of_stage(pair->second, stage);
    /* Values below a microsecond are noise. */
    const double base = c->usual_ns[stage] > 1000 ? c->usual_ns[stage] : 1000;

    return second != FLOW_UNKNOWN && (first == FLOW_UNKNOWN || second > 2 * first)
               ? (double)second / base
               : 0;
}

static void find_odd(struct comparison *c)
{
    double most = STANDS_OUT;

    for (int s = 0; s < STAGE_COUNT; s++) {
        c->first_usual_ns[s] = usual(&c->runs[0].flows, (enum stage)s);
        c->usual_ns[s] = usual(&c->runs[1].flows, (enum stage)s);
        for (size_t i = 0; i < c->pair_count; i++) {
            const double slow = slowness(c, &c->pairs[i], (enum stage)s);
            if (slow > most) {
                most = slow;
                c->odd = c->pairs[i].second;
                c->odd_stage = (enum stage)s;
                c->odd_ns = (double)of_stage(c->odd, c->odd_stage);
            }
        }
    }
    for (size_t i = 0; c->odd != NULL && i < c->pair_count; i++) {
        c->pairs[i].slow = slowness(c, &c->pairs[i], c->odd_stage) > STANDS_OUT;
        c->slow_count += c->pairs[i].slow;
    }
}

/* Counts the flows that begin or end at the NIC or host of `odd`, and the slow ones among them. */
static struct share share_of(const struct comparison *c, bool to, bool nic)
{
    const struct flow_end *own = to ? &c->odd->to : &c->odd->from;
    struct share share = {.to = to, .nic = nic};

    for (size_t i = 0; i < c->pair_count; i++) {
        const struct flow *flow = c->pairs[i].second;
        const struct flow_end *end = flow == NULL ? NULL : to ? &flow->to : &flow->from;
        if (end != NULL && strcmp(end->host, own->host) == 0 &&
            (!nic || strcmp(end->nic, own->nic) == 0)) {
            share.flows++;
            share.slow += c->pairs[i].slow;
        }
    }
    return share;
}

/* Finds the NIC or host that explains the slow flows: it has three quarters of them, and most of its flows are slow. The
 * smallest such place comes first. */
static bool find_share(const struct comparison *c, struct share *ret_share)
{
    static const bool kinds[][2] = {{true, true}, {false, true}, {true, false}, {false, false}};

    for (size_t k = 0; k < ARRAY_COUNT(kinds) && c->slow_count > 1; k++) {
        const struct share share = share_of(c, kinds[k][0], kinds[k][1]);
        if (4 * share.slow >= 3 * c->slow_count && 2 * share.slow > share.flows) {
            *ret_share = share;
            return true;
        }
    }
    return false;
}

static void say_odd(const struct comparison *c, char *text, size_t size)
{
    const struct flow *odd = c->odd;
    const char *stage = stage_names[c->odd_stage];
    const struct cell slow = text_ns((int64_t)c->odd_ns),
                      half = text_ns((int64_t)c->usual_ns[c->odd_stage]);
    struct share share;

    if (c->slow_count == 1) {
        snprintf(text, size,
                 "one flow stands out in the second run: %s → %s, lane %" PRId64
                 ": %s %s at the median, where half of the %zu flows have less than %s",
                 flow_end_name(&odd->from).text, flow_end_name(&odd->to).text, odd->lane, stage,
                 slow.text, c->runs[1].flows.count, half.text);
    } else if (find_share(c, &share)) {
        const struct flow_end *end = share.to ? &odd->to : &odd->from;
        snprintf(text, size,
                 "%zu flows stand out in the second run, and %s%zu of them %s %s%s%s: %s up to %s "
                 "at the median, where half of the %zu flows have less than %s: look at that %s",
                 c->slow_count, share.slow == c->slow_count ? "all " : "", share.slow,
                 share.to ? "go into" : "come out of", end->host, share.nic ? "/" : "",
                 share.nic ? end->nic : "", stage, slow.text, c->runs[1].flows.count, half.text,
                 share.nic ? "NIC and its link" : "host");
    } else {
        snprintf(text, size,
                 "%zu flows stand out in the second run, and they have no NIC in common: %s up to "
                 "%s at the median, where half of the %zu flows have less than %s; the slowest: "
                 "%s → %s, lane %" PRId64,
                 c->slow_count, stage, slow.text, c->runs[1].flows.count, half.text,
                 flow_end_name(&odd->from).text, flow_end_name(&odd->to).text, odd->lane);
    }
}

static void say_verdict(const struct comparison *c, char *text, size_t size)
{
    int worst = -1;

    if (c->odd != NULL) {
        say_odd(c, text, size);
        return;
    }
    for (int s = 0; s < STAGE_COUNT; s++) {
        if (c->usual_ns[s] > 1.5 * c->first_usual_ns[s] && c->usual_ns[s] > 1000 &&
            (worst < 0 || c->usual_ns[s] - c->first_usual_ns[s] >
                              c->usual_ns[worst] - c->first_usual_ns[worst])) {
            worst = s;
        }
    }
    if (worst >= 0) {
        snprintf(text, size, "no flow stands out: all are slower, in the part of the %s: %s → %s",
                 stage_names[worst], text_ns((int64_t)c->first_usual_ns[worst]).text,
                 text_ns((int64_t)c->usual_ns[worst]).text);
    } else {
        snprintf(text, size,
                 "no flow stands out, and all together are as fast as in the first "
                 "run: these figures show no fault of the network");
    }
}

/* -- tables ----------------------------------------------------------------------------------- */

static struct cell both(int64_t first, int64_t second)
{
    return text_format("%s → %s", first == FLOW_UNKNOWN ? "–" : text_ns(first).text,
                       second == FLOW_UNKNOWN ? "–" : text_ns(second).text);
}

static void print_runs(const struct comparison *c, FILE *out)
{
    for (int i = 0; i < 2; i++) {
        const struct run *run = &c->runs[i];
        fprintf(out,
                "%s  job %s: %" PRId64 " processes, %zu flows, %.3g Gbit/s, %" PRId64
                " failovers, %s without any way to a peer\n",
                i == 0 ? "first " : "second", run->job, run->processes, run->flows.count,
                (double)run->rate_bps / 1e9, run->failovers, text_ns(run->stalled_ns).text);
    }
    if (c->runs[0].rate_bps > 0) {
        fprintf(out, "the second is at %.2f times the first's rate\n",
                (double)c->runs[1].rate_bps / (double)c->runs[0].rate_bps);
    }
}

static int print_text(const struct comparison *c, const char *verdict, FILE *out)
{
    static const char *const titles[] = {"",
                                         "FROM",
                                         "TO",
                                         ">LANE",
                                         ">RATE",
                                         ">SENDER p50",
                                         ">NETWORK p50",
                                         ">NETWORK p99",
                                         ">RECEIVER p50",
                                         NULL};
    struct libscols_table *table = table_new(titles);

    if (table == NULL) {
        return -ENOMEM;
    }
    print_runs(c, out);
    for (size_t i = 0; i < c->pair_count && i < SHOWN_MAX; i++) {
        const struct pair *pair = &c->pairs[i];
        const struct flow *any = pair->second != NULL ? pair->second : pair->first;
        struct libscols_line *line = table_line(table);
        table_put_status(line, 0, pair->slow ? "slow" : " ");
        table_put(line, 1, flow_end_name(&any->from).text);
        table_put(line, 2, flow_end_name(&any->to).text);
        table_put(line, 3, text_format("%" PRId64, any->lane).text);
        table_put(line, 4,
                  text_format("%.3g → %.3g Mbit/s",
                              pair->first != NULL ? (double)pair->first->rate_bps / 1e6 : 0.0,
                              pair->second != NULL ? (double)pair->second->rate_bps / 1e6 : 0.0)
                      .text);
        for (int s = 0; s < STAGE_COUNT; s++) {
            table_put(
                line,
                s == 0   ? 5
                : s == 1 ? 6
                         : 8,
                both(of_stage(pair->first, (enum stage)s), of_stage(pair->second, (enum stage)s))
                    .text);
        }
        table_put(line, 7,
                  both(pair->first != NULL ? pair->first->owd_ns_p99 : FLOW_UNKNOWN,
                       pair->second != NULL ? pair->second->owd_ns_p99 : FLOW_UNKNOWN)
                      .text);
    }
    table_show(table, out);
    if (c->pair_count > SHOWN_MAX) {
        fprintf(out, "… and %zu more, which changed less\n", c->pair_count - SHOWN_MAX);
    }
    fprintf(out, "\n%s%s%s\n", colour_begin(out, COLOUR_BOLD), verdict, colour_end(out));
    return 0;
}

static json_t *json_or_null(int64_t value)
{
    return value == FLOW_UNKNOWN ? json_null() : json_integer(value);
}

static json_t *json_flow(const struct flow *flow)
{
    if (flow == NULL) {
        return json_null();
    }
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "rate_bps", json_or_null(flow->rate_bps),
                     "owd_ns_p50", json_or_null(flow->owd_ns_p50), "owd_ns_p99",
                     json_or_null(flow->owd_ns_p99), "queued_ns_p50",
                     json_or_null(flow->queued_ns_p50), "consumed_ns_p50",
                     json_or_null(flow->consumed_ns_p50), "bound_ns", json_or_null(flow->bound_ns),
                     "failovers", json_or_null(flow->failovers));
}

static json_t *json_run(const struct run *run)
{
    return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I}", "job", run->job, "processes",
                     (json_int_t)run->processes, "flows", (json_int_t)run->flows.count, "rate_bps",
                     (json_int_t)run->rate_bps, "failovers", (json_int_t)run->failovers,
                     "stalled_ns", (json_int_t)run->stalled_ns);
}

static int print_json(const struct comparison *c, const char *verdict, FILE *out)
{
    json_t *flows = json_array();

    for (size_t i = 0; i < c->pair_count; i++) {
        const struct pair *pair = &c->pairs[i];
        const struct flow *any = pair->second != NULL ? pair->second : pair->first;
        json_array_append_new(
            flows, json_pack("{s:s,s:s,s:I,s:o,s:o,s:b}", "from", flow_end_name(&any->from).text,
                             "to", flow_end_name(&any->to).text, "lane", (json_int_t)any->lane,
                             "first", json_flow(pair->first), "second", json_flow(pair->second),
                             "stands_out", (int)pair->slow));
    }
    json_t *root = json_pack("{s:i,s:s,s:o,s:o,s:o,s:s}", "version", 1, "kind", "job-comparison",
                             "first", json_run(&c->runs[0]), "second", json_run(&c->runs[1]),
                             "flows", flows, "text", verdict);
    if (root == NULL) {
        return -ENOMEM;
    }
    foreign_print(root, out);
    json_decref(root);
    return 0;
}

/* Compares both runs if they are loaded; r is the reason if they aren't. */
static int compare(struct comparison *c, int r, bool json, FILE *out)
{
    char verdict[640];

    r = r < 0 ? r : match(c);
    if (r == 0) {
        find_odd(c);
        say_verdict(c, verdict, sizeof(verdict));
        r = json ? print_json(c, verdict, out) : print_text(c, verdict, out);
    }
    free(c->pairs);
    for (int i = 0; i < 2; i++) {
        flows_done(&c->runs[i].flows);
        json_decref(c->runs[i].file);
    }
    return r < 0 ? EXIT_UNREACHABLE : EXIT_WELL;
}

int jobs_compare_files(const char *first, const char *second, bool json, FILE *out)
{
    struct comparison c = {0};
    int r = load(&c.runs[0], first);

    r = r < 0 ? r : load(&c.runs[1], second);
    return compare(&c, r, json, out);
}

static int64_t get(const json_t *object, const char *name)
{
    int64_t value;

    return field_get(object, name, &value) ? value : FLOW_UNKNOWN;
}

/* rank: null if it isn't known; missing in the answer of an older controller. */
static struct flow_end end_of(const json_t *flow, const char *host, const char *nic,
                              const char *rank)
{
    struct flow_end end = {.pid = 0, .port = 0, .rank = get(flow, rank)};

    snprintf(end.host, sizeof(end.host), "%s", field_string(flow, host));
    snprintf(end.nic, sizeof(end.nic), "%s", field_string(flow, nic));
    return end;
}

/* Takes a job from the controller's answer: each rank's slowest flows. */
static int take_detail(struct run *run, const json_t *detail)
{
    const json_t *list = json_object_get(detail, "flows");
    const size_t count = json_array_size(list);

    run->job = field_string(detail, "job");
    run->processes = number(detail, "processes");
    run->rate_bps = number(detail, "rate_bps");
    run->failovers = number(detail, "failovers");
    run->stalled_ns = number(detail, "stalled_ns");
    run->flows.list = calloc(count + 1, sizeof(*run->flows.list));
    if (run->flows.list == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *flow = json_array_get(list, i);
        run->flows.list[run->flows.count++] =
            (struct flow){.from = end_of(flow, "from_host", "from_nic", "from_rank"),
                          .to = end_of(flow, "to_host", "to_nic", "to_rank"),
                          .lane = get(flow, "lane"),
                          .rate_bps = get(flow, "rate_bps"),
                          .owd_ns_floor = get(flow, "owd_ns_floor"),
                          .owd_ns_p50 = get(flow, "owd_ns_p50"),
                          .owd_ns_p99 = get(flow, "owd_ns_p99"),
                          .bound_ns = get(flow, "bound_ns"),
                          .queued_ns_p50 = get(flow, "queued_ns_p50"),
                          .consumed_ns_p50 = get(flow, "consumed_ns_p50"),
                          .failovers = FLOW_UNKNOWN};
    }
    return 0;
}

int jobs_compare_details(const json_t *first, const json_t *second, bool json, FILE *out)
{
    struct comparison c = {0};
    int r = take_detail(&c.runs[0], first);

    r = r < 0 ? r : take_detail(&c.runs[1], second);
    return compare(&c, r, json, out);
}

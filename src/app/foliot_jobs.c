/* foliot_jobs.c: `foliot jobs`: the jobs on this host, one job in full, or two runs compared. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/foliot_jobs.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"

#define JOBS_MAX 4096

/* A job, summed over the reports of all its processes. */
struct job_sum {
    struct job_id id;
    const char *state;
    size_t processes;
    int64_t ranks;
    char hosts[512]; /* names, ",h0,h1," */
    size_t host_count;
    int64_t peers, lanes, usable, rate_bps, failovers, repaths, parted, stalled_ns;
    const json_t *worst, *worst_of; /* the worst lane, and its process */
};

static const char *wanted, *save_file; /* from the command line: the program runs one command */

static int64_t number(const json_t *object, const char *name)
{
    int64_t value;

    return field_get(object, name, &value) ? value : 0;
}

static int rank_of_state(const char *state)
{
    static const char *const order[] = {"ended", "killed", "idle", "running", "parted"};

    for (int i = 0; i < 5; i++) {
        if (strcmp(order[i], state) == 0) {
            return i;
        }
    }
    return -1;
}

static void add_host(struct job_sum *sum, const char *host)
{
    char word[80];
    const size_t used = strlen(sum->hosts);

    snprintf(word, sizeof(word), ",%s,", host);
    if (strstr(sum->hosts, word) == NULL) {
        sum->host_count++;
        snprintf(sum->hosts + (used > 0 ? used - 1 : 0),
                 sizeof(sum->hosts) - (used > 0 ? used - 1 : 0), "%s", word);
    }
}

static int64_t above_floor(const json_t *lane)
{
    int64_t p99, floor;

    return field_get(lane, "owd_ns_p99", &p99) && field_get(lane, "owd_ns_floor", &floor)
               ? p99 - floor
               : INT64_MIN;
}

static void add_process(struct job_sum *sum, const json_t *process)
{
    const json_t *worst = json_object_get(process, "worst");
    const char *state = field_string(process, "state");

    sum->processes++;
    if (rank_of_state(state) > rank_of_state(sum->state)) {
        sum->state = state;
    }
    if (number(process, "ranks") > sum->ranks) {
        sum->ranks = number(process, "ranks");
    }
    add_host(sum, field_string(process, "host"));
    sum->peers += number(process, "peers");
    sum->lanes += number(process, "lanes");
    sum->usable += number(process, "lanes_usable");
    sum->rate_bps += number(process, "rate_out_bps");
    sum->failovers += number(process, "failovers");
    sum->repaths += number(process, "repaths");
    sum->parted += number(process, "parted");
    if (number(process, "stalled_ns") > sum->stalled_ns) {
        sum->stalled_ns = number(process, "stalled_ns");
    }
    if (json_is_object(worst) &&
        (sum->worst == NULL || above_floor(worst) > above_floor(sum->worst))) {
        sum->worst = worst;
        sum->worst_of = process;
    }
}

static struct job_sum *sum_of(struct job_sum *sums, size_t *count, struct job_id id)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(sums[i].id.text, id.text) == 0) {
            return &sums[i];
        }
    }
    if (*count == JOBS_MAX) {
        return NULL;
    }
    sums[*count] = (struct job_sum){.id = id, .state = ""};
    return &sums[(*count)++];
}

/* All jobs, or the job `id`, of all hosts asked. NULL: out of memory; the caller frees it. */
static struct job_sum *sum_all(const struct options *options, json_t *const answers[],
                               const char *id, size_t *ret_count)
{
    struct job_sum *sums = calloc(JOBS_MAX, sizeof(*sums));

    *ret_count = 0;
    for (size_t i = 0; sums != NULL && i < options->target_count; i++) {
        const json_t *processes = json_object_get(answers[i], "processes");
        for (size_t k = 0; k < json_array_size(processes); k++) {
            const json_t *process = json_array_get(processes, k);
            const struct job_id of = job_id(process);
            struct job_sum *sum =
                id == NULL || strcmp(of.text, id) == 0 ? sum_of(sums, ret_count, of) : NULL;
            if (sum != NULL) {
                add_process(sum, process);
            }
        }
    }
    return sums;
}

static struct cell text_flow_rate(int64_t bps)
{
    const double rate = (double)bps;

    return bps == FLOW_UNKNOWN ? text_format("–")
           : rate >= 1e9       ? text_format("%.3g Gbit/s", rate / 1e9)
                               : text_format("%.3g Mbit/s", rate / 1e6);
}

static struct cell text_worst(const struct job_sum *sum)
{
    if (sum->worst == NULL) {
        return text_format("–");
    }
    return text_format("%s  %s/%s → %s/%s", field_ns(sum->worst, "owd_ns_p99").text,
                       field_string(sum->worst, "peer_host"), field_string(sum->worst, "peer_nic"),
                       field_string(sum->worst_of, "host"), field_string(sum->worst, "own_nic"));
}

static void put_job(struct libscols_table *table, const struct job_sum *sum)
{
    struct libscols_line *line = table_line(table);

    table_put(line, 0, sum->id.text);
    table_put_status(line, 1, sum->state);
    table_put(line, 2,
              (sum->ranks > 0 ? text_format("%zu/%" PRId64, sum->processes, sum->ranks)
                              : text_format("%zu", sum->processes))
                  .text);
    table_put(line, 3, text_format("%zu", sum->host_count).text);
    table_put(line, 4, text_format("%" PRId64, sum->peers).text);
    table_put(line, 5, text_format("%" PRId64 "/%" PRId64, sum->usable, sum->lanes).text);
    table_put(line, 6, text_flow_rate(sum->rate_bps).text);
    table_put(line, 7, text_format("%" PRId64, sum->failovers).text);
    table_put(line, 8, text_format("%" PRId64, sum->repaths).text);
    table_put(line, 9, text_ns(sum->stalled_ns).text);
    table_put(line, 10, text_worst(sum).text);
}

static int render_jobs(const struct options *options, json_t *const answers[], FILE *out)
{
    static const char *const titles[] = {"JOB",      "STATE",       ">RANKS",          ">HOSTS",
                                         ">PEERS",   ">LANES",      ">SENDS",          ">FAILOVERS",
                                         ">REPATHS", ">NO WAY FOR", "WORST DELAY p99", NULL};
    struct libscols_table *table = table_new(titles);
    int status = EXIT_WELL;
    size_t count;
    (void)jobs_drop_earlier_runs(answers, options->target_count);
    struct job_sum *sums = sum_all(options, answers, NULL, &count);

    if (table == NULL || sums == NULL) {
        free(sums);
        return EXIT_UNREACHABLE;
    }
    for (size_t i = 0; i < count; i++) {
        put_job(table, &sums[i]);
        status = strcmp(sums[i].state, "parted") == 0 ? EXIT_NOT_WELL : status;
    }
    if (count == 0) {
        scols_unref_table(table);
        fputs(
            "no job with Foliot's plugin runs here or has run here within the last five minutes\n",
            out);
    } else {
        table_show(table, out);
    }
    free(sums);
    return status;
}

/* -- one job --------------------------------------------------------------------------------- */

static void put_process(struct libscols_table *table, const json_t *process)
{
    struct libscols_line *line = table_line(table);

    table_put(line, 0, field_integer(process, "rank").text);
    table_put(line, 1, field_string(process, "host"));
    table_put(line, 2, field_integer(process, "pid").text);
    table_put_status(line, 3, field_string(process, "state"));
    table_put(line, 4, field_string(process, "mode"));
    table_put(line, 5, field_integer(process, "peers").text);
    struct cell cell = text_format("%s/%s", field_integer(process, "lanes_usable").text,
                                   field_integer(process, "lanes").text);
    table_put(line, 6, cell.text);
    table_put(line, 7, text_flow_rate(number(process, "rate_out_bps")).text);
    table_put(line, 8, text_flow_rate(number(process, "rate_in_bps")).text);
    table_put(line, 9, field_integer(process, "resent").text);
    table_put(line, 10, field_integer(process, "failovers").text);
    table_put(line, 11, field_ns(process, "stalled_ns").text);
}

static void show_processes(const struct options *options, json_t *const answers[], FILE *out)
{
    static const char *const titles[] = {">RANK",      "HOST",        ">PID",   "STATE",  "MODE",
                                         ">PEERS",     ">LANES",      ">SENDS", ">TAKES", ">RESENT",
                                         ">FAILOVERS", ">NO WAY FOR", NULL};
    struct libscols_table *table = table_new(titles);

    for (size_t i = 0; table != NULL && i < options->target_count; i++) {
        const json_t *processes = json_object_get(answers[i], "processes");
        for (size_t k = 0; k < json_array_size(processes); k++) {
            const json_t *process = json_array_get(processes, k);
            if (strcmp(job_id(process).text, wanted) == 0) {
                put_process(table, process);
            }
        }
    }
    if (table != NULL) {
        table_show(table, out);
    }
}

static struct cell text_pair(int64_t p50, int64_t p99)
{
    return p50 == FLOW_UNKNOWN || p99 == FLOW_UNKNOWN
               ? text_format("–")
               : text_format("%s / %s", text_ns(p50).text, text_ns(p99).text);
}

/* A quantile is exact to an eighth, so it may be smaller than the least. */
static int64_t above(int64_t ns, int64_t least)
{
    return ns > least ? ns - least : 0;
}

/* If the clocks aren't synchronised, only the excess above the least has a meaning: "+31 us". */
static struct cell text_network(const struct flow *flow)
{
    if (flow->bound_ns != FLOW_UNKNOWN || flow->owd_ns_floor == FLOW_UNKNOWN ||
        flow->owd_ns_p50 == FLOW_UNKNOWN || flow->owd_ns_p99 == FLOW_UNKNOWN) {
        return text_pair(flow->owd_ns_p50, flow->owd_ns_p99);
    }
    return text_format("+%s / +%s", text_ns(above(flow->owd_ns_p50, flow->owd_ns_floor)).text,
                       text_ns(above(flow->owd_ns_p99, flow->owd_ns_floor)).text);
}

/* The lane's number, its transport and the class of its packets, if these aren't the usual ones. */
static struct cell text_lane(const struct flow *flow)
{
    char class[24] = "", level[16] = "";

    if (flow->traffic_class >= 4) {
        snprintf(class, sizeof(class), " DSCP %d", (int)flow->traffic_class >> 2);
    }
    if (flow->service_level > 0) {
        snprintf(level, sizeof(level), " SL %d", (int)flow->service_level);
    }
    return text_format("%" PRId64 "%s%s%s%s", flow->lane, flow->standby ? " standby" : "",
                       flow->pair ? " queue pair" : "", class, level);
}

static void put_flow(struct libscols_table *table, const struct flow *flow)
{
    struct libscols_line *line = table_line(table);

    table_put(line, 0, flow_end_name(&flow->from).text);
    table_put(line, 1, flow_end_name(&flow->to).text);
    table_put(line, 2, text_lane(flow).text);
    struct cell cell = text_format("%" PRId64 "→%" PRId64, flow->from.port, flow->to.port);
    table_put(line, 3, cell.text);
    table_put_status(line, 4, flow->state);
    table_put(line, 5, flow->reason[0] != '\0' ? flow->reason : "");
    table_put(line, 6, text_flow_rate(flow->rate_bps).text);
    table_put(line, 7, text_pair(flow->queued_ns_p50, flow->queued_ns_p99).text);
    table_put(line, 8, text_network(flow).text);
    table_put(line, 9, text_pair(flow->consumed_ns_p50, flow->consumed_ns_p99).text);
    table_put(line, 10, flow->bound_ns == FLOW_UNKNOWN ? "–" : text_ns(flow->bound_ns).text);
}

static int show_flows(const struct options *options, json_t *const answers[], FILE *out)
{
    static const char *const titles[] = {"FROM",
                                         "TO",
                                         ">LANE",
                                         ">PORTS",
                                         "STATE",
                                         "WHY",
                                         ">RATE",
                                         ">SENDER p50 / p99",
                                         ">NETWORK p50 / p99",
                                         ">RECEIVER p50 / p99",
                                         ">± CLOCK",
                                         NULL};
    struct libscols_table *table = table_new(titles);
    struct flows flows;
    int r = table != NULL ? flows_collect(&flows, answers, options->target_count, wanted) : -ENOMEM;

    if (r < 0) {
        scols_unref_table(table);
        return r;
    }
    for (size_t i = 0; i < flows.count; i++) {
        put_flow(table, &flows.list[i]);
    }
    table_show(table, out);
    flows_done(&flows);
    return 0;
}

static const char *event_words(const char *event)
{
    static const struct {
        const char *event, *words;
    } known[] = {
        {"failover", "failed; its traffic went on over the others"},
        {"failback", "carries traffic again"},
        {"repath", "was moved to another path"},
        {"parted", "has no path to a peer left: it waits"},
        {"started", "began"},
        {"ended", "ended"},
        {"killed", "ended without closing its page: killed, or crashed"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].event, event) == 0) {
            return known[i].words;
        }
    }
    return event;
}

static void print_event(const json_t *answer, const json_t *event, FILE *out)
{
    const char *what = field_string(event, "event"), *reason = field_string(event, "reason");
    int64_t at, rank, lane, count = number(event, "count");

    fprintf(out, "%s  ", field_get(event, "at_utc_ns", &at) ? text_time(at).text : "–");
    fprintf(out, "%s",
            colour_begin(out, strcmp(what, "failover") == 0 ? COLOUR_WARN : COLOUR_NONE));
    if (field_get(event, "lane", &lane)) {
        fprintf(out, "%s/%s → %s/%s lane %" PRId64, answer_host(answer),
                field_string(event, "own_nic"), field_string(event, "peer_host"),
                field_string(event, "peer_nic"), lane);
    } else {
        fprintf(out, "%s", answer_host(answer));
    }
    fprintf(out, field_get(event, "rank", &rank) ? " (rank %" PRId64 ")" : " (pid %" PRId64 ")",
            field_get(event, "rank", &rank) ? rank : number(event, "pid"));
    fprintf(out, " %s", event_words(what));
    if (strcmp(what, "failover") == 0) {
        fprintf(out, ": %s", reason);
    }
    if (count > 1) {
        fprintf(out, " (%" PRId64 " times)", count);
    }
    fprintf(out, "%s\n", colour_end(out));
}

static void show_events(const struct options *options, json_t *const answers[], FILE *out)
{
    for (size_t i = 0; i < options->target_count; i++) {
        const json_t *events = json_object_get(answers[i], "events");
        for (size_t k = 0; k < json_array_size(events); k++) {
            const json_t *event = json_array_get(events, k);
            if (strcmp(job_id(event).text, wanted) == 0) {
                print_event(answers[i], event, out);
            }
        }
    }
}

/* Writes the file for a later `foliot jobs compare`. */
static int save(const struct options *options, json_t *const answers[])
{
    json_t *run = json_pack("{s:i,s:s,s:s,s:I,s:[]}", "version", 1, "kind", "job-run", "job",
                            wanted, "saved_utc_s", (json_int_t)time(NULL), "answers");
    int r = run == NULL ? -ENOMEM : 0;

    for (size_t i = 0; r == 0 && i < options->target_count; i++) {
        if (answers[i] != NULL) {
            r = json_array_append(json_object_get(run, "answers"), answers[i]) < 0 ? -ENOMEM : 0;
        }
    }
    if (r == 0 && json_dump_file(run, save_file, JSON_COMPACT | JSON_PRESERVE_ORDER) < 0) {
        r = -EIO;
    }
    json_decref(run);
    if (r < 0) {
        fprintf(stderr, "foliot jobs: %s could not be written\n", save_file);
    }
    return r;
}

static int render_job(const struct options *options, json_t *const answers[], FILE *out)
{
    size_t count;
    const size_t earlier = jobs_drop_earlier_runs(answers, options->target_count);
    struct job_sum *sums = sum_all(options, answers, wanted, &count);
    int status = EXIT_WELL;

    if (sums == NULL || count == 0) {
        free(sums);
        fprintf(stderr, "foliot jobs: no job '%s' here; foliot jobs lists them\n", wanted);
        return EXIT_UNREACHABLE;
    }
    fprintf(out, "%sjob %s%s  %s%s%s  %zu", colour_begin(out, COLOUR_BOLD), wanted, colour_end(out),
            colour_begin(out, colour_of_status(sums->state)), sums->state, colour_end(out),
            sums->processes);
    if (sums->ranks > 0) {
        fprintf(out, " of %" PRId64, sums->ranks);
    }
    fprintf(out,
            " ranks on %zu host%s, %s sent; %" PRId64 " failovers, %" PRId64
            " repaths, %s without any way to a peer\n\n",
            sums->host_count, sums->host_count == 1 ? "" : "s", text_flow_rate(sums->rate_bps).text,
            sums->failovers, sums->repaths, text_ns(sums->stalled_ns).text);
    if (earlier > 0) {
        fputs("processes of earlier runs under these names are left out\n\n", out);
    }
    status = strcmp(sums->state, "parted") == 0 ? EXIT_NOT_WELL : EXIT_WELL;
    free(sums);
    show_processes(options, answers, out);
    fputc('\n', out);
    if (show_flows(options, answers, out) < 0) {
        return EXIT_UNREACHABLE;
    }
    fputs("SENDER posted → sent; NETWORK sent → received (+: above the least, where clocks aren't "
          "synchronised); RECEIVER received → consumed; for the last 10 to 20 s with traffic\n\n",
          out);
    show_events(options, answers, out);
    if (save_file != NULL && save(options, answers) < 0) {
        return EXIT_UNREACHABLE;
    }
    return status;
}

/* -- command line ------------------------------------------------------------------------------ */

bool jobs_words_are_good(int count, char *const words[])
{
    const bool compare = count > 0 && strcmp(words[0], "compare") == 0;
    const bool good = count == 0 || count == (compare ? 3 : 1);

    if (!good) {
        fprintf(stderr, "foliot jobs: %s\n",
                compare
                    ? "expected: foliot jobs compare FILE FILE, two files of --save; or two jobs "
                      "and --controller"
                    : "expected one job at a time");
        fputs("foliot jobs --help: all forms\n", stderr);
    }
    return good;
}

static int jobs_of_agents(const struct options *options, int count, char *const words[])
{
    if (!jobs_words_are_good(count, words)) {
        return EXIT_USAGE;
    }
    if (count == 3) {
        return jobs_compare_files(words[1], words[2], options->json, stdout);
    }
    wanted = count > 0 ? words[0] : NULL;
    if (save_file != NULL && wanted == NULL) {
        fputs("foliot jobs: --save: expected a job's ID, found none\n", stderr);
        return EXIT_USAGE;
    }
    return wanted != NULL ? show_run(options, "lanes", render_job)
                          : show_run(options, "jobs", render_jobs);
}

int command_jobs(int argc, char *argv[])
{
    const struct option_entry own[] = {{"save", 0, OPTION_TEXT, &save_file}};
    struct options options;
    bool files = false; /* two saved jobs: nobody is asked, unless a controller is named */
    int first = 0;

    for (int i = 1; i < argc; i++) {
        files = files || strcmp(argv[i], "compare") == 0 || strncmp(argv[i], "--save", 6) == 0;
    }
    if (options_mean_fleet(argc, argv, files)) {
        return jobs_of_fleet(argc, argv);
    }
    int status = options_parse_words(&options, command_find("jobs"), own, 1, argc, argv, &first);
    if (status == 0 && !options.help) {
        status = jobs_of_agents(&options, argc - first, argv + first);
    }
    options_done(&options);
    return status;
}

/* foliot_jobs_fleet.c: `foliot jobs --controller`: the fleet's jobs, as the controller combines them. */
#include <ctype.h>
#include <string.h>

#include "app/foliot_api.h"
#include "app/foliot_jobs.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"

static struct cell rate_cell(const json_t *object, const char *name)
{
    int64_t bps;

    return field_get(object, name, &bps) ? text_format("%.3g Gbit/s", (double)bps / 1e9)
                                         : text_format("–");
}

static struct cell flow_cell(const json_t *flow)
{
    return json_is_object(flow)
               ? text_format("%s  %s/%s → %s/%s", field_ns(flow, "owd_ns_p99").text,
                             field_string(flow, "from_host"), field_string(flow, "from_nic"),
                             field_string(flow, "to_host"), field_string(flow, "to_nic"))
               : text_format("–");
}

static void put_job(struct libscols_table *table, const json_t *job)
{
    struct libscols_line *line = table_line(table);

    table_put(line, 0, field_string(job, "job"));
    table_put(line, 1, field_integer(job, "user").text);
    table_put_status(line, 2, field_string(job, "state"));
    table_put(
        line, 3,
        text_format("%s/%s", field_integer(job, "processes").text, field_integer(job, "ranks").text)
            .text);
    table_put(line, 4, field_integer(job, "hosts").text);
    table_put(line, 5,
              text_format("%s/%s", field_integer(job, "lanes_usable").text,
                          field_integer(job, "lanes").text)
                  .text);
    table_put(line, 6, rate_cell(job, "rate_bps").text);
    table_put(line, 7, field_integer(job, "failovers").text);
    table_put(line, 8, field_ns(job, "stalled_ns").text);
    table_put(line, 9, flow_cell(json_object_get(job, "worst")).text);
}

static void print_jobs(json_t *const jobs[], size_t count, FILE *out)
{
    static const char *const titles[] = {"JOB",         ">USER",           "STATE",  ">RANKS",
                                         ">HOSTS",      ">LANES",          ">SENDS", ">FAILOVERS",
                                         ">NO WAY FOR", "WORST DELAY p99", NULL};
    struct libscols_table *table = table_new(titles);

    for (size_t i = 0; table != NULL && i < count; i++) {
        put_job(table, jobs[i]);
    }
    if (table != NULL) {
        table_show(table, out);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *network = json_object_get(jobs[i], "network");
        const char *answer = field_string(network, "answer");
        if (*answer != 0) {
            const enum colour colour = strcmp(answer, "no") == 0    ? COLOUR_GOOD
                                       : strcmp(answer, "yes") == 0 ? COLOUR_BAD
                                                                    : COLOUR_WARN;
            fprintf(out, "%s: is it the network? %s%s%s: %s\n", field_string(jobs[i], "job"),
                    colour_begin(out, colour), answer, colour_end(out),
                    field_string(network, "sentence"));
        }
    }
}

static void print_flows(const json_t *job, FILE *out)
{
    static const char *const titles[] = {
        "FROM",        "TO",           ">LANE", "STATE",         "WHY",      ">RATE",
        ">SENDER p50", ">NETWORK p50", ">p99",  ">RECEIVER p50", ">± CLOCK", NULL};
    const json_t *flows = json_object_get(job, "flows");
    struct libscols_table *table = table_new(titles);

    for (size_t i = 0; table != NULL && i < json_array_size(flows); i++) {
        const json_t *flow = json_array_get(flows, i);
        struct libscols_line *line = table_line(table);
        table_put(
            line, 0,
            text_format("%s/%s", field_string(flow, "from_host"), field_string(flow, "from_nic"))
                .text);
        table_put(
            line, 1,
            text_format("%s/%s", field_string(flow, "to_host"), field_string(flow, "to_nic")).text);
        table_put(line, 2, field_integer(flow, "lane").text);
        table_put_status(line, 3, field_string(flow, "state"));
        table_put(line, 4, field_string(flow, "reason"));
        table_put(line, 5, rate_cell(flow, "rate_bps").text);
        table_put(line, 6, field_ns(flow, "queued_ns_p50").text);
        table_put(line, 7, field_ns(flow, "owd_ns_p50").text);
        table_put(line, 8, field_ns(flow, "owd_ns_p99").text);
        table_put(line, 9, field_ns(flow, "consumed_ns_p50").text);
        table_put(line, 10, field_ns(flow, "bound_ns").text);
    }
    if (table != NULL) {
        fprintf(out,
                "%zu of its %s lanes, as each end reports them: those not well, and each rank's "
                "slowest\n",
                json_array_size(flows), field_integer(job, "lanes").text);
        table_show(table, out);
    }
}

/* The path of a job; its name may hold any character. */
static void path_of(char *path, size_t size, const char *id)
{
    size_t used = (size_t)snprintf(path, size, "/api/v1/jobs/");

    for (; *id != 0 && used + 4 < size; id++) {
        const bool plain = isalnum((unsigned char)*id) || strchr("-_.@:", *id) != NULL;
        used +=
            (size_t)snprintf(path + used, size - used, plain ? "%c" : "%%%02X", (unsigned char)*id);
    }
}

/* The caller owns the answer. NULL: the error was printed. */
static json_t *ask_job(struct api *a, const char *id, int *ret_status)
{
    char path[512];

    path_of(path, sizeof(path), id);
    *ret_status = api_ask(a, "GET", path, NULL);
    return *ret_status == EXIT_WELL ? json_incref(a->answer) : NULL;
}

static int list(struct api *a)
{
    const int status = api_ask(a, "GET", "/api/v1/jobs?limit=1000", NULL);
    const json_t *items = json_object_get(a->answer, "items");
    json_t *jobs[1000];
    size_t count = 0;

    if (status != EXIT_WELL || a->json) {
        if (status == EXIT_WELL) {
            api_print(a);
        }
        return status;
    }
    for (; count < json_array_size(items) && count < 1000; count++) {
        jobs[count] = json_array_get(items, count);
    }
    if (count == 0) {
        puts("no agent reports a job with Foliot's plugin");
    } else {
        print_jobs(jobs, count, stdout);
    }
    return EXIT_WELL;
}

static int one(struct api *a, const char *id)
{
    int status;
    json_t *job = ask_job(a, id, &status);

    if (job != NULL && a->json) {
        api_print(a);
    } else if (job != NULL) {
        print_jobs(&job, 1, stdout);
        putchar('\n');
        print_flows(job, stdout);
    }
    json_decref(job);
    return status;
}

static int compare(struct api *a, const char *first, const char *second)
{
    int status;
    json_t *jobs[2] = {ask_job(a, first, &status), NULL};

    if (status == EXIT_WELL) {
        jobs[1] = ask_job(a, second, &status);
    }
    if (status == EXIT_WELL) {
        status = jobs_compare_details(jobs[0], jobs[1], a->json, stdout);
    }
    json_decref(jobs[0]);
    json_decref(jobs[1]);
    return status;
}

int jobs_of_fleet(int argc, char *argv[])
{
    struct api a;

    api_init(&a, "jobs");
    const int r = api_parse(&a, NULL, argc, argv);
    if (r != 0) {
        return r == COMMAND_HELPED ? EXIT_WELL : r;
    }
    const int count = argc - a.first;
    char *const *words = argv + a.first;
    int status = !jobs_words_are_good(count, words) ? EXIT_USAGE
                 : count == 0                       ? list(&a)
                 : count == 1                       ? one(&a, words[0])
                                                    : compare(&a, words[1], words[2]);
    api_done(&a);
    return status;
}

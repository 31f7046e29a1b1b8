/* foliot_jobs_flow.c: a job's flows, from the reports of both ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_jobs.h"
#include "app/foliot_text.h"

struct job_id job_id(const json_t *process)
{
    const char *name = field_string(process, "job");
    struct job_id id;

    if (*name != '\0') {
        snprintf(id.text, sizeof(id.text), "%s", name);
    } else {
        snprintf(id.text, sizeof(id.text), "%s@%s", field_integer(process, "pid").text,
                 field_string(process, "host"));
    }
    return id;
}

struct flow_name flow_end_name(const struct flow_end *end)
{
    struct flow_name name;

    if (end->rank != FLOW_UNKNOWN) {
        snprintf(name.text, sizeof(name.text), "%s/%s (rank %lld)", end->host, end->nic,
                 (long long)end->rank);
    } else if (end->pid > 0) {
        snprintf(name.text, sizeof(name.text), "%s/%s (pid %lld)", end->host, end->nic,
                 (long long)end->pid);
    } else {
        snprintf(name.text, sizeof(name.text), "%s/%s", end->host, end->nic);
    }
    return name;
}

static int64_t get(const json_t *object, const char *name)
{
    int64_t value;

    return field_get(object, name, &value) ? value : FLOW_UNKNOWN;
}

static void copy(char *to, size_t size, const json_t *object, const char *name)
{
    snprintf(to, size, "%s", field_string(object, name));
}

static struct flow read_lane(const json_t *process, const json_t *lane)
{
    const bool sends = strcmp(field_string(lane, "direction"), "out") == 0;
    struct flow flow = {.sender_said = sends,
                        .set = get(lane, "set"),
                        .lane = get(lane, "lane"),
                        .standby = field_true(lane, "standby"),
                        .pair = strcmp(field_string(lane, "carrier"), "queue-pair") == 0,
                        .traffic_class = get(lane, "traffic_class"),
                        .service_level = get(lane, "service_level"),
                        .since_ns = get(lane, "since_ns"),
                        .rate_bps = get(lane, "rate_bps"),
                        .bytes = get(lane, "bytes"),
                        .failovers = get(lane, "failovers"),
                        .owd_ns_floor = get(lane, "owd_ns_floor"),
                        .owd_ns_p50 = get(lane, "owd_ns_p50"),
                        .owd_ns_p99 = get(lane, "owd_ns_p99"),
                        .bound_ns = get(lane, "bound_ns"),
                        .queued_ns_p50 = get(lane, "queued_ns_p50"),
                        .queued_ns_p99 = get(lane, "queued_ns_p99"),
                        .consumed_ns_p50 = get(lane, "consumed_ns_p50"),
                        .consumed_ns_p99 = get(lane, "consumed_ns_p99")};
    struct flow_end *own = sends ? &flow.from : &flow.to, *peer = sends ? &flow.to : &flow.from;

    *own = (struct flow_end){
        .pid = get(process, "pid"), .port = get(lane, "own_port"), .rank = get(process, "rank")};
    *peer = (struct flow_end){
        .pid = get(lane, "peer_pid"), .port = get(lane, "peer_port"), .rank = FLOW_UNKNOWN};
    copy(own->host, sizeof(own->host), process, "host");
    copy(own->nic, sizeof(own->nic), lane, "own_nic");
    copy(peer->host, sizeof(peer->host), lane, "peer_host");
    copy(peer->nic, sizeof(peer->nic), lane, "peer_nic");
    copy(flow.state, sizeof(flow.state), lane, "state");
    copy(flow.reason, sizeof(flow.reason), lane, "reason");
    return flow;
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* 0: both are the same flow, seen from its two ends. NICs' names aren't compared, because a peer may not know them yet. */
static int compare_ends(const struct flow_end *a, const struct flow_end *b)
{
    const int by_host = strcmp(a->host, b->host);
    const int by_pid = compare_numbers(a->pid, b->pid);

    return by_host != 0 ? by_host : by_pid != 0 ? by_pid : compare_numbers(a->port, b->port);
}

static int by_identity(const void *x, const void *y)
{
    const struct flow *a = x, *b = y;
    int order = compare_ends(&a->from, &b->from);

    order = order != 0 ? order : compare_ends(&a->to, &b->to);
    order = order != 0 ? order : compare_numbers(a->lane, b->lane);
    return order != 0 ? order : compare_numbers(b->sender_said, a->sender_said);
}

static int by_rank(const void *x, const void *y)
{
    const struct flow *a = x, *b = y;
    int order = compare_numbers(a->from.rank, b->from.rank);

    order = order != 0 ? order : compare_numbers(a->to.rank, b->to.rank);
    order = order != 0 ? order : strcmp(a->from.nic, b->from.nic);
    order = order != 0 ? order : compare_numbers(a->lane, b->lane);
    return order != 0 ? order : by_identity(x, y);
}

/* Adds the receiver's half to the sender's; the sender's comes first. */
static void join(struct flow *sender, const struct flow *receiver)
{
    sender->owd_ns_floor = receiver->owd_ns_floor;
    sender->owd_ns_p50 = receiver->owd_ns_p50;
    sender->owd_ns_p99 = receiver->owd_ns_p99;
    sender->bound_ns = receiver->bound_ns;
    sender->queued_ns_p50 = receiver->queued_ns_p50;
    sender->queued_ns_p99 = receiver->queued_ns_p99;
    sender->consumed_ns_p50 = receiver->consumed_ns_p50;
    sender->consumed_ns_p99 = receiver->consumed_ns_p99;
    sender->to = receiver->to;
}

static void join_ends(struct flows *flows)
{
    size_t kept = 0;

    qsort(flows->list, flows->count, sizeof(*flows->list), by_identity);
    for (size_t i = 0; i < flows->count; i++) {
        struct flow *last = kept > 0 ? &flows->list[kept - 1] : NULL;
        if (last != NULL && last->sender_said && !flows->list[i].sender_said &&
            compare_ends(&last->from, &flows->list[i].from) == 0 &&
            compare_ends(&last->to, &flows->list[i].to) == 0 && last->lane == flows->list[i].lane) {
            join(last, &flows->list[i]);
        } else {
            flows->list[kept++] = flows->list[i];
        }
    }
    flows->count = kept;
}

/* A flow names its peer by host and process. The peer's own report has its rank. */
static void find_rank(const struct flows *flows, struct flow_end *end)
{
    for (size_t i = 0; i < flows->count && end->rank == FLOW_UNKNOWN; i++) {
        const struct flow_end *known[] = {&flows->list[i].from, &flows->list[i].to};
        for (int k = 0; k < 2; k++) {
            if (known[k]->rank != FLOW_UNKNOWN && known[k]->pid == end->pid &&
                strcmp(known[k]->host, end->host) == 0) {
                end->rank = known[k]->rank;
            }
        }
    }
}

static int add_process(struct flows *flows, const json_t *process)
{
    const json_t *lanes = json_object_get(process, "lane_list");
    const size_t more = json_array_size(lanes);
    struct flow *grown = realloc(flows->list, (flows->count + more + 1) * sizeof(*grown));

    if (grown == NULL) {
        return -ENOMEM;
    }
    flows->list = grown;
    for (size_t i = 0; i < more; i++) {
        flows->list[flows->count++] = read_lane(process, json_array_get(lanes, i));
    }
    return 0;
}

int flows_collect(struct flows *flows, json_t *const answers[], size_t count, const char *id)
{
    int r = 0;

    *flows = (struct flows){0};
    for (size_t i = 0; i < count; i++) {
        const json_t *processes = json_object_get(answers[i], "processes");
        for (size_t k = 0; r == 0 && k < json_array_size(processes); k++) {
            const json_t *process = json_array_get(processes, k);
            if (strcmp(job_id(process).text, id) == 0) {
                r = add_process(flows, process);
            }
        }
    }
    if (r < 0) {
        flows_done(flows);
        return r;
    }
    if (flows->count > 0) {
        join_ends(flows);
        for (size_t i = 0; i < flows->count; i++) {
            find_rank(flows, &flows->list[i].from);
            find_rank(flows, &flows->list[i].to);
        }
        qsort(flows->list, flows->count, sizeof(*flows->list), by_rank);
    }
    return 0;
}

void flows_done(struct flows *flows)
{
    free(flows->list);
    *flows = (struct flows){0};
}

/* agent.c: reads facts from this host's agent: clock, mesh, switches of its links, lanes of jobs (docs/json.md). On this
 * machine it asks the agent's socket. Below another root the answers are the files /answers/agent/status and so on, each one
 * line of JSON. There the status also has `system_utc_ns`: the time of the system's clock when the agent was asked. "silent"
 * stands for an agent that did not answer. */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/time.h"
#include "core/audit/list.h"
#include "service/inspect/collect.h"

#define INSTALLED "/etc/foliot/agent.yaml"
#define SOCKET    "/run/foliot/agent.sock"

enum { ANSWER_MAX = 8 << 20, WAIT_MS = 1000, EDGES_MAX = 64, LANES_MAX = 64, NICS_MAX = 64 };

/* ---- answers ---- */

static int reach(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t size = strlen(path);

    if (size >= sizeof(address.sun_path)) {
        return -ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, size);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        const int r = -errno;
        close(fd);
        return r;
    }
    return fd >= 0 ? fd : -errno;
}

/* Receives one line, without its line end; returns its length. */
static int receive(int fd, char *text, size_t size)
{
    size_t used = 0;

    while (used == 0 || text[used - 1] != '\n') {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int ready = poll(&p, 1, WAIT_MS);
        const ssize_t n = ready > 0 ? recv(fd, text + used, size - 1 - used, 0) : 0;
        if (ready < 0 || n < 0) {
            return errno == EINTR ? -EAGAIN : -errno;
        }
        if (n == 0) {
            return ready == 0 ? -ETIMEDOUT : used + 1 == size ? -EMSGSIZE : -ECONNRESET;
        }
        used += (size_t)n;
    }
    text[used - 1] = '\0';
    return (int)used - 1;
}

static int ask_agent(const char *path, const char *what, json_t **ret)
{
    char request[64], *text = malloc(ANSWER_MAX);
    const int fd = text == NULL ? -ENOMEM : reach(path);
    const int size = snprintf(request, sizeof(request), "{\"get\":\"%s\",\"version\":1}\n", what);
    int r = fd;

    if (fd >= 0) {
        r = send(fd, request, (size_t)size, MSG_NOSIGNAL) == size ? receive(fd, text, ANSWER_MAX)
                                                                  : -EIO;
        close(fd);
    }
    if (r >= 0) {
        *ret = json_loads(text, 0, NULL);
        r = *ret == NULL ? -EBADMSG : 0;
    }
    free(text);
    return r;
}

static int64_t system_utc_ns(const json_t *status)
{
    struct timespec t;
    const json_t *told = json_object_get(status, "system_utc_ns");

    if (json_is_integer(told)) {
        return json_integer_value(told);
    }
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* For a capture: keeps the answer with the system's time, because a later reader can't ask the system for it. */
static void keep(struct collector *c, const char *what, int r, json_t *answer)
{
    char path[SYSFS_PATH_SIZE];
    char *text = NULL;

    if (c->config->capture == NULL) {
        return;
    }
    if (r == 0) {
        json_object_set_new(answer, "system_utc_ns", json_integer(system_utc_ns(answer)));
        text = json_dumps(answer, JSON_COMPACT);
    }
    snprintf(c->text, sizeof(c->text), "%s\n", text != NULL ? text : "silent");
    free(text);
    keep_answer(c, sysfs_path(path, "/answers/agent/%s", what), r == -ECONNREFUSED ? 0 : r,
                c->text);
}

/* -ECONNREFUSED: the agent does not answer. -EBADMSG: the answer is not of this kind. */
static int answer_of(struct collector *c, const char *what, json_t **ret)
{
    char path[SYSFS_PATH_SIZE];
    const char *kind;
    int r;

    *ret = NULL;
    if (c->tree != NULL && c->config->agent_socket == NULL) {
        r = collect_file(c, sysfs_path(path, "/answers/agent/%s", what));
        if (r >= 0 && strcmp(c->text, "silent\n") == 0) {
            return -ECONNREFUSED;
        }
        *ret = r >= 0 ? json_loads(c->text, 0, NULL) : NULL;
        r = r < 0 ? (r == -ENOENT ? -EIO : r) : *ret == NULL ? -EBADMSG : 0;
    } else {
        r = ask_agent(c->config->agent_socket != NULL ? c->config->agent_socket : SOCKET, what,
                      ret);
        r = r == -ENOENT ? -ECONNREFUSED : r;
        keep(c, what, r, *ret);
    }
    kind = json_string_value(json_object_get(*ret, "kind"));
    if (r == 0 && (kind == NULL || strcmp(kind, what) != 0)) {
        json_decref(*ret);
        *ret = NULL;
        return -EBADMSG;
    }
    return r;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

/* -1: the count is not known. */
static int64_t count_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* ---- clock ---- */

static void put_status(struct collector *c, const json_t *status)
{
    static const char source[] = "agent: status";
    const json_t *clock = json_object_get(status, "clock"),
                 *now = json_object_get(status, "now_fleet_ns");
    const int64_t bound = count_of(clock, "hard_ns"), system_ns = system_utc_ns(status);

    put(c, FACT_AGENT, "", "running", source);
    put(c, FACT_AGENT_VERSION, "", text_of(status, "agent_version"), source);
    put(c, FACT_CLOCK_STATUS, "", text_of(clock, "status"), source);
    put_number(c, FACT_CLOCK_BOUND, "", bound, source);
    if (json_is_integer(now) && count_of(clock, "epoch") == 0) {
        put_number(c, FACT_CLOCK_UTC, "", (system_ns - json_integer_value(now)) / 1000, source);
    } else {
        put(c, FACT_CLOCK_UTC, "", "none", source);
    }
}

/* The rate of the host's own clock against fleet time, and whether one of its clocks has hardware stamps. */
static void put_clock(struct collector *c, const json_t *answer)
{
    static const char source[] = "agent: clock";
    const char *stamps = "none";
    const json_t *member, *host = NULL;
    size_t i;

    json_array_foreach(json_object_get(answer, "members"), i, member)
    {
        const char *own = text_of(member, "stamps");
        if (strcmp(text_of(member, "name"), "host") == 0) {
            host = member;
        }
        if (strcmp(own, "hardware") == 0 || strcmp(stamps, "none") == 0) {
            stamps = own;
        }
    }
    const json_t *rate = json_object_get(host, "rate_ppb");
    if (host == NULL) {
        put_error(c, FACT_CLOCK_RATE, "", -EBADMSG, source);
        put_error(c, FACT_CLOCK_STAMPS, "", -EBADMSG, source);
        return;
    }
    put(c, FACT_CLOCK_STAMPS, "", stamps, source);
    if (json_is_integer(rate)) {
        put_number(c, FACT_CLOCK_RATE, "", json_integer_value(rate), source);
    } else {
        put(c, FACT_CLOCK_RATE, "", "none", source);
    }
}

/* ---- mesh ---- */

struct edge {
    unsigned paths, alive, ways_out, ways_in, dead_out, dead_in;
    int hops; /* of the longest path; -1: the hops of a path are not known */
    int64_t sent, lost, out, in, late;
};

static void add_direction(const json_t *direction, unsigned *dead, int64_t *least, struct edge *e)
{
    const char *state = text_of(direction, "state");
    const int64_t owd = count_of(direction, "owd_ns_min"), p99 = count_of(direction, "owd_ns_p99");
    const bool measured = json_is_integer(json_object_get(direction, "owd_ns_min"));

    *dead += strcmp(state, "dead") == 0;
    e->alive += strcmp(state, "alive") == 0 || strcmp(state, "lossy") == 0;
    e->sent += count_of(direction, "sent") > 0 ? count_of(direction, "sent") : 0;
    e->lost += count_of(direction, "lost") > 0 ? count_of(direction, "lost") : 0;
    if (measured && (*least == INT64_MAX || owd < *least)) {
        *least = owd;
    }
    if (measured && p99 - owd > e->late) {
        e->late = p99 - owd;
    }
}

/* A fleet of few NICs probes all of them, and a neighbour drawn by chance may be of the same rail. An older agent reports only
 * the reason why it probes the neighbour. */
static bool of_rail(const json_t *edge)
{
    const json_t *same = json_object_get(edge, "same_rail");

    return json_is_boolean(same) ? json_is_true(same) : strcmp(text_of(edge, "kind"), "rail") == 0;
}

static const char *kind_of(const json_t *edge)
{
    const char *kind = text_of(edge, "kind");

    return of_rail(edge) ? "rail" : strcmp(kind, "rail") == 0 ? "cross" : kind;
}

/* "rail, hops 1, paths 4, alive 8, dead 0 out 0 in, sent 120000, lost 3, least 12340 out 12390 in, late 2000, bound 300":
 * delays in nanoseconds; alive counts directions of paths; late: 99 of 100 packets arrive within it. "none": the clocks are
 * not good enough for a delay. ", silent": nothing is heard from the neighbour. */
static void put_edge(struct collector *c, const json_t *edge)
{
    char subject[200], text[300], delays[96] = "none";
    struct edge e = {.out = INT64_MAX, .in = INT64_MAX};
    const json_t *path;
    size_t i;

    json_array_foreach(json_object_get(edge, "paths"), i, path)
    {
        const json_t *hops = json_object_get(path, "hops");
        const int count = json_is_array(hops) ? (int)json_array_size(hops) : -1;
        e.hops = count < 0 || e.hops < 0 ? -1 : count > e.hops ? count : e.hops;
        e.paths++;
        e.ways_out += json_is_object(json_object_get(path, "out"));
        e.ways_in += json_is_object(json_object_get(path, "in"));
        add_direction(json_object_get(path, "out"), &e.dead_out, &e.out, &e);
        add_direction(json_object_get(path, "in"), &e.dead_in, &e.in, &e);
    }
    /* A host that hears nothing can't count the ways: it does not know which of its ports share one. The other end may count
     * more. */
    e.dead_out = e.dead_out > 0 && e.dead_out == e.ways_out ? e.paths : e.dead_out;
    e.dead_in = e.dead_in > 0 && e.dead_in == e.ways_in ? e.paths : e.dead_in;
    if (e.out != INT64_MAX && e.in != INT64_MAX) {
        snprintf(delays, sizeof(delays), "least %lld out %lld in, late %lld, bound %lld",
                 (long long)e.out, (long long)e.in, (long long)e.late,
                 (long long)count_of(edge, "bound_hard_ns"));
    }
    snprintf(subject, sizeof(subject), "%.60s %.63s %.60s", text_of(edge, "local_name"),
             text_of(edge, "peer_host"), text_of(edge, "peer_name"));
    snprintf(text, sizeof(text),
             "%.16s, hops %d, paths %u, alive %u, dead %u out %u in, sent %lld, lost %lld, %s%s",
             kind_of(edge), e.hops, e.paths, e.alive, e.dead_out, e.dead_in, (long long)e.sent,
             (long long)e.lost, delays,
             json_is_true(json_object_get(edge, "silent")) ? ", silent" : "");
    put(c, FACT_EDGE, subject, text, "agent: mesh");
    snprintf(text, sizeof(text), "lost %lld of %lld", (long long)count_of(edge, "full_lost"),
             (long long)count_of(edge, "full_tried"));
    put(c, FACT_EDGE_FULL, subject, text, "agent: mesh");
}

/* Writes neighbours on the same rail first, because a sheet has room for a limited number. */
static void put_mesh(struct collector *c, const json_t *answer)
{
    const json_t *edges = json_object_get(answer, "edges"), *edge;
    int left = EDGES_MAX;
    size_t i;

    for (int rails = 1; rails >= 0; rails--) {
        json_array_foreach(edges, i, edge)
        {
            if (of_rail(edge) == (rails == 1) && left > 0) {
                put_edge(c, edge);
                left--;
            }
        }
    }
    if (left == EDGES_MAX) {
        put_error(c, FACT_EDGE, "", json_is_array(edges) ? -ENOENT : -EBADMSG, "agent: mesh");
    }
}

/* ---- links, lanes ---- */

static void put_links(struct collector *c, const json_t *answer)
{
    static const char source[] = "agent: links";
    const json_t *nics = json_object_get(answer, "nics"), *nic;
    int found = 0;
    size_t i;

    json_array_foreach(nics, i, nic)
    {
        const char *name = text_of(nic, "name"), *far = text_of(nic, "switch");
        if (name[0] != '\0') {
            put(c, FACT_NET_SWITCH, name, far[0] != '\0' ? far : "none", source);
            found++;
        }
    }
    if (found == 0) {
        put_error(c, FACT_NET_SWITCH, "", json_is_array(nics) ? -ENOENT : -EBADMSG, source);
    }
}

/* An InfiniBand port's GID is no address. A RoCE port's GID is the address of its interface (transport/rdma_device.c finds it
 * by value). */
static bool uses_address(const json_t *process, const json_t *lane)
{
    const char *state = text_of(process, "state"), *address = text_of(lane, "own_address");
    uint8_t bytes[16];

    return strcmp(state, "ended") != 0 && strcmp(state, "killed") != 0 &&
           strcmp(text_of(lane, "carrier"), "queue-pair") == 0 &&
           (inet_pton(AF_INET, address, bytes) == 1 || inet_pton(AF_INET6, address, bytes) == 1);
}

/* The addresses of each interface with queue pairs, as "10.100.0.1, 10.100.1.1". */
static void put_addresses(struct collector *c, const json_t *processes)
{
    struct {
        char nic[64], list[256];
    } of[NICS_MAX];
    const json_t *process, *lane;
    size_t i, k;
    int count = 0, n;

    json_array_foreach(processes, i, process)
    {
        json_array_foreach(json_object_get(process, "lane_list"), k, lane)
        {
            const char *address = text_of(lane, "own_address");
            if (!uses_address(process, lane)) {
                continue;
            }
            for (n = 0; n < count && strcmp(of[n].nic, text_of(lane, "own_nic")) != 0; n++) {
            }
            if (n == count && count < NICS_MAX) {
                snprintf(of[n].nic, sizeof(of[n].nic), "%s", text_of(lane, "own_nic"));
                snprintf(of[n].list, sizeof(of[n].list), "%s", address);
                count++;
            } else if (n < count && !list_has(of[n].list, address, strlen(address))) {
                const size_t used = strlen(of[n].list);
                if (used + strlen(address) + 3 <= sizeof(of[n].list)) { /* whole, or not at all */
                    snprintf(of[n].list + used, sizeof(of[n].list) - used, ", %s", address);
                }
            }
        }
    }
    for (n = 0; n < count; n++) {
        put(c, FACT_LANE_ADDRESS, of[n].nic, of[n].list, "agent: lanes");
    }
}

/* Delays of a job's own messages. If several lanes connect the same two NICs, the first lane counts. */
static void put_lanes(struct collector *c, const json_t *answer)
{
    const json_t *processes = json_object_get(answer, "processes"), *process, *lane;
    char subject[160];
    int found = 0;
    size_t i, k;

    put_addresses(c, processes);
    json_array_foreach(processes, i, process)
    {
        json_array_foreach(json_object_get(process, "lane_list"), k, lane)
        {
            const json_t *middle = json_object_get(lane, "owd_ns_p50"),
                         *bound = json_object_get(lane, "bound_ns");
            if (strcmp(text_of(lane, "direction"), "in") != 0 || !json_is_integer(middle) ||
                !json_is_integer(bound) || found == LANES_MAX) {
                continue;
            }
            snprintf(subject, sizeof(subject), "%.60s %.63s %.30s", text_of(lane, "own_nic"),
                     text_of(lane, "peer_host"), text_of(lane, "peer_nic"));
            put_number(c, FACT_LANE, subject, json_integer_value(middle), "agent: lanes");
            found++;
        }
    }
    if (found == 0) {
        put_error(c, FACT_LANE, "", json_is_array(processes) ? -ENOENT : -EBADMSG, "agent: lanes");
    }
}

/* ---- the collector ---- */

static void nobody(struct collector *c, int r)
{
    static const uint16_t facts[] = {FACT_AGENT_VERSION, FACT_CLOCK_STATUS, FACT_CLOCK_STAMPS,
                                     FACT_CLOCK_BOUND,   FACT_CLOCK_UTC,    FACT_CLOCK_RATE,
                                     FACT_EDGE,          FACT_NET_SWITCH,   FACT_LANE,
                                     FACT_EDGE_FULL,     FACT_LANE_ADDRESS};

    for (size_t i = 0; i < ARRAY_COUNT(facts); i++) {
        put_error(c, facts[i], "", r, SOCKET);
    }
}

void collect_agent(struct collector *c)
{
    static const struct {
        const char *what;
        uint16_t facts[2]; /* the second may be 0: no fact */
        void (*put)(struct collector *c, const json_t *answer);
    } more[] = {{"clock", {FACT_CLOCK_RATE, FACT_CLOCK_STAMPS}, put_clock},
                {"mesh", {FACT_EDGE}, put_mesh},
                {"links", {FACT_NET_SWITCH}, put_links},
                {"lanes", {FACT_LANE, FACT_LANE_ADDRESS}, put_lanes}};
    json_t *answer;

    if (c->config->agent_socket == NULL && !sysfs_there(c->tree, INSTALLED)) {
        put_error(c, FACT_AGENT, "", -ENOENT, INSTALLED);
        nobody(c, -ENOENT);
        return;
    }
    int r = answer_of(c, "status", &answer);
    if (r < 0) {
        if (r == -ECONNREFUSED) {
            put(c, FACT_AGENT, "", "silent", SOCKET);
        } else {
            put_error(c, FACT_AGENT, "", r, SOCKET);
        }
        nobody(c, r);
        return;
    }
    put_status(c, answer);
    json_decref(answer);
    for (size_t i = 0; i < ARRAY_COUNT(more); i++) {
        r = answer_of(c, more[i].what, &answer);
        if (r < 0) {
            for (size_t k = 0; k < 2 && more[i].facts[k] != 0; k++) {
                put_error(c, more[i].facts[k], "", r, SOCKET);
            }
        } else {
            more[i].put(c, answer);
            json_decref(answer);
        }
    }
}

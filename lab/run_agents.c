/* run_agents.c: one connection to each agent, which watches it; all are non-blocking. */
#include "lab/run_agents.h"

#include "base/time.h"
#include "lab/agents.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LINE_MAX_SIZE (4 << 20)
#define JOIN_EVERY_NS (200 * NS_PER_MS)
#define ASK_WAIT_MS   2000

struct connection {
    int fd; /* -1: none */
    int64_t tried_ns;
    char *text;
    size_t size, capacity;
};
struct run_agents {
    struct run_judge *judge;
    struct connection connection[LAB_HOST_MAX];
    pid_t pid[LAB_HOST_MAX];
    bool was_restarted[LAB_HOST_MAX];
};

struct run_agents *run_agents_new(struct run_judge *judge)
{
    struct run_agents *a = calloc(1, sizeof(*a));
    for (int h = 0; a != NULL && h < LAB_HOST_MAX; h++) {
        a->connection[h].fd = -1;
    }
    if (a != NULL) {
        a->judge = judge;
    }
    return a;
}

static void leave(struct connection *c)
{
    if (c->fd >= 0) {
        close(c->fd);
    }
    c->fd = -1;
    c->size = 0;
}

void run_agents_free(struct run_agents *a)
{
    for (int h = 0; a != NULL && h < LAB_HOST_MAX; h++) {
        leave(&a->connection[h]);
        free(a->connection[h].text);
    }
    free(a);
}

/* Connects and sends the request. Returns the socket, or -errno. */
static int ask(const struct lab *lab, int host, const char *request)
{
    char folder[LAB_TEXT_SIZE];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    lab_host_folder(lab, host, folder);
    if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent.sock", folder) >=
        (int)sizeof(address.sun_path)) {
        return -ENAMETOOLONG;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        send(fd, request, strlen(request), MSG_NOSIGNAL) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

/* false: the agent has closed the connection. */
static bool take(struct connection *c)
{
    for (;;) {
        if (c->capacity - c->size < 65536) {
            char *text =
                c->capacity < LINE_MAX_SIZE ? realloc(c->text, c->capacity + 131072) : NULL;
            if (text == NULL) {
                return false;
            }
            c->text = text;
            c->capacity += 131072;
        }
        ssize_t n = recv(c->fd, c->text + c->size, c->capacity - c->size - 1, 0);
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        if (n == 0) {
            return false;
        }
        c->size += (size_t)n;
    }
}

static void hear(struct run_agents *a, int host, int64_t now_ns)
{
    struct connection *c = &a->connection[host];
    char *end;
    bool is_there = take(c);
    while (c->size > 0 && (end = memchr(c->text, '\n', c->size)) != NULL) {
        size_t length = (size_t)(end - c->text);
        json_t *line = json_loadb(c->text, length, 0, NULL);
        const char *kind = json_string_value(json_object_get(line, "kind"));
        if (kind != NULL && strcmp(kind, "finding") == 0) {
            run_judge_finding(a->judge, now_ns, host, line);
        }
        json_decref(line);
        memmove(c->text, end + 1, c->size - length - 1);
        c->size -= length + 1;
    }
    if (!is_there) {
        leave(c);
    }
}

/* T: stopped; Z and X: dead. */
static bool process_runs(pid_t pid)
{
    char path[64];
    char text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = pid > 0 ? fopen(path, "re") : NULL;
    size_t n = f == NULL ? 0 : fread(text, 1, sizeof(text) - 1, f);
    if (f != NULL) {
        fclose(f);
    }
    text[n] = '\0';
    const char *state = strrchr(text, ')');
    return state != NULL && strchr("TtZX", state[2]) == NULL;
}

static void note_running(struct run_agents *a, int host, int64_t now_ns)
{
    struct run_judge *j = a->judge;
    pid_t pid = lab_agent_pid(j->lab, host);
    bool runs = process_runs(pid);
    a->was_restarted[host] = a->was_restarted[host] || (a->pid[host] != 0 && pid != a->pid[host]);
    a->pid[host] = pid != 0 ? pid : a->pid[host];
    if (j->is_running[host] && !runs) {
        j->stopped_ns[host] = now_ns;
    }
    j->is_running[host] = runs;
}

void run_agents_poll(struct run_agents *a, int64_t now_ns)
{
    for (int h = 0; h < a->judge->lab->scenario.fabric.hosts; h++) {
        struct connection *c = &a->connection[h];
        note_running(a, h, now_ns);
        if (c->fd < 0 && a->judge->is_running[h] &&
            (c->tried_ns == 0 || now_ns - c->tried_ns > JOIN_EVERY_NS)) {
            c->tried_ns = now_ns;
            c->fd = ask(a->judge->lab, h, "{\"watch\":\"findings\",\"version\":1}\n");
        }
        if (c->fd >= 0) {
            a->judge->has_answered[h] = true;
            hear(a, h, now_ns);
        }
    }
}

/* ---- totals at the end ---- */

/* Asks an agent once. NULL: no answer. */
static json_t *answer(const struct lab *lab, int host, const char *request)
{
    struct connection c = {.fd = ask(lab, host, request)};
    json_t *found = NULL;
    struct pollfd p = {.fd = c.fd, .events = POLLIN};
    while (c.fd >= 0 && poll(&p, 1, ASK_WAIT_MS) > 0) {
        bool is_there = take(&c);
        char *end = c.size > 0 ? memchr(c.text, '\n', c.size) : NULL;
        if (end != NULL) {
            found = json_loadb(c.text, (size_t)(end - c.text), 0, NULL);
            break;
        }
        if (!is_there) {
            break;
        }
    }
    leave(&c);
    free(c.text);
    return found;
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* The number of times that faults took a NIC's carrier away. */
static double injected(const struct run_judge *j, int host, int nic)
{
    double count = 0.0;
    for (int i = 0; i < j->lab->scenario.fault_count; i++) {
        const struct scenario_fault *f = &j->lab->scenario.fault[i];
        if (f->target.kind == TARGET_NIC && f->target.from.host == host &&
            f->target.from.nic == nic && j->fault[i].on_ns >= 0) {
            count += f->kind == FAULT_FLAP ? f->count : f->kind == FAULT_CARRIER ? 1 : 0;
        }
    }
    return count;
}

static void add_links(const struct run_judge *j, int host, const json_t *links,
                      struct run_totals *t)
{
    const json_t *nics = json_object_get(links, "nics");
    for (int n = 0; n < j->lab->scenario.fabric.nics_per_host; n++) {
        double missed =
            injected(j, host, n) - number(json_array_get(nics, (size_t)n), "flaps_total");
        t->flaps_missed += missed > 0.0 ? missed : 0.0;
    }
}

static void add_status(const json_t *status, struct run_totals *t, double *sent)
{
    const json_t *cost = json_object_get(status, "cost");
    const char *key;
    json_t *value;
    *sent += number(cost, "packets_sent");
    json_object_foreach(json_object_get(status, "bad_packets"), key, value)
    {
        t->probes_refused += json_number_value(value);
    }
}

static void add_process(pid_t pid, int64_t now_ns, struct run_totals *t)
{
    char path[64];
    unsigned long user = 0;
    unsigned long system = 0;
    unsigned long pages = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (f != NULL) {
        (void)!fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                      &system);
        fclose(f);
    }
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    f = fopen(path, "re");
    if (f != NULL) {
        (void)!fscanf(f, "%*u %lu", &pages);
        fclose(f);
    }
    double share = (double)(user + system) / (double)sysconf(_SC_CLK_TCK) / ((double)now_ns * 1e-9);
    double mib = (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
    t->cpu_share = share > t->cpu_share ? share : t->cpu_share;
    t->memory_mib = mib > t->memory_mib ? mib : t->memory_mib;
}

void run_agents_totals(struct run_agents *a, int64_t now_ns)
{
    struct run_judge *j = a->judge;
    const struct scenario_fabric *f = &j->lab->scenario.fabric;
    struct run_totals t = {0};
    double sent = 0.0;
    int answered = 0;
    for (int h = 0; h < f->hosts; h++) {
        if (!j->is_running[h]) {
            continue;
        }
        json_t *status = answer(j->lab, h, "{\"get\":\"status\",\"version\":1}\n");
        json_t *links = answer(j->lab, h, "{\"get\":\"links\",\"version\":1}\n");
        if (status != NULL && links != NULL) {
            answered++;
            add_status(status, &t, &sent);
            if (!a->was_restarted[h]) { /* after a restart its counters begin at zero */
                add_links(j, h, links, &t);
            }
        }
        json_decref(status);
        json_decref(links);
        add_process(a->pid[h], now_ns, &t);
    }
    if (answered == 0) {
        t = (struct run_totals){-1, -1, -1, -1, -1};
    } else {
        t.probes_per_nic_s = sent / answered / f->nics_per_host / ((double)now_ns * 1e-9);
    }
    j->totals = t;
}

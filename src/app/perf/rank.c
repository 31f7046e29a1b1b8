/* rank.c: one rank of `foliot perf`: its plugin, its connections, and all sizes in turn. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "app/perf/rank.h"
#include "base/plain.h"

void rank_say(const struct rank *r, const char *what, const char *why)
{
    fprintf(stderr, "foliot perf: rank %d: %s: %s\n", r->options->rank, what, why);
}

/* Logs as NCCL_DEBUG demands, with NCCL's prefix. */
static void log_line(int level, unsigned long flags, const char *file, int line, const char *format,
                     ...)
{
    const char *debug = getenv("NCCL_DEBUG");
    const int most = debug == NULL                 ? NCCL_LOG_WARN
                     : strcmp(debug, "TRACE") == 0 ? NCCL_LOG_TRACE
                     : strcmp(debug, "INFO") == 0  ? NCCL_LOG_INFO
                                                   : NCCL_LOG_WARN;
    char text[1024];
    va_list arguments;

    if (level > most) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "%d NCCL %s %s\n", getpid(),
            level == NCCL_LOG_WARN    ? "WARN"
            : level == NCCL_LOG_TRACE ? "TRACE"
                                      : "INFO",
            text);
}

/* -- connections */

static int device_of(const struct rank *r, const struct line *line)
{
    return r->options->device >= 0 ? r->options->device : line->channel % r->device_count;
}

/* Sends a letter with the listening handle to each rank that sends to this one. */
static int listen_all(struct rank *r, struct meet_letter *letters, int *ret_count)
{
    *ret_count = 0;
    for (int i = 0; i < r->plan.line_count; i++) {
        const struct line *line = &r->plan.lines[i];
        struct meet_letter *letter = &letters[*ret_count];
        if (line->peer < 0 || line->sends) {
            continue;
        }
        *letter = (struct meet_letter){.to = line->peer, .channel = line->channel};
        const enum nccl_result result = net_listen(&r->net, r->context, device_of(r, line),
                                                   letter->handle, &r->engine.lines[i].listen_comm);
        if (result != NCCL_SUCCESS) {
            rank_say(r, "listen", net_result_name(result));
            return -EIO;
        }
        ++*ret_count;
    }
    return 0;
}

static int count_sends(const struct plan *plan)
{
    int count = 0;

    for (int i = 0; i < plan->line_count; i++) {
        count += plan->lines[i].peer >= 0 && plan->lines[i].sends;
    }
    return count;
}

/* The handle for each sending line, by line. */
static int sort_letters(const struct plan *plan, const struct meet_letter *letters, int count,
                        char *handles)
{
    for (int i = 0; i < plan->line_count; i++) {
        const struct line *line = &plan->lines[i];
        int k = 0;
        if (line->peer < 0 || !line->sends) {
            continue;
        }
        while (k < count &&
               (letters[k].from != line->peer || letters[k].channel != line->channel)) {
            k++;
        }
        if (k == count) {
            return -EPROTO;
        }
        memcpy(handles + (size_t)i * NCCL_HANDLE_SIZE, letters[k].handle, NCCL_HANDLE_SIZE);
    }
    return 0;
}

/* Polls accepts and connects in turn until all are done, as NCCL's proxy does. A plugin that blocks in one of them hangs. */
static int poll_connections(struct rank *r, char *handles)
{
    const int64_t end = perf_now_ns() + r->options->timeout_s * 1000000000LL;

    for (int missing = 1; missing > 0;) {
        missing = 0;
        for (int i = 0; i < r->plan.line_count; i++) {
            const struct line *line = &r->plan.lines[i];
            struct engine_line *e = &r->engine.lines[i];
            if (line->peer < 0 || e->comm != NULL) {
                continue;
            }
            enum nccl_result result =
                line->sends ? net_connect(&r->net, r->context, device_of(r, line),
                                          handles + (size_t)i * NCCL_HANDLE_SIZE, &e->comm)
                            : net_accept(&r->net, e->listen_comm, &e->comm);
            if (result != NCCL_SUCCESS) {
                rank_say(r, line->sends ? "connect" : "accept", net_result_name(result));
                return -EIO;
            }
            missing += e->comm == NULL;
        }
        if (missing > 0 && perf_now_ns() > end) {
            rank_say(r, "connections", "not there in time");
            return -ETIMEDOUT;
        }
        usleep(missing > 0 ? 100 : 0);
    }
    return 0;
}

static int register_all(struct rank *r)
{
    for (int i = 0; i < r->plan.line_count; i++) {
        struct engine_line *line = &r->engine.lines[i];
        const size_t slots = PERF_STEPS * r->options->message;
        if (line->comm == NULL) {
            continue;
        }
        if (!r->plan.lines[i].sends) {
            line->slots =
                mmap(NULL, slots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (line->slots == MAP_FAILED) {
                line->slots = NULL;
                return -ENOMEM;
            }
        }
        const char *const areas[3] = {r->buffers[0], r->buffers[1], r->engine.lines[i | 1].slots};
        for (int k = 0; k < 3; k++) {
            const enum nccl_result result =
                areas[k] == NULL
                    ? NCCL_SUCCESS
                    : net_register(&r->net, line->comm, (void *)areas[k],
                                   k == 2 ? slots : r->buffer_size, &line->mhandles[k]);
            if (result != NCCL_SUCCESS) {
                rank_say(r, "regMr", net_result_name(result));
                return -EIO;
            }
        }
    }
    return 0;
}

static int connect_all(struct rank *r)
{
    const size_t lines = (size_t)r->plan.line_count;
    const int sends = count_sends(&r->plan);
    struct meet_letter *out = calloc(lines + 1, sizeof(*out)), *in = calloc(lines + 1, sizeof(*in));
    char *handles = calloc(lines + 1, NCCL_HANDLE_SIZE);
    int rc = out == NULL || in == NULL || handles == NULL ? -ENOMEM : 0, count = 0;

    rc = rc < 0 ? rc : listen_all(r, out, &count);
    rc = rc < 0 ? rc : meet_post(&r->meet, out, count, in, sends);
    rc = rc < 0 ? rc : sort_letters(&r->plan, in, sends, handles);
    rc = rc < 0 ? rc : poll_connections(r, handles);
    for (int i = 0; i < r->plan.line_count; i++) {
        if (r->engine.lines[i].listen_comm != NULL) {
            (void)net_close_listen(&r->net, r->engine.lines[i].listen_comm);
        }
    }
    rc = rc < 0 ? rc : register_all(r);
    free(out);
    free(in);
    free(handles);
    return rc;
}

static void disconnect_all(struct rank *r)
{
    for (int i = 0; i < r->plan.line_count; i++) {
        struct engine_line *line = &r->engine.lines[i];
        if (line->comm == NULL) {
            continue;
        }
        for (int k = 0; k < 3; k++) {
            if (line->mhandles[k] != NULL) {
                (void)net_deregister(&r->net, line->comm, line->mhandles[k]);
            }
        }
        (void)(r->plan.lines[i].sends ? net_close_send(&r->net, line->comm)
                                      : net_close_receive(&r->net, line->comm));
        if (line->slots != NULL) {
            munmap(line->slots, PERF_STEPS * r->options->message);
        }
    }
}

/* -- the whole */

static int find_device(struct rank *r, struct perf_member *member)
{
    struct nccl_net_properties_v12 p;
    enum nccl_result result = net_devices(&r->net, &r->device_count);
    const int device = r->options->device > 0 ? r->options->device : 0;

    if (result == NCCL_SUCCESS && device >= r->device_count) {
        rank_say(r, "devices", "there is no such device");
        return -ENODEV;
    }
    result = result == NCCL_SUCCESS ? net_properties(&r->net, device, &p) : result;
    if (result != NCCL_SUCCESS) {
        rank_say(r, "devices", net_result_name(result));
        return -EIO;
    }
    member->pid = getpid();
    member->device = device;
    const char *host = getenv("FOLIOT_PERF_HOST"); /* the hosts of a lab share a name */
    if (host != NULL) {
        snprintf(member->host, sizeof(member->host), "%s", host);
    } else {
        gethostname(member->host, sizeof(member->host) - 1);
    }
    member->host[strcspn(member->host, ".")] = '\0';
    char nic[sizeof(member->nic)];
    snprintf(nic, sizeof(nic), "NET/%s %s", r->net.name, p.name);
    plain_text(nic, member->nic, sizeof(member->nic));
    return 0;
}

static FILE *open_trace(struct rank *r, const char *kind)
{
    const struct perf_options *o = r->options;
    char path[4200];

    snprintf(path, sizeof(path), "%s/job%d-rank%d.%s", o->trace, o->job, o->rank, kind);
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        rank_say(r, path, strerror(errno));
    }
    return file;
}

static int open_traces(struct rank *r)
{
    if (r->options->trace == NULL) {
        return 0;
    }
    r->engine.trace = open_trace(r, "trace");
    r->engine.sends = open_trace(r, "sends");
    return r->engine.trace == NULL || r->engine.sends == NULL ? -EIO : 0;
}

int rank_open(struct rank *r, struct perf_member *member)
{
    const struct perf_options *o = r->options;
    const struct plan_wish wish = {o->operation, o->rank, o->ranks,  o->channels,
                                   o->root,      0,       o->message};
    char why[4200];

    if (net_client_open(&r->net, o->plugin, o->net_version, why, sizeof(why)) < 0) {
        rank_say(r, o->plugin, why);
        return -ENOENT;
    }
    enum nccl_result result =
        net_init(&r->net, 0x666f6c696f74ull + (uint64_t)o->job, log_line, &r->context);
    if (result != NCCL_SUCCESS) {
        rank_say(r, "init", net_result_name(result));
        return -EIO;
    }
    r->engine = (struct engine){.net = &r->net, .plan = &r->plan, .options = o};
    r->engine.element = perf_type_size(o->type);
    if (open_traces(r) < 0) {
        return -EIO;
    }
    if (find_device(r, member) < 0 || plan_init(&r->plan, &wish) < 0) {
        return -EIO;
    }
    r->engine.lines = calloc((size_t)r->plan.line_count + 1, sizeof(*r->engine.lines));
    r->samples = malloc(sizeof(double) * SAMPLE_MAX);
    r->buffer_size = o->bytes_max + 4096;
    for (int i = 0; i < 2; i++) {
        r->buffers[i] =
            mmap(NULL, r->buffer_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return r->engine.lines == NULL || r->samples == NULL || r->buffers[0] == MAP_FAILED ||
                   r->buffers[1] == MAP_FAILED
               ? -ENOMEM
               : connect_all(r);
}

void rank_close(struct rank *r)
{
    if (r->engine.lines != NULL) {
        disconnect_all(r);
    }
    if (r->net.library != NULL && r->net.users > 0) {
        (void)net_finalize(&r->net, r->context);
    }
    if (r->engine.trace != NULL) {
        fclose(r->engine.trace);
    }
    if (r->engine.sends != NULL) {
        fclose(r->engine.sends);
    }
    plan_done(&r->plan);
    meet_close(&r->meet);
    net_client_close(&r->net);
    free(r->engine.lines);
    free(r->samples);
}

/* For the plugin's telemetry: the environment that a launcher would set. */
static void name_job(const struct perf_options *o)
{
    const char *meeting = strrchr(o->meet, '/'), *job = getenv("FOLIOT_JOB");
    char text[200];

    snprintf(text, sizeof(text), "%d", o->rank);
    setenv("RANK", text, 1);
    snprintf(text, sizeof(text), "%d", o->ranks);
    setenv("WORLD_SIZE", text, 1);
    if (job != NULL && o->jobs > 1) {
        snprintf(text, sizeof(text), "%s.%d", job, o->job);
        setenv("FOLIOT_JOB", text, 1);
    } else if (job == NULL && getenv("SLURM_JOB_ID") == NULL) {
        meeting = meeting != NULL ? meeting + 1 : o->meet;
        snprintf(text, sizeof(text), "%s%s", strncmp(meeting, "foliot-", 7) == 0 ? "" : "perf-",
                 strncmp(meeting, "foliot-", 7) == 0 ? meeting + 7 : meeting);
        setenv("FOLIOT_JOB", text, 1);
    }
}

int perf_rank_main(const struct perf_options *o, FILE *out, int argc, char **argv)
{
    struct rank r = {.options = o};
    struct perf_member member = {0}, *members = calloc((size_t)o->ranks, sizeof(member));
    int status = EXIT_FAILURE;
    int rc = meet_open(&r.meet, o->meet, o->rank, o->ranks, o->timeout_s, NULL);

    name_job(o);
    r.report = (struct perf_report){.options = o, .out = out, .argc = argc, .argv = argv};
    if (rc < 0) {
        rank_say(&r, o->meet,
                 rc == -EMFILE ? "a descriptor is needed for each rank: raise the hard limit "
                                 "(ulimit -Hn)"
                               : strerror(-rc));
    }
    rc = rc < 0 || members == NULL ? -EIO : rank_open(&r, &member);
    rc = rc < 0 ? rc : meet_exchange(&r.meet, &member, sizeof(member), members);
    if (rc == 0 && o->rank == 0) {
        report_perf_begin(&r.report, members);
    }
    for (size_t bytes = o->bytes_min; rc == 0 && bytes <= o->bytes_max;) {
        struct perf_row row;
        rc = rank_run_size(&r, bytes, &row);
        rc = rc < 0 || o->rank != 0 ? rc : report_perf_row(&r.report, &row);
        bytes = o->step_factor > 1 ? bytes * o->step_factor : bytes + o->step_bytes;
    }
    if (rc == 0) {
        /* nobody closes before the others have received their last messages */
        rc = meet_barrier(&r.meet);
        status = o->rank == 0 ? report_perf_end(&r.report, members) : rc < 0;
    }
    rank_close(&r);
    free(members);
    return status;
}

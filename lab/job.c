/* job.c: see job.h. */
#include "lab/job.h"

#include "base/time.h"
#include "lab/agents.h"
#include "lab/machine.h"
#include "lab/spot.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE   "64K"
#define LEAVES_NS (8 * NS_PER_S) /* time for the job's start and end, within the scenario's time */
#define ROUND_MS  (LAB_JOB_PAUSE_MS + 20)

/* ---- hosts ---- */

static void add(int *count, int host[LAB_JOB_RANK_MAX], int wanted)
{
    for (int i = 0; i < *count; i++) {
        if (host[i] == wanted) {
            return;
        }
    }
    if (*count < LAB_JOB_RANK_MAX) {
        host[(*count)++] = wanted;
    }
}

static void add_target(const struct scenario_target *t, int *count, int host[LAB_JOB_RANK_MAX])
{
    if (t->kind == TARGET_NIC || t->kind == TARGET_EDGE) {
        add(count, host, t->from.host);
    }
    if (t->kind == TARGET_EDGE) {
        add(count, host, t->to.host);
    }
    if (t->kind == TARGET_HOSTS && t->share == 0) {
        add(count, host, t->first);
    }
}

static int host_order(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

int lab_job_hosts(const struct lab *lab, int ret_host[LAB_JOB_RANK_MAX])
{
    const struct scenario *s = &lab->scenario;
    int count = 0, leaf_seen = -1;
    for (int i = 0; i < s->fault_count; i++) {
        add_target(&s->fault[i].target, &count, ret_host);
    }
    for (int h = 0; h < s->fabric.hosts; h++) {
        if (lab_leaf_of(lab, h, 0) != leaf_seen) {
            leaf_seen = lab_leaf_of(lab, h, 0);
            add(&count, ret_host, h);
        }
    }
    for (int h = 0; h < s->fabric.hosts && count < 2; h++) {
        add(&count, ret_host, h);
    }
    qsort(ret_host, (size_t)count, sizeof(*ret_host), host_order);
    return count;
}

int lab_job_rounds(const struct scenario *s)
{
    const int64_t left_ns = s->duration_ns - LEAVES_NS;
    const int64_t rounds = left_ns / (ROUND_MS * NS_PER_MS);
    return rounds < 10 ? 10 : rounds > 1000 ? 1000 : (int)rounds;
}

/* ---- start and end ---- */

_Noreturn static void become(const struct lab_job *job, const struct lab *lab, int log)
{
    char program[PATH_MAX], hosts[64] = "", rounds[16], pause[16];
    char json[LAB_TEXT_SIZE + 64];
    size_t used = 0;
    lab_program(lab, "foliot", program);
    for (int i = 0; i < job->rank_count; i++) {
        used += (size_t)snprintf(hosts + used, sizeof(hosts) - used, "%s%d", i > 0 ? "," : "",
                                 job->rank_host[i]);
    }
    snprintf(rounds, sizeof(rounds), "%d", lab_job_rounds(&lab->scenario));
    snprintf(pause, sizeof(pause), "%d", LAB_JOB_PAUSE_MS);
    snprintf(json, sizeof(json), "%s/json", job->folder);
    const char *const argv[] = {
        program,  "perf",        "sendrecv",  "--lab",  lab->name, "--hosts",
        hosts,    "--transport", "roce",      "--rdma", "direct",  "--plugin",
        "foliot", "--message",   MESSAGE,     "-b",     MESSAGE,   "-e",
        MESSAGE,  "-n",          "1",         "-w",     "0",       "-c",
        rounds,   "--pause",     pause,       "--wait", "4000",    "-T",
        "120",    "--trace",     job->folder, "-J",     json,      NULL};
    setenv("NCCL_DEBUG", "TRACE", 1);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    setpgid(0, 0);
    execvp(program, (char *const *)argv);
    fprintf(stderr, "foliot lab: cannot run %s: %s\n", program, strerror(errno));
    _exit(127);
}

int lab_job_start(struct lab_job *job, const struct lab *lab)
{
    char file[LAB_TEXT_SIZE + 64];
    *job = (struct lab_job){0};
    job->rank_count = lab_job_hosts(lab, job->rank_host);
    snprintf(job->folder, sizeof(job->folder), "%s/job", lab->folder);
    int r = machine_make_folder(job->folder);
    if (r < 0) {
        return r;
    }
    snprintf(file, sizeof(file), "%s/log", job->folder);
    const int log = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (log < 0) {
        return -errno;
    }
    fflush(NULL);
    job->pid = fork();
    if (job->pid == 0) {
        become(job, lab, log);
    }
    r = job->pid < 0 ? -errno : 0;
    close(log);
    return r;
}

static int wait_for(const struct lab_job *job, int64_t patience_ns)
{
    const int64_t end_ns = machine_clock_ns(CLOCK_MONOTONIC) + patience_ns;
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(job->pid, &status, WNOHANG)) == 0 &&
           machine_clock_ns(CLOCK_MONOTONIC) < end_ns) {
        nanosleep(&(struct timespec){.tv_nsec = 50 * NS_PER_MS}, NULL);
    }
    if (pid == 0) {
        kill(-job->pid, SIGKILL);
        waitpid(job->pid, &status, 0);
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- results ---- */

static double read_wrong(const char *file)
{
    json_t *all = json_load_file(file, 0, NULL), *row;
    double wrong = -1;
    size_t i;
    json_array_foreach(json_object_get(all, "results"), i, row)
    {
        const json_t *value = json_object_get(json_object_get(row, "out_of_place"), "nwrong");
        const double one = json_number_value(value);
        wrong = !json_is_number(value) || one < 0 ? -1 : (wrong < 0 ? 0 : wrong) + one;
        if (wrong < 0) {
            break;
        }
    }
    json_decref(all);
    return wrong;
}

static void count_lines(const char *file, struct lab_job_result *result)
{
    FILE *f = fopen(file, "re");
    char *line = NULL;
    size_t capacity = 0;
    while (f != NULL && getline(&line, &capacity, f) > 0) {
        result->pairs += strstr(line, "over a queue pair") != NULL;
        result->given_up += strstr(line, ": down (") != NULL;
    }
    free(line);
    if (f != NULL) {
        fclose(f);
    }
}

/* The binary record of `foliot perf --trace`: 16 bytes. The first 8 are the time of a completed receive. */
static void read_trace(const char *file, struct lab_job_result *result)
{
    FILE *f = fopen(file, "re");
    int64_t record[2], last_ns = 0;
    while (f != NULL && fread(record, sizeof(record), 1, f) == 1) {
        const double gap_ms = last_ns > 0 ? (double)(record[0] - last_ns) * 1e-6 : 0;
        result->gap_ms = gap_ms > result->gap_ms ? gap_ms : result->gap_ms;
        result->receives++;
        last_ns = record[0];
    }
    if (f != NULL) {
        fclose(f);
    }
}

struct lab_job_result lab_job_end(struct lab_job *job, int64_t patience_ns)
{
    struct lab_job_result result = {.status = -1, .wrong = -1};
    char file[LAB_TEXT_SIZE + 96];
    if (job->pid <= 0) {
        return result;
    }
    result.status = wait_for(job, patience_ns);
    job->pid = 0;
    snprintf(file, sizeof(file), "%s/json", job->folder);
    result.wrong = read_wrong(file);
    snprintf(file, sizeof(file), "%s/log", job->folder);
    count_lines(file, &result);
    for (int i = 0; i < job->rank_count; i++) {
        snprintf(file, sizeof(file), "%s/job0-rank%d.trace", job->folder, i);
        read_trace(file, &result);
    }
    return result;
}

#define LOG_SHOWN 4000

void lab_job_show_log(const struct lab_job *job, FILE *to)
{
    char file[LAB_TEXT_SIZE + 64], text[LOG_SHOWN];
    snprintf(file, sizeof(file), "%s/log", job->folder);
    FILE *f = fopen(file, "re");
    if (f == NULL) {
        return;
    }
    if (fseek(f, -LOG_SHOWN, SEEK_END) < 0) { /* the log is shorter */
        rewind(f);
    }
    fwrite(text, 1, fread(text, 1, sizeof(text), f), to);
    fclose(f);
}

bool lab_job_is_well(const struct lab_job_result *result)
{
    return result->status == 0 && result->wrong == 0 && result->pairs > 0;
}

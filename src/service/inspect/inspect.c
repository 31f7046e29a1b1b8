/* inspect.c: see inspect.h. A child writes its facts as lines: id, state, subject, value, source, separated by tabs. No field
 * holds a tab, because a sheet escapes characters that aren't printable. */
#include "service/inspect/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bug.h"
#include "service/inspect/capture.h"
#include "service/inspect/collect.h"

#define RUN_FOLDER "/run/foliot-inspect"

const struct inspect_config inspect_usual = {.run_folder = RUN_FOLDER,
                                             .checks = "/etc/foliot/checks.d",
                                             .deadline_ms = 2000,
                                             .mount_deadline_ms = 5000,
                                             .site_deadline_ms = 60000};

enum { FACTS_OF_ONE = 32, LAST_WORDS_MS = 200, EXTENDED_MAX = 14 };

/* A collector, and the facts that get a state of their own when the collector is late. */
struct task {
    const char *name;
    void (*read)(struct collector *c);
    bool risky; /* reads more than the kernel's own files: inspect_here() skips it */
    uint16_t facts[FACTS_OF_ONE];
};
static const struct task tasks[] = {
    {"host",
     collect_host,
     false,
     {FACT_OS_KERNEL, FACT_OS_UPTIME, FACT_OS_PRODUCT, FACT_OS_SERVICE, FACT_OS_MODULE,
      FACT_JOB_NCCL}},
    {"log", collect_log, false, {FACT_OS_LOG, FACT_OS_LOG_XID, FACT_OS_LOG_LOST}},
    {"processes",
     collect_processes,
     false,
     {FACT_OS_ZOMBIES, FACT_OS_BLOCKED, FACT_TIME_STEERS, FACT_JOB_LAUNCHER, FACT_GPU_USERS,
      FACT_JOB_GID}},
    {"sensors", collect_sensors, false, {FACT_SENSOR}},
    {"bmc", collect_bmc, false, {FACT_SENSOR}},
    {"processors", collect_cpu, false, {FACT_CPU_GOVERNOR, FACT_CPU_CSTATE_US, FACT_CPU_PACKAGES}},
    {"memory",
     collect_memory,
     false,
     {FACT_MEM_TOTAL, FACT_MEM_AVAILABLE, FACT_MEM_SWAPS, FACT_MEM_SHM, FACT_MEM_NODE,
      FACT_MEM_CONTROLLER}},
    {"pci", collect_pci, false, {FACT_PCI, FACT_PCI_BRIDGE, FACT_PCI_INVENTORY, FACT_PCI_TREE}},
    {"gpu", collect_gpu, false, {FACT_GPU, FACT_GPU_UE, FACT_GPU_DRIVER, FACT_GPU_DIRECT}},
    {"gpu_library", collect_gpu_library, false, {FACT_GPU_LIBRARY, FACT_GPU_RUNTIME, FACT_GPU_UE}},
    {"settings",
     collect_settings,
     false,
     {FACT_NET_FEC, FACT_NET_FEC_CORRECTED, FACT_NET_FEC_LOST, FACT_NET_PAUSE, FACT_NET_RINGS,
      FACT_NET_PFC, FACT_NET_TRUST, FACT_NET_ETS}},
    {"modules",
     collect_modules,
     false,
     {FACT_NET_MODULE, FACT_NET_MODULE_ALARM, FACT_NET_MODULE_RX}},
    {"net", collect_net, false, {FACT_NET, FACT_BOND, FACT_NET_ROUTE, FACT_NET_NAMESERVER}},
    {"neighbours", collect_neighbours, false, {FACT_NET_NEIGHBOUR, FACT_NET_ADDRESS}},
    {"rdma", collect_rdma, false, {FACT_RDMA, FACT_PORT}},
    {"routes", collect_routes, false, {FACT_IB_ROUTES}},
    {"job", collect_job, false, {FACT_JOB_SETTING, FACT_JOB_SOCKETS, FACT_JOB_PLUGIN}},
    {"agent",
     collect_agent,
     false,
     {FACT_AGENT, FACT_AGENT_VERSION, FACT_CLOCK_STATUS, FACT_CLOCK_STAMPS, FACT_CLOCK_BOUND,
      FACT_CLOCK_UTC, FACT_CLOCK_RATE, FACT_EDGE, FACT_EDGE_FULL, FACT_NET_SWITCH, FACT_LANE,
      FACT_LANE_ADDRESS}},
    {"tests",
     collect_tests,
     false,
     {FACT_TEST, FACT_TEST_RATE, FACT_TEST_DCGM, FACT_TEST_WRONG, FACT_TEST_NETWORK,
      FACT_TEST_INIT}},
    {"storage", collect_storage, true, {FACT_DISK}},
    {"mounts", collect_mounts, true, {FACT_MOUNT}},
    {"site", collect_site, true, {FACT_SITE}},
};

static struct scrub scrub; /* for a capture */

struct running {
    const struct task *task;
    pid_t pid; /* 0: none */
    int fd;
    int64_t end_ms;
    int extended; /* times that its deadline was extended */
    size_t used;
    char *text;
};

static int64_t utc_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Gives all facts of the task the same state and reason. */
static void tell_all(struct sheet *s, const struct task *task, enum fact_state state,
                     const char *words)
{
    for (size_t i = 0; i < FACTS_OF_ONE && (i == 0 || task->facts[i] != 0); i++) {
        sheet_add(s, &(struct fact){.id = task->facts[i],
                                    .state = (uint8_t)state,
                                    .subject = "",
                                    .value = words,
                                    .source = task->name});
    }
}

/* ---- processes that hang ---- */

struct process {
    char state;                             /* 0: no such process */
    unsigned long long user, system, start; /* ticks */
};

/* The 3rd, 14th, 15th and 22nd field of /proc/PID/stat. */
static struct process process_of(pid_t pid)
{
    char path[64], line[1024], *end;
    struct process p = {0};

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return p;
    }
    end = fgets(line, sizeof(line), file) != NULL ? strrchr(line, ')') : NULL;
    fclose(file);
    if (end == NULL || sscanf(end,
                              ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d "
                              "%*d %*d %*d %*d %llu",
                              &p.state, &p.user, &p.system, &p.start) != 4) {
        return (struct process){0};
    }
    return p;
}

/* The start time of a process; 0: no such process. */
static unsigned long long began(pid_t pid)
{
    return process_of(pid).start;
}

/* True if an earlier child of this task still hangs. */
static bool hangs(const struct inspect_config *config, const struct task *task, char words[64])
{
    char path[SYSFS_PATH_SIZE];
    int pid = 0;
    unsigned long long start = 0;
    FILE *file = config->run_folder == NULL
                     ? NULL
                     : fopen(sysfs_path(path, "%s/%s", config->run_folder, task->name), "re");

    if (file == NULL) {
        return false;
    }
    const bool read = fscanf(file, "%d %llu", &pid, &start) == 2;
    fclose(file);
    if (read && pid > 0 && began(pid) == start) {
        snprintf(words, 64, "process %d hangs", pid);
        return true;
    }
    unlink(path);
    return false;
}

static void note_hanging(const struct inspect_config *config, const struct running *r)
{
    char path[SYSFS_PATH_SIZE];

    if (config->run_folder == NULL || (mkdir(config->run_folder, 0700) < 0 && errno != EEXIST)) {
        return;
    }
    FILE *file = fopen(sysfs_path(path, "%s/%s", config->run_folder, r->task->name), "we");
    if (file != NULL) {
        fprintf(file, "%d %llu\n", (int)r->pid, began(r->pid));
        fclose(file);
    }
}

/* ---- children ---- */

static void write_facts(const struct sheet *s, FILE *out)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct fact *f = &s->facts[i];
        fprintf(out, "%u\t%u\t%s\t%s\t%s\n", f->id, f->state, f->subject, f->value, f->source);
    }
    fprintf(out, "end\t%u\n", s->left_out);
}

static void run_task(const struct inspect_config *config, const struct sysfs *tree,
                     const struct task *task, struct sheet *sheet)
{
    struct collector *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        return;
    }
    *c = (struct collector){.tree = tree, .sheet = sheet, .config = config};
    if (config->capture != NULL) {
        capture_begin(&scrub, config->capture);
    }
    task->read(c);
    free(c);
}

static _Noreturn void child(const struct inspect_config *config, const struct sysfs *tree,
                            const struct task *task, int fd)
{
    struct sheet *sheet = sheet_new();
    FILE *out = fdopen(fd, "w");

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (config->slow != NULL && strcmp(config->slow, task->name) == 0) {
        for (;;) {
            pause();
        }
    }
    if (sheet == NULL || out == NULL) {
        _exit(1);
    }
    run_task(config, tree, task, sheet);
    write_facts(sheet, out);
    fclose(out);
    _exit(0);
}

static int start(const struct inspect_config *config, const struct sysfs *tree, struct running *r)
{
    int pipes[2];
    const bool site = r->task->read == collect_site,
               slow = r->task->read == collect_mounts || r->task->read == collect_bmc;

    r->text = malloc(SHEET_TEXT_MAX);
    if (r->text == NULL || pipe2(pipes, O_CLOEXEC) < 0) {
        return r->text == NULL ? -ENOMEM : -errno;
    }
    r->pid = fork();
    if (r->pid == 0) {
        close(pipes[0]);
        child(config, tree, r->task, pipes[1]);
    }
    close(pipes[1]);
    r->fd = pipes[0];
    r->end_ms = now_ms() + config->deadline_ms +
                (site   ? config->site_deadline_ms
                 : slow ? config->mount_deadline_ms
                        : 0);
    return r->pid < 0 ? -errno : 0;
}

/* Takes a line that the child wrote. */
static bool take_fact(struct sheet *s, char *line)
{
    char *fields[5];
    int64_t id, state;

    for (int i = 0; i < 5; i++) {
        fields[i] = strsep(&line, "\t");
        if (fields[i] == NULL) {
            return false;
        }
    }
    if (!fact_number(fields[0], &id) || !fact_number(fields[1], &state) || id < 0 ||
        id >= FACT_COUNT || state < 0 || state >= FACT_STATE_COUNT) {
        return false;
    }
    sheet_add(s, &(struct fact){.id = (uint16_t)id,
                                .state = (uint8_t)state,
                                .subject = fields[2],
                                .value = fields[3],
                                .source = fields[4]});
    return true;
}

/* Takes all lines that the child wrote. Without its last line the child broke off. */
static void take_facts(struct sheet *s, struct running *r)
{
    char *at = r->text, *line;
    unsigned left_out = 0;
    bool whole = false;

    r->text[r->used] = '\0';
    while ((line = strsep(&at, "\n")) != NULL && !whole) {
        whole = sscanf(line, "end\t%u", &left_out) == 1;
        if (!whole && line[0] != '\0' && !take_fact(s, line)) {
            break;
        }
    }
    s->left_out += left_out;
    if (!whole) {
        tell_all(s, r->task, FACT_UNREADABLE, "its reader broke off");
    }
}

static bool still_there(pid_t pid, int wait_ms)
{
    const int64_t end = now_ms() + wait_ms;
    const struct timespec pause = {.tv_nsec = 5000000};

    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (now_ms() > end) {
            return true;
        }
        nanosleep(&pause, NULL);
    }
    return false;
}

/* True if the child was ready to run, but got less processor time than its deadline. A job uses all processors then, and this
 * program has the idle class. */
static bool starved(const struct inspect_config *config, const struct running *r)
{
    const struct process p = process_of(r->pid);
    const double ran_ms = 1000.0 * (double)(p.user + p.system) / (double)sysconf(_SC_CLK_TCK);

    return p.state == 'R' && ran_ms < config->deadline_ms && r->extended < EXTENDED_MAX;
}

static void end_late(const struct inspect_config *config, struct sheet *s, struct running *r)
{
    char words[64];

    kill(r->pid, SIGKILL);
    if (still_there(r->pid, LAST_WORDS_MS)) {
        note_hanging(config, r);
        snprintf(words, sizeof(words), "process %d hangs in the kernel", (int)r->pid);
        tell_all(s, r->task, FACT_STUCK, words);
    } else {
        tell_all(s, r->task, FACT_TIMEOUT, "no answer in time");
    }
    close(r->fd);
    r->pid = 0;
}

static void read_some(struct sheet *s, struct running *r)
{
    const ssize_t n = read(r->fd, r->text + r->used, SHEET_TEXT_MAX - 1 - r->used);

    if (n > 0) {
        r->used += (size_t)n;
    }
    if (n == 0 || (n < 0 && errno != EINTR)) {
        take_facts(s, r);
        close(r->fd);
        (void)waitpid(r->pid, NULL, 0);
        r->pid = 0;
    }
}

static void wait_for_all(const struct inspect_config *config, struct sheet *s, struct running *all)
{
    for (;;) {
        struct pollfd fds[ARRAY_COUNT(tasks)];
        int64_t next = INT64_MAX;
        for (size_t i = 0; i < ARRAY_COUNT(tasks); i++) {
            fds[i] = (struct pollfd){.fd = all[i].pid > 0 ? all[i].fd : -1, .events = POLLIN};
            next = all[i].pid > 0 && all[i].end_ms < next ? all[i].end_ms : next;
        }
        if (next == INT64_MAX) {
            return;
        }
        const int64_t left = next - now_ms();
        (void)poll(fds, ARRAY_COUNT(tasks), left > 0 ? (int)left : 0);
        for (size_t i = 0; i < ARRAY_COUNT(tasks); i++) {
            if (all[i].pid > 0 && (fds[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
                read_some(s, &all[i]);
            } else if (all[i].pid > 0 && now_ms() >= all[i].end_ms && starved(config, &all[i])) {
                all[i].end_ms += config->deadline_ms;
                all[i].extended++;
            } else if (all[i].pid > 0 && now_ms() >= all[i].end_ms) {
                end_late(config, s, &all[i]);
            }
        }
    }
}

/* ---- all collectors ---- */

static void name_host(const struct sysfs *tree, struct sheet *s)
{
    char name[256];

    s->host = sheet_keep(s, sysfs_text(tree, "/proc/sys/kernel/hostname", name, sizeof(name)) > 0
                                ? name
                                : "unknown");
    s->at_utc_ns = utc_ns();
}

int inspect_host(const struct inspect_config *config, struct sheet *ret_sheet)
{
    struct sysfs root, *tree = config->root != NULL ? &root : NULL;
    struct running all[ARRAY_COUNT(tasks)] = {0};
    char words[64];
    int r = config->root != NULL ? sysfs_open(&root, config->root) : 0;

    if (r < 0) {
        return r;
    }
    if (config->capture != NULL) {
        scrub_init(&scrub);
        capture_names(&scrub, config->root);
    }
    name_host(tree, ret_sheet);
    for (size_t i = 0; i < ARRAY_COUNT(tasks); i++) {
        all[i].task = &tasks[i];
        if (hangs(config, &tasks[i], words)) {
            tell_all(ret_sheet, &tasks[i], FACT_STUCK, words);
            continue;
        }
        r = start(config, tree, &all[i]);
        if (r < 0) {
            all[i].pid = 0;
            tell_all(ret_sheet, &tasks[i], FACT_UNREADABLE, strerror(-r));
        }
    }
    wait_for_all(config, ret_sheet, all);
    for (size_t i = 0; i < ARRAY_COUNT(tasks); i++) {
        free(all[i].text);
    }
    if (tree != NULL) {
        sysfs_close(tree);
    }
    sheet_finish(ret_sheet);
    return 0;
}

void inspect_here(const struct sysfs *tree, struct sheet *ret_sheet)
{
    ret_sheet->count = ret_sheet->left_out = 0;
    ret_sheet->text_used = 0;
    name_host(tree, ret_sheet);
    for (size_t i = 0; i < ARRAY_COUNT(tasks); i++) {
        if (!tasks[i].risky) {
            run_task(&inspect_usual, tree, &tasks[i], ret_sheet);
        }
    }
    sheet_finish(ret_sheet);
}

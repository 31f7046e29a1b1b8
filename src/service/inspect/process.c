/* process.c: running processes: programs that steer the clock, that start jobs, that have a GPU or an RDMA device open; and
 * processes that are dead or blocked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bug.h"
#include "service/inspect/job_gid.h"

enum { BLOCKED_MAX = 256, LOOK_AGAIN_MS = 200 };

struct process {
    char name[32];
    char state;
    unsigned long long ticks; /* processor time that it used */
};

struct look {
    int64_t zombies, users;
    int error, users_error;
    int blocked_count;
    struct {
        char pid[16];
        unsigned long long ticks;
    } blocked[BLOCKED_MAX];
    char steers[256];
    bool gpus;
    struct gid_users gids;
};

/* "4711 (name with ) in it) S 1 …"; the 14th and 15th field are its ticks. */
static int read_process(struct collector *c, const char *pid, struct process *p)
{
    char path[SYSFS_PATH_SIZE], line[2048], *open, *close;
    unsigned long long user, kernel;
    const int r = collect_line(c, sysfs_path(path, "/proc/%s/stat", pid), line, sizeof(line));

    if (r < 0) {
        return r;
    }
    open = strchr(line, '(');
    close = strrchr(line, ')');
    if (open == NULL || close == NULL || close < open ||
        sscanf(close, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &p->state, &user,
               &kernel) != 3) {
        return -EBADMSG;
    }
    p->ticks = user + kernel;
    snprintf(p->name, sizeof(p->name), "%.*s", (int)(close - open - 1), open + 1);
    return 0;
}

static bool one_of(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

/* "Max locked memory         unlimited            unlimited            bytes" */
static void put_memlock(struct collector *c, const char *name, const char *pid)
{
    char path[SYSFS_PATH_SIZE], soft[32];
    char *cursor = NULL;

    put(c, FACT_JOB_LAUNCHER, name, name, sysfs_path(path, "/proc/%s/stat", pid));
    const int r = collect_file(c, sysfs_path(path, "/proc/%s/limits", pid));
    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        if (sscanf(line, "Max locked memory %31s", soft) == 1) {
            put(c, FACT_JOB_MEMLOCK, name, soft, path);
            return;
        }
    }
    put_error(c, FACT_JOB_MEMLOCK, name, r < 0 ? r : -EBADMSG, path);
}

bool process_has_gpu(const char *target)
{
    return (strncmp(target, "/dev/nvidia", 11) == 0 && target[11] >= '0' && target[11] <= '9') ||
           strcmp(target, "/dev/kfd") == 0;
}

/* Programs that steer clocks, that start jobs, that watch GPUs. A daemon that watches GPUs doesn't count as a user. */
static const char *const steers[] = {"chronyd", "ntpd", "systemd-timesyn", "openntpd", NULL};
static const char *const launchers[] = {"slurmd", "kubelet", "pbs_mom", "sge_execd", NULL};
static const char *const watchers[] = {"nvidia-persiste", "nv-hostengine",  "nv-fabricmanage",
                                       "dcgm-exporter",   "foliot-inspect", NULL};

bool process_matters(const char *name)
{
    return one_of(name, steers) || one_of(name, launchers) || one_of(name, watchers);
}

/* Its open files: GPUs and RDMA devices. */
static void look_at_files(struct collector *c, const char *pid, const char *name, struct look *look)
{
    char path[SYSFS_PATH_SIZE], target[256];
    bool gpu = false;
    struct names *files = names_of(c, sysfs_path(path, "/proc/%s/fd", pid));

    if (files->count < 0 && state_of(files->count) != FACT_ABSENT) {
        look->users_error = files->count;
    }
    for (int i = 0; i < files->count && !one_of(name, watchers); i++) {
        sysfs_path(path, "/proc/%s/fd/%s", pid, files->name[i]);
        if (sysfs_real(c->tree, path, target, sizeof(target)) >= 0) {
            gpu = gpu || process_has_gpu(target);
            gid_users_file(&look->gids, target);
        }
    }
    free(files);
    look->users += gpu && look->gpus;
    gid_users_process(c, &look->gids, pid);
}

static void look_at(struct collector *c, const char *pid, struct look *look)
{
    struct process p;
    char path[SYSFS_PATH_SIZE];
    const int r = read_process(c, pid, &p);

    if (r < 0) { /* that is no error if the process has ended */
        look->error =
            sysfs_there(c->tree, sysfs_path(path, "/proc/%s", pid)) ? -EBADMSG : look->error;
        return;
    }
    look->zombies += p.state == 'Z';
    if (p.state == 'D' && look->blocked_count < BLOCKED_MAX) {
        snprintf(look->blocked[look->blocked_count].pid, sizeof(look->blocked[0].pid), "%s", pid);
        look->blocked[look->blocked_count++].ticks = p.ticks;
    }
    if (one_of(p.name, steers) && strstr(look->steers, p.name) == NULL) {
        const size_t used = strlen(look->steers);
        snprintf(look->steers + used, sizeof(look->steers) - used, "%s%s", used > 0 ? " " : "",
                 p.name);
    }
    if (one_of(p.name, launchers)) {
        put_memlock(c, p.name, pid);
    }
    if (look->gpus || look->gids.count > 0) {
        look_at_files(c, pid, p.name, look);
    }
}

/* Counts processes that have not run since the first look. */
static int64_t still_blocked(struct collector *c, const struct look *look)
{
    const struct timespec wait = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};
    int64_t count = 0;
    struct process p;

    if (look->blocked_count > 0) {
        nanosleep(&wait, NULL);
    }
    for (int i = 0; i < look->blocked_count; i++) {
        count += read_process(c, look->blocked[i].pid, &p) == 0 && p.state == 'D' &&
                 p.ticks == look->blocked[i].ticks;
    }
    return count;
}

void collect_processes(struct collector *c)
{
    static const char source[] = "/proc/*/stat";
    struct look look = {.gpus = sysfs_there(c->tree, "/proc/driver/nvidia") ||
                                sysfs_there(c->tree, "/dev/kfd")};
    char(*names)[SYSFS_NAME_SIZE] = calloc(1 << 16, SYSFS_NAME_SIZE);
    const int count = names == NULL ? -ENOMEM : sysfs_names(c->tree, "/proc", names, 1 << 16);
    const uint32_t before = c->sheet->count;
    int processes = 0;

    gid_users_begin(c, &look.gids);

    for (int i = 0; i < count; i++) {
        if (names[i][0] >= '0' && names[i][0] <= '9') {
            look_at(c, names[i], &look);
            processes++;
        }
    }
    free(names);
    if (processes == 0 || look.error < 0) { /* at least this process must be listed */
        const int r = count < 0 ? count : look.error < 0 ? look.error : -EIO;
        put_error(c, FACT_OS_ZOMBIES, "", r, source);
        put_error(c, FACT_OS_BLOCKED, "", r, source);
        put_error(c, FACT_TIME_STEERS, "", r, source);
        put_error(c, FACT_JOB_LAUNCHER, "", r, source);
        put_error(c, FACT_GPU_USERS, "", r, source);
        put_error(c, FACT_JOB_GID, "", r, source);
        return;
    }
    if (c->sheet->count == before) {
        put_error(c, FACT_JOB_LAUNCHER, "", -ENOENT, source);
    }
    put_number(c, FACT_OS_ZOMBIES, "", look.zombies, source);
    put_number(c, FACT_OS_BLOCKED, "", still_blocked(c, &look), source);
    put(c, FACT_TIME_STEERS, "", look.steers[0] != '\0' ? look.steers : "none", source);
    look.gids.error =
        look.users_error < 0 && look.gids.count > 0 ? look.users_error : look.gids.error;
    gid_users_put(c, &look.gids);
    if (look.users_error < 0 && look.gpus) {
        put_error(c, FACT_GPU_USERS, "", look.users_error, "/proc/*/fd");
    } else {
        put_number(c, FACT_GPU_USERS, "", look.users, "/proc/*/fd");
    }
}

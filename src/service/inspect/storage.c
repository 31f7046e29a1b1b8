/* storage.c: file systems of this host's devices, NVMe disks, mounts of other hosts, the site's own programs. A child process
 * asks file systems and starts programs, because either may hang. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bug.h"
#include "service/inspect/collect.h"

enum { MOUNTS_MAX = 256, SITE_MAX = 64, OUTPUT_MAX = 4096 };

struct mount {
    char place[256], kind[64];
};

static bool remote(const char *kind)
{
    static const char *const kinds[] = {"nfs",    "nfs4", "lustre", "gpfs", "ceph", "beegfs",
                                        "wekafs", "cifs", "smb3",   "afs",  "pvfs2"};

    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (strcmp(kind, kinds[i]) == 0) {
            return true;
        }
    }
    return strcmp(kind, "fuse") == 0 || strncmp(kind, "fuse.", 5) == 0;
}

/* Reads the mounts of other hosts, or those of devices. Blanks in paths are written \040, and stay as they are. */
static int read_mounts(struct collector *c, bool others, struct mount *ret)
{
    char device[256], *cursor = NULL;
    int count = collect_file(c, "/proc/mounts");

    if (count < 0) { /* a missing file is an error, not an empty table */
        return count == -ENOENT ? -EIO : count;
    }
    count = 0;
    for (char *line; (line = next_line(c, &cursor)) != NULL && count < MOUNTS_MAX;) {
        struct mount *m = &ret[count];
        if (sscanf(line, "%255s %255s %63s", device, m->place, m->kind) != 3) {
            return -EBADMSG;
        }
        /* autofs mounts on demand; what it mounted at the same place is the line after it */
        const bool on_demand =
            others && strcmp(m->kind, "autofs") == 0 && strncmp(m->place, "/proc/", 6) != 0;
        const bool local = strncmp(device, "/dev/", 5) == 0 && strncmp(device, "/dev/loop", 9) != 0;
        bool known = false;
        for (int i = 0; i < count; i++) {
            const bool same = strcmp(ret[i].place, m->place) == 0;
            if (same && remote(m->kind) && strcmp(ret[i].kind, "autofs") == 0) {
                ret[i] = *m;
            }
            known = known || same;
        }
        count += !known && (others ? on_demand || remote(m->kind) : local && !remote(m->kind));
    }
    return count;
}

static int ask(struct collector *c, const char *place, struct statvfs *ret)
{
    const int fd = sysfs_fd(c->tree, place, O_PATH);
    int r = fd < 0 ? fd : 0;

    if (fd >= 0) {
        r = fstatvfs(fd, ret) < 0 ? -errno : 0;
        close(fd);
    }
    return r;
}

static void nvme(struct collector *c, int *found)
{
    char path[SYSFS_PATH_SIZE];
    struct names *disks = names_of(c, "/sys/class/nvme");

    for (int i = 0; i < disks->count; i++) {
        put(c, FACT_DISK, disks->name[i], disks->name[i], "/sys/class/nvme");
        put_file(c, FACT_NVME_STATE, disks->name[i],
                 sysfs_path(path, "/sys/class/nvme/%s/state", disks->name[i]));
        (*found)++;
    }
    free(disks);
}

/* The used share of a file system, in percent. A tree of another machine has it in /answers/used. */
static int used_of(struct collector *c, const char *place, const char *told, int64_t *ret)
{
    struct statvfs status;
    char line[512];
    long long percent;
    const int n = snprintf(line, sizeof(line), "\n%s ", place);
    const char *at = n > 0 && n < (int)sizeof(line) ? strstr(told, line) : NULL;

    if (at != NULL && sscanf(at + n, "%lld", &percent) == 1) {
        *ret = percent;
        return 0;
    }
    const int r = ask(c, place, &status);
    if (r < 0 || status.f_blocks == 0) {
        return r < 0 ? r : -EIO;
    }
    *ret = 100 - (int64_t)((double)status.f_bavail * 100 / (double)status.f_blocks);
    return 0;
}

void collect_storage(struct collector *c)
{
    struct mount *mounts = calloc(MOUNTS_MAX, sizeof(*mounts));
    const int count = mounts == NULL ? -ENOMEM : read_mounts(c, false, mounts);
    static char told[1 << 16], kept[1 << 16];
    size_t size = 0;
    int found = 0;

    if (c->tree != NULL && collect_file(c, "/answers/used") > 0) {
        snprintf(told, sizeof(told), "\n%.65000s", c->text);
    }
    nvme(c, &found);
    for (int i = 0; i < count; i++) {
        const char *place = mounts[i].place;
        int64_t used;
        const int r = used_of(c, place, told, &used);
        put(c, FACT_DISK, place, mounts[i].kind, "/proc/mounts");
        if (r < 0) {
            put_error(c, FACT_DISK_USED, place, r, place);
        } else {
            put_number(c, FACT_DISK_USED, place, used, place);
            size += (size_t)snprintf(kept + size, sizeof(kept) - size, "%s %lld\n", place,
                                     (long long)used);
        }
        found++;
    }
    keep_answer(c, "/answers/used", 0, kept);
    if (found == 0 || count < 0) {
        put_error(c, FACT_DISK, "", count < 0 ? count : -ENOENT, "/proc/mounts");
    }
    free(mounts);
}

/* ---- children with deadlines ---- */

/* True if the child has not closed its end of the pipe in time. */
static bool is_late(int fd, int64_t end)
{
    struct pollfd p = {.fd = fd}; /* no events: only the hang-up counts */
    int r;

    do {
        const int64_t left = end - now_ms();
        r = poll(&p, 1, left > 0 ? (int)left : 0);
    } while (r <= 0 && now_ms() < end);
    return r <= 0;
}

/* Asks every mount at once, each in its own process, so that a mount that hangs does not delay the others. */
void collect_mounts(struct collector *c)
{
    struct mount *mounts = calloc(MOUNTS_MAX, sizeof(*mounts));
    const int count = mounts == NULL ? -ENOMEM : read_mounts(c, true, mounts);
    int pipes[MOUNTS_MAX][2];
    pid_t children[MOUNTS_MAX];
    const int64_t end = now_ms() + c->config->mount_deadline_ms;

    for (int i = 0; i < count; i++) {
        children[i] = pipe2(pipes[i], O_CLOEXEC) < 0 ? -1 : fork();
        if (children[i] == 0) {
            struct statvfs status;
            _exit(ask(c, mounts[i].place, &status) < 0 ? 1 : 0);
        }
        if (children[i] > 0) {
            close(pipes[i][1]);
        }
    }
    for (int i = 0; i < count; i++) {
        int status = 0;
        put(c, FACT_MOUNT, mounts[i].place, mounts[i].kind, "/proc/mounts");
        if (children[i] < 0) {
            put_error(c, FACT_MOUNT_ANSWERS, mounts[i].place, -EAGAIN, mounts[i].place);
            continue;
        }
        const bool late = is_late(pipes[i][0], end);
        close(pipes[i][0]);
        if (late) {
            kill(children[i], SIGKILL);
            put_error(c, FACT_MOUNT_ANSWERS, mounts[i].place, -ETIMEDOUT, mounts[i].place);
        } else if (waitpid(children[i], &status, 0) == children[i]) {
            put_number(c, FACT_MOUNT_ANSWERS, mounts[i].place, status == 0, mounts[i].place);
        }
    }
    if (count == MOUNTS_MAX) { /* there may be more: what is missing isn't known */
        put_error(c, FACT_MOUNT, "", -EFBIG, "/proc/mounts");
    }
    if (count <= 0) {
        put_error(c, FACT_MOUNT, "", count < 0 ? count : -ENOENT, "/proc/mounts");
    }
    free(mounts);
}

/* ---- the site's own programs ---- */

struct site {
    pid_t child; /* 0: none; the reason is in the sheet */
    int fd;      /* its output; -1: closed */
    size_t used;
    char output[OUTPUT_MAX], path[SYSFS_PATH_SIZE];
};

/* A program is started only if root owns it and nobody else can write it. The same must hold for its folder: a user who can
 * replace a program decides what root runs. */
static bool roots_own(const struct stat *status)
{
    return (status->st_uid == 0 || status->st_uid == geteuid()) &&
           (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static int may_run(const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0) {
        return -errno;
    }
    return !S_ISREG(status.st_mode) || (status.st_mode & S_IXUSR) == 0 ? -ENOEXEC
           : !roots_own(&status)                                       ? -EPERM
                                                                       : 0;
}

static int may_list(const char *folder)
{
    struct stat status;

    return stat(folder, &status) < 0 ? -errno : !roots_own(&status) ? -EPERM : 0;
}

static _Noreturn void be_program(char *path, int output)
{
    static char search[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
    char *const argv[] = {path, NULL}, *const environment[] = {search, NULL};

    setpgid(0, 0);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execve(path, argv, environment);
    _exit(127);
}

static void start_site(struct collector *c, const char *name, struct site *s)
{
    const char *folder = c->config->checks;
    int pipes[2];
    int r = sysfs_path(s->path, "%s/%s", folder, name) == NULL ? -ENAMETOOLONG : may_run(s->path);

    put(c, FACT_SITE, name, name, folder);
    r = r == 0 && pipe2(pipes, O_CLOEXEC) < 0 ? -errno : r;
    s->child = r == 0 ? fork() : 0;
    if (r == 0 && s->child == 0) {
        be_program(s->path, pipes[1]);
    }
    if (r == 0) {
        close(pipes[1]);
        s->fd = pipes[0];
    }
    if (r < 0 || s->child < 0) {
        put_error(c, FACT_SITE_STATUS, name, r < 0 ? r : -EAGAIN, s->path);
        s->child = 0;
    }
}

/* Reads the output. What exceeds the room is dropped. */
static void read_site(struct site *s)
{
    char more[512];
    const ssize_t n = read(s->fd, more, sizeof(more));
    const size_t room = sizeof(s->output) - 1 - s->used,
                 fits = n < 0 ? 0 : ((size_t)n < room ? (size_t)n : room);

    memcpy(s->output + s->used, more, fits);
    s->used += fits;
    if (n == 0 || (n < 0 && errno != EINTR)) {
        close(s->fd);
        s->fd = -1;
    }
}

/* Reads until all programs have closed their output. A loud or a silent program delays no other. */
static void read_all(struct site *sites, int count, int64_t end)
{
    struct pollfd fds[SITE_MAX];

    for (;;) {
        const int64_t left = end - now_ms();
        int open = 0;
        for (int i = 0; i < count; i++) {
            fds[i] = (struct pollfd){.fd = sites[i].fd, .events = POLLIN};
            open += sites[i].fd >= 0;
        }
        if (open == 0 || left <= 0) {
            return;
        }
        (void)poll(fds, (nfds_t)count, (int)left);
        for (int i = 0; i < count; i++) {
            if (sites[i].fd >= 0 && (fds[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
                read_site(&sites[i]);
            }
        }
    }
}

/* False: the program still runs. A program may close its output and go on. */
static bool ends_until(pid_t child, int64_t end, int *ret_status)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    pid_t gone;

    while ((gone = waitpid(child, ret_status, WNOHANG)) == 0 && now_ms() < end) {
        nanosleep(&pause, NULL);
    }
    return gone == child;
}

static void tell_site(struct collector *c, const char *name, struct site *s, int64_t end)
{
    int status = 0;
    const bool late = s->fd >= 0 || !ends_until(s->child, end, &status);

    if (s->fd >= 0) {
        close(s->fd);
    }
    if (late) {
        kill(-s->child, SIGKILL);
        kill(s->child, SIGKILL);
    }
    s->output[strcspn(s->output, "\n")] = '\0';
    s->output[FACT_VALUE_MAX / 4] = '\0';
    if (late || !WIFEXITED(status)) {
        put_error(c, FACT_SITE_STATUS, name, late ? -ETIMEDOUT : -EIO, s->path);
    } else {
        put_number(c, FACT_SITE_STATUS, name, WEXITSTATUS(status), s->path);
    }
    put(c, FACT_SITE_OUTPUT, name, s->output, s->path);
}

/* Starts all programs at once. */
void collect_site(struct collector *c)
{
    static char names[SITE_MAX][SYSFS_NAME_SIZE];
    static struct site sites[SITE_MAX];
    const char *folder = c->config->checks;
    int count = folder == NULL ? -ENOENT : may_list(folder);
    const int64_t end = now_ms() + c->config->site_deadline_ms;

    count = count < 0 ? count : sysfs_names(NULL, folder, names, SITE_MAX);
    for (int i = 0; i < count; i++) {
        sites[i] = (struct site){.fd = -1};
        start_site(c, names[i], &sites[i]);
    }
    read_all(sites, count, end);
    for (int i = 0; i < count; i++) {
        if (sites[i].child > 0) {
            tell_site(c, names[i], &sites[i], end);
        }
    }
    if (count <= 0) {
        put_error(c, FACT_SITE, "", count < 0 ? count : -ENOENT,
                  folder != NULL ? folder : "checks.d");
    }
}

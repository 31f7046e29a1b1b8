/* storage.c: file systems of this host's devices, NVMe disks, mounts of others, the site's own programs. What asks a file
 * system or starts a program does so in a child of its own. */
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

/* Mounts that are wanted: of others, or of devices. Places with blanks are written \040; they are looked at as they are. */
static int read_mounts(struct collector *c, bool others, struct mount *ret)
{
    char device[256], *cursor = NULL;
    int count = collect_file(c, "/proc/mounts");

    if (count < 0) { /* no file is no empty table */
        return count == -ENOENT ? -EIO : count;
    }
    count = 0;
    for (char *line; (line = next_line(c, &cursor)) != NULL && count < MOUNTS_MAX;) {
        struct mount *m = &ret[count];
        if (sscanf(line, "%255s %255s %63s", device, m->place, m->kind) != 3) {
            return -EBADMSG;
        }
        const bool local = strncmp(device, "/dev/", 5) == 0 && strncmp(device, "/dev/loop", 9) != 0;
        bool known = false;
        for (int i = 0; i < count; i++) {
            known = known || strcmp(ret[i].place, m->place) == 0;
        }
        count += !known && (others ? remote(m->kind) : local && !remote(m->kind));
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

/* Of the place, in percent. A tree of another machine has what was used there in /answers/used. */
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

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until the child has closed its end, or has gone. */
static size_t take(int fd, char *text, size_t size, int deadline_ms, bool *ret_late)
{
    const int64_t end = now_ms() + deadline_ms;
    size_t used = 0;

    *ret_late = false;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int64_t left = end - now_ms();
        if (left <= 0 || poll(&p, 1, (int)left) <= 0) {
            *ret_late = now_ms() >= end;
            if (*ret_late) {
                return used;
            }
            continue;
        }
        char more[512];
        const ssize_t n = read(fd, more, sizeof(more));
        if (n <= 0) {
            return used;
        }
        const size_t fits = (size_t)n < size - 1 - used ? (size_t)n : size - 1 - used;
        memcpy(text + used, more, fits);
        used += fits;
        text[used] = '\0';
    }
}

/* Asks every mount at once, each in a process of its own: one that hangs keeps no other. */
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
        char nothing[8];
        const int64_t left = end - now_ms();
        bool late = true;
        int status = 0;
        put(c, FACT_MOUNT, mounts[i].place, mounts[i].kind, "/proc/mounts");
        if (children[i] < 0) {
            put_error(c, FACT_MOUNT_ANSWERS, mounts[i].place, -EAGAIN, mounts[i].place);
            continue;
        }
        (void)take(pipes[i][0], nothing, sizeof(nothing), left > 1 ? (int)left : 1, &late);
        close(pipes[i][0]);
        if (late) {
            kill(children[i], SIGKILL);
            put_error(c, FACT_MOUNT_ANSWERS, mounts[i].place, -ETIMEDOUT, mounts[i].place);
        } else if (waitpid(children[i], &status, 0) == children[i]) {
            put_number(c, FACT_MOUNT_ANSWERS, mounts[i].place, status == 0, mounts[i].place);
        }
    }
    if (count <= 0) {
        put_error(c, FACT_MOUNT, "", count < 0 ? count : -ENOENT, "/proc/mounts");
    }
    free(mounts);
}

/* Only what root owns and nobody else can write is started. */
static int may_run(const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0) {
        return -errno;
    }
    return !S_ISREG(status.st_mode) || (status.st_mode & S_IXUSR) == 0 ? -ENOEXEC
           : (status.st_uid != 0 && status.st_uid != geteuid()) ||
                   (status.st_mode & (S_IWGRP | S_IWOTH)) != 0
               ? -EPERM
               : 0;
}

static void run_site(struct collector *c, const char *folder, const char *name)
{
    char path[SYSFS_PATH_SIZE], output[OUTPUT_MAX] = "";
    static char search[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
    char *const argv[] = {path, NULL}, *const environment[] = {search, NULL};
    int pipes[2], status = 0;
    bool late;
    const int r = sysfs_path(path, "%s/%s", folder, name) == NULL ? -ENAMETOOLONG : may_run(path);

    put(c, FACT_SITE, name, name, folder);
    if (r < 0 || pipe2(pipes, O_CLOEXEC) < 0) {
        put_error(c, FACT_SITE_STATUS, name, r < 0 ? r : -errno, path);
        return;
    }
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
        dup2(pipes[1], STDOUT_FILENO);
        dup2(pipes[1], STDERR_FILENO);
        execve(path, argv, environment);
        _exit(127);
    }
    close(pipes[1]);
    (void)take(pipes[0], output, sizeof(output), c->config->site_deadline_ms, &late);
    close(pipes[0]);
    if (child > 0 && late) {
        kill(-child, SIGKILL);
        kill(child, SIGKILL);
    }
    output[strcspn(output, "\n")] = '\0';
    output[FACT_VALUE_MAX / 4] = '\0';
    if (child < 0 || late || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        put_error(c, FACT_SITE_STATUS, name, late ? -ETIMEDOUT : -EIO, path);
    } else {
        put_number(c, FACT_SITE_STATUS, name, WEXITSTATUS(status), path);
    }
    put(c, FACT_SITE_OUTPUT, name, output, path);
}

void collect_site(struct collector *c)
{
    static char names[SITE_MAX][SYSFS_NAME_SIZE];
    const char *folder = c->config->checks;
    const int count = folder == NULL ? -ENOENT : sysfs_names(NULL, folder, names, SITE_MAX);

    for (int i = 0; i < count; i++) {
        run_site(c, folder, names[i]);
    }
    if (count <= 0) {
        put_error(c, FACT_SITE, "", count < 0 ? count : -ENOENT,
                  folder != NULL ? folder : "checks.d");
    }
}

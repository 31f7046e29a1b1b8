/* capture.c: see capture.h. */
#include "service/inspect/capture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/plain.h"
#include "service/inspect/job_gid.h"

enum { LINKS_MAX = 40, CONFIG_MAX = 4096 };

struct capture {
    const struct scrub *scrub;
    int fd; /* of the folder */
    char text[FILE_MAX + 2];
};
static struct capture *capturing; /* NULL: nothing is captured in this process */

/* A place in the machine, with all links resolved, and the same place in the tree. */
struct place {
    char real[PATH_MAX], kept[PATH_MAX];
};

static const char *kept_path(const struct place *p)
{
    return p->kept[0] == '/' ? p->kept + 1 : ".";
}

static void put_link(struct capture *c, const struct place *p, const char *target)
{
    (void)unlinkat(c->fd, kept_path(p), 0);
    (void)symlinkat(target, c->fd, kept_path(p));
}

static void put_refusal(struct capture *c, const struct place *p, int error)
{
    char target[16];

    snprintf(target, sizeof(target), "!%d", -error);
    put_link(c, p, target);
}

static void put_empty(struct capture *c, const struct place *p)
{
    const int fd = openat(c->fd, kept_path(p), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0) {
        close(fd);
    }
}

/* Writes a file and renames it: two collectors may read the same file. */
static void put_content(struct capture *c, const struct place *p, const void *content, size_t size)
{
    char name[PATH_MAX + 32];
    const char *last = strrchr(p->kept, '/');

    snprintf(name, sizeof(name), "%.*s.%d", (int)(last - p->kept) + 1, p->kept, (int)getpid());
    const int fd = openat(c->fd, name + 1, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return;
    }
    const bool whole = write(fd, content, size) == (ssize_t)size;
    close(fd);
    if (!whole || renameat(c->fd, name + 1, c->fd, kept_path(p)) < 0) {
        (void)unlinkat(c->fd, name + 1, 0);
    }
}

/* ---- the path to a file ---- */

static void up(char *path)
{
    char *last = strrchr(path, '/');

    if (last != NULL) {
        *last = '\0';
    }
}

static bool append(char path[PATH_MAX], const char *part)
{
    const size_t used = strlen(path);

    return (size_t)snprintf(path + used, PATH_MAX - used, "/%s", part) < PATH_MAX - used;
}

/* The target of a link in the tree: each part is scrubbed by the folder that it is in. */
static void kept_target(const struct capture *c, const char *folder, const char *target,
                        char ret[PATH_MAX])
{
    char base[PATH_MAX], part[SCRUB_NAME_SIZE], other[SCRUB_NAME_SIZE];
    size_t used = 0;

    snprintf(base, sizeof(base), "%s", target[0] == '/' ? "" : folder);
    used += (size_t)snprintf(ret, PATH_MAX, "%s", target[0] == '/' ? "/" : "");
    for (bool first = true;; first = false) {
        target += strspn(target, "/");
        const size_t n = strcspn(target, "/");
        if (n == 0 || n >= sizeof(part) || used + SCRUB_NAME_SIZE + 1 > PATH_MAX) {
            return;
        }
        snprintf(part, sizeof(part), "%.*s", (int)n, target);
        const bool is_up = strcmp(part, "..") == 0, same = is_up || strcmp(part, ".") == 0;
        used += (size_t)snprintf(ret + used, PATH_MAX - used, "%s%s", first ? "" : "/",
                                 same ? part : scrub_part(c->scrub, base, part, other));
        if (is_up) {
            up(base);
        } else if (!same) {
            (void)append(base, part);
        }
        target += n;
    }
}

/* /proc/mounts, /proc/net and /proc/self are links to the process that reads them. In the tree they are the files themselves. */
static bool leads_to_self(const struct place *p, const char *part)
{
    return strcmp(p->real, "/proc") == 0 &&
           (strcmp(part, "mounts") == 0 || strcmp(part, "net") == 0 || strcmp(part, "self") == 0);
}

/* The folder of a process's open files. Only targets that are a GPU or an RDMA device are kept. */
static bool is_open_file(const struct place *p)
{
    const char *last = strrchr(p->real, '/');

    return strncmp(p->real, "/proc/", 6) == 0 && last != NULL && strcmp(last, "/fd") == 0;
}

static bool is_device(const char *target)
{
    return process_has_gpu(target) || open_verbs(target) != NULL;
}

static ssize_t read_link(const struct sysfs *tree, const char *path, char target[PATH_MAX])
{
    const int fd = sysfs_fd(tree, path, O_PATH | O_NOFOLLOW);
    const ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", target, PATH_MAX - 1);

    if (fd >= 0) {
        close(fd);
    }
    if (n >= 0) {
        target[n] = '\0';
    }
    return n;
}

static void keep_link(struct capture *c, const struct place *folder, const struct place *link,
                      const char *target)
{
    char other[PATH_MAX];

    if (target[0] == '!') { /* this machine is a capture itself */
        put_link(c, link, target);
    } else if (!is_open_file(folder)) {
        kept_target(c, folder->real, target, other);
        put_link(c, link, other);
    } else {
        put_link(c, link, is_device(target) ? target : "nothing");
    }
}

/* Goes one part further. Returns 1 if the part is a link: then `todo` is the link's target, to be followed from `p`. */
static int step(struct capture *c, const struct sysfs *tree, struct place *p, const char *part,
                char todo[PATH_MAX])
{
    struct place next = *p;
    char other[SCRUB_NAME_SIZE], target[PATH_MAX], rest[PATH_MAX];
    struct stat status;

    if (!append(next.real, part) ||
        !append(next.kept, scrub_part(c->scrub, p->real, part, other))) {
        return -ENAMETOOLONG;
    }
    const int fd = sysfs_fd(tree, next.real, O_PATH | O_NOFOLLOW);
    const int r = fd < 0 ? fd : fstat(fd, &status) < 0 ? -errno : 0;
    if (fd >= 0) {
        close(fd);
    }
    if (r < 0) {
        if (r != -ENOENT && r != -ENOTDIR) {
            put_refusal(c, &next, r);
        }
        return r;
    }
    if (S_ISLNK(status.st_mode) && leads_to_self(p, part)) {
        const int n = sysfs_real(tree, next.real, target, sizeof(target));
        if (n < 0) {
            return n;
        }
        snprintf(next.real, sizeof(next.real), "%s", target);
        if (strcmp(part, "mounts") != 0) {
            (void)mkdirat(c->fd, kept_path(&next), 0700);
        }
    } else if (S_ISLNK(status.st_mode)) {
        if (read_link(tree, next.real, target) <= 0) {
            return -EIO;
        }
        keep_link(c, p, &next, target);
        if (target[0] == '!' || (is_open_file(p) && !is_device(target))) {
            return -ENOENT;
        }
        snprintf(rest, sizeof(rest), "%s", todo);
        if (snprintf(todo, PATH_MAX, "%s/%s", target, rest) >= PATH_MAX) {
            return -ENAMETOOLONG;
        }
        if (target[0] == '/') {
            p->real[0] = p->kept[0] = '\0';
        }
        return 1;
    } else if (S_ISDIR(status.st_mode)) {
        (void)mkdirat(c->fd, kept_path(&next), 0700);
    }
    *p = next;
    return 0;
}

/* Rebuilds the folders and links on the way to a file; *p is the end of the way. */
static int walk(struct capture *c, const struct sysfs *tree, const char *path, struct place *p)
{
    char todo[PATH_MAX], part[SCRUB_NAME_SIZE];
    int links = 0;

    p->real[0] = p->kept[0] = '\0';
    if (snprintf(todo, sizeof(todo), "%s", path) >= (int)sizeof(todo)) {
        return -ENAMETOOLONG;
    }
    for (;;) {
        const size_t from = strspn(todo, "/"), n = strcspn(todo + from, "/");
        if (n == 0) {
            return 0;
        }
        if (n >= sizeof(part)) {
            return -ENAMETOOLONG;
        }
        snprintf(part, sizeof(part), "%.*s", (int)n, todo + from);
        memmove(todo, todo + from + n, strlen(todo + from + n) + 1);
        if (strcmp(part, "..") == 0) {
            up(p->real);
            up(p->kept);
        } else if (strcmp(part, ".") != 0) {
            const int r = step(c, tree, p, part, todo);
            if (r < 0 || (r == 1 && ++links > LINKS_MAX)) {
                return r < 0 ? r : -ELOOP;
            }
        }
    }
}

/* ---- content ---- */

/* Keeps the names in a folder, each as a link, a folder or an empty file. A file gets its content when a collector reads it. */
static int keep_names(struct capture *c, const struct sysfs *tree, const struct place *p)
{
    const int fd = sysfs_fd(tree, p->real[0] != '\0' ? p->real : "/", O_RDONLY | O_DIRECTORY);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    char other[SCRUB_NAME_SIZE], target[PATH_MAX];

    if (folder == NULL) {
        return fd < 0 ? fd : -errno;
    }
    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        struct place one = *p;
        struct stat status;
        const bool process = strcmp(p->real, "/proc") == 0 && e->d_name[0] >= '0' &&
                             e->d_name[0] <= '9'; /* added when its state is read */
        if (e->d_name[0] == '.' || process || leads_to_self(p, e->d_name) ||
            !append(one.real, e->d_name) ||
            !append(one.kept, scrub_part(c->scrub, p->real, e->d_name, other)) ||
            fstatat(dirfd(folder), e->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
            continue;
        }
        if (S_ISDIR(status.st_mode)) {
            (void)mkdirat(c->fd, kept_path(&one), 0700);
        } else if (S_ISLNK(status.st_mode) && read_link(tree, one.real, target) > 0) {
            keep_link(c, p, &one, target);
        } else {
            put_empty(c, &one);
        }
    }
    closedir(folder);
    return 0;
}

/* Reads the whole file. -EMSGSIZE: it is longer than a collector reads. */
static ssize_t read_whole(struct capture *c, int fd)
{
    size_t size = 0;

    while (size <= FILE_MAX) {
        const ssize_t n = read(fd, c->text + size, FILE_MAX + 1 - size);
        if (n == 0) {
            break;
        }
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        size += n > 0 ? (size_t)n : 0;
    }
    c->text[size] = '\0';
    return size > FILE_MAX ? -EMSGSIZE : (ssize_t)size;
}

struct log_kept {
    const struct scrub *scrub;
    const char *path;
    FILE *out;
};

static int keep_piece(void *context, char *text)
{
    const struct log_kept *k = context;

    return !is_text(text, strlen(text)) ? -EILSEQ : scrub_file(k->scrub, k->path, text, k->out);
}

static void keep_log(struct capture *c, const struct place *p, const char *path, int fd)
{
    char *kept = NULL;
    size_t size = 0;
    bool lost = false;
    const struct log_kept k = {c->scrub, path, open_memstream(&kept, &size)};
    int r = k.out == NULL ? -ENOMEM : log_pieces(fd, c->text, keep_piece, (void *)&k, &lost);

    r = k.out != NULL && fclose(k.out) != 0 ? -ENOMEM : r == 0 ? -EBADMSG : r;
    if (r < 0) {
        put_refusal(c, p, r);
    } else {
        put_content(c, p, kept, size);
    }
    free(kept);
}

static void keep_text(struct capture *c, const struct place *p, const char *path, size_t size)
{
    char *kept = NULL;
    size_t kept_size = 0;
    FILE *out = open_memstream(&kept, &kept_size);
    int r = !is_text(c->text, size)                  ? -EILSEQ
            : size == 0 || c->text[size - 1] != '\n' ? -EBADMSG
            : out == NULL                            ? -ENOMEM
                                                     : scrub_file(c->scrub, path, c->text, out);

    if (out != NULL) {
        fclose(out);
    }
    if (r < 0) {
        put_refusal(c, p, r);
    } else {
        put_content(c, p, kept, kept_size);
    }
    free(kept);
}

/* A process that has ended meanwhile is removed from the tree. */
static void forget_process(struct capture *c, const char *path)
{
    char folder[32];
    int number, end = 0;

    if (sscanf(path, "/proc/%d/stat%n", &number, &end) == 1 && end > 0 && path[end] == '\0') {
        snprintf(folder, sizeof(folder), "proc/%d/stat", number);
        (void)unlinkat(c->fd, folder, 0);
        *strrchr(folder, '/') = '\0';
        (void)unlinkat(c->fd, folder, AT_REMOVEDIR);
    }
}

static void keep_file(struct capture *c, const struct sysfs *tree, const struct place *p,
                      const char *path)
{
    const char *last = strrchr(path, '/');
    const int fd = sysfs_fd(tree, p->real, O_RDONLY);
    if (fd >= 0 && strcmp(path, "/dev/kmsg") == 0) {
        keep_log(c, p, path, fd);
        close(fd);
        return;
    }
    const ssize_t n = fd < 0 ? fd : read_whole(c, fd);
    if (fd >= 0) {
        close(fd);
    }
    if (n == -ESRCH) {
        forget_process(c, path);
    } else if (n < 0) {
        put_refusal(c, p, (int)n);
    } else if (last != NULL && strcmp(last, "/config") == 0 && n <= CONFIG_MAX) {
        if (n > 64) { /* users other than root get 64 bytes only */
            scrub_pci((uint8_t *)c->text, (size_t)n);
            put_content(c, p, c->text, (size_t)n);
        } else {
            put_refusal(c, p, -EPERM);
        }
    } else if (fnmatch("/proc/[0-9]*/environ", path, 0) == 0) {
        const int kept = gid_setting(c->text, (size_t)n);
        if (kept < 0) {
            put_refusal(c, p, kept);
        } else {
            put_content(c, p, c->text, (size_t)kept);
        }
    } else {
        keep_text(c, p, path, (size_t)n);
    }
}

static void on_open(void *context, const struct sysfs *tree, const char *path, int flags)
{
    struct capture *c = context;
    struct place p;
    struct stat status;
    int r = walk(c, tree, path, &p);

    if (r < 0) { /* the tree lacks it too, or has its error */
        forget_process(c, path);
        return;
    }
    const int fd = sysfs_fd(tree, p.real[0] != '\0' ? p.real : "/", O_PATH);
    r = fd < 0 ? fd : fstat(fd, &status) < 0 ? -errno : 0;
    if (fd >= 0) {
        close(fd);
    }
    if (r < 0) {
        put_refusal(c, &p, r);
    } else if (S_ISDIR(status.st_mode)) {
        r = (flags & O_DIRECTORY) != 0 ? keep_names(c, tree, &p) : 0;
        if (r < 0) {
            (void)unlinkat(c->fd, kept_path(&p), AT_REMOVEDIR);
            put_refusal(c, &p, r);
        }
    } else if ((flags & O_PATH) != 0) {
        put_empty(c, &p);
    } else {
        keep_file(c, tree, &p, path);
    }
}

void capture_begin(const struct scrub *s, const char *folder)
{
    struct capture *c = calloc(1, sizeof(*c));

    if (c == NULL || (c->fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
        abort(); /* this is a child: its parent reports the failure */
    }
    c->scrub = s;
    capturing = c;
    sysfs_watch(on_open, c);
}

void keep_answer(const struct collector *c, const char *path, int error, const char *text)
{
    char part[PATH_MAX];
    struct place p = {.real = ""};

    if (capturing == NULL || c->tree != NULL || path == NULL || strlen(text) > FILE_MAX) {
        return;
    }
    snprintf(part, sizeof(part), "%s", path);
    for (char *at = part, *name; (name = strsep(&at, "/")) != NULL;) {
        char other[SCRUB_NAME_SIZE];
        if (name[0] != '\0') {
            (void)append(p.kept, scrub_part(capturing->scrub, p.real, name, other));
            (void)append(p.real, name);
            if (at != NULL) {
                (void)mkdirat(capturing->fd, kept_path(&p), 0700);
            }
        }
    }
    if (error < 0) {
        put_refusal(capturing, &p, error);
        return;
    }
    const size_t size = strlen(text);
    memcpy(capturing->text, text, size + 1);
    keep_text(capturing, &p, path, size);
}

/* ---- names ---- */

static void own_name(struct scrub *s, const struct sysfs *tree, const char *path)
{
    char name[SCRUB_NAME_SIZE];

    if (sysfs_text(tree, path, name, sizeof(name)) > 0) {
        scrub_own(s, name);
        name[strcspn(name, ".")] = '\0';
        scrub_own(s, name);
    }
}

void capture_names(struct scrub *s, const char *root)
{
    struct sysfs tree, *t = root != NULL ? &tree : NULL;

    if (root != NULL && sysfs_open(&tree, root) < 0) {
        return;
    }
    own_name(s, t, "/proc/sys/kernel/hostname");
    own_name(s, t, "/etc/hostname");
    if (t != NULL) {
        sysfs_close(t);
    }
}

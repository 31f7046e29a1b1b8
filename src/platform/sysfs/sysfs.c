/* sysfs.c: see sysfs.h. */
#include "platform/sysfs/sysfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TRIES_MAX = 100000 };

int sysfs_open(struct sysfs *ret_sysfs, const char *root)
{
    const int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        return -errno;
    }
    *ret_sysfs = (struct sysfs){.fd = fd};
    return 0;
}

void sysfs_close(struct sysfs *s)
{
    close(s->fd);
    s->fd = -1;
}

static struct {
    sysfs_watcher *call; /* NULL: none, or it is running */
    void *context;
} watching;

void sysfs_watch(sysfs_watcher *watcher, void *context)
{
    watching.call = watcher;
    watching.context = context;
}

static void tell_watcher(const struct sysfs *s, const char *path, int flags)
{
    sysfs_watcher *call = watching.call;

    if (call != NULL) {
        watching.call = NULL;
        call(watching.context, s, path, flags);
        watching.call = call;
    }
}

/* The error for a link to "!N"; -ENOENT: it is no such link. */
static int refusal(const struct sysfs *s, const char *path)
{
    const struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                                 .resolve = RESOLVE_IN_ROOT};
    const long fd = syscall(SYS_openat2, s->fd, path, &how, sizeof(how));
    char target[8];
    const ssize_t n = fd < 0 ? -1 : readlinkat((int)fd, "", target, sizeof(target) - 1);

    if (fd >= 0) {
        close((int)fd);
    }
    if (n < 2 || target[0] != '!') {
        return -ENOENT;
    }
    target[n] = 0;
    const long error = strtol(target + 1, NULL, 10);
    return error > 0 && error < 4096 ? -(int)error : -ENOENT;
}

int sysfs_fd(const struct sysfs *s, const char *path, int flags)
{
    const int all = flags | O_CLOEXEC | ((flags & O_PATH) != 0 ? 0 : O_NONBLOCK);
    const struct open_how how = {.flags = (uint32_t)all, .resolve = RESOLVE_IN_ROOT};

    if (path == NULL) {
        return -ENAMETOOLONG;
    }
    tell_watcher(s, path, flags);
    /* While something is renamed or mounted anywhere, the kernel can't check a ".." in a link: EAGAIN. Then it is tried again. */
    long fd;
    int tries = 0;
    do {
        fd = s == NULL ? open(path, all) : syscall(SYS_openat2, s->fd, path, &how, sizeof(how));
    } while (fd < 0 && errno == EAGAIN && s != NULL && ++tries < TRIES_MAX);
    if (fd < 0 && errno == ENOENT && s != NULL) {
        return refusal(s, path);
    }
    return fd < 0 ? -errno : (int)fd;
}

bool sysfs_there(const struct sysfs *s, const char *path)
{
    const int fd = sysfs_fd(s, path, O_PATH);

    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

/* Reading a file of sysfs may return parts. */
static ssize_t read_whole(int fd, char *text, size_t size)
{
    size_t done = 0;
    ssize_t n = 1;

    while (done < size && (n = read(fd, text + done, size - done)) != 0) {
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)done;
}

int sysfs_text(const struct sysfs *s, const char *path, char *ret_text, size_t size)
{
    char text[4096];
    const int fd = sysfs_fd(s, path, O_RDONLY);

    if (fd < 0) {
        return fd;
    }
    ssize_t n = read_whole(fd, text, sizeof(text));
    close(fd);
    if (n < 0) {
        return (int)n;
    }
    while (n > 0 && isspace((unsigned char)text[n - 1])) {
        n--;
    }
    if ((size_t)n >= size || (size_t)n == sizeof(text)) {
        return -EMSGSIZE;
    }
    if (memchr(text, 0, (size_t)n) != NULL) {
        return -EILSEQ;
    }
    memcpy(ret_text, text, (size_t)n);
    ret_text[n] = 0;
    return (int)n;
}

const char *sysfs_path(char path[static SYSFS_PATH_SIZE], const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int n = vsnprintf(path, SYSFS_PATH_SIZE, format, arguments);
    va_end(arguments);
    return n > 0 && n < SYSFS_PATH_SIZE ? path : NULL;
}

int sysfs_number(const struct sysfs *s, const char *path, int64_t *ret_number)
{
    char text[128], *end;
    const int r = sysfs_text(s, path, text, sizeof(text));

    if (r < 0) {
        return r;
    }
    errno = 0;
    const long long number = strtoll(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
    if (end == text || (*end != 0 && !isspace((unsigned char)*end))) {
        return -EBADMSG;
    }
    if (errno != 0) {
        return -errno;
    }
    *ret_number = number;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strverscmp(a, b);
}

static int read_names(DIR *folder, char (*names)[SYSFS_NAME_SIZE], int capacity)
{
    int count = 0;

    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        if (e->d_name[0] == '.') {
            continue;
        }
        if (count == capacity) {
            return -E2BIG;
        }
        if (strlen(e->d_name) >= SYSFS_NAME_SIZE) {
            return -ENAMETOOLONG;
        }
        memcpy(names[count++], e->d_name, strlen(e->d_name) + 1);
    }
    return count;
}

int sysfs_names(const struct sysfs *s, const char *path, char (*ret_names)[SYSFS_NAME_SIZE],
                int capacity)
{
    const int fd = sysfs_fd(s, path, O_RDONLY | O_DIRECTORY);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    int count;

    if (folder == NULL) {
        count = fd < 0 ? fd : -errno;
        if (fd >= 0) {
            close(fd);
        }
        return count;
    }
    count = read_names(folder, ret_names, capacity);
    closedir(folder);
    if (count > 0) {
        qsort(ret_names, (size_t)count, sizeof(*ret_names), compare_names);
    }
    return count;
}

/* The kernel's own path of an open descriptor. */
static ssize_t name_of(int fd, char *path, size_t size)
{
    char link[48];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, size - 1);
    if (n < 0) {
        return -errno;
    }
    path[n] = 0;
    return (size_t)n == size - 1 ? -ENAMETOOLONG : n;
}

int sysfs_real(const struct sysfs *s, const char *path, char *ret_path, size_t size)
{
    char real[PATH_MAX], root[PATH_MAX];
    const int fd = sysfs_fd(s, path, O_PATH);
    ssize_t n, skip = 0;

    if (fd < 0) {
        return fd;
    }
    n = name_of(fd, real, sizeof(real));
    close(fd);
    if (s != NULL && n >= 0) {
        skip = name_of(s->fd, root, sizeof(root));
        skip = skip == 1 ? 0 : skip; /* "/" */
    }
    if (n < 0 || skip < 0) {
        return (int)(n < 0 ? n : skip);
    }
    if (n - skip >= (ssize_t)size) {
        return -ENAMETOOLONG;
    }
    memcpy(ret_path, real + skip, (size_t)(n - skip) + 1);
    return (int)(n - skip);
}

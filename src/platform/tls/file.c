/* file.c: reads small files, and replaces them so that a crash leaves the old or the new one. */
#include "platform/tls/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 16 << 20, PATH_SIZE = 512 };

int tls_read_file(const char *path, char **ret_text)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    int r = fstat(fd, &st) < 0                              ? -errno
            : !S_ISREG(st.st_mode) || st.st_size > FILE_MAX ? -EFBIG
                                                            : 0;
    char *text = r < 0 ? NULL : malloc((size_t)st.st_size + 1);
    r = r < 0 ? r : text == NULL ? -ENOMEM : 0;
    const ssize_t n = r < 0 ? 0 : read(fd, text, (size_t)st.st_size);
    r = r < 0 ? r : n < 0 ? -errno : 0;
    close(fd);
    if (r < 0) {
        free(text);
        return r;
    }
    text[n] = 0;
    *ret_text = text;
    return 0;
}

static int sync_folder(const char *path)
{
    char copy[PATH_SIZE];
    snprintf(copy, sizeof(copy), "%s", path);
    const int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    const int r = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return r;
}

int tls_write_file(const char *path, const void *bytes, size_t size, unsigned mode)
{
    char beside[PATH_SIZE];
    if ((size_t)snprintf(beside, sizeof(beside), "%s.new", path) >= sizeof(beside)) {
        return -ENAMETOOLONG;
    }
    unlink(beside);
    const int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) {
        return -errno;
    }
    int r = 0;
    for (size_t at = 0; r == 0 && at < size;) {
        const ssize_t n = write(fd, (const char *)bytes + at, size - at);
        r = n < 0 ? (errno == EINTR ? 0 : -errno) : n == 0 ? -ENOSPC : 0;
        at += n > 0 ? (size_t)n : 0;
    }
    r = r < 0 ? r : fchmod(fd, mode) < 0 || fsync(fd) < 0 ? -errno : 0;
    if (close(fd) < 0 && r == 0) {
        r = -errno;
    }
    r = r < 0 ? r : rename(beside, path) < 0 ? -errno : sync_folder(path);
    if (r < 0) {
        unlink(beside);
    }
    return r;
}

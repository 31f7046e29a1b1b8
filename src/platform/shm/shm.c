/* shm.c: page files: create, fill, rename. */
#include "platform/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int shm_create(struct shm_page *ret_page, const char *path, size_t size, mode_t mode)
{
    struct shm_page page = {.size = size};
    if (snprintf(page.path, sizeof(page.path), "%s", path) >= (int)sizeof(page.path)) {
        return -ENAMETOOLONG;
    }
    snprintf(page.temporary, sizeof(page.temporary), "%s.new", path);
    unlink(page.temporary); /* left by a writer that was killed */
    const int fd = open(page.temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return -errno;
    }
    /* posix_fallocate, not ftruncate: on a full disk it must fail here, and not as SIGBUS at the first write */
    int r = -posix_fallocate(fd, 0, (off_t)size);
    if (r == 0 && fchmod(fd, mode) < 0) {
        r = -errno;
    }
    if (r == 0) {
        page.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        r = page.memory == MAP_FAILED ? -errno : 0;
    }
    close(fd);
    if (r < 0) {
        unlink(page.temporary);
        return r;
    }
    *ret_page = page;
    return 0;
}

int shm_publish(struct shm_page *page)
{
    if (rename(page->temporary, page->path) < 0) {
        return -errno;
    }
    page->temporary[0] = 0;
    return 0;
}

static int open_existing(struct shm_page *ret_page, const char *path, size_t size_min, bool write)
{
    struct shm_page page = {0};
    if (snprintf(page.path, sizeof(page.path), "%s", path) >= (int)sizeof(page.path)) {
        return -ENAMETOOLONG;
    }
    const int fd = open(path, (write ? O_RDWR | O_NOFOLLOW : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    struct stat st;
    int r = fstat(fd, &st) < 0 ? -errno : 0;
    if (r == 0 && (!S_ISREG(st.st_mode) || (size_t)st.st_size < size_min)) {
        r = -EPROTO;
    }
    if (r == 0) {
        page.size = (size_t)st.st_size;
        page.memory =
            mmap(NULL, page.size, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
        r = page.memory == MAP_FAILED ? -errno : 0;
    }
    close(fd);
    if (r < 0) {
        return r;
    }
    *ret_page = page;
    return 0;
}

int shm_open_write(struct shm_page *ret_page, const char *path, size_t size)
{
    return open_existing(ret_page, path, size, true);
}

int shm_open_read(struct shm_page *ret_page, const char *path, size_t size_min)
{
    return open_existing(ret_page, path, size_min, false);
}

void shm_close(struct shm_page *page)
{
    if (page->memory != NULL) {
        munmap(page->memory, page->size);
    }
    if (page->temporary[0] != 0) {
        unlink(page->temporary);
    }
    *page = (struct shm_page){0};
}

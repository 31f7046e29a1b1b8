/* descriptor.c: the list has one bit per descriptor. The kernel gives the lowest numbers, so only a small part of it is ever
 * touched. */
#include "transport/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DESCRIPTOR_MAX (1 << 20) /* descriptors above are not listed */

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    uint64_t bits[DESCRIPTOR_MAX / 64];
    int top;        /* all that are listed are below */
    rlim_t copies;  /* made by descriptor_copy() */
    uint32_t forks; /* atomic */
} list = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void before_fork(void)
{
    pthread_mutex_lock(&list.lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&list.lock);
}

static void in_child(void)
{
    for (int i = 0; i < (list.top + 63) / 64; i++) {
        for (; list.bits[i] != 0; list.bits[i] &= list.bits[i] - 1) {
            close(i * 64 + __builtin_ctzll(list.bits[i]));
        }
    }
    list.top = 0;
    list.copies = 0;
    __atomic_fetch_add(&list.forks, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&list.lock);
}

/* If there is no memory for it, children keep their descriptors: a killed rank is noticed later. */
static void watch_forks(void)
{
    (void)!pthread_atfork(before_fork, in_parent, in_child);
}

static void set_bit(int fd, bool on)
{
    if (fd < 0 || fd >= DESCRIPTOR_MAX) {
        return;
    }
    if (on) {
        list.bits[fd / 64] |= 1ULL << fd % 64;
        list.top = fd >= list.top ? fd + 1 : list.top;
    } else {
        list.bits[fd / 64] &= ~(1ULL << fd % 64);
    }
}

int descriptor_socket(int domain, int type, int protocol)
{
    pthread_once(&list.once, watch_forks);
    pthread_mutex_lock(&list.lock);
    int fd = socket(domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    int error = errno;
    set_bit(fd, true);
    pthread_mutex_unlock(&list.lock);
    return fd < 0 ? -error : fd;
}

int descriptor_accept(int listener)
{
    pthread_mutex_lock(&list.lock);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int error = errno;
    set_bit(fd, true);
    pthread_mutex_unlock(&list.lock);
    return fd < 0 ? -error : fd;
}

void descriptor_add(int fd)
{
    pthread_once(&list.once, watch_forks);
    pthread_mutex_lock(&list.lock);
    set_bit(fd, true);
    pthread_mutex_unlock(&list.lock);
}

void descriptor_close(int fd)
{
    pthread_mutex_lock(&list.lock);
    set_bit(fd, false);
    close(fd);
    pthread_mutex_unlock(&list.lock);
}

static bool copies_left(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && list.copies < limit.rlim_cur / 8;
}

int descriptor_copy(int fd)
{
    int copy = -1, error = EMFILE;

    pthread_once(&list.once, watch_forks);
    pthread_mutex_lock(&list.lock);
    if (copies_left()) {
        copy = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0); /* glibc 2.28 renamed fcntl() */
        error = errno;
    }
    set_bit(copy, true);
    list.copies += copy >= 0;
    pthread_mutex_unlock(&list.lock);
    return copy < 0 ? -error : copy;
}

void descriptor_copy_close(int fd)
{
    pthread_mutex_lock(&list.lock);
    set_bit(fd, false);
    list.copies -= list.copies > 0; /* a child has none of its parent's copies */
    close(fd);
    pthread_mutex_unlock(&list.lock);
}

void descriptor_forget(int fd)
{
    pthread_mutex_lock(&list.lock);
    set_bit(fd, false);
    pthread_mutex_unlock(&list.lock);
}

uint32_t descriptor_forks(void)
{
    return __atomic_load_n(&list.forks, __ATOMIC_RELAXED);
}

/* connect.c: opens the connections of a communicator, one poll at a time. The sender connects. The first message of each
 * connection is a hello with the communicator's id. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "reference.h"

static int flags(void)
{
    return SOCK_STREAM | SOCK_NONBLOCK | (planted(PLANT_NO_CLOEXEC) ? 0 : SOCK_CLOEXEC);
}

int count_of(const char *name, int fallback, int low, int high)
{
    const char *text = getenv(name);
    char *end;
    const long value = text != NULL ? strtol(text, &end, 10) : fallback;

    return text == NULL || *end != '\0' || value < low || value > high ? fallback : (int)value;
}

/* -- the receiver's listener */

struct listener *listener_new(const struct device *device, struct handle *handle)
{
    struct listener *l = calloc(1, sizeof(*l));
    struct sockaddr_in address = device->address;
    socklen_t size = sizeof(address);

    if (l == NULL) {
        return NULL;
    }
    address.sin_port = 0;
    l->fd = socket(AF_INET, flags(), 0);
    if (l->fd < 0 || bind(l->fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(l->fd, 1024) < 0 || getsockname(l->fd, (struct sockaddr *)&address, &size) < 0 ||
        getrandom(&l->cookie, sizeof(l->cookie), 0) != (ssize_t)sizeof(l->cookie)) {
        say(NCCL_LOG_WARN, "listen on %s: %s", device->name, strerror(errno));
        listener_free(l);
        return NULL;
    }
    memset(handle, 0, NCCL_HANDLE_SIZE);
    *handle = (struct handle){.address = address, .magic = MAGIC, .cookie = l->cookie};
    return l;
}

void listener_free(struct listener *l)
{
    if (l == NULL) {
        return;
    }
    for (int i = 0; i < l->pending_count; i++) {
        close(l->pending[i]);
    }
    if (l->fd >= 0) {
        close(l->fd);
    }
    comm_free(l->accepting);
    free(l);
}

/* -- the sender */

static int begin_connection(const struct sockaddr_in *address)
{
    const int one = 1;
    const int fd = socket(AF_INET, flags(), 0);

    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
        errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

static struct comm *begin_connect(const struct handle *handle)
{
    const int threads = count_of("REFERENCE_NTHREADS", 0, 0, THREAD_MAX);
    const int each = count_of("REFERENCE_NSOCKS_PERTHREAD", 1, 1, SOCKET_MAX / THREAD_MAX * 4);
    const int sockets =
        threads * each > SOCKET_MAX ? SOCKET_MAX / threads * threads : threads * each;
    struct comm *comm = comm_new(true, sockets, threads);

    if (comm == NULL) {
        return NULL;
    }
    for (int i = 0; i <= sockets; i++) {
        const int index = i == sockets ? CONTROL : i;
        comm->fds[index] = begin_connection(&handle->address);
        comm->hello[index] = (struct hello){MAGIC, handle->cookie, (uint32_t)index,
                                            (uint32_t)(sockets | threads << 16)};
        if (comm->fds[index] < 0) {
            say(NCCL_LOG_WARN, "connect: %s", strerror(errno));
            comm_free(comm);
            return NULL;
        }
    }
    return comm;
}

/* 1: the hello is sent; 0: not yet; -1: broken. */
static int say_hello(struct comm *comm, int index)
{
    struct pollfd p = {comm->fds[index], POLLOUT, 0};
    size_t *moved = &comm->hello_moved[index];

    if (*moved == sizeof(struct hello)) {
        return 1;
    }
    if (poll(&p, 1, 0) <= 0) {
        return 0;
    }
    ssize_t n = send(comm->fds[index], (char *)&comm->hello[index] + *moved,
                     sizeof(struct hello) - *moved, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }
    *moved += (size_t)n;
    return *moved == sizeof(struct hello);
}

enum nccl_result connect_poll(struct handle *handle, struct comm **ret_comm)
{
    struct comm *comm = handle->connecting;
    int done = 0;

    if (handle->magic != MAGIC) {
        say(NCCL_LOG_WARN, "this handle is not of the reference plugin");
        return NCCL_INVALID_USAGE;
    }
    if (comm == NULL) {
        comm = handle->connecting = begin_connect(handle);
        if (comm == NULL) {
            return NCCL_SYSTEM_ERROR;
        }
    }
    for (int i = 0; i <= comm->sockets; i++) {
        const int r = say_hello(comm, i == comm->sockets ? CONTROL : i);
        if (r < 0) {
            say(NCCL_LOG_WARN, "connect: %s", strerror(errno));
            handle->connecting = NULL;
            comm_free(comm);
            return NCCL_REMOTE_ERROR;
        }
        done += r;
    }
    if (done == comm->sockets + 1) {
        if (planted(PLANT_BLOCKING_CONNECT)) {
            char byte;
            (void)!recv(comm->fds[CONTROL], &byte, 1, 0);
            struct pollfd p = {comm->fds[CONTROL], POLLIN, 0};
            (void)poll(&p, 1, 60000);
            (void)!recv(comm->fds[CONTROL], &byte, 1, 0);
        }
        handle->connecting = NULL;
        *ret_comm = comm;
    }
    return NCCL_SUCCESS;
}

/* -- the receiver */

/* Reads the hello of a connection. True: the connection is assigned or closed; false: the hello is incomplete. */
static bool hear_hello(struct listener *l, int i, enum nccl_result *result)
{
    struct hello *hello = &l->hello[i];
    const ssize_t n = recv(l->pending[i], (char *)hello + l->moved[i], sizeof(*hello) - l->moved[i],
                           MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    l->moved[i] += n > 0 ? (size_t)n : 0;
    if (n > 0 && l->moved[i] < sizeof(*hello)) {
        return false;
    }
    if (n <= 0 || hello->magic != MAGIC || hello->cookie != l->cookie || hello->index > CONTROL ||
        (hello->sockets & 0xffff) > SOCKET_MAX || hello->sockets >> 16 > THREAD_MAX) {
        close(l->pending[i]); /* not a peer, or a peer that gave up */
        *result = planted(PLANT_GARBAGE_DIES) ? NCCL_INTERNAL_ERROR : *result;
        return true;
    }
    if (l->accepting == NULL) {
        l->accepting = comm_new(false, (int)(hello->sockets & 0xffff), (int)(hello->sockets >> 16));
    }
    if (l->accepting == NULL || l->accepting->fds[hello->index] >= 0) {
        close(l->pending[i]);
        *result = NCCL_SYSTEM_ERROR;
        return true;
    }
    l->accepting->fds[hello->index] = l->pending[i];
    l->accepting->connected++;
    return true;
}

static void take_connections(struct listener *l)
{
    while (l->pending_count <= SOCKET_MAX) {
        const int one = 1;
        const int fd = accept4(l->fd, NULL, NULL,
                               SOCK_NONBLOCK | (planted(PLANT_NO_CLOEXEC) ? 0 : SOCK_CLOEXEC));
        if (fd < 0) {
            return;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        l->pending[l->pending_count] = fd;
        l->moved[l->pending_count++] = 0;
    }
}

enum nccl_result accept_poll(struct listener *l, struct comm **ret_comm)
{
    enum nccl_result result = NCCL_SUCCESS;

    if (planted(PLANT_BLOCKING_ACCEPT)) {
        struct pollfd p = {l->fd, POLLIN, 0};
        (void)poll(&p, 1, 60000);
    }
    take_connections(l);
    for (int i = 0; i < l->pending_count;) {
        if (!hear_hello(l, i, &result)) {
            i++;
            continue;
        }
        l->pending_count--;
        l->pending[i] = l->pending[l->pending_count];
        l->hello[i] = l->hello[l->pending_count];
        l->moved[i] = l->moved[l->pending_count];
    }
    struct comm *comm = l->accepting;
    if (comm != NULL && comm->connected == comm->sockets + 1) {
        if (planted(PLANT_BLOCKING_CONNECT)) {
            (void)!send(comm->fds[CONTROL], "", 1, MSG_NOSIGNAL);
        }
        l->accepting = NULL;
        *ret_comm = comm;
    }
    return result;
}

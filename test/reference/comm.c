/* comm.c: messages over the connections of one communicator.
 *
 * The control connection carries headers in order. Each header is followed by the first bytes of its message (by all of them if
 * there are no data connections). The rest is cut into pieces for the data connections in turn. Both ends compute the same cut,
 * so a piece needs no header. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "reference.h"

static void fail(struct comm *comm, const char *what, int error)
{
    int none = NCCL_SUCCESS;

    if (planted(PLANT_DEAF)) {
        return;
    }
    if (atomic_compare_exchange_strong(&comm->error, &none, NCCL_REMOTE_ERROR)) {
        say(NCCL_LOG_WARN, "%s: %s", what, error == 0 ? "the peer has closed" : strerror(error));
    }
}

/* Moves as many bytes as possible without waiting. Returns their number, 0 for none, -1 for a broken connection. */
static ssize_t move(struct comm *comm, int fd, struct iovec *iov, int count)
{
    const struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)count};
    const ssize_t n = comm->sends ? sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL)
                                  : recvmsg(fd, (struct msghdr *)&message, MSG_DONTWAIT);

    if (n > 0) {
        return n;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    fail(comm, comm->sends ? "send" : "receive", n < 0 ? errno : 0);
    return planted(PLANT_DEAF) ? 0 : -1;
}

/* -- pieces on the data connections */

/* False if nothing moved. */
static bool piece_progress(struct comm *comm, int socket)
{
    struct piece *p = comm->first[socket];

    if (p == NULL) {
        return false;
    }
    struct iovec iov = {p->data + p->moved, p->size - p->moved};
    ssize_t n = move(comm, comm->fds[socket], &iov, 1);
    if (n <= 0) {
        return false;
    }
    p->moved += (size_t)n;
    if (p->moved == p->size) {
        comm->first[socket] = p->next;
        if (p->next == NULL) {
            comm->last[socket] = NULL;
        }
        atomic_fetch_sub(&p->part->left, 1);
    }
    return true;
}

/* Like NCCL's helpers it sleeps without work and spins with it. On a machine with few processors spinning would itself be
 * measured: there it waits REFERENCE_WAIT_US when nothing moved. */
static void *helper_main(void *arg)
{
    struct helper *h = arg;
    struct comm *comm = h->comm;
    const useconds_t wait_us = (useconds_t)count_of("REFERENCE_WAIT_US", 0, 0, 100000);

    pthread_mutex_lock(&h->lock);
    while (!h->stop) {
        bool work = false, moved = false;
        for (int i = h->first; i < h->first + h->count; i++) {
            work |= comm->first[i] != NULL;
        }
        if (!work || atomic_load(&comm->error) != NCCL_SUCCESS) {
            pthread_cond_wait(&h->wake, &h->lock);
            continue;
        }
        for (int i = h->first; i < h->first + h->count; i++) {
            moved |= piece_progress(comm, i);
        }
        pthread_mutex_unlock(&h->lock); /* lets other threads add work or stop this one */
        if (!moved && wait_us > 0) {
            usleep(wait_us);
        }
        pthread_mutex_lock(&h->lock);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static void add_piece(struct comm *comm, int socket, struct piece *piece)
{
    struct helper *h = &comm->helpers[socket % comm->threads];
    const int slot = socket / comm->threads + h->first; /* neighbours use different threads */

    pthread_mutex_lock(&h->lock);
    piece->next = NULL;
    if (comm->last[slot] != NULL) {
        comm->last[slot]->next = piece;
    } else {
        comm->first[slot] = piece;
    }
    comm->last[slot] = piece;
    if (!h->started) {
        h->started = pthread_create(&h->thread, NULL, helper_main, h) == 0;
        if (!h->started) {
            atomic_store(&comm->error, NCCL_SYSTEM_ERROR);
        }
    }
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->lock);
}

static void deal_out(struct comm *comm, struct part *part, size_t from)
{
    const size_t rest = part->size - from;
    size_t each = (rest + (size_t)comm->sockets - 1) / (size_t)comm->sockets;

    each = each < PIECE_MIN ? PIECE_MIN : each;
    for (int i = 0; from < part->size; i++) {
        struct piece *p = &part->pieces[i];
        *p = (struct piece){.data = part->data + from, .part = part};
        p->size = part->size - from < each ? part->size - from : each;
        from += p->size;
        atomic_fetch_add(&part->left, 1);
        add_piece(comm, (int)(comm->next_socket++ % (unsigned)comm->sockets), p);
    }
}

/* -- the control connection */

/* The bytes of a message that follow its header. */
static size_t inline_size(const struct comm *comm, size_t size)
{
    return comm->sockets == 0 || size < INLINE_MAX ? size : INLINE_MAX;
}

static void part_through(struct comm *comm, struct request *request, struct part *part)
{
    const size_t through = inline_size(comm, part->size);

    if (through < part->size) {
        deal_out(comm, part, through);
    }
    if (!comm->sends && part->bounce != NULL) {
        plant_copy_torn(part->bounce, part->data, part->size);
        free(part->data);
        part->data = part->bounce;
        part->bounce = NULL;
    }
    atomic_fetch_sub(&part->left, 1);
    request->moved = 0;
    request->matched++;
    comm->current = NULL;
    if (request->matched == request->parts) {
        comm->queue_count--;
        memmove(comm->queue, comm->queue + 1, sizeof(comm->queue[0]) * (size_t)comm->queue_count);
        request->queued = false;
        if (planted(PLANT_DOUBLE_COMPLETION) && ++comm->message_count % PLANT_PERIOD == 0) {
            request->used = false;
        }
    }
}

static bool send_control(struct comm *comm, struct request *request)
{
    struct part *part = &request->part[0];
    struct header header = {part->size, part->tag, (uint32_t)MAGIC};
    const size_t total = sizeof(header) + inline_size(comm, part->size);
    const size_t at = request->moved;
    struct iovec iov[2];
    int count = 0;

    if (at < sizeof(header)) {
        iov[count++] = (struct iovec){(char *)&header + at, sizeof(header) - at};
    }
    if (total > sizeof(header)) {
        const size_t skip = at > sizeof(header) ? at - sizeof(header) : 0;
        iov[count++] = (struct iovec){part->data + skip, total - sizeof(header) - skip};
    }
    ssize_t n = move(comm, comm->fds[CONTROL], iov, count);
    if (n <= 0) {
        return false;
    }
    request->moved += (size_t)n;
    if (request->moved == total) {
        part_through(comm, request, part);
    }
    return true;
}

static struct part *match(struct comm *comm, struct request *request)
{
    for (int i = 0; i < request->parts; i++) {
        struct part *part = &request->part[i];
        if (!part->matched &&
            (request->parts == 1 || part->tag == comm->header.tag || planted(PLANT_SWAPPED_TAGS))) {
            return part;
        }
    }
    return NULL;
}

static bool begin_part(struct comm *comm, struct request *request)
{
    struct part *part = match(comm, request);

    if (comm->header.magic != (uint32_t)MAGIC || part == NULL ||
        comm->header.size > part->capacity) {
        say(NCCL_LOG_WARN, "message of %llu bytes with tag %d doesn't fit what was posted",
            (unsigned long long)comm->header.size, comm->header.tag);
        atomic_store(&comm->error, NCCL_INVALID_USAGE);
        return false;
    }
    part->matched = true;
    part->size = comm->header.size;
    if (planted(PLANT_TORN_BYTES) && comm->sockets == 0 && part->size >= 16) {
        part->bounce = part->data;
        part->data = malloc(part->size);
    }
    comm->current = part;
    return true;
}

static bool receive_control(struct comm *comm, struct request *request)
{
    struct part *part = comm->current;
    const size_t at = request->moved;
    struct iovec iov;

    if (at < sizeof(comm->header)) {
        iov = (struct iovec){(char *)&comm->header + at, sizeof(comm->header) - at};
    } else {
        const size_t skip = at - sizeof(comm->header);
        iov = (struct iovec){part->data + skip, inline_size(comm, part->size) - skip};
    }
    ssize_t n = move(comm, comm->fds[CONTROL], &iov, 1);
    if (n <= 0) {
        return false;
    }
    request->moved += (size_t)n;
    if (request->moved == sizeof(comm->header)) {
        if (!begin_part(comm, request)) {
            return false;
        }
        part = comm->current;
    }
    if (part != NULL && request->moved == sizeof(comm->header) + inline_size(comm, part->size)) {
        part_through(comm, request, part);
    }
    return true;
}

void comm_progress(struct comm *comm)
{
    while (comm->queue_count > 0 && atomic_load(&comm->error) == NCCL_SUCCESS) {
        struct request *head = comm->queue[0];
        if (!(comm->sends ? send_control(comm, head) : receive_control(comm, head))) {
            break;
        }
    }
}

/* -- requests */

struct request *comm_request(struct comm *comm)
{
    for (int i = 0; i < NCCL_REQUEST_MAX; i++) {
        struct request *r = &comm->requests[i];
        if (!r->used) {
            r->comm = comm;
            r->used = true;
            r->matched = 0;
            r->moved = 0;
            return r;
        }
    }
    return NULL;
}

void comm_queue(struct comm *comm, struct request *request)
{
    for (int i = 0; i < request->parts; i++) {
        request->part[i].matched = false;
        request->part[i].bounce = NULL;
    }
    request->queued = true;
    if (comm->queue_count == NCCL_REQUEST_MAX) {
        return; /* only if a request is handed out twice */
    }
    comm->queue[comm->queue_count++] = request;
    if (planted(PLANT_REORDERED) && comm->sends && comm->queue_count >= 2 &&
        ++comm->message_count % PLANT_PERIOD == 0 &&
        comm->queue[comm->queue_count - 2]->moved == 0) {
        comm->queue[comm->queue_count - 1] = comm->queue[comm->queue_count - 2];
        comm->queue[comm->queue_count - 2] = request;
    }
}

bool request_done(const struct request *request)
{
    for (int i = 0; i < request->parts; i++) {
        if (atomic_load(&request->part[i].left) != 0) {
            return false;
        }
    }
    return true;
}

/* -- life */

struct comm *comm_new(bool sends, int sockets, int threads)
{
    struct comm *comm = calloc(1, sizeof(*comm));

    if (comm == NULL) {
        return NULL;
    }
    comm->sends = sends;
    comm->sockets = sockets;
    comm->threads = threads;
    for (int i = 0; i <= SOCKET_MAX; i++) {
        comm->fds[i] = -1;
    }
    for (int i = 0, first = 0; i < threads; i++) {
        struct helper *h = &comm->helpers[i];
        pthread_mutex_init(&h->lock, NULL);
        pthread_cond_init(&h->wake, NULL);
        h->comm = comm;
        h->first = first;
        h->count = sockets / threads;
        first += h->count;
    }
    return comm;
}

void comm_free(struct comm *comm)
{
    if (comm == NULL) {
        return;
    }
    for (int i = 0; i < comm->threads; i++) {
        struct helper *h = &comm->helpers[i];
        pthread_mutex_lock(&h->lock);
        h->stop = true;
        pthread_cond_signal(&h->wake);
        pthread_mutex_unlock(&h->lock);
        if (h->started) {
            pthread_join(h->thread, NULL);
        }
        pthread_cond_destroy(&h->wake);
        pthread_mutex_destroy(&h->lock);
    }
    for (int i = 0; i <= SOCKET_MAX; i++) {
        if (comm->fds[i] >= 0 && !(planted(PLANT_LEAKED_FD) && i == CONTROL)) {
            close(comm->fds[i]);
        }
    }
    if (!planted(PLANT_LEAKED_MEMORY)) {
        free(comm);
    }
}

/* rdma_silence.c: see rdma.h: makes queue pairs silent. To put one into the error state, or to destroy it, takes a third of a
 * millisecond, and the caller holds the lock of a set. A driver that doesn't return must not block that lock, too. So each device
 * has a thread that makes these calls. It starts with the device's first queue pair that writes. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "transport/rdma_private.h"

static void wake(const struct device *d)
{
    const uint64_t one = 1;

    (void)!write(d->silencer.work, &one, sizeof(one));
}

/* The first one that the worker isn't connecting at the moment: to destroy that one would disturb the worker. Under the lock. */
static struct queue_pair *next_asked(struct device *d)
{
    struct queue_pair **at = &d->silencer.first;

    while (*at != NULL && (*at)->busy) {
        at = &(*at)->next_asked;
    }
    struct queue_pair *q = *at;
    if (q != NULL) {
        *at = q->next_asked;
        q->asked = false;
    }
    return q;
}

/* Under the lock, which it releases meanwhile. */
static void do_as_asked(struct device *d, struct queue_pair *q)
{
    struct rdma *r = q->rdma;
    struct rdma_qp *ending = q->ending, *handle = q->qp;
    int error = 0;

    q->in_hand = true;
    d->silencer.began_ns = rdma_clock_ns();
    pthread_mutex_unlock(&r->lock);
    if (ending != NULL) {
        error = rdma_qp_close(ending);
    } else if (handle != NULL) {
        /* if it is refused, the marker doesn't come, and the pair is destroyed */
        (void)!rdma_qp_silence(handle);
    }
    pthread_mutex_lock(&r->lock);
    d->silencer.began_ns = 0;
    q->in_hand = false;
    if (ending != NULL) {
        q->ending = NULL;
        q->unsafe = error < 0;
    }
    if (q->closing) {
        rdma_retire(q);
    }
}

static void *silence(void *of)
{
    struct device *d = of;
    struct rdma *r = d->silencer.rdma;
    struct pollfd woken = {.fd = d->silencer.work, .events = POLLIN};
    uint64_t count;

    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        struct queue_pair *q = next_asked(d);
        if (q != NULL) {
            do_as_asked(d, q);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        if (poll(&woken, 1, -1) > 0) {
            (void)!read(woken.fd, &count, sizeof(count));
        }
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

int64_t rdma_clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int rdma_silencer_start(struct rdma *r, struct device *d)
{
    if (d->silencer.runs) {
        return 0;
    }
    d->silencer.rdma = r;
    d->silencer.work = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->silencer.work < 0) {
        return -errno;
    }
    const int error = pthread_create(&d->silencer.thread, NULL, silence, d);
    if (error != 0) {
        close(d->silencer.work);
        return -error;
    }
    d->silencer.runs = true;
    return 0;
}

void rdma_silencers_end(struct rdma *r)
{
    for (uint32_t i = 0; i < r->device_count; i++) {
        struct device *d = &r->devices[i];
        if (d->silencer.runs) {
            wake(d);
            pthread_join(d->silencer.thread, NULL);
            close(d->silencer.work);
            d->silencer.runs = false;
        }
        for (struct queue_pair *q = d->silencer.first; q != NULL; q = q->next_asked) {
            q->asked = false;
            if (q->closing) {
                rdma_retire(q);
            }
        }
        d->silencer.first = NULL;
    }
}

void rdma_silence_ask(struct queue_pair *q)
{
    struct queue_pair **at = &q->device->silencer.first;

    if (!q->asked) {
        while (*at != NULL) {
            at = &(*at)->next_asked;
        }
        q->asked = true;
        q->next_asked = NULL;
        *at = q;
    }
    wake(q->device);
}

void rdma_silencer_look(const struct queue_pair *q)
{
    if (q->asked) {
        wake(q->device);
    }
}

bool rdma_silence_await(struct queue_pair *q)
{
    const struct timespec some = {.tv_nsec = 50 * NS_PER_US};
    struct rdma *r = q->rdma;
    const int64_t asked_ns = rdma_clock_ns();
    bool waits = true, done = false;

    while (waits && !done) {
        pthread_mutex_lock(&r->lock);
        const int64_t now_ns = rdma_clock_ns(), began_ns = q->device->silencer.began_ns;
        done = q->ending == NULL;
        waits = q->busy ? now_ns - asked_ns < FENCE_MS * NS_PER_MS
                        : began_ns == 0 || now_ns - began_ns < FENCE_MS * NS_PER_MS;
        pthread_mutex_unlock(&r->lock);
        if (waits && !done) {
            (void)nanosleep(&some, NULL);
        }
    }
    return done;
}

/* worker.c: two lists under a lock, and an eventfd that wakes the loop. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "platform/message/message.h"
#include "service/controller/history/worker.h"

struct list {
    struct worker_job *first, *last;
};

struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    struct list waiting, ended; /* under the lock */
    bool stop, started;
    size_t count;
    int fd;
    sd_event_source *io;
    struct store *store;
};

static void append(struct list *l, struct worker_job *job)
{
    job->next = NULL;
    if (l->last != NULL) {
        l->last->next = job;
    } else {
        l->first = job;
    }
    l->last = job;
}

static struct worker_job *take(struct list *l)
{
    struct worker_job *job = l->first;
    if (job != NULL) {
        l->first = job->next;
        l->last = l->first != NULL ? l->last : NULL;
    }
    return job;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void *serve(void *context)
{
    struct worker *w = context;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        struct worker_job *job = take(&w->waiting);
        if (job == NULL && w->stop) {
            break;
        }
        if (job == NULL) {
            pthread_cond_wait(&w->wanted, &w->lock);
            continue;
        }
        if (w->stop) { /* too late */
            append(&w->ended, job);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        const int64_t begin_ns = now_ns();
        job->run(job, w->store);
        job->took_ns = now_ns() - begin_ns;
        pthread_mutex_lock(&w->lock);
        append(&w->ended, job);
        (void)eventfd_write(w->fd, 1);
    }
    pthread_mutex_unlock(&w->lock);
    message_thread_done();
    return NULL;
}

static struct worker_job *take_ended(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    struct worker_job *job = take(&w->ended);
    pthread_mutex_unlock(&w->lock);
    return job;
}

static void finish(struct worker *w)
{
    for (struct worker_job *job; (job = take_ended(w)) != NULL;) {
        w->count--;
        job->done(job);
    }
}

static int on_ended(sd_event_source *source, int fd, uint32_t events, void *context)
{
    eventfd_t n = 0;
    (void)eventfd_read(fd, &n);
    finish(context);
    return 0;
}

int worker_open(sd_event *loop, const char *store_path, struct worker **ret)
{
    struct worker *w = calloc(1, sizeof(*w));
    char words[256];
    sigset_t all, before;
    if (w == NULL) {
        return -ENOMEM;
    }
    const struct store_options options = {.path = store_path, .helper = true};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wanted, NULL);
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = w->fd < 0 ? -errno : store_path != NULL ? store_open(&options, &w->store, words) : 0;
    r = r < 0 ? r : sd_event_add_io(loop, &w->io, w->fd, EPOLLIN, on_ended, w);
    if (r >= 0) {
        sigfillset(&all); /* the loop takes signals */
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = -pthread_create(&w->thread, NULL, serve, w);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        w->started = r == 0;
    }
    if (r < 0) {
        worker_close(w);
        return r;
    }
    *ret = w;
    return 0;
}

void worker_close(struct worker *w)
{
    if (w == NULL) {
        return;
    }
    if (w->started) {
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        pthread_cond_signal(&w->wanted);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
        finish(w);
    }
    sd_event_source_disable_unref(w->io);
    store_close(w->store);
    if (w->fd >= 0) {
        close(w->fd);
    }
    pthread_cond_destroy(&w->wanted);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void worker_add(struct worker *w, struct worker_job *job, bool first)
{
    w->count++;
    pthread_mutex_lock(&w->lock);
    if (w->stop) { /* too late */
        append(&w->ended, job);
    } else if (first && w->waiting.first != NULL) {
        job->next = w->waiting.first;
        w->waiting.first = job;
    } else {
        append(&w->waiting, job);
    }
    pthread_cond_signal(&w->wanted);
    pthread_mutex_unlock(&w->lock);
}

size_t worker_waiting(const struct worker *w)
{
    return w->count;
}

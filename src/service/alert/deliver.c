/* deliver.c: the thread that brings notices to receivers. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "service/alert/deliver_internal.h"

enum { BACKOFF_MS_MIN = 1000, BACKOFF_MS_MAX = 60000, IDLE_MS = 60000 };

int64_t deliver_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- queues ----------------------------------------------------------------------------------------------------- */

static bool expendable(const struct job *j)
{
    return j->notice.event == ALERT_REPEATED || j->notice.event == ALERT_HEARTBEAT;
}

/* Makes room for one more: drops the oldest repetition. Without one it drops the oldest notice that isn't being sent. */
static struct job *make_room(struct delivery_queue *l)
{
    struct job **victim = l->first != NULL ? &l->first->next : NULL, *gone;

    for (struct job **at = victim; at != NULL && *at != NULL; at = &(*at)->next) {
        if (expendable(*at)) {
            victim = at;
            break;
        }
    }
    if (victim == NULL || *victim == NULL) {
        return NULL;
    }
    gone = *victim;
    *victim = gone->next;
    if (gone == l->last) {
        l->last = l->first;
        while (l->last->next != NULL) {
            l->last = l->last->next;
        }
    }
    l->count.waiting--;
    l->count.given_up++;
    return gone;
}

/* attempts: for this notice. Only the thread knows how many there were. */
static void trouble(struct deliver *d, struct delivery_queue *l, const char *key, const char *words,
                    unsigned attempts, bool given_up)
{
    const struct deliver_trouble t = {.receiver = l->receiver.name,
                                      .key = key,
                                      .words = words,
                                      .attempts = attempts,
                                      .given_up = given_up};

    if (d->on_trouble != NULL) {
        d->on_trouble(d->context, &t);
    }
}

void deliver_put(struct deliver *d, uint32_t receivers, const struct alert_notice *notice)
{
    for (size_t k = 0; k < d->lane_count; k++) {
        struct delivery_queue *l = &d->lanes[k];
        struct job *j, *gone = NULL;
        if ((receivers >> k & 1) == 0 ||
            (!l->receiver.resolved && notice->event == ALERT_RESOLVED)) {
            continue;
        }
        j = malloc(sizeof(*j));
        if (j == NULL) {
            trouble(d, l, notice->key, "out of memory", 0, true);
            continue;
        }
        j->notice = *notice;
        j->next = NULL;
        pthread_mutex_lock(&d->lock);
        if (l->count.waiting == DELIVER_QUEUE_MAX) {
            gone = make_room(l);
        }
        if (l->last != NULL) {
            l->last->next = j;
        } else {
            l->first = j;
        }
        l->last = j;
        l->count.waiting++;
        pthread_mutex_unlock(&d->lock);
        if (gone != NULL) {
            trouble(d, l, gone->notice.key, "too many wait for this receiver", 0, true);
            free(gone);
        }
    }
    curl_multi_wakeup(d->multi);
}

/* Copies the head of the queue. It stays there until the receiver takes it or the thread gives it up. */
static bool head(struct deliver *d, struct delivery_queue *l, struct alert_notice *ret)
{
    pthread_mutex_lock(&d->lock);
    bool there = l->first != NULL;
    if (there) {
        *ret = l->first->notice;
    }
    pthread_mutex_unlock(&d->lock);
    return there;
}

static void pop(struct deliver *d, struct delivery_queue *l, bool delivered)
{
    pthread_mutex_lock(&d->lock);
    struct job *j = l->first;
    l->first = j->next;
    if (l->first == NULL) {
        l->last = NULL;
    }
    l->count.waiting--;
    l->count.delivered += delivered;
    l->count.given_up += !delivered;
    pthread_mutex_unlock(&d->lock);
    free(j);
    l->attempts = 0;
    l->due_ms = 0;
}

/* ---- an attempt's end ------------------------------------------------------------------------------------------- */

static void clear(struct delivery_queue *l)
{
    curl_slist_free_all(l->headers);
    curl_slist_free_all(l->to);
    free(l->body);
    l->headers = l->to = NULL;
    l->body = NULL;
}

void deliver_failed(struct deliver *d, struct delivery_queue *l, const char *words, bool final)
{
    struct alert_notice n;

    l->attempts++;
    clear(l);
    pthread_mutex_lock(&d->lock);
    l->count.failed++;
    pthread_mutex_unlock(&d->lock);
    final = final || (head(d, l, &n) && n.event == ALERT_HEARTBEAT);
    trouble(d, l, l->key, words, l->attempts, final);
    if (final) {
        pop(d, l, false);
        return;
    }
    unsigned shift = l->attempts - 1 < 6 ? l->attempts - 1 : 6;
    l->due_ms =
        deliver_now_ms() +
        (BACKOFF_MS_MIN << shift < BACKOFF_MS_MAX ? BACKOFF_MS_MIN << shift : BACKOFF_MS_MAX);
}

void deliver_taken(struct deliver *d, struct delivery_queue *l)
{
    clear(l);
    pop(d, l, true);
}

/* ---- the thread ------------------------------------------------------------------------------------------------- */

static void start(struct deliver *d, struct delivery_queue *l)
{
    struct alert_notice n;

    if (l->in_curl || l->child != 0 || deliver_now_ms() < l->due_ms || !head(d, l, &n)) {
        return;
    }
    snprintf(l->key, sizeof(l->key), "%s", n.key);
    if (alert_payload(&l->receiver, &n, &l->body, &l->size) < 0) {
        l->body = NULL;
        deliver_failed(d, l, "out of memory", false);
    } else if (l->receiver.kind == RECEIVER_COMMAND) {
        deliver_start_command(d, l, &n);
    } else {
        deliver_start_curl(d, l);
    }
}

static size_t waiting(struct deliver *d)
{
    size_t count = 0;

    pthread_mutex_lock(&d->lock);
    for (size_t k = 0; k < d->lane_count; k++) {
        count += d->lanes[k].count.waiting;
    }
    pthread_mutex_unlock(&d->lock);
    return count;
}

static int timeout_ms(struct deliver *d)
{
    int64_t next = deliver_now_ms() + IDLE_MS;

    for (size_t k = 0; k < d->lane_count; k++) {
        struct delivery_queue *l = &d->lanes[k];
        struct alert_notice n;
        if (l->child != 0) {
            const int64_t look = deliver_now_ms() + (l->child_fd >= 0 ? 1000 : 20);
            next = look < next ? look : next;
        } else if (!l->in_curl && head(d, l, &n) && l->due_ms < next) {
            next = l->due_ms;
        }
    }
    next -= deliver_now_ms();
    return next < 0 ? 0 : (int)next;
}

static bool stopping(struct deliver *d)
{
    pthread_mutex_lock(&d->lock);
    bool stop = d->stop;
    int64_t at = d->stop_at_ms;
    pthread_mutex_unlock(&d->lock);
    return stop && (deliver_now_ms() >= at || waiting(d) == 0);
}

static void wait_for_something(struct deliver *d)
{
    struct curl_waitfd fds[ALERT_RECEIVER_MAX];
    unsigned count = 0;
    int timeout = timeout_ms(d);

    for (size_t k = 0; k < d->lane_count; k++) {
        if (d->lanes[k].child != 0 && d->lanes[k].child_fd >= 0) {
            fds[count++] =
                (struct curl_waitfd){.fd = d->lanes[k].child_fd, .events = CURL_WAIT_POLLIN};
        }
    }
    pthread_mutex_lock(&d->lock);
    bool stop = d->stop;
    pthread_mutex_unlock(&d->lock);
    timeout = stop && timeout > 20 ? 20 : timeout;
    curl_multi_poll(d->multi, fds, count, timeout, NULL);
}

static void *run(void *context)
{
    struct deliver *d = context;

    while (!stopping(d)) {
        int running = 0, left = 0;
        CURLMsg *message;
        for (size_t k = 0; k < d->lane_count; k++) {
            start(d, &d->lanes[k]);
        }
        curl_multi_perform(d->multi, &running);
        while ((message = curl_multi_info_read(d->multi, &left)) != NULL) {
            if (message->msg == CURLMSG_DONE) {
                const CURLcode code = message->data.result;
                struct delivery_queue *l = NULL;
                curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &l);
                deliver_on_curl_done(d, l, code);
            }
        }
        for (size_t k = 0; k < d->lane_count; k++) {
            if (d->lanes[k].child != 0) {
                deliver_look_at_command(d, &d->lanes[k]);
            }
        }
        wait_for_something(d);
    }
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

static void free_all(struct deliver *d)
{
    for (size_t k = 0; k < d->lane_count; k++) {
        struct delivery_queue *l = &d->lanes[k];
        if (l->in_curl) {
            curl_multi_remove_handle(d->multi, l->easy);
        }
        if (l->child != 0) {
            kill(-l->child, SIGKILL);
            (void)waitpid(l->child, NULL, 0);
            if (l->child_fd >= 0) {
                close(l->child_fd);
            }
        }
        curl_easy_cleanup(l->easy);
        clear(l);
        while (l->first != NULL) {
            struct job *j = l->first;
            l->first = j->next;
            free(j);
        }
        explicit_bzero(&l->receiver, sizeof(l->receiver));
    }
    curl_multi_cleanup(d->multi);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* signals go to the main thread */
static int start_thread(struct deliver *d)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&d->thread, NULL, run, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

int deliver_new(const struct alert_receiver *receivers, size_t count, deliver_on_trouble on_trouble,
                void *context, struct deliver **ret)
{
    struct deliver *d = calloc(1, sizeof(*d) + count * sizeof(d->lanes[0]));
    bool made = d != NULL && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;

    if (d == NULL) {
        return -ENOMEM;
    }
    pthread_mutex_init(&d->lock, NULL);
    d->on_trouble = on_trouble;
    d->context = context;
    d->lane_count = count;
    d->multi = made ? curl_multi_init() : NULL;
    made = d->multi != NULL;
    for (size_t k = 0; k < count && made; k++) {
        d->lanes[k].receiver = receivers[k];
        d->lanes[k].child_fd = -1;
        d->lanes[k].easy = curl_easy_init();
        made = d->lanes[k].easy != NULL;
    }
    int r = made ? start_thread(d) : -ENOMEM;
    if (r < 0) {
        free_all(d);
        return r;
    }
    *ret = d;
    return 0;
}

/* Passes waiting notices to the receiver of the same name in `heir`; returns how many notices found no receiver. */
static size_t hand_over(struct deliver *d, struct deliver *heir)
{
    size_t left = 0;

    for (size_t k = 0; k < d->lane_count; k++) {
        struct delivery_queue *from = &d->lanes[k], *to = NULL;
        for (size_t n = 0; heir != NULL && n < heir->lane_count && to == NULL; n++) {
            const bool same = strcmp(heir->lanes[n].receiver.name, from->receiver.name) == 0;
            to = same ? &heir->lanes[n] : NULL;
        }
        if (to == NULL || from->first == NULL) {
            left += from->count.waiting;
            continue;
        }
        pthread_mutex_lock(&heir->lock);
        ASSERT(to->first == NULL); /* nothing was put there yet */
        to->first = from->first;
        to->last = from->last;
        to->count.waiting = from->count.waiting;
        pthread_mutex_unlock(&heir->lock);
        from->first = from->last = NULL;
    }
    if (heir != NULL) {
        curl_multi_wakeup(heir->multi);
    }
    return left;
}

size_t deliver_free(struct deliver *d, unsigned wait_ms, struct deliver *heir)
{
    if (d == NULL) {
        return 0;
    }
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    d->stop_at_ms = deliver_now_ms() + wait_ms;
    pthread_mutex_unlock(&d->lock);
    curl_multi_wakeup(d->multi);
    pthread_join(d->thread, NULL);
    size_t left = hand_over(d, heir);
    free_all(d);
    return left;
}

void deliver_counters(struct deliver *d, size_t receiver, struct deliver_counters *ret)
{
    pthread_mutex_lock(&d->lock);
    *ret = d->lanes[receiver].count;
    pthread_mutex_unlock(&d->lock);
}

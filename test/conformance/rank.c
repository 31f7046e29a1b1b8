/* rank.c: a rank's toolbox: mail to other ranks, the service thread, links, buffers that show late writes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

#define SLOW_CALL_MS                                                                               \
    3000 /* no call may wait for a peer; for a processor on a busy machine any call may */

_Noreturn void found(struct rank *r, const char *format, ...)
{
    char *text = r->world->rank[r->rank].finding;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(r->world->rank[0].finding), format, arguments);
    va_end(arguments);
    _exit(1);
}

_Noreturn void skip(struct rank *r, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(r->world->skip, sizeof(r->world->skip), format, arguments);
    va_end(arguments);
    _exit(0);
}

void doing(struct rank *r, const char *what)
{
    snprintf(r->world->rank[r->rank].doing, sizeof(r->world->rank[0].doing), "%s", what);
}

void must(struct rank *r, enum nccl_result result, const char *what)
{
    if (result != NCCL_SUCCESS) {
        found(r, "%s: %s", what, net_result_name(result));
    }
}

int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

void sleep_ms(int ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

/* -- mail */

void mail_send(struct rank *r, int to, const void *data, size_t size)
{
    if (send(r->mail[to], data, size, MSG_NOSIGNAL) != (ssize_t)size) {
        found(r, "rank %d is gone", to);
    }
}

void mail_receive(struct rank *r, int from, void *data, size_t size)
{
    if (recv(r->mail[from], data, size, 0) != (ssize_t)size) {
        found(r, "rank %d is gone", from);
    }
}

void barrier(struct rank *r)
{
    char byte = 0;

    for (int i = 0; i < r->ranks; i++) {
        if (i != r->rank) {
            mail_send(r, i, &byte, 1);
        }
    }
    for (int i = 0; i < r->ranks; i++) {
        if (i != r->rank) {
            mail_receive(r, i, &byte, 1);
        }
    }
}

/* -- the service thread */

/* The time that this thread ran, and waited for a processor, ms. 0: the kernel doesn't report it. */
static int64_t busy_ms(void)
{
    long long ran = 0, waited = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "re");

    if (file != NULL && fscanf(file, "%lld %lld", &ran, &waited) != 2) {
        ran = waited = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return (ran + waited) / 1000000;
}

static void *service_main(void *arg)
{
    struct service *s = arg;

    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        if (s->run == NULL) {
            pthread_cond_wait(&s->change, &s->lock);
            continue;
        }
        const int64_t begin = now_ms(), busy = busy_ms();
        s->run(s->arg);
        s->slept_ms = now_ms() - begin - (busy_ms() - busy);
        s->run = NULL;
        pthread_cond_broadcast(&s->change);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void serve(struct rank *r, void (*run)(void *), void *arg)
{
    struct service *s = &r->service;

    pthread_mutex_lock(&s->lock);
    s->run = run;
    s->arg = arg;
    pthread_cond_broadcast(&s->change);
    while (s->run != NULL) {
        pthread_cond_wait(&s->change, &s->lock);
    }
    const int64_t slept_ms = s->slept_ms;
    pthread_mutex_unlock(&s->lock);
    if (slept_ms > SLOW_CALL_MS) {
        found(r, "%s slept for %lld ms: it must not wait", r->world->rank[r->rank].doing,
              (long long)slept_ms);
    }
}

static void log_line(int level, unsigned long flags, const char *file, int line, const char *format,
                     ...)
{
    va_list arguments;
    char text[600];

    if (getenv("CONFORMANCE_LOG") == NULL && level > NCCL_LOG_NONE) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "[%d] %d %s\n", getpid(), level, text);
}

void rank_open(struct rank *r, int version)
{
    struct nccl_net_properties_v12 p;
    char why[4300];
    int count = 0;

    doing(r, "dlopen");
    if (net_client_open(&r->net, r->options->plugin, version, why, sizeof(why)) < 0) {
        found(r, "%.300s", why);
    }
    doing(r, "init");
    must(r, net_init(&r->net, 0x1234, log_line, &r->context), "init");
    must(r, net_devices(&r->net, &count), "devices");
    must(r, net_properties(&r->net, 0, &p), "getProperties");
    r->group_max = p.receive_max < NET_GROUP_MAX ? p.receive_max : NET_GROUP_MAX;
    r->service = (struct service){.run = NULL};
    pthread_mutex_init(&r->service.lock, NULL);
    pthread_cond_init(&r->service.change, NULL);
    if (pthread_create(&r->service.thread, NULL, service_main, &r->service) != 0) {
        found(r, "no thread");
    }
}

void rank_close(struct rank *r)
{
    pthread_mutex_lock(&r->service.lock);
    r->service.stop = true;
    pthread_cond_broadcast(&r->service.change);
    pthread_mutex_unlock(&r->service.lock);
    pthread_join(r->service.thread, NULL);
    doing(r, "finalize");
    must(r, net_finalize(&r->net, r->context), "finalize");
    doing(r, "dlclose");
    net_client_close(&r->net);
}

/* -- links */

static void do_listen(void *arg)
{
    struct link *l = arg;

    l->result = net_listen(&l->rank->net, l->rank->context, 0, l->handle, &l->listen_comm);
}
static void do_connect(void *arg)
{
    struct link *l = arg;

    l->result = net_connect(&l->rank->net, l->rank->context, 0, l->handle, &l->comm);
}
static void do_accept(void *arg)
{
    struct link *l = arg;

    l->result = net_accept(&l->rank->net, l->listen_comm, &l->comm);
}
static void do_close_listen(void *arg)
{
    struct link *l = arg;

    l->result = net_close_listen(&l->rank->net, l->listen_comm);
}
static void do_close(void *arg)
{
    struct link *l = arg;

    l->result = l->listen_comm == NULL ? net_close_send(&l->rank->net, l->comm)
                                       : net_close_receive(&l->rank->net, l->comm);
}

void link_listen(struct rank *r, struct link *l)
{
    l->rank = r;
    doing(r, "listen");
    serve(r, do_listen, l);
    must(r, l->result, "listen");
    if (l->listen_comm == NULL) {
        found(r, "listen: no listen comm");
    }
}

void link_poll(struct rank *r, struct link *l)
{
    const bool sends = l->listen_comm == NULL;

    l->rank = r;
    if (l->comm != NULL) {
        return;
    }
    doing(r, sends ? "connect" : "accept");
    serve(r, sends ? do_connect : do_accept, l);
    must(r, l->result, sends ? "connect" : "accept");
    if (l->comm != NULL && !sends) {
        doing(r, "closeListen");
        serve(r, do_close_listen, l);
        must(r, l->result, "closeListen");
    }
}

void links_open(struct rank *r, struct link *links, int count)
{
    for (int i = 0; i < count; i++) {
        if (links[i].to == r->rank) {
            link_listen(r, &links[i]);
            mail_send(r, links[i].from, links[i].handle, NCCL_HANDLE_SIZE);
        } else if (links[i].from == r->rank) {
            links[i].rank = r;
            mail_receive(r, links[i].to, links[i].handle, NCCL_HANDLE_SIZE);
        }
    }
    for (bool missing = true; missing;) {
        missing = false;
        for (int i = 0; i < count; i++) {
            if (links[i].to == r->rank || links[i].from == r->rank) {
                link_poll(r, &links[i]);
                missing |= links[i].comm == NULL;
            }
        }
        if (missing) {
            usleep(200);
        }
    }
}

void link_close(struct rank *r, struct link *l)
{
    if (l->comm == NULL) {
        return;
    }
    doing(r, l->listen_comm == NULL ? "closeSend" : "closeRecv");
    serve(r, do_close, l);
    must(r, l->result, "close");
    l->comm = NULL;
}

/* -- buffers */

struct box box_new(size_t capacity, int byte)
{
    struct box box = {malloc(capacity + 2 * GUARD), capacity, NULL};

    if (box.base == NULL) {
        abort();
    }
    memset(box.base, GUARD_BYTE, GUARD);
    memset(box.base + GUARD + capacity, GUARD_BYTE, GUARD);
    box_fill(&box, byte);
    return box;
}

void box_free(struct box *box)
{
    free(box->base);
    box->base = NULL;
}

char *box_data(const struct box *box)
{
    return box->base + GUARD;
}

void box_fill(struct box *box, int byte)
{
    memset(box_data(box), byte, box->capacity);
}

static bool all_are(const char *data, size_t size, int byte)
{
    return size == 0 || (data[0] == (char)byte && memcmp(data, data + 1, size - 1) == 0);
}

bool box_is(const struct box *box, int byte)
{
    return all_are(box->base, GUARD, GUARD_BYTE) && all_are(box_data(box), box->capacity, byte) &&
           all_are(box_data(box) + box->capacity, GUARD, GUARD_BYTE);
}

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

void pattern_fill(uint64_t seed, char *data, size_t size)
{
    for (size_t at = 0; at < size; at += 8) {
        const uint64_t word = mix(seed + at);
        memcpy(data + at, &word, size - at < 8 ? size - at : 8);
    }
}

long pattern_wrong(uint64_t seed, const char *data, size_t size)
{
    for (size_t at = 0; at < size; at += 8) {
        const uint64_t word = mix(seed + at);
        const size_t n = size - at < 8 ? size - at : 8;
        for (size_t i = 0; memcmp(data + at, &word, n) != 0 && i < n; i++) {
            if (data[at + i] != ((const char *)&word)[i]) {
                return (long)(at + i);
            }
        }
    }
    return -1;
}

#define QUARANTINE_BYTES (24 << 20)
static struct box held[1024];
static size_t held_bytes;
static int held_first, held_count;

static void check_held(struct rank *r, const struct box *box)
{
    if (!box_is(box, REUSED_BYTE)) {
        found(r, "late write: a buffer of %zu bytes changed after its receive was done",
              box->capacity);
    }
}

void quarantine(struct rank *r, struct box box)
{
    box_fill(&box, REUSED_BYTE);
    while (held_count > 0 &&
           (held_count == (int)ARRAY_COUNT(held) || held_bytes + box.capacity > QUARANTINE_BYTES)) {
        struct box *old = &held[held_first];
        check_held(r, old);
        held_bytes -= old->capacity;
        box_free(old);
        held_first = (held_first + 1) % (int)ARRAY_COUNT(held);
        held_count--;
    }
    held[(held_first + held_count++) % (int)ARRAY_COUNT(held)] = box;
    held_bytes += box.capacity;
}

void quarantine_check(struct rank *r)
{
    for (int i = 0; i < held_count; i++) {
        check_held(r, &held[(held_first + i) % (int)ARRAY_COUNT(held)]);
    }
}

void quarantine_drain(struct rank *r)
{
    doing(r, "looking for late writes");
    sleep_ms(60);
    quarantine_check(r);
    while (held_count > 0) {
        box_free(&held[held_first]);
        held_first = (held_first + 1) % (int)ARRAY_COUNT(held);
        held_count--;
    }
    held_bytes = 0;
}

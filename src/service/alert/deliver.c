/* deliver.c: the thread that brings notices to receivers. */
#include "service/alert/deliver.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BACKOFF_MS_MIN = 1000, BACKOFF_MS_MAX = 60000, ANSWER_KEPT = 120, IDLE_MS = 60000 };

struct job {
    struct alert_notice notice;
    struct job *next;
};

struct lane { /* to one receiver */
    struct alert_receiver receiver;
    struct job *first, *last; /* under the lock */
    struct deliver_counters count;
    /* the thread's own */
    CURL *easy;
    bool in_curl;
    pid_t child;
    int child_fd;
    unsigned attempts;
    int64_t due_ms, started_ms; /* when to try; when the command began */
    char *body;
    size_t size, sent;
    char key[64], answer[ANSWER_KEPT + 1];
    size_t answer_size;
    struct curl_slist *headers, *to;
    char words[CURL_ERROR_SIZE];
};

struct deliver {
    pthread_t thread;
    pthread_mutex_t lock;
    CURLM *multi;
    bool stop;
    int64_t stop_at_ms;
    deliver_on_trouble on_trouble;
    void *context;
    size_t lane_count;
    struct lane lanes[];
};

static int64_t now_ms(void)
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

/* Room for one more: the oldest repetition goes, else the oldest that isn't on its way. */
static struct job *make_room(struct lane *l)
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

static void trouble(struct deliver *d, struct lane *l, const char *key, const char *words,
                    bool given_up)
{
    const struct deliver_trouble t = {.receiver = l->receiver.name,
                                      .key = key,
                                      .words = words,
                                      .attempts = l->attempts,
                                      .given_up = given_up};

    if (d->on_trouble != NULL) {
        d->on_trouble(d->context, &t);
    }
}

void deliver_put(struct deliver *d, uint32_t receivers, const struct alert_notice *notice)
{
    for (size_t k = 0; k < d->lane_count; k++) {
        struct lane *l = &d->lanes[k];
        struct job *j, *gone = NULL;
        if ((receivers >> k & 1) == 0 ||
            (!l->receiver.resolved && notice->event == ALERT_RESOLVED)) {
            continue;
        }
        j = malloc(sizeof(*j));
        if (j == NULL) {
            trouble(d, l, notice->key, "out of memory", true);
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
            trouble(d, l, gone->notice.key, "too many wait for this receiver", true);
            free(gone);
        }
    }
    curl_multi_wakeup(d->multi);
}

/* Copies the head of the queue; it stays there until it is taken or given up. */
static bool head(struct deliver *d, struct lane *l, struct alert_notice *ret)
{
    bool there;

    pthread_mutex_lock(&d->lock);
    there = l->first != NULL;
    if (there) {
        *ret = l->first->notice;
    }
    pthread_mutex_unlock(&d->lock);
    return there;
}

static void pop(struct deliver *d, struct lane *l, bool delivered)
{
    struct job *j;

    pthread_mutex_lock(&d->lock);
    j = l->first;
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

static void clear(struct lane *l)
{
    curl_slist_free_all(l->headers);
    curl_slist_free_all(l->to);
    free(l->body);
    l->headers = l->to = NULL;
    l->body = NULL;
}

static void failed(struct deliver *d, struct lane *l, const char *words, bool final)
{
    struct alert_notice n;
    unsigned shift;

    l->attempts++;
    clear(l);
    pthread_mutex_lock(&d->lock);
    l->count.failed++;
    pthread_mutex_unlock(&d->lock);
    final = final || (head(d, l, &n) && n.event == ALERT_HEARTBEAT);
    trouble(d, l, l->key, words, final);
    if (final) {
        pop(d, l, false);
        return;
    }
    shift = l->attempts - 1 < 6 ? l->attempts - 1 : 6;
    l->due_ms = now_ms() + (BACKOFF_MS_MIN << shift < BACKOFF_MS_MAX ? BACKOFF_MS_MIN << shift
                                                                     : BACKOFF_MS_MAX);
}

static void taken(struct deliver *d, struct lane *l)
{
    clear(l);
    pop(d, l, true);
}

/* ---- HTTP and SMTP ---------------------------------------------------------------------------------------------- */

static size_t on_answer(char *bytes, size_t size, size_t count, void *context)
{
    struct lane *l = context;

    for (size_t k = 0; k < size * count && l->answer_size < ANSWER_KEPT; k++) {
        l->answer[l->answer_size++] = bytes[k] >= ' ' && bytes[k] < 127 ? bytes[k] : ' ';
    }
    l->answer[l->answer_size] = '\0';
    return size * count;
}

static size_t on_send(char *to, size_t size, size_t count, void *context)
{
    struct lane *l = context;
    const size_t left = l->size - l->sent, n = left < size * count ? left : size * count;

    memcpy(to, l->body + l->sent, n);
    l->sent += n;
    return n;
}

static void add_header(struct lane *l, const char *name, const char *value)
{
    char text[ALERT_SECRET_MAX + 64];
    struct curl_slist *more;

    snprintf(text, sizeof(text), "%s: %s", name, value);
    more = curl_slist_append(l->headers, text);
    l->headers = more != NULL ? more : l->headers;
    explicit_bzero(text, sizeof(text));
}

static void set_http(struct lane *l)
{
    char url[ALERT_URL_MAX + 32];

    snprintf(url, sizeof(url), "%s%s", l->receiver.url,
             l->receiver.kind == RECEIVER_ALERTMANAGER ? "/api/v2/alerts" : "");
    add_header(l, "Content-Type", "application/json");
    add_header(l, "Idempotency-Key", l->key);
    add_header(l, "Expect", ""); /* no round trip before the body */
    if (l->receiver.authorization[0] != '\0') {
        add_header(l, "Authorization", l->receiver.authorization);
    }
    curl_easy_setopt(l->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(l->easy, CURLOPT_URL, url);
    curl_easy_setopt(l->easy, CURLOPT_HTTPHEADER, l->headers);
    curl_easy_setopt(l->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(l->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)l->size);
    curl_easy_setopt(l->easy, CURLOPT_POSTFIELDS, l->body);
    curl_easy_setopt(l->easy, CURLOPT_USERAGENT, "foliot/" FOLIOT_VERSION);
}

static void set_smtp(struct lane *l)
{
    curl_easy_setopt(l->easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    curl_easy_setopt(l->easy, CURLOPT_URL, l->receiver.url);
    curl_easy_setopt(l->easy, CURLOPT_MAIL_FROM, l->receiver.from);
    for (uint32_t k = 0; k < l->receiver.to_count; k++) {
        struct curl_slist *more = curl_slist_append(l->to, l->receiver.to[k]);
        l->to = more != NULL ? more : l->to;
    }
    curl_easy_setopt(l->easy, CURLOPT_MAIL_RCPT, l->to);
    curl_easy_setopt(l->easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(l->easy, CURLOPT_READFUNCTION, on_send);
    curl_easy_setopt(l->easy, CURLOPT_READDATA, l);
    if (l->receiver.user[0] != '\0') { /* a password never goes in the clear */
        curl_easy_setopt(l->easy, CURLOPT_USERNAME, l->receiver.user);
        curl_easy_setopt(l->easy, CURLOPT_PASSWORD, l->receiver.password);
    }
    curl_easy_setopt(l->easy, CURLOPT_USE_SSL,
                     (long)(l->receiver.user[0] != '\0' ? CURLUSESSL_ALL : CURLUSESSL_TRY));
}

static void start_curl(struct deliver *d, struct lane *l)
{
    l->answer_size = l->sent = 0;
    l->answer[0] = l->words[0] = '\0';
    curl_easy_reset(l->easy); /* keeps its connections */
    curl_easy_setopt(l->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(l->easy, CURLOPT_ERRORBUFFER, l->words);
    curl_easy_setopt(l->easy, CURLOPT_TIMEOUT_MS, (long)(l->receiver.timeout.ns / NS_PER_MS));
    curl_easy_setopt(l->easy, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(l->easy, CURLOPT_WRITEDATA, l);
    curl_easy_setopt(l->easy, CURLOPT_PRIVATE, l);
    if (l->receiver.authority[0] != '\0') {
        curl_easy_setopt(l->easy, CURLOPT_CAINFO, l->receiver.authority);
    }
    if (l->receiver.kind == RECEIVER_EMAIL) {
        set_smtp(l);
    } else {
        set_http(l);
    }
    if (curl_multi_add_handle(d->multi, l->easy) != CURLM_OK) {
        failed(d, l, "out of memory", false);
        return;
    }
    l->in_curl = true;
}

static void on_curl_done(struct deliver *d, struct lane *l, CURLcode code)
{
    char words[ANSWER_KEPT + 64];
    long status = 0;

    curl_easy_getinfo(l->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(d->multi, l->easy);
    l->in_curl = false;
    if (code != CURLE_OK) { /* strerror names no host and no URL, as the error buffer does */
        snprintf(words, sizeof(words), "%s%s", curl_easy_strerror(code),
                 l->receiver.kind == RECEIVER_EMAIL && status >= 400
                     ? " (refused by the mail server)"
                     : "");
        failed(d, l, words, false);
    } else if (l->receiver.kind != RECEIVER_EMAIL && (status < 200 || status > 299)) {
        snprintf(words, sizeof(words), "HTTP status %ld: %s", status, l->answer);
        failed(d, l, words,
               status >= 400 && status < 500 && status != 408 && status != 425 && status != 429);
    } else {
        taken(d, l);
    }
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

static int body_fd(const struct lane *l)
{
    const int fd = memfd_create("foliot-notice", MFD_CLOEXEC);

    if (fd >= 0 &&
        (write(fd, l->body, l->size) != (ssize_t)l->size || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int spawn(struct lane *l, const struct alert_notice *n, int in, pid_t *ret_pid)
{
    char *argv[ALERT_ARGUMENT_MAX + 1] = {NULL}, event[64], key[96], severity[48];
    char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    char *envp[] = {path, event, key, severity, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, pipe;
    int r;

    snprintf(event, sizeof(event), "FOLIOT_EVENT=%s", alert_event_word(n->event));
    snprintf(key, sizeof(key), "FOLIOT_KEY=%s", n->key);
    snprintf(severity, sizeof(severity), "FOLIOT_SEVERITY=%s", alert_severity_word(n->severity));
    for (uint32_t k = 0; k < l->receiver.argument_count; k++) {
        argv[k] = l->receiver.arguments[k];
    }
    sigemptyset(&none);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &pipe);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    r = posix_spawn(ret_pid, argv[0], &files, &attributes, argv, envp);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return -r;
}

static void start_command(struct deliver *d, struct lane *l, const struct alert_notice *n)
{
    const int in = body_fd(l);
    const int r = in < 0 ? -errno : spawn(l, n, in, &l->child);

    if (in >= 0) {
        close(in);
    }
    if (r < 0) {
        l->child = 0;
        failed(d, l, strerror(-r), false);
        return;
    }
    l->child_fd =
        (int)syscall(SYS_pidfd_open, l->child, 0); /* without one we look once in a while */
    l->started_ms = now_ms();
}

static void look_at_command(struct deliver *d, struct lane *l)
{
    char words[64];
    int status = 0;
    const pid_t r = waitpid(l->child, &status, WNOHANG);

    if (r == 0 && now_ms() - l->started_ms > l->receiver.timeout.ns / NS_PER_MS) {
        kill(-l->child, SIGKILL); /* its children, too */
        (void)waitpid(l->child, &status, 0);
    } else if (r == 0) {
        return;
    }
    if (l->child_fd >= 0) {
        close(l->child_fd);
    }
    l->child = 0;
    l->child_fd = -1;
    if (r > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        taken(d, l);
        return;
    }
    snprintf(words, sizeof(words),
             r == 0 ? "the command took too long" : "the command ended with status %d",
             WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    failed(d, l, words, false);
}

/* ---- the thread ------------------------------------------------------------------------------------------------- */

static void start(struct deliver *d, struct lane *l)
{
    struct alert_notice n;

    if (l->in_curl || l->child != 0 || now_ms() < l->due_ms || !head(d, l, &n)) {
        return;
    }
    snprintf(l->key, sizeof(l->key), "%s", n.key);
    if (alert_payload(&l->receiver, &n, &l->body, &l->size) < 0) {
        l->body = NULL;
        failed(d, l, "out of memory", false);
    } else if (l->receiver.kind == RECEIVER_COMMAND) {
        start_command(d, l, &n);
    } else {
        start_curl(d, l);
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
    int64_t next = now_ms() + IDLE_MS;

    for (size_t k = 0; k < d->lane_count; k++) {
        struct lane *l = &d->lanes[k];
        struct alert_notice n;
        if (l->child != 0) {
            const int64_t look = now_ms() + (l->child_fd >= 0 ? 1000 : 20);
            next = look < next ? look : next;
        } else if (!l->in_curl && head(d, l, &n) && l->due_ms < next) {
            next = l->due_ms;
        }
    }
    next -= now_ms();
    return next < 0 ? 0 : (int)next;
}

static bool stopping(struct deliver *d)
{
    bool stop;
    int64_t at;

    pthread_mutex_lock(&d->lock);
    stop = d->stop;
    at = d->stop_at_ms;
    pthread_mutex_unlock(&d->lock);
    return stop && (now_ms() >= at || waiting(d) == 0);
}

static void wait_for_something(struct deliver *d)
{
    struct curl_waitfd fds[ALERT_RECEIVER_MAX];
    unsigned count = 0;
    int timeout = timeout_ms(d);
    bool stop;

    for (size_t k = 0; k < d->lane_count; k++) {
        if (d->lanes[k].child != 0 && d->lanes[k].child_fd >= 0) {
            fds[count++] =
                (struct curl_waitfd){.fd = d->lanes[k].child_fd, .events = CURL_WAIT_POLLIN};
        }
    }
    pthread_mutex_lock(&d->lock);
    stop = d->stop;
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
                struct lane *l = NULL;
                curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &l);
                on_curl_done(d, l, code);
            }
        }
        for (size_t k = 0; k < d->lane_count; k++) {
            if (d->lanes[k].child != 0) {
                look_at_command(d, &d->lanes[k]);
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
        struct lane *l = &d->lanes[k];
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

/* Signals are the main thread's. */
static int start_thread(struct deliver *d)
{
    sigset_t all, before;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&d->thread, NULL, run, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

int deliver_new(const struct alert_receiver *receivers, size_t count, deliver_on_trouble on_trouble,
                void *context, struct deliver **ret)
{
    struct deliver *d = calloc(1, sizeof(*d) + count * sizeof(d->lanes[0]));
    bool made = d != NULL && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    int r;

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
    r = made ? start_thread(d) : -ENOMEM;
    if (r < 0) {
        free_all(d);
        return r;
    }
    *ret = d;
    return 0;
}

size_t deliver_free(struct deliver *d, unsigned wait_ms)
{
    size_t left;

    if (d == NULL) {
        return 0;
    }
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    d->stop_at_ms = now_ms() + wait_ms;
    pthread_mutex_unlock(&d->lock);
    curl_multi_wakeup(d->multi);
    pthread_join(d->thread, NULL);
    left = waiting(d);
    free_all(d);
    return left;
}

void deliver_counters(struct deliver *d, size_t receiver, struct deliver_counters *ret)
{
    pthread_mutex_lock(&d->lock);
    *ret = d->lanes[receiver].count;
    pthread_mutex_unlock(&d->lock);
}

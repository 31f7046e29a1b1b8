/* deliver_send.c: one attempt at one receiver: HTTP, SMTP, a command. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/alert/deliver_internal.h"

/* ---- HTTP and SMTP ---------------------------------------------------------------------------------------------- */

static size_t on_answer(char *bytes, size_t size, size_t count, void *context)
{
    struct delivery_queue *l = context;

    for (size_t k = 0; k < size * count && l->answer_size < ANSWER_KEPT; k++) {
        l->answer[l->answer_size++] = bytes[k] >= ' ' && bytes[k] < 127 ? bytes[k] : ' ';
    }
    l->answer[l->answer_size] = '\0';
    return size * count;
}

static size_t on_send(char *to, size_t size, size_t count, void *context)
{
    struct delivery_queue *l = context;
    const size_t left = l->size - l->sent, n = left < size * count ? left : size * count;

    memcpy(to, l->body + l->sent, n);
    l->sent += n;
    return n;
}

static void add_header(struct delivery_queue *l, const char *name, const char *value)
{
    char text[ALERT_SECRET_MAX + 64];

    snprintf(text, sizeof(text), "%s: %s", name, value);
    struct curl_slist *more = curl_slist_append(l->headers, text);
    l->headers = more != NULL ? more : l->headers;
    explicit_bzero(text, sizeof(text));
}

static void set_http(struct delivery_queue *l)
{
    char url[ALERT_URL_MAX + 32];

    snprintf(url, sizeof(url), "%s%s", l->receiver.url,
             l->receiver.kind == RECEIVER_ALERTMANAGER ? "/api/v2/alerts" : "");
    add_header(l, "Content-Type", "application/json");
    add_header(l, "Idempotency-Key", l->key);
    add_header(l, "Expect", ""); /* no extra round trip before the body */
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

static void set_smtp(struct delivery_queue *l)
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
    if (l->receiver.user[0] != '\0') { /* a password is never sent in clear text */
        curl_easy_setopt(l->easy, CURLOPT_USERNAME, l->receiver.user);
        curl_easy_setopt(l->easy, CURLOPT_PASSWORD, l->receiver.password);
    }
    curl_easy_setopt(l->easy, CURLOPT_USE_SSL,
                     (long)(l->receiver.user[0] != '\0' ? CURLUSESSL_ALL : CURLUSESSL_TRY));
}

void deliver_start_curl(struct deliver *d, struct delivery_queue *l)
{
    l->answer_size = l->sent = 0;
    l->answer[0] = l->words[0] = '\0';
    curl_easy_reset(l->easy); /* the connections stay open */
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
        deliver_failed(d, l, "out of memory", false);
        return;
    }
    l->in_curl = true;
}

void deliver_on_curl_done(struct deliver *d, struct delivery_queue *l, CURLcode code)
{
    char words[ANSWER_KEPT + 64];
    long status = 0;

    curl_easy_getinfo(l->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(d->multi, l->easy);
    l->in_curl = false;
    if (code != CURLE_OK) { /* the error buffer names hosts and URLs; this does not */
        snprintf(words, sizeof(words), "%s%s", curl_easy_strerror(code),
                 l->receiver.kind == RECEIVER_EMAIL && status >= 400
                     ? " (refused by the mail server)"
                     : "");
        deliver_failed(d, l, words, false);
    } else if (l->receiver.kind != RECEIVER_EMAIL && (status < 200 || status > 299)) {
        snprintf(words, sizeof(words), "HTTP status %ld: %s", status, l->answer);
        deliver_failed(d, l, words,
                       status >= 400 && status < 500 && status != 408 && status != 425 &&
                           status != 429);
    } else {
        deliver_taken(d, l);
    }
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

static int body_fd(const struct delivery_queue *l)
{
    const int fd = memfd_create("foliot-notice", MFD_CLOEXEC);

    if (fd >= 0 &&
        (write(fd, l->body, l->size) != (ssize_t)l->size || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int spawn(struct delivery_queue *l, const struct alert_notice *n, int in, pid_t *ret_pid)
{
    char *argv[ALERT_ARGUMENT_MAX + 1] = {NULL}, event[64], key[96], severity[48];
    char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    char *envp[] = {path, event, key, severity, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, pipe;

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
    int r = posix_spawn(ret_pid, argv[0], &files, &attributes, argv, envp);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return -r;
}

void deliver_start_command(struct deliver *d, struct delivery_queue *l,
                           const struct alert_notice *n)
{
    const int in = body_fd(l);
    const int r = in < 0 ? -errno : spawn(l, n, in, &l->child);

    if (in >= 0) {
        close(in);
    }
    if (r < 0) {
        l->child = 0;
        deliver_failed(d, l, strerror(-r), false);
        return;
    }
    l->child_fd = (int)syscall(SYS_pidfd_open, l->child, 0); /* without a pidfd the thread polls */
    l->started_ms = deliver_now_ms();
}

void deliver_look_at_command(struct deliver *d, struct delivery_queue *l)
{
    char words[64];
    int status = 0;
    const pid_t r = waitpid(l->child, &status, WNOHANG);

    if (r == 0 && deliver_now_ms() - l->started_ms > l->receiver.timeout.ns / NS_PER_MS) {
        kill(-l->child, SIGKILL); /* and the command's children */
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
        deliver_taken(d, l);
        return;
    }
    snprintf(words, sizeof(words),
             r == 0 ? "the command took too long" : "the command ended with status %d",
             WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    deliver_failed(d, l, words, false);
}

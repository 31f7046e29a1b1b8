/* client.c: libcurl's multi interface on an sd-event loop. */
#include "platform/http/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

struct http_client {
    sd_event *loop;
    CURLM *multi;
    CURL *easy;
    sd_event_source *timer;
    struct curl_slist *headers, *connect_to;
    char *body, *answer;
    size_t answer_size, answer_max;
    bool busy, too_large, fresh;
    int unix_fd;
    bool (*check)(void *context, int fd);
    char words[CURL_ERROR_SIZE];
    http_done done;
    void *context;
};

static size_t on_bytes(char *bytes, size_t one, size_t count, void *context)
{
    struct http_client *c = context;
    if (count > c->answer_max - c->answer_size) {
        c->too_large = true;
        return 0;
    }
    char *larger = realloc(c->answer, c->answer_size + count + 1);
    if (larger == NULL) {
        return 0;
    }
    memcpy(larger + c->answer_size, bytes, count);
    c->answer = larger;
    c->answer_size += count;
    c->answer[c->answer_size] = 0;
    return count;
}

static int error_of(CURLcode code)
{
    switch (code) {
    case CURLE_OK:
        return 0;
    case CURLE_OPERATION_TIMEDOUT:
        return -ETIMEDOUT;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
        return -ECONNREFUSED;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        return -EACCES;
    case CURLE_OUT_OF_MEMORY:
        return -ENOMEM;
    default:
        return -EIO;
    }
}

static void clear(struct http_client *c)
{
    curl_slist_free_all(c->headers);
    curl_slist_free_all(c->connect_to);
    c->headers = c->connect_to = NULL;
    free(c->body);
    free(c->answer);
    c->body = c->answer = NULL;
    c->answer_size = 0;
}

static void tell(struct http_client *c, CURLcode code)
{
    long status = 0;
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    const struct http_result result = {.error = c->too_large ? -EMSGSIZE : error_of(code),
                                       .status = (unsigned)status,
                                       .body = c->answer != NULL ? c->answer : "",
                                       .size = c->answer_size,
                                       .words = c->too_large       ? "the answer is too large"
                                                : c->words[0] != 0 ? c->words
                                                                   : curl_easy_strerror(code)};
    char *answer = c->answer; /* a copy: the callback may start the next call */
    c->answer = NULL;
    clear(c);
    c->busy = false;
    c->done(c->context, &result);
    free(answer);
}

static void check_done(struct http_client *c)
{
    int left = 0;
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &left)) != NULL;) {
        if (m->msg == CURLMSG_DONE) {
            const CURLcode code = m->data.result;
            curl_multi_remove_handle(c->multi, c->easy);
            tell(c, code);
            return;
        }
    }
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *context)
{
    struct http_client *c = context;
    int running = 0;
    const int mask = (events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? CURL_CSELECT_IN : 0) |
                     (events & (EPOLLOUT | EPOLLHUP | EPOLLERR) ? CURL_CSELECT_OUT : 0);
    curl_multi_socket_action(c->multi, fd, mask, &running);
    check_done(c);
    return 0;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *own)
{
    struct http_client *c = context;
    sd_event_source *source = own;
    if (what == CURL_POLL_REMOVE) {
        sd_event_source_disable_unref(source);
        curl_multi_assign(c->multi, fd, NULL);
        return 0;
    }
    const uint32_t events = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0u) |
                            (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0u);
    if (source != NULL) {
        return sd_event_source_set_io_events(source, events) < 0 ? -1 : 0;
    }
    if (sd_event_add_io(c->loop, &source, fd, events, on_io, c) < 0) {
        return -1;
    }
    curl_multi_assign(c->multi, fd, source);
    return 0;
}

static int on_timer(sd_event_source *source, uint64_t at, void *context)
{
    struct http_client *c = context;
    int running = 0;
    curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    check_done(c);
    return 0;
}

static int on_timeout(CURLM *multi, long timeout_ms, void *context)
{
    struct http_client *c = context;
    uint64_t now = 0;
    if (timeout_ms < 0) {
        sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
        return 0;
    }
    sd_event_now(c->loop, CLOCK_MONOTONIC, &now);
    sd_event_source_set_time(c->timer, now + (uint64_t)timeout_ms * 1000);
    sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
    return 0;
}

/* Connections, TLS sessions and all other data that libcurl keeps between calls belong to these two handles. */
static int make_handles(struct http_client *c)
{
    CURLM *multi = curl_multi_init();
    CURL *easy = curl_easy_init();
    if (multi == NULL || easy == NULL) {
        curl_easy_cleanup(easy);
        curl_multi_cleanup(multi);
        return -ENOMEM;
    }
    curl_easy_cleanup(c->easy);
    curl_multi_cleanup(c->multi);
    sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timeout);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, c);
    c->multi = multi;
    c->easy = easy;
    return 0;
}

int http_client_open(sd_event *loop, struct http_client **ret_client)
{
    static bool global;
    struct http_client *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return -ENOMEM;
    }
    if (!global && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(c);
        return -ENOMEM;
    }
    global = true;
    c->loop = sd_event_ref(loop);
    int r = sd_event_add_time(loop, &c->timer, CLOCK_MONOTONIC, UINT64_MAX, 1, on_timer, c);
    r = r < 0 ? r : make_handles(c);
    if (r < 0) {
        http_client_close(c);
        return r;
    }
    *ret_client = c;
    return 0;
}

void http_client_close(struct http_client *c)
{
    if (c == NULL) {
        return;
    }
    if (c->busy) {
        curl_multi_remove_handle(c->multi, c->easy);
    }
    curl_easy_cleanup(c->easy);
    curl_multi_cleanup(c->multi);
    clear(c);
    sd_event_source_disable_unref(c->timer);
    sd_event_unref(c->loop);
    free(c);
}

bool http_client_busy(const struct http_client *c)
{
    return c->busy;
}

void http_client_reset(struct http_client *c)
{
    c->fresh = true;
}

static void set_tls(CURL *e, const struct http_call *call)
{
    curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_3);
    curl_easy_setopt(e, CURLOPT_CAINFO, call->authority);
    curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
    /* without an authority, only the pinned key proves the server */
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, call->authority != NULL ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, call->authority != NULL ? 2L : 0L);
    curl_easy_setopt(e, CURLOPT_PINNEDPUBLICKEY, call->pin);
    curl_easy_setopt(e, CURLOPT_SSLCERT, call->certificate);
    curl_easy_setopt(e, CURLOPT_SSLKEY, call->key);
}

/* CURLINFO_ACTIVESOCKET is not yet known when on_ready needs the socket. */
static curl_socket_t on_open(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct http_client *c = context;
    c->unix_fd = socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                        address->protocol);
    return c->unix_fd >= 0 ? c->unix_fd : CURL_SOCKET_BAD;
}

/* Called when the socket is connected, before anything is sent. */
static int on_ready(void *context, char *own, char *other, int other_port, int own_port)
{
    struct http_client *c = context;
    return c->check(c->context, c->unix_fd) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static int set_up(struct http_client *c, const struct http_call *call)
{
    CURL *e = c->easy;
    const bool https = strncmp(call->url, "https:", 6) == 0;
    if (https && call->authority == NULL && call->pin == NULL) {
        return -EINVAL;
    }
    c->body = malloc(call->size + 1);
    if (c->body == NULL) {
        return -ENOMEM;
    }
    memcpy(c->body, call->body != NULL ? call->body : "", call->size);
    c->headers = curl_slist_append(NULL, "Expect:"); /* saves a round trip before the body */
    for (const char *const *h = call->headers; h != NULL && *h != NULL; h++) {
        c->headers = curl_slist_append(c->headers, *h);
    }
    if (call->connect_to != NULL) {
        char text[320];
        snprintf(text, sizeof(text), "::%s", call->connect_to);
        c->connect_to = curl_slist_append(NULL, text);
    }
    c->answer_max = call->answer_max;
    c->too_large = false;
    c->words[0] = 0;
    curl_easy_setopt(e, CURLOPT_URL, call->url);
    if (call->socket != NULL) {
        c->check = call->check;
        curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, call->socket);
        curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_open);
        curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, c);
        curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, on_ready);
        curl_easy_setopt(e, CURLOPT_PREREQDATA, c);
    }
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(e, CURLOPT_CONNECT_TO, c->connect_to);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->words);
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)call->timeout_ms);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)call->timeout_ms);
    curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, call->method);
    if (call->method == NULL || strcmp(call->method, "GET") != 0) {
        curl_easy_setopt(e, CURLOPT_POST, 1L);
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, c->body);
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->size);
    } else {
        curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
    }
    if (https) {
        set_tls(e, call);
    }
    return 0;
}

int http_client_call(struct http_client *c, const struct http_call *call, http_done done,
                     void *context)
{
    if (c->busy) {
        return -EBUSY;
    }
    /* CURLOPT_FRESH_CONNECT is not enough: the old connection stays, and the call after this one uses it again. */
    int r = c->fresh ? make_handles(c) : 0;
    c->fresh = c->fresh && r < 0;
    r = r < 0 ? r : set_up(c, call);
    if (r < 0) {
        clear(c);
        return r;
    }
    c->done = done;
    c->context = context;
    c->busy = true;
    if (curl_multi_add_handle(c->multi, c->easy) != CURLM_OK) {
        c->busy = false;
        clear(c);
        return -ENOMEM;
    }
    return 0;
}

int http_call_now(const struct http_call *call, http_done done, void *context)
{
    sd_event *loop = NULL;
    struct http_client *c = NULL;
    int r = sd_event_new(&loop);
    r = r < 0 ? r : http_client_open(loop, &c);
    r = r < 0 ? r : http_client_call(c, call, done, context);
    while (r >= 0 && c->busy) {
        r = sd_event_run(loop, UINT64_MAX);
    }
    http_client_close(c);
    sd_event_unref(loop);
    return r < 0 ? r : 0;
}

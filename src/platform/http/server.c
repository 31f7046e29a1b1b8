/* server.c: runs libmicrohttpd on an sd-event loop: its socket and its timer. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "platform/http/server_internal.h"

enum {
    SWEEP_MS = 1000,
    CONNECTION_SLACK = 64 /* for connections that were cut and are not yet closed */
};

int64_t http_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* ---- the loop ---- */

/* Sets the timer only to an earlier time. A timer that fires for nothing is cheaper than setting it with each packet. */
void http_server_arm(struct http_server *s, uint64_t delay_us)
{
    uint64_t now = 0;
    if (s->timer == NULL || sd_event_now(s->config.loop, CLOCK_MONOTONIC, &now) < 0) {
        return;
    }
    if (s->armed_us == 0 || now + delay_us < s->armed_us) {
        s->armed_us = now + delay_us;
        sd_event_source_set_time(s->timer, s->armed_us);
        sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
    }
}

/* libmicrohttpd may have more work than its epoll shows. Its timeout tells when. */
static void run(struct http_server *s)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
    if (s->running) {
        return;
    }
    s->running = true;
    MHD_run(s->daemon);
    s->running = false;
    if (MHD_get_timeout(s->daemon, &timeout_ms) == MHD_YES) {
        http_server_arm(s, timeout_ms * 1000);
    }
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *context)
{
    run(context);
    return 0;
}

static int on_timer(sd_event_source *source, uint64_t at, void *context)
{
    struct http_server *s = context;
    s->armed_us = 0;
    run(s);
    return 0;
}

static int on_sweep(sd_event_source *source, uint64_t at, void *context)
{
    struct http_server *s = context;
    http_connections_watch(s);
    sd_event_source_set_time(source, at + SWEEP_MS * 1000);
    sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    run(s);
    return 0;
}

static int take_socket(int fd)
{
    return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : fd;
}

static int start_daemon(struct http_server *s, int fd)
{
    const struct http_server_config *c = &s->config;
    struct MHD_OptionItem options[16];
    int n = 0;
    options[n++] = (struct MHD_OptionItem){MHD_OPTION_LISTEN_SOCKET, fd, NULL};
    options[n++] = (struct MHD_OptionItem){MHD_OPTION_CONNECTION_LIMIT,
                                           c->connection_max + CONNECTION_SLACK, NULL};
    options[n++] = (struct MHD_OptionItem){MHD_OPTION_CONNECTION_TIMEOUT, c->idle_s, NULL};
    options[n++] = (struct MHD_OptionItem){MHD_OPTION_CONNECTION_MEMORY_LIMIT, 24 << 10, NULL};
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;
    if (c->key != NULL) {
        flags |= MHD_USE_TLS;
        options[n++] =
            (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)c->key};
        options[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0,
                                               (void *)(uintptr_t)c->certificate};
        options[n++] = (struct MHD_OptionItem){
            MHD_OPTION_HTTPS_PRIORITIES, 0,
            (void *)(uintptr_t) "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"};
        if (c->trust != NULL) {
            options[n++] =
                (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, (void *)(uintptr_t)c->trust};
        }
    }
    options[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, http_request_on_access, s, MHD_OPTION_ARRAY,
                                 options, MHD_OPTION_NOTIFY_COMPLETED, http_request_on_completed, s,
                                 MHD_OPTION_NOTIFY_CONNECTION, http_connection_on_change, s,
                                 MHD_OPTION_END);
    return s->daemon == NULL ? -EINVAL : 0;
}

static int add_sources(struct http_server *s)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    uint64_t now = 0;
    if (info == NULL || info->epoll_fd < 0) {
        return -EINVAL;
    }
    int r = sd_event_now(s->config.loop, CLOCK_MONOTONIC, &now);
    r = r < 0 ? r : sd_event_add_io(s->config.loop, &s->io, info->epoll_fd, EPOLLIN, on_io, s);
    r = r < 0 ? r
              : sd_event_add_time(s->config.loop, &s->timer, CLOCK_MONOTONIC, now, 1, on_timer, s);
    r = r < 0 ? r
              : sd_event_add_time(s->config.loop, &s->sweep, CLOCK_MONOTONIC, now + SWEEP_MS * 1000,
                                  1, on_sweep, s);
    return r < 0 ? r : 0;
}

static bool is_local(const struct http_server_config *config)
{
    return config->address != NULL && config->address[0] == '/';
}

int http_server_open(const struct http_server_config *config, struct http_server **ret_server)
{
    struct http_server *s = calloc(1, sizeof(*s));
    struct sockaddr_storage bound;
    socklen_t size = sizeof(bound);
    if (s == NULL) {
        return -ENOMEM;
    }
    s->config = *config;
    const int fd = config->socket > 0 ? take_socket(config->socket) : http_listen(config->address);
    if (fd < 0) {
        free(s);
        return fd;
    }
    if (!is_local(config) && getsockname(fd, (struct sockaddr *)&bound, &size) == 0) {
        s->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                    : ((struct sockaddr_in *)&bound)->sin_port);
    }
    int r = start_daemon(s, fd);
    if (r < 0) {
        close(fd);
        free(s);
        return r;
    }
    r = add_sources(s);
    if (r < 0) {
        http_server_close(s);
        return r;
    }
    *ret_server = s;
    return 0;
}

void http_server_close(struct http_server *s)
{
    if (s == NULL) {
        return;
    }
    s->closing = true;
    for (struct http_request *r = s->requests; r != NULL; r = r->next) {
        if (r->suspended) {
            r->suspended = false;
            MHD_resume_connection(r->mhd);
        }
    }
    MHD_run(s->daemon);
    MHD_stop_daemon(s->daemon);
    sd_event_source_disable_unref(s->io);
    sd_event_source_disable_unref(s->timer);
    sd_event_source_disable_unref(s->sweep);
    if (is_local(&s->config)) {
        (void)unlink(s->config.address);
    }
    free(s);
}

int http_server_reopen(struct http_server **server, const char *certificate, const char *trust)
{
    struct http_server *s = *server;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_LISTEN_FD);
    struct http_server_config config = s->config;
    const struct http_counters counters = s->counters;
    const int fd = info != NULL ? fcntl(info->listen_fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (fd < 0) {
        return -EBADF;
    }
    config.socket = fd;
    config.certificate = certificate;
    config.trust = trust;
    http_server_close(s);
    *server = NULL;
    const int r = http_server_open(&config, server);
    if (r == 0) {
        (*server)->counters = counters;
        (*server)->counters.connections_now = 0;
    }
    return r;
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

void http_server_counters(const struct http_server *s, struct http_counters *ret)
{
    *ret = s->counters;
}

/* ranks.c */
#include "ranks.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAR_MS 120000

static char words[1000];

const char *ranks_words(void)
{
    return words;
}

void ranks_give_up(const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", getpid(), what, words);
    _exit(1);
}

/* -- the leader ------------------------------------------------------------------------------- */

struct led ranks_fork(void)
{
    struct led led = {-1, -1};
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return led;
    }
    led.pid = fork();
    led.fd = ends[led.pid == 0];
    close(ends[led.pid != 0]);
    return led;
}

bool ranks_hear(const struct led *led, void *bytes, size_t size)
{
    struct pollfd look = {.fd = led->fd, .events = POLLIN};

    return poll(&look, 1, HEAR_MS) == 1 && recv(led->fd, bytes, size, MSG_WAITALL) == (ssize_t)size;
}

bool ranks_go_on(const struct led *led)
{
    return send(led->fd, "", 1, MSG_NOSIGNAL) == 1;
}

void ranks_end(const struct led *led)
{
    if (led->pid <= 0) {
        return;
    }
    (void)kill(led->pid, SIGKILL);
    while (waitpid(led->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    close(led->fd);
}

/* -- a rank ----------------------------------------------------------------------------------- */

void ranks_meet(const struct led *me, char where)
{
    char byte;

    if (write(me->fd, &where, 1) != 1 || read(me->fd, &byte, 1) != 1) {
        _exit(1);
    }
}

__attribute__((format(printf, 5, 6))) static void
log_line(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
    const bool say = getenv("VERBOSE") != NULL;
    va_list arguments;

    (void)flags;
    (void)file;
    (void)line;
    if (level == NCCL_LOG_WARN || say) {
        va_start(arguments, format);
        vsnprintf(words, sizeof(words), format, arguments);
        va_end(arguments);
    }
    if (say) {
        fprintf(stderr, "%d: %s\n", getpid(), words);
    }
}

void ranks_open(struct net_client *net, const char *plugin, void **ret_context)
{
    char text[512];

    setenv("FOLIOT_NIC", "lo", 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    if (net_client_open(net, plugin, 0, text, sizeof(text)) < 0) {
        ranks_give_up(text);
    }
    if (net_init(net, 1, log_line, ret_context) != NCCL_SUCCESS) {
        ranks_give_up("init");
    }
}

/* program.c: a program beside the agent. The agent connects to its socket, or starts it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/agent/program.h"

extern char **environ;

bool program_is_left(struct program *p)
{
    if (p->child > 0 && waitpid(p->child, NULL, WNOHANG) != 0) {
        p->child = 0;
    }
    return p->child != 0;
}

void program_close(struct program *p)
{
    if (p->fd >= 0) {
        close(p->fd);
    }
    p->fd = -1;
    if (p->child > 0) {
        kill(p->child, SIGKILL);
    }
    (void)program_is_left(p);
}

static int open_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        return -ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, strlen(path));
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        const int r = -errno;
        close(fd);
        return r;
    }
    return fd < 0 ? -errno : fd;
}

static int start(struct program *p, char *const arguments[])
{
    posix_spawn_file_actions_t actions;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return -errno;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const int r = posix_spawn(&p->child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (r != 0) {
        p->child = 0;
        close(ends[0]);
        return -r;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return ends[0];
}

int program_open(struct program *p, char *const arguments[])
{
    struct stat status;
    p->fd = program_is_left(p)                ? -EBUSY
            : stat(arguments[0], &status) < 0 ? -errno
            : S_ISREG(status.st_mode)         ? start(p, arguments)
                                              : open_socket(arguments[0]);
    return p->fd;
}

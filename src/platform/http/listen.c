/* listen.c: opens the socket that a server listens on. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "platform/http/server_internal.h"

enum { BACKLOG = 1024 };

/* Removes the socket of a server that was killed. -EADDRINUSE: a server listens there; -EEXIST: it is no socket, and stays. */
static int remove_stale(const struct sockaddr_un *address)
{
    struct stat file;
    if (lstat(address->sun_path, &file) < 0) {
        return errno == ENOENT ? 0 : -errno;
    }
    if (!S_ISSOCK(file.st_mode)) {
        return -EEXIST;
    }
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    const bool answers =
        connect(fd, (const void *)address, sizeof(*address)) == 0 || errno == EAGAIN;
    close(fd);
    return answers ? -EADDRINUSE : unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Opens a Unix socket. Only its user and group may connect. The kernel reports the user of each connection. */
static int listen_local(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        return -ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, strlen(path));
    int r = remove_stale(&address);
    const int fd = r < 0 ? r : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return r < 0 ? r : -errno;
    }
    if (bind(fd, (const void *)&address, sizeof(address)) < 0 || chmod(path, 0660) < 0 ||
        listen(fd, BACKLOG) < 0) {
        r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

int http_listen(const char *address)
{
    char host[256];
    const char *colon = strrchr(address, ':');
    if (address[0] == '/') {
        return listen_local(address);
    }
    if (colon == NULL || (size_t)(colon - address) >= sizeof(host)) {
        return -EINVAL;
    }
    size_t length = (size_t)(colon - address);
    const bool bracket = length >= 2 && address[0] == '[' && address[length - 1] == ']';
    snprintf(host, sizeof(host), "%.*s", (int)(length - 2 * bracket), address + bracket);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    if (getaddrinfo(host[0] != 0 && strcmp(host, "*") != 0 ? host : NULL, colon + 1, &hints,
                    &list) != 0) {
        return -EINVAL;
    }
    const int one = 1;
    int r = -EADDRNOTAVAIL;
    const int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, list->ai_addr, list->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        r = -errno;
        if (fd >= 0) {
            close(fd);
        }
    } else {
        r = fd;
    }
    freeaddrinfo(list);
    return r;
}

/* foliot_peer.c: see foliot_peer.h. */
#include "app/foliot_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "platform/sysfs/sysfs.h"

#define LISTENS 0x0a /* TCP_LISTEN of the kernel */

static bool ours(uid_t user)
{
    return user == 0 || user == geteuid();
}

bool peer_is_ours(int fd, uid_t *ret_user)
{
    struct ucred other = {.uid = (uid_t)-1};
    socklen_t size = sizeof(other);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && ours(other.uid)) {
        return true;
    }
    *ret_user = other.uid;
    return false;
}

bool peer_is_own_machine(const char *url, uint16_t *ret_port)
{
    static const char *const names[] = {"localhost", "[::1]"};
    const char *host = strncmp(url, "http://", 7) == 0 ? url + 7 : "";
    size_t size = strcspn(host, ":/"), digits = 0;
    unsigned port = 80;

    if (host[0] == '[') {
        size = strcspn(host, "]") + 1;
    }
    bool own = strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == size;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        own = own || (strlen(names[i]) == size && strncmp(host, names[i], size) == 0);
    }
    if (own && host[size] == ':') {
        port = (unsigned)strtoul(host + size + 1, NULL, 10);
        digits = strspn(host + size + 1, "0123456789") + 1;
    }
    own =
        own && port > 0 && port < 65536 && (host[size + digits] == 0 || host[size + digits] == '/');
    if (own) {
        *ret_port = (uint16_t)port;
    }
    return own;
}

/* /proc/net/tcp or tcp6: number, local address:port, remote, state, queues, timers, retransmits, uid. */
static int look(const char *path, uint16_t port, uid_t *ret_user)
{
    const int fd = sysfs_fd(NULL, path, O_RDONLY);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    char line[512];
    int r = -ENOENT;

    while (file != NULL && r != -EPERM && fgets(line, sizeof(line), file) != NULL) {
        unsigned at, state, user;
        if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %u", &at,
                   &state, &user) == 3 &&
            state == LISTENS && at == port) {
            r = ours(user) ? 0 : -EPERM;
            *ret_user = user;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return r;
}

int peer_listens(uint16_t port, uid_t *ret_user)
{
    const int four = look("/proc/net/tcp", port, ret_user);
    const int six = four == -EPERM ? four : look("/proc/net/tcp6", port, ret_user);

    return six == -ENOENT ? four : six;
}

/* tcp_link.c: NICs' links: what they are now, from sysfs; that one of them changed, from rtnetlink.
 *
 * The counters in sysfs move with the carrier; the kernel's message may come a second later (link_watch holds back all
 * but what it thinks urgent). So the message is a reason to look at once, and nobody relies on it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tcp_private.h"

static int read_number(const char *path, uint32_t *ret)
{
    char text[32];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0) {
        return -errno;
    }
    n = read(fd, text, sizeof(text) - 1);
    const int error = errno;
    close(fd);
    if (n <= 0) {
        return n == 0 ? -EIO : -error;
    }
    text[n] = 0;
    *ret = (uint32_t)strtoul(text, NULL, 10);
    return 0;
}

int tcp_carrier(struct io *io, const char *device, uint32_t *ret_downs)
{
    struct tcp *tcp = io->driver;
    char path[512];
    uint32_t up;

    snprintf(path, sizeof(path), "%s/class/net/%s/carrier_down_count", tcp->sysfs, device);
    if (read_number(path, ret_downs) < 0) {
        *ret_downs = 0;
    }
    snprintf(path, sizeof(path), "%s/class/net/%s/carrier", tcp->sysfs, device);
    const int rc = read_number(path, &up);
    /* EINVAL: the interface is administratively down. */
    return rc == -EINVAL ? 0 : rc < 0 ? rc : up != 0;
}

/* Without it (no namespace for it, no descriptors) carriers are polled as before. */
void tcp_link_open(struct tcp *tcp)
{
    const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    struct epoll_event event = {.events = EPOLLIN, .data = {.u64 = IO_TAG_LINKS}};

    tcp->link = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (tcp->link >= 0 &&
        (bind(tcp->link, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
         epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, tcp->link, &event) < 0)) {
        close(tcp->link);
        tcp->link = -1;
    }
}

/* What it says in detail doesn't matter, nor what was lost of it: the counters are asked. */
void tcp_link_drain(struct tcp *tcp)
{
    char bytes[4096];

    while (recv(tcp->link, bytes, sizeof(bytes), MSG_DONTWAIT) >= 0 || errno == ENOBUFS) {
    }
}

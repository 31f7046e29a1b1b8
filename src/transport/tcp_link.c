/* tcp_link.c: NICs' links: their present state from sysfs, and changes from rtnetlink.
 *
 * The counters in sysfs change with the carrier. The kernel's message may come a second later (link_watch delays all messages
 * that it doesn't take as urgent). So the message is a reason to look at once, but nothing depends on it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tcp_private.h"

/* The files stay open, because each is read a hundred times a second, and opening one costs more than reading it. */
static int read_number(const struct tcp *tcp, const char *device, const char *name, int *fd,
                       uint32_t *ret)
{
    char text[32], path[512];

    if (*fd < 0) {
        snprintf(path, sizeof(path), "%s/class/net/%s/%s", tcp->sysfs, device, name);
        *fd = open(path, O_RDONLY | O_CLOEXEC);
        if (*fd < 0) {
            return -errno;
        }
    }
    ssize_t n = pread(*fd, text, sizeof(text) - 1, 0);
    if (n <= 0) {
        const int error = n == 0 ? EIO : errno;
        if (error != EINVAL) { /* the NIC is gone; another one of its name may exist */
            close(*fd);
            *fd = -1;
        }
        return -error;
    }
    text[n] = 0;
    *ret = (uint32_t)strtoul(text, NULL, 10);
    return 0;
}

static struct tcp_nic *nic_of(struct tcp *tcp, const char *device)
{
    struct tcp_nic *nic = tcp->nics;

    for (; nic < tcp->nics + tcp->nic_count; nic++) {
        if (strncmp(nic->device, device, sizeof(nic->device)) == 0) {
            return nic;
        }
    }
    if (tcp->nic_count == ARRAY_COUNT(tcp->nics)) {
        return NULL;
    }
    *nic = (struct tcp_nic){.carrier = -1, .downs = -1};
    snprintf(nic->device, sizeof(nic->device), "%s", device);
    tcp->nic_count++;
    return nic;
}

int tcp_carrier(struct io *io, const char *device, uint32_t *ret_downs)
{
    struct tcp *tcp = io->driver;
    struct tcp_nic *nic = nic_of(tcp, device);
    uint32_t up;

    if (nic == NULL) {
        return -ENOBUFS;
    }
    if (read_number(tcp, device, "carrier_down_count", &nic->downs, ret_downs) < 0) {
        *ret_downs = 0;
    }
    const int r = read_number(tcp, device, "carrier", &nic->carrier, &up);
    /* EINVAL: the interface is administratively down. */
    return r == -EINVAL ? 0 : r < 0 ? r : up != 0;
}

void tcp_link_close(struct tcp *tcp)
{
    for (uint32_t i = 0; i < tcp->nic_count; i++) {
        if (tcp->nics[i].downs >= 0) {
            close(tcp->nics[i].downs);
        }
        if (tcp->nics[i].carrier >= 0) {
            close(tcp->nics[i].carrier);
        }
    }
    if (tcp->link >= 0) {
        close(tcp->link);
    }
}

/* If it can't be opened (no namespace for it, no descriptors), carriers are polled as before. */
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

/* Drops the messages: their content isn't needed, and lost ones do no harm, because the counters are read. */
void tcp_link_drain(struct tcp *tcp)
{
    char bytes[4096];

    while (recv(tcp->link, bytes, sizeof(bytes), MSG_DONTWAIT) >= 0 || errno == ENOBUFS) {
    }
}

/* lldp_listener.c: see lldp_listener.h. */
#include "platform/netlink/lldp_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FRAME_MAX = 1518, AT_ONCE = 32 };

int lldp_open(struct lldp_listener *ret)
{
    const int fd =
        socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(LLDP_ETHERTYPE));
    if (fd < 0) {
        return -errno;
    }
    ret->fd = fd;
    return 0;
}

void lldp_close(struct lldp_listener *l)
{
    if (l->fd >= 0) {
        close(l->fd);
        l->fd = -1;
    }
}

int lldp_listen(struct lldp_listener *l, uint32_t interface)
{
    static const uint8_t group[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e};
    struct packet_mreq request = {
        .mr_ifindex = (int)interface, .mr_type = PACKET_MR_MULTICAST, .mr_alen = sizeof(group)};
    memcpy(request.mr_address, group, sizeof(group));
    return setsockopt(l->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof(request)) < 0
               ? -errno
               : 0;
}

bool lldp_next(struct lldp_listener *l, struct lldp *ret, uint32_t *ret_interface)
{
    uint8_t frame[FRAME_MAX];
    for (unsigned i = 0; l->fd >= 0 && i < AT_ONCE; i++) {
        struct sockaddr_ll from;
        socklen_t from_size = sizeof(from);
        const ssize_t size =
            recvfrom(l->fd, frame, sizeof(frame), MSG_TRUNC, (struct sockaddr *)&from, &from_size);
        if (size < 0) {
            return false;
        }
        if (size <= FRAME_MAX && from.sll_pkttype != PACKET_OUTGOING &&
            lldp_decode(frame, (size_t)size, ret)) {
            *ret_interface = (uint32_t)from.sll_ifindex;
            return true;
        }
    }
    return false;
}

/* device.c: the kernel's IPMI device, include/uapi/linux/ipmi.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/ipmi.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "platform/ipmi/ipmi.h"

enum { WAIT_MS = 2000, STRAY_MAX = 16 };

int ipmi_device_open(const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);

    return fd < 0 ? -errno : fd;
}

/* Receives the reply with this number. A late reply of an earlier request may come first. */
static int receive(int fd, long number, uint8_t ret_reply[IPMI_REPLY_MAX])
{
    for (int i = 0; i < STRAY_MAX; i++) {
        struct ipmi_addr from;
        struct ipmi_recv message = {
            .addr = (unsigned char *)&from,
            .addr_len = sizeof(from),
            .msg = {.data = ret_reply, .data_len = IPMI_REPLY_MAX},
        };
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int ready = poll(&p, 1, WAIT_MS);
        if (ready <= 0) {
            return ready == 0 ? -ETIMEDOUT : -errno;
        }
        if (ioctl(fd, IPMICTL_RECEIVE_MSG_TRUNC, &message) < 0) {
            return -errno;
        }
        if (message.recv_type == IPMI_RESPONSE_RECV_TYPE && message.msgid == number) {
            return message.msg.data_len;
        }
    }
    return -EBADMSG;
}

int ipmi_device_send(void *context, const struct ipmi_request *request,
                     uint8_t ret_reply[IPMI_REPLY_MAX])
{
    static long number;
    const int fd = *(const int *)context;
    struct ipmi_request copy = *request;
    struct ipmi_system_interface_addr to = {.addr_type = IPMI_SYSTEM_INTERFACE_ADDR_TYPE,
                                            .channel = IPMI_BMC_CHANNEL,
                                            .lun = request->lun};
    struct ipmi_req message = {
        .addr = (unsigned char *)&to,
        .addr_len = sizeof(to),
        .msgid = ++number,
        .msg = {.netfn = request->function,
                .cmd = request->command,
                .data = copy.data,
                .data_len = request->size},
    };

    return ioctl(fd, IPMICTL_SEND_COMMAND, &message) < 0 ? -errno : receive(fd, number, ret_reply);
}

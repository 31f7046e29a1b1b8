/* ethtool.c: the requests of ethtool.h. ethtool_read.c parses the answers. */
#include "platform/netlink/ethtool.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/dcbnl.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REQUEST_SIZE = 1024, WAIT_MS = 1000, I2C_ADDRESS = 0x50 };

struct ethtool {
    struct mnl_socket *generic, *route;
    uint16_t family; /* 0: the kernel does not have it */
    uint32_t sequence;
    _Alignas(struct nlmsghdr) uint8_t request[REQUEST_SIZE];
    _Alignas(struct nlmsghdr) uint8_t buffer[32768];
};

static const struct {
    const char *name;
    uint8_t command;
} questions[] = {
    [ETHTOOL_FEC] = {"fec", ETHTOOL_MSG_FEC_GET},
    [ETHTOOL_PAUSE] = {"pause", ETHTOOL_MSG_PAUSE_GET},
    [ETHTOOL_RINGS] = {"rings", ETHTOOL_MSG_RINGS_GET},
    [ETHTOOL_CHANNELS] = {"channels", ETHTOOL_MSG_CHANNELS_GET},
    [ETHTOOL_COALESCE] = {"coalesce", ETHTOOL_MSG_COALESCE_GET},
    [ETHTOOL_MODULE] = {"module", ETHTOOL_MSG_MODULE_EEPROM_GET},
    [ETHTOOL_DCB] = {"dcb", 0},
};
_Static_assert(sizeof(questions) / sizeof(questions[0]) == ETHTOOL_QUESTION_COUNT, "all of them");

const char *ethtool_question_name(enum ethtool_question question)
{
    return questions[question].name;
}

static struct nlmsghdr *begin(struct ethtool *e, uint16_t type)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(e->request);

    h->nlmsg_type = type;
    h->nlmsg_flags = NLM_F_REQUEST;
    h->nlmsg_seq = ++e->sequence;
    return h;
}

/* Sends a request and waits for its answer of one message. */
static int exchange(struct ethtool *e, struct mnl_socket *s, const struct nlmsghdr *request,
                    const struct nlmsghdr **ret_answer)
{
    if (mnl_socket_sendto(s, request, request->nlmsg_len) < 0) {
        return -errno;
    }
    for (;;) {
        struct pollfd p = {.fd = mnl_socket_get_fd(s), .events = POLLIN};
        if (poll(&p, 1, WAIT_MS) <= 0) {
            return -ETIMEDOUT;
        }
        const ssize_t n = mnl_socket_recvfrom(s, e->buffer, sizeof(e->buffer));
        int left = n > 0 ? (int)n : 0;
        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            return -errno;
        }
        for (const struct nlmsghdr *h = (const void *)e->buffer; mnl_nlmsg_ok(h, left);
             h = mnl_nlmsg_next(h, &left)) {
            if (h->nlmsg_seq != request->nlmsg_seq) {
                continue; /* the late answer of an earlier request */
            }
            if (h->nlmsg_type == NLMSG_ERROR) {
                const struct nlmsgerr *error = mnl_nlmsg_get_payload(h);
                return error->error < 0 ? error->error : -EBADMSG;
            }
            *ret_answer = h;
            return 0;
        }
    }
}

static void find_family(struct ethtool *e)
{
    struct nlmsghdr *h = begin(e, GENL_ID_CTRL);
    struct genlmsghdr *g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
    const struct nlmsghdr *answer;
    struct nlattr *attribute;

    g->cmd = CTRL_CMD_GETFAMILY;
    g->version = 1;
    mnl_attr_put_strz(h, CTRL_ATTR_FAMILY_NAME, ETHTOOL_GENL_NAME);
    if (exchange(e, e->generic, h, &answer) < 0) {
        return;
    }
    mnl_attr_for_each(attribute, answer, sizeof(*g))
    {
        if (mnl_attr_get_type(attribute) == CTRL_ATTR_FAMILY_ID &&
            mnl_attr_validate(attribute, MNL_TYPE_U16) == 0) {
            e->family = mnl_attr_get_u16(attribute);
        }
    }
}

static struct mnl_socket *open_socket(int bus)
{
    struct mnl_socket *s = mnl_socket_open2(bus, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (s != NULL && mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0) {
        mnl_socket_close(s);
        s = NULL;
    }
    return s;
}

int ethtool_open(struct ethtool **ret_ethtool)
{
    struct ethtool *e = calloc(1, sizeof(*e));

    if (e == NULL) {
        return -ENOMEM;
    }
    e->generic = open_socket(NETLINK_GENERIC);
    e->route = e->generic != NULL ? open_socket(NETLINK_ROUTE) : NULL;
    if (e->route == NULL) {
        const int r = -errno;
        ethtool_close(e);
        return r;
    }
    find_family(e);
    *ret_ethtool = e;
    return 0;
}

struct ethtool *ethtool_close(struct ethtool *e)
{
    if (e != NULL) {
        if (e->generic != NULL) {
            mnl_socket_close(e->generic);
        }
        if (e->route != NULL) {
            mnl_socket_close(e->route);
        }
        free(e);
    }
    return NULL;
}

static struct nlmsghdr *ask_generic(struct ethtool *e, enum ethtool_question question,
                                    const char *interface, unsigned page, unsigned offset)
{
    struct nlmsghdr *h = begin(e, e->family);
    struct genlmsghdr *g = mnl_nlmsg_put_extra_header(h, sizeof(*g));

    g->cmd = questions[question].command;
    g->version = 1;
    /* for every question the header is the first attribute */
    struct nlattr *nest = mnl_attr_nest_start(h, ETHTOOL_A_FEC_HEADER);
    mnl_attr_put_strz(h, ETHTOOL_A_HEADER_DEV_NAME, interface);
    if (question == ETHTOOL_FEC) {
        mnl_attr_put_u32(h, ETHTOOL_A_HEADER_FLAGS, ETHTOOL_FLAG_STATS);
    }
    mnl_attr_nest_end(h, nest);
    if (question == ETHTOOL_MODULE) {
        mnl_attr_put_u32(h, ETHTOOL_A_MODULE_EEPROM_OFFSET, offset);
        mnl_attr_put_u32(h, ETHTOOL_A_MODULE_EEPROM_LENGTH, MODULE_PAGE_SIZE);
        mnl_attr_put_u8(h, ETHTOOL_A_MODULE_EEPROM_PAGE, (uint8_t)page);
        mnl_attr_put_u8(h, ETHTOOL_A_MODULE_EEPROM_BANK, 0);
        mnl_attr_put_u8(h, ETHTOOL_A_MODULE_EEPROM_I2C_ADDRESS, I2C_ADDRESS);
    }
    return h;
}

static struct nlmsghdr *ask_dcb(struct ethtool *e, const char *interface)
{
    struct nlmsghdr *h = begin(e, RTM_GETDCB);
    struct dcbmsg *d = mnl_nlmsg_put_extra_header(h, sizeof(*d));

    d->dcb_family = AF_UNSPEC;
    d->cmd = DCB_CMD_IEEE_GET;
    mnl_attr_put_strz(h, DCB_ATTR_IFNAME, interface);
    return h;
}

int ethtool_ask(struct ethtool *e, enum ethtool_question question, const char *interface,
                unsigned page, unsigned offset, uint8_t ret_answer[ETHTOOL_ANSWER_MAX])
{
    const bool dcb = question == ETHTOOL_DCB;
    const size_t head = dcb ? sizeof(struct dcbmsg) : sizeof(struct genlmsghdr);
    const struct nlmsghdr *answer;

    if (strlen(interface) >= 16 || (!dcb && e->family == 0)) {
        return strlen(interface) >= 16 ? -ENODEV : -EOPNOTSUPP;
    }
    const int r = exchange(
        e, dcb ? e->route : e->generic,
        dcb ? ask_dcb(e, interface) : ask_generic(e, question, interface, page, offset), &answer);
    if (r < 0) {
        return r;
    }
    const size_t size = mnl_nlmsg_get_payload_len(answer);
    if (size < head || size - head > ETHTOOL_ANSWER_MAX) {
        return -EBADMSG;
    }
    memcpy(ret_answer, mnl_nlmsg_get_payload_offset(answer, head), size - head);
    return (int)(size - head);
}

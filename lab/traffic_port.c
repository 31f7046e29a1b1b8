/* traffic_port.c: asks the leaf's kernel for a flow's route. */
#include "lab/traffic_port.h"

#include "lab/machine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT_FIRST 32768
#define PORT_COUNT 28000
#define CANDIDATES 16
#define TRUNK_MAX  4096
#define LEAF_MAX   LAB_SWITCH_MAX

struct trunk {
    int leaf, interface;
    double load;
};
struct traffic_ports {
    uint16_t next;
    int count;
    struct trunk trunks[TRUNK_MAX];
};

struct traffic_ports *traffic_ports_new(void)
{
    struct traffic_ports *p = calloc(1, sizeof(*p));
    if (p != NULL) {
        /* two runs at the same time get different ports */
        p->next = (uint16_t)((unsigned)getpid() * 97U % PORT_COUNT);
    }
    return p;
}

void traffic_ports_free(struct traffic_ports *p)
{
    free(p);
}

static int read_interface(const struct nlattr *attribute, void *data)
{
    int *interface = data;
    if (mnl_attr_get_type(attribute) == RTA_OIF) {
        *interface = (int)mnl_attr_get_u32(attribute);
    }
    return MNL_CB_OK;
}

static int read_route(const struct nlmsghdr *message, void *data)
{
    return mnl_attr_parse(message, sizeof(struct rtmsg), read_interface, data);
}

static void put_address(struct nlmsghdr *m, const struct traffic_link *l,
                        const struct traffic_nic *nic, uint16_t type)
{
    char text[LAB_TEXT_SIZE];
    uint8_t bytes[16];
    if (l->ipv6) {
        lab_address6(nic->host, nic->nic, text);
        inet_pton(AF_INET6, text, bytes);
        mnl_attr_put(m, type, 16, bytes);
    } else {
        lab_address4(nic->host, nic->nic, text);
        inet_pton(AF_INET, text, bytes);
        mnl_attr_put(m, type, 4, bytes);
    }
}

/* Asks in the leaf's namespace for the interface that would forward this flow; 0: no answer. */
static int ask(struct mnl_socket *s, const struct traffic_link *l, uint32_t from, uint16_t port)
{
    char buffer[4096];
    struct nlmsghdr *m = mnl_nlmsg_put_header(buffer);
    m->nlmsg_type = RTM_GETROUTE;
    m->nlmsg_flags = NLM_F_REQUEST;
    m->nlmsg_seq = port;
    struct rtmsg *r = mnl_nlmsg_put_extra_header(m, sizeof(*r));
    r->rtm_family = l->ipv6 ? AF_INET6 : AF_INET;
    r->rtm_dst_len = r->rtm_src_len = l->ipv6 ? 128 : 32;
    put_address(m, l, l->sink, RTA_DST);
    put_address(m, l, l->source, RTA_SRC);
    mnl_attr_put_u32(m, RTA_IIF, from);
    mnl_attr_put_u8(m, RTA_IP_PROTO, l->udp ? IPPROTO_UDP : IPPROTO_TCP);
    mnl_attr_put_u16(m, RTA_SPORT, htons(port));
    mnl_attr_put_u16(m, RTA_DPORT, htons(l->sink_port));
    int interface = 0;
    if (mnl_socket_sendto(s, m, m->nlmsg_len) < 0) {
        return 0;
    }
    ssize_t n = mnl_socket_recvfrom(s, buffer, sizeof(buffer));
    if (n <= 0 || mnl_cb_run(buffer, (size_t)n, port, 0, read_route, &interface) < 0) {
        return 0;
    }
    return interface;
}

static struct trunk *find(struct traffic_ports *p, int leaf, int interface)
{
    for (int i = 0; i < p->count; i++) {
        if (p->trunks[i].leaf == leaf && p->trunks[i].interface == interface) {
            return &p->trunks[i];
        }
    }
    if (p->count == TRUNK_MAX) {
        return NULL;
    }
    p->trunks[p->count] = (struct trunk){leaf, interface, 0};
    return &p->trunks[p->count++];
}

int traffic_ports_choose(struct traffic_ports *p, struct traffic_link *link, int *ret_trunk)
{
    struct lab_port port = lab_leaf_port(link->lab, link->source->host, link->source->nic);
    struct trunk *best = NULL;
    *ret_trunk = 0;
    uint16_t first = (uint16_t)(PORT_FIRST + p->next);
    p->next = (uint16_t)((p->next + CANDIDATES) % PORT_COUNT);
    link->source_port = first;
    if (link->source->leaf == link->sink->leaf) {
        return 0;
    }
    int r = machine_enter_network(port.space);
    if (r < 0) {
        return r;
    }
    uint32_t from = if_nametoindex(port.interface);
    struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    if (s == NULL || mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0) {
        r = -errno;
    }
    for (uint16_t k = 0; r == 0 && k < CANDIDATES; k++) {
        int interface = ask(s, link, from, (uint16_t)(first + k));
        struct trunk *t = interface > 0 ? find(p, link->source->leaf, interface) : NULL;
        if (t != NULL && (best == NULL || t->load < best->load)) {
            best = t;
            link->source_port = (uint16_t)(first + k);
            *ret_trunk = interface;
        }
    }
    if (best != NULL) {
        best->load += link->rate_bps > 0 ? link->rate_bps : 1;
    }
    if (s != NULL) {
        mnl_socket_close(s);
    }
    return r;
}

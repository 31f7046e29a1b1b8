/* Link monitor: recorded kinds of messages, and a real veth in a namespace of its own where we may.
 */
#include "platform/netlink/link_monitor.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct link_monitor *monitor(void)
{
    struct link_monitor *m = NULL;
    assert_int_equal(link_monitor_open(&m), 0);
    return m;
}

struct link_message {
    uint16_t type;
    int index;
    const char *name;
    unsigned flags;
    uint32_t downs;
    uint8_t mac;
};

static void feed(struct link_monitor *m, struct link_message message)
{
    _Alignas(8) uint8_t buffer[512] = {0};
    struct nlmsghdr *h = mnl_nlmsg_put_header(buffer);
    h->nlmsg_type = message.type;
    struct ifinfomsg *info = mnl_nlmsg_put_extra_header(h, sizeof(*info));
    info->ifi_index = message.index;
    info->ifi_flags = message.flags;
    mnl_attr_put_strz(h, IFLA_IFNAME, message.name);
    mnl_attr_put_u32(h, IFLA_CARRIER_DOWN_COUNT, message.downs);
    mnl_attr_put(h, IFLA_PERM_ADDRESS, 6, (uint8_t[]){2, 0, 0, 0, 0, message.mac});
    mnl_attr_put_u8(h, IFLA_CARRIER, (message.flags & IFF_RUNNING) != 0);
    link_monitor_feed(m, h);
}

static void follows_a_nic_through_its_life(void **state)
{
    struct link_monitor *m = monitor();
    const unsigned running = IFF_UP | IFF_RUNNING;
    assert_int_equal(link_monitor_watch(m, "eth1"), 0);
    const struct link_interface *l = link_monitor_get(m, 0);
    feed(m, (struct link_message){RTM_NEWLINK, 7, "other0", running, 0, 9});
    assert_false(l->present);
    feed(m, (struct link_message){RTM_NEWLINK, 5, "eth1", running, 3, 1});
    assert_true(l->present && l->carrier && l->admin_up);
    assert_int_equal(l->down_count, 3);
    assert_int_equal(link_monitor_changes(m, 0), LINK_CHANGE_RETURNED | LINK_CHANGE_STATE);
    /* a flap between two looks: only the count shows it */
    feed(m, (struct link_message){RTM_NEWLINK, 5, "eth1", running, 4, 1});
    assert_int_equal(link_monitor_changes(m, 0), LINK_CHANGE_STATE);
    feed(m, (struct link_message){RTM_NEWLINK, 5, "eth1", running, 4, 1});
    assert_int_equal(link_monitor_changes(m, 0), 0);
    feed(m, (struct link_message){RTM_NEWLINK, 5, "ens1f0", running, 4, 1});
    assert_int_equal(link_monitor_changes(m, 0), LINK_CHANGE_RENAMED);
    assert_string_equal(l->name, "ens1f0");
    feed(m, (struct link_message){RTM_DELLINK, 5, "ens1f0", 0, 4, 1});
    assert_int_equal(link_monitor_changes(m, 0), LINK_CHANGE_VANISHED);
    assert_false(l->present);
    /* it is back with another index and name, and recognised by its MAC */
    feed(m, (struct link_message){RTM_NEWLINK, 11, "eth9", IFF_UP, 0, 1});
    assert_true(l->present && !l->carrier);
    assert_int_equal(l->index, 11);
    /* truncated messages are ignored, at any length */
    _Alignas(8) uint8_t bytes[64] = {0};
    struct nlmsghdr *h = (void *)bytes;
    h->nlmsg_type = RTM_NEWLINK;
    for (uint32_t size = 16; size <= 64; size++) {
        h->nlmsg_len = size;
        link_monitor_feed(m, h);
    }
    link_monitor_close(m);
}

static int run(const char *command)
{
    return system(command);
}

/* The kernel reports a carrier at its own time (linkwatch), several changes one by one or all at once: look again for a
 * minute. */
static bool carrier_becomes(struct link_monitor *m, bool carrier, uint32_t downs)
{
    const struct link_interface *l = link_monitor_get(m, 0);
    for (int i = 0; i < 6000 && (l->carrier != carrier || l->down_count != downs); i++) {
        usleep(10000);
        assert_int_equal(link_monitor_poll(m, true), 0);
    }
    return l->carrier == carrier && l->down_count == downs;
}

static void sees_a_real_veth(void **state)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0) {
        skip();
    }
    if (run("ip link add va type veth peer name vb && ip link set vb up && ip link set va up && "
            "ip address add 10.77.0.1/24 dev va 2>/dev/null") != 0) {
        skip();
    }
    struct link_monitor *m = monitor();
    assert_int_equal(link_monitor_watch(m, "va"), 0);
    assert_int_equal(link_monitor_poll(m, true), 0);
    const struct link_interface *l = link_monitor_get(m, 0);
    assert_true(l->present && carrier_becomes(m, true, l->down_count));
    assert_int_equal(l->count4, 1);
    assert_int_equal(l->addresses4[0].s_addr, inet_addr("10.77.0.1"));
    link_monitor_look(m, 0);
    assert_string_equal(l->driver, "veth");
    assert_true(l->speed_mbps > 0);
    const uint32_t downs = l->down_count;
    link_monitor_changes(m, 0);
    assert_int_equal(run("ip link set vb down; ip link set vb up; ip link set vb down"), 0);
    assert_int_equal(link_monitor_receive(m), 0);
    assert_true(carrier_becomes(m, false, downs + 2));
    assert_int_equal(run("ip link set va down; ip link set va name vc; ip link set vc up; "
                         "ip address add 10.77.0.2/24 dev vc"),
                     0);
    assert_int_equal(link_monitor_receive(m), 0);
    assert_string_equal(l->name, "vc");
    assert_int_equal(l->count4, 2);
    assert_true((link_monitor_changes(m, 0) & (LINK_CHANGE_RENAMED | LINK_CHANGE_ADDRESS)) ==
                (LINK_CHANGE_RENAMED | LINK_CHANGE_ADDRESS));
    assert_int_equal(run("ip link del vc"), 0);
    assert_int_equal(link_monitor_poll(m, true), 0);
    assert_false(l->present);
    assert_int_equal(run("ip link add vc type veth peer name vd; ip link set vc up"), 0);
    assert_int_equal(link_monitor_poll(m, true), 0);
    assert_true(l->present);
    assert_true((link_monitor_changes(m, 0) & LINK_CHANGE_RETURNED) != 0);
    link_monitor_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_a_nic_through_its_life),
        cmocka_unit_test(sees_a_real_veth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

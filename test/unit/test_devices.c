/* test_devices.c: which interfaces count, and their properties in sysfs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "own_network.h"
#include "plugin/devices.h"
#include "plugin/links.h"

static void filters_choose_by_beginning_name_or_exception(void **state)
{
    (void)state;
    assert_true(devices_match("eth", "eth0"));
    assert_false(devices_match("eth", "ib0"));
    assert_true(devices_match("ib,eth1", "eth1"));
    assert_true(devices_match("=eth1", "eth1"));
    assert_false(devices_match("=eth1", "eth10"));
    assert_true(devices_match("^docker,lo", "eth0"));
    assert_false(devices_match("^docker,lo", "lo"));
    assert_true(devices_match("^=lo", "lo1"));
    assert_false(devices_match("", "eth0"));
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int find(const char *sysfs, const char *filter, struct device *devices, int capacity)
{
    const struct device_wish wish = {.filter = filter, .family = AF_UNSPEC};

    return devices_find(sysfs, &wish, devices, capacity);
}

static void the_loopback_is_described_from_sysfs(void **state)
{
    char root[] = "/tmp/foliot-devices-XXXXXX", path[256], target[256];
    struct device devices[4];

    (void)state;
    assert_non_null(mkdtemp(root));
    const char *const folders[] = {"class",
                                   "class/net",
                                   "class/net/lo",
                                   "devices",
                                   "devices/0000:3b:00.1",
                                   "devices/0000:3b:00.1/virtio0"};
    for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
        snprintf(path, sizeof(path), "%s/%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(path, sizeof(path), "%s/class/net/lo", root);
    write_file(path, "speed", "400000\n");
    write_file(path, "address", "02:00:00:00:00:2a\n");
    snprintf(target, sizeof(target), "%s/devices/0000:3b:00.1/virtio0", root);
    snprintf(path, sizeof(path), "%s/class/net/lo/device", root);
    assert_int_equal(symlink(target, path), 0);
    int count = find(root, "=lo", devices, 4);
    assert_int_equal(count, 1);
    assert_string_equal(devices[0].name, "lo");
    assert_int_equal(devices[0].speed_mbps, 400000);
    assert_true(devices[0].guid == 0x02000000002aULL);
    snprintf(target, sizeof(target), "%s/devices/0000:3b:00.1", root);
    assert_string_equal(devices[0].pci_path, target); /* the function, not the device behind it */
    assert_true(devices[0].loopback);
    assert_int_equal(devices_lanes(devices, 1), 8);
    devices[0].speed_mbps = 100000;
    assert_int_equal(devices_lanes(devices, 1), 4);
    assert_int_equal(devices_lanes(devices, 0), 4);
    assert_int_equal(find(root, "=nosuch", devices, 4), 0);
    snprintf(path, sizeof(path), "rm -r %s", root);
    assert_int_equal(system(path), 0);
}

/* 0 if only the one that can carry is found, and any other by its name. */
static int find_what_can_carry(void)
{
    struct device devices[8];
    const int count = find("/sys", NULL, devices, 8);
    const bool one = count == 1 && strcmp(devices[0].name, "v0") == 0;
    const bool named = find("/sys", "br0", devices, 8) == 1; /* it is found by its name */
    const bool local = find("/sys", "v4", devices, 8) == 0;  /* to listen there a scope is needed */
    const int rest = find("/sys", "^v0", devices, 8);
    const bool loop = rest == 1 && strcmp(devices[0].name, "lo") == 0;

    return one && named && local && loop ? 0 : 3;
}

/* A NIC with addresses of both families, and one with IPv4 only. */
static int find_by_family(void)
{
    struct device both[4], four[4], six[4];
    const struct device_wish v4 = {.family = AF_INET}, v6 = {.family = AF_INET6},
                             v6_named = {.filter = "v2", .family = AF_INET6};
    const bool either = find("/sys", NULL, both, 4) == 2 && io_address_is_v4(&both[0].address);
    const bool only4 =
        devices_find("/sys", &v4, four, 4) == 2 && io_address_is_v4(&four[0].address);
    const bool only6 = devices_find("/sys", &v6, six, 4) == 1 && strcmp(six[0].name, "v0") == 0 &&
                       !io_address_is_v4(&six[0].address);

    return either && only4 && only6 && devices_find("/sys", &v6_named, six, 4) == 0 ? 0 : 3;
}

static void nccls_family_is_taken(void **state)
{
    static const char *const setup =
        "ip link set lo up && ip link add v0 type veth peer v1 && ip link set v0 up && ip link set "
        "v1 up && ip link add v2 type veth peer v3 && ip link set v2 up && ip link set v3 up && "
        "ip address add 10.9.0.1/24 dev v0 && ip address add fd00::1/64 dev v0 nodad && "
        "ip address add 10.8.0.1/24 dev v2";

    (void)state;
    in_own_network(setup, find_by_family);
}

/* Interfaces beside the NICs on a host with containers and a VPN. */
static void an_interface_that_cannot_carry_is_left_out(void **state)
{
    static const char *const setup =
        "ip link set lo up && ip link add v0 type veth peer v1 && ip link set v0 up && ip link set "
        "v1 up && "
        "ip address add 10.9.0.1/24 dev v0 && " /* a container's way out */
        "ip link add br0 type bridge && ip link set br0 up && ip address add 172.17.0.1/16 dev br0 "
        "&& "
        "ip link add v2 type veth peer v3 && ip link set v2 master br0 up && ip address add "
        "10.8.0.1/24 dev v2 && "
        "ip tuntap add eth9 mode tap && ip link set eth9 up && ip address add 10.7.0.1/24 dev eth9 "
        "&& "
        "ip link add v4 type veth peer v5 && ip link set v4 up && ip link set v5 up && "
        "ip address add fe80::4/64 dev v4 nodad"; /* link-local only */

    (void)state;
    in_own_network(setup, find_what_can_carry);
}

/* By the kinds that the kernel names: hardly any kernel has them all. */
static void tunnels_switches_and_dead_ends_carry_nothing(void **state)
{
    static const char *const dead_ends[] = {
        "gre",    "gretap",    "ip6gre",  "ip6gretap", "erspan",      "ip6erspan", "ipip",   "sit",
        "ip6tnl", "vti",       "vti6",    "xfrm",      "vxlan",       "geneve",    "tun",    "ovpn",
        "pfcp",   "wireguard", "bareudp", "gtp",       "amt",         "batadv",    "lowpan", "vrf",
        "dummy",  "ifb",       "bridge",  "nlmon",     "openvswitch", "vcan",      "vxcan",
    };
    static const char *const carry[] = {"",        "veth",    "vlan",   "bond", "team",
                                        "macvlan", "macvtap", "ipvlan", "ipoib"};
    struct link links[2] = {{.name = "other", .kind = "veth"}, {.name = "x0"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(dead_ends); i++) {
        snprintf(links[1].kind, sizeof(links[1].kind), "%s", dead_ends[i]);
        if (links_carries(links, 2, "x0")) {
            fail_msg("%s is taken for a NIC", dead_ends[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(carry); i++) {
        snprintf(links[1].kind, sizeof(links[1].kind), "%s", carry[i]);
        if (!links_carries(links, 2, "x0")) {
            fail_msg("%s is left out", carry[i]);
        }
    }
    snprintf(links[0].port_of, sizeof(links[0].port_of), "bond"); /* its parts carry, */
    assert_true(links_carries(links, 2, "other"));
    snprintf(links[0].port_of, sizeof(links[0].port_of),
             "openvswitch"); /* a switch's ports don't */
    assert_false(links_carries(links, 2, "other"));
    assert_true(links_carries(links, 2, "unknown"));
}

/* The rest of `ip link add x0 type`, to make one of each kind. A kernel without a kind makes none of it. */
static const char *const made[] = {
    "gre remote 10.9.0.2 local 10.9.0.1",
    "gretap remote 10.9.0.2 local 10.9.0.1",
    "erspan seq key 100 local 10.9.0.1 remote 10.9.0.2 erspan 123",
    "ip6gre remote fd00::2 local fd00::1",
    "ip6gretap remote fd00::2 local fd00::1",
    "ipip remote 10.9.0.2 local 10.9.0.1",
    "sit remote 10.9.0.2 local 10.9.0.1",
    "ip6tnl remote fd00::2 local fd00::1",
    "vti remote 10.9.0.2 local 10.9.0.1 key 7",
    "vti6 remote fd00::2 local fd00::1 key 7",
    "xfrm dev v0 if_id 7",
    "vxlan id 7 remote 10.9.0.2 dstport 4789",
    "geneve id 7 remote 10.9.0.2",
    "wireguard",
    "bareudp dstport 99 ethertype ip",
    "vrf table 10",
    "dummy",
    "ifb",
    "bridge",
};

/* 0: none of those that this kernel makes, up and with an address, is taken for a NIC. 77: it makes none. */
static int find_beside_each_kind(void)
{
    int count = 0;

    for (size_t i = 0; i < ARRAY_COUNT(made); i++) {
        const int kind = (int)strcspn(made[i], " ");
        struct device devices[4];
        char command[256];
        snprintf(command, sizeof(command),
                 "{ ip link add x0 type %s && ip link set x0 up && "
                 "ip address add 10.6.0.1/24 dev x0; } 2>/dev/null",
                 made[i]);
        if (system(command) == 0) {
            count++;
            if (find("/sys", NULL, devices, 4) != 1 || strcmp(devices[0].name, "v0") != 0) {
                print_message("%.*s is taken for a NIC\n", kind, made[i]);
                return 3;
            }
        } else {
            print_message("this kernel makes no %.*s\n", kind, made[i]);
        }
        (void)!system("ip link delete x0 2>/dev/null");
    }
    return count > 0 ? 0 : 77;
}

static void interfaces_of_this_kernel_are_told_apart(void **state)
{
    static const char *const setup =
        "ip link set lo up && ip link add v0 type veth peer v1 && ip link set v0 up && "
        "ip link set v1 up && ip address add 10.9.0.1/24 dev v0 && "
        "ip address add fd00::1/64 dev v0 nodad";

    (void)state;
    in_own_network(setup, find_beside_each_kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interface_that_cannot_carry_is_left_out),
        cmocka_unit_test(tunnels_switches_and_dead_ends_carry_nothing),
        cmocka_unit_test(interfaces_of_this_kernel_are_told_apart),
        cmocka_unit_test(nccls_family_is_taken),
        cmocka_unit_test(filters_choose_by_beginning_name_or_exception),
        cmocka_unit_test(the_loopback_is_described_from_sysfs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

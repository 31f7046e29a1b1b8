/* test_rdma_trace.c: which source ports of RoCE lead over which routers, with real ones: this host, a leaf, two spines and a peer
 * behind them, each in a network namespace of its own. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netpacket/packet.h>

#include "own_network.h"
#include "transport/rdma_private.h"

#define TRIES   20
#define WRONG   (-1000)
#define SKIPPED 77 /* Meson's status for a skip */

enum { HOST, LEAF, SPINE_1, SPINE_2, PEER, SPACES };
static pid_t spaces[SPACES];

/* The namespace ends with this process. */
static pid_t new_space(void)
{
    int ready[2];
    char byte;

    if (pipe(ready) < 0) {
        exit(3);
    }
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWNET) < 0 || write(ready[1], "", 1) != 1) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    close(ready[1]);
    if (child < 0 || read(ready[0], &byte, 1) != 1) {
        exit(4);
    }
    close(ready[0]);
    return child;
}

static void at(int space, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void at(int space, const char *format, ...)
{
    char words[768], command[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    snprintf(command, sizeof(command), "nsenter -n -t %d sh -ec '%s'", (int)spaces[space], words);
    if (system(command) != 0) {
        fprintf(stderr, "%s\n", command);
        exit(5);
    }
}

/* 10.9.N.0/24 and fd00:N::/64: .1 there, .2 here. */
static void join_by(int there, int here, int n)
{
    at(there,
       "ip link add v%d type veth peer name w%d netns %d; ip addr add 10.9.%d.1/24 dev v%d; "
       "ip addr add fd00:%d::1/64 dev v%d nodad; ip link set v%d up",
       n, n, (int)spaces[here], n, n, n, n, n);
    at(here,
       "ip addr add 10.9.%d.2/24 dev w%d; ip addr add fd00:%d::2/64 dev w%d nodad; "
       "ip link set w%d up",
       n, n, n, n, n);
}

static void build(void)
{
    spaces[HOST] = getpid();
    for (int i = LEAF; i < SPACES; i++) {
        spaces[i] = new_space();
        at(i, "ip link set lo up; cd /proc/sys/net; echo 1 > ipv4/ip_forward; "
              "echo 1 > ipv6/conf/all/forwarding; echo 1 > ipv4/fib_multipath_hash_policy; "
              "echo 1 > ipv6/fib_multipath_hash_policy; echo 0 > ipv4/icmp_ratelimit; "
              "echo 0 > ipv6/icmp/ratelimit; for limit in msgs_per_sec msgs_burst; do "
              "[ ! -e ipv4/icmp_$limit ] || echo 100000 > ipv4/icmp_$limit; done");
    }
    join_by(HOST, LEAF, 1);
    join_by(LEAF, SPINE_1, 2);
    join_by(LEAF, SPINE_2, 3);
    join_by(SPINE_1, PEER, 4);
    join_by(SPINE_2, PEER, 5);
    at(PEER, "ip addr add 10.9.9.1/32 dev lo; ip addr add fd00:9::1/128 dev lo nodad; "
             "ip route add 10.9.1.0/24 via 10.9.4.1; ip route add fd00:1::/64 via fd00:4::1");
    for (int k = 0; k < 2; k++) {
        at(SPINE_1 + k,
           "ip route add 10.9.9.1 via 10.9.%d.2; ip route add fd00:9::1 via fd00:%d::2; "
           "ip route add 10.9.1.0/24 via 10.9.%d.1; ip route add fd00:1::/64 via fd00:%d::1",
           4 + k, 4 + k, 2 + k, 2 + k);
    }
    at(LEAF, "ip route add 10.9.9.1 nexthop via 10.9.2.2 nexthop via 10.9.3.2; "
             "ip route add fd00:9::1 nexthop via fd00:2::2 nexthop via fd00:3::2");
    at(HOST, "ip route add default via 10.9.1.2; ip -6 route add default via fd00:1::2");
}

static void ip_of(const char *text, uint8_t ret[16])
{
    memset(ret, 0, 16);
    if (inet_pton(AF_INET6, text, ret) != 1) {
        ret[10] = ret[11] = 0xff;
        (void)inet_pton(AF_INET, text, ret + 12);
    }
}

static int tap(void)
{
    const struct sockaddr_ll of = {.sll_family = AF_PACKET,
                                   .sll_protocol = htons(ETH_P_ALL),
                                   .sll_ifindex = (int)if_nametoindex("v1")};
    const int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK, htons(ETH_P_ALL));

    return fd >= 0 && bind(fd, (const struct sockaddr *)&of, sizeof(of)) == 0 ? fd : -1;
}

/* Counts datagrams to RoCE's port over IPv6 whose flow label isn't that of their source port; *ret_all: all of them. */
static int wrong_labels(int fd, int *ret_all)
{
    uint8_t p[256];
    int wrong = 0;

    for (ssize_t size; (size = recv(fd, p, sizeof(p), 0)) > 0;) {
        if (size >= 48 && p[0] >> 4 == 6 && p[6] == IPPROTO_UDP && (p[42] << 8 | p[43]) == 4791) {
            const int label = (p[1] & 15) << 16 | p[2] << 8 | p[3];
            wrong += label != (p[40] << 8 | p[41]) % 0x4000;
            ++*ret_all;
        }
    }
    return wrong;
}

/* True if the leaf sends packets of that port over that spine. No socket of this machine has sent one. */
static bool leads_there(const char *from, const char *to, uint16_t port, const char *spine)
{
    char command[512], line[512] = "";

    snprintf(command, sizeof(command),
             "nsenter -n -t %d ip route get %s from %s iif w1 ipproto udp sport %u dport 4791",
             (int)spaces[LEAF], to, from, port);
    FILE *answer = popen(command, "r");
    if (answer == NULL || fgets(line, sizeof(line), answer) == NULL) {
        line[0] = 0;
    }
    if (answer != NULL) {
        (void)pclose(answer);
    }
    return strstr(line, spine) != NULL;
}

/* Bit k: spine k + 1 answered at the second hop. Negative: too few answered, or, WRONG, for ports that don't lead there. */
static int ask(const char *from, const char *to, const char *const spines[2])
{
    struct rdma_trace t = {.device = "v1"};
    uint16_t ports[PATH_PORTS_MAX];
    uint8_t router[2][16];
    struct paths of_spine[2];
    int answers = 0, met = 0, wrong = 0;

    for (uint32_t i = 0; i < PATH_PORTS_MAX; i++) {
        ports[i] = (uint16_t)(0xc100 + i * 7);
    }
    ip_of(from, t.from);
    ip_of(to, t.to);
    paths_init(&t.paths, ports, PATH_PORTS_MAX);
    rdma_trace_run(&t);
    for (int k = 0; k < 2; k++) {
        ip_of(spines[k], router[k]);
        paths_init(&of_spine[k], ports, 1);
        paths_on_answer(&of_spine[k], 0, 1, router[k]);
    }
    for (uint32_t i = 0; i < t.paths.count; i++) {
        for (int k = 0; k < 2; k++) {
            if (t.paths.routers[i][1] == of_spine[k].routers[0][1]) {
                met |= 1 << k;
                answers++;
                wrong += !leads_there(from, to, ports[i], spines[k]);
            }
        }
    }
    if (wrong > 0) {
        fprintf(stderr, "%d of %d ports lead to another spine than was answered\n", wrong, answers);
        return WRONG;
    }
    return answers > PATH_PORTS_MAX / 2 && paths_known(&t.paths) ? met : -1 - answers;
}

/* Links are ready for IPv6 only a while after they are up. A busy machine may drop answers, or take too long. */
static int spines_of(const char *from, const char *to, const char *const spines[2])
{
    int met = -1;

    for (int i = 0; i < TRIES && met != 3 && met != WRONG; i++) {
        (void)usleep(i > 0 ? 300000 : 0);
        met = ask(from, to, spines);
    }
    return met;
}

static int run(void)
{
    static const char *const v4[] = {"10.9.2.2", "10.9.3.2"}, *const v6[] = {"fd00:2::2",
                                                                             "fd00:3::2"};
    int sent = 0;

    if (access("/proc/sys/net/ipv6", F_OK) != 0) {
        return SKIPPED;
    }
    build();
    const int by_v4 = spines_of("10.9.1.1", "10.9.9.1", v4);
    const int fd = tap(), by_v6 = spines_of("fd00:1::1", "fd00:9::1", v6);
    const int wrong = fd >= 0 ? wrong_labels(fd, &sent) : -1;
    if (by_v4 != 3 || by_v6 != 3 || wrong != 0 || sent < 2 * PATH_PORTS_MAX) {
        fprintf(stderr, "spines by IPv4 %d, by IPv6 %d; wrong flow labels %d of %d\n", by_v4, by_v6,
                wrong, sent);
        return 1;
    }
    return 0;
}

static void routers_tell_paths(void **state)
{
    (void)state;
    in_own_network("ip link set lo up", run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(routers_tell_paths)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

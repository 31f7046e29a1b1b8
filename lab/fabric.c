/* fabric.c: a lab's namespaces, links, addresses, routes and shapers: makes them, and removes what is left of them.
 *
 * Each node has one batch for `ip` and one for `tc`, run in its namespace. Nodes are made in parallel. */
#include "base/time.h"
#include "lab/engine.h"
#include "lab/lab.h"
#include "lab/machine.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_CLASS 0x00010010U
#define OTHER_CLASS 0x00010020U

void lab_space(const struct lab *lab, enum node_kind kind, int index, char ret_space[64])
{
    static const char *const name[] = {"host", "leaf", "spine"};
    snprintf(ret_space, 64, "foliot-%s-%s%d", lab->name, name[kind], index);
}

int lab_leaf_of(const struct lab *lab, int host, int nic)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    return f->wiring == WIRING_RAIL ? nic % f->leaves : (int)((long)host * f->leaves / f->hosts);
}

int lab_leaf_declared(const struct lab *lab, int host, int nic)
{
    for (int i = 0; i < lab->exchanged; i++) {
        const struct lab_nic *other = &lab->exchange[(i + 1) % lab->exchanged];
        if (lab->exchange[i].host == host && lab->exchange[i].nic == nic) {
            return lab_leaf_of(lab, other->host, other->nic);
        }
    }
    return lab_leaf_of(lab, host, nic);
}

struct lab_port lab_nic_port(const struct lab *lab, int host, int nic)
{
    struct lab_port p;
    lab_space(lab, NODE_HOST, host, p.space);
    snprintf(p.interface, sizeof(p.interface), "nic%d", nic);
    return p;
}

struct lab_port lab_leaf_port(const struct lab *lab, int host, int nic)
{
    struct lab_port p;
    lab_space(lab, NODE_LEAF, lab_leaf_of(lab, host, nic), p.space);
    snprintf(p.interface, sizeof(p.interface), "h%dn%d", host, nic);
    return p;
}

struct lab_port lab_uplink_port(const struct lab *lab, int leaf, int spine)
{
    struct lab_port p;
    lab_space(lab, NODE_LEAF, leaf, p.space);
    snprintf(p.interface, sizeof(p.interface), "spine%d", spine);
    return p;
}

struct lab_port lab_downlink_port(const struct lab *lab, int leaf, int spine)
{
    struct lab_port p;
    lab_space(lab, NODE_SPINE, spine, p.space);
    snprintf(p.interface, sizeof(p.interface), "leaf%d", leaf);
    return p;
}

void lab_address4(int host, int nic, char ret_address[LAB_TEXT_SIZE])
{
    snprintf(ret_address, LAB_TEXT_SIZE, "10.%d.%d.2", host, nic);
}

void lab_address6(int host, int nic, char ret_address[LAB_TEXT_SIZE])
{
    snprintf(ret_address, LAB_TEXT_SIZE, "fd00:%x:%x::2", (unsigned)host, (unsigned)nic);
}

void lab_mac(int host, int nic, bool is_leaf, char ret_mac[LAB_MAC_SIZE])
{
    snprintf(ret_mac, LAB_MAC_SIZE, "02:00:00:%02x:%02x:%02x", host & 255, nic & 255,
             is_leaf ? 1 : 2);
}

static bool has_v4(const struct lab *lab)
{
    return (lab->scenario.fabric.ip & IP_V4) != 0;
}

static bool has_v6(const struct lab *lab)
{
    return (lab->scenario.fabric.ip & IP_V6) != 0;
}

/* ---- links: made from the leaves ---- */

static void leaf_links(const struct lab *lab, int leaf, FILE *ip)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    for (int h = 0; h < f->hosts; h++) {
        for (int n = 0; n < f->nics_per_host; n++) {
            if (lab_leaf_of(lab, h, n) == leaf) {
                struct lab_port p = lab_nic_port(lab, h, n);
                char mac[LAB_MAC_SIZE], leaf_mac[LAB_MAC_SIZE];
                lab_mac(h, n, false, mac);
                lab_mac(h, n, true, leaf_mac);
                fprintf(ip,
                        "link add h%dn%d address %s type veth peer name nic%d address %s netns "
                        "%s\n",
                        h, n, leaf_mac, n, mac, p.space);
            }
        }
    }
    for (int s = 0; s < f->spines; s++) {
        struct lab_port p = lab_downlink_port(lab, leaf, s);
        fprintf(ip, "link add spine%d type veth peer name leaf%d netns %s\n", s, leaf, p.space);
    }
}

/* ---- addresses and routes ---- */

static void host_addresses(const struct lab *lab, int host, FILE *ip)
{
    fprintf(ip, "link set lo up\n");
    for (int n = 0; n < lab->scenario.fabric.nics_per_host; n++) {
        fprintf(ip, "link set nic%d up\n", n);
        /* Policy routing: packets from a NIC's address leave through that NIC, even if NICs share a leaf. */
        if (has_v4(lab)) {
            fprintf(ip, "addr add 10.%d.%d.2/30 dev nic%d\n", host, n, n);
            fprintf(ip, "rule add from 10.%d.%d.2 lookup %d\n", host, n, 100 + n);
            fprintf(ip, "route add default via 10.%d.%d.1 dev nic%d table %d\n", host, n, n,
                    100 + n);
            fprintf(ip, "route add default via 10.%d.%d.1 dev nic%d metric %d\n", host, n, n,
                    1 + n);
        }
        if (has_v6(lab)) {
            fprintf(ip, "addr add fd00:%x:%x::2/64 dev nic%d nodad\n", host, n, n);
            fprintf(ip, "-6 rule add from fd00:%x:%x::2 lookup %d\n", host, n, 100 + n);
            fprintf(ip, "-6 route add default via fd00:%x:%x::1 dev nic%d onlink table %d\n", host,
                    n, n, 100 + n);
            fprintf(ip, "-6 route add default via fd00:%x:%x::1 dev nic%d onlink metric %d\n", host,
                    n, n, 1 + n);
        }
    }
}

static void leaf_uplinks(const struct lab *lab, int leaf, FILE *ip)
{
    int spines = lab->scenario.fabric.spines;
    for (int s = 0; s < spines; s++) {
        fprintf(ip, "link set spine%d up\n", s);
        if (has_v4(lab)) {
            fprintf(ip, "addr add 172.20.%d.%d/30 dev spine%d\n", leaf, 4 * s + 1, s);
        }
        if (has_v6(lab)) {
            fprintf(ip, "addr add fd00:fffe:%x:%x::1/64 dev spine%d nodad\n", leaf, s, s);
        }
    }
    if (has_v4(lab) && spines > 0) {
        fprintf(ip, "route replace 10.0.0.0/8 src 172.16.0.%d", 1 + leaf);
        for (int s = 0; s < spines; s++) {
            fprintf(ip, " nexthop via 172.20.%d.%d dev spine%d", leaf, 4 * s + 2, s);
        }
        fprintf(ip, "\n");
    }
    if (has_v6(lab) && spines > 0) {
        fprintf(ip, "-6 route replace fd00::/24 src fd00:ffff::%x", 1 + leaf);
        for (int s = 0; s < spines; s++) {
            fprintf(ip, " nexthop via fd00:fffe:%x:%x::2 dev spine%d onlink", leaf, s, s);
        }
        fprintf(ip, "\n");
    }
}

static void leaf_addresses(const struct lab *lab, int leaf, FILE *ip)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    fprintf(ip, "link set lo up\naddr add 172.16.0.%d/32 dev lo\n", 1 + leaf);
    fprintf(ip, "addr add fd00:ffff::%x/128 dev lo nodad\n", 1 + leaf);
    leaf_uplinks(lab, leaf, ip);
    for (int h = 0; h < f->hosts; h++) {
        for (int n = 0; n < f->nics_per_host; n++) {
            if (lab_leaf_of(lab, h, n) != leaf) {
                continue;
            }
            fprintf(ip, "link set h%dn%d up\n", h, n);
            /* A NIC whose link is down must be unreachable. Without this route its packets would circle through the spines. */
            if (has_v4(lab)) {
                fprintf(ip, "addr add 10.%d.%d.1/30 dev h%dn%d\n", h, n, h, n);
                fprintf(ip, "route add unreachable 10.%d.%d.0/30 metric 1000\n", h, n);
            }
            if (has_v6(lab)) {
                fprintf(ip, "addr add fd00:%x:%x::1/64 dev h%dn%d nodad\n", h, n, h, n);
                fprintf(ip, "-6 route add unreachable fd00:%x:%x::/64 metric 5000\n", h, n);
            }
        }
    }
}

static void spine_addresses(const struct lab *lab, int spine, FILE *ip)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    fprintf(ip, "link set lo up\naddr add 172.16.1.%d/32 dev lo\n", 1 + spine);
    fprintf(ip, "addr add fd00:ffff::1:%x/128 dev lo nodad\n", 1 + spine);
    for (int l = 0; l < f->leaves; l++) {
        fprintf(ip, "link set leaf%d up\n", l);
        if (has_v4(lab)) {
            fprintf(ip, "addr add 172.20.%d.%d/30 dev leaf%d\n", l, 4 * spine + 2, l);
        }
        if (has_v6(lab)) {
            fprintf(ip, "addr add fd00:fffe:%x:%x::2/64 dev leaf%d nodad\n", l, spine, l);
        }
    }
    for (int h = 0; h < f->hosts; h++) {
        for (int n = 0; n < f->nics_per_host; n++) {
            int l = lab_leaf_of(lab, h, n);
            if (has_v4(lab)) {
                fprintf(ip, "route add 10.%d.%d.0/30 via 172.20.%d.%d dev leaf%d src 172.16.1.%d\n",
                        h, n, l, 4 * spine + 1, l, 1 + spine);
            }
            if (has_v6(lab)) {
                fprintf(ip,
                        "-6 route add fd00:%x:%x::/64 via fd00:fffe:%x:%x::1 dev leaf%d onlink src "
                        "fd00:ffff::1:%x\n",
                        h, n, l, spine, l, 1 + spine);
            }
        }
    }
}

/* ---- shapers ---- */

static void shape(const struct lab *lab, const char *interface, double mbps, bool is_switch,
                  FILE *tc)
{
    /* HTB with two classes. The high class has the whole rate as its own, so it never waits for the low class. The low class
     * has almost no rate of its own and borrows the rest: together they have the link's rate, not twice that. */
    long kbit = (long)(mbps * 1000.0);
    long low_kbit = kbit / 100 > 8 ? kbit / 100 : 8;
    long buffer = (long)lab->scenario.fabric.buffer_bytes;
    fprintf(tc, "qdisc add dev %s root handle 1: htb default 20\n", interface);
    fprintf(tc,
            "class add dev %s parent 1: classid 1:1 htb rate %ldkbit burst 16k cburst 16k quantum "
            "3000\n",
            interface, kbit);
    fprintf(tc,
            "class add dev %s parent 1:1 classid 1:10 htb rate %ldkbit prio 0 burst 16k cburst 16k "
            "quantum 3000\n",
            interface, kbit);
    fprintf(
        tc,
        "class add dev %s parent 1:1 classid 1:20 htb rate %ldkbit ceil %ldkbit prio 1 burst 3k "
        "cburst 16k quantum 3000\n",
        interface, low_kbit, kbit);
    fprintf(tc, "qdisc add dev %s parent 1:10 handle 10: bfifo limit %ld\n", interface, buffer);
    fprintf(tc, "qdisc add dev %s parent 1:20 handle 20: bfifo limit %ld\n", interface, buffer);
    if (is_switch) {
        fprintf(tc, "qdisc add dev %s clsact\n", interface);
    }
}

static int classify(const struct lab *lab, const char *interface)
{
    struct machine_filter f = {
        .verdict = VERDICT_CLASS, .class_high = PROBE_CLASS, .class_low = OTHER_CLASS};
    return lab->scenario.fabric.probe_class ? machine_filter_add(interface, HOOK_CLASSIFY, 1, &f)
                                            : 0;
}

#define FORGET_PRIORITY 65000 /* after all faults' filters */

/* Clears packets' hashes where packets come in from a host. From there on only the packets' bytes count. */
static int forget_hashes(const struct lab *lab, int leaf)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    struct machine_filter filter = {.verdict = VERDICT_FORGET};
    int r = 0;
    for (int h = 0; h < f->hosts; h++) {
        for (int n = 0; n < f->nics_per_host && r == 0; n++) {
            if (lab_leaf_of(lab, h, n) == leaf) {
                r = machine_filter_add(lab_leaf_port(lab, h, n).interface, HOOK_INGRESS,
                                       FORGET_PRIORITY, &filter);
            }
        }
    }
    return r;
}

/* Calls `visit` for each interface of a node with its rate. */
static int node_each_port(const struct lab *lab, enum node_kind kind, int index,
                          int (*visit)(const struct lab *lab, const char *interface, double mbps,
                                       void *data),
                          void *data)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    double trunk_mbps = scenario_trunk_mbps(f);
    int r = 0;
    for (int h = 0; h < f->hosts && kind != NODE_SPINE; h++) {
        for (int n = 0; n < f->nics_per_host && r == 0; n++) {
            if (kind == NODE_HOST ? h == index : lab_leaf_of(lab, h, n) == index) {
                struct lab_port p =
                    kind == NODE_HOST ? lab_nic_port(lab, h, n) : lab_leaf_port(lab, h, n);
                r = visit(lab, p.interface, f->link_mbps, data);
            }
        }
    }
    int trunks = kind == NODE_HOST ? 0 : kind == NODE_LEAF ? f->spines : f->leaves;
    for (int i = 0; i < trunks && r == 0; i++) {
        struct lab_port p =
            kind == NODE_LEAF ? lab_uplink_port(lab, index, i) : lab_downlink_port(lab, i, index);
        r = visit(lab, p.interface, trunk_mbps, data);
    }
    return r;
}

struct shaping {
    FILE *tc;
    bool is_switch;
};

static int visit_shape(const struct lab *lab, const char *interface, double mbps, void *data)
{
    struct shaping *s = data;
    shape(lab, interface, mbps, s->is_switch, s->tc);
    return 0;
}

static int visit_classify(const struct lab *lab, const char *interface, double mbps, void *data)
{
    (void)mbps;
    (void)data;
    return classify(lab, interface);
}

static int visit_ignore_linkdown(const struct lab *lab, const char *interface, double mbps,
                                 void *data)
{
    (void)lab;
    (void)mbps;
    (void)data;
    machine_sysctl("1", "net/ipv4/conf/%s/ignore_routes_with_linkdown", interface);
    machine_sysctl("1", "net/ipv6/conf/%s/ignore_routes_with_linkdown", interface);
    return 0;
}

/* ---- a node ---- */

/* Sets defaults before the interfaces exist: new interfaces copy "default". */
static void node_defaults(const struct lab *lab, enum node_kind kind)
{
    machine_sysctl("0", "net/ipv4/conf/all/rp_filter");
    machine_sysctl("0", "net/ipv4/conf/default/rp_filter");
    machine_sysctl("1", "net/ipv6/conf/default/keep_addr_on_down");
    machine_sysctl("1", "net/ipv6/conf/all/keep_addr_on_down");
    machine_sysctl("0", "net/ipv6/conf/default/accept_dad");
    machine_sysctl("0", "net/ipv6/conf/default/accept_ra");
    machine_sysctl("0", "net/ipv6/conf/default/router_solicitations");
    machine_sysctl("3600000", "net/ipv4/neigh/default/base_reachable_time_ms");
    machine_sysctl("3600000", "net/ipv6/neigh/default/base_reachable_time_ms");
    machine_sysctl("100", "net/ipv4/neigh/default/retrans_time_ms");
    machine_sysctl("100", "net/ipv6/neigh/default/retrans_time_ms");
    if (kind == NODE_HOST) {
        return;
    }
    char seed[16];
    snprintf(seed, sizeof(seed), "%u", (unsigned)(1 + lab->scenario.seed % 1000000));
    machine_sysctl("1", "net/ipv4/ip_forward");
    machine_sysctl("1", "net/ipv6/conf/all/forwarding");
    machine_sysctl("1", "net/ipv4/fib_multipath_hash_policy");
    machine_sysctl("1", "net/ipv6/fib_multipath_hash_policy");
    machine_sysctl(seed, "net/ipv4/fib_multipath_hash_seed");
    /* Without this a leaf would send redirects when it sends a packet back to the spine that it came from. */
    machine_sysctl("0", "net/ipv4/conf/all/send_redirects");
    machine_sysctl("0", "net/ipv4/conf/default/send_redirects");
    if (lab->scenario.fabric.routers_answer) {
        machine_sysctl("0", "net/ipv4/icmp_ratelimit");
        machine_sysctl("0", "net/ipv6/icmp/ratelimit");
        machine_sysctl("100000", "net/ipv4/icmp_msgs_per_sec");
        machine_sysctl("100000", "net/ipv4/icmp_msgs_burst");
    } else {
        machine_sysctl("6168", "net/ipv4/icmp_ratemask"); /* bits 3 4 11 12 */
        machine_sysctl("2147483647", "net/ipv4/icmp_ratelimit");
        machine_sysctl("2147483647", "net/ipv6/icmp/ratelimit");
    }
}

static int node_run_batch(const char *command, const char *text)
{
    const char *argv[] = {command, "-batch", "-", NULL};
    return text[0] == '\0' ? 0 : machine_run(argv, text);
}

/* A batch has one address family. Lines that begin with -6 go into a second batch, which runs after the first. */
static int node_run_ip(char *text)
{
    char *later = NULL;
    size_t size = 0;
    FILE *six = open_memstream(&later, &size);
    if (six == NULL) {
        return -ENOMEM;
    }
    char *to = text;
    for (char *line = text; *line != '\0';) {
        char *end = strchr(line, '\n') + 1;
        size_t length = (size_t)(end - line);
        if (strncmp(line, "-6 ", 3) == 0) {
            fwrite(line + 3, 1, length - 3, six);
        } else {
            memmove(to, line, length);
            to += length;
        }
        line = end;
    }
    *to = '\0';
    fclose(six);
    const char *argv[] = {"ip", "-6", "-batch", "-", NULL};
    int r = node_run_batch("ip", text);
    if (r == 0 && size > 0) {
        r = machine_run(argv, later);
    }
    free(later);
    return r;
}

static int node_links(const struct lab *lab, enum node_kind kind, int index)
{
    node_defaults(lab, kind);
    if (kind != NODE_LEAF) {
        return 0;
    }
    char *text = NULL;
    size_t size = 0;
    FILE *ip = open_memstream(&text, &size);
    if (ip == NULL) {
        return -ENOMEM;
    }
    leaf_links(lab, index, ip);
    fclose(ip);
    int r = node_run_batch("ip", text);
    free(text);
    return r;
}

static int node_fill(const struct lab *lab, enum node_kind kind, int index)
{
    char *text[2] = {NULL, NULL};
    size_t size[2];
    FILE *ip = open_memstream(&text[0], &size[0]);
    FILE *tc = open_memstream(&text[1], &size[1]);
    if (ip == NULL || tc == NULL) {
        return -ENOMEM;
    }
    struct shaping shaping = {.tc = tc, .is_switch = kind != NODE_HOST};
    (kind == NODE_HOST   ? host_addresses
     : kind == NODE_LEAF ? leaf_addresses
                         : spine_addresses)(lab, index, ip);
    int r = node_each_port(lab, kind, index, visit_shape, &shaping);
    fclose(ip);
    fclose(tc);
    if (r == 0) {
        r = node_each_port(lab, kind, index, visit_ignore_linkdown, NULL);
    }
    if (r == 0) {
        r = node_run_ip(text[0]);
    }
    if (r == 0) {
        r = node_run_batch("tc", text[1]);
    }
    if (r == 0) {
        r = node_each_port(lab, kind, index, visit_classify, NULL);
    }
    if (r == 0 && kind == NODE_LEAF) {
        r = forget_hashes(lab, index);
    }
    free(text[0]);
    free(text[1]);
    return r;
}

#define LINK_NS (10 * NS_PER_S)

static int visit_wait(const struct lab *lab, const char *interface, double mbps, void *data)
{
    (void)lab;
    (void)mbps;
    (void)data;
    int r = machine_link_wait(interface, LINK_NS);
    if (r == -ETIMEDOUT) {
        fprintf(
            stderr,
            "foliot lab: %s: expected the link to run within %d s after it was set up, found it "
            "down: see `ip link` in `foliot lab exec`\n",
            interface, (int)(LINK_NS / NS_PER_S));
    }
    return r;
}

/* Waits for a node's links. A new link drops packets until the kernel has handled its event: then an agent's first request
 * would wait for a second one, and a switch would leave the link out of its hashing. */
static int node_wait(const struct lab *lab, enum node_kind kind, int index)
{
    return node_each_port(lab, kind, index, visit_wait, NULL);
}

/* Runs `work` for each node. `what` is the error text if it fails. */
static int each_node(const struct lab *lab, const char *what,
                     int (*work)(const struct lab *lab, enum node_kind kind, int index))
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    const int count[] = {f->hosts, f->leaves, f->spines};
    int running = 0;
    int r = 0;
    fflush(NULL);
    for (int kind = NODE_HOST; kind <= NODE_SPINE; kind++) {
        for (int i = 0; i < count[kind]; i++) {
            if (running >= 4) {
                int status = 1;
                wait(&status);
                r = status != 0 ? -EIO : r;
                running--;
            }
            pid_t pid = fork();
            if (pid == 0) {
                char space[64];
                lab_space(lab, (enum node_kind)kind, i, space);
                const char *step = "its namespace can't be entered";
                int done = machine_enter_network(space);
                if (done == 0) {
                    step = what;
                    done = work(lab, (enum node_kind)kind, i);
                }
                if (done < 0) {
                    fprintf(stderr, "foliot lab: %s: %s: %s\n", space, step, strerror(-done));
                }
                _exit(done < 0 ? 1 : 0);
            }
            r = pid < 0 ? -errno : r;
            running += pid > 0;
        }
    }
    while (running-- > 0) {
        int status = 1;
        wait(&status);
        r = status != 0 ? -EIO : r;
    }
    return r;
}

static int make_spaces(const struct lab *lab)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    const int count[] = {f->hosts, f->leaves, f->spines};
    char *text = NULL;
    size_t size = 0;
    FILE *ip = open_memstream(&text, &size);
    if (ip == NULL) {
        return -ENOMEM;
    }
    for (int kind = NODE_HOST; kind <= NODE_SPINE; kind++) {
        for (int i = 0; i < count[kind]; i++) {
            char space[64];
            lab_space(lab, (enum node_kind)kind, i, space);
            fprintf(ip, "netns add %s\n", space);
        }
    }
    fclose(ip);
    int r = node_run_batch("ip", text);
    free(text);
    return r;
}

int lab_fabric_up(const struct lab *lab)
{
    int r = make_spaces(lab);
    if (r < 0) {
        fprintf(stderr, "foliot lab: %s: its namespaces can't be made: %s\n", lab->folder,
                strerror(-r));
        return r;
    }
    r = each_node(lab, "its links can't be made", node_links);
    if (r == 0) {
        r = each_node(lab, "its addresses and routes can't be set", node_fill);
    }
    if (r == 0) {
        r = each_node(lab, "its links don't come up", node_wait);
    }
    return r;
}

/* ---- removal ---- */

static void visit_kill(const char *space, void *data)
{
    int *count = data;
    *count += machine_signal_space(space, SIGKILL);
}

static void visit_list(const char *space, void *data)
{
    fprintf((FILE *)data, "netns delete %s\n", space);
}

int lab_fabric_down(const char *name)
{
    char prefix[64];
    char folder[LAB_TEXT_SIZE];
    snprintf(prefix, sizeof(prefix), "foliot-%s-", name);
    snprintf(folder, sizeof(folder), LAB_ROOT "/%s", name);
    for (int round = 0; round < 50; round++) {
        int count = 0;
        machine_each_space(prefix, visit_kill, &count);
        if (count == 0) {
            break;
        }
        usleep(20000);
    }
    char *text = NULL;
    size_t size = 0;
    FILE *ip = open_memstream(&text, &size);
    if (ip == NULL) {
        return -ENOMEM;
    }
    machine_each_space(prefix, visit_list, ip);
    fclose(ip);
    /* Engines first: a namespace is removed some time after its deletion, and the engine's interface in it at the same time. */
    const int engines = lab_engines_down(name);
    int r = node_run_batch("ip", text);
    r = r == 0 ? engines : r;
    free(text);
    machine_remove_tree(folder);
    rmdir(LAB_ROOT); /* succeeds only without other labs */
    return r;
}

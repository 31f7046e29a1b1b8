/* reroute.c: the part of a routing protocol that the lab needs: if a leaf's trunk is down, other leaves no longer use that
 * spine to reach it. Linux's ECMP alone reacts only to trunks at its own end. */
#include "lab/lab.h"
#include "lab/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static bool link_is_up(const char *interface)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, IFNAMSIZ, "%.15s", interface);
    bool is_up =
        fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_UP) != 0;
    if (fd >= 0) {
        close(fd);
    }
    return is_up;
}

/* is_up[leaf][spine]. */
static int trunks_read(const struct lab *lab, bool is_up[LAB_SWITCH_MAX][LAB_SWITCH_MAX],
                       bool *ret_all_up)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    *ret_all_up = true;
    for (int l = 0; l < f->leaves; l++) {
        char space[64];
        lab_space(lab, NODE_LEAF, l, space);
        int r = machine_enter_network(space);
        if (r < 0) {
            return r;
        }
        for (int s = 0; s < f->spines; s++) {
            is_up[l][s] = link_is_up(lab_uplink_port(lab, l, s).interface);
            *ret_all_up = *ret_all_up && is_up[l][s];
        }
    }
    return 0;
}

static void next_hops(const struct lab *lab, int leaf, const bool *far_is_up,
                      const bool *near_is_up, bool is_v6, FILE *ip)
{
    for (int s = 0; s < lab->scenario.fabric.spines; s++) {
        if ((far_is_up == NULL || far_is_up[s]) && near_is_up[s]) {
            if (is_v6) {
                fprintf(ip, " nexthop via fd00:fffe:%x:%x::2 dev spine%d onlink", (unsigned)leaf,
                        (unsigned)s, s);
            } else {
                fprintf(ip, " nexthop via 172.20.%d.%d dev spine%d", leaf, 4 * s + 2, s);
            }
        }
    }
    fprintf(ip, "\n");
}

static bool any_common(int count, const bool *a, const bool *b)
{
    for (int i = 0; i < count; i++) {
        if (a[i] && b[i]) {
            return true;
        }
    }
    return false;
}

/* One leaf's routes to the NICs of the others, of one address family. */
static void leaf_routes(const struct lab *lab, int leaf, bool is_up[LAB_SWITCH_MAX][LAB_SWITCH_MAX],
                        bool is_v6, FILE *ip)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    /* The kernel removed the general route if all of its trunks were down at once. */
    if (any_common(f->spines, is_up[leaf], is_up[leaf])) {
        if (is_v6) {
            fprintf(ip, "route replace fd00::/24 src fd00:ffff::%x", (unsigned)(1 + leaf));
        } else {
            fprintf(ip, "route replace 10.0.0.0/8 src 172.16.0.%d", 1 + leaf);
        }
        next_hops(lab, leaf, NULL, is_up[leaf], is_v6, ip);
    }
    for (int h = 0; h < f->hosts; h++) {
        for (int n = 0; n < f->nics_per_host; n++) {
            int far = lab_leaf_of(lab, h, n);
            char subnet[64];
            if (far == leaf) {
                continue;
            }
            snprintf(subnet, sizeof(subnet), is_v6 ? "fd00:%x:%x::/64" : "10.%d.%d.0/30",
                     (unsigned)h, (unsigned)n);
            bool is_whole = true;
            for (int s = 0; s < f->spines; s++) {
                is_whole = is_whole && is_up[far][s];
            }
            if (is_whole) {
                fprintf(ip, "route delete %s\n", subnet);
            } else if (any_common(f->spines, is_up[leaf], is_up[far])) {
                fprintf(ip,
                        is_v6 ? "route replace %s src fd00:ffff::%x"
                              : "route replace %s src 172.16.0.%d",
                        subnet, (unsigned)(1 + leaf));
                next_hops(lab, leaf, is_up[far], is_up[leaf], is_v6, ip);
            }
        }
    }
}

static int leaf_batch(const struct lab *lab, int leaf, bool is_up[LAB_SWITCH_MAX][LAB_SWITCH_MAX],
                      bool is_v6)
{
    const char *argv[] = {"ip", is_v6 ? "-6" : "-4", "-force", "-batch", "-", NULL};
    char *text = NULL;
    size_t size = 0;
    FILE *ip = open_memstream(&text, &size);
    if (ip == NULL) {
        return -ENOMEM;
    }
    leaf_routes(lab, leaf, is_up, is_v6, ip);
    fclose(ip);
    /* Deleting a route that does not exist is no error here, so its message is hidden. */
    int saved = dup(STDERR_FILENO);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDERR_FILENO);
    (void)!machine_run(argv, text);
    dup2(saved, STDERR_FILENO);
    close(null);
    close(saved);
    free(text);
    return 0;
}

int lab_fabric_reroute(const struct lab *lab)
{
    static bool is_up[LAB_SWITCH_MAX][LAB_SWITCH_MAX];
    bool all_up;
    int r = trunks_read(lab, is_up, &all_up);
    for (int l = 0; l < lab->scenario.fabric.leaves && r == 0; l++) {
        char space[64];
        lab_space(lab, NODE_LEAF, l, space);
        r = machine_enter_network(space);
        if (r == 0 && (lab->scenario.fabric.ip & IP_V4)) {
            r = leaf_batch(lab, l, is_up, false);
        }
        if (r == 0 && (lab->scenario.fabric.ip & IP_V6)) {
            r = leaf_batch(lab, l, is_up, true);
        }
    }
    return r;
}

/* spot.c: finds the ports of a fault's target. */
#include "lab/spot.h"

#include "base/prng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void match_nic(const struct lab *lab, struct scenario_nic nic, uint8_t v4[4], uint8_t v6[16])
{
    (void)lab;
    const uint8_t four[4] = {10, (uint8_t)nic.host, (uint8_t)nic.nic, 2};
    const uint8_t six[16] = {0xfd, 0, 0, (uint8_t)nic.host, 0, (uint8_t)nic.nic, [15] = 2};
    memcpy(v4, four, sizeof(four));
    memcpy(v6, six, sizeof(six));
}

struct spots {
    struct lab_spot *spot;
    int count;
};

static void add(struct spots *s, struct lab_port port, enum machine_hook hook,
                const struct machine_match *match)
{
    if (s->count < LAB_SPOT_MAX) {
        s->spot[s->count++] =
            (struct lab_spot){.port = port,
                              .hook = hook,
                              .match = match == NULL ? (struct machine_match){0} : *match};
    }
}

/* Adds the hooks of a switch port. `up`: the hook of the direction that the scenario language calls up. */
static void add_port(struct spots *s, struct lab_port port, enum machine_hook up,
                     enum scenario_direction direction)
{
    if (direction != TOWARDS_DOWN) {
        add(s, port, up, NULL);
    }
    if (direction != TOWARDS_UP) {
        add(s, port, up == HOOK_INGRESS ? HOOK_EGRESS : HOOK_INGRESS, NULL);
    }
}

/* Adds one direction of an edge: at the trunk into its spine, or where the sender's packets enter the fabric. */
static void add_edge(const struct lab *lab, struct spots *s, struct scenario_nic from,
                     struct scenario_nic to, int path)
{
    struct machine_match match = {.has_source = true, .has_destination = true};
    match_nic(lab, from, match.source4, match.source6);
    match_nic(lab, to, match.destination4, match.destination6);
    int leaf = lab_leaf_of(lab, from.host, from.nic);
    if (path >= 0 && leaf != lab_leaf_of(lab, to.host, to.nic)) {
        add(s, lab_uplink_port(lab, leaf, path), HOOK_EGRESS, &match);
    } else {
        add(s, lab_leaf_port(lab, from.host, from.nic), HOOK_INGRESS, &match);
    }
}

int lab_spots(const struct lab *lab, const struct scenario_fault *fault,
              struct lab_spot ret_spot[LAB_SPOT_MAX])
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    const struct scenario_target *t = &fault->target;
    struct spots s = {.spot = ret_spot};
    switch (t->kind) {
    case TARGET_NIC:
        add_port(&s, lab_leaf_port(lab, t->from.host, t->from.nic), HOOK_INGRESS, fault->direction);
        break;
    case TARGET_TRUNK:
        add_port(&s, lab_uplink_port(lab, t->first, t->last), HOOK_EGRESS, fault->direction);
        break;
    case TARGET_SPINE:
        for (int l = 0; l < f->leaves; l++) {
            add_port(&s, lab_uplink_port(lab, l, t->first), HOOK_EGRESS, fault->direction);
        }
        break;
    case TARGET_EDGE:
        add_edge(lab, &s, t->from, t->to, t->path);
        if (t->both_ways) {
            add_edge(lab, &s, t->to, t->from, t->path);
        }
        break;
    case TARGET_ALL:
        for (int h = 0; h < f->hosts; h++) {
            for (int n = 0; n < f->nics_per_host; n++) {
                add_port(&s, lab_leaf_port(lab, h, n), HOOK_INGRESS, TOWARDS_UP);
            }
        }
        break;
    default:
        break;
    }
    return s.count;
}

int lab_link_ports(const struct lab *lab, const struct scenario_fault *fault,
                   struct lab_port ret_port[LAB_SPOT_MAX])
{
    const struct scenario_target *t = &fault->target;
    switch (fault->kind) {
    case FAULT_CARRIER:
    case FAULT_FLAP:
    case FAULT_TRUNK:
        ret_port[0] = t->kind == TARGET_NIC ? lab_leaf_port(lab, t->from.host, t->from.nic)
                                            : lab_uplink_port(lab, t->first, t->last);
        /* the cable also carries the NIC's RDMA port */
        if (t->kind == TARGET_NIC && lab->has_engines) {
            ret_port[1] = lab_nic_port(lab, t->from.host, t->from.nic);
            snprintf(ret_port[1].interface, sizeof(ret_port[1].interface), "rdma%d", t->from.nic);
            return 2;
        }
        return 1;
    case FAULT_SPINE:
        for (int l = 0; l < lab->scenario.fabric.leaves; l++) {
            ret_port[l] = lab_uplink_port(lab, l, t->first);
        }
        return lab->scenario.fabric.leaves;
    default:
        return 0;
    }
}

int lab_shaper_ports(const struct lab *lab, const struct scenario_fault *fault,
                     struct lab_port ret_port[LAB_SPOT_MAX])
{
    const struct scenario_target *t = &fault->target;
    int count = 0;
    bool is_nic = t->kind == TARGET_NIC;
    if (fault->direction != TOWARDS_DOWN) {
        ret_port[count++] = is_nic ? lab_nic_port(lab, t->from.host, t->from.nic)
                                   : lab_uplink_port(lab, t->first, t->last);
    }
    if (fault->direction != TOWARDS_UP) {
        ret_port[count++] = is_nic ? lab_leaf_port(lab, t->from.host, t->from.nic)
                                   : lab_downlink_port(lab, t->first, t->last);
    }
    return count;
}

struct draw {
    uint64_t key;
    int host;
};

static int draw_compare(const void *a, const void *b)
{
    const struct draw *x = a;
    const struct draw *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

int lab_target_hosts(const struct lab *lab, const struct scenario_target *target,
                     int ret_host[LAB_HOST_MAX])
{
    int hosts = lab->scenario.fabric.hosts;
    int count = 0;
    if (target->kind == TARGET_NIC) {
        ret_host[count++] = target->from.host;
    } else if (target->kind == TARGET_HOSTS && target->share > 0.0) {
        struct draw draw[LAB_HOST_MAX];
        for (int h = 0; h < hosts; h++) {
            draw[h] = (struct draw){
                .key = hash_u64(lab->scenario.seed, 0x686f7374ULL + (uint64_t)h), .host = h};
        }
        qsort(draw, (size_t)hosts, sizeof(draw[0]), draw_compare);
        int wanted = (int)ceil(target->share * hosts - 1e-9);
        while (count < wanted) {
            ret_host[count] = draw[count].host;
            count++;
        }
    } else {
        int first = target->kind == TARGET_ALL ? 0 : target->first;
        int last = target->kind == TARGET_ALL ? hosts - 1 : target->last;
        for (int h = first; h <= last && h < hosts; h++) {
            ret_host[count++] = h;
        }
    }
    return count;
}

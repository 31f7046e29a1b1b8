/* fault.c: applies the scenario's faults to the world: their targets, times and effects. */
#include "sim/world.h"

#include "sim/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RECORDED 256 /* probes kept for the replay fault */

/* ---- targets ---- */
static void draw(struct world *w, const struct scenario_fault *f, unsigned index, uint8_t *hosts)
{
    const int n = w->host_count;
    const int wanted = (int)(f->target.share * n + 0.5);
    struct prng p;

    prng_init(&p, hash_u64(w->seed ^ 0x64726177, index));
    for (int left = wanted < 1 ? 1 : wanted; left > 0;) {
        const int host = (int)prng_below(&p, (uint64_t)n);
        if (hosts[host] == 0) {
            hosts[host] = 1;
            left--;
        }
    }
}

static int mean_hosts(struct world *w, unsigned index)
{
    const struct scenario_fault *f = &w->scenario->fault[index];
    uint8_t *hosts = calloc((size_t)w->host_count, 1);

    if (hosts == NULL) {
        return -ENOMEM;
    }
    w->fault_hosts[index] = hosts;
    if (f->target.kind == TARGET_ALL) {
        memset(hosts, 1, (size_t)w->host_count);
    } else if (f->target.kind == TARGET_HOSTS && f->target.share > 0) {
        draw(w, f, index, hosts);
    } else if (f->target.kind == TARGET_HOSTS) {
        for (int i = f->target.first; i <= f->target.last; i++) {
            hosts[i] = 1;
        }
    } else if (f->target.kind == TARGET_NIC) {
        hosts[f->target.from.host] = 1;
    }
    return 0;
}

/* ---- changes of oscillators, made beforehand ---- */
static void change_nics(struct world *w, int host, const struct crystal_change *change)
{
    for (int i = 0; i < w->nics_per_host && world_nics_stamp(w, host); i++) {
        crystal_add(&w->hosts[host].nics[i].crystal, change);
    }
}

static void change_raw(struct world *w, int host, enum crystal_change_kind kind, int64_t at,
                       double amount)
{
    const struct crystal_change change = {.at = at, .kind = kind, .amount = amount};
    crystal_add(&w->hosts[host].raw, &change);
}

/* Changes the target's clock: a NIC's if it has one, else its host's. */
static void change_target(struct world *w, const struct scenario_fault *f, int host,
                          enum crystal_change_kind kind, double amount, double back)
{
    struct crystal *c = &w->hosts[host].raw;

    if (f->target.kind == TARGET_NIC && world_nics_stamp(w, host)) {
        c = &w->hosts[host].nics[f->target.from.nic].crystal;
    }
    crystal_add(c, &(struct crystal_change){.at = f->at_ns, .kind = kind, .amount = amount});
    if (f->for_ns > 0 && back != 0) {
        crystal_add(
            c, &(struct crystal_change){.at = f->at_ns + f->for_ns, .kind = kind, .amount = back});
    }
}

/* A servo that follows another clock: its rate jumps every second around `ppm`. */
static void steer(struct world *w, const struct scenario_fault *f, int host, int nic)
{
    struct prng p;
    double was = 0;
    const int64_t end = f->for_ns > 0 ? f->at_ns + f->for_ns : w->scenario->duration_ns;

    prng_init(&p, hash_u64(w->seed ^ 0x7365, world_nic(w, host, nic)));
    for (int64_t at = f->at_ns; at < end; at += NS_PER_S) {
        const double now = f->ppm * (0.5 + prng_uniform(&p));
        crystal_add(&w->hosts[host].nics[nic].crystal,
                    &(struct crystal_change){.at = at, .kind = CRYSTAL_RATE, .amount = now - was});
        was = now;
    }
    crystal_add(&w->hosts[host].nics[nic].crystal,
                &(struct crystal_change){.at = end, .kind = CRYSTAL_RATE, .amount = -was});
}

static void plan_clock(struct world *w, const struct scenario_fault *f, int host)
{
    switch (f->kind) {
    case FAULT_CLOCK_STEP:
        change_target(w, f, host, CRYSTAL_STEP, (double)f->step_ns, 0);
        break;
    case FAULT_CLOCK_FREQ:
        change_target(w, f, host, CRYSTAL_RATE, f->ppm, -f->ppm);
        break;
    case FAULT_SUSPEND:
        change_raw(w, host, CRYSTAL_STOP, f->at_ns, 0);
        change_raw(w, host, CRYSTAL_GO, f->at_ns + f->for_ns, 0);
        break;
    case FAULT_REBOOT: {
        const double fresh = 5e9 + (double)host * 1e7;
        change_raw(w, host, CRYSTAL_RESET, f->at_ns + f->for_ns, fresh);
        change_nics(w, host,
                    &(struct crystal_change){
                        .at = f->at_ns + f->for_ns, .kind = CRYSTAL_RESET, .amount = fresh / 2});
        break;
    }
    case FAULT_NIC_STEER:
        for (int i = 0; i < w->nics_per_host && world_nics_stamp(w, host); i++) {
            if (f->target.kind == TARGET_HOSTS || i == f->target.from.nic) {
                steer(w, f, host, i);
            }
        }
        break;
    default:
        break;
    }
}

int world_faults_init(struct world *w)
{
    for (int i = 0; i < w->scenario->fault_count; i++) {
        const struct scenario_fault *f = &w->scenario->fault[i];
        const int r = mean_hosts(w, (unsigned)i);
        if (r < 0) {
            return r;
        }
        agenda_add(&w->agenda, f->at_ns, WORLD_FAULT_ON, (uint32_t)i);
        if (f->for_ns > 0 && f->kind != FAULT_FLAP && f->kind != FAULT_AGENT_RESTART) {
            agenda_add(&w->agenda, f->at_ns + f->for_ns, WORLD_FAULT_OFF, (uint32_t)i);
        }
        for (int host = 0; host < w->host_count; host++) {
            if (w->fault_hosts[i][host] != 0) {
                plan_clock(w, f, host);
            }
        }
        if (f->kind == FAULT_REPLAY && w->recorded == NULL) {
            w->recorded = calloc(RECORDED, sizeof(*w->recorded));
            if (w->recorded == NULL) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

/* ---- on, off ---- */
static void asleep(struct world *w, int host, bool on)
{
    for (int i = 0; i < w->nics_per_host; i++) {
        w->network.carrier[world_nic(w, host, i)] = !on && w->hosts[host].nics[i].facts.carrier;
    }
}

static bool left_out(const struct world *w, int host)
{
    for (int i = 0; i < w->scenario->fault_count; i++) {
        if (w->left_out[i] && w->fault_hosts[i][host] != 0) {
            return true;
        }
    }
    return false;
}

/* Makes the list of peers without the hosts of all such faults that are on. Hosts keep the lists that they got, so each list
 * has its own memory. A host that is left out does not get the list. */
static void rename_peers(struct world *w, unsigned index, bool on)
{
    struct mesh_fleet list = w->fleet;
    struct mesh_peer *room = w->fewer + (2 * (size_t)index + !on) * w->fleet.peer_count;
    uint32_t n = 0;

    w->left_out[index] = on;
    for (uint32_t i = 0; i < w->fleet.peer_count; i++) {
        if (!left_out(w, (int)w->peers[i].host.index)) {
            room[n++] = w->peers[i];
        }
    }
    if (n < w->fleet.peer_count) {
        list.peers = room;
        list.peer_count = n;
    }
    for (int host = 0; host < w->host_count; host++) {
        const struct node *node = w->hosts[host].node;
        if (node != NULL && !left_out(w, host) && node_fleet(node)->peers != list.peers) {
            host_tell_peers(w, host, &list);
        }
    }
}

static void suspend(struct world *w, const struct scenario_fault *f, int host, bool on)
{
    struct world_host *h = &w->hosts[host];

    asleep(w, host, on);
    if (on) {
        h->stopped_until = f->at_ns + f->for_ns;
    } else {
        h->suspended_ns = f->told ? f->for_ns : 0;
    }
}

static void host_fault(struct world *w, const struct scenario_fault *f, int host, bool on)
{
    struct world_host *h = &w->hosts[host];

    switch (f->kind) {
    case FAULT_AGENT_KILL:
    case FAULT_REBOOT:
        h->held += on ? 1 : -1;
        if (on) {
            host_stop(w, host);
            h->page_valid = h->page_valid && f->kind != FAULT_REBOOT;
        } else {
            host_start(w, host);
        }
        if (f->kind == FAULT_REBOOT) {
            asleep(w, host, on);
        }
        break;
    case FAULT_AGENT_STOP:
        h->stopped_until = on ? f->at_ns + f->for_ns : h->stopped_until;
        break;
    case FAULT_AGENT_STARVE:
        h->starved_until = on ? (f->for_ns > 0 ? f->at_ns + f->for_ns : INT64_MAX) : 0;
        h->starve_turn = f->turn_ns;
        h->starve_share = f->share;
        break;
    case FAULT_SUSPEND:
        suspend(w, f, host, on);
        break;
    case FAULT_LIAR:
        h->lie = on ? f : NULL;
        h->lie_since = w->now;
        h->frozen_known = false;
        break;
    case FAULT_ANCHOR_LOST:
        h->anchor = !on && host < w->scenario->clocks.anchors;
        break;
    case FAULT_VERSION:
        h->version = on ? f->version : PROBE_VERSION;
        if (h->node != NULL) {
            host_stop(w, host);
            host_start(w, host);
        }
        break;
    default:
        break;
    }
}

static void nic_fault(struct world *w, const struct scenario_fault *f, bool on)
{
    const struct scenario_nic n = f->target.from;

    if (f->kind == FAULT_CARRIER) {
        host_carrier(w, n.host, n.nic, !on, true);
    } else if (f->kind == FAULT_NIC_VANISH) {
        host_carrier(w, n.host, n.nic, !on, !on);
    }
}

void world_fault(struct world *w, unsigned index, bool on)
{
    const struct scenario_fault *f = &w->scenario->fault[index];

    check_fault(w, index, on);
    if (f->kind == FAULT_FLAP) {
        w->flaps_left[index] = 2 * f->count;
        world_flap(w, index);
        return;
    }
    if (f->kind == FAULT_AGENT_RESTART || f->kind == FAULT_REPLAY || f->kind == FAULT_FORGE) {
        w->flaps_left[index] = on ? INT32_MAX : 0;
        if (on) {
            world_fault_turn(w, index);
        }
        return;
    }
    if (f->kind == FAULT_PEERS) {
        rename_peers(w, index, on);
        return;
    }
    if (f->kind == FAULT_CARRIER || f->kind == FAULT_NIC_VANISH) {
        nic_fault(w, f, on);
    }
    if (on) {
        network_fault_on(&w->network, index, w->now, w->fault_hosts[index]);
    } else {
        network_fault_off(&w->network, index, w->now);
    }
    for (int host = 0; host < w->host_count; host++) {
        if (w->fault_hosts[index][host] != 0) {
            host_fault(w, f, host, on);
        }
    }
}

void world_flap(struct world *w, unsigned index)
{
    const struct scenario_fault *f = &w->scenario->fault[index];
    const bool down = w->flaps_left[index] % 2 == 0;

    if (w->flaps_left[index] == 0) {
        check_fault(w, index, false);
        return;
    }
    w->flaps_left[index]--;
    if (f->target.kind == TARGET_NIC) {
        host_carrier(w, f->target.from.host, f->target.from.nic, !down, true);
    } else if (down) {
        network_fault_on(&w->network, index, w->now, w->fault_hosts[index]);
    } else {
        network_fault_off(&w->network, index, w->now);
    }
    agenda_add(&w->agenda, w->now + (down ? f->down_ns : (f->up_ns > 0 ? f->up_ns : f->down_ns)),
               WORLD_FLAP, index);
}

/* ---- repeated turns ---- */
static void restart_next(struct world *w, unsigned index)
{
    const struct scenario_fault *f = &w->scenario->fault[index];
    int host = INT32_MAX - w->flaps_left[index];

    while (host < w->host_count && w->fault_hosts[index][host] == 0) {
        host++;
    }
    if (host >= w->host_count) {
        check_fault(w, index, false);
        return;
    }
    w->flaps_left[index] = INT32_MAX - (host + 1);
    host_save(w, host);
    host_stop(w, host);
    agenda_add(&w->agenda, w->now + (f->for_ns > 0 ? f->for_ns : NS_PER_S), WORLD_START,
               (uint32_t)host);
    agenda_add(&w->agenda, w->now + f->every_ns, WORLD_EVERY, index);
}

static void play_again(struct world *w, const struct scenario_fault *f)
{
    const uint32_t dst = world_nic(w, f->target.to.host, f->target.to.nic);

    if (w->recorded_count == 0) {
        return;
    }
    const uint32_t which = (uint32_t)prng_below(
        &w->network.random, w->recorded_count < RECORDED ? w->recorded_count : RECORDED);
    const uint32_t i = world_packet_new(w);
    w->packets[i] = w->recorded[which];
    w->packets[i].dst = dst;
    w->packets[i].sent = -1; /* its true delay is not known */
    world_arrive(w, i, w->now + 5000);
}

static void forge(struct world *w, const struct scenario_fault *f)
{
    const uint32_t i = world_packet_new(w);

    w->packets[i] = (struct packet){
        .src = world_nic(w, f->target.from.host, f->target.from.nic),
        .dst = world_nic(w, f->target.to.host, f->target.to.nic),
        .stage = PROBE_ERROR_TAG,
    };
    world_deliver(w, f->target.to.host, w->now, INBOX_BAD, i);
}

void world_fault_turn(struct world *w, unsigned index)
{
    const struct scenario_fault *f = &w->scenario->fault[index];

    if (f->kind == FAULT_AGENT_RESTART) {
        restart_next(w, index);
        return;
    }
    if (w->flaps_left[index] == 0) {
        return;
    }
    if (f->kind == FAULT_REPLAY) {
        play_again(w, f);
    } else {
        forge(w, f);
    }
    agenda_add(&w->agenda, w->now + f->every_ns, WORLD_EVERY, index);
}

void world_record(struct world *w, const struct packet *p)
{
    for (int i = 0; i < w->scenario->fault_count; i++) {
        const struct scenario_fault *f = &w->scenario->fault[i];
        if (f->kind == FAULT_REPLAY && p->sent >= 0 &&
            p->src == world_nic(w, f->target.from.host, f->target.from.nic) &&
            p->dst == world_nic(w, f->target.to.host, f->target.to.nic)) {
            w->recorded[w->recorded_count++ % RECORDED] = *p;
        }
    }
}

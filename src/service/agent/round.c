/* round.c: packets in and out, every 10 ms. */
#include "base/ip.h"
#include "service/agent/agent.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <syslog.h>
#include <time.h>

enum {
    DSCP_CS6 = 48,
    JOB_PAGES_A_ROUND = 4, /* so that all of JOB_PROCESS_MAX are read within a second */
};

/* ---- in ---- */

void agent_refused(struct agent *a, uint32_t local, enum probe_error error)
{
    a->bad[local][error]++;
    a->bad_total[error]++;
    a->bad_last[error] = a->now;
}

static void take_packet(struct agent *a, uint32_t local, const struct endpoint_received *p)
{
    struct agent_receive *r = &a->received[a->received_count];
    const bool longer = p->size > PROBE_SIZE; /* only a probe of full size may be longer */
    enum probe_error error =
        agent_pair_decode(a, p->bytes, longer ? PROBE_SIZE : p->size, p->from, &r->event.probe);
    if (longer && (error != PROBE_OK || r->event.probe.type != PROBE_DISCOVERY)) {
        error = PROBE_ERROR_SIZE;
    }
    if (error != PROBE_OK) {
        agent_refused(a, local, error);
        return;
    }
    r->event.local = local;
    r->event.source_port = p->source_port;
    r->event.reserved = 0;
    r->event.reserved2 = 0;
    r->software_ns = p->software_ns;
    r->hardware_ns = p->hardware_ns;
    r->dscp = p->traffic_class >> 2;
    memcpy(r->from, p->from, sizeof(r->from));
    a->received_count++;
}

/* For a NIC that promised hardware stamps: returns the stamp, or 0 if it is missing or older than the packet's last `age_ns`. */
static int64_t watched(struct agent *a, uint32_t local, enum stamp_way way, int64_t hardware_ns,
                       int64_t age_ns)
{
    struct stamp_watch *w = &a->nics[local].watch;
    const struct nic_time stamp = {hardware_ns};

    if (!a->nics[local].hardware) {
        return hardware_ns;
    }
    const enum stamp_seen seen = hardware_ns == 0                                  ? STAMP_MISSING
                                 : stamp_watch_plausible(w, a->now, age_ns, stamp) ? STAMP_GIVEN
                                                                                   : STAMP_WRONG;
    stamp_watch_packet(w, way, seen);
    return seen == STAMP_GIVEN ? hardware_ns : 0;
}

/* Time since the kernel's clock showed realtime_ns. The clock may have been set meanwhile. */
static int64_t age_of(int64_t realtime_ns)
{
    const int64_t age = time_source_kernel_wall_ns() - realtime_ns;

    return age > 0 ? age : 0;
}

/* Upper limit for a packet's age. The kernel's own stamp may be later than the NIC's stamp: by a late interrupt, or a busy
 * processor. */
static int64_t receive_age(const struct agent_receive *r)
{
    return r->software_ns != 0 ? age_of(r->software_ns) + NS_PER_S : 10 * NS_PER_S;
}

/* Converts a stamp for the node: kind, time, error. */
static uint8_t place_stamp(struct agent *a, uint32_t local, int64_t software_ns,
                           int64_t hardware_ns, struct nic_time *ret_stamp, uint32_t *ret_error_ns)
{
    *ret_stamp = (struct nic_time){0};
    *ret_error_ns = 0;
    if (a->nics[local].hardware && hardware_ns != 0) {
        *ret_stamp = (struct nic_time){hardware_ns};
        return STAMP_HARDWARE;
    }
    if (a->nics[local].hardware || software_ns == 0 ||
        !time_source_stamp(a->source, software_ns, local, ret_stamp, ret_error_ns)) {
        return STAMP_NONE;
    }
    return time_source_lab_nic_stamps(a->source) ? STAMP_HARDWARE : STAMP_SOFTWARE;
}

static void deliver_received(struct agent *a)
{
    for (size_t i = 0; i < a->received_count; i++) {
        struct agent_receive *r = &a->received[i];
        r->hardware_ns = watched(a, r->event.local, STAMP_RECEIVED, r->hardware_ns, receive_age(r));
        r->event.stamps = place_stamp(a, r->event.local, r->software_ns, r->hardware_ns,
                                      &r->event.rx, &r->event.error_ns);
        if (agent_measure_on_packet(a, &r->event) ||
            agent_matrix_on_packet(a, &r->event, r->dscp) ||
            agent_ud_on_packet(a, &r->event)) { /* these packets do not go to the node */
            continue;
        }
        if (!agent_address_on_packet(a, r)) {
            agent_feed(a, NODE_EVENT_RECEIVE, &r->event);
        }
    }
    a->received_count = 0;
}

static void tell_transmitted(struct agent *a, const struct node_transmit *event)
{
    if (!agent_measure_on_transmit(a, event) && !agent_matrix_on_transmit(a, event)) {
        agent_feed(a, NODE_EVENT_TRANSMIT, event);
    }
}

static void deliver_transmitted(struct agent *a)
{
    for (size_t i = 0; i < a->transmitted_count; i++) {
        const struct agent_transmit *t = &a->transmitted[i];
        const struct endpoint_stamp *s = &t->stamp;
        struct node_transmit event = {.token = s->token, .local = t->local};
        event.outcome = s->outcome == ENDPOINT_NOT_SENT ? TRANSMIT_NOT_SENT : TRANSMIT_NO_STAMP;
        const int64_t given = s->outcome == ENDPOINT_STAMPED && s->hardware ? s->ns : 0;
        const int64_t hardware_ns =
            s->outcome != ENDPOINT_NOT_SENT
                ? watched(a, t->local, STAMP_SENT, given, age_of(s->called_ns))
                : 0;
        if (s->outcome == ENDPOINT_STAMPED) {
            event.stamps = place_stamp(a, t->local, s->hardware ? 0 : s->ns, hardware_ns, &event.tx,
                                       &event.error_ns);
            event.outcome = event.stamps == STAMP_NONE ? TRANSMIT_NO_STAMP : TRANSMIT_STAMPED;
        }
        tell_transmitted(a, &event);
    }
    a->transmitted_count = 0;
}

static void deliver_all(struct agent *a)
{
    time_source_sandwich(a->source);
    a->now = time_source_now(a->source);
    deliver_transmitted(a);
    deliver_received(a);
}

static void take_all(struct agent *a)
{
    struct endpoint_received packets[ENDPOINT_BATCH];
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        struct endpoint *e = a->nics[i].endpoint;
        if (e == NULL) {
            continue;
        }
        for (size_t n, rounds = 0; rounds < 16 && (n = endpoint_receive(e, packets)) > 0;
             rounds++) {
            if (a->received_count + n > AGENT_RECEIVE_PENDING) {
                deliver_all(a);
            }
            for (size_t k = 0; k < n; k++) {
                take_packet(a, i, &packets[k]);
            }
            if (n < ENDPOINT_BATCH) {
                break;
            }
        }
        struct endpoint_stamp stamp;
        while (endpoint_next_stamp(e, &stamp)) {
            if (a->transmitted_count == AGENT_STAMP_PENDING) {
                deliver_all(a);
            }
            a->transmitted[a->transmitted_count++] = (struct agent_transmit){i, stamp};
        }
    }
    deliver_all(a);
}

/* Bad packets go to the node as sums, at most ten times a second. So a flood of them is cheap. */
static void deliver_bad(struct agent *a)
{
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        for (uint32_t error = 0; error < PROBE_ERROR_COUNT; error++) {
            if (a->bad[i][error] > 0) {
                const struct node_bad_packet event = {i, error, a->bad[i][error], 0};
                agent_feed(a, NODE_EVENT_BAD_PACKET, &event);
                a->bad[i][error] = 0;
            }
        }
    }
}

/* Finds the probe that a router's answer belongs to: by its number if the quote is long enough, else only if exactly one probe
 * fits. */
static void find_discovery(struct agent *a, const struct hop_answer *h, struct node_hop *event)
{
    struct probe probe;
    const bool known = h->quoted >= PROBE_SIZE &&
                       agent_pair_decode(a, h->payload, PROBE_SIZE, NULL, &probe) == PROBE_OK;
    for (uint32_t i = 0; i < AGENT_DISCOVERY_KEPT; i++) {
        const struct agent_discovery *d = &a->discovery[i];
        if (d->ttl == 0 || d->local != event->local || d->peer.index != event->peer.index ||
            d->source_port != event->source_port || mono_sub(a->now, d->at).ns > 3 * NS_PER_S ||
            (known && d->seq != probe.seq)) {
            continue;
        }
        if (!known && event->token != 0 && event->ttl != d->ttl) {
            event->token = 0;
            event->ttl = 0;
            return;
        }
        event->token = d->token;
        event->ttl = d->ttl;
    }
}

/* Finds the NIC that has this address, among the few that this host probes. */
static struct nic_id probed_nic(const struct agent *a, const uint8_t address[16])
{
    static const uint8_t prefix4[12] = {[10] = 0xff, [11] = 0xff};
    const bool is4 = memcmp(address, prefix4, sizeof(prefix4)) == 0;
    for (uint32_t e = 0; e < node_edge_count(a->node); e++) {
        struct node_edge edge;
        uint32_t index = 0;
        if (node_edge_get(a->node, e, a->now, &edge) &&
            agent_config_find(a->config, edge.peer, &index)) {
            const struct agent_peer *peer = &a->config->more[index];
            if (is4 ? memcmp(&peer->address4, address + 12, 4) == 0
                    : memcmp(&peer->address6, address, 16) == 0) {
                return edge.peer;
            }
        }
    }
    return NIC_NONE;
}

static void take_hop(struct agent *a, const struct hop_answer *h)
{
    struct node_hop event = {.local = UINT32_MAX, .source_port = h->source_port};
    for (uint32_t n = 0; n < a->config->nic_count; n++) {
        if ((memcmp(&a->nics[n].address4, h->source + 12, 4) == 0 && h->source[10] == 0xff) ||
            memcmp(&a->nics[n].address6, h->source, 16) == 0) {
            event.local = n;
        }
    }
    if (h->destination_port != a->config->port || event.local == UINT32_MAX) {
        return;
    }
    event.peer = probed_nic(a, h->destination);
    if (event.peer.index == NIC_NONE.index) {
        return;
    }
    memcpy(event.address, h->router, sizeof(event.address));
    event.kind = h->unreachable ? HOP_PEER_HOST : h->no_route ? HOP_NO_ROUTE : HOP_EXCEEDED;
    if (event.kind == HOP_EXCEEDED) {
        find_discovery(a, h, &event);
    }
    agent_feed(a, NODE_EVENT_HOP, &event);
}

static void take_hops(struct agent *a)
{
    struct hop_answer h;
    unsigned taken = 0;
    a->hops_wait = false;
    while (taken < 32 && hop_next(&a->hops, &h)) {
        take_hop(a, &h);
        taken++;
    }
    a->hops_wait = taken == 32; /* more answers may wait: the next round reads them */
}

/* ---- out ---- */

void agent_pair_addresses(const struct agent *a, uint32_t local, const struct agent_peer *peer,
                          uint8_t ret_own[static 16], uint8_t ret_peer[static 16])
{
    if (peer->address4.s_addr != 0 && a->nics[local].address4.s_addr != 0) {
        ip_of_v4(ret_own, &a->nics[local].address4);
        ip_of_v4(ret_peer, &peer->address4);
    } else {
        memcpy(ret_own, &a->nics[local].address6, 16);
        memcpy(ret_peer, &peer->address6, 16);
    }
}

/* Payload size of a full packet. Every second one of a path is as large as the interface's MTU allows. The others fit into
 * 1,500 bytes: if the MTU is 9,000 and one hop has 1,500, only these pass. */
static uint16_t full_size(const struct agent *a, const struct mesh_send *s)
{
    enum { USUAL_MTU = 1500 };
    const uint32_t mtu = link_monitor_get(a->links, a->nics[s->local].slot)->mtu,
                   headers = USUAL_MTU - MESH_FULL_SIZE;
    const uint32_t most = mtu > headers + PROBE_SIZE ? mtu - headers : MESH_FULL_SIZE;
    if (mtu <= USUAL_MTU || s->probe.seq % 2 == 0) {
        return (uint16_t)(most < MESH_FULL_SIZE ? most : MESH_FULL_SIZE);
    }
    return (uint16_t)(most < ENDPOINT_FULL_SIZE ? most : ENDPOINT_FULL_SIZE);
}

void agent_send_over(struct agent *a, const struct mesh_send *s, unsigned family, uint8_t dscp)
{
    const unsigned class = s->net_class == NODE_CLASS_CLOCK ? DSCP_CS6 : dscp;
    struct endpoint_packet p = {.token = s->token,
                                .source_port = s->source_port,
                                .ttl = s->ttl,
                                .size = s->size > PROBE_SIZE ? full_size(a, s) : s->size,
                                .traffic_class = (uint8_t)(class << 2),
                                .want_stamp = s->want_stamp != 0};
    struct endpoint *e = a->nics[s->local].endpoint;
    uint32_t index = 0;
    if (e == NULL || !agent_config_find(a->config, s->peer, &index)) {
        const struct node_transmit event = {
            .token = s->token, .local = s->local, .outcome = TRANSMIT_NOT_SENT};
        tell_transmitted(a, &event);
        return;
    }
    const struct agent_peer *peer = &a->config->more[index];
    uint8_t own[16];
    agent_pair_addresses(a, s->local, peer, own, p.peer);
    if (family == 6) {
        memcpy(p.peer, &peer->address6, 16);
    }
    if (s->ttl != 0) {
        a->discovery[a->discovery_count++ % AGENT_DISCOVERY_KEPT] = (struct agent_discovery){
            s->token, a->now, s->peer, s->local, s->probe.seq, s->source_port, s->ttl};
    }
    probe_encode(p.bytes, &s->probe, agent_pair_key(a, s->peer));
    endpoint_queue(e, &p);
}

void agent_send(struct agent *a, const struct mesh_send *s)
{
    agent_send_over(a, s, 0, 0);
}

void agent_drain_actions(struct agent *a)
{
    struct node_action action;
    while (node_next_action(a->node, &action)) {
        switch ((enum node_action_kind)action.kind) {
        case NODE_SEND:
            agent_send(a, &action.send);
            a->nics[action.send.local].hold_us = action.send.hold_us;
            break;
        case NODE_PUBLISH_CLOCK:
            a->publish_clock = true;
            break;
        case NODE_PUBLISH_MESH:
            a->publish_mesh = true;
            a->publish_mesh_all = a->publish_mesh_all || action.changed != 0;
            break;
        case NODE_FINDING:
            agent_say_finding(a, &action.finding);
            break;
        }
    }
    recorder_drained(a->recorder);
    a->tick_due = node_deadline(a->node);
    agent_measure_send(a);
    agent_matrix_round(a);
    agent_perf_round(a);
}

/* Of the NICs that have not sent yet: the one with the shortest hold. */
static uint32_t next_departure(const struct agent *a, uint32_t sent)
{
    uint32_t next = UINT32_MAX;
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        if ((sent & (1u << i)) == 0 &&
            (next == UINT32_MAX || a->nics[i].hold_us < a->nics[next].hold_us)) {
            next = i;
        }
    }
    return next;
}

/* The loop sleeps for these few milliseconds. No other work is due before the next round, and a sleep is cheaper than a timer
 * and a turn of the loop. */
void agent_depart(struct agent *a)
{
    uint32_t sent = 0, slept_us = 0;
    for (uint32_t n = 0; n < a->config->nic_count; n++) {
        struct agent_nic *nic = &a->nics[next_departure(a, sent)];
        sent |= 1u << (uint32_t)(nic - a->nics);
        if (nic->endpoint == NULL || !endpoint_waits(nic->endpoint)) {
            continue;
        }
        if (nic->hold_us > slept_us) {
            const struct timespec rest = {0, (nic->hold_us - slept_us) * NS_PER_US};
            /* a signal ends the sleep early */
            (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
            slept_us = nic->hold_us;
        }
        endpoint_flush(nic->endpoint);
    }
}

/* ---- the round ---- */

int64_t agent_next_round(int64_t *grid_ns, int64_t now, int64_t period_ns, int64_t begin_ns)
{
    const int64_t next = (*grid_ns == 0 ? now : *grid_ns) + period_ns;
    if (next + begin_ns > now) {
        *grid_ns = next;
        return next + begin_ns;
    }
    *grid_ns = now - (now - next) % period_ns;
    return now;
}

int agent_arm(struct agent *a)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const int64_t now = t.tv_sec * NS_PER_S + t.tv_nsec;
    const int64_t begin = node_begin_us(a->node) * NS_PER_US % a->period_ns;
    const int64_t at = agent_next_round(&a->grid_ns, now, a->period_ns, begin);
    const struct itimerspec once = {.it_value = {at / NS_PER_S, at % NS_PER_S}};
    return timerfd_settime(a->timer_fd, TFD_TIMER_ABSTIME, &once, NULL) < 0 ? -errno : 0;
}

static bool due(struct agent *a, struct mono *next, struct span period)
{
    /* if the clock jumps back, periodic work must go on */
    if (mono_before(a->now, *next) && mono_sub(*next, a->now).ns <= period.ns) {
        return false;
    }
    *next = mono_add(a->now, period);
    return true;
}

static void note_cost(struct agent *a)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const int64_t cpu_ns = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
                           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
    const int64_t elapsed = a->now.ns - a->cpu_mono_then;
    if (elapsed > 0 && a->cpu_mono_then != 0) {
        a->cpu_ppm = (cpu_ns - a->cpu_ns_then) * 1000000 / elapsed;
    }
    a->cpu_ns_then = cpu_ns;
    a->cpu_mono_then = a->now.ns;
}

static void note_moment(struct agent *a)
{
    struct clock_terms terms;
    node_clock_page(a->node, &terms);
    const struct clock_reading reading = clock_terms_read(&terms, (struct nic_time){a->now.ns});
    a->history[a->history_count++ % AGENT_HISTORY] = (struct agent_moment){
        a->now, reading.hard_ns, reading.statistical_ns, (uint32_t)reading.status};
}

void agent_round(struct agent *a)
{
    take_all(a);
    if (a->hops_wait) {
        take_hops(a);
    }
    agent_clocks_round(a);
    if (due(a, &a->next_slow, span_ms(100))) {
        deliver_bad(a);
        agent_clocks_slow(a);
    }
    if (due(a, &a->next_poll, span_s(1))) {
        agent_nics_poll(a);
        agent_clocks_watch(a);
        agent_nics_follow(a);
        agent_lldp_poll(a);
    }
    agent_verbs_round(a);
    agent_ud_round(a);
    /* tick_due was set before this round's facts: node_deadline() is always later than the last call */
    if (!mono_before(a->now, a->tick_due) || mono_before(a->now, a->ticked)) {
        a->ticked = a->now;
        agent_feed(a, NODE_EVENT_TICK, NULL);
    }
    agent_drain_actions(a);
    agent_publish_clock(a);
    if (a->publish_mesh) {
        agent_publish_mesh(a);
    }
    jobs_poll(a->jobs, a->now, JOB_PAGES_A_ROUND);
    agent_uplink_jobs(a);
    if (due(a, &a->next_moment, span_s(1))) {
        note_moment(a);
    }
    if (due(a, &a->next_save, span_s(10))) {
        agent_state_save(a);
        note_cost(a);
    }
    agent_depart(a);
}

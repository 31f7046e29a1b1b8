/* verbs_probe.c: probes between queue pairs: one UD queue pair for the first RDMA port beside each of this host's NICs. Peers
 * get its address by UDP. Those packets prove their sender, and a repeated packet is refused. Packets between queue pairs are
 * proven in the same way.
 *
 * core/mesh/port_probe.h decides which peer is asked what, and judges the result.
 *
 * These packets do not go through the node, like those of measure.c: they change no clock. If a device has no stamps, each
 * side polls for a packet after a herald has announced it. That takes some 0.3 ms for each question and answer: at most a
 * hundredth of the time for answers, and half of that for questions. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <syslog.h>
#include <time.h>

#include "core/mesh/port_probe.h"
#include "platform/rdma/ud.h"
#include "service/agent/verbs_probe.h"

#define TOKEN_MARK    (1ULL << 63) /* as in measure.c: the stamp of this packet is not needed */
#define TELL_EACH_S   1
#define CLASS_EACH_S  1
#define LOOK_OUT_NS   (PORT_HERALD_NS_MOST + NS_PER_MS) /* how long to poll after a herald */
#define ANSWERS_A_S   500 /* for all peers; port_probe.c counts those of each peer */
#define TAKEN_AT_ONCE 32
#define LID_MULTICAST 0xc000 /* LIDs from here on belong to multicast groups */
#define PORT_MASK     0x3fff /* of a source port: the flow label */
#define PATH_EACH_S   15 /* each path of a job to a peer is used for so long, one after the other */

struct ud_port {        /* one per own NIC */
    struct rdma_ud *ud; /* NULL: not open */
    struct rdma_device *device;
    struct rdma_port_name name;
    struct probe_port own;
    struct port_probe probe;
    struct mono next_tell, second;
    struct job_class class;              /* the class that `probe` uses */
    uint32_t answers;                    /* in this second */
    uint16_t paths[2][PORT_PROBE_PEERS]; /* UDP ports of questions, answers; 0: any */
    uint64_t
        admitted; /* 1 + the exchange whose question was polled for: its answer gets a herald */
    bool broken;
};

struct agent_ud {
    struct ud_port ports[HOST_NIC_MAX];
    struct port_waiting asking, answering;
    uint32_t turn; /* the NIC that asks next */
    struct job_class class;
    struct mono next_class;
};

/* Is it another class than that of unmarked packets? */
static bool is_marked(struct job_class class)
{
    return class.traffic_class > 0 || class.sl > 0;
}

struct job_class agent_ud_class(const struct agent *a)
{
    return a->ud->class;
}

/* The class of this host's jobs on the probed NICs. */
static struct job_class class_of_jobs(struct agent *a)
{
    const char *names[HOST_NIC_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        if (a->ud->ports[i].ud != NULL) {
            names[count++] = a->config->nics[i].name;
        }
    }
    jobs_class_nics(a->jobs, names, count);
    return jobs_class(a->jobs, a->now);
}

/* The class by agent.yaml: a fixed one, or that of jobs. */
static void look_for_class(struct agent *a)
{
    if (mono_before(a->now, a->ud->next_class) &&
        mono_sub(a->ud->next_class, a->now).ns <= CLASS_EACH_S * NS_PER_S) {
        return;
    }
    a->ud->next_class = mono_add(a->now, span_s(CLASS_EACH_S));
    a->ud->class = a->config->class_of_jobs
                       ? class_of_jobs(a)
                       : (struct job_class){.traffic_class = a->config->job_traffic_class};
}

int agent_ud_open(struct agent *a)
{
    a->ud = calloc(1, sizeof(*a->ud));
    if (a->ud == NULL) {
        return -ENOMEM;
    }
    a->ud->asking.share = PORT_ASK_SHARE;
    a->ud->answering.share = PORT_ANSWER_SHARE;
    return 0;
}

static void close_port(struct ud_port *p)
{
    p->ud = rdma_ud_close(p->ud);
    p->device = NULL;
    p->broken = false;
}

void agent_ud_close(struct agent *a)
{
    for (uint32_t i = 0; a->ud != NULL && i < HOST_NIC_MAX; i++) {
        close_port(&a->ud->ports[i]);
    }
    free(a->ud);
    a->ud = NULL;
}

void agent_ud_close_device(struct agent *a, const struct rdma_device *device)
{
    for (uint32_t i = 0; i < HOST_NIC_MAX; i++) {
        if (a->ud->ports[i].ud != NULL && a->ud->ports[i].device == device) {
            close_port(&a->ud->ports[i]);
        }
    }
}

/* ---- opening ---- */

static int64_t now_ns(void *context)
{
    return time_source_now(((struct agent *)context)->source).ns;
}

static struct nic_id own_nic(const struct agent *a, uint32_t local)
{
    return a->config->peers[a->config->nics[local].peer].nic;
}

static bool same_name(const struct rdma_port_name *a, const struct rdma_port_name *b)
{
    return a->port == b->port && strcmp(a->device, b->device) == 0;
}

static void open_port(struct agent *a, uint32_t local, struct rdma_device *device,
                      const struct rdma_port_name *name, const struct rdma_gid *gid)
{
    struct ud_port *p = &a->ud->ports[local];
    struct rdma_ud_config config = {
        .port = name->port, .gid_type = gid->type, .tag = local, .now_ns = now_ns, .context = a};
    struct rdma_ud_address own;
    uint64_t seed = 0;

    memcpy(config.gid, gid->gid, sizeof(config.gid));
    if (getrandom(&config.key, sizeof(config.key), GRND_NONBLOCK) != sizeof(config.key) ||
        getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed)) {
        return;
    }
    config.key &= 0x7fffffff;
    const int r = rdma_ud_open(device, &config, &p->ud);
    if (r < 0) {
        p->ud = NULL;
        if (!p->broken) {
            p->broken = true; /* logged once */
            agent_say(LOG_NOTICE, "%s/%u isn't probed between queue pairs: %s%s", name->device,
                      name->port, strerror(-r),
                      r == -ENOMEM ? ": raise LimitMEMLOCK of foliot-agent.service" : "");
        }
        return;
    }
    p->broken = false;
    p->device = device;
    p->name = *name;
    p->next_tell = a->now;
    rdma_ud_address(p->ud, &own);
    p->own = (struct probe_port){.qp = own.qp,
                                 .key = own.key,
                                 .lid = own.lid,
                                 .global = own.global,
                                 .stamps = rdma_ud_device_stamps(p->ud)};
    memcpy(p->own.gid, own.gid, sizeof(p->own.gid));
    p->class = a->ud->class;
    memset(p->paths, 0, sizeof(p->paths));
    port_probe_init(&p->probe, seed, own.key, is_marked(p->class), a->now);
    if (rdma_ud_arm(p->ud) < 0) {
        close_port(p);
    }
}

void agent_ud_follow(struct agent *a, uint32_t local, struct rdma_device *device,
                     const struct rdma_port_name *name, const struct rdma_gid *gid)
{
    for (uint32_t i = 0; i < HOST_NIC_MAX; i++) { /* the port was beside another NIC before */
        struct ud_port *p = &a->ud->ports[i];
        if (i != local && p->ud != NULL && same_name(&p->name, name)) {
            close_port(p);
        }
    }
    if (local >= HOST_NIC_MAX) {
        return;
    }
    struct ud_port *p = &a->ud->ports[local];
    if (p->ud != NULL && !same_name(&p->name, name)) {
        return; /* another port beside this NIC is in use */
    }
    if (p->ud != NULL && (device == NULL || gid == NULL || p->broken ||
                          memcmp(p->own.gid, gid->gid, sizeof(gid->gid)) != 0)) {
        close_port(p);
    }
    if (p->ud == NULL && device != NULL && gid != NULL) {
        open_port(a, local, device, name, gid);
    }
}

/* ---- moments ---- */

/* Uses the published clock, whose bound belongs to the same readings. */
static struct port_moment moment_of(const struct agent *a, const struct rdma_span *span)
{
    struct port_moment m = {.bound_ns = PROBE_BOUND_NONE};
    struct clock_terms terms;

    node_clock_page(a->node, &terms);
    const struct clock_reading first =
        clock_terms_read(&terms, (struct nic_time){span->earliest_ns});
    const struct clock_reading last = clock_terms_read(&terms, (struct nic_time){span->latest_ns});
    const int64_t width = last.time.ns - first.time.ns;
    if (first.status == CLOCK_UNKNOWN ||
        !(first.hard_ns >= 0 && fmax(first.hard_ns, last.hard_ns) < 1e9) || width < 0 ||
        width > NS_PER_S) {
        return m;
    }
    m.earliest = first.time;
    m.width_ns = (uint32_t)width;
    m.bound_ns = (uint32_t)fmax(first.hard_ns, last.hard_ns) + 1;
    m.timeline = terms.timeline;
    return m;
}

static struct port_moment moment_told(const struct probe *probe)
{
    return (struct port_moment){probe->ud.earliest, probe->ud.width_ns, probe->ud.bound_ns,
                                probe->timeline};
}

/* ---- paths ---- */

/* One of the ports that jobs have to that peer. Both classes go by the same one: it is chosen with the reference, the first. */
static void choose_path(struct agent *a, uint32_t local, struct nic_id nic, uint8_t way,
                        bool answers)
{
    struct ud_port *p = &a->ud->ports[local];
    const struct port_peer *peer = port_probe_find(&p->probe, nic);
    uint16_t ports[JOBS_PORTS_MAX];
    uint32_t count = 0;

    if (peer == NULL || way == PROBE_WAY_JOB) {
        return;
    }
    if (a->config->class_of_jobs && p->own.lid == 0) { /* jobs on RoCE have its GIDs as addresses */
        count = jobs_ports(a->jobs, p->own.gid, peer->at.gid, ports, JOBS_PORTS_MAX);
    }
    const uint64_t turn = (uint64_t)a->now.ns / (PATH_EACH_S * NS_PER_S);
    p->paths[answers][peer - p->probe.peers] = count > 0 ? ports[turn % count] : 0;
}

/* ---- sending ---- */

static struct probe packet_of(const struct agent *a, uint32_t local, struct nic_id peer,
                              enum probe_type type)
{
    return (struct probe){.version = PROBE_VERSION,
                          .version_lowest = PROBE_VERSION_LOWEST,
                          .type = type,
                          .src = own_nic(a, local),
                          .dst = peer};
}

/* moment: may be NULL. Returns like rdma_ud_send. -EIO also marks the port as broken; then it is opened again. */
static int send_step(struct agent *a, uint32_t local, struct nic_id nic,
                     const struct probe_port *to, const struct probe_ud *ud,
                     const struct port_moment *moment, struct rdma_span *ret_left)
{
    const struct port_peer *peer = port_probe_find(&a->ud->ports[local].probe, nic);
    struct ud_port *p = &a->ud->ports[local];
    struct rdma_ud_address address = {
        .lid = to->lid, .global = to->global, .qp = to->qp, .key = to->key};
    const bool as_job = ud->way == PROBE_WAY_JOB;
    const bool answers = ud->step != PROBE_UD_HERALD && ud->step != PROBE_UD_QUESTION;
    const uint16_t path = peer != NULL ? p->paths[answers][peer - p->probe.peers] : 0;
    const struct rdma_ud_way way = {.traffic_class = as_job ? a->ud->class.traffic_class : 0,
                                    .sl = as_job ? a->ud->class.sl : 0,
                                    .flow_label = path & PORT_MASK};
    struct probe probe = packet_of(a, local, nic, PROBE_UD);
    uint8_t bytes[PROBE_SIZE];

    memcpy(address.gid, to->gid, sizeof(address.gid));
    probe.ud = *ud;
    probe.ud.from_key = p->own.key;
    probe.ud.to_key = to->key;
    probe.ud.bound_ns = PROBE_BOUND_NONE;
    if (moment != NULL && moment->bound_ns != PROBE_BOUND_NONE) {
        probe.timeline = moment->timeline;
        probe.ud.earliest = moment->earliest;
        probe.ud.width_ns = moment->width_ns;
        probe.ud.bound_ns = moment->bound_ns;
    }
    probe_encode(bytes, &probe, agent_pair_key(a, nic));
    const int r = rdma_ud_send(p->ud, &address, &way, bytes, sizeof(bytes), ret_left);
    p->broken = p->broken || r == -EIO;
    return r;
}

/* A peer without stamps of its device polls after a herald. `ud` announces what comes. < 0: as rdma_ud_send. Then the
 * announced packet is not sent, either. */
static int herald(struct agent *a, uint32_t local, struct nic_id nic, const struct probe_port *to,
                  const struct probe_ud *ud, struct port_waiting *waiting)
{
    const struct port_peer *peer = port_probe_find(&a->ud->ports[local].probe, nic);
    const struct timespec rest = {.tv_nsec = peer != NULL ? peer->herald_ns : PORT_HERALD_NS};
    struct rdma_span left;

    if (to->stamps) {
        return 0;
    }
    const int r = send_step(a, local, nic, to, ud, NULL, &left);
    if (r == 0) {
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
        port_waited(waiting, rest.tv_nsec);
    }
    return r;
}

static void ask(struct agent *a, uint32_t local, const struct port_question *q)
{
    struct port_probe *probe = &a->ud->ports[local].probe;
    struct probe_ud ud = {.exchange = q->exchange, .step = PROBE_UD_HERALD, .way = q->way};
    struct rdma_span left;
    int r = 0;

    choose_path(a, local, q->nic, q->way, false);
    if (!a->ud->ports[local].own.stamps || port_may_wait(&a->ud->asking, a->now)) {
        r = herald(a, local, q->nic, &q->at, &ud, &a->ud->asking);
    }
    ud.step = PROBE_UD_QUESTION;
    r = r == 0 ? send_step(a, local, q->nic, &q->at, &ud, NULL, &left) : r;
    if (r == -ETIME) {
        return; /* the packet's class may be paused: the missing answer shows it */
    }
    if (r < 0) {
        port_probe_on_not_sent(probe, q->exchange);
        return;
    }
    const struct port_moment moment = moment_of(a, &left);
    port_probe_on_left(probe, q->exchange, &moment);
}

/* Sends this port's address to all peers that the mesh probes from this NIC, that are heard, and that know this type of
 * packet. */
static void tell_where(struct agent *a, uint32_t local)
{
    struct ud_port *p = &a->ud->ports[local];

    for (uint32_t e = 0; e < node_edge_count(a->node); e++) {
        struct node_edge edge;
        if (!node_edge_get(a->node, e, a->now, &edge) || edge.local_index != local ||
            edge.version < PROBE_VERSION_PORT || edge.silent != 0 ||
            !node_echo(a->node, e, &p->own.echo)) {
            continue;
        }
        struct mesh_send send = {.token = TOKEN_MARK,
                                 .local = local,
                                 .peer = edge.peer,
                                 .source_port = NODE_PORT_BASE_DEFAULT,
                                 .net_class = NODE_CLASS_JOB,
                                 .size = PROBE_SIZE,
                                 .probe = packet_of(a, local, edge.peer, PROBE_PORT)};
        send.probe.port = p->own;
        agent_send(a, &send);
    }
}

bool agent_ud_on_packet(struct agent *a, const struct node_receive *r)
{
    const struct probe *probe = &r->probe;
    uint32_t index = 0;

    if (probe->type != PROBE_PORT && probe->type != PROBE_UD) {
        return false;
    }
    struct ud_port *p = &a->ud->ports[r->local];
    if (probe->type == PROBE_PORT && p->ud != NULL &&
        nic_id_equal(probe->dst, own_nic(a, r->local)) &&
        agent_config_find(a->config, probe->src, &index) &&
        node_echoed(a->node, r->local, probe->src, &probe->port.echo) &&
        (p->own.lid != 0 ? probe->port.lid > 0 && probe->port.lid < LID_MULTICAST
                         : agent_address_same(&a->config->more[index], probe->port.gid))) {
        port_probe_on_port(&p->probe, a->now, probe->src, &probe->port);
    }
    return true;
}

/* ---- taking ---- */

/* Limits the work that other hosts can cause here, per second. */
static void begin_second(struct agent *a, struct ud_port *p)
{
    const int64_t past_ns = mono_sub(a->now, p->second).ns;

    if (past_ns >= NS_PER_S || past_ns < 0) {
        p->second = a->now;
        p->answers = 0;
    }
}

static void answer(struct agent *a, uint32_t local, const struct probe *question,
                   const struct rdma_span *came)
{
    struct ud_port *p = &a->ud->ports[local];
    const struct port_peer *peer = port_probe_find(&p->probe, question->src);
    struct probe_ud ud = question->ud;
    struct port_moment moment = moment_of(a, came);
    struct rdma_span left;

    if (peer == NULL || !port_probe_may_answer(&p->probe, a->now, question->src, &ud) ||
        p->answers++ >= ANSWERS_A_S) {
        return;
    }
    choose_path(a, local, question->src, ud.way, true);
    const bool admitted = p->admitted == 1ull + ud.exchange;

    p->admitted = 0;
    ud.step = PROBE_UD_COMING;
    if ((admitted || port_may_wait(&a->ud->answering, a->now)) &&
        herald(a, local, peer->nic, &peer->at, &ud, &a->ud->answering) < 0) {
        return;
    }
    ud.step = PROBE_UD_ANSWER;
    if (send_step(a, local, peer->nic, &peer->at, &ud, &moment, &left) == 0) {
        moment = moment_of(a, &left);
        ud.step = PROBE_UD_LEFT;
        (void)send_step(a, local, peer->nic, &peer->at, &ud, &moment, &left);
    }
}

/* Accepts a packet under the same proofs as one that comes by UDP from the sender's listed address. It must also belong to the
 * present queue pairs of both sides. */
static bool decode(struct agent *a, uint32_t local, const struct rdma_ud_packet *packet,
                   struct probe *ret)
{
    struct probe_claim claim;
    uint8_t own[16], from[16];
    uint32_t index = 0;

    if (!probe_claim_read(packet->bytes, packet->size, &claim) ||
        port_probe_find(&a->ud->ports[local].probe, claim.src) == NULL || /* its key is known */
        !agent_config_find(a->config, claim.src, &index)) {
        return false;
    }
    agent_pair_addresses(a, local, &a->config->more[index], own, from);
    const enum probe_error error = agent_pair_decode(a, packet->bytes, packet->size, from, ret);
    if (error != PROBE_OK) {
        agent_refused(a, local, error);
        return false;
    }
    return ret->type == PROBE_UD && nic_id_equal(ret->dst, own_nic(a, local)) &&
           port_probe_is_between(&a->ud->ports[local].probe, ret->src, &ret->ud);
}

/* Decides after a herald whether this host polls. The side that asked polls for the answer. A question is polled for only if
 * there is time left, because members may send heralds without questions. Returns the account that pays for the time; NULL: do
 * not poll. */
static struct port_waiting *looks_out(struct agent *a, struct ud_port *p,
                                      const struct probe *herald)
{
    if (herald->ud.step == PROBE_UD_COMING) {
        return port_probe_on_coming(&p->probe, herald->src, herald->ud.exchange) ? &a->ud->asking
                                                                                 : NULL;
    }
    if (!port_probe_is_new(&p->probe, herald->src, &herald->ud) ||
        !port_may_wait(&a->ud->answering, a->now)) {
        return NULL;
    }
    p->admitted = 1ull + herald->ud.exchange;
    return &a->ud->answering;
}

/* Handles a packet. If it is a herald to poll after: returns the account that pays for the time. Else NULL. */
static struct port_waiting *take(struct agent *a, uint32_t local,
                                 const struct rdma_ud_packet *packet)
{
    struct ud_port *p = &a->ud->ports[local];
    struct probe probe;

    if (!decode(a, local, packet, &probe)) {
        return NULL;
    }
    const struct port_moment told = moment_told(&probe), came = moment_of(a, &packet->came);
    switch ((enum probe_step)probe.ud.step) {
    case PROBE_UD_HERALD:
    case PROBE_UD_COMING:
        return looks_out(a, p, &probe);
    case PROBE_UD_QUESTION:
        answer(a, local, &probe, &packet->came);
        break;
    case PROBE_UD_ANSWER:
        (void)port_probe_on_answer(&p->probe, probe.src, probe.ud.exchange, &told, &came);
        break;
    case PROBE_UD_LEFT:
        (void)port_probe_on_answer_left(&p->probe, a->now, probe.src, probe.ud.exchange, &told);
        break;
    }
    return NULL;
}

static void take_all(struct agent *a, uint32_t local)
{
    struct ud_port *p = &a->ud->ports[local];
    struct port_waiting *waiting = NULL;
    struct rdma_ud_packet packet;
    int64_t since = 0;
    int r = 0;

    begin_second(a, p);
    for (uint32_t n = 0; n < TAKEN_AT_ONCE && p->ud != NULL;) {
        r = rdma_ud_receive(p->ud, &packet);
        const int64_t past_ns = waiting != NULL ? now_ns(a) - since : LOOK_OUT_NS;
        if (r == -EAGAIN && past_ns < LOOK_OUT_NS) {
            continue;
        }
        if (waiting != NULL) {
            port_waited(waiting, past_ns);
        }
        waiting = NULL;
        if (r < 0) {
            break;
        }
        n++;
        waiting = take(a, local, &packet);
        since = now_ns(a);
    }
    p->broken = p->broken || (r < 0 && r != -EAGAIN);
}

void agent_ud_ready(struct agent *a, uint64_t tag)
{
    if (tag < HOST_NIC_MAX && a->ud->ports[tag].ud != NULL) {
        struct ud_port *p = &a->ud->ports[tag];
        a->now = time_source_now(a->source);
        p->broken = rdma_ud_arm(p->ud) < 0 || p->broken;
        take_all(a, (uint32_t)tag);
    }
}

void agent_ud_round(struct agent *a)
{
    const uint32_t first = a->ud->turn, count = a->config->nic_count;

    look_for_class(a);
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t i = (first + k) % count;
        struct ud_port *p = &a->ud->ports[i];
        struct port_question q;
        if (p->ud == NULL || p->broken) {
            continue; /* agent_ud_follow() opens it again */
        }
        take_all(a, i);
        if (!mono_before(a->now, p->next_tell) ||
            mono_sub(p->next_tell, a->now).ns > TELL_EACH_S * NS_PER_S) {
            p->next_tell = mono_add(a->now, span_s(TELL_EACH_S));
            tell_where(a, i);
        }
        if (memcmp(&p->class, &a->ud->class, sizeof(p->class)) != 0) {
            p->class = a->ud->class;
            port_probe_job(&p->probe, is_marked(p->class));
        }
        /* with stamps of the device the answer takes no polling time */
        if ((p->own.stamps || port_may_wait(&a->ud->asking, a->now)) &&
            port_probe_next(&p->probe, a->now, &q)) {
            ask(a, i, &q);
            a->ud->turn = (i + 1) % count;
        }
    }
}

/* ---- what is known ---- */

bool agent_ud_slow(const struct agent *a, uint32_t local, const struct rdma_port_name *name,
                   struct port_slow *ret_slow)
{
    const struct ud_port *p = local < HOST_NIC_MAX ? &a->ud->ports[local] : NULL;

    return p != NULL && p->ud != NULL && same_name(&p->name, name) &&
           port_probe_slow(&p->probe, ret_slow);
}

static void put_delay(struct json_writer *j, const struct port_delay *d)
{
    int64_t owd, half;

    port_delay_owd(d, &owd, &half);
    json_put_int(j, "owd_ns", owd);
    json_put_int(j, "half_ns", half);
    json_put_int(j, "clock_ns", d->error_ns);
    json_put_uint(j, "exchange", d->exchange);
}

static void put_direction(struct json_writer *j, const char *key, const struct port_peer *peer,
                          enum probe_way way, enum port_direction direction)
{
    struct port_delay best, newest;

    if (!port_probe_delay(peer, way, direction, &best) ||
        !port_probe_newest(peer, way, direction, &newest)) {
        json_put_null(j, key);
        return;
    }
    json_put_object(j, key);
    put_delay(j, &best);
    json_put_object(j, "newest");
    put_delay(j, &newest);
    json_put_end(j);
    json_put_end(j);
}

static void put_peer(struct agent *a, struct json_writer *j, uint32_t local,
                     const struct port_peer *peer)
{
    const struct ud_port *p = &a->ud->ports[local];

    json_put_object(j, NULL);
    answer_put_edge_ends(a, j, own_nic(a, local), peer->nic);
    json_put_string(j, "device", p->name.device);
    json_put_uint(j, "port", p->name.port);
    json_put_string(j, "stamps", p->own.stamps ? "device" : "poll");
    json_put_string(j, "peer_stamps", peer->at.stamps ? "device" : "poll");
    json_put_bool(j, "class_slow", peer->slow || peer->gone);
    const uint16_t path = p->paths[0][peer - p->probe.peers];
    json_put_int_if(j, "path_port", path != 0, path);
    json_put_array(j, "classes");
    for (int way = 0; way < (p->probe.job ? 2 : 1); way++) {
        const struct port_way *w = &peer->ways[way];
        json_put_object(j, NULL);
        json_put_string(j, "class", way == PROBE_WAY_JOB ? "job" : "reference");
        json_put_int(j, "traffic_class", way == PROBE_WAY_JOB ? p->class.traffic_class : 0);
        json_put_int(j, "service_level", way == PROBE_WAY_JOB ? p->class.sl : 0);
        put_direction(j, "out", peer, (enum probe_way)way, PORT_OUT);
        put_direction(j, "in", peer, (enum probe_way)way, PORT_IN);
        json_put_uint(j, "asked", w->asked);
        json_put_uint(j, "lost", w->lost);
        json_put_end(j);
    }
    json_put_end(j);
    json_put_end(j);
}

void agent_ud_answer(struct agent *a, struct json_writer *j)
{
    json_put_array(j, "queue_pairs");
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        const struct ud_port *p = &a->ud->ports[i];
        for (uint32_t k = 0; p->ud != NULL && k < PORT_PROBE_PEERS; k++) {
            if (p->probe.peers[k].used && p->probe.peers[k].asked) {
                put_peer(a, j, i, &p->probe.peers[k]);
            }
        }
    }
    json_put_end(j);
}

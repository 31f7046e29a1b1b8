/* node_finding.c: from verdicts to findings: events that belong together are reported once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/node/internal.h"

/* ---- times and the queue -------------------------------------------------------------------- */

static void fill_times(const struct node *n, struct finding *f)
{
    struct fleet_time fleet;
    struct clock_terms terms;

    if (!node_fleet_time(n, f->since, &fleet)) {
        return;
    }
    f->since_fleet_ns = fleet.ns;
    node_clock_page(n, &terms);
    if (terms.utc_known) {
        f->since_utc_ns = fleet.ns + terms.utc_minus_ns;
    }
}

void node_finding_since(struct node *n, struct finding *f, struct mono since)
{
    f->since = since;
    fill_times(n, f);
}

void node_finding_push(struct node *n, struct finding *f)
{
    f->said = n->now;
    if (f->since_fleet_ns == FINDING_NO_TIME) {
        fill_times(n, f);
    }
    if (n->queue_count == FINDING_QUEUE) { /* no caller takes them: the oldest is dropped */
        n->queue_head = (n->queue_head + 1) % FINDING_QUEUE;
        n->queue_count--;
        n->counters.actions_dropped++;
    }
    ASSERT(n->queue_count < FINDING_QUEUE);
    n->queue[(n->queue_head + n->queue_count++) % FINDING_QUEUE] = *f;
    n->counters.findings++;
}

void node_finding_close_at(struct node *n, struct mono now, uint32_t index)
{
    ASSERT(index < n->open_count); /* later elements are moved by this index */
    struct open_finding o = n->open[index];

    memmove(&n->open[index], &n->open[index + 1], (n->open_count - index - 1) * sizeof(n->open[0]));
    n->open_count--;
    node_incident_over(n, now, o.finding.number);
    if (o.said && !o.quiet) {
        o.finding.phase = FINDING_CLOSED;
        o.finding.ended_ns = now.ns;
        node_finding_push(n, &o.finding);
    }
}

struct open_finding *node_finding_find(struct node *n, uint64_t key)
{
    for (uint32_t i = 0; i < n->open_count; i++) {
        if (n->open[i].key == key) {
            return &n->open[i];
        }
    }
    return NULL;
}

void node_finding_close_key(struct node *n, struct mono now, uint64_t key)
{
    struct open_finding *o = node_finding_find(n, key);

    if (o) {
        node_finding_close_at(n, now, (uint32_t)(o - n->open));
    }
}

/* NULL: no room, because as many findings are open as people can read. */
struct open_finding *node_finding_open(struct node *n, uint64_t key, enum finding_kind kind,
                                       struct mono since, struct mono say)
{
    if (n->open_count == FINDING_OPEN_MAX) {
        n->counters.actions_dropped++;
        return NULL;
    }
    struct open_finding *o = &n->open[n->open_count++];
    *o = (struct open_finding){
        .key = key, .edge = -1, .say = say, .calm = MONO_NEVER, .back = MONO_NEVER};
    finding_init(&o->finding, kind, n->now);
    o->finding.number = ++n->finding_number;
    o->finding.since = since;
    o->finding.from_host = n->config.host;
    fill_times(n, &o->finding);
    return o;
}

uint64_t node_finding_key(enum finding_kind kind, uint64_t a, uint64_t b, uint64_t c)
{
    return hash_u64(hash_u64(hash_u64(kind, a), b), c);
}

/* ---- time ----------------------------------------------------------------------------------- */

void node_finding_tick(struct node *n, struct mono now)
{
    node_finding_counters(n, now);
    node_incident_tick(n, now);
    node_flap_tick(n, now);
    for (uint32_t i = 0; i < n->open_count; i++) {
        struct open_finding *o = &n->open[i];
        struct mesh_edge_info info;

        if (o->edge >= 0 &&
            (!mesh_edge_info(n->mesh, now, o->edge, &info) || info.generation != o->generation)) {
            /* the edge no longer exists: nothing would report the end */
            node_finding_close_at(n, now, i--);
            continue;
        }
        if (o->say.ns > now.ns) {
            continue;
        }
        if (o->finding.kind == FINDING_PEER_SILENT) {
            node_silent_due(n, now, o);
        } else {
            o->say = MONO_NEVER;
            o->said = true;
            o->quiet = false;
            node_finding_push(n, &o->finding);
        }
    }
}

struct mono node_finding_due(const struct node *n)
{
    struct mono due = mono_min(mono_min(n->incident_due, n->incident_again), node_flap_due(n));

    for (uint32_t i = 0; i < n->open_count; i++) {
        due = mono_min(due, n->open[i].say);
    }
    return due;
}

/* ---- clock, links, the agent itself --------------------------------------------------------- */

static double asymmetry_worth(const struct node *n, uint32_t member)
{
    return n->config.nics[n->members[member].local].stamps == STAMP_HARDWARE ? 200 : 2000;
}

void node_finding_clock(struct node *n, struct mono now, uint32_t member,
                        const struct clock_action *action)
{
    const uint64_t disrupted = node_finding_key(FINDING_CLOCK_DISRUPTED, member, 0, 0);
    struct open_finding *o;
    uint64_t key;

    switch (action->kind) {
    case CLOCK_ACTION_STATUS:
        if (action->status == CLOCK_SYNCED) {
            node_finding_close_key(n, now, disrupted);
        } else if (action->status == CLOCK_DISRUPTED && !node_finding_find(n, disrupted)) {
            o = node_finding_open(n, disrupted, FINDING_CLOCK_DISRUPTED, now, now);
            if (o) {
                /* the number from before NONE existed: older controllers use it for their words */
                o->finding.numbers[0] = action->fault > 0 ? action->fault - 1 : 0;
                o->finding.numbers[2] = action->fault;
                o->finding.advice = ADVICE_WAIT;
            }
        }
        return;
    case CLOCK_ACTION_STEP:
        node_jump_push(n, now, action->value_ns, n->members[member].domain == 0);
        return;
    case CLOCK_ACTION_LIAR:
    case CLOCK_ACTION_ASYMMETRY:
        if (action->kind == CLOCK_ACTION_ASYMMETRY &&
            fabs(action->value_ns) < asymmetry_worth(n, member)) {
            return; /* nanoseconds of it are everywhere, and nobody can change that */
        }
        key = node_finding_key(
            action->kind == CLOCK_ACTION_LIAR ? FINDING_CLOCK_LIAR : FINDING_CLOCK_ASYMMETRY,
            action->peer, action->kind == CLOCK_ACTION_LIAR ? 0 : (uint64_t)action->edge + 1,
            member);
        if (node_finding_find(n, key)) {
            return;
        }
        o = node_finding_open(n, key,
                              action->kind == CLOCK_ACTION_LIAR ? FINDING_CLOCK_LIAR
                                                                : FINDING_CLOCK_ASYMMETRY,
                              now, now);
        if (o) {
            const uint32_t peer = fleet_find(&n->config.fleet, (struct nic_id){action->peer});
            o->finding.numbers[0] = (int64_t)action->value_ns;
            o->finding.numbers[1] = action->against;
            o->finding.numbers[2] = action->asked;
            o->finding.from_host =
                peer != UINT32_MAX ? n->config.fleet.peers[peer].host : HOST_NONE;
            o->finding.from =
                action->kind == CLOCK_ACTION_LIAR ? NIC_NONE : (struct nic_id){action->peer};
            o->finding.rules_out =
                action->kind == CLOCK_ACTION_LIAR ? RULES_OUT_NETWORK | RULES_OUT_OWN_HOST : 0;
            o->finding.advice =
                action->kind == CLOCK_ACTION_LIAR ? ADVICE_CHECK_CLOCK : ADVICE_NONE;
            o->finding.suspect.kind =
                action->kind == CLOCK_ACTION_LIAR ? ELEMENT_HOST : ELEMENT_UNKNOWN;
            o->finding.suspect.a =
                (struct place){.kind = PLACE_HOST, .number = o->finding.from_host.index};
        }
        return;
    case CLOCK_ACTION_CLEARED:
        node_finding_close_key(n, now,
                               node_finding_key(FINDING_CLOCK_LIAR, action->peer, 0, member));
        node_finding_close_key(n, now,
                               node_finding_key(FINDING_CLOCK_ASYMMETRY, action->peer,
                                                (uint64_t)action->edge + 1, member));
        return;
    case CLOCK_ACTION_PUBLISH:
    case CLOCK_ACTION_TIMELINE:
    case CLOCK_ACTION_QUERY:
    case CLOCK_ACTION_REPLACE:
        return;
    }
}

static void link_open(struct node *n, struct mono now, uint32_t local,
                      const struct link_message *message, enum finding_kind kind)
{
    const struct nic_id nic = n->config.nics[local].nic;
    const uint64_t key = node_finding_key(kind, nic.index, 1, 0);
    struct open_finding *o = node_finding_find(n, key);
    const bool fresh = !o;

    o = o ? o : node_finding_open(n, key, kind, message->since, MONO_NEVER);
    if (!o) {
        return;
    }
    memcpy(o->finding.numbers, message->numbers, sizeof(o->finding.numbers));
    o->finding.from = nic;
    o->finding.from_host = n->config.host;
    o->finding.phase = fresh ? FINDING_OPENED : FINDING_UPDATED;
    o->finding.suspect.kind = ELEMENT_NIC;
    o->finding.suspect.a = (struct place){.kind = PLACE_NIC, .number = nic.index};
    o->finding.advice = kind == FINDING_NIC_GONE ? ADVICE_CHECK_DRIVER : ADVICE_CHECK_CABLE;
    o->said = true;
    node_finding_push(n, &o->finding);
    (void)now;
}

void node_finding_link(struct node *n, struct mono now, uint32_t local,
                       const struct link_message *message)
{
    const uint32_t nic = n->config.nics[local].nic.index;
    struct finding once;

    switch ((enum link_message_kind)message->kind) {
    case LINK_MESSAGE_DOWN:
        link_open(n, now, local, message, FINDING_LINK_DOWN);
        return;
    case LINK_MESSAGE_UP:
        node_finding_close_key(n, now, node_finding_key(FINDING_LINK_DOWN, nic, 1, 0));
        return;
    case LINK_MESSAGE_FLAPPING:
        link_open(n, now, local, message, FINDING_LINK_FLAPPING);
        return;
    case LINK_MESSAGE_CALM:
        node_finding_close_key(n, now, node_finding_key(FINDING_LINK_FLAPPING, nic, 1, 0));
        return;
    case LINK_MESSAGE_SPEED:
        finding_init(&once, FINDING_LINK_SPEED, now);
        once.number = ++n->finding_number;
        once.since = message->since;
        once.from = n->config.nics[local].nic;
        once.from_host = n->config.host;
        memcpy(once.numbers, message->numbers, sizeof(once.numbers));
        once.advice = message->numbers[1] < message->numbers[0] ? ADVICE_CHECK_CABLE : ADVICE_NONE;
        node_finding_push(n, &once);
        return;
    case LINK_MESSAGE_ERRORS:
        link_open(n, now, local, message, FINDING_LINK_ERRORS);
        return;
    case LINK_MESSAGE_ERRORS_END:
        node_finding_close_key(n, now, node_finding_key(FINDING_LINK_ERRORS, nic, 1, 0));
        return;
    case LINK_MESSAGE_GONE:
        node_finding_close_key(n, now, node_finding_key(FINDING_LINK_DOWN, nic, 1, 0));
        link_open(n, now, local, message, FINDING_NIC_GONE);
        return;
    case LINK_MESSAGE_BACK:
        node_finding_close_key(n, now, node_finding_key(FINDING_NIC_GONE, nic, 1, 0));
        return;
    }
}

void node_on_verbs(struct node *n, struct mono now, const struct node_verbs *event)
{
    const bool ours = event->local < n->config.nic_count;
    const struct nic_id nic = ours ? n->config.nics[event->local].nic : NIC_NONE;
    const uint64_t key =
        node_finding_key(FINDING_RDMA_PORT, nic.index, (uint64_t)event->trouble + 1, 0);
    struct open_finding *o = node_finding_find(n, key);

    n->now = now;
    if (event->has == 0) {
        node_finding_close_key(n, now, key);
        return;
    }
    if (o != NULL) {
        if (o->finding.numbers[1] == event->found && o->finding.numbers[2] == event->expected) {
            return;
        }
        o->finding.phase = FINDING_UPDATED;
    } else {
        o = node_finding_open(n, key, FINDING_RDMA_PORT, now, MONO_NEVER);
    }
    if (o == NULL) {
        return;
    }
    o->finding.numbers[0] = event->trouble;
    o->finding.numbers[1] = event->found;
    o->finding.numbers[2] = event->expected;
    o->finding.numbers[3] = event->detail;
    o->finding.from = nic;
    o->finding.suspect = ours ? element_of(ELEMENT_NIC, PLACE_NIC, nic.index)
                              : element_of(ELEMENT_HOST, PLACE_HOST, n->config.host.index);
    o->finding.advice = ADVICE_CHECK_RDMA;
    o->said = true;
    node_finding_push(n, &o->finding);
}

#define LATE_SAID_NS NS_PER_S /* in ten seconds: a tenth of what it could have seen */

/* At most one report in ten seconds: an agent without a processor must not spend its time on reports about that. */
void node_finding_late(struct node *n, struct mono now, struct span late)
{
    struct finding once;

    if (mono_sub(now, n->late_since).ns >= 10 * NS_PER_S) {
        n->late_since = now;
        n->late_sum = span_ns(0);
        n->late_said = false;
    }
    n->late_sum = span_ns(n->late_sum.ns + late.ns);
    if (n->late_said || n->late_sum.ns < LATE_SAID_NS) {
        /* short delays are counted (late ticks): they are reported only if they reduce what the agent sees */
        return;
    }
    n->late_said = true;
    finding_init(&once, FINDING_SENSING_LATE, now);
    once.number = ++n->finding_number;
    once.from_host = n->config.host;
    once.numbers[0] = n->late_sum.ns / NS_PER_MS;
    once.rules_out = RULES_OUT_NETWORK;
    once.advice = ADVICE_GIVE_CPU;
    node_finding_push(n, &once);
}

/* ---- counters -------------------------------------------------------------------------------- */

static enum finding_advice counter_advice(const struct node *n, enum finding_kind kind)
{
    switch (kind) {
    case FINDING_STAMPS_MISSING:
        return ADVICE_CHECK_DRIVER;
    case FINDING_TWO_AGENTS:
        return ADVICE_STOP_OTHER_AGENT;
    default:
        break;
    }
    switch (n->bad_packet_error) {
    case PROBE_ERROR_VERSION_NEWER:
    case PROBE_ERROR_VERSION_OLDER:
        return ADVICE_UPGRADE;
    case PROBE_ERROR_KEY:
    case PROBE_ERROR_TAG:
        return ADVICE_CHECK_KEYS;
    default:
        return ADVICE_FIND_SENDER;
    }
}

/* nic: the own NIC in question; NIC_NONE: the host. */
static void counter_finding(struct node *n, struct mono now, enum finding_kind kind,
                            struct nic_id nic, bool bad, int64_t a, int64_t b)
{
    const uint64_t key = node_finding_key(kind, nic.index, 0, 0);
    struct open_finding *o = node_finding_find(n, key);

    if (!bad) {
        node_finding_close_key(n, now, key);
        return;
    }
    o = o ? o : node_finding_open(n, key, kind, n->checked, now);
    if (o) {
        o->finding.numbers[0] = a;
        o->finding.numbers[1] = b;
        o->finding.from = nic;
        o->finding.advice = (uint16_t)counter_advice(n, kind);
    }
}

static void check_stamps(struct node *n, struct mono now)
{
    for (uint32_t local = 0; local < n->config.nic_count; local++) {
        uint64_t stamped, missing;

        mesh_stamps_get(n->mesh, local, &stamped, &missing);
        const uint64_t none = missing - n->checked_missing[local];
        const uint64_t all = stamped - n->checked_stamped[local] + none;
        counter_finding(n, now, FINDING_STAMPS_MISSING, n->config.nics[local].nic,
                        none > 10 && none * 10 > all, (int64_t)none, (int64_t)all);
        n->checked_stamped[local] = stamped;
        n->checked_missing[local] = missing;
    }
}

/* Software stamps are as exact as a reading of the host's clock. If that takes too long, most of them give no fleet time. */
static void check_rough(struct node *n, struct mono now, const struct node_counters *was,
                        const struct node_counters *is)
{
    const uint64_t rough = is->stamps_rough - was->stamps_rough;
    const uint64_t all = is->sent - was->sent + is->received - was->received;

    counter_finding(n, now, FINDING_STAMPS_MISSING, NIC_NONE, rough > 10 && 2 * rough > all,
                    (int64_t)rough, (int64_t)all);
    struct open_finding *o =
        node_finding_find(n, node_finding_key(FINDING_STAMPS_MISSING, NIC_NONE.index, 0, 0));
    if (o) {
        o->finding.numbers[2] = n->config.stamp_error_ns;
        o->finding.advice = ADVICE_CHECK_SOURCE;
    }
}

/* Every ten seconds: reports errors that are frequent enough, and closes those that ended. */
void node_finding_counters(struct node *n, struct mono now)
{
    const struct node_counters was = n->checked_counters;
    struct node_counters is;

    if (mono_sub(now, n->checked).ns < 10 * NS_PER_S) {
        return;
    }
    node_counters_get(n, &is);
    check_stamps(n, now);
    check_rough(n, now, &was, &is);
    node_astray_check(n, now);
    counter_finding(n, now, FINDING_BAD_PACKETS, NIC_NONE, is.bad_packets - was.bad_packets >= 10,
                    n->bad_packet_error, (int64_t)(is.bad_packets - was.bad_packets));
    counter_finding(n, now, FINDING_TWO_AGENTS, NIC_NONE, is.own_id - was.own_id >= 3, 0, 0);
    n->checked_counters = is;
    n->checked = now;
}

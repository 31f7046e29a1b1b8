/* job_fault.c: faults of simulated jobs, and when they end.
 *
 * Any number of faults may be on at any time: double faults, and faults during connect, close and repair come by chance. One
 * NIC of each host and one spine are spared, and change from time to time. So a path is always left, and any error is wrong. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job_private.h"

#define SAFE_NS (2 * NS_PER_S) /* so long the same NIC and spine are spared */
#define SLOTS   256

static uint32_t below(struct job_world *w, uint32_t bound)
{
    return (uint32_t)prng_below(&w->prng, bound);
}

/* -- links ------------------------------------------------------------------------------------ */

static void tell_carrier(struct job_world *w, uint32_t nic)
{
    const int64_t late = w->config.carrier_late_ns + 100 * NS_PER_US;

    world_add(w, w->now + late, EVENT_CARRIER, nic / w->net.config.nics);
}

/* A link that may fail: one direction of a NIC's link, or one between switches. */
static struct job_link *any_link(struct job_world *w, struct fault_slot *slot)
{
    const struct job_net_config *net = &w->net.config;
    uint32_t spine;

    slot->extra = below(w, 2);
    if (net->spines > 1 && below(w, 2) == 0) {
        spine = below(w, net->spines);
        slot->subject = UINT32_MAX / 2 + below(w, net->leaves) * net->spines + spine;
        return spine == w->safe_spine
                   ? NULL
                   : &w->net.trunks[(slot->subject - UINT32_MAX / 2) * 2 + slot->extra];
    }
    uint32_t nic = below(w, net->hosts * net->nics);
    slot->subject = nic;
    return nic % net->nics == w->safe_nic ? NULL
           : slot->extra != 0             ? &w->net.nics[nic].in
                                          : &w->net.nics[nic].out;
}

static struct job_link *link_of(struct job_world *w, const struct fault_slot *slot)
{
    if (slot->subject >= UINT32_MAX / 2) {
        return &w->net.trunks[(slot->subject - UINT32_MAX / 2) * 2 + slot->extra];
    }
    return slot->extra != 0 ? &w->net.nics[slot->subject].in : &w->net.nics[slot->subject].out;
}

static void spoil(struct job_world *w, struct job_link *link, enum job_fault kind)
{
    switch (kind) {
    case JOB_FAULT_LOSS:
        link->loss_ppm = 1000u << below(w, 9);
        break;
    case JOB_FAULT_SLOW:
        link->slow = 2u << below(w, 6);
        break;
    case JOB_FAULT_DELAY:
        link->extra_ns = NS_PER_MS << below(w, 6);
        break;
    default:
        link->damage_ppm = 100u << below(w, 9);
        break;
    }
}

void sim_nic_cut(struct job_world *w, uint32_t index, enum job_fault kind, int by)
{
    struct job_nic *nic = &w->net.nics[index];
    const bool was = nic->carrier;

    if (kind != JOB_FAULT_NIC_OUT) {
        nic->in.cut = (uint16_t)(nic->in.cut + by);
    }
    if (kind != JOB_FAULT_NIC_IN) {
        nic->out.cut = (uint16_t)(nic->out.cut + by);
    }
    if (kind == JOB_FAULT_NIC_DOWN) {
        nic->carrier = by < 0;
        nic->downs += was && !nic->carrier;
        tell_carrier(w, index);
    }
}

static void cut_nic(struct job_world *w, const struct fault_slot *slot, int by)
{
    sim_nic_cut(w, slot->subject, slot->kind, by);
}

static bool begin_nic(struct job_world *w, struct fault_slot *slot)
{
    slot->subject = below(w, w->net.config.hosts * w->net.config.nics);
    if (slot->subject % w->net.config.nics == w->safe_nic ||
        (slot->kind == JOB_FAULT_NIC_DOWN && !w->net.nics[slot->subject].carrier)) {
        return false;
    }
    cut_nic(w, slot, 1);
    return true;
}

static bool begin_trunk(struct job_world *w, struct fault_slot *slot)
{
    const struct job_net_config *net = &w->net.config;
    const uint32_t spine = below(w, net->spines);

    slot->subject = below(w, net->leaves) * net->spines + spine;
    slot->extra = below(w, 2);
    if (spine == w->safe_spine) {
        return false;
    }
    w->net.trunks[slot->subject * 2 + slot->extra].cut++;
    if (slot->kind == JOB_FAULT_TRUNK_DOWN) {
        w->net.trunks[slot->subject * 2 + !slot->extra].cut++;
        if (below(w, 2) == 0) {
            w->net.withdrawn |= 1ull << spine; /* all leaves stop using that spine */
        }
    }
    return true;
}

static bool begin_link(struct job_world *w, struct fault_slot *slot)
{
    struct job_link *link = any_link(w, slot);

    if (link == NULL) {
        return false;
    }
    spoil(w, link, slot->kind);
    return true;
}

/* -- processes -------------------------------------------------------------------------------- */

static bool begin_process(struct job_world *w, struct fault_slot *slot)
{
    struct process *p = &w->processes[below(w, w->config.hosts)];

    slot->subject = p->index;
    if (p->killed) {
        return false;
    }
    switch (slot->kind) {
    case JOB_FAULT_PAUSE:
        p->paused_until =
            w->now + (int64_t)(prng_exponential(&w->prng) * (double)w->config.fault_ns);
        break;
    case JOB_FAULT_FILES:
        p->no_files = true;
        break;
    default: /* CLOCK */
        if (below(w, 2) == 0) {
            p->fleet_error += (below(w, 2) == 0 ? 1 : -1) * NS_PER_MS;
        } else {
            p->fleet_epoch++;
            p->fleet_half = below(w, 4) == 0 ? IO_HALF_UNKNOWN : 1000;
        }
        break;
    }
    return true;
}

static bool begin_reset(struct job_world *w)
{
    for (int tries = 0; tries < 8 && w->conn_count > 0; tries++) {
        const uint32_t conn = below(w, w->conn_count);
        if (tcp_conn(w, conn)->used) {
            sim_reset(w, conn);
            return true;
        }
    }
    return false;
}

static bool begin(struct job_world *w, struct fault_slot *slot)
{
    switch (slot->kind) {
    case JOB_FAULT_NIC_DOWN:
    case JOB_FAULT_NIC_HOLE:
    case JOB_FAULT_NIC_IN:
    case JOB_FAULT_NIC_OUT:
        return begin_nic(w, slot);
    case JOB_FAULT_TRUNK_DOWN:
    case JOB_FAULT_TRUNK_HOLE:
        return begin_trunk(w, slot);
    case JOB_FAULT_LOSS:
    case JOB_FAULT_SLOW:
    case JOB_FAULT_DELAY:
    case JOB_FAULT_DAMAGE:
        return begin_link(w, slot);
    case JOB_FAULT_RESET:
        return begin_reset(w);
    case JOB_FAULT_ABORT:
        return rank_abort(w);
    case JOB_FAULT_PAIR:
        return sim_pair_break(w);
    case JOB_FAULT_DEVICE:
        slot->subject = below(w, w->net.config.hosts * w->net.config.nics);
        w->net.nics[slot->subject].removed++;
        sim_pairs_remove(w, slot->subject);
        if (w->result->by_kind[JOB_FAULT_DEVICE] % 2 == 0) {
            sim_keys_die(w, slot->subject);
        }
        return true;
    case JOB_FAULT_STRANGER:
        return sim_stranger(w, below(w, w->config.hosts));
    default:
        return begin_process(w, slot);
    }
}

static void end(struct job_world *w, struct fault_slot *slot)
{
    switch (slot->kind) {
    case JOB_FAULT_NIC_DOWN:
    case JOB_FAULT_NIC_HOLE:
    case JOB_FAULT_NIC_IN:
    case JOB_FAULT_NIC_OUT:
        cut_nic(w, slot, -1);
        break;
    case JOB_FAULT_TRUNK_DOWN:
        w->net.trunks[slot->subject * 2 + !slot->extra].cut--;
        w->net.withdrawn &= ~(1ull << (slot->subject % w->net.config.spines));
        w->net.trunks[slot->subject * 2 + slot->extra].cut--;
        break;
    case JOB_FAULT_TRUNK_HOLE:
        w->net.trunks[slot->subject * 2 + slot->extra].cut--;
        break;
    case JOB_FAULT_LOSS:
    case JOB_FAULT_SLOW:
    case JOB_FAULT_DELAY:
    case JOB_FAULT_DAMAGE: {
        struct job_link *link = link_of(w, slot);
        link->slow = link->loss_ppm = link->damage_ppm = 0;
        link->extra_ns = 0;
        break;
    }
    case JOB_FAULT_FILES:
        w->processes[slot->subject].no_files = false;
        break;
    case JOB_FAULT_DEVICE:
        sim_keys_die(w, slot->subject);
        if (--w->net.nics[slot->subject].removed == 0) {
            sim_keys_return(w, slot->subject);
        }
        break;
    default:
        break;
    }
    slot->used = false;
}

/* -- the sequence of faults ------------------------------------------------------------------- */

/* Spares another NIC and another spine from now on, unless they have a fault. */
static void spare_others(struct job_world *w)
{
    const uint32_t nic = below(w, w->net.config.nics), spine = below(w, w->net.config.spines);
    bool nic_fits = true, spine_fits = true;

    for (uint32_t i = 0; i < w->slot_count; i++) {
        const struct fault_slot *slot = &w->slots[i];
        if (!slot->used) {
            continue;
        }
        if (slot->kind == JOB_FAULT_TRUNK_DOWN || slot->kind == JOB_FAULT_TRUNK_HOLE) {
            spine_fits = spine_fits && slot->subject % w->net.config.spines != spine;
        } else if (slot->kind <= JOB_FAULT_NIC_OUT) {
            nic_fits = nic_fits && slot->subject % w->net.config.nics != nic;
        } else if (slot->kind >= JOB_FAULT_LOSS && slot->kind <= JOB_FAULT_DAMAGE) {
            const bool trunk = slot->subject >= UINT32_MAX / 2;
            spine_fits =
                spine_fits &&
                (!trunk || (slot->subject - UINT32_MAX / 2) % w->net.config.spines != spine);
            nic_fits = nic_fits && (trunk || slot->subject % w->net.config.nics != nic);
        }
    }
    w->safe_nic = w->net.config.nics == 1 ? UINT32_MAX : nic_fits ? nic : w->safe_nic;
    w->safe_spine = w->net.config.spines == 1 ? UINT32_MAX : spine_fits ? spine : w->safe_spine;
    w->safe_until = w->now + SAFE_NS;
}

static void schedule(struct job_world *w)
{
    const double gap = prng_exponential(&w->prng) * (double)w->config.fault_gap_ns;

    if (w->config.fault_gap_ns > 0) {
        world_add(w, w->now + 1 + (int64_t)gap, EVENT_FAULT, 0);
    }
}

int fault_begin(struct job_world *w)
{
    w->slot_count = SLOTS;
    w->slots = calloc(SLOTS, sizeof(*w->slots));
    spare_others(w);
    w->safe_nic = w->net.config.nics == 1 ? UINT32_MAX : w->safe_nic;
    schedule(w);
    return w->slots == NULL ? -ENOMEM : 0;
}

void fault_next(struct job_world *w)
{
    uint32_t i = 0, kind;

    if (w->calm) {
        return;
    }
    schedule(w);
    if (w->now >= w->safe_until) {
        spare_others(w);
    }
    while (i < w->slot_count && w->slots[i].used) {
        i++;
    }
    kind = below(w, JOB_FAULT_KILL);
    while (!(w->config.fault_mask >> kind & 1)) {
        kind = (kind + 1) % JOB_FAULT_KILL;
    }
    if (w->config.rdma && !w->config.rdma_lasts &&
        below(w, 4) == 0) { /* NICs and pairs break, too, even if the mask lacks it */
        kind = below(w, 2) == 0 ? JOB_FAULT_DEVICE : JOB_FAULT_PAIR;
    }
    if (i == w->slot_count) {
        return;
    }
    w->slots[i] = (struct fault_slot){.kind = (enum job_fault)kind};
    if (!begin(w, &w->slots[i])) {
        return; /* this fault can't be made there */
    }
    w->slots[i].used = true;
    w->result->faults++;
    w->result->by_kind[kind]++;
    world_trace(w, kind, w->slots[i].subject);
    world_add(w, w->now + 1 + (int64_t)(prng_exponential(&w->prng) * (double)w->config.fault_ns),
              EVENT_HEAL, i);
    if (w->config.step_ns != 0) {
        world_fault_step(w);
    }
}

void fault_heal(struct job_world *w, uint32_t slot)
{
    if (w->slots[slot].used) {
        end(w, &w->slots[slot]);
        if (w->config.step_ns != 0) {
            world_fault_step(w);
        }
    }
}

void fault_heal_all(struct job_world *w)
{
    for (uint32_t i = 0; i < w->slot_count; i++) {
        if (w->slots[i].used) {
            end(w, &w->slots[i]);
        }
    }
    w->calm = true;
}

/* The last fault, for good: host 0 dies, or is cut off. */
void fault_last(struct job_world *w)
{
    struct process *p = &w->processes[0];

    w->last_came = true;
    w->last_at = w->now;
    w->result->faults++;
    w->result->by_kind[w->config.last]++;
    rank_excuse(w, 0);
    if (w->config.last == JOB_FAULT_KILL) {
        process_kill(w, p);
        return;
    }
    for (uint32_t i = 0; i < w->net.config.nics; i++) {
        w->net.nics[i].in.cut++;
        w->net.nics[i].out.cut++;
    }
}

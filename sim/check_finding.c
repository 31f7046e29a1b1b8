/* check_finding.c: compares nodes' findings with the faults: they must come in time, name the right element, and have a cause. */
#include "sim/check.h"

#include <math.h>
#include <stdlib.h>

#define AFTER_NS (20 * NS_PER_S) /* a finding may refer to a fault that ended so long ago */

/* ---- does a fault explain a finding? ---- */
static uint32_t nic_of(const struct world *w, struct scenario_nic n)
{
    return world_nic(w, n.host, n.nic);
}

static bool about_host(const struct world *w, const struct world_finding *f, const uint8_t *hosts)
{
    const struct finding *x = &f->finding;
    const uint32_t n = (uint32_t)w->host_count;

    return hosts[f->host] != 0 ||
           (x->from.index != NIC_NONE.index && x->from.index / (uint32_t)w->nics_per_host < n &&
            hosts[x->from.index / (uint32_t)w->nics_per_host] != 0) ||
           (x->to.index != NIC_NONE.index && x->to.index / (uint32_t)w->nics_per_host < n &&
            hosts[x->to.index / (uint32_t)w->nics_per_host] != 0) ||
           (x->from_host.index < n && hosts[x->from_host.index] != 0) ||
           (x->to_host.index < n && hosts[x->to_host.index] != 0);
}

static bool about_nic(const struct finding *x, uint32_t nic)
{
    return x->from.index == nic || x->to.index == nic;
}

static bool about_leaf(const struct world *w, const struct finding *x, int leaf)
{
    const uint32_t nics = (uint32_t)(w->host_count * w->nics_per_host);
    return (x->from.index < nics && network_leaf(&w->network, x->from.index) == leaf) ||
           (x->to.index < nics && network_leaf(&w->network, x->to.index) == leaf);
}

static bool touches(const struct world *w, const struct scenario_fault *s, const uint8_t *hosts,
                    const struct world_finding *f)
{
    const struct finding *x = &f->finding;

    switch (s->target.kind) {
    case TARGET_ALL:
    case TARGET_EDGES:
        return true;
    case TARGET_HOSTS:
        return about_host(w, f, hosts);
    case TARGET_NIC:
        return about_nic(x, nic_of(w, s->target.from)) ||
               (x->from.index == NIC_NONE.index && f->host == s->target.from.host);
    case TARGET_EDGE:
        return about_nic(x, nic_of(w, s->target.from)) && about_nic(x, nic_of(w, s->target.to));
    case TARGET_TRUNK:
    case TARGET_LEAF:
        return about_leaf(w, x, s->target.first);
    case TARGET_SPINE:
        return true;
    default:
        return false;
    }
}

/* The kinds of finding that a fault of this kind may cause. */
#define K(kind)    (1ull << FINDING_##kind)
#define PATH_KINDS (K(PATH_DEAD) | K(PATH_LOSSY) | K(PATH_SLOW) | K(PATH_FLAPPING) | K(PATH_NARROW))
#define LINK_KINDS (K(LINK_DOWN) | K(LINK_FLAPPING) | K(LINK_SPEED) | K(LINK_ERRORS) | K(NIC_GONE))
#define QUIET      (K(PEER_SILENT) | K(SENSING_LATE) | K(STAMPS_MISSING) | K(CLOCK_DISRUPTED))

static uint64_t leads_to(const struct scenario_fault *s)
{
    switch (s->kind) {
    case FAULT_CARRIER:
    case FAULT_FLAP:
    case FAULT_NIC_VANISH:
        return PATH_KINDS | K(PEER_SILENT) | (s->target.kind == TARGET_NIC ? LINK_KINDS : 0);
    case FAULT_BLACKHOLE:
        return PATH_KINDS | K(PEER_SILENT);
    case FAULT_LOSS:
    case FAULT_BROWNOUT:
    case FAULT_DELAY:
    case FAULT_TRUNK:
    case FAULT_SPINE:
    case FAULT_PARTITION:
        return PATH_KINDS | K(PEER_SILENT);
    case FAULT_ASYMMETRY:
        return K(PATH_SLOW) | K(CLOCK_ASYMMETRY);
    case FAULT_CLOCK_STEP:
    case FAULT_CLOCK_FREQ:
    case FAULT_REBOOT:
    case FAULT_SUSPEND:
        return K(CLOCK_STEP) | K(CLOCK_DISRUPTED) | K(PEER_SILENT) | PATH_KINDS;
    case FAULT_NIC_STEER:
        return K(CLOCK_STEP) | K(CLOCK_DISRUPTED);
    case FAULT_LIAR:
        return K(CLOCK_LIAR) | K(PATH_SLOW) |
               (s->lie >= LIE_FROZEN || s->amount != 0 ? PATH_KINDS | K(PEER_SILENT) : 0);
    case FAULT_AGENT_KILL:
    case FAULT_AGENT_STOP:
    case FAULT_AGENT_STARVE:
    case FAULT_AGENT_RESTART:
    case FAULT_KEY_ROTATE:
    case FAULT_VERSION:
    case FAULT_PEERS:
        return QUIET; /* no findings about paths, links or clocks */
    default:
        return 0;
    }
}

static bool active(const struct world *w, int index, int64_t at)
{
    const struct check_fault *cf = &w->check->faults[index];
    const bool lasting = w->scenario->fault[index].kind == FAULT_CLOCK_STEP ||
                         w->scenario->fault[index].kind == FAULT_CLOCK_FREQ;

    if (cf->on < 0 || at < cf->on) {
        return false;
    }
    if (lasting && cf->off < 0) {
        return at <= cf->on + AFTER_NS;
    }
    return cf->off < 0 || at <= cf->off + AFTER_NS;
}

/* No map can hold that rate (2^-42 in 32 bits): such a clock never gets back in step. */
static bool leaves_for_good(const struct world *w, int index, const struct world_finding *f)
{
    const struct scenario_fault *s = &w->scenario->fault[index];

    return s->kind == FAULT_CLOCK_FREQ && fabs(s->ppm) > 488 && w->check->faults[index].on >= 0 &&
           f->finding.kind == FINDING_CLOCK_ASTRAY;
}

int check_explained(struct world *w, const struct world_finding *f)
{
    for (int i = 0; i < w->scenario->fault_count; i++) {
        const struct scenario_fault *s = &w->scenario->fault[i];
        const bool led = active(w, i, f->at) && (leads_to(s) >> f->finding.kind & 1) != 0;
        if ((led || leaves_for_good(w, i, f)) && touches(w, s, w->fault_hosts[i], f)) {
            return i;
        }
    }
    return -1;
}

/* ---- is it named correctly? ---- */
/* The finding's path is where the fault is: same ports, same spine, same direction. */
static bool right_way(const struct world *w, const struct scenario_fault *s,
                      const struct finding *x)
{
    const uint32_t nics = (uint32_t)(w->host_count * w->nics_per_host);

    if (x->from.index >= nics || x->to.index >= nics || x->source_port == 0) {
        return true; /* the finding names no path */
    }
    const uint32_t src = x->from.index, dst = x->to.index; /* in the packets' direction */
    if (s->target.kind == TARGET_EDGE) {
        const bool forth = src == nic_of(w, s->target.from) && dst == nic_of(w, s->target.to);
        const bool back = src == nic_of(w, s->target.to) && dst == nic_of(w, s->target.from);
        if (!(forth || (s->target.both_ways && back))) {
            return false;
        }
        const int way = w->scenario->fabric.network == NETWORK_FABRIC
                            ? network_route(&w->network, src, dst, x->source_port, 0)
                            : x->source_port % w->scenario->fabric.paths;
        return s->target.path < 0 || way == s->target.path;
    }
    return true;
}

/* The finding names the other direction than that of the fault's packets. */
static bool wrong_direction(const struct scenario_fault *s, const struct element *e)
{
    const bool from_spine = e->kind == ELEMENT_TRUNK && e->a.kind == PLACE_SPINE;

    if ((s->kind != FAULT_BLACKHOLE && s->kind != FAULT_LOSS && s->kind != FAULT_DELAY) ||
        s->direction == TOWARDS_BOTH || (e->kind != ELEMENT_NIC && e->kind != ELEMENT_TRUNK)) {
        return false;
    }
    return e->direction ==
           ((s->direction == TOWARDS_UP) != from_spine ? DIRECTION_IN : DIRECTION_OUT);
}

/* A partition is an element's fault only if it separates exactly that element from all others. */
static bool is_parted(const struct world *w, int fault, const struct element *e)
{
    int alike = 0;

    for (int host = 0; host < w->host_count; host++) {
        const uint32_t nic = world_nic(w, host, 0);
        const bool in =
            e->kind == ELEMENT_HOST ? e->a.number == (uint32_t)host
            : e->kind == ELEMENT_NIC
                ? e->a.number / (uint32_t)w->nics_per_host == (uint32_t)host
                : e->kind == ELEMENT_LEAF && network_leaf(&w->network, nic) == (int)e->a.number;
        alike += in == (w->fault_hosts[fault][host] != 0);
    }
    return alike == 0 || alike == w->host_count;
}

static bool is_element(const struct world *w, int fault, const struct element *e)
{
    const struct scenario_fault *s = &w->scenario->fault[fault];

    if (s->kind == FAULT_PARTITION && s->target.kind == TARGET_HOSTS) {
        return is_parted(w, fault, e);
    }
    if (wrong_direction(s, e)) {
        return false;
    }
    switch (s->target.kind) {
    case TARGET_TRUNK:
        return e->kind == ELEMENT_TRUNK && ((e->a.number == (uint32_t)s->target.first &&
                                             e->b.number == (uint32_t)s->target.last) ||
                                            (e->b.number == (uint32_t)s->target.first &&
                                             e->a.number == (uint32_t)s->target.last));
    case TARGET_SPINE:
        return (e->kind == ELEMENT_SPINE && e->a.number == (uint32_t)s->target.first) ||
               (e->kind == ELEMENT_TRUNK && (e->a.number == (uint32_t)s->target.first ||
                                             e->b.number == (uint32_t)s->target.first));
    case TARGET_NIC:
        return (e->kind == ELEMENT_NIC && e->a.number == nic_of(w, s->target.from)) ||
               (e->kind == ELEMENT_HOST && e->a.number == (uint32_t)s->target.from.host);
    default:
        return true;
    }
}

/* The finding names the faulty element, or lists it. */
static bool is_told(const struct world *w, int fault, const struct finding *x)
{
    bool told = x->suspect.kind != ELEMENT_UNKNOWN && is_element(w, fault, &x->suspect);

    for (uint32_t i = 0; x->suspect.kind == ELEMENT_UNKNOWN && i < x->choice.count; i++) {
        told = told || is_element(w, fault, &x->choice.one_of[i]);
    }
    return told;
}

/* "unknown" is not wrong, but a complete list of candidates without the faulty element is. */
static bool right_element(const struct world *w, int fault, const struct finding *x)
{
    const struct element_choice *c = &x->choice;
    const bool open = x->suspect.kind == ELEMENT_UNKNOWN && (c->count == 0 || c->total > c->count);

    return open || is_told(w, fault, x);
}

/* A finding that the fault must cause, so that detection has a meaning. (A brown-out may pass unnoticed.) */
static bool names(const struct scenario_fault *s, const struct finding *x)
{
    switch (s->kind) {
    case FAULT_CARRIER:
    case FAULT_FLAP:
    case FAULT_NIC_VANISH:
        return s->target.kind == TARGET_NIC ? (LINK_KINDS >> x->kind & 1) != 0
                                            : (PATH_KINDS >> x->kind & 1) != 0;
    case FAULT_BLACKHOLE:
        if (s->target.kind == TARGET_EDGE && s->target.path < 0 && x->kind == FINDING_PEER_SILENT) {
            return true; /* no packet comes through */
        }
        if ((s->net_class != CLASS_ANY || s->above_bytes > 0) && x->kind == FINDING_PATH_LOSSY) {
            return true; /* the other class comes through */
        }
        return x->kind == FINDING_PATH_DEAD || x->kind == FINDING_PATH_FLAPPING;
    case FAULT_TRUNK:
    case FAULT_SPINE:
        return x->kind == FINDING_PATH_DEAD || x->kind == FINDING_PATH_FLAPPING;
    case FAULT_PARTITION: /* each host loses only some of its paths */
        return x->kind == FINDING_PATH_DEAD || x->kind == FINDING_PATH_FLAPPING ||
               x->kind == FINDING_PATH_LOSSY;
    case FAULT_LOSS:
        return x->kind == FINDING_PATH_LOSSY || x->kind == FINDING_PATH_DEAD;
    case FAULT_DELAY:
        return x->kind == FINDING_PATH_SLOW;
    /* of a NIC, in packets that it receives: the simulated port is the switch's */
    case FAULT_BROWNOUT:
        return x->kind == FINDING_PATH_NARROW;
    case FAULT_CLOCK_STEP:
        return x->kind == FINDING_CLOCK_STEP || x->kind == FINDING_CLOCK_DISRUPTED;
    case FAULT_SUSPEND:
        if (!s->told) { /* with the right kind */
            return x->kind == FINDING_CLOCK_STEP && x->numbers[1] != 0;
        }
        return x->kind == FINDING_CLOCK_DISRUPTED || x->kind == FINDING_CLOCK_STEP;
    case FAULT_CLOCK_FREQ:
        return x->kind == FINDING_CLOCK_DISRUPTED || x->kind == FINDING_CLOCK_STEP;
    case FAULT_LIAR:
        return x->kind == FINDING_CLOCK_LIAR;
    case FAULT_AGENT_STARVE:
        return x->kind == FINDING_SENSING_LATE; /* the host's own finding */
    default:
        return false;
    }
}

/* ---- liars ---- */
static void name_liar(struct world *w, const struct world_finding *f)
{
    struct check *c = w->check;
    const uint32_t host = f->finding.from_host.index;

    if (host >= (uint32_t)w->host_count || c->hosts[host].named_liar != 0) {
        return;
    }
    for (int i = 0; i < w->scenario->fault_count; i++) {
        if (w->scenario->fault[i].kind == FAULT_LIAR && w->fault_hosts[i][host] != 0 &&
            c->faults[i].on >= 0) {
            c->hosts[host].named_liar = 1;
            c->faults[i].named++;
            c->faults[i].named_at = f->at;
        }
    }
}

static bool honest(const struct world *w, const struct finding *x)
{
    const uint32_t host = x->from_host.index; /* the accused */

    for (int i = 0; i < w->scenario->fault_count; i++) {
        const struct scenario_fault *s = &w->scenario->fault[i];
        const bool broken = s->kind == FAULT_LIAR || s->kind == FAULT_CLOCK_STEP ||
                            s->kind == FAULT_CLOCK_FREQ || s->kind == FAULT_NIC_STEER ||
                            s->kind == FAULT_SUSPEND || s->kind == FAULT_REBOOT;
        if (broken && w->check->faults[i].on >= 0 && host < (uint32_t)w->host_count &&
            w->fault_hosts[i][host] != 0) {
            return false;
        }
    }
    return true;
}

/* ---- findings ---- */
/* "Nothing is received, and that NIC is the reason" sends a person to a cable. */
static bool accuses_nic(const struct finding *x)
{
    return x->kind == FINDING_PEER_SILENT && x->suspect.kind == ELEMENT_NIC;
}

static void count_false(struct world *w, const struct world_finding *f)
{
    const uint64_t bit = 1ull << f->finding.kind;

    for (int i = 0; i < w->check->window_count; i++) {
        struct check_window *win = &w->check->windows[i];
        if (f->at < win->from || f->at > win->until) {
            continue;
        }
        win->false_path += (bit & PATH_KINDS) != 0;
        win->false_link += (bit & LINK_KINDS) != 0 || accuses_nic(&f->finding);
        win->false_step += f->finding.kind == FINDING_CLOCK_STEP;
        win->false_liar += f->finding.kind == FINDING_CLOCK_LIAR;
    }
}

/* The silent host or NIC is named as the reason: true if it is. */
static bool is_silent_by_itself(const struct world *w, int fault, const struct element *e)
{
    const struct scenario_fault *s = &w->scenario->fault[fault];
    const uint32_t host =
        e->kind == ELEMENT_HOST ? e->a.number : e->a.number / (uint32_t)w->nics_per_host;

    switch (s->target.kind) {
    case TARGET_NIC:
        return e->kind == ELEMENT_NIC ? e->a.number == nic_of(w, s->target.from)
                                      : host == (uint32_t)s->target.from.host;
    case TARGET_HOSTS:
        if (s->kind == FAULT_PARTITION) { /* of that host alone: it looks like its silence */
            return (e->kind == ELEMENT_HOST || w->nics_per_host == 1) && is_parted(w, fault, e);
        }
        return host < (uint32_t)w->host_count && w->fault_hosts[fault][host] != 0;
    default:
        return false;
    }
}

static void judge_silence(struct world *w, const struct world_finding *f)
{
    const struct element *e = &f->finding.suspect;
    bool right = f->finding.kind != FINDING_PEER_SILENT ||
                 (e->kind != ELEMENT_NIC && e->kind != ELEMENT_HOST);

    for (int i = 0; i < w->scenario->fault_count && !right; i++) {
        right = active(w, i, f->at) && is_silent_by_itself(w, i, e);
    }
    for (int i = 0; i < w->scenario->fault_count && !right; i++) {
        const struct scenario_fault *s = &w->scenario->fault[i];

        w->check->faults[i].wrong |= active(w, i, f->at) && touches(w, s, w->fault_hosts[i], f) &&
                                     (leads_to(s) & PATH_KINDS) != 0;
    }
}

static void judge_name(struct world *w, const struct world_finding *f)
{
    const struct finding *x = &f->finding;

    judge_silence(w, f);
    const bool opened = x->phase == FINDING_OPENED;
    bool right = false; /* with several faults the finding is about one of them */
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < w->scenario->fault_count; i++) {
            const struct scenario_fault *s = &w->scenario->fault[i];
            struct check_fault *cf = &w->check->faults[i];
            if (!active(w, i, f->at) || !touches(w, s, w->fault_hosts[i], f)) {
                continue;
            }
            if (opened && cf->told < 0 && (leads_to(s) >> x->kind & 1) != 0) {
                cf->told = f->at;
            }
            const enum scenario_target_kind target = s->target.kind;
            /* it explains another fault's finding, which names this fault's element */
            if (!names(s, x)) {
                right =
                    right || ((leads_to(s) >> x->kind & 1) != 0 &&
                              (target == TARGET_NIC || target == TARGET_TRUNK) && is_told(w, i, x));
                continue;
            }
            cf->detected = opened && cf->detected < 0 ? f->at : cf->detected;
            const bool fits =
                (PATH_KINDS >> x->kind & 1) == 0 || (right_way(w, s, x) && right_element(w, i, x));
            right = right || fits;
            if (fits && cf->sure < 0 && x->suspect.kind != ELEMENT_UNKNOWN) {
                cf->sure = f->at;
            }
            cf->wrong = cf->wrong || (pass == 1 && !right);
        }
    }
}

void check_finding(struct world *w, const struct world_finding *f)
{
    const struct finding *x = &f->finding;

    if (x->phase == FINDING_CLOSED) {
        return;
    }
    if (x->phase == FINDING_UPDATED) { /* the update may name the element */
        judge_name(w, f);
        return;
    }
    if (x->kind == FINDING_CLOCK_LIAR) {
        name_liar(w, f);
        if (honest(w, x)) {
            count_false(w, f);
        }
        return;
    }
    if (check_explained(w, f) < 0) {
        count_false(w, f);
        if (w->check->invariants != NULL &&
            ((PATH_KINDS | LINK_KINDS) >> x->kind & 1 || accuses_nic(x))) {
            invariant_unexplained(w->check->invariants, w, f);
        }
        return;
    }
    judge_name(w, f);
}

/* ---- faults begin and end ---- */
static bool breaks_clock(const struct scenario_fault *s)
{
    return s->kind == FAULT_CLOCK_STEP || s->kind == FAULT_CLOCK_FREQ || s->kind == FAULT_SUSPEND ||
           s->kind == FAULT_REBOOT || s->kind == FAULT_NIC_STEER;
}

void check_fault(struct world *w, unsigned index, bool on)
{
    const struct scenario_fault *s = &w->scenario->fault[index];
    struct check_fault *cf = &w->check->faults[index];

    if (w->check->invariants != NULL) {
        invariant_fault(w->check->invariants, w, index, on);
    }
    if (on && cf->on < 0) {
        cf->on = w->now;
    } else if (!on) {
        cf->off = w->now;
    }
    for (int i = 0; i < w->host_count; i++) {
        if (w->fault_hosts[index][i] == 0) {
            continue;
        }
        cf->named_wanted += on && s->kind == FAULT_LIAR;
        /* a host that sleeps or boots is watched from its return on */
        const bool later = s->kind == FAULT_SUSPEND || s->kind == FAULT_REBOOT;
        if (breaks_clock(s) && on == !later) {
            w->check->hosts[i].watched_fault = (int)index;
            w->check->hosts[i].marked = s->kind == FAULT_REBOOT ? w->now : -1;
            w->check->hosts[i].back = -1;
            cf->on = later ? w->now : cf->on;
        }
    }
}

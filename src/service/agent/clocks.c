/* clocks.c: the host's clocks: which clock stamps packets, second clocks for comparison, and the kernel's facts about its
 * clocks. */
#include "service/agent/agent.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <syslog.h>

enum { BRACKET_SAMPLES = 9, GUARD_SAMPLES = 2, GUARD_KVM = 64 };

/* ---- at the start ---- */

static uint32_t same_clock(const struct agent *a, uint32_t local)
{
    uint32_t first = 0;
    while (first < local &&
           (!a->nics[first].hardware || a->nics[first].phc_index != a->nics[local].phc_index)) {
        first++;
    }
    return first;
}

/* Why a NIC's own clock does not stamp its packets; NULL: it does. */
static const char *try_hardware(struct agent *a, uint32_t local, const char *name)
{
    struct agent_nic *nic = &a->nics[local];
    struct phc_abilities abilities = {.index = -1};
    nic->phc_index = -1;
    if (phc_abilities_get(name, &abilities) < 0) {
        return "its driver doesn't report what it can do";
    }
    nic->phc_index = abilities.index;
    if (!abilities.software_transmit && !abilities.hardware) {
        return "and its driver stamps no sent packets: there are no stamps at all";
    }
    if (a->config->software_stamps) {
        return "by the configuration";
    }
    if ((a->software_nics & (1u << local)) != 0) {
        return "its hardware stamps didn't come";
    }
    if (!abilities.hardware) {
        return abilities.index < 0 ? "it has no clock" : "it can't stamp every packet that comes";
    }
    const int r = phc_enable(name);
    if (r < 0) {
        return r == -EPERM ? "switching hardware stamps on takes CAP_NET_ADMIN"
                           : "it refuses hardware stamps";
    }
    const uint32_t first = same_clock(a, local);
    if (first == local && phc_open(&nic->phc, abilities.index) < 0) {
        return "its clock can't be opened (/dev/ptp*)";
    }
    nic->hardware = true;
    nic->domain = (uint8_t)(first + 1);
    return NULL;
}

static void open_guard(struct agent *a)
{
    static const char kvm_name[] = "ptp_kvm";
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        struct agent_nic *nic = &a->nics[i];
        if (nic->phc != NULL || (nic->phc_index >= 0 && phc_open(&a->guard, nic->phc_index) == 0)) {
            a->guard_own = nic->phc == NULL;
            a->guard = a->guard_own ? a->guard : nic->phc;
            a->guard_source = 1 + i;
            a->guard_name = "phc";
            return;
        }
    }
    const int kvm = phc_find_kvm();
    if (kvm >= 0 && phc_open(&a->guard, kvm) == 0) {
        a->guard_own = true;
        a->guard_source = GUARD_KVM;
        a->guard_name = kvm_name;
    }
}

void agent_clocks_open(struct agent *a)
{
    a->guard_name = "peers";
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        a->nics[i].phc_index = -1;
    }
    if (time_source_is_lab(a->source)) {
        struct node_bracket b;
        for (uint32_t i = 0; i < a->config->nic_count && time_source_lab_nic_stamps(a->source);
             i++) {
            a->nics[i].domain = (uint8_t)(i + 1);
        }
        if (time_source_lab_bracket(a->source, 0, &b)) {
            a->guard_source = 1;
            a->guard_name = "phc";
        }
        return;
    }
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        const char *name = link_monitor_get(a->links, a->nics[i].slot)->name;
        const char *why = try_hardware(a, i, name);
        if (why == NULL) {
            agent_say(LOG_INFO, "%s: hardware stamps, by /dev/ptp%d", name, a->nics[i].phc_index);
        } else {
            agent_say(LOG_INFO, "%s: software stamps: %s", name, why);
        }
    }
    open_guard(a);
}

void agent_clocks_close(struct agent *a)
{
    if (a->guard_own) {
        phc_close(a->guard);
    }
    for (uint32_t i = 0; i < HOST_NIC_MAX; i++) {
        a->nics[i].phc = phc_close(a->nics[i].phc);
    }
}

/* Members have numbers in the order in which the NICs' clock domains first appear. */
uint32_t agent_member_of_nic(const struct agent *a, uint32_t local)
{
    uint32_t member = 0;
    for (uint32_t i = 0; i < local; i++) {
        uint32_t before = 0;
        while (before < i && a->nics[before].domain != a->nics[i].domain) {
            before++;
        }
        if (a->nics[i].domain == a->nics[local].domain) {
            return member;
        }
        member += before == i;
    }
    return member;
}

uint32_t agent_nic_of_member(const struct agent *a, uint32_t member)
{
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        if (agent_member_of_nic(a, i) == member) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* ---- while it runs ---- */

/* Compares a second clock of the host with its raw clock, in each round. So a jump of the rate is seen before it does harm. */
static void compare_clocks(struct agent *a)
{
    struct node_guard event = {.source = a->guard_source};
    struct node_bracket b;
    struct nic_time other;
    if (a->guard != NULL) {
        if (phc_read(a->guard, a->source, GUARD_SAMPLES, &event.before, &other, &event.after) < 0) {
            return;
        }
        event.other_ns = other.ns;
    } else if (a->guard_source != 0 && time_source_lab_bracket(a->source, 0, &b)) {
        event.before = b.before;
        event.other_ns = b.nic.ns;
        event.after = b.after;
    } else {
        return; /* guard=peers */
    }
    agent_feed(a, NODE_EVENT_GUARD, &event);
    a->publish_clock = true;
}

static void tell_fact(struct agent *a, const struct node_clock_fact *fact)
{
    static const char *const names[] = {
        [CLOCK_FACT_SUSPENDED] = "the host was suspended",
        [CLOCK_FACT_SOURCE] = "the kernel changed its clock source",
        [CLOCK_FACT_VM_MARKER] = "the virtual machine was moved or restored",
        [CLOCK_FACT_STEERED] = "somebody steers a NIC's clock: expected it to run free",
        [CLOCK_FACT_REALTIME_STEP] = "CLOCK_REALTIME was set"};
    agent_say(LOG_NOTICE, "%s (%+lld us)", names[fact->kind], (long long)(fact->amount_ns / 1000));
    if (fact->kind == CLOCK_FACT_REALTIME_STEP) {
        page_maker_realtime_set(&a->page, a->now);
    }
    agent_feed(a, NODE_EVENT_CLOCK_FACT, fact);
}

void agent_clocks_round(struct agent *a)
{
    struct node_clock_fact fact;
    while (time_source_next_fact(a->source, &fact)) {
        tell_fact(a, &fact);
    }
    compare_clocks(a);
}

static bool read_bracket(struct agent *a, uint32_t local, struct node_bracket *ret)
{
    struct node_bracket b = {.local = local};
    if (a->nics[local].phc != NULL) {
        *ret = b;
        return phc_read(a->nics[local].phc, a->source, BRACKET_SAMPLES, &ret->before, &ret->nic,
                        &ret->after) == 0;
    }
    bool found = false;
    for (int k = 0; k < BRACKET_SAMPLES && time_source_lab_nic_stamps(a->source) &&
                    time_source_lab_bracket(a->source, local, &b);
         k++) {
        if (!found || mono_sub(b.after, b.before).ns < mono_sub(ret->after, ret->before).ns) {
            *ret = b;
        }
        found = true;
    }
    return found;
}

/* The reading is for the stamps of all NICs that have this clock. */
static void note_read(struct agent *a, const struct node_bracket *b)
{
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        struct agent_nic *n = &a->nics[i];
        if (n->hardware && n->domain == a->nics[b->local].domain) {
            stamp_watch_clock(&n->watch, b->before, b->nic, b->after);
        }
    }
}

static const char *wrong_words(const struct agent_nic *n)
{
    return n->watch.wrong > 0 ? ", or with one that the NIC's clock did not show" : "";
}

void agent_clocks_watch(struct agent *a)
{
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        struct agent_nic *n = &a->nics[i];
        const char *name = link_monitor_get(a->links, n->slot)->name;
        switch (n->hardware ? stamp_watch_judge(&n->watch, a->now) : STAMP_FINE) {
        case STAMP_FINE:
            break;
        case STAMP_SET_AGAIN:
            agent_say(
                LOG_WARNING,
                "%s: expected a hardware stamp of each packet, found most without one%s: another "
                "program may have changed what the NIC stamps. It is set up again%s",
                name, wrong_words(n), phc_enable(name) < 0 ? ", which it refuses" : "");
            break;
        case STAMP_GIVE_UP:
            agent_say(LOG_WARNING,
                      "%s: its hardware stamps still don't come%s: the agent goes on with software "
                      "stamps. To try again, restart it; to be sure, set stamps: software",
                      name, wrong_words(n));
            a->software_nics |= 1u << i;
            a->again = true;
            (void)sd_event_exit(a->loop, 0);
            break;
        }
    }
}

static void watch_steering(struct agent *a)
{
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        struct agent_nic *n = &a->nics[i];
        double ppb = 0;
        const int r = n->phc != NULL ? phc_steering(n->phc, &ppb) : 0;
        if (r < 0 && !n->steering_said) {
            n->steering_said = true;
            agent_say(
                LOG_WARNING,
                "%s: expected that the rate of the NIC's clock can be read, found: %s. If another "
                "program steers it, this host falls out of step and can't report why",
                a->config->nics[i].name, strerror(-r));
        }
        if (r < 0 || fabs(ppb) < 0.5) {
            continue;
        }
        const struct node_clock_fact fact = {
            .kind = CLOCK_FACT_STEERED, .local = i, .amount_ns = llround(ppb)};
        if (!n->steering_said) {
            n->steering_said = true;
            agent_say(LOG_NOTICE,
                      "%s: another program steers the NIC's clock: its changes are followed",
                      a->config->nics[i].name);
        }
        agent_feed(a, NODE_EVENT_CLOCK_FACT, &fact);
    }
}

void agent_clocks_slow(struct agent *a)
{
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        struct node_bracket b;
        if (read_bracket(a, i, &b)) {
            a->bracket_ns[i] = mono_sub(b.after, b.before).ns;
            note_read(a, &b);
            agent_feed(a, NODE_EVENT_BRACKET, &b);
        }
    }
    if (a->now.ns - a->anchor_ns >= NS_PER_S || a->now.ns < a->anchor_ns) {
        a->anchor_ns = a->now.ns;
        time_source_anchor(a->source, &a->anchor);
        agent_feed(a, NODE_EVENT_ANCHOR, &a->anchor);
    }
    watch_steering(a);
}

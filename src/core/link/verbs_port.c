/* verbs_port.c: see verbs_port.h. */
#include "core/link/verbs_port.h"

#include <string.h>

#include "base/bug.h"

#define MINUTE_NS   (60 * NS_PER_S)
#define CABLE_LIMIT 10 /* errors a minute */
#define MOVED_NS    (3600 * NS_PER_S)
/* bytes of IPv6, UDP, BTH, extended headers and ICRC, as the kernel counts them */
#define ROCE_HEAD 96

void verbs_port_init(struct verbs_port *p, struct mono now)
{
    *p = (struct verbs_port){.since = now, .window_start = now, .moved_at = MONO_NEVER};
    for (int i = 0; i < VERBS_TROUBLE_COUNT; i++) {
        p->trouble_since[i] = MONO_NEVER;
    }
}

uint32_t verbs_port_mtu_of(uint32_t interface_mtu)
{
    uint32_t mtu = 4096;

    while (mtu >= 256 && mtu + ROCE_HEAD > interface_mtu) {
        mtu /= 2;
    }
    return mtu >= 256 ? mtu : 0;
}

bool verbs_port_has(const struct verbs_port *p, enum verbs_trouble trouble)
{
    return p->trouble_since[trouble].ns != MONO_NEVER.ns;
}

static void tell(struct verbs_port *p, enum verbs_port_event event, int64_t a, int64_t b, int64_t c)
{
    if (p->message_count == VERBS_MESSAGE_MAX) {
        p->message_head = (p->message_head + 1) % VERBS_MESSAGE_MAX;
        p->message_count--;
    }
    ASSERT(p->message_count < VERBS_MESSAGE_MAX);
    p->messages[(p->message_head + p->message_count++) % VERBS_MESSAGE_MAX] =
        (struct verbs_port_message){.event = event, .at = p->facts.at, .numbers = {a, b, c}};
}

bool verbs_port_next_message(struct verbs_port *p, struct verbs_port_message *ret_message)
{
    if (p->message_count == 0) {
        return false;
    }
    *ret_message = p->messages[p->message_head];
    p->message_head = (p->message_head + 1) % VERBS_MESSAGE_MAX;
    p->message_count--;
    return true;
}

static void judge(struct verbs_port *p, enum verbs_trouble trouble, bool has, int64_t found,
                  int64_t expected)
{
    if (has == verbs_port_has(p, trouble)) {
        return;
    }
    p->trouble_since[trouble] = has ? p->facts.at : MONO_NEVER;
    p->found[trouble] = found;
    p->expected[trouble] = expected;
    tell(p, has ? VERBS_EVENT_TROUBLE : VERBS_EVENT_TROUBLE_END, trouble, found, expected);
}

/* The addresses and the MTU of a port that isn't active are no news. */
static void judge_mtu(struct verbs_port *p)
{
    const struct verbs_port_facts *f = &p->facts;
    const uint32_t room =
        f->infiniband || f->interface_mtu == 0 ? f->mtu : verbs_port_mtu_of(f->interface_mtu);
    const uint32_t expected = f->mtu < room ? room : f->sibling_mtu != 0 ? f->sibling_mtu : f->mtu;

    const bool has = f->mtu != 0 && f->mtu != expected;

    if (has && verbs_port_has(p, VERBS_MTU) &&
        (p->found[VERBS_MTU] != f->mtu || p->expected[VERBS_MTU] != expected)) {
        p->found[VERBS_MTU] = f->mtu;
        p->expected[VERBS_MTU] = expected;
        tell(p, VERBS_EVENT_TROUBLE, VERBS_MTU, f->mtu, expected);
    }
    judge(p, VERBS_MTU, has, f->mtu, expected);
}

static void judge_cable(struct verbs_port *p)
{
    const uint64_t grown = p->cable_errors - p->window_errors;
    const bool over = mono_sub(p->facts.at, p->window_start).ns >= MINUTE_NS;

    if (grown >= CABLE_LIMIT || over) {
        judge(p, VERBS_CABLE, grown >= CABLE_LIMIT, (int64_t)grown, 0);
    }
    if (over) {
        p->window_errors = p->cable_errors;
        p->window_start = p->facts.at;
    }
}

/* The same GID has another index. */
static void judge_moved(struct verbs_port *p, uint32_t before)
{
    if (verbs_port_has(p, VERBS_GID_MOVED)) { /* it moved again, or back */
        p->moved_at = p->facts.gid_index == p->gid_before ? MONO_NEVER : p->facts.at;
        return;
    }
    p->gid_before = before;
    p->moved_at = p->facts.at;
}

/* Compares two reads of an active port. */
static void compare(struct verbs_port *p, const struct verbs_port_facts *was)
{
    const struct verbs_port_facts *f = &p->facts;

    if (f->gid_known) { /* it is also compared with the GID from before the port went down */
        const bool same = memcmp(p->gid, f->gid, sizeof(f->gid)) == 0;
        if (p->gid_ever && (!same || p->gid_index != f->gid_index)) {
            p->gid_moves++;
            if (same) {
                judge_moved(p, p->gid_index);
            } else {
                p->moved_at = MONO_NEVER;
                tell(p, VERBS_EVENT_GID_CHANGED, p->gid_index, f->gid_index, 0);
            }
        }
        p->gid_ever = true;
        p->gid_index = f->gid_index;
        memcpy(p->gid, f->gid, sizeof(p->gid));
    }
    if (f->infiniband && was->sm_lid != 0 && f->sm_lid != 0 && was->sm_lid != f->sm_lid) {
        tell(p, VERBS_EVENT_MANAGER, was->sm_lid, f->sm_lid, 0);
    }
    if (f->infiniband && was->lid != 0 && f->lid != 0 && was->lid != f->lid) {
        tell(p, VERBS_EVENT_LID, was->lid, f->lid, 0);
    }
}

void verbs_port_on_facts(struct verbs_port *p, const struct verbs_port_facts *facts)
{
    const struct verbs_port_facts was = p->facts;

    if (!facts->present) {
        p->facts.at = facts->at;
        p->since = p->facts.present ? facts->at : p->since;
        p->facts.present = p->facts.active = false;
        for (int t = 0; t < VERBS_TROUBLE_COUNT; t++) { /* an absent device has no other trouble */
            judge(p, (enum verbs_trouble)t, t == VERBS_GONE, 0, 0);
        }
        return;
    }
    p->facts = *facts;
    if (p->known && facts->cable_errors >= was.cable_errors) {
        p->cable_errors += facts->cable_errors - was.cable_errors;
    }
    if (p->known && was.active != facts->active) {
        p->since = facts->at;
        p->downs += was.active;
    }
    judge(p, VERBS_GONE, false, 0, 0);
    judge(p, VERBS_DOWN, !facts->active && !(facts->infiniband && facts->linked), 0, 0);
    judge(p, VERBS_NO_MANAGER, !facts->active && facts->infiniband && facts->linked, 0, 0);
    if (facts->active) {
        judge(p, VERBS_V1_ONLY, !facts->gid_known && facts->v1, 0, 0);
        judge(p, VERBS_NO_GID, !facts->gid_known && !facts->v1, 0, 0);
        judge_mtu(p);
        judge(p, VERBS_CLASS, facts->class_slow, facts->class_job_ns, facts->class_reference_ns);
        compare(p, &was);
    }
    judge(p, VERBS_GID_MOVED,
          p->moved_at.ns != MONO_NEVER.ns && mono_sub(facts->at, p->moved_at).ns < MOVED_NS,
          p->gid_index, p->gid_before);
    judge_cable(p);
    p->known = true;
}

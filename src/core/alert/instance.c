/* instance.c: alerts, pending and firing, found by their key. If memory is full, the host with most alerts loses one. */
#include <string.h>

#include "base/prng.h"
#include "core/alert/internal.h"

static uint32_t index_of(const struct alerts *a, const struct instance *i)
{
    return (uint32_t)(i - a->instances);
}

static uint32_t *instance_link(struct alerts *a, uint64_t key)
{
    uint32_t *link = &a->instance_hash.heads[key & a->instance_hash.mask];

    while (*link != NONE && a->instances[*link].key != key) {
        link = &a->instances[*link].chain;
    }
    return link;
}

struct instance *instance_find(struct alerts *a, uint64_t key)
{
    const uint32_t at = *instance_link(a, key);

    return at != NONE ? &a->instances[at] : NULL;
}

uint64_t subject_key(const struct alerts *a, uint32_t rule, const struct subject *s)
{
    uint64_t key = hash_u64(rule, 0x616c657274ULL);

    switch ((enum alert_scope)a->rules[rule].scope) {
    case ALERT_PER_PATH:
        key = hash_u64(key, (uint64_t)s->nic << 32 | s->peer);
        return hash_u64(key, s->port);
    case ALERT_PER_LINK:
        return hash_u64(key, s->nic);
    case ALERT_PER_HOST:
        return hash_u64(key, s->host);
    case ALERT_PER_JOB:
        return hash_u64(key, s->job);
    case ALERT_PER_RAIL:
        return hash_u64(key, s->rail);
    default:
        return key;
    }
}

/* Makes room if memory is full: the host with most alerts loses its newest one, if the reporting host has fewer. So a few hosts
 * with false reports can't displace the rest, nor alerts that no host reports (a silent host, a job). Those count together as one
 * host's, so many silent hosts can't displace the rest either. Counts are kept by host number modulo the room; a shared count
 * does no harm. */
static bool make_room(struct alerts *a, uint32_t said_by)
{
    uint32_t most = ALERT_NO_ID, highest = 0, nobodys = 0;

    a->counters.alerts_dropped++;
    if (said_by == ALERT_NO_ID && a->no_room.ns == a->now.ns) {
        return false; /* one sweep asks once for each silent host */
    }
    memset(a->scratch, 0, a->instance_max * sizeof(*a->scratch));
    for (uint32_t at = a->instance_head; at != NONE; at = a->instances[at].after) {
        const uint32_t by = a->instances[at].said_by;
        nobodys += by == ALERT_NO_ID;
        if (by != ALERT_NO_ID && ++a->scratch[by % a->instance_max] > highest) {
            highest = a->scratch[by % a->instance_max];
            most = by;
        }
    }
    const uint32_t own = said_by != ALERT_NO_ID ? a->scratch[said_by % a->instance_max] : nobodys;
    if (said_by != ALERT_NO_ID && nobodys > highest) {
        highest = nobodys;
        most = ALERT_NO_ID;
    }
    if (highest <= own + 1) {
        a->no_room = said_by == ALERT_NO_ID ? a->now : a->no_room;
        return false;
    }
    for (uint32_t at = a->instance_head; at != NONE; at = a->instances[at].after) {
        struct instance *i = &a->instances[at];
        if (i->said_by == most && a->rules[i->rule].condition != ALERT_ON_ITSELF) {
            instance_lower(a, i);
            return true;
        }
    }
    return false;
}

static struct instance *instance_new(struct alerts *a, uint32_t rule, uint64_t key,
                                     uint32_t said_by)
{
    if (!rule_has_place(a, rule) && a->instance_free == NONE && !make_room(a, said_by)) {
        return NULL;
    }
    const uint32_t at = rule_has_place(a, rule) ? 0 : a->instance_free;
    struct instance *i = &a->instances[at];
    ASSERT(i->state == ALERT_FREE);
    a->instance_free = at != 0 ? i->chain : a->instance_free;
    memset(i, 0, sizeof(*i));
    i->key = key;
    i->id = a->next_alert++;
    i->incident = i->sibling_before = i->sibling_after = NONE;
    i->said_by = said_by;
    i->host = i->nic = i->peer = i->port = ALERT_NO_ID;
    i->chain = a->instance_hash.heads[key & a->instance_hash.mask];
    a->instance_hash.heads[key & a->instance_hash.mask] = at;
    i->before = NONE;
    i->after = a->instance_head;
    if (i->after != NONE) {
        a->instances[i->after].before = at;
    }
    a->instance_head = at;
    return i;
}

struct instance *instance_raise(struct alerts *a, uint32_t rule, uint64_t key, uint32_t said_by,
                                struct mono since)
{
    struct instance *i = instance_find(a, key);

    if (i == NULL) {
        i = instance_new(a, rule, key, said_by);
        if (i == NULL) {
            return NULL;
        }
        i->rule = rule;
        i->state = ALERT_PENDING;
        i->since = since.ns == INT64_MAX || mono_before(a->now, since) ? a->now : since;
        i->due = mono_add(i->since, a->rules[rule].hold);
        a->rule_states[rule].active++;
        a->counters.pending++;
    }
    i->holds = true;
    i->stale = false;
    i->seen = a->now;
    return i;
}

void instance_lower(struct alerts *a, struct instance *i)
{
    const uint32_t at = index_of(a, i);

    ASSERT(a->rule_states[i->rule].active > 0);
    if (i->state == ALERT_FIRING) {
        ASSERT(a->counters.firing > 0);
        a->counters.firing--;
        incident_leave(a, i);
    } else {
        ASSERT(i->state == ALERT_PENDING && a->counters.pending > 0);
        a->counters.pending--;
    }
    a->rule_states[i->rule].active--;
    causes_release(a, i);
    *instance_link(a, i->key) = i->chain;
    if (i->before != NONE) {
        a->instances[i->before].after = i->after;
    } else {
        a->instance_head = i->after;
    }
    if (i->after != NONE) {
        a->instances[i->after].before = i->before;
    }
    i->state = ALERT_FREE;
    if (at != 0) {
        i->chain = a->instance_free;
        a->instance_free = at;
    }
}

void instance_consider(struct alerts *a, struct instance *i)
{
    if (i->state != ALERT_PENDING) {
        return;
    }
    if (mono_before(a->now, i->due)) {
        a->deadline = mono_min(a->deadline, i->due);
        incident_await(a, i);
        return;
    }
    /* The last report of a silent host gets old. Its condition is no longer confirmed, so the alert must not get worse. */
    if (i->said_by != ALERT_NO_ID && host_is_silent(a, i->said_by)) {
        i->stale = true;
        return;
    }
    i->state = ALERT_FIRING;
    i->fired = a->now;
    ASSERT(a->counters.pending > 0);
    a->counters.pending--;
    a->counters.firing++;
    i->silenced = silence_covers(a, i);
    incident_group(a, i, true);
    a->counters.incidents_dropped += i->incident == NONE;
}

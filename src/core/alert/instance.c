/* instance.c: alerts, pending and firing ones, found by their key. Who has most of them makes room. */
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

/* Without room who has most alerts loses the newest of them to who has less: some hosts that lie can't silence the rest.
 * Counted by number modulo the room: that some share a count does no harm. */
static bool make_room(struct alerts *a, uint32_t said_by)
{
    uint32_t most = said_by;

    a->counters.alerts_dropped++;
    if (said_by == ALERT_NO_ID) {
        return false;
    }
    memset(a->scratch, 0, a->instance_max * sizeof(*a->scratch));
    for (uint32_t at = a->instance_head; at != NONE; at = a->instances[at].after) {
        const uint32_t by = a->instances[at].said_by;
        if (by != ALERT_NO_ID &&
            ++a->scratch[by % a->instance_max] > a->scratch[most % a->instance_max]) {
            most = by;
        }
    }
    if (a->scratch[most % a->instance_max] <= a->scratch[said_by % a->instance_max] + 1) {
        return false;
    }
    for (uint32_t at = a->instance_head; at != NONE; at = a->instances[at].after) {
        if (a->instances[at].said_by == most) {
            instance_lower(a, &a->instances[at]);
            return true;
        }
    }
    return false;
}

static struct instance *instance_new(struct alerts *a, uint64_t key, uint32_t said_by)
{
    if (a->instance_free == NONE && !make_room(a, said_by)) {
        return NULL;
    }
    const uint32_t at = a->instance_free;
    struct instance *i = &a->instances[at];
    ASSERT(i->state == ALERT_FREE);
    a->instance_free = i->chain;
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
        i = instance_new(a, key, said_by);
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
    i->chain = a->instance_free;
    a->instance_free = at;
}

void instance_consider(struct alerts *a, struct instance *i)
{
    if (i->state != ALERT_PENDING) {
        return;
    }
    if (mono_before(a->now, i->due)) {
        a->deadline = mono_min(a->deadline, i->due);
        return;
    }
    /* What a silent host said last can't be seen to last: it doesn't get worse unseen. */
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
    incident_group(a, i);
}

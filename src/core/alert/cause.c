/* cause.c: the elements of a fleet that could explain an alert, the most specific first. Equal names mean the same element. Each
 * element counts the open incidents that it could explain; incident.c uses that count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/alert/internal.h"

bool cause_init(struct alerts *a)
{
    a->element_max = a->instance_max * 2 + a->incident_max;
    a->elements = calloc(a->element_max, sizeof(*a->elements));
    if (a->elements == NULL || !hash_init(&a->element_hash, a->element_max)) {
        return false;
    }
    a->element_free = 0;
    for (uint32_t e = 0; e < a->element_max; e++) {
        a->elements[e].next = e + 1 < a->element_max ? e + 1 : NONE;
    }
    return true;
}

static bool nic_info(const struct alerts *a, uint32_t nic, struct alert_nic *ret)
{
    return nic != ALERT_NO_ID && a->config.fleet.nic != NULL &&
           a->config.fleet.nic(a->config.fleet.context, nic, ret) && ret->name != NULL;
}

bool nic_is_gone(const struct alerts *a, uint32_t nic)
{
    struct alert_nic info;

    return nic != ALERT_NO_ID && a->config.fleet.nic != NULL &&
           !a->config.fleet.nic(a->config.fleet.context, nic, &info);
}

uint32_t element_host(const struct alerts *a, const struct element *where)
{
    struct alert_nic info;

    if (where->kind == ELEMENT_NIC && nic_info(a, where->a.number, &info)) {
        return info.host;
    }
    return where->a.kind == PLACE_HOST ? where->a.number : ALERT_NO_ID;
}

uint32_t element_rank(const struct alerts *a, uint32_t element)
{
    static const uint8_t ranks[ELEMENT_KIND_COUNT] = {
        [ELEMENT_RULE] = 1,   [ELEMENT_PATH] = 2,   [ELEMENT_JOB] = 3,     [ELEMENT_CLOCK] = 4,
        [ELEMENT_AGENT] = 5,  [ELEMENT_NIC] = 6,    [ELEMENT_TRUNK] = 7,   [ELEMENT_HOST] = 8,
        [ELEMENT_LEAF] = 9,   [ELEMENT_SPINE] = 10, [ELEMENT_ROUTER] = 11, [ELEMENT_RAIL] = 12,
        [ELEMENT_FLEET] = 13,
    };

    return ranks[a->elements[element].where.kind];
}

uint32_t element_take(struct alerts *a, const struct element *where, const char *name)
{
    char cut[ALERT_ELEMENT_MAX];
    uint32_t at;

    ASSERT(where->kind < ELEMENT_KIND_COUNT);
    snprintf(cut, sizeof(cut), "%s", name);
    uint64_t key = hash_text(cut);
    uint32_t *head = &a->element_hash.heads[key & a->element_hash.mask];
    for (at = *head; at != NONE; at = a->elements[at].next) {
        struct cause_element *e = &a->elements[at];
        if (e->key == key && strcmp(e->name, cut) == 0) {
            e->uses++;
            if (e->where.kind == ELEMENT_UNKNOWN) { /* it was restored by its name alone */
                e->where = *where;
                e->host = element_host(a, where);
            }
            if (where->direction != DIRECTION_NONE && e->owner == NONE) {
                /* the direction of a cause belongs to incident_direct() */
                e->where.direction = where->direction;
            }
            return at;
        }
    }
    at = a->element_free;
    if (at == NONE) {
        a->counters.alerts_dropped++;
        return NONE;
    }
    a->element_free = a->elements[at].next;
    a->elements[at] = (struct cause_element){.key = key,
                                             .where = *where,
                                             .host = element_host(a, where),
                                             .uses = 1,
                                             .owner = NONE,
                                             .next = *head};
    memcpy(a->elements[at].name, cut, sizeof(cut));
    *head = at;
    return at;
}

void element_hold(struct alerts *a, uint32_t element)
{
    ASSERT(a->elements[element].uses > 0); /* a free place may already have another element */
    a->elements[element].uses++;
}

void element_drop(struct alerts *a, uint32_t element)
{
    struct cause_element *e = &a->elements[element];

    ASSERT(e->uses > 0);
    if (--e->uses > 0) {
        return;
    }
    ASSERT(e->incidents == 0 && e->owner == NONE); /* each incident holds the element */
    uint32_t *link = &a->element_hash.heads[e->key & a->element_hash.mask];
    while (*link != element) {
        link = &a->elements[*link].next;
    }
    *link = e->next;
    e->next = a->element_free;
    a->element_free = element;
}

void causes_release(struct alerts *a, struct instance *i)
{
    for (uint32_t k = 0; k < i->cause_count; k++) {
        element_drop(a, i->causes[k]);
    }
    i->cause_count = 0;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

const char *name_of_host(const struct alerts *a, uint32_t host, char *text, size_t size)
{
    const char *name =
        a->config.fleet.host != NULL ? a->config.fleet.host(a->config.fleet.context, host) : NULL;

    if (name != NULL) {
        snprintf(text, size, "%s", name);
    } else {
        snprintf(text, size, "host %u", host);
    }
    return text;
}

const char *name_of_job(const struct alerts *a, uint64_t job, char *text, size_t size)
{
    const char *name =
        a->config.fleet.job != NULL ? a->config.fleet.job(a->config.fleet.context, job) : NULL;

    if (name != NULL) {
        snprintf(text, size, "job %s", name);
    } else {
        snprintf(text, size, "job %llu", (unsigned long long)job);
    }
    return text;
}

const char *name_of_nic(const struct alerts *a, uint32_t nic, char *text, size_t size)
{
    struct alert_nic info;

    if (nic_info(a, nic, &info)) {
        snprintf(text, size, "%s", info.name);
    } else {
        snprintf(text, size, "nic %u", nic);
    }
    return text;
}

/* ---- candidates ------------------------------------------------------------------------------------------------- */

static void add(struct alerts *a, struct instance *i, const struct element *where, const char *name)
{
    if (i->cause_count == ALERT_CAUSE_MAX || name[0] == '\0') {
        return;
    }
    uint32_t e = element_take(a, where, name);
    for (uint32_t k = 0; e != NONE && k < i->cause_count; k++) {
        if (i->causes[k] == e) {
            element_drop(a, e);
            return;
        }
    }
    if (e != NONE) {
        i->directions[i->cause_count] = (uint8_t)where->direction;
        i->causes[i->cause_count++] = e;
    }
}

/* Adds an element that has a name and no place. */
static void add_named(struct alerts *a, struct instance *i, enum element_kind kind,
                      const char *name)
{
    const struct element where = element_of(kind, PLACE_NONE, UINT32_MAX);

    add(a, i, &where, name);
}

static void add_host(struct alerts *a, struct instance *i, uint32_t host)
{
    const struct element where = element_of(ELEMENT_HOST, PLACE_HOST, host);
    char name[ALERT_ELEMENT_MAX];

    if (host != ALERT_NO_ID) {
        add(a, i, &where, name_of_host(a, host, name, sizeof(name)));
    }
}

/* Adds a part of a host, without the host itself. */
static void add_part_of_host(struct alerts *a, struct instance *i, enum element_kind kind,
                             const char *what, uint32_t host)
{
    const struct element where = element_of(kind, PLACE_HOST, host);
    char name[ALERT_ELEMENT_MAX], whole[2 * ALERT_ELEMENT_MAX];

    snprintf(whole, sizeof(whole), "%s of %s", what, name_of_host(a, host, name, sizeof(name)));
    add(a, i, &where, whole);
}

static void add_of_host(struct alerts *a, struct instance *i, enum element_kind kind,
                        const char *what, uint32_t host)
{
    add_part_of_host(a, i, kind, what, host);
    add_host(a, i, host);
}

/* Adds a NIC, then its host, and its leaf if wanted. */
static void add_nic(struct alerts *a, struct instance *i, uint32_t nic, uint32_t direction,
                    bool with_leaf)
{
    char name[ALERT_ELEMENT_MAX], leaf[ALERT_ELEMENT_MAX];
    struct element where = element_of(ELEMENT_NIC, PLACE_NIC, nic);
    struct alert_nic info;

    if (nic == ALERT_NO_ID) {
        return;
    }
    where.direction = direction;
    add(a, i, &where, name_of_nic(a, nic, name, sizeof(name)));
    if (!nic_info(a, nic, &info)) {
        return;
    }
    snprintf(leaf, sizeof(leaf), "%s", info.leaf != NULL ? info.leaf : "");
    add_host(a, i, info.host);
    if (with_leaf) {
        where = element_of(ELEMENT_LEAF, PLACE_LEAF, UINT32_MAX);
        add(a, i, &where, leaf);
    }
}

static void add_path(struct alerts *a, struct instance *i, uint32_t from, uint32_t to)
{
    char x[ALERT_ELEMENT_MAX], y[ALERT_ELEMENT_MAX], whole[2 * ALERT_ELEMENT_MAX + 8];
    struct element where = element_of(ELEMENT_PATH, PLACE_NIC, from);

    if (from != ALERT_NO_ID && to != ALERT_NO_ID) {
        where.b = (struct place){.kind = PLACE_NIC, .number = to};
        where.direction = DIRECTION_OUT;
        snprintf(whole, sizeof(whole), "%s -> %s", name_of_nic(a, from, x, sizeof(x)),
                 name_of_nic(a, to, y, sizeof(y)));
        add(a, i, &where, whole);
    }
}

/* Adds a switch or router of the fabric. */
static void add_place(struct alerts *a, struct instance *i, const struct place *place)
{
    const struct element where = element_at(place);
    char name[ALERT_ELEMENT_MAX];

    if (place->kind != PLACE_NONE) {
        place_text(place, NULL, name, sizeof(name));
        add(a, i, &where, name);
    }
}

/* The name of an element in this engine. The name of a NIC lacks its link. */
static void name_of_element(const struct alerts *a, const struct element *e,
                            char name[static ALERT_ELEMENT_MAX])
{
    const size_t size = ALERT_ELEMENT_MAX;

    if (e->kind == ELEMENT_NIC) {
        name_of_nic(a, e->a.number, name, size);
    } else if (e->kind == ELEMENT_HOST) {
        name_of_host(a, e->a.number, name, size);
    } else {
        element_text(e, NULL, name, size);
    }
}

uint32_t element_take_as(struct alerts *a, const struct element *where)
{
    char name[ALERT_ELEMENT_MAX];

    name_of_element(a, where, name);
    return element_take(a, where, name);
}

/* Adds one of the possible elements. A trunk is added without its ends. */
static void add_candidate(struct alerts *a, struct instance *i, const struct element *e)
{
    char name[ALERT_ELEMENT_MAX];

    name_of_element(a, e, name);
    add(a, i, e, name);
}

static void add_suspect(struct alerts *a, struct instance *i, const struct alert_finding *f)
{
    char name[ALERT_ELEMENT_MAX];

    switch ((enum element_kind)f->suspect.kind) {
    case ELEMENT_TRUNK:
        element_text(&f->suspect, NULL, name, sizeof(name));
        add(a, i, &f->suspect, name);
        /* The upper end comes first: the evidence is equal for both ends, and people usually name the upper one. */
        add_place(a, i, &f->suspect.b);
        add_place(a, i, &f->suspect.a);
        break;
    case ELEMENT_NIC:
        add_nic(a, i, f->suspect.a.number, f->suspect.direction, true);
        break;
    case ELEMENT_HOST:
        add_host(a, i, f->suspect.a.number);
        break;
    case ELEMENT_LEAF:
    case ELEMENT_SPINE:
    case ELEMENT_ROUTER:
        add_place(a, i, &f->suspect.a);
        break;
    default:
        break;
    }
}

static void causes_of_path_finding(struct alerts *a, struct instance *i,
                                   const struct alert_finding *f)
{
    const bool peer = f->kind == FINDING_PEER_SILENT;

    const bool known = f->suspect.kind != ELEMENT_UNKNOWN;

    i->unplaced = (f->kind == FINDING_PATH_DEAD || f->kind == FINDING_PATH_LOSSY) && !known &&
                  f->choice.count == 0;
    if (known) {
        add_suspect(a, i, f);
    }
    if (i->cause_count > 0) {
        return;
    }
    for (uint32_t k = 0; !known && k < f->choice.count; k++) {
        add_candidate(a, i, &f->choice.one_of[k]);
    }
    i->candidates = i->cause_count;
    for (uint32_t k = 0; !known && k < f->choice.count; k++) {
        /* several such trunks would share this spine */
        if (f->choice.one_of[k].kind == ELEMENT_TRUNK) {
            add_place(a, i, &f->choice.one_of[k].b);
        }
    }
    i->shared = i->cause_count;
    i->others = f->choice.total > f->choice.count;
    if (i->cause_count == 0 && peer) { /* the silent peer is the best explanation */
        const uint32_t other = f->from_host == f->said_by ? f->to_host : f->from_host;
        add_host(a, i, other);
    }
    if (i->cause_count == 0) {
        add_path(a, i, f->from_nic, f->to_nic);
    }
    add_nic(a, i, f->from_nic, DIRECTION_NONE, false);
    add_nic(a, i, f->to_nic, DIRECTION_NONE, false);
    add_host(a, i, f->from_host);
    add_host(a, i, f->to_host);
}

void causes_of_finding(struct alerts *a, struct instance *i, const struct alert_finding *f)
{
    i->unplaced = i->others = false;
    i->candidates = 0;
    if (f->kind >= FINDING_LINK_DOWN && f->kind <= FINDING_NIC_GONE) {
        add_nic(a, i, f->from_nic, DIRECTION_NONE, true);
    } else if (
        f->kind ==
        FINDING_RDMA_PORT) { /* if the port belongs to none of our NICs, its host is the cause */
        add_nic(a, i, f->from_nic, DIRECTION_NONE, f->from_nic != ALERT_NO_ID);
    } else if (finding_is_of_path(f->kind)) {
        causes_of_path_finding(a, i, f);
    } else if (f->kind == FINDING_CLOCK_ASYMMETRY) {
        add_path(a, i, f->from_nic, f->to_nic);
        add_host(a, i, f->said_by);
    } else if (f->kind == FINDING_CLOCK_LIAR || f->kind == FINDING_CLOCK_ASTRAY) {
        add_of_host(a, i, ELEMENT_CLOCK, "clock",
                    f->from_host != ALERT_NO_ID ? f->from_host : f->said_by);
    } else if (f->kind == FINDING_CLOCK_DISRUPTED || f->kind == FINDING_CLOCK_STEP) {
        add_of_host(a, i, ELEMENT_CLOCK, "clock", f->said_by);
    } else {
        add_of_host(a, i, ELEMENT_AGENT, "agent", f->said_by);
    }
    if (i->cause_count == 0) {
        add_host(a, i, f->said_by);
    }
}

void causes_of_subject(struct alerts *a, struct instance *i, const struct subject *s)
{
    const struct alert_rule *rule = &a->rules[i->rule];
    char name[ALERT_ELEMENT_MAX];

    switch ((enum alert_scope)rule->scope) {
    case ALERT_PER_PATH:
        add_path(a, i, s->peer, s->nic);
        add_nic(a, i, s->nic, DIRECTION_NONE, false);
        add_nic(a, i, s->peer, DIRECTION_NONE, false);
        break;
    case ALERT_PER_LINK:
        add_nic(a, i, s->nic, DIRECTION_NONE, true);
        break;
    case ALERT_PER_HOST:
        if (rule->metric == ALERT_HOST_REPORT) {
            add_host(a, i, s->host);
            add_named(a, i, ELEMENT_FLEET, "the fleet");
        } else if (rule->metric == ALERT_AUDIT_UNKNOWN) {
            /* The host itself is no cause: such a finding lasts for days at most hosts, and explains no other alert of the
             * host. */
            add_part_of_host(a, i, ELEMENT_AGENT, "audit", s->host);
            add_named(a, i, ELEMENT_AGENT, "what audits don't know");
        } else if (rule->metric == ALERT_AUDIT_BLOCKED || rule->metric == ALERT_AUDIT_FAILED) {
            add_host(a, i, s->host);
        } else if (rule->metric == ALERT_CLOCK_SYNCED || rule->metric == ALERT_CLOCK_HARD ||
                   rule->metric == ALERT_CLOCK_STATISTICAL) {
            add_of_host(a, i, ELEMENT_CLOCK, "clock", s->host);
        } else if (rule->metric == ALERT_CERTIFICATE_DAYS) {
            add_of_host(a, i, ELEMENT_AGENT, "certificate", s->host);
        } else {
            add_of_host(a, i, ELEMENT_AGENT, "agent", s->host);
        }
        break;
    case ALERT_PER_JOB:
        add_named(a, i, ELEMENT_JOB, name_of_job(a, s->job, name, sizeof(name)));
        break;
    case ALERT_PER_RAIL:
        snprintf(name, sizeof(name), "rail %u", s->rail);
        add_named(a, i, ELEMENT_RAIL, name);
        break;
    default:
        if (rule->metric != ALERT_METRIC_NONE &&
            alert_metric_info(rule->metric)->scope == ALERT_PER_FLEET) {
            add_named(a, i, ELEMENT_AGENT,
                      "the controller"); /* it does not explain alerts of hosts */
        } else {
            add_named(a, i, ELEMENT_FLEET, "the fleet");
        }
        break;
    }
}

void causes_of_rule(struct alerts *a, struct instance *i, const char *name)
{
    add_named(a, i, ELEMENT_RULE, name);
}

/* incident_judge.c: compares the true faults with the brain's incidents. Several faults may be there at once, and overlap:
 *
 *   - An open incident has the name of an element with a fault, now or until a moment ago. It may also have the name of an
 *     element that can't be told from it, because other faults take all ways that could show the difference (a rail has three
 *     trunks to a spine, and two of them are dead). While a fault has no name yet, a guess of the hosts that found it may be
 *     shown instead, and nothing else.
 *   - Each fault that at least two hosts can tell from all others has one incident. Once it has its own name, the incident
 *     stays the same until the fault is over.
 *   - A host is ok if all its NICs are well and each of its dead paths has a finding.
 */
#include <stdio.h>

#include "sim/incident_private.h"

/* hosts that miss packets by one fault alone: with fewer it can't be told from others */
#define WITNESSES 2
#define PROMOTE   3 /* so many faults of one switch count as the switch's */

static void complain(struct world *w, uint64_t *count, const struct fault *x, const char *what,
                     const char *said)
{
    static const char *const kinds[] = {"sends", "receives", "nic", "up", "down", "trunk"};

    if (w->result.first[0] == '\0') {
        snprintf(w->result.first, sizeof(w->result.first), "seed %llu, %u s: %s %s%s %u %u: %s",
                 (unsigned long long)w->config.seed, w->now_s, what,
                 x != NULL ? kinds[x->kind] : "",
                 x == NULL            ? ""
                 : incident_of_nic(x) ? " of NIC"
                                      : " of leaf, spine",
                 x == NULL            ? 0
                 : incident_of_nic(x) ? x->nic
                                      : x->leaf,
                 x == NULL || incident_of_nic(x) ? 0 : x->spine, said);
    }
    ++*count;
}

/* ---- names -------------------------------------------------------------------------------------------------------- */

static bool is_on(const struct element *e, const struct fault *x)
{
    switch (e->kind) {
    case ELEMENT_HOST:
        return incident_of_nic(x) && e->a.number == x->nic / NICS;
    case ELEMENT_LEAF:
        return !incident_of_nic(x) && e->a.number == x->leaf;
    case ELEMENT_SPINE:
        return !incident_of_nic(x) && e->a.number == x->spine;
    default:
        return false;
    }
}

/* So many of its parts have faults that the element itself does: all NICs of a host; several trunks of a switch. */
static bool is_whole(const struct world *w, const struct element *e)
{
    uint32_t count = 0;

    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        count += w->faults[k].used && is_on(e, &w->faults[k]);
    }
    return count >= (e->kind == ELEMENT_HOST ? NICS : PROMOTE);
}

static bool names(const struct world *w, const struct element *e, const struct fault *x)
{
    if (is_on(e, x)) {
        return is_whole(w, e);
    }
    return incident_of_nic(x)
               ? e->kind == ELEMENT_NIC && e->a.number == x->nic
               : e->kind == ELEMENT_TRUNK && e->a.number == x->leaf && e->b.number == x->spine;
}

static bool crosses(const struct element *e, uint32_t direction, const struct way *way)
{
    const bool out = (direction & DIRECTION_OUT) != 0, in = (direction & DIRECTION_IN) != 0;

    if (e->kind == ELEMENT_NIC) {
        return (out && way->from == e->a.number) || (in && way->to == e->a.number);
    }
    return e->kind == ELEMENT_TRUNK && way->spine == e->b.number &&
           ((out && way->leaf_from == e->a.number) || (in && way->leaf_to == e->a.number));
}

/* Of the ways that no other fault takes, this fault takes exactly those that cross the element. */
static bool is_alike_in(const struct world *w, const struct element *e, uint32_t direction,
                        const struct fault *x)
{
    for (uint32_t k = 0; k < w->config.hosts * INCOMING; k++) {
        const struct way *way = &w->ways[k];
        bool other = false;

        if (incident_swallows(x, way) == crosses(e, direction, way)) {
            continue;
        }
        for (uint32_t n = 0; n < FAULT_MAX && !other; n++) {
            other =
                w->faults[n].used && &w->faults[n] != x && incident_swallows(&w->faults[n], way);
        }
        if (!other) {
            return false;
        }
    }
    return true;
}

/* They can't be told apart: other faults take all ways that could show the difference. */
static bool is_alike(const struct world *w, const struct element *e, const struct fault *x)
{
    return (e->kind == ELEMENT_NIC || e->kind == ELEMENT_TRUNK) &&
           (is_alike_in(w, e, DIRECTION_BOTH, x) || is_alike_in(w, e, DIRECTION_OUT, x) ||
            is_alike_in(w, e, DIRECTION_IN, x));
}

static uint32_t age(const struct world *w, const struct fault *x)
{
    return w->now_s - x->from_s;
}

/* An element of that name has a fault, now or until a moment ago. */
static bool is_so(const struct world *w, const struct element *e)
{
    bool so = false;

    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        const struct fault *past = &w->past[k];
        so = so || (w->faults[k].used && names(w, e, &w->faults[k])) ||
             (past->used && w->now_s < past->until_s + GONE_S &&
              (names(w, e, past) || is_on(e, past)));
    }
    for (uint32_t k = 0; k < FAULT_MAX && !so; k++) {
        const struct fault *past = &w->past[k];
        so = (w->faults[k].used && is_alike(w, e, &w->faults[k])) ||
             (past->used && w->now_s < past->until_s + GONE_S && is_alike(w, e, past));
    }
    return so;
}

/* A host that found it may guess so: the fault is younger than its name, or changed a moment ago. */
static bool is_guess(const struct world *w, const struct element *e, const struct fault *x)
{
    const bool young =
        age(w, x) < SETTLE_S || (x->turned && w->now_s < x->turn_s + LOSSY_S + 13 + SETTLE_S);

    for (uint32_t n = 0; x->used && young && n < x->finding_count; n++) {
        const struct way *way = &w->ways[x->findings[n].way];
        if ((e->kind == ELEMENT_NIC || e->kind == ELEMENT_PATH) &&
            (e->a.number == way->from || e->a.number == way->to)) {
            return true;
        }
        if (e->kind == ELEMENT_HOST &&
            (e->a.number == way->from / NICS || e->a.number == way->to / NICS)) {
            return true;
        }
        if (e->kind == ELEMENT_TRUNK && e->a.number == way->leaf_to && e->b.number == way->spine) {
            return true;
        }
    }
    return false;
}

static bool is_guessed(const struct world *w, const struct element *e)
{
    bool guessed = false;

    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        guessed = guessed || is_guess(w, e, &w->faults[k]);
    }
    return guessed;
}

/* Hosts that miss packets by this fault and by no other. For a fault at a host itself, that host's word is enough. */
static bool is_tellable(const struct world *w, const struct fault *x)
{
    uint32_t count = 0;

    for (uint32_t h = 0; h < w->config.hosts; h++) {
        bool alone = false;
        for (uint32_t k = 0; k < INCOMING && !alone; k++) {
            const struct way *way = &w->ways[h * INCOMING + k];
            alone = incident_swallows(x, way);
            for (uint32_t n = 0; n < FAULT_MAX && alone; n++) {
                const struct fault *y = &w->faults[n];
                alone = y == x || !y->used || !incident_swallows(y, way);
            }
        }
        count += alone ? (incident_of_nic(x) && x->nic / NICS == h ? WITNESSES : 1) : 0;
    }
    return count >= WITNESSES;
}

/* ---- incidents ---------------------------------------------------------------------------------------------------- */

static void judge_incidents(struct world *w)
{
    const struct alerts *a = brain_alerts(w->brain);
    struct alert_incident i;
    size_t cursor = 0;

    while (alerts_next_incident(a, &cursor, &i)) {
        const bool open = i.state == INCIDENT_OPEN || i.state == INCIDENT_NEW;
        uint64_t *said = &w->complained[i.id % JUDGED_MAX];
        if (open && i.told && i.element.kind != ELEMENT_UNKNOWN && *said != i.id &&
            !is_so(w, &i.element) && !is_guessed(w, &i.element)) {
            *said = i.id;
            complain(w, &w->result.wrong, NULL, i.cause, i.text);
        }
    }
}

/* It may not be known yet that the fault lasts, if it lost less from one moment to the next. */
static bool is_pausing(const struct world *w, const struct fault *x)
{
    return x->turned && w->now_s < x->turn_s + LOSSY_S + 13 + RULES_S;
}

static void judge_same(struct world *w, struct fault *x, const struct alert_incident *i)
{
    if (x->incident == 0) {
        x->incident = i->id;
        x->reopened = i->reopened;
    }
    if ((x->incident != i->id || x->reopened != i->reopened) && !x->again) {
        x->again = true;
        complain(w, &w->result.anew, x, "another incident of", i->text);
    }
}

static void judge_fault(struct world *w, struct fault *x)
{
    const struct alerts *a = brain_alerts(w->brain);
    struct alert_incident i;
    size_t cursor = 0;
    uint32_t count = 0;

    while (alerts_next_incident(a, &cursor, &i)) {
        const bool open = i.state == INCIDENT_OPEN || i.state == INCIDENT_NEW ||
                          (i.state == INCIDENT_QUIET && is_pausing(w, x));
        if (open && names(w, &i.element, x)) {
            count++;
            judge_same(w, x, &i);
        } else if (open && is_alike(w, &i.element, x)) {
            count++;
            x->vague_s = w->now_s;
        }
    }
    if (count == 0 && x->vague_s > 0 && w->now_s < x->vague_s + SETTLE_S) {
        return; /* the difference came back a moment ago */
    }
    if (count == 0 && !x->missed) {
        x->missed = true;
        complain(w, &w->result.forgotten, x, "no incident of", "");
    } else if (count > 1 && !x->twice) {
        x->twice = true;
        complain(w, &w->result.doubled, x, "two incidents of", "");
    }
}

/* ---- hosts -------------------------------------------------------------------------------------------------------- */

/* A NIC of it has a fault, now or until a report ago. */
static bool is_ill(const struct world *w, uint32_t host)
{
    bool ill = false;

    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        const struct fault *x = &w->faults[k], *past = &w->past[k];
        ill = ill || (x->used && incident_of_nic(x) && x->nic / NICS == host) ||
              (past->used && incident_of_nic(past) && past->nic / NICS == host &&
               w->now_s < past->until_s + REPORT_S);
    }
    return ill;
}

/* An agent reports its dead paths. Those beyond FINDING_HOSTS, which this world doesn't report, aren't judged. */
static bool is_told(const struct world *w, uint32_t host, const struct way *way)
{
    bool told = false;

    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        const struct fault *x = &w->faults[k];
        for (uint32_t n = 0; x->used && n < x->finding_count && !told; n++) {
            told = x->findings[n].host == host && incident_swallows(x, way);
        }
    }
    return told;
}

static void judge_health(struct world *w)
{
    const struct fleet *hosts = brain_hosts(w->brain);

    for (uint32_t h = 0; h < w->config.hosts; h++) {
        bool asked = !is_ill(w, h);
        for (uint32_t k = 0; k < INCOMING && asked; k++) {
            const uint32_t at = h * INCOMING + k;
            asked = w->told[at].state != WAY_DEAD || is_told(w, h, &w->ways[at]);
        }
        if (asked && fleet_host_health(hosts, h, w->now) != HEALTH_OK) {
            char said[40];
            snprintf(said, sizeof(said), "host %u", h);
            complain(w, &w->result.unwell, NULL, "not ok, and only sees faults:", said);
        }
    }
}

/* The age of the youngest fault. */
static uint32_t youngest(const struct world *w)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        const struct fault *x = &w->faults[k];
        least = x->used && age(w, x) < least ? age(w, x) : least;
    }
    return least;
}

void incident_judge(struct world *w)
{
    judge_incidents(w);
    if (youngest(w) == SETTLE_S) {
        judge_health(w);
    }
    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        struct fault *x = &w->faults[k];
        const bool told =
            x->used && age(w, x) >= SETTLE_S && x->finding_count > 0 && is_tellable(w, x);
        w->result.judged += told && age(w, x) == SETTLE_S;
        if (told) {
            judge_fault(w, x);
        }
    }
}

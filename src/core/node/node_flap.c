/* node_flap.c: a path that dies and recovers again and again is one finding with a count.
 *
 * The first two deaths are reported as such. From the third within FLAP_CALM_NS of each other, the flapping is reported, and
 * updated with each further one. The deaths themselves are not reported, unless one lasts. Messages are damped, never the
 * count. */
#include "core/node/internal.h"

#define FLAP_TIMES   3
#define FLAP_CALM_NS (120 * NS_PER_S) /* without a death for so long, it is over */
#define FLAP_LAST_NS (5 * NS_PER_S)   /* a death that lasts so long is reported by itself */

void node_flap_died(struct path_flaps *flaps, struct mono since)
{
    if (flaps->count == 0 || mono_sub(since, flaps->last).ns > FLAP_CALM_NS) {
        *flaps = (struct path_flaps){.first = since};
    }
    flaps->count++;
    flaps->last = since;
}

static struct open_finding *find_number(struct node *n, uint32_t number)
{
    for (uint32_t i = 0; i < n->open_count && number != 0; i++) {
        if (n->open[i].finding.number == number) {
            return &n->open[i];
        }
    }
    return NULL;
}

/* Copies the details of the newest death into the flapping's finding. */
static void tell(struct node *n, const struct bad_path *b, struct open_finding *flap,
                 const struct finding *death, bool fresh)
{
    const int64_t window = mono_sub(b->flaps.last, b->flaps.first).ns / NS_PER_S + 1;
    const uint32_t number = flap->finding.number;
    const int64_t times = fresh ? 0 : flap->finding.numbers[0] + 1;
    const struct mono since = flap->finding.since;
    const int64_t fleet = flap->finding.since_fleet_ns, utc = flap->finding.since_utc_ns;

    flap->finding = *death;
    flap->finding.number = number;
    flap->finding.kind = FINDING_PATH_FLAPPING;
    flap->finding.phase = fresh ? FINDING_OPENED : FINDING_UPDATED;
    flap->finding.since = since;
    flap->finding.since_fleet_ns = fleet;
    flap->finding.since_utc_ns = utc;
    flap->finding.numbers[0] = times > b->flaps.count ? times : b->flaps.count;
    flap->finding.numbers[1] = window;
    flap->finding.numbers[2] = flap->finding.numbers[3] = 0;
    flap->said = true;
    flap->calm = mono_add(b->flaps.last, span_ns(FLAP_CALM_NS));
    node_finding_push(n, &flap->finding);
}

/* A path of that incident is known to be dead: the incident's first one, or one that joins it. The incident may move in memory,
 * because the list of open findings grows. */
struct open_finding *node_flap_joins(struct node *n, struct bad_path *b,
                                     struct open_finding *incident)
{
    const uint32_t number = incident->finding.number;
    struct open_finding *flap = find_number(n, incident->flap ? incident->flap : b->flaps.number);
    const bool fresh = !flap;

    if (b->kind != FINDING_PATH_DEAD || incident->finding.kind != FINDING_PATH_DEAD) {
        return incident;
    }
    if (incident->flap != 0 && flap) { /* reported already; this path may have died more often */
        b->flaps.number = incident->flap;
        if (flap->finding.numbers[0] < b->flaps.count) {
            flap->finding.numbers[0] = b->flaps.count;
        }
        return incident;
    }
    if (b->flaps.count < FLAP_TIMES) {
        return incident;
    }
    if (fresh) {
        const uint64_t key = node_finding_key(FINDING_PATH_FLAPPING,
                                              (uint64_t)b->edge << 8 | b->path, b->direction, 0);
        flap = node_finding_open(n, key, FINDING_PATH_FLAPPING, b->flaps.first, MONO_NEVER);
        incident = find_number(n, number);
    }
    if (!flap) {
        return incident; /* no room: deaths are reported one by one */
    }
    b->flaps.number = incident->flap = flap->finding.number;
    tell(n, b, flap, &incident->finding, fresh);
    if (incident->paths == 1) { /* not reported yet */
        incident->quiet = true;
        incident->say = mono_add(n->now, span_ns(FLAP_LAST_NS));
    }
    return incident;
}

struct mono node_flap_due(const struct node *n)
{
    struct mono due = MONO_NEVER;

    for (uint32_t i = 0; i < n->open_count; i++) {
        due = mono_min(due, n->open[i].calm);
    }
    return due;
}

void node_flap_tick(struct node *n, struct mono now)
{
    for (uint32_t i = 0; i < n->open_count; i++) {
        if (n->open[i].calm.ns <= now.ns) {
            node_finding_close_at(n, now, i--);
        }
    }
}

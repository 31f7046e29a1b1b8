/* admit.c: the comparison that decides whether a host may join. */
#include "core/fleet/admit.h"

#include "base/bug.h"
#include "stats/sample.h"

struct judge {
    const struct admit_path *paths;
    uint32_t count;
    int64_t *sorted; /* scratch */
    struct admit_reason *reasons;
    size_t capacity, reason_count;
    enum admit_answer answer;
};

enum admit_answer admit_answer_of(enum admit_kind kind)
{
    switch (kind) {
    case ADMIT_WELL:
    case ADMIT_SHARED:
        return ADMIT_YES;
    case ADMIT_DEAD:
    case ADMIT_LOSSY:
    case ADMIT_SLOW:
    case ADMIT_TAIL:
        return ADMIT_NO;
    case ADMIT_UNMEASURED:
    case ADMIT_TIMELESS:
    case ADMIT_ALONE:
        break;
    }
    return ADMIT_UNKNOWN;
}

static void say(struct judge *j, const struct admit_reason *reason)
{
    const enum admit_answer answer = admit_answer_of(reason->kind);
    ASSERT(reason->paths_bad <= reason->paths && (reason->worst < j->count || j->count == 0));
    j->answer = answer > j->answer ? answer : j->answer;
    if (j->reason_count < j->capacity) {
        j->reasons[j->reason_count++] = *reason;
    }
}

/* ---- groups of paths ---- */

struct group { /* own: paths of one NIC and direction; otherwise the cohort's */
    bool own, out;
    uint32_t nic;
};

static bool belongs(const struct group *g, const struct admit_path *p)
{
    return p->own == g->own && (!g->own || (p->out == g->out && p->nic == g->nic));
}

static bool is_measured(const struct admit_path *p)
{
    return p->measured && p->sent > 0;
}

static bool has_delay(const struct admit_path *p)
{
    return p->measured && p->answered > 0 && p->owd_ns_p50 != ADMIT_NO_DELAY;
}

static uint32_t sort(struct judge *j, const struct group *g, bool near, bool tail)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < j->count; i++) {
        const struct admit_path *p = &j->paths[i];
        const int64_t value = tail ? p->owd_ns_p99 : p->owd_ns_p50;
        if (!belongs(g, p) || p->near != near || !has_delay(p)) {
            continue;
        }
        sample_insert_int(j->sorted, count, value);
        count++;
    }
    return count;
}

static int64_t ppm(uint64_t lost, uint64_t sent)
{
    return sent > 0 ? (int64_t)(lost * 1000000 / sent) : 0;
}

struct loss {
    uint64_t sent, lost;
    uint32_t paths_bad, worst;
    int32_t worst_lost;
};

static struct loss add_loss(const struct judge *j, const struct group *g)
{
    struct loss sum = {0};
    for (uint32_t i = 0; i < j->count; i++) {
        const struct admit_path *p = &j->paths[i];
        if (!belongs(g, p) || !p->measured || p->lost < 0) {
            continue;
        }
        sum.sent += p->sent;
        sum.lost += (uint32_t)p->lost;
        sum.paths_bad += p->lost > 0;
        if (p->lost > sum.worst_lost) {
            sum.worst_lost = p->lost;
            sum.worst = i;
        }
    }
    return sum;
}

/* ---- checks of one NIC in one direction ---- */

/* Returns the number of the group's paths. */
static uint32_t count_paths(const struct judge *j, const struct group *g,
                            struct admit_reason *unmeasured, struct admit_reason *timeless)
{
    for (uint32_t i = 0; i < j->count; i++) {
        const struct admit_path *p = &j->paths[i];
        struct admit_reason *r = NULL;
        if (!belongs(g, p)) {
            continue;
        }
        unmeasured->paths++;
        timeless->paths++;
        if (!is_measured(p)) {
            r = unmeasured;
        } else if (p->answered > 0 && !has_delay(p)) {
            r = timeless;
        }
        if (r != NULL && r->paths_bad++ == 0) {
            r->worst = i;
        }
    }
    return unmeasured->paths;
}

static void count_dead(const struct judge *j, const struct group *g, bool near,
                       struct admit_reason *r)
{
    for (uint32_t i = 0; i < j->count; i++) {
        const struct admit_path *p = &j->paths[i];
        if (!belongs(g, p) || p->near != near || !is_measured(p)) {
            continue;
        }
        r->paths++;
        if (p->answered == 0 && r->paths_bad++ == 0) {
            r->worst = i;
        }
    }
    r->value = ppm(r->paths_bad, r->paths);
}

/* A spine that drops a quarter of all ways drops a quarter of everybody's paths. So dead paths are the host's own fault if it has
 * several times its cohort's share, or more than half of the ways that the others still have. */
static bool judge_dead(struct judge *j, const struct group *g, bool near)
{
    const struct group cohort = {.own = false};
    struct admit_reason own = {.nic = g->nic, .out = g->out, .near = near}, others = {0};
    count_dead(j, g, near, &own);
    count_dead(j, &cohort, near, &others);
    if (own.paths_bad == 0) {
        return false;
    }
    own.cohort = others.value;
    const double share = (double)others.value * 1e-6, paths = own.paths;
    const double several =
        others.paths_bad > 0 ? ADMIT_DEAD_MORE * share * paths + ADMIT_DEAD_MIN : 0;
    const double half = (1 + share) / 2 * paths;
    own.kind = own.paths_bad >= (several < half ? several : half) ? ADMIT_DEAD : ADMIT_SHARED;
    say(j, &own);
    return own.kind == ADMIT_DEAD;
}

static bool judge_loss(struct judge *j, const struct group *g, uint32_t paths)
{
    const struct group cohort = {.own = false};
    const struct loss own = add_loss(j, g), others = add_loss(j, &cohort);
    const int64_t own_ppm = ppm(own.lost, own.sent), others_ppm = ppm(others.lost, others.sent);
    if (own.lost < ADMIT_LOST_MIN || own_ppm <= ADMIT_LOSS_PPM || own_ppm <= 2 * others_ppm) {
        return false;
    }
    const struct admit_reason r = {.kind = ADMIT_LOSSY,
                                   .nic = g->nic,
                                   .out = g->out,
                                   .paths = paths,
                                   .paths_bad = own.paths_bad,
                                   .value = own_ppm,
                                   .cohort = others_ppm,
                                   .worst = own.worst};
    say(j, &r);
    return true;
}

/* Finds the path of the group with the highest value, and the number of paths above the limit. */
static void find_worst(const struct judge *j, const struct group *g, bool near, bool tail,
                       int64_t limit, struct admit_reason *r)
{
    int64_t worst = INT64_MIN;
    for (uint32_t i = 0; i < j->count; i++) {
        const struct admit_path *p = &j->paths[i];
        const int64_t value = tail ? p->owd_ns_p99 : p->owd_ns_p50;
        if (!belongs(g, p) || p->near != near || !has_delay(p)) {
            continue;
        }
        r->paths++;
        r->paths_bad += value > limit;
        if (value > worst) {
            worst = value;
            r->worst = i;
        }
    }
}

static uint32_t bound_of(const struct judge *j, const struct group *g)
{
    uint32_t bound = 0;
    for (uint32_t i = 0; i < j->count; i++) {
        if (belongs(g, &j->paths[i]) && j->paths[i].bound_ns > bound) {
            bound = j->paths[i].bound_ns;
        }
    }
    return bound;
}

/* Slow means: more than one and a half times the cohort's value (for the tail: three times), and more than nine in ten of its
 * paths, beyond the clocks' error. True: a reason was added. */
static bool judge_delay(struct judge *j, const struct group *g, bool near, bool tail)
{
    const struct group cohort = {.own = false};
    struct admit_reason r = {.nic = g->nic, .out = g->out, .near = near};
    uint32_t count = sort(j, g, near, tail);
    if (count == 0) {
        return false;
    }
    r.value = sample_quantile_int(j->sorted, count, 0.5);
    count = sort(j, &cohort, near, tail);
    if (count == 0) {
        r.kind = ADMIT_ALONE;
        find_worst(j, g, near, tail, INT64_MAX, &r);
        say(j, &r);
        return true;
    }
    r.cohort = sample_quantile_int(j->sorted, count, 0.5);
    const int64_t most = sample_quantile_int(j->sorted, count, 0.9);
    const int64_t middle = r.cohort > 0 ? r.cohort : 0;
    const int64_t times = tail ? 3 * middle : middle + middle / 2;
    const uint32_t bound = bound_of(j, g);
    const int64_t least = tail ? ADMIT_TAIL_NS : ADMIT_SLOWER_NS;
    const int64_t limit = (times > most ? times : most) + (bound > least ? bound : least);
    if (r.value <= limit) {
        return false;
    }
    r.kind = tail ? ADMIT_TAIL : ADMIT_SLOW;
    find_worst(j, g, near, tail, limit, &r);
    say(j, &r);
    return true;
}

static void judge_group(struct judge *j, const struct group *g)
{
    struct admit_reason unmeasured = {.kind = ADMIT_UNMEASURED, .nic = g->nic, .out = g->out},
                        timeless = {.kind = ADMIT_TIMELESS, .nic = g->nic, .out = g->out};
    const uint32_t paths = count_paths(j, g, &unmeasured, &timeless);
    bool said = false;
    if (paths == 0 || unmeasured.paths_bad > 0) {
        say(j, &unmeasured);
        said = true;
    }
    for (int near = 0; near < 2; near++) {
        said = judge_dead(j, g, near) || said;
    }
    if (timeless.paths_bad > 0) {
        say(j, &timeless);
        said = true;
    }
    said = judge_loss(j, g, paths) || said;
    for (int near = 0; near < 2; near++) {
        /* a slow median is a better reason than a slow tail */
        said = judge_delay(j, g, near, false) || judge_delay(j, g, near, true) || said;
    }
    if (!said) {
        struct admit_reason well = {.kind = ADMIT_WELL, .nic = g->nic, .out = g->out}, near = well;
        find_worst(j, g, false, false, INT64_MAX, &well);
        find_worst(j, g, true, false, INT64_MAX, &near);
        if (near.paths > 0 && (well.paths == 0 ||
                               j->paths[near.worst].owd_ns_p50 > j->paths[well.worst].owd_ns_p50)) {
            well.worst = near.worst;
        }
        well.paths += near.paths;
        ASSERT(well.paths > 0 && belongs(g, &j->paths[well.worst])); /* "yes" needs evidence */
        well.value = j->paths[well.worst].owd_ns_p50;
        say(j, &well);
    }
}

enum admit_answer admit_judge(const struct admit_path *paths, uint32_t count, uint32_t nic_count,
                              int64_t *scratch, struct admit_reason *ret_reasons, size_t capacity,
                              size_t *ret_count)
{
    struct judge j = {.paths = paths,
                      .count = count,
                      .sorted = scratch,
                      .reasons = ret_reasons,
                      .capacity = capacity,
                      .answer = ADMIT_YES};
    for (uint32_t nic = 0; nic < nic_count; nic++) {
        for (int out = 0; out < 2; out++) {
            judge_group(&j, &(struct group){.own = true, .out = out, .nic = nic});
        }
    }
    *ret_count = j.reason_count;
    return j.answer;
}

/* perf.c: pairs, then rings of all hosts, then the search. perf_again.c tests pairs again, perf_fabric.c has the tests between
 * pairs and rings, perf_result.c takes the results. */
#include "core/audit/perf.h"

#include <errno.h>
#include <string.h>

#include "core/audit/perf_internal.h"

enum {
    SEARCHED_LEAST = 4, /* with fewer hosts none is known to be good */
    SUSPECTS_MAX = 8
};

static const char *const outcome_names[PERF_OUTCOME_COUNT] = {
    "not-run", "done", "silent", "failed", "refused", "busy", "preempted"};

const char *perf_outcome_name(enum perf_outcome outcome)
{
    return outcome < PERF_OUTCOME_COUNT ? outcome_names[outcome] : "not-run";
}

uint32_t perf_lanes(uint32_t row)
{
    return 1u << row % PERF_LANES_COUNT;
}

/* ---- memory ---- */

static size_t aligned(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

size_t perf_size(uint32_t hosts)
{
    const size_t n = hosts;
    return aligned(n * PERF_STEPS_MAX * sizeof(struct perf_part)) +
           aligned(n * PERF_STEPS_MAX * sizeof(struct perf_result)) +
           4 * aligned(n * sizeof(uint32_t)) + aligned(n * sizeof(struct perf_fabric)) +
           aligned(n) + aligned(n * sizeof(double)) + aligned(PERF_SCRATCH * n * sizeof(double)) +
           aligned(n * HOST_NIC_MAX * sizeof(struct perf_nic)) +
           aligned(n * HOST_NIC_MAX * sizeof(struct outlier_case)) +
           aligned(n * PERF_ROWS * sizeof(struct perf_result)) + aligned(search_size(hosts)) +
           aligned(n * sizeof(struct perf_memory)) + ways_size(hosts);
}

static void *claim(char **at, size_t size)
{
    void *place = *at;
    memset(place, 0, size);
    *at += aligned(size);
    return place;
}

/* ---- steps ---- */

const struct perf_part *perf_part_of(const struct perf *p, uint32_t step, uint32_t host)
{
    return perf_part_at(p, step, host);
}

uint32_t perf_add_step(struct perf *p, const struct perf_step *step)
{
    const uint32_t number = p->step_count++;
    p->steps[number] = *step;
    for (uint32_t i = 0; i < p->count; i++) {
        *perf_part_at(p, number, i) = (struct perf_part){.group = PERF_NOBODY};
        *perf_result_at(p, number, i) = (struct perf_result){.outcome = PERF_NOT_RUN};
    }
    return number;
}

void perf_put(struct perf *p, uint32_t step, uint32_t host, uint32_t group, uint32_t rank)
{
    *perf_part_at(p, step, host) = (struct perf_part){.group = group, .rank = rank};
    perf_result_at(p, step, host)->outcome = PERF_SILENT; /* until the host reports */
}

void perf_take_back(struct perf *p, uint32_t step, uint32_t host)
{
    *perf_part_at(p, step, host) = (struct perf_part){.group = PERF_NOBODY};
    perf_result_at(p, step, host)->outcome = PERF_NOT_RUN;
}

static void note_asked(struct perf *p, uint32_t nic, uint32_t host, uint32_t partner)
{
    struct perf_nic *is = perf_nic_at(p, host, nic);
    if (is->asked_count < PERF_ASKED) {
        is->asked[is->asked_count++] = (uint16_t)partner;
    }
}

/* Call it before results come: a host that never answers must not be the next one's partner, too. */
static void note_partners(struct perf *p, uint32_t step)
{
    const struct perf_step *s = &p->steps[step];
    for (uint32_t i = 0; (s->kind == PERF_PAIR || s->kind == PERF_RETEST) && i < p->count; i++) {
        const struct perf_part *part = perf_part_at(p, step, i);
        if (part->ranks == 2 && part->rank == 1) {
            note_asked(p, s->nic, i, part->leader);
            note_asked(p, s->nic, part->leader, i);
        }
    }
}

/* All members of the step's groups are set: tells each member about the others. */
void perf_end_step(struct perf *p, uint32_t step)
{
    uint32_t *size = p->order;
    memset(size, 0, p->count * sizeof(*size));
    for (uint32_t i = 0; i < p->count; i++) {
        const struct perf_part *part = perf_part_at(p, step, i);
        if (part->group != PERF_NOBODY) {
            size[part->group]++;
        }
    }
    for (uint32_t i = 0; i < p->count; i++) {
        struct perf_part *part = perf_part_at(p, step, i);
        part->ranks = part->group != PERF_NOBODY ? size[part->group] : 0;
    }
    uint32_t *leader = size;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct perf_part *part = perf_part_at(p, step, i);
        if (part->group != PERF_NOBODY && part->rank == 0) {
            leader[part->group] = i;
        }
    }
    for (uint32_t i = 0; i < p->count; i++) {
        struct perf_part *part = perf_part_at(p, step, i);
        part->leader = part->group != PERF_NOBODY ? leader[part->group] : PERF_NOBODY;
    }
    note_partners(p, step);
}

uint32_t perf_order_by_leaf(struct perf *p, uint32_t nic)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct perf_host *h = &p->hosts[i];
        uint32_t at = n;
        if (!h->there || p->gone[i] || nic >= h->nics) {
            continue;
        }
        for (; at > 0 && p->hosts[p->order[at - 1]].leaf[nic] > h->leaf[nic]; at--) {
            p->order[at] = p->order[at - 1];
        }
        p->order[at] = i;
        n++;
    }
    return n;
}

/* ---- pairs ---- */

uint32_t perf_add_pair_step(struct perf *p, enum perf_kind kind, uint32_t nic)
{
    return perf_add_step(
        p, &(struct perf_step){
               .kind = (uint8_t)kind, .lanes = PERF_PAIR_LANES, .nic = nic, .nics = 1});
}

/* Neighbours; then hosts that are half of all apart. Of an odd number another one sits out each time, and these two meet in a
 * third step: so nobody has the same partner twice. */
void perf_add_pairs(struct perf *p, uint32_t nic, bool ways_too)
{
    const uint32_t n = perf_order_by_leaf(p, nic), odd = n % 2, pairs = n / 2;
    if (pairs == 0) {
        return;
    }
    const uint32_t near = p->step_count, steps = n == 2 ? 1 : 2 + odd;
    for (uint32_t k = 0; k < steps; k++) {
        (void)perf_add_pair_step(p, PERF_PAIR, nic);
    }
    const uint32_t ways = p->step_count;
    if (ways_too) {
        (void)perf_add_step(
            p, &(struct perf_step){.kind = PERF_WAYS, .lanes = 1, .nic = nic, .nics = 1});
    }
    for (uint32_t k = 0; k + odd < n; k++) {
        perf_put(p, near, p->order[k], k / 2, k % 2);
        if (n > 2) {
            perf_put(p, near + 1, p->order[k + odd], k % pairs, k / pairs);
        }
        if (ways_too) {
            perf_put(p, ways, p->order[k], k % pairs, k / pairs);
        }
    }
    if (odd) {
        perf_put(p, near + 2, p->order[0], 0, 0);
        perf_put(p, near + 2, p->order[n - 1], 0, 1);
    }
    for (uint32_t step = near; step < p->step_count; step++) {
        perf_end_step(p, step);
    }
}

int perf_init(struct perf *p, const struct perf_config *config, void *memory)
{
    const uint32_t count = config->count;
    char *at = memory;
    uint32_t there = 0;
    *p = (struct perf){.hosts = config->hosts,
                       .count = count,
                       .wants_rings = config->wants_rings,
                       .no_ways = config->no_ways,
                       .no_permutations = config->no_permutations,
                       .no_alltoall = config->no_alltoall,
                       .no_memory = config->no_memory,
                       .seed = config->seed,
                       .practical = config->practical > 0 ? config->practical : PERF_PRACTICAL,
                       .memory_practical = config->memory_practical > 0 ? config->memory_practical
                                                                        : PERF_MEMORY_PRACTICAL,
                       .best = -1};
    p->parts = claim(&at, (size_t)count * PERF_STEPS_MAX * sizeof(*p->parts));
    p->results = claim(&at, (size_t)count * PERF_STEPS_MAX * sizeof(*p->results));
    p->order = claim(&at, count * sizeof(*p->order));
    p->ring[0] = claim(&at, count * sizeof(*p->ring[0]));
    p->ring[1] = claim(&at, count * sizeof(*p->ring[1]));
    p->drawn = claim(&at, count * sizeof(*p->drawn));
    p->fabric = claim(&at, count * sizeof(*p->fabric));
    p->gone = claim(&at, count);
    p->scratch = claim(&at, PERF_SCRATCH * count * sizeof(*p->scratch));
    p->named_rate = claim(&at, count * sizeof(*p->named_rate));
    p->nic = claim(&at, (size_t)count * HOST_NIC_MAX * sizeof(*p->nic));
    p->cases = claim(&at, (size_t)count * HOST_NIC_MAX * sizeof(*p->cases));
    p->rows = claim(&at, (size_t)count * PERF_ROWS * sizeof(*p->rows));
    p->memory = claim(&at, count * sizeof(*p->memory));
    p->search_memory = claim(&at, search_size(count));
    ways_init(&p->ways, count, at);
    for (uint32_t i = 0; i < count; i++) {
        there += p->hosts[i].there && p->hosts[i].nics > 0;
    }
    perf_add_memory(p);
    for (uint32_t nic = 0; nic < HOST_NIC_MAX; nic++) {
        perf_add_pairs(p, nic, !p->no_ways);
        perf_add_incast(p, nic);
    }
    return there < 2 || p->step_count == 0 ? -ENODATA : 0;
}

void perf_take(struct perf *p, uint32_t step, uint32_t host, const struct perf_result *result)
{
    if (step < p->step_count && host < p->count &&
        perf_part_at(p, step, host)->group != PERF_NOBODY) {
        *perf_result_at(p, step, host) = *result;
    }
}

void perf_take_way(struct perf *p, uint32_t step, uint32_t host, const struct way *way)
{
    if (step >= p->step_count || host >= p->count || p->steps[step].kind != PERF_WAYS ||
        perf_part_at(p, step, host)->group == PERF_NOBODY) {
        return;
    }
    struct way w = *way;
    w.host = host;
    w.nic = p->steps[step].nic;
    for (uint32_t i = 0; i < p->count; i++) {
        w.partner =
            i != host && perf_part_at(p, step, i)->group == perf_part_at(p, step, host)->group
                ? i
                : w.partner;
    }
    ways_add(&p->ways, &w);
}

/* ---- rings of all ---- */

/* A ring needs each of these NICs of each member: the number of NICs, from the first one on, that were measured. */
static uint32_t good_nics(const struct perf *p, uint32_t host)
{
    uint32_t nics = 0;
    while (nics < p->hosts[host].nics && perf_is_measured(p, host, nics)) {
        nics++;
    }
    return nics;
}

/* The number that most hosts have. With a host that has fewer, all others would test fewer, or the ring would not start. */
static uint32_t usual_nics(const struct perf *p)
{
    uint32_t hosts[HOST_NIC_MAX + 1] = {0}, most = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        hosts[good_nics(p, i)] += p->hosts[i].there && !p->gone[i];
    }
    hosts[0] = 0;
    for (uint32_t nics = 1; nics <= HOST_NIC_MAX; nics++) {
        most = hosts[nics] > 0 && hosts[nics] >= hosts[most] ? nics : most;
    }
    return most;
}

static bool is_in(const struct perf *p, uint32_t host)
{
    return p->hosts[host].there && !p->gone[host] && p->ring_nics > 0 &&
           good_nics(p, host) >= p->ring_nics;
}

bool perf_in_rings(const struct perf *p, uint32_t host)
{
    for (uint32_t k = 0; k < p->ring_count; k++) {
        if (p->ring[0][k] == host) {
            return true;
        }
    }
    return false;
}

static void find_ring(struct perf *p)
{
    p->ring_nics = usual_nics(p);
    p->ring_count = 0;
    p->expected = 0;
    const uint32_t n = perf_order_by_leaf(p, 0);
    for (uint32_t k = 0; k < n; k++) {
        if (is_in(p, p->order[k])) {
            p->ring[1][p->ring_count++] = p->order[k];
        }
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        if (is_in(p, i)) {
            p->ring[0][count++] = i;
        }
    }
    for (uint32_t nic = 0; nic < p->ring_nics; nic++) {
        p->expected += p->usual[nic] > 0 ? p->usual[nic] : 0;
    }
}

/* Plans the rows that are not done yet. */
static void plan_rings(struct perf *p)
{
    p->stage = PERF_RINGS;
    p->ring_plans++;
    p->step_count = 0;
    for (uint32_t row = 0; row < PERF_ROWS; row++) {
        if (p->together[row].outcome == PERF_DONE) {
            continue;
        }
        const bool by_leaf = row >= PERF_LANES_COUNT;
        const uint32_t step =
            perf_add_step(p, &(struct perf_step){.kind = PERF_RING,
                                                 .lanes = (uint8_t)perf_lanes(row),
                                                 .row = (uint8_t)row,
                                                 .by_leaf = by_leaf,
                                                 .nic = PERF_NOBODY,
                                                 .nics = p->ring_nics});
        for (uint32_t k = 0; k < p->ring_count; k++) {
            perf_put(p, step, p->ring[by_leaf][k], 0, k);
        }
        perf_end_step(p, step);
    }
}

/* Hosts that are gone leave all rings. False: no ring has changed. */
static bool leave_rings(struct perf *p)
{
    uint32_t left = 0;
    for (int order = 0; order < 2; order++) {
        left = 0;
        for (uint32_t k = 0; k < p->ring_count; k++) {
            if (!p->gone[p->ring[order][k]]) {
                p->ring[order][left++] = p->ring[order][k];
            }
        }
    }
    const bool any = left < p->ring_count;
    p->ring_count = left;
    return any;
}

/* A ring needs all of its hosts. If one dies, or gets a job, that ring ends and so do all that were to follow. These are run
 * again without the host. Rows that were done stay as they are. */
static bool plan_rings_again(struct perf *p)
{
    uint32_t done = 0;
    for (uint32_t row = 0; row < PERF_ROWS; row++) {
        done += p->together[row].outcome == PERF_DONE;
    }
    if (done == PERF_ROWS || p->ring_plans == PERF_RING_PLANS || !leave_rings(p) ||
        p->ring_count < 2) {
        return false;
    }
    plan_rings(p);
    return true;
}

/* ---- which host makes it slow ---- */

/* Suspects without a further test: hosts that came last, and late, to the meetings of the rings. Without these, hosts with a NIC
 * that is slower in tests of pairs. */
static uint32_t find_suspects(const struct perf *p, uint32_t suspects[SUSPECTS_MAX])
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->ring_count && count < SUSPECTS_MAX; k++) {
        uint32_t late = 0, arrivals = 0;
        for (uint32_t row = 0; row < PERF_ROWS; row++) {
            const struct perf_result *r = &p->rows[(size_t)row * p->count + p->ring[1][k]];
            late += r->outcome == PERF_DONE ? r->late : 0;
            arrivals += r->outcome == PERF_DONE ? r->arrivals : 0;
        }
        if (late > PERF_OFTEN_LATE * arrivals) {
            suspects[count++] = k;
        }
    }
    const bool arrivals_tell = count > 0;
    for (uint32_t k = 0; !arrivals_tell && k < p->ring_count && count < SUSPECTS_MAX; k++) {
        bool slower = false;
        for (uint32_t nic = 0; nic < p->ring_nics; nic++) {
            slower = slower || perf_nic_at(p, p->ring[1][k], nic)->verdict == PERF_SLOWER;
        }
        if (slower) {
            suspects[count++] = k;
        }
    }
    return count;
}

static void begin_search(struct perf *p)
{
    uint32_t suspects[SUSPECTS_MAX];
    search_init(&p->search, p->ring_count, p->search_memory);
    for (uint32_t k = 0; k < p->ring_count; k++) {
        bool good = true;
        for (uint32_t nic = 0; nic < p->ring_nics; nic++) {
            good = good && !perf_looks_bad(p, p->ring[1][k], nic);
        }
        if (good) {
            search_know_good(&p->search, k);
        }
    }
    search_begin_with(&p->search, suspects, find_suspects(p, suspects));
}

bool perf_cleared(const struct perf *p, uint32_t host)
{
    for (uint32_t k = 0; p->searched && k < p->ring_count; k++) {
        if (p->ring[1][k] == host) {
            return p->search.good[k] == 2;
        }
    }
    return false;
}

static void put_member(struct perf *p, uint32_t step, uint32_t group, uint32_t member,
                       uint32_t *rank)
{
    const uint32_t host = p->ring[1][member];
    if (!p->gone[host]) {
        perf_put(p, step, host, group, (*rank)++);
    }
}

/* A host alone makes no test. */
static bool put_test(struct perf *p, uint32_t step, uint32_t group)
{
    const struct search_test *t = &p->tests[group];
    const struct search_range ranges[] = {t->one, t->other};
    uint32_t rank = 0;
    for (int r = 0; r < 2; r++) {
        for (uint32_t k = 0; k < ranges[r].count; k++) {
            put_member(p, step, group, p->search.order[ranges[r].first + k], &rank);
        }
    }
    if (t->partner != SEARCH_NONE) {
        put_member(p, step, group, t->partner, &rank);
    }
    for (uint32_t i = 0; rank == 1 && i < p->count; i++) {
        if (perf_part_at(p, step, i)->group == group) {
            perf_take_back(p, step, i);
        }
    }
    return rank >= 2;
}

/* Adds pairs of good hosts that are in no test of this round. The number of groups stays below that of hosts. */
static void put_beside(struct perf *p, uint32_t step)
{
    uint32_t put = 0;
    for (uint32_t k = 0;
         k < p->ring_count && put < 2 * PERF_SEARCH_BESIDE && p->test_count + put / 2 < p->count;
         k++) {
        const uint32_t host = p->ring[1][k];
        if (p->search.good[k] && !p->gone[host] &&
            perf_part_at(p, step, host)->group == PERF_NOBODY) {
            perf_put(p, step, host, p->test_count + put / 2, put % 2);
            put++;
        }
    }
    for (uint32_t i = 0; put % 2 == 1 && i < p->count; i++) {
        if (perf_part_at(p, step, i)->group == p->test_count + put / 2) {
            perf_take_back(p, step, i); /* a host alone makes no test */
        }
    }
    p->beside_count = put / 2;
}

/* Plans a round with at least one test that can be run; tests that can't be have no answer. False: the search is over. */
static bool plan_search(struct perf *p)
{
    uint8_t unknown[2 * SEARCH_SETS_MAX];
    memset(unknown, SEARCH_UNKNOWN, sizeof(unknown));
    p->stage = PERF_SEARCHING;
    for (uint32_t k = 0; k < p->ring_count; k++) {
        if (p->gone[p->ring[1][k]]) {
            search_leave(&p->search, k);
        }
    }
    while ((p->test_count = search_round(&p->search, p->tests)) > 0) {
        bool any = false;
        p->step_count = 0;
        const uint32_t step =
            perf_add_step(p, &(struct perf_step){.kind = PERF_SEARCH,
                                                 .lanes = (uint8_t)perf_lanes(p->best_row),
                                                 .by_leaf = true,
                                                 .nic = PERF_NOBODY,
                                                 .nics = p->ring_nics});
        for (uint32_t g = 0; g < p->test_count; g++) {
            any = put_test(p, step, g) || any;
        }
        if (any) {
            put_beside(p, step);
            perf_end_step(p, step);
            return true;
        }
        search_results(&p->search, p->tests, unknown);
    }
    p->step_count = 0;
    p->searched = true;
    return false;
}

/* Starts with the hosts that are still there. */
static bool begin_rings(struct perf *p)
{
    find_ring(p);
    perf_expect_fabric(p);
    plan_rings(p);
    return p->wants_rings && p->ring_count >= 2;
}

static bool begin_fabric(struct perf *p)
{
    perf_judge_retests(p);
    find_ring(p);
    return perf_plan_fabric(p) || begin_rings(p);
}

bool perf_next(struct perf *p)
{
    bool more = false;
    if (p->over) {
        return false;
    }
    perf_find_gone(p);
    switch ((enum perf_stage)p->stage) {
    case PERF_PAIRS:
        perf_take_memory(p);
        perf_take_pairs(p);
        perf_take_incasts(p);
        perf_look_at_pairs(p);
        more = perf_plan_again(p) || begin_fabric(p);
        break;
    case PERF_PAIRS_AGAIN:
        perf_take_memory(p);
        perf_take_pairs(p);
        perf_look_at_repeated(p);
        perf_take_retests(p);
        more = perf_plan_again(p) || begin_fabric(p);
        break;
    case PERF_FABRIC:
        perf_take_fabric(p);
        more = begin_rings(p);
        break;
    case PERF_RINGS:
        perf_take_rings(p);
        more = plan_rings_again(p);
        if (!more && p->slow && p->excused == 0 && p->ring_count >= SEARCHED_LEAST) {
            begin_search(p);
            more = plan_search(p);
        }
        break;
    case PERF_SEARCHING:
        perf_take_search(p);
        more = plan_search(p);
        break;
    }
    p->over = !more;
    return more;
}

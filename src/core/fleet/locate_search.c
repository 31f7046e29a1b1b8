/* locate_search.c: the best explanation of the losses in one window of time.
 *
 * The search adds an element and drops those that became superfluous, until nothing improves the explanation. An element is
 * excluded if a group of its paths (all through one other NIC or trunk) is cleaner than its share allows. locate_weigh.c computes
 * the value of an explanation. */
#include <math.h>
#include <string.h>

#include "core/fleet/locate_private.h"

#define TRY_BEST      CANDIDATE_MAX /* of the losses that are left */
#define TRY_WHOLE     3             /* of all losses: one may replace several */
#define CLEAN_LIMIT   8.0  /* ln-likelihood of a group that is too clean, for a black hole */
#define CLEAN_GRAY    12.0 /* for a gray loss, which scatters */
#define PATH_LOSSES   3    /* of one path, before it alone is suspected */
#define IMPROVE_STEPS 10
#define OTHER_STEPS   3 /* replacements of one element by others */

/* Removes elements that explain nothing beside the newest one, which is the last. Elements without a common loss keep their
 * value. */
static void prune(struct locate *l, struct explanation *x, const struct cell *cells)
{
    uint32_t shares = 0;
    bool better = true;

    for (uint32_t cell = 1u << (x->count - 1); cell < 1u << x->count; cell++) {
        shares |= cells[cell].lost > 0 ? cell : 0;
    }
    while (better && x->count > 1) {
        struct explanation best = *x;
        uint32_t best_at = 0;

        better = false;
        for (uint32_t i = 0; i + 1 < x->count; i++) {
            struct explanation y = *x;

            if ((shares & (1u << i)) == 0) {
                continue;
            }
            locate_drop(&y, i);
            locate_weigh(l, &y);
            if (y.score > best.score) {
                best = y;
                best_at = i;
                better = true;
            }
        }
        *x = best;
        shares = (shares & ((1u << best_at) - 1)) | shares >> (best_at + 1) << best_at;
    }
}

/* ---- candidates ----------------------------------------------------------------------------- */

static bool is_banned(const struct locate *l, const struct ban *ban, uint32_t element)
{
    for (uint32_t i = 0; i < ban->count; i++) {
        if (ban->classes[i] == l->suspects[element].class) {
            return true;
        }
    }
    return false;
}

static bool has_class(const struct locate *l, const struct explanation *x, uint32_t element)
{
    for (uint32_t i = 0; i < x->count; i++) {
        if (l->suspects[x->elements[i]].class == l->suspects[element].class) {
            return true;
        }
    }
    return false;
}

static bool is_listed(const struct locate *l, const struct candidate *list, uint32_t count,
                      uint32_t element)
{
    for (uint32_t i = 0; i < count; i++) {
        if (l->suspects[list[i].element].class == l->suspects[element].class) {
            return true;
        }
    }
    return false;
}

/* Best first. */
static void list_add(struct candidate *list, uint32_t *count, uint32_t limit, struct candidate c)
{
    uint32_t at = *count < limit ? (*count)++ : limit;

    for (; at > 0 && c.score > list[at - 1].score; at--) {
        if (at < limit) {
            list[at] = list[at - 1];
        }
    }
    if (at < limit) {
        list[at] = c;
    }
}

/* Counts the losses that the explanation leaves, for each element; returns the number of elements with some. */
static uint32_t losses_left(struct locate *l)
{
    uint32_t marked = 0;

    for (uint32_t i = 0; i < l->lossy_count; i++) {
        const uint32_t path = l->lossy[i];
        const struct path *p = &l->paths[path];

        for (uint32_t k = 0; k < p->element_count && l->mask[path] == 0 && l->lost[path] > 0; k++) {
            if (l->element_lost[p->elements[k]] == 0) {
                l->marked[marked++] = p->elements[k];
            }
            l->element_lost[p->elements[k]] += l->lost[path];
        }
    }
    return marked;
}

static double score_left(struct locate *l, uint32_t element)
{
    const struct suspect *e = &l->suspects[element];
    const double lost = l->element_lost[element];
    double sent = 0;

    for (uint32_t k = 0; k < e->count; k++) {
        const uint32_t path = l->crossings[e->first + k];

        if (l->mask[path] == 0) {
            locate_count(l, path);
            sent += l->sent[path];
        }
    }
    const double share = l->config.share > 0 ? l->config.share : lost / sent;
    return locate_gain(lost, sent, share, locate_null(l)) / l->dispersion + e->prior;
}

/* The elements that explain most of the remaining losses. */
static uint32_t candidates_left(struct locate *l, const struct explanation *x,
                                const struct ban *ban, struct candidate ret_best[static TRY_BEST])
{
    const double each = log(1 / locate_null(l)) / l->dispersion;
    uint32_t count = 0, marked;

    locate_mark(l, x, 1);
    marked = losses_left(l);
    for (uint32_t i = 0; i < marked; i++) {
        const uint32_t index = l->marked[i];
        const struct suspect *e = &l->suspects[index];
        const double least = count == TRY_BEST ? ret_best[count - 1].score : 0;
        struct candidate c = {.element = index};

        if (l->element_lost[index] * each + e->prior > least &&
            (e->name.kind != ELEMENT_UNKNOWN || l->element_lost[index] >= PATH_LOSSES) &&
            !is_banned(l, ban, index) && !has_class(l, x, index) &&
            !is_listed(l, ret_best, count, index)) {
            c.score = score_left(l, index);
            if (c.score > least) {
                list_add(ret_best, &count, TRY_BEST, c);
            }
        }
        l->element_lost[index] = 0;
    }
    locate_mark(l, x, 0);
    return count;
}

/* The elements that explain most by themselves; best first. */
void locate_candidates_find(struct locate *l)
{
    const struct explanation nothing = {.count = 0};
    const struct ban none = {.count = 0};

    for (uint32_t i = 0; i < l->lossy_count; i++) {
        locate_count(l, l->lossy[i]);
    }
    l->candidate_count = candidates_left(l, &nothing, &none, l->candidates);
}

/* ---- contradictions -------------------------------------------------------------------------- */

/* True if a group of the element's own paths, all through one other NIC or trunk, loses so much less than expected that chance is
 * excluded. */
static bool contradicted(struct locate *l, const struct explanation *x, uint32_t index)
{
    const struct suspect *e = &l->suspects[x->elements[index]];
    const double share = fmin(SHARE_MOST, x->shares[index]);
    const double limit = (share > SHARE_HOLE ? CLEAN_LIMIT : CLEAN_GRAY) * l->dispersion;
    struct explanation others = *x;
    uint32_t groups = 0;
    bool found = false;

    locate_drop(&others, index);
    locate_mark(l, &others, 1);
    for (uint32_t k = 0; k < e->count; k++) {
        const uint32_t path = l->crossings[e->first + k];
        const struct path *p = &l->paths[path];

        for (uint32_t i = 0; i < p->element_count && l->mask[path] == 0 && l->sent[path] > 0; i++) {
            const uint32_t g = p->elements[i];
            if (!l->suspects[g].atom) {
                continue;
            }
            if (l->element_sent[g] == 0) {
                l->marked[groups++] = g;
            }
            l->element_sent[g] += l->sent[path];
            l->element_lost[g] += l->lost[path];
        }
    }
    locate_mark(l, &others, 0);
    for (uint32_t i = 0; i < groups; i++) {
        const double sent = l->element_sent[l->marked[i]], lost = l->element_lost[l->marked[i]];
        const double r = lost / sent;

        if (r < share) {
            const double far = (lost > 0 ? lost * log(r / share) : 0) +
                               (sent > lost ? (sent - lost) * log((1 - r) / (1 - share)) : 0);
            found = found || far > limit;
        }
        l->element_sent[l->marked[i]] = l->element_lost[l->marked[i]] = 0;
    }
    return found;
}

/* True if other elements of the explanation already lose all its paths: it only explains how they began. */
static bool shadowed(struct locate *l, const struct explanation *x, uint32_t index)
{
    const struct suspect *e = &l->suspects[x->elements[index]];
    struct explanation others = {.count = 0};
    bool r = true;

    for (uint32_t i = 0; i < x->count; i++) {
        if (i != index && x->shares[i] > SHARE_HOLE) {
            others.elements[others.count++] = x->elements[i];
        }
    }
    locate_mark(l, &others, 1);
    for (uint32_t k = 0; k < e->count && r; k++) {
        const uint32_t path = l->crossings[e->first + k];
        r = !l->paths[path].observed || l->mask[path] != 0;
    }
    locate_mark(l, &others, 0);
    return r;
}

/* ---- the search ----------------------------------------------------------------------------- */

static bool try_element(struct locate *l, const struct explanation *x, const struct ban *ban,
                        uint32_t element, struct explanation *best)
{
    struct explanation y = *x;
    struct cell cells[CELLS];

    if (y.count == SET_MAX) {
        return false;
    }
    y.elements[y.count++] = element;
    locate_weigh_cells(l, &y, cells);
    prune(l, &y, cells);
    if (y.score <= best->score + 1e-9 ||
        (ban->paths != 0 && locate_paths_of(l, &y) == ban->paths)) {
        return false;
    }
    *best = y;
    return true;
}

/* Improves x until no further element helps. */
static void improve(struct locate *l, struct explanation *x, const struct ban *ban, uint32_t steps)
{
    for (uint32_t step = 0; step < steps; step++) {
        struct candidate left[TRY_BEST];
        uint32_t whole = 0;
        const uint32_t count = candidates_left(l, x, ban, left);
        struct explanation best = *x;
        bool better = false;

        for (uint32_t i = 0; i < count; i++) {
            better |= try_element(l, x, ban, left[i].element, &best);
        }
        for (uint32_t i = 0; i < l->candidate_count && whole < TRY_WHOLE; i++) {
            const uint32_t element = l->candidates[i].element;
            if (!is_banned(l, ban, element) && !has_class(l, x, element)) {
                whole++;
                better |= x->count > 0 && try_element(l, x, ban, element, &best);
            }
        }
        if (!better) {
            return;
        }
        *x = best;
    }
}

void locate_explain(struct locate *l, struct explanation *ret)
{
    const struct ban none = {.count = 0};

    memset(ret, 0, sizeof(*ret));
    locate_candidates_find(l);
    if (l->candidate_count > 0) {
        improve(l, ret, &none, IMPROVE_STEPS);
        ret->paths = locate_paths_of(l, ret);
    }
}

/* The best explanation without the banned elements. */
static struct explanation without(struct locate *l, const struct explanation *x, uint32_t index,
                                  const struct ban *ban)
{
    struct explanation y = *x;

    locate_drop(&y, index);
    locate_weigh(l, &y);
    improve(l, &y, ban, OTHER_STEPS);
    y.paths = locate_paths_of(l, &y);
    return y;
}

static void note_others(struct locate *l, struct explanation *x, uint32_t index,
                        const struct explanation *y)
{
    uint32_t count = 0;

    while (count < LOCATE_ONE_OF && x->others[index][count] != NONE) {
        count++;
    }
    for (uint32_t i = 0; i < y->count && count < LOCATE_ONE_OF; i++) {
        if (!has_class(l, x, y->elements[i])) {
            x->others[index][count++] = y->elements[i];
        }
    }
}

/* Notes all sets that explain exactly the same paths, `y` among them: a spine's last two trunks, and the spine. */
static void note_alike(struct locate *l, struct explanation *x, uint32_t index, struct ban ban,
                       const struct explanation *y)
{
    struct explanation z = *y;

    while (z.paths == x->paths && x->score - z.score < LOCATE_LIMIT) {
        const uint32_t before = ban.count;

        note_others(l, x, index, &z);
        for (uint32_t i = 0; i < z.count && ban.count < SET_MAX; i++) {
            if (!has_class(l, x, z.elements[i])) {
                ban.classes[ban.count++] = l->suspects[z.elements[i]].class;
            }
        }
        if (ban.count == before) {
            return;
        }
        z = without(l, x, index, &ban);
    }
}

static double priors_of(const struct locate *l, const struct explanation *x)
{
    double sum = 0;

    for (uint32_t i = 0; i < x->count; i++) {
        sum += l->suspects[x->elements[i]].prior;
    }
    return sum;
}

/* The same, with another try before the element gets a name. The search adds one element after the other. So it misses a set of
 * which each element explains less than one other element does: two trunks of a leaf, instead of which it takes the own NIC. */
static struct explanation rival_of(struct locate *l, const struct explanation *x, uint32_t index,
                                   const struct ban *ban)
{
    struct explanation y = without(l, x, index, ban);
    struct ban more = *ban;

    if (x->score - y.score < LOCATE_LIMIT) {
        return y;
    }
    for (uint32_t i = 0; i < y.count && more.count < SET_MAX; i++) {
        if (!has_class(l, x, y.elements[i])) {
            more.classes[more.count++] = l->suspects[y.elements[i]].class;
        }
    }
    if (more.count > ban->count) {
        const struct explanation z = without(l, x, index, &more);
        y = z.score > y.score ? z : y;
    }
    return y;
}

/* The margin to the best explanation without the element, among those that an observer could distinguish from this one. */
static bool margin_of(struct locate *l, struct explanation *x, uint32_t index)
{
    struct ban ban = {.count = 1, .classes = {l->suspects[x->elements[index]].class}};
    struct explanation y = rival_of(l, x, index, &ban);

    memset(x->others[index], 0xff, sizeof(x->others[index]));
    x->alike[index] = false;
    if (y.score > x->score + 1e-6 && y.paths != x->paths) {
        *x = y;
        return false;
    }
    if (y.paths == x->paths && x->score - y.score < LOCATE_LIMIT &&
        priors_of(l, &y) > priors_of(l, x)) {
        *x = y; /* of equal paths, the likelier one, unless the losses speak for the other */
        return false;
    }
    x->margins[index] = x->score - y.score;
    if (x->margins[index] < LOCATE_LIMIT && y.paths != x->paths) {
        note_others(l, x, index, &y);
    }
    if (y.paths == x->paths && y.count > 0) {
        x->alike[index] = true;
        note_alike(l, x, index, ban, &y);
        ban.paths = x->paths;
        y = rival_of(l, x, index, &ban);
        x->margins[index] = x->score - y.score;
    }
    return true;
}

void locate_explain_margins(struct locate *l, struct explanation *x)
{
    for (uint32_t tries = 0; tries < 4; tries++) {
        bool whole = true;

        for (uint32_t i = 0; i < x->count && whole; i++) {
            struct explanation y = *x;

            locate_drop(&y, i);
            locate_weigh(l, &y);
            x->gains[i] = x->score - y.score;
            whole = margin_of(l, x, i);
        }
        for (uint32_t i = 0; i < x->count && whole; i++) {
            x->margins[i] = contradicted(l, x, i) || shadowed(l, x, i) ? 0 : x->margins[i];
        }
        if (whole) {
            return;
        }
    }
    memset(x->margins, 0, sizeof(x->margins)); /* the search goes in circles: nothing is certain */
}

bool locate_is_alike(struct locate *l, const struct explanation *x, uint32_t index,
                     const uint32_t *elements, uint32_t count)
{
    struct explanation y = *x;

    locate_drop(&y, index);
    if (y.count + count > SET_MAX) {
        return false;
    }
    memcpy(&y.elements[y.count], elements, count * sizeof(*elements));
    y.count += count;
    locate_weigh(l, &y);
    return locate_paths_of(l, &y) == x->paths &&
           (x->score - priors_of(l, x)) - (y.score - priors_of(l, &y)) < LOCATE_LIMIT;
}

/* The same with the trials that count now. */
static double margin_now(struct locate *l, const struct explanation *x, uint32_t index)
{
    struct explanation y = *x;
    struct ban ban = {.count = 1, .classes = {l->suspects[x->elements[index]].class}};

    locate_candidates_find(l);
    locate_weigh(l, &y);
    y.paths = locate_paths_of(l, &y);
    /* an explanation that can't be distinguished from it is no other answer */
    ban.paths = x->alike[index] ? y.paths : 0;
    const struct explanation z = without(l, &y, index, &ban);
    return y.score - z.score;
}

bool locate_stands_without(struct locate *l, const struct explanation *x, uint32_t index,
                           struct host_id host)
{
    locate_window_begin(l, l->now, l->window, host);
    return margin_now(l, x, index) > 0;
}

double locate_margin_beside(struct locate *l, const struct explanation *x, uint32_t index,
                            struct moment moment)
{
    locate_window_begin(l, l->now, l->window, HOST_NONE);
    l->moment = moment;
    return margin_now(l, x, index);
}

double locate_gain_beside(struct locate *l, const struct explanation *x, uint32_t index,
                          struct moment moment)
{
    struct explanation with = *x, less = *x;

    locate_window_begin(l, l->now, l->window, HOST_NONE);
    l->moment = moment;
    locate_weigh(l, &with);
    locate_drop(&less, index);
    locate_weigh(l, &less);
    return with.score - less.score;
}

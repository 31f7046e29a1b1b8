/* locate_weigh.c: the value of an explanation in one window of time.
 *
 * A path through elements of the explanation loses a trial unless it survives the background and each element's share, which are
 * fitted. The score is the ln-likelihood against background alone, divided by the dispersion, plus the elements' priors
 * (docs/locate.md). */
#include <math.h>
#include <string.h>

#include "core/fleet/locate_private.h"

#define FIT_ROUNDS   12
#define SHARE_OUTAGE 0.999
#define SHARE_COST   6.9 /* ln of how much rarer an outage of a share is than a total one */

void locate_window_begin(struct locate *l, struct mono now, uint32_t window, struct host_id without)
{
    l->now = now;
    l->window = window;
    l->without = without;
    l->moment = MOMENT_NONE;
    l->stamp++;
}

/* The least loss of a faulty element: twice the background, if that is learned. */
double locate_null(const struct locate *l)
{
    return l->config.background > 0 ? l->config.background : 2 * l->background;
}

double locate_gain(double lost, double sent, double share, double null)
{
    double g = 0;

    if (share <= null || sent <= 0) {
        return 0;
    }
    share = fmin(share, SHARE_MOST);
    g += lost > 0 ? lost * log(share / null) : 0;
    g += sent > lost ? (sent - lost) * log((1 - share) / (1 - null)) : 0;
    return g;
}

void locate_mark(struct locate *l, const struct explanation *x, uint8_t value)
{
    for (uint32_t i = 0; i < x->count; i++) {
        const struct suspect *e = &l->suspects[x->elements[i]];

        for (uint32_t k = 0; k < e->count; k++) {
            l->mask[l->crossings[e->first + k]] = value;
        }
    }
}

static void cells_of(struct locate *l, const struct explanation *x, struct cell *cells)
{
    uint32_t count = 0;

    memset(cells, 0, sizeof(*cells) << x->count);
    for (uint32_t i = 0; i < x->count; i++) {
        const struct suspect *e = &l->suspects[x->elements[i]];

        for (uint32_t k = 0; k < e->count; k++) {
            const uint32_t path = l->crossings[e->first + k];
            if (l->mask[path] == 0) {
                l->touched[count++] = path;
            }
            l->mask[path] |= (uint8_t)(1u << i);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t path = l->touched[i];
        struct cell *c = &cells[l->mask[path]];

        locate_count(l, path);
        c->sent += l->sent[path];
        c->lost += l->lost[path];
        l->mask[path] = 0;
    }
}

uint64_t locate_paths_of(struct locate *l, const struct explanation *x)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < x->count; i++) {
        const struct suspect *e = &l->suspects[x->elements[i]];

        for (uint32_t k = 0; k < e->count; k++) {
            const uint32_t path = l->crossings[e->first + k];
            sum += l->mask[path] == 0 && l->paths[path].observed ? locate_path_hash(path) : 0;
            l->mask[path] = 1;
        }
    }
    locate_mark(l, x, 0);
    return sum;
}

/* The loss of a cell: the shares of all its elements as independent losses. Or, if it fits better, the largest share alone:
 * two black holes that began within the window lose the same trials. ret_one: the element that loses all; NONE: independent
 * losses. */
static double cell_share(const struct explanation *x, uint32_t cell, const struct cell *c,
                         double null, uint32_t *ret_one)
{
    double clean = 1 - null, most = null, all;
    uint32_t one = NONE, count = 0;

    for (uint32_t i = 0; i < x->count; i++) {
        if ((cell & (1u << i)) != 0) {
            clean *= 1 - x->shares[i];
            one = x->shares[i] > most ? i : one;
            most = fmax(most, x->shares[i]);
            count++;
        }
    }
    all = fmin(SHARE_MOST, 1 - clean);
    most = fmin(SHARE_MOST, most);
    *ret_one = NONE;
    if (count > 1 &&
        locate_gain(c->lost, c->sent, most, null) > locate_gain(c->lost, c->sent, all, null)) {
        *ret_one = one;
        return most;
    }
    return all;
}

/* Fits each element's share by expectation and maximisation: an element is blamed for a lost trial in proportion to its share.
 * known: the share, if known; 0: it isn't. */
static void fit(struct explanation *x, const struct cell *cells, double null, double known)
{
    const uint32_t end = 1u << x->count;

    for (uint32_t i = 0; i < x->count; i++) {
        x->shares[i] = known > 0 ? known : 0.5;
    }
    for (uint32_t round = 0; round < FIT_ROUNDS && known <= 0; round++) {
        double lost[SET_MAX] = {0}, sent[SET_MAX] = {0};

        for (uint32_t cell = 1; cell < end; cell++) {
            const struct cell *c = &cells[cell];
            uint32_t one = NONE;
            const double p = c->sent > 0 ? cell_share(x, cell, c, null, &one) : 1;

            for (uint32_t i = 0; i < x->count && c->sent > 0; i++) {
                if ((cell & (1u << i)) != 0 && (one == NONE || one == i)) {
                    sent[i] += c->sent;
                    lost[i] += c->lost * (one == i ? 1 : fmin(1, x->shares[i] / p));
                }
            }
        }
        for (uint32_t i = 0; i < x->count; i++) {
            x->shares[i] = sent[i] > 0 ? fmin(SHARE_MOST, lost[i] / sent[i]) : 0;
        }
    }
}

/* In the window of an outage an element lost all trials, except strays. Otherwise it lost only a share for just that time, which
 * is rare. Returns the cost of that. */
static double fit_outage(struct explanation *x, const struct cell *cells)
{
    double cost = 0;

    for (uint32_t i = 0; i < x->count; i++) {
        const double q = fmin(SHARE_MOST, x->shares[i]);
        double lost = 0, came = 0;

        for (uint32_t cell = 1; cell < 1u << x->count; cell++) {
            lost += (cell & (1u << i)) != 0 ? cells[cell].lost : 0;
            came += (cell & (1u << i)) != 0 ? cells[cell].sent - cells[cell].lost : 0;
        }
        const double all = lost * log(SHARE_OUTAGE) + came * log(1 - SHARE_OUTAGE);
        const double some = q > 0 ? lost * log(q) + came * log(1 - q) : 0;
        if (all > some - SHARE_COST) {
            x->shares[i] = SHARE_OUTAGE;
        } else {
            cost += SHARE_COST;
        }
    }
    return cost;
}

void locate_weigh_cells(struct locate *l, struct explanation *x, struct cell *cells)
{
    const double null = locate_null(l);
    double cost = 0;

    x->score = 0;
    cells_of(l, x, cells);
    fit(x, cells, null, l->config.share);
    if (l->window == WINDOW_OUTAGE) {
        cost = (l->config.share > 0 ? 0 : fit_outage(x, cells)) + x->count * l->choice;
    }
    for (uint32_t cell = 1; cell < 1u << x->count; cell++) {
        uint32_t one;
        x->score += locate_gain(cells[cell].lost, cells[cell].sent,
                                cell_share(x, cell, &cells[cell], null, &one), null);
    }
    x->score = x->score / l->dispersion - cost;
    for (uint32_t i = 0; i < x->count; i++) {
        x->score += l->suspects[x->elements[i]].prior;
    }
}

void locate_weigh(struct locate *l, struct explanation *x)
{
    struct cell cells[CELLS];

    locate_weigh_cells(l, x, cells);
}

void locate_drop(struct explanation *x, uint32_t index)
{
    x->count--;
    memmove(&x->elements[index], &x->elements[index + 1],
            (x->count - index) * sizeof(x->elements[0]));
}

/* locate_background.c: the loss of a healthy fabric, and how much of it comes in bursts. */
#include <math.h>
#include <string.h>

#include "core/fleet/locate_private.h"
#include "stats/sample.h"

#define BACKGROUND_NS    (2 * NS_PER_S) /* the interval of learning */
#define BACKGROUND_LEAST 1e-4
#define BACKGROUND_MOST  0.2
#define BACKGROUND_START 0.01
#define DISPERSION_MOST  32.0
#define BURST_TIMES      2   /* times with any loss: many elements see one event */
#define BURST_LOSSES     4.0 /* losses of an element before its bursts are judged */
#define OBSERVED_NS      (100 * NS_PER_S)

void locate_bursts_forget(struct locate *l, struct mono now)
{
    l->burst_from = l->burst_last = now.ns / BURST_NS;
    l->burst_times = 0;
    for (uint32_t i = 0; i < l->element_count; i++) {
        struct suspect *e = &l->suspects[i];
        e->burst_sum = e->burst_square = e->burst_slots = 0;
        e->burst_lost = 0;
    }
}

struct kind_loss {
    uint32_t count;
    double share;
};

static bool long_loss(const struct locate *l, const struct suspect *e, double *ret_sent,
                      double *ret_lost)
{
    *ret_sent = *ret_lost = 0;
    for (uint32_t k = 0; k < e->count; k++) {
        *ret_sent += l->paths[l->crossings[e->first + k]].long_sent;
        *ret_lost += l->paths[l->crossings[e->first + k]].long_lost;
    }
    return *ret_sent >= 100;
}

/* The loss of the elements of one kind. Elements of the worst quarter are left out if they lose more than the others by odds of
 * 10⁶, because a faulty element is one of many of its kind. An element that just had its first burst stays. All paths may cross
 * an element of another kind, so the least value over the kinds counts. Together, elements show a small share that a single one
 * can't show, because it lost nothing yet. */
static struct kind_loss usual_loss(struct locate *l, enum element_kind kind,
                                   enum finding_direction direction)
{
    uint32_t count = 0;
    double sent, lost, sent_all = 0, lost_all = 0;

    for (uint32_t i = 0; i < l->element_count; i++) {
        const struct suspect *e = &l->suspects[i];

        if (e->name.kind == kind && e->name.direction == direction &&
            long_loss(l, e, &sent, &lost)) {
            l->sort[count++] = lost / sent;
        }
    }
    if (count < 3) {
        return (struct kind_loss){0, 0};
    }
    sample_sort(l->sort, count);
    const double most = l->sort[(3 * count - 1) / 4];
    double usual = 1;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < l->element_count; i++) {
            const struct suspect *e = &l->suspects[i];

            if (e->name.kind == kind && e->name.direction == direction &&
                long_loss(l, e, &sent, &lost) && (pass == 1) == (lost > most * sent * (1 + 1e-9)) &&
                locate_gain(lost, sent, lost / sent, 2 * usual) <= LOCATE_LIMIT * l->dispersion) {
                sent_all += sent;
                lost_all += lost;
            }
        }
        usual = pass == 0 ? (lost_all + 0.5) / (sent_all + 0.5) : usual;
    }
    return (struct kind_loss){count, (lost_all + 0.5) / (sent_all + 0.5)};
}

/* Variance of losses in 0.8 s over their mean: 1 if they come one by one, also for a gray loss; 4 if always four come together. A
 * burst lasts for a while, so the excess over 1 grows with the number of paths through the element. The value is for one path, of
 * the median element of a kind; < 0: not known. */
static double bursts_of(struct locate *l, struct mono now, enum element_kind kind)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < l->element_count; i++) {
        struct suspect *e = &l->suspects[i];
        const double lost = e->burst_lost, sum = e->burst_sum + lost,
                     square = e->burst_square + lost * lost,
                     slots = e->burst_slots + (double)(now.ns / BURST_NS - e->burst_slot);

        if (!e->atom || e->name.kind != kind || e->observed == 0) {
            continue;
        }
        if (sum >= BURST_LOSSES) {
            /* the mean square over the mean is 1 + mean if losses are independent */
            l->sort[count++] = (square / sum - sum / slots - 1) / e->observed;
        }
        if (e->burst_sum > 1000) {
            e->burst_sum /= 2;
            e->burst_square /= 2;
            e->burst_slots /= 2;
        }
    }
    if (count < 3) {
        return -1;
    }
    sample_sort(l->sort, count);
    return fmax(0, l->sort[(count - 1) / 2]);
}

/* For the element with the most paths: all parts of one explanation are weighed by one measure. */
static double dispersion_of(struct locate *l, struct mono now)
{
    const double each = fmax(bursts_of(l, now, ELEMENT_NIC), bursts_of(l, now, ELEMENT_TRUNK));
    uint32_t most = 0;

    for (uint32_t i = 0; i < l->element_count; i++) {
        const struct suspect *e = &l->suspects[i];
        most = e->atom && e->observed > most ? e->observed : most;
    }
    return each < 0 || l->burst_times < BURST_TIMES ? l->dispersion
                                                    : fmin(DISPERSION_MOST, 1 + each * most);
}

/* True if an open fault disturbs learning, and the known values can be trusted. In the first seconds little is known: an unknown
 * case from that time would otherwise keep the background as it is. */
static bool is_disturbed(const struct locate *l, struct mono now)
{
    const bool young = mono_sub(now, l->told_first).ns < QUIETS * BACKGROUND_NS;

    for (uint32_t i = 0; i < l->case_count; i++) {
        if (!young || l->cases[i].state == LOCATE_NAMED) {
            return true;
        }
    }
    return false;
}

/* A quiet time is only recognised later: recent values are used if no case has opened since. */
static void learn_quiet(struct locate *l, struct mono now, double background)
{
    if (l->background_rounds > 0 && is_disturbed(l, now)) {
        for (uint32_t i = 0; i < QUIETS; i++) {
            l->quiets[i] = (struct quiet){l->background, l->dispersion};
        }
        locate_bursts_forget(l, now);
        return;
    }
    memmove(&l->quiets[0], &l->quiets[1], (QUIETS - 1) * sizeof(l->quiets[0]));
    l->quiets[QUIETS - 1] = (struct quiet){background, dispersion_of(l, now)};
    if (l->background_rounds++ < QUIETS) { /* nothing better is known yet */
        l->quiets[0] = l->quiets[QUIETS - 1];
    }
    /* a loss that a higher background explained may now be a fault, although nothing was lost since */
    l->lost_since = l->lost_since || l->quiets[0].background < l->background ||
                    l->quiets[0].dispersion < l->dispersion;
    l->background = l->quiets[0].background;
    l->dispersion = l->quiets[0].dispersion;
}

void locate_background_learn(struct locate *l, struct mono now)
{
    static const struct {
        uint8_t kind, direction;
    } kinds[] = {{ELEMENT_NIC, DIRECTION_OUT},
                 {ELEMENT_NIC, DIRECTION_IN},
                 {ELEMENT_TRUNK, DIRECTION_OUT},
                 {ELEMENT_SPINE, DIRECTION_BOTH}};
    double least = INFINITY;

    if (mono_sub(now, l->background_at).ns < BACKGROUND_NS ||
        mono_sub(now, l->told_first).ns < BACKGROUND_NS) {
        return;
    }
    l->background_at = now;
    for (uint32_t i = 0; i < ARRAY_COUNT(kinds) && l->config.background <= 0; i++) {
        const struct kind_loss loss = usual_loss(l, (enum element_kind)kinds[i].kind,
                                                 (enum finding_direction)kinds[i].direction);
        least = loss.count > 0 ? fmin(least, loss.share) : least;
    }
    least = isinf(least) ? BACKGROUND_START : least;
    if (l->config.background <= 0) {
        learn_quiet(l, now, fmin(BACKGROUND_MOST, fmax(BACKGROUND_LEAST, least)));
    }
    for (uint32_t path = 0; path < l->config.path_limit; path++) {
        const struct path *p = &l->paths[path];

        if (p->observed && mono_sub(now, p->seen).ns > OBSERVED_NS) {
            locate_observe(l, path, false);
        }
    }
}

/* bank.c: the member's filter: offset and rate of its own clock against the fleet. The clock's wander is unknown. So there is a
 * bank of Kalman filters, each for another wander, a factor of four apart. The map is their mean, weighted by how well each
 * predicted the measurements. Innovations are clipped, and the weights remember 20 s, so that a liar can't choose the filter. */
#include "core/clock/clock_private.h"

#include <math.h>

static const double usual[BANK_FILTERS] = {0.25, 1,  4,
                                           16,   64, 256}; /* ns/s per root second = ppb/sqrt s */

#define FORGET_S    20.0
#define CLIP_SQUARE 16.0
/* The least noise that a filter assumes for a measurement, in ns per ppb of its wander. A member compares its newest map with
 * neighbours' maps of 0.1 s ago, at stamps of 0.15 s ago. If all members speed up alike, each sees the others ahead, by 0.0084
 * s^2 of the acceleration, and speeds up more. Nothing else holds the fleet's common rate. This grows if beta, the gain from
 * error to rate per tick, is above 0.3. The least noise keeps beta below 0.1. */
#define LOOP_NOISE 0.11

void bank_init(struct bank *b, double known_wander)
{
    for (int k = 0; k < BANK_FILTERS; k++) {
        b->wander[k] = known_wander > 0 ? known_wander : usual[k];
    }
}

void bank_start(struct bank *b, double p00, double p11)
{
    for (int k = 0; k < BANK_FILTERS; k++) {
        b->x[k] = b->y[k] = 0;
        b->p00[k] = p00;
        b->p01[k] = 0;
        b->p11[k] = p11;
        b->log_weight[k] = 0;
    }
}

void bank_predict(struct bank *b, double t, bool learn)
{
    for (int k = 0; k < BANK_FILTERS; k++) {
        const double q2 = b->wander[k] * b->wander[k];
        b->x[k] += b->y[k] * t;
        b->p00[k] += t * (2 * b->p01[k] + t * b->p11[k]) + q2 * t * t * t / 3;
        b->p01[k] += t * b->p11[k] + q2 * t * t / 2;
        b->p11[k] += q2 * t;
        b->log_weight[k] *= learn ? exp(-t / FORGET_S) : 1;
    }
}

void bank_update(struct bank *b, double z, double r, double age, bool learn)
{
    for (int k = 0; k < BANK_FILTERS; k++) {
        /* x - y age was measured */
        const double innovation = z - (b->x[k] - b->y[k] * age);
        const double c0 = b->p00[k] - age * b->p01[k], c1 = b->p01[k] - age * b->p11[k];
        const double loop = LOOP_NOISE * b->wander[k];
        const double s = c0 - age * c1 + fmax(r, loop * loop);
        ASSERT(s > 0); /* a variance; this also keeps NaN out of the map */
        const double k0 = c0 / s, k1 = c1 / s;
        const double square = fmin(CLIP_SQUARE, innovation * innovation / s);
        b->log_weight[k] -= learn ? 0.5 * (square + log(s)) : 0;
        b->x[k] += k0 * innovation;
        b->y[k] += k1 * innovation;
        b->p11[k] -= k1 * c1;
        b->p01[k] -= k0 * c1;
        b->p00[k] -= k0 * c0;
    }
}

static void weights(const struct bank *b, double w[BANK_FILTERS])
{
    double top = b->log_weight[0], sum = 0;

    for (int k = 1; k < BANK_FILTERS; k++) {
        top = fmax(top, b->log_weight[k]);
    }
    for (int k = 0; k < BANK_FILTERS; k++) {
        w[k] = exp(b->log_weight[k] - top);
        sum += w[k];
    }
    ASSERT(sum >= 1); /* the best filter's weight is 1: the published value is a mean, not a NaN */
    for (int k = 0; k < BANK_FILTERS; k++) {
        w[k] /= sum;
    }
}

void bank_mean(const struct bank *b, double *ret_x, double *ret_y)
{
    double w[BANK_FILTERS], x = 0, y = 0;

    weights(b, w);
    for (int k = 0; k < BANK_FILTERS; k++) {
        x += w[k] * b->x[k];
        y += w[k] * b->y[k];
    }
    *ret_x = x;
    *ret_y = y;
}

void bank_shift(struct bank *b, double dx, double dy)
{
    for (int k = 0; k < BANK_FILTERS; k++) {
        b->x[k] -= dx;
        b->y[k] -= dy;
    }
}

void bank_variance(const struct bank *b, double *ret_p00, double *ret_p01, double *ret_p11,
                   double *ret_q2)
{
    double w[BANK_FILTERS];
    int heavy = 0;

    weights(b, w);
    for (int k = 0; k < BANK_FILTERS; k++) {
        if (w[k] > 0.05) {
            heavy = k;
        }
    }
    *ret_p00 = b->p00[heavy];
    *ret_p01 = b->p01[heavy];
    *ret_p11 = b->p11[heavy];
    *ret_q2 = b->wander[heavy] * b->wander[heavy];
}

double bank_deviation_ns(const struct bank *b)
{
    double p00, p01, p11, q2;

    bank_variance(b, &p00, &p01, &p11, &q2);
    return sqrt(p00);
}

double bank_wander(const struct bank *b)
{
    double w[BANK_FILTERS], sum = 0;

    weights(b, w);
    for (int k = 0; k < BANK_FILTERS; k++) {
        sum += w[k] * log(b->wander[k]);
    }
    return exp(sum);
}

void bank_doubt(struct bank *b, double p00, double p11)
{
    for (int k = 0; k < BANK_FILTERS; k++) {
        b->p00[k] += p00;
        b->p11[k] += p11;
    }
}

void bank_doubt_rate(struct bank *b, double p11)
{
    for (int k = 0; k < BANK_FILTERS; k++) {
        b->p11[k] = fmax(b->p11[k], p11);
    }
}

void bank_forget(struct bank *b)
{
    for (int k = 0; k < BANK_FILTERS; k++) {
        b->log_weight[k] *= 0.5;
    }
}

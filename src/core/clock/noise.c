/* noise.c: a forgetting histogram of innovations, and the score function that is derived from it. */
#include "core/clock/noise.h"

#include <math.h>
#include <string.h>

#include "base/bug.h"

#define GAP_SHARE 0.08
#define GAP_SPREADS                                                                                \
    8.0 /* the spread is less than so many gaps, because the packets of a pair are alike */
#define GUESS_MAX       3.0
#define ROUND_LOW       0.02
#define ROUND_HIGH      0.12
#define ROUND_SPREADS   3.5 /* for a Gaussian: 2.2 sigma */
#define ROUND_STEP      0.05
#define PRIOR_PACKETS   400.0
#define BINS_PER_SPREAD 10.0
#define SMOOTH          3 /* bins on either side in the local fits of ln f */

static double prior_density(const struct noise *noise, int bin, double sigma_bins)
{
    const double z = ((double)bin - NOISE_ZERO) / sigma_bins;

    if (z < 0 || !noise->one_sided) {
        return exp(-z * z / 2) + (z > 0 ? 0.02 : 1e-4);
    }
    return (1 + z) * exp(-z) + 0.01;
}

static void learn_score(struct noise *noise);

static void fill_prior(struct noise *noise)
{
    const double sigma_bins = BINS_PER_SPREAD / 1.645;
    double sum = 0;

    for (int i = 0; i < NOISE_BINS; i++) {
        noise->count[i] = prior_density(noise, i, sigma_bins);
        sum += noise->count[i];
    }
    for (int i = 0; i < NOISE_BINS; i++) {
        noise->count[i] *= PRIOR_PACKETS / sum;
    }
    noise->total = PRIOR_PACKETS;
}

static double bin_most(const struct noise *noise)
{
    const double round = noise->round_high_ns - noise->round_low_ns;

    return fmax(fmax(GUESS_MAX * noise->guess_ns * 1.645, GAP_SPREADS * noise->gap_ns),
                ROUND_SPREADS * round) /
           BINS_PER_SPREAD;
}

void noise_reshape(struct noise *noise, double sigma_ns)
{
    noise->bin_ns = fmin(bin_most(noise), fmax(0.2, sigma_ns * 1.645 / BINS_PER_SPREAD));
    fill_prior(noise);
    learn_score(noise);
}

void noise_found(struct noise *noise, double sigma_ns)
{
    const double spread = 1.645 * sigma_ns / ROUND_SPREADS;

    if (noise->round_high_ns - noise->round_low_ns < spread) {
        noise->round_low_ns = noise->round_high_ns - spread;
    }
    noise_reshape(noise, sigma_ns);
}

void noise_init(struct noise *noise, double sigma_ns, bool one_sided)
{
    memset(noise, 0, sizeof(*noise));
    noise->one_sided = one_sided;
    noise->guess_ns = sigma_ns;
    noise->gap_ns = sigma_ns / 3;
    noise_reshape(noise, sigma_ns);
}

static int bin_of(const struct noise *noise, double innovation_ns)
{
    const double bin = floor(innovation_ns / noise->bin_ns + 0.5) + NOISE_ZERO;

    return bin < 0 ? 0 : bin >= NOISE_BINS ? NOISE_BINS - 1 : (int)bin;
}

/* A quantile by small steps: a twelfth of a step up, or the rest of it down. */
void noise_add_gap(struct noise *noise, double held_ns)
{
    const double step = 0.05 * (noise->gap_ns + 0.1);

    noise->gap_ns += fabs(held_ns) > noise->gap_ns ? step * GAP_SHARE : -step * (1 - GAP_SHARE);
    noise->gap_ns = fmax(0, noise->gap_ns);
}

/* Two low quantiles, which queues affect last. Their distance is the spread of the fastest packets, without errors of time. */
void noise_add_round(struct noise *noise, double half_ns)
{
    const double step =
        ROUND_STEP * (fabs(noise->round_high_ns - noise->round_low_ns) + noise->guess_ns / 30);

    noise->round_low_ns +=
        half_ns > noise->round_low_ns ? step * ROUND_LOW : -step * (1 - ROUND_LOW);
    noise->round_high_ns +=
        half_ns > noise->round_high_ns ? step * ROUND_HIGH : -step * (1 - ROUND_HIGH);
}

void noise_add(struct noise *noise, double innovation_ns)
{
    noise->count[bin_of(noise, innovation_ns)] += 1;
    noise->total += 1;
}

double noise_low_ns(const struct noise *noise)
{
    return -NOISE_ZERO * noise->bin_ns;
}

double noise_high_ns(const struct noise *noise)
{
    return (NOISE_BINS - NOISE_ZERO - 1) * noise->bin_ns;
}

double noise_sigma_ns(const struct noise *noise)
{
    ASSERT(noise->info > 0); /* gates and bounds are multiples of this */
    return 1 / sqrt(noise->info);
}

double noise_score(const struct noise *noise, double innovation_ns)
{
    const double at = innovation_ns / noise->bin_ns + NOISE_ZERO;

    if (at <= 0) {
        return noise->score[0];
    }
    if (at >= NOISE_BINS - 1) {
        return noise->score[NOISE_BINS - 1];
    }
    const int i = (int)at;
    const double part = at - i;
    return noise->score[i] * (1 - part) + noise->score[i + 1] * part;
}

/* The bin with the most packets around it. The first and the last bin hold all packets beyond, so they are no peak. With the mode
 * next to the first bin, the spread would always be a few bins, and bins would halve each second without end. */
static int find_mode(const double *count)
{
    double best = -1;
    int mode = NOISE_ZERO;

    for (int i = 4; i < NOISE_BINS - 4; i++) {
        const double sum = count[i - 3] + 2 * count[i - 2] + 3 * count[i - 1] + 4 * count[i] +
                           3 * count[i + 1] + 2 * count[i + 2] + count[i + 3];
        if (sum > best) {
            best = sum;
            mode = i;
        }
    }
    return mode;
}

/* The distance from the mode down to where a tenth of the packets below it remain, in bins; 1.645 sigma for a Gaussian. */
static double lower_spread(const double *count, int mode)
{
    double below = 0, cumulative = 0;

    for (int i = 0; i < mode; i++) {
        below += count[i];
    }
    below += count[mode] / 2;
    for (int i = 0; i <= mode; i++) {
        if (cumulative + count[i] >= 0.1 * below) {
            const double part = count[i] > 0 ? (0.1 * below - cumulative) / count[i] : 0;
            return mode - (i - 0.5 + part);
        }
        cumulative += count[i];
    }
    return 1;
}

/* Converts the histogram to bins `ratio` times as wide. */
static void rebin(struct noise *noise, double ratio)
{
    double old[NOISE_BINS];

    memcpy(old, noise->count, sizeof(old));
    memset(noise->count, 0, sizeof(noise->count));
    for (int i = 0; i < NOISE_BINS; i++) {
        enum { PARTS = 16 };
        for (int part = 0; part < PARTS; part++) {
            const double position = (i - NOISE_ZERO + (part + 0.5) / PARTS - 0.5) / ratio;
            const double bin = floor(position + 0.5) + NOISE_ZERO;
            const int to = bin < 0 ? 0 : bin >= NOISE_BINS ? NOISE_BINS - 1 : (int)bin;
            noise->count[to] += old[i] / PARTS;
        }
    }
    noise->bin_ns *= ratio;
}

/* psi at each distance from the mode: a straight line is fitted to ln f around each bin. Then psi is shifted so that it is zero
 * at the mode, even if the histogram's mode is elsewhere; otherwise delay and density would drift away together. */
static void learn_score(struct noise *noise)
{
    double log_density[NOISE_BINS], raw[NOISE_BINS];
    const int mode = find_mode(noise->count);
    const double floor_count = fmax(1e-3, noise->total * 2e-5);

    for (int i = 0; i < NOISE_BINS; i++) {
        /* the first and last bin hold all packets beyond */
        const int j = i == 0 ? 1 : i == NOISE_BINS - 1 ? NOISE_BINS - 2 : i;
        log_density[i] = log(noise->count[j] + floor_count);
    }
    for (int i = 0; i < NOISE_BINS; i++) {
        double sum_w = 0, sum_t = 0, sum_tt = 0, sum_d = 0, sum_td = 0;
        for (int k = -SMOOTH; k <= SMOOTH; k++) {
            const int j = i + k;
            if (j < 0 || j >= NOISE_BINS) {
                continue;
            }
            const double w =
                noise->count[j] + floor_count; /* ln of small counts is noisy: weight by packets */
            sum_w += w;
            sum_t += w * k;
            sum_tt += w * k * k;
            sum_d += w * log_density[j];
            sum_td += w * k * log_density[j];
        }
        const double spread = sum_tt - sum_t * sum_t / sum_w;
        raw[i] = spread > 1e-9 ? -(sum_td - sum_t * sum_d / sum_w) / spread / noise->bin_ns : 0;
    }
    double sum_info = 0, sum_count = 0;
    noise->mode = mode;
    for (int i = 0; i < NOISE_BINS; i++) {
        const int from = i + mode - NOISE_ZERO;
        double psi = raw[from < 0 ? 0 : from >= NOISE_BINS ? NOISE_BINS - 1 : from];
        psi = i < NOISE_ZERO ? fmin(psi, 0) : i > NOISE_ZERO ? fmax(psi, 0) : 0;
        noise->score[i] = psi;
        if (from > 0 && from < NOISE_BINS - 1) {
            sum_info += noise->count[from] * psi * psi;
            sum_count += noise->count[from];
        }
    }
    for (int i = NOISE_ZERO - 1; i >= 0;
         i--) { /* too early: at least as wrong as a little less early */
        noise->score[i] = fmin(noise->score[i], noise->score[i + 1]);
    }
    noise->info = fmax(sum_info / fmax(1, sum_count), 1e-12);
}

void noise_locate(const struct noise *noise, double innovation_ns, double variance,
                  double *ret_mean, double *ret_variance)
{
    const double least = fmax(1e-3, noise->total * 2e-5), s = sqrt(variance);
    double sum = 0, mean = 0, square = 0;

    for (int i = 1; i < NOISE_BINS - 1; i++) {
        const double by = innovation_ns - (i - noise->mode) * noise->bin_ns;
        const double w = (noise->count[i] + least) * exp(-by * by / (2 * variance));
        sum += w;
        mean += w * by;
        square += w * by * by;
    }
    /* packets that waited longer than the bins reach: as dense as the end of the bins */
    const double end = (noise->count[NOISE_BINS - 2] + noise->count[NOISE_BINS - 3] +
                        noise->count[NOISE_BINS - 4]) /
                           3 +
                       least;
    const double z = (innovation_ns - (NOISE_BINS - 1.5 - noise->mode) * noise->bin_ns) / s;
    const double density = exp(-z * z / 2), mass = sqrt(M_PI / 2) * erfc(-z / sqrt(2));
    const double bins = end * s / noise->bin_ns;
    sum += bins * mass;
    mean -= bins * density * s;
    square += bins * (mass - z * density) * variance;
    if (!(sum > 0)) { /* further away than any packet */
        *ret_mean = 0;
        *ret_variance = variance;
        return;
    }
    *ret_mean = mean / sum;
    *ret_variance = fmax(noise->bin_ns * noise->bin_ns / 12, square / sum - *ret_mean * *ret_mean);
}

void noise_refresh(struct noise *noise, double keep)
{
    const int mode = find_mode(noise->count);
    const double spread = fmax(0.5, lower_spread(noise->count, mode));
    const double ratio =
        fmin(bin_most(noise) / noise->bin_ns, fmin(2, fmax(0.5, spread / BINS_PER_SPREAD)));

    if (ratio > 1.4 || ratio < 0.7) {
        rebin(noise, ratio);
    }
    learn_score(noise);
    noise->total = 0;
    for (int i = 0; i < NOISE_BINS; i++) {
        noise->count[i] *= keep;
        noise->total += noise->count[i];
    }
}

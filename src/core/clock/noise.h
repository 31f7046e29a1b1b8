/* noise.h: what the noise of one packet looks like, learned; and how much one packet says about
 * time.
 *
 * Hardware stamps scatter about symmetrically, software stamps are late but never early, queued
 * packets have a long tail. Instead of a rule for each, the density f of the innovation (queueing
 * positive, its mode at zero) is learned as a histogram of all packets that a member's good edges
 * bring, and a packet counts with its score psi = -(ln f)', which is the derivative of its
 * log-likelihood by location. sum(psi) / (n I), I = E psi^2, is one step of the maximum-likelihood
 * estimate: a mean for a Gaussian, a sharp lower edge for one-sided jitter, and nearly nothing for
 * a queued packet, because the tail is flat.
 *
 * One density serves both directions, so whatever is wrong with it cancels from theta = (forward -
 * backward)/2. Units: ns, 1/ns, 1/ns^2. Cost: 1.6 KiB, O(1) a packet, 100 bins a refresh. */
#pragma once
#include <stdbool.h>

#define NOISE_BINS 96
#define NOISE_ZERO 32 /* the mode's bin: 32 bins below it, 64 above */

struct noise {
    bool one_sided;
    double bin_ns;
    double gap_ns;   /* a twelfth of the pairs differ by less between their two packets */
    double guess_ns; /* with it, bounds what may pass for noise: errors of time must not */
    double round_low_ns, round_high_ns; /* quantiles of half round trips against the paths' */
    double count[NOISE_BINS];
    double score[NOISE_BINS]; /* psi at the middle of a bin, 1/ns */
    double info;              /* E psi^2 over all packets in reach, 1/ns^2 */
    int mode;                 /* the bin of most packets: an innovation of zero */
    double total;             /* packets in the histogram, after forgetting */
};

/* sigma_ns: first guess of one packet's standard deviation (both stamps'). */
void noise_init(struct noise *noise, double sigma_ns, bool one_sided);
/* The shape anew, for packets of about that standard deviation; what gaps have taught stays. */
void noise_reshape(struct noise *noise, double sigma_ns);
/* The shape anew and so wide a one may pass for noise: the scatter is of raw stamps about a line of their own, in which no
 * error of time shows. */
void noise_found(struct noise *noise, double sigma_ns);
/* How much longer one packet of a pair was held up than the other: tells of noise without knowing
 * the time. */
/* Half of what a packet there and a packet back took, against the path's: an error of time isn't in it. */
void noise_add_round(struct noise *noise, double half_ns);
void noise_add_gap(struct noise *noise, double held_ns);
void noise_add(struct noise *noise, double innovation_ns);
double noise_score(const struct noise *noise, double innovation_ns);
/* Where an innovation is centred is known to a variance only: what one packet makes of that. Early it must be further down; late
 * it may be further up, or the packet waited, whichever the density finds likelier. Mean by which the packet moves it, and the
 * variance that is left, which isn't always less. */
void noise_locate(const struct noise *noise, double innovation_ns, double variance,
                  double *ret_mean, double *ret_variance);
/* Learn the new shape, keep that share of the old packets: once a second, 0.92 makes about 12 s of
 * memory. */
void noise_refresh(struct noise *noise, double keep);
/* An innovation beyond these says nothing: below, the packet was impossibly fast; above, it was
 * queued. */
double noise_low_ns(const struct noise *noise);
double noise_high_ns(const struct noise *noise);
/* 1 / sqrt(info): as if Gaussian. */
double noise_sigma_ns(const struct noise *noise);

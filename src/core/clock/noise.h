/* noise.h: the learned noise of one packet, and how much one packet shows about time.
 *
 * Hardware stamps scatter about symmetrically. Software stamps are late, but never early. Queued packets have a long tail.
 * Instead of a rule for each, the density f of the innovation (positive for queueing, its mode at zero) is learned, as a
 * histogram of all packets of a member's good edges. A packet counts with its score psi = -(ln f)', which is the derivative of
 * its log-likelihood by location. sum(psi) / (n I), I = E psi^2, is one step of the maximum-likelihood estimate. It is a mean for
 * a Gaussian, a sharp lower edge for one-sided jitter, and nearly nothing for a queued packet, because the tail is flat.
 *
 * One density serves both directions, so its errors cancel in theta = (forward - backward)/2. Units: ns, 1/ns, 1/ns^2. Cost: 1.6
 * KiB, O(1) a packet, 100 bins for a refresh. */
#pragma once
#include <stdbool.h>

#define NOISE_BINS 96
#define NOISE_ZERO 32 /* the mode's bin: 32 bins below it, 64 above */

struct noise {
    bool one_sided;
    double bin_ns;
    double gap_ns; /* in a twelfth of the pairs, the two packets differ by less */
    /* together with gap_ns it limits what counts as noise: errors of time must not */
    double guess_ns;
    /* quantiles of half round trips, relative to the paths' delays */
    double round_low_ns, round_high_ns;
    double count[NOISE_BINS];
    double score[NOISE_BINS]; /* psi at the middle of a bin, 1/ns */
    double info;              /* E psi^2 over all packets in range, 1/ns^2 */
    int mode;                 /* the fullest bin: an innovation of zero */
    double total;             /* packets in the histogram, after forgetting */
};

/* sigma_ns: the first guess of one packet's standard deviation (stamps of both ends). */
void noise_init(struct noise *noise, double sigma_ns, bool one_sided);
/* Starts the shape anew, for packets of about that standard deviation; the knowledge from gaps stays. */
void noise_reshape(struct noise *noise, double sigma_ns);
/* Starts the shape anew, and allows noise of that width: the scatter is that of raw stamps about a line of their own, so it
 * contains no error of time. */
void noise_found(struct noise *noise, double sigma_ns);
/* How much longer one packet of a pair was delayed than the other. It shows noise without knowing the time. */
/* Half of a round trip, relative to the path's: it contains no error of time. */
void noise_add_round(struct noise *noise, double half_ns);
void noise_add_gap(struct noise *noise, double held_ns);
void noise_add(struct noise *noise, double innovation_ns);
double noise_score(const struct noise *noise, double innovation_ns);
/* The centre of innovations is known only to a variance. What one packet shows about the centre: an early packet means that it is
 * further down. For a late packet it is further up, or the packet waited, whichever the density finds likelier. Returns the mean
 * shift by the packet, and the remaining variance, which isn't always smaller. */
void noise_locate(const struct noise *noise, double innovation_ns, double variance,
                  double *ret_mean, double *ret_variance);
/* Learns the new shape, and keeps that share of the old packets. Called once a second, 0.92 gives a memory of about 12 s. */
void noise_refresh(struct noise *noise, double keep);
/* An innovation beyond these shows nothing: below, the packet was impossibly fast; above, it was queued. */
double noise_low_ns(const struct noise *noise);
double noise_high_ns(const struct noise *noise);
/* 1 / sqrt(info): the sigma of a Gaussian with the same information. */
double noise_sigma_ns(const struct noise *noise);

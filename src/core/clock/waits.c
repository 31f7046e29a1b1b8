/* waits.c: an edge on which all probes wait, all about equally long: at ports that are full of others' frames but send probes
 * first, each probe waits for the rest of a frame. Nearly none is in time, and those that seem to be have waited a little, so
 * they leave theta open within such a wait. But waits for one frame scatter little, and equally in both directions: their mean
 * shows theta. Packets of the jobs' class wait in another queue, a thousand times as long. Only that distinguishes them, because
 * a receiver doesn't see a packet's class. */
#include "core/clock/clock_private.h"

#include <math.h>

/* two quantiles of all packets; up to a third of the packets may belong to jobs */
#define LOW     0.1
#define HIGH    0.4
#define STEP    0.1
#define STEP_NS 1.0
#define SPREADS 3.0 /* about so many sigma of waits for one frame */
#define GAIN    0.04
#define SLOW    0.005 /* about 400 packets of a direction give its variance to a twentieth */
/* for three ports against one it is 0.5; with equal ports the directions scatter by 0.25 */
#define UNEQUAL     0.3
#define LATE_MOST   0.5
#define MEAN_SIGMAS 4.5

bool waits_add(struct clock_edge *e, double innovation_ns, bool forward, bool late)
{
    const double spread = fabs(e->wait_high_ns - e->wait_low_ns), step = STEP * (spread + STEP_NS);

    e->wait_low_ns += innovation_ns > e->wait_low_ns ? step * LOW : -step * (1 - LOW);
    e->wait_high_ns += innovation_ns > e->wait_high_ns ? step * HIGH : -step * (1 - HIGH);
    if (fabs(innovation_ns - (e->wait_low_ns + e->wait_high_ns) / 2) >
        SPREADS * (spread + STEP_NS)) {
        return false;
    }
    const double off = innovation_ns - e->wait_ns[forward];
    e->wait_late += GAIN * (late - e->wait_late);
    e->wait_ns[forward] += GAIN * off;
    e->wait_var += GAIN * (off * off - e->wait_var);
    e->wait_slow_var[forward] += SLOW * (off * off - e->wait_slow_var[forward]);
    return true;
}

/* The waits begin at zero: behind n frames the mean is sqrt(3 n) sigma, 3 at three ports, 3.9 at five. A queue that stays full
 * scatters no more, but waits for any time, in one direction only. A clock that is off, or lies, makes one direction early. */
static bool begin_at_nothing(const struct clock_edge *e)
{
    const double least = sqrt(e->wait_var), most = MEAN_SIGMAS * least;

    return fmin(e->wait_ns[0], e->wait_ns[1]) > least && fmax(e->wait_ns[0], e->wait_ns[1]) < most;
}

/* If three ports are full in one direction and one in the other, theta by the mean is wrong by one frame's wait, half of the
 * difference. No offset shows that, because theta moves to where both means are equal. But variances grow with the number of
 * frames, too. */
static bool as_many_frames(const struct clock_edge *e)
{
    const double back = e->wait_slow_var[0], there = e->wait_slow_var[1];

    return fabs(there - back) < UNEQUAL * (there + back);
}

/* Most packets wait, and no more of them are in gate than evenly spread waits would put there: none of those is known to be in
 * time. Long queues that empty at times are different: then packets in gate are in time, and show far more. */
bool waits_alike(const struct clock *c, const struct clock_edge *e)
{
    const double gate = noise_high_ns(&c->noise) - noise_low_ns(&c->noise);
    const double in_gate = fmax(GAIN, 1 - e->wait_late); /* few packets show no smaller share */

    return e->wait_late > LATE_MOST && e->wait_var > 1 && begin_at_nothing(e) &&
           as_many_frames(e) && in_gate * sqrt(12 * e->wait_var) < gate;
}

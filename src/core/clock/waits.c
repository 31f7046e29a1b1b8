/* waits.c: an edge all of whose probes wait, and all about alike: at ports that are full of others' frames and send probes first.
 * Each waits for the rest of a frame. Hardly one is in time, and those that seem to be have waited a little, so by them theta
 * would be anywhere within such a wait. But waits of one frame scatter little, and both ways alike: their mean tells. Packets of
 * the jobs' class wait in another queue, for a thousand times as long; they are told by that alone, for who receives a packet
 * doesn't know its class. */
#include "core/clock/clock_private.h"

#include <math.h>

#define LOW         0.1 /* two quantiles of all packets; a third of them may be the jobs' */
#define HIGH        0.4
#define STEP        0.1
#define STEP_NS     1.0
#define SPREADS     3.0 /* about as many sigma of waits for one frame */
#define GAIN        0.04
#define SLOW        0.005 /* some 400 packets of a direction tell its variance to a twentieth */
#define UNEQUAL     0.3   /* of three ports and one 0.5; as many each way scatter to 0.25 */
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

/* They begin at nothing: behind n frames the mean is sqrt(3 n) sigma, 3 at three ports, 3.9 at five. A queue that stays full
 * scatters no more, but waits as long as it likes, in one direction only. A clock that is off, or lies, makes one
 * direction early. */
static bool begin_at_nothing(const struct clock_edge *e)
{
    const double least = sqrt(e->wait_var), most = MEAN_SIGMAS * least;

    return fmin(e->wait_ns[0], e->wait_ns[1]) > least && fmax(e->wait_ns[0], e->wait_ns[1]) < most;
}

/* Where three ports are full there, and one back, theta by the mean is off by one frame's wait, the half of the difference. No
 * offset shows that, for theta goes to where the means are the same. But variances go with the number of frames, too. */
static bool as_many_frames(const struct clock_edge *e)
{
    const double back = e->wait_slow_var[0], there = e->wait_slow_var[1];

    return fabs(there - back) < UNEQUAL * (there + back);
}

/* Most wait, and no more of them are in gate than would be if waits were spread evenly: none of those is known to be in time.
 * Long queues that empty at times are another thing: then what is in gate is in time, and tells far more. */
bool waits_alike(const struct clock *c, const struct clock_edge *e)
{
    const double gate = noise_high_ns(&c->noise) - noise_low_ns(&c->noise);
    const double in_gate = fmax(GAIN, 1 - e->wait_late); /* few packets tell of no smaller share */

    return e->wait_late > LATE_MOST && e->wait_var > 1 && begin_at_nothing(e) &&
           as_many_frames(e) && in_gate * sqrt(12 * e->wait_var) < gate;
}

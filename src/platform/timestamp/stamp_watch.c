/* stamp_watch.c: compares promised stamps with those that came. */
#include "platform/timestamp/stamp_watch.h"

#define WINDOW_NS   (10 * NS_PER_S)
#define PACKETS_MIN 100 /* with fewer packets there is no verdict */
#define BAD_WINDOWS 3
#define SLACK_NS    NS_PER_MS
/* of the time since the clock was read: no two clocks' rates differ by more */
#define SLACK_PPM 1000

void stamp_watch_packet(struct stamp_watch *w, enum stamp_way way, enum stamp_seen seen)
{
    w->packets[way]++;
    w->missing[way] += seen != STAMP_GIVEN;
    w->wrong_now += seen == STAMP_WRONG;
}

void stamp_watch_clock(struct stamp_watch *w, struct mono before, struct nic_time nic,
                       struct mono after)
{
    w->half_ns = mono_sub(after, before).ns / 2;
    w->at = mono_add(before, span_ns(w->half_ns));
    w->nic = nic;
    w->read = true;
}

bool stamp_watch_plausible(const struct stamp_watch *w, struct mono now, int64_t age_ns,
                           struct nic_time stamp)
{
    const int64_t since = mono_sub(now, w->at).ns;
    /* ahead of what the clock shows now */
    const int64_t ahead = nic_time_sub(stamp, w->nic).ns - since;
    const int64_t slack =
        w->half_ns + SLACK_NS + (since < 0 ? -since : since) / (1000000 / SLACK_PPM);

    return !w->read || (ahead <= slack && ahead >= -age_ns - slack);
}

enum stamp_verdict stamp_watch_judge(struct stamp_watch *w, struct mono now)
{
    bool bad = false, seen = false;

    if (w->since.ns == 0 || now.ns < w->since.ns) {
        w->since = now;
        return STAMP_FINE;
    }
    if (mono_sub(now, w->since).ns < WINDOW_NS) {
        return STAMP_FINE;
    }
    for (int way = 0; way < 2; way++) {
        seen = seen || w->packets[way] >= PACKETS_MIN;
        bad = bad || (w->packets[way] >= PACKETS_MIN && 2 * w->missing[way] > w->packets[way]);
        w->packets[way] = w->missing[way] = 0;
    }
    w->since = now;
    w->wrong = w->wrong_now;
    w->wrong_now = 0;
    w->bad = bad ? w->bad + 1 : seen ? 0 : w->bad;
    return !bad                    ? STAMP_FINE
           : w->bad == 1           ? STAMP_SET_AGAIN
           : w->bad >= BAD_WINDOWS ? STAMP_GIVE_UP
                                   : STAMP_FINE;
}

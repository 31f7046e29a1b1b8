/* stamp_watch.c: stamps that were promised, and those that came. */
#include "platform/timestamp/stamp_watch.h"

#define WINDOW_NS   (10 * NS_PER_S)
#define PACKETS_MIN 100 /* fewer say nothing */
#define BAD_WINDOWS 3

void stamp_watch_packet(struct stamp_watch *w, enum stamp_way way, bool stamped)
{
    w->packets[way]++;
    w->missing[way] += !stamped;
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
    w->bad = bad ? w->bad + 1 : seen ? 0 : w->bad;
    return !bad                    ? STAMP_FINE
           : w->bad == 1           ? STAMP_SET_AGAIN
           : w->bad >= BAD_WINDOWS ? STAMP_GIVE_UP
                                   : STAMP_FINE;
}

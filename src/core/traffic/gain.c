/* gain.c: see gain.h. */
#include "core/traffic/gain.h"

#define MARK_NS (250 * NS_PER_MS)
#define WITH_NS                                                                                    \
    (250 *                                                                                         \
     NS_PER_MS) /* a ring's messages wait for each other: over less, rates differ by a fifth by chance */
#define MORE (7.0 / 6)

void gain_init(struct gain *t, struct mono now)
{
    *t = (struct gain){.marks = {{.at = now}, {.at = now}}, .begun = MONO_NEVER};
}

void gain_on_acked(struct gain *t, struct mono now, uint64_t bytes)
{
    if (mono_sub(now, t->marks[1].at).ns >= MARK_NS) {
        t->marks[0] = t->marks[1];
        t->marks[1].at = now;
        t->marks[1].bytes = t->bytes;
    }
    t->bytes += bytes;
}

void gain_begin(struct gain *t, struct mono now)
{
    const int64_t ns = mono_sub(now, t->marks[0].at).ns;

    t->before = ns >= MARK_NS ? (double)(t->bytes - t->marks[0].bytes) / (double)ns : 0;
    t->begun = MONO_NEVER;
}

int gain_seen(struct gain *t, struct mono now)
{
    if (t->begun.ns == INT64_MAX) {
        t->begun = now;
        t->had_bytes = t->bytes;
    }
    const int64_t ns = mono_sub(now, t->begun).ns;
    if (t->before <= 0 || ns < WITH_NS) {
        return t->before <= 0 ? 0 : -1;
    }
    return (double)(t->bytes - t->had_bytes) > MORE * t->before * (double)ns;
}

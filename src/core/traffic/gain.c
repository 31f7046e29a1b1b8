/* gain.c: see gain.h. */
#include "core/traffic/gain.h"

/* A ring's messages wait for each other: over shorter times its rates differ by a fifth by chance. */
#define MARK_NS (250 * NS_PER_MS)
#define WITH_NS (250 * NS_PER_MS)
#define MORE    (7.0 / 6)

void gain_init(struct gain *g, struct mono now)
{
    *g = (struct gain){.marks = {{.at = now}, {.at = now}}, .begun = MONO_NEVER};
}

void gain_on_acked(struct gain *g, struct mono now, uint64_t bytes)
{
    if (mono_sub(now, g->marks[1].at).ns >= MARK_NS) {
        g->marks[0] = g->marks[1];
        g->marks[1].at = now;
        g->marks[1].bytes = g->bytes;
    }
    g->bytes += bytes;
}

void gain_begin(struct gain *g, struct mono now)
{
    const int64_t ns = mono_sub(now, g->marks[0].at).ns;

    g->before = ns >= MARK_NS ? (double)(g->bytes - g->marks[0].bytes) / (double)ns : 0;
    g->begun = MONO_NEVER;
}

int gain_seen(struct gain *g, struct mono now)
{
    if (g->begun.ns == INT64_MAX) {
        g->begun = now;
        g->had_bytes = g->bytes;
    }
    const int64_t ns = mono_sub(now, g->begun).ns;
    if (g->before <= 0 || ns < WITH_NS) {
        return g->before <= 0 ? 0 : -1;
    }
    return (double)(g->bytes - g->had_bytes) > MORE * g->before * (double)ns;
}

/* farewell.c: the paragraph at a job's end. */
#include "plugin/farewell.h"

#include <stdarg.h>
#include <stdio.h>

struct text {
    char *bytes;
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(text->bytes + text->used, FAREWELL_SIZE - text->used, format, arguments);
    va_end(arguments);
    text->used += n > 0 ? (size_t)n : 0;
    text->used = text->used < FAREWELL_SIZE ? text->used : FAREWELL_SIZE - 1;
}

static void add_time(struct text *text, int64_t ns)
{
    const double s = (double)ns / 1e9;

    if (s < 120) {
        add(text, "%.*f s", s < 10 ? 2 : 0, s);
    } else if (s < 7200) {
        add(text, "%.0f min", s / 60);
    } else {
        add(text, "%.1f h", s / 3600);
    }
}

static void add_faults(struct text *text, const struct transport_summary *sum)
{
    if (sum->resent > 0) {
        add(text, "; %.2g %% of the chunks went twice",
            100.0 * (double)sum->resent / (double)sum->chunks_out);
    }
    if (sum->failovers == 0) {
        add(text, "; no lane failed");
        return;
    }
    add(text, "; survived: %u %s of a lane, whose traffic went on over others", sum->failovers,
        sum->failovers == 1 ? "failure" : "failures");
    if (sum->saved_ns > 0) {
        add(text, " (NCCL's own transports would have ended the job at the first of them; saved "
                  "since then: ");
        add_time(text, sum->saved_ns);
        add(text, ")");
    }
}

static void add_waits(struct text *text, const struct transport_summary *sum,
                      const struct profiler_sums *waits)
{
    static const char *const whom[PROFILER_WAIT_COUNT] = {"the GPU", "peers", "the network"};
    uint64_t all = 0;

    for (int i = 0; i < PROFILER_WAIT_COUNT; i++) {
        all += waits->wait_ns[i];
    }
    if (all == 0 || sum->ran_ns <= 0) {
        return;
    }
    add(text, "; NCCL's proxies waited for");
    for (int i = 0; i < PROFILER_WAIT_COUNT; i++) {
        add(text, "%s %s %.0f %%", i > 0 ? "," : "", whom[i],
            100.0 * (double)waits->wait_ns[i] / (double)all);
    }
    add(text, " of their waiting");
}

void farewell_write(const struct transport_summary *sum, const struct profiler_sums *waits,
                    char text[static FAREWELL_SIZE])
{
    struct text t = {.bytes = text};

    text[0] = 0;
    add(&t, "after ");
    add_time(&t, sum->ran_ns);
    add(&t, ": %.3f GB sent, %.3f GB received", (double)sum->bytes_out / 1e9,
        (double)sum->bytes_in / 1e9);
    add_faults(&t, sum);
    if (sum->parted > 0) {
        add(&t, "; lost: ");
        add_time(&t, sum->parted_ns);
        add(&t, " in %u %s without any way to a peer", sum->parted,
            sum->parted == 1 ? "time" : "times");
    }
    add_waits(&t, sum, waits);
    if (sum->slowest[0] != 0) {
        add(&t, "; slowest: %s, %.0f us above its own floor on average", sum->slowest,
            (double)sum->slowest_ns / 1e3);
    }
}

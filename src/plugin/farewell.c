/* farewell.c: the paragraph at a job's end. */
#include "plugin/farewell.h"

#include "base/strbuf.h"

static void add_time(struct strbuf *text, int64_t ns)
{
    const double s = (double)ns / 1e9;

    if (s < 120) {
        strbuf_add(text, "%.*f s", s < 10 ? 2 : 0, s);
    } else if (s < 7200) {
        strbuf_add(text, "%.0f min", s / 60);
    } else {
        strbuf_add(text, "%.1f h", s / 3600);
    }
}

static void add_faults(struct strbuf *text, const struct transport_summary *sum)
{
    if (sum->resent > 0) {
        strbuf_add(text, "; %.2g %% of the chunks went twice",
                   100.0 * (double)sum->resent / (double)sum->chunks_out);
    }
    if (sum->failovers == 0) {
        strbuf_add(text, "; no lane failed");
        return;
    }
    strbuf_add(text, "; survived: %u %s of a lane, whose traffic went on over others",
               sum->failovers, sum->failovers == 1 ? "failure" : "failures");
    if (sum->saved_ns > 0) {
        strbuf_add(text,
                   " (NCCL's own transports would have ended the job at the first of them; saved "
                   "since then: ");
        add_time(text, sum->saved_ns);
        strbuf_add(text, ")");
    }
}

static void add_waits(struct strbuf *text, const struct transport_summary *sum,
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
    strbuf_add(text, "; NCCL's proxies waited for");
    for (int i = 0; i < PROFILER_WAIT_COUNT; i++) {
        strbuf_add(text, "%s %s %.0f %%", i > 0 ? "," : "", whom[i],
                   100.0 * (double)waits->wait_ns[i] / (double)all);
    }
    strbuf_add(text, " of their waiting");
}

void farewell_write(const struct transport_summary *sum, const struct profiler_sums *waits,
                    char text[static FAREWELL_SIZE])
{
    struct strbuf t = strbuf_init(text, FAREWELL_SIZE);

    strbuf_add(&t, "after ");
    add_time(&t, sum->ran_ns);
    strbuf_add(&t, ": %.3f GB sent", (double)sum->bytes_out / 1e9);
    if (sum->written > 0 && sum->bytes_out > 0) {
        strbuf_add(&t, " (%.0f %% of it written by NICs directly to its place)",
                   100.0 * (double)sum->written / (double)sum->bytes_out);
    }
    strbuf_add(&t, ", %.3f GB received", (double)sum->bytes_in / 1e9);
    add_faults(&t, sum);
    if (sum->parted > 0) {
        strbuf_add(&t, "; lost: ");
        add_time(&t, sum->parted_ns);
        strbuf_add(&t, " in %u %s without any way to a peer", sum->parted,
                   sum->parted == 1 ? "time" : "times");
    }
    add_waits(&t, sum, waits);
    if (sum->slowest[0] != 0) {
        strbuf_add(&t, "; slowest: %s, %.0f us above its own floor on average", sum->slowest,
                   (double)sum->slowest_ns / 1e3);
    }
}

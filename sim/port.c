/* port.c: the fluid queue. */
#include "sim/port.h"

#include <math.h>

#define BYTES_PER_NS(mbps) ((mbps) / 8000.0)

void port_init(struct port *p, uint64_t seed, double rate_mbps, double buffer_bytes,
               double frame_bytes, bool lossless)
{
    *p = (struct port){.rate = BYTES_PER_NS(rate_mbps),
                       .buffer = buffer_bytes,
                       .frame = frame_bytes,
                       .lossless = lossless};
    prng_init(&p->random, seed);
}

void port_clear(struct port *p)
{
    p->stream_count = 0;
    p->standing = 0;
}

void port_add(struct port *p, double now, double load, double burst_bytes, double burst_mbps)
{
    if (p->stream_count == PORT_STREAMS || !(load > 0)) {
        return;
    }
    struct port_stream *s = &p->streams[p->stream_count++];
    s->size = burst_bytes;
    s->rate = BYTES_PER_NS(burst_mbps);
    s->gap_ns = burst_bytes / (load * p->rate);
    s->next = now + s->gap_ns * prng_exponential(&p->random);
}

void port_rate(struct port *p, double rate_mbps)
{
    p->rate = BYTES_PER_NS(rate_mbps);
}

/* Moves the fluid from p->at to `to` with a constant inflow. It has no branches, because a processor could not foresee them. */
static void flow(struct port *p, double to)
{
    const double work = p->work + (p->inflow - p->rate) * (to - p->at);
    const double most = p->lossless ? INFINITY : p->buffer;
    const double some = 0 > work ? 0 : work;

    p->work = some > most ? most : some;
    p->at = to;
}

static void end_burst(struct port *p, unsigned i)
{
    p->inflow -= p->active_rate[i];
    p->active_count--;
    p->active_end[i] = p->active_end[p->active_count];
    p->active_rate[i] = p->active_rate[p->active_count];
    if (p->active_count == 0) {
        p->inflow = 0;
    }
}

static void start_burst(struct port *p, struct port_stream *s)
{
    if (p->active_count == PORT_ACTIVE) { /* rare: the burst then comes at once */
        p->work += s->size;
    } else {
        p->active_end[p->active_count] = s->next + s->size / s->rate;
        p->active_rate[p->active_count++] = s->rate;
        p->inflow += s->rate;
    }
    s->next += s->gap_ns * prng_exponential(&p->random);
}

/* Skips a pause with too many bursts to compute. PORT_CATCH_UP bursts ago the port is taken as empty, or with an exponential
 * queue of the mean that random bursts leave (Pollaczek-Khinchine). */
static void skip(struct port *p, double at)
{
    double gap = INFINITY, load = 0, second = 0;

    for (unsigned i = 0; i < p->stream_count; i++) {
        const struct port_stream *s = &p->streams[i];
        gap = fmin(gap, s->gap_ns);
        load += s->size / (s->gap_ns * p->rate);
        second += s->size * s->size / (s->gap_ns * p->rate);
    }
    const double from = at - gap * PORT_CATCH_UP;
    if (p->stream_count == 0 || from <= p->at) {
        return;
    }
    p->active_count = 0;
    p->inflow = 0;
    p->at = from;
    p->work = 0;
    if (load < 0.999 && prng_uniform(&p->random) < load) {
        p->work = second / (2 * (1 - load)) / load * prng_exponential(&p->random);
    }
    for (unsigned i = 0; i < p->stream_count; i++) {
        p->streams[i].next = from + p->streams[i].gap_ns * prng_exponential(&p->random);
    }
}

/* The stream whose next burst starts first, and the burst that ends first; -1: none. */
static int first_start(const struct port *p)
{
    int first = -1;

    for (unsigned i = 0; i < p->stream_count; i++) {
        first = first < 0 || p->streams[i].next < p->streams[first].next ? (int)i : first;
    }
    return first;
}

static int first_end(const struct port *p)
{
    int first = -1;

    for (unsigned i = 0; i < p->active_count; i++) {
        first = first < 0 || p->active_end[i] < p->active_end[first] ? (int)i : first;
    }
    return first;
}

static void catch_up(struct port *p, double at)
{
    if (at <= p->at) {
        return;
    }
    skip(p, at);
    for (int start = first_start(p), end = first_end(p);;) {
        const double starts = start >= 0 ? p->streams[start].next : INFINITY;
        const double ends = end >= 0 ? p->active_end[end] : INFINITY;
        const double next = ends < starts ? ends : starts;
        if (!(next < at)) {
            break;
        }
        flow(p, next > p->at ? next : p->at);
        if (ends < starts) {
            end_burst(p, (unsigned)end);
        } else {
            start_burst(p, &p->streams[start]);
            start = first_start(p);
        }
        end = first_end(p);
    }
    flow(p, at);
}

double port_queue(struct port *p, double at)
{
    catch_up(p, at);
    const double work = p->work + p->standing;
    return work < p->buffer ? work : p->buffer;
}

double port_pass(struct port *p, double at, double size, bool high)
{
    const double queue = port_queue(p, at);
    double start = at;

    if (!p->lossless && !high && queue + size > p->buffer) {
        return -1;
    }
    if (queue > 0 || p->inflow > 0) {
        /* the frame that is being sent, if one is */
        const double busy = queue > 0 ? 1 : fmin(1, p->inflow / p->rate);
        if (prng_uniform(&p->random) < busy) {
            start += p->frame / p->rate * prng_uniform(&p->random);
        }
        if (!high) {
            start += queue / p->rate;
        }
    }
    double *end = &p->probe_end[high];
    if (start < *end && *end - start < 1e6) {
        start = *end; /* after the last probe in the same queue */
    }
    *end = start + size / p->rate;
    return *end;
}

/* oscillators.c: the shared page of a lab's clocks, drawn from its seed. */
#include "base/prng.h"
#include "lab/lab.h"
#include "lab/machine.h"
#include "platform/oscillator/oscillator.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* A raw clock counts from boot. This base keeps it above zero, even if the machine has just booted. */
#define BASE_NS (30 * 86400 * NS_PER_S)

void lab_oscillators_file(const struct lab *lab, char ret_file[LAB_TEXT_SIZE])
{
    snprintf(ret_file, LAB_TEXT_SIZE, LAB_ROOT "/%s/oscillators", lab->name);
}

static double symmetric(struct prng *p)
{
    return 2.0 * prng_uniform(p) - 1.0;
}

/* Temperature: every ramp_every the rate ramps for ramp_for, up and down in turn. At most 40 ramps are made in advance. */
static void add_ramps(const struct scenario_clocks *c, struct oscillator_host *h, uint32_t clock,
                      struct prng *p)
{
    if (c->ramp_every_ns <= 0 || prng_uniform(p) >= c->ramp_share) {
        return;
    }
    double freq_ppb =
        c->ramp_ppb_s * (double)c->ramp_for_ns * 1e-9 * (prng_u64(p) & 1 ? 1.0 : -1.0);
    int64_t effect_ns = h->origin_raw_ns + (int64_t)(prng_uniform(p) * (double)c->ramp_every_ns);
    for (int i = 0; i < 40 && h->event_count < OSCILLATOR_EVENT_MAX - 64; i++) {
        struct oscillator_event e = {.effect_raw_ns = effect_ns,
                                     .ramp_ns = c->ramp_for_ns,
                                     .freq_ppb = i % 2 == 0 ? freq_ppb : -freq_ppb,
                                     .clock = clock};
        h->event[h->event_count++] = e;
        effect_ns += c->ramp_every_ns;
    }
}

static void fill_host(const struct lab *lab, struct oscillator_host *h, int index,
                      int64_t real_minus_raw_ns)
{
    const struct scenario_clocks *c = &lab->scenario.clocks;
    struct prng p;
    prng_init(&p, hash_u64(lab->scenario.seed, (uint64_t)index));
    snprintf(h->name, sizeof(h->name), "host%d", index);
    h->nic_count = (uint32_t)lab->scenario.fabric.nics_per_host;
    h->stamps = scenario_nics_stamp(c, index) ? OSCILLATOR_STAMPS_NIC : OSCILLATOR_STAMPS_HOST;
    for (uint32_t i = 0; i <= h->nic_count; i++) {
        h->clock[i] = (struct oscillator_clock){
            .offset_ns = BASE_NS + (int64_t)(symmetric(&p) * (double)c->offset_ns),
            .freq_ppb = symmetric(&p) * c->ppm * 1000.0,
            .wander_ppb = c->wander,
            .seed = prng_u64(&p),
            .read_delay_ns = (int32_t)c->nic_read_ns,
            .read_noise_ns = (int32_t)c->nic_read_noise_ns,
        };
        add_ramps(c, h, i, &p);
    }
    /* The host's real-time clock has the same error as its raw clock. */
    h->realtime_offset_ns = real_minus_raw_ns - BASE_NS;
}

int lab_oscillators_create(const struct lab *lab)
{
    char file[LAB_TEXT_SIZE];
    struct oscillator o;
    lab_oscillators_file(lab, file);
    int r = oscillator_create(file, (uint32_t)lab->scenario.fabric.hosts, &o);
    if (r < 0) {
        return r;
    }
    int64_t raw_ns = machine_clock_ns(CLOCK_MONOTONIC_RAW);
    int64_t real_minus_raw_ns = machine_clock_ns(CLOCK_REALTIME) - raw_ns;
    o.page->seed = lab->scenario.seed;
    o.page->origin_raw_ns = raw_ns;
    for (uint32_t i = 0; i < o.page->host_count; i++) {
        o.page->host[i].origin_raw_ns = raw_ns;
        fill_host(lab, &o.page->host[i], (int)i, real_minus_raw_ns);
    }
    oscillator_close(&o);
    return 0;
}

/* oscillator.c: first the pure functions, then the file. */
#include "platform/oscillator/oscillator.h"

#include "base/prng.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OCTAVE_COUNT   8
#define OCTAVE_RATIO   4
#define OCTAVE_FIRST_S 0.25
/* An octave of length T has this standard deviation of the frequency, times wander·√T. So the variance of the frequency's
 * change over τ is wander²·τ, within a third, for τ from 0.25 s to 1000 s (test/unit/test_oscillator.c). */
#define OCTAVE_FREQ_SD 0.52
/* The derivative's standard deviation of a cubic B-spline over independent nodes of variance 1: √(2/3). */
#define SPLINE_SLOPE_SD 0.81649658

_Static_assert(offsetof(struct oscillator_page, host) == 64, "one cache line of header");
_Static_assert(sizeof(struct oscillator_event) == 48, "layout is shared between programs");

static double uniform_from(uint64_t hash)
{
    return (double)(hash >> 11) * 0x1p-53;
}

/* Mean 0, variance 1, bounded. */
static double node(uint64_t seed, int64_t index)
{
    return (uniform_from(hash_u64(seed, (uint64_t)index)) - 0.5) * 3.46410162;
}

static double spline(uint64_t seed, double x)
{
    double base = floor(x);
    double f = x - base;
    int64_t i = (int64_t)base;
    double r = 1.0 - f;
    double f2 = f * f;
    double f3 = f2 * f;
    return (node(seed, i - 1) * r * r * r + node(seed, i) * (3.0 * f3 - 6.0 * f2 + 4.0) +
            node(seed, i + 1) * (-3.0 * f3 + 3.0 * f2 + 3.0 * f + 1.0) + node(seed, i + 2) * f3) /
           6.0;
}

static double wander_ns(const struct oscillator_clock *c, int64_t elapsed_ns)
{
    if (c->wander_ppb == 0.0) {
        return 0.0;
    }
    double elapsed_s = (double)elapsed_ns * 1e-9;
    double length_s = OCTAVE_FIRST_S;
    double sum_ns = 0.0;
    for (unsigned i = 0; i < OCTAVE_COUNT; i++) {
        /* ppb · s = ns. */
        double amplitude_ns =
            c->wander_ppb * sqrt(length_s) * OCTAVE_FREQ_SD * length_s / SPLINE_SLOPE_SD;
        sum_ns += amplitude_ns * spline(hash_u64(c->seed, i + 1), elapsed_s / length_s);
        length_s *= OCTAVE_RATIO;
    }
    return sum_ns;
}

static double event_ns(const struct oscillator_event *e, int64_t raw_ns)
{
    double past_ns = (double)(raw_ns - e->effect_raw_ns);
    double ramp_ns = (double)e->ramp_ns;
    double phase_ns;
    if (past_ns < ramp_ns) {
        phase_ns = e->freq_ppb * 1e-9 * past_ns * past_ns / (2.0 * ramp_ns);
    } else {
        phase_ns = e->freq_ppb * 1e-9 * (past_ns - ramp_ns / 2.0);
    }
    double suspend_ns = (double)e->suspend_ns;
    return phase_ns - (past_ns < suspend_ns ? past_ns : suspend_ns);
}

static int64_t value_ns(const struct oscillator_host *h, uint32_t clock, int64_t raw_ns)
{
    const struct oscillator_clock *c = &h->clock[clock];
    int64_t elapsed_ns = raw_ns - h->origin_raw_ns;
    double phase_ns = c->freq_ppb * 1e-9 * (double)elapsed_ns + wander_ns(c, elapsed_ns);
    int64_t whole_ns = raw_ns + c->offset_ns;
    uint32_t count = __atomic_load_n(&h->event_count, __ATOMIC_ACQUIRE);
    count = count < OSCILLATOR_EVENT_MAX ? count : OSCILLATOR_EVENT_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct oscillator_event *e = &h->event[i];
        if (e->clock == clock && e->effect_raw_ns <= raw_ns) {
            whole_ns += e->step_ns;
            phase_ns += event_ns(e, raw_ns);
        }
    }
    return whole_ns + (int64_t)floor(phase_ns);
}

static int64_t inverse_ns(const struct oscillator_host *h, uint32_t clock, int64_t value)
{
    int64_t raw_ns = value - h->clock[clock].offset_ns;
    /* Rates differ from 1 by about 1e-4 at most, so each round reduces the error to 1e-4 of it. */
    for (int i = 0; i < 6; i++) {
        int64_t error_ns = value - value_ns(h, clock, raw_ns);
        raw_ns += error_ns;
        if (error_ns == 0) {
            break;
        }
    }
    return raw_ns;
}

struct mono oscillator_mono(const struct oscillator_host *h, int64_t raw_ns)
{
    return (struct mono){value_ns(h, OSCILLATOR_HOST_CLOCK, raw_ns)};
}

int64_t oscillator_realtime_ns(const struct oscillator_host *h, int64_t raw_ns)
{
    return value_ns(h, OSCILLATOR_HOST_CLOCK, raw_ns) + h->realtime_offset_ns;
}

int64_t oscillator_suspended_ns(const struct oscillator_host *h, int64_t raw_ns)
{
    int64_t sum_ns = 0;
    uint32_t count = __atomic_load_n(&h->event_count, __ATOMIC_ACQUIRE);
    count = count < OSCILLATOR_EVENT_MAX ? count : OSCILLATOR_EVENT_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct oscillator_event *e = &h->event[i];
        if (e->clock == OSCILLATOR_HOST_CLOCK && e->effect_raw_ns <= raw_ns) {
            int64_t past_ns = raw_ns - e->effect_raw_ns;
            sum_ns += past_ns < e->suspend_ns ? past_ns : e->suspend_ns;
        }
    }
    return sum_ns;
}

struct nic_time oscillator_nic(const struct oscillator_host *h, uint32_t nic, int64_t raw_ns)
{
    ASSERT(nic < HOST_NIC_MAX);
    return (struct nic_time){value_ns(h, nic + 1, raw_ns)};
}

int64_t oscillator_raw_of_mono(const struct oscillator_host *h, struct mono m)
{
    return inverse_ns(h, OSCILLATOR_HOST_CLOCK, m.ns);
}

int64_t oscillator_raw_of_nic(const struct oscillator_host *h, uint32_t nic, struct nic_time t)
{
    ASSERT(nic < HOST_NIC_MAX);
    return inverse_ns(h, nic + 1, t.ns);
}

void oscillator_read(const struct oscillator_host *h, uint32_t nic, int64_t raw_ns, uint64_t nonce,
                     int64_t *ret_latch_raw_ns, int64_t *ret_done_raw_ns)
{
    ASSERT(nic < HOST_NIC_MAX);
    const struct oscillator_clock *c = &h->clock[nic + 1];
    uint64_t hash = hash_u64(c->seed ^ 0x50434965ULL, nonce);
    double there = -log1p(-uniform_from(hash)) * c->read_noise_ns;
    double back = -log1p(-uniform_from(hash_u64(hash, 1))) * c->read_noise_ns;
    int64_t latch_ns = raw_ns + c->read_delay_ns / 2 + (int64_t)there;
    *ret_latch_raw_ns = latch_ns;
    *ret_done_raw_ns = latch_ns + c->read_delay_ns / 2 + (int64_t)back;
}

int64_t oscillator_conversion_error_ns(const struct oscillator_host *h, uint64_t batch,
                                       int64_t delta_ns)
{
    double u = uniform_from(hash_u64(h->clock[OSCILLATOR_HOST_CLOCK].seed ^ 0x62617463ULL, batch));
    return (int64_t)floor((2.0 * u - 1.0) * (double)delta_ns + 0.5);
}

int oscillator_append(struct oscillator_host *h, const struct oscillator_event *e)
{
    if (e->clock > h->nic_count || e->ramp_ns < 0 || e->suspend_ns < 0) {
        return -EINVAL;
    }
    if (h->event_count >= OSCILLATOR_EVENT_MAX) {
        return -ENOSPC;
    }
    h->event[h->event_count] = *e;
    __atomic_store_n(&h->event_count, h->event_count + 1, __ATOMIC_RELEASE);
    return 0;
}

static size_t page_size(uint32_t host_count)
{
    return sizeof(struct oscillator_page) + (size_t)host_count * sizeof(struct oscillator_host);
}

static int page_map(int fd, size_t size, int protection, struct oscillator *ret_oscillator)
{
    void *p = mmap(NULL, size, protection, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        return -errno;
    }
    *ret_oscillator = (struct oscillator){.page = p, .size = size};
    ret_oscillator->host = ret_oscillator->page->host;
    return 0;
}

static bool page_is_sound(const struct oscillator *o)
{
    const struct oscillator_page *p = o->page;
    if (p->magic != OSCILLATOR_MAGIC || p->version != OSCILLATOR_VERSION ||
        p->host_count > OSCILLATOR_HOST_MAX || o->size < page_size(p->host_count)) {
        return false;
    }
    for (uint32_t i = 0; i < p->host_count; i++) {
        if (p->host[i].nic_count > HOST_NIC_MAX) {
            return false;
        }
    }
    return true;
}

static int page_open(const char *file, bool is_writable, struct oscillator *ret_oscillator)
{
    int fd = open(file, (is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    struct stat st;
    struct oscillator o = {0};
    int r = fstat(fd, &st) < 0 ? -errno : 0;
    if (r == 0 && (size_t)st.st_size < page_size(0)) {
        r = -EPROTO;
    }
    if (r == 0) {
        r = page_map(fd, (size_t)st.st_size, PROT_READ | (is_writable ? PROT_WRITE : 0), &o);
    }
    close(fd);
    if (r == 0 && !page_is_sound(&o)) {
        oscillator_close(&o);
        r = -EPROTO;
    }
    if (r == 0) {
        *ret_oscillator = o;
    }
    return r;
}

int oscillator_open(const char *spec, struct oscillator *ret_oscillator)
{
    const char *colon = strrchr(spec, ':');
    if (colon == NULL || colon == spec || colon[1] == '\0') {
        return -EINVAL;
    }
    char *file = strndup(spec, (size_t)(colon - spec));
    if (file == NULL) {
        return -ENOMEM;
    }
    struct oscillator o;
    int r = page_open(file, false, &o);
    free(file);
    if (r < 0) {
        return r;
    }
    o.host = oscillator_find(&o, colon + 1);
    if (o.host == NULL) {
        oscillator_close(&o);
        return -ENOENT;
    }
    *ret_oscillator = o;
    return 0;
}

int oscillator_open_env(struct oscillator *ret_oscillator)
{
    const char *spec = getenv(OSCILLATOR_ENV);
    return spec == NULL || spec[0] == '\0' ? -ENODATA : oscillator_open(spec, ret_oscillator);
}

int oscillator_open_write(const char *file, struct oscillator *ret_oscillator)
{
    return page_open(file, true, ret_oscillator);
}

int oscillator_create(const char *file, uint32_t host_count, struct oscillator *ret_oscillator)
{
    if (host_count > OSCILLATOR_HOST_MAX) {
        return -EINVAL;
    }
    int fd = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0644);
    if (fd < 0) {
        return -errno;
    }
    int r = ftruncate(fd, (off_t)page_size(host_count)) < 0 ? -errno : 0;
    if (r == 0) {
        r = page_map(fd, page_size(host_count), PROT_READ | PROT_WRITE, ret_oscillator);
    }
    close(fd);
    if (r == 0) {
        struct oscillator_page *p = ret_oscillator->page;
        p->magic = OSCILLATOR_MAGIC;
        p->version = OSCILLATOR_VERSION;
        p->host_count = host_count;
    }
    return r;
}

void oscillator_close(struct oscillator *o)
{
    if (o != NULL && o->page != NULL) {
        munmap(o->page, o->size);
        *o = (struct oscillator){0};
    }
}

struct oscillator_host *oscillator_find(const struct oscillator *o, const char *name)
{
    for (uint32_t i = 0; i < o->page->host_count; i++) {
        if (strncmp(o->page->host[i].name, name, OSCILLATOR_NAME_SIZE) == 0) {
            return &o->page->host[i];
        }
    }
    return NULL;
}

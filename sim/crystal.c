/* crystal.c: pieces of constant rate, made on demand. */
#include "sim/crystal.h"

#include "base/prng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number with mean 0 and deviation 1 for piece `index`: the sum of four uniform ones suffices, because the walk sums many. */
static double piece_normal(uint64_t seed, int64_t index)
{
    const uint64_t h = hash_u64(seed, (uint64_t)index);
    const double sum = (double)(h & 0xffff) + (double)((h >> 16) & 0xffff) +
                       (double)((h >> 32) & 0xffff) + (double)(h >> 48);
    /* each of variance (2^16)^2 / 12 */
    return (sum - 4 * 32767.5) / (65536.0 * 0.57735026918962573);
}

/* The rate offset by temperature at `at`: it rises for ramp_for, falls for as long, then rests. */
static double ramp_ppb(const struct crystal_config *c, int64_t at)
{
    if (c->ramp_every_ns <= 0 || c->ramp_ppb_s == 0) {
        return 0;
    }
    const int64_t turn = (at + c->ramp_phase_ns) / c->ramp_every_ns;
    const int64_t t = (at + c->ramp_phase_ns) % c->ramp_every_ns;
    const double sign = (hash_u64(c->seed ^ 0x7261, (uint64_t)turn) & 1) != 0 ? 1 : -1;
    if (t < c->ramp_for_ns) {
        return sign * c->ramp_ppb_s * (double)t * 1e-9;
    }
    if (t < 2 * c->ramp_for_ns) {
        return sign * c->ramp_ppb_s * (double)(2 * c->ramp_for_ns - t) * 1e-9;
    }
    return 0;
}

static double rate_now(const struct crystal *c, int64_t at)
{
    if (c->stopped) {
        return -1;
    }
    return (c->config.ppm + c->jump_ppm) * 1e-6 + (c->walk_ppb + ramp_ppb(&c->config, at)) * 1e-9;
}

static int64_t piece_end(const struct crystal *c)
{
    const int64_t cell = (c->grid + 1) * CRYSTAL_PIECE_NS;
    if (c->change_next < c->change_count && c->changes[c->change_next].at < cell) {
        return c->changes[c->change_next].at;
    }
    return cell;
}

void crystal_init(struct crystal *c, const struct crystal_config *config)
{
    *c = (struct crystal){.config = *config};
    for (unsigned i = 0; i < CRYSTAL_PIECES; i++) {
        c->pieces[i] = (struct crystal_piece){.reading = config->offset_ns};
    }
    c->pieces[0].rate = rate_now(c, 0);
    c->end = piece_end(c);
}

void crystal_done(struct crystal *c)
{
    free(c->changes);
    c->changes = NULL;
}

void crystal_add(struct crystal *c, const struct crystal_change *change)
{
    struct crystal_change *changes = realloc(c->changes, (c->change_count + 1) * sizeof(*changes));
    unsigned i = c->change_count;

    ASSERT(changes != NULL);
    c->changes = changes;
    for (; i > c->change_next && changes[i - 1].at > change->at; i--) {
        changes[i] = changes[i - 1];
    }
    changes[i] = *change;
    if (changes[i].at < c->pieces[c->head].at) {
        /* too late to be exact: it takes effect at the end of the pieces already read */
        changes[i].at = c->end;
    }
    c->change_count++;
    c->end = piece_end(c);
    if (c->end < c->pieces[c->head].at) {
        c->end = c->pieces[c->head].at;
    }
}

static int64_t piece_read(const struct crystal_piece *p, int64_t at, double *ret_fraction)
{
    const double excess = p->fraction + p->rate * (double)(at - p->at);
    const double whole = floor(excess);

    *ret_fraction = excess - whole;
    return p->reading + (at - p->at) + (int64_t)whole;
}

static void apply(struct crystal *c, const struct crystal_change *change, struct crystal_piece *p)
{
    switch (change->kind) {
    case CRYSTAL_STEP:
        p->reading += (int64_t)change->amount;
        break;
    case CRYSTAL_RATE:
        c->jump_ppm += change->amount;
        break;
    case CRYSTAL_STOP:
        c->stopped = true;
        break;
    case CRYSTAL_GO:
        c->stopped = false;
        break;
    case CRYSTAL_RESET:
        p->reading = (int64_t)change->amount;
        p->fraction = 0;
        break;
    }
}

static void next_piece(struct crystal *c)
{
    const struct crystal_piece *last = &c->pieces[c->head];
    struct crystal_piece p = {.at = c->end};

    p.reading = piece_read(last, c->end, &p.fraction);
    if (c->end >= (c->grid + 1) * CRYSTAL_PIECE_NS) {
        c->grid++;
        c->walk_ppb += c->config.wander * 0.1 * piece_normal(c->config.seed, c->grid);
    }
    while (c->change_next < c->change_count && c->changes[c->change_next].at <= c->end) {
        apply(c, &c->changes[c->change_next++], &p);
    }
    p.rate = rate_now(c, c->end);
    c->head = (c->head + 1) % CRYSTAL_PIECES;
    c->pieces[c->head] = p;
    c->end = piece_end(c);
}

int64_t crystal_read(struct crystal *c, int64_t at, double *ret_fraction)
{
    double unused;

    while (at >= c->end) {
        next_piece(c);
    }
    unsigned i = c->head;
    for (unsigned n = 1; n < CRYSTAL_PIECES && c->pieces[i].at > at; n++) {
        i = (i + CRYSTAL_PIECES - 1) % CRYSTAL_PIECES;
    }
    return piece_read(&c->pieces[i], at, ret_fraction != NULL ? ret_fraction : &unused);
}

double crystal_rate(const struct crystal *c)
{
    return c->pieces[c->head].rate;
}

/* prng.c: xoshiro256++ and the distributions for the simulator and the jitters. */
#include "base/prng.h"

#include <math.h>
#include <string.h>

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t hash_u64(uint64_t a, uint64_t b)
{
    return mix(mix(a + 0x9e3779b97f4a7c15ULL) ^
               (b * 0xd6e8feb86659fd93ULL + 0x632be59bd9b4e019ULL));
}

void prng_init(struct prng *p, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15ULL;
        p->state[i] = mix(seed);
    }
}

uint64_t prng_u64(struct prng *p)
{
    uint64_t *s = p->state;
    const uint64_t result = rotate_left(s[0] + s[3], 23) + s[0];
    const uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t prng_below(struct prng *p, uint64_t bound)
{
    const uint64_t threshold = -bound % bound; /* 2^64 mod bound: a draw below it would be biased */
    uint64_t draw;

    do {
        draw = prng_u64(p);
    } while (draw < threshold);
    return draw % bound;
}

double prng_uniform(struct prng *p)
{
    return (double)(prng_u64(p) >> 11) * 0x1p-53;
}

double prng_normal(struct prng *p)
{
    double u, v, s;

    do { /* Marsaglia's polar method; the second value is dropped, so that there is no hidden state */
        u = 2 * prng_uniform(p) - 1;
        v = 2 * prng_uniform(p) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * sqrt(-2 * log(s) / s);
}

double prng_exponential(struct prng *p)
{
    return -log(1 - prng_uniform(p));
}

uint64_t hash_bytes(uint64_t h, const void *bytes, size_t size)
{
    for (const unsigned char *p = bytes; size > 0; p++, size--) {
        h = (h ^ *p) * 0x100000001b3ULL;
    }
    return h;
}

uint64_t hash_text(const char *text)
{
    return hash_bytes(0xcbf29ce484222325ULL, text, strlen(text)); /* FNV-1a */
}

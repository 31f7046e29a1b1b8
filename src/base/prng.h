/* prng.h: seeded random numbers (xoshiro256++, Blackman and Vigna 2019), and a stateless hash of integers.
 *
 * Deterministic on every machine: one seed, one sequence. Never for secrets. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct prng {
    uint64_t state[4];
};

void prng_init(struct prng *p, uint64_t seed);
uint64_t prng_u64(struct prng *p);
/* Uniform in [0, bound), bound > 0; without modulo bias. */
uint64_t prng_below(struct prng *p, uint64_t bound);
/* Uniform in [0, 1). */
double prng_uniform(struct prng *p);
/* Mean 0, standard deviation 1. */
double prng_normal(struct prng *p);
/* Mean 1. */
double prng_exponential(struct prng *p);

/* A well-mixed function of two integers (splitmix64's finaliser): the same on every host. */
uint64_t hash_u64(uint64_t a, uint64_t b);
/* Of a name: for tables in memory. */
uint64_t hash_text(const char *text);
/* Of bytes, continued from h (FNV-1a's step): it finds damage, but gives no protection against forgery. */
uint64_t hash_bytes(uint64_t h, const void *bytes, size_t size);

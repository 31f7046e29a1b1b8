/* rollout.h: is a configuration that some hosts try a good one?
 *
 * Canaries are told of it first. It is for all once they ran it for the whole watch and nothing about them got worse; it
 * is taken back at the first sign that something did. Not hearing that it is in force, or nothing at all, is no good sign:
 * silence is never health. */
#pragma once
#include <stdint.h>

#include "base/time.h"

struct rollout_facts {
    uint32_t hosts;     /* canaries that are still members */
    uint32_t confirmed; /* said that it is in force */
    uint32_t refused;   /* said that they can't follow it */
    uint32_t silent;    /* say nothing any more */
    uint32_t restarted; /* their agent started anew since */
    uint32_t worse;     /* health below what it was before, for longer than a moment */
    uint32_t alerted;   /* with an alert that wasn't there before */
    struct span age, watch;
};

enum rollout_verdict {
    ROLLOUT_WAIT,
    ROLLOUT_GOOD,
    ROLLOUT_BAD,
};

/* ret_why: in words, of ROLLOUT_BAD. */
enum rollout_verdict rollout_judge(const struct rollout_facts *facts, const char **ret_why);
/* How many of `hosts` are `percent` of them: at least one, if there is any. */
uint32_t rollout_count(uint32_t hosts, double percent);

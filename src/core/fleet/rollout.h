/* rollout.h: judges a configuration that some hosts try.
 *
 * Canaries get it first. All hosts get it when the canaries have run it for the whole watch and nothing about them got worse. It
 * is taken back at the first sign of a problem. A canary that does not confirm it, or is silent, is no good sign: silence is
 * never health.
 *
 *   rollout_draw        once: chooses the hosts that try it
 *   rollout_on_canary   for each of them, with its present state
 *   rollout_judge       decides from all of them
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "core/fleet/freshness.h"

/* A host that may be chosen. */
struct rollout_lot {
    uint64_t id;   /* chosen by the caller, never changed */
    uint32_t host; /* also chosen by the caller */
    uint64_t lot;
};
/* Sorts the list so that the canaries come first; returns their number. Another version chooses others. */
uint32_t rollout_draw(struct rollout_lot *lots, uint32_t count, uint64_t version, double percent);

struct rollout_facts {
    uint32_t hosts;     /* canaries that are still members */
    uint32_t confirmed; /* canaries that confirmed it */
    uint32_t refused;   /* canaries that can't follow it */
    uint32_t silent;    /* canaries without reports */
    uint32_t restarted; /* canaries whose agent restarted since */
    uint32_t worse;     /* health worse than before, for longer than a moment */
    uint32_t unsure;    /* not judged since a restart, or worse only for a moment so far */
    uint32_t alerted;   /* with an alert that it did not have before */
    struct span age, watch;
};

/* The memory about a canary. */
struct rollout_canary {
    uint32_t run;      /* of its agent before the trial; 0: not known */
    uint8_t health;    /* enum health, before the trial */
    bool confirmed;    /* it reported that it runs the version */
    struct mono worse; /* the time since which it is worse; MONO_NEVER: it isn't */
};
/* The present knowledge about it. */
struct rollout_host {
    bool heard;   /* since the controller started */
    bool judged;  /* and its health is known, or should be */
    bool refused; /* it reports that it can't follow it */
    bool alerted; /* an alert that began with the trial fires on it */
    uint32_t run;
    uint8_t freshness, health; /* enums */
};
/* Adds it to the facts. True: something about it is bad. */
bool rollout_on_canary(struct rollout_facts *facts, struct rollout_canary *canary,
                       const struct rollout_host *is, struct mono now);

enum rollout_verdict {
    ROLLOUT_WAIT,
    ROLLOUT_GOOD,
    ROLLOUT_BAD,
};

/* ret_why: the reason in words, for ROLLOUT_BAD. */
enum rollout_verdict rollout_judge(const struct rollout_facts *facts, const char **ret_why);
/* `percent` of `hosts`: at least one, if there is any. */
uint32_t rollout_count(uint32_t hosts, double percent);

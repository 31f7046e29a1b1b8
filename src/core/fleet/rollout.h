/* rollout.h: is a configuration that some hosts try a good one?
 *
 * Canaries are told of it first. It is for all once they ran it for the whole watch and nothing about them got worse; it
 * is taken back at the first sign that something did. Not hearing that it is in force, or nothing at all, is no good sign:
 * silence is never health.
 *
 *   rollout_draw        once: which hosts try it
 *   rollout_on_canary   of each, as it is now
 *   rollout_judge       of what these came to */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "core/fleet/freshness.h"

/* One that is there to try it. */
struct rollout_lot {
    uint64_t id;   /* the caller's, alike for ever */
    uint32_t host; /* the caller's, too */
    uint64_t lot;
};
/* How many of `count` try it: the first ones of the list as it is then. Another version draws others. */
uint32_t rollout_draw(struct rollout_lot *lots, uint32_t count, uint64_t version, double percent);

struct rollout_facts {
    uint32_t hosts;     /* canaries that are still members */
    uint32_t confirmed; /* said that it is in force */
    uint32_t refused;   /* said that they can't follow it */
    uint32_t silent;    /* say nothing any more */
    uint32_t restarted; /* their agent started anew since */
    uint32_t worse;     /* health below what it was before, for longer than a moment */
    uint32_t unsure;    /* not judged yet since a restart, or worse for no more than a moment yet */
    uint32_t alerted;   /* with an alert that wasn't there before */
    struct span age, watch;
};

/* What is remembered of a canary. */
struct rollout_canary {
    uint32_t run;      /* of its agent before; 0: not known */
    uint8_t health;    /* enum health, before */
    bool confirmed;    /* it said that it runs it */
    struct mono worse; /* since when; MONO_NEVER: it isn't */
};
/* What is known of it now. */
struct rollout_host {
    bool heard;   /* since whoever asks started */
    bool judged;  /* and its health is known, or should be */
    bool refused; /* it says that it can't follow it */
    bool alerted; /* an alert fires on it that began with the trial */
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

/* ret_why: in words, of ROLLOUT_BAD. */
enum rollout_verdict rollout_judge(const struct rollout_facts *facts, const char **ret_why);
/* How many of `hosts` are `percent` of them: at least one, if there is any. */
uint32_t rollout_count(uint32_t hosts, double percent);

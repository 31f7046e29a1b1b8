/* fleet_config.h: the fleet's configuration, versioned: what agents are told to do, who said so, and the canaries that try
 * a new one first.
 *
 * A version is a YAML text that was applied once, and stays as it was: going back makes a new version of an
 * old text. Numbers count up and are never used twice. At most one version is being tried; what it does to its canaries is
 * judged each second (core/fleet/rollout.h). `observe` lies over all versions: with it no host's jobs do more than
 * measure, whatever the version says. All of it is one value of the store, written with each change. */
#pragma once
#include "core/fleet/rollout.h"
#include "service/controller/controller.h"

#define FLEET_CONFIG_TEXT_MAX 16384
#define FLEET_CONFIG_KEPT     100 /* versions; older texts are forgotten */
#define FLEET_CONFIG_WATCH_S  600

struct fleet_settings { /* 0: not said, the host's own or the default */
    uint32_t report_ms, beat_ms, mode, ring_peers, flap_limit;
};

enum fleet_config_state {
    FLEET_CONFIG_ACTIVE,
    FLEET_CONFIG_TRIED,    /* by canaries, now */
    FLEET_CONFIG_REPLACED, /* by a later one */
    FLEET_CONFIG_BACK,     /* taken back: never became the fleet's */
};

struct fleet_config_version {
    uint64_t version;
    enum fleet_config_state state;
    int64_t at_ns, ended_ns; /* ended_ns 0: it hasn't */
    char who[64], why[160], end_why[160];
    char *text;
    struct fleet_settings settings;
};

struct fleet_canary {
    int64_t host;
    struct rollout_canary is;
};

struct fleet_config {
    struct fleet_config_version *versions; /* oldest first */
    size_t count;
    uint64_t last;                               /* number of the newest ever */
    struct fleet_config_version *active, *tried; /* NULL: none */
    struct fleet_canary *canaries;
    size_t canary_count;
    double percent;
    int64_t tried_ns, watch_ns;
    struct mono tried_at;      /* tried_ns, on our clock: people may set the other one */
    bool observe, rolled_back; /* rolled_back: by itself, and nothing was applied since */
    int64_t observe_ns;
    char observe_by[64];
};

MUST_CHECK int fleet_config_load(struct controller *c);
void fleet_config_free(struct controller *c);
/* The YAML text; -EINVAL with words of its first error: then *ret has the values that hold. */
MUST_CHECK int fleet_config_parse(const char *text, struct fleet_settings *ret,
                                  char ret_words[512]);
struct fleet_config_version *fleet_config_find(const struct controller *c, uint64_t version);
/* What this host is to be told now. */
void fleet_config_of(const struct controller *c, const struct fleet_host *h,
                     Foliot__V1__Settings *ret);
/* A host said what it runs. */
void fleet_config_heard(struct controller *c, struct fleet_host *h, const Foliot__V1__Batch *batch);

struct fleet_config_change {
    const char *text, *who, *why;
    double percent; /* 0: all at once */
    int64_t watch_s;
};
/* -EBUSY: one is being tried; -EINVAL: the text (words); -ENODEV: no host is live to try it; else the store's: then memory
 * is as it was. Written, not committed. */
MUST_CHECK int fleet_config_apply(struct controller *c, const struct fleet_config_change *change,
                                  char ret_words[512], uint64_t *ret_version);
/* The one that is being tried is taken back. */
MUST_CHECK int fleet_config_take_back(struct controller *c, const char *who, const char *why);
MUST_CHECK int fleet_config_observe(struct controller *c, bool on, const char *who);
/* Once a second: canaries. */
void fleet_config_watch(struct controller *c);
const char *fleet_config_state_word(enum fleet_config_state state);

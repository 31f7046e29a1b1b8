/* fleet_config.h: versions of the fleet's configuration: what agents must do, who applied it, and the canaries that try a new
 * version first.
 *
 * A version is a YAML text that was applied once. It never changes: going back makes a new version with an old text. Numbers
 * count up and are never used twice. At most one version is in trial; its canaries are judged each second
 * (core/fleet/rollout.h). `observe` overrides all versions: no host's jobs do more than measure. All of this is one value of
 * the store, written with each change. */
#pragma once
#include "core/fleet/rollout.h"
#include "service/controller/controller.h"

#define FLEET_CONFIG_TEXT_MAX 16384
#define FLEET_CONFIG_KEPT     100 /* versions; older texts are deleted */
#define FLEET_CONFIG_WATCH_S  600

struct fleet_settings { /* 0: not set: the host's own value or the default */
    uint32_t report_ms, beat_ms, mode, ring_peers, flap_limit;
};

enum fleet_config_state {
    FLEET_CONFIG_ACTIVE,
    FLEET_CONFIG_TRIED,    /* in trial with canaries */
    FLEET_CONFIG_REPLACED, /* a later version replaced it */
    FLEET_CONFIG_BACK,     /* taken back: was never the fleet's */
};

struct fleet_config_version {
    uint64_t version;
    enum fleet_config_state state;
    int64_t at_ns, ended_ns; /* ended_ns 0: not ended */
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
    uint64_t last;                               /* the greatest number so far */
    struct fleet_config_version *active, *tried; /* NULL: none */
    struct fleet_canary *canaries;
    size_t canary_count;
    double percent;
    int64_t tried_ns, watch_ns;
    struct mono tried_at;      /* tried_ns on the monotonic clock: UTC may be set */
    bool observe, rolled_back; /* rolled_back: automatically, and no version was applied since */
    int64_t observe_ns;
    char observe_by[64];
};

MUST_CHECK int fleet_config_load(struct controller *c);
void fleet_config_free(struct controller *c);
/* Parses the YAML text. -EINVAL with words about the first error: then *ret has the valid values. */
MUST_CHECK int fleet_config_parse(const char *text, struct fleet_settings *ret,
                                  char ret_words[512]);
struct fleet_config_version *fleet_config_find(const struct controller *c, uint64_t version);
/* The settings for this host now. */
void fleet_config_of(const struct controller *c, const struct fleet_host *h,
                     Foliot__V1__Settings *ret);
/* A host reported the configuration that it runs. */
void fleet_config_heard(struct controller *c, struct fleet_host *h, const Foliot__V1__Batch *batch);

struct fleet_config_change {
    const char *text, *who, *why;
    double percent; /* 0: all hosts at once */
    int64_t watch_s;
};
/* -EBUSY: a version is in trial; -EINVAL: the text is invalid (words); -ENODEV: no live host can try it; else an error of the
 * store: then memory is unchanged. The change is written, not committed. */
MUST_CHECK int fleet_config_apply(struct controller *c, const struct fleet_config_change *change,
                                  char ret_words[512], uint64_t *ret_version);
/* Takes back the version in trial. */
MUST_CHECK int fleet_config_take_back(struct controller *c, const char *who, const char *why);
MUST_CHECK int fleet_config_observe(struct controller *c, bool on, const char *who);
/* Called once a second: judges the canaries. */
void fleet_config_watch(struct controller *c);
const char *fleet_config_state_word(enum fleet_config_state state);

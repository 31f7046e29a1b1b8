/* internal.h: the engine's memory, shared by its files. Everything lies in pools claimed at the start and is
 * named by its index; NONE ends lists. */
#pragma once
#include "base/bug.h"
#include "core/alert/alert.h"

#define NONE           UINT32_MAX
#define BUILT_IN_RULES 3
#define RULE_DROPPED   1 /* of the built-in ones */
#define WINDOW_BUCKETS 12
#define HOST_RULE      0xffffu /* the watch of a host's signs of life belongs to no rule */
#define ROUND_NS       (10 * NS_PER_S)
#define SWEEP_NS       (1 * NS_PER_S)
#define STALE_NS       (60 * NS_PER_S)  /* a firing series is stale when nothing came for so long */
#define GONE_NS        (900 * NS_PER_S) /* and over, if its host still speaks: no longer measured */
#define GATHER_MAX_NS                                                                              \
    (1 * NS_PER_S) /* how long telling waits when it looks like something larger */
#define SAME_ONSET_NS (1 * NS_PER_S)   /* unplaced: of a switch's fault that began so near to it */
#define RESTORED_NS   (300 * NS_PER_S) /* a restored incident must be confirmed within it */

struct cause_element { /* one thing that may be the cause of something */
    uint64_t key;
    struct element where;
    uint32_t host; /* whose it is; ALERT_NO_ID: of several, or of none */
    uint32_t uses, next;
    uint32_t incidents; /* open ones that it could explain */
    uint32_t owner; /* the incident whose cause it is, open or resolved a short while ago; NONE */
    char name[ALERT_ELEMENT_MAX];
};

struct instance { /* one alert */
    uint64_t key, id;
    uint32_t chain;                         /* of the hash */
    uint32_t before, after;                 /* of the list of all */
    uint32_t sibling_before, sibling_after; /* of its incident */
    uint32_t rule, incident;
    uint8_t state, cause_count;
    uint8_t
        shared; /* candidates and what they are parts of: what it may have in common with others */
    uint8_t
        candidates; /* its first causes: one of them, or of `others`, it is; 0: the first one is sure */
    bool others;
    bool silenced, stale, holds; /* holds: the condition, as last judged */
    bool unplaced;               /* a dead path of which its finder knows no suspect */
    bool hearsay;                /* of a finding: see alert.h */
    struct mono since, fired, due, seen;
    uint32_t said_by, run;
    uint32_t host, nic, peer, port;
    uint64_t job;
    double value;
    uint32_t causes[ALERT_CAUSE_MAX];
    uint8_t directions[ALERT_CAUSE_MAX]; /* of these, as this alert has it */
    char text[ALERT_TEXT_MAX];
};

#define PHASE_MAX 4
struct phase { /* from the first alert of a rule, or of others for the same findings, to the last */
    uint32_t rule;
    struct mono since, left; /* left: when one of them was over last */
};

struct incident {
    uint64_t id, merged_into;
    uint32_t state, severity, cause, first; /* first: of its alerts */
    uint32_t loud;                          /* the worst that nobody silenced */
    uint32_t common[ALERT_CAUSE_MAX], common_count;
    struct mono since, created, due, quiet, resolved, changed;
    struct mono told_at, told_last[ALERT_ROUTE_MAX], repage, quiet_until, change_next;
    uint8_t steps[ALERT_ROUTE_MAX];
    uint32_t unsure; /* of its alerts */
    uint32_t firing, audible, total, pages, reopened, sequence, told_receivers;
    bool told, owes_page; /* owes_page: it came back; if it lasts somebody is woken once more */
    bool spoke;           /* an alert that nobody silenced was in it */
    bool placed;          /* not all of it was ever unplaced */
    bool promoted;        /* the cause is what several share */
    bool unknown;         /* no alert in it is sure of the cause: it is called as below */
    bool proven;          /* an alert was sure of the cause, and may be over by now */
    bool queued, change_due;
    bool notify, notify_page;
    uint32_t notify_event, notify_receivers, queue_next;
    uint64_t rules_seen[(ALERT_RULE_MAX + BUILT_IN_RULES + 63) / 64];
    struct phase phases[PHASE_MAX]; /* since it was opened or came back; the first ones */
    uint32_t phase_count;
    uint32_t news; /* tellings of new evidence */
    char by[ALERT_ELEMENT_MAX];
    struct mono acknowledged;
    struct element_choice choice;
    uint32_t choice_host; /* whose all of them are */
    char called[ALERT_CALLED_MAX];
    char text[ALERT_TEXT_MAX];
};

struct watch { /* what is remembered of one subject of a counter or an absence */
    uint64_t key;
    uint32_t chain, rule, host, nic, peer, port, window;
    bool used, silent;
    struct mono last, back; /* back: of a host, since when it speaks without a gap */
    double value;
};
struct window { /* increases over a sliding window */
    bool used;
    uint32_t watch;
    int64_t newest; /* number of the newest bucket */
    double buckets[WINDOW_BUCKETS];
};
struct subject {
    uint32_t host, nic, peer, port, rail;
    uint64_t job;
};
struct round { /* of an aggregate */
    uint64_t key;
    uint32_t chain, rule;
    struct subject subject;
    bool used;
    struct mono start;
    uint64_t count;
    double weight, beyond; /* beyond: the weight of those that are */
    double sum, max, min;  /* sum: weighed */
};

struct rule_state {
    struct mono last_input;
    uint32_t active; /* alerts of it, pending or firing */
    bool had_input;
};

/* Of indices into a pool, chained through it. Not base/hash_index.h: alerts, elements and watches end one by one, and that
 * index takes no entry out. */
struct hash {
    uint32_t *heads;
    uint32_t mask;
};

struct alerts {
    struct alert_config config;
    struct mono start, now, deadline, sweep_due, host_seen, heartbeat_due;
    int64_t utc_offset_ns, fleet_offset_ns;

    struct alert_rule *rules; /* the caller's, then the built-in ones */
    struct rule_state *rule_states;
    uint32_t rule_count; /* the caller's */
    uint16_t by_metric[ALERT_METRIC_COUNT][ALERT_RULE_MAX];
    uint16_t by_metric_count[ALERT_METRIC_COUNT];

    struct instance *instances;
    uint32_t instance_max, instance_free, instance_head;
    struct mono no_room; /* when nothing made room for what nobody says */
    struct hash instance_hash;
    uint64_t next_alert;

    struct incident *incidents;
    uint32_t incident_max, queue_head, queue_tail;
    uint64_t next_incident;
    bool heartbeat;
    uint32_t heartbeat_sequence;

    struct cause_element *elements;
    uint32_t element_max, element_free;
    struct hash element_hash;

    struct watch *watches;
    uint32_t watch_max, watch_free, watch_top; /* top: how many were ever used */
    struct hash watch_hash;
    struct window *windows;
    uint32_t window_max, window_top, window_free;
    struct round *rounds;
    uint32_t round_max, round_top, round_free;
    struct hash round_hash;

    struct alert_silence silences[ALERT_SILENCE_MAX];
    uint32_t silence_count;

    uint32_t *scratch; /* instance_max: ids to be counted */
    struct alert_counters counters;
    uint64_t dropped_said; /* how many of the dropped the overflow alert knows of */
};

/* ---- engine.c: alerts ---- */
uint64_t subject_key(const struct alerts *a, uint32_t rule, const struct subject *s);
struct instance *instance_find(struct alerts *a, uint64_t key);
/* Of the alert that memory ran out: it has the first place of the alerts, and if need be of the incidents. */
static inline bool rule_has_place(const struct alerts *a, uint32_t rule)
{
    return rule == a->rule_count + RULE_DROPPED;
}
/* The condition holds: a new alert, or one that goes on. NULL: no memory. `since` MONO_NEVER: now. */
struct instance *instance_raise(struct alerts *a, uint32_t rule, uint64_t key, uint32_t said_by,
                                struct mono since);
void instance_lower(struct alerts *a, struct instance *i); /* over: it is gone then */
/* Fires it if it is due; its causes and text must be set. */
void instance_consider(struct alerts *a, struct instance *i);
bool host_is_silent(const struct alerts *a, uint32_t host);
/* It has spoken for so long that what it didn't tell in that time is no more. */
bool host_is_back(const struct alerts *a, uint32_t host);

/* ---- series.c: samples into conditions ---- */
void series_on_sample(struct alerts *a, const struct alert_sample *sample);
void series_sweep(struct alerts *a);
void series_forget_host(struct alerts *a, uint32_t host); /* and the paths to it */
void series_host_seen(struct alerts *a, uint32_t host);
bool series_init(struct alerts *a);

/* ---- cause.c: elements, and which of them could explain an alert ---- */
void causes_of_subject(struct alerts *a, struct instance *i, const struct subject *s);
void causes_of_finding(struct alerts *a, struct instance *i, const struct alert_finding *f);
void causes_of_rule(struct alerts *a, struct instance *i, const char *name);
void causes_release(struct alerts *a, struct instance *i);
/* By its name; NONE: no memory. */
uint32_t element_take(struct alerts *a, const struct element *where, const char *name);
uint32_t element_take_as(struct alerts *a, const struct element *where); /* by its usual name */
/* From specific to general: with equal evidence the finer one is the cause. */
uint32_t element_rank(const struct alerts *a, uint32_t element);
/* Whose it is; ALERT_NO_ID: of several hosts, or of none. */
uint32_t element_host(const struct alerts *a, const struct element *where);
bool nic_is_gone(const struct alerts *a, uint32_t nic); /* the fleet doesn't know it */
void element_hold(struct alerts *a, uint32_t element);
void element_drop(struct alerts *a, uint32_t element);
bool cause_init(struct alerts *a);
const char *name_of_host(const struct alerts *a, uint32_t host, char *text, size_t size);
const char *name_of_nic(const struct alerts *a, uint32_t nic, char *text, size_t size);
const char *name_of_job(const struct alerts *a, uint64_t job, char *text, size_t size);

/* ---- incident_group.c ---- */
/* room: where its cause has no incident yet, one is looked for or made. */
void incident_group(struct alerts *a, struct instance *i, bool room);
/* The finding knows more: another suspect may mean another incident. */
void incident_regroup(struct alerts *a, struct instance *i, const struct alert_finding *f);
/* One of its alerts suspects another thing now: what all of them agree on is the cause, if it is finer. */
void incident_refine(struct alerts *a, struct incident *c);
/* Still pending: an incident of an earlier run that it would join isn't over. */
void incident_await(struct alerts *a, const struct instance *i);

/* ---- incident.c: the life of one; notify.c: who is told what ---- */
/* kept: of the alert that tells that there is no place. It may have the first one, if there is no other. */
struct incident *incident_new(struct alerts *a, uint32_t cause, bool kept);
void incident_take(struct alerts *a, struct incident *c, struct instance *i);
void incident_fall_quiet(struct alerts *a, struct incident *c); /* its last alert left */
void incident_leave(struct alerts *a, struct instance *i);
void incident_link(struct alerts *a, struct incident *c, struct instance *i);
void incident_unlink(struct alerts *a, struct incident *c, struct instance *i);
void incident_reopen(struct alerts *a, struct incident *c, struct mono since, bool audible);
/* It fires again before it was over: a page that it owes counts from here. */
void incident_wake(struct alerts *a, struct incident *c);
/* It took others in: a page that it owes counts from here, if something in it is one. */
void incident_owe(const struct alerts *a, struct incident *c);
/* Its cause is another one: as loud as its alerts are there. One that was told stays as it is unless some are hearsay. */
void incident_loudness(struct alerts *a, struct incident *c);
void incident_silence_changed(struct alerts *a, struct instance *i); /* after i->silenced was set */
void incident_tick(struct alerts *a, struct incident *c);
void incident_show(const struct alerts *a, const struct incident *c, struct alert_incident *ret);
void incident_say(struct alerts *a, struct incident *c, enum alert_event event, uint32_t receivers,
                  bool page);
void incident_changed(struct alerts *a, struct incident *c, bool at_once);
void incident_told(struct alerts *a, struct incident *c); /* tells what is due */
uint32_t receivers_of(const struct alerts *a, uint32_t severity);
struct mono incident_deadline(const struct alerts *a, const struct incident *c);
static inline uint32_t incident_number(const struct alerts *a, const struct incident *c)
{
    return (uint32_t)(c - a->incidents);
}
/* It doesn't know what it is about. */
static inline bool instance_is_unsure(const struct instance *i)
{
    return i->candidates > 0 || i->unplaced;
}
/* Of its causes, those first ones by which it may be one with others. The ends of a path are none where it is known what else
 * it may be. */
static inline uint32_t instance_shared(const struct instance *i)
{
    return i->candidates > 0 ? i->shared : i->cause_count;
}
/* That it is a page by now wakes somebody at once: nobody was woken yet, or that was before it came back unheard. One that owes
 * a page must last first. */
static inline bool page_is_new(const struct incident *c)
{
    return c->pages == 0 || !c->owes_page;
}
static inline bool incident_is_open(const struct incident *c)
{
    return c->state == INCIDENT_NEW || c->state == INCIDENT_OPEN || c->state == INCIDENT_QUIET;
}

/* ---- silence.c ---- */
bool silence_covers(const struct alerts *a, const struct instance *i);

/* ---- incident_merge.c ---- */
/* Does it share an element with enough others that began together? Then they are one. */
void incident_promote(struct alerts *a, struct incident *c);
void incident_absorb(struct alerts *a, struct incident *into, struct incident *c);
/* People know a part of it: they hear that it is larger than that, and not of something new. */
void incident_tell_larger(struct alerts *a, struct incident *into);

/* ---- incident_elements.c ---- */
bool incident_has(const struct incident *c, uint32_t element);
void incident_add_element(struct alerts *a, struct incident *c, uint32_t element);
void incident_remove_element(struct alerts *a, struct incident *c, uint32_t k); /* by its place */
void incident_clear_elements(struct alerts *a, struct incident *c);
/* Keeps what could explain the new alert as well, and the cause. */
void incident_narrow(struct alerts *a, struct incident *c, const struct instance *i);
void incident_set_cause(struct alerts *a, struct incident *c, uint32_t element);
/* Is its cause known; what may it be? After its alerts, or what they tell, changed. */
void incident_weigh(struct alerts *a, struct incident *c);
void incident_release(struct alerts *a, struct incident *c); /* holds no element any more */
/* Its cause's direction is what its alerts tell by now. true: it was another one. */
bool incident_direct(struct alerts *a, const struct incident *c);

/* ---- incident_split.c ---- */
/* Its alerts are about several finer things by now, and none about what it is called by: it becomes as many. */
void incident_split(struct alerts *a, struct incident *c);

/* ---- incident_phase.c ---- */
void phase_enter(const struct alerts *a, struct incident *c, const struct instance *i);
void phase_leave(const struct alerts *a, struct incident *c, const struct instance *i);
void phase_absorb(const struct alerts *a, struct incident *into, const struct incident *c);
/* Whether no alert of it is in the incident any more. */
bool phase_is_past(const struct alerts *a, const struct incident *c, const struct phase *p);

/* ---- text.c ---- */
void text_of_series(const struct alerts *a, struct instance *i);
void text_of_incident(struct alerts *a, struct incident *c);

/* ---- hash ---- */
bool hash_init(struct hash *h, uint32_t capacity);

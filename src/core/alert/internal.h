/* internal.h: the engine's memory, shared by its files. All of it is in pools that are claimed at the start. Items are named by
 * their index; NONE ends a list. */
#pragma once
#include "base/bug.h"
#include "core/alert/alert.h"

#define NONE           UINT32_MAX
#define BUILT_IN_RULES 3
#define RULE_DROPPED   1 /* index among the built-in rules */
#define WINDOW_BUCKETS 12
#define HOST_RULE      0xffffu /* the watch of a host's signs of life belongs to no rule */
#define ROUND_NS       (10 * NS_PER_S)
#define SWEEP_NS       (1 * NS_PER_S)
#define STALE_NS       (60 * NS_PER_S) /* a firing series without values for so long is stale */
/* a series without values for so long is over if its host still reports: it is no longer measured */
#define GONE_NS (900 * NS_PER_S)
#define GATHER_MAX_NS                                                                              \
    (1 * NS_PER_S) /* longest delay of a notification that looks like part of something larger */
/* an unplaced alert belongs to a switch's fault that began within this time */
#define SAME_ONSET_NS (1 * NS_PER_S)
#define RESTORED_NS   (300 * NS_PER_S) /* a restored incident must be confirmed within this time */

struct cause_element { /* an element that may be the cause of alerts */
    uint64_t key;
    struct element where;
    uint32_t host; /* its host; ALERT_NO_ID: several hosts, or none */
    uint32_t uses, next;
    uint32_t incidents; /* open incidents that it could explain */
    uint32_t owner;     /* the open or lately resolved incident with this cause; NONE */
    char name[ALERT_ELEMENT_MAX];
};

struct instance { /* one alert */
    uint64_t key, id;
    uint32_t chain;                         /* next in the hash chain */
    uint32_t before, after;                 /* in the list of all */
    uint32_t sibling_before, sibling_after; /* in the list of its incident */
    uint32_t rule, incident;
    uint8_t state, cause_count;
    /* shared: number of causes that it may have in common with others: the candidates, and larger elements that contain them */
    uint8_t shared;
    /* candidates: number of first causes that are possible, together with `others`; 0: the first cause is certain */
    uint8_t candidates;
    bool others;
    bool silenced, stale, holds; /* holds: the condition, as last judged */
    bool unplaced;               /* a dead or lossy path without any suspect */
    bool hearsay;                /* of a finding: see alert.h */
    struct mono since, fired, due, seen;
    uint32_t said_by, run;
    uint32_t host, nic, peer, port;
    uint64_t job;
    double value;
    uint32_t causes[ALERT_CAUSE_MAX];
    uint8_t directions[ALERT_CAUSE_MAX]; /* the direction of each cause, as this alert reports it */
    char text[ALERT_TEXT_MAX];
};

#define PHASE_MAX 4
struct phase { /* the time of one rule's alerts, or of all rules for the same findings */
    uint32_t rule;
    struct mono since, left; /* left: when the last of its alerts was over */
};

struct incident {
    uint64_t id, merged_into;
    uint32_t state, severity, cause, first; /* first: of its alerts */
    uint32_t loud;                          /* the worst severity that is not silenced */
    uint32_t common[ALERT_CAUSE_MAX], common_count;
    struct mono since, created, due, quiet, resolved, changed;
    struct mono told_at, told_last[ALERT_ROUTE_MAX], repage, quiet_until, change_next;
    uint8_t steps[ALERT_ROUTE_MAX];
    uint32_t unsure; /* number of its alerts without a certain suspect */
    uint32_t firing, audible, total, pages, reopened, sequence, told_receivers;
    bool told, owes_page; /* owes_page: it came back; if it lasts, it pages again */
    bool spoke;           /* it had an alert that was not silenced */
    bool placed;          /* some of its alerts have a suspect */
    bool promoted;        /* the cause is an element that several incidents shared */
    bool unknown;         /* no alert in it is sure of the cause: `called` has its name */
    bool proven;          /* an alert was sure of the cause; that alert may be over by now */
    bool queued, change_due;
    bool notify, notify_page;
    uint32_t notify_event, notify_receivers, queue_next;
    uint64_t rules_seen[(ALERT_RULE_MAX + BUILT_IN_RULES + 63) / 64];
    struct phase phases[PHASE_MAX]; /* the first phases since it was opened or came back */
    uint32_t phase_count;
    uint32_t news; /* notifications of new evidence */
    char by[ALERT_ELEMENT_MAX];
    struct mono acknowledged;
    struct element_choice choice;
    uint32_t choice_host; /* the host of all possible elements; ALERT_NO_ID: several */
    char called[ALERT_CALLED_MAX];
    char text[ALERT_TEXT_MAX];
};

struct watch { /* the state of one subject of a counter or an absence */
    uint64_t key;
    uint32_t chain, rule, host, nic, peer, port, window;
    bool used, silent;
    struct mono last, back; /* back: for a host, the time since which it reports without a gap */
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
struct round { /* one round of an aggregate */
    uint64_t key;
    uint32_t chain, rule;
    struct subject subject;
    bool used;
    struct mono start;
    uint64_t count;
    double weight, beyond; /* beyond: the weight of the values beyond the limit */
    double sum, max, min;  /* sum: weighted */
};

struct rule_state {
    struct mono last_input;
    uint32_t active; /* alerts of the rule, pending or firing */
    bool had_input;
};

/* A hash of indices into a pool; items are chained through the pool. base/hash_index.h can't remove single items, and alerts,
 * elements and watches end one by one. */
struct hash {
    uint32_t *heads;
    uint32_t mask;
};

struct alerts {
    struct alert_config config;
    struct mono start, now, deadline, sweep_due, host_seen, heartbeat_due;
    int64_t utc_offset_ns, fleet_offset_ns;

    struct alert_rule *rules; /* the caller's rules, then the built-in ones */
    struct rule_state *rule_states;
    uint32_t rule_count; /* number of the caller's rules */
    uint16_t by_metric[ALERT_METRIC_COUNT][ALERT_RULE_MAX];
    uint16_t by_metric_count[ALERT_METRIC_COUNT];

    struct instance *instances;
    uint32_t instance_max, instance_free, instance_head;
    /* the time at which an alert without a reporting host last found no room */
    struct mono no_room;
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
    uint32_t watch_max, watch_free, watch_top; /* top: the highest number in use so far */
    struct hash watch_hash;
    struct window *windows;
    uint32_t window_max, window_top, window_free;
    struct round *rounds;
    uint32_t round_max, round_top, round_free;
    struct hash round_hash;

    struct alert_silence silences[ALERT_SILENCE_MAX];
    uint32_t silence_count;

    uint32_t *scratch; /* instance_max counters, for counting by id */
    struct alert_counters counters;
    uint64_t dropped_said; /* the number of dropped items that the overflow alert has reported */
};

/* ---- engine.c: alerts ---- */
uint64_t subject_key(const struct alerts *a, uint32_t rule, const struct subject *s);
struct instance *instance_find(struct alerts *a, uint64_t key);
/* True for the alert that memory ran out. The first place among alerts, and among incidents if needed, is kept for it. */
static inline bool rule_has_place(const struct alerts *a, uint32_t rule)
{
    return rule == a->rule_count + RULE_DROPPED;
}
/* The condition holds: returns a new alert, or the existing one. NULL: out of memory. `since` MONO_NEVER: now. */
struct instance *instance_raise(struct alerts *a, uint32_t rule, uint64_t key, uint32_t said_by,
                                struct mono since);
/* the alert is over; it no longer exists after the call */
void instance_lower(struct alerts *a, struct instance *i);
/* Makes the alert fire if it is due. Its causes and text must be set. */
void instance_consider(struct alerts *a, struct instance *i);
bool host_is_silent(const struct alerts *a, uint32_t host);
/* True if the host reports for so long that an alert that it did not confirm in that time is over. */
bool host_is_back(const struct alerts *a, uint32_t host);

/* ---- series.c: samples into conditions ---- */
void series_on_sample(struct alerts *a, const struct alert_sample *sample);
void series_sweep(struct alerts *a);
void series_forget_host(struct alerts *a, uint32_t host); /* and series of paths to it */
void series_host_seen(struct alerts *a, uint32_t host);
bool series_init(struct alerts *a);

/* ---- cause.c: elements, and which of them could explain an alert ---- */
void causes_of_subject(struct alerts *a, struct instance *i, const struct subject *s);
void causes_of_finding(struct alerts *a, struct instance *i, const struct alert_finding *f);
void causes_of_rule(struct alerts *a, struct instance *i, const char *name);
void causes_release(struct alerts *a, struct instance *i);
/* Takes the element with that name; NONE: out of memory. */
uint32_t element_take(struct alerts *a, const struct element *where, const char *name);
/* the same, by its usual name */
uint32_t element_take_as(struct alerts *a, const struct element *where);
/* The rank from specific to general. With equal evidence the finer element is the cause. */
uint32_t element_rank(const struct alerts *a, uint32_t element);
/* The element's host; ALERT_NO_ID: several hosts, or none. */
uint32_t element_host(const struct alerts *a, const struct element *where);
bool nic_is_gone(const struct alerts *a, uint32_t nic); /* the fleet does not have it */
void element_hold(struct alerts *a, uint32_t element);
void element_drop(struct alerts *a, uint32_t element);
bool cause_init(struct alerts *a);
const char *name_of_host(const struct alerts *a, uint32_t host, char *text, size_t size);
const char *name_of_nic(const struct alerts *a, uint32_t nic, char *text, size_t size);
const char *name_of_job(const struct alerts *a, uint64_t job, char *text, size_t size);

/* ---- incident_group.c ---- */
/* room: if no incident has its cause, another one is searched or created. */
void incident_group(struct alerts *a, struct instance *i, bool room);
/* The finding got more exact: with another suspect the alert may move to another incident. */
void incident_regroup(struct alerts *a, struct instance *i, const struct alert_finding *f);
/* One of its alerts changed its suspect. If all agree on a finer cause, the incident takes it. */
void incident_refine(struct alerts *a, struct incident *c);
/* The alert is still pending: an incident of an earlier run that it would join must not end. */
void incident_await(struct alerts *a, const struct instance *i);

/* ---- incident.c: the life of one; notify.c: who is told what ---- */
/* kept: for the alert that memory ran out. It may get the first place, if no other is free. */
struct incident *incident_new(struct alerts *a, uint32_t cause, bool kept);
void incident_take(struct alerts *a, struct incident *c, struct instance *i);
void incident_fall_quiet(struct alerts *a, struct incident *c); /* its last alert has left */
void incident_leave(struct alerts *a, struct instance *i);
void incident_link(struct alerts *a, struct incident *c, struct instance *i);
void incident_unlink(struct alerts *a, struct incident *c, struct instance *i);
void incident_reopen(struct alerts *a, struct incident *c, struct mono since, bool audible);
/* It fires again before it was over: a page that it owes counts from here. */
void incident_wake(struct alerts *a, struct incident *c);
/* It took in other alerts: a page that it owes counts from here, if one of them is a page. */
void incident_owe(const struct alerts *a, struct incident *c);
/* Its cause changed: its severity is that of its alerts for the new cause. An incident that was notified keeps its severity
 * unless some alerts are hearsay. */
void incident_loudness(struct alerts *a, struct incident *c);
void incident_silence_changed(struct alerts *a, struct instance *i); /* after i->silenced was set */
void incident_tick(struct alerts *a, struct incident *c);
void incident_show(const struct alerts *a, const struct incident *c, struct alert_incident *ret);
void incident_say(struct alerts *a, struct incident *c, enum alert_event event, uint32_t receivers,
                  bool page);
void incident_changed(struct alerts *a, struct incident *c, bool at_once);
void incident_told(struct alerts *a, struct incident *c); /* sends the notifications that are due */
uint32_t receivers_of(const struct alerts *a, uint32_t severity);
struct mono incident_deadline(const struct alerts *a, const struct incident *c);
static inline uint32_t incident_number(const struct alerts *a, const struct incident *c)
{
    return (uint32_t)(c - a->incidents);
}
/* True if the alert's suspect is not certain. */
static inline bool instance_is_unsure(const struct instance *i)
{
    return i->candidates > 0 || i->unplaced;
}
/* The number of first causes that may connect it with other alerts. If the possible elements are known, the ends of the path do
 * not count. */
static inline uint32_t instance_shared(const struct instance *i)
{
    return i->candidates > 0 ? i->shared : i->cause_count;
}
/* True if a new page must be sent at once: there was no page yet, or the last one was before it came back unnoticed. An incident
 * that owes a page must last first. */
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
/* If the incident shares an element with enough others that began together, they become one. */
void incident_promote(struct alerts *a, struct incident *c);
void incident_absorb(struct alerts *a, struct incident *into, struct incident *c);
/* People know a part of it. The notification reports that it is larger, not that it is new. */
void incident_tell_larger(struct alerts *a, struct incident *into);

/* ---- incident_elements.c ---- */
bool incident_has(const struct incident *c, uint32_t element);
void incident_add_element(struct alerts *a, struct incident *c, uint32_t element);
void incident_remove_element(struct alerts *a, struct incident *c, uint32_t k); /* by its index */
void incident_clear_elements(struct alerts *a, struct incident *c);
/* Keeps only elements that could also explain the new alert, and the cause. */
void incident_narrow(struct alerts *a, struct incident *c, const struct instance *i);
void incident_set_cause(struct alerts *a, struct incident *c, uint32_t element);
/* Decides whether its cause is known, or which elements are possible. Called after its alerts or their suspects changed. */
void incident_weigh(struct alerts *a, struct incident *c);
void incident_release(struct alerts *a, struct incident *c); /* afterwards it holds no element */
/* Sets the direction of its cause from its alerts. true: the direction changed. */
bool incident_direct(struct alerts *a, const struct incident *c);

/* ---- incident_split.c ---- */
/* If its alerts are about several finer elements, and none about its present cause, the incident is split into so many. */
void incident_split(struct alerts *a, struct incident *c);

/* ---- incident_phase.c ---- */
void phase_enter(const struct alerts *a, struct incident *c, const struct instance *i);
void phase_leave(const struct alerts *a, struct incident *c, const struct instance *i);
void phase_absorb(const struct alerts *a, struct incident *into, const struct incident *c);
/* True if no alert of that phase is in the incident any more. */
bool phase_is_past(const struct alerts *a, const struct incident *c, const struct phase *p);

/* ---- text.c ---- */
void text_of_series(const struct alerts *a, struct instance *i);
void text_of_incident(struct alerts *a, struct incident *c);

/* ---- hash ---- */
bool hash_init(struct hash *h, uint32_t capacity);

/* alert.h: from what the fleet reports to what people are told.
 *
 * Facts go in: a sample of a series, a finding that opens or closes, a sign of life of a host. Rules (rule.h) turn
 * them into alerts (pending, firing, over). Alerts with one cause become one incident, and incidents become
 * notifications: opened, worse, escalated, repeated, resolved.
 *
 * WHAT IS UNKNOWN IS CALLED SO. A finding whose suspect isn't known tells what it may be. An incident of such findings alone is
 * `unknown, one of …`: what all of them may come from. It joins those of the same moment that may be the same thing, and takes
 * the name, in place, from the first finding that is sure.
 *
 * ONE CAUSE, ONE INCIDENT. Every alert names the elements that could explain it, the most specific first: what its
 * finding suspects, else where it was seen (path, NIC, host, leaf). It joins the open incident whose cause is among
 * them (one of `info` alone takes in what is louder only if its cause is the alert's first element); else it opens one
 * of its own, with its most specific element as cause. As soon as `promote` incidents that
 * began within `together` of each other share an element (64 trunks of one spine, the NICs of one host), they are
 * merged and the shared element is the cause. Only those count that are as sure as each other: guesses at a spine are no evidence
 * that a trunk which is known is the spine. Two links that fail for themselves share nothing with enough
 * others, and stay two. Told is an incident only `wait` after it began, and a little later when it looks as if it
 * were part of something larger.
 *
 * NOBODY IS WOKEN FOR NOTHING. An alert that a silence or a maintenance window covers is kept and shown, and told
 * only if it outlives it. An incident that comes back within `reopen` is the same one; it pages again
 * only when it lasts `repage`. Alerts of a host that is itself silent are frozen: what isn't seen can't get worse.
 *
 * A MONITOR THAT FAILS SAYS SO. A rule whose series no longer comes although hosts report is an alert itself, and
 * so are memory that ran out and a rule file that was refused; a firing series that no longer comes is marked
 * stale, not cured. The dead man's switch is a notification that comes as long as the engine runs.
 *
 * Names of hosts and NICs are the caller's (struct alert_fleet): ids in, text out. All memory is claimed at the
 * start; what no longer fits is counted and said. Deterministic: the same calls give the same actions. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/time.h"
#include "core/alert/rule.h"
#include "core/finding/finding.h"

#define ALERT_RULE_MAX    256
#define ALERT_CAUSE_MAX   8  /* elements that could explain one alert */
#define ALERT_ELEMENT_MAX 64 /* characters of an element's name */
#define ALERT_CALLED_MAX                                                                           \
    288 /* of what an incident is called: several elements, where it is unknown which */
#define ALERT_TEXT_MAX     640 /* a sentence */
#define ALERT_ROUTE_MAX    16
#define ALERT_STEP_MAX     4 /* of escalation, per route */
#define ALERT_RECEIVER_MAX 32
#define ALERT_SILENCE_MAX  256
#define ALERT_NO_ID        UINT32_MAX

/* Where a NIC is. Texts are read at once, not kept. */
struct alert_nic {
    const char *name; /* "host3/ib0" */
    const char *leaf; /* NULL or empty: not known */
    uint32_t host, rail;
};
/* The caller's tables. A NULL function or a false result: "nic 7", "host 3", "job 5" stand in. */
struct alert_fleet {
    bool (*nic)(void *context, uint32_t nic, struct alert_nic *ret_nic);
    const char *(*host)(void *context, uint32_t host);
    const char *(*job)(void *context, uint64_t job);
    uint64_t (*tenant)(void *context, uint32_t host);  /* whose it is; NULL: each its own */
    uint32_t (*find)(void *context, const char *host); /* ALERT_NO_ID: nobody is called so */
    void *context;
};

/* Who is told what, from a severity up. */
struct alert_route {
    uint32_t severity;  /* at least this */
    uint32_t receivers; /* bit per receiver */
    struct span repeat; /* tell again while it goes on unacknowledged; 0: never */
    struct {
        struct span after; /* of the first telling, unacknowledged */
        uint32_t receivers;
    } steps[ALERT_STEP_MAX];
    uint32_t step_count;
};

struct alert_config {
    const struct alert_rule *rules; /* copied */
    size_t rule_count;
    struct alert_route routes[ALERT_ROUTE_MAX];
    size_t route_count;
    struct alert_fleet fleet;
    struct span keep;      /* an incident without alerts is over after it; 0: 1 min */
    struct span reopen;    /* what comes back within it is the same incident; 0: 1 h */
    struct span repage;    /* a reopened one pages again after lasting so long; 0: 5 min */
    struct span together;  /* onset of alerts that may have one cause; 0: 30 s */
    struct span grace;     /* after a maintenance window; 0: 10 min */
    struct span silent;    /* a host that says nothing for so long is not judged by; 0: 30 s */
    struct span blind;     /* a rule that gets no data for so long can't be evaluated; 0: 10 min */
    struct span heartbeat; /* of the dead man's switch; 0: none */
    uint32_t heartbeat_receivers;
    uint32_t promote;        /* incidents that share an element and become one; 0: 3 */
    uint64_t first_incident; /* number of the next incident: above all of earlier runs */
    uint32_t alert_max;      /* alerts at once; 0: 16384 */
    uint32_t incident_max;   /* incidents kept, open and just resolved; 0: 2048 */
    uint32_t watch_max;      /* subjects of counters and absence; 0: 262144 */
};

/* A measured value. ALERT_NO_ID for what doesn't apply. */
struct alert_sample {
    uint32_t metric; /* enum alert_metric */
    uint32_t host, nic, peer, port;
    uint32_t
        weight; /* in means and shares of many; 0: as one. A host's together are the time they are of, 4 ns each */
    uint64_t job;
    double value;
};

/* A finding as a host says it. Texts are copied. */
struct alert_finding {
    uint32_t said_by; /* host */
    uint32_t run;     /* of that host's agent: numbers start anew with each */
    uint32_t number;
    uint32_t kind;  /* enum finding_kind */
    uint32_t phase; /* enum finding_phase */
    uint32_t from_nic, to_nic, from_host, to_host, port;
    struct element suspect;       /* for sure; its hosts and NICs as above */
    struct element_choice choice; /* of an unknown one: what it may be */
    bool hearsay; /* accuses what isn't the sayer's: on one tenant's word alone nobody is woken */
    struct mono since; /* as it says: for people, and for what began together */
    struct mono
        heard; /* by the caller itself, the first time: from here on it must hold for a rule's `for` */
    const char *text; /* the whole sentence */
};

enum alert_state { ALERT_FREE, ALERT_PENDING, ALERT_FIRING, ALERT_OVER };

/* One alert as it is shown. */
struct alert {
    uint64_t id;
    uint64_t incident; /* 0: none (pending, or no memory) */
    uint32_t rule;     /* index; of a built-in one: at least the count of rules */
    uint8_t state;     /* enum alert_state */
    uint8_t severity;
    bool silenced; /* by a silence or maintenance window */
    bool stale;    /* not confirmed: its series or its host no longer comes */
    struct mono since, fired;
    uint32_t host, nic, peer, port;
    uint64_t job;
    double value;
    const char *rule_name;
    const char *text;
};

enum alert_incident_state {
    INCIDENT_FREE,
    INCIDENT_NEW,   /* gathering */
    INCIDENT_OPEN,  /* told, or silenced */
    INCIDENT_QUIET, /* no alert fires any more: over in a moment */
    INCIDENT_RESOLVED,
    INCIDENT_MERGED /* into another */
};

struct alert_incident {
    uint64_t id;
    uint64_t merged_into;         /* of a merged one */
    uint32_t state;               /* enum alert_incident_state */
    uint32_t severity;            /* the worst it had */
    struct element element;       /* the cause */
    struct element_choice choice; /* of an unknown one: what it may be */
    const char *cause; /* the same in words: "spine1", "unknown, one of spine1 and others" */
    char host[ALERT_ELEMENT_MAX]; /* whose the cause is; empty: of several hosts, or of none */
    struct mono since, changed, resolved;
    uint32_t alerts_firing, alerts_total, hosts,
        links;         /* now firing; ever; distinct among those firing */
    uint32_t sequence; /* of the last telling */
    uint32_t pages;    /* how often somebody was woken */
    uint32_t reopened;
    bool told, silenced;
    bool owes_page;              /* it came back: if it lasts somebody is woken again */
    const char *acknowledged_by; /* NULL: nobody */
    struct mono acknowledged;
    const char *text; /* the sentence */
};

enum alert_event {
    ALERT_OPENED,
    ALERT_WORSE,    /* severity rose, new evidence came, or the cause turned out to be larger */
    ALERT_REOPENED, /* came back; no page yet */
    ALERT_ESCALATED,
    ALERT_REPEATED,
    ALERT_ACKNOWLEDGED,
    ALERT_RESOLVED,
    ALERT_ABSORBED, /* part of another incident, whose number is in merged_into */
    ALERT_HEARTBEAT
};

enum alert_action_kind {
    ALERT_ACTION_INCIDENT, /* this incident changed: store it, show it */
    ALERT_ACTION_NOTIFY    /* tell the receivers */
};

/* What to do. Texts are valid until the next call. */
struct alert_action {
    uint32_t kind;  /* enum alert_action_kind */
    uint32_t event; /* enum alert_event, of ALERT_ACTION_NOTIFY */
    uint32_t receivers;
    uint32_t sequence; /* with the incident's number: the idempotency key */
    bool page;         /* somebody is to be woken */
    struct alert_incident incident;
};

/* What a silence or a maintenance window covers: all of the patterns that aren't empty ('*' and '?'). */
struct alert_match {
    char rule[ALERT_NAME_MAX];
    char host[ALERT_ELEMENT_MAX];    /* any host that could explain the alert */
    char element[ALERT_ELEMENT_MAX]; /* any element that could explain it: "spine1", "host3/ib0" */
};
struct alert_silence {
    uint64_t id;      /* the caller's; not 0 */
    bool maintenance; /* also covers what began in it, until `grace` after its end */
    int64_t from_utc_ns, until_utc_ns;
    struct span every; /* comes back; 0: once */
    struct alert_match match;
};

/* An incident of an earlier run, open then: nobody is told of it again. */
struct alert_restore {
    uint64_t id;
    uint32_t severity, sequence, pages;
    const char *cause; /* as it was shown */
    struct element element;
    struct element_choice choice;
    struct mono since;
    bool told, owes_page;
    const char *acknowledged_by; /* NULL */
    const char *text;
};

struct alerts;
/* NULL: no memory, or a rule that alert_rule_check refuses. */
struct alerts *alerts_new(const struct alert_config *config, struct mono now);
void alerts_free(struct alerts *a); /* accepts NULL */

/* How `now` maps to UTC and fleet time: UTC = now + utc_offset_ns. FINDING_NO_TIME: not known. */
void alerts_on_clock(struct alerts *a, struct mono now, int64_t utc_offset_ns,
                     int64_t fleet_offset_ns);
void alerts_on_sample(struct alerts *a, struct mono now, const struct alert_sample *sample);
void alerts_on_finding(struct alerts *a, struct mono now, const struct alert_finding *finding);
/* A sign of life: any report of that host. */
void alerts_on_host(struct alerts *a, struct mono now, uint32_t host);
/* Its agent started anew: findings of earlier runs are over. */
void alerts_on_run(struct alerts *a, struct mono now, uint32_t host, uint32_t run);
/* No longer of the fleet, nor known by its table: its alerts and those on paths to it are over, its silence is none. */
void alerts_on_host_removed(struct alerts *a, struct mono now, uint32_t host);
/* It has ended, well or not: nothing about its series is wrong any more. */
void alerts_on_job_over(struct alerts *a, struct mono now, uint64_t job);
/* A rule file was refused: words say why; NULL: it is in order again. */
void alerts_on_rules_refused(struct alerts *a, struct mono now, const char *words);

/* -ENOSPC, -EINVAL (id 0, nothing matched, an end before its beginning). The same id again replaces. */
MUST_CHECK int alerts_silence(struct alerts *a, struct mono now,
                              const struct alert_silence *silence);
MUST_CHECK int alerts_unsilence(struct alerts *a, struct mono now, uint64_t id); /* -ENOENT */
/* Stops repeats and escalation until it is resolved. -ENOENT: no such open incident. */
MUST_CHECK int alerts_acknowledge(struct alerts *a, struct mono now, uint64_t incident,
                                  const char *by);
/* Before the first event. -ENOSPC. */
MUST_CHECK int alerts_restore(struct alerts *a, struct mono now,
                              const struct alert_restore *incident);

/* Handles what is due by time alone: ends of windows, of waits and of silences. Call it at alerts_deadline() or later. */
void alerts_tick(struct alerts *a, struct mono now);
/* What to do, until false: a heartbeat that is due, then incidents in the order in which they changed. Texts in it are valid
 * until the next call that changes something. */
bool alerts_next_action(struct alerts *a, struct alert_action *ret_action);
/* When to tick next. */
struct mono alerts_deadline(const struct alerts *a);

/* Walks: start with *cursor 0; false at the end. Texts are valid until the next call that changes something. */
bool alerts_next_alert(const struct alerts *a, size_t *cursor, struct alert *ret);
bool alerts_next_incident(const struct alerts *a, size_t *cursor, struct alert_incident *ret);
bool alerts_find_incident(const struct alerts *a, uint64_t id, struct alert_incident *ret);
/* Is it in force at that time? ret_until_ns (may be NULL): the end of its present or next occurrence. */
bool alert_silence_active(const struct alert_silence *silence, int64_t utc_ns,
                          int64_t *ret_until_ns);

struct alert_counters {
    uint64_t samples, findings, notifications, pages;
    uint64_t alerts_dropped, watches_dropped, incidents_dropped; /* no memory */
    uint32_t pending, firing, incidents_open, watches;
};
/* Counts since alerts_new(); pending, firing, incidents_open and watches are as of now. */
void alerts_counters(const struct alerts *a, struct alert_counters *ret);
const char *alert_event_word(uint32_t event); /* "opened", … */
const char *alert_state_word(uint32_t state); /* "pending", "firing" */
const char *
alert_incident_state_word(uint32_t state); /* "new", "open", "quiet", "resolved", "merged" */
/* '*' any run of characters, '?' one. */
bool alert_glob(const char *pattern, const char *text);

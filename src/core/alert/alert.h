/* alert.h: turns the fleet's reports into notifications for people.
 *
 * Facts go in: a sample of a series, a finding that opens or closes, a sign of life of a host. Rules (rule.h) turn them into
 * alerts (pending, firing, over). Alerts with one cause become one incident. Incidents become notifications: opened, worse,
 * escalated, repeated, resolved.
 *
 * UNKNOWN STAYS UNKNOWN. A finding with an unknown suspect names the possible elements. An incident of only such findings is
 * called `unknown, one of …`: the elements that could explain all of them. It joins an incident that began at the same time and
 * may have the same cause. The first finding with a certain suspect gives it its name.
 *
 * ONE CAUSE, ONE INCIDENT. Every alert names the elements that could explain it, the most specific first: the suspect of its
 * finding, or else its place (path, NIC, host, leaf). It joins the open incident with one of them as cause. An incident of `info`
 * alone takes in a more severe alert only if its cause is the alert's first element. Without such an incident the alert opens
 * one, with its most specific element as cause. When `promote` incidents that began within `together` of each other share an
 * element (64 trunks of one spine, the NICs of one host), they are merged, and the shared element is the cause. Only equally
 * certain incidents count: guesses at a spine are no evidence that a known trunk's cause is the spine. Two independent failed
 * links share no element with enough others, and stay two incidents. An incident is first notified `wait` after it began, and a
 * little later if it looks like a part of something larger.
 *
 * NO NEEDLESS PAGES. An alert under a silence or a maintenance window is kept and shown. It is notified only if it lasts longer
 * than the silence. An incident that comes back within `reopen` is the same one; it pages again only if it lasts `repage`. Alerts
 * of a silent host are frozen: without data they can't get worse.
 *
 * THE MONITOR REPORTS ITS OWN FAILURES. Three conditions are alerts themselves: a rule whose series stopped although hosts
 * report, memory that ran out, and a rule file that was refused. A firing alert whose series stopped is marked stale; it is not
 * over. The dead man's switch is a notification that is sent as long as the engine runs.
 *
 * The caller has the names of hosts and NICs (struct alert_fleet): ids go in, text comes out. All memory is claimed at the start.
 * Items that do not fit are counted and reported. The engine is deterministic: the same calls give the same actions. */
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
    288 /* the name of an incident: it has several elements if the cause is not known */
#define ALERT_TEXT_MAX     640 /* of a sentence */
#define ALERT_ROUTE_MAX    16
#define ALERT_STEP_MAX     4 /* of escalation, for each route */
#define ALERT_RECEIVER_MAX 32
#define ALERT_SILENCE_MAX  256
#define ALERT_NO_ID        UINT32_MAX

/* The place of a NIC. The texts are copied by the call. */
struct alert_nic {
    const char *name; /* "host3/ib0" */
    const char *leaf; /* NULL or empty: not known */
    uint32_t host, rail;
};
/* The caller's tables. If a function is NULL or returns false, "nic 7", "host 3" or "job 5" is used. */
struct alert_fleet {
    bool (*nic)(void *context, uint32_t nic, struct alert_nic *ret_nic);
    const char *(*host)(void *context, uint32_t host);
    const char *(*job)(void *context, uint64_t job);
    /* the host's tenant; NULL: each host is a tenant of its own */
    uint64_t (*tenant)(void *context, uint32_t host);
    uint32_t (*find)(void *context, const char *host); /* ALERT_NO_ID: no host has this name */
    void *context;
};

/* The receivers of notifications of a severity and above. */
struct alert_route {
    uint32_t severity;  /* the lowest severity */
    uint32_t receivers; /* one bit for each receiver */
    struct span repeat; /* repeats while an incident is not acknowledged; 0: never */
    struct {
        struct span after; /* after the first notification, if not acknowledged */
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
    struct span keep; /* an incident without alerts is over after this time; 0: 1 min */
    /* an incident that comes back within this time is the same one; 0: 1 h */
    struct span reopen;
    struct span repage;   /* a reopened incident pages again after this time; 0: 5 min */
    struct span together; /* alerts with one cause begin within this time; 0: 30 s */
    struct span grace;    /* the grace time after a maintenance window; 0: 10 min */
    /* a host without reports for this time is silent: it is not judged; 0: 30 s */
    struct span silent;
    struct span blind;     /* a rule without data for this time can't be evaluated; 0: 10 min */
    struct span heartbeat; /* the interval of the dead man's switch; 0: none */
    uint32_t heartbeat_receivers;
    uint32_t promote;        /* so many incidents that share an element become one; 0: 3 */
    uint64_t first_incident; /* number of the next incident: above all numbers of earlier runs */
    uint32_t alert_max;      /* alerts at the same time; 0: 16384 */
    /* incidents that are kept: open ones and just resolved ones; 0: 2048 */
    uint32_t incident_max;
    uint32_t watch_max; /* subjects of counters and absence; 0: 262144 */
};

/* A measured value. ALERT_NO_ID for fields that don't apply. */
struct alert_sample {
    uint32_t metric; /* enum alert_metric */
    uint32_t host, nic, peer, port;
    /* its weight in means and shares; 0: 1. For values of a whole host: the time that they cover, in units of 4 ns */
    uint32_t weight;
    uint64_t job;
    double value;
};

/* A finding as a host reports it. Texts are copied. */
struct alert_finding {
    uint32_t said_by; /* the host that reports it */
    uint32_t run;     /* the run of that host's agent: each run numbers its findings anew */
    uint32_t number;
    uint32_t kind;  /* enum finding_kind */
    uint32_t phase; /* enum finding_phase */
    uint32_t from_nic, to_nic, from_host, to_host, port;
    struct element suspect;       /* the certain suspect; its hosts and NICs are ids as above */
    struct element_choice choice; /* the possible elements of an unknown suspect */
    bool hearsay; /* it accuses an element of another tenant: such a report alone pages nobody */
    /* as the host reports it: shown to people, and used to find alerts that began together */
    struct mono since;
    struct mono heard; /* when the caller first got it: a rule's `for` begins here */
    const char *text;  /* the whole finding as a sentence */
};

enum alert_state { ALERT_FREE, ALERT_PENDING, ALERT_FIRING, ALERT_OVER };

/* One alert, for display. */
struct alert {
    uint64_t id;
    uint64_t incident; /* 0: none (the alert is pending, or memory ran out) */
    uint32_t rule;     /* the rule's index; built-in rules follow the caller's rules */
    uint8_t state;     /* enum alert_state */
    uint8_t severity;
    bool silenced; /* by a silence or a maintenance window */
    bool stale;    /* not confirmed: its series or its host stopped reporting */
    struct mono since, fired;
    uint32_t host, nic, peer, port;
    uint64_t job;
    double value;
    const char *rule_name;
    const char *text;
};

enum alert_incident_state {
    INCIDENT_FREE,
    INCIDENT_NEW,   /* collecting alerts, not notified yet */
    INCIDENT_OPEN,  /* notified, or silenced */
    INCIDENT_QUIET, /* no alert fires any more; it is over after `keep` */
    INCIDENT_RESOLVED,
    INCIDENT_MERGED /* merged into another incident */
};

struct alert_incident {
    uint64_t id;
    uint64_t merged_into;         /* for a merged incident: the other one */
    uint32_t state;               /* enum alert_incident_state */
    uint32_t severity;            /* the worst severity so far */
    struct element element;       /* the cause */
    struct element_choice choice; /* the possible elements of an unknown cause */
    const char *cause; /* the cause in words: "spine1", "unknown, one of spine1 and others" */
    char host[ALERT_ELEMENT_MAX]; /* the host of the cause; empty: several hosts, or none */
    struct mono since, changed, resolved;
    uint32_t alerts_firing, alerts_total, hosts,
        links;         /* firing now; so far; distinct links among those firing */
    uint32_t sequence; /* the number of its last notification */
    uint32_t pages;    /* number of pages sent */
    uint32_t reopened;
    bool told, silenced;
    bool owes_page;              /* it came back: if it lasts, it pages again */
    const char *acknowledged_by; /* NULL: not acknowledged */
    struct mono acknowledged;
    const char *text; /* the incident as a sentence */
};

enum alert_event {
    ALERT_OPENED,
    ALERT_WORSE,    /* its severity rose, new evidence came, or its cause turned out to be larger */
    ALERT_REOPENED, /* it came back; there is no page yet */
    ALERT_ESCALATED,
    ALERT_REPEATED,
    ALERT_ACKNOWLEDGED,
    ALERT_RESOLVED,
    ALERT_ABSORBED, /* it became part of another incident, whose number is in merged_into */
    ALERT_HEARTBEAT
};

enum alert_action_kind {
    ALERT_ACTION_INCIDENT, /* the incident changed: store and show it */
    ALERT_ACTION_NOTIFY    /* send a notification to the receivers */
};

/* What the caller must do. Texts are valid until the next call. */
struct alert_action {
    uint32_t kind;  /* enum alert_action_kind */
    uint32_t event; /* enum alert_event, of ALERT_ACTION_NOTIFY */
    uint32_t receivers;
    uint32_t sequence; /* unique together with the incident's number: the idempotency key */
    bool page;         /* the notification is a page */
    struct alert_incident incident;
};

/* What a silence or a maintenance window covers: an alert must match all non-empty patterns ('*' and '?'). */
struct alert_match {
    char rule[ALERT_NAME_MAX];
    char host[ALERT_ELEMENT_MAX]; /* matches if any host that could explain the alert matches */
    /* matches if any element that could explain it matches: "spine1", "host3/ib0" */
    char element[ALERT_ELEMENT_MAX];
};
struct alert_silence {
    uint64_t id; /* chosen by the caller; not 0 */
    /* a maintenance window: it also covers alerts that began in it, until `grace` after its end */
    bool maintenance;
    int64_t from_utc_ns, until_utc_ns;
    struct span every; /* the period of a repeated window; 0: once */
    struct alert_match match;
};

/* An open incident of an earlier run. It is not notified as new. */
struct alert_restore {
    uint64_t id;
    uint32_t severity, sequence, pages;
    const char *cause; /* as it was shown */
    struct element element;
    struct element_choice choice;
    struct mono since;
    bool told, owes_page;
    const char *acknowledged_by; /* NULL: not acknowledged */
    const char *text;
};

struct alerts;
/* NULL: out of memory, or a rule that alert_rule_check() refuses. */
struct alerts *alerts_new(const struct alert_config *config, struct mono now);
void alerts_free(struct alerts *a); /* NULL is allowed */

/* The map from `now` to UTC and fleet time: UTC = now + utc_offset_ns. FINDING_NO_TIME: not known. */
void alerts_on_clock(struct alerts *a, struct mono now, int64_t utc_offset_ns,
                     int64_t fleet_offset_ns);
void alerts_on_sample(struct alerts *a, struct mono now, const struct alert_sample *sample);
void alerts_on_finding(struct alerts *a, struct mono now, const struct alert_finding *finding);
/* A sign of life: any report of that host. */
void alerts_on_host(struct alerts *a, struct mono now, uint32_t host);
/* The host's agent restarted: findings of its earlier runs are over. */
void alerts_on_run(struct alerts *a, struct mono now, uint32_t host, uint32_t run);
/* The host left the fleet; the caller's table must not have it any more. Its alerts and those of paths to it are over, and it no
 * longer counts as silent. */
void alerts_on_host_removed(struct alerts *a, struct mono now, uint32_t host);
/* The job has ended, with or without an error. Alerts about its series are over. */
void alerts_on_job_over(struct alerts *a, struct mono now, uint64_t job);
/* A rule file was refused; words: the reason. NULL: a later file was accepted. */
void alerts_on_rules_refused(struct alerts *a, struct mono now, const char *words);

/* -ENOSPC; -EINVAL (id 0, no pattern, an end before the beginning). The same id again replaces the silence. */
MUST_CHECK int alerts_silence(struct alerts *a, struct mono now,
                              const struct alert_silence *silence);
MUST_CHECK int alerts_unsilence(struct alerts *a, struct mono now, uint64_t id); /* -ENOENT */
/* Stops repeats and escalation until the incident is resolved. -ENOENT: no such open incident. */
MUST_CHECK int alerts_acknowledge(struct alerts *a, struct mono now, uint64_t incident,
                                  const char *by);
/* Must be called before the first event. -ENOSPC. */
MUST_CHECK int alerts_restore(struct alerts *a, struct mono now,
                              const struct alert_restore *incident);

/* Does what is due by time: ends of windows, waits and silences. It must be called at alerts_deadline() or later. */
void alerts_tick(struct alerts *a, struct mono now);
/* Returns the next action: first a heartbeat that is due, then incidents in the order in which they changed. False: no more.
 * Texts are valid until the next call that changes something. */
bool alerts_next_action(struct alerts *a, struct alert_action *ret_action);
/* The time of the next call of alerts_tick(). */
struct mono alerts_deadline(const struct alerts *a);

/* Walk over all: start with *cursor 0; false at the end. Texts are valid until the next call that changes something. */
bool alerts_next_alert(const struct alerts *a, size_t *cursor, struct alert *ret);
bool alerts_next_incident(const struct alerts *a, size_t *cursor, struct alert_incident *ret);
bool alerts_find_incident(const struct alerts *a, uint64_t id, struct alert_incident *ret);
/* True if the silence is in force at that time. ret_until_ns (may be NULL): the end of its present or next occurrence. */
bool alert_silence_active(const struct alert_silence *silence, int64_t utc_ns,
                          int64_t *ret_until_ns);

struct alert_counters {
    uint64_t samples, findings, notifications, pages;
    /* dropped because no memory was left */
    uint64_t alerts_dropped, watches_dropped, incidents_dropped;
    uint32_t pending, firing, incidents_open, watches;
};
/* Counts since alerts_new(). pending, firing, incidents_open and watches are present values. */
void alerts_counters(const struct alerts *a, struct alert_counters *ret);
const char *alert_event_word(uint32_t event); /* "opened", … */
const char *alert_state_word(uint32_t state); /* "pending", "firing" */
const char *
alert_incident_state_word(uint32_t state); /* "new", "open", "quiet", "resolved", "merged" */
/* '*' matches any run of characters, '?' any single one. */
bool alert_glob(const char *pattern, const char *text);

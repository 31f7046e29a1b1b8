/* brain.h: all judgements about a fleet, behind one entry.
 *
 * The parts are hosts (core/fleet/fleet.h), the inquiry into losses (core/fleet/inquiry.h), alerts (core/alert/alert.h), service
 * levels (core/fleet/level.h) and trials of a configuration (core/fleet/rollout.h). All their facts pass through brain_tell(),
 * with the time, and no fact takes another way. So a witness sees all facts, all answers and all names. That is enough to repeat
 * a run: service/record/brain_record.h records it, and `foliot sim replay` passes it to the same code.
 *
 * Pure: time is an argument. Functions that only read (fleet_host_health, alerts_next_incident, …) are called on the parts
 * themselves. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "core/alert/alert.h"
#include "core/fleet/fleet.h"
#include "core/fleet/inquiry.h"
#include "core/fleet/level.h"
#include "core/fleet/rollout.h"

struct brain;

/* Each fact with the struct that brain_tell() takes, and with its result; without one the result is 0. The numbers are written
 * into recordings. */
enum brain_fact {
    BRAIN_TERMS,   /* struct fleet_terms: from now on hosts are judged. -ENOMEM */
    BRAIN_ROOM,    /* struct brain_room: for fleet_make_room(). -ENOMEM */
    BRAIN_MEMBER,  /* struct fleet_member */
    BRAIN_HEARD,   /* struct brain_heard */
    BRAIN_REPORT,  /* struct fleet_report */
    BRAIN_RUN,     /* struct brain_run: findings of other runs are over, for hosts and for alerts */
    BRAIN_FINDING, /* struct alert_finding: for hosts and for alerts */
    BRAIN_HOSTS_TICK, /* NULL */
    BRAIN_HOSTS_NEXT, /* NULL; 1: the answer has a host; 0: no more */
    BRAIN_INQUIRY,    /* struct brain_inquiry: from now on losses are examined. -ENOMEM */
    BRAIN_PATH,       /* struct brain_path */
    BRAIN_LOOK,       /* NULL */
    BRAIN_PLACE,      /* struct brain_place; 1: the answer has an element; 0: no element is named */
    /* struct alert_config without its names: makes a new engine. -ENOMEM: the old engine stays */
    BRAIN_RULES,
    BRAIN_CLOCK,       /* struct brain_clock */
    BRAIN_SAMPLE,      /* struct alert_sample */
    BRAIN_HOST,        /* struct brain_host: a sign of life, for alerts */
    BRAIN_HOST_GONE,   /* struct brain_host */
    BRAIN_JOB_OVER,    /* struct brain_job */
    BRAIN_REFUSED,     /* struct brain_words: about a rule file */
    BRAIN_SILENCE,     /* struct alert_silence. Result of alerts_silence() */
    BRAIN_UNSILENCE,   /* struct brain_incident. Result of alerts_unsilence() */
    BRAIN_ACKNOWLEDGE, /* struct brain_incident. Result of alerts_acknowledge() */
    BRAIN_RESTORE,     /* struct alert_restore. Result of alerts_restore() */
    BRAIN_ALERTS_TICK, /* NULL */
    BRAIN_ALERTS_NEXT, /* NULL; 1: the answer has an alert; 0: no more */
    /* struct brain_level: a round of the level is over. 1: its verdict changed; the answer always has the level */
    BRAIN_LEVEL,
    /* struct brain_canary; 1: the canary is bad in some way; the answer always has the trial */
    BRAIN_CANARY,
    /* struct rollout_facts with all canaries; returns enum rollout_verdict, and the answer has `why` */
    BRAIN_TRIAL,
    BRAIN_FACT_COUNT
};

struct brain_room {
    uint32_t hosts, nics;
};
struct brain_heard {
    uint32_t host;
    struct span beat, report;
};
struct brain_run {
    uint32_t host, run;
};
struct brain_inquiry {
    uint32_t paths;
    struct span report;
};
struct brain_path {
    struct mono at; /* of the report */
    struct inquiry_path path;
};
struct brain_place {
    struct mono since;
    struct locate_route route;
    bool worded; /* the reporting host is sure of `word` */
    struct locate_element word;
};
struct brain_clock {
    int64_t utc_offset_ns, fleet_offset_ns;
};
struct brain_host {
    uint32_t host;
};
struct brain_job {
    uint64_t job;
};
struct brain_words {
    const char *text; /* may be NULL */
};
struct brain_incident {
    uint64_t id;    /* of an incident or of a silence */
    const char *by; /* may be NULL */
};

/* One service level: the counts of the round, and the verdict before. */
struct brain_level {
    struct level level;
    struct level_state state;
};

/* One host of a trial: its own report, and its trial so far. */
struct brain_canary {
    uint32_t host, run;
    bool heard, refused;
    struct mono began; /* when the trial began */
    struct rollout_canary canary;
    struct rollout_facts facts;
};

struct brain_answer {
    int64_t result;
    union { /* if the result is 1 */
        struct fleet_action host;
        struct locate_element element;
        struct alert_action alert;
        struct level_state level;
        struct {
            struct rollout_canary canary;
            struct rollout_facts facts;
        } trial;
        const char *why; /* NULL: the trial isn't bad */
    };
};

/* A name that the alerts asked for, and the answer (struct alert_fleet). */
enum brain_name_kind { BRAIN_NAME_NIC, BRAIN_NAME_HOST, BRAIN_NAME_JOB, BRAIN_NAME_TENANT };
struct brain_name {
    uint32_t kind;
    bool known;
    uint64_t id, tenant;
    uint32_t host, rail;     /* of a NIC */
    const char *name, *leaf; /* NULL: not known */
};

struct brain_witness {
    void (*told)(void *context, struct mono now, enum brain_fact fact, const void *data);
    /* Called before the answer to the fact. */
    void (*named)(void *context, const struct brain_name *name);
    void (*answered)(void *context, enum brain_fact fact, const struct brain_answer *answer);
    void *context;
};

struct brain *brain_new(void);      /* NULL: out of memory */
void brain_delete(struct brain *b); /* NULL is allowed */
/* NULL: no witness. It must be set before the first fact; otherwise the run can't be repeated. */
void brain_witness(struct brain *b, const struct brain_witness *witness);
/* The tables for the names of alerts; copied. */
void brain_names(struct brain *b, const struct alert_fleet *names);

/* `ret` may be NULL. Returns the answer's result. Facts for alerts before the first BRAIN_RULES are ignored: 0. So are facts for
 * the inquiry before BRAIN_INQUIRY. Before BRAIN_TERMS, only findings and runs of hosts may be passed. */
int brain_tell(struct brain *b, struct mono now, enum brain_fact fact, const void *data,
               struct brain_answer *ret);

/* The parts, for reading. NULL: not created yet. */
const struct fleet *brain_hosts(const struct brain *b);
const struct inquiry *brain_inquiry(const struct brain *b);
const struct alerts *brain_alerts(const struct brain *b);

/* A hash of all parts of an answer, texts included. Answers with the same hash count as equal. */
uint64_t brain_answer_print(enum brain_fact fact, const struct brain_answer *answer);

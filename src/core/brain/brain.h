/* brain.h: all that judges a fleet, behind one door.
 *
 * What is a fact for hosts (core/fleet/fleet.h), for the inquiry into losses (core/fleet/inquiry.h), for alerts
 * (core/alert/alert.h), for service levels (core/fleet/level.h) and for trials of a configuration (core/fleet/rollout.h) is told
 * here, and nowhere else: by brain_tell, with the time. So a witness sees all that they are told, all that they answer, and
 * what names they were given. That is enough to have it again: service/record/brain_record.h keeps it, and `foliot sim
 * replay` tells it to the same code.
 *
 * Pure, told the time. What only looks (fleet_host_health, alerts_next_incident, …) is asked of the parts themselves. */
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

/* Each with the struct that brain_tell takes, and what it answers; none: 0. A number is written into recordings. */
enum brain_fact {
    BRAIN_TERMS,   /* struct fleet_terms: hosts are judged from now on. -ENOMEM */
    BRAIN_ROOM,    /* struct brain_room: of fleet_make_room. -ENOMEM */
    BRAIN_MEMBER,  /* struct fleet_member */
    BRAIN_HEARD,   /* struct brain_heard */
    BRAIN_REPORT,  /* struct fleet_report */
    BRAIN_RUN,     /* struct brain_run: findings of its other runs are over, for hosts and alerts */
    BRAIN_FINDING, /* struct alert_finding: for hosts and alerts */
    BRAIN_HOSTS_TICK, /* NULL */
    BRAIN_HOSTS_NEXT, /* NULL; 1: with the answer's host; 0: no more */
    BRAIN_INQUIRY,    /* struct brain_inquiry: losses are looked into from now on. -ENOMEM */
    BRAIN_PATH,       /* struct brain_path */
    BRAIN_LOOK,       /* NULL */
    BRAIN_PLACE,      /* struct brain_place; 1: with the answer's element; 0: nothing is named */
    BRAIN_RULES, /* struct alert_config, its names aside: a new engine. -ENOMEM: the one before stays */
    BRAIN_CLOCK,       /* struct brain_clock */
    BRAIN_SAMPLE,      /* struct alert_sample */
    BRAIN_HOST,        /* struct brain_host: a sign of life, for alerts */
    BRAIN_HOST_GONE,   /* struct brain_host */
    BRAIN_JOB_OVER,    /* struct brain_job */
    BRAIN_REFUSED,     /* struct brain_words: of a rule file */
    BRAIN_SILENCE,     /* struct alert_silence. As alerts_silence */
    BRAIN_UNSILENCE,   /* struct brain_incident. As alerts_unsilence */
    BRAIN_ACKNOWLEDGE, /* struct brain_incident. As alerts_acknowledge */
    BRAIN_RESTORE,     /* struct alert_restore. As alerts_restore */
    BRAIN_ALERTS_TICK, /* NULL */
    BRAIN_ALERTS_NEXT, /* NULL; 1: with the answer's alert; 0: no more */
    BRAIN_LEVEL, /* struct brain_level: a round of it is over. 1: its verdict is another one; the answer's level in any case */
    BRAIN_CANARY, /* struct brain_canary; 1: something about it is bad; the answer's trial in any case */
    BRAIN_TRIAL, /* struct rollout_facts, all canaries in it; enum rollout_verdict, with the answer's why */
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
    bool worded; /* the host that finds it is sure of `word` */
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
    uint64_t id;    /* or of a silence */
    const char *by; /* may be NULL */
};

/* Of one service level: what was counted in the round, and what it was before. */
struct brain_level {
    struct level level;
    struct level_state state;
};

/* Of one host that tries a configuration: what it says itself, and what its trial came to so far. */
struct brain_canary {
    uint32_t host, run;
    bool heard, refused;
    struct mono began; /* the trial */
    struct rollout_canary canary;
    struct rollout_facts facts;
};

struct brain_answer {
    int64_t result;
    union { /* of a result of 1 */
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

/* A name that alerts asked for, and what they were told (struct alert_fleet). */
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
    /* Before what follows from the fact is answered. */
    void (*named)(void *context, const struct brain_name *name);
    void (*answered)(void *context, enum brain_fact fact, const struct brain_answer *answer);
    void *context;
};

struct brain *brain_new(void);      /* NULL: no memory */
void brain_delete(struct brain *b); /* NULL is fine */
/* NULL: nobody. From the first fact on, or what it sees can't be had again. */
void brain_witness(struct brain *b, const struct brain_witness *witness);
/* Who alerts ask for names; copied. */
void brain_names(struct brain *b, const struct alert_fleet *names);

/* `ret` may be NULL; returns the answer's result. Facts for alerts before the first BRAIN_RULES, and those for the inquiry
 * before BRAIN_INQUIRY, are nobody's: 0. Nothing but findings and runs may be told of hosts before BRAIN_TERMS. */
int brain_tell(struct brain *b, struct mono now, enum brain_fact fact, const void *data,
               struct brain_answer *ret);

/* The parts, to be looked at; NULL: not there yet. */
const struct fleet *brain_hosts(const struct brain *b);
const struct inquiry *brain_inquiry(const struct brain *b);
const struct alerts *brain_alerts(const struct brain *b);

/* A number of all that an answer tells, texts included: two with the same are taken for alike. */
uint64_t brain_answer_print(enum brain_fact fact, const struct brain_answer *answer);

/* foliot_alerts_past.h: the input of one rule in the past, from the controller's history, as moments in order. */
#pragma once
#include "app/foliot_alerts.h"

struct moment {
    int64_t at_ns;
    uint64_t order;
    enum { MOMENT_FINDING, MOMENT_SAMPLE, MOMENT_HOST, MOMENT_JOB_OVER } kind;
    struct alert_sample sample; /* the subject of MOMENT_HOST and MOMENT_JOB_OVER */
    const json_t *event;        /* the name of a finding; lives in `keep` */
};

struct past {
    struct moment *moments;
    size_t count, capacity;
    int64_t from_ns, until_ns,
        /* step_ns: the longest step of the series; 0: all input is events, exact to the nanosecond */
        step_ns;
    bool presence; /* hosts may be silent in it: MOMENT_HOST marks the times when they were heard */
    json_t *keep;  /* the API's answers; moments point into them */
    json_t *nics;  /* an array by id: {host, name, leaf, rail} */
    json_t *hosts; /* an array of names; the index is the engine's number */
    json_t *jobs;  /* the same, for jobs */
};

/* Returns an exit status. On an error it prints the reason and what to do: no history of such a rule is kept, or none with steps
 * that are short enough. */
int past_load(struct alerts_call *call, const struct alert_rule *rule, struct past *p);
void past_done(struct past *p);
/* The engine's number of the name; ALERT_NO_ID: no name. */
uint32_t past_host(struct past *p, const char *name);
const char *past_text(const json_t *object, const char *key); /* The name; "": none. */
/* The engine's tables of names. */
struct alert_fleet past_fleet(struct past *p);

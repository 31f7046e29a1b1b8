/* foliot_alerts_past.h: what a controller remembers of the input of one rule, as moments in order. */
#pragma once
#include "app/foliot_alerts.h"

struct moment {
    int64_t at_ns;
    uint64_t order;
    enum { MOMENT_FINDING, MOMENT_SAMPLE, MOMENT_HOST, MOMENT_JOB_OVER } kind;
    struct alert_sample sample; /* of MOMENT_HOST, _JOB_OVER: whose */
    const json_t *event;        /* a finding's; lives in `keep` */
};

struct past {
    struct moment *moments;
    size_t count, capacity;
    int64_t from_ns, until_ns,
        step_ns;   /* step_ns: of series, the longest; 0: events, to the nanosecond */
    bool presence; /* hosts may be silent in it: MOMENT_HOST says when they weren't */
    json_t *keep;  /* answers, as long as moments point into them */
    json_t *nics;  /* array by id: {host, name, leaf, rail} */
    json_t *hosts; /* array of names; the index is the engine's number */
    json_t *jobs;  /* likewise */
};

/* An exit status, after saying what is wrong: no history of such a rule is kept, or none that is fine enough; what to do. */
int past_load(struct alerts_call *call, const struct alert_rule *rule, struct past *p);
void past_done(struct past *p);
uint32_t past_host(struct past *p, const char *name);         /* its number; ALERT_NO_ID: no name */
const char *past_text(const json_t *object, const char *key); /* "": none */
/* The engine's tables. */
struct alert_fleet past_fleet(struct past *p);

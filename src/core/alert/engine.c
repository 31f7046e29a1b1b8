/* engine.c: the life of an alert: raised, pending for the time that its rule demands, firing, over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/alert/internal.h"

/* ---- memory ----------------------------------------------------------------------------------------------------- */

bool hash_init(struct hash *h, uint32_t capacity)
{
    uint32_t size = 16;

    while (size < capacity) {
        size *= 2;
    }
    h->mask = size - 1;
    h->heads = calloc(size, sizeof(*h->heads));
    if (h->heads != NULL) {
        memset(h->heads, 0xff, size * sizeof(*h->heads));
    }
    return h->heads != NULL;
}

static void span_default(struct span *s, int64_t ns)
{
    if (s->ns <= 0) {
        s->ns = ns;
    }
}

static void set_defaults(struct alert_config *c)
{
    span_default(&c->keep, 60 * NS_PER_S);
    span_default(&c->reopen, 3600 * NS_PER_S);
    span_default(&c->repage, 300 * NS_PER_S);
    span_default(&c->together, 30 * NS_PER_S);
    span_default(&c->grace, 600 * NS_PER_S);
    span_default(&c->silent, 30 * NS_PER_S);
    span_default(&c->blind, 600 * NS_PER_S);
    c->promote = c->promote != 0 ? c->promote : 3;
    c->first_incident = c->first_incident != 0 ? c->first_incident : 1;
    c->alert_max = c->alert_max != 0 ? c->alert_max : 16384;
    c->incident_max = c->incident_max != 0 ? c->incident_max : 2048;
    c->watch_max = c->watch_max != 0 ? c->watch_max : 262144;
}

static void add_built_in(struct alerts *a, uint32_t index, const char *name, const char *advice)
{
    struct alert_rule *r = &a->rules[a->rule_count + index];

    alert_rule_init(r);
    snprintf(r->name, sizeof(r->name), "%s", name);
    snprintf(r->advice, sizeof(r->advice), "%s", advice);
    r->condition = ALERT_ON_ITSELF;
    r->scope = ALERT_PER_FLEET;
}

static bool take_rules(struct alerts *a, const struct alert_config *config, struct mono now)
{
    const size_t all = config->rule_count + BUILT_IN_RULES;

    if (config->rule_count > ALERT_RULE_MAX) {
        return false;
    }
    a->rules = calloc(all, sizeof(*a->rules));
    a->rule_states = calloc(all, sizeof(*a->rule_states));
    if (a->rules == NULL || a->rule_states == NULL) {
        return false;
    }
    a->rule_count = (uint32_t)config->rule_count;
    for (uint32_t i = 0; i < a->rule_count; i++) {
        a->rules[i] = config->rules[i];
        if (alert_rule_check(&a->rules[i]) != NULL) {
            return false;
        }
        if (a->rules[i].condition != ALERT_ON_FINDING) {
            const uint32_t m = a->rules[i].metric;
            a->by_metric[m][a->by_metric_count[m]++] = (uint16_t)i;
        }
        a->rule_states[i].last_input = now;
    }
    add_built_in(a, 0, "rule-not-evaluated", "check that agents report it, or take the rule out");
    add_built_in(a, 1, "alerts-dropped", "raise the limits of the alert engine");
    add_built_in(a, 2, "rules-refused", "mend the rule file: the rules before it are in force");
    return true;
}

struct alerts *alerts_new(const struct alert_config *config, struct mono now)
{
    struct alerts *a = calloc(1, sizeof(*a));

    if (a == NULL) {
        return NULL;
    }
    a->config = *config;
    set_defaults(&a->config);
    a->start = a->now = a->host_seen = now;
    a->deadline = a->sweep_due = mono_add(now, span_ns(SWEEP_NS));
    a->heartbeat_due = config->heartbeat.ns > 0 ? now : MONO_NEVER;
    a->utc_offset_ns = a->fleet_offset_ns = FINDING_NO_TIME;
    a->instance_max = 1 + a->config.alert_max;    /* the first place is kept: rule_has_place() */
    a->incident_max = 1 + a->config.incident_max; /* the first place is kept: incident_new() */
    a->next_incident = a->config.first_incident;
    a->next_alert = 1;
    a->queue_head = a->queue_tail = a->instance_head = NONE;
    a->instances = calloc(a->instance_max, sizeof(*a->instances));
    a->incidents = calloc(a->incident_max, sizeof(*a->incidents));
    a->scratch = calloc(a->instance_max, sizeof(*a->scratch));
    if (a->instances == NULL || a->incidents == NULL || a->scratch == NULL ||
        !hash_init(&a->instance_hash, a->instance_max) || !take_rules(a, config, now) ||
        !cause_init(a) || !series_init(a)) {
        alerts_free(a);
        return NULL;
    }
    a->config.rules = a->rules;
    a->instance_free = 1;
    a->no_room.ns = -1;
    for (uint32_t i = 0; i < a->instance_max; i++) {
        a->instances[i].chain = i + 1 < a->instance_max ? i + 1 : NONE;
    }
    return a;
}

void alerts_free(struct alerts *a)
{
    if (a == NULL) {
        return;
    }
    free(a->rules);
    free(a->rule_states);
    free(a->instances);
    free(a->instance_hash.heads);
    free(a->incidents);
    free(a->elements);
    free(a->element_hash.heads);
    free(a->watches);
    free(a->watch_hash.heads);
    free(a->windows);
    free(a->rounds);
    free(a->round_hash.heads);
    free(a->scratch);
    free(a);
}

/* ---- findings --------------------------------------------------------------------------------------------------- */

/* True if the rule wants this suspect. If the suspect is unknown, one of the possible elements suffices. */
static bool suspect_wanted(const struct alert_rule *rule, const struct alert_finding *f)
{
    bool wanted = rule->suspects == 0 || (rule->suspects >> (f->suspect.kind & 31) & 1) != 0;

    for (uint32_t k = 0; f->suspect.kind == ELEMENT_UNKNOWN && k < f->choice.count; k++) {
        wanted = wanted || (rule->suspects >> (f->choice.one_of[k].kind & 31) & 1) != 0;
    }
    return wanted && (!rule->confident || f->suspect.kind != ELEMENT_UNKNOWN);
}

static bool finding_wanted(const struct alert_rule *rule, const struct alert_finding *f)
{
    return rule->condition == ALERT_ON_FINDING && (rule->findings >> (f->kind & 63) & 1) != 0 &&
           suspect_wanted(rule, f);
}

static uint64_t finding_key(uint32_t rule, const struct alert_finding *f)
{
    return hash_u64(hash_u64(rule, 0x66696e64ULL),
                    hash_u64((uint64_t)f->said_by << 32 | f->run, f->number));
}

static void set_finding(struct instance *i, const struct alert_finding *f)
{
    const bool links = (f->kind >= FINDING_LINK_DOWN && f->kind <= FINDING_NIC_GONE) ||
                       f->kind == FINDING_RDMA_PORT;

    i->said_by = f->said_by;
    i->run = f->run;
    i->hearsay = f->hearsay;
    i->host = f->from_host != ALERT_NO_ID ? f->from_host : f->said_by;
    i->nic = f->from_nic;
    i->peer = links ? ALERT_NO_ID : f->to_nic;
    i->port = f->port != 0 ? f->port : ALERT_NO_ID;
    snprintf(i->text, sizeof(i->text), "%s", f->text != NULL ? f->text : "");
}

void alerts_on_finding(struct alerts *a, struct mono now, const struct alert_finding *f)
{
    a->now = now;
    a->counters.findings++;
    if (f->kind >= FINDING_KIND_COUNT) {
        return;
    }
    series_host_seen(a, f->said_by);
    struct instance *taken = NULL;
    bool moved = false;   /* its alert by another rule is over, because the suspect changed */
    uint32_t left = NONE; /* the incident of that alert */
    for (uint32_t r = 0; r < a->rule_count; r++) {
        const uint64_t key = finding_key(r, f);
        struct instance *i;

        if (a->rules[r].condition != ALERT_ON_FINDING) {
            continue;
        }
        if (f->phase == FINDING_CLOSED || !finding_wanted(&a->rules[r], f)) {
            i = a->rule_states[r].active > 0 ? instance_find(a, key) : NULL;
            if (i != NULL) { /* the finding is closed, or has another suspect now */
                moved = moved || f->phase != FINDING_CLOSED;
                left = f->phase != FINDING_CLOSED && i->incident != NONE ? i->incident : left;
                instance_lower(a, i);
            }
            continue;
        }
        i = instance_raise(a, r, key, f->said_by, f->since);
        if (i == NULL) {
            continue;
        }
        set_finding(i, f);
        const struct mono due = mono_add(mono_min(f->heard, now), a->rules[r].hold);
        i->due = mono_before(i->due, due) ? due : i->due;
        if (i->state == ALERT_FIRING) {
            incident_regroup(a, i, f);
        } else {
            causes_release(a, i);
            causes_of_finding(a, i, f);
            instance_consider(a, i);
        }
        taken = i->incident != NONE ? i : taken;
    }
    if (moved && taken != NULL) {
        incident_refine(a, &a->incidents[taken->incident]);
    }
    /* the alert may have been the last one that did not agree with the others */
    if (left != NONE && (taken == NULL || left != taken->incident)) {
        incident_refine(a, &a->incidents[left]);
    }
}

/* Ends the alerts of findings from other runs of that host's agent. all: also those of its present run. */
static void end_findings(struct alerts *a, uint32_t host, bool all, uint32_t run)
{
    for (uint32_t at = a->instance_head; at != NONE;) {
        struct instance *i = &a->instances[at];
        at = i->after;
        if (a->rules[i->rule].condition == ALERT_ON_FINDING && i->said_by == host &&
            (all || i->run != run)) {
            instance_lower(a, i);
        }
    }
}

void alerts_on_run(struct alerts *a, struct mono now, uint32_t host, uint32_t run)
{
    a->now = now;
    series_host_seen(a, host);
    end_findings(a, host, false, run);
}

void alerts_on_host(struct alerts *a, struct mono now, uint32_t host)
{
    const struct alert_sample sample = {.metric = ALERT_HOST_REPORT,
                                        .host = host,
                                        .nic = ALERT_NO_ID,
                                        .peer = ALERT_NO_ID,
                                        .port = ALERT_NO_ID,
                                        .value = 1};

    alerts_on_sample(a, now, &sample);
}

void alerts_on_host_removed(struct alerts *a, struct mono now, uint32_t host)
{
    a->now = now;
    end_findings(a, host, true, 0);
    for (uint32_t at = a->instance_head; at != NONE;) {
        struct instance *i = &a->instances[at];
        const struct alert_rule *rule = &a->rules[i->rule];
        at = i->after;
        if (rule->condition != ALERT_ON_FINDING &&
            (i->host == host || (rule->scope == ALERT_PER_PATH && nic_is_gone(a, i->peer)))) {
            instance_lower(a, i);
        }
    }
    series_forget_host(a, host);
}

void alerts_on_sample(struct alerts *a, struct mono now, const struct alert_sample *sample)
{
    a->now = now;
    a->counters.samples++;
    series_host_seen(a, sample->host);
    series_on_sample(a, sample);
}

void alerts_on_clock(struct alerts *a, struct mono now, int64_t utc_offset_ns,
                     int64_t fleet_offset_ns)
{
    a->now = now;
    a->utc_offset_ns = utc_offset_ns;
    a->fleet_offset_ns = fleet_offset_ns;
}

/* ---- alerts about the engine itself --------------------------------------------------------------------------------- */

static uint64_t own_key(const struct alerts *a, uint32_t built_in, uint64_t subject)
{
    return hash_u64(hash_u64((uint64_t)a->rule_count + built_in, 0x73656c66ULL), subject);
}

static void raise_own(struct alerts *a, uint32_t built_in, uint64_t subject, const char *element,
                      const char *text)
{
    const uint32_t rule = a->rule_count + built_in;
    struct instance *i =
        instance_raise(a, rule, own_key(a, built_in, subject), ALERT_NO_ID, MONO_NEVER);

    if (i == NULL) {
        return;
    }
    if (i->state == ALERT_PENDING) {
        causes_release(a, i);
        causes_of_rule(a, i, element);
    }
    snprintf(i->text, sizeof(i->text), "%s; %s", text, a->rules[rule].advice);
    instance_consider(a, i);
}

static void lower_own(struct alerts *a, uint32_t built_in, uint64_t subject)
{
    struct instance *i = instance_find(a, own_key(a, built_in, subject));

    if (i != NULL) {
        instance_lower(a, i);
    }
}

void alerts_on_rules_refused(struct alerts *a, struct mono now, const char *words)
{
    char text[ALERT_TEXT_MAX / 2];

    a->now = now;
    if (words == NULL) {
        lower_own(a, 2, 0);
        return;
    }
    snprintf(text, sizeof(text), "alert rules: refused: %s; suspect: the rule file", words);
    raise_own(a, 2, 0, "the rule file", text);
}

/* Finds rules whose series stopped although hosts report. */
static void look_for_blind_rules(struct alerts *a)
{
    const bool hosts = mono_sub(a->now, a->host_seen).ns < STALE_NS &&
                       mono_sub(a->now, a->start).ns > a->config.blind.ns;

    for (uint32_t r = 0; r < a->rule_count; r++) {
        const struct alert_metric_info *metric = alert_metric_info(a->rules[r].metric);
        char text[ALERT_TEXT_MAX / 2], element[ALERT_ELEMENT_MAX];

        if (a->rules[r].condition == ALERT_ON_FINDING || metric == NULL || metric->optional) {
            continue;
        }
        if (!hosts || mono_sub(a->now, a->rule_states[r].last_input).ns <= a->config.blind.ns) {
            lower_own(a, 0, r);
            continue;
        }
        snprintf(element, sizeof(element), "rule %s", a->rules[r].name);
        snprintf(text, sizeof(text),
                 "rule %s: can't be evaluated, nobody reports %s %s; suspect: unknown",
                 a->rules[r].name, metric->name,
                 a->rule_states[r].had_input ? "any more" : "at all");
        raise_own(a, 0, r, element, text);
    }
}

static void look_for_drops(struct alerts *a)
{
    const uint64_t dropped =
        a->counters.alerts_dropped + a->counters.watches_dropped + a->counters.incidents_dropped;
    char text[ALERT_TEXT_MAX / 2];

    if (dropped > a->dropped_said) {
        a->dropped_said = dropped;
        snprintf(text, sizeof(text),
                 "alert engine: %llu alerts, %llu counters and %llu incidents didn't fit; suspect: "
                 "its limits",
                 (unsigned long long)a->counters.alerts_dropped,
                 (unsigned long long)a->counters.watches_dropped,
                 (unsigned long long)a->counters.incidents_dropped);
        raise_own(a, RULE_DROPPED, 0, "the alert engine's limits", text);
    } else {
        struct instance *i = instance_find(a, own_key(a, RULE_DROPPED, 0));
        if (i != NULL && mono_sub(a->now, i->seen).ns > a->config.keep.ns) {
            instance_lower(a, i);
        }
    }
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

/* Looks at firing series that stopped, at silences that began or ended, and at pending alerts that were frozen. */
static void look_at_alerts(struct alerts *a)
{
    bool room = true;

    for (uint32_t at = a->instance_head; at != NONE;) {
        struct instance *i = &a->instances[at];
        const struct alert_rule *rule = &a->rules[i->rule];
        at = i->after;
        if (rule->condition == ALERT_ON_THRESHOLD && mono_sub(a->now, i->seen).ns > STALE_NS) {
            const bool back = i->said_by == ALERT_NO_ID || host_is_back(a, i->said_by);
            i->stale = true;
            if (i->state == ALERT_PENDING || (back && mono_sub(a->now, i->seen).ns > GONE_NS)) {
                instance_lower(a, i);
                continue;
            }
        }
        if (rule->condition == ALERT_ON_FINDING) {
            i->stale = host_is_silent(a, i->said_by);
        }
        if (i->state == ALERT_FIRING) {
            const bool silenced = silence_covers(a, i);
            if (silenced != i->silenced) {
                i->silenced = silenced;
                incident_silence_changed(a, i);
            }
        }
        instance_consider(a, i);
        const bool kept = rule_has_place(a, i->rule);
        if (i->state == ALERT_FIRING && i->incident == NONE && i->cause_count > 0) {
            incident_group(a, i, room || kept); /* no place was free when it fired */
            room = room && (kept || i->incident != NONE);
        }
    }
}

static void consider_due(struct alerts *a)
{
    for (uint32_t at = a->instance_head; at != NONE;) {
        struct instance *i = &a->instances[at];
        at = i->after;
        instance_consider(a, i);
    }
}

static void sweep(struct alerts *a)
{
    series_sweep(a);
    look_for_blind_rules(a);
    look_for_drops(a);
    look_at_alerts(a);
    a->sweep_due = mono_add(a->now, span_ns(SWEEP_NS));
}

void alerts_tick(struct alerts *a, struct mono now)
{
    a->now = now;
    if (!mono_before(now, a->sweep_due)) {
        sweep(a);
    } else {
        consider_due(a);
    }
    if (!mono_before(now, a->heartbeat_due)) {
        a->heartbeat = true;
        a->heartbeat_due = mono_add(now, a->config.heartbeat);
    }
    a->deadline = mono_min(a->sweep_due, a->heartbeat_due);
    for (uint32_t c = 0; c < a->incident_max; c++) {
        if (a->incidents[c].state != INCIDENT_FREE) {
            incident_tick(a, &a->incidents[c]);
            a->deadline = mono_min(a->deadline, incident_deadline(a, &a->incidents[c]));
        }
    }
    for (uint32_t at = a->instance_head; at != NONE; at = a->instances[at].after) {
        const struct instance *i = &a->instances[at];
        if (i->state == ALERT_PENDING && !i->stale) {
            a->deadline = mono_min(a->deadline, i->due);
        }
    }
}

struct mono alerts_deadline(const struct alerts *a)
{
    return a->deadline;
}

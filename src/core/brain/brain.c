/* brain.c: passes each fact to the parts that need it. */
#include "core/brain/brain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"

struct brain {
    struct fleet *hosts;
    struct inquiry *inquiry;
    struct alerts *alerts;
    struct alert_fleet names;
    struct brain_witness witness; /* no witness: NULL functions */
};

struct brain *brain_new(void)
{
    return calloc(1, sizeof(struct brain));
}

void brain_delete(struct brain *b)
{
    if (b != NULL) {
        fleet_delete(b->hosts);
        inquiry_free(b->inquiry);
        alerts_free(b->alerts);
        free(b);
    }
}

void brain_witness(struct brain *b, const struct brain_witness *witness)
{
    b->witness = witness != NULL ? *witness : (struct brain_witness){.told = NULL};
}

void brain_names(struct brain *b, const struct alert_fleet *names)
{
    b->names = *names;
}

const struct fleet *brain_hosts(const struct brain *b)
{
    return b->hosts;
}

const struct inquiry *brain_inquiry(const struct brain *b)
{
    return b->inquiry;
}

const struct alerts *brain_alerts(const struct brain *b)
{
    return b->alerts;
}

/* ---- names -------------------------------------------------------------------------------------------------------- */

static void named(const struct brain *b, const struct brain_name *name)
{
    if (b->witness.named != NULL) {
        b->witness.named(b->witness.context, name);
    }
}

static bool name_nic(void *context, uint32_t nic, struct alert_nic *ret)
{
    const struct brain *b = context;
    struct alert_nic is = {.name = NULL};
    const bool known = b->names.nic != NULL && b->names.nic(b->names.context, nic, &is);

    named(b, &(struct brain_name){.kind = BRAIN_NAME_NIC,
                                  .known = known,
                                  .id = nic,
                                  .host = is.host,
                                  .rail = is.rail,
                                  .name = is.name,
                                  .leaf = is.leaf});
    if (known) {
        *ret = is;
    }
    return known;
}

static const char *name_host(void *context, uint32_t host)
{
    const struct brain *b = context;
    const char *name = b->names.host != NULL ? b->names.host(b->names.context, host) : NULL;

    named(b, &(struct brain_name){
                 .kind = BRAIN_NAME_HOST, .known = name != NULL, .id = host, .name = name});
    return name;
}

static const char *name_job(void *context, uint64_t job)
{
    const struct brain *b = context;
    const char *name = b->names.job != NULL ? b->names.job(b->names.context, job) : NULL;

    named(b, &(struct brain_name){
                 .kind = BRAIN_NAME_JOB, .known = name != NULL, .id = job, .name = name});
    return name;
}

static uint64_t tenant_of(void *context, uint32_t host)
{
    const struct brain *b = context;
    /* each host is a tenant of its own */
    const uint64_t tenant =
        b->names.tenant != NULL ? b->names.tenant(b->names.context, host) : host;

    named(b, &(struct brain_name){
                 .kind = BRAIN_NAME_TENANT, .known = true, .id = host, .tenant = tenant});
    return tenant;
}

/* ---- hosts -------------------------------------------------------------------------------------------------------- */

static int take_terms(struct brain *b, struct mono now, const struct fleet_terms *terms)
{
    struct fleet *fresh = fleet_new(terms, now);

    if (fresh == NULL) {
        return -ENOMEM;
    }
    fleet_delete(b->hosts);
    b->hosts = fresh;
    return 0;
}

static void take_finding(struct brain *b, struct mono now, const struct alert_finding *f)
{
    const struct fleet_finding finding = {.host = f->said_by,
                                          .run = f->run,
                                          .number = f->number,
                                          .kind = f->kind,
                                          .open = f->phase != FINDING_CLOSED,
                                          .hearsay = f->hearsay,
                                          .suspect = f->suspect,
                                          .choice = f->choice};

    if (b->hosts != NULL) {
        fleet_on_finding(b->hosts, &finding, now);
    }
    if (b->alerts != NULL) {
        alerts_on_finding(b->alerts, now, f);
    }
}

static void take_run(struct brain *b, struct mono now, const struct brain_run *r)
{
    if (b->alerts != NULL) {
        alerts_on_run(b->alerts, now, r->host, r->run);
    }
    if (b->hosts != NULL) {
        fleet_on_run(b->hosts, r->host, r->run, now);
    }
}

static int tell_hosts(struct brain *b, struct mono now, enum brain_fact fact, const void *data,
                      struct brain_answer *ret)
{
    const struct brain_heard *heard = data;
    const struct brain_room *room = data;

    switch (fact) {
    case BRAIN_TERMS:
        return take_terms(b, now, data);
    case BRAIN_ROOM:
        return fleet_make_room(b->hosts, room->hosts, room->nics);
    case BRAIN_MEMBER:
        fleet_on_member(b->hosts, data, now);
        return 0;
    case BRAIN_HEARD:
        fleet_on_heard(b->hosts, heard->host, heard->beat, heard->report, now);
        return 0;
    case BRAIN_REPORT:
        fleet_on_report(b->hosts, data, now);
        return 0;
    case BRAIN_RUN:
        take_run(b, now, data);
        return 0;
    case BRAIN_FINDING:
        take_finding(b, now, data);
        return 0;
    case BRAIN_HOSTS_TICK:
        fleet_tick(b->hosts, now);
        return 0;
    default:
        ASSERT(fact == BRAIN_HOSTS_NEXT);
        return fleet_next_action(b->hosts, &ret->host);
    }
}

/* ---- losses ------------------------------------------------------------------------------------------------------- */

static int take_inquiry(struct brain *b, const struct brain_inquiry *terms)
{
    struct inquiry *fresh = inquiry_new(terms->paths, terms->report);

    if (fresh == NULL) {
        return -ENOMEM;
    }
    inquiry_free(b->inquiry);
    b->inquiry = fresh;
    return 0;
}

static int tell_inquiry(struct brain *b, struct mono now, enum brain_fact fact, const void *data,
                        struct brain_answer *ret)
{
    const struct brain_path *path = data;
    const struct brain_place *place = data;

    if (fact == BRAIN_INQUIRY) {
        return take_inquiry(b, data);
    }
    if (b->inquiry == NULL) {
        return 0;
    }
    switch (fact) {
    case BRAIN_PATH:
        inquiry_on_path(b->inquiry, now, path->at, &path->path);
        return 0;
    case BRAIN_LOOK:
        inquiry_tick(b->inquiry, now);
        return 0;
    default:
        ASSERT(fact == BRAIN_PLACE);
        return inquiry_place(b->inquiry, place->since, &place->route,
                             place->worded ? &place->word : NULL, &ret->element);
    }
}

/* ---- alerts ------------------------------------------------------------------------------------------------------- */

static int take_rules(struct brain *b, struct mono now, const struct alert_config *config)
{
    struct alert_config own = *config;

    own.fleet = (struct alert_fleet){
        .nic = name_nic, .host = name_host, .job = name_job, .tenant = tenant_of, .context = b};
    struct alerts *fresh = alerts_new(&own, now);
    if (fresh == NULL) {
        return -ENOMEM;
    }
    alerts_free(b->alerts);
    b->alerts = fresh;
    return 0;
}

static int tell_people(struct alerts *a, struct mono now, enum brain_fact fact, const void *data)
{
    const struct brain_incident *incident = data;

    switch (fact) {
    case BRAIN_SILENCE:
        return alerts_silence(a, now, data);
    case BRAIN_UNSILENCE:
        return alerts_unsilence(a, now, incident->id);
    case BRAIN_ACKNOWLEDGE:
        return alerts_acknowledge(a, now, incident->id, incident->by != NULL ? incident->by : "");
    default:
        ASSERT(fact == BRAIN_RESTORE);
        return alerts_restore(a, now, data);
    }
}

static int tell_alerts(struct brain *b, struct mono now, enum brain_fact fact, const void *data,
                       struct brain_answer *ret)
{
    struct alerts *a = b->alerts;
    const struct brain_clock *clock = data;

    if (fact == BRAIN_RULES) {
        return take_rules(b, now, data);
    }
    if (a == NULL) {
        return 0;
    }
    switch (fact) {
    case BRAIN_CLOCK:
        alerts_on_clock(a, now, clock->utc_offset_ns, clock->fleet_offset_ns);
        return 0;
    case BRAIN_SAMPLE:
        alerts_on_sample(a, now, data);
        return 0;
    case BRAIN_HOST:
        alerts_on_host(a, now, ((const struct brain_host *)data)->host);
        return 0;
    case BRAIN_HOST_GONE:
        alerts_on_host_removed(a, now, ((const struct brain_host *)data)->host);
        return 0;
    case BRAIN_JOB_OVER:
        alerts_on_job_over(a, now, ((const struct brain_job *)data)->job);
        return 0;
    case BRAIN_REFUSED:
        alerts_on_rules_refused(a, now, ((const struct brain_words *)data)->text);
        return 0;
    case BRAIN_ALERTS_TICK:
        alerts_tick(a, now);
        return 0;
    case BRAIN_ALERTS_NEXT:
        return alerts_next_action(a, &ret->alert);
    default:
        return tell_people(a, now, fact, data);
    }
}

static int tell_level(struct mono now, const struct brain_level *told, struct brain_answer *ret)
{
    ret->level = told->state;
    return level_end(&ret->level, &told->level, now);
}

/* ---- trials ------------------------------------------------------------------------------------------------------- */

/* True if an alert fires on the host, is not silenced, and began after the trial. */
static bool is_alerted(const struct alerts *a, uint32_t host, struct mono began)
{
    struct alert alert;
    size_t cursor = 0;

    while (a != NULL && alerts_next_alert(a, &cursor, &alert)) {
        if (alert.host == host && alert.state == ALERT_FIRING && !alert.silenced &&
            alert.severity >= ALERT_WARNING && alert.fired.ns > began.ns &&
            alert.since.ns > began.ns) {
            return true;
        }
    }
    return false;
}

static int tell_canary(const struct brain *b, struct mono now, const struct brain_canary *told,
                       struct brain_answer *ret)
{
    const struct rollout_host is = {
        .heard = told->heard,
        .judged = told->heard && fleet_host_judged(b->hosts, told->host, now),
        .refused = told->refused,
        .alerted = is_alerted(b->alerts, told->host, told->began),
        .run = told->run,
        .freshness = (uint8_t)fleet_host_freshness(b->hosts, told->host, now),
        .health = (uint8_t)fleet_host_health(b->hosts, told->host, now)};
    struct rollout_canary canary = told->canary;
    struct rollout_facts facts = told->facts;
    const bool bad = rollout_on_canary(&facts, &canary, &is, now);

    ret->trial.canary = canary;
    ret->trial.facts = facts;
    return bad;
}

static int tell_rollout(const struct brain *b, struct mono now, enum brain_fact fact,
                        const void *data, struct brain_answer *ret)
{
    if (fact == BRAIN_CANARY) {
        return tell_canary(b, now, data, ret);
    }
    ret->why = NULL;
    return (int)rollout_judge(data, &ret->why);
}

/* ---- the entry ---------------------------------------------------------------------------------------------------- */

int brain_tell(struct brain *b, struct mono now, enum brain_fact fact, const void *data,
               struct brain_answer *ret)
{
    struct brain_answer own;
    struct brain_answer *answer = ret != NULL ? ret : &own;

    ASSERT((unsigned)fact < BRAIN_FACT_COUNT);
    ASSERT(b->hosts != NULL || fact == BRAIN_TERMS || fact == BRAIN_RUN || fact == BRAIN_FINDING ||
           (fact >= BRAIN_INQUIRY && fact != BRAIN_CANARY));
    if (b->witness.told != NULL) {
        b->witness.told(b->witness.context, now, fact, data);
    }
    answer->result = fact < BRAIN_INQUIRY  ? tell_hosts(b, now, fact, data, answer)
                     : fact < BRAIN_RULES  ? tell_inquiry(b, now, fact, data, answer)
                     : fact < BRAIN_LEVEL  ? tell_alerts(b, now, fact, data, answer)
                     : fact == BRAIN_LEVEL ? tell_level(now, data, answer)
                                           : tell_rollout(b, now, fact, data, answer);
    if (b->witness.answered != NULL) {
        b->witness.answered(b->witness.context, fact, answer);
    }
    return (int)answer->result;
}

static uint64_t print_text(uint64_t h, const char *text)
{
    return text == NULL ? hash_u64(h, 0) : hash_u64(h, hash_text(text));
}

static uint64_t print_place(uint64_t h, const struct place *p)
{
    return hash_bytes(hash_u64(h, (uint64_t)p->kind << 32 | p->number), p->address,
                      sizeof(p->address));
}

static uint64_t print_incident(uint64_t h, const struct alert_incident *i)
{
    const uint64_t numbers[] = {i->id,
                                i->merged_into,
                                (uint64_t)i->state << 32 | i->severity,
                                (uint64_t)i->element.kind << 32 | i->element.direction,
                                (uint64_t)i->since.ns,
                                (uint64_t)i->changed.ns,
                                (uint64_t)i->resolved.ns,
                                (uint64_t)i->acknowledged.ns,
                                (uint64_t)i->alerts_firing << 32 | i->alerts_total,
                                (uint64_t)i->hosts << 32 | i->links,
                                (uint64_t)i->sequence << 32 | i->pages,
                                (uint64_t)i->reopened << 32 | (uint64_t)i->told << 1 | i->silenced};

    for (size_t k = 0; k < ARRAY_COUNT(numbers); k++) {
        h = hash_u64(h, numbers[k]);
    }
    h = print_place(print_place(h, &i->element.a), &i->element.b);
    h = print_text(print_text(h, i->cause), i->host);
    return print_text(print_text(h, i->acknowledged_by), i->text);
}

static uint64_t print_level(uint64_t h, const struct level_state *s)
{
    const uint64_t numbers[] = {(uint64_t)s->verdict << 32 | s->next,
                                (uint64_t)s->since.ns,
                                (uint64_t)s->next_since.ns,
                                s->paths,
                                s->unmeasured,
                                s->beyond,
                                (uint64_t)s->worst,
                                (uint64_t)s->worst_from << 32 | s->worst_to,
                                s->worst_port};

    for (size_t k = 0; k < ARRAY_COUNT(numbers); k++) {
        h = hash_u64(h, numbers[k]);
    }
    return h;
}

static uint64_t print_trial(uint64_t h, const struct rollout_canary *k,
                            const struct rollout_facts *f)
{
    const uint64_t numbers[] = {(uint64_t)k->run << 32 | (uint64_t)k->health << 1 | k->confirmed,
                                (uint64_t)k->worse.ns,
                                (uint64_t)f->hosts << 32 | f->confirmed,
                                (uint64_t)f->refused << 32 | f->silent,
                                (uint64_t)f->restarted << 32 | f->worse,
                                (uint64_t)f->unsure << 32 | f->alerted};

    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        h = hash_u64(h, numbers[i]);
    }
    return h;
}

uint64_t brain_answer_print(enum brain_fact fact, const struct brain_answer *answer)
{
    const struct fleet_action *host = &answer->host;
    const struct locate_element *element = &answer->element;
    const struct alert_action *alert = &answer->alert;
    uint64_t h = hash_u64((uint64_t)fact, (uint64_t)answer->result);

    if (answer->result != 1 && fact < BRAIN_LEVEL) {
        return h;
    }
    switch (fact) {
    case BRAIN_HOSTS_NEXT:
        return hash_u64(hash_u64(h, (uint64_t)host->kind << 32 | host->host),
                        (uint64_t)host->at.ns);
    case BRAIN_PLACE:
        h = hash_u64(h, (uint64_t)element->kind << 8 | element->direction);
        return hash_u64(hash_u64(h, element->a), element->b);
    case BRAIN_ALERTS_NEXT:
        h = hash_u64(h, (uint64_t)alert->kind << 32 | alert->event);
        h = hash_u64(h, (uint64_t)alert->receivers << 32 | alert->sequence);
        return print_incident(hash_u64(h, alert->page), &alert->incident);
    case BRAIN_LEVEL:
        return print_level(h, &answer->level);
    case BRAIN_CANARY:
        return print_trial(h, &answer->trial.canary, &answer->trial.facts);
    case BRAIN_TRIAL:
        return print_text(h, answer->why);
    default:
        return h;
    }
}

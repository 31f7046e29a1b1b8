/* state_event.c: events of reports: rows of the store, open findings, what streams get. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/brain/brain.h"
#include "core/finding/finding.h"
#include "service/controller/api/live.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/claim.h"
#include "service/controller/fleet/fault.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/quota.h"
#include "service/controller/fleet/state.h"
#include "service/controller/job/job.h"

/* ---- events ---- */

void state_put_event(const struct controller *c, struct json_writer *j, const struct store_event *e)
{
    const struct fleet_host *h = e->host != 0 ? fleet_host_by_id(c, e->host) : NULL;
    json_put_object(j, NULL);
    json_put_int(j, "id", e->id);
    json_put_int(j, "at_utc_ns", e->at_ns);
    json_put_int_if(j, "at_fleet_ns", e->fleet_ns != 0, e->fleet_ns);
    json_put_string(j, "host", h != NULL ? h->name : NULL);
    json_put_string(j, "kind", e->kind);
    json_put_string(j, "word", e->word);
    json_put_raw(j, "detail", e->body);
    json_put_end(j);
}

static char *stream_text(struct controller *c, const struct store_event *e)
{
    const char *json = NULL;
    size_t size = 0;
    char *text = NULL;
    json_writer_reset(&c->json);
    state_put_event(c, &c->json, e);
    if (json_writer_finish(&c->json, &json, &size) == 0 &&
        asprintf(&text, "id: %lld\nevent: %s\ndata: %.*s\n\n", (long long)e->id, e->kind,
                 (int)size - 1, json) < 0) {
        text = NULL;
    }
    return text;
}

int state_event(struct controller *c, const struct store_event *event)
{
    struct store_event e = *event;
    const int r = store_event_put(c->store, &e, &e.id);
    if (r < 0) {
        return r;
    }
    c->count.rows++;
    c->count.row_bytes += strlen(e.body) + QUOTA_ROW_BYTES;
    c->recent_from = c->recent_count == c->recent_committed ? e.id : c->recent_from;
    struct recent_event *recent = &c->recent[c->recent_count++ % CONTROLLER_RECENT];
    free(recent->text);
    free(recent->body);
    *recent = (struct recent_event){.id = e.id, .host = e.host, .body = strdup(e.body)};
    snprintf(recent->kind, sizeof(recent->kind), "%s", e.kind);
    recent->text = recent->body != NULL ? stream_text(c, &e) : NULL;
    c->revision++;
    controller_touch(c);
    return 0;
}

bool state_keeps_event(struct controller *c, struct fleet_host *h, bool room)
{
    h->events_dropped += !room;
    c->count.events_dropped += !room;
    return room;
}

void state_committed(struct controller *c, bool ok)
{
    fault_committed(c, ok);
    if (!ok) {
        c->recent_count = c->recent_committed; /* drop events that were not stored */
        return;
    }
    uint64_t i = c->recent_committed;
    c->recent_committed = c->recent_count;
    if (c->recent_count - i > CONTROLLER_RECENT) {
        api_stream_overflow(c);
        return;
    }
    for (; i < c->recent_count; i++) {
        api_stream_event(c, &c->recent[i % CONTROLLER_RECENT]);
    }
}

/* ---- findings ---- */

/* Returns the word if it is short and plain, else "unknown". */
static const char *word_of(const char *text)
{
    const size_t length = strlen(text);
    return length > 0 && length < 32 && strspn(text, "abcdefghijklmnopqrstuvwxyz-") == length
               ? text
               : "unknown";
}

static uint32_t find_finding(const struct fleet_host *h, uint32_t number)
{
    uint32_t at = 0;
    while (at < h->finding_count && h->findings[at].number != number) {
        at++;
    }
    return at;
}

struct open_finding *state_finding(struct fleet_host *h, uint32_t number)
{
    const uint32_t at = find_finding(h, number);
    return at < h->finding_count ? &h->findings[at] : NULL;
}

static void forget_finding(struct fleet_host *h, uint32_t at)
{
    h->findings[at] = h->findings[--h->finding_count];
}

int64_t state_heard_ns(struct fleet_host *h, uint32_t number)
{
    const uint32_t at = find_finding(h, number);
    const int64_t now_ns = controller_utc_ns();
    if (at == h->finding_count) {
        return now_ns;
    }
    struct open_finding *o = &h->findings[at];
    o->heard_ns = o->heard_ns < now_ns ? o->heard_ns : now_ns; /* UTC may have been set back */
    return o->heard_ns;
}

static uint32_t end_of(const struct controller *c, uint32_t nic_plus_1, const char *host)
{
    const struct fleet_nic *n = nic_plus_1 != 0 ? fleet_find_nic(c, nic_plus_1 - 1) : NULL;
    const struct fleet_host *h = n != NULL      ? n->host
                                 : host[0] != 0 ? fleet_find_host(c, host)
                                                : NULL;
    return h != NULL                         ? h->index
           : nic_plus_1 != 0 || host[0] != 0 ? FINDING_END_UNKNOWN
                                             : FINDING_END_NONE;
}

uint64_t state_subject(const char *kind, const uint32_t nics_plus_1[2], const uint32_t hosts[2])
{
    uint64_t subject = hash_text(kind);
    for (int i = 0; i < 2; i++) {
        subject = hash_u64(subject, (uint64_t)nics_plus_1[i] << 32 | hosts[i]);
    }
    return subject;
}

/* The finding as it is now. If an update has another kind or other ends, its time of first report is now. */
static struct open_finding open_of(const struct controller *c, struct fleet_host *h,
                                   const Foliot__V1__Finding *f)
{
    const uint32_t nics[2] = {f->from_nic, f->to_nic},
                   hosts[2] = {end_of(c, f->from_nic, f->from_host),
                               end_of(c, f->to_nic, f->to_host)};
    struct open_finding o = {.run = f->run,
                             .number = f->number,
                             .heard_ns = controller_utc_ns(),
                             .from = hosts[0],
                             .to = hosts[1],
                             .subject = state_subject(word_of(f->kind), nics, hosts)};
    const uint32_t at = find_finding(h, f->number);
    if (at < h->finding_count && h->findings[at].subject == o.subject) {
        o.heard_ns = state_heard_ns(h, f->number);
        o.named = h->findings[at].named;
    }
    return o;
}

static void note_finding(struct fleet_host *h, const struct open_finding *o, bool over)
{
    const uint32_t at = find_finding(h, o->number);
    if (over && at < h->finding_count) {
        forget_finding(h, at);
    } else if (!over && at < CONTROLLER_HOST_FINDINGS) {
        h->findings[at] = *o;
        h->finding_count += at == h->finding_count;
    }
}

static void put_end_point(const struct controller *c, struct json_writer *j, const char *key,
                          uint32_t nic_plus_1, const char *host)
{
    const struct fleet_nic *n = nic_plus_1 != 0 ? fleet_find_nic(c, nic_plus_1 - 1) : NULL;
    if (nic_plus_1 == 0 && host[0] == 0) {
        json_put_null(j, key);
        return;
    }
    json_put_object(j, key);
    json_put_string(j, "host", n != NULL ? n->host->name : host[0] != 0 ? host : NULL);
    json_put_int_if(j, "nic", nic_plus_1 != 0, (int64_t)nic_plus_1 - 1);
    json_put_string(j, "name", n != NULL ? n->name : NULL);
    json_put_end(j);
}

static const char *or_null(const char *text)
{
    return text[0] != 0 ? text : NULL;
}

static void put_finding(const struct controller *c, struct json_writer *j,
                        const Foliot__V1__Event *e, const struct claim *claim, int64_t heard_ns)
{
    static const char *const directions[] = {NULL, "out", "in", "both"};
    const Foliot__V1__Finding *f = e->finding;
    json_put_object(j, NULL);
    json_put_uint(j, "run", f->run);
    json_put_uint(j, "number", f->number);
    json_put_string(j, "finding", word_of(f->kind));
    json_put_string(j, "phase", f->phase == 0 ? "opened" : f->phase == 1 ? "updated" : "closed");
    put_end_point(c, j, "from", f->from_nic, f->from_host);
    put_end_point(c, j, "to", f->to_nic, f->to_host);
    json_put_string(j, "direction", f->direction < 4 ? directions[f->direction] : NULL);
    json_put_int_if(j, "port", f->port != 0, f->port);
    json_put_hex64(j, "signature", f->signature);
    json_put_int(j, "heard_utc_ns", heard_ns);
    json_put_int_if(j, "since_fleet_ns", f->since_fleet != 0, f->since_fleet);
    json_put_int_if(j, "length_ns", f->phase == 2, f->ended_mono - f->since_mono);
    json_put_int_if(j, "length_error_ns", f->phase == 2 && f->length_error != 0, f->length_error);
    json_put_string(j, "what", or_null(f->what));
    json_put_string(j, "other_direction", or_null(f->other_direction));
    json_put_object(j, "suspect");
    json_put_string(j, "kind", f->suspect_kind[0] != 0 ? f->suspect_kind : "unknown");
    json_put_string(j, "name", or_null(f->suspect));
    json_put_bool(j, "confident", f->confident != 0);
    json_put_end(j);
    claim_put_element(c, j, claim);
    json_put_string(j, "advice", or_null(f->advice));
    json_put_array(j, "numbers");
    for (size_t i = 0; i < f->n_numbers && i < 8; i++) {
        json_put_int(j, NULL, f->numbers[i]);
    }
    json_put_end(j);
    json_put_string(j, "text", or_null(e->text));
    json_put_end(j);
}

/* Findings of an earlier run are over. A host may have as many open findings as an agent keeps. 1: the finding is not taken. */
static int make_room(struct controller *c, struct fleet_host *h, const Foliot__V1__Finding *f,
                     int64_t at_ns)
{
    int r = 0;
    if (h->finding_count > 0 && h->findings[0].run != f->run) {
        h->finding_count = 0;
        r = store_findings_close_others(c->store, h->id, f->run, at_ns);
        brain_tell(c->brain, controller_mono(), BRAIN_RUN, &(struct brain_run){h->index, f->run},
                   NULL);
    }
    if (h->finding_count < CONTROLLER_HOST_FINDINGS || f->phase == 2) {
        return r;
    }
    for (uint32_t i = 0; i < h->finding_count; i++) {
        if (h->findings[i].number == f->number) {
            return r;
        }
    }
    c->count.over++;
    return 1;
}

static int apply_finding(struct controller *c, struct fleet_host *h, const Foliot__V1__Event *said,
                         int64_t at_ns, int64_t since_ns)
{
    struct claim claim;
    if (!claim_take(c, h, said, since_ns, &claim)) {
        c->count.foreign_nics++;
        return 0;
    }
    const Foliot__V1__Finding *f = &claim.finding;
    Foliot__V1__Event placed = *said;
    const Foliot__V1__Event *e = &placed;
    placed.finding = &claim.finding;
    placed.text = claim.text;
    int r = make_room(c, h, f, at_ns);
    if (r != 0) {
        return r < 0 ? r : 0;
    }
    const char *body = NULL;
    size_t size = 0;
    json_writer_reset(&c->json);
    struct open_finding open = open_of(c, h, f);
    put_finding(c, &c->json, e, &claim, open.heard_ns);
    r = json_writer_finish(&c->json, &body, &size);
    char *copy = r < 0 ? NULL : strndup(body, size - 1);
    if (copy == NULL) {
        return -ENOMEM;
    }
    const struct store_finding stored = {.host = h->id,
                                         .opened_ns = since_ns,
                                         .updated_ns = at_ns,
                                         .closed_ns = f->phase == 2 ? at_ns : 0,
                                         .run = f->run,
                                         .number = f->number,
                                         .kind = word_of(f->kind),
                                         .body = copy};
    const struct store_event event = {.at_ns = at_ns,
                                      .fleet_ns = e->at_fleet,
                                      .host = h->id,
                                      .kind = "finding",
                                      .word = word_of(f->kind),
                                      .body = copy};
    r = store_finding_put(c->store, &stored, &open.id);
    c->count.rows++;
    c->count.row_bytes += size + QUOTA_ROW_BYTES;
    r = r < 0 || !state_keeps_event(c, h, quota_keeps_events(h)) ? r : state_event(c, &event);
    free(copy);
    if (r == 0) {
        note_finding(h, &open, f->phase == 2);
        alarm_on_finding(c, h, &claim, since_ns, open.heard_ns);
    }
    return r;
}

static int apply_plain(struct controller *c, struct fleet_host *h, const Foliot__V1__Event *e,
                       int64_t at_ns)
{
    const struct fleet_nic *n = fleet_find_nic(c, e->nic);
    const bool link = e->type == FOLIOT__V1__EVENT_TYPE__EVENT_LINK;
    const char *body = NULL;
    size_t size = 0;
    if (link && (n == NULL || n->host != h)) {
        c->count.foreign_nics++;
        return 0;
    }
    if (!state_keeps_event(c, h, quota_keeps_events(h))) {
        return 0;
    }
    json_writer_reset(&c->json);
    json_put_object(&c->json, NULL);
    if (link) {
        json_put_uint(&c->json, "nic", e->nic);
        json_put_string(&c->json, "name", n->name);
    }
    json_put_string(&c->json, "text", or_null(e->text));
    json_put_end(&c->json);
    int r = json_writer_finish(&c->json, &body, &size);
    char *copy = r < 0 ? NULL : strndup(body, size - 1);
    if (copy == NULL) {
        return -ENOMEM;
    }
    const struct store_event event = {
        .at_ns = at_ns,
        .fleet_ns = e->at_fleet,
        .host = h->id,
        .kind = link ? "link" : "host",
        .word = link                                                     ? word_of(e->word)
                : e->type == FOLIOT__V1__EVENT_TYPE__EVENT_AGENT_STARTED ? "agent-started"
                : e->type == FOLIOT__V1__EVENT_TYPE__EVENT_REPORTS_LOST  ? "reports-lost"
                                                                         : "unknown",
        .body = copy};
    r = state_event(c, &event);
    free(copy);
    return r;
}

int state_apply_event(struct controller *c, struct fleet_host *h, const Foliot__V1__Report *report,
                      const Foliot__V1__Event *e, int64_t at_ns)
{
    const int64_t event_at = fleet_back(h, at_ns, report->at_mono, e->at_mono);
    if (e->type == FOLIOT__V1__EVENT_TYPE__EVENT_FINDING && e->finding != NULL) {
        int64_t since = controller_back(at_ns, report->at_mono, e->finding->since_mono);
        since = e->finding->since_mono == 0 || since > event_at ? event_at : since;
        return apply_finding(c, h, e, event_at, since);
    }
    if (e->type == FOLIOT__V1__EVENT_TYPE__EVENT_AGENT_STARTED) {
        h->finding_count = 0;
        const int r = store_findings_close_others(
            c->store, h->id, e->finding != NULL ? e->finding->run : 0, event_at);
        const struct brain_run run = {h->index, e->finding != NULL ? e->finding->run : 0};
        brain_tell(c->brain, controller_mono(), BRAIN_RUN, &run, NULL);
        return r < 0 ? r : apply_plain(c, h, e, event_at);
    }
    if (e->type == FOLIOT__V1__EVENT_TYPE__EVENT_JOB && e->job != NULL) {
        return job_on_event(c, h, e, event_at);
    }
    return apply_plain(c, h, e, event_at);
}

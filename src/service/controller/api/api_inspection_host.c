/* api_inspection_host.c: hosts as an audit found them: the node table, and the gate and the facts of one host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/audit/sheet.h"
#include "service/audit/sheet_json.h"
#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/audit/past.h"
#include "service/controller/fleet/fleet.h"

enum { GATE_AGE_S = 86400, REST_SIZE = 128 };

/* A tenant gets only the name of the failed check, because the full text may name other hosts. */
static void put_gate_text(const struct api_call *call, const char *key, uint8_t gate,
                          const char *line, const char *check)
{
    json_put_string(call->j, key, call->visible == NULL || gate == AUDIT_PASS ? line : check);
}

/* ---- the node table ---- */

/* The checks of an audit that tell whether packets arrive. */
static const char *const arrivals[] = {"be.conn.", "be.matrix.reach", "be.matrix.path",
                                       "be.matrix.loss"};

/* Connectivity as this audit found it. AUDIT_SKIP: the audit has not looked. */
static enum audit_status connected(const struct audit_outcome *o, const struct audit_found *f)
{
    enum audit_status worst = AUDIT_SKIP;
    for (size_t i = 0; i < ARRAY_COUNT(arrivals); i++) {
        const enum audit_status status = audit_found_worst(o, f, arrivals[i]);
        worst = status < worst ? status : worst;
    }
    return worst;
}

/* The mesh's latest measurements of the host's paths; this request sends no probes. */
static const char *connected_now(const struct api_call *call, const struct fleet_host *h)
{
    const struct scope_paths paths = scope_paths(call, h);
    if (h->paths_at_ns == 0 || paths.all == 0 || !fleet_current(call->c, h, controller_mono())) {
        return "unknown";
    }
    return paths.dead > 0 ? "fail" : paths.lossy > 0 ? "warn" : "pass";
}

static void put_node(struct api_call *call, const struct audit_outcome *o,
                     const struct audit_found *f, const struct fleet_host *h)
{
    static const struct {
        const char *key, *prefix;
    } columns[] = {{"nic", "cfg.nic."},
                   {"initialized", "be.link.initialized"},
                   {"active", "be.link.active"},
                   {"gid_index", "be.roce.gid_index"}};
    static const char *const agents[] = {"never", "live", "late", "stale"};
    const enum audit_status arrive = connected(o, f);
    struct json_writer *j = call->j;
    char gate_check[CHECK_ID_SIZE] = "";
    if (call->visible != NULL) {
        audit_gate_check(f, gate_check);
    }
    json_put_object(j, NULL);
    json_put_string(j, "host", h->name);
    json_put_string(j, "status", audit_status_name(audit_found_worst(o, f, "")));
    json_put_string(j, "agent", agents[fleet_freshness(call->c, h, controller_mono())]);
    for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
        json_put_string(j, columns[i].key,
                        audit_status_name(audit_found_worst(o, f, columns[i].prefix)));
    }
    json_put_string(j, "connectivity",
                    arrive != AUDIT_SKIP ? audit_status_name(arrive) : connected_now(call, h));
    json_put_bool(j, "connectivity_now", arrive == AUDIT_SKIP);
    json_put_string(j, "gate", audit_status_name(f->gate));
    put_gate_text(call, "gate_text", f->gate, f->line, gate_check);
    json_put_string(j, "marks", f->marks);
    json_put_int_if(j, "at_utc_ns", f->at_ns != 0, f->at_ns);
    json_put_end(j);
}

/* A host in the order of the table. */
struct node_place {
    uint32_t index; /* in the outcome */
    uint8_t gate, worst;
};

/* The worst first: hosts that may take no job, then those whose checks fail. The order of equal hosts stays, so pages of one
 * audit fit together. */
static int by_worst(const void *left, const void *right)
{
    const struct node_place *a = left, *b = right;
    const int gate = (int)a->gate - (int)b->gate, worst = (int)a->worst - (int)b->worst;
    return gate != 0 ? gate : worst != 0 ? worst : a->index < b->index ? -1 : a->index > b->index;
}

/* The worst of all its marks, as audit_found_worst() has it: fast, for all hosts of a fleet are put in order for each page. */
static enum audit_status worst_of(const struct audit_found *f)
{
    enum audit_status worst = AUDIT_SKIP;
    for (const char *mark = f->marks; *mark != '\0'; mark++) {
        const enum audit_status status = audit_mark_status(*mark);
        worst = status < worst ? status : worst;
    }
    return worst;
}

/* The hosts that this token sees, the worst first; the caller frees them. NULL: out of memory. */
static struct node_place *in_order(const struct api_call *call, const struct audit_outcome *o,
                                   uint32_t *ret_count)
{
    struct node_place *places = calloc(o->count + 1, sizeof(*places));
    uint32_t count = 0;
    for (uint32_t i = 0; places != NULL && i < o->count; i++) {
        const struct audit_found *f = &o->found[i];
        if (scope_host(call, f->host) != NULL) {
            places[count++] =
                (struct node_place){.index = i, .gate = f->gate, .worst = (uint8_t)worst_of(f)};
        }
    }
    if (places != NULL) {
        qsort(places, count, sizeof(*places), by_worst);
    }
    *ret_count = count;
    return places;
}

void api_answer_audit_nodes(struct api_call *call, int64_t id)
{
    int64_t limit, cursor;
    uint32_t count = 0;
    const struct audit_outcome *o = NULL;
    if (!api_page(call, &limit, &cursor)) {
        return;
    }
    const int r = audit_outcome_get(call->c, id, &o);
    if (r < 0) {
        api_store_error(call, r);
        return;
    }
    struct node_place *places = in_order(call, o, &count);
    if (places == NULL) {
        api_error(call, 503, "memory", "out of memory");
        return;
    }
    json_put_object(call->j, NULL);
    json_put_array(call->j, "items");
    for (int64_t i = cursor; i < count && i - cursor < limit; i++) {
        const struct audit_found *f = &o->found[places[i].index];
        put_node(call, o, f, scope_host(call, f->host));
    }
    free(places);
    json_put_end(call->j);
    char next[24];
    const bool more = count > cursor && count - cursor > limit;
    snprintf(next, sizeof(next), "%lld", (long long)(more ? cursor + limit : 0));
    json_put_string(call->j, "next", more ? next : NULL);
    json_put_end(call->j);
    api_answer(call);
}

/* ---- one host ---- */

static void answer_gate(struct api_call *call, const struct fleet_host *h)
{
    const struct audit_known *known = audit_known_of(call->c, h);
    struct json_writer *j = call->j;
    int64_t age_s = GATE_AGE_S;
    char run[24], text[AUDIT_WORDS_SIZE];
    if (!api_number(call, "age_s", 1, 366LL * 86400, &age_s)) {
        return;
    }
    const bool there = known != NULL && known->run != 0;
    const int64_t is_s =
        there && known->at_ns != 0 ? (controller_utc_ns() - known->at_ns) / NS_PER_S : -1;
    /* the controller's clock went back */
    const bool later = there && known->at_ns != 0 && is_s < 0;
    const bool stale = later || (there && known->at_ns != 0 && is_s > age_s);
    snprintf(run, sizeof(run), "%lld", there ? (long long)known->run : 0LL);
    snprintf(text, sizeof(text), "the audit is %lld s old, asked for at most %lld s",
             (long long)is_s, (long long)age_s);
    json_put_object(j, NULL);
    json_put_string(j, "host", h->name);
    json_put_string(j, "status", audit_status_name(!there || stale ? AUDIT_UNKNOWN : known->gate));
    json_put_string(j, "reason", !there ? "not_run" : stale ? "stale" : NULL);
    if (there && !stale) {
        put_gate_text(call, "text", known->gate, known->line, known->gate_check);
    } else {
        json_put_string(j, "text",
                        later
                            ? "the audit's time is in the future: the controller's clock went back"
                        : there ? text
                                : "it was never audited");
    }
    json_put_string(j, "run", there ? run : NULL);
    json_put_int_if(j, "age_s", is_s >= 0, is_s);
    json_put_end(j);
    api_answer(call);
}

/* Removes for a tenant the hosts that it does not see, and what was measured with them. */
static void keep_seen(const struct api_call *call, struct sheet *s)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; s != NULL && i < s->count; i++) {
        const struct fact *f = &s->facts[i];
        const bool by_others = call->visible != NULL && fact_is_of_controller((enum fact_id)f->id);
        if (!by_others && !scope_hides(call, f->peer)) {
            s->facts[kept++] = *f;
        }
    }
    if (s != NULL) {
        s->count = kept;
        s->run = call->visible == NULL ? s->run : NULL;
    }
}

static void answer_facts(struct api_call *call, const struct fleet_host *h)
{
    struct sheet *s = NULL;
    struct audit_accepted accepted;
    int r = audit_accepted_newest(call->c->store, &accepted);
    r = r < 0 ? r : audit_sheet(call->c->store, h->id, h->name, INT64_MAX, &s);
    r = r < 0 ? r : audit_past_add(call->c->store, h->id, &accepted, s);
    if (r < 0) {
        sheet_free(s);
        api_store_error(call, r);
        return;
    }
    keep_seen(call, s);
    keep_seen(call, (struct sheet *)(uintptr_t)s->accepted);
    sheet_write(call->j, s);
    sheet_free(s);
    api_answer(call);
}

void api_get_audit_host(struct api_call *call)
{
    const char *slash = strchr(call->rest, '/');
    char name[REST_SIZE];
    snprintf(name, sizeof(name), "%.*s",
             (int)(slash != NULL && slash - call->rest < REST_SIZE ? slash - call->rest : 0),
             call->rest);
    const struct fleet_host *h = fleet_find_host(call->c, name);
    if (slash == NULL || (strcmp(slash, "/gate") != 0 && strcmp(slash, "/facts") != 0)) {
        api_error(call, 404, "no-such-path", "no such path: /api/v1/openapi.yaml has them all");
    } else if (h == NULL || !api_sees(call, h) || !h->member) {
        api_error(call, 404, "no-such-host", "%.63s: no such host", name);
    } else if (strcmp(slash, "/gate") == 0) {
        answer_gate(call, h);
    } else {
        answer_facts(call, h);
    }
}

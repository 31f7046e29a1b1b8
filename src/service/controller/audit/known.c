/* known.c: the newest audit's results of each host, for alerts: its gate, and the number of failures. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/controller/audit/audit.h"
#include "service/controller/fleet/fleet.h"

struct audit_known *audit_known_of(struct controller *c, const struct fleet_host *h)
{
    struct audits *a = c->audits;
    if (h->index >= a->known_count) {
        const uint32_t count = h->index + 64;
        struct audit_known *larger = realloc(a->known, count * sizeof(*larger));
        if (larger == NULL) {
            return NULL;
        }
        memset(larger + a->known_count, 0, (count - a->known_count) * sizeof(*larger));
        a->known = larger;
        a->known_count = count;
    }
    return &a->known[h->index];
}

/* Index of a NIC at its host; HOST_NIC_MAX: the fleet does not know this NIC. */
static uint32_t nic_place(const struct controller *c, const struct fleet_host *h,
                          const char *interface)
{
    uint32_t i = 0;
    while (i < h->nic_count &&
           (interface == NULL || strcmp(c->nics[h->nics[i]]->name, interface) != 0)) {
        i++;
    }
    return i < h->nic_count ? i : HOST_NIC_MAX;
}

/* Counts each check once for the host, or once per NIC. Results of one check are neighbours. */
static void count_failures(const struct controller *c, struct audit_known *known,
                           const struct fleet_host *h, const struct audit_found *f)
{
    json_t *results = json_loadb(f->results, f->size, 0, NULL), *r;
    const char *last = "";
    size_t i;
    json_array_foreach(results, i, r)
    {
        const char *id = json_string_value(json_object_get(r, "check")),
                   *status = json_string_value(json_object_get(r, "status")),
                   *severity = json_string_value(json_object_get(r, "severity"));
        const struct check *check = id != NULL ? check_by_id(id) : NULL;
        if (check == NULL || status == NULL || severity == NULL || strcmp(status, "fail") != 0) {
            continue;
        }
        const uint32_t place =
            (check->flags & CHECK_OF_LINKS) != 0
                ? nic_place(c, h, json_string_value(json_object_get(r, "interface")))
                : HOST_NIC_MAX;
        if (place < HOST_NIC_MAX) {
            known->links[place]++;
        } else if (strcmp(last, id) != 0) {
            known->blocked += strcmp(severity, check_severity_name(SEVERITY_BLOCK)) == 0;
            known->failed += strcmp(severity, check_severity_name(SEVERITY_DRAIN)) == 0;
            last = id;
        }
    }
    json_decref(results);
}

void audit_gate_check(const struct audit_found *f, char ret_check[static CHECK_ID_SIZE])
{
    /* results from the store lack the check; parsing them takes long for a whole fleet, so only those are parsed */
    const bool unknown = f->gate < AUDIT_PASS && f->gate_check[0] == 0;
    json_t *results = unknown ? json_loadb(f->results, f->size, 0, NULL) : NULL, *r;
    size_t i;
    snprintf(ret_check, CHECK_ID_SIZE, "%s", f->gate_check);
    json_array_foreach(results, i, r)
    {
        const char *id = json_string_value(json_object_get(r, "check")),
                   *status = json_string_value(json_object_get(r, "status")),
                   *severity = json_string_value(json_object_get(r, "severity"));
        if (id != NULL && status != NULL && severity != NULL && ret_check[0] == 0 &&
            strcmp(status, audit_status_name(f->gate)) == 0 &&
            strcmp(severity, check_severity_name(SEVERITY_BLOCK)) == 0) {
            snprintf(ret_check, CHECK_ID_SIZE, "%s", id);
        }
    }
    json_decref(results);
}

int audit_learn(struct controller *c, const struct audit_outcome *o, const struct audit_found *f)
{
    const struct fleet_host *h = fleet_host_by_id(c, f->host);
    struct audit_known *known = h != NULL ? audit_known_of(c, h) : NULL;
    bool fails = false;
    if (known == NULL) {
        return h == NULL ? 0 : -ENOMEM;
    }
    *known = (struct audit_known){.run = o->run,
                                  .at_ns = f->at_ns,
                                  .gate = f->gate,
                                  .whole = known->whole,
                                  .absence = known->absence};
    snprintf(known->line, sizeof(known->line), "%s", f->line);
    audit_gate_check(f, known->gate_check);
    for (uint32_t i = 0; i < o->check_count; i++) {
        const struct check *check = check_by_id(o->checks[i]);
        fails = fails || f->marks[i] == 'F';
        known->unknown += f->marks[i] == 'U' && check != NULL && check->severity == SEVERITY_BLOCK;
    }
    if (fails) { /* few hosts fail: only their results are parsed */
        count_failures(c, known, h, f);
    }
    return 0;
}

/* ---- over a restart ---- */

struct learning {
    struct controller *c;
    struct audit_outcome *checks; /* checks of the last row's run */
};

static int learn_row(void *context, const struct store_audit_host *row)
{
    struct learning *l = context;
    struct audit_found f = {.host = row->host,
                            .at_ns = row->at_ns,
                            .line = (char *)(uintptr_t)row->line,
                            .results = (char *)(uintptr_t)row->body,
                            .size = row->size};
    if (l->checks == NULL || l->checks->run != row->run) {
        l->checks = audit_outcome_free(l->checks);
        const int r = audit_outcome_checks(l->c, row->run, &l->checks);
        if (r < 0) {
            return r == -ENOENT ? 0 : r;
        }
    }
    snprintf(f.marks, sizeof(f.marks), "%s", row->marks);
    while (f.gate < AUDIT_SKIP && strcmp(audit_status_name(f.gate), row->gate) != 0) {
        f.gate++;
    }
    return audit_learn(l->c, l->checks, &f);
}

int audit_known_open(struct controller *c)
{
    struct learning l = {.c = c};
    const int r = store_audit_newest(c->store, learn_row, &l);
    audit_outcome_free(l.checks);
    return r;
}

/* history.c: see history.h. */
#include "service/controller/audit/history.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "core/audit/fact.h"

#define MONTH_NS (30 * 86400 * NS_PER_S)
#define HALF_NS  (14 * 86400 * NS_PER_S)

enum { INCIDENTS_MAX = 1 << 18, TEXT_SIZE = 64 };

struct ill {
    char name[TLS_NAME_MAX + 1];
    double score;
    unsigned incidents;
    char text[TEXT_SIZE];
};
struct audit_history {
    int64_t now_ns;
    struct ill *hosts; /* hosts that had incidents; sorted by name when all are there */
    uint32_t count, room;
};

struct audit_history *audit_history_free(struct audit_history *h)
{
    if (h != NULL) {
        free(h->hosts);
        free(h);
    }
    return NULL;
}

/* The host that caused the incident: the host of the element's only place. NULL: several hosts, or none. */
static const char *host_of(const json_t *incident)
{
    const json_t *places = json_object_get(json_object_get(incident, "element"), "places");

    return json_array_size(places) == 1
               ? json_string_value(json_object_get(json_array_get(places, 0), "host"))
               : NULL;
}

static int add(struct audit_history *h, const char *name, double share)
{
    if (h->count == h->room) {
        const uint32_t room = h->room * 2 + 256;
        struct ill *larger = realloc(h->hosts, room * sizeof(*larger));
        if (larger == NULL) {
            return -ENOMEM;
        }
        h->hosts = larger;
        h->room = room;
    }
    struct ill *i = &h->hosts[h->count++];
    *i = (struct ill){.score = share, .incidents = 1};
    snprintf(i->name, sizeof(i->name), "%s", name);
    return 0;
}

static int on_event(void *context, const struct store_event *event)
{
    struct audit_history *h = context;
    json_t *incident = json_loads(event->body, 0, NULL);
    const char *host = host_of(incident);
    const double age_ns = event->at_ns < h->now_ns ? (double)(h->now_ns - event->at_ns) : 0;
    const int r = host != NULL ? add(h, host, exp2(-age_ns / (double)HALF_NS)) : 0;

    json_decref(incident);
    return r;
}

static int by_name(const void *a, const void *b)
{
    const struct ill *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* The entries have one incident each and are sorted by name. Merges them into one entry per host. */
static void add_up(struct audit_history *h)
{
    uint32_t kept = 0;

    if (h->count > 0) {
        qsort(h->hosts, h->count, sizeof(*h->hosts), by_name);
    }
    for (uint32_t i = 0; i < h->count; i++) {
        if (kept > 0 && by_name(&h->hosts[kept - 1], &h->hosts[i]) == 0) {
            h->hosts[kept - 1].score += h->hosts[i].score;
            h->hosts[kept - 1].incidents++;
        } else {
            h->hosts[kept++] = h->hosts[i];
        }
    }
    h->count = kept;
    for (uint32_t i = 0; i < kept; i++) {
        snprintf(h->hosts[i].text, TEXT_SIZE, "incidents %u, score %.0f", h->hosts[i].incidents,
                 1000 * h->hosts[i].score);
    }
}

int audit_history_new(struct store *store, int64_t now_ns, struct audit_history **ret_history)
{
    struct audit_history *h = calloc(1, sizeof(*h));

    if (h == NULL) {
        return -ENOMEM;
    }
    h->now_ns = now_ns;
    const int r = store_events(store,
                               &(struct store_event_filter){.since_ns = now_ns - MONTH_NS,
                                                            .kind = "incident",
                                                            .word = "opened",
                                                            .newest_first = true,
                                                            .limit = INCIDENTS_MAX},
                               on_event, h);
    if (r < 0) {
        audit_history_free(h);
        return r;
    }
    add_up(h);
    *ret_history = h;
    return 0;
}

int audit_history_fact(struct audit_history *h, const char *host, struct sheet *sheet)
{
    struct ill wanted;
    struct fact *larger = realloc(sheet->facts, (sheet->count + 1) * sizeof(*larger));

    if (larger == NULL) {
        return -ENOMEM;
    }
    snprintf(wanted.name, sizeof(wanted.name), "%s", host);
    const struct ill *found =
        h->count > 0 ? bsearch(&wanted, h->hosts, h->count, sizeof(wanted), by_name) : NULL;
    sheet->facts = larger;
    sheet->facts[sheet->count++] =
        (struct fact){.id = FACT_HISTORY,
                      .state = FACT_VALUE,
                      .subject = "",
                      .value = found != NULL ? found->text : "incidents 0, score 0",
                      .source = "incidents of the last 30 days"};
    sheet->capacity = sheet->count;
    return 0;
}

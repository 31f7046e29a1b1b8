/* api_nic.c: the fleet's NICs, also as ports of links: filtered, searched by words, sorted. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/controller/api/api.h"
#include "service/controller/api/incident_nics.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/ways.h"

static const char *port_word(uint32_t state)
{
    static const char *const words[] = {"unknown", "up", "down", "gone"};
    return state < ARRAY_COUNT(words) ? words[state] : "unknown";
}

static void put_address(struct json_writer *j, const char *key, int family, const uint8_t *bytes)
{
    static const uint8_t none[16];
    char text[INET6_ADDRSTRLEN];
    const bool known = memcmp(bytes, none, family == AF_INET ? 4 : 16) != 0;
    json_put_string(j, key,
                    known && inet_ntop(family, bytes, text, sizeof(text)) != NULL ? text : NULL);
}

/* The NIC's name and place. */
static void put_place(struct json_writer *j, const struct fleet_nic *n, bool known)
{
    const bool heard = known && n->neighbour[0] != 0;
    json_put_uint(j, "nic", n->id);
    json_put_string(j, "host", n->host->name);
    json_put_string(j, "name", n->name);
    json_put_uint(j, "rail", n->rail);
    json_put_string(j, "leaf", n->leaf[0] != 0 ? n->leaf : NULL);
    json_put_string(j, "switch", heard ? n->neighbour : NULL);
    json_put_string(j, "switch_port", heard ? n->neighbour_port : NULL);
}

static void put_nic(struct api_call *call, const struct incident_nics *incidents,
                    const struct fleet_nic *n, struct mono now)
{
    (void)incidents;
    struct controller *c = call->c;
    struct json_writer *j = call->j;
    const bool known = n->reported && fleet_current(c, n->host, now);
    json_put_object(j, NULL);
    put_place(j, n, known);
    put_address(j, "address", AF_INET, n->address4);
    put_address(j, "address6", AF_INET6, n->address6);
    json_put_string(j, "state", port_word(known ? n->state : 0));
    json_put_string(j, "stamps",
                    !known           ? NULL
                    : n->stamps == 2 ? "hardware"
                    : n->stamps == 1 ? "software"
                                     : "none");
    json_put_string(j, "trouble", known && n->trouble[0] != 0 ? n->trouble : NULL);
    if (known) {
        json_put_bool(j, "watched", !fleet_nic_unwatched(n));
    } else {
        json_put_null(j, "watched");
    }
    json_put_string(j, "freshness", freshness_word(fleet_freshness(c, n->host, now)));
    json_put_end(j);
}

/* The open incident that accuses this NIC, or may accuse it. Carrier alone decides nothing. */
static void put_incident(struct json_writer *j, const struct incident_nic *i)
{
    if (i == NULL) {
        json_put_null(j, "incident");
        return;
    }
    json_put_object(j, "incident");
    json_put_uint(j, "incident", i->incident);
    json_put_string(j, "kind", element_kind_word(i->kind));
    json_put_string(j, "direction", direction_word(i->direction));
    json_put_uint(j, "one_of", i->one_of);
    json_put_end(j);
}

void api_put_link(struct api_call *call, const struct incident_nics *incidents,
                  const struct fleet_nic *n, struct mono now)
{
    struct controller *c = call->c;
    struct json_writer *j = call->j;
    const bool known = n->reported && fleet_current(c, n->host, now);
    json_put_object(j, NULL);
    put_place(j, n, known);
    json_put_string(j, "first_switch", known ? ways_first_switch(c, n) : NULL);
    json_put_string(j, "state", port_word(known ? n->state : 0));
    put_incident(j, incident_nics_accused(incidents, n));
    json_put_int_if(j, "since_utc_ns", known && n->since_utc_ns != 0, n->since_utc_ns);
    json_put_int_if(j, "speed_bps", n->speed_mbps != 0, (int64_t)n->speed_mbps * 1000000);
    json_put_int_if(j, "width", n->width != 0, n->width);
    json_put_int_if(j, "carrier_down_count", n->reported, (int64_t)n->carrier_downs);
    json_put_int_if(j, "flaps_hour", known, n->flaps_hour);
    json_put_int_if(j, "flaps_day", known, n->flaps_day);
    json_put_int_if(j, "rx_bps", known && n->rx_bps >= 0, n->rx_bps);
    json_put_int_if(j, "tx_bps", known && n->tx_bps >= 0, n->tx_bps);
    json_put_int_if(j, "rx_errors", n->reported, (int64_t)n->rx_errors);
    json_put_int_if(j, "tx_errors", n->reported, (int64_t)n->tx_errors);
    json_put_int_if(j, "rx_dropped", n->reported, (int64_t)n->rx_drops);
    json_put_int_if(j, "tx_dropped", n->reported, (int64_t)n->tx_drops);
    json_put_string(j, "freshness", freshness_word(fleet_freshness(c, n->host, now)));
    json_put_end(j);
}

static bool nic_wanted(struct api_call *call, const struct incident_nics *incidents,
                       const struct fleet_nic *n, struct mono now)
{
    const char *incident = http_query(call->request, "incident"),
               *leaf = http_query(call->request, "leaf"),
               *state = http_query(call->request, "state"),
               *unwatched = http_query(call->request, "unwatched");
    const bool known = n->reported && fleet_current(call->c, n->host, now);
    return (incident == NULL ||
            (strcmp(incident, "any") == 0 ? incident_nics_named(incidents, n)
                                          : incident_nics_accused(incidents, n) != NULL)) &&
           (leaf == NULL || strcmp(leaf, n->leaf) == 0) &&
           (state == NULL || strcmp(state, port_word(known ? n->state : 0)) == 0) &&
           (unwatched == NULL || strcmp(unwatched, "true") != 0 ||
            (known && fleet_nic_unwatched(n)));
}

/* ---- search by words ---- */

/* True if each word is in one of the NIC's names, in upper or lower case. */
static bool has_words(struct controller *c, const struct fleet_nic *n, const char *words,
                      struct mono now)
{
    const bool known = n->reported && fleet_current(c, n->host, now);
    const char *first = known && n->leaf[0] == 0 ? ways_first_switch(c, n) : NULL;
    char names[512];
    snprintf(names, sizeof(names), "%s/%s rail%u %s %s %s %s %s", n->host->name, n->name, n->rail,
             n->leaf, first != NULL ? first : "", known ? n->neighbour : "",
             known ? n->neighbour_port : "", port_word(known ? n->state : 0));
    while (*(words += strspn(words, " \t")) != 0) {
        char word[128];
        const size_t size = strcspn(words, " \t");
        snprintf(word, sizeof(word), "%.*s", (int)size, words);
        if (size >= sizeof(word) || strcasestr(names, word) == NULL) {
            return false;
        }
        words += size;
    }
    return true;
}

/* ---- sorting ---- */

struct row {
    const struct fleet_nic *nic;
    const char *text; /* sort key unless NULL: natural order, gpu2 before gpu10 */
    double number;
};
struct order {
    const char *by; /* a word of NIC_SORTS in api.c */
    bool down;
};

/* The sort key. Unknown values of silent hosts come after all known ones. accused: NULL: no open incident accuses it. */
static double number_of(const char *by, const struct fleet_nic *n, bool known,
                        const struct incident_nic *accused)
{
    static const uint8_t ill[] = {1, 0, 4,
                                  3}; /* by port_word(): down, gone, accused, unknown, up */
    if (strcmp(by, "state") == 0) {
        const uint8_t own = ill[known ? n->state & 3 : 0];
        return 1e10 * (accused != NULL && own < 2 ? 2 : own) + (known ? n->flaps_day : 0);
    }
    if (strcmp(by, "incident") == 0) { /* sure accusations first, then older ones */
        return accused == NULL ? 0 : 2 - accused->one_of / 1e3 - (double)accused->incident / 1e12;
    }
    return strcmp(by, "since") == 0        ? (double)(known ? n->since_utc_ns : 0)
           : strcmp(by, "flaps_hour") == 0 ? (known ? (double)n->flaps_hour : -1)
           : strcmp(by, "flaps_day") == 0  ? (known ? (double)n->flaps_day : -1)
           : strcmp(by, "speed") == 0      ? (double)n->speed_mbps
           : strcmp(by, "receives") == 0   ? (double)(known ? n->rx_bps : -1)
           : strcmp(by, "sends") == 0      ? (double)(known ? n->tx_bps : -1)
           : strcmp(by, "errors") == 0 ? (n->reported ? (double)(n->rx_errors + n->tx_errors) : -1)
                                       : (double)n->rail;
}

static struct row row_of(struct controller *c, const struct order *order,
                         const struct incident_nics *incidents, const struct fleet_nic *n,
                         struct mono now)
{
    const bool known = n->reported && fleet_current(c, n->host, now);
    struct row row = {.nic = n};
    if (strcmp(order->by, "leaf") == 0) {
        const char *first = n->leaf[0] == 0 && known ? ways_first_switch(c, n) : NULL;
        row.text = first != NULL ? first : n->leaf;
    } else if (strcmp(order->by, "nic") == 0) {
        row.text = n->host->name;
    } else {
        row.number = number_of(order->by, n, known, incident_nics_accused(incidents, n));
    }
    return row;
}

/* < 0: a comes first. Equal rows are sorted by name, then by number, in both orders. */
static int compare(const struct order *order, const struct row *a, const struct row *b)
{
    int way = a->text != NULL ? strverscmp(a->text, b->text)
                              : (a->number > b->number) - (a->number < b->number);
    if (way != 0) {
        return order->down ? -way : way;
    }
    way = strverscmp(a->nic->host->name, b->nic->host->name);
    way = way != 0 ? way : strverscmp(a->nic->name, b->nic->name);
    way = way != 0 ? way : (a->nic->id > b->nic->id) - (a->nic->id < b->nic->id);
    return strcmp(order->by, "nic") == 0 && order->down ? -way : way;
}

static void sink(const struct order *order, struct row *rows, size_t count, size_t i)
{
    for (;;) {
        size_t last = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < count; child++) {
            last = compare(order, &rows[child], &rows[last]) > 0 ? child : last;
        }
        if (last == i) {
            return;
        }
        const struct row row = rows[i];
        rows[i] = rows[last];
        rows[last] = row;
        i = last;
    }
}

/* Moves the first `wanted` rows to the front, sorted. The rest of a large fleet is never sorted. */
static size_t sort_first(const struct order *order, struct row *rows, size_t count, size_t wanted)
{
    const size_t kept = wanted < count ? wanted : count;
    for (size_t i = kept / 2; i-- > 0;) {
        sink(order, rows, kept, i);
    }
    for (size_t i = kept; i < count && kept > 0; i++) {
        if (compare(order, &rows[i], &rows[0]) < 0) {
            rows[0] = rows[i];
            sink(order, rows, kept, 0);
        }
    }
    for (size_t i = kept; i-- > 1;) {
        const struct row row = rows[0];
        rows[0] = rows[i];
        rows[i] = row;
        sink(order, rows, i, 0);
    }
    return kept;
}

/* ---- the list ---- */

typedef void (*put_row)(struct api_call *call, const struct incident_nics *incidents,
                        const struct fleet_nic *n, struct mono now);

struct wanted {
    struct fleet_host *host; /* NULL: all hosts */
    int64_t rail, flaps;     /* rail -1: all; flaps: at least */
    const char *words;       /* NULL: none */
    struct incident_nics incidents;
};

static bool is_wanted(struct api_call *call, const struct wanted *w, const struct fleet_nic *n,
                      struct mono now)
{
    return n != NULL && api_sees(call, n->host) && (w->host == NULL || n->host == w->host) &&
           (w->rail < 0 || n->rail == w->rail) && n->flaps_hour >= w->flaps &&
           nic_wanted(call, &w->incidents, n, now) &&
           (w->words == NULL || has_words(call->c, n, w->words, now));
}

/* Lists NICs by number: the cursor is a number. */
static void list_by_number(struct api_call *call, const struct wanted *w, int64_t limit,
                           int64_t cursor, put_row put, struct mono now)
{
    struct controller *c = call->c;
    int64_t count = 0;
    uint32_t i;
    for (i = cursor < c->nic_count ? (uint32_t)cursor : c->nic_count; i < c->nic_count; i++) {
        if (!is_wanted(call, w, c->nics[i], now)) {
            continue;
        }
        if (count++ == limit) {
            break;
        }
        put(call, &w->incidents, c->nics[i], now);
    }
    json_put_end(call->j);
    api_put_next(call->j, i < c->nic_count, i);
}

/* Lists NICs in the order asked for: the cursor is the count of rows before it in the present order. */
static bool list_sorted(struct api_call *call, const struct wanted *w, const struct order *order,
                        int64_t limit, int64_t cursor, put_row put, struct mono now)
{
    struct controller *c = call->c;
    struct row *rows = calloc(c->nic_count + 1, sizeof(*rows));
    size_t count = 0;
    if (rows == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < c->nic_count; i++) {
        if (is_wanted(call, w, c->nics[i], now)) {
            rows[count++] = row_of(c, order, &w->incidents, c->nics[i], now);
        }
    }
    const size_t skipped = (size_t)cursor < count ? (size_t)cursor : count;
    const size_t kept = sort_first(order, rows, count, skipped + (size_t)limit);
    for (size_t i = skipped; i < kept; i++) {
        put(call, &w->incidents, rows[i].nic, now);
    }
    json_put_end(call->j);
    api_put_next(call->j, kept < count, (int64_t)kept);
    free(rows);
    return true;
}

/* True without a leaf, or if a NIC that the caller sees has this leaf. */
static bool leaf_good(struct api_call *call)
{
    const char *leaf = http_query(call->request, "leaf");
    bool good = leaf == NULL || leaf[0] == 0;
    for (uint32_t i = 0; i < call->c->nic_count && !good; i++) {
        const struct fleet_nic *n = call->c->nics[i];
        good = n != NULL && strcmp(n->leaf, leaf) == 0 && api_sees(call, n->host);
    }
    if (!good) {
        api_error(call, 404, "no-such-leaf", "leaf: no NIC has this leaf");
    }
    return good;
}

static void list_nics(struct api_call *call, put_row put)
{
    const struct mono now = controller_mono();
    const char *by = http_query(call->request, "sort"), *way = http_query(call->request, "order"),
               *words = http_query(call->request, "q");
    const struct order order = {by, way != NULL && strcmp(way, "desc") == 0};
    struct wanted w = {.rail = -1, .words = words};
    int64_t limit, cursor;
    if (!api_page(call, &limit, &cursor) || !api_number(call, "rail", 0, UINT16_MAX, &w.rail) ||
        !api_number(call, "flaps_hour_min", 0, UINT32_MAX, &w.flaps) ||
        !api_host(call, "host", &w.host) || !leaf_good(call)) {
        return;
    }
    if (by == NULL && way != NULL) {
        api_error(call, 400, "bad-filter", "order: expected together with sort");
        return;
    }
    const bool wanted = put == api_put_link || http_query(call->request, "incident") != NULL ||
                        (by != NULL && (strcmp(by, "state") == 0 || strcmp(by, "incident") == 0));
    bool done = !wanted || incident_nics_collect(call, &w.incidents);
    if (done) {
        json_put_object(call->j, NULL);
        json_put_array(call->j, "items");
        if (by == NULL) {
            list_by_number(call, &w, limit, cursor, put, now);
        } else {
            done = list_sorted(call, &w, &order, limit, cursor, put, now);
        }
    }
    incident_nics_done(&w.incidents);
    if (!done) {
        api_error(call, 503, "no-memory",
                  "out of memory for sorting the fleet's NICs: ask without sort");
        return;
    }
    json_put_end(call->j);
    api_answer(call);
}

void api_get_nics(struct api_call *call)
{
    list_nics(call, put_nic);
}

void api_get_links(struct api_call *call)
{
    list_nics(call, api_put_link);
}

/* pairs.c: see pairs.h. */
#include "core/audit/pairs.h"

#include <stdlib.h>
#include <string.h>

/* "eth0 HOST eth1": the own end is the first word, the other end is the rest. "HOST": the own end is the host itself. */
static size_t own_end(const char *subject)
{
    const char *blank = strchr(subject, ' ');

    return blank != NULL ? (size_t)(blank - subject) : 0;
}

static const char *other_end(const char *subject)
{
    const size_t own = own_end(subject);

    return own > 0 ? subject + own + 1 : subject;
}

static bool of_one_end(const struct audit_result *x, const struct audit_result *y)
{
    const size_t size = own_end(x->subject);

    return x->sheet == y->sheet && size == own_end(y->subject) &&
           strncmp(x->subject, y->subject, size) == 0;
}

static bool was_judged(const struct audit_result *r)
{
    return r->subject[0] != '\0' &&
           (r->status == AUDIT_FAIL || r->status == AUDIT_WARN || r->status == AUDIT_PASS);
}

static int compare(const void *a, const void *b)
{
    const struct audit_item *x = a, *y = b;
    const int key = strcmp(x->key, y->key);

    return key != 0 ? key : (x->result > y->result) - (x->result < y->result);
}

/* Collects the pairs of witnesses: own ends that find the failure with at most half of their neighbours. */
static void hear_witnesses(struct audit *a, uint32_t from)
{
    for (uint32_t i = from, n; i < a->count; i += n) {
        uint32_t judged = 0, failed = 0;
        for (n = 0; i + n < a->count && of_one_end(&a->results[i], &a->results[i + n]); n++) {
            judged += was_judged(&a->results[i + n]);
            failed += a->results[i + n].status == AUDIT_FAIL;
        }
        for (uint32_t k = i; failed * 2 <= judged && k < i + n; k++) {
            if (was_judged(&a->results[k]) && a->item_count < a->item_capacity) {
                a->items[a->item_count++] = (struct audit_item){
                    .result = k, .product = "", .key = other_end(a->results[k].subject)};
            }
        }
    }
}

/* Pairs with the same other end. A host that was read before `since_ns` is no witness. */
struct end {
    struct audit_item *items;
    uint32_t count;
    int64_t since_ns;
};

static bool is_heard(const struct audit *a, const struct end *e, uint32_t i)
{
    return a->sheets[a->results[e->items[i].result].sheet].at_utc_ns >= e->since_ns;
}

/* The number of its hosts, and of those that found a failure. */
static void count_hosts(const struct audit *a, const struct end *e, uint32_t *ret_hosts,
                        uint32_t *ret_failed)
{
    uint32_t host = UINT32_MAX, failed = UINT32_MAX;

    *ret_hosts = *ret_failed = 0;
    for (uint32_t i = 0; i < e->count; i++) { /* in the order of results: host by host */
        const struct audit_result *r = &a->results[e->items[i].result];
        if (!is_heard(a, e, i)) {
            continue;
        }
        *ret_hosts += r->sheet != host;
        host = r->sheet;
        if (r->status == AUDIT_FAIL) {
            *ret_failed += r->sheet != failed;
            failed = r->sheet;
        }
    }
}

/* It was judged, or could not be: a host that hears nothing doesn't know whether its own packets arrive. */
static bool was_looked_at(const struct audit_result *r)
{
    return was_judged(r) ||
           (r->subject[0] != '\0' && r->status == AUDIT_UNKNOWN && r->reason == REASON_NOT_RUN);
}

/* The first result of that end by its own host; UINT32_MAX: there is none. */
static uint32_t result_of(const struct audit *a, uint32_t from, const char *end)
{
    const size_t host = strcspn(end, " ");
    const char *nic = end[host] == ' ' ? end + host + 1 : "";

    for (uint32_t i = from; i < a->count; i++) {
        const struct audit_result *r = &a->results[i];
        const char *name = a->sheets[r->sheet].host;
        if (was_looked_at(r) && strlen(name) == host && strncmp(name, end, host) == 0 &&
            own_end(r->subject) == strlen(nic) && strncmp(r->subject, nic, strlen(nic)) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* At least two hosts found it, and more than half of those that have this end as a neighbour. */
static bool most_find_it(const struct audit *a, const struct end *e, uint32_t *ret_hosts,
                         uint32_t *ret_failed)
{
    enum { WITNESSES_LEAST = 2 };

    count_hosts(a, e, ret_hosts, ret_failed);
    return *ret_failed >= WITNESSES_LEAST && *ret_failed * 2 > *ret_hosts;
}

/* Results from before this audit, or from long before the host itself was read, are no evidence. If the end has the fault, its
 * first item gets the words (`value`) and the end's own result (`vote`), and the results of those that found it are marked
 * (`once`). */
static void weigh_end(struct audit *a, struct end e, uint32_t from)
{
    struct judging j = {.audit = a};
    uint32_t hosts, failed;

    if (!most_find_it(a, &e, &hosts, &failed)) {
        return;
    }
    const uint32_t own = result_of(a, from, e.items[0].key);
    if (own != UINT32_MAX) {
        const int64_t apart = a->sheets[a->results[own].sheet].at_utc_ns - OWNER_APART_NS;
        e.since_ns = apart > a->settings->began_utc_ns ? apart : a->settings->began_utc_ns;
    }
    if (!most_find_it(a, &e, &hosts, &failed)) {
        return;
    }
    e.items[0].value = judge_format(&j, "%u of %u neighbours find it here", failed, hosts);
    e.items[0].vote = own;
    for (uint32_t i = 0; i < e.count; i++) {
        e.items[i].once = a->results[e.items[i].result].status == AUDIT_FAIL && is_heard(a, &e, i);
    }
}

/* Orders by their number in the items; items with the same key follow one another. */
static uint32_t count_of_end(const struct audit *a, uint32_t first)
{
    uint32_t n = 1;

    while (first + n < a->item_count && strcmp(a->items[first].key, a->items[first + n].key) == 0) {
        n++;
    }
    return n;
}

static void warn_neighbours(struct audit *a, const struct audit_item *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct audit_result *r = &a->results[items[i].result];
        if (items[i].once) {
            r->status = AUDIT_WARN;
            r->by_peer = items[0].vote != UINT32_MAX;
            r->note = "most neighbours of that one find it: it has the fault";
        }
    }
}

static void fail_owner(struct audit *a, const struct audit_item *items, uint32_t count)
{
    struct audit_result *r = &a->results[items[0].vote];

    r->by_others = true;
    if (r->status == AUDIT_FAIL) {
        return; /* it fails by its own result of another pair, too */
    }
    for (uint32_t i = 0; i < count; i++) {
        r->expected = items[i].once ? a->results[items[i].result].expected : r->expected;
    }
    r->status = AUDIT_FAIL;
    r->reason = REASON_NONE;
    r->found = items[0].value;
    r->note = "the fault is this end's: as the others judge it";
}

/* All ends are weighed by what hosts found, before any verdict changes. A host that fails by the results of others is no witness
 * by that, and the results of two such ends about each other stay as they are. */
static void settle_ends(struct audit *a, uint32_t from)
{
    for (uint32_t i = 0, n; i < a->item_count; i += n) {
        n = count_of_end(a, i);
        weigh_end(a, (struct end){&a->items[i], n, INT64_MIN}, from);
    }
    for (uint32_t i = 0, n; i < a->item_count; i += n) {
        n = count_of_end(a, i);
        if (a->items[i].value != NULL) {
            warn_neighbours(a, &a->items[i], n);
        }
    }
    for (uint32_t i = 0, n; i < a->item_count; i += n) {
        n = count_of_end(a, i);
        if (a->items[i].value != NULL && a->items[i].vote != UINT32_MAX) {
            fail_owner(a, &a->items[i], n);
        }
    }
}

static bool of_one_host(const struct audit_result *x, const struct audit_result *y)
{
    const char *a = other_end(x->subject), *b = other_end(y->subject);
    const size_t size = strcspn(a, " ");

    return size == strcspn(b, " ") && strncmp(a, b, size) == 0;
}

static bool fails_itself(const struct audit_result *r)
{
    return r->status == AUDIT_FAIL && !r->by_others;
}

/* The results of an end, in the order of the other hosts: with how many hosts it was judged, and with how many it fails. */
static void count_partners(const struct audit_result *of, uint32_t count, uint32_t *ret_judged,
                           uint32_t *ret_failed)
{
    *ret_judged = *ret_failed = 0;
    for (uint32_t i = 0, n; i < count; i += n) {
        bool judged = false, failed = false;
        for (n = 0; i + n < count && of_one_host(&of[i], &of[i + n]); n++) {
            judged = judged || was_judged(&of[i + n]);
            failed = failed || fails_itself(&of[i + n]);
        }
        *ret_judged += judged;
        *ret_failed += failed;
    }
}

static void spare(struct audit_result *r, const struct check *c, bool others)
{
    if (!others && (c->flags & CHECK_FLEET) == 0) {
        r->status = AUDIT_UNKNOWN;
        r->reason = REASON_NO_MAJORITY;
        r->note = "no other host was tried: which end of this pair is at fault a third one tells";
        return;
    }
    r->status = AUDIT_WARN;
    r->note = others ? "with this host alone: it, or what lies between, may be at fault"
                     : "with this host alone: no other one was tried";
}

/* A failure with one other host only doesn't fail. Over the front end a minority doesn't, either. */
static void spare_single(struct audit *a, const struct check *c, uint32_t from)
{
    for (uint32_t i = from, n, judged, failed; i < a->count; i += n) {
        for (n = 1; i + n < a->count && of_one_end(&a->results[i], &a->results[i + n]);) {
            n++;
        }
        count_partners(&a->results[i], n, &judged, &failed);
        const bool few = failed < 2 || ((c->flags & CHECK_FLEET) != 0 && failed * 2 <= judged);
        for (uint32_t k = i; few && k < i + n; k++) {
            if (fails_itself(&a->results[k])) {
                spare(&a->results[k], c, judged > failed);
            }
        }
    }
}

void pairs_settle(struct audit *a, const struct check *c, uint32_t from)
{
    if ((c->flags & CHECK_PAIRS) == 0) {
        return;
    }
    a->item_count = 0;
    hear_witnesses(a, from);
    if (a->item_count > 0) {
        qsort(a->items, a->item_count, sizeof(*a->items), compare);
    }
    settle_ends(a, from);
    a->item_count = 0;
    spare_single(a, c, from);
}

/* pairs.c: see pairs.h. */
#include "core/audit/pairs.h"

#include <stdlib.h>
#include <string.h>

/* "eth0 HOST eth1": the own end is the first word, the other end the rest. "HOST": the own end is the host itself. */
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

/* Pairs whose own end finds the same of at most half of its neighbours. */
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

/* Pairs with one other end; who looked before `since_ns` is no witness. */
struct end {
    struct audit_item *items;
    uint32_t count;
    int64_t since_ns;
};

static bool is_heard(const struct audit *a, const struct end *e, uint32_t i)
{
    return a->sheets[a->results[e->items[i].result].sheet].at_utc_ns >= e->since_ns;
}

/* Its hosts, and those that found a failure. */
static void count_hosts(const struct audit *a, const struct end *e, uint32_t *ret_hosts,
                        uint32_t *ret_failed)
{
    uint32_t host = UINT32_MAX, failed = UINT32_MAX;

    *ret_hosts = *ret_failed = 0;
    for (uint32_t i = 0; i < e->count; i++) { /* in the order of results: by host */
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

/* Judged, or it could not be: a host that hears nothing does not know what becomes of its own packets either. */
static bool was_looked_at(const struct audit_result *r)
{
    return was_judged(r) ||
           (r->subject[0] != '\0' && r->status == AUDIT_UNKNOWN && r->reason == REASON_NOT_RUN);
}

/* The first result of that end as its own host has it; UINT32_MAX: there is none. */
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

/* Two hosts or more, and most of those that have it as a neighbour. */
static bool most_find_it(const struct audit *a, const struct end *e, uint32_t *ret_hosts,
                         uint32_t *ret_failed)
{
    enum { WITNESSES_LEAST = 2 };

    count_hosts(a, e, ret_hosts, ret_failed);
    return *ret_failed >= WITNESSES_LEAST && *ret_failed * 2 > *ret_hosts;
}

/* What others found before this audit, or long before the host itself was looked at, is no evidence. Of an end that has the
 * fault the first item has the words (`value`) and its own result (`vote`), and those that found it are marked (`once`). */
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

/* By their number in the items; of one key all are together. */
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
        return; /* by its own word of another pair, too */
    }
    for (uint32_t i = 0; i < count; i++) {
        r->expected = items[i].once ? a->results[items[i].result].expected : r->expected;
    }
    r->status = AUDIT_FAIL;
    r->reason = REASON_NONE;
    r->found = items[0].value;
    r->note = "the fault is this end's: as the others judge it";
}

/* All ends are weighed by what hosts found, before any of it becomes a verdict: that a host fails by others is no word of its
 * own, and what two such ends find of each other takes nothing from either. */
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

/* Of an end's results, which are in the order of the other hosts: with how many it was judged, and with how many it fails. */
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

/* What one other host has a part in fails nobody; over the front end, nor do fewer than most. */
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

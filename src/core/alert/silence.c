/* silence.c: silences and maintenance windows, once or repeated. Alerts under them are not notified. */
#include <errno.h>
#include <string.h>

#include "core/alert/internal.h"

bool alert_glob(const char *pattern, const char *text)
{
    const char *star = NULL, *back = NULL;

    while (*text !=
           '\0') { /* only the last star needs another try: fast enough, and no recursion */
        if (*pattern == '*') {
            star = ++pattern;
            back = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star;
            text = ++back;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

bool alert_silence_active(const struct alert_silence *s, int64_t utc_ns, int64_t *ret_until_ns)
{
    int64_t from = s->from_utc_ns, until = s->until_utc_ns;

    if (s->every.ns > 0 && utc_ns > from) {
        const int64_t shift = (utc_ns - from) / s->every.ns * s->every.ns;
        from += shift;
        until += shift;
    }
    if (ret_until_ns != NULL) {
        *ret_until_ns = until;
    }
    return from <= utc_ns && utc_ns < until;
}

static bool matches(const struct alerts *a, const struct alert_match *m, const struct instance *i)
{
    /* no host is given, or '*': it matches any alert */
    bool host = m->host[0] == '\0' || strcmp(m->host, "*") == 0;
    bool element = m->element[0] == '\0';

    if (m->rule[0] != '\0' && !alert_glob(m->rule, a->rules[i->rule].name)) {
        return false;
    }
    for (uint32_t k = 0; k < i->cause_count; k++) {
        const struct cause_element *e = &a->elements[i->causes[k]];
        host = host || (e->where.kind == ELEMENT_HOST && alert_glob(m->host, e->name));
        element = element || alert_glob(m->element, e->name);
    }
    return host && element;
}

bool silence_covers(const struct alerts *a, const struct instance *i)
{
    if (a->silence_count == 0 || a->utc_offset_ns == FINDING_NO_TIME) {
        return false;
    }
    for (uint32_t k = 0; k < a->silence_count; k++) {
        struct alert_silence s = a->silences[k];
        if (s.maintenance) { /* after a window, things recover within the grace time, not at once */
            s.until_utc_ns += a->config.grace.ns;
        }
        if (alert_silence_active(&s, a->now.ns + a->utc_offset_ns, NULL) &&
            matches(a, &s.match, i)) {
            return true;
        }
    }
    return false;
}

/* Removes silences that ended long ago, to make room. */
static void forget_expired(struct alerts *a)
{
    const int64_t utc_ns = a->now.ns + a->utc_offset_ns;
    uint32_t kept = 0;

    if (a->utc_offset_ns == FINDING_NO_TIME) {
        return;
    }
    for (uint32_t k = 0; k < a->silence_count; k++) {
        if (a->silences[k].every.ns > 0 ||
            a->silences[k].until_utc_ns + a->config.grace.ns >= utc_ns) {
            a->silences[kept++] = a->silences[k];
        }
    }
    a->silence_count = kept;
}

static bool terminated(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

int alerts_silence(struct alerts *a, struct mono now, const struct alert_silence *silence)
{
    const struct alert_match *m = &silence->match;
    uint32_t k = 0;

    if (silence->id == 0 || silence->until_utc_ns <= silence->from_utc_ns ||
        silence->every.ns < 0 ||
        (silence->every.ns > 0 &&
         silence->until_utc_ns - silence->from_utc_ns > silence->every.ns) ||
        !terminated(m->rule, sizeof(m->rule)) || !terminated(m->host, sizeof(m->host)) ||
        !terminated(m->element, sizeof(m->element)) ||
        (m->rule[0] == '\0' && m->host[0] == '\0' && m->element[0] == '\0')) {
        return -EINVAL;
    }
    a->now = now;
    forget_expired(a);
    while (k < a->silence_count && a->silences[k].id != silence->id) {
        k++;
    }
    if (k == ALERT_SILENCE_MAX) {
        return -ENOSPC;
    }
    a->silences[k] = *silence;
    a->silence_count += k == a->silence_count;
    a->sweep_due = a->deadline = now; /* alerts are checked again at once */
    return 0;
}

int alerts_unsilence(struct alerts *a, struct mono now, uint64_t id)
{
    for (uint32_t k = 0; k < a->silence_count; k++) {
        if (a->silences[k].id == id) {
            memmove(&a->silences[k], &a->silences[k + 1],
                    (a->silence_count - k - 1) * sizeof(a->silences[0]));
            a->silence_count--;
            a->now = now;
            a->sweep_due = a->deadline = now;
            return 0;
        }
    }
    return -ENOENT;
}

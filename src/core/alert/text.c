/* text.c: alerts and incidents as sentences, in the form of findings: who, what, since when, the suspected element, advice. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "core/alert/internal.h"

/* ---- words ------------------------------------------------------------------------------------------------------ */

const char *alert_event_word(uint32_t event)
{
    static const char *const words[] = {"opened",    "worse",    "reopened",
                                        "escalated", "repeated", "acknowledged",
                                        "resolved",  "absorbed", "heartbeat"};

    return event < ARRAY_COUNT(words) ? words[event] : "unknown";
}

const char *alert_state_word(uint32_t state)
{
    static const char *const words[] = {"free", "pending", "firing", "over"};

    return state < ARRAY_COUNT(words) ? words[state] : "unknown";
}

const char *alert_incident_state_word(uint32_t state)
{
    static const char *const words[] = {"free", "new", "open", "quiet", "resolved", "merged"};

    return state < ARRAY_COUNT(words) ? words[state] : "unknown";
}

/* ---- parts ------------------------------------------------------------------------------------------------------ */

static void add_span(struct strbuf *t, int64_t ns)
{
    static const struct {
        int64_t ns;
        const char *word;
    } units[] = {{86400 * NS_PER_S, "d"}, {3600 * NS_PER_S, "h"}, {60 * NS_PER_S, "min"},
                 {NS_PER_S, "s"},         {NS_PER_MS, "ms"},      {NS_PER_US, "us"}};

    for (size_t k = 0; k < ARRAY_COUNT(units); k++) {
        if (ns >= units[k].ns) {
            strbuf_add(t, "%g %s", round((double)ns / (double)units[k].ns * 10) / 10,
                       units[k].word);
            return;
        }
    }
    strbuf_add(t, "%lld ns", (long long)ns);
}

static void add_value(struct strbuf *t, uint32_t unit, double value)
{
    switch ((enum alert_unit)unit) {
    case ALERT_NS:
        if (fabs(value) >= 1e6) {
            strbuf_add(t, "%.3f ms", value * 1e-6);
        } else {
            strbuf_add(t, "%.3f us", value * 1e-3);
        }
        break;
    case ALERT_PPM:
        strbuf_add(t, "%.3g %%", value * 1e-4);
        break;
    case ALERT_BYTES:
        strbuf_add(t, "%.1f MiB", value / 1048576.0);
        break;
    case ALERT_MBPS:
        strbuf_add(t, "%.6g Mbit/s", value);
        break;
    case ALERT_DAYS:
        strbuf_add(t, "%.3g days", value);
        break;
    default:
        strbuf_add(t, "%.6g", value);
        break;
    }
}

static void add_since(struct strbuf *t, const struct alerts *a, struct mono since)
{
    const int64_t utc = a->utc_offset_ns, fleet = a->fleet_offset_ns;
    char text[96];

    (void)finding_since_text(utc != FINDING_NO_TIME ? since.ns + utc : FINDING_NO_TIME,
                             fleet != FINDING_NO_TIME ? since.ns + fleet : FINDING_NO_TIME, text,
                             sizeof(text));
    strbuf_add(t, "%s", text);
}

/* ---- series ----------------------------------------------------------------------------------------------------- */

static void add_who(struct strbuf *t, const struct alerts *a, const struct instance *i)
{
    char x[ALERT_ELEMENT_MAX], y[ALERT_ELEMENT_MAX];

    switch ((enum alert_scope)a->rules[i->rule].scope) {
    case ALERT_PER_PATH:
        strbuf_add(t, "%s -> %s", name_of_nic(a, i->peer, x, sizeof(x)),
                   name_of_nic(a, i->nic, y, sizeof(y)));
        if (i->port != ALERT_NO_ID) {
            strbuf_add(t, ", path by port %u", i->port);
        }
        break;
    case ALERT_PER_LINK:
        strbuf_add(t, "%s", name_of_nic(a, i->nic, x, sizeof(x)));
        break;
    case ALERT_PER_HOST:
        strbuf_add(t, "%s", name_of_host(a, i->host, x, sizeof(x)));
        break;
    case ALERT_PER_JOB:
        strbuf_add(t, "%s", name_of_job(a, i->job, x, sizeof(x)));
        break;
    case ALERT_PER_RAIL:
        strbuf_add(t, "rail %u", i->port);
        break;
    default:
        strbuf_add(t, "the fleet");
        break;
    }
}

static void add_limit(struct strbuf *t, const struct alert_rule *r,
                      const struct alert_metric_info *m)
{
    strbuf_add(t, r->below ? ", below " : ", above ");
    add_value(t, m->unit, r->limit);
}

static void add_what(struct strbuf *t, const struct alert_rule *r, double value)
{
    static const char *const aggregates[] = {"", "largest ", "smallest ", "mean ", ""};
    const struct alert_metric_info *m = alert_metric_info(r->metric);

    switch ((enum alert_condition)r->condition) {
    case ALERT_ON_ABSENCE:
        strbuf_add(t, "no %s for more than ", m->words);
        add_span(t, r->within.ns);
        break;
    case ALERT_ON_COUNT:
        strbuf_add(t, "%.6g %s within ", value, m->words);
        add_span(t, r->within.ns);
        strbuf_add(t, ", more than %.6g", r->limit);
        break;
    case ALERT_ON_RATE:
        strbuf_add(t, "%s: ", m->words);
        add_value(t, m->unit, value);
        strbuf_add(t, "/s over ");
        add_span(t, r->within.ns);
        add_limit(t, r, m);
        strbuf_add(t, "/s");
        break;
    default:
        if (r->aggregate == ALERT_SHARE) {
            strbuf_add(t, "%.1f %% have %s%s", value * 100, r->below ? "too little " : "too much ",
                       m->words);
            add_limit(t, r, m);
            strbuf_add(t, " (allowed: %.1f %%)", r->share * 100);
        } else {
            strbuf_add(t, "%s%s is ", aggregates[r->aggregate], m->words);
            add_value(t, m->unit, value);
            add_limit(t, r, m);
        }
        if (r->hold.ns > 0) {
            strbuf_add(t, " for ");
            add_span(t, r->hold.ns);
        }
        break;
    }
}

void text_of_series(const struct alerts *a, struct instance *i)
{
    const struct alert_rule *rule = &a->rules[i->rule];
    struct strbuf t = strbuf_init(i->text, sizeof(i->text));

    add_who(&t, a, i);
    strbuf_add(&t, ": ");
    add_what(&t, rule, i->value);
    add_since(&t, a, i->since);
    strbuf_add(&t, "; suspect: %s",
               i->cause_count > 0 ? a->elements[i->causes[0]].name : "unknown");
    if (rule->advice[0] != '\0') {
        strbuf_add(&t, "; %s", rule->advice);
    }
    if (rule->scope == ALERT_PER_PATH && i->said_by != ALERT_NO_ID) { /* the report of one end */
        char host[ALERT_ELEMENT_MAX];
        strbuf_add(&t, "; reported by %s", name_of_host(a, i->said_by, host, sizeof(host)));
    }
}

/* ---- incidents -------------------------------------------------------------------------------------------------- */

/* Adds the names of its rules, each once, and only a few of them. */
static void add_rules(struct strbuf *t, const struct alerts *a, const struct incident *c)
{
    uint32_t seen[4], count = 0;

    for (uint32_t at = c->first; at != NONE && count < ARRAY_COUNT(seen);
         at = a->instances[at].sibling_after) {
        bool known = false;
        for (uint32_t k = 0; k < count; k++) {
            known = known || seen[k] == a->instances[at].rule;
        }
        if (!known) {
            seen[count++] = a->instances[at].rule;
            strbuf_add(t, "%s%s", count > 1 ? ", " : "", a->rules[a->instances[at].rule].name);
        }
    }
}

/* The alert that is quoted: the worst one, and the oldest of these. */
static const struct instance *spokesman(const struct alerts *a, const struct incident *c)
{
    const struct instance *best = NULL;

    for (uint32_t at = c->first; at != NONE; at = a->instances[at].sibling_after) {
        const struct instance *i = &a->instances[at];
        const uint32_t worse = best != NULL ? a->rules[best->rule].severity : 0;
        if (best == NULL || a->rules[i->rule].severity > worse ||
            (a->rules[i->rule].severity == worse && i->id < best->id)) {
            best = i;
        }
    }
    return best;
}

/* Adds the earlier phases of the incident. */
static void add_phases(struct strbuf *t, const struct alerts *a, const struct incident *c)
{
    for (uint32_t k = 0; k < c->phase_count; k++) {
        const struct phase *p = &c->phases[k];
        if (phase_is_past(a, c, p)) {
            strbuf_add(t, "; before: %s for ", a->rules[p->rule].name);
            add_span(t, mono_sub(p->left, p->since).ns);
        }
    }
}

void text_of_incident(struct alerts *a, struct incident *c)
{
    const struct instance *first = spokesman(a, c);
    struct alert_incident shown;

    if (first == NULL) { /* its last sentence stays */
        return;
    }
    struct strbuf t = strbuf_init(c->text, sizeof(c->text));
    if (c->firing == 1) {
        strbuf_add(&t, "%s", first->text);
        add_phases(&t, a, c);
        return;
    }
    incident_show(a, c, &shown);
    strbuf_add(&t, "%s: %u alerts (", shown.cause, c->firing);
    add_rules(&t, a, c);
    strbuf_add(&t, ") about %u NIC%s of %u host%s", shown.links, shown.links == 1 ? "" : "s",
               shown.hosts, shown.hosts == 1 ? "" : "s");
    add_since(&t, a, c->since);
    strbuf_add(&t, "; suspect: %s; the worst of them: %s", shown.cause, first->text);
    add_phases(&t, a, c);
}

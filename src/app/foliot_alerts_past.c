/* foliot_alerts_past.c: fetches a rule's past input from the controller, and sorts it. */
#include "app/foliot_alerts_past.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_command.h"

#define SLOT_NS   (10 * NS_PER_S) /* the controller's finest step */
#define STEPS_MAX 20000           /* most steps in one answer */
#define AGAIN_NS  (30 * NS_PER_S) /* the engine takes a value as stale unless it is repeated */

static bool add_moment(struct past *p, const struct moment *m)
{
    if (p->count == p->capacity) {
        const size_t capacity = p->capacity * 2 + 1024;
        struct moment *larger = realloc(p->moments, capacity * sizeof(*larger));
        if (larger == NULL) {
            return false;
        }
        p->moments = larger;
        p->capacity = capacity;
    }
    p->moments[p->count] = *m;
    p->moments[p->count].order = p->count;
    p->count++;
    return true;
}

/* Adds a state that lasts until until_ns. */
static bool add_lasting(struct past *p, const struct moment *m, int64_t until_ns)
{
    struct moment one = *m;

    while (one.at_ns < until_ns && add_moment(p, &one)) {
        one.at_ns += AGAIN_NS;
    }
    return one.at_ns >= until_ns;
}

static int compare_moments(const void *x, const void *y)
{
    const struct moment *a = x, *b = y;

    return a->at_ns != b->at_ns ? (a->at_ns < b->at_ns ? -1 : 1) : a->order < b->order ? -1 : 1;
}

const char *past_text(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text != NULL ? text : "";
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

uint32_t past_host(struct past *p, const char *name)
{
    size_t index;
    json_t *value;

    json_array_foreach(p->hosts, index, value)
    {
        if (strcmp(json_string_value(value), name) == 0) {
            return (uint32_t)index;
        }
    }
    if (name[0] == '\0') {
        return ALERT_NO_ID;
    }
    json_array_append_new(p->hosts, json_string(name));
    return (uint32_t)json_array_size(p->hosts) - 1;
}

static const char *on_host(void *context, uint32_t host)
{
    const struct past *p = context;

    return json_string_value(json_array_get(p->hosts, host));
}

static const char *on_job(void *context, uint64_t job)
{
    const struct past *p = context;

    return json_string_value(json_array_get(p->jobs, job));
}

static bool on_nic(void *context, uint32_t nic, struct alert_nic *ret)
{
    static char name[160];
    struct past *p = context;
    size_t index;
    json_t *n;

    json_array_foreach(p->nics, index, n)
    {
        if (json_integer_value(json_object_get(n, "nic")) == (json_int_t)nic) {
            snprintf(name, sizeof(name), "%s/%s", past_text(n, "host"), past_text(n, "name"));
            *ret = (struct alert_nic){.name = name,
                                      .leaf = past_text(n, "leaf"),
                                      .host = past_host(p, past_text(n, "host")),
                                      .rail =
                                          (uint32_t)json_integer_value(json_object_get(n, "rail"))};
            return true;
        }
    }
    return false;
}

/* Tenants are not known here. All hosts count as one tenant's, so no page is left out. */
static uint64_t on_tenant(void *context, uint32_t host)
{
    (void)context, (void)host;
    return 0;
}

struct alert_fleet past_fleet(struct past *p)
{
    return (struct alert_fleet){
        .nic = on_nic, .host = on_host, .job = on_job, .tenant = on_tenant, .context = p};
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static int load_events(struct alerts_call *c, struct past *p, const char *kind, json_t **ret)
{
    char path[160];

    snprintf(path, sizeof(path), "/api/v1/events?kind=%s&limit=1000&since_utc_ns=%" PRId64, kind,
             p->from_ns);
    return api_ask_pages(&c->api, path, ret);
}

static int load_findings(struct alerts_call *c, struct past *p)
{
    json_t *events = NULL, *e;
    size_t index;
    int status = load_events(c, p, "finding", &events);

    json_array_foreach(events, index, e)
    {
        const struct moment m = {.at_ns = json_integer_value(json_object_get(e, "at_utc_ns")),
                                 .event = e};
        if (!add_moment(p, &m)) {
            status = EXIT_UNREACHABLE;
        }
    }
    json_array_append_new(p->keep, events);
    /* The API gives the newest first: within one moment the older one counts first. */
    for (size_t k = 0; k < p->count; k++) {
        p->moments[k].order = p->count - k;
    }
    return status;
}

static struct alert_sample of_nobody(uint32_t metric)
{
    return (struct alert_sample){.metric = metric,
                                 .host = ALERT_NO_ID,
                                 .nic = ALERT_NO_ID,
                                 .peer = ALERT_NO_ID,
                                 .port = ALERT_NO_ID};
}

/* Values of the whole fleet come from events: the number of broken levels, and configurations that were taken back. The values
 * before the range aren't known. */
static int load_fleet(struct alerts_call *c, struct past *p, uint32_t metric)
{
    const bool levels = metric == ALERT_LEVELS_BROKEN;
    struct moment m = {.kind = MOMENT_SAMPLE, .at_ns = p->from_ns, .sample = of_nobody(metric)};
    json_t *events = NULL, *broken = json_object();
    int status = load_events(c, p, "controller", &events);
    bool good = true;

    for (size_t k = json_array_size(events); k-- > 0;) {
        const json_t *e = json_array_get(events, k);
        const int64_t at_ns = json_integer_value(json_object_get(e, "at_utc_ns"));
        const char *word = past_text(e, "word"),
                   *level = past_text(json_object_get(e, "detail"), "level");
        if (strncmp(word, levels ? "level-" : "config-", levels ? 6 : 7) != 0) {
            continue;
        }
        good = good && add_lasting(p, &m, at_ns);
        if (levels && strcmp(word, "level-broken") == 0) {
            json_object_set_new(broken, level, json_true());
        } else if (levels) {
            json_object_del(broken, level);
        }
        m.at_ns = at_ns;
        m.sample.value =
            levels ? (double)json_object_size(broken) : strcmp(word, "config-taken-back") == 0;
    }
    good = good && add_lasting(p, &m, p->until_ns);
    json_decref(events);
    json_decref(broken);
    return good ? status : EXIT_UNREACHABLE;
}

/* ---- series ----------------------------------------------------------------------------------------------------- */

enum how {
    AS_IS,
    IS_ONE, /* port_state 1 is up, clock_status 1 is synchronised */
    SUM     /* a rate, bit/s; the metric counts bytes */
};

/* A metric in the store, and its name in the API. */
static const struct kept {
    uint32_t metric;
    char of; /* Path, Nic, Host */
    enum how how;
    const char *name;
} kept[] = {
    {ALERT_PATH_OWD_P50, 'p', AS_IS, "owd_ns_p50"},
    {ALERT_PATH_OWD_P99, 'p', AS_IS, "owd_ns_p99"},
    {ALERT_PATH_LOSS, 'p', AS_IS, "loss_ppm"},
    {ALERT_LINK_DOWNS, 'n', AS_IS, "carrier_down_count"},
    {ALERT_LINK_UP, 'n', IS_ONE, "port_state"},
    {ALERT_LINK_SPEED, 'n', AS_IS, "speed_mbps"},
    {ALERT_LINK_RX_ERRORS, 'n', AS_IS, "rx_errors_count"},
    {ALERT_LINK_TX_ERRORS, 'n', AS_IS, "tx_errors_count"},
    {ALERT_LINK_RX_DROPS, 'n', AS_IS, "rx_drops_count"},
    {ALERT_LINK_TX_DROPS, 'n', AS_IS, "tx_drops_count"},
    {ALERT_LINK_RX_BYTES, 'n', SUM, "rx_bps"},
    {ALERT_LINK_TX_BYTES, 'n', SUM, "tx_bps"},
    {ALERT_CLOCK_HARD, 'h', AS_IS, "clock_hard_ns"},
    {ALERT_CLOCK_STATISTICAL, 'h', AS_IS, "clock_statistical_ns"},
    {ALERT_CLOCK_SYNCED, 'h', IS_ONE, "clock_status"},
    {ALERT_HOST_REPORT, 'h', AS_IS, "clock_status"}, /* each rollup has it */
    {ALERT_AGENT_CPU, 'h', AS_IS, "agent_cpu_ppm"},
    {ALERT_AGENT_MEMORY, 'h', AS_IS, "agent_memory_bytes"},
    {ALERT_AGENT_REPORTS_LOST, 'h', AS_IS, "agent_reports_lost_count"},
    {ALERT_AGENT_LATE_TICKS, 'h', AS_IS, "agent_late_ticks_count"},
    {ALERT_AGENT_BAD_PACKETS, 'h', AS_IS, "agent_bad_packets_count"},
    {ALERT_AGENT_STAMPS_MISSING, 'h', AS_IS, "agent_stamps_missing_ppm"},
};

static const struct kept *find_kept(uint32_t metric)
{
    size_t k = 0;

    while (k < ARRAY_COUNT(kept) && kept[k].metric != metric) {
        k++;
    }
    return k < ARRAY_COUNT(kept) ? &kept[k] : NULL;
}

static int load_one(struct alerts_call *c, struct past *p, const struct kept *k, const char *path,
                    const struct alert_sample *whose)
{
    const bool counts = alert_metric_info(k->metric)->counter;
    const int status = api_ask(&c->api, "GET", path, NULL);
    const json_int_t from = json_integer_value(json_object_get(c->api.answer, "from_utc_ns")),
                     step = json_integer_value(json_object_get(c->api.answer, "step_ns"));
    struct moment m = {.kind = k->metric == ALERT_HOST_REPORT ? MOMENT_HOST : MOMENT_SAMPLE,
                       .sample = *whose};
    size_t index;
    json_t *value;

    p->step_ns = step > p->step_ns ? step : p->step_ns;
    json_array_foreach(json_object_get(c->api.answer, "values"), index, value)
    {
        const double number = (double)json_integer_value(value);
        m.at_ns = from + (int64_t)index * step;
        m.at_ns = m.at_ns > p->from_ns ? m.at_ns : p->from_ns;
        m.sample.value = k->how == SUM      ? m.sample.value + number / 8e9 * (double)step
                         : k->how == IS_ONE ? number == 1
                                            : number;
        if (json_is_integer(value) &&
            !add_lasting(p, &m, counts ? m.at_ns + 1 : from + ((int64_t)index + 1) * step)) {
            return EXIT_UNREACHABLE;
        }
    }
    return status;
}

/* The subject of a series: fills `whose`, and the words for the API. */
static void name_subject(struct past *p, char of, const json_t *s, struct alert_sample *whose,
                         char words[160])
{
    struct alert_nic to;

    if (of == 'p') {
        whose->peer = (uint32_t)json_integer_value(json_object_get(s, "from"));
        whose->nic = (uint32_t)json_integer_value(json_object_get(s, "to"));
        whose->port = (uint32_t)json_integer_value(json_object_get(s, "port"));
        whose->host = on_nic(p, whose->nic, &to) ? to.host : ALERT_NO_ID;
        snprintf(words, 160, "from=%u&to=%u&port=%u", whose->peer, whose->nic, whose->port);
    } else if (of == 'n') {
        whose->nic = (uint32_t)json_integer_value(json_object_get(s, "nic"));
        whose->host = past_host(p, past_text(s, "host"));
        snprintf(words, 160, "nic=%u", whose->nic);
    } else {
        whose->host = past_host(p, past_text(s, "name"));
        snprintf(words, 160, "host=%s", past_text(s, "name"));
    }
}

/* A host that is a member when the range begins counts as silent from then on. */
static bool seed_host(struct past *p, const json_t *host, const struct alert_sample *whose)
{
    const struct moment m = {.kind = MOMENT_HOST, .at_ns = p->from_ns, .sample = *whose};

    return json_integer_value(json_object_get(host, "joined_utc_ns")) > p->from_ns ||
           add_moment(p, &m);
}

static int load_series(struct alerts_call *c, struct past *p, const struct kept *k, int64_t step_ns)
{
    char path[400], step[40] = "";
    json_t *subjects = NULL, *s;
    size_t index;
    int status = api_ask_pages(&c->api,
                               k->of == 'p'   ? "/api/v1/paths?limit=1000"
                               : k->of == 'n' ? "/api/v1/nics?limit=1000"
                                              : "/api/v1/hosts?limit=1000",
                               &subjects);

    if (step_ns != 0) {
        snprintf(step, sizeof(step), "&step_s=%" PRId64, (int64_t)(step_ns / NS_PER_S));
    }
    json_array_foreach(subjects, index, s)
    {
        struct alert_sample whose = of_nobody(k->metric);
        char whom[160];
        if (k->of == 'h' && json_is_false(json_object_get(s, "member"))) {
            continue;
        }
        name_subject(p, k->of, s, &whose, whom);
        if (status == EXIT_WELL && k->metric == ALERT_HOST_REPORT && !seed_host(p, s, &whose)) {
            status = EXIT_UNREACHABLE;
        }
        snprintf(path, sizeof(path),
                 "/api/v1/series?metric=%s&%s%s&since_utc_ns=%" PRId64 "&until_utc_ns=%" PRId64,
                 k->name, whom, step, p->from_ns, p->until_ns);
        status = status == EXIT_WELL ? load_one(c, p, k, path, &whose) : status;
    }
    json_decref(subjects);
    return status;
}

/* The step: a quarter of the time that a rule judges over; 0: the controller chooses. */
static int64_t step_of(const struct alert_rule *rule, const struct past *p)
{
    const int64_t most = (p->until_ns - p->from_ns) / STEPS_MAX + 1,
                  least = most < SLOT_NS ? SLOT_NS : (most / SLOT_NS + 1) * SLOT_NS,
                  wanted = rule->within.ns / 4 / SLOT_NS * SLOT_NS;

    return rule->condition == ALERT_ON_THRESHOLD ? 0 : wanted > least ? wanted : least;
}

/* ---- jobs ------------------------------------------------------------------------------------------------------- */

static void encode(const char *name, char *text, size_t size)
{
    static const char digits[] = "0123456789ABCDEF", plain[] = "-._~@";
    size_t used = 0;

    for (; *name != '\0' && used + 4 < size; name++) {
        const unsigned char ch = (unsigned char)*name;
        if ((ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
            strchr(plain, ch) != NULL) {
            text[used++] = (char)ch;
        } else {
            text[used++] = '%';
            text[used++] = digits[ch >> 4];
            text[used++] = digits[ch & 15];
        }
    }
    text[used] = '\0';
}

static int load_job(struct alerts_call *c, struct past *p, uint32_t metric, const json_t *job)
{
    char name[400], path[500];
    const char *state = past_text(job, "state");
    struct moment m = {.kind = MOMENT_SAMPLE, .sample = of_nobody(metric)};
    size_t index;
    json_t *value;

    encode(past_text(job, "job"), name, sizeof(name));
    snprintf(path, sizeof(path), "/api/v1/jobs/%s?user=%" PRId64, name,
             (int64_t)json_integer_value(json_object_get(job, "user")));
    int status = api_ask(&c->api, "GET", path, NULL);
    json_t *past = json_object_get(c->api.answer, "past");
    json_int_t from = json_integer_value(json_object_get(past, "from_utc_ns"));
    json_int_t step = json_integer_value(json_object_get(past, "step_ns"));
    m.sample.job = json_array_size(p->jobs);
    json_array_append(p->jobs, json_object_get(job, "job"));
    json_array_foreach(
        json_object_get(past, metric == ALERT_JOB_THROUGHPUT ? "rate_bps" : "owd_ns_p99"), index,
        value)
    {
        m.at_ns = from + ((json_int_t)index + 1) * step; /* known at its end */
        m.sample.value =
            (double)json_integer_value(value) * (metric == ALERT_JOB_THROUGHPUT ? 1e-6 : 1);
        if (json_is_integer(value) && m.at_ns >= p->from_ns && m.at_ns <= p->until_ns) {
            p->step_ns = step > p->step_ns ? step : p->step_ns;
            status = add_lasting(p, &m, m.at_ns + step) ? status : EXIT_UNREACHABLE;
        }
    }
    m.kind = MOMENT_JOB_OVER;
    m.at_ns = json_integer_value(json_object_get(job, "heard_utc_ns"));
    if ((strcmp(state, "ended") == 0 || strcmp(state, "killed") == 0) && m.at_ns >= p->from_ns) {
        status = add_moment(p, &m) ? status : EXIT_UNREACHABLE;
    }
    return status;
}

static int load_jobs(struct alerts_call *c, struct past *p, uint32_t metric)
{
    json_t *jobs = NULL, *job;
    size_t index;
    int status = api_ask_pages(&c->api, "/api/v1/jobs?limit=1000", &jobs);

    json_array_foreach(jobs, index, job)
    {
        status = status == EXIT_WELL ? load_job(c, p, metric, job) : status;
    }
    json_decref(jobs);
    return status;
}

/* ---- loading the past ------------------------------------------------------------------------------------------- */

static int refuse_metric(const struct alert_rule *rule)
{
    const char *metric = alert_metric_info(rule->metric)->name;

    fprintf(stderr,
            "foliot alerts test: %s: no history of %s is kept, so this rule can't be tried on "
            "the past; for the present value: %s\n",
            rule->name, metric,
            rule->metric == ALERT_TOPOLOGY_DIFFERENCES ? "foliot topology"
                                                       : "foliot host list, foliot status");
    return EXIT_USAGE;
}

/* A window shorter than the history's steps: every value would be absent. */
static int refuse_window(const struct alert_rule *rule, const struct past *p, int64_t step_ns)
{
    const int64_t within_s = rule->within.ns / NS_PER_S;

    fprintf(stderr,
            "foliot alerts test: %s: an absence of %" PRId64
            " s can't be seen in a history of %" PRId64 " s steps",
            rule->name, within_s, (int64_t)(step_ns / NS_PER_S));
    if (rule->within.ns >= 2 * SLOT_NS && p->until_ns - p->from_ns > STEPS_MAX * SLOT_NS) {
        fprintf(stderr, ": try --since %" PRId64 "h\n",
                (int64_t)(STEPS_MAX * SLOT_NS / (3600 * NS_PER_S)));
    } else {
        fputs(", the finest that is kept: expected 'within' of 20s or more\n", stderr);
    }
    return EXIT_USAGE;
}

int past_load(struct alerts_call *c, const struct alert_rule *rule, struct past *p)
{
    const struct kept *k = find_kept(rule->metric);
    const int64_t step_ns = step_of(rule, p);
    const bool fleet =
                   rule->metric == ALERT_LEVELS_BROKEN || rule->metric == ALERT_CONFIG_TAKEN_BACK,
               job = rule->metric == ALERT_JOB_THROUGHPUT || rule->metric == ALERT_JOB_DELAY_P99;

    p->keep = json_array();
    p->hosts = json_array();
    p->jobs = json_array();
    p->presence = rule->metric == ALERT_HOST_REPORT;
    if (rule->condition != ALERT_ON_FINDING && k == NULL && !fleet && !job) {
        return refuse_metric(rule);
    }
    if (rule->condition == ALERT_ON_ABSENCE && (fleet || rule->within.ns < 2 * step_ns)) {
        return fleet ? refuse_metric(rule) : refuse_window(rule, p, step_ns);
    }
    int status = api_ask_pages(&c->api, "/api/v1/nics?limit=1000", &p->nics);
    if (status == EXIT_WELL) {
        status = rule->condition == ALERT_ON_FINDING ? load_findings(c, p)
                 : fleet                             ? load_fleet(c, p, rule->metric)
                 : job                               ? load_jobs(c, p, rule->metric)
                                                     : load_series(c, p, k, step_ns);
    }
    if (p->count > 0) {
        qsort(p->moments, p->count, sizeof(*p->moments), compare_moments);
    }
    return status;
}

void past_done(struct past *p)
{
    free(p->moments);
    json_decref(p->keep);
    json_decref(p->nics);
    json_decref(p->hosts);
    json_decref(p->jobs);
}

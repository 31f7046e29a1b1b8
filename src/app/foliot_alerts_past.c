/* foliot_alerts_past.c: a rule tried on the past, and rules for Prometheus. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/foliot_alerts.h"
#include "app/foliot_command.h"

/* ---- the past through the engine -------------------------------------------------------------------------------- */

struct moment { /* of the past, in order */
    int64_t at_ns;
    uint64_t order;
    bool is_sample;
    struct alert_sample sample;
    const json_t *event; /* a finding's; lives in `keep` */
};
struct past {
    struct moment *moments;
    size_t count, capacity;
    json_t *keep;  /* answers, as long as moments point into them */
    json_t *nics;  /* array by id: {host, name, leaf, rail} */
    json_t *hosts; /* array of names; the index is the engine's number */
};

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

static int compare_moments(const void *x, const void *y)
{
    const struct moment *a = x, *b = y;

    return a->at_ns != b->at_ns ? (a->at_ns < b->at_ns ? -1 : 1) : a->order < b->order ? -1 : 1;
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text != NULL ? text : "";
}

static uint32_t host_number(struct past *p, const char *name)
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

static bool on_nic(void *context, uint32_t nic, struct alert_nic *ret)
{
    static char name[160];
    struct past *p = context;
    size_t index;
    json_t *n;

    json_array_foreach(p->nics, index, n)
    {
        if (json_integer_value(json_object_get(n, "nic")) == (json_int_t)nic) {
            snprintf(name, sizeof(name), "%s/%s", text_of(n, "host"), text_of(n, "name"));
            *ret = (struct alert_nic){.name = name,
                                      .leaf = text_of(n, "leaf"),
                                      .host = host_number(p, text_of(n, "host")),
                                      .rail =
                                          (uint32_t)json_integer_value(json_object_get(n, "rail"))};
            return true;
        }
    }
    return false;
}

/* All pages of a list, into one array that the caller owns. */
static int all_pages(struct alerts_call *c, const char *path, json_t **ret)
{
    char at[400];
    int status = EXIT_WELL;

    *ret = json_array();
    snprintf(at, sizeof(at), "%s", path);
    for (bool more = true; more && status == EXIT_WELL;) {
        const char *next;
        status = alerts_ask(c, "GET", at, NULL);
        json_array_extend(*ret, json_object_get(c->answer, "items"));
        next = json_string_value(json_object_get(c->answer, "next"));
        more = next != NULL;
        snprintf(at, sizeof(at), "%s&cursor=%.20s", path, more ? next : "0");
    }
    return status;
}

static int load_findings(struct alerts_call *c, struct past *p, int64_t from_ns)
{
    char path[160];
    json_t *events = NULL, *e;
    size_t index;
    int status;

    snprintf(path, sizeof(path), "/api/v1/events?kind=finding&limit=1000&since_utc_ns=%" PRId64,
             from_ns);
    status = all_pages(c, path, &events);
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

/* How the API names what the store has of a metric. */
static const char *series_name(uint32_t metric, char *ret_of)
{
    static const struct {
        uint32_t metric;
        char of; /* Path, Nic, Host */
        const char *name;
    } names[] = {
        {ALERT_PATH_OWD_P50, 'p', "owd_ns_p50"},
        {ALERT_PATH_OWD_P99, 'p', "owd_ns_p99"},
        {ALERT_PATH_LOSS, 'p', "loss_ppm"},
        {ALERT_LINK_DOWNS, 'n', "carrier_down_count"},
        {ALERT_LINK_UP, 'n', "port_state"},
        {ALERT_CLOCK_HARD, 'h', "clock_hard_ns"},
        {ALERT_CLOCK_STATISTICAL, 'h', "clock_statistical_ns"},
        {ALERT_CLOCK_SYNCED, 'h', "clock_status"},
    };

    for (size_t k = 0; k < ARRAY_COUNT(names); k++) {
        if (names[k].metric == metric) {
            *ret_of = names[k].of;
            return names[k].name;
        }
    }
    return NULL;
}

/* port_state 1 is up, clock_status 1 is synchronised: both are 1 or something else. */
static double value_of(uint32_t metric, json_int_t value)
{
    const bool is_state = metric == ALERT_LINK_UP || metric == ALERT_CLOCK_SYNCED;

    return is_state ? value == 1 : (double)value;
}

static int load_one(struct alerts_call *c, struct past *p, const char *path,
                    const struct alert_sample *whose)
{
    const int status = alerts_ask(c, "GET", path, NULL);
    const json_int_t from = json_integer_value(json_object_get(c->answer, "from_utc_ns")),
                     step = json_integer_value(json_object_get(c->answer, "step_ns"));
    size_t index;
    json_t *value;

    json_array_foreach(json_object_get(c->answer, "values"), index, value)
    {
        struct moment m = {
            .at_ns = from + (int64_t)index * step, .is_sample = true, .sample = *whose};
        m.sample.value = value_of(whose->metric, json_integer_value(value));
        if (json_is_integer(value) && !add_moment(p, &m)) {
            return EXIT_UNREACHABLE;
        }
    }
    return status;
}

static int load_series(struct alerts_call *c, struct past *p, uint32_t metric, int64_t from_ns)
{
    char of = 0, path[300];
    const char *name = series_name(metric, &of);
    json_t *subjects = NULL, *s;
    size_t index;
    int status = all_pages(c,
                           of == 'p'   ? "/api/v1/paths?limit=1000"
                           : of == 'n' ? "/api/v1/nics?limit=1000"
                                       : "/api/v1/hosts?limit=1000",
                           &subjects);

    json_array_foreach(subjects, index, s)
    {
        struct alert_sample whose = {.metric = metric,
                                     .host = ALERT_NO_ID,
                                     .nic = ALERT_NO_ID,
                                     .peer = ALERT_NO_ID,
                                     .port = ALERT_NO_ID};
        char whom[160];
        if (of == 'p') {
            struct alert_nic to;
            whose.peer = (uint32_t)json_integer_value(json_object_get(s, "from"));
            whose.nic = (uint32_t)json_integer_value(json_object_get(s, "to"));
            whose.port = (uint32_t)json_integer_value(json_object_get(s, "port"));
            whose.host = on_nic(p, whose.nic, &to) ? to.host : ALERT_NO_ID;
            snprintf(whom, sizeof(whom), "from=%u&to=%u&port=%u", whose.peer, whose.nic,
                     whose.port);
        } else if (of == 'n') {
            whose.nic = (uint32_t)json_integer_value(json_object_get(s, "nic"));
            whose.host = host_number(p, text_of(s, "host"));
            snprintf(whom, sizeof(whom), "nic=%u", whose.nic);
        } else {
            whose.host = host_number(p, text_of(s, "name"));
            snprintf(whom, sizeof(whom), "host=%s", text_of(s, "name"));
        }
        snprintf(path, sizeof(path), "/api/v1/series?metric=%s&%s&since_utc_ns=%" PRId64, name,
                 whom, from_ns);
        if (status == EXIT_WELL) {
            status = load_one(c, p, path, &whose);
        }
    }
    json_decref(subjects);
    return status;
}

static uint32_t nic_number(const json_t *end)
{
    const json_t *nic = json_object_get(end, "nic");

    return json_is_integer(nic) ? (uint32_t)json_integer_value(nic) : ALERT_NO_ID;
}

static uint32_t word_number(const char *word, const char *(*name)(uint32_t), uint32_t count)
{
    uint32_t k = 0;

    while (k < count && (name(k) == NULL || strcmp(name(k), word) != 0)) {
        k++;
    }
    return k < count ? k : 0;
}

static const char *element_word(uint32_t kind)
{
    static const char *const words[] = {"unknown", "host",   "nic",  "leaf",
                                        "spine",   "router", "trunk"};

    return kind < ARRAY_COUNT(words) ? words[kind] : NULL;
}

static void play_finding(struct past *p, struct alerts *engine, const struct moment *m)
{
    const json_t *d = json_object_get(m->event, "detail"), *from = json_object_get(d, "from"),
                 *to = json_object_get(d, "to"), *suspect = json_object_get(d, "suspect");
    const char *phase = text_of(d, "phase");
    const struct alert_finding f = {
        .said_by = host_number(p, text_of(m->event, "host")),
        .run = (uint32_t)json_integer_value(json_object_get(d, "run")),
        .number = (uint32_t)json_integer_value(json_object_get(d, "number")),
        .kind = word_number(text_of(d, "finding"), finding_kind_word, FINDING_KIND_COUNT),
        .phase = strcmp(phase, "closed") == 0    ? FINDING_CLOSED
                 : strcmp(phase, "updated") == 0 ? FINDING_UPDATED
                                                 : FINDING_OPENED,
        .from_nic = nic_number(from),
        .to_nic = nic_number(to),
        .from_host = host_number(p, text_of(from, "host")),
        .to_host = host_number(p, text_of(to, "host")),
        .port = (uint32_t)json_integer_value(json_object_get(d, "port")),
        .suspect_kind = word_number(text_of(suspect, "kind"), element_word, 7),
        .suspect = text_of(suspect, "name"),
        .confident = json_is_true(json_object_get(suspect, "confident")),
        .since = {m->at_ns},
        .text = text_of(d, "text")};

    alerts_on_finding(engine, (struct mono){m->at_ns}, &f);
}

static void print_time(int64_t ns)
{
    char text[64];

    finding_time_text(ns, text, sizeof(text));
    printf("%.23s  ", text);
}

/* Lets time go on to `until`, printing what would have been told. */
static void play_to(struct past *p, struct alerts *engine, int64_t until, unsigned *told,
                    unsigned *pages)
{
    struct alert_action action;

    do {
        const struct mono due = alerts_deadline(engine);
        const struct mono now = {due.ns < until ? due.ns : until};
        for (uint32_t h = 0; h < json_array_size(p->hosts);
             h++) { /* nobody counts as silent: that isn't tried here */
            alerts_on_host(engine, now, h);
        }
        alerts_tick(engine, now);
        while (alerts_next_action(engine, &action)) {
            if (action.kind == ALERT_ACTION_NOTIFY) {
                print_time(now.ns);
                printf("incident %" PRIu64 " %s%s: %s\n", action.incident.id,
                       alert_event_word(action.event), action.page ? " (page)" : "",
                       action.incident.text);
                *told += 1;
                *pages += action.page;
            }
        }
    } while (alerts_deadline(engine).ns < until);
}

static int play(struct past *p, const struct alert_rule *rule, int64_t from_ns, int64_t now_ns)
{
    static struct alert_config config;
    struct alerts *engine;
    unsigned told = 0, pages = 0;

    config = (struct alert_config){
        .rules = rule, .rule_count = 1, .route_count = 1, .blind = span_ns(INT64_MAX / 4)};
    config.routes[0].receivers = 1;
    config.fleet = (struct alert_fleet){.nic = on_nic, .host = on_host, .context = p};
    engine = alerts_new(&config, (struct mono){from_ns});
    if (engine == NULL) {
        fputs("foliot alerts test: out of memory\n", stderr);
        return EXIT_UNREACHABLE;
    }
    alerts_on_clock(engine, (struct mono){from_ns}, 0, FINDING_NO_TIME);
    qsort(p->moments, p->count, sizeof(*p->moments), compare_moments);
    for (size_t k = 0; k < p->count; k++) {
        const struct moment *m = &p->moments[k];
        play_to(p, engine, m->at_ns, &told, &pages);
        if (m->is_sample) {
            alerts_on_sample(engine, (struct mono){m->at_ns}, &m->sample);
        } else {
            play_finding(p, engine, m);
        }
    }
    play_to(p, engine, now_ns, &told, &pages);
    alerts_free(engine);
    printf("rule %s: %zu facts, %u notifications, %u pages\n", rule->name, p->count, told, pages);
    return EXIT_WELL;
}

int alerts_test(struct alerts_call *c, const struct alert_file *file, const char *name,
                int64_t since_ns)
{
    const int at = alert_file_find(file, name);
    struct timespec t;
    struct past p = {.keep = json_array(), .hosts = json_array()};
    const struct alert_rule *rule = at >= 0 ? &file->rules[at] : NULL;
    int64_t now_ns;
    char of;
    int status;

    if (rule == NULL) {
        fprintf(stderr, "foliot alerts test: no rule '%s'\n", name);
    } else if (rule->condition != ALERT_ON_FINDING && series_name(rule->metric, &of) == NULL) {
        fprintf(stderr,
                "foliot alerts test: %s: no history of %s is kept: such a rule can't be tried on "
                "the past\n",
                name, alert_metric_info(rule->metric)->name);
        rule = NULL;
    }
    if (rule == NULL) {
        json_decref(p.keep);
        json_decref(p.hosts);
        return EXIT_USAGE;
    }
    clock_gettime(CLOCK_REALTIME, &t);
    now_ns = t.tv_sec * NS_PER_S + t.tv_nsec;
    status = all_pages(c, "/api/v1/nics?limit=1000", &p.nics);
    status = status != EXIT_WELL ? status
             : rule->condition == ALERT_ON_FINDING
                 ? load_findings(c, &p, now_ns - since_ns)
                 : load_series(c, &p, rule->metric, now_ns - since_ns);
    status = status != EXIT_WELL ? status : play(&p, rule, now_ns - since_ns, now_ns);
    free(p.moments);
    json_decref(p.keep);
    json_decref(p.nics);
    json_decref(p.hosts);
    return status;
}

/* ---- Prometheus ------------------------------------------------------------------------------------------------- */

/* What /metrics of agents and controller has: the expression's left side, and what one of ours is in its unit. */
static const struct exported {
    uint32_t metric;
    const char *series;
    double factor;
} exported[] = {
    {ALERT_LINK_UP, "foliot_port_up", 1},
    {ALERT_LINK_DOWNS, "foliot_port_carrier_downs_total", 1},
    {ALERT_CLOCK_HARD, "foliot_clock_hard_bound_seconds", 1e-9},
    {ALERT_CLOCK_STATISTICAL, "foliot_clock_statistical_bound_seconds", 1e-9},
    {ALERT_CLOCK_SYNCED, "foliot_clock_status{foliot_clock_status=\"SYNCED\"}", 1},
    {ALERT_AGENT_CPU, "foliot_agent_cpu_ratio", 1e-6},
    {ALERT_AGENT_REPORTS_LOST, "foliot_reports_lost_total", 1},
    {ALERT_AGENT_LATE_TICKS, "foliot_ticks_late_total", 1},
    {ALERT_AGENT_BAD_PACKETS, "foliot_packets_bad_total", 1},
};

static bool expression(const struct alert_rule *r, char *text, size_t size)
{
    const char *sign = r->below ? "<" : ">";
    const long long within = (long long)(r->within.ns / NS_PER_S);

    if (r->condition == ALERT_ON_ABSENCE && r->metric == ALERT_HOST_REPORT) {
        snprintf(text, size, "time() - foliot_host_heard_timestamp_seconds > %lld", within);
        return true;
    }
    for (size_t k = 0; k < ARRAY_COUNT(exported); k++) {
        const struct exported *e = &exported[k];
        if (e->metric != r->metric || r->aggregate != ALERT_EACH) {
            continue;
        }
        if (r->condition == ALERT_ON_COUNT) {
            snprintf(text, size, "increase(%s[%llds]) > %g", e->series, within,
                     r->limit * e->factor);
        } else if (r->condition == ALERT_ON_RATE) {
            snprintf(text, size, "rate(%s[%llds]) > %g", e->series, within, r->limit * e->factor);
        } else if (r->condition == ALERT_ON_THRESHOLD) {
            snprintf(text, size, "%s %s %g", e->series, sign, r->limit * e->factor);
        } else {
            return false;
        }
        return true;
    }
    return false;
}

/* A name as Prometheus likes it: link-flaps, FoliotLinkFlaps. */
static void camel(const char *name, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "Foliot");
    bool upper = true;

    for (; *name != '\0' && used + 1 < size; name++) {
        const bool letter = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                            (*name >= '0' && *name <= '9');
        if (letter) {
            text[used++] =
                upper && *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
        }
        upper = !letter;
    }
    text[used] = '\0';
}

static void print_quoted(const char *text) /* YAML, single quotes */
{
    putchar('\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            putchar('\'');
        }
        putchar((unsigned char)*text < ' ' ? ' ' : *text);
    }
    putchar('\'');
}

int alerts_export(const struct alert_file *file)
{
    puts("# Foliot's alert rules as far as /metrics of agents and controller has their figures. "
         "Grouping into incidents,\n"
         "# maintenance and findings are Foliot's own: its receiver `alertmanager` brings those.\n"
         "groups:\n- name: foliot\n  rules:");
    for (size_t k = 0; k < file->rule_count; k++) {
        const struct alert_rule *r = &file->rules[k];
        char text[256], name[2 * ALERT_NAME_MAX];
        if (!expression(r, text, sizeof(text))) {
            printf("  # %s: %s\n", r->name,
                   r->condition == ALERT_ON_FINDING ? "a finding, not a series"
                                                    : "not in /metrics");
            continue;
        }
        camel(r->name, name, sizeof(name));
        printf("  - alert: %s\n    expr: ", name);
        print_quoted(text);
        printf("\n    for: %llds\n    labels: {severity: %s}\n    annotations: {summary: ",
               (long long)(r->hold.ns / NS_PER_S), alert_severity_word(r->severity));
        print_quoted(r->advice[0] != '\0' ? r->advice : r->name);
        puts("}");
    }
    puts("  - alert: FoliotNothingHeard\n    expr: absent(foliot_start_timestamp_seconds)\n    "
         "for: 2m\n"
         "    labels: {severity: page}\n    annotations: {summary: 'the controller is not scraped: "
         "nobody watches'}");
    return EXIT_WELL;
}

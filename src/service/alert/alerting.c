/* alerting.c: connects the rule file, the engine and delivery, and keeps what survives a restart. alerting_show.c writes the
 * answers. */
#include "service/alert/alerting.h"
#include "platform/json/element.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>

#include "service/alert/alerting_internal.h"

#define REFRESH_NS (60 * NS_PER_S) /* Alertmanager resolves an alert that isn't repeated */

__attribute__((format(printf, 3, 4))) static void say(const struct alerting *g, int priority,
                                                      const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (g->options.say != NULL) {
        g->options.say(g->options.context, priority, NULL, text);
    }
}

static void say_incident(const struct alerting *g, const struct alert_action *action)
{
    char text[1024];
    snprintf(text, sizeof(text), "incident %" PRIu64 " %s%s: %s", action->incident.id,
             alert_event_word(action->event), action->page ? " (page)" : "", action->incident.text);
    if (g->options.say != NULL) {
        g->options.say(g->options.context, action->page ? LOG_WARNING : LOG_NOTICE,
                       &action->incident, text);
    }
}

static void on_trouble(void *context, const struct deliver_trouble *t)
{
    const struct alerting *g = context;

    say(g, t->given_up ? LOG_ERR : LOG_WARNING, "alert %s for receiver '%s': %s (attempt %u); %s",
        t->key, t->receiver, t->words, t->attempts, t->given_up ? "given up" : "trying again");
}

static void end_deliver(struct alerting *g, unsigned wait_ms, struct deliver *heir)
{
    const size_t left = deliver_free(g->deliver, wait_ms, heir);

    if (left > 0) {
        say(g, LOG_WARNING, "%zu notices were not delivered", left);
    }
}

/* ---- making the engine ------------------------------------------------------------------------------------------ */

/* -ENOMEM: the engine before stays in force. */
static int make_engine(struct alerting *g, const struct alert_file *file, struct mono now,
                       uint64_t first)
{
    struct alert_config *config = calloc(1, sizeof(*config)); /* large; used at once */

    if (config == NULL) {
        return -ENOMEM;
    }
    alert_file_config(file, config);
    config->first_incident = first;
    const int r = brain_tell(g->brain, now, BRAIN_RULES, config, NULL);
    free(config);
    if (r < 0) {
        return r;
    }
    for (size_t k = 0; k < file->window_count; k++) {
        if (brain_tell(g->brain, now, BRAIN_SILENCE, &file->windows[k], NULL) < 0) {
            say(g, LOG_WARNING, "maintenance window '%s' isn't in force: too many silences",
                file->window_names[k]);
        }
    }
    for (size_t k = 0; k < g->silence_count; k++) {
        if (brain_tell(g->brain, now, BRAIN_SILENCE, &g->silences[k].silence, NULL) < 0) {
            say(g, LOG_WARNING, "silence %" PRIu64 " isn't in force: too many",
                g->silences[k].silence.id);
        }
    }
    return 0;
}

/* The caller frees *ret_text. NULL: the file is missing, and the options allow that. */
static int load_file(const struct alerting *g, struct alert_file *file, char **ret_text,
                     struct config_error *error)
{
    struct stat st;
    char *text = NULL;
    size_t size = 0;

    *ret_text = NULL;
    if (!g->options.must_be && stat(g->path, &st) < 0 && errno == ENOENT) {
        return alert_file_parse(g->path, NULL, 0, file, error);
    }
    int r = config_read(g->path, &text, &size, error);
    if (r == 0) {
        r = alert_file_parse(g->path, text, size, file, error);
    }
    if (r < 0) {
        free(text);
        return r;
    }
    *ret_text = text;
    return 0;
}

/* At the start, if the file is refused: loads the rules that were in force when the last run ended. */
static int load_last(struct alerting *g, const json_t *saved, const struct config_error *refused)
{
    const json_t *rules = json_object_get(saved, "rules");
    const char *text = json_string_value(rules);
    struct config_error error;

    if (rules == NULL) { /* saved by an older version, or the first start */
        return -ENOENT;
    }
    const int r = alert_file_parse(g->path, text, json_string_length(rules), &g->file, &error);
    if (r < 0) {
        say(g, LOG_ERR, "the alert rules of the last run can't be used either: %s", error.text);
        return r;
    }
    g->rules = text != NULL ? strdup(text) : NULL;
    say(g, LOG_ERR, "%s; the alert rules of the last run stay in force", refused->text);
    return 0;
}

/* ---- state of an earlier run ------------------------------------------------------------------------------------ */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}
static int64_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static void restore_silence(struct alerting *g, const json_t *s)
{
    struct kept_silence *k = &g->silences[g->silence_count];

    if (g->silence_count == KEPT_SILENCE_MAX) {
        return;
    }
    memset(k, 0, sizeof(*k));
    k->silence =
        (struct alert_silence){.id = (uint64_t)number_of(s, "id"),
                               .maintenance = json_is_true(json_object_get(s, "maintenance")),
                               .from_utc_ns = number_of(s, "from_utc_ns"),
                               .until_utc_ns = number_of(s, "until_utc_ns")};
    snprintf(k->silence.match.rule, sizeof(k->silence.match.rule), "%s", text_of(s, "rule"));
    snprintf(k->silence.match.host, sizeof(k->silence.match.host), "%s", text_of(s, "host"));
    snprintf(k->silence.match.element, sizeof(k->silence.match.element), "%s",
             text_of(s, "element"));
    snprintf(k->by, sizeof(k->by), "%s", text_of(s, "by"));
    snprintf(k->why, sizeof(k->why), "%s", text_of(s, "why"));
    g->silence_count++;
    g->next_silence = k->silence.id >= g->next_silence ? k->silence.id + 1 : g->next_silence;
}

static void restore_incident(struct alerting *g, const json_t *i, struct mono now, int64_t utc_ns)
{
    const char *by = text_of(i, "acknowledged_by");
    const struct alert_restore r = {
        .id = (uint64_t)number_of(i, "incident"),
        .severity = (uint32_t)number_of(i, "severity_number"),
        .sequence = (uint32_t)number_of(i, "sequence"),
        .pages = (uint32_t)number_of(i, "pages"),
        .cause = text_of(i, "cause"),
        .element = json_read_element(json_object_get(i, "element"), g->options.fleet.find,
                                     g->options.fleet.context),
        .choice = json_read_choice(i, g->options.fleet.find, g->options.fleet.context),
        .since = {number_of(i, "since_utc_ns") - utc_ns + now.ns},
        .told = json_is_true(json_object_get(i, "told")),
        .owes_page = json_is_true(json_object_get(i, "owes_page")),
        .acknowledged_by = by[0] != '\0' ? by : NULL,
        .text = text_of(i, "text"),
    };

    if (r.id == 0 || r.cause[0] == '\0' || brain_tell(g->brain, now, BRAIN_RESTORE, &r, NULL) < 0) {
        say(g, LOG_WARNING, "an incident of an earlier run can't be taken up again: %s", r.cause);
    }
}

/* Parses the text that an earlier run saved. Entries that can't be read are left out. */
static json_t *parse_saved(struct alerting *g)
{
    json_error_t error;
    json_t *saved = g->options.saved != NULL ? json_loads(g->options.saved, 0, &error) : NULL;
    size_t index;
    json_t *value;

    if (g->options.saved != NULL && saved == NULL) {
        say(g, LOG_WARNING,
            "alerts of an earlier run can't be read: %s; notices of open ones are sent again",
            error.text);
    }
    g->first_incident = saved != NULL ? (uint64_t)number_of(saved, "next_incident") : 1;
    g->first_incident = g->first_incident == 0 ? 1 : g->first_incident;
    json_array_foreach(json_object_get(saved, "silences"), index, value)
    {
        restore_silence(g, value);
    }
    return saved;
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

static void set_clock(struct alerting *g, struct mono now, int64_t utc_ns, int64_t fleet_offset_ns)
{
    g->utc_offset_ns = utc_ns - now.ns;
    g->fleet_offset_ns = fleet_offset_ns;
    const struct brain_clock clock = {g->utc_offset_ns, fleet_offset_ns};
    brain_tell(g->brain, now, BRAIN_CLOCK, &clock, NULL);
}

static int take_brain(struct alerting *g)
{
    g->own_brain = g->options.brain == NULL;
    g->brain = g->own_brain ? brain_new() : g->options.brain;
    if (g->brain == NULL) {
        return -ENOMEM;
    }
    brain_names(g->brain, &g->options.fleet);
    return 0;
}

int alerting_new(const struct alerting_options *options, struct mono now, int64_t utc_ns,
                 struct alerting **ret)
{
    struct alerting *g = calloc(1, sizeof(*g));
    struct config_error error;
    json_t *value;
    size_t index;

    if (g == NULL) {
        return -ENOMEM;
    }
    g->options = *options;
    g->next_silence = 1;
    g->refresh_due = now;
    snprintf(g->path, sizeof(g->path), "%s", options->path);
    json_t *saved = parse_saved(g);
    int r = load_file(g, &g->file, &g->rules, &error);
    const bool refused = r < 0;
    if (refused && load_last(g, saved, &error) < 0) {
        say(g, LOG_ERR, "%s", error.text);
        json_decref(saved);
        free(g);
        return r;
    }
    g->changed = true; /* so that they are saved for the next start */
    r = take_brain(g);
    r = r < 0 ? r : make_engine(g, &g->file, now, g->first_incident);
    r = r < 0 ? r
              : deliver_new(g->file.receivers, g->file.receiver_count, on_trouble, g, &g->deliver);
    if (r < 0) {
        json_decref(saved);
        alerting_free(g);
        return r;
    }
    set_clock(g, now, utc_ns, FINDING_NO_TIME);
    json_array_foreach(json_object_get(saved, "incidents"), index, value)
    {
        restore_incident(g, value, now, utc_ns);
    }
    json_decref(saved);
    g->options.saved = NULL;
    if (refused) {
        brain_tell(g->brain, now, BRAIN_REFUSED, &(struct brain_words){error.text}, NULL);
    }
    if (g->file.receiver_count > 0 && g->file.route_count == 0) {
        say(g, LOG_WARNING, "%s has receivers but no routes: no alert is sent to anybody", g->path);
    }
    *ret = g;
    return 0;
}

void alerting_free(struct alerting *g)
{
    if (g == NULL) {
        return;
    }
    end_deliver(g, 2000, NULL);
    if (g->own_brain) {
        brain_delete(g->brain);
    }
    explicit_bzero(&g->file, sizeof(g->file));
    if (g->rules != NULL) {
        explicit_bzero(g->rules, strlen(g->rules));
    }
    free(g->rules);
    free(g);
}

const struct alerts *alerting_engine(const struct alerting *g)
{
    return brain_alerts(g->brain);
}

struct brain *alerting_brain(struct alerting *g)
{
    return g->brain;
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static void drain(struct alerting *g, struct mono now)
{
    struct brain_answer answer;

    while (brain_tell(g->brain, now, BRAIN_ALERTS_NEXT, NULL, &answer) == 1) {
        const struct alert_action *action = &answer.alert;
        if (action->kind == ALERT_ACTION_NOTIFY) {
            struct alert_notice n;
            alert_notice_init(&n, action, g->file.link, now, g->utc_offset_ns, g->fleet_offset_ns);
            deliver_put(g->deliver, action->receivers, &n);
            if (action->event != ALERT_HEARTBEAT) {
                say_incident(g, action);
            }
        }
        g->changed = g->changed || action->event != ALERT_HEARTBEAT;
        if (g->options.on_incident != NULL && action->event != ALERT_HEARTBEAT) {
            g->options.on_incident(g->options.context, &action->incident, action->event,
                                   action->kind == ALERT_ACTION_NOTIFY);
        }
    }
}

static uint32_t alertmanagers(const struct alerting *g)
{
    uint32_t receivers = 0;

    for (size_t k = 0; k < g->file.receiver_count; k++) {
        receivers |= g->file.receivers[k].kind == RECEIVER_ALERTMANAGER ? 1u << k : 0;
    }
    return receivers;
}

/* Repeats open incidents: Alertmanager resolves an alert that isn't repeated. */
static void refresh(struct alerting *g, struct mono now)
{
    uint32_t routed[ALERT_SEVERITY_COUNT] = {0};
    struct alert_action action = {.kind = ALERT_ACTION_NOTIFY, .event = ALERT_REPEATED};
    size_t cursor = 0;

    for (size_t r = 0; r < g->file.route_count; r++) {
        for (uint32_t s = g->file.routes[r].severity; s < ALERT_SEVERITY_COUNT; s++) {
            routed[s] |= g->file.routes[r].receivers & alertmanagers(g);
        }
    }
    while (alerts_next_incident(alerting_engine(g), &cursor, &action.incident)) {
        const struct alert_incident *c = &action.incident;
        if (c->told && (c->state == INCIDENT_OPEN || c->state == INCIDENT_QUIET) &&
            routed[c->severity] != 0) {
            struct alert_notice n;
            alert_notice_init(&n, &action, g->file.link, now, g->utc_offset_ns, g->fleet_offset_ns);
            snprintf(n.key, sizeof(n.key), "foliot-%" PRIu64 "-at-%" PRId64, c->id,
                     (int64_t)(n.said_utc_ns / NS_PER_S));
            deliver_put(g->deliver, routed[c->severity], &n);
        }
    }
    g->refresh_due = mono_add(now, span_ns(REFRESH_NS));
}

void alerting_run(struct alerting *g, struct mono now, int64_t utc_ns, int64_t fleet_offset_ns)
{
    set_clock(g, now, utc_ns, fleet_offset_ns);
    if (!mono_before(now, alerts_deadline(alerting_engine(g)))) {
        brain_tell(g->brain, now, BRAIN_ALERTS_TICK, NULL, NULL);
    }
    drain(g, now);
    if (!mono_before(now, g->refresh_due)) {
        refresh(g, now);
    }
}

struct mono alerting_deadline(const struct alerting *g)
{
    return mono_min(alerts_deadline(alerting_engine(g)), g->refresh_due);
}

/* Open incidents move to the new engine through the same text that a restart uses. So only one path needs tests. */
static void move_incidents(struct alerting *g, struct mono now, int64_t utc_ns, const char *saved)
{
    json_error_t error;
    json_t *tree = json_loads(saved, 0, &error), *value;
    size_t index;

    json_array_foreach(json_object_get(tree, "incidents"), index, value)
    {
        restore_incident(g, value, now, utc_ns);
    }
    json_decref(tree);
}

static int use_file(struct alerting *g, const struct alert_file *file, struct mono now,
                    int64_t utc_ns)
{
    struct json_writer j;
    const char *saved = NULL;
    struct deliver *deliver = NULL;
    size_t size;

    drain(g, now); /* sends what the rules before decided */
    json_writer_init(&j, SAVED_MAX);
    alerting_save(g, &j);
    int r = json_writer_finish(&j, &saved, &size);
    r = r < 0 ? r : deliver_new(file->receivers, file->receiver_count, on_trouble, g, &deliver);
    r = r < 0 ? r : make_engine(g, file, now, g->first_incident);
    if (r < 0) {
        (void)deliver_free(deliver, 0, NULL);
        json_writer_done(&j);
        return r;
    }
    end_deliver(g, 1000, deliver);
    g->deliver = deliver;
    g->file = *file;
    set_clock(g, now, utc_ns, g->fleet_offset_ns);
    move_incidents(g, now, utc_ns, saved);
    json_writer_done(&j);
    if (g->options.on_reload != NULL) {
        g->options.on_reload(g->options.context);
    }
    return 0;
}

int alerting_reload(struct alerting *g, struct mono now, int64_t utc_ns)
{
    struct alert_file *file = malloc(sizeof(*file));
    struct config_error error;
    char *text = NULL;

    if (file == NULL) {
        return -ENOMEM;
    }
    int r = load_file(g, file, &text, &error);
    if (r < 0) {
        say(g, LOG_ERR, "%s; the rules before it stay in force", error.text);
        brain_tell(g->brain, now, BRAIN_REFUSED, &(struct brain_words){error.text}, NULL);
    } else {
        r = use_file(g, file, now, utc_ns);
        if (r == 0) {
            char *before = g->rules;
            g->rules = text;
            text = before;
            g->changed = true;
        }
        if (r < 0) {
            say(g, LOG_ERR, "the new alert rules can't be used: %s; the rules before stay in force",
                strerror(-r));
        } else {
            say(g, LOG_NOTICE, "%zu alert rules, %zu receivers in force", g->file.rule_count,
                g->file.receiver_count);
        }
    }
    explicit_bzero(file, sizeof(*file));
    free(file);
    free(text);
    return r;
}

/* ---- silences --------------------------------------------------------------------------------------------------- */

static void forget_over(struct alerting *g, int64_t utc_ns)
{
    size_t kept = 0;

    for (size_t k = 0; k < g->silence_count; k++) {
        if (g->silences[k].silence.until_utc_ns + 86400 * NS_PER_S > utc_ns) {
            g->silences[kept++] = g->silences[k];
        }
    }
    g->silence_count = kept;
}

int alerting_silence(struct alerting *g, struct mono now, const struct alert_silence *silence,
                     const char *by, const char *why, uint64_t *ret_id)
{
    struct kept_silence k = {.silence = *silence};

    forget_over(g, now.ns + g->utc_offset_ns);
    if (g->silence_count == KEPT_SILENCE_MAX) {
        return -ENOSPC;
    }
    k.silence.id = g->next_silence;
    snprintf(k.by, sizeof(k.by), "%s", by);
    snprintf(k.why, sizeof(k.why), "%s", why);
    int r = brain_tell(g->brain, now, BRAIN_SILENCE, &k.silence, NULL);
    if (r < 0) {
        return r;
    }
    g->silences[g->silence_count++] = k;
    g->next_silence++;
    g->changed = true;
    *ret_id = k.silence.id;
    return 0;
}

int alerting_unsilence(struct alerting *g, struct mono now, uint64_t id)
{
    for (size_t k = 0; k < g->silence_count; k++) {
        if (g->silences[k].silence.id == id) {
            memmove(&g->silences[k], &g->silences[k + 1],
                    (g->silence_count - k - 1) * sizeof(g->silences[0]));
            g->silence_count--;
            g->changed = true;
            const int r = brain_tell(g->brain, now, BRAIN_UNSILENCE,
                                     &(struct brain_incident){.id = id}, NULL);
            return r == -ENOENT ? 0 : r; /* the engine forgets expired silences by itself */
        }
    }
    return -ENOENT;
}

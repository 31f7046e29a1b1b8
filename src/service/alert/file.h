/* file.h: alerts.yaml: rules, receivers, routes, maintenance windows, as structs. man foliot-alerts.yaml.
 *
 * The rules that come with Foliot (packaging/alerts.yaml, built in) are in force too, unless the file has `defaults: no`. A
 * rule of the same name replaces such a rule; `enabled: no` removes it. Each error message has FILE:LINE:COLUMN, what was
 * expected and what was found. Secrets are read from separate files. No message shows a URL or a password. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/alert/alert.h"
#include "platform/config/config.h"

#define ALERT_URL_MAX      1024
#define ALERT_SECRET_MAX   1024
#define ALERT_ADDRESS_MAX  8
#define ALERT_ARGUMENT_MAX 16
#define ALERT_WINDOW_MAX   64 /* maintenance windows in a file */

enum alert_receiver_kind {
    RECEIVER_WEBHOOK,
    RECEIVER_ALERTMANAGER,
    RECEIVER_EMAIL,
    RECEIVER_SLACK,
    RECEIVER_COMMAND
};

struct alert_receiver {
    char name[ALERT_NAME_MAX];
    uint32_t kind;                        /* enum alert_receiver_kind */
    char url[ALERT_URL_MAX];              /* of HTTP, or smtp://, smtps:// */
    char authorization[ALERT_SECRET_MAX]; /* HTTP header value; empty: none */
    char user[256], password[ALERT_SECRET_MAX];
    char from[256], to[ALERT_ADDRESS_MAX][256];
    uint32_t to_count;
    char
        authority[256]; /* PEM file: authorities of the server's certificate; empty: the system's */
    char arguments[ALERT_ARGUMENT_MAX][256];
    uint32_t argument_count;
    struct span timeout;
    bool resolved; /* also notified when an incident is over */
};

struct alert_file {
    struct alert_rule rules[ALERT_RULE_MAX];
    size_t rule_count;
    struct alert_receiver receivers[ALERT_RECEIVER_MAX];
    size_t receiver_count;
    struct alert_route routes[ALERT_ROUTE_MAX];
    size_t route_count;
    struct span heartbeat;
    uint32_t heartbeat_receivers;
    struct alert_silence windows[ALERT_WINDOW_MAX];
    char window_names[ALERT_WINDOW_MAX][ALERT_NAME_MAX];
    size_t window_count;
    struct span keep, reopen, repage, together, grace, silent, blind;
    uint32_t promote;
    char link[256]; /* the dashboard's address, without a slash at its end; empty: none */
};

/* The rules that come with Foliot, as a file's text. */
extern const char alert_default_rules[];
extern const size_t alert_default_rules_size;

/* Fills *ret. -EINVAL with error->text; other -Exxx: it can't be read. */
MUST_CHECK int alert_file_load(const char *path, struct alert_file *ret,
                               struct config_error *error);
/* From memory. text NULL: the defaults alone. */
MUST_CHECK int alert_file_parse(const char *name, const char *text, size_t size,
                                struct alert_file *ret, struct config_error *error);
/* The part of the file that the engine needs. The caller adds names, limits and the first number. */
void alert_file_config(const struct alert_file *file, struct alert_config *ret);
/* -1: no such rule. */
int alert_file_find(const struct alert_file *file, const char *name);

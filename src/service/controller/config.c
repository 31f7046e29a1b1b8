/* config.c: the controller's YAML file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "service/controller/controller.h"
#include "service/controller/trust/trust.h"

static int load_span(const struct config_node *map, const char *key, struct span min,
                     struct span max, int64_t *ret_ns, struct config_error *error)
{
    struct span s = {*ret_ns};
    const int r = config_span(map, key, min, max, &s, error);
    *ret_ns = s.ns;
    return r;
}

static int load_keep(const struct config_node *root, struct controller_config *c,
                     struct config_error *error)
{
    static const char *const keys[] = {"ten_seconds", "five_minutes", "hour", "events", NULL};
    const struct config_node *keep = config_get(root, "keep");
    const struct span day = span_s(86400), years = span_s(86400LL * 3660);
    if (keep == NULL) {
        return 0;
    }
    int r = config_allow(keep, keys, error);
    r = r < 0 ? r : load_span(keep, "ten_seconds", day, years, &c->keep_fine_ns, error);
    r = r < 0 ? r : load_span(keep, "five_minutes", day, years, &c->keep_middle_ns, error);
    r = r < 0 ? r : load_span(keep, "hour", day, years, &c->keep_coarse_ns, error);
    return r < 0 ? r : load_span(keep, "events", day, years, &c->keep_events_ns, error);
}

static int load_remote(const struct config_node *root, struct controller_config *c,
                       struct config_error *error)
{
    static const char *const keys[] = {"url", "paths", "authorization_file", "authority", NULL};
    const struct config_node *map = config_get(root, "remote_write");
    if (map == NULL) {
        return 0;
    }
    int r = config_allow(map, keys, error);
    r = r < 0 ? r : config_copy(map, "url", c->remote.url, sizeof(c->remote.url), error);
    r = r < 0 ? r : config_bool(map, "paths", &c->remote.paths, error);
    r = r < 0 ? r
              : config_copy(map, "authorization_file", c->remote.authorization_file,
                            sizeof(c->remote.authorization_file), error);
    r = r < 0 ? r
              : config_copy(map, "authority", c->remote.authority, sizeof(c->remote.authority),
                            error);
    if (r == 0 && strncmp(c->remote.url, "http://", 7) != 0 &&
        strncmp(c->remote.url, "https://", 8) != 0) {
        r = config_fail(map, error, "url: expected http://… or https://…");
    }
    return r;
}

static int load_names(const struct config_node *root, struct controller_config *c,
                      struct config_error *error)
{
    const struct config_node *list = config_get(root, "api_names");
    if (list != NULL &&
        (config_kind(list) != CONFIG_LIST || config_count(list) > CONTROLLER_API_NAMES_MAX)) {
        return config_fail(list, error, "expected a list of at most %d names and addresses",
                           CONTROLLER_API_NAMES_MAX);
    }
    for (const struct config_node *n = list != NULL ? config_first(list) : NULL; n != NULL;
         n = config_next(n)) {
        const char *name = config_text(n);
        if (name == NULL || !api_name_good(name)) {
            return config_fail(n, error, "expected a host's name or an address");
        }
        snprintf(c->api_names[c->api_name_count++], CONTROLLER_API_NAME_SIZE, "%s", name);
    }
    return 0;
}

static bool loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]:", 6) == 0;
}

static int load_root(const struct config_node *root, struct controller_config *c,
                     struct config_error *error)
{
    static const char *const keys[] = {"data_dir",
                                       "listen",
                                       "api_listen",
                                       "api_socket",
                                       "api_key",
                                       "api_certificate",
                                       "api_names",
                                       "metrics_open",
                                       "report",
                                       "beat",
                                       "certificate_life",
                                       "keep",
                                       "alerts",
                                       "levels",
                                       "remote_write",
                                       "record_mib",
                                       "audit",
                                       NULL};
    int64_t mib = 0, report = c->report_ms * NS_PER_MS, beat = c->beat_ms * NS_PER_MS,
            life = c->certificate_s * NS_PER_S;
    int r = config_allow(root, keys, error);
    r = r < 0 ? r : config_copy(root, "data_dir", c->data_dir, sizeof(c->data_dir), error);
    r = r < 0 ? r : config_copy(root, "alerts", c->alerts, sizeof(c->alerts), error);
    r = r < 0 ? r : config_copy(root, "levels", c->levels, sizeof(c->levels), error);
    r = r < 0 ? r : config_copy(root, "audit", c->audit, sizeof(c->audit), error);
    r = r < 0 ? r : config_copy(root, "listen", c->listen, sizeof(c->listen), error);
    r = r < 0 ? r : config_copy(root, "api_listen", c->api_listen, sizeof(c->api_listen), error);
    r = r < 0 ? r : config_copy(root, "api_socket", c->api_socket, CONTROLLER_PATH_SIZE, error);
    if (r == 0 && c->api_socket[0] != 0 && c->api_socket[0] != '/' &&
        strcmp(c->api_socket, "none") != 0) {
        r = config_fail(root, error, "api_socket: expected an absolute path, or none");
    }
    r = r < 0 ? r : config_copy(root, "api_key", c->api_key, sizeof(c->api_key), error);
    r = r < 0 ? r
              : config_copy(root, "api_certificate", c->api_certificate, sizeof(c->api_certificate),
                            error);
    r = r < 0 ? r : load_names(root, c, error);
    r = r < 0 ? r : config_bool(root, "metrics_open", &c->metrics_open, error);
    r = r < 0 ? r : load_span(root, "report", span_s(1), span_s(60), &report, error);
    r = r < 0 ? r : load_span(root, "beat", span_ms(200), span_s(60), &beat, error);
    r = r < 0
            ? r
            : load_span(root, "certificate_life", span_s(60), span_s(86400LL * 3660), &life, error);
    r = r < 0 ? r : config_int(root, "record_mib", 0, 65536, &mib, error);
    r = r < 0 ? r : load_keep(root, c, error);
    r = r < 0 ? r : load_remote(root, c, error);
    c->report_ms = (uint32_t)(report / NS_PER_MS);
    c->beat_ms = (uint32_t)(beat / NS_PER_MS);
    c->record_bytes_max = mib << 20;
    c->certificate_s = life / NS_PER_S;
    if (r == 0 && (c->api_key[0] == 0) != (c->api_certificate[0] == 0)) {
        r = config_fail(root, error, "expected both api_key and api_certificate, or neither");
    }
    return r;
}

int controller_config_load(const char *path, bool must_be, struct controller_config *ret,
                           struct config_error *error)
{
    struct controller_config c = {
        .data_dir = CONTROLLER_DATA_DEFAULT,
        .listen = "[::]:7638",
        .api_listen = "127.0.0.1:7639",
        .report_ms = 10000,
        .beat_ms = 2000,
        .certificate_s = 90 * 86400,
        .keep_fine_ns = 2 * 86400 * NS_PER_S,
        .keep_middle_ns = 60 * 86400 * NS_PER_S,
        .keep_coarse_ns = 730 * 86400 * NS_PER_S,
        .keep_events_ns = 365 * 86400 * NS_PER_S,
    };
    struct config *tree = NULL;
    int r = 0;
    snprintf(c.path, sizeof(c.path), "%s", path != NULL ? path : "");
    if (path != NULL && (must_be || access(path, F_OK) == 0)) {
        r = config_load(path, &tree, error);
        r = r < 0 ? r : load_root(config_root(tree), &c, error);
        config_free(tree);
    }
    if (r == 0) {
        *ret = c;
    }
    return r;
}

bool controller_api_plain(const struct controller_config *c)
{
    return loopback(c->api_listen) && c->api_key[0] == 0;
}

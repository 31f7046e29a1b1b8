/* api_certificate.c: the certificate that the API shows to browsers and other clients over TLS.
 *
 * Agents and the controller use Ed25519. No browser accepts Ed25519, neither in a certificate's key nor in its authority's. So
 * the API has its own authority and its own key, both P-256. They are made when they are missing, also for a controller that
 * has been running for long. The authority signs nothing else, and makes nobody a member of the fleet. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "service/controller/controller.h"
#include "service/controller/trust/trust.h"

enum {
    AUTHORITY_YEARS = 10,
    CERTIFICATE_DAYS = 365, /* browsers accept at most 398 */
    RENEW_DAYS = 60,
    BACKDATE_S = 3600,
    NAME_MAX_COUNT = CONTROLLER_API_NAMES_MAX + 8,
};

#define NAME_FILE "api-name" /* the argument of `init --address` */

struct names {
    char own[256], given[CONTROLLER_API_NAME_SIZE], listen[CONTROLLER_API_NAME_SIZE];
    const char *list[NAME_MAX_COUNT + 1]; /* ends with NULL */
    size_t count;
};

static void path_of(const struct controller *c, const char *name,
                    char ret[CONTROLLER_PATH_SIZE + 32])
{
    snprintf(ret, CONTROLLER_PATH_SIZE + 32, "%s/%s", c->config.data_dir, name);
}

static int read_text(const struct controller *c, const char *name, char **ret_text)
{
    char path[CONTROLLER_PATH_SIZE + 32];
    path_of(c, name, path);
    return tls_read_file(path, ret_text);
}

static int write_text(const struct controller *c, const char *name, const char *text, unsigned mode)
{
    char path[CONTROLLER_PATH_SIZE + 32];
    path_of(c, name, path);
    return tls_write_file(path, text, strlen(text), mode);
}

/* ---- names ---- */

bool api_name_good(const char *name)
{
    unsigned char address[16];
    const size_t length = strlen(name);
    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1 ||
           (length >= 1 && length < CONTROLLER_API_NAME_SIZE && name[0] != '.' && name[0] != '-' &&
            strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") ==
                length);
}

int api_name_of(const char *address, char ret_name[CONTROLLER_API_NAME_SIZE])
{
    char name[CONTROLLER_API_NAME_SIZE];
    const bool bracket = address[0] == '[';
    const char *colon = strchr(address, ':');
    const size_t length = bracket ? strcspn(address, "]") - 1
                          : colon != NULL && strchr(colon + 1, ':') == NULL
                              ? (size_t)(colon - address)
                              : strlen(address);
    if (length >= sizeof(name)) {
        return -EINVAL;
    }
    snprintf(name, sizeof(name), "%.*s", (int)length, address + bracket);
    if (!api_name_good(name)) {
        return -EINVAL;
    }
    memcpy(ret_name, name, sizeof(name));
    return 0;
}

static void add_name(struct names *n, const char *name)
{
    for (size_t i = 0; i < n->count; i++) {
        if (strcmp(n->list[i], name) == 0) {
            return;
        }
    }
    if (api_name_good(name) && n->count < NAME_MAX_COUNT) {
        n->list[n->count++] = name;
    }
}

static void collect_names(const struct controller *c, struct names *n)
{
    char *given = NULL;
    *n = (struct names){0};
    add_name(n, "localhost");
    add_name(n, "127.0.0.1");
    add_name(n, "::1");
    if (gethostname(n->own, sizeof(n->own) - 1) == 0) {
        add_name(n, n->own);
    }
    if (read_text(c, NAME_FILE, &given) == 0) {
        snprintf(n->given, sizeof(n->given), "%.*s", (int)strcspn(given, "\r\n"), given);
        add_name(n, n->given);
    }
    free(given);
    if (api_name_of(c->config.api_listen, n->listen) == 0 && strcmp(n->listen, "0.0.0.0") != 0 &&
        strcmp(n->listen, "::") != 0) {
        add_name(n, n->listen);
    }
    for (size_t i = 0; i < c->config.api_name_count; i++) {
        add_name(n, c->config.api_names[i]);
    }
}

int api_name_keep(const char *data_dir, const char *name)
{
    char path[CONTROLLER_PATH_SIZE + 32], line[CONTROLLER_API_NAME_SIZE + 2];
    snprintf(path, sizeof(path), "%s/" NAME_FILE, data_dir);
    const int n = snprintf(line, sizeof(line), "%s\n", name);
    return tls_write_file(path, line, (size_t)n, 0644);
}

/* ---- keys and certificates ---- */

static int make_authority(struct controller *c)
{
    const time_t now = time(NULL);
    int r = tls_key_new(TLS_KEY_P256, &c->api_authority_key);
    r = r < 0 ? r
              : tls_authority_new(c->api_authority_key, "foliot-api-authority", now - BACKDATE_S,
                                  now + AUTHORITY_YEARS * 365 * 86400LL, &c->api_authority);
    r = r < 0 ? r : write_text(c, "api-authority.pem", c->api_authority, 0644);
    /* written last: this file completes the authority */
    r = r < 0 ? r : write_text(c, "api-authority.key", c->api_authority_key, 0600);
    if (r == 0) {
        controller_say(
            LOG_NOTICE,
            "%s/api-authority.pem is new: browsers and all clients that verify the API's "
            "certificate must trust that file",
            c->config.data_dir);
    }
    return r;
}

static int load_authority(struct controller *c)
{
    int r = read_text(c, "api-authority.key", &c->api_authority_key);
    if (r == -ENOENT) {
        return make_authority(c);
    }
    return r < 0 ? r : read_text(c, "api-authority.pem", &c->api_authority);
}

static int load_key(struct controller *c)
{
    int r = read_text(c, "api-server.key", &c->api_key);
    if (r == -ENOENT) {
        r = tls_key_new(TLS_KEY_P256, &c->api_key);
        r = r < 0 ? r : write_text(c, "api-server.key", c->api_key, 0600);
    }
    return r;
}

/* Made again if it is missing, ends soon, or lacks a name. */
static int load_certificate(struct controller *c)
{
    const time_t now = time(NULL);
    struct tls_certificate read = {0};
    struct names names;
    collect_names(c, &names);
    int r = read_text(c, "api-server.pem", &c->api_certificate);
    if (r == 0 && tls_certificate_read(c->api_certificate, &read) == 0 &&
        read.not_after > now + RENEW_DAYS * 86400LL &&
        tls_certificate_names(c->api_certificate, names.list)) {
        return 0;
    }
    free(c->api_certificate);
    c->api_certificate = NULL;
    const struct tls_issue issue = {.authority = c->api_authority,
                                    .authority_key = c->api_authority_key,
                                    .key = c->api_key,
                                    .purpose = TLS_SERVER,
                                    .name = TLS_SERVER_NAME,
                                    .names = names.list,
                                    .not_before = now - BACKDATE_S,
                                    .not_after = now + CERTIFICATE_DAYS * 86400LL};
    r = tls_issue(&issue, &c->api_certificate);
    return r < 0 ? r : write_text(c, "api-server.pem", c->api_certificate, 0644);
}

int api_certificate_load(struct controller *c)
{
    static const struct {
        const char *files;
        int (*load)(struct controller *c);
    } steps[] = {{"api-authority.key, api-authority.pem", load_authority},
                 {"api-server.key", load_key},
                 {"api-server.pem", load_certificate}};
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        const int r = steps[i].load(c);
        if (r < 0) {
            controller_say(LOG_ERR, "%s: %s: the API's certificate can't be read or made: %s",
                           c->config.data_dir, steps[i].files, strerror(-r));
            return r;
        }
    }
    return 0;
}

int64_t api_certificate_end(const struct controller *c)
{
    return c->api_not_after != 0 && c->api_not_after < c->server_not_after ? c->api_not_after
                                                                           : c->server_not_after;
}

void api_certificate_free(struct controller *c)
{
    tls_wipe(c->api_authority_key);
    tls_wipe(c->api_key);
    free(c->api_authority);
    free(c->api_certificate);
}

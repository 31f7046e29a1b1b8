/* authority.c: the fleet's authority, the controller's own certificate, the fleet key. */
#include <errno.h>
#include <gnutls/crypto.h>
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
    AUTHORITY_YEARS = 20,
    SERVER_DAYS = 365,
    SERVER_RENEW_DAYS = 60,
    BACKDATE_S = 3600, /* clocks of joining hosts may be behind */
    FLEET_KEY_SIZE = 160,
};

static void path_of(const char *data_dir, const char *name, char ret[CONTROLLER_PATH_SIZE + 32])
{
    snprintf(ret, CONTROLLER_PATH_SIZE + 32, "%s/%s", data_dir, name);
}

static int write_text(const char *data_dir, const char *name, const char *text, unsigned mode)
{
    char path[CONTROLLER_PATH_SIZE + 32];
    path_of(data_dir, name, path);
    return tls_write_file(path, text, strlen(text), mode);
}

static int read_text(const char *data_dir, const char *name, char **ret_text)
{
    char path[CONTROLLER_PATH_SIZE + 32];
    path_of(data_dir, name, path);
    return tls_read_file(path, ret_text);
}

/* Makes the probes' key, as a line of fleet.key. */
static int make_fleet_key(char text[FLEET_KEY_SIZE])
{
    unsigned char key[16];
    char when[32], hex[33];
    const time_t now = time(NULL);
    struct tm tm;
    if (gnutls_rnd(GNUTLS_RND_KEY, key, sizeof(key)) < 0) {
        return -EIO;
    }
    for (size_t i = 0; i < sizeof(key); i++) {
        snprintf(hex + 2 * i, 3, "%02x", key[i]);
    }
    gmtime_r(&now, &tm);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
    snprintf(text, FLEET_KEY_SIZE, "key 1 %s %s\n", hex, when);
    gnutls_memset(hex, 0, sizeof(hex));
    gnutls_memset(key, 0, sizeof(key));
    return 0;
}

int authority_create(const char *data_dir, char words[256])
{
    char path[CONTROLLER_PATH_SIZE + 32], fleet_key[FLEET_KEY_SIZE] = "";
    char *key = NULL, *certificate = NULL, *server_key = NULL;
    const time_t now = time(NULL);
    if (mkdir(data_dir, 0700) < 0 && errno != EEXIST) {
        const int r = -errno;
        snprintf(words, 256, "%.160s: expected a folder that can be made, found: %s", data_dir,
                 strerror(-r));
        return r;
    }
    path_of(data_dir, "authority.key", path);
    if (access(path, F_OK) == 0) {
        snprintf(words, 256,
                 "%.160s: this controller has an authority already: nothing was changed", path);
        return -EEXIST;
    }
    int r = tls_key_new(TLS_KEY_ED25519, &key);
    r = r < 0 ? r
              : tls_authority_new(key, "foliot-authority", now - BACKDATE_S,
                                  now + AUTHORITY_YEARS * 365 * 86400LL, &certificate);
    r = r < 0 ? r : tls_key_new(TLS_KEY_ED25519, &server_key);
    r = r < 0 ? r : make_fleet_key(fleet_key);
    if (r < 0) {
        snprintf(words, 256, "%.160s: the authority's keys can't be made: %s", data_dir,
                 strerror(-r));
    }
    const struct {
        const char *name, *text;
        unsigned mode;
    } files[] = {{"server.key", server_key, 0600},
                 {"fleet.key", fleet_key, 0600},
                 {"authority.pem", certificate, 0644},
                 /* written last: this file completes the authority */
                 {"authority.key", key, 0600}};
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(files); i++) {
        r = write_text(data_dir, files[i].name, files[i].text, files[i].mode);
        if (r < 0) {
            snprintf(words, 256, "%.160s/%s can't be written: %s", data_dir, files[i].name,
                     strerror(-r));
        }
    }
    gnutls_memset(fleet_key, 0, sizeof(fleet_key));
    tls_wipe(key);
    tls_wipe(server_key);
    free(certificate);
    return r;
}

int authority_server(const struct controller *c, const char *authority, char **ret_certificate)
{
    const time_t now = time(NULL);
    char name[65] = "";
    gethostname(name, sizeof(name) - 1);
    const char *const names[] = {"localhost", "127.0.0.1", "::1", name[0] != 0 ? name : NULL, NULL};
    const struct tls_issue issue = {.authority = authority,
                                    .authority_key = c->authority_key,
                                    .key = c->server_key,
                                    .purpose = TLS_SERVER,
                                    .name = TLS_SERVER_NAME,
                                    .names = names,
                                    .not_before = now - BACKDATE_S,
                                    .not_after = now + SERVER_DAYS * 86400};
    return tls_issue(&issue, ret_certificate);
}

/* Made again if it is missing or ends soon. Its key stays, so that join tokens stay valid. */
static int load_server(struct controller *c)
{
    struct tls_certificate read = {0};
    const time_t now = time(NULL);
    int r = read_text(c->config.data_dir, "server.pem", &c->server_certificate);
    if (r == 0 && tls_certificate_read(c->server_certificate, &read) == 0 &&
        read.not_after > now + SERVER_RENEW_DAYS * 86400) {
        c->server_not_after = read.not_after;
        return 0;
    }
    free(c->server_certificate);
    c->server_certificate = NULL;
    r = authority_server(c, c->authority, &c->server_certificate);
    r = r < 0 ? r : tls_certificate_read(c->server_certificate, &read);
    r = r < 0 ? r : write_text(c->config.data_dir, "server.pem", c->server_certificate, 0644);
    c->server_not_after = read.not_after;
    return r;
}

int authority_load(struct controller *c)
{
    const char *dir = c->config.data_dir;
    const struct {
        const char *name;
        char **text;
    } files[] = {{"authority.key", &c->authority_key},
                 {"authority.pem", &c->authority},
                 {"server.key", &c->server_key},
                 {"fleet.key", &c->fleet_keys}};
    int r = rotate_recover(dir);
    if (r < 0) {
        controller_say(LOG_ERR, "%s: a rotation that was interrupted can't be finished: %s", dir,
                       strerror(-r));
        return r;
    }
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        r = read_text(dir, files[i].name, files[i].text);
        if (r < 0) {
            controller_say(LOG_ERR,
                           "%s/%s: expected a file of this controller's authority, found: %s. %s",
                           dir, files[i].name, strerror(-r),
                           i == 0 && r == -ENOENT ? "Make one: foliot-controller init"
                                                  : "Restore it from your copy of the keys");
            return r;
        }
    }
    c->keys_version = tls_text_version(c->fleet_keys);
    c->authority_version = tls_text_version(c->authority);
    struct tls_certificate own = {0};
    r = tls_certificate_read(c->authority, &own);
    c->authority_not_after = own.not_after;
    if (r < 0) {
        controller_say(LOG_ERR, "%s/authority.pem: expected a certificate, found: %s", dir,
                       strerror(-r));
        return r;
    }
    r = load_server(c);
    if (r < 0) {
        controller_say(LOG_ERR, "%s/server.pem can't be made by authority.key and server.key: %s",
                       dir, strerror(-r));
    }
    return r;
}

void authority_free(struct controller *c)
{
    tls_wipe(c->authority_key);
    tls_wipe(c->server_key);
    tls_wipe(c->fleet_keys);
    free(c->authority);
    free(c->authority_before);
    free(c->server_certificate);
    free(c->server_before);
}

int authority_sign(struct controller *c, const char *request, const char *name,
                   char **ret_certificate, struct tls_certificate *ret_read)
{
    const time_t now = time(NULL);
    const struct tls_issue issue = {.authority = c->authority,
                                    .authority_key = c->authority_key,
                                    .request = request,
                                    .purpose = TLS_HOST,
                                    .name = name,
                                    .not_before = now - BACKDATE_S,
                                    .not_after = now + c->config.certificate_s};
    char *certificate = NULL;
    int r = tls_issue(&issue, &certificate);
    r = r < 0 ? r : tls_certificate_read(certificate, ret_read);
    if (r < 0) {
        free(certificate);
        return r;
    }
    *ret_certificate = certificate;
    return 0;
}

void authority_hash(const void *secret, size_t size, uint8_t ret_hash[STORE_HASH_SIZE])
{
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, secret, size, ret_hash) < 0) {
        memset(ret_hash, 0, STORE_HASH_SIZE);
    }
}

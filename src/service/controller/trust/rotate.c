/* rotate.c: replaces the authority and the fleet key without a gap.
 *
 * Authority. The new one signs from now on; the controller and agents trust both. An agent with another list of trusted
 * authorities is asked to renew, and gets both with a new certificate. When all agents have the list (or an admin decides that
 * the rest may join again) the old authority is removed: the controller's own certificate is signed by the new one, the list
 * has only the new one, and agents renew once more. authority.next.* exist on the disk only during the exchange.
 *
 * Fleet key. The next key is sent out at once, and is used from its start time on. The old key is removed after the same time
 * again. Then probes under the old key are invalid. */
#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "service/controller/controller.h"
#include "service/controller/trust/trust.h"

enum { AUTHORITY_YEARS = 20, BACKDATE_S = 3600 };
#define RETIRE_NAME "key_retire"

static void path_of(const struct controller *c, const char *name,
                    char ret[CONTROLLER_PATH_SIZE + 32])
{
    snprintf(ret, CONTROLLER_PATH_SIZE + 32, "%s/%s", c->config.data_dir, name);
}

static int write_text(const struct controller *c, const char *name, const char *text, unsigned mode)
{
    char path[CONTROLLER_PATH_SIZE + 32];
    path_of(c, name, path);
    return tls_write_file(path, text, strlen(text), mode);
}

static int move(const struct controller *c, const char *from, const char *to)
{
    char a[CONTROLLER_PATH_SIZE + 32], b[CONTROLLER_PATH_SIZE + 32];
    path_of(c, from, a);
    path_of(c, to, b);
    return rename(a, b) < 0 ? -errno : 0;
}

/* ---- the authority ---- */

int rotate_recover(const char *data_dir)
{
    char key[CONTROLLER_PATH_SIZE + 32], next[CONTROLLER_PATH_SIZE + 32],
        pem[CONTROLLER_PATH_SIZE + 32];
    snprintf(key, sizeof(key), "%s/authority.next.key", data_dir);
    snprintf(next, sizeof(next), "%s/authority.next.pem", data_dir);
    snprintf(pem, sizeof(pem), "%s/authority.pem", data_dir);
    if (access(key, F_OK) == 0) { /* the exchange did not happen: replacing the key decides */
        unlink(next);
        return unlink(key) < 0 ? -errno : 0;
    }
    return access(next, F_OK) == 0 && rename(next, pem) < 0 ? -errno : 0;
}

/* The size of the first of several PEM certificates; 0: there is only one. */
static size_t first_size(const char *bundle)
{
    static const char end[] = "-----END CERTIFICATE-----";
    const char *at = strstr(bundle, end);
    const size_t size = at != NULL ? (size_t)(at - bundle) + strlen(end) : 0;
    return size != 0 && strstr(bundle + size, "-----BEGIN") != NULL ? size : 0;
}

bool rotate_in_progress(const struct controller *c)
{
    return first_size(c->authority) > 0;
}

static int adopt(struct controller *c, char *bundle)
{
    struct tls_certificate read;
    const int r = tls_certificate_read(bundle, &read);
    if (r < 0) {
        free(bundle);
        return r;
    }
    free(c->authority_before); /* the agents' server reads it until the server is opened again */
    c->authority_before = c->authority;
    c->authority = bundle;
    c->authority_version = tls_text_version(bundle);
    c->authority_not_after = read.not_after;
    c->reopen = true;
    c->revision++;
    return 0;
}

int rotate_authority(struct controller *c, const char **ret_step)
{
    char *key = NULL, *own = NULL, *bundle = NULL, name[40];
    const time_t now = time(NULL);
    if (rotate_in_progress(c) || c->reopen) {
        return -EBUSY;
    }
    snprintf(name, sizeof(name), "foliot-authority-%llx", (unsigned long long)now);
    const time_t end = now + AUTHORITY_YEARS * 365 * 86400LL;
    *ret_step = "making its key";
    int r = tls_key_new(TLS_KEY_ED25519, &key);
    r = r < 0 ? r : tls_authority_new(key, name, now - BACKDATE_S, end, &own);
    r = r < 0 ? r : asprintf(&bundle, "%s%s", own, c->authority) < 0 ? -ENOMEM : 0;
    if (r == 0) {
        *ret_step = "writing authority.next.pem";
        r = write_text(c, "authority.next.pem", bundle, 0644);
    }
    if (r == 0) {
        *ret_step = "writing authority.next.key";
        r = write_text(c, "authority.next.key", key, 0600);
    }
    if (r == 0) { /* from here on the new authority is in force */
        *ret_step = "replacing authority.key";
        r = move(c, "authority.next.key", "authority.key");
    }
    if (r == 0) {
        tls_wipe(c->authority_key);
        c->authority_key = key;
        key = NULL;
        *ret_step = "replacing authority.pem";
        r = move(c, "authority.next.pem", "authority.pem");
        r = r < 0 ? r : adopt(c, bundle);
        bundle = NULL;
    }
    tls_wipe(key);
    free(own);
    free(bundle);
    return r;
}

bool rotate_done_by(const struct controller *c, const struct fleet_host *h)
{
    return !h->member || (h->authority_version == c->authority_version && h->newest_shown);
}

int rotate_finish(struct controller *c, const char **ret_step)
{
    char *certificate = NULL, *alone = strndup(c->authority, first_size(c->authority));
    struct tls_certificate read = {0};
    char *text = NULL;
    int r = alone == NULL || asprintf(&text, "%s\n", alone) < 0 ? -ENOMEM : 0;
    free(alone);
    *ret_step = "signing server.pem";
    r = r < 0 ? r : authority_server(c, text, &certificate);
    r = r < 0 ? r : tls_certificate_read(certificate, &read);
    if (r == 0) {
        *ret_step = "writing server.pem";
        r = write_text(c, "server.pem", certificate, 0644);
    }
    if (r == 0) {
        *ret_step = "writing authority.pem";
        r = write_text(c, "authority.pem", text, 0644);
    }
    if (r < 0) {
        free(text);
        free(certificate);
        return r;
    }
    free(c->server_before);
    c->server_before = c->server_certificate;
    c->server_certificate = certificate;
    c->server_not_after = read.not_after;
    return adopt(c, text);
}

/* ---- the fleet key ---- */

struct key_line {
    unsigned id;
    char hex[40], when[40];
    time_t at;
};

/* The last two lines that are keys, the older first. Returns how many there are. */
static unsigned read_keys(const char *text, struct key_line keys[2])
{
    unsigned count = 0;
    for (const char *line = text; *line != 0; line += strcspn(line, "\n"), line += *line == '\n') {
        struct key_line k = {0};
        struct tm tm = {0};
        if (sscanf(line, " key %u %39s %39s", &k.id, k.hex, k.when) == 3 &&
            strptime(k.when, "%Y-%m-%dT%H:%M:%SZ", &tm) != NULL) {
            k.at = timegm(&tm);
            keys[0] = count > 1 ? keys[1] : keys[0];
            keys[count > 0] = k;
            count += count < 2;
        }
    }
    return count;
}

static int write_keys(struct controller *c, const struct key_line *keys, unsigned count)
{
    char text[300] = "";
    for (unsigned i = 0; i < count; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "key %u %s %s\n", keys[i].id, keys[i].hex,
                 keys[i].when);
    }
    char *copy = strdup(text);
    int r = copy == NULL ? -ENOMEM : write_text(c, "fleet.key", text, 0600);
    gnutls_memset(text, 0, sizeof(text));
    if (r < 0) {
        tls_wipe(copy);
        return r;
    }
    tls_wipe(c->fleet_keys);
    c->fleet_keys = copy;
    c->keys_version = tls_text_version(copy);
    c->revision++;
    return 0;
}

void rotate_keys(const struct controller *c, struct rotate_keys *ret)
{
    struct key_line keys[2] = {0};
    const unsigned count = read_keys(c->fleet_keys, keys);
    *ret = (struct rotate_keys){.count = count,
                                .id = keys[0].id,
                                .next_id = count == 2 ? keys[1].id : 0,
                                .next_at = count == 2 ? keys[1].at : 0,
                                .retire_at = count == 2 ? c->key_retire : 0};
    gnutls_memset(keys, 0, sizeof(keys));
}

int rotate_fleet_key(struct controller *c, int64_t after_s, const char **ret_step)
{
    struct key_line keys[2] = {0};
    unsigned char secret[16];
    char value[24];
    const unsigned count = read_keys(c->fleet_keys, keys);
    const time_t at = time(NULL) + after_s;
    struct tm tm;
    if (count != 1) {
        return -EBUSY;
    }
    *ret_step = "drawing the key";
    if (gnutls_rnd(GNUTLS_RND_KEY, secret, sizeof(secret)) < 0) {
        return -EIO;
    }
    keys[1] = (struct key_line){.id = keys[0].id % UINT32_MAX + 1, .at = at};
    for (size_t i = 0; i < sizeof(secret); i++) {
        snprintf(keys[1].hex + 2 * i, 3, "%02x", secret[i]);
    }
    gmtime_r(&at, &tm);
    strftime(keys[1].when, sizeof(keys[1].when), "%Y-%m-%dT%H:%M:%SZ", &tm);
    c->key_retire = at + after_s;
    const int n = snprintf(value, sizeof(value), "%lld", (long long)c->key_retire);
    *ret_step = "storing when the older one goes";
    int r = store_put(c->store, RETIRE_NAME, value, (size_t)n);
    if (r == 0) {
        *ret_step = "writing fleet.key";
        r = write_keys(c, keys, 2);
    }
    gnutls_memset(secret, 0, sizeof(secret));
    gnutls_memset(keys, 0, sizeof(keys));
    return r;
}

static void retire_key(struct controller *c)
{
    struct key_line keys[2] = {0};
    if (read_keys(c->fleet_keys, keys) == 2 && time(NULL) >= keys[1].at &&
        time(NULL) >= c->key_retire) {
        const int r = write_keys(c, &keys[1], 1);
        if (r < 0) {
            controller_say(LOG_ERR, "fleet key %u can't be removed: writing fleet.key: %s",
                           keys[0].id, strerror(-r));
        } else {
            controller_say(LOG_NOTICE, "fleet key %u is removed", keys[0].id);
        }
    }
    gnutls_memset(keys, 0, sizeof(keys));
}

int rotate_load(struct controller *c)
{
    char *text = NULL;
    size_t size = 0;
    const int r = store_get(c->store, RETIRE_NAME, &text, &size);
    if (r == 0) {
        c->key_retire = strtoll(text, NULL, 10);
        free(text);
    }
    return r == -ENOENT ? 0 : r;
}

/* ---- once a second ---- */

void rotate_watch(struct controller *c)
{
    uint32_t left = 0;
    if (c->fleet_keys == NULL || c->store_broken) {
        return;
    }
    retire_key(c);
    for (uint32_t i = 0; i < c->host_count; i++) {
        left += !rotate_done_by(c, c->hosts[i]);
    }
    if (rotate_in_progress(c) && !c->reopen && left == 0) {
        const char *step = NULL;
        const int r = rotate_finish(c, &step);
        if (r < 0) {
            controller_say(LOG_ERR, "the old authority can't be removed: %s: %s", step,
                           strerror(-r));
        } else {
            controller_say(LOG_NOTICE, "all hosts trust the new authority: the old one is removed");
        }
    }
}

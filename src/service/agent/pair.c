/* pair.c: which key proves a packet. Two hosts use their own keys if both have one, else the fleet's key. */
#include <errno.h>
#include <foliot.pb-c.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "platform/tls/tls.h"
#include "service/agent/agent.h"

#define NO_HOST UINT32_MAX

static int64_t now_s(const struct agent *a)
{
    return a->now.ns / NS_PER_S;
}

static bool parse_secret(const char *text, uint8_t secret[static PAIR_SECRET_SIZE])
{
    size_t size = 0;

    return sodium_hex2bin(secret, PAIR_SECRET_SIZE, text, strcspn(text, "\n"), NULL, &size, NULL) ==
               0 &&
           size == PAIR_SECRET_SIZE;
}

int agent_pair_secret(const char *path, uint8_t secret[static PAIR_SECRET_SIZE], bool *ret_made)
{
    char *text = NULL, hex[2 * PAIR_SECRET_SIZE + 2];
    int r = tls_read_file(path, &text);

    *ret_made = r == -ENOENT;
    if (r == 0) {
        r = parse_secret(text, secret) ? 0 : -EINVAL;
        tls_wipe(text);
        return r;
    }
    if (r != -ENOENT) {
        return r;
    }
    pair_secret_new(secret);
    sodium_bin2hex(hex, sizeof(hex), secret, PAIR_SECRET_SIZE);
    snprintf(hex + 2 * PAIR_SECRET_SIZE, 2, "\n");
    r = tls_write_file(path, hex, strlen(hex), 0600);
    sodium_memzero(hex, sizeof(hex));
    return r;
}

void agent_pair_open(struct agent *a)
{
    uint8_t secret[PAIR_SECRET_SIZE];
    char path[AGENT_PATH_SIZE + 16];
    bool made = false;

    snprintf(path, sizeof(path), "%s/" AGENT_PAIR_FILE, a->config->state_dir);
    int r = agent_pair_secret(path, secret, &made);
    r = r < 0 ? r : pair_table_new(secret, &a->pairs);
    if (r < 0 || !pair_public(secret, a->pair_public)) {
        agent_say(LOG_ERR,
                  "%s: expected 64 hexadecimal digits, found: %s. Probes are proven with the "
                  "fleet's key only: remove the file and start the agent again",
                  path, strerror(r < 0 ? -r : EINVAL));
    }
    sodium_memzero(secret, sizeof(secret));
    agent_pair_follow(a);
}

static const uint8_t none[PAIR_PUBLIC_SIZE];

static void check_own(const struct agent *a)
{
    const struct agent_config *c = a->config;
    const uint8_t *own = c->host_keys[c->host_id.index];

    if (memcmp(own, none, sizeof(none)) != 0 && memcmp(own, a->pair_public, sizeof(none)) != 0) {
        char hex[2 * PAIR_PUBLIC_SIZE + 1];
        sodium_bin2hex(hex, sizeof(hex), a->pair_public, sizeof(a->pair_public));
        agent_say(LOG_ERR,
                  "host_keys has another key for this host: others can't read its probes. Expected "
                  "%s, of %s/" AGENT_PAIR_FILE,
                  hex, c->state_dir);
    }
}

void agent_pair_follow(struct agent *a)
{
    const struct agent_config *c = a->config;
    const bool start = !a->pairs_followed;
    const int64_t age = time_source_kernel_wall_ns() / NS_PER_S - c->host_keys_at;
    const int64_t since = start && age > PAIR_BIND_S ? PAIR_LONG_AGO : now_s(a);

    if (a->pairs == NULL || pair_table_resize(a->pairs, c->host_count) < 0) {
        return;
    }
    a->pairs_followed = true;
    pair_table_fleet(a->pairs, a->keys.keys, a->keys.count);
    for (uint32_t i = 0; i < c->host_count; i++) {
        const bool some = memcmp(c->host_keys[i], none, sizeof(none)) != 0;
        pair_table_set(a->pairs, i, some ? c->host_keys[i] : NULL, since);
    }
    check_own(a);
}

void agent_pair_change(struct agent *a, const struct Foliot__V1__Members *m)
{
    const struct agent_config *c = a->config;
    bool own = false;

    if (a->pairs == NULL || pair_table_resize(a->pairs, c->host_count) < 0) {
        return;
    }
    for (size_t i = 0; i < m->n_removed; i++) {
        if (m->removed[i] < c->host_count) {
            pair_table_set(a->pairs, m->removed[i], NULL, 0);
        }
    }
    for (size_t i = 0; i < m->n_hosts; i++) {
        const uint32_t host = m->hosts[i]->number;
        const bool some = memcmp(c->host_keys[host], none, sizeof(none)) != 0;
        pair_table_set(a->pairs, host, some ? c->host_keys[host] : NULL, now_s(a));
        own = own || host == c->host_id.index;
    }
    if (own) {
        check_own(a);
    }
}

/* The older of two keys is refused from 10 minutes after the start of the newer one, if it was not used for 10 minutes. */
static bool old_key_gone(const struct agent *a)
{
    const int64_t since =
        time_source_kernel_wall_ns() / NS_PER_S - a->keys.not_before[a->keys.count - 1];

    return a->keys.count == 2 && since > 600 &&
           mono_sub(a->now, a->old_key_used).ns > 600 * NS_PER_S &&
           mono_sub(a->now, a->started).ns > 600 * NS_PER_S;
}

static uint32_t host_of(const struct agent *a, struct nic_id nic)
{
    uint32_t index = 0;

    return agent_config_find(a->config, nic, &index) ? a->config->peers[index].host.index : NO_HOST;
}

/* A claim that comes from the NIC's listed address is trusted more. */
static enum pair_asker asker(const struct agent *a, struct nic_id claimed, const uint8_t *from)
{
    uint32_t index = 0;

    return from != NULL && agent_config_find(a->config, claimed, &index) &&
                   agent_address_same(&a->config->more[index], from)
               ? PAIR_LISTED
               : PAIR_STRANGER;
}

enum probe_error agent_pair_decode(struct agent *a, const uint8_t *bytes, size_t size,
                                   const uint8_t *from, struct probe *ret)
{
    const bool own = from == NULL;
    const struct probe_key *keys = a->keys.keys;
    const size_t skip = old_key_gone(a) && !own;
    struct probe_claim claim = {0};
    size_t count = a->keys.count;
    uint32_t host = NO_HOST;

    if (a->pairs != NULL && probe_claim_read(bytes, size, &claim)) {
        host = host_of(a, own ? claim.dst : claim.src);
        if (claim.pair) {
            count = pair_table_keys(a->pairs, host, now_s(a), asker(a, claim.src, from), &keys);
        }
    }
    const enum probe_error error =
        probe_decode(bytes, size, keys + (count > 0 ? skip : 0), count > 0 ? count - skip : 0, ret);
    if (error != PROBE_OK || own) {
        return error;
    }
    if (!ret->pair && a->pairs != NULL && pair_table_binds(a->pairs, host, now_s(a))) {
        /* that host proves itself with its own key: this packet is from another sender */
        return PROBE_ERROR_TAG;
    }
    if (ret->pair) {
        pair_table_heard(a->pairs, host);
    }
    a->peer_key[ret->src.index % 256] = ret->key_id;
    if (ret->key_id == a->keys.keys[0].id) {
        a->old_key_used = a->now;
    }
    return error;
}

/* Chooses the key to send with. If the fleet has two keys: the newer one from its start time on, or as soon as the peer uses
 * it. */
const struct probe_key *agent_pair_key(struct agent *a, struct nic_id peer)
{
    const struct probe_key *keys = a->keys.keys, *pair = NULL;
    const uint32_t host = a->pairs != NULL ? host_of(a, peer) : NO_HOST;

    if (host != NO_HOST && pair_table_speak(a->pairs, host, now_s(a)) &&
        pair_table_keys(a->pairs, host, now_s(a), PAIR_OURS, &pair) > 0) {
        keys = pair;
    }
    if (a->keys.count < 2) {
        return &keys[0];
    }
    const bool due = time_source_kernel_wall_ns() / NS_PER_S >= a->keys.not_before[1];
    return &keys[due || a->peer_key[peer.index % 256] == a->keys.keys[1].id];
}

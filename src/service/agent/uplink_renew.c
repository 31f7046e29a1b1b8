/* uplink_renew.c: the controller renews this host's certificate before it ends. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "platform/tls/tls.h"
#include "service/agent/uplink_internal.h"

/* The controller may cut off a renewal itself: it opens its port again to change its authority. So the next try comes soon,
 * unless the controller refused. */
static void renewal_failed(struct uplink *u, bool refused, const char *words)
{
    u->renew_at = uplink_now() + uplink_spread(u, refused ? REFUSED_MS : u->renew_retry_ms);
    u->renew_retry_ms = u->renew_retry_ms * 2 > REFUSED_MS ? REFUSED_MS : u->renew_retry_ms * 2;
    if (!u->said_renewal) {
        u->said_renewal = true;
        agent_say(LOG_WARNING, "this host's certificate can't be renewed: %s. It is tried again",
                  words);
    }
}

uint64_t uplink_file_version(const char *path)
{
    char *text = NULL;
    const uint64_t version = tls_read_file(path, &text) < 0 ? 0 : tls_text_version(text);
    tls_wipe(text);
    return version;
}

static void on_renewed(void *context, const struct http_result *result)
{
    struct uplink *u = context;
    struct tls_certificate read;
    char words[160] = "its answer can't be read", *text = NULL;
    const Foliot__V1__RenewReply *m =
        result->error == 0 && result->status == 200
            ? uplink_decode(u, result, &foliot__v1__renew_reply__descriptor)
            : NULL;
    bool renewed = false;
    u->renewing = false;
    if (m != NULL && m->certificate.len > 0) {
        text = strndup((const char *)m->certificate.data, m->certificate.len);
        const char *step = "the new certificate can't be read";
        int r = text == NULL ? -ENOMEM : tls_certificate_read(text, &read);
        if (r == 0) {
            step = "host.pem can't be written";
            r = tls_write_file(u->certificate, text, strlen(text), 0644);
        }
        if (r == 0 && m->authority.len > 0) {
            step = "authority.pem can't be written";
            r = tls_write_file(u->authority, m->authority.data, m->authority.len, 0644);
        }
        if (r == 0) {
            u->not_after = read.not_after;
            u->authority_version = uplink_file_version(u->authority);
            u->renew_at = 0;
            u->renew_retry_ms = RENEW_RETRY_MS_MIN;
            u->said_renewal = false;
            renewed = true;
            http_client_reset(u->client);
            agent_say(LOG_INFO, "the controller renewed this host's certificate");
        } else {
            snprintf(words, sizeof(words), "%s: %s", step, strerror(-r));
        }
    } else if (m == NULL) {
        uplink_explain(result, words);
    }
    if (!renewed) {
        renewal_failed(u, result->error == 0 && result->status < 500, words);
    }
    free(text);
    message_arena_done(&u->arena);
    uplink_arm(u);
}

/* The key stays. Only the time of validity changes. */
void uplink_renew(struct uplink *u)
{
    Foliot__V1__RenewRequest m = FOLIOT__V1__RENEW_REQUEST__INIT;
    char *key = NULL, *request = NULL;
    const char *step = "host.key can't be read";
    m.protocol = u->protocol;
    int r = tls_read_file(u->key, &key);
    if (r == 0) {
        step = "the request can't be signed";
        r = tls_request_new(key, u->agent->config->host, &request);
    }
    if (r == 0) {
        step = "the request can't be made";
        m.request = (ProtobufCBinaryData){strlen(request), (uint8_t *)request};
        r = message_encode(&m.base, &u->encoded);
    }
    if (r == 0) {
        const struct http_call call = uplink_call(u, "https://" TLS_SERVER_NAME "/agent/v1/renew");
        r = http_client_call(u->client, &call, on_renewed, u);
    }
    u->renewing = r == 0;
    if (r < 0) {
        char words[160];
        snprintf(words, sizeof(words), "%s: %s", step, strerror(-r));
        renewal_failed(u, false, words);
    }
    tls_wipe(key);
    free(request);
}

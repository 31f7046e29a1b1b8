/* admit.c: join and renew: hosts become members, and stay members. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "service/controller/api/scope.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/ingest_internal.h"
#include "service/controller/fleet/members.h"
#include "service/controller/fleet/state.h"
#include "service/controller/trust/trust.h"

#define OWN_RENEW_RATE 0.1 /* per host and second: each renewal waits for the disk twice */
enum { OWN_RENEW_BURST = 10 };

/* Returns PEM as text with a 0 at its end; NULL: not a text. */
static char *text_of(struct message_arena *arena, const ProtobufCBinaryData *data)
{
    char *text = data->len < 16384 ? message_arena_take(arena, data->len + 1) : NULL;
    if (text != NULL && data->len > 0) {
        memcpy(text, data->data, data->len);
    }
    return text != NULL && strlen(text) == data->len ? text : NULL;
}

/* Commits a change of membership at once and alone. If that fails, memory and disk differ, and the controller starts again. */
static int commit_now(struct controller *c)
{
    const int r = store_commit(c->store);
    state_committed(c, r == 0);
    ingest_answer_waiting(c, r);
    return r;
}

static void note_join(struct controller *c, const struct fleet_host *h, const struct token *t,
                      const char *peer)
{
    char detail[256], body[200];
    snprintf(detail, sizeof(detail), "host %s (%u NICs) from %s by token %s", h->name, h->nic_count,
             peer, t->name);
    const struct store_audit audit = {.at_ns = controller_utc_ns(),
                                      .who = t->name,
                                      .what = "host.join",
                                      .detail = detail,
                                      .source = peer};
    snprintf(body, sizeof(body), "{\"nics\":%u}", h->nic_count);
    const struct store_event event = {
        .at_ns = audit.at_ns, .host = h->id, .kind = "host", .word = "joined", .body = body};
    int r = store_audit_put(c->store, &audit);
    r = r < 0 ? r : state_event(c, &event);
    if (r < 0) {
        controller_store_failed(c, r, "a host's joining");
    }
    controller_say(LOG_INFO, "%s", detail);
}

static void answer_join(struct controller *c, struct http_request *request, uint32_t protocol,
                        struct fleet_host *h, char *certificate)
{
    Foliot__V1__JoinReply reply = FOLIOT__V1__JOIN_REPLY__INIT;
    Foliot__V1__Settings settings = ingest_settings(c, h);
    reply.protocol = MESSAGE_PROTOCOL;
    reply.certificate = ingest_data(certificate);
    reply.authority = ingest_data(c->authority);
    reply.keys = ingest_data(c->fleet_keys);
    reply.keys_version = c->keys_version;
    reply.settings = &settings;
    message_arena_reset(&c->report_arena);
    reply.hosts = c->member_count;
    if (protocol < 2 ? members_fleet(c, &c->report_arena, &reply.fleet) < 0
                     : (reply.host = members_host(c, &c->report_arena, h)) == NULL) {
        http_answer_text(request, 503, "out of memory");
        return;
    }
    ingest_answer(c, request, &reply.base, NULL);
}

static void refuse_join(struct controller *c, struct http_request *request, unsigned status,
                        const char *why)
{
    c->count.join_refusals++;
    controller_say(LOG_NOTICE, "a join from %s is refused: %s", http_peer(request), why);
    http_answer_text(request, status, why);
}

bool ingest_join(struct controller *c, struct http_request *request,
                 const Foliot__V1__JoinRequest *m)
{
    struct fleet_host *h = NULL;
    struct token *token = token_find(c, m->token.data, m->token.len, true, true);
    struct tls_certificate read;
    char *certificate = NULL, *text = text_of(&c->batch_arena, &m->request),
         words[MEMBER_WORDS_SIZE] = "";
    if (token == NULL) {
        refuse_join(c, request, 403, "the token is unknown or has expired");
        return false;
    }
    if (!tls_name_good(m->host) || text == NULL) {
        refuse_join(c, request, 400,
                    "expected a host name of 1 to 63 of [a-z0-9.-], and a request");
        return false;
    }
    if (!scope_sees_name(token->scope, m->host)) {
        snprintf(words, sizeof(words), "the token %.40s lets only hosts join that are named %.60s",
                 token->name, token->scope);
        refuse_join(c, request, 403, words);
        return false;
    }
    const struct fleet_host *before = fleet_find_host(c, m->host);
    const bool again = before != NULL && before->member;
    if (token->uses_left <= 0 && !again) {
        /* a member that asks again: its answer may have been lost; fleet_add checks its key */
        refuse_join(c, request, 403, "the token was used already: foliot-controller token join");
        return false;
    }
    if (authority_sign(c, text, m->host, &certificate, &read) < 0) {
        refuse_join(c, request, 400, "the certificate request is not one for an Ed25519 key");
        return false;
    }
    const struct fleet_join join = {
        .name = m->host,
        .version = m->version,
        .certificate = &read,
        .nics = m->nics,
        .nic_count = m->n_nics,
        .pair_key = m->pair_key.len == PAIR_PUBLIC_SIZE ? m->pair_key.data : NULL};
    int r = commit_now(c);
    r = r < 0 ? r : fleet_add(c, &join, &h, words);
    if (r == -EEXIST || r == -EINVAL) {
        refuse_join(c, request, r == -EEXIST ? 403 : 400, words);
        free(certificate);
        return false;
    }
    r = r < 0 || again ? r : store_token_use(c->store, token->id, controller_utc_ns());
    if (r == 0) {
        token->uses_left -= !again;
        note_join(c, h, token, http_peer(request));
        r = commit_now(c);
    }
    if (r < 0) {
        http_answer_text(request, 503, "can't be stored: try again later");
        controller_say(LOG_ERR,
                       "host %s can't be stored (%s): the controller starts again from the disk",
                       m->host, strerror(-r));
        c->exit_code = EXIT_FAILURE;
        sd_event_exit(c->loop, EXIT_FAILURE);
    } else {
        c->count.joins++;
        answer_join(c, request, m->protocol, h, certificate);
    }
    free(certificate);
    return r == 0 && !again;
}

void ingest_renew(struct controller *c, struct http_request *request,
                  const Foliot__V1__RenewRequest *m)
{
    unsigned status = 0;
    struct fleet_host *h = ingest_who(c, request, &status);
    struct tls_certificate read;
    char *certificate = NULL, *text = text_of(&c->batch_arena, &m->request);
    if (h == NULL) {
        http_answer_text(request, status, "not a member");
        return;
    }
    if (!allowance_take(&h->renewals, OWN_RENEW_RATE, OWN_RENEW_BURST, controller_mono())) {
        c->count.limited++;
        http_answer_text(request, 429, "too many requests for certificates");
        return;
    }
    if (text == NULL || authority_sign(c, text, h->name, &certificate, &read) < 0) {
        ingest_malformed(c, request, "the certificate request is not one for an Ed25519 key");
        return;
    }
    struct fleet_host before = *h;
    snprintf(h->serial_before, sizeof(h->serial_before), "%s", http_identity(request)->serial);
    snprintf(h->serial, sizeof(h->serial), "%s", read.serial);
    h->not_after = read.not_after;
    for (size_t i = 0; i < TLS_PIN_SIZE; i++) {
        snprintf(h->pin + 2 * i, 3, "%02x", read.pin[i]);
    }
    int r = commit_now(c);
    r = r < 0 ? r : fleet_save_host(c, h);
    r = r < 0 ? r : commit_now(c);
    if (r < 0) {
        *h = before;
        http_answer_text(request, 503, "can't be stored: try again later");
    } else {
        Foliot__V1__RenewReply reply = FOLIOT__V1__RENEW_REPLY__INIT;
        reply.certificate = ingest_data(certificate);
        reply.authority = ingest_data(c->authority);
        ingest_answer(c, request, &reply.base, NULL);
        controller_say(LOG_INFO, "host %s has a new certificate", h->name);
    }
    free(certificate);
}

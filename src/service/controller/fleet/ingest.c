/* ingest.c: requests and reports of agents (admit.c: join and renew). A host can speak only for itself: the certificate
 * decides which host a request is from, never the body. */
#include <errno.h>
#include <gnutls/crypto.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/ip.h"
#include "base/prng.h"
#include "core/brain/brain.h"
#include "core/fleet/protocol.h"
#include "service/controller/audit/audit.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/fleet_config.h"
#include "service/controller/fleet/ingest_internal.h"
#include "service/controller/fleet/measure.h"
#include "service/controller/fleet/members.h"
#include "service/controller/fleet/quota.h"
#include "service/controller/fleet/state.h"

enum {
    HOST_RATE = 10, /* requests per second and host, on average */
    HOST_BURST = 40,
    JOIN_RATE = 20, /* per address: joins that make no new member */
    JOIN_BURST = 200,
    JOIN_BODY_MAX = 64 << 10, /* limit before and after unpacking */
    /* hosts per second that are asked to renew for another authority: each renewal is a commit */
    RENEW_RATE = 20,
};

#define REFUSED_TOLD_NS (60 * NS_PER_S) /* interval of log lines per host */

/* ---- who ---- */

/* The member with this certificate; NULL and a status: none. */
struct fleet_host *ingest_who(struct controller *c, const struct http_request *request,
                              unsigned *ret_status)
{
    const struct tls_certificate *t = http_identity(request);
    if (t == NULL) {
        *ret_status = 401;
        return NULL;
    }
    struct fleet_host *h = fleet_find_host(c, t->name);
    if (h == NULL || !h->member ||
        (strcmp(t->serial, h->serial) != 0 && strcmp(t->serial, h->serial_before) != 0)) {
        *ret_status = 403;
        return NULL;
    }
    return h;
}

size_t ingest_join_place(uint64_t salt, const char *peer)
{
    uint8_t address[16];
    uint64_t parts[2] = {0, 0}; /* network, host */
    if (!ip_parse(peer, address)) {
        parts[0] = hash_text(peer);
    } else {
        memcpy(parts, address, ip_is_v4(address) ? 16 : 8); /* one machine may have a whole /64 */
    }
    return hash_u64(hash_u64(salt, parts[0]), parts[1]) % CONTROLLER_JOIN_PLACES;
}

static struct allowance *joins_of(struct controller *c, const char *peer)
{
    return &c->joins[ingest_join_place(c->join_salt, peer)];
}

bool ingest_join_take(struct controller *c, const char *peer)
{
    return allowance_take(joins_of(c, peer), JOIN_RATE, JOIN_BURST, controller_mono());
}

void ingest_join_give_back(struct controller *c, const char *peer)
{
    struct allowance *own = joins_of(c, peer);
    own->left = fmin(own->left + 1, JOIN_BURST);
}

void ingest_second(struct controller *c)
{
    uint64_t salt;
    if (c->seconds % 60 == 59 && gnutls_rnd(GNUTLS_RND_NONCE, &salt, sizeof(salt)) >= 0) {
        c->join_salt = salt;
    }
}

/* The client has no certificate yet. So its limits are low, and each address has its own limits. */
static unsigned on_join_head(struct controller *c, const struct http_request *request)
{
    const char *length = http_header(request, "Content-Length");
    if (length != NULL && strtoull(length, NULL, 10) > JOIN_BODY_MAX) {
        return 413;
    }
    if (!ingest_join_take(c, http_peer(request))) {
        c->count.limited++;
        return 429;
    }
    return 0;
}

unsigned ingest_on_head(void *context, struct http_request *request)
{
    struct controller *c = context;
    const struct mono now = controller_mono();
    const char *path = http_path(request);
    unsigned status = 0;
    if (strcmp(http_method(request), "POST") != 0 || strncmp(path, "/agent/v1/", 10) != 0) {
        return 404;
    }
    if (strcmp(path, "/agent/v1/join") == 0) {
        return on_join_head(c, request);
    }
    struct fleet_host *h = ingest_who(c, request, &status);
    if (h == NULL) {
        c->count.refused++;
        return status;
    }
    if (quota_refuses(h) || !allowance_take(&h->requests, HOST_RATE, HOST_BURST, now)) {
        c->count.limited++;
        return 429;
    }
    return 0;
}

void ingest_malformed(struct controller *c, struct http_request *request, const char *why)
{
    c->count.malformed++;
    http_answer_text(request, 400, why);
}

static void refuse_protocol(struct http_request *request)
{
    char text[64];
    snprintf(text, sizeof(text), "this controller has protocol %d, and %d", MESSAGE_PROTOCOL,
             MESSAGE_PROTOCOL_OLDEST);
    http_answer_text(request, 409, text);
}

/* Decodes the body; unpacks it if its header says that it is packed. host: whose quota it counts for; NULL: no host yet. */
static void *decode_body(struct controller *c, struct http_request *request,
                         struct fleet_host *host, const ProtobufCMessageDescriptor *descriptor)
{
    size_t size = 0;
    const void *bytes = http_body(request, &size);
    const char *encoding = http_header(request, "Content-Encoding");
    if (encoding != NULL && strcmp(encoding, "zstd") != 0) {
        ingest_malformed(c, request, "Content-Encoding: zstd or none");
        return NULL;
    }
    if (encoding != NULL) {
        const int r = message_unpack(
            bytes, size, host != NULL ? MESSAGE_BODY_UNPACKED : JOIN_BODY_MAX, &c->body);
        if (host != NULL) {
            quota_unpacked(host, c->body.size);
        }
        if (r == -EMSGSIZE) {
            c->count.malformed++;
            http_answer_text(request, 413, "too large when unpacked");
            return NULL;
        }
        if (r < 0) {
            ingest_malformed(c, request, "not zstd");
            return NULL;
        }
        bytes = c->body.bytes;
        size = c->body.size;
    }
    message_arena_reset(&c->batch_arena);
    void *message = message_decode(&c->batch_arena, descriptor, bytes, size);
    char words[160];
    if (message == NULL) {
        ingest_malformed(c, request, "expected another message, or a smaller one");
    } else if (!quota_within(message, words)) {
        ingest_malformed(c, request, words);
        message = NULL;
    }
    return message;
}

void ingest_answer(struct controller *c, struct http_request *request,
                   const ProtobufCMessage *message, const struct message_buffer *more)
{
    static const struct http_header_field zstd[] = {{"Content-Encoding", "zstd"}, {NULL, NULL}};
    int r = message_encode(message, &c->encoded);
    if (r == 0 && more == NULL && c->encoded.size < 512) {
        http_answer(request, 200, "application/x-protobuf", c->encoded.bytes, c->encoded.size,
                    NULL);
        return;
    }
    r = r < 0 ? r : message_pack(c->encoded.bytes, c->encoded.size, &c->packed);
    if (r == 0 && more != NULL) {
        r = message_buffer_reserve(&c->packed, c->packed.size + more->size);
        if (r == 0) {
            memcpy(c->packed.bytes + c->packed.size, more->bytes, more->size);
            c->packed.size += more->size;
        }
    }
    if (r < 0) {
        http_answer_text(request, 503, "out of memory");
        return;
    }
    http_answer(request, 200, "application/x-protobuf", c->packed.bytes, c->packed.size, zstd);
}

ProtobufCBinaryData ingest_data(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

Foliot__V1__Settings ingest_settings(const struct controller *c, const struct fleet_host *h)
{
    Foliot__V1__Settings s = FOLIOT__V1__SETTINGS__INIT;
    fleet_config_of(c, h, &s);
    return s;
}

/* ---- reports ---- */

static void answer_batch(struct controller *c, const struct waiting *w)
{
    Foliot__V1__BatchReply reply = FOLIOT__V1__BATCH_REPLY__INIT;
    struct fleet_host *h = w->host;
    Foliot__V1__Settings settings = ingest_settings(c, h);
    reply.measure = measure_for(c, h);
    struct audit_look_reply look;
    reply.look = audit_look_for(c, h, &look);
    Foliot__V1__Matrix matrix;
    reply.matrix = audit_matrix_for(c, h, w->matrix, &matrix);
    struct audit_perf_reply perf;
    reply.perf = audit_perf_for(c, h, w->perf, &perf);
    reply.protocol = MESSAGE_PROTOCOL;
    reply.acknowledged = h->committed.stream == w->stream ? h->committed.number : 0;
    reply.tables_wanted = h->tables_wanted;
    /* When the port is opened again, its connections end. So no host is asked to renew at that moment. */
    reply.renew = !c->reopen &&
                  (h->not_after - controller_utc_ns() / NS_PER_S < c->config.certificate_s / 3 ||
                   (w->authority_version != 0 && w->authority_version != c->authority_version &&
                    allowance_take(&c->renewals, RENEW_RATE, RENEW_RATE, controller_mono())));
    if (w->settings_version != settings.version) {
        reply.settings = &settings;
    }
    if (w->keys_version != c->keys_version) {
        reply.keys = ingest_data(c->fleet_keys);
        reply.keys_version = c->keys_version;
    }
    const struct message_buffer *members = members_for(c, &w->members);
    reply.retry_ms = quota_wait_ms(h);
    reply.report_refused = h->report_refused;
    uint8_t token[INSTANCE_TOKEN_SIZE];
    const bool moment = (h->features & FOLIOT__V1__FEATURE__FEATURE_MOMENT) != 0;
    if (instance_token(c, moment, token) == 0) {
        reply.controller = (ProtobufCBinaryData){sizeof(token), token};
    }
    ingest_answer(c, w->request, &reply.base, members);
    h->report_refused[0] = 0;
}

void ingest_answer_waiting(struct controller *c, int r)
{
    const size_t count = c->wait_count;
    c->wait_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct waiting w = c->waits[i];
        w.host->cursor_dirty = false;
        if (r == 0) {
            w.host->committed = w.host->cursor;
            w.host->committed_at_ns = w.host->last_at_ns;
        } else {
            w.host->cursor = w.host->committed;
            w.host->tables_wanted = true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (r == 0) {
            answer_batch(c, &c->waits[i]);
        } else {
            http_answer_text(c->waits[i].request, 503, "can't be stored: try again later");
        }
    }
}

/* The time of a report on the controller's clock: from its age on the agent's own clock. */
static int64_t place(const struct fleet_host *h, const Foliot__V1__Batch *batch,
                     const Foliot__V1__Report *report, int64_t now_ns)
{
    int64_t at = now_ns;
    if (report->boot == batch->boot) {
        at = fleet_back(h, now_ns, batch->now_mono, report->at_mono);
    } else if (report->at_fleet > 0 && batch->now_fleet > 0) { /* a report of the boot before */
        at = fleet_back(h, now_ns, batch->now_fleet, report->at_fleet);
    }
    const int64_t floor = h->last_at_ns > h->sealed_ns ? h->last_at_ns + 1 : h->sealed_ns;
    return at < floor ? floor : at;
}

/* Reports how many events were dropped since the last such report. */
static int tell_dropped(struct controller *c, struct fleet_host *h)
{
    const int64_t told_ns = h->over_ns;
    char text[128];
    if (h->events_dropped == 0) {
        return 0;
    }
    snprintf(text, sizeof(text),
             "it sends more events than are kept for one host: %llu were dropped",
             (unsigned long long)h->events_dropped);
    const int r = quota_tell(c, h, "over-quota", text, QUOTA_TOLD_NS, &h->over_ns);
    h->events_dropped = h->over_ns == told_ns ? h->events_dropped : 0;
    return r;
}

/* NULL: malformed, or over a ceiling. Such a report is acknowledged, too: otherwise it would come again for ever. */
static Foliot__V1__Report *open_report(struct controller *c, struct fleet_host *h,
                                       const Foliot__V1__SealedReport *sealed, char words[160])
{
    Foliot__V1__Report *report = NULL;
    int r = sealed->body.len <= MESSAGE_REPORT_MAX ? 0 : -EMSGSIZE;
    message_arena_reset(&c->report_arena);
    if (r == 0) {
        r = message_unpack(sealed->body.data, sealed->body.len, MESSAGE_REPORT_UNPACKED,
                           &c->unpacked);
        quota_unpacked(h, c->unpacked.size);
    }
    if (r == 0) {
        report = message_decode(&c->report_arena, &foliot__v1__report__descriptor,
                                c->unpacked.bytes, c->unpacked.size);
    }
    if (report == NULL) {
        snprintf(words, 160, "%s", r == -EMSGSIZE ? "it is too large" : "it can't be read");
        c->count.malformed++;
    } else if (!quota_within(&report->base, words)) {
        c->count.over++;
        report = NULL;
    }
    return report;
}

/* Puts a rollup into the history, without the parts that have rows of their own. Adds what it takes in the store. */
static int keep_report(struct controller *c, const struct fleet_host *h, int64_t at_ns,
                       const Foliot__V1__Report *report, const Foliot__V1__SealedReport *sealed,
                       size_t *stored)
{
    Foliot__V1__Report kept = *report;
    const void *body = sealed->body.data;
    size_t size = sealed->body.len;
    int r = 0;
    if (report->table != NULL || report->sheet != NULL || report->matrix != NULL ||
        report->perf != NULL || report->n_events > 0) {
        kept.table = NULL;
        kept.sheet = NULL;
        kept.matrix = NULL;
        kept.perf = NULL;
        kept.n_events = 0;
        r = message_encode(&kept.base, &c->encoded);
        r = r < 0 ? r : message_pack(c->encoded.bytes, c->encoded.size, &c->packed);
        body = c->packed.bytes;
        size = c->packed.size;
    }
    *stored += size + QUOTA_ROW_BYTES;
    return r < 0 ? r : store_report_put(c->store, h->id, at_ns, body, size);
}

/* Returns 0, or an error of the store. */
static int take_report(struct controller *c, struct fleet_host *h, const Foliot__V1__Batch *batch,
                       const Foliot__V1__SealedReport *sealed, int64_t now_ns)
{
    char words[160];
    const uint64_t rows = c->count.rows, row_bytes = c->count.row_bytes;
    size_t stored = 0;
    const Foliot__V1__Report *report = open_report(c, h, sealed, words);
    if (report == NULL) {
        snprintf(h->report_refused, sizeof(h->report_refused), "report %llu is not taken: %s",
                 (unsigned long long)sealed->number, words);
        return quota_tell(c, h, "report-refused", h->report_refused, REFUSED_TOLD_NS,
                          &h->refused_ns);
    }
    const int64_t at = place(h, batch, report, now_ns);
    h->last_at_ns = at;
    int r = 0;
    if (report->table != NULL) {
        r = protobuf_c_message_get_packed_size(&report->table->base) > 0
                ? message_encode(&report->table->base, &c->encoded)
                : 0;
        r = r < 0 ? r : message_pack(c->encoded.bytes, c->encoded.size, &c->packed);
        r = r < 0 ? r
                  : store_table_put(c->store, h->id, report->table->generation, now_ns,
                                    c->packed.bytes, c->packed.size);
        stored += c->packed.size + QUOTA_ROW_BYTES;
    }
    if (r == 0 && report->covers_ms > 0) {
        r = keep_report(c, h, at, report, sealed, &stored);
    }
    h->bytes += sealed->body.len;
    h->reports++;
    c->count.reports++;
    size_t sheet = 0;
    r = r < 0 || report->sheet == NULL ? r : audit_take(c, h, report->sheet, at, &sheet);
    stored += sheet;
    if (r == 0 && report->matrix != NULL) {
        audit_matrix_take(c, h, report->matrix);
    }
    if (r == 0 && report->perf != NULL) {
        audit_perf_take(c, h, report->perf);
    }
    r = r < 0 ? r : state_apply(c, h, report, at);
    quota_stored(h, c->count.rows - rows, c->count.row_bytes - row_bytes + stored);
    return r < 0 ? r : tell_dropped(c, h);
}

static int take_gap(struct controller *c, struct fleet_host *h, uint64_t missing)
{
    char body[80];
    c->count.gaps++;
    h->gaps++;
    snprintf(body, sizeof(body), "{\"reports_missing\":%llu}", (unsigned long long)missing);
    const struct store_event event = {.at_ns = controller_utc_ns(),
                                      .host = h->id,
                                      .kind = "host",
                                      .word = "history-gap",
                                      .body = body};
    return state_event(c, &event);
}

static int take_reports(struct controller *c, struct fleet_host *h, const Foliot__V1__Batch *batch)
{
    const int64_t now_ns = controller_utc_ns();
    const bool first = h->cursor.stream == 0;
    int r = 0;
    for (size_t i = 0; i < batch->n_reports && i < MESSAGE_BATCH_REPORT_MAX && r == 0; i++) {
        uint64_t missing = 0;
        if (i > 0 && !quota_turn_left(h)) {
            /* the remaining reports come at once, after requests of other hosts */
            break;
        }
        if (!quota_left(h)) { /* it waits at the agent; answer_batch tells the agent how long */
            c->count.held++;
            r = quota_tell(c, h, "over-quota",
                           h->quota.work_ms > 0
                               ? "it sends more than is kept for one host: its reports wait there"
                               : "its reports take more of the controller's time than one host may "
                                 "have: they wait there",
                           QUOTA_TOLD_NS, &h->over_ns);
            break;
        }
        const enum report_verdict verdict = report_judge(
            &h->cursor, batch->stream, batch->reports[i]->number, batch->oldest, &missing);
        if (verdict == REPORT_DUPLICATE) {
            c->count.duplicates++;
            continue;
        }
        if (verdict == REPORT_AHEAD || verdict == REPORT_BAD) {
            c->count.ahead++;
            break;
        }
        h->cursor_dirty = true;
        r = verdict == REPORT_TAKE_GAP && !first ? take_gap(c, h, missing) : 0;
        r = r < 0 ? r : take_report(c, h, batch, batch->reports[i], now_ns);
    }
    if (r == 0 && h->cursor_dirty) {
        r = store_host_cursor(c->store, h->id, h->cursor.stream, h->cursor.number);
    }
    return r;
}

static bool add_waiting(struct controller *c, const struct waiting *w)
{
    if (c->wait_count == c->wait_capacity) {
        const size_t capacity = c->wait_capacity * 2 + 64;
        struct waiting *larger = realloc(c->waits, capacity * sizeof(*larger));
        if (larger == NULL) {
            return false;
        }
        c->waits = larger;
        c->wait_capacity = capacity;
    }
    c->waits[c->wait_count++] = *w;
    return true;
}

/* Logs once why a host refuses the list of members. */
static void hear_of_members(struct fleet_host *h, const Foliot__V1__Batch *batch)
{
    const char *why = batch->fleet_refused;
    if (why[0] != 0 && h->members_refused[0] == 0) {
        controller_say(LOG_WARNING,
                       "host %s refuses version %llu of the list of members and goes on with "
                       "version %llu; members_refused of /api/v1/hosts/%s has the reason",
                       h->name, (unsigned long long)batch->fleet_refused_version,
                       (unsigned long long)batch->fleet_version, h->name);
    }
    snprintf(h->members_refused, sizeof(h->members_refused), "%.159s", why);
}

static void do_report(struct controller *c, struct http_request *request,
                      const Foliot__V1__Batch *batch)
{
    unsigned status = 0;
    struct fleet_host *h = ingest_who(c, request, &status);
    if (h == NULL) {
        http_answer_text(request, status, "not a member");
        return;
    }
    if (!protocol_taken(batch->protocol, MESSAGE_PROTOCOL_OLDEST, MESSAGE_PROTOCOL)) {
        refuse_protocol(request);
        return;
    }
    if (instance_hear(c, h->name, batch->controller.data, batch->controller.len,
                      batch->controller_ago_ms) == INSTANCE_STOP) {
        http_answer_text(request, 503, "a newer controller of this fleet serves: this one stops");
        return;
    }
    c->count.batches++;
    h->heard = controller_mono();
    h->heard_utc_ns = controller_utc_ns();
    alarm_on_host(c, h);
    snprintf(h->peer, sizeof(h->peer), "%s", http_peer(request));
    if (strcmp(h->version, batch->version) != 0) {
        snprintf(h->version, sizeof(h->version), "%.31s", batch->version);
    }
    fleet_config_heard(c, h, batch);
    brain_tell(c->brain, h->heard, BRAIN_HEARD,
               &(struct brain_heard){h->index, span_ms(h->beat_ms), span_ms(h->report_ms)}, NULL);
    measure_heard(c, h, batch);
    audit_heard(c, h, batch);
    hear_of_members(h, batch);
    fleet_pair_key(c, h, batch->pair_key.data, batch->pair_key.len);
    h->authority_version = batch->authority_version;
    h->keys_version = batch->keys_version;
    h->newest_shown = strcmp(http_identity(request)->serial, h->serial) == 0;
    if (h->boot != batch->boot) {
        h->boot = batch->boot;
        h->tables_wanted = true;
    }
    const struct waiting w = {.request = request,
                              .host = h,
                              .keys_version = batch->keys_version,
                              .settings_version = batch->settings_version,
                              .authority_version = batch->authority_version,
                              .stream = batch->stream,
                              .matrix = batch->matrix,
                              .perf = batch->perf,
                              .members = {.protocol = batch->protocol,
                                          .cursor = batch->members_cursor,
                                          .version = batch->fleet_version,
                                          .digest = batch->members_digest,
                                          .base = batch->members_base,
                                          .refused = batch->fleet_refused_version}};
    if (batch->n_reports == 0) {
        answer_batch(c, &w);
        return;
    }
    const int r = take_reports(c, h, batch);
    if (!add_waiting(c, &w)) {
        http_answer_text(request, 503, "out of memory");
        return;
    }
    if (r < 0) {
        controller_store_failed(c, r, "a report");
    } else {
        controller_touch(c);
    }
    audit_watch(c); /* the last sheet may have arrived */
    alarm_run(c);
}

static void take(struct controller *c, struct http_request *request, struct fleet_host *h)
{
    const char *what = http_path(request) + strlen("/agent/v1/");
    if (strcmp(what, "report") == 0) {
        const Foliot__V1__Batch *m = decode_body(c, request, h, &foliot__v1__batch__descriptor);
        if (m != NULL) {
            do_report(c, request, m);
        }
    } else if (strcmp(what, "join") == 0) {
        const Foliot__V1__JoinRequest *m =
            decode_body(c, request, h, &foliot__v1__join_request__descriptor);
        const bool taken =
            m != NULL && protocol_taken(m->protocol, MESSAGE_PROTOCOL_OLDEST, MESSAGE_PROTOCOL);
        if (m != NULL && !taken) {
            refuse_protocol(request);
        }
        if (taken && ingest_join(c, request, m)) {
            ingest_join_give_back(c, http_peer(request));
        }
    } else if (strcmp(what, "renew") == 0) {
        const Foliot__V1__RenewRequest *m =
            decode_body(c, request, h, &foliot__v1__renew_request__descriptor);
        if (m != NULL) {
            ingest_renew(c, request, m);
        }
    } else {
        http_answer_text(request, 404, "no such thing");
    }
}

void ingest_on_request(void *context, struct http_request *request)
{
    unsigned status = 0;
    struct fleet_host *h = ingest_who(context, request, &status); /* NULL: not a member */
    journal_about("FOLIOT_HOST", h != NULL ? h->name : NULL);
    journal_about("FOLIOT_SOURCE", http_peer(request));
    if (h != NULL) {
        quota_turn_begins(h);
    }
    take(context, request, h);
    if (h != NULL) {
        quota_turn_ends(h);
    }
    journal_about("FOLIOT_HOST", NULL);
    journal_about("FOLIOT_SOURCE", NULL);
}

void ingest_on_gone(void *context, struct http_request *request)
{
    struct controller *c = context;
    for (size_t i = 0; i < c->wait_count; i++) {
        if (c->waits[i].request == request) {
            c->waits[i] = c->waits[--c->wait_count];
        }
    }
}

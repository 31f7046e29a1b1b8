/* uplink.c: when to send what to the controller, and what to do with its answer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <syslog.h>

#include "base/prng.h"
#include "core/fleet/protocol.h"
#include "platform/tls/tls.h"
#include "service/agent/spool.h"
#include "service/agent/uplink_internal.h"

int64_t uplink_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

enum { EARLIER = 4 };

void uplink_arm(struct uplink *u)
{
    int64_t at = u->report_at < u->beat_at ? u->report_at : u->beat_at;
    if (!http_client_busy(u->client) && spool_count(u->spool) > 0 && u->send_at < at) {
        at = u->send_at;
    }
    if (u->event_waits) {
        at = 0;
    }
    sd_event_source_set_time(u->timer, (uint64_t)(at > 0 ? at / 1000 : 0));
    sd_event_source_set_enabled(u->timer, SD_EVENT_ONESHOT);
}

/* Spreads times by +-10 %. Otherwise hosts that started together would always report together. */
int64_t uplink_spread(struct uplink *u, uint32_t ms)
{
    u->prng = hash_u64(u->prng, 1);
    const int64_t ns = ms * NS_PER_MS;
    return ns - ns / 10 + (int64_t)(u->prng % (uint64_t)(ns / 5 + 1));
}

/* ---- trouble ---- */

static void set_trouble(struct uplink *u, const char *words)
{
    snprintf(u->trouble, sizeof(u->trouble), "%s", words);
    u->connected = false;
    if (!u->said_trouble) {
        u->said_trouble = true;
        agent_say(LOG_WARNING,
                  "controller %s: %s. Reports are kept and tried again; this host goes on alone",
                  u->agent->config->controller, words);
    }
}

static void set_connected(struct uplink *u)
{
    if (u->said_trouble) {
        agent_say(LOG_NOTICE, "controller %s: answers again, %zu reports to deliver",
                  u->agent->config->controller, spool_count(u->spool));
    }
    u->trouble[0] = 0;
    u->said_trouble = false;
    u->connected = true;
    u->retry_ms = RETRY_MS_MIN;
}

static void back_off(struct uplink *u, uint32_t ms)
{
    u->send_at = uplink_now() + uplink_spread(u, ms);
    u->beat_at = u->send_at;
    u->retry_ms = u->retry_ms * 2 > RETRY_MS_MAX ? RETRY_MS_MAX : u->retry_ms * 2;
}

/* ---- what comes down ---- */

static void take_keys(struct uplink *u, const ProtobufCBinaryData *keys, uint64_t version)
{
    struct agent *a = u->agent;
    const int r = tls_write_file(a->config->key_file, keys->data, keys->len, 0600);
    if (r < 0) {
        agent_say(LOG_ERR, "%s: the controller's keys can't be kept: %s", a->config->key_file,
                  strerror(-r));
        return;
    }
    u->keys_version = version;
    (void)agent_reload(a, NULL); /* a refusal was logged */
}

static void take_reply(struct uplink *u, const Foliot__V1__BatchReply *m)
{
    if (m->acknowledged > 0) {
        u->acknowledged = m->acknowledged;
        spool_acknowledge(u->spool, m->acknowledged);
    }
    if (m->report_refused[0] != 0) {
        agent_say(LOG_WARNING, "the controller: %s", m->report_refused);
    }
    const int r =
        controller_seen_take(&u->seen, m->controller.data, m->controller.len, uplink_now());
    if (r < 0) {
        agent_say(LOG_WARNING, "%s: can't be written: %s", u->seen.path, strerror(-r));
    }
    if (m->tables_wanted) {
        report_want_table(u->maker);
    }
    if (m->settings != NULL) {
        const uint64_t before = u->agent->settings.version;
        agent_settings_take(u->agent, m->settings);
        const int64_t report_at = uplink_now() + u->agent->settings.report_ms * NS_PER_MS;
        u->report_at = report_at < u->report_at ? report_at : u->report_at;
        /* send the next beat at once: the controller waits for the result */
        u->echo = u->agent->settings.version != before;
    }
    if (m->keys.len > 0) {
        take_keys(u, &m->keys, m->keys_version);
    }
    if (m->fleet != NULL) {
        uplink_take_fleet(u, m->fleet);
    }
    if (m->members != NULL) {
        uplink_take_members(u, m->members);
    }
    agent_measure_take(u->agent, m->measure);
    agent_audit_take(u->agent, m->look);
    agent_matrix_take(u->agent, m->matrix);
    agent_perf_take(u->agent, m->perf);
    if (m->renew && u->renew_at == 0) {
        u->renew_at = uplink_now();
    }
}

void *uplink_decode(struct uplink *u, const struct http_result *result,
                    const ProtobufCMessageDescriptor *descriptor)
{
    static const uint8_t zstd[4] = {0x28, 0xb5, 0x2f, 0xfd};
    const void *bytes = result->body;
    size_t size = result->size;
    if (size >= 4 && memcmp(bytes, zstd, 4) == 0) {
        /* zstd's magic number; our protobuf messages never begin with these bytes */
        if (message_unpack(bytes, size, ANSWER_UNPACKED, &u->unpacked) < 0) {
            return NULL;
        }
        bytes = u->unpacked.bytes;
        size = u->unpacked.size;
    }
    message_arena_done(&u->arena);
    /* a decoded message is larger, but not larger than this */
    return message_arena_init(&u->arena, size * 8 + 65536) < 0
               ? NULL
               : message_decode(&u->arena, descriptor, bytes, size);
}

void uplink_explain(const struct http_result *r, char words[160])
{
    if (r->error < 0) {
        snprintf(words, 160, "%s%.120s", r->error == -EACCES ? "not this fleet's controller: " : "",
                 r->words);
    } else {
        snprintf(words, 160, "it answers %u: %.120s", r->status, (const char *)r->body);
        words[strcspn(words, "\n")] = 0;
    }
}

struct http_call uplink_call(const struct uplink *u, const char *url)
{
    return (struct http_call){.url = url,
                              .connect_to = u->agent->config->controller,
                              .authority = u->authority,
                              .certificate = u->certificate,
                              .key = u->key,
                              .body = u->encoded.bytes,
                              .size = u->encoded.size,
                              .answer_max = ANSWER_MAX,
                              .timeout_ms = TIMEOUT_MS};
}

static void send_batch(struct uplink *u);

static void on_reply(void *context, const struct http_result *result)
{
    struct uplink *u = context;
    char words[160];
    if (result->error < 0 || result->status != 200) {
        uplink_explain(result, words);
        set_trouble(u, words);
        const uint32_t before = u->protocol;
        if (result->error == 0 && result->status == 409) { /* the controller may be older */
            u->protocol = protocol_after_refusal(before, MESSAGE_PROTOCOL_OLDEST);
        }
        const bool refused =
            result->status == 403 || (result->status == 409 && u->protocol == before);
        back_off(u, refused ? REFUSED_MS : u->retry_ms);
        uplink_arm(u);
        return;
    }
    const Foliot__V1__BatchReply *m =
        uplink_decode(u, result, &foliot__v1__batch_reply__descriptor);
    if (m == NULL) {
        set_trouble(u, "its answer can't be read");
        back_off(u, u->retry_ms);
    } else {
        const uint32_t wait_ms = m->retry_ms;
        set_connected(u);
        u->protocol = protocol_after_reply(m->protocol, u->protocol, MESSAGE_PROTOCOL);
        take_reply(u, m);
        u->send_at = uplink_now() + wait_ms * NS_PER_MS;
        u->beat_at = u->echo ? 0 : uplink_now() + uplink_spread(u, u->agent->settings.beat_ms);
        u->echo = false;
    }
    message_arena_done(&u->arena);
    message_buffer_done(&u->unpacked); /* the fleet's list is large and rare: free its memory */
    uplink_arm(u);
}

/* ---- sending ---- */

static size_t add_reports(struct uplink *u, Foliot__V1__SealedReport *sealed,
                          Foliot__V1__SealedReport **pointers)
{
    size_t count = 0, bytes = 0;
    struct spool_report report;
    while (count < MESSAGE_BATCH_REPORT_MAX && spool_get(u->spool, count, &report) &&
           (count == 0 || bytes + report.size < SEND_BYTES_MAX)) {
        foliot__v1__sealed_report__init(&sealed[count]);
        sealed[count].number = report.number;
        sealed[count].body = (ProtobufCBinaryData){report.size, (uint8_t *)(uintptr_t)report.bytes};
        pointers[count] = &sealed[count];
        bytes += report.size;
        count++;
    }
    return count;
}

static void send_batch(struct uplink *u)
{
    static Foliot__V1__SealedReport sealed[MESSAGE_BATCH_REPORT_MAX];
    static Foliot__V1__SealedReport *pointers[MESSAGE_BATCH_REPORT_MAX];
    struct agent *a = u->agent;
    Foliot__V1__Batch m = FOLIOT__V1__BATCH__INIT;
    m.protocol = u->protocol;
    m.stream = spool_stream(u->spool);
    m.oldest = spool_oldest(u->spool);
    m.boot = u->boot;
    m.now_mono = time_source_now(a->source).ns;
    int64_t fleet = 0;
    m.now_fleet = agent_fleet_ns(a, (struct mono){m.now_mono}, &fleet) ? fleet : 0;
    uplink_ask_members(u, &m);
    m.keys_version = u->keys_version;
    m.settings_version = a->settings.version;
    m.config_version = a->settings.config_version;
    m.settings_refused = a->settings.refused;
    m.mode = (uint32_t)agent_settings_mode(a);
    m.run = u->run;
    m.authority_version = u->authority_version;
    m.version = (char *)(uintptr_t)FOLIOT_VERSION;
    m.controller = (ProtobufCBinaryData){u->seen.size, u->seen.token};
    m.controller_ago_ms = controller_seen_ago_ms(&u->seen, uplink_now());
    m.features = FOLIOT__V1__FEATURE__FEATURE_MEASURE | FOLIOT__V1__FEATURE__FEATURE_LOOK |
                 FOLIOT__V1__FEATURE__FEATURE_MATRIX | FOLIOT__V1__FEATURE__FEATURE_PERF |
                 FOLIOT__V1__FEATURE__FEATURE_INCAST | FOLIOT__V1__FEATURE__FEATURE_ALLTOALL |
                 FOLIOT__V1__FEATURE__FEATURE_MEMORY | FOLIOT__V1__FEATURE__FEATURE_MOMENT;
    m.matrix = agent_matrix_held(a);
    m.perf = agent_perf_held(a);
    m.measured = agent_measure_result(a);
    if (a->pairs != NULL) {
        m.pair_key = (ProtobufCBinaryData){sizeof(a->pair_public), a->pair_public};
    }
    m.reports = pointers;
    if (uplink_now() >= u->send_at) { /* else send a beat without reports: reports have to wait */
        m.n_reports = add_reports(u, sealed, pointers);
    }
    const char *step = "the batch can't be encoded";
    int r = message_encode(&m.base, &u->encoded);
    if (r == 0) {
        const struct http_call call = uplink_call(u, u->url);
        step = "the request can't be made";
        r = http_client_call(u->client, &call, on_reply, u);
    }
    if (r < 0) {
        char words[160];
        snprintf(words, sizeof(words), "%s: %s", step, strerror(-r));
        set_trouble(u, words);
        back_off(u, u->retry_ms);
    }
}

/* ---- time ---- */

static void make_report(struct uplink *u, bool rollup, int64_t now)
{
    struct agent *a = u->agent;
    const uint32_t covers = !rollup               ? 0
                            : u->reported_at != 0 ? (uint32_t)((now - u->reported_at) / NS_PER_MS)
                                                  : 1;
    const uint64_t lost = spool_lost(u->spool);
    if (lost != u->lost_told) {
        char text[100];
        snprintf(text, sizeof(text),
                 "%" PRIu64 " reports were dropped: the controller was away for too long",
                 lost - u->lost_told);
        report_add_note(u->maker, a, UPLINK_LOST, text);
        u->lost_told = lost;
    }
    const int r = report_make(u->maker, a, covers > 0 || !rollup ? covers : 1, lost,
                              spool_bytes(u->spool), &u->packed);
    if (r < 0 || spool_append(u->spool, u->packed.bytes, u->packed.size) < 0) {
        agent_say(LOG_WARNING, "a report can't be kept: %s", strerror(r < 0 ? -r : ENOSPC));
    }
    if (rollup) {
        u->reported_at = now;
    }
}

static int on_timer(sd_event_source *source, uint64_t at, void *context)
{
    struct uplink *u = context;
    const int64_t now = uplink_now();
    if (now >= u->report_at) {
        make_report(u, true, now);
        u->report_at = now + uplink_spread(u, u->agent->settings.report_ms);
    } else if (u->event_waits) {
        make_report(u, false, now); /* sent at once, unless the controller asked for a pause */
    }
    u->event_waits = false;
    if (!http_client_busy(u->client)) {
        if (u->renew_at != 0 && now >= u->renew_at && u->connected) {
            uplink_renew(u);
        } else if ((spool_count(u->spool) > 0 && now >= u->send_at) || now >= u->beat_at) {
            send_batch(u);
        }
    }
    if (now >= u->beat_at) {
        u->beat_at = now + uplink_spread(u, u->agent->settings.beat_ms);
    }
    uplink_arm(u);
    return 0;
}

static void wake(struct uplink *u)
{
    if (!u->event_waits && report_has_events(u->maker)) {
        u->event_waits = true;
        uplink_arm(u);
    }
}

/* A path has died or loses packets. Then the state of all paths is useful to the controller now, so the next regular report is
 * due at once. But two reports have at least 1/EARLIER of the interval between them. */
static void hasten(struct uplink *u)
{
    const int64_t now = uplink_now(),
                  earliest =
                      u->reported_at + (int64_t)u->agent->settings.report_ms * NS_PER_MS / EARLIER,
                  at = earliest > now ? earliest : now;
    u->report_at = u->reported_at != 0 && at < u->report_at ? at : u->report_at;
}

void agent_uplink_finding(struct agent *a, const struct finding *f)
{
    if (a->uplink != NULL) {
        report_add_finding(a->uplink->maker, a, f);
        if (f->phase == FINDING_OPENED &&
            (f->kind == FINDING_PATH_DEAD || f->kind == FINDING_PATH_LOSSY)) {
            hasten(a->uplink);
        }
        wake(a->uplink);
    }
}

void agent_uplink_link(struct agent *a, const struct agent_event *e)
{
    if (a->uplink != NULL) {
        report_add_link(a->uplink->maker, a, e);
        wake(a->uplink);
    }
}

void agent_uplink_jobs(struct agent *a)
{
    uint64_t first;
    const uint64_t end = jobs_events(a->jobs, &first);
    struct uplink *u = a->uplink;
    if (u == NULL || u->jobs_told == end) {
        return;
    }
    for (uint64_t i = u->jobs_told > first ? u->jobs_told : first; i < end; i++) {
        report_add_job(u->maker, a, jobs_event(a->jobs, i));
    }
    u->jobs_told = end;
    wake(u);
}

void agent_uplink_beat(struct agent *a)
{
    if (a->uplink != NULL && a->uplink->connected) {
        a->uplink->beat_at = 0;
        a->uplink->echo = http_client_busy(a->uplink->client);
        uplink_arm(a->uplink);
    }
}

static int send_audit(struct agent *a, const struct report_audit *what)
{
    struct uplink *u = a->uplink;
    if (u == NULL) {
        return -ENOTCONN;
    }
    int r = report_make_audit(u->maker, a, what, &u->packed);
    r = r < 0 ? r : spool_append(u->spool, u->packed.bytes, u->packed.size);
    agent_uplink_beat(a);
    return r;
}

int agent_uplink_sheet(struct agent *a, Foliot__V1__Sheet *sheet)
{
    return send_audit(a, &(struct report_audit){.sheet = sheet});
}

int agent_uplink_matrix(struct agent *a, Foliot__V1__MatrixRow *row)
{
    return send_audit(a, &(struct report_audit){.matrix = row});
}

int agent_uplink_perf(struct agent *a, Foliot__V1__PerfRow *row)
{
    return send_audit(a, &(struct report_audit){.perf = row});
}

/* ---- life ---- */

static void set_paths(struct uplink *u)
{
    const char *dir = u->agent->config->identity_dir;
    snprintf(u->url, sizeof(u->url), "https://" TLS_SERVER_NAME "/agent/v1/report");
    snprintf(u->authority, sizeof(u->authority), "%s/authority.pem", dir);
    snprintf(u->certificate, sizeof(u->certificate), "%s/host.pem", dir);
    snprintf(u->key, sizeof(u->key), "%s/host.key", dir);
}

static int read_identity(struct uplink *u)
{
    char *text = NULL;
    struct tls_certificate read;
    int r = tls_read_file(u->certificate, &text);
    r = r < 0 ? r : tls_certificate_read(text, &read);
    free(text);
    if (r < 0) {
        agent_say(LOG_ERR,
                  "%s: expected this host's certificate, found: %s. Join the fleet: foliot-agent "
                  "join ADDRESS TOKEN",
                  u->certificate, strerror(-r));
        return r;
    }
    u->not_after = read.not_after;
    u->authority_version = uplink_file_version(u->authority);
    u->keys_version = uplink_file_version(u->agent->config->key_file);
    return 0;
}

static uint64_t boot_name(const struct agent *a)
{
    uint64_t h = 1;
    for (const char *p = time_source_boot_id(a->source); *p != 0; p++) {
        h = hash_u64(h, (uint8_t)*p);
    }
    return h | 1;
}

int agent_uplink_open(struct agent *a)
{
    char path[PATH_SIZE];
    uint32_t run = 0;
    if (a->config->controller[0] == 0) {
        return 0;
    }
    struct uplink *u = calloc(1, sizeof(*u));
    if (u == NULL) {
        return -ENOMEM;
    }
    u->protocol = MESSAGE_PROTOCOL;
    a->uplink = u;
    u->agent = a;
    u->boot = boot_name(a);
    u->retry_ms = RETRY_MS_MIN;
    if (getrandom(&u->prng, sizeof(u->prng), 0) < 0 || getrandom(&run, sizeof(run), 0) < 0) {
        u->prng = run = (uint32_t)uplink_now();
    }
    u->run = run;
    set_paths(u);
    controller_seen_open(&u->seen, a->config->state_dir, uplink_now());
    int r = read_identity(u);
    if (r < 0) { /* the clock and the mesh don't need the controller */
        agent_uplink_close(a);
        return 0;
    }
    snprintf(path, sizeof(path), "%s/report.spool", a->config->state_dir);
    r = spool_open(path, u->boot, &u->spool);
    r = r < 0 ? r : report_maker_new(&u->maker, u->boot, run);
    r = r < 0 ? r : http_client_open(a->loop, &u->client);
    r = r < 0 ? r
              : sd_event_add_time(a->loop, &u->timer, CLOCK_MONOTONIC, UINT64_MAX, 1, on_timer, u);
    if (r < 0) {
        agent_uplink_close(a);
        return r;
    }
    u->lost_told = spool_lost(u->spool);
    u->report_at = uplink_now() + NS_PER_S;
    u->beat_at = uplink_now();
    report_add_note(u->maker, a, UPLINK_STARTED, "the agent started");
    wake(u);
    uplink_arm(u);
    return 0;
}

void agent_uplink_close(struct agent *a)
{
    struct uplink *u = a->uplink;
    if (u == NULL) {
        return;
    }
    a->uplink = NULL;
    uplink_members_close(u);
    /* keeps the time of the controller's last answer */
    (void)controller_seen_save(&u->seen, uplink_now());
    sd_event_source_disable_unref(u->timer);
    http_client_close(u->client);
    spool_close(u->spool);
    report_maker_free(u->maker);
    message_buffer_done(&u->packed);
    message_buffer_done(&u->encoded);
    message_buffer_done(&u->unpacked);
    message_arena_done(&u->arena);
    free(u);
}

void agent_uplink_report(const struct agent *a, struct uplink_report *ret)
{
    const struct uplink *u = a->uplink;
    *ret = (struct uplink_report){.configured = a->config->controller[0] != 0};
    snprintf(ret->controller, sizeof(ret->controller), "%.120s", a->config->controller);
    if (u == NULL) {
        snprintf(ret->trouble, sizeof(ret->trouble), "%s",
                 ret->configured ? "this host has no certificate: foliot-agent join" : "");
        return;
    }
    ret->connected = u->connected;
    snprintf(ret->trouble, sizeof(ret->trouble), "%s", u->trouble);
    ret->acknowledged = u->acknowledged;
    ret->waiting = spool_count(u->spool);
    ret->waiting_bytes = spool_bytes(u->spool);
    ret->lost = spool_lost(u->spool);
    ret->certificate_not_after = u->not_after;
}

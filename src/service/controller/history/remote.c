/* remote.c: writes prometheus.WriteRequest by hand (remote.proto, version 0.1.0): three nested messages of strings, doubles
 * and times. They go straight into the block that is posted. */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "core/fleet/delay_code.h"
#include "platform/metrics/openmetrics.h"
#include "platform/metrics/snappy.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/history/remote.h"
#include "service/controller/history/worker.h"

enum {
    BLOCK_BYTES = 512 << 10,
    GATHER_S = 5,
    TIMEOUT_MS = 15000,
    BACKOFF_S_MAX = 60,
    ANSWER_KEPT = 160,
    SAMPLE_MAX = 1024, /* bytes of one sample with its labels */
};

struct block { /* one request; a job of the thread */
    struct worker_job job;
    struct remote *remote;
    struct block *later;
    struct message_buffer body;
    uint64_t samples;
    /* the thread's answer */
    long status;
    char words[ANSWER_KEPT + CURL_ERROR_SIZE];
};

struct remote {
    struct controller *c;
    struct worker *worker;
    CURL *easy; /* only the thread uses it during a request */
    struct curl_slist *headers;
    struct block *open, *first, *last; /* being filled; waiting, oldest first */
    size_t waiting_bytes;
    int64_t opened_ns, due_ns;
    unsigned attempts;
    bool under_way, trouble_said;
    _Atomic bool stop;
    struct {
        uint64_t sent, dropped, requests, failed;
    } count;
};

/* ---- one sample ---- */

struct label {
    const char *name, *value;
};

static size_t put_number(uint8_t *to, uint64_t n)
{
    size_t size = 0;
    for (; n >= 0x80; n >>= 7) {
        to[size++] = (uint8_t)(n | 0x80);
    }
    to[size++] = (uint8_t)n;
    return size;
}

/* TimeSeries{repeated Label labels = 1; repeated Sample samples = 2}, labels sorted by name. */
static size_t put_series(uint8_t to[SAMPLE_MAX], const struct label *labels, size_t count,
                         double value, int64_t at_ms)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t name = strlen(labels[i].name), text = strlen(labels[i].value);
        ASSERT(name < 64 && text < 128);
        to[at++] = 1 << 3 | 2;
        at += put_number(to + at, 2 + name + 1 + text + 1);
        to[at++] = 1 << 3 | 2;
        to[at++] = (uint8_t)name;
        memcpy(to + at, labels[i].name, name);
        at += name;
        to[at++] = 2 << 3 | 2;
        to[at++] = (uint8_t)text;
        memcpy(to + at, labels[i].value, text);
        at += text;
    }
    uint8_t sample[32];
    size_t size = 0;
    sample[size++] = 1 << 3 | 1;
    memcpy(sample + size, &value, 8); /* IEEE 754, little endian, as this machine */
    size += 8;
    sample[size++] = 2 << 3;
    size += put_number(sample + size, (uint64_t)at_ms);
    to[at++] = 2 << 3 | 2;
    to[at++] = (uint8_t)size;
    memcpy(to + at, sample, size);
    return at + size;
}

static void close_block(struct remote *r);

static void put(struct remote *r, const struct label *labels, size_t count, double value,
                int64_t at_ms)
{
    uint8_t series[SAMPLE_MAX];
    const size_t size = put_series(series, labels, count, value, at_ms);
    if (r->open == NULL) {
        r->open = calloc(1, sizeof(*r->open));
        r->opened_ns = controller_mono().ns;
    }
    struct message_buffer *b = r->open != NULL ? &r->open->body : NULL;
    if (b == NULL || message_buffer_reserve(b, b->size + size + 8) < 0) {
        r->count.dropped++;
        return;
    }
    b->bytes[b->size++] = 1 << 3 | 2;
    b->size += put_number(b->bytes + b->size, size);
    memcpy(b->bytes + b->size, series, size);
    b->size += size;
    r->open->samples++;
    if (b->size >= BLOCK_BYTES) {
        close_block(r);
    }
}

/* ---- a report's samples ---- */

struct words {
    struct remote *r;
    int64_t at_ms;
    const char *host;
};

static void of_host(const struct words *w, const char *name, double value)
{
    const struct label labels[] = {{"__name__", name}, {"host", w->host}};
    put(w->r, labels, ARRAY_COUNT(labels), value, w->at_ms);
}

/* Hosts choose the names of interfaces, and these may hold any bytes. Prometheus takes only UTF-8, so other names are
 * replaced. */
static const char *plain(const char *text, char copy[IF_NAMESIZE])
{
    size_t i = 0;
    for (; text[i] != 0 && i + 1 < IF_NAMESIZE; i++) {
        copy[i] = text[i] > ' ' && text[i] < 127 ? text[i] : '?';
    }
    copy[i] = 0;
    return copy;
}

static void of_nic(const struct words *w, const char *name, const char *nic, double value)
{
    char copy[IF_NAMESIZE];
    const struct label labels[] = {
        {"__name__", name}, {"host", w->host}, {"nic", plain(nic, copy)}};
    put(w->r, labels, ARRAY_COUNT(labels), value, w->at_ms);
}

static void put_ports(const struct words *w, const struct fleet_host *h,
                      const Foliot__V1__Report *report)
{
    for (size_t i = 0; i < report->n_ports && i < HOST_NIC_MAX; i++) {
        const Foliot__V1__Port *p = report->ports[i];
        const struct fleet_nic *n = fleet_find_nic(w->r->c, p->nic);
        if (n == NULL || n->host != h || p->state == FOLIOT__V1__PORT_STATE__PORT_UNKNOWN) {
            continue;
        }
        of_nic(w, "foliot_port_up", n->name, p->state == FOLIOT__V1__PORT_STATE__PORT_UP);
        of_nic(w, "foliot_port_carrier_downs_total", n->name, (double)p->carrier_downs);
        if (report->covers_ms > 0) {
            of_nic(w, "foliot_port_receive_bytes_total", n->name, (double)p->rx_bytes);
            of_nic(w, "foliot_port_transmit_bytes_total", n->name, (double)p->tx_bytes);
            of_nic(w, "foliot_port_receive_errors_total", n->name, (double)p->rx_errors);
            of_nic(w, "foliot_port_transmit_errors_total", n->name, (double)p->tx_errors);
            of_nic(w, "foliot_port_receive_drops_total", n->name, (double)p->rx_drops);
            of_nic(w, "foliot_port_transmit_drops_total", n->name, (double)p->tx_drops);
            of_nic(w, "foliot_port_speed_bits_per_second", n->name, (double)p->speed_mbps * 1e6);
        }
    }
}

static void put_clock(const struct words *w, const Foliot__V1__Clock *m)
{
    static const char *const words[] = {"UNKNOWN", "SYNCED", "HOLDOVER", "DISRUPTED"};
    for (uint32_t i = 0; i < ARRAY_COUNT(words); i++) {
        const struct label labels[] = {{"__name__", "foliot_clock_status"},
                                       {"foliot_clock_status", words[i]},
                                       {"host", w->host}};
        put(w->r, labels, ARRAY_COUNT(labels), (uint32_t)m->status == i, w->at_ms);
    }
    if (m->hard_ns >= 0) {
        of_host(w, "foliot_clock_hard_bound_seconds", (double)m->hard_ns * 1e-9);
    }
    if (m->statistical_ns >= 0) {
        of_host(w, "foliot_clock_statistical_bound_seconds", (double)m->statistical_ns * 1e-9);
    }
}

static void put_cost(const struct words *w, const Foliot__V1__Cost *m)
{
    of_host(w, "foliot_agent_cpu_ratio", m->cpu_ppm * 1e-6);
    of_host(w, "foliot_agent_memory_bytes", (double)m->memory_bytes);
    of_host(w, "foliot_packets_bad_total", (double)m->packets_bad);
    of_host(w, "foliot_ticks_late_total", (double)m->late_ticks);
    of_host(w, "foliot_reports_lost_total", (double)m->reports_lost);
}

/* "host/nic"; NULL: the NIC is not known. */
static const char *nic_name(const struct controller *c, uint32_t id, char text[128])
{
    const struct fleet_nic *n = fleet_find_nic(c, id);
    char copy[IF_NAMESIZE];
    if (n == NULL) {
        return NULL;
    }
    snprintf(text, 128, "%s/%s", n->host->name, plain(n->name, copy));
    return text;
}

static void put_path(const struct words *w, const struct fleet_path *p)
{
    char from[128], to[128], port[8];
    if (nic_name(w->r->c, p->peer, from) == NULL || nic_name(w->r->c, p->local, to) == NULL ||
        p->state == FOLIOT__V1__PATH_STATE__PATH_STATE_UNKNOWN) {
        return;
    }
    snprintf(port, sizeof(port), "%u", p->port);
    struct label labels[] = {{"__name__", "foliot_path_loss_ratio"},
                             {"from", from},
                             {"port", port},
                             {"to", to},
                             {NULL, NULL}};
    put(w->r, labels, 4, p->loss_ppm * 1e-6, w->at_ms);
    labels[0].value = "foliot_path_owd_seconds";
    labels[4] = labels[3];
    for (int tail = 0; tail < 2; tail++) {
        const int32_t code = tail ? p->p99 : p->p50;
        labels[3] = (struct label){"quantile", tail ? "0.99" : "0.5"};
        if (code != DELAY_CODE_NONE) {
            put(w->r, labels, 5, (double)delay_decode(code) * 1e-9, w->at_ms);
        }
    }
}

void remote_on_report(struct remote *r, const struct fleet_host *h,
                      const Foliot__V1__Report *report, int64_t at_ns)
{
    if (r == NULL) {
        return;
    }
    const struct words w = {r, at_ns / NS_PER_MS, h->name};
    put_ports(&w, h, report);
    if (report->clock != NULL && report->covers_ms > 0) {
        put_clock(&w, report->clock);
    }
    if (report->cost != NULL && report->covers_ms > 0) {
        put_cost(&w, report->cost);
    }
    for (uint32_t i = 0; r->c->config.remote.paths && report->paths != NULL && i < h->path_count;
         i++) {
        put_path(&w, &h->paths[i]);
    }
}

/* ---- posting ---- */

static void free_block(struct block *b)
{
    message_buffer_done(&b->body);
    free(b);
}

static struct block *take_first(struct remote *r)
{
    struct block *b = r->first;
    r->first = b->later;
    r->last = r->first != NULL ? r->last : NULL;
    r->waiting_bytes -= b->body.size;
    return b;
}

/* Packs a block that is full or old enough, and puts it behind the others. */
static void close_block(struct remote *r)
{
    struct block *b = r->open;
    struct message_buffer packed = {0};
    r->open = NULL;
    if (message_buffer_reserve(&packed, snappy_bound(b->body.size)) < 0) {
        r->count.dropped += b->samples;
        free_block(b);
        return;
    }
    packed.size = snappy_pack(b->body.bytes, b->body.size, packed.bytes);
    uint8_t *exact = realloc(packed.bytes, packed.size);
    packed.bytes = exact != NULL ? exact : packed.bytes;
    packed.capacity = exact != NULL ? packed.size : packed.capacity;
    message_buffer_done(&b->body);
    b->body = packed;
    if (r->last != NULL) {
        r->last->later = b;
    } else {
        r->first = b;
    }
    r->last = b;
    r->waiting_bytes += b->body.size;
    while (r->waiting_bytes > REMOTE_WAITING_MAX) {
        struct block *oldest = take_first(r);
        r->count.dropped += oldest->samples;
        free_block(oldest);
    }
}

struct answer {
    char text[ANSWER_KEPT + 1];
    size_t size;
};

static size_t on_answer(char *bytes, size_t size, size_t count, void *context)
{
    struct answer *a = context;
    for (size_t i = 0; i < size * count && a->size < ANSWER_KEPT; i++) {
        a->text[a->size++] = bytes[i] >= ' ' && bytes[i] < 127 ? bytes[i] : ' ';
    }
    a->text[a->size] = 0;
    return size * count;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    return ((struct remote *)context)->stop; /* ends the request when the controller ends */
}

static void run_post(struct worker_job *job, struct store *store)
{
    struct block *b = (struct block *)job;
    CURL *easy = b->remote->easy;
    struct answer answer = {0};
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &answer);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)b->body.size);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, b->body.bytes);
    const CURLcode code = curl_easy_perform(easy);
    b->status = 0;
    if (code == CURLE_OK) {
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &b->status);
        snprintf(b->words, sizeof(b->words), "HTTP status %ld: %s", b->status, answer.text);
    } else { /* curl's error buffer may hold the URL: it isn't used */
        snprintf(b->words, sizeof(b->words), "%s", curl_easy_strerror(code));
    }
}

static void post_next(struct remote *r);

static void say_trouble(struct remote *r, const struct block *b, bool final)
{
    if (!r->trouble_said) {
        controller_say(LOG_WARNING, "remote_write: %s%s", b->words,
                       final ? " These samples are dropped."
                             : ". Samples wait and are sent again.");
    }
    r->trouble_said = true;
}

static void end_post(struct worker_job *job)
{
    struct block *b = (struct block *)job;
    struct remote *r = b->remote;
    const bool taken = b->status >= 200 && b->status < 300;
    const bool final = b->status >= 400 && b->status < 500 && b->status != 408 &&
                       b->status != 425 && b->status != 429;
    r->under_way = false;
    r->count.requests++;
    r->count.failed += !taken;
    if (!taken && !final) { /* it is sent again, before the others */
        const unsigned shift = r->attempts < 6 ? r->attempts : 6;
        const int64_t wait_s = 1 << shift < BACKOFF_S_MAX ? 1 << shift : BACKOFF_S_MAX;
        if (!r->stop) {
            say_trouble(r, b, false);
        }
        r->attempts++;
        r->due_ns = controller_mono().ns + wait_s * NS_PER_S;
        b->later = r->first;
        r->first = b;
        r->last = r->last != NULL ? r->last : b;
        r->waiting_bytes += b->body.size;
        return;
    }
    r->attempts = 0;
    if (taken) {
        r->count.sent += b->samples;
        if (r->trouble_said) {
            controller_say(LOG_NOTICE, "remote_write: the receiver takes samples again");
        }
        r->trouble_said = false;
    } else {
        say_trouble(r, b, true);
        r->count.dropped += b->samples;
    }
    free_block(b);
    post_next(r);
}

static void post_next(struct remote *r)
{
    if (r->stop || r->under_way || r->first == NULL || controller_mono().ns < r->due_ns) {
        return;
    }
    struct block *b = take_first(r);
    b->job = (struct worker_job){.run = run_post, .done = end_post};
    b->remote = r;
    r->under_way = true;
    worker_add(r->worker, &b->job, false);
}

void remote_on_second(struct remote *r)
{
    if (r == NULL) {
        return;
    }
    if (r->open != NULL && controller_mono().ns - r->opened_ns >= GATHER_S * NS_PER_S) {
        close_block(r);
    }
    post_next(r);
}

void remote_metrics(struct remote *r, struct metrics_text *t)
{
    if (r == NULL) {
        return;
    }
    metrics_counter(t, "remote_samples", "Samples that the remote write receiver accepted.",
                    r->count.sent);
    metrics_counter(t, "remote_samples_dropped",
                    "Samples that the receiver refused, or that were dropped for lack of room.",
                    r->count.dropped);
    metrics_counter(t, "remote_requests", "Requests to the remote write receiver.",
                    r->count.requests);
    metrics_counter(t, "remote_requests_failed",
                    "Requests to the remote write receiver that failed.", r->count.failed);
    metrics_gauge(t, "remote_waiting_bytes", "bytes",
                  "Compressed samples that wait for the remote write receiver.",
                  (double)r->waiting_bytes);
}

/* ---- life ---- */

static void add_header(struct remote *r, const char *line)
{
    struct curl_slist *more = curl_slist_append(r->headers, line);
    r->headers = more != NULL ? more : r->headers;
}

static int add_authorization(struct remote *r, const char *path)
{
    char *text = NULL, line[1024];
    const int rc = tls_read_file(path, &text);
    if (rc < 0) {
        controller_say(LOG_ERR, "remote_write.authorization_file %s: %s", path, strerror(-rc));
        return rc;
    }
    text[strcspn(text, "\r\n")] = 0;
    snprintf(line, sizeof(line), "Authorization: %s", text);
    add_header(r, line);
    explicit_bzero(line, sizeof(line));
    tls_wipe(text);
    return 0;
}

static int set_up(struct remote *r)
{
    const struct controller_config *c = &r->c->config;
    r->easy = curl_easy_init();
    if (r->easy == NULL) {
        return -ENOMEM;
    }
    add_header(r, "Content-Type: application/x-protobuf");
    add_header(r, "Content-Encoding: snappy");
    add_header(r, "X-Prometheus-Remote-Write-Version: 0.1.0");
    add_header(r, "Expect:");
    const int rc = c->remote.authorization_file[0] != 0
                       ? add_authorization(r, c->remote.authorization_file)
                       : 0;
    curl_easy_setopt(r->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(r->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(r->easy, CURLOPT_URL, c->remote.url);
    curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, r->headers);
    curl_easy_setopt(r->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(r->easy, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
    curl_easy_setopt(r->easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(r->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(r->easy, CURLOPT_XFERINFODATA, r);
    curl_easy_setopt(r->easy, CURLOPT_USERAGENT, "foliot/" FOLIOT_VERSION);
    if (c->remote.authority[0] != 0) {
        curl_easy_setopt(r->easy, CURLOPT_CAINFO, c->remote.authority);
    }
    return rc < 0 ? rc : worker_open(r->c->loop, NULL, &r->worker);
}

int remote_open(struct controller *c, struct remote **ret)
{
    *ret = NULL;
    if (c->config.remote.url[0] == 0) {
        return 0;
    }
    struct remote *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return -ENOMEM;
    }
    r->c = c;
    const int rc = set_up(r);
    if (rc < 0) {
        remote_close(r);
        return rc;
    }
    *ret = r;
    return 0;
}

void remote_close(struct remote *r)
{
    if (r == NULL) {
        return;
    }
    r->stop = true; /* no request begins from now on */
    worker_close(r->worker);
    while (r->first != NULL) {
        free_block(take_first(r));
    }
    if (r->open != NULL) {
        free_block(r->open);
    }
    curl_slist_free_all(r->headers);
    curl_easy_cleanup(r->easy);
    free(r);
}

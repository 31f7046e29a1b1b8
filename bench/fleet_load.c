/* fleet_load.c: a fleet of agents in one process, for load. They join with a token, then report as agents do: own
 * certificates, own TLS connections, sealed reports, beats. Their reports are invented: delays around a base, paths through
 * leaves of LEAF_HOSTS NICs of a rail and SPINES spines.
 *
 * usage: fleet_load ADDRESS:PORT TOKEN HOSTS NICS PEERS PATHS REPORT_MS BEAT_MS SECONDS [FOLDER]
 * With FOLDER the hosts' certificates are kept there, so that a later run need not join. At the end (also by SIGTERM) the file
 * `acknowledged` has a line for each host: NAME STREAM LAST-NUMBER. With FOLIOT_LOAD_EVENTS set each report carries an event
 * with its number as text.
 *
 * FOLIOT_LOAD_SHEET is a folder with parts of a sheet, one file each (src/core/audit/part.h). Each host answers an audit with
 * them; @HOST@ in them becomes its name. A file PART.odd replaces that part for each fiftieth host, and a file PART.HOST for
 * this host. With a file absent.HOST this host can't be audited.
 *
 * With FOLIOT_LOAD_FAULTS="LEAF SPINE DOWN SLOW" there are three faults. The trunk between this leaf and this spine is dead in
 * both directions. The NIC DOWN has no carrier. Packets from its first peer to the NIC SLOW take 80 times as long. NICs are
 * given by their numbers in the fleet. The file `peer` of FOLDER has the number of that peer.
 *
 * Writes a line each second on stdout: "SECONDS joined N reporting N acknowledged N errors N
 * ack_ms_p50 X ack_ms_p99 X sent_bytes N". */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/prng.h"
#include "base/time.h"
#include "fleet_load.h"
#include "now.h"
#include "platform/http/client.h"
#include "platform/message/message.h"
#include "platform/tls/tls.h"

enum { TIMEOUT_MS = 30000, ANSWER_MAX = 64 << 20, SAMPLE_MAX = 1 << 20, JOINING_MAX = 64 };

struct load_world world;

_Noreturn void die(const char *what)
{
    fprintf(stderr, "fleet_load: %s\n", what);
    exit(1);
}

/* ---- joining ---- */

static void *decode(const struct http_result *r, const ProtobufCMessageDescriptor *d)
{
    const void *bytes = r->body;
    size_t size = r->size;
    if (size >= 4 && memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0) {
        if (message_unpack(bytes, size, ANSWER_MAX, &world.unpacked) < 0) {
            return NULL;
        }
        bytes = world.unpacked.bytes;
        size = world.unpacked.size;
    }
    message_arena_reset(&world.arena);
    return message_decode(&world.arena, d, bytes, size);
}

static void on_joined(void *context, const struct http_result *r)
{
    struct host *h = context;
    h->joining = false;
    world.joining--;
    const Foliot__V1__JoinReply *m =
        r->error == 0 && r->status == 200 ? decode(r, &foliot__v1__join_reply__descriptor) : NULL;
    if (m == NULL) {
        if (r->status != 429) {
            fprintf(stderr, "join of %s: %s %u %s\n", h->name, r->words, r->status,
                    (const char *)r->body);
        }
        world.errors++;
        return;
    }
    if (tls_write_file(h->certificate_path, m->certificate.data, m->certificate.len, 0600) < 0 ||
        (world.joined == 0 &&
         tls_write_file(world.authority, m->authority.data, m->authority.len, 0600) < 0)) {
        die("can't write certificates");
    }
    if (m->host == NULL || m->host->n_nics == 0) {
        die("a join without NICs");
    }
    h->first_nic = m->host->nics[0]->id;
    char text[16];
    const int n = snprintf(text, sizeof(text), "%u\n", h->first_nic);
    if (tls_write_file(h->nic_path, text, (size_t)n, 0600) < 0) {
        die("can't write");
    }
    h->members_cursor = 1;
    h->keys_version = m->keys_version;
    h->joined = true;
    world.joined++;
}

/* Continues an earlier run in the same folder. */
static void resume(struct host *h)
{
    char *text = NULL;
    if (access(h->certificate_path, R_OK) == 0 && tls_read_file(h->nic_path, &text) == 0) {
        h->first_nic = (uint32_t)strtoul(text, NULL, 10);
        h->stream =
            hash_u64((uint64_t)now_ns(CLOCK_MONOTONIC), h->index) | 1; /* a restarted agent */
        h->joined = true;
        h->members_cursor = 1;
        world.joined++;
    }
    free(text);
}

static void join(struct host *h)
{
    Foliot__V1__JoinRequest m = FOLIOT__V1__JOIN_REQUEST__INIT;
    Foliot__V1__Nic nics[16], *pointers[16];
    char *key = NULL, *request = NULL, names[16][16];
    uint8_t addresses[16][4];
    if (tls_key_new(TLS_KEY_ED25519, &key) < 0 || tls_request_new(key, h->name, &request) < 0 ||
        tls_write_file(h->key_path, key, strlen(key), 0600) < 0) {
        die("can't make a key");
    }
    for (uint32_t i = 0; i < world.nic_count; i++) {
        const uint32_t number = h->index * world.nic_count + i + 1;
        foliot__v1__nic__init(&nics[i]);
        snprintf(names[i], sizeof(names[i]), "nic%u", i);
        memcpy(addresses[i],
               (uint8_t[]){10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number},
               4);
        nics[i].name = names[i];
        nics[i].rail = i;
        nics[i].address4 = (ProtobufCBinaryData){4, addresses[i]};
        pointers[i] = &nics[i];
    }
    m.protocol = MESSAGE_PROTOCOL;
    m.token = (ProtobufCBinaryData){strlen(world.secret), (uint8_t *)world.secret};
    m.host = h->name;
    m.request = (ProtobufCBinaryData){strlen(request), (uint8_t *)request};
    m.nics = pointers;
    m.n_nics = world.nic_count;
    m.version = (char *)(uintptr_t) "load";
    if (message_encode(&m.base, &world.encoded) < 0) {
        die("out of memory");
    }
    const struct http_call call = {.url = "https://" TLS_SERVER_NAME "/agent/v1/join",
                                   .connect_to = world.address,
                                   .pin = world.pin,
                                   .body = world.encoded.bytes,
                                   .size = world.encoded.size,
                                   .answer_max = ANSWER_MAX,
                                   .timeout_ms = TIMEOUT_MS};
    if (http_client_call(h->client, &call, on_joined, h) == 0) {
        h->joining = true;
        world.joining++;
    }
    tls_wipe(key);
    free(request);
}

/* ---- reporting ---- */

static void on_reply(void *context, const struct http_result *r)
{
    struct host *h = context;
    const Foliot__V1__BatchReply *m =
        r->error == 0 && r->status == 200 ? decode(r, &foliot__v1__batch_reply__descriptor) : NULL;
    if (m == NULL) {
        world.errors++;
        h->beat_at =
            now_ns(CLOCK_MONOTONIC) + 250 * NS_PER_MS + (int64_t)(draw() % (uint64_t)NS_PER_S);
        return;
    }
    if (m->acknowledged > h->acknowledged) {
        h->acknowledged = m->acknowledged;
        world.acknowledged++;
        if (world.sample_count < SAMPLE_MAX) {
            world.samples[world.sample_count++] =
                (double)(now_ns(CLOCK_MONOTONIC) - h->sent_at) * 1e-6;
        }
    }
    h->table_sent = h->table_sent && !m->tables_wanted;
    if (m->look != NULL) { /* an agent answers it with a separate report */
        h->look_run = m->look->audit;
        h->look_number = m->look->number;
    }
    if (m->members != NULL) {
        h->fleet_version = m->members->next == 0 ? m->members->version : h->fleet_version;
        h->members_base = m->members->version;
        h->members_cursor = m->members->next;
    }
    h->keys_version = m->keys.len > 0 ? m->keys_version : h->keys_version;
    h->settings_version = m->settings != NULL ? m->settings->version : h->settings_version;
    h->beat_at = now_ns(CLOCK_MONOTONIC) + world.beat_ms * NS_PER_MS * 9 / 10 +
                 (int64_t)(draw() % (world.beat_ms * (uint64_t)NS_PER_MS / 5));
}

static void send_batch(struct host *h)
{
    Foliot__V1__Batch m = FOLIOT__V1__BATCH__INIT;
    Foliot__V1__SealedReport sealed = FOLIOT__V1__SEALED_REPORT__INIT, *pointer = &sealed;
    const bool waiting = h->number > h->acknowledged;
    m.protocol = MESSAGE_PROTOCOL;
    m.stream = h->stream;
    m.oldest = h->acknowledged + 1;
    m.boot = 1;
    m.now_mono = now_ns(CLOCK_MONOTONIC);
    m.fleet_version = h->fleet_version;
    m.members_cursor = h->members_cursor;
    m.members_base = h->members_cursor > 1 ? h->members_base : 0;
    m.keys_version = h->keys_version;
    m.settings_version = h->settings_version;
    m.version = (char *)(uintptr_t) "load";
    m.features = world.part_count > 0 && !is_absent(h) ? FOLIOT__V1__FEATURE__FEATURE_LOOK : 0;
    sealed.number = h->number;
    sealed.body = (ProtobufCBinaryData){h->waiting.size, h->waiting.bytes};
    m.reports = &pointer;
    m.n_reports = waiting;
    if (message_encode(&m.base, &world.encoded) < 0) {
        die("out of memory");
    }
    const struct http_call call = {.url = "https://" TLS_SERVER_NAME "/agent/v1/report",
                                   .connect_to = world.address,
                                   .authority = world.authority,
                                   .certificate = h->certificate_path,
                                   .key = h->key_path,
                                   .body = world.encoded.bytes,
                                   .size = world.encoded.size,
                                   .answer_max = ANSWER_MAX,
                                   .timeout_ms = TIMEOUT_MS};
    h->sent_at = m.now_mono;
    if (http_client_call(h->client, &call, on_reply, h) == 0) {
        world.sent_bytes += world.encoded.size;
    }
}

/* ---- time ---- */

static void turn(struct host *h, int64_t now)
{
    if (http_client_busy(h->client)) {
        return;
    }
    if (!h->joined) {
        if (!h->joining && world.joining < JOINING_MAX) {
            join(h);
        }
        return;
    }
    /* all hosts join first, because the fleet's list is large */
    if (world.joined < world.host_count) {
        return;
    }
    if (h->report_at == 0) { /* the hosts are spread over the interval */
        h->report_at = now + (int64_t)(draw() % (world.report_ms * (uint64_t)NS_PER_MS));
        h->beat_at = now + (int64_t)(draw() % (world.beat_ms * (uint64_t)NS_PER_MS));
        world.reporting++;
    }
    if (h->look_run != 0 && h->number == h->acknowledged) {
        make_report(h);
        send_batch(h);
    } else if (now >= h->report_at && h->number == h->acknowledged) {
        make_report(h);
        h->report_at += world.report_ms * NS_PER_MS;
        send_batch(h);
    } else if (now >= h->beat_at) {
        send_batch(h);
    }
}

static int on_tick(sd_event_source *source, uint64_t at, void *context)
{
    const int64_t now = now_ns(CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < world.host_count; i++) {
        turn(&world.hosts[i], now);
    }
    sd_event_source_set_time(source, at + 10000);
    sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int on_second(sd_event_source *source, uint64_t at, void *context)
{
    static int64_t begin;
    const int64_t now = now_ns(CLOCK_MONOTONIC);
    const size_t n = world.sample_count;
    begin = begin == 0 ? now : begin;
    qsort(world.samples, n, sizeof(double), compare);
    printf("%.0f joined %u reporting %u acknowledged %" PRIu64 " errors %" PRIu64
           " ack_ms_p50 %.2f ack_ms_p99 %.2f sent_bytes %" PRIu64 "\n",
           (double)(now - begin) * 1e-9, world.joined, world.reporting, world.acknowledged,
           world.errors, n > 0 ? world.samples[n / 2] : 0, n > 0 ? world.samples[n * 99 / 100] : 0,
           world.sent_bytes);
    fflush(stdout);
    world.sample_count = 0;
    sd_event_source_set_time(source, at + 1000000);
    sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

static void set_up(char **argv)
{
    const char *token = argv[2], *dot = strchr(token, '.');
    if (dot == NULL || strlen(dot) != 44 || dot - token != 47) {
        die("that is no join token");
    }
    world.address = argv[1];
    snprintf(world.secret, sizeof(world.secret), "%.43s", token + 4);
    snprintf(world.pin, sizeof(world.pin), "sha256//%.43s=", dot + 1);
    for (char *p = world.pin + 8; *p != 0; p++) {
        *p = *p == '-' ? '+' : *p == '_' ? '/' : *p;
    }
    uint32_t *const numbers[] = {&world.host_count, &world.nic_count, &world.peer_count,
                                 &world.path_count, &world.report_ms, &world.beat_ms};
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        *numbers[i] = (uint32_t)strtoul(argv[3 + i], NULL, 10);
        if (*numbers[i] == 0) {
            die("numbers are above 0");
        }
    }
    world.keep = argv[10] != NULL;
    world.events = getenv("FOLIOT_LOAD_EVENTS") != NULL;
    if (getenv("FOLIOT_LOAD_SHEET") != NULL) {
        read_parts(getenv("FOLIOT_LOAD_SHEET"));
    }
    const char *faults = getenv("FOLIOT_LOAD_FAULTS");
    world.faults.are = faults != NULL;
    if (faults != NULL && sscanf(faults, "%u %u %u %u", &world.faults.leaf, &world.faults.spine,
                                 &world.faults.down, &world.faults.slow) != 4) {
        die("FOLIOT_LOAD_FAULTS is four numbers");
    }
    snprintf(world.folder, sizeof(world.folder), "%s",
             world.keep ? argv[10] : "/tmp/foliot-load-XXXXXX");
    if ((!world.keep && mkdtemp(world.folder) == NULL) || world.nic_count > 16) {
        die("no folder, or more than 16 NICs");
    }
    snprintf(world.authority, sizeof(world.authority), "%s/authority.pem", world.folder);
    if (world.keep && faults != NULL) {
        char path[160], text[16];
        snprintf(path, sizeof(path), "%s/peer", world.folder);
        const int size = snprintf(text, sizeof(text), "%u\n", peer_of(world.faults.slow, 0));
        if (tls_write_file(path, text, (size_t)size, 0600) < 0) {
            die("can't write");
        }
    }
    const size_t n = (size_t)world.nic_count * world.peer_count * world.path_count;
    world.local = calloc(n, sizeof(uint32_t));
    world.peer = calloc(n, sizeof(uint32_t));
    world.port = calloc(n, sizeof(uint32_t));
    world.signature = calloc(n, sizeof(uint64_t));
    world.hops = calloc(n, sizeof(uint32_t));
    world.router = calloc(3 * n, sizeof(uint32_t));
    world.router_count = SPINES + (world.host_count / LEAF_HOSTS + 1) * world.nic_count;
    world.router_name = calloc(world.router_count, sizeof(*world.router_name));
    for (uint32_t i = 0; world.router_name != NULL && i < world.router_count; i++) {
        if (asprintf(&world.router_name[i], "%s%u", i < SPINES ? "spine" : "leaf",
                     i < SPINES ? i : i - SPINES) < 0) {
            die("out of memory");
        }
    }
    world.state = calloc(n, sizeof(uint32_t));
    world.p50 = calloc(n, sizeof(int32_t));
    world.p99 = calloc(n, sizeof(int32_t));
    world.samples = calloc(SAMPLE_MAX, sizeof(double));
    world.hosts = calloc(world.host_count, sizeof(*world.hosts));
    world.prng = 42;
    if (world.hosts == NULL || world.samples == NULL || world.p99 == NULL || world.p50 == NULL ||
        world.state == NULL || world.hops == NULL || world.router == NULL ||
        world.router_name == NULL || message_arena_init(&world.arena, 64 << 20) < 0 ||
        sd_event_default(&world.loop) < 0) {
        die("out of memory");
    }
    for (uint32_t i = 0; i < world.host_count; i++) {
        struct host *h = &world.hosts[i];
        h->index = i;
        h->stream = hash_u64(i, 9) | 1;
        snprintf(h->name, sizeof(h->name), "load%u", i);
        snprintf(h->key_path, sizeof(h->key_path), "%s/%u.key", world.folder, i);
        snprintf(h->certificate_path, sizeof(h->certificate_path), "%s/%u.pem", world.folder, i);
        snprintf(h->nic_path, sizeof(h->nic_path), "%s/%u.nic", world.folder, i);
        if (http_client_open(world.loop, &h->client) < 0) {
            die("out of memory");
        }
        resume(h);
    }
}

/* Writes the reports that must not be lost. */
static void write_acknowledged(void)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/acknowledged", world.folder);
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        die("can't write");
    }
    for (uint32_t i = 0; i < world.host_count; i++) {
        const struct host *h = &world.hosts[i];
        fprintf(file, "%s %" PRIu64 " %" PRIu64 "\n", h->name, h->stream, h->acknowledged);
    }
    if (fclose(file) != 0) {
        die("can't write");
    }
}

static int on_term(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
    *(bool *)context = true;
    return 0;
}

int main(int argc, char **argv)
{
    bool stopped = false;
    sigset_t term;
    uint64_t now = 0;
    struct rlimit files = {65536, 65536};
    if (argc != 10 && argc != 11) {
        die("usage: fleet_load ADDRESS:PORT TOKEN HOSTS NICS PEERS PATHS REPORT_MS BEAT_MS "
            "SECONDS [FOLDER]");
    }
    (void)setrlimit(RLIMIT_NOFILE, &files);
    set_up(argv);
    sd_event_now(world.loop, CLOCK_MONOTONIC, &now);
    const uint64_t end = now + strtoull(argv[9], NULL, 10) * 1000000;
    if (sd_event_add_time(world.loop, NULL, CLOCK_MONOTONIC, now, 1, on_tick, NULL) < 0 ||
        sd_event_add_time(world.loop, NULL, CLOCK_MONOTONIC, now, 1, on_second, NULL) < 0) {
        die("no timers");
    }
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    if (sd_event_add_signal(world.loop, NULL, SIGTERM, on_term, &stopped) < 0) {
        die("no signals");
    }
    while (!stopped && now < end && sd_event_run(world.loop, 100000) >= 0) {
        sd_event_now(world.loop, CLOCK_MONOTONIC, &now);
    }
    if (world.keep) {
        write_acknowledged();
        return 0;
    }
    for (uint32_t i = 0; i < world.host_count; i++) {
        unlink(world.hosts[i].key_path);
        unlink(world.hosts[i].certificate_path);
        unlink(world.hosts[i].nic_path);
    }
    unlink(world.authority);
    rmdir(world.folder);
    return 0;
}

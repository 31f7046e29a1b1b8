/* members.c: the cost of one change of members: the controller's code and an agent's code in one process, without the
 * connections between them.
 *
 *   members.join_bytes   the extra length of the answer to one beat
 *   members.agent_ms     processor time of an agent of NICS NICs: decode, check, keep, apply, pass to the node
 *   members.rate         the controller's processor time of a join with its commit: at the full size divided by that at 500 hosts
 *   members.hostile      joins and reports with every field at and beyond its limits: lists that an agent refuses, or can't
 *                        start with
 *
 * usage: members [HOSTS NICS [TRIALS]] */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/prng.h"
#include "now.h"
#include "report.h"
#include "service/agent/fleet_file.h"
#include "service/agent/members.h"
#include "service/agent/uplink_internal.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/members.h"
#include "service/controller/fleet/quota.h"
#include "service/controller/fleet/ways.h"
#include "service/controller/trust/trust.h"

enum { SMALL = 500, JOINS = 200, ANSWER = 64 << 20 };

static struct controller *controller;
static struct prng prng;
static char folder[64], agent_yaml[128], list_path[128];
static uint32_t named;
static struct message_arena arena;
static struct message_buffer unpacked, encoded;

static _Noreturn void die(const char *what)
{
    printf("members: %s\n", what); /* stderr has the controller's log */
    exit(1);
}

/* ---- the controller ---- */

static void begin_controller(void)
{
    char words[256];
    snprintf(folder, sizeof(folder), "/tmp/foliot-members-bench-XXXXXX");
    if (mkdtemp(folder) == NULL || setenv("FOLIOT_CONTROLLER_DIR", folder, 1) < 0) {
        die("no folder");
    }
    const struct controller_options options = {CONTROLLER_CONFIG_DEFAULT, false};
    controller = calloc(1, sizeof(*controller));
    if (controller == NULL || authority_create(folder, words) < 0 ||
        controller_open(controller, &options, false) < 0 || ways_open(controller) < 0) {
        die("the controller can't be opened");
    }
}

/* As ingest_join() does, without certificates. */
static int join(const char *name, Foliot__V1__Nic *const *nics, size_t count, const uint8_t *key,
                char words[MEMBER_WORDS_SIZE])
{
    struct tls_certificate certificate = {.not_after = 1};
    struct fleet_host *h = NULL;
    for (size_t i = 0; i < TLS_PIN_SIZE; i++) {
        certificate.pin[i] = (uint8_t)prng_u64(&prng);
    }
    const struct fleet_join j = {.name = name,
                                 .version = "bench",
                                 .certificate = &certificate,
                                 .nics = nics,
                                 .nic_count = count,
                                 .pair_key = key};
    return fleet_add(controller, &j, &h, words);
}

static void join_plain(uint32_t nic_count)
{
    Foliot__V1__Nic nics[HOST_NIC_MAX], *pointers[HOST_NIC_MAX];
    char names[HOST_NIC_MAX][16], host[32], leaf[32], words[MEMBER_WORDS_SIZE];
    uint8_t addresses[HOST_NIC_MAX][4], key[PAIR_PUBLIC_SIZE];
    const uint32_t number = named++;
    snprintf(host, sizeof(host), "gpu-%05u.pod%u", number, number / 64);
    for (uint32_t i = 0; i < nic_count; i++) {
        const uint32_t id = number * nic_count + i + 1;
        foliot__v1__nic__init(&nics[i]);
        snprintf(names[i], sizeof(names[i]), "eth%u", i);
        snprintf(leaf, sizeof(leaf), "leaf%u", number / 64 * nic_count % 4000);
        memcpy(addresses[i], (uint8_t[]){10, (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id},
               4);
        nics[i].name = names[i];
        nics[i].leaf = leaf;
        nics[i].rail = i;
        nics[i].speed_mbps = 400000;
        nics[i].address4 = (ProtobufCBinaryData){4, addresses[i]};
        pointers[i] = &nics[i];
    }
    for (size_t i = 0; i < sizeof(key); i++) {
        key[i] = (uint8_t)prng_u64(&prng);
    }
    if (join(host, pointers, nic_count, key, words) < 0) {
        die(words);
    }
}

/* ---- messages to the agent ---- */

static const Foliot__V1__BatchReply *told(const struct message_buffer *packed)
{
    message_arena_reset(&arena);
    const Foliot__V1__BatchReply *m =
        message_unpack(packed->bytes, packed->size, ANSWER, &unpacked) < 0
            ? NULL
            : message_decode(&arena, &foliot__v1__batch_reply__descriptor, unpacked.bytes,
                             unpacked.size);
    if (m == NULL || (m->members == NULL && m->fleet == NULL)) {
        die("what the controller tells can't be read");
    }
    return m;
}

static const struct message_buffer *ask(const struct agent_config *c, uint32_t cursor,
                                        uint64_t base)
{
    const struct members_wish wish = {.protocol = 2,
                                      .version = c->fleet_version,
                                      .digest = c->members_digest,
                                      .cursor = cursor,
                                      .base = base};
    return members_for(controller, &wish);
}

static struct agent_config *empty_list(void)
{
    struct agent_config *c = calloc(1, sizeof(*c));
    if (c == NULL || members_room(c) < 0) {
        die("out of memory");
    }
    return c;
}

/* By pages. */
static struct agent_config *whole_list(void)
{
    struct agent_config *c = empty_list();
    uint64_t base = 0;
    for (uint32_t cursor = 1; cursor != 0;) {
        const Foliot__V1__Members *m = told(ask(c, cursor, base))->members;
        struct members_plan plan;
        char words[MEMBERS_WORDS];
        if (members_plan(c, m, HOST_NONE, &plan, words) < 0) {
            die(words);
        }
        members_apply(c, m, &plan, true);
        members_plan_done(&plan);
        base = m->version;
        cursor = m->next;
    }
    return c;
}

static void write_config(const char *host)
{
    FILE *file = fopen(agent_yaml, "we");
    if (file == NULL) {
        die("the agent's configuration can't be written");
    }
    fprintf(file, "host: \"%s\"\nkey_file: /dev/null\nfleet_file: %s/fleet.yaml\n", host, folder);
    fclose(file);
}

static struct agent_config *start_config(void)
{
    struct agent_config *c = NULL;
    struct config_error error = {""};
    if (agent_config_load(agent_yaml, folder, NULL, &c, &error) < 0) {
        fprintf(stderr, "members: %s\n", error.text);
        return NULL;
    }
    return c;
}

/* An agent of the first host, without its sockets, clocks and connections. */
static void begin_agent(struct agent *a, struct uplink *u)
{
    struct agent_config *list = whole_list();
    uint8_t secret[PAIR_SECRET_SIZE] = {7};
    write_config(list->host_names[0]);
    if (members_save(list, list_path) < 0 || (a->config = start_config()) == NULL) {
        die("the agent can't start");
    }
    agent_config_free(list);
    a->now = (struct mono){NS_PER_S};
    a->keys.count = 1;
    a->node_config = (struct node_config){.host = a->config->host_id,
                                          .nic_count = a->config->nic_count,
                                          .seed = 1,
                                          .fleet = agent_config_fleet(a->config)};
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        a->node_config.nics[i] = (struct node_nic){
            .nic = a->config->peers[a->config->nics[i].peer].nic, .stamps = STAMP_SOFTWARE};
    }
    if (node_new(&a->node, &a->node_config, a->now) < 0 || pair_table_new(secret, &a->pairs) < 0) {
        die("no node");
    }
    agent_pair_follow(a);
    u->agent = a;
    a->uplink = u;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- rows ---- */

static void commit(void)
{
    if (store_commit(controller->store) < 0) {
        die("the store can't be written");
    }
}

/* Joins, each committed: processor ms of one join. */
static double joins_ms(uint32_t nics)
{
    double took[JOINS];
    for (uint32_t i = 0; i < JOINS; i++) {
        const double begin = now_s(CLOCK_PROCESS_CPUTIME_ID);
        join_plain(nics);
        commit();
        took[i] = (now_s(CLOCK_PROCESS_CPUTIME_ID) - begin) * 1000;
    }
    qsort(took, JOINS, sizeof(took[0]), compare);
    return took[JOINS / 2];
}

/* The extra length of the answer to a beat. The answer is then packed, and has a header for that. */
static double longer_by(const struct message_buffer *more)
{
    static const char field[] = "Content-Encoding: zstd\r\n";
    uint8_t token[32] = {1};
    Foliot__V1__BatchReply base = FOLIOT__V1__BATCH_REPLY__INIT;
    struct message_buffer plain = {0}, packed = {0};
    base.protocol = 2;
    base.acknowledged = 12345;
    base.controller = (ProtobufCBinaryData){sizeof(token), token};
    if (message_encode(&base.base, &plain) < 0 ||
        message_pack(plain.bytes, plain.size, &packed) < 0) {
        die("out of memory");
    }
    const double bytes =
        (double)(packed.size + more->size + sizeof(field) - 1) - (double)plain.size;
    message_buffer_done(&plain);
    message_buffer_done(&packed);
    return bytes;
}

static void one_change(struct report *report, uint32_t nics)
{
    static struct agent agent;
    static struct uplink uplink;
    static double took[2 * JOINS], bytes[JOINS];
    int count = 0;
    begin_agent(&agent, &uplink);
    const size_t used = arena_size();
    for (int i = 0; i < 2 * JOINS; i++) { /* every second change is a removal */
        const bool removal = i % 2 == 1;
        if (!removal) {
            join_plain(nics);
        } else if (fleet_remove(controller, controller->hosts[100 + i]) < 0) {
            die("a host can't be removed");
        }
        const struct message_buffer *packed = ask(agent.config, 0, 0);
        if (!removal) {
            bytes[count++] = longer_by(packed);
        }
        const double begin = now_s(CLOCK_PROCESS_CPUTIME_ID);
        uplink_take_members(&uplink, told(packed)->members);
        took[i] = (now_s(CLOCK_PROCESS_CPUTIME_ID) - begin) * 1000;
        if (agent.config->fleet_version != controller->fleet_version) {
            die(uplink.refused.why);
        }
    }
    commit();
    char note[160];
    double joins[JOINS], removals[JOINS];
    for (int i = 0; i < JOINS; i++) {
        joins[i] = took[2 * i];
        removals[i] = took[2 * i + 1];
    }
    qsort(joins, JOINS, sizeof(joins[0]), compare);
    qsort(removals, JOINS, sizeof(removals[0]), compare);
    qsort(bytes, JOINS, sizeof(bytes[0]), compare);
    snprintf(note, sizeof(note), "%u NICs a host; the largest of %d answers %.0f", nics, JOINS,
             bytes[JOINS - 1]);
    report_one(report, "members.join_bytes", bytes[JOINS / 2], "bytes", 400, 150, REPORT_LOWER,
               note);
    snprintf(note, sizeof(note),
             "p99; fleet of %u NICs; median %.2f; removals: median %.2f, p99 %.2f; the arena grew "
             "by %zu bytes",
             agent.config->peer_count, joins[JOINS / 2], removals[JOINS / 2],
             removals[JOINS * 99 / 100], arena_size() - used);
    report_one(report, "members.agent_ms", joins[JOINS * 99 / 100], "ms", 5, 1, REPORT_LOWER, note);
    agent_config_free(agent.config);
    pair_table_free(agent.pairs);
    node_free(agent.node);
}

/* ---- hostile ---- */

static uint32_t edge32(void)
{
    static const uint32_t ends[] = {0,       1,         2,         15,    16,    17,
                                    4095,    4096,      65534,     65535, 65536, (1 << 20) - 1,
                                    1 << 20, INT32_MAX, UINT32_MAX};
    return prng_below(&prng, 3) == 0 ? ends[prng_below(&prng, ARRAY_COUNT(ends))]
                                     : (uint32_t)prng_below(&prng, 40);
}

/* Mostly good text, so that much is accepted. Else it is too long, empty, or has bytes that no name may have. */
static void edge_text(char *text, size_t longest)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789-.",
                      odd[] = "\"'\\\n\r\t {}[]:,#%\x7f\xff\xc3\xa4@+_/ZA";
    static const size_t sizes[] = {1, 2, 14, 15, 16, 62, 63, 64, 65, 254, 255, 256, 300};
    size_t n = prng_below(&prng, 4) == 0 ? sizes[prng_below(&prng, ARRAY_COUNT(sizes))]
                                         : 1 + prng_below(&prng, 12);
    const bool bad = prng_below(&prng, 12) == 0;
    n = prng_below(&prng, 60) == 0 ? 0 : n < longest ? n : longest - 1;
    for (size_t i = 0; i < n; i++) {
        text[i] = bad && prng_below(&prng, 4) == 0 ? odd[prng_below(&prng, sizeof(odd) - 1)]
                                                   : good[prng_below(&prng, sizeof(good) - 1)];
    }
    text[n] = 0;
}

static ProtobufCBinaryData edge_bytes(uint8_t *bytes, size_t usual)
{
    static const size_t sizes[] = {0, 1, 3, 4, 5, 15, 16, 17, 31, 32, 33, 64};
    const size_t n =
        prng_below(&prng, 8) == 0 ? sizes[prng_below(&prng, ARRAY_COUNT(sizes))] : usual;
    const uint64_t kind = prng_below(&prng, 12);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = kind == 0 ? 0 : kind == 1 ? 0xff : (uint8_t)prng_u64(&prng);
    }
    return (ProtobufCBinaryData){n, bytes};
}

/* Encodes and decodes a message within the limits, as if it had arrived. */
static const void *arrived(const ProtobufCMessage *m)
{
    char words[160];
    if (message_encode(m, &encoded) < 0) {
        die("out of memory");
    }
    message_arena_reset(&controller->batch_arena);
    const ProtobufCMessage *read =
        message_decode(&controller->batch_arena, m->descriptor, encoded.bytes, encoded.size);
    return read != NULL && quota_within(read, words) ? read : NULL;
}

static bool hostile_join(void)
{
    static char names[20][320], leaves[20][320], host[320];
    static uint8_t four[20][64], six[20][64], key[64];
    static Foliot__V1__Nic nics[20], *pointers[20];
    Foliot__V1__JoinRequest m = FOLIOT__V1__JOIN_REQUEST__INIT;
    char words[MEMBER_WORDS_SIZE];
    const uint32_t count =
        prng_below(&prng, 10) == 0 ? edge32() % 20 : 1 + (uint32_t)prng_below(&prng, 3);
    edge_text(host, sizeof(host));
    for (uint32_t i = 0; i < count; i++) {
        Foliot__V1__Nic *n = pointers[i] = &nics[i];
        foliot__v1__nic__init(n);
        edge_text(names[i], sizeof(names[i]));
        edge_text(leaves[i], sizeof(leaves[i]));
        n->id = edge32();
        n->name = names[i];
        n->rail = edge32();
        n->leaf = prng_below(&prng, 3) == 0 ? (char *)(uintptr_t) "leaf1" : leaves[i];
        n->address4 = edge_bytes(four[i], 4);
        n->address6 =
            prng_below(&prng, 4) == 0 ? edge_bytes(six[i], 16) : (ProtobufCBinaryData){0, NULL};
        n->speed_mbps = edge32();
    }
    m.protocol = 2;
    m.host = host;
    m.nics = pointers;
    m.n_nics = count;
    m.pair_key = edge_bytes(key, 32);
    const Foliot__V1__JoinRequest *read = arrived(&m.base);
    return read != NULL && tls_name_good(read->host) &&
           join(read->host, read->nics, read->n_nics,
                read->pair_key.len == PAIR_PUBLIC_SIZE ? read->pair_key.data : NULL, words) == 0;
}

/* Of a report only the key reaches other hosts. */
static void hostile_report(void)
{
    static uint8_t key[64];
    Foliot__V1__Batch m = FOLIOT__V1__BATCH__INIT;
    m.protocol = edge32();
    m.fleet_version = m.members_base = prng_u64(&prng) >> prng_below(&prng, 64);
    m.members_cursor = edge32();
    m.members_digest = prng_u64(&prng);
    m.pair_key = edge_bytes(key, 32);
    const Foliot__V1__Batch *read = arrived(&m.base);
    struct fleet_host *h = controller->hosts[prng_below(&prng, controller->host_count)];
    if (read == NULL || !h->member) {
        return;
    }
    h->pair_key_changes = 0; /* as if an hour had passed */
    fleet_pair_key(controller, h, read->pair_key.data, read->pair_key.len);
    const struct members_wish wish = {.protocol = read->protocol % 3,
                                      .version = read->fleet_version,
                                      .digest = read->members_digest,
                                      .cursor = read->members_cursor,
                                      .base = read->members_base};
    if (prng_below(&prng, 50) == 0) { /* an arbitrary request */
        (void)members_for(controller, &wish);
    }
}

static bool follows(struct agent_config *c)
{
    const struct message_buffer *packed = ask(c, 0, 0);
    struct members_plan plan;
    char words[MEMBERS_WORDS];
    if (packed == NULL) {
        return c->fleet_version == controller->fleet_version;
    }
    const Foliot__V1__Members *m = told(packed)->members;
    const int r = members_plan(c, m, (struct host_id){0}, &plan, words);
    if (r < 0) {
        fprintf(stderr, "members: refused: %s\n", words);
        return false;
    }
    members_apply(c, m, &plan, true);
    members_plan_done(&plan);
    return members_digest(c) == c->members_digest;
}

/* Starts from its own file; and, as an older agent, from YAML with the whole list of protocol 1. */
static bool starts(struct agent_config *list)
{
    char yaml[128], words[200];
    struct message_buffer copy = {0};
    const struct members_wish wish = {.protocol = 1, .version = 1};
    unlink(list_path);
    const struct message_buffer *packed = members_for(controller, &wish);
    Foliot__V1__Fleet *fleet = packed != NULL ? told(packed)->fleet : NULL;
    snprintf(yaml, sizeof(yaml), "%s/fleet.yaml", folder);
    if (fleet == NULL || fleet_file_write(yaml, fleet, words) < 0) {
        return false;
    }
    struct agent_config *old = start_config();
    const bool good = old != NULL && old->peer_count == list->peer_count &&
                      old->members_digest == list->members_digest;
    if (!good && old != NULL) {
        fprintf(stderr, "members: from YAML: %u NICs, not %u\n", old->peer_count, list->peer_count);
    }
    agent_config_free(old);
    unlink(yaml);
    if (members_save(list, list_path) < 0) {
        die("the list can't be saved");
    }
    struct agent_config *new = start_config();
    const bool also = new != NULL &&new->members_digest == list->members_digest;
    agent_config_free(new);
    message_buffer_done(&copy);
    return good && also;
}

static void hostile(struct report *report, uint32_t trials)
{
    uint32_t bad = 0, joined = 0;
    join_plain(2); /* the agent's host */
    commit();
    struct agent_config *list = whole_list();
    write_config(list->host_names[0]);
    for (uint32_t i = 1; i <= trials; i++) {
        joined += hostile_join();
        hostile_report();
        if (prng_below(&prng, 3) == 0) {
            struct fleet_host *h = controller->hosts[prng_below(&prng, controller->host_count)];
            if (h->index > 0 && h->member && fleet_remove(controller, h) < 0) {
                die("a host can't be removed");
            }
        }
        if (i % 16 == 0) {
            bad += !follows(list);
        }
        if (i % 5000 == 0) {
            commit();
            bad += !follows(list) || !starts(list);
        }
    }
    char note[160];
    snprintf(note, sizeof(note),
             "%u joins and as many reports; %u were let in, %u are members of %u NICs at the end",
             trials, joined, controller->member_count, list->peer_count);
    report_one(report, "members.hostile", bad, "lists", 0, 0, REPORT_LOWER, note);
    agent_config_free(list);
}

static void clean_up(void)
{
    char command[128];
    controller_close(controller);
    free(controller);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0) {
        fprintf(stderr, "members: %s is left\n", folder);
    }
}

int main(int argc, char **argv)
{
    static struct report report;
    const uint32_t hosts = argc > 1 ? (uint32_t)atoi(argv[1]) : 12500,
                   nics = argc > 2 ? (uint32_t)atoi(argv[2]) : 8,
                   trials = argc > 3 ? (uint32_t)atoi(argv[3]) : 100000;
    report_init(&report, "members", argc, argv);
    prng_init(&prng, 1);
    if (message_arena_init(&arena, 512 << 20) < 0) {
        die("out of memory");
    }
    begin_controller();
    snprintf(agent_yaml, sizeof(agent_yaml), "%s/agent.yaml", folder);
    snprintf(list_path, sizeof(list_path), "%s/fleet.yaml" MEMBERS_SUFFIX, folder);
    hostile(&report, trials);
    clean_up();
    begin_controller();
    snprintf(agent_yaml, sizeof(agent_yaml), "%s/agent.yaml", folder);
    snprintf(list_path, sizeof(list_path), "%s/fleet.yaml" MEMBERS_SUFFIX, folder);
    named = 0;
    while (controller->member_count < SMALL) {
        join_plain(nics);
    }
    commit();
    const double small = joins_ms(nics);
    while (controller->member_count < hosts - JOINS) {
        join_plain(nics);
    }
    commit();
    const double large = joins_ms(nics);
    char note[160];
    snprintf(note, sizeof(note),
             "median of %d: %.3f ms of the processor at %u hosts, %.3f ms at %u; without TLS and "
             "certificate",
             JOINS, large, hosts, small, (unsigned)SMALL);
    report_one(&report, "members.rate", large / small, "", 1.5, 1.1, REPORT_LOWER, note);
    if (arena_open() < 0) {
        die("no arena");
    }
    one_change(&report, nics);
    clean_up();
    return report_finish(&report) < 0;
}

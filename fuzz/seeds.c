/* seeds.c: writes the seeds of the binary layouts into FOLDER/<target>/. They are one good input of each kind. A fuzzer starts
 * there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/record/recorder.h"
#include "wire/clock_page.h"
#include "wire/handle.h"
#include "wire/lane.h"
#include "wire/lane_nics.h"
#include "wire/lane_qp.h"
#include "wire/mesh_page.h"
#include "wire/probe.h"

static void save(const char *folder, const char *target, const char *name, const void *data,
                 size_t size)
{
    char path[1024];

    snprintf(path, sizeof(path), "%s/%s", folder, target);
    (void)mkdir(path, 0755);
    snprintf(path, sizeof(path), "%s/%s/%s", folder, target, name);
    FILE *f = fopen(path, "wbe");
    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

static void probes(const char *folder)
{
    static const char *const names[] = {"",       "pair",   "single",  "burst",    "discovery",
                                        "query",  "answer", "measure", "measured", "round",
                                        "digest", "port",   "ud"};
    const struct probe_key key = {.id = 1, .bytes = "fuzz fuzz fuzz "};
    uint8_t bytes[PROBE_SIZE];

    for (int type = PROBE_PAIR; type <= PROBE_UD; type++) {
        struct probe probe = {
            .version = PROBE_VERSION,
            .version_lowest = 1,
            .type = (enum probe_type)type,
            .state = PROBE_TRACK,
            .settled = true,
            .src = {1},
            .dst = {2},
            .own = {.present = true, .seq = 3, .first = {1000000}, .gap_ns = 10000},
            .heard = {.present = true, .seq = 4, .first = {900000}, .gap_ns = 10010},
            .query = {.subject = {7}, .number = 1},
            .map = {.map = {.r = 1000000, .x = 1790000000000000000, .y = 5}},
            .anchor.nic = {3},
            .seq = 5,
            .received = 3};
        if (type >= PROBE_MEASURE) {
            probe.measure =
                (struct probe_measure){.run = 8, .packet = 9, .bound_ns = PROBE_BOUND_NONE};
        }
        if (type == PROBE_DIGEST) {
            const struct probe_observation seen = {
                .to = {2},
                .path = 1,
                .lost = 3,
                .age_ms = 600,
                .hop_count = 3,
                .hops = {{5, PROBE_HOP_LEAF}, {6, PROBE_HOP_SPINE}, {7, PROBE_HOP_LEAF}}};
            probe.digest = (struct probe_digest){.made = {1790000000000000000}, .from = {1}};
            if (!probe_digest_put(&probe.digest, &seen) ||
                !probe_digest_put(&probe.digest, &seen)) {
                exit(1);
            }
        }
        if (type == PROBE_PORT) {
            probe.port = (struct probe_port){.gid = {1, 2, 3},
                                             .qp = 0x1234,
                                             .key = 0x5678,
                                             .global = true,
                                             .stamps = true,
                                             .echo = {77, 2}};
        }
        if (type == PROBE_UD) {
            probe.ud = (struct probe_ud){.exchange = 7,
                                         .from_key = 5,
                                         .to_key = 0x7fffffff,
                                         .step = PROBE_UD_ANSWER,
                                         .way = PROBE_WAY_JOB,
                                         .earliest = {1790000000000000000},
                                         .width_ns = 300,
                                         .bound_ns = 900};
        }
        if (type == PROBE_MEASURED || type == PROBE_ROUND) {
            probe.measure.heard.ns = 1790000000000000000;
            probe.measure.bound_ns = 300;
            probe.measure.count = 10;
        }
        probe_encode(bytes, &probe, &key);
        save(folder, "probe", names[type], bytes, sizeof(bytes));
        probe.version = 1;
        probe_encode(bytes, &probe, &key);
        if (type == PROBE_PAIR) {
            save(folder, "probe", "pair-version-1", bytes, sizeof(bytes));
            save(folder, "probe", "short", bytes, 143);
        }
    }
}

static void pages(const char *folder)
{
    static struct clock_page_memory clock;
    const struct linear_map map = {.r = 1000, .x = 1790000000000000000, .y = 5};
    const struct clock_page page = {
        .terms = {.status = CLOCK_PAGE_SYNCED,
                  .written = 1000,
                  .void_after = INT64_MAX,
                  .line_from = 2000,
                  .map_from = 3000,
                  .prior = map,
                  .line = map,
                  .map = map,
                  .h_ns = 5000,
                  .rate_limit = 2e-6,
                  .rate_drift = 1e-7,
                  .p00 = 1,
                  .guard = 1000,
                  .guard_ns = 500,
                  .guard_rate = 6e-5},
        .nic_count = 1,
        .nics = {{.name = "eth0", .status = CLOCK_PAGE_SYNCED, .map = map, .h_ns = 1}}};
    const uint32_t capacity = 4;
    struct mesh_page_memory *mesh = aligned_alloc(64, mesh_page_size(capacity));

    clock_page_init(&clock, 2);
    clock_page_write(&clock, &page);
    save(folder, "clock_page", "synced", &clock, sizeof(clock));
    save(folder, "clock_page", "short", &clock, 400);
    ASSERT(mesh != NULL);
    mesh_page_init(mesh, capacity, 2);
    (void)mesh_page_write(mesh, 0,
                          &(struct mesh_page_entry){.local = {1},
                                                    .peer = {2},
                                                    .source_port = 7640,
                                                    .state = MESH_PAGE_OK,
                                                    .direction = MESH_PAGE_IN});
    mesh_page_write_header(mesh, &(struct mesh_page_header){.count = 1});
    save(folder, "mesh_page", "one", mesh, mesh_page_size(capacity));
    save(folder, "mesh_page", "cut", mesh, 100);
    free(mesh);
}

static void recording(const char *folder)
{
    const struct mesh_peer peers[2] = {{.nic = {1}, .host = {0}}, {.nic = {2}, .host = {1}}};
    const struct node_config config = {
        .host = {0},
        .nic_count = 1,
        .nics = {{.nic = {1}, .stamps = STAMP_SOFTWARE}},
        .fleet = {.peers = (struct mesh_peer *)peers, .peer_count = 2},
        .no_discovery = 1};
    struct node_receive receive = {.stamps = STAMP_SOFTWARE,
                                   .source_port = 7640,
                                   .rx = {NS_PER_S + 1},
                                   .probe = {.version = PROBE_VERSION,
                                             .type = PROBE_SINGLE,
                                             .src = {2},
                                             .dst = {1},
                                             .anchor.nic = NIC_NONE}};
    struct mono now = {NS_PER_S};
    struct recorder *recorder;
    struct recording saved;
    static uint8_t bytes[65536];
    char place[] = "/tmp/foliot-seeds-XXXXXX";

    if (mkdtemp(place) == NULL || recorder_open(&recorder, place, 1 << 20) < 0) {
        perror(place);
        exit(1);
    }
    recorder_start(recorder, &config, now);
    for (int i = 0; i < 20; i++) {
        now.ns += 5 * NS_PER_MS;
        receive.probe.seq++;
        receive.rx.ns = now.ns;
        recorder_append(recorder, NODE_EVENT_RECEIVE, now, &receive);
        recorder_append(recorder, NODE_EVENT_TICK, now, NULL);
    }
    if (recorder_save(recorder, &saved) < 0) {
        exit(1);
    }
    const ssize_t size = read(saved.fd, bytes, sizeof(bytes));
    save(folder, "record", "twenty", bytes, (size_t)(size > 0 ? size : 0));
    close(saved.fd);
    recorder_close(recorder);
    rmdir(place);
}

static void lanes(const char *folder)
{
    static const uint8_t key[LANE_KEY_SIZE] = "fuzz fuzz fuzz ", nonce[LANE_NONCE_SIZE] = "nonce";
    const struct lane_hello hello = {.newest = LANE_VERSION,
                                     .lowest = 1,
                                     .lanes = 4,
                                     .epoch = 1,
                                     .host = "node1",
                                     .nic = "eth0"};
    const struct lane_chunk chunk = {.epoch = 1,
                                     .grid = 13,
                                     .offset = 8192,
                                     .length = 100,
                                     .size = 8292,
                                     .flags = LANE_CHUNK_PAYLOAD_CRC};
    const struct lane_report report = {.posted = 1, .lane_count = 1, .lanes = {{.epoch = 1}}};
    const struct lane_post post = {.count = 2, .index = 1, .keys = {1, {7}, {9}}, .size = 100};
    const struct lane_open open = {.group_max = 1};
    const struct lane_ping ping = {.epoch = 1, .sequence = 2}, pong = {.answer = true, .epoch = 1};
    const struct lane_close close = {.messages = 5, .placed = 5};
    const struct lane_refusal no = {.newest = 1, .lowest = 1, .reason = LANE_NO_VERSION};
    const struct lane_nics nics = {
        .port = 4791,
        .count = 2,
        .down = 2,
        .small_slots = LANE_SMALL_SLOTS,
        .large_slots = LANE_LARGE_SLOTS,
        .large_shift = LANE_CHUNK_SHIFT_MAX,
        .nics = {{.address = {[15] = 1}, .name = "eth0"}, {.address = {[15] = 2}, .name = "eth1"}}};
    const struct lane_qp qp = {.step = LANE_QP_OFFER,
                               .qp = 17,
                               .psn = 18,
                               .mtu_shift = 10,
                               .cells = 8,
                               .cell_size = 8448,
                               .pkey = 0xffff};
    const struct handle handle = {.cookie = 0xff, .newest = 2, .lowest = 1, .group_max = 1};
    uint8_t bytes[LANE_FRAME_SIZE_MAX];

    lane_hello_encode(bytes, &hello, nonce, key);
    save(folder, "lane", "hello", bytes, LANE_HELLO_SIZE);
    lane_proof_encode(bytes, (const uint8_t[LANE_HELLO_SIZE]){LANE_HELLO, LANE_VERSION, 1}, nonce,
                      key, true);
    save(folder, "lane", "proof", bytes, LANE_PROOF_SIZE);
    lane_chunk_encode(bytes, &chunk, LANE_VERSION);
    save(folder, "lane", "chunk", bytes, LANE_CHUNK_SIZE);
    save(folder, "lane", "report", bytes, lane_report_encode(bytes, &report, LANE_VERSION));
    lane_post_encode(bytes, &post, LANE_VERSION);
    save(folder, "lane", "post", bytes, LANE_POST_SIZE);
    lane_open_encode(bytes, &open);
    save(folder, "lane", "open", bytes, LANE_OPEN_SIZE);
    lane_ping_encode(bytes, &ping);
    save(folder, "lane", "ping", bytes, LANE_PING_SIZE);
    lane_ping_encode(bytes, &pong);
    save(folder, "lane", "pong", bytes, LANE_PING_SIZE);
    lane_close_encode(bytes, &close);
    save(folder, "lane", "close", bytes, LANE_CLOSE_SIZE);
    lane_refusal_encode(bytes, &no);
    save(folder, "lane", "refusal", bytes, LANE_NO_SIZE);
    lane_nics_encode(bytes, &nics);
    save(folder, "lane", "nics", bytes, LANE_NICS_SIZE);
    lane_qp_encode(bytes, &qp);
    save(folder, "lane", "qp", bytes, LANE_QP_SIZE);
    handle_encode(bytes, &handle);
    save(folder, "lane", "handle", bytes, HANDLE_SIZE);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: seeds FOLDER\n");
        return 2;
    }
    probes(argv[1]);
    pages(argv[1]);
    recording(argv[1]);
    lanes(argv[1]);
    return 0;
}

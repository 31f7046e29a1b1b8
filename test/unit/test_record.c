/* Recordings: a node's inputs come back, to the bit, and replay to the same actions; from its start, and from the middle of its
 * life by the copy at the beginning of a segment. Damaged files are refused, never trusted. */
#include "base/arena.h"
#include "base/prng.h"
#include "service/record/record.h"
#include "service/record/recorder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ACTION_MAX = 1 << 17, QUEUE_MAX = 512 };

static const struct mesh_peer peers[] = {
    {.nic = {0}, .host = {0}, .rail = 0, .leaf = 0},
    {.nic = {7}, .host = {1}, .rail = 0, .leaf = 1},
};
static const struct probe_key key = {.id = 1, .bytes = "0123456789abcde"};

/* Two hosts on one wire. The first one's node is recorded. */
static struct host {
    struct node *node;
    struct node_receive in[QUEUE_MAX];
    struct node_transmit out[QUEUE_MAX];
    unsigned in_count, out_count;
    struct mono due;
} hosts[2];
static char directory[64];
static struct prng prng;
static struct recorder *recorder;
static uint64_t live[ACTION_MAX], again[ACTION_MAX];
static int64_t live_ns[ACTION_MAX];
static size_t live_count, again_count;

static uint64_t fold(const struct node_action *action)
{
    uint8_t bytes[PROBE_SIZE] = {0};
    uint64_t h = action->kind;
    if (action->kind == NODE_SEND) {
        probe_encode(bytes, &action->send.probe, &key);
        h = hash_u64(hash_u64(h, action->send.token), action->send.source_port);
    } else if (action->kind == NODE_FINDING) {
        char text[700];
        finding_text(&action->finding, NULL, text, sizeof(text));
        for (const char *c = text; *c != 0; c++) {
            h = hash_u64(h, (uint64_t)*c);
        }
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        h = hash_u64(h, bytes[i]);
    }
    return h;
}

static void tell(unsigned host, struct mono now, enum node_event_kind kind, const void *event)
{
    if (host == 0) {
        recorder_append(recorder, kind, now, event);
    }
    assert_int_equal(node_on_event(hosts[host].node, now, kind, event), 0);
}

static void take_actions(unsigned host, struct mono now)
{
    struct host *h = &hosts[host], *other = &hosts[1 - host];
    struct node_action action;
    while (node_next_action(h->node, &action)) {
        if (host == 0 && action.kind == NODE_FINDING) {
            recorder_finding(recorder, &action.finding);
        }
        if (host == 0 && live_count < ACTION_MAX) {
            live_ns[live_count] = now.ns;
            live[live_count++] = fold(&action);
        }
        if (action.kind != NODE_SEND || h->out_count == QUEUE_MAX || other->in_count == QUEUE_MAX ||
            action.send.peer.index != peers[1 - host].nic.index || prng_below(&prng, 50) == 0) {
            continue;
        }
        const struct nic_time tx = {now.ns + 1000 * (int64_t)h->out_count +
                                    (int64_t)prng_below(&prng, 50)};
        h->out[h->out_count++] = (struct node_transmit){.token = action.send.token,
                                                        .tx = tx,
                                                        .error_ns = 50,
                                                        .outcome = TRANSMIT_STAMPED,
                                                        .stamps = STAMP_SOFTWARE};
        other->in[other->in_count++] =
            (struct node_receive){.source_port = action.send.source_port,
                                  .stamps = STAMP_SOFTWARE,
                                  .rx = {tx.ns + 4000 + (int64_t)prng_below(&prng, 300)},
                                  .error_ns = 50,
                                  .probe = action.send.probe};
    }
    if (host == 0) {
        recorder_drained(recorder);
    }
    h->due = node_deadline(h->node);
}

static void run(int64_t from_ns, int64_t to_ns)
{
    for (struct mono now = {from_ns}; now.ns < to_ns; now.ns += 5 * NS_PER_MS) {
        const struct node_link link = {.facts = {.at = now,
                                                 .present = 1,
                                                 .carrier = (now.ns / NS_PER_S) % 16 < 12,
                                                 .speed_mbps = 1000}};
        if (now.ns % NS_PER_S == 0) { /* a cable that comes and goes: something to find */
            tell(0, now, NODE_EVENT_LINK, &link);
        }
        for (unsigned i = 0; i < 2; i++) {
            struct host *h = &hosts[i];
            for (unsigned k = 0; k < h->out_count; k++) {
                tell(i, now, NODE_EVENT_TRANSMIT, &h->out[k]);
            }
            for (unsigned k = 0; k < h->in_count; k++) {
                tell(i, now, NODE_EVENT_RECEIVE, &h->in[k]);
            }
            h->in_count = h->out_count = 0;
            if (!mono_before(now, h->due)) {
                tell(i, now, NODE_EVENT_TICK, NULL);
            }
            take_actions(i, now);
        }
    }
}

static void start(int64_t bytes_max, struct mono now)
{
    snprintf(directory, sizeof(directory), "/tmp/foliot-test-record-XXXXXX");
    assert_non_null(mkdtemp(directory));
    assert_int_equal(recorder_open(&recorder, directory, bytes_max), 0);
    prng_init(&prng, 5);
    live_count = again_count = 0;
    memset(hosts, 0, sizeof(hosts));
    for (unsigned i = 0; i < 2; i++) {
        struct node_config config = {.host = {i},
                                     .nic_count = 1,
                                     .grid_ms = 255,
                                     .seed = i + 1,

                                     .fleet = {.seed = 1, .peers = peers, .peer_count = 2}};
        config.nics[0] = (struct node_nic){.nic = peers[i].nic, .stamps = STAMP_SOFTWARE};
        assert_int_equal(node_new(&hosts[i].node, &config, now), 0);
        hosts[i].due = now;
        if (i == 0) {
            recorder_start(recorder, &config, now);
        }
    }
}

static void on_action(void *context, struct mono now, const struct node_action *action)
{
    if (again_count < ACTION_MAX) {
        again[again_count++] = fold(action);
    }
}

static uint8_t *read_recording(size_t *ret_size)
{
    struct recording recording;
    assert_int_equal(recorder_save(recorder, &recording), 0);
    uint8_t *bytes = malloc((size_t)recording.size);
    assert_int_equal(read(recording.fd, bytes, (size_t)recording.size), recording.size);
    close(recording.fd);
    *ret_size = (size_t)recording.size;
    return bytes;
}

static void finish(void)
{
    recorder = recorder_close(recorder);
    assert_int_equal(rmdir(directory), 0); /* its files never had names */
}

/* Reads to the end; 0 if everything is there. */
static int read_all(const uint8_t *bytes, size_t size)
{
    struct record *record = NULL;
    enum node_event_kind kind;
    struct mono now;
    const void *event;
    int r = record_open_memory(&record, bytes, size);
    for (int more = 1; r == 0 && more == 1;) {
        more = record_next(record, &kind, &now, &event);
        r = more < 0 ? more : 0;
    }
    record_close(record);
    return r;
}

/* Cut at any byte: the events before the cut, then a report of the cut. */
static void cut_is_noticed(const uint8_t *bytes, size_t size)
{
    struct record *record = NULL;
    struct record_outcome outcome;
    struct node *node = NULL;

    assert_int_equal(read_all(bytes, size), 0);
    for (size_t cut = 0; cut < size; cut += cut < 4000 ? 97 : cut + 300 < size ? 9973 : 1) {
        const int r = read_all(bytes, cut);
        assert_true(r == -ENODATA || (r == -EPROTO && cut < 4000 + sizeof(struct node_config)));
    }
    for (size_t lost = 1; lost < 40; lost += 6) {
        assert_int_equal(record_open_memory(&record, bytes, size - lost), 0);
        assert_int_equal(record_play(record, true, on_action, NULL, &node, &outcome), 0);
        assert_int_equal(outcome.damage, -ENODATA);
        assert_true(outcome.damage_at <= size - lost && outcome.damage_at + 600 > size);
        assert_true(outcome.events > 1000 && outcome.different == 0);
        node_free(node);
        record_close(record);
    }
}

/* One bit of the events is changed, or there are more bytes than before. */
static void damage_is_noticed(uint8_t *bytes, size_t size)
{
    uint8_t *longer = calloc(1, size + 1);

    for (size_t i = 1; i < 400; i += 7) {
        bytes[size - i * 20] ^= 4;
        assert_true(read_all(bytes, size) < 0);
        bytes[size - i * 20] ^= 4;
    }
    memcpy(longer, bytes, size);
    assert_int_equal(read_all(longer, size + 1), -EPROTO);
    free(longer);
}

static void replays_from_birth(void **state)
{
    const struct mono birth = {123 * NS_PER_S};
    struct record *record = NULL;
    struct record_outcome outcome;
    struct node *node = NULL;
    size_t size = 0;
    start(64 << 20, birth);
    run(birth.ns, birth.ns + 20 * NS_PER_S);
    uint8_t *bytes = read_recording(&size);
    assert_int_equal(record_open_memory(&record, bytes, size), 0);
    assert_true(record_whole(record));
    assert_int_equal(record_play(record, true, on_action, NULL, &node, &outcome), 0);
    assert_true(outcome.events > 1000 && outcome.findings > 0);
    assert_int_equal(outcome.different, 0);
    assert_int_equal(again_count, live_count);
    assert_memory_equal(again, live, live_count * sizeof(live[0]));
    node_free(node);
    record_close(record);
    cut_is_noticed(bytes, size);
    damage_is_noticed(bytes, size);
    /* a flipped bit in the part that marks a recording */
    bytes[16] ^= 1;
    assert_int_equal(record_open_memory(&record, bytes, size), -ESTALE);
    bytes[0] ^= 1;
    assert_int_equal(record_open_memory(&record, bytes, size), -EPROTO);
    free(bytes);
    node_free(hosts[0].node);
    node_free(hosts[1].node);
    finish();
}

static void replays_from_the_middle(void **state)
{
    const struct mono birth = {123 * NS_PER_S};
    struct record *record = NULL;
    struct record_outcome outcome;
    struct node *node = NULL;
    size_t size = 0;
    if (arena_open() < 0) {
        skip(); /* the thread sanitizer reserves that address */
    }
    start(128 << 10, birth);
    recorder_node(recorder, hosts[0].node);
    run(birth.ns, birth.ns + 240 * NS_PER_S);
    uint8_t *bytes = read_recording(&size);
    arena_close();
    assert_int_equal(record_open_memory(&record, bytes, size), 0);
    assert_false(record_whole(record));
    assert_int_equal(record_play(record, false, on_action, NULL, &node, &outcome), -EACCES);
    assert_int_equal(record_play(record, true, on_action, NULL, &node, &outcome), 0);
    assert_true(outcome.events > 100);
    assert_int_equal(outcome.different, 0);
    assert_true(again_count > 100 && again_count < live_count);
    assert_memory_equal(again, live + live_count - again_count, again_count * sizeof(again[0]));
    arena_close();
    record_close(record);
    free(bytes);
    finish();
}

/* A whole list, then a NIC joins and another leaves: a recording begins with the list at the start. */
static void replays_a_list_that_changes(void **state)
{
    static struct mesh_peer room[1024];
    const struct mono birth = {123 * NS_PER_S};
    const struct mesh_peer third = {.nic = {9}, .host = {2}, .rail = 0, .leaf = 1},
                           fourth = {.nic = {12}, .host = {3}, .rail = 0, .leaf = 0};
    const struct mesh_member joins = {.peer = fourth}, leaves = {.peer = third, .gone = 1};
    struct record *record = NULL;
    struct record_outcome outcome;
    struct node *node = NULL;
    size_t size = 0;
    start(64 << 20, birth);
    memcpy(room, peers, sizeof(peers));
    room[2] = third;
    const struct mesh_fleet fleet = {
        .seed = 1, .peers = room, .peer_count = 3, .room = room, .peer_capacity = fleet_room(3)};
    const struct {
        enum node_event_kind kind;
        const void *event;
    } steps[] = {
        {NODE_EVENT_PEERS, &fleet}, {NODE_EVENT_MEMBER, &joins}, {NODE_EVENT_MEMBER, &leaves}};
    int64_t at = birth.ns;
    for (size_t i = 0; i < 4; i++, at += 5 * NS_PER_S) {
        run(at, at + 5 * NS_PER_S);
        if (i < 3) {
            tell(0, (struct mono){at + 5 * NS_PER_S}, steps[i].kind, steps[i].event);
        }
    }
    assert_int_equal(node_fleet(hosts[0].node)->peer_count, 3);
    uint8_t *bytes = read_recording(&size);
    assert_int_equal(record_open_memory(&record, bytes, size), 0);
    assert_true(record_whole(record));
    assert_int_equal(record_play(record, true, on_action, NULL, &node, &outcome), 0);
    assert_int_equal(outcome.different, 0);
    assert_int_equal(again_count, live_count);
    assert_memory_equal(again, live, live_count * sizeof(live[0]));
    node_free(node);
    record_close(record);
    free(bytes);
    node_free(hosts[0].node);
    node_free(hosts[1].node);
    finish();
}

static void without_a_copy_it_says_so(void **state)
{
    const struct mono birth = {0};
    struct record *record = NULL;
    struct record_outcome outcome;
    struct node *node = NULL;
    size_t size = 0;
    start(16 << 10, birth);
    run(birth.ns, birth.ns + 120 * NS_PER_S);
    uint8_t *bytes = read_recording(&size);
    assert_int_equal(record_open_memory(&record, bytes, size), 0);
    assert_false(record_whole(record));
    assert_int_equal(record_play(record, true, on_action, NULL, &node, &outcome), -ENOTSUP);
    record_close(record);
    free(bytes);
    node_free(hosts[0].node);
    node_free(hosts[1].node);
    finish();
}

static void a_full_disk_stops_nothing(void **state)
{
    struct recorder_report report;
    struct recording recording;
    const struct mono birth = {0};
    start(1 << 20, birth);
    assert_int_equal(rmdir(directory), 0); /* no room at all */
    run(birth.ns, birth.ns + 2 * NS_PER_S);
    recorder_report_get(recorder, &report);
    assert_int_equal(report.error, ENOENT);
    assert_true(report.dropped > 0);
    assert_int_equal(recorder_save(recorder, &recording), -ENOENT);
    node_free(hosts[0].node);
    node_free(hosts[1].node);
    recorder = recorder_close(recorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_from_birth),          cmocka_unit_test(replays_from_the_middle),
        cmocka_unit_test(replays_a_list_that_changes), cmocka_unit_test(without_a_copy_it_says_so),
        cmocka_unit_test(a_full_disk_stops_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

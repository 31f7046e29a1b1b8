/* test_mesh_hint.c: what a job's lanes learn from the agent's page of verdicts: pairs of NICs whose ways are all dead, as long as
 * the agent keeps writing that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/internal.h"
#include "wire/mesh_page.h"

#define PAIRS   3
#define WAYS    4 /* of a pair, each direction */
#define ENTRIES (PAIRS * WAYS * 2)

struct agent {
    char path[64];
    int fd;
    struct mesh_page_memory *memory;
    struct mesh_page_header header;
    struct transport *t;
    int64_t now;
};

/* 10.0.0.1 to 10.0.0.(pair + 2) */
static void addresses(uint32_t pair, struct io_address *local, struct io_address *peer)
{
    *local = (struct io_address){.ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}};
    *peer = *local;
    peer->ip[15] = (uint8_t)(pair + 2);
}

static void verdict(struct agent *a, uint32_t pair, uint32_t way,
                    enum mesh_page_direction direction, enum mesh_page_state state)
{
    const uint32_t index = (pair * WAYS + way) * 2 + direction;
    struct io_address local, peer;
    struct mesh_page_entry entry = {.source_port = (uint16_t)(1000 + way),
                                    .state = (uint8_t)state,
                                    .direction = (uint8_t)direction};

    addresses(pair, &local, &peer);
    entry.addresses = mesh_page_addresses(local.ip, peer.ip);
    (void)mesh_page_write(a->memory, index, &entry);
}

/* The agent writes its verdicts, and 10 ms later the transport reads them. */
static uint32_t dead_after(struct agent *a, bool writes)
{
    a->now += 10 * NS_PER_MS;
    if (writes) {
        a->header.written = a->now;
        a->header.count = ENTRIES;
        mesh_page_write_header(a->memory, &a->header);
        assert_int_equal(pwrite(a->fd, a->memory, mesh_page_size(ENTRIES), 0),
                         mesh_page_size(ENTRIES));
    }
    mesh_look(a->t, (struct mono){a->now});
    return a->t->mesh.dead_count;
}

static void open_file(struct agent *a)
{
    snprintf(a->path, sizeof(a->path), "/tmp/foliot-mesh-XXXXXX");
    a->fd = mkstemp(a->path);
    assert_true(a->fd >= 0);
    mesh_page_init(a->memory, ENTRIES, 7);
    for (uint32_t i = 0; i < PAIRS * WAYS; i++) {
        verdict(a, i / WAYS, i % WAYS, MESH_PAGE_OUT, MESH_PAGE_OK);
        verdict(a, i / WAYS, i % WAYS, MESH_PAGE_IN, MESH_PAGE_OK);
    }
    a->t->config.mesh_file = a->path;
}

static void close_file(struct agent *a)
{
    close(a->fd);
    unlink(a->path);
}

static void start(struct agent *a)
{
    *a = (struct agent){.now = NS_PER_S};
    a->memory = calloc(1, mesh_page_size(ENTRIES));
    a->t = calloc(1, sizeof(*a->t));
    assert_non_null(a->memory);
    assert_non_null(a->t);
    open_file(a);
}

static void end(struct agent *a)
{
    follow_end(&a->t->mesh.file);
    close_file(a);
    free(a->memory);
    free(a->t);
}

static void all_ways_must_be_dead(void **state)
{
    struct agent a;

    (void)state;
    start(&a);
    assert_int_equal(dead_after(&a, true), 0);
    for (uint32_t way = 0; way < WAYS; way++) {
        assert_int_equal(dead_after(&a, true), 0);
        verdict(&a, 1, way, MESH_PAGE_OUT, MESH_PAGE_DEAD);
    }
    assert_int_equal(dead_after(&a, true), 1);
    for (uint32_t way = 0; way < WAYS; way++) { /* no answer comes back: as good as dead */
        verdict(&a, 2, way, MESH_PAGE_IN, MESH_PAGE_DEAD);
    }
    assert_int_equal(dead_after(&a, true), 2);
    verdict(&a, 1, 2, MESH_PAGE_OUT, MESH_PAGE_LOSSY);
    assert_int_equal(dead_after(&a, true), 1);
    end(&a);
}

static void an_agent_that_stands_still_says_nothing(void **state)
{
    struct agent a;

    (void)state;
    start(&a);
    for (uint32_t way = 0; way < WAYS; way++) {
        verdict(&a, 0, way, MESH_PAGE_OUT, MESH_PAGE_DEAD);
    }
    assert_int_equal(dead_after(&a, true), 1);
    a.now += MESH_PAGE_STALE_NS / 2;
    assert_int_equal(dead_after(&a, false), 1);
    a.now += MESH_PAGE_STALE_NS;
    assert_int_equal(dead_after(&a, false), 0);
    assert_int_equal(dead_after(&a, true), 1);
    close_file(&a); /* another agent with another file */
    open_file(&a);
    a.now += 10 * NS_PER_S;
    assert_int_equal(dead_after(&a, true), 0);
    assert_int_equal(ftruncate(a.fd, 0), 0); /* a file that isn't a page doesn't count */
    end(&a);
}

/* Makes every connection that the watch asks for, and gives it a chunk to carry. The kernel reports nothing about it. */
static void carry_out(struct lane_set *set, struct mono now)
{
    static struct lane_load loads[LANE_MAX];
    const struct watch_kernel says = {.known = true, .rtt = span_us(100)};
    struct watch_action action;

    watch_loads(set->watch, loads);
    while (watch_next_action(set->watch, &action)) {
        if (action.kind == WATCH_CONNECT) {
            watch_on_hello(set->watch, now, action.lane, action.epoch, span_us(100));
            loads[action.lane].chunks = 1;
            watch_on_sent(set->watch, now, action.lane, 1, span_ns(0));
            watch_on_kernel(set->watch, now, action.lane, &says);
        }
    }
}

static void lanes_between_them_are_doubted(void **state)
{
    struct agent a;
    struct lane_set *set = calloc(1, sizeof(*set));
    struct stream streams[2] = {{.shaken = true}, {.shaken = true}};

    (void)state;
    start(&a);
    assert_non_null(set);
    set->transport = a.t;
    set->watch = watch_new(&(struct watch_config){.patience = {0}}, (struct mono){a.now});
    assert_non_null(set->watch);
    for (uint32_t lane = 0; lane < 2; lane++) {
        assert_int_equal(watch_lane_add(set->watch, (struct mono){a.now}, lane,
                                        &(struct watch_lane_config){.own_nic = 0}),
                         0);
        addresses(lane, &streams[lane].local, &streams[lane].peer);
        set->streams[lane] = &streams[lane];
    }
    watch_on_owing(set->watch, (struct mono){a.now}, true);
    for (uint32_t way = 0; way < WAYS; way++) {
        verdict(&a, 1, way, MESH_PAGE_OUT, MESH_PAGE_DEAD);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dead_after(&a, true), 1);
        watch_look(set->watch, (struct mono){a.now});
        carry_out(set, (struct mono){a.now});
        assert_int_equal(watch_doubted(set->watch),
                         0); /* nor would it soon be, without a verdict */
    }
    mesh_hint(set, (struct mono){a.now});
    assert_int_equal(watch_doubted(set->watch), 1u << 1);
    watch_free(set->watch);
    free(set);
    end(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ways_must_be_dead),
        cmocka_unit_test(an_agent_that_stands_still_says_nothing),
        cmocka_unit_test(lanes_between_them_are_doubted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

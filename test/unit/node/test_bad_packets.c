/* Malformed, truncated, forged, replayed and reordered probes: each is counted by its reason, and none has an effect. Two worlds
 * of the same seed run side by side, one of them under attack: all actions of their hosts must be equal to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs those first */
#include <cmocka.h>

#include "core/node/node.h"
#include "wire/probe.h"

static const struct probe_key key = {.id = 1, .bytes = "the fleet's key"};
static const struct probe_key stranger = {.id = 1, .bytes = "another one    "};

#define PATHS 4
#define KEPT  64 /* packets that the victim got last */

static struct attacker {
    const struct node *victim;
    uint8_t bytes[KEPT][PROBE_SIZE];
    struct node_receive seen[KEPT];
    uint32_t count;
    uint64_t errors[PROBE_ERROR_COUNT];
    uint64_t authentic; /* accepted by the decoder: the node must refuse them */
    uint32_t heard;     /* bits: paths of genuine packets */
} attacker;

/* The attacker gets all packets of the victim. */
static void listen_in(struct node *n, struct mono now, const struct node_receive *event)
{
    if (n == attacker.victim) {
        const uint32_t slot = attacker.count++ % KEPT;
        probe_encode(attacker.bytes[slot], &event->probe, &key);
        attacker.seen[slot] = *event;
        attacker.heard |= 1u << event->probe.path;
    }
    node_on_receive(n, now, event);
}
#define node_on_receive listen_in
#include "node_world.h"
#undef node_on_receive

/* Receives as an agent does: bytes in, an event or a count out. */
static void receive(struct world *w, struct attacker *a, const uint8_t *bytes, size_t size,
                    const struct node_receive *as)
{
    struct node_receive event = *as;
    const enum probe_error error = probe_decode(bytes, size, &key, 1, &event.probe);

    a->errors[error]++;
    if (error == PROBE_OK) {
        a->authentic++;
        node_on_receive(w->hosts[0].node, world_mono(w, 0), &event);
    } else {
        const struct node_bad_packet bad = {.local = as->local, .error = error, .count = 1};
        node_on_bad_packet(w->hosts[0].node, world_mono(w, 0), &bad);
    }
}

static void attack(struct world *w, struct attacker *a, struct prng *p)
{
    const uint32_t held = a->count < KEPT ? a->count : KEPT;
    const uint32_t slot = (uint32_t)prng_below(p, held);
    struct node_receive as = a->seen[slot];
    uint8_t bytes[PROBE_SIZE];
    struct probe probe;

    as.rx = (struct nic_time){world_mono(w, 0).ns};
    receive(w, a, a->bytes[slot], PROBE_SIZE, &as); /* replayed */
    memcpy(bytes, a->bytes[slot], PROBE_SIZE);
    receive(w, a, bytes, prng_below(p, PROBE_SIZE), &as); /* truncated */
    bytes[16 + prng_below(p, 100)] ^= 0x10;
    receive(w, a, bytes, PROBE_SIZE, &as); /* damaged */
    memset(bytes, (int)prng_below(p, 256), PROBE_SIZE);
    receive(w, a, bytes, PROBE_SIZE, &as); /* noise */
    if (probe_decode(a->bytes[slot], PROBE_SIZE, &key, 1, &probe) == PROBE_OK) {
        probe.seq += 1;
        probe_encode(bytes, &probe, &stranger);
        receive(w, a, bytes, PROBE_SIZE, &as); /* forged */
    }
}

/* An old packet with the number of a path that the peer doesn't use, as a holder of the key can make it. */
static void replay_elsewhere(struct world *w, struct attacker *a, struct prng *p)
{
    const uint32_t slot = (uint32_t)prng_below(p, a->count < KEPT ? a->count : KEPT);
    struct node_receive as = a->seen[slot];
    uint8_t bytes[PROBE_SIZE];

    as.probe.path = 2; /* of four */
    assert_int_equal(a->heard & (1u << as.probe.path), 0);
    as.probe.heard.seq -= 1000;
    as.probe.map.map.x += NS_PER_MS;
    as.rx = (struct nic_time){world_mono(w, 0).ns};
    probe_encode(bytes, &as.probe, &key);
    receive(w, a, bytes, PROBE_SIZE, &as);
}

static void an_attacked_world_is_the_same_world(void **state)
{
    static struct world quiet, attacked;
    struct attacker *const a = &attacker;
    struct node_counters counters, calm;
    struct prng p;

    prng_init(&p, 1);
    world_init(&quiet, 5, 2, 1);
    world_init(&attacked, 5, 2, 1);
    quiet.path_limit[0] = attacked.path_limit[0] = PATHS;
    quiet.path_limit[1] = attacked.path_limit[1] = 2;
    for (uint32_t h = 0; h < 2; h++) {
        world_start(&quiet, h);
        world_start(&attacked, h);
    }
    attacker.victim = attacked.hosts[0].node;
    for (int i = 0; i < 300; i++) {
        world_run(&quiet, 20 * NS_PER_MS);
        world_run(&attacked, 20 * NS_PER_MS);
        if (attacker.count >= KEPT) {
            attack(&attacked, a, &p);
            replay_elsewhere(&attacked, a, &p);
        }
        assert_true(quiet.hosts[0].digest == attacked.hosts[0].digest);
        assert_true(quiet.hosts[1].digest == attacked.hosts[1].digest);
    }
    node_counters_get(attacked.hosts[0].node, &counters);
    node_counters_get(quiet.hosts[0].node, &calm);
    assert_true(a->authentic > 100);
    assert_int_equal(counters.replayed + counters.stale - calm.replayed - calm.stale, a->authentic);
    assert_true(a->errors[PROBE_ERROR_SIZE] > 100);
    assert_true(a->errors[PROBE_ERROR_MAGIC] > 100);
    assert_true(a->errors[PROBE_ERROR_TAG] > 200);
    assert_int_equal(counters.bad_packets, a->errors[PROBE_ERROR_SIZE] +
                                               a->errors[PROBE_ERROR_MAGIC] +
                                               a->errors[PROBE_ERROR_TAG]);
    assert_int_equal(calm.bad_packets, 0);
    world_done(&quiet);
    world_done(&attacked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attacked_world_is_the_same_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

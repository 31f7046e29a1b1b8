/* Keys of two hosts: both ends make the same keys, and no other host can; upgrades, rotation, and the work that strangers
 * cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs those first */
#include <cmocka.h>

#include "base/prng.h"
#include "wire/pair_key.h"

#define HOSTS 6

static const struct probe_key fleet[2] = {{.id = 7, .bytes = "0123456789abcde"},
                                          {.id = 8, .bytes = "fedcba987654321"}};

struct host {
    uint8_t secret[PAIR_SECRET_SIZE], public[PAIR_PUBLIC_SIZE];
    struct pair_table *table;
};

static void make_hosts(struct host hosts[HOSTS], int64_t since_s)
{
    for (int i = 0; i < HOSTS; i++) {
        pair_secret_new(hosts[i].secret);
        assert_true(pair_public(hosts[i].secret, hosts[i].public));
        assert_int_equal(pair_table_new(hosts[i].secret, &hosts[i].table), 0);
        assert_int_equal(pair_table_resize(hosts[i].table, HOSTS), 0);
        pair_table_fleet(hosts[i].table, fleet, 1);
    }
    for (int i = 0; i < HOSTS; i++) {
        for (uint32_t k = 0; k < HOSTS; k++) {
            pair_table_set(hosts[i].table, k, hosts[k].public, since_s);
        }
    }
}

static void free_hosts(struct host hosts[HOSTS])
{
    for (int i = 0; i < HOSTS; i++) {
        pair_table_free(hosts[i].table);
    }
}

static struct probe packet(uint32_t src, uint32_t dst)
{
    return (struct probe){.version = PROBE_VERSION,
                          .version_lowest = PROBE_VERSION_LOWEST,
                          .type = PROBE_SINGLE,
                          .src = {src},
                          .dst = {dst},
                          .h_ns = UINT32_MAX,
                          .anchor.nic = NIC_NONE};
}

/* How `to` receives a packet in the name of `src`. */
static enum probe_error heard(struct host *to, const uint8_t *bytes, uint32_t src)
{
    const struct probe_key *keys = fleet;
    struct probe_claim claim;
    struct probe probe;
    size_t count = 1;

    assert_true(probe_claim_read(bytes, PROBE_SIZE, &claim));
    assert_int_equal(claim.src.index, src);
    if (claim.pair) {
        count = pair_table_keys(to->table, src, 0, PAIR_LISTED, &keys);
    }
    const enum probe_error error = probe_decode(bytes, PROBE_SIZE, keys, count, &probe);
    return error == PROBE_OK && !probe.pair && pair_table_binds(to->table, src, 1000)
               ? PROBE_ERROR_TAG
               : error;
}

/* One host uses everything that it has (its own secret, the fleet's key, all public halves), and writes in other hosts' names,
 * with every key that it can make: no host accepts it. liar.impostor. */
static void a_host_speaks_for_itself_only(void **state)
{
    struct host hosts[HOSTS];
    int spoken = 0, honest = 0;

    make_hosts(hosts, PAIR_LONG_AGO);
    for (uint32_t src = 0; src < HOSTS; src++) {
        for (uint32_t dst = 0; dst < HOSTS; dst++) {
            const struct probe probe = packet(src, dst);
            const struct probe_key *key;
            uint8_t bytes[PROBE_SIZE];
            if (src == dst) {
                continue;
            }
            assert_int_equal(pair_table_keys(hosts[src].table, dst, 0, PAIR_OURS, &key), 1);
            probe_encode(bytes, &probe, key);
            honest += heard(&hosts[dst], bytes, src) == PROBE_OK;
            for (uint32_t as = 0; as < HOSTS && src != 5 && dst != 5; as++) { /* 5 writes */
                assert_int_equal(pair_table_keys(hosts[5].table, as, 0, PAIR_OURS, &key), 1);
                probe_encode(bytes, &probe, key);
                spoken += heard(&hosts[dst], bytes, src) == PROBE_OK;
            }
            probe_encode(bytes, &probe, &fleet[0]);
            spoken += heard(&hosts[dst], bytes, src) == PROBE_OK;
        }
    }
    assert_int_equal(honest, HOSTS * (HOSTS - 1));
    assert_int_equal(spoken, 0);
    free_hosts(hosts);
}

/* The fleet's key renews the pairs' keys. While two fleet keys are valid, both keys of a pair exist. */
static void rotation_renews_them(void **state)
{
    struct host hosts[HOSTS];
    const struct probe_key *keys;

    make_hosts(hosts, PAIR_LONG_AGO);
    assert_int_equal(pair_table_keys(hosts[0].table, 1, 0, PAIR_OURS, &keys), 1);
    struct probe_key before = keys[0];
    pair_table_fleet(hosts[0].table, fleet, 2);
    assert_int_equal(pair_table_keys(hosts[0].table, 1, 0, PAIR_OURS, &keys), 2);
    assert_memory_equal(keys[0].bytes, before.bytes, sizeof(before.bytes));
    assert_memory_not_equal(keys[1].bytes, before.bytes, sizeof(before.bytes));
    assert_int_equal(keys[1].id, 8);
    assert_true(keys[1].pair);
    pair_table_fleet(hosts[0].table, &fleet[1], 1);
    assert_int_equal(pair_table_keys(hosts[0].table, 1, 0, PAIR_OURS, &keys), 1);
    assert_memory_not_equal(keys[0].bytes, before.bytes, sizeof(before.bytes));
    free_hosts(hosts);
}

/* A key arrives while hosts run: first they accept it, then they use it, then they accept nothing else. */
static void upgrades_lose_nothing(void **state)
{
    struct host hosts[HOSTS];

    make_hosts(hosts, 100);
    struct pair_table *t = hosts[0].table;
    assert_false(pair_table_speak(t, 1, 100 + PAIR_SPEAK_S - 1));
    assert_true(pair_table_speak(t, 1, 100 + PAIR_SPEAK_S));
    pair_table_heard(t, 2);
    assert_true(pair_table_speak(t, 2, 100));
    assert_false(pair_table_binds(t, 2, 100 + PAIR_BIND_S - 1));
    assert_true(pair_table_binds(t, 2, 100 + PAIR_BIND_S));
    pair_table_set(t, 2, hosts[2].public, 5000); /* the same list again */
    assert_true(pair_table_binds(t, 2, 100 + PAIR_BIND_S));
    pair_table_set(t, 2, NULL, 5000); /* its agent is an older one again */
    assert_false(pair_table_binds(t, 2, 100000));
    assert_false(pair_table_speak(t, 2, 100000));
    pair_table_set(t, 2, hosts[3].public, PAIR_LONG_AGO); /* there from the start */
    assert_true(pair_table_binds(t, 2, 0));
    assert_false(pair_table_binds(t, HOSTS, 100000));
    free_hosts(hosts);
}

static void strangers_cost_little(void **state)
{
    struct host hosts[HOSTS];
    const struct probe_key *keys;
    size_t made = 0;

    make_hosts(hosts, 0);
    assert_int_equal(pair_table_resize(hosts[0].table, 1000), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        uint8_t secret[PAIR_SECRET_SIZE], public[PAIR_PUBLIC_SIZE];
        pair_secret_new(secret);
        assert_true(pair_public(secret, public));
        pair_table_set(hosts[0].table, i, public, 0);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        made += pair_table_keys(hosts[0].table, i, 17, PAIR_STRANGER, &keys);
    }
    assert_int_equal(made, PAIR_WORK_MAX);
    assert_int_equal(pair_table_keys(hosts[0].table, 999, 17, PAIR_OURS, &keys),
                     1); /* for ourselves */
    assert_int_equal(pair_table_keys(hosts[0].table, 998, 18, PAIR_STRANGER, &keys), 1);
    free_hosts(hosts);
}

/* Strangers use names of hosts in a large fleet, a thousand a second, for hours. Members come through nevertheless: from the
 * listed address, new members, and those that proved themselves. Their keys are never dropped for a claim. */
static void strangers_keep_no_member_out(void **state)
{
    enum { FLEET = 6000, JOINED = FLEET };
    uint8_t secret[PAIR_SECRET_SIZE], public[PAIR_PUBLIC_SIZE];
    struct host hosts[HOSTS];
    const struct probe_key *keys, *mine;
    uint32_t claimed = HOSTS;

    (void)state;
    make_hosts(hosts, PAIR_LONG_AGO);
    struct pair_table *t = hosts[0].table;
    assert_int_equal(pair_table_resize(t, FLEET + 1), 0);
    for (uint32_t i = HOSTS; i < FLEET; i++) {
        pair_secret_new(public); /* any bytes are a key */
        pair_table_set(t, i, public, PAIR_LONG_AGO);
    }
    assert_int_equal(pair_table_keys(t, 1, 1, PAIR_OURS, &mine), 1);
    assert_int_equal(pair_table_keys(t, 2, 1, PAIR_LISTED, &keys), 1);
    pair_table_heard(t, 2);
    for (int64_t s = 2; s < 102; s++) {
        for (uint32_t i = 0; i < 1000; i++) {
            (void)pair_table_keys(t, claimed, s, PAIR_STRANGER, &keys);
            claimed = claimed + 1 < FLEET ? claimed + 1 : HOSTS;
        }
        assert_int_equal(pair_table_keys(t, 1, s, PAIR_STRANGER, &keys), 1); /* it is there */
        assert_int_equal(pair_table_keys(t, 2, s, PAIR_STRANGER, &keys), 1);
    }
    assert_int_equal(pair_table_keys(t, 3, 101, PAIR_STRANGER, &keys), 0);
    assert_int_equal(pair_table_keys(t, 3, 101, PAIR_LISTED, &keys), 1);
    pair_secret_new(secret);
    assert_true(pair_public(secret, public));
    pair_table_set(t, JOINED, public, 101);
    assert_int_equal(pair_table_keys(t, JOINED, 101, PAIR_STRANGER, &keys), 1);
    pair_table_fleet(t, fleet, 2); /* all are made again */
    assert_int_equal(pair_table_keys(t, 2, 101, PAIR_STRANGER, &keys), 2);
    free_hosts(hosts);
}

/* Public halves of low order would make a key that anybody can compute. */
static void no_key_from_a_point_of_low_order(void **state)
{
    static const uint8_t zero[PAIR_PUBLIC_SIZE];
    struct host hosts[HOSTS];
    const struct probe_key *keys;

    make_hosts(hosts, PAIR_LONG_AGO);
    pair_table_set(hosts[0].table, 1, zero, PAIR_LONG_AGO);
    assert_int_equal(pair_table_keys(hosts[0].table, 1, 0, PAIR_OURS, &keys), 0);
    free_hosts(hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_speaks_for_itself_only),
        cmocka_unit_test(rotation_renews_them),
        cmocka_unit_test(upgrades_lose_nothing),
        cmocka_unit_test(strangers_cost_little),
        cmocka_unit_test(strangers_keep_no_member_out),
        cmocka_unit_test(no_key_from_a_point_of_low_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A NIC's probes follow it to another address only after that address answered. An attacker may catch a probe and send it again
 * from an address of his own, as often as he likes: that changes nothing. Otherwise he would get all probes to that NIC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "service/agent/agent.h"

#define LISTED   2
#define STRANGER 66
#define NEW      77

static struct mesh_peer peers[2] = {{.nic = {0}, .host = {0}}, {.nic = {1}, .host = {1}}};
static struct agent_peer more[2];
static char names[2][AGENT_NAME_SIZE] = {"h0", "h1"};
static struct agent_config config = {.nic_count = 1,
                                     .peer_count = 2,
                                     .peers = peers,
                                     .more = more,
                                     .host_count = 2,
                                     .host_names = names};
static struct agent *agent;

static int start(void **state)
{
    agent = calloc(1, sizeof(*agent));
    assert_non_null(agent);
    agent->config = &config;
    agent->now = (struct mono){1000 * NS_PER_S};
    more[1].address4.s_addr = htonl(0x0a000000 + LISTED);
    return 0;
}

static int end(void **state)
{
    free(agent);
    return 0;
}

/* A packet of NIC 1 comes from 10.0.0.`last`. True: it was an answer about an address, and nothing else. */
static bool comes(uint8_t last, enum probe_type type, uint32_t number)
{
    const struct agent_receive r = {
        .event.probe = {.type = (uint8_t)type, .src = {1}, .query = {.number = number}},
        .from = {[10] = 0xff, 0xff, 10, 0, 0, last}};

    agent->now.ns += 10 * NS_PER_MS;
    return agent_address_on_packet(agent, &r);
}

static bool probed_at(uint8_t last)
{
    return more[1].address4.s_addr == htonl(0x0a000000u + last);
}

/* The last question to that address; 0: none. */
static uint32_t asked(uint8_t last)
{
    for (uint32_t i = 0; i < AGENT_MOVE_MAX; i++) {
        if (agent->moves[i].number != 0 && agent->moves[i].address[15] == last) {
            return agent->moves[i].number;
        }
    }
    return 0;
}

static void a_probe_sent_on_moves_nothing(void **state)
{
    for (int i = 0; i < 3000; i++) { /* half a minute */
        assert_false(comes(LISTED, PROBE_PAIR, 0));
        assert_false(comes(STRANGER, PROBE_PAIR, 0));
        assert_false(comes(STRANGER, PROBE_ANSWER, 0));
        assert_true(probed_at(LISTED));
    }
    assert_int_equal(asked(LISTED), 0);
}

static void an_answer_counts_from_where_it_was_asked(void **state)
{
    (void)comes(STRANGER, PROBE_PAIR, 0);
    (void)comes(NEW, PROBE_PAIR, 0);
    const uint32_t stranger = asked(STRANGER), new = asked(NEW);
    assert_true(stranger != 0 && new != 0 && stranger != new);
    assert_false(comes(STRANGER, PROBE_ANSWER, new)); /* the NIC's answer, caught and sent again */
    assert_false(comes(NEW, PROBE_ANSWER, new + 1));
    assert_false(comes(NEW, PROBE_QUERY, new)); /* our own question */
    assert_true(probed_at(LISTED));
    assert_true(comes(NEW, PROBE_ANSWER, new));
    assert_true(probed_at(NEW));
    assert_false(comes(NEW, PROBE_PAIR, 0));
    assert_true(probed_at(NEW));
    (void)comes(STRANGER, PROBE_ANSWER, new); /* once */
    assert_true(probed_at(NEW));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, end)
    const struct CMUnitTest tests[] = {
        T(a_probe_sent_on_moves_nothing),
        T(an_answer_counts_from_where_it_was_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The agent's file: an error in it is refused, with its place. */
#include "service/agent/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PEERS                                                                                      \
    "peers:\n"                                                                                     \
    "- {id: 7, host: a, nic: eth1, rail: 0, leaf: tor1, address: 10.0.0.1}\n"                      \
    "- {id: 3, host: b, nic: eth1, address: 10.0.0.2, address6: 'fd00::2'}\n"
#define GOOD "host: a\nkey_file: /k\n" PEERS

static struct agent_config *load(const char *text, struct config_error *error)
{
    struct agent_config *config = NULL;
    char path[64];
    const int fd = memfd_create("agent", MFD_CLOEXEC);

    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    error->text[0] = 0;
    if (agent_config_load(path, NULL, NULL, &config, error) < 0) {
        config = NULL;
    }
    close(fd);
    return config;
}

static void refused(const char *text, const char *place_and_words)
{
    struct config_error error;

    assert_null(load(text, &error));
    if (strstr(error.text, place_and_words) == NULL) {
        fail_msg("expected '%s' in '%s'", place_and_words, error.text);
    }
}

static void test_peers_are_sorted(void **state)
{
    struct config_error error;
    struct agent_config *c = load(GOOD, &error);

    assert_non_null(c);
    assert_int_equal(c->peer_count, 2);
    assert_int_equal(c->peers[0].nic.index, 3);
    assert_int_equal(c->peers[1].nic.index, 7);
    assert_string_equal(agent_config_host_name(c, c->peers[0].host), "b");
    assert_true(c->more[1].address4.s_addr != 0 && c->more[1].address4.s_addr != 0x0200000a);
    assert_int_equal(c->nic_count, 1);
    assert_int_equal(c->nics[0].peer, 1);
    agent_config_free(c);
}

static void test_a_copied_line_is_refused(void **state)
{
    refused(GOOD "- {id: 3, host: c, nic: eth1, address: 10.0.0.3}\n",
            ":6:8: expected each NIC's id once, found 3 again (first in line 5)");
    refused(GOOD "- {id: 1, host: c, nic: eth1, address: 10.0.0.1}\n",
            "expected each address once, found 10.0.0.1 again (first in line 4)");
    refused(GOOD "- {id: 1, host: c, nic: eth1, address6: 'fd00:0::2'}\n",
            ":6:41: expected each address once, found fd00:0::2 again (first in line 5)");
}

static void test_addresses_of_no_single_nic_are_refused(void **state)
{
    refused(GOOD "- {id: 1, host: c, nic: eth1, address: 224.0.0.1}\n", "an IPv4 address of one");
    refused(GOOD "- {id: 1, host: c, nic: eth1, address: 255.255.255.255}\n", "an IPv4 address");
    refused(GOOD "- {id: 1, host: c, nic: eth1, address: 'fd00::3'}\n", "an IPv4 address of one");
    refused(GOOD "- {id: 1, host: c, nic: eth1, address6: 'fe80::1'}\n", "not a link-local one");
    refused(GOOD "- {id: 1, host: c, nic: eth1, address6: 'ff02::1'}\n", "an IPv6 address of one");
    refused(GOOD "- {id: 1, host: c, nic: eth1}\n", "a NIC with 'address' or 'address6'");
}

static void test_values_are_refused_where_they_stand(void **state)
{
    refused(GOOD "job_traffic_class: 256\n",
            ":6:20: expected a whole number from 0 to 255, found '256'");
    refused(GOOD "ring_peers: 2\n", ":6:13: expected a whole number from 4 to 24, found '2'");
    refused(GOOD "ring_peers: 26\n", ":6:13: expected a whole number from 4 to 24, found '26'");
    refused(GOOD "ring_peers: 15\n", ":6:13: expected an even number, found '15'");
    refused(GOOD "nics: [eth1, eth1]\n", ":6:14: expected each interface once, found 'eth1'");
    refused(GOOD "nics: [eth2]\n", ":6:8: expected an interface that 'peers' lists for host a");
    refused(GOOD "runtime_dir: run\n", ":6:14: expected an absolute path, found 'run'");
    refused(GOOD "state_dir: ./run\n", ":6:12: expected an absolute path");
    refused(GOOD "port: 0\n", ":6:7: expected a whole number from 1 to 65535, found '0'");
    refused("host: x\nkey_file: /k\n" PEERS, ":1:7: expected a host that 'peers' lists, found 'x'");
}

static void test_the_class_of_jobs(void **state)
{
    static const struct {
        const char *text;
        uint8_t class;
        bool of_jobs;
    } rows[] = {{GOOD, 0, false},
                {GOOD "job_traffic_class: 104\n", 104, false},
                {GOOD "job_traffic_class: jobs\n", 0, true}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_error error;
        struct agent_config *c = load(rows[i].text, &error);
        assert_non_null(c);
        assert_int_equal(c->job_traffic_class, rows[i].class);
        assert_int_equal(c->class_of_jobs, rows[i].of_jobs);
        agent_config_free(c);
    }
}

/* Ids in the worst order: a list of a hundred thousand NICs must not delay an agent by minutes. */
static void test_a_long_list_backwards(void **state)
{
    enum { COUNT = 20000 };
    char *text = malloc(80 * COUNT + 100);
    size_t used = (size_t)sprintf(text, "host: h1\nkey_file: /k\npeers:\n");
    struct config_error error;

    for (int i = COUNT; i > 0; i--) {
        used += (size_t)sprintf(text + used, "- {id: %d, host: h%d, nic: e, address: 10.0.%d.%d}\n",
                                i, i, i / 250, i % 250 + 1);
    }
    struct agent_config *c = load(text, &error);
    assert_non_null(c);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(c->peers[i].nic.index, i + 1);
    }
    agent_config_free(c);
    free(text);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Files of this agent and of an older one: the list has what both read, and keys count for the list of their version. */
static void test_keys_beside_the_list(void **state)
{
    static const char *const keys =
        "host_keys: {a: "
        "0101010101010101010101010101010101010101010101010101010101010101}\n";
    static const int versions[] = {3, 2};
    char folder[] = "/tmp/foliot-keys-XXXXXX", list[64], beside[64], text[256];
    struct config_error error;

    assert_non_null(mkdtemp(folder));
    snprintf(list, sizeof(list), "%s/fleet.yaml", folder);
    snprintf(beside, sizeof(beside), "%s/fleet.yaml" FLEET_KEYS_SUFFIX, folder);
    write_file(list, "version: 3\nhosts: [b, a]\n" PEERS);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), "version: %d\n%s", versions[i], keys);
        write_file(beside, text);
        snprintf(text, sizeof(text), "host: a\nkey_file: /k\nfleet_file: %s\n", list);
        struct agent_config *c = load(text, &error);
        assert_non_null(c);
        assert_int_equal(c->host_keys[1][31], versions[i] == 3);
        assert_int_equal(c->host_keys[0][31], 0);
        agent_config_free(c);
    }
    write_file(beside, "version: 3\nhost_keys: {a: 01}\n");
    refused(text, "fleet.yaml.keys:2:16: expected 64 hexadecimal digits");
    unlink(beside);
    unlink(list);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peers_are_sorted),
        cmocka_unit_test(test_a_copied_line_is_refused),
        cmocka_unit_test(test_addresses_of_no_single_nic_are_refused),
        cmocka_unit_test(test_values_are_refused_where_they_stand),
        cmocka_unit_test(test_the_class_of_jobs),
        cmocka_unit_test(test_a_long_list_backwards),
        cmocka_unit_test(test_keys_beside_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

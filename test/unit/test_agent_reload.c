/* test_agent_reload.c: a reload that fails changes nothing, and no reload leaves anything in the arena, whose memory is never
 * given back. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "service/agent/agent.h"

#define RELOADS 40

static char folder[] = "/tmp/foliot-reload-XXXXXX", config_path[64];
static struct agent agent;
static int node_error; /* the node's answer to new peers */
static uint32_t followed;

/* Replaced functions that a reload calls. */
int __wrap_node_on_peers(struct node *n, struct mono now, const struct mesh_fleet *fleet);
void __wrap_recorder_append(struct recorder *r, enum node_event_kind kind, struct mono now,
                            const void *data);
void __wrap_agent_server_group(struct agent *a);
void __wrap_agent_pair_follow(struct agent *a);
void __wrap_agent_settings_publish(struct agent *a);
int64_t __wrap_time_source_wall_ns(struct time_source *s);

int __wrap_node_on_peers(struct node *n, struct mono now, const struct mesh_fleet *fleet)
{
    (void)n;
    (void)now;
    assert_true(fleet->peer_count >= 2);
    return node_error;
}

void __wrap_recorder_append(struct recorder *r, enum node_event_kind kind, struct mono now,
                            const void *data)
{
    (void)r;
    (void)kind;
    (void)now;
    (void)data;
}

void __wrap_agent_server_group(struct agent *a)
{
    (void)a;
}

void __wrap_agent_pair_follow(struct agent *a)
{
    (void)a;
    followed++;
}

void __wrap_agent_settings_publish(struct agent *a)
{
    (void)a;
}

int64_t __wrap_time_source_wall_ns(struct time_source *s)
{
    (void)s;
    return 1;
}

static void write_files(uint32_t peers, uint32_t routers)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/key", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("key 1 000102030405060708090a0b0c0d0e0f 2025-01-01T00:00:00Z\n", file);
    fclose(file);
    assert_int_equal(chmod(path, 0600), 0);
    file = fopen(config_path, "w");
    assert_non_null(file);
    fprintf(file, "host: h0\nkey_file: %s\npeers:\n", path);
    for (uint32_t i = 0; i < peers; i++) {
        fprintf(file, "- {id: %u, host: h%u, nic: eth0, address: 10.0.%u.%u}\n", i + 1, i, i / 200,
                1 + i % 200);
    }
    fprintf(file, "routers: %s/routers\n", folder);
    fclose(file);
    snprintf(path, sizeof(path), "%s/routers", folder);
    file = fopen(path, "w");
    assert_non_null(file);
    for (uint32_t i = 0; i < routers; i++) {
        fprintf(file, "10.9.0.%u spine%u\n", 1 + i, i);
    }
    fclose(file);
}

static int begin(void **state)
{
    struct config_error error = {""};

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(config_path, sizeof(config_path), "%s/agent.yaml", folder);
    write_files(4, 3);
    assert_int_equal(arena_open(), 0);
    if (agent_config_load(config_path, getenv("FOLIOT_RUNTIME_DIR"), NULL, &agent.config, &error) <
        0) {
        fail_msg("%s", error.text);
    }
    return 0;
}

static int end(void **state)
{
    char command[64];

    (void)state;
    agent_config_free(agent.config);
    arena_close();
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

static void no_reload_fills_the_arena(void **state)
{
    size_t size = 0;

    (void)state;
    for (int i = 0; i < RELOADS; i++) {
        const bool refused = i % 4 == 1;
        write_files(i % 2 == 0 ? 4 : 1100, i % 3 == 0 ? 3 : 30);
        node_error = refused ? -EINVAL : 0;
        assert_int_equal(agent_reload(&agent, NULL), node_error);
        size = i == RELOADS / 2 ? arena_size() : size;
    }
    assert_int_equal(arena_size(), size);
    node_error = 0;
}

static void a_setting_that_the_node_refuses_is_not_in_force(void **state)
{
    const struct agent_config *before = agent.config;
    const uint32_t peers = before->peer_count, follows = followed;
    const struct mesh_fleet fleet = agent.node_config.fleet;
    static const struct {
        int error;
        const char *words;
    } all[] = {{-EINVAL, "the peers list contradicts the running one"},
               {-ENOMEM, "Cannot allocate memory"}};

    (void)state;
    write_files(peers + 1, 3);
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        node_error = all[i].error;
        assert_int_equal(agent_reload(&agent, NULL), all[i].error);
        assert_non_null(strstr(agent.config_error, all[i].words));
        assert_ptr_equal(agent.config, before);
        assert_int_equal(agent.config->peer_count, peers);
        assert_memory_equal(&agent.node_config.fleet, &fleet, sizeof(fleet));
        assert_int_equal(followed, follows);
    }
    node_error = 0;
    assert_int_equal(agent_reload(&agent, NULL), 0);
    assert_string_equal(agent.config_error, "");
    assert_int_equal(agent.config->peer_count, peers + 1);
}

/* Two lists go to the arena: first it has room for neither, then only for the peers'. */
static void without_memory_the_old_list_stays(void **state)
{
    static void *taken[512];
    const struct agent_config *before = agent.config;
    const size_t peers_size = before->peer_capacity * sizeof(struct mesh_peer);
    void *room = arena_calloc(1, peers_size);
    uint32_t count = 0;

    (void)state;
    write_files(150, 100);
    for (size_t size = ARENA_SIZE_MAX / 2; size >= 16; size /= 2) {
        for (void *block; count < ARRAY_COUNT(taken) && (block = arena_calloc(1, size)) != NULL;) {
            taken[count++] = block;
        }
    }
    assert_true(room != NULL && count < ARRAY_COUNT(taken));
    const size_t full = arena_size();
    for (int i = 0; i < 4; i++) {
        assert_int_equal(agent_reload(&agent, NULL), -ENOMEM);
        assert_non_null(strstr(agent.config_error, "out of memory"));
        assert_ptr_equal(agent.config, before);
        assert_int_equal(arena_size(), full);
        if (i == 1) {
            arena_free(room);
        }
    }
    room = arena_calloc(1, peers_size); /* it was given back */
    assert_non_null(room);
    arena_free(room);
    for (uint32_t k = 0; k < count; k++) {
        arena_free(taken[k]);
    }
    assert_int_equal(agent_reload(&agent, NULL), 0);
    assert_int_equal(agent.config->peer_count, 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_reload_fills_the_arena),
        cmocka_unit_test(a_setting_that_the_node_refuses_is_not_in_force),
        cmocka_unit_test(without_memory_the_old_list_stays),
    };

    return cmocka_run_group_tests(tests, begin, end);
}

/* test_agent_settings.c: how an agent follows the fleet's configuration, also that of a controller of another version. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <foliot.pb-c.h>

#include "base/limits.h"
#include "service/agent/agent.h"

static char folder[] = "/tmp/foliot-settings-XXXXXX";
static struct agent agent;
static struct agent_config config;
static struct node_settings followed, recorded;

int __wrap_node_on_settings(struct node *n, struct mono now, const struct node_settings *settings);
void __wrap_recorder_append(struct recorder *r, enum node_event_kind kind, struct mono now,
                            const void *data);

/* An agent whose version takes 4 to 24. */
int __wrap_node_on_settings(struct node *n, struct mono now, const struct node_settings *settings)
{
    const uint32_t ring = settings->ring_peers;

    (void)n;
    (void)now;
    assert_memory_equal(settings, &recorded, sizeof(recorded)); /* a replay gets the same */
    assert_true(ring <= NIC_EDGE_MAX && settings->flap_limit <= 100000);
    if (ring != 0 && (ring < 4 || ring > 24 || ring % 2 != 0)) {
        return -EINVAL;
    }
    followed = *settings;
    return 0;
}

void __wrap_recorder_append(struct recorder *r, enum node_event_kind kind, struct mono now,
                            const void *data)
{
    (void)r;
    (void)now;
    assert_int_equal(kind, NODE_EVENT_SETTINGS);
    memcpy(&recorded, data, sizeof(recorded));
}

static int begin(void **state)
{
    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    strcpy(config.state_dir, folder);
    strcpy(config.runtime_dir, folder);
    strcpy(config.controller, "controller");
    agent.config = &config;
    followed = (struct node_settings){9, 9};
    return agent_settings_open(&agent);
}

static int end(void **state)
{
    char path[64];

    (void)state;
    agent_settings_close(&agent);
    snprintf(path, sizeof(path), "%s/settings", folder);
    (void)unlink(path);
    snprintf(path, sizeof(path), "%s/" SWITCH_PAGE_NAME, folder);
    (void)unlink(path);
    return rmdir(folder);
}

static void take(uint32_t mode, uint32_t ring_peers, uint32_t flap_limit)
{
    static uint64_t version;
    Foliot__V1__Settings s = FOLIOT__V1__SETTINGS__INIT;

    s.version = ++version;
    s.config_version = version + 100;
    s.report_ms = 20000;
    s.beat_ms = 4000;
    s.mode = mode;
    s.ring_peers = ring_peers;
    s.flap_limit = flap_limit;
    agent_settings_take(&agent, &s);
    assert_int_equal(agent.settings.version, s.version);
}

static void in_force(enum switch_mode mode, uint32_t ring_peers, uint32_t flap_limit,
                     const char *refused)
{
    const struct agent_settings *own = &agent.settings;

    assert_int_equal(switch_page_read(agent.switch_shm.memory), mode);
    assert_int_equal(agent_settings_mode(&agent), mode);
    assert_int_equal(followed.ring_peers, ring_peers);
    assert_int_equal(followed.flap_limit, flap_limit);
    assert_string_equal(own->refused, refused);
    assert_int_equal(own->config_version, own->version + 100);
    assert_int_equal(own->report_ms, 20000);
    assert_int_equal(own->beat_ms, 4000);
}

/* An upgraded agent and an older controller: its jobs stay off, also if the agent starts with the file on its disk. */
static void one_bad_value_leaves_the_others(void **state)
{
    static const char ring[] = "ring_peers 2: this agent has no such value";

    (void)state;
    take(SWITCH_OBSERVE, 12, 3);
    in_force(SWITCH_OBSERVE, 12, 3, "");
    take(SWITCH_OFF, 2, 5);
    in_force(SWITCH_OFF, 0, 5, ring);
    agent_settings_close(&agent);
    followed = (struct node_settings){9, 9};
    assert_int_equal(agent_settings_open(&agent), 0);
    in_force(SWITCH_OFF, 0, 5, ring);
    take(SWITCH_OFF, 4, 5);
    in_force(SWITCH_OFF, 4, 5, "");
}

static void each_value_is_refused_by_itself(void **state)
{
    (void)state;
    take(SWITCH_OFF, 6, 200000);
    in_force(SWITCH_OFF, 6, 0, "flap_limit 200000: this agent has no such value");
    take(SWITCH_OFF, UINT32_MAX - 3, 7); /* if more were added it would be small */
    in_force(SWITCH_OFF, 0, 7, "ring_peers 4294967292: this agent has no such value");
    take(UINT32_MAX, UINT32_MAX, UINT32_MAX);
    in_force(SWITCH_OFF, 0, 0,
             "mode 4294967295, flap_limit 4294967295, ring_peers 4294967295: this agent has no "
             "such value");
    take(SWITCH_OBSERVE, 8, 0);
    take(SWITCH_FULL + 1, 8, 0); /* the one before stays, and after a start jobs may do the least */
    in_force(SWITCH_OBSERVE, 8, 0, "mode 5: this agent has no such value");
    agent_settings_close(&agent);
    agent.settings = (struct agent_settings){0};
    assert_int_equal(agent_settings_open(&agent), 0);
    in_force(SWITCH_OFF, 8, 0, "mode 5: this agent has no such value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_bad_value_leaves_the_others, begin, end),
        cmocka_unit_test_setup_teardown(each_value_is_refused_by_itself, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

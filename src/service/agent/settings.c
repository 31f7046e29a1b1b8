/* settings.c: the controller's settings for this host. They are kept over restarts. The mode goes to the jobs by the host's
 * switch page. Without the controller the last settings stay in force. */
#include <errno.h>
#include <foliot.pb-c.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "core/mesh/peers.h"
#include "platform/message/message.h"
#include "platform/tls/tls.h"
#include "service/agent/agent.h"

enum {
    REPORT_MS = 10000,
    BEAT_MS = 2000,
    FLAP_LIMIT_MAX = 100000,
    ARENA_SIZE = 65536,
    PATH_SIZE = AGENT_PATH_SIZE + 32
};

enum switch_mode agent_settings_mode(const struct agent *a)
{
    return switch_lesser((enum switch_mode)a->settings.mode, a->config->mode);
}

void agent_settings_publish(struct agent *a)
{
    const enum switch_mode mode = agent_settings_mode(a);
    const char *word = switch_mode_word(mode);
    if (a->switch_shm.memory != NULL && switch_page_write(a->switch_shm.memory, mode)) {
        agent_say(LOG_NOTICE, "the most that jobs on this host may do: %s",
                  word != NULL ? word : "what they were started for");
    }
}

static void refuse(struct agent_settings *own, const char *key, uint32_t value)
{
    const size_t used = strlen(own->refused);

    snprintf(own->refused + used, sizeof(own->refused) - used, "%s%s %u", used > 0 ? ", " : "", key,
             value);
}

static void take_values(struct agent *a, const Foliot__V1__Settings *s)
{
    struct agent_settings *own = &a->settings;
    const bool first = own->version == 0;
    own->version = s->version;
    own->config_version = s->config_version;
    own->report_ms = s->report_ms >= 1000 && s->report_ms <= 60000 ? s->report_ms : REPORT_MS;
    own->beat_ms = s->beat_ms >= 200 && s->beat_ms <= 60000 ? s->beat_ms : BEAT_MS;
    if (s->mode <= SWITCH_FULL) {
        own->mode = s->mode;
    } else {
        /* the value may be one that limits jobs: the old mode stays; after a start the lowest mode is used */
        refuse(own, "mode", s->mode);
        own->mode = first ? SWITCH_OFF : own->mode;
    }
}

static int tell_node(struct agent *a, const struct node_settings *node)
{
    recorder_append(a->recorder, NODE_EVENT_SETTINGS, a->now, node);
    return node_on_settings(a->node, a->now, node);
}

/* The controller may have another version. Each value that this agent can't follow is refused alone, because another value
 * (the mode) may have to limit jobs. */
static void apply(struct agent *a, const Foliot__V1__Settings *s)
{
    struct agent_settings *own = &a->settings;
    struct node_settings node = {s->ring_peers, s->flap_limit};

    own->refused[0] = 0;
    take_values(a, s);
    if (node.flap_limit > FLAP_LIMIT_MAX) {
        refuse(own, "flap_limit", node.flap_limit);
        node.flap_limit = 0;
    }
    if (node.ring_peers > PEERS_MOST || tell_node(a, &node) < 0) {
        refuse(own, "ring_peers", node.ring_peers);
        node.ring_peers = 0;
        const int r = tell_node(a, &node);
        ASSERT(r == 0); /* the node was created with these values */
    }
    if (own->refused[0] != 0) {
        const size_t used = strlen(own->refused);
        snprintf(own->refused + used, sizeof(own->refused) - used,
                 ": this agent has no such value");
        agent_say(LOG_ERR, "a part of the fleet's configuration %" PRIu64 " is refused: %s",
                  s->config_version, own->refused);
    }
    agent_settings_publish(a);
}

static void settings_path(const struct agent *a, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s/settings", a->config->state_dir);
}

void agent_settings_take(struct agent *a, const Foliot__V1__Settings *s)
{
    struct message_buffer bytes = {0};
    char path[PATH_SIZE];
    const uint64_t before = a->settings.config_version;
    if (s->version == a->settings.version && a->settings.version != 0) {
        return;
    }
    apply(a, s);
    settings_path(a, path);
    int r = message_encode(&s->base, &bytes);
    r = r < 0 ? r : tls_write_file(path, bytes.bytes, bytes.size, 0644);
    if (r < 0) {
        agent_say(LOG_WARNING, "%s: can't be written: %s", path, strerror(-r));
    }
    message_buffer_done(&bytes);
    if (a->settings.config_version != before) {
        agent_say(LOG_INFO, "the fleet's configuration %" PRIu64 " is in force%s",
                  a->settings.config_version,
                  a->settings.refused[0] != 0 ? " but for those values" : "");
    }
}

static int open_switch(struct agent *a)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/" SWITCH_PAGE_NAME, a->config->runtime_dir);
    int r = shm_open_write(&a->switch_shm, path, sizeof(struct switch_page));
    if (r == 0) {
        switch_page_init(a->switch_shm.memory);
        return 0;
    }
    r = shm_create(&a->switch_shm, path, sizeof(struct switch_page), 0644);
    if (r == 0) {
        switch_page_init(a->switch_shm.memory);
        r = shm_publish(&a->switch_shm);
    }
    if (r < 0) {
        agent_say(LOG_ERR, "%s: expected a page that can be made, found: %s", path, strerror(-r));
    }
    return r;
}

/* Loads the settings that were in force before this start. Only if a controller is configured. */
static void load(struct agent *a)
{
    struct message_arena arena;
    char path[PATH_SIZE];
    FILE *file = NULL;
    settings_path(a, path);
    if (a->config->controller[0] == 0 || (file = fopen(path, "re")) == NULL ||
        message_arena_init(&arena, ARENA_SIZE) < 0) {
        if (file != NULL) {
            fclose(file);
        }
        return;
    }
    uint8_t bytes[1024];
    const size_t size = fread(bytes, 1, sizeof(bytes), file);
    const Foliot__V1__Settings *s =
        message_decode(&arena, &foliot__v1__settings__descriptor, bytes, size);
    if (s != NULL) {
        apply(a, s);
    } else {
        agent_say(LOG_WARNING, "%s: can't be used: the controller sends it again", path);
    }
    message_arena_done(&arena);
    fclose(file);
}

int agent_settings_open(struct agent *a)
{
    a->settings = (struct agent_settings){.report_ms = REPORT_MS, .beat_ms = BEAT_MS};
    const int r = open_switch(a);
    if (r == 0) {
        load(a);
        agent_settings_publish(a);
    }
    return r;
}

void agent_settings_close(struct agent *a)
{
    shm_close(&a->switch_shm); /* the file stays with its contents */
}

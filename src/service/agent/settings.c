/* settings.c: what the controller says of how this host is to work: taken, kept over restarts, and passed on to the jobs
 * by the host's switch. Without the controller the last word stays in force. */
#include <errno.h>
#include <foliot.pb-c.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "platform/message/message.h"
#include "platform/tls/tls.h"
#include "service/agent/agent.h"

enum { REPORT_MS = 10000, BEAT_MS = 2000, ARENA_SIZE = 65536, PATH_SIZE = AGENT_PATH_SIZE + 32 };

enum switch_mode agent_settings_mode(const struct agent *a)
{
    return switch_lesser((enum switch_mode)a->settings.mode, a->config->mode);
}

void agent_settings_publish(struct agent *a)
{
    const enum switch_mode mode = agent_settings_mode(a);
    const char *word = switch_mode_word(mode);
    if (a->switch_shm.memory != NULL && switch_page_write(a->switch_shm.memory, mode)) {
        agent_say(LOG_NOTICE, "jobs on this host may do: %s",
                  word != NULL ? word : "what they were started for");
    }
}

static void take_values(struct agent *a, const Foliot__V1__Settings *s)
{
    struct agent_settings *own = &a->settings;
    own->report_ms = s->report_ms >= 1000 && s->report_ms <= 60000 ? s->report_ms : REPORT_MS;
    own->beat_ms = s->beat_ms >= 200 && s->beat_ms <= 60000 ? s->beat_ms : BEAT_MS;
    own->mode = s->mode;
    own->config_version = s->config_version;
    own->refused[0] = 0;
}

/* What can't be followed is refused whole: half of a configuration is nobody's. */
static int apply(struct agent *a, const Foliot__V1__Settings *s)
{
    struct agent_settings *own = &a->settings;
    const struct node_settings node = {s->ring_peers, s->flap_limit};
    own->version = s->version;
    if (s->mode > SWITCH_FULL || s->flap_limit > 100000 || s->ring_peers > NIC_EDGE_MAX) {
        snprintf(own->refused, sizeof(own->refused), "a value is out of its range");
        return -EINVAL;
    }
    recorder_append(a->recorder, NODE_EVENT_SETTINGS, a->now, &node);
    if (node_on_settings(a->node, a->now, &node) < 0) {
        snprintf(own->refused, sizeof(own->refused), "ring_peers %u doesn't fit this agent",
                 s->ring_peers);
        return -EINVAL;
    }
    take_values(a, s);
    agent_settings_publish(a);
    return 0;
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
    if (apply(a, s) < 0) {
        agent_say(LOG_ERR, "the fleet's configuration %" PRIu64 " is refused: %s",
                  s->config_version, a->settings.refused);
        return;
    }
    settings_path(a, path);
    int r = message_encode(&s->base, &bytes);
    r = r < 0 ? r : tls_write_file(path, bytes.bytes, bytes.size, 0644);
    if (r < 0) {
        agent_say(LOG_WARNING, "%s: can't be written: %s", path, strerror(-r));
    }
    message_buffer_done(&bytes);
    if (a->settings.config_version != before) {
        agent_say(LOG_INFO, "the fleet's configuration %" PRIu64 " is in force",
                  a->settings.config_version);
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

/* What was in force before this start, while a controller is configured at all. */
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
    if (s == NULL || apply(a, s) < 0) {
        agent_say(LOG_WARNING, "%s: can't be used: the controller sends it again", path);
        a->settings.version = 0;
        a->settings.refused[0] = 0;
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
    shm_close(&a->switch_shm); /* the file stays, and what it says */
}

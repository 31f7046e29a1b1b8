/* state.c: state that survives a restart of the agent: maps, delays, paths. It is used only in the same boot and with the same
 * clocks. */
#include "service/agent/agent.h"

#include "base/prng.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#define STATE_NAME    "agent.state"
#define STATE_MAGIC   0x3154415453464fULL /* "OFSTAT1" */
#define STATE_AGE_MAX (600 * NS_PER_S)

struct head {
    uint64_t magic, layout, sum; /* sum: checksum of the bytes after the head */
    char boot_id[40], clocksource[64], version[16];
    int64_t saved_ns;     /* CLOCK_MONOTONIC */
    int64_t suspended_ns; /* total time that the host had slept when this was saved */
    uint64_t marker;      /* VMClock's marker */
    uint64_t size;
};

static void fill_head(struct agent *a, struct head *head)
{
    int64_t raw, coarse;
    *head = (struct head){.magic = STATE_MAGIC, .layout = codec_layout(), .saved_ns = a->now.ns};
    snprintf(head->boot_id, sizeof(head->boot_id), "%s", time_source_boot_id(a->source));
    snprintf(head->clocksource, sizeof(head->clocksource), "%s",
             time_source_clocksource(a->source));
    snprintf(head->version, sizeof(head->version), "%s", FOLIOT_VERSION);
    time_source_pass(a->source, &raw, &coarse, &head->suspended_ns, &head->marker);
}

static int write_file(const char *path, const struct head *head, const uint8_t *bytes)
{
    char temporary[AGENT_PATH_SIZE + 40];
    snprintf(temporary, sizeof(temporary), "%s.new", path);
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return -errno;
    }
    int r = 0;
    if (write(fd, head, sizeof(*head)) != (ssize_t)sizeof(*head) ||
        write(fd, bytes, head->size) != (ssize_t)head->size) {
        r = errno != 0 ? -errno : -ENOSPC;
    }
    /* no fsync: after a crash of the machine it is another boot, and the state is useless. The checksum finds half-written
     * files. */
    if (close(fd) < 0 && r == 0) {
        r = -errno;
    }
    if (r == 0 && rename(temporary, path) < 0) {
        r = -errno;
    }
    if (r < 0) {
        unlink(temporary);
    }
    return r;
}

static void state_path(const struct agent *a, char path[AGENT_PATH_SIZE + 32])
{
    snprintf(path, AGENT_PATH_SIZE + 32, "%s/" STATE_NAME, a->config->state_dir);
}

void agent_state_save(struct agent *a)
{
    char path[AGENT_PATH_SIZE + 32];
    struct head head;
    fill_head(a, &head);
    head.size = node_saved_size(a->node);
    uint8_t *bytes = malloc(head.size + 1);
    if (bytes == NULL) {
        return;
    }
    node_save(a->node, a->now, bytes);
    head.sum = hash_bytes(head.size, bytes, head.size);
    state_path(a, path);
    errno = 0;
    const int r = write_file(path, &head, bytes);
    free(bytes);
    if (r < 0 && !a->state_trouble) {
        agent_say(LOG_WARNING,
                  "%s: can't be written (%s): a restart will be a cold one. Tried again every 10 s",
                  path, strerror(-r));
    } else if (r == 0 && a->state_trouble) {
        agent_say(LOG_NOTICE, "%s: can be written again", path);
    }
    a->state_trouble = r < 0;
}

/* Why a saved state can't be used; NULL: it can. */
static const char *unfit(struct agent *a, const struct head *head, const uint8_t *bytes)
{
    struct head now;
    fill_head(a, &now);
    if (head->magic != now.magic || head->layout != now.layout ||
        strncmp(head->version, now.version, sizeof(now.version)) != 0) {
        return "another version wrote it";
    }
    if (strncmp(head->boot_id, now.boot_id, sizeof(now.boot_id)) != 0) {
        return "the machine has booted since";
    }
    if (strncmp(head->clocksource, now.clocksource, sizeof(now.clocksource)) != 0) {
        return "the clock source changed";
    }
    if (now.suspended_ns - head->suspended_ns > 5 * NS_PER_MS || head->marker != now.marker) {
        return "the host slept or was moved since";
    }
    if (now.saved_ns < head->saved_ns || now.saved_ns - head->saved_ns > STATE_AGE_MAX) {
        return "it is older than 10 minutes";
    }
    return hash_bytes(head->size, bytes, head->size) == head->sum ? NULL : "it is damaged";
}

void agent_state_load(struct agent *a)
{
    char path[AGENT_PATH_SIZE + 32];
    struct head head;
    const char *why = NULL;
    state_path(a, path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return; /* the first start on this host */
    }
    uint8_t *bytes = NULL;
    if (read(fd, &head, sizeof(head)) != (ssize_t)sizeof(head) || head.size > 16 << 20 ||
        (bytes = malloc(head.size + 1)) == NULL ||
        read(fd, bytes, head.size) != (ssize_t)head.size) {
        why = "it is incomplete";
    } else {
        why = unfit(a, &head, bytes);
    }
    close(fd);
    if (why == NULL) {
        if (node_restore(a->node, a->now, bytes, head.size) < 0) {
            why = "its clock was not in step, or its NICs are others";
        } else {
            recorder_restored(a->recorder, bytes, head.size);
        }
    }
    agent_say(LOG_INFO,
              why == NULL ? "warm start from a state of %lld s ago%s"
                          : "cold start: the saved state is %lld s old, but %s",
              (long long)((a->now.ns - head.saved_ns) / NS_PER_S), why != NULL ? why : "");
    free(bytes);
}

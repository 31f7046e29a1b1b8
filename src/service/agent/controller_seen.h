/* controller_seen.h: which controller last answered this host, and when, for the next one to judge (BatchReply.controller in
 * proto/foliot.proto). In a file of state_dir over restarts; without the file it is not known. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "service/agent/config.h"

#define CONTROLLER_TOKEN_MAX 64
#define CONTROLLER_TOKEN_START                                                                     \
    12 /* bytes: which start of which controller; what comes after changes while it serves */

struct controller_seen {
    uint8_t token[CONTROLLER_TOKEN_MAX];
    size_t size;   /* 0: none yet */
    int64_t at_ns; /* CLOCK_MONOTONIC; before the boot of one that was kept */
    char path[AGENT_PATH_SIZE + 40];
};

void controller_seen_open(struct controller_seen *s, const char *state_dir, int64_t now_ns);
/* It answered. Another start's token than the last is kept at once; -errno: it can't be. */
int controller_seen_take(struct controller_seen *s, const void *token, size_t size, int64_t now_ns);
int controller_seen_save(const struct controller_seen *s, int64_t now_ns);
/* At least 1; 0: not known. */
uint64_t controller_seen_ago_ms(const struct controller_seen *s, int64_t now_ns);

/* controller_seen.h: which controller answered this host last, and when. The agent sends this to the next controller, which
 * judges it (BatchReply.controller in proto/foliot.proto). A file in state_dir keeps it over restarts. Without the file it is
 * not known. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "service/agent/config.h"

#define CONTROLLER_TOKEN_MAX 64
/* Size of a token's first part: it identifies one start of one controller. The rest of the token changes while the controller
 * runs. */
#define CONTROLLER_TOKEN_START 12

struct controller_seen {
    uint8_t token[CONTROLLER_TOKEN_MAX];
    size_t size;   /* 0: none yet */
    int64_t at_ns; /* CLOCK_MONOTONIC; from a kept file it may be before the boot */
    char path[AGENT_PATH_SIZE + 40];
};

void controller_seen_open(struct controller_seen *s, const char *state_dir, int64_t now_ns);
/* The controller has answered. If the token is of another start than the last one, it is written at once; -errno if that
 * fails. */
int controller_seen_take(struct controller_seen *s, const void *token, size_t size, int64_t now_ns);
int controller_seen_save(const struct controller_seen *s, int64_t now_ns);
/* Age of the last answer, at least 1; 0: not known. */
uint64_t controller_seen_ago_ms(const struct controller_seen *s, int64_t now_ns);

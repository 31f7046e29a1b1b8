/* instance.h: finds the newest of several controllers that serve copies of one store.
 *
 * place.c recognises a copy by its file and machine. That fails for a cloned virtual machine, which has the same file and
 * machine, and for two copies that were both taken over, because each is at its own place. Agents detect these cases. Each
 * start of a controller has a generation, which is greater than that of every earlier start, and a random id. Each answer to
 * an agent has both, with a code (HMAC-SHA-256) under the authority's key. All copies have this key, and no host has it.
 * Agents keep the last answer's token and send it with each batch. So a controller finds out if a host had an answer from
 * another copy. If that copy is newer, this controller stops for good (instance_hear). If it is older and still serves, there
 * is an alert.
 *
 * The time of an answer does not depend on a host's claim. The token has the time since its generation, by the controller's
 * UTC, under the same code. Otherwise one host with a token from before a restore could report it as new at any time. The time
 * since the controller's start can't be used: it stands still while a machine sleeps, and a start's generation may be ahead of
 * UTC.
 *
 * A generation is the start's UTC in ms, or one more than the last one if the clock is behind that. A copy of a running
 * machine with its memory (a snapshot that is resumed twice) has the same generation and id until one of the copies starts
 * again. This case is not found. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/time.h"
#include "platform/store/store.h"

#define INSTANCE_TOKEN_SIZE 32
#define INSTANCE_SLOT_MS    10000
#define INSTANCE_KEPT       64 /* own starts that are kept; older ones count as own starts */

struct controller;

struct instance_start {
    uint64_t generation; /* 0: none */
    /* random; in an answer its upper half is the time since the generation, in INSTANCE_SLOT_MS */
    uint64_t id;
};

struct instance {
    /* newest first; [0] is this start once it serves */
    struct instance_start starts[INSTANCE_KEPT];
    size_t count;
    uint64_t most;               /* the greatest generation ever heard of */
    struct instance_start newer; /* the start that made this one stop */
    struct mono since;           /* start of serving */
    struct mono other;           /* time of the last answer of another copy, from that answer */
    bool other_known;
};

enum instance_verdict { INSTANCE_GO_ON, INSTANCE_STOP };

/* Reads the store. -ESTALE, logged: a host reported a newer controller; c->is_copy is set. */
MUST_CHECK int instance_load(struct controller *c);
/* This controller serves from now on. The generation is on the disk before any answer has it. */
MUST_CHECK int instance_begin(struct controller *c);
/* The token for an agent. moment: with the present time. An agent without FEATURE_MOMENT takes each other token for another
 * controller and syncs its disk. So it gets a token without time. -EIO. */
MUST_CHECK int instance_token(const struct controller *c, bool moment,
                              uint8_t ret[INSTANCE_TOKEN_SIZE]);
/* Called after a takeover or a restore: the next start is newer than all starts ever heard of. Commits. */
MUST_CHECK int instance_take(struct store *s);
/* token: the last one that an agent got from a controller; ago_ms: the time since that controller's last answer. A token that
 * no controller of this authority made is ignored. STOP: a newer controller serves; this is stored and logged. */
enum instance_verdict instance_hear(struct controller *c, const char *host, const void *token,
                                    size_t size, uint64_t ago_ms);
/* Number of other copies that served within the last hour: 0 or 1. */
unsigned instance_others(const struct controller *c);

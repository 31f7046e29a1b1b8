/* instance.h: which of the controllers that serve copies of one store is the newest.
 *
 * place.c finds a copy by its file and machine. A cloned virtual machine has the same of both, and of two copies that were both
 * taken over each is at its place. Agents tell these apart. Each start of a controller has a generation, which is larger than
 * that of every start before it, and a random id. Each answer to an agent holds both, with a code (HMAC-SHA-256) under the
 * authority's key, which all copies have and no host has. Agents keep the last one and send it with each batch. So a controller
 * learns from whoever spoke with another copy: a newer one makes it stop for good (instance_hear), an older one that goes on
 * serving is an alert here.
 *
 * WHEN it served is no host's word: the answer holds how much later than its generation it was given by the controller's UTC,
 * under the same code. Else one host with an answer of before a restore could tell at any time that it had just come. Time since
 * the start wouldn't do: it stands still while a machine sleeps, and a start's generation may be ahead of UTC.
 *
 * A generation is the start's UTC time in ms, or one more than the last where the clock is behind that. A copy of a running
 * machine with its memory (a snapshot that is resumed twice) has the same generation and id until either starts anew. That isn't
 * found. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/time.h"
#include "platform/store/store.h"

#define INSTANCE_TOKEN_SIZE 32
#define INSTANCE_SLOT_MS    10000
#define INSTANCE_KEPT       64 /* own starts that are remembered: an older one is taken for an own one */

struct controller;

struct instance_start {
    uint64_t generation; /* 0: none */
    uint64_t id; /* random; in an answer its upper half: how much later, in INSTANCE_SLOT_MS */
};

struct instance {
    struct instance_start starts[INSTANCE_KEPT]; /* newest first; [0] is this one once it serves */
    size_t count;
    uint64_t most;               /* the largest generation that was ever heard of */
    struct instance_start newer; /* what made this one stop */
    struct mono since;           /* this one serves */
    struct mono other;           /* another copy served, as its own answer tells */
    bool other_known;
};

enum instance_verdict { INSTANCE_GO_ON, INSTANCE_STOP };

/* What the store remembers. -ESTALE, logged: this one was told of a newer one; c->is_copy is set. */
MUST_CHECK int instance_load(struct controller *c);
/* This one serves from now on: written to the disk before anybody hears of it. */
MUST_CHECK int instance_begin(struct controller *c);
/* What an agent is given; moment: with the time of now. An agent without FEATURE_MOMENT takes each other token for another
 * controller and syncs its disk: it gets the start alone, which tells of no later time. -EIO. */
MUST_CHECK int instance_token(const struct controller *c, bool moment,
                              uint8_t ret[INSTANCE_TOKEN_SIZE]);
/* After a takeover or a restore: the next start is newer than all that were ever heard of. Commits. */
MUST_CHECK int instance_take(struct store *s);
/* What an agent was last given by a controller, and how long ago it last heard from that one, in ms. A token that no controller
 * of this authority made counts for nothing. STOP: a newer one serves, which is stored and logged. */
enum instance_verdict instance_hear(struct controller *c, const char *host, const void *token,
                                    size_t size, uint64_t ago_ms);
/* Copies beside this one that served within the last hour: 0 or 1. */
unsigned instance_others(const struct controller *c);

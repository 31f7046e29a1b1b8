/* recorder.h: the last minutes of everything that a node was told, on disk, and the way back.
 *
 * The node is deterministic: what it was told is all that is needed to see again what it decided.
 * The recorder appends each event, packed against the last one of its kind (most bytes repeat), to
 * segments of a ring of files in the state directory; a segment covers a minute at most, the oldest
 * goes when the ring covers the wanted time or its size. Memory: one buffer of
 * RECORDER_BUFFER_SIZE. A disk that is full stops the recording, never the agent; it is tried again
 * with the next segment.
 *
 * A recording is one file: a header, the node's configuration and fleet, then the events
 * (record.h's format). */
#pragma once
#include "base/bug.h"
#include "core/node/node.h"

#include <stddef.h>
#include <stdint.h>

struct recorder;

#define RECORDER_KEEP_NS     (600 * NS_PER_S)
#define RECORDER_SEGMENT_NS  (120 * NS_PER_S)
#define RECORDER_BUFFER_SIZE (64 << 10)

/* In `directory`, which must exist. bytes_max: of all segments; 0: records nothing. Removes a
 * previous agent's. */
MUST_CHECK int recorder_open(struct recorder **ret_recorder, const char *directory,
                             int64_t bytes_max);
struct recorder *
recorder_close(struct recorder *r); /* NULL is fine; removes the segments; returns NULL */
/* A new node began: what was recorded before is forgotten. */
void recorder_start(struct recorder *r, const struct node_config *config, struct mono now);
/* Right after recorder_start: the node began with this saved state. */
void recorder_restored(struct recorder *r, const void *bytes, size_t size);
/* The node, when it lives in the arena in use: what copies are taken of. It must not be in the
 * middle of a call. */
void recorder_node(struct recorder *r, const struct node *node);
/* NODE_EVENT_PEERS: event is a struct mesh_fleet. NULL recorder is fine. */
void recorder_append(struct recorder *r, enum node_event_kind kind, struct mono now,
                     const void *event);
/* The node gave this finding: for replays to compare with. Before recorder_drained. */
void recorder_finding(struct recorder *r, const struct finding *finding);
/* The driver took all of the node's actions: when it does is part of what the node was told. */
void recorder_drained(struct recorder *r);
/* The recording so far as one open file (O_TMPFILE), offset 0; the caller closes it. */
struct recording {
    int fd;
    int64_t size, events;
    struct mono oldest, newest;
};
MUST_CHECK int recorder_save(struct recorder *r, struct recording *ret_recording);

struct recorder_report {
    int64_t bytes, events, dropped;
    struct mono oldest;
    int error; /* errno of the last failure, 0: none */
};
void recorder_report_get(const struct recorder *r, struct recorder_report *ret_report);

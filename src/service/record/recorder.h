/* recorder.h: records the last minutes of all input of a node on the disk, and makes recordings of it.
 *
 * The node is deterministic. So its input is enough to see its decisions again. The recorder appends each event to segments of
 * a ring of files in the state directory. An event is packed against the last one of its kind, because most bytes are equal. A
 * segment covers two minutes at most. The oldest segment is dropped when the ring covers the wanted time or reaches its size.
 * Memory: one buffer of RECORDER_BUFFER_SIZE. A full disk stops the recording, never the agent. The recorder tries again after
 * 10 s.
 *
 * A recording is one file: a header, the node's configuration and fleet, then the events (record.h's format). */
#pragma once
#include "base/bug.h"
#include "core/node/node.h"

#include <stddef.h>
#include <stdint.h>

struct recorder;

#define RECORDER_KEEP_NS     (600 * NS_PER_S)
#define RECORDER_SEGMENT_NS  (120 * NS_PER_S)
#define RECORDER_BUFFER_SIZE (64 << 10)

/* Opens a recorder in `directory`, which must exist. bytes_max: for all segments; 0: records nothing. Removes the segments of
 * an earlier agent. */
MUST_CHECK int recorder_open(struct recorder **ret_recorder, const char *directory,
                             int64_t bytes_max);
struct recorder *
recorder_close(struct recorder *r); /* accepts NULL; removes the segments; returns NULL */
/* A new node has started: earlier events are dropped. */
void recorder_start(struct recorder *r, const struct node_config *config, struct mono now);
/* Called right after recorder_start: the saved state that the node began with. */
void recorder_restored(struct recorder *r, const void *bytes, size_t size);
/* The node, if it lives in the arena: copies are made of it. It must not be inside a call. */
void recorder_node(struct recorder *r, const struct node *node);
/* For NODE_EVENT_PEERS event is a struct mesh_fleet. r may be NULL. */
void recorder_append(struct recorder *r, enum node_event_kind kind, struct mono now,
                     const void *event);
/* Records a finding of the node, so that a replay can be compared with it. Called before recorder_drained. */
void recorder_finding(struct recorder *r, const struct finding *finding);
/* The driver took all of the node's actions. The time of this is part of the node's input. */
void recorder_drained(struct recorder *r);
/* The recording so far as one open file (O_TMPFILE), at offset 0. The caller closes it. */
struct recording {
    int fd;
    int64_t size, events;
    struct mono oldest, newest;
};
MUST_CHECK int recorder_save(struct recorder *r, struct recording *ret_recording);

struct recorder_report {
    int64_t bytes, events, dropped;
    struct mono oldest;
    int error; /* errno of the last failure; 0: none */
};
void recorder_report_get(const struct recorder *r, struct recorder_report *ret_report);

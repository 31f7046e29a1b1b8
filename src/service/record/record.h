/* record.h: reads a recording: a file with all input of one node.
 *
 *   struct record_head
 *   struct node_config, pointers zero
 *   the fleet: u64 seed, u32 NICs, u32 routers, then the arrays
 *   the saved state that the node began with (node_restore), or the copy of the arena that it lived in
 *   segments of events (codec.h), each with its end and checksum; a peers event is followed by a fleet as above
 *
 * Reading events is total: any bytes give events that the node accepts, and then an end, -EPROTO or -ENODATA. A recording that
 * begins with a copy of a node is trusted when it is played: play such recordings only from people whom you trust. */
#pragma once
#include "service/record/codec.h"

#define RECORD_MAGIC   0x3143455246ULL /* "FREC1" */
#define RECORD_VERSION 2
#define RECORD_WHOLE   1u /* from the node's start */

struct record_head {
    uint64_t magic;
    uint32_t version, flags;
    uint64_t layout; /* see codec.h */
    int64_t birth_ns;
    uint64_t restored_size, copy_size; /* 0: none */
    uint64_t node;                     /* the node's address in the arena */
};

struct record;

/* -EPROTO: no recording, or its head is damaged; -ESTALE: of another build; else the error of open or mmap. */
MUST_CHECK int record_open(struct record **ret_record, const char *path);
MUST_CHECK int record_open_memory(struct record **ret_record, const void *bytes,
                                  size_t size); /* the bytes are copied */
struct record *record_close(struct record *r);  /* accepts NULL; returns NULL */

struct mono record_birth(const struct record *r);
bool record_whole(const struct record *r);
/* Reads the next event (or CODEC_DRAIN, CODEC_FINDING), valid until the next call. Returns 1; 0: the end; -EPROTO: damage
 * here, or (at a segment's end) somewhere in this segment; -ENODATA: the file was cut here. For NODE_EVENT_PEERS the event is
 * a struct mesh_fleet; its arrays are valid until the record is closed. */
MUST_CHECK int record_next(struct record *r, enum node_event_kind *ret_kind, struct mono *ret_now,
                           const void **ret_event);

/* The results of a replay, and the differences from the recording. */
struct record_outcome {
    long events, actions;
    /* different: recorded findings that are missing or not equal in the replay, and extra ones */
    long findings, different;
    /* 0: played to the end. Else the error of record_next; the other fields are about the events before it */
    int damage;
    size_t damage_at; /* offset in the file */
};
/* Plays the whole record into a new node, or into the copy that it begins with. Then *ret_node lives in the arena: free it
 * with arena_close. -ENOTSUP: it does not begin at the node's start and has no copy. -EACCES: it begins with a copy and
 * !trust_copy. A copy is memory with pointers and is used as it is: its author could make this process do anything. on_action
 * gets each action. */
MUST_CHECK int
record_play(struct record *r, bool trust_copy,
            void (*on_action)(void *context, struct mono now, const struct node_action *),
            void *context, struct node **ret_node, struct record_outcome *ret_outcome);

/* Shared with the recorder. */
size_t record_fleet_size(const struct mesh_fleet *fleet);
void record_fleet_write(const struct mesh_fleet *fleet, uint8_t *bytes);

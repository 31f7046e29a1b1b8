/* record.h: reading a recording: a file of everything that one node was told.
 *
 *   struct record_head
 *   struct node_config as it is, pointers zero
 *   the fleet: u64 seed, u32 NICs, u32 routers, then the arrays as they are
 *   the saved state that the node began with (node_restore), or the copy of the arena that it lived
 * in segments of events (codec.h), each with its end and sum; a peers event is followed by a fleet
 * as above
 *
 * Reading events is total: any bytes give events that the node takes, and then an end, -EPROTO or
 * -ENODATA.
 * Playing a recording that begins with a copy of a node trusts that copy: play recordings of people
 * whom you trust. */
#pragma once
#include "service/record/codec.h"

#define RECORD_MAGIC   0x3143455246ULL /* "FREC1" */
#define RECORD_VERSION 2
#define RECORD_WHOLE   1u /* from the node's birth */

struct record_head {
    uint64_t magic;
    uint32_t version, flags;
    uint64_t layout; /* codec.h */
    int64_t birth_ns;
    uint64_t restored_size, copy_size; /* 0: none */
    uint64_t node;                     /* where in the arena it lives */
};

struct record;

/* -EPROTO: not a recording, or damaged at its head; -ESTALE: of another build; else what open or
 * mmap said. */
MUST_CHECK int record_open(struct record **ret_record, const char *path);
MUST_CHECK int record_open_memory(struct record **ret_record, const void *bytes,
                                  size_t size); /* copied */
struct record *record_close(struct record *r);  /* NULL is fine; returns NULL */

struct mono record_birth(const struct record *r);
bool record_whole(const struct record *r);
/* The next event (or CODEC_DRAIN, CODEC_FINDING), valid until the next call: 1; 0: the end;
 * -EPROTO: damaged here, or (at a segment's end) somewhere in this segment; -ENODATA: the file was
 * cut here. For NODE_EVENT_PEERS the event is a struct mesh_fleet whose arrays stay
 * valid until the record is closed. */
MUST_CHECK int record_next(struct record *r, enum node_event_kind *ret_kind, struct mono *ret_now,
                           const void **ret_event);

/* What a replay says beside what was said then. */
struct record_outcome {
    long events, actions;
    long findings, different; /* of the recorded findings; those that weren't given again to the
                                 bit, or in excess */
    int damage;               /* 0: played to its end. Else what record_next said: the above is of
                                 what came before */
    size_t damage_at;         /* byte of the file */
};
/* Plays the whole record into a new node, or into the copy that it begins with (*ret_node then
 * lives in the arena: free it by arena_close). -ENOTSUP: it doesn't reach back to the node's birth
 * and has no copy. -EACCES: it begins with a copy and !trust_copy: a copy is memory with pointers,
 * taken as it is; whoever made it could make this process do anything. Each action is handed to
 * `on_action`. */
MUST_CHECK int
record_play(struct record *r, bool trust_copy,
            void (*on_action)(void *context, struct mono now, const struct node_action *),
            void *context, struct node **ret_node, struct record_outcome *ret_outcome);

/* Shared with the recorder. */
size_t record_fleet_size(const struct mesh_fleet *fleet);
void record_fleet_write(const struct mesh_fleet *fleet, uint8_t *bytes);

/* record.h: reading a recording: a file of everything that one node was told.
 *
 *   u64 magic, u32 version, u32 flags (RECORD_WHOLE: from the node's birth)
 *   u64 layout (codec.h), i64 time of birth
 *   struct node_config as it is, pointers zero
 *   the fleet: u64 seed, u32 NICs, u32 routers, then the arrays as they are
 *   segments of events (codec.h), each ended by a zero byte; a peers event is followed by a fleet
 * as above
 *
 * Total: any bytes give events that the node takes, and then an end or -EPROTO. */
#pragma once
#include "service/record/codec.h"

#define RECORD_MAGIC   0x3143455246ULL /* "FREC1" */
#define RECORD_VERSION 1
#define RECORD_WHOLE   1u

struct record;

/* -EPROTO: not a recording, or damaged at its head; -ESTALE: of another build; else what open or
 * mmap said. */
MUST_CHECK int record_open(struct record **ret_record, const char *path);
MUST_CHECK int record_open_memory(struct record **ret_record, const void *bytes,
                                  size_t size); /* copied */
struct record *record_close(struct record *r);  /* NULL is fine; returns NULL */

/* For node_new; the fleet's arrays belong to the record. */
const struct node_config *record_config(const struct record *r);
struct mono record_birth(const struct record *r);
bool record_whole(const struct record *r);
/* The next event, valid until the next call: 1; 0: the end; -EPROTO: damaged here. For
 * NODE_EVENT_PEERS the event is a struct node_fleet whose arrays stay valid until the record is
 * closed. */
MUST_CHECK int record_next(struct record *r, enum node_event_kind *ret_kind, struct mono *ret_now,
                           const void **ret_event);

/* Plays the whole record into a new node; each action is handed to `on_action`. Returns the number
 * of events, or an error. */
MUST_CHECK long record_play(struct record *r,
                            void (*on_action)(void *context, struct mono now,
                                              const struct node_action *),
                            void *context, struct node **ret_node);

/* Shared with the recorder. */
size_t record_fleet_size(const struct node_fleet *fleet);
void record_fleet_write(const struct node_fleet *fleet, uint8_t *bytes);

/* brain_record.h: all that a fleet's brain was told, in one file, and told again.
 *
 * A file begins with a head, goes on with segments of records (brain_codec.h), each with its size and a sum, and ends with an
 * empty one: a file that was cut, or that lacks a segment, is never taken for a whole one. A segment is looked through before
 * any of it is used. A recording belongs to the build that made it, and reaches back to the brain's birth. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "core/brain/brain.h"

#define BRAIN_RECORD_SEGMENT     (1 << 20) /* bytes, about */
#define BRAIN_RECORD_SEGMENT_MAX (64 << 20)

/* ---- writing ---- */
struct brain_recorder;
struct brain_recorder_report {
    int64_t bytes, facts;
    bool full;
    int error; /* errno of the write that ended it; 0: none */
};
/* The file is made anew, for its owner only. bytes_max: it ends there. */
MUST_CHECK int brain_recorder_open(struct brain_recorder **ret, const char *path, int64_t bytes_max,
                                   int64_t utc_ns);
/* To be given to brain_witness. */
struct brain_witness brain_recorder_witness(struct brain_recorder *r);
/* What was told so far is in the file. Some times a minute: what isn't is lost with the process. */
void brain_recorder_flush(struct brain_recorder *r); /* NULL is fine */
struct brain_recorder_report brain_recorder_report(const struct brain_recorder *r);
/* With the end mark. NULL is fine; returns NULL. */
struct brain_recorder *brain_recorder_close(struct brain_recorder *r);

/* The whole segments of a file that is being written, as a recording of its own. `to` must not be there. -EPROTO, -ESTALE: as
 * brain_record_open; -ENODATA: nothing is in it yet. */
MUST_CHECK int brain_record_copy(const char *from, const char *to, int64_t *ret_bytes);

/* ---- playing ---- */
struct brain_record;
/* -EPROTO: no recording; -ESTALE: of another build; else what open or read said. */
MUST_CHECK int brain_record_open(struct brain_record **ret, const char *path);
MUST_CHECK int brain_record_open_memory(struct brain_record **ret, const void *bytes,
                                        size_t size); /* the caller's, as long as it is open */
struct brain_record *brain_record_close(struct brain_record *r); /* NULL is fine; returns NULL */
/* Does it begin like one? For those who take recordings of hosts, too. */
bool brain_record_is(const char *path);

struct brain_outcome {
    int64_t utc_ns; /* of its begin */
    struct mono first, last;
    uint64_t facts, names;
    uint64_t answers;   /* that were recorded, what follows a damage aside */
    uint64_t different; /* of these, and names that were asked for here only */
    uint64_t events,
        incidents;      /* told again: hosts that fell silent or are heard; changes of incidents */
    int damage;         /* 0: played to its end; -EPROTO: damaged; -ENODATA: cut */
    uint64_t damage_at; /* byte of the file */
};
/* Tells all of it to a new brain. Each answer is handed to `on_answer` (may be NULL), whether it is the recorded one or not.
 * -ENOMEM. */
MUST_CHECK int brain_record_play(struct brain_record *r,
                                 void (*on_answer)(void *context, struct mono now,
                                                   enum brain_fact fact,
                                                   const struct brain_answer *answer),
                                 void *context, struct brain_outcome *ret);

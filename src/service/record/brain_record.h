/* brain_record.h: all input of a fleet's brain in one file, and its replay.
 *
 * A file has a head, then segments of records (brain_codec.h), each with its size and a checksum, then an empty segment. So a
 * file that was cut, or that lacks a segment, is always detected. A segment is checked before any of it is used. A recording
 * can be read only by the build that made it. It begins at the start of the brain. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "core/brain/brain.h"

#define BRAIN_RECORD_SEGMENT     (1 << 20) /* approximate size in bytes */
#define BRAIN_RECORD_SEGMENT_MAX (64 << 20)

/* ---- writing ---- */
struct brain_recorder;
struct brain_recorder_report {
    int64_t bytes, facts;
    bool full;
    int error; /* errno of the write that ended the recording; 0: none */
};
/* Makes a new file that only its owner may read. bytes_max: the recording ends at this size. */
MUST_CHECK int brain_recorder_open(struct brain_recorder **ret, const char *path, int64_t bytes_max,
                                   int64_t utc_ns);
/* For brain_witness(). */
struct brain_witness brain_recorder_witness(struct brain_recorder *r);
/* Writes the input so far to the file; called some times per minute. Input that is not written is lost if the process ends. */
void brain_recorder_flush(struct brain_recorder *r); /* NULL is fine */
struct brain_recorder_report brain_recorder_report(const struct brain_recorder *r);
/* Writes the end mark. Accepts NULL; returns NULL. */
struct brain_recorder *brain_recorder_close(struct brain_recorder *r);

/* Copies the complete segments of a file that is being written into a recording of its own. `to` must not exist. -EPROTO,
 * -ESTALE: as in brain_record_open; -ENODATA: the file is still empty. */
MUST_CHECK int brain_record_copy(const char *from, const char *to, int64_t *ret_bytes);

/* ---- playing ---- */
struct brain_record;
/* -EPROTO: no recording; -ESTALE: of another build; else the error of open or read. */
MUST_CHECK int brain_record_open(struct brain_record **ret, const char *path);
MUST_CHECK int
brain_record_open_memory(struct brain_record **ret, const void *bytes,
                         size_t size); /* the caller keeps the bytes while the record is open */
struct brain_record *brain_record_close(struct brain_record *r); /* NULL is fine; returns NULL */
/* True if the file begins like a recording of a brain. For programs that accept recordings of hosts, too. */
bool brain_record_is(const char *path);

struct brain_outcome {
    int64_t utc_ns; /* time of its beginning */
    struct mono first, last;
    uint64_t facts, names;
    uint64_t answers;   /* recorded answers, without those behind a damage */
    uint64_t different; /* answers that differ, and names that only the replay asked for */
    uint64_t events,
        /* in the replay: hosts that fell silent or came back; changes of incidents */
        incidents;
    int damage;         /* 0: played to the end; -EPROTO: damaged; -ENODATA: cut */
    uint64_t damage_at; /* offset in the file */
};
/* Replays all input in a new brain. on_answer (may be NULL) gets each answer, also those that differ from the recording.
 * -ENOMEM. */
MUST_CHECK int brain_record_play(struct brain_record *r,
                                 void (*on_answer)(void *context, struct mono now,
                                                   enum brain_fact fact,
                                                   const struct brain_answer *answer),
                                 void *context, struct brain_outcome *ret);

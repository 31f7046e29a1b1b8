/* recorder.c: the ring of segments, in files without names. */
#include "service/record/recorder.h"

#include "base/arena.h"
#include "base/prng.h"
#include "service/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { SEGMENT_MAX = 64, DIRECTORY_SIZE = 256 };

struct segment {
    /* without a name: it vanishes when the process ends, in any way. The copy of the node is first, if there is one */
    int fd;
    int64_t copy_size;
    int64_t bytes, events;
    uint64_t sum; /* checksum of the events in the file */
    struct mono first, last;
};

struct recorder {
    char directory[DIRECTORY_SIZE];
    int64_t bytes_max, bytes, events, dropped;
    int error;
    bool undrained; /* an event came after the last drain */
    bool whole;     /* nothing was dropped since the node's start */
    struct mono birth, retry;
    struct node_config config;
    uint8_t *fleet; /* in the format of the file */
    size_t fleet_size;
    uint8_t *restored; /* the saved state that the node began with */
    size_t restored_size;
    const struct node *node; /* in the arena; NULL: no copies are made */
    struct segment segments[SEGMENT_MAX];
    unsigned first, count;
    struct codec codec;
    size_t used;
    uint8_t buffer[RECORDER_BUFFER_SIZE];
};

static int open_nameless(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        char path[DIRECTORY_SIZE + 32];
        snprintf(path, sizeof(path), "%s/.record.XXXXXX", directory);
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0) {
            unlink(path);
        }
    }
    return fd < 0 ? -errno : fd;
}

int recorder_open(struct recorder **ret_recorder, const char *directory, int64_t bytes_max)
{
    if (bytes_max <= 0) {
        return -ENODATA;
    }
    struct recorder *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return -ENOMEM;
    }
    snprintf(r->directory, sizeof(r->directory), "%s", directory);
    r->bytes_max = bytes_max;
    *ret_recorder = r;
    return 0;
}

static struct segment *newest(struct recorder *r)
{
    return r->count == 0 ? NULL : &r->segments[(r->first + r->count - 1) % SEGMENT_MAX];
}

static void drop_oldest(struct recorder *r)
{
    struct segment *s = &r->segments[r->first];
    close(s->fd);
    r->bytes -= s->bytes;
    r->events -= s->events;
    r->first = (r->first + 1) % SEGMENT_MAX;
    r->count--;
    r->whole = false;
}

static void drop_all(struct recorder *r)
{
    while (r->count > 0) {
        drop_oldest(r);
    }
    r->used = 0;
}

struct recorder *recorder_close(struct recorder *r)
{
    if (r != NULL) {
        drop_all(r);
        free(r->fleet);
        free(r->restored);
        free(r);
    }
    return NULL;
}

static int write_all(int fd, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(fd, (const uint8_t *)bytes + done, size - done);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Appends events to a segment. */
static int write_events(struct recorder *r, struct segment *s, const void *bytes, size_t size)
{
    const int rc = write_all(s->fd, bytes, size);
    if (rc == 0) {
        s->sum = hash_bytes(s->sum, bytes, size);
        s->bytes += (int64_t)size;
        r->bytes += (int64_t)size;
    }
    return rc;
}

/* Writes the buffer to the newest segment. If the disk is full, everything is dropped, because events behind a gap can't be
 * replayed. The recorder tries again later. */
static void flush(struct recorder *r)
{
    struct segment *s = newest(r);
    if (s == NULL || r->used == 0) {
        return;
    }
    const int rc = write_events(r, s, r->buffer, r->used);
    if (rc < 0) {
        r->error = -rc;
        r->retry = mono_add(s->last, span_s(10));
        drop_all(r);
        return;
    }
    r->used = 0;
}

static bool begin_segment(struct recorder *r, struct mono now)
{
    flush(r);
    while (r->count > 1 &&
           (r->count == SEGMENT_MAX || r->bytes > r->bytes_max ||
            mono_sub(now, r->segments[(r->first + 1) % SEGMENT_MAX].first).ns > RECORDER_KEEP_NS)) {
        drop_oldest(r);
    }
    const int fd = open_nameless(r->directory);
    if (fd < 0) {
        r->error = -fd;
        r->retry = mono_add(now, span_s(10));
        drop_all(r);
        return false;
    }
    struct segment fresh = {.fd = fd, .first = now, .last = now, .sum = CODEC_SUM_EMPTY};
    if (r->node != NULL && mono_before(r->birth, now)) {
        const int rc = write_all(fd, (const void *)(uintptr_t)ARENA_ADDRESS, arena_size());
        if (rc < 0) {
            close(fd);
            r->error = -rc;
            r->retry = mono_add(now, span_s(10));
            drop_all(r);
            return false;
        }
        fresh.copy_size = fresh.bytes = (int64_t)arena_size();
        r->bytes += fresh.bytes;
    }
    r->segments[(r->first + r->count++) % SEGMENT_MAX] = fresh;
    codec_init(&r->codec);
    r->error = 0;
    return true;
}

void recorder_restored(struct recorder *r, const void *bytes, size_t size)
{
    if (r != NULL) {
        r->restored = malloc(size);
        if (r->restored != NULL) {
            memcpy(r->restored, bytes, size);
            r->restored_size = size;
        } else {
            r->whole = false;
        }
    }
}

void recorder_node(struct recorder *r, const struct node *node)
{
    if (r != NULL) {
        r->node = node;
    }
}

/* Keeps the list at the node's start: a recording from the start begins with this list. */
static void keep_fleet(struct recorder *r, const struct mesh_fleet *fleet)
{
    free(r->fleet);
    r->fleet_size = record_fleet_size(fleet);
    r->fleet = malloc(r->fleet_size);
    if (r->fleet != NULL) {
        record_fleet_write(fleet, r->fleet);
    }
}

static int write_fleet(struct recorder *r, const struct mesh_fleet *fleet)
{
    const size_t size = record_fleet_size(fleet);
    uint8_t *bytes = malloc(size);
    if (bytes == NULL) {
        return -ENOMEM;
    }
    record_fleet_write(fleet, bytes);
    const int rc = newest(r) != NULL ? write_events(r, newest(r), bytes, size) : -ENODATA;
    free(bytes);
    return rc;
}

void recorder_start(struct recorder *r, const struct node_config *config, struct mono now)
{
    if (r == NULL) {
        return;
    }
    drop_all(r);
    r->config = *config;
    r->config.fleet = (struct mesh_fleet){.seed = config->fleet.seed};
    r->birth = now;
    r->whole = true;
    r->node = NULL;
    free(r->restored);
    r->restored = NULL;
    r->restored_size = 0;
    r->retry = now;
    keep_fleet(r, &config->fleet);
}

void recorder_append(struct recorder *r, enum node_event_kind kind, struct mono now,
                     const void *event)
{
    if (r == NULL || r->fleet == NULL) {
        return;
    }
    struct segment *s = newest(r);
    if (s == NULL || mono_sub(now, s->first).ns > RECORDER_SEGMENT_NS ||
        mono_before(now, s->first) || s->bytes - s->copy_size > r->bytes_max / 16) {
        if ((s == NULL && mono_before(now, r->retry)) || !begin_segment(r, now)) {
            r->dropped++;
            r->whole = false;
            return;
        }
        s = newest(r);
    }
    if (r->used + CODEC_EVENT_MAX > sizeof(r->buffer)) {
        flush(r);
        s = newest(r);
        if (s == NULL) {
            r->dropped++;
            return;
        }
    }
    r->used += codec_encode(&r->codec, kind, now, event, r->buffer + r->used);
    r->undrained = true;
    s->last = now;
    s->events++;
    r->events++;
    if (kind == NODE_EVENT_PEERS) {
        flush(r);
        if (write_fleet(r, event) < 0) {
            drop_all(r);
        }
    }
}

void recorder_finding(struct recorder *r, const struct finding *finding)
{
    if (r == NULL || newest(r) == NULL) {
        return;
    }
    if (r->used + 2 + sizeof(*finding) > sizeof(r->buffer)) {
        flush(r);
    }
    if (newest(r) != NULL) {
        r->used += codec_encode_finding(finding, r->buffer + r->used);
    }
}

void recorder_drained(struct recorder *r)
{
    if (r != NULL && r->used == sizeof(r->buffer)) {
        flush(r);
    }
    if (r != NULL && newest(r) != NULL && r->undrained) {
        r->used += codec_encode_drain(r->buffer + r->used);
        r->undrained = false;
    }
}

static int copy_file(int from, int to, off_t at, int64_t bytes)
{
    while (at < bytes) {
        const ssize_t n = sendfile(to, from, &at, (size_t)(bytes - at));
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        if (n == 0) {
            return -EIO;
        }
    }
    return 0;
}

int recorder_save(struct recorder *r, struct recording *ret_recording)
{
    if (r == NULL || r->count == 0) {
        return r != NULL && r->error != 0 ? -r->error : -ENODATA;
    }
    struct recording out = {.fd = open_nameless(r->directory), .events = r->events};
    if (out.fd < 0) {
        return out.fd;
    }
    flush(r);
    const struct segment *first = &r->segments[r->first];
    const struct record_head head = {.magic = RECORD_MAGIC,
                                     .version = RECORD_VERSION,
                                     .flags = r->whole ? RECORD_WHOLE : 0,
                                     .layout = codec_layout(),
                                     .birth_ns = r->birth.ns,
                                     .restored_size = r->whole ? r->restored_size : 0,
                                     .copy_size =
                                         r->whole || r->count == 0 ? 0 : (uint64_t)first->copy_size,
                                     .node = (uint64_t)(uintptr_t)r->node};
    int rc = r->count > 0 ? write_all(out.fd, &head, sizeof(head)) : -r->error;
    rc = rc < 0 ? rc : write_all(out.fd, &r->config, sizeof(r->config));
    rc = rc < 0 ? rc : write_all(out.fd, r->fleet, r->fleet_size);
    rc = rc < 0 || head.restored_size == 0 ? rc : write_all(out.fd, r->restored, r->restored_size);
    rc = rc < 0 || head.copy_size == 0 ? rc : copy_file(first->fd, out.fd, 0, first->copy_size);
    for (unsigned i = 0; rc == 0 && i < r->count; i++) {
        const struct segment *s = &r->segments[(r->first + i) % SEGMENT_MAX];
        uint8_t end[CODEC_END_SIZE];
        codec_encode_end(i + 1 == r->count, s->sum, end);
        rc = copy_file(s->fd, out.fd, s->copy_size, s->bytes);
        rc = rc < 0 ? rc : write_all(out.fd, end, sizeof(end));
    }
    if (rc < 0) {
        close(out.fd);
        return rc;
    }
    out.size = lseek(out.fd, 0, SEEK_CUR);
    lseek(out.fd, 0, SEEK_SET);
    out.oldest = r->segments[r->first].first;
    out.newest = newest(r)->last;
    *ret_recording = out;
    return 0;
}

void recorder_report_get(const struct recorder *r, struct recorder_report *ret_report)
{
    *ret_report = (struct recorder_report){0};
    if (r != NULL) {
        ret_report->bytes = r->bytes + (int64_t)r->used;
        ret_report->events = r->events;
        ret_report->dropped = r->dropped;
        ret_report->error = r->error;
        if (r->count > 0) {
            ret_report->oldest = r->segments[r->first].first;
        }
    }
}

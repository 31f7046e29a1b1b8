/* brain_recorder.c: records a fleet's brain while it gets its input. A fact, the names that it asked for, and its answer stay
 * together: none of the latter begins a segment. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/prng.h"
#include "service/record/brain_codec.h"
#include "service/record/brain_file.h"
#include "service/record/brain_record.h"

/* Entries for names that were recorded. If two names share an entry, they are recorded again. */
enum { NAMES = 1 << 17 };

struct brain_recorder {
    int fd;
    int64_t bytes_max;
    struct brain_recorder_report report;
    uint64_t segment;
    struct brain_codec codec;
    uint64_t *names; /* by the name's hash: the hash of the recorded answer */
    uint8_t *bytes;  /* of the present segment */
    size_t used, room;
};

uint64_t brain_file_head_sum(const struct brain_file_head *head)
{
    return hash_bytes(1, head, offsetof(struct brain_file_head, sum));
}

uint64_t brain_file_sum(uint64_t number, uint64_t size, const uint8_t *bytes)
{
    const uint64_t before[2] = {number, size};
    return hash_bytes(hash_bytes(BRAIN_FILE_MAGIC, before, sizeof(before)), bytes, size);
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

int brain_file_write(int fd, uint64_t number, const uint8_t *bytes, size_t size)
{
    const struct brain_file_segment s = {.size = size, .sum = brain_file_sum(number, size, bytes)};
    const int r = write_all(fd, &s, sizeof(s));
    return r < 0 ? r : write_all(fd, bytes, size);
}

int brain_recorder_open(struct brain_recorder **ret, const char *path, int64_t bytes_max,
                        int64_t utc_ns)
{
    struct brain_recorder *r = calloc(1, sizeof(*r));
    struct brain_file_head head = {.magic = BRAIN_FILE_MAGIC,
                                   .version = BRAIN_FILE_VERSION,
                                   .layout = brain_codec_layout(),
                                   .utc_ns = utc_ns};
    if (r == NULL) {
        return -ENOMEM;
    }
    r->fd = -1;
    r->bytes_max = bytes_max;
    r->names = calloc(NAMES, sizeof(*r->names));
    r->room = BRAIN_RECORD_SEGMENT + BRAIN_CODEC_MAX;
    r->bytes = malloc(r->room);
    int rc = r->names == NULL || r->bytes == NULL ? -ENOMEM : 0;
    if (rc == 0) {
        r->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        rc = r->fd < 0 ? -errno : 0;
    }
    head.sum = brain_file_head_sum(&head);
    rc = rc < 0 ? rc : write_all(r->fd, &head, sizeof(head));
    if (rc < 0) {
        r->report.error = -rc;
        brain_recorder_close(r);
        return rc;
    }
    r->report.bytes = sizeof(head);
    brain_codec_init(&r->codec);
    *ret = r;
    return 0;
}

static bool ended(const struct brain_recorder *r)
{
    return r->report.full || r->report.error != 0;
}

void brain_recorder_flush(struct brain_recorder *r)
{
    if (r == NULL || r->used == 0 || ended(r)) {
        return;
    }
    const int64_t after = r->report.bytes + (int64_t)(r->used + sizeof(struct brain_file_segment));
    if (after + (int64_t)sizeof(struct brain_file_segment) > r->bytes_max) {
        r->report.full = true;
        return;
    }
    const int rc = brain_file_write(r->fd, r->segment, r->bytes, r->used);
    if (rc < 0) {
        r->report.error = -rc;
        return;
    }
    r->segment++;
    r->report.bytes = after;
    r->used = 0;
    brain_codec_init(&r->codec);
}

/* Makes room for one more record. One fact may ask for very many names. */
static bool make_room(struct brain_recorder *r)
{
    if (ended(r) || r->room - r->used >= BRAIN_CODEC_MAX) {
        return !ended(r);
    }
    uint8_t *larger = r->room < BRAIN_RECORD_SEGMENT_MAX ? realloc(r->bytes, r->room * 2) : NULL;
    if (larger == NULL) {
        r->report.error = r->room < BRAIN_RECORD_SEGMENT_MAX ? ENOMEM : EMSGSIZE;
        return false;
    }
    r->bytes = larger;
    r->room *= 2;
    return true;
}

static void on_told(void *context, struct mono now, enum brain_fact fact, const void *data)
{
    struct brain_recorder *r = context;
    if (r->used >= BRAIN_RECORD_SEGMENT) {
        brain_recorder_flush(r);
    }
    if (make_room(r)) {
        r->used += brain_codec_fact(&r->codec, now, fact, data, r->bytes + r->used);
        r->report.facts++;
    }
}

static uint64_t text_hash(uint64_t h, const char *text)
{
    return text != NULL ? hash_u64(h, hash_text(text)) : hash_u64(h, 1);
}

static void on_named(void *context, const struct brain_name *name)
{
    struct brain_recorder *r = context;
    uint64_t *told = &r->names[hash_u64(name->id, name->kind) % NAMES];
    uint64_t h = hash_u64(name->id, (uint64_t)name->kind << 1 | name->known);
    h = hash_u64(hash_u64(h, name->tenant), (uint64_t)name->host << 32 | name->rail);
    h = text_hash(text_hash(h, name->name), name->leaf);
    if (*told != h && make_room(r)) {
        *told = h;
        r->used += brain_codec_name(name, r->bytes + r->used);
    }
}

static void on_answered(void *context, enum brain_fact fact, const struct brain_answer *answer)
{
    struct brain_recorder *r = context;
    if (make_room(r)) {
        r->used += brain_codec_answer(fact, answer, r->bytes + r->used);
    }
}

struct brain_witness brain_recorder_witness(struct brain_recorder *r)
{
    return (struct brain_witness){
        .told = on_told, .named = on_named, .answered = on_answered, .context = r};
}

struct brain_recorder_report brain_recorder_report(const struct brain_recorder *r)
{
    return r->report;
}

struct brain_recorder *brain_recorder_close(struct brain_recorder *r)
{
    if (r != NULL) {
        if (r->fd >= 0) {
            brain_recorder_flush(r);
            if (r->report.error == 0) {
                r->report.error = -brain_file_write(r->fd, r->segment, NULL, 0);
            }
            close(r->fd);
        }
        free(r->names);
        free(r->bytes);
        free(r);
    }
    return NULL;
}

/* spool.c: a ring of reports and its file.
 *
 * The file has a head, then records: size, checksum, number, bytes. A record without bytes means: all reports up to its number
 * are delivered. When all reports are delivered, the file is cut to its head. */
#include "service/agent/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SPOOL_MAGIC 0x314c4f4f50534f46ULL /* "FOSPOOL1" */
enum { FILE_MAX = 3 * SPOOL_BYTES_MAX, PATH_SIZE = 300 };

struct head {
    uint64_t magic, stream, boot, next, lost;
};
struct record {
    uint32_t size, sum;
    uint64_t number;
};
struct entry {
    uint64_t number;
    uint8_t *bytes;
    size_t size;
};

struct spool {
    char path[PATH_SIZE];
    int fd;
    off_t end; /* end of the file */
    uint64_t stream, boot, next, lost;
    struct entry entries[SPOOL_COUNT_MAX];
    size_t first, count, bytes;
};

static uint32_t sum_of(const void *bytes, size_t size, uint64_t number)
{
    uint32_t sum = 0x811c9dc5u ^ (uint32_t)number ^ (uint32_t)(number >> 32);
    for (const uint8_t *p = bytes; size > 0; p++, size--) {
        sum = (sum ^ *p) * 0x01000193u;
    }
    return sum;
}

static struct entry *at(const struct spool *s, size_t i)
{
    return (struct entry *)&s->entries[(s->first + i) % SPOOL_COUNT_MAX];
}

static void pop(struct spool *s)
{
    struct entry *e = at(s, 0);
    s->bytes -= e->size;
    free(e->bytes);
    e->bytes = NULL;
    s->first = (s->first + 1) % SPOOL_COUNT_MAX;
    s->count--;
}

static int push(struct spool *s, const void *bytes, size_t size, uint64_t number)
{
    uint8_t *copy = malloc(size + 1);
    if (copy == NULL) {
        return -ENOMEM;
    }
    while (s->count == SPOOL_COUNT_MAX || (s->count > 0 && s->bytes + size > SPOOL_BYTES_MAX)) {
        pop(s);
        s->lost++;
    }
    memcpy(copy, bytes, size);
    *at(s, s->count++) = (struct entry){number, copy, size};
    s->bytes += size;
    return 0;
}

/* ---- the file ---- */

static void give_up_file(struct spool *s)
{
    if (s->fd >= 0) {
        close(s->fd);
        s->fd = -1;
    }
}

static bool write_record(struct spool *s, const void *bytes, size_t size, uint64_t number)
{
    struct record r = {(uint32_t)size, sum_of(bytes, size, number), number};
    const struct iovec parts[] = {{&r, sizeof(r)}, {(void *)(uintptr_t)bytes, size}};
    const ssize_t wanted = (ssize_t)(sizeof(r) + size);
    if (s->fd < 0) {
        return false;
    }
    if (pwritev(s->fd, parts, 2, s->end) != wanted) {
        (void)!ftruncate(s->fd, s->end); /* e.g. the disk is full: the report stays in memory */
        return false;
    }
    s->end += wanted;
    return true;
}

static void write_head(struct spool *s)
{
    const struct head h = {SPOOL_MAGIC, s->stream, s->boot, s->next, s->lost};
    if (s->fd >= 0 && pwrite(s->fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h)) {
        give_up_file(s);
    }
}

/* Writes the file again with the reports that wait. */
static void rewrite(struct spool *s)
{
    if (s->fd < 0) {
        return;
    }
    s->end = (off_t)sizeof(struct head);
    if (ftruncate(s->fd, 0) < 0) {
        give_up_file(s);
        return;
    }
    write_head(s);
    for (size_t i = 0; i < s->count; i++) {
        const struct entry *e = at(s, i);
        (void)write_record(s, e->bytes, e->size, e->number);
    }
}

/* false: the file ends with bytes that are no record. */
static bool read_records(struct spool *s, const uint8_t *bytes, size_t size)
{
    size_t offset = sizeof(struct head);
    uint64_t last = 0;
    while (offset < size) {
        struct record r;
        if (size - offset < sizeof(r)) {
            return false;
        }
        memcpy(&r, bytes + offset, sizeof(r));
        offset += sizeof(r);
        if (r.size > size - offset || r.sum != sum_of(bytes + offset, r.size, r.number)) {
            return false;
        }
        if (r.size == 0) {
            while (s->count > 0 && at(s, 0)->number <= r.number) {
                pop(s);
            }
        } else if (r.number > last && push(s, bytes + offset, r.size, r.number) == 0) {
            last = r.number;
            s->next = last >= s->next ? last + 1 : s->next;
        }
        offset += r.size;
    }
    return true;
}

static void load(struct spool *s)
{
    struct stat st;
    struct head h;
    if (fstat(s->fd, &st) < 0 || st.st_size < (off_t)sizeof(h) || st.st_size > 2 * FILE_MAX) {
        return;
    }
    uint8_t *bytes = malloc((size_t)st.st_size);
    if (bytes == NULL || pread(s->fd, bytes, (size_t)st.st_size, 0) != st.st_size) {
        free(bytes);
        return;
    }
    memcpy(&h, bytes, sizeof(h));
    if (h.magic == SPOOL_MAGIC && h.stream != 0 && h.next != 0) {
        s->stream = h.stream;
        s->next = h.next;
        s->lost = h.lost;
        const bool whole = read_records(s, bytes, (size_t)st.st_size);
        if (!whole || h.boot != s->boot) { /* records at the end may be missing, delivered or not */
            s->next += SPOOL_LEAP;
        }
    }
    free(bytes);
}

/* ---- public ---- */

int spool_open(const char *path, uint64_t boot, struct spool **ret_spool)
{
    struct spool *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return -ENOMEM;
    }
    s->fd = -1;
    s->boot = boot;
    s->next = 1;
    if (getrandom(&s->stream, sizeof(s->stream), 0) != (ssize_t)sizeof(s->stream)) {
        s->stream = boot;
    }
    s->stream |= 1;
    if (path != NULL) {
        snprintf(s->path, sizeof(s->path), "%s", path);
        s->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (s->fd >= 0) {
        load(s);
        rewrite(s);
    }
    *ret_spool = s;
    return 0;
}

void spool_close(struct spool *s)
{
    if (s == NULL) {
        return;
    }
    while (s->count > 0) {
        pop(s);
    }
    give_up_file(s);
    free(s);
}

uint64_t spool_stream(const struct spool *s)
{
    return s->stream;
}

uint64_t spool_oldest(const struct spool *s)
{
    return s->count > 0 ? at(s, 0)->number : s->next;
}

size_t spool_count(const struct spool *s)
{
    return s->count;
}

size_t spool_bytes(const struct spool *s)
{
    return s->bytes;
}

uint64_t spool_lost(const struct spool *s)
{
    return s->lost;
}

int spool_append(struct spool *s, const void *bytes, size_t size)
{
    if (size == 0 || size > SPOOL_BYTES_MAX / 2) {
        return -EMSGSIZE;
    }
    const int r = push(s, bytes, size, s->next);
    if (r < 0) {
        return r;
    }
    s->next++;
    if (s->end > FILE_MAX) {
        rewrite(s);
    } else {
        (void)write_record(s, bytes, size, s->next - 1);
    }
    return 0;
}

bool spool_get(const struct spool *s, size_t i, struct spool_report *ret)
{
    if (i >= s->count) {
        return false;
    }
    const struct entry *e = at(s, i);
    *ret = (struct spool_report){e->number, e->bytes, e->size};
    return true;
}

void spool_acknowledge(struct spool *s, uint64_t number)
{
    const size_t before = s->count;
    while (s->count > 0 && at(s, 0)->number <= number) {
        pop(s);
    }
    if (s->count == before) {
        return;
    }
    if (s->count == 0) {
        rewrite(s);
    } else {
        (void)write_record(s, "", 0, number);
    }
}

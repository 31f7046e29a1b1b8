/* chunk.c: converts columns to bytes and back. */
#include "platform/store/chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_VERSION = 1,
    SECTION_UNPACKED_MAX = 16 << 20,
    COLUMN_VALUES = 0,
    COLUMN_CONSTANT = 1,
};

#define STEP_MAX (1ULL << 50)
#define FROM_MAX (1LL << 62)

struct chunk {
    struct chunk_head head;
    struct chunk_series *series;
    size_t count, capacity;
    int64_t *values; /* of all series */
};

int chunk_key_compare(const struct chunk_key *a, const struct chunk_key *b)
{
    const uint32_t x[] = {a->local, a->metric, a->peer, a->port},
                   y[] = {b->local, b->metric, b->peer, b->port};
    for (size_t i = 0; i < ARRAY_COUNT(x); i++) {
        if (x[i] != y[i]) {
            return x[i] < y[i] ? -1 : 1;
        }
    }
    return 0;
}

/* ---- out ---- */

struct writer {
    struct message_buffer *buffer;
    int error;
};

static void put(struct writer *w, uint64_t value)
{
    struct message_buffer *b = w->buffer;
    if (w->error < 0 || (w->error = message_buffer_reserve(b, b->size + 10)) < 0) {
        return;
    }
    while (value >= 0x80) {
        b->bytes[b->size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    b->bytes[b->size++] = (uint8_t)value;
}

static uint64_t zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static void put_column(struct writer *w, const int64_t *values, uint32_t count)
{
    bool constant = true;
    for (uint32_t i = 1; i < count; i++) {
        constant = constant && values[i] == values[0];
    }
    put(w, constant ? COLUMN_CONSTANT : COLUMN_VALUES);
    int64_t before = 0;
    for (uint32_t i = 0; i < (constant ? 1 : count); i++) {
        if (values[i] == CHUNK_NONE) {
            put(w, 0);
        } else {
            /* differences beyond 63 bits wrap here, and back when they are read */
            put(w, zigzag((int64_t)((uint64_t)values[i] - (uint64_t)before)) + 1);
            before = values[i];
        }
    }
}

/* Writes the series of one NIC: the columns of the keys, then the values. */
static int put_section(const struct chunk_head *head, const struct chunk_series *series,
                       size_t count, struct message_buffer *raw, struct message_buffer *packed)
{
    struct writer w = {raw, 0};
    struct chunk_key before = {0};
    raw->size = 0;
    put(&w, count);
    for (size_t i = 0; i < count; i++) {
        put(&w, series[i].key.metric);
        put(&w, zigzag((int64_t)series[i].key.peer - (int64_t)before.peer));
        put(&w, zigzag((int64_t)series[i].key.port - (int64_t)before.port));
        before = series[i].key;
    }
    for (size_t i = 0; i < count; i++) {
        put_column(&w, series[i].values, head->slot_count);
    }
    if (w.error == 0 && raw->size > SECTION_UNPACKED_MAX) {
        w.error = -EMSGSIZE;
    }
    return w.error < 0 ? w.error : message_pack(raw->bytes, raw->size, packed);
}

struct section {
    uint32_t local;
    struct message_buffer packed;
};

static int put_sections(const struct chunk_head *head, const struct chunk_series *series,
                        size_t count, struct section sections[CHUNK_SECTION_MAX], size_t *ret_count)
{
    struct message_buffer raw = {0};
    int r = 0;
    for (size_t i = 0, n; i < count && r == 0; i += n) {
        for (n = 1; i + n < count && series[i + n].key.local == series[i].key.local; n++) {
        }
        if (*ret_count == CHUNK_SECTION_MAX || n > CHUNK_SERIES_MAX) {
            r = -EINVAL;
            break;
        }
        struct section *s = &sections[(*ret_count)++];
        s->local = series[i].key.local;
        r = put_section(head, series + i, n, &raw, &s->packed);
    }
    message_buffer_done(&raw);
    return r;
}

int chunk_encode(const struct chunk_head *head, const struct chunk_series *series, size_t count,
                 struct message_buffer *ret)
{
    struct section sections[CHUNK_SECTION_MAX] = {0};
    size_t section_count = 0;
    if (head->slot_count == 0 || head->slot_count > CHUNK_SLOT_MAX || head->step_ns <= 0) {
        return -EINVAL;
    }
    int r = put_sections(head, series, count, sections, &section_count);
    struct writer w = {ret, r};
    ret->size = 0;
    put(&w, CHUNK_VERSION);
    put(&w, zigzag(head->from_ns));
    put(&w, (uint64_t)head->step_ns);
    put(&w, head->slot_count);
    put(&w, section_count);
    for (size_t i = 0; i < section_count; i++) {
        put(&w, sections[i].local);
        put(&w, sections[i].packed.size);
    }
    for (size_t i = 0; i < section_count; i++) {
        const struct message_buffer *p = &sections[i].packed;
        if (w.error == 0 && (w.error = message_buffer_reserve(ret, ret->size + p->size)) == 0) {
            memcpy(ret->bytes + ret->size, p->bytes, p->size);
            ret->size += p->size;
        }
        message_buffer_done(&sections[i].packed);
    }
    return w.error;
}

/* ---- in ---- */

struct reader {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t get(struct reader *r)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (r->at == r->end) {
            break;
        }
        const uint8_t byte = *r->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
    r->bad = true;
    return 0;
}

static void get_column(struct reader *r, int64_t *values, uint32_t count)
{
    const uint64_t kind = get(r);
    int64_t before = 0;
    r->bad = r->bad || kind > COLUMN_CONSTANT;
    for (uint32_t i = 0; i < count && !r->bad; i++) {
        if (i > 0 && kind == COLUMN_CONSTANT) {
            values[i] = values[0];
            continue;
        }
        const uint64_t code = get(r);
        values[i] = CHUNK_NONE;
        if (code != 0) {
            before = (int64_t)((uint64_t)before + (uint64_t)unzigzag(code - 1));
            values[i] = before;
        }
    }
}

static int get_section(struct chunk *c, uint32_t local, struct reader *r)
{
    const uint64_t count = get(r);
    if (r->bad || count > CHUNK_SERIES_MAX || count > (uint64_t)(r->end - r->at)) {
        return -EBADMSG;
    }
    const size_t total = c->count + count;
    struct chunk_series *series = realloc(c->series, (total + 1) * sizeof(*series));
    if (series == NULL) {
        return -ENOMEM;
    }
    c->series = series;
    struct chunk_key before = {0};
    for (size_t i = c->count; i < total; i++) {
        struct chunk_key *key = &series[i].key;
        key->local = local;
        key->metric = (uint32_t)get(r);
        key->peer = (uint32_t)(before.peer + (uint64_t)unzigzag(get(r)));
        key->port = (uint32_t)(before.port + (uint64_t)unzigzag(get(r)));
        series[i].values = NULL;
        before = *key;
    }
    int64_t *values = realloc(c->values, (total * c->head.slot_count + 1) * sizeof(*values));
    if (values == NULL) {
        return -ENOMEM;
    }
    c->values = values;
    for (size_t i = c->count; i < total && !r->bad; i++) {
        get_column(r, values + i * c->head.slot_count, c->head.slot_count);
    }
    c->count = total;
    return r->bad || r->at != r->end ? -EBADMSG : 0;
}

/* Skips `count` numbers. A byte below 0x80 ends a number; eight bytes are checked at a time. */
static void skip(struct reader *r, uint64_t count)
{
    const uint64_t tops = 0x8080808080808080ULL;
    while (count >= 8 && r->end - r->at >= 8) {
        uint64_t word;
        memcpy(&word, r->at, 8);
        count -= (uint64_t)__builtin_popcountll(~word & tops);
        r->at += 8;
    }
    for (; count > 0 && r->at < r->end; r->at++) {
        count -= *r->at < 0x80;
    }
    r->bad = r->bad || count > 0;
}

static void skip_column(struct reader *r, uint32_t count)
{
    const uint64_t kind = get(r);
    r->bad = r->bad || kind > COLUMN_CONSTANT;
    skip(r, kind == COLUMN_CONSTANT ? 1 : count);
}

static int find_column(struct reader *r, const struct chunk_key *key, uint32_t slots,
                       int64_t *values)
{
    const uint64_t count = get(r);
    struct chunk_key k = {.local = key->local};
    uint64_t found = UINT64_MAX;
    if (r->bad || count > CHUNK_SERIES_MAX) {
        return -EBADMSG;
    }
    for (uint64_t i = 0; i < count; i++) {
        k.metric = (uint32_t)get(r);
        k.peer = (uint32_t)(k.peer + (uint64_t)unzigzag(get(r)));
        k.port = (uint32_t)(k.port + (uint64_t)unzigzag(get(r)));
        found = found == UINT64_MAX && chunk_key_compare(&k, key) == 0 ? i : found;
    }
    if (r->bad || found == UINT64_MAX) {
        return r->bad ? -EBADMSG : -ENOENT;
    }
    for (uint64_t i = 0; i < found && !r->bad; i++) {
        skip_column(r, slots);
    }
    get_column(r, values, slots);
    return r->bad ? -EBADMSG : 0;
}

static int get_head(struct reader *r, struct chunk_head *head, uint64_t *ret_sections)
{
    const uint64_t version = get(r);
    const int64_t from = unzigzag(get(r));
    const uint64_t step = get(r), slots = get(r), sections = get(r);
    if (r->bad || version != CHUNK_VERSION || step == 0 || step > STEP_MAX || from < -FROM_MAX ||
        from > FROM_MAX || slots == 0 || slots > CHUNK_SLOT_MAX || sections > CHUNK_SECTION_MAX) {
        return -EBADMSG;
    }
    *head = (struct chunk_head){from, (int64_t)step, (uint32_t)slots};
    *ret_sections = sections;
    return 0;
}

static int get_sections(struct reader *r, uint64_t count, const uint32_t *wanted, struct chunk *c)
{
    uint64_t locals[CHUNK_SECTION_MAX], sizes[CHUNK_SECTION_MAX];
    struct message_buffer raw = {0};
    bool found = wanted == NULL;
    int rc = 0;
    for (uint64_t i = 0; i < count; i++) {
        locals[i] = get(r);
        sizes[i] = get(r);
    }
    for (uint64_t i = 0; i < count && rc == 0; i++) {
        if (r->bad || sizes[i] > (uint64_t)(r->end - r->at)) {
            rc = -EBADMSG;
            break;
        }
        const uint8_t *packed = r->at;
        r->at += sizes[i];
        if (wanted != NULL && locals[i] != *wanted) {
            continue;
        }
        found = true;
        rc = message_unpack(packed, sizes[i], SECTION_UNPACKED_MAX, &raw);
        struct reader inner = {raw.bytes, raw.bytes + raw.size, false};
        rc = rc == 0 ? get_section(c, (uint32_t)locals[i], &inner) : rc == -ENOMEM ? rc : -EBADMSG;
    }
    message_buffer_done(&raw);
    return rc < 0 ? rc : found ? 0 : -ENOENT;
}

int chunk_decode(const void *bytes, size_t size, const uint32_t *local, struct chunk **ret_chunk)
{
    struct reader r = {bytes, (const uint8_t *)bytes + size, false};
    uint64_t sections = 0;
    struct chunk *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return -ENOMEM;
    }
    int rc = get_head(&r, &c->head, &sections);
    rc = rc < 0 ? rc : get_sections(&r, sections, local, c);
    if (rc < 0) {
        chunk_free(c);
        return rc;
    }
    for (size_t i = 0; i < c->count; i++) {
        c->series[i].values = c->values + i * c->head.slot_count;
    }
    *ret_chunk = c;
    return 0;
}

int chunk_column(const void *bytes, size_t size, const struct chunk_key *key,
                 struct message_buffer *scratch, struct chunk_head *ret_head,
                 int64_t ret_values[CHUNK_SLOT_MAX])
{
    struct reader r = {bytes, (const uint8_t *)bytes + size, false};
    uint64_t sections = 0, at = 0, length = 0;
    struct chunk_head head;
    int rc = get_head(&r, &head, &sections);
    if (rc < 0) {
        return rc;
    }
    for (uint64_t i = 0, before = 0; i < sections; i++) {
        const uint64_t local = get(&r), n = get(&r);
        if (local == key->local && length == 0) {
            at = before;
            length = n;
        }
        before += n <= size ? n : size;
    }
    const uint64_t left = (uint64_t)(r.end - r.at);
    if (r.bad || length == 0 || at > left || length > left - at) {
        return r.bad || length != 0 ? -EBADMSG : -ENOENT;
    }
    rc = message_unpack(r.at + at, length, SECTION_UNPACKED_MAX, scratch);
    if (rc < 0) {
        return rc == -ENOMEM ? rc : -EBADMSG;
    }
    r = (struct reader){scratch->bytes, scratch->bytes + scratch->size, false};
    rc = find_column(&r, key, head.slot_count, ret_values);
    if (rc == 0) {
        *ret_head = head;
    }
    return rc;
}

void chunk_free(struct chunk *c)
{
    if (c != NULL) {
        free(c->series);
        free(c->values);
        free(c);
    }
}

const struct chunk_head *chunk_head(const struct chunk *c)
{
    return &c->head;
}

size_t chunk_series_count(const struct chunk *c)
{
    return c->count;
}

const struct chunk_series *chunk_series_get(const struct chunk *c, size_t index)
{
    return &c->series[index];
}

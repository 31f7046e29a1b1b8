/* alike.c: see alike.h. */
#include "platform/store/alike.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BASES_KNOWN = 24, /* in memory, of all kinds */
    BASES_TRIED = 4,  /* per body: machines of a fleet are of few products */
    BASES_MAX = 16,   /* rows of one kind and run, without retired ones */
    BASES_ALONE = 7,  /* of those that one host alone uses; others have the rest */
    ALONE_MAX = 512,  /* a body that is this small alone has no base; bytes */
    BASE_SIZE_MAX = 4 << 20
};

struct alike_base {
    int64_t id, run;
    char kind[16];
    struct message_buffer body;
};

void alike_forget(struct store *s)
{
    for (uint32_t i = 0; i < s->alike.count; i++) {
        message_buffer_done(&s->alike.bases[i].body);
    }
    s->alike.count = 0;
}

void alike_done(struct store *s)
{
    alike_forget(s);
    free(s->alike.bases);
    message_buffer_done(&s->alike.packed);
    message_buffer_done(&s->alike.tried);
    message_buffer_done(&s->alike.alone);
    s->alike = (struct alike){0};
}

/* The base leaves the memory. */
static void drop(struct store *s, uint32_t i)
{
    struct alike *const a = &s->alike;
    message_buffer_done(&a->bases[i].body);
    a->count--;
    memmove(a->bases + i, a->bases + i + 1, (a->count - i) * sizeof(*a->bases));
}

/* The base moves to the front. */
static struct alike_base *use(struct store *s, uint32_t i)
{
    struct alike_base *const bases = s->alike.bases;
    const struct alike_base b = bases[i];
    memmove(bases + 1, bases, i * sizeof(*bases));
    bases[0] = b;
    return bases;
}

/* Takes the body. The base that was not used for the longest time leaves a full memory. A retired one is the next to leave. */
static int add(struct store *s, const struct alike_base *b)
{
    struct alike *const a = &s->alike;
    if (a->bases == NULL) {
        a->bases = calloc(BASES_KNOWN, sizeof(*a->bases));
        if (a->bases == NULL) {
            return -ENOMEM;
        }
    }
    if (a->count == BASES_KNOWN) {
        drop(s, a->count - 1);
    }
    a->bases[a->count++] = *b;
    if (b->kind[0] != '\0') {
        use(s, a->count - 1);
    }
    return 0;
}

/* Returns 1: added; 0: it is there already; < 0: an error. The row has id, kind, run, body. */
static int add_row(struct store *s, sqlite3_stmt *q)
{
    struct alike_base b = {.id = sqlite3_column_int64(q, 0), .run = sqlite3_column_int64(q, 2)};
    snprintf(b.kind, sizeof(b.kind), "%s", sql_text(q, 1));
    for (uint32_t i = 0; i < s->alike.count; i++) {
        if (s->alike.bases[i].id == b.id) {
            return 0;
        }
    }
    int r = message_unpack(sqlite3_column_blob(q, 3), (size_t)sqlite3_column_bytes(q, 3),
                           BASE_SIZE_MAX, &b.body);
    r = r < 0 ? (r == -ENOMEM ? r : -EUCLEAN) : add(s, &b);
    if (r < 0) {
        message_buffer_done(&b.body);
    }
    return r < 0 ? r : 1;
}

/* ---- packing ---- */

static bool fits(const struct alike_base *b, const struct alike_of *of)
{
    return b->run == of->run && strcmp(b->kind, of->kind) == 0;
}

/* Bases of an earlier process: the newest comes to the front. */
static int find_rows(struct store *s, const struct alike_of *of)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(
        s, &r, "SELECT id, kind, run, body FROM alike WHERE kind = ? AND run = ? ORDER BY id", "si",
        of->kind, of->run);
    while (sql_next(s, q, &r)) {
        const int added = add_row(s, q);
        r = added < 0 ? added : 0;
    }
    return r;
}

static int count_rows(struct store *s, const struct alike_of *of)
{
    int r = 0, count = 0;
    sqlite3_stmt *q = sql_prepare(s, &r, "SELECT count(*) FROM alike WHERE kind = ? AND run = ?",
                                  "si", of->kind, of->run);
    while (sql_next(s, q, &r)) {
        count = sqlite3_column_int(q, 0);
    }
    return r < 0 ? r : count;
}

/* Retires the bases of this kind that have no other host's body beside them, but for the newest ones. They stay as long as a body
 * is beside them, and no further body is packed beside them. So a host whose bodies are like no other's holds less than half of
 * the places, and one whose body changes between a few shapes keeps their bases. */
static int retire(struct store *s, const struct alike_of *of)
{
    int r = sql_write(s);
    if (r < 0) {
        return r;
    }
    sqlite3_stmt *q = sql_prepare(
        s, &r,
        "UPDATE alike SET kind = '' WHERE id IN (SELECT id FROM alike a WHERE kind = ?1 AND run = "
        "?2 "
        "AND NOT EXISTS(SELECT 1 FROM host_look WHERE base = a.id AND base <> 0 AND host <> ?3) "
        "AND NOT EXISTS(SELECT 1 FROM fact_body f JOIN host_part p ON p.hash = f.hash WHERE "
        "f.base = a.id AND f.base <> 0 AND abs(p.host) <> ?3) ORDER BY id DESC LIMIT -1 OFFSET ?4) "
        "RETURNING id",
        "siii", of->kind, of->run, of->host, (int64_t)BASES_ALONE);
    while (sql_next(s, q, &r)) {
        for (uint32_t i = 0; i < s->alike.count; i++) {
            if (s->alike.bases[i].id == sqlite3_column_int64(q, 0)) {
                drop(s, i);
                break;
            }
        }
    }
    return r;
}

/* Tries the bases in memory. Returns 1: packed, with *ret_base; 0: none is much alike; < 0: an error. Much alike: the body takes
 * less than half of s->alike.alone. The best try is in s->alike.packed; *ret_base 0: there is none. */
static int try_bases(struct store *s, const struct alike_of *of, const void *bytes, size_t size,
                     int64_t *ret_base)
{
    struct alike *const a = &s->alike;
    int64_t best = 0;
    for (uint32_t i = 0, tried = 0; i < a->count && tried < BASES_TRIED; i++) {
        const struct alike_base *const b = &a->bases[i];
        if (!fits(b, of)) {
            continue;
        }
        const int r = message_pack_alike(&b->body, bytes, size, &a->tried);
        if (r < 0) {
            return r;
        }
        tried++;
        if (best == 0 || a->tried.size < a->packed.size) {
            const struct message_buffer less = a->tried;
            a->tried = a->packed;
            a->packed = less;
            best = b->id;
        }
        if (best == b->id && a->packed.size < a->alone.size / 2) {
            *ret_base = best;
            use(s, i);
            return 1;
        }
    }
    *ret_base = best;
    return 0;
}

/* The body becomes a base, and s->alike.packed is what it takes beside itself. */
static int add_base(struct store *s, const struct alike_of *of, const void *bytes, size_t size,
                    int64_t *ret_base)
{
    struct alike *const a = &s->alike;
    struct alike_base b = {.run = of->run};
    int r = message_buffer_reserve(&b.body, size);
    r = r < 0 ? r
              : sql_run(s, "INSERT INTO alike(kind, run, body) VALUES(?, ?, ?)", "sib", of->kind,
                        of->run, a->alone.bytes, a->alone.size);
    if (r == 0) {
        b.id = sqlite3_last_insert_rowid(s->db);
        snprintf(b.kind, sizeof(b.kind), "%s", of->kind);
        memcpy(b.body.bytes, bytes, size);
        b.body.size = size;
        r = add(s, &b);
    }
    if (r < 0) {
        message_buffer_done(&b.body);
        return r;
    }
    *ret_base = b.id;
    return message_pack_alike(&a->bases[0].body, bytes, size, &a->packed);
}

/* Nothing in memory is much alike. *base: the best try, in s->alike.packed. */
static int pack_unlike(struct store *s, const struct alike_of *of, const void *bytes, size_t size,
                       int64_t *base)
{
    struct alike *const a = &s->alike;
    const bool large = a->alone.size > ALONE_MAX && size <= BASE_SIZE_MAX;
    const int r = large && of->run == 0 ? retire(s, of) : 0; /* in a run each host has one body */
    const int rows = r < 0 ? r : large ? count_rows(s, of) : BASES_MAX;
    if (rows < BASES_MAX) {
        return rows < 0 ? rows : add_base(s, of, bytes, size, base);
    }
    if (*base == 0 || a->alone.size <= a->packed.size) {
        const struct message_buffer alone = a->alone;
        a->alone = a->packed;
        a->packed = alone;
        *base = 0;
    }
    return 0;
}

int alike_pack(struct store *s, const struct alike_of *of, const void *bytes, size_t size,
               int64_t *ret_base)
{
    int64_t base = 0;
    int r = message_pack(bytes, size, &s->alike.alone);
    r = r < 0 ? r : try_bases(s, of, bytes, size, &base);
    if (r == 0 && base == 0 && size > ALONE_MAX) {
        r = find_rows(s, of);
        r = r < 0 ? r : try_bases(s, of, bytes, size, &base);
    }
    r = r == 0 ? pack_unlike(s, of, bytes, size, &base) : r;
    *ret_base = base;
    return r < 0 ? r : 0;
}

/* ---- unpacking ---- */

/* a->count: it isn't in memory. */
static uint32_t place_of(const struct alike *a, int64_t base)
{
    uint32_t i = 0;
    while (i < a->count && a->bases[i].id != base) {
        i++;
    }
    return i;
}

int alike_unpack(struct store *s, int64_t base, const void *bytes, size_t size, size_t limit,
                 struct message_buffer *ret)
{
    struct alike *const a = &s->alike;
    int r = 0;
    uint32_t i = base != 0 ? place_of(a, base) : 0;
    if (base != 0 && i == a->count) {
        sqlite3_stmt *q =
            sql_prepare(s, &r, "SELECT id, kind, run, body FROM alike WHERE id = ?", "i", base);
        while (sql_next(s, q, &r)) {
            r = add_row(s, q);
        }
        if (r <= 0) {
            return r < 0 ? r : -EUCLEAN;
        }
        i = place_of(a, base);
    }
    const struct message_buffer *const beside = base == 0                     ? NULL
                                                : a->bases[i].kind[0] == '\0' ? &a->bases[i].body
                                                                              : &use(s, i)->body;
    r = message_unpack_alike(beside, bytes, size, limit, ret);
    return r == -EBADMSG || r == -EMSGSIZE ? -EUCLEAN : r;
}

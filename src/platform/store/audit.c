/* audit.c: the hosts' facts by content, and audits. Bodies are packed. */
#include <errno.h>
#include <string.h>

#include "platform/message/message.h"
#include "platform/store/alike.h"
#include "platform/store/sql.h"

/* ---- facts ---- */

int store_part_is(struct store *s, int64_t host, const char *part,
                  const uint8_t hash[static STORE_HASH_SIZE])
{
    int r = 0, same = 0;
    sqlite3_stmt *q = sql_prepare(s, &r,
                                  "SELECT hash FROM host_part WHERE host = ? AND part = ? "
                                  "ORDER BY at_ns DESC LIMIT 1",
                                  "is", host, part);
    while (sql_next(s, q, &r)) {
        same = sqlite3_column_bytes(q, 0) == STORE_HASH_SIZE &&
               memcmp(sqlite3_column_blob(q, 0), hash, STORE_HASH_SIZE) == 0;
    }
    return r < 0 ? r : same;
}

/* of->kind NULL: packed alone. A body that is there already is not packed. */
static int put_body(struct store *s, const struct alike_of *of,
                    const uint8_t hash[static STORE_HASH_SIZE], const void *body, size_t size)
{
    int r = 0;
    int64_t base = 0;
    bool there = false;
    sqlite3_stmt *q = sql_prepare(s, &r, "SELECT 1 FROM fact_body WHERE hash = ?", "b", hash,
                                  (size_t)STORE_HASH_SIZE);
    while (sql_next(s, q, &r)) {
        there = true;
    }
    if (r < 0 || there) {
        return r;
    }
    r = of->kind != NULL ? alike_pack(s, of, body, size, &base)
                         : message_pack(body, size, &s->alike.packed);
    return r < 0 ? r
                 : sql_run(s, "INSERT INTO fact_body(hash, body, base) VALUES(?, ?, ?)", "bbi",
                           hash, (size_t)STORE_HASH_SIZE, s->alike.packed.bytes,
                           s->alike.packed.size, base);
}

static int put_part(struct store *s, int64_t host, const char *part, const char *kind,
                    int64_t at_ns, const uint8_t hash[static STORE_HASH_SIZE], const void *body,
                    size_t size)
{
    const struct alike_of of = {.kind = kind, .host = host > 0 ? host : -host};
    const int r = put_body(s, &of, hash, body, size);
    return r < 0 ? r
                 : sql_run(s,
                           "INSERT OR REPLACE INTO host_part(host, part, at_ns, hash) "
                           "VALUES(?, ?, ?, ?)",
                           "isib", host, part, at_ns, hash, (size_t)STORE_HASH_SIZE);
}

int store_part_put(struct store *s, int64_t host, const char *part, int64_t at_ns,
                   const uint8_t hash[static STORE_HASH_SIZE], const void *body, size_t size)
{
    const int r = store_part_is(s, host, part, hash);
    /* what is a host's own is like that of others; anything else most hosts have in common */
    const char *const kind = strcmp(part, STORE_PART_OWN) == 0 ? STORE_PART_OWN : NULL;
    return r != 0 ? (r < 0 ? r : 0) : put_part(s, host, part, kind, at_ns, hash, body, size);
}

/* Stored under host id -host. Earlier releases do not know this part, and no request uses such an id. So they never find it in
 * a host's sheet. */
int store_part_now_put(struct store *s, int64_t host, int64_t at_ns,
                       const uint8_t hash[static STORE_HASH_SIZE], const void *packed, size_t size)
{
    struct message_buffer body = {0};
    int r = message_unpack(packed, size, STORE_BODY_MAX, &body);
    r = r < 0 ? r
              : put_part(s, -host, STORE_PART_NOW, STORE_PART_NOW, at_ns, hash, body.bytes,
                         body.size);
    message_buffer_done(&body);
    return r;
}

int store_look_put(struct store *s, const struct store_look *l)
{
    int64_t base = 0;
    const struct alike_of of = {.kind = STORE_PART_NOW, .host = l->host};
    const int r = alike_pack(s, &of, l->now_size > 0 ? l->now : "", l->now_size, &base);
    return r < 0 ? r
                 : sql_run(s,
                           "INSERT OR REPLACE INTO host_look(host, at_ns, left_out, refused, now, "
                           "base) VALUES(?, ?, ?, ?, ?, ?)",
                           "iiisbi", l->host, l->at_ns, (int64_t)l->left_out, l->refused,
                           s->alike.packed.bytes, s->alike.packed.size, base);
}

int store_looks(struct store *s, int64_t host, store_look_each each, void *context)
{
    struct message_buffer now = {0};
    int r = 0;
    sqlite3_stmt *q = sql_prepare(s, &r,
                                  "SELECT host, at_ns, left_out, refused, now, base FROM host_look "
                                  "WHERE host >= ?1 AND host <= ?2",
                                  "ii", host, host != 0 ? host : INT64_MAX);
    while (sql_next(s, q, &r)) {
        r = alike_unpack(s, sqlite3_column_int64(q, 5), sqlite3_column_blob(q, 4),
                         (size_t)sqlite3_column_bytes(q, 4), STORE_BODY_MAX, &now);
        const struct store_look look = {.host = sqlite3_column_int64(q, 0),
                                        .at_ns = sqlite3_column_int64(q, 1),
                                        .left_out = (uint32_t)sqlite3_column_int(q, 2),
                                        .refused = sql_text(q, 3),
                                        .now = now.bytes,
                                        .now_size = now.size};
        r = r < 0 ? r : each(context, &look);
    }
    message_buffer_done(&now);
    return r;
}

/* The rows have part, at_ns, hash, body, base. */
static int each_part(struct store *s, sqlite3_stmt *q, int r, store_part_each each, void *context)
{
    struct message_buffer body = {0};
    while (sql_next(s, q, &r)) {
        r = alike_unpack(s, sqlite3_column_int64(q, 4), sqlite3_column_blob(q, 3),
                         (size_t)sqlite3_column_bytes(q, 3), STORE_BODY_MAX, &body);
        const struct store_part part = {.part = sql_text(q, 0),
                                        .at_ns = sqlite3_column_int64(q, 1),
                                        .hash = sqlite3_column_blob(q, 2),
                                        .body = body.bytes,
                                        .size = body.size};
        r = r == 0 && sqlite3_column_bytes(q, 2) != STORE_HASH_SIZE ? -EUCLEAN : r;
        r = r < 0 ? r : each(context, &part);
    }
    message_buffer_done(&body);
    return r;
}

#define PARTS                                                                                      \
    "SELECT p.part, p.at_ns, p.hash, b.body, b.base FROM host_part p JOIN fact_body b ON b.hash "  \
    "= "                                                                                           \
    "p.hash "

int store_parts(struct store *s, int64_t host, int64_t at_ns, store_part_each each, void *context)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(
        s, &r,
        PARTS "WHERE p.host = ?1 AND p.at_ns = (SELECT max(o.at_ns) FROM host_part o WHERE "
              "o.host = ?1 AND o.part = p.part AND o.at_ns <= ?2)",
        "ii", host, at_ns);
    return each_part(s, q, r, each, context);
}

int store_parts_other(struct store *s, int64_t host, int64_t at_ns, int64_t than_ns,
                      store_part_each each, void *context)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(
        s, &r,
        PARTS
        "WHERE p.host = ?1 AND p.at_ns = (SELECT max(o.at_ns) FROM host_part o WHERE "
        "o.host = ?1 AND o.part = p.part AND o.at_ns <= ?2) AND p.hash IS NOT (SELECT o.hash FROM "
        "host_part o WHERE o.host = ?1 AND o.part = p.part AND o.at_ns <= ?3 ORDER BY o.at_ns DESC "
        "LIMIT 1)",
        "iii", host, at_ns, than_ns);
    return each_part(s, q, r, each, context);
}

int store_part_now(struct store *s, int64_t host, int64_t from_ns, int64_t to_ns,
                   store_part_each each, void *context)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(
        s, &r,
        PARTS
        "WHERE p.host = ?1 AND p.part = '" STORE_PART_NOW "' AND p.at_ns = coalesce((SELECT "
        "min(o.at_ns) FROM host_part o WHERE o.host = ?1 AND o.part = '" STORE_PART_NOW
        "' AND o.at_ns BETWEEN ?2 AND ?3), (SELECT max(o.at_ns) FROM host_part o WHERE o.host = ?1 "
        "AND o.part = '" STORE_PART_NOW "' AND o.at_ns <= ?3))",
        "iii", -host, from_ns, to_ns);
    return each_part(s, q, r, each, context);
}

int store_part_now_is(struct store *s, int64_t host, int64_t from_ns, int64_t to_ns)
{
    int r = 0, is = 0;
    sqlite3_stmt *q =
        sql_prepare(s, &r,
                    "SELECT 1 FROM host_part WHERE host = ? AND part = '" STORE_PART_NOW
                    "' AND at_ns BETWEEN ? AND ? LIMIT 1",
                    "iii", -host, from_ns, to_ns);
    while (sql_next(s, q, &r)) {
        is = 1;
    }
    return r < 0 ? r : is;
}

int store_part_now_count(struct store *s, int64_t from_ns, int64_t to_ns)
{
    int r = 0, count = 0;
    sqlite3_stmt *q =
        sql_prepare(s, &r,
                    "SELECT count(*) FROM host h WHERE EXISTS(SELECT 1 FROM host_part WHERE host = "
                    "-h.id AND part = '" STORE_PART_NOW "' AND at_ns BETWEEN ? AND ?)",
                    "ii", from_ns, to_ns);
    while (sql_next(s, q, &r)) {
        count = sqlite3_column_int(q, 0);
    }
    return r < 0 ? r : count;
}

int store_part_versions(struct store *s, int64_t host, const char *part, store_part_each each,
                        void *context)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(
        s, &r, PARTS "WHERE p.host = ? AND p.part = ? ORDER BY p.at_ns DESC", "is", host, part);
    r = each_part(s, q, r, each, context);
    return r > 0 ? 0 : r;
}

/* ---- runs ---- */

int store_audit_run_put(struct store *s, const struct store_audit_run *run)
{
    return sql_run(s, "INSERT OR REPLACE INTO audit_run(id, ended_ns, body) VALUES(?, ?, ?)", "iis",
                   run->id, run->ended_ns, run->body);
}

static int each_run(struct store *s, sqlite3_stmt *q, int r, store_audit_run_each each,
                    void *context)
{
    while (sql_next(s, q, &r)) {
        const struct store_audit_run run = {.id = sqlite3_column_int64(q, 0),
                                            .ended_ns = sqlite3_column_int64(q, 1),
                                            .body = sql_text(q, 2)};
        r = each(context, &run);
    }
    return r;
}

int store_audit_runs(struct store *s, int64_t before_id, int limit, store_audit_run_each each,
                     void *context)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(s, &r,
                                  "SELECT id, ended_ns, body FROM audit_run WHERE id < ?1 "
                                  "ORDER BY id DESC LIMIT ?2",
                                  "ii", before_id != 0 ? before_id : INT64_MAX, (int64_t)limit);
    return each_run(s, q, r, each, context);
}

struct one_run {
    store_audit_run_each each;
    void *context;
    bool found;
};

static int find_run(void *context, const struct store_audit_run *run)
{
    struct one_run *o = context;
    o->found = true;
    return o->each(o->context, run);
}

int store_audit_run_get(struct store *s, int64_t id, store_audit_run_each each, void *context)
{
    struct one_run one = {.each = each, .context = context};
    int r = 0;
    sqlite3_stmt *q =
        sql_prepare(s, &r, "SELECT id, ended_ns, body FROM audit_run WHERE id = ?", "i", id);
    r = each_run(s, q, r, find_run, &one);
    return r == 0 && !one.found ? -ENOENT : r;
}

int store_audit_host_put(struct store *s, const struct store_audit_host *h)
{
    int64_t base = 0;
    const struct alike_of of = {.kind = "results", .run = h->run, .host = h->host};
    const int r = alike_pack(s, &of, h->body, h->size, &base);
    return r < 0 ? r
                 : sql_run(s,
                           "INSERT OR REPLACE INTO audit_host(run, host, at_ns, marks, gate, line, "
                           "body, base) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
                           "iiisssbi", h->run, h->host, h->at_ns, h->marks, h->gate, h->line,
                           s->alike.packed.bytes, s->alike.packed.size, base);
}

static int each_host(struct store *s, sqlite3_stmt *q, int r, store_audit_host_each each,
                     void *context)
{
    struct message_buffer body = {0};
    while (sql_next(s, q, &r)) {
        r = alike_unpack(s, sqlite3_column_int64(q, 7), sqlite3_column_blob(q, 6),
                         (size_t)sqlite3_column_bytes(q, 6), STORE_BODY_MAX, &body);
        const struct store_audit_host host = {.run = sqlite3_column_int64(q, 0),
                                              .host = sqlite3_column_int64(q, 1),
                                              .at_ns = sqlite3_column_int64(q, 2),
                                              .marks = sql_text(q, 3),
                                              .gate = sql_text(q, 4),
                                              .line = sql_text(q, 5),
                                              .body = body.bytes,
                                              .size = body.size};
        r = r < 0 ? r : each(context, &host);
    }
    message_buffer_done(&body);
    return r;
}

#define HOST_COLUMNS "SELECT run, host, at_ns, marks, gate, line, body, base FROM audit_host "

int store_audit_hosts(struct store *s, int64_t run, store_audit_host_each each, void *context)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(s, &r, HOST_COLUMNS "WHERE run = ? ORDER BY host", "i", run);
    return each_host(s, q, r, each, context);
}

int store_audit_newest(struct store *s, store_audit_host_each each, void *context)
{
    int r = 0;
    sqlite3_stmt *q =
        sql_prepare(s, &r,
                    HOST_COLUMNS "AS h WHERE run = (SELECT max(run) FROM audit_host WHERE host = "
                                 "h.host AND run NOT IN (SELECT id FROM audit_run WHERE "
                                 "json_extract(body, '$.state') = 'stopped'))",
                    "");
    return each_host(s, q, r, each, context);
}

#define ACCEPTED "json_extract(body, '$.accepted.at_utc_ns')"

int store_audit_accepted(struct store *s, store_audit_run_each each, void *context)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(s, &r,
                                  "SELECT id, ended_ns, body FROM audit_run WHERE " ACCEPTED
                                  " IS NOT NULL ORDER BY " ACCEPTED " DESC",
                                  "");
    return each_run(s, q, r, each, context);
}

/* Returns the number of deleted rows, or < 0. The statement's last argument limits them. */
static int expire(struct store *s, const char *text, int64_t a, int64_t b, int64_t limit)
{
    const int r = sql_run(s, text, "iii", a, b, limit);
    return r < 0 ? r : sqlite3_changes(s->db);
}

/* A run is deleted after its results, and a body after the parts that name it. A later call deletes the rest. The times of
 * accepted runs are read once, because this parses the bodies of all runs. */
int store_audit_expire(struct store *s, int64_t before_id, int64_t now_ns, int limit)
{
    static const char *const steps[] = {
        "DELETE FROM audit_host WHERE (run, host) IN (SELECT run, host FROM audit_host WHERE run < "
        "?1 AND ?2 IS NOT NULL AND run NOT IN (SELECT id FROM audit_run WHERE id < ?1 AND " ACCEPTED
        " IS NOT NULL) LIMIT ?3)",
        "DELETE FROM audit_run WHERE id IN (SELECT id FROM audit_run WHERE id < ?1 AND ?2 IS NOT "
        "NULL AND ended_ns <> 0 AND " ACCEPTED " IS NULL LIMIT ?3)",
        /* of each part this keeps what was valid at that time, and what was valid when an accepted run ended */
        "WITH accepted(at) AS MATERIALIZED (SELECT ended_ns FROM audit_run WHERE " ACCEPTED
        " IS NOT NULL) DELETE FROM host_part WHERE (host, part, at_ns) IN (SELECT host, part, "
        "at_ns "
        "FROM host_part p WHERE at_ns < CASE part WHEN '" STORE_PART_NOW
        "' THEN ?2 ELSE ?1 END AND EXISTS(SELECT 1 FROM host_part o WHERE o.host = p.host AND "
        "o.part = p.part AND o.at_ns > p.at_ns AND o.at_ns <= CASE p.part WHEN '" STORE_PART_NOW
        "' THEN ?2 ELSE ?1 END) AND NOT EXISTS(SELECT 1 FROM accepted WHERE at >= p.at_ns AND at < "
        "(SELECT min(o.at_ns) FROM host_part o WHERE o.host = p.host AND o.part = p.part AND "
        "o.at_ns > p.at_ns)) LIMIT ?3)",
        "DELETE FROM fact_body WHERE hash IN (SELECT hash FROM fact_body f WHERE ?1 IS NOT NULL "
        "AND "
        "?2 IS NOT NULL AND NOT EXISTS(SELECT 1 FROM host_part p WHERE p.hash = f.hash) LIMIT ?3)",
        "DELETE FROM alike WHERE id IN (SELECT id FROM alike a WHERE ?1 IS NOT NULL AND ?2 IS NOT "
        "NULL AND CASE run WHEN 0 THEN NOT EXISTS(SELECT 1 FROM fact_body f WHERE f.base = a.id "
        "AND f.base <> 0) AND NOT EXISTS(SELECT 1 FROM host_look l WHERE l.base = a.id AND l.base "
        "<> 0) ELSE NOT EXISTS(SELECT 1 FROM audit_host h WHERE h.run = a.run) END LIMIT ?3)"};
    int gone = 0;
    for (size_t i = 0; i < ARRAY_COUNT(steps) && gone < limit; i++) {
        const int r = expire(s, steps[i], before_id, now_ns, limit - gone);
        if (r < 0) {
            return r;
        }
        gone += r;
    }
    if (gone > 0) {
        alike_forget(s);
    }
    return gone;
}

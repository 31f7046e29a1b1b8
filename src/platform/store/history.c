/* history.c: reports, tables, chunks, events, findings. */
#include <errno.h>
#include <string.h>

#include "platform/store/sql.h"

int store_report_put(struct store *s, int64_t host, int64_t at_ns, const void *body, size_t size)
{
    return sql_run(s, "INSERT INTO report(host, at_ns, body) VALUES(?,?,?)", "iib", host, at_ns,
                   body, size);
}

static int each_blob(struct store *s, sqlite3_stmt *q, int r, store_blob_each each, void *context)
{
    while (sql_next(s, q, &r)) {
        r = each(context, sqlite3_column_int64(q, 0), sqlite3_column_blob(q, 1),
                 (size_t)sqlite3_column_bytes(q, 1));
    }
    return r;
}

int store_reports(struct store *s, int64_t host, int64_t from_ns, int64_t to_ns,
                  store_blob_each each, void *context)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(s, &r,
                                  "SELECT at_ns, body FROM report WHERE host = ? AND at_ns >= ? "
                                  "AND at_ns < ? ORDER BY at_ns, rowid",
                                  "iii", host, from_ns, to_ns);
    return each_blob(s, q, r, each, context);
}

int store_table_put(struct store *s, int64_t host, uint64_t generation, int64_t at_ns,
                    const void *body, size_t size)
{
    return sql_run(s,
                   "INSERT INTO path_table(host, generation, at_ns, body) "
                   "VALUES(?, ?, ?, ?) "
                   "ON CONFLICT(host, generation) DO UPDATE SET at_ns = excluded.at_ns",
                   "iiib", host, (int64_t)generation, at_ns, body, size);
}

int store_table_get(struct store *s, int64_t host, uint64_t generation, store_blob_each each,
                    void *context)
{
    int r = 0;
    sqlite3_stmt *q =
        sql_prepare(s, &r, "SELECT at_ns, body FROM path_table WHERE host = ? AND generation = ?",
                    "ii", host, (int64_t)generation);
    if (q == NULL) {
        return r;
    }
    r = sql_step(s, q);
    if (r <= 0) {
        return r < 0 ? r : -ENOENT;
    }
    r = each(context, sqlite3_column_int64(q, 0), sqlite3_column_blob(q, 1),
             (size_t)sqlite3_column_bytes(q, 1));
    sql_end(q);
    return r;
}

int store_chunk_put(struct store *s, const struct store_chunk *c)
{
    return sql_run(s,
                   "INSERT OR REPLACE INTO chunk(tier, host, from_ns, to_ns, body) "
                   "VALUES(?,?,?,?,?)",
                   "iiiib", (int64_t)c->tier, c->host, c->from_ns, c->to_ns, c->body, c->size);
}

int store_chunks(struct store *s, int tier, int64_t host, int64_t from_ns, int64_t to_ns,
                 store_blob_each each, void *context)
{
    int r = 0;
    /* no chunk is longer than 32 days: so the index can find the first one */
    sqlite3_stmt *q = sql_prepare(s, &r,
                                  "SELECT from_ns, body FROM chunk WHERE tier = ?1 AND host = ?2 "
                                  "AND from_ns < ?4 AND from_ns > ?3 - 2764800000000000 AND "
                                  "to_ns > ?3 ORDER BY from_ns",
                                  "iiii", (int64_t)tier, host, from_ns, to_ns);
    return each_blob(s, q, r, each, context);
}

int store_sealed(struct store *s, int64_t host, int64_t to_ns)
{
    int r = sql_run(s, "DELETE FROM report WHERE host = ? AND at_ns < ?", "ii", host, to_ns);
    /* a table's at_ns is the time of its last report; older stores have seconds there, so their value looks very old */
    r = r < 0 ? r
              : sql_run(s,
                        "DELETE FROM path_table WHERE host = ?1 AND at_ns < (SELECT max(at_ns) "
                        "FROM path_table WHERE host = ?1 AND at_ns < ?2 - 86400000000000)",
                        "ii", host, to_ns);
    return r < 0 ? r
                 : sql_run(s, "UPDATE host SET sealed_ns = ?2 WHERE id = ?1", "ii", host, to_ns);
}

int store_chunks_expire(struct store *s, int tier, int64_t before_ns, int limit)
{
    const int r = sql_run(s,
                          "DELETE FROM chunk WHERE rowid IN (SELECT rowid FROM chunk WHERE tier = "
                          "? AND to_ns < ? ORDER BY to_ns LIMIT ?)",
                          "iii", (int64_t)tier, before_ns, (int64_t)limit);
    return r < 0 ? r : sqlite3_changes(s->db);
}

/* ---- events ---- */

int store_event_put(struct store *s, const struct store_event *e, int64_t *ret_id)
{
    const int r = sql_run(s,
                          "INSERT INTO event(at_ns, fleet_ns, host, kind, word, body) "
                          "VALUES(?,?,?,?,?,?)",
                          "iiisss", e->at_ns, e->fleet_ns, e->host, e->kind, e->word, e->body);
    if (r == 0 && ret_id != NULL) {
        *ret_id = sqlite3_last_insert_rowid(s->db);
    }
    return r;
}

#define EVENT_COLUMNS "SELECT id, at_ns, fleet_ns, host, kind, word, body FROM event "
#define EVENT_WHERE                                                                                \
    "id > ?1 AND id < ?2 AND at_ns >= ?3 AND at_ns < ?4 AND (?5 = 0 OR host = ?5) AND (?6 IS "     \
    "NULL OR kind = ?6) AND (?7 IS NULL OR word = ?7) AND ?9 IS ?9 ORDER BY id "
#define EVENT_ALL EVENT_COLUMNS "WHERE " EVENT_WHERE
/* The plan has a "TEMP B-TREE FOR ORDER BY", but it holds only ?8 rows. The index gives the rows of each host by id, and
 * SQLite leaves a host at the first row behind all held rows. So a host costs at most ?8 matching rows, however many it has. */
#define EVENT_OF_HOSTS                                                                             \
    EVENT_COLUMNS                                                                                  \
    "INDEXED BY event_host WHERE host IN (SELECT value FROM json_each(?9)) AND " EVENT_WHERE

int store_events(struct store *s, const struct store_event_filter *f, store_event_each each,
                 void *context)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(
        s, &r,
        f->hosts != NULL
            ? (f->newest_first ? EVENT_OF_HOSTS "DESC LIMIT ?8" : EVENT_OF_HOSTS "ASC LIMIT ?8")
            : (f->newest_first ? EVENT_ALL "DESC LIMIT ?8" : EVENT_ALL "ASC LIMIT ?8"),
        "iiiiissis", f->after_id, f->before_id != 0 ? f->before_id : INT64_MAX, f->since_ns,
        f->until_ns != 0 ? f->until_ns : INT64_MAX, f->host, f->kind, f->word, (int64_t)f->limit,
        f->hosts);
    while (sql_next(s, q, &r)) {
        const struct store_event e = {.id = sqlite3_column_int64(q, 0),
                                      .at_ns = sqlite3_column_int64(q, 1),
                                      .fleet_ns = sqlite3_column_int64(q, 2),
                                      .host = sqlite3_column_int64(q, 3),
                                      .kind = sql_text(q, 4),
                                      .word = sql_text(q, 5),
                                      .body = sql_text(q, 6)};
        r = each(context, &e);
    }
    return r;
}

int store_events_expire(struct store *s, int64_t before_ns, int limit)
{
    int r = sql_run(s,
                    "DELETE FROM event WHERE id IN (SELECT id FROM event WHERE at_ns < ? ORDER BY "
                    "at_ns LIMIT ?)",
                    "ii", before_ns, (int64_t)limit);
    const int events = r < 0 ? r : sqlite3_changes(s->db);
    r = r < 0 ? r
              : sql_run(s,
                        "DELETE FROM finding WHERE id IN (SELECT id FROM finding WHERE closed_ns > "
                        "0 AND closed_ns < ? LIMIT ?)",
                        "ii", before_ns, (int64_t)limit);
    /* no index of times, but the rows are in order of time: the first ones are the oldest */
    r = r < 0 ? r
              : sql_run(s,
                        "DELETE FROM audit WHERE at_ns < ? AND id < (SELECT min(id) FROM audit) + "
                        "?",
                        "ii", before_ns, (int64_t)limit);
    return r < 0 ? r : events;
}

/* ---- findings ---- */

int store_finding_put(struct store *s, const struct store_finding *f, int64_t *ret_id)
{
    int r = sql_run(s,
                    "INSERT INTO finding(host, run, number, opened_ns, updated_ns, closed_ns, "
                    "kind, body) VALUES(?1,?2,?3,?4,?5,?6,?7,?8) ON CONFLICT(host, run, number) DO "
                    "UPDATE SET updated_ns = ?5, closed_ns = ?6, kind = ?7, body = ?8 WHERE "
                    "closed_ns = 0",
                    "iiiiiiss", f->host, (int64_t)f->run, (int64_t)f->number, f->opened_ns,
                    f->updated_ns, f->closed_ns, f->kind, f->body);
    if (r < 0 || ret_id == NULL) {
        return r;
    }
    sqlite3_stmt *q =
        sql_prepare(s, &r, "SELECT id FROM finding WHERE host = ? AND run = ? AND number = ?",
                    "iii", f->host, (int64_t)f->run, (int64_t)f->number);
    r = q == NULL ? r : sql_step(s, q);
    if (r > 0) {
        *ret_id = sqlite3_column_int64(q, 0);
        sql_end(q);
    }
    return r < 0 ? r : 0;
}

int store_finding_name(struct store *s, int64_t host, uint32_t run, uint32_t number,
                       const char *named)
{
    return sql_run(s,
                   "UPDATE finding SET named = ?4 WHERE host = ?1 AND run = ?2 AND number = ?3 AND "
                   "closed_ns = 0",
                   "iiis", host, (int64_t)run, (int64_t)number, named);
}

int store_findings(struct store *s, const struct store_finding_filter *f, store_finding_each each,
                   void *context)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(
        s, &r,
        "SELECT id, host, run, number, opened_ns, updated_ns, closed_ns, kind, body, named "
        "FROM finding WHERE id < ?1 AND (?2 = 0 OR host = ?2) AND (?3 < 0 OR "
        "(closed_ns = 0) = ?3) AND (?4 IS NULL OR kind = ?4) AND (closed_ns = 0 OR "
        "closed_ns >= ?5) AND opened_ns < ?6 AND (?8 IS NULL OR host IN (SELECT value FROM "
        "json_each(?8))) ORDER BY id DESC LIMIT ?7",
        "iiisiiis", f->before_id != 0 ? f->before_id : INT64_MAX, f->host, (int64_t)f->open,
        f->kind, f->since_ns, f->until_ns != 0 ? f->until_ns : INT64_MAX, (int64_t)f->limit,
        f->hosts);
    while (sql_next(s, q, &r)) {
        const struct store_finding found = {.id = sqlite3_column_int64(q, 0),
                                            .host = sqlite3_column_int64(q, 1),
                                            .run = (uint32_t)sqlite3_column_int64(q, 2),
                                            .number = (uint32_t)sqlite3_column_int64(q, 3),
                                            .opened_ns = sqlite3_column_int64(q, 4),
                                            .updated_ns = sqlite3_column_int64(q, 5),
                                            .closed_ns = sqlite3_column_int64(q, 6),
                                            .kind = sql_text(q, 7),
                                            .body = sql_text(q, 8),
                                            .named = sql_text(q, 9)};
        r = each(context, &found);
    }
    return r;
}

int store_findings_close_others(struct store *s, int64_t host, uint32_t run, int64_t at_ns)
{
    return sql_run(s,
                   "UPDATE finding SET closed_ns = ?3, updated_ns = ?3 WHERE host = ?1 AND run != "
                   "?2 AND closed_ns = 0",
                   "iii", host, (int64_t)run, at_ns);
}

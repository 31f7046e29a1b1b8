/* fleet.c: settings, hosts, NICs, tokens, audit. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "platform/store/sql.h"

int store_get(struct store *s, const char *name, char **ret_value, size_t *ret_size)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(s, &r, "SELECT value FROM setting WHERE name = ?", "s", name);
    if (q == NULL) {
        return r;
    }
    r = sql_step(s, q);
    if (r <= 0) {
        return r < 0 ? r : -ENOENT;
    }
    const size_t size = (size_t)sqlite3_column_bytes(q, 0);
    char *value = malloc(size + 1);
    if (value != NULL) {
        if (size > 0) {
            memcpy(value, sqlite3_column_blob(q, 0), size);
        }
        value[size] = 0;
        *ret_value = value;
        *ret_size = size;
    }
    sql_end(q);
    return value == NULL ? -ENOMEM : 0;
}

int store_put(struct store *s, const char *name, const void *value, size_t size)
{
    return sql_run(s, "INSERT OR REPLACE INTO setting(name, value) VALUES(?, ?)", "sb", name,
                   size > 0 ? value : "", size);
}

int store_hosts(struct store *s, store_host_each each, void *context)
{
    int r = 0;
    sqlite3_stmt *q =
        sql_prepare(s, &r,
                    "SELECT id, name, state, joined_ns, removed_ns, serial, serial_before, "
                    "not_after, stream, number, sealed_ns, version, pin FROM host ORDER BY id",
                    "");
    while (sql_next(s, q, &r)) {
        const struct store_host host = {
            .id = sqlite3_column_int64(q, 0),
            .name = sql_text(q, 1),
            .state = sqlite3_column_int(q, 2),
            .joined_ns = sqlite3_column_int64(q, 3),
            .removed_ns = sqlite3_column_int64(q, 4),
            .serial = sql_text(q, 5),
            .serial_before = sql_text(q, 6),
            .not_after = sqlite3_column_int64(q, 7),
            .stream = (uint64_t)sqlite3_column_int64(q, 8),
            .number = (uint64_t)sqlite3_column_int64(q, 9),
            .sealed_ns = sqlite3_column_int64(q, 10),
            .version = sql_text(q, 11),
            .pin = sql_text(q, 12),
        };
        r = each(context, &host);
    }
    return r;
}

int store_host_put(struct store *s, const struct store_host *h, int64_t *ret_id)
{
    int r;
    if (h->id != 0) {
        r = sql_run(s,
                    "UPDATE host SET name = ?2, state = ?3, joined_ns = ?4, removed_ns = ?5, "
                    "serial = ?6, serial_before = ?7, not_after = ?8, stream = ?9, number = ?10, "
                    "sealed_ns = ?11, version = ?12, pin = ?13 WHERE id = ?1",
                    "isiiissiiiiss", h->id, h->name, (int64_t)h->state, h->joined_ns, h->removed_ns,
                    h->serial, h->serial_before, h->not_after, (int64_t)h->stream,
                    (int64_t)h->number, h->sealed_ns, h->version, h->pin);
    } else {
        r = sql_run(s,
                    "INSERT INTO host(name, state, joined_ns, removed_ns, serial, serial_before, "
                    "not_after, stream, number, sealed_ns, version, pin) "
                    "VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
                    "siiissiiiiss", h->name, (int64_t)h->state, h->joined_ns, h->removed_ns,
                    h->serial, h->serial_before, h->not_after, (int64_t)h->stream,
                    (int64_t)h->number, h->sealed_ns, h->version, h->pin);
    }
    if (r == 0 && ret_id != NULL) {
        *ret_id = h->id != 0 ? h->id : sqlite3_last_insert_rowid(s->db);
    }
    return r;
}

int store_host_cursor(struct store *s, int64_t id, uint64_t stream, uint64_t number)
{
    return sql_run(s, "UPDATE host SET stream = ?2, number = ?3 WHERE id = ?1", "iii", id,
                   (int64_t)stream, (int64_t)number);
}

static void copy_bytes(sqlite3_stmt *q, int column, uint8_t *ret, size_t size)
{
    memset(ret, 0, size);
    if ((size_t)sqlite3_column_bytes(q, column) == size) {
        memcpy(ret, sqlite3_column_blob(q, column), size);
    }
}

int store_nics(struct store *s, store_nic_each each, void *context)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(s, &r,
                                  "SELECT id, host, name, leaf, rail, speed_mbps, address4, "
                                  "address6, removed FROM nic ORDER BY id",
                                  "");
    while (sql_next(s, q, &r)) {
        struct store_nic nic = {
            .id = (uint32_t)sqlite3_column_int64(q, 0),
            .host = sqlite3_column_int64(q, 1),
            .name = sql_text(q, 2),
            .leaf = sql_text(q, 3),
            .rail = (uint32_t)sqlite3_column_int64(q, 4),
            .speed_mbps = (uint32_t)sqlite3_column_int64(q, 5),
            .removed = sqlite3_column_int(q, 8) != 0,
        };
        copy_bytes(q, 6, nic.address4, sizeof(nic.address4));
        copy_bytes(q, 7, nic.address6, sizeof(nic.address6));
        r = each(context, &nic);
    }
    return r;
}

int store_nic_put(struct store *s, const struct store_nic *n)
{
    return sql_run(s,
                   "INSERT OR REPLACE INTO nic(id, host, name, leaf, rail, speed_mbps, address4, "
                   "address6, removed) VALUES(?,?,?,?,?,?,?,?,?)",
                   "iissiibbi", (int64_t)n->id, n->host, n->name, n->leaf, (int64_t)n->rail,
                   (int64_t)n->speed_mbps, n->address4, sizeof(n->address4), n->address6,
                   sizeof(n->address6), (int64_t)n->removed);
}

/* ---- tokens ---- */

int store_tokens(struct store *s, store_token_each each, void *context)
{
    int r = 0;
    sqlite3_stmt *q = sql_prepare(s, &r,
                                  "SELECT id, name, role, hash, created_ns, expires_ns, used_ns, "
                                  "uses_left, scope FROM token ORDER BY id",
                                  "");
    while (sql_next(s, q, &r)) {
        struct store_token t = {
            .id = sqlite3_column_int64(q, 0),
            .name = sql_text(q, 1),
            .role = sql_text(q, 2),
            .created_ns = sqlite3_column_int64(q, 4),
            .expires_ns = sqlite3_column_int64(q, 5),
            .used_ns = sqlite3_column_int64(q, 6),
            .uses_left = sqlite3_column_int64(q, 7),
            .scope = sql_text(q, 8),
        };
        copy_bytes(q, 3, t.hash, sizeof(t.hash));
        r = each(context, &t);
    }
    return r;
}

int store_token_put(struct store *s, const struct store_token *t, int64_t *ret_id)
{
    const int r =
        sql_run(s,
                "INSERT INTO token(name, role, hash, created_ns, expires_ns, used_ns, "
                "uses_left, scope) VALUES(?,?,?,?,?,?,?,?)",
                "ssbiiiis", t->name, t->role, t->hash, sizeof(t->hash), t->created_ns,
                t->expires_ns, t->used_ns, t->uses_left, t->scope != NULL ? t->scope : "");
    if (r == 0 && ret_id != NULL) {
        *ret_id = sqlite3_last_insert_rowid(s->db);
    }
    return r;
}

int store_token_use(struct store *s, int64_t id, int64_t at_ns)
{
    const int r = sql_run(s,
                          "UPDATE token SET used_ns = ?2, uses_left = uses_left - (role = 'join') "
                          "WHERE id = ?1 AND (role != 'join' OR uses_left > 0)",
                          "ii", id, at_ns);
    return r < 0 ? r : sqlite3_changes(s->db) == 1 ? 0 : -ENOENT;
}

int store_token_remove(struct store *s, int64_t id)
{
    const int r = sql_run(s, "DELETE FROM token WHERE id = ?", "i", id);
    return r < 0 ? r : sqlite3_changes(s->db) == 1 ? 0 : -ENOENT;
}

/* ---- audit ---- */

int store_audit_put(struct store *s, const struct store_audit *a)
{
    return sql_run(s, "INSERT INTO audit(at_ns, who, what, detail, source) VALUES(?,?,?,?,?)",
                   "issss", a->at_ns, a->who, a->what, a->detail,
                   a->source != NULL ? a->source : "");
}

int store_audits(struct store *s, int64_t before_id, int limit, store_audit_each each,
                 void *context)
{
    int r = 0;
    sqlite3_stmt *q =
        sql_prepare(s, &r,
                    "SELECT id, at_ns, who, what, detail, source FROM audit WHERE id < ? "
                    "ORDER BY id DESC LIMIT ?",
                    "ii", before_id != 0 ? before_id : INT64_MAX, (int64_t)limit);
    while (sql_next(s, q, &r)) {
        const struct store_audit a = {.id = sqlite3_column_int64(q, 0),
                                      .at_ns = sqlite3_column_int64(q, 1),
                                      .who = sql_text(q, 2),
                                      .what = sql_text(q, 3),
                                      .detail = sql_text(q, 4),
                                      .source = sql_text(q, 5)};
        r = each(context, &a);
    }
    return r;
}

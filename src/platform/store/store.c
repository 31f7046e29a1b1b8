/* store.c: the store's file: opening, transactions, check, backup. */
#include "platform/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/store/alike.h"
#include "platform/store/sql.h"

enum {
    PATH_SIZE = 512,
};

static const char schema_1[] =
    "CREATE TABLE setting(name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE host(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, state INTEGER NOT "
    "NULL,"
    " joined_ns INTEGER NOT NULL, removed_ns INTEGER NOT NULL, serial TEXT NOT NULL,"
    " serial_before TEXT NOT NULL, pin TEXT NOT NULL, not_after INTEGER NOT NULL, stream INTEGER "
    "NOT NULL,"
    " number INTEGER NOT NULL, sealed_ns INTEGER NOT NULL, version TEXT NOT NULL);"
    "CREATE UNIQUE INDEX host_name ON host(name) WHERE state = 1;"
    "CREATE TABLE nic(id INTEGER PRIMARY KEY, host INTEGER NOT NULL REFERENCES host(id), name TEXT "
    "NOT NULL,"
    " leaf TEXT NOT NULL, rail INTEGER NOT NULL, speed_mbps INTEGER NOT NULL, address4 BLOB NOT "
    "NULL,"
    " address6 BLOB NOT NULL, removed INTEGER NOT NULL);"
    "CREATE TABLE report(host INTEGER NOT NULL, at_ns INTEGER NOT NULL, body BLOB NOT NULL);"
    "CREATE INDEX report_host ON report(host, at_ns);"
    "CREATE TABLE path_table(host INTEGER NOT NULL, generation INTEGER NOT NULL, at_ns INTEGER NOT "
    "NULL,"
    " body BLOB NOT NULL, PRIMARY KEY(host, generation)) WITHOUT ROWID;"
    "CREATE TABLE chunk(tier INTEGER NOT NULL, host INTEGER NOT NULL, from_ns INTEGER NOT NULL,"
    " to_ns INTEGER NOT NULL, body BLOB NOT NULL);"
    "CREATE UNIQUE INDEX chunk_place ON chunk(tier, host, from_ns);"
    "CREATE INDEX chunk_age ON chunk(tier, to_ns);"
    "CREATE TABLE event(id INTEGER PRIMARY KEY AUTOINCREMENT, at_ns INTEGER NOT NULL, fleet_ns "
    "INTEGER NOT NULL,"
    " host INTEGER NOT NULL, kind TEXT NOT NULL, word TEXT NOT NULL, body TEXT NOT NULL);"
    "CREATE INDEX event_at ON event(at_ns);"
    "CREATE INDEX event_host ON event(host, id);"
    "CREATE TABLE finding(id INTEGER PRIMARY KEY AUTOINCREMENT, host INTEGER NOT NULL, run INTEGER "
    "NOT NULL,"
    " number INTEGER NOT NULL, opened_ns INTEGER NOT NULL, updated_ns INTEGER NOT NULL,"
    " closed_ns INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, UNIQUE(host, run, "
    "number));"
    "CREATE INDEX finding_open ON finding(closed_ns, id);"
    "CREATE TABLE token(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, role TEXT NOT "
    "NULL,"
    " hash BLOB NOT NULL UNIQUE, created_ns INTEGER NOT NULL, expires_ns INTEGER NOT NULL,"
    " used_ns INTEGER NOT NULL, uses_left INTEGER NOT NULL);"
    "CREATE TABLE audit(id INTEGER PRIMARY KEY AUTOINCREMENT, at_ns INTEGER NOT NULL, who TEXT NOT "
    "NULL,"
    " what TEXT NOT NULL, detail TEXT NOT NULL);";
static const char schema_2[] = "ALTER TABLE token ADD COLUMN scope TEXT NOT NULL DEFAULT '';";
static const char schema_3[] = "ALTER TABLE audit ADD COLUMN source TEXT NOT NULL DEFAULT '';";
static const char schema_4[] =
    "CREATE TABLE fact_body(hash BLOB PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE host_part(host INTEGER NOT NULL, part TEXT NOT NULL, at_ns INTEGER NOT NULL,"
    " hash BLOB NOT NULL, PRIMARY KEY(host, part, at_ns)) WITHOUT ROWID;"
    "CREATE INDEX host_part_hash ON host_part(hash);"
    "CREATE TABLE host_look(host INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, left_out INTEGER NOT "
    "NULL,"
    " refused TEXT NOT NULL, now BLOB NOT NULL);"
    "CREATE TABLE audit_run(id INTEGER PRIMARY KEY, ended_ns INTEGER NOT NULL, body TEXT NOT NULL);"
    "CREATE TABLE audit_host(run INTEGER NOT NULL, host INTEGER NOT NULL, at_ns INTEGER NOT NULL,"
    " marks TEXT NOT NULL, gate TEXT NOT NULL, line TEXT NOT NULL, body BLOB NOT NULL,"
    " PRIMARY KEY(run, host)) WITHOUT ROWID;"
    "CREATE INDEX audit_host_newest ON audit_host(host, run);";
static const char schema_5[] = "ALTER TABLE finding ADD COLUMN named TEXT NOT NULL DEFAULT '';";
/* Bodies that are much alike (alike.h). A base of a run goes with the run's results, any other with the last body beside it. */
static const char schema_6[] =
    "CREATE TABLE alike(id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, run INTEGER NOT "
    "NULL,"
    " body BLOB NOT NULL);"
    "CREATE INDEX alike_kind ON alike(kind, run);"
    "ALTER TABLE host_look ADD COLUMN base INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE fact_body ADD COLUMN base INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE audit_host ADD COLUMN base INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX host_look_base ON host_look(base) WHERE base <> 0;"
    "CREATE INDEX fact_body_base ON fact_body(base) WHERE base <> 0;";

/* Each step updates version i to i + 1. A released step never changes: a new one is added. */
static const char *const steps[STORE_SCHEMA] = {schema_1, schema_2, schema_3,
                                                schema_4, schema_5, schema_6};

/* ---- sql ---- */

int sql_rc(struct store *s, int r)
{
    switch (r & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return 0;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EUCLEAN;
    case SQLITE_CONSTRAINT:
        return -EEXIST;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_CANTOPEN:
        return -ENOENT;
    default:
        return s->db != NULL && sqlite3_system_errno(s->db) == ENOSPC ? -ENOSPC : -EIO;
    }
}

static sqlite3_stmt *find(struct store *s, int *ret_rc, const char *text)
{
    size_t i = 0;
    while (i < SQL_MAX && s->cache[i].text != NULL && s->cache[i].text != text) {
        i++;
    }
    ASSERT(i < SQL_MAX);
    if (s->cache[i].text == NULL) {
        sqlite3_stmt *statement = NULL;
        const int r =
            sqlite3_prepare_v3(s->db, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
        if (r != SQLITE_OK) {
            *ret_rc = sql_rc(s, r);
            return NULL;
        }
        s->cache[i].text = text;
        s->cache[i].statement = statement;
    }
    return s->cache[i].statement;
}

static sqlite3_stmt *prepare(struct store *s, int *ret_rc, const char *text, const char *types,
                             va_list arguments)
{
    sqlite3_stmt *statement = find(s, ret_rc, text);
    int r = SQLITE_OK;
    for (int i = 1; statement != NULL && r == SQLITE_OK && *types != 0; i++, types++) {
        if (*types == 'i') {
            r = sqlite3_bind_int64(statement, i, va_arg(arguments, int64_t));
        } else if (*types == 's') {
            r = sqlite3_bind_text(statement, i, va_arg(arguments, const char *), -1, SQLITE_STATIC);
        } else {
            const void *bytes = va_arg(arguments, const void *);
            const size_t size = va_arg(arguments, size_t);
            r = sqlite3_bind_blob64(statement, i, bytes, size, SQLITE_STATIC);
        }
    }
    if (r != SQLITE_OK) {
        *ret_rc = sql_rc(s, r);
        return NULL;
    }
    return statement;
}

sqlite3_stmt *sql_prepare(struct store *s, int *ret_rc, const char *text, const char *types, ...)
{
    va_list arguments;
    va_start(arguments, types);
    sqlite3_stmt *statement = prepare(s, ret_rc, text, types, arguments);
    va_end(arguments);
    return statement;
}

void sql_end(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

int sql_step(struct store *s, sqlite3_stmt *statement)
{
    const int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        return 1;
    }
    const int r = sql_rc(s, rc);
    sql_end(statement);
    return r;
}

bool sql_next(struct store *s, sqlite3_stmt *statement, int *r)
{
    if (statement == NULL) {
        return false;
    }
    if (*r != 0) { /* the callback ended the iteration */
        sql_end(statement);
        return false;
    }
    const int step = sql_step(s, statement);
    *r = step < 0 ? step : 0;
    return step > 0;
}

int sql_write(struct store *s)
{
    if (s->dirty) {
        return 0;
    }
    const int r = sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    s->dirty = r == SQLITE_OK;
    return sql_rc(s, r);
}

int sql_run(struct store *s, const char *text, const char *types, ...)
{
    int r = sql_write(s);
    va_list arguments;
    va_start(arguments, types);
    sqlite3_stmt *statement = r < 0 ? NULL : prepare(s, &r, text, types, arguments);
    va_end(arguments);
    if (statement != NULL) {
        while ((r = sql_step(s, statement)) > 0) {
        }
    }
    return r;
}

const char *sql_text(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text != NULL ? (const char *)text : "";
}

/* ---- opening ---- */

static int64_t pragma(struct store *s, const char *text)
{
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;
    if (sqlite3_prepare_v2(s->db, text, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        value = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return value;
}

static int take_lock(struct store *s, const struct store_options *o, char words[256])
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s.lock", o->path);
    s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock_fd < 0) {
        const int r = -errno;
        snprintf(words, 256, "%.180s: %s", path, strerror(-r));
        return r;
    }
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        snprintf(words, 256,
                 "%s: another foliot-controller has it: one writes, or none is safe. Stop that one "
                 "first",
                 o->path);
        return -EBUSY;
    }
    return 0;
}

static int migrate(struct store *s, const char *path, char words[256])
{
    const int64_t version = pragma(s, "PRAGMA user_version");
    if (version < 0) {
        return -EUCLEAN;
    }
    if (version > STORE_SCHEMA) {
        snprintf(words, 256,
                 "%s: made by a newer foliot-controller (schema %lld, this one reads %d): go back "
                 "to that version, or restore a backup from before it",
                 path, (long long)version, STORE_SCHEMA);
        return -EPROTO;
    }
    int r = version < STORE_SCHEMA ? sql_write(s) : 0;
    for (int64_t i = version; i < STORE_SCHEMA && r == 0; i++) {
        char text[64];
        r = sql_rc(s, sqlite3_exec(s->db, steps[i], NULL, NULL, NULL));
        snprintf(text, sizeof(text), "PRAGMA user_version = %lld", (long long)i + 1);
        r = r < 0 ? r : sql_rc(s, sqlite3_exec(s->db, text, NULL, NULL, NULL));
    }
    return r < 0 ? r : store_commit(s);
}

static int on_log(void *context, sqlite3 *db, const char *name, int pages)
{
    struct store *s = context;
    s->log_pages = (uint32_t)pages;
    /* if this fails, the next commit tries again; this commit is done */
    if (s->log_pages >= s->log_pages_max && store_checkpoint(s) < 0) {
        s->log_pages = (uint32_t)pages;
    }
    return SQLITE_OK;
}

void store_has_helper(struct store *s)
{
    s->log_pages_max = 8 * STORE_LOG_PAGES;
}

uint32_t store_log_pages(const struct store *s)
{
    return s->log_pages;
}

int store_checkpoint(struct store *s)
{
    int pages = 0, done = 0;
    const int r = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &done);
    if (r == SQLITE_OK && pages == done) {
        s->log_pages = 0;
    }
    return sql_rc(s, r);
}

static int look_through(struct store *s, const char *how, char words[256])
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(s->db, how, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
    }
    int r = rc == SQLITE_ROW ? 0 : sql_rc(s, rc);
    if (rc == SQLITE_ROW && strcmp(sql_text(statement, 0), "ok") != 0) {
        snprintf(words, 256, "%.250s", sql_text(statement, 0));
        words[strcspn(words, "\n")] = 0;
        r = -EUCLEAN;
    }
    sqlite3_finalize(statement);
    return r;
}

static int set_up(struct store *s, const struct store_options *o, char words[256])
{
    static const char pragmas[] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                                  "PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY;"
                                  "PRAGMA cache_size=-16384;"
                                  "PRAGMA journal_size_limit=67108864; PRAGMA trusted_schema=OFF;";
    struct stat st = {0};
    const bool writes = !o->read_only && !o->helper;
    sqlite3_busy_timeout(s->db, writes ? 0 : 2000);
    int r = 0;
    if (o->helper) {
        r = sql_rc(s, sqlite3_exec(s->db, "PRAGMA synchronous=FULL; PRAGMA query_only=ON;", NULL,
                                   NULL, NULL));
        sqlite3_wal_autocheckpoint(s->db, 0);
        return r;
    }
    if (writes) {
        s->log_pages_max = STORE_LOG_PAGES;
        sqlite3_wal_hook(s->db, on_log, s);
        /* Only for a new file. For another file this would be a commit. It would copy the log of a killed process into the
         * file: four syncs before any request is answered. */
        if (stat(o->path, &st) < 0 || st.st_size == 0) {
            r = sql_rc(s,
                       sqlite3_exec(s->db, "PRAGMA page_size=8192; PRAGMA auto_vacuum=INCREMENTAL;",
                                    NULL, NULL, NULL));
        }
        r = r < 0 ? r : sql_rc(s, sqlite3_exec(s->db, pragmas, NULL, NULL, NULL));
    }
    if (r == 0 && stat(o->path, &st) == 0 && st.st_size < STORE_CHECK_BYTES) {
        r = look_through(s, "PRAGMA quick_check(1)", words);
    }
    if (r == 0 && writes) {
        r = migrate(s, o->path, words);
    }
    if (r == -EUCLEAN) {
        char why[200];
        snprintf(why, sizeof(why), "%.190s", words);
        snprintf(words, 256, "%.60s is damaged (%.60s). Restore: foliot-controller restore BACKUP",
                 o->path, why[0] != 0 ? why : "not a database");
    }
    return r;
}

int store_open(const struct store_options *o, struct store **ret_store, char words[256])
{
    struct store *s = calloc(1, sizeof(*s));
    snprintf(words, 256, "out of memory");
    if (s == NULL) {
        return -ENOMEM;
    }
    s->lock_fd = -1;
    int r = 0;
    if (!o->create && access(o->path, R_OK) < 0) {
        r = -errno;
        snprintf(words, 256, "%s: %s", o->path, strerror(-r));
    }
    r = r < 0 || o->read_only || o->helper ? r : take_lock(s, o, words);
    if (r == 0) {
        const mode_t mask = umask(077);
        const int flags = (o->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
                          (o->create ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOMUTEX;
        words[0] = 0;
        r = sql_rc(s, sqlite3_open_v2(o->path, &s->db, flags, NULL));
        r = r < 0 ? r : set_up(s, o, words);
        umask(mask);
        if (r < 0 && words[0] == 0) {
            snprintf(words, 256, "%s: %s", o->path,
                     s->db != NULL ? sqlite3_errmsg(s->db) : strerror(-r));
        }
    }
    if (r < 0) {
        store_close(s);
        return r;
    }
    *ret_store = s;
    return 0;
}

void store_close(struct store *s)
{
    if (s == NULL) {
        return;
    }
    if (s->dirty) {
        store_rollback(s);
    }
    for (size_t i = 0; i < SQL_MAX; i++) {
        sqlite3_finalize(s->cache[i].statement);
    }
    alike_done(s);
    sqlite3_close(s->db);
    if (s->lock_fd >= 0) {
        close(s->lock_fd);
    }
    free(s);
}

bool store_dirty(const struct store *s)
{
    return s->dirty;
}

int store_commit(struct store *s)
{
    if (!s->dirty) {
        return 0;
    }
    const int rc = sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    if (rc != SQLITE_OK) {
        const int r = sql_rc(s, rc);
        store_rollback(s);
        return r;
    }
    s->dirty = false;
    return 0;
}

void store_rollback(struct store *s)
{
    if (sqlite3_get_autocommit(s->db) == 0) { /* some errors have already rolled back */
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    }
    alike_forget(s); /* a base may be one of the rows that are gone */
    s->dirty = false;
}

int store_snapshot(struct store *s)
{
    return sql_rc(s, sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL));
}

void store_snapshot_end(struct store *s)
{
    if (sqlite3_get_autocommit(s->db) == 0) {
        (void)sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    }
}

int store_shrink(struct store *s, int pages)
{
    const int64_t empty = pragma(s, "PRAGMA freelist_count"), all = pragma(s, "PRAGMA page_count"),
                  spare = empty - all / STORE_SPARE;
    char text[48];
    if (spare <= 0) {
        return 0;
    }
    snprintf(text, sizeof(text), "PRAGMA incremental_vacuum(%d)",
             spare < pages ? (int)spare : pages);
    int r = sql_write(s);
    r = r < 0 ? r : sql_rc(s, sqlite3_exec(s->db, text, NULL, NULL, NULL));
    return r < 0 ? r : (int)(empty - pragma(s, "PRAGMA freelist_count"));
}

int store_check(struct store *s, char words[256])
{
    return look_through(s, "PRAGMA integrity_check(1)", words);
}

/* ---- backup ---- */

struct store_backup {
    struct store *from;
    sqlite3 *to;
    sqlite3_backup *backup;
};

int store_backup_open(struct store *s, const char *path, struct store_backup **ret)
{
    struct store_backup *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        return -ENOMEM;
    }
    b->from = s;
    const mode_t mask = umask(077);
    int r = access(path, F_OK) == 0
                ? SQLITE_CONSTRAINT
                : sqlite3_open_v2(path, &b->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    umask(mask);
    if (r == SQLITE_OK) {
        b->backup = sqlite3_backup_init(b->to, "main", s->db, "main");
        r = b->backup == NULL ? sqlite3_errcode(b->to) : SQLITE_OK;
    }
    if (r != SQLITE_OK) {
        store_backup_close(b);
        return sql_rc(s, r);
    }
    *ret = b;
    return 0;
}

int store_backup_step(struct store_backup *b, int pages)
{
    const int r = sqlite3_backup_step(b->backup, pages);
    if (r == SQLITE_DONE) {
        const int end = sqlite3_backup_finish(b->backup);
        b->backup = NULL;
        return sql_rc(b->from, end);
    }
    return r == SQLITE_OK || r == SQLITE_BUSY || r == SQLITE_LOCKED ? 1 : sql_rc(b->from, r);
}

void store_backup_close(struct store_backup *b)
{
    if (b != NULL) {
        if (b->backup != NULL) {
            sqlite3_backup_finish(b->backup);
        }
        sqlite3_close(b->to);
        free(b);
    }
}

int64_t store_newest_ns(struct store *s)
{
    const int64_t event = pragma(s, "SELECT max(at_ns) FROM event"),
                  chunk = pragma(s, "SELECT max(to_ns) FROM chunk WHERE tier = 0");
    const int64_t newest = event > chunk ? event : chunk;
    return newest > 0 ? newest : 0;
}

void store_sizes(struct store *s, struct store_sizes *ret)
{
    *ret = (struct store_sizes){
        .file_bytes = pragma(s, "PRAGMA page_count") * pragma(s, "PRAGMA page_size"),
        .reports = pragma(s, "SELECT max(rowid) - min(rowid) + 1 FROM report"),
        .events = pragma(s, "SELECT max(id) FROM event"),
        .chunks = pragma(s, "SELECT max(rowid) FROM chunk"),
    };
}

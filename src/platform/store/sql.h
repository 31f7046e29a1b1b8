/* sql.h: the store's own: one connection, statements prepared once. */
#pragma once
#include <sqlite3.h>
#include <stdarg.h>

#include "platform/store/store.h"

enum { SQL_MAX = 64 };

struct store {
    sqlite3 *db;
    int lock_fd;
    bool dirty; /* a transaction is open */
    uint32_t log_pages, log_pages_max;
    struct {
        const char *text;
        sqlite3_stmt *statement;
    } cache[SQL_MAX];
};

int sql_rc(struct store *s, int sqlite_rc); /* as negative errno */
/* A statement with its arguments bound: by letter i (int64_t), s (text or NULL), and b (bytes and
 * size_t). `text` is a literal: its address is its name. NULL: *ret_rc says why. Begin a transaction
 * first with sql_write. */
sqlite3_stmt *sql_prepare(struct store *s, int *ret_rc, const char *text, const char *types, ...);
int sql_write(struct store *s); /* begins a transaction unless one is open */
/* Runs it to its end, no rows wanted. */
int sql_run(struct store *s, const char *text, const char *types, ...);
/* 1: a row, 0: no more (and the statement is reset), < 0. */
int sql_step(struct store *s, sqlite3_stmt *statement);
void sql_end(sqlite3_stmt *statement);
/* while (sql_next(s, q, &r)) { r = each(context, &row); } : the rows one by one, as long as r is 0; all
 * is put away at the end. q NULL: none, r says why. */
bool sql_next(struct store *s, sqlite3_stmt *statement, int *r);
const char *sql_text(sqlite3_stmt *statement, int column); /* "" for NULL */

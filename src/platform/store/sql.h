/* sql.h: only for the store: one connection, statements that are prepared once. */
#pragma once
#include <sqlite3.h>
#include <stdarg.h>

#include "platform/message/message.h"
#include "platform/store/store.h"

enum { SQL_MAX = 96 }; /* statements of one connection */

struct alike_base;
struct alike {                /* alike.h */
    struct alike_base *bases; /* of all kinds, the one used last first */
    uint32_t count;
    /* packed: the last result of alike_pack; alone: the same body without a base */
    struct message_buffer packed, tried, alone;
};

struct store {
    sqlite3 *db;
    int lock_fd;
    bool dirty; /* a transaction is open */
    uint32_t log_pages, log_pages_max;
    struct {
        const char *text;
        sqlite3_stmt *statement;
    } cache[SQL_MAX];
    struct alike alike;
};

int sql_rc(struct store *s, int sqlite_rc); /* converts to a negative errno */
/* A statement with bound arguments. Letters: i (int64_t), s (text or NULL), b (bytes and size_t). `text` is a literal: its
 * address identifies the statement. NULL: *ret_rc has the error. To write, begin a transaction first with sql_write. */
sqlite3_stmt *sql_prepare(struct store *s, int *ret_rc, const char *text, const char *types, ...);
int sql_write(struct store *s); /* begins a transaction if none is open */
/* Runs a statement without rows to its end. */
int sql_run(struct store *s, const char *text, const char *types, ...);
/* Returns 1: a row; 0: no more rows (the statement is reset); < 0: an error. */
int sql_step(struct store *s, sqlite3_stmt *statement);
void sql_end(sqlite3_stmt *statement);
/* while (sql_next(s, q, &r)) { r = each(context, &row); } : iterates over the rows while r is 0, then resets the statement. q
 * NULL: no rows, r has the error. */
bool sql_next(struct store *s, sqlite3_stmt *statement, int *r);
const char *sql_text(sqlite3_stmt *statement, int column); /* "" for NULL */

/* foliot_client.h: one question to one agent over its Unix socket, as docs/json.md says.
 *
 * Blocking, with a deadline: an agent that hangs is reported, never waited for. Errors are negative
 * errno; the message is printed by client_explain. An answer is owned by the caller (json_decref).
 */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "app/foliot_command.h"
#include "base/bug.h"

struct client {
    int fd;
    char *buffer;
    size_t size, capacity; /* bytes held, bytes claimed */
    bool raw; /* answers are not to be shown: their text stays as it came (foliot_foreign.h) */
};

/* -ENOENT or -ECONNREFUSED: no agent; -EACCES: may not. */
MUST_CHECK int client_open(struct client *client, const char *path);
void client_close(struct client *client);
MUST_CHECK int client_send(struct client *client, const char *verb, const char *what);
/* The next line, parsed. -ETIMEDOUT, -EPROTO (not JSON, or an error object: its message is
 * printed), -ECONNRESET. timeout_ms < 0 waits for ever. */
MUST_CHECK int client_receive(struct client *client, int timeout_ms, json_t **ret_answer);
/* Exactly `size` raw bytes after an object, into a file descriptor. */
MUST_CHECK int client_copy(struct client *client, size_t size, int timeout_ms, int to_fd);
/* open, send, receive, close. raw: as in struct client. */
MUST_CHECK int client_ask(const char *path, const char *what, bool raw, json_t **ret_answer);
/* Says on stderr why an agent could not be asked and what to do. */
void client_explain(const struct target *target, int r);

/* Asks every target; ret_answers has one entry per target, NULL where it could not be asked (said
 * on stderr when `loud`). Returns how many answered. */
size_t client_ask_all(const struct options *options, const char *what, bool loud,
                      json_t **ret_answers);

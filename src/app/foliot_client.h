/* foliot_client.h: sends one request to one agent over its Unix socket (docs/json.md).
 *
 * Calls block until a deadline, so an agent that hangs is reported. Errors are negative errno; client_explain() prints the
 * message. The caller owns an answer (json_decref). */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "app/foliot_command.h"
#include "base/bug.h"

struct client {
    int fd;
    char *buffer;
    size_t size, capacity; /* bytes in the buffer, bytes of it already read */
    bool raw; /* the answers are not shown: their text stays unescaped (foliot_foreign.h) */
};

/* -ENOENT or -ECONNREFUSED: no agent; -EACCES: no permission. */
MUST_CHECK int client_open(struct client *client, const char *path);
void client_close(struct client *client);
MUST_CHECK int client_send(struct client *client, const char *verb, const char *what);
/* The next line, parsed. -ETIMEDOUT, -ECONNRESET, -EPROTO (no JSON, or an error object: its message is printed). timeout_ms < 0:
 * waits without a limit. */
MUST_CHECK int client_receive(struct client *client, int timeout_ms, json_t **ret_answer);
/* Copies exactly `size` raw bytes, which follow an object, to a file descriptor. */
MUST_CHECK int client_copy(struct client *client, size_t size, int timeout_ms, int to_fd);
/* Opens, sends, receives and closes. raw: as in struct client. */
MUST_CHECK int client_ask(const char *path, const char *what, bool raw, json_t **ret_answer);
/* Prints on stderr why an agent gave no answer, and what to do. */
void client_explain(const struct target *target, int r);

/* Asks every target. ret_answers has one entry for each target; NULL: no answer (explained on stderr if `loud`). Returns the
 * number of answers. */
size_t client_ask_all(const struct options *options, const char *what, bool loud,
                      json_t **ret_answers);

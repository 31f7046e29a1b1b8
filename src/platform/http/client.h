/* client.h: HTTPS POSTs on the caller's sd-event loop. One call at a time per client; the connection is kept.
 *
 * Uses libcurl. The peer must show a certificate of `authority` for the name in the URL. Before the authority is known, it
 * must show one with the pinned public key. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/bug.h"

struct http_client;

struct http_call {
    const char *url;
    const char *connect_to; /* "ADDRESS:PORT" to connect to, instead of the URL's; or NULL */
    const char *socket;     /* a Unix socket to connect to, instead of the URL's; or NULL */
    bool (*check)(void *context,
                  int fd); /* checks the peer of `socket` before anything is sent; false: -EIO */
    const char *authority; /* path of a PEM file; NULL: `pin` */
    const char *certificate, *key; /* paths of PEM files; NULL: none */
    const char *pin;               /* "sha256//BASE64" of the server's public key; or NULL */
    const char *const *headers;    /* "Name: value", NULL-ended; may be NULL */
    const char *method;            /* NULL: POST */
    const void *body;              /* copied */
    size_t size;
    size_t answer_max;
    unsigned timeout_ms;
};

struct http_result {
    int error;        /* 0, or -ETIMEDOUT, -ECONNREFUSED, -EACCES (TLS), -EMSGSIZE, -EIO */
    unsigned status;  /* HTTP status */
    const void *body; /* valid in the callback only; 0-ended */
    size_t size;
    const char *words; /* describes the error, for people */
};
typedef void (*http_done)(void *context, const struct http_result *result);

/* -ENOMEM, or an error of the event loop. Calls end in callbacks of the loop. */
MUST_CHECK int http_client_open(sd_event *loop, struct http_client **ret_client);
/* After this no callback is called. Accepts NULL. */
void http_client_close(struct http_client *client);
/* -EBUSY: a call is running. */
MUST_CHECK int http_client_call(struct http_client *client, const struct http_call *call,
                                http_done done, void *context);
bool http_client_busy(const struct http_client *client);
/* Closes the kept connection before the next call, so that a new certificate is used from then on. */
void http_client_reset(struct http_client *client);
/* The same, but waits for the end: for command lines. */
MUST_CHECK int http_call_now(const struct http_call *call, http_done done, void *context);

/* client.h: HTTPS POSTs on the caller's sd-event loop, one at a time per client, the connection kept.
 *
 * By libcurl. The peer must show a certificate of `authority` for the name in the URL, or, before
 * an authority is known, one with the pinned public key. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/bug.h"

struct http_client;

struct http_call {
    const char *url;
    const char *connect_to; /* "ADDRESS:PORT" to go to whatever the URL says; NULL */
    const char *socket;     /* a Unix socket to go to whatever the URL says; NULL */
    bool (*check)(
        void *context,
        int fd); /* of `socket`: is it the right one? Before anything is sent; false: -EIO */
    const char *authority;         /* path of a PEM file; NULL: `pin` */
    const char *certificate, *key; /* paths of PEM files; NULL: none */
    const char *pin;               /* "sha256//BASE64" of the server's public key; NULL */
    const char *const *headers;    /* "Name: value", NULL-ended; may be NULL */
    const char *method;            /* NULL: POST */
    const void *body;              /* copied */
    size_t size;
    size_t answer_max;
    unsigned timeout_ms;
};

struct http_result {
    int error;        /* 0, or -ETIMEDOUT, -ECONNREFUSED, -EACCES (TLS), -EMSGSIZE, -EIO */
    unsigned status;  /* of HTTP */
    const void *body; /* valid in the callback only; 0-ended */
    size_t size;
    const char *words; /* of the error, for people */
};
typedef void (*http_done)(void *context, const struct http_result *result);

/* -ENOMEM, or what the event loop refuses. Calls end in the loop's callbacks. */
MUST_CHECK int http_client_open(sd_event *loop, struct http_client **ret_client);
/* No callback comes any more. NULL is fine. */
void http_client_close(struct http_client *client);
/* -EBUSY: one is under way. */
MUST_CHECK int http_client_call(struct http_client *client, const struct http_call *call,
                                http_done done, void *context);
bool http_client_busy(const struct http_client *client);
/* Closes the kept connection before the next call: a new certificate is used from then on. */
void http_client_reset(struct http_client *client);
/* The same, waiting for the end: for command lines. */
MUST_CHECK int http_call_now(const struct http_call *call, http_done done, void *context);

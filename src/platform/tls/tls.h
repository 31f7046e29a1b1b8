/* tls.h: keys, requests and certificates of the fleet, as PEM texts; who is at the other end.
 *
 * Hosts, controller and their authority: Ed25519. The API: P-256, for browsers. Two kinds of
 * certificates, told apart by their key purpose so that a host's can't pass for the controller's:
 * TLS_HOST (TLS client; common name = host name) and TLS_SERVER (TLS server; for TLS_SERVER_NAME
 * and whatever names are given). Texts returned are the caller's to free; keys are wiped by
 * tls_wipe first. */
#pragma once
#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/bug.h"

#define TLS_SERVER_NAME "controller.foliot"
#define TLS_NAME_MAX    63
#define TLS_SERIAL_SIZE 41 /* hex and 0 */
#define TLS_PIN_SIZE    32 /* SHA-256 of a public key as it stands in certificates (SPKI) */

enum tls_purpose { TLS_HOST, TLS_SERVER };
enum tls_key { TLS_KEY_ED25519, TLS_KEY_P256 };

struct tls_certificate {
    char name[TLS_NAME_MAX + 1]; /* common name */
    char serial[TLS_SERIAL_SIZE];
    time_t not_before, not_after;
    uint8_t pin[TLS_PIN_SIZE];
};

struct tls_issue {
    const char *authority, *authority_key; /* PEM */
    const char *request;                   /* PEM; NULL: for `key` */
    const char *key;                       /* PEM; of ours */
    enum tls_purpose purpose;
    const char *name;         /* common name: whatever the request says */
    const char *const *names; /* further names or addresses of a server, NULL-ended; may be NULL */
    time_t not_before, not_after;
};

/* All: -ENOMEM, -EINVAL (not what it should be), -EIO (GnuTLS fails otherwise). */
MUST_CHECK int tls_key_new(enum tls_key kind, char **ret_key);
MUST_CHECK int tls_authority_new(const char *key, const char *name, time_t not_before,
                                 time_t not_after, char **ret_certificate);
MUST_CHECK int tls_request_new(const char *key, const char *name, char **ret_request);
/* A request with a bad signature or another kind of key: -EINVAL. */
MUST_CHECK int tls_issue(const struct tls_issue *issue, char **ret_certificate);
MUST_CHECK int tls_certificate_read(const char *certificate, struct tls_certificate *ret);

/* It is for each of these names and addresses; the list ends with NULL. */
bool tls_certificate_names(const char *certificate, const char *const *names);

/* After the handshake, on a server. -EACCES: no certificate, one of another authority, expired, not
 * valid yet, or not a host's. */
MUST_CHECK int tls_session_verify(gnutls_session_t session, struct tls_certificate *ret);

/* 1 to 63 of [a-z0-9.-], beginning with a letter or digit. */
bool tls_name_good(const char *name);
void tls_wipe(char *text); /* zeroes and frees; NULL is fine */
/* Reads a whole small file, 0-ended; the caller frees. */
MUST_CHECK int tls_read_file(const char *path, char **ret_text);
/* A number for a text: the same text, the same number; never 0. Of SHA-256: nobody finds another text with it. */
uint64_t tls_text_version(const char *text);
/* Written beside, synced, renamed. */
MUST_CHECK int tls_write_file(const char *path, const void *bytes, size_t size, unsigned mode);

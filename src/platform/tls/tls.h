/* tls.h: keys, requests and certificates of the fleet, as PEM texts; the identity of a peer.
 *
 * Hosts, controller and their authority use Ed25519. The API uses P-256, for browsers. There are two kinds of certificates.
 * Their key purposes differ, so that a host's certificate is never accepted for the controller's: TLS_HOST (TLS client; common
 * name = host name) and TLS_SERVER (TLS server; for TLS_SERVER_NAME and all given names). The caller frees returned texts;
 * tls_wipe wipes keys first. */
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
#define TLS_PIN_SIZE    32 /* SHA-256 of a public key as in certificates (SPKI) */

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
    const char *key;                       /* PEM; the own key */
    enum tls_purpose purpose;
    const char *name;         /* common name; the request's name is ignored */
    const char *const *names; /* further names or addresses of a server, NULL-ended; may be NULL */
    time_t not_before, not_after;
};

/* All return -ENOMEM, -EINVAL (invalid input), -EIO (another error of GnuTLS). */
MUST_CHECK int tls_key_new(enum tls_key kind, char **ret_key);
MUST_CHECK int tls_authority_new(const char *key, const char *name, time_t not_before,
                                 time_t not_after, char **ret_certificate);
MUST_CHECK int tls_request_new(const char *key, const char *name, char **ret_request);
/* -EINVAL for a request with an invalid signature or another type of key. */
MUST_CHECK int tls_issue(const struct tls_issue *issue, char **ret_certificate);
MUST_CHECK int tls_certificate_read(const char *certificate, struct tls_certificate *ret);

/* True if the certificate is for all of these names and addresses. The list ends with NULL. */
bool tls_certificate_names(const char *certificate, const char *const *names);

/* Called by a server after the handshake. -EACCES: no certificate, a certificate of another authority, an expired one, one
 * that is not valid yet, or not a host's. */
MUST_CHECK int tls_session_verify(gnutls_session_t session, struct tls_certificate *ret);

/* 1 to 63 of [a-z0-9.-], beginning with a letter or digit. */
bool tls_name_good(const char *name);
void tls_wipe(char *text); /* zeroes and frees; accepts NULL */
/* Reads a whole small file, with a 0 at its end. The caller frees it. */
MUST_CHECK int tls_read_file(const char *path, char **ret_text);
/* A number for a text: equal texts have equal numbers; never 0. It is made with SHA-256, so no other text with the same number
 * can be found. */
uint64_t tls_text_version(const char *text);
/* Writes a new file, syncs it, and renames it. */
MUST_CHECK int tls_write_file(const char *path, const void *bytes, size_t size, unsigned mode);

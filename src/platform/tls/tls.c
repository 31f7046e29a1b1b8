/* tls.c: X.509 with GnuTLS. */
#include "platform/tls/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rc_of(int gnutls_rc)
{
    return gnutls_rc >= 0                         ? 0
           : gnutls_rc == GNUTLS_E_MEMORY_ERROR   ? -ENOMEM
           : gnutls_rc == GNUTLS_E_RANDOM_FAILED  ? -EIO
           : gnutls_rc == GNUTLS_E_FILE_ERROR     ? -EIO
           : gnutls_rc == GNUTLS_E_INTERNAL_ERROR ? -EIO
                                                  : -EINVAL;
}

static gnutls_datum_t datum(const char *text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text, (unsigned)strlen(text)};
}

/* Copies GnuTLS's memory to memory of our own. */
static int text_of(gnutls_datum_t *d, char **ret_text)
{
    char *text = malloc(d->size + 1);
    if (text != NULL) {
        memcpy(text, d->data, d->size);
        text[d->size] = 0;
        *ret_text = text;
    }
    gnutls_memset(d->data, 0, d->size);
    gnutls_free(d->data);
    return text == NULL ? -ENOMEM : 0;
}

void tls_wipe(char *text)
{
    if (text != NULL) {
        gnutls_memset(text, 0, strlen(text));
        free(text);
    }
}

bool tls_name_good(const char *name)
{
    const size_t length = strlen(name);
    return length >= 1 && length <= TLS_NAME_MAX && name[0] != '.' && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == length;
}

static int import_key(const char *pem, gnutls_x509_privkey_t *ret)
{
    const gnutls_datum_t d = datum(pem);
    int r = gnutls_x509_privkey_init(ret);
    if (r >= 0) {
        r = gnutls_x509_privkey_import(*ret, &d, GNUTLS_X509_FMT_PEM);
        if (r < 0) {
            gnutls_x509_privkey_deinit(*ret);
        }
    }
    return r;
}

static int import_certificate(const char *pem, gnutls_x509_crt_t *ret)
{
    const gnutls_datum_t d = datum(pem);
    int r = gnutls_x509_crt_init(ret);
    if (r >= 0) {
        r = gnutls_x509_crt_import(*ret, &d, GNUTLS_X509_FMT_PEM);
        if (r < 0) {
            gnutls_x509_crt_deinit(*ret);
            *ret = NULL;
        }
    }
    return r;
}

int tls_key_new(enum tls_key kind, char **ret_key)
{
    gnutls_x509_privkey_t key = NULL;
    gnutls_datum_t out = {0};
    int r = gnutls_x509_privkey_init(&key);
    r = r < 0 ? r
        : kind == TLS_KEY_P256
            ? gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                           GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0)
            : gnutls_x509_privkey_generate(key, GNUTLS_PK_EDDSA_ED25519, 0, 0);
    r = r < 0 ? r
              : gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN,
                                                  &out);
    gnutls_x509_privkey_deinit(key);
    return r < 0 ? rc_of(r) : text_of(&out, ret_key);
}

/* Ed25519 always uses SHA-512. */
static gnutls_digest_algorithm_t digest_of(gnutls_x509_privkey_t key)
{
    return gnutls_x509_privkey_get_pk_algorithm(key) == GNUTLS_PK_EDDSA_ED25519 ? GNUTLS_DIG_SHA512
                                                                                : GNUTLS_DIG_SHA256;
}

static int new_serial(gnutls_x509_crt_t crt)
{
    uint8_t serial[16];
    int r = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));
    serial[0] = (uint8_t)((serial[0] & 0x3f) | 0x40); /* positive, and always of the same length */
    return r < 0 ? r : gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
}

static int set_name(gnutls_x509_crt_t crt, const char *name)
{
    int r = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                          (unsigned)strlen(name));
    return r < 0 ? r
                 : gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_ORGANIZATION_NAME, 0,
                                                 "foliot", 6);
}

static int set_times(gnutls_x509_crt_t crt, time_t not_before, time_t not_after)
{
    int r = gnutls_x509_crt_set_activation_time(crt, not_before);
    return r < 0 ? r : gnutls_x509_crt_set_expiration_time(crt, not_after);
}

static int key_id(gnutls_x509_crt_t crt)
{
    unsigned char id[64];
    size_t size = sizeof(id);
    int r = gnutls_x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, id, &size);
    return r < 0 ? r : gnutls_x509_crt_set_subject_key_id(crt, id, size);
}

static int export_text(int r, gnutls_x509_crt_t crt, char **ret)
{
    gnutls_datum_t out = {0};
    r = r < 0 ? r : gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &out);
    return r < 0 ? rc_of(r) : text_of(&out, ret);
}

int tls_authority_new(const char *key_pem, const char *name, time_t not_before, time_t not_after,
                      char **ret_certificate)
{
    gnutls_x509_privkey_t key = NULL;
    gnutls_x509_crt_t crt = NULL;
    int r = import_key(key_pem, &key);
    if (r < 0) {
        return rc_of(r);
    }
    r = gnutls_x509_crt_init(&crt);
    r = r < 0 ? r : gnutls_x509_crt_set_version(crt, 3);
    r = r < 0 ? r : gnutls_x509_crt_set_key(crt, key);
    r = r < 0 ? r : new_serial(crt);
    r = r < 0 ? r : set_name(crt, name);
    r = r < 0 ? r : set_times(crt, not_before, not_after);
    r = r < 0 ? r : gnutls_x509_crt_set_basic_constraints(crt, 1, 0);
    r = r < 0 ? r
              : gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN);
    r = r < 0 ? r : key_id(crt);
    r = r < 0 ? r : gnutls_x509_crt_sign2(crt, crt, key, digest_of(key), 0);
    r = export_text(r, crt, ret_certificate);
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_privkey_deinit(key);
    return r;
}

int tls_request_new(const char *key_pem, const char *name, char **ret_request)
{
    gnutls_x509_privkey_t key = NULL;
    gnutls_x509_crq_t crq = NULL;
    gnutls_datum_t out = {0};
    int r = import_key(key_pem, &key);
    if (r < 0) {
        return rc_of(r);
    }
    r = gnutls_x509_crq_init(&crq);
    r = r < 0 ? r : gnutls_x509_crq_set_version(crq, 1);
    r = r < 0 ? r : gnutls_x509_crq_set_key(crq, key);
    r = r < 0 ? r
              : gnutls_x509_crq_set_dn_by_oid(crq, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                              (unsigned)strlen(name));
    r = r < 0 ? r : gnutls_x509_crq_sign2(crq, key, GNUTLS_DIG_SHA512, 0);
    r = r < 0 ? r : gnutls_x509_crq_export2(crq, GNUTLS_X509_FMT_PEM, &out);
    gnutls_x509_crq_deinit(crq);
    gnutls_x509_privkey_deinit(key);
    return r < 0 ? rc_of(r) : text_of(&out, ret_request);
}

/* Takes the public key of a request, whose signature must be valid. */
static int take_request(const char *pem, gnutls_x509_crt_t crt)
{
    const gnutls_datum_t d = datum(pem);
    gnutls_x509_crq_t crq = NULL;
    gnutls_pubkey_t public = NULL;
    int r = gnutls_x509_crq_init(&crq);
    r = r < 0 ? r : gnutls_x509_crq_import(crq, &d, GNUTLS_X509_FMT_PEM);
    r = r < 0 ? r : gnutls_x509_crq_verify(crq, 0);
    r = r < 0 ? r : gnutls_pubkey_init(&public);
    r = r < 0 ? r : gnutls_pubkey_import_x509_crq(public, crq, 0);
    if (r >= 0 && gnutls_pubkey_get_pk_algorithm(public, NULL) != GNUTLS_PK_EDDSA_ED25519) {
        r = GNUTLS_E_UNSUPPORTED_SIGNATURE_ALGORITHM;
    }
    r = r < 0 ? r : gnutls_x509_crt_set_pubkey(crt, public);
    gnutls_pubkey_deinit(public);
    gnutls_x509_crq_deinit(crq);
    return r;
}

static int add_name(gnutls_x509_crt_t crt, const char *name)
{
    unsigned char address[16];
    for (int family = AF_INET, size = 4;; family = AF_INET6, size = 16) {
        if (inet_pton(family, name, address) == 1) {
            return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, address,
                                                        (unsigned)size, GNUTLS_FSAN_APPEND);
        }
        if (family == AF_INET6) {
            break;
        }
    }
    return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, name,
                                                (unsigned)strlen(name), GNUTLS_FSAN_APPEND);
}

static int fill_issue(const struct tls_issue *issue, gnutls_x509_crt_t crt)
{
    const bool server = issue->purpose == TLS_SERVER;
    gnutls_x509_privkey_t own = NULL;
    int r = gnutls_x509_crt_set_version(crt, 3);
    if (issue->request != NULL) {
        r = r < 0 ? r : take_request(issue->request, crt);
    } else {
        r = r < 0 ? r : import_key(issue->key, &own);
        r = r < 0 ? r : gnutls_x509_crt_set_key(crt, own);
        gnutls_x509_privkey_deinit(own);
    }
    r = r < 0 ? r : new_serial(crt);
    r = r < 0 ? r : set_name(crt, issue->name);
    r = r < 0 ? r : set_times(crt, issue->not_before, issue->not_after);
    r = r < 0 ? r : gnutls_x509_crt_set_basic_constraints(crt, 0, -1);
    r = r < 0 ? r : gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_DIGITAL_SIGNATURE);
    r = r < 0 ? r
              : gnutls_x509_crt_set_key_purpose_oid(
                    crt, server ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT, 0);
    r = r < 0 || !server ? r : add_name(crt, TLS_SERVER_NAME);
    for (const char *const *n = issue->names; r >= 0 && n != NULL && *n != NULL; n++) {
        r = add_name(crt, *n);
    }
    return r;
}

int tls_issue(const struct tls_issue *issue, char **ret_certificate)
{
    gnutls_x509_crt_t crt = NULL, authority = NULL;
    gnutls_x509_privkey_t key = NULL;
    if (!tls_name_good(issue->name)) {
        return -EINVAL;
    }
    int r = import_key(issue->authority_key, &key);
    if (r < 0) {
        return rc_of(r);
    }
    r = import_certificate(issue->authority, &authority);
    r = r < 0 ? r : gnutls_x509_crt_init(&crt);
    r = r < 0 ? r : fill_issue(issue, crt);
    r = r < 0 ? r : gnutls_x509_crt_sign2(crt, authority, key, digest_of(key), 0);
    r = export_text(r, crt, ret_certificate);
    gnutls_x509_crt_deinit(crt);
    if (authority != NULL) {
        gnutls_x509_crt_deinit(authority);
    }
    gnutls_x509_privkey_deinit(key);
    return r;
}

static int read_crt(gnutls_x509_crt_t crt, struct tls_certificate *ret)
{
    struct tls_certificate c = {0};
    unsigned char serial[40];
    size_t size = sizeof(serial), name_size = sizeof(c.name), pin_size = sizeof(c.pin);
    int r =
        gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, c.name, &name_size);
    r = r < 0 ? r : gnutls_x509_crt_get_serial(crt, serial, &size);
    r = r < 0 || size <= 20 ? r : GNUTLS_E_INVALID_REQUEST;
    r = r < 0 ? r : gnutls_x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, c.pin, &pin_size);
    if (r < 0) {
        return rc_of(r);
    }
    for (size_t i = 0; i < size; i++) {
        snprintf(c.serial + 2 * i, 3, "%02x", serial[i]);
    }
    c.not_before = gnutls_x509_crt_get_activation_time(crt);
    c.not_after = gnutls_x509_crt_get_expiration_time(crt);
    *ret = c;
    return 0;
}

int tls_certificate_read(const char *pem, struct tls_certificate *ret)
{
    gnutls_x509_crt_t crt = NULL;
    int r = import_certificate(pem, &crt);
    if (r < 0) {
        return rc_of(r);
    }
    r = read_crt(crt, ret);
    gnutls_x509_crt_deinit(crt);
    return r;
}

bool tls_certificate_names(const char *pem, const char *const *names)
{
    gnutls_x509_crt_t crt = NULL;
    bool all = import_certificate(pem, &crt) >= 0;
    for (; all && *names != NULL; names++) {
        all = gnutls_x509_crt_check_hostname(crt, *names) != 0;
    }
    if (crt != NULL) {
        gnutls_x509_crt_deinit(crt);
    }
    return all;
}

uint64_t tls_text_version(const char *text)
{
    uint8_t hash[32] = {0};
    uint64_t version = 0;
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text, strlen(text), hash) == 0) {
        memcpy(&version, hash, sizeof(version));
    }
    return version | 1;
}

int tls_session_verify(gnutls_session_t session, struct tls_certificate *ret)
{
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned status = 0, count = 0;
    const gnutls_datum_t *list = gnutls_certificate_get_peers(session, &count);
    gnutls_x509_crt_t crt = NULL;
    if (list == NULL || count == 0 ||
        gnutls_certificate_verify_peers(session, &purpose, 1, &status) < 0 || status != 0 ||
        gnutls_x509_crt_init(&crt) < 0) {
        return -EACCES;
    }
    int r = gnutls_x509_crt_import(crt, &list[0], GNUTLS_X509_FMT_DER);
    r = r < 0 ? -EACCES : read_crt(crt, ret);
    gnutls_x509_crt_deinit(crt);
    return r < 0 || !tls_name_good(ret->name) ? -EACCES : 0;
}

/* trust.h: certificates and their authorities, keys, tokens. */
#pragma once
#include "platform/store/store.h"
#include "platform/tls/tls.h"
#include "service/controller/config.h"

#define TOKEN_SCOPE_SIZE 256
#define TOKEN_TEXT_SIZE  192

struct controller;
struct fleet_host;

struct token {
    int64_t id, expires_ns, uses_left, used_ns, created_ns;
    char name[64], role[12], scope[TOKEN_SCOPE_SIZE]; /* scope: patterns of hosts; empty: all */
    uint8_t hash[STORE_HASH_SIZE];
    struct {
        double requests, work_s; /* what is left of its limits; api_limit.c */
        int64_t at_ns;
        uint32_t tasks; /* answers that it waits for */
    } limit;
};

/* ---- authority.c ---- */
MUST_CHECK int authority_create(const char *data_dir, char ret_words[256]); /* of `init` */
MUST_CHECK int authority_load(struct controller *c);
void authority_free(struct controller *c);
MUST_CHECK int authority_sign(struct controller *c, const char *request, const char *name,
                              char **ret_certificate, struct tls_certificate *ret_read);
void authority_hash(const void *secret, size_t size, uint8_t ret_hash[STORE_HASH_SIZE]);

/* Makes the controller's own certificate, signed by the first of these authorities. */
MUST_CHECK int authority_server(const struct controller *c, const char *authority,
                                char **ret_certificate);

/* ---- api_certificate.c ---- */
MUST_CHECK int api_certificate_load(struct controller *c);
void api_certificate_free(struct controller *c);
/* s, UTC: the end of the controller's certificate that ends first, for the agents' port or for the API. */
int64_t api_certificate_end(const struct controller *c);
bool api_name_good(const char *name); /* a name or address that a certificate can be for */
/* Reads the name from "NAME", "NAME:PORT" or "[ADDRESS]:PORT". -EINVAL: the address has another form. */
MUST_CHECK int api_name_of(const char *address, char ret_name[CONTROLLER_API_NAME_SIZE]);
/* Keeps the argument of `init --address` for later certificates. */
MUST_CHECK int api_name_keep(const char *data_dir, const char *name);

/* ---- rotate.c ---- */
MUST_CHECK int rotate_recover(const char *data_dir); /* of an exchange that was interrupted */
MUST_CHECK int rotate_load(struct controller *c);
bool rotate_in_progress(const struct controller *c); /* two authorities are trusted */
/* True if the host has the new list, and has shown a certificate of the new authority; or if it is no member. */
bool rotate_done_by(const struct controller *c, const struct fleet_host *h);
/* -EBUSY: the last rotation isn't over. ret_step: the step that failed, such as "writing fleet.key", for other errors of these
 * three functions. */
MUST_CHECK int rotate_authority(struct controller *c, const char **ret_step);
/* Ends the rotation. Hosts that aren't done must join again. */
MUST_CHECK int rotate_finish(struct controller *c, const char **ret_step);
/* The new key is used from after_s on. The old one is removed after the same time again. -EBUSY: there are two keys. */
MUST_CHECK int rotate_fleet_key(struct controller *c, int64_t after_s, const char **ret_step);
struct rotate_keys {
    unsigned count, id, next_id;
    int64_t next_at, retire_at; /* s, UTC */
};
void rotate_keys(const struct controller *c, struct rotate_keys *ret);
void rotate_watch(struct controller *c); /* once a second */

/* ---- token.c ---- */
MUST_CHECK int tokens_load(struct controller *c);
/* role "join": a join token, with uses; else an API token. life_s 0: it does not expire. The text is shown once and stored
 * nowhere. -EEXIST: a valid token has that name. */
struct token_wish {
    const char *name, *role,
        *scope; /* scope NULL: all hosts; of a join token: hosts that may join */
    int64_t life_s, uses;
};
#define TOKEN_NAME_SIZE 64
/* A free name: base, or base-2 and so on. */
void token_free_name(const struct controller *c, const char *base, char ret_name[TOKEN_NAME_SIZE]);
MUST_CHECK int token_make(struct controller *c, const struct token_wish *wish,
                          char ret_text[TOKEN_TEXT_SIZE], int64_t *ret_id);
/* 256 random bits as text. */
MUST_CHECK int token_random(char ret_text[44]);
MUST_CHECK int token_remove(struct controller *c, int64_t id);
/* NULL: no such token, or it is expired, or used up (unless `spent_too`). */
struct token *token_find(struct controller *c, const void *secret, size_t size, bool join,
                         bool spent_too);

struct token *token_by_id(struct controller *c, int64_t id); /* NULL: no such, or expired */

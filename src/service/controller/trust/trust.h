/* trust.h: who is who: certificates and their authorities, keys, tokens. */
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
        double requests, work_s; /* left; api_limit.c */
        int64_t at_ns;
        uint32_t tasks; /* waited for */
    } limit;
};

/* ---- authority.c ---- */
MUST_CHECK int authority_create(const char *data_dir, char ret_words[256]); /* of `init` */
MUST_CHECK int authority_load(struct controller *c);
void authority_free(struct controller *c);
MUST_CHECK int authority_sign(struct controller *c, const char *request, const char *name,
                              char **ret_certificate, struct tls_certificate *ret_read);
void authority_hash(const void *secret, size_t size, uint8_t ret_hash[STORE_HASH_SIZE]);

/* Our own certificate, signed by the first of these authorities. */
MUST_CHECK int authority_server(const struct controller *c, const char *authority,
                                char **ret_certificate);

/* ---- api_certificate.c ---- */
MUST_CHECK int api_certificate_load(struct controller *c);
void api_certificate_free(struct controller *c);
/* s, UTC: of whichever of our own certificates ends first, the agents' port's or the API's. */
int64_t api_certificate_end(const struct controller *c);
bool api_name_good(const char *name); /* a name or address that a certificate can be for */
/* Of "NAME", "NAME:PORT", "[ADDRESS]:PORT". -EINVAL: it isn't one. */
MUST_CHECK int api_name_of(const char *address, char ret_name[CONTROLLER_API_NAME_SIZE]);
/* What `init --address` was given: for the certificate, whenever it is made. */
MUST_CHECK int api_name_keep(const char *data_dir, const char *name);

/* ---- rotate.c ---- */
MUST_CHECK int rotate_recover(const char *data_dir); /* of an exchange that was cut off */
MUST_CHECK int rotate_load(struct controller *c);
bool rotate_in_progress(const struct controller *c); /* two authorities are trusted */
/* It has the new list and a certificate of the new authority, and showed it; or is no member. */
bool rotate_done_by(const struct controller *c, const struct fleet_host *h);
/* -EBUSY: the last one isn't over. ret_step: what failed, "writing fleet.key", of another error of these three. */
MUST_CHECK int rotate_authority(struct controller *c, const char **ret_step);
/* Whoever isn't done must join again. */
MUST_CHECK int rotate_finish(struct controller *c, const char **ret_step);
/* Used from after_s on; the old one is taken out after as long again. -EBUSY: there are two. */
MUST_CHECK int rotate_fleet_key(struct controller *c, int64_t after_s, const char **ret_step);
struct rotate_keys {
    unsigned count, id, next_id;
    int64_t next_at, retire_at; /* s, UTC */
};
void rotate_keys(const struct controller *c, struct rotate_keys *ret);
void rotate_watch(struct controller *c); /* once a second */

/* ---- token.c ---- */
MUST_CHECK int tokens_load(struct controller *c);
/* role "join": a join token, with uses; else an API token. life_s 0: it lasts. The text is shown
 * once and kept nowhere. -EEXIST: one of that name lives. */
struct token_wish {
    const char *name, *role,
        *scope; /* scope NULL: all hosts; of a join token: those that may join */
    int64_t life_s, uses;
};
#define TOKEN_NAME_SIZE 64
/* A name that none has yet: base, or base-2 and so on. */
void token_free_name(const struct controller *c, const char *base, char ret_name[TOKEN_NAME_SIZE]);
MUST_CHECK int token_make(struct controller *c, const struct token_wish *wish,
                          char ret_text[TOKEN_TEXT_SIZE], int64_t *ret_id);
/* 256 random bits as text. */
MUST_CHECK int token_random(char ret_text[44]);
MUST_CHECK int token_remove(struct controller *c, int64_t id);
/* NULL: no such, expired, or used up (unless `spent_too`). */
struct token *token_find(struct controller *c, const void *secret, size_t size, bool join,
                         bool spent_too);

struct token *token_by_id(struct controller *c, int64_t id); /* NULL: no such, or expired */

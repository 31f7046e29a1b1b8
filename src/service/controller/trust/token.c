/* token.c: tokens for hosts that join and for callers of the API: secrets that are shown once, and kept as hashes.
 *
 * An API token is "fla_" and 43 characters (256 random bits, base64url). A join token is "flj_", 43 characters, "." and 43
 * characters of the SHA-256 of the controller's public key. With that hash a new host verifies the controller. The secrets are
 * long and random, so one plain hash is enough. */
#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/controller/controller.h"
#include "service/controller/trust/trust.h"

enum { SECRET_SIZE = 32, TOKEN_MAX = 10000 };

static void base64url(const uint8_t bytes[32], char ret_text[44])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (unsigned i = 0; i < 43; i++) {
        unsigned value = 0;
        for (unsigned bit = 6 * i; bit < 6 * i + 6; bit++) {
            value = value << 1 | (bit < 256 ? bytes[bit / 8] >> (7 - bit % 8) & 1u : 0u);
        }
        ret_text[i] = digits[value];
    }
    ret_text[43] = 0;
}

int token_random(char ret_text[44])
{
    uint8_t secret[SECRET_SIZE];
    if (gnutls_rnd(GNUTLS_RND_KEY, secret, sizeof(secret)) < 0) {
        return -EIO;
    }
    base64url(secret, ret_text);
    gnutls_memset(secret, 0, sizeof(secret));
    return 0;
}

static int add(struct controller *c, const struct token *t)
{
    struct token *larger = realloc(c->tokens, (c->token_count + 1) * sizeof(*larger));
    if (larger == NULL) {
        return -ENOMEM;
    }
    c->tokens = larger;
    c->tokens[c->token_count++] = *t;
    return 0;
}

static int load_one(void *context, const struct store_token *s)
{
    struct token t = {.id = s->id,
                      .expires_ns = s->expires_ns,
                      .uses_left = s->uses_left,
                      .used_ns = s->used_ns,
                      .created_ns = s->created_ns};
    snprintf(t.name, sizeof(t.name), "%s", s->name);
    snprintf(t.role, sizeof(t.role), "%s", s->role);
    snprintf(t.scope, sizeof(t.scope), "%s", s->scope);
    memcpy(t.hash, s->hash, sizeof(t.hash));
    return add(context, &t);
}

int tokens_load(struct controller *c)
{
    free(c->tokens);
    c->tokens = NULL;
    c->token_count = 0;
    return store_tokens(c->store, load_one, c);
}

static bool name_taken(const struct controller *c, const char *name)
{
    const int64_t now = controller_utc_ns();
    for (size_t i = 0; i < c->token_count; i++) {
        const struct token *t = &c->tokens[i];
        if (strcmp(t->name, name) == 0 && (t->expires_ns == 0 || t->expires_ns > now)) {
            return true;
        }
    }
    return false;
}

void token_free_name(const struct controller *c, const char *base, char ret_name[TOKEN_NAME_SIZE])
{
    snprintf(ret_name, TOKEN_NAME_SIZE, "%s", base);
    for (unsigned i = 2; name_taken(c, ret_name); i++) {
        snprintf(ret_name, TOKEN_NAME_SIZE, "%.50s-%u", base, i);
    }
}

int token_make(struct controller *c, const struct token_wish *wish, char ret_text[TOKEN_TEXT_SIZE],
               int64_t *ret_id)
{
    char text[44], pin[44];
    const bool join = strcmp(wish->role, "join") == 0;
    struct tls_certificate server;
    if (name_taken(c, wish->name)) {
        return -EEXIST;
    }
    if (c->token_count >= TOKEN_MAX || token_random(text) < 0) {
        return -ENOSPC;
    }
    int r = tls_certificate_read(c->server_certificate, &server);
    if (r < 0) {
        return r;
    }
    base64url(server.pin, pin);
    struct token t = {.created_ns = controller_utc_ns(), .uses_left = join ? wish->uses : 0};
    t.expires_ns = wish->life_s > 0 ? t.created_ns + wish->life_s * NS_PER_S : 0;
    snprintf(t.name, sizeof(t.name), "%s", wish->name);
    snprintf(t.role, sizeof(t.role), "%s", wish->role);
    snprintf(t.scope, sizeof(t.scope), "%s", wish->scope != NULL ? wish->scope : "");
    authority_hash(text, strlen(text), t.hash);
    struct store_token s = {.name = t.name,
                            .role = t.role,
                            .scope = t.scope,
                            .created_ns = t.created_ns,
                            .expires_ns = t.expires_ns,
                            .uses_left = t.uses_left};
    memcpy(s.hash, t.hash, sizeof(s.hash));
    r = store_token_put(c->store, &s, &t.id);
    r = r < 0 ? r : add(c, &t);
    if (r == 0) {
        snprintf(ret_text, TOKEN_TEXT_SIZE, join ? "flj_%s.%s" : "fla_%s", text, pin);
        *ret_id = t.id;
    }
    gnutls_memset(text, 0, sizeof(text));
    return r;
}

int token_remove(struct controller *c, int64_t id)
{
    const int r = store_token_remove(c->store, id);
    for (size_t i = 0; r == 0 && i < c->token_count; i++) {
        if (c->tokens[i].id == id) {
            c->tokens[i] = c->tokens[--c->token_count];
        }
    }
    return r;
}

struct token *token_by_id(struct controller *c, int64_t id)
{
    const int64_t now = controller_utc_ns();
    for (size_t i = 0; i < c->token_count; i++) {
        struct token *t = &c->tokens[i];
        if (t->id == id && (t->expires_ns == 0 || t->expires_ns > now)) {
            return t;
        }
    }
    return NULL;
}

struct token *token_find(struct controller *c, const void *secret, size_t size, bool join,
                         bool spent_too)
{
    uint8_t hash[STORE_HASH_SIZE];
    const int64_t now = controller_utc_ns();
    authority_hash(secret, size, hash);
    for (size_t i = 0; i < c->token_count; i++) {
        struct token *t = &c->tokens[i];
        /* these are hashes of secrets, so the time of a comparison reveals nothing */
        if (memcmp(t->hash, hash, sizeof(hash)) == 0 && (strcmp(t->role, "join") == 0) == join &&
            (t->expires_ns == 0 || t->expires_ns > now) &&
            (!join || spent_too || t->uses_left > 0)) {
            return t;
        }
    }
    return NULL;
}

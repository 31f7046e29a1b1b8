/* api_sign_in.c: a link that signs a browser in, once.
 *
 * A browser keeps the whole address of a page in its history, with the part after the #. Removing that part from the address
 * bar doesn't remove it from the history. So a link holds a code, not a token. The first browser that shows the code gets the
 * token; then the code is void. Codes are in memory only. */
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>

#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/controller.h"
#include "service/controller/trust/trust.h"

enum { CODE_LIFE_S = 600, CODES_TOKEN_MAX = 4 };

/* Replaces the oldest code. If the token has its full share, the oldest of its own is replaced, so that no token pushes out
 * the codes of others. */
static struct sign_in_code *find_place(struct controller *c, int64_t token)
{
    struct sign_in_code *oldest = &c->codes[0], *own = NULL;
    unsigned count = 0;
    for (size_t i = 0; i < CONTROLLER_CODES_MAX; i++) {
        struct sign_in_code *code = &c->codes[i];
        oldest = code->expires.ns < oldest->expires.ns ? code : oldest;
        if (code->id == token) {
            own = own == NULL || code->expires.ns < own->expires.ns ? code : own;
            count++;
        }
    }
    return count >= CODES_TOKEN_MAX ? own : oldest;
}

void api_post_sign_in_code(struct api_call *call)
{
    const char *bearer = http_header(call->request, "Authorization");
    char text[44];
    if (call->token == 0 || bearer == NULL) {
        api_error(call, 400, "no-token", "expected a token for the link to sign in with");
        return;
    }
    struct sign_in_code *code = find_place(call->c, call->token);
    if (token_random(text) < 0) {
        api_error(call, 503, "no-random", "no random numbers");
        return;
    }
    code->id = call->token;
    code->expires = mono_add(controller_mono(), span_s(CODE_LIFE_S));
    snprintf(code->token, sizeof(code->token), "%s", bearer + strlen("Bearer "));
    authority_hash(text, strlen(text), code->hash);
    json_put_object(call->j, NULL);
    json_put_string(call->j, "code", text);
    json_put_int(call->j, "seconds", CODE_LIFE_S);
    json_put_end(call->j);
    api_answer(call);
}

void api_post_sign_in(struct api_call *call)
{
    struct controller *c = call->c;
    const char *text = json_string_value(json_object_get(call->body, "code"));
    const struct mono now = controller_mono();
    uint8_t hash[STORE_HASH_SIZE];
    authority_hash(text != NULL ? text : "", text != NULL ? strlen(text) : 0, hash);
    for (size_t i = 0; i < CONTROLLER_CODES_MAX; i++) {
        struct sign_in_code *code = &c->codes[i];
        if (code->expires.ns > now.ns && memcmp(code->hash, hash, sizeof(hash)) == 0 &&
            token_by_id(c, code->id) != NULL) {
            json_put_object(call->j, NULL);
            json_put_string(call->j, "token", code->token);
            json_put_end(call->j);
            gnutls_memset(code, 0, sizeof(*code));
            api_answer(call);
            return;
        }
    }
    api_refuse_stranger(call, "no-code", "this link was used already, or is too old");
}

/* tenant.c: the tenant of a host, from the scopes of API tokens. A host belongs to the scope with most hosts that matches it.
 * So a token for some of a tenant's hosts does not split the tenant. A host that no scope matches has no tenant. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "service/controller/api/api.h"
#include "service/controller/api/scope.h"
#include "service/controller/controller.h"
#include "service/controller/job/job.h"
#include "service/controller/trust/tenant.h"
#include "service/controller/trust/trust.h"

struct tenants {
    uint32_t count;
    struct tenant_scope {
        uint64_t id;
        uint32_t hosts;
        char scope[TOKEN_SCOPE_SIZE];
    } list[]; /* sorted: most hosts first */
};

static int wider(const void *x, const void *y)
{
    const struct tenant_scope *a = x, *b = y;
    return a->hosts != b->hosts ? (a->hosts < b->hosts) - (a->hosts > b->hosts)
                                : strcmp(a->scope, b->scope);
}

static bool has(const struct tenants *t, const char *scope)
{
    for (uint32_t i = 0; i < t->count; i++) {
        if (strcmp(t->list[i].scope, scope) == 0) {
            return true;
        }
    }
    return false;
}

/* Each scope of a valid token, once. NULL: out of memory. */
static struct tenants *scopes_of(struct controller *c)
{
    struct tenants *t = calloc(1, sizeof(*t) + c->token_count * sizeof(t->list[0]));
    for (size_t i = 0; t != NULL && i < c->token_count; i++) {
        const struct token *token = &c->tokens[i];
        if (token->scope[0] == 0 || strcmp(token->role, "join") == 0 || has(t, token->scope) ||
            token_by_id(c, token->id) == NULL) {
            continue;
        }
        struct tenant_scope *s = &t->list[t->count++];
        memcpy(s->scope, token->scope, sizeof(s->scope));
        s->id = hash_text(s->scope) | 1;
        for (uint32_t k = 0; k < c->host_count; k++) {
            s->hosts += c->hosts[k]->member && scope_sees_name(s->scope, c->hosts[k]->name);
        }
    }
    if (t != NULL) {
        qsort(t->list, t->count, sizeof(t->list[0]), wider);
    }
    return t;
}

void tenant_place(struct controller *c, struct fleet_host *h)
{
    h->tenant = TENANT_NONE;
    for (uint32_t i = 0; c->tenants != NULL && i < c->tenants->count; i++) {
        if (scope_sees_name(c->tenants->list[i].scope, h->name)) {
            h->tenant = c->tenants->list[i].id;
            return;
        }
    }
}

int tenant_refresh(struct controller *c)
{
    struct tenants *fresh = scopes_of(c);
    if (fresh == NULL) {
        return -ENOMEM;
    }
    free(c->tenants);
    c->tenants = fresh;
    for (uint32_t i = 0; i < c->host_count; i++) {
        tenant_place(c, c->hosts[i]);
    }
    job_on_tenants(c);
    return 0;
}

void tenant_close(struct controller *c)
{
    free(c->tenants);
    c->tenants = NULL;
}

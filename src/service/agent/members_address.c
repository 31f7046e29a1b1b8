/* members_address.c: checks that each address stands once in the list and among the NICs that join. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "service/agent/members.h"

#define SEEN_BITS 65536u

struct claim {
    uint8_t address[16]; /* IPv4 is mapped (::ffff:a.b.c.d); no NIC has such an IPv6 address */
};

struct claims {
    struct claim *list;
    uint32_t count;
    /* bits by hash: they exclude most addresses of the list without a search */
    uint64_t seen[SEEN_BITS / 64];
};

static struct claim claim4(const struct in_addr *address)
{
    struct claim x = {{[10] = 0xff, [11] = 0xff}};
    memcpy(x.address + 12, address, 4);
    return x;
}

static struct claim claim6(const struct in6_addr *address)
{
    struct claim x;
    memcpy(x.address, address, 16);
    return x;
}

static uint32_t claim_bit(const struct claim *x)
{
    uint64_t low, high;
    memcpy(&low, x->address, 8);
    memcpy(&high, x->address + 8, 8);
    return (uint32_t)(((low ^ high * 31) * 0x9e3779b97f4a7c15ULL) >> 48) % SEEN_BITS;
}

static int compare_claims(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct claim));
}

static void put_claim(struct claims *s, struct claim x)
{
    const uint32_t bit = claim_bit(&x);
    s->list[s->count++] = x;
    s->seen[bit / 64] |= 1ULL << bit % 64;
}

static bool claimed(const struct claims *s, struct claim x)
{
    const uint32_t bit = claim_bit(&x);
    return (s->seen[bit / 64] >> bit % 64 & 1) != 0 &&
           bsearch(&x, s->list, s->count, sizeof(x), compare_claims) != NULL;
}

/* Collects the addresses of the NICs that join, sorted. */
static void put_claims(struct claims *s, const struct members_plan *plan)
{
    for (uint32_t i = 0; i < plan->add_count; i++) {
        const struct agent_peer *more = &plan->add[i].more;
        if (more->address4.s_addr != 0) {
            put_claim(s, claim4(&more->address4));
        }
        if (!IN6_IS_ADDR_UNSPECIFIED(&more->address6)) {
            put_claim(s, claim6(&more->address6));
        }
    }
    qsort(s->list, s->count, sizeof(*s->list), compare_claims);
}

static int compare_with_list(const struct claims *s, const struct agent_config *c,
                             const struct members_plan *plan, const char **ret_words,
                             uint32_t *ret_host)
{
    for (uint32_t i = 1; i < s->count; i++) {
        if (compare_claims(&s->list[i - 1], &s->list[i]) == 0) {
            *ret_words = "expected each address once";
            *ret_host = plan->add[0].peer.host.index;
            return -EINVAL;
        }
    }
    for (uint32_t i = 0, gone = 0; i < c->peer_count; i++) {
        if (gone < plan->gone_count && plan->gone[gone] == c->peers[i].nic.index) {
            gone++;
        } else if (claimed(s, claim4(&c->more[i].address4)) ||
                   claimed(s, claim6(&c->more[i].address6))) {
            *ret_words = "expected each address once, found one that is in the list already";
            *ret_host = c->peers[i].host.index;
            return -EINVAL;
        }
    }
    return 0;
}

int members_check_addresses(const struct agent_config *c, const struct members_plan *plan,
                            const char **ret_words, uint32_t *ret_host)
{
    if (plan->add_count == 0) {
        return 0;
    }
    struct claims *s = calloc(1, sizeof(*s));
    int r = -ENOMEM;
    if (s != NULL && (s->list = calloc(plan->add_count * 2, sizeof(*s->list))) != NULL) {
        put_claims(s, plan);
        r = compare_with_list(s, c, plan, ret_words, ret_host);
        free(s->list);
    }
    free(s);
    return r;
}

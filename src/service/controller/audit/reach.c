/* reach.c: each host that is asked tries to reach some other hosts over the front end. It uses the addresses from which they
 * connect to the controller. An address that two hosts share is translated on the way, and other hosts can't use it. A host's
 * own loopback address can't be used, either. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "service/controller/audit/audit.h"
#include "service/controller/fleet/fleet.h"

static void take_address(const struct fleet_host *h, struct audit_member *m)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct in_addr four;
    struct in6_addr six;
    m->address_size = 0;
    if (inet_pton(AF_INET, h->peer, &four) == 1) {
        memcpy(m->address, &four, 4);
        m->address_size = 4;
    } else if (inet_pton(AF_INET6, h->peer, &six) == 1 &&
               memcmp(&six, mapped, sizeof(mapped)) == 0) {
        memcpy(m->address, six.s6_addr + 12, 4);
        m->address_size = 4;
    } else if (inet_pton(AF_INET6, h->peer, &six) == 1 && !IN6_IS_ADDR_LOOPBACK(&six) &&
               !IN6_IS_ADDR_LINKLOCAL(&six)) {
        memcpy(m->address, &six, 16);
        m->address_size = 16;
    }
    if (m->address_size == 4 && (m->address[0] == 127 || m->address[0] == 0)) {
        m->address_size = 0;
    }
}

static int compare(const struct audit_member *x, const struct audit_member *y)
{
    return x->address_size != y->address_size ? (x->address_size > y->address_size ? 1 : -1)
                                              : memcmp(x->address, y->address, x->address_size);
}

static int by_address(const void *a, const void *b)
{
    struct audit_member *const *x = a, *const *y = b;
    return compare(*x, *y);
}

static void drop_shared(struct audit_run *run)
{
    struct audit_member **sorted = calloc(run->count + 1, sizeof(struct audit_member *));
    for (uint32_t i = 0; sorted != NULL && i < run->count; i++) {
        sorted[i] = &run->members[i];
    }
    if (sorted != NULL) {
        qsort(sorted, run->count, sizeof(struct audit_member *), by_address);
    }
    for (uint32_t i = 0, n; i < run->count; i += n) {
        bool shared = sorted == NULL;
        for (n = 1; !shared && i + n < run->count && compare(sorted[i], sorted[i + n]) == 0; n++) {
        }
        for (uint32_t k = i; (shared || n > 1) && k < i + n; k++) {
            (sorted != NULL ? sorted[k] : &run->members[k])->address_size = 0;
        }
    }
    free(sorted);
}

void audit_reach_draw(struct controller *c, struct audit_run *run)
{
    free(run->reach);
    run->reach_count = 0;
    run->reach = calloc(run->count + 1, sizeof(*run->reach));
    for (uint32_t i = 0; i < run->count; i++) {
        const struct fleet_host *h = c->hosts[run->members[i].index];
        const enum freshness f = fleet_freshness(c, h, controller_mono());
        if (run->members[i].off || f == FRESHNESS_NEVER || f == FRESHNESS_STALE) {
            run->members[i].address_size = 0; /* node.agent reports that it is silent */
        } else {
            take_address(h, &run->members[i]);
        }
    }
    drop_shared(run);
    for (uint32_t i = 0; run->reach != NULL && i < run->count; i++) {
        if (run->members[i].address_size > 0) {
            run->reach[run->reach_count++] = i;
        }
    }
}

static uint32_t place_of(const struct audit_run *run, uint32_t member)
{
    uint32_t low = 0, high = run->reach_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (run->reach[middle] < member) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void audit_reach_put(struct controller *c, const struct audit_run *run, uint32_t member,
                     struct audit_look_reply *memory)
{
    const uint32_t place = place_of(run, member);
    uint32_t peers[REACH_PEERS];
    if (place == run->reach_count || run->reach[place] != member ||
        audit_reach_off(c, run) != NULL) {
        return; /* a host behind a translated address is not asked to reach others */
    }
    const uint32_t count = reach_peers((uint64_t)run->id, run->reach_count, place, peers);
    for (uint32_t i = 0; i < count; i++) {
        struct audit_member *m = &run->members[run->reach[peers[i]]];
        Foliot__V1__Reach *to = &memory->reach[memory->look.n_reach];
        if (m->off) { /* switched off meanwhile */
            continue;
        }
        foliot__v1__reach__init(to);
        to->host = c->hosts[m->index]->name;
        to->address = (ProtobufCBinaryData){m->address_size, m->address};
        memory->pointers[memory->look.n_reach++] = to;
    }
    memory->look.reach = memory->pointers;
}

/* claim_words.c: for agents that send no elements: the words of their findings (suspect, advice) are converted to data here,
 * in one place. No other code searches a sentence for its meaning (tools/tidy checks this). It will be removed when such
 * agents are no longer supported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ip.h"
#include "core/finding/finding.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/claim_words.h"
#include "service/controller/fleet/fleet.h"

/* Parses "spine2", "router 10.0.0.7", "leaf fd00::1". end: where the text must end. */
static bool read_place(const char *text, const char *end, struct place *ret)
{
    static const struct {
        const char *word;
        uint32_t kind;
    } words[] = {{"leaf", PLACE_LEAF}, {"spine", PLACE_SPINE}, {"router", PLACE_ROUTER}};
    char rest[INET6_ADDRSTRLEN + 1], *after = NULL;
    const size_t length = end != NULL ? (size_t)(end - text) : strlen(text);
    *ret = (struct place){.number = UINT32_MAX};
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        const size_t size = strlen(words[i].word);
        if (strncmp(text, words[i].word, size) != 0 || length < size ||
            length - size >= sizeof(rest)) {
            continue;
        }
        ret->kind = words[i].kind;
        memcpy(rest, text + size, length - size);
        rest[length - size] = 0;
        if (rest[0] >= '0' && rest[0] <= '9') {
            const unsigned long number = strtoul(rest, &after, 10);
            ret->number = (uint32_t)number;
            return *after == 0 && number < UINT32_MAX;
        }
        if (rest[0] == ' ' && strchr(rest, ':') == NULL) {
            return ip_parse(rest + 1, ret->address);
        }
        return rest[0] == 0 || (rest[0] == ' ' && ip_parse(rest + 1, ret->address));
    }
    return false;
}

/* Finds a host or a NIC by its words. It must belong to one of the two ends or to the reporting host: a host can't know about
 * others. */
static bool read_own_box(const struct controller *c, const struct fleet_host *h, bool nic,
                         const char *text, const struct finding *f, struct place *ret)
{
    const uint32_t hosts[] = {f->from_host.index, f->to_host.index, h->index};
    char name[TLS_NAME_MAX + IF_NAMESIZE + 20];
    for (size_t i = 0; i < ARRAY_COUNT(hosts); i++) {
        const struct fleet_host *one = hosts[i] < c->host_count ? c->hosts[hosts[i]] : NULL;
        if (one == NULL) {
            continue;
        }
        if (!nic && strcmp(one->name, text) == 0) {
            *ret = (struct place){.kind = PLACE_HOST, .number = one->index};
            return true;
        }
        for (uint32_t k = 0; nic && k < one->nic_count; k++) {
            const struct fleet_nic *n = fleet_find_nic(c, one->nics[k]);
            snprintf(name, sizeof(name), "%s/%s or its link", one->name, n != NULL ? n->name : "");
            if (n != NULL && strcmp(name, text) == 0) {
                *ret = (struct place){.kind = PLACE_NIC, .number = n->id};
                return true;
            }
        }
    }
    return false;
}

struct element claim_words_suspect(const struct controller *c, const struct fleet_host *h,
                                   const Foliot__V1__Finding *m, const struct finding *f)
{
    const char *text = m->suspect, *between = strstr(text, " - ");
    struct element e = element_unknown();
    bool good = false;
    e.kind = element_kind_of(m->suspect_kind);
    if (e.kind == ELEMENT_HOST || e.kind == ELEMENT_NIC) {
        good = read_own_box(c, h, e.kind == ELEMENT_NIC, text, f, &e.a);
    } else if (e.kind == ELEMENT_TRUNK) {
        good = strncmp(text, "trunk ", 6) == 0 && between != NULL &&
               read_place(text + 6, between, &e.a) && read_place(between + 3, NULL, &e.b);
    } else if (e.kind != ELEMENT_UNKNOWN) {
        good =
            read_place(text, NULL, &e.a) && claim_is_place_of((enum element_kind)e.kind, e.a.kind);
    }
    return good ? e : element_unknown();
}

uint16_t claim_words_advice(const char *text)
{
    uint16_t advice = ADVICE_NONE + 1;
    while (finding_advice_text(advice)[0] != 0 && strcmp(finding_advice_text(advice), text) != 0) {
        advice++;
    }
    return finding_advice_text(advice)[0] != 0 ? advice : ADVICE_NONE;
}

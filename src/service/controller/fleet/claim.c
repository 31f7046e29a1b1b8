/* claim.c: is a finding the host's to report, and in which words. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/finding/finding.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/claim.h"
#include "service/controller/fleet/fleet.h"

#define SINCE_OFF_NS (10 * NS_PER_S)  /* a host's UTC that is farther off ours isn't told */
#define GONE         (UINT32_MAX - 1) /* a host that is no member any more */

/* ---- who ---- */

struct end {
    struct nic_id nic;
    struct host_id host;
};

/* false: a host that nobody knows. */
static bool read_end(const struct controller *c, uint32_t nic_plus_1, const char *host, bool over,
                     struct end *ret)
{
    *ret = (struct end){NIC_NONE, HOST_NONE};
    if (nic_plus_1 != 0) {
        const struct fleet_nic *n = fleet_find_nic(c, nic_plus_1 - 1);
        ret->nic = (struct nic_id){nic_plus_1 - 1}; /* of a host that is gone: by its number */
        ret->host = n != NULL ? (struct host_id){n->host->index} : HOST_NONE;
        return true;
    }
    if (host[0] != 0) {
        const struct fleet_host *h = fleet_find_host(c, host);
        const bool known = h != NULL && h->member;
        ret->host = (struct host_id){known ? h->index : GONE};
        return known || over;
    }
    return true;
}

static bool is_none(const struct end *e)
{
    return nic_id_equal(e->nic, NIC_NONE) && host_id_equal(e->host, HOST_NONE);
}

static bool is_own(const struct end *e, const struct fleet_host *h)
{
    return host_id_equal(e->host, (struct host_id){h->index});
}

/* What it can observe. */
static bool may_report(const struct fleet_host *h, uint32_t kind, const struct end *from,
                       const struct end *to)
{
    switch ((enum finding_kind)kind) {
    case FINDING_LINK_DOWN:
    case FINDING_LINK_FLAPPING:
    case FINDING_LINK_SPEED:
    case FINDING_LINK_ERRORS:
    case FINDING_NIC_GONE:
        return is_own(from, h) && !nic_id_equal(from->nic, NIC_NONE) && is_none(to);
    case FINDING_PATH_DEAD:
    case FINDING_PATH_LOSSY:
    case FINDING_PATH_SLOW:
    case FINDING_PATH_FLAPPING:
    case FINDING_PEER_SILENT:
        return is_own(from, h) || is_own(to, h);
    case FINDING_CLOCK_LIAR:
    case FINDING_CLOCK_ASTRAY:
        return nic_id_equal(from->nic, NIC_NONE) && is_none(to);
    case FINDING_CLOCK_ASYMMETRY:
        return is_none(to) || is_own(to, h);
    default:
        return (is_none(from) || is_own(from, h)) && is_none(to);
    }
}

/* ---- the suspect ---- */

/* "spine2", "router 10.0.0.7", "leaf fd00::1"; end: what must follow it. */
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
            memset(ret->address + 10, 0xff, 2);
            return inet_pton(AF_INET, rest + 1, ret->address + 12) == 1;
        }
        return rest[0] == 0 || (rest[0] == ' ' && inet_pton(AF_INET6, rest + 1, ret->address) == 1);
    }
    return false;
}

/* A host, or a NIC of it: one of the two ends', for of others it can't know. */
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

static struct element read_suspect(const struct controller *c, const struct fleet_host *h,
                                   const Foliot__V1__Finding *m, const struct finding *f)
{
    static const char *const kinds[] = {"", "host", "nic", "leaf", "spine", "router", "trunk"};
    struct element e = {.a = {.number = UINT32_MAX}, .b = {.number = UINT32_MAX}};
    const char *text = m->suspect, *between = strstr(text, " - ");
    bool good = false;
    uint32_t kind = 1;
    while (kind < ARRAY_COUNT(kinds) && strcmp(kinds[kind], m->suspect_kind) != 0) {
        kind++;
    }
    if (kind == ELEMENT_HOST || kind == ELEMENT_NIC) {
        good = read_own_box(c, h, kind == ELEMENT_NIC, text, f, &e.a);
    } else if (kind == ELEMENT_TRUNK) {
        good = strncmp(text, "trunk ", 6) == 0 && between != NULL &&
               read_place(text + 6, between, &e.a) && read_place(between + 3, NULL, &e.b);
    } else if (kind < ARRAY_COUNT(kinds)) {
        good = read_place(text, NULL, &e.a);
    }
    if (!good) {
        return (struct element){.a = {.number = UINT32_MAX}, .b = {.number = UINT32_MAX}};
    }
    e.kind = kind;
    return e;
}

/* ---- the sentence ---- */

static const char *host_name(void *context, struct host_id host)
{
    const struct controller *c = context;
    return host.index == GONE           ? "a host that is gone"
           : host.index < c->host_count ? c->hosts[host.index]->name
                                        : NULL;
}

static const char *nic_name(void *context, struct nic_id nic)
{
    static char texts[4][TLS_NAME_MAX + IF_NAMESIZE + 2]; /* of one sentence */
    static unsigned turn;
    const struct fleet_nic *n = fleet_find_nic(context, nic.index);
    char *text = texts[turn++ % ARRAY_COUNT(texts)];
    if (n == NULL) {
        return NULL;
    }
    snprintf(text, sizeof(texts[0]), "%s/%s", n->host->name, n->name);
    return text;
}

static const char *port_name(void *context, struct nic_id nic)
{
    static char text[160];
    const struct fleet_nic *n = fleet_find_nic(context, nic.index);
    if (n == NULL || n->neighbour[0] == 0) {
        return NULL;
    }
    snprintf(text, sizeof(text), "%s port %s", n->neighbour, n->neighbour_port);
    return text;
}

static uint16_t advice_of(const char *text)
{
    uint16_t advice = ADVICE_NONE + 1;
    while (finding_advice_text(advice)[0] != 0 && strcmp(finding_advice_text(advice), text) != 0) {
        advice++;
    }
    return finding_advice_text(advice)[0] != 0 ? advice : ADVICE_NONE;
}

static uint8_t other_of(const char *text)
{
    static const char *const words[] = {"", "fine", "lossy", "dead"};
    uint8_t other = OTHER_FINE;
    while (other < ARRAY_COUNT(words) && strcmp(words[other], text) != 0) {
        other++;
    }
    return other < ARRAY_COUNT(words) ? other : OTHER_UNKNOWN;
}

static uint32_t kind_of(const char *word)
{
    uint32_t kind = FINDING_NONE + 1;
    while (kind < FINDING_KIND_COUNT && strcmp(finding_kind_word(kind), word) != 0) {
        kind++;
    }
    return kind < FINDING_KIND_COUNT ? kind : FINDING_NONE;
}

/* All but the ends and the suspect. */
static struct finding facts_of(const Foliot__V1__Finding *m, uint32_t kind, int64_t since_ns)
{
    struct finding f;
    finding_init(&f, (enum finding_kind)kind, (struct mono){m->since_mono});
    f.phase = m->phase == 2 ? FINDING_CLOSED : m->phase == 1 ? FINDING_UPDATED : FINDING_OPENED;
    f.direction = m->direction < 4 ? (uint8_t)m->direction : DIRECTION_NONE;
    f.other = other_of(m->other_direction);
    f.path = (uint8_t)m->path;
    f.path_count = (uint8_t)m->path_count;
    f.source_port = (uint16_t)m->port;
    f.signature = m->signature;
    f.confident = m->confident != 0;
    f.rules_out = (uint16_t)m->rules_out;
    f.advice = advice_of(m->advice);
    f.ended_ns = m->ended_mono;
    f.since_fleet_ns = m->since_fleet != 0 ? m->since_fleet : FINDING_NO_TIME;
    const int64_t off = m->since_utc - since_ns;
    if (m->since_utc > 0 && off < SINCE_OFF_NS && off > -SINCE_OFF_NS) {
        f.since_utc_ns = m->since_utc;
    }
    for (size_t i = 0; i < m->n_numbers && i < ARRAY_COUNT(f.numbers); i++) {
        f.numbers[i] = m->numbers[i];
    }
    return f;
}

static void write_texts(const struct controller *c, const struct fleet_host *h,
                        const struct finding *f, int64_t since_ns, struct claim *ret)
{
    const struct finding_names names = {host_name, nic_name, (void *)(uintptr_t)c, port_name};
    Foliot__V1__Finding *m = &ret->finding;
    struct finding shown = *f;
    char text[sizeof(ret->text)];
    if (nic_id_equal(f->from, NIC_NONE) && host_id_equal(f->from_host, HOST_NONE)) {
        shown.from_host = (struct host_id){h->index}; /* "this host", for whoever reads it here */
    }
    const bool others = (f->from_host.index != UINT32_MAX && f->from_host.index != h->index) ||
                        (f->to_host.index != UINT32_MAX && f->to_host.index != h->index);
    finding_text(&shown, &names, text, sizeof(text) - TLS_NAME_MAX - 20);
    (void)finding_text_by_receiver(text, since_ns, "the controller's", ret->text,
                                   sizeof(ret->text));
    const size_t length = strlen(ret->text);
    if (others) {
        snprintf(ret->text + length, sizeof(ret->text) - length, "; reported by %s", h->name);
    }
    finding_what_text(f, ret->what, sizeof(ret->what));
    ret->suspect[0] = 0;
    if (f->suspect.kind != ELEMENT_UNKNOWN) {
        element_text(&f->suspect, &names, ret->suspect, sizeof(ret->suspect));
    } else {
        m->suspect_kind = (char *)(uintptr_t)protobuf_c_empty_string;
    }
    m->what = ret->what;
    m->suspect = ret->suspect;
    m->advice = (char *)(uintptr_t)finding_advice_text(f->advice);
    m->other_direction =
        f->other == OTHER_UNKNOWN ? (char *)(uintptr_t)protobuf_c_empty_string : m->other_direction;
    const char *from = host_name((void *)(uintptr_t)c, f->from_host),
               *to = host_name((void *)(uintptr_t)c, f->to_host);
    m->from_host = (char *)(uintptr_t)(from != NULL ? from : protobuf_c_empty_string);
    m->to_host = (char *)(uintptr_t)(to != NULL ? to : protobuf_c_empty_string);
}

bool claim_take(const struct controller *c, const struct fleet_host *h,
                const Foliot__V1__Event *said, int64_t since_ns, struct claim *ret)
{
    const Foliot__V1__Finding *m = said->finding;
    const uint32_t kind = kind_of(m->kind);
    struct finding f = facts_of(m, kind, since_ns);
    const bool over = f.phase == FINDING_CLOSED;
    struct end from, to;
    if (!read_end(c, m->from_nic, m->from_host, over, &from) ||
        !read_end(c, m->to_nic, m->to_host, over, &to) || !may_report(h, kind, &from, &to)) {
        return false;
    }
    f.from = from.nic;
    f.to = to.nic;
    f.from_host = from.host;
    f.to_host = to.host;
    f.suspect = read_suspect(c, h, m, &f);
    ret->finding = *m;
    write_texts(c, h, &f, since_ns, ret);
    if (kind == FINDING_NONE) { /* of a newer agent, about itself: its own words */
        snprintf(ret->text, sizeof(ret->text), "%s", said->text);
        snprintf(ret->what, sizeof(ret->what), "%s", m->what);
    }
    return true;
}

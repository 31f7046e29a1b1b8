/* element.c: elements in words, and the words of their kinds. */
#include "core/finding/element.h"

#include <string.h>

#include "base/bug.h"
#include "base/ip.h"
#include "base/strbuf.h"
#include "core/finding/finding.h"

/* ---- making one --------------------------------------------------------------------------------------------------- */

struct element element_unknown(void)
{
    return (struct element){.a = {.number = UINT32_MAX}, .b = {.number = UINT32_MAX}};
}

struct element element_of(enum element_kind kind, enum place_kind place, uint32_t number)
{
    struct element e = element_unknown();

    e.kind = kind;
    e.a.kind = place;
    e.a.number = number;
    return e;
}

struct element element_at(const struct place *place)
{
    static const enum element_kind kinds[PLACE_KIND_COUNT] = {
        ELEMENT_UNKNOWN, ELEMENT_HOST, ELEMENT_NIC, ELEMENT_LEAF, ELEMENT_SPINE, ELEMENT_ROUTER};
    struct element e = element_unknown();

    e.kind = place->kind < PLACE_KIND_COUNT ? kinds[place->kind] : ELEMENT_UNKNOWN;
    e.a = *place;
    return e;
}

static bool same_place(const struct place *x, const struct place *y)
{
    return x->kind == y->kind && x->number == y->number &&
           memcmp(x->address, y->address, sizeof(x->address)) == 0;
}

bool element_same(const struct element *x, const struct element *y)
{
    return x->kind == y->kind && x->direction == y->direction && same_place(&x->a, &y->a) &&
           same_place(&x->b, &y->b);
}

/* Compares without the direction. */
static bool same_thing(const struct element *x, const struct element *y)
{
    return x->kind == y->kind && same_place(&x->a, &y->a) && same_place(&x->b, &y->b);
}

bool element_choice_meets(const struct element_choice *x, const struct element_choice *y)
{
    for (uint32_t i = 0; i < x->count * y->count; i++) {
        if (same_thing(&x->one_of[i / y->count], &y->one_of[i % y->count])) {
            return true;
        }
    }
    return false;
}

void element_choice_add(struct element_choice *choice, const struct element *e)
{
    for (uint32_t i = 0; i < choice->count; i++) {
        struct element *known = &choice->one_of[i];
        if (same_thing(known, e)) {
            known->direction = known->direction == e->direction ? e->direction : DIRECTION_NONE;
            return;
        }
    }
    choice->total++;
    if (choice->count < ELEMENT_ONE_OF) {
        choice->one_of[choice->count++] = *e;
    }
}

/* ---- words -------------------------------------------------------------------------------------------------------- */

static const char *const kind_words[ELEMENT_KIND_COUNT] = {
    "unknown", "host",  "nic",   "leaf", "spine", "router", "trunk",
    "path",    "clock", "agent", "job",  "rail",  "fleet",  "rule"};
static const char *const place_words[PLACE_KIND_COUNT] = {"unknown", "host",  "nic",
                                                          "leaf",    "spine", "router"};
static const char *const direction_words[] = {NULL, "out", "in", "both"};

const char *element_kind_word(uint32_t kind)
{
    return kind < ELEMENT_KIND_COUNT ? kind_words[kind] : NULL;
}

const char *place_kind_word(uint32_t kind)
{
    return kind < PLACE_KIND_COUNT ? place_words[kind] : NULL;
}

const char *direction_word(uint32_t direction)
{
    return direction < ARRAY_COUNT(direction_words) ? direction_words[direction] : NULL;
}

static uint32_t find_word(const char *const *words, uint32_t count, const char *word)
{
    for (uint32_t k = 1; k < count; k++) {
        if (strcmp(words[k], word) == 0) {
            return k;
        }
    }
    return 0;
}

uint32_t element_kind_of(const char *word)
{
    return find_word(kind_words, ELEMENT_KIND_COUNT, word);
}

uint32_t place_kind_of(const char *word)
{
    return find_word(place_words, PLACE_KIND_COUNT, word);
}

uint32_t direction_of(const char *word)
{
    return find_word(direction_words, ARRAY_COUNT(direction_words), word);
}

/* ---- in words ----------------------------------------------------------------------------------------------------- */

static void add_place(struct strbuf *t, const struct finding_names *names, const struct place *p)
{
    static const uint8_t unknown[16];
    char address[IP_TEXT_SIZE];
    const char *name = NULL;
    const char *word =
        p->kind > PLACE_NONE && p->kind < PLACE_KIND_COUNT ? place_words[p->kind] : "somewhere";

    if (p->number != UINT32_MAX && (p->kind == PLACE_HOST || p->kind == PLACE_NIC)) {
        if (p->kind == PLACE_HOST && names != NULL && names->host != NULL) {
            name = names->host(names->context, (struct host_id){p->number});
        } else if (p->kind == PLACE_NIC && names != NULL && names->nic != NULL) {
            name = names->nic(names->context, (struct nic_id){p->number});
        }
        if (name != NULL) {
            strbuf_add(t, "%s", name);
        } else {
            strbuf_add(t, "%s %u", word, p->number);
        }
    } else if (p->number != UINT32_MAX && p->kind != PLACE_NONE) {
        strbuf_add(t, "%s%u", word, p->number);
    } else {
        strbuf_add(t, "%s", word);
        if (memcmp(p->address, unknown, sizeof(unknown)) != 0) {
            strbuf_add(t, " %s", ip_text(p->address, address));
        }
    }
}

static void add_element(struct strbuf *t, const struct finding_names *names,
                        const struct element *e)
{
    switch ((enum element_kind)e->kind) {
    case ELEMENT_TRUNK:
        strbuf_add(t, "trunk ");
        add_place(t, names, &e->a);
        strbuf_add(t, " - ");
        add_place(t, names, &e->b);
        return;
    case ELEMENT_PATH:
        add_place(t, names, &e->a);
        strbuf_add(t, " -> ");
        add_place(t, names, &e->b);
        return;
    case ELEMENT_NIC:
        add_place(t, names, &e->a);
        strbuf_add(t, " or its link");
        return;
    case ELEMENT_CLOCK:
    case ELEMENT_AGENT:
        strbuf_add(t, "%s of ", kind_words[e->kind]);
        add_place(t, names, &e->a);
        return;
    case ELEMENT_HOST:
    case ELEMENT_LEAF:
    case ELEMENT_SPINE:
    case ELEMENT_ROUTER:
        add_place(t, names, &e->a);
        return;
    default:
        strbuf_add(t, "%s", e->kind < ELEMENT_KIND_COUNT ? kind_words[e->kind] : "unknown");
        return;
    }
}

size_t element_text(const struct element *e, const struct finding_names *names, char *ret_text,
                    size_t size)
{
    struct strbuf t = strbuf_init(ret_text, size);

    add_element(&t, names, e);
    return t.length;
}

size_t place_text(const struct place *p, const struct finding_names *names, char *ret_text,
                  size_t size)
{
    struct strbuf t = strbuf_init(ret_text, size);

    add_place(&t, names, p);
    return t.length;
}

size_t element_choice_text(const struct element_choice *choice, const struct finding_names *names,
                           char *ret_text, size_t size)
{
    struct strbuf t = strbuf_init(ret_text, size);

    strbuf_add(&t, choice->count > 0 ? "unknown, one of " : "unknown");
    for (uint32_t i = 0; i < choice->count; i++) {
        const bool last = i > 0 && i + 1 == choice->count && choice->total == choice->count;
        strbuf_add(&t, i == 0 ? "" : last ? " and " : ", ");
        add_element(&t, names, &choice->one_of[i]);
    }
    if (choice->count > 0 && choice->total > choice->count) {
        strbuf_add(&t, " and others");
    }
    return t.length;
}

/* brain_codec.c: packs the input of a fleet's brain. */
#include "service/record/brain_codec.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/prng.h"
#include "service/record/pack.h"

enum { TEXTS = 3, BEHIND_SIZE = BRAIN_CODEC_MAX };

/* The layout of a fact's struct: where its pointers are. */
struct shape {
    size_t size;
    uint32_t texts;
    size_t text[TEXTS];
    /* one list: pointer, number of elements, size of an element; element 0: no list */
    size_t list, count, element;
    bool wide; /* the count is a size_t */
    uint32_t list_max;
};

#define PLAIN(type)                                                                                \
    {                                                                                              \
        .size = sizeof(type)                                                                       \
    }
static const struct shape shapes[BRAIN_FACT_COUNT] = {
    [BRAIN_TERMS] = PLAIN(struct fleet_terms),
    [BRAIN_ROOM] = PLAIN(struct brain_room),
    [BRAIN_MEMBER] = {.size = sizeof(struct fleet_member),
                      .list = offsetof(struct fleet_member, nics),
                      .count = offsetof(struct fleet_member, nic_count),
                      .element = sizeof(uint32_t),
                      .list_max = HOST_NIC_MAX},
    [BRAIN_HEARD] = PLAIN(struct brain_heard),
    [BRAIN_REPORT] = PLAIN(struct fleet_report),
    [BRAIN_RUN] = PLAIN(struct brain_run),
    [BRAIN_FINDING] = {.size = sizeof(struct alert_finding),
                       .texts = 1,
                       .text = {offsetof(struct alert_finding, text)}},
    [BRAIN_INQUIRY] = PLAIN(struct brain_inquiry),
    [BRAIN_PATH] = PLAIN(struct brain_path),
    [BRAIN_PLACE] = PLAIN(struct brain_place),
    [BRAIN_RULES] = {.size = sizeof(struct alert_config),
                     .list = offsetof(struct alert_config, rules),
                     .count = offsetof(struct alert_config, rule_count),
                     .element = sizeof(struct alert_rule),
                     .wide = true,
                     .list_max = ALERT_RULE_MAX},
    [BRAIN_CLOCK] = PLAIN(struct brain_clock),
    [BRAIN_SAMPLE] = PLAIN(struct alert_sample),
    [BRAIN_HOST] = PLAIN(struct brain_host),
    [BRAIN_HOST_GONE] = PLAIN(struct brain_host),
    [BRAIN_JOB_OVER] = PLAIN(struct brain_job),
    [BRAIN_REFUSED] = {.size = sizeof(struct brain_words),
                       .texts = 1,
                       .text = {offsetof(struct brain_words, text)}},
    [BRAIN_SILENCE] = PLAIN(struct alert_silence),
    [BRAIN_UNSILENCE] = {.size = sizeof(struct brain_incident),
                         .texts = 1,
                         .text = {offsetof(struct brain_incident, by)}},
    [BRAIN_ACKNOWLEDGE] = {.size = sizeof(struct brain_incident),
                           .texts = 1,
                           .text = {offsetof(struct brain_incident, by)}},
    [BRAIN_RESTORE] = {.size = sizeof(struct alert_restore),
                       .texts = 3,
                       .text = {offsetof(struct alert_restore, cause),
                                offsetof(struct alert_restore, acknowledged_by),
                                offsetof(struct alert_restore, text)}},
    [BRAIN_LEVEL] = PLAIN(struct brain_level),
    [BRAIN_CANARY] = PLAIN(struct brain_canary),
    [BRAIN_TRIAL] = PLAIN(struct rollout_facts),
};

_Static_assert(sizeof(struct alert_sample) <= sizeof(uint64_t) * (BRAIN_CODEC_WORDS / 8),
               "a sample fits");
_Static_assert(sizeof(struct alert_silence) <= sizeof(uint64_t) * BRAIN_CODEC_WORDS,
               "a silence fits");
_Static_assert(sizeof(struct alert_config) + ALERT_RULE_MAX * sizeof(struct alert_rule) +
                       2 * PACK_WORDS_MAX(sizeof(struct alert_config) / 8) <
                   BRAIN_CODEC_MAX,
               "the rules fit");

static size_t words_of(const struct shape *s)
{
    return (s->size + 7) / 8;
}

/* NULL: the fact is written whole. */
static uint64_t *last_of(struct brain_codec *c, enum brain_fact fact, uint8_t slot)
{
    return fact == BRAIN_SAMPLE                           ? c->samples[slot]
           : words_of(&shapes[fact]) <= BRAIN_CODEC_WORDS ? c->last[fact]
                                                          : NULL;
}

void brain_codec_init(struct brain_codec *c)
{
    memset(c, 0, sizeof(*c));
}

/* ---- writing ------------------------------------------------------------------------------------------------------ */

/* Writes 0 for NULL; else length + 1 and the text, cut to the maximum. */
static size_t put_text(const char *text, uint8_t *bytes)
{
    const size_t length = text != NULL ? strnlen(text, BRAIN_CODEC_TEXT - 1) : 0;
    const size_t n = pack_varint(bytes, text != NULL ? length + 1 : 0);

    if (length > 0) {
        memcpy(bytes + n, text, length);
    }
    return n + length;
}

static void *pointer_at(const void *data, size_t offset)
{
    void *p;

    memcpy(&p, (const uint8_t *)data + offset, sizeof(p));
    return p;
}

static size_t count_at(const struct shape *s, const void *data)
{
    size_t wide = 0;
    uint32_t narrow = 0;

    if (s->wide) {
        memcpy(&wide, (const uint8_t *)data + s->count, sizeof(wide));
        return wide;
    }
    memcpy(&narrow, (const uint8_t *)data + s->count, sizeof(narrow));
    return narrow;
}

/* Clears pointers: they are valid only in this process. */
static void clear_pointers(enum brain_fact fact, uint64_t *words)
{
    const struct shape *s = &shapes[fact];
    uint8_t *bytes = (uint8_t *)words;

    for (uint32_t k = 0; k < s->texts; k++) {
        memset(bytes + s->text[k], 0, sizeof(void *));
    }
    if (s->element > 0) {
        memset(bytes + s->list, 0, sizeof(void *));
    }
    if (fact == BRAIN_RULES) {
        memset(bytes + offsetof(struct alert_config, fleet), 0, sizeof(struct alert_fleet));
    }
}

size_t brain_codec_fact(struct brain_codec *c, struct mono now, enum brain_fact fact,
                        const void *data, uint8_t *bytes)
{
    const struct shape *s = &shapes[fact];
    uint64_t words[sizeof(struct alert_config) / 8 + 1], zero[sizeof(struct alert_config) / 8 + 1];
    size_t n = 0;

    bytes[n++] = (uint8_t)(fact + 1);
    n += pack_varint(bytes + n, pack_signed((int64_t)((uint64_t)now.ns - (uint64_t)c->now_ns)));
    c->now_ns = now.ns;
    if (s->size == 0) {
        return n;
    }
    uint8_t slot = 0;
    if (fact == BRAIN_SAMPLE) {
        slot = (uint8_t)((const struct alert_sample *)data)->metric;
        bytes[n++] = slot;
    }
    words[words_of(s) - 1] = 0;
    memcpy(words, data, s->size);
    clear_pointers(fact, words);
    uint64_t *last = last_of(c, fact, slot);
    if (last == NULL) {
        memset(zero, 0, sizeof(zero));
        last = zero;
    }
    n += pack_words(last, words, words_of(s), bytes + n);
    for (uint32_t k = 0; k < s->texts; k++) {
        n += put_text(pointer_at(data, s->text[k]), bytes + n);
    }
    if (s->element > 0) {
        const size_t size = count_at(s, data) * s->element;
        ASSERT(count_at(s, data) <= s->list_max);
        if (size > 0) {
            memcpy(bytes + n, pointer_at(data, s->list), size);
        }
        n += size;
    }
    return n;
}

static bool has_answer(enum brain_fact fact)
{
    static const uint64_t with = 1ULL << BRAIN_TERMS | 1ULL << BRAIN_ROOM |
                                 1ULL << BRAIN_HOSTS_NEXT | 1ULL << BRAIN_INQUIRY |
                                 1ULL << BRAIN_PLACE | 1ULL << BRAIN_RULES | 1ULL << BRAIN_SILENCE |
                                 1ULL << BRAIN_UNSILENCE | 1ULL << BRAIN_ACKNOWLEDGE |
                                 1ULL << BRAIN_RESTORE | 1ULL << BRAIN_ALERTS_NEXT |
                                 1ULL << BRAIN_LEVEL | 1ULL << BRAIN_CANARY | 1ULL << BRAIN_TRIAL;

    return (with >> fact & 1) != 0;
}

size_t brain_codec_answer(enum brain_fact fact, const struct brain_answer *answer, uint8_t *bytes)
{
    size_t n = 0;

    if (!has_answer(fact)) {
        return 0;
    }
    const uint64_t print = brain_answer_print(fact, answer);
    bytes[n++] = BRAIN_CODEC_ANSWER;
    bytes[n++] = (uint8_t)fact;
    n += pack_varint(bytes + n, pack_signed(answer->result));
    memcpy(bytes + n, &print, sizeof(print));
    return n + sizeof(print);
}

size_t brain_codec_name(const struct brain_name *name, uint8_t *bytes)
{
    size_t n = 0;

    bytes[n++] = BRAIN_CODEC_NAME;
    bytes[n++] = (uint8_t)(name->kind << 1 | name->known);
    n += pack_varint(bytes + n, name->id);
    n += pack_varint(bytes + n, name->tenant);
    n += pack_varint(bytes + n, name->host);
    n += pack_varint(bytes + n, name->rail);
    n += put_text(name->name, bytes + n);
    return n + put_text(name->leaf, bytes + n);
}

/* ---- is it such as the brain takes? ------------------------------------------------------------------------------- */

#define TIME_MAX 4000000000000000000LL

static bool time_fits(int64_t ns)
{
    return ns >= -TIME_MAX && ns <= TIME_MAX;
}

/* For a time that may be MONO_NEVER. */
static bool moment_fits(struct mono t)
{
    return t.ns == MONO_NEVER.ns || time_fits(t.ns);
}

static bool span_fits(struct span s)
{
    return s.ns >= 0 && s.ns <= 366LL * 86400 * NS_PER_S;
}

/* If a bool's byte is neither 0 nor 1, reading it as a bool would be undefined behaviour. */
static bool bool_fits(const bool *b)
{
    return *(const uint8_t *)b <= 1;
}

static bool place_fits(const struct place *p)
{
    return p->kind < PLACE_KIND_COUNT;
}

static bool element_fits(const struct element *e)
{
    return e->kind < ELEMENT_KIND_COUNT && e->direction <= DIRECTION_BOTH && place_fits(&e->a) &&
           place_fits(&e->b);
}

static bool choice_fits(const struct element_choice *c)
{
    bool good = c->count <= ELEMENT_ONE_OF && c->count <= c->total;

    for (uint32_t k = 0; good && k < c->count; k++) {
        good = element_fits(&c->one_of[k]);
    }
    return good;
}

static bool text_ends(const char *text, size_t size)
{
    return memchr(text, 0, size) != NULL;
}

static bool route_fits(const struct locate_route *r)
{
    bool good = r->box_count <= PATH_HOP_MAX;

    for (uint32_t k = 0; good && k < r->box_count; k++) {
        good = r->boxes[k].kind >= ELEMENT_LEAF && r->boxes[k].kind <= ELEMENT_ROUTER;
    }
    return good;
}

static bool config_fits(const struct alert_config *c)
{
    const struct span spans[] = {c->keep,  c->reopen, c->repage, c->together,
                                 c->grace, c->silent, c->blind,  c->heartbeat};
    bool good = c->rule_count <= ALERT_RULE_MAX && c->route_count <= ALERT_ROUTE_MAX &&
                c->alert_max <= 1 << 20 && c->incident_max <= 1 << 20 && c->watch_max <= 1 << 22 &&
                c->promote <= 1 << 20;

    for (size_t k = 0; k < ARRAY_COUNT(spans); k++) {
        good = good && span_fits(spans[k]);
    }
    for (size_t k = 0; good && k < c->route_count; k++) {
        const struct alert_route *r = &c->routes[k];
        good = r->step_count <= ALERT_STEP_MAX && span_fits(r->repeat) &&
               r->severity < ALERT_SEVERITY_COUNT;
        for (uint32_t n = 0; good && n < r->step_count; n++) {
            good = span_fits(r->steps[n].after);
        }
    }
    for (size_t k = 0; good && k < c->rule_count; k++) {
        const struct alert_rule *r = &c->rules[k];
        good = text_ends(r->name, sizeof(r->name)) && text_ends(r->advice, sizeof(r->advice)) &&
               bool_fits(&r->below) && bool_fits(&r->confident) && span_fits(r->within) &&
               span_fits(r->hold) && span_fits(r->wait);
    }
    return good;
}

static bool silence_fits(const struct alert_silence *s)
{
    return bool_fits(&s->maintenance) && time_fits(s->from_utc_ns) && time_fits(s->until_utc_ns) &&
           span_fits(s->every) && text_ends(s->match.rule, sizeof(s->match.rule)) &&
           text_ends(s->match.host, sizeof(s->match.host)) &&
           text_ends(s->match.element, sizeof(s->match.element));
}

static bool finding_fits(const struct alert_finding *f)
{
    return f->kind < FINDING_KIND_COUNT && f->phase <= FINDING_CLOSED &&
           element_fits(&f->suspect) && choice_fits(&f->choice) && bool_fits(&f->hearsay) &&
           moment_fits(f->since) && moment_fits(f->heard) && f->text != NULL;
}

static bool restore_fits(const struct alert_restore *r)
{
    return element_fits(&r->element) && choice_fits(&r->choice) &&
           r->severity < ALERT_SEVERITY_COUNT && bool_fits(&r->told) && bool_fits(&r->owes_page) &&
           r->cause != NULL && r->text != NULL && moment_fits(r->since);
}

static bool member_fits(const struct brain_bounds *b, const struct fleet_member *m)
{
    bool good = m->host < b->hosts && bool_fits(&m->present);

    for (uint32_t k = 0; good && k < m->nic_count; k++) {
        good = m->nics[k] < b->nics;
    }
    return good;
}

static bool path_fits(const struct inquiry_path *p)
{
    return bool_fits(&p->dead) && bool_fits(&p->lossy) && p->loss_ppm <= 1000000 &&
           route_fits(&p->route);
}

static bool level_fits(const struct brain_level *l)
{
    const struct level_state *s = &l->state;

    return (unsigned)l->level.kind < LEVEL_KIND_COUNT &&
           (unsigned)l->level.within < LEVEL_WITHIN_COUNT && span_fits(l->level.hold) &&
           text_ends(l->level.name, sizeof(l->level.name)) &&
           (unsigned)s->verdict <= LEVEL_BROKEN && (unsigned)s->next <= LEVEL_BROKEN &&
           time_fits(s->since.ns) && time_fits(s->next_since.ns) && s->paths <= UINT32_MAX &&
           s->unmeasured <= s->paths && s->beyond <= s->paths - s->unmeasured &&
           (s->beyond == 0 || s->worst > l->level.limit);
}

static bool trial_fits(const struct rollout_facts *f)
{
    return f->hosts <= FLEET_NIC_MAX && f->confirmed <= f->hosts && f->unsure <= f->hosts &&
           span_fits(f->age) && span_fits(f->watch);
}

static bool canary_fits(const struct brain_bounds *b, const struct brain_canary *k)
{
    return b->has_hosts && k->host < b->hosts && bool_fits(&k->heard) && bool_fits(&k->refused) &&
           time_fits(k->began.ns) && bool_fits(&k->canary.confirmed) &&
           k->canary.health <= HEALTH_BAD && moment_fits(k->canary.worse) && trial_fits(&k->facts);
}

static bool terms_fit(const struct fleet_terms *t)
{
    return t->finding_max > 0 && t->finding_max <= 1 << 22 && t->beat.ns > 0 && t->report.ns > 0 &&
           span_fits(t->beat) && span_fits(t->report);
}

/* For facts of hosts; they must come after the terms and the room. */
static bool host_fact_fits(const struct brain_bounds *b, enum brain_fact fact, const void *data)
{
    const struct brain_heard *heard = data;
    const struct brain_room *room = data;
    const struct fleet_report *report = data;

    if (fact == BRAIN_TERMS) {
        return terms_fit(data);
    }
    if (!b->has_hosts) {
        return false;
    }
    switch (fact) {
    case BRAIN_ROOM:
        return room->hosts <= FLEET_NIC_MAX && room->nics <= FLEET_NIC_MAX;
    case BRAIN_MEMBER:
        return member_fits(b, data);
    case BRAIN_HEARD:
        return heard->host < b->hosts && span_fits(heard->beat) && span_fits(heard->report);
    case BRAIN_REPORT:
        return report->host < b->hosts && bool_fits(&report->rollup);
    case BRAIN_RUN:
        return ((const struct brain_run *)data)->host < b->hosts;
    case BRAIN_FINDING:
        return ((const struct alert_finding *)data)->said_by < b->hosts && finding_fits(data);
    default:
        return true;
    }
}

static bool fact_fits(const struct brain_bounds *b, enum brain_fact fact, const void *data)
{
    const struct brain_inquiry *inquiry = data;
    const struct brain_path *path = data;
    const struct brain_place *place = data;
    const struct brain_clock *clock = data;

    if (fact < BRAIN_INQUIRY) {
        return host_fact_fits(b, fact, data);
    }
    switch (fact) {
    case BRAIN_INQUIRY:
        return inquiry->paths > 0 && inquiry->paths <= 1 << 20 && span_fits(inquiry->report);
    case BRAIN_PATH:
        return time_fits(path->at.ns) && path_fits(&path->path);
    case BRAIN_PLACE:
        return moment_fits(place->since) && bool_fits(&place->worded) && route_fits(&place->route);
    case BRAIN_RULES:
        return config_fits(data);
    case BRAIN_CLOCK:
        return time_fits(clock->utc_offset_ns) &&
               (clock->fleet_offset_ns == FINDING_NO_TIME || time_fits(clock->fleet_offset_ns));
    case BRAIN_SAMPLE:
        return ((const struct alert_sample *)data)->metric < ALERT_METRIC_COUNT;
    case BRAIN_SILENCE:
        return silence_fits(data);
    case BRAIN_RESTORE:
        return restore_fits(data);
    case BRAIN_LEVEL:
        return level_fits(data);
    case BRAIN_CANARY:
        return canary_fits(b, data);
    case BRAIN_TRIAL:
        return trial_fits(data);
    default:
        return true;
    }
}

/* Updates the bounds for the next facts. */
static void widen(struct brain_bounds *b, enum brain_fact fact, const void *data)
{
    const struct brain_room *room = data;

    if (fact == BRAIN_TERMS) {
        *b = (struct brain_bounds){.has_hosts = true};
    } else if (fact == BRAIN_ROOM) {
        b->hosts = room->hosts > b->hosts ? room->hosts : b->hosts;
        b->nics = room->nics > b->nics ? room->nics : b->nics;
    }
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

int brain_decoder_init(struct brain_decoder *d)
{
    *d = (struct brain_decoder){.words = calloc(sizeof(struct alert_config) / 8 + 1, 8),
                                .behind = calloc(1, BEHIND_SIZE)};
    return d->words != NULL && d->behind != NULL ? 0 : -ENOMEM;
}

void brain_decoder_done(struct brain_decoder *d)
{
    free(d->words);
    free(d->behind);
}

struct cursor {
    const uint8_t *bytes;
    size_t size, at;
    int error;
};

static uint64_t get_number(struct cursor *c)
{
    uint64_t value = 0;
    const long used =
        c->error < 0 ? c->error : unpack_varint(c->bytes + c->at, c->size - c->at, &value);

    if (used < 0) {
        c->error = (int)used;
        return 0;
    }
    c->at += (size_t)used;
    return value;
}

static const uint8_t *get_bytes(struct cursor *c, size_t size)
{
    if (c->error == 0 && c->size - c->at < size) {
        c->error = -ENODATA;
    }
    if (c->error < 0) {
        return NULL;
    }
    c->at += size;
    return c->bytes + c->at - size;
}

static uint8_t get_byte(struct cursor *c)
{
    const uint8_t *byte = get_bytes(c, 1);

    return byte != NULL ? *byte : 0;
}

/* Reads a text into `memory` at *used. */
static const char *get_text(struct cursor *c, uint8_t *memory, size_t *used)
{
    const uint64_t length = get_number(c);

    if (length > BRAIN_CODEC_TEXT) {
        c->error = -EPROTO;
    }
    if (c->error < 0 || length == 0) {
        return NULL;
    }
    const uint8_t *text = get_bytes(c, length - 1);
    char *to = (char *)memory + *used;
    if (text == NULL || memchr(text, 0, length - 1) != NULL) {
        c->error = c->error < 0 ? c->error : -EPROTO;
        return NULL;
    }
    memcpy(to, text, length - 1);
    to[length - 1] = 0;
    *used += length;
    return to;
}

static void set_pointer(void *data, size_t offset, const void *p)
{
    memcpy((uint8_t *)data + offset, &p, sizeof(p));
}

/* Reads what a fact's pointers point to: texts, and its list. */
static void get_behind(struct cursor *c, struct brain_decoder *d, const struct shape *s)
{
    size_t used = 0;

    for (uint32_t k = 0; k < s->texts; k++) {
        set_pointer(d->words, s->text[k], get_text(c, d->behind, &used));
    }
    if (s->element > 0) {
        const size_t count = count_at(s, d->words);
        const uint8_t *list = count <= s->list_max ? get_bytes(c, count * s->element) : NULL;
        if (list == NULL) {
            c->error = c->error < 0 ? c->error : -EPROTO;
            return;
        }
        memcpy(d->behind, list, count * s->element);
        set_pointer(d->words, s->list, d->behind);
    }
}

static void get_fact(struct cursor *c, struct brain_decoder *d, struct brain_record_item *ret)
{
    const enum brain_fact fact = (enum brain_fact)(ret->kind - 1);
    const struct shape *s = &shapes[fact];
    const int64_t now =
        (int64_t)((uint64_t)d->codec.now_ns + (uint64_t)unpack_signed(get_number(c)));

    ret->fact = fact;
    ret->now = (struct mono){now};
    ret->data = s->size > 0 ? d->words : NULL;
    if (c->error == 0 && !time_fits(now)) {
        c->error = -EPROTO;
    }
    const uint8_t slot = fact == BRAIN_SAMPLE ? get_byte(c) : 0;
    if (c->error == 0 && slot >= ALERT_METRIC_COUNT) {
        c->error = -EPROTO;
    }
    if (c->error < 0) {
        return;
    }
    d->codec.now_ns = now;
    if (s->size > 0) {
        uint64_t *last = last_of(&d->codec, fact, slot), *to = last != NULL ? last : d->words;
        if (last == NULL) {
            memset(to, 0, words_of(s) * sizeof(*to));
        }
        const long used = unpack_words(to, words_of(s), c->bytes + c->at, c->size - c->at);
        if (used < 0) {
            c->error = (int)used;
            return;
        }
        c->at += (size_t)used;
        memmove(d->words, to, words_of(s) * sizeof(*to));
        clear_pointers(fact, d->words); /* the pointers' bytes in the file are not trusted */
        get_behind(c, d, s);
    }
    if (c->error == 0 && !fact_fits(&d->bounds, fact, ret->data)) {
        c->error = -EPROTO;
    }
    if (c->error == 0) {
        widen(&d->bounds, fact, ret->data);
    }
}

static void get_answer(struct cursor *c, struct brain_record_item *ret)
{
    const uint8_t fact = get_byte(c);

    ret->result = unpack_signed(get_number(c));
    const uint8_t *print = get_bytes(c, sizeof(ret->print));
    if (print != NULL) {
        memcpy(&ret->print, print, sizeof(ret->print));
    }
    if (c->error == 0 && (fact >= BRAIN_FACT_COUNT || !has_answer((enum brain_fact)fact))) {
        c->error = -EPROTO;
    }
    ret->fact = (enum brain_fact)fact;
}

static void get_name(struct cursor *c, struct brain_decoder *d, struct brain_record_item *ret)
{
    const uint8_t kind = get_byte(c);
    size_t used = 0;

    ret->name = (struct brain_name){.kind = kind >> 1, .known = kind & 1};
    ret->name.id = get_number(c);
    ret->name.tenant = get_number(c);
    ret->name.host = (uint32_t)get_number(c);
    ret->name.rail = (uint32_t)get_number(c);
    ret->name.name = get_text(c, d->names, &used);
    ret->name.leaf = get_text(c, d->names, &used);
    if (c->error == 0 && kind >> 1 > BRAIN_NAME_TENANT) {
        c->error = -EPROTO;
    }
}

long brain_decode(struct brain_decoder *d, const uint8_t *bytes, size_t size,
                  struct brain_record_item *ret)
{
    struct cursor c = {.bytes = bytes, .size = size};

    *ret = (struct brain_record_item){.kind = get_byte(&c)};
    if (c.error < 0) {
        return c.error;
    }
    if (ret->kind == BRAIN_CODEC_ANSWER) {
        get_answer(&c, ret);
    } else if (ret->kind == BRAIN_CODEC_NAME) {
        get_name(&c, d, ret);
    } else if (ret->kind >= 1 && ret->kind <= BRAIN_FACT_COUNT) {
        get_fact(&c, d, ret);
    } else {
        c.error = -EPROTO;
    }
    return c.error < 0 ? c.error : (long)c.at;
}

uint64_t brain_codec_layout(void)
{
    uint64_t h = hash_u64(sizeof(struct alert_rule), BRAIN_FACT_COUNT);

    for (int fact = 0; fact < BRAIN_FACT_COUNT; fact++) {
        h = hash_u64(h, shapes[fact].size);
    }
    return hash_u64(h, hash_text(FOLIOT_VERSION));
}

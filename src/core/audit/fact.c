/* fact.c: see fact.h. */
#include "core/audit/fact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/plain.h"

struct kind {
    const char *name, *what;
    uint8_t section, keep, form;
};

static const struct kind kinds[] = {
#define FACT(id, section, keep, form, name, what)                                                  \
    {name, what, SECTION_##section, KEEP_##keep, FORM_##form},
    AUDIT_FACTS(FACT)
#undef FACT
};
static const char *const sections[] = {"os",  "cpu",  "memory",  "pcie", "gpu",
                                       "nic", "rdma", "storage", "time", "job"};
static const char *const states[] = {"value",   "absent",  "no_permission", "unreadable",
                                     "garbled", "timeout", "stuck"};
_Static_assert(ARRAY_COUNT(kinds) == FACT_COUNT, "a row for each fact");
_Static_assert(ARRAY_COUNT(sections) == SECTION_COUNT, "a name for each section");
_Static_assert(ARRAY_COUNT(states) == FACT_STATE_COUNT, "a name for each state");

const char *fact_name(enum fact_id id)
{
    return kinds[id].name;
}

const char *fact_what(enum fact_id id)
{
    return kinds[id].what;
}

enum fact_section fact_section(enum fact_id id)
{
    return kinds[id].section;
}

enum fact_keep fact_keep(enum fact_id id)
{
    return kinds[id].keep;
}

bool fact_is_of_controller(enum fact_id id)
{
    return id == FACT_HISTORY || id == FACT_MATRIX || id == FACT_MATRIX_PATH ||
           id == FACT_MATRIX_LATE || id == FACT_PERF || id == FACT_PERF_NIC ||
           id == FACT_PERF_INCAST || id == FACT_PERF_LATE || id == FACT_PERF_WAITED ||
           id == FACT_PERF_PATH || id == FACT_PERF_SEARCH;
}

bool fact_is_counter(enum fact_id id)
{
    return id == FACT_OS_RETRANS || id == FACT_OS_SEGMENTS || id == FACT_MEM_CE ||
           id == FACT_PCI_AER_CORRECTED || id == FACT_GPU_REPLAYS || id == FACT_NET_DOWNS ||
           id == FACT_NET_FEC_CORRECTED || id == FACT_NET_FEC_LOST || id == FACT_NET_RX_BYTES ||
           id == FACT_PORT_SYMBOLS || id == FACT_PORT_DISCARDS;
}

bool fact_is_measured(enum fact_id id)
{
    return id == FACT_EDGE || id == FACT_MATRIX || id == FACT_CLOCK_RATE || id == FACT_TEST_RATE ||
           id == FACT_TEST_SPREAD || id == FACT_TEST_RANKS || id == FACT_PERF_NIC;
}

const char *fact_section_name(enum fact_section section)
{
    return sections[section];
}

const char *fact_state_name(enum fact_state state)
{
    return states[state];
}

enum fact_id fact_by_name(const char *name)
{
    unsigned id = 0;

    while (id < FACT_COUNT && strcmp(kinds[id].name, name) != 0) {
        id++;
    }
    return id;
}

enum fact_state fact_state_by_name(const char *name)
{
    unsigned state = 0;

    while (state < FACT_STATE_COUNT && strcmp(states[state], name) != 0) {
        state++;
    }
    return state;
}

static bool digit(char c, bool hex)
{
    return (c >= '0' && c <= '9') || (hex && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
}

static size_t digits(const char *text, bool hex)
{
    size_t n = 0;

    while (digit(text[n], hex)) {
        n++;
    }
    return n;
}

bool fact_number(const char *text, int64_t *ret_number)
{
    const bool hex = strncmp(text, "0x", 2) == 0;
    const char *from = text + (hex ? 2 : *text == '-');
    const size_t n = digits(from, hex);

    if (n == 0 || n > (hex ? 15 : 18) || from[n] != '\0') {
        return false;
    }
    *ret_number = strtoll(text, NULL, hex ? 16 : 10);
    return true;
}

static bool word(const char *text)
{
    size_t n = 0;

    while (digit(text[n], false) || (text[n] >= 'a' && text[n] <= 'z') ||
           (text[n] >= 'A' && text[n] <= 'Z') ||
           (text[n] != '\0' && strchr("._+-:~/@,", text[n]))) {
        n++;
    }
    return n > 0 && text[n] == '\0';
}

/* "32.0 GT/s PCIe", "2.5 GT/s". */
static bool transfer(const char *text)
{
    const size_t whole = digits(text, false),
                 part = text[whole] == '.' ? digits(text + whole + 1, false) : 0;
    const char *unit = text + whole + (part > 0 ? part + 1 : 0);

    return whole > 0 && whole < 4 && part < 3 &&
           (strcmp(unit, " GT/s PCIe") == 0 || strcmp(unit, " GT/s") == 0);
}

/* "4: ACTIVE", "5: LinkUp". */
static bool state(const char *text)
{
    return digits(text, false) == 1 && text[1] == ':' && text[2] == ' ' && word(text + 3);
}

/* "400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)", "40 Gb/sec (4X)". */
static bool rate(const char *text)
{
    const size_t whole = digits(text, false),
                 part = text[whole] == '.' ? digits(text + whole + 1, false) : 0;
    const char *at = text + whole + (part > 0 ? part + 1 : 0);

    if (whole == 0 || whole > 5 || strncmp(at, " Gb/sec (", 9) != 0) {
        return false;
    }
    at += 9;
    size_t lanes = digits(at, false);
    if (lanes == 0 || lanes > 2 || at[lanes] != 'X') {
        return false;
    }
    at += lanes + 1;
    if (*at == ' ') {
        for (at++; *at >= 'A' && *at <= 'Z'; at++) {
        }
    }
    return strcmp(at, ")") == 0;
}

bool fact_fits(enum fact_id id, const char *text)
{
    int64_t number;

    if (strlen(text) >= FACT_VALUE_MAX || !plain_is(text)) {
        return false;
    }
    switch ((enum fact_form)kinds[id].form) {
    case FORM_NUMBER:
        return strncmp(text, "0x", 2) != 0 && fact_number(text, &number);
    case FORM_HEX:
        return strncmp(text, "0x", 2) == 0 && fact_number(text, &number);
    case FORM_WORD:
        return word(text);
    case FORM_TEXT:
        return true;
    case FORM_STATE:
        return state(text);
    case FORM_RATE:
        return rate(text);
    case FORM_TRANSFER:
        return transfer(text);
    }
    return false;
}

const char *sheet_keep(struct sheet *s, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *kept = s->text + s->text_used;

    if (size > s->text_size - s->text_used) {
        return "";
    }
    memcpy(kept, text, size);
    s->text_used += size;
    return kept;
}

/* The peer's name: the second word of the subject of an edge or a lane, as hosts report it (service/inspect/agent.c). Over the
 * front end the whole subject is the name. */
static void peer_of(enum fact_id id, const char *subject, char ret_peer[static FACT_SUBJECT_MAX])
{
    if (id == FACT_FE_PEER || id == FACT_FE_PATH) {
        snprintf(ret_peer, FACT_SUBJECT_MAX, "%s", subject);
        return;
    }
    const char *begin =
        id == FACT_EDGE || id == FACT_EDGE_FULL || id == FACT_LANE ? strchr(subject, ' ') : NULL;

    snprintf(ret_peer, FACT_SUBJECT_MAX, "%.*s", begin != NULL ? (int)strcspn(begin + 1, " ") : 0,
             begin != NULL ? begin + 1 : "");
}

void sheet_add(struct sheet *s, const struct fact *fact)
{
    char value[FACT_VALUE_MAX], subject[FACT_SUBJECT_MAX], source[FACT_VALUE_MAX],
        peer[FACT_SUBJECT_MAX];
    struct fact *f = &s->facts[s->count];
    const char *text = fact->value != NULL ? fact->value : "";

    plain_text(text, value, sizeof(value));
    plain_text(fact->subject, subject, sizeof(subject));
    plain_text(fact->source, source, sizeof(source));
    peer_of((enum fact_id)fact->id, subject, peer);
    size_t size = strlen(subject) + strlen(value) + strlen(source) + strlen(peer) + 4;
    if (fact->id >= FACT_COUNT || s->count == s->capacity || size > s->text_size - s->text_used) {
        s->left_out++;
        return;
    }
    *f = *fact;
    if (f->state == FACT_VALUE && !fact_fits(f->id, text)) {
        f->state = FACT_GARBLED;
    }
    f->subject = sheet_keep(s, subject);
    f->value = sheet_keep(s, value);
    f->source = sheet_keep(s, source);
    f->peer = peer[0] != '\0' ? sheet_keep(s, peer) : NULL;
    s->count++;
}

static int compare(const struct fact *f, enum fact_id id, const char *subject)
{
    return f->id != id ? (f->id < id ? -1 : 1) : strcmp(f->subject, subject);
}

static int compare_facts(const void *a, const void *b)
{
    const struct fact *x = a, *y = b;
    const int order = compare(x, y->id, y->subject);

    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

void sheet_finish(struct sheet *s)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        s->facts[i].order = i;
    }
    qsort(s->facts, s->count, sizeof(*s->facts), compare_facts);
    for (uint32_t i = 0; i < s->count; i++) {
        if (kept == 0 || compare(&s->facts[kept - 1], s->facts[i].id, s->facts[i].subject) != 0) {
            s->facts[kept++] = s->facts[i];
        }
    }
    s->count = kept;
    memset(s->first, 0, sizeof(s->first));
    for (uint32_t i = 0; i < kept; i++) {
        s->first[s->facts[i].id + 1] = i + 1;
    }
    for (uint32_t id = 0; id < FACT_COUNT; id++) {
        s->first[id + 1] = s->first[id + 1] > 0 ? s->first[id + 1] : s->first[id];
    }
}

const struct fact *sheet_find(const struct sheet *s, enum fact_id id, const char *subject)
{
    uint32_t low = s->first[id], high = s->first[id + 1];

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = strcmp(s->facts[middle].subject, subject);
        if (order == 0) {
            return &s->facts[middle];
        }
        *(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
    }
    return NULL;
}

const struct fact *sheet_first(const struct sheet *s, enum fact_id id, uint32_t *ret_count)
{
    *ret_count = s->first[id + 1] - s->first[id];
    return *ret_count > 0 ? &s->facts[s->first[id]] : NULL;
}

/* part.c: see part.h. */
#include "core/audit/part.h"

#include <string.h>

enum { LINE_MAX_ = 2 * FACT_VALUE_MAX + FACT_SUBJECT_MAX + 128, FIELDS = 5 };

const char *sheet_part_name(unsigned part)
{
    return part == PART_OWN ? "own" : part == PART_NOW ? "now" : fact_section_name(part);
}

unsigned sheet_part_by_name(const char *name)
{
    unsigned part = 0;

    while (part < PART_COUNT && strcmp(sheet_part_name(part), name) != 0) {
        part++;
    }
    return part;
}

unsigned sheet_part_of(enum fact_id id)
{
    const enum fact_keep keep = fact_keep(id);

    return keep == KEEP_OWN ? PART_OWN : keep == KEEP_NOW ? PART_NOW : fact_section(id);
}

static void put(char *to, size_t size, size_t *used, const char *text, char end)
{
    for (; *text != '\0'; text++, ++*used) {
        if (*used < size) {
            to[*used] = *text;
        }
    }
    if (*used < size) {
        to[*used] = end;
    }
    ++*used;
}

size_t sheet_part_encode(const struct sheet *s, unsigned part, char *to, size_t size)
{
    size_t used = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        const struct fact *f = &s->facts[i];
        if (sheet_part_of(f->id) == part) {
            put(to, size, &used, fact_name(f->id), '\t');
            put(to, size, &used, fact_state_name(f->state), '\t');
            put(to, size, &used, f->subject, '\t');
            put(to, size, &used, f->value, '\t');
            put(to, size, &used, f->source, '\n');
        }
    }
    return used;
}

/* line: one line, 0-terminated; its tabs become ends of strings. kept: the controller has written it. */
static void take_line(struct sheet *s, char *line, bool kept)
{
    char *fields[FIELDS] = {line};
    int count = 1;

    for (char *at = line; *at != '\0'; at++) {
        if (*at == '\t') {
            *at = '\0';
            if (count == FIELDS) {
                return;
            }
            fields[count++] = at + 1;
        }
    }
    if (count < FIELDS) {
        return;
    }
    const struct fact f = {.id = (uint16_t)fact_by_name(fields[0]),
                           .state = (uint8_t)fact_state_by_name(fields[1]),
                           .subject = fields[2],
                           .value = fields[3],
                           .source = fields[4]};
    if (f.id < FACT_COUNT && f.state < FACT_STATE_COUNT &&
        (kept || !fact_is_of_controller((enum fact_id)f.id))) {
        sheet_add(s, &f);
    }
}

static void decode(struct sheet *s, const char *text, size_t size, bool kept)
{
    char line[LINE_MAX_];

    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t length = end != NULL ? (size_t)(end - text) - at : size - at;
        if (length < sizeof(line) && memchr(text + at, '\0', length) == NULL) {
            memcpy(line, text + at, length);
            line[length] = '\0';
            take_line(s, line, kept);
        }
        at += length + 1;
    }
}

void sheet_part_decode(struct sheet *s, const char *text, size_t size)
{
    decode(s, text, size, false);
}

void sheet_part_restore(struct sheet *s, const char *text, size_t size)
{
    decode(s, text, size, true);
}

uint32_t sheet_part_facts(const char *text, size_t size)
{
    uint32_t count = 1;

    for (size_t i = 0; i < size; i++) {
        count += text[i] == '\n';
    }
    return count;
}

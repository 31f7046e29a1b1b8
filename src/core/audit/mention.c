/* mention.c: see mention.h. */
#include "core/audit/mention.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"

static const enum fact_id asked[] = {FACT_NET_SWITCH, FACT_NET_ADDRESS};

static const char *text_of(const struct fact *f)
{
    return f->id == FACT_NET_SWITCH ? f->value : f->subject;
}

uint32_t audit_mention_room(const struct audit *a)
{
    uint32_t all = 0, count;

    for (uint32_t i = 0; i < a->sheet_count; i++) {
        for (size_t k = 0; k < ARRAY_COUNT(asked); k++) {
            (void)sheet_first(&a->sheets[i], asked[k], &count);
            all += count;
        }
    }
    return all;
}

static int by_text(const void *x, const void *y)
{
    const struct audit_mention *a = x, *b = y;
    const int order = a->fact->id != b->fact->id ? (a->fact->id < b->fact->id ? -1 : 1)
                                                 : strcmp(text_of(a->fact), text_of(b->fact));

    return order != 0            ? order
           : a->sheet < b->sheet ? -1
           : a->sheet > b->sheet ? 1
                                 : strcmp(a->fact->subject, b->fact->subject);
}

void audit_mentions_find(struct audit *a)
{
    a->mention_count = 0;
    for (uint32_t i = 0; i < a->sheet_count; i++) {
        for (size_t k = 0; k < ARRAY_COUNT(asked); k++) {
            uint32_t count;
            const struct fact *f = sheet_first(&a->sheets[i], asked[k], &count);
            for (uint32_t n = 0; n < count; n++) {
                if (a->mention_count == a->mention_capacity) {
                    a->full = true;
                    return;
                }
                a->mentions[a->mention_count++] = (struct audit_mention){.fact = &f[n], .sheet = i};
            }
        }
    }
    if (a->mention_count == 0) { /* there may be no array */
        return;
    }
    qsort(a->mentions, a->mention_count, sizeof(*a->mentions), by_text);
}

/* The first mention that isn't before (id, text); `beyond`: nor equal to it. */
static uint32_t place(const struct audit *a, enum fact_id id, const char *text, bool beyond)
{
    uint32_t low = 0, high = a->mention_count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct fact *f = a->mentions[middle].fact;
        const int order = f->id != id ? (f->id < id ? -1 : 1) : strcmp(text_of(f), text);
        if (order < 0 || (order == 0 && beyond)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const struct audit_mention *audit_mentions_of(const struct audit *a, enum fact_id id,
                                              const char *text, uint32_t *ret_count)
{
    const uint32_t from = place(a, id, text, false);

    *ret_count = place(a, id, text, true) - from;
    return *ret_count > 0 ? &a->mentions[from] : NULL;
}

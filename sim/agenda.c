/* agenda.c: a 4-ary heap: it touches fewer cache lines than a binary heap. */
#include "sim/agenda.h"

#include <stdlib.h>

static bool before(const struct agenda_item *a, const struct agenda_item *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void agenda_init(struct agenda *a)
{
    *a = (struct agenda){0};
}

void agenda_done(struct agenda *a)
{
    free(a->items);
    *a = (struct agenda){0};
}

static void grow(struct agenda *a)
{
    const size_t capacity = a->capacity == 0 ? 1024 : 2 * a->capacity;
    struct agenda_item *items = realloc(a->items, capacity * sizeof(*items));
    ASSERT(items != NULL);
    a->items = items;
    a->capacity = capacity;
}

void agenda_add(struct agenda *a, int64_t at, uint32_t kind, uint32_t subject)
{
    const struct agenda_item item = {
        .at = at, .order = a->order++, .kind = kind, .subject = subject};
    size_t i = a->count;

    if (a->count == a->capacity) {
        grow(a);
    }
    a->count++;
    while (i > 0) {
        const size_t parent = (i - 1) / 4;
        if (!before(&item, &a->items[parent])) {
            break;
        }
        a->items[i] = a->items[parent];
        i = parent;
    }
    a->items[i] = item;
}

static size_t least_child(const struct agenda *a, size_t parent)
{
    const size_t first = 4 * parent + 1;
    size_t best = first;

    for (size_t i = first + 1; i < first + 4 && i < a->count; i++) {
        if (before(&a->items[i], &a->items[best])) {
            best = i;
        }
    }
    return best;
}

bool agenda_next(struct agenda *a, struct agenda_item *ret_item)
{
    size_t i = 0;

    if (a->count == 0) {
        return false;
    }
    *ret_item = a->items[0];
    const struct agenda_item last = a->items[--a->count];
    while (4 * i + 1 < a->count) {
        const size_t child = least_child(a, i);
        if (!before(&a->items[child], &last)) {
            break;
        }
        a->items[i] = a->items[child];
        i = child;
    }
    a->items[i] = last;
    return true;
}

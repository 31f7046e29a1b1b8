/* diff.c: see diff.h. */
#include "core/audit/diff.h"

#include <string.h>

#include "core/audit/check.h"
#include "core/audit/part.h"

/* True if the fact lists subjects, or is of the host. Other facts of a device come and go with the device. */
static bool stands_alone(const struct fact *f)
{
    if (f->subject[0] == '\0') {
        return true;
    }
    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        if (check_at(i)->each == f->id) {
            return true;
        }
    }
    return f->id == FACT_OS_MODULE || f->id == FACT_OS_SERVICE || f->id == FACT_JOB_SETTING;
}

static int order(const struct fact *a, const struct fact *b)
{
    return a->id != b->id ? (a->id < b->id ? -1 : 1) : strcmp(a->subject, b->subject);
}

/* A value is known, and so is an absence that was read. */
static bool known(const struct fact *f)
{
    return f->state == FACT_VALUE || f->state == FACT_ABSENT;
}

/* The fact that lists them was not read: subjects that are missing may exist. */
static bool unread(const struct sheet *s, uint16_t id)
{
    const struct fact *list = sheet_find(s, (enum fact_id)id, "");

    return list != NULL && !known(list);
}

static const char *value(const struct fact *f)
{
    return f->state == FACT_VALUE ? f->value : "";
}

static bool take(struct sheet_diff *d, struct fact_change *c)
{
    const struct fact *was = d->at_was < d->was->count ? &d->was->facts[d->at_was] : NULL,
                      *is = d->at_is < d->is->count ? &d->is->facts[d->at_is] : NULL;
    const int which = was == NULL ? 1 : is == NULL ? -1 : order(was, is);

    *c = (struct fact_change){which <= 0 ? was : NULL, which >= 0 ? is : NULL};
    d->at_was += which <= 0;
    d->at_is += which >= 0;
    return c->was != NULL || c->is != NULL;
}

bool sheet_diff_next(struct sheet_diff *d, struct fact_change *ret)
{
    while (take(d, ret)) {
        const struct fact *was = ret->was, *is = ret->is, *any = was != NULL ? was : is;
        if (sheet_part_of(any->id) == PART_NOW) {
            continue;
        }
        if (was != NULL && is != NULL) {
            if (known(was) && known(is) && strcmp(value(was), value(is)) != 0) {
                return true;
            }
        } else if (any->state == FACT_VALUE && stands_alone(any) && d->was->left_out == 0 &&
                   d->is->left_out == 0 && !unread(was == NULL ? d->was : d->is, any->id)) {
            return true;
        }
    }
    return false;
}

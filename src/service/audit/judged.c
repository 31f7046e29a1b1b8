/* judged.c: see judged.h. */
#include "service/audit/judged.h"

#include <errno.h>
#include <stdlib.h>

enum { TEXT_A_HOST = 64 << 10, TEXT_MORE_MAX = 256 };

void judged_done(struct audit *a)
{
    free(a->results);
    free(a->items);
    free(a->kinds);
    free(a->mentions);
    free(a->text);
    *a = (struct audit){0};
}

int judged(struct audit *a, const struct sheet *sheets, uint32_t count,
           const struct audit_settings *settings)
{
    int r = -ENOSPC;

    /* only the size of texts is not known in advance */
    for (size_t more = 1; more <= TEXT_MORE_MAX && r == -ENOSPC; more *= 2) {
        *a = (struct audit){.sheets = sheets, .sheet_count = count, .settings = settings};
        audit_room(a);
        a->text_size = (count + 1) * TEXT_A_HOST * more;
        a->results = malloc(a->capacity * sizeof(*a->results));
        a->items = malloc(a->item_capacity * audit_item_size());
        a->kinds = calloc(count + 1, sizeof(*a->kinds));
        a->mentions = calloc((size_t)a->mention_capacity + 1, sizeof(*a->mentions));
        a->text = malloc(a->text_size);
        r = a->results == NULL || a->items == NULL || a->kinds == NULL || a->mentions == NULL ||
                    a->text == NULL
                ? -ENOMEM
                : audit_judge(a);
        if (r < 0) {
            judged_done(a);
        }
    }
    return r == -ENOSPC ? -ENOMEM : r;
}

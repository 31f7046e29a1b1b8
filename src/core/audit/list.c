/* list.c: the items of "a, b", one after the other. */
#include "core/audit/list.h"

#include <string.h>

bool list_next(const char **rest, const char **ret_item, size_t *ret_size)
{
    const char *item = *rest + strspn(*rest, ", ");
    size_t size = strcspn(item, ",");

    *rest = item + size;
    while (size > 0 && item[size - 1] == ' ') {
        size--;
    }
    *ret_item = item;
    *ret_size = size;
    return size > 0;
}

bool list_has(const char *list, const char *word, size_t size)
{
    const char *item;
    size_t its;

    while (list_next(&list, &item, &its)) {
        if (its == size && memcmp(item, word, size) == 0) {
            return true;
        }
    }
    return false;
}

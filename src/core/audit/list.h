/* list.h: values of facts that are lists: "a, b". An item has no comma and neither begins nor ends with a blank; blanks around it
 * and items without a letter are nothing. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* The next item of *rest, which is moved behind it; the item ends after *ret_size, not with a 0. False: there is no more. */
bool list_next(const char **rest, const char **ret_item, size_t *ret_size);
/* Is `word`, of that size, an item of it? */
bool list_has(const char *list, const char *word, size_t size);

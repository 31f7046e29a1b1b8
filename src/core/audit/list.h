/* list.h: values of facts that are lists: "a, b". An item has no comma, and no blank at its beginning or end. Blanks around it
 * are skipped, and so are items without a letter. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* The next item of *rest; *rest is moved behind it. The item has *ret_size bytes and no 0 at its end. False: there are no
 * more. */
bool list_next(const char **rest, const char **ret_item, size_t *ret_size);
/* Is `word`, of that size, an item of the list? */
bool list_has(const char *list, const char *word, size_t size);

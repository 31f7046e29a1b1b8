/* alike.h: only for the store: bodies that are much alike, such as the same facts of many hosts.
 *
 * A body that differs from others of its kind in some numbers is packed beside one of them, its base, and takes a tenth of the
 * room. A base is a row of its own, so any body can be read with two rows. Bodies that have nothing in common with a base are
 * packed alone. Bases are found by trying: the one used last comes first. There are at most sixteen of a kind and run that are
 * not retired. Of those of run 0 that one host alone uses the newest seven stay. The others are retired: they stay for the bodies
 * beside them, and no further body is packed beside them. */
#pragma once
#include "platform/store/sql.h"

/* Whose body it is. Only bodies of one kind and run share a base. run 0: of no run. */
struct alike_of {
    const char *kind; /* 1 to 15 characters */
    int64_t run, host;
};

/* Packs a body into s->alike.packed. *ret_base: the row in `alike` that it needs, 0: none. May store a base. */
MUST_CHECK int alike_pack(struct store *s, const struct alike_of *of, const void *bytes,
                          size_t size, int64_t *ret_base);
/* -EUCLEAN: the body or its base is damaged, or the body is larger than `limit`. */
MUST_CHECK int alike_unpack(struct store *s, int64_t base, const void *bytes, size_t size,
                            size_t limit, struct message_buffer *ret);
/* Forgets the bases that are in memory: after a rollback, and after rows of `alike` are deleted. */
void alike_forget(struct store *s);
void alike_done(struct store *s);

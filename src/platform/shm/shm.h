/* shm.h: a page file that one process writes and everybody maps read-only.
 *
 * Created under a temporary name with its final content's size, mode and owner, then renamed into
 * place: a reader finds either no file or a whole one. A new agent makes a new file; readers of the
 * old one see that it isn't written any more, and open anew. Layouts and the sequence lock are
 * wire/'s. */
#pragma once
#include "base/bug.h"

#include <stddef.h>
#include <sys/types.h>

struct shm_page {
    void *memory; /* zeroed when created */
    size_t size;
    char path[256];
    char temporary[264];
};

/* Makes the file of `size` bytes, mode `mode`, mapped shared. It gets its name with shm_publish,
 * after the writer filled in the header. */
MUST_CHECK int shm_create(struct shm_page *ret_page, const char *path, size_t size, mode_t mode);
MUST_CHECK int shm_publish(struct shm_page *page);
/* Maps an existing file of at least `size` bytes for writing in place: for a page whose readers never open
 * anew. -ENOENT, -EPROTO: smaller. */
MUST_CHECK int shm_open_write(struct shm_page *ret_page, const char *path, size_t size);
/* Maps an existing file read-only; -EPROTO: smaller than size_min. */
MUST_CHECK int shm_open_read(struct shm_page *ret_page, const char *path, size_t size_min);
/* Unmaps; a page never published leaves no file. Accepts a zeroed struct. */
void shm_close(struct shm_page *page);

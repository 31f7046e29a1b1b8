/* shm.h: a page file with one writing process. All other processes map it read-only.
 *
 * It is created under a temporary name with its final size, mode and owner, then renamed. So a reader finds either no file or
 * a complete one. A new agent makes a new file. Readers of the old file see that it is no longer written, and open the new
 * one. wire/ has the layouts and the sequence lock. */
#pragma once
#include "base/bug.h"

#include <stddef.h>
#include <sys/types.h>

struct shm_page {
    void *memory; /* zero after creation */
    size_t size;
    char path[256];
    char temporary[264];
};

/* Makes a file of `size` bytes with mode `mode`, mapped shared. shm_publish gives it its name, after the writer has filled the
 * header. */
MUST_CHECK int shm_create(struct shm_page *ret_page, const char *path, size_t size, mode_t mode);
MUST_CHECK int shm_publish(struct shm_page *page);
/* Maps an existing file of at least `size` bytes for writing in place: for a page whose readers never open it again. -ENOENT;
 * -EPROTO: smaller. */
MUST_CHECK int shm_open_write(struct shm_page *ret_page, const char *path, size_t size);
/* Maps an existing file read-only. -EPROTO: smaller than size_min. */
MUST_CHECK int shm_open_read(struct shm_page *ret_page, const char *path, size_t size_min);
/* Unmaps. A page that was not published leaves no file. Accepts a zeroed struct. */
void shm_close(struct shm_page *page);

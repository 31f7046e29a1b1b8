/* answers.h: answers of a vendor's library, as lines "GPU KEY VALUE" (nvml.h describes them). Only for platform/gpu. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct reading {
    void *library;
    void *gpu;
    char name[16]; /* the GPU's name; "-": the host */
    char *text;
    size_t used, size;
    bool full;
};

/* False: the library has no such function. */
bool answers_find(struct reading *r, const char *function, void *ret_function);
__attribute__((format(printf, 3, 4))) void answers_line(struct reading *r, const char *key,
                                                        const char *format, ...);
/* Writes an errno in place of a value. */
void answers_error(struct reading *r, const char *key, int error);
/* Loads the library (NULL: the first existing one of `usual`), lets `read` write the lines, and ends the text. Returns its
 * length, or an error of nvml_read(). */
int answers_read(const char *library, const char *const *usual, int (*read)(struct reading *r),
                 char *ret_text, size_t size);

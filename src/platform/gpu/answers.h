/* answers.h: what a vendor's library answers, as lines "GPU KEY VALUE" (nvml.h has their form); of platform/gpu alone. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct reading {
    void *library;
    void *gpu;
    char name[16]; /* of the GPU; "-": the host */
    char *text;
    size_t used, size;
    bool full;
};

/* False: the library has no such function. */
bool answers_find(struct reading *r, const char *function, void *ret_function);
__attribute__((format(printf, 3, 4))) void answers_line(struct reading *r, const char *key,
                                                        const char *format, ...);
/* Why there is no value: an errno. */
void answers_error(struct reading *r, const char *key, int error);
/* Loads the library (NULL: the first of these that is there), has it read, and ends the text; its length, or as nvml_read(). */
int answers_read(const char *library, const char *const *usual, int (*read)(struct reading *r),
                 char *ret_text, size_t size);

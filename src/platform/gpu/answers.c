/* answers.c: see answers.h. */
#include "platform/gpu/answers.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool answers_find(struct reading *r, const char *function, void *ret_function)
{
    void *found = dlsym(r->library, function);

    memcpy(ret_function, &found, sizeof(found));
    return found != NULL;
}

void answers_line(struct reading *r, const char *key, const char *format, ...)
{
    const size_t room = r->size - r->used;
    int n = snprintf(r->text + r->used, room, "%s %s ", r->name, key);
    va_list arguments;

    if (n > 0 && (size_t)n < room) {
        va_start(arguments, format);
        const int more = vsnprintf(r->text + r->used + n, room - (size_t)n, format, arguments);
        va_end(arguments);
        n += more;
    }
    if (n < 0 || (size_t)n + 1 >= room) {
        r->full = true;
        return;
    }
    r->used += (size_t)n;
    r->text[r->used++] = '\n';
    r->text[r->used] = '\0';
}

void answers_error(struct reading *r, const char *key, int error)
{
    answers_line(r, key, "!%d", error);
}

int answers_read(const char *library, const char *const *usual, int (*read)(struct reading *r),
                 char *ret_text, size_t size)
{
    struct reading r = {.name = "-", .text = ret_text, .size = size};

    ret_text[0] = '\0';
    r.library = library != NULL ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (int i = 0; library == NULL && r.library == NULL && usual[i] != NULL; i++) {
        r.library = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (r.library == NULL) {
        return -ENOENT;
    }
    const int all = read(&r);
    dlclose(r.library);
    if (all < 0 || r.full || r.used + 5 > size) {
        return all < 0 ? all : -EMSGSIZE;
    }
    memcpy(ret_text + r.used, "end\n", 5);
    return (int)r.used + 4;
}

/* bare_glibc.c: like src/plugin/glibc.c, for bare.c: symbols to which glibc 2.34 gave a new version are taken under the old
 * one, so that the program runs with Debian 11's 2.31. There dlopen and similar functions are in libdl, so the program must
 * name it. */
#include <dlfcn.h>

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17"
#else
#error "the first version of glibc's symbols is not known here: see test/plugin/meson.build"
#endif
#define OLD(name) __asm__(".symver old_" #name "," #name "@" FIRST)

int old___libc_start_main(int (*run)(int, char **, char **), int count, char **arguments,
                          void (*begin)(void), void (*end)(void), void (*loader_end)(void),
                          void *stack);
void *old_dlopen(const char *file, int mode);
void *old_dlsym(void *handle, const char *name);
int old_dlclose(void *handle);
char *old_dlerror(void);
OLD(__libc_start_main);
OLD(dlopen);
OLD(dlsym);
OLD(dlclose);
OLD(dlerror);

int __wrap___libc_start_main(int (*run)(int, char **, char **), int count, char **arguments,
                             void (*begin)(void), void (*end)(void), void (*loader_end)(void),
                             void *stack);
void *__wrap_dlopen(const char *file, int mode);
void *__wrap_dlsym(void *handle, const char *name);
int __wrap_dlclose(void *handle);
char *__wrap_dlerror(void);

/* The program has no constructors. So it doesn't matter that older libraries leave them to `begin`. */
int __wrap___libc_start_main(int (*run)(int, char **, char **), int count, char **arguments,
                             void (*begin)(void), void (*end)(void), void (*loader_end)(void),
                             void *stack)
{
    return old___libc_start_main(run, count, arguments, begin, end, loader_end, stack);
}

void *__wrap_dlopen(const char *file, int mode)
{
    return old_dlopen(file, mode);
}

void *__wrap_dlsym(void *handle, const char *name)
{
    return old_dlsym(handle, name);
}

int __wrap_dlclose(void *handle)
{
    return old_dlclose(handle);
}

char *__wrap_dlerror(void)
{
    return old_dlerror();
}

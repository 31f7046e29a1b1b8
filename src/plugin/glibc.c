/* glibc.c: functions that newer glibc has under a new symbol version are used under the old one. So the plugin loads in images
 * with any glibc from 2.25 on (test/plugin/test_library.py checks the symbol table).
 *
 * The linker turns each call of f into one of __wrap_f (meson.build has the list). Thread functions moved from libpthread to libc
 * in 2.34; in both they have the version of their first release. So libpthread.so.0 is needed by name: since 2.34 it is an empty
 * library that each glibc has. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17"
#else
#error "the first version of glibc's symbols is not known here: see src/plugin/meson.build"
#endif
#define OLD(name) __asm__(".symver old_" #name "," #name "@" FIRST)

int old_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                       void *argument);
int old_pthread_detach(pthread_t thread);
int old_pthread_join(pthread_t thread, void **ret_value);
int old_pthread_mutex_trylock(pthread_mutex_t *mutex);
int old_pthread_once(pthread_once_t *once, void (*run)(void));
int old_pthread_sigmask(int how, const sigset_t *set, sigset_t *before);
double old_log(double x);
OLD(pthread_create);
OLD(pthread_detach);
OLD(pthread_join);
OLD(pthread_mutex_trylock);
OLD(pthread_once);
OLD(pthread_sigmask);
OLD(log);

/* From libdl before 2.34. It is weak, because the plugin doesn't need libdl by name. If no part of the process has loaded it,
 * there are no queue pairs. */
__attribute__((weak)) void *old_dlopen(const char *file, int mode);
__attribute__((weak)) void *old_dlvsym(void *handle, const char *name, const char *version);
__attribute__((weak)) int old_dlclose(void *handle);
__attribute__((weak)) char *old_dlerror(void);
OLD(dlopen);
OLD(dlvsym);
OLD(dlclose);
OLD(dlerror);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_detach(pthread_t thread);
int __wrap_pthread_join(pthread_t thread, void **ret_value);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_once(pthread_once_t *once, void (*run)(void));
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *before);
double __wrap_log(double x);
int __wrap_fstat(int fd, struct stat *ret);
int __wrap_fstat64(int fd, struct stat *ret);
int __wrap_stat(const char *path, struct stat *ret);
int __wrap_stat64(const char *path, struct stat *ret);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    return old_pthread_create(thread, attributes, run, argument);
}

int __wrap_pthread_detach(pthread_t thread)
{
    return old_pthread_detach(thread);
}

int __wrap_pthread_join(pthread_t thread, void **ret_value)
{
    return old_pthread_join(thread, ret_value);
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    return old_pthread_mutex_trylock(mutex);
}

int __wrap_pthread_once(pthread_once_t *once, void (*run)(void))
{
    return old_pthread_once(once, run);
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    return old_pthread_sigmask(how, set, before);
}

double __wrap_log(double x)
{
    return old_log(x);
}

void *__wrap_dlopen(const char *file, int mode);
void *__wrap_dlvsym(void *handle, const char *name, const char *version);
int __wrap_dlclose(void *handle);
char *__wrap_dlerror(void);

void *__wrap_dlopen(const char *file, int mode)
{
    return old_dlopen != NULL ? old_dlopen(file, mode) : NULL;
}

void *__wrap_dlvsym(void *handle, const char *name, const char *version)
{
    return old_dlvsym != NULL ? old_dlvsym(handle, name, version) : NULL;
}

int __wrap_dlclose(void *handle)
{
    return old_dlclose != NULL ? old_dlclose(handle) : 0;
}

char *__wrap_dlerror(void)
{
    static char none[] = "this process has no dlopen (libdl)";

    return old_dlerror != NULL ? old_dlerror() : none;
}

/* No libc before 2.33 has this symbol. The kernel's struct equals the library's on both machines. */
int __wrap_fstat(int fd, struct stat *ret)
{
    return (int)syscall(SYS_fstat, fd, ret);
}

int __wrap_fstat64(int fd, struct stat *ret)
{
    return __wrap_fstat(fd, ret);
}

int __wrap_stat(const char *path, struct stat *ret)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, ret, 0);
}

int __wrap_stat64(const char *path, struct stat *ret)
{
    return __wrap_stat(path, ret);
}

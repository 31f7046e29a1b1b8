/* agent_page.c: a file that the host's agent publishes in shared memory. After the agent's restart the path may name another
 * file. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/internal.h"

#define REOPEN_NS (5 * NS_PER_S)

void follow_end(struct follow *f)
{
    if (f->memory != NULL) {
        munmap((void *)(uintptr_t)f->memory, f->size);
        f->memory = NULL;
    }
}

/* Opens the path's file, if it is another one than the open one. */
static bool reopen(struct follow *f, const char *path, size_t least, size_t most)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat found;
    bool other = false;

    if (fd < 0) {
        return false; /* the agent is gone: its last values stay */
    }
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_size >= (off_t)least &&
        (f->memory == NULL || found.st_ino != f->inode)) {
        const size_t size = found.st_size < (off_t)most ? (size_t)found.st_size : most;
        void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
        other = memory != MAP_FAILED;
        if (other) {
            follow_end(f);
            *f = (struct follow){memory, size, found.st_ino, f->next};
        }
    }
    close(fd);
    return other;
}

bool follow_look(struct follow *f, struct mono now, const char *path, size_t least, size_t most)
{
    if (now.ns < f->next.ns) {
        return false;
    }
    f->next = mono_add(now, span_ns(REOPEN_NS));
    return reopen(f, path, least, most);
}

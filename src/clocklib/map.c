/* map.c: finding and mapping the clock page. Only async-signal-safe calls. */
#include "clocklib/map.h"

#include "platform/sysfs/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNTIME_DIR "/run/foliot"
#define RETRY_NS    100000000
#define PATH_SIZE   512

struct page_map page_map;

/* A container may have a time namespace, whose raw clock is the host's plus an offset. */
static void read_offsets(struct page_map *map)
{
    char text[256];
    const char *line;
    long long seconds, ns;

    if (sysfs_text(NULL, "/proc/self/timens_offsets", text, sizeof(text)) < 0) {
        return;
    }
    line = strstr(text, "monotonic");
    if (line != NULL && sscanf(line, "monotonic %lld %lld", &seconds, &ns) == 2) {
        map->mono_offset_ns = seconds * 1000000000 + ns;
    }
    line = strstr(text, "boottime");
    if (line != NULL && sscanf(line, "boottime %lld %lld", &seconds, &ns) == 2) {
        map->boot_offset_ns = seconds * 1000000000 + ns;
    }
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whether the page was written since this kernel booted; true where that can't be told. */
static bool of_this_boot(const struct clock_page *page)
{
    char text[64];
    uint8_t id[16] = {0};
    int digits = 0;

    if (sysfs_text(NULL, "/proc/sys/kernel/random/boot_id", text, sizeof(text)) < 0) {
        return true;
    }
    for (const char *p = text; *p != 0 && digits < 32; p++) {
        const int digit = hex_digit(*p);
        if (digit >= 0) {
            id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | digit);
            digits++;
        }
    }
    return memcmp(id, page->boot_id, sizeof(id)) == 0;
}

static int check(const struct clock_page_memory *memory)
{
    struct clock_page page;

    if (clock_page_read(memory, &page)) {
        return of_this_boot(&page) ? 0 : -ESTALE;
    }
    return memory->words[0] == 0 ? -EAGAIN : -EPROTO;
}

/* Looks at the new file first, and shows it to readers only if it is good. */
static int replace(struct page_map *map, int fd, const struct stat *found)
{
    void **slot = &map->slots[map->opened % PAGE_MAP_SLOTS];
    void *memory =
        mmap(*slot, CLOCK_PAGE_SIZE, PROT_READ, MAP_SHARED | (*slot ? MAP_FIXED : 0), fd, 0);

    if (memory == MAP_FAILED) {
        return -errno;
    }
    *slot = memory; /* a bad one's slot is used again */
    int r = check(memory);
    if (r == 0) {
        map->opened++;
        map->device = found->st_dev;
        map->inode = found->st_ino;
        __atomic_store_n(&map->memory, memory, __ATOMIC_RELEASE);
    }
    return r;
}

static int open_locked(struct page_map *map)
{
    const char *dir = secure_getenv("FOLIOT_RUNTIME_DIR");
    char path[PATH_SIZE];
    struct stat found;
    int r;

    if (dir == NULL || *dir == 0) {
        dir = RUNTIME_DIR;
    }
    if (strlen(dir) + sizeof("/" CLOCK_PAGE_NAME) > sizeof(path)) {
        return -ENAMETOOLONG;
    }
    snprintf(path, sizeof(path), "%s/" CLOCK_PAGE_NAME, dir);
    if (map->memory == NULL) { /* once: before any reader uses them */
        read_offsets(map);
        if (secure_getenv(OSCILLATOR_ENV) != NULL && map->oscillator.host == NULL) {
            r = oscillator_open_env(&map->oscillator);
            if (r < 0) {
                return r;
            }
        }
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    if (fstat(fd, &found) < 0) {
        r = -errno;
    } else if (!S_ISREG(found.st_mode) || found.st_size < CLOCK_PAGE_SIZE) {
        r = -EPROTO;
    } else if (map->memory != NULL && found.st_dev == map->device && found.st_ino == map->inode) {
        r = check(map->memory);
    } else {
        r = replace(map, fd, &found);
    }
    close(fd);
    return r;
}

int page_map_refresh(struct page_map *map)
{
    const int saved = errno; /* a reading is no reason to lose the caller's */
    const int32_t self = getpid();
    int32_t owner = __atomic_load_n(&map->owner, __ATOMIC_RELAXED);
    int r = -EBUSY;

    /* An owner other than us is our parent's thread as it was at fork(): it doesn't exist here. */
    if (owner != self && __atomic_compare_exchange_n(&map->owner, &owner, self, false,
                                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        r = open_locked(map);
        __atomic_store_n(&map->owner, 0, __ATOMIC_RELEASE);
    }
    errno = saved;
    return r;
}

void page_map_retry(struct page_map *map, int64_t raw_ns)
{
    int64_t tried = __atomic_load_n(&map->tried_ns, __ATOMIC_RELAXED);

    if ((tried == 0 || raw_ns - tried > RETRY_NS || raw_ns < tried) &&
        __atomic_compare_exchange_n(&map->tried_ns, &tried, raw_ns, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
        (void)page_map_refresh(map);
    }
}

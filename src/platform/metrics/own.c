/* own.c: see own.h. */
#include "platform/metrics/own.h"

#include "platform/sysfs/sysfs.h"

#include <stdio.h>
#include <unistd.h>

uint64_t own_memory_bytes(void)
{
    char text[128];
    unsigned long pages = 0;

    if (sysfs_text(NULL, "/proc/self/statm", text, sizeof(text)) < 0 ||
        sscanf(text, "%*u %lu", &pages) != 1) {
        return 0;
    }
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

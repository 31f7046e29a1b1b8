/* switch_page.h: the host-wide switch in shared memory: a ceiling for the mode of the jobs on this host.
 *
 * One file, RUNTIME_DIR/switch.page (/run/foliot/switch.page), 64 bytes. The agent writes it as the fleet's configuration,
 * `foliot config observe on` or the host's own `mode:` require. A running job obeys at its next look. It is a ceiling: a job uses
 * the lesser of its FOLIOT_MODE and this one, so a switch never makes a job do more than it was started for.
 *
 * It is written in place, and never replaced while the agent's runtime directory exists. A reader maps it once, read-only, and
 * loads one word whenever it likes (no lock, no system call). It should look at the path again now and then (some seconds): after
 * `systemctl stop` and a new start the path names another file. When the agent dies the switch keeps its position: an observe
 * that ended by a crash would be worse than none. No file, or bytes of an unknown version: SWITCH_UNSET. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define SWITCH_PAGE_NAME    "switch.page"
#define SWITCH_PAGE_MAGIC   0x3148435457534f46ULL /* "FOSWTCH1" */
#define SWITCH_PAGE_VERSION 1

/* Numbers as in proto/foliot.proto's Mode; a greater one allows more. */
enum switch_mode { SWITCH_UNSET, SWITCH_OFF, SWITCH_OBSERVE, SWITCH_FAILOVER, SWITCH_FULL };

struct switch_page {
    uint64_t magic;
    uint64_t version;
    uint64_t word; /* changes << 8 | enum switch_mode; changes: + 1 with each one */
    uint64_t reserved[5];
};
_Static_assert(sizeof(struct switch_page) == 64, "one cache line");

/* Makes a page of these 64 bytes if they aren't one already. */
void switch_page_init(struct switch_page *page);
/* True: it changed. */
bool switch_page_write(struct switch_page *page, enum switch_mode mode);
/* Safe with any bytes. */
enum switch_mode switch_page_read(const struct switch_page *page);
/* The lesser of two; UNSET is no limit. */
enum switch_mode switch_lesser(enum switch_mode a, enum switch_mode b);
const char *
switch_mode_word(enum switch_mode mode); /* "off", "observe", "failover", "full"; NULL: unset */

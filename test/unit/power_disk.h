/* power_disk.h: a disk in memory whose power can be cut, as a file layer of SQLite.
 *
 * Writes stay in a cache until a sync. At a power cut each sector of each write since then is on the disk or isn't, in any
 * mixture: writes are dropped, torn and reordered, lengths, too. A file whose creation was never synced may be missing. From that
 * moment on everything fails, until power_disk_restore(). One process has one disk, and any number of connections; threads are
 * not separated. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POWER_DISK_SECTOR 512

void power_disk_install(uint64_t seed); /* becomes SQLite's default */
void power_disk_done(void);
/* Cuts the power while the nth change of a file from now on is made (write, sync, length, delete); 0: it doesn't. */
void power_disk_cut_at(uint64_t change);
bool power_disk_is_off(void);
/* Cuts the power now, if it isn't off yet. Then all connections close, and after that: */
void power_disk_cut(void);
void power_disk_restore(void);
uint64_t power_disk_changes(void); /* since the last restore */
/* Makes the disk report "synced" without a sync: to test the test. */
void power_disk_lie(bool lies);
/* Makes the disk full after so many bytes in all; 0: never. */
void power_disk_limit(uint64_t bytes);
size_t power_disk_bytes(void);

/* power_disk.h: a disk in memory whose power can be cut, as SQLite's file layer.
 *
 * What is written lies in a cache until it is synced. When the power goes, each sector of each write
 * since then is on the disk or isn't, in any mixture: writes are dropped, torn and reordered, lengths
 * too; a file whose making was never synced may not be there at all. Everything fails from that
 * moment on, until power_disk_restore(). One process, one disk, any number of connections; threads
 * are not kept apart. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POWER_DISK_SECTOR 512

void power_disk_install(uint64_t seed); /* becomes SQLite's default */
void power_disk_done(void);
/* The power goes while the nth change of a file from now on is made (write, sync, length, delete);
 * 0: it doesn't. */
void power_disk_cut_at(uint64_t change);
bool power_disk_is_off(void);
/* Now, if it isn't off yet; then everybody closes, then: */
void power_disk_cut(void);
void power_disk_restore(void);
uint64_t power_disk_changes(void); /* since the last restore */
/* A disk that lies: says "synced" and isn't. For a test of the test. */
void power_disk_lie(bool lies);
/* A disk that is full after so many bytes in all; 0: never. */
void power_disk_limit(uint64_t bytes);
size_t power_disk_bytes(void);

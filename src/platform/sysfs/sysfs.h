/* sysfs.h: what the kernel tells in small files below /sys and /proc, read through a root that tests
 * and trees of other machines replace. A path is always the whole one ("/sys/class/net/eth0/speed"),
 * whatever the root is.
 *
 * A fact is a value, or the reason why there is none. So every function returns what the kernel
 * answered: -ENOENT is "there is no such file", -EACCES and -EPERM are "not for us", -EIO, -EINVAL
 * and others are the driver's own (a NIC that is down answers -EINVAL for its speed). Nothing is
 * cached, nothing is followed out of the root, nothing waits longer than the driver does.
 *
 * NULL as `struct sysfs *` is this machine itself. A path of NULL is -ENAMETOOLONG (sysfs_path). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSFS_NAME_SIZE 64  /* of an entry of a folder */
#define SYSFS_PATH_SIZE 512 /* of a path that is made of names */

struct sysfs {
    int fd; /* of the root */
};

/* A tree that looks like "/": `root`/sys/..., `root`/proc/.... Links in it, absolute ones too, stay
 * in it (openat2, Linux 5.6). Else what open() answered. A link in it to "!13" answers as a file that
 * the kernel refuses with error 13: a tree can stand for a machine that can't be read in parts. */
int sysfs_open(struct sysfs *ret_sysfs, const char *root);
void sysfs_close(struct sysfs *s);

/* Calls `watcher` in this process before anything is opened: with the tree, the path and open()'s flags
 * (service/inspect/capture.h). While it runs it is not called. NULL: nobody. */
typedef void sysfs_watcher(void *context, const struct sysfs *s, const char *path, int flags);
void sysfs_watch(sysfs_watcher *watcher, void *context);

/* Writes a path as printf does; `path`, or NULL where it doesn't fit. */
const char *sysfs_path(char path[static SYSFS_PATH_SIZE], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A descriptor of the file or folder; flags as open()'s. */
int sysfs_fd(const struct sysfs *s, const char *path, int flags);

/* Whether the path leads to something. */
bool sysfs_there(const struct sysfs *s, const char *path);

/* The file's text without white space at its end; its length. -EMSGSIZE: longer than `size` - 1 or
 * than 4,095. -EILSEQ: a NUL in it. */
int sysfs_text(const struct sysfs *s, const char *path, char *ret_text, size_t size);

/* A number, decimal or 0x...; what follows after white space is let pass ("100 Gb/sec (4X EDR)").
 * -EBADMSG: no number. -ERANGE: more than 63 bits. */
int sysfs_number(const struct sysfs *s, const char *path, int64_t *ret_number);

/* Names of a folder's entries but those that begin with a dot, as people sort them (eth2 before
 * eth10); how many. -E2BIG: more than `capacity`. -ENAMETOOLONG: one of SYSFS_NAME_SIZE or more. */
int sysfs_names(const struct sysfs *s, const char *path, char (*ret_names)[SYSFS_NAME_SIZE],
                int capacity);

/* Where the path leads when all links are followed, below the root; its length. */
int sysfs_real(const struct sysfs *s, const char *path, char *ret_path, size_t size);

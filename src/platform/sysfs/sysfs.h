/* sysfs.h: reads the kernel's small files below /sys and /proc, through a root. Tests, and trees of other machines, replace
 * the root. A path is always complete ("/sys/class/net/eth0/speed"), for any root.
 *
 * A fact is a value, or the reason why there is none. So every function returns the kernel's error: -ENOENT: there is no such
 * file; -EACCES and -EPERM: no permission; -EIO, -EINVAL and others come from the driver (a NIC that is down returns -EINVAL
 * for its speed). Nothing is cached. Links never lead out of the root. No call waits longer than the driver does.
 *
 * NULL as `struct sysfs *` is this machine. A path of NULL gives -ENAMETOOLONG (sysfs_path). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSFS_NAME_SIZE 64  /* of an entry of a folder */
#define SYSFS_PATH_SIZE 512 /* of a path that is composed of names */

struct sysfs {
    int fd; /* of the root */
};

/* Opens a tree that looks like "/": `root`/sys/..., `root`/proc/.... Links in it, also absolute ones, stay in it (openat2,
 * Linux 5.6). Else the error of open(). A link to "!13" behaves like a file that the kernel refuses with error 13. So a tree
 * can stand for a machine with unreadable files. */
int sysfs_open(struct sysfs *ret_sysfs, const char *root);
void sysfs_close(struct sysfs *s);

/* Calls `watcher` in this process before a file is opened, with the tree, the path and open()'s flags
 * (service/inspect/capture.h). It is not called while it runs. NULL: no watcher. */
typedef void sysfs_watcher(void *context, const struct sysfs *s, const char *path, int flags);
void sysfs_watch(sysfs_watcher *watcher, void *context);

/* Writes a path like printf. Returns `path`, or NULL if it does not fit. */
const char *sysfs_path(char path[static SYSFS_PATH_SIZE], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns a descriptor of the file or folder; flags as for open(). */
int sysfs_fd(const struct sysfs *s, const char *path, int flags);

/* True if the path exists. */
bool sysfs_there(const struct sysfs *s, const char *path);

/* Reads the file's text without white space at its end; returns its length. -EMSGSIZE: longer than `size` - 1 or than 4,095.
 * -EILSEQ: it has a NUL. */
int sysfs_text(const struct sysfs *s, const char *path, char *ret_text, size_t size);

/* Reads a number, decimal or 0x.... Text after white space is ignored ("100 Gb/sec (4X EDR)"). -EBADMSG: no number. -ERANGE:
 * more than 63 bits. */
int sysfs_number(const struct sysfs *s, const char *path, int64_t *ret_number);

/* Reads the names of a folder's entries, except those that begin with a dot, in natural order (eth2 before eth10). Returns
 * their number. -E2BIG: more than `capacity`. -ENAMETOOLONG: a name of SYSFS_NAME_SIZE or more. */
int sysfs_names(const struct sysfs *s, const char *path, char (*ret_names)[SYSFS_NAME_SIZE],
                int capacity);

/* Follows all links of the path, below the root. Returns the length of the result. */
int sysfs_real(const struct sysfs *s, const char *path, char *ret_path, size_t size);

/* place.c: finds out if a store is a copy. Two controllers that serve copies of one store give one NIC number to two hosts,
 * and their histories fork. So a store keeps the identity of its file and of its machine. A copy is another file.
 *
 * A file is identified by its inode and its time of birth. It keeps both over restarts, remounts and a move of its disk. Some
 * file systems give files other inode numbers when they are mounted: on the same machine the time of birth is enough. A
 * machine is identified by its id, unless the id lasts only for this boot or this container.
 *
 * If a whole disk is copied to a machine with the same id (a cloned virtual machine), the copy has the same file and machine.
 * It is not found here. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <syslog.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

#include "core/finding/finding.h"
#include "service/controller/controller.h"
#include "service/controller/place.h"

#define PLACE_NAME "place"
/* only for this program: the stored value does not reveal the machine's id */
#define PLACE_SALT SD_ID128_MAKE(66, 6f, 6c, 69, 6f, 74, 2d, 70, 6c, 61, 63, 65, 00, 00, 00, 01)

struct store_place {
    uint64_t inode, born_ns; /* born 0: the file system has no time of birth */
    char machine[33];        /* "-": the machine has no lasting id */
    char host[65];
    int64_t since_s; /* UTC */
};

/* True if the machine's id lasts. An id that systemd makes for one boot, or a container runtime for one container, is mounted
 * over the file, or is on a file system that is temporary. */
static bool machine_lasts(void)
{
    static const char path[] = "/etc/machine-id";
    struct statx file;
    struct statfs on;
    if (statx(AT_FDCWD, path, 0, STATX_TYPE, &file) < 0 || statfs(path, &on) < 0) {
        return false;
    }
    return (file.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0 && on.f_type != TMPFS_MAGIC &&
           on.f_type != RAMFS_MAGIC && on.f_type != OVERLAYFS_SUPER_MAGIC;
}

static int look(const char *path, struct store_place *ret)
{
    struct statx file;
    sd_id128_t id;
    if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &file) < 0) {
        return -errno;
    }
    *ret = (struct store_place){.inode = file.stx_ino, .machine = "-", .since_s = time(NULL)};
    if ((file.stx_mask & STATX_BTIME) != 0) {
        ret->born_ns = (uint64_t)file.stx_btime.tv_sec * NS_PER_S + file.stx_btime.tv_nsec;
    }
    if (machine_lasts() && sd_id128_get_machine_app_specific(PLACE_SALT, &id) == 0) {
        sd_id128_to_string(id, ret->machine);
    }
    if (gethostname(ret->host, sizeof(ret->host) - 1) < 0 || ret->host[0] == 0) {
        snprintf(ret->host, sizeof(ret->host), "-");
    }
    return 0;
}

static bool same(const struct store_place *x, const struct store_place *y)
{
    const bool known = x->machine[0] != '-' && y->machine[0] != '-';
    const bool here = known && strcmp(x->machine, y->machine) == 0;
    const bool dated = x->born_ns != 0 && y->born_ns != 0;
    if (dated && x->born_ns != y->born_ns) {
        return false;
    }
    return x->inode == y->inode ? here || !known : here && dated;
}

/* Reads the place from the store. -ENOENT: a new store, or one from before places were stored. */
static int kept(struct store *s, struct store_place *ret)
{
    char *text = NULL;
    size_t size = 0;
    int r = store_get(s, PLACE_NAME, &text, &size);
    char *line = r == 0 ? strndup(text, size) : NULL;
    *ret = (struct store_place){0};
    if (r == 0) {
        r = line != NULL && sscanf(line, "%" SCNu64 " %" SCNu64 " %32s %64s %" SCNd64, &ret->inode,
                                   &ret->born_ns, ret->machine, ret->host, &ret->since_s) == 5
                ? 0
                : -ENOENT;
    }
    free(line);
    free(text);
    return r;
}

int place_take(struct store *s, const char *path)
{
    struct store_place here;
    char text[256];
    int r = look(path, &here);
    if (r < 0) {
        return r;
    }
    const int n = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %s %s %" PRId64, here.inode,
                           here.born_ns, here.machine, here.host, here.since_s);
    r = store_put(s, PLACE_NAME, text, (size_t)n);
    return r < 0 ? r : store_commit(s);
}

int place_check(struct store *s, const char *path, bool *ret_copy)
{
    struct store_place here, there;
    char since[40];
    int r = kept(s, &there);
    *ret_copy = false;
    if (r == -ENOENT) {
        return place_take(s, path);
    }
    r = r < 0 ? r : look(path, &here);
    if (r < 0 || same(&here, &there)) {
        return r;
    }
    *ret_copy = true;
    finding_time_text(there.since_s * NS_PER_S, since, sizeof(since));
    controller_say(
        LOG_ERR,
        "%s is a copy: expected the file that host %s has had since %s UTC, found "
        "another one on host %s. Two controllers of one fleet give the same NIC number to two "
        "hosts. If that one is gone for good: foliot-controller takeover",
        path, there.host, since, here.host);
    return -ESTALE;
}

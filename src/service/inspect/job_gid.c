/* job_gid.c: the GID index that jobs use: NCCL_IB_GID_INDEX in the environment of processes that have an RDMA device open. The
 * kernel shows the environment that a process was started with. Only that variable is kept. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/inspect/job_gid.h"

#define VERBS "/sys/class/infiniband_verbs"
#define KEY   "NCCL_IB_GID_INDEX="

/* ---- device files ---- */

void gid_users_begin(struct collector *c, struct gid_users *g)
{
    char path[SYSFS_PATH_SIZE];
    struct names *nodes = names_of(c, VERBS);

    *g = (struct gid_users){
        .error = nodes->count < 0 && state_of(nodes->count) != FACT_ABSENT ? nodes->count : 0};
    for (int i = 0; i < nodes->count && g->count < GID_DEVICES_MAX; i++) {
        struct gid_device *d = &g->devices[g->count];
        if (strncmp(nodes->name[i], "uverbs", 6) != 0) { /* another file of the class */
            continue;
        }
        snprintf(d->node, sizeof(d->node), "%s", nodes->name[i]);
        const int r = collect_line(c, sysfs_path(path, VERBS "/%s/ibdev", nodes->name[i]), d->name,
                                   sizeof(d->name));
        g->error = r < 0 ? r : g->error;
        g->count += r >= 0;
    }
    free(nodes);
}

const char *open_verbs(const char *target)
{
    static const char folder[] = "/dev/infiniband/";

    return strncmp(target, folder, sizeof(folder) - 1) == 0 &&
                   strncmp(target + sizeof(folder) - 1, "uverbs", 6) == 0
               ? target + sizeof(folder) - 1
               : NULL;
}

void gid_users_file(struct gid_users *g, const char *target)
{
    const char *node = open_verbs(target);

    for (int i = 0; node != NULL && i < g->count; i++) {
        if (strcmp(g->devices[i].node, node) == 0) {
            g->devices[i].open = g->any = true;
        }
    }
}

/* ---- environments ---- */

/* True for an environment. It may hold any text and escape sequences, but not these bytes, and it has an end. */
static bool is_environment(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const uint8_t byte = (uint8_t)text[i];
        if ((byte >= 1 && byte <= 8) || byte >= 0xf8) {
            return false;
        }
    }
    return size == 0 || text[size - 1] == '\0';
}

int gid_setting(char *environment, size_t size)
{
    if (!is_environment(environment, size)) {
        return -EBADMSG;
    }

    for (size_t at = 0; at < size;) {
        const size_t n = strlen(environment + at) + 1;
        /* the first one counts, as in getenv() */
        if (strncmp(environment + at, KEY, sizeof(KEY) - 1) == 0) {
            memmove(environment, environment + at, n);
            return (int)n;
        }
        at += n;
    }
    return 0;
}

/* The index. -ENOENT: the variable is not set. -EBADMSG: it is no index, or the environment is damaged. */
static int index_of(struct collector *c, const char *path)
{
    const int size = collect_bytes(c, path);
    int64_t index;

    if (size < 0) {
        return size;
    }
    const int kept = gid_setting(c->text, (size_t)size);
    if (kept <= 0) {
        return kept < 0 ? kept : -ENOENT;
    }
    if (!fact_number(c->text + sizeof(KEY) - 1, &index) || index < -1 || index > 1023) {
        return -EBADMSG;
    }
    return index < 0 ? -ENOENT : (int)index; /* -1: NCCL chooses */
}

/* "3 of process 4711, 1 of process 4712": one for each index. */
static void note(struct gid_device *d, int index, const char *pid)
{
    char words[48];
    const size_t used = strlen(d->users);
    const int n = snprintf(words, sizeof(words), "%s%d of ", used > 0 ? ", " : "", index);

    if (strncmp(d->users, words + (used > 0 ? 2 : 0), (size_t)n - (used > 0 ? 2 : 0)) == 0 ||
        strstr(d->users, words) != NULL || used + sizeof(words) + 32 > sizeof(d->users)) {
        return;
    }
    snprintf(d->users + used, sizeof(d->users) - used, "%sprocess %.15s", words, pid);
}

void gid_users_process(struct collector *c, struct gid_users *g, const char *pid)
{
    char path[SYSFS_PATH_SIZE];

    if (!g->any) {
        return;
    }
    int index = index_of(c, sysfs_path(path, "/proc/%s/environ", pid));
    if (index == -ENOENT && !sysfs_there(c->tree, path) &&
        sysfs_there(c->tree, sysfs_path(path, "/proc/%s/stat", pid))) {
        index = -EIO; /* an environment may be missing only if the process has ended */
    }
    for (int i = 0; i < g->count; i++) {
        struct gid_device *d = &g->devices[i];
        if (d->open && index >= 0) {
            note(d, index, pid);
        } else if (d->open && index != -ENOENT && index != -ESRCH) {
            d->error = index;
        }
        d->open = false;
    }
    g->any = false;
}

/* ---- facts ---- */

static void put_device(struct collector *c, const struct gid_device *d)
{
    static const char source[] = "/proc/*/environ";
    char path[SYSFS_PATH_SIZE], port[160];
    struct names *ports = names_of(c, sysfs_path(path, "/sys/class/infiniband/%s/ports", d->name));

    for (int i = 0; i < ports->count; i++) {
        snprintf(port, sizeof(port), "%s/%s", d->name, ports->name[i]);
        if (d->error < 0) {
            put_error(c, FACT_JOB_GID, port, d->error, source);
        } else if (d->users[0] != '\0') {
            put(c, FACT_JOB_GID, port, d->users, source);
        }
    }
    free(ports);
}

void gid_users_put(struct collector *c, const struct gid_users *g)
{
    if (g->error < 0) {
        put_error(c, FACT_JOB_GID, "", g->error, VERBS);
    }
    for (int i = 0; i < g->count; i++) {
        put_device(c, &g->devices[i]);
    }
}

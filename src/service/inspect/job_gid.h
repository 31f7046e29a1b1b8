/* job_gid.h: which GID index the environment of jobs' processes names; of service/inspect alone.
 *
 * Begin; for each process: its open files, then the process itself; put. */
#pragma once
#include "service/inspect/collect.h"

enum { GID_DEVICES_MAX = 64 };

struct gid_device {
    char node[SYSFS_NAME_SIZE], name[SYSFS_NAME_SIZE]; /* uverbs0, mlx5_0 */
    bool open;                                         /* by the process that is looked at */
    int error;                                         /* why a user's environment is not known */
    char users[FACT_VALUE_MAX];
};

struct gid_users {
    int count, error; /* of the device files: -errno */
    bool any;         /* of the process that is looked at */
    struct gid_device devices[GID_DEVICES_MAX];
};

void gid_users_begin(struct collector *c, struct gid_users *g);
void gid_users_file(struct gid_users *g, const char *target);
void gid_users_process(struct collector *c, struct gid_users *g, const char *pid);
void gid_users_put(struct collector *c, const struct gid_users *g);

/* "uverbs0" of an open file's target; NULL: it is no RDMA device. */
const char *open_verbs(const char *target);
/* Of an environment the variable alone, moved to its beginning; its size with its end, 0: it is not in it. -EBADMSG: the
 * environment is damaged. */
int gid_setting(char *environment, size_t size);

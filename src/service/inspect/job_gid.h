/* job_gid.h: the GID index in the environment of jobs' processes; only service/inspect uses it.
 *
 * Call gid_users_begin(); for each process call gid_users_file() with its open files, then gid_users_process(); at the end
 * call gid_users_put(). */
#pragma once
#include "service/inspect/collect.h"

enum { GID_DEVICES_MAX = 64 };

struct gid_device {
    char node[SYSFS_NAME_SIZE], name[SYSFS_NAME_SIZE]; /* uverbs0, mlx5_0 */
    bool open;                                         /* by the current process */
    int error;                                         /* why a user's environment is not known */
    char users[FACT_VALUE_MAX];
};

struct gid_users {
    int count, error; /* of the device files: -errno */
    bool any;         /* of the current process */
    struct gid_device devices[GID_DEVICES_MAX];
};

void gid_users_begin(struct collector *c, struct gid_users *g);
void gid_users_file(struct gid_users *g, const char *target);
void gid_users_process(struct collector *c, struct gid_users *g, const char *pid);
void gid_users_put(struct collector *c, const struct gid_users *g);

/* "uverbs0" from an open file's target; NULL: the file is no RDMA device. */
const char *open_verbs(const char *target);
/* Moves the variable to the beginning of the environment. Returns its size with its end; 0: it is not set. -EBADMSG: the
 * environment is damaged. */
int gid_setting(char *environment, size_t size);

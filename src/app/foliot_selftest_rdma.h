/* foliot_selftest_rdma.h: the results of `foliot selftest rdma` for a port, and the recording of them. */
#pragma once
#include "platform/rdma/trial.h"
#include "service/inspect/scrub.h"

enum verdict { VERDICT_SAFE, VERDICT_UNSAFE, VERDICT_UNKNOWN };

struct port {
    const struct rdma_port *facts;
    const struct rdma_gid *gid; /* the GID to use; NULL: none */
    const char *step;           /* the step that failed; NULL: none */
    int error;                  /* the failed step's error, negative */
    bool opened, tried;
    struct rdma_limits limits;
    struct rdma_port_now now;
    struct rdma_trial trial;
    struct rdma_gid gids[RDMA_GID_MAX]; /* as the library reports them */
    int gid_count;                      /* negative: the library reports none */
    enum verdict verdict;
};

const char *selftest_verdict(enum verdict v);

/* What the machine's devices answered, without names that could identify the machine. Each line of a recording is a path, a tab
 * and a text. Paths below /sys hold the kernel's files (a link's text begins with "-> "). Paths below /verbs hold the library's
 * answers and the test's results. Our own libibverbs replays a recording (test/rdma/fake_record.c). */
struct selftest_record {
    bool begun;
    int error; /* why the recording could not begin: -errno */
    struct scrub scrub;
    char folder[64];
};

/* From now on, keeps the kernel's files as they are read. root: used in place of "/"; NULL: none. */
void selftest_record_begin(struct selftest_record *r, const char *root);
/* Writes the recording. -errno: the file's error. */
int selftest_record_write(struct selftest_record *r, const char *file, const struct port *ports,
                          int count);
/* Ends the recording. It may be called if no recording was begun. */
void selftest_record_end(struct selftest_record *r);

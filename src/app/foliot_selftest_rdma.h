/* foliot_selftest_rdma.h: what `foliot selftest rdma` found of a port, and its recording: for who shows it, and for who keeps
 * it. */
#pragma once
#include "platform/rdma/trial.h"
#include "service/inspect/scrub.h"

enum verdict { VERDICT_SAFE, VERDICT_UNSAFE, VERDICT_UNKNOWN };

struct port {
    const struct rdma_port *facts;
    const struct rdma_gid *gid; /* the one to use; NULL: none */
    const char *step;           /* that failed; NULL: none */
    int error;                  /* of it, negative */
    bool opened, tried;
    struct rdma_limits limits;
    struct rdma_port_now now;
    struct rdma_trial trial;
    struct rdma_gid gids[RDMA_GID_MAX]; /* as the library tells them */
    int gid_count;                      /* negative: it doesn't */
    enum verdict verdict;
};

const char *selftest_verdict(enum verdict v);

/* What the machine's devices answered, without anything that tells whose they are. A recording is lines: a path, a tab, a text.
 * Below /sys is what the kernel's files said (a link's text begins with "-> "); below /verbs is what the library said, and what
 * came of the test. Our own libibverbs replays it (test/rdma/fake_record.c). */
struct selftest_record {
    bool begun;
    int error; /* why it wasn't: -errno */
    struct scrub scrub;
    char folder[64];
};

/* From now on the kernel's files are kept as they are read. root: in place of "/"; NULL: none. */
void selftest_record_begin(struct selftest_record *r, const char *root);
/* -errno: of the file. */
int selftest_record_write(struct selftest_record *r, const char *file, const struct port *ports,
                          int count);
/* Whether it was begun or not. */
void selftest_record_end(struct selftest_record *r);

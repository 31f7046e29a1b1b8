/* rdma.h: the transport's queue pairs on Linux (io_rdma.h): libibverbs by platform/rdma, opened at run time.
 *
 * Two threads, both with all signals blocked: one makes, connects and closes queue pairs, which may block; the other waits for
 * completions that were armed and for what happens to devices. Each device by which lanes write has a third, for the calls that
 * make a queue pair silent. */
#pragma once
#include "transport/io_rdma.h"

struct paths;
struct rdma;

struct rdma_config {
    const char *library; /* NULL: "libibverbs.so.1" */
    const char
        *sysfs;  /* "/sys", or a test's copy: which interface belongs to which InfiniBand port */
    bool direct; /* lanes are to write to memory that the application registers */
    bool gpu;    /* and to that of its GPUs */
    /* InfiniBand: the partition (15 bits; 0: the best, rdma_device_pkey_index()), or else 1 + its index in each port's table. */
    uint16_t partition, pkey_nth;
    const char *release;                  /* of the kernel, a test's; NULL: this one's */
    void (*answers)(struct paths *paths); /* a test's, in place of routers */
    struct io *io;                        /* kicked when there are events; gives stamps */
};

/* -ENOENT, -ENOSYS: no library, or one that lacks a function; -ENODEV: it has no device. All with the reason in `ret_why`, for
 * people. */
MUST_CHECK int rdma_open(struct rdma **ret_rdma, const struct rdma_config *config, char *ret_why,
                         size_t size);
struct io_rdma *rdma_io(struct rdma *rdma);
/* Accepts NULL. Takes all queue pairs along; what lingers doesn't any more. Where the library doesn't return from a call, it is
 * left to itself after 2 s, with its memory; config.io is not used any more. In a child of fork() it does nothing. */
void rdma_close(struct rdma *rdma);

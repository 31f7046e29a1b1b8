/* rdma.h: the transport's queue pairs on Linux (io_rdma.h): libibverbs by platform/rdma, opened at run time.
 *
 * Two threads, both with all signals blocked. One makes, connects and closes queue pairs, which may block. The other one waits
 * for completions that were armed, and for events of devices. Each device with lanes that write has a third thread, for the calls
 * that make a queue pair silent. */
#pragma once
#include "transport/io_rdma.h"

struct paths;
struct rdma;

struct rdma_config {
    const char *library; /* NULL: "libibverbs.so.1" */
    /* "/sys", or a test's copy: it shows which interface belongs to which InfiniBand port */
    const char *sysfs;
    bool direct; /* lanes should write to memory that the application registers */
    bool gpu;    /* and to memory of its GPUs */
    /* InfiniBand: the partition (15 bits; 0: the best, rdma_device_pkey_index()), or 1 + its index in each port's table. */
    uint16_t partition, pkey_nth;
    const char *release;                  /* release of the kernel, by a test; NULL: the real one */
    void (*answers)(struct paths *paths); /* a test's function that answers as routers do */
    struct io *io;                        /* kicked when there are events; gives stamps */
};

/* -ENOENT, -ENOSYS: no library, or one that lacks a function; -ENODEV: it has no device. `ret_why` has the reason as text for
 * people. */
MUST_CHECK int rdma_open(struct rdma **ret_rdma, const struct rdma_config *config, char *ret_why,
                         size_t size);
struct io_rdma *rdma_io(struct rdma *rdma);
/* Accepts NULL. It closes all queue pairs, and lingering ones end at once. If the library doesn't return from a call, the library
 * is left alone after 2 s, with its memory; config.io is not used any more. In a child of fork() it does nothing. */
void rdma_close(struct rdma *rdma);

/* reference.h: shared by the parts of the reference plugin.
 *
 * The reference does what NCCL's own socket transport does, and no more:
 *   - Each communicator has one connection for control, and up to REFERENCE_NSOCKS_PERTHREAD x REFERENCE_NTHREADS for data.
 *   - Messages are cut evenly over the data connections in turn. No piece has less than 64 KiB.
 *   - Helper threads spin while they have work. With REFERENCE_WAIT_US they wait so long instead.
 *   - Small messages are inline in the control stream.
 * With no threads (the default, as NCCL's on an unknown NIC) everything goes over the control connection, driven by test(). An
 * error of any connection ends the communicator.
 *
 * It is the baseline of comparisons, and the test subject of the conformance host: built with -DPLANTS=1 it has one bug of
 * choice, REFERENCE_PLANT=name. */
#pragma once
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bug.h"
#include "plugin/abi_net.h"

#ifndef PLANTS
#define PLANTS 0
#endif

#define SOCKET_MAX   64
#define THREAD_MAX   16
#define GROUP_MAX    8 /* buffers of one grouped receive */
#define PIECE_MIN    65536
#define INLINE_MAX   128
#define DEVICE_MAX   16
#define CONTROL      SOCKET_MAX /* index of the control connection */
#define MAGIC        0x5245464552454e43ull
#define PLANT_PERIOD 20 /* a planted bug shows at every 20th chance */

enum plant {
    PLANT_NONE,
    PLANT_LATE_WRITE,        /* a finished message is written once more, 3 ms later */
    PLANT_LOST_MESSAGE,      /* reported as sent, but never sent */
    PLANT_SWAPPED_TAGS,      /* buffers of a group filled as they come */
    PLANT_SHORT_SIZE,        /* reports the buffer's size, not the message's */
    PLANT_DOUBLE_COMPLETION, /* a request is done, and is done again */
    PLANT_LEAKED_FD,
    PLANT_LEAKED_THREAD,
    PLANT_LEAKED_MEMORY,
    PLANT_TORN_BYTES, /* flags become visible before their data */
    PLANT_BLOCKING_ACCEPT,
    PLANT_BLOCKING_CONNECT, /* waits for the peer's accept */
    PLANT_EARLY_DONE,       /* a send is done before its buffer was read */
    PLANT_ZERO_STUCK,       /* empty messages never arrive */
    PLANT_DEAF,             /* never notices that the peer died */
    PLANT_RETRY_SENT,       /* "try again", although it was sent */
    PLANT_NO_CLOEXEC,
    PLANT_PADDED,     /* a short message clears the rest of its buffer */
    PLANT_ABORT_HANG, /* close waits for requests in flight */
    PLANT_REORDERED,  /* two messages change places */
    PLANT_BIT_FLIP,
    PLANT_CLOSE_WRITES, /* writes into a buffer after closeRecv */
    PLANT_GARBAGE_DIES, /* a stranger on the port breaks the listener */
    PLANT_COUNT,
};

struct connection;

/* A piece of a message on one connection. */
struct piece {
    struct piece *next;
    char *data;
    size_t size, moved;
    struct part *part;
};

/* One buffer of a request: a send has one, a receive one per buffer of its group. */
struct part {
    char *data;
    size_t capacity, size;
    int tag;
    bool matched;    /* receive: its header has come */
    atomic_int left; /* pieces that are not done, plus one while they are dealt out */
    struct piece pieces[SOCKET_MAX];
    char *bounce; /* of a planted bug */
};

struct request {
    struct comm *comm;
    bool used, queued;
    int parts, matched;
    size_t moved; /* of the control part of the part being worked on */
    struct part part[GROUP_MAX];
};

/* Precedes each message on the control connection. */
struct header {
    uint64_t size;
    int32_t tag;
    uint32_t magic;
};

/* The first bytes of each connection. */
struct hello {
    uint64_t magic, cookie;
    uint32_t index, sockets;
};

struct helper {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool started, stop;
    struct comm *comm;
    int first, count; /* of its connections */
};

struct comm {
    bool sends;
    int sockets, threads, fds[SOCKET_MAX + 1];
    struct hello hello[SOCKET_MAX + 1]; /* while connecting */
    size_t hello_moved[SOCKET_MAX + 1];
    int connected; /* sender: connections that sent a hello; receiver: connections whose hello came */
    uint64_t cookie;
    atomic_int error; /* enum nccl_result */
    struct request requests[NCCL_REQUEST_MAX];
    struct request *queue[NCCL_REQUEST_MAX]; /* whose control part isn't done, in order */
    int queue_count;
    struct header header;
    struct part *current; /* receive: the part whose bytes are on the control connection */
    unsigned next_socket, message_count;
    struct piece *first[SOCKET_MAX], *last[SOCKET_MAX];
    struct helper helpers[THREAD_MAX];
};

/* NCCL ships this struct. It must fit into the handle, together with the state of a connect that has begun. */
struct handle {
    struct sockaddr_in address;
    uint64_t magic, cookie;
    struct comm *connecting; /* the sender's, kept between polls */
};
_Static_assert(sizeof(struct handle) <= NCCL_HANDLE_SIZE, "state fits the handle");

struct listener {
    int fd;
    uint64_t cookie;
    struct comm *accepting;
    int pending[SOCKET_MAX + 1]; /* accepted, hello not complete */
    struct hello hello[SOCKET_MAX + 1];
    size_t moved[SOCKET_MAX + 1];
    int pending_count;
};

struct device {
    char name[32], pci_path[256];
    int speed_mbps;
    struct sockaddr_in address;
};

/* reference.c */
extern struct device devices[DEVICE_MAX];
extern int device_count;
extern enum plant plant;
void say(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline bool planted(enum plant which)
{
    return PLANTS && plant == which;
}

/* connect.c: listeners and connections; nothing here waits. */
struct listener *listener_new(const struct device *device, struct handle *handle);
void listener_free(struct listener *listener);
/* *ret_comm stays NULL until all connections are there. */
enum nccl_result connect_poll(struct handle *handle, struct comm **ret_comm);
enum nccl_result accept_poll(struct listener *listener, struct comm **ret_comm);
/* The environment's value, within limits. */
int count_of(const char *name, int fallback, int low, int high);

/* comm.c: messages over the connections of a communicator. */
struct comm *comm_new(bool sends, int sockets, int threads);
void comm_free(struct comm *comm);
/* NULL: none is free, try again. */
struct request *comm_request(struct comm *comm);
void comm_queue(struct comm *comm, struct request *request);
void comm_progress(struct comm *comm);
bool request_done(const struct request *request);

/* plant.c: bugs that need more than one line. */
void plant_late_write(void *data, size_t size);
void plant_thread(void);
void plant_copy_torn(char *to, const char *from, size_t size);

/* rdma_private.h: what the files rdma*.c share. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "core/traffic/paths.h"
#include "platform/rdma/verbs.h"
#include "transport/rdma.h"

#define DEVICE_MAX   16  /* devices whose queue pairs are used */
#define PORT_GID_MAX 16  /* usable GIDs that are kept for a port */
#define PORT_COUNT   256 /* ports of a device, from 1 on */
#define STASH        16  /* completions that arming a queue pair found */
#define TROUBLE_MAX  32
#define TROUBLE_SIZE 256
#define LINGER_NS    (2 * NS_PER_S)
#define RETIRE_NS    NS_PER_S /* a number isn't used again while old packets may exist */
#define CLOSE_MS     2000     /* so long rdma_close() waits for a provider */
#define FENCE_MS     200      /* so long fence() waits for one call of the library */

/* Its states in the worker, in this order only. */
enum qp_state {
    QP_MAKE, /* asked for */
    QP_MADE,
    QP_CONNECT, /* asked for */
    QP_READY,
    QP_FAILED, /* instead of made or connected: `error` */
};

/* A device's queue pair with itself, in use once a message to itself has come. */
struct candidate {
    struct rdma_cq *cq;
    struct rdma_qp *qp; /* NULL: there is none */
    uint32_t port;      /* the last one that was tried */
    int left;           /* completions that have yet to come */
    int64_t until_ns;
};

struct device {
    char name[RDMA_NAME_SIZE];
    uint64_t folder_number;     /* the number of its folder in sysfs when it was opened; 0: none */
    struct rdma_device *handle; /* NULL: gone, or never there */
    uint32_t ports;
    uint32_t port_events; /* events so far: one of its ports went down or up */
    /* the state of ports, by the last event, or by a reading after which no event came */
    bool down[PORT_COUNT];
    /* Queue pairs that are not destroyed, and the worker while it looks at the ports: they keep the handle. It grows only under
     * the lock. */
    atomic_uint users;
    atomic_bool gone;  /* its queue pairs are over; it is closed when nobody uses it any more */
    struct mono again; /* when it is opened again, once a second; 0: it must not be */
    struct {
        struct rdma *rdma;
        pthread_t thread;
        bool runs;                /* for the worker */
        int work;                 /* an eventfd */
        int64_t began_ns;         /* when its present call of the library began; 0: none */
        struct queue_pair *first; /* queue pairs that must be made silent, or destroyed */
    } silencer;
    struct gpu_pair {         /* a queue pair with itself, once memory of a GPU is registered */
        pthread_mutex_t lock; /* no lock is taken under it */
        bool wanted, making;
        struct rdma *rdma;
        bool broken; /* it is made anew, once a second */
        struct candidate new;
        bool proving;     /* the worker makes it, and looks at it now and then */
        int64_t again_ns; /* not before this time */
        bool stale;       /* a broken one isn't destroyed yet: its requests may still move data */
        struct rdma_cq *cq;
        struct rdma_qp *qp; /* NULL: there is none (yet) */
        struct rdma_memory *cell_memory;
        uint8_t *cell;
        /* Requests: posted, and completed in their order; those between the last two were lost with a former queue pair. */
        uint64_t posted, done, lost_after, lost_to;
        int64_t lost_ns;  /* when the last ones were lost */
        int64_t since_ns; /* its last answer; if it had nothing to do, the next request */
    } gpu;
    bool dmabuf;
};

struct queue_pair {
    struct rdma *rdma;
    struct device *device;
    uint32_t port;
    struct io_qp_config config;
    char device_name[RDMA_NAME_SIZE]; /* the name of config.device */
    struct rdma_cq *cq;
    struct rdma_qp *qp;
    struct rdma_memory *memory;
    uint8_t *cells;
    size_t cells_size;
    uint32_t key, inline_size;
    struct io_qp_end own, peer;
    struct io_qp_timeouts timeouts;
    uint8_t gid_index;
    bool infiniband, grh;
    uint8_t lmc, path_bits;
    uint16_t pkey_index;
    uint32_t mtu;                /* the port's, in bytes */
    uint32_t number, generation; /* of the slot */
    enum qp_state state;
    int error;
    bool busy;     /* the worker has it */
    bool answered; /* it was made, connected or refused, and nobody has asked since */
    bool closing, linger, silent;
    struct mono closed;
    uint32_t sends_out;     /* posted, not completed */
    bool asked, in_hand;    /* for its device's silencer: it waits; it is being made silent */
    struct rdma_qp *ending; /* fence(): must be destroyed; NULL: it is, or needn't be */
    struct queue_pair *next_asked;
    bool unsafe;      /* the device can't guarantee that no data moves any more */
    atomic_bool over; /* the device reported that it is over */
    bool armed;
    uint64_t tag;
    struct rdma_done stash[STASH];
    int stash_count, stash_at;
    struct queue_pair *next; /* in the list of those that are closing, or retired */
};

_Static_assert(IO_RDMA_DEVICES == DEVICE_MAX, "memory is registered with each");
struct memory {
    struct io_rdma_memory keys; /* must be first */
    struct rdma_memory *handles[IO_RDMA_DEVICES];
    struct io_rdma_range range; /* of a GPU's memory: we own its descriptor */
    /* Under memory_lock. */
    uint32_t asked; /* devices that took it or refused; those that came back are asked again */
    bool busy;      /* the worker asks a device for it; then it checks whether the memory is */
    bool leaving;   /* about to be removed; or */
    bool left;      /* removed: the worker frees it */
    struct memory *next, **at; /* at: the pointer to it */
};

/* A port that carries a NIC, by its device's events. */
struct nic_port {
    uint8_t ip[16];
    char name[RDMA_NAME_SIZE];
    const struct device *device;
    uint32_t port;
    bool down;
    uint32_t downs;
};

/* The known paths from one NIC to another. Under the lock; the worker asks with a copy. */
enum rdma_trace_state { RDMA_TRACE_NONE, RDMA_TRACE_DONE, RDMA_TRACE_ASKED };
struct rdma_trace {
    enum rdma_trace_state state;
    uint8_t from[16], to[16], traffic_class;
    char device[RDMA_NAME_SIZE]; /* leave by this device */
    struct paths paths;
    struct mono at; /* when it was done */
    bool failed;    /* a queue pair between them has failed since */
};

struct rdma {
    struct io_rdma table;
    struct io *io;
    char sysfs[256];
    uint16_t partition, pkey_nth; /* as in rdma_config */
    struct rdma_verbs *verbs;
    struct device devices[DEVICE_MAX];
    uint32_t device_count;
    /* Guards all below, and the states of queue pairs. Callers from above take it: no call of the library that may block is made
     * under it. io is called under it, but not once `stop` is set. */
    pthread_mutex_t lock;
    int work; /* an eventfd: there is a task for the worker */
    pthread_t worker, watcher;
    int threads; /* threads that run */
    int epoll, wake;
    uint32_t forks; /* descriptor_forks() when it was made */
    bool stop;
    atomic_bool ended;          /* the worker is about to return: everything but memory is freed */
    bool abandoned;             /* nobody waits for the worker any more: it frees the memory, too */
    struct queue_pair *retired; /* only for the worker */
    uint32_t pair_count;        /* pairs that aren't destroyed */
    struct queue_pair *slots[PROCESS_QUEUE_PAIRS_MAX];
    uint32_t generations[PROCESS_QUEUE_PAIRS_MAX];
    struct queue_pair *closing;
    pthread_mutex_t memory_lock; /* for the list; taken before `lock` */
    struct memory *memories;
    atomic_bool memory_due; /* some device wasn't asked for some range */
    /* until then no range is registered while offers of queue pairs are open; 0: from the first of them on */
    struct mono memory_hold;
    struct rdma_trace traces[PATH_PAIRS_MAX];
    void (*answers)(struct paths *paths); /* as in rdma_config */
    struct mono traced;                   /* from then on one may be asked for each second */
    struct nic_port ports[HOST_NIC_MAX];
    uint32_t port_count;
    struct io_event events[PROCESS_QUEUE_PAIRS_MAX + 1]; /* one more for links */
    uint32_t event_count;
    pthread_mutex_t trouble_lock; /* no lock is taken under it */
    /* each is kept for good, so that it isn't reported twice */
    char troubles[TROUBLE_MAX][TROUBLE_SIZE];
    uint32_t trouble_count, trouble_told;
};

/* ---- rdma_device.c ---- */
int rdma_devices_open(struct rdma *r, char *ret_why, size_t size);
void rdma_devices_close(struct rdma *r);
/* Finds the port that carries that address: the device (which the queue pair uses from now on), port, own end, and path to it.
 * For the worker, under the lock, which it releases meanwhile. -ENODEV. */
MUST_CHECK int rdma_port_find(struct rdma *r, struct queue_pair *q);
/* The device is gone, and so is everything made on it: the kernel destroys that before it removes the device's folder. From then
 * on calls of the library fail with EIO. */
bool rdma_device_removed(const struct rdma *r, const struct device *d);
/* Closes devices that are gone, opens those that are back. Under the lock, which it releases meanwhile. */
void rdma_devices_look(struct rdma *r);
void rdma_trouble_add(struct rdma *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- rdma_memory.c ---- */
/* For the worker: registers one range with one device that wasn't there when the range was added. Under the lock, which it
 * releases meanwhile. False: there is none, or it must wait: */
bool rdma_memory_look(struct rdma *r);
/* For the worker, under the lock: it waits for so long, or until no offer of a queue pair is open; 0: not at all, -1: none is
 * due. */
int rdma_memory_wait_ms(struct rdma *r);
/* It can't be found any more, and no device has it. */
void rdma_memory_done(struct memory *m);
/* The keys on that device die with it. Under memory_lock, or when no other thread runs. */
void rdma_memory_forget(struct rdma *r, uint32_t device);
/* For the table. */
int rdma_memory_new(struct io_rdma *rdma, const struct io_rdma_range *range,
                    struct io_rdma_memory **ret_memory);
void rdma_memory_free(struct io_rdma *rdma, struct io_rdma_memory *memory);

/* ---- rdma_event.c ---- */
/* The tag of a device's descriptors in epoll: its number, and whether armed completions or other events come. */
#define RDMA_COMPLETIONS 0x100u
void *rdma_watch(void *rdma);
/* Under the lock: an armed queue pair has something; adds the event for events(). */
void rdma_tell(struct queue_pair *q);
/* Its port carries its NIC, and was up when it was read. events: the device's port_events before the reading: later events count
 * more. Under the lock. */
void rdma_port_seen(struct rdma *r, const struct queue_pair *q, uint32_t events);
/* For the table. */
int rdma_carrier(struct io_rdma *rdma, const struct io_address *nic, const char *device,
                 uint32_t *ret_downs);

/* ---- rdma_gpu.c ---- */
/* Makes its queue pair with itself, if possible. Blocks. */
void rdma_gpu_start(struct rdma *r, struct device *d);
/* It isn't used any more, or another device of that name is about to be. */
void rdma_gpu_stop(const struct rdma *r, struct device *d);
/* For the worker: makes broken ones anew. Under the lock, which it releases meanwhile. True: something is broken. */
bool rdma_gpu_look(struct rdma *r);
/* Before a range's keys are removed: a request to it that is under way would break the pair. */
void rdma_gpu_drain(struct device *d);
/* For the table. */
int rdma_gpu_copy(struct io_rdma *rdma, struct io_rdma_memory *memory, void *gpu, void *own,
                  size_t size, bool to_gpu, uint32_t *ret_device);
int rdma_gpu_read(struct io_rdma *rdma, uint32_t device, struct io_rdma_memory *memory,
                  const void *at, uint64_t *ret_ticket);
int rdma_gpu_done(struct io_rdma *rdma, uint32_t device, uint64_t ticket);
void rdma_gpu_settle(struct io_rdma *rdma, uint32_t device);

/* ---- rdma_silence.c ---- */
int64_t rdma_clock_ns(void); /* the kernel's clock: waiting for a thread takes real time */
/* For the worker. */
MUST_CHECK int rdma_silencer_start(struct rdma *r, struct device *d);
/* For the worker, once `stop` is set. */
void rdma_silencers_end(struct rdma *r);
/* Its silencer must silence it, or destroy `ending`. Under the lock. */
void rdma_silence_ask(struct queue_pair *q);
/* It isn't busy any more. Under the lock. */
void rdma_silencer_look(const struct queue_pair *q);
/* Waits until `ending` is destroyed. False: a call of the library takes too long. */
bool rdma_silence_await(struct queue_pair *q);

/* ---- rdma_trace.c ---- */
/* For the worker: one trace. Under the lock, which it releases meanwhile. False: none is asked for. */
bool rdma_trace_look(struct rdma *r);
/* Asks the routers. */
void rdma_trace_run(struct rdma_trace *t);
/* A queue pair failed: its path may have changed. Under the lock. */
void rdma_trace_doubt(struct rdma *r, const struct queue_pair *q);
/* For the table. */
int rdma_choose(struct io_rdma *rdma, int qp, const struct io_address *peer,
                const struct io_qp_others *others, uint32_t *ret_path);

/* ---- rdma.c ---- */
void rdma_wake(struct rdma *r);                                /* wakes the worker */
MUST_CHECK int rdma_post(struct queue_pair *q, uint32_t cell); /* posts a receive */

/* ---- rdma_work.c ---- */
/* Only the worker has it from now on, or as soon as no other thread uses it. Under the lock. */
void rdma_retire(struct queue_pair *q);
void *rdma_work(void *rdma);
/* Frees memory and everything that isn't the library's, when no other thread runs. */
void rdma_free(struct rdma *r);
/* Ends all queue pairs and devices, without the lock: no other thread runs any more. */
void rdma_end(struct rdma *r);

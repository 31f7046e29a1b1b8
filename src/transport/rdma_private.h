/* rdma_private.h: what the files rdma*.c share. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "core/traffic/paths.h"
#include "platform/rdma/verbs.h"
#include "transport/rdma.h"

#define DEVICE_MAX   16  /* whose queue pairs are used */
#define PORT_GID_MAX 16  /* that are usable, kept of a port */
#define PORT_COUNT   256 /* that a device may have, from 1 on */
#define STASH        16  /* completions seen when a queue pair was armed */
#define TROUBLE_MAX  32
#define TROUBLE_SIZE 256
#define LINGER_NS    (2 * NS_PER_S)
#define RETIRE_NS    NS_PER_S /* its number isn't given again while its packets live */
#define CLOSE_MS     2000     /* that rdma_close() waits for a provider */
#define FENCE_MS     200      /* that fence() waits for one call of the library's */

/* Its life in the worker; only forward. */
enum qp_state {
    QP_MAKE, /* asked for */
    QP_MADE,
    QP_CONNECT, /* asked for */
    QP_READY,
    QP_FAILED, /* made or connected: `error` */
};

/* A queue pair of a device with itself that is used once a message to itself has come. */
struct candidate {
    struct rdma_cq *cq;
    struct rdma_qp *qp; /* NULL: there is none */
    uint32_t port;      /* the last that was tried */
    int left;           /* completions that are to come */
    int64_t until_ns;
};

struct device {
    char name[RDMA_NAME_SIZE];
    uint64_t folder_number;     /* its folder's among the kernel's files, when opened; 0: none */
    struct rdma_device *handle; /* NULL: gone, or never there */
    uint32_t ports;
    uint32_t port_events; /* of its ports that went down or up, so far */
    bool down
        [PORT_COUNT]; /* ports, as the last of these told, or a reading that none has overtaken */
    /* Queue pairs that are not destroyed, and the worker while it looks at the ports: the handle stays. Grows under the lock
     * only */
    atomic_uint users;
    atomic_bool gone;  /* its queue pairs are over; it is closed when nobody uses it any more */
    struct mono again; /* it is opened again, once a second; 0: it isn't to be */
    struct {
        struct rdma *rdma;
        pthread_t thread;
        bool runs;                /* the worker's */
        int work;                 /* an eventfd */
        int64_t began_ns;         /* the library's call that it is in; 0: none */
        struct queue_pair *first; /* asked to be silent, or to be destroyed */
    } silencer;
    struct gpu_pair {         /* a queue pair with itself, once memory of a GPU is registered */
        pthread_mutex_t lock; /* nothing is locked under it */
        bool wanted, making;
        struct rdma *rdma;
        bool broken; /* it is made anew, once a second */
        struct candidate new;
        bool proving;     /* the worker makes it, and looks at it now and then */
        int64_t again_ns; /* not before */
        bool stale; /* a broken one isn't destroyed yet: what it had on its way may still move */
        struct rdma_cq *cq;
        struct rdma_qp *qp; /* NULL: there is none (yet) */
        struct rdma_memory *cell_memory;
        uint8_t *cell;
        /* Requests: posted, and completed in their order; of those in between that were lost with an earlier queue pair */
        uint64_t posted, done, lost_after, lost_to;
        int64_t lost_ns;  /* the last were lost then */
        int64_t since_ns; /* its last answer; when it had nothing to do, the next request */
    } gpu;
    bool dmabuf;
};

struct queue_pair {
    struct rdma *rdma;
    struct device *device;
    uint32_t port;
    struct io_qp_config config;
    char device_name[RDMA_NAME_SIZE]; /* of config.device */
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
    uint32_t mtu;                /* of the port, bytes */
    uint32_t number, generation; /* the slot's */
    enum qp_state state;
    int error;
    bool busy;     /* the worker has it */
    bool answered; /* it was made, connected or refused, and nobody asked since */
    bool closing, linger, silent;
    struct mono closed;
    uint32_t sends_out;     /* posted, not completed */
    bool asked, in_hand;    /* of its device's silencer: it waits; it is being made silent */
    struct rdma_qp *ending; /* fence(): to be destroyed; NULL: it is, or needn't be */
    struct queue_pair *next_asked;
    bool unsafe;      /* the device doesn't swear that nothing moves any more */
    atomic_bool over; /* the device told so */
    bool armed;
    uint64_t tag;
    struct rdma_done stash[STASH];
    int stash_count, stash_at;
    struct queue_pair *next; /* of those that are closing, or retired */
};

_Static_assert(IO_RDMA_DEVICES == DEVICE_MAX, "memory is registered with each");
struct memory {
    struct io_rdma_memory keys; /* must be first */
    struct rdma_memory *handles[IO_RDMA_DEVICES];
    struct io_rdma_range range; /* a GPU's: its descriptor is ours */
    /* Under memory_lock */
    uint32_t asked; /* devices that took it or refused; those that are back are asked again */
    bool busy;      /* the worker asks one; it sees afterwards that the memory is */
    bool leaving;   /* not to be known any more; or */
    bool left;      /* given back: the worker frees it */
    struct memory *next, **at; /* at: what points to it */
};

/* A port that carries a NIC, as its device's events tell. */
struct nic_port {
    uint8_t ip[16];
    char name[RDMA_NAME_SIZE];
    const struct device *device;
    uint32_t port;
    bool down;
    uint32_t downs;
};

/* What is known of the paths from one NIC to another. Under the lock; the worker asks with a copy. */
enum rdma_trace_state { RDMA_TRACE_NONE, RDMA_TRACE_DONE, RDMA_TRACE_ASKED };
struct rdma_trace {
    enum rdma_trace_state state;
    uint8_t from[16], to[16], traffic_class;
    char device[RDMA_NAME_SIZE]; /* leave by it */
    struct paths paths;
    struct mono at; /* done */
    bool failed;    /* a queue pair between them has failed since */
};

struct rdma {
    struct io_rdma table;
    struct io *io;
    char sysfs[256];
    uint16_t partition, pkey_nth; /* rdma_config's */
    struct rdma_verbs *verbs;
    struct device devices[DEVICE_MAX];
    uint32_t device_count;
    /* All below, and states of queue pairs. Whoever calls from above takes it: nothing of the library that may wait is called
     * under it. io is called under it, and not once `stop` is set. */
    pthread_mutex_t lock;
    int work; /* an eventfd: there is something for the worker */
    pthread_t worker, watcher;
    int threads; /* that run */
    int epoll, wake;
    uint32_t forks; /* descriptor_forks() where it was made */
    bool stop;
    atomic_bool ended;          /* the worker is about to return: all but memory is given back */
    bool abandoned;             /* nobody waits for it any more: it frees the memory, too */
    struct queue_pair *retired; /* the worker's alone */
    uint32_t pair_count;        /* that aren't destroyed */
    struct queue_pair *slots[PROCESS_QUEUE_PAIRS_MAX];
    uint32_t generations[PROCESS_QUEUE_PAIRS_MAX];
    struct queue_pair *closing;
    pthread_mutex_t memory_lock; /* before `lock`: of the list */
    struct memory *memories;
    atomic_bool memory_due; /* some device wasn't asked for some of it */
    struct mono
        memory_hold; /* until then it isn't while offers of queue pairs are open; 0: from the first of them on */
    struct rdma_trace traces[PATH_PAIRS_MAX];
    void (*answers)(struct paths *paths); /* rdma_config's */
    struct mono traced;                   /* one may be asked for each second from then on */
    struct nic_port ports[HOST_NIC_MAX];
    uint32_t port_count;
    struct io_event events[PROCESS_QUEUE_PAIRS_MAX + 1]; /* one for links */
    uint32_t event_count;
    pthread_mutex_t trouble_lock;             /* nothing is locked under it */
    char troubles[TROUBLE_MAX][TROUBLE_SIZE]; /* each kept for good: it isn't told twice */
    uint32_t trouble_count, trouble_told;
};

/* ---- rdma_device.c ---- */
int rdma_devices_open(struct rdma *r, char *ret_why, size_t size);
void rdma_devices_close(struct rdma *r);
/* The port that carries that address: device (which it uses from now on), port, own end, how it is reached. The worker's, under
 * the lock, which it lets go meanwhile. -ENODEV. */
MUST_CHECK int rdma_port_find(struct rdma *r, struct queue_pair *q);
/* It is gone, and so is all that was made on it: the kernel destroys that before it removes the device's folder. From then on
 * calls of the library fail with EIO. */
bool rdma_device_removed(const struct rdma *r, const struct device *d);
/* Closes those that are gone, opens those that are back. Under the lock, which it lets go meanwhile. */
void rdma_devices_look(struct rdma *r);
void rdma_trouble_add(struct rdma *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- rdma_memory.c ---- */
/* The worker's: one range with one device that wasn't there when it was added. Under the lock, which it lets go meanwhile.
 * False: there is none, or it has to wait: */
bool rdma_memory_look(struct rdma *r);
/* The worker's, under the lock: it waits so long, or until no offer of a queue pair is open; 0: not at all, -1: none is due. */
int rdma_memory_wait_ms(struct rdma *r);
/* Nobody knows it any more, and no device has it. */
void rdma_memory_done(struct memory *m);
/* Their keys on that device die with it. Under memory_lock, or nobody else runs. */
void rdma_memory_forget(struct rdma *r, uint32_t device);
/* The table's. */
int rdma_memory_new(struct io_rdma *rdma, const struct io_rdma_range *range,
                    struct io_rdma_memory **ret_memory);
void rdma_memory_free(struct io_rdma *rdma, struct io_rdma_memory *memory);

/* ---- rdma_event.c ---- */
/* Of a device's descriptors in the epoll: its number, and whether it is what was armed that completed. */
#define RDMA_COMPLETIONS 0x100u
void *rdma_watch(void *rdma);
/* Under the lock: an armed one has something; the event is there for events(). */
void rdma_tell(struct queue_pair *q);
/* Its port carries its NIC, and was up when it was read. events: its device's port_events before that: what came since tells
 * more. Under the lock. */
void rdma_port_seen(struct rdma *r, const struct queue_pair *q, uint32_t events);
/* The table's. */
int rdma_carrier(struct io_rdma *rdma, const struct io_address *nic, const char *device,
                 uint32_t *ret_downs);

/* ---- rdma_gpu.c ---- */
/* Its queue pair with itself, if it can be had. Blocks. */
void rdma_gpu_start(struct rdma *r, struct device *d);
/* It isn't used any more, or another device of that name is about to be. */
void rdma_gpu_stop(const struct rdma *r, struct device *d);
/* The worker's: makes anew what broke. Under the lock, which it lets go meanwhile. True: something is broken. */
bool rdma_gpu_look(struct rdma *r);
/* Before a range's keys go: a request that is on its way to it would break the pair. */
void rdma_gpu_drain(struct device *d);
/* The table's. */
int rdma_gpu_copy(struct io_rdma *rdma, struct io_rdma_memory *memory, void *gpu, void *own,
                  size_t size, bool to_gpu, uint32_t *ret_device);
int rdma_gpu_read(struct io_rdma *rdma, uint32_t device, struct io_rdma_memory *memory,
                  const void *at, uint64_t *ret_ticket);
int rdma_gpu_done(struct io_rdma *rdma, uint32_t device, uint64_t ticket);
void rdma_gpu_settle(struct io_rdma *rdma, uint32_t device);

/* ---- rdma_silence.c ---- */
int64_t rdma_clock_ns(void); /* the kernel's: waiting for a thread takes real time */
/* The worker's. */
MUST_CHECK int rdma_silencer_start(struct rdma *r, struct device *d);
/* The worker's, once `stop` is set. */
void rdma_silencers_end(struct rdma *r);
/* Its silencer shall silence it, or destroy what is `ending`. Under the lock. */
void rdma_silence_ask(struct queue_pair *q);
/* It isn't busy any more. Under the lock. */
void rdma_silencer_look(const struct queue_pair *q);
/* Until what is `ending` is destroyed, or a call of the library's takes too long: false. */
bool rdma_silence_await(struct queue_pair *q);

/* ---- rdma_trace.c ---- */
/* The worker's: one trace. Under the lock, which it lets go meanwhile. False: none is asked for. */
bool rdma_trace_look(struct rdma *r);
/* Asks the routers. */
void rdma_trace_run(struct rdma_trace *t);
/* A queue pair failed: its path may be another one now. Under the lock. */
void rdma_trace_doubt(struct rdma *r, const struct queue_pair *q);
/* The table's. */
int rdma_choose(struct io_rdma *rdma, int qp, const struct io_address *peer,
                const struct io_qp_others *others, uint32_t *ret_path);

/* ---- rdma.c ---- */
void rdma_wake(struct rdma *r);                                /* the worker */
MUST_CHECK int rdma_post(struct queue_pair *q, uint32_t cell); /* a receive */

/* ---- rdma_work.c ---- */
/* It is the worker's alone, and nobody's later; from now on, or as soon as no thread has it in hand. Under the lock. */
void rdma_retire(struct queue_pair *q);
void *rdma_work(void *rdma);
/* Memory, and what isn't the library's; nobody runs any more. */
void rdma_free(struct rdma *r);
/* All queue pairs and devices, without the lock: nobody else runs any more. */
void rdma_end(struct rdma *r);

/* transport_pair.h: two transports in one process over real loopback sockets: one sends and one receives. There are threads only
 * if a test asks for them. */
#pragma once
#include "transport/internal.h"
#include "transport/rdma.h"
#include "transport/tcp.h"
#include "trouble_io.h"

#define STEPS_MAX 200000
#define LANES     4 /* of a set, if nothing fails */

struct end {
    struct tcp *tcp;
    struct rdma *rdma;       /* NULL: no queue pairs */
    struct trouble *trouble; /* not on the stack: its threads outlive a test that fails */
    struct transport *transport;
};
struct pair {
    struct end sender, receiver;
    struct transport_comm *out, *in;
};

/* For end_open(). */
extern const char *switch_file, *page_folder;
extern uint32_t sender_sockets, receiver_sockets;
extern uint8_t version;         /* version of lanes' frames; 0: the newest */
extern uint8_t receiver_device; /* 2: the sixth, 3: the second */
extern bool fenced;             /* the sets of both ends */
extern bool rails;              /* three NICs that reach only their counterparts */
/* Both ends have queue pairs, by a fake libibverbs. They are at 127.0.0.1 and 127.0.0.2, so that neither takes the other for
 * itself. Memory is registered with the devices between them, too, which no lane uses. */
extern bool queue_pairs;
extern const char *rdma_root; /* in place of /sys */
/* Both ends may use memory of GPUs. */
extern bool gpus;
/* A GPU's memory in the fake libibverbs: a file. An access by its address crashes; the test sees what the GPU sees. */
struct gpu_memory {
    void *at;
    uint8_t *seen;
    size_t size;
    int fd;
};
struct gpu_memory gpu_new(size_t size);
void gpu_free(struct gpu_memory *gpu);
/* Their lanes write; exchange() takes its bytes from and to registered memory. */
extern bool direct;
extern uint8_t out_bytes[1 << 20], in_bytes[1 << 20];
extern bool sender_without; /* except for the sender: it offers none */
const char *verbs_library(void);
extern void (*router_answers)(struct paths *paths); /* rdma_config's */
extern const char verbs_devices[];                  /* in the order of their numbers */
/* If set: counts the log lines that contain these words. */
extern const char *said_words;
extern uint32_t said_count;

void end_open(struct end *end, const char *name, bool thread);
void end_close(struct end *end);
/* Both ends do what is due now. */
void serve(struct pair *pair);
/* Lets time pass. */
void skip_ms(int64_t ms);
/* Waits until both ends have all lanes. pair_open() does that if there will be that many. */
void lanes_up(struct pair *pair);
/* One more communicator between them. */
void connect_comm(struct pair *pair);
/* As connect_comm, with the NICs that NCCL named at the sender and the receiver. */
void connect_comm_over(struct pair *pair, uint32_t own, uint32_t peer);
void pair_open(struct pair *pair);
void pair_close(struct pair *pair);
void fill(uint8_t *bytes, size_t size, uint64_t seed);
/* One message, the receive posted before or after the send. */
void exchange(struct pair *pair, size_t size, size_t room, bool post_first, uint64_t seed);

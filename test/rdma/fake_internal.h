/* fake_internal.h: internals of the fake libibverbs.so.1. Everything here is under `fake_lock`. */
#pragma once
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "fake.h"

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_get_device_list

enum { DEVICES = 24, GIDS = 12, PKEYS = 2, QPS = 256, DEPTH = 512, DONE = 4 * DEPTH };

enum { RECORDED_PORTS = 2, RECORDED_GIDS = 64 };

/* A recording's content for one port. */
struct recorded_port {
    bool is;
    struct ibv_port_attr attr;
    int gid_count;
    struct ibv_gid_entry gids[RECORDED_GIDS];
};
struct recorded {
    struct ibv_device_attr attr;
    bool dmabuf, stamps;
    uint64_t clock_khz;
    struct recorded_port ports[RECORDED_PORTS]; /* from 1 on */
};

struct device {
    struct ibv_device device;
    bool wire, roce, v1_only;
    uint16_t pkeys[PKEYS];            /* on the wire; 0: none */
    uint8_t ip[16];                   /* as in a GID; on the wire: the socket's address */
    char if_name[IBV_SYSFS_NAME_MAX]; /* on the wire; looked up again each time */
    enum ibv_port_state state;
    enum ibv_mtu mtu;
    struct recorded *recorded; /* NULL: not from a recording */
};
struct context {
    struct device *device;
    int events[2];
    struct channel *channel;
    struct context *next;
    struct verbs_context verbs; /* must be last */
};
struct channel {
    struct ibv_comp_channel channel;
    int write_fd;
};
struct queue {
    union {
        struct ibv_cq cq;
        struct ibv_cq_ex ex; /* begins alike */
    };
    struct ibv_wc done[DONE], taken; /* taken by start_poll and next_poll */
    uint64_t stamps[DONE], taken_stamp;
    unsigned head, count, capacity;
    unsigned told; /* events of completions, not yet acknowledged */
    bool armed;
    int64_t flush_ns; /* no flush is reported before */
    struct queue *next;
};
struct address {
    struct ibv_ah ah;
    struct ibv_ah_attr attr;
};
struct receive {
    uint64_t tag;
    void *to;
    uint32_t size, key;
};
struct request {
    uint64_t tag;
    const uint8_t *from;
    uint8_t inlined[256];
    uint32_t size, rkey, first, packets; /* first: the packet number of its first packet */
    uint64_t to;
    bool write, signalled, is_inline;
};
struct pair {
    struct ibv_qp qp;
    struct device *device;
    struct ibv_qp_attr attr; /* attributes of all calls of modify_qp */
    struct queue *cq;
    struct receive receives[DEPTH];
    unsigned head, count, capacity, inline_size, sends;
    bool used, ud;
    /* the wire */
    int in_fd, out_fd;
    uint16_t source_port;
    struct request *requests; /* a ring of `sends` */
    unsigned request_head, request_count;
    uint32_t unacked, next,
        end; /* packet numbers: oldest unacknowledged, next to send, end of those given out */
    uint32_t expected, offset;           /* packet number; bytes of the present message so far */
    int64_t deadline_ns, pause_until_ns; /* of the oldest packet; 0: none */
    unsigned tries, rnr_tries;
    bool nak_sent, ack_due;
};
struct memory {
    struct ibv_mr mr;
    int access;
    uint8_t *exported; /* of a DMA-BUF: its address here; NULL: memory of the process */
    struct memory *next;
};

enum { MAGIC = 0x464b5650 };
enum packet_kind { DATA, ACK, NAK_SEQUENCE, NAK_RNR, NAK_ACCESS, NAK_INVALID, DATAGRAM };

struct packet {
    uint32_t magic;
    uint8_t kind, write, first, last; /* DATAGRAM: `write` has the traffic class, rkey the Q_Key */
    uint16_t pkey, slid;
    uint32_t to_qp, from_qp, number, rkey;
    uint64_t to; /* of a write: the target of these bytes */
};

extern pthread_mutex_t fake_lock;
extern struct fake_control *control;
extern struct device devices[DEVICES];
extern int device_count;
extern struct pair pairs[QPS];
extern struct context *contexts;

static inline struct pair *pair_of(struct ibv_qp *qp)
{
    return (struct pair *)qp;
}
static inline struct context *context_of(struct ibv_context *context)
{
    return (struct context *)(void *)((char *)context - offsetof(struct context, verbs.context));
}

/* ---- fake.c ---- */
/* Mapped, as in a GID. */
static inline bool fake_is_v4(const uint8_t ip[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(ip, prefix, sizeof(prefix)) == 0;
}
uint16_t fake_lid(const struct device *d);             /* the first LID; RoCE: 0 */
uint16_t fake_pkey(const struct device *d, int index); /* 0: the entry is empty */
/* True if two ends with these keys hear each other: they have one partition, and one end is a full member. */
bool fake_hears(uint16_t a, uint16_t b);
void fake_hang(const char *function); /* waits while control->hang names it */
bool fake_gone(const struct device *device);
/* True if this call must fail; sets errno. */
bool fake_refused(const struct device *device, const char *function);
void fake_tell(struct context *c, int event, int port, struct ibv_qp *qp);
/* The memory of a key. A key is valid only on its own device. */
struct memory *fake_memory(const struct pair *p, uint32_t key, const void *at, size_t size,
                           int access);
/* The place in this process of that address of the memory. */
uint8_t *fake_at(const struct memory *m, const void *at);
void fake_complete(struct pair *p, uint64_t tag, int status, int opcode, uint32_t bytes);
void fake_complete_from(struct pair *p, uint64_t tag, int status, int opcode, uint32_t bytes,
                        uint32_t from_qp);

/* ---- fake_ud.c ---- */
uint64_t fake_ticks(void); /* of the devices' clock */
void fake_stamping(struct verbs_context *verbs);
int fake_execute_datagram(const struct pair *p, const struct ibv_send_wr *w);
/* Puts a datagram with this Q_Key into the pair's next receive. Without a receive it is dropped. */
enum { FAKE_HEAD = 40 }; /* bytes before it */
void fake_datagram(struct pair *p, uint32_t from_qp, uint32_t key, const void *bytes,
                   uint32_t size);
int wire_post_datagram(struct pair *p, const struct ibv_send_wr *w);
uint16_t wire_port_of_label(uint32_t label);
void wire_on_datagram(struct pair *p, const struct packet *h, const uint8_t *bytes, uint32_t size,
                      int64_t now);
void wire_deliver_late(int64_t now);
void wire_read_late(void); /* reads the environment's file of late datagrams */

/* ---- fake_record.c ---- */
/* Makes the devices that the file names. */
void record_devices(const char *file);
/* NULL: there is no such port. */
const struct recorded_port *record_port(const struct device *d, int port);

/* ---- fake_pair.c ---- */
/* Puts all acknowledged writes but the newest `kept` into memory. */
void fake_land(unsigned kept);
/* Executes a write; false: the key or the address is wrong. */
bool fake_write(const struct pair *p, uint32_t key, uint8_t *to, const void *from, uint32_t size);
/* Moves a pair to ERR: the held writes land before the first flush, unless this device lies. */
void fake_flush(struct pair *p);
/* True if the pair is connected to itself. */
bool fake_loops(const struct pair *p);
void fake_polled(const struct ibv_wc *wc, int count, bool empty);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *w, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *w, struct ibv_recv_wr **bad);

/* ---- fake_wire.c ---- */
/* Makes the devices that the environment names. */
void wire_devices(const char *words);
int64_t wire_now_ns(void);
struct wire_place {
    struct sockaddr_storage address;
    socklen_t size;
};
struct wire_place wire_place_of(const uint8_t ip[16], uint16_t port);
int wire_socket(const uint8_t ip[16], uint16_t port, bool shared); /* or a negative errno */
void wire_mark(int fd, const uint8_t ip[16], int traffic_class);
/* The address to which packets go with this address handle. */
void wire_peer(const struct device *d, const struct ibv_ah_attr *ah, uint8_t ret_ip[16]);
void wire_look(struct device *d); /* reads the state and the MTU of its interface */
/* Starts the thread that plays the NIC. It stops when no pair holds it any more. */
int wire_hold(void);
void wire_release(void);
int wire_open(struct pair *p);    /* gives the pair a number and a socket */
int wire_connect(struct pair *p); /* to RTR */
void wire_close(struct pair *p);
int wire_post(struct pair *p, const struct ibv_send_wr *w);
void wire_flush(struct pair *p); /* requests, in order */

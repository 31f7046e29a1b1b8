/* fake_internal.h: of the fake libibverbs.so.1 alone. Everything here is under `fake_lock`. */
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

/* What a recording says of a device. */
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
    uint16_t pkeys[PKEYS];            /* of the wire; 0: none */
    uint8_t ip[16];                   /* as a GID has it; of the wire: a socket's, IPv4 or IPv6 */
    char if_name[IBV_SYSFS_NAME_MAX]; /* of the wire's; found anew each time it is looked at */
    enum ibv_port_state state;
    enum ibv_mtu mtu;
    struct recorded *recorded; /* NULL: of no recording */
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
    struct ibv_wc done[DONE], taken; /* taken: by start_poll, next_poll */
    uint64_t stamps[DONE], taken_stamp;
    unsigned head, count, capacity;
    unsigned told; /* of its completions, not yet acknowledged */
    bool armed;
    int64_t flush_ns; /* no flush is told before */
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
    uint32_t size, rkey, first, packets; /* first: its packet number */
    uint64_t to;
    bool write, signalled, is_inline;
};
struct pair {
    struct ibv_qp qp;
    struct device *device;
    struct ibv_qp_attr attr; /* as modify_qp was told, all together */
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
        end; /* packet numbers: oldest unacknowledged, next to send, next to be given */
    uint32_t expected, offset;           /* packet number; bytes of the present message that came */
    int64_t deadline_ns, pause_until_ns; /* of the oldest packet; 0: none */
    unsigned tries, rnr_tries;
    bool nak_sent, ack_due;
};
struct memory {
    struct ibv_mr mr;
    int access;
    uint8_t *exported; /* of a DMA-BUF: where this library sees it; NULL: of the process's own */
    struct memory *next;
};

enum { MAGIC = 0x464b5650 };
enum packet_kind { DATA, ACK, NAK_SEQUENCE, NAK_RNR, NAK_ACCESS, NAK_INVALID, DATAGRAM };

struct packet {
    uint32_t magic;
    uint8_t kind, write, first, last; /* DATAGRAM: write is the traffic class, rkey the Q_Key */
    uint16_t pkey, slid;
    uint32_t to_qp, from_qp, number, rkey;
    uint64_t to; /* of a write: where these bytes go */
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
uint16_t fake_lid(const struct device *d);             /* the first of them; RoCE: 0 */
uint16_t fake_pkey(const struct device *d, int index); /* 0: the entry is empty */
/* Two ends that have these hear each other: of one partition, and one is a full member. */
bool fake_hears(uint16_t a, uint16_t b);
/* Whether this call is to fail; sets errno. */
void fake_hang(const char *function); /* waits while control->hang names it */
bool fake_gone(const struct device *device);
bool fake_refused(const struct device *device, const char *function);
void fake_tell(struct context *c, int event, int port, struct ibv_qp *qp);
/* A key is good on its own device alone. */
struct memory *fake_memory(const struct pair *p, uint32_t key, const void *at, size_t size,
                           int access);
/* Where the bytes at that address of the memory are to be found. */
uint8_t *fake_at(const struct memory *m, const void *at);
void fake_complete(struct pair *p, uint64_t tag, int status, int opcode, uint32_t bytes);
void fake_complete_from(struct pair *p, uint64_t tag, int status, int opcode, uint32_t bytes,
                        uint32_t from_qp);

/* ---- fake_ud.c ---- */
uint64_t fake_ticks(void); /* of the devices' clock */
void fake_stamping(struct verbs_context *verbs);
int fake_execute_datagram(const struct pair *p, const struct ibv_send_wr *w);
/* A datagram with this Q_Key that came for it: into its next receive, or nowhere. */
enum { FAKE_HEAD = 40 }; /* bytes before it */
void fake_datagram(struct pair *p, uint32_t from_qp, uint32_t key, const void *bytes,
                   uint32_t size);
int wire_post_datagram(struct pair *p, const struct ibv_send_wr *w);
uint16_t wire_port_of_label(uint32_t label);
void wire_on_datagram(struct pair *p, const struct packet *h, const uint8_t *bytes, uint32_t size,
                      int64_t now);
void wire_deliver_late(int64_t now);
void wire_read_late(void); /* what is to be late, as the environment's file has it */

/* ---- fake_record.c ---- */
/* Devices as the file names them. */
void record_devices(const char *file);
/* NULL: there is no such port. */
const struct recorded_port *record_port(const struct device *d, int port);

/* ---- fake_pair.c ---- */
/* All but the newest `kept` writes that were acknowledged land. */
void fake_land(unsigned kept);
/* Of a write; false: the key or the address is wrong. */
bool fake_write(const struct pair *p, uint32_t key, uint8_t *to, const void *from, uint32_t size);
/* To ERR: what is held lands before the first flush, unless this device lies. */
void fake_flush(struct pair *p);
/* It is connected to itself. */
bool fake_loops(const struct pair *p);
void fake_polled(const struct ibv_wc *wc, int count, bool empty);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *w, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *w, struct ibv_recv_wr **bad);

/* ---- fake_wire.c ---- */
/* Devices as the environment names them. */
void wire_devices(const char *words);
int64_t wire_now_ns(void);
struct wire_place {
    struct sockaddr_storage address;
    socklen_t size;
};
struct wire_place wire_place_of(const uint8_t ip[16], uint16_t port);
int wire_socket(const uint8_t ip[16], uint16_t port, bool shared); /* or why not, negative */
void wire_mark(int fd, const uint8_t ip[16], int traffic_class);
/* Where packets go to whom that leads to. */
void wire_peer(const struct device *d, const struct ibv_ah_attr *ah, uint8_t ret_ip[16]);
void wire_look(struct device *d); /* state and MTU of its interface */
/* The thread that is the NIC; stopped when nobody holds it any more. */
int wire_hold(void);
void wire_release(void);
int wire_open(struct pair *p);    /* a number, a socket */
int wire_connect(struct pair *p); /* to RTR */
void wire_close(struct pair *p);
int wire_post(struct pair *p, const struct ibv_send_wr *w);
void wire_flush(struct pair *p); /* requests, in order */

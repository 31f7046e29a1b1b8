/* plugin.h: what the tables of both halves share: the process's transport, its settings, its devices.
 *
 * Calls come from NCCL's threads, several at once. plugin_init() and plugin_finalize() count the communicators that use the
 * transport (v11 and later; before, NCCL says init once and never good-bye); with the last of them it goes. */
#pragma once
#include "plugin/abi_net.h"
#include "plugin/devices.h"
#include "transport/transport.h"

#define PLUGIN_NAME "Foliot"

/* What carries lanes. auto: queue pairs where both ends have them; roce: the same, and it is said aloud where they haven't. */
enum plugin_carrier { PLUGIN_TCP, PLUGIN_AUTO, PLUGIN_ROCE };
/* What queue pairs carry: copies of all bytes; or large messages right from and to memory that NCCL registered. */
enum plugin_writes { PLUGIN_COPY, PLUGIN_DIRECT };
/* Where NCCL keeps what it sends and receives: in memory of the host; or in that of GPUs, which NICs reach by DMA-BUFs. */
enum plugin_gpu { PLUGIN_HOST, PLUGIN_DMABUF };
enum plugin_mode { PLUGIN_OFF, PLUGIN_OBSERVE, PLUGIN_FAILOVER, PLUGIN_FULL };

struct settings {
    enum plugin_mode mode;
    enum plugin_carrier carrier;
    enum plugin_writes writes;
    enum plugin_gpu gpu;
    uint32_t lanes; /* 0: by the NICs' speed */
    uint32_t standbys;
    uint32_t sockets;
    struct span patience;
    uint8_t checksum;
    bool credit;
    bool repath;
    uint8_t priority;
    uint8_t traffic_class;        /* of TCP connections: DSCP << 2 */
    uint8_t pair_class;           /* of queue pairs: DSCP << 2, and two bits of ECN */
    uint8_t pair_sl;              /* likewise: 1 + the service level; 0: the ports' */
    uint16_t partition, pkey_nth; /* rdma_config's */
    uint16_t port_low, port_high;
    bool unhinted; /* NCCL_NET_OPTIONAL_RECV_COMPLETION=0 */
    int family;    /* NCCL_SOCKET_FAMILY's; AF_UNSPEC: either */
    char nic[512]; /* FOLIOT_NIC, else NCCL_SOCKET_IFNAME; "": neither */
    char sysfs[256];
    char verbs[256]; /* FOLIOT_VERBS: a libibverbs; "": the system's */
};

/* From the environment; what can't be understood is warned of and left at its default. */
void settings_read(struct settings *ret, nccl_logger logger);

/* The job as the launcher's environment describes it, for people. Strings are static copies: the environment may change. */
struct job_words {
    const char *folder;   /* of the job page; NULL: none is wanted */
    const char *name;     /* NULL: nobody named it */
    uint32_t rank, ranks; /* ranks 0: not known */
};
struct job_words job_words(void);

/* The newest properties. Older tables take their part of them. */
struct nic_description {
    char *name, *pci_path;
    uint64_t guid;
    int speed_mbps;
    struct nccl_merged_v12 merged;
};

enum nccl_result plugin_init(nccl_logger logger);
/* NCCL gives no early-completion hints, because its user doesn't want them. */
bool plugin_unhinted(void);
void plugin_finalize(void);
enum nccl_result plugin_devices(int *count);
enum nccl_result plugin_describe(int device, struct nic_description *ret);
enum nccl_result plugin_listen(int device, void *handle, void **listen_comm);
enum nccl_result plugin_connect(int device, void *handle, void **send_comm);
enum nccl_result plugin_accept(void *listen_comm, void **receive_comm);

/* Lets NICs read and write it, where they do (FOLIOT_RDMA=direct). Never NULL: what no NIC takes is copied. Every range is known
 * until it is deregistered. */
void *plugin_register(void *data, size_t size);
/* Memory of a GPU, of the DMA-BUF `fd`, which is the caller's. Nothing copies what no NIC takes: then it fails. */
enum nccl_result plugin_register_gpu(void *data, size_t size, uint64_t offset, int fd,
                                     void **mhandle);
/* Whether that may work. */
bool plugin_takes_gpus(void);
/* Afterwards nobody touches that memory. NCCL that aborts does this, frees it, and closes its communicators last. */
void plugin_deregister(void *mhandle);

/* Logs a failure at WARN, once per text, and says what NCCL is to be told. */
enum nccl_result plugin_failed(int r);

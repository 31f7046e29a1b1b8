/* plugin.h: declarations for the tables of both halves: the process's transport, its settings, its devices.
 *
 * Calls come from NCCL's threads, several at once. plugin_init() and plugin_finalize() count the communicators that use the
 * transport (v11 and later; before, NCCL calls init once and never finalize). The last one closes it. */
#pragma once
#include "plugin/abi_net.h"
#include "plugin/devices.h"
#include "transport/transport.h"

#define PLUGIN_NAME "Foliot"

/* The carrier of lanes. auto: queue pairs if both ends have them. roce: the same, with a warning if an end lacks them. */
enum plugin_carrier { PLUGIN_TCP, PLUGIN_AUTO, PLUGIN_ROCE };
/* What queue pairs carry: copies of all bytes; or large messages directly from and to memory that NCCL registered. */
enum plugin_writes { PLUGIN_COPY, PLUGIN_DIRECT };
/* The memory of NCCL's messages: the host's; or GPUs', which NICs reach by DMA-BUFs. */
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
    uint8_t pair_sl;              /* for queue pairs: 1 + the service level; 0: the ports' level */
    uint16_t partition, pkey_nth; /* for rdma_config */
    uint16_t port_low, port_high;
    bool unhinted; /* NCCL_NET_OPTIONAL_RECV_COMPLETION=0 */
    int family;    /* NCCL_SOCKET_FAMILY's; AF_UNSPEC: either */
    char nic[512]; /* FOLIOT_NIC, else NCCL_SOCKET_IFNAME; "": neither */
    char sysfs[256];
    char verbs[256]; /* FOLIOT_VERBS: the path of a libibverbs; "": the system's */
};

/* Reads the environment. A value that can't be read gives a warning, and the default stays. */
void settings_read(struct settings *ret, nccl_logger logger);

/* The job as the launcher's environment describes it, for people. Strings are static copies, because the environment may
 * change. */
struct job_words {
    const char *folder;   /* for the job page; NULL: none is wanted */
    const char *name;     /* NULL: it has no name */
    uint32_t rank, ranks; /* ranks 0: not known */
};
struct job_words job_words(void);

/* The newest version's properties. Older tables take a part of them. */
struct nic_description {
    char *name, *pci_path;
    uint64_t guid;
    int speed_mbps;
    struct nccl_merged_v12 merged;
};

enum nccl_result plugin_init(nccl_logger logger);
/* NCCL gives no early-completion hints, because its user turned them off. */
bool plugin_unhinted(void);
void plugin_finalize(void);
enum nccl_result plugin_devices(int *count);
enum nccl_result plugin_describe(int device, struct nic_description *ret);
enum nccl_result plugin_listen(int device, void *handle, void **listen_comm);
enum nccl_result plugin_connect(int device, void *handle, void **send_comm);
enum nccl_result plugin_accept(void *listen_comm, void **receive_comm);

/* Lets NICs read and write it, if they do so (FOLIOT_RDMA=direct). Never NULL: memory that no NIC takes is copied. Each range
 * stays in the list until it is deregistered. */
void *plugin_register(void *data, size_t size);
/* Memory of a GPU, from the caller's DMA-BUF `fd`. It can't be copied: if no NIC takes it, this fails. */
enum nccl_result plugin_register_gpu(void *data, size_t size, uint64_t offset, int fd,
                                     void **mhandle);
/* True if that may work. */
bool plugin_takes_gpus(void);
/* Afterwards nothing touches that memory. When NCCL aborts, it calls this, frees the memory, and closes its communicators
 * last. */
void plugin_deregister(void *mhandle);

/* Logs a failure at WARN, once per text, and returns the result for NCCL. */
enum nccl_result plugin_failed(int r);

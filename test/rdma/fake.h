/* fake.h: how a test controls the fake libibverbs.so.1. It has three sorts of devices:
 *
 * fake0 (RoCE) and fake1 (InfiniBand) live in one process. Queue pairs of one device reach each other by their numbers, and a
 * request is executed when it is posted.
 *
 * With FOLIOT_FAKE_VERBS_WIRE in the environment there are others instead: RC over UDP, between processes, namespaces and
 * machines of the lab, with packet numbers, acknowledgements, retries and go-back-N (fake_wire.c). Its value has a word for each
 * device: NAME=IP[,v1][,ib][,pHEX][,qHEX], of either family.
 *   - `auto`, `auto6`: a device fake_IF for each IPv4 or global IPv6 address of an interface except the loopback.
 *   - `v1`: it has RoCE v1 GIDs only.
 *   - `ib`: an InfiniBand port; its LID is the last octet << 2, its LMC 2.
 *   - `p`: its P_Keys are 0x7fff and this one. `q`: this one (0: an empty entry) and 0xffff. Without either: 0xffff alone.
 * Like a NIC, it drops packets of another partition, and packets from another LID than the one to which it sends. A packet leaves
 * from the port of the flow label (0xc000 + ...), so the fabric spreads lanes over paths as it does with RoCEv2. Changes of the
 * interface's carrier and address become events of the port.
 *
 * Both sorts have UD, too. On the wire a datagram is one UDP packet from a port of its queue pair, with the DSCP of its address
 * handle. With FOLIOT_FAKE_VERBS_LABELS it leaves from the port of the handle's flow label, as with some devices.
 * FOLIOT_FAKE_VERBS_LATE names a file that is read all the time: with "104 5" datagrams of traffic class 104 come 5 ms later.
 *
 * With FOLIOT_FAKE_VERBS_RECORD, a recording of `foliot selftest rdma --record`, there are the recorded devices: with their
 * limits, ports and GIDs, and with queue pairs that end as theirs did (fake_record.c). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct fake_control {
    char refuse[32];  /* the name of a function without ibv_, or "" */
    int refuse_nth;   /* the nth call of it from now on (1: the next; destroy_qp: all) fails ... */
    int refuse_errno; /* ... with this */
    char hang
        [32]; /* a function that doesn't return while its name stands here; silence: modify_qp to ERR */
    int hung;      /* how many calls of it there were */
    int hang_most; /* so many of them hang; 0: all */
    int fds[3];    /* of the device that was opened last: command, events, completions */
    char gone
        [32]; /* this device was taken away ("*": all): every call of it fails with ENODEV, and is silent all the same */
    bool orphans; /* and destroy_qp of it with EIO, as rdma-core's does */
    bool no_list; /* the kernel has no RDMA */
    int lag; /* so many writes are acknowledged and not yet in memory: the oldest lands when a newer one comes */
    int lies; /* ms: the last of them land so long after the marker was seen, not before it as the standard asks */
    bool
        after_return; /* what lags lands when a flush is polled, not before the queue pair is in ERR */
    bool disorder;    /* receives are flushed last first */
    int marker_us;    /* that a flush takes */
    int dead_status; /* of a request to a queue pair in ERR; 0: IBV_WC_RETRY_EXC_ERR */
    bool no_flush;   /* receives are never flushed: the marker doesn't come */
    bool drop;       /* paths are dead: nothing is acknowledged, and queue pairs give up */
    int forks;       /* an enum ibv_fork_status */
    bool no_gids;    /* the GID tables are empty */
    int status;      /* of the next completion, an enum ibv_wc_status; the rest of it is garbage */
    char small[32];  /* this device's port has an MTU of 1024 */
    int gid_shift;   /* added to the indices of GIDs */
    int connect_ms; /* what a queue pair takes to RTR, and an address handle: the neighbour has to be resolved first */
    uint64_t memlock; /* bytes that may be registered; 0: all */
    /* On the wire: bit k: packets from source ports that are k modulo 4 are lost; so many of 10000 packets are lost. */
    uint32_t black_hole, loss;
    bool stamps;        /* devices opened from now on stamp completions by a clock of their own */
    uint8_t late_class; /* datagrams of this traffic class come later by */
    int late_ms;
    int gpu_lag; /* writes into memory of a GPU land when their NIC reads from there, or so many newer ones came; 0: at once */
    bool no_loopback; /* a device doesn't reach itself */
    char stuck
        [32]; /* what this device ("*": all) is to move between its own ends it moves when the queue pair is destroyed */
    int stuck_count;       /* how many requests wait for that */
    bool no_dmabuf;        /* devices take no memory of GPUs */
    int gpu_reads;         /* from there, of any size */
    int writes;            /* that landed */
    int sl, traffic_class; /* of the queue pair that was connected last */
    uint32_t flow_label;   /* of the queue pair or address that was made last */
    uint16_t pkeys[2];     /* the table of a port without a wire; both 0: 0xffff alone */
    int pkey_index;        /* of the queue pair that was given one last */
    int calls;             /* how many functions were called */
    int open;              /* objects that are open */
};

/* The types of dlsym("fake_control") and dlsym("fake_event"). FOLIOT_FAKE_VERBS_LAG, _LIES and _MEMLOCK in the environment hold
 * from the start. With FOLIOT_FAKE_VERBS_CONTROL the struct is that file's first bytes, and all processes that name the file
 * share it. */
typedef struct fake_control *(*fake_control_function)(void);
/* Makes an asynchronous event (enum ibv_event_type) of a device (NULL: all), of its port `port` or of queue pair `qp`. */
typedef void (*fake_event_function)(const char *device, int event, int port, uint32_t qp);

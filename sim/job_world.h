/* job_world.h: jobs over the real transport, in a simulated network. It checks safety and liveness, and measures them.
 *
 * Processes, one per host, each with a `struct transport` of its own (src/transport, unchanged, without its thread) whose io.h
 * table is filled by a simulated kernel: virtual time, TCP over a leaf-spine fabric, carriers, clocks. On top each process
 * runs communicators that send messages as NCCL would, close, and open new ones. Faults come by chance. One seed gives one
 * trace (result.trace).
 *
 * The checker (job_rank.c) shares nothing with the ledger. The content of a message depends only on (communicator, message,
 * place). A receive must be done once, in posting order, with exactly that content. A buffer must not change after its receive
 * is done. A request fails only if the peer was killed or aborted, or if no path to it was left for the whole patience; then
 * it must fail. Once the faults end, everything must be done and every connection gone.
 *
 * Real: src/transport, core/failover, core/traffic, wire/. Modelled: sockets, TCP (job_tcp.c), queue pairs (job_rdma.c), links
 * (job_net.h), the application. Missing: threads (one thread drives all), and memory that runs out. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum job_fault {
    JOB_FAULT_NIC_DOWN,   /* link and carrier */
    JOB_FAULT_NIC_HOLE,   /* drops all packets; the carrier stays up */
    JOB_FAULT_NIC_IN,     /* one way */
    JOB_FAULT_NIC_OUT,    /* the other */
    JOB_FAULT_TRUNK_DOWN, /* routing heals it after a while */
    JOB_FAULT_TRUNK_HOLE, /* one direction drops all packets */
    JOB_FAULT_LOSS,
    JOB_FAULT_SLOW,
    JOB_FAULT_DELAY,
    JOB_FAULT_DAMAGE,   /* flipped bits that TCP's checksum doesn't see */
    JOB_FAULT_RESET,    /* a device on the path resets one connection */
    JOB_FAULT_PAUSE,    /* a process does not run */
    JOB_FAULT_FILES,    /* no descriptors are left */
    JOB_FAULT_ABORT,    /* one end closes a communicator in the middle */
    JOB_FAULT_STRANGER, /* a connection that sends nothing, or nonsense */
    JOB_FAULT_CLOCK,    /* a process's fleet time steps by 1 ms or begins a new epoch: no fault */
    JOB_FAULT_KILL,     /* a process: never by chance */
    JOB_FAULT_PART,     /* every NIC of a host drops all packets for good: never by chance */
    JOB_FAULT_DEVICE,   /* queue pairs: a NIC's RDMA device is removed */
    JOB_FAULT_PAIR,     /* queue pairs: one fails by itself */
    JOB_FAULT_COUNT,
};

enum job_pattern {
    JOB_PAIRS,  /* each process to each other */
    JOB_RING,   /* each process to the next */
    JOB_STAR,   /* 0 to all, all to 0 */
    JOB_INCAST, /* all to 0 */
    JOB_HALVES, /* the first half to the second, one way */
};

/* The fault of one of two lanes (job_gap.c). */
enum job_gap_kind {
    JOB_GAP_HELD, /* its packets are held for 300 ms */
    JOB_GAP_HOLE,
    JOB_GAP_ACKS, /* the path back is a black hole */
    JOB_GAP_BOTH,
    JOB_GAP_LOSS, /* 30 % */
    JOB_GAP_KINDS,
    JOB_GAP_RAILS, /* all NICs of a host except its front end */
};
#define JOB_GAPS_MAX 32
struct job_gap {
    enum job_gap_kind kind;
    int64_t lasts_ns;
    int64_t fault_ns,
        quiet_ns; /* the longest time without a message, in 2 s with the fault and in 2 s before */
    bool left, failed_over; /* a lane was given up: before the fault, and with it */
};

struct job_world_config {
    uint64_t seed;
    uint32_t hosts, nics, leaves, spines;
    /* So many processes in a row belong to one host and share its NICs; each belongs to another job. `hosts` counts processes.
     * 0: one. */
    uint32_t sharing;
    int64_t host_bps, trunk_bps, delay_ns; /* delay of a link */
    int64_t queue_ns;                      /* longest wait before a link; 0: 10 ms */
    enum job_pattern pattern;
    uint32_t comms;                    /* for each ordered pair at a time */
    uint32_t lanes, standbys, sockets; /* as transport_config */
    bool failover_only;                /* TRANSPORT_FAILOVER */
    bool no_credit;                    /* as transport_config */
    bool no_repath;                    /* lanes stay on the paths that they drew at first */
    /* Number of independent jobs. JOB_RING: `leaves` hosts of one job are followed by as many of the next, so that every flow
     * leaves its leaf. 0: one job. */
    uint32_t jobs;
    /* Every so manyth process (or job, if there are several) has low priority; 0: none. */
    uint32_t low_every;
    uint32_t old_every; /* every so manyth process uses the version before; 0: none */
    /* As transport_config: sets count as fenced, as if some lane wrote without being asked. */
    bool fenced;
    bool large_early; /* as transport_config: messages of a whole chunk needn't be posted */
    /* Hosts have queue pairs (in all worlds if FOLIOT_SIM_QUEUE_PAIRS is in the environment), except every so manyth host. 0: all
     * hosts have them. */
    bool rdma;
    uint32_t no_rdma_every;
    bool direct;         /* as transport_config: queue pairs write */
    int64_t late_dma_ns; /* a failed queue pair goes on for at most so long; 0: 3 ms */
    bool rdma_lasts;     /* queue pairs break only by faults of fault_mask */
    bool keys_last;      /* registrations aren't refused, and outlive their device */
    bool checksum;
    int64_t patience_ns;
    /* messages */
    uint32_t messages; /* of a communicator; then it is closed, and another is opened */
    uint32_t size_max;
    bool whole;        /* all messages have this size */
    uint32_t depth;    /* requests in flight */
    int64_t gather_ns; /* from then on all send only to the last process; 0: never */
    int64_t gap_ns;    /* mean time between two messages of a communicator; 0: none */
    /* Message k goes when message k - chain has come: JOB_RING: from the process before; JOB_PAIRS: from all. 0: at once. */
    uint32_t chain;
    /* JOB_PAIRS: an all-to-all has so many messages of a communicator. A job's next all-to-all begins when its last rank is
     * done. 0: one that never ends. */
    uint32_t operation;
    /* a process that isn't of low priority rests after so many messages; 0: never */
    uint32_t burst;
    int64_t rest_ns; /* for so long */
    int64_t poll_ns; /* the application polls about so often; below 1 ms also at events */
    /* The steps of a collective: all send message k at the same time, about every step_ns, and not before all have k - 1. No
     * process polls between steps, and one communicator lasts for ever. 0: no steps. */
    int64_t step_ns;
    /* faults: about one each fault_gap_ns, of the kinds in the mask, each for about fault_ns */
    int64_t fault_gap_ns, fault_ns;
    uint64_t fault_mask;
    enum job_fault last; /* KILL or PART: of host 0, at the end; else 0 */
    int64_t last_ns;
    int64_t run_ns; /* time with faults */
    int64_t
        brown_ns; /* from then on the link of the first leaf and spine carries a tenth; 0: never */
    /* Until then the lanes that processes 0 … drawn - 1 connect use these spines, out and back. All other lanes use the spines
     * that their ports select. */
    uint32_t drawn, spine_out, spine_back;
    /* JOB_PAIRS with a chain: from slow_ns to slow_until_ns the last NIC of host 0 carries one part in `slow_nic` of its rate.
     * 0: never. */
    uint32_t slow_nic;
    int64_t slow_ns, slow_until_ns;
    /* JOB_HALVES of two hosts with two lanes: so many faults of one lane, 2 s each with 2 s before. run_ns is not used. */
    uint32_t gap_faults;
    /* The last NIC of each host is its front end: it has no queue pairs, and no communicator gets it. Each of gap_faults then
     * affects all other NICs of one host for 2 s: they lose their carriers, or drop all packets. */
    bool front;
    /* A process is stopped about each stall_gap_ns, for about stall_ns; or all processes together. 0: never. */
    int64_t stall_gap_ns, stall_ns;
    bool stall_together;
    int64_t warm_ns; /* in that time; delays and bytes are counted from here on */
    /* the kernel */
    uint32_t buffer_log2; /* of both buffers of a connection together; 0: 20 */
    int64_t rto_min_ns;
    int64_t carrier_late_ns; /* carrier events come so much later; the counters don't */
    bool carrier_unknown;    /* there is no counter */
    bool starved;            /* processes run late: up to 50 ms, sometimes 700 ms */
    bool skewed;             /* raw clocks differ in offset and rate; else they are the same */
    /* Late receivers (JOB_INCAST, messages of at most 8 KiB, at most 32 for a communicator): a process closes all that it
     * sends on, and receivers begin only late_ns later. In that time the process is stopped for freeze_ns. Its receiver is
     * stopped for drowsy_ns from the first message on. 0: no. */
    int64_t late_ns, freeze_ns, drowsy_ns;
    bool say; /* the transports' log goes to stderr */
};

struct job_world_result {
    const char *wrong; /* NULL: nothing. Else the promise that was broken. */
    char detail[400];
    uint64_t trace; /* hash of all events */
    uint64_t messages, bytes, comms;
    uint64_t faults, by_kind[JOB_FAULT_COUNT];
    uint64_t failed;           /* requests that failed, and had to fail */
    uint64_t connections;      /* made */
    uint64_t late_connections; /* of `connections`: those after the first messages */
    uint64_t resent;           /* chunks sent more than once */
    uint64_t failovers, parted, repaths;
    uint64_t packets, lost, damaged, runs;
    uint64_t cells; /* sent over queue pairs */
    uint64_t rnrs;  /* times that a NIC had no cell posted */
    uint64_t full;  /* messages that took the last posted cell but one: the peer may send no more */
    uint64_t writes;    /* into the application's memory */
    uint64_t dead_keys; /* keys that ended with their device */
    /* registrations that were renewed when the device was back; writes through them */
    uint64_t renewed_keys, renewed_writes;
    uint64_t late_writes; /* into cells and memory of failed queue pairs */
    uint64_t
        garbled; /* lanes that ended because of wrong content: only JOB_FAULT_DAMAGE may cause it */
    uint32_t sockets_max; /* of one process; a lane counts at both ends */
    int64_t owd_ns_p50,
        owd_ns_p99;       /* of chunks, after warm_ns and before the faults end; < 0: none */
    uint64_t low_bytes;   /* of chaos_bytes, from processes of low priority */
    uint64_t chaos_bytes; /* of `bytes`, in that time */
    uint64_t credits,
        credit_harms; /* times that a receiver began to limit its senders, and that it did harm */
    uint32_t limited; /* NICs with such limits when the faults ended */
    int64_t worst_ns; /* longest time from a message's send to its receive */
    int64_t virtual_ns;
    /* brown_ns, in a job that moves: the time until the slow link's lanes got no more of the new bytes than their share of the
     * remaining rate and one chunk each per 10 ms. The time until 100 ms brought 95 % of the remaining rate, or -1. Both
     * shares at the end. */
    int64_t brown_share_ns, brown_rate_ns;
    double brown_share, brown_rate,
        brown_before; /* before: the share of all links' bound, in the second half of that time */
    /* slow_nic: shares of a bound. Before: of all links, in the second half of the time before. Settled: of the remaining
     * rate, from a second after it began. Healed: of all links again, from a second after it ended. */
    double slow_before, slow_settled, slow_healed;
    uint32_t gap_count;
    struct job_gap gaps[JOB_GAPS_MAX];
    uint64_t steps;
    int64_t steps_ns, step_ns_max; /* step_ns: how long they took */
    int64_t error_ns;              /* KILL, PART: time from the fault to the last error */
};

/* Draws a world with closed senders and late receivers from the seed. */
void job_world_late(struct job_world_config *ret_config, uint64_t seed);
/* Draws all-to-all while one NIC carries a small part of its rate: the seed decides the fabric and that part. */
void job_world_slow(struct job_world_config *ret_config, uint64_t seed);
/* As job_world_gap(), but all rails of a host fail: config.front. */
void job_world_rails(struct job_world_config *ret_config, uint64_t seed);
/* Draws two lanes of which one has a fault: the seed decides rates, delays and stalls. */
void job_world_gap(struct job_world_config *ret_config, uint64_t seed, bool rdma);
/* Draws any world from the seed, with `intensity` faults per second. */
void job_world_chance(struct job_world_config *ret_config, uint64_t seed);
void job_world_run(const struct job_world_config *config, struct job_world_result *ret_result);

/* job_world.h: jobs over the real transport, in a simulated network: safe, alive, and by how much.
 *
 * Processes, one per host, each with a `struct transport` of its own (src/transport, unchanged, without its
 * thread) whose io.h table is filled by a simulated kernel: virtual time, TCP over a leaf-spine fabric, carriers,
 * clocks. On top each runs communicators that send messages as NCCL would, close, and open new ones. Faults come
 * by chance. One seed, one trace (result.trace).
 *
 * The checker (job_rank.c) shares nothing with the ledger. What a message holds is a function of
 * (communicator, message, place); a receive must be done once, in posting order, with exactly that; a buffer that
 * was done must not change any more; a request fails only if the peer was killed, aborted, or no way to it was left
 * for the whole patience, and then it must fail; and once the faults end, everything must be done and every
 * connection gone.
 *
 * What is real: src/transport, core/failover, core/traffic, wire/. What is modelled: sockets, TCP (job_tcp.c), queue
 * pairs (job_rdma.c), links (job_net.h), the application. Not here: threads (one thread drives all), memory that runs out. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum job_fault {
    JOB_FAULT_NIC_DOWN,   /* link and carrier */
    JOB_FAULT_NIC_HOLE,   /* swallows all, the carrier stays up */
    JOB_FAULT_NIC_IN,     /* one way */
    JOB_FAULT_NIC_OUT,    /* the other */
    JOB_FAULT_TRUNK_DOWN, /* routing heals it after a while */
    JOB_FAULT_TRUNK_HOLE, /* one direction swallows all */
    JOB_FAULT_LOSS,
    JOB_FAULT_SLOW,
    JOB_FAULT_DELAY,
    JOB_FAULT_DAMAGE,   /* flipped bits that TCP's checksum doesn't see */
    JOB_FAULT_RESET,    /* somebody between resets one connection */
    JOB_FAULT_PAUSE,    /* a process isn't run */
    JOB_FAULT_FILES,    /* no descriptors left */
    JOB_FAULT_ABORT,    /* one end closes a communicator in the middle */
    JOB_FAULT_STRANGER, /* a connection that says nothing, or nonsense */
    JOB_FAULT_CLOCK,    /* a process's fleet time steps by 1 ms or begins a new epoch: no fault */
    JOB_FAULT_KILL,     /* a process: never by chance */
    JOB_FAULT_PART,     /* every NIC of a host swallows all for good: never by chance */
    JOB_FAULT_DEVICE,   /* queue pairs: a NIC's RDMA device is removed */
    JOB_FAULT_PAIR,     /* queue pairs: one errs by itself */
    JOB_FAULT_COUNT,
};

enum job_pattern {
    JOB_PAIRS,  /* each process to each other one */
    JOB_RING,   /* to the next */
    JOB_STAR,   /* 0 to all, all to 0 */
    JOB_INCAST, /* all to 0 */
    JOB_HALVES, /* the first half to the second, one way */
};

/* What one lane of two meets (job_gap.c). */
enum job_gap_kind {
    JOB_GAP_HELD, /* its packets, for 300 ms */
    JOB_GAP_HOLE,
    JOB_GAP_ACKS, /* the way back is the hole */
    JOB_GAP_BOTH,
    JOB_GAP_LOSS, /* 30 % */
    JOB_GAP_KINDS,
    JOB_GAP_RAILS, /* all NICs of a host but its front end */
};
#define JOB_GAPS_MAX 32
struct job_gap {
    enum job_gap_kind kind;
    int64_t lasts_ns;
    int64_t fault_ns,
        quiet_ns; /* the longest without a message, in 2 s with the fault and in as long before */
    bool left, failed_over; /* a lane was given up: before, and with the fault */
};

struct job_world_config {
    uint64_t seed;
    uint32_t hosts, nics, leaves, spines;
    /* So many processes in a row are of one host and share its NICs, each of a job of its own; `hosts` counts
     * processes. 0: one */
    uint32_t sharing;
    int64_t host_bps, trunk_bps, delay_ns; /* delay of a link */
    int64_t queue_ns;                      /* most that waits before a link; 0: 10 ms */
    enum job_pattern pattern;
    uint32_t comms;                    /* per ordered pair at a time */
    uint32_t lanes, standbys, sockets; /* as transport_config */
    bool failover_only;                /* TRANSPORT_FAILOVER */
    bool no_credit;                    /* as transport_config */
    bool no_repath;                    /* lanes stay on the paths that they drew */
    uint32_t jobs; /* that know nothing of each other; JOB_RING: `leaves` hosts of one after so many
                      of the next, so that every flow leaves its leaf. 0: one */
    uint32_t low_every; /* each so manyth process (job, if there are several) is of low priority; 0:
                           none */
    uint32_t old_every; /* each so manyth process speaks the version before; 0: none */
    bool fenced;        /* as transport_config: sets are, as if some lane wrote unasked */
    bool large_early;   /* as transport_config: messages of a whole chunk needn't be posted */
    bool
        rdma; /* hosts have queue pairs (in all worlds where FOLIOT_SIM_QUEUE_PAIRS is in the environment), */
    uint32_t no_rdma_every; /* but for each so manyth; 0: all */
    bool direct;            /* as transport_config: they write */
    int64_t late_dma_ns;    /* an erred one goes on for so long at most; 0: 3 ms */
    bool rdma_lasts;        /* they break by what fault_mask has, only */
    bool keys_last;         /* registrations aren't refused, and outlive their device */
    bool checksum;
    int64_t patience_ns;
    /* messages */
    uint32_t messages; /* of a communicator, then it is closed and another one opened */
    uint32_t size_max;
    bool whole;        /* all of them are as large as that */
    uint32_t depth;    /* requests in flight */
    int64_t gather_ns; /* from then on all send to the last process only; 0: never */
    int64_t gap_ns;    /* mean, between two messages of a communicator; 0: none */
    uint32_t
        chain; /* JOB_RING: message k goes once k - chain came from the one before; JOB_PAIRS: from all;
                  0: at once */
    /* JOB_PAIRS: all-to-alls of so many messages of a communicator; the next one of a job begins when the last of its ranks is
     * done. 0: one that never ends */
    uint32_t operation;
    uint32_t burst;  /* who isn't of low priority rests after so many messages; 0: never */
    int64_t rest_ns; /* for so long */
    int64_t poll_ns; /* the application polls about this often, at events too if it is below 1 ms */
    int64_t
        step_ns; /* all send message k at once, about each so long, and none before all have k - 1: a
                        collective's steps. Nobody polls between them; one communicator for ever. 0: no */
    /* faults: one about each so long, of the kinds in the mask, each for about so long */
    int64_t fault_gap_ns, fault_ns;
    uint64_t fault_mask;
    enum job_fault last; /* KILL or PART: in the end, of host 0; else 0 */
    int64_t last_ns;
    int64_t run_ns; /* of chaos, before the faults end */
    int64_t
        brown_ns; /* from then on the link of the first leaf and spine carries a tenth; 0: never */
    /* Until then the lanes that processes 0 … drawn - 1 connect lie on those spines: what they send, and what comes back. All
     * others lie where their ports lead. */
    uint32_t drawn, spine_out, spine_back;
    /* JOB_PAIRS with a chain: the last NIC of host 0 carries one part in `slow_nic` of its rate from slow_ns to slow_until_ns.
     * 0: never */
    uint32_t slow_nic;
    int64_t slow_ns, slow_until_ns;
    /* JOB_HALVES of two hosts, two lanes: so many faults of one of them, 2 s each and 2 s before; run_ns doesn't count */
    uint32_t gap_faults;
    /* The last NIC of each host is its front end: it has no queue pairs, and no communicator is told of it. Each of gap_faults
     * then takes all others of one host, for 2 s: their carriers, or they swallow all */
    bool front;
    /* A process isn't run, one about each so long, for about so long; or all of them. 0: never */
    int64_t stall_gap_ns, stall_ns;
    bool stall_together;
    int64_t warm_ns; /* of that, delays and bytes are counted from here on */
    /* the kernel */
    uint32_t buffer_log2; /* of a connection's buffers, together; 0: 20 */
    int64_t rto_min_ns;
    int64_t carrier_late_ns; /* events of carriers come so much later; the counters don't */
    bool carrier_unknown;    /* there is no counter */
    bool starved;            /* processes are run late: up to 50 ms, at times 700 ms */
    bool skewed;             /* raw clocks differ by offset and rate; else all are alike */
    /* Late receivers (JOB_INCAST, messages of at most 8 KiB, at most 32 a communicator): nothing is received before so long after
     * a process has closed all that it sends on. It is stopped for freeze_ns of that; its receiver for drowsy_ns, from the first
     * message on. 0: no */
    int64_t late_ns, freeze_ns, drowsy_ns;
    bool say; /* what the transports say goes to stderr */
};

struct job_world_result {
    const char *wrong; /* NULL: nothing. Else which promise was broken */
    char detail[400];
    uint64_t trace; /* hash of all that happened */
    uint64_t messages, bytes, comms;
    uint64_t faults, by_kind[JOB_FAULT_COUNT];
    uint64_t failed;           /* requests that failed, and had to */
    uint64_t connections;      /* made */
    uint64_t late_connections; /* of them, after the first messages */
    uint64_t resent;           /* chunks sent more than once */
    uint64_t failovers, parted, repaths;
    uint64_t packets, lost, damaged, runs;
    uint64_t cells; /* sent over queue pairs */
    uint64_t rnrs;  /* times that a NIC had none posted */
    uint64_t
        full; /* times that a message took the last but one that was posted: the peer may send no more data */
    uint64_t writes;    /* into memory of the application */
    uint64_t dead_keys; /* that ended with their device */
    uint64_t renewed_keys,
        renewed_writes;   /* of memory registered again when it was back; by them */
    uint64_t late_writes; /* into cells, and that memory, of queue pairs in error */
    uint64_t
        garbled; /* lanes that ended for what came over them: none may, but for JOB_FAULT_DAMAGE */
    uint32_t sockets_max; /* of one process, lanes at both ends */
    int64_t owd_ns_p50,
        owd_ns_p99;       /* of chunks, after warm_ns and before the faults end; < 0: none */
    uint64_t low_bytes;   /* of chaos_bytes, from processes of low priority */
    uint64_t chaos_bytes; /* of `bytes`, in that time */
    uint64_t credits,
        credit_harms; /* times that a receiver began to limit its senders, and that it did harm */
    uint32_t limited; /* NICs with such limits when the faults end */
    int64_t worst_ns; /* longest time that a receive took after its message was sent */
    int64_t virtual_ns;
    /* brown_ns: until the slow link's lanes got no more of what is newly sent than their share of what is left, and one chunk
     * each per 10 ms, in a job that moves; until 100 ms brought 95 % of what is left, or -1; both shares in the end */
    int64_t brown_share_ns, brown_rate_ns;
    double brown_share, brown_rate,
        brown_before; /* before: of the bound of all links, in the second half of that time */
    /* slow_nic: of the bound of all links, in the second half of the time before; of what is left, from a second after it began;
     * of all links again, from a second after it ended */
    double slow_before, slow_settled, slow_healed;
    uint32_t gap_count;
    struct job_gap gaps[JOB_GAPS_MAX];
    uint64_t steps;
    int64_t steps_ns, step_ns_max; /* step_ns: what they took */
    int64_t error_ns;              /* KILL, PART: from then to the last error */
};

/* Closed senders and late receivers, by chance from the seed. */
void job_world_late(struct job_world_config *ret_config, uint64_t seed);
/* All-to-all while one NIC carries a small part of its rate: the fabric and that part by chance from the seed. */
void job_world_slow(struct job_world_config *ret_config, uint64_t seed);
/* Two lanes, and one that meets a fault: rates, delays and what stands still by chance from the seed. */
/* The same, where all rails of a host go: config.front. */
void job_world_rails(struct job_world_config *ret_config, uint64_t seed);
void job_world_gap(struct job_world_config *ret_config, uint64_t seed, bool rdma);
/* What anybody may try: everything by chance from the seed, `intensity` faults per second. */
void job_world_chance(struct job_world_config *ret_config, uint64_t seed);
void job_world_run(const struct job_world_config *config, struct job_world_result *ret_result);

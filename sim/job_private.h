/* job_private.h: what the files of the simulated jobs share.
 *
 *   job_world.c   agenda, time                               job_fault.c  what goes wrong, and when it ends
 *   job_process.c a process, run when it is time             job_tcp.c    connections, as a kernel keeps them
 *   job_io.c      io.h's table: descriptors, events, clocks  job_socket.c what a process calls on its connections
 *   job_net.c     links and paths                            job_rdma.c   queue pairs, as a NIC keeps them
 *   job_pattern.c who talks to whom                          job_rank.c   the application and its checker
 *   job_content.c what messages hold                         job_order.c  when a flow's next message may go
 *   job_slow.c    what a NIC that carries little does        job_brown.c  what a link that carries a tenth does
 *   job_draw.c    worlds by chance                           job_gap.c    how long nothing comes, in faults of a lane */
#pragma once
#include "sim/agenda.h"
#include "sim/job_net.h"
#include "sim/job_world.h"
#include "transport/internal.h"

#define SIM_CONN_NONE UINT32_MAX

enum event_kind {
    EVENT_RUN,    /* subject: process */
    EVENT_PACKET, /* packet */
    EVENT_TIMER,  /* connection * 2 + end */
    EVENT_FAULT,
    EVENT_HEAL,    /* fault slot */
    EVENT_CARRIER, /* process: it is told that a link changed */
    EVENT_LAST,
    EVENT_STEP,
    EVENT_PAIR,        /* queue pair */
    EVENT_PAIR_PACKET, /* packet of one */
    EVENT_STALL,
};

/* -- job_tcp.c: connections */

enum end_state {
    END_NONE,    /* server's, before the SYN came */
    END_OPENING, /* client's, until it is answered */
    END_OPEN,
    END_DEAD, /* the kernel has forgotten it */
};

/* One end, and the bytes that it sends. */
struct end {
    enum end_state state;
    int process;
    int fd;              /* -1: closed, or not accepted yet */
    int error;           /* -errno, to be told once */
    bool closed;         /* by the application */
    bool backlogged;     /* nobody has accepted it yet */
    bool half;           /* accepted at the SYN; the handshake's last packet is missing */
    bool fin, fin_taken; /* ours: asked for; theirs: read up to it */
    uint32_t nic;
    uint16_t port;
    /* out */
    uint8_t *ring; /* bytes [peer's read, written) at & mask */
    uint64_t written, next, acked, edge, recover;
    uint32_t window, threshold; /* congestion */
    int64_t srtt_ns, var_ns, rtt_min_ns;
    uint32_t backoff;
    int64_t waiting_since; /* for an acknowledgement; 0: not */
    int64_t timer;         /* 0: off */
    bool timer_queued;
    uint64_t segments, resent;
    /* in */
    uint64_t received, read;
    uint64_t advertised;
    int64_t arrived_at;
    /* epoll */
    uint32_t armed;
    uint64_t tag;
    bool queued;
};

struct conn {
    bool used;
    uint32_t generation;
    struct end ends[2]; /* 0 connected, 1 accepted */
};

enum packet_kind { PACKET_SYN, PACKET_SYN_ACK, PACKET_DATA, PACKET_ACK, PACKET_RESET };
struct packet {
    uint32_t conn, generation;
    uint8_t to; /* end */
    uint8_t kind;
    bool fin, gap;
    uint32_t length;
    struct job_train train; /* that carries it */
    uint64_t sequence;      /* ACK: taken so far */
    uint64_t edge;          /* ACK: it may be sent up to here */
    int64_t sent_at;        /* DATA; ACK: of what it answers */
};

/* -- processes */

struct ready {
    uint32_t conn;
    uint32_t generation;
    uint8_t end;
};
struct descriptor {
    bool used;
    uint32_t conn; /* SIM_CONN_NONE: the listener, or a connection that was forgotten */
    uint8_t end;
};
struct process {
    struct job_world *world;
    struct io io;
    struct io_rdma rdma;
    uint32_t pairs;          /* queue pairs that it has open */
    struct memory *memories; /* registered */
    uint32_t keys;
    struct transport *transport;
    uint32_t index;
    bool killed, starved;
    int64_t paused_until;
    int64_t
        late_until; /* late_ns: receivers of what it sent wait so long; 0: it hasn't closed all yet */
    uint32_t sending; /* late_ns: flows that it hasn't closed yet */
    int64_t wake;     /* earliest RUN that is meant; INT64_MAX: none */
    int64_t ran_at;
    struct prng prng;
    /* descriptors */
    struct descriptor *files;
    uint32_t file_count, file_low, file_used, file_max;
    bool no_files;
    int listener; /* -1: none */
    uint16_t port;
    uint64_t listener_tag;
    bool listener_armed;
    uint32_t *backlog; /* connections to be accepted */
    uint32_t backlog_count, backlog_capacity;
    struct ready *ready;
    uint32_t ready_count, ready_capacity;
    bool links_changed;
    int64_t dying_ns; /* killed: its own time runs on */
    /* clocks */
    int64_t raw_offset, raw_ppb, fleet_error, fleet_offset;
    uint32_t fleet_epoch, fleet_half;
    /* job_rank.c */
    uint32_t *flows; /* that it takes part in */
    uint32_t flow_count, flow_capacity;
};

struct fault_slot {
    bool used;
    enum job_fault kind;
    uint32_t subject, extra;
};

/* A window's figures of a brown-out. */
struct brown {
    struct brown_lane {
        uint64_t bytes, chunks;
    } * before;                               /* [process][set][lane]: sent so far */
    int64_t window;                           /* since it began */
    uint64_t received[10];                    /* in each of the last windows */
    uint64_t received_before, received_since; /* by all before the last look; since it began */
    uint64_t slow_bytes, all_bytes;           /* sent since it began */
};

struct job_world {
    struct job_world_config config;
    struct job_world_result *result;
    struct job_net net;
    struct agenda agenda;
    struct prng prng;
    int64_t now;
    struct process *processes;
    struct conn **conns;
    uint32_t conn_count, conn_free_count;
    uint32_t *conn_free;
    struct packet *packets;
    uint32_t packet_count, packet_free_count;
    uint32_t *packet_free;
    struct pair **pairs; /* job_rdma.c; JOB_PAIRS_MAX of them */
    uint32_t pair_count, pair_free_count;
    uint32_t *pair_free;
    struct pair_packet *pair_packets;
    uint32_t pair_packet_count, pair_packet_capacity, pair_packet_free_count;
    uint32_t *pair_packet_free;
    struct brown brown;
    int64_t received_at, gap_ns; /* job_gap.c: last; the longest without any since a window began */
    struct fault_slot *slots;
    uint32_t slot_count;
    uint32_t safe_nic, safe_spine; /* no fault touches these now */
    int64_t safe_until;
    uint32_t rested; /* in the end: processes below have nothing left */
    bool calm;       /* no more faults */
    bool last_came;
    int64_t last_at;
    struct flow *flows;
    uint32_t flow_count, flows_over;
    uint32_t step,
        stepped; /* step_ns: how many steps have begun; flows that are through the last */
    int64_t step_began;
    uint32_t hurry;        /* steps that follow soon */
    bool over;             /* nothing is counted any more */
    uint64_t warm_bytes;   /* received before warm_ns */
    bool steady;           /* all flows have had a message */
    uint32_t buffer_bytes; /* of a connection's ring */
    uint32_t burst_bytes;  /* a packet is at most so large */
};

/* -- job_world.c */
#define START_NS NS_PER_S /* the world's clock when it begins: no time is 0 */
/* Lets happen what does until then. */
void world_until(struct job_world *w, int64_t until);
void world_add(struct job_world *w, int64_t at, enum event_kind kind, uint32_t subject);
/* The process shall run at that time, or before. */
void world_wake(struct job_world *w, struct process *p, int64_t at);
void world_wrong(struct job_world *w, const char *wrong, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A flow is through the present step. */
void world_stepped(struct job_world *w);
/* A fault begins or ends: steps follow. */
void world_fault_step(struct job_world *w);
void world_trace(struct job_world *w, uint64_t a, uint64_t b);

/* -- job_process.c */
MUST_CHECK int process_start(struct job_world *w, uint32_t index);
/* Its application and its transport, if it is to run now. */
void process_run(struct job_world *w, struct process *p);
/* It is gone, and all that it had. */
void process_kill(struct job_world *w, struct process *p);
/* All is over: nothing may be left of it. */
void process_end(struct job_world *w, struct process *p);
/* Of all of them: in-band delays, and what receivers limit, into the result; from here on they count. */
void processes_read(struct job_world *w);
void processes_forget(struct job_world *w);

/* -- job_io.c */
void process_io(struct process *p);
int64_t process_raw(const struct process *p, int64_t at);
int64_t process_true(const struct process *p, int64_t raw);
/* kernel: as a kernel or a NIC takes it. */
struct io_stamp process_stamp(const struct process *p, int64_t at, bool kernel);
/* Something that a poll would see happened at that end. */
void process_ready(struct job_world *w, uint32_t conn, uint8_t end);
int process_file(struct process *p, uint32_t conn, uint8_t end);

/* -- job_tcp.c */
#define TCP_SEGMENT 1448u /* bytes */
struct conn *tcp_conn(struct job_world *w, uint32_t conn);
uint32_t tcp_new_conn(struct job_world *w);
void tcp_maybe_free(struct job_world *w, uint32_t conn); /* once both ends are through with it */
void tcp_die(struct job_world *w, uint32_t conn, uint8_t end, int error);
int64_t tcp_rto(const struct job_world *w, const struct end *e);
void tcp_set_timer(struct job_world *w, uint32_t conn, uint8_t end);
void tcp_pump(struct job_world *w, uint32_t conn, uint8_t end); /* sends what may go */
void tcp_transmit(struct job_world *w, uint32_t conn, uint8_t from, struct packet packet);
void tcp_acknowledge(struct job_world *w, uint32_t conn, uint8_t from, bool gap, int64_t sent_at);
void tcp_send_reset(struct job_world *w, uint32_t conn, uint8_t from);
void sim_packet(struct job_world *w, uint32_t packet);
void sim_timer(struct job_world *w, uint32_t subject);

/* -- job_socket.c */
int sim_connect(struct job_world *w, struct process *p, const struct io_connect *to,
                uint32_t *ret_conn);
ssize_t sim_send(struct job_world *w, uint32_t conn, uint8_t end, const struct iovec *parts,
                 int count);
ssize_t sim_receive(struct job_world *w, uint32_t conn, uint8_t end, const struct iovec *parts,
                    int count);
void sim_close(struct job_world *w, uint32_t conn, uint8_t end, bool reset);
uint32_t sim_poll(struct job_world *w, uint32_t conn, uint8_t end); /* IO_IN, IO_OUT */
void sim_reset(struct job_world *w, uint32_t conn);                 /* by somebody between */
/* Somebody connects to a process and says nothing, or nonsense. */
bool sim_stranger(struct job_world *w, uint32_t process);
void sim_info(struct job_world *w, uint32_t conn, uint8_t end, struct io_info *ret);

/* -- job_rdma.c */
#define JOB_PAIRS_MAX 4096
void process_rdma(struct process *p);
void sim_pair(struct job_world *w, uint32_t pair);
void sim_pair_packet(struct job_world *w, uint32_t packet);
void sim_pairs_remove(struct job_world *w, uint32_t nic); /* its device is gone */
/* A NIC's device is there no more, or is about to come back: keys on it die, for good. */
void sim_keys_die(struct job_world *w, uint32_t nic);
void sim_keys_return(struct job_world *w, uint32_t nic); /* it is back: by other keys */
bool sim_pair_break(struct job_world *w);                /* one of them errs by itself */
void sim_pairs_kill(struct job_world *w, uint32_t process);
void sim_pairs_done(struct job_world *w);

/* -- job_fault.c */
/* by: 1, and -1 when it is over. NIC_DOWN, NIC_HOLE, NIC_IN, NIC_OUT */
void sim_nic_cut(struct job_world *w, uint32_t nic, enum job_fault kind, int by);
MUST_CHECK int fault_begin(struct job_world *w);
void fault_next(struct job_world *w);
void fault_heal(struct job_world *w, uint32_t slot);
void fault_heal_all(struct job_world *w);
void fault_last(struct job_world *w);

/* -- job_pattern.c */
/* Processes of one host. */
uint32_t pattern_sharing(const struct job_world *w);
bool pattern_low(const struct job_world *w, uint32_t process);
/* The next one of its job. */
uint32_t pattern_next(const struct job_world *w, uint32_t process);
bool pattern_talks(const struct job_world *w, uint32_t from, uint32_t to);

/* -- job_content.c */
/* By chance, most of them small, at most `max`. */
uint32_t content_size(uint64_t seed, uint32_t max);
void content_make(uint8_t *bytes, uint32_t size, uint64_t seed);
/* Is it what was made of that seed? */
bool content_is(const uint8_t *bytes, uint32_t size, uint64_t seed);
bool content_is_pattern(const uint8_t *bytes, size_t size, uint8_t pattern);

/* -- job_brown.c */
/* What came before the brown-out is counted from here on. */
MUST_CHECK int brown_warm(struct job_world *w);
void brown_begin(struct job_world *w);
/* Each BROWN_WINDOW_NS from then on. */
void brown_look(struct job_world *w);
void brown_end(struct job_world *w);
#define BROWN_WINDOW_NS (10 * NS_PER_MS)

/* -- job_slow.c: from the beginning to the end of the run */
void slow_run(struct job_world *w);

/* -- job_gap.c: from the beginning to the end of the run */
void gap_run(struct job_world *w);
void gap_received(struct job_world *w);
void gap_stall(struct job_world *w);
void gap_stall_next(struct job_world *w);

/* -- job_rank.c */
MUST_CHECK int rank_start(struct job_world *w);
/* No message after those that receivers wait for already. */
void rank_last(struct job_world *w);
/* Polls, posts, checks; when it wants to be run again. */
int64_t rank_run(struct job_world *w, struct process *p);
/* One end of some communicator is given up in the middle. */
bool rank_abort(struct job_world *w);
/* The process is about to die or to be cut off: errors to and from it are right. */
void rank_excuse(struct job_world *w, uint32_t process);
void rank_killed(struct job_world *w, uint32_t process);
bool rank_over(struct job_world *w);
void rank_stuck(struct job_world *w);
void rank_done(struct job_world *w);

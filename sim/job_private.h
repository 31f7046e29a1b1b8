/* job_private.h: shared by the files of the simulated jobs.
 *
 *   job_world.c    agenda, time                               job_fault.c   faults, and when they end
 *   job_process.c  a process, run when it is due              job_tcp.c     connections, as a kernel keeps them
 *   job_io.c       io.h's table: descriptors, events, clocks  job_socket.c  a process's calls on its connections
 *   job_net.c      links and paths                            job_rdma.c    queue pairs, as a NIC keeps them
 *   job_pattern.c  which process sends to which               job_rank.c    the application and its checker
 *   job_content.c  content of messages                        job_order.c   when a flow's next message may go
 *   job_slow.c     a slow NIC                                 job_brown.c   a link that carries a tenth
 *   job_draw.c     random worlds                              job_gap.c     gaps in faults of a lane */
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
    EVENT_CARRIER, /* process: it gets the change of a link */
    EVENT_LAST,
    EVENT_STEP,
    EVENT_PAIR,        /* queue pair */
    EVENT_PAIR_PACKET, /* packet of a queue pair */
    EVENT_STALL,
};

/* -- job_tcp.c: connections */

enum end_state {
    END_NONE,    /* the server's, before the SYN came */
    END_OPENING, /* the client's, until it is answered */
    END_OPEN,
    END_DEAD, /* the kernel has forgotten it */
};

/* One end, and the bytes that it sends. */
struct end {
    enum end_state state;
    int process;
    int fd;              /* -1: closed, or not accepted yet */
    int error;           /* -errno, reported once */
    bool closed;         /* by the application */
    bool backlogged;     /* it waits to be accepted */
    bool half;           /* accepted at the SYN; the handshake's last packet is missing */
    bool fin, fin_taken; /* fin: this end's, asked for; fin_taken: the peer's, read up to it */
    uint32_t nic;
    uint16_t port;
    /* out */
    uint8_t *ring; /* bytes [peer's read, written) at & mask */
    uint64_t written, next, acked, edge, recover;
    uint32_t window, threshold; /* congestion */
    int64_t srtt_ns, var_ns, rtt_min_ns;
    uint32_t backoff;
    int64_t waiting_since; /* waits for an acknowledgement since then; 0: not */
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
    struct job_train train; /* the train that carries it */
    uint64_t sequence;      /* ACK: taken so far */
    uint64_t edge;          /* ACK: the peer may send up to here */
    int64_t sent_at;        /* DATA; ACK: of the packet that it answers */
};

/* -- processes */

struct ready {
    uint32_t conn;
    uint32_t generation;
    uint8_t end;
};
struct descriptor {
    bool used;
    uint32_t conn; /* SIM_CONN_NONE: the listener, or a connection that is gone */
    uint8_t end;
};
struct process {
    struct job_world *world;
    struct io io;
    struct io_rdma rdma;
    uint32_t pairs;          /* open queue pairs */
    struct memory *memories; /* registered */
    uint32_t keys;
    struct transport *transport;
    uint32_t index;
    bool killed, starved;
    int64_t paused_until;
    int64_t
        late_until;   /* late_ns: receivers of its messages wait until then; 0: it has open flows */
    uint32_t sending; /* late_ns: flows that it has not closed yet */
    int64_t wake;     /* the earliest RUN that counts; INT64_MAX: none */
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
    int64_t dying_ns; /* killed: its own time goes on */
    /* clocks */
    int64_t raw_offset, raw_ppb, fleet_error, fleet_offset;
    uint32_t fleet_epoch, fleet_half;
    /* job_rank.c */
    uint32_t *flows; /* flows of this process */
    uint32_t flow_count, flow_capacity;
};

struct fault_slot {
    bool used;
    enum job_fault kind;
    uint32_t subject, extra;
};

/* Figures of a brown-out's window. */
struct brown {
    struct brown_lane {
        uint64_t bytes, chunks;
    } * before;            /* [process][set][lane]: sent so far */
    int64_t window;        /* since it began */
    uint64_t received[10]; /* in each of the last windows */
    /* by all before the last look; since the brown-out began */
    uint64_t received_before, received_since;
    uint64_t slow_bytes, all_bytes; /* sent since it began */
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
    /* job_gap.c: the last message; the longest time without one since the window began */
    int64_t received_at, gap_ns;
    struct fault_slot *slots;
    uint32_t slot_count;
    uint32_t safe_nic, safe_spine; /* no fault may affect these now */
    int64_t safe_until;
    uint32_t rested; /* at the end: processes below have nothing left */
    bool calm;       /* no more faults */
    bool last_came;
    int64_t last_at;
    struct flow *flows;
    uint32_t flow_count, flows_over;
    uint32_t step,
        stepped; /* step_ns: number of steps that have begun; flows that finished the last one */
    int64_t step_began;
    uint32_t hurry;        /* steps that follow quickly */
    bool over;             /* counting has ended */
    uint64_t warm_bytes;   /* received before warm_ns */
    bool steady;           /* all flows have had a message */
    uint32_t buffer_bytes; /* of a connection's ring */
    uint32_t burst_bytes;  /* largest packet */
};

/* -- job_world.c */
#define START_NS NS_PER_S /* the world's clock at the start: so no time is 0 */
/* Runs all events until then. */
void world_until(struct job_world *w, int64_t until);
void world_add(struct job_world *w, int64_t at, enum event_kind kind, uint32_t subject);
/* Runs the process at that time, or earlier. */
void world_wake(struct job_world *w, struct process *p, int64_t at);
void world_wrong(struct job_world *w, const char *wrong, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A flow has finished the present step. */
void world_stepped(struct job_world *w);
/* A fault begins or ends: steps follow quickly. */
void world_fault_step(struct job_world *w);
void world_trace(struct job_world *w, uint64_t a, uint64_t b);

/* -- job_process.c */
MUST_CHECK int process_start(struct job_world *w, uint32_t index);
/* Runs its application and its transport, if it is due now. */
void process_run(struct job_world *w, struct process *p);
/* Kills the process, with all that it has. */
void process_kill(struct job_world *w, struct process *p);
/* Ends the process; it must leave nothing behind. */
void process_end(struct job_world *w, struct process *p);
/* Puts the in-band delays and the receivers' limits of all processes into the result; from here on they count. */
void processes_read(struct job_world *w);
void processes_forget(struct job_world *w);

/* -- job_io.c */
void process_io(struct process *p);
int64_t process_raw(const struct process *p, int64_t at);
int64_t process_true(const struct process *p, int64_t raw);
/* kernel: the stamp of a kernel or a NIC. */
struct io_stamp process_stamp(const struct process *p, int64_t at, bool kernel);
/* Something that a poll would report happened at that end. */
void process_ready(struct job_world *w, uint32_t conn, uint8_t end);
int process_file(struct process *p, uint32_t conn, uint8_t end);

/* -- job_tcp.c */
#define TCP_SEGMENT 1448u /* bytes */
struct conn *tcp_conn(struct job_world *w, uint32_t conn);
uint32_t tcp_new_conn(struct job_world *w);
void tcp_maybe_free(struct job_world *w, uint32_t conn); /* frees it once both ends are done */
void tcp_die(struct job_world *w, uint32_t conn, uint8_t end, int error);
int64_t tcp_rto(const struct job_world *w, const struct end *e);
void tcp_set_timer(struct job_world *w, uint32_t conn, uint8_t end);
void tcp_pump(struct job_world *w, uint32_t conn, uint8_t end); /* sends as much as it may */
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
/* a device on the path resets it */
void sim_reset(struct job_world *w, uint32_t conn);
/* A stranger connects to a process and sends nothing, or nonsense. */
bool sim_stranger(struct job_world *w, uint32_t process);
void sim_info(struct job_world *w, uint32_t conn, uint8_t end, struct io_info *ret);

/* -- job_rdma.c */
#define JOB_PAIRS_MAX 4096
void process_rdma(struct process *p);
void sim_pair(struct job_world *w, uint32_t pair);
void sim_pair_packet(struct job_world *w, uint32_t packet);
void sim_pairs_remove(struct job_world *w, uint32_t nic); /* its device is gone */
/* A NIC's device is gone, or is about to come back: its keys die, for good. */
void sim_keys_die(struct job_world *w, uint32_t nic);
void sim_keys_return(struct job_world *w, uint32_t nic); /* it is back, with other keys */
bool sim_pair_break(struct job_world *w);                /* one queue pair fails by itself */
void sim_pairs_kill(struct job_world *w, uint32_t process);
void sim_pairs_done(struct job_world *w);

/* -- job_fault.c */
/* by: 1; -1 when it is over. NIC_DOWN, NIC_HOLE, NIC_IN, NIC_OUT */
void sim_nic_cut(struct job_world *w, uint32_t nic, enum job_fault kind, int by);
MUST_CHECK int fault_begin(struct job_world *w);
void fault_next(struct job_world *w);
void fault_heal(struct job_world *w, uint32_t slot);
void fault_heal_all(struct job_world *w);
void fault_last(struct job_world *w);

/* -- job_pattern.c */
/* Number of processes of one host. */
uint32_t pattern_sharing(const struct job_world *w);
bool pattern_low(const struct job_world *w, uint32_t process);
/* The next process of its job. */
uint32_t pattern_next(const struct job_world *w, uint32_t process);
bool pattern_talks(const struct job_world *w, uint32_t from, uint32_t to);

/* -- job_content.c */
/* A random size of at most `max`; most are small. */
uint32_t content_size(uint64_t seed, uint32_t max);
void content_make(uint8_t *bytes, uint32_t size, uint64_t seed);
/* True if the bytes are the content of that seed. */
bool content_is(const uint8_t *bytes, uint32_t size, uint64_t seed);
bool content_is_pattern(const uint8_t *bytes, size_t size, uint8_t pattern);

/* -- job_brown.c */
/* Counts what came before the brown-out, from here on. */
MUST_CHECK int brown_warm(struct job_world *w);
void brown_begin(struct job_world *w);
/* Called each BROWN_WINDOW_NS from then on. */
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
/* No more messages, after those that receivers already wait for. */
void rank_last(struct job_world *w);
/* Polls, posts and checks; returns when it needs to run again. */
int64_t rank_run(struct job_world *w, struct process *p);
/* One end of some communicator is given up in the middle. */
bool rank_abort(struct job_world *w);
/* The process is about to die or to be cut off: errors to and from it are allowed. */
void rank_excuse(struct job_world *w, uint32_t process);
void rank_killed(struct job_world *w, uint32_t process);
bool rank_over(struct job_world *w);
void rank_stuck(struct job_world *w);
void rank_done(struct job_world *w);

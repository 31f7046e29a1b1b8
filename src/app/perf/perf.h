/* perf.h: what the parts of `foliot perf` share.
 *
 *   options.c      reads the command line and the environment
 *   launch.c       starts the ranks' processes: here, in a lab, by ssh; or is one rank of mpirun, srun or torchrun
 *   rank.c         one rank: its plugin, its connections, all sizes in turn
 *   size.c         one size: timed and checked
 *   plan.c         a collective as a list of transfers per connection (pure)
 *   engine.c       runs a plan over a plugin, as NCCL's proxy does
 *   data.c         element types, sums, patterns whose result is known
 *   meet.c         how ranks find each other and wait for each other
 *   report.c       nccl-tests' table and JSON
 *   live.c         prints each lane once a second, from the ranks' job pages
 *   agent.c        one rank of an audit's test, in a sandbox
 *   ways.c         the rate of each path through the fabric between two hosts
 *   incast.c       many ranks send to one, so that a queue grows
 *   memory.c       the memory bandwidth of all processors of this host together
 *   net_client.c   any network plugin, v6 to v12, as one interface, as NCCL's own shims do
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "app/perf/net_client.h"
#include "base/bug.h"

#define PERF_RANK_MAX    4096
#define PERF_HOST_MAX    512
#define PERF_CHANNEL_MAX 32
#define PERF_STEPS       8 /* transfers in flight per connection, as in NCCL */

/* -- data */

enum perf_type { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT32, FLOAT64, PERF_TYPES };
enum perf_reduction { SUM, PROD, MAX, MIN, PERF_REDUCTIONS };

extern const char *const perf_type_names[PERF_TYPES + 1];           /* ends with NULL */
extern const char *const perf_reduction_names[PERF_REDUCTIONS + 1]; /* ends with NULL */
size_t perf_type_size(enum perf_type type);
/* to[i] = to[i] op from[i] */
void perf_reduce(enum perf_type type, enum perf_reduction op, void *to, const void *from,
                 size_t count);
/* Elements first ... first + count - 1 of `rank`'s contribution. They are small whole numbers, so that any order of summing gives
 * the same bits. `raw`: any bits, for operations that only move data. */
struct perf_pattern {
    enum perf_type type;
    enum perf_reduction op;
    bool raw;
    uint64_t seed;
};
void perf_fill(const struct perf_pattern *pattern, void *to, int rank, size_t first, size_t count);
/* The number of wrong elements. The right ones are rank's contribution, or the reduction over all ranks (rank < 0). */
uint64_t perf_wrong(const struct perf_pattern *pattern, const void *data, int rank, int ranks,
                    size_t first, size_t count);

/* -- plans */

enum perf_operation {
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    BROADCAST,
    SEND_RECEIVE,
    PING_PONG,
    GATHER,
    PERF_OPERATIONS
};

enum transfer_kind {
    SEND_INPUT,
    SEND_OUTPUT,
    SEND_SLOT,      /* the content of a slot: received and reduced */
    RECEIVE_OUTPUT, /* directly to its place in the output */
    RECEIVE_REDUCE, /* into a slot, reduced with the input; it is sent on */
    RECEIVE_FINISH, /* into a slot, then reduced with the input into the output */
};

struct transfer {
    enum transfer_kind kind;
    int after;     /* a send waits for this receive of its channel; -1: for none */
    size_t offset; /* in the input or in the output */
    size_t to;     /* RECEIVE_FINISH: in the output */
    size_t size;
};

/* One connection's transfers, in order. A channel's send line and receive line are neighbours (lines 2k and 2k + 1). A send's
 * `after` is the index of a transfer in the neighbouring line. */
struct line {
    int peer, channel; /* peer -1: unused */
    bool sends;
    struct transfer *transfers;
    int count, capacity;
};

struct plan {
    struct line *lines;
    int line_count;
};

struct plan_wish {
    enum perf_operation operation;
    int rank, ranks, channels, root;
    size_t bytes;   /* all-gather, reduce-scatter, all-to-all: per rank; other operations: in all */
    size_t message; /* the largest transfer */
};

/* Makes the lines of that collective, without transfers: which ranks connect to which. -ENOMEM. */
MUST_CHECK int plan_init(struct plan *plan, const struct plan_wish *wish);
/* Makes the transfers. They replace earlier ones. */
MUST_CHECK int plan_fill(struct plan *plan, const struct plan_wish *wish);
void plan_done(struct plan *plan);

/* -- meeting */

enum { MEET_SECRET_SIZE = 16, MEET_SUM_MAX = 8 };

struct meet {
    int rank, ranks;
    int *sockets; /* rank 0: one for each other rank; other ranks: only [0] */
    uint8_t secret[MEET_SECRET_SIZE];
    bool has_secret;
    bool saw_other; /* a program came that meets in the way of another release */
};

/* where: "unix:/path" or "address:port"; rank 0 listens there. secret: MEET_SECRET_SIZE bytes that only these ranks have; NULL:
 * none. -ETIMEDOUT after timeout_s. -EPROTONOSUPPORT instead, at rank 0: a rank of another release of foliot came. -ECONNREFUSED
 * instead, at another rank: rank 0 closed the connection after its first message, as another release does. -EMFILE: rank 0 may
 * not open a descriptor for each rank (it raises its limit up to `ulimit -Hn`). */
MUST_CHECK int meet_open(struct meet *meet, const char *where, int rank, int ranks, int timeout_s,
                         const uint8_t *secret);
/* Each rank gives `size` bytes in mine; all gets ranks x size bytes, by rank. */
MUST_CHECK int meet_exchange(struct meet *meet, const void *mine, size_t size, void *all);
/* Gives the sums over all ranks, and the largest values, of up to MEET_SUM_MAX figures. */
MUST_CHECK int meet_sum(struct meet *meet, const double *mine, int count, double *ret_sum,
                        double *ret_max);
MUST_CHECK int meet_barrier(struct meet *meet);
/* Each rank sends letters to some ranks. `out`: its own, sorted by `to`. `in`: the `expected` letters for this rank, with their
 * senders in `from`. One rank may send another at most PERF_CHANNEL_MAX letters. -EPROTO: another number of letters came. */
struct meet_letter {
    int32_t from, to, channel;
    char handle[NCCL_HANDLE_SIZE];
};
MUST_CHECK int meet_post(struct meet *meet, const struct meet_letter *out, int count,
                         struct meet_letter *in, int expected);
void meet_close(struct meet *meet);

/* -- options */

struct perf_options {
    enum perf_operation operation;
    enum perf_type type;
    enum perf_reduction reduction;
    size_t bytes_min, bytes_max, step_bytes, step_factor, message;
    int iterations, warmups, check, root, channels, device, net_version, timeout_s, wait_us,
        pause_ms;
    double duration_s;
    const char *plugin, *json_file, *trace;
    bool json;
    int rank, ranks; /* rank -1: this process starts all ranks */
    int job, jobs;
    char meet[160];
};

/* The ranks to start, and their hosts. */
struct perf_launch {
    struct perf_options options;
    char *hosts[PERF_HOST_MAX]; /* --hosts: names for ssh, or hosts of `lab` */
    int host_count;
    bool live;
    const char *lab, *host_list; /* NULL: not given */
    int argc;
    char **argv;
};

/* Reads the command line over the defaults in `launch`. False: the program ends with *ret_status; the reason was printed on
 * stderr. */
bool perf_read_arguments(struct perf_launch *launch, int argc, char *argv[], int *ret_status);
/* Reads a number within [low, high]. False: it is no such number, and *ret is unchanged. */
bool perf_read_int(const char *text, int low, int high, int *ret);
/* Reads the rank, the number of ranks and the address of rank 0 from the launcher's environment (mpirun, srun, torchrun). */
void perf_read_environment(struct perf_options *options);
/* Finds rank 0 for a rank of a launcher that gives no address: Slurm's first node, or this machine if all ranks run on it. False:
 * the address can't be known. */
bool perf_find_meeting(struct perf_options *options);
/* A port for rank 0, the same for all ranks, which know `number`. It lies below the range of ports that the kernel gives to
 * connecting sockets (32768 and up, ip_local_port_range). A port in that range may be in use. A rank that connects to it before
 * rank 0 listens may even get the same port itself, and so connect to itself. */
int perf_meeting_port(long number);

/* -- engine */

struct engine_line {
    void *comm, *listen_comm;
    void *mhandles[3]; /* input, output, slots */
    void *requests[PERF_STEPS];
    int64_t sent_ns[PERF_STEPS]; /* sends: when isend took the message */
    char *slots;
    bool slot_busy[PERF_STEPS];
    int posted, done;
};

struct engine {
    struct net_client *net;
    const struct plan *plan;
    const struct perf_options *options;
    struct engine_line *lines;
    char *input, *output;
    size_t element;
    FILE *trace, *sends;
    int64_t trace_flushed_ns;
    int64_t last_receive_ns, gap_ns; /* the longest time between two finished receives */
    int64_t waited_ns;               /* in which this rank polled and had nothing to do */
    uint64_t received_bytes;
    uint64_t message_count;
};

int64_t perf_now_ns(void);
/* Runs the plan once. Returns NCCL's result of the call that failed, or ncclTimeout if nothing moved for timeout_s. */
MUST_CHECK enum nccl_result engine_run(struct engine *engine);

/* -- report */

struct perf_figure {
    double time_us, p50_us, p99_us, cpu_s_per_gb, gap_ms;
    double wrong;             /* negative: not checked */
    double own_us, own_wrong; /* as this rank alone measured it */
    /* the share of the time in which it is not known to have waited for others */
    double own_late;
};

struct perf_row {
    size_t size, count;
    struct perf_figure figures[2]; /* out of place, in place */
};

struct perf_member {
    int pid, device;
    char host[64], nic[64];
};

struct perf_report {
    const struct perf_options *options;
    FILE *out;
    double bandwidth_sum;
    int bandwidth_count;
    uint64_t wrong;
    char start[32];
    struct perf_row *rows;
    int row_count, row_capacity;
    int argc;
    char **argv;
};

/* Bus bandwidth over algorithm bandwidth, by nccl-tests' rule. */
double report_bus_factor(const struct perf_options *options);
void report_perf_begin(struct perf_report *report, const struct perf_member *members);
MUST_CHECK int report_perf_row(struct perf_report *report, const struct perf_row *row);
/* Exit status 0, or 1 if elements were wrong. */
int report_perf_end(struct perf_report *report, const struct perf_member *members);

/* -- live */

/* The ranks' job pages go into a folder of their own, which the environment names. It must be called before the ranks start. */
struct perf_live;
MUST_CHECK int perf_live_open(struct perf_live **ret_live);
/* Prints a frame on stderr once a second. It may be called often. NULL: it does nothing. */
void perf_live_look(struct perf_live *live);
void perf_live_close(struct perf_live *live);

/* -- a rank */

/* From now on a SIGINT ends the repetition of --duration, in this process and those that it forks. A second SIGINT ends the
 * process. */
void perf_catch_interrupt(void);
/* Runs all sizes. Returns an exit status. */
int perf_rank_main(const struct perf_options *options, FILE *out, int argc, char **argv);

/* -- agent */

/* One rank of an audit's test, for this host's agent. Its plan is a line on standard input, its result a line on standard output.
 * It ends at once when standard input is closed. Returns an exit status. */
int perf_agent_main(void);

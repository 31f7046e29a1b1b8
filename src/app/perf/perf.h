/* perf.h: what the parts of `foliot perf` share.
 *
 *   options.c      what it is told: the command line, the environment
 *   launch.c       the ranks' processes: here, in a lab, by ssh, or started by somebody else
 *   rank.c         one rank: its plugin, its connections, all sizes in turn
 *   size.c         one size: timed and checked
 *   plan.c         a collective as a list of transfers per connection (pure)
 *   engine.c       plays a plan over a plugin, as NCCL's proxy does
 *   data.c         element types, sums, patterns whose result is known
 *   meet.c         how ranks find each other and wait for each other
 *   report.c       nccl-tests' table and JSON
 *   live.c         each lane once a second, out of the ranks' job pages
 *   agent.c        one rank of an audit's test, in a sandbox
 *   ways.c         what each way through the fabric carries between two hosts
 *   memory.c       what all processors of this host carry from memory and to it
 *   net_client.c   any network plugin, v6 to v12, as one interface: what NCCL's own shims do
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
#define PERF_STEPS       8 /* transfers in flight per connection, as NCCL has it */

/* -- data */

enum perf_type { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT32, FLOAT64, PERF_TYPES };
enum perf_reduction { SUM, PROD, MAX, MIN, PERF_REDUCTIONS };

extern const char *const perf_type_names[PERF_TYPES + 1];           /* ends with NULL */
extern const char *const perf_reduction_names[PERF_REDUCTIONS + 1]; /* ends with NULL */
size_t perf_type_size(enum perf_type type);
/* to[i] = to[i] op from[i] */
void perf_reduce(enum perf_type type, enum perf_reduction op, void *to, const void *from,
                 size_t count);
/* Elements first ... first + count - 1 of what `rank` contributes. Small whole numbers, so that any order of
 * summing gives the same bits; `raw`: any bits, for what is only moved. */
struct perf_pattern {
    enum perf_type type;
    enum perf_reduction op;
    bool raw;
    uint64_t seed;
};
void perf_fill(const struct perf_pattern *pattern, void *to, int rank, size_t first, size_t count);
/* How many elements aren't what they should be: rank's contribution, or (rank < 0) all ranks' reduced. */
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
    SEND_SLOT,      /* what was received and reduced in a slot */
    RECEIVE_OUTPUT, /* to its place */
    RECEIVE_REDUCE, /* into a slot, reduced with the input, to be sent on */
    RECEIVE_FINISH, /* into a slot, reduced with the input into the output */
};

struct transfer {
    enum transfer_kind kind;
    int after;     /* a send waits for this receive of its channel; -1: for none */
    size_t offset; /* of input or output */
    size_t to;     /* RECEIVE_FINISH: of output */
    size_t size;
};

/* One connection's transfers, in order. A channel has its send line and its receive line beside each other
 * (lines 2k, 2k + 1): a send's `after` means its neighbour. */
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
    size_t bytes;   /* all-gather, reduce-scatter, all-to-all: per rank; else in all */
    size_t message; /* largest transfer */
};

/* Lines of that collective, without transfers: who talks with whom. -ENOMEM. */
MUST_CHECK int plan_init(struct plan *plan, const struct plan_wish *wish);
/* Its transfers; replaces what there was. */
MUST_CHECK int plan_fill(struct plan *plan, const struct plan_wish *wish);
void plan_done(struct plan *plan);

/* -- meeting */

enum { MEET_SECRET_SIZE = 16, MEET_SUM_MAX = 8 };

struct meet {
    int rank, ranks;
    int *sockets; /* rank 0: of each other rank; others: [0] */
    uint8_t secret[MEET_SECRET_SIZE];
    bool has_secret;
    bool saw_other; /* somebody came who meets as another release does */
};

/* where: "unix:/path" or "address:port"; rank 0 listens there. secret: MEET_SECRET_SIZE bytes that all ranks have and nobody
 * else; NULL: none. -ETIMEDOUT after timeout_s; then -EPROTONOSUPPORT: to rank 0 came one of another release of foliot, and
 * -ECONNREFUSED: rank 0 turned this one away at its first word, as another release does.
 * -EMFILE: rank 0 may not open a descriptor for each rank (`ulimit -Hn`); up to that it raises its limit. */
MUST_CHECK int meet_open(struct meet *meet, const char *where, int rank, int ranks, int timeout_s,
                         const uint8_t *secret);
/* mine of `size` bytes; all gets ranks x size. */
MUST_CHECK int meet_exchange(struct meet *meet, const void *mine, size_t size, void *all);
/* Of up to MEET_SUM_MAX figures the sums over all ranks, and the largest. */
MUST_CHECK int meet_sum(struct meet *meet, const double *mine, int count, double *ret_sum,
                        double *ret_max);
MUST_CHECK int meet_barrier(struct meet *meet);
/* Letters from each to some: `out` by `to`; `in` gets the `expected` ones that are for this rank, with who wrote them. At most
 * PERF_CHANNEL_MAX of one rank to another. -EPROTO: another number came. */
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
    int rank, ranks; /* rank -1: start all */
    int job, jobs;
    char meet[160];
};

/* What is to be started, and where. */
struct perf_launch {
    struct perf_options options;
    char *hosts[PERF_HOST_MAX]; /* --hosts: names for ssh, or hosts of `lab` */
    int host_count;
    bool live;
    const char *lab, *host_list; /* NULL: not given */
    int argc;
    char **argv;
};

/* Reads the command line over the defaults in `launch`. False: it is done with, *ret_status is the exit status; said
 * on stderr. */
bool perf_read_arguments(struct perf_launch *launch, int argc, char *argv[], int *ret_status);
/* A number within [low, high]; false: it isn't, and *ret is as it was. */
bool perf_read_int(const char *text, int low, int high, int *ret);
/* Who starts us (mpirun, srun, torchrun) says which rank we are of how many, and where rank 0 is. */
void perf_read_environment(struct perf_options *options);
/* Where a rank that somebody else started finds rank 0, if nobody says: Slurm's first node; this machine, if all are
 * on it. False: it can't be known. */
bool perf_find_meeting(struct perf_options *options);
/* A port for rank 0, the same for all who know `number`. It is below those that kernels hand out to whoever connects
 * (32768 and up, ip_local_port_range): one of these may be taken, and a rank that connects to it before rank 0 listens
 * may even be given it, and so be connected to itself. */
int perf_meeting_port(long number);

/* -- engine */

struct engine_line {
    void *comm, *listen_comm;
    void *mhandles[3]; /* input, output, slots */
    void *requests[PERF_STEPS];
    int64_t sent_ns[PERF_STEPS]; /* sends: when isend took it */
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
    int64_t last_receive_ns, gap_ns; /* longest time between two receives done */
    int64_t waited_ns;               /* in which it had nothing to do, and looked */
    uint64_t received_bytes;
    uint64_t message_count;
};

int64_t perf_now_ns(void);
/* Plays the plan once. NCCL's result of whatever failed; ncclTimeout when nothing moved for timeout_s. */
MUST_CHECK enum nccl_result engine_run(struct engine *engine);

/* -- report */

struct perf_figure {
    double time_us, p50_us, p99_us, cpu_s_per_gb, gap_ms;
    double wrong;             /* negative: not checked */
    double own_us, own_wrong; /* as this rank alone has it */
    double own_late;          /* share of it in which it is not known to have waited for others */
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

/* Bus bandwidth over the algorithm's, as nccl-tests has it. */
double report_bus_factor(const struct perf_options *options);
void report_perf_begin(struct perf_report *report, const struct perf_member *members);
MUST_CHECK int report_perf_row(struct perf_report *report, const struct perf_row *row);
/* Status 0, or 1 if there were wrong elements. */
int report_perf_end(struct perf_report *report, const struct perf_member *members);

/* -- live */

/* The ranks' job pages go to a folder of our own, which the environment then names: before the ranks are started. */
struct perf_live;
MUST_CHECK int perf_live_open(struct perf_live **ret_live);
/* Once a second a frame on stderr; called often. NULL: does nothing. */
void perf_live_look(struct perf_live *live);
void perf_live_close(struct perf_live *live);

/* -- a rank */

/* From now on a SIGINT ends what --duration repeats, in this process and those it forks; a second one ends the process. */
void perf_catch_interrupt(void);
/* Runs all sizes; exit status. */
int perf_rank_main(const struct perf_options *options, FILE *out, int argc, char **argv);

/* -- agent */

/* One rank of an audit's test, for this host's agent: its plan is a line on standard input, what came of it a line on standard
 * output. Ends at once when standard input does. Exit status. */
int perf_agent_main(void);

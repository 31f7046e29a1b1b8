/* options.c: the command line of `foliot perf`, and the environment of a launcher that started it as one of many ranks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/foliot_command.h"
#include "app/perf/perf.h"
#include "platform/config/command_line.h"

static const char usage[] =
    "Usage: foliot perf [OPERATION] [OPTIONS]\n"
    "What nccl-tests measure, on host memory, through a network plugin. OPERATION: all_reduce\n"
    "(default), all_gather, reduce_scatter, alltoall, broadcast, sendrecv, pingpong, gather.\n";

bool perf_read_int(const char *text, int low, int high, int *ret)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < low || value > high) {
        return false;
    }
    *ret = (int)value;
    return true;
}

/* "all_reduce", or the name of nccl-tests' program: "all_reduce_perf". */
static bool read_operation(const char *text, enum perf_operation *ret)
{
    static const char *const names[PERF_OPERATIONS] = {"all_reduce", "all_gather", "reduce_scatter",
                                                       "alltoall",   "broadcast",  "sendrecv",
                                                       "pingpong",   "gather"};
    const size_t whole = strlen(text);
    const size_t size = whole > 5 && strcmp(text + whole - 5, "_perf") == 0 ? whole - 5 : whole;

    for (int i = 0; i < PERF_OPERATIONS; i++) {
        if (strlen(names[i]) == size && memcmp(names[i], text, size) == 0) {
            *ret = (enum perf_operation)i;
            return true;
        }
    }
    return false;
}

static bool take_meeting(const char *text, void *to)
{
    struct perf_options *o = to;
    return (size_t)snprintf(o->meet, sizeof(o->meet), "%s", text) < sizeof(o->meet);
}

#define HEADING(text)                                                                              \
    {                                                                                              \
        .kind = OPTION_HEADING, .help = (text)                                                     \
    }

/* COMMAND_LINE_GOOD, or the exit status. */
static int read_line(struct perf_launch *l, int argc, char *argv[], int *ret_first)
{
    static const char *const transports[] = {"tcp", "auto", "roce", NULL};
    static const char *const carries[] = {"copy", "direct", NULL};
    struct perf_options *o = &l->options;
    int transport = -1, rdma = -1;
    const struct option_entry entries[] = {
        HEADING("As in nccl-tests:"),
        {NULL, 'b', OPTION_SIZE, &o->bytes_min, 0, 1e12, .value = "SIZE",
         .help = "smallest size (32M)"},
        {NULL, 'e', OPTION_SIZE, &o->bytes_max, 0, 1e12, .value = "SIZE",
         .help = "largest size (32M)"},
        {NULL, 'f', OPTION_SIZE, &o->step_factor, 0, 1e12, .value = "FACTOR",
         .help = "from one size to the next"},
        {NULL, 'i', OPTION_SIZE, &o->step_bytes, 0, 1e12, .value = "BYTES",
         .help = "from one size to the next, instead of -f"},
        {NULL, 'n', OPTION_COUNT, &o->iterations, 1, 1e9, .value = "N",
         .help = "timed iterations (20)"},
        {NULL, 'w', OPTION_COUNT, &o->warmups, 0, 1e6, .value = "N", .help = "warm-up (1)"},
        {NULL, 'c', OPTION_COUNT, &o->check, 0, 1000, .value = "N",
         .help = "checked rounds (1; 0: none)"},
        {NULL, 'd', OPTION_CHOICE, &o->type, .choices = perf_type_names, .value = "TYPE",
         .help = "int8 uint8 int32 uint32 int64 uint64 float double"},
        {NULL, 'o', OPTION_CHOICE, &o->reduction, .choices = perf_reduction_names, .value = "OP",
         .help = "sum prod max min"},
        {NULL, 'r', OPTION_COUNT, &o->root, 0, PERF_RANK_MAX - 1, .value = "ROOT",
         .help = "the root of broadcast and gather"},
        {NULL, 'T', OPTION_COUNT, &o->timeout_s, 1, 1e6, .value = "SEC",
         .help = "stop with an error if nothing moves for so long (120)"},
        {NULL, 'J', OPTION_TEXT, &o->json_file, .value = "FILE", .help = "nccl-tests' JSON"},
        HEADING("Plugin:"),
        {"plugin", 0, OPTION_TEXT, &o->plugin, .value = "P",
         .help = "path, library or suffix (default: NCCL_NET_PLUGIN, else foliot)"},
        {"transport", 0, OPTION_CHOICE, &transport, .choices = transports, .value = "T",
         .help =
             "tcp, auto (queue pairs if both ends have them) or roce (warns if one lacks them): "
             "sets FOLIOT_TRANSPORT"},
        {"rdma", 0, OPTION_CHOICE, &rdma, .choices = carries, .value = "HOW",
         .help = "copy, or direct (NICs write to the final place): sets FOLIOT_RDMA"},
        {"net-version", 0, OPTION_INT, &o->net_version, NET_VERSION_MIN, NET_VERSION_MAX,
         .value = "N", .help = "version of the network table, 6 to 12 (default: the newest)"},
        {"device", 0, OPTION_INT, &o->device, 0, 1000, .value = "N",
         .help = "the number of the plugin's device (default: by channel)"},
        {"channels", 0, OPTION_INT, &o->channels, 1, PERF_CHANNEL_MAX, .value = "N",
         .help = "rings (2)"},
        {"message", 0, OPTION_SIZE, &o->message, 16, 1 << 30, .value = "SIZE",
         .help = "largest transfer (512K)"},
        HEADING("Ranks (default: those of mpirun, srun or torchrun; otherwise 2 here):"),
        {"ranks", 0, OPTION_INT, &o->ranks, 1, PERF_RANK_MAX, .value = "N",
         .help = "number of ranks, here or on the hosts of --hosts"},
        {"hosts", 0, OPTION_TEXT, &l->host_list, .value = "A,B,…",
         .help = "start ranks by ssh, on these hosts in turn"},
        {"lab", 0, OPTION_TEXT, &l->lab, .value = "NAME",
         .help = "start ranks on the hosts of a lab (with --hosts 0,4,1,5: on those)"},
        {"rank", 0, OPTION_INT, &o->rank, 0, PERF_RANK_MAX - 1, .value = "N",
         .help = "this process is rank N of --ranks"},
        {"meet", 0, OPTION_OWN, o, .take = take_meeting, .value = "ADDRESS:PORT",
         .help = "the address at which rank 0 listens"},
        {"jobs", 0, OPTION_INT, &o->jobs, 1, 64, .value = "N",
         .help = "number of jobs at once, each with all these ranks"},
        {"job", 0, OPTION_INT, &o->job, 0, 63},
        HEADING("Measuring:"),
        {"duration", 0, OPTION_NUMBER, &o->duration_s, 0, 1e7, .value = "SEC",
         .help = "repeat each size for so long"},
        {"wait", 0, OPTION_INT, &o->wait_us, 0, 100000, .value = "US",
         .help =
             "sleep so long when nothing moves, instead of yielding (to measure processor time)"},
        {"pause", 0, OPTION_INT, &o->pause_ms, 0, 60000, .value = "MS",
         .help = "pause between two iterations, as a job that computes"},
        {"trace", 0, OPTION_TEXT, &o->trace, .value = "DIR",
         .help = "write every receive and send with its time into this folder"},
        {"json", 0, OPTION_FLAG, &o->json, .help = "JSON instead of the table"},
        {"live", 0, OPTION_FLAG, &l->live,
         .help = "each lane's rate, delay and state on stderr, once a second (ranks here or in a "
                 "lab)"},
        {"help", 'h', OPTION_HELP, .help = "this text"},
    };
    const struct option_set set = {.program = "foliot perf",
                                   .usage = usage,
                                   .entries = entries,
                                   .count = ARRAY_COUNT(entries),
                                   .words_most = 1,
                                   .words = "one OPERATION"};
    const int r = command_line_read(&set, argc, argv, ret_first);
    if (transport >= 0) {
        setenv("FOLIOT_TRANSPORT", transports[transport], 1);
    }
    if (rdma >= 0) {
        setenv("FOLIOT_RDMA", carries[rdma], 1);
    }
    return r;
}

static bool read_hosts(struct perf_launch *l)
{
    char *list = l->host_list != NULL ? strdup(l->host_list) : NULL, *name;

    while (list != NULL && (name = strsep(&list, ",")) != NULL) {
        if (*name == '\0' || l->host_count == PERF_HOST_MAX) {
            return false;
        }
        l->hosts[l->host_count++] = name;
    }
    return true;
}

bool perf_read_arguments(struct perf_launch *l, int argc, char *argv[], int *ret_status)
{
    struct perf_options *o = &l->options;
    int first = 0;

    *ret_status = read_line(l, argc, argv, &first);
    if (*ret_status != COMMAND_LINE_GOOD) {
        return false;
    }
    *ret_status = EXIT_USAGE;
    if (o->message % 16 != 0) {
        fprintf(stderr, "foliot perf: --message: expected a multiple of 16 bytes, found %zu\n",
                o->message);
        return false;
    }
    if (first < argc && !read_operation(argv[first], &o->operation)) {
        fprintf(
            stderr,
            "foliot perf: expected all_reduce, all_gather, reduce_scatter, alltoall, broadcast, "
            "sendrecv, gather or pingpong, found '%s'\n",
            argv[first]);
        return false;
    }
    if (!read_hosts(l)) {
        fprintf(stderr, "foliot perf: --hosts: names separated by commas, at most %d\n",
                PERF_HOST_MAX);
        return false;
    }
    if (o->bytes_max < o->bytes_min) {
        o->bytes_max = o->bytes_min;
    }
    if (o->step_factor < 2 && o->step_bytes == 0) {
        o->step_bytes = 1 << 20;
    }
    return true;
}

/* -- one rank of a job that mpirun, srun or torchrun started */

void perf_read_environment(struct perf_options *o)
{
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"SLURM_PROCID", "SLURM_NTASKS"},
                                           {"RANK", "WORLD_SIZE"}};
    const char *address = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");

    for (size_t i = 0; o->rank < 0 && o->ranks == 0 && i < ARRAY_COUNT(names); i++) {
        const char *rank = getenv(names[i][0]), *ranks = getenv(names[i][1]);
        int r, n;
        if (rank != NULL && ranks != NULL && perf_read_int(rank, 0, PERF_RANK_MAX - 1, &r) &&
            perf_read_int(ranks, 1, PERF_RANK_MAX, &n) && r < n) {
            o->rank = r;
            o->ranks = n;
        }
    }
    if (o->rank >= 0 && o->meet[0] == '\0' && address != NULL) {
        snprintf(o->meet, sizeof(o->meet), "%s:%s", address, port != NULL ? port : "29507");
    }
}

/* The first of "gpu[03-07,12],x": the host of rank 0. */
static void first_of_nodes(const char *list, char *ret, size_t size)
{
    const size_t head = strcspn(list, "[,");
    size_t digits = 0;

    if (list[head] == '[') {
        digits = strcspn(list + head + 1, "-,]");
    }
    snprintf(ret, size, "%.*s%.*s", (int)head, list, (int)digits,
             digits > 0 ? list + head + 1 : "");
}

int perf_meeting_port(long number)
{
    return 20000 + (int)((unsigned long)number % 12000);
}

bool perf_find_meeting(struct perf_options *o)
{
    const char *nodes = getenv("SLURM_STEP_NODELIST"), *job = getenv("SLURM_JOB_ID");
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    char first[100];
    int n = 0;

    if (o->meet[0] != '\0' || o->ranks == 1) {
        return true;
    }
    if (nodes != NULL && job != NULL) {
        first_of_nodes(nodes, first, sizeof(first));
        snprintf(o->meet, sizeof(o->meet), "%s:%d", first,
                 perf_meeting_port(strtol(job, NULL, 10)));
        return true;
    }
    if (local != NULL && perf_read_int(local, 1, PERF_RANK_MAX, &n) && n == o->ranks) {
        snprintf(o->meet, sizeof(o->meet), "unix:/tmp/foliot-perf-%d-%d", (int)getuid(),
                 (int)getppid());
        return true;
    }
    return false;
}

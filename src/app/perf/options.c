/* options.c: what `foliot perf` is told: on its command line, and by whoever started it as one rank of many. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/foliot_command.h"
#include "app/perf/perf.h"

static const char usage[] =
    "Usage: foliot perf [OPERATION] [OPTIONS]\n"
    "What nccl-tests measure, on host memory, through a network plugin. OPERATION: all_reduce\n"
    "(default), all_gather, reduce_scatter, alltoall, broadcast, sendrecv, pingpong, gather.\n"
    "\n"
    "As in nccl-tests:\n"
    "  -b SIZE  -e SIZE  from, to (default 32M); -f FACTOR or -i BYTES between them\n"
    "  -n N  -w N  -c N  timed iterations (20), warm-up (1), checked rounds (1; 0: none)\n"
    "  -d TYPE  -o OP    int8 uint8 int32 uint32 int64 uint64 float double; sum prod max min\n"
    "  -r ROOT  -T SEC   broadcast's and gather's root; give up when nothing moves (default 120)\n"
    "  -J FILE           its JSON\n"
    "\n"
    "Plugin:\n"
    "  --plugin P        path, library or suffix (default: NCCL_NET_PLUGIN, else foliot)\n"
    "  --net-version N   6 to 12 (default: the newest)   --device N  (default: by channel)\n"
    "  --channels N      rings (2)                        --message SIZE  largest transfer (512K)\n"
    "\n"
    "Ranks (without any: those of mpirun, srun or torchrun, else 2 here):\n"
    "  --ranks N         so many here, or on the hosts named\n"
    "  --hosts A,B,…     by ssh, one rank each in turn    --lab NAME  on the hosts of a lab\n"
    "                    (with --hosts 0,4,1,5: those)\n"
    "  --rank N          this is one rank of --ranks      --meet ADDRESS:PORT  rank 0 listens "
    "there\n"
    "  --jobs N          so many at once, each with all these ranks\n"
    "\n"
    "  --duration SEC    each size for so long            --trace DIR  every receive and "
    "send, with its time\n"
    "  --wait US         sleep when nothing moves, instead of yielding: for processor time\n"
    "  --pause MS        between two iterations, as a job that computes\n"
    "  --json            JSON instead of the table\n"
    "  --live            each lane's rate, delay and state on stderr, once a second (ranks here or "
    "in a lab)\n";

enum long_option {
    OPTION_PLUGIN = 256,
    OPTION_VERSION,
    OPTION_DEVICE,
    OPTION_CHANNELS,
    OPTION_MESSAGE,
    OPTION_RANKS,
    OPTION_HOSTS,
    OPTION_LAB,
    OPTION_RANK,
    OPTION_MEET,
    OPTION_JOBS,
    OPTION_JOB,
    OPTION_DURATION,
    OPTION_TRACE,
    OPTION_WAIT,
    OPTION_PAUSE,
    OPTION_JSON,
    OPTION_LIVE,
    OPTION_HELP,
};

static const struct option option_table[] = {
    {"plugin", required_argument, NULL, OPTION_PLUGIN},
    {"net-version", required_argument, NULL, OPTION_VERSION},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"channels", required_argument, NULL, OPTION_CHANNELS},
    {"message", required_argument, NULL, OPTION_MESSAGE},
    {"ranks", required_argument, NULL, OPTION_RANKS},
    {"hosts", required_argument, NULL, OPTION_HOSTS},
    {"lab", required_argument, NULL, OPTION_LAB},
    {"rank", required_argument, NULL, OPTION_RANK},
    {"meet", required_argument, NULL, OPTION_MEET},
    {"jobs", required_argument, NULL, OPTION_JOBS},
    {"job", required_argument, NULL, OPTION_JOB},
    {"duration", required_argument, NULL, OPTION_DURATION},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"wait", required_argument, NULL, OPTION_WAIT},
    {"pause", required_argument, NULL, OPTION_PAUSE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"live", no_argument, NULL, OPTION_LIVE},
    {"help", no_argument, NULL, OPTION_HELP},
    {0},
};

/* "64K", "1.5M", "8G". */
static bool read_size(const char *text, double low, double high, double *ret)
{
    static const char units[] = "KMG";
    const char *unit;
    char *end;
    double value = strtod(text, &end);

    if (end == text) {
        return false;
    }
    unit = *end != '\0' ? strchr(units, *end & ~0x20) : NULL;
    if (unit != NULL && *unit != '\0') {
        for (long i = 0; i <= unit - units; i++) {
            value *= 1024;
        }
        end++;
        end += *end == 'B' || *end == 'b';
    }
    if (*end != '\0' || !(value >= low && value <= high)) {
        return false;
    }
    *ret = value;
    return true;
}

bool perf_read_int(const char *text, int low, int high, int *ret)
{
    double value;

    if (!read_size(text, low, high, &value) || value != (int)value) {
        return false;
    }
    *ret = (int)value;
    return true;
}

static bool read_bytes(const char *text, size_t *ret)
{
    double value;

    if (!read_size(text, 0, 1e12, &value)) {
        return false;
    }
    *ret = (size_t)value;
    return true;
}

static bool read_name(const char *text, const char *const *names, int count, int *ret)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], text) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool read_operation(const char *text, enum perf_operation *ret)
{
    static const char *const names[PERF_OPERATIONS] = {"all_reduce", "all_gather", "reduce_scatter",
                                                       "alltoall",   "broadcast",  "sendrecv",
                                                       "pingpong",   "gather"};
    char plain[32];
    int found;

    snprintf(plain, sizeof(plain), "%s", text);
    if (strlen(plain) > 5 && strcmp(plain + strlen(plain) - 5, "_perf") == 0) {
        plain[strlen(plain) - 5] = '\0';
    }
    if (!read_name(plain, names, PERF_OPERATIONS, &found)) {
        return false;
    }
    *ret = (enum perf_operation)found;
    return true;
}

static bool read_letter(struct perf_options *o, int c, const char *text)
{
    int value = 0;
    bool good;

    switch (c) {
    case 'b':
        return read_bytes(text, &o->bytes_min);
    case 'e':
        return read_bytes(text, &o->bytes_max);
    case 'i':
        return read_bytes(text, &o->step_bytes);
    case 'f':
        return read_bytes(text, &o->step_factor);
    case 'n':
        return perf_read_int(text, 1, 1000000000, &o->iterations);
    case 'w':
        return perf_read_int(text, 0, 1000000, &o->warmups);
    case 'c':
        return perf_read_int(text, 0, 1000, &o->check);
    case 'r':
        return perf_read_int(text, 0, PERF_RANK_MAX - 1, &o->root);
    case 'T':
        return perf_read_int(text, 1, 1000000, &o->timeout_s);
    case 'J':
        o->json_file = text;
        return true;
    case 'd':
        good = read_name(text, perf_type_names, PERF_TYPES, &value);
        o->type = good ? (enum perf_type)value : o->type;
        return good;
    default:
        good = read_name(text, perf_reduction_names, PERF_REDUCTIONS, &value);
        o->reduction = good ? (enum perf_reduction)value : o->reduction;
        return good;
    }
}

static bool read_long(struct perf_launch *l, int c, const char *text)
{
    struct perf_options *o = &l->options;

    switch (c) {
    case OPTION_PLUGIN:
        o->plugin = text;
        return true;
    case OPTION_VERSION:
        return perf_read_int(text, NET_VERSION_MIN, NET_VERSION_MAX, &o->net_version);
    case OPTION_DEVICE:
        return perf_read_int(text, 0, 1000, &o->device);
    case OPTION_CHANNELS:
        return perf_read_int(text, 1, PERF_CHANNEL_MAX, &o->channels);
    case OPTION_MESSAGE:
        return read_bytes(text, &o->message) && o->message >= 16 && o->message % 16 == 0 &&
               o->message <= 1 << 30;
    case OPTION_RANKS:
        return perf_read_int(text, 1, PERF_RANK_MAX, &o->ranks);
    case OPTION_RANK:
        return perf_read_int(text, 0, PERF_RANK_MAX - 1, &o->rank);
    case OPTION_JOBS:
        return perf_read_int(text, 1, 64, &o->jobs);
    case OPTION_JOB:
        return perf_read_int(text, 0, 63, &o->job);
    case OPTION_PAUSE:
        return perf_read_int(text, 0, 60000, &o->pause_ms);
    case OPTION_WAIT:
        return perf_read_int(text, 0, 100000, &o->wait_us);
    case OPTION_DURATION:
        return read_size(text, 0, 1e7, &o->duration_s);
    case OPTION_HOSTS:
        l->host_list = text;
        return true;
    case OPTION_LAB:
        l->lab = text;
        return true;
    case OPTION_TRACE:
        o->trace = text;
        return true;
    case OPTION_JSON:
        o->json = true;
        return true;
    case OPTION_LIVE:
        l->live = true;
        return true;
    default:
        return (size_t)snprintf(o->meet, sizeof(o->meet), "%s", text) < sizeof(o->meet);
    }
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

    optind = 0;
    for (int c, at = 0;
         (c = getopt_long(argc, argv, "b:e:i:f:n:w:c:d:o:r:J:T:", option_table, &at)) != -1;) {
        if (c == OPTION_HELP || c == '?') {
            fputs(usage, c == '?' ? stderr : stdout);
            *ret_status = c == '?' ? EXIT_USAGE : EXIT_WELL;
            return false;
        }
        if (!(c < 256 ? read_letter(o, c, optarg) : read_long(l, c, optarg))) {
            fprintf(stderr, "foliot perf: %s%c%s: not understood: '%s'\n", c < 256 ? "-" : "--",
                    c < 256 ? c : option_table[at].name[0],
                    c < 256 ? "" : option_table[at].name + 1, optarg);
            *ret_status = EXIT_USAGE;
            return false;
        }
    }
    *ret_status = EXIT_USAGE;
    if (optind < argc && (!read_operation(argv[optind], &o->operation) || optind + 1 < argc)) {
        fprintf(stderr, "foliot perf: no operation '%s' (foliot perf --help)\n", argv[argc - 1]);
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

/* The first of "gpu[03-07,12],x": where rank 0 is. */
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
        snprintf(o->meet, sizeof(o->meet), "%s:%ld", first, 20000 + strtol(job, NULL, 10) % 20000);
        return true;
    }
    if (local != NULL && perf_read_int(local, 1, PERF_RANK_MAX, &n) && n == o->ranks) {
        snprintf(o->meet, sizeof(o->meet), "unix:/tmp/foliot-perf-%d-%d", (int)getuid(),
                 (int)getppid());
        return true;
    }
    return false;
}

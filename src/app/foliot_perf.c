/* foliot_perf.c: `foliot perf`: nccl-tests where there is no GPU, over any network plugin. Options; and the ranks: started here,
 * on the hosts of a lab, by ssh, or each by somebody else (mpirun, srun). */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/foliot_command.h"
#include "app/perf.h"
#include "lab/agents.h"
#include "lab/lab.h"

#define HOSTS_MAX 512
#define CHILD_MAX 4096

static const char usage[] =
    "Usage: foliot perf [OPERATION] [OPTIONS]\n"
    "What nccl-tests measure, on host memory, through a network plugin. OPERATION: all_reduce\n"
    "(default), all_gather, reduce_scatter, alltoall, broadcast, sendrecv, pingpong.\n"
    "\n"
    "As in nccl-tests:\n"
    "  -b SIZE  -e SIZE  from, to (default 32M); -f FACTOR or -i BYTES between them\n"
    "  -n N  -w N  -c N  timed iterations (20), warm-up (1), checked rounds (1; 0: none)\n"
    "  -d TYPE  -o OP    int8 uint8 int32 uint32 int64 uint64 float double; sum prod max min\n"
    "  -r ROOT  -T SEC   broadcast's root; give up when nothing moves (default 120)\n"
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
    "  --duration SEC    each size for so long            --trace DIR  every receive, with its "
    "time\n"
    "  --wait US         sleep when nothing moves, instead of yielding: for processor time\n"
    "  --json            JSON instead of the table\n"
    "  --live            each lane's rate, delay and state on stderr, once a second (ranks here or "
    "in a lab)\n";

struct launch {
    struct perf_options options;
    char *hosts[HOSTS_MAX];
    int host_count;
    bool live;
    const char *lab, *host_list;
    int argc;
    char **argv;
};

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
    {"json", no_argument, NULL, OPTION_JSON},
    {"live", no_argument, NULL, OPTION_LIVE},
    {"help", no_argument, NULL, OPTION_HELP},
    {0},
};

/* -- reading */

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

static bool read_int(const char *text, int low, int high, int *ret)
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
                                                       "pingpong"};
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
        return read_int(text, 1, 1000000000, &o->iterations);
    case 'w':
        return read_int(text, 0, 1000000, &o->warmups);
    case 'c':
        return read_int(text, 0, 1000, &o->check);
    case 'r':
        return read_int(text, 0, PERF_RANK_MAX - 1, &o->root);
    case 'T':
        return read_int(text, 1, 1000000, &o->timeout_s);
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

static bool read_long(struct launch *l, int c, const char *text)
{
    struct perf_options *o = &l->options;

    switch (c) {
    case OPTION_PLUGIN:
        o->plugin = text;
        return true;
    case OPTION_VERSION:
        return read_int(text, NET_VERSION_MIN, NET_VERSION_MAX, &o->net_version);
    case OPTION_DEVICE:
        return read_int(text, 0, 1000, &o->device);
    case OPTION_CHANNELS:
        return read_int(text, 1, PERF_CHANNEL_MAX, &o->channels);
    case OPTION_MESSAGE:
        return read_bytes(text, &o->message) && o->message >= 16 && o->message % 16 == 0 &&
               o->message <= 1 << 30;
    case OPTION_RANKS:
        return read_int(text, 1, PERF_RANK_MAX, &o->ranks);
    case OPTION_RANK:
        return read_int(text, 0, PERF_RANK_MAX - 1, &o->rank);
    case OPTION_JOBS:
        return read_int(text, 1, 64, &o->jobs);
    case OPTION_JOB:
        return read_int(text, 0, 63, &o->job);
    case OPTION_WAIT:
        return read_int(text, 0, 100000, &o->wait_us);
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

static bool read_hosts(struct launch *l)
{
    char *list = l->host_list != NULL ? strdup(l->host_list) : NULL, *name;

    while (list != NULL && (name = strsep(&list, ",")) != NULL) {
        if (*name == '\0' || l->host_count == HOSTS_MAX) {
            return false;
        }
        l->hosts[l->host_count++] = name;
    }
    return true;
}

/* Who starts us says who we are. */
static void read_environment(struct perf_options *o)
{
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"SLURM_PROCID", "SLURM_NTASKS"},
                                           {"RANK", "WORLD_SIZE"}};
    const char *address = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");

    for (size_t i = 0; o->rank < 0 && o->ranks == 0 && i < ARRAY_COUNT(names); i++) {
        const char *rank = getenv(names[i][0]), *ranks = getenv(names[i][1]);
        int r, n;
        if (rank != NULL && ranks != NULL && read_int(rank, 0, PERF_RANK_MAX - 1, &r) &&
            read_int(ranks, 1, PERF_RANK_MAX, &n) && r < n) {
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

/* Where a rank that somebody else started finds rank 0, if nobody says: Slurm's first node; this machine, if all are
 * on it. */
static bool find_meeting(struct perf_options *o)
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
    if (local != NULL && read_int(local, 1, PERF_RANK_MAX, &n) && n == o->ranks) {
        snprintf(o->meet, sizeof(o->meet), "unix:/tmp/foliot-perf-%d-%d", (int)getuid(),
                 (int)getppid());
        return true;
    }
    return false;
}

/* -- starting */

static void name_meeting(struct launch *l, int job)
{
    char *meet = l->options.meet;
    const size_t size = sizeof(l->options.meet);

    if (l->host_count > 0 && l->lab == NULL) {
        snprintf(meet, size, "%s:%d", l->hosts[0], 20000 + (int)getpid() % 20000 + job);
    } else {
        snprintf(meet, size, "unix:/tmp/foliot-perf-%d-%d", (int)getpid(), job);
    }
}

static int enter_lab(struct launch *l, int rank)
{
    static struct lab lab;
    int host, rc = lab_open(&lab, l->lab);

    if (rc < 0) {
        fprintf(stderr, "foliot perf: there is no lab '%s': `foliot lab up` makes one\n", l->lab);
        return rc;
    }
    host = rank % lab.scenario.fabric.hosts;
    if (l->host_count > 0) {
        const char *name = l->hosts[rank % l->host_count];
        if (!read_int(strncmp(name, "host", 4) == 0 ? name + 4 : name, 0,
                      lab.scenario.fabric.hosts - 1, &host)) {
            fprintf(stderr, "foliot perf: lab '%s' has no host '%s'\n", l->lab, name);
            return -EINVAL;
        }
    }
    rc = lab_host_enter(&lab, host);
    if (rc < 0) {
        fprintf(stderr, "foliot perf: host%d: %s\n", host, strerror(-rc));
        return rc;
    }
    char name[32];
    snprintf(name, sizeof(name), "host%d", host);
    setenv("FOLIOT_PERF_HOST", name, 1);
    return 0;
}

/* The same command line again, over there; what decides on ranks goes before it. */
static void exec_ssh(struct launch *l, int rank, int job)
{
    const char *arguments[256];
    char rank_text[16], ranks_text[16], job_text[16], self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    int n = 0;

    self[length > 0 ? length : 0] = '\0';
    snprintf(rank_text, sizeof(rank_text), "%d", rank);
    snprintf(ranks_text, sizeof(ranks_text), "%d", l->options.ranks);
    snprintf(job_text, sizeof(job_text), "%d", job);
    arguments[n++] = "ssh";
    arguments[n++] = "-oBatchMode=yes";
    arguments[n++] = l->hosts[rank % l->host_count];
    arguments[n++] = self;
    arguments[n++] = "perf";
    for (int i = 1; i < l->argc && n < 240; i++) {
        if (strcmp(l->argv[i], "--hosts") == 0 || strcmp(l->argv[i], "--ranks") == 0 ||
            strcmp(l->argv[i], "--jobs") == 0) {
            i++;
        } else if (strncmp(l->argv[i], "--hosts=", 8) != 0 &&
                   strncmp(l->argv[i], "--ranks=", 8) != 0 &&
                   strncmp(l->argv[i], "--jobs=", 7) != 0) {
            arguments[n++] = l->argv[i];
        }
    }
    const char *const last[] = {"--rank", rank_text, "--ranks",       ranks_text, "--job",
                                job_text, "--meet",  l->options.meet, NULL};
    memcpy(&arguments[n], last, sizeof(last));
    execvp("ssh", (char *const *)arguments);
    fprintf(stderr, "foliot perf: ssh: %s\n", strerror(errno));
}

static int start_rank(struct launch *l, int rank, int job, FILE *out)
{
    const pid_t child = fork();

    if (child != 0) {
        return child < 0 ? -errno : child;
    }
    l->options.rank = rank;
    l->options.job = job;
    if (l->lab != NULL && enter_lab(l, rank) < 0) {
        _exit(EXIT_UNREACHABLE);
    }
    if (l->lab == NULL && l->host_count > 0) {
        if (out != stdout) {
            dup2(fileno(out), STDOUT_FILENO);
        }
        exec_ssh(l, rank, job);
        _exit(EXIT_UNREACHABLE);
    }
    const int status = perf_rank_main(&l->options, out, l->argc, l->argv);
    fflush(NULL);
    _exit(status);
}

static void copy_out(FILE *from)
{
    char buffer[4096];
    size_t n;

    rewind(from);
    while ((n = fread(buffer, 1, sizeof(buffer), from)) > 0) {
        fwrite(buffer, 1, n, stdout);
    }
    fclose(from);
}

static pid_t wait_live(int *status, struct perf_live *live)
{
    pid_t pid;

    while ((pid = waitpid(-1, status, live != NULL ? WNOHANG : 0)) == 0) {
        perf_live_look(live);
        usleep(20000);
    }
    return pid;
}

/* Waits for all; when one fails the others get a moment to say why, and are ended. */
static int wait_for_all(pid_t *children, int count, struct perf_live *live)
{
    int worst = 0;

    for (int left = count; left > 0; left--) {
        int status;
        const pid_t pid = wait_live(&status, live);
        if (pid < 0) {
            break;
        }
        for (int i = 0; i < count; i++) {
            children[i] = children[i] == pid ? 0 : children[i];
        }
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_NOT_WELL;
        if (code != 0 && worst == 0) {
            usleep(500000);
            for (int i = 0; i < count; i++) {
                if (children[i] > 0) {
                    kill(children[i], SIGTERM);
                }
            }
        }
        worst = code > worst ? code : worst;
    }
    return worst;
}

static int start_all(struct launch *l)
{
    static pid_t children[CHILD_MAX];
    struct perf_options *o = &l->options;
    FILE *outs[64];
    const char *json_file = o->json_file;
    char json_names[64][4096];
    struct perf_live *live = NULL;
    int count = 0, status;

    if (o->ranks == 0) {
        o->ranks = l->host_count > 0 ? l->host_count : 2;
    }
    if (o->ranks * o->jobs > CHILD_MAX) {
        fprintf(stderr, "foliot perf: more than %d ranks\n", CHILD_MAX);
        return EXIT_USAGE;
    }
    if (l->live && (l->host_count > 0 && l->lab == NULL)) {
        fputs("foliot perf: --live: the ranks are on other hosts; foliot jobs --watch there\n",
              stderr);
        return EXIT_USAGE;
    }
    if (l->live && perf_live_open(&live) < 0) {
        fputs("foliot perf: --live: no folder in /tmp can be made\n", stderr);
        return EXIT_UNREACHABLE;
    }
    fflush(NULL);
    for (int job = 0; job < o->jobs; job++) {
        outs[job] = o->jobs == 1 ? stdout : tmpfile();
        if (outs[job] == NULL) {
            return EXIT_UNREACHABLE;
        }
        if (json_file != NULL && o->jobs > 1) {
            snprintf(json_names[job], sizeof(json_names[job]), "%s.%d", json_file, job);
            o->json_file = json_names[job];
        }
        name_meeting(l, job);
        for (int rank = 0; rank < o->ranks; rank++) {
            const int child = start_rank(l, rank, job, outs[job]);
            if (child > 0) {
                children[count++] = child;
            }
        }
    }
    status = wait_for_all(children, count, live);
    perf_live_close(live);
    for (int job = 0; job < o->jobs && o->jobs > 1; job++) {
        copy_out(outs[job]);
    }
    return status;
}

static bool read_arguments(struct launch *l, int argc, char *argv[], int *ret_status)
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
        fprintf(stderr, "foliot perf: --hosts: names separated by commas, at most %d\n", HOSTS_MAX);
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

int command_perf(int argc, char *argv[])
{
    static struct launch l = {.options = {.operation = ALL_REDUCE,
                                          .type = FLOAT32,
                                          .bytes_min = 32 << 20,
                                          .bytes_max = 32 << 20,
                                          .step_factor = 1,
                                          .message = 512 << 10,
                                          .iterations = 20,
                                          .warmups = 1,
                                          .check = 1,
                                          .channels = 2,
                                          .device = -1,
                                          .timeout_s = 120,
                                          .rank = -1,
                                          .jobs = 1}};
    struct perf_options *o = &l.options;
    int status;

    l.argc = argc;
    l.argv = argv;
    o->plugin = getenv("NCCL_NET_PLUGIN");
    if (o->plugin == NULL || *o->plugin == '\0') {
        o->plugin = "foliot";
    }
    if (!read_arguments(&l, argc, argv, &status)) {
        return status;
    }
    if (l.lab == NULL && l.host_count == 0) {
        read_environment(o);
    }
    if (o->rank < 0) {
        return start_all(&l);
    }
    if (o->rank >= o->ranks || !find_meeting(o)) {
        fprintf(stderr,
                "foliot perf: rank %d of %d: say with --ranks how many there are and with "
                "--meet ADDRESS:PORT where rank 0 is\n",
                o->rank, o->ranks);
        return EXIT_USAGE;
    }
    return perf_rank_main(o, stdout, argc, argv);
}

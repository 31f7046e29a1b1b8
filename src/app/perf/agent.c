/* agent.c: one rank of an audit's test (core/audit/perf.h), started by this host's agent. Its plan is one line of numbers, and of
 * names from the agent's own configuration. Its result is one line.
 *
 * It has fewer rights than the agent: no user of its own, no file, no page in the agent's list of jobs. When its standard input
 * is closed, it ends at once, whatever it is doing. */
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <math.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/perf/incast.h"
#include "app/perf/memory.h"
#include "app/perf/rank.h"
#include "app/perf/ways.h"
#include "base/plain.h"
#include "platform/sysfs/sysfs.h"

enum {
    NOBODY = 65534,
    ROOM_GIB = 4,         /* of address space */
    MEMORY_ROOM_GIB = 24, /* room for the largest arrays of memory.c, and for stacks */
    LEAST_PRIORITY = 19,
    PARTS = 5, /* the timed part is cut into so many, so that its spread is known */
    ARRIVALS = 40,
    THREADS_MAX = 64, /* of a rank whose waiting is counted */
    WORK_BYTES = 1 << 20,
    WARM_BYTES = 256 << 10,
    FEW_BYTES =
        128 << 10, /* a message of an all-to-all: each of many peers has eight slots of this size */
    MOST_BYTES = 128 << 20,
    STALLED = 4,
    /* with more ranks, only the smallest size is compared, because each element needs each rank's part */
    CHECKED_RANKS = 64,
    /* the upper limit of a round; a round grows to more than half of it, if MOST_BYTES allows it */
    ROUND_US = 100000
};
#define WORK_UNIT_NS 10000 /* equal to the value in core/audit/perf.h */

struct agent_plan {
    int rank, ranks, port, lanes, run_ms, patience_s;
    int ways,
        turn_ms;  /* ways: 0, or the time in ms until this pair's turn to look for a narrow hop */
    int alltoall; /* 1: the collective is an all-to-all */
    int incast;   /* 0, or 1 plus the DSCP of the packets that all ranks send to rank 0 */
    bool memory;  /* a test of this host's memory: it has no ranks, only run_ms */
    char address[64], nics[320], folder[256], secret[2 * MEET_SECRET_SIZE + 1];
};

struct agent_part {
    double rate; /* bus bandwidth, bytes a second */
    /* the share of the time in which this rank is not known to have waited for others */
    double late;
    /* the share of the time in which its threads waited for a processor, added up, at most 1; < 0: the kernel
     * doesn't tell */
    double waited;
};

struct agent_found {
    struct agent_part parts[PARTS];
    double wrong; /* elements of this rank */
    int64_t init_ms;
    int64_t work_ns[ARRIVALS];
    char network[32];
};

/* ---- the sandbox ---- */

static void limit(int resource, rlim_t most)
{
    const struct rlimit l = {most, most};
    /* the limit only becomes lower, so this can't fail */
    (void)setrlimit((__rlimit_resource_t)resource, &l);
}

/* If the unit has dropped the rights already, this has no effect. The memory test uses all processors, so it has the lowest
 * priority. */
static int give_up_rights(bool memory)
{
    (void)setpriority(PRIO_PROCESS, 0, memory ? LEAST_PRIORITY : 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    /* if stderr is a file, its messages are lost; they must not end the process */
    (void)signal(SIGXFSZ, SIG_IGN);
    limit(RLIMIT_AS, (rlim_t)(memory ? MEMORY_ROOM_GIB : ROOM_GIB) << 30);
    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) < 0)) {
        return -errno;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* The plugin's settings come from the plan, not from the agent's environment. */
static int set_environment(const struct agent_plan *p)
{
    const char *clock = getenv("FOLIOT_LAB_OSCILLATOR");
    char *kept = clock != NULL ? strdup(clock) : NULL, lanes[16];

    snprintf(lanes, sizeof(lanes), "%d", p->lanes);
    if (clearenv() != 0 || (clock != NULL && kept == NULL)) {
        free(kept);
        return -ENOMEM;
    }
    int r = kept != NULL ? setenv("FOLIOT_LAB_OSCILLATOR", kept, 1) : 0;
    free(kept);
    r |= setenv("FOLIOT_NIC", p->nics, 1) | setenv("FOLIOT_LANES_PER_SET", lanes, 1) |
         setenv("FOLIOT_JOB_DIR", "", 1) | setenv("FOLIOT_RUNTIME_DIR", p->folder, 1);
    return r == 0 ? 0 : -ENOMEM;
}

static void *watch_input(void *unused)
{
    struct pollfd p = {STDIN_FILENO, POLLRDHUP, 0};
    (void)unused;
    while (poll(&p, 1, -1) <= 0 || (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) {
    }
    _exit(EXIT_SUCCESS);
}

/* ---- the plan ---- */

static bool word_ok(const char *text, const char *more)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:_-";
    for (const char *c = text; *c != '\0'; c++) {
        if (strchr(letters, *c) == NULL && strchr(more, *c) == NULL) {
            return false;
        }
    }
    return text[0] != '\0';
}

static bool read_line(char *line, size_t size)
{
    size_t used = 0;
    while (used < size - 1 && (used == 0 || line[used - 1] != '\n')) {
        const ssize_t n = read(STDIN_FILENO, line + used, 1);
        if (n <= 0) {
            return false;
        }
        used += (size_t)n;
    }
    line[used] = '\0';
    return true;
}

static bool read_plan(struct agent_plan *p)
{
    char line[1024];

    memset(p, 0, sizeof(*p));
    if (!read_line(line, sizeof(line))) {
        return false;
    }
    if (sscanf(line, "memory run %d", &p->run_ms) == 1) {
        p->memory = true;
        return p->run_ms >= 1 && p->run_ms <= 60000;
    }
    return sscanf(line,
                  "rank %d of %d port %d lanes %d run %d patience %d ways %d turn %d incast %d "
                  "alltoall %d at "
                  "%63s nics "
                  "%319s "
                  "folder %255s secret %32[0-9a-f]",
                  &p->rank, &p->ranks, &p->port, &p->lanes, &p->run_ms, &p->patience_s, &p->ways,
                  &p->turn_ms, &p->incast, &p->alltoall, p->address, p->nics, p->folder,
                  p->secret) == 14 &&
           strlen(p->secret) == 2 * MEET_SECRET_SIZE && p->ranks >= 2 &&
           p->ranks <= PERF_RANK_MAX && p->rank >= 0 && p->rank < p->ranks && p->port > 0 &&
           p->port < 65536 && p->lanes >= 1 && p->lanes <= 64 && p->run_ms >= 1 &&
           p->run_ms <= 60000 && p->patience_s >= 1 && p->patience_s <= 120 && p->ways >= 0 &&
           p->ways <= 60000 && p->turn_ms >= 0 && p->turn_ms <= 60000 &&
           (p->ways == 0 || p->ranks == 2) && p->incast >= 0 && p->incast <= 64 &&
           (p->incast == 0 || p->ways == 0) &&
           (p->alltoall == 0 || (p->alltoall == 1 && p->ways == 0 && p->incast == 0)) &&
           word_ok(p->address, "") && word_ok(p->nics, ",=") && p->nics[0] == '=' &&
           word_ok(p->folder, "/");
}

static int count_nics(const char *list)
{
    int count = 1;
    for (const char *c = list; *c != '\0'; c++) {
        count += *c == ',';
    }
    return count < PERF_CHANNEL_MAX ? count : PERF_CHANNEL_MAX;
}

/* ---- the test ---- */

static double rate_of(const struct perf_options *o, const struct perf_row *row)
{
    const double us = row->figures[0].own_us;
    return us > 0 ? (double)row->size * 1e6 / us * report_bus_factor(o) : 0;
}

/* Doubles the size as long as a round takes at most ROUND_US. */
static size_t grown(size_t bytes, double time_us)
{
    while (time_us * 2 <= ROUND_US && bytes * 2 <= MOST_BYTES) {
        bytes *= 2;
        time_us *= 2;
    }
    return bytes;
}

/* Finds a size that takes long enough: most of a smaller round is waiting. All ranks have the same times, so they choose the same
 * size. */
static int find_size(struct rank *r, struct perf_options *o, size_t *ret_bytes, double *ret_wrong)
{
    size_t bytes = WARM_BYTES;
    struct perf_row row;
    int rc = 0;

    o->check = 1;
    o->duration_s = 1e-3; /* one round, out of place only */
    *ret_wrong = 0;
    for (;;) {
        rc = rank_run_size(r, bytes, &row);
        if (rc < 0) {
            return rc;
        }
        *ret_wrong += row.figures[0].own_wrong > 0 ? row.figures[0].own_wrong : 0;
        o->check = o->ranks <= CHECKED_RANKS;
        const size_t next = grown(bytes, row.figures[0].time_us);
        if (next == bytes) {
            break;
        }
        bytes = next;
    }
    o->check = o->warmups = 0;
    *ret_bytes = bytes;
    return 0;
}

/* Times a piece of work that is the same on every host, each time after all ranks have met. */
static int time_work(struct rank *r, int64_t *work_ns)
{
    struct perf_pattern work = {.type = FLOAT32, .raw = true};
    int rc = meet_barrier(&r->meet);

    for (int i = 0; rc == 0 && i < ARRIVALS; i++) {
        const int64_t began_ns = perf_now_ns();
        work.seed = (uint64_t)i;
        perf_fill(&work, r->buffers[0], r->options->rank, 0,
                  WORK_BYTES / perf_type_size(work.type));
        work_ns[i] = perf_now_ns() - began_ns;
        rc = meet_barrier(&r->meet);
    }
    return rc;
}

/* How long the threads of this process have waited for a processor, ns; < 0: the kernel doesn't tell. The kernel counts this
 * for each thread, so other work on the host shows here, and a slow network or a slow peer doesn't. */
static int64_t waited_ns(void)
{
    char threads[THREADS_MAX][SYSFS_NAME_SIZE], path[SYSFS_PATH_SIZE], line[96];
    const int count = sysfs_names(NULL, "/proc/self/task", threads, THREADS_MAX);
    int64_t sum = -1;

    for (int i = 0; i < count; i++) {
        uint64_t ran, waited;
        sysfs_path(path, "/proc/self/task/%s/schedstat", threads[i]);
        if (sysfs_text(NULL, path, line, sizeof(line)) > 0 &&
            sscanf(line, "%" SCNu64 " %" SCNu64, &ran, &waited) == 2) {
            sum = (sum < 0 ? 0 : sum) + (int64_t)waited;
        }
    }
    return sum;
}

/* One of the timed parts. */
static int run_part(struct rank *r, struct perf_options *o, size_t bytes, struct perf_row *row,
                    struct agent_part *ret)
{
    const int64_t began_ns = perf_now_ns(), before_ns = waited_ns();
    const int rc = rank_run_size(r, bytes, row);
    const int64_t took_ns = perf_now_ns() - began_ns, after_ns = waited_ns();

    *ret = (struct agent_part){.waited = -1};
    if (rc == 0) {
        ret->rate = rate_of(o, row);
        ret->late = row->figures[0].own_late;
        if (before_ns >= 0 && after_ns >= before_ns && took_ns > 0) {
            ret->waited = fmin((double)(after_ns - before_ns) / (double)took_ns, 1);
        }
    }
    return rc;
}

static int run_test(struct rank *r, struct perf_options *o, const struct agent_plan *p,
                    struct agent_found *found)
{
    struct perf_row row;
    size_t bytes = 0;
    int rc = find_size(r, o, &bytes, &found->wrong);

    o->duration_s = p->run_ms * 1e-3 / PARTS;
    for (int i = 0; rc == 0 && i < PARTS; i++) {
        rc = run_part(r, o, bytes, &row, &found->parts[i]);
        const size_t next = rc == 0 ? grown(bytes, row.figures[0].time_us) : bytes;
        if (i == 0 && next >= STALLED * bytes) {
            bytes = next; /* a pause made the earlier rounds look long */
            i = -1;
        }
    }
    return rc < 0 ? rc : time_work(r, found->work_ns);
}

static int compare(const void *a, const void *b)
{
    const double x = ((const struct agent_part *)a)->rate, y = ((const struct agent_part *)b)->rate;
    return (x > y) - (x < y);
}

/* Sorts the parts and returns the middle one. ret_spread: the standard deviation over the mean, in ten thousandths. */
static struct agent_part middle_of(struct agent_part *parts, int count, double *ret_spread)
{
    double sum = 0, squares = 0;

    qsort(parts, (size_t)count, sizeof(parts[0]), compare);
    for (int i = 0; i < count; i++) {
        sum += parts[i].rate;
        squares += parts[i].rate * parts[i].rate;
    }
    const double mean = sum / count, variance = fmax(squares / count - mean * mean, 0);
    *ret_spread = mean > 0 ? sqrt(variance) / mean * 1e4 : 0;
    return parts[count / 2];
}

/* Of each part in turn: its rate beside the fastest, and how long its threads waited. Nothing if the kernel does not tell. */
static void tell_waited(const struct agent_part *parts, int count)
{
    double fastest = 0, least = 0;

    for (int i = 0; i < count; i++) {
        fastest = fmax(fastest, parts[i].rate);
        least = fmin(least, parts[i].waited);
    }
    for (int i = 0; i < count && fastest > 0 && least >= 0; i++) {
        printf("%s %.0f %.0f", i == 0 ? " parts" : "", 1e4 * parts[i].rate / fastest,
               1e4 * parts[i].waited);
    }
}

/* Agents of older releases read the figures up to the first word that is no number. */
static void tell(struct agent_found *f)
{
    double spread;
    struct agent_part in_time[PARTS];
    memcpy(in_time, f->parts, sizeof(in_time)); /* all ranks' first parts are of one time */
    const struct agent_part middle = middle_of(f->parts, PARTS, &spread);
    printf("rate %.0f runs %d spread %.0f wrong %.0f init %lld network %s work", middle.rate, PARTS,
           spread, f->wrong, (long long)f->init_ms, f->network);
    for (int i = 0; i < ARRIVALS; i++) {
        const int64_t units = f->work_ns[i] / WORK_UNIT_NS;
        printf(" %d", units < UINT16_MAX ? (int)units : UINT16_MAX);
    }
    printf(" late %.0f", 1e4 * middle.late);
    tell_waited(in_time, PARTS);
    printf("\n");
}

static void read_secret(const char *text, uint8_t secret[MEET_SECRET_SIZE])
{
    for (int i = 0; i < MEET_SECRET_SIZE; i++) {
        const char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};
        secret[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
}

/* Opens the meeting. nic: the name of the plan's first NIC. */
static int open_meeting(const struct agent_plan *p, struct meet *meet, char nic[IFNAMSIZ])
{
    uint8_t secret[MEET_SECRET_SIZE];
    char where[80];

    read_secret(p->secret, secret);
    snprintf(where, sizeof(where), "%s:%d", p->address, p->port);
    snprintf(nic, IFNAMSIZ, "%.*s", (int)strcspn(p->nics + 1, ","), p->nics + 1);
    return meet_open(meet, where, p->rank, p->ranks, p->patience_s, secret);
}

/* Ends only after the output is written and the other ranks have written theirs. */
static int close_meeting(struct meet *meet, int r)
{
    fflush(stdout);
    r = r < 0 ? r : meet_barrier(meet);
    meet_close(meet);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void tell_failure(int r, const char *what)
{
    if (r == -EBADMSG) {
        printf("failed the other host's test reports an address that no NIC has\n");
    } else {
        printf("failed %s: %s\n", what, strerror(-r));
    }
}

static int run_ways(const struct agent_plan *p)
{
    const struct ways_turn turn = {perf_now_ns() + p->ways * 1000000LL, p->turn_ms * 1000000LL};
    struct way_found ways[WAYS_MOST];
    struct meet meet;
    char nic[IFNAMSIZ];
    int count = 0;

    int r = open_meeting(p, &meet, nic);
    const char *what = r < 0 ? "the other host's test did not come" : "no flows";
    r = r < 0 ? r : ways_test(&meet, nic, p->address, p->run_ms, &turn, ways, &count);
    if (r < 0) {
        tell_failure(r, what);
    } else {
        printf("ways");
        for (int i = 0; i < count; i++) {
            printf(" %.0f/%d", ways[i].rate, ways[i].narrow);
            for (int hop = 0; hop < ways[i].hop_count; hop++) {
                printf("/%s", ways[i].hops[hop]);
            }
        }
        putchar('\n');
    }
    return close_meeting(&meet, r);
}

static int run_incast(const struct agent_plan *p)
{
    struct incast_found found;
    struct meet meet;
    char nic[IFNAMSIZ];

    int r = open_meeting(p, &meet, nic);
    const char *what = r < 0 ? "the other hosts' tests did not come" : "no packets";
    r = r < 0 ? r : incast_test(&meet, nic, p->address, p->run_ms, p->incast - 1, &found);
    if (r < 0) {
        tell_failure(r, what);
    } else {
        printf("incast sent %" PRIu64 " came %" PRIu64 " marked %" PRIu64 " rate %.0f\n",
               found.sent, found.came, found.marked, found.rate);
    }
    return close_meeting(&meet, r);
}

/* This test meets no other rank. */
static int run_memory(const struct agent_plan *p)
{
    struct memory_found found;
    struct agent_part parts[MEMORY_RUNS] = {0};
    double spread;
    const int r = memory_test(p->run_ms, &found);

    if (r == -EBUSY) {
        printf("busy %.0f\n", 1e4 * found.away);
    } else if (r == -ENODATA) {
        printf("failed the size of its processors' caches is not known\n");
    } else if (r == -EFBIG) {
        printf("failed its processors' caches are larger than this test can fill\n");
    } else if (r == -E2BIG) {
        printf("failed it takes %zu MiB, more than a quarter of the memory that is free\n",
               found.bytes >> 20);
    } else if (r == -ETIME) {
        printf("failed %zu MiB could not be filled and measured in time\n", found.bytes >> 20);
    } else if (r < 0) {
        printf("failed it could not begin: %s\n", strerror(-r));
    } else {
        for (int i = 0; i < found.runs; i++) {
            parts[i].rate = found.rates[i];
        }
        const double rate = middle_of(parts, found.runs, &spread).rate;
        printf("memory rate %.0f runs %d spread %.0f\n", rate, found.runs, spread);
    }
    fflush(stdout);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_rank(const struct agent_plan *p)
{
    struct perf_options o = {.operation = p->alltoall ? ALL_TO_ALL : ALL_REDUCE,
                             .type = FLOAT32,
                             .bytes_min = WARM_BYTES,
                             .bytes_max = MOST_BYTES,
                             .step_factor = 1,
                             .message = p->alltoall ? FEW_BYTES : 512 << 10,
                             .iterations = 1,
                             .warmups = 1,
                             .channels = count_nics(p->nics),
                             .device = -1,
                             .timeout_s = p->patience_s,
                             .plugin = "foliot",
                             .rank = p->rank,
                             .ranks = p->ranks,
                             .jobs = 1};
    struct rank r = {.options = &o};
    struct perf_member member = {0};
    struct agent_found found = {0};
    const int64_t began_ns = perf_now_ns();
    uint8_t secret[MEET_SECRET_SIZE];

    read_secret(p->secret, secret);
    snprintf(o.meet, sizeof(o.meet), "%s:%d", p->address, p->port);
    int rc = meet_open(&r.meet, o.meet, o.rank, o.ranks, o.timeout_s, secret);
    const char *what =
        rc == -EPROTONOSUPPORT ? "other hosts have another release of foliot: update them"
        : rc == -ECONNREFUSED
            ? "the leading host refused this one: does it have another release of foliot?"
        : rc == -EMFILE
            ? "this host leads, but may not open a descriptor for each rank: raise its hard limit"
        : rc < 0 ? "the other hosts' tests did not come"
                 : "no connections";
    rc = rc < 0 ? rc : rank_open(&r, &member);
    rc = rc < 0 ? rc : meet_barrier(&r.meet);
    found.init_ms = (perf_now_ns() - began_ns) / 1000000;
    if (rc == 0) {
        what = "a transfer failed";
        plain_text(r.net.name, found.network, sizeof(found.network));
        rc = run_test(&r, &o, p, &found);
    }
    if (rc < 0) {
        printf("failed %s: %s\n", what, strerror(-rc));
    } else {
        tell(&found);
    }
    fflush(stdout);
    /* nobody closes before the others have received their last messages */
    rc = rc < 0 ? rc : meet_barrier(&r.meet);
    rank_close(&r);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int perf_agent_main(void)
{
    struct agent_plan plan;
    pthread_t watcher;
    int r = read_plan(&plan) ? 0 : -EINVAL;

    r = r < 0 ? r : give_up_rights(plan.memory);
    r = r < 0 || plan.memory ? r : set_environment(&plan);
    r = r < 0 ? r : -pthread_create(&watcher, NULL, watch_input, NULL);
    if (r < 0) {
        printf("failed it could not begin: %s\n", strerror(-r));
        return EXIT_FAILURE;
    }
    return plan.memory       ? run_memory(&plan)
           : plan.ways > 0   ? run_ways(&plan)
           : plan.incast > 0 ? run_incast(&plan)
                             : run_rank(&plan);
}

/* memory.c: see memory.h. */
#include "app/perf/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "app/perf/perf.h"
#include "base/time.h"
#include "platform/sysfs/sysfs.h"

enum {
    ARRAYS = 3,
    /* the arrays are so many times as large as the caches: less than an eighth stays in a cache */
    CACHES = 8,
    FREE_SHARE = 4,       /* the arrays may take a quarter of the free memory */
    CHUNK = 8192,         /* elements between two reads of the clock: some microseconds */
    LEVELS_MOST = 8,      /* cache/index0 … */
    STACK = 256 << 10,    /* of a thread: its data lie in its worker */
    PAGE_LARGE = 2 << 20, /* a multiple of a chunk */
    /* the whole test may take so many times the runs' time: it includes page faults and runs that do not count */
    TIME_MOST = 3,
    PROCESSORS_MOST = 4096
};
#define BYTES_MOST ((uint64_t)20 << 30) /* the largest processors of today have 2.3 GiB of caches */
/* The share of its processors' time that a run may lack: half of the loss that the check takes for a fault (node.mem_bw: 7 %). */
#define AWAY_MOST 0.035

/* Makes the loop use vectors, whatever options the compiler has. */
typedef double lanes __attribute__((vector_size(64), may_alias, aligned(8)));
enum { LANES = sizeof(lanes) / sizeof(double) };

struct shared {
    pthread_barrier_t barrier;
    double *arrays[ARRAYS];
    size_t slice;   /* elements of each array for one thread */
    int64_t run_ns; /* the length of one run */
    int64_t until_ns;
    atomic_bool late; /* a thread had not filled its part at until_ns */
    atomic_bool over;
};
struct worker {
    struct shared *shared;
    pthread_t thread;
    int processor, number;
    uint64_t bytes; /* in the last run */
    int64_t ns, had_ns;
};

/* ---- how large ---- */

size_t memory_bytes(uint64_t cache_bytes)
{
    const uint64_t bytes = cache_bytes * CACHES;
    return cache_bytes == 0 || cache_bytes > BYTES_MOST / CACHES ? 0 : (size_t)bytes;
}

/* Reads "32768K" or "1M". */
static uint64_t size_of(const char *text)
{
    uint64_t size = 0;
    char unit = 0;
    const int fields = sscanf(text, "%" SCNu64 "%c", &size, &unit);
    return fields < 1 || size > BYTES_MOST ? 0 : size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
}

enum { TEXT_SIZE = 4096 }; /* the longest text that sysfs_text() reads */

static const char *cache_file(char path[static SYSFS_PATH_SIZE], int processor, int index,
                              const char *name)
{
    return sysfs_path(path, "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", processor, index,
                      name);
}

/* The size of this processor's last cache, and the first processor that shares it. 0: not known. */
static uint64_t last_cache(const struct sysfs *tree, int processor, int *ret_first)
{
    char path[SYSFS_PATH_SIZE], text[TEXT_SIZE];
    uint64_t size = 0;
    int64_t level, last = 0;
    for (int i = 0; i < LEVELS_MOST; i++) {
        if (sysfs_number(tree, cache_file(path, processor, i, "level"), &level) < 0 ||
            level <= last) {
            continue;
        }
        if (sysfs_text(tree, cache_file(path, processor, i, "shared_cpu_list"), text,
                       sizeof(text)) < 0 ||
            sscanf(text, "%d", ret_first) != 1) {
            return 0;
        }
        const int r = sysfs_text(tree, cache_file(path, processor, i, "size"), text, sizeof(text));
        size = r >= 0 ? size_of(text) : 0;
        last = level;
    }
    return size;
}

uint64_t memory_cache_bytes(const struct sysfs *tree, const int *processors, int count)
{
    int *firsts = calloc((size_t)count + 1, sizeof(*firsts)), found = 0;
    uint64_t sum = 0;
    for (int i = 0; firsts != NULL && i < count; i++) {
        int first = 0, k = 0;
        const uint64_t size = last_cache(tree, processors[i], &first);
        if (size == 0) {
            free(firsts);
            return 0;
        }
        while (k < found && firsts[k] != first) {
            k++;
        }
        if (k == found) {
            firsts[found++] = first;
            sum += size;
        }
    }
    free(firsts);
    return sum;
}

static uint64_t free_bytes(void)
{
    uint64_t kib = 0;
    char text[TEXT_SIZE];
    const char *at = sysfs_text(NULL, "/proc/meminfo", text, sizeof(text)) >= 0
                         ? strstr(text, "MemAvailable:")
                         : NULL;
    return at != NULL && sscanf(at, "MemAvailable: %" SCNu64 " kB", &kib) == 1 ? kib << 10 : 0;
}

/* ---- a thread ---- */

static int64_t processor_ns(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0 ? t.tv_sec * NS_PER_S + t.tv_nsec : 0;
}

static void triad(const struct worker *w, size_t first, size_t count)
{
    const struct shared *s = w->shared;
    const size_t at = (size_t)w->number * s->slice + first;
    lanes *to = (lanes *)(s->arrays[0] + at);
    const lanes *one = (const lanes *)(s->arrays[1] + at),
                *two = (const lanes *)(s->arrays[2] + at);
    for (size_t i = 0; i < count / LANES; i++) {
        to[i] = one[i] + 3.0 * two[i];
    }
}

/* The kernel places a page on the node of the processor that first writes it. */
static void fill(struct worker *w)
{
    struct shared *s = w->shared;
    const int64_t began = perf_now_ns(), had = processor_ns();
    for (size_t first = 0; first < s->slice; first += CHUNK) {
        for (int a = 0; a < ARRAYS; a++) {
            double *chunk = s->arrays[a] + (size_t)w->number * s->slice + first;
            for (size_t i = 0; i < CHUNK; i++) {
                chunk[i] = a;
            }
        }
        if (perf_now_ns() > s->until_ns) {
            atomic_store(&s->late, true);
            break;
        }
    }
    w->ns = perf_now_ns() - began;
    w->had_ns = processor_ns() - had;
}

static void run(struct worker *w)
{
    const struct shared *s = w->shared;
    const int64_t began = perf_now_ns(), had = processor_ns(), until = began + s->run_ns;
    size_t at = 0;
    int64_t now = began;
    w->bytes = 0;
    while (now < until) {
        const size_t left = s->slice - at, count = left < CHUNK ? left : CHUNK;
        triad(w, at, count);
        w->bytes += ARRAYS * count * sizeof(double);
        at = at + count == s->slice ? 0 : at + count;
        now = perf_now_ns();
    }
    w->ns = now - began;
    w->had_ns = processor_ns() - had;
}

/* A sandbox may forbid this call. Then the kernel places the thread. */
static void stay_on(int processor)
{
    cpu_set_t *own = CPU_ALLOC((size_t)processor + 1);
    if (own != NULL) {
        const size_t size = CPU_ALLOC_SIZE((size_t)processor + 1);
        CPU_ZERO_S(size, own);
        CPU_SET_S((size_t)processor, size, own);
        (void)sched_setaffinity(0, size, own);
        CPU_FREE(own);
    }
}

static void *work(void *context)
{
    struct worker *w = context;
    struct shared *s = w->shared;
    stay_on(w->processor);
    fill(w);
    pthread_barrier_wait(&s->barrier); /* all parts are filled, or the test is late */
    for (;;) {
        pthread_barrier_wait(&s->barrier); /* a run begins */
        if (atomic_load(&s->over)) {
            return NULL;
        }
        run(w);
        pthread_barrier_wait(&s->barrier); /* it has ended */
    }
}

/* ---- all of them ---- */

/* The rate of all threads together in the last run. ret_away: the share of its time in which they had no processor. */
static double sum_up(const struct worker *workers, int count, double *ret_away)
{
    double rate = 0, ns = 0, had = 0;
    for (int i = 0; i < count; i++) {
        rate += (double)workers[i].bytes * 1e9 / (double)workers[i].ns;
        ns += (double)workers[i].ns;
        had += (double)workers[i].had_ns;
    }
    *ret_away = had < ns ? 1 - had / ns : 0;
    return rate;
}

static int measure(struct shared *s, const struct worker *workers, struct memory_found *ret)
{
    pthread_barrier_wait(&s->barrier);
    /* for the time in which they filled their parts */
    (void)sum_up(workers, ret->threads, &ret->away);
    for (int tried = 0; tried < MEMORY_RUNS_TRIED && ret->runs < MEMORY_RUNS &&
                        !atomic_load(&s->late) && perf_now_ns() < s->until_ns;
         tried++) {
        double away;
        pthread_barrier_wait(&s->barrier);
        pthread_barrier_wait(&s->barrier);
        const double rate = sum_up(workers, ret->threads, &away);
        ret->away = away > ret->away ? away : ret->away;
        if (away <= AWAY_MOST) {
            ret->rates[ret->runs++] = rate;
        }
    }
    atomic_store(&s->over, true);
    pthread_barrier_wait(&s->barrier);
    return ret->runs >= MEMORY_RUNS_LEAST ? 0 : ret->away > AWAY_MOST ? -EBUSY : -ETIME;
}

/* If a thread can't be started, the earlier ones wait until the process ends. */
static int run_all(struct shared *s, struct worker *workers, const int *processors,
                   struct memory_found *ret)
{
    pthread_attr_t small;
    int r = -pthread_attr_init(&small);
    r = r < 0 ? r : -pthread_attr_setstacksize(&small, STACK);
    r = r < 0 ? r : -pthread_barrier_init(&s->barrier, NULL, (unsigned)ret->threads + 1);
    for (int i = 0; r == 0 && i < ret->threads; i++) {
        workers[i] = (struct worker){.shared = s, .processor = processors[i], .number = i};
        r = -pthread_create(&workers[i].thread, &small, work, &workers[i]);
    }
    if (r < 0) {
        return r;
    }
    r = measure(s, workers, ret);
    for (int i = 0; i < ret->threads; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    return r;
}

static int find_processors(int processors[PROCESSORS_MOST])
{
    cpu_set_t *all = CPU_ALLOC(PROCESSORS_MOST);
    const size_t size = CPU_ALLOC_SIZE(PROCESSORS_MOST);
    int count = 0;
    if (all == NULL || sched_getaffinity(0, size, all) < 0) {
        count = all == NULL ? -ENOMEM : -errno;
    }
    for (int i = 0; count >= 0 && i < PROCESSORS_MOST; i++) {
        if (CPU_ISSET_S((size_t)i, size, all)) {
            processors[count++] = i;
        }
    }
    CPU_FREE(all);
    return count;
}

/* Maps zero pages, which no thread has touched yet. */
static int map_arrays(struct shared *s, int threads, size_t bytes)
{
    const size_t page = PAGE_LARGE / sizeof(double);
    s->slice = (bytes / ARRAYS / (size_t)threads / sizeof(double) + page - 1) / page * page;
    for (int a = 0; a < ARRAYS; a++) {
        const size_t size = s->slice * (size_t)threads * sizeof(double);
        void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) {
            return -errno;
        }
        (void)madvise(at, size, MADV_HUGEPAGE);
        s->arrays[a] = at;
    }
    return 0;
}

int memory_test(int run_ms, struct memory_found *ret)
{
    static int processors[PROCESSORS_MOST];
    static struct worker workers[PROCESSORS_MOST];
    static struct shared shared; /* threads may outlive this call and use it */
    *ret = (struct memory_found){.threads = find_processors(processors)};
    if (ret->threads <= 0) {
        return ret->threads < 0 ? ret->threads : -ENODATA;
    }
    const uint64_t cache = memory_cache_bytes(NULL, processors, ret->threads);
    ret->bytes = memory_bytes(cache);
    if (cache == 0) {
        return -ENODATA;
    }
    if (ret->bytes == 0 || ret->bytes > free_bytes() / FREE_SHARE) {
        return ret->bytes == 0 ? -EFBIG : -E2BIG;
    }
    shared.run_ns = run_ms * NS_PER_MS / MEMORY_RUNS;
    shared.until_ns = perf_now_ns() + TIME_MOST * run_ms * NS_PER_MS - shared.run_ns;
    const int r = map_arrays(&shared, ret->threads, ret->bytes);
    return r < 0 ? r : run_all(&shared, workers, processors, ret);
}

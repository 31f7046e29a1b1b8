/* gpu_rank.c: one rank of a real NCCL on a real GPU. Several ranks share one GPU, each as a "host" of its own (NCCL_HOSTID), so
 * that all their bytes go through the network plugin. tools/gpu-check starts them and reads their output.
 *
 * It can be built without CUDA and NCCL: both libraries are opened at run time, and the few calls are declared here, from their
 * public interfaces. Values are whole numbers, so that any order of summing is exact.
 *
 *   gpu-rank NCCL.so CUDART.so ID-FILE RANK RANKS check BYTES…        every operation once per size, values checked
 *   gpu-rank … loop SECONDS BYTES                                     all-reduce for so long, each checked
 *   gpu-rank … bench OPERATION ITERATIONS BYTES…                      rank 0 prints "bench OPERATION BYTES US BUSBW"
 *   gpu-rank … probe                                                  versions and devices, as one line
 *
 * Exit status: 0 all right, 1 a wrong value or an error, 77 no GPU. The output has the reason. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SKIP      77
#define INT32     2
#define SUM       0
#define TIMEOUT_S 120

struct id {
    char bytes[128];
};
typedef void *comm;
typedef void *stream;

static struct {
    int (*version)(int *);
    int (*unique_id)(struct id *);
    int (*init)(comm *, int, struct id, int);
    int (*all_reduce)(const void *, void *, size_t, int, int, comm, stream);
    int (*all_gather)(const void *, void *, size_t, int, comm, stream);
    int (*reduce_scatter)(const void *, void *, size_t, int, int, comm, stream);
    int (*send)(const void *, size_t, int, int, comm, stream);
    int (*receive)(void *, size_t, int, int, comm, stream);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*async_error)(comm, int *);
    int (*destroy)(comm);
    const char *(*words)(int);
    const char *(*last_error)(comm);
} nccl;

static struct {
    int (*count)(int *);
    int (*set_device)(int);
    int (*alloc)(void **, size_t);
    int (*copy)(void *, const void *, size_t, int);
    int (*stream_create)(stream *);
    int (*query)(stream);
    int (*runtime_version)(int *);
    const char *(*words)(int);
} cuda;

static int rank, ranks;
static comm communicator;
static stream queue;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "gpu-rank %d: %s: %s\n", rank, what, why);
    exit(EXIT_FAILURE);
}

static void cuda_good(int result, const char *what)
{
    if (result != 0) {
        die(what, cuda.words(result));
    }
}

static void nccl_good(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "gpu-rank %d: %s\n", rank,
                nccl.last_error != NULL ? nccl.last_error(NULL) : "");
        die(what, nccl.words(result));
    }
}

static void *symbol(void *library, const char *name, bool must)
{
    void *found = dlsym(library, name);

    if (found == NULL && must) {
        die(name, "the library doesn't have it");
    }
    return found;
}

static void *open_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

    if (library == NULL) { /* libnccl needs the driver's libcuda if it is linked so */
        printf("skip %s can't be loaded: %s\n", path, dlerror());
        exit(SKIP);
    }
    return library;
}

/* Converts a void * to a function pointer, without a warning of -Wpedantic. */
#define TAKE(to, library, name, must)                                                              \
    do {                                                                                           \
        void *found = symbol(library, name, must);                                                 \
        memcpy(&(to), &found, sizeof(found));                                                      \
    } while (0)

static void open_libraries(const char *nccl_path, const char *cuda_path)
{
    void *cudart = open_library(cuda_path), *library;

    TAKE(cuda.count, cudart, "cudaGetDeviceCount", true);
    TAKE(cuda.set_device, cudart, "cudaSetDevice", true);
    TAKE(cuda.alloc, cudart, "cudaMalloc", true);
    TAKE(cuda.copy, cudart, "cudaMemcpy", true);
    TAKE(cuda.stream_create, cudart, "cudaStreamCreate", true);
    TAKE(cuda.query, cudart, "cudaStreamQuery", true);
    TAKE(cuda.runtime_version, cudart, "cudaRuntimeGetVersion", true);
    TAKE(cuda.words, cudart, "cudaGetErrorString", true);
    library = open_library(nccl_path);
    TAKE(nccl.version, library, "ncclGetVersion", true);
    TAKE(nccl.unique_id, library, "ncclGetUniqueId", true);
    TAKE(nccl.init, library, "ncclCommInitRank", true);
    TAKE(nccl.all_reduce, library, "ncclAllReduce", true);
    TAKE(nccl.all_gather, library, "ncclAllGather", true);
    TAKE(nccl.reduce_scatter, library, "ncclReduceScatter", true);
    TAKE(nccl.send, library, "ncclSend", true);
    TAKE(nccl.receive, library, "ncclRecv", true);
    TAKE(nccl.group_start, library, "ncclGroupStart", true);
    TAKE(nccl.group_end, library, "ncclGroupEnd", true);
    TAKE(nccl.async_error, library, "ncclCommGetAsyncError", true);
    TAKE(nccl.destroy, library, "ncclCommDestroy", true);
    TAKE(nccl.words, library, "ncclGetErrorString", true);
    TAKE(nccl.last_error, library, "ncclGetLastError", false);
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* -- meeting: rank 0 writes the id to a file; a rename makes it appear complete */

static void write_id(const char *path, const struct id *id)
{
    char temporary[4096];

    snprintf(temporary, sizeof(temporary), "%s.new", path);
    FILE *file = fopen(temporary, "we");
    if (file == NULL || fwrite(id, sizeof(*id), 1, file) != 1 || fclose(file) != 0 ||
        rename(temporary, path) != 0) {
        die(path, strerror(errno));
    }
}

static struct id read_id(const char *path)
{
    const double end = now_s() + TIMEOUT_S;
    struct id id;

    for (;;) {
        FILE *file = fopen(path, "re");
        if (file != NULL) {
            if (fread(&id, sizeof(id), 1, file) != 1) {
                die(path, "too short");
            }
            fclose(file);
            return id;
        }
        if (now_s() > end) {
            die(path, "rank 0 never wrote it");
        }
        usleep(10000);
    }
}

static void join(const char *path)
{
    struct id id;

    if (rank == 0) {
        nccl_good(nccl.unique_id(&id), "ncclGetUniqueId");
        write_id(path, &id);
    } else {
        id = read_id(path);
    }
    nccl_good(nccl.init(&communicator, ranks, id, rank), "ncclCommInitRank");
    cuda_good(cuda.stream_create(&queue), "cudaStreamCreate");
}

/* -- waiting, and watching for errors of NCCL meanwhile */

static void wait_for(const char *what)
{
    const double end = now_s() + TIMEOUT_S;

    for (unsigned looks = 0;; looks++) {
        const int result = cuda.query(queue);
        int error = 0;
        if (result == 0) {
            return;
        }
        if (result != 600) { /* cudaErrorNotReady */
            die(what, cuda.words(result));
        }
        if (looks % 256 == 0) {
            nccl_good(nccl.async_error(communicator, &error), "ncclCommGetAsyncError");
            if (error != 0) {
                nccl_good(error, what);
            }
            if (now_s() > end) {
                die(what, "nothing moved for too long");
            }
        }
        if (looks > 4096) {
            usleep(50);
        }
    }
}

/* -- values */

static int32_t value(int of, size_t i, unsigned round)
{
    return (int32_t)((i * 7 + (size_t)of * 13 + round * 5) % 61);
}

static int32_t sum(size_t i, unsigned round)
{
    int32_t all = 0;

    for (int r = 0; r < ranks; r++) {
        all += value(r, i, round);
    }
    return all;
}

struct buffers {
    void *in, *out; /* on the GPU */
    int32_t *host;
    size_t count; /* elements in each; ranks times a part */
};

static void fill(struct buffers *b, size_t count, size_t first, unsigned round)
{
    for (size_t i = 0; i < count; i++) {
        b->host[i] = value(rank, first + i, round);
    }
    cuda_good(cuda.copy(b->in, b->host, count * sizeof(int32_t), 1), "cudaMemcpy to the GPU");
    memset(b->host, 0xff, count * sizeof(int32_t)); /* bytes that aren't written are found */
    cuda_good(cuda.copy(b->out, b->host, count * sizeof(int32_t), 1), "cudaMemcpy to the GPU");
}

static void fetch(struct buffers *b, size_t count)
{
    cuda_good(cuda.copy(b->host, b->out, count * sizeof(int32_t), 2), "cudaMemcpy from the GPU");
}

static void expect(const char *operation, size_t bytes, size_t i, int32_t found, int32_t wanted)
{
    if (found != wanted) {
        fprintf(stderr, "gpu-rank %d: %s of %zu bytes: element %zu is %d, not %d\n", rank,
                operation, bytes, i, found, wanted);
        exit(EXIT_FAILURE);
    }
}

static void check_all_reduce(struct buffers *b, size_t count, unsigned round)
{
    fill(b, count, 0, round);
    nccl_good(nccl.all_reduce(b->in, b->out, count, INT32, SUM, communicator, queue),
              "ncclAllReduce");
    wait_for("ncclAllReduce");
    fetch(b, count);
    for (size_t i = 0; i < count; i++) {
        expect("all_reduce", count * sizeof(int32_t), i, b->host[i], sum(i, round));
    }
}

static void check_all_gather(struct buffers *b, size_t count, unsigned round)
{
    const size_t part = count / (size_t)ranks;

    fill(b, count, 0, round);
    nccl_good(nccl.all_gather(b->in, b->out, part, INT32, communicator, queue), "ncclAllGather");
    wait_for("ncclAllGather");
    fetch(b, part * (size_t)ranks);
    for (size_t i = 0; i < part * (size_t)ranks; i++) {
        expect("all_gather", count * sizeof(int32_t), i, b->host[i],
               value((int)(i / part), i % part, round));
    }
}

static void check_reduce_scatter(struct buffers *b, size_t count, unsigned round)
{
    const size_t part = count / (size_t)ranks;

    fill(b, count, 0, round);
    nccl_good(nccl.reduce_scatter(b->in, b->out, part, INT32, SUM, communicator, queue),
              "ncclReduceScatter");
    wait_for("ncclReduceScatter");
    fetch(b, part);
    for (size_t i = 0; i < part; i++) {
        expect("reduce_scatter", count * sizeof(int32_t), i, b->host[i],
               sum((size_t)rank * part + i, round));
    }
}

static void exchange(struct buffers *b, size_t count)
{
    nccl_good(nccl.group_start(), "ncclGroupStart");
    nccl_good(nccl.send(b->in, count, INT32, (rank + 1) % ranks, communicator, queue), "ncclSend");
    nccl_good(nccl.receive(b->out, count, INT32, (rank + ranks - 1) % ranks, communicator, queue),
              "ncclRecv");
    nccl_good(nccl.group_end(), "ncclGroupEnd");
}

static void check_send_receive(struct buffers *b, size_t count, unsigned round)
{
    fill(b, count, 0, round);
    exchange(b, count);
    wait_for("ncclSend, ncclRecv");
    fetch(b, count);
    for (size_t i = 0; i < count; i++) {
        expect("sendrecv", count * sizeof(int32_t), i, b->host[i],
               value((rank + ranks - 1) % ranks, i, round));
    }
}

static void claim(struct buffers *b, size_t bytes)
{
    const size_t unit = (size_t)ranks * 4;

    b->count = (bytes / sizeof(int32_t) + unit - 1) / unit * unit; /* a part for each rank */
    b->host = malloc(b->count * sizeof(int32_t));
    if (b->host == NULL) {
        die("memory", strerror(errno));
    }
    cuda_good(cuda.alloc(&b->in, b->count * sizeof(int32_t)), "cudaMalloc");
    cuda_good(cuda.alloc(&b->out, b->count * sizeof(int32_t)), "cudaMalloc");
}

/* -- the commands */

static size_t read_bytes(const char *text)
{
    char *end;
    const unsigned long long n = strtoull(text, &end, 10);

    if (end == text || *end != 0 || n < 4 || n > 1ull << 34) {
        die(text, "not a number of bytes");
    }
    return (size_t)n;
}

static int check(char **sizes, int count)
{
    struct buffers b;
    unsigned round = 1;

    claim(&b, 256u << 20);
    for (int i = 0; i < count; i++, round++) {
        size_t n = read_bytes(sizes[i]) / sizeof(int32_t);
        n = n > b.count ? b.count : n;
        const size_t whole =
            n / (size_t)ranks > 0 ? n / (size_t)ranks * (size_t)ranks : (size_t)ranks;
        check_all_reduce(&b, n, round);
        check_all_gather(&b, whole, round);
        check_reduce_scatter(&b, whole, round);
        check_send_receive(&b, n, round);
    }
    if (rank == 0) {
        printf("checked %d sizes of 4 operations on %d ranks\n", count, ranks);
    }
    return EXIT_SUCCESS;
}

/* All ranks do the same number of rounds: rank 0's clock decides, and the others learn it from a sum of one number. */
static int loop(double seconds, size_t bytes)
{
    const double end = now_s() + seconds;
    struct buffers b, flag;
    unsigned round = 1;

    claim(&b, bytes);
    claim(&flag, 4);
    for (;; round++) {
        check_all_reduce(&b, b.count, round);
        flag.host[0] = rank == 0 && now_s() > end ? 1 : 0;
        cuda_good(cuda.copy(flag.in, flag.host, sizeof(int32_t), 1), "cudaMemcpy to the GPU");
        nccl_good(nccl.all_reduce(flag.in, flag.out, 1, INT32, SUM, communicator, queue),
                  "ncclAllReduce");
        wait_for("ncclAllReduce");
        fetch(&flag, 1);
        if (flag.host[0] > 0) {
            break;
        }
    }
    if (rank == 0) {
        printf("looped %u rounds of %zu bytes, all right\n", round, b.count * sizeof(int32_t));
    }
    return EXIT_SUCCESS;
}

static void once(const char *operation, struct buffers *b, size_t count)
{
    const size_t part = count / (size_t)ranks;

    if (strcmp(operation, "all_reduce") == 0) {
        nccl_good(nccl.all_reduce(b->in, b->out, count, INT32, SUM, communicator, queue),
                  operation);
    } else if (strcmp(operation, "all_gather") == 0) {
        nccl_good(nccl.all_gather(b->in, b->out, part, INT32, communicator, queue), operation);
    } else if (strcmp(operation, "reduce_scatter") == 0) {
        nccl_good(nccl.reduce_scatter(b->in, b->out, part, INT32, SUM, communicator, queue),
                  operation);
    } else if (strcmp(operation, "sendrecv") == 0) {
        exchange(b, count);
    } else {
        die(operation, "no such operation");
    }
    wait_for(operation);
}

/* nccl-tests' bus bandwidth: the least that each link must have carried. */
static double bus_factor(const char *operation)
{
    const double n = ranks;

    return strcmp(operation, "all_reduce") == 0 ? 2 * (n - 1) / n
           : strcmp(operation, "sendrecv") == 0 ? 1
                                                : (n - 1) / n;
}

static int bench(const char *operation, int iterations, char **sizes, int count)
{
    struct buffers b;

    claim(&b, 256u << 20);
    for (int s = 0; s < count; s++) {
        size_t n = read_bytes(sizes[s]) / sizeof(int32_t);
        n = n > b.count ? b.count : n;
        fill(&b, n, 0, 1);
        for (int i = 0; i < 3; i++) {
            once(operation, &b, n);
        }
        double begin = now_s();
        for (int i = 0; i < iterations; i++) {
            once(operation, &b, n);
        }
        double us = (now_s() - begin) * 1e6 / iterations;
        if (rank == 0) {
            printf("bench %s %zu %.2f %.4f\n", operation, n * sizeof(int32_t), us,
                   (double)(n * sizeof(int32_t)) / us / 1e3 * bus_factor(operation));
            fflush(stdout);
        }
    }
    return EXIT_SUCCESS;
}

static int probe(void)
{
    int devices = 0, version = 0, runtime = 0;
    const int result = cuda.count(&devices);

    nccl.version(&version);
    cuda.runtime_version(&runtime);
    if (result != 0 || devices == 0) {
        printf("skip no GPU: %s\n", result != 0 ? cuda.words(result) : "no device");
        return SKIP;
    }
    printf("probe nccl %d runtime %d devices %d\n", version, runtime, devices);
    return EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
    const char *what = argc > 6 ? argv[6] : "";
    int status = EXIT_FAILURE;

    if (argc < 7) {
        fputs("usage: gpu-rank NCCL.so CUDART.so ID-FILE RANK RANKS check|loop|bench|probe …\n",
              stderr);
        return 2;
    }
    rank = (int)strtol(argv[4], NULL, 10);
    ranks = (int)strtol(argv[5], NULL, 10);
    open_libraries(argv[1], argv[2]);
    if (strcmp(what, "probe") == 0) {
        return probe();
    }
    cuda_good(cuda.set_device(0), "cudaSetDevice");
    join(argv[3]);
    if (strcmp(what, "check") == 0) {
        status = check(argv + 7, argc - 7);
    } else if (strcmp(what, "loop") == 0 && argc == 9) {
        status = loop(strtod(argv[7], NULL), read_bytes(argv[8]));
    } else if (strcmp(what, "bench") == 0 && argc > 9) {
        status = bench(argv[7], (int)strtol(argv[8], NULL, 10), argv + 9, argc - 9);
    } else {
        die(what, "not understood");
    }
    nccl_good(nccl.destroy(communicator), "ncclCommDestroy");
    return status;
}

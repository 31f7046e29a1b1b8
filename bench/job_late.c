/* job_late.c: messages that a plugin reported as sent and then closed must arrive, however late the receives are posted, and
 * whichever process was stopped meanwhile. It plays worlds of two processes over the plugin, with a short patience.
 *
 *   job_late PLUGIN [WORLDS [AT_A_TIME [FIRST_SEED]]]
 *
 * late       receives are posted long after the sender closed, and long after its patience
 * frozen     the sender closes and is stopped (SIGSTOP) for longer than its patience; then receives are posted
 * half       the receiver is stopped until a message is half sent; the sender closes and is stopped beyond its patience
 * stopped    the receiver is stopped beyond the sender's patience: an error is allowed, a wrong byte isn't
 * finalized  as late, and the sender's last communicator is finalized at once; its process lives on
 *
 * half's kernel (only root: in a network namespace of its own) has buffers smaller than a message. Half of the worlds carry
 * checksums. Each message's bytes depend only on (seed, communicator, number, place). */
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/prng.h"
#include "now.h"
#include "ranks.h"
#include "report.h"

#define COMMS_MAX 4
#define COUNT_MAX 32
#define SMALL     8192 /* sends up to this size are done without a receive; larger ones wait for it */
/* The sender's patience. It must cover its messages' way into a stopped receiver, and the pauses of a busy machine. */
#define PATIENCE_MS 2000
#define WAIT_MS     500
#define LONG_MS     8000 /* the receiver's patience */
#define PULSE_MS    5

enum kind { LATE, FROZEN, HALF, STOPPED, FINALIZED, KINDS };
static const char *const kinds[KINDS] = {"late", "frozen", "half", "stopped", "finalized"};

struct world {
    uint64_t seed;
    const char *plugin;
    enum kind kind;
    bool checksum;
    uint32_t comms, count; /* number of communicators; of messages of each */
    uint32_t size;         /* of the largest */
    int wait_ms;           /* beyond the sender's patience */
};

/* The result of a world; its receiver writes it. */
struct outcome {
    uint32_t arrived, wrong, failed;
    int64_t paused_ms; /* the longest time that the receiver stood still */
    bool excused;      /* it was stopped for too long, so an error is allowed */
    char words[160];
};

static void sleep_ms(int ms)
{
    (void)usleep((useconds_t)ms * 1000);
}

static int64_t now_ms(void)
{
    return now_ns(CLOCK_MONOTONIC) / NS_PER_MS;
}

static struct world world_of(uint64_t seed, const char *plugin)
{
    struct world w = {.seed = seed, .plugin = plugin};
    struct prng prng;

    prng_init(&prng, hash_u64(seed, 5));
    w.kind = (enum kind)(seed % KINDS);
    w.checksum = seed / KINDS % 2 == 0;
    w.comms = w.kind == HALF || w.kind == STOPPED ? COMMS_MAX : 1 + (uint32_t)prng_below(&prng, 4);
    w.count = 1 + (uint32_t)prng_below(&prng, COUNT_MAX);
    w.count = w.kind == HALF || w.kind == STOPPED ? 16 : w.count;
    w.size = w.kind == HALF || w.kind == STOPPED || prng_below(&prng, 2) == 0 ? SMALL : 8;
    w.wait_ms = WAIT_MS / 2 + (int)prng_below(&prng, WAIT_MS);
    return w;
}

static uint32_t size_of(const struct world *w, uint32_t comm, uint32_t message)
{
    return w->kind == HALF || w->kind == STOPPED
               ? w->size
               : (uint32_t)(hash_u64(w->seed, (uint64_t)comm << 32 | message) % (w->size + 1));
}

static void fill(const struct world *w, uint32_t comm, uint32_t message, uint8_t *bytes)
{
    const uint64_t seed = hash_u64(w->seed, ((uint64_t)comm << 32 | message) + 1);

    for (uint32_t i = 0; i < size_of(w, comm, message); i++) {
        bytes[i] = (uint8_t)(1 + hash_u64(seed, i / 8) % 255); /* never 0 */
    }
}

/* -- both ends -------------------------------------------------------------------------------- */

struct rank {
    const struct world *w;
    struct net_client net;
    void *context;
    int peer; /* the other rank */
    struct led me;
    void *comms[COMMS_MAX];
};

static void rank_open(struct rank *r, int patience)
{
    char text[32];

    snprintf(text, sizeof(text), "%.3f", patience / 1e3);
    setenv("FOLIOT_PATIENCE", text, 1);
    setenv("FOLIOT_CHECKSUM", r->w->checksum ? "2" : "0", 1);
    ranks_open(&r->net, r->w->plugin, &r->context);
}

static void send_side(struct rank *r)
{
    static uint8_t bytes[SMALL + 1];
    char handle[NCCL_HANDLE_SIZE];
    const struct world *w = r->w;

    rank_open(r, PATIENCE_MS);
    for (uint32_t c = 0; c < w->comms; c++) {
        if (recv(r->peer, handle, sizeof(handle), MSG_WAITALL) != (ssize_t)sizeof(handle)) {
            _exit(1);
        }
        while (r->comms[c] == NULL) {
            if (net_connect(&r->net, r->context, 0, handle, &r->comms[c]) != NCCL_SUCCESS) {
                ranks_give_up("connect");
            }
            sleep_ms(1);
        }
    }
    ranks_meet(&r->me, 'o');
    for (uint32_t m = 0; m < w->count; m++) {
        for (uint32_t c = 0; c < w->comms; c++) {
            void *request = NULL;
            int done = 0;
            fill(w, c, m, bytes);
            while (request == NULL) {
                if (net_isend(&r->net, r->comms[c], bytes, size_of(w, c, m), 0, NULL, &request) !=
                    NCCL_SUCCESS) {
                    ranks_give_up("isend");
                }
            }
            while (!done) {
                if (net_test(&r->net, request, &done, NULL) != NCCL_SUCCESS) {
                    ranks_give_up("test of a send");
                }
            }
            memset(bytes, 0, sizeof(bytes)); /* it belongs to its owner again */
        }
    }
    for (uint32_t c = 0; c < w->comms; c++) {
        (void)net_close_send(&r->net, r->comms[c]);
    }
    if (w->kind == FINALIZED) {
        (void)net_finalize(&r->net, r->context);
    }
    ranks_meet(&r->me, 'c'); /* all was reported as done: from here on it depends on the plugin */
    if (w->kind != FINALIZED) {
        (void)net_finalize(&r->net, r->context);
    }
    _exit(0);
}

struct slot {
    uint8_t bytes[SMALL + 8];
    void *request;
    bool over;
};

static void post_all(struct rank *r, struct slot *slots, struct outcome *ret)
{
    for (uint32_t i = 0; i < r->w->comms * r->w->count; i++) {
        const struct net_receive receive = {.count = 1, .data = {slots[i].bytes}, .sizes = {SMALL}};
        memset(slots[i].bytes, 0, sizeof(slots[i].bytes));
        if (net_irecv(&r->net, r->comms[i / r->w->count], &receive, &slots[i].request) !=
            NCCL_SUCCESS) {
            slots[i].over = true;
            ret->failed++;
        }
    }
}

static bool look_all(struct rank *r, struct slot *slots, struct outcome *ret)
{
    static uint8_t wanted[SMALL + 8];
    bool all = true;

    for (uint32_t i = 0; i < r->w->comms * r->w->count; i++) {
        const uint32_t c = i / r->w->count, m = i % r->w->count;
        int done = 0, size = 0;
        if (slots[i].over) {
            continue;
        }
        all = false;
        if (net_test(&r->net, slots[i].request, &done, &size) != NCCL_SUCCESS) {
            slots[i].over = true;
            ret->failed++;
            snprintf(ret->words, sizeof(ret->words), "%.150s", ranks_words());
        } else if (done) {
            slots[i].over = true;
            memset(wanted, 0, sizeof(wanted));
            fill(r->w, c, m, wanted);
            const bool right = (uint32_t)size == size_of(r->w, c, m) &&
                               memcmp(wanted, slots[i].bytes, sizeof(wanted)) == 0;
            ret->arrived += right;
            ret->wrong += !right;
        }
    }
    return all;
}

/* Measures whether the receiver gets a processor: without one it is as good as stopped. */
static void *feel_pulse(void *longest_ms)
{
    for (int64_t last = now_ms();;) {
        sleep_ms(PULSE_MS);
        const int64_t now = now_ms(), paused = now - last;
        if (paused > __atomic_load_n((int64_t *)longest_ms, __ATOMIC_RELAXED)) {
            __atomic_store_n((int64_t *)longest_ms, paused, __ATOMIC_RELAXED);
        }
        last = now;
    }
    return NULL;
}

static void receive_side(struct rank *r, struct outcome *ret)
{
    struct slot *slots = calloc((size_t)r->w->comms * r->w->count, sizeof(*slots));
    const bool early = r->w->kind == HALF || r->w->kind == STOPPED;
    char handle[NCCL_HANDLE_SIZE];
    static int64_t longest_ms;
    pthread_t pulse;

    rank_open(r, LONG_MS);
    if (pthread_create(&pulse, NULL, feel_pulse, &longest_ms) != 0) {
        ranks_give_up("no thread");
    }
    for (uint32_t c = 0; c < r->w->comms; c++) {
        void *listener;
        memset(handle, 0, sizeof(handle));
        if (slots == NULL ||
            net_listen(&r->net, r->context, 0, handle, &listener) != NCCL_SUCCESS ||
            send(r->peer, handle, sizeof(handle), MSG_NOSIGNAL) != (ssize_t)sizeof(handle)) {
            ranks_give_up("listen");
        }
        while (r->comms[c] == NULL) {
            if (net_accept(&r->net, listener, &r->comms[c]) != NCCL_SUCCESS) {
                ranks_give_up("accept");
            }
            sleep_ms(1);
        }
        (void)net_close_listen(&r->net, listener);
    }
    if (early) {
        post_all(r, slots, ret);
        (void)look_all(r, slots, ret);
        sleep_ms(20); /* the sender gets it */
    }
    ranks_meet(&r->me, 'o');
    if (!early) {
        post_all(r, slots, ret);
    }
    while (!look_all(r, slots, ret)) {
        (void)usleep(500);
    }
    for (uint32_t c = 0; c < r->w->comms; c++) {
        (void)net_close_receive(&r->net, r->comms[c]);
    }
    (void)net_finalize(&r->net, r->context);
    ret->paused_ms = __atomic_load_n(&longest_ms, __ATOMIC_RELAXED);
    if (write(r->me.fd, ret, sizeof(*ret)) != (ssize_t)sizeof(*ret)) {
        _exit(1);
    }
    _exit(0);
}

/* -- the leader of a world -------------------------------------------------------------------- */

static struct led lead(const struct world *w, bool sends, const int pair[2])
{
    struct rank r = {.w = w, .peer = pair[sends], .me = ranks_fork()};
    struct outcome outcome = {0};

    if (r.me.pid == 0) {
        close(pair[!sends]);
        if (sends) {
            send_side(&r);
        }
        receive_side(&r, &outcome);
    }
    return r.me;
}

/* *ret_stopped_ms: the time while the receiver was stopped and the sender wasn't. */
static bool act(const struct world *w, const struct led *from, const struct led *to,
                int64_t *ret_stopped_ms)
{
    char where;

    if (!ranks_hear(from, &where, 1) || !ranks_hear(to, &where, 1)) {
        return false;
    }
    const int64_t began = now_ms();
    *ret_stopped_ms = w->kind == STOPPED ? INT64_MAX : 0;
    if (w->kind == HALF || w->kind == STOPPED) {
        (void)kill(to->pid, SIGSTOP);
    }
    if (!ranks_go_on(from) || !ranks_hear(from, &where, 1)) {
        return false;
    }
    if (w->kind == FROZEN || w->kind == HALF) {
        (void)kill(from->pid, SIGSTOP);
    }
    if (w->kind == HALF) { /* it reads what is there, then waits in the middle of a message */
        (void)kill(to->pid, SIGCONT);
        (void)ranks_go_on(to);
        *ret_stopped_ms = now_ms() - began;
    }
    sleep_ms(PATIENCE_MS + w->wait_ms);
    (void)kill(from->pid, SIGCONT);
    (void)kill(to->pid, SIGCONT);
    return w->kind == HALF || ranks_go_on(to);
}

static bool put(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0) {
        close(fd);
    }
    return good;
}

/* Makes a loopback whose connections hold less than a message. Without root it changes nothing. */
static void small_buffers(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};

    if (unshare(CLONE_NEWNET) < 0) {
        return;
    }
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0 ||
        !put("/proc/sys/net/ipv4/tcp_rmem", "4096 4096 4096") ||
        !put("/proc/sys/net/ipv4/tcp_wmem", "4096 4096 4096")) {
        ranks_give_up("small buffers");
    }
    close(fd);
}

static void play(const struct world *w, struct outcome *ret)
{
    const char *reason = "a rank ended early or hung";
    int64_t stopped_ms = 0;
    int pair[2];

    *ret = (struct outcome){0};
    if (w->kind == HALF) {
        small_buffers();
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return;
    }
    const struct led from = lead(w, true, pair), to = lead(w, false, pair);
    close(pair[0]);
    close(pair[1]);
    if (!act(w, &from, &to, &stopped_ms) || !ranks_hear(&to, ret, sizeof(*ret))) {
        snprintf(ret->words, sizeof(ret->words), "%s", reason);
    }
    stopped_ms = ret->paused_ms > stopped_ms ? ret->paused_ms : stopped_ms;
    ret->excused = stopped_ms > PATIENCE_MS / 2; /* because the machine was busy */
    ranks_end(&from);
    ranks_end(&to);
}

/* -- many worlds ------------------------------------------------------------------------------ */

struct totals {
    uint32_t worlds, messages, lost, wrong, excused;
};

static void add(struct totals *sum, const struct world *w, const struct outcome *one)
{
    const uint32_t all = w->comms * w->count, lost = all - one->arrived - one->wrong;

    sum->worlds++;
    sum->messages += all;
    sum->wrong += one->wrong;
    if (one->excused) {
        sum->excused += lost;
    } else {
        sum->lost += lost;
    }
    if (one->wrong > 0 || (lost > 0 && !one->excused)) {
        printf("seed %llu, %s, checksum %d, %u communicators of %u: %u lost, %u wrong: %s\n",
               (unsigned long long)w->seed, kinds[w->kind], w->checksum, w->comms, w->count, lost,
               one->wrong, one->words);
        fflush(stdout);
    }
}

static void play_many(const char *plugin, uint64_t first, uint32_t worlds, uint32_t at_a_time,
                      struct totals *sum)
{
    struct {
        int fd;
        struct world world;
    } running[64];
    uint32_t begun = 0, count = 0;

    while (begun < worlds || count > 0) {
        while (begun < worlds && count < at_a_time) {
            int ends[2];
            struct outcome one;
            running[count].world = world_of(first + begun++, plugin);
            if (pipe(ends) < 0) {
                return;
            }
            if (fork() == 0) {
                play(&running[count].world, &one);
                _exit(write(ends[1], &one, sizeof(one)) != (ssize_t)sizeof(one));
            }
            close(ends[1]);
            running[count++].fd = ends[0];
        }
        struct outcome one = {.words = "the world ended early"};
        (void)!read(running[0].fd, &one, sizeof(one)); /* the oldest world ends first */
        close(running[0].fd);
        (void)waitpid(-1, NULL, 0);
        add(sum, &running[0].world, &one);
        memmove(&running[0], &running[1], --count * sizeof(running[0]));
    }
}

int main(int argc, char *argv[])
{
    const uint32_t worlds = argc > 2 ? (uint32_t)atoi(argv[2]) : 500;
    const uint32_t at_a_time = argc > 3 ? (uint32_t)atoi(argv[3]) : 16;
    const uint64_t first = argc > 4 ? (uint64_t)atoll(argv[4]) : 0;
    static struct report report;
    struct totals sum = {0};
    char note[160];

    if (argc < 2 || at_a_time < 1 || at_a_time > 64) {
        fprintf(stderr, "usage: job_late PLUGIN [WORLDS [AT_A_TIME [FIRST_SEED]]]\n");
        return EXIT_FAILURE;
    }
    const int64_t began = now_ms();
    play_many(argv[1], first, worlds, at_a_time, &sum);
    report_init(&report, "job_late", argc, argv);
    snprintf(note, sizeof(note),
             "%u worlds, %u messages in %.0f s; wrong bytes: %u; %u failed where the receiver was "
             "stopped beyond the patience",
             sum.worlds, sum.messages, (double)(now_ms() - began) / 1e3, sum.wrong, sum.excused);
    report_one(&report, "job.late_receivers.lost", sum.lost + sum.wrong, "messages", 0, 0,
               REPORT_LOWER, note);
    const bool good = report_finish(&report) == 0 && sum.lost + sum.wrong == 0;
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* transport_pair.c: see transport_pair.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport_pair.h"

const char *said_words;
uint32_t said_count;

static void say_line(void *context, enum transport_level level, const char *text)
{
    said_count += said_words != NULL && strstr(text, said_words) != NULL;
    if (level != TRANSPORT_TRACE || getenv("VERBOSE") != NULL) {
        fprintf(stderr, "%s: %s\n", (const char *)context, text);
    }
}

const char *switch_file, *page_folder, *rdma_root = "/nowhere";
uint32_t sender_sockets, receiver_sockets;
uint8_t version, receiver_device = 2;
bool fenced, rails, queue_pairs, sender_without, direct, gpus;
_Alignas(4096) uint8_t out_bytes[1 << 20], in_bytes[1 << 20];

const char *verbs_library(void)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/libfake-verbs-whole.so", getenv("FOLIOT_FAKE_VERBS"));
    return path;
}

struct gpu_memory gpu_new(size_t size)
{
    struct gpu_memory gpu = {.size = size, .fd = memfd_create("gpu", MFD_CLOEXEC)};

    assert_true(gpu.fd >= 0);
    assert_int_equal(ftruncate(gpu.fd, (off_t)size), 0);
    gpu.at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gpu.seen = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, gpu.fd, 0);
    assert_true(gpu.at != MAP_FAILED && gpu.seen != MAP_FAILED);
    return gpu;
}

void gpu_free(struct gpu_memory *gpu)
{
    munmap(gpu->at, gpu->size);
    munmap(gpu->seen, gpu->size);
    close(gpu->fd);
}

void (*router_answers)(struct paths *paths);
const char verbs_devices[] = "lo1=127.0.0.1 lo3=127.0.0.3 lo4=127.0.0.4 lo5=127.0.0.5 "
                             "lo6=127.0.0.6 lo2=127.0.0.2";

static void open_rdma(struct end *end, struct io *io)
{
    setenv("FOLIOT_FAKE_VERBS_WIRE", verbs_devices, 1);
    const struct rdma_config config = {.library = verbs_library(),
                                       .sysfs = rdma_root,
                                       .gpu = gpus,
                                       .answers = router_answers,
                                       .io = io};
    char why[256];

    if (rdma_open(&end->rdma, &config, why, sizeof(why)) < 0) {
        fail_msg("%s", why);
    }
}

void end_open(struct end *end, const char *name, bool thread)
{
    const uint8_t host = queue_pairs && name[0] != 's' ? receiver_device : 1;
    const struct transport_nic nic = {
        .name = "lo", .address = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = host}}};
    struct transport_nic three[3] = {nic, nic, nic};
    struct transport_config config = {.nics = rails ? three : &nic,
                                      .nic_count = rails ? 3 : 1,
                                      .mode = TRANSPORT_FULL,
                                      .priority = PRIORITY_NORMAL,
                                      .checksum = 2,
                                      .thread = thread,
                                      .switch_file = switch_file,
                                      .page_folder = page_folder,
                                      .sockets = name[0] == 's' ? sender_sockets : receiver_sockets,
                                      .version = version,
                                      .fenced = fenced,
                                      .direct = direct,
                                      .gpu = gpus,
                                      .standbys = rails ? 2 : 0,
                                      .say = say_line,
                                      .say_context = (void *)(uintptr_t)name};

    trouble_threads = thread;
    assert_int_equal(tcp_open(&end->tcp, "/sys"), 0);
    end->trouble = malloc(sizeof(*end->trouble));
    assert_non_null(end->trouble);
    *end->trouble = (struct trouble){.rails = rails, .astray = -EHOSTUNREACH};
    for (uint8_t i = 0; i < 3; i++) {
        three[i].address.ip[14] = (uint8_t)(i + 1);
    }
    config.io = trouble_io(end->trouble, tcp_io(end->tcp));
    end->rdma = NULL;
    if (queue_pairs) {
        open_rdma(end, config.io);
        config.rdma = sender_without && name[0] == 's' ? NULL : rdma_io(end->rdma);
    }
    assert_int_equal(transport_new(&end->transport, &config), 0);
    if (direct && config.rdma != NULL) {
        struct transport_memory *memory, *again;
        uint8_t *bytes = name[0] == 's' ? out_bytes : in_bytes;
        assert_int_equal(transport_memory_add(end->transport, bytes, 1 << 20, &memory), 0);
        assert_int_equal(transport_memory_add(end->transport, bytes, 1 << 20, &again), 0);
        assert_ptr_equal(again, memory); /* it is registered once */
        transport_memory_remove(end->transport, again);
        assert_int_equal(transport_memory_add(end->transport, bytes + 5000, 5000, &again), 0);
        assert_ptr_not_equal(again, memory); /* what is given back alone is registered alone */
        transport_memory_remove(end->transport, again);
    }
}

void end_close(struct end *end)
{
    assert_int_equal(transport_free(end->transport), TRANSPORT_GONE);
    rdma_close(end->rdma);
    tcp_close(end->tcp);
    free(end->trouble);
}

/* A device is a thread, and the kernel may need the processor to deliver what was sent. If time is skipped while they have none,
 * that looks like a path that drops everything. */
void skip_ms(int64_t ms)
{
    static uint32_t calls;
    const struct timespec pause = {.tv_nsec = 50000};

    trouble_skipped_ns += ms * NS_PER_MS;
    if (queue_pairs || calls++ % 8 == 0) {
        (void)nanosleep(&pause, NULL);
    }
}

void serve(struct pair *pair)
{
    (void)transport_serve(pair->sender.transport, (struct mono){0});
    (void)transport_serve(pair->receiver.transport, (struct mono){0});
}

void connect_comm(struct pair *pair)
{
    connect_comm_over(pair, 0, 0);
}

void connect_comm_over(struct pair *pair, uint32_t own, uint32_t peer)
{
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listener;
    uint64_t state = 0;

    assert_int_equal(transport_listen(pair->receiver.transport, peer, handle, &listener), 0);
    pair->out = pair->in = NULL;
    for (int i = 0; i < STEPS_MAX && (pair->out == NULL || pair->in == NULL); i++) {
        if (pair->out == NULL) {
            assert_int_equal(
                transport_connect(pair->sender.transport, own, handle, &state, &pair->out), 0);
        }
        if (pair->in == NULL) {
            assert_int_equal(transport_accept(listener, &pair->in), 0);
        }
        if (i > 200) { /* one that can't succeed takes a while */
            skip_ms(own != peer);
        }
        serve(pair);
    }
    assert_non_null(pair->out);
    assert_non_null(pair->in);
    transport_close_listener(listener);
}

static uint32_t lanes_of(const struct transport *t)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < t->set_count; i++) {
        const struct lane_set *set = t->sets[i];
        for (uint32_t lane = 0; set != NULL && lane < LANE_MAX; lane++) {
            const struct stream *stream = set->streams[lane];
            count += stream != NULL && stream->shaken && !stream->dead;
        }
    }
    return count;
}

void lanes_up(struct pair *pair)
{
    for (int i = 0; i < STEPS_MAX && (lanes_of(pair->sender.transport) < LANES ||
                                      lanes_of(pair->receiver.transport) < LANES);
         i++) {
        if (i > 200) {
            skip_ms(1);
        }
        serve(pair);
    }
    assert_true(lanes_of(pair->sender.transport) >= LANES);
    assert_true(lanes_of(pair->receiver.transport) >= LANES);
}

void pair_open(struct pair *pair)
{
    trouble_slowed = false; /* whatever a failed test has left */
    end_open(&pair->sender, "sender", false);
    end_open(&pair->receiver, "receiver", false);
    connect_comm(pair);
    if (sender_sockets == 0 && receiver_sockets == 0 && !rails) {
        lanes_up(pair);
    }
}

void pair_close(struct pair *pair)
{
    transport_close(pair->out);
    transport_close(pair->in);
    for (int i = 0; i < 20; i++) { /* housekeeping sends what is owed, and both ends need that */
        struct io *io = &pair->sender.trouble->io;
        (void)transport_serve(pair->sender.transport, mono_add(io->now(io), span_ms(1)));
        (void)transport_serve(pair->receiver.transport, mono_add(io->now(io), span_ms(1)));
    }
    end_close(&pair->sender);
    end_close(&pair->receiver);
}

void fill(uint8_t *bytes, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)hash_u64(seed, i / 8);
    }
}

void exchange(struct pair *pair, size_t size, size_t room, bool post_first, uint64_t seed)
{
    uint8_t *from = direct ? out_bytes : malloc(size + 1),
            *to = direct ? in_bytes : malloc(room + 1);
    struct transport_request *send = NULL, *receive = NULL;
    bool sent = false, received = false;
    size_t got = 0;

    fill(from, size, seed);
    memset(to, 0xee, room + 1);
    for (int i = 0; i < STEPS_MAX && !(sent && received); i++) {
        if (receive == NULL && (post_first || i > 20)) {
            assert_int_equal(transport_receive(pair->in, to, room, 7, false, NULL, &receive), 0);
        }
        if (send == NULL && !sent) {
            assert_int_equal(transport_send(pair->out, from, size, 7, NULL, &send), 0);
        }
        if (i > 200) { /* something failed: recovery takes a while */
            skip_ms(1);
        }
        if (send != NULL && !sent) {
            assert_int_equal(transport_test(send, &sent, NULL), 0);
            if (sent) {
                memset(from, 0x5a, size); /* its owner may use it again */
            }
        }
        if (receive != NULL && !received) {
            assert_int_equal(transport_test(receive, &received, &got), 0);
        }
        serve(pair);
    }
    assert_true(sent);
    assert_true(received);
    assert_int_equal(got, size);
    fill(from, size, seed);
    assert_memory_equal(from, to, size);
    for (size_t i = size; i <= room; i++) {
        assert_int_equal(to[i], 0xee);
    }
    if (!direct) {
        free(from);
        free(to);
    }
}

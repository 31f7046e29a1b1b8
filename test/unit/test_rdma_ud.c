/* test_rdma_ud.c: UD queue pairs with a fake library: which packets arrive, and whether the spans contain the truth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <time.h>
#include <unistd.h>

#include "../rdma/fake.h"
#include "platform/rdma/ud.h"

static const uint8_t gid_v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [15] = 2};
static const struct rdma_ud_way way = {.traffic_class = 104};
static struct rdma_verbs *verbs;
static struct rdma_device *device;
static struct fake_control *fake;
static struct rdma_ud *a, *b;
static struct rdma_ud_address to_b;

static int64_t now_ns(void *context)
{
    struct timespec t;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int open_one(uint32_t key, struct rdma_ud **ret)
{
    struct rdma_ud_config config = {
        .port = 1, .gid_type = RDMA_GID_ROCE_V2, .key = key, .tag = 7, .now_ns = now_ns};
    memcpy(config.gid, gid_v4, sizeof(config.gid));
    return rdma_ud_open(device, &config, ret);
}

static void open_two(void)
{
    assert_int_equal(open_one(0x1111, &a), 0);
    assert_int_equal(open_one(0x2222, &b), 0);
    rdma_ud_address(b, &to_b);
}

static int begin(void **state)
{
    char path[512], why[256];
    fake_control_function control;
    (void)state;
    snprintf(path, sizeof(path), "%s/libfake-verbs-whole.so", getenv("FOLIOT_FAKE_VERBS"));
    assert_int_equal(rdma_verbs_open(&verbs, path, why, sizeof(why)), 0);
    void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD), *found = dlsym(handle, "fake_control");
    memcpy(&control, &found, sizeof(control));
    fake = control();
    *fake = (struct fake_control){0};
    dlclose(handle);
    a = b = NULL;
    return rdma_device_open(verbs, "fake0", &device);
}

static int end(void **state)
{
    (void)state;
    a = rdma_ud_close(a);
    b = rdma_ud_close(b);
    assert_int_equal(rdma_device_close(device), 0);
    assert_int_equal(fake->open, 0);
    verbs = rdma_verbs_close(verbs);
    return 0;
}

static void test_packets_come(void **state)
{
    struct rdma_ud_packet p;
    struct rdma_span left;
    char text[RDMA_UD_SIZE] = "the first", more[RDMA_UD_SIZE + 1] = "";
    (void)state;
    open_two();
    assert_int_equal(memcmp(to_b.gid, gid_v4, 16), 0);
    assert_true(to_b.global);
    assert_int_equal(to_b.key, 0x2222);
    assert_false(rdma_ud_device_stamps(a));
    assert_int_equal(rdma_ud_receive(b, &p), -EAGAIN);
    for (int i = 0; i < 300; i++) { /* more than there are receives: each is given back */
        const int64_t before = now_ns(NULL);
        assert_int_equal(rdma_ud_send(a, &to_b, &way, text, sizeof(text), &left), 0);
        const int64_t after = now_ns(NULL);
        assert_true(before <= left.earliest_ns && left.earliest_ns <= left.latest_ns &&
                    left.latest_ns <= after);
        assert_int_equal(rdma_ud_receive(b, &p), 0);
        assert_true(p.came.earliest_ns <= after && p.came.latest_ns >= before);
        assert_false(p.came.device || left.device);
        assert_int_equal(p.size, sizeof(text));
        assert_memory_equal(p.bytes, text, sizeof(text));
        assert_int_equal(rdma_ud_receive(b, &p), -EAGAIN);
        text[0]++;
    }
    assert_int_equal(rdma_ud_send(a, &to_b, &way, more, sizeof(more), &left), -EMSGSIZE);
}

/* A look that saw nothing makes the span of the next packet narrow. */
static void test_looks_bound_what_came(void **state)
{
    struct rdma_ud_packet p;
    struct rdma_span left;
    (void)state;
    open_two();
    for (int i = 0; i < 5; i++) {
        const int64_t looked = now_ns(NULL);
        assert_int_equal(rdma_ud_receive(b, &p), -EAGAIN);
        assert_int_equal(rdma_ud_send(a, &to_b, &way, "x", 1, &left), 0);
        assert_int_equal(rdma_ud_receive(b, &p), 0);
        assert_true(p.came.earliest_ns >= looked);
    }
}

/* The device's stamp has the packet's time, however late the look. */
static void test_stamps_of_the_device(void **state)
{
    struct rdma_ud_packet p;
    struct rdma_span left;
    const struct timespec rest = {.tv_nsec = 20000000};
    int narrow = 0;
    (void)state;
    assert_int_equal(rdma_device_close(device), 0);
    fake->stamps = true;
    assert_int_equal(rdma_device_open(verbs, "fake0", &device), 0);
    open_two();
    assert_true(rdma_ud_device_stamps(a));
    for (int i = 0; i < 40 && narrow < 3;
         i++) { /* another process may interrupt this one at any place */
        assert_int_equal(rdma_ud_receive(b, &p), -EAGAIN);
        nanosleep(&rest, NULL);
        const int64_t before = now_ns(NULL);
        assert_int_equal(rdma_ud_send(a, &to_b, &way, "x", 1, &left), 0);
        const int64_t after = now_ns(NULL);
        nanosleep(&rest, NULL);
        assert_int_equal(rdma_ud_receive(b, &p), 0);
        assert_true(left.device && p.came.device);
        assert_true(left.earliest_ns >= before && left.latest_ns <= after);
        assert_true(p.came.earliest_ns <= after && p.came.latest_ns >= before);
        narrow += p.came.latest_ns - p.came.earliest_ns < 1000000;
    }
    assert_int_equal(narrow, 3);
    /* its clock can't be read any more: the looks give the time */
    snprintf(fake->refuse, sizeof(fake->refuse), "query_rt_values");
    fake->refuse_nth = 1;
    fake->refuse_errno = EIO;
    assert_int_equal(rdma_ud_send(a, &to_b, &way, "x", 1, &left), 0);
    assert_false(left.device);
    assert_int_equal(rdma_ud_receive(b, &p), 0);
    assert_true(p.came.device);
}

static void test_strangers_and_lost_packets(void **state)
{
    struct rdma_ud_packet p;
    struct rdma_span left;
    (void)state;
    open_two();
    to_b.key++;
    assert_int_equal(rdma_ud_send(a, &to_b, &way, "x", 1, &left), 0);
    assert_int_equal(rdma_ud_receive(b, &p), -EAGAIN);
    to_b.key--;
    fake->drop = true;
    assert_int_equal(rdma_ud_send(a, &to_b, &way, "x", 1, &left), 0);
    assert_int_equal(rdma_ud_receive(b, &p), -EAGAIN);
    fake->drop = false;
    for (int i = 0; i < 100;
         i++) { /* nothing takes them: packets without a place are lost, the others wait */
        assert_int_equal(rdma_ud_send(a, &to_b, &way, "x", 1, &left), 0);
    }
    int count = 0;
    while (rdma_ud_receive(b, &p) == 0) {
        count++;
    }
    assert_int_equal(count, 64);
}

/* Sends over a way that may have to be made. If the machine pauses meanwhile, that looks like a slow driver. */
static int send_some_time(const struct rdma_ud_way *by)
{
    struct rdma_span left;
    int r = -EAGAIN;

    for (int i = 0; i < 20000 && r == -EAGAIN; i++) {
        r = rdma_ud_send(a, &to_b, by, "x", 1, &left);
        usleep(r == -EAGAIN ? 1000 : 0);
    }
    return r;
}

/* A neighbour that doesn't answer holds the driver for long: such a way is seldom tried, and known ways go on. */
static void test_a_slow_neighbour_costs_little(void **state)
{
    struct rdma_ud_way other = way;
    struct rdma_span left;
    (void)state;
    open_two();
    assert_int_equal(send_some_time(&way), 0);
    fake->connect_ms = 300;
    other.traffic_class = 4;
    snprintf(fake->refuse, sizeof(fake->refuse), "create_ah");
    fake->refuse_nth = 1;
    fake->refuse_errno = ETIMEDOUT;
    while (rdma_ud_send(a, &to_b, &other, "x", 1, &left) == -EAGAIN) {
    }
    const int64_t since = now_ns(NULL);
    int tries = 0;
    for (; now_ns(NULL) - since < 500 * 1000000LL; tries++) {
        assert_int_equal(rdma_ud_send(a, &to_b, &other, "x", 1, &left), -EAGAIN);
        assert_int_equal(rdma_ud_send(a, &to_b, &way, "x", 1, &left), 0);
    }
    assert_true(tries > 3);
    fake->connect_ms = 0;
}

/* Ways are kept; the GID's index is looked up for each new one. */
static void test_ways(void **state)
{
    struct rdma_span left;
    struct rdma_ud_way other = way;
    (void)state;
    open_two();
    assert_int_equal(rdma_ud_send(a, &to_b, &way, "x", 1, &left), 0);
    const int open = fake->open;
    assert_int_equal(rdma_ud_send(a, &to_b, &way, "x", 1, &left), 0);
    assert_int_equal(fake->open, open);
    fake->gid_shift = 3;
    for (int i = 0; i < 200; i++) { /* more than are kept */
        other.traffic_class = (uint8_t)i;
        assert_int_equal(send_some_time(&other), 0);
        assert_true(fake->open <= open + 63);
    }
    other.flow_label = 0x123;
    assert_int_equal(send_some_time(&other), 0);
    assert_int_equal(fake->flow_label, 0x123);
    other.flow_label = 0x124; /* another path is another way */
    assert_int_equal(send_some_time(&other), 0);
    assert_int_equal(fake->flow_label, 0x124);
    fake->no_gids = true;
    other.traffic_class = 201;
    assert_int_equal(send_some_time(&other), -ENOENT);
    fake->no_gids = false;
    snprintf(fake->refuse, sizeof(fake->refuse), "create_ah");
    fake->refuse_nth = 1;
    fake->refuse_errno = ENETUNREACH;
    assert_int_equal(send_some_time(&other), -ENETUNREACH);
    assert_int_equal(send_some_time(&other), 0);
}

/* All agents are in the default partition, some as limited members. Jobs' queue pairs use the other one. */
static void test_the_partition(void **state)
{
    (void)state;
    fake->pkeys[0] = 0x7fff;
    fake->pkeys[1] = 0x8005;
    assert_int_equal(rdma_device_pkey_index(device, 1, 0), 1);
    assert_int_equal(open_one(0x1111, &a), 0);
    assert_int_equal(fake->pkey_index, 0);
}

/* Its index isn't fixed, and the first entry may be empty. */
static void test_the_partition_at_any_index(void **state)
{
    static const uint16_t tables[][2] = {{0, 0xffff}, {0x8005, 0xffff}, {0, 0x8005}};
    struct rdma_ud_packet p;
    struct rdma_span left;
    (void)state;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        memcpy(fake->pkeys, tables[i], sizeof(fake->pkeys));
        open_two();
        assert_int_equal(fake->pkey_index, 1);
        assert_int_equal(rdma_ud_send(a, &to_b, &way, "x", 1, &left), 0);
        assert_int_equal(rdma_ud_receive(b, &p), 0);
        a = rdma_ud_close(a);
        b = rdma_ud_close(b);
    }
}

static void test_what_is_refused(void **state)
{
    static const char *const calls[] = {"query_port", "query_gid_table", "create_cq", "reg_mr",
                                        "create_qp",  "modify_qp",       "post_recv"};
    struct rdma_ud_packet p;
    struct rdma_span left;
    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const int open = fake->open;
        snprintf(fake->refuse, sizeof(fake->refuse), "%s", calls[i]);
        fake->refuse_nth = 1;
        fake->refuse_errno = ENOMEM;
        assert_true(open_one(1, &a) < 0);
        assert_int_equal(fake->open, open);
    }
    fake->no_gids = true;
    assert_int_equal(open_one(1, &a), -ENOENT);
    fake->no_gids = false;
    open_two();
    fake->drop = true;
    fake->status = IBV_WC_LOC_QP_OP_ERR; /* its completion has an error, and garbage */
    assert_int_equal(rdma_ud_send(a, &to_b, &way, "x", 1, &left), -EIO);
    assert_int_equal(rdma_ud_send(a, &to_b, &way, "x", 1, &left), -EIO);
    assert_int_equal(rdma_ud_receive(a, &p), -EIO);
    snprintf(fake->gone, sizeof(fake->gone), "fake0");
    assert_int_equal(rdma_ud_receive(b, &p), -EIO);
    fake->gone[0] = 0;
}

static void test_who_sleeps_is_told(void **state)
{
    struct rdma_ud_packet p;
    struct rdma_span left;
    uint64_t tag = 0;
    (void)state;
    open_two();
    assert_int_equal(rdma_ud_arm(b), 0);
    assert_int_equal(rdma_ud_receive(b, &p), -EAGAIN);
    assert_int_equal(rdma_device_armed(device, &tag), -EAGAIN);
    assert_int_equal(rdma_ud_send(a, &to_b, &way, "x", 1, &left), 0);
    assert_int_equal(rdma_device_armed(device, &tag), 0);
    assert_int_equal(tag, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_packets_come, begin, end),
        cmocka_unit_test_setup_teardown(test_looks_bound_what_came, begin, end),
        cmocka_unit_test_setup_teardown(test_stamps_of_the_device, begin, end),
        cmocka_unit_test_setup_teardown(test_strangers_and_lost_packets, begin, end),
        cmocka_unit_test_setup_teardown(test_ways, begin, end),
        cmocka_unit_test_setup_teardown(test_the_partition, begin, end),
        cmocka_unit_test_setup_teardown(test_the_partition_at_any_index, begin, end),
        cmocka_unit_test_setup_teardown(test_a_slow_neighbour_costs_little, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_who_sleeps_is_told, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

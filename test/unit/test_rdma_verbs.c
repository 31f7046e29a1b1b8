/* test_rdma_verbs.c: our table of libibverbs with a fake library, which refuses, vanishes and lies on demand. */
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

#include "../rdma/fake.h"
#include "platform/rdma/trial.h"

#define CELLS 4

static const uint8_t gid_v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [15] = 2};
static const struct rdma_timeouts timeouts = {
    .timeout = 14, .retries = 6, .rnr_timer = 12, .rnr_retries = 7};
static struct rdma_verbs *verbs;
static struct fake_control *fake;
static fake_event_function send_event;

static const char *library(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/libfake-verbs-%s.so", getenv("FOLIOT_FAKE_VERBS"), name);
    return path;
}

static void find(void *handle, const char *name, void *ret)
{
    void *found = dlsym(handle, name);
    assert_non_null(found);
    memcpy(ret, &found, sizeof(found));
}

static int begin(void **state)
{
    char why[256];
    fake_control_function control;
    (void)state;
    assert_int_equal(rdma_verbs_open(&verbs, library("whole"), why, sizeof(why)), 0);
    void *handle = dlopen(library("whole"), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(handle);
    find(handle, "fake_control", &control);
    find(handle, "fake_event", &send_event);
    fake = control();
    *fake = (struct fake_control){0};
    dlclose(handle);
    return 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(fake->open, 0);
    verbs = rdma_verbs_close(verbs);
    return 0;
}

/* Two ends of a lane in one process. */
struct link {
    struct rdma_device *device;
    struct rdma_cq *cq;
    struct rdma_qp *a, *b;
    struct rdma_memory *from, *to, *cells;
    uint8_t source[256], target[256], cell[CELLS][64];
};

static int link_open(struct link *l)
{
    const struct rdma_qp_config config = {
        .port = 1, .sends = 16, .receives = CELLS, .inline_size = 64, .remote_write = true};
    struct rdma_path path = {.global = true, .own_gid_index = 4, .mtu = 1024, .psn = 5};
    memset(l, 0, sizeof(*l));
    memcpy(path.gid, gid_v4, sizeof(path.gid));
    int r = rdma_device_open(verbs, "fake0", &l->device);
    r = r == 0 ? rdma_cq_open(l->device, 64, 77, &l->cq) : r;
    r = r == 0 ? rdma_memory_add(l->device, l->source, sizeof(l->source), false, &l->from) : r;
    r = r == 0 ? rdma_memory_add(l->device, l->target, sizeof(l->target), true, &l->to) : r;
    r = r == 0 ? rdma_memory_add(l->device, l->cell, sizeof(l->cell), false, &l->cells) : r;
    r = r == 0 ? rdma_qp_open(l->device, l->cq, &config, &l->a) : r;
    r = r == 0 ? rdma_qp_open(l->device, l->cq, &config, &l->b) : r;
    for (uint64_t i = 0; r == 0 && i < CELLS; i++) {
        r = rdma_qp_receive(l->b, 100 + i, l->cell[i], 64, rdma_memory_key(l->cells, false));
    }
    path.qp = r == 0 ? rdma_qp_number(l->b) : 0;
    r = r == 0 ? rdma_qp_connect(l->a, 5, &path, &timeouts) : r;
    path.qp = r == 0 ? rdma_qp_number(l->a) : 0;
    return r == 0 ? rdma_qp_connect(l->b, 5, &path, &timeouts) : r;
}

static void link_close(struct link *l)
{
    if (l->a != NULL) {
        rdma_qp_close(l->a);
    }
    if (l->b != NULL) {
        rdma_qp_close(l->b);
    }
    if (l->from != NULL) {
        rdma_memory_remove(l->from);
    }
    if (l->to != NULL) {
        rdma_memory_remove(l->to);
    }
    if (l->cells != NULL) {
        rdma_memory_remove(l->cells);
    }
    if (l->cq != NULL) {
        rdma_cq_close(l->cq);
    }
    if (l->device != NULL) {
        rdma_device_close(l->device);
    }
}

static int send_one(struct link *l, uint64_t tag)
{
    const struct rdma_piece write = {
        .from = l->source, .size = sizeof(l->source), .key = rdma_memory_key(l->from, false)};
    const struct rdma_piece header = {.from = &tag, .size = sizeof(tag)};
    return rdma_qp_send(l->a, tag, &write, (uintptr_t)l->target, rdma_memory_key(l->to, true),
                        &header);
}

static void a_library_may_be_absent_or_old(void **state)
{
    struct rdma_verbs *v = NULL;
    struct rdma_device *d;
    char why[256];
    (void)state;
    assert_int_equal(rdma_verbs_open(&v, "libno-such-verbs.so.9", why, sizeof(why)), -ENOENT);
    assert_non_null(strstr(why, "libno-such-verbs.so.9"));
    assert_int_equal(rdma_verbs_open(&v, library("short"), why, sizeof(why)), -ENOSYS);
    assert_non_null(strstr(why, "ibv_destroy_qp"));
    assert_null(v);
    assert_int_equal(rdma_verbs_open(&v, library("old"), why, sizeof(why)), 0);
    assert_int_equal(rdma_device_open(v, "fake0", &d), 0);
    assert_int_equal(rdma_device_gid_index(d, 1, gid_v4, RDMA_GID_UNKNOWN),
                     2); /* any type: the first */
    assert_int_equal(rdma_device_gid_index(d, 1, gid_v4, RDMA_GID_ROCE_V2), -EOPNOTSUPP);
    struct rdma_limits limits;
    assert_int_equal(rdma_device_limits(d, &limits), 0);
    assert_false(limits.dmabuf);
    rdma_device_close(d);
    rdma_verbs_close(v);
}

/* From 5.12 on the kernel copies pinned pages for a child. The library knows of other kernels, and of programs that keep the
 * pages from children. */
static void children_may_be_forked_or_not(void **state)
{
    struct rdma_verbs *v, *old;
    char why[256];
    (void)state;
    assert_int_equal(rdma_verbs_open(&old, library("old"), why, sizeof(why)), 0);
    assert_int_equal(rdma_verbs_open(&v, library("whole"), why, sizeof(why)), 0);
    struct rdma_verbs *const both[] = {old, v};
    for (int i = 0; i < 2; i++) {
        assert_true(rdma_verbs_forks(both[i], "5.12.0-1-amd64"));
        assert_true(rdma_verbs_forks(both[i], "6.1.0"));
        assert_true(rdma_verbs_forks(both[i], "10.0"));
        assert_false(rdma_verbs_forks(both[i], "5.11.22"));
        assert_false(rdma_verbs_forks(both[i], "4.18.0-553.el8"));
        assert_false(rdma_verbs_forks(both[i], "3.15.1"));
        assert_false(rdma_verbs_forks(both[i], "unknown"));
    }
    fake->forks = IBV_FORK_UNNEEDED;
    assert_true(rdma_verbs_forks(v, "4.18.0-553.el8"));
    fake->forks = IBV_FORK_ENABLED;
    assert_true(rdma_verbs_forks(v, "5.4.0"));
    fake->forks = IBV_FORK_DISABLED;
    rdma_verbs_close(old);
    rdma_verbs_close(v);
}

static void devices_are_listed_and_read(void **state)
{
    char names[4][RDMA_NAME_SIZE];
    struct rdma_device *d = NULL;
    struct rdma_port_now port;
    struct rdma_limits limits;
    (void)state;
    assert_int_equal(rdma_verbs_devices(verbs, names, 4), 2);
    assert_string_equal(names[1], "fake1");
    memset(names[1], 0x7f, sizeof(names[1]));
    assert_int_equal(rdma_verbs_devices(verbs, names, 1), 2);
    assert_int_equal(names[1][0], 0x7f);
    fake->no_list = true;
    assert_int_equal(rdma_verbs_devices(verbs, names, 4), 0);
    fake->no_list = false;
    assert_int_equal(rdma_device_open(verbs, "mlx5_0", &d), -ENODEV);
    assert_int_equal(rdma_device_open(verbs, "fake1", &d), 0);
    assert_int_equal(rdma_device_port(d, 1, &port), 0);
    assert_true(port.infiniband);
    assert_false(port.grh_required);
    assert_int_equal(port.lid, 0x1c2);
    assert_int_equal(port.lmc, 2);
    assert_int_equal(rdma_device_port(d, 2, &port), -EINVAL);
    rdma_device_close(d);
    assert_int_equal(rdma_device_open(verbs, "fake0", &d), 0);
    assert_int_equal(rdma_device_port(d, 1, &port), 0);
    assert_int_equal(port.active_mtu, 1024);
    assert_int_equal(port.mtu, 4096);
    assert_true(port.grh_required);
    assert_int_equal(rdma_device_gid_index(d, 1, gid_v4, RDMA_GID_ROCE_V1), 2);
    assert_int_equal(rdma_device_gid_index(d, 1, gid_v4, RDMA_GID_ROCE_V2), 4);
    assert_int_equal(rdma_device_gid_index(d, 2, gid_v4, RDMA_GID_ROCE_V2), -ENOENT);
    assert_int_equal(rdma_device_limits(d, &limits), 0);
    assert_true(limits.dmabuf);
    assert_false(limits.cqe_stamps);
    rdma_device_close(d);
}

static void events_are_told_once(void **state)
{
    static const struct {
        int event;
        enum rdma_event_kind kind;
        bool port;
    } all[] = {{IBV_EVENT_PORT_ACTIVE, RDMA_EVENT_PORT_UP, true},
               {IBV_EVENT_PORT_ERR, RDMA_EVENT_PORT_DOWN, true},
               {IBV_EVENT_GID_CHANGE, RDMA_EVENT_ADDRESS, true},
               {IBV_EVENT_SM_CHANGE, RDMA_EVENT_ADDRESS, true},
               {IBV_EVENT_LID_CHANGE, RDMA_EVENT_ADDRESS, true},
               {IBV_EVENT_CLIENT_REREGISTER, RDMA_EVENT_ADDRESS, true},
               {IBV_EVENT_PKEY_CHANGE, RDMA_EVENT_ADDRESS, true},
               {IBV_EVENT_DEVICE_FATAL, RDMA_EVENT_DEVICE_GONE, false},
               {IBV_EVENT_SRQ_ERR, RDMA_EVENT_OTHER, false},
               {IBV_EVENT_WQ_FATAL, RDMA_EVENT_OTHER, false},
               {200, RDMA_EVENT_OTHER, false}};
    static const int of_qp[] = {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR};
    struct link l;
    struct rdma_event event;
    (void)state;
    assert_int_equal(link_open(&l), 0);
    assert_int_equal(rdma_device_event(l.device, &event), -EAGAIN);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        send_event("fake0", all[i].event, 1, 0);
        assert_int_equal(rdma_device_event(l.device, &event), 0);
        assert_int_equal(event.kind, all[i].kind);
        assert_int_equal(event.port, all[i].port ? 1 : 0);
        assert_int_equal(event.number, all[i].event);
        assert_int_equal(rdma_device_event(l.device, &event), -EAGAIN);
    }
    for (size_t i = 0; i < sizeof(of_qp) / sizeof(of_qp[0]); i++) {
        send_event(NULL, of_qp[i], 0, rdma_qp_number(l.a));
        assert_int_equal(rdma_device_event(l.device, &event), 0);
        assert_int_equal(event.kind, RDMA_EVENT_QP);
        assert_int_equal(event.qp, rdma_qp_number(l.a));
    }
    send_event(NULL, IBV_EVENT_CQ_ERR, 0, rdma_qp_number(l.a));
    assert_int_equal(rdma_device_event(l.device, &event), 0);
    assert_int_equal(event.kind, RDMA_EVENT_CQ);
    assert_int_equal(event.tag, 77);
    link_close(&l);
}

static void a_write_is_there_before_its_header(void **state)
{
    struct rdma_done done[8];
    struct link l;
    uint8_t big[256] = {0};
    (void)state;
    assert_int_equal(link_open(&l), 0);
    memset(l.source, 0x5a, sizeof(l.source));
    assert_int_equal(send_one(&l, 7), 0);
    assert_int_equal(rdma_cq_poll(l.cq, done, 8), 2);
    assert_true(done[0].receive && !done[1].receive);
    assert_int_equal(done[0].tag, 100);
    assert_int_equal(done[0].bytes, 8);
    assert_int_equal(done[0].qp, rdma_qp_number(l.b));
    assert_int_equal(done[1].tag, 7);
    assert_int_equal(l.cell[0][0], 7);
    assert_memory_equal(l.source, l.target, sizeof(l.source));
    const struct rdma_piece too_large = {.from = big, .size = sizeof(big)};
    assert_int_equal(rdma_qp_send(l.a, 8, NULL, 0, 0, &too_large), -EMSGSIZE);
    assert_int_equal(rdma_cq_poll(l.cq, done, 8), 0);
    for (int i = 1; i < CELLS; i++) {
        assert_int_equal(rdma_qp_receive(l.b, 200, l.cell[0], 64, rdma_memory_key(l.cells, false)),
                         i == 1 ? 0 : -EAGAIN);
    }
    link_close(&l);
}

static void silence_is_proven_by_the_marker_alone(void **state)
{
    struct rdma_done done[16];
    struct link l;
    (void)state;
    assert_int_equal(link_open(&l), 0);
    memset(l.source, 0x5a, sizeof(l.source));
    fake->lag = 1;
    assert_int_equal(send_one(&l, 7), 0);
    assert_int_equal(l.target[0], 0); /* acknowledged, but not there */
    assert_int_equal(rdma_qp_silence(l.b), 0);
    assert_int_equal(rdma_cq_poll(l.cq, done, 16), 2 + CELLS - 1);
    for (int i = 2; i < 2 + CELLS - 1; i++) {
        assert_int_equal(done[i].status, RDMA_FLUSHED);
        assert_int_equal(done[i].tag, 100 + i - 1); /* in order: the last is the marker */
    }
    assert_int_equal(l.target[0], 0x5a);
    assert_int_equal(send_one(&l, 8), 0); /* the other end gets only silence */
    assert_int_equal(rdma_cq_poll(l.cq, done, 1), 1);
    assert_int_equal(done[0].status, RDMA_RETRIES);
    link_close(&l);
}

static void each_error_has_its_status(void **state)
{
    static const struct {
        int theirs;
        enum rdma_status ours;
    } all[] = {{IBV_WC_RETRY_EXC_ERR, RDMA_RETRIES},
               {IBV_WC_RESP_TIMEOUT_ERR, RDMA_RETRIES},
               {IBV_WC_RNR_RETRY_EXC_ERR, RDMA_RNR_RETRIES},
               {IBV_WC_REM_ACCESS_ERR, RDMA_ACCESS},
               {IBV_WC_REM_INV_REQ_ERR, RDMA_ACCESS},
               {IBV_WC_REM_OP_ERR, RDMA_ACCESS},
               {IBV_WC_REM_ABORT_ERR, RDMA_ACCESS},
               {IBV_WC_LOC_LEN_ERR, RDMA_LOCAL},
               {IBV_WC_LOC_QP_OP_ERR, RDMA_LOCAL},
               {IBV_WC_LOC_PROT_ERR, RDMA_LOCAL},
               {IBV_WC_LOC_ACCESS_ERR, RDMA_LOCAL},
               {IBV_WC_MW_BIND_ERR, RDMA_LOCAL},
               {IBV_WC_WR_FLUSH_ERR, RDMA_FLUSHED},
               {IBV_WC_LOC_EEC_OP_ERR, RDMA_FATAL},
               {IBV_WC_BAD_RESP_ERR, RDMA_FATAL},
               {IBV_WC_LOC_RDD_VIOL_ERR, RDMA_FATAL},
               {IBV_WC_REM_INV_RD_REQ_ERR, RDMA_FATAL},
               {IBV_WC_INV_EECN_ERR, RDMA_FATAL},
               {IBV_WC_INV_EEC_STATE_ERR, RDMA_FATAL},
               {IBV_WC_FATAL_ERR, RDMA_FATAL},
               {IBV_WC_GENERAL_ERR, RDMA_FATAL},
               {IBV_WC_TM_ERR, RDMA_FATAL},
               {IBV_WC_TM_RNDV_INCOMPLETE, RDMA_FATAL},
               {77, RDMA_FATAL}};
    struct rdma_done done[16];
    uint32_t seen = 1u << IBV_WC_SUCCESS;
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct link l;
        seen |= all[i].theirs < 32 ? 1u << all[i].theirs : 0;
        assert_int_equal(link_open(&l), 0);
        fake->status = all[i].theirs;
        assert_int_equal(send_one(&l, 9), 0);
        assert_true(rdma_cq_poll(l.cq, done, 16) > 0);
        assert_int_equal(done[0].status, all[i].ours);
        assert_int_equal(done[0].number, all[i].theirs);
        assert_int_equal(done[0].tag, 100);
        assert_int_equal(done[0].bytes, 0); /* garbage in an error is not read */
        assert_false(done[0].receive);
        link_close(&l);
    }
    assert_int_equal(seen, (2u << IBV_WC_TM_RNDV_INCOMPLETE) - 1); /* all of them */
}

/* Every function of the library may refuse: its own error is returned, and nothing stays open. */
static void a_refusal_leaves_nothing_behind(void **state)
{
    static const char *const functions[] = {"get_device_list", "open_device",         "alloc_pd",
                                            "create_cq",       "create_comp_channel", "reg_mr",
                                            "create_qp",       "modify_qp",           "post_recv"};
    (void)state;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        int r = -1;
        for (int nth = 1; r != 0; nth++) {
            struct link l;
            strcpy(fake->refuse, functions[i]);
            fake->refuse_nth = nth;
            fake->refuse_errno = EPERM;
            r = link_open(&l);
            assert_true(r == 0 || r == -EPERM ||
                        (r == -EAGAIN && strcmp(functions[i], "post_recv") == 0));
            assert_true(r < 0 || nth > 1);
            fake->refuse[0] = 0;
            link_close(&l);
            assert_int_equal(fake->open, 0);
        }
    }
}

static void a_device_may_vanish_in_use(void **state)
{
    struct rdma_done done[4];
    struct rdma_port_now port;
    struct link l;
    (void)state;
    assert_int_equal(link_open(&l), 0);
    strcpy(fake->gone, "fake0");
    assert_int_equal(send_one(&l, 1), -ENODEV);
    assert_int_equal(rdma_cq_poll(l.cq, done, 4), -EIO);
    assert_int_equal(rdma_device_port(l.device, 1, &port), -ENODEV);
    assert_int_equal(rdma_qp_silence(l.b), -ENODEV);
    struct rdma_device *device = l.device;
    l.device = NULL;
    link_close(&l);
    assert_int_equal(rdma_device_close(device), -ENODEV); /* so it must not count as silent */
    fake->gone[0] = 0;
    assert_int_equal(link_open(&l), 0);
    link_close(&l);
}

static struct rdma_trial_config trial_of(uint32_t rounds, uint32_t watch_ms)
{
    struct rdma_trial_config config = {.port = 1,
                                       .gid_index = 4,
                                       .global = true,
                                       .mtu = 1024,
                                       .rounds = rounds,
                                       .size = 8192,
                                       .watch_ms = watch_ms,
                                       .seed = 1};
    memcpy(config.gid, gid_v4, sizeof(config.gid));
    return config;
}

/* The self-test for owners of hardware: a device that follows the standard passes, even if its writes are late. A device whose
 * marker doesn't mean silence is found. */
static void the_fence_is_tried(void **state)
{
    struct rdma_trial_config config = trial_of(5, 10);
    struct rdma_trial trial;
    struct rdma_device *d = NULL;
    (void)state;
    assert_int_equal(rdma_device_open(verbs, "fake0", &d), 0);
    for (int lag = 0; lag <= 4; lag += 2) {
        fake->lag = lag;
        rdma_trial_fence(d, &config, &trial);
        assert_int_equal(trial.error, 0);
        assert_int_equal(trial.rounds, config.rounds);
        assert_true(trial.writes > 0 && trial.marker_ns_p50 > 0 &&
                    trial.marker_ns_max >= trial.marker_ns_p50);
        assert_int_equal(trial.moved_after_marker + trial.out_of_order + trial.no_marker, 0);
    }
    fake->lies = 100;
    config.watch_ms = 300;
    rdma_trial_fence(d, &config, &trial);
    assert_int_equal(trial.error, 0);
    assert_true(trial.moved_after_marker >
                0); /* in each round, unless this process paused for 100 ms */
    assert_true(trial.bytes_after_marker >= config.size / 2);
    fake->lies = 0;
    fake->no_flush = true;
    config.rounds = 1;
    rdma_trial_fence(d, &config, &trial);
    assert_int_equal(trial.no_marker, 1);
    fake->no_flush = false;
    fake->drop = true;
    rdma_trial_fence(d, &config, &trial);
    assert_int_equal(trial.error, -ETIMEDOUT);
    assert_int_equal(trial.rounds, 0);
    fake->drop = false;
    strcpy(fake->refuse, "create_cq");
    fake->refuse_nth = 2;
    fake->refuse_errno = EMFILE;
    rdma_trial_fence(d, &config, &trial);
    assert_int_equal(trial.error, -EMFILE);
    assert_string_equal(trial.what, "making a completion queue");
    rdma_device_close(d);
}

/* The port's two queue pairs hear each other, at whatever index their common P_Key is. */
static void the_fence_is_tried_in_any_partition(void **state)
{
    static const uint16_t tables[][2] = {{0, 0xffff}, {0x8005, 0xffff}, {0x7fff, 0x8005}};
    struct rdma_trial_config config = trial_of(1, 1);
    struct rdma_trial trial;
    struct rdma_device *d = NULL;
    (void)state;
    assert_int_equal(rdma_device_open(verbs, "fake0", &d), 0);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        memcpy(fake->pkeys, tables[i], sizeof(fake->pkeys));
        rdma_trial_fence(d, &config, &trial);
        assert_int_equal(trial.error, 0);
        assert_int_equal(trial.rounds, 1);
        assert_int_equal(fake->pkey_index, 1);
    }
    rdma_device_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_may_be_absent_or_old),
        cmocka_unit_test_setup_teardown(children_may_be_forked_or_not, begin, end),
        cmocka_unit_test_setup_teardown(devices_are_listed_and_read, begin, end),
        cmocka_unit_test_setup_teardown(events_are_told_once, begin, end),
        cmocka_unit_test_setup_teardown(a_write_is_there_before_its_header, begin, end),
        cmocka_unit_test_setup_teardown(silence_is_proven_by_the_marker_alone, begin, end),
        cmocka_unit_test_setup_teardown(each_error_has_its_status, begin, end),
        cmocka_unit_test_setup_teardown(a_refusal_leaves_nothing_behind, begin, end),
        cmocka_unit_test_setup_teardown(a_device_may_vanish_in_use, begin, end),
        cmocka_unit_test_setup_teardown(the_fence_is_tried, begin, end),
        cmocka_unit_test_setup_teardown(the_fence_is_tried_in_any_partition, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_lane_copy.c: lanes over queue pairs, from end to end: two transports, libibverbs' functions, and a fake device whose wire
 * is UDP on the loopback (test/rdma/fake.h). The simulator's worlds have the faults; here the drivers are real. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#include "core/failover/sender_internal.h"
#include "core/traffic/paths.h"
#include "lane_pairs.h"
#include "transport/lane_pair.h"

static void test_messages(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair);
    exchange(&pair, 100000, 100000, true, 1); /* over TCP: nothing waits for queue pairs */
    wait_for(&pair, 4, 4);
    for (uint64_t i = 0; i < 40; i++) {
        exchange(&pair, i % 3 == 0 ? i : i * 20011, i * 20011 + 8, i % 2 == 0, i);
    }
    wait_for(&pair, 4, 4);
    pair_close(&pair);
}

static ssize_t (*receive_really)(struct io *io, int conn, const struct iovec *parts, int count,
                                 struct io_stamp *ret_stamp);
static uint32_t receives;

static ssize_t receive_counted(struct io *io, int conn, const struct iovec *parts, int count,
                               struct io_stamp *ret_stamp)
{
    receives++;
    return receive_really(io, conn, parts, count, ret_stamp);
}

/* The connection beside a queue pair only shows whether the peer's process is gone: it is seldom read. */
static void test_the_connection_is_seldom_asked(void **state)
{
    struct transport_request *receive, *send;
    struct pair pair;
    bool done;

    (void)state;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    exchange(&pair, 1000, 1000, true, 1);
    struct io *io = &pair.receiver.trouble->io;
    receive_really = io->receive;
    io->receive = receive_counted;
    assert_int_equal(transport_receive(pair.in, in_bytes, 1000, 7, false, NULL, &receive), 0);
    const struct mono began = io->now(io);
    for (int i = 0; i < 100; i++) {
        trouble_skipped_ns += NS_PER_MS / 2;
        assert_int_equal(transport_test(receive, &done, NULL), 0);
        assert_false(done);
    }
    const int64_t ms = mono_sub(io->now(io), began).ns / NS_PER_MS;
    io->receive = receive_really;
    assert_true(ms >= 50);
    assert_in_range(receives, 4, 4 * (1 + ms / 10));
    assert_int_equal(transport_send(pair.out, out_bytes, 1000, 7, NULL, &send), 0);
    assert_true(received(&pair, receive, PATIENCE_MS));
    assert_int_equal(transport_test(send, &done, NULL), 0);
    pair_close(&pair);
}

static int (*send_at_once)(struct io_rdma *rdma, int qp, uint32_t cell, uint32_t size,
                           const struct io_rdma_write *write);

/* Like soft-RoCE, which does a NIC's work in the time of the thread that posts. */
static int send_for_long(struct io_rdma *rdma, int qp, uint32_t cell, uint32_t size,
                         const struct io_rdma_write *write)
{
    trouble_skipped_ns += 3 * UNPOLLED_NS;
    return send_at_once(rdma, qp, cell, size, write);
}

/* A thread that polls a set polls it until the call ends, however long that takes: the housekeeping thread has nothing to do
 * there. */
static void test_a_long_call_is_one_that_polls(void **state)
{
    struct transport_request *send, *receive;
    bool sent = false;
    struct pair pair;

    (void)state;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    exchange(&pair, 1000, 1000, true, 1);
    struct io_rdma *rdma = rdma_io(pair.sender.rdma);
    send_at_once = rdma->send;
    rdma->send = send_for_long;
    assert_int_equal(transport_receive(pair.in, in_bytes, 1000, 7, false, NULL, &receive), 0);
    assert_int_equal(transport_send(pair.out, out_bytes, 1000, 7, NULL, &send), 0);
    const struct mono served = pair.out->set->served;
    (void)transport_serve(pair.sender.transport, (struct mono){0});
    assert_int_equal(pair.out->set->served.ns, served.ns);
    rdma->send = send_at_once;
    skip_ms(2); /* and now no thread polls */
    (void)transport_serve(pair.sender.transport, (struct mono){0});
    assert_true(pair.out->set->served.ns > served.ns);
    assert_int_equal(transport_test(send, &sent, NULL), 0);
    assert_true(sent && received(&pair, receive, PATIENCE_MS));
    pair_close(&pair);
}

/* *ret_has_port: whether some lane has reported that port. */
static uint32_t shown(struct transport *t, uint32_t port, bool *ret_has_port)
{
    uint32_t count = 0;

    *ret_has_port = false;

    page_write(t, t->io->now(t->io));
    for (uint32_t i = 0; i < t->page_count; i++) {
        struct job_page_lane lane;
        assert_true(job_page_read_lane(t->page, sizeof(*t->page), i, &lane));
        count += (lane.pair & JOB_PAGE_PAIR) != 0;
        assert_int_equal((lane.pair & JOB_PAGE_PORT) != 0,
                         lane.sending != 0 && (lane.pair & JOB_PAGE_PAIR) != 0);
        *ret_has_port =
            *ret_has_port || ((lane.pair & JOB_PAGE_PORT) != 0 && lane.path_port == port);
    }
    return count;
}

/* Each end's page shows which lanes use queue pairs, of those that it sends or receives on, and for sending lanes the port. */
static void test_shown(void **state)
{
    char folder[] = "/tmp/foliot-page-XXXXXX";
    struct pair pair;

    (void)state;
    assert_non_null(mkdtemp(folder));
    page_folder = folder;
    fake->memlock = 4096;
    for (uint32_t lanes = 0; lanes <= 4; lanes += 4) {
        pair_open(&pair);
        wait_for(&pair, lanes, lanes);
        exchange(&pair, 1000, 1000, true, 1);
        bool by_sender, by_receiver;
        const uint32_t port = IO_ROCE_FIRST_PORT | fake->flow_label;
        assert_int_equal(shown(pair.sender.transport, port, &by_sender), lanes);
        assert_int_equal(shown(pair.receiver.transport, port, &by_receiver), lanes);
        assert_int_equal(by_sender, lanes > 0); /* the offering end connects last */
        pair_close(&pair);
        fake->memlock = 0;
    }
    page_folder = NULL;
    assert_int_equal(rmdir(folder), 0);
}

/* Reports over other lanes don't make the receiver look there first for the next message: it comes where the last one did. */
static void test_looked_for_where_the_last_one_came(void **state)
{
    struct lane_report word = {.comm = LANE_COMM_NONE};
    struct pair pair;

    (void)state;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    exchange(&pair, 100, 100, true, 1);
    struct lane_set *in = pair.in->set;
    const uint32_t lane = in->hot, other = lane == 0 ? 1 : 0;
    const uint64_t reads = in->reads;
    lane_set_tell(pair.out->set, &word, (int)other);
    for (int i = 0; i < STEPS_MAX && in->reads == reads; i++) {
        serve(&pair);
        usleep(100);
    }
    assert_true(in->reads > reads);
    assert_int_equal(in->hot, lane);
    pair_close(&pair);
}

/* True if the NICs of that end have acknowledged everything: nothing is timed later. */
static bool all_acknowledged(const struct transport *t, const struct lane_set *set)
{
    bool all = over_pairs(t) == LANES;

    for (uint32_t lane = 0; lane < LANES && all; lane++) {
        all = set->streams[lane] != NULL && set->streams[lane]->qp != NULL &&
              set->streams[lane]->qp->completed == set->streams[lane]->qp->sent;
    }
    return all;
}

/* A receiver of small messages sends a report after 200 us. If a NIC takes a millisecond for a round trip, the report waits for
 * the time of an answer, with which it can be sent. */
static void test_reports_wait_for_slow_nics(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    for (int slow = 0; slow < 2; slow++) {
        struct lane_set *in = pair.in->set;
        struct transport_request *receive = NULL;
        bool done = false;
        exchange(&pair, 100, 100, true, 1);
        skip_ms(20);
        serve(&pair);
        for (int i = 0; i < PATIENCE_MS && !all_acknowledged(pair.receiver.transport, in); i++) {
            usleep(1000);
            serve(&pair);
        }
        assert_true(all_acknowledged(pair.receiver.transport, in));
        trouble_slowed = true; /* only the skipped time passes */
        for (uint32_t lane = 0; lane < LANES; lane++) {
            in->streams[lane]->qp->rtt_ns = slow == 1 ? NS_PER_MS : 10000;
        }
        assert_int_equal(transport_receive(pair.in, in_bytes, 100, 7, false, NULL, &receive), 0);
        const uint32_t told = in->sequence;
        for (int i = 0; i < 12; i++) { /* 600 us */
            trouble_skipped_ns += 50000;
            assert_int_equal(transport_test(receive, &done, NULL), 0);
        }
        assert_int_equal(in->sequence - told, slow == 0);
        for (int i = 0; i < 200; i++) { /* but it isn't left out */
            trouble_skipped_ns += 50000;
            assert_int_equal(transport_test(receive, &done, NULL), 0);
        }
        assert_true(in->sequence > told);
        trouble_slowed = false;
        struct transport_request *send = NULL;
        assert_int_equal(transport_send(pair.out, out_bytes, 100, 7, NULL, &send), 0);
        assert_int_equal(transport_test(send, &done, NULL), 0);
        assert_true(done && received(&pair, receive, PATIENCE_MS));
    }
    pair_close(&pair);
}

static atomic_uint asked; /* bit k: every end has tried a port that leads over path k */

/* The fake fabric has four paths, by the port modulo 4 (fake.h): so there are four routers at the second hop. */
static void four_routers(struct paths *paths)
{
    uint32_t seen = 0;

    for (uint32_t i = 0; i < paths->count; i++) {
        const uint8_t leaf[16] = {[15] = 9}, spine[16] = {[15] = 10 + (paths->ports[i] & 3)};
        paths_on_answer(paths, i, 0, leaf);
        paths_on_answer(paths, i, 1, spine);
        seen |= 1u << (paths->ports[i] & 3);
    }
    atomic_fetch_and(&asked, seen);
}

/* Bit k: a lane's queue pair sends over path k. */
static uint32_t paths_of(const struct transport *t)
{
    const struct lane_set *set = NULL;
    uint32_t used = 0;

    for (uint32_t i = 0; i < t->set_count && set == NULL; i++) {
        set = t->sets[i];
    }

    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        const struct stream *stream = set->streams[lane];
        if (stream != NULL && stream->qp != NULL) {
            assert_int_not_equal(stream->qp->path, 0);
            used |= 1u << (stream->qp->path & 3);
        }
    }
    return used;
}

/* True if each of its lanes still has its first queue pair. */
static bool is_undisturbed(const struct transport *t)
{
    for (uint32_t i = 0; i < t->set_count; i++) {
        const struct lane_set *set = t->sets[i];
        for (uint32_t lane = 0; set != NULL && lane < LANE_MAX; lane++) {
            if (set->pair_tries[lane].attempts > 1 ||
                (set->streams[lane] != NULL && set->streams[lane]->epoch > 1)) {
                return false;
            }
        }
    }
    return true;
}

/* By chance four queue pairs have four paths once in ten times. Packets really go there: if a path loses everything, one lane at
 * each end is lost. The test begins again if a busy machine has lost a lane, because the new path is random, or if none of the 24
 * drawn ports leads over one of the paths: 4 * 0.75^24. */
static void test_each_lane_has_its_path(void **state)
{
    struct pair pair;
    int judged = 0;

    (void)state;
    router_answers = four_routers;
    for (int i = 0; i < 50 && judged < 5; i++) {
        asked = 15;
        pair_open(&pair);
        wait_for(&pair, 4, 4);
        if (asked == 15 && is_undisturbed(pair.sender.transport) &&
            is_undisturbed(pair.receiver.transport)) {
            assert_int_equal(paths_of(pair.sender.transport), 15);
            assert_int_equal(paths_of(pair.receiver.transport), 15);
            if (judged++ == 0) {
                fake->black_hole = 1;
                exchange(&pair, 500000, 500000, true, 7);
                wait_for(&pair, 2, 3);
                fake->black_hole = 0;
                wait_for(&pair, 4, 4);
            }
        }
        pair_close(&pair);
    }
    assert_int_equal(judged, 5);
    router_answers = NULL;
}

/* Every path drops all packets of queue pairs: the lanes continue over TCP, and return to queue pairs afterwards. */
static void test_dead_paths(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    fake->drop = true;
    exchange(&pair, 500000, 500000, true, 7);
    wait_for(&pair, 0, 0);
    exchange(&pair, 500000, 500000, true, 8);
    fake->drop = false;
    wait_for(&pair, 4, 4);
    exchange(&pair, 500000, 500000, true, 9);
    pair_close(&pair);
}

/* A receiver that can't register memory refuses. A sender that can't doesn't offer. The lanes stay as they are. */
static void test_refused(void **state)
{
    struct pair pair;

    (void)state;
    fake->memlock = 4096;
    pair_open(&pair);
    for (uint64_t i = 0; i < 40; i++) {
        exchange(&pair, i * 20011, i * 20011, i % 2 == 0, i);
    }
    assert_int_equal(over_pairs(pair.sender.transport), 0);
    pair_close(&pair);
    fake->memlock = 0;
}

static void test_older_peer(void **state)
{
    struct pair pair;

    (void)state;
    version = 4;
    pair_open(&pair);
    for (uint64_t i = 0; i < 40; i++) {
        exchange(&pair, i * 20011, i * 20011, i % 2 == 0, i);
    }
    assert_int_equal(over_pairs(pair.sender.transport), 0);
    pair_close(&pair);
    version = 0;
}

/* Queue pairs can be made, but the paths carry only connections: lanes stay on TCP, and each end logs advice once. */
static void test_mute_queue_pairs(void **state)
{
    struct pair pair;

    (void)state;
    said_words = "expected that UDP port 4791 isn't filtered";
    said_count = 0;
    fake->drop = true;
    pair_open(&pair);
    for (uint64_t i = 0; i < PATIENCE_MS && said_count == 0; i++) {
        exchange(&pair, 1000, 1000, true, i);
        usleep(1000);
    }
    for (uint64_t i = 0; i < 2000; i++) {
        exchange(&pair, 1000, 1000, true, i);
        usleep(1000);
    }
    assert_true(said_count == 1 || said_count == 2);
    assert_int_equal(over_pairs(pair.sender.transport), 0);
    fake->drop = false;
    said_words = NULL;
    pair_close(&pair);
}

/* The device is removed, with all its queue pairs. */
static void test_device_gone(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    snprintf(fake->gone, sizeof(fake->gone), "*");
    exchange(&pair, 500000, 500000, true, 7);
    wait_for(&pair, 0, 0);
    exchange(&pair, 500000, 500000, true, 8);
    pair_close(&pair);
    fake->gone[0] = '\0';
}

/* A port's device reports that it is down. If an interface beside it is up, that counts: it may be a bond. Without one, lanes are
 * given up as after a lost carrier, although packets still pass. */
static void test_port_down(void **state)
{
    struct pair pair;

    (void)state;
    said_words = "down (carrier)";
    said_count = 0;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    fake_event(NULL, IBV_EVENT_PORT_ERR, 1, 0);
    for (int i = 0; i < 500; i++) {
        serve(&pair);
        usleep(1000);
    }
    assert_int_equal(said_count, 0);
    exchange(&pair, 500000, 500000, true, 8);
    fake_event(NULL, IBV_EVENT_PORT_ACTIVE, 1, 0);
    pair.sender.trouble->no_interface = pair.receiver.trouble->no_interface = true;
    fake_event(NULL, IBV_EVENT_PORT_ERR, 1, 0);
    for (int i = 0; i < PATIENCE_MS && said_count < 4; i++) {
        serve(&pair);
        usleep(1000);
    }
    assert_true(said_count >= 4);
    fake_event(NULL, IBV_EVENT_PORT_ACTIVE, 1, 0);
    wait_for(&pair, 4, 4);
    exchange(&pair, 500000, 500000, true, 9);
    pair_close(&pair);
    said_words = NULL;
}

/* -- lanes that write ------------------------------------------------------------------------- */

static void test_writes(void **state)
{
    struct pair pair;
    int writes = 0;

    (void)state;
    direct = true;
    pair_open(&pair);
    exchange(&pair, 100000, 100000, true, 1); /* over TCP, and nothing is written */
    for (uint64_t i = 0; i < 40; i++) {
        /* A message may go over TCP while a busy machine loses a lane: then it shows nothing. */
        for (bool kept = false; !kept;) {
            wait_for(&pair, 4, 4);
            const uint64_t epochs = epochs_of(pair.sender.transport);
            const int before = fake->writes;
            exchange(&pair, i * 20011, i * 20011 + 8, i % 2 == 0, i);
            kept = over_pairs(pair.sender.transport) == 4 &&
                   epochs_of(pair.sender.transport) == epochs;
            writes += kept ? fake->writes - before : 0;
        }
    }
    assert_true(writes >= 39);
    pair_close(&pair);
    direct = false;
}

/* Returns how many writes were made until some message went over lanes that all write; 0: none did. */
static int writes_of(struct pair *pair)
{
    int writes = 0;

    for (uint64_t i = 0; i < 40 && writes == 0; i++) {
        const int before = fake->writes;
        wait_for(pair, 4, 4);
        exchange(pair, 500000, 500000, true, i);
        writes = fake->writes - before;
    }
    return writes;
}

/* To a version before 7 only the first four devices can be reported. */
static void test_writes_by_an_older_version(void **state)
{
    struct pair pair;

    (void)state;
    direct = true;
    version = LANE_KEYS_VERSION - 1;
    receiver_device = 3; /* the second */
    pair_open(&pair);
    assert_true(writes_of(&pair) > 0);
    pair_close(&pair);
    receiver_device = 2; /* the sixth: its lanes copy */
    pair_open(&pair);
    assert_int_equal(writes_of(&pair), 0);
    pair_close(&pair);
    version = 0;
    pair_open(&pair);
    assert_true(writes_of(&pair) > 0);
    pair_close(&pair);
    direct = false;
}

/* A peer of each version without POST, and a peer without verbs. */
static void test_writes_are_wanted_by_one_end(void **state)
{
    struct pair pair;

    (void)state;
    direct = true;
    for (version = 1; version <= LANE_VERSION; version++) {
        const int before = fake->writes;
        sender_without = version >= LANE_POST_VERSION;
        pair_open(&pair);
        sender_without = false;
        for (uint64_t i = 0; i < 40; i++) {
            exchange(&pair, i * 20011, i * 20011 + 8, i % 2 == 0, i);
        }
        assert_int_equal(fake->writes, before);
        pair_close(&pair);
    }
    version = 0;
    direct = false;
}

static uint64_t resent_of(const struct pair *pair)
{
    struct transport_summary sum;

    transport_summary(pair->sender.transport, &sum);
    return sum.resent;
}

/* True if the sender has the receive, and all its lanes write: a busy machine may lose some at any time. */
static bool ready(const struct pair *pair)
{
    const struct out_comm *comm = sender_comm_find(pair->out->set->sender, pair->out->number);

    return comm != NULL && comm->posted > comm->count && over_pairs(pair->sender.transport) == 4 &&
           over_pairs(pair->receiver.transport) == 4;
}

/* Sends a message whose place is known while all paths drop it. Returns how many chunks had been sent again before. */
static uint64_t send_in_vain(struct pair *pair, size_t size, struct transport_request **ret_send,
                             struct transport_request **ret_receive)
{
    assert_int_equal(transport_receive(pair->in, in_bytes, size, 7, false, NULL, ret_receive), 0);
    for (int i = 0; i < PATIENCE_MS && !ready(pair); i++) {
        serve(pair);
        usleep(1000);
    }
    assert_true(ready(pair));
    const uint64_t resent = resent_of(pair);
    fake->drop = true;
    assert_int_equal(transport_send(pair->out, out_bytes, size, 7, NULL, ret_send), 0);
    assert_non_null(*ret_send);
    return resent;
}

/* The marker never comes: the queue pair is destroyed, and its chunks are sent again. If that is refused, too, nothing is sent
 * again, because earlier writes may still land. */
static void test_no_marker(void **state)
{
    struct transport_request *send, *receive;
    const size_t size = 500000;
    struct pair pair;
    bool done = false;

    (void)state;
    direct = true;
    fake->no_flush = true;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    uint64_t resent = send_in_vain(&pair, size, &send, &receive);
    while (!done) {
        assert_int_equal(transport_test(receive, &done, NULL), 0);
        serve(&pair);
    }
    for (done = false; !done; serve(&pair)) {
        assert_int_equal(transport_test(send, &done, NULL), 0);
    }
    assert_true(resent_of(&pair) > resent);
    fake->drop = false;
    wait_for(&pair, 4, 4);
    strcpy(fake->refuse, "destroy_qp");
    fake->refuse_errno = EBUSY;
    resent = send_in_vain(&pair, size, &send, &receive);
    for (int i = 0; i < 2000; i++) { /* of a millisecond: longer than a dead path takes */
        serve(&pair);
        usleep(1000);
        assert_int_equal(transport_test(receive, &done, NULL), 0);
        assert_false(done);
    }
    assert_int_equal(resent_of(&pair), resent);
    fake->refuse[0] = '\0';
    fake->drop = fake->no_flush = false;
    pair_close(&pair);
    direct = false;
}

static void await_send(struct pair *pair, struct transport_request *send)
{
    for (bool done = false; !done; serve(pair)) {
        assert_int_equal(transport_test(send, &done, NULL), 0);
    }
}

/* Folders of devices, as the kernel has them: it destroys everything that was made on a device before it removes the device's
 * folder. */
static void folders(bool are)
{
    static const char *const all[] = {"/class", "/class/infiniband", "/class/infiniband/lo1",
                                      "/class/infiniband/lo2"};
    char path[256];

    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "%s%s", rdma_root, all[are ? i : 3 - i]);
        assert_int_equal(are ? mkdir(path, 0700) : rmdir(path), 0);
    }
}

/* A device is removed, and the library doesn't guarantee that its queue pairs are silent: nothing is sent again before the kernel
 * has removed the device's folder. Then the job goes on. */
static void test_writes_and_orphans(void **state)
{
    char root[] = "/tmp/foliot-orphans-XXXXXX";
    struct transport_request *send, *receive;
    struct pair pair;

    (void)state;
    rdma_root = mkdtemp(root);
    assert_non_null(rdma_root);
    folders(true);
    direct = true;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    const uint64_t resent = send_in_vain(&pair, 500000, &send, &receive);
    fake->orphans = true;
    strcpy(fake->gone, "*");
    fake_event(NULL, IBV_EVENT_DEVICE_FATAL, 0, 0);
    assert_false(received(&pair, receive, 2000));
    assert_int_equal(resent_of(&pair), resent);
    folders(false);
    assert_true(received(&pair, receive, PATIENCE_MS));
    await_send(&pair, send);
    exchange(&pair, 500000, 500000, true, 8);
    fake->orphans = fake->drop = false;
    fake->gone[0] = '\0';
    pair_close(&pair);
    direct = false;
    rmdir(rdma_root);
    rdma_root = "/nowhere";
}

/* The device takes no more requests, although it has room, or has none: the lane ends, and its chunks go over another one. */
static void test_refused_requests(void **state)
{
    static const char *const functions[] = {"post_send", "post_recv", "poll_cq"};
    struct pair pair;

    (void)state;
    fake->refuse_errno = ENOMEM;
    for (int i = 0; i < 6; i++) {
        direct = i >= 3;
        pair_open(&pair);
        wait_for(&pair, 4, 4);
        for (uint64_t nth = 1; nth <= 8; nth++) {
            strcpy(fake->refuse, functions[i % 3]);
            fake->refuse_nth = (int)nth;
            while (fake->refuse_nth > 0) {
                exchange(&pair, 500000, 500000, true, nth);
            }
            exchange(&pair, 500000, 500000, true, nth);
        }
        fake->refuse[0] = '\0';
        wait_for(&pair, 4, 4);
        pair_close(&pair);
    }
    direct = false;
}

/* A request or a receive ends with any error in the middle of a message: the lane ends, its chunks are sent again, and the log
 * has the NIC's error. */
static void test_errors_of_completions(void **state)
{
    char words[64];
    struct pair pair;

    (void)state;
    for (int status = IBV_WC_SUCCESS + 1; status <= IBV_WC_TM_RNDV_INCOMPLETE; status++) {
        if (status == IBV_WC_WR_FLUSH_ERR) {
            continue; /* from requests that were posted after the end */
        }
        direct = status % 2 == 0;
        snprintf(words, sizeof(words), "queue pair ended with ibv_wc_status %d, vendor 0x", status);
        said_words = words;
        said_count = 0;
        pair_open(&pair);
        wait_for(&pair, 4, 4);
        for (uint64_t i = 0; said_count == 0 && i < 100; i++) {
            wait_for(&pair, 1, 4);
            fake->status = status;
            exchange(&pair, 500000, 500000, true, i);
        }
        fake->status = 0;
        assert_true(said_count > 0);
        exchange(&pair, 500000, 500000, true, 9);
        if (status ==
            IBV_WC_TM_RNDV_INCOMPLETE) { /* it comes home from each: that takes a second */
            wait_for(&pair, 4, 4);
        }
        pair_close(&pair);
    }
    said_words = NULL;
    direct = false;
}

static void *add_memory(void *transport)
{
    static uint8_t more[8192];
    struct transport_memory *memory;

    assert_int_equal(transport_memory_add(transport, more, sizeof(more), &memory), 0);
    transport_memory_remove(transport, memory);
    return NULL;
}

/* The driver doesn't return from a registration: lanes continue, and write. */
static void test_hung_registration(void **state)
{
    struct pair pair;
    pthread_t thread;

    (void)state;
    direct = true;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    fake->hung = 0;
    fake->hang_most = 1; /* lanes that are made again register, too */
    strcpy(fake->hang, "reg_mr");
    assert_int_equal(pthread_create(&thread, NULL, add_memory, pair.sender.transport), 0);
    while (__atomic_load_n(&fake->hung, __ATOMIC_SEQ_CST) == 0) {
        usleep(100);
    }
    /* A busy machine may lose all lanes here, so the test loses them. */
    fake->drop = true;
    exchange(&pair, 500000, 500000, true, 7);
    wait_for(&pair, 0, 0);
    fake->drop = false;
    const int before = fake->writes;
    alarm(PATIENCE_MS /
          1000); /* of a waiting thread; on a busy machine it may go over TCP meanwhile */
    for (uint64_t i = 0; fake->writes - before < 8; i++) {
        exchange(&pair, 100000, 100000, true, i);
    }
    alarm(0);
    fake->hang[0] = '\0';
    fake->hang_most = 0;
    pthread_join(thread, NULL);
    pair_close(&pair);
    direct = false;
}

/* The driver doesn't return from moving a queue pair into the error state, or from destroying one that doesn't flush: no thread
 * that serves the set waits for it. Chunks that it may still write wait. Once the driver returns they are sent again. */
static void test_hung_silence(void **state)
{
    struct transport_request *send, *receive;
    struct pair pair;

    (void)state;
    direct = true;
    for (int i = 0; i < 2; i++) {
        fake->no_flush = i == 1;
        pair_open(&pair);
        wait_for(&pair, 4, 4);
        fill(out_bytes, 500000, 11);
        (void)send_in_vain(&pair, 500000, &send, &receive);
        fake->hung = 0;
        alarm(PATIENCE_MS / 1000);
        strcpy(fake->hang, i == 0 ? "silence" : "destroy_qp");
        while (__atomic_load_n(&fake->hung, __ATOMIC_SEQ_CST) == 0) {
            serve(&pair);
            usleep(1000);
        }
        /* A queue pair that has given up by itself has its marker, whatever the driver does. */
        const bool done = received(&pair, receive, 1000);
        assert_false(i == 1 && done);
        alarm(0);
        fake->drop = false;
        fake->hang[0] = '\0';
        assert_true(done || received(&pair, receive, PATIENCE_MS));
        await_send(&pair, send);
        assert_memory_equal(in_bytes, out_bytes, 500000);
        wait_for(&pair, 4, 4);
        exchange(&pair, 500000, 500000, true, 8);
        pair_close(&pair);
    }
    fake->no_flush = false;
    direct = false;
}

/* Nor is the transport freed while the driver uses it: the caller that ends it learns that it lives on. */
static void test_end_beside_hung_registration(void **state)
{
    static struct pair pair; /* memory that is deliberately kept is no leak */
    pthread_t thread;

    (void)state;
    direct = true;
    pair_open(&pair);
    fake->hung = 0;
    strcpy(fake->hang, "reg_mr");
    assert_int_equal(pthread_create(&thread, NULL, add_memory, pair.sender.transport), 0);
    /* A lane that is made meanwhile hangs in a registration, too: this one counts. */
    while (__atomic_load_n(&pair.sender.transport->memory_calls, __ATOMIC_SEQ_CST) == 0) {
        usleep(100);
    }
    transport_close(pair.out);
    transport_close(pair.in);
    assert_int_equal(transport_free(pair.sender.transport), TRANSPORT_IN_USE);
    fake->hang[0] = '\0';
    pthread_join(thread, NULL);
    end_close(&pair.receiver);
    direct = false;
}

/* Every path drops everything, and devices are removed: late or double writes would be noticed. */
static void test_writes_and_dead_paths(void **state)
{
    struct pair pair;

    (void)state;
    direct = true;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    fake->drop = true;
    exchange(&pair, 500000, 500000, true, 7);
    fake->drop = false;
    wait_for(&pair, 4, 4);
    exchange(&pair, 500000, 500000, true, 8);
    snprintf(fake->gone, sizeof(fake->gone), "*");
    exchange(&pair, 500000, 500000, true, 9);
    fake->gone[0] = '\0';
    exchange(&pair, 500000, 500000, true, 10);
    pair_close(&pair);
    direct = false;
}

/* A receive is given up: nothing lands in it once its communicator is closed, although the device has acknowledged writes that it
 * hasn't made yet. */
static void test_closed_receives(void **state)
{
    const size_t size = 1 << 19;
    struct pair pair;

    (void)state;
    direct = true;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    for (int round = 0; round < 4; round++) {
        struct transport_request *send = NULL, *receive = NULL;
        const int before = fake->writes;
        memset(in_bytes, 0x11, size);
        fake->lag = 4;
        assert_int_equal(transport_receive(pair.in, in_bytes, size, 7, false, NULL, &receive), 0);
        assert_int_equal(transport_send(pair.out, out_bytes, size, 7, NULL, &send), 0);
        for (int i = 0; i < STEPS_MAX && fake->writes - before < 2; i++) {
            serve(&pair);
        }
        transport_close(pair.in);
        memset(in_bytes, 0x77, size);
        fake->lag = 0;
        for (int i = 0; i < 2000; i++) {
            serve(&pair);
        }
        for (size_t i = 0; i < size; i++) {
            assert_int_equal(in_bytes[i], 0x77);
        }
        transport_close(pair.out);
        connect_comm(&pair);
        wait_for(&pair, 4, 4);
    }
    pair_close(&pair);
    direct = false;
}

/* -- requests of a peer ------------------------------------------------------------------------ */

static struct io_rdma counted;
static int (*count_open)(struct io_rdma *, const struct io_qp_config *, int *);
static int opens;

static int counting_open(struct io_rdma *rdma, const struct io_qp_config *config, int *ret_qp)
{
    opens++;
    return count_open(rdma, config, ret_qp);
}

/* A sender that offers nothing by itself. Counts how often its receiver opens a queue pair. Returns the receiver's set. */
static struct lane_set *open_counted(struct pair *pair)
{
    sender_without = true;
    pair_open(pair);
    sender_without = false;
    struct transport *t = pair->receiver.transport;
    counted = *t->rdma;
    count_open = counted.open;
    counted.open = counting_open;
    t->rdma = &counted;
    opens = 0;
    exchange(pair, 1000, 1000, true, 1);
    for (uint32_t i = 0; i < t->set_count; i++) {
        if (t->sets[i] != NULL && t->sets[i]->present != 0) {
            return t->sets[i];
        }
    }
    fail_msg("no set");
    return NULL;
}

static void offer(struct lane_set *set, struct mono now, uint32_t attempt, uint8_t octet)
{
    const uint32_t lane = (uint32_t)__builtin_ctz(set->present);
    struct lane_qp frame = {.step = LANE_QP_OFFER,
                            .lane = (uint16_t)lane,
                            .epoch = set->streams[lane]->epoch,
                            .attempt = attempt,
                            .qp = 17,
                            .psn = 18,
                            .mtu_shift = 10,
                            .gid = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = octet},
                            .cells = 8,
                            .cell_size = COPY_CELL_SIZE};
    uint8_t bytes[LANE_QP_SIZE];

    lane_qp_encode(bytes, &frame);
    pthread_mutex_lock(&set->lock);
    assert_int_equal(lane_pair_on_frame(set, now, lane, bytes, sizeof(bytes)), 0);
    pthread_mutex_unlock(&set->lock);
}

/* Each holds registered memory for a second after its end. */
static void test_offers_without_end(void **state)
{
    struct pair pair;
    struct lane_set *set = open_counted(&pair);
    struct io *io = set->transport->io;
    const struct mono start = io->now(io);

    (void)state;
    for (uint32_t i = 0; i < 1000; i++) { /* one each millisecond */
        offer(set, mono_add(start, span_ms(i)), i + 1, 1);
    }
    assert_int_equal(opens, 2);
    pair_close(&pair);
}

/* A peer that offers, and never continues. */
static void test_offer_without_switch(void **state)
{
    struct pair pair;
    struct lane_set *set = open_counted(&pair);
    const uint32_t lane = (uint32_t)__builtin_ctz(set->present);
    struct io *io = set->transport->io;
    const struct mono start = io->now(io);

    (void)state;
    offer(set, start, 1, 1);
    assert_non_null(set->streams[lane]->qp);
    pthread_mutex_lock(&set->lock);
    lane_pair_look(set, mono_add(start, span_ms(9900)));
    assert_non_null(set->streams[lane]->qp);
    lane_pair_look(set, mono_add(start, span_ms(10100)));
    assert_null(set->streams[lane]->qp);
    pthread_mutex_unlock(&set->lock);
    exchange(&pair, 50000, 50000, true, 2); /* the lane stays as it was */
    pair_close(&pair);
}

/* A peer on this machine that doesn't know that: one of our NICs isn't among its own. */
static void test_offer_from_this_machine(void **state)
{
    struct pair pair;
    struct lane_set *set = open_counted(&pair);
    struct transport *t = set->transport;
    struct io *io = t->io;
    const uint32_t lane = (uint32_t)__builtin_ctz(set->present);

    (void)state;
    t->nics[1].config.address = set->streams[lane]->peer;
    t->config.nic_count = 2;
    offer(set, io->now(io), 1, 1);
    assert_int_equal(opens, 0);
    t->config.nic_count = 1;
    pair_close(&pair);
}

/* Our NIC sends to the other end of the connection, not to the address that the peer names. */
static void test_offer_of_anothers_port(void **state)
{
    struct pair pair;
    struct lane_set *set = open_counted(&pair);
    struct io *io = set->transport->io;

    (void)state;
    offer(set, io->now(io), 1, 9);
    assert_int_equal(opens, 0);
    assert_null(set->streams[__builtin_ctz(set->present)]->qp);
    offer(set, io->now(io), 2, 1);
    assert_int_equal(opens, 1);
    pair_close(&pair);
}

/* -- final reports ---------------------------------------------------------------------------- */

static struct lane_set *set_of(struct transport *t)
{
    uint32_t i = 0;

    while (i < t->set_count && (t->sets[i] == NULL || t->sets[i]->present == 0)) {
        i++;
    }
    assert_true(i < t->set_count);
    return t->sets[i];
}

/* The peer repeats the final report about a lane that we don't have. Returns by how many lanes we answer. */
static uint32_t answers(struct lane_set *set, uint32_t seen)
{
    const uint32_t by = (uint32_t)__builtin_ctz(set->present);
    struct lane_report report = {.comm = LANE_COMM_NONE,
                                 .sequence = set->peer_sequence + seen,
                                 .lane_count = 1,
                                 .lanes = {{.lane = LANE_MAX - 1,
                                            .epoch = 1,
                                            .fenced_below = 2,
                                            .state = LANE_CLOSED,
                                            .owd_min_ns = LANE_OWD_UNKNOWN,
                                            .owd_ns = LANE_OWD_UNKNOWN}}};
    uint8_t bytes[LANE_STATE_SIZE_MAX];
    uint64_t before[LANE_MAX] = {0};
    uint32_t lanes = 0;

    const size_t size = lane_report_encode(bytes, &report, set->version);
    pthread_mutex_lock(&set->lock);
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        before[i] = set->streams[i] != NULL ? set->streams[i]->bytes_out : 0;
    }
    struct io *io = set->transport->io;
    assert_int_equal(lane_set_frame(set, io->now(io), by, bytes, size), 0);
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        lanes += set->streams[i] != NULL && set->streams[i]->bytes_out > before[i];
    }
    pthread_mutex_unlock(&set->lock);
    return lanes;
}

/* By one lane if a set may be fenced; and not by the accepting end: it may be about to learn of that lane. */
static void test_last_words_are_answered(void **state)
{
    struct pair pair;

    (void)state;
    for (int i = 0; i < 2; i++) {
        direct = i == 0;
        pair_open(&pair);
        exchange(&pair, 1000, 1000, true, 1);
        for (uint32_t k = 1; k <= 3; k++) {
            assert_int_equal(answers(set_of(pair.sender.transport), k), direct);
            assert_int_equal(answers(set_of(pair.receiver.transport), k), 0);
        }
        pair_close(&pair);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_shown),
        cmocka_unit_test(test_a_long_call_is_one_that_polls),
        cmocka_unit_test(test_the_connection_is_seldom_asked),
        cmocka_unit_test(test_looked_for_where_the_last_one_came),
        cmocka_unit_test(test_reports_wait_for_slow_nics),
        cmocka_unit_test(test_each_lane_has_its_path),
        cmocka_unit_test(test_dead_paths),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_older_peer),
        cmocka_unit_test(test_mute_queue_pairs),
        cmocka_unit_test(test_device_gone),
        cmocka_unit_test(test_port_down),
        cmocka_unit_test(test_writes),
        cmocka_unit_test(test_writes_by_an_older_version),
        cmocka_unit_test(test_writes_are_wanted_by_one_end),
        cmocka_unit_test(test_no_marker),
        cmocka_unit_test(test_writes_and_orphans),
        cmocka_unit_test(test_refused_requests),
        cmocka_unit_test(test_errors_of_completions),
        cmocka_unit_test(test_hung_registration),
        cmocka_unit_test(test_hung_silence),
        cmocka_unit_test(test_end_beside_hung_registration),
        cmocka_unit_test(test_writes_and_dead_paths),
        cmocka_unit_test(test_closed_receives),
        cmocka_unit_test(test_offers_without_end),
        cmocka_unit_test(test_offer_without_switch),
        cmocka_unit_test(test_offer_of_anothers_port),
        cmocka_unit_test(test_offer_from_this_machine),
        cmocka_unit_test(test_last_words_are_answered),
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, pairs_begin, NULL);
}

/* A NIC's clock as drivers have it: a fake answers the kernel's calls with the observed behaviour of drivers. */
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/ptp_clock.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>
/* cmocka needs those first */
#include <cmocka.h>

#include "own_network.h"
#include "platform/timestamp/nic_test.h"
#include "platform/timestamp/phc.h"
#include "platform/timestamp/stamp_watch.h"

#define FAKE_FD 1000

static struct fake {
    int precise, extended; /* errno of the ioctl; 0: it works */
    int precise_asked, extended_asked;
    bool read_only;         /* the device can't be opened for writing */
    bool ask_needs_writing; /* kernels before 6.14 */
    bool writable;          /* as it was opened */
    bool runs;        /* the device's clock follows the host's wall clock; else it stands still */
    int64_t ahead_ns; /* and is ahead of it */
    long frequency;
    bool stamps; /* the device stamps received packets, by a clock that is ahead of its own by: */
    int64_t stamps_ahead_ns;
    struct ethtool_ts_info info;
    struct hwtstamp_config agreed; /* the driver's answer to a request; all 0: the request itself */
} fake;

/* ---- the kernel ---- */

/* Replaces the C library's, for the whole program. */
int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
    va_end(arguments);
    if (strncmp(path, "/dev/ptp", 8) != 0) {
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    }
    fake.writable = (flags & O_ACCMODE) == O_RDWR;
    if (fake.writable && fake.read_only) {
        errno = EACCES;
        return -1;
    }
    return FAKE_FD;
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

static int answer_precise(struct ptp_sys_offset_precise *offset)
{
    fake.precise_asked++;
    if (fake.precise != 0) {
        return refuse(fake.precise);
    }
    offset->device = (struct ptp_clock_time){.sec = 5, .nsec = 7};
    offset->sys_monoraw = (struct ptp_clock_time){.sec = 3};
    return 0;
}

static int64_t wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* Brackets of 3, 2 and 1 us; the last one ran backwards. */
static int answer_extended(struct ptp_sys_offset_extended *offset)
{
    fake.extended_asked++;
    if (fake.extended != 0) {
        return refuse(fake.extended);
    }
    for (unsigned i = 0; i < offset->n_samples; i++) {
        const int64_t now = wall_ns(),
                      width = i + 1 < offset->n_samples ? (3 - (int)i % 3) * 1000 : -1;
        offset->ts[i][0] = (struct ptp_clock_time){now / NS_PER_S, (uint32_t)(now % NS_PER_S), 0};
        const int64_t nic = now + width / 2 + fake.ahead_ns;
        offset->ts[i][1] =
            fake.runs ? (struct ptp_clock_time){nic / NS_PER_S, (uint32_t)(nic % NS_PER_S), 0}
                      : (struct ptp_clock_time){.sec = 9, .nsec = i};
        offset->ts[i][2] = (struct ptp_clock_time){(now + width) / NS_PER_S,
                                                   (uint32_t)((now + width) % NS_PER_S), 0};
    }
    return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *data = va_arg(arguments, void *);
    va_end(arguments);
    if (fd == FAKE_FD) {
        return request == PTP_SYS_OFFSET_PRECISE    ? answer_precise(data)
               : request == PTP_SYS_OFFSET_EXTENDED ? answer_extended(data)
                                                    : refuse(ENOTTY);
    }
    struct ifreq *r = data;
    if (request == SIOCETHTOOL) {
        memcpy(r->ifr_data, &fake.info, sizeof(fake.info));
        return 0;
    }
    if (request == SIOCSHWTSTAMP) {
        if (fake.agreed.rx_filter != 0) {
            memcpy(r->ifr_data, &fake.agreed, sizeof(fake.agreed));
        }
        return 0;
    }
    return (int)syscall(SYS_ioctl, fd, request, data);
}

/* Packets over the loopback have the kernel's stamp. The device's is added. */
int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
    const int n = (int)syscall(SYS_recvmmsg, fd, messages, count, flags, timeout);
    for (int i = 0; i < n && fake.stamps; i++) {
        struct msghdr *m = &messages[i].msg_hdr;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
            struct scm_timestamping stamp;
            if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPING) {
                memcpy(&stamp, CMSG_DATA(c), sizeof(stamp));
                const int64_t ns = stamp.ts[0].tv_sec * NS_PER_S + stamp.ts[0].tv_nsec +
                                   fake.ahead_ns + fake.stamps_ahead_ns;
                stamp.ts[2].tv_sec = ns / NS_PER_S;
                stamp.ts[2].tv_nsec = ns % NS_PER_S;
                memcpy(CMSG_DATA(c), &stamp, sizeof(stamp));
            }
        }
    }
    return n;
}

int clock_adjtime(clockid_t clock, struct timex *t)
{
    assert_int_equal(t->modes, 0); /* this program never steers it */
    if (fake.ask_needs_writing && !fake.writable) {
        return refuse(EACCES);
    }
    t->freq = fake.frequency;
    return 0;
}

/* ---- the tests ---- */

static struct phc *opened(struct fake f)
{
    struct phc *p = NULL;
    fake = f;
    assert_int_equal(phc_open(&p, 9), 0);
    return p;
}

static int read_it(struct phc *p, struct time_source *source, int64_t *ret_nic, int64_t *ret_width)
{
    struct mono before, after;
    struct nic_time nic;
    const int r = phc_read(p, source, 7, &before, &nic, &after);
    if (r == 0) {
        *ret_nic = nic.ns;
        *ret_width = mono_sub(after, before).ns;
    }
    return r;
}

/* Sandwiches before and after, so that times of the wall clock can be converted. */
static int read_placed(struct phc *p, struct time_source *source, int64_t *ret_nic,
                       int64_t *ret_width)
{
    int r = -EAGAIN;
    for (int i = 0; i < 200 && r == -EAGAIN; i++) {
        time_source_sandwich(source);
        r = read_it(p, source, ret_nic, ret_width);
    }
    return r;
}

static void a_cross_timestamp_has_no_width(void **state)
{
    struct phc *p = opened((struct fake){0});
    int64_t nic = 0, width = -1;
    assert_int_equal(read_it(p, NULL, &nic, &width), 0);
    assert_int_equal(nic, 5 * NS_PER_S + 7);
    assert_int_equal(width, 0);
    phc_close(p);
}

/* Drivers offer it and then refuse: the next best is used, and the first is not tried again. */
static void a_refused_cross_timestamp_falls_back(void **state)
{
    static const int errors[] = {EBUSY, ENODEV, EOPNOTSUPP, ENOTTY, EINVAL, EIO};
    struct time_source *source = NULL;

    assert_int_equal(time_source_open(&source), 0);
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        struct phc *p = opened((struct fake){.precise = errors[i]});
        int64_t nic = 0, width = -1;
        assert_int_equal(read_placed(p, source, &nic, &width), 0);
        assert_in_range(nic, 9 * NS_PER_S, 9 * NS_PER_S + 6);
        assert_in_range(width, 1000, 200000); /* the narrowest, and the sandwich's error */
        assert_int_equal(read_placed(p, source, &nic, &width), 0);
        assert_int_equal(fake.precise_asked, 1);
        phc_close(p);
    }
    time_source_close(source);
}

/* A method that has worked is not given up because it was busy once. */
static void a_busy_moment_changes_nothing(void **state)
{
    struct phc *p = opened((struct fake){0});
    int64_t nic = 0, width = -1;

    assert_int_equal(read_it(p, NULL, &nic, &width), 0);
    fake.precise = EBUSY;
    assert_int_equal(read_it(p, NULL, &nic, &width), -EBUSY);
    fake.precise = 0;
    assert_int_equal(read_it(p, NULL, &nic, &width), 0);
    assert_int_equal(width, 0);
    assert_int_equal(fake.extended_asked, 0);
    phc_close(p);
}

/* ptp4l's servo: the change is reported in ppb, once. */
static void steering_is_told(void **state)
{
    for (int ask_needs_writing = 0; ask_needs_writing < 2; ask_needs_writing++) {
        struct phc *p =
            opened((struct fake){.frequency = 65536, .ask_needs_writing = ask_needs_writing != 0});
        double ppb = -1;
        assert_int_equal(phc_steering(p, &ppb), 0);
        assert_true(ppb == 0);
        fake.frequency += 65536 / 8;
        assert_int_equal(phc_steering(p, &ppb), 0);
        assert_true(ppb == 125);
        assert_int_equal(phc_steering(p, &ppb), 0);
        assert_true(ppb == 0);
        phc_close(p);
    }
}

/* An older kernel, and a read-only device: it isn't known whether it is steered, which is not the same as free. */
static void a_refused_question_has_its_error(void **state)
{
    struct phc *p = opened((struct fake){.read_only = true, .ask_needs_writing = true});
    double ppb = 0;
    int64_t nic, width;

    assert_int_equal(phc_steering(p, &ppb), -EACCES);
    assert_int_equal(read_it(p, NULL, &nic, &width), 0); /* it can be read nevertheless */
    phc_close(p);
}

/* NICs that stamp PTP packets only, at the question or at the switch. */
static void only_all_packets_are_enough(void **state)
{
    const uint32_t can =
        SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
    struct phc_abilities has;

    fake = (struct fake){.info = {.so_timestamping = can,
                                  .phc_index = 2,
                                  .tx_types = 1u << HWTSTAMP_TX_ON,
                                  .rx_filters = 1u << HWTSTAMP_FILTER_PTP_V2_L4_EVENT}};
    assert_int_equal(phc_abilities_get("eth0", &has), 0);
    assert_false(has.hardware);
    fake.info.rx_filters |= 1u << HWTSTAMP_FILTER_ALL;
    assert_int_equal(phc_abilities_get("eth0", &has), 0);
    assert_true(has.hardware);
    assert_int_equal(has.index, 2);
    assert_int_equal(phc_enable("eth0"), 0);
    fake.agreed = (struct hwtstamp_config){.tx_type = HWTSTAMP_TX_ON,
                                           .rx_filter = HWTSTAMP_FILTER_PTP_V2_L4_EVENT};
    assert_int_equal(phc_enable("eth0"), -ERANGE);
    fake.info.phc_index = -1; /* stamps without a clock to read: ENA, gVNIC, a VF */
    assert_int_equal(phc_abilities_get("eth0", &has), 0);
    assert_false(has.hardware);
}

/* `share` of 960 packets a second have a stamp, for sent and received packets. */
static enum stamp_verdict after(struct stamp_watch *w, struct mono *now, int seconds, int received,
                                int sent)
{
    enum stamp_verdict worst = STAMP_FINE;
    for (int s = 0; s < seconds; s++) {
        for (int i = 0; i < 100; i++) {
            stamp_watch_packet(w, STAMP_RECEIVED, i < received ? STAMP_GIVEN : STAMP_MISSING);
            stamp_watch_packet(w, STAMP_SENT, i < sent ? STAMP_GIVEN : STAMP_WRONG);
        }
        now->ns += NS_PER_S;
        const enum stamp_verdict v = stamp_watch_judge(w, *now);
        worst = v > worst ? v : worst;
    }
    return worst;
}

/* A NIC that claims to stamp all and stamps PTP only; one whose filter another program changed; one that skips the second packet
 * of a pair, which is no reason. */
static void missing_stamps_are_noticed(void **state)
{
    struct mono now = {NS_PER_S};
    struct stamp_watch w = {0};

    (void)after(&w, &now, 1, 100, 100);
    assert_int_equal(after(&w, &now, 60, 100, 50), STAMP_FINE);
    assert_int_equal(after(&w, &now, 10, 0, 100), STAMP_SET_AGAIN);
    assert_int_equal(after(&w, &now, 60, 100, 100), STAMP_FINE); /* that helped */
    assert_int_equal(after(&w, &now, 10, 100, 20), STAMP_SET_AGAIN);
    assert_int_equal(after(&w, &now, 10, 100, 20), STAMP_FINE);
    assert_int_equal(after(&w, &now, 10, 100, 20), STAMP_GIVE_UP);
    assert_int_equal(w.wrong, 800); /* they came, but not from its clock */
    w = (struct stamp_watch){0};
    for (int s = 0; s < 60; s++) { /* hardly any packets */
        stamp_watch_packet(&w, STAMP_SENT, STAMP_MISSING);
        now.ns += NS_PER_S;
        assert_int_equal(stamp_watch_judge(&w, now), STAMP_FINE);
    }
}

/* The NIC's clock was read at 100 s, in 2 us, and showed 7 s. If a driver names another NIC's clock, stamps have any other
 * time. */
static void a_stamp_is_of_the_clock_that_is_read(void **state)
{
    static const struct {
        int64_t now_ns, age_ns, stamp_ns;
        bool plausible;
    } cases[] = {
        {100 * NS_PER_S, 0, 7 * NS_PER_S, true},
        {100 * NS_PER_S, 0, 7 * NS_PER_S + NS_PER_MS + 1000, true},
        {100 * NS_PER_S, 0, 7 * NS_PER_S + NS_PER_MS + 1001, false}, /* not yet shown */
        {100 * NS_PER_S, 0, 7 * NS_PER_S - NS_PER_MS - 1001, false},
        {100 * NS_PER_S, 20 * NS_PER_MS, 7 * NS_PER_S - 21 * NS_PER_MS, true},
        {100 * NS_PER_S, 20 * NS_PER_MS, 7 * NS_PER_S - 22 * NS_PER_MS,
         false},                                                 /* before it was sent */
        {102 * NS_PER_S, 0, 9 * NS_PER_S + 3 * NS_PER_MS, true}, /* 1,000 ppm of 2 s */
        {102 * NS_PER_S, 0, 9 * NS_PER_S + 4 * NS_PER_MS, false},
        {99 * NS_PER_S, 0, 6 * NS_PER_S + 2 * NS_PER_MS, true}, /* the packet came first */
        {99 * NS_PER_S, 0, 6 * NS_PER_S + 3 * NS_PER_MS, false},
        {100 * NS_PER_S, 0, 100 * NS_PER_S, false},
    };
    struct stamp_watch w = {0};

    assert_true(stamp_watch_plausible(&w, (struct mono){5}, 0, (struct nic_time){NS_PER_S}));
    stamp_watch_clock(&w, (struct mono){100 * NS_PER_S - 1000}, (struct nic_time){7 * NS_PER_S},
                      (struct mono){100 * NS_PER_S + 1000});
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (stamp_watch_plausible(&w, (struct mono){cases[i].now_ns}, cases[i].age_ns,
                                  (struct nic_time){cases[i].stamp_ns}) != cases[i].plausible) {
            fail_msg("case %zu", i);
        }
    }
}

/* Runs `foliot selftest clock --nics` on the loopback, as the fake's NIC, until 25 packets came, on a port of its own. After five
 * reads its clock jumps. */
static struct nic_test_result tried(struct time_source *source, int64_t jump_ns)
{
    /* a port that the kernel gives to no other process */
    const struct nic_test_config config = {.interface = "lo",
                                           .port = (uint16_t)(20000 + getpid() % 12000)};
    struct nic_test *test = NULL;
    struct nic_test_result result = {0};
    const char *what = NULL;

    assert_int_equal(nic_test_new(&config, source, &test, &what), 0);
    for (int tries = 0; tries < 30000 && result.received < 25; tries++) {
        nic_test_step(test);
        usleep(2000);
        nic_test_result(test, &result);
        if (result.reads >= 5) {
            fake.ahead_ns += jump_ns;
            jump_ns = 0;
        }
    }
    nic_test_stop(test);
    for (int tries = 0; tries < 30000 && result.stamped + result.missing < 25; tries++) {
        nic_test_step(test);
        usleep(2000);
        nic_test_result(test, &result);
    }
    nic_test_free(test);
    return result;
}

static void promise_all(void)
{
    fake = (struct fake){.precise = EOPNOTSUPP, .runs = true, .frequency = 65536};
    fake.info = (struct ethtool_ts_info){
        .phc_index = 2,
        .so_timestamping = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_TX_HARDWARE |
                           SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE,
        .tx_types = 1u << HWTSTAMP_TX_ON,
        .rx_filters = 1u << HWTSTAMP_FILTER_ALL};
}

/* The driver promises everything, but gives the loopback's packets no stamps. Its clock can be read, and is stepped once. */
static void promised_stamps_are_tried(void **state)
{
    struct time_source *source = NULL;
    (void)state;

    assert_int_equal(time_source_open(&source), 0);
    promise_all();
    const struct nic_test_result r = tried(source, 1000000);
    assert_true(r.promises_hardware);
    assert_int_equal(r.enable_error, 0);
    assert_true(r.sent >= NIC_TEST_FEW && r.received >= NIC_TEST_FEW);
    assert_int_equal(r.stamped, 0);
    assert_int_equal(r.missing, r.sent);
    assert_int_equal(r.verdict, NIC_TEST_HARDWARE_LOST);
    assert_string_equal(r.way, "driver");
    assert_true(r.reads > 10);
    assert_int_equal(r.steps, 1);
    assert_true(r.bracket_ns[0] >= 1000 && r.bracket_ns[0] <= r.bracket_ns[1]);
    assert_true(r.steering_error == 0 && r.steering_ppb_most == 0);
    time_source_close(source);
}

/* The kernel begins to stamp received packets a while after a process asks for that. Waits until it does. It goes on as long as
 * this process lives. */
static void stamps_begin(void)
{
    const int flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(own);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool stamped = false;

    assert_int_equal(bind(fd, (struct sockaddr *)&own, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &size), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)), 0);
    for (int tries = 0; tries < 30000 && !stamped; tries++) {
        char byte = 0, control[512];
        struct iovec part = {&byte, 1};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control)};
        assert_int_equal(sendto(fd, &byte, 1, 0, (struct sockaddr *)&own, size), 1);
        assert_int_equal(recvmsg(fd, &message, 0), 1);
        stamped = CMSG_FIRSTHDR(&message) != NULL;
        usleep(2000);
    }
    assert_true(stamped);
}

/* The driver names a clock that doesn't make the stamps: if it is an hour behind, that is noticed once the clock was read. */
static void stamps_of_another_clock_are_none(void **state)
{
    static const int64_t ahead[] = {0, -3600 * NS_PER_S};
    (void)state;

    stamps_begin();
    for (size_t i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
        struct time_source *source = NULL;
        assert_int_equal(time_source_open(&source), 0);
        promise_all();
        fake.stamps = true;
        fake.stamps_ahead_ns = ahead[i];
        const struct nic_test_result r = tried(source, 0);
        assert_true(r.received >= NIC_TEST_FEW && r.reads > 0);
        assert_int_equal(r.received_stamped + r.received_wrong, r.received);
        assert_int_equal(r.received_wrong > 0, ahead[i] != 0);
        time_source_close(source);
    }
}

/* No hardware stamps and no clock: the kernel's stamps are used. */
static void a_plain_nic_has_software_stamps(void **state)
{
    struct time_source *source = NULL;
    (void)state;

    stamps_begin();
    assert_int_equal(time_source_open(&source), 0);
    fake = (struct fake){0};
    fake.info =
        (struct ethtool_ts_info){.phc_index = -1, .so_timestamping = SOF_TIMESTAMPING_TX_SOFTWARE};
    const struct nic_test_result r = tried(source, 0);
    assert_false(r.promises_hardware);
    assert_int_equal(r.verdict, NIC_TEST_SOFTWARE);
    assert_int_equal(r.stamped, r.sent);
    assert_int_equal(r.received_stamped, r.received);
    assert_true(r.stamp_after_ns[0] > 0);
    assert_int_equal(r.reads, 0);
    assert_string_equal(r.way, "");
    time_source_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cross_timestamp_has_no_width),
        cmocka_unit_test(a_refused_cross_timestamp_falls_back),
        cmocka_unit_test(a_busy_moment_changes_nothing),
        cmocka_unit_test(steering_is_told),
        cmocka_unit_test(a_refused_question_has_its_error),
        cmocka_unit_test(only_all_packets_are_enough),
        cmocka_unit_test(missing_stamps_are_noticed),
        cmocka_unit_test(a_stamp_is_of_the_clock_that_is_read),
        cmocka_unit_test(promised_stamps_are_tried),
        cmocka_unit_test(stamps_of_another_clock_are_none),
        cmocka_unit_test(a_plain_nic_has_software_stamps),
    };

    have_own_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

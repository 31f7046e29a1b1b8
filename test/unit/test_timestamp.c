/* Stamps: conversion by sandwiches, matching by count, and the real sockets over loopback. */
#include "platform/oscillator/oscillator.h"
#include "platform/timestamp/endpoint.h"
#include "platform/timestamp/hop.h"
#include "platform/timestamp/source.h"
#include "platform/timestamp/transmit_ring.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "own_network.h"

static void converts_between_sandwiches(void **state)
{
    struct sandwich_ring ring = {0};
    int64_t raw = 0;
    uint32_t error = 0;
    assert_false(sandwich_convert(&ring, 5, &raw, &error));
    /* REALTIME runs 100 ppm fast and is 7 s ahead */
    for (int64_t t = 0; t <= 50 * NS_PER_MS; t += 5 * NS_PER_MS) {
        const struct sandwich s = {t, 7 * NS_PER_S + t + t / 10000, 80};
        sandwich_add(&ring, &s);
        assert_int_equal(ring.jump_ns, 0);
    }
    for (int64_t t = 5 * NS_PER_MS; t <= 50 * NS_PER_MS; t += 777777) {
        assert_true(sandwich_convert(&ring, 7 * NS_PER_S + t + t / 10000, &raw, &error));
        assert_true(llabs(raw - t) <= 2);
        assert_true(error < 60);
    }
    /* the error covers a rate that changes inside */
    const struct sandwich bend = {55 * NS_PER_MS, 7 * NS_PER_S + 55 * NS_PER_MS + 5500 + 1000, 80};
    sandwich_add(&ring, &bend);
    assert_true(sandwich_convert(&ring, 7 * NS_PER_S + 52500000 + 5250, &raw, &error));
    assert_true(llabs(raw - 52500000) <= error);
    assert_true(error < 700);
    /* a step: earlier stamps are refused */
    const struct sandwich step = {60 * NS_PER_MS, 9 * NS_PER_S, 80};
    sandwich_add(&ring, &step);
    assert_true(ring.jump_ns > NS_PER_S);
    assert_false(sandwich_convert(&ring, 7 * NS_PER_S + 52500000, &raw, &error));
}

/* Clock sources that the kernel takes when a better one failed. Those of hypervisors are no such. */
static void slow_clock_sources(void **state)
{
    static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", ""},
                             *const fast[] = {"tsc", "arch_sys_counter", "kvm-clock", "xen",
                                              "hyperv_clocksource_tsc_page"};
    (void)state;
    for (size_t i = 0; i < sizeof(slow) / sizeof(*slow); i++) {
        assert_true(clocksource_is_slow(slow[i]));
    }
    for (size_t i = 0; i < sizeof(fast) / sizeof(*fast); i++) {
        assert_false(clocksource_is_slow(fast[i]));
    }
}

static void matches_stamps_by_count(void **state)
{
    struct transmit_ring ring = {0};
    uint64_t token = 0;
    for (uint64_t i = 0; i < 100; i++) {
        assert_false(transmit_ring_add(&ring, 1000 + i, (int64_t)i * 10, &token));
    }
    assert_false(transmit_ring_take(&ring, 5, 49, 5000, &token));   /* before the call */
    assert_false(transmit_ring_take(&ring, 5, 5001, 5000, &token)); /* in the future */
    assert_false(transmit_ring_take(&ring, 200, 5, 5000, &token));  /* never sent */
    assert_true(transmit_ring_take(&ring, 5, 55, 5000, &token));
    assert_int_equal(token, 1005);
    assert_false(transmit_ring_take(&ring, 5, 55, 5000, &token)); /* twice */
    for (uint64_t i = 100; i < 133; i++) {
        const bool lost = transmit_ring_add(&ring, 1000 + i, (int64_t)i * 10, &token);
        assert_true(lost == (i >= 128));
        if (lost) {
            assert_int_equal(token, 1000 + i - 128);
        }
    }
    assert_false(transmit_ring_take(&ring, 1, 500, 5000, &token)); /* overwritten */
    unsigned expired = 0;
    while (transmit_ring_expire(&ring, 1320 + TRANSMIT_TIMEOUT_NS, false, &token)) {
        expired++;
    }
    assert_int_equal(expired, 128 - 1);
    /* the kernel's count is 32 bits and wraps */
    ring.next = ring.oldest = UINT32_MAX;
    assert_false(transmit_ring_add(&ring, 1, 0, &token));
    assert_false(transmit_ring_add(&ring, 2, 0, &token));
    assert_true(transmit_ring_take(&ring, UINT32_MAX, 1, 2, &token));
    assert_int_equal(token, 1);
    assert_true(transmit_ring_take(&ring, 0, 1, 2, &token));
    assert_int_equal(token, 2);
}

static struct endpoint *open_local(const char *address4, uint16_t port)
{
    struct endpoint *e = NULL;
    const char *what = NULL;
    struct endpoint_config config = {.device = "lo", .port = port, .port_base = 47640};
    inet_pton(AF_INET, address4, &config.address4);
    assert_int_equal(endpoint_open(&e, &config, &what), 0);
    return e;
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

static void stamps_loopback_packets(void **state)
{
    struct time_source *source = NULL;
    assert_int_equal(time_source_open(&source), 0);
    struct endpoint *a = open_local("127.0.0.1", 47637), *b = open_local("127.0.0.2", 47637);
    struct endpoint_packet p = {.peer = {[10] = 0xff, 0xff, 127, 0, 0, 2}, .want_stamp = true};
    sleep_ms(30); /* receive stamps are switched on with a delay */
    for (unsigned i = 0; i < 40; i++) {
        p.token = 100 + i;
        p.source_port = (uint16_t)(47640 + i % 3);
        p.traffic_class = i % 2 == 0 ? 0xc0 : 0;
        p.bytes[0] = (uint8_t)i;
        endpoint_queue(a, &p);
    }
    const int64_t before = time_source_kernel_wall_ns();
    endpoint_flush(a);
    sleep_ms(2);
    int64_t tx[40] = {0}, rx[40] = {0};
    struct endpoint_received packets[ENDPOINT_BATCH];
    struct endpoint_stamp stamp;
    unsigned stamps = 0, received = 0;
    for (int wait = 0; wait < 30000 && (received < 40 || stamps < 40); wait++) {
        for (size_t n; (n = endpoint_receive(b, packets)) > 0;) {
            for (size_t i = 0; i < n; i++, received++) {
                assert_int_equal(packets[i].size, ENDPOINT_PAYLOAD_SIZE);
                assert_int_equal(packets[i].source_port, 47640 + packets[i].bytes[0] % 3);
                assert_int_equal(packets[i].traffic_class, packets[i].bytes[0] % 2 == 0 ? 0xc0 : 0);
                rx[packets[i].bytes[0]] = packets[i].software_ns;
            }
        }
        while (endpoint_next_stamp(a, &stamp)) {
            assert_int_equal(stamp.outcome, ENDPOINT_STAMPED);
            tx[stamp.token - 100] = stamp.ns;
            stamps++;
        }
        sleep_ms(2); /* a busy machine delivers later */
    }
    assert_int_equal(received, 40);
    assert_int_equal(stamps, 40);
    time_source_sandwich(source);
    for (unsigned i = 0; i < 40; i++) {
        struct nic_time t, r;
        uint32_t error = 0;
        assert_true(tx[i] >= before);
        assert_true(time_source_stamp(source, tx[i], 0, &t, &error));
        if (rx[i] != 0) {
            assert_true(time_source_stamp(source, rx[i], 0, &r, &error));
            assert_true(r.ns >= t.ns && r.ns - t.ns < 60 * NS_PER_S);
        }
    }
    endpoint_close(a);
    endpoint_close(b);
    time_source_close(source);
}

static void carries_ipv6(void **state)
{
    struct endpoint *e = NULL;
    const char *what = NULL;
    const struct endpoint_config config = {
        .port = 47638, .port_base = 47640, .address6 = IN6ADDR_LOOPBACK_INIT};
    if (endpoint_open(&e, &config, &what) < 0) {
        skip(); /* a host without IPv6 */
    }
    struct endpoint_packet p = {.token = 7,
                                .peer = {[15] = 1},
                                .source_port = 47641,
                                .ttl = 3,
                                .traffic_class = 0xc0,
                                .want_stamp = true};
    struct endpoint_received packets[ENDPOINT_BATCH];
    struct endpoint_stamp stamp;
    endpoint_queue(e, &p);
    endpoint_flush(e);
    size_t n = 0;
    for (int i = 0; i < 30000 && n == 0; i++) { /* a busy machine delivers later */
        sleep_ms(2);
        n = endpoint_receive(e, packets);
    }
    assert_int_equal(n, 1);
    assert_int_equal(packets[0].source_port, 47641);
    assert_int_equal(packets[0].traffic_class, 0xc0);
    assert_memory_equal(packets[0].from, p.peer, 16);
    assert_true(endpoint_next_stamp(e, &stamp));
    assert_int_equal(stamp.outcome, ENDPOINT_STAMPED);
    assert_int_equal(stamp.token, 7);
    endpoint_close(e);
}

static int64_t raw_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* In a lab every reading of time passes the host's emulated clock, and so does the bracket of the NIC's clock. */
static void reads_time_through_the_lab(void **state)
{
    char path[] = "/tmp/foliot-test-oscillator-XXXXXX", spec[64];
    struct oscillator o;
    struct time_source *source = NULL;
    struct node_bracket bracket;
    struct node_clock_fact fact;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    assert_int_equal(oscillator_create(path, 1, &o), 0);
    memcpy(o.host->name, "h0", 3);
    o.host->nic_count = 1;
    o.host->clock[0] = (struct oscillator_clock){.offset_ns = 3600 * NS_PER_S, .freq_ppb = 50000};
    o.host->clock[1] = (struct oscillator_clock){.offset_ns = -7 * NS_PER_S, .read_delay_ns = 800};
    snprintf(spec, sizeof(spec), "%s:h0", path);
    setenv(OSCILLATOR_ENV, spec, 1);
    assert_int_equal(time_source_open(&source), 0);
    assert_true(time_source_is_lab(source));
    const struct mono before = oscillator_mono(o.host, raw_ns());
    const struct mono now = time_source_now(source);
    const struct mono after = oscillator_mono(o.host, raw_ns());
    assert_true(before.ns <= now.ns && now.ns <= after.ns);
    assert_true(time_source_lab_bracket(source, 0, &bracket));
    assert_false(time_source_lab_bracket(source, 1, &bracket));
    assert_true(bracket.after.ns - bracket.before.ns >= 800);
    assert_false(time_source_next_fact(source, &fact));
    o.host->disruption_marker++;
    assert_true(time_source_next_fact(source, &fact));
    assert_int_equal(fact.kind, CLOCK_FACT_VM_MARKER);
    assert_false(time_source_next_fact(source, &fact));
    const struct oscillator_event sleep = {.effect_raw_ns = raw_ns() - NS_PER_S,
                                           .suspend_ns = 300 * NS_PER_MS};
    assert_int_equal(oscillator_append(o.host, &sleep), 0);
    assert_true(time_source_next_fact(source, &fact));
    assert_int_equal(fact.kind, CLOCK_FACT_SUSPENDED);
    assert_int_equal(fact.amount_ns, 300 * NS_PER_MS);
    time_source_close(source);
    setenv(OSCILLATOR_ENV, "/nonexistent:h0", 1);
    assert_int_equal(time_source_open(&source), -ENOENT);
    unsetenv(OSCILLATOR_ENV);
    oscillator_close(&o);
    unlink(path);
}

static void says_what_was_not_sent(void **state)
{
    struct endpoint *a = open_local("127.0.0.1", 47637), *second = NULL;
    const char *what = NULL;
    struct endpoint_config config = {.port = 47637, .address4 = {htonl(INADDR_LOOPBACK)}};
    assert_int_equal(endpoint_open(&second, &config, &what), -EADDRINUSE);
    assert_string_equal(what, "bind");
    /* no IPv6 here, and a port out of range */
    struct endpoint_packet p = {.token = 1, .source_port = 47640, .want_stamp = true};
    endpoint_queue(a, &p);
    p = (struct endpoint_packet){
        .token = 2, .peer = {[10] = 0xff, 0xff, 127, 0, 0, 1}, .source_port = 1};
    endpoint_queue(a, &p);
    endpoint_flush(a);
    struct endpoint_stamp stamp;
    for (uint64_t token = 1; token <= 2; token++) {
        assert_true(endpoint_next_stamp(a, &stamp));
        assert_int_equal(stamp.token, token);
        assert_int_equal(stamp.outcome, ENDPOINT_NOT_SENT);
    }
    assert_false(endpoint_next_stamp(a, &stamp));
    endpoint_close(a);
}

static int send_error; /* of the next call, in place of the kernel's */

/* Replaces the C library's, for the whole program. The kernel counts a packet before it finds its queue full: so do packets here
 * that ask for a stamp and stay within this host. */
int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    if (send_error != 0) {
        const int real = count > 0 ? (int)syscall(SYS_sendmmsg, fd, messages, 1, flags) : 0;
        errno = send_error;
        send_error = 0;
        return real == 1 ? -1 : real;
    }
    return (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
}

/* A full queue (ENOBUFS) refuses a packet that the kernel has already counted. If that were not corrected, each later stamp would
 * belong to the packet before. */
static void a_refused_packet_shifts_no_stamp(void **state)
{
    struct endpoint *a = open_local("127.0.0.1", 47637);
    struct endpoint_packet p = {
        .peer = {[10] = 0xff, 0xff, 127, 0, 0, 1}, .source_port = 47640, .want_stamp = true};
    struct endpoint_counters counters;
    struct endpoint_stamp stamp;
    int64_t called[21] = {0}, given[21] = {0};
    unsigned stamped = 0, told = 0, refused = 0;

    for (p.token = 1; p.token <= 20; p.token++) {
        send_error = p.token == 5 ? ENOBUFS : 0;
        called[p.token] = time_source_kernel_wall_ns();
        endpoint_queue(a, &p);
        endpoint_flush(a);
        sleep_ms(1);
    }
    for (int wait = 0; wait < 30000 && told < 20; wait++) {
        while (endpoint_next_stamp(a, &stamp)) {
            assert_in_range(stamp.token, 1, 20);
            told++;
            refused += stamp.outcome == ENDPOINT_NOT_SENT;
            assert_true((stamp.outcome == ENDPOINT_NOT_SENT) == (stamp.token == 5));
            if (stamp.outcome == ENDPOINT_STAMPED) {
                given[stamp.token] = stamp.ns;
                stamped++;
            }
        }
        sleep_ms(2);
    }
    assert_int_equal(told, 20);
    assert_int_equal(refused, 1);
    for (int i = 1; i <= 20;
         i++) { /* each belongs to its own packet: between its call and the next one's */
        assert_true(given[i] == 0 || given[i] >= called[i]);
        assert_true(given[i] == 0 || i == 20 || given[i] <= called[i + 1]);
    }
    assert_true(stamped >= 15); /* all later ones, except those that waited when it was refused */
    endpoint_counters_get(a, &counters);
    assert_int_equal(counters.count_resets, 1);
    assert_int_equal(counters.last_error, ENOBUFS);
    endpoint_close(a);
}

static void reads_what_routers_quote(void **state)
{
    /* time exceeded from 10.0.0.1, quoting 10.1.0.2:7641 -> 10.2.0.3:7637 */
    uint8_t bytes[20 + 8 + 20 + 8 + 160] = {0x45};
    struct hop_answer a;
    memcpy(bytes + 12, (uint8_t[]){10, 0, 0, 1}, 4);
    bytes[20] = 11;
    uint8_t *quote = bytes + 28;
    quote[0] = 0x45;
    quote[9] = IPPROTO_UDP;
    memcpy(quote + 12, (uint8_t[]){10, 1, 0, 2, 10, 2, 0, 3, 0x1d, 0xd9, 0x1d, 0xd5}, 12);
    assert_true(hop_parse4(bytes, sizeof(bytes), &a));
    assert_int_equal(a.source_port, 7641);
    assert_int_equal(a.destination_port, 7637);
    assert_int_equal(a.router[15], 1);
    assert_int_equal(a.destination[15], 3);
    assert_int_equal(a.quoted, 160);
    assert_true(hop_parse4(bytes, 20 + 8 + 20 + 8, &a));
    assert_int_equal(a.quoted, 0);
    /* any bytes: the result is false, and nothing is read beyond the end (the sanitizers check that) */
    for (size_t size = 0; size < 20 + 8 + 20 + 8; size++) {
        uint8_t *copy = malloc(size + 1);
        memcpy(copy, bytes, size);
        assert_false(hop_parse4(copy, size, &a));
        assert_false(hop_parse6(copy, size, bytes, &a));
        free(copy);
    }
    bytes[20] = 8;
    assert_false(hop_parse4(bytes, sizeof(bytes), &a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(converts_between_sandwiches),
        cmocka_unit_test(slow_clock_sources),
        cmocka_unit_test(matches_stamps_by_count),
        cmocka_unit_test(stamps_loopback_packets),
        cmocka_unit_test(says_what_was_not_sent),
        cmocka_unit_test(a_refused_packet_shifts_no_stamp),
        cmocka_unit_test(carries_ipv6),
        cmocka_unit_test(reads_time_through_the_lab),
        cmocka_unit_test(reads_what_routers_quote),
    };
    have_own_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

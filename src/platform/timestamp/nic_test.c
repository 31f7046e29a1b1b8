/* nic_test.c: tests one NIC: counts packets and stamps, and reads its clock. */
#include "platform/timestamp/nic_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <math.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "platform/timestamp/endpoint.h"
#include "platform/timestamp/phc.h"
#include "platform/timestamp/stamp_watch.h"
#include "stats/sample.h"

#define READ_SAMPLES 9
#define STEP_PPM     200.0 /* no clock's rate is off by more than this between two reads */
#define IN_FLIGHT    256

struct samples {
    double values[NIC_TEST_SAMPLES];
    size_t count;
};

struct nic_test {
    struct time_source *source;
    struct endpoint *endpoint;
    struct phc *phc;
    struct stamp_watch watch;
    bool hardware, stopped;
    uint8_t peer[16];
    uint16_t source_port;
    int64_t due_ns, called_ns[IN_FLIGHT]; /* called_ns: the kernel's REALTIME, by token */
    uint64_t token;
    struct nic_test_result r;
    struct samples delays, brackets, costs;
    bool clock_seen;
    int64_t first_raw, first_nic, last_raw, last_nic;
    double last_width;
};

const char *nic_test_verdict_word(enum nic_test_verdict v)
{
    static const char *const words[] = {"hardware", "hardware promised, not given", "software",
                                        "none", "unknown"};
    return words[v];
}

static void keep(struct samples *s, double value)
{
    if (s->count < NIC_TEST_SAMPLES) {
        s->values[s->count++] = value;
    }
}

/* ---- addresses ---- */
static void map4(struct in_addr a, uint8_t ret[16])
{
    memset(ret, 0, 10);
    ret[10] = ret[11] = 0xff;
    memcpy(ret + 12, &a, 4);
}

/* The NIC's own address: IPv4 if it has both, unless the peer's address is IPv6. */
static bool own_address(const char *interface, bool six_wanted, struct endpoint_config *c,
                        bool *ret_loopback)
{
    struct ifaddrs *all = NULL;

    if (getifaddrs(&all) < 0) {
        return false;
    }
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        if (i->ifa_addr == NULL || strcmp(i->ifa_name, interface) != 0) {
            continue;
        }
        *ret_loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
        if (i->ifa_addr->sa_family == AF_INET && c->address4.s_addr == 0) {
            c->address4 = ((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr;
        } else if (i->ifa_addr->sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&c->address6)) {
            const struct sockaddr_in6 *six = (const void *)i->ifa_addr;
            c->address6 = six->sin6_addr;
            c->scope = six->sin6_scope_id;
        }
    }
    freeifaddrs(all);
    if (six_wanted) {
        c->address4.s_addr = 0;
    } else if (c->address4.s_addr != 0) {
        c->address6 = (struct in6_addr){0};
    }
    return c->address4.s_addr != 0 || !IN6_IS_ADDR_UNSPECIFIED(&c->address6);
}

/* Chooses the peer. Without one: the loopback's own address, or all hosts of the link. */
static bool aim(const char *peer, const struct endpoint_config *c, bool loopback, uint8_t ret[16])
{
    struct in_addr four;

    if (peer != NULL && inet_pton(AF_INET, peer, &four) == 1) {
        map4(four, ret);
        return true;
    }
    if (peer != NULL) {
        return inet_pton(AF_INET6, peer, ret) == 1;
    }
    if (c->address4.s_addr != 0) {
        four = c->address4;
        if (!loopback) {
            inet_pton(AF_INET, "224.0.0.1", &four);
        }
        map4(four, ret);
    } else if (loopback) {
        memcpy(ret, &c->address6, 16);
    } else {
        inet_pton(AF_INET6, "ff02::1", ret);
    }
    return true;
}

/* ---- life ---- */
static int open_clock(struct nic_test *t, const char *interface)
{
    struct phc_abilities can = {.index = -1};
    int r = phc_abilities_get(interface, &can);

    t->r.promise_error = r < 0 ? -r : 0;
    t->r.promises_hardware = r == 0 && can.hardware;
    t->r.promises_software = r == 0 && can.software_transmit;
    t->r.clock_index = r == 0 ? can.index : -1;
    if (t->r.promises_hardware) {
        r = phc_enable(interface);
        t->r.enable_error = r < 0 ? -r : 0;
        t->hardware = r == 0;
    }
    if (t->r.clock_index >= 0) {
        r = phc_open(&t->phc, t->r.clock_index);
        t->r.clock_error = r < 0 ? -r : 0;
    }
    return 0;
}

int nic_test_new(const struct nic_test_config *config, struct time_source *source,
                 struct nic_test **ret, const char **ret_what)
{
    const uint16_t port = config->port != 0 ? config->port : NIC_TEST_PORT;
    struct endpoint_config c = {
        .device = config->interface, .port = port, .port_base = (uint16_t)(port + 1)};
    struct nic_test *t = calloc(1, sizeof(*t));
    bool loopback = false;

    *ret_what = "memory";
    if (t == NULL) {
        return -ENOMEM;
    }
    t->source = source;
    t->source_port = c.port_base;
    *ret_what = "expected an address of this NIC";
    const bool six = config->peer != NULL && strchr(config->peer, ':') != NULL;
    int r = own_address(config->interface, six, &c, &loopback) ? 0 : -EADDRNOTAVAIL;
    if (r == 0 && !aim(loopback ? NULL : config->peer, &c, loopback, t->peer)) {
        *ret_what = "expected the IPv4 or IPv6 address of a peer";
        r = -EINVAL;
    }
    if (r == 0) {
        r = open_clock(t, config->interface);
        c.hardware = t->hardware;
    }
    if (r == 0) {
        r = endpoint_open(&t->endpoint, &c, ret_what);
    }
    if (r < 0) {
        nic_test_free(t);
        return r;
    }
    t->due_ns = time_source_now(source).ns;
    *ret = t;
    return 0;
}

void nic_test_free(struct nic_test *t)
{
    if (t != NULL) {
        t->endpoint = endpoint_close(t->endpoint);
        t->phc = phc_close(t->phc);
        free(t);
    }
}

/* ---- the NIC's clock ---- */
static void judge_read(struct nic_test *t, int64_t before, int64_t nic, int64_t after)
{
    const int64_t middle = before + (after - before) / 2;
    const double width = (double)(after - before);

    keep(&t->brackets, width);
    if (!t->clock_seen) {
        t->clock_seen = true;
        t->first_raw = middle;
        t->first_nic = nic;
    } else {
        const double apart = (double)((nic - t->last_nic) - (middle - t->last_raw));
        const double allowed =
            (width + t->last_width) / 2 + STEP_PPM * 1e-6 * (double)(middle - t->last_raw);
        if (fabs(apart) > allowed) { /* after a step the rate is measured from there on */
            t->r.steps++;
            t->first_raw = middle;
            t->first_nic = nic;
        }
    }
    t->last_raw = middle;
    t->last_nic = nic;
    t->last_width = width;
}

static void read_clock(struct nic_test *t)
{
    struct mono before, after;
    struct nic_time nic;
    double ppb = 0;

    if (t->phc == NULL) {
        return;
    }
    time_source_sandwich(t->source);
    const struct mono from = time_source_now(t->source);
    int r = phc_read(t->phc, t->source, READ_SAMPLES, &before, &nic, &after);
    const struct mono to = time_source_now(t->source);
    if (r < 0) {
        t->r.refused++;
        t->r.clock_error = -r;
        return;
    }
    t->r.reads++;
    keep(&t->costs, (double)mono_sub(to, from).ns);
    judge_read(t, before.ns, nic.ns, after.ns);
    stamp_watch_clock(&t->watch, before, nic, after);
    r = phc_steering(t->phc, &ppb);
    t->r.steering_error = r < 0 ? -r : 0;
    t->r.steering_ppb_most = fmax(t->r.steering_ppb_most, fabs(ppb));
}

/* ---- packets ---- */
static void send_one(struct nic_test *t)
{
    struct endpoint_packet p = {
        .token = ++t->token, .source_port = t->source_port, .ttl = 1, .want_stamp = true};

    memcpy(p.peer, t->peer, sizeof(p.peer));
    memcpy(p.bytes, "foliot selftest", 15);
    t->called_ns[t->token % IN_FLIGHT] = time_source_kernel_wall_ns();
    endpoint_queue(t->endpoint, &p);
    endpoint_flush(t->endpoint);
}

/* True if there is a valid stamp. A stamp that the NIC's clock can't have shown, within the second since the packet was sent
 * or received, is wrong. */
static bool is_stamp(const struct nic_test *t, int64_t ns, int64_t realtime_ns, uint64_t *wrong)
{
    const int64_t age = time_source_kernel_wall_ns() - realtime_ns;
    const bool plausible =
        !t->hardware || ns == 0 ||
        stamp_watch_plausible(&t->watch, time_source_now(t->source), NS_PER_S + (age > 0 ? age : 0),
                              (struct nic_time){ns});

    *wrong += !plausible;
    return ns != 0 && plausible;
}

static void take(struct nic_test *t)
{
    struct endpoint_received came[ENDPOINT_BATCH];
    struct endpoint_stamp stamp;
    size_t count;

    while ((count = endpoint_receive(t->endpoint, came)) > 0) {
        for (size_t i = 0; i < count; i++) {
            t->r.received++;
            t->r.received_stamped +=
                is_stamp(t, t->hardware ? came[i].hardware_ns : came[i].software_ns,
                         came[i].software_ns, &t->r.received_wrong);
        }
    }
    while (endpoint_next_stamp(t->endpoint, &stamp)) {
        t->r.sent += stamp.outcome != ENDPOINT_NOT_SENT;
        t->r.not_sent += stamp.outcome == ENDPOINT_NOT_SENT;
        t->r.stamped +=
            stamp.outcome == ENDPOINT_STAMPED &&
            is_stamp(t, stamp.ns, t->called_ns[stamp.token % IN_FLIGHT], &t->r.sent_wrong);
        t->r.missing += stamp.outcome == ENDPOINT_NO_STAMP;
        if (stamp.outcome == ENDPOINT_STAMPED && !stamp.hardware) {
            keep(&t->delays, (double)(stamp.ns - t->called_ns[stamp.token % IN_FLIGHT]));
        }
    }
}

void nic_test_step(struct nic_test *t)
{
    const int64_t now = time_source_now(t->source).ns;

    take(t);
    if (now >= t->due_ns && !t->stopped) {
        t->due_ns =
            now - t->due_ns > NS_PER_S ? now + NIC_TEST_EVERY_NS : t->due_ns + NIC_TEST_EVERY_NS;
        read_clock(t);
        send_one(t);
    }
}

void nic_test_stop(struct nic_test *t)
{
    t->stopped = true;
}

/* ---- what came of it ---- */
static double quantile(const struct samples *s, double q)
{
    struct samples *sorted = malloc(sizeof(*sorted));
    double value = NAN;

    if (sorted != NULL && s->count > 0) {
        *sorted = *s;
        qsort(sorted->values, sorted->count, sizeof(sorted->values[0]), sample_order);
        value = sample_quantile(sorted->values, sorted->count, q);
    }
    free(sorted);
    return value;
}

static bool lost(uint64_t stamped, uint64_t packets)
{
    return packets >= NIC_TEST_FEW && (double)stamped < (1 - NIC_TEST_LOST_SHARE) * (double)packets;
}

static enum nic_test_verdict verdict(const struct nic_test *t)
{
    const struct nic_test_result *r = &t->r;

    if (r->sent < NIC_TEST_FEW) {
        return NIC_TEST_UNKNOWN;
    }
    const bool bad = lost(r->stamped, r->sent) || lost(r->received_stamped, r->received);
    if (t->hardware) {
        return bad || r->reads == 0 ? NIC_TEST_HARDWARE_LOST : NIC_TEST_HARDWARE;
    }
    return bad ? NIC_TEST_NONE : NIC_TEST_SOFTWARE;
}

void nic_test_result(const struct nic_test *t, struct nic_test_result *ret)
{
    static const double quantiles[] = {0.5, 0.99};
    const int64_t span = t->last_raw - t->first_raw;

    *ret = t->r;
    ret->verdict = verdict(t);
    ret->way = t->r.reads > 0 ? phc_way(t->phc) : "";
    ret->read_cost_ns = quantile(&t->costs, 0.5);
    ret->bracket_ns[0] = quantile(&t->brackets, 0);
    for (int i = 0; i < 2; i++) {
        ret->bracket_ns[1 + i] = quantile(&t->brackets, quantiles[i]);
        ret->stamp_after_ns[i] = quantile(&t->delays, quantiles[i]);
    }
    ret->rate_ppm =
        span >= NS_PER_S ? (double)((t->last_nic - t->first_nic) - span) / (double)span * 1e6 : NAN;
}

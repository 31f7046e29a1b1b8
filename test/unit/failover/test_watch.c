/* Which lanes live: the table, and the watch in a small timed world of three lanes over one NIC pair and a standby over another.
 * A user would notice how soon a fault is left behind, and that a slow or stopped process is never taken for a fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/failover/damping.h"
#include "core/failover/watch.h"

#define LANES 4 /* 3: standby */
#define QUEUE 4096

struct answer {
    int64_t at;
    bool pong;
    uint32_t epoch, sequence;
};
struct path {
    bool dead; /* a black hole */
    uint32_t epoch, head, count;
    bool connected;
    uint32_t lost; /* chunks lost in it */
    uint32_t acked, asked,
        hanging; /* the kernel's: packets acknowledged at the last question; packets on their way */
    int64_t hello_at; /* time of HELLO_OK; 0 none */
    struct answer answers[QUEUE];
};
struct world {
    struct watch *watch;
    struct prng prng;
    int64_t now;
    struct path paths[LANES];
    struct lane_load loads[LANE_MAX]; /* as the sender counts them */
    bool peer_stopped, peer_gone, kernel;
    int64_t hello_ns;  /* time that the peer's process takes for one; its kernel answers at once */
    int64_t far_ns;    /* extra time of an answer */
    int64_t resend_ns; /* lane 1's kernel: time until it sends again */
    uint32_t only;     /* lanes that get chunks; 0: all that carry */
    bool cut[2];       /* NIC pairs */
    uint32_t closes[LANES], parted, failed, doubles, trusts;
    uint32_t same_path[LANES], connects[LANES]; /* of the latter, those by the old path */
    int64_t closed_at[LANES], suspect_at[LANES], failed_at;
    bool failed_dead;
};

static struct mono at(const struct world *w)
{
    return (struct mono){w->now};
}

static bool passes(const struct world *w, uint32_t lane)
{
    return !w->paths[lane].dead && !w->cut[lane == 3] && !w->peer_gone;
}

/* In place of the kernels: packets that were lost on a path are sent again when it works. */
static void kernel_sends(struct world *w, uint32_t lane)
{
    if (passes(w, lane)) {
        w->paths[lane].acked++;
    } else {
        w->paths[lane].hanging++;
    }
}

static struct watch_kernel kernel_says(struct world *w, uint32_t lane)
{
    struct path *p = &w->paths[lane];
    struct watch_kernel says = {.known = w->kernel,
                                .rtt = span_ms(1),
                                .rtt_var = span_us(100),
                                .resend = span_ns(lane == 1 ? w->resend_ns : 0)};

    if (p->hanging > 0 && passes(w, lane)) {
        p->acked++;
        p->hanging = 0;
    }
    says.acked = w->kernel && p->acked != p->asked;
    says.idle = says.empty = says.whole = w->kernel && p->hanging == 0;
    p->asked = p->acked;
    return says;
}

static void answer(struct world *w, uint32_t lane, bool pong, uint32_t sequence)
{
    struct path *p = &w->paths[lane];

    if (p->count < QUEUE) { /* about 1 ms, sometimes 3 */
        p->answers[(p->head + p->count++) % QUEUE] = (struct answer){
            .at = w->now + w->far_ns + 800000 +
                  (int64_t)prng_below(&w->prng, prng_below(&w->prng, 20) ? 400000 : 2500000),
            .pong = pong,
            .epoch = p->epoch,
            .sequence = sequence};
    }
}

static void actions(struct world *w)
{
    struct watch_action a;

    while (watch_next_action(w->watch, &a)) {
        struct path *p = &w->paths[a.lane];
        switch (a.kind) {
        case WATCH_CONNECT:
            assert_true(a.epoch > p->epoch);
            p->epoch = a.epoch;
            w->connects[a.lane]++;
            w->same_path[a.lane] += a.same_path;
            p->hello_at = passes(w, a.lane) ? w->now + w->hello_ns : 0;
            if (passes(w, a.lane)) {
                watch_on_answered(w->watch, a.lane, a.epoch);
            }
            break;
        case WATCH_CLOSE:
            p->connected = false;
            w->loads[a.lane].chunks = p->count = p->hanging = p->lost = 0;
            p->hello_at = 0;
            w->closes[a.lane]++;
            w->closed_at[a.lane] = w->now;
            break;
        case WATCH_PING:
            kernel_sends(w, a.lane);
            if (passes(w, a.lane)) {
                answer(w, a.lane, true, a.sequence);
            }
            break;
        case WATCH_DOUBLE:
            w->doubles++;
            w->suspect_at[a.lane] = w->now;
            break;
        case WATCH_TRUST:
            w->trusts++;
            break;
        case WATCH_ASK_KERNEL: { /* its host answers although its process is stopped */
            const struct watch_kernel says = kernel_says(w, a.lane);
            watch_on_kernel(w->watch, at(w), a.lane, &says);
            break;
        }
        case WATCH_PARTED:
            w->parted++;
            break;
        case WATCH_FAIL:
            w->failed++;
            w->failed_at = w->now;
            w->failed_dead = a.dead;
            break;
        default:
            break;
        }
    }
}

/* One turn of the transport: connect, read, send a chunk on each lane that carries, look. */
static void turn(struct world *w, int64_t gap)
{
    w->now += gap;
    for (uint32_t i = 0; i < LANES; i++) {
        struct path *p = &w->paths[i];
        if (p->hello_at != 0 && p->hello_at <= w->now && passes(w, i)) {
            p->hello_at = 0;
            p->connected = true;
            watch_on_hello(w->watch, at(w), i, p->epoch, span_ms(1));
        }
        for (; p->connected && p->lost > 0 && passes(w, i); p->lost--) { /* TCP sends it again */
            answer(w, i, false, 0);
        }
        while (p->count > 0 && p->answers[p->head].at <= w->now && passes(w, i) &&
               !w->peer_stopped) {
            const struct answer a = p->answers[p->head];
            p->head = (p->head + 1) % QUEUE;
            p->count--;
            if (a.epoch != p->epoch || !p->connected) {
                continue;
            }
            if (a.pong) {
                watch_on_pong(w->watch, at(w), i, a.epoch, a.sequence);
            } else {
                w->loads[i].chunks--;
                watch_on_acked(w->watch, at(w), i, 1, span_us(1100), span_ns(0), true);
            }
        }
    }
    actions(w);
    watch_look(w->watch, at(w));
    actions(w);
    for (uint32_t i = 0; i < LANES; i++) {
        struct watch_lane lane;
        watch_lane_get(w->watch, at(w), i, &lane);
        if ((w->only == 0 || (w->only >> i & 1)) && (watch_carriers(w->watch, at(w)) >> i & 1) &&
            w->paths[i].connected && w->loads[i].chunks < (lane.probe_only ? 1 : 8)) {
            w->loads[i].chunks++;
            kernel_sends(w, i);
            watch_on_sent(w->watch, at(w), i, 1, span_ns(0));
            if (passes(w, i)) {
                answer(w, i, false, 0);
            } else {
                w->paths[i].lost++;
            }
        }
    }
    assert_null(watch_bug(w->watch));
}

static void run(struct world *w, int64_t ns)
{
    for (const int64_t end = w->now + ns; w->now < end;) {
        turn(w, NS_PER_MS);
    }
}

static struct world *start(bool kernel)
{
    static struct world world;
    struct world *w = &world;

    memset(w, 0, sizeof(*w));
    prng_init(&w->prng, 7);
    w->now = NS_PER_S;
    w->kernel = kernel;
    w->hello_ns = NS_PER_MS;
    w->watch = watch_new(&(struct watch_config){.patience = {0}}, at(w));
    assert_non_null(w->watch);
    watch_loads(w->watch, w->loads);
    for (uint32_t i = 0; i < LANES; i++) {
        const uint8_t nic = i == 3;
        assert_int_equal(watch_lane_add(w->watch, at(w), i,
                                        &(struct watch_lane_config){
                                            .own_nic = nic, .peer_nic = nic, .standby = i == 3}),
                         0);
    }
    watch_on_carrier(w->watch, at(w), true, 0, true, 1);
    watch_on_carrier(w->watch, at(w), true, 1, true, 1);
    watch_on_owing(w->watch, at(w), true);
    actions(w);
    run(w, 500 * NS_PER_MS);
    assert_int_equal(watch_carriers(w->watch, at(w)), 7);
    return w;
}

static void end(struct world *w)
{
    watch_free(w->watch);
}

static void carrier(struct world *w, bool up, uint32_t count)
{
    w->cut[0] = !up;
    watch_on_carrier(w->watch, at(w), true, 0, up, count);
    actions(w);
}

static uint32_t closes(const struct world *w)
{
    return w->closes[0] + w->closes[1] + w->closes[2] + w->closes[3];
}

static void test_table(void **state)
{
    const struct lane_guards none = {0},
                             all = {.only = true, .passed = true, .regained = true, .empty = true};

    for (int s = -1; s <= LANE_STATE_COUNT; s++) {
        for (int e = -1; e <= LANE_EVENT_COUNT; e++) {
            const enum lane_state next = lane_next((enum lane_state)s, (enum lane_event)e, none);
            assert_true(next < LANE_STATE_COUNT);
            if (s == LANE_CLOSED || e == LANE_EVENT_CLOSE) {
                assert_int_equal(next, LANE_CLOSED);
            }
        }
    }
    assert_int_equal(lane_next(LANE_CONNECTING, LANE_EVENT_HELLO_OK, none), LANE_TRIAL);
    assert_int_equal(lane_next(LANE_CONNECTING, LANE_EVENT_HELLO_OK, all), LANE_ACTIVE);
    assert_int_equal(lane_next(LANE_SUSPECT, LANE_EVENT_LIMIT, all),
                     LANE_SUSPECT); /* never the last */
    assert_int_equal(lane_next(LANE_SUSPECT, LANE_EVENT_LIMIT, none), LANE_DOWN);
    assert_int_equal(lane_next(LANE_SUSPECT, LANE_EVENT_ACKED, none), LANE_SUSPECT);
    assert_int_equal(lane_next(LANE_SUSPECT, LANE_EVENT_ACKED, all), LANE_ACTIVE);
    assert_int_equal(lane_next(LANE_DRAINING, LANE_EVENT_ACKED, all), LANE_CLOSED);
    assert_int_equal(lane_next(LANE_DOWN, LANE_EVENT_HOLD_OVER, (struct lane_guards){.cut = true}),
                     LANE_DOWN);
    assert_int_equal(lane_next(LANE_DOWN, LANE_EVENT_USABLE, (struct lane_guards){.held = true}),
                     LANE_DOWN);
}

/* No fault, but some processes get no processor now and then: no lane is accused. */
static void test_nobody_is_accused(void **state)
{
    struct world *w = start(true);

    for (int i = 0; i < 20000; i++) {
        const uint32_t luck = (uint32_t)prng_below(&w->prng, 1000);
        turn(w, luck == 0 ? 730 * NS_PER_MS : luck < 20 ? 90 * NS_PER_MS : NS_PER_MS);
        if (luck == 1) {
            w->peer_stopped = true; /* its kernel acknowledges, the process doesn't */
            run(w, 2 * NS_PER_S);
            w->peer_stopped = false;
        }
    }
    assert_int_equal(closes(w), 0);
    assert_int_equal(w->failed + w->parted + w->doubles, 0);
    end(w);
}

/* The mesh's hint: a lane that waits is doubted sooner. A lane that has just brought something back isn't, whatever the hint. */
static void test_hint(void **state)
{
    struct world *w = start(true);
    const int64_t from = w->now;

    w->paths[1].dead = true;
    for (int i = 0; i < 300; i++) {
        for (uint32_t lane = 0; lane < LANES; lane++) {
            watch_on_hint(w->watch, at(w), lane);
        }
        turn(w, NS_PER_MS);
    }
    assert_in_range(w->suspect_at[1] - from, 10 * NS_PER_MS, 15 * NS_PER_MS);
    assert_int_equal(w->doubles, 1);
    assert_int_equal(closes(w), 0);
    end(w);
}

/* A path drops everything: it is left soon. If that was short, it is trusted again at once; if not, it is given up, and nothing
 * else is. */
static void test_black_hole(void **state)
{
    for (int known = 1; known >= 0; known--) {
        struct world *w = start(known != 0);
        const int64_t from = w->now;
        struct watch_lane lane;

        w->paths[1].dead = true;
        run(w, 300 * NS_PER_MS);
        assert_true(w->suspect_at[1] - from <= (known ? 60 : 30) * NS_PER_MS &&
                    w->suspect_at[1] > from);
        assert_int_equal(watch_carriers(w->watch, at(w)), 5);
        assert_int_equal(w->doubles, 1);
        assert_int_equal(closes(w), 0);
        if (known) {
            w->paths[1].dead = false;
            run(w, 20 * NS_PER_MS);
            assert_int_equal(w->trusts, 1);
            assert_int_equal(watch_carriers(w->watch, at(w)), 7);
            w->paths[1].dead = true;
        }
        run(w, 1300 * NS_PER_MS);
        assert_true(w->closes[1] > 0);
        assert_int_equal(closes(w), w->closes[1]); /* it alone */
        w->paths[1].dead = false; /* and it works again: no path is given up for good */
        run(w, 2 * NS_PER_S);
        assert_int_equal(watch_carriers(w->watch, at(w)), 7);
        watch_lane_get(w->watch, at(w), 1, &lane);
        assert_int_equal(lane.failovers, 1); /* attempts to connect in between don't count */
        end(w);
    }
}

/* In a fenced set chunks don't leave a lane that is only doubted: a lane that is silent beside others is given up after 2 D. If
 * the peer stands still, or all ways die at once, it takes longer. */
static void test_black_hole_of_a_fenced_set(void **state)
{
    struct world *w = start(true);
    const int64_t from = w->now;

    watch_fenced(w->watch);
    w->paths[1].dead = true;
    run(w, 60 * NS_PER_MS);
    assert_true(w->suspect_at[1] > from);
    assert_int_equal(closes(w), 0);
    run(w, 100 * NS_PER_MS); /* this sender sends what was doubted elsewhere: 2 D from then on */
    assert_true(w->closes[1] > 0);
    assert_int_equal(closes(w), w->closes[1]); /* it alone */
    w->paths[1].dead = false;
    run(w, 2 * NS_PER_S);
    assert_int_equal(watch_carriers(w->watch, at(w)), 7);
    const uint32_t before = closes(w);
    w->peer_stopped = true;
    run(w, 900 * NS_PER_MS);
    w->peer_stopped = false;
    run(w, NS_PER_S);
    for (int i = 0; i < 4; i++) {
        w->paths[i].dead = true;
    }
    run(w, 900 * NS_PER_MS);
    assert_int_equal(closes(w), before);
    end(w);
}

/* Lane 1 of the set is a TCP connection. A lost segment waits for the kernel's timeout, and doesn't mean a dead path. A dead path
 * is still left soon. */
static void test_lost_segment_of_a_fenced_set(void **state)
{
    struct world *w = start(true);

    watch_fenced(w->watch);
    w->resend_ns = 200 * NS_PER_MS;
    run(w, 20 * NS_PER_MS);
    for (int i = 0; i < 5; i++) {
        w->paths[1].dead = true;
        run(w, 200 * NS_PER_MS);
        w->paths[1].dead = false; /* it is sent again */
        run(w, 300 * NS_PER_MS);
    }
    assert_int_equal(closes(w), 0);
    w->paths[1].dead = true;
    run(w, 800 * NS_PER_MS);
    assert_true(w->closes[1] > 0);
    assert_int_equal(closes(w), w->closes[1]);
    end(w);
}

/* Lane 2 stalls for so long now and then, alone or with all others, and recovers. If it is only pinged, only its kernel shows
 * that. Then it has nothing to do for `later_s`. Returns how long lane 1 may be silent then. */
static int64_t given_up_after(int stall_ms, bool together, bool pinged, int later_s)
{
    struct world *w = start(true);

    watch_fenced(w->watch);
    w->only = pinged ? 1u << 0 | 1u << 1 : 0;
    run(w, 20 * NS_PER_MS);
    for (int i = 0; i < 4; i++) {
        w->paths[2].dead = true;
        w->paths[0].dead = w->paths[1].dead = w->paths[3].dead = together;
        while (pinged && w->paths[2].hanging == 0) {
            run(w, NS_PER_MS);
        }
        run(w, stall_ms * NS_PER_MS);
        for (int k = 0; k < LANES; k++) {
            w->paths[k].dead = false;
        }
        run(w, 800 * NS_PER_MS);
    }
    w->only = later_s > 0 ? 1u << 0 | 1u << 1 : w->only;
    watch_on_owing(w->watch, at(w), later_s == 0); /* else it is pinged */
    for (int i = 0; i < later_s * 200; i++) {
        turn(w, 5 * NS_PER_MS); /* an answer between two looks means that it was never silent */
    }
    assert_int_equal(closes(w), 0);
    const int64_t from = w->now;
    w->paths[1].dead = true;
    while (closes(w) == 0 && w->now - from < NS_PER_S) {
        turn(w, later_s > 0 ? 5 * NS_PER_MS : NS_PER_MS);
    }
    assert_int_equal(w->closes[1], 1);
    const int64_t after = w->now - from;
    end(w);
    return after / NS_PER_MS;
}

/* If other lanes stall and recover, that is the machine's noise: a lane may be silent for longer by that. If all stall together,
 * no lane is judged, and none gets more time for it. */
static void test_noise_of_a_fenced_set(void **state)
{
    const int64_t still = given_up_after(0, false, false, 0),
                  noisy = given_up_after(70, false, false, 0),
                  halts = given_up_after(200, true, false, 0);

    (void)state;
    assert_true(still >= 80 && still <= 110);
    assert_true(noisy >= still + 15 && noisy <= still + 60);
    assert_true(halts >= still - 3 && halts <= still + 15); /* an answer takes 1 to 3 ms */
}

/* It also counts if the kernel shows the stall's end, with nothing on its way then. It counts for at most ten seconds. */
static void test_end_of_noise_of_a_fenced_set(void **state)
{
    const int64_t still = given_up_after(0, false, true, 0),
                  noisy = given_up_after(70, false, true, 0),
                  after = given_up_after(70, false, false, 11);

    (void)state;
    assert_true(noisy >= still + 15 && noisy <= still + 60);
    assert_true(after >= 80 && after <= 110);
}

/* A lane on trial that carries nothing yet holds nothing up: a pause doesn't end it. If it carries something, it is left like any
 * other. */
static void test_trial_of_a_fenced_set(void **state)
{
    struct world *w = start(true);
    struct watch_lane lane;

    (void)state;
    watch_fenced(w->watch);
    for (int carries = 0; carries < 2; carries++) {
        const uint32_t before = w->closes[1];
        w->only = carries ? 0 : 1u << 0 | 1u << 2;
        w->paths[1].dead = true;
        watch_on_lost(w->watch, at(w), 1, w->paths[1].epoch, LANE_REASON_RESET);
        actions(w);
        w->paths[1].dead = false;
        do {
            run(w, NS_PER_MS);
            watch_lane_get(w->watch, at(w), 1, &lane);
        } while (lane.state != LANE_TRIAL || (carries && w->loads[1].chunks == 0));
        w->paths[1].dead = true;
        run(w, 150 * NS_PER_MS);
        assert_int_equal(w->closes[1] - before, 1 + carries);
        w->paths[1].dead = false;
        run(w, 5 * NS_PER_S);
    }
    end(w);
}

static void test_black_hole_of_a_nic(void **state)
{
    struct world *w = start(true);
    const int64_t from = w->now;

    w->cut[0] = true; /* carrier stays up */
    run(w, 100 * NS_PER_MS);
    for (int i = 0; i < 3; i++) {
        assert_true(w->suspect_at[i] > from && w->suspect_at[i] - from <= 60 * NS_PER_MS);
    }
    assert_int_equal(closes(w), 0);
    assert_int_equal(watch_carriers(w->watch, at(w)), 8); /* the standby carries */
    run(w, 1500 * NS_PER_MS);
    assert_true(w->closes[0] > 0 && w->closes[1] > 0 && w->closes[2] > 0 && w->closes[3] == 0);
    w->cut[0] = false;
    run(w, 12 * NS_PER_S);
    assert_int_equal(watch_carriers(w->watch, at(w)), 7); /* and stands by again */
    assert_int_equal(w->failed, 0);
    end(w);
}

/* Two of three lanes share a path, and one of these is idle when the path dies: it isn't tried in vain. */
static void test_shared_fate(void **state)
{
    struct world *w = start(true);

    w->only = 1u << 0;
    run(w, 50 * NS_PER_MS); /* lanes 1 and 2 fall quiet */
    w->paths[0].dead = w->paths[1].dead = true;
    run(w, 70 * NS_PER_MS);
    assert_int_equal(watch_carriers(w->watch, at(w)), 4 + 8); /* one of three is too few */
    assert_int_equal(closes(w), 0);
    end(w);
}

/* Silences longer than D without a fault: a lane that was doubted in vain is trusted again, no lane is given up, and the watch
 * becomes careful. */
static void test_mistakes(void **state)
{
    struct world *w = start(true);
    uint32_t doubts, mistakes;

    for (int i = 0; i < 20; i++) {
        w->paths[i % 3].dead = true;
        run(w, 70 * NS_PER_MS);
        w->paths[i % 3].dead = false;
        run(w, 600 * NS_PER_MS);
        assert_int_equal(watch_carriers(w->watch, at(w)), 7);
    }
    watch_doubts(w->watch, &doubts, &mistakes);
    assert_true(doubts > 0 && doubts == mistakes &&
                doubts < 10); /* 70 ms were too short for most */
    assert_int_equal(closes(w), 0);
    uint32_t before = w->doubles;
    run(w, 30 * NS_PER_S); /* it forgets */
    w->paths[0].dead = true;
    run(w, 70 * NS_PER_MS);
    assert_int_equal(w->doubles, before + 1);
    end(w);
}

static uint32_t mistakes_of(const struct world *w)
{
    uint32_t doubts, mistakes;

    watch_doubts(w->watch, &doubts, &mistakes);
    assert_true(doubts > 0);
    return mistakes;
}

/* Paths that are dead until routes avoid the fault are no mistakes: each of them is doubted as soon as the first one. 180 ms are
 * longer than these paths' D may get, which is 160. */
static void test_short_faults(void **state)
{
    (void)state;
    for (int64_t ns = 180 * NS_PER_MS; ns <= 250 * NS_PER_MS; ns += 70 * NS_PER_MS) {
        struct world *w = start(true);
        int64_t first = 0;
        for (int i = 0; i < 6; i++) {
            const uint32_t lane = (uint32_t)i % 3;
            const int64_t from = w->now;
            w->paths[lane].dead = true;
            run(w, ns);
            assert_true(w->suspect_at[lane] > from);
            first = i == 0 ? w->suspect_at[lane] - from : first;
            assert_true(w->suspect_at[lane] - from <= first + 10 * NS_PER_MS);
            w->paths[lane].dead = false;
            run(w, 2 * NS_PER_S);
            assert_int_equal(watch_carriers(w->watch, at(w)), 7);
        }
        assert_int_equal(mistakes_of(w), 0);
        assert_int_equal(closes(w), 0);
        end(w);
    }
}

/* Two lanes share the fault, and one of them owed nothing until it was pinged. Its own silence is shorter. */
static void test_short_fault_of_an_idle_lane(void **state)
{
    struct world *w = start(true);

    (void)state;
    w->only = 1u << 0 | 1u << 2;
    run(w, 50 * NS_PER_MS);
    w->paths[0].dead = w->paths[1].dead = true;
    run(w, 175 * NS_PER_MS);
    assert_true(w->suspect_at[0] != 0 && w->suspect_at[1] != 0);
    w->paths[0].dead = w->paths[1].dead = false;
    run(w, 2 * NS_PER_S);
    assert_int_equal(watch_carriers(w->watch, at(w)), 7);
    assert_int_equal(mistakes_of(w), 0);
    end(w);
}

/* The peer's limit was too short, not this end's. */
static void test_short_fault_by_the_peers_word(void **state)
{
    struct world *w = start(true);

    (void)state;
    w->paths[1].dead = true;
    run(w, 15 * NS_PER_MS);
    watch_on_peer(w->watch, at(w), 1, w->paths[1].epoch, LANE_SUSPECT, LANE_REASON_TIMEOUT);
    actions(w);
    run(w, 20 * NS_PER_MS);
    w->paths[1].dead = false;
    run(w, 2 * NS_PER_S);
    assert_int_equal(watch_carriers(w->watch, at(w)), 7);
    assert_int_equal(mistakes_of(w), 0);
    end(w);
}

/* Until lane 0 carries again as it did; 5 s at most. */
static int64_t home_after(struct world *w)
{
    const int64_t from = w->now;
    struct watch_lane lane;

    do {
        turn(w, NS_PER_MS);
        watch_lane_get(w->watch, at(w), 0, &lane);
    } while (lane.weight < 1 && w->now - from < 5 * NS_PER_S);
    return w->now - from;
}

static void test_one_flap(void **state)
{
    struct world *w = start(true);

    carrier(w, false, 2);
    assert_int_equal(watch_carriers(w->watch, at(w)), 8); /* at once */
    run(w, 3 * NS_PER_S);
    carrier(w, true, 2);
    assert_true(home_after(w) <= 600 * NS_PER_MS);
    end(w);
}

/* The peer's carrier went, and our NIC didn't fail. If our carrier goes a while later, that is its first failure. */
static void test_flap_after_one_of_the_peers(void **state)
{
    struct world *w = start(true);

    (void)state;
    carrier(w, true, 2);
    w->cut[0] = true;
    for (uint32_t i = 0; i < 3; i++) {
        watch_on_peer(w->watch, at(w), i, w->paths[i].epoch, LANE_DOWN, LANE_REASON_CARRIER);
    }
    watch_on_carrier(w->watch, at(w), false, 0, false, 0);
    actions(w);
    run(w, 2 * NS_PER_S);
    w->cut[0] = false;
    watch_on_carrier(w->watch, at(w), false, 0, true, 0);
    actions(w);
    run(w, 5 * NS_PER_S);
    assert_int_equal(watch_carriers(w->watch, at(w)), 7);
    carrier(w, false, 3);
    run(w, 2 * NS_PER_S);
    carrier(w, true, 3);
    assert_true(home_after(w) <= 600 * NS_PER_MS);
    end(w);
}

/* The sum of the weights of the lanes that carry more than probes. */
static double carried(const struct world *w)
{
    double sum = 0;

    for (uint32_t i = 0; i < LANES; i++) {
        struct watch_lane lane;
        watch_lane_get(w->watch, at(w), i, &lane);
        sum += lane.probe_only ? 0 : lane.weight;
    }
    return sum;
}

/* Make before break: the standby carries until the lanes that come back do, also if their trial takes long. That takes fewer than
 * sixteen round trips. */
static void test_nobody_stands_still_for_a_trial(void **state)
{
    struct world *w = start(true);
    struct watch_lane lane;

    (void)state;
    w->far_ns = 50 * NS_PER_MS;
    run(w, NS_PER_S);
    carrier(w, false, 2);
    run(w, 3 * NS_PER_S);
    carrier(w, true, 2);
    int64_t up = w->now;
    do {
        turn(w, NS_PER_MS);
        assert_true(carried(w) >= 1);
        watch_lane_get(w->watch, at(w), 0, &lane);
    } while (lane.weight < 1 && w->now - up < 5 * NS_PER_S);
    assert_true(w->now - up <= 650 * NS_PER_MS);
    assert_int_equal(watch_carriers(w->watch, at(w)), 7);
    end(w);
}

/* If a carrier went, that is no evidence against the path behind it: lanes return to their old path. A path that dropped
 * everything is replaced by another. */
static void test_which_path_back(void **state)
{
    struct world *w = start(true);

    (void)state;
    watch_on_lost(w->watch, at(w), 1, w->paths[1].epoch, LANE_REASON_RESET);
    actions(w); /* the end came here sooner than its reason */
    carrier(w, false, 2);
    run(w, 3 * NS_PER_S);
    carrier(w, true, 2);
    run(w, 2 * NS_PER_S);
    assert_int_equal(watch_carriers(w->watch, at(w)), 7);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(w->connects[i], 2);
        assert_int_equal(w->same_path[i], 1);
    }
    w->paths[0].dead = true;
    run(w, 3 * NS_PER_S);
    w->paths[0].dead = false;
    run(w, 10 * NS_PER_S);
    assert_int_equal(watch_carriers(w->watch, at(w)), 7);
    assert_true(w->connects[0] > 2);
    assert_int_equal(w->same_path[0], 1);
    /* A path that can't be had again isn't tried for ever. */
    uint32_t connects = w->connects[0];
    carrier(w, false, 3);
    w->paths[0].dead = true;
    carrier(w, true, 3);
    run(w, 15 * NS_PER_S);
    assert_true(w->connects[0] > connects + 2);
    assert_int_equal(w->same_path[0], 3);
    end(w);
}

static void test_twenty_flaps(void **state)
{
    struct world *w = start(true);
    struct watch_lane lane;

    for (uint32_t i = 0; i < 20; i++) {
        carrier(w, false, 2 + i);
        run(w, 100 * NS_PER_MS);
        carrier(w, true, 2 + i);
        run(w, 2900 * NS_PER_MS);
    }
    watch_lane_get(w->watch, at(w), 0, &lane);
    assert_true(lane.failovers <= 4);
    run(w, 10 * NS_PER_S);
    assert_int_equal(watch_carriers(w->watch, at(w)), 7);
    end(w);
}

static void test_nothing_left(void **state)
{
    struct world *w = start(true);
    const int64_t from = w->now;

    w->cut[0] = w->cut[1] = true;
    run(w, 5 * NS_PER_S);
    assert_int_equal(w->parted, 1);
    assert_int_equal(w->failed, 0);
    w->cut[0] = w->cut[1] = false; /* all paths back in time: the job never noticed */
    run(w, 10 * NS_PER_S);
    assert_int_equal(watch_carriers(w->watch, at(w)), 7);
    w->cut[0] = w->cut[1] = true;
    run(w, 70 * NS_PER_S);
    assert_int_equal(w->failed, 1);
    assert_true(w->failed_at - from >= 70 * NS_PER_S && w->failed_at - from <= 80 * NS_PER_S);
    assert_false(w->failed_dead);
    end(w);
}

static void test_dead_process(void **state)
{
    struct world *w = start(true);
    const int64_t from = w->now;

    w->peer_gone = true;
    for (uint32_t i = 0; i < LANES; i++) {
        watch_on_lost(w->watch, at(w), i, w->paths[i].epoch, LANE_REASON_RESET);
    }
    watch_on_peer_dead(w->watch, at(w));
    run(w, 3 * NS_PER_S);
    assert_int_equal(w->failed, 1);
    assert_true(w->failed_dead && w->failed_at - from <= 40 * NS_PER_MS);
    end(w);
}

/* A connection is refused once, and then one is accepted: the process lives. */
static void test_dead_no_more(void **state)
{
    struct world *w = start(true);

    w->cut[0] = w->cut[1] = true;
    for (uint32_t i = 0; i < LANES; i++) {
        watch_on_lost(w->watch, at(w), i, w->paths[i].epoch, LANE_REASON_RESET);
    }
    watch_on_peer_dead(w->watch, at(w));
    watch_on_peer_there(w->watch);
    run(w, 3 * NS_PER_S);
    assert_int_equal(w->failed, 0);
    end(w);
}

static void test_goodbye_is_no_failure(void **state)
{
    struct world *w = start(true);
    struct watch_lane lane;

    watch_on_lost(w->watch, at(w), 0, w->paths[0].epoch, LANE_REASON_CLOSE);
    watch_on_lost(w->watch, at(w), 1, w->paths[1].epoch, LANE_REASON_RESET);
    watch_lane_get(w->watch, at(w), 0, &lane);
    assert_int_equal(lane.state, LANE_DOWN);
    assert_int_equal(lane.failovers, 0);
    watch_lane_get(w->watch, at(w), 1, &lane);
    assert_int_equal(lane.failovers, 1);
    end(w);
}

/* The process at the other end has a thousand lanes to greet: to close and connect again would only give it more work. If no
 * kernel answers, the wait is shorter. */
static void test_busy_process(void **state)
{
    struct world *w = start(true);
    const uint32_t before = w->closes[0];

    w->hello_ns = 3 * NS_PER_S;
    watch_on_lost(w->watch, at(w), 0, w->paths[0].epoch, LANE_REASON_RESET);
    run(w, 4 * NS_PER_S);
    assert_true(w->paths[0].connected);
    assert_int_equal(w->closes[0], before + 1);

    w->paths[0].dead = true;
    watch_on_lost(w->watch, at(w), 0, w->paths[0].epoch, LANE_REASON_RESET);
    run(w, 4 * NS_PER_S);
    assert_true(w->closes[0] > before + 2);
    end(w);
}

static void test_old_epochs(void **state)
{
    struct world *w = start(true);
    const uint32_t epoch = w->paths[0].epoch;

    watch_on_lost(w->watch, at(w), 0, epoch + 1, LANE_REASON_RESET);
    watch_on_lost(w->watch, at(w), 0, epoch - 1, LANE_REASON_RESET);
    watch_on_peer(w->watch, at(w), 0, epoch - 1, LANE_DOWN, LANE_REASON_TIMEOUT);
    actions(w);
    assert_int_equal(closes(w), 0);
    watch_on_peer(w->watch, at(w), 0, epoch, LANE_DOWN, LANE_REASON_TIMEOUT);
    actions(w);
    assert_int_equal(w->closes[0], 1);
    end(w);
}

static void test_loses_a_little(void **state)
{
    struct world *w = start(true);

    /* First behind a long queue, which is congestion; then with siblings that are as slow. */
    for (uint64_t i = 1; i <= 6; i++) {
        for (uint32_t lane = 0; lane < 3; lane++) {
            const struct watch_kernel kernel = {.known = true,
                                                .acked = true,
                                                .segments = i * 2500,
                                                .resent = lane == 2 && i > 1 ? i * 25 : 0,
                                                .rtt = span_ms(lane == 2 && i < 4 ? 30 : 10),
                                                .rtt_min = span_ms(9)};
            watch_on_kernel(w->watch, at(w), lane, &kernel);
        }
        actions(w);
        assert_int_equal(closes(w), w->closes[2]);
        assert_int_equal(w->closes[2], i < 4 ? 0 : 1);
    }
    end(w);
}

static void test_damping(void **state)
{
    struct damping d;

    damping_init(&d);
    assert_false(damping_held(&d, (struct mono){0}));
    damping_on_failover(&d, (struct mono){0});
    assert_int_equal(damping_hold(&d, (struct mono){0}).ns, 200 * NS_PER_MS);
    assert_true(damping_held(&d, (struct mono){199 * NS_PER_MS}));
    assert_false(damping_held(&d, (struct mono){201 * NS_PER_MS}));
    for (int i = 1; i < 50; i++) {
        damping_on_failover(&d, (struct mono){i * NS_PER_S});
    }
    assert_int_equal(damping_hold(&d, (struct mono){49 * NS_PER_S}).ns, DAMPING_HOLD_MAX_NS);
    assert_false(damping_held(&d, (struct mono){58 * NS_PER_S})); /* never for good */
    assert_int_equal(damping_hold(&d, (struct mono){3000 * NS_PER_S}).ns, 0);
    assert_true(damping_ramp(span_ms(0)) <= 0.05 && damping_ramp(span_ms(100)) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_nobody_is_accused),
        cmocka_unit_test(test_goodbye_is_no_failure),
        cmocka_unit_test(test_hint),
        cmocka_unit_test(test_black_hole),
        cmocka_unit_test(test_black_hole_of_a_fenced_set),
        cmocka_unit_test(test_lost_segment_of_a_fenced_set),
        cmocka_unit_test(test_noise_of_a_fenced_set),
        cmocka_unit_test(test_end_of_noise_of_a_fenced_set),
        cmocka_unit_test(test_trial_of_a_fenced_set),
        cmocka_unit_test(test_black_hole_of_a_nic),
        cmocka_unit_test(test_shared_fate),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_short_faults),
        cmocka_unit_test(test_short_fault_of_an_idle_lane),
        cmocka_unit_test(test_short_fault_by_the_peers_word),
        cmocka_unit_test(test_one_flap),
        cmocka_unit_test(test_flap_after_one_of_the_peers),
        cmocka_unit_test(test_nobody_stands_still_for_a_trial),
        cmocka_unit_test(test_which_path_back),
        cmocka_unit_test(test_twenty_flaps),
        cmocka_unit_test(test_nothing_left),
        cmocka_unit_test(test_dead_process),
        cmocka_unit_test(test_dead_no_more),
        cmocka_unit_test(test_busy_process),
        cmocka_unit_test(test_old_epochs),
        cmocka_unit_test(test_loses_a_little),
        cmocka_unit_test(test_damping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

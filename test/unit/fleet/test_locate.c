/* The element at fault, by the packets of all paths of a small fabric. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/fleet/locate.h"

#define SPINE_KEY 100
#define PATHS     2048
#define STEP_NS   (10 * NS_PER_MS)
#define TOUCH     20 /* steps between a path's packets */
#define FATE      15 /* steps until a packet's fate is known */

struct way {
    uint32_t from, to, spine;
};
static struct fabric {
    uint32_t hosts, leaves, spines, count;
    struct way ways[PATHS];
    uint8_t lost[PATHS][16]; /* of packets whose fate isn't known yet */
    struct locate *locate;
    int64_t step;
    struct prng prng;
} f;
typedef bool (*fault)(const struct way *w); /* true if that path's packets are lost now */

static uint32_t leaf_of(uint32_t host)
{
    return host % f.leaves;
}

static void fabric_new(uint32_t hosts, uint32_t leaves, uint32_t spines, struct host_id own)
{
    f.locate = locate_free(f.locate);
    f = (struct fabric){.hosts = hosts, .leaves = leaves, .spines = spines};
    prng_init(&f.prng, 5);
    f.locate = locate_new(&(struct locate_config){.path_limit = PATHS, .own = own});
    assert_non_null(f.locate);
    for (uint32_t a = 0; a < hosts; a++) {
        for (uint32_t b = 0; b < hosts; b++) {
            for (uint32_t s = 0; a != b && s < (leaf_of(a) == leaf_of(b) ? 1 : spines); s++) {
                struct locate_route r = {
                    .from_host = {a}, .to_host = {b}, .from = {a}, .to = {b}, .teller = {b}};

                r.boxes[r.box_count++] = (struct locate_box){1 + leaf_of(a), ELEMENT_LEAF};
                if (leaf_of(a) != leaf_of(b)) {
                    r.boxes[r.box_count++] = (struct locate_box){SPINE_KEY + s, ELEMENT_SPINE};
                    r.boxes[r.box_count++] = (struct locate_box){1 + leaf_of(b), ELEMENT_LEAF};
                }
                f.ways[f.count] = (struct way){a, b, leaf_of(a) == leaf_of(b) ? UINT32_MAX : s};
                locate_path_set(f.locate, f.count++, &r);
            }
        }
    }
}

static struct mono at_step(int64_t step)
{
    return (struct mono){step * STEP_NS};
}

/* Lets packets leave, and their fates become known, for so long. */
static void play(double seconds, fault lost)
{
    const int64_t end = f.step + (int64_t)(seconds * 100);

    for (; f.step < end; f.step++) {
        for (uint32_t p = 0; p < f.count; p++) {
            const int64_t turn = f.step + (int64_t)(hash_u64(7, p) % TOUCH);

            if (turn % TOUCH == 0) {
                f.lost[p][turn / TOUCH % 16] = lost && lost(&f.ways[p]);
            }
            if (turn % TOUCH == FATE && turn >= TOUCH) {
                locate_on_trial(f.locate, p, at_step(f.step - FATE), f.lost[p][turn / TOUCH % 16]);
            }
        }
        locate_tick(f.locate, at_step(f.step));
    }
}

static bool none(const struct way *w)
{
    (void)w;
    return false;
}

static void expect_one(uint8_t kind, uint8_t direction, uint64_t a, uint64_t b)
{
    const struct locate_case *c = locate_case_get(f.locate, 0);

    assert_int_equal(locate_case_count(f.locate), 1);
    assert_int_equal(c->state, LOCATE_NAMED);
    assert_int_equal(c->elements[0].kind, kind);
    assert_int_equal(c->elements[0].direction, direction);
    assert_int_equal(c->elements[0].a, a);
    assert_int_equal(c->elements[0].b, b);
}

static bool nic_3_cannot_send(const struct way *w)
{
    return w->from == 3;
}

/* Its fifteen receivers are not at fault. */
static void a_nic_that_cannot_send_is_named_once(void **state)
{
    (void)state;
    fabric_new(8, 2, 2, HOST_NONE);
    play(3, none);
    play(0.8, nic_3_cannot_send);
    expect_one(ELEMENT_NIC, DIRECTION_OUT, 3, 0);
}

/* The host itself sees the same, by its peers' reports. */
static bool to_host_3(const struct way *w)
{
    return w->to == 3;
}

static void a_nic_that_cannot_hear_is_named_by_its_own_host(void **state)
{
    (void)state;
    fabric_new(8, 2, 2, (struct host_id){3});
    play(3, none);
    play(0.8, to_host_3);
    expect_one(ELEMENT_NIC, DIRECTION_IN, 3, 0);
}

static bool leaf_0_to_spine_1(const struct way *w)
{
    return w->spine == 1 && leaf_of(w->from) == 0;
}

static void a_trunk_is_named_with_its_direction(void **state)
{
    (void)state;
    fabric_new(9, 3, 3, HOST_NONE);
    play(3, none);
    play(0.8, leaf_0_to_spine_1);
    expect_one(ELEMENT_TRUNK, DIRECTION_OUT, 1, SPINE_KEY + 1);
    assert_false(locate_case_get(f.locate, 0)->alike);
}

static bool leaf_0_to_spine_2(const struct way *w)
{
    return w->spine == 2 && leaf_of(w->from) == 0;
}

/* With two leaves the way up on one side and the way down on the other carry the same packets. */
static void what_nobody_can_tell_apart_is_named_together(void **state)
{
    const struct locate_case *c;

    (void)state;
    fabric_new(8, 2, 3, HOST_NONE);
    play(3, none);
    play(0.8, leaf_0_to_spine_1);
    c = locate_case_get(f.locate, 0);
    assert_int_equal(locate_case_count(f.locate), 1);
    assert_int_equal(c->state, LOCATE_NAMED);
    assert_true(c->alike);
    assert_int_equal(c->total, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(c->elements[i].kind, ELEMENT_TRUNK);
        assert_true(c->elements[i].a == SPINE_KEY + 1 || c->elements[i].b == SPINE_KEY + 1);
    }
}

static bool nic_and_trunk(const struct way *w)
{
    return nic_3_cannot_send(w) || leaf_0_to_spine_1(w);
}

static void two_faults_have_two_names(void **state)
{
    (void)state;
    fabric_new(9, 3, 3, HOST_NONE);
    play(3, none);
    play(1.2, nic_and_trunk);
    assert_int_equal(locate_case_count(f.locate), 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct locate_case *c = locate_case_get(f.locate, i);
        assert_int_equal(c->state, LOCATE_NAMED);
        assert_int_equal(c->elements[0].direction, DIRECTION_OUT);
        assert_true(c->elements[0].kind == ELEMENT_NIC
                        ? c->elements[0].a == 3
                        : c->elements[0].a == 1 && c->elements[0].b == SPINE_KEY + 1);
    }
}

static bool host_5_lies(const struct way *w)
{
    return w->to == 5 && w->spine == 1;
}

/* It reports that everything from spine 1 is lost: its own NIC may be at fault, but no trunk and no spine. */
static void one_host_alone_accuses_nobody(void **state)
{
    (void)state;
    fabric_new(9, 3, 3, HOST_NONE);
    play(3, none);
    play(4, host_5_lies);
    for (uint32_t i = 0; i < locate_case_count(f.locate); i++) {
        assert_int_not_equal(locate_case_get(f.locate, i)->state, LOCATE_NAMED);
    }
}

/* Packets from before the fault prove nothing, however late they are reported. */
static void old_news_acquit_nobody(void **state)
{
    (void)state;
    fabric_new(9, 3, 3, HOST_NONE);
    play(3, none);
    const int64_t before = f.step - 30;
    play(0.4, leaf_0_to_spine_1);
    for (uint32_t p = 0; p < f.count; p++) {
        locate_on_trial(f.locate, p, at_step(before), false);
    }
    play(0.4, leaf_0_to_spine_1);
    expect_one(ELEMENT_TRUNK, DIRECTION_OUT, 1, SPINE_KEY + 1);
}

/* It begins between the last packet that came and the first that didn't. It is reported once. */
static void an_outage_has_a_beginning_and_an_end(void **state)
{
    struct locate_case c, ended = {.state = LOCATE_UNKNOWN};
    uint32_t named = 0;

    (void)state;
    fabric_new(9, 3, 3, HOST_NONE);
    play(3, none);
    const struct mono began = at_step(f.step);
    play(0.3, leaf_0_to_spine_1);
    const struct mono over = at_step(f.step);
    play(8, none);
    while (locate_next_change(f.locate, &c)) {
        named += c.state == LOCATE_NAMED;
        ended = c.state == LOCATE_ENDED ? c : ended;
    }
    assert_int_equal(named, 1);
    assert_int_equal(ended.state, LOCATE_ENDED);
    assert_true(ended.began_low.ns <= began.ns && began.ns <= ended.began_high.ns);
    assert_true(ended.ended_low.ns <= over.ns && over.ns <= ended.ended_high.ns);
    assert_true(ended.began_high.ns - ended.began_low.ns < 60 * NS_PER_MS);
    assert_true(ended.ended_high.ns - ended.ended_low.ns < 60 * NS_PER_MS);
    assert_int_equal(locate_case_count(f.locate), 0);
}

/* Each is reported with its name, between its first and its last packet. */
static void short_outages_are_told_one_by_one(void **state)
{
    static const double lengths_s[] = {0.2, 0.3, 0.4, 0.5, 0.6, 2};
    struct locate_case c, ended[16];
    uint32_t count = 0;

    (void)state;
    fabric_new(8, 2, 4, HOST_NONE);
    play(3, none);
    for (uint32_t i = 0; i < ARRAY_COUNT(lengths_s); i++) {
        const struct mono began = at_step(f.step);
        play(lengths_s[i], leaf_0_to_spine_1);
        const struct mono over = at_step(f.step);
        play(3, none);
        while (locate_next_change(f.locate, &c)) {
            if (c.state == LOCATE_ENDED) {
                ended[count++] = c;
            }
        }
        assert_int_equal(count, i + 1);
        assert_int_not_equal(ended[i].named.ns, MONO_NEVER.ns);
        assert_int_equal(ended[i].elements[0].kind, ELEMENT_TRUNK);
        assert_int_equal(ended[i].total, 2); /* up on one side, down on the other */
        assert_true(ended[i].began_low.ns <= began.ns && began.ns <= ended[i].began_high.ns);
        assert_true(ended[i].ended_low.ns <= over.ns && over.ns <= ended[i].ended_high.ns);
        assert_in_range(ended[i].began_high.ns - ended[i].began_low.ns, 0, 60 * NS_PER_MS);
        assert_in_range(ended[i].ended_high.ns - ended[i].ended_low.ns, 0, 60 * NS_PER_MS);
    }
}

/* Its trunk is back, or out of use: no host reports its paths. */
static void a_case_ends_when_nobody_tells_of_its_paths(void **state)
{
    (void)state;
    fabric_new(9, 3, 3, HOST_NONE);
    play(3, none);
    play(0.8, leaf_0_to_spine_1);
    expect_one(ELEMENT_TRUNK, DIRECTION_OUT, 1, SPINE_KEY + 1);
    for (uint32_t i = 0; i < 1200 && locate_case_count(f.locate) > 0; i++) {
        f.step += 10;
        locate_tick(f.locate, at_step(f.step));
    }
    assert_int_equal(locate_case_count(f.locate), 0);
}

/* A trunk is dead, and a host reports that everything from one spine is lost, and everything from another came. */
static bool lie_beside_a_fault(const struct way *w)
{
    return w->to == 5 ? w->spine == 1 : leaf_0_to_spine_2(w);
}

static void a_liar_hides_no_fault(void **state)
{
    (void)state;
    fabric_new(9, 3, 3, HOST_NONE);
    play(3, none);
    play(2, lie_beside_a_fault);
    for (uint32_t i = 0; i < locate_case_count(f.locate); i++) {
        const struct locate_case *c = locate_case_get(f.locate, i);

        assert_int_equal(c->state, i == 0 ? LOCATE_NAMED : LOCATE_UNKNOWN);
        assert_true(i > 0 || (c->elements[0].a == 1 && c->elements[0].b == SPINE_KEY + 2));
    }
    assert_true(locate_case_count(f.locate) > 0);
}

static bool one_in_fifty(const struct way *w)
{
    (void)w;
    return prng_below(&f.prng, 50) == 0;
}

static void what_is_lost_everywhere_is_nobodys_fault(void **state)
{
    (void)state;
    fabric_new(9, 3, 3, HOST_NONE);
    play(30, one_in_fifty);
    assert_int_equal(locate_case_count(f.locate), 0);
    assert_true(locate_background(f.locate) > 0.01 && locate_background(f.locate) < 0.04);
}

/* A queue that overflows, a link that trains: many packets may be lost within a moment, but that is one event. */
static void what_is_lost_within_a_moment_is_nobodys_fault(void **state)
{
    struct locate_case c;

    (void)state;
    fabric_new(24, 3, 3, HOST_NONE);
    play(20, none);
    play(0.03, leaf_0_to_spine_1);
    play(6, none);
    assert_false(locate_next_change(f.locate, &c));
    play(0.2, leaf_0_to_spine_1); /* this counts as one */
    play(1, none);
    assert_true(locate_next_change(f.locate, &c));
    assert_int_equal(c.state, LOCATE_NAMED);
}

/* Each NIC and each trunk loses everything for 20 ms, once in 5 s. */
static bool in_bursts(const struct way *w)
{
    const uint64_t turn = (uint64_t)f.step / 2;

    return hash_u64(hash_u64(1, w->from), turn) % 250 == 0 ||
           hash_u64(hash_u64(hash_u64(2, leaf_of(w->from)), w->spine), turn) % 250 == 0;
}

/* From the first second on, in which it isn't known how often bursts come, and which part of a trunk one of them takes. */
static void bursts_everywhere_are_nobodys_fault(void **state)
{
    struct locate_case c;

    (void)state;
    fabric_new(24, 3, 3, HOST_NONE);
    play(40, in_bursts);
    while (locate_next_change(f.locate, &c)) {
        assert_int_not_equal(c.state, LOCATE_NAMED);
    }
}

static uint32_t gray_one_in = 20;
static bool gray_nic_4(const struct way *w)
{
    return w->from == 4 && prng_below(&f.prng, gray_one_in) == 0;
}

static void gray_loss_is_named(void **state)
{
    (void)state;
    fabric_new(9, 3, 3, HOST_NONE);
    play(20, none);
    play(6, gray_nic_4);
    expect_one(ELEMENT_NIC, DIRECTION_OUT, 4, 0);
    assert_true(locate_case_get(f.locate, 0)->share < 0.15);
}

/* Its losses are older than the last ones of each path, where it is reported to begin. */
static void gray_loss_that_is_over_is_told_once(void **state)
{
    struct locate_case c;
    uint32_t named = 0, ended = 0;

    (void)state;
    for (gray_one_in = 10; gray_one_in <= 100; gray_one_in += 45) {
        named = ended = 0;
        fabric_new(9, 3, 3, HOST_NONE);
        play(20, none);
        for (uint32_t i = 0; i < 250; i++) {
            play(1, i < 60 ? gray_nic_4 : none);
            while (locate_next_change(f.locate, &c)) {
                named += c.state == LOCATE_NAMED;
                ended += c.state == LOCATE_ENDED;
            }
        }
        assert_int_equal(named, 1);
        assert_int_equal(ended, 1);
    }
    gray_one_in = 20;
}

/* As if host 0 knew nothing but its own packets. */
static void only_from_0(void)
{
    for (uint32_t p = 0; p < f.count; p++) {
        if (f.ways[p].from != 0) {
            locate_path_clear(f.locate, p);
        }
    }
}

static bool two_gray_trunks(const struct way *w)
{
    return w->spine != UINT32_MAX && prng_below(&f.prng, w->spine == 0 ? 5 : 7) == 0;
}

/* All paths to the other leaf lose packets, as if that leaf lost them. The trunks of this leaf are just as likely. */
static void two_gray_trunks_are_no_leaf(void **state)
{
    struct locate_case c;

    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        fabric_new(10, 2, 2, (struct host_id){0});
        prng_init(&f.prng, seed);
        only_from_0();
        play(20, none);
        play(12, two_gray_trunks);
        while (locate_next_change(f.locate, &c)) {
            assert_true(c.state != LOCATE_NAMED || c.count > 1 ||
                        c.elements[0].kind != ELEMENT_LEAF);
        }
    }
}

static bool gray_to_4(const struct way *w)
{
    return w->to == 4 && prng_below(&f.prng, 4) == 0;
}

/* At one leaf a host has one path to a NIC. If that path loses a share, nothing tells the NIC from the flow. */
static void a_single_path_is_known_to_be_one(void **state)
{
    (void)state;
    for (uint32_t leaves = 1; leaves <= 3; leaves += 2) {
        fabric_new(9, leaves, 2, (struct host_id){0});
        only_from_0();
        play(20, none);
        play(12, gray_to_4);
        assert_int_equal(locate_case_count(f.locate), 1);
        assert_int_equal(locate_case_get(f.locate, 0)->single, leaves == 1);
    }
}

static bool to_1_and_2(const struct way *w)
{
    return w->to == 1 || w->to == 2;
}

/* Two hosts are cut off for a moment. Each is one path for host 0, and neither NIC is at fault. */
static void two_hosts_that_are_cut_off_are_twins(void **state)
{
    struct locate_case c;
    uint32_t ended = 0;

    (void)state;
    fabric_new(11, 1, 1, (struct host_id){0});
    only_from_0();
    play(20, none);
    for (uint32_t i = 0; i < 100; i++) {
        play(i == 0 ? 3 : 0.2, i == 0 ? to_1_and_2 : none);
        while (locate_next_change(f.locate, &c)) {
            if (c.state == LOCATE_ENDED && c.named.ns != MONO_NEVER.ns) {
                ended++;
                assert_true(locate_has_twin(f.locate, &c));
            }
        }
    }
    assert_true(ended > 0);
}

static bool to_1(const struct way *w)
{
    return w->to == 1;
}

static bool to_2(const struct way *w)
{
    return w->to == 2;
}

static bool gray_to_2(const struct way *w)
{
    return w->to == 2 && prng_below(&f.prng, 10) < 3;
}

static bool gray_to_2_and_gone_to_1(const struct way *w)
{
    return w->to == 1 || gray_to_2(w);
}

/* Plays the phases, then nothing. Host 1's outages have no twin when they end. */
static void no_twin(const double seconds[static 3], const fault phases[static 3])
{
    struct locate_case c;
    uint32_t ended = 0;

    fabric_new(11, 1, 1, (struct host_id){0});
    only_from_0();
    play(20, none);
    for (uint32_t i = 0; i < 103; i++) {
        play(i < 3 ? seconds[i] : 0.2, i < 3 ? phases[i] : none);
        while (locate_next_change(f.locate, &c)) {
            if (c.state == LOCATE_ENDED && c.named.ns != MONO_NEVER.ns && c.elements[0].a == 1 &&
                c.elements[0].kind == ELEMENT_NIC) {
                ended++;
                assert_false(locate_has_twin(f.locate, &c));
            }
        }
    }
    assert_true(ended > 0);
}

/* Another path that lost packets is no sign of a partition if its outage began at another time, or if it loses a share. */
static void what_is_lost_at_another_time_is_no_twin(void **state)
{
    (void)state;
    no_twin((double[]){0.8, 2, 0.2}, (fault[]){to_1, to_1_and_2, none});
    no_twin((double[]){2, 2, 2}, (fault[]){to_1, none, to_2});
    no_twin((double[]){10, 2, 10}, (fault[]){gray_to_2, gray_to_2_and_gone_to_1, gray_to_2});
}

/* Fates of host 0's packets as the host learns them: losses within the moment become known when packets come again. */
static uint32_t named_of_a_moment(fault lost, int64_t steps)
{
    const int64_t from = f.step + 50, until = from + steps;
    struct locate_case c;
    uint32_t named = 0;

    for (const int64_t end = until + 1500; f.step < end; f.step++) {
        for (uint32_t p = 0; p < f.count && f.step >= from; p++) {
            const int64_t phase = (int64_t)(hash_u64(7, p) % TOUCH);

            for (int64_t sent = f.step - FATE - steps; sent <= f.step - FATE; sent++) {
                const bool gone = sent >= from && sent < until && lost(&f.ways[p]);
                const int64_t told = gone ? until + FATE + phase / 4 : sent + FATE;
                if ((sent + phase) % TOUCH == 0 && told == f.step && f.ways[p].from == 0) {
                    locate_on_trial(f.locate, p, at_step(sent), gone);
                }
            }
        }
        locate_tick(f.locate, at_step(f.step));
        while (locate_next_change(f.locate, &c)) {
            named += c.state == LOCATE_NAMED;
        }
    }
    return named;
}

static bool to_seven_of_ten(const struct way *w)
{
    return w->to >= 4;
}
static bool all_from_0(const struct way *w)
{
    return w->from == 0;
}

/* A fabric fell into parts: a part of this host's packets is lost, for a moment. Nothing of its own loses a share. */
static void a_share_that_is_lost_for_a_moment_is_nobodys(void **state)
{
    (void)state;
    fabric_new(11, 2, 5, (struct host_id){0});
    play(20, none);
    assert_int_equal(named_of_a_moment(to_seven_of_ten, 35), 0);
    assert_int_equal(named_of_a_moment(all_from_0, 35), 1); /* an outage is reported */
}

static bool hosts_3_and_4(const struct way *w)
{
    return w->to == 3 || w->to == 4;
}
static bool host_3(const struct way *w)
{
    return w->to == 3;
}

static void several_that_are_gone_at_once_are_known(void **state)
{
    (void)state;
    for (int both = 0; both < 2; both++) {
        struct locate_case c;
        uint32_t ended = 0;

        fabric_new(9, 3, 3, HOST_NONE);
        play(20, none);
        play(2, both ? hosts_3_and_4 : host_3);
        for (int i = 0; i < 100; i++) {
            play(0.1, none);
            while (locate_next_change(f.locate, &c)) {
                ended += c.state == LOCATE_ENDED;
                assert_true(c.state != LOCATE_ENDED || locate_has_twin(f.locate, &c) == both);
            }
        }
        assert_int_equal(ended, 1 + both);
    }
}

static bool gray_nic_and_trunk(const struct way *w)
{
    return (leaf_0_to_spine_1(w) && prng_below(&f.prng, 2) == 0) ||
           (w->from == 3 && prng_below(&f.prng, 3) == 0);
}
static bool gray_nic_3(const struct way *w)
{
    return w->from == 3 && prng_below(&f.prng, 3) == 0;
}

/* Two faults are on the same paths, and one of them ends: the other's later losses don't count for the first, and aren't dropped
 * with it. */
static void one_of_two_faults_is_over(void **state)
{
    struct locate_case c;
    uint32_t ended = 0, named = 0;

    (void)state;
    fabric_new(9, 3, 3, HOST_NONE);
    play(20, none);
    play(10, gray_nic_and_trunk);
    assert_int_equal(locate_case_count(f.locate), 2);
    const struct mono over = at_step(f.step);
    while (locate_next_change(f.locate, &c)) {
    }
    for (uint32_t i = 0; i < 120; i++) {
        play(1, gray_nic_3);
        while (locate_next_change(f.locate, &c)) {
            named += c.state == LOCATE_NAMED;
            ended += c.state == LOCATE_ENDED;
            if (c.state == LOCATE_ENDED) {
                assert_int_equal(c.elements[0].kind, ELEMENT_TRUNK);
                assert_in_range(over.ns - c.ended_low.ns + NS_PER_S, NS_PER_S, 2 * NS_PER_S);
            }
        }
    }
    assert_int_equal(ended, 1);
    assert_int_equal(named, 0);
    expect_one(ELEMENT_NIC, DIRECTION_OUT, 3, 0);
}

/* A path that takes another way is another path. */
static void a_path_that_moved_has_no_past(void **state)
{
    struct locate_route r = {
        .from_host = {0}, .to_host = {1}, .from = {0}, .to = {1}, .teller = {1}};

    (void)state;
    fabric_new(8, 2, 2, HOST_NONE);
    play(2, none);
    play(0.3, nic_3_cannot_send);
    for (uint32_t p = 0; p < f.count; p++) {
        if (f.ways[p].from == 3) {
            locate_path_clear(f.locate, p);
            f.ways[p].from = 0;
        }
    }
    r.boxes[r.box_count++] = (struct locate_box){1, ELEMENT_LEAF};
    locate_path_set(f.locate, PATHS - 1, &r);
    play(2, none);
    assert_int_equal(locate_case_count(f.locate), 0);
}

/* If the evidence is reported anew for each look, ways stay. Losses that weren't reported for this time explain nothing. */
static void what_was_not_told_again_is_not_explained(void **state)
{
    const uint32_t path = 3 * 7;
    struct locate_case answer;

    (void)state;
    fabric_new(8, 2, 1, HOST_NONE);
    for (uint32_t turn = 0; turn < 2; turn++) {
        const struct mono now = at_step(1000 + 100 * turn);
        for (uint32_t p = 0; p < f.count; p++) {
            const bool lost = nic_3_cannot_send(&f.ways[p]);
            locate_trials_clear(f.locate, p);
            if (turn == 0 || p != path) {
                locate_on_trials(f.locate, p, now, 8, lost ? 8 : 0);
            }
        }
        assert_true(nic_3_cannot_send(&f.ways[path]) && nic_3_cannot_send(&f.ways[path + 1]));
        assert_true(locate_answer(f.locate, now, 0.0025, path + 1, &answer));
        assert_true(locate_explains(f.locate, &answer, path + 1));
        assert_int_equal(locate_explains(f.locate, &answer, path), turn == 0);
    }
}

/* While the losses without a fault are unknown, more of them are taken for that. Then their share becomes known. */
static void a_lower_background_is_a_reason_to_look(void **state)
{
    struct locate_case c;
    uint32_t lost = 0, named = 0;

    (void)state;
    fabric_new(9, 3, 3, HOST_NONE);
    for (uint32_t turn = 0; turn < 60; turn++) {
        const struct mono now = at_step(10 * turn);
        for (uint32_t p = 0; p < f.count;
             p++) { /* 1.5 %, less than twice the share that is assumed at first */
            const bool loses = f.ways[p].from == 4 && turn < 16 && ++lost % 3 == 0;
            locate_on_trials(f.locate, p, now, 20, loses);
        }
        locate_tick(f.locate, now);
        assert_true(turn >= 16 || locate_case_count(f.locate) == 0);
        while (locate_next_change(f.locate, &c)) {
            named += c.state == LOCATE_NAMED && c.elements[0].kind == ELEMENT_NIC &&
                     c.elements[0].direction == DIRECTION_OUT && c.elements[0].a == 4;
        }
    }
    assert_true(locate_background(f.locate) < 0.001);
    assert_int_equal(named, 1);
}

static bool leaf_2_and_spine_1(const struct way *w)
{
    return w->spine == 1 || leaf_of(w->from) == 2 || leaf_of(w->to) == 2;
}

/* A dead leaf hides a third of the spine's paths: the rest can't be told from either of its two trunks. They are one answer,
 * whichever host's reports are left out. */
static void what_another_fault_hides_is_named_together(void **state)
{
    bool has_spine = false;

    (void)state;
    fabric_new(9, 3, 3, HOST_NONE);
    play(3, none);
    play(1.5, leaf_2_and_spine_1);
    assert_int_equal(locate_case_count(f.locate), 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct locate_case *c = locate_case_get(f.locate, i);

        assert_int_equal(c->state, LOCATE_NAMED);
        for (uint32_t k = 0; k < c->count; k++) {
            has_spine |= c->elements[k].kind == ELEMENT_SPINE && c->elements[k].a == SPINE_KEY + 1;
        }
    }
    assert_true(has_spine);
}

static uint32_t gray_leaf, other_leaf, dead_leaf; /* their numbers */
static bool gray_trunk(const struct way *w)
{
    return w->spine == 1 && leaf_of(w->from) == gray_leaf && prng_below(&f.prng, 3) == 0;
}
static bool gray_trunk_to(const struct way *w)
{
    return w->spine == 1 && leaf_of(w->to) == other_leaf && prng_below(&f.prng, 3) == 0;
}
static bool dead_trunk(const struct way *w)
{
    return w->spine == 1 && (leaf_of(w->from) == dead_leaf || leaf_of(w->to) == dead_leaf);
}
static bool gray_trunk_and_dead_trunk(const struct way *w)
{
    return gray_trunk(w) || dead_trunk(w);
}
static bool gray_trunk_to_and_dead_trunk(const struct way *w)
{
    return gray_trunk_to(w) || dead_trunk(w);
}

/* A trunk loses a share, and then another trunk of its spine dies. The first one's remaining paths all cross a third trunk, and
 * that one's remaining paths all cross the first. They can't be told apart any more, but it was known which one it is. */
static void what_was_told_apart_stays_so(void **state)
{
    static const fault gray[] = {gray_trunk, gray_trunk_to},
                       both[] = {gray_trunk_and_dead_trunk, gray_trunk_to_and_dead_trunk};

    (void)state;
    for (uint32_t k = 0; k < 6; k++) {
        gray_leaf = k % 3;
        other_leaf = (gray_leaf + 1 + k / 3) % 3;
        dead_leaf = 3 - gray_leaf - other_leaf;
        for (uint32_t to = 0; to < 2; to++) {
            struct locate_case c;
            bool renamed = false;

            fabric_new(9, 3, 3, HOST_NONE);
            play(3, none);
            play(6, gray[to]);
            expect_one(ELEMENT_TRUNK, DIRECTION_OUT, to == 0 ? 1 + gray_leaf : SPINE_KEY + 1,
                       to == 0 ? SPINE_KEY + 1 : 1 + other_leaf);
            const uint64_t number = locate_case_get(f.locate, 0)->number;
            play(20, both[to]);
            while (locate_next_change(f.locate, &c)) {
                renamed = renamed || (c.state == LOCATE_NAMED && c.number != number &&
                                      c.elements[0].direction != DIRECTION_BOTH);
            }
            assert_false(renamed);
            assert_int_equal(locate_case_count(f.locate), 2);
            assert_int_equal(locate_case_get(f.locate, 0)->number, number);
        }
    }
}

static bool two_trunks(const struct way *w)
{
    return w->spine == 1 && (leaf_of(w->from) < 2 || leaf_of(w->to) < 2);
}
static bool two_trunks_and_leaf_3(const struct way *w)
{
    return two_trunks(w) || leaf_of(w->from) == 3 || leaf_of(w->to) == 3;
}

/* Two trunks of a spine are dead. Then a leaf dies without which this can't be shown: by the remaining paths the spine would be
 * more likely. It was known not to be the spine. */
static void two_trunks_stay_two(void **state)
{
    struct locate_case c;

    (void)state;
    fabric_new(8, 4, 3, HOST_NONE);
    play(3, none);
    play(3, two_trunks);
    assert_int_equal(locate_case_count(f.locate), 2);
    play(15, two_trunks_and_leaf_3);
    while (locate_next_change(f.locate, &c)) {
        assert_int_not_equal(c.elements[0].kind, ELEMENT_SPINE);
        assert_int_not_equal(c.state, LOCATE_ENDED);
    }
    assert_int_equal(locate_case_count(f.locate), 3);
}

static bool leaf_0_trunk(const struct way *w)
{
    return w->spine == 1 && (leaf_of(w->from) == 0 || leaf_of(w->to) == 0);
}
static bool both_trunks(const struct way *w)
{
    return leaf_0_trunk(w) ||
           (w->spine == 1 && leaf_of(w->from) < 3); /* leaf 1's or leaf 2's, which isn't known */
}
static bool one_and_a_half(const struct way *w)
{
    return leaf_0_trunk(w) || (w->spine == 1 && leaf_of(w->from) == gray_leaf);
}

/* A rail of three leaves, and another of two. One of the three trunks to a spine is dead, and another one, which can't be told
 * from the third. It recovers in one direction: then it must not become the third suddenly. */
static void a_trunk_that_recovers_in_part_is_the_same(void **state)
{
    (void)state;
    for (gray_leaf = 1; gray_leaf <= 2; gray_leaf++) {
        uint64_t leaf[2] = {0, 0};

        fabric_new(10, 5, 3, HOST_NONE);
        for (uint32_t p = 0; p < f.count; p++) {
            if ((leaf_of(f.ways[p].from) < 3) != (leaf_of(f.ways[p].to) < 3)) {
                locate_path_clear(f.locate, p);
            }
        }
        play(3, none);
        play(4, leaf_0_trunk);
        play(4, both_trunks);
        for (uint32_t turn = 0; turn < 2; turn++) {
            for (uint32_t i = 0; i < locate_case_count(f.locate); i++) {
                const struct locate_element *e = &locate_case_get(f.locate, i)->elements[0];
                const uint64_t of = e->a < SPINE_KEY ? e->a : e->b;
                leaf[turn] = of != 1 ? of : leaf[turn];
            }
            play(20, one_and_a_half);
        }
        assert_int_not_equal(leaf[0], 0);
        assert_int_equal(leaf[0], leaf[1]);
    }
}

/* Every host that sees the fault gives it one number. */
static void hosts_agree_on_its_number(void **state)
{
    (void)state;
    fabric_new(9, 3, 3, HOST_NONE);
    play(3, none);
    play(0.8, leaf_0_to_spine_1);
    uint64_t number = locate_case_get(f.locate, 0)->number;
    fabric_new(9, 3, 3, (struct host_id){0});
    for (uint32_t p = 0; p < f.count; p++) {
        if (f.ways[p].from != 0 && f.ways[p].to != 0 && f.ways[p].from != 3) {
            locate_path_clear(f.locate, p); /* not heard here */
        }
    }
    play(3, none);
    play(0.8, leaf_0_to_spine_1);
    expect_one(ELEMENT_TRUNK, DIRECTION_OUT, 1, SPINE_KEY + 1);
    assert_int_equal(locate_case_get(f.locate, 0)->number, number);
}

static int over(void **state)
{
    (void)state;
    f.locate = locate_free(f.locate);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nic_that_cannot_send_is_named_once),
        cmocka_unit_test(a_nic_that_cannot_hear_is_named_by_its_own_host),
        cmocka_unit_test(a_trunk_is_named_with_its_direction),
        cmocka_unit_test(what_nobody_can_tell_apart_is_named_together),
        cmocka_unit_test(two_faults_have_two_names),
        cmocka_unit_test(one_host_alone_accuses_nobody),
        cmocka_unit_test(old_news_acquit_nobody),
        cmocka_unit_test(an_outage_has_a_beginning_and_an_end),
        cmocka_unit_test(short_outages_are_told_one_by_one),
        cmocka_unit_test(a_case_ends_when_nobody_tells_of_its_paths),
        cmocka_unit_test(a_liar_hides_no_fault),
        cmocka_unit_test(two_gray_trunks_are_no_leaf),
        cmocka_unit_test(two_hosts_that_are_cut_off_are_twins),
        cmocka_unit_test(what_is_lost_at_another_time_is_no_twin),
        cmocka_unit_test(a_single_path_is_known_to_be_one),
        cmocka_unit_test(what_is_lost_everywhere_is_nobodys_fault),
        cmocka_unit_test(what_is_lost_within_a_moment_is_nobodys_fault),
        cmocka_unit_test(bursts_everywhere_are_nobodys_fault),
        cmocka_unit_test(gray_loss_is_named),
        cmocka_unit_test(gray_loss_that_is_over_is_told_once),
        cmocka_unit_test(a_share_that_is_lost_for_a_moment_is_nobodys),
        cmocka_unit_test(several_that_are_gone_at_once_are_known),
        cmocka_unit_test(one_of_two_faults_is_over),
        cmocka_unit_test(a_path_that_moved_has_no_past),
        cmocka_unit_test(what_was_not_told_again_is_not_explained),
        cmocka_unit_test(a_lower_background_is_a_reason_to_look),
        cmocka_unit_test(what_another_fault_hides_is_named_together),
        cmocka_unit_test(what_was_told_apart_stays_so),
        cmocka_unit_test(two_trunks_stay_two),
        cmocka_unit_test(a_trunk_that_recovers_in_part_is_the_same),
        cmocka_unit_test(hosts_agree_on_its_number),
    };
    return cmocka_run_group_tests(tests, NULL, over);
}

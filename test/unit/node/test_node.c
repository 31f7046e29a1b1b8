/* Real nodes in a small world: they find each other, fall onto one timeline, and see their paths.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../sanitized.h"
#include "core/clock/clock.h"
#include "core/mesh/internal.h"
#include "core/node/internal.h"
#include "node_world.h"

static struct world w;

static void start_all(uint64_t seed, uint32_t hosts, uint32_t nics, bool hops)
{
    world_init(&w, seed, hosts, nics);
    w.trace_hops = hops;
    for (uint32_t i = 0; i < hosts; i++) {
        world_start(&w, i);
    }
}

static int64_t fleet_of(uint32_t host)
{
    struct fleet_time t = {0};

    assert_true(node_fleet_time(w.hosts[host].node, world_mono(&w, host), &t));
    return t.ns;
}

static uint32_t count_kind(uint32_t kind)
{
    uint32_t count = 0;

    for (uint32_t h = 0; h < w.host_count; h++) {
        for (uint32_t i = 0; i < w.hosts[h].finding_count; i++) {
            count += w.hosts[h].findings[i].finding.kind == kind;
        }
    }
    return count;
}

static void print_findings(void)
{
    char text[512];

    for (uint32_t h = 0; h < w.host_count; h++) {
        for (uint32_t i = 0; i < w.hosts[h].finding_count; i++) {
            finding_text(&w.hosts[h].findings[i].finding, NULL, text, sizeof(text));
            printf("%6.3f host %u: %s\n", (double)w.hosts[h].findings[i].at / 1e9, h, text);
        }
    }
}

static void two_hosts_share_a_timeline(void **state)
{
    struct path_report out, in;
    struct node_edge edge;
    int seen = 0;

    start_all(1, 2, 2, false);
    world_run(&w, 25 * NS_PER_S);
    assert_true(llabs(fleet_of(0) - fleet_of(1)) < 2000);
    for (uint32_t e = 0; e < node_edge_count(w.hosts[0].node); e++) {
        if (!node_edge_get(w.hosts[0].node, e, world_mono(&w, 0), &edge)) {
            continue;
        }
        for (uint8_t p = 0; p < 4; p++) {
            assert_true(
                node_path_get(w.hosts[0].node, e, p, DIRECTION_OUT, world_mono(&w, 0), &out));
            assert_true(node_path_get(w.hosts[0].node, e, p, DIRECTION_IN, world_mono(&w, 0), &in));
            assert_int_equal(out.state, PATH_ALIVE);
            assert_int_equal(in.state, PATH_ALIVE);
            assert_true(out.owd_count > 20 && in.owd_count > 20);
            assert_true(llabs(out.owd_ns_p50 - 4000) < 1000);
            assert_true(llabs(in.owd_ns_p50 - 4000) < 1000);
            seen++;
        }
    }
    assert_int_equal(seen, 16);
    if (count_kind(FINDING_PATH_DEAD)) {
        print_findings();
    }
    assert_int_equal(count_kind(FINDING_PATH_DEAD), 0);
    world_done(&w);
}

/* Time from `from` to the first finding of that kind for that direction on a host; INT64_MAX: never. */
static int64_t first_after(uint32_t host, uint32_t kind, uint8_t direction, int64_t from,
                           struct finding *ret)
{
    const struct world_host *h = &w.hosts[host];

    for (uint32_t i = 0; i < h->finding_count; i++) {
        const struct finding *f = &h->findings[i].finding;
        if (h->findings[i].at >= from && f->kind == kind && f->direction == direction &&
            f->phase == FINDING_OPENED) {
            *ret = *f;
            return h->findings[i].at - from;
        }
    }
    return INT64_MAX;
}

/* Brings a finding up to date: the last that this host reports about it. */
static void newest_of(uint32_t host, struct finding *f)
{
    const struct world_host *h = &w.hosts[host];

    for (uint32_t i = 0; i < h->finding_count; i++) {
        *f = h->findings[i].finding.number == f->number ? h->findings[i].finding : *f;
    }
}

/* With two leaves the way up from one and the way down to the other carry the same packets: no host alone can tell them apart,
 * and none names one of them. The first candidate is the one behind the last router that answered. */
static void a_cut_trunk_is_one_of_those_that_look_alike(void **state)
{
    struct finding f;
    int64_t worst = 0;

    for (uint64_t seed = 1; seed <= DRAWS(3); seed++) {
        start_all(seed, 4, 1, true);
        world_run(&w, 25 * NS_PER_S + (int64_t)seed * 23 * NS_PER_MS);
        assert_int_equal(count_kind(FINDING_PATH_DEAD), 0);
        const int64_t cut = w.now;
        w.trunk_loss[0][2][0] = 1; /* leaf 0 to spine 2, one way */
        world_run(&w, 2 * NS_PER_S);
        for (uint32_t h = 0; h < 2; h++) {
            const int64_t after = first_after(h, FINDING_PATH_DEAD, DIRECTION_OUT, cut, &f);
            newest_of(h, &f);
            const struct element *first = &f.choice.one_of[0];
            if (after > 600 * NS_PER_MS || first->kind != ELEMENT_TRUNK) {
                printf("seed %d host %u after %.0f ms\n", (int)seed, h, (double)after / 1e6);
                print_findings();
            }
            assert_true(after < 600 * NS_PER_MS);
            worst = after > worst ? after : worst;
            assert_int_equal(f.suspect.kind, ELEMENT_UNKNOWN);
            assert_int_equal(first->kind, ELEMENT_TRUNK);
            assert_int_equal(first->a.kind, PLACE_LEAF);
            assert_int_equal(first->a.number, 0);
            assert_int_equal(first->b.kind, PLACE_SPINE);
            assert_int_equal(first->b.number, 2);
            assert_int_equal(f.choice.total, f.choice.count);
            assert_int_equal(f.other, OTHER_FINE);
        }
        for (uint32_t h = 0; h < 4; h++) { /* one cut, one finding for each host */
            uint32_t opened = 0;
            for (uint32_t i = 0; i < w.hosts[h].finding_count; i++) {
                const struct finding *g = &w.hosts[h].findings[i].finding;
                opened += g->kind == FINDING_PATH_DEAD && g->phase == FINDING_OPENED;
            }
            if (opened != 1) {
                print_findings();
            }
            assert_int_equal(opened, 1);
        }
        w.trunk_loss[0][2][0] = 0;
        world_run(&w, 2 * NS_PER_S);
        for (uint32_t h = 0; h < 4; h++) {
            assert_int_equal(node_finding_count(w.hosts[h].node), 0);
        }
        world_done(&w);
    }
    printf("worst %.0f ms\n", (double)worst / 1e6);
}

/* Stopped, starved, killed and restarted agents are silent or late. No path is accused. */
static void agents_in_trouble_accuse_nobody(void **state)
{
    for (uint64_t seed = 1; seed <= DRAWS(2); seed++) {
        start_all(seed, 4, 2, false);
        world_run(&w, 5 * NS_PER_S);
        for (uint32_t round = 0; round < 40; round++) { /* stopped for 30 ms to 4 s */
            const uint32_t h = (uint32_t)prng_below(&w.prng, 4);
            world_stop(&w, h,
                       30 * NS_PER_MS +
                           (int64_t)prng_below(&w.prng, round % 4 ? 400000000 : 4000000000));
            world_run(&w, (int64_t)prng_below(&w.prng, 1500000000));
        }
        for (uint32_t round = 0; round < 200;
             round++) { /* starved: on for a little, off for longer */
            world_stop(&w, 1, 10 * NS_PER_MS + (int64_t)prng_below(&w.prng, 200000000));
            world_run(&w, 120 * NS_PER_MS + (int64_t)prng_below(&w.prng, 100000000));
        }
        for (uint32_t h = 0; h < 4; h++) { /* a rolling restart */
            w.hosts[h].node = node_free(w.hosts[h].node);
            world_run(&w, 300 * NS_PER_MS + (int64_t)prng_below(&w.prng, 4000000000));
            world_start(&w, h);
            world_run(&w, 3 * NS_PER_S);
        }
        if (count_kind(FINDING_PATH_DEAD) + count_kind(FINDING_PATH_LOSSY) > 0) {
            print_findings();
        }
        assert_int_equal(count_kind(FINDING_PATH_DEAD), 0);
        assert_int_equal(count_kind(FINDING_PATH_LOSSY), 0);
        world_run(&w, 10 * NS_PER_S);
        for (uint32_t h = 0; h < 4; h++) {
            assert_int_equal(node_finding_count(w.hosts[h].node), 0);
        }
        world_done(&w);
    }
}

/* Cut behind the spine: the spine still answers, so the name is certain. All hosts of the near leaf report the same. */
static void far_trunk_is_named_for_sure(void **state)
{
    struct finding f;
    int64_t worst = 0;

    for (uint64_t seed = 1; seed <= DRAWS(3); seed++) {
        start_all(seed, 4, 2, true);
        world_run(&w, 25 * NS_PER_S + (int64_t)seed * 23 * NS_PER_MS);
        const int64_t cut = w.now;
        w.trunk_loss[1][3][0] = w.trunk_loss[1][3][1] = 1; /* leaf 1, spine 3, both ways */
        world_run(&w, 2 * NS_PER_S);
        for (uint32_t h = 0; h < 2; h++) {
            const int64_t in = first_after(h, FINDING_PATH_DEAD, DIRECTION_IN, cut, &f);
            const int64_t in_or_out = first_after(h, FINDING_PATH_DEAD, DIRECTION_OUT, cut, &f);
            const int64_t after = in < in_or_out ? in : in_or_out; /* one finding covers both */
            if (in < in_or_out) {
                (void)first_after(h, FINDING_PATH_DEAD, DIRECTION_IN, cut, &f);
            }
            newest_of(h, &f); /* unknown until routers' answers prove it */
            if (after > 600 * NS_PER_MS || f.suspect.kind != ELEMENT_TRUNK ||
                f.suspect.a.number != 1) {
                printf("seed %d host %u after %.0f ms\n", (int)seed, h, (double)after / 1e6);
                print_findings();
            }
            assert_true(after < 600 * NS_PER_MS);
            worst = after > worst ? after : worst;
            assert_int_equal(f.suspect.kind, ELEMENT_TRUNK);
            assert_int_equal(f.suspect.a.number, 1);
            assert_int_equal(f.suspect.b.number, 3);
        }
        assert_in_range(count_kind(FINDING_PATH_DEAD), 4, 12); /* unknown, one of some, its name */
        world_done(&w);
    }
    printf("worst %.0f ms\n", (double)worst / 1e6);
}

/* A spine that is lost in both directions affects each peer's paths, out and in: one report to the inference answers them all. */
static void a_dead_spine_is_told_once(void **state)
{
    uint32_t most = 0, bad = 0;

    start_all(3, 8, 2, true);
    world_run(&w, 25 * NS_PER_S);
    for (uint32_t leaf = 0; leaf < 2; leaf++) {
        w.trunk_loss[leaf][1][0] = w.trunk_loss[leaf][1][1] = 1;
    }
    for (uint32_t step = 0; step < 1000; step++) {
        const struct node *n = w.hosts[0].node;
        const uint32_t before = n->mesh->asked.times;

        world_run(&w, 2 * NS_PER_MS);
        bad = n->bad_waiting > bad ? n->bad_waiting : bad;
        most = n->mesh->asked.times - before > most ? n->mesh->asked.times - before : most;
    }
    printf("told %u times in 2 ms, %u paths bad\n", most, bad);
    assert_true(bad >= 16);
    assert_in_range(most, 1, 4);
    world_done(&w);
}

/* ---- digests ---- */

/* The last finding of each host about paths that died, into *ret by host. Returns how many hosts had one. */
static uint32_t last_words(int64_t after, struct finding ret[static WORLD_HOSTS])
{
    uint32_t count = 0;

    for (uint32_t h = 0; h < w.host_count; h++) {
        bool any = false;

        for (uint32_t i = 0; i < w.hosts[h].finding_count; i++) {
            const struct node_finding_log *f = &w.hosts[h].findings[i];
            if (f->at >= after && f->finding.kind == FINDING_PATH_DEAD) {
                ret[count] = f->finding;
                any = true;
            }
        }
        count += any;
    }
    return count;
}

/* Without a server hosts that send into the hole, and hosts that only miss others' packets, get the same name and time. */
static void all_hosts_name_one_fault(void **state)
{
    struct finding words[WORLD_HOSTS];

    for (uint64_t seed = 1; seed <= DRAWS(3); seed++) {
        start_all(seed, 6, 2, true);
        world_run(&w, 40 * NS_PER_S);
        const int64_t cut = w.now;
        w.trunk_loss[seed % 2][2][seed / 2 % 2] = 1;
        world_run(&w, 5 * NS_PER_S);
        const uint32_t count = last_words(cut, words);
        assert_int_equal(count, 6);
        for (uint32_t i = 1; i < count; i++) {
            if (!finding_fault_same(&words[0], &words[i])) {
                print_findings();
            }
            assert_true(finding_fault_same(&words[0], &words[i]));
        }
        world_done(&w);
    }
}

/* Claims that all its packets were lost, also those that it didn't report before. */
static void accuse(const struct world *world, struct probe_digest *digest)
{
    const struct probe_digest was = *digest;
    struct probe_observation o;
    uint16_t at = 0;

    *digest = (struct probe_digest){.made = was.made, .from = was.from};
    while (digest->count < was.count && probe_digest_next(&was, &at, &o)) {
        o.lost = o.answered ? 0 : 8;
        o.age_ms = 900;
        assert_true(probe_digest_put(digest, &o));
    }
}

/* Claims that nothing was ever lost. */
static void acquit(const struct world *world, struct probe_digest *digest)
{
    const struct probe_digest was = *digest;
    struct probe_observation o;
    uint16_t at = 0;

    *digest = (struct probe_digest){.made = was.made, .from = was.from};
    while (digest->count < was.count && probe_digest_next(&was, &at, &o)) {
        o.lost = 0;
        o.age_ms = 0;
        assert_true(probe_digest_put(digest, &o));
    }
}

/* One host lies about all others while a trunk is dead: no host names anything else. While all is well no host reports
 * anything. */
static void one_liar_names_nothing_and_clears_nothing(void **state)
{
    struct finding words[WORLD_HOSTS];

    for (uint64_t seed = 1; seed <= (SANITIZED ? 2 : 4); seed++) {
        start_all(seed, 6, 2, true);
        w.liars = 1u << seed;
        w.lie = seed % 2 ? accuse : acquit;
        world_run(&w, 40 * NS_PER_S);
        assert_int_equal(count_kind(FINDING_PATH_DEAD), 0);
        const int64_t cut = w.now;
        w.trunk_loss[1][2][0] = 1;
        world_run(&w, 5 * NS_PER_S);
        const uint32_t count = last_words(cut, words);
        assert_true(count >= 5);
        for (uint32_t i = 0; i < count; i++) {
            const struct element *e = &words[i].suspect;
            const bool right = e->kind == ELEMENT_TRUNK && e->b.number == 2;
            bool listed = words[i].choice.total > words[i].choice.count;

            for (uint32_t k = 0; k < words[i].choice.count; k++) {
                const struct element *c = &words[i].choice.one_of[k];
                listed =
                    listed || (c->kind == ELEMENT_TRUNK && c->a.number == 1 && c->b.number == 2);
            }
            if (e->kind != ELEMENT_UNKNOWN ? !right : words[i].choice.count > 0 && !listed) {
                print_findings();
            }
            assert_true(e->kind != ELEMENT_UNKNOWN ? right : words[i].choice.count == 0 || listed);
        }
        world_done(&w);
    }
}

static void one_way_dead_nic_is_named(void **state)
{
    struct finding f;

    for (uint64_t seed = 1; seed <= DRAWS(2); seed++) {
        start_all(seed, 4, 2, true);
        world_run(&w, 20 * NS_PER_S);
        const int64_t cut = w.now;
        w.host_loss[3][1][1] = 1; /* nothing arrives at nic 7; what it sends does */
        world_run(&w, 3 * NS_PER_S);
        const int64_t after = first_after(0, FINDING_PATH_DEAD, DIRECTION_OUT, cut, &f);
        if (after > NS_PER_S || f.suspect.kind != ELEMENT_NIC) {
            print_findings();
        }
        assert_true(after < NS_PER_S);
        assert_int_equal(f.suspect.kind, ELEMENT_NIC);
        assert_int_equal(f.suspect.a.number, 7);
        world_done(&w);
    }
}

static void a_dead_nic_is_one_sentence_and_leaves_no_echo(void **state)
{
    for (uint64_t seed = 1; seed <= DRAWS(2); seed++) {
        const int64_t hole = seed % 2 ? 4 * NS_PER_S : NS_PER_S;
        uint32_t said = 0;

        start_all(seed, 6, 2, true);
        world_run(&w, 20 * NS_PER_S);
        w.host_loss[4][1][0] = w.host_loss[4][1][1] = 1; /* nic 9 */
        world_run(&w, hole);
        w.host_loss[4][1][0] = w.host_loss[4][1][1] = 0;
        world_run(&w, 60 * NS_PER_S);
        for (uint32_t i = 0; i < w.hosts[4].finding_count; i++) {
            const struct finding *f = &w.hosts[4].findings[i].finding;
            said += f->kind == FINDING_PEER_SILENT && f->phase == FINDING_OPENED;
        }
        for (uint32_t h = 0; h < 6; h++) {
            for (uint32_t i = 0; i < w.hosts[h].finding_count; i++) {
                const struct finding *f = &w.hosts[h].findings[i].finding;
                /* its own host can't tell it from the element behind it */
                const struct element *e = h == 4 ? &f->choice.one_of[0] : &f->suspect;
                if (f->phase == FINDING_OPENED && (e->kind != ELEMENT_NIC || e->a.number != 9)) {
                    print_findings();
                }
                assert_true(f->phase != FINDING_OPENED || e->kind == ELEMENT_NIC);
                assert_true(f->phase != FINDING_OPENED || e->a.number == 9);
            }
            assert_int_equal(node_finding_count(w.hosts[h].node), 0);
        }
        if (count_kind(FINDING_PATH_LOSSY) > 0) {
            print_findings();
        }
        assert_int_equal(count_kind(FINDING_PATH_LOSSY), 0);
        assert_int_equal(said, 1);
        world_done(&w);
    }
}

static void gray_loss_is_found_and_good_paths_are_not_blamed(void **state)
{
    struct finding f;

    start_all(3, 4, 1, true);
    world_run(&w, 20 * NS_PER_S);
    const int64_t from = w.now;
    w.trunk_loss[0][1][0] = 0.08;
    world_run(&w, 90 * NS_PER_S);
    const int64_t after = first_after(0, FINDING_PATH_LOSSY, DIRECTION_OUT, from, &f);
    if (after > 90 * NS_PER_S) {
        print_findings();
    }
    assert_true(after < 90 * NS_PER_S);
    /* loss alone doesn't show which of its trunks it is */
    assert_int_equal(f.suspect.kind, ELEMENT_UNKNOWN);
    assert_in_range(f.choice.count, 2, ELEMENT_ONE_OF);
    assert_int_equal(f.choice.one_of[0].kind, ELEMENT_SPINE);
    assert_int_equal(f.choice.one_of[0].a.number, 1);
    assert_int_equal(f.advice, ADVICE_CHECK_SWITCH);
    if (count_kind(FINDING_PATH_DEAD)) {
        print_findings();
    }
    assert_int_equal(count_kind(FINDING_PATH_DEAD), 0);
    w.trunk_loss[0][1][0] = 0;
    world_run(&w, 130 * NS_PER_S);
    assert_int_equal(node_finding_count(w.hosts[0].node), 0);
    world_done(&w);
}

/* A policer or a full queue of that class, which is no cable's fault: paths stay alive, and all pairs come. */
static void loss_of_the_jobs_class_alone_is_told_as_that(void **state)
{
    const double shares[] = {1, 0.3};

    for (uint32_t i = 0; i < 2; i++) {
        uint32_t told = 0;

        start_all(3, 8, 2, true);
        world_run(&w, 20 * NS_PER_S);
        w.job_class_only = true;
        w.trunk_loss[0][1][0] = shares[i];
        world_run(&w, 20 * NS_PER_S);
        for (uint32_t h = 0; h < 8; h++) {
            for (uint32_t k = 0; k < w.hosts[h].finding_count; k++) {
                const struct finding *f = &w.hosts[h].findings[k].finding;

                assert_int_equal(f->kind, FINDING_PATH_LOSSY);
                told += f->phase == FINDING_OPENED && f->advice == ADVICE_CHECK_CLASS;
            }
        }
        if (told == 0) {
            print_findings();
        }
        assert_true(told > 0);
        world_done(&w);
    }
}

/* Too short to prove that a path is dead: it is known when the packets' fates are. A path is touched each 200 +- 20 ms. So two
 * touches may be within 200 ms, and their neighbours up to three intervals apart. */
static void an_outage_is_told_with_its_length_when_it_is_over(void **state)
{
    const int64_t length = 200 * NS_PER_MS;
    uint32_t told = 0;

    start_all(3, 8, 1, true);
    world_run(&w, 30 * NS_PER_S);
    const int64_t from = w.now;
    w.trunk_loss[0][1][0] = 1;
    world_run(&w, length);
    w.trunk_loss[0][1][0] = 0;
    world_run(&w, 10 * NS_PER_S);
    for (uint32_t h = 0; h < 8; h++) {
        for (uint32_t i = 0; i < w.hosts[h].finding_count; i++) {
            const struct finding *f = &w.hosts[h].findings[i].finding;

            if (w.hosts[h].findings[i].at < from || f->phase != FINDING_CLOSED) {
                continue;
            }
            if (llabs(f->ended_ns - f->since.ns - length) >= 460 * NS_PER_MS) {
                print_findings();
            }
            assert_int_equal(f->kind, FINDING_PATH_DEAD);
            assert_in_range(f->length_error_ns, 1, 460 * NS_PER_MS);
            assert_true(llabs(f->ended_ns - f->since.ns - length) <= f->length_error_ns);
            told++;
        }
        assert_int_equal(node_finding_count(w.hosts[h].node), 0);
    }
    if (told == 0) {
        print_findings();
    }
    assert_true(told > 0);
    world_done(&w);
}

static void short_trunk_flaps_are_all_found(void **state)
{
    struct finding f;

    start_all(5, 4, 1, true);
    world_run(&w, 20 * NS_PER_S);
    for (uint32_t i = 0; i < 10; i++) {
        const int64_t from = w.now;
        const uint32_t spine = i % 4, leaf = i % 2;
        w.trunk_loss[leaf][spine][0] = w.trunk_loss[leaf][spine][1] = 1;
        world_run(&w, 2 * NS_PER_S);
        w.trunk_loss[leaf][spine][0] = w.trunk_loss[leaf][spine][1] = 0;
        int64_t after = INT64_MAX;
        for (uint32_t h = 0; h < 4; h++) {
            const int64_t a = first_after(h, FINDING_PATH_DEAD, DIRECTION_OUT, from, &f);
            const int64_t b = first_after(h, FINDING_PATH_FLAPPING, DIRECTION_OUT, from, &f);
            after = a < after ? a : after;
            after = b < after ? b : after;
        }
        if (after > NS_PER_S) {
            print_findings();
        }
        assert_true(after < NS_PER_S);
        world_run(&w, 3 * NS_PER_S);
    }
    world_done(&w);
}

/* Two deaths are reported, then the flapping with its count. It ends when the path stays alive. */
static void a_flapping_trunk_is_one_finding_with_a_count(void **state)
{
    start_all(6, 4, 1, true);
    world_run(&w, 20 * NS_PER_S);
    for (uint32_t i = 0; i < 10; i++) {
        w.trunk_loss[0][1][0] = w.trunk_loss[0][1][1] = 1;
        world_run(&w, 2 * NS_PER_S);
        w.trunk_loss[0][1][0] = w.trunk_loss[0][1][1] = 0;
        world_run(&w, 3 * NS_PER_S);
    }
    for (uint32_t h = 0; h < 4; h++) {
        uint32_t dead = 0, opened = 0, updated = 0;
        int64_t count = 0;

        for (uint32_t i = 0; i < w.hosts[h].finding_count; i++) {
            const struct finding *f = &w.hosts[h].findings[i].finding;
            const bool flapping = f->kind == FINDING_PATH_FLAPPING;

            dead += f->kind == FINDING_PATH_DEAD && f->phase == FINDING_OPENED;
            opened += flapping && f->phase == FINDING_OPENED;
            updated += flapping && f->phase == FINDING_UPDATED;
            count = flapping ? f->numbers[0] : count;
        }
        if (dead < 2 || dead > 4 || opened != 1 || count != 10) {
            print_findings();
        }
        assert_in_range(dead, 2, 4); /* one host's end saw the paths as several */
        assert_int_equal(opened, 1);
        assert_in_range(updated, 5, 7);
        assert_int_equal(count, 10);
        assert_int_equal(node_finding_count(w.hosts[h].node), 1);
    }
    w.trunk_loss[0][1][0] = w.trunk_loss[0][1][1] = 1; /* a death that lasts is reported */
    world_run(&w, 8 * NS_PER_S);
    assert_int_equal(node_finding_count(w.hosts[0].node), 2);
    w.trunk_loss[0][1][0] = w.trunk_loss[0][1][1] = 0;
    world_run(&w, 125 * NS_PER_S);
    for (uint32_t h = 0; h < 4; h++) {
        assert_int_equal(node_finding_count(w.hosts[h].node), 0);
    }
    world_done(&w);
}

/* Three edges' errors add up to nothing if the ways are equal in both directions. If one isn't, that shows. */
/* An agent that has just started takes a minute to learn which port takes which way. If something dies meanwhile, that is one
 * finding: it lasts as long as the fault, and ends. */
static void a_hole_while_ways_are_learnt_is_one_finding(void **state)
{
    static const uint32_t seeds[] = {40, 41, 47};

    for (uint32_t i = 0; i < ARRAY_COUNT(seeds); i++) {
        start_all(seeds[i], 8, 2, true);
        w.spine_count = seeds[i] % 2 != 0 ? 2 : 4;
        world_run(&w, (4 + (seeds[i] - 40) % 6 * 3) * NS_PER_S);
        w.trunk_loss[0][1][0] = w.trunk_loss[0][1][1] = 1;
        world_run(&w, 6 * NS_PER_S);
        for (uint32_t h = 0; h < 8; h++) {
            uint32_t opened = 0, closed = 0;

            for (uint32_t k = 0; k < w.hosts[h].finding_count; k++) {
                const struct finding *f = &w.hosts[h].findings[k].finding;
                opened += f->kind == FINDING_PATH_DEAD && f->phase == FINDING_OPENED;
                closed += f->kind == FINDING_PATH_DEAD && f->phase == FINDING_CLOSED;
                bool has = f->choice.count == 0 || f->choice.total > f->choice.count;
                for (uint32_t c = 0; c < f->choice.count; c++) {
                    const struct element *e = &f->choice.one_of[c];
                    has = has || (e->kind == ELEMENT_TRUNK && e->a.number == 0 && e->b.number == 1);
                }
                assert_true(f->kind != FINDING_PATH_DEAD || has); /* a list of all contains it */
                /* all ways of a pair crossed that spine: no NIC's fault */
                assert_int_not_equal(f->kind, FINDING_PEER_SILENT);
            }
            if (opened != 1 || closed != 0) {
                print_findings();
            }
            assert_int_equal(opened, 1);
            assert_int_equal(closed, 0);
        }
        w.trunk_loss[0][1][0] = w.trunk_loss[0][1][1] = 0;
        world_run(&w, 12 * NS_PER_S);
        for (uint32_t h = 0; h < 8; h++) {
            const struct world_host *host = &w.hosts[h];

            if (host->findings[host->finding_count - 1].finding.phase != FINDING_CLOSED) {
                print_findings();
            }
            assert_int_equal(host->findings[host->finding_count - 1].finding.phase, FINDING_CLOSED);
        }
        world_done(&w);
    }
}

static void who_is_out_of_step_for_a_minute_is_said(void **state)
{
    start_all(60, 6, 1, false);
    world_run(&w, 20 * NS_PER_S);
    w.astray = 1u << 2;
    world_run(&w, 55 * NS_PER_S);
    assert_int_equal(count_kind(FINDING_CLOCK_ASTRAY), 0);
    world_run(&w, 25 * NS_PER_S);
    for (uint32_t h = 0; h < 6; h++) {
        const struct world_host *host = &w.hosts[h];
        char text[400];

        if (h == 2) {
            continue;
        }
        assert_true(host->finding_count > 0);
        const struct finding *f = &host->findings[host->finding_count - 1].finding;
        finding_text(f, NULL, text, sizeof(text));
        assert_int_equal(f->kind, FINDING_CLOCK_ASTRAY);
        assert_int_equal(f->from_host.index, 2);
        assert_non_null(strstr(text, "host 2: clock has not been in step with the fleet for 6"));
        assert_non_null(strstr(text, "while 4 of 5 neighbours are"));
    }
    w.astray = 0;
    world_run(&w, 15 * NS_PER_S);
    for (uint32_t h = 0; h < 6; h++) {
        const struct world_host *host = &w.hosts[h];
        assert_true(h == 2 ||
                    host->findings[host->finding_count - 1].finding.phase == FINDING_CLOSED);
    }
    assert_int_equal(count_kind(FINDING_CLOCK_ASTRAY), 10); /* five hosts, opened and closed */
    world_done(&w);
}

static void loops_show_asymmetry(void **state)
{
    struct node_triangles t[2];

    for (uint32_t i = 0; i < 2; i++) {
        start_all(7, 6, 1, true);
        w.pair_delay[1][4] = i == 1 ? 20000 : 0;
        world_run(&w, 60 * NS_PER_S);
        node_triangles(w.hosts[1].node, &t[i]);
        assert_in_range(t[i].count, 15, 30);
        assert_true(t[i].residual_ns_max >= t[i].residual_ns_p50);
        world_done(&w);
    }
    assert_true(t[0].residual_ns_max < 1000);
    assert_true(t[1].residual_ns_max > 9000 && t[1].residual_ns_max < 11000); /* half of it */
}

static void one_seed_one_history(void **state)
{
    uint64_t digest[2][WORLD_HOSTS];

    for (uint32_t run = 0; run < 2; run++) {
        start_all(9, 4, 2, true);
        world_run(&w, 10 * NS_PER_S);
        w.trunk_loss[1][0][1] = 0.3;
        world_stop(&w, 2, NS_PER_S);
        world_run(&w, 5 * NS_PER_S);
        for (uint32_t h = 0; h < 4; h++) {
            digest[run][h] = w.hosts[h].digest;
        }
        world_done(&w);
    }
    assert_memory_equal(digest[0], digest[1], 4 * sizeof(digest[0][0]));
}

/* A restarted agent that kept its state is useful at once. */
static void a_restart_is_warm(void **state)
{
    struct clock_terms terms;

    start_all(12, 6, 2, true);
    world_run(&w, 40 * NS_PER_S);
    size_t size = node_saved_size(w.hosts[2].node);
    uint8_t *bytes = malloc(size);
    node_save(w.hosts[2].node, world_mono(&w, 2), bytes);
    w.hosts[2].node = node_free(w.hosts[2].node);
    world_run(&w, NS_PER_S);
    world_start(&w, 2);
    assert_int_equal(node_restore(w.hosts[2].node, world_mono(&w, 2), bytes, size), 0);
    assert_int_equal(node_restore(w.hosts[3].node, world_mono(&w, 3), bytes, size - 1), -EINVAL);
    world_run(&w, 2 * NS_PER_S);
    node_clock_page(w.hosts[2].node, &terms);
    assert_int_equal(terms.status, CLOCK_SYNCED);
    assert_true(llabs(fleet_of(2) - fleet_of(0)) < 2000);
    free(bytes);
    world_done(&w);
}

static uint32_t edges_of(const struct node *n)
{
    struct node_edge edge;
    uint32_t count = 0;

    for (uint32_t e = 0; e < node_edge_count(n); e++) {
        count += node_edge_get(n, e, (struct mono){NS_PER_S}, &edge);
    }
    return count;
}

static void fewer_peers_while_it_runs(void **state)
{
    enum { NICS = 80 };
    static struct mesh_peer peers[NICS];
    struct node_config config = {.host = {0}, .nic_count = 1, .nics = {{.stamps = STAMP_SOFTWARE}}};
    struct node *n = NULL;

    for (uint32_t i = 0; i < NICS; i++) {
        peers[i] = (struct mesh_peer){.nic = {i}, .host = {i}, .leaf = LEAF_UNKNOWN};
    }
    config.fleet = (struct mesh_fleet){.seed = 7, .peers = peers, .peer_count = NICS};
    assert_int_equal(node_new(&n, &config, (struct mono){NS_PER_S}), 0);
    const uint32_t before = edges_of(n);
    assert_int_equal(
        node_on_settings(n, (struct mono){2 * NS_PER_S}, &(struct node_settings){.ring_peers = 4}),
        0);
    const uint32_t fewer = edges_of(n);
    assert_true(fewer >= 4 && fewer < before);
    for (uint32_t bad = 1; bad < 100;
         bad += bad == 1 ? 24 : 37) { /* 1, 25, 62, 99: odd, or more than fit */
        assert_int_equal(node_on_settings(n, (struct mono){2 * NS_PER_S},
                                          &(struct node_settings){.ring_peers = bad}),
                         -EINVAL);
        assert_int_equal(edges_of(n), fewer);
    }
    assert_int_equal(node_on_settings(n, (struct mono){3 * NS_PER_S}, &(struct node_settings){0}),
                     0);
    assert_int_equal(edges_of(n), before); /* as before */
    node_free(n);
}

/* Stops an agent for so long, so often within 30 s. Returns how often it reports that; *ret_most_ms: the most that one of these
 * cost. */
static uint32_t told_late(int64_t stop_ns, uint32_t times, int64_t *ret_most_ms)
{
    uint32_t told = 0;

    *ret_most_ms = 0;
    start_all(5, 2, 1, false);
    world_run(&w, 3 * NS_PER_S);
    for (uint32_t turn = 0; turn < times; turn++) {
        world_stop(&w, 0, stop_ns);
        world_run(&w, 30 * NS_PER_S / times);
    }
    for (uint32_t i = 0; i < w.hosts[0].finding_count; i++) {
        const struct finding *f = &w.hosts[0].findings[i].finding;
        const bool is = f->kind == FINDING_SENSING_LATE;
        told += is;
        *ret_most_ms = is && f->numbers[0] > *ret_most_ms ? f->numbers[0] : *ret_most_ms;
    }
    world_done(&w);
    return told;
}

/* Short pauses only change a counter. If a tenth of the view is lost, that is reported, with its cost. */
static void lateness_is_told_when_it_costs_sight(void **state)
{
    int64_t most_ms = 0;

    assert_int_equal(told_late(40 * NS_PER_MS, 60, &most_ms), 0);
    assert_in_range(told_late(300 * NS_PER_MS, 60, &most_ms), 2, 4); /* once in ten seconds */
    assert_in_range(most_ms, 1000, 1400);
    assert_int_equal(told_late(2 * NS_PER_S, 1, &most_ms), 1);
    assert_in_range(most_ms, 1900, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lateness_is_told_when_it_costs_sight),
        cmocka_unit_test(two_hosts_share_a_timeline),
        cmocka_unit_test(a_cut_trunk_is_one_of_those_that_look_alike),
        cmocka_unit_test(far_trunk_is_named_for_sure),
        cmocka_unit_test(agents_in_trouble_accuse_nobody),
        cmocka_unit_test(a_dead_spine_is_told_once),
        cmocka_unit_test(one_way_dead_nic_is_named),
        cmocka_unit_test(a_dead_nic_is_one_sentence_and_leaves_no_echo),
        cmocka_unit_test(gray_loss_is_found_and_good_paths_are_not_blamed),
        cmocka_unit_test(loss_of_the_jobs_class_alone_is_told_as_that),
        cmocka_unit_test(an_outage_is_told_with_its_length_when_it_is_over),
        cmocka_unit_test(short_trunk_flaps_are_all_found),
        cmocka_unit_test(a_flapping_trunk_is_one_finding_with_a_count),
        cmocka_unit_test(a_hole_while_ways_are_learnt_is_one_finding),
        cmocka_unit_test(who_is_out_of_step_for_a_minute_is_said),
        cmocka_unit_test(loops_show_asymmetry),
        cmocka_unit_test(all_hosts_name_one_fault),
        cmocka_unit_test(one_liar_names_nothing_and_clears_nothing),
        cmocka_unit_test(one_seed_one_history),
        cmocka_unit_test(a_restart_is_warm),
        cmocka_unit_test(fewer_peers_while_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

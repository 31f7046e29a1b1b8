/* Fates of own packets, by a peer's reports; what is no evidence; where a dead path ends. */
#include <math.h>

#include "core/mesh/evidence.h"
#include "core/mesh/suspect.h"
#include "one_mesh.h"

/* ---- queues ---- */

static void delay(int edge, bool high, int64_t owd_ns)
{
    trial_on_delay(m, now, edge, 0, high, owd_ns);
}

/* One packet in sixteen waited longer than a buffer takes to drain: the queue may have been full. If a path has no known delays,
 * it is unknown. */
static void a_queue_may_have_dropped_it(void **state)
{
    int edge;

    (void)state;
    struct mesh_edge *e = edge_of(1, &edge);
    struct path_out *out = &e->out[0];
    delay(edge, true, 99999); /* the least delay isn't known */
    out->half.brief_count = 1;
    out->half.brief_min = 1000;
    for (int i = 0; i < 7; i++) {
        delay(edge, true, 21000); /* as late as allowed */
        assert_true(trial_may_be_queue(out, true, now));
    }
    delay(edge, true, 21000);
    assert_false(trial_may_be_queue(out, true, now));
    assert_true(trial_may_be_queue(out, false, now)); /* nothing is known of the job's class */
    delay(edge, true, 21001);
    assert_true(trial_may_be_queue(out, true, now)); /* 1 of 9 */
    for (int i = 0; i < 6; i++) {
        delay(edge, true, 2000);
    }
    assert_true(trial_may_be_queue(out, true, now)); /* 1 of 15 */
    delay(edge, true, 2000);
    assert_false(trial_may_be_queue(out, true, now)); /* 1 of 16 */
    for (int i = 0; i < 16; i++) {
        delay(edge, true, 2000);
    }
    delay(edge, true, 21001);
    assert_false(trial_may_be_queue(out, true, now)); /* 2 of 32 */
    delay(edge, true, 21001);
    assert_true(trial_may_be_queue(out, true, now)); /* 3 of 32 */
    for (int i = 0; i < 30; i++) {
        delay(edge, true, 2000);
    }
    assert_false(trial_may_be_queue(out, true, now)); /* the first one is no longer kept */
    assert_false(trial_may_be_queue(out, true, after(5 * NS_PER_S / 2)));
    assert_true(trial_may_be_queue(out, true, after(5 * NS_PER_S / 2 + 1)));
}

/* Pairs come and the job's packets don't: by so many that it isn't chance. */
static void a_class_alone_is_lost(void **state)
{
    (void)state;
    assert_false(trial_is_job_class(&(struct class_sums){{0, 0}, {0, 0}}));
    assert_false(trial_is_job_class(&(struct class_sums){{2, 10}, {0, 10}}));
    assert_true(trial_is_job_class(&(struct class_sums){{200, 10}, {0, 10}}));
    assert_false(trial_is_job_class(&(struct class_sums){{200, 10}, {1, 10}}));
    assert_false(trial_is_job_class(&(struct class_sums){{200, 10}, {0, 0}}));
    /* half of them: as many halves as odds of a million need */
    const double least = 2 * ceil(LOCATE_LIMIT / log(2));
    assert_true(trial_is_job_class(&(struct class_sums){{least, 10}, {0, 5}}));
    assert_false(trial_is_job_class(&(struct class_sums){{least - 2, 10}, {0, 5}}));
}

/* ---- own packets ---- */

static void sent(struct path_out *out, uint32_t seq, int64_t ms_ago, bool high)
{
    out->sent[seq % SLOT_COUNT] =
        (struct sent_slot){.seq = seq,
                           .state = SENT_STAMPED,
                           .high = high,
                           .at_us = (uint32_t)((now.ns - ms_ago * NS_PER_MS) / NS_PER_US)};
    out->seq_next = seq + 1;
}

/* The peer's report of a path's last packets: bit k is the packet k before the newest. */
static void tell(int edge, uint32_t newest, uint32_t received, bool late)
{
    const struct probe probe = {
        .received = received, .late = late, .heard = {.path = 0, .seq = newest}};

    trial_on_mask(m, now, edge, &probe);
}

static struct class_sums fates(const struct path_out *out)
{
    struct class_sums sums = {{0, 0}, {0, 0}};

    trial_classes(out, now, &sums);
    return sums;
}

static void fates_are_counted_once(void **state)
{
    int edge;

    (void)state;
    struct path_out *out = &edge_of(1, &edge)->out[0];
    out->trials_judged = 99;
    for (uint32_t i = 0; i < 6; i++) {
        sent(out, 100 + i, 600 - 100 * i, i % 2 == 0);
    }
    tell(edge, 104, 0x15, false); /* 104, 102, 100 came; 103 and 101 didn't */
    struct class_sums s = fates(out);
    assert_float_equal(s.sent[0], 2,
                       0); /* it isn't known whether another packet is to follow the newest one */
    assert_float_equal(s.lost[0], 0, 0);
    assert_float_equal(s.sent[1], 2, 0);
    assert_float_equal(s.lost[1], 2, 0);
    tell(edge, 104, 0x15, false);
    s = fates(out);
    assert_float_equal(s.sent[0] + s.sent[1], 4, 0);
    now = after(200 * NS_PER_MS);
    sent(out, 106, 0, true);
    tell(edge, 106, 0x55 | 2, false);
    s = fates(out);
    assert_float_equal(s.sent[0], 3, 0);
    assert_float_equal(s.sent[1], 3, 0);
    assert_float_equal(s.lost[1], 2, 0);
}

/* Packets that may have failed at either end itself don't count. */
static void fates_that_nobody_knows(void **state)
{
    int edge;

    (void)state;
    struct path_out *out = &edge_of(1, &edge)->out[0];
    for (int i = 0; i < 5; i++) {
        out->trials_judged = 99;
        for (uint32_t k = 0; k < 4; k++) {
            sent(out, 100 + k, 400 - 100 * k, true);
        }
        m->late_until = i == 2 ? after(1) : now;
        m->nics[0].carrier_known = i >= 3;
        m->nics[0].carrier = i == 4;
        tell(edge, 103, 1, i == 1);
        assert_int_equal(out->trials_judged, i == 0 || i == 4 ? 102 : 103);
    }
    /* no stamp, or another packet's slot */
    const double before = fates(out).sent[0];
    out->trials_judged = 99;
    out->sent[101 % SLOT_COUNT].state = SENT_UNSTAMPED;
    out->sent[100 % SLOT_COUNT].seq = 68;
    tell(edge, 103, 1, false);
    assert_float_equal(fates(out).sent[0] - before, 1, 0); /* 102 alone */
    out->trials_judged = 99;
    out->sent[103 % SLOT_COUNT].state = SENT_FAILED;
    tell(edge, 103, 1, false);
    assert_int_equal(out->trials_judged, 103);
}

/* Sends a packet each 100 ms until now and tells their fates: bit k of `received` is the packet k before the newest. */
static void series(int edge, struct path_out *out, uint32_t count, uint32_t received)
{
    const uint32_t first = out->trials_judged + 1;

    for (uint32_t i = 0; i < count; i++) {
        sent(out, first + i, 100 * (count - i), true);
    }
    tell(edge, first + count - 1, received, false);
}

/* An outage of a second that ended so long ago. */
static struct locate_case over(int64_t ms_ago)
{
    const struct mono ended = after(-ms_ago * NS_PER_MS);
    const struct mono began = mono_add(ended, span_ns(-NS_PER_S));

    return (struct locate_case){
        .began_low = began, .began_high = began, .ended_low = ended, .ended_high = ended};
}

static bool unplaced(const struct path_out *out, int64_t ms_ago)
{
    const struct locate_case c = over(ms_ago);

    return trial_unplaced(out, &c);
}

static struct path_out *without_queues(int *ret_edge)
{
    struct path_out *out = &edge_of(1, ret_edge)->out[0];

    out->half.brief_count = 1;
    out->half.brief_min = 1000;
    for (int i = 0; i < 32; i++) {
        delay(*ret_edge, true, 2000);
    }
    out->trials_judged = 99;
    return out;
}

/* Three packets that a path lost while its way was unknown: no element can be blamed for them. They count if they were sent
 * during the outage, or a touch apart from it. */
static void what_is_lost_on_an_unknown_way(void **state)
{
    int edge;

    (void)state;
    struct path_out *out = without_queues(&edge);
    out->signature = 1;
    series(edge, out, 4, 1);
    assert_false(unplaced(out, 200));
    out->signature = 0;
    series(edge, out, 4, 1); /* lost 400, 300 and 200 ms ago */
    assert_true(unplaced(out, 200));
    assert_true(unplaced(out, 700)); /* lost 300 ms after the end */
    assert_false(unplaced(out, 701));
    assert_false(unplaced(out, 3200)); /* three seconds after it: another event */
    now = after(2 * NS_PER_S);
    assert_true(unplaced(out, 1500)); /* the last one 300 ms after the beginning */
    assert_true(unplaced(out, 900));
    assert_false(unplaced(out, 899)); /* more than 300 ms before it */
    struct locate_case endless = over(1500);
    endless.ended_low = endless.ended_high = MONO_NEVER;
    assert_false(trial_unplaced(out, &endless));
}

/* A path that loses one packet in three, or two in a row, is no sign of a partition. A run that ended is kept until the next. */
static void lost_in_a_row_on_an_unknown_way(void **state)
{
    int edge;

    (void)state;
    struct path_out *out = without_queues(&edge);
    series(edge, out, 24, 0x924925); /* two lost, one arrived, and so on */
    assert_false(unplaced(out, 1000));
    series(edge, out, 4, 1);
    series(edge, out, 4, 3);
    assert_true(unplaced(out, 200));
    series(edge, out, 4, 0xf);
    assert_true(unplaced(out, 200));
}

/* A full queue may have dropped them. */
static void lost_to_a_queue_on_an_unknown_way(void **state)
{
    int edge;

    (void)state;
    struct path_out *out = without_queues(&edge);
    for (int i = 0; i < 3; i++) {
        delay(edge, true, 30000);
    }
    series(edge, out, 4, 1);
    assert_false(unplaced(out, 200));
}

/* The host's clock goes back: what is in its future is forgotten. */
static void lost_in_the_future_is_forgotten(void **state)
{
    int edge;

    (void)state;
    struct path_out *out = without_queues(&edge);
    series(edge, out, 4, 1);
    assert_true(unplaced(out, 200));
    mesh_tick(m, now);
    mesh_tick(m, after(-60 * NS_PER_S));
    assert_false(unplaced(out, 200));
}

/* Packets within 60 ms of one that came may still come. */
static void what_is_on_its_way_is_not_lost(void **state)
{
    int edge;

    (void)state;
    struct path_out *out = &edge_of(1, &edge)->out[0];
    out->trials_judged = 99;
    sent(out, 100, 160, true);
    sent(out, 101, 159, true);
    sent(out, 102, 100, true);
    tell(edge, 102, 1, false);
    assert_int_equal(out->trials_judged, 100);
    assert_float_equal(fates(out).lost[0], 1, 0);
}

/* The present period and the last one, of two seconds each. */
static void fates_are_forgotten(void **state)
{
    int edge;

    (void)state;
    struct path_out *out = &edge_of(1, &edge)->out[0];
    uint32_t seq = 100;
    out->trials_judged = 99;
    for (int i = 0; i < 3; i++) {
        static const int64_t pause_ms[] = {0, 2000, 4000};
        now = after(pause_ms[i] * NS_PER_MS);
        sent(out, seq, 300, true);
        sent(out, seq + 1, 200, true);
        sent(out, seq + 2, 100, true);
        out->trials_judged = seq - 1;
        tell(edge, seq + 2, 7, false);
        assert_float_equal(fates(out).sent[0], i == 1 ? 4 : 2, 0);
        seq += 3;
    }
    now = after(4 * NS_PER_S - 1);
    assert_float_equal(fates(out).sent[0], 2, 0);
    now = after(1);
    assert_float_equal(fates(out).sent[0], 0, 0);
}

/* ---- names ---- */

/* A router may treat one flow badly: a share that is lost on the only path to a NIC doesn't name it. */
static void a_share_lost_on_the_only_path_names_nothing(void **state)
{
    static const struct {
        bool single, named;
        double share;
    } cases[] = {{true, false, 0.3}, {false, true, 0.3}, {true, true, 0.99}};
    const struct way_chain chain = {
        .boxes = {evidence_nic((struct nic_id){0}), evidence_nic((struct nic_id){1})}, .count = 2};
    const struct evidence_view out = {.out = true};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct locate_case c = {.state = LOCATE_NAMED,
                                      .elements = {{.kind = ELEMENT_NIC, .a = 1}},
                                      .count = 1,
                                      .total = 1,
                                      .single = cases[i].single,
                                      .share = cases[i].share};
        struct mesh_location where = {.key = 0};

        suspect_set(m, &where, &chain, &c, &c.elements[0], true, out);
        assert_true(where.key != 0);
        assert_int_equal(where.suspect.kind, cases[i].named ? ELEMENT_NIC : ELEMENT_UNKNOWN);
        assert_int_equal(where.choice.count, cases[i].named ? 0 : 1);
        assert_int_equal(where.choice.total, cases[i].named ? 0 : 2); /* and others */
    }
}

/* ---- what is evidence ---- */

static struct path_fates of(const struct path_half *half, struct evidence_view view)
{
    return evidence_fates(half, now, after(-10 * NS_PER_S), view);
}

/* Since a certain moment, one packet in 200 ms. Packets that came are from after it, at the time of an echo. */
static void death_and_life_are_counted_in_touches(void **state)
{
    const struct evidence_view out = {.out = true}, in = {.out = false};
    struct path_half half = {.state = PATH_DEAD, .heard = after(-200 * NS_PER_MS)};

    (void)state;
    assert_int_equal(of(&half, out).lost, 1);
    assert_int_equal(of(&half, out).sent, 1);
    half.heard = after(-399 * NS_PER_MS);
    assert_int_equal(of(&half, out).lost, 1);
    half.heard = after(-400 * NS_PER_MS);
    assert_int_equal(of(&half, out).lost, 2);
    half.heard = after(-9 * NS_PER_S);
    assert_int_equal(of(&half, out).lost, 8); /* no more than eight */
    half.heard = MONO_NEVER;
    assert_int_equal(of(&half, out).lost, 8);
    half.heard = now;
    assert_int_equal(of(&half, out).lost, 1); /* it is proved nevertheless */
    half.state = PATH_SUSPECT;
    half.heard = after(-399 * NS_PER_MS);
    assert_int_equal(of(&half, out).sent, 0); /* it may just be late */
    half.heard = after(-400 * NS_PER_MS);
    assert_int_equal(of(&half, out).lost, 2);
    half.state = PATH_ALIVE;
    half.heard = after(-10 * NS_PER_S + 500 * NS_PER_MS - 1);
    assert_int_equal(of(&half, out).sent, 0);
    half.heard = after(-10 * NS_PER_S + 500 * NS_PER_MS);
    assert_int_equal(of(&half, out).sent, 1);
    assert_int_equal(of(&half, out).lost, 0);
    half.heard = after(-10 * NS_PER_S + 900 * NS_PER_MS);
    assert_int_equal(of(&half, out).sent, 3);
    half.heard = after(-10 * NS_PER_S + 225 * NS_PER_MS - 1);
    assert_int_equal(of(&half, in).sent, 0);
    half.heard = after(-10 * NS_PER_S + 225 * NS_PER_MS);
    assert_int_equal(of(&half, in).sent, 1);
    half.heard = now;
    assert_int_equal(of(&half, in).sent, 9);
    half.heard = MONO_NEVER;
    assert_int_equal(of(&half, in).sent, 0);
    half.heard = now;
    half.state = PATH_UNKNOWN;
    assert_int_equal(of(&half, in).sent, 0);
    half.state = PATH_LOSSY;
    assert_int_equal(of(&half, in).sent, 0);
}

/* A share of the packets sent, scaled down if it is more than a test needs. A hole is no gray loss. */
static void gray_losses_are_a_share(void **state)
{
    const struct evidence_view view = {.out = true, .loss = true};
    struct path_half half = {
        .state = PATH_ALIVE, .recent_start = now, .sent_now = 249, .lost_now = 30};

    (void)state;
    assert_int_equal(of(&half, view).sent, 249);
    assert_int_equal(of(&half, view).lost, 30);
    half.sent_now = 250;
    assert_int_equal(of(&half, view).sent, 125);
    assert_int_equal(of(&half, view).lost, 15);
    half.state = PATH_LOSSY;
    assert_int_equal(of(&half, view).sent, 125);
    half.sent_before = 500;
    half.lost_before = 10;
    assert_int_equal(of(&half, view).sent, 187);
    assert_int_equal(of(&half, view).lost, 10);
    half.state = PATH_DEAD;
    assert_int_equal(of(&half, view).sent, 0);
    half.state = PATH_SUSPECT;
    assert_int_equal(of(&half, view).sent, 0);
}

/* A shifted delay is as bad as one that is about to count as shifted. A stable one with a baseline is evidence that the way is
 * well. */
static void delays_are_evidence(void **state)
{
    const struct evidence_view view = {.slow = true};
    struct path_half half = {.state = PATH_ALIVE};

    (void)state;
    assert_int_equal(of(&half, view).sent, 0);
    half.watch.learned = SLOW_BASE - 1;
    assert_int_equal(of(&half, view).sent, 0);
    half.watch.learned = SLOW_BASE;
    assert_int_equal(of(&half, view).sent, 8);
    assert_int_equal(of(&half, view).lost, 0);
    half.watch.away = true;
    assert_int_equal(of(&half, view).lost, 8);
    half.watch = (struct slow_watch){.slow = true};
    assert_int_equal(of(&half, view).lost, 8);
    assert_int_equal(of(&half, view).sent, 8);
}

/* A way is completely known, or unknown. For ports that were not chosen only the outgoing direction is. */
static void a_chain_is_whole(void **state)
{
    struct way_chain chain;
    int edge;

    (void)state;
    struct mesh_edge *e = edge_of(1, &edge);
    e->path_count = 2;
    e->out[1].hop_count = 2;
    e->out[1].hops[0] = router(1);
    e->out[1].hops[1] = router(2);
    evidence_chain(m, e, 1, true, &chain);
    assert_int_equal(chain.count, 4);
    assert_int_equal(chain.boxes[0].key, evidence_nic((struct nic_id){0}).key);
    assert_int_equal(chain.boxes[3].key, evidence_nic((struct nic_id){1}).key);
    assert_int_not_equal(chain.boxes[1].key, chain.boxes[2].key);
    struct locate_route r = evidence_route(m, e, &chain, 3, (struct evidence_view){.out = true});
    assert_int_equal(r.box_count, 2);
    assert_int_equal(r.from.index, 0);
    assert_int_equal(r.to.index, 1);
    assert_int_equal(r.to_host.index, 11);
    assert_int_equal(r.teller.index, 11); /* its receiver reports it */
    assert_int_equal(r.boxes[0].key, chain.boxes[1].key);
    r = evidence_route(m, e, &chain, 3, (struct evidence_view){.out = false});
    assert_int_equal(r.from.index, 1);
    assert_int_equal(r.to.index, 0);
    assert_int_equal(r.teller.index, 10);
    assert_int_equal(r.boxes[0].key, chain.boxes[2].key);
    r = evidence_route(m, e, &chain, 1,
                       (struct evidence_view){.out = true}); /* only to the first router */
    assert_int_equal(r.box_count, 1);
    assert_true(nic_id_equal(r.to, NIC_NONE));
    assert_int_equal(r.teller.index, 10);
    evidence_chain(m, e, 0, true, &chain); /* not known yet */
    assert_int_equal(chain.count, 0);
    e->unsorted = true;
    evidence_chain(m, e, 1, true, &chain);
    assert_int_equal(chain.count, 4);
    evidence_chain(m, e, 1, false, &chain);
    assert_int_equal(chain.count, 0);
    e->unsorted = false;
    e->out[1].hops[0] = 0; /* a router that is silent */
    evidence_chain(m, e, 1, true, &chain);
    assert_int_equal(chain.count, 0);
    e->out[1].hops[0] = router(1);
    e->path_count = 1;
    evidence_chain(m, e, 1, true, &chain);
    assert_int_equal(chain.count, 0);
}

/* ---- where a dead path ends ---- */

/* The last router that answered, if it was asked after the first lost packet. */
static void a_trace_counts_from_the_first_loss_on(void **state)
{
    int edge;

    (void)state;
    struct path_out *out = &edge_of(1, &edge)->out[0];
    out->hop_count = 3;
    out->trace_rounds = 1;
    out->trace_answered = 3;
    out->acked_any = true;
    sent(out, 100, 500, true);
    sent(out, 101, 401, true); /* too close to be the first one that would be acknowledged */
    sent(out, 102, 400, true);
    out->acked = 100;
    out->trace_began = after(-400 * NS_PER_MS);
    assert_int_equal(trace_reached(out, now), 1);
    out->trace_began = after(-400 * NS_PER_MS - NS_PER_MS);
    assert_int_equal(trace_reached(out, now), -1);
    out->trace_began = now;
    out->trace_answered = 0;
    assert_int_equal(trace_reached(out, now), -1);
    out->trace_answered = 0x0c; /* beyond its hops nothing counts */
    assert_int_equal(trace_reached(out, now), 2);
    out->trace_rounds = 0;
    assert_int_equal(trace_reached(out, now), -1);
    out->trace_rounds = 1;
    out->acked_any = false;
    assert_int_equal(trace_reached(out, now), -1);
    out->acked_any = true;
    out->seq_next = 102; /* no packet was sent since that would be acknowledged */
    assert_int_equal(trace_reached(out, now), -1);
    out->seq_next = 103;
    out->sent[100 % SLOT_COUNT].seq = 68; /* if the time of the last one isn't known any more */
    assert_int_equal(trace_reached(out, now), -1);
}

static uint32_t asked(void)
{
    struct mesh_send send;
    uint32_t count = 0;
    int edge;

    while (mesh_next_send(m, now, &send, &edge)) {
        count += send.ttl > 0;
    }
    return count;
}

/* Two rounds, 110 ms apart. A path's own death begins again. A path that takes the same way shares the answers. */
static void a_path_is_traced_twice(void **state)
{
    int edge;

    (void)state;
    struct mesh_edge *e = edge_of(1, &edge);
    e->path_count = 2;
    for (uint8_t p = 0; p < 2; p++) {
        e->out[p].half.port = (uint16_t)(PORT_BASE + p);
        e->out[p].half.heard = after(-NS_PER_S);
        e->out[p].hop_count = 2;
        e->out[p].hops[0] = router(1);
        e->out[p].hops[1] = router(2);
        e->out[p].signature = 77;
    }
    (void)asked();
    m->nics[0].probe_credit = 100 * NS_PER_S;
    discovery_trace(m, now, edge, 0);
    assert_int_equal(asked(), 2);
    discovery_trace(m, now, edge, 1); /* the other one was traced just now */
    assert_int_equal(asked(), 0);
    assert_int_equal(e->out[1].trace_rounds, 1);
    assert_true(discovery_trace_answer(m, now, edge, PORT_BASE, router(2)));
    assert_int_equal(e->out[0].trace_answered, 2);
    assert_int_equal(e->out[1].trace_answered, 2);
    assert_false(discovery_trace_answer(m, now, edge, PORT_BASE, router(3)));
    assert_false(discovery_trace_answer(m, now, edge, PORT_BASE + 2, router(2)));
    now = after(110 * NS_PER_MS - 1);
    discovery_trace(m, now, edge, 0);
    assert_int_equal(asked(), 0);
    now = after(1);
    discovery_trace(m, now, edge, 0);
    assert_int_equal(asked(), 2);
    assert_int_equal(e->out[0].trace_answered, 2); /* what answered before still holds */
    now = after(NS_PER_S);
    discovery_trace(m, now, edge, 0);
    assert_int_equal(asked(), 0); /* it was asked twice */
    assert_true(discovery_trace_answer(m, now, edge, PORT_BASE, router(1)));
    assert_false(discovery_trace_answer(m, after(1), edge, PORT_BASE, router(1))); /* too late */
    e->out[0].half.heard = now;
    e->out[0].signature = 0;
    now = after(NS_PER_MS);
    discovery_trace(m, now, edge, 0);
    assert_int_equal(asked(), 2);
    assert_int_equal(e->out[0].trace_answered, 0);
    e->out[2] = e->out[0]; /* no longer a path of it */
    e->out[2].trace_rounds = 0;
    discovery_trace(m, now, edge, 2);
    assert_int_equal(e->out[2].trace_rounds, 0);
    e->out[1].hop_count = e->out[1].trace_rounds = 0;
    discovery_trace(m, now, edge, 1); /* its way isn't known */
    assert_int_equal(e->out[1].trace_rounds, 0);
    m->config.no_discovery = true;
    e->out[0].trace_rounds = 0;
    discovery_trace(m, now, edge, 0);
    assert_int_equal(e->out[0].trace_rounds, 0);
    assert_int_equal(asked(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_queue_may_have_dropped_it, begin, end),
        cmocka_unit_test_setup_teardown(a_class_alone_is_lost, begin, end),
        cmocka_unit_test_setup_teardown(fates_are_counted_once, begin, end),
        cmocka_unit_test_setup_teardown(fates_that_nobody_knows, begin, end),
        cmocka_unit_test_setup_teardown(what_is_on_its_way_is_not_lost, begin, end),
        cmocka_unit_test_setup_teardown(a_share_lost_on_the_only_path_names_nothing, begin, end),
        cmocka_unit_test_setup_teardown(what_is_lost_on_an_unknown_way, begin, end),
        cmocka_unit_test_setup_teardown(lost_in_a_row_on_an_unknown_way, begin, end),
        cmocka_unit_test_setup_teardown(lost_to_a_queue_on_an_unknown_way, begin, end),
        cmocka_unit_test_setup_teardown(lost_in_the_future_is_forgotten, begin, end),
        cmocka_unit_test_setup_teardown(fates_are_forgotten, begin, end),
        cmocka_unit_test_setup_teardown(death_and_life_are_counted_in_touches, begin, end),
        cmocka_unit_test_setup_teardown(gray_losses_are_a_share, begin, end),
        cmocka_unit_test_setup_teardown(delays_are_evidence, begin, end),
        cmocka_unit_test_setup_teardown(a_chain_is_whole, begin, end),
        cmocka_unit_test_setup_teardown(a_trace_counts_from_the_first_loss_on, begin, end),
        cmocka_unit_test_setup_teardown(a_path_is_traced_twice, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

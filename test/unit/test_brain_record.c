/* A fleet's brain is recorded and replayed: the same answers, bit for bit. A recording that was cut, that has a changed byte, or
 * that somebody made up, is refused or reported, and crashes no program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/prng.h"
#include "service/record/brain_file.h"
#include "service/record/brain_record.h"
#include "sim/incident_world.h"

enum { HOSTS = 12, NICS = 2 * HOSTS };

static struct world {
    struct prng prng;
    struct brain *brain;
    struct mono now;
    uint64_t told;                       /* prints of all answers */
    uint32_t changes, numbers, verdicts; /* of trials, as bits */
    char folder[64], path[96], copy[96];
} w;

static uint32_t below(uint32_t bound)
{
    return (uint32_t)prng_below(&w.prng, bound);
}

/* ---- questions of alerts: names that change while the fleet lives ---- */

static bool nic_name(void *context, uint32_t nic, struct alert_nic *ret)
{
    static char name[32], leaf[32];
    (void)context;
    if (nic >= NICS) {
        return false;
    }
    snprintf(name, sizeof(name), "h%u/nic%u", nic / 2, nic % 2);
    snprintf(leaf, sizeof(leaf), "leaf%u", nic % 3 + w.changes % 2);
    *ret = (struct alert_nic){.name = name, .leaf = leaf, .host = nic / 2, .rail = nic % 2};
    return true;
}

static const char *host_name(void *context, uint32_t host)
{
    static char name[32];
    (void)context;
    snprintf(name, sizeof(name), "h%u", host);
    return host < HOSTS ? name : NULL;
}

/* ---- a life ---- */

static int tell(enum brain_fact fact, const void *data)
{
    struct brain_answer answer;
    memset(&answer, 0, sizeof(answer));
    const int r = brain_tell(w.brain, w.now, fact, data, &answer);
    w.told = hash_u64(w.told, brain_answer_print(fact, &answer));
    return r;
}

static void tell_rules(void)
{
    static struct alert_rule rules[3];
    static struct alert_config config;
    for (size_t k = 0; k < ARRAY_COUNT(rules); k++) {
        alert_rule_init(&rules[k]);
        rules[k].hold = span_ms(500);
        rules[k].severity = (uint8_t)(k % ALERT_SEVERITY_COUNT);
    }
    strcpy(rules[0].name, "found");
    rules[0].condition = ALERT_ON_FINDING;
    rules[0].findings = UINT64_MAX;
    strcpy(rules[1].name, "lossy");
    rules[1].condition = ALERT_ON_THRESHOLD;
    rules[1].metric = ALERT_PATH_LOSS;
    rules[1].limit = 1000;
    strcpy(rules[2].name, "silent");
    rules[2].condition = ALERT_ON_ABSENCE;
    rules[2].metric = ALERT_HOST_REPORT;
    rules[2].scope = ALERT_PER_HOST;
    rules[2].within = span_s(5);
    config = (struct alert_config){.rules = rules,
                                   .rule_count = 3,
                                   .route_count = 1,
                                   .alert_max = 256,
                                   .incident_max = 64,
                                   .watch_max = 4096};
    config.routes[0] = (struct alert_route){.receivers = 1, .repeat = span_s(20)};
    assert_int_equal(tell(BRAIN_RULES, &config), 0);
}

static struct element suspect(void)
{
    struct element e = element_unknown();
    switch (below(4)) {
    case 0:
        return element_of(ELEMENT_NIC, PLACE_NIC, below(NICS));
    case 1:
        return element_of(ELEMENT_HOST, PLACE_HOST, below(HOSTS));
    case 2:
        e = element_of(ELEMENT_TRUNK, PLACE_LEAF, below(3));
        e.b = (struct place){.kind = PLACE_SPINE, .number = below(2)};
        e.direction = below(4);
        return e;
    default:
        return e;
    }
}

static struct locate_route route(uint32_t from, uint32_t to)
{
    struct locate_route r = {.from_host = {from / 2},
                             .to_host = {to / 2},
                             .from = {from},
                             .to = {to},
                             .teller = {to / 2},
                             .box_count = 3};
    r.boxes[0] = (struct locate_box){1 + from % 3, ELEMENT_LEAF};
    r.boxes[1] = (struct locate_box){10 + (from + to) % 2, ELEMENT_SPINE};
    r.boxes[2] = (struct locate_box){1 + to % 3, ELEMENT_LEAF};
    return r;
}

static void report(uint32_t host)
{
    tell(BRAIN_HOST, &(struct brain_host){host});
    tell(BRAIN_HEARD, &(struct brain_heard){host, span_ms(500), span_s(1)});
    tell(BRAIN_REPORT,
         &(struct fleet_report){
             .host = host, .rollup = true, .clock = FLEET_CLOCK_SYNCED, .paths_dead = below(2)});
    for (uint32_t k = 0; k < 6; k++) {
        const uint32_t from = below(NICS), to = 2 * host + k % 2;
        const struct alert_sample sample = {.metric = ALERT_PATH_LOSS,
                                            .host = host,
                                            .nic = to,
                                            .peer = from,
                                            .port = 7640,
                                            .value = below(3) * 900.0};
        tell(BRAIN_SAMPLE, &sample);
        struct brain_path path = {
            .at = w.now, .path = {.route = route(from, to), .port = 7640, .dead = from == 3}};
        if (from / 2 != host) {
            tell(BRAIN_PATH, &path);
        }
    }
}

static void find(uint32_t host)
{
    struct alert_finding f = {.said_by = host,
                              .run = 1 + w.changes / 8,
                              .number = below(4),
                              .kind = FINDING_PATH_DEAD,
                              .phase = below(3),
                              .from_nic = below(NICS),
                              .to_nic = 2 * host,
                              .to_host = host,
                              .port = 7640,
                              .suspect = suspect(),
                              .hearsay = below(4) == 0,
                              .since = w.now,
                              .text = below(2) ? "a path is dead" : ""};
    f.from_host = f.from_nic / 2;
    if (below(2)) {
        element_choice_add(&f.choice, &f.suspect);
        f.choice.total += below(2);
        f.suspect = element_unknown();
    }
    const struct brain_place place = {.since = f.since, .route = route(f.from_nic, f.to_nic)};
    tell(BRAIN_PLACE, &place);
    tell(BRAIN_FINDING, &f);
}

static void people(void)
{
    struct alert_silence silence = {.id = 1 + below(3),
                                    .from_utc_ns = w.now.ns,
                                    .until_utc_ns = w.now.ns + 5 * NS_PER_S,
                                    .match = {.element = "leaf*"}};
    switch (below(8)) {
    case 0:
        tell(BRAIN_SILENCE, &silence);
        break;
    case 1:
        tell(BRAIN_UNSILENCE, &(struct brain_incident){.id = 1 + below(3)});
        break;
    case 2:
        tell(BRAIN_ACKNOWLEDGE, &(struct brain_incident){1 + below(5), "ada"});
        break;
    case 3:
        tell(BRAIN_REFUSED, &(struct brain_words){below(2) ? "line 3: no such rule" : NULL});
        break;
    case 4:
        tell(BRAIN_RUN, &(struct brain_run){below(HOSTS), 1 + w.changes / 8});
        break;
    case 5:
        tell_rules();
        break;
    default:
        w.changes++;
        break;
    }
}

/* A round of a service level: its state goes in and comes out. */
static void judge_level(void)
{
    static struct level_state state;
    struct brain_level told = {.level = {.name = "rack", .limit = 1000, .hold = span_s(3)}};
    struct brain_answer answer;
    if (w.now.ns == NS_PER_S) {
        state = (struct level_state){.worst = -1};
    }
    told.state = state;
    level_begin(&told.state);
    for (uint32_t k = 0; k < 4; k++) {
        const struct level_path path = {k, k + 1, 7640, (int64_t)below(8) * 160 - 1};
        (void)level_add(&told.state, &told.level, &path);
    }
    brain_tell(w.brain, w.now, BRAIN_LEVEL, &told, &answer);
    w.told = hash_u64(w.told, brain_answer_print(BRAIN_LEVEL, &answer));
    state = answer.level;
}

/* Three hosts try a configuration; a new trial each ten seconds. */
static void judge_trial(void)
{
    static struct rollout_canary canaries[3];
    static struct mono began;
    struct rollout_facts facts = {.watch = span_s(4)};
    struct brain_answer answer;

    if (w.now.ns % (10 * NS_PER_S) == NS_PER_S) {
        began = w.now;
        for (uint32_t k = 0; k < 3; k++) {
            canaries[k] = (struct rollout_canary){.run = 1,
                                                  .health = (uint8_t)(HEALTH_BAD - below(2)),
                                                  .confirmed = below(8) > 0,
                                                  .worse = MONO_NEVER};
        }
    }
    facts.age = mono_sub(w.now, began);
    for (uint32_t k = 0; k < 3; k++) {
        const struct brain_canary told = {.host = 5 + k, /* 5 becomes silent */
                                          .run = below(50) == 0 ? 2 : 1,
                                          .heard = true,
                                          .began = began,
                                          .canary = canaries[k],
                                          .facts = facts};
        brain_tell(w.brain, w.now, BRAIN_CANARY, &told, &answer);
        w.told = hash_u64(w.told, brain_answer_print(BRAIN_CANARY, &answer));
        canaries[k] = answer.trial.canary;
        facts = answer.trial.facts;
    }
    brain_tell(w.brain, w.now, BRAIN_TRIAL, &facts, &answer);
    w.told = hash_u64(w.told, brain_answer_print(BRAIN_TRIAL, &answer));
    w.verdicts |= 1U << answer.result;
}

static void second(void)
{
    for (uint32_t h = 0; h < HOSTS; h++) {
        if (h != 5 ||
            w.now.ns % (20 * NS_PER_S) < 8 * NS_PER_S) { /* one that becomes silent now and then */
            report(h);
        }
    }
    if (below(2) == 0) {
        find(below(HOSTS));
    }
    judge_level();
    judge_trial();
    if (below(4) == 0) {
        people();
    }
    tell(BRAIN_CLOCK, &(struct brain_clock){1000, FINDING_NO_TIME});
    tell(BRAIN_HOSTS_TICK, NULL);
    while (tell(BRAIN_HOSTS_NEXT, NULL) == 1) {
    }
    for (uint32_t k = 0; k < 4; k++) {
        w.now = mono_add(w.now, span_ms(250));
        tell(BRAIN_LOOK, NULL);
    }
    tell(BRAIN_ALERTS_TICK, NULL);
    while (tell(BRAIN_ALERTS_NEXT, NULL) == 1) {
    }
}

/* Recorded from the start; the file is at w.path. */
static void live(uint64_t seed, uint32_t seconds)
{
    const struct fleet_terms terms = {.beat = span_s(1), .report = span_s(1), .finding_max = 64};
    const struct alert_fleet names = {.nic = nic_name, .host = host_name};
    struct brain_recorder *recorder = NULL;
    prng_init(&w.prng, seed);
    w.now = (struct mono){NS_PER_S};
    w.told = w.changes = w.verdicts = 0;
    w.brain = brain_new();
    assert_non_null(w.brain);
    brain_names(w.brain, &names);
    assert_int_equal(brain_recorder_open(&recorder, w.path, 64 << 20, 1700000000 * NS_PER_S), 0);
    const struct brain_witness witness = brain_recorder_witness(recorder);
    brain_witness(w.brain, &witness);
    tell(BRAIN_TERMS, &terms);
    tell(BRAIN_ROOM, &(struct brain_room){HOSTS, NICS});
    for (uint32_t h = 0; h < HOSTS; h++) {
        const uint32_t nics[] = {2 * h, 2 * h + 1};
        tell(BRAIN_MEMBER, &(struct fleet_member){h, true, nics, 2});
    }
    tell(BRAIN_INQUIRY, &(struct brain_inquiry){256, span_s(1)});
    tell_rules();
    const struct alert_restore restore = {.id = 1,
                                          .cause = "leaf0",
                                          .element = element_of(ELEMENT_LEAF, PLACE_LEAF, 0),
                                          .since = {0},
                                          .told = true,
                                          .text = "leaf0 is dead"};
    tell(BRAIN_RESTORE, &restore);
    for (uint32_t s = 0; s < seconds; s++) {
        second();
        if (s % 3 == 0) {
            brain_recorder_flush(recorder);
        }
    }
    assert_int_equal(brain_recorder_report(recorder).error, 0);
    brain_witness(w.brain, NULL);
    brain_recorder_close(recorder);
    brain_delete(w.brain);
}

static uint8_t *load(const char *path, size_t *ret_size)
{
    struct stat st;
    const int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    uint8_t *bytes = malloc((size_t)st.st_size);
    assert_non_null(bytes);
    assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    *ret_size = (size_t)st.st_size;
    return bytes;
}

static void on_answer(void *context, struct mono now, enum brain_fact fact,
                      const struct brain_answer *answer)
{
    uint64_t *told = context;
    (void)now;
    *told = hash_u64(*told, brain_answer_print(fact, answer));
}

/* 0: played, with its outcome; else the reason of the refusal. */
static int play(const uint8_t *bytes, size_t size, struct brain_outcome *o, uint64_t *ret_told)
{
    struct brain_record *r = NULL;
    int rc = brain_record_open_memory(&r, bytes, size);
    *ret_told = 0;
    if (rc == 0) {
        rc = brain_record_play(r, on_answer, ret_told, o);
        brain_record_close(r);
    }
    return rc;
}

static void test_told_again_it_answers_the_same(void **state)
{
    uint32_t verdicts = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct brain_outcome o;
        size_t size = 0;
        uint64_t told = 0;
        live(seed, 90);
        uint8_t *bytes = load(w.path, &size);
        assert_int_equal(play(bytes, size, &o, &told), 0);
        assert_int_equal(o.damage, 0);
        assert_int_equal(o.different, 0);
        assert_true(told == w.told); /* every answer, also those that aren't recorded */
        assert_true(o.answers > 500 && o.events >= 4 && o.incidents > 20 && o.names > 20);
        verdicts |= w.verdicts;
        free(bytes);
    }
    assert_int_equal(verdicts, 1 << ROLLOUT_WAIT | 1 << ROLLOUT_GOOD | 1 << ROLLOUT_BAD);
}

/* A simulated fleet whose NICs and trunks die: every fault is one incident with its name, and all of it is replayed. */
static void test_a_fleet_with_faults(void **state)
{
    struct brain_recorder *recorder = NULL;
    struct brain_outcome o;
    size_t size = 0;
    uint64_t told = 0;
    (void)state;
    static const struct {
        uint64_t seed;
        uint32_t hosts, seconds;
    } worlds[] = {{1, 48, 240},
                  {2, 64, 40} /* had its host's name */,
                  {8, 64, 260} /* one alert stayed where it had guessed */};
    for (size_t k = 0; k < ARRAY_COUNT(worlds); k++) {
        assert_int_equal(brain_recorder_open(&recorder, w.path, 256 << 20, 0), 0);
        const struct brain_witness witness = brain_recorder_witness(recorder);
        const struct incident_world_config config = {.seed = worlds[k].seed,
                                                     .hosts = worlds[k].hosts,
                                                     .seconds = worlds[k].seconds,
                                                     .faults = 1,
                                                     .witness = &witness};
        const struct incident_world_result r = incident_world_run(&config);
        assert_string_equal(r.first, "");
        assert_int_equal(r.wrong + r.doubled + r.forgotten + r.unwell, 0);
        assert_true(r.judged >= 1 && r.incidents >= 1);
        brain_recorder_close(recorder);
        uint8_t *bytes = load(w.path, &size);
        assert_int_equal(play(bytes, size, &o, &told), 0);
        assert_true(o.damage == 0 && o.different == 0 && o.answers > 200 && o.incidents >= 1);
        free(bytes);
    }
}

/* A brain with other rules isn't the recorded one: so the comparison can fail. */
static void test_another_answer_is_told(void **state)
{
    struct brain_outcome o;
    size_t size = 0;
    uint64_t told = 0, at = sizeof(struct brain_file_head);
    uint32_t found = 0;
    (void)state;
    live(3, 20);
    uint8_t *bytes = load(w.path, &size);
    /* the last byte of a segment belongs to an answer's print, or to a fact: one of these is the former */
    for (uint64_t number = 0; at < size; number++) {
        struct brain_file_segment s;
        memcpy(&s, bytes + at, sizeof(s));
        if (s.size > 0) {
            bytes[at + sizeof(s) + s.size - 1] ^= 1;
            s.sum = brain_file_sum(number, s.size, bytes + at + sizeof(s));
            memcpy(bytes + at, &s, sizeof(s));
        }
        at += sizeof(s) + s.size;
    }
    assert_int_equal(play(bytes, size, &o, &told), 0);
    found += o.different > 0 || o.damage != 0;
    assert_true(found > 0);
    free(bytes);
}

static void test_cut_anywhere_it_is_told(void **state)
{
    size_t size = 0;
    (void)state;
    live(1, 6);
    uint8_t *bytes = load(w.path, &size);
    for (size_t cut = 0; cut < size; cut += cut < 200 || cut + 200 > size ? 1 : 37) {
        struct brain_outcome o;
        uint64_t told = 0;
        const int r = play(bytes, cut, &o, &told);
        assert_true(r == -EPROTO || (r == 0 && o.damage == -ENODATA && o.different == 0));
    }
    free(bytes);
}

static void test_any_other_byte_is_told(void **state)
{
    size_t size = 0;
    (void)state;
    live(2, 4);
    uint8_t *bytes = load(w.path, &size);
    for (size_t at = 0; at < size; at += at < 300 || at + 100 > size ? 1 : 41) {
        struct brain_outcome o;
        uint64_t told = 0;
        const uint8_t flip = (uint8_t)(1 + below(255));
        bytes[at] ^= flip;
        const int r = play(bytes, size, &o, &told);
        assert_true(r == -EPROTO || r == -ESTALE || (r == 0 && o.damage < 0));
        bytes[at] ^= flip;
    }
    free(bytes);
}

/* A made-up recording can have right sums, too: then it is played as far as a brain accepts it. */
static void test_made_up_it_crashes_nobody(void **state)
{
    size_t size = 0;
    (void)state;
    live(4, 5);
    uint8_t *bytes = load(w.path, &size), *mad = malloc(size);
    assert_non_null(mad);
    for (uint32_t n = 0; n < 1500; n++) {
        uint64_t at = sizeof(struct brain_file_head);
        memcpy(mad, bytes, size);
        for (uint64_t number = 0; at < size; number++) {
            struct brain_file_segment s;
            memcpy(&s, mad + at, sizeof(s));
            for (uint32_t k = 0; s.size > 0 && k < 1 + n % 3; k++) {
                mad[at + sizeof(s) + prng_below(&w.prng, s.size)] = (uint8_t)prng_u64(&w.prng);
            }
            s.sum = brain_file_sum(number, s.size, mad + at + sizeof(s));
            memcpy(mad + at, &s, sizeof(s));
            at += sizeof(s) + s.size;
        }
        struct brain_outcome o;
        uint64_t told = 0;
        const int r = play(mad, size, &o, &told);
        assert_true(r == 0 || r == -EPROTO || r == -ENOMEM);
    }
    free(bytes);
    free(mad);
}

/* While it is written: its complete part is copied, and ends properly. */
static void test_a_copy_is_whole(void **state)
{
    struct brain_outcome o;
    size_t size = 0;
    int64_t copied = 0;
    uint64_t told = 0;
    (void)state;
    live(1, 10);
    assert_int_equal(truncate(w.path, 20000), 0);
    assert_int_equal(brain_record_copy(w.path, w.copy, &copied), 0);
    assert_int_equal(brain_record_copy(w.path, w.copy, &copied), -EEXIST);
    uint8_t *bytes = load(w.copy, &size);
    assert_true(size < 20000 && size > 2000 && (int64_t)size == copied);
    assert_int_equal(play(bytes, size, &o, &told), 0);
    assert_true(o.damage == 0 && o.different == 0 && o.facts > 100);
    free(bytes);
    unlink(w.copy);
    assert_int_equal(truncate(w.path, 40), 0);
    assert_int_equal(brain_record_copy(w.path, w.copy, &copied), -ENODATA);
    assert_int_equal(access(w.copy, F_OK), -1);
}

/* It ends where its owner allows no more, and is complete up to there. */
static void test_a_full_one_is_whole(void **state)
{
    struct brain_recorder *recorder = NULL;
    struct brain_outcome o;
    size_t size = 0;
    uint64_t told = 0;
    (void)state;
    struct brain *b = brain_new();
    assert_non_null(b);
    assert_int_equal(brain_recorder_open(&recorder, w.path, 4000, 0), 0);
    const struct brain_witness witness = brain_recorder_witness(recorder);
    brain_witness(b, &witness);
    const struct fleet_terms terms = {.beat = span_s(1), .report = span_s(1), .finding_max = 64};
    brain_tell(b, (struct mono){1}, BRAIN_TERMS, &terms, NULL);
    for (int64_t t = 2; !brain_recorder_report(recorder).full; t++) {
        assert_true(t < 100000);
        brain_tell(b, (struct mono){t}, BRAIN_HOSTS_TICK, NULL, NULL);
        if (t % 50 == 0) {
            brain_recorder_flush(recorder);
        }
    }
    brain_recorder_close(recorder);
    uint8_t *bytes = load(w.path, &size);
    assert_true(size <= 4000);
    assert_int_equal(play(bytes, size, &o, &told), 0);
    assert_true(o.damage == 0 && o.different == 0 && o.facts > 100);
    free(bytes);
    brain_delete(b);
}

static int begin(void **state)
{
    (void)state;
    snprintf(w.folder, sizeof(w.folder), "/tmp/foliot-brain-XXXXXX");
    if (mkdtemp(w.folder) == NULL) {
        return -1;
    }
    snprintf(w.path, sizeof(w.path), "%s/record", w.folder);
    snprintf(w.copy, sizeof(w.copy), "%s/copy", w.folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(w.path);
    unlink(w.copy);
    return rmdir(w.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_told_again_it_answers_the_same, begin, end),
        cmocka_unit_test_setup_teardown(test_a_fleet_with_faults, begin, end),
        cmocka_unit_test_setup_teardown(test_another_answer_is_told, begin, end),
        cmocka_unit_test_setup_teardown(test_cut_anywhere_it_is_told, begin, end),
        cmocka_unit_test_setup_teardown(test_any_other_byte_is_told, begin, end),
        cmocka_unit_test_setup_teardown(test_made_up_it_crashes_nobody, begin, end),
        cmocka_unit_test_setup_teardown(test_a_copy_is_whole, begin, end),
        cmocka_unit_test_setup_teardown(test_a_full_one_is_whole, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* audit_tally.c: drawn sets of 10 to 30 faults in a simulated fleet: audit_tally SETS SEED. Prints one line of JSON.
 *
 * 64 hosts with 4 NICs, 8 leaves, 4 spines. Each fault is of a kind drawn from eleven, alike:
 * - a cable on another leaf; a link that is down; a NIC that IPv6 does not reach;
 * - a NIC that nothing leaves, nothing reaches, or both; one that loses packets;
 * - a pair of which one direction is dead; one path of four of such a pair;
 * - a NIC whose packets are later one way; a NIC whose job's class is slow.
 * A path of a pair is found by neighbours' probes, or by packets of a matrix from several ports.
 * Sizes are drawn, too. From the faults it makes the hosts' measurements: a matrix of all NICs over IPv6, the agents'
 * neighbours (chosen as agents do), a job's own messages. They are judged as in an audit, with a second look. For comparison
 * it also makes LLDP's differences from the plan, and 5 echo requests of each ordered pair. This program's own judge reads
 * only the results' names. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/prng.h"
#include "core/audit/judge.h"
#include "core/audit/matrix.h"
#include "core/audit/matrix_again.h"
#include "core/fleet/delay_code.h"
#include "core/mesh/peers.h"

enum {
    HOSTS = 64,
    RAILS = 4,
    NICS = HOSTS * RAILS,
    LEAVES = 8,
    SPINES = 4,
    PACKETS = 5,
    PINGS = 5,
    FAULTS_MOST = 30,
    FAULTS_LEAST = 10,
    JOB_HOSTS = 8, /* each host runs a job with so many hosts */
    CHOICES = 256,
    EDGES_TOLD = 64, /* most edges that a host reports: service/inspect/agent.c */
    PATHS_TOLD = 4096,
    NOBODY = NICS,
    PING_PORT = 99
};
#define USUAL_LOSS 1e-5
#define BOUND_NS   150

enum kind { CABLE, CARRIER, HOLE, MUTE, DEAF, LOSS, IPV6, PAIR, PATH, DELAY, CLASS, KINDS };
static const char *const kind_names[KINDS] = {"cable", "carrier", "hole", "mute",  "deaf", "loss",
                                              "ipv6",  "pair",    "path", "delay", "class"};

struct fault {
    enum kind kind;
    uint32_t nic, other; /* NOBODY: a fault of one NIC */
    bool out;            /* loss, delay: in sent packets */
    double loss, slow;
    int64_t delay_ns;
    unsigned spine;
};

struct world {
    struct fault faults[FAULTS_MOST];
    uint32_t count;
    int at[NICS]; /* the NIC's fault; -1: none */
    uint32_t leaf[NICS];
    int64_t cable_ns[NICS];
    uint64_t seed;
    struct prng prng;
};

static void *claim(size_t count, size_t size)
{
    void *all = calloc(count, size);
    if (all == NULL) {
        fputs("audit_tally: out of memory\n", stderr);
        exit(1);
    }
    return all;
}

/* ---- the world ---- */

static uint32_t leaf_declared(uint32_t nic)
{
    return nic / RAILS * LEAVES / HOSTS;
}

static double log_uniform(struct prng *p, double least, double most)
{
    return least * pow(most / least, prng_uniform(p));
}

static uint32_t draw_nic(struct world *w)
{
    uint32_t nic;
    do {
        nic = (uint32_t)prng_below(&w->prng, NICS);
    } while (w->at[nic] >= 0);
    return nic;
}

/* A NIC on the same rail and another leaf, as in the rings of a job. */
static uint32_t draw_other(struct world *w, uint32_t nic)
{
    uint32_t other;
    do {
        other = draw_nic(w);
    } while (other % RAILS != nic % RAILS || leaf_declared(other) == leaf_declared(nic));
    return other;
}

static void draw(struct world *w, uint64_t seed)
{
    *w = (struct world){.seed = seed};
    prng_init(&w->prng, seed);
    for (uint32_t i = 0; i < NICS; i++) {
        w->at[i] = -1;
        w->leaf[i] = leaf_declared(i);
        w->cable_ns[i] = (int64_t)prng_below(&w->prng, 100);
    }
    w->count = FAULTS_LEAST + (uint32_t)prng_below(&w->prng, FAULTS_MOST - FAULTS_LEAST + 1);
    for (uint32_t i = 0; i < w->count; i++) {
        struct fault *f = &w->faults[i];
        *f = (struct fault){.kind = (enum kind)prng_below(&w->prng, KINDS),
                            .nic = draw_nic(w),
                            .other = NOBODY,
                            .out = prng_below(&w->prng, 2) == 0,
                            .loss = log_uniform(&w->prng, 0.002, 0.3),
                            .slow = log_uniform(&w->prng, 5, 100),
                            .delay_ns = (int64_t)log_uniform(&w->prng, 2000, 100000),
                            .spine = (unsigned)prng_below(&w->prng, SPINES)};
        w->at[f->nic] = (int)i;
        if (f->kind == PAIR || f->kind == PATH) {
            f->other = draw_other(w, f->nic);
            w->at[f->other] = (int)i;
        } else if (f->kind == CABLE) {
            w->leaf[f->nic] =
                (leaf_declared(f->nic) + 1 + (uint32_t)prng_below(&w->prng, LEAVES - 1)) % LEAVES;
        }
    }
}

/* Routers hash addresses and ports; within a leaf there is one path. */
static unsigned spine_of(const struct world *w, uint32_t from, uint32_t to, unsigned port)
{
    return (unsigned)(hash_u64(w->seed, ((uint64_t)from << 40) | ((uint64_t)to << 16) | port) %
                      SPINES);
}

struct way {
    uint32_t from, to;
    unsigned spine;
    bool ipv6;
};

static bool one_stops(const struct fault *f, const struct way *y)
{
    switch (f->kind) {
    case CARRIER:
    case HOLE:
        return true;
    case MUTE:
        return y->from == f->nic;
    case DEAF:
        return y->to == f->nic;
    case IPV6:
        return y->ipv6;
    case PAIR:
        return y->from == f->nic && y->to == f->other;
    case PATH:
        return y->from == f->nic && y->to == f->other && y->spine == f->spine;
    default:
        return false;
    }
}

static double lost_share(const struct world *w, const struct way *y)
{
    const uint32_t ends[2] = {y->from, y->to};
    double share = USUAL_LOSS;
    for (int i = 0; i < 2; i++) {
        const struct fault *f = w->at[ends[i]] >= 0 ? &w->faults[w->at[ends[i]]] : NULL;
        if (f != NULL && one_stops(f, y)) {
            return 1;
        }
        if (f != NULL && f->kind == LOSS && f->out == (f->nic == y->from)) {
            share += f->loss;
        }
    }
    return share;
}

static bool comes(struct world *w, const struct way *y)
{
    return prng_uniform(&w->prng) >= lost_share(w, y);
}

static int64_t least_ns(const struct world *w, uint32_t from, uint32_t to)
{
    const uint32_t ends[2] = {from, to};
    int64_t ns = (w->leaf[from] == w->leaf[to] ? 1900 : 4600) + w->cable_ns[from] + w->cable_ns[to];
    for (int i = 0; i < 2; i++) {
        const struct fault *f = w->at[ends[i]] >= 0 ? &w->faults[w->at[ends[i]]] : NULL;
        if (f != NULL && f->kind == DELAY && f->out == (f->nic == from)) {
            ns += f->delay_ns;
        }
    }
    return ns;
}

static int64_t delay_ns(struct world *w, uint32_t from, uint32_t to)
{
    return least_ns(w, from, to) + (int64_t)(80 * prng_exponential(&w->prng)) +
           (prng_below(&w->prng, 1000) == 0 ? 40000 : 0);
}

/* ---- the hosts' reports ---- */

static bool is_down(const struct world *w, uint32_t nic)
{
    return w->at[nic] >= 0 && w->faults[w->at[nic]].kind == CARRIER;
}

/* numbers: the NIC at each place of the plan. */
static void take_rows(struct world *w, struct matrix *m, const uint32_t *numbers)
{
    const uint32_t rounds = matrix_rounds(&m->plan);
    uint8_t *sent = claim(rounds, 1), *heard = claim(rounds, 1);
    int16_t *code = claim(rounds, sizeof(*code));
    for (uint32_t i = 0; i < m->count; i++) {
        m->nics[i].leaf = (uint16_t)leaf_declared(numbers[i]);
        memset(code, 0, rounds * sizeof(*code));
        for (uint32_t k = 0; k < rounds; k++) {
            const uint32_t other = matrix_partner(&m->plan, k, i);
            sent[k] = heard[k] = MATRIX_ALONE << 4;
            if (other == MATRIX_NONE) {
                continue;
            }
            struct way y = {numbers[other], numbers[i], 0, true};
            int64_t least = INT64_MAX;
            sent[k] = is_down(w, numbers[i]) ? MATRIX_PORT << 4 : PACKETS;
            heard[k] = 0;
            for (uint32_t n = 0; n < PACKETS && !is_down(w, y.from); n++) {
                y.spine = spine_of(w, y.from, y.to, matrix_port(&m->plan, k, n));
                if (comes(w, &y)) {
                    const int64_t ns = delay_ns(w, y.from, y.to);
                    heard[k]++;
                    least = ns < least ? ns : least;
                }
            }
            code[k] = heard[k] > 0 ? (int16_t)delay_encode(least) : 0;
        }
        if (matrix_take(m, i, sent, heard, code, rounds, 2 * BOUND_NS) < 0) {
            fputs("audit_tally: a row is refused\n", stderr);
            exit(1);
        }
    }
    free(sent);
    free(heard);
    free(code);
}

static void put(struct sheet *s, enum fact_id id, const char *subject, const char *value)
{
    sheet_add(s, &(struct fact){.id = (uint16_t)id,
                                .state = FACT_VALUE,
                                .subject = subject,
                                .value = value,
                                .source = "audit_tally"});
}

static const char *subject_of(uint32_t own, uint32_t other, char ret[64])
{
    snprintf(ret, 64, "nic%u host%u nic%u", own % RAILS, other / RAILS, other % RAILS);
    return ret;
}

/* An agent's paths to a neighbour: one for each spine. Within a leaf all ports use the same path. */
static void put_edge(struct world *w, struct sheet *s, uint32_t own, uint32_t other)
{
    const bool near = w->leaf[own] == w->leaf[other];
    const unsigned paths = SPINES;
    unsigned dead[2] = {0, 0}, alive = 0;
    char subject[64], text[200], delays[100] = "none";
    for (unsigned k = 0; k < paths; k++) {
        const struct way ways[2] = {{own, other, k, false}, {other, own, k, false}};
        for (int d = 0; d < 2; d++) {
            const bool gone = lost_share(w, &ways[d]) >= 1;
            dead[d] += gone;
            alive += !gone;
        }
    }
    if (dead[0] < paths && dead[1] < paths) {
        snprintf(delays, sizeof(delays), "least %lld out %lld in, late 900, bound %d",
                 (long long)least_ns(w, own, other), (long long)least_ns(w, other, own),
                 2 * BOUND_NS);
    }
    snprintf(text, sizeof(text),
             "%s, hops %d, paths %u, alive %u, dead %u out %u in, sent 9000, lost 0, %s",
             own % RAILS == other % RAILS ? "rail" : "random", near ? 1 : 3, paths, alive, dead[0],
             dead[1], delays);
    put(s, FACT_EDGE, subject_of(own, other, subject), text);
}

struct fleet {
    struct mesh_peer peers[NICS];
    struct mesh_fleet list;
};

static void put_edges(struct world *w, const struct fleet *fleet, struct sheet *s, uint32_t host)
{
    struct peer_choice choices[CHOICES];
    int left = EDGES_TOLD;
    for (int rails = 1; rails >= 0; rails--) {
        for (uint32_t own = host * RAILS; own < (host + 1) * RAILS; own++) {
            const uint32_t count = peers_choose(&fleet->list, own, 16, 20, choices, CHOICES);
            for (uint32_t i = 0; i < count; i++) {
                const uint32_t other = choices[i].index;
                if (choices[i].rank == 0 && (own % RAILS == other % RAILS) == (rails == 1) &&
                    left-- > 0) {
                    put_edge(w, s, own, other);
                }
            }
        }
    }
}

/* Neighbours in the rings of a job, rail by rail. Its messages arrive some microseconds after probes. */
static void put_lanes(struct world *w, struct sheet *s, const uint32_t *places, uint32_t host)
{
    uint32_t place = 0;
    while (places[place] != host) {
        place++;
    }
    const uint32_t first = place / JOB_HOSTS * JOB_HOSTS;
    for (uint32_t r = 0; r < RAILS; r++) {
        for (uint32_t step = 1; step < JOB_HOSTS; step += JOB_HOSTS - 2) {
            const uint32_t other = places[first + (place - first + step) % JOB_HOSTS] * RAILS + r,
                           own = host * RAILS + r, ends[2] = {own, other};
            double ns = (double)least_ns(w, other, own) * (1 + 0.5 * prng_uniform(&w->prng));
            char subject[64], text[32];
            for (int i = 0; i < 2; i++) {
                const struct fault *f = w->at[ends[i]] >= 0 ? &w->faults[w->at[ends[i]]] : NULL;
                ns *= f != NULL && f->kind == CLASS ? f->slow : 1;
            }
            if (lost_share(w, &(struct way){other, own, spine_of(w, other, own, 1), false}) < 1) {
                snprintf(text, sizeof(text), "%.0f", ns);
                put(s, FACT_LANE, subject_of(own, other, subject), text);
            }
        }
    }
}

/* ---- an audit ---- */

struct looks {
    struct sheet *sheets;
    struct audit audit;
};

static void open_look(struct looks *l)
{
    enum { RESULTS = HOSTS * 1000, TEXT = HOSTS << 17 };
    static char names[HOSTS][16];
    l->sheets = claim(HOSTS, sizeof(*l->sheets));
    for (uint32_t h = 0; h < HOSTS; h++) {
        snprintf(names[h], sizeof(names[h]), "host%u", h);
        l->sheets[h] = (struct sheet){.host = names[h],
                                      .facts = claim(400, sizeof(struct fact)),
                                      .capacity = 400,
                                      .text = claim(1 << 17, 1),
                                      .text_size = 1 << 17};
    }
    l->audit = (struct audit){.sheets = l->sheets,
                              .sheet_count = HOSTS,
                              .settings = &audit_usual,
                              .results = claim(RESULTS, sizeof(struct audit_result)),
                              .capacity = RESULTS,
                              .items = claim(RESULTS, audit_item_size()),
                              .item_capacity = RESULTS,
                              .mentions = claim(RESULTS, sizeof(struct audit_mention)),
                              .mention_capacity = RESULTS,
                              .text = claim(TEXT, 1),
                              .text_size = TEXT};
}

struct told {
    char words[NICS][MATRIX_WORDS_SIZE];
    struct {
        uint32_t own, other;
        char text[64];
    } paths[PATHS_TOLD];
    uint32_t path_count;
};

/* numbers: the NIC at each place. In a first matrix, of all NICs, they are the places. */
static void find_paths(const struct matrix *m, const struct matrix *first, const uint32_t *numbers,
                       struct told *told)
{
    const struct matrix_first all = {first, numbers}, *before = first != NULL ? &all : NULL;
    told->path_count = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        struct matrix_thin t;
        for (uint32_t at = 0;
             told->path_count < PATHS_TOLD && matrix_next_thin(m, before, i, &at, &t);) {
            const bool out = t.from == i;
            told->paths[told->path_count].own = numbers[i];
            told->paths[told->path_count].other = numbers[out ? t.to : t.from];
            snprintf(told->paths[told->path_count++].text, sizeof(told->paths[0].text),
                     "lost %d of %u %s there, with %u partners", t.sent - t.heard, t.sent,
                     out ? "to" : "from", t.partners);
        }
    }
}

static void put_paths(struct sheet *s, uint32_t host, const struct told *told)
{
    bool any = false;
    for (uint32_t k = 0; k < told->path_count; k++) {
        char subject[64];
        if (told->paths[k].own / RAILS == host) {
            put(s, FACT_MATRIX_PATH, subject_of(told->paths[k].own, told->paths[k].other, subject),
                told->paths[k].text);
            any = true;
        }
    }
    if (!any) {
        put(s, FACT_MATRIX_PATH, "", "well, 126 pairs");
    }
}

/* Measures a matrix of these hosts. first: the matrix of all; NULL: there is none. memory: to be freed with the matrix. */
static void measure(struct world *w, const bool *of, const struct matrix *first, struct told *told,
                    struct matrix *m, void **memory)
{
    struct matrix_plan p = {.rails = RAILS,
                            .packets = PACKETS,
                            .begin_ns = 1000000000,
                            .round_ns = 100000000,
                            .gap_ns = 10000000,
                            .seed = prng_u64(&w->prng)};
    static const char *const leaves[LEAVES] = {"leaf0", "leaf1", "leaf2", "leaf3",
                                               "leaf4", "leaf5", "leaf6", "leaf7"};
    uint32_t numbers[NICS], count = 0;
    for (uint32_t i = 0; i < NICS; i++) {
        if (of[i / RAILS]) {
            numbers[count++] = i;
        }
    }
    p.hosts = count / RAILS;
    matrix_plan_ready(&p);
    *memory = claim(1, matrix_size(&p));
    matrix_init(m, &p, *memory);
    take_rows(w, m, numbers);
    matrix_judge(m, NULL);
    for (uint32_t i = 0; i < count; i++) {
        (void)matrix_words(m, i, leaves, told->words[numbers[i]]);
    }
    find_paths(m, first, numbers, told);
}

static void judge(struct world *w, const struct fleet *fleet, struct looks *l,
                  const uint32_t *places, const struct told *const tellers[HOSTS])
{
    for (uint32_t h = 0; h < HOSTS; h++) {
        struct sheet *s = &l->sheets[h];
        s->count = s->left_out = 0;
        s->text_used = 0;
        put(s, FACT_OS_PRODUCT, "", "server");
        put(s, FACT_OS_UPTIME, "", "1000000");
        for (uint32_t r = 0; r < RAILS; r++) {
            char subject[16];
            snprintf(subject, sizeof(subject), "nic%u", r);
            put(s, FACT_MATRIX, subject, tellers[h]->words[h * RAILS + r]);
        }
        put_paths(s, h, tellers[h]);
        put_edges(w, fleet, s, h);
        put_lanes(w, s, places, h);
        sheet_finish(s);
        if (s->left_out > 0) {
            fputs("audit_tally: a sheet is full\n", stderr);
            exit(1);
        }
    }
    if (audit_judge(&l->audit) < 0) {
        fputs("audit_tally: no room for results\n", stderr);
        exit(1);
    }
}

/* Does what a controller does: hosts that would fail by the matrix are measured again with partners, and all are read again. */
static const struct audit *audit(struct world *w, const struct fleet *fleet, struct looks l[2],
                                 const uint32_t *places)
{
    static struct told told[2];
    const struct told *tellers[HOSTS];
    bool all[HOSTS], doubted[HOSTS] = {false}, again[HOSTS] = {false};
    struct matrix first, second;
    void *memory[2] = {NULL, NULL};
    for (uint32_t h = 0; h < HOSTS; h++) {
        all[h] = true;
        tellers[h] = &told[0];
    }
    measure(w, all, NULL, &told[0], &first, &memory[0]);
    judge(w, fleet, &l[0], places, tellers);
    struct audit_failure *failures = claim(l[0].audit.count + 1, sizeof(*failures));
    uint32_t count = 0;
    for (uint32_t i = 0; i < l[0].audit.count; i++) {
        const struct audit_result *r = &l[0].audit.results[i];
        if (audit_failure_of(r, &failures[count])) {
            doubted[r->sheet] = doubted[r->sheet] || (r->check->flags & CHECK_MATRIX) != 0;
            count++;
        }
    }
    if (matrix_again(&first, doubted, NULL, 0, again) > 0) {
        measure(w, again, &first, &told[1], &second, &memory[1]);
    }
    for (uint32_t h = 0; h < HOSTS; h++) {
        tellers[h] = doubted[h] ? &told[1] : &told[0];
    }
    judge(w, fleet, &l[1], places, tellers);
    audit_confirm_first(&l[1].audit, failures, count,
                        &(struct audit_again){.looked = all, .measured = doubted});
    free(failures);
    free(memory[0]);
    free(memory[1]);
    return &l[1].audit;
}

/* ---- the faults named by each tool ---- */

static bool is_end(const struct audit_result *r, const struct sheet *sheets, uint32_t nic)
{
    char host[16], name[16];
    snprintf(host, sizeof(host), "host%u", nic / RAILS);
    snprintf(name, sizeof(name), "nic%u", nic % RAILS);
    return strcmp(sheets[r->sheet].host, host) == 0 &&
           strncmp(r->subject, name, strlen(name)) == 0 &&
           (r->subject[strlen(name)] == 0 || r->subject[strlen(name)] == ' ');
}

static bool is_of(const struct audit_result *r, const struct sheet *sheets, uint32_t own,
                  uint32_t other)
{
    char subject[64];
    return is_end(r, sheets, own) && strcmp(r->subject, subject_of(own, other, subject)) == 0;
}

/* A failure, or a warning of both looks. A partner's report about another host doesn't name this one. */
static bool is_told(const struct audit_result *r)
{
    return r->status == AUDIT_FAIL || (r->status == AUDIT_WARN && !r->seen_once && !r->by_peer);
}

static bool audit_names(const struct audit *a, const struct fault *f)
{
    static const char *const checks[KINDS] = {[CABLE] = "be.topo.inferred",
                                              [LOSS] = "be.matrix.loss",
                                              [DELAY] = "be.matrix.delay",
                                              [CLASS] = "be.lat.inband",
                                              [PATH] = "be.matrix.path"};
    const char *check = checks[f->kind] != NULL ? checks[f->kind] : "be.matrix.reach";
    bool own = false, other = false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct audit_result *r = &a->results[i];
        if (!is_told(r) || (strcmp(r->check->id, check) != 0 &&
                            (f->kind != PATH || strcmp(r->check->id, "be.conn.paths") != 0))) {
            continue;
        }
        if (f->kind == PATH) {
            own |= is_of(r, a->sheets, f->nic, f->other) || is_of(r, a->sheets, f->other, f->nic);
        } else {
            own |= is_end(r, a->sheets, f->nic);
            other |= f->other != NOBODY && is_end(r, a->sheets, f->other);
        }
    }
    return f->kind == PAIR ? own && other : own;
}

/* Counts results of NICs without a fault whose other end has none either. */
static uint32_t count_others(const struct world *w, const struct audit *a)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct audit_result *r = &a->results[i];
        unsigned nic, host, its;
        const int words = sscanf(r->subject, "nic%u host%u nic%u", &nic, &host, &its);
        if (is_told(r) && words >= 1 && w->at[r->sheet * RAILS + nic] < 0 &&
            (words < 3 || w->at[host * RAILS + its] < 0)) {
            others++;
            fprintf(stderr, "%llu: host%u %s %s: %s\n", (unsigned long long)w->seed, r->sheet,
                    r->check->id, r->subject, r->found);
        }
    }
    return others;
}

/* True if more answers are missing than by chance: for a pair in that pair, for a NIC in three of its pairs. */
static bool ping_names(struct world *w, const struct fault *f)
{
    uint32_t ill = 0;
    for (uint32_t other = 0; other < NICS; other++) {
        bool lost = false;
        if (other / RAILS == f->nic / RAILS || (f->other != NOBODY && other != f->other) ||
            (f->other == NOBODY && w->at[other] >= 0)) {
            continue;
        }
        for (int k = 0; k < 2 * PINGS; k++) {
            const uint32_t a = k % 2 == 0 ? f->nic : other, b = k % 2 == 0 ? other : f->nic;
            lost |= !comes(w, &(struct way){a, b, spine_of(w, a, b, PING_PORT), true}) ||
                    !comes(w, &(struct way){b, a, spine_of(w, b, a, PING_PORT), true});
        }
        ill += lost;
    }
    return ill >= (f->other != NOBODY ? 1 : 3);
}

int main(int argc, char **argv)
{
    const int sets = argc == 3 ? atoi(argv[1]) : 0;
    if (sets < 1) {
        fputs("usage: audit_tally SETS SEED\n", stderr);
        return 2;
    }
    static struct world w;
    static struct fleet fleet;
    struct looks l[2];
    uint32_t all[KINDS] = {0}, named[KINDS] = {0}, usual[KINDS] = {0}, others = 0;
    double more = 0, least = INFINITY, most = 0;
    open_look(&l[0]);
    open_look(&l[1]);
    fleet.list = (struct mesh_fleet){.seed = 1, .peers = fleet.peers, .peer_count = NICS};
    for (uint32_t i = 0; i < NICS; i++) {
        fleet.peers[i] = (struct mesh_peer){.nic = {i},
                                            .host = {i / RAILS},
                                            .rail = (uint16_t)(i % RAILS),
                                            .leaf = (uint16_t)leaf_declared(i)};
    }
    for (int set = 0; set < sets; set++) {
        uint32_t places[HOSTS], by_audit = 0, by_others = 0;
        draw(&w, (uint64_t)atoll(argv[2]) * 1000000 + (uint64_t)set);
        for (uint32_t i = 0; i < HOSTS; i++) { /* jobs run on any hosts */
            const uint32_t k = (uint32_t)prng_below(&w.prng, i + 1);
            places[i] = k < i ? places[k] : i;
            places[k] = i;
        }
        const struct audit *a = audit(&w, &fleet, l, places);
        for (uint32_t i = 0; i < w.count; i++) {
            const struct fault *f = &w.faults[i];
            const bool is_named = audit_names(a, f),
                       is_usual = f->kind == CABLE || ping_names(&w, f);
            all[f->kind]++;
            named[f->kind] += is_named;
            usual[f->kind] += is_usual;
            by_audit += is_named;
            by_others += is_usual;
        }
        others += count_others(&w, a);
        const double share =
            100.0 * ((double)by_audit - by_others) / (by_others > 0 ? by_others : 1);
        more += share / sets;
        least = share < least ? share : least;
        most += 100.0 * ((double)w.count - by_others) / (by_others > 0 ? by_others : 1) / sets;
    }
    printf("{\"sets\": %d, \"more\": %.2f, \"least\": %.2f, \"most\": %.2f, \"others\": %u, "
           "\"kinds\": {",
           sets, more, least, most, others);
    for (int k = 0; k < KINDS; k++) {
        printf("%s\"%s\": [%u, %u, %u]", k > 0 ? ", " : "", kind_names[k], all[k], named[k],
               usual[k]);
    }
    printf("}}\n");
    return 0;
}

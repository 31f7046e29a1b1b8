/* audit_matrix.c: every NIC with every NIC of a large fleet: audit_matrix HOSTS RAILS. Prints one line of JSON.
 *
 * The schedule: pairs that meet, how often, and the time of all rounds. A round is at least 20 ms long. It is as long as a
 * host's packets need on this machine (encoded, sent over a socket, received, decoded) with 15 % of one processor. The
 * judging: rows as hosts report them, with noise of heavy tails and planted faults; seconds and memory of all of it. */
#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/prng.h"
#include "base/time.h"
#include "core/audit/matrix.h"
#include "core/fleet/delay_code.h"
#include "now.h"
#include "wire/probe.h"

enum { PACKETS = 5, LEAF_HOSTS = 32, TRIES = 20000 };
#define ROUND_NS    (20 * NS_PER_MS)
#define SHARE       0.15 /* of a core that a host may use */
#define SLOW_OUT    4242
#define SLOW_IN     1717
#define ONE_CELL_NS 90000

static void *claim(size_t size)
{
    void *all = calloc(1, size);
    if (all == NULL) {
        fputs("audit_matrix: out of memory\n", stderr);
        exit(1);
    }
    return all;
}

/* Processor time of one sent and one received packet. */
static double packet_ns(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct probe_key key = {.id = 1};
    const struct probe probe = {.version = PROBE_VERSION,
                                .version_lowest = PROBE_VERSION_LOWEST,
                                .type = PROBE_MEASURE,
                                .src = {1},
                                .dst = {2},
                                .anchor.nic = NIC_NONE,
                                .measure.bound_ns = PROBE_BOUND_NONE};
    socklen_t size = sizeof(to);
    const int in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0);
    if (in < 0 || out < 0 || bind(in, (struct sockaddr *)&to, size) < 0 ||
        getsockname(in, (struct sockaddr *)&to, &size) < 0) {
        perror("audit_matrix: socket");
        exit(1);
    }
    const int64_t begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < TRIES; i++) {
        uint8_t bytes[PROBE_SIZE];
        struct probe back;
        probe_encode(bytes, &probe, &key);
        if (sendto(out, bytes, sizeof(bytes), 0, (struct sockaddr *)&to, size) < 0 ||
            recv(in, bytes, sizeof(bytes), 0) != PROBE_SIZE ||
            probe_decode(bytes, sizeof(bytes), &key, 1, &back) != PROBE_OK) {
            fputs("audit_matrix: a packet was lost on the way through this host\n", stderr);
            exit(1);
        }
    }
    const int64_t took = now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
    close(in);
    close(out);
    return (double)took / TRIES;
}

/* Each pair is visited from its lower end. *ret_wrong: pairs that don't meet exactly once. */
static uint64_t count_pairs(const struct matrix_plan *p, uint64_t *ret_wrong)
{
    const uint32_t n = p->hosts * p->rails, rounds = matrix_rounds(p);
    uint8_t *met = claim(n);
    uint64_t pairs = 0;
    *ret_wrong = 0;
    for (uint32_t i = 0; i < n; i++) {
        memset(met, 0, n);
        for (uint32_t k = 0; k < rounds; k++) {
            const uint32_t other = matrix_partner(p, k, i);
            *ret_wrong += other != MATRIX_NONE && matrix_partner(p, k, other) != i;
            if (other != MATRIX_NONE) {
                met[other]++;
            }
        }
        for (uint32_t j = i + 1; j < n; j++) {
            pairs += met[j] == 1;
            *ret_wrong += met[j] > 1;
        }
    }
    free(met);
    return pairs;
}

static uint16_t declared(const struct matrix_plan *p, uint32_t nic)
{
    return (uint16_t)(nic / p->rails / LEAF_HOSTS * p->rails + nic % p->rails);
}

/* The cables of two NICs on different leaves are exchanged. */
static uint16_t leaf(const struct matrix_plan *p, uint32_t nic)
{
    return declared(p, nic == 100 ? 5000 : nic == 5000 ? 100 : nic);
}

static int64_t delay(const struct matrix_plan *p, uint32_t from, uint32_t to, struct prng *g)
{
    const int64_t path = leaf(p, from) == leaf(p, to) ? 1900 : 4600;
    const int64_t noise =
        (int64_t)(80 * prng_exponential(g)) + (prng_below(g, 1000) == 0 ? 40000 : 0);
    return path + noise + (from == SLOW_OUT ? 12000 : 0) + (to == SLOW_IN ? 7000 : 0);
}

/* The time to make the rows is not counted. */
static int64_t take_all(struct matrix *m, const struct matrix_plan *p)
{
    const uint32_t rounds = matrix_rounds(p);
    uint8_t *sent = claim(rounds), *heard = claim(rounds);
    int16_t *code = claim(rounds * sizeof(*code));
    struct prng g;
    int64_t took = 0;
    prng_init(&g, 1);
    for (uint32_t i = 0; i < m->count; i++) {
        m->nics[i].leaf = declared(p, i);
        for (uint32_t k = 0; k < rounds; k++) {
            const uint32_t other = matrix_partner(p, k, i);
            sent[k] = heard[k] = PACKETS;
            code[k] = other != MATRIX_NONE ? (int16_t)delay_encode(delay(p, other, i, &g)) : 0;
        }
        const int64_t begin = now_ns(CLOCK_MONOTONIC);
        const int r = matrix_take(m, i, sent, heard, code, rounds, 120);
        took += now_ns(CLOCK_MONOTONIC) - begin;
        if (r < 0) {
            fputs("audit_matrix: a row is refused\n", stderr);
            exit(1);
        }
    }
    free(sent);
    free(heard);
    free(code);
    return took;
}

/* Counts NICs that are reported as slow or astray: planted ones, and others. */
static void count_found(const struct matrix *m, int *ret_named, int *ret_others)
{
    *ret_named = *ret_others = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        const struct matrix_nic *n = &m->nics[i];
        const bool out = n->out_ns > m->limit_ns, in = n->in_ns > m->limit_ns,
                   astray = n->leaf_found != n->leaf && n->leaf_found != MATRIX_LEAF_NONE;
        *ret_named +=
            (out && i == SLOW_OUT) + (in && i == SLOW_IN) + (astray && (i == 100 || i == 5000));
        *ret_others +=
            (out && i != SLOW_OUT) + (in && i != SLOW_IN) + (astray && i != 100 && i != 5000);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: audit_matrix HOSTS RAILS\n", stderr);
        return 2;
    }
    const double packet = packet_ns();
    struct matrix_plan p = {.hosts = (uint32_t)atoi(argv[1]),
                            .rails = (uint32_t)atoi(argv[2]),
                            .packets = PACKETS,
                            .begin_ns = NS_PER_S,
                            .round_ns = ROUND_NS,
                            .gap_ns = 2 * NS_PER_MS,
                            .seed = 1};
    const int64_t least = (int64_t)(packet * PACKETS * p.rails / SHARE);
    p.round_ns = least > ROUND_NS ? least : ROUND_NS;
    const char *wrong = matrix_plan_wrong(&p);
    if (wrong != NULL) {
        fprintf(stderr, "audit_matrix: %s\n", wrong);
        return 2;
    }
    uint64_t bad = 0;
    matrix_plan_ready(&p);
    const uint64_t pairs = count_pairs(&p, &bad);
    struct matrix m;
    void *memory = claim(matrix_size(&p));
    matrix_init(&m, &p, memory);
    const int64_t taken = take_all(&m, &p), begin = now_ns(CLOCK_MONOTONIC);
    matrix_judge(&m, NULL);
    const double took = (double)(taken + now_ns(CLOCK_MONOTONIC) - begin) * 1e-9;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    int named, others;
    count_found(&m, &named, &others);
    printf("{\"packet_us\":%.2f,\"round_ms\":%.2f,\"rounds\":%u,\"seconds\":%.3f,\"rails_seconds\":"
           "%.3f,\"pairs\":%llu,"
           "\"pairs_wrong\":%llu,\"judge_s\":%.2f,\"memory_mib\":%ld,\"cells\":%llu,\"measured\":%"
           "llu,\"planted\":4,"
           "\"named\":%d,\"others\":%d}\n",
           packet * 1e-3, (double)p.round_ns * 1e-6, matrix_rounds(&p),
           (double)(matrix_end_ns(&p) - p.begin_ns) * 1e-9,
           (double)p.round_ns * matrix_rail_rounds(&p) * 1e-9, (unsigned long long)pairs,
           (unsigned long long)bad, took, usage.ru_maxrss / 1024, (unsigned long long)m.cells,
           (unsigned long long)m.measured, named, others);
    free(memory);
    return bad == 0 && named == 4 && others == 0 ? 0 : 1;
}

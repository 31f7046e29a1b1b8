/* bare_exchange.c: PACKETS_PER_SECOND PORT NIC=ADDRESS... -- PEER...: the cost of an agent's packets without the agent.
 *
 * From each NIC it sends so many packets to the peers, through the agent's own sockets. It sends in the agent's rounds of
 * 10 ms, half of the packets in pairs, over four source ports. It takes the stamp of each packet, and receives the packets of
 * others that do the same. It has no clock, no mesh, and no authentication. bench/lab/cost.py compares the agent's CPU with
 * this program's. It runs until it is killed. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/time.h"
#include "platform/timestamp/endpoint.h"

#define NICS      8
#define PORT_BASE 20000
#define PATHS     4
#define ROUND     (10 * NS_PER_MS)

struct exchange {
    struct endpoint *nic[NICS];
    int nic_count;
    struct in_addr *peer;
    int peer_count;
    double owed[NICS]; /* packets */
    uint64_t sent;
    unsigned random;
};

static unsigned next(struct exchange *x)
{
    x->random = x->random * 1103515245 + 12345;
    return x->random >> 16;
}

/* NIC=ADDRESS */
static int open_nic(struct exchange *x, char *word, int port)
{
    struct endpoint_config config = {.port = (uint16_t)port, .port_base = PORT_BASE};
    char *address = strchr(word, '=');
    const char *what = "address";
    int r = -EINVAL;

    if (address != NULL && x->nic_count < NICS &&
        inet_pton(AF_INET, address + 1, &config.address4) == 1) {
        *address = '\0';
        config.device = word;
        r = endpoint_open(&x->nic[x->nic_count], &config, &what);
    }
    if (r < 0) {
        fprintf(stderr, "bare_exchange: %s: %s: %s\n", word, what, strerror(-r));
        return r;
    }
    x->nic_count++;
    return 0;
}

static void take(struct endpoint *e)
{
    struct endpoint_received packets[ENDPOINT_BATCH];
    struct endpoint_stamp stamp;

    while (endpoint_receive(e, packets) == ENDPOINT_BATCH) {
    }
    while (endpoint_next_stamp(e, &stamp)) {
    }
}

/* Two of three packets belong to a pair, as with the agent. */
static void give(struct exchange *x, int nic, double packets)
{
    struct endpoint_packet p = {.want_stamp = true};

    for (x->owed[nic] += packets; x->owed[nic] >= 1;) {
        const struct in_addr to = x->peer[next(x) % (unsigned)x->peer_count];

        memset(p.peer + 10, 0xff, 2);
        memcpy(p.peer + 12, &to, 4);
        p.source_port = (uint16_t)(PORT_BASE + next(x) % PATHS);
        for (int left = 1 + (next(x) % 2 == 0); left > 0; left--, x->owed[nic] -= 1) {
            p.token = ++x->sent;
            endpoint_queue(x->nic[nic], &p);
        }
    }
    endpoint_flush(x->nic[nic]);
}

int main(int argc, char **argv)
{
    static struct exchange x;
    const struct itimerspec period = {{0, ROUND}, {0, ROUND}};
    const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    int i = 3;

    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (open_nic(&x, argv[i], atoi(argv[2])) < 0) {
            return EXIT_FAILURE;
        }
    }
    x.peer = calloc((size_t)argc + 1, sizeof(*x.peer));
    for (i++; x.peer != NULL && i < argc; i++) {
        x.peer_count += inet_pton(AF_INET, argv[i], &x.peer[x.peer_count]) == 1;
    }
    if (x.nic_count == 0 || x.peer_count == 0 || timer < 0 ||
        timerfd_settime(timer, 0, &period, NULL) < 0) {
        fprintf(stderr, "usage: bare_exchange PACKETS_PER_SECOND PORT NIC=ADDRESS... -- PEER...\n");
        return EXIT_FAILURE;
    }
    x.random = (unsigned)getpid();
    for (uint64_t rounds = 0; read(timer, &rounds, sizeof(rounds)) == (ssize_t)sizeof(rounds);) {
        for (int n = 0; n < x.nic_count; n++) {
            take(x.nic[n]);
        }
        for (int n = 0; n < x.nic_count; n++) {
            give(&x, n, atof(argv[1]) * (double)ROUND / NS_PER_S);
        }
    }
    return EXIT_FAILURE;
}

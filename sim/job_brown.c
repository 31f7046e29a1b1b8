/* job_brown.c: from some moment on one link between switches carries a tenth, in both directions. It measures the share of new
 * bytes on that link's lanes, and the rate that the jobs still reach. It reads the senders' and receivers' own counts each
 * 10 ms. Only the simulator knows which spine a lane uses. */
#include <errno.h>
#include <stdlib.h>

#include "sim/job_private.h"

#define TENTH        10
#define SETS         8 /* most sets of one process */
#define LEFT         0.95
#define MOVING       0.1 /* of the bound: a job that stands still could have any share */
#define PAYLOAD      (1448.0 / 1514)
#define RATE_WINDOWS 10

struct sums {
    /* bytes newly sent over the slow link's lanes, and over all links between leaves */
    uint64_t slow, all;
    uint64_t lanes, chunk; /* lanes over the slow link; a chunk's size */
    uint64_t received;
};

static bool over_slow(const struct job_world *w, const struct stream *stream)
{
    const struct job_net *net = &w->net;
    const int from = job_net_nic(net, &stream->local), to = job_net_nic(net, &stream->peer);

    if (from < 0 || to < 0 || net->nics[from].leaf == net->nics[to].leaf ||
        (net->nics[from].leaf != 0 && net->nics[to].leaf != 0)) {
        return false;
    }
    return job_net_spine(net, &(struct job_way){.from = (uint32_t)from,
                                                .to = (uint32_t)to,
                                                .from_port = stream->local.port,
                                                .to_port = stream->peer.port}) == 0;
}

static void sum_lane(struct job_world *w, const struct lane_set *set, uint32_t lane,
                     struct brown_lane *before, struct sums *sums)
{
    const struct brown_lane now = {.bytes = set->sent[lane].bytes,
                                   .chunks = set->sent[lane].chunks};
    const uint64_t bytes = now.bytes > before->bytes ? now.bytes - before->bytes : 0;
    const uint64_t chunks = now.chunks > before->chunks ? now.chunks - before->chunks : 0;

    *before = now;
    sums->all += bytes;
    if (set->streams[lane] != NULL && over_slow(w, set->streams[lane])) {
        sums->slow += bytes;
        sums->lanes++;
        sums->chunk = chunks > 0 && bytes / chunks > sums->chunk ? bytes / chunks : sums->chunk;
    }
}

static void sum_up(struct job_world *w, struct sums *ret)
{
    *ret = (struct sums){0};
    for (uint32_t p = 0; p < w->config.hosts; p++) {
        const struct transport *t = w->processes[p].transport;
        for (uint32_t k = 0; t != NULL && k < t->set_count && k < SETS; k++) {
            for (uint32_t lane = 0; t->sets[k] != NULL && lane < LANE_MAX; lane++) {
                sum_lane(w, t->sets[k], lane, &w->brown.before[(p * SETS + k) * LANE_MAX + lane],
                         ret);
                ret->received += t->sets[k]->delays[lane].bytes;
            }
        }
    }
}

/* Bytes that the links between switches carry in a window, payload only. */
static double left(const struct job_world *w, double spines)
{
    return spines * (double)w->config.trunk_bps / 8e9 * BROWN_WINDOW_NS * PAYLOAD *
           w->config.leaves;
}

int brown_warm(struct job_world *w)
{
    struct sums sums;

    w->brown.before = calloc((size_t)w->config.hosts * SETS * LANE_MAX, sizeof(*w->brown.before));
    if (w->brown.before == NULL) {
        return -ENOMEM;
    }
    sum_up(w, &sums);
    w->brown.received_before = sums.received;
    return 0;
}

void brown_begin(struct job_world *w)
{
    struct sums sums;

    job_net_trunk(&w->net, 0, 0, false)->slow = TENTH;
    job_net_trunk(&w->net, 0, 0, true)->slow = TENTH;
    sum_up(w, &sums);
    w->result->brown_rate_ns = -1;
    w->result->brown_before =
        (double)(sums.received - w->brown.received_before) /
        (left(w, w->config.spines) * (double)w->config.brown_ns / 2 / BROWN_WINDOW_NS);
    w->brown.received_before = sums.received;
}

static void rate_look(struct job_world *w, uint64_t received)
{
    struct brown *b = &w->brown;
    const double bound = left(w, w->config.spines - 1 + 1.0 / TENTH);
    uint64_t sum = 0;

    b->received[b->window % RATE_WINDOWS] = received;
    for (int i = 0; i < RATE_WINDOWS; i++) {
        sum += b->received[i];
    }
    if (w->result->brown_rate_ns < 0 && b->window + 1 >= RATE_WINDOWS &&
        (double)sum >= LEFT * bound * RATE_WINDOWS) {
        w->result->brown_rate_ns = (b->window + 1) * BROWN_WINDOW_NS;
    }
    b->received_since += received;
    w->result->brown_rate = (double)b->received_since / (bound * (double)(b->window + 1));
}

void brown_look(struct job_world *w)
{
    struct brown *b = &w->brown;
    const double share = 1.0 / TENTH / (w->config.spines - 1 + 1.0 / TENTH);
    struct sums sums;

    sum_up(w, &sums);
    const double allowed = share * (double)sums.all + (double)(sums.lanes * sums.chunk);
    if ((double)sums.slow > allowed ||
        (double)sums.all < MOVING * left(w, w->config.spines - 1 + 1.0 / TENTH)) {
        w->result->brown_share_ns = (b->window + 1) * BROWN_WINDOW_NS;
    }
    b->slow_bytes += sums.slow;
    b->all_bytes += sums.all;
    w->result->brown_share = b->all_bytes > 0 ? (double)b->slow_bytes / (double)b->all_bytes : 0;
    rate_look(w, sums.received - b->received_before);
    b->received_before = sums.received;
    b->window++;
}

void brown_end(struct job_world *w)
{
    free(w->brown.before);
}

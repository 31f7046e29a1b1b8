/* page.c: the job page: the housekeeping writes it for the agent and for `foliot jobs`.
 *
 * It is written four times a second while anything is active, and once when activity ends. The job doesn't need it: without the
 * file (read-only /dev/shm, no room) the job continues, and one line reports it. The file is written, not mapped: a program that
 * cuts a mapped file short would kill the processes that touch it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/descriptor.h"
#include "transport/internal.h"
#include "transport/lane_pair.h"

#define WRITE_NS (250 * NS_PER_MS)

static int make_file(struct transport *t, const char *folder)
{
    uint32_t random;

    t->io->random(t->io, &random, sizeof(random));
    snprintf(t->page_path, sizeof(t->page_path), "%s/job-%u-%08x.page", folder, t->pid, random);
    int fd = open(t->page_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        return -errno;
    }
    /* The lock ends with this process, however it ends. It is taken before the file has its size: agents ignore smaller files,
     * and take a page without a lock for a dead process's. */
    (void)flock(fd, LOCK_EX | LOCK_NB);
    int r = -posix_fallocate(fd, 0, sizeof(*t->page));
    t->page = r == 0 ? calloc(1, sizeof(*t->page)) : NULL;
    r = r == 0 && t->page == NULL ? -ENOMEM : r;
    if (r < 0) {
        close(fd);
        unlink(t->page_path);
        return r;
    }
    t->page_fd = fd;
    descriptor_add(fd); /* a child would keep the lock */
    return 0;
}

void page_open(struct transport *t)
{
    int r = -ENOENT;
    uint64_t nonce;

    t->started = t->io->now(t->io);
    if (t->config.page_folder == NULL) {
        return;
    }
    r = make_file(t, t->config.page_folder);
    if (r < 0) {
        say(t, TRANSPORT_INFO, "no job page in %s (%s): foliot jobs won't show this process",
            t->config.page_folder, strerror(-r));
        return;
    }
    t->io->random(t->io, &nonce, sizeof(nonce));
    job_page_init(t->page, nonce);
}

void page_close(struct transport *t)
{
    if (t->page != NULL) {
        unlink(t->page_path);
        free(t->page);
        t->page = NULL;
        descriptor_close(t->page_fd);
    }
}

static uint32_t whole(double ns)
{
    return ns < 0 ? 0 : ns < UINT32_MAX - 1 ? (uint32_t)ns : UINT32_MAX - 1;
}

static bool by_pair(const struct stream *stream, bool sending)
{
    return stream != NULL && stream->qp != NULL &&
           (sending ? lane_pair_writes(stream, stream->qp) : stream->qp->in);
}

static uint8_t carrier_of(const struct transport *t, const struct stream *stream, bool sending)
{
    if (!by_pair(stream, sending)) {
        return 0;
    }
    const uint8_t sl = !sending                 ? 0
                       : t->config.pair_sl != 0 ? t->config.pair_sl - 1
                                                : stream->qp->peer.sl;
    return (uint8_t)(JOB_PAGE_PAIR | sl << JOB_PAGE_SL_SHIFT);
}

/* The mark of the peer's packets is not known. */
static uint8_t own_class(const struct transport *t, const struct stream *stream, bool sending)
{
    return !sending ? 0 : by_pair(stream, true) ? t->config.pair_class : t->config.traffic_class;
}

/* The port decides a lane's path: the page has it for tools that look at that path. */
static void tell_port(const struct stream *stream, struct job_page_lane *lane)
{
    const uint16_t port = by_pair(stream, lane->sending != 0) ? lane_pair_port(stream) : 0;

    if (lane->sending != 0 && port != 0) {
        lane->pair |= JOB_PAGE_PORT;
        lane->path_port = port;
    }
}

/* For the direction in ret->sending. */
static void describe(const struct lane_set *set, struct mono now, uint32_t i,
                     const struct watch_lane *state, struct job_page_lane *ret)
{
    const struct transport *t = set->transport;
    const struct stream *stream = set->streams[i];
    const struct lane_delay *delay = &set->delays[i];
    const bool sending = ret->sending != 0;
    const uint8_t own = stream != NULL ? stream->own_nic : set->lane_nics[i].own;
    const int64_t floor = least_get(&delay->floor_ns);
    const int64_t since_ms = mono_sub(now, state->since).ns / NS_PER_MS;
    /* A peer without debts may not have been told yet: a lane that is merely idle isn't active by that. */
    const bool cut = lane_connected(state->state) && (state->cut || (t->page_cut >> own & 1) != 0);

    *ret = (struct job_page_lane){
        .set = set->index,
        .lane = (uint16_t)i,
        .sending = sending,
        .state = (uint8_t)(cut ? LANE_DOWN : state->state),
        .reason = cut                                 ? LANE_REASON_CARRIER
                  : state->reason != LANE_REASON_NONE ? (uint8_t)state->reason
                                                      : set->failed_for[i],
        .standby = state->standby,
        .pair = carrier_of(t, stream, sending),
        .traffic_class = own_class(t, stream, sending),
        .epoch = state->epoch,
        .peer_pid = set->pid,
        .failovers = state->failovers,
        .chunks = sending ? set->sent[i].chunks : delay->chunks,
        .bytes = sending ? set->sent[i].bytes : delay->bytes,
        .resent = sending ? set->sent[i].resent : delay->resent,
        .owd_ns = delay->chunks > 0 ? delay->owd_ns : JOB_PAGE_NS_NONE,
        .owd_ns_floor = delay->chunks > 0 ? whole((double)floor) : JOB_PAGE_NS_NONE,
        .owd_ns_mean = delay->chunks > 0 ? whole(delay->owd_mean_ns) : JOB_PAGE_NS_NONE,
        .owd_ns_max = delay->chunks > 0 ? delay->owd_ns_max : JOB_PAGE_NS_NONE,
        .bound_ns = delay->chunks > 0 ? delay->bound_ns : JOB_PAGE_NS_NONE,
        .owd_ns_p50 = lane_delay_quantile(delay, STAGE_OWD, 0.5),
        .owd_ns_p99 = lane_delay_quantile(delay, STAGE_OWD, 0.99),
        .queued_ns_p50 = lane_delay_quantile(delay, STAGE_QUEUED, 0.5),
        .queued_ns_p99 = lane_delay_quantile(delay, STAGE_QUEUED, 0.99),
        .consumed_ns_p50 = lane_delay_quantile(delay, STAGE_CONSUMED, 0.5),
        .consumed_ns_p99 = lane_delay_quantile(delay, STAGE_CONSUMED, 0.99),
        .queued_ns = delay->chunks > 0 ? whole(delay->queued_mean_ns) : JOB_PAGE_NS_NONE,
        .consumed_ns = delay->chunks > 0 ? whole(delay->consumed_mean_ns) : JOB_PAGE_NS_NONE,
        .since_ms = since_ms < 0            ? 0
                    : since_ms < UINT32_MAX ? (uint32_t)since_ms
                                            : UINT32_MAX,
    };
    tell_port(stream, ret);
    if (sending) {
        ret->rate_bps = (uint64_t)scheduler_rate_bps(&set->scheduler, i);
    }
    memcpy(ret->own_nic, t->nics[own].config.name, sizeof(ret->own_nic));
    memcpy(ret->peer_nic, set->peer_device, sizeof(ret->peer_nic));
    memcpy(ret->peer_host, set->host, sizeof(ret->peer_host));
    if (stream != NULL) {
        memcpy(ret->own_address, stream->local.ip, 16);
        memcpy(ret->peer_address, stream->peer.ip, 16);
        ret->own_port = stream->local.port;
        ret->peer_port = stream->peer.port;
    }
}

/* All lanes of one set in one direction, from entry *count on. */
static void write_lanes(struct lane_set *set, struct mono now, bool sending, uint32_t *count,
                        struct job_page_header *header)
{
    for (uint32_t i = 0; i < LANE_MAX && *count < JOB_PAGE_LANES_MAX; i++) {
        struct job_page_lane lane = {.sending = sending};
        struct watch_lane state;
        watch_lane_get(set->watch, now, i, &state);
        if (!state.used) {
            continue;
        }
        describe(set, now, i, &state, &lane);
        lane.generation = set->generation;
        *(sending ? &header->bytes_out : &header->bytes_in) += lane.bytes;
        header->resent += lane.resent;
        header->failovers += sending || set->sender == NULL ? lane.failovers : 0;
        job_page_write_lane(set->transport->page, (*count)++, &lane);
    }
}

static void write_set(struct lane_set *set, struct mono now, uint32_t *count,
                      struct job_page_header *header)
{
    pthread_mutex_lock(&set->lock);
    header->sets++;
    header->comms += set->comm_count;
    header->parted += set->parted;
    header->repaths += set->traffic.moves;
    header->stalled_ns +=
        set->parted_ns + (set->parted_at.ns == INT64_MAX ? 0 : mono_sub(now, set->parted_at).ns);
    if (set->sender != NULL) {
        write_lanes(set, now, true, count, header);
    }
    if (set->ledger != NULL) {
        write_lanes(set, now, false, count, header);
    }
    pthread_mutex_unlock(&set->lock);
}

void page_sum(const struct lane_set *set, struct mono now, struct transport_summary *sum)
{
    sum->parted += set->parted;
    sum->parted_ns += set->parted_ns;
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct lane_delay *delay = &set->delays[i];
        struct watch_lane state;
        watch_lane_get(set->watch, now, i, &state);
        if (!state.used) {
            continue;
        }
        sum->failovers += state.failovers;
        sum->bytes_out += set->sent[i].bytes;
        sum->chunks_out += set->sent[i].chunks;
        sum->resent += set->sent[i].resent;
        sum->written += set->sent[i].written;
        sum->bytes_in += delay->bytes;
        sum->chunks_in += delay->chunks;
        int64_t floor = least_get(&delay->floor_ns);
        int64_t above = delay->chunks > 0 ? (int64_t)delay->owd_mean_ns - floor : 0;
        if (above > sum->slowest_ns) {
            char text[PEER_TEXT];
            sum->slowest_ns = above;
            snprintf(
                sum->slowest, sizeof(sum->slowest), "lane %u from %s to %s NIC %s", i,
                lane_set_peer(set, text), set->transport->host,
                set->transport->nics[set->streams[i] != NULL ? set->streams[i]->own_nic : set->nic]
                    .config.name);
        }
    }
}

void transport_summary(struct transport *t, struct transport_summary *ret)
{
    const struct mono now = t->io->now(t->io);

    pthread_mutex_lock(&t->lock);
    *ret = t->past;
    ret->ran_ns = mono_sub(now, t->started).ns;
    ret->saved_ns = __atomic_load_n(&t->first_fault_ns, __ATOMIC_RELAXED);
    ret->saved_ns = ret->saved_ns != 0 ? now.ns - ret->saved_ns : 0;
    for (uint32_t i = 0; i < t->set_count; i++) {
        struct lane_set *set = t->sets[i];
        if (set != NULL) {
            pthread_mutex_lock(&set->lock);
            page_sum(set, now, ret);
            pthread_mutex_unlock(&set->lock);
        }
    }
    pthread_mutex_unlock(&t->lock);
}

/* Bit k: NIC k has no carrier. It asks again, because nobody else does while nothing is under way. */
static uint32_t cut_nics(struct transport *t)
{
    uint32_t cut = 0, downs;

    for (uint32_t i = 0; i < t->config.nic_count; i++) {
        cut |= t->io->carrier(t->io, t->nics[i].config.name, &downs) == 0 ? 1u << i : 0;
    }
    return cut;
}

void page_write(struct transport *t, struct mono now)
{
    static const struct job_page_lane free_lane;
    const uint32_t sets = __atomic_load_n(&t->set_count, __ATOMIC_ACQUIRE);
    struct job_page_header header = {.pid = t->pid,
                                     .written = now.ns,
                                     .started = t->started.ns,
                                     .rank = t->config.ranks > 0 ? t->config.rank : UINT32_MAX,
                                     .ranks = t->config.ranks,
                                     .mode = (uint8_t)mode_now(t)};
    uint32_t count = 0;

    t->next_page = mono_add(now, span_ns(WRITE_NS));
    if (t->page == NULL) {
        return;
    }
    t->page_cut = cut_nics(t);
    memcpy(header.host, t->host, sizeof(header.host));
    snprintf(header.job, sizeof(header.job), "%s", t->config.job != NULL ? t->config.job : "");
    header.synced = t->io->stamp(t->io).half_ns != IO_HALF_UNKNOWN;
    for (uint32_t i = 0; i < sets; i++) {
        struct lane_set *set = __atomic_load_n(&t->sets[i], __ATOMIC_ACQUIRE);
        if (set != NULL) {
            write_set(set, now, &count, &header);
        }
    }
    header.lane_count = count;
    for (uint32_t i = count; i < t->page_count; i++) {
        job_page_write_lane(t->page, i, &free_lane);
    }
    size_t used = offsetof(struct job_page_memory, lanes) +
                  sizeof(t->page->lanes[0]) * (count > t->page_count ? count : t->page_count);
    t->page_count = count;
    job_page_write_header(t->page, &header);
    if (pwrite(t->page_fd, t->page, used, 0) < 0) {
        return; /* no room any more: readers see that no news came */
    }
}

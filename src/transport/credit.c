/* credit.c: a receiving set's part in incast control (core/traffic/credit.h).
 *
 *   chunks ─► sums of this set ─► its NIC's struct credit, shared by all sets ─► a window for each communicator
 *          ─► ledger ─► `granted` in the next STATE ─► the sender waits
 *   sets of a NIC that have something to send ─► `receivers` in STATE ─► each receiver's share of our link
 *
 * Each STATE has that number. A set that only sends has little else to report: then a STATE with it is sent in front of a chunk
 * when the number changes, and again before the peer would drop it.
 *
 * The sums are added to the NIC's at each look, not at each chunk: so no chunk takes a lock. Windows apply in mode full only. A
 * sender of an older release sends no chunk that is larger than its grant, even if none is under way: if nothing comes from such
 * a sender for STALLED_NS, its window is made wide enough for any chunk. */
#include "transport/internal.h"

#define STALLED_NS  (200 * NS_PER_MS)
#define STALLED_MIN (2u << LANE_CHUNK_SHIFT_MAX)
#define RTT_NS      NS_PER_S          /* interval of questions to the kernel */
#define FAN_NS      (100 * NS_PER_MS) /* sets that send within this time count as sending at once */
#define TOLD_NS                                                                                    \
    (3 * FAN_NS) /* a peer's number is valid for so long: it sends none while nothing goes to it */
#define DRIFT_NS (500 * NS_PER_US) /* of two clocks without steering, within a floor's 10 s */

/* By how much a delay exceeds the least by any of the set's own lanes. A lane that never saw its path empty has a floor that
 * hides the queue. */
static int64_t above_floor(struct lane_set *set, struct mono now, uint32_t clock, int64_t owd_ns)
{
    if (set->floor_clock != clock) {
        least_init(&set->floor_ns, now);
        set->floor_clock = clock;
    }
    least_add(&set->floor_ns, now, span_ns(DELAY_BUCKET_NS), owd_ns);
    return owd_ns - least_get(&set->floor_ns);
}

void credit_note(struct lane_set *set, struct mono now, uint32_t lane,
                 const struct lane_chunk *chunk, const struct io_stamp *stamp, int64_t owd_ns)
{
    struct credit_arrivals *arrived = &set->arrived;

    if (set->streams[lane]->own_nic != set->nic) {
        return; /* a standby's delay: it passes another queue */
    }
    arrived->bytes += chunk->length;
    arrived->chunk = chunk->length > arrived->chunk ? chunk->length : arrived->chunk;
    if (!stamp->kernel || (chunk->flags & LANE_CHUNK_RESENT) != 0) {
        return; /* this shows this host, or another lane, more than the queue */
    }
    const int64_t queue_ns = above_floor(set, now, set->delays[lane].clock, owd_ns);
    arrived->delay_ns += (double)queue_ns;
    arrived->delays++;
    arrived->queue_ns = queue_ns < arrived->queue_ns ? queue_ns : arrived->queue_ns;
    if (chunk->sent_bound_ns == LANE_BOUND_UNKNOWN || stamp->half_ns == IO_HALF_UNKNOWN) {
        arrived->noise_ns = DRIFT_NS;
    }
}

/* Communicators for which something came since the last count. */
static uint32_t count_comms(struct lane_set *set, struct mono now)
{
    uint32_t count = 0;

    for (struct transport_comm *comm = set->comms; comm != NULL; comm = comm->next) {
        uint64_t bytes;
        if (!comm->sending && ledger_comm_arrived(set->ledger, comm->number, &bytes) &&
            bytes != comm->arrived) {
            comm->arrived = bytes;
            comm->arrived_at = now;
            count++;
        }
    }
    return count;
}

static void ask_round_trip(struct lane_set *set, struct mono now, struct credit *credit)
{
    const struct stream *stream = set->streams[set->hot];
    struct io_info info;

    if (stream == NULL || stream->dead || mono_sub(now, set->rtt_asked).ns < RTT_NS) {
        return;
    }
    set->rtt_asked = now;
    stream->kind->info(set, stream, &info);
    if (info.known) {
        credit_on_rtt(credit, span_ns(info.rtt_ns_min));
    }
}

static void grant(struct lane_set *set, struct mono now, uint64_t window)
{
    const bool old = set->version < 3 && window < STALLED_MIN;

    for (struct transport_comm *comm = set->comms; comm != NULL; comm = comm->next) {
        if (comm->sending) {
            continue;
        }
        const bool stalled = old && mono_sub(now, comm->arrived_at).ns > STALLED_NS;
        ledger_comm_window(set->ledger, comm->number, stalled ? STALLED_MIN : window);
    }
    set->window = window;
}

/* Adds this set's arrivals to the NIC's; returns how much each of its communicators may have under way. */
static uint64_t tell_nic(struct lane_set *set, struct mono now)
{
    struct own_nic *nic = &set->transport->nics[set->nic];
    struct credit_arrivals *arrived = &set->arrived;

    pthread_mutex_lock(&nic->credit_lock);
    credit_tick(&nic->credit, now);
    arrived->first = arrived->bytes > 0 && set->credit_interval != nic->credit.interval;
    arrived->receivers =
        mono_sub(now, set->peer_receivers_at).ns < TOLD_NS ? set->peer_receivers : 0;
    if (arrived->first) {
        set->credit_interval = nic->credit.interval;
        arrived->comms = count_comms(set, now);
        ask_round_trip(set, now, &nic->credit);
    }
    credit_on_arrivals(&nic->credit, now, arrived);
    uint64_t window = credit_window(&nic->credit);
    pthread_mutex_unlock(&nic->credit_lock);
    *arrived = CREDIT_NO_ARRIVALS;
    return window;
}

void credit_look(struct lane_set *set, struct mono now)
{
    uint64_t window = CREDIT_UNLIMITED;

    if (set->mode != TRANSPORT_FULL || set->transport->config.no_credit) {
        set->arrived = CREDIT_NO_ARRIVALS;
    } else if (set->arrived.bytes > 0 || set->window != window) {
        window = tell_nic(set, now);
    }
    if (window != CREDIT_UNLIMITED || set->window != window) {
        grant(set, now, window);
    }
}

static bool has_to_send(const struct lane_set *set)
{
    return sender_waiting(set->sender) || scheduler_unacked(&set->scheduler) > 0;
}

void credit_count(struct lane_set *set, struct mono now)
{
    struct own_nic *nic = &set->transport->nics[set->nic];
    const int64_t time = now.ns / FAN_NS;

    if (set->fan_time == time || !has_to_send(set)) {
        return;
    }
    set->fan_time = time;
    pthread_mutex_lock(&nic->credit_lock);
    if (nic->fan_time != time) {
        nic->fan_last = nic->fan_time == time - 1 ? nic->fan_now : 0;
        nic->fan_time = time;
        nic->fan_now = 0;
    }
    nic->fan_now++;
    const uint32_t most = nic->fan_now > nic->fan_last ? nic->fan_now : nic->fan_last;
    __atomic_store_n(&nic->receivers, most, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&nic->credit_lock);
}

static uint32_t receivers_now(const struct lane_set *set)
{
    return __atomic_load_n(&set->transport->nics[set->nic].receivers, __ATOMIC_RELAXED);
}

uint16_t credit_receivers(struct lane_set *set, struct mono now)
{
    const uint32_t count = receivers_now(set);

    set->fan_told = count;
    set->fan_told_at = now;
    return count < UINT16_MAX ? (uint16_t)count : UINT16_MAX;
}

void credit_tell_along(struct lane_set *set, struct mono now, uint32_t lane)
{
    const uint32_t count = receivers_now(set);
    const bool known = count == set->fan_told || (count <= 1 && set->fan_told <= 1);
    struct lane_report report = {.comm = LANE_COMM_NONE};

    if (known && (count <= 1 || mono_sub(now, set->fan_told_at).ns < FAN_NS)) {
        return;
    }
    (void)lane_set_say(set, now, &report, (int)lane);
}

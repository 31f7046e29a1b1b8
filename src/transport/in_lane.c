/* in_lane.c: the accepting end: a connection with a proof becomes a lane, of an existing set or of a new one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/internal.h"

/* It must also have the same number. A sender that gave a set up, without our knowledge, begins another one between the same
 * contexts, with lanes and communicators from the first on, while ours may still wait for the old one's. */
static struct lane_set *find(struct transport *t, uint64_t own_context,
                             const struct lane_hello *hello)
{
    for (uint32_t i = 0; i < t->set_count; i++) {
        struct lane_set *set = t->sets[i];
        if (set == NULL || set->connects || set->own_context != own_context ||
            set->peer_context != hello->own_context || set->number != hello->set) {
            continue;
        }
        pthread_mutex_lock(&set->lock);
        bool fits = !set->leaving && set->error == 0;
        pthread_mutex_unlock(&set->lock);
        if (fits) {
            return set;
        }
    }
    return NULL;
}

/* The small number of the peer's NIC with that address. */
static uint8_t peer_number(struct lane_set *set, const struct io_address *address)
{
    for (uint32_t i = 0; i < set->peer_count; i++) {
        if (io_address_same_ip(&set->peers[i].address, address)) {
            return (uint8_t)i;
        }
    }
    if (set->peer_count == WATCH_NIC_MAX) {
        return WATCH_NIC_MAX - 1;
    }
    set->peers[set->peer_count].address = *address;
    return (uint8_t)set->peer_count++;
}

static uint8_t own_number(const struct transport *t, const struct io_address *local, uint32_t nic)
{
    for (uint32_t i = 0; i < t->config.nic_count; i++) {
        if (io_address_same_ip(&t->nics[i].config.address, local)) {
            return (uint8_t)i;
        }
    }
    return (uint8_t)nic;
}

void in_answer(const struct transport *t, const struct pending *pending, uint8_t version,
               uint8_t bytes[static LANE_HELLO_SIZE])
{
    const struct lane_hello *hello = &pending->hello;
    const uint8_t own = own_number(t, &pending->local, pending->nic);
    struct lane_hello ok = {.answer = true,
                            .newest = version,
                            .lowest = LANE_VERSION_LOWEST,
                            .lane = hello->lane,
                            .lanes = hello->lanes,
                            .epoch = hello->epoch,
                            .own_context = t->nics[pending->nic].context,
                            .peer_context = hello->own_context,
                            .pid = t->pid,
                            .rank = LANE_RANK_UNKNOWN,
                            .fenced = version >= LANE_FENCE_VERSION && t->config.fenced,
                            .last_epoch = pending->last_epoch,
                            .last_taken = pending->last_taken};

    memcpy(ok.nonce, pending->nonce, sizeof(ok.nonce));
    memcpy(ok.own_address, pending->local.ip, 16);
    memcpy(ok.peer_address, pending->peer.ip, 16);
    memcpy(ok.host, t->host, sizeof(ok.host));
    memcpy(ok.nic, t->nics[own].config.name, sizeof(ok.nic));
    lane_hello_encode(bytes, &ok, hello->nonce, t->key);
}

/* The connection takes the lane's place. The former lane is closed. */
static int attach(struct lane_set *set, struct pending *pending)
{
    struct io *io = set->transport->io;
    const struct mono now = io->now(io);
    const struct lane_hello *hello = &pending->hello;
    struct stream *stream = stream_new(pending->conn, hello->epoch);
    struct watch_lane_config config = {0};
    struct watch_lane lane;

    if (stream == NULL) {
        return -ENOMEM;
    }
    stream->local = pending->local;
    stream->peer = pending->peer;
    stream->began = now;
    stream->own_nic = config.own_nic = own_number(set->transport, &pending->local, set->nic);
    stream->peer_nic = config.peer_nic = peer_number(set, &pending->peer);
    config.standby = hello->standby;
    if (set->streams[hello->lane] != NULL && set->streams[hello->lane]->epoch < hello->epoch) {
        /* The peer has given the old one up, whatever its state is here. */
        lane_set_lost(set, now, hello->lane, LANE_REASON_PEER);
        lane_set_act(set, now);
    }
    if (set->streams[hello->lane] != NULL) { /* a newer one, or it is not silent yet */
        stream_free(stream);
        return -EBUSY;
    }
    watch_lane_get(set->watch, now, hello->lane, &lane);
    int r = lane_set_open_lane(set, now, hello->lane, hello->epoch, span_ns(-1));
    if (r < 0) {
        stream_free(stream);
        return r;
    }
    /* it moved away once, and its number is used again */
    if (lane.used && lane.state == LANE_CLOSED) {
        watch_lane_remove(set->watch, hello->lane);
        lane.used = false;
    }
    if (!lane.used) {
        r = watch_lane_add(set->watch, now, hello->lane, &config);
    } else { /* a standby that tries another pair of NICs keeps its number */
        watch_lane_nics(set->watch, hello->lane, &config);
    }
    if (r < 0) {
        halves_lane_down(set->sender, set->ledger, hello->lane, hello->epoch);
        stream_free(stream);
        return r;
    }
    set->lane_nics[hello->lane].own = config.own_nic;
    set->lane_nics[hello->lane].peer = config.peer_nic;
    set->lane_nics[hello->lane].standby = config.standby;
    set->streams[hello->lane] = stream;
    set->present |= 1u << hello->lane;
    ceiling_opened(set->transport);
    pending->conn = -1; /* the set owns it now */
    memcpy(set->host, hello->host, sizeof(set->host));
    memcpy(set->peer_device, hello->nic, sizeof(set->peer_device));
    set->pid = hello->pid;
    if (lane_set_both(set)) {
        const struct io_connect how = peer_connect(set->transport, &stream->local, &stream->peer);
        io->carry(io, stream->conn, &how);
    }
    lane_set_shaken(set, now, hello->lane);
    if (!pending->greeted) {
        uint8_t bytes[LANE_HELLO_SIZE];
        in_answer(set->transport, pending, set->version, bytes);
        (void)stream_control(stream, bytes, sizeof(bytes));
    }
    lane_set_tell_nics(set, stream);
    lane_set_progress(set, now, true);
    return 0;
}

/* Both ends began a set at once. The set that the peer answered stays, else that of the smaller context. The refused end waits
 * for the other set (transport_connect), but no longer than that set may need: perhaps only the other end can connect. */
static bool ours_stays(struct transport *t, uint32_t nic, const struct lane_hello *hello)
{
    const struct mono now = t->io->now(t->io);

    for (uint32_t i = 0; i < t->set_count; i++) {
        struct lane_set *set = t->sets[i];
        if (set == NULL || !set->connects || set->own_context != t->nics[nic].context ||
            set->peer_context != hello->own_context) {
            continue;
        }
        pthread_mutex_lock(&set->lock);
        const bool stays = lane_set_stays(set, now);
        pthread_mutex_unlock(&set->lock);
        if (stays) {
            return true;
        }
    }
    return false;
}

static enum lane_no no_for(int r)
{
    return r == -ENOMEM || r == -ENOBUFS ? LANE_NO_FULL
           : r == -EALREADY              ? LANE_NO_YOURS
                                         : LANE_NO_LANE;
}

int in_admit(struct transport *t, const struct pending *pending, uint8_t version, uint32_t waiting,
             enum lane_no *ret_no)
{
    int r = 0;

    pthread_mutex_lock(&t->lock);
    struct lane_set *set = find(t, t->nics[pending->nic].context, &pending->hello);
    if (set != NULL) {
        pthread_mutex_lock(&set->lock);
    }
    if (set == NULL && version >= LANE_BOTH_VERSION && !pending->hello.joined &&
        ours_stays(t, pending->nic, &pending->hello)) {
        r = -EALREADY;
    } else if (set != NULL && set->version != version) {
        r = -EPROTO;
    } else if (!ceiling_admits(t, set, &pending->hello, waiting)) {
        r = -ENOBUFS;
    }
    if (set != NULL) {
        pthread_mutex_unlock(&set->lock);
    }
    pthread_mutex_unlock(&t->lock);
    *ret_no = no_for(r);
    return r;
}

/* First silence, then the last count: after that no connection of an older greeting opens anything. */
static bool fence(struct lane_set *set, struct pending *pending)
{
    const struct mono now = set->transport->io->now(set->transport->io);
    const struct lane_hello *hello = &pending->hello;
    const struct stream *stream = set->streams[hello->lane];

    if (stream != NULL && stream->epoch >= hello->epoch) {
        return true; /* not needed here: it is refused later, when it should become a lane */
    }
    if (stream != NULL) {
        lane_set_lost(set, now, hello->lane, LANE_REASON_PEER);
        lane_set_act(set, now);
        if (set->streams[hello->lane] != NULL) {
            return false;
        }
    }
    if (set->sender != NULL && sender_on_fenced(set->sender, hello->lane, hello->epoch,
                                                hello->last_epoch, hello->last_taken) < 0) {
        char text[PEER_TEXT];
        lane_set_fail(set, -ENOTRECOVERABLE, "%s claims to have taken what was never sent",
                      lane_set_peer(set, text));
        return false;
    }
    if (set->ledger != NULL) {
        ledger_lane_bar(set->ledger, hello->lane, hello->epoch);
        pending->last_taken = ledger_lane_taken(set->ledger, hello->lane, &pending->last_epoch);
    }
    return true;
}

bool in_fence(struct transport *t, struct pending *pending)
{
    bool is_over = true;

    if (!t->config.fenced) { /* no set is fenced: nothing to look for */
        return true;
    }
    pthread_mutex_lock(&t->lock);
    struct lane_set *set = find(t, t->nics[pending->nic].context, &pending->hello);
    if (set != NULL) {
        pthread_mutex_lock(&set->lock);
        if (set->fenced) {
            is_over = fence(set, pending);
        }
        pthread_mutex_unlock(&set->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return is_over;
}

int in_attach(struct transport *t, struct pending *pending, uint8_t version, enum lane_no *ret_no)
{
    const struct lane_hello *hello = &pending->hello;
    int r = 0;

    pthread_mutex_lock(&t->lock);
    struct lane_set *set = find(t, t->nics[pending->nic].context, hello);
    if (set == NULL) {
        r = lane_set_new(t, false, pending->nic, hello->own_context, &set);
        if (r == 0) {
            set->number = hello->set;
            set->version = version;
            set->fenced = pending->fenced && t->config.fenced;
            if (set->fenced) {
                ledger_fence(set->ledger);
                watch_fenced(set->watch);
            }
            slots_promise(set, peer_here(t, &pending->peer));
            set->remade = hello->joined;
        }
    }
    pthread_mutex_unlock(&t->lock);
    if (r < 0) {
        *ret_no = LANE_NO_FULL;
        return r;
    }
    pthread_mutex_lock(&set->lock);
    r = set->version != version ? -EPROTO : attach(set, pending);
    pthread_mutex_unlock(&set->lock);
    lane_set_touch(set);
    *ret_no = no_for(r);
    return r;
}

/* post.c: POST: the receiver reports the place of a message before the message comes. It is sent with the reports of its
 * communicator: new places with the next one, and places of messages that haven't begun with those that the ledger repeats. So a
 * lost POST is repeated. */
#include "transport/internal.h"
#include "transport/lane_pair.h"

#define AGAIN_NS (5 * NS_PER_MS) /* the ledger repeats a report after 10 ms at the earliest */

_Static_assert(IO_RDMA_DEVICES <= LANE_DEVICES_MAX, "each can be named");

static void add_key(struct lane_keys *keys, uint32_t device, uint32_t rkey)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        if (keys->devices[i] == device) {
            return;
        }
    }
    if (keys->count < LANE_POST_KEYS) {
        keys->devices[keys->count] = (uint8_t)device;
        keys->rkeys[keys->count++] = rkey;
    }
}

/* Adds the keys of the devices of the set's queue pairs. A lane on another device comes too late for this message: its part of it
 * is sent as bytes, until the place is sent again. */
static void add_keys(struct lane_set *set, struct lane_post *post)
{
    struct io_rdma_memory keys;

    if (post->address == 0 ||
        !memory_keys(set->transport, (const void *)(uintptr_t)post->address, post->size, &keys)) {
        return;
    }
    for (uint32_t i = 0; set->version < LANE_KEYS_VERSION && i < LANE_POST_KEYS; i++) {
        add_key(&post->keys, i, keys.remote[i]);
    }
    for (uint32_t lanes = set->version < LANE_KEYS_VERSION ? 0 : set->present; lanes != 0;
         lanes &= lanes - 1) {
        const struct lane_pair *qp = set->streams[__builtin_ctz(lanes)]->qp;
        if (qp != NULL && qp->step > PAIR_OPENING && qp->cells.device < IO_RDMA_DEVICES) {
            add_key(&post->keys, qp->cells.device, keys.remote[qp->cells.device]);
        }
    }
}

void post_tell(struct lane_set *set, struct mono now, struct transport_comm *comm, uint32_t lane)
{
    struct stream *stream = set->streams[lane];
    uint64_t placed, posted;
    uint8_t bytes[LANE_POST_SIZE];
    struct lane_post post;

    if (!ledger_comm_progress(set->ledger, comm->number, &placed, &posted) || stream == NULL) {
        return;
    }
    const bool again = !comm->posts_left && mono_sub(now, comm->posts_at).ns >= AGAIN_NS;
    const uint64_t first = again || comm->posts_told < placed ? placed : comm->posts_told;
    for (uint64_t number = first; number < posted; number++) {
        if (!ledger_post_frame(set->ledger, comm->number, number, &post)) {
            continue;
        }
        add_keys(set, &post);
        lane_post_encode(bytes, &post, set->version);
        /* the rest follows as soon as there is room */
        if (!stream_control(stream, bytes, sizeof(bytes))) {
            comm->posts_told = number;
            comm->posts_left = set->posts_left = set->report_urgent = true;
            return;
        }
    }
    comm->posts_told = posted;
    comm->posts_left = false;
    comm->posts_at = now;
}

void post_renew(struct lane_set *set)
{
    for (struct transport_comm *comm = set->comms; comm != NULL; comm = comm->next) {
        if (!comm->sending && !comm->released) {
            comm->posts_told = 0;
            comm->posts_left = set->posts_left = set->report_urgent = true;
        }
    }
}

uint32_t post_tell_left(struct lane_set *set, struct mono now)
{
    const int lane = set->posts_left ? lane_set_any_lane(set) : -1;

    if (lane < 0 ||
        !stream_idle(set->streams[lane])) { /* there is none; or no more room than before */
        set->report_urgent = set->report_urgent || (lane >= 0 && set->posts_left);
        return 0;
    }
    set->posts_left = false;
    for (struct transport_comm *comm = set->comms; comm != NULL; comm = comm->next) {
        if (comm->posts_left && !comm->released) {
            post_tell(set, now, comm, (uint32_t)lane);
        }
    }
    return 1u << lane;
}

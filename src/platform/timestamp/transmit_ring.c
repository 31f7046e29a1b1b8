/* transmit_ring.c: assigns stamps to packets. */
#include "platform/timestamp/transmit_ring.h"

static struct transmit_slot *slot_of(struct transmit_ring *ring, uint32_t key)
{
    return &ring->slots[key % TRANSMIT_RING_SIZE];
}

bool transmit_ring_add(struct transmit_ring *ring, uint64_t token, int64_t called_ns,
                       uint64_t *ret_lost)
{
    struct transmit_slot *slot = slot_of(ring, ring->next);
    const bool lost = slot->waits;
    if (lost) {
        *ret_lost = slot->token;
        if (ring->next - ring->oldest >= TRANSMIT_RING_SIZE) {
            ring->oldest = ring->next - TRANSMIT_RING_SIZE + 1;
        }
    }
    *slot = (struct transmit_slot){token, called_ns, ring->next, true};
    ring->next++;
    return lost;
}

bool transmit_ring_take_hardware(struct transmit_ring *ring, uint32_t key, uint64_t *ret_token,
                                 int64_t *ret_called_ns)
{
    struct transmit_slot *slot = slot_of(ring, key);
    if (!slot->waits || slot->key != key) {
        return false;
    }
    slot->waits = false;
    *ret_token = slot->token;
    *ret_called_ns = slot->called_ns;
    return true;
}

bool transmit_ring_take(struct transmit_ring *ring, uint32_t key, int64_t stamp_ns, int64_t now_ns,
                        uint64_t *ret_token)
{
    const struct transmit_slot *slot = slot_of(ring, key);
    if (!slot->waits || slot->key != key || stamp_ns < slot->called_ns || stamp_ns > now_ns) {
        return false;
    }
    int64_t called_ns = 0;
    return transmit_ring_take_hardware(ring, key, ret_token, &called_ns);
}

bool transmit_ring_expire(struct transmit_ring *ring, int64_t now_ns, bool all, uint64_t *ret_token)
{
    if (ring->next - ring->oldest > TRANSMIT_RING_SIZE) {
        ring->oldest = ring->next - TRANSMIT_RING_SIZE;
    }
    for (; ring->oldest != ring->next; ring->oldest++) {
        struct transmit_slot *slot = slot_of(ring, ring->oldest);
        if (!slot->waits || slot->key != ring->oldest) {
            continue;
        }
        /* if REALTIME was set back, a packet must not wait for ever */
        const int64_t age = now_ns - slot->called_ns;
        if (!all && age >= 0 && age < TRANSMIT_TIMEOUT_NS) {
            return false;
        }
        slot->waits = false;
        *ret_token = slot->token;
        return true;
    }
    return false;
}

/* wire.c: probes as bytes, where a scenario wants that: keys, versions and the codec itself are then in play. */
#include "sim/world.h"

/* Which keys host `host` accepts now, and which it sends with. A rotation (fault key-rotate) hands the new file out
 * over `for`; everybody sends with the new key when all have it; the old one is dropped at twice `for`. */
static size_t keys_of(const struct world *w, int host, struct probe_key keys[2], int *ret_send)
{
    const struct scenario_fault *f = NULL;

    for (int i = 0; i < w->scenario->fault_count; i++) {
        if (w->scenario->fault[i].kind == FAULT_KEY_ROTATE) {
            f = &w->scenario->fault[i];
        }
    }
    keys[0] = w->keys[0];
    *ret_send = 0;
    if (f == NULL) {
        return 1;
    }
    const int64_t takes = f->for_ns > 0 ? f->for_ns : NS_PER_S;
    if (w->now < f->at_ns + takes * host / w->host_count) {
        return 1;
    }
    if (w->now < f->at_ns + 2 * takes) {
        keys[1] = w->keys[1];
        *ret_send = w->now < f->at_ns + takes ? 0 : 1;
        return 2;
    }
    keys[0] = w->keys[1];
    return 1;
}

void world_wire(struct world *w, uint32_t packet, int receiver)
{
    struct packet *p = &w->packets[packet];
    struct probe_key mine[2], theirs[2];
    uint8_t bytes[PROBE_SIZE];
    struct probe probe;
    int send = 0, unused = 0;

    (void)keys_of(w, (int)p->src / w->nics_per_host, mine, &send);
    const size_t count = keys_of(w, receiver, theirs, &unused);
    probe_encode(bytes, &p->receive.probe, &mine[send]);
    enum probe_error error = probe_decode(bytes, sizeof(bytes), theirs, count, &probe);
    if (error == PROBE_OK && probe.version > w->hosts[receiver].version) {
        error = PROBE_ERROR_VERSION_NEWER; /* what an older agent's decoder says */
    }
    if (error != PROBE_OK) {
        p->stage = (uint8_t)error;
        world_deliver(w, receiver, p->sent + 10000, INBOX_BAD, packet);
        return;
    }
    p->receive.probe = probe;
    world_launch(w, packet);
}

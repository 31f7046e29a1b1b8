/* wire.c: probes as bytes, for scenarios that need them: then keys, versions and the codec itself take part. */
#include "sim/world.h"

#include "wire/probe_field.h"

#include <math.h>
#include <string.h>

/* The keys that host `host` accepts now, and the key that it sends with. A rotation (fault key-rotate) gives out the new file
 * during `for`. All hosts send with the new key when all have it. The old key is dropped at twice `for`. */
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

/* ---- lies ---- */
#define DRIFT_NS (10 * NS_PER_S) /* a drifting lie reaches its full size then */

bool world_lies_in_field(const struct world_host *h)
{
    return h->lie != NULL && h->lie->lie != LIE_OLDEST && h->lie->lie != LIE_UTC &&
           (h->lie->lie >= LIE_FROZEN || strcmp(probe_fields[h->lie->field].name, "map_x") != 0);
}

/* An extreme value, which a decoder's author may have forgotten. */
static uint64_t some_end(struct prng *p, unsigned bits)
{
    const uint64_t all = bits == 64 ? UINT64_MAX : (1ULL << bits) - 1;
    const uint64_t ends[] = {0, 1, all, all >> 1, (all >> 1) + 1, all - 1};

    return ends[prng_below(p, ARRAY_COUNT(ends))];
}

static void lie_in_field(struct world *w, struct world_host *h, const struct packet *p,
                         uint8_t bytes[static PROBE_SIZE])
{
    const struct scenario_fault *f = h->lie;
    const struct probe_field *field = &probe_fields[f->field];
    const int64_t by = f->amount != 0 ? f->amount : f->size_ns;
    uint64_t value = probe_field_get(bytes, field);

    if ((field->in & probe_field_kind(p->receive.probe.type)) == 0) {
        return;
    }
    switch (f->lie) {
    case LIE_RANDOM:
        value += (uint64_t)(int64_t)((2 * prng_uniform(&h->random) - 1) * (double)by);
        break;
    case LIE_DRIFTING:
        value +=
            (uint64_t)(int64_t)((double)by * fmin(1, (double)(w->now - h->lie_since) / DRIFT_NS));
        break;
    case LIE_TWO_FACED:
        value += (hash_u64(3, p->dst / (uint32_t)w->nics_per_host) & 1) != 0 ? (uint64_t)by
                                                                             : -(uint64_t)by;
        break;
    case LIE_FROZEN:
        h->frozen = h->frozen_known ? h->frozen : value;
        h->frozen_known = true;
        value = h->frozen;
        break;
    case LIE_ENDS:
        value = some_end(&h->random, 8u * field->size);
        break;
    default:
        value += (uint64_t)by;
        break;
    }
    probe_field_put(bytes, field, value);
}

/* ---- from sender to receiver ---- */
void world_wire(struct world *w, uint32_t packet, int receiver)
{
    struct packet *p = &w->packets[packet];
    struct probe_key mine[2], theirs[2];
    uint8_t bytes[PROBE_SIZE];
    struct probe probe;
    int send = 0, unused = 0;

    (void)keys_of(w, (int)p->src / w->nics_per_host, mine, &send);
    const size_t count = keys_of(w, receiver, theirs, &unused);
    struct world_host *sender = &w->hosts[p->src / (uint32_t)w->nics_per_host];
    probe_encode(bytes, &p->receive.probe, &mine[send]);
    if (world_lies_in_field(sender)) {
        lie_in_field(w, sender, p, bytes);
        probe_seal(bytes, &mine[send]);
    }
    enum probe_error error = probe_decode(bytes, sizeof(bytes), theirs, count, &probe);
    if (error == PROBE_OK && probe.version > w->hosts[receiver].version) {
        error = PROBE_ERROR_VERSION_NEWER; /* the error of an older agent's decoder */
    }
    if (error != PROBE_OK) {
        p->stage = (uint8_t)error;
        world_deliver(w, receiver, p->sent + 10000, INBOX_BAD, packet);
        return;
    }
    p->receive.probe = probe;
    world_launch(w, packet);
}

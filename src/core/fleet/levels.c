/* levels.c: service levels, judged over all paths. */
#include "core/fleet/levels.h"

#include <string.h>

#include "core/fleet/delay_code.h"

void levels_keep(struct levels *fresh, const struct levels *before)
{
    for (uint32_t i = 0; before != NULL && i < fresh->count; i++) {
        for (uint32_t k = 0; k < before->count; k++) {
            const struct level *a = &fresh->entries[i].level, *b = &before->entries[k].level;
            if (strcmp(a->name, b->name) == 0 && a->kind == b->kind && a->limit == b->limit &&
                a->within == b->within) {
                fresh->entries[i].state = before->entries[k].state;
                fresh->entries[i].since_utc_ns = before->entries[k].since_utc_ns;
            }
        }
    }
}

uint32_t levels_pod(const struct levels *v, const char *leaf)
{
    for (uint32_t i = 0; i < v->leaf_count && leaf[0] != 0; i++) {
        if (strcmp(v->leaves[i].leaf, leaf) == 0) {
            return v->leaves[i].pod;
        }
    }
    return 0;
}

bool levels_due(const struct levels *v, struct mono now, struct span report)
{
    return v->count > 0 && mono_sub(now, v->judged).ns >= report.ns;
}

bool levels_about(const struct levels *v, const struct level *level, const struct levels_nic *a,
                  const struct levels_nic *b)
{
    switch (level->within) {
    case LEVEL_LEAF:
        return a->leaf[0] != 0 && strcmp(a->leaf, b->leaf) == 0;
    case LEVEL_POD:
        return levels_pod(v, a->leaf) != 0 && levels_pod(v, a->leaf) == levels_pod(v, b->leaf);
    case LEVEL_RAIL:
        return a->rail == b->rail;
    default:
        return true;
    }
}

int64_t levels_value(const struct level *level, const struct levels_path *p)
{
    const int32_t code = level->kind == LEVEL_OWD_P50 ? p->owd_p50 : p->owd_p99;

    if (!p->known) {
        return -1;
    }
    switch (level->kind) {
    case LEVEL_LOSS:
        return (int64_t)p->loss_ppm;
    case LEVEL_HOPS:
        return p->hops != 0 ? (int64_t)p->hops : -1;
    default: { /* below 0: less than the clocks' bound, so it counts as measured */
        const int64_t delay = code != DELAY_CODE_NONE ? delay_decode(code) : -1;
        return code != DELAY_CODE_NONE && delay < 0 ? 0 : delay;
    }
    }
}

void levels_begin(struct level_entry *e, uint32_t *broken, uint32_t nics)
{
    memset(broken, 0, nics * sizeof(*broken));
    level_begin(&e->state);
}

void levels_add(const struct levels *v, struct level_entry *e, const struct levels_path *p,
                uint32_t *broken)
{
    if (!levels_about(v, &e->level, &p->sends, &p->receives)) {
        return;
    }
    const struct level_path path = {p->from, p->to, p->port, levels_value(&e->level, p)};
    if (level_add(&e->state, &e->level, &path)) {
        broken[p->from]++;
        broken[p->to]++;
    }
}

void levels_end(struct level_entry *e, const uint32_t *broken, uint32_t nics)
{
    e->offender_count = 0;
    for (uint32_t nic = 0; nic < nics; nic++) {
        uint32_t at = e->offender_count;
        if (broken[nic] == 0) {
            continue;
        }
        while (at > 0 && e->offenders[at - 1].paths < broken[nic]) {
            at--;
        }
        if (at < LEVELS_OFFENDERS) {
            const uint32_t last =
                e->offender_count < LEVELS_OFFENDERS ? e->offender_count++ : LEVELS_OFFENDERS - 1;
            memmove(&e->offenders[at + 1], &e->offenders[at],
                    (last - at) * sizeof(e->offenders[0]));
            e->offenders[at] = (struct level_offender){nic, broken[nic]};
        }
    }
}

uint32_t levels_broken(const struct levels *v)
{
    uint32_t count = 0;

    for (uint32_t i = 0; v != NULL && i < v->count; i++) {
        count += v->entries[i].state.verdict == LEVEL_BROKEN;
    }
    return count;
}

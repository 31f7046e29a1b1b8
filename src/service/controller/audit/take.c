/* take.c: a host's sheet, by parts, into the store. A part's name is what its bytes hash to here, whatever the
 * host says. */
#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>

#include "core/audit/part.h"
#include "service/controller/audit/audit.h"

static struct audit_member *waiting_member(struct controller *c, const struct fleet_host *h,
                                           const Foliot__V1__Sheet *sheet)
{
    struct audit_run *run = c->audits != NULL ? c->audits->running : NULL;
    if (run == NULL || run->state != AUDIT_READING || sheet->audit != (uint64_t)run->id ||
        sheet->number != run->number) {
        return NULL;
    }
    for (uint32_t i = 0; i < run->count; i++) {
        if (run->members[i].host == h->id) {
            return run->members[i].waits ? &run->members[i] : NULL;
        }
    }
    return NULL;
}

/* 1: it is as the store has it by now; 0: the store has another one. */
static int take_part(struct controller *c, const struct fleet_host *h,
                     const Foliot__V1__SheetPart *part, int64_t at_ns, size_t *stored)
{
    uint8_t hash[STORE_HASH_SIZE];
    const unsigned number = sheet_part_by_name(part->name);
    if (number == PART_COUNT ||
        number == PART_NOW) { /* of a later release; or kept with the look */
        return 1;
    }
    if (part->body.len == 0) {
        return part->hash.len == sizeof(hash)
                   ? store_part_is(c->store, h->id, part->name, part->hash.data)
                   : 0;
    }
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, part->body.data, part->body.len, hash) < 0) {
        return -ENOMEM;
    }
    const int same = store_part_is(c->store, h->id, part->name, hash);
    if (same != 0) {
        return same;
    }
    *stored += part->body.len;
    const int r =
        store_part_put(c->store, h->id, part->name, at_ns, hash, part->body.data, part->body.len);
    return r < 0 ? r : 1;
}

/* Parts that the host has no longer become empty ones. */
static int drop_parts(struct controller *c, const struct fleet_host *h,
                      const Foliot__V1__Sheet *sheet, int64_t at_ns)
{
    static const char none[] = "";
    uint8_t hash[STORE_HASH_SIZE];
    int r = gnutls_hash_fast(GNUTLS_DIG_SHA256, none, 0, hash) < 0 ? -ENOMEM : 0;
    for (unsigned number = 0; number < PART_NOW && r == 0; number++) {
        bool there = false;
        for (size_t i = 0; i < sheet->n_parts && !there; i++) {
            there = sheet_part_by_name(sheet->parts[i]->name) == number;
        }
        r = there ? 0
                  : store_part_put(c->store, h->id, sheet_part_name(number), at_ns, hash, none, 0);
    }
    return r;
}

static int take_parts(struct controller *c, struct fleet_host *h, const Foliot__V1__Sheet *sheet,
                      int64_t at_ns, size_t *stored)
{
    struct store_look look = {.host = h->id,
                              .at_ns = at_ns,
                              .left_out = sheet->left_out,
                              .refused = sheet->refused,
                              .now = ""};
    int r = 1;
    for (size_t i = 0; i < sheet->n_parts && r > 0; i++) {
        const Foliot__V1__SheetPart *part = sheet->parts[i];
        if (strcmp(part->name, sheet_part_name(PART_NOW)) == 0) {
            look.now = part->body.data;
            look.now_size = part->body.len;
        }
        r = take_part(c, h, part, at_ns, stored);
    }
    if (r > 0 && sheet->refused[0] == 0) {
        const int dropped = drop_parts(c, h, sheet, at_ns);
        r = dropped < 0 ? dropped : r;
    }
    if (r > 0) {
        *stored += look.now_size;
        const int put = store_look_put(c->store, &look);
        r = put < 0 ? put : r;
    }
    return r;
}

int audit_take(struct controller *c, struct fleet_host *h, const Foliot__V1__Sheet *sheet,
               int64_t at_ns, size_t *ret_stored)
{
    struct audit_member *m = waiting_member(c, h, sheet);
    struct audit_known *known = audit_known_of(c, h);
    if (m == NULL || known == NULL) { /* late, or of nobody's asking */
        return 0;
    }
    const int r = take_parts(c, h, sheet, at_ns, ret_stored);
    if (r <= 0) {
        known->whole = known->whole || r == 0; /* it is asked for all of them */
        return r;
    }
    known->whole = false;
    m->waits = false;
    m->looked = sheet->refused[0] == 0;
    if (!m->looked) {
        m->missing = REASON_NO_SOURCE;
        snprintf(m->note, sizeof(m->note), "%.150s", sheet->refused);
    }
    c->audits->running->unanswered--;
    controller_touch(c);
    return 0;
}

/* take.c: stores a host's sheet, part by part. Parts are named by the hash that the controller computes, not by the hash that
 * the host sends. */
#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "core/audit/diff.h"
#include "core/audit/part.h"
#include "service/audit/sheet.h"
#include "service/controller/audit/audit.h"
#include "service/controller/fleet/quota.h"
#include "service/controller/fleet/state.h"

enum { CHANGES_TOLD = 32 }; /* events per host and look */

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

struct taking {
    struct controller *c;
    struct fleet_host *h;
    int64_t at_ns;
    size_t stored;
    struct sheet *was; /* the sheet before; NULL: no part has changed */
};

static int put_part(struct taking *t, const char *part, const uint8_t hash[STORE_HASH_SIZE],
                    const void *body, size_t size)
{
    int r = t->was == NULL ? audit_sheet(t->c->store, t->h->id, t->h->name, INT64_MAX, &t->was) : 0;
    t->stored += size;
    return r < 0 ? r : store_part_put(t->c->store, t->h->id, part, t->at_ns, hash, body, size);
}

/* Returns 1: the store has this part now; 0: the store has another content. */
static int take_part(struct taking *t, const Foliot__V1__SheetPart *part)
{
    uint8_t hash[STORE_HASH_SIZE];
    const unsigned number = sheet_part_by_name(part->name);
    if (number == PART_COUNT || number == PART_NOW) {
        /* a part of a later release, or one that is kept with the look */
        return 1;
    }
    if (part->body.len == 0) {
        return part->hash.len == sizeof(hash)
                   ? store_part_is(t->c->store, t->h->id, part->name, part->hash.data)
                   : 0;
    }
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, part->body.data, part->body.len, hash) < 0) {
        return -ENOMEM;
    }
    const int same = store_part_is(t->c->store, t->h->id, part->name, hash);
    if (same != 0) {
        return same;
    }
    const int r = put_part(t, part->name, hash, part->body.data, part->body.len);
    return r < 0 ? r : 1;
}

/* A part that the host no longer has becomes an empty one. */
static int drop_parts(struct taking *t, const Foliot__V1__Sheet *sheet)
{
    static const char none[] = "";
    uint8_t hash[STORE_HASH_SIZE];
    int r = gnutls_hash_fast(GNUTLS_DIG_SHA256, none, 0, hash) < 0 ? -ENOMEM : 0;
    for (unsigned number = 0; number < PART_NOW && r == 0; number++) {
        const char *name = sheet_part_name(number);
        bool there = false;
        for (size_t i = 0; i < sheet->n_parts && !there; i++) {
            there = sheet_part_by_name(sheet->parts[i]->name) == number;
        }
        const int same = there ? 1 : store_part_is(t->c->store, t->h->id, name, hash);
        r = same != 0 ? (same < 0 ? same : 0) : put_part(t, name, hash, none, 0);
    }
    return r;
}

/* Returns 1: the sheet was taken; 0: a part has only a hash, and the store has another content. */
static int take_parts(struct taking *t, const Foliot__V1__Sheet *sheet)
{
    struct store_look look = {.host = t->h->id,
                              .at_ns = t->at_ns,
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
        r = take_part(t, part);
    }
    if (r > 0 && sheet->refused[0] == 0) {
        const int dropped = drop_parts(t, sheet);
        r = dropped < 0 ? dropped : r;
    }
    if (r > 0) {
        t->stored += look.now_size;
        const int put = store_look_put(t->c->store, &look);
        r = put < 0 ? put : r;
    }
    return r;
}

/* ---- events of changes ---- */

static int tell_change(struct controller *c, struct fleet_host *h, const struct fact_change *change,
                       int64_t at_ns)
{
    const struct fact *any = change->is != NULL ? change->is : change->was;
    const char *text = NULL;
    size_t size = 0;
    struct json_writer j;
    if (!state_keeps_event(c, h, quota_keeps_events(h))) {
        return 0;
    }
    json_writer_init(&j, 16 << 10);
    json_put_object(&j, NULL);
    json_put_string(&j, "fact", fact_name(any->id));
    json_put_string(&j, "subject", any->subject);
    json_put_string(&j, "was", change->was != NULL ? change->was->value : NULL);
    json_put_string(&j, "is", change->is != NULL ? change->is->value : NULL);
    json_put_end(&j);
    int r = json_writer_finish(&j, &text, &size);
    const struct store_event event = {
        .at_ns = at_ns, .host = h->id, .kind = "host", .word = "fact-changed", .body = text};
    r = r < 0 ? r : state_event(c, &event);
    json_writer_done(&j);
    return r;
}

static int tell_changes(struct controller *c, struct fleet_host *h, const struct sheet *was,
                        int64_t at_ns)
{
    struct sheet *is = NULL;
    struct fact_change change;
    int r = audit_sheet(c->store, h->id, h->name, INT64_MAX, &is);
    struct sheet_diff diff = {.was = was, .is = is};
    for (int told = 0; r == 0 && told < CHANGES_TOLD && sheet_diff_next(&diff, &change); told++) {
        r = tell_change(c, h, &change, at_ns);
    }
    sheet_free(is);
    return r;
}

int audit_take(struct controller *c, struct fleet_host *h, const Foliot__V1__Sheet *sheet,
               int64_t at_ns, size_t *ret_stored)
{
    struct audit_member *m = waiting_member(c, h, sheet);
    struct audit_known *known = audit_known_of(c, h);
    if (m == NULL || known == NULL) { /* late, or not asked for */
        return 0;
    }
    if (sheet->refused[0] != 0 &&
        c->audits->running->second) { /* its first sheet stays, like that of a late host */
        m->waits = false;
        c->audits->running->unanswered--;
        controller_touch(c);
        return 0;
    }
    struct taking t = {.c = c, .h = h, .at_ns = at_ns};
    int r = take_parts(&t, sheet);
    *ret_stored = t.stored;
    if (r > 0 && t.was != NULL && t.was->count > 0) {
        const int told = tell_changes(c, h, t.was, at_ns);
        r = told < 0 ? told : r;
    }
    sheet_free(t.was);
    if (r <= 0) {
        known->whole = known->whole || r == 0; /* all parts are requested next time */
        return r;
    }
    known->whole = false;
    m->waits = false;
    m->unsaved = true;
    m->looked = sheet->refused[0] == 0;
    if (!m->looked) {
        m->missing = REASON_NO_SOURCE;
        plain_text(sheet->refused, m->note, sizeof(m->note));
    }
    c->audits->running->unanswered--;
    controller_touch(c);
    return 0;
}

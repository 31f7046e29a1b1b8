/* past.c: see past.h. */
#include "service/controller/audit/past.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/audit/part.h"
#include "platform/message/message.h"
#include "service/audit/sheet.h"

/* ---- the accepted audit ---- */

static int take_accepted(void *context, const struct store_audit_run *row)
{
    struct audit_accepted *a = context;
    json_t *body = json_loads(row->body, 0, NULL);
    const json_t *accepted = json_object_get(body, "accepted");
    const char *name = json_string_value(json_object_get(accepted, "name"));
    const int64_t at_ns = json_integer_value(json_object_get(accepted, "at_utc_ns"));
    const time_t at = (time_t)(at_ns / NS_PER_S);
    struct tm tm = {0};
    char day[16] = "";

    gmtime_r(&at, &tm);
    strftime(day, sizeof(day), "%Y-%m-%d", &tm);
    *a = (struct audit_accepted){
        row->id, json_integer_value(json_object_get(body, "started_utc_ns")), row->ended_ns, ""};
    snprintf(a->words, sizeof(a->words), "audit %lld%s%s, accepted %s", (long long)row->id,
             name != NULL && name[0] != 0 ? " " : "", name != NULL ? name : "", day);
    json_decref(body);
    return 1; /* the newest acceptance comes first */
}

int audit_accepted_newest(struct store *store, struct audit_accepted *ret)
{
    *ret = (struct audit_accepted){0};
    const int r = store_audit_accepted(store, take_accepted, ret);
    return r < 0 ? r : 0;
}

/* ---- kept ---- */

int audit_past_pack(const struct sheet *s, struct audit_past *ret)
{
    struct message_buffer packed = {0};
    const size_t size = sheet_part_encode(s, PART_NOW, NULL, 0);
    if (size > STORE_BODY_MAX) {
        return 0; /* the store would refuse it, and with it the results of all hosts */
    }
    char *text = malloc(size + 1);
    int r = text == NULL ? -ENOMEM : 0;

    if (r == 0) {
        (void)sheet_part_encode(s, PART_NOW, text, size);
        r = gnutls_hash_fast(GNUTLS_DIG_SHA256, text, size, ret->hash) < 0 ? -ENOMEM : 0;
    }
    r = r < 0 ? r : message_pack(text, size, &packed);
    free(text);
    if (r < 0) {
        message_buffer_done(&packed);
        return r;
    }
    /* one per host is held until the audit ends: give back unused memory */
    void *less = realloc(packed.bytes, packed.size);
    ret->packed = less != NULL ? less : packed.bytes;
    ret->size = packed.size;
    return 0;
}

/* ---- and found again ---- */

struct found {
    struct sheet *sheet; /* NULL: not found */
    bool (*keep)(enum fact_id);
};

/* Copies these facts into a sheet of exactly the needed size. */
static struct sheet *only(const struct sheet *of, bool (*keep)(enum fact_id))
{
    struct sheet *s = calloc(1, sizeof(*s));
    size_t size = 1, count = 0;

    for (uint32_t i = 0; i < of->count; i++) {
        const struct fact *f = &of->facts[i];
        if (keep == NULL || keep((enum fact_id)f->id)) {
            size += strlen(f->subject) + strlen(f->value) + strlen(f->source) + 4 +
                    (f->peer != NULL ? strlen(f->peer) : 0);
            count++;
        }
    }
    if (s == NULL) {
        return NULL;
    }
    *s = (struct sheet){.host = "",
                        .facts = calloc(count + 1, sizeof(*s->facts)),
                        .text = malloc(size),
                        .capacity = (uint32_t)count,
                        .text_size = size};
    if (s->facts == NULL || s->text == NULL) {
        return sheet_free(s);
    }
    for (uint32_t i = 0; i < of->count; i++) {
        if (keep == NULL || keep((enum fact_id)of->facts[i].id)) {
            sheet_add(s, &of->facts[i]);
        }
    }
    return s;
}

static int take_now(void *context, const struct store_part *part)
{
    struct found *f = context;
    struct sheet all = {.capacity = sheet_part_facts(part->body, part->size),
                        .text_size = part->size + part->size / 2 + 1};

    all.facts = calloc(all.capacity, sizeof(*all.facts));
    all.text = malloc(all.text_size);
    if (all.facts != NULL && all.text != NULL) {
        sheet_part_restore(&all, part->body, part->size);
        f->sheet = only(&all, f->keep);
    }
    sheet_done(&all);
    if (f->sheet == NULL) {
        return -ENOMEM;
    }
    f->sheet->at_utc_ns = part->at_ns;
    f->sheet->left_out += all.left_out;
    sheet_finish(f->sheet);
    return 0;
}

int audit_past_sheet(struct store *store, int64_t host, int64_t from_ns, int64_t to_ns,
                     bool (*keep)(enum fact_id), struct sheet **ret_sheet)
{
    struct found f = {.keep = keep};
    const int r = store_part_now(store, host, from_ns, to_ns, take_now, &f);
    if (r < 0) {
        sheet_free(f.sheet);
        return r;
    }
    *ret_sheet = f.sheet;
    return 0;
}

int audit_past_add(struct store *store, int64_t host, const struct audit_accepted *accepted,
                   struct sheet *s)
{
    struct sheet *was = NULL, *then = NULL;
    int r = s->at_utc_ns == 0
                ? 0
                : audit_past_sheet(store, host, s->at_utc_ns - PAST_DAY_NS,
                                   s->at_utc_ns - PAST_LEAST_NS, fact_is_counter, &was);
    if (r == 0 && accepted->run != 0) {
        r = audit_past_sheet(store, host, accepted->began_ns, accepted->ended_ns, fact_is_measured,
                             &then);
    }
    if (then != NULL &&
        then->at_utc_ns < accepted->began_ns) { /* that audit did not include this host */
        then = sheet_free(then);
    }
    if (then != NULL) {
        then->run = accepted->words;
    }
    s->was = was;
    s->accepted = then;
    return r;
}

static int add_facts(void *context, const struct store_part *part)
{
    sheet_part_decode(context, part->body, part->size);
    return 0;
}

int audit_past_whole(struct store *store, int64_t host, const char *name, int64_t at_ns,
                     const struct audit_accepted *accepted, struct sheet **ret_sheet)
{
    struct sheet *now = NULL, *s = NULL;
    int r = audit_past_sheet(store, host, at_ns, at_ns, NULL, &now);
    const bool kept = r == 0 && now != NULL && now->at_utc_ns == at_ns;
    if (kept) {
        s = sheet_new();
        r = s == NULL ? -ENOMEM : 0;
    }
    if (kept && r == 0) {
        s->host = sheet_keep(s, name);
        s->at_utc_ns = at_ns;
        s->left_out = now->left_out;
        for (uint32_t i = 0; i < now->count; i++) {
            sheet_add(s, &now->facts[i]);
        }
        r = store_parts(store, host, at_ns, add_facts, s);
        sheet_finish(s);
        r = r < 0 ? r : audit_past_add(store, host, accepted, s);
    }
    sheet_free(now);
    if (r < 0) {
        s = sheet_free(s);
    }
    *ret_sheet = s;
    return r;
}

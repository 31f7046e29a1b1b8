/* liar.c: one host of a fleet reports false facts: liar SHEETS TRIALS SEED. No other host may fail by that.
 *
 * SHEETS is a folder of sheets of one kind: h1.json, h2.json … In each trial some of them are a fleet. The last sheet gets
 * another value, or none, for one fact or for all facts of one kind. Identities are left out: if two hosts have the same one,
 * both must fail, because jobs must run on neither. Prints the trials in which another host fails that did not fail before. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/audit/judge.h"
#include "service/audit/sheet.h"
#include "service/audit/sheet_json.h"

enum { SHEETS_MAX = 12, RESULTS_MAX = 32768 };

struct fleet {
    struct sheet sheets[SHEETS_MAX];
    uint32_t count;
    struct audit audit;
};

static struct sheet all[SHEETS_MAX];
static uint32_t all_count;
static struct fleet honest, lied;

static void stop(const char *what)
{
    fprintf(stderr, "liar: %s\n", what);
    exit(1);
}

static void load(const char *folder)
{
    char path[PATH_MAX];
    for (; all_count < SHEETS_MAX; all_count++) {
        const char *why = "";
        snprintf(path, sizeof(path), "%s/h%u.json", folder, all_count + 1);
        json_t *json = json_load_file(path, 0, NULL);
        struct sheet *sheet = json != NULL ? sheet_new() : NULL;
        if (sheet == NULL || sheet_read(json, sheet, &why) < 0) {
            json_decref(json);
            break;
        }
        sheet_finish(sheet);
        all[all_count] = *sheet;
        json_decref(json);
    }
    if (all_count < 3) {
        stop("three sheets are needed");
    }
}

static void prepare(struct fleet *f)
{
    f->audit = (struct audit){.sheets = f->sheets,
                              .settings = &audit_usual,
                              .results = calloc(RESULTS_MAX, sizeof(struct audit_result)),
                              .capacity = RESULTS_MAX,
                              .items = calloc(RESULTS_MAX, audit_item_size()),
                              .item_capacity = RESULTS_MAX,
                              .mentions = calloc(RESULTS_MAX, sizeof(struct audit_mention)),
                              .mention_capacity = RESULTS_MAX,
                              .text = malloc(8 << 20),
                              .text_size = 8 << 20};
    if (f->audit.results == NULL || f->audit.items == NULL || f->audit.mentions == NULL ||
        f->audit.text == NULL) {
        stop("out of memory");
    }
}

static void judge(struct fleet *f, uint32_t count)
{
    f->count = f->audit.sheet_count = count;
    if (audit_judge(&f->audit) < 0) {
        stop("there is no room for all results");
    }
}

static bool failed(const struct fleet *f, const struct audit_result *r)
{
    for (uint32_t i = 0; i < f->audit.count; i++) {
        const struct audit_result *is = &f->audit.results[i];
        if (is->status == AUDIT_FAIL && is->check == r->check && is->sheet == r->sheet &&
            strcmp(is->subject, r->subject) == 0) {
            return true;
        }
    }
    return false;
}

static void lie(struct fact *f, struct prng *p, const struct sheet *other)
{
    static const char *const values[] = {"", "0", "1", "9223372036854775807", "-1", "none", "x"};
    const uint32_t kind = (uint32_t)prng_below(p, 10);
    const struct fact *of = &other->facts[prng_below(p, other->count)];
    if (kind < 7) {
        *f = (struct fact){f->id, FACT_VALUE, f->subject, values[kind], f->source};
    } else if (kind == 7) {
        f->state = FACT_ABSENT;
    } else if (kind == 8) { /* another host's value for a fact of this kind */
        of = sheet_find(other, (enum fact_id)f->id, f->subject);
        *f = of != NULL ? *of : *f;
    } else { /* a fact of the other host that this host doesn't have */
        *f = (struct fact){f->id, f->state, of->subject, f->value, f->source};
    }
}

static bool is_identity(const struct fact *f)
{
    return f->id == FACT_OS_MACHINE_ID || f->id == FACT_RDMA_GUID;
}

/* Changes facts of the last of `count` sheets. Returns the fact from which it began, for the message. */
static const struct fact *change(struct fleet *f, uint32_t count, struct fact *memory,
                                 struct prng *p)
{
    struct sheet *s = &f->sheets[count - 1];
    *s = all[count - 1];
    s->facts = memory;
    memcpy(memory, all[count - 1].facts, s->count * sizeof(*memory));
    const uint32_t at = (uint32_t)prng_below(p, s->count);
    const bool of_kind = prng_below(p, 3) == 0;
    const uint16_t id = s->facts[at].id;
    for (uint32_t i = 0; i < s->count; i++) {
        if ((i == at || (of_kind && s->facts[i].id == id)) && !is_identity(&s->facts[i])) {
            lie(&s->facts[i], p, &all[prng_below(p, count - 1)]);
        }
    }
    sheet_finish(s);
    return &all[count - 1].facts[at];
}

static uint32_t tell(const struct fact *fact, uint32_t count, uint64_t trial)
{
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < lied.audit.count; i++) {
        const struct audit_result *r = &lied.audit.results[i];
        if (r->status == AUDIT_FAIL && r->sheet + 1 < count && !failed(&honest, r)) {
            if (wrong++ == 0) {
                printf("trial %llu, %u hosts, fact %u of '%s': host %u fails %s of '%s': %s (%s)\n",
                       (unsigned long long)trial, count, fact->id, fact->subject, r->sheet,
                       r->check->id, r->subject, r->found, r->note);
            }
        }
    }
    return wrong > 0;
}

int main(int argc, char **argv)
{
    struct prng p;
    uint32_t wrong = 0, most = 0;
    if (argc != 4) {
        stop("usage: liar SHEETS TRIALS SEED");
    }
    load(argv[1]);
    prng_init(&p, strtoull(argv[3], NULL, 10));
    prepare(&honest);
    prepare(&lied);
    for (uint32_t i = 0; i < all_count; i++) {
        honest.sheets[i] = lied.sheets[i] = all[i];
        most = all[i].count > most ? all[i].count : most;
    }
    struct fact *memory = calloc(most, sizeof(*memory));
    if (memory == NULL) {
        stop("out of memory");
    }
    const uint64_t trials = strtoull(argv[2], NULL, 10);
    for (uint64_t trial = 0; trial < trials; trial++) {
        const uint32_t count = 2 + (uint32_t)prng_below(&p, all_count - 1);
        const struct fact *fact = change(&lied, count, memory, &p);
        judge(&lied, count);
        lied.sheets[count - 1] = all[count - 1];
        if (honest.count != count) {
            judge(&honest, count);
        }
        wrong += tell(fact, count, trial);
    }
    printf("%u of %llu trials fail another host\n", wrong, (unsigned long long)trials);
    free(memory);
    return wrong > 0;
}

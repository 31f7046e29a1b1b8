/* mounts.c: file systems of other hosts: each one that is mounted answers, and none is missing: as declared, else as most of the
 * cohort have it. */
#include <stdio.h>
#include <string.h>

#include "core/audit/rule_list.h"

static const char no_mounts[] = "none on this host: file system of a mount, by its place";

/* True if it is mounted, or autofs mounts it on demand: autofs is mounted there, or is the next mount above it. */
static bool is_mounted(const struct sheet *s, const char *place)
{
    char at[FACT_SUBJECT_MAX];
    const struct fact *f = sheet_find(s, FACT_MOUNT, place);
    char *end;

    if (f != NULL) {
        return f->state == FACT_VALUE;
    }
    snprintf(at, sizeof(at), "%s", place);
    while (f == NULL && (end = strrchr(at, '/')) != NULL && end != at) {
        *end = '\0';
        f = sheet_find(s, FACT_MOUNT, at);
    }
    return f != NULL && f->state == FACT_VALUE && strcmp(f->value, "autofs") == 0;
}

/* declared: places, separated by blanks. */
static void judge_places(struct judging *j, const char *declared, uint32_t count)
{
    char place[FACT_SUBJECT_MAX];

    for (const char *at = declared; *at != '\0';) {
        const size_t size = strcspn(at, " ");
        snprintf(place, sizeof(place), "%.*s", (int)size, at);
        if (size > 0 && !is_mounted(j->sheet, place)) {
            judge_end(j, AUDIT_FAIL, judge_format(j, "%s is not mounted", place), declared);
            return;
        }
        at += size + (at[size] == ' ');
    }
    judge_end(j, AUDIT_PASS, judge_format(j, "%u are there", count), declared);
}

/* The host's list of mounts. */
static void judge_list(struct judging *j)
{
    const char *declared = j->setting != NULL ? j->setting->declared : NULL;
    uint32_t count;
    const struct fact *listed = sheet_first(j->sheet, FACT_MOUNT, &count);

    for (uint32_t i = 0; i < count; i++) {
        judge_rest(j, &listed[i]);
        if (listed[i].state > FACT_ABSENT) {
            judge_unknown(j, &listed[i]);
            return;
        }
    }
    if (count == 0) {
        judge_unknown(j, NULL);
        return;
    }
    count -= listed[0].state == FACT_ABSENT; /* that one has no subject */
    if (declared != NULL) {
        judge_places(j, declared, count);
    } else if (count == 0 && j->audit->settings->rules_alone) {
        judge_skip(j, no_mounts);
    } else {
        judge_join(j, "", judge_format(j, "%u are there", count), count);
    }
}

/* A mount that hangs is a failure here, not a reason for unknown. */
void rule_mount(struct judging *j)
{
    if (j->subject[0] == '\0') {
        judge_list(j);
        return;
    }
    const struct fact *answers = judge_look(j, FACT_MOUNT_ANSWERS, j->subject);

    if (answers != NULL && (answers->state == FACT_TIMEOUT || answers->state == FACT_STUCK)) {
        judge_end(j, AUDIT_FAIL, fact_state_name(answers->state), "an answer within its deadline");
    } else if (answers == NULL || answers->state != FACT_VALUE) {
        judge_unknown(j, answers);
    } else {
        judge_end(j, strcmp(answers->value, "1") == 0 ? AUDIT_PASS : AUDIT_FAIL,
                  strcmp(answers->value, "1") == 0 ? "answers" : "an error", "an answer");
    }
}

static const struct sheet *sheet_of(const struct audit *a, const struct audit_item *item)
{
    return &a->sheets[a->results[item->result].sheet];
}

static uint32_t count_with(const struct audit *a, const struct audit_item *items, uint32_t count,
                           const char *place, bool (*has)(const struct sheet *s, const char *place))
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < count; i++) {
        n += has(sheet_of(a, &items[i]), place);
    }
    return n;
}

static bool has_fact(const struct sheet *s, const char *place)
{
    return sheet_find(s, FACT_MOUNT, place) != NULL;
}

/* Was the place looked at with one of the hosts before? */
static bool seen_before(const struct audit *a, const struct audit_item *items, uint32_t count,
                        const char *place)
{
    for (uint32_t i = 0; i < count; i++) {
        if (has_fact(sheet_of(a, &items[i]), place)) {
            return true;
        }
    }
    return false;
}

/* Only those that are mounted for good: jobs, users and containers mount theirs where they run, so an idle host has none. */
static bool is_of_site(const struct fact *f)
{
    static const char *const of_jobs[] = {"/run/", "/tmp/", "/var/lib/kubelet/", "/var/lib/docker/",
                                          "/var/lib/containers/"};

    for (size_t i = 0; i < sizeof(of_jobs) / sizeof(*of_jobs); i++) {
        if (strncmp(f->subject, of_jobs[i], strlen(of_jobs[i])) == 0) {
            return false;
        }
    }
    return strncmp(f->value, "fuse", 4) != 0;
}

/* `have` hosts have the place mounted. A minority without it fails or is a warning, as with other values (cohort.c). */
static void settle_place(struct audit *a, const struct audit_item *items, uint32_t count,
                         const char *place, uint32_t have)
{
    const uint32_t lack = count - count_with(a, items, count, place, is_mounted);
    const enum audit_status status = lack <= 1 || lack * 10 <= count ? AUDIT_FAIL : AUDIT_WARN;
    struct judging j = {.audit = a};

    if (lack == 0) {
        return;
    }
    const char *found = judge_format(&j, "%s is not mounted", place),
               *expected = judge_format(&j, "%s is mounted", place),
               *basis = judge_format(&j, "as %u of %u have it", have, count);
    for (uint32_t i = 0; i < count; i++) {
        struct audit_result *r = &a->results[items[i].result];
        /* of several places the worst counts */
        if ((r->status == AUDIT_PASS || (r->status == AUDIT_WARN && status == AUDIT_FAIL)) &&
            !is_mounted(sheet_of(a, &items[i]), place)) {
            r->status = status;
            r->found = found;
            r->expected = expected;
            r->basis = basis;
        }
    }
}

void mounts_settle(struct audit *a, const struct audit_item *items, uint32_t count, uint32_t least)
{
    uint32_t with = 0;

    for (uint32_t i = 0; i < count; i++) {
        a->results[items[i].result].cohort = count;
        with += items[i].number > 0;
    }
    /* a place that two thirds have is with one of any third of them */
    for (uint32_t i = 0; count >= least && i <= count / 3; i++) {
        uint32_t places;
        const struct fact *f = sheet_first(sheet_of(a, &items[i]), FACT_MOUNT, &places);
        for (uint32_t k = 0; k < places && f[k].state == FACT_VALUE; k++) {
            if (!is_of_site(&f[k]) || seen_before(a, items, i, f[k].subject)) {
                continue;
            }
            const uint32_t have = count_with(a, items, count, f[k].subject, has_fact);
            if (have * 3 >= count * 2) {
                settle_place(a, items, count, f[k].subject, have);
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct audit_result *r = &a->results[items[i].result];
        if (items[i].number == 0 && r->status == AUDIT_PASS && (with == 0 || count >= least)) {
            r->status = AUDIT_SKIP;
            r->found = "";
            r->note = no_mounts;
        } else if (count < least) {
            r->status = AUDIT_UNKNOWN;
            r->reason = REASON_SMALL_COHORT;
            r->note = "too few others to compare it with";
        }
    }
}

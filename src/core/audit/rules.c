/* rules.c: the forms of most checks: one of some words, a number up to a limit, a declared value. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/audit/rule_list.h"

bool judge_beyond(double count, double usual)
{
    return count > usual + 3 * sqrt(usual);
}

/* Is `word` one of `words`, which are separated by blanks? */
static bool among(const char *words, const char *word)
{
    const size_t size = strlen(word);

    for (const char *at = words; at != NULL; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, word, size) == 0 && (at[size] == ' ' || at[size] == '\0')) {
            return true;
        }
    }
    return false;
}

void rule_words(struct judging *j)
{
    const char *value = judge_text(j, j->check->facts[0], j->subject);

    if (value != NULL) {
        judge_end(j, among(j->check->words, value) ? AUDIT_PASS : AUDIT_FAIL, value,
                  j->check->words);
    }
}

/* A warning if it is one of `words`. */
void rule_words_not(struct judging *j)
{
    const char *value = judge_text(j, j->check->facts[0], j->subject);

    if (value != NULL) {
        judge_end(j, among(j->check->words, value) ? AUDIT_WARN : AUDIT_PASS, value, NULL);
    }
}

void rule_at_most(struct judging *j)
{
    int64_t number;

    if (judge_number(j, j->check->facts[0], j->subject, &number)) {
        const double value = (double)number;
        judge_end(j,
                  value > j->fail   ? AUDIT_FAIL
                  : value > j->warn ? AUDIT_WARN
                                    : AUDIT_PASS,
                  judge_counted(j, number),
                  judge_format(j, "at most %.15g", value > j->fail ? j->fail : j->warn));
    }
}

void rule_at_least(struct judging *j)
{
    int64_t number;

    if (judge_number(j, j->check->facts[0], j->subject, &number)) {
        const double value = (double)number;
        judge_end(j,
                  value < j->fail   ? AUDIT_FAIL
                  : value < j->warn ? AUDIT_WARN
                                    : AUDIT_PASS,
                  judge_counted(j, number),
                  judge_format(j, "at least %.15g", value < j->fail ? j->fail : j->warn));
    }
}

void rule_declared_least(struct judging *j)
{
    const char *declared = judge_declared(j);
    int64_t number, least;

    if (declared == NULL || !judge_number(j, j->check->facts[0], j->subject, &number)) {
        return;
    }
    if (!fact_number(declared, &least)) {
        judge_skip(j, "what is declared is no number");
        return;
    }
    judge_end(j, number < least ? AUDIT_FAIL : AUDIT_PASS, judge_counted(j, number),
              judge_format(j, "at least %lld, as declared", (long long)least));
}

/* The number of listed subjects: as many as declared, or as others have. */
void rule_count(struct judging *j)
{
    uint32_t count;
    const struct fact *listed = sheet_first(j->sheet, j->check->facts[0], &count);

    for (uint32_t i = 0; i < count; i++) {
        if (listed[i].state == FACT_ABSENT && listed[i].subject[0] == '\0' && count == 1) {
            judge_look(j, listed[i].id, listed[i].subject);
            judge_join(j, "", "0", 0);
            return;
        }
        if (listed[i].state != FACT_VALUE) {
            judge_unknown(j, judge_look(j, listed[i].id, listed[i].subject));
            return;
        }
    }
    if (count == 0) {
        judge_unknown(j, NULL);
        return;
    }
    judge_look(j, listed[0].id, listed[0].subject);
    judge_join(j, "", judge_format(j, "%u", count), 0);
}

/* Required and forbidden names among those listed: "slurmd !firewalld". */
void rule_names(struct judging *j)
{
    const char *declared = judge_declared(j);
    char name[128];
    uint32_t count;

    if (declared == NULL) {
        return;
    }
    const struct fact *listed = sheet_first(j->sheet, j->check->facts[0], &count);
    if (count == 0 || listed[0].state != FACT_VALUE) {
        judge_unknown(j, count == 0 ? NULL : judge_look(j, listed[0].id, listed[0].subject));
        return;
    }
    judge_look(j, listed[0].id, listed[0].subject);
    for (const char *at = declared; *at != '\0';) {
        const size_t size = strcspn(at, " ");
        const bool no = *at == '!';
        snprintf(name, sizeof(name), "%.*s", (int)(size - no), at + no);
        const struct fact *f = sheet_find(j->sheet, j->check->facts[0], name);
        if (name[0] != '\0' && (f != NULL && f->state == FACT_VALUE) == no) {
            judge_end(j, AUDIT_FAIL,
                      judge_format(j, "%s %s", name, no ? "is there" : "is not there"), declared);
            return;
        }
        at += size + (at[size] == ' ');
    }
    judge_end(j, AUDIT_PASS, judge_format(j, "%u are there", count), declared);
}

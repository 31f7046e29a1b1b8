/* rule.h: the building blocks of the catalogue's rules; of core/audit alone.
 *
 * A rule looks up facts and ends with a verdict. A fact without a value ends it as unknown: the functions that look up then
 * return NULL or false, the result is set, and the rule returns. */
#pragma once
#include "core/audit/judge.h"

struct judging {
    struct audit *audit;
    const struct check *check;
    /* as it is for this host; NULL: the site has set nothing */
    const struct check_setting *setting;
    const struct sheet *sheet;
    const char *subject;
    struct audit_result *result;
    double fail, warn;
};

/* A member of a cohort, until all members are known. */
struct audit_item {
    uint32_t result;
    const char *product, *key, *value;
    double number, least;
    uint64_t vote; /* its share of its host's one vote */
    bool once;     /* it was measured once: a first sight is no failure */
};

/* Sets fail and warn: the check's limits, or those that the site has set. */
void judge_limits(struct judging *j);
/* The fact, in any state, as evidence. NULL: the sheet has none. */
const struct fact *judge_look(struct judging *j, enum fact_id id, const char *subject);
/* Adds a fact of another host's sheet as evidence. */
void judge_rest(struct judging *j, const struct fact *fact);
const char *judge_text(struct judging *j, enum fact_id id, const char *subject);
bool judge_number(struct judging *j, enum fact_id id, const char *subject, int64_t *ret_number);
/* The verdict is unknown, with the fact's own reason. */
void judge_unknown(struct judging *j, const struct fact *fact);
/* `found` is of this fact, not of the check's first one. */
void judge_found_in(struct judging *j, enum fact_id id);
/* The verdict. The texts found and expected are not copied; NULL is "". */
void judge_end(struct judging *j, enum audit_status status, const char *found,
               const char *expected);
void judge_skip(struct judging *j, const char *why);
/* Text in the audit's own memory; "" if there is no room (the audit is then `full`). */
const char *judge_format(struct judging *j, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "1 (swap areas in use)": a value of the check's first fact, and the thing that it counts. */
const char *judge_counted(struct judging *j, int64_t number);
/* Adds the member to its cohort. key: another value that all members share. */
void judge_join(struct judging *j, const char *key, const char *value, double number);
/* The same for a number that is judged by its distance from the others. A distance below `least` doesn't count. */
void judge_join_apart(struct judging *j, const char *key, const char *value, double number,
                      double least);
/* The value that the site declares for this check; NULL: there is none, and the result is a skip. */
const char *judge_declared(struct judging *j);

/* More than chance explains, if so many are usual: three deviations of a Poisson count. A few events are no rate. */
bool judge_beyond(double count, double usual);

/* Sets the verdicts of one check's cohorts, when all members are known. */
void cohort_settle(struct audit *a, const struct check *c);

/* The same for lists of mounts, of one cohort; least: the fewest members that it needs. */
void mounts_settle(struct audit *a, const struct audit_item *items, uint32_t count, uint32_t least);

/* Rules. They judge facts[0]. */
void rule_same(struct judging *j);     /* as most of the cohort have it */
void rule_near(struct judging *j);     /* at most `fail` (a share) below the cohort's median */
void rule_unique(struct judging *j);   /* no other host has it; the cohort is the whole fleet */
void rule_words(struct judging *j);    /* one of `words` */
void rule_at_most(struct judging *j);  /* above `fail` it fails, above `warn` it warns */
void rule_at_least(struct judging *j); /* below `fail` it fails, below `warn` it warns */
void rule_declared_least(struct judging *j); /* at least the declared value */

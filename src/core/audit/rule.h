/* rule.h: what rules of the catalogue are made of; of core/audit alone.
 *
 * A rule looks facts up and ends with a verdict. A fact that has no value ends it as unknown: the functions that look up
 * return NULL or false then, all is set, and the rule returns. */
#pragma once
#include "core/audit/judge.h"

struct judging {
    struct audit *audit;
    const struct check *check;
    const struct check_setting *setting; /* NULL: none */
    const struct sheet *sheet;
    const char *subject;
    struct audit_result *result;
    double fail, warn;
};

/* A member of a cohort, until all are there. */
struct audit_item {
    uint32_t result;
    const char *product, *key, *value;
    double number, least;
    uint64_t vote; /* its share of its host's one vote */
    bool once;     /* it was measured once: a first sight condemns nobody */
};

/* Sets fail and warn: the check's, or what the site has set. */
void judge_limits(struct judging *j);
/* The fact, whatever its state, as evidence. NULL: the sheet has none. */
const struct fact *judge_look(struct judging *j, enum fact_id id, const char *subject);
/* A fact of another host's sheet, as evidence. */
void judge_rest(struct judging *j, const struct fact *fact);
const char *judge_text(struct judging *j, enum fact_id id, const char *subject);
bool judge_number(struct judging *j, enum fact_id id, const char *subject, int64_t *ret_number);
/* Unknown, for the fact's own reason. */
void judge_unknown(struct judging *j, const struct fact *fact);
/* `found` tells of this fact, and not of the check's first one. */
void judge_found_in(struct judging *j, enum fact_id id);
/* The verdict; found and expected are kept as they are, NULL is "". */
void judge_end(struct judging *j, enum audit_status status, const char *found,
               const char *expected);
void judge_skip(struct judging *j, const char *why);
/* In the audit's own text; "" where there is no room (and the audit is `full`). */
const char *judge_format(struct judging *j, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "1 (swap areas in use)": a value of the check's first fact with what it counts. */
const char *judge_counted(struct judging *j, int64_t number);
/* Joins its cohort; key: what else is the same of all members. */
void judge_join(struct judging *j, const char *key, const char *value, double number);
/* The same for a number that is judged by its distance from the others: less than `least` is none. */
void judge_join_apart(struct judging *j, const char *key, const char *value, double number,
                      double least);
/* What the site declares of this check; NULL after a skip. */
const char *judge_declared(struct judging *j);

/* All members of one check's cohorts are there: their verdicts. */
void cohort_settle(struct audit *a, const struct check *c);

/* Rules. facts[0] is what they judge. */
void rule_same(struct judging *j);    /* as most of the cohort */
void rule_near(struct judging *j);    /* not more than `fail` (a share) below the cohort's median */
void rule_unique(struct judging *j);  /* nobody else has it; a cohort of all */
void rule_words(struct judging *j);   /* one of `words` */
void rule_at_most(struct judging *j); /* above fail it fails, above warn it warns */
void rule_at_least(struct judging *j);       /* below fail it fails, below warn it warns */
void rule_declared_least(struct judging *j); /* is at least what is declared */

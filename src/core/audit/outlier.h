/* outlier.h: who of many that ought to be alike is measured worse, where thousands are measured and some are worse by chance.
 *
 * In two stages. The screen looks at one value of each and names candidates: further from the middle than most, and by at least
 * half of what matters. It condemns nobody: of thousands some are that far off by chance, however far that is. Candidates are
 * measured afresh, beside members from the middle in the same seconds, so that what slows all at once slows both. The verdict
 * is by these retests alone: the median of what they are worse by is at least what matters, and chance is ruled out over all
 * candidates of the run together.
 *
 * How likely chance is: that of a Student t whose freedom is by the cohort's own tails (3 at least, where a few in a
 * thousand are ten spreads off), for one retest; for the median of n of them more than half had to be that far off at once.
 * Three retests are the least, nine the most; who looks like the others ends early, and who would be accepted whatever the
 * rest turn out to be. Each look costs: the probability is multiplied by the looks that could be taken.
 *
 * Units are the caller's, the same for all of one cohort. Sans-I/O; nothing allocates. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum {
    OUTLIER_RETESTS_LEAST = 3,
    OUTLIER_RETESTS_MOST = 9,
    OUTLIER_CONTROLS = 3, /* members beside a candidate: more say little more */
    OUTLIER_COHORT_LEAST = 5,
};
/* Of the candidates that are accepted in a run, the share that may be so by chance. */
#define OUTLIER_FALSE_SHARE 0.001

struct outlier_rule {
    double practical; /* less is no matter, however sure it is */
    double floor;     /* of the spread: what the measurement itself is good for */
    bool low;         /* low values are the worse ones */
};

/* What values of one kind are like. */
struct outlier_cohort {
    struct outlier_rule rule;
    uint32_t count;
    double middle, spread; /* median; 1.4826 times the median distance from it, floor at least */
    double scale;          /* of the Student t */
    uint32_t freedom;      /* the same; 3 … 30 */
};

struct outlier_retest {
    uint32_t count;
    double worse[OUTLIER_RETESTS_MOST]; /* than those beside it, ascending */
    double width; /* of the noise of such a difference, in scales: the widest */
};

/* scratch: `count` values. False: too few to tell what is usual. */
bool outlier_cohort_init(struct outlier_cohort *c, const struct outlier_rule *rule,
                         const double *values, uint32_t count, double *scratch);
/* The screen: is it to be measured again? */
bool outlier_is_candidate(const struct outlier_cohort *c, double value);
/* A retest, and those beside it in the same seconds (1 at least; their middle counts). Reorders `beside`. */
void outlier_add(const struct outlier_cohort *c, struct outlier_retest *t, double own,
                 double *beside, uint32_t count);
/* What it is worse by, by its retests; 0: none. */
double outlier_worse(const struct outlier_retest *t);
/* How likely retests are this bad or worse, if it is like the others. */
double outlier_chance(const struct outlier_cohort *c, const struct outlier_retest *t);
/* One more is to be made; candidates: of the run. */
bool outlier_undecided(const struct outlier_cohort *c, const struct outlier_retest *t,
                       uint32_t candidates);

/* A candidate of the run, of whatever cohort, when its retests are made. */
struct outlier_case {
    const struct outlier_cohort *cohort;
    const struct outlier_retest *retest;
    double chance;
    bool worse; /* out: the verdict */
};
/* All of a run at once (Benjamini and Hochberg 1995). Reorders them by chance. Returns how many are worse. */
uint32_t outlier_judge(struct outlier_case *cases, uint32_t count);

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
 * What noise is like is often not known well: few are measured, or what the first values vary by is not what retests do. So after
 * the last retest the order counts, too, which asks for no noise at all: one like the others is the worst of four in one retest
 * of four, and in all nine in one case of 262,144. Of the chance that is allowed the order has a fifth, and Student's t the rest.
 *
 * Units are the caller's, the same for all of one cohort. Sans-I/O; nothing allocates. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum {
    OUTLIER_RETESTS_LEAST = 3,
    OUTLIER_RETESTS_MOST = 9,
    OUTLIER_CONTROLS = 3, /* members beside a candidate: more add little */
    OUTLIER_COHORT_LEAST = 5,
};
/* Of the accepted candidates of a run, the share that may be accepted by chance. */
#define OUTLIER_FALSE_SHARE 0.001

struct outlier_rule {
    double practical; /* smaller differences don't matter, however sure they are */
    double floor;     /* least spread: the error of the measurement itself */
    bool low;         /* low values are worse */
};

/* The usual values of one kind. */
struct outlier_cohort {
    struct outlier_rule rule;
    uint32_t count;
    /* middle: median. spread: 1.4826 times the median distance from it, at least `floor` */
    double middle, spread;
    double scale;     /* of the Student t */
    uint32_t freedom; /* of the Student t; 3 … 30 */
};

struct outlier_retest {
    uint32_t count;
    double worse[OUTLIER_RETESTS_MOST]; /* difference to the members beside it, ascending */
    double width;                       /* noise of such a difference, in scales: the widest one */
    uint32_t last;                      /* retests in which it was worse than all beside it */
    uint32_t beside;                    /* the fewest of those */
};

/* scratch: room for `count` values. False: there are too few values. */
bool outlier_cohort_init(struct outlier_cohort *c, const struct outlier_rule *rule,
                         const double *values, uint32_t count, double *scratch);
/* The screen: must it be measured again? */
bool outlier_is_candidate(const struct outlier_cohort *c, double value);
/* A retest. beside: members that were measured in the same seconds (at least 1; their middle counts). Reorders `beside`. */
void outlier_add(const struct outlier_cohort *c, struct outlier_retest *t, double own,
                 double *beside, uint32_t count);
/* The difference by its retests; 0: no retest. */
double outlier_worse(const struct outlier_retest *t);
/* The probability that retests are this bad or worse if the member is like the others. */
double outlier_chance(const struct outlier_cohort *c, const struct outlier_retest *t);
/* One more retest is needed. candidates: the number in the run. */
bool outlier_undecided(const struct outlier_cohort *c, const struct outlier_retest *t,
                       uint32_t candidates);

/* A candidate of the run, of any cohort, after its retests. */
struct outlier_case {
    const struct outlier_cohort *cohort;
    const struct outlier_retest *retest;
    double chance;
    bool worse; /* out: the verdict */
};
/* Judges all candidates of a run at once (Benjamini and Hochberg 1995). Sorts them by chance. Returns how many are worse. */
uint32_t outlier_judge(struct outlier_case *cases, uint32_t count);

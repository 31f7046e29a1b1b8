/* check.h: the catalogue: rules over facts, one after another. A check's id stays for ever; a check that changes its meaning gets
 * another one. Sites change values (settings of judge.h), never rules. */
#pragma once
#include "core/audit/fact.h"

enum check_subject {
    SUBJECT_HOST,
    SUBJECT_PCI,
    SUBJECT_GPU,
    SUBJECT_NET,
    SUBJECT_NIC,
    SUBJECT_PORT,
    SUBJECT_OTHER /* disks, mounts, sensors, programs */
};

/* What a failure is worth. */
enum check_severity {
    SEVERITY_BLOCK,  /* no job may begin here */
    SEVERITY_DRAIN,  /* take the host out soon */
    SEVERITY_TICKET, /* mend it when there is time */
    SEVERITY_INFO,
    SEVERITY_COUNT
};

enum check_cost { COST_PASSIVE, COST_PACKETS, COST_BANDWIDTH, COST_EXCLUSIVE, COST_COUNT };

enum check_compare {
    COMPARE_RULE = 1,     /* with a rule that holds anywhere */
    COMPARE_COHORT = 2,   /* with hosts that ought to be alike */
    COMPARE_DECLARED = 4, /* with what the site declares */
    COMPARE_BASELINE = 8, /* with what the host itself had when somebody accepted an audit */
};

/* What makes the members of a cohort alike, besides the product of their hosts. */
enum check_by {
    BY_HOST,    /* one value a host */
    BY_SUBJECT, /* the devices of one name */
    BY_FACT,    /* the devices of which another fact is the same: by_fact */
};

struct judging;

/* When the check is for this subject. */
struct check_applies {
    uint16_t fact;      /* enum fact_id, of the same subject or of the host */
    const char *is;     /* its value; NULL: no condition */
    bool not ;          /* its value is another one */
    const char *reason; /* printed with the skip */
};

enum {
    CHECK_OF_LINKS =
        1, /* of reachability and link state: what is shared by many has failed, not the check */
    CHECK_ONCE = 2,   /* once a host, where any subject is listed */
    CHECK_MATRIX = 4, /* of a matrix of all NICs: a skip where none was measured */
    CHECK_TESTED = 8, /* of an audit's own tests: the same */
    CHECK_PAIRS = 64, /* of this host and another one: pairs.h tells whose fault it is */
    /* On what a fault made it fail, besides machines as files, or facts that were made up where only a controller has them (every
     * check). test/audit/test_shown.py compares these with what tests and benches plant. */
    CHECK_SEEN_LAB = 16,    /* real packets between name spaces */
    CHECK_SEEN_KERNEL = 32, /* a running kernel, without the hardware of a cluster */
    CHECK_SEEN_ROCE = 512,  /* soft-RoCE in a virtual machine: lab/roce-vm */
    CHECK_FLEET = 128,      /* of what only a controller knows: a skip where nobody told it */
    CHECK_VANISHES =
        256, /* its subjects are faults: one that a second look has no more was chance */
    CHECK_FACTS_MAX = 5,
    CATALOGUE_COUNT = 156,
    CHECKS_MAX = 160
};

struct check {
    const char *id;
    uint8_t group, subject, severity, cost, compare, by;
    uint16_t flags;
    uint16_t each; /* enum fact_id that lists the subjects; FACT_COUNT: the host */
    uint16_t facts
        [CHECK_FACTS_MAX]; /* enum fact_id: what it reads, what is judged first; FACT_COUNT: no more */
    uint16_t by_fact;
    void (*rule)(struct judging *j);
    const char *words; /* of the rule: what it should be, words apart by blanks */
    double fail, warn; /* of the rule */
    const char *unit;  /* of fail and warn; NULL: they can't be set */
    struct check_applies applies;
    const char *title;  /* what is so when it passes */
    const char *why;    /* what it costs a job if not */
    const char *remedy; /* what to do */
    const char *origin; /* kernel file, manual, standard */
};

/* By its place in the catalogue, 0 to CATALOGUE_COUNT - 1: the order of the tree. */
const struct check *check_at(uint32_t number);
uint32_t check_number(const struct check *c);
/* NULL: there is none. */
const struct check *check_by_id(const char *id);
/* "configuration", … of 1 … 5, and of its part: "memory" of cfg.mem.*. */
const char *check_group_name(unsigned group);
const char *check_part_name(const struct check *c);
const char *check_severity_name(enum check_severity severity);
const char *check_subject_name(enum check_subject subject);
const char *check_cost_name(enum check_cost cost);
/* "files, lab, soft-RoCE", "facts, lab": what it was shown on. None was shown on a machine with a GPU or an RDMA NIC. */
const char *check_shown_on(const struct check *c);

/* check.h: the catalogue: a list of rules over facts. A check's id stays for ever; if the meaning of a check changes, it gets
 * another id. Sites change values (settings of judge.h), never rules. */
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

/* What follows from a failure. */
enum check_severity {
    SEVERITY_BLOCK,  /* no job may begin on this host */
    SEVERITY_DRAIN,  /* take the host out of service soon */
    SEVERITY_TICKET, /* repair it when there is time */
    SEVERITY_INFO,
    SEVERITY_COUNT
};

enum check_cost { COST_PASSIVE, COST_PACKETS, COST_BANDWIDTH, COST_EXCLUSIVE, COST_COUNT };

enum check_compare {
    COMPARE_RULE = 1,     /* with a rule that holds everywhere */
    COMPARE_COHORT = 2,   /* with hosts that should be alike */
    COMPARE_DECLARED = 4, /* with what the site declares */
    COMPARE_BASELINE = 8, /* with the host's own measurement in an audit that a person accepted */
};

/* Members of a cohort are alike in this, besides the product of their hosts. */
enum check_by {
    BY_HOST,    /* one value a host */
    BY_SUBJECT, /* devices of the same name */
    BY_FACT,    /* devices with the same value of another fact: by_fact */
};

struct judging;

/* The condition under which the check is for a subject. */
struct check_applies {
    uint16_t fact;      /* enum fact_id, of the same subject or of the host */
    const char *is;     /* the value that it needs; NULL: no condition */
    bool not ;          /* any value but this */
    const char *reason; /* printed with a skip */
};

enum {
    /* of reachability and link state: if many share the failure, the breaker doesn't suspect the check */
    CHECK_OF_LINKS = 1,
    CHECK_ONCE = 2, /* once a host, if any subject is listed */
    /* the list itself is judged, too: a result of the host, before those of its subjects */
    CHECK_LIST = 1024,
    CHECK_MATRIX = 4, /* needs a matrix of all NICs: a skip if none was measured */
    CHECK_TESTED = 8, /* needs an audit's own tests: a skip if none ran */
    CHECK_PAIRS = 64, /* of a pair of hosts: pairs.h finds whose fault it is */
    /* The places where a planted fault made it fail. Not named: machines as files, which every check has, or made-up facts for
     * checks that only a controller can judge. test/audit/test_shown.py compares this with the faults that tests and benches
     * plant. */
    CHECK_SEEN_LAB = 16,    /* real packets between name spaces */
    CHECK_SEEN_KERNEL = 32, /* a running kernel, without the hardware of a cluster */
    CHECK_SEEN_ROCE = 512,  /* soft-RoCE in a virtual machine: lab/roce-vm */
    CHECK_FLEET = 128,      /* of facts that only a controller has: a skip if there are none */
    CHECK_VANISHES =
        256, /* its subjects are faults: one that a second look doesn't find was chance */
    CHECK_FACTS_MAX = 5,
    CATALOGUE_COUNT = 156,
    CHECKS_MAX = 160
};

struct check {
    const char *id;
    uint8_t group, subject, severity, cost, compare, by;
    /* of a check that judges results in files, too: the class of an audit's own test; COST_PASSIVE: there is none, or it is
     * `cost` */
    uint8_t test_cost;
    uint16_t flags;
    uint16_t each; /* enum fact_id that lists the subjects; FACT_COUNT: the subject is the host */
    /* enum fact_id: the facts that it reads; the first one is judged; FACT_COUNT: no more */
    uint16_t facts[CHECK_FACTS_MAX];
    uint16_t by_fact;
    void (*rule)(struct judging *j);
    const char *words; /* the rule's words, separated by blanks: the value that is expected */
    double fail, warn; /* limits of the rule */
    const char *unit;  /* unit of fail and warn; NULL: they can't be set */
    struct check_applies applies;
    const char *title;  /* the sentence that is true if it passes */
    const char *why;    /* the cost for a job if it fails */
    const char *remedy; /* what a person should do */
    const char *origin; /* kernel file, manual, standard */
};

/* number: the place in the catalogue, 0 to CATALOGUE_COUNT - 1: the order of the tree. */
const struct check *check_at(uint32_t number);
uint32_t check_number(const struct check *c);
/* NULL: there is no such check. */
const struct check *check_by_id(const char *id);
/* The name of groups 1 to 5 ("configuration", …), and of a check's part: "memory" of cfg.mem.*. */
const char *check_group_name(unsigned group);
const char *check_part_name(const struct check *c);
const char *check_severity_name(enum check_severity severity);
const char *check_subject_name(enum check_subject subject);
const char *check_cost_name(enum check_cost cost);
/* "files, lab, soft-RoCE", "facts, lab": where a fault was shown to make it fail. No check was shown on a machine with a GPU or
 * an RDMA NIC. */
const char *check_shown_on(const struct check *c);

/* judge.h: facts in, results out. The only evaluator: the same facts give the same results, bit for bit, wherever it runs.
 *
 * Unknown is never a pass. If a check reads a fact without a value, the result is unknown, with the fact's reason. If a check
 * does not apply, the result is a skip, with the reason in words. A failure on a host that has just booted becomes unknown:
 * young.
 *
 * If a check would fail too many members of a cohort (the breaker below), nobody fails: those results are warnings, marked
 * `suspect`. Then the check, or the value that it expects, is more likely wrong than that many hosts.
 *
 * Memory is the caller's. Texts of results are in the sheets, in the catalogue, in the settings, or in `text`. */
#pragma once
#include "core/audit/check.h"

enum audit_status {
    AUDIT_FAIL,
    AUDIT_UNKNOWN,
    AUDIT_WARN,
    AUDIT_PASS,
    AUDIT_SKIP,
    AUDIT_STATUS_COUNT
};

enum audit_reason {
    REASON_NONE,
    REASON_NO_SOURCE,
    REASON_NO_PERMISSION,
    REASON_TIMEOUT,
    REASON_STUCK,
    REASON_STALE,
    REASON_NO_MAJORITY,
    REASON_SMALL_COHORT,
    REASON_CLOCK,
    REASON_PREEMPTED,
    REASON_BUSY,
    REASON_NOT_RUN,
    REASON_OLD_AGENT,
    REASON_YOUNG,
    REASON_COUNT
};

enum { RESULT_FACTS_MAX = 8, MANAGERS_MAX = 16 };

struct audit_result {
    const struct check *check;
    uint32_t sheet; /* number of the host's sheet */
    uint8_t status, reason, severity;
    bool suspect;   /* by the breaker: too many would have failed */
    bool seen_once; /* a second look didn't find it */
    /* of a pair: the verdict is from the others' results, not from the host's own */
    bool by_others;
    bool by_peer;    /* of a pair: the other end has the fault, as most of its neighbours find */
    bool overridden; /* by the site's settings */
    uint8_t fact_count;
    const char *subject;
    const char *found;    /* the value that was found; "" */
    const char *expected; /* the value that it was compared with; "" */
    const char *basis;    /* where the expected value comes from: "as 11 of 12 have it"; "" */
    const char *baseline; /* the accepted audit that it was compared with; NULL: none */
    const char *note;     /* why it is a skip or unknown, or another remark; "" */
    uint32_t cohort;      /* the number of members that it was compared with; 0: none */
    const struct fact *facts[RESULT_FACTS_MAX]; /* the evidence */
    const struct fact
        *found_in; /* the fact of `found`, if it is not the check's first fact; else NULL */
};

/* What a site declares for the hosts of one of its cohorts. */
struct audit_declared {
    const char *cohort, *value;
};

/* A site's changes of one check. */
struct check_setting {
    const char *off;      /* who switched it off, and when; NULL: it is on */
    const char *declared; /* value or words, for each host; NULL: nothing is declared */
    /* by cohort, in place of `declared`; for the hosts of other cohorts nothing is declared */
    const struct audit_declared *declared_by;
    uint32_t declared_by_count;
    bool has_fail, has_warn, has_severity;
    uint8_t severity;
    double fail, warn;
};

/* A host that is excluded from audits. */
struct audit_host_off {
    const char *host, *by; /* the host; who switched it off, and when */
};

/* The site declares that these hosts are alike. They are compared with each other, whatever their products. */
struct audit_cohort {
    const char *host; /* a name; with a star at its end, the beginning of names */
    const char *name;
};

struct audit_settings {
    const struct check_setting *checks; /* CATALOGUE_COUNT of them; NULL: none is changed */
    const char *class_off[COST_COUNT];  /* checks of that cost are off; NULL: they are on */
    const struct audit_host_off *hosts_off;
    uint32_t hosts_off_count;
    const struct audit_cohort *cohorts; /* if a host is in several, the first one counts */
    uint32_t cohort_count;
    double young_s;         /* a host is young for so long after a boot */
    double breaker_share;   /* for a cohort of BREAKER_WHOLE or more */
    uint32_t breaker_count; /* of a smaller one */
    int64_t stale_ns;       /* older sheets are not judged; 0: any age is fine */
    int64_t now_utc_ns;     /* the present time, for stale_ns */
    /* the audit's begin: a host that was read before is no witness of a pair; 0: not known */
    int64_t began_utc_ns;
    bool rules_alone; /* there is no cohort: checks that only compare hosts are left out */
};
extern const struct audit_settings audit_usual;

enum { COHORT_LEAST = 5, BREAKER_WHOLE = 20 };
/* An identity is on two hosts: if one of them got it later by more than this, that one is the copy. It is longer than a look at a
 * whole fleet. */
#define OWNER_APART_NS INT64_C(600000000000)

struct audit_item;
struct audit_mention { /* mention.h */
    const struct fact *fact;
    uint32_t sheet;
};
struct audit {
    const struct sheet *sheets;
    uint32_t sheet_count;
    const struct audit_settings *settings;
    struct audit_result *results; /* out: ordered by check, then by sheet, then by subject */
    uint32_t count, capacity;
    /* for each sheet: the kind by which its host is compared; an entry NULL: not known. NULL: cohorts are products */
    const char **kinds;
    struct audit_item *items; /* of one check: the members of its cohorts */
    uint32_t item_count, item_capacity;
    struct audit_mention *mentions; /* sorted by fact and text */
    uint32_t mention_count, mention_capacity;
    uint32_t managers[MANAGERS_MAX]; /* sheets with the routes of an InfiniBand subnet */
    uint32_t manager_count;
    char *text; /* memory for texts that are composed */
    size_t text_used, text_size;
    bool full; /* something didn't fit: the results are incomplete */
};

/* The size of one of its items. */
size_t audit_item_size(void);
/* The cohort of the sheet's host: a declared one, or its product; NULL: neither is known. */
const char *audit_kind(const struct audit *a, uint32_t sheet);
/* The cohort that is declared for a host of this name; NULL: none. */
const char *audit_declared_cohort(const struct audit_settings *s, const char *host);
/* What the site declares for the check on the host of this name; NULL: nothing. */
const char *audit_declares(const struct audit_settings *s, const struct check *c, const char *host);
/* Who switched the host off; NULL: it is on. */
const char *audit_host_off(const struct audit_settings *s, const char *host);
/* Sets the three capacities to the most results, items and mentions that its sheets can have. */
void audit_room(struct audit *a);
/* 0; -ENOSPC: something didn't fit, and the results must not be used. */
int audit_judge(struct audit *a);
/* second: the same sheets, read once more and judged. A failure that the second look doesn't have was seen once: it becomes a
 * warning. If the second look can't decide it, or has no such subject any more, it becomes unknown. */
void audit_confirm(struct audit *a, const struct audit *second);
/* The same when the results of the first look are gone. `first` has its failures, in the order of its results; `a` is the second
 * look at the same sheets. A failure that only one of both looks has was seen once. It becomes unknown if its host had no second
 * look (`looked`, by sheet), if it is of a matrix and its host was not `measured` again, or if the second look lacks its subject;
 * then that result is added. Texts of `first` must live as long as the results. */
struct audit_failure {
    const struct check *check;
    uint32_t sheet;
    const char *subject;
    /* not a failure: another host fails by this host's results, so this one gets a second look, too */
    bool witness;
};
/* The results that need a second look: failures, warnings of a check whose subjects are faults (they may be chance), and
 * witnesses. False: it is none of these. The subject's text stays the result's. */
bool audit_failure_of(const struct audit_result *r, struct audit_failure *ret);
struct audit_again {
    const bool *looked, *measured; /* by sheet */
    bool stopped;                  /* the audit was stopped before all second looks had come */
};
void audit_confirm_first(struct audit *a, const struct audit_failure *first, uint32_t count,
                         const struct audit_again *again);
/* For an audit that was stopped before any second look: failures become unknown. */
void audit_unconfirmed(struct audit *a);
/* The worst status by precedence, of all results whose check begins with `prefix` ("": all) on that sheet (UINT32_MAX: all).
 * AUDIT_SKIP: there are only skips. */
enum audit_status audit_worst(const struct audit *a, const char *prefix, uint32_t sheet,
                              uint32_t ret_counts[AUDIT_STATUS_COUNT]);

/* Of the facts of the evidence, the one behind `found`, or the one whose value is missing: people see its source. It is the first
 * one in the order of the check's facts, unless the rule named another. NULL: none has a source. */
const struct fact *audit_shown(const struct audit_result *r);

const char *audit_status_name(enum audit_status status);
const char *audit_reason_name(enum audit_reason reason);

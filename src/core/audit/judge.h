/* judge.h: facts in, results out. The one evaluator: the same facts give the same results, bit for bit, wherever it runs.
 *
 * Unknown is never a pass. A check that reads a fact without a value is unknown, with the fact's reason. A check that does
 * not apply is a skip, with the words for it. What would fail on a host that has just booted is unknown: young.
 *
 * A check that would fail too many members of a cohort (breaker below) condemns nobody: those results are warnings that
 * are marked `suspect`, for then the check or what it expects is more likely wrong than that many hosts.
 *
 * Memory is the caller's. Texts of results live in the sheets, in the catalogue, in the settings, or in `text`. */
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
    uint32_t sheet; /* index of the host */
    uint8_t status, reason, severity;
    bool suspect;    /* the breaker: too many would have failed */
    bool seen_once;  /* a second look didn't see it */
    bool by_others;  /* of a pair: the others' word, not the own one */
    bool by_peer;    /* of a pair: the other one has the fault, as most of its neighbours find */
    bool overridden; /* by the settings */
    uint8_t fact_count;
    const char *subject;
    const char *found;    /* the value as it was found; "" */
    const char *expected; /* what it was compared with; "" */
    const char *basis;    /* how that is known: "as 11 of 12 have it"; "" */
    const char *baseline; /* the accepted audit that it was compared with; NULL: with none */
    const char *note;     /* why it is skipped or unknown, or what else is to be said; "" */
    uint32_t cohort;      /* members that it was compared with; 0: with none */
    const struct fact *facts[RESULT_FACTS_MAX]; /* that it rests on */
    const struct fact
        *found_in; /* where `found` is no value of the check's first fact; else NULL */
};

/* What a site changes of one check. */
struct check_setting {
    const char *off;      /* by whom and since when; NULL: it is on */
    const char *declared; /* value or words; NULL: nothing is declared */
    bool has_fail, has_warn, has_severity;
    uint8_t severity;
    double fail, warn;
};

/* A host that nobody audits. */
struct audit_host_off {
    const char *host, *by; /* by whom and since when */
};

/* Hosts that the site declares to be alike are compared with each other, whatever their products. */
struct audit_cohort {
    const char *host; /* its name; what ends with a star is the beginning of names */
    const char *name;
};

struct audit_settings {
    const struct check_setting *checks; /* CATALOGUE_COUNT of them; NULL: none is changed */
    const char *class_off[COST_COUNT];  /* checks of that cost; NULL: they are on */
    const struct audit_host_off *hosts_off;
    uint32_t hosts_off_count;
    const struct audit_cohort *cohorts; /* the first that a host is in counts */
    uint32_t cohort_count;
    double young_s;         /* after a boot */
    double breaker_share;   /* of a cohort of BREAKER_WHOLE or more */
    uint32_t breaker_count; /* of a smaller one */
    int64_t stale_ns;       /* older sheets judge nobody; 0: any age is fine */
    int64_t now_utc_ns;     /* for that */
    int64_t
        began_utc_ns; /* of this audit: who was looked at before is no witness of a pair; 0: not known */
    bool rules_alone; /* no cohort is at hand: checks that only compare hosts are left out */
};
extern const struct audit_settings audit_usual;

enum { COHORT_LEAST = 5, BREAKER_WHOLE = 20 };
/* Who came so much later to an identity that another host has is the copy: longer than one look at a fleet takes. */
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
    struct audit_result *results; /* out: by check, then by sheet, then by subject */
    uint32_t count, capacity;
    const char **
        kinds; /* by sheet, what its host is compared by; NULL inside: not known. NULL: cohorts are products */
    struct audit_item *items; /* for one check: members of its cohorts */
    uint32_t item_count, item_capacity;
    struct audit_mention *mentions; /* by fact and text */
    uint32_t mention_count, mention_capacity;
    uint32_t managers[MANAGERS_MAX]; /* sheets that have routes of an InfiniBand subnet */
    uint32_t manager_count;
    char *text; /* for what is put together */
    size_t text_used, text_size;
    bool full; /* something didn't fit: what is there isn't whole */
};

/* Of its items. */
size_t audit_item_size(void);
/* What the sheet's host is compared by: a declared cohort, or its product; NULL: neither is known. */
const char *audit_kind(const struct audit *a, uint32_t sheet);
/* The cohort that is declared for a host of this name; NULL: none is. */
const char *audit_declared_cohort(const struct audit_settings *s, const char *host);
/* By whom the host was switched off; NULL: it is not. */
const char *audit_host_off(const struct audit_settings *s, const char *host);
/* How many results, items and mentions its sheets can have at most: sets the three capacities. */
void audit_room(struct audit *a);
/* 0; -ENOSPC: something didn't fit; what is there is not to be used. */
int audit_judge(struct audit *a);
/* A failure that `second`, the same sheets read once more and judged, doesn't have was seen once: a warning. Where the second
 * look can't tell, or has nothing of the subject any more, it is unknown. */
void audit_confirm(struct audit *a, const struct audit *second);
/* The same where the first look is over and gone: its failures, in the order of its results. `a` is the second look at the same
 * sheets. What only one of both has was seen once. A failure that no second look came of (not `looked` at, by sheet) is
 * unknown; so is one of a matrix whose host was not `measured` again, and one of whose subject the second look has nothing: that
 * result is added. Texts of `first` must live as long as the results. */
struct audit_failure {
    const struct check *check;
    uint32_t sheet;
    const char *subject;
    bool
        witness; /* no failure: by this host's word another one fails, so it is looked at again, too */
};
/* What a second look has to confirm: failures, warnings of a check whose subjects are faults (they may be chance), witnesses.
 * False: it is none. The subject stays the result's own. */
bool audit_failure_of(const struct audit_result *r, struct audit_failure *ret);
struct audit_again {
    const bool *looked, *measured; /* by sheet */
    bool stopped;                  /* the audit was, before all second looks had come */
};
void audit_confirm_first(struct audit *a, const struct audit_failure *first, uint32_t count,
                         const struct audit_again *again);
/* Of an audit that was stopped before any second look: what failed is unknown. */
void audit_unconfirmed(struct audit *a);
/* By precedence, of all results whose check begins with `prefix` ("": all) on that sheet (UINT32_MAX: all). AUDIT_SKIP: there is
 * nothing else. */
enum audit_status audit_worst(const struct audit *a, const char *prefix, uint32_t sheet,
                              uint32_t ret_counts[AUDIT_STATUS_COUNT]);

/* Of the facts that it rests on the one that `found` tells of, or the one whose value is missing: people are shown its source.
 * It is the first in the order of the check's facts, unless the rule named another one. NULL: none has a source. */
const struct fact *audit_shown(const struct audit_result *r);

const char *audit_status_name(enum audit_status status);
const char *audit_reason_name(enum audit_reason reason);

/* rule.h: an alert rule as data: a condition over findings or over one measured series, its scope and its severity.
 *
 * Five conditions:
 *   finding    a finding of one of these kinds is open
 *   threshold  the newest value is beyond a limit
 *   rate       a counter grows by more than a limit per second, over a window
 *   count      a counter grew by more than a limit within a window (flaps)
 *   absent     no value came for longer than the window
 *
 * A condition must hold for `hold` before the rule fires. A threshold may be judged over all members of a scope: over the worst,
 * the mean, or the share of members beyond the limit. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/time.h"

#define ALERT_NAME_MAX 48

enum alert_severity { ALERT_INFO, ALERT_WARNING, ALERT_PAGE, ALERT_SEVERITY_COUNT };

/* The subject of one alert. Finer scopes come first. */
enum alert_scope {
    ALERT_PER_PATH,
    ALERT_PER_LINK,
    ALERT_PER_HOST,
    ALERT_PER_JOB,
    ALERT_PER_RAIL,
    ALERT_PER_FLEET,
    ALERT_SCOPE_COUNT
};

enum alert_condition {
    ALERT_ON_FINDING,
    ALERT_ON_THRESHOLD,
    ALERT_ON_RATE,
    ALERT_ON_COUNT,
    ALERT_ON_ABSENCE,
    ALERT_ON_ITSELF, /* built in: a rule without data, memory that ran out, a refused file */
    ALERT_CONDITION_COUNT
};

/* How the values of a scope's members are combined. */
enum alert_aggregate {
    ALERT_EACH, /* not combined: the newest value of each member */
    ALERT_MAX,
    ALERT_MIN,
    ALERT_MEAN,
    ALERT_SHARE, /* the share of values beyond `limit` in one round; fires if it is above `share` */
    ALERT_AGGREGATE_COUNT
};

/* What is measured. A metric belongs to a path, a link, a host, a job or the fleet as a whole. Coarser scopes aggregate it. */
enum alert_metric {
    ALERT_METRIC_NONE,
    ALERT_PATH_OWD_P50,
    ALERT_PATH_OWD_P99,
    ALERT_PATH_LOSS,
    ALERT_LINK_UP,
    ALERT_LINK_DOWNS,
    ALERT_LINK_SPEED,
    ALERT_LINK_RX_ERRORS,
    ALERT_LINK_TX_ERRORS,
    ALERT_LINK_RX_DROPS,
    ALERT_LINK_TX_DROPS,
    ALERT_LINK_RX_BYTES,
    ALERT_LINK_TX_BYTES,
    ALERT_CLOCK_SYNCED,
    ALERT_CLOCK_HARD,
    ALERT_CLOCK_STATISTICAL,
    ALERT_HOST_REPORT,
    ALERT_AGENT_CPU,
    ALERT_AGENT_MEMORY,
    ALERT_AGENT_REPORTS_LOST,
    ALERT_AGENT_LATE_TICKS,
    ALERT_AGENT_BAD_PACKETS,
    ALERT_AGENT_STAMPS_MISSING,
    ALERT_CERTIFICATE_DAYS,
    ALERT_JOB_THROUGHPUT,
    ALERT_JOB_DELAY_P99,
    ALERT_CERTIFICATE_CONTROLLER,
    ALERT_CERTIFICATE_AUTHORITY,
    ALERT_CONFIG_TAKEN_BACK,
    ALERT_LEVELS_BROKEN,
    ALERT_TOPOLOGY_DIFFERENCES,
    ALERT_LINK_WATCHED,
    ALERT_MEMBERS_REFUSED,
    ALERT_CONTROLLER_OTHERS,
    ALERT_AUDIT_BLOCKED,
    ALERT_AUDIT_FAILED,
    ALERT_AUDIT_UNKNOWN,
    ALERT_AUDIT_LINKS,
    ALERT_AUDIT_AGE,
    ALERT_AUDIT_SUSPECT,
    ALERT_AUDIT_OFF,
    ALERT_METRIC_COUNT
};

enum alert_unit { ALERT_PLAIN, ALERT_NS, ALERT_PPM, ALERT_BYTES, ALERT_MBPS, ALERT_DAYS };

struct alert_metric_info {
    const char *name;  /* "link.rx_errors", in rule files and in exports */
    const char *words; /* "receive errors", in sentences */
    uint8_t unit;      /* enum alert_unit */
    uint8_t scope;     /* enum alert_scope: what it belongs to */
    bool counter;      /* it only grows; a smaller value means a restart of the counter */
    /* it may be missing on a healthy fleet: its absence is no failure of sensing */
    bool optional;
};

struct alert_rule {
    char name[ALERT_NAME_MAX];
    uint8_t condition, scope, severity, metric, aggregate; /* the enums above */
    bool below;                                            /* the limit is a lower limit */
    bool confident;    /* for findings: only those with a certain suspect */
    uint64_t findings; /* bit enum finding_kind */
    /* one bit for each enum element_kind that the finding may suspect; 0: any */
    uint32_t suspects;
    double limit;       /* beyond this the condition holds; in the metric's unit */
    double clear;       /* inside this the condition ends: hysteresis; NaN: the same as limit */
    double share;       /* for ALERT_SHARE, 0 to 1 */
    struct span within; /* the window of rate, count and absence */
    struct span hold;   /* the condition must hold so long ("for") */
    struct span wait;   /* the time to wait for further alerts before the first notification */
    char advice[96];    /* what to do; empty: the finding's own advice */
};

/* NULL: no such metric. */
const struct alert_metric_info *alert_metric_info(uint32_t metric);
/* ALERT_METRIC_NONE: no such name. */
enum alert_metric alert_metric_find(const char *name);
const char *alert_severity_word(uint32_t severity); /* "info", "warning", "page" */
const char *alert_scope_word(uint32_t scope); /* "path", "link", "host", "job", "rail", "fleet" */

/* Sets the usual defaults. */
void alert_rule_init(struct alert_rule *rule);
/* NULL, or the first mistake in words. */
const char *alert_rule_check(const struct alert_rule *rule);

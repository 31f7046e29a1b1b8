/* metric.c: the catalogue of metrics, and the checks of a rule. */
#include <math.h>
#include <string.h>

#include "core/alert/rule.h"

static const struct alert_metric_info metrics[ALERT_METRIC_COUNT] = {
    [ALERT_PATH_OWD_P50] = {"path.owd_p50", "median one-way delay", ALERT_NS, ALERT_PER_PATH, false,
                            false},
    [ALERT_PATH_OWD_P99] = {"path.owd_p99", "p99 one-way delay", ALERT_NS, ALERT_PER_PATH, false,
                            false},
    [ALERT_PATH_LOSS] = {"path.loss", "loss", ALERT_PPM, ALERT_PER_PATH, false, false},
    [ALERT_LINK_UP] = {"link.up", "carrier", ALERT_PLAIN, ALERT_PER_LINK, false, false},
    [ALERT_LINK_DOWNS] = {"link.downs", "link downs", ALERT_PLAIN, ALERT_PER_LINK, true, false},
    [ALERT_LINK_SPEED] = {"link.speed", "link speed", ALERT_MBPS, ALERT_PER_LINK, false, true},
    [ALERT_LINK_RX_ERRORS] = {"link.rx_errors", "receive errors", ALERT_PLAIN, ALERT_PER_LINK, true,
                              false},
    [ALERT_LINK_TX_ERRORS] = {"link.tx_errors", "transmit errors", ALERT_PLAIN, ALERT_PER_LINK,
                              true, false},
    [ALERT_LINK_RX_DROPS] = {"link.rx_drops", "receive drops", ALERT_PLAIN, ALERT_PER_LINK, true,
                             false},
    [ALERT_LINK_TX_DROPS] = {"link.tx_drops", "transmit drops", ALERT_PLAIN, ALERT_PER_LINK, true,
                             false},
    [ALERT_LINK_RX_BYTES] = {"link.rx_bytes", "bytes received", ALERT_BYTES, ALERT_PER_LINK, true,
                             false},
    [ALERT_LINK_TX_BYTES] = {"link.tx_bytes", "bytes sent", ALERT_BYTES, ALERT_PER_LINK, true,
                             false},
    [ALERT_CLOCK_SYNCED] = {"clock.synced", "clock in sync", ALERT_PLAIN, ALERT_PER_HOST, false,
                            false},
    [ALERT_CLOCK_HARD] = {"clock.hard_bound", "hard bound of the clock", ALERT_NS, ALERT_PER_HOST,
                          false, true},
    [ALERT_CLOCK_STATISTICAL] = {"clock.statistical_bound", "statistical bound of the clock",
                                 ALERT_NS, ALERT_PER_HOST, false, true},
    [ALERT_HOST_REPORT] = {"host.report", "reports", ALERT_PLAIN, ALERT_PER_HOST, false, false},
    [ALERT_AGENT_CPU] = {"agent.cpu", "processor time of the agent", ALERT_PPM, ALERT_PER_HOST,
                         false, false},
    [ALERT_AGENT_MEMORY] = {"agent.memory", "memory of the agent", ALERT_BYTES, ALERT_PER_HOST,
                            false, false},
    [ALERT_AGENT_REPORTS_LOST] = {"agent.reports_lost", "reports given up by the agent",
                                  ALERT_PLAIN, ALERT_PER_HOST, true, false},
    [ALERT_AGENT_LATE_TICKS] = {"agent.late_ticks", "late ticks of the agent", ALERT_PLAIN,
                                ALERT_PER_HOST, true, false},
    [ALERT_AGENT_BAD_PACKETS] = {"agent.bad_packets", "packets refused by the agent", ALERT_PLAIN,
                                 ALERT_PER_HOST, true, false},
    [ALERT_AGENT_STAMPS_MISSING] = {"agent.stamps_missing", "missing transmit stamps", ALERT_PPM,
                                    ALERT_PER_HOST, false, false},
    [ALERT_CERTIFICATE_DAYS] = {"certificate.days_left", "days left of the host's certificate",
                                ALERT_DAYS, ALERT_PER_HOST, false, true},
    [ALERT_JOB_THROUGHPUT] = {"job.throughput", "throughput of the job", ALERT_MBPS, ALERT_PER_JOB,
                              false, true},
    [ALERT_JOB_DELAY_P99] = {"job.delay_p99", "p99 one-way delay of the job's messages", ALERT_NS,
                             ALERT_PER_JOB, false, true},
    [ALERT_CERTIFICATE_CONTROLLER] = {"certificate.controller_days_left",
                                      "days left of the controller's certificate", ALERT_DAYS,
                                      ALERT_PER_FLEET, false, true},
    [ALERT_CERTIFICATE_AUTHORITY] = {"certificate.authority_days_left",
                                     "days left of the authority's certificate", ALERT_DAYS,
                                     ALERT_PER_FLEET, false, true},
    [ALERT_LEVELS_BROKEN] = {"levels.broken", "service levels that are broken", ALERT_PLAIN,
                             ALERT_PER_FLEET, false, true},
    [ALERT_TOPOLOGY_DIFFERENCES] = {"topology.differences",
                                    "where what is seen differs from the declared topology",
                                    ALERT_PLAIN, ALERT_PER_FLEET, false, true},
    [ALERT_LINK_WATCHED] = {"link.watched", "watching of the NIC", ALERT_PLAIN, ALERT_PER_LINK,
                            false, false},
    [ALERT_CONFIG_TAKEN_BACK] = {"config.taken_back",
                                 "configurations that were taken back by themselves", ALERT_PLAIN,
                                 ALERT_PER_FLEET, false, true},
    [ALERT_MEMBERS_REFUSED] = {"members.refused", "refusal of the list of members", ALERT_PLAIN,
                               ALERT_PER_HOST, false, true},
    [ALERT_CONTROLLER_OTHERS] = {"controller.others", "other controllers that serve this fleet",
                                 ALERT_PLAIN, ALERT_PER_FLEET, false, true},
    [ALERT_AUDIT_BLOCKED] = {"audit.blocked", "failed checks of the audit that keep jobs off",
                             ALERT_PLAIN, ALERT_PER_HOST, false, true},
    [ALERT_AUDIT_FAILED] = {"audit.failed", "failed checks of the audit that need a drain",
                            ALERT_PLAIN, ALERT_PER_HOST, false, true},
    [ALERT_AUDIT_UNKNOWN] = {"audit.unknown", "blocking checks of the audit that are unknown",
                             ALERT_PLAIN, ALERT_PER_HOST, false, true},
    [ALERT_AUDIT_LINKS] = {"audit.links", "failed checks of the NIC's link in the audit",
                           ALERT_PLAIN, ALERT_PER_LINK, false, true},
    [ALERT_AUDIT_AGE] = {"audit.age", "age of the last audit, in intervals of its calendar",
                         ALERT_PLAIN, ALERT_PER_FLEET, false, true},
    [ALERT_AUDIT_SUSPECT] = {"audit.suspect", "checks of the audit that are suspect themselves",
                             ALERT_PLAIN, ALERT_PER_FLEET, false, true},
    [ALERT_AUDIT_OFF] = {"audit.off", "switches of the audit that are off", ALERT_PLAIN,
                         ALERT_PER_FLEET, false, true},
};

static const char *const severity_words[ALERT_SEVERITY_COUNT] = {"info", "warning", "page"};
static const char *const scope_words[ALERT_SCOPE_COUNT] = {"path", "link", "host",
                                                           "job",  "rail", "fleet"};

const struct alert_metric_info *alert_metric_info(uint32_t metric)
{
    return metric > ALERT_METRIC_NONE && metric < ALERT_METRIC_COUNT ? &metrics[metric] : NULL;
}

enum alert_metric alert_metric_find(const char *name)
{
    for (uint32_t m = ALERT_METRIC_NONE + 1; m < ALERT_METRIC_COUNT; m++) {
        if (strcmp(metrics[m].name, name) == 0) {
            return m;
        }
    }
    return ALERT_METRIC_NONE;
}

const char *alert_severity_word(uint32_t severity)
{
    return severity < ALERT_SEVERITY_COUNT ? severity_words[severity] : "unknown";
}

const char *alert_scope_word(uint32_t scope)
{
    return scope < ALERT_SCOPE_COUNT ? scope_words[scope] : "unknown";
}

void alert_rule_init(struct alert_rule *rule)
{
    memset(rule, 0, sizeof(*rule));
    rule->severity = ALERT_WARNING;
    rule->clear = NAN;
    rule->wait = span_ms(100);
    rule->share = 0.1;
}

/* True if a metric of `from` can be judged per `to`. A job's series have no host, and a host's series have no job. */
static bool scope_reaches(uint32_t from, uint32_t to)
{
    if (from == ALERT_PER_JOB || to == ALERT_PER_JOB) {
        return from == to || (from == ALERT_PER_JOB && to == ALERT_PER_FLEET);
    }
    return to >= from && !(from == ALERT_PER_HOST && to == ALERT_PER_RAIL);
}

static const char *check_series(const struct alert_rule *rule)
{
    const struct alert_metric_info *metric = alert_metric_info(rule->metric);

    if (metric == NULL) {
        return "no such metric";
    }
    if (!scope_reaches(metric->scope, rule->scope)) {
        return "this metric can't be judged per that scope";
    }
    if (rule->condition == ALERT_ON_THRESHOLD) {
        if (metric->counter) {
            return "this metric is a counter: judge its rate or its count";
        }
        if (rule->aggregate == ALERT_EACH && rule->scope != metric->scope) {
            return "a scope with several members needs an aggregate: max, min, mean or share";
        }
        if (!isnan(rule->clear) &&
            (rule->below ? rule->clear < rule->limit : rule->clear > rule->limit)) {
            return "the condition must end on the good side of its limit";
        }
        return isfinite(rule->limit) ? NULL : "the limit is no number";
    }
    if (rule->within.ns <= 0) {
        return "a window is missing";
    }
    if (rule->scope != metric->scope || rule->aggregate != ALERT_EACH) {
        return "rate, count and absence are judged where they are measured";
    }
    if (rule->condition == ALERT_ON_ABSENCE) {
        return metric->scope != ALERT_PER_JOB ? NULL
                                              : "nobody misses a job that is over: judge its value";
    }
    if (!metric->counter) {
        return "this metric is no counter: judge it by a threshold";
    }
    return isfinite(rule->limit) && rule->limit >= 0 ? NULL : "the limit is no number from 0 up";
}

const char *alert_rule_check(const struct alert_rule *rule)
{
    if (rule->name[0] == '\0' || memchr(rule->name, '\0', sizeof(rule->name)) == NULL) {
        return "a rule has a name";
    }
    if (rule->severity >= ALERT_SEVERITY_COUNT || rule->scope >= ALERT_SCOPE_COUNT ||
        rule->aggregate >= ALERT_AGGREGATE_COUNT || rule->hold.ns < 0 || rule->wait.ns < 0) {
        return "a value out of its range";
    }
    switch ((enum alert_condition)rule->condition) {
    case ALERT_ON_FINDING:
        return rule->findings != 0 ? NULL : "no kind of finding is named";
    case ALERT_ON_THRESHOLD:
    case ALERT_ON_RATE:
    case ALERT_ON_COUNT:
    case ALERT_ON_ABSENCE:
        return check_series(rule);
    default:
        return "no such condition";
    }
}

/* alert_kit.h: one alert engine for tests. The test gives it the time and the hosts' reports, and the kit keeps everything that
 * it sends. Every test has a new engine (kit_begin, kit_end).
 *
 * Host h has the NICs h*8 + r; the leaf of rail r in pod h/16 is leaf(pod*8 + r). */
#pragma once
#include "core/alert/alert.h"
#include "suspect.h"

#define UTC_AT_START (1795000000LL * NS_PER_S)
#define NIC_PER_HOST 8

/* Filled in before kit_start(). */
extern struct alert_config config;
extern struct alert_rule rules[16];
extern uint64_t (*kit_tenant)(void *context, uint32_t host); /* NULL: each host is its own tenant */
extern uint32_t living; /* hosts 0 to living - 1 give a sign of life each 10 s */

extern struct alerts *engine;
extern struct mono now;

/* Notifications: how many, how many pages, and the text of the last one. */
struct alert_told {
    unsigned events[ALERT_HEARTBEAT + 1], pages, notifications;
    uint32_t receivers;
    char text[ALERT_TEXT_MAX], cause[ALERT_ELEMENT_MAX];
    uint64_t incident;
    uint32_t sequence; /* of the last one */
};
extern struct alert_told told;

int kit_begin(void **state);
int kit_end(void **state);
struct alert_rule *kit_rule(size_t index, const char *name, enum alert_condition condition);
/* Makes rules[0], the only rule: a metric above a limit. */
struct alert_rule *kit_threshold(enum alert_metric metric, enum alert_scope scope, double limit);
/* Makes rules[0]: a link down, a warning per link; and rules[1]: a path dead for 2 s. Then starts. */
void kit_finding_rules(void);
void kit_start(void);
/* Lets time pass as a caller would: with a tick at every deadline. */
void kit_pass(int64_t ns);
void kit_drain(void);

void kit_sample(enum alert_metric metric, uint32_t nic, double value);
struct alert_finding kit_link_finding(uint32_t nic, enum finding_kind kind);
struct alert_finding kit_path_finding(uint32_t from, uint32_t to, enum element_kind kind,
                                      const char *suspect, bool confident);
void kit_say(const struct alert_finding *f, enum finding_phase phase);
struct alert_counters kit_counters(void);
struct alert_incident kit_incident(uint64_t id); /* it must exist */
bool kit_any_alert(void);
/* The only alert that exists. */
struct alert kit_alert(void);
/* The page of host0/ib3 that an earlier run sent, as incident 41. */
extern const struct alert_restore kit_told_page;

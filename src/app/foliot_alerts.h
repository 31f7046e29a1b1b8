/* foliot_alerts.h: what the parts of `foliot alerts` share. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "app/foliot_api.h"
#include "service/alert/file.h"

struct alerts_call {
    struct api api;
    const char *file; /* --file */
};
/* alerts.yaml of --file, or the default rules. false: said. */
bool alerts_load(const struct alerts_call *call, struct alert_file *ret);

/* The rules as Prometheus' alerting rules: those whose figures /metrics has; the others as comments that say why not. */
int alerts_export(const struct alert_file *file);
/* What a rule would have told since then: history out of the controller, through the same engine. */
int alerts_test(struct alerts_call *call, const struct alert_file *file, const char *rule,
                int64_t since_ns);

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
/* Reads alerts.yaml of --file, or the default rules. false: the error was printed. */
bool alerts_load(const struct alerts_call *call, struct alert_file *ret);

/* Prints the rules as alerting rules of Prometheus. A rule whose figures /metrics lacks becomes a comment with the reason. */
int alerts_export(const struct alert_file *file);
/* Prints what a rule would have reported since then: the controller's history passes through the same engine. */
int alerts_test(struct alerts_call *call, const struct alert_file *file, const char *rule,
                int64_t since_ns);

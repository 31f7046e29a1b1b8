/* scope.h: a tenant's token sees its own hosts, and what lies between them (scope.c). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"

struct alert;
struct alert_incident;
struct api_call;
struct controller;
struct fleet_host;

bool scope_good(const char *scope);
bool scope_sees_name(const char *scope, const char *name);
MUST_CHECK int scope_open(struct api_call *call, const char *scope);
void scope_close(struct api_call *call);
bool api_sees(const struct api_call *call,
              const struct fleet_host *h); /* NULL: no host's; not a tenant's */
/* By its number in the store; NULL: there is none, or this token doesn't see it. */
const struct fleet_host *scope_host(const struct api_call *call, int64_t host);
/* Is it the name of a host that this tenant doesn't see? NULL: it is none. */
bool scope_hides(const struct api_call *call, const char *name);
bool api_sees_nic(const struct api_call *call, uint32_t nic);
/* Of a host, what leads to hosts that this token sees, and is about those: what strangers' packets do to it is no tenant's. */
struct scope_paths {
    uint32_t all, dead, lossy;
};
struct scope_paths scope_paths(const struct api_call *call, const struct fleet_host *h);
uint32_t scope_findings(const struct api_call *call, const struct fleet_host *h);
/* host: as the store numbers it; body: the detail. */
bool scope_sees_finding(const struct controller *c, const char *scope, int64_t host,
                        const char *body);
bool scope_sees_event(const struct controller *c, const char *scope, const char *kind, int64_t host,
                      const char *body);
bool scope_sees_alert(void *call, const struct alert *a); /* call: struct api_call */
bool scope_sees_incident(void *call, const struct alert_incident *i);

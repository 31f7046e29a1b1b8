/* scope.h: a tenant's token sees its own hosts, and the paths between them (scope.c). */
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
              const struct fleet_host *h); /* NULL: of no host; a tenant doesn't see it */
/* A host by its number in the store. NULL: there is none, or this token doesn't see it. */
const struct fleet_host *scope_host(const struct api_call *call, int64_t host);
/* True if a tenant's token may not see the host of this name. NULL: no host is named. */
bool scope_hides(const struct api_call *call, const char *name);
bool api_sees_nic(const struct api_call *call, uint32_t nic);
/* A host's paths to hosts that this token sees, and its findings about those. Paths to other tenants' hosts are left out. */
struct scope_paths {
    uint32_t all, dead, lossy;
};
struct scope_paths scope_paths(const struct api_call *call, const struct fleet_host *h);
uint32_t scope_findings(const struct api_call *call, const struct fleet_host *h);
/* host: its number in the store; body: the event's detail. */
bool scope_sees_finding(const struct controller *c, const char *scope, int64_t host,
                        const char *body);
bool scope_sees_event(const struct controller *c, const char *scope, const char *kind, int64_t host,
                      const char *body);
bool scope_sees_alert(void *call, const struct alert *a); /* call: struct api_call */
bool scope_sees_incident(void *call, const struct alert_incident *i);

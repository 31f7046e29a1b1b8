/* remote.h: sends agents' reports to Prometheus or VictoriaMetrics by remote write, as they come.
 *
 * Each report becomes samples with the report's own time: of ports, clocks and agents, and of paths if the configuration asks
 * for them. Samples gather for five seconds or up to half a MiB. Then a thread packs and posts them, in order, one request at
 * a time. A request that isn't taken is sent again after 1, 2, 4 … 60 s. The samples that wait are bounded: beyond
 * REMOTE_WAITING_MAX the oldest are dropped and counted. HTTP 4xx other than 408, 425 and 429 is final: those samples are
 * dropped and counted. Samples that wait are lost when the controller ends. */
#pragma once
#include "service/controller/controller.h"

#define REMOTE_WAITING_MAX (64u << 20)

struct remote;

/* Without a URL in the configuration it returns 0, and *ret is NULL. */
MUST_CHECK int remote_open(struct controller *c, struct remote **ret);
void remote_close(struct remote *r); /* NULL is allowed in all calls */
void remote_on_report(struct remote *r, const struct fleet_host *h,
                      const Foliot__V1__Report *report, int64_t at_ns);
void remote_on_second(struct remote *r);
void remote_metrics(struct remote *r, struct metrics_text *t);

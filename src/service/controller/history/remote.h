/* remote.h: what agents report, to Prometheus or VictoriaMetrics by remote write, as it comes.
 *
 * Each report becomes samples at its own moment: of ports, clocks, agents, and of paths if asked
 * for. They gather for five seconds or half a MiB, are packed and posted by a thread, in order, one
 * request at a time. What isn't taken is tried again (after 1, 2, 4 … 60 s); what waits is bounded:
 * beyond REMOTE_WAITING_MAX the oldest goes, and is counted. HTTP 4xx other than 408, 425 and 429 is
 * final: those samples are dropped and counted. Nothing survives the controller's end. */
#pragma once
#include "service/controller/controller.h"

#define REMOTE_WAITING_MAX (64u << 20)

struct remote;

/* Without a URL in the configuration: 0, and *ret is NULL. */
MUST_CHECK int remote_open(struct controller *c, struct remote **ret);
void remote_close(struct remote *r); /* NULL is fine, in all calls */
void remote_on_report(struct remote *r, const struct fleet_host *h,
                      const Foliot__V1__Report *report, int64_t at_ns);
void remote_on_second(struct remote *r);
void remote_metrics(struct remote *r, struct metrics_text *t);

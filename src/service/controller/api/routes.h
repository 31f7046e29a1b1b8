/* routes.h: the functions that answer the routes of api.c's table. */
#pragma once
#include <jansson.h>
#include <stdint.h>

struct api_call;

/* ---- api_fleet.c ---- */
void api_get_status(struct api_call *call);
void api_get_hosts(struct api_call *call);
void api_get_host(struct api_call *call);
void api_get_paths(struct api_call *call);

/* ---- api_nic.c ---- */
void api_get_nics(struct api_call *call);
void api_get_links(struct api_call *call);

/* ---- api_latency.c ---- */
void api_get_latency(struct api_call *call);

/* ---- api_history.c ---- */
void api_get_findings(struct api_call *call);
void api_get_events(struct api_call *call);
void api_get_series(struct api_call *call);

/* ---- api_stream.c ---- */
void api_get_event_stream(struct api_call *call);

/* ---- api_sign_in.c ---- */
void api_post_sign_in_code(struct api_call *call);
void api_post_sign_in(struct api_call *call);

/* ---- api_admin.c ---- */
void api_delete_host(struct api_call *call);
void api_get_tokens(struct api_call *call);
void api_post_token(struct api_call *call);
void api_delete_token(struct api_call *call);
void api_post_join_token(struct api_call *call);
void api_get_audit(struct api_call *call);

/* ---- api_alert.c ---- */
void api_get_alerts(struct api_call *call);
void api_get_alert_rules(struct api_call *call);
void api_get_incidents(struct api_call *call);
void api_get_incident(struct api_call *call);
void api_post_incident(struct api_call *call);
void api_get_silences(struct api_call *call);
void api_post_silence(struct api_call *call);
void api_delete_silence(struct api_call *call);

/* ---- api_job.c ---- */
void api_get_jobs(struct api_call *call);
void api_get_job(struct api_call *call);
void api_get_savings(struct api_call *call);

/* ---- api_config.c ---- */
void api_get_config(struct api_call *call);
void api_get_config_versions(struct api_call *call);
void api_post_config(struct api_call *call);
void api_post_config_rollback(struct api_call *call);
void api_post_config_observe(struct api_call *call);

/* ---- api_level.c ---- */
void api_get_levels(struct api_call *call);

/* ---- api_measure.c ---- */
void api_get_measurements(struct api_call *call);
void api_get_measurement(struct api_call *call);
void api_post_measurement(struct api_call *call);
void api_delete_measurement(struct api_call *call);

/* ---- api_inspection.c ---- */
void api_get_audit_runs(struct api_call *call);
void api_post_audit_run(struct api_call *call);
void api_get_audit_run(struct api_call *call);
void api_delete_audit_run(struct api_call *call);
void api_get_audit_checks(struct api_call *call);
void api_get_audit_cost(struct api_call *call);
/* left_ns and stage_ns of a run; NULL: it is not running. */
struct audit_run;
void api_put_audit_left(struct api_call *call, const struct audit_run *run);
void api_get_audit_baselines(struct api_call *call);
void api_post_audit_baseline(struct api_call *call);
void api_delete_audit_baseline(struct api_call *call);

/* A run by its number, or by "latest" or "baseline"; 0: no such run. */
int64_t api_audit_named(struct api_call *call, const char *name);

/* ---- api_inspection_results.c ---- */
/* Removes for a tenant: another host, in a note or as a subject; the number of other hosts, and their values. */
void api_hide_audit_result(const struct api_call *call, json_t *result);
void api_answer_audit_results(struct api_call *call, int64_t run);

/* ---- api_inspection_host.c ---- */
void api_answer_audit_nodes(struct api_call *call, int64_t run);
void api_get_audit_host(struct api_call *call);

/* ---- api_inspection_diff.c ---- */
void api_answer_audit_diff(struct api_call *call, int64_t run);
/* ---- api_inspection_sheets.c ---- */
void api_answer_audit_sheets(struct api_call *call, int64_t run);

/* ---- api_inspection_tests.c ---- */
/* "tests" of a run, as kept (controller/audit/perf.h); NULL: the run made no tests. */
void api_put_audit_tests(struct api_call *call, const json_t *tests);

/* ---- api_inspection_matrix.c ---- */
void api_answer_audit_matrix(struct api_call *call, int64_t run);

/* ---- api_rotate.c ---- */
void api_get_rotation(struct api_call *call);
void api_post_rotation(struct api_call *call);

/* ---- api_fabric.c ---- */
void api_get_fabric(struct api_call *call);

/* ---- api_topology.c ---- */
void api_get_topology(struct api_call *call);
void api_get_topology_versions(struct api_call *call);
void api_post_topology(struct api_call *call);

/* ---- metrics.c ---- */
void api_get_metrics(struct api_call *call);

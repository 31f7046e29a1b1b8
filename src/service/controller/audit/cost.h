/* cost.h: how long an audit takes, as far as that is known: of a fleet before an audit begins, and of the present stage of a
 * run. People are told before they start one (api_inspection_cost.c). */
#pragma once
#include "service/controller/audit/audit.h"

/* A fleet's audit. Times are of full load, or of packets; between two plans agents need `lead_ns` to get the next one. Tests are
 * of hosts without a job: all of these are upper limits. Not counted: what is measured again because it stood out. */
struct audit_cost {
    uint32_t hosts, nics;
    int64_t lead_ns;
    int64_t matrix_ns;        /* 0: no matrix is possible */
    uint32_t packets;         /* of each NIC in a matrix */
    int64_t pairs_ns;         /* memory and pairs; 0: no tests are possible */
    int64_t pairs_no_roce_ns; /* the same without the test of many to one */
    int64_t fabric_ns;        /* with --bandwidth alone */
    int64_t fabric_nccl_ns;   /* with --nccl */
    int64_t rings_ns;         /* with --nccl: all hosts together */
    int64_t round_ns;         /* each round of the search, with its lead */
};

/* A plan begins so long after it is made: each agent asks once a beat, and must have it by then. */
static inline int64_t audit_lead_ns(uint32_t beat_ms)
{
    return (3 * (int64_t)beat_ms + 1000) * NS_PER_MS;
}

/* nics: of each host; beat_ms: of agents. */
void audit_cost_of(const uint32_t *nics, uint32_t hosts, uint32_t beat_ms, struct audit_cost *ret);

/* The time until all results of the present plan of a matrix or of tests are there, and the time of the whole plan. False: the
 * run is in another stage, or fleet time is not known. Both 0 or more. */
bool audit_left(const struct controller *c, const struct audit_run *run, int64_t *ret_left_ns,
                int64_t *ret_stage_ns);

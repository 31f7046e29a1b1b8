/* rules_infiniband.c: rules of InfiniBand ports: their subnet manager, its routes, partitions. */
#include <stdio.h>
#include <string.h>

#include "core/audit/rule_list.h"

void rule_sm(struct judging *j)
{
    int64_t sm, lid;

    if (judge_number(j, FACT_PORT_SM, j->subject, &sm) &&
        judge_number(j, FACT_PORT_LID, j->subject, &lid)) {
        judge_end(
            j, sm == 0 || lid == 0 ? AUDIT_FAIL : AUDIT_PASS,
            judge_format(j, "LID %lld, subnet manager at LID %lld", (long long)lid, (long long)sm),
            "both given");
    }
}

/* "257-304 513" */
static bool has_lid(const char *ranges, int64_t lid)
{
    int used = 0;

    for (unsigned first, last; sscanf(ranges, "%u%n", &first, &used) == 1;) {
        ranges += used;
        last = first;
        if (sscanf(ranges, "-%u%n", &last, &used) == 1) {
            ranges += used;
        }
        if (lid >= first && lid <= last) {
            return true;
        }
    }
    return false;
}

/* Does the manager of the port's subnet run on this host? */
static bool has_port(const struct sheet *s, int64_t lid)
{
    uint32_t count;
    const struct fact *f = sheet_first(s, FACT_PORT_LID, &count);
    int64_t own;

    for (uint32_t i = 0; i < count; i++) {
        if (f[i].state == FACT_VALUE && fact_number(f[i].value, &own) && own == lid) {
            return true;
        }
    }
    return false;
}

/* Judges by the files of one manager. False: they don't have this port. */
static bool judge_routes(struct judging *j, const struct sheet *manager, const char *name,
                         int64_t lid)
{
    const struct fact *routes = sheet_find(manager, FACT_IB_ROUTES, ""),
                      *lids = sheet_find(manager, FACT_IB_LIDS, ""),
                      *route = sheet_find(manager, FACT_IB_ROUTE, name);
    unsigned from, to, others;

    judge_rest(j, routes);
    if (routes->state != FACT_VALUE) {
        judge_unknown(j, routes);
        return true;
    }
    if (route != NULL && route->state == FACT_VALUE &&
        sscanf(route->value, "missing %u from here, %u to here, of %u", &from, &to, &others) == 3) {
        judge_end(j, AUDIT_FAIL,
                  judge_format(j, "no route from here to %u of %u ports, none to here from %u",
                               from, others, to),
                  "a route each way");
        return true;
    }
    if (lids == NULL || lids->state != FACT_VALUE || !has_lid(lids->value, lid) ||
        strstr(routes->value, "not all ports") != NULL) {
        return false;
    }
    judge_end(j, AUDIT_PASS, routes->value, "a route each way");
    return true;
}

/* Two subnets may use the same port numbers, so all managers with that number are searched for this device. */
void rule_ib_routes(struct judging *j)
{
    const struct audit *a = j->audit;
    const size_t device_size = strcspn(j->subject, "/");
    char device[64], name[64];
    bool lacks = false; /* one of them doesn't have this port */
    int64_t sm, lid;

    snprintf(device, sizeof(device), "%.*s", (int)device_size, j->subject);
    const char *guid = judge_text(j, FACT_RDMA_GUID, device);
    if (guid == NULL || !judge_number(j, FACT_PORT_SM, j->subject, &sm) ||
        !judge_number(j, FACT_PORT_LID, j->subject, &lid)) {
        return;
    }
    snprintf(name, sizeof(name), "%.40s%.10s", guid, j->subject + device_size);
    judge_skip(j, sm == 0 || lid == 0
                      ? "the port has no LID: be.ib.sm"
                      : "no host of this audit has the files of its subnet manager");
    for (uint32_t i = 0; i < a->manager_count && sm != 0 && lid != 0; i++) {
        const struct sheet *manager = &a->sheets[a->managers[i]];
        if (!has_port(manager, sm)) {
            continue;
        }
        if (!judge_routes(j, manager, name, lid)) {
            lacks = true;
        } else if (j->result->status != AUDIT_PASS) {
            return;
        }
    }
    if (lacks) {
        judge_end(j, AUDIT_UNKNOWN, NULL, NULL);
        j->result->reason = REASON_STALE;
        j->result->note = "the subnet manager's files do not have this port, or are from before";
    }
}

/* The top bit of a key means full membership. */
void rule_pkeys(struct judging *j)
{
    const char *keys = judge_text(j, FACT_PORT_PKEYS, j->subject);
    bool full = false;

    if (keys == NULL) {
        return;
    }
    for (const char *at = keys; (at = strstr(at, "0x")) != NULL; at += 2) {
        full = full || (at[2] >= '8' && strlen(at) >= 6);
    }
    if (!full) {
        judge_end(j, AUDIT_FAIL, keys, "full member of a partition");
    } else {
        judge_join(j, j->subject, keys, 0);
    }
}

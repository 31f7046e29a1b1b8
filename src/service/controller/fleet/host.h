/* host.h: what is known of a member: its NICs, paths, clock, cost, open findings and configuration, as it told them. */
#pragma once
#include <foliot.pb-c.h>
#include <netinet/in.h>

#include "base/allowance.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/fleet/fabric.h"
#include "core/fleet/freshness.h"
#include "core/fleet/member.h"
#include "core/fleet/report.h"
#include "platform/tls/tls.h"
#include "service/controller/fleet/nic.h"
#include "wire/pair_key.h"

#define CONTROLLER_HOST_FINDINGS 256   /* open ones remembered per host */
#define CONTROLLER_FINDINGS      65536 /* and of all that are judged by */
#define SENSORS_OFF_MAX          8

struct fleet_job_process;

#define FINDING_END_NONE    UINT32_MAX
#define FINDING_END_UNKNOWN (UINT32_MAX - 1) /* a host that is gone */

#define FINDING_NAMED_SOMEHOW 1 /* what is stored isn't known */
struct open_finding {
    uint32_t run, number;
    int64_t id, heard_ns; /* heard_ns: of the first time that it was about this, UTC */
    uint32_t from, to;    /* the hosts of its ends: all that it names beside its own */
    uint64_t subject;     /* its kind and ends */
    uint64_t named;       /* the element that all hosts' reports name, as stored; 0: none */
};

struct fleet_host {
    int64_t id; /* in the store */
    uint32_t index;
    char name[TLS_NAME_MAX + 1], serial[TLS_SERIAL_SIZE], serial_before[TLS_SERIAL_SIZE];
    char pin[2 * TLS_PIN_SIZE + 1], version[32], why[160], peer[INET6_ADDRSTRLEN];
    bool member, switches_told, switch_lie_told;
    uint32_t switches_named; /* of fabric.h, first by this host */
    uint32_t switch_looked;  /* ways_contradict: where it stopped */
    uint64_t tenant;         /* tenant.h */
    int64_t joined_ns, removed_ns, not_after;
    struct report_cursor cursor, committed;
    bool cursor_dirty;
    int64_t last_at_ns, sealed_ns; /* of its reports: never backwards */
    int64_t committed_at_ns;       /* last_at_ns, on the disk */
    uint32_t sealing;              /* stretches under way */
    bool coarse_due;               /* a day is sealed: its coarser chunks can be made */
    uint32_t nics[HOST_NIC_MAX];
    uint32_t nic_count;
    /* as reported; times of receiving */
    struct mono heard, rolled;
    int64_t heard_utc_ns;
    uint64_t boot;
    bool reported, tables_wanted;
    struct {
        uint32_t status, edges_live, edges_chosen, epoch;
        int64_t hard_ns, statistical_ns, offset_ns, rate_ppb;
        uint64_t timeline;
        bool utc_known;
    } clock;
    bool unsteady; /* its clock was out of step with its last report */
    struct mono
        steady; /* when it came into step again; 0: no report told of it out of step before */
    struct {
        uint32_t cpu_ppm, stamps_missing_ppm;
        uint64_t memory_bytes, packets_sent, packets_received, packets_bad, late_ticks,
            reports_lost, spool_bytes;
    } cost;
    uint32_t bound_ns;
    char sensors_off[SENSORS_OFF_MAX][120]; /* what it can't watch, in words */
    uint32_t sensor_off_count;
    uint64_t generation;
    struct fleet_path *paths;
    int64_t paths_at_ns; /* as they were then, on our clock; 0: nothing is known of them */
    uint32_t path_count, paths_dead, paths_lossy;
    struct mono paths_fed;   /* to alerts, the last time */
    struct fabric_way *hops; /* of own paths, by NIC, peer and port */
    uint32_t hop_count;
    struct fleet_job_process *jobs; /* as in its last rollup; job.h */
    uint32_t job_count;
    int64_t jobs_at_ns; /* of that rollup */
    struct open_finding findings[CONTROLLER_HOST_FINDINGS];
    uint32_t finding_count;
    struct allowance requests, renewals;
    struct {
        double rows, job_rows, stored, unpacked, work_ms; /* left; quota.h */
        int64_t at_ns;
        int64_t turn_ns,
            work_ns; /* processor time of the loop: where its turn began (0: it isn't), up to where it has paid */
    } quota;
    char report_refused[200];                /* to be told with the next answer; empty: nothing */
    int64_t over_ns, refused_ns, history_ns; /* when people were last told of it; 0: never */
    uint64_t events_dropped;                 /* and not yet told: quota.h */
    uint64_t reports, bytes, gaps;
    /* the fleet's configuration, as the host says it runs it */
    uint64_t config_version;
    uint32_t run, mode, report_ms, beat_ms; /* intervals in force; 0: ours */
    char refused[120];
    bool canary;
    /* why it isn't in others' list, or doesn't follow it; empty: neither */
    char left_out[MEMBER_WORDS_SIZE], members_refused[MEMBER_WORDS_SIZE];
    bool members_alarm; /* said to the alert engine */
    /* what it trusts and signs with; newest_shown: it came with the last certificate that we made */
    uint64_t authority_version, keys_version;
    bool newest_shown;
    uint32_t features;                  /* enum Feature, as bits */
    uint8_t pair_key[PAIR_PUBLIC_SIZE]; /* public half of the key that its probes are proven with */
    bool has_pair_key;
    uint64_t digest;            /* its part of the list's: members.h */
    struct mono pair_key_since; /* the hour in which it changed so often */
    uint32_t pair_key_changes;
};

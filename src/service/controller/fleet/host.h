/* host.h: the state of a member, from its reports: NICs, paths, clock, cost, open findings and configuration. */
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

#define CONTROLLER_HOST_FINDINGS 256   /* open findings kept per host */
#define CONTROLLER_FINDINGS      65536 /* for all hosts together */
#define SENSORS_OFF_MAX          8

struct fleet_job_process;

#define FINDING_END_NONE    UINT32_MAX
#define FINDING_END_UNKNOWN (UINT32_MAX - 1) /* a removed host */

#define FINDING_NAMED_SOMEHOW 1 /* a name is stored; which one is not known */
struct open_finding {
    uint32_t run, number;
    int64_t id, heard_ns; /* heard_ns: UTC of the first report of this finding with this subject */
    uint32_t from, to;    /* hosts of its ends; it names no others beside the reporting host */
    uint64_t subject;     /* hash of its kind and ends */
    uint64_t named;       /* the element that all hosts' reports name; 0: none */
};

struct fleet_host {
    int64_t id; /* its id in the store */
    uint32_t index;
    char name[TLS_NAME_MAX + 1], serial[TLS_SERIAL_SIZE], serial_before[TLS_SERIAL_SIZE];
    char pin[2 * TLS_PIN_SIZE + 1], version[32], why[160], peer[INET6_ADDRSTRLEN];
    bool member, switches_told, switch_lie_told;
    uint32_t switches_named; /* switches of fabric.h that this host named first */
    uint32_t switch_looked;  /* ways_contradict: where the last call stopped */
    uint64_t tenant;         /* see tenant.h */
    int64_t joined_ns, removed_ns, not_after;
    struct report_cursor cursor, committed;
    bool cursor_dirty;
    int64_t last_at_ns, sealed_ns; /* times of its reports; they never go back */
    int64_t committed_at_ns;       /* last_at_ns of what is on the disk */
    uint32_t sealing;              /* time ranges that are being sealed */
    bool coarse_due;               /* a day is sealed: its coarser chunks can be made */
    uint32_t nics[HOST_NIC_MAX];
    uint32_t nic_count;
    /* from reports; times of receiving */
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
    bool unsteady;      /* the last report had a clock out of step */
    struct mono steady; /* when the clock came into step again; 0: no report had it out of step */
    struct {
        uint32_t cpu_ppm, stamps_missing_ppm;
        uint64_t memory_bytes, packets_sent, packets_received, packets_bad, late_ticks,
            reports_lost, spool_bytes;
    } cost;
    uint32_t bound_ns;
    char sensors_off[SENSORS_OFF_MAX][120]; /* what the host can't watch, in words */
    uint32_t sensor_off_count;
    uint64_t generation;
    struct fleet_path *paths;
    int64_t paths_at_ns; /* time of `paths` on the controller's clock; 0: no paths are known */
    uint32_t path_count, paths_dead, paths_lossy;
    struct mono paths_fed;   /* last time that paths went to alerts */
    struct fabric_way *hops; /* outgoing paths, by NIC, peer and port */
    uint32_t hop_count;
    struct fleet_job_process *jobs; /* from the last rollup; job.h */
    uint32_t job_count;
    int64_t jobs_at_ns; /* time of that rollup */
    struct open_finding findings[CONTROLLER_HOST_FINDINGS];
    uint32_t finding_count;
    struct allowance requests, renewals;
    struct {
        double rows, job_rows, stored, unpacked, work_ms; /* what is left; quota.h */
        int64_t at_ns;
        int64_t turn_ns,
            /* processor time of the loop: at the start of this host's turn (0: no turn), and up to where it was paid */
            work_ns;
    } quota;
    char report_refused[200];                /* for the next answer; empty: none */
    int64_t over_ns, refused_ns, history_ns; /* when it was last logged; 0: never */
    uint64_t events_dropped;                 /* not reported yet: quota.h */
    uint64_t reports, bytes, gaps;
    /* the fleet's configuration that the host reports to run */
    uint64_t config_version;
    /* report_ms, beat_ms: intervals in force; 0: the controller's */
    uint32_t run, mode, report_ms, beat_ms;
    char refused[120];
    bool canary;
    /* why it is left out of the list, or refuses the list; empty: neither */
    char left_out[MEMBER_WORDS_SIZE], members_refused[MEMBER_WORDS_SIZE];
    bool members_alarm; /* reported to the alert engine */
    /* versions that it trusts and signs with; newest_shown: it used the newest certificate */
    uint64_t authority_version, keys_version;
    bool newest_shown;
    uint32_t features;                  /* bits of enum Feature */
    uint8_t pair_key[PAIR_PUBLIC_SIZE]; /* public half of the key that proves its probes */
    bool has_pair_key;
    uint64_t digest;            /* its part of the list's digest: members.h */
    struct mono pair_key_since; /* start of the hour in which changes are counted */
    uint32_t pair_key_changes;
};

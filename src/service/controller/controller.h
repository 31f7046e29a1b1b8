/* controller.h: the controller of a fleet: ingest, state, store and API on one loop; worker.h's threads beside it.
 *
 * The way of a report:
 * - fleet/ingest.c finds the host, and checks that it is the next report;
 * - it goes into the store's open transaction, and fleet/state.c makes the present state of it;
 * - a commit follows at most CONTROLLER_COMMIT_MS later;
 * - then the agent gets its acknowledgement, and the event streams get events.
 *
 * The shown state may be ahead of the disk by that time. An acknowledgement never is. If a commit fails, no report is
 * acknowledged, cursors go back to the disk's state, and agents send again. README.md lists the files. */
#pragma once
#include <systemd/sd-event.h>

#include "base/allowance.h"
#include "base/hash_index.h"
#include "platform/http/server.h"
#include "platform/journal/journal.h"
#include "platform/json/json.h"
#include "platform/message/message.h"
#include "service/alert/alerting.h"
#include "service/controller/api/live.h"
#include "service/controller/config.h"
#include "service/controller/fleet/host.h"
#include "service/controller/instance.h"

struct audits;
struct brain;
struct brain_recorder;
struct member_index;
struct members;
struct remote;
struct waiting;
struct worker;

enum { CONTROLLER_JOIN_PLACES = 64 };

struct controller {
    sd_event *loop;
    struct controller_config config;
    struct store *store;
    struct http_server *agents, *api, *api_local;
    sd_event_source *commit_timer, *second_timer, *alert_timer;
    /* threads. history: series for the API; keeper: sealing, the store's log */
    struct worker *history, *keeper;
    bool checkpointing;
    struct remote *remote;
    struct alerting *alerting; /* NULL: a command line that doesn't serve */
    struct {
        char nic[TLS_NAME_MAX + IF_NAMESIZE + 2]; /* the last name that was looked up */
        /* number of differences from the declared topology */
        uint32_t differences;
    } alarm;
    bool commit_armed, store_broken;
    bool api_plain; /* the API has no TLS */
    bool is_copy;   /* the store is a copy; this was logged */
    bool serves;    /* false: a command line */
    struct instance instance;
    int exit_code;
    struct json_writer json;
    struct message_arena batch_arena, report_arena;
    struct message_buffer body, unpacked, encoded, packed;

    /* authority */
    char *authority, *authority_key, *server_key, *server_certificate, *fleet_keys;
    int64_t server_not_after, authority_not_after;
    int64_t api_not_after; /* of the API's certificate; 0: none, or not known */
    char *api_authority, *api_authority_key, *api_key, *api_certificate;
    char *authority_before, *server_before; /* kept while the agents' server uses them */
    /* open the agents' server again, for another trust or certificate */
    bool reopen;
    /* seconds, UTC: when the older of two fleet keys is removed */
    int64_t key_retire;
    uint64_t keys_version, fleet_version, authority_version;
    struct token *tokens;
    size_t token_count;

    struct fleet_config *fleet_config;
    struct levels *levels;
    struct measures *measures;
    struct audits *audits; /* see audit/audit.h */
    struct declared *declared;
    struct fabric *fabric;
    struct faults *faults;   /* see fault.h */
    struct tenants *tenants; /* see tenant.h */
    struct jobs_state *jobs; /* see job.h */
    struct job_alarm *job_alarm;

    /* fleet */
    struct fleet_host **hosts; /* by index: in the order of joining */
    uint32_t host_count, host_capacity, member_count;
    struct hash_index host_names; /* index of hosts */
    uint32_t host_name_room;
    struct member_index *member_index; /* see member.c */
    struct brain *brain;             /* core/brain/brain.h; hosts have their index, NICs their id */
    struct brain_recorder *recorder; /* records the brain's input; NULL: no recording */
    struct fleet_nic **nics;         /* by id */
    uint32_t nic_count, nic_capacity;
    struct members *members; /* see members.h */
    uint64_t revision;       /* of the state, for ETags: + 1 with every change */

    struct waiting *waits;
    size_t wait_count, wait_capacity;
    struct recent_event recent[CONTROLLER_RECENT];
    uint64_t recent_count, recent_committed;
    int64_t recent_from; /* the first event of the open transaction, if recent_count is more */
    struct event_reader streams[CONTROLLER_STREAM_MAX];
    struct sign_in_code codes[CONTROLLER_CODES_MAX];
    /* by address: so one client does not use up another's limit */
    struct allowance joins[CONTROLLER_JOIN_PLACES];
    uint64_t join_salt; /* drawn at the start and each minute */
    /* strangers: requests with wrong tokens, of all addresses together */
    struct allowance renewals, strangers;
    uint32_t seal_turn;
    uint32_t seconds; /* served so far */
    int64_t started_ns;
    struct {
        struct mono due, seen, not_before; /* seen: last look at the clock */
        int64_t seen_utc_ns;
        bool audits; /* an audit has ended since the last removal of old audits */
    } expire;
    struct {
        uint64_t batches, reports, duplicates, ahead, gaps, malformed, foreign_nics,
            samples_dropped, refused, limited, commits, commit_failures, joins, join_refusals,
            sealed, api_requests, api_refused, api_limited, over, held, rows, row_bytes,
            events_dropped, values_dropped, unbuilt;
        int64_t commit_ns_max, commit_ns_last;
    } count;
};

/* ---- controller.c ---- */
struct controller_options {
    const char *config_path;
    bool config_given;
};
int controller_run(const struct controller_options *options);
void controller_say(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, with fields for the journal (platform/journal/journal.h). */
void controller_note(int priority, const struct journal_field *fields, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int64_t controller_utc_ns(void);
struct mono controller_mono(void);
/* Something was written: commit soon. */
void controller_touch(struct controller *c);
/* Commits at once. Threads read the store by another connection, which shows only committed data. */
void controller_commit(struct controller *c);
/* Called after a failed write: logs it and drops the transaction. No report is acknowledged. */
void controller_store_failed(struct controller *c, int r, const char *doing);
/* Opens store, authority and fleet without serving. Command lines use it, too. */
MUST_CHECK int controller_open(struct controller *c, const struct controller_options *options,
                               bool read_only);
void controller_close(struct controller *c);

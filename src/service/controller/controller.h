/* controller.h: the fleet's one place: ingest, state, store, API, on one loop; worker.h's threads beside it.
 *
 * The way of a report: fleet/ingest.c (whose is it, is it the next one) -> the store's open transaction
 * and fleet/state.c (what is now) -> a commit at most CONTROLLER_COMMIT_MS later -> the agent's
 * acknowledgement and the event streams. What is shown may be ahead of the disk by that much; what
 * is acknowledged never is. When a commit fails nobody is acknowledged, cursors go back to what the
 * disk has, and agents send again. README.md has the files. */
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
    struct worker *history, *keeper; /* threads: series for the API; sealing, the store's log */
    bool checkpointing;
    struct remote *remote;
    struct alerting *alerting; /* NULL: of a command line that doesn't serve */
    struct {
        char nic[TLS_NAME_MAX + IF_NAMESIZE + 2]; /* the name that was asked for last */
        uint32_t differences;                     /* from the declared topology */
    } alarm;
    bool commit_armed, store_broken;
    bool api_plain; /* without TLS */
    bool is_copy;   /* the store, which was logged */
    bool serves;    /* it isn't a command line */
    struct instance instance;
    int exit_code;
    struct json_writer json;
    struct message_arena batch_arena, report_arena;
    struct message_buffer body, unpacked, encoded, packed;

    /* authority */
    char *authority, *authority_key, *server_key, *server_certificate, *fleet_keys;
    int64_t server_not_after, authority_not_after;
    int64_t api_not_after; /* of the certificate that the API shows; 0: none, or it isn't known */
    char *api_authority, *api_authority_key, *api_key, *api_certificate;
    char *authority_before, *server_before; /* while the agents' server still has them */
    bool reopen;                            /* that server, for another trust or certificate */
    int64_t key_retire;                     /* s, UTC: when the older of two fleet keys goes */
    uint64_t keys_version, fleet_version, authority_version;
    struct token *tokens;
    size_t token_count;

    struct fleet_config *fleet_config;
    struct levels *levels;
    struct measures *measures;
    struct audits *audits; /* audit/audit.h */
    struct declared *declared;
    struct fabric *fabric;
    struct faults *faults;   /* fault.h */
    struct tenants *tenants; /* tenant.h */
    struct jobs_state *jobs; /* job.h */
    struct job_alarm *job_alarm;

    /* fleet */
    struct fleet_host **hosts; /* by index: order of joining */
    uint32_t host_count, host_capacity, member_count;
    struct hash_index host_names; /* into hosts */
    uint32_t host_name_room;
    struct member_index *member_index; /* of member.c */
    struct brain *brain; /* core/brain/brain.h: judges; hosts by their index, NICs by id */
    struct brain_recorder *recorder; /* of it; NULL: nothing is recorded */
    struct fleet_nic **nics;         /* by id */
    uint32_t nic_count, nic_capacity;
    struct members *members; /* members.h */
    uint64_t revision;       /* of the state, for ETags: + 1 with every change */

    struct waiting *waits;
    size_t wait_count, wait_capacity;
    struct recent_event recent[CONTROLLER_RECENT];
    uint64_t recent_count, recent_committed;
    int64_t recent_from; /* the first event of the open transaction, if recent_count is more */
    struct event_reader streams[CONTROLLER_STREAM_MAX];
    struct sign_in_code codes[CONTROLLER_CODES_MAX];
    struct allowance joins[CONTROLLER_JOIN_PLACES]; /* by address: one stranger stops no other's */
    uint64_t join_salt;                             /* drawn at the start and each minute */
    struct allowance renewals, strangers;           /* strangers: wrong tokens; of all together */
    uint32_t seal_turn;
    uint32_t seconds; /* that it has served */
    int64_t started_ns;
    struct {
        struct mono due, seen, not_before; /* seen: the last look at the clock */
        int64_t seen_utc_ns;
        bool audits; /* one has ended since the last look through what they keep */
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
/* The same with fields for the journal (platform/journal/journal.h). */
void controller_note(int priority, const struct journal_field *fields, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int64_t controller_utc_ns(void);
struct mono controller_mono(void);
/* Something was written: commit soon. */
void controller_touch(struct controller *c);
/* Commits at once. Threads read another connection to the store, which has only what is committed. */
void controller_commit(struct controller *c);
/* After a write that failed: says so; the transaction is given up, nobody is acknowledged. */
void controller_store_failed(struct controller *c, int r, const char *doing);
/* Opens store, authority and fleet without serving: for command lines too. */
MUST_CHECK int controller_open(struct controller *c, const struct controller_options *options,
                               bool read_only);
void controller_close(struct controller *c);

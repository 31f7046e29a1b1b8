/* controller.h: the fleet's one place: ingest, state, store, API, on one loop; worker.h's threads beside it.
 *
 * The way of a report: ingest.c (whose is it, is it the next one) -> the store's open transaction
 * and state.c (what is now) -> a commit at most CONTROLLER_COMMIT_MS later -> the agent's
 * acknowledgement and the event streams. What is shown may be ahead of the disk by that much; what
 * is acknowledged never is. When a commit fails nobody is acknowledged, cursors go back to what the
 * disk has, and agents send again.
 *
 * Files: controller.c life, loop, commit; listen.c where it is found; instance.c which copy is the newest; config.c its file;
 * alarm.c facts into alerts;
 * authority.c certificates, keys, tokens; rotate.c new ones; api_certificate.c the API's;
 * fleet.c members; fleet_config.c what they are told to do; admit.c, ingest.c agents; quota.c how much
 * of one host; state.c reports into state and events; measure.c, check.c what is measured on demand; topology.c what is declared,
 * fabric.c what is between the leaves; compaction.c reports into chunks; series.c history out again;
 * latency.c the matrix now and then; api*.c and metrics.c what is served. */
#pragma once
#include <foliot.pb-c.h>
#include <netinet/in.h>
#include <systemd/sd-event.h>

#include "base/hash_index.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/fleet/delay_code.h"
#include "core/fleet/freshness.h"
#include "core/fleet/member.h"
#include "core/fleet/report.h"
#include "platform/config/config.h"
#include "platform/http/server.h"
#include "platform/journal/journal.h"
#include "platform/json/json.h"
#include "platform/message/message.h"
#include "platform/store/chunk.h"
#include "platform/store/store.h"
#include "platform/tls/tls.h"
#include "service/alert/alerting.h"
#include "service/controller/instance.h"
#include "wire/pair_key.h"

#define CONTROLLER_DATA_DEFAULT   "/var/lib/foliot-controller"
#define CONTROLLER_CONFIG_DEFAULT "/etc/foliot/controller.yaml"
#define CONTROLLER_PORT           7638
#define CONTROLLER_API_PORT       7639
#define CONTROLLER_COMMIT_MS      50
#define CONTROLLER_PATH_SIZE      256
#define CONTROLLER_SLOT_NS        (10 * NS_PER_S)
#define CONTROLLER_SEAL_NS        (600 * NS_PER_S)
#define CONTROLLER_HOST_FINDINGS  256 /* open ones remembered per host */
#define CONTROLLER_STREAM_MAX     256 /* readers of live events */
#define CONTROLLER_RECENT         1024
#define CONTROLLER_API_NAMES_MAX  16
#define CONTROLLER_API_NAME_SIZE  254
#define CONTROLLER_CODES_MAX      64
#define SENSORS_OFF_MAX           8
#define TOKEN_SCOPE_SIZE          256

struct controller_config {
    char path[CONTROLLER_PATH_SIZE], data_dir[CONTROLLER_PATH_SIZE];
    char listen[80], api_listen[80];
    char api_socket[CONTROLLER_PATH_SIZE + 16]; /* empty: the default place; "none" */
    char alerts[CONTROLLER_PATH_SIZE]; /* alerts.yaml; empty: the default place, if it is there */
    char levels[CONTROLLER_PATH_SIZE]; /* levels.yaml; likewise */
    char api_certificate[CONTROLLER_PATH_SIZE], api_key[CONTROLLER_PATH_SIZE];
    char api_names[CONTROLLER_API_NAMES_MAX][CONTROLLER_API_NAME_SIZE]; /* further ones, of ours */
    size_t api_name_count;
    bool metrics_open; /* /metrics without a token */
    struct {
        char url[512], authorization_file[CONTROLLER_PATH_SIZE], authority[CONTROLLER_PATH_SIZE];
        bool paths;
    } remote; /* where samples are written to; url empty: nowhere */
    uint32_t report_ms, beat_ms;
    int64_t certificate_s; /* life of a host's certificate */
    int64_t keep_fine_ns, keep_middle_ns, keep_coarse_ns, keep_events_ns;
};
/* path NULL or missing (and not asked for): defaults. -EINVAL with error->text. */
MUST_CHECK int controller_config_load(const char *path, bool must_be, struct controller_config *ret,
                                      struct config_error *error);

/* The API without TLS, where the address is ours to choose: only on the loopback address, and only without a key of its own. */
bool controller_api_plain(const struct controller_config *config);

struct fleet_path { /* one that arrives at a NIC of the host */
    uint32_t local, peer;
    uint64_t signature;
    uint16_t port;
    uint8_t state;    /* PathState */
    int32_t p50, p99; /* delay codes */
    uint32_t loss_ppm;
};

struct fabric;
struct fleet_job_process;
struct jobs_state;
struct fleet_hops { /* how many switches a host's own packets pass, and which */
    uint32_t local, peer;
    uint16_t port, hops;
    uint16_t switches[PATH_HOP_MAX]; /* of fabric.h, + 1; 0: not known */
};

struct fleet_host;
struct fleet_nic {
    uint32_t id;
    struct fleet_host *host;
    char name[IF_NAMESIZE], leaf[64], trouble[160];
    char neighbour[64], neighbour_port[64]; /* by LLDP; empty: not known */
    uint32_t rail, configured_mbps;
    uint8_t address4[4], address6[16];
    /* as reported */
    uint32_t state, speed_mbps, width, stamps, flaps_hour, flaps_day;
    int64_t since_utc_ns; /* 0: not known */
    uint64_t carrier_downs, rx_bytes, tx_bytes, rx_errors, tx_errors, rx_drops, tx_drops;
    int64_t bytes_at_ns;
    int64_t rx_bps, tx_bps; /* -1: not known */
    bool reported;
};

struct open_finding {
    uint32_t run, number;
    int64_t id;
};

struct fleet_host {
    int64_t id; /* in the store */
    uint32_t index;
    char name[TLS_NAME_MAX + 1], serial[TLS_SERIAL_SIZE], serial_before[TLS_SERIAL_SIZE];
    char pin[2 * TLS_PIN_SIZE + 1], version[32], why[160], peer[INET6_ADDRSTRLEN];
    bool member, switches_told;
    uint32_t switches_named; /* of fabric.h, first by this host */
    uint64_t tenant;         /* tenant.h */
    int64_t joined_ns, removed_ns, not_after;
    struct report_cursor cursor, committed;
    bool cursor_dirty;
    int64_t last_at_ns, sealed_ns; /* of its reports: never backwards */
    int64_t committed_at_ns;       /* last_at_ns, on the disk */
    uint32_t sealing;              /* stretches under way */
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
    uint32_t path_count, paths_dead, paths_lossy;
    struct fleet_hops *hops; /* of own paths, by NIC, peer and port */
    uint32_t hop_count;
    struct fleet_job_process *jobs; /* as in its last rollup; job.h */
    uint32_t job_count;
    int64_t jobs_at_ns; /* of that rollup */
    struct open_finding findings[CONTROLLER_HOST_FINDINGS];
    uint32_t finding_count;
    enum freshness shown_freshness; /* last told as an event */
    double allowance;               /* of requests, refilled with time */
    int64_t allowance_ns;
    struct {
        double rows, stored, unpacked; /* left; quota.h */
        int64_t at_ns;
    } quota;
    char report_refused[200];    /* to be told with the next answer; empty: nothing */
    int64_t over_ns, refused_ns; /* when people were last told of it; 0: never */
    uint64_t events_dropped;     /* and not yet told: quota.h */
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
    struct mono pair_key_since; /* the hour in which it changed so often */
    uint32_t pair_key_changes;
};

struct token {
    int64_t id, expires_ns, uses_left, used_ns, created_ns;
    char name[64], role[12], scope[TOKEN_SCOPE_SIZE]; /* scope: patterns of hosts; empty: all */
    uint8_t hash[STORE_HASH_SIZE];
    struct {
        double requests, work_s; /* left; api_limit.c */
        int64_t at_ns;
        uint32_t tasks; /* waited for */
    } limit;
};

struct remote;
struct worker;

struct waiting { /* for the commit */
    struct http_request *request;
    struct fleet_host *host;
    uint64_t fleet_version, keys_version, settings_version, authority_version,
        stream; /* as it has them */
};

struct event_reader {             /* of live events */
    struct http_request *request; /* NULL: free */
    int64_t token;
    bool viewer;
    struct mono written; /* last */
    char scope[TOKEN_SCOPE_SIZE];
};

#define TOKEN_TEXT_SIZE 192
struct sign_in_code { /* of a link that signs in once */
    uint8_t hash[STORE_HASH_SIZE];
    int64_t id; /* the token's */
    char token[TOKEN_TEXT_SIZE];
    struct mono expires; /* 0: free */
};

struct recent_event {
    int64_t id, host;
    char kind[16];
    char *body; /* the detail, as JSON */
    char *text; /* of the event stream: "id: …\nevent: …\ndata: …\n\n" */
};

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
    bool commit_armed, store_broken;
    bool api_plain; /* without TLS */
    bool is_copy;   /* the store, which was logged */
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
    struct declared *declared;
    struct fabric *fabric;
    struct tenants *tenants; /* tenant.h */
    struct jobs_state *jobs; /* job.h */
    struct job_alarm *job_alarm;

    /* fleet */
    struct fleet_host **hosts; /* by index: order of joining */
    uint32_t host_count, host_capacity, member_count;
    struct hash_index host_names; /* into hosts */
    struct fleet_nic **nics;      /* by id */
    uint32_t nic_count, nic_capacity;
    struct message_buffer fleet_packed; /* zstd of a BatchReply with the fleet alone */
    bool pair_keys_changed;             /* since the list's last version */
    struct mono pair_keys_told;
    uint64_t fleet_packed_version;
    uint64_t revision; /* of the state, for ETags: + 1 with every change */

    struct waiting *waits;
    size_t wait_count, wait_capacity;
    struct recent_event recent[CONTROLLER_RECENT];
    uint64_t recent_count, recent_committed;
    struct event_reader streams[CONTROLLER_STREAM_MAX];
    struct sign_in_code codes[CONTROLLER_CODES_MAX];
    uint32_t seal_turn;
    int64_t started_ns;
    struct {
        struct mono due, seen, not_before; /* seen: the last look at the clock */
        int64_t seen_utc_ns;
    } expire;
    struct {
        uint64_t batches, reports, duplicates, ahead, gaps, malformed, foreign_nics,
            samples_dropped, refused, limited, commits, commit_failures, joins, join_refusals,
            sealed, api_requests, api_refused, api_limited, over, held, rows, row_bytes,
            events_dropped;
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
/* After a write that failed: says so; the transaction is given up, nobody is acknowledged. */
void controller_store_failed(struct controller *c, int r, const char *doing);
/* Opens store, authority and fleet without serving: for command lines too. */
MUST_CHECK int controller_open(struct controller *c, const struct controller_options *options,
                               bool read_only);
void controller_close(struct controller *c);

/* ---- listen.c ---- */
MUST_CHECK int listen_agents(struct controller *c);
MUST_CHECK int listen_api(struct controller *c);
void listen_local(struct controller *c);       /* the API's socket in the file system */
void listen_write_ports(struct controller *c); /* data_dir/ports */

/* ---- authority.c ---- */
MUST_CHECK int authority_create(const char *data_dir, char ret_words[256]); /* of `init` */
MUST_CHECK int authority_load(struct controller *c);
void authority_free(struct controller *c);
MUST_CHECK int authority_sign(struct controller *c, const char *request, const char *name,
                              char **ret_certificate, struct tls_certificate *ret_read);
void authority_hash(const void *secret, size_t size, uint8_t ret_hash[STORE_HASH_SIZE]);

/* Our own certificate, signed by the first of these authorities. */
MUST_CHECK int authority_server(const struct controller *c, const char *authority,
                                char **ret_certificate);

/* ---- api_certificate.c ---- */
MUST_CHECK int api_certificate_load(struct controller *c);
void api_certificate_free(struct controller *c);
/* s, UTC: of whichever of our own certificates ends first, the agents' port's or the API's. */
int64_t api_certificate_end(const struct controller *c);
bool api_name_good(const char *name); /* a name or address that a certificate can be for */
/* Of "NAME", "NAME:PORT", "[ADDRESS]:PORT". -EINVAL: it isn't one. */
MUST_CHECK int api_name_of(const char *address, char ret_name[CONTROLLER_API_NAME_SIZE]);
/* What `init --address` was given: for the certificate, whenever it is made. */
MUST_CHECK int api_name_keep(const char *data_dir, const char *name);

/* ---- rotate.c ---- */
MUST_CHECK int rotate_recover(const char *data_dir); /* of an exchange that was cut off */
MUST_CHECK int rotate_load(struct controller *c);
bool rotate_in_progress(const struct controller *c); /* two authorities are trusted */
/* It has the new list and a certificate of the new authority, and showed it; or is no member. */
bool rotate_done_by(const struct controller *c, const struct fleet_host *h);
/* -EBUSY: the last one isn't over. ret_step: what failed, "writing fleet.key", of another error of these three. */
MUST_CHECK int rotate_authority(struct controller *c, const char **ret_step);
/* Whoever isn't done must join again. */
MUST_CHECK int rotate_finish(struct controller *c, const char **ret_step);
/* Used from after_s on; the old one is taken out after as long again. -EBUSY: there are two. */
MUST_CHECK int rotate_fleet_key(struct controller *c, int64_t after_s, const char **ret_step);
struct rotate_keys {
    unsigned count, id, next_id;
    int64_t next_at, retire_at; /* s, UTC */
};
void rotate_keys(const struct controller *c, struct rotate_keys *ret);
void rotate_watch(struct controller *c); /* once a second */

/* ---- token.c ---- */
MUST_CHECK int tokens_load(struct controller *c);
/* role "join": a join token, with uses; else an API token. life_s 0: it lasts. The text is shown
 * once and kept nowhere. -EEXIST: one of that name lives. */
struct token_wish {
    const char *name, *role,
        *scope; /* scope NULL: all hosts; of a join token: those that may join */
    int64_t life_s, uses;
};
#define TOKEN_NAME_SIZE 64
/* A name that none has yet: base, or base-2 and so on. */
void token_free_name(const struct controller *c, const char *base, char ret_name[TOKEN_NAME_SIZE]);
MUST_CHECK int token_make(struct controller *c, const struct token_wish *wish,
                          char ret_text[TOKEN_TEXT_SIZE], int64_t *ret_id);
/* 256 random bits as text. */
MUST_CHECK int token_random(char ret_text[44]);
MUST_CHECK int token_remove(struct controller *c, int64_t id);
/* NULL: no such, expired, or used up (unless `spent_too`). */
struct token *token_find(struct controller *c, const void *secret, size_t size, bool join,
                         bool spent_too);

struct token *token_by_id(struct controller *c, int64_t id); /* NULL: no such, or expired */

/* ---- place.c ---- */
#define CONTROLLER_EXIT_COPY 78 /* sysexits' EX_CONFIG: the unit doesn't start it again */
/* Is the store at this path the file that the fleet's controller last had? A store without a place gets this one.
 * -ESTALE with ret_copy: it is a copy, which was logged. */
MUST_CHECK int place_check(struct store *s, const char *path, bool *ret_copy);
/* From now on it is this one. */
MUST_CHECK int place_take(struct store *s, const char *path);

/* ---- member.c ---- */
struct fleet_join;
/* Would agents take a list with this host in it? -EINVAL with words; -ENOMEM. */
MUST_CHECK int member_check(const struct controller *c, const struct fleet_join *join,
                            char ret_words[MEMBER_WORDS_SIZE]);
/* A member of a store from before this was asked: a bad one stays a member, is logged, and is left out of the list. */
void member_look(struct fleet_host *host, const struct fleet_nic *nic);

/* ---- fleet.c ---- */
MUST_CHECK int fleet_load(struct controller *c);
void fleet_free(struct controller *c);
struct fleet_host *fleet_find_host(const struct controller *c, const char *name);
struct fleet_host *fleet_host_by_id(const struct controller *c, int64_t id);
struct fleet_nic *fleet_find_nic(const struct controller *c, uint32_t id); /* NULL: none, removed */
struct fleet_join {
    const char *name, *version;
    const struct tls_certificate *certificate;
    Foliot__V1__Nic *const *nics;
    size_t nic_count;
};
/* -EEXIST: a member with another key; -EINVAL with words; else the store's. */
MUST_CHECK int fleet_add(struct controller *c, const struct fleet_join *join,
                         struct fleet_host **ret_host, char ret_words[MEMBER_WORDS_SIZE]);
MUST_CHECK int fleet_remove(struct controller *c, struct fleet_host *host);
/* Of a store that was put back: agents have had lists of members by the numbers that would come next, and would take
 * the new ones for those. Goes on from a number that is above all that counting has reached. */
MUST_CHECK int fleet_renumber(struct store *s);
/* The public half of the key that a host's probes are proven with, as its agent tells it; size 0: it has none. All
 * agents learn of it. A few changes an hour count. */
void fleet_pair_key(struct controller *c, struct fleet_host *host, const uint8_t *key, size_t size);
MUST_CHECK int fleet_save_host(struct controller *c, const struct fleet_host *host);
/* Fills `reply` with the whole membership, out of the arena. -ENOMEM. */
MUST_CHECK int fleet_message(struct controller *c, struct message_arena *arena,
                             Foliot__V1__Fleet **ret_fleet);
/* zstd of a BatchReply that holds only the fleet: appended to another one's zstd. */
const struct message_buffer *fleet_packed(struct controller *c);
enum freshness fleet_freshness(const struct controller *c, const struct fleet_host *h,
                               struct mono now);
/* Its word still counts. */
bool fleet_current(const struct controller *c, const struct fleet_host *h, struct mono now);
/* Its link is up and it can't be probed from, or its link's state can't be read. */
bool fleet_nic_unwatched(const struct fleet_nic *n);
uint32_t fleet_nics_unwatched(const struct controller *c, const struct fleet_host *h);
enum health fleet_health(const struct controller *c, const struct fleet_host *h, struct mono now);

/* at_ns less what lies between two readings of one clock; at_ns where that is no sensible age:
 * readings are what strangers say. */
int64_t controller_back(int64_t at_ns, int64_t later_ns, int64_t earlier_ns);
/* Bits a second, -1: not known. */
int64_t controller_rate(uint64_t before, uint64_t now, int64_t passed_ns);

/* ---- ingest.c ---- */
unsigned ingest_on_head(void *context, struct http_request *request);
void ingest_on_request(void *context, struct http_request *request);
void ingest_on_gone(void *context, struct http_request *request);
/* After a commit: 0, or why it failed. */
void ingest_answer_waiting(struct controller *c, int r);

/* ---- state.c ---- */
/* One report of a host, decoded, at a moment of our clock. Writes events and findings. */
MUST_CHECK int state_apply(struct controller *c, struct fleet_host *h,
                           const Foliot__V1__Report *report, int64_t at_ns);
/* Tells of hosts that fell silent or came back. */
void state_watch(struct controller *c);
/* Writes an event row; it is shown to streams after the commit. */
MUST_CHECK int state_event(struct controller *c, const struct store_event *event);
/* One that the host itself tells; without rows left (quota.h) it is only counted. */
MUST_CHECK int state_event_of(struct controller *c, struct fleet_host *h,
                              const struct store_event *event);
void state_committed(struct controller *c, bool ok);
/* One event as JSON, for the API and streams. */
void state_put_event(const struct controller *c, struct json_writer *j,
                     const struct store_event *event);

/* Which switches the packets of a path pass; NULL: not known. */
const struct fleet_hops *fleet_way(const struct controller *c, uint32_t from, uint32_t to,
                                   uint32_t port);
/* How many these are; 0: not known. */
uint32_t fleet_path_hops(const struct controller *c, uint32_t from, uint32_t to, uint32_t port);

/* ---- alarm.c: what is told to the alert engine ---- */
MUST_CHECK int alarm_open(struct controller *c);
void alarm_close(struct controller *c);
void alarm_on_host(struct controller *c, const struct fleet_host *h); /* it spoke */
void alarm_on_finding(struct controller *c, const struct fleet_host *h,
                      const Foliot__V1__Finding *f, const char *text, int64_t since_ns);
void alarm_on_run(struct controller *c, const struct fleet_host *h, uint32_t run);
void alarm_on_removed(struct controller *c, const struct fleet_host *h);
/* After state_apply has taken it: its values, unless they are old. */
void alarm_on_report(struct controller *c, const struct fleet_host *h,
                     const Foliot__V1__Report *report, int64_t at_ns);
/* Once a second: what is of no host. */
void alarm_second(struct controller *c);
/* After a batch of facts: tells what is to be told, and sets the timer. */
void alarm_run(struct controller *c);
void alarm_reload(struct controller *c);
/* Puts what survives a restart into the open transaction, if it changed. */
void alarm_save(struct controller *c);

/* ---- compaction.c, series.c ---- */
/* In the keeper: what is due is begun, and stored as it comes back. */
void seal_some(struct controller *c);
void seal_expire(struct controller *c);

/* ---- api.c, api_*.c, metrics.c ---- */
unsigned api_on_head(void *context, struct http_request *request);
void api_on_request(void *context, struct http_request *request);
void api_on_gone(void *context, struct http_request *request);
void api_stream_event(struct controller *c, const struct recent_event *event);
/* Once a second, and when one is revoked: ends the streams of tokens that are no more; a comment to quiet ones. */
void api_watch_streams(struct controller *c);

/* store.h: what the controller remembers.
 *
 * One file, one writer (a lock on the file keeps a second controller out). Writes gather in one
 * transaction until store_commit, which returns once they are on the disk: what is acknowledged
 * after it survives kill -9 and power loss. When it fails everything since the last commit is gone,
 * and the store goes on: -ENOSPC (the disk is full), -EIO, -EUCLEAN (the file is damaged: stop and
 * restore).
 *
 * Times: UTC, ns. Texts given to callbacks are valid in them only. All calls may return -ENOMEM,
 * -ENOSPC, -EIO, -EUCLEAN. A host's or NIC's number is never used for another one. */
#pragma once
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "platform/tls/tls.h"

#define STORE_SCHEMA 5

struct store;

struct store_options {
    const char *path;
    bool read_only, create;
    /* Beside the writer, in its process, for another thread: reads what is committed and may call
     * store_checkpoint. Takes no lock and looks nothing through. */
    bool helper;
};
/* -ENOENT (and !create), -EBUSY (another controller has it), -EUCLEAN, -EPROTO (a newer schema).
 * ret_words: why not, for people. An older schema is brought forward. */
MUST_CHECK int store_open(const struct store_options *options, struct store **ret_store,
                          char ret_words[256]);
void store_close(struct store *s); /* commits nothing; NULL is fine */
MUST_CHECK int store_commit(struct store *s);
void store_rollback(struct store *s);
/* Commits go to a log, which is copied into the file now and then. Whoever has a helper for that
 * calls store_checkpoint there once store_log_pages says STORE_LOG_PAGES, and then once on the
 * writer's own for the little that came meanwhile, so that the log can start anew. Without a helper
 * a commit does it itself; with one only when the log has grown eight times as long. */
#define STORE_LOG_PAGES 2000
void store_has_helper(struct store *s);
uint32_t store_log_pages(const struct store *s); /* after the last commit */
MUST_CHECK int store_checkpoint(struct store *s);
bool store_dirty(const struct store *s);
/* Of a helper: what it reads from here on is of one moment. */
MUST_CHECK int store_snapshot(struct store *s);
void store_snapshot_end(struct store *s);
/* The whole file looked through, each index against its table. 0, or -EUCLEAN with words. store_open looks at every
 * page of a file below STORE_CHECK_BYTES, at less than half the cost: whoever has a helper lets it do the rest. */
#define STORE_CHECK_BYTES (64 << 20)
MUST_CHECK int store_check(struct store *s, char ret_words[256]);
/* What was deleted leaves empty pages, which the next rows take. Of those beyond one in STORE_SPARE
 * of the file, at most `pages` are given back to the disk, each at the cost of one page moved; the
 * file is shorter after the commit and the next checkpoint. How many went; 0: there are no more. */
#define STORE_SPARE 8
int store_shrink(struct store *s, int pages);
/* Copies into another file while the store is in use: `pages` a call, > 0: more is left; 0: done
 * and on the disk. */
struct store_backup;
/* -EEXIST: a file is there; -ENOENT: none can be made. */
MUST_CHECK int store_backup_open(struct store *s, const char *path, struct store_backup **ret);
MUST_CHECK int store_backup_step(struct store_backup *b, int pages);
void store_backup_close(struct store_backup *b); /* done or not; NULL is fine */

/* ---- settings: small named values ---- */
/* -ENOENT. The caller frees. */
MUST_CHECK int store_get(struct store *s, const char *name, char **ret_value, size_t *ret_size);
MUST_CHECK int store_put(struct store *s, const char *name, const void *value, size_t size);

/* ---- hosts and NICs ---- */
enum store_host_state { STORE_HOST_MEMBER = 1, STORE_HOST_REMOVED = 2 };
struct store_host {
    int64_t id; /* 0 in store_host_put: a new one */
    const char *name;
    int state;
    int64_t joined_ns, removed_ns;
    const char *serial, *serial_before; /* certificates that may speak for it */
    const char *pin;                    /* hex, of its public key */
    int64_t not_after;                  /* of the newer, s */
    uint64_t stream, number;            /* the last report taken */
    int64_t sealed_ns;                  /* reports before this are in chunks */
    const char *version;
};
struct store_nic {
    uint32_t id;
    int64_t host;
    const char *name, *leaf;
    uint32_t rail, speed_mbps;
    uint8_t address4[4], address6[16]; /* zero: none */
    bool removed;
};
typedef int (*store_host_each)(void *context, const struct store_host *host);
typedef int (*store_nic_each)(void *context, const struct store_nic *nic);
/* A callback's result other than 0 ends the walk and is returned. */
MUST_CHECK int store_hosts(struct store *s, store_host_each each, void *context);
MUST_CHECK int store_nics(struct store *s, store_nic_each each, void *context);
MUST_CHECK int store_host_put(struct store *s, const struct store_host *host, int64_t *ret_id);
MUST_CHECK int store_host_cursor(struct store *s, int64_t id, uint64_t stream, uint64_t number);
MUST_CHECK int store_nic_put(struct store *s, const struct store_nic *nic);

/* ---- reports and series ---- */
MUST_CHECK int store_report_put(struct store *s, int64_t host, int64_t at_ns, const void *body,
                                size_t size);
typedef int (*store_blob_each)(void *context, int64_t at_ns, const void *body, size_t size);
/* Not yet sealed, from <= at < to, oldest first. */
MUST_CHECK int store_reports(struct store *s, int64_t host, int64_t from_ns, int64_t to_ns,
                             store_blob_each each, void *context);
/* One that is known already stays as it is, and has come again: at_ns. */
MUST_CHECK int store_table_put(struct store *s, int64_t host, uint64_t generation, int64_t at_ns,
                               const void *body, size_t size);
MUST_CHECK int store_table_get(struct store *s, int64_t host, uint64_t generation,
                               store_blob_each each, void *context); /* -ENOENT */
struct store_chunk {
    int tier; /* 0, 1, 2: finer to coarser */
    int64_t host, from_ns, to_ns;
    const void *body;
    size_t size;
};
/* Replaces one with the same tier, host and from_ns. */
MUST_CHECK int store_chunk_put(struct store *s, const struct store_chunk *chunk);
/* Overlapping from..to, oldest first. */
MUST_CHECK int store_chunks(struct store *s, int tier, int64_t host, int64_t from_ns, int64_t to_ns,
                            store_blob_each each, void *context);
/* The chunk is on its way to the disk in this transaction: the reports before to_ns go, so do path
 * tables that others followed more than a day before it, and the host's sealed_ns becomes to_ns. */
MUST_CHECK int store_sealed(struct store *s, int64_t host, int64_t to_ns);
/* Deletes chunks of a tier that end before `before_ns`, at most `limit` of them: how many went. */
int store_chunks_expire(struct store *s, int tier, int64_t before_ns, int limit);

/* ---- events and findings ---- */
struct store_event {
    int64_t id, at_ns, fleet_ns, host; /* id 0 in store_event_put */
    const char *kind;                  /* "finding", "link", "host", "controller" */
    const char *word;                  /* "path-dead", "down", "joined" */
    const char *body;                  /* JSON object */
};
struct store_event_filter {
    int64_t after_id, before_id, since_ns, until_ns, host; /* 0: no limit */
    const char *kind, *word;                               /* NULL: any */
    const char
        *hosts; /* NULL: any; "[1,5]": of these alone, at a cost that others' rows don't add to */
    bool newest_first;
    int limit;
};
typedef int (*store_event_each)(void *context, const struct store_event *event);
/* *ret_id: its number, larger than all before. */
MUST_CHECK int store_event_put(struct store *s, const struct store_event *event, int64_t *ret_id);
/* Until each returns other than 0: below 0 it is what this returns, above 0 ends it well. */
MUST_CHECK int store_events(struct store *s, const struct store_event_filter *filter,
                            store_event_each each, void *context);
/* Events, closed findings and the audit trail, each at most `limit`: how many events went. */
int store_events_expire(struct store *s, int64_t before_ns, int limit);

struct store_finding {
    int64_t id, host, opened_ns, updated_ns, closed_ns; /* closed_ns 0: open */
    uint32_t run, number;                               /* with host: its name */
    const char *kind, *body;                            /* body: JSON object */
    const char *named;                                  /* store_finding_name; "": nothing */
};
struct store_finding_filter {
    int64_t before_id, host, since_ns, until_ns; /* 0: no limit */
    int open;                                    /* 1 open, 0 closed, -1 any */
    const char *kind, *hosts;                    /* NULL: any; hosts as above */
    int limit;
};
typedef int (*store_finding_each)(void *context, const struct store_finding *finding);
/* A new one, or the same one's new state; once closed it stays closed. */
MUST_CHECK int store_finding_put(struct store *s, const struct store_finding *finding,
                                 int64_t *ret_id);
/* What all hosts' reports name as the cause of an open one: JSON, or "". */
MUST_CHECK int store_finding_name(struct store *s, int64_t host, uint32_t run, uint32_t number,
                                  const char *named);
/* Newest first. */
MUST_CHECK int store_findings(struct store *s, const struct store_finding_filter *filter,
                              store_finding_each each, void *context);
/* An agent that starts anew knows nothing of its old run's open findings: they are closed. */
MUST_CHECK int store_findings_close_others(struct store *s, int64_t host, uint32_t run,
                                           int64_t at_ns);

/* ---- tokens and audit ---- */
#define STORE_HASH_SIZE 32
struct store_token {
    int64_t id, created_ns, expires_ns, used_ns; /* expires_ns 0: never */
    const char *name, *role;                     /* role "join": uses_left counts */
    const char *scope;                           /* whose hosts it sees; empty: all */
    int64_t uses_left;
    uint8_t hash[STORE_HASH_SIZE];
};
typedef int (*store_token_each)(void *context, const struct store_token *token);
/* All, also those that have ended. */
MUST_CHECK int store_tokens(struct store *s, store_token_each each, void *context);
/* A new one: its id is given out. -EEXIST: a token of this hash is there. */
MUST_CHECK int store_token_put(struct store *s, const struct store_token *token, int64_t *ret_id);
MUST_CHECK int store_token_use(struct store *s, int64_t id, int64_t at_ns); /* -ENOENT: used up */
MUST_CHECK int store_token_remove(struct store *s, int64_t id);             /* -ENOENT */

struct store_audit {
    int64_t id, at_ns;
    const char *who, *what, *detail;
    const char *source; /* the address that it came from, "local"; NULL or empty: not known */
};
typedef int (*store_audit_each)(void *context, const struct store_audit *audit);
MUST_CHECK int store_audit_put(struct store *s, const struct store_audit *audit);
MUST_CHECK int store_audits(struct store *s, int64_t before_id, int limit, store_audit_each each,
                            void *context);

/* ---- facts of hosts, and audits of them ---- */
/* A part of a host's sheet as it is from at_ns on; each content is kept once, by its hash. The same as before: nothing. */
MUST_CHECK int store_part_put(struct store *s, int64_t host, const char *part, int64_t at_ns,
                              const uint8_t hash[static STORE_HASH_SIZE], const void *body,
                              size_t size);
/* Is this its newest? 1 or 0. */
MUST_CHECK int store_part_is(struct store *s, int64_t host, const char *part,
                             const uint8_t hash[static STORE_HASH_SIZE]);
/* What is never the same twice, and how the look went: the newest only. */
struct store_look {
    int64_t host, at_ns;
    uint32_t left_out;
    const char *refused; /* why there is no sheet, in words; empty: there is */
    const void *now;
    size_t now_size;
};
/* In the place of the host's last one. */
MUST_CHECK int store_look_put(struct store *s, const struct store_look *look);
typedef int (*store_look_each)(void *context, const struct store_look *look);
MUST_CHECK int store_looks(struct store *s, int64_t host, store_look_each each,
                           void *context); /* host 0: all */
struct store_part {
    const char *part;
    int64_t at_ns;
    const uint8_t *hash;
    const void *body;
    size_t size;
};
typedef int (*store_part_each)(void *context, const struct store_part *part);
/* As they were at at_ns; without what is never the same twice (STORE_PART_NOW). */
MUST_CHECK int store_parts(struct store *s, int64_t host, int64_t at_ns, store_part_each each,
                           void *context);
/* Of these, those that had another content at than_ns, or none. The others' bodies are not read. */
MUST_CHECK int store_parts_other(struct store *s, int64_t host, int64_t at_ns, int64_t than_ns,
                                 store_part_each each, void *context);

/* One part from its newest content to its oldest, until each returns other than 0; > 0 ends it well. */
MUST_CHECK int store_part_versions(struct store *s, int64_t host, const char *part,
                                   store_part_each each, void *context);

/* What is never the same twice, as it was in an audit: a part of that name, packed (message_pack), whatever was before. */
#define STORE_PART_NOW "now"
MUST_CHECK int store_part_now_put(struct store *s, int64_t host, int64_t at_ns,
                                  const uint8_t hash[static STORE_HASH_SIZE], const void *packed,
                                  size_t size);
/* Is there one from from_ns to to_ns? 1 or 0. */
MUST_CHECK int store_part_now_is(struct store *s, int64_t host, int64_t from_ns, int64_t to_ns);
/* How many hosts have one. */
MUST_CHECK int store_part_now_count(struct store *s, int64_t from_ns, int64_t to_ns);
/* Of those from from_ns to to_ns the oldest, else the newest before. One call of each, or none. */
MUST_CHECK int store_part_now(struct store *s, int64_t host, int64_t from_ns, int64_t to_ns,
                              store_part_each each, void *context);

struct store_audit_run {
    int64_t id,
        ended_ns;     /* id: the fleet nanosecond at which it began; ended_ns 0: it is under way */
    const char *body; /* JSON object */
};
/* In the place of the one with this id, if there is one. */
MUST_CHECK int store_audit_run_put(struct store *s, const struct store_audit_run *run);
typedef int (*store_audit_run_each)(void *context, const struct store_audit_run *run);
/* Newest first, older than before_id (0: any). */
MUST_CHECK int store_audit_runs(struct store *s, int64_t before_id, int limit,
                                store_audit_run_each each, void *context);
MUST_CHECK int store_audit_run_get(struct store *s, int64_t id, store_audit_run_each each,
                                   void *context); /* -ENOENT */
/* Of one host in a run: body is the JSON array of all but what passed or was skipped. */
struct store_audit_host {
    int64_t run, host, at_ns;
    const char *marks, *gate,
        *line; /* a letter for each check of the run; the gate's status and words */
    const void *body;
    size_t size;
};
/* In the place of that host's in that run. */
MUST_CHECK int store_audit_host_put(struct store *s, const struct store_audit_host *host);
typedef int (*store_audit_host_each)(void *context, const struct store_audit_host *host);
/* All of a run, by host. */
MUST_CHECK int store_audit_hosts(struct store *s, int64_t run, store_audit_host_each each,
                                 void *context);
/* The newest of each host, without runs that were stopped. */
MUST_CHECK int store_audit_newest(struct store *s, store_audit_host_each each, void *context);
/* Runs that a person has accepted (`accepted` with its `at_utc_ns` in the body), the newest acceptance first. */
MUST_CHECK int store_audit_accepted(struct store *s, store_audit_run_each each, void *context);
/* Ended runs that began before, their results, and contents that nothing names any more; parts STORE_PART_NOW of before now_ns.
 * Accepted runs stay, with all that was in force when they ended. At most `limit` rows: how many went. */
MUST_CHECK int store_audit_expire(struct store *s, int64_t before_id, int64_t now_ns, int limit);

/* When the newest event or chunk is of; 0: there is none. */
int64_t store_newest_ns(struct store *s);

struct store_sizes {
    int64_t file_bytes, reports, events, chunks;
};
/* Of the file in bytes; rows of the others. */
void store_sizes(struct store *s, struct store_sizes *ret);

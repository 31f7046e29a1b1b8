/* store.h: the controller's data.
 *
 * One file, one writer (a lock on the file keeps a second controller out). Writes are collected in one transaction until
 * store_commit. It returns when they are on the disk: data that is acknowledged after it survives kill -9 and power loss. If
 * it fails, everything since the last commit is lost, and the store can still be used: -ENOSPC (the disk is full), -EIO,
 * -EUCLEAN (the file is damaged: stop and restore).
 *
 * Times: UTC, ns. Texts in callbacks are valid only during the callback. All calls may return -ENOMEM, -ENOSPC, -EIO,
 * -EUCLEAN. The number of a host or NIC is never used again for another one. */
#pragma once
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "platform/tls/tls.h"

#define STORE_SCHEMA 6

struct store;

struct store_options {
    const char *path;
    bool read_only, create;
    /* A second connection in the writer's process, for another thread. It reads committed data and may call store_checkpoint.
     * It takes no lock and checks nothing. */
    bool helper;
};
/* -ENOENT (and !create), -EBUSY (another controller uses it), -EUCLEAN, -EPROTO (a newer schema). ret_words: the reason, for
 * people. An older schema is updated. */
MUST_CHECK int store_open(const struct store_options *options, struct store **ret_store,
                          char ret_words[256]);
void store_close(struct store *s); /* does not commit; accepts NULL */
MUST_CHECK int store_commit(struct store *s);
void store_rollback(struct store *s);
/* Commits go to a log, which must be copied into the file from time to time. With a helper: when store_log_pages reaches
 * STORE_LOG_PAGES, the helper calls store_checkpoint, then the writer calls it once for the few pages that came meanwhile, so
 * that the log can start again. Without a helper a commit does this itself. With a helper a commit does it only if the log has
 * eight times that size. */
#define STORE_LOG_PAGES 2000
void store_has_helper(struct store *s);
uint32_t store_log_pages(const struct store *s); /* after the last commit */
MUST_CHECK int store_checkpoint(struct store *s);
bool store_dirty(const struct store *s);
/* For a helper: until store_snapshot_end all reads show one moment. */
MUST_CHECK int store_snapshot(struct store *s);
void store_snapshot_end(struct store *s);
/* Checks the whole file, each index against its table. Returns 0, or -EUCLEAN with words. store_open checks every page of a
 * file below STORE_CHECK_BYTES, at less than half the cost; a helper can do the rest. */
#define STORE_CHECK_BYTES (64 << 20)
MUST_CHECK int store_check(struct store *s, char ret_words[256]);
/* Deleted rows leave empty pages, which new rows reuse. If more than one page in STORE_SPARE is empty, at most `pages` of the
 * excess are given back to the disk; each costs moving one page. The file is shorter after the commit and the next checkpoint.
 * Returns the number of pages; 0: no excess. */
#define STORE_SPARE 8
int store_shrink(struct store *s, int pages);
/* Copies into another file while the store is in use: `pages` per call. Returns > 0: not finished; 0: finished and on the
 * disk. */
struct store_backup;
/* -EEXIST: the file exists; -ENOENT: it can't be made. */
MUST_CHECK int store_backup_open(struct store *s, const char *path, struct store_backup **ret);
MUST_CHECK int store_backup_step(struct store_backup *b, int pages);
void store_backup_close(struct store_backup *b); /* finished or not; accepts NULL */

/* ---- settings: small named values ---- */
/* -ENOENT. The caller frees the value. */
MUST_CHECK int store_get(struct store *s, const char *name, char **ret_value, size_t *ret_size);
MUST_CHECK int store_put(struct store *s, const char *name, const void *value, size_t size);

/* ---- hosts and NICs ---- */
enum store_host_state { STORE_HOST_MEMBER = 1, STORE_HOST_REMOVED = 2 };
struct store_host {
    int64_t id; /* 0 in store_host_put: a new host */
    const char *name;
    int state;
    int64_t joined_ns, removed_ns;
    const char *serial, *serial_before; /* certificates that the host may use */
    const char *pin;                    /* hash of its public key, in hex */
    int64_t not_after;                  /* of the newer certificate, seconds */
    uint64_t stream, number;            /* of the last report taken */
    int64_t sealed_ns;                  /* earlier reports are in chunks */
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
/* A callback's result other than 0 ends the iteration and is returned. */
MUST_CHECK int store_hosts(struct store *s, store_host_each each, void *context);
MUST_CHECK int store_nics(struct store *s, store_nic_each each, void *context);
MUST_CHECK int store_host_put(struct store *s, const struct store_host *host, int64_t *ret_id);
MUST_CHECK int store_host_cursor(struct store *s, int64_t id, uint64_t stream, uint64_t number);
MUST_CHECK int store_nic_put(struct store *s, const struct store_nic *nic);

/* ---- reports and series ---- */
MUST_CHECK int store_report_put(struct store *s, int64_t host, int64_t at_ns, const void *body,
                                size_t size);
typedef int (*store_blob_each)(void *context, int64_t at_ns, const void *body, size_t size);
/* Reports that are not sealed, with from <= at < to, oldest first. */
MUST_CHECK int store_reports(struct store *s, int64_t host, int64_t from_ns, int64_t to_ns,
                             store_blob_each each, void *context);
/* If the table is already stored, only its at_ns is updated. */
MUST_CHECK int store_table_put(struct store *s, int64_t host, uint64_t generation, int64_t at_ns,
                               const void *body, size_t size);
MUST_CHECK int store_table_get(struct store *s, int64_t host, uint64_t generation,
                               store_blob_each each, void *context); /* -ENOENT */
struct store_chunk {
    int tier; /* 0, 1, 2: fine to coarse */
    int64_t host, from_ns, to_ns;
    const void *body;
    size_t size;
};
/* Replaces a chunk with the same tier, host and from_ns. */
MUST_CHECK int store_chunk_put(struct store *s, const struct store_chunk *chunk);
/* Chunks that overlap from..to, oldest first. */
MUST_CHECK int store_chunks(struct store *s, int tier, int64_t host, int64_t from_ns, int64_t to_ns,
                            store_blob_each each, void *context);
/* Called in the transaction that stores a chunk. Deletes the reports before to_ns, and path tables that were replaced more
 * than a day before to_ns. Sets the host's sealed_ns to to_ns. */
MUST_CHECK int store_sealed(struct store *s, int64_t host, int64_t to_ns);
/* Deletes chunks of a tier that end before `before_ns`, at most `limit`. Returns their number. */
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
    const char *hosts; /* NULL: any; "[1,5]": only these hosts; rows of other hosts cost nothing */
    bool newest_first;
    int limit;
};
typedef int (*store_event_each)(void *context, const struct store_event *event);
/* *ret_id: its number, greater than all earlier ones. */
MUST_CHECK int store_event_put(struct store *s, const struct store_event *event, int64_t *ret_id);
/* Iterates until each() returns other than 0. A result below 0 is returned; above 0: the iteration ends, and 0 is returned. */
MUST_CHECK int store_events(struct store *s, const struct store_event_filter *filter,
                            store_event_each each, void *context);
/* Deletes old events, closed findings and audit entries, at most `limit` of each. Returns the number of events. */
int store_events_expire(struct store *s, int64_t before_ns, int limit);

struct store_finding {
    int64_t id, host, opened_ns, updated_ns, closed_ns; /* closed_ns 0: open */
    uint32_t run, number;                               /* together with host: its key */
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
/* Stores a new finding, or the new state of the same one. A closed finding stays closed. */
MUST_CHECK int store_finding_put(struct store *s, const struct store_finding *finding,
                                 int64_t *ret_id);
/* Stores the cause of an open finding that all hosts' reports name: JSON, or "". */
MUST_CHECK int store_finding_name(struct store *s, int64_t host, uint32_t run, uint32_t number,
                                  const char *named);
/* Newest first. */
MUST_CHECK int store_findings(struct store *s, const struct store_finding_filter *filter,
                              store_finding_each each, void *context);
/* A new run of an agent does not know the open findings of its old run: they are closed. */
MUST_CHECK int store_findings_close_others(struct store *s, int64_t host, uint32_t run,
                                           int64_t at_ns);

/* ---- tokens and audit ---- */
#define STORE_HASH_SIZE 32
struct store_token {
    int64_t id, created_ns, expires_ns, used_ns; /* expires_ns 0: never */
    const char *name, *role;                     /* with role "join" uses_left counts down */
    const char *scope;                           /* the visible hosts; empty: all */
    int64_t uses_left;
    uint8_t hash[STORE_HASH_SIZE];
};
typedef int (*store_token_each)(void *context, const struct store_token *token);
/* All tokens, also expired ones. */
MUST_CHECK int store_tokens(struct store *s, store_token_each each, void *context);
/* Stores a new token and returns its id. -EEXIST: a token with this hash exists. */
MUST_CHECK int store_token_put(struct store *s, const struct store_token *token, int64_t *ret_id);
MUST_CHECK int store_token_use(struct store *s, int64_t id, int64_t at_ns); /* -ENOENT: used up */
MUST_CHECK int store_token_remove(struct store *s, int64_t id);             /* -ENOENT */

struct store_audit {
    int64_t id, at_ns;
    const char *who, *what, *detail;
    const char *source; /* the client's address, or "local"; NULL or empty: not known */
};
typedef int (*store_audit_each)(void *context, const struct store_audit *audit);
MUST_CHECK int store_audit_put(struct store *s, const struct store_audit *audit);
MUST_CHECK int store_audits(struct store *s, int64_t before_id, int limit, store_audit_each each,
                            void *context);

/* ---- facts of hosts, and audits of them ---- */
#define STORE_BODY_MAX (4 << 20) /* of a part, of a look, and of a host's results, unpacked */

/* Stores a part of a host's sheet, valid from at_ns on. Each content is stored once, by its hash. If nothing changed, nothing
 * is stored. */
MUST_CHECK int store_part_put(struct store *s, int64_t host, const char *part, int64_t at_ns,
                              const uint8_t hash[static STORE_HASH_SIZE], const void *body,
                              size_t size);
/* True (1) if this is the part's newest content, else 0. */
MUST_CHECK int store_part_is(struct store *s, int64_t host, const char *part,
                             const uint8_t hash[static STORE_HASH_SIZE]);
/* The facts that change each time, and the result of the look. Only the newest look is kept. */
struct store_look {
    int64_t host, at_ns;
    uint32_t left_out;
    const char *refused; /* why there is no sheet, in words; empty: there is one */
    const void *now;
    size_t now_size;
};
/* Replaces the host's last look. */
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
/* The parts at at_ns, without the facts that change each time (STORE_PART_NOW). */
MUST_CHECK int store_parts(struct store *s, int64_t host, int64_t at_ns, store_part_each each,
                           void *context);
/* Only those parts that had another content, or none, at than_ns. The bodies of the other parts are not read. */
MUST_CHECK int store_parts_other(struct store *s, int64_t host, int64_t at_ns, int64_t than_ns,
                                 store_part_each each, void *context);

/* The contents of one part, newest first, until each() returns other than 0; > 0: end without an error. */
MUST_CHECK int store_part_versions(struct store *s, int64_t host, const char *part,
                                   store_part_each each, void *context);

/* The facts that change each time, as they were in an audit: a part with this name, packed (message_pack). It is stored even
 * if it did not change. -EMSGSIZE: more than STORE_BODY_MAX. */
#define STORE_PART_NOW "now"
#define STORE_PART_OWN "own" /* what no two hosts have the same */
MUST_CHECK int store_part_now_put(struct store *s, int64_t host, int64_t at_ns,
                                  const uint8_t hash[static STORE_HASH_SIZE], const void *packed,
                                  size_t size);
/* Returns 1 if there is such a part between from_ns and to_ns, else 0. */
MUST_CHECK int store_part_now_is(struct store *s, int64_t host, int64_t from_ns, int64_t to_ns);
/* Number of hosts that have such a part. */
MUST_CHECK int store_part_now_count(struct store *s, int64_t from_ns, int64_t to_ns);
/* The oldest part between from_ns and to_ns, else the newest one before. Calls each() once, or not at all. */
MUST_CHECK int store_part_now(struct store *s, int64_t host, int64_t from_ns, int64_t to_ns,
                              store_part_each each, void *context);

struct store_audit_run {
    int64_t id, ended_ns; /* id: the fleet nanosecond of its beginning; ended_ns 0: it is running */
    const char *body;     /* JSON object */
};
/* Replaces a run with the same id. */
MUST_CHECK int store_audit_run_put(struct store *s, const struct store_audit_run *run);
typedef int (*store_audit_run_each)(void *context, const struct store_audit_run *run);
/* Newest first, with ids below before_id (0: all). */
MUST_CHECK int store_audit_runs(struct store *s, int64_t before_id, int limit,
                                store_audit_run_each each, void *context);
MUST_CHECK int store_audit_run_get(struct store *s, int64_t id, store_audit_run_each each,
                                   void *context); /* -ENOENT */
/* The results of one host in a run. body: a JSON array of all results except passed and skipped ones. */
struct store_audit_host {
    int64_t run, host, at_ns;
    const char *marks, *gate,
        /* marks: a letter for each check of the run; gate, line: the gate's status and words */
        *line;
    const void *body;
    size_t size;
};
/* Replaces the results of that host in that run. */
MUST_CHECK int store_audit_host_put(struct store *s, const struct store_audit_host *host);
typedef int (*store_audit_host_each)(void *context, const struct store_audit_host *host);
/* All hosts of a run, by host. */
MUST_CHECK int store_audit_hosts(struct store *s, int64_t run, store_audit_host_each each,
                                 void *context);
/* The newest results of each host, without stopped runs. */
MUST_CHECK int store_audit_newest(struct store *s, store_audit_host_each each, void *context);
/* Runs that a person has accepted (`accepted` with `at_utc_ns` in the body), the newest acceptance first. */
MUST_CHECK int store_audit_accepted(struct store *s, store_audit_run_each each, void *context);
/* Deletes ended runs that began before before_id, their results, contents that no part names any more, and parts
 * STORE_PART_NOW from before now_ns. Accepted runs stay, with all parts that were valid when they ended. At most `limit` rows;
 * returns their number. */
MUST_CHECK int store_audit_expire(struct store *s, int64_t before_id, int64_t now_ns, int limit);

/* Time of the newest event or chunk; 0: there is none. */
int64_t store_newest_ns(struct store *s);

struct store_sizes {
    int64_t file_bytes, reports, events, chunks;
};
/* The file in bytes; the other fields are numbers of rows. */
void store_sizes(struct store *s, struct store_sizes *ret);

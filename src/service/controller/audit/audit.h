/* audit.h: one audit of the fleet. Hosts are asked to read their own facts (proto/foliot.proto, Look). Their sheets are kept.
 * Then all sheets are judged together (core/audit). Sheets of hosts that were not asked are used too, as members of cohorts.
 *
 * The id of a run is the fleet nanosecond of its beginning. Its stages:
 * - hosts are read;
 * - if it is asked for, every NIC exchanges packets with every NIC (matrix.h);
 * - if it is asked for, bandwidth and collectives are tested (perf.h), without hosts that fail a blocking check so far;
 * - hosts are judged;
 * - hosts with a failure are read once more, and measured once more if the matrix found the failure; then they are judged
 *   again.
 *
 * One audit runs at a time. Its parameters are in the store from the first second on. So a controller that starts again
 * continues it. Passes are kept as marks, one letter per check. All other results are kept whole. */
#pragma once
#include "core/audit/fleet_time.h"
#include "core/audit/gate.h"
#include "core/audit/perf.h"
#include "core/audit/reach.h"
#include "service/audit/settings.h"
#include "service/controller/controller.h"

#define AUDIT_WAIT_S     90 /* to wait for a host's sheet; agents give up earlier */
#define AUDIT_STOP_S     60 /* a stopped audit waits this long if the store is broken */
#define AUDIT_AGAIN_S    10 /* interval to try again if the disk is full */
#define AUDIT_SETTINGS   "/etc/foliot/audit.yaml"
#define AUDIT_KEEP_NS    (365 * 86400 * NS_PER_S)
#define AUDIT_WORDS_SIZE 160

enum audit_run_state {
    AUDIT_READING,
    AUDIT_MEASURING, /* every NIC with every NIC */
    AUDIT_TESTING,   /* bandwidth and collectives */
    AUDIT_JUDGING,
    AUDIT_DONE,
    AUDIT_STOPPED
};

struct audit_matrix;
struct audit_perf;

enum { CHECK_ID_SIZE = 32 };

/* A host in a run. */
struct audit_member {
    int64_t host; /* its id in the store */
    uint32_t index;
    bool asked;    /* this host is audited */
    bool off;      /* switched off: it takes part in nothing; note: by whom */
    bool waits;    /* its sheet is awaited */
    bool looked;   /* its sheet has arrived, in this look */
    bool unsaved;  /* the sheet is not on the disk yet */
    bool measures; /* part of the matrix that was planned last */
    bool doubted;  /* a matrix found a failure: it is measured again */
    /* enum audit_reason: why there is no sheet; 0: there is one, maybe an earlier one */
    uint8_t missing;
    /* source address at the controller; size 0: other hosts can't use it */
    uint8_t address[16], address_size;
    char note[AUDIT_WORDS_SIZE];
    char blocked[CHECK_ID_SIZE]; /* the blocking check that fails: no tests here; "": none */
};

/* Facts that change each time, as they were judged (past.h). */
struct audit_past {
    uint8_t hash[STORE_HASH_SIZE];
    void *packed; /* NULL: not kept */
    size_t size;
};

/* Results of one host. */
struct audit_found {
    int64_t host, at_ns; /* at_ns: time of its sheet; 0: no sheet */
    char marks
        [CHECKS_MAX +
         1]; /* by the outcome's checks: F U W P S, the worst of all subjects; ' ': not judged */
    uint8_t gate; /* enum audit_status */
    char
        gate_check[CHECK_ID_SIZE]; /* the check that decides the gate; "": none, or not known yet */
    char *line;                    /* the gate's line */
    char *results;                 /* JSON array */
    size_t size;
    struct audit_past past; /* until it is in the store */
};
struct audit_outcome {
    int64_t run;
    uint32_t check_count, count;
    char (*checks)[CHECK_ID_SIZE]; /* ids of the checks at that time */
    bool suspect[CHECKS_MAX];
    struct audit_found *found;
};

/* The declared leaves, by number. */
struct audit_leaves {
    char (*names)[64];
    uint32_t count;
};
/* Returns the number of a leaf and adds it if it is new; there must be room. UINT16_MAX: no leaf is declared, or there are too
 * many. */
uint16_t audit_leaf_number(struct audit_leaves *leaves, const char *name);

struct audit_run {
    int64_t id, started_ns, ended_ns; /* UTC; ended_ns 0: the run is not over */
    enum audit_run_state state;
    uint32_t number; /* of the present look: 1, 2, …; it is kept over a restart */
    bool gated;      /* it is known which hosts are not tested: members' `blocked` */
    /* second: this is the second look; ready: judge when the sheets are on the disk */
    bool second, ready;
    bool resumed;      /* the run began before the controller's start: no host was heard yet */
    struct mono until; /* then the sheets of hosts that have not answered are given up */
    char who[64], why[AUDIT_WORDS_SIZE];
    struct audit_member *members; /* all hosts of the fleet */
    uint32_t count;
    uint32_t *reach, reach_count;   /* members with a known address; NULL: no reach tests */
    struct audit_file *settings;    /* NULL: the judging job has them */
    struct audit_failure *failures; /* of the first look */
    uint32_t failure_count;
    uint32_t unanswered;
    bool wants_matrix;
    uint32_t family;             /* of the matrix' packets: 4, 6, 0 */
    struct audit_matrix *matrix; /* NULL: none (yet), or the judging job has it */
    struct audit_matrix
        *again; /* the second matrix: hosts that the first one doubts, and partners */
    bool again_tried;
    char matrix_why[AUDIT_WORDS_SIZE]; /* why there is no matrix though it was asked for */
    bool wants_perf, wants_nccl;       /* tests of pairs; also of collectives */
    struct audit_perf *perf;           /* like matrix */
    char perf_why[AUDIT_WORDS_SIZE];   /* why there are no tests */
    bool whole;                        /* all hosts are audited */
    /* stopped; `why` has the reason; the results so far are judged */
    bool stopping;
    /* time of the stop, or later the last time that the store was not broken */
    struct mono stopped;
    struct audit_covered {        /* when it ended; …_of 0: there were none */
        uint64_t cells, cells_of; /* pairs of the matrix */
        uint32_t tests, tests_of; /* only the planned tests */
    } covered;
};

/* State of a host that fell silent. */
struct audit_absence {
    struct mono since; /* 0: the host is heard */
    struct mono due;   /* the host is back, and is audited at this time; 0: no such audit */
    uint64_t boot;     /* its boot id before */
};

struct audit_known { /* of a host, from its newest run */
    int64_t run, at_ns;
    uint8_t gate;
    char line[GATE_LINE_SIZE];
    /* the check that decides the gate; "": it passes, or the check is not known */
    char gate_check[CHECK_ID_SIZE];
    bool whole; /* all of its parts must be sent again */
    struct audit_absence absence;
    /* Failed checks. A failed check of a NIC's link counts in `links` if the NIC is known, else here. */
    uint16_t blocked, failed,
        /* of severity block; of severity drain; blocking checks with an unknown result */
        unknown;
    uint16_t links[HOST_NIC_MAX]; /* by the NIC's index at its host */
};

/* The newest finished audit of the whole fleet. */
struct audit_summary {
    int64_t run, started_ns, ended_ns; /* run 0: there is none */
    /* numbers of hosts, by this release's checks */
    uint32_t counts[CHECKS_MAX][AUDIT_STATUS_COUNT];
    bool suspect[CHECKS_MAX];
};

struct audits {
    struct audit_run *running;      /* NULL: none */
    struct audit_run *ended;        /* the last one, until its results are on the disk */
    struct audit_outcome *came;     /* results of `ended`; NULL: none */
    bool refused;                   /* the store did not take `came` */
    struct mono again;              /* when the store is tried again */
    struct audit_outcome *shown[2]; /* results that were read lately */
    struct audit_known *known;      /* by the host's index */
    uint32_t known_count;
    struct audit_matrix *matrix; /* the last matrix; NULL: none yet */
    struct audit_file *in_force; /* the last audit.yaml that was accepted; NULL: none yet */
    int64_t file_stamp;          /* of the last audit.yaml, accepted or not */
    int64_t attempt_ns;          /* start of the newest audit of the whole fleet; 0: never */
    struct mono since;           /* this controller's start */
    struct audit_summary summary;
    struct fleet_words fleet;
};

MUST_CHECK int audits_open(struct controller *c);
void audits_close(struct controller *c);

/* ---- run.c ---- */
/* -EBUSY: an audit is running. -EINVAL: audit.yaml is refused; `error` has the reason. */
struct audit_wish {
    const bool *hosts; /* by index; NULL: all */
    const char *who;
    bool matrix;     /* packets between all NICs */
    bool bandwidth;  /* tests of pairs */
    bool nccl;       /* also tests of collectives */
    uint32_t family; /* 4: over IPv4; 6: over IPv6; 0: any */
};
MUST_CHECK int audit_begin(struct controller *c, const struct audit_wish *wish,
                           struct config_error *error);
/* ---- run_end.c ---- */
/* Stops the run: the results so far are judged, all others become unknown: not_run. Then the run ends. */
void audit_stop(struct controller *c, const char *why);
/* The run with this id if it is running, or if the store has not taken its end. NULL: neither. */
const struct audit_run *audit_in_memory(const struct controller *c, int64_t run);
/* tries again to store an end that the store refused */
void audit_save_end(struct controller *c);
void audit_mind_left(struct controller *c);   /* drops hosts that left the fleet */
void audit_watch(struct controller *c);       /* checks if all sheets are here, or are late */
void audit_on_commit(struct controller *c);   /* the sheets that were taken are on the disk */
void audit_on_rollback(struct controller *c); /* they are not on the disk: agents send them again */
/* The request to this host; NULL: none. */
struct audit_look_reply {
    Foliot__V1__Look look;
    Foliot__V1__Reach reach[REACH_PEERS], *pointers[REACH_PEERS];
};
Foliot__V1__Look *audit_look_for(struct controller *c, const struct fleet_host *h,
                                 struct audit_look_reply *memory);
/* reach.c: audit_reach_draw() draws for each host the hosts that it tries to reach over the front end, among hosts with a
 * known address. */
void audit_reach_draw(struct controller *c, struct audit_run *run);
void audit_reach_put(struct controller *c, const struct audit_run *run, uint32_t member,
                     struct audit_look_reply *memory);
void audit_heard(struct controller *c, const struct fleet_host *h,
                 const Foliot__V1__Batch *batch); /* takes the host's fleet time */
struct audit_run *audit_run_free(struct audit_run *run);
void audit_failures_free(struct audit_failure *failures, uint32_t count);
const char *audit_state_name(enum audit_run_state state);

/* ---- switches.c: of the run's settings, or of audit.yaml as it is now ---- */
/* Who switched the check off; NULL: it is on. A check that needs packets is off with its class, too. */
const char *audit_check_off(const struct controller *c, const struct audit_run *run,
                            const char *id);
const char *audit_class_off(const struct controller *c, const struct audit_run *run,
                            enum check_cost cost);
const char *audit_reach_off(const struct controller *c, const struct audit_run *run);
const char *audit_incast_off(const struct controller *c, const struct audit_run *run);
const char *audit_tests_off(const struct controller *c, const struct audit_run *run);
/* Hosts that this file switches off take no part from now on. */
void audit_switch_off(const struct controller *c, struct audit_run *run,
                      const struct audit_file *file);
void audit_mind_switches(struct controller *c); /* once a second */

/* ---- calendar.c: what happens without a request ---- */
/* once a second: reads audit.yaml if it changed; the calendar; the run */
void audit_second(struct controller *c);
void audit_settings_look(
    struct controller *c); /* reads audit.yaml if it changed; a refused file changes nothing */
const char *audit_settings_path(const struct controller *c); /* NULL: there is no file */
/* The host fell silent, or is heard again. */
void audit_absence(struct controller *c, const struct fleet_host *h, bool silent);
/* For alerts and metrics; -1: not known. */
double
audit_age(const struct controller *c); /* of the newest whole audit, in intervals of the calendar */
double audit_suspects(const struct controller *c);
double audit_offs(const struct controller *c);
/* Makes this run the newest finished one of the whole fleet. */
void audit_summarise(struct controller *c, const struct audit_run *run,
                     const struct audit_outcome *o);
MUST_CHECK int audit_calendar_open(struct controller *c); /* reads the store */

/* ---- known.c: what is known of each host ---- */
/* The check that decides the gate: the first result of a blocking check with the gate's status. "": it passes, or nothing was
 * judged. */
void audit_gate_check(const struct audit_found *f, char ret_check[static CHECK_ID_SIZE]);
struct audit_known *audit_known_of(struct controller *c,
                                   const struct fleet_host *h); /* NULL: out of memory */
/* Takes the results of one host. -ENOMEM: the old gate stays. */
int audit_learn(struct controller *c, const struct audit_outcome *o, const struct audit_found *f);
MUST_CHECK int audit_known_open(struct controller *c); /* reads the store */

/* ---- take.c ---- */
/* Takes a host's sheet. *ret_stored: bytes that were stored. < 0: an error of the store. */
MUST_CHECK int audit_take(struct controller *c, struct fleet_host *h,
                          const struct Foliot__V1__Sheet *sheet, int64_t at_ns, size_t *ret_stored);

/* ---- matrix.c ---- */
/* held: the plan that the agent has (Batch.matrix). NULL: the host has nothing to do. */
struct Foliot__V1__Matrix *audit_matrix_for(struct controller *c, const struct fleet_host *h,
                                            uint64_t held, struct Foliot__V1__Matrix *memory);
void audit_matrix_take(struct controller *c, const struct fleet_host *h,
                       const struct Foliot__V1__MatrixRow *row);

/* Fleet time that the hosts report. False if it is more than a day off the controller's clock. */
bool audit_fleet_now(const struct controller *c, int64_t *ret_ns);

/* The declared DSCP of jobs (be.roce.dscp_path); 0: packets get no mark. */
uint8_t audit_job_dscp(const struct controller *c, const struct audit_run *run);

/* ---- perf.c ---- */
struct audit_perf_reply {
    Foliot__V1__Perf perf;
    Foliot__V1__PerfStep steps[PERF_STEPS_MAX], *pointers[PERF_STEPS_MAX];
    uint32_t nics[PERF_STEPS_MAX][HOST_NIC_MAX];
};
/* held: the plan that the agent has (Batch.perf). NULL: the host has nothing to do. */
struct Foliot__V1__Perf *audit_perf_for(struct controller *c, const struct fleet_host *h,
                                        uint64_t held, struct audit_perf_reply *memory);
void audit_perf_take(struct controller *c, const struct fleet_host *h,
                     const struct Foliot__V1__PerfRow *row);

/* ---- judge.c ---- */
/* Judges in the keeper thread; audit_judged() gets the results. -ENOMEM. gates: find only the hosts that fail a blocking check
 * before the tests. */
MUST_CHECK int audit_judge_begin(struct controller *c, struct audit_run *run, bool gates);
/* Implemented by run_end.c, which owns all that j points to. r < 0: judging failed. */
struct audit_judged {
    int64_t run;
    int r;
    struct audit_outcome *outcome;
    struct audit_failure *failures;
    uint32_t failure_count;
    struct audit_file *settings;
    struct audit_matrix *matrix, *again;
    struct audit_perf *perf;
    bool stopped; /* the run was stopped before it was judged */
    bool gates;
    char (*blocked)[CHECK_ID_SIZE]; /* gates: by member; the judge owns it */
};
void audit_judged(struct controller *c, const struct audit_judged *j);
/* All facts of a host at a moment (INT64_MAX: now). The caller owns the sheet. */
struct sheet;
MUST_CHECK int audit_sheet(struct store *store, int64_t host, const char *name, int64_t at_ns,
                           struct sheet **ret_sheet);
/* Only the parts that had other contents at than_ns: the differences between the moments are all in them. No facts: there is
 * no difference. */
MUST_CHECK int audit_sheet_other(struct store *store, int64_t host, int64_t at_ns, int64_t than_ns,
                                 struct sheet **ret_sheet);

/* ---- outcome.c ---- */
/* with the checks of this release */
struct audit_outcome *audit_outcome_new(int64_t run, uint32_t hosts);
struct audit_outcome *audit_outcome_free(struct audit_outcome *o);
MUST_CHECK int audit_outcome_save(struct controller *c, const struct audit_outcome *o);
/* A run's checks, without its hosts. The caller owns it. */
MUST_CHECK int audit_outcome_checks(struct controller *c, int64_t run, struct audit_outcome **ret);
/* Results from memory or the store. The controller owns them, until two other results were read. -ENOENT. */
MUST_CHECK int audit_outcome_get(struct controller *c, int64_t run,
                                 const struct audit_outcome **ret);
/* The controller owns o from now on. */
void audit_outcome_keep(struct controller *c, struct audit_outcome *o);
/* The worst status of all checks whose ids begin with prefix. AUDIT_SKIP: no such check, or only skips. */
enum audit_status audit_found_worst(const struct audit_outcome *o, const struct audit_found *f,
                                    const char *prefix);
enum audit_status audit_mark_status(char mark); /* AUDIT_STATUS_COUNT: not judged */
char audit_status_mark(enum audit_status status);

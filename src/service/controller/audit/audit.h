/* audit.h: one audit of the fleet: hosts are asked to read themselves (proto/foliot.proto, Look), their sheets are kept, and all
 * of them are judged together (core/audit), with those of hosts that were not asked as members of cohorts.
 *
 * A run is named by the fleet nanosecond at which it began. Its stages: hosts read; where it is asked for, every NIC exchanges
 * packets with every NIC (matrix.h), and tests of bandwidth and of collectives (perf.h), without hosts that a blocking check
 * fails by then; hosts are judged; those with a
 * failure read once more, and measured once more where a matrix found it; they are judged again. One runs at a time. What it is
 * about is in the store from its first second on, so that a controller that starts anew goes on with it.
 * Passes are kept as marks, a letter for each check; all else as it was found. */
#pragma once
#include "core/audit/fleet_time.h"
#include "core/audit/gate.h"
#include "core/audit/perf.h"
#include "core/audit/reach.h"
#include "service/audit/settings.h"
#include "service/controller/controller.h"

#define AUDIT_WAIT_S     90 /* for a host's sheet; agents give up earlier */
#define AUDIT_STOP_S     60 /* a stopped one waits so long for a store that takes nothing */
#define AUDIT_AGAIN_S    10 /* a full disk is asked so often whether it takes what it refused */
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

/* A host of the fleet in a run. */
struct audit_member {
    int64_t host; /* in the store */
    uint32_t index;
    bool asked;      /* the run is about it */
    bool off;        /* it was switched off: it takes part in nothing, note tells by whom */
    bool waits;      /* for its sheet */
    bool looked;     /* it came, in this look */
    bool unsaved;    /* and is not on the disk yet */
    bool measures;   /* it is in the matrix that was planned last */
    bool doubted;    /* what a matrix found of it is measured again */
    uint8_t missing; /* enum audit_reason: why there is none; 0: there is, or was before */
    uint8_t address[16], address_size; /* that it talks to us from; 0: of no use to others */
    char note[AUDIT_WORDS_SIZE];
    char blocked
        [CHECK_ID_SIZE]; /* the blocking check that fails so far: nothing is tested there; "": none */
};

/* What is never the same twice, as it was judged (past.h). */
struct audit_past {
    uint8_t hash[STORE_HASH_SIZE];
    void *packed; /* NULL: it is not kept */
    size_t size;
};

/* What came of one host. */
struct audit_found {
    int64_t host, at_ns; /* at_ns: of its sheet; 0: there is none */
    char marks
        [CHECKS_MAX +
         1]; /* by the outcome's checks: F U W P S, of all its subjects the worst; ' ': not judged */
    uint8_t gate; /* enum audit_status */
    char gate_check
        [CHECK_ID_SIZE]; /* whose result the gate is; "": none is, or it is not known yet */
    char *line;          /* of the gate */
    char *results;       /* JSON array */
    size_t size;
    struct audit_past past; /* until it is in the store */
};
struct audit_outcome {
    int64_t run;
    uint32_t check_count, count;
    char (*checks)[CHECK_ID_SIZE]; /* ids, as they were then */
    bool suspect[CHECKS_MAX];
    struct audit_found *found;
};

/* Leaves as they are declared, by number. */
struct audit_leaves {
    char (*names)[64];
    uint32_t count;
};
/* Known from now on; there must be room. UINT16_MAX: none is declared, or there are too many. */
uint16_t audit_leaf_number(struct audit_leaves *leaves, const char *name);

struct audit_run {
    int64_t id, started_ns, ended_ns; /* UTC; ended_ns 0: it is under way */
    enum audit_run_state state;
    uint32_t number; /* of the look that hosts are asked for: 1, 2, …; it goes on over a restart */
    bool gated;      /* it is known who is not tested: members' `blocked` */
    bool second, ready; /* the look is a second one; it waits for what is taken to be on the disk */
    bool resumed;      /* it was under way when the controller started: nobody has been heard yet */
    struct mono until; /* hosts that have not answered are given up */
    char who[64], why[AUDIT_WORDS_SIZE];
    struct audit_member *members; /* all hosts of the fleet */
    uint32_t count;
    uint32_t *reach, reach_count;   /* members whose address is known; NULL: none are tried */
    struct audit_file *settings;    /* NULL: the job that judges has them */
    struct audit_failure *failures; /* of the first look */
    uint32_t failure_count;
    uint32_t unanswered;
    bool wants_matrix;
    uint32_t family;             /* of its packets: 4, 6, 0 */
    struct audit_matrix *matrix; /* NULL: none (yet), or the job that judges has it */
    struct audit_matrix
        *again; /* of the second look: hosts that the first one doubts, and partners */
    bool again_tried;
    char matrix_why[AUDIT_WORDS_SIZE]; /* why there is none though it was asked for */
    bool wants_perf, wants_nccl;       /* pairs; collectives, too */
    struct audit_perf *perf;           /* as matrix */
    char perf_why[AUDIT_WORDS_SIZE];   /* the same of tests */
    bool whole;                        /* it is about all hosts */
    bool stopping;                     /* why: what there is, is judged */
    struct mono stopped;               /* since then it is, and the store takes nothing */
    struct audit_covered {             /* when it ended; of: 0: there were none */
        uint64_t cells, cells_of;      /* of the matrix */
        uint32_t tests, tests_of;      /* as far as they were planned */
    } covered;
};

/* Of a host that fell silent. */
struct audit_absence {
    struct mono since; /* 0: it is heard */
    struct mono due;   /* it is back, and an audit of it begins then; 0: none does */
    uint64_t boot;     /* that it was in before */
};

struct audit_known { /* of a host, from its newest run */
    int64_t run, at_ns;
    uint8_t gate;
    char line[GATE_LINE_SIZE];
    char gate_check[CHECK_ID_SIZE]; /* whose result the gate is; "": it passes, or nobody knows */
    bool whole;                     /* its parts are to be sent anew */
    struct audit_absence absence;
    /* Checks that failed: those of a NIC's link count there, if the NIC is known, all others here. */
    uint16_t blocked, failed,
        unknown;                  /* of severity block; drain; blocking ones that nobody knows */
    uint16_t links[HOST_NIC_MAX]; /* by the NIC's place at its host */
};

/* The newest audit of the whole fleet that came to its end. */
struct audit_summary {
    int64_t run, started_ns, ended_ns;               /* run 0: there is none */
    uint32_t counts[CHECKS_MAX][AUDIT_STATUS_COUNT]; /* hosts, by this release's checks */
    bool suspect[CHECKS_MAX];
};

struct audits {
    struct audit_run *running;      /* NULL: none */
    struct audit_run *ended;        /* the last one, until what came of it is on the disk */
    struct audit_outcome *came;     /* of that; NULL: nothing */
    bool refused;                   /* the store did not take it */
    struct mono again;              /* when it is asked once more */
    struct audit_outcome *shown[2]; /* that were asked for lately */
    struct audit_known *known;      /* by the host's index */
    uint32_t known_count;
    struct audit_matrix *matrix; /* the last one; NULL: none since the start */
    struct audit_file *in_force; /* audit.yaml as it was taken last; NULL: none yet */
    int64_t file_stamp;          /* of that file, whether it was taken or not */
    int64_t attempt_ns;          /* when the newest audit of the whole fleet began; 0: never */
    struct mono since;           /* this controller's start */
    struct audit_summary summary;
    struct fleet_words fleet;
};

MUST_CHECK int audits_open(struct controller *c);
void audits_close(struct controller *c);

/* ---- run.c ---- */
/* -EBUSY: one is under way; -EINVAL: audit.yaml is refused: error. */
struct audit_wish {
    const bool *hosts; /* of this fleet, by index; NULL: all */
    const char *who;
    bool matrix;     /* every NIC with every NIC */
    bool bandwidth;  /* tests of pairs */
    bool nccl;       /* and of collectives */
    uint32_t family; /* over IPv4: 4, IPv6: 6; 0: whichever there is */
};
MUST_CHECK int audit_begin(struct controller *c, const struct audit_wish *wish,
                           struct config_error *error);
/* ---- run_end.c ---- */
/* What is there is judged, all else is unknown: not_run; then it ends. */
void audit_stop(struct controller *c, const char *why);
/* The one of that name that is under way, or whose end the store has not taken; NULL: neither. */
const struct audit_run *audit_in_memory(const struct controller *c, int64_t run);
void audit_save_end(struct controller *c);    /* what the store refused, once more */
void audit_mind_left(struct controller *c);   /* who has left the fleet is not waited for */
void audit_watch(struct controller *c);       /* the last sheet may have come, or it is late */
void audit_on_commit(struct controller *c);   /* what was taken is on the disk */
void audit_on_rollback(struct controller *c); /* it is not, and comes again */
/* The look for this host; NULL: nothing is asked. */
struct audit_look_reply {
    Foliot__V1__Look look;
    Foliot__V1__Reach reach[REACH_PEERS], *pointers[REACH_PEERS];
};
Foliot__V1__Look *audit_look_for(struct controller *c, const struct fleet_host *h,
                                 struct audit_look_reply *memory);
/* reach.c: the hosts that each one tries to reach over the front end are drawn, of those whose address is known. */
void audit_reach_draw(struct controller *c, struct audit_run *run);
void audit_reach_put(struct controller *c, const struct audit_run *run, uint32_t member,
                     struct audit_look_reply *memory);
void audit_heard(struct controller *c, const struct fleet_host *h,
                 const Foliot__V1__Batch *batch); /* of fleet time */
struct audit_run *audit_run_free(struct audit_run *run);
void audit_failures_free(struct audit_failure *failures, uint32_t count);
const char *audit_state_name(enum audit_run_state state);

/* ---- switches.c: of the run's settings, or of audit.yaml as it is now ---- */
/* By whom; NULL: it is on. What sends packets for a check is off with its class, too. */
const char *audit_check_off(const struct controller *c, const struct audit_run *run,
                            const char *id);
const char *audit_class_off(const struct controller *c, const struct audit_run *run,
                            enum check_cost cost);
const char *audit_reach_off(const struct controller *c, const struct audit_run *run);
const char *audit_incast_off(const struct controller *c, const struct audit_run *run);
const char *audit_tests_off(const struct controller *c, const struct audit_run *run);
/* Hosts that are off in this file take no part from here on. */
void audit_switch_off(const struct controller *c, struct audit_run *run,
                      const struct audit_file *file);
void audit_mind_switches(struct controller *c); /* once a second */

/* ---- calendar.c: what goes on by itself ---- */
void audit_second(struct controller *c); /* once a second: audit.yaml anew, the calendar, the run */
void audit_settings_look(
    struct controller *c); /* is it another file? a refused one changes nothing */
const char *audit_settings_path(const struct controller *c); /* NULL: there is none */
/* It fell silent, or is heard again. */
void audit_absence(struct controller *c, const struct fleet_host *h, bool silent);
/* For alerts and metrics; -1: nothing is known. */
double
audit_age(const struct controller *c); /* of the newest whole audit, in intervals of the calendar */
double audit_suspects(const struct controller *c);
double audit_offs(const struct controller *c);
/* The newest ended run of the whole fleet is this one. */
void audit_summarise(struct controller *c, const struct audit_run *run,
                     const struct audit_outcome *o);
MUST_CHECK int audit_calendar_open(struct controller *c); /* out of the store */

/* ---- known.c: what is known of each host ---- */
/* Whose result its gate is: the first of a blocking check that has the gate's status. "": it passes, or nothing was judged. */
void audit_gate_check(const struct audit_found *f, char ret_check[static CHECK_ID_SIZE]);
struct audit_known *audit_known_of(struct controller *c,
                                   const struct fleet_host *h); /* NULL: no memory */
/* Of an outcome's host. -ENOMEM: the gate goes on with what it had. */
int audit_learn(struct controller *c, const struct audit_outcome *o, const struct audit_found *f);
MUST_CHECK int audit_known_open(struct controller *c); /* out of the store */

/* ---- take.c ---- */
/* A sheet of a host. *ret_stored: bytes that it takes. < 0: the store's. */
MUST_CHECK int audit_take(struct controller *c, struct fleet_host *h,
                          const struct Foliot__V1__Sheet *sheet, int64_t at_ns, size_t *ret_stored);

/* ---- matrix.c ---- */
/* held: the plan that the agent has (Batch.matrix). NULL: nothing is asked of it. */
struct Foliot__V1__Matrix *audit_matrix_for(struct controller *c, const struct fleet_host *h,
                                            uint64_t held, struct Foliot__V1__Matrix *memory);
void audit_matrix_take(struct controller *c, const struct fleet_host *h,
                       const struct Foliot__V1__MatrixRow *row);

/* As the hosts tell it; what is a day off our clock is nobody's time. */
bool audit_fleet_now(const struct controller *c, int64_t *ret_ns);

/* Of jobs, as the site declares it (be.roce.dscp_path); 0: nothing is to be marked. */
uint8_t audit_job_dscp(const struct controller *c, const struct audit_run *run);

/* ---- perf.c ---- */
struct audit_perf_reply {
    Foliot__V1__Perf perf;
    Foliot__V1__PerfStep steps[PERF_STEPS_MAX], *pointers[PERF_STEPS_MAX];
    uint32_t nics[PERF_STEPS_MAX][HOST_NIC_MAX];
};
/* held: the plan that the agent has (Batch.perf). NULL: nothing is asked of it. */
struct Foliot__V1__Perf *audit_perf_for(struct controller *c, const struct fleet_host *h,
                                        uint64_t held, struct audit_perf_reply *memory);
void audit_perf_take(struct controller *c, const struct fleet_host *h,
                     const struct Foliot__V1__PerfRow *row);

/* ---- judge.c ---- */
/* In the keeper; then audit_judged. -ENOMEM. gates: only whom a blocking check fails before anything is tested. */
MUST_CHECK int audit_judge_begin(struct controller *c, struct audit_run *run, bool gates);
/* By run_end.c: all that it points to is its own from here on. r < 0: it could not be judged. */
struct audit_judged {
    int64_t run;
    int r;
    struct audit_outcome *outcome;
    struct audit_failure *failures;
    uint32_t failure_count;
    struct audit_file *settings;
    struct audit_matrix *matrix, *again;
    struct audit_perf *perf;
    bool stopped; /* it was judged as one that was stopped */
    bool gates;
    char (*blocked)[CHECK_ID_SIZE]; /* of gates: by member; the judge's own */
};
void audit_judged(struct controller *c, const struct audit_judged *j);
/* All facts of a host at a moment (INT64_MAX: now), in memory of its own. */
struct sheet;
MUST_CHECK int audit_sheet(struct store *store, int64_t host, const char *name, int64_t at_ns,
                           struct sheet **ret_sheet);
/* Of these, the parts that had another content at than_ns: all by which two moments can differ. No facts: they are alike. */
MUST_CHECK int audit_sheet_other(struct store *store, int64_t host, int64_t at_ns, int64_t than_ns,
                                 struct sheet **ret_sheet);

/* ---- outcome.c ---- */
struct audit_outcome *audit_outcome_new(int64_t run, uint32_t hosts); /* checks: of this release */
struct audit_outcome *audit_outcome_free(struct audit_outcome *o);
MUST_CHECK int audit_outcome_save(struct controller *c, const struct audit_outcome *o);
/* A run's checks, without its hosts; the caller's own. */
MUST_CHECK int audit_outcome_checks(struct controller *c, int64_t run, struct audit_outcome **ret);
/* Out of memory or the store; the controller's own, until two others were asked for. -ENOENT. */
MUST_CHECK int audit_outcome_get(struct controller *c, int64_t run,
                                 const struct audit_outcome **ret);
/* The controller's own from here on. */
void audit_outcome_keep(struct controller *c, struct audit_outcome *o);
/* The worst of the checks whose id begins so; AUDIT_SKIP: none, or nothing but skips. */
enum audit_status audit_found_worst(const struct audit_outcome *o, const struct audit_found *f,
                                    const char *prefix);
enum audit_status audit_mark_status(char mark); /* AUDIT_STATUS_COUNT: not judged */
char audit_status_mark(enum audit_status status);

/* matrix.h: every NIC with every NIC, as part of an audit: the plan that agents get, the rows that they return, and the
 * results (core/audit/matrix.h). Results become facts of the hosts, beside their sheets.
 *
 * All NICs of hosts that are asked have a place. NICs of hosts that can't take part stay unmeasured, with the reason. The last
 * matrix is kept: the next one is compared with it, and people can look at it.
 *
 * Hosts that fail in one matrix are measured again, with partners (core/audit/matrix_again.h). They are judged by the second
 * matrix. */
#pragma once
#include <net/if.h>

#include "core/audit/matrix_late.h"
#include "service/controller/audit/audit.h"

#define MATRIX_ROUND_NS_USUAL (100 * NS_PER_MS)
/* if the usual rounds would take longer than MATRIX_PATIENT_NS */
#define MATRIX_ROUND_NS_LARGE (20 * NS_PER_MS)
#define MATRIX_PATIENT_NS     (120 * NS_PER_S)
#define AUDIT_MATRIX_PACKETS  5    /* of a NIC in a round */
#define MATRIX_WAIT_S         60   /* to wait for rows after the last round */
#define MATRIX_CELLS_KEPT     1024 /* NICs; for larger fleets cells are freed after judging */

struct audit_place {
    uint32_t id; /* the NIC's id + 1; 0: this place is empty */
    char name[IF_NAMESIZE];
};
/* A direction in which packets of some ports are lost, as a fact of the host at this row. The host at the other end has a fact
 * of its own. */
struct audit_path {
    uint32_t row, peer; /* of this host; of the other host */
    char subject[2 * IF_NAMESIZE + TLS_NAME_MAX + 3], value[64];
};
struct audit_matrix {
    int64_t run;
    uint64_t name; /* of the plan; a run that continues after a restart makes a new plan */
    struct matrix_plan plan;
    uint64_t fleet_version;
    uint32_t family;
    struct audit_place *places;
    uint32_t *wanted;                /* NIC ids for the plan; also 0 if the host takes no part */
    int64_t *hosts;                  /* ids in the store, by row of the grid */
    bool *answered;                  /* by row */
    uint32_t *rows;                  /* rows that arrived, by row */
    char (*notes)[AUDIT_WORDS_SIZE]; /* why a host takes no part; empty: it does */
    struct audit_leaves leaves;
    struct matrix m;
    void *memory; /* the cells; NULL: not kept */
    struct mono until;
    char (*names)[TLS_NAME_MAX + 1];  /* of hosts, by row */
    char (*words)[MATRIX_WORDS_SIZE]; /* by place; set when judged */
    struct audit_path *paths;         /* ascending by row; set when judged */
    uint32_t path_count;
    struct matrix_late late[MATRIX_LATE_MOST]; /* set when judged */
    uint32_t late_count;
    struct audit_late *late_lines; /* lines of hosts */
    uint32_t late_line_count;
    char (*wells)[32]; /* by row: text for a host without lossy paths */
    const char *none;  /* text for a host without measurements; "": not known */
    bool judged, cut;  /* cut: the audit was stopped before all rows arrived */
};

/* Sets packets and times of a plan for these hosts and rails that begins then. */
void audit_matrix_times(struct matrix_plan *p, int64_t begin_ns);
/* Marks members with failures of the matrix as doubted, and sets `measures` for them and for the partners that they need.
 * False: there are none. */
bool audit_matrix_doubts(struct audit_run *run);
/* Makes a matrix of all members with `measures`. -ENODATA: fewer than two hosts can take part; `why` has the reason. */
MUST_CHECK int audit_matrix_new(struct controller *c, const struct audit_run *run,
                                struct audit_matrix **ret, char why[AUDIT_WORDS_SIZE]);
struct audit_matrix *audit_matrix_free(struct audit_matrix *x);
/* Allocates memory for its plan. -ENOMEM: audit_matrix_free() frees what was allocated. */
MUST_CHECK int audit_matrix_claim(struct audit_matrix *x);
void audit_matrix_forget_cells(struct audit_matrix *x);
/* No rows will come from this host, for this reason. */
void audit_matrix_leave(struct audit_matrix *x, int64_t host, const char *words);
/* The audit was stopped: no more rows will come. */
void audit_matrix_cut(struct audit_matrix *x);
/* Number of hosts whose rows are missing; 0 after the last moment. */
uint32_t audit_matrix_waits(const struct audit_matrix *x);
/* Called in the keeper thread: judges, also by comparison with the matrix before (NULL: none). -ENOMEM. */
MUST_CHECK int audit_matrix_judge(struct audit_matrix *x, const struct audit_matrix *before);
/* Judges a matrix of doubted hosts. Drift is taken from the first matrix. */
MUST_CHECK int audit_matrix_judge_again(struct audit_matrix *again,
                                        const struct audit_matrix *first);
/* ---- matrix_late.c ---- */
/* first: the matrix that this one has to confirm; NULL: none. -ENOMEM. */
MUST_CHECK int audit_matrix_find_late(struct audit_matrix *x, const struct audit_matrix *first);
/* The greatest number of such facts of a host; audit_matrix_add_late() adds them. */
uint32_t audit_matrix_late_facts(const struct audit_matrix *x, uint32_t row);
void audit_matrix_add_late(const struct audit_matrix *x, uint32_t row, struct sheet *sheet);
/* ---- matrix_keep.c: the last one, over a restart ---- */
/* Writes a judged matrix into the open transaction. */
MUST_CHECK int audit_matrix_save(struct store *store, const struct audit_matrix *x);
/* -ENOENT: no matrix is kept, or this release can't read it. */
MUST_CHECK int audit_matrix_load(struct store *store, struct audit_matrix **ret);

/* Adds the facts of this host to its sheet. The matrix owns their texts. -ENOMEM. */
struct sheet;
MUST_CHECK int audit_matrix_facts(const struct audit_matrix *x, int64_t host, struct sheet *sheet);
/* The host's row of the grid; UINT32_MAX: none. */
uint32_t audit_matrix_row(const struct audit_matrix *x, int64_t host);

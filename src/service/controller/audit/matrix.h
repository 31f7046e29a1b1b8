/* matrix.h: every NIC with every NIC, as part of an audit: the plan that agents get, rows that come back, and what they amount to
 * (core/audit/matrix.h), as facts of the hosts beside their sheets.
 *
 * All NICs of hosts that are asked have a place. Those of hosts that can't take part stay unmeasured, with the reason. The last
 * matrix is kept, so that the next one is compared with it, and people can look at it.
 *
 * Hosts that one matrix would fail are measured again, with partners (core/audit/matrix_again.h): what they tell then is what
 * they are judged by. */
#pragma once
#include <net/if.h>

#include "core/audit/matrix_late.h"
#include "service/controller/audit/audit.h"

#define MATRIX_ROUND_NS_USUAL (100 * NS_PER_MS)
#define MATRIX_ROUND_NS_LARGE (20 * NS_PER_MS) /* where the first would take longer than ... */
#define MATRIX_PATIENT_NS     (120 * NS_PER_S)
#define MATRIX_WAIT_S         60   /* for rows, after the last round */
#define MATRIX_CELLS_KEPT     1024 /* NICs: of more, cells are not kept after they were judged */

struct audit_place {
    uint32_t id; /* of the NIC, + 1; 0: a hole */
    char name[IF_NAMESIZE];
};
/* A direction of which some ports' packets do not come, as a fact of the host at this row: of the one at its other end is
 * another. */
struct audit_path {
    uint32_t row, peer; /* of the host itself, and of the other one */
    char subject[2 * IF_NAMESIZE + TLS_NAME_MAX + 3], value[64];
};
struct audit_matrix {
    int64_t run;
    uint64_t name; /* of the plan: a run that goes on over a restart has another one */
    struct matrix_plan plan;
    uint64_t fleet_version;
    uint32_t family;
    struct audit_place *places;
    uint32_t *wanted; /* as the plan has them: 0: of a host that takes no part, too */
    int64_t *hosts;   /* in the store, by row of the grid */
    bool *answered;   /* by row */
    uint32_t *rows;   /* that came */
    char (*notes)[AUDIT_WORDS_SIZE]; /* why a host takes no part; empty: it does */
    struct audit_leaves leaves;
    struct matrix m;
    void *memory; /* its cells; NULL: not kept */
    struct mono until;
    char (*names)[TLS_NAME_MAX + 1];  /* of hosts, by row */
    char (*words)[MATRIX_WORDS_SIZE]; /* by place, when it is judged */
    struct audit_path *paths;         /* by row, ascending; when it is judged */
    uint32_t path_count;
    struct matrix_late late[MATRIX_LATE_MOST]; /* when it is judged */
    uint32_t late_count;
    struct audit_late *late_lines; /* of hosts */
    uint32_t late_line_count;
    char (*wells)[32]; /* by row: what there is of a host without any */
    const char *none;  /* why there is nothing of a host; "": it is not known */
    bool judged, cut;  /* cut: the audit was stopped before all rows were there */
};

/* Members that its failures make doubted, and the partners that they need, `measures` from here on. False: there are none. */
bool audit_matrix_doubts(struct audit_run *run);
/* Of all members that `measures`. -ENODATA: fewer than two hosts can take part; why. */
MUST_CHECK int audit_matrix_new(struct controller *c, const struct audit_run *run,
                                struct audit_matrix **ret, char why[AUDIT_WORDS_SIZE]);
struct audit_matrix *audit_matrix_free(struct audit_matrix *x);
/* Memory for its plan. -ENOMEM: what it has is for audit_matrix_free. */
MUST_CHECK int audit_matrix_claim(struct audit_matrix *x);
void audit_matrix_forget_cells(struct audit_matrix *x);
/* Its rows come no more, for that reason. */
void audit_matrix_leave(struct audit_matrix *x, int64_t host, const char *words);
/* The audit was stopped: no row comes any more. */
void audit_matrix_cut(struct audit_matrix *x);
/* Rows that are still waited for; none after the last moment. */
uint32_t audit_matrix_waits(const struct audit_matrix *x);
/* In the keeper: the verdicts, by comparison with the matrix before (NULL: none). -ENOMEM. */
MUST_CHECK int audit_matrix_judge(struct audit_matrix *x, const struct audit_matrix *before);
/* The same of a matrix of doubted hosts; what drifted since the matrix before is the first one's word. */
MUST_CHECK int audit_matrix_judge_again(struct audit_matrix *again,
                                        const struct audit_matrix *first);
/* ---- matrix_late.c ---- */
/* first: the matrix that this one is to confirm; NULL: none. -ENOMEM. */
MUST_CHECK int audit_matrix_find_late(struct audit_matrix *x, const struct audit_matrix *first);
/* How many facts a host has of it, at most; and these. */
uint32_t audit_matrix_late_facts(const struct audit_matrix *x, uint32_t row);
void audit_matrix_add_late(const struct audit_matrix *x, uint32_t row, struct sheet *sheet);
/* ---- matrix_keep.c: the last one, over a restart ---- */
/* One that was judged, into the open transaction. */
MUST_CHECK int audit_matrix_save(struct store *store, const struct audit_matrix *x);
/* -ENOENT: none is kept, or one that this release can't read. */
MUST_CHECK int audit_matrix_load(struct store *store, struct audit_matrix **ret);

/* Facts of this host into its sheet; their texts stay the matrix's own. -ENOMEM. */
struct sheet;
MUST_CHECK int audit_matrix_facts(const struct audit_matrix *x, int64_t host, struct sheet *sheet);
/* The row of the grid that is this host's; UINT32_MAX: none. */
uint32_t audit_matrix_row(const struct audit_matrix *x, int64_t host);

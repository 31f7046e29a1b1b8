/* matrix.h: what all hosts measured in one matrix, and what follows from it.
 *
 * A cell is a pair of NICs and a direction. Its least delay is taken apart by median polish: a constant for pairs of one leaf and
 * one for all others, a row (the sending side of a NIC), a column (its receiving side), and what is left of the cell. A NIC
 * that is slow or deaf bends its whole row or column, a path its cell, cables of a leaf all cells between two leaves. Medians
 * over many partners, and a path only where two partners have it: no verdict of a NIC rests on one of them. A cell is one host's
 * word of what it sent, and another one's of what came. So what fails a NIC must hold without any one other host, too.
 *
 * A NIC whose delay to the NICs of another leaf than its own is as that of neighbours hangs on that other one.
 *
 * What nobody measured stays so, with the reason. Memory is the caller's (matrix_size: 4 bytes a cell); the work is some
 * passes over all cells. */
#pragma once
#include <stddef.h>

#include "core/audit/matrix_part.h"

#define MATRIX_LEAF_NONE UINT16_MAX
#define MATRIX_STEADY    UINT32_MAX

/* Cells of a NIC's rail, one way, that tell whether a mark is kept: the marked packet of them came, as all others did. */
struct matrix_marks {
    uint32_t came, changed;      /* changed: with another mark */
    uint32_t near, near_changed; /* of them, with NICs of its own leaf */
    uint32_t own;                /* of those that changed, what this NIC's side of the fabric did */
};

/* Packets of a NIC that are lost, one way, in cells of which others came; of them those with the host that most are lost with: it
 * is one witness, with all its NICs. */
struct matrix_lost {
    uint32_t all, worst, worst_host;
    uint32_t now, now_host; /* while it is counted */
};

/* Measured cells of a NIC, one way, by the other host: of one host all follow one another. */
struct matrix_dead {
    uint32_t hosts, host, cells, dead; /* of the present one */
    uint32_t worst_cells, worst_dead;  /* of one before it: without which the fewest are dead */
};

struct matrix_nic {
    uint32_t host, rail; /* of the grid */
    bool there;          /* no hole of the grid */
    uint8_t why;         /* enum matrix_why of its host, where that has told nothing */
    uint16_t leaf;       /* as declared; MATRIX_LEAF_NONE: not known */
    bool told;           /* its row came */
    uint32_t bound_ns;
    uint32_t steady_s; /* so long its clock was in step; MATRIX_STEADY: longer than anybody knows */
    /* by matrix_judge */
    uint16_t leaf_now;          /* found, else declared */
    uint16_t leaf_found;        /* where its delays put it; MATRIX_LEAF_NONE: they don't tell */
    uint32_t cells, unmeasured; /* with NICs of other hosts, both ways */
    uint32_t why_not[MATRIX_WHY_COUNT];
    /* of measured cells: without an arrival, packets, those lost */
    uint32_t dead_out, dead_in, measured_out, measured_in, sent_out, lost_out, sent_in, lost_in;
    struct matrix_dead dead_to, dead_from;
    struct matrix_lost part_out, part_in;
    /* the same of cells whose loss is more likely this NIC's than the partner's, of packets but for those with the worst host;
     * partners: dead cells of nobody's; alone: dead cells of a NIC that was measured with one host alone; pair_lost: packets
     * that are lost with one host, with which most are, and are nobody's */
    uint32_t own_dead_out, own_dead_in, partners, alone, own_lost_out, own_lost_in, pair_lost;
    uint32_t late_cells; /* whose delay stands out from row and column */
    /* cells on the rail of which some packets came and some did not, and those that were measured */
    uint32_t thin_out, thin_in, rail_out, rail_in;
    bool leaf_thin_out, leaf_thin_in; /* most NICs of its leaf have many such cells */
    uint32_t shared_lost;             /* packets of those: they are lost on what the leaf shares */
    struct matrix_marks marks_out, marks_in;
    uint32_t marked; /* cells of its rail whose sender marked a packet, lost or not */
    /* changed, and nobody's own: with NICs of its own leaf, and of others; where no leaf is known it is neither */
    uint32_t changed_elsewhere, changed_within, changed_across;
    bool delay_known;
    int64_t out_ns,
        in_ns; /* more than the median of all rows, and of all columns; so late by two hosts, if it stands out */
    bool late_by_one; /* it was measured with one host alone, and stands out there */
    int64_t drift_out_ns, drift_in_ns; /* against the matrix before; where that is known */
    bool drift_known;
};

struct matrix_cell {
    uint8_t sent, heard;
    bool marked, kept; /* its last packet was marked, and came so */
    uint8_t why;       /* enum matrix_why: MATRIX_FINE: it is measured */
    int16_t delay;     /* code; 0: not known */
};

struct matrix {
    struct matrix_plan plan;
    uint32_t count; /* places */
    struct matrix_nic *nics;
    int16_t *delay; /* [from * count + to], as all of these */
    uint8_t *sent, *heard;
    int32_t *scratch; /* MATRIX_BLOCK * count, and some */
    int64_t *row, *column;
    /* by matrix_judge */
    uint64_t cells, measured; /* of ordered pairs of two hosts */
    uint64_t unmeasured[MATRIX_WHY_COUNT];
    uint64_t far_came, far_changed;  /* matrix_marks of all cells but those within a leaf */
    int64_t near_ns, far_ns;         /* medians; INT64_MIN: there are none */
    int64_t limit_ns, cell_limit_ns; /* above which a row or column stands out, and a cell */
    bool leaves_told;                /* delays tell leaves apart */
    bool
        parted; /* most NICs hear, or are heard by, less than half of the others: no NIC's own fault */
};

size_t matrix_size(const struct matrix_plan *plan);
/* memory: matrix_size bytes, aligned as malloc's. All NICs: there, SILENT, of no leaf. */
void matrix_init(struct matrix *m, const struct matrix_plan *plan, void *memory);
/* A NIC's row as its host told it: `rounds` bytes each, delays of two. -EINVAL: it is not of this plan; or it came already. */
MUST_CHECK int matrix_take(struct matrix *m, uint32_t nic, const uint8_t *sent,
                           const uint8_t *heard, const int16_t *delay, uint32_t rounds,
                           uint32_t bound_ns);
/* Is the cell one to be measured? */
bool matrix_two_hosts(const struct matrix *m, uint32_t a, uint32_t b);
struct matrix_cell matrix_cell_of(const struct matrix *m, uint32_t from, uint32_t to);
/* before: the matrix before, of the same NICs in the same places, or NULL. */
void matrix_judge(struct matrix *m, const struct matrix *before);
/* A direction between two NICs of a rail that lost some packets, while neither loses any to, or from, more than two others: by
 * some source ports nothing comes, or it was chance. What was sent and heard is the word of one host each. So one partner
 * alone proves nothing of this NIC. Two of one leaf, which have the same trunks, do. A dead path takes the same packets each
 * time: with a first matrix at hand a partner is one with which both have lost some. */
struct matrix_thin {
    uint32_t from, to;
    uint8_t sent, heard;
    uint32_t
        partners; /* of the partner's leaf, with which this NIC loses some in this direction; 0: the first has none */
};
/* The matrix before, which this one is to confirm. */
struct matrix_first {
    const struct matrix *m;
    const uint32_t *places; /* in it, by place in this one; MATRIX_NONE: that NIC has none */
};
/* The next with this NIC, either way; *at: 0 at first; first: NULL: there is none. False: no direction is left. By matrix_judge's
 * counts. */
bool matrix_next_thin(const struct matrix *m, const struct matrix_first *first, uint32_t nic,
                      uint32_t *at, struct matrix_thin *ret);
/* One NIC as the fact `matrix` has it (facts.h): words "NAME VALUE" apart by commas. leaf_names: by number. */
enum { MATRIX_WORDS_SIZE = 832 };
const char *matrix_words(const struct matrix *m, uint32_t nic, const char *const *leaf_names,
                         char ret[MATRIX_WORDS_SIZE]);

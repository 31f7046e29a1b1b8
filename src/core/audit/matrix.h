/* matrix.h: the measurements of all hosts in one matrix, and what follows from them.
 *
 * A cell is a pair of NICs and a direction. Median polish splits its least delay into four parts: a constant (one for pairs of
 * one leaf, one for all others), a row (the sending side of a NIC), a column (its receiving side), and the cell's rest. A slow or
 * deaf NIC bends its whole row or column. A slow path bends its cell. Cables of a leaf bend all cells between two leaves.
 * Verdicts use medians over many partners, and a path counts only if two partners have it: so no verdict of a NIC rests on one
 * partner. In a cell one host reports the packets that it sent, and the other one those that came. So a NIC fails only if the
 * evidence holds without any one other host, too.
 *
 * If a NIC's delay to another leaf's NICs is that of neighbours, the NIC hangs on that other leaf.
 *
 * A cell that nobody measured stays unmeasured, with the reason. Memory is the caller's (matrix_size: 4 bytes a cell). The work
 * is a few passes over all cells. */
#pragma once
#include <stddef.h>

#include "core/audit/matrix_part.h"

#define MATRIX_LEAF_NONE UINT16_MAX
#define MATRIX_STEADY    UINT32_MAX

/* Cells on a NIC's rail, one way, that show whether a mark is kept: the marked packet arrived, and so did all others. */
struct matrix_marks {
    uint32_t came, changed;      /* changed: it arrived with another mark */
    uint32_t near, near_changed; /* of them, with NICs of its own leaf */
    /* of the changed ones: the NIC's side of the fabric changed the mark */
    uint32_t own;
};

/* Lost packets of a NIC, one way, in cells of which others came. `worst`: those with the host with which most are lost. That host
 * is one witness, with all its NICs. */
struct matrix_lost {
    uint32_t all, worst, worst_host;
    uint32_t now, now_host; /* used during the count */
};

/* Measured cells of a NIC, one way, grouped by the other host: the cells of one host follow one another. */
struct matrix_dead {
    uint32_t hosts, host, cells, dead; /* of the present host */
    /* of the host before it without which the smallest share is dead */
    uint32_t worst_cells, worst_dead;
};

struct matrix_nic {
    uint32_t host, rail; /* places in the grid */
    bool there;          /* false: a hole of the grid */
    uint8_t why;         /* enum matrix_why of its host, as long as the host has reported nothing */
    uint16_t leaf;       /* as declared; MATRIX_LEAF_NONE: not known */
    bool told;           /* its row has come */
    uint32_t bound_ns;
    /* how long its clock has been in step; MATRIX_STEADY: longer than is recorded */
    uint32_t steady_s;
    /* set by matrix_judge */
    uint16_t leaf_now;          /* the found one, else the declared one */
    uint16_t leaf_found;        /* the leaf by its delays; MATRIX_LEAF_NONE: they don't show it */
    uint32_t cells, unmeasured; /* cells with NICs of other hosts, both ways */
    uint32_t why_not[MATRIX_WHY_COUNT];
    /* of measured cells: cells without an arrival, packets, lost packets */
    uint32_t dead_out, dead_in, measured_out, measured_in, sent_out, lost_out, sent_in, lost_in;
    struct matrix_dead dead_to, dead_from;
    struct matrix_lost part_out, part_in;
    /* own_*: the same for cells whose loss is more likely this NIC's than the partner's; packets without those with the worst
     * host. partners: dead cells that are nobody's fault. alone: dead cells of a NIC that was measured with one host only.
     * pair_lost: packets that are lost with the host with which most are lost, and that are nobody's fault */
    uint32_t own_dead_out, own_dead_in, partners, alone, own_lost_out, own_lost_in, pair_lost;
    uint32_t late_cells; /* cells whose delay row and column don't explain */
    /* cells on the rail: those of which some packets came and some did not, and those that were measured */
    uint32_t thin_out, thin_in, rail_out, rail_in;
    bool leaf_thin_out, leaf_thin_in; /* most NICs of its leaf have many such cells */
    /* packets of such cells: they are lost on something that the leaf shares */
    uint32_t shared_lost;
    struct matrix_marks marks_out, marks_in;
    uint32_t marked; /* cells of its rail whose sender marked a packet, lost or not */
    /* cells that changed a mark, and are nobody's own: all, with NICs of its own leaf, with NICs of others. If a leaf is not
     * known, the cell counts as neither of the last two */
    uint32_t changed_elsewhere, changed_within, changed_across;
    bool delay_known;
    int64_t out_ns,
        /* above the median of all rows, and of all columns. If it stands out, two hosts report at least this lateness */
        in_ns;
    bool late_by_one; /* it was measured with one host only, and stands out there */
    int64_t drift_out_ns, drift_in_ns; /* change since the matrix before; valid if drift_known */
    bool drift_known;
};

struct matrix_cell {
    uint8_t sent, heard;
    bool marked, kept; /* its last packet was marked, and came with the mark */
    uint8_t why;       /* enum matrix_why; MATRIX_FINE: it was measured */
    int16_t delay;     /* code; 0: not known */
};

struct matrix {
    struct matrix_plan plan;
    uint32_t count; /* places of the grid */
    struct matrix_nic *nics;
    int16_t *delay; /* [from * count + to], as for all of these */
    uint8_t *sent, *heard;
    int32_t *scratch; /* MATRIX_BLOCK * count values, and some more */
    int64_t *row, *column;
    /* set by matrix_judge */
    uint64_t cells, measured; /* of ordered pairs of two hosts */
    uint64_t unmeasured[MATRIX_WHY_COUNT];
    /* sums of matrix_marks over all cells but those within a leaf */
    uint64_t far_came, far_changed;
    int64_t near_ns, far_ns; /* medians; INT64_MIN: none */
    /* limits: a row or column above limit_ns stands out, and a cell above cell_limit_ns */
    int64_t limit_ns, cell_limit_ns;
    bool leaves_told; /* delays show which NICs share a leaf */
    /* most NICs hear, or are heard by, less than half of the others: that is no NIC's own fault */
    bool parted;
};

size_t matrix_size(const struct matrix_plan *plan);
/* memory: matrix_size bytes, aligned like malloc's. All NICs begin as present, SILENT, without a leaf. */
void matrix_init(struct matrix *m, const struct matrix_plan *plan, void *memory);
/* A NIC's row as its host reported it: `rounds` bytes of `sent` and of `heard`, `rounds` delays of two bytes. -EINVAL: it is not
 * of this plan, or it has come already. */
MUST_CHECK int matrix_take(struct matrix *m, uint32_t nic, const uint8_t *sent,
                           const uint8_t *heard, const int16_t *delay, uint32_t rounds,
                           uint32_t bound_ns);
/* Must this cell be measured? */
bool matrix_two_hosts(const struct matrix *m, uint32_t a, uint32_t b);
struct matrix_cell matrix_cell_of(const struct matrix *m, uint32_t from, uint32_t to);
/* before: the previous matrix, of the same NICs in the same places, or NULL. */
void matrix_judge(struct matrix *m, const struct matrix *before);
/* A direction between two NICs of a rail that lost some packets, while neither NIC loses any to, or from, more than two others.
 * Either some source ports lead to a dead path, or it was chance. Each end is reported by one host. So one partner alone proves
 * nothing about this NIC; two partners of one leaf, which have the same trunks, do. A dead path takes the same packets each time:
 * with a first matrix, a partner counts if both matrices have lost some. */
struct matrix_thin {
    uint32_t from, to;
    uint8_t sent, heard;
    /* NICs of the partner's leaf with which this NIC loses some in this direction; 0: the first matrix has none */
    uint32_t partners;
};
/* The first matrix, which this one must confirm. */
struct matrix_first {
    const struct matrix *m;
    /* each NIC's place in the first matrix, by its place in this one; MATRIX_NONE: the NIC is not in it */
    const uint32_t *places;
};
/* The next such direction with this NIC, either way. *at: 0 at first. first: NULL: there is none. False: no direction is left. It
 * uses matrix_judge's counts. */
bool matrix_next_thin(const struct matrix *m, const struct matrix_first *first, uint32_t nic,
                      uint32_t *at, struct matrix_thin *ret);
/* One NIC as the text of the fact `matrix` (facts.h): words "NAME VALUE", separated by commas. leaf_names: by number. */
enum { MATRIX_WORDS_SIZE = 832 };
const char *matrix_words(const struct matrix *m, uint32_t nic, const char *const *leaf_names,
                         char ret[MATRIX_WORDS_SIZE]);

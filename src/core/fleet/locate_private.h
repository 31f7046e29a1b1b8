/* locate_private.h: the inference's data, shared by locate*.c only. */
#pragma once
#include "base/prng.h"
#include "core/fleet/locate.h"

#define RING_LEVELS      3
#define RING_SLOTS       32
#define PATH_ELEMENT_MAX (7 + 2 * (PATH_HOP_MAX - 1) + PATH_HOP_MAX)
#define WINDOW_COUNT     7
#define WINDOW_OUTAGE    WINDOW_COUNT /* from l->from until l->until */
#define MOMENT_MAX       4096
#define HISTORY          16 /* trials of a path that are known one by one */
#define SET_MAX          6  /* elements of one explanation, single paths among them */
#define CANDIDATE_MAX    5  /* that each step of the search tries */
#define STREAK_MAX       32
#define CHANGE_MAX       32
#define QUIETS           5
#define NONE             UINT32_MAX
#define BURST_NS         (800 * NS_PER_MS)
#define CELLS            (1u << SET_MAX)
#define SHARE_MOST       0.9999
#define SHARE_HOLE       0.5 /* who loses more is a black hole, partly before it began */
#define OUTAGE_SHARE     0.999
#define TELLERS          64 /* hosts whose word is left out in turn */

/* Trials by the time they were sent: slots of 50 ms, 0.4 s or 3.2 s. */
struct ring {
    int64_t head; /* the newest slot's number */
    uint8_t sent[RING_SLOTS], lost[RING_SLOTS];
};
/* The newest trials, as they were told; bit k of both is of at_us[k]. */
struct history {
    uint32_t at_us[HISTORY]; /* of the caller's clock, modulo 2^32 */
    uint16_t valid, lost;
    uint8_t next;
};
struct path {
    struct locate_route route;
    bool used, observed;
    uint8_t element_count;
    uint32_t lossy;                      /* index + 1 among the lossy ones; 0: it is none */
    uint32_t elements[PATH_ELEMENT_MAX]; /* that it crosses */
    struct ring rings[RING_LEVELS];
    struct history history;
    struct mono seen;                                                /* newest trial */
    struct mono ok_last, ok_before, lost_first, lost_last, ok_after; /* of the last run of losses */
    uint32_t long_epoch;
    double long_sent, long_lost; /* over some minutes */
};
struct suspect {
    struct locate_element name;
    uint64_t class;        /* sum over the observed paths that cross it */
    uint32_t first, count; /* of its paths in locate.crossings */
    uint32_t observed;
    double prior;
    bool atom;
    /* bursts: losses of the last 0.8 s; their sum and square, and times of 0.8 s up to that, over minutes */
    int64_t burst_slot;
    uint32_t burst_lost;
    double burst_sum, burst_square, burst_slots;
};

/* A set of elements that explains what was lost. */
struct explanation {
    uint32_t count;
    uint32_t elements[SET_MAX];
    double shares[SET_MAX];
    double margins[SET_MAX], gains[SET_MAX]; /* against the best without it; against it left out */
    uint32_t others[SET_MAX][LOCATE_ONE_OF]; /* that may be it instead; NONE ends them */
    bool alike[SET_MAX]; /* those others, together, can't be told from it by anybody */
    double score;
    uint64_t paths; /* sum over the paths that it crosses */
};
/* What an explanation must not use. */
struct ban {
    uint64_t classes[SET_MAX];
    uint32_t count;
    uint64_t paths; /* these in all; 0: none */
};
struct streak {
    uint64_t class;
    uint32_t named, seen, look; /* looks in a row; number of the last */
};
/* What is lost with nothing at fault. */
struct quiet {
    double background, dispersion;
};
/* What was answered, for who asks next about the same evidence. */
struct answer {
    uint64_t told;
    struct mono now;
    struct explanation explanation;
    bool named[SET_MAX];
};
/* Trials of an element, one after the other, that were all lost. */
struct run {
    uint32_t lost, lost_all; /* in it; of all that are known one by one */
    uint32_t known;          /* trials, those that came included */
    struct mono low, first, last,
        high; /* the last before it that came, ..., the first after; MONO_NEVER: none */
};
/* From one instant to another, both included; until before from: none. */
struct moment {
    struct mono from, until;
};
#define MOMENT_NONE ((struct moment){.until = {-1}})
struct candidate {
    uint32_t element;
    double score;
};

struct locate {
    struct locate_config config;
    struct path *paths;
    struct suspect *suspects;
    uint32_t element_count, table_mask;
    uint32_t *table;     /* elements by hash of their name; index + 1 */
    uint32_t *crossings; /* paths by element */
    uint32_t *lossy, lossy_count;
    bool stale;            /* routes changed since the elements were told apart */
    bool calm, lost_since; /* the last look saw nothing that isn't named; it may see more now */
    double background, dispersion;
    struct quiet quiets[QUIETS]; /* learned lately, oldest first: to be used unless a case opens */
    int64_t burst_from, burst_last; /* bursts are counted since then; the newest time with a loss */
    uint32_t burst_times;           /* with a loss */
    struct mono background_at, told_first, next;
    uint32_t background_rounds;
    uint32_t look;
    /* of one window */
    uint32_t stamp, *path_stamp;
    uint16_t *sent, *lost;
    uint8_t *mask;
    uint32_t *touched;
    struct mono now;
    uint32_t window;
    struct host_id without; /* whose word is left out */
    struct host_id muted;   /* and that of a liar, until */
    struct mono muted_until;
    struct moment moment;    /* left out */
    struct mono from, until; /* of WINDOW_OUTAGE */
    double choice;           /* ln of how many such windows there were to choose from */
    struct candidate candidates[CANDIDATE_MAX];
    uint32_t candidate_count;
    uint32_t *marked; /* elements met in this pass */
    uint32_t *element_sent, *element_lost;
    double *sort;
    int64_t *moments; /* MOMENT_MAX */
    uint64_t told;    /* counts trials and routes */
    struct answer answer;
    struct streak streaks[STREAK_MAX];
    struct locate_case cases[LOCATE_CASE_MAX];
    struct mono doubted[LOCATE_CASE_MAX]; /* since when another name is the better one */
    uint32_t case_count, case_serial;
    struct locate_case changes[CHANGE_MAX];
    uint32_t change_head, change_count;
};

/* locate_element.c: which elements there are, and which paths cross them */
void locate_elements_build(struct locate *l);
uint32_t locate_element_find(const struct locate *l, const struct locate_element *name);
/* Likelier, or in the order that every host has. */
bool locate_before(const struct suspect *x, const struct suspect *y);
uint64_t locate_case_number(const struct locate_element *name, struct mono began);
void locate_observe(struct locate *l, uint32_t path, bool observed);
static inline uint64_t locate_path_hash(uint32_t path)
{
    return hash_u64(0x6c6f63617465, path);
}

/* locate_evidence.c: what was told */
void locate_rings_clear(struct path *p);
/* Into l->sent and l->lost, once per window. */
void locate_count(struct locate *l, uint32_t path);
/* The longest run of lost trials of an element, of the last seconds; few strayed through. */
void locate_run_find(struct locate *l, uint32_t element, struct mono now, struct run *ret_run);
double locate_seems_over(const struct locate *l, uint32_t element);
/* The 40 ms of the last seconds in which the element lost most. False: in none it lost two. */
bool locate_moment_find(struct locate *l, uint32_t element, struct mono now,
                        struct moment *ret_moment);
/* fault: what was lost is no background. */
void locate_forget(struct locate *l, uint32_t path, struct mono from, struct mono until,
                   bool fault);
struct span locate_window_span(uint32_t window);

/* locate_background.c: what is lost with nothing at fault */
void locate_background_learn(struct locate *l, struct mono now);
/* They are counted anew. */
void locate_bursts_forget(struct locate *l, struct mono now);

/* locate_weigh.c: what an explanation is worth */
struct cell {
    double sent, lost;
};
void locate_window_begin(struct locate *l, struct mono now, uint32_t window,
                         struct host_id without);
double locate_gain(double lost, double sent, double share, double null);
double locate_null(const struct locate *l); /* the least that an element must lose */
/* l->mask of all paths that it crosses. */
void locate_mark(struct locate *l, const struct explanation *x, uint8_t value);
/* Sum over the observed paths that it crosses: alike for sets that nobody can tell apart. */
uint64_t locate_paths_of(struct locate *l, const struct explanation *x);
/* Shares and score, and the cells that they were fitted to. */
void locate_weigh_cells(struct locate *l, struct explanation *x, struct cell *cells);
void locate_weigh(struct locate *l, struct explanation *x);
void locate_drop(struct explanation *x, uint32_t index);

/* locate_search.c: the best explanation of one window */
void locate_explain(struct locate *l, struct explanation *ret);
void locate_explain_margins(struct locate *l, struct explanation *x);
/* Into l->candidates: what explains most by itself. */
void locate_candidates_find(struct locate *l);
/* Whether that element, alone among the explanation's, is named without that host's word, too. */
bool locate_stands_without(struct locate *l, const struct explanation *x, uint32_t index,
                           struct host_id host);
/* By how much that element improves it, and by how much it beats the best without it, if what was sent in that moment is
 * left out. */
double locate_gain_beside(struct locate *l, const struct explanation *x, uint32_t index,
                          struct moment moment);
double locate_margin_beside(struct locate *l, const struct explanation *x, uint32_t index,
                            struct moment moment);
/* Whether these in that element's place explain the same paths, and their losses nearly as well, however rare they are. */
bool locate_is_alike(struct locate *l, const struct explanation *x, uint32_t index,
                     const uint32_t *elements, uint32_t count);

/* locate_outage.c: what was over before a window of fixed length could tell. True: *x explains it better, and is of
 * WINDOW_OUTAGE as it is set now. */
bool locate_outage_explain(struct locate *l, struct mono now, struct explanation *x);
/* What decides between windows: how many faults each of them is sure of. Of those alike the shortest. */
double locate_decided(const struct explanation *x);
bool locate_all_decided(const struct explanation *x);

/* locate_liar.c: a host whose word fits nothing. True: from now on it is left out. */
bool locate_liar_find(struct locate *l, struct mono now);

/* locate_word.c: whose word it is; by how much they lost, most first */
struct tellers {
    struct {
        struct host_id host;
        uint32_t lost;
    } list[TELLERS];
    uint32_t count;
};
struct tellers locate_tellers_of(struct locate *l, uint32_t element);
/* All others whose word counts: that all came may be a lie, too. */
void locate_tellers_add(struct locate *l, struct tellers *t);
bool locate_stands(struct locate *l, const struct explanation *x, uint32_t index,
                   const struct tellers *t);

/* locate_end.c: when a case is over */
void locate_cases_end(struct locate *l, struct mono now);

/* locate_case.c: from answers to cases */
void locate_changed(struct locate *l, const struct locate_case *c);
bool locate_crosses(const struct path *p, uint32_t element);
/* An unknown case is any of its elements; one whose name nobody can tell apart, the first. */
uint32_t locate_case_elements(const struct locate *l, const struct locate_case *c,
                              uint32_t ret_elements[static LOCATE_ONE_OF]);
bool locate_case_crosses(const struct path *p, const uint32_t *elements, uint32_t count);
/* Nearly all that it lost lately was lost in one run. */
bool locate_is_outage(const struct run *run);
void locate_cases_update(struct locate *l, struct mono now, const struct explanation *x);

/* locate_private.h: the inference's data, for locate*.c only. */
#pragma once
#include "base/prng.h"
#include "core/fleet/locate.h"

#define RING_LEVELS      3
#define RING_SLOTS       32
#define PATH_ELEMENT_MAX (7 + 2 * (PATH_HOP_MAX - 1) + PATH_HOP_MAX)
#define WINDOW_COUNT     7
#define WINDOW_OUTAGE    WINDOW_COUNT /* from l->from until l->until */
#define MOMENT_MAX       4096
#define HISTORY          16 /* trials of a path that are kept one by one */
#define SET_MAX          6  /* elements of one explanation, also single paths */
#define CANDIDATE_MAX    5  /* that each step of the search tries */
#define STREAK_MAX       32
#define CHANGE_MAX       32
#define QUIETS           5
#define NONE             UINT32_MAX
#define BURST_NS         (800 * NS_PER_MS)
#define CELLS            (1u << SET_MAX)
#define SHARE_MOST       0.9999
/* an element that loses more is a black hole, seen partly before it began */
#define SHARE_HOLE   0.5
#define OUTAGE_SHARE 0.999
#define TELLERS      64 /* hosts whose reports are left out in turn */

/* Trials by the time of sending: slots of 50 ms, 0.4 s or 3.2 s. */
struct ring {
    int64_t head; /* the newest slot's number */
    uint8_t sent[RING_SLOTS], lost[RING_SLOTS];
};
/* The newest trials, in the order of their reports; bit k of both belongs to at_us[k]. */
struct history {
    uint32_t at_us[HISTORY]; /* by the caller's clock, modulo 2^32 */
    uint16_t valid, lost;
    uint8_t next;
};
struct path {
    struct locate_route route;
    bool used, observed;
    uint8_t element_count;
    uint32_t lossy;                      /* index + 1 among the lossy paths; 0: not lossy */
    uint32_t elements[PATH_ELEMENT_MAX]; /* the elements on it */
    struct ring rings[RING_LEVELS];
    struct history history;
    struct mono seen;                                                /* the newest trial */
    struct mono ok_last, ok_before, lost_first, lost_last, ok_after; /* of the last run of losses */
    uint32_t long_epoch;
    double long_sent, long_lost; /* over some minutes */
};
struct suspect {
    struct locate_element name;
    uint64_t class;        /* a sum over the observed paths through it */
    uint32_t first, count; /* its paths in locate.crossings */
    uint32_t observed;
    double prior;
    bool atom;
    /* bursts: losses of the last 0.8 s; their sum and sum of squares over earlier times of 0.8 s, over minutes */
    int64_t burst_slot;
    uint32_t burst_lost;
    double burst_sum, burst_square, burst_slots;
};

/* A set of elements that explains the losses. */
struct explanation {
    uint32_t count;
    uint32_t elements[SET_MAX];
    double shares[SET_MAX];
    /* margins: against the best explanation without it; gains: against this one with it removed */
    double margins[SET_MAX], gains[SET_MAX];
    /* elements that may be at fault instead; NONE ends the list */
    uint32_t others[SET_MAX][LOCATE_ONE_OF];
    bool alike[SET_MAX]; /* those others together can't be distinguished from it */
    double score;
    uint64_t paths; /* a sum over the paths through it */
};
/* Elements that an explanation must not use. */
struct ban {
    uint64_t classes[SET_MAX];
    uint32_t count;
    uint64_t paths; /* the sum of paths must not be this; 0: any */
};
struct streak {
    uint64_t class;
    uint32_t named, seen, look; /* consecutive looks; number of the last one */
};
/* The loss without any fault. */
struct quiet {
    double background, dispersion;
};
/* The last answer, for a caller with the same evidence. */
struct answer {
    uint64_t told;
    struct mono now;
    struct explanation explanation;
    bool named[SET_MAX];
};
/* Consecutive trials of an element that were all lost. */
struct run {
    uint32_t lost, lost_all; /* in the run; among all that are known one by one */
    uint32_t known;          /* trials, also those that arrived */
    struct mono low, first, last,
        high; /* the last arrival before the run, ..., the first one after; MONO_NEVER: none */
};
/* From one time to another, both included; until before from: none. */
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
    uint32_t *table;     /* elements by the hash of their name; index + 1 */
    uint32_t *crossings; /* paths by element */
    uint32_t *lossy, lossy_count;
    bool stale; /* routes changed since the elements were computed */
    /* calm: the last look saw nothing without a name; lost_since: it may see more now */
    bool calm, lost_since;
    double background, dispersion;
    struct quiet quiets[QUIETS];    /* recent values, oldest first: used unless a case opens */
    int64_t burst_from, burst_last; /* bursts are counted since then; the newest time with a loss */
    uint32_t burst_times;           /* times with a loss */
    struct mono background_at, told_first, next;
    uint32_t background_rounds;
    uint32_t look;
    /* for one window */
    uint32_t stamp, *path_stamp;
    uint16_t *sent, *lost;
    uint8_t *mask;
    uint32_t *touched;
    struct mono now;
    uint32_t window;
    struct host_id without; /* the host whose reports are left out */
    struct host_id muted;   /* and a liar's, until */
    struct mono muted_until;
    struct moment moment;    /* the moment that is left out */
    struct mono from, until; /* for WINDOW_OUTAGE */
    double choice;           /* ln of the number of possible windows */
    struct candidate candidates[CANDIDATE_MAX];
    uint32_t candidate_count;
    uint32_t *marked; /* elements that this pass has met */
    uint32_t *element_sent, *element_lost;
    double *sort;
    int64_t *moments; /* MOMENT_MAX */
    uint64_t told;    /* counts trials and routes */
    struct answer answer;
    struct streak streaks[STREAK_MAX];
    struct locate_case cases[LOCATE_CASE_MAX];
    struct mono doubted[LOCATE_CASE_MAX]; /* the time since which another name is better */
    uint32_t case_count, case_serial;
    struct locate_case changes[CHANGE_MAX];
    uint32_t change_head, change_count;
};

/* locate_element.c: the elements, and the paths through them */
void locate_elements_build(struct locate *l);
uint32_t locate_element_find(const struct locate *l, const struct locate_element *name);
/* True if x is likelier, or comes first in the order that every host has. */
bool locate_before(const struct suspect *x, const struct suspect *y);
uint64_t locate_case_number(const struct locate_element *name, struct mono began);
void locate_observe(struct locate *l, uint32_t path, bool observed);
static inline uint64_t locate_path_hash(uint32_t path)
{
    return hash_u64(0x6c6f63617465, path);
}

/* locate_evidence.c: the trials */
void locate_rings_clear(struct path *p);
/* Counts into l->sent and l->lost, once for each window. */
void locate_count(struct locate *l, uint32_t path);
/* The longest run of lost trials of an element within the last seconds; few arrivals strayed through. */
void locate_run_find(struct locate *l, uint32_t element, struct mono now, struct run *ret_run);
double locate_seems_over(const struct locate *l, uint32_t element);
/* The 40 ms of the last seconds with the element's most losses. False: no such time has two. */
bool locate_moment_find(struct locate *l, uint32_t element, struct mono now,
                        struct moment *ret_moment);
/* fault: these losses don't count as background. */
void locate_forget(struct locate *l, uint32_t path, struct mono from, struct mono until,
                   bool fault);
struct span locate_window_span(uint32_t window);

/* locate_background.c: the loss without a fault */
void locate_background_learn(struct locate *l, struct mono now);
/* Starts counting bursts anew. */
void locate_bursts_forget(struct locate *l, struct mono now);

/* locate_weigh.c: the value of an explanation */
struct cell {
    double sent, lost;
};
void locate_window_begin(struct locate *l, struct mono now, uint32_t window,
                         struct host_id without);
double locate_gain(double lost, double sent, double share, double null);
double locate_null(const struct locate *l); /* the least loss of a faulty element */
/* Sets l->mask of all paths through it. */
void locate_mark(struct locate *l, const struct explanation *x, uint8_t value);
/* The sum over the observed paths through it: equal for sets that nobody can tell apart. */
uint64_t locate_paths_of(struct locate *l, const struct explanation *x);
/* Fits shares and score, and returns the cells that were used. */
void locate_weigh_cells(struct locate *l, struct explanation *x, struct cell *cells);
void locate_weigh(struct locate *l, struct explanation *x);
void locate_drop(struct explanation *x, uint32_t index);

/* locate_search.c: the best explanation of one window */
void locate_explain(struct locate *l, struct explanation *ret);
void locate_explain_margins(struct locate *l, struct explanation *x);
/* Fills l->candidates: the elements that explain most by themselves. */
void locate_candidates_find(struct locate *l);
/* True if that element is still named without that host's reports. */
bool locate_stands_without(struct locate *l, const struct explanation *x, uint32_t index,
                           struct host_id host);
/* How much that element improves the explanation, and how much this one beats the best without it, if packets sent in that moment
 * are left out. */
double locate_gain_beside(struct locate *l, const struct explanation *x, uint32_t index,
                          struct moment moment);
double locate_margin_beside(struct locate *l, const struct explanation *x, uint32_t index,
                            struct moment moment);
/* True if these elements in its place explain the same paths and nearly the same losses, however rare they are. */
bool locate_is_alike(struct locate *l, const struct explanation *x, uint32_t index,
                     const uint32_t *elements, uint32_t count);

/* locate_outage.c: outages that were over before a window of fixed length could show them. True: *x explains the losses better,
 * in the present WINDOW_OUTAGE. */
bool locate_outage_explain(struct locate *l, struct mono now, struct explanation *x);
/* The order between windows: the number of faults of which each is certain. With equal numbers the shortest window counts. */
double locate_decided(const struct explanation *x);
bool locate_all_decided(const struct explanation *x);

/* locate_liar.c: a host with reports that fit nothing. True: from now on they are left out. */
bool locate_liar_find(struct locate *l, struct mono now);

/* locate_word.c: the reporting hosts, sorted by their losses */
struct tellers {
    struct {
        struct host_id host;
        uint32_t lost;
    } list[TELLERS];
    uint32_t count;
};
struct tellers locate_tellers_of(struct locate *l, uint32_t element);
/* Adds all other hosts whose reports count: a report without losses may be false, too. */
void locate_tellers_add(struct locate *l, struct tellers *t);
bool locate_stands(struct locate *l, const struct explanation *x, uint32_t index,
                   const struct tellers *t);

/* locate_end.c: the end of a case */
void locate_cases_end(struct locate *l, struct mono now);

/* locate_case.c: from answers to cases */
void locate_changed(struct locate *l, const struct locate_case *c);
bool locate_crosses(const struct path *p, uint32_t element);
/* For an unknown case, all its elements; for a name that has equals, the first one. */
uint32_t locate_case_elements(const struct locate *l, const struct locate_case *c,
                              uint32_t ret_elements[static LOCATE_ONE_OF]);
bool locate_case_crosses(const struct path *p, const uint32_t *elements, uint32_t count);
/* Nearly all its recent losses are one run. */
bool locate_is_outage(const struct run *run);
void locate_cases_update(struct locate *l, struct mono now, const struct explanation *x);

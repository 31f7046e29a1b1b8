/* search.h: which members of a set make it slow: halves that are tested at the same time, beside members that are known to
 * be good. Where something else names suspects, the first part is they alone: if they are it, the rest needs no halving.
 *
 * A test is a set of members that run together; it is slow or fast as a whole. Tests of a round run at the same time, and so
 * have no member in common. A slow set is halved, both halves in one round: one slow half is gone on with, two slow ones both
 * are (several culprits cost no more rounds), and where both are fast, two members are slow only together, one in each half.
 * Those are found by quarters, across: at most two rounds for each halving. What is left, one or two members, is tested once
 * more beside other good ones before it is named; what does not show again is named nobody, and counted as not seen again.
 *
 * A test that could not be run has no answer. Its members may be slow, so they are halved on as if they were, until each that
 * can be tested was. Only slow tests name: a member by two of them with different partners, a pair by two. What was left
 * without an answer is counted as unproven. So is a slow set of which one part was not tested and no other is slow: two members
 * in different parts may be slow together.
 *
 * Sans-I/O, no time: rounds out, results in. Memory is the caller's: search_size bytes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define SEARCH_NONE UINT32_MAX

enum { SEARCH_SETS_MAX = 64, SEARCH_NAMED_MAX = 64 };

/* Members order[first … first + count - 1], those of the other range, and one known good one beside them. */
struct search_range {
    uint32_t first, count;
};
struct search_test {
    struct search_range one, other; /* other.count 0: none */
    uint32_t partner;               /* a member; SEARCH_NONE: none is needed, or there is none */
};
enum search_answer { SEARCH_FAST, SEARCH_SLOW, SEARCH_UNKNOWN /* it could not be run */ };
struct search_named {
    uint32_t member, with; /* with: slow only together; SEARCH_NONE: by itself */
};

struct search {
    uint32_t count;
    uint32_t *order; /* members; ranges are of this */
    uint8_t *
        good; /* by member: 1, it may be a partner, being well before or alone; 2, it was in the fast part of a slow set */
    uint8_t *used; /* by member: in this round */
    uint8_t *gone; /* by member: it is no partner any more */
    uint32_t next_partner;
    struct search_set {
        uint8_t kind; /* of search.c */
        struct search_range one, other;
        uint32_t first;   /* its first part has so many; 0: half of it */
        uint32_t partner; /* of its last test */
        uint8_t seen;     /* slow tests of these members and no others of the search */
        uint8_t tries;    /* of a second look that had no answer */
    } sets[SEARCH_SETS_MAX];
    uint32_t set_count;
    struct search_named named[SEARCH_NAMED_MAX];
    uint32_t named_count;
    uint32_t rounds;
    uint32_t not_seen_again; /* slow sets of which nothing was named */
    uint32_t unproven;       /* members, or pairs, that no test could answer for */
    bool full;               /* there was more than there is room for */
};

size_t search_size(uint32_t members);
/* All members 0 … count - 1 together were slow. */
void search_init(struct search *s, uint32_t count, void *memory);
/* It was well by tests before the search: it may be a partner at once. */
void search_know_good(struct search *s, uint32_t member);
/* Before the first round: what makes the set slow is probably among these members, so they are its first part, with one more
 * that is well where their number is odd. Of so many that halves are better, or without that one: as before. */
void search_begin_with(struct search *s, const uint32_t *suspects, uint32_t count);
/* It takes part in no test any more: who runs them leaves it out, and it is nobody's partner. */
void search_leave(struct search *s, uint32_t member);
/* The tests of the next round; 0: it is over. At most 2 * SEARCH_SETS_MAX. */
uint32_t search_round(struct search *s, struct search_test tests[2 * SEARCH_SETS_MAX]);
/* Answers (enum search_answer) to each test of that round, in its order. A test of one member alone, or of none, is unknown. */
void search_results(struct search *s, const struct search_test *tests, const uint8_t *answers);

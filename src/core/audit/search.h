/* search.h: finds the members that make a set slow. It tests halves at the same time, beside members that are known to be good.
 * If other evidence names suspects, they are the first part: if they are the cause, the rest needs no halving.
 *
 * A test is a set of members that run together. It is slow or fast as a whole. The tests of a round run at the same time, and so
 * have no member in common. A slow set is halved, both halves in one round. If one half is slow, the search goes on with it; if
 * both are, with both (so several culprits cost no more rounds). If both are fast, two members are slow only together, one in
 * each half. Quarters across the halves find these, in at most two rounds for each halving. The one or two members that are left
 * are tested once more, beside other good ones, before they are named. If that test is fast, nobody is named, and it counts as
 * not seen again.
 *
 * A test that could not be run has no answer. Its members may be slow, so they are halved as if they were, until each one that
 * can be tested was. Only slow tests name: a member by two tests with different partners, a pair by two. Members without an
 * answer at the end count as unproven. So does a slow set of which one part was not tested and no other part is slow: two members
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

/* Members order[first … first + count - 1], those of the other range, and one known good member beside them. */
struct search_range {
    uint32_t first, count;
};
struct search_test {
    struct search_range one, other; /* other.count 0: none */
    uint32_t partner;               /* a member; SEARCH_NONE: none is needed, or none exists */
};
enum search_answer { SEARCH_FAST, SEARCH_SLOW, SEARCH_UNKNOWN /* it could not be run */ };
struct search_named {
    uint32_t member, with; /* with: both are slow only together; SEARCH_NONE: slow by itself */
};

struct search {
    uint32_t count;
    uint32_t *order; /* members; ranges refer to it */
    /* by member: 1: may be a partner, because it was good before or alone; 2: was in the fast part of a slow set */
    uint8_t *good;
    uint8_t *used; /* by member: in a test of this round */
    uint8_t *gone; /* by member: it is no partner any more */
    uint32_t next_partner;
    struct search_set {
        uint8_t kind; /* of search.c */
        struct search_range one, other;
        uint32_t first;   /* the size of its first part; 0: half */
        uint32_t partner; /* in its last test */
        uint8_t seen;     /* the number of slow tests of exactly these members */
        uint8_t tries;    /* second looks without an answer */
    } sets[SEARCH_SETS_MAX];
    uint32_t set_count;
    struct search_named named[SEARCH_NAMED_MAX];
    uint32_t named_count;
    uint32_t rounds;
    uint32_t not_seen_again; /* slow sets in which nobody was named */
    uint32_t unproven;       /* members, or pairs, for which no test has an answer */
    bool full;               /* there were more than there is room for */
};

size_t search_size(uint32_t members);
/* All members 0 … count - 1 together were slow. */
void search_init(struct search *s, uint32_t count, void *memory);
/* It was good in tests before the search: it may be a partner at once. */
void search_know_good(struct search *s, uint32_t member);
/* Call it before the first round: the cause is probably among these members, so they are the first part, with one good member
 * more if their number is odd. If they are so many that halves are better, or there is no such good member, it changes
 * nothing. */
void search_begin_with(struct search *s, const uint32_t *suspects, uint32_t count);
/* It takes part in no more tests: the caller leaves it out, and it is no partner. */
void search_leave(struct search *s, uint32_t member);
/* The tests of the next round; 0: the search is over. At most 2 * SEARCH_SETS_MAX. */
uint32_t search_round(struct search *s, struct search_test tests[2 * SEARCH_SETS_MAX]);
/* The answers (enum search_answer) to the tests of that round, in their order. The answer of a test with one member, or none, is
 * unknown. */
void search_results(struct search *s, const struct search_test *tests, const uint8_t *answers);

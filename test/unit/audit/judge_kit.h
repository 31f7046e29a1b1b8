/* judge_kit.h: judges sheets, for tests. judge_done() frees the memory of the results. */
#pragma once
#include <stdlib.h>

#include "core/audit/judge.h"

static inline void judge_sheets_with(struct audit *a, struct sheet *sheets, uint32_t count,
                                     const struct audit_settings *settings)
{
    enum { RESULTS = 65536, TEXT_SIZE = 1 << 22 };

    *a = (struct audit){.sheets = sheets,
                        .sheet_count = count,
                        .settings = settings,
                        .results = calloc(RESULTS, sizeof(struct audit_result)),
                        .capacity = RESULTS,
                        .items = calloc(RESULTS, audit_item_size()),
                        .item_capacity = RESULTS,
                        .mentions = calloc(RESULTS, sizeof(struct audit_mention)),
                        .mention_capacity = RESULTS,
                        .text = malloc(TEXT_SIZE),
                        .text_size = TEXT_SIZE};
    assert_int_equal(audit_judge(a), 0);
}

static inline void judge_sheets(struct audit *a, struct sheet *sheets, uint32_t count)
{
    judge_sheets_with(a, sheets, count, &audit_usual);
}

static inline void judge_done(struct audit *a)
{
    free(a->results);
    free(a->items);
    free(a->kinds); /* judged() alone sets it */
    free(a->mentions);
    free(a->text);
}

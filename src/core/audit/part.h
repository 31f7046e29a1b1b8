/* part.h: the parts in which a sheet is sent and kept. They are its sections, without two kinds of facts: those that name one
 * machine (`own`), and those that differ with each look (`now`: counters, temperatures). These would make the sections of each
 * host unique. So hosts of one kind share the content of most parts.
 *
 * The text of a part has one line for each fact, in the sheet's order: NAME, STATE, SUBJECT, VALUE, SOURCE, separated by tabs. */
#pragma once
#include "core/audit/fact.h"

/* the values below are enum fact_section */
enum sheet_part { PART_OWN = SECTION_COUNT, PART_NOW, PART_COUNT };

const char *sheet_part_name(unsigned part);
unsigned sheet_part_by_name(const char *name); /* PART_COUNT: there is no such part. */
unsigned sheet_part_of(enum fact_id id);

/* The number of bytes that it takes, without a 0 at the end; more than `size`: it was cut. 0: the sheet has no such facts. */
size_t sheet_part_encode(const struct sheet *s, unsigned part, char *to, size_t size);
/* Adds the facts; the caller calls sheet_finish. Unknown lines are skipped: they may be of a later release. Lines of facts that
 * only a controller adds to a sheet are skipped, too: parts come from hosts. */
void sheet_part_decode(struct sheet *s, const char *text, size_t size);
/* The same for a part that the controller itself has written, with the facts that it added. */
void sheet_part_restore(struct sheet *s, const char *text, size_t size);
/* The number of lines: at most so many facts. */
uint32_t sheet_part_facts(const char *text, size_t size);

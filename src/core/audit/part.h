/* part.h: in which parts a sheet travels and is kept: its sections, without two kinds of facts that would make each host's
 * sections its own: those that name one machine (`own`), and those that are others with each look (`now`: counters,
 * temperatures). So hosts of one kind share the content of most parts.
 *
 * A part's text is a line for each fact, in the sheet's order: NAME, STATE, SUBJECT, VALUE, SOURCE, apart by tabs. */
#pragma once
#include "core/audit/fact.h"

enum sheet_part { PART_OWN = SECTION_COUNT, PART_NOW, PART_COUNT }; /* below: enum fact_section */

const char *sheet_part_name(unsigned part);
unsigned sheet_part_by_name(const char *name); /* PART_COUNT: no such */
unsigned sheet_part_of(enum fact_id id);

/* The bytes that it takes, without a 0 behind; more than `size`: it was cut. 0: the sheet has no such facts. */
size_t sheet_part_encode(const struct sheet *s, unsigned part, char *to, size_t size);
/* Adds its facts; sheet_finish is the caller's. A line that is none of ours is left away: it may be of a later release.
 * So is one of what a controller alone puts beside a sheet: parts come from hosts. */
void sheet_part_decode(struct sheet *s, const char *text, size_t size);
/* The same of a part that the controller itself has written: with what it put there. */
void sheet_part_restore(struct sheet *s, const char *text, size_t size);
/* Lines: at most so many facts. */
uint32_t sheet_part_facts(const char *text, size_t size);

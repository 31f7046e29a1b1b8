/* compaction.h: reports become chunks, and what is old goes (compaction.c). */
#pragma once

struct controller;

/* In the keeper: what is due is begun, and stored as it comes back. */
void compaction_some(struct controller *c);
void compaction_expire(struct controller *c);

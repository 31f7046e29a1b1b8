/* compaction.h: packs reports into chunks and deletes old data (compaction.c). */
#pragma once

struct controller;

/* Begins the work that is due, in the keeper's thread; results are stored as they come back. */
void compaction_some(struct controller *c);
void compaction_expire(struct controller *c);

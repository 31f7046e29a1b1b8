/* seal.h: reports become chunks, and what is old goes (compaction.c). */
#pragma once

struct controller;

/* In the keeper: what is due is begun, and stored as it comes back. */
void seal_some(struct controller *c);
void seal_expire(struct controller *c);

/* run_agents.h: what a lab's agents say on their sockets, while a scenario runs and at its end. */
#pragma once
#include "lab/run_judge.h"

struct run_agents;

struct run_agents *run_agents_new(struct run_judge *judge);
void run_agents_free(struct run_agents *a);
/* Reads what came, hands findings to the judge, joins agents that are (back) there, notes which run at all. */
void run_agents_poll(struct run_agents *a, int64_t now_ns);
/* Fills judge->totals after now_ns of run: asks each agent once more, and /proc. */
void run_agents_totals(struct run_agents *a, int64_t now_ns);

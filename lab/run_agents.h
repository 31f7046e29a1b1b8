/* run_agents.h: reads the agents' sockets while a scenario runs and at its end. */
#pragma once
#include "lab/run_judge.h"

struct run_agents;

struct run_agents *run_agents_new(struct run_judge *judge);
void run_agents_free(struct run_agents *a);
/* Reads new lines, passes findings to the judge, connects to agents that are back, and notes which agents run. */
void run_agents_poll(struct run_agents *a, int64_t now_ns);
/* Fills judge->totals for now_ns of run: asks each agent once more, and reads /proc. */
void run_agents_totals(struct run_agents *a, int64_t now_ns);

/* lane_pairs.h: two transports whose lanes go over queue pairs of the fake library (transport_pair.h, test/rdma/fake.h). */
#pragma once
#include "../rdma/fake.h"
#include "transport_pair.h"

#define PATIENCE_MS 60000 /* for what must happen, on a machine that has little time for us */

extern struct fake_control *fake;
extern fake_event_function fake_event;

/* A group's setup. */
int pairs_begin(void **state);
/* How many lanes write to a queue pair and read from it. */
uint32_t over_pairs(const struct transport *t);
/* Another sum, and some lane is another one. */
uint64_t epochs_of(const struct transport *t);
/* Serves until so many lanes of both ends do. */
void wait_for(struct pair *pair, uint32_t least, uint32_t most);
/* Serves until the receive is done or so many milliseconds are over; then whether it is. */
bool received(struct pair *pair, struct transport_request *receive, int ms);

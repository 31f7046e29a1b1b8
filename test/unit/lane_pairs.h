/* lane_pairs.h: two transports whose lanes go over queue pairs of the fake library (transport_pair.h, test/rdma/fake.h). */
#pragma once
#include "../rdma/fake.h"
#include "transport_pair.h"

#define PATIENCE_MS 60000 /* for events that must happen, on a busy machine */

extern struct fake_control *fake;
extern fake_event_function fake_event;

/* The setup of a group of tests. */
int pairs_begin(void **state);
/* The number of lanes that write to a queue pair and read from it. */
uint32_t over_pairs(const struct transport *t);
/* A sum over the lanes' epochs: if it changed, some lane is another one. */
uint64_t epochs_of(const struct transport *t);
/* Serves until from `least` to `most` lanes of both ends do. */
void wait_for(struct pair *pair, uint32_t least, uint32_t most);
/* Serves until the receive is done, at most so many milliseconds. Returns whether it is. */
bool received(struct pair *pair, struct transport_request *receive, int ms);

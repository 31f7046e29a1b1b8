/* answers.h: shared by answer_*.c. Each of them writes the fields of one kind of answer into an open object (docs/json.md). */
#pragma once
#include <netinet/in.h>

#include "service/agent/agent.h"

void answer_clock(struct agent *a, struct json_writer *j);
void answer_mesh(struct agent *a, struct json_writer *j);
void answer_links(struct agent *a, struct json_writer *j);
void answer_doctor(struct agent *a, struct json_writer *j);
void answer_jobs(struct agent *a, struct json_writer *j);
void answer_lanes(struct agent *a, struct json_writer *j); /* jobs with each of their lanes */
void answer_selftest(struct agent *a, struct json_writer *j);

/* The name of a router on a path: "leaf0" if the configuration names it, else its address. False: the router does not answer. */
bool answer_router_name(const struct agent *a, const uint8_t router[16],
                        char ret_text[INET6_ADDRSTRLEN]);
const char *answer_status_word(uint32_t status);
const char *answer_stamps_word(uint8_t stamps);
const char *answer_why(const struct agent *a, const struct clock_report *r);
struct clock_reading answer_reading(const struct agent *a);
bool answer_member_report(const struct agent *a, uint32_t member, struct clock_report *ret_report);
void answer_put_utc(struct agent *a, struct json_writer *j, const char *key,
                    struct mono at); /* writes null if the time is not known */
/* local_nic, local_name, peer_nic, peer_name, peer_host: the first fields of each object about an edge. */
void answer_put_edge_ends(struct agent *a, struct json_writer *j, struct nic_id local,
                          struct nic_id peer);

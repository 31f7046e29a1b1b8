/* answers.h: what the answer_*.c share. Each writes the fields of one kind into an open object
 * (docs/json.md). */
#pragma once
#include <netinet/in.h>

#include "service/agent/agent.h"

void answer_clock(struct agent *a, struct json_writer *j);
void answer_mesh(struct agent *a, struct json_writer *j);
void answer_links(struct agent *a, struct json_writer *j);
void answer_doctor(struct agent *a, struct json_writer *j);
void answer_jobs(struct agent *a, struct json_writer *j);
void answer_lanes(struct agent *a, struct json_writer *j); /* jobs, and each lane */
void answer_selftest(struct agent *a, struct json_writer *j);

/* A router of a way: "leaf0" where the configuration names it, else its address. False: it keeps silent. */
bool answer_router_name(const struct agent *a, const uint8_t router[16],
                        char ret_text[INET6_ADDRSTRLEN]);
const char *answer_status_word(uint32_t status);
const char *answer_stamps_word(uint8_t stamps);
const char *answer_why(const struct agent *a, const struct clock_report *r);
struct clock_reading answer_reading(const struct agent *a);
bool answer_member_report(const struct agent *a, uint32_t member, struct clock_report *ret_report);
void answer_put_utc(struct agent *a, struct json_writer *j, const char *key,
                    struct mono at); /* null: not known */
/* local_nic, local_name, peer_nic, peer_name, peer_host: the head of everything about an edge. */
void answer_put_edge_ends(struct agent *a, struct json_writer *j, struct nic_id local,
                          struct nic_id peer);

/* ingest_internal.h: what ingest.c and admit.c share: whose a request is, and answers. */
#pragma once
#include "service/controller/api/api.h"

/* The member whose certificate this is; NULL and a status: none. */
struct fleet_host *ingest_who(struct controller *c, const struct http_request *request,
                              unsigned *ret_status);
/* Which of c->joins is for this address. Of IPv6 all of a /64 have one; who has the same is another one with each salt. */
size_t ingest_join_place(uint64_t salt, const char *peer);
/* Takes one of this address' joins, when the request begins; false: none is left. One that made a new member is given back:
 * behind one address there may be a whole fleet. */
MUST_CHECK bool ingest_join_take(struct controller *c, const char *peer);
void ingest_join_give_back(struct controller *c, const char *peer);
void ingest_malformed(struct controller *c, struct http_request *request, const char *why);
/* more: appended as it is, packed; may be NULL. */
void ingest_answer(struct controller *c, struct http_request *request,
                   const ProtobufCMessage *message, const struct message_buffer *more);
ProtobufCBinaryData ingest_data(const char *text);
Foliot__V1__Settings ingest_settings(const struct controller *c, const struct fleet_host *h);

/* ---- admit.c ---- */
/* True: there is a new member. Answered in any case. */
MUST_CHECK bool ingest_join(struct controller *c, struct http_request *request,
                            const Foliot__V1__JoinRequest *m);
void ingest_renew(struct controller *c, struct http_request *request,
                  const Foliot__V1__RenewRequest *m);

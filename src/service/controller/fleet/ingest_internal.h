/* ingest_internal.h: shared by ingest.c and admit.c: which host a request is from, and answers. */
#pragma once
#include "service/controller/api/api.h"

/* The member with this certificate; NULL and a status: none. */
struct fleet_host *ingest_who(struct controller *c, const struct http_request *request,
                              unsigned *ret_status);
/* The entry of c->joins for an address. All addresses of an IPv6 /64 share one entry. Several addresses may share an entry;
 * with another salt they share other entries. */
size_t ingest_join_place(uint64_t salt, const char *peer);
/* Takes one join from the address' limit at the beginning of the request; false: the limit is reached. A join that made a new
 * member is given back, because a whole fleet may be behind one address. */
MUST_CHECK bool ingest_join_take(struct controller *c, const char *peer);
void ingest_join_give_back(struct controller *c, const char *peer);
void ingest_malformed(struct controller *c, struct http_request *request, const char *why);
/* more: packed bytes that are appended; may be NULL. */
void ingest_answer(struct controller *c, struct http_request *request,
                   const ProtobufCMessage *message, const struct message_buffer *more);
ProtobufCBinaryData ingest_data(const char *text);
Foliot__V1__Settings ingest_settings(const struct controller *c, const struct fleet_host *h);

/* ---- admit.c ---- */
/* Handles a join and always answers it. True: there is a new member. */
MUST_CHECK bool ingest_join(struct controller *c, struct http_request *request,
                            const Foliot__V1__JoinRequest *m);
void ingest_renew(struct controller *c, struct http_request *request,
                  const Foliot__V1__RenewRequest *m);

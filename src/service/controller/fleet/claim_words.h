/* claim_words.h: converts words of agents that send no elements to data; only for claim.c. */
#pragma once
#include "core/finding/finding.h"
#include "service/controller/controller.h"

/* Unknown if the words do not come from element_text(), or if they accuse a host that is no end of the finding. */
struct element claim_words_suspect(const struct controller *c, const struct fleet_host *h,
                                   const Foliot__V1__Finding *m, const struct finding *f);
uint16_t claim_words_advice(const char *text);
bool claim_is_place_of(enum element_kind kind, uint32_t place); /* claim.c */

/* claim_words.h: a finding of an agent before elements, its words mapped to data; of claim.c. */
#pragma once
#include "core/finding/finding.h"
#include "service/controller/controller.h"

/* Unknown where the words aren't those that element_text writes, or accuse who is no end of it. */
struct element claim_words_suspect(const struct controller *c, const struct fleet_host *h,
                                   const Foliot__V1__Finding *m, const struct finding *f);
uint16_t claim_words_advice(const char *text);
bool claim_is_place_of(enum element_kind kind, uint32_t place); /* claim.c */

/* alert_invariant.h: see alert_invariant.c. */
#pragma once
#include "core/alert/alert.h"

/* Fails the running test if the engine's memory contradicts itself. */
void alert_invariant(const struct alerts *a);

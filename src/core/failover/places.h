/* places.h: the number of places for communicators that a set begins with: few sets have many. */
#pragma once
#include <stdint.h>

#define PLACES_FEW 8

/* Doubling it repeatedly gives `most`. */
static inline uint32_t comm_places(uint32_t most)
{
    while (most > PLACES_FEW && most % 2 == 0) {
        most /= 2;
    }
    return most;
}

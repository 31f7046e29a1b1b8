/* places.h: how many places for communicators a set begins with: few have more than some. */
#pragma once
#include <stdint.h>

#define PLACES_FEW 8

/* It reaches `most` when it is doubled. */
static inline uint32_t comm_places(uint32_t most)
{
    while (most > PLACES_FEW && most % 2 == 0) {
        most /= 2;
    }
    return most;
}

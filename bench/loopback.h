/* loopback.h: one process's end of a job over this machine's own address, and waiting for it. */
#pragma once
#include <stdint.h>

struct transport;

/* In mode full, with checksums, and its own thread. lanes: 0 leaves it to the transport. NULL: it can't be. */
struct transport *loopback_open(uint32_t lanes);
void loopback_wait_us(long us);

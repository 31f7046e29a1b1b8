/* loopback.h: opens one process's end of a job over this machine's own address, and waits. */
#pragma once
#include <stdint.h>

struct transport;

/* In mode full, with checksums and its own thread. lanes: 0: the transport decides. NULL: it failed. */
struct transport *loopback_open(uint32_t lanes);
void loopback_wait_us(long us);

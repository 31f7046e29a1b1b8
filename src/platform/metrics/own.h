/* own.h: the resources that this process uses. */
#pragma once
#include <stdint.h>

/* Resident memory, bytes; 0: not known. */
uint64_t own_memory_bytes(void);

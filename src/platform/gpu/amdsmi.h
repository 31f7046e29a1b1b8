/* amdsmi.h: reads AMD's management library (AMD SMI) with dlopen. The answers are lines in the form of nvml.h. Only the power
 * limit in force and the number of PCIe replays are read. The rest is in the kernel's files (service/inspect/gpu.c).
 *
 * Like NVIDIA's library it may never return: call it in a child with a deadline. */
#pragma once
#include <stddef.h>

/* Like nvml_read(). */
int amdsmi_read(const char *library, char *ret_text, size_t size);

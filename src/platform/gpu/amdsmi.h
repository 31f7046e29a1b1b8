/* amdsmi.h: AMD's management library (AMD SMI), by dlopen: its answers as lines of the form that nvml.h has. It is asked for
 * the power limit in force and for PCIe packets sent again: the rest is in the kernel's files (service/inspect/gpu.c).
 *
 * As NVIDIA's, it may never return: call it in a child with a deadline. */
#pragma once
#include <stddef.h>

/* As nvml_read(). */
int amdsmi_read(const char *library, char *ret_text, size_t size);

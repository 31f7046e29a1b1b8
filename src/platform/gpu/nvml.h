/* nvml.h: reads NVIDIA's management library with dlopen. The answers are lines "GPU KEY VALUE", separated by blanks.
 *
 * GPU is the PCI address as in /proc/driver/nvidia ("0000:1b:00.0"), or "-" for the host. If there is no value, VALUE is "!"
 * and an errno: !2 the GPU does not have it, !1 no permission, !110 the driver did not answer, !38 the library has no such
 * function, !5 any other error. The last line is "end".
 *
 * The library may never return, and may end the process: call it in a child with a deadline. */
#pragma once
#include <stddef.h>

/* Returns the text's length. library NULL: the usual one. -ENOENT: there is none; -ENOSYS: it lacks a required function; -EIO:
 * it returned an error; -EMSGSIZE. */
int nvml_read(const char *library, char *ret_text, size_t size);

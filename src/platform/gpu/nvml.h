/* nvml.h: NVIDIA's management library, by dlopen: its answers as lines "GPU KEY VALUE", apart by blanks.
 *
 * GPU is the address on PCI as /proc/driver/nvidia has it ("0000:1b:00.0"), "-" for the host. Where there is no value, VALUE is
 * "!" and an errno: !2 the GPU does not have it, !1 not for this process, !110 the driver did not answer, !38 the library has
 * no such function, !5 any other error. The last line is "end".
 *
 * The library may never return, and may end the process: call it in a child with a deadline. */
#pragma once
#include <stddef.h>

/* The text's length. library NULL: the usual one. -ENOENT: there is none; -ENOSYS: it lacks what all of this needs;
 * -EIO: it answered with an error; -EMSGSIZE. */
int nvml_read(const char *library, char *ret_text, size_t size);

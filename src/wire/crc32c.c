/* crc32c.c: see crc32c.h. */
#include "wire/crc32c.h"

/* fuzz.h: what every target has: libFuzzer's entry, and a way to say that a promise was broken. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

/* Must return 0 for any bytes, without a crash, an undefined operation or a broken ASSERT. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

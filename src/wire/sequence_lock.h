/* sequence_lock.h: a struct in shared memory, copied in and out as single 64-bit words under a sequence number.
 *
 * There is one writer. It makes the number odd, writes, and makes it even. A reader copies, and uses its copy only if the number
 * was even and the same before and after. Readers never wait: they try again, and give up after SEQUENCE_LOCK_TRIES (a write
 * takes about 1 us; a writer that is killed within one leaves an odd number).
 *
 * Each word has acquire and release order instead of fences: on x86 these are the same instructions, and ThreadSanitizer
 * understands them. Inline, because a reader of fleet time has no time for a call. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SEQUENCE_LOCK_TRIES 4096

/* `size`: of *from, a multiple of 8. */
static inline void sequence_lock_write(uint64_t *sequence, uint64_t *words, const void *from,
                                       size_t size)
{
    const uint64_t before = __atomic_load_n(sequence, __ATOMIC_RELAXED);

    __atomic_store_n(sequence, before | 1, __ATOMIC_RELAXED);
    for (size_t k = 0; k < size / 8; k++) {
        uint64_t word;
        memcpy(&word, (const char *)from + 8 * k, 8);
        __atomic_store_n(&words[k], word, __ATOMIC_RELEASE);
    }
    __atomic_store_n(sequence, (before | 1) + 1, __ATOMIC_RELEASE);
}

/* false: no consistent copy within the tries; *ret then has any bytes. */
static inline bool sequence_lock_read(const uint64_t *sequence, const uint64_t *words, void *ret,
                                      size_t size)
{
    for (int i = 0; i < SEQUENCE_LOCK_TRIES; i++) {
        const uint64_t before = __atomic_load_n(sequence, __ATOMIC_ACQUIRE);
        if (before & 1) {
            continue;
        }
        for (size_t k = 0; k < size / 8; k++) {
            const uint64_t word = __atomic_load_n(&words[k], __ATOMIC_ACQUIRE);
            memcpy((char *)ret + 8 * k, &word, 8);
        }
        if (__atomic_load_n(sequence, __ATOMIC_RELAXED) == before) {
            return true;
        }
    }
    return false;
}

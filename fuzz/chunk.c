/* chunk.c: a stretch of history as it lies on a disk that may be damaged. */
#include "platform/store/chunk.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chunk *chunk = NULL;
    const uint32_t local = 4;

    for (int all = 0; all < 2; all++) {
        if (chunk_decode(data, size, all ? NULL : &local, &chunk) < 0) {
            continue;
        }
        const struct chunk_head *head = chunk_head(chunk);
        ASSERT(head->slot_count > 0 && head->slot_count <= CHUNK_SLOT_MAX && head->step_ns > 0);
        uint64_t sum = 0;
        for (size_t i = 0; i < chunk_series_count(chunk); i++) {
            const struct chunk_series *s = chunk_series_get(chunk, i);
            ASSERT(all || s->key.local == local);
            for (uint32_t k = 0; k < head->slot_count; k++) {
                sum += (uint64_t)s->values[k];
            }
        }
        __asm__ volatile("" : : "r"(sum)); /* every value was read */
        chunk_free(chunk);
    }
    return 0;
}

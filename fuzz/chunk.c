/* chunk.c: a stretch of history, from a disk that may be damaged. */
#include "platform/store/chunk.h"

#include <string.h>

#include "fuzz.h"

/* A series read alone is the same series. */
static void read_alone(const uint8_t *data, size_t size, const struct chunk *chunk)
{
    static struct message_buffer scratch;
    for (size_t i = 0; i < chunk_series_count(chunk) && i < 8; i++) {
        const struct chunk_series *s = chunk_series_get(chunk, i);
        int64_t values[CHUNK_SLOT_MAX];
        struct chunk_head head;
        bool first = true; /* the same key twice, or a section twice: the first counts */
        for (size_t k = 0; k < i; k++) {
            first = first && chunk_key_compare(&chunk_series_get(chunk, k)->key, &s->key) != 0;
        }
        if (first && chunk_column(data, size, &s->key, &scratch, &head, values) == 0) {
            ASSERT(memcmp(values, s->values, head.slot_count * sizeof(values[0])) == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chunk *chunk = NULL;
    const uint32_t local = 4;
    const struct chunk_key key = {METRIC_OWD_P50, local, 9, 7640};
    struct message_buffer scratch = {0};
    struct chunk_head found;
    int64_t values[CHUNK_SLOT_MAX];

    if (chunk_column(data, size, &key, &scratch, &found, values) == 0) {
        ASSERT(found.slot_count > 0 && found.slot_count <= CHUNK_SLOT_MAX && found.step_ns > 0);
    }
    message_buffer_done(&scratch);

    for (int all = 0; all < 2; all++) {
        if (chunk_decode(data, size, all ? NULL : &local, &chunk) < 0) {
            continue;
        }
        const struct chunk_head *head = chunk_head(chunk);
        ASSERT(head->slot_count > 0 && head->slot_count <= CHUNK_SLOT_MAX && head->step_ns > 0);
        uint64_t sum = 0;
        read_alone(data, size, chunk);
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

/* record.c: a recording of any bytes, opened and played into a node. Strangers send such files to support. Its head is made to
 * fit this build. Otherwise all other bytes would never be read. */
#include "service/record/record.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void ignore(void *context, struct mono now, const struct node_action *action)
{
    (void)context;
    (void)now;
    (void)action;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t magic = RECORD_MAGIC, layout = codec_layout();
    const uint32_t version = RECORD_VERSION;
    struct record *record = NULL;
    struct node *node = NULL;
    struct record_outcome outcome;

    if (size < 32 || size > 65536) {
        return 0;
    }
    uint8_t *bytes = malloc(size);
    ASSERT(bytes != NULL);
    memcpy(bytes, data, size);
    memcpy(bytes, &magic, 8);
    memcpy(bytes + 8, &version, 4);
    memcpy(bytes + 16, &layout, 8);
    if (record_open_memory(&record, bytes, size) == 0) {
        if (record_play(record, false, ignore, NULL, &node, &outcome) == 0) {
            node_free(node);
        }
        record_close(record);
    }
    free(bytes);
    return 0;
}

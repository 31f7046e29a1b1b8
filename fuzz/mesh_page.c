/* mesh_page.c: a mesh page of any bytes and any size. */
#include "wire/mesh_page.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mesh_page_header header;
    struct mesh_page_entry entry;

    if (size > 65536) {
        return 0;
    }
    struct mesh_page_memory *memory = aligned_alloc(64, (size + 64) / 64 * 64);
    ASSERT(memory != NULL);
    memcpy(memory, data, size);
    for (size_t i = 0; i + 8 <= size; i += 64) {
        ((uint8_t *)memory)[i] &= 0xfe; /* torn entries are only slow */
    }
    if (mesh_page_read_header(memory, size, &header)) {
        ASSERT(header.count <= header.capacity && mesh_page_size(header.capacity) <= size);
    }
    for (uint32_t i = 0; i < size / 64 + 2; i++) {
        if (mesh_page_read(memory, size, i, &entry)) {
            ASSERT(entry.state <= MESH_PAGE_LOSSY && entry.direction <= MESH_PAGE_IN);
        }
    }
    (void)mesh_page_find(memory, size, (struct nic_id){1}, (struct nic_id){2}, 7640, MESH_PAGE_IN);
    free(memory);
    return 0;
}

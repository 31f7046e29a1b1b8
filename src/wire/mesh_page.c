/* mesh_page.c: verdicts in shared memory, one sequence lock per cache line. */
#include "wire/mesh_page.h"

#include <string.h>

#include "base/prng.h"
#include "wire/sequence_lock.h"

uint32_t mesh_page_addresses(const uint8_t local[static 16], const uint8_t peer[static 16])
{
    uint64_t words[4];

    memcpy(words, local, 16);
    memcpy(words + 2, peer, 16);
    const uint64_t hash = hash_u64(hash_u64(hash_u64(words[0], words[1]), words[2]), words[3]);
    return (uint32_t)hash != 0 ? (uint32_t)hash : 1;
}

void mesh_page_init(struct mesh_page_memory *memory, uint32_t capacity, uint64_t nonce)
{
    struct mesh_page_header header = {.capacity = capacity};

    ASSERT(capacity <= MESH_PAGE_ENTRY_MAX);
    memset(memory, 0, mesh_page_size(capacity));
    memory->sequence = nonce & ~1ULL;
    for (uint32_t i = 0; i < capacity; i++) {
        memory->entries[i].sequence = nonce & ~1ULL;
    }
    memcpy(memory->header, &header, sizeof(header));
    mesh_page_write_header(memory, &header);
}

void mesh_page_write_header(struct mesh_page_memory *memory, const struct mesh_page_header *header)
{
    struct mesh_page_header copy = *header, before;

    memcpy(&before, memory->header, sizeof(before)); /* only the agent writes */
    copy.magic = MESH_PAGE_MAGIC;
    copy.version = MESH_PAGE_VERSION;
    copy.capacity = before.capacity;
    ASSERT(copy.count <= copy.capacity);
    sequence_lock_write(&memory->sequence, memory->header, &copy, sizeof(copy));
}

bool mesh_page_write(struct mesh_page_memory *memory, uint32_t index,
                     const struct mesh_page_entry *entry)
{
    struct mesh_page_header header;
    struct mesh_page_entry before;

    memcpy(&header, memory->header, sizeof(header));
    ASSERT(index < header.capacity);
    memcpy(&before, memory->entries[index].words, sizeof(before));
    if (memcmp(&before, entry, sizeof(before)) == 0) {
        return false;
    }
    sequence_lock_write(&memory->entries[index].sequence, memory->entries[index].words, entry,
                        sizeof(*entry));
    return before.state != entry->state || before.generation != entry->generation;
}

bool mesh_page_read_header(const struct mesh_page_memory *memory, size_t size,
                           struct mesh_page_header *ret)
{
    struct mesh_page_header header;

    if (size < sizeof(*memory) ||
        !sequence_lock_read(&memory->sequence, memory->header, &header, sizeof(header)) ||
        header.magic != MESH_PAGE_MAGIC || header.version != MESH_PAGE_VERSION ||
        header.capacity > MESH_PAGE_ENTRY_MAX || mesh_page_size(header.capacity) > size ||
        header.count > header.capacity) {
        return false;
    }
    *ret = header;
    return true;
}

bool mesh_page_read(const struct mesh_page_memory *memory, size_t size, uint32_t index,
                    struct mesh_page_entry *ret)
{
    struct mesh_page_entry entry;

    if (index >= MESH_PAGE_ENTRY_MAX || mesh_page_size(index + 1) > size ||
        !sequence_lock_read(&memory->entries[index].sequence, memory->entries[index].words, &entry,
                            sizeof(entry)) ||
        entry.state > MESH_PAGE_LOSSY || entry.direction > MESH_PAGE_IN ||
        entry.local.index >= FLEET_NIC_MAX || entry.peer.index >= FLEET_NIC_MAX) {
        return false;
    }
    *ret = entry;
    return true;
}

uint32_t mesh_page_find(const struct mesh_page_memory *memory, size_t size, struct nic_id local,
                        struct nic_id peer, uint16_t source_port,
                        enum mesh_page_direction direction)
{
    struct mesh_page_header header;

    if (!mesh_page_read_header(memory, size, &header)) {
        return UINT32_MAX;
    }
    for (uint32_t i = 0; i < header.count; i++) {
        struct mesh_page_entry entry;
        if (mesh_page_read(memory, size, i, &entry) && entry.state != MESH_PAGE_NONE &&
            nic_id_equal(entry.local, local) && nic_id_equal(entry.peer, peer) &&
            entry.source_port == source_port && entry.direction == direction) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* member.c: checks of a NIC in the fleet's list. */
#include "core/fleet/member.h"

#include "base/prng.h"

#include <stdio.h>
#include <string.h>

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@+:"

bool member_address4_good(const uint8_t address[static 4])
{
    static const uint8_t none[4];
    return memcmp(address, none, sizeof(none)) != 0 && address[0] < 224; /* multicast and above */
}

bool member_address6_good(const uint8_t address[static 16])
{
    static const uint8_t none[16], mapped[12] = {[10] = 0xff, [11] = 0xff};
    const bool link_local = address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
    return memcmp(address, none, sizeof(none)) != 0 && address[0] != 0xff && !link_local &&
           memcmp(address, mapped, sizeof(mapped)) != 0;
}

static bool name_good(const char *name, size_t size)
{
    const size_t length = strlen(name);
    return length > 0 && length < size && strspn(name, NAME_CHARACTERS) == length;
}

/* Makes foreign text printable: at most 40 characters. */
static void printable(const char *text, char ret[static 41])
{
    size_t i = 0;
    for (; i < 40 && text[i] != 0; i++) {
        ret[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    }
    ret[i] = 0;
}

bool member_nic_good(const struct member_nic *nic, char words[static MEMBER_WORDS_SIZE])
{
    char found[41];
    if (!name_good(nic->interface, MEMBER_INTERFACE_SIZE)) {
        printable(nic->interface, found);
        snprintf(words, MEMBER_WORDS_SIZE,
                 "expected an interface of 1 to %d of [A-Za-z0-9._-@+:], found '%s'",
                 MEMBER_INTERFACE_SIZE - 1, found);
    } else if (nic->leaf[0] != 0 && !name_good(nic->leaf, MEMBER_LEAF_SIZE)) {
        printable(nic->leaf, found);
        snprintf(words, MEMBER_WORDS_SIZE,
                 "NIC %s: expected a leaf of 1 to %d of [A-Za-z0-9._-@+:], found '%s'",
                 nic->interface, MEMBER_LEAF_SIZE - 1, found);
    } else if (nic->rail >= UINT16_MAX) {
        snprintf(words, MEMBER_WORDS_SIZE, "NIC %s: expected a rail below %d, found %u",
                 nic->interface, UINT16_MAX, nic->rail);
    } else if (nic->address4 == NULL && nic->address6 == NULL) {
        snprintf(words, MEMBER_WORDS_SIZE, "NIC %s: expected an address, found none",
                 nic->interface);
    } else if (nic->address4 != NULL && !member_address4_good(nic->address4)) {
        snprintf(words, MEMBER_WORDS_SIZE,
                 "NIC %s: expected an IPv4 address of one NIC, found %u.%u.%u.%u", nic->interface,
                 nic->address4[0], nic->address4[1], nic->address4[2], nic->address4[3]);
    } else if (nic->address6 != NULL && !member_address6_good(nic->address6)) {
        snprintf(words, MEMBER_WORDS_SIZE,
                 "NIC %s: expected an IPv6 address of one NIC, neither multicast nor link-local, "
                 "found one that begins with %02x%02x",
                 nic->interface, nic->address6[0], nic->address6[1]);
    } else {
        words[0] = 0;
        return true;
    }
    return false;
}

static uint64_t text_digest(uint64_t h, const char *text)
{
    const size_t size = strlen(text);
    return hash_u64(hash_bytes(h, text, size), size);
}

uint64_t member_host_digest(uint32_t number, const char *name, const uint8_t *key)
{
    uint64_t h = text_digest(hash_u64(1, number), name);
    h = hash_u64(h, key != NULL);
    return key != NULL ? hash_u64(hash_bytes(h, key, MEMBER_KEY_SIZE), 1) : h;
}

uint64_t member_nic_digest(uint32_t number, uint32_t id, const struct member_nic *nic)
{
    uint64_t h = hash_u64(hash_u64(2, number), (uint64_t)id << 32 | nic->rail);
    h = text_digest(text_digest(h, nic->interface), nic->leaf);
    if (nic->address4 != NULL) {
        h = hash_u64(hash_bytes(h, nic->address4, 4), 4);
    }
    return nic->address6 != NULL ? hash_u64(hash_bytes(h, nic->address6, 16), 6) : h;
}

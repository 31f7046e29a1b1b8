/* member.h: what a NIC in the fleet's list of members may be: its interface, its leaf, its addresses.
 *
 * One rule for all who meet it: the host that joins, the controller that lets it in, the agents that take the list. What
 * one of them lets pass the others do too: a list that agents refuse whole stops the fleet from growing. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define MEMBER_LEAF_SIZE      64 /* with the 0 */
#define MEMBER_INTERFACE_SIZE 16
#define MEMBER_WORDS_SIZE     160

struct member_nic {
    const char *interface, *leaf;       /* leaf "": not known */
    const uint8_t *address4, *address6; /* 4 and 16 bytes; NULL: none. One of them is there */
    uint32_t rail;
};

/* An address of one NIC, in network order: not 0, no multicast, no broadcast. */
bool member_address4_good(const uint8_t address[static 4]);
/* Neither ::, nor multicast, nor link-local, nor IPv4 in IPv6's clothes. */
bool member_address6_good(const uint8_t address[static 16]);
/* false: ret_words has what was expected and what was found, in printable characters. */
bool member_nic_good(const struct member_nic *nic, char ret_words[static MEMBER_WORDS_SIZE]);

#define MEMBER_KEY_SIZE 32 /* of the public half that a host's probes are proven with */

/* What a list of members comes to: the sum of these over its hosts that have NICs and over all NICs, so that one who keeps
 * it changes it by what changed. Two lists with the same digest are taken for alike; it keeps nobody out. number: the
 * host's; key NULL: it has none. */
uint64_t member_host_digest(uint32_t number, const char *name, const uint8_t *key);
uint64_t member_nic_digest(uint32_t number, uint32_t id, const struct member_nic *nic);

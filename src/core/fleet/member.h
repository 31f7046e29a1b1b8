/* member.h: the rules for a NIC in the fleet's list of members: its interface, its leaf, its addresses.
 *
 * One rule for all: the joining host, the controller that accepts it, the agents that get the list. What one of them accepts, the
 * others accept, too: a list that agents refuse as a whole would stop the fleet from growing. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define MEMBER_LEAF_SIZE      64 /* with the terminating 0 */
#define MEMBER_INTERFACE_SIZE 16
#define MEMBER_WORDS_SIZE     160

struct member_nic {
    const char *interface, *leaf;       /* leaf "": not known */
    const uint8_t *address4, *address6; /* 4 and 16 bytes; NULL: none. At least one must be given */
    uint32_t rail;
};

/* An address of one NIC, in network order: not 0, no multicast, no broadcast. */
bool member_address4_good(const uint8_t address[static 4]);
/* Not ::, no multicast, not link-local, no IPv4-mapped or -compatible address. */
bool member_address6_good(const uint8_t address[static 16]);
/* false: ret_words has the expected and the found value, in printable characters. */
bool member_nic_good(const struct member_nic *nic, char ret_words[static MEMBER_WORDS_SIZE]);

#define MEMBER_KEY_SIZE 32 /* of the public key with which a host's probes are verified */

/* The digest of a list of members: the sum of these over its hosts with NICs and over all NICs, so it can be updated by the
 * changes. Lists with the same digest count as equal; it is no protection against forgery. number: the host's; key NULL: it has
 * none. */
uint64_t member_host_digest(uint32_t number, const char *name, const uint8_t *key);
uint64_t member_nic_digest(uint32_t number, uint32_t id, const struct member_nic *nic);

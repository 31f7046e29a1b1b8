/* id.h: numbers of things as structs, so that two kinds are never confused. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* A NIC's number in the fleet's peers list: explicit there, stable, below FLEET_NIC_MAX. */
struct nic_id {
    uint32_t index;
};
/* A host's number: the order of first appearance in the peers list. */
struct host_id {
    uint32_t index;
};

#define NIC_NONE  ((struct nic_id){UINT32_MAX})
#define HOST_NONE ((struct host_id){UINT32_MAX})

static inline bool nic_id_equal(struct nic_id a, struct nic_id b)
{
    return a.index == b.index;
}
static inline bool host_id_equal(struct host_id a, struct host_id b)
{
    return a.index == b.index;
}

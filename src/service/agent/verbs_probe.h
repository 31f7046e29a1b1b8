/* verbs_probe.h: probes between queue pairs, as verbs_ports.c and the rest of the agent see them. */
#pragma once
#include "core/mesh/port_probe.h"
#include "platform/rdma/verbs.h"
#include "service/agent/answers.h"

/* The port as it is now: beside which NIC of ours (UINT32_MAX: none), its device, and the GID that is the NIC's address
 * (InfiniBand: the first); NULL: it can't be used. */
struct job_class agent_ud_class(const struct agent *a); /* in which jobs' packets are probed */
void agent_ud_follow(struct agent *a, uint32_t local, struct rdma_device *device,
                     const struct rdma_port_name *name, const struct rdma_gid *gid);
/* Before the device is closed. */
void agent_ud_close_device(struct agent *a, const struct rdma_device *device);
/* The device told of this completion queue. */
void agent_ud_ready(struct agent *a, uint64_t tag);
/* False: the class of jobs isn't slower than the reference. */
bool agent_ud_slow(const struct agent *a, uint32_t local, const struct rdma_port_name *name,
                   struct port_slow *ret_slow);

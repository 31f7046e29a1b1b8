/* verbs_probe.h: probes between queue pairs: the interface for verbs_ports.c and the rest of the agent. */
#pragma once
#include "core/mesh/port_probe.h"
#include "platform/rdma/verbs.h"
#include "service/agent/answers.h"

/* the class of jobs' packets that is probed */
struct job_class agent_ud_class(const struct agent *a);
/* Gives the port's present state. local: this host's NIC beside the port; UINT32_MAX: none. gid: the GID that is the NIC's
 * address (InfiniBand: the first). device or gid NULL: the port can't be used. */
void agent_ud_follow(struct agent *a, uint32_t local, struct rdma_device *device,
                     const struct rdma_port_name *name, const struct rdma_gid *gid);
/* Called before the device is closed. */
void agent_ud_close_device(struct agent *a, const struct rdma_device *device);
/* The device has completions in this queue. */
void agent_ud_ready(struct agent *a, uint64_t tag);
/* False: the class of jobs isn't slower than the reference. */
bool agent_ud_slow(const struct agent *a, uint32_t local, const struct rdma_port_name *name,
                   struct port_slow *ret_slow);

/* facts.h: the list of facts: id, section, how it is kept, form, name, description. Names stay for ever, because sheets are kept.
 * The word behind `of` in a description names the subject. If you add a fact, decide whether its change is an event: KEPT, OWN or
 * NOW (fact.h); a counter is NOW. */
#pragma once

#define AUDIT_FACTS(F)                                                                             \
    F(OS_KERNEL, OS, KEPT, WORD, "os.kernel", "release of the running kernel")                     \
    F(OS_KERNEL_NEWEST, OS, KEPT, WORD, "os.kernel_newest", "newest kernel in /boot")              \
    F(OS_CMDLINE, OS, KEPT, TEXT, "os.cmdline", "kernel command line: what decides about speed")   \
    F(OS_UPTIME, OS, NOW, NUMBER, "os.uptime", "seconds since boot")                               \
    F(OS_BOOT_ID, OS, NOW, WORD, "os.boot_id", "this boot")                                        \
    F(OS_MACHINE_ID, OS, OWN, WORD, "os.machine_id", "this installation")                          \
    F(OS_PRODUCT, OS, KEPT, TEXT, "os.product", "product name of the machine")                     \
    F(OS_BIOS, OS, KEPT, TEXT, "os.bios", "BIOS version")                                          \
    F(OS_BOARD, OS, KEPT, TEXT, "os.board", "name and version of the mainboard")                   \
    F(OS_VIRTUAL, OS, KEPT, NUMBER, "os.virtual", "1: a virtual machine")                          \
    F(OS_MODULE, OS, KEPT, WORD, "os.module", "loaded network or GPU driver of this name")         \
    F(OS_MODULE_BUILD, OS, KEPT, WORD, "os.module_build",                                          \
      "version and source checksum of a driver")                                                   \
    F(OS_RDMA_CORE, OS, KEPT, WORD, "os.rdma_core", "file name of libibverbs")                     \
    F(OS_SERVICE, OS, KEPT, WORD, "os.service", "running system service of this name")             \
    F(OS_NUMA_BALANCING, OS, KEPT, NUMBER, "os.numa_balancing", "automatic NUMA balancing")        \
    F(OS_RMEM_MAX, OS, KEPT, NUMBER, "os.rmem_max", "largest receive buffer of a socket, bytes")   \
    F(OS_WMEM_MAX, OS, KEPT, NUMBER, "os.wmem_max", "largest send buffer of a socket, bytes")      \
    F(OS_LOG, OS, NOW, NUMBER, "os.log", "lines of the kernel log that are there")                 \
    F(OS_LOG_LOST, OS, NOW, NUMBER, "os.log_lost", "1: the kernel log has lost its beginning")     \
    F(OS_LOG_LOCKUP, OS, NOW, NUMBER, "os.log_lockup",                                             \
      "soft lockups, hung tasks, stalls in the log")                                               \
    F(OS_LOG_MCE, OS, NOW, NUMBER, "os.log_mce", "machine checks in the log")                      \
    F(OS_LOG_NIC, OS, NOW, NUMBER, "os.log_nic",                                                   \
      "NIC health, firmware and command errors in the log")                                        \
    F(OS_LOG_POWER, OS, NOW, NUMBER, "os.log_power", "lines about too little PCIe power")          \
    F(OS_LOG_XID, OS, NOW, TEXT, "os.log_xid", "Xid codes of NVIDIA's driver in the log")          \
    F(OS_ZOMBIES, OS, NOW, NUMBER, "os.zombies", "processes that ended and were not collected")    \
    F(OS_BLOCKED, OS, NOW, NUMBER, "os.blocked",                                                   \
      "processes that wait in the kernel, twice in a row")                                         \
    F(OS_RETRANS, OS, NOW, NUMBER, "os.retrans", "TCP segments sent again since boot")             \
    F(OS_SEGMENTS, OS, NOW, NUMBER, "os.segments", "TCP segments sent since boot")                 \
    F(HISTORY, OS, NOW, TEXT, "history",                                                           \
      "incidents of the last 30 days that a host was the cause of")                                \
    F(CPU_GOVERNOR, CPU, KEPT, TEXT, "cpu.governor", "frequency governors of all processors")      \
    F(CPU_SMT, CPU, KEPT, WORD, "cpu.smt", "simultaneous multithreading")                          \
    F(CPU_CSTATE_US, CPU, KEPT, NUMBER, "cpu.cstate_us",                                           \
      "longest wake-up of an enabled idle state, us")                                              \
    F(CPU_PACKAGES, CPU, KEPT, NUMBER, "cpu.packages", "processor sockets")                        \
    F(MEM_TOTAL, MEMORY, KEPT, NUMBER, "mem.total", "memory, kB")                                  \
    F(MEM_AVAILABLE, MEMORY, NOW, NUMBER, "mem.available", "memory that can be had now, kB")       \
    F(MEM_SWAPS, MEMORY, KEPT, NUMBER, "mem.swaps", "swap areas in use")                           \
    F(MEM_SHM, MEMORY, KEPT, NUMBER, "mem.shm", "size of /dev/shm, kB")                            \
    F(MEM_CONTROLLER, MEMORY, KEPT, WORD, "mem.controller", "memory controller that EDAC shows")   \
    F(MEM_CE, MEMORY, NOW, NUMBER, "mem.ce", "corrected errors of a memory controller")            \
    F(MEM_UE, MEMORY, NOW, NUMBER, "mem.ue", "uncorrected errors of a memory controller")          \
    F(MEM_NODE, MEMORY, KEPT, WORD, "mem.node", "NUMA node")                                       \
    F(MEM_NODE_TOTAL, MEMORY, KEPT, NUMBER, "mem.node_total", "memory of a NUMA node, kB")         \
    F(MEM_BLOCKS, MEMORY, NOW, NUMBER, "mem.blocks",                                               \
      "free blocks of 2 MiB and more of a NUMA node")                                              \
    F(PCI, PCIE, KEPT, WORD, "pci", "NIC, GPU or disk on PCI")                                     \
    F(PCI_BRIDGE, PCIE, KEPT, WORD, "pci.bridge", "PCI bridge above a NIC, GPU or disk")           \
    F(PCI_KIND, PCIE, KEPT, WORD, "pci.kind", "nic, gpu or disk")                                  \
    F(PCI_MODEL, PCIE, KEPT, WORD, "pci.model", "vendor and device number")                        \
    F(PCI_INVENTORY, PCIE, KEPT, TEXT, "pci.inventory", "NICs, GPUs and disks on PCI, by model")   \
    F(PCI_WIDTH, PCIE, KEPT, NUMBER, "pci.width", "lanes in use")                                  \
    F(PCI_WIDTH_MAX, PCIE, KEPT, NUMBER, "pci.width_max", "lanes that this end has")               \
    F(PCI_SPEED, PCIE, KEPT, TRANSFER, "pci.speed", "speed of a lane in use")                      \
    F(PCI_SPEED_MAX, PCIE, KEPT, TRANSFER, "pci.speed_max", "speed of a lane that this end has")   \
    F(PCI_NUMA, PCIE, KEPT, NUMBER, "pci.numa", "NUMA node of a PCI device")                       \
    F(PCI_SLOT, PCIE, KEPT, TEXT, "pci.slot", "slot of a PCI device, as the board names it")       \
    F(PCI_ABOVE, PCIE, KEPT, WORD, "pci.above", "bridge or root that a PCI device hangs on")       \
    F(PCI_TREE, PCIE, KEPT, TEXT, "pci.tree", "the way from the root to each NIC and GPU")         \
    F(PCI_MPS, PCIE, KEPT, NUMBER, "pci.mps", "largest payload of a packet, bytes")                \
    F(PCI_MRRS, PCIE, KEPT, NUMBER, "pci.mrrs", "largest read request, bytes")                     \
    F(PCI_RELAXED, PCIE, KEPT, NUMBER, "pci.relaxed", "1: relaxed ordering is on")                 \
    F(PCI_ACS, PCIE, KEPT, NUMBER, "pci.acs",                                                      \
      "redirecting bits of access control services of a bridge")                                   \
    F(PCI_AER_FATAL, PCIE, NOW, NUMBER, "pci.aer_fatal", "fatal PCIe errors since boot")           \
    F(PCI_AER_NONFATAL, PCIE, NOW, NUMBER, "pci.aer_nonfatal", "other uncorrected PCIe errors")    \
    F(PCI_AER_CORRECTED, PCIE, NOW, NUMBER, "pci.aer_corrected",                                   \
      "corrected PCIe errors since boot")                                                          \
    F(PCI_IOMMU, PCIE, KEPT, WORD, "pci.iommu", "how the IOMMU treats a device")                   \
    F(GPU, GPU, KEPT, WORD, "gpu", "GPU that a driver has taken")                                  \
    F(GPU_DRIVER, GPU, KEPT, WORD, "gpu.driver", "version of the GPU driver")                      \
    F(GPU_MODEL, GPU, KEPT, TEXT, "gpu.model", "model of a GPU")                                   \
    F(GPU_VBIOS, GPU, KEPT, WORD, "gpu.vbios", "video BIOS of a GPU")                              \
    F(GPU_UE, GPU, NOW, NUMBER, "gpu.ue", "uncorrected memory errors of a GPU")                    \
    F(GPU_DIRECT, GPU, KEPT, TEXT, "gpu.direct", "how NICs reach GPU memory")                      \
    F(GPU_USERS, GPU, NOW, NUMBER, "gpu.users", "processes that have a GPU open")                  \
    F(GPU_LIBRARY, GPU, KEPT, WORD, "gpu.library", "GPU that NVIDIA's library shows")              \
    F(GPU_RUNTIME, GPU, KEPT, WORD, "gpu.runtime", "newest CUDA that the driver takes, or ROCm")   \
    F(GPU_ECC, GPU, KEPT, NUMBER, "gpu.ecc", "1: error correction of a GPU's memory is on")        \
    F(GPU_REMAP_PENDING, GPU, KEPT, NUMBER, "gpu.remap_pending",                                   \
      "1: rows of a GPU's memory wait to be remapped")                                             \
    F(GPU_REMAP_FAILED, GPU, KEPT, NUMBER, "gpu.remap_failed",                                     \
      "1: a row of a GPU's memory could not be remapped")                                          \
    F(GPU_NVLINKS, GPU, KEPT, NUMBER, "gpu.nvlinks", "NVLinks of a GPU that are up")               \
    F(GPU_POWER, GPU, KEPT, NUMBER, "gpu.power", "power limit in force of a GPU, mW")              \
    F(GPU_CLOCK, GPU, KEPT, NUMBER, "gpu.clock", "highest clock of a GPU, MHz")                    \
    F(GPU_THROTTLE, GPU, NOW, HEX, "gpu.throttle",                                                 \
      "why a GPU's clock is lowered: bits of the library")                                         \
    F(GPU_PERSISTENCE, GPU, KEPT, NUMBER, "gpu.persistence",                                       \
      "1: a GPU stays initialised without a user")                                                 \
    F(GPU_MIG, GPU, KEPT, NUMBER, "gpu.mig", "1: a GPU is divided (MIG)")                          \
    F(GPU_COMPUTE, GPU, KEPT, NUMBER, "gpu.compute", "compute mode of a GPU")                      \
    F(GPU_REPLAYS, GPU, NOW, NUMBER, "gpu.replays", "PCIe packets of a GPU that were sent again")  \
    F(GPU_FABRIC, GPU, KEPT, NUMBER, "gpu.fabric",                                                 \
      "3: a GPU is registered with the fabric manager")                                            \
    F(NET, NIC, KEPT, WORD, "net", "network interface of a device, or a bond")                     \
    F(NET_STATE, NIC, KEPT, WORD, "net.state", "operational state of an interface")                \
    F(NET_CARRIER, NIC, KEPT, NUMBER, "net.carrier", "carrier of an interface")                    \
    F(NET_SPEED, NIC, KEPT, NUMBER, "net.speed", "speed of an interface, Mbit/s")                  \
    F(NET_MTU, NIC, KEPT, NUMBER, "net.mtu", "MTU of an interface, bytes")                         \
    F(NET_DOWNS, NIC, NOW, NUMBER, "net.downs", "times that an interface lost its carrier")        \
    F(NET_PCI, NIC, KEPT, WORD, "net.pci", "PCI address of an interface")                          \
    F(NET_PHC, NIC, KEPT, WORD, "net.phc", "clock of a NIC")                                       \
    F(NET_IRQS, NIC, NOW, NUMBER, "net.irqs", "interrupts of a NIC")                               \
    F(NET_IRQS_FAR, NIC, NOW, NUMBER, "net.irqs_far", "of them on another NUMA node than the NIC") \
    F(NET_ROUTE, NIC, KEPT, WORD, "net.route", "interface of the default route")                   \
    F(NET_SHARED, NIC, KEPT, TEXT, "net.shared", "interfaces that share a subnet with this one")   \
    F(NET_ARP_IGNORE, NIC, KEPT, NUMBER, "net.arp_ignore", "arp_ignore in force on an interface")  \
    F(NET_ARP_ANNOUNCE, NIC, KEPT, NUMBER, "net.arp_announce",                                     \
      "arp_announce in force on an interface")                                                     \
    F(NET_RP_FILTER, NIC, KEPT, NUMBER, "net.rp_filter", "rp_filter in force on an interface")     \
    F(NET_NEIGHBOUR, NIC, NOW, WORD, "net.neighbour", "state of an IPv4 neighbour")                \
    F(NET_ADDRESS, NIC, OWN, WORD, "net.address", "IPv4 address of an interface")                  \
    F(NET_NAMESERVER, NIC, KEPT, WORD, "net.nameserver", "name servers that are set")              \
    F(NET_FEC, NIC, KEPT, WORD, "net.fec", "error correction of a link that is in force")          \
    F(NET_FEC_CORRECTED, NIC, NOW, NUMBER, "net.fec_corrected",                                    \
      "bits that a link's error correction mended")                                                \
    F(NET_FEC_LOST, NIC, NOW, NUMBER, "net.fec_lost",                                              \
      "blocks that a link's error correction could not mend")                                      \
    F(NET_RX_BYTES, NIC, NOW, NUMBER, "net.rx_bytes", "bytes that an interface received")          \
    F(NET_PAUSE, NIC, KEPT, TEXT, "net.pause", "global pause of an interface")                     \
    F(NET_RINGS, NIC, KEPT, TEXT, "net.rings", "rings, channels and coalescing of an interface")   \
    F(NET_MODULE, NIC, KEPT, TEXT, "net.module",                                                   \
      "maker, part and revision of a cable or transceiver")                                        \
    F(NET_MODULE_ALARM, NIC, NOW, TEXT, "net.module_alarm", "alarms that a transceiver has set")   \
    F(NET_MODULE_RX, NIC, NOW, NUMBER, "net.module_rx",                                            \
      "light that a transceiver receives on its darkest lane, 0.1 uW")                             \
    F(NET_PFC, NIC, KEPT, TEXT, "net.pfc", "priorities with priority flow control")                \
    F(NET_TRUST, NIC, KEPT, TEXT, "net.trust",                                                     \
      "what decides about a packet's priority, and the map")                                       \
    F(NET_ETS, NIC, KEPT, TEXT, "net.ets", "traffic classes and their shares")                     \
    F(NET_SWITCH, NIC, KEPT, TEXT, "net.switch",                                                   \
      "switch at the other end of an interface's cable")                                           \
    F(FE_PEER, NIC, NOW, TEXT, "fe.peer", "connection to another host over the front end")         \
    F(FE_PATH, NIC, NOW, TEXT, "fe.path",                                                          \
      "packets of full size to another host over the front end")                                   \
    F(EDGE, NIC, NOW, TEXT, "edge",                                                                \
      "paths between an interface and a neighbour's, as the agent measures them")                  \
    F(EDGE_FULL, NIC, NOW, TEXT, "edge.full",                                                      \
      "packets of full size to a neighbour: how many were lost")                                   \
    F(MATRIX_PATH, NIC, NOW, TEXT, "matrix.path",                                                  \
      "packets of some source ports between two interfaces")                                       \
    F(MATRIX_LATE, NIC, NOW, TEXT, "matrix.late",                                                  \
      "delays between two interfaces, or two leaves, that are later than theirs to others")        \
    F(MATRIX, NIC, NOW, TEXT, "matrix", "what came of every NIC with every NIC at one interface")  \
    F(LANE, JOB, NOW, NUMBER, "lane",                                                              \
      "median delay of a job's messages from a neighbour's interface, ns")                         \
    F(LANE_ADDRESS, JOB, NOW, TEXT, "lane.address",                                                \
      "addresses whose GIDs a job's queue pairs use, at an interface")                             \
    F(BOND, NIC, KEPT, WORD, "bond", "bond")                                                       \
    F(BOND_MODE, NIC, KEPT, TEXT, "bond.mode", "mode of a bond")                                   \
    F(BOND_DOWN, NIC, KEPT, TEXT, "bond.down", "members of a bond that are down")                  \
    F(RDMA, RDMA, KEPT, WORD, "rdma", "RDMA device")                                               \
    F(RDMA_FIRMWARE, RDMA, KEPT, WORD, "rdma.firmware", "firmware of an RDMA device")              \
    F(RDMA_BOARD, RDMA, KEPT, WORD, "rdma.board", "board of an RDMA device")                       \
    F(RDMA_HCA, RDMA, KEPT, WORD, "rdma.hca", "type of an RDMA device")                            \
    F(RDMA_GUID, RDMA, OWN, WORD, "rdma.guid", "node GUID of an RDMA device")                      \
    F(RDMA_PCI, RDMA, KEPT, WORD, "rdma.pci", "PCI address of an RDMA device")                     \
    F(RDMA_VERBS, RDMA, KEPT, NUMBER, "rdma.verbs", "1: it has a device file for verbs")           \
    F(RDMA_MAD, RDMA, KEPT, NUMBER, "rdma.mad", "1: it has a device file for management")          \
    F(PORT, RDMA, KEPT, WORD, "port", "port of an RDMA device")                                    \
    F(PORT_STATE, RDMA, KEPT, STATE, "port.state", "logical state of a port")                      \
    F(PORT_PHYSICAL, RDMA, KEPT, STATE, "port.physical", "physical state of a port")               \
    F(PORT_RATE, RDMA, KEPT, RATE, "port.rate", "rate and lanes of a port")                        \
    F(PORT_LAYER, RDMA, KEPT, WORD, "port.layer", "Ethernet or InfiniBand")                        \
    F(PORT_LID, RDMA, OWN, HEX, "port.lid", "local identifier of a port")                          \
    F(PORT_SM, RDMA, KEPT, HEX, "port.sm", "local identifier of the subnet manager")               \
    F(PORT_PKEYS, RDMA, KEPT, TEXT, "port.pkeys", "partition keys of a port")                      \
    F(PORT_GIDS, RDMA, KEPT, TEXT, "port.gids", "GID table of a port: index, type, family")        \
    F(PORT_GID, RDMA, KEPT, TEXT, "port.gid", "GID that a job uses: index, type, family")          \
    F(PORT_ADDRESSES, RDMA, OWN, TEXT, "port.addresses",                                           \
      "addresses of a port's RoCE v2 GIDs, by index")                                              \
    F(PORT_NET, RDMA, KEPT, WORD, "port.net", "interface beside a port")                           \
    F(PORT_SYMBOLS, RDMA, NOW, NUMBER, "port.symbols", "symbol errors of a port")                  \
    F(PORT_DOWNS, RDMA, NOW, NUMBER, "port.downs", "times that a port went down")                  \
    F(PORT_DISCARDS, RDMA, NOW, NUMBER, "port.discards", "packets that a port could not send")     \
    F(IB_ROUTES, RDMA, NOW, TEXT, "ib.routes",                                                     \
      "routes of an InfiniBand subnet, in the files of its subnet manager")                        \
    F(IB_LIDS, RDMA, NOW, TEXT, "ib.lids", "LIDs of the ports in these files")                     \
    F(IB_ROUTE, RDMA, NOW, TEXT, "ib.route", "routes that a port of the subnet lacks")             \
    F(PORT_ECN, RDMA, KEPT, TEXT, "port.ecn", "priorities with ECN: marked packets, reaction")     \
    F(PORT_CNP, RDMA, KEPT, TEXT, "port.cnp", "DSCP and priority of congestion notifications")     \
    F(PORT_TOS, RDMA, KEPT, NUMBER, "port.tos", "traffic class of rdma_cm's connections")          \
    F(DISK, STORAGE, KEPT, WORD, "disk", "mounted file system on a device of this host")           \
    F(DISK_USED, STORAGE, NOW, NUMBER, "disk.used", "how full a file system is, per cent")         \
    F(NVME_STATE, STORAGE, KEPT, WORD, "nvme.state", "state of an NVMe disk")                      \
    F(MOUNT, STORAGE, KEPT, TEXT, "mount", "file system of a mount, by its place")                 \
    F(MOUNT_ANSWERS, STORAGE, KEPT, NUMBER, "mount.answers", "1: a mount answers")                 \
    F(SENSOR, OS, KEPT, WORD, "sensor", "temperature sensor")                                      \
    F(SENSOR_C, OS, NOW, NUMBER, "sensor.reading", "temperature, thousandths of a degree")         \
    F(SENSOR_LIMIT, OS, KEPT, NUMBER, "sensor.limit", "critical temperature of a sensor")          \
    F(SENSOR_STATE, OS, NOW, WORD, "sensor.state",                                                 \
      "what the baseboard controller tells of a sensor")                                           \
    F(AGENT, TIME, NOW, WORD, "agent", "this host's agent: running or silent")                     \
    F(AGENT_VERSION, TIME, KEPT, WORD, "agent.version", "version of the agent")                    \
    F(CLOCK_STATUS, TIME, NOW, WORD, "clock.status", "status of the agent's clock")                \
    F(CLOCK_STAMPS, TIME, KEPT, WORD, "clock.stamps", "who stamps the agent's packets")            \
    F(CLOCK_BOUND, TIME, NOW, NUMBER, "clock.bound", "bound of fleet time's error, ns")            \
    F(CLOCK_UTC, TIME, NOW, WORD, "clock.utc", "system clock less fleet time, us")                 \
    F(CLOCK_RATE, TIME, NOW, WORD, "clock.rate",                                                   \
      "fleet time's rate less that of the host's oscillator, ppb")                                 \
    F(TIME_SOURCE, TIME, KEPT, WORD, "time.source", "clock source of the kernel")                  \
    F(TIME_STEERS, TIME, KEPT, TEXT, "time.steers",                                                \
      "running programs that steer the system clock")                                              \
    F(JOB_SETTING, JOB, KEPT, TEXT, "job.setting",                                                 \
      "variable of NCCL for all jobs: /etc/nccl.conf")                                             \
    F(JOB_LAUNCHER, JOB, NOW, WORD, "job.launcher", "running program that starts jobs")            \
    F(JOB_MEMLOCK, JOB, NOW, WORD, "job.memlock", "memory that its jobs may pin")                  \
    F(JOB_SOCKETS, JOB, KEPT, TEXT, "job.sockets", "interfaces that NCCL_SOCKET_IFNAME means")     \
    F(JOB_GID, JOB, NOW, TEXT, "job.gid",                                                          \
      "GID indices that processes with a port open were told to use")                              \
    F(JOB_NCCL, JOB, KEPT, WORD, "job.nccl", "file name of libnccl")                               \
    F(JOB_PLUGIN, JOB, KEPT, TEXT, "job.plugin", "network plugin that is set for all jobs")        \
    F(TEST, JOB, KEPT, WORD, "test", "file of a test's result")                                    \
    F(TEST_RATE, JOB, NOW, NUMBER, "test.rate", "what a test measured, in thousandths")            \
    F(TEST_RUNS, JOB, NOW, NUMBER, "test.runs", "runs of a test that are kept")                    \
    F(TEST_RANKS, JOB, NOW, NUMBER, "test.ranks", "how many took part in a test")                  \
    F(TEST_SPREAD, JOB, NOW, NUMBER, "test.spread",                                                \
      "standard deviation over mean of its runs, 1/10000")                                         \
    F(TEST_WRONG, JOB, NOW, NUMBER, "test.wrong", "wrong values of a test")                        \
    F(TEST_NETWORK, JOB, KEPT, WORD, "test.network", "network that NCCL used in a test")           \
    F(TEST_INIT, JOB, NOW, NUMBER, "test.init", "time to a communicator in a test, ms")            \
    F(TEST_DCGM, JOB, NOW, TEXT, "test.dcgm", "results of dcgmi diag")                             \
    F(PERF, JOB, NOW, TEXT, "perf", "what came of this audit's tests of this host")                \
    F(PERF_NIC, JOB, NOW, TEXT, "perf.nic", "what an interface carried beside others")             \
    F(PERF_LATE, JOB, NOW, TEXT, "perf.late", "how often a host came last to a collective")        \
    F(PERF_INCAST, JOB, NOW, TEXT, "perf.incast",                                                  \
      "packets of many hosts to one, and those marked")                                            \
    F(PERF_WAITED, JOB, NOW, TEXT, "perf.waited",                                                  \
      "spread of runs that remains without waiting for processors")                                \
    F(PERF_PATH, JOB, NOW, TEXT, "perf.path", "a slow trunk that a host's packets go over")        \
    F(PERF_SEARCH, JOB, NOW, TEXT, "perf.search", "whether a host makes the collectives slow")     \
    F(SITE, JOB, KEPT, WORD, "site", "program of the site in checks.d")                            \
    F(SITE_STATUS, JOB, NOW, NUMBER, "site.status", "its exit status")                             \
    F(SITE_OUTPUT, JOB, NOW, TEXT, "site.output", "the first line that it printed")

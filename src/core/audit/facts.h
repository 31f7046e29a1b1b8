/* facts.h: the list of facts: id, section, form, name, what it is. Names stay for ever: sheets are kept. The word behind
 * `of` in a description names the subject. */
#pragma once

#define AUDIT_FACTS(F)                                                                             \
    F(OS_KERNEL, OS, WORD, "os.kernel", "release of the running kernel")                           \
    F(OS_KERNEL_NEWEST, OS, WORD, "os.kernel_newest", "newest kernel in /boot")                    \
    F(OS_CMDLINE, OS, TEXT, "os.cmdline", "kernel command line: what decides about speed")         \
    F(OS_UPTIME, OS, NUMBER, "os.uptime", "seconds since boot")                                    \
    F(OS_BOOT_ID, OS, WORD, "os.boot_id", "this boot")                                             \
    F(OS_MACHINE_ID, OS, WORD, "os.machine_id", "this installation")                               \
    F(OS_PRODUCT, OS, TEXT, "os.product", "product name of the machine")                           \
    F(OS_BIOS, OS, TEXT, "os.bios", "BIOS version")                                                \
    F(OS_BOARD, OS, TEXT, "os.board", "name and version of the mainboard")                         \
    F(OS_VIRTUAL, OS, NUMBER, "os.virtual", "1: a virtual machine")                                \
    F(OS_MODULE, OS, WORD, "os.module", "loaded network or GPU driver of this name")               \
    F(OS_MODULE_BUILD, OS, WORD, "os.module_build", "version and source checksum of a driver")     \
    F(OS_RDMA_CORE, OS, WORD, "os.rdma_core", "file name of libibverbs")                           \
    F(OS_SERVICE, OS, WORD, "os.service", "running system service of this name")                   \
    F(OS_NUMA_BALANCING, OS, NUMBER, "os.numa_balancing", "automatic NUMA balancing")              \
    F(OS_RMEM_MAX, OS, NUMBER, "os.rmem_max", "largest receive buffer of a socket, bytes")         \
    F(OS_WMEM_MAX, OS, NUMBER, "os.wmem_max", "largest send buffer of a socket, bytes")            \
    F(OS_LOG, OS, NUMBER, "os.log", "lines of the kernel log that are there")                      \
    F(OS_LOG_LOST, OS, NUMBER, "os.log_lost", "1: the kernel log has lost its beginning")          \
    F(OS_LOG_LOCKUP, OS, NUMBER, "os.log_lockup", "soft lockups, hung tasks, stalls in the log")   \
    F(OS_LOG_MCE, OS, NUMBER, "os.log_mce", "machine checks in the log")                           \
    F(OS_LOG_NIC, OS, NUMBER, "os.log_nic", "NIC health, firmware and command errors in the log")  \
    F(OS_LOG_POWER, OS, NUMBER, "os.log_power", "lines about too little PCIe power")               \
    F(OS_LOG_XID, OS, TEXT, "os.log_xid", "Xid codes of NVIDIA's driver in the log")               \
    F(OS_ZOMBIES, OS, NUMBER, "os.zombies", "processes that ended and were not collected")         \
    F(OS_BLOCKED, OS, NUMBER, "os.blocked", "processes that wait in the kernel, twice in a row")   \
    F(OS_RETRANS, OS, NUMBER, "os.retrans", "TCP segments sent again since boot")                  \
    F(OS_SEGMENTS, OS, NUMBER, "os.segments", "TCP segments sent since boot")                      \
    F(CPU_GOVERNOR, CPU, TEXT, "cpu.governor", "frequency governors of all processors")            \
    F(CPU_SMT, CPU, WORD, "cpu.smt", "simultaneous multithreading")                                \
    F(CPU_CSTATE_US, CPU, NUMBER, "cpu.cstate_us", "longest wake-up of an enabled idle state, us") \
    F(CPU_PACKAGES, CPU, NUMBER, "cpu.packages", "processor sockets")                              \
    F(MEM_TOTAL, MEMORY, NUMBER, "mem.total", "memory, kB")                                        \
    F(MEM_AVAILABLE, MEMORY, NUMBER, "mem.available", "memory that can be had now, kB")            \
    F(MEM_SWAPS, MEMORY, NUMBER, "mem.swaps", "swap areas in use")                                 \
    F(MEM_SHM, MEMORY, NUMBER, "mem.shm", "size of /dev/shm, kB")                                  \
    F(MEM_CONTROLLER, MEMORY, WORD, "mem.controller", "memory controller that EDAC shows")         \
    F(MEM_CE, MEMORY, NUMBER, "mem.ce", "corrected errors of a memory controller")                 \
    F(MEM_UE, MEMORY, NUMBER, "mem.ue", "uncorrected errors of a memory controller")               \
    F(MEM_NODE, MEMORY, WORD, "mem.node", "NUMA node")                                             \
    F(MEM_NODE_TOTAL, MEMORY, NUMBER, "mem.node_total", "memory of a NUMA node, kB")               \
    F(MEM_BLOCKS, MEMORY, NUMBER, "mem.blocks", "free blocks of 2 MiB and more of a NUMA node")    \
    F(PCI, PCIE, WORD, "pci", "NIC, GPU or disk on PCI")                                           \
    F(PCI_BRIDGE, PCIE, WORD, "pci.bridge", "PCI bridge above a NIC, GPU or disk")                 \
    F(PCI_KIND, PCIE, WORD, "pci.kind", "nic, gpu or disk")                                        \
    F(PCI_MODEL, PCIE, WORD, "pci.model", "vendor and device number")                              \
    F(PCI_INVENTORY, PCIE, TEXT, "pci.inventory", "NICs, GPUs and disks on PCI, by model")         \
    F(PCI_WIDTH, PCIE, NUMBER, "pci.width", "lanes in use")                                        \
    F(PCI_WIDTH_MAX, PCIE, NUMBER, "pci.width_max", "lanes that this end has")                     \
    F(PCI_SPEED, PCIE, TRANSFER, "pci.speed", "speed of a lane in use")                            \
    F(PCI_SPEED_MAX, PCIE, TRANSFER, "pci.speed_max", "speed of a lane that this end has")         \
    F(PCI_NUMA, PCIE, NUMBER, "pci.numa", "NUMA node of a PCI device")                             \
    F(PCI_ABOVE, PCIE, WORD, "pci.above", "bridge or root that a PCI device hangs on")             \
    F(PCI_TREE, PCIE, TEXT, "pci.tree", "the way from the root to each NIC and GPU")               \
    F(PCI_MPS, PCIE, NUMBER, "pci.mps", "largest payload of a packet, bytes")                      \
    F(PCI_MRRS, PCIE, NUMBER, "pci.mrrs", "largest read request, bytes")                           \
    F(PCI_RELAXED, PCIE, NUMBER, "pci.relaxed", "1: relaxed ordering is on")                       \
    F(PCI_ACS, PCIE, NUMBER, "pci.acs", "redirecting bits of access control services of a bridge") \
    F(PCI_AER_FATAL, PCIE, NUMBER, "pci.aer_fatal", "fatal PCIe errors since boot")                \
    F(PCI_AER_NONFATAL, PCIE, NUMBER, "pci.aer_nonfatal", "other uncorrected PCIe errors")         \
    F(PCI_AER_CORRECTED, PCIE, NUMBER, "pci.aer_corrected", "corrected PCIe errors since boot")    \
    F(PCI_IOMMU, PCIE, WORD, "pci.iommu", "how the IOMMU treats a device")                         \
    F(GPU, GPU, WORD, "gpu", "GPU that a driver has taken")                                        \
    F(GPU_DRIVER, GPU, WORD, "gpu.driver", "version of the GPU driver")                            \
    F(GPU_MODEL, GPU, TEXT, "gpu.model", "model of a GPU")                                         \
    F(GPU_VBIOS, GPU, WORD, "gpu.vbios", "video BIOS of a GPU")                                    \
    F(GPU_UE, GPU, NUMBER, "gpu.ue", "uncorrected memory errors of a GPU")                         \
    F(GPU_DIRECT, GPU, TEXT, "gpu.direct", "how NICs reach GPU memory")                            \
    F(GPU_USERS, GPU, NUMBER, "gpu.users", "processes that have a GPU open")                       \
    F(GPU_LIBRARY, GPU, WORD, "gpu.library", "GPU that NVIDIA's library shows")                    \
    F(GPU_RUNTIME, GPU, WORD, "gpu.runtime", "newest CUDA that the driver takes, or ROCm")         \
    F(GPU_ECC, GPU, NUMBER, "gpu.ecc", "1: error correction of a GPU's memory is on")              \
    F(GPU_REMAP_PENDING, GPU, NUMBER, "gpu.remap_pending",                                         \
      "1: rows of a GPU's memory wait to be remapped")                                             \
    F(GPU_REMAP_FAILED, GPU, NUMBER, "gpu.remap_failed",                                           \
      "1: a row of a GPU's memory could not be remapped")                                          \
    F(GPU_NVLINKS, GPU, NUMBER, "gpu.nvlinks", "NVLinks of a GPU that are up")                     \
    F(GPU_POWER, GPU, NUMBER, "gpu.power", "power limit in force of a GPU, mW")                    \
    F(GPU_CLOCK, GPU, NUMBER, "gpu.clock", "highest clock of a GPU, MHz")                          \
    F(GPU_THROTTLE, GPU, HEX, "gpu.throttle", "why a GPU's clock is lowered: bits of the library") \
    F(GPU_PERSISTENCE, GPU, NUMBER, "gpu.persistence",                                             \
      "1: a GPU stays initialised without a user")                                                 \
    F(GPU_MIG, GPU, NUMBER, "gpu.mig", "1: a GPU is divided (MIG)")                                \
    F(GPU_COMPUTE, GPU, NUMBER, "gpu.compute", "compute mode of a GPU")                            \
    F(GPU_REPLAYS, GPU, NUMBER, "gpu.replays", "PCIe packets of a GPU that were sent again")       \
    F(GPU_FABRIC, GPU, NUMBER, "gpu.fabric", "3: a GPU is registered with the fabric manager")     \
    F(NET, NIC, WORD, "net", "network interface of a device, or a bond")                           \
    F(NET_STATE, NIC, WORD, "net.state", "operational state of an interface")                      \
    F(NET_CARRIER, NIC, NUMBER, "net.carrier", "carrier of an interface")                          \
    F(NET_SPEED, NIC, NUMBER, "net.speed", "speed of an interface, Mbit/s")                        \
    F(NET_MTU, NIC, NUMBER, "net.mtu", "MTU of an interface, bytes")                               \
    F(NET_DOWNS, NIC, NUMBER, "net.downs", "times that an interface lost its carrier")             \
    F(NET_PCI, NIC, WORD, "net.pci", "PCI address of an interface")                                \
    F(NET_PHC, NIC, WORD, "net.phc", "clock of a NIC")                                             \
    F(NET_IRQS, NIC, NUMBER, "net.irqs", "interrupts of a NIC")                                    \
    F(NET_IRQS_FAR, NIC, NUMBER, "net.irqs_far", "of them on another NUMA node than the NIC")      \
    F(NET_ROUTE, NIC, WORD, "net.route", "interface of the default route")                         \
    F(NET_SHARED, NIC, TEXT, "net.shared", "interfaces that share a subnet with this one")         \
    F(NET_ARP_IGNORE, NIC, NUMBER, "net.arp_ignore", "arp_ignore in force on an interface")        \
    F(NET_ARP_ANNOUNCE, NIC, NUMBER, "net.arp_announce", "arp_announce in force on an interface")  \
    F(NET_RP_FILTER, NIC, NUMBER, "net.rp_filter", "rp_filter in force on an interface")           \
    F(NET_NEIGHBOUR, NIC, WORD, "net.neighbour", "state of an IPv4 neighbour")                     \
    F(NET_ADDRESS, NIC, WORD, "net.address", "IPv4 address of an interface")                       \
    F(NET_NAMESERVER, NIC, WORD, "net.nameserver", "name servers that are set")                    \
    F(NET_FEC, NIC, WORD, "net.fec", "error correction of a link that is in force")                \
    F(NET_FEC_CORRECTED, NIC, NUMBER, "net.fec_corrected",                                         \
      "bits that a link's error correction mended")                                                \
    F(NET_FEC_LOST, NIC, NUMBER, "net.fec_lost",                                                   \
      "blocks that a link's error correction could not mend")                                      \
    F(NET_RX_BYTES, NIC, NUMBER, "net.rx_bytes", "bytes that an interface received")               \
    F(NET_PAUSE, NIC, TEXT, "net.pause", "global pause of an interface")                           \
    F(NET_RINGS, NIC, TEXT, "net.rings", "rings, channels and coalescing of an interface")         \
    F(NET_MODULE, NIC, TEXT, "net.module", "maker, part and revision of a cable or transceiver")   \
    F(NET_MODULE_ALARM, NIC, TEXT, "net.module_alarm", "alarms that a transceiver has set")        \
    F(NET_MODULE_RX, NIC, NUMBER, "net.module_rx",                                                 \
      "light that a transceiver receives on its darkest lane, 0.1 uW")                             \
    F(NET_PFC, NIC, TEXT, "net.pfc", "priorities with priority flow control")                      \
    F(NET_TRUST, NIC, TEXT, "net.trust", "what decides about a packet's priority, and the map")    \
    F(NET_ETS, NIC, TEXT, "net.ets", "traffic classes and their shares")                           \
    F(NET_SWITCH, NIC, TEXT, "net.switch", "switch at the other end of an interface's cable")      \
    F(EDGE, NIC, TEXT, "edge",                                                                     \
      "paths between an interface and a neighbour's, as the agent measures them")                  \
    F(LANE, JOB, NUMBER, "lane",                                                                   \
      "median delay of a job's messages from a neighbour's interface, ns")                         \
    F(BOND, NIC, WORD, "bond", "bond")                                                             \
    F(BOND_MODE, NIC, TEXT, "bond.mode", "mode of a bond")                                         \
    F(BOND_DOWN, NIC, TEXT, "bond.down", "members of a bond that are down")                        \
    F(RDMA, RDMA, WORD, "rdma", "RDMA device")                                                     \
    F(RDMA_FIRMWARE, RDMA, WORD, "rdma.firmware", "firmware of an RDMA device")                    \
    F(RDMA_BOARD, RDMA, WORD, "rdma.board", "board of an RDMA device")                             \
    F(RDMA_HCA, RDMA, WORD, "rdma.hca", "type of an RDMA device")                                  \
    F(RDMA_GUID, RDMA, WORD, "rdma.guid", "node GUID of an RDMA device")                           \
    F(RDMA_PCI, RDMA, WORD, "rdma.pci", "PCI address of an RDMA device")                           \
    F(RDMA_VERBS, RDMA, NUMBER, "rdma.verbs", "1: it has a device file for verbs")                 \
    F(RDMA_MAD, RDMA, NUMBER, "rdma.mad", "1: it has a device file for management")                \
    F(PORT, RDMA, WORD, "port", "port of an RDMA device")                                          \
    F(PORT_STATE, RDMA, STATE, "port.state", "logical state of a port")                            \
    F(PORT_PHYSICAL, RDMA, STATE, "port.physical", "physical state of a port")                     \
    F(PORT_RATE, RDMA, RATE, "port.rate", "rate and lanes of a port")                              \
    F(PORT_LAYER, RDMA, WORD, "port.layer", "Ethernet or InfiniBand")                              \
    F(PORT_LID, RDMA, HEX, "port.lid", "local identifier of a port")                               \
    F(PORT_SM, RDMA, HEX, "port.sm", "local identifier of the subnet manager")                     \
    F(PORT_PKEYS, RDMA, TEXT, "port.pkeys", "partition keys of a port")                            \
    F(PORT_GIDS, RDMA, TEXT, "port.gids", "GID table of a port: index, type, family")              \
    F(PORT_GID, RDMA, TEXT, "port.gid", "GID that a job uses: index, type, family")                \
    F(PORT_NET, RDMA, WORD, "port.net", "interface beside a port")                                 \
    F(PORT_SYMBOLS, RDMA, NUMBER, "port.symbols", "symbol errors of a port")                       \
    F(PORT_DOWNS, RDMA, NUMBER, "port.downs", "times that a port went down")                       \
    F(PORT_DISCARDS, RDMA, NUMBER, "port.discards", "packets that a port could not send")          \
    F(PORT_ECN, RDMA, TEXT, "port.ecn", "priorities with ECN: marked packets, reaction")           \
    F(PORT_CNP, RDMA, TEXT, "port.cnp", "DSCP and priority of congestion notifications")           \
    F(PORT_TOS, RDMA, NUMBER, "port.tos", "traffic class of rdma_cm's connections")                \
    F(DISK, STORAGE, WORD, "disk", "mounted file system on a device of this host")                 \
    F(DISK_USED, STORAGE, NUMBER, "disk.used", "how full a file system is, per cent")              \
    F(NVME_STATE, STORAGE, WORD, "nvme.state", "state of an NVMe disk")                            \
    F(MOUNT, STORAGE, TEXT, "mount", "file system of a mount, by its place")                       \
    F(MOUNT_ANSWERS, STORAGE, NUMBER, "mount.answers", "1: a mount answers")                       \
    F(SENSOR, OS, WORD, "sensor", "temperature sensor")                                            \
    F(SENSOR_C, OS, NUMBER, "sensor.reading", "temperature, thousandths of a degree")              \
    F(SENSOR_LIMIT, OS, NUMBER, "sensor.limit", "critical temperature of a sensor")                \
    F(AGENT, TIME, WORD, "agent", "this host's agent: running or silent")                          \
    F(AGENT_VERSION, TIME, WORD, "agent.version", "version of the agent")                          \
    F(CLOCK_STATUS, TIME, WORD, "clock.status", "status of the agent's clock")                     \
    F(CLOCK_STAMPS, TIME, WORD, "clock.stamps", "who stamps the agent's packets")                  \
    F(CLOCK_BOUND, TIME, NUMBER, "clock.bound", "bound of fleet time's error, ns")                 \
    F(CLOCK_UTC, TIME, WORD, "clock.utc", "system clock less fleet time, us")                      \
    F(CLOCK_RATE, TIME, WORD, "clock.rate",                                                        \
      "fleet time's rate less that of the host's oscillator, ppb")                                 \
    F(TIME_SOURCE, TIME, WORD, "time.source", "clock source of the kernel")                        \
    F(TIME_STEERS, TIME, TEXT, "time.steers", "running programs that steer the system clock")      \
    F(JOB_SETTING, JOB, TEXT, "job.setting", "variable of NCCL for all jobs: /etc/nccl.conf")      \
    F(JOB_LAUNCHER, JOB, WORD, "job.launcher", "running program that starts jobs")                 \
    F(JOB_MEMLOCK, JOB, WORD, "job.memlock", "memory that its jobs may pin")                       \
    F(JOB_SOCKETS, JOB, TEXT, "job.sockets", "interfaces that NCCL_SOCKET_IFNAME means")           \
    F(JOB_NCCL, JOB, WORD, "job.nccl", "file name of libnccl")                                     \
    F(JOB_PLUGIN, JOB, TEXT, "job.plugin", "network plugin that is set for all jobs")              \
    F(TEST, JOB, WORD, "test", "file of a test's result")                                          \
    F(TEST_RATE, JOB, NUMBER, "test.rate", "what a test measured, in thousandths")                 \
    F(TEST_RUNS, JOB, NUMBER, "test.runs", "runs of a test that are kept")                         \
    F(TEST_SPREAD, JOB, NUMBER, "test.spread",                                                     \
      "standard deviation over mean of its runs, 1/10000")                                         \
    F(TEST_WRONG, JOB, NUMBER, "test.wrong", "wrong values of a test")                             \
    F(TEST_NETWORK, JOB, WORD, "test.network", "network that NCCL used in a test")                 \
    F(TEST_INIT, JOB, NUMBER, "test.init", "time to a communicator in a test, ms")                 \
    F(TEST_DCGM, JOB, TEXT, "test.dcgm", "results of dcgmi diag")                                  \
    F(SITE, JOB, WORD, "site", "program of the site in checks.d")                                  \
    F(SITE_STATUS, JOB, NUMBER, "site.status", "its exit status")                                  \
    F(SITE_OUTPUT, JOB, TEXT, "site.output", "the first line that it printed")

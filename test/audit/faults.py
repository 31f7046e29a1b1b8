"""faults.py: a planted fault for each check: the changes of a machine's tree, and the source.

(check, machine, {path: new text, None: no such file, or a link's target}, source). The source is a file of the tree. Without it
the check must be unknown. "!path": if the absence of the file is a fact of its own (no /etc/nccl.conf is a skip), a folder is put
in its place."""
import json
import re

import machine

NIC = "/sys/devices/pci0000:39/0000:39:01.0/0000:3b:00.0"
GPU = "/sys/devices/pci0000:97/0000:97:03.0/0000:9b:00.0"
PORT = "/sys/class/infiniband/mlx5_1/ports/1"
KMSG = "6,0,0,-;Linux version 6.8.0-60-generic\n6,7,10,-;"
CPU = "/sys/devices/system/cpu/cpu2"
ZOMBIES = {f"/proc/{pid}/stat": f"{pid} (gone) Z 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 400 0 0 0" for pid in range(2000, 2060)}


# Facts that the controller adds to a sheet: one interface in a matrix of all NICs (core/audit/matrix.h). The place is "FACT
# SUBJECT".
MATRIX = "fact:matrix eth1"
WELL = ("cells 88, unmeasured 0, dead_out 0, dead_in 0, partners 0, sent_out 220, lost_out 0, sent_in 220, lost_in 0, late_cells 0, marked 22, remarked_out 0, "
        "remarked_in 0, elsewhere 0, within 0, across 0, out 30, in -20, limit 1000, bound 200, leaf leaf1, declared leaf1, near 2000, far 4600, drift_out 10, drift_in -10")
# The same for tests that the audit made (core/audit/perf.h).
INCAST = "fact:perf.incast eth1"
LATE, SEARCH, WAY = "fact:perf.late", "fact:perf.search", "fact:perf.path"
# The same for facts that only the controller and the agents of a fleet have.
HISTORY = "fact:history"
REACH = {f"fact:fe.{kind} other{k}": text for k in range(4) for kind, text in (("peer", "reached"), ("path", "full 9000 came"))}
PATHS = "fact:matrix.path"
LATER = "fact:matrix.late"
FACTS = {"roce": {MATRIX: WELL, PATHS: "well, 22 pairs", LATER: "well", "fact:perf": "done", LATE: "2 of 320", WAY: "well, 24 paths", INCAST: "marked 812 of 90210, sent 98112, 39.100 Gbit/s for 27 ms, from 4 hosts", SEARCH: "well 361.010 of 382.400 GB/s", HISTORY: "incidents 2, score 1410"} | REACH}


class Link(str):
    """A symbolic link's target."""


def change(root, path, value):
    """Makes the change of a fault at a path of a machine's tree; None removes the file."""
    machine.remove(root, path)
    if value is not None:
        machine.put(root, path, str(value) if isinstance(value, Link) else value if isinstance(value, bytes) else machine.content(value))


# The NIC in another slot.
ELSEWHERE = "/sys/devices/pci0000:39/0000:39:03.0/0000:3b:00.0"
MOVED = {path.replace(NIC, ELSEWHERE): Link(value) if isinstance(value, str) else value
         for path, value in machine.files("roce", 1).items() if path.startswith(NIC)}
MOVED |= {path: Link("../../../" + ELSEWHERE[5:]) for path in (
    "/sys/bus/pci/devices/0000:3b:00.0", "/sys/class/net/eth1/device", "/sys/class/infiniband/mlx5_1/device")}

NVML = machine.files("roce", 1)["/answers/nvml"].decode()
MOUNTS = machine.files("roce", 1)["/proc/mounts"].decode()
AMDSMI = machine.files("amd", 1)["/answers/amdsmi"].decode()


IPMI = ("ipmi:chassis=00/00 log=00 Inlet_Temp=01/01/00 FAN_1=04/01/00 "
        "PSU_1=08/6f/01 PSU_2=08/6f/01 PSU_3=08/6f/00 PSU_Redundancy=08/0b/01")


def nvml(gpu, old, new):
    """NVIDIA's library gives another value for one GPU."""
    return {"/answers/nvml": NVML.replace(f"0000:{gpu}:00.0 {old}\n", f"0000:{gpu}:00.0 {new}\n").encode()}


def answer(name, **changes):
    """The agent's answer has other values: {place: value}. A place's keys and numbers are joined by "__"."""
    tree = json.loads(machine.files("roce", 1)[f"/answers/agent/{name}"])
    for place, value in changes.items():
        *path, last = [int(word) if word.isdigit() else word for word in place.split("__")]
        at = tree
        for word in path:
            at = at[word]
        at[last] = value
    return {f"/answers/agent/{name}": json.dumps(tree).encode() + b"\n"}


def every_path(edge, way, state):
    return {f"edges__{edge}__paths__{i}__{way}__state": state for i in range(4)}


def test(name, old, new):
    """A test has another result."""
    path = f"/var/lib/foliot/tests/{name}"
    return {path: machine.files("roce", 1)[path].decode().replace(old, new).encode()}


def slower(name, rate):
    """All runs of a test have this rate."""
    path = f"/var/lib/foliot/tests/{name}.txt"
    return {path: re.sub(r"(Avg bus bandwidth +: )[0-9.]+", lambda found: f"{found[1]}{rate}", machine.files("roce", 1)[path].decode()).encode()}


# Files of opensm, with an entry removed or changed.
LINKS, TABLES = ("/var/log/sm/opensm-subnet.lst", "/var/log/sm/opensm-lfts.dump")


def table_of(switch, change):
    """The tables of all switches, where this switch's lines become change(lines)."""
    whole = machine.files("subnet", 1)[TABLES].decode()
    parts = re.split(r"(?=^Unicast lids )", whole, flags=re.M)
    return "".join(change(part) if f"('{switch}')" in part.split("\n")[0] else part for part in parts).encode()


def without_route(switch, lid):
    return table_of(switch, lambda part: re.sub(rf"^0x{lid:04x} .*\n", "", part, flags=re.M))


def in_a_circle(leaf, spine, lid):
    """A leaf sends packets to a spine that this spine sends to the leaf."""
    return table_of(leaf, lambda part: re.sub(rf"^0x{lid:04x} \d+", f"0x{lid:04x} 001", part, flags=re.M))


FAULTS = [
    ("cfg.sw.kernel", "roce", {"/proc/sys/kernel/osrelease": "6.8.0-58-generic", "/boot/vmlinuz-6.8.0-60-generic": None},
     "/proc/sys/kernel/osrelease"),
    ("cfg.sw.cmdline", "roce", {"/proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda2 intel_iommu=on processor.max_cstate=1"}, "/proc/cmdline"),
    ("cfg.sw.nic_driver", "roce", {"/sys/module/mlx5_core/srcversion": "0000000000000000000000A"}, "!/sys/module/mlx5_core/srcversion"),
    ("cfg.sw.gpu_driver", "roce", {"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Tue\n"},
     "/proc/driver/nvidia/version"),
    ("cfg.sw.gpu_driver", "amd", {"/sys/module/amdgpu/version": "6.7.0"}, "/sys/module/amdgpu/version"),
    ("cfg.sw.gpu_runtime", "roce", {"/answers/nvml": NVML.replace("runtime 12.4", "runtime 12.1").encode()}, "/answers/nvml"),
    ("cfg.sw.gpu_runtime", "amd", {"/opt/rocm/.info/version": "5.7.1-12"}, "!/opt/rocm/.info/version"),
    ("cfg.sw.fabric_manager", "roce", nvml("3d", "fabric 3", "fabric 2"), "/answers/nvml"),
    ("cfg.pcie.replay", "roce", nvml("3d", "replays 3", "replays 90000"), "/answers/nvml"),
    ("cfg.gpu.ecc", "roce", nvml("3d", "ecc 1", "ecc 0"), "/answers/nvml"),
    ("cfg.gpu.ecc", "roce", nvml("3d", "uncorrected 0", "uncorrected 2"), "/answers/nvml"),
    ("cfg.gpu.remap", "roce", nvml("3d", "remap_failed 0", "remap_failed 1"), "/answers/nvml"),
    ("cfg.gpu.remap", "roce", nvml("3d", "remap_pending 0", "remap_pending 1"), "/answers/nvml"),
    ("cfg.gpu.nvlink", "roce", nvml("3d", "nvlinks 18", "nvlinks 17"), "/answers/nvml"),
    ("cfg.gpu.power", "roce", nvml("3d", "power 700000", "power 500000"), "/answers/nvml"),
    ("cfg.gpu.throttle", "roce", nvml("3d", "throttle 0x0", "throttle 0x48"), "/answers/nvml"),
    ("cfg.gpu.mode", "roce", nvml("3d", "mig 0", "mig 1"), "/answers/nvml"),
    ("cfg.gpu.power", "amd", {"/answers/amdsmi": AMDSMI.replace("3d:00.0 power 750000", "3d:00.0 power 550000").encode()}, "!/answers/amdsmi"),
    ("cfg.pcie.replay", "amd", {"/answers/amdsmi": AMDSMI.replace("3d:00.0 replays 2", "3d:00.0 replays 90000").encode()}, "!/answers/amdsmi"),
    ("cfg.fw.optics", "roce", {"/answers/eth1/module-0-128": "module:1=OTHER           ;20=OSFP-400G-DR4   ;36=01"}, "/answers/eth1/module-0-128"),
    ("cfg.nic.rings", "roce", {"/answers/eth1/rings": "nl:6=u32:1024 9=u32:1024"}, "/answers/eth1/rings"),
    ("cfg.nic.rings", "roce", {"/answers/eth1/channels": "nl:9=u32:8"}, "/answers/eth1/channels"),
    ("cfg.nic.rings", "roce", {"/answers/eth1/coalesce": "nl:2=u32:50 6=u32:50 11=u8:0 12=u8:0"}, "/answers/eth1/coalesce"),
    ("be.link.fec", "roce", {"/answers/eth1/fec": "nl:3=u8:1 4=u32:49"}, "/answers/eth1/fec"),
    ("be.link.ber", "roce", {"/answers/eth1/fec": "nl:4=u32:50 5={2=u64:9000000 3=u64:40 4=u64:150000}"}, "/answers/eth1/fec"),
    ("be.link.ber", "roce", {"/answers/eth1/fec": "nl:4=u32:50 5={3=u64:0 4=u64:15000000000}"}, "/sys/class/net/eth1/statistics/rx_bytes"),
    ("be.link.optics", "roce", {"/answers/eth1/module-17-128": "module:22=x02;58=x0010272027302740"}, "/answers/eth1/module-17-128"),
    ("be.link.optics", "roce", {"/answers/eth1/module-17-128": "module:58=x27102720273009c42710272027302740"}, "/answers/eth1/module-17-128"),
    ("be.link.pause", "roce", {"/answers/eth1/pause": "nl:2=u8:0 3=u8:1 4=u8:1"}, "/answers/eth1/pause"),
    ("be.roce.pfc", "roce", {"/answers/eth1/dcb": "dcb:pfc=4 classes=0,1,2,3,4,5,6,7 shares=0,0,0,50,0,50,0,0"}, "/answers/eth1/dcb"),
    ("be.roce.trust", "roce", {"/answers/eth1/dcb": "dcb:pfc=3 classes=0,1,2,3,4,5,6,7 shares=0,0,0,50,0,50,0,0 dscp=40-47"}, "/answers/eth1/dcb"),
    ("be.roce.ets", "roce", {"/answers/eth1/dcb": "dcb:pfc=3 classes=0,1,2,3,4,5,6,7 shares=0,0,0,10,0,90,0,0"}, "/answers/eth1/dcb"),
    ("cfg.sw.nccl", "roce", {"/usr/lib/x86_64-linux-gnu/libnccl.so.2": Link("libnccl.so.2.19.3"), "/usr/lib/x86_64-linux-gnu/libnccl.so.2.19.3": "x"}, "!/usr/lib/x86_64-linux-gnu"),
    ("cfg.sw.plugin", "roce", {"/usr/lib/x86_64-linux-gnu/libnccl-net-foliot.so": None}, "!/etc/nccl.conf"),
    ("cfg.time.utc", "roce", answer("status", system_utc_ns=1790000037000310000), "/answers/agent/status"),
    ("cfg.time.bound", "roce", answer("status", clock__hard_ns=4000), "/answers/agent/status"),
    ("cfg.time.freq", "roce", answer("clock", members__0__rate_ppb=71000), "/answers/agent/clock"),
    ("cfg.time.freq", "roce", answer("clock", members__0__rate_ppb=19000), "/answers/agent/clock"),
    ("node.agent", "roce", {"/answers/agent/status": "silent"}, "/answers/agent/status"),
    ("node.agent", "roce", answer("status", agent_version="0.0.9"), "/answers/agent/status"),
    ("be.topo.rail", "roce", answer("links", nics__1__switch="leaf3"), "/answers/agent/links"),
    ("be.topo.swap", "roce", answer("links", nics__1__switch="leaf3", nics__3__switch="leaf1"), "/answers/agent/links"),
    ("be.topo.path_count", "roce", answer("mesh", edges__1__paths=[{"hops": ["leaf0"], "out": {"state": "alive", "owd_ns_min": 4080, "owd_ns_p99": 6100, "sent": 400000, "lost": 0}, "in": {"state": "alive", "owd_ns_min": 4100, "owd_ns_p99": 6200, "sent": 400000, "lost": 0}}]), "/answers/agent/mesh"),
    ("be.conn.matrix", "roce", answer("mesh", **every_path(1, "in", "dead")), "/answers/agent/mesh"),
    ("be.conn.matrix", "roce", answer("mesh", edges__1__kind="full", edges__1__same_rail=True, **every_path(1, "in", "dead")), "/answers/agent/mesh"),
    ("be.conn.matrix", "roce", answer("mesh", **{f"edges__1__paths__{i}__out": {"state": "dead", "sent": 900, "lost": 0} if i < 2 else None for i in range(4)}), "/answers/agent/mesh"),
    ("be.conn.cross", "roce", answer("mesh", edges__2__kind="random", edges__2__peer_name="eth2", **every_path(4, "out", "dead")), "/answers/agent/mesh"),
    ("be.conn.paths", "roce", answer("mesh", edges__1__paths__2__out__state="dead"), "/answers/agent/mesh"),
    ("be.conn.mtu", "roce", answer("mesh", edges__1__full_lost=4), "/answers/agent/mesh"),
    ("be.conn.loss", "roce", answer("mesh", edges__1__paths__2__out__lost=900), "/answers/agent/mesh"),
    ("be.lat.base", "roce", answer("mesh", **{f"edges__1__paths__{i}__{way}__owd_ns_{q}": 29000 for i in range(4) for way in ("out", "in") for q in ("min", "p99")}), "/answers/agent/mesh"),
    ("be.lat.asym", "roce", answer("mesh", **{f"edges__1__paths__{i}__out__owd_ns_{q}": 8000 for i in range(4) for q in ("min", "p99")}), "/answers/agent/mesh"),
    ("be.lat.jitter", "roce", answer("mesh", edges__1__paths__2__out__owd_ns_p99=90000), "/answers/agent/mesh"),
    ("be.lat.inband", "roce", answer("lanes", processes__0__lane_list__0__owd_ns_p50=250000), "/answers/agent/lanes"),
    ("be.lat.inband", "roce", answer("lanes", **{f"processes__0__lane_list__{i}__owd_ns_p50": 250000 for i in range(2)}), "/answers/agent/lanes"),
    ("be.matrix.reach", "roce", {MATRIX: WELL.replace("dead_out 0", "dead_out 44")}, MATRIX),
    ("be.matrix.reach", "roce", {MATRIX: WELL.replace("partners 0", "partners 1")}, MATRIX),
    ("be.matrix.loss", "roce", {MATRIX: WELL.replace("lost_in 0", "lost_in 9")}, MATRIX),
    ("be.matrix.loss", "roce", {MATRIX: WELL.replace("late_cells", "shared 40, late_cells")}, MATRIX),
    ("be.matrix.loss", "roce", {MATRIX: WELL.replace("late_cells", "alone 8, late_cells")}, MATRIX),
    ("be.matrix.path", "roce", {PATHS + " eth1 roce4 eth1": "lost 2 of 5 to there, with 2 partners"}, PATHS),
    ("be.matrix.path", "roce", {PATHS + " eth1 roce4 eth1": "lost 2 of 5 to there, with 1 partners"}, PATHS),
    ("be.matrix.late", "roce", {LATER + " leaf1 leaf2": "block 48 of 64 cells, later 5200 ns, of blocks from there 1 of 3, to there 1 of 3"}, LATER),
    ("be.matrix.late", "roce", {LATER + " eth1 roce4 eth1": "later 5200 ns to there, limit 1000"}, LATER),
    ("be.roce.ecn_live", "roce", {INCAST: "marked 0 of 31200000, sent 34100000, 379.100 Gbit/s for 949 ms, from 4 hosts"}, INCAST),
    ("be.roce.dscp_path", "roce", {MATRIX: WELL.replace("remarked_in 0", "remarked_in 11")}, MATRIX),
    ("be.roce.dscp_path", "roce", {MATRIX: WELL.replace("elsewhere 0, within 0", "elsewhere 3, within 3")}, MATRIX),
    ("be.matrix.delay", "roce", {MATRIX: WELL.replace("in -20", "in 25020")}, MATRIX),
    ("be.topo.inferred", "roce", {MATRIX: WELL.replace("leaf leaf1, declared", "leaf leaf3, declared")}, MATRIX),
    ("be.lat.drift", "roce", {MATRIX: WELL.replace("drift_out 10", "drift_out 1210")}, MATRIX),
    ("node.history", "roce", {HISTORY: "incidents 6, score 4120"}, HISTORY),
    ("fe.reach", "roce", {f"fact:fe.peer other{k}": "silent" for k in range(4)}, "fact:fe.peer other2"),
    ("fe.reach", "roce", {"fact:fe.peer other1": "refused: by a filter"}, "fact:fe.peer other2"),
    ("fe.path_mtu", "roce", {f"fact:fe.path other{k}": "full 9000 lost" for k in range(3)}, "fact:fe.path other2"),
    ("fe.path_mtu", "roce", {"fact:fe.path other3": "full 9000 too long for a router"}, "fact:fe.path other2"),
    ("be.topo.spare", "roce", answer("mesh", edges__1__paths__2__hops=["leaf0", "spine1", "leaf7"]), "/answers/agent/mesh"),
    ("be.topo.spare", "roce", answer("mesh", **{f"edges__4__paths__{i}__out__owd_ns_{q}": 31000 for i in range(4) for q in ("min", "p99")}), "/answers/agent/mesh"),
    ("node.mem_bw", "roce", test("values", "mem_bw 402.1", "mem_bw 340.0"), "/var/lib/foliot/tests/values"),
    ("node.storage_bw", "roce", test("values", "storage_bw 9.8", "storage_bw 5.1"), "/var/lib/foliot/tests/values"),
    ("node.gemm", "roce", test("values", "gemm 641.0", "gemm 560.0"), "/var/lib/foliot/tests/values"),
    ("node.h2d", "roce", test("values", "h2d 54.9", "h2d 27.0"), "/var/lib/foliot/tests/values"),
    ("fe.bw", "roce", test("values", "fe_bw 23.4", "fe_bw 9.4"), "/var/lib/foliot/tests/values"),
    ("be.bw.pair", "roce", test("values", "pair_bw 388.2", "pair_bw 198.0"), "/var/lib/foliot/tests/values"),
    ("be.bw.gdr", "roce", test("values", "gdr_bw 387.9", "gdr_bw 190.0"), "/var/lib/foliot/tests/values"),
    ("be.bw.permutation", "roce", test("values", "permutation_bw 361.0", "permutation_bw 180.0"), "/var/lib/foliot/tests/values"),
    ("node.dcgm", "roce", test("dcgm.json", '"gpu_id":"2","status":"Pass"', '"gpu_id":"2","status":"Fail"'), "/var/lib/foliot/tests/dcgm.json"),
    ("node.nccl_intra", "roce", slower("intra", 402.0), "/var/lib/foliot/tests/intra.txt"),
    ("nccl.busbw.q2", "roce", slower("allreduce-q2", 301.0), "/var/lib/foliot/tests/allreduce-q2.txt"),
    ("nccl.busbw.q4", "roce", slower("allreduce-q4", 301.0), "/var/lib/foliot/tests/allreduce-q4.txt"),
    ("nccl.busbw.q1", "roce", slower("allreduce-q1", 331.0), "/var/lib/foliot/tests/allreduce-q1.txt"),
    ("nccl.busbw.q8", "roce", slower("allreduce-q8", 345.5), "/var/lib/foliot/tests/allreduce-q8.txt"),
    ("nccl.busbw.q2h", "roce", slower("allreduce-q2h", 301.0), "/var/lib/foliot/tests/allreduce-q2h.txt"),
    ("nccl.busbw.q4h", "roce", slower("allreduce-q4h", 301.0), "/var/lib/foliot/tests/allreduce-q4h.txt"),
    ("nccl.busbw.q1h", "roce", slower("allreduce-q1h", 301.0), "/var/lib/foliot/tests/allreduce-q1h.txt"),
    ("nccl.busbw.q8h", "roce", slower("allreduce-q8h", 301.0), "/var/lib/foliot/tests/allreduce-q8h.txt"),
    ("nccl.qp_gain", "roce", slower("allreduce-q8", 480.0), "/var/lib/foliot/tests/allreduce-q8.txt"),
    ("nccl.alltoall", "roce", slower("alltoall", 31.0), "/var/lib/foliot/tests/alltoall.txt"),
    ("nccl.repeat", "roce", test("allreduce-q1.txt", "Avg bus bandwidth    : 361.01", "Avg bus bandwidth    : 290.5"), "/var/lib/foliot/tests/allreduce-q1.txt"),
    ("nccl.correct", "roce", test("alltoall.txt", "Out of bounds values : 0 OK", "Out of bounds values : 3 FAILED"), "!/var/lib/foliot/tests/alltoall.txt"),
    ("nccl.transport", "roce", test("intra.txt", "Using network IB", "Using network Socket"), "!/var/lib/foliot/tests/intra.txt"),
    ("nccl.init", "roce", test("intra.txt", "total 2.15", "total 93.4"), "!/var/lib/foliot/tests/intra.txt"),
    ("be.bw.path", "roce", {WAY + " leaf1/spine2": "190.100 of 388.200 Gbit/s"}, WAY),
    ("nccl.straggler", "roce", {LATE: "130 of 320"}, LATE),
    ("nccl.bisect", "roce", {SEARCH: "alone 190.200 of 382.400 GB/s"}, SEARCH),
    ("cfg.sw.rdma_core", "roce", {"/usr/lib/x86_64-linux-gnu/libibverbs.so.1": Link("libibverbs.so.1.13.0"),
                                  "/usr/lib/x86_64-linux-gnu/libibverbs.so.1.13.0": "x"}, "/usr/lib/x86_64-linux-gnu/libibverbs.so.1"),
    ("cfg.sw.nccl_env", "roce", {"/etc/nccl.conf": "NCCL_SOCKET_IFNAME=eno1\nNCCL_IB_DISABLE=1\n"}, "!/etc/nccl.conf"),
    ("cfg.sw.gpu_direct", "roce", {"/sys/module/nvidia_peermem/refcnt": None, "/sys/module/nvidia_peermem": None}, None),
    ("cfg.sw.services", "roce", {"/sys/fs/cgroup/system.slice/slurmd.service": None}, "/sys/fs/cgroup/system.slice"),
    ("cfg.fw.nic", "roce", {"/sys/class/infiniband/mlx5_1/fw_ver": "28.36.1010"}, "/sys/class/infiniband/mlx5_1/fw_ver"),
    ("cfg.fw.psid", "roce", {"/sys/class/infiniband/mlx5_1/board_id": "DEL0000000015"}, "/sys/class/infiniband/mlx5_1/board_id"),
    ("cfg.fw.gpu", "roce", {"/proc/driver/nvidia/gpus/0000:3d:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\nVideo BIOS: \t 96.00.61.00.02\n"},
     "/proc/driver/nvidia/gpus/0000:3d:00.0/information"),
    ("cfg.fw.gpu", "amd", {GPU + "/vbios_version": "113-M3000100-088"}, GPU + "/vbios_version"),
    ("cfg.fw.bios", "roce", {"/sys/class/dmi/id/bios_version": "1.9.0"}, "/sys/class/dmi/id/bios_version"),
    ("cfg.kern.numa_balancing", "roce", {"/proc/sys/kernel/numa_balancing": "1"}, "/proc/sys/kernel/numa_balancing"),
    ("cfg.kern.memlock", "roce", {"/proc/900/limits": "Limit Soft Hard Units\nMax locked memory         65536                65536                bytes\n"},
     "/proc/900/limits"),
    ("cfg.kern.net_buf", "roce", {"/proc/sys/net/core/rmem_max": "212992"}, "/proc/sys/net/core/rmem_max"),
    ("cfg.kern.arp", "roce", {"/proc/sys/net/ipv4/conf/eth1/arp_ignore": "0"}, "/proc/sys/net/ipv4/conf/eth1/arp_ignore"),
    ("cfg.kern.governor", "roce", {CPU + "/cpufreq/scaling_governor": "powersave"}, CPU + "/cpufreq/scaling_governor"),
    ("cfg.kern.cstate", "roce", {CPU + "/cpuidle/state2/disable": "0"}, CPU + "/cpuidle/state2/disable"),
    ("cfg.kern.smt", "roce", {"/sys/devices/system/cpu/smt/control": "on"}, "/sys/devices/system/cpu/smt/control"),
    ("cfg.kern.irq_numa", "roce", {"/proc/irq/101/effective_affinity_list": "3"}, "/sys/devices/system/node/node0/cpulist"),
    ("cfg.kern.log", "roce", {"/dev/kmsg": KMSG + "watchdog: BUG: soft lockup - CPU#3 stuck for 26s!\n"}, "/dev/kmsg"),
    ("cfg.mem.size", "roce", {"/proc/meminfo": "MemTotal:       1023410176 kB\nMemAvailable:   1000000000 kB\n"}, "/proc/meminfo"),
    ("cfg.mem.ecc", "roce", {"/sys/devices/system/edac/mc/mc1/ue_count": "1"}, "/sys/devices/system/edac/mc/mc1/ue_count"),
    ("cfg.mem.numa", "roce", {"/sys/devices/system/node/node1/meminfo": "Node 1 MemTotal:       495197020 kB\n"}, "/sys/devices/system/node/node1/meminfo"),
    ("cfg.mem.swap", "roce", {"/proc/swaps": "Filename\t\tType\tSize\tUsed\tPriority\n/dev/sda3 partition 8388604 0 -2\n"}, "/proc/swaps"),
    ("cfg.mem.shm", "roce", {"/proc/mounts": MOUNTS.replace("size=528213156k", "size=65536k")}, "/proc/mounts"),
    ("cfg.mem.free", "roce", {"/proc/meminfo": "MemTotal:       1056426312 kB\nMemAvailable:   500000000 kB\n"}, "/proc/meminfo"),
    ("cfg.mem.fragment", "roce", {"/proc/buddyinfo": "Node 0, zone   Normal   1000    900    800    700    600    500    400    300    200    100  20000 \n"
                                  "Node 1, zone   Normal   1000    900    800    700    600    500    400    300    200    0  0 \n"}, "/proc/buddyinfo"),
    ("cfg.pcie.width", "roce", {NIC + "/current_link_width": "8"}, NIC + "/current_link_width"),
    ("cfg.pcie.speed", "roce", {NIC + "/current_link_speed": "16.0 GT/s PCIe"}, NIC + "/current_link_speed"),
    ("cfg.pcie.mps", "roce", {NIC + "/config": "pci:15b3:1021 mps=256 mrrs=4096 relaxed=1 acs=0"}, NIC + "/config"),
    ("cfg.pcie.mrrs", "roce", {NIC + "/config": "pci:15b3:1021 mps=512 mrrs=512 relaxed=1 acs=0"}, NIC + "/config"),
    ("cfg.pcie.relaxed", "roce", {NIC + "/config": "pci:15b3:1021 mps=512 mrrs=4096 relaxed=0 acs=0"}, NIC + "/config"),
    ("cfg.pcie.acs", "roce", {"/sys/devices/pci0000:97/0000:97:03.0/config": "pci:8086:352b mps=512 mrrs=512 relaxed=1 acs=1d"},
     "/sys/devices/pci0000:97/0000:97:03.0/config"),
    ("cfg.pcie.iommu", "roce", {"/sys/kernel/iommu_groups/11/type": "DMA-FQ"}, "/sys/kernel/iommu_groups/11/type"),
    ("cfg.pcie.numa", "roce", {NIC + "/numa_node": "-1"}, NIC + "/numa_node"),
    ("cfg.pcie.tree", "roce", MOVED, NIC + "/class"),
    ("cfg.pcie.aer", "roce", {NIC + "/aer_dev_nonfatal": "CmpltTO 2\nTOTAL_ERR_NONFATAL 2\n"}, NIC + "/aer_dev_nonfatal"),
    ("cfg.pcie.inventory", "roce", {GPU + "/device": "0x2331"}, GPU + "/class"),
    ("cfg.gpu.count", "roce", {"/proc/driver/nvidia/gpus/0000:9b:00.0": None}, "!/proc/driver/nvidia/gpus"),
    ("cfg.gpu.model", "roce", {"/proc/driver/nvidia/gpus/0000:9b:00.0/information": "Model: \t\t NVIDIA H100 PCIe\nVideo BIOS: \t 96.00.74.00.01\n"},
     "/proc/driver/nvidia/gpus/0000:9b:00.0/information"),
    ("cfg.gpu.model", "amd", {GPU + "/product_name": "AMD Instinct MI250X"}, GPU + "/product_name"),
    ("cfg.gpu.ecc", "amd", {GPU + "/ras/umc_err_count": "ue: 4\nce: 9\n"}, GPU + "/ras/umc_err_count"),
    ("cfg.gpu.xid", "roce", {"/dev/kmsg": KMSG + "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"}, "/dev/kmsg"),
    ("cfg.gpu.idle", "roce", {"/proc/911/fd/7": Link("/dev/nvidia2"), "/dev/nvidia2": "x"}, "!/proc/911/fd"),
    ("cfg.nic.count", "roce", {"/sys/class/infiniband/mlx5_1": None, "/sys/class/infiniband_verbs/uverbs1": None}, "!/sys/class/infiniband"),
    ("cfg.nic.mode", "roce", {PORT + "/link_layer": "InfiniBand", PORT + "/sm_lid": "0x1", PORT + "/lid": "0x7", "/sys/class/infiniband_mad/umad1/ibdev": "mlx5_1"},
     PORT + "/link_layer"),
    ("cfg.nic.chardev", "roce", {"/sys/class/infiniband_verbs/uverbs1": None}, "!/sys/class/infiniband_verbs"),
    ("cfg.nic.chardev", "infiniband", {"/sys/class/infiniband_mad/umad1": None}, "/sys/class/infiniband_mad/umad1/ibdev"),
    ("cfg.nic.rail_order", "roce", {"/sys/class/infiniband/mlx5_1/device": Link("../../../devices/pci0000:97/0000:97:01.0/0000:99:00.0")},
     "/sys/class/infiniband/mlx5_1/device"),
    ("cfg.nic.guid", "roce", {"/sys/class/infiniband/mlx5_1/node_guid": "b83f:d203:0004:0001"}, "/sys/class/infiniband/mlx5_1/node_guid"),
    ("cfg.nic.bond", "roce", {"/sys/class/net/eno1/bonding_slave/mii_status": "down"}, "/sys/class/net/eno1/bonding_slave/mii_status"),
    ("cfg.time.source", "roce", {"/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"},
     "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("cfg.time.hwstamp", "roce", {NIC + "/ptp": None}, "!" + NIC + "/ptp"),
    ("cfg.time.one_steer", "roce", {"/proc/920/stat": "920 (ntpd) S 1 1 1 0 -1 0 0 0 0 0 5 7 0 0 20 0 1 0 310 0 0 0", "/proc/920/fd/0": "x"}, "/proc/901/stat"),
    ("node.identity", "roce", {"/etc/machine-id": "0123456789abcdef0123456789abcd04"}, "/etc/machine-id"),
    ("node.disk", "roce", {"/sys/class/nvme/nvme0/state": "dead"}, "/sys/class/nvme/nvme0/state"),
    ("node.mounts", "roce", {"/data": None}, "/proc/mounts"),
    ("node.mounts", "roce", {"/proc/mounts": re.sub(".*nfs4.*\n", "", MOUNTS)}, "/proc/mounts"),
    ("node.procs", "roce", ZOMBIES, "/proc/910/stat"),
    ("node.thermal", "roce", {"/sys/class/hwmon/hwmon0/temp1_input": "101000"}, "/sys/class/hwmon/hwmon0/temp1_input"),
    ("node.thermal", "roce", {"/answers/ipmi": IPMI.replace("PSU_2=08/6f/01", "PSU_2=08/6f/09")}, "!/answers/ipmi"),
    ("node.thermal", "roce", {"/answers/ipmi": IPMI.replace("FAN_1=04/01/00", "FAN_1=04/01/06")}, "!/answers/ipmi"),
    ("node.thermal", "roce", {"/answers/ipmi": IPMI.replace("chassis=00/00", "chassis=00/08")}, "!/answers/ipmi"),
    ("node.thermal", "roce", {"/answers/ipmi": IPMI.replace("log=00", "log=80")}, "!/answers/ipmi"),
    ("node.uptime", "roce", {"/boot/vmlinuz-6.8.0-61-generic": "x"}, "/boot"),
    ("fe.link", "roce", {"/sys/class/net/eno1/operstate": "down", "/sys/class/net/eno1/carrier": "0", "/etc/nccl.conf": None}, "/sys/class/net/eno1/operstate"),
    ("fe.route", "roce", {"/proc/net/route": "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n"
                          "eno1\t0000000A\t00000000\t0001\t0\t0\t100\t0000FFFF\n"}, "/proc/net/route"),
    ("fe.loss", "roce", {"/proc/net/snmp": "Tcp: RtoAlgorithm OutSegs RetransSegs\nTcp: 1 5000000 90000\n"}, "/proc/net/snmp"),
    ("fe.bootstrap", "roce", {"/etc/nccl.conf": "NCCL_SOCKET_IFNAME=ens\nNCCL_IB_HCA=mlx5\n"}, "!/etc/nccl.conf"),
    ("be.link.initialized", "roce", {PORT + "/state": "1: DOWN", PORT + "/phys_state": "3: Disabled"}, PORT + "/phys_state"),
    ("be.link.active", "infiniband", {PORT + "/state": "2: INIT"}, PORT + "/state"),
    ("be.link.rate", "roce", {PORT + "/rate": "200 Gb/sec (2X NDR)"}, PORT + "/rate"),
    ("be.link.symbol", "infiniband", {PORT + "/counters/symbol_error": "90000"}, PORT + "/counters/symbol_error"),
    ("be.link.flaps", "roce", {"/sys/class/net/eth1/carrier_down_count": "300"}, "/sys/class/net/eth1/carrier_down_count"),
    ("be.link.drops", "roce", {PORT + "/counters/port_xmit_discards": "17"}, PORT + "/counters/port_xmit_discards"),
    ("be.roce.gid_index", "roce", {PORT + "/gids/2": "0000:0000:0000:0000:0000:0000:0000:0000", PORT + "/gids/3": "0000:0000:0000:0000:0000:0000:0000:0000",
                                   PORT + "/gids/4": "0000:0000:0000:0000:0000:ffff:0a64:0001", PORT + "/gid_attrs/types/4": "RoCE v2"}, PORT + "/gids/3"),
    ("be.roce.gid_index", "roce", {PORT + "/gids/2": "0000:0000:0000:0000:0000:0000:0000:0000", PORT + "/gids/3": "0000:0000:0000:0000:0000:0000:0000:0000"},
     PORT + "/gid_attrs/types/3"),
    ("be.roce.gid_type", "roce", {"/etc/nccl.conf": "NCCL_SOCKET_IFNAME=eno1\nNCCL_IB_GID_INDEX=2\n"}, PORT + "/gids/3"),
    ("be.roce.gid_job", "roce", {"/proc/930/environ": "LANG=C\\0NCCL_IB_GID_INDEX=5\\0"}, "/proc/930/environ"),
    ("be.roce.gid_job", "roce", {"/proc/930/environ": "NCCL_IB_GID_INDEX=2\\0RANK=0\\0"}, PORT.replace("_1", "_2") + "/gids/3"),
    ("be.roce.gid_job", "roce", {"/proc/931/stat": "931 (python3) S 1 931 931 0 -1 0 0 0 0 0 5 7 0 0 20 0 1 0 510 0 0 0", "/proc/931/environ": "NCCL_IB_GID_INDEX=7\\0",
                                 "/proc/931/fd/4": Link("/dev/infiniband/uverbs2")}, "!/sys/class/infiniband_verbs"),
    ("be.roce.gid_job", "roce", answer("lanes", processes__0__lane_list__0__own_address="10.100.0.99"), "/answers/agent/lanes"),
    ("be.roce.mtu", "roce", {"/sys/class/net/eth1/mtu": "1500"}, "/sys/class/net/eth1/mtu"),
    ("be.roce.ecn", "roce", {"/sys/class/net/eth1/ecn/roce_rp/enable/3": "0"}, "/sys/class/net/eth1/ecn/roce_rp/enable/3"),
    ("be.roce.cnp", "roce", {"/sys/class/net/eth1/ecn/roce_np/cnp_dscp": "0"}, "/sys/class/net/eth1/ecn/roce_np/cnp_dscp"),
    ("be.roce.tclass", "roce", {"/sys/kernel/config/rdma_cm/mlx5_1/ports/1/default_roce_tos": "0"},
     "/sys/kernel/config/rdma_cm/mlx5_1/ports/1/default_roce_tos"),
    ("be.roce.neigh", "roce", {"/proc/net/arp": "IP address       HW type     Flags       HW address            Mask     Device\n"
                               "10.100.0.2       0x1         0x0         00:00:00:00:00:00     *        eth0\n"
                               "10.100.0.3       0x1         0x0         00:00:00:00:00:00     *        eth0\n"}, "/proc/net/arp"),
    ("be.roce.neigh", "roce", {"/proc/net/arp": "IP address       HW type     Flags       HW address            Mask     Device\n"
                               "10.100.0.2       0x1         0x0         00:00:00:00:00:00     *        eth0\n"
                               "10.100.0.3       0x1         0x2         b8:3f:d2:00:00:03     *        eth0\n"}, "/proc/net/arp"),
    ("be.ib.sm", "infiniband", {PORT + "/sm_lid": "0x0"}, PORT + "/sm_lid"),
    ("be.ib.routes", "subnet", {TABLES: without_route("leaf1", 0x111)}, "!" + TABLES),
    ("be.ib.routes", "subnet", {TABLES: in_a_circle("leaf1", "spine0", 0x111)}, "!" + LINKS),
    ("be.ib.pkey", "infiniband", {PORT + "/pkeys/0": "0x7fff", PORT + "/pkeys/1": "0x0001"}, "!" + PORT + "/pkeys/0"),
]
# Faults that show in a second check too, because it reads the same thing.
ALSO = {"be.roce.gid_type": {"cfg.sw.nccl_env", "be.roce.gid_index"}, "cfg.pcie.inventory": set(), "fe.bootstrap": {"cfg.sw.nccl_env"},
        "cfg.nic.count": set(), "cfg.mem.free": set(), "be.topo.spare": {"be.lat.asym"}, "be.lat.base": {"be.topo.spare"}}

#!/usr/bin/env python3
"""job_scale.py [RANKS]: 64 processes on this machine that all send to each other over the loopback: connections, memory and
set-up time of each.

A run with 8 processes gives the cost of one connection. 512 and 4,096 ranks are computed from it, with the numbers of
connections that the simulator counts (sim.job.sockets.*). A loopback has no other NICs, so there are no standbys.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lab"))
from job import PLUGIN  # noqa: E402
from world import FOLDER, FOLIOT, Missing, Rows, median  # noqa: E402

RANKS = int(sys.argv[1]) if len(sys.argv) > 1 else 64
LIMIT_S = 120
SETTLE_S = 3


def children(pid):
    return [int(word) for path in glob.glob(f"/proc/{pid}/task/*/children") for word in open(path, encoding="ascii").read().split()]


def established():
    """Sockets of all established connections on this machine, by inode. They are read once, because 64 ranks have thousands."""
    lines = [line.split() for path in glob.glob("/proc/net/tcp*") for line in open(path, encoding="ascii").readlines()[1:]]
    return {words[9] for words in lines if words[3] == "01"}


def sockets(pid, connected):
    """Connections of a process: its own ends."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}").removeprefix("socket:[").removesuffix("]"))
        except OSError:
            pass  # closed meanwhile
    return len(inodes & connected)


def memory_kb(pid):
    """The process's memory: of shared memory it counts its share."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))


class Measured:
    """One all-to-all of so many ranks, once all are connected and have sent data."""

    def __init__(self, ranks):
        with tempfile.TemporaryDirectory() as folder:
            words = [FOLIOT, "perf", "alltoall", "--ranks", str(ranks), "--plugin", PLUGIN, "--message", "4K", "--channels", "1", "-b",
                     str(1024 * ranks), "-e", str(1024 * ranks), "-c", "1", "-w", "1", "-n", "1", "--duration", "90", "--wait", "10000",
                     "-T", str(LIMIT_S), "--trace", folder]
            environment = {**os.environ, "NCCL_SOCKET_IFNAME": "lo", "FOLIOT_NIC": "lo"}
            begin = time.monotonic()
            job = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=environment,
                                   text=True)
            try:
                line = "no"
                while line and not line.startswith("#  Rank"):  # printed when all ranks are connected
                    line = job.stdout.readline()
                if not line:
                    raise Missing(f"{ranks} ranks didn't come about")
                self.setup_s = time.monotonic() - begin
                time.sleep(SETTLE_S)
                pids = children(job.pid)
                connected = established()
                self.sockets = max(sockets(pid, connected) for pid in pids)
                self.memory_kb = median([memory_kb(pid) for pid in pids])
                self.threads = max(len(os.listdir(f"/proc/{pid}/task")) for pid in pids)
                self.kernel_kb = kernel_kb() / len(pids)
            finally:
                job.terminate()
                job.wait(timeout=60)


def kernel_kb():
    """The memory that the kernel uses for all TCP connections."""
    with open("/proc/net/sockstat", encoding="ascii") as file:
        words = next(line.split() for line in file if line.startswith("TCP:"))
    return int(words[words.index("mem") + 1]) * os.sysconf("SC_PAGE_SIZE") / 1024


def simulated(ranks):
    """Connections of one of so many ranks, by the last run of job_sim; None: it hasn't been run."""
    try:
        with open(os.path.join(FOLDER, "job-sim.json"), encoding="utf-8") as file:
            return next((row["value"] for row in json.load(file) if row["id"] == f"sim.job.sockets.{ranks}"), None)
    except OSError:
        return None


def scale(rows):
    """64 ranks, all to all, on this machine; 512 and 4,096 computed"""
    command = f"bench/job_scale.py {RANKS}"
    ceiling = 16384
    few, count = Measured(8), RANKS
    try:
        many = Measured(RANKS)
    except Missing as missing:  # two processors may be too few: half of the ranks still give a connection's cost
        rows.add(f"job.scale.{RANKS}.sockets", None, "sockets", ceiling, None, runs=0, command=command, note=f"not measured: {missing}")
        count = RANKS // 2
        many = Measured(count)
    rows.add(f"job.scale.{count}.sockets", many.sockets, "sockets", ceiling, None, command=command,
             note=f"of one process; 2 x {count - 1} lane sets; threads {many.threads}")
    rows.add(f"job.scale.{count}.memory_mb", many.memory_kb / 1024, "MiB", command=command,
             note=f"of one process (Pss); 8 ranks {few.memory_kb / 1024:.1f}; the kernel's buffers for it {many.kernel_kb / 1024:.2f}")
    rows.add(f"job.scale.{count}.setup_s", many.setup_s, "s", command=command,
             note=f"from the start of the processes to all connected, on {os.cpu_count()} processors; 8 ranks {few.setup_s:.2f}")
    each = (many.memory_kb - few.memory_kb) / (many.sockets - few.sockets)
    rows.add("job.scale.socket_kb", each, "KiB", command=command, note=f"user memory per connection, {few.sockets} against {many.sockets}")
    for ranks, expected in ((512, 6132), (4096, 8190)):
        seen = simulated(ranks)
        rows.add(f"job.scale.{ranks}.memory_mb", (few.memory_kb + each * ((seen or expected) - few.sockets)) / 1024, "MiB", command=command,
                 note=f"computed, for {seen or expected:.0f} connections ({'as simulated' if seen else 'expected'}); ceiling {ceiling}")


if __name__ == "__main__":
    ROWS = Rows("job_scale")
    ROWS.measure([(f"job.scale.{RANKS}.sockets", "sockets", 16384, None), (f"job.scale.{RANKS}.memory_mb", "MiB", None, None),
                  (f"job.scale.{RANKS}.setup_s", "s", None, None)], scale)
    sys.exit(ROWS.finish())

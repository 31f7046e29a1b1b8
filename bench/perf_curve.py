#!/usr/bin/env python3
"""perf_curve.py FOLIOT PLUGIN.so REFERENCE.so [two|crowded|in_lab]…: the plugin compared with the reference at every power of
two from 8 B to 64 MiB, as ratios of time.

It runs ping-pong, all-reduce and all-to-all of two ranks on this machine, all-reduce and all-to-all of four, and ping-pong and
all-reduce in a lab. The reference has its best setting of threads and connections, which is found first for each band of
sizes. Each pair is two runs, one after the other; their order changes from pair to pair. A point is the median of its pairs'
ratios of the mean time of an operation, with stalls. Every point is printed, with the ratio of processor times. An all-to-all
begins at the size where each rank has a block.

Ranks wait for each other after each batch of operations. If one rank comes later, the first operation of the next batch takes
longer. Up to 64 KiB a batch has 200 operations, so the 99th percentile is another operation.

Ranks of both sides are scheduled as SCHED_RR if that is permitted (root): then other programs of the machine do not interrupt
them. Without it one other program can make an operation of 10 us take milliseconds, on either side.
"""
import math
import os
import subprocess
import sys
import json

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lab"))
from world import Lab, Missing, Rows, median, runs  # noqa: E402

FOLIOT, PLUGIN, REFERENCE = sys.argv[1:4]
FABRIC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lab", "curve.yaml")
SETTINGS = [(0, 1), (1, 1), (1, 4), (2, 2)]
BANDS = [("8", "64K"), ("128K", "1M"), ("2M", "64M")]
LAB_BANDS = [("8", "64K"), ("128K", "4M")]
SMALL = 65536
PAIRS = 8


def round_robin():
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        pass


class Case:
    """One operation with so many ranks, on this machine or in a lab."""

    def __init__(self, operation, ranks, lab=None):
        self.operation, self.ranks, self.lab = operation, ranks, lab
        self.bands = LAB_BANDS if lab else BANDS
        self.settings = {}
        self.pairs = {}  # size -> [(ours, theirs)]

    def name(self):
        return f"{self.operation} of {self.ranks}{' in the lab' if self.lab else ''}"

    def run(self, plugin, band, setting=(0, 1)):
        """size -> the results of foliot perf for it."""
        where = ["--lab", self.lab.name, "--hosts", ",".join(str(k) for k in range(self.ranks))] if self.lab else []
        done = subprocess.run(
            [FOLIOT, "perf", self.operation, *where, "--ranks", str(self.ranks), "-b", band[0], "-e", band[1], "-f", "2", "-n",
             "200" if band[0] == "8" else "3", "--duration", "0.05", "-c", "0", "--channels", "1" if self.operation == "pingpong" else "2",
             "--plugin", plugin, "--json"], capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL, preexec_fn=round_robin,
            env={**os.environ, **({} if self.lab else {"NCCL_SOCKET_IFNAME": "lo", "FOLIOT_NIC": "lo"}),
                 "REFERENCE_NTHREADS": str(setting[0]), "REFERENCE_NSOCKS_PERTHREAD": str(setting[1])})
        if done.returncode != 0:
            raise Missing((done.stderr.strip().splitlines() or ["no reason given"])[-1][:120])
        sides = {row["size"]: row["out_of_place"] for row in json.loads(done.stdout)["results"]}
        return {size: {"time": side["time"], **side["foliot"]} for size, side in sides.items()
                if size > 0 and side and side["time"] and side["foliot"]["p50_us"]}

    def choose(self):
        """The reference's best setting for each band."""
        for band in self.bands:
            self.settings[band] = min(SETTINGS, key=lambda s, b=band: mean([p["time"] for p in self.run(REFERENCE, b, s).values()]))

    def pair(self, k):
        for band in self.bands:
            got = {}
            for side in (REFERENCE, PLUGIN) if k % 2 == 0 else (PLUGIN, REFERENCE):
                got[side] = self.run(side, band, self.settings[band])
            for size in got[PLUGIN].keys() & got[REFERENCE].keys():
                self.pairs.setdefault(size, []).append((got[PLUGIN][size], got[REFERENCE][size]))

    def points(self, key):
        """[(median ratio, size)]"""
        return [(median([ours[key] / theirs[key] for ours, theirs in pairs]), size) for size, pairs in sorted(self.pairs.items())]

    def show(self):
        for (time, size), (p99, _), (cpu, _) in zip(self.points("time"), self.points("p99_us"), self.points("cpu_s_per_gb")):
            ours, theirs = (median([pair[i]["time"] for pair in self.pairs[size]]) for i in (0, 1))
            print(f"  {self.name():24} {size:>9} B  time {time:5.2f}  p99 {p99:5.2f}  processor {cpu:5.2f}   {theirs:9.1f} → {ours:9.1f} us", flush=True)


def mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None


def measure(cases, pairs):
    for case in cases:
        case.choose()
    for k in range(pairs):
        for case in cases:
            case.pair(k)
    for case in cases:
        case.show()


def worst(cases, key="time", most=None):
    """The largest ratio, and its point."""
    value, size, case = max((value, size, case.name()) for case in cases for value, size in case.points(key) if most is None or size <= most)
    return value, f"{case}, {size} B"


def settings_of(cases):
    return "reference: " + "; ".join(f"{case.name()} " + ", ".join(f"{t}x{c}" for t, c in case.settings.values()) for case in cases)


def add_worst(rows, name, cases, must, aim, command, key="time", most=None):
    value, where = worst(cases, key, most)
    cpu, at = worst(cases, "cpu_s_per_gb", most)
    rows.add(name, value, "ratio", must, aim, runs=PAIRS, command=command,
             note=f"at {where}; processor time: mean {mean([v for c in cases for v, _ in c.points('cpu_s_per_gb')]):.2f}, worst {cpu:.2f} at {at}; "
                  f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def two(rows):
    """two ranks on this machine"""
    cases = [Case(operation, 2) for operation in ("pingpong", "all_reduce", "alltoall")]
    measure(cases, runs(PAIRS))
    command = "chrt -r 1 foliot perf OPERATION --ranks 2 -b 8 -e 64M -f 2 --duration 0.05"
    add_worst(rows, "job.curve.worst", cases, 1.10, 1.0, command)
    rows.add("job.curve.mean", mean([v for c in cases for v, _ in c.points("time")]), "ratio", 1.0, 0.8, runs=PAIRS, command=command,
             note=settings_of(cases))
    add_worst(rows, "job.curve.p99", cases, 1.10, 0.8, command, "p99_us", SMALL)


def crowded(rows):
    """four ranks on this machine"""
    cases = [Case(operation, 4) for operation in ("all_reduce", "alltoall")]
    measure(cases, runs(PAIRS))
    add_worst(rows, "job.curve.crowded", cases, 1.25, 1.0, "chrt -r 1 foliot perf OPERATION --ranks 4 -b 8 -e 64M -f 2 --duration 0.05")


def in_lab(rows):
    """two ranks on two hosts of a lab, over two trunks"""
    if os.geteuid() != 0:
        raise Missing("the lab needs root")
    with Lab("bench-curve", FABRIC, agents=False) as lab:
        cases = [Case(operation, 2, lab) for operation in ("pingpong", "all_reduce")]
        measure(cases, runs(PAIRS, 4))
        command = "foliot lab up bench/lab/curve.yaml; chrt -r 1 foliot perf OPERATION --lab … --hosts 0,1 -b 8 -e 4M -f 2 --duration 0.05"
        add_worst(rows, "job.curve.lab.worst", cases, None, 1.0, command)
        rows.add("job.curve.lab.mean", mean([v for c in cases for v, _ in c.points("time")]), "ratio", None, 0.8, runs=PAIRS, command=command,
                 note=settings_of(cases))


def main():
    rows = Rows("perf_curve")
    for function, ids in (
            (two, [("job.curve.worst", "ratio", 1.10, 1.0), ("job.curve.mean", "ratio", 1.0, 0.8), ("job.curve.p99", "ratio", 1.10, 0.8)]),
            (crowded, [("job.curve.crowded", "ratio", 1.25, 1.0)]),
            (in_lab, [("job.curve.lab.worst", "ratio", None, 1.0), ("job.curve.lab.mean", "ratio", None, 0.8)])):
        if not sys.argv[4:] or function.__name__ in sys.argv[4:]:
            rows.measure(ids, function)
    return rows.finish()


if not os.path.exists(PLUGIN):
    print(f"{PLUGIN} isn't built: nothing to compare")
    sys.exit(77)
sys.exit(main())

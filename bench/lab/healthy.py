#!/usr/bin/env python3
"""healthy.py [soak]: a fabric without a fault and without another job: the plugin's bus bandwidth compared with the
reference's, in turns, as ratios.

An all-reduce of 4 ranks on both leaves, two rings, a NIC each. The reference has its best setting of threads and connections.
Up to 16 MB in the bench, to 64 MB in the soak.
"""
import json
import os
import subprocess
import sys

from job import FABRIC, PLUGIN, REFERENCE
from world import FOLIOT, SOAK, Lab, Missing, Rows, median, need_root, runs, spread

NAME = "bench-healthy"
SETTINGS = [(0, 1), (1, 1), (1, 4)]
ITERATIONS = {"256K": 20, "1M": 4, "4M": 2, "16M": 1, "64M": 1}  # some seconds each
SIZES = ("256K", "4M", "16M", "64M") if SOAK else ("256K", "4M", "16M")


def bus_bw(lab, plugin, size, setting=(0, 1)):
    done = subprocess.run([FOLIOT, "perf", "all_reduce", "--lab", lab.name, "--hosts", "0,1,2,3", "--ranks", "4", "--plugin", plugin,
                           "-b", size, "-e", size, "-n", str(ITERATIONS[size]), "-w", "0", "-c", "1", "--wait", "100", "--json"], capture_output=True, text=True,
                          timeout=200, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, "REFERENCE_WAIT_US": "100", "REFERENCE_NTHREADS": str(setting[0]), "REFERENCE_NSOCKS_PERTHREAD": str(setting[1])})
    if done.returncode != 0:
        raise Missing((done.stderr.strip().splitlines() or ["no reason given"])[-1][:120])
    row = json.loads(done.stdout)["results"][0]
    if row["out_of_place"]["nwrong"]:
        raise Missing("wrong bytes")
    return row["out_of_place"]["bus_bw"]


def healthy(rows):
    """all-reduce by size, with nothing else on the fabric"""
    with Lab(NAME, FABRIC, agents=False) as lab:
        setting = max(SETTINGS, key=lambda s: max(bus_bw(lab, REFERENCE, "1M", s) for _ in range(2)))
        for size in SIZES:
            pairs = []
            for _ in range(runs(7, 3)):
                theirs = bus_bw(lab, REFERENCE, size, setting)
                pairs.append((bus_bw(lab, PLUGIN, size), theirs))
            ratios = [ours / theirs for ours, theirs in pairs]
            rows.add(f"job.lab.busbw.{size}.ratio", median(ratios), "ratio", 0.98, None, "higher", len(ratios), spread(ratios),
                     "bench/lab/healthy.py", f"{median([b for _, b in pairs]) * 8e3:.0f} → {median([a for a, _ in pairs]) * 8e3:.0f} Mbit/s; "
                     f"reference: {setting[0]} threads x {setting[1]} connections; 2 NICs of 75 Mbit/s a host")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("job-lab")
    ROWS.measure([(f"job.lab.busbw.{size}.ratio", "ratio", 0.98, None, "higher") for size in SIZES], healthy)
    sys.exit(ROWS.finish())

#!/usr/bin/env python3
"""perf_loopback.py FOLIOT PLUGIN.so REFERENCE.so: the plugin beside the reference on the loopback, in turns, as ratios.

The reference gets its best setting of helper threads and connections, tried first at each size. A loopback has one path: this
is what the plugin costs, not what its lanes bring.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lab"))
from world import Missing, Rows, median, runs, spread  # noqa: E402

FOLIOT, PLUGIN, REFERENCE = sys.argv[1:4]
SETTINGS = [(0, 1), (1, 1), (1, 4), (2, 2)]
ENVIRONMENT = {**os.environ, "NCCL_SOCKET_IFNAME": "lo", "FOLIOT_NIC": "lo"}


def perf(plugin, *arguments, setting=(0, 1), **environment):
    done = subprocess.run([FOLIOT, "perf", *arguments, "--plugin", plugin, "--json"], capture_output=True, text=True, timeout=300,
                          env={**ENVIRONMENT, "REFERENCE_NTHREADS": str(setting[0]),
                               "REFERENCE_NSOCKS_PERTHREAD": str(setting[1]), **environment}, check=False)
    if done.returncode != 0:
        raise Missing((done.stderr.strip().splitlines() or ["no reason given"])[-1][:120])
    side = json.loads(done.stdout)["results"][0]["out_of_place"]
    return {"bus_bw": side["bus_bw"], **side["foliot"]}


def ratios(key, arguments, best, **environment):
    """Ours by the reference's, pair by pair; the setting that was best by `best` (max or min)."""
    setting = best(SETTINGS, key=lambda s: perf(REFERENCE, *arguments, setting=s)[key])
    pairs = []
    for _ in range(runs(7)):
        theirs = perf(REFERENCE, *arguments, setting=setting)[key]
        pairs.append(perf(PLUGIN, *arguments, **environment)[key] / theirs)
    return pairs, f"reference: {setting[0]} threads x {setting[1]} connections"


def add(rows, name, key, arguments, best, must, aim, better, **environment):
    pairs, note = ratios(key, arguments, best, **environment)
    rows.add(name, median(pairs), "ratio", must, aim, runs=len(pairs), spread=spread(pairs), better=better,
             command="foliot perf " + " ".join(arguments), note=note)


def main():
    rows = Rows("perf_loopback")
    for size in ("256K", "4M", "64M"):
        count = "10" if size == "64M" else "50"
        add(rows, f"perf.busbw.{size}.ratio", "bus_bw", ["all_reduce", "-b", size, "-e", size, "-n", count, "-c", "1"], max, 0.98, 1.5,
            "higher")
    for name, operation in (("all_reduce", "all_reduce"), ("pingpong", "pingpong")):
        for key, must in (("p50_us", 1.05), ("p99_us", 1.1)):
            add(rows, f"perf.latency.{name}.{key[:3]}.ratio", key,
                [operation, "-b", "8", "-e", "8", "-n", "5000", "-w", "200", "--channels", "1"], min, must, 0.7, "lower")
    for name, checksum, must, aim in (("off", "0", 1.1, 0.8), ("on", "1", 1.4, 1.0)):
        add(rows, f"perf.cpu.crc_{name}.ratio", "cpu_s_per_gb",
            ["all_reduce", "-b", "16M", "-e", "16M", "-n", "30", "--wait", "50"], min, must, aim, "lower", FOLIOT_CHECKSUM=checksum)
    return rows.finish()


if not os.path.exists(PLUGIN):
    print(f"{PLUGIN} isn't built: nothing to compare")
    sys.exit(77)
sys.exit(main())

#!/usr/bin/env python3
"""incast.py: seven hosts of the lab send to one (`foliot perf gather`): the receiver's link stays full, and what stands before it is short.

Each turn plays all variants one after the other, in an order of its own:

reference   the reference plugin, four connections a pair: goodput only, it measures no delays
failover    ours without traffic control: round robin, each lane up to its own limit
uncredited  all of ours but for credit (FOLIOT_CREDIT=0)
full        ours

Delays are in-band, above the least that a lane saw, p99 of each lane in the last seconds, weighed by its chunks. The rows compare
full with failover (all of traffic control) and with uncredited (credit alone).
"""
import glob
import os
import random
import shutil
import struct
import sys
import tempfile
import threading
import time

from job import NS, PLUGIN, REFERENCE, Job
from world import Lab, Missing, Rows, median, need_root, runs, seconds, spread

NAME = "bench-incast"
FABRIC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "incast.yaml")
BOUND = 75e6 / 8 * 1448 / 1514  # bytes per second that TCP can carry over the receiver's link
UNSYNCED_NS = 1_000_000  # what the plugin calls the least delay between hosts without fleet time
VARIANTS = {
    "reference": (REFERENCE, {"REFERENCE_NTHREADS": "1", "REFERENCE_NSOCKS_PERTHREAD": "4"}),
    "failover": (PLUGIN, {"FOLIOT_MODE": "failover"}),
    "uncredited": (PLUGIN, {"FOLIOT_CREDIT": "0"}),
    "full": (PLUGIN, {}),
}
# wire/job_page.h: header of 31 words, then per lane a sequence and 29 words.
HEADER, ENTRY, LANES = 31 * 8, 30 * 8, 1024


def delays(folder):
    """(chunks, p99 in ns above the least) of each lane by which anything large came, out of the job's pages."""
    found = []
    for name in glob.glob(f"{folder}/job-*.page"):
        data = open(name, "rb").read()
        for i in range(LANES):
            lane = data[HEADER + i * ENTRY + 8:HEADER + (i + 1) * ENTRY]
            if len(lane) < ENTRY - 8 or struct.unpack_from("<I", lane)[0] == 0 or lane[10] != 0:
                continue
            chunks, size = struct.unpack_from("<QQ", lane, 144)
            p99 = struct.unpack_from("<I", lane, 212)[0]
            if size > 100_000 and p99 != 0xffffffff:
                found.append((chunks, max(p99 - UNSYNCED_NS, 1000)))
    return found


def idle_s():
    return sum(int(line.split()[4]) for line in open("/proc/stat") if line.startswith("cpu ")) / os.sysconf("SC_CLK_TCK")


class Trial:
    """One run of one variant: goodput in bytes per second, delay p99 in ns (None: not measured), share of processors idle."""

    def __init__(self, lab, variant):
        plugin, environment = VARIANTS[variant]
        last = seconds(20)
        pages = tempfile.mkdtemp(prefix="foliot-pages-")
        found = []
        reader = threading.Timer(last * 0.9 + 2, lambda: found.extend(delays(pages)))
        try:
            reader.start()
            idle, began = idle_s(), time.monotonic()
            with Job(lab, last, "gather", "0,1,2,3,4,5,6,7", plugin, size="16M", channels=1, more=["-n", "1"], FOLIOT_JOB_DIR=pages,
                     **environment) as job:
                pass
            self.idle = (idle_s() - idle) / (time.monotonic() - began) / os.cpu_count()
        finally:
            reader.cancel()
            shutil.rmtree(pages, ignore_errors=True)
        times, sums = job.receives[0]
        begin, end = times[0] + (times[-1] - times[0]) // 3, times[-1]
        if end - begin < NS * last // 3:
            raise Missing("the job ran too short a time")
        inside = [i for i, at in enumerate(times) if at >= begin]
        self.goodput = (sums[inside[-1]] - sums[inside[0]]) / ((times[inside[-1]] - times[inside[0]]) / NS)
        chunks = sum(n for n, _ in found)
        self.p99 = sum(n * p99 for n, p99 in found) / chunks if chunks > 0 else None


def incast(rows):
    """7 → 1: goodput of the link's bound, and in-band delays against ours without control"""
    order = random.Random(1)
    found = {variant: [] for variant in VARIANTS}
    with Lab(NAME, FABRIC, agents=False) as lab:
        for turn in range(runs(5)):
            names = list(VARIANTS)
            order.shuffle(names)
            for variant in names:
                found[variant].append(Trial(lab, variant))
            print(f"    turn {turn}: " + ", ".join(
                f"{v} {t[-1].goodput / BOUND:.3f} of the bound" + (f", p99 {t[-1].p99 / 1e6:.1f} ms" if t[-1].p99 else "") +
                f", {t[-1].idle:.0%} idle" for v, t in found.items()), flush=True)
    command = "bench/lab/incast.py"
    idle = min(t.idle for trials in found.values() for t in trials)
    if idle < 0.1:
        raise Missing(f"the processors were busy ({idle:.0%} idle): what was measured is they")

    def add(name, values, unit, must=None, aim=None, better="higher", note=None):
        rows.add(f"job.incast.{name}", median(values), unit, must, aim, better, len(values), spread(values), command, note)

    shares = {v: [t.goodput / BOUND for t in trials] for v, trials in found.items()}
    add("goodput", shares["full"], "of the bound", 0.95, 0.98, note=f"75 Mbit/s × 1448/1514; processors at least {idle:.0%} idle")
    for variant in ("reference", "failover", "uncredited"):
        add(f"goodput.{variant}", shares[variant], "of the bound")
    p99 = {v: [t.p99 for t in trials if t.p99] for v, trials in found.items()}
    for variant in ("failover", "uncredited"):
        ratios = [a / b for a, b in zip(p99["full"], p99[variant])]
        if not ratios:
            raise Missing("no delays were read")
        goals = (0.25, 0.05) if variant == "failover" else (None, None)
        add("p99" if variant == "failover" else "p99.credit_alone", ratios, "ratio", *goals, better="lower",
            note=f"against {variant}: {median(p99[variant]) / 1e6:.1f} → {median(p99['full']) / 1e6:.1f} ms")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("incast-lab")
    ROWS.measure([("job.incast.goodput", "of the bound", 0.95, 0.98, "higher"), ("job.incast.p99", "ratio", 0.25, 0.05)], incast)
    sys.exit(ROWS.finish())

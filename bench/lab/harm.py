#!/usr/bin/env python3
"""harm.py: a transfer job on all links, with agents and without, in turns: the cost of watching for the watched.

In the bench only the first job runs.
"""
import json
import subprocess
import sys
import time

from world import SOAK, Lab, Rows, median, need_root, runs, spread

NAME = "bench-harm"
JOBS = {  # name: pattern, bytes per flow, transfers a turn, turns
    # One flow out and one in on each host link, so long that its pace counts and not its last packet. This job decides.
    "": ("leaf", 60_000_000, 1, 20),
    # Four in a row, each as slow as its slowest flow: one lost packet of one flow at the end delays all.
    ".barriers": ("leaf", 20_000_000, 4, 6),
    # 224 flows over the trunks, as in jobs; but TCP alone varies by 5 %.
    ".all_to_all": ("all-to-all", 1_000_000, 5, 4),
}


def transfers(lab, pattern, size, count):
    out = subprocess.run(lab.words("traffic", "--pattern", pattern, "--job", size, "--repeat", count + 1, "--json"),
                         capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL, timeout=300).stdout
    return sum(json.loads(out)["seconds"][1:])  # the first one only opens TCP windows


def agents(lab, on):
    """Stops or continues all agents at once. A stopped agent sends nothing and costs nothing."""
    if on:
        lab.undo()
    else:
        lab.fault("agent-stop", "all", "--for", "600s")
    time.sleep(1.5)


def harm(rows):
    """throughput of transfers, agents running against agents stopped, in turns"""
    with Lab(NAME) as lab:
        lab.wait_synced()
        time.sleep(10)
        for name, (pattern, size, count, turns) in JOBS.items():
            if name and not SOAK:
                continue
            times = {True: [], False: []}
            for turn in range(runs(turns, 8)):
                for on in (True, False) if turn % 2 == 0 else (False, True):
                    agents(lab, on)
                    times[on].append(transfers(lab, pattern, size, count))
            agents(lab, True)
            ratios = [off / on for on, off in zip(times[True], times[False])]
            ordered = sorted(ratios)
            quarter = len(ordered) // 4
            rows.add(f"harm.ratio{name}", median(times[False]) / median(times[True]), "x", *((0.99, 0.999) if not name else (None, None)), "higher", runs=len(ratios),
                     spread=spread(ratios), command=f"foliot lab traffic --pattern {pattern} --job {size} --repeat {count + 1}; "
                     "foliot lab fault agent-stop all",
                     note=f"median time off over median time on; of the pairs the quartiles {ordered[quarter]:.4f} to {ordered[-quarter - 1]:.4f}; links of 200 Mbit/s, where probes weigh more")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("harm-lab")
    ROWS.measure([("harm.ratio", "x", 0.99, 0.999, "higher")], harm)
    sys.exit(ROWS.finish())

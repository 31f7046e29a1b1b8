#!/usr/bin/env python3
"""harm.py: a transfer job on all links, agents on against off, in turns: what does watching cost those who are watched?"""
import json
import subprocess
import sys
import time

from world import Lab, Rows, median, need_root, runs, spread

NAME = "e-harm"
BYTES = 600_000  # per flow, 224 flows: about 0.7 s on full links


def transfers(lab, count):
    out = subprocess.run(lab.words("traffic", "--pattern", "all-to-all", "--job", BYTES, "--repeat", count, "--json"),
                         capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL, timeout=300).stdout
    return sum(json.loads(out)["seconds"][1:])  # the first one opens windows


def agents(lab, on):
    """All agents at once; a stopped agent sends nothing and costs nothing."""
    if on:
        lab.undo()
    else:
        lab.fault("agent-stop", "all")
    time.sleep(1.5)


def harm(rows):
    """throughput of a transfer over all links, agents running against agents stopped"""
    ratios = []
    with Lab(NAME) as lab:
        lab.wait_synced()
        time.sleep(10)
        transfers(lab, 3)
        for turn in range(runs(16)):
            order = (True, False) if turn % 2 == 0 else (False, True)
            took = {}
            for on in order:
                agents(lab, on)
                took[on] = transfers(lab, 5)
            ratios.append(took[False] / took[True])
        agents(lab, True)
    ordered = sorted(ratios)
    rows.add("harm.ratio", median(ratios), "x", 0.99, 0.999, "higher", runs=len(ratios), spread=spread(ratios),
             command="foliot lab traffic --pattern all-to-all --job 600000 --repeat 5; foliot lab fault agent-stop all",
             note=f"quartiles {ordered[len(ordered) // 4]:.4f} to {ordered[-len(ordered) // 4 - 1]:.4f}; links of 200 Mbit/s, "
                  "where probes weigh more than on real ones")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("harm-lab")
    ROWS.measure([("harm.ratio", "x", 0.99, 0.999, "higher")], harm)
    sys.exit(ROWS.finish())

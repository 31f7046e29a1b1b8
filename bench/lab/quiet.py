#!/usr/bin/env python3
"""quiet.py [SECONDS]: the network has no fault, the hosts have many: a job's traffic must stay on its lanes.

An all-reduce runs in a lab with agents. Its ranks are stopped at random for up to 0.7 s, one at a time. Turns alternate: only
the stops; and with agents restarted, a host's clock stepped by 1 ms, and a host asleep, after which a new epoch of the
timeline begins. No lane may fail over or be repathed, and no chunk may be sent twice. The second kind of turn is compared with
the first by goodput; both have the same stops. 1 minute in the bench, 30 in the soak.
"""
import os
import random
import signal
import struct
import sys
import threading
import time

from job import FABRIC, Job
from world import Lab, Missing, Rows, median, need_root, quantile, spread

NAME = "bench-quiet"
SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
TURN_S = 30 if SECONDS < 600 else 150
WORK = 8 + 40 + 48 + 64 + 16 + 32  # offset of failovers, repaths in a page: src/wire/job_page.h


class Starve(threading.Thread):
    """Stops one rank after the other, the same way for the same seed."""

    def __init__(self, job, seed):
        super().__init__(daemon=True)
        self.job, self.chance, self.over = job, random.Random(seed), threading.Event()

    def ranks(self):
        try:
            pid = self.job.processes[0].pid
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                return sorted(int(word) for word in file.read().split())
        except OSError:
            return []

    def run(self):
        while not self.over.wait(self.chance.uniform(0.3, 1.5)):
            which, last = self.chance.randrange(4), self.chance.choice((0.05, 0.1, 0.3, 0.7))
            ranks = self.ranks()
            if which < len(ranks):
                try:
                    os.kill(ranks[which], signal.SIGSTOP)
                    time.sleep(last)
                    os.kill(ranks[which], signal.SIGCONT)
                except ProcessLookupError:
                    pass

    def stop(self):
        self.over.set()
        self.join()


def disturb(lab, until, chance):
    """Agents restarted, a clock stepped, a host asleep, in turn."""
    turn = 0
    while time.monotonic() + 6 < until:
        host = chance.randrange(4)
        if turn % 3 == 0:
            lab.fault("clock-step", f"hosts {host}", "--step", "1ms")
        elif turn % 3 == 1:
            lab.fault("agent-restart", f"hosts {host}")
        else:
            lab.fault("suspend", f"hosts {host}", "--for", "2s")
        turn += 1
        time.sleep(6)
    return turn


class Turn:
    """One job: bytes a second, and its transport's counters."""

    def __init__(self, lab, seed, disturbed):
        with Job(lab, TURN_S + 2, pages=True, iterations=1, wait_us=200) as job:
            starve = Starve(job, seed)
            until = time.monotonic() + TURN_S
            time.sleep(2)
            starve.start()
            self.disturbances = disturb(lab, until, random.Random(seed)) if disturbed else 0
            time.sleep(max(0, until - time.monotonic()))
            starve.stop()
        begin, end = job.span()
        self.rate = job.rate(begin, end)
        self.wrong = job.wrong()
        pages = [struct.unpack_from("<QQQQ", data, WORK) for data in job.pages.last.values()]
        self.failovers, self.repaths = (sum(page[i] for page in pages) for i in (0, 1))
        self.resent = sum(page[3] for page in pages)
        for _, text in job.lines:
            if "down (" in text:
                print(f"    {text[:150]}", flush=True)


def quiet(rows):
    """an all-reduce whose ranks are starved, whose agents restart, whose clocks step"""
    alone, disturbed = [], []
    with Lab(NAME, FABRIC) as lab:
        lab.wait_synced()
        for turn in range(max(1, SECONDS // (2 * TURN_S))):
            for into, kind in ((alone, False), (disturbed, True)) if turn % 2 == 0 else ((disturbed, True), (alone, False)):
                into.append(Turn(lab, turn, kind))
                print(f"    {'disturbed' if kind else 'starved alone'}: {into[-1].rate * 8e-6:.1f} Mbit/s, {into[-1].failovers} failovers, "
                      f"{into[-1].repaths} repaths, {into[-1].resent} chunks twice", flush=True)
    if not disturbed:
        raise Missing("no turn came about")
    every = alone + disturbed
    command = f"bench/lab/quiet.py {SECONDS}"
    told = f"{len(every)} turns of {TURN_S} s, {sum(t.disturbances for t in disturbed)} restarts, steps and sleeps"
    rows.add("job.quiet.failovers", sum(t.failovers for t in every), "lanes", 0, 0, runs=len(every), command=command, note=told)
    rows.add("job.quiet.repaths", sum(t.repaths for t in every), "lanes", None, 0, runs=len(every), command=command, note=told)
    rows.add("job.quiet.resent", sum(t.resent for t in every), "chunks", None, None, runs=len(every), command=command, note="hedged or sent again")
    ratios = [b.rate / a.rate for a, b in zip(alone, disturbed)]
    rows.add("job.quiet.goodput", median(ratios), "ratio", 0.99, None, "higher", len(ratios), spread(ratios), command,
             f"against the same stops and nothing else; lowest {quantile(ratios, 0):.3f}")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("job-quiet-soak" if SECONDS >= 600 else "job-quiet")
    ROWS.measure([("job.quiet.failovers", "lanes", 0, 0), ("job.quiet.repaths", "lanes", None, 0),
                  ("job.quiet.goodput", "ratio", 0.99, None, "higher")], quiet)
    sys.exit(ROWS.finish())

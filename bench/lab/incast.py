#!/usr/bin/env python3
"""incast.py: seven hosts of the lab send to one (`foliot perf gather`): the receiver's link must stay full, and its queue
short.

Each turn plays all variants one after the other, in its own order:

reference   the reference plugin, four connections for each pair, round robin: the baseline
failover    Foliot without traffic control: round robin, each lane up to its own limit
uncredited  Foliot without credit (FOLIOT_CREDIT=0)
full        Foliot

Delays are one-way and in-band. The reference measures none: its delays are from a completed send to the completed receive.
"""
import os
import random
import sys

from contention import LANES, Busy
from job import NS, PLUGIN, REFERENCE, Job
from world import SOAK, Lab, Missing, Rows, median, need_root, quantile, runs, seconds, spread

NAME = "bench-incast"
FABRIC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "incast.yaml")
BOUND = 75e6 / 8 * 1448 / 1514  # bytes per second that TCP can carry over the receiver's link
VARIANTS = {
    "reference": (REFERENCE, {"REFERENCE_NTHREADS": "1", "REFERENCE_NSOCKS_PERTHREAD": str(LANES)}),
    "failover": (PLUGIN, {"FOLIOT_MODE": "failover"}),
    "uncredited": (PLUGIN, {"FOLIOT_CREDIT": "0"}),
    "full": (PLUGIN, {}),
}


class Trial:
    """One run of one variant: goodput in bytes per second; p99 of in-band delays and of message times in ms."""

    def __init__(self, lab, variant):
        plugin, environment = VARIANTS[variant]
        last = seconds(20 if SOAK else 12)
        with Busy() as busy, Job(lab, last, "gather", "0,1,2,3,4,5,6,7", plugin, size="16M", channels=1, wait_us=200, iterations=1,
                                 true=True, **environment) as job:
            pass
        self.busy = busy.share
        times, sums = job.receives[0]
        begin, end = times[0] + (times[-1] - times[0]) // 3, times[-1]
        if end - begin < NS * last // 3:
            raise Missing("the job ran too short a time")
        inside = [i for i, at in enumerate(times) if at >= begin]
        self.goodput = (sums[inside[-1]] - sums[inside[0]]) / ((times[inside[-1]] - times[inside[0]]) / NS)
        messages = list(job.messages(begin, end))
        self.message_ms = (quantile([whole for whole, _ in messages], 0.99) or 0) / 1e6
        # The reference reports no delays; when it is done with a send, its kernel has just taken the last byte.
        self.delay_ms = (quantile([wire for _, wire in messages], 0.99) or 0) / 1e6 if plugin == REFERENCE else job.pages.delay_ms(0.99)


def incast(rows):
    """7 → 1: goodput as a share of the link's bound, and in-band delays compared with those without control"""
    order = random.Random(1)
    found = {variant: [] for variant in VARIANTS}
    with Lab(NAME, FABRIC, agents=False) as lab:
        for turn in range(runs(5, 2)):
            names = list(VARIANTS)
            order.shuffle(names)
            for variant in names:
                found[variant].append(Trial(lab, variant))
            print(f"    turn {turn}: " + "; ".join(f"{v} {t[-1].goodput / BOUND:.3f} of the bound, p99 {t[-1].delay_ms:.1f} ms, of messages "
                                                   f"{t[-1].message_ms:.0f} ms, busy {t[-1].busy:.0%}" for v, t in found.items()), flush=True)
    busy = max(t.busy for trials in found.values() for t in trials)

    def add(name, values, unit, must=None, aim=None, better="higher", note=None):
        rows.add(f"job.incast.{name}", median(values), unit, must, aim, better, len(values), spread(values), "bench/lab/incast.py", note)

    def ratios(of, other):
        return [getattr(a, of) / getattr(b, of) for a, b in zip(found["full"], found[other])]

    load = f"processors at most {busy:.0%} busy" + (": it is they that were measured" if busy > 0.9 else "")
    for variant in ("full", "reference", "failover", "uncredited"):
        goals = (0.95, 0.98) if variant == "full" else (None, None)
        add("goodput" + ("" if variant == "full" else f".{variant}"), [t.goodput / BOUND for t in found[variant]], "of the bound", *goals,
            note=f"75 Mbit/s × 1448/1514; {load}")
    for variant in ("reference", "failover", "uncredited"):
        goals = (0.25, 0.05) if variant == "reference" else (None, None)
        add("p99" + ("" if variant == "reference" else f".{variant}"), ratios("delay_ms", variant), "ratio", *goals, better="lower",
            note=f"one-way delay against {variant}: {median([t.delay_ms for t in found[variant]]):.1f} → "
            f"{median([t.delay_ms for t in found['full']]):.1f} ms; {load}")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("incast-lab")
    ROWS.measure([("job.incast.goodput", "of the bound", 0.95, 0.98, "higher"), ("job.incast.p99", "ratio", 0.25, 0.05)], incast)
    sys.exit(ROWS.finish())

#!/usr/bin/env python3
"""priority.py: a job of low priority and one of high priority on the same hosts, NICs and trunks of the lab. Neither job has
information about the other.

The high job computes (rests) between its all-reduces, so that some rate is left to the low job, which never rests. In turn:
each alone, both with priorities, both without.

slow-down     the high job's median all-reduce with the low job, divided by that alone
share         the low job's share of the rate that the high job leaves: its rate / (its rate alone - the high job's rate)
"""
import random
import sys

from job import FABRIC, NS, Job
from world import SOAK, Lab, Missing, Rows, median, need_root, runs, seconds, spread

NAME = "bench-priority"
HOSTS = "0,1,2,3"
PAUSE_MS = 400


class Jobs:
    """Both jobs together, or one of them: the high job's time for an all-reduce, and both rates."""

    def __init__(self, lab, high=None, low=None):
        last = seconds(20 if SOAK else 12)
        jobs = {}
        if low is not None:
            jobs["low"] = Job(lab, last, "all_reduce", HOSTS, size="4M", iterations=1, **low)
        if high is not None:
            jobs["high"] = Job(lab, last, "all_reduce", HOSTS, size="2M", iterations=1, more=["--pause", str(PAUSE_MS)], **high)
        try:
            for job in jobs.values():
                job.__enter__()
        finally:
            for job in jobs.values():
                job.__exit__(None)
        begin = max(job.span()[0] for job in jobs.values())
        end = min(job.span()[1] for job in jobs.values())
        if end - begin < NS * last // 2:
            raise Missing("the jobs ran too short a time together")
        begin += (end - begin) // 5
        self.rates = {name: job.rate(begin, end) for name, job in jobs.items()}
        if high is not None:
            self.time_us = jobs["high"].report["results"][0]["out_of_place"]["foliot"]["p50_us"]


def priority(rows):
    """a job of high priority together with a bulk job"""
    high, low, none = {"FOLIOT_PRIORITY": "high"}, {"FOLIOT_PRIORITY": "low"}, {}
    slow, share, slow_without, alone_share = [], [], [], []
    order = random.Random(1)
    with Lab(NAME, FABRIC, agents=False) as lab:
        for turn in range(runs(5, 2)):
            plays = {"high": (high, None), "low": (None, low), "normal": (None, none), "both": (high, low), "without": (none, none)}
            names = list(plays)
            order.shuffle(names)
            done = {name: Jobs(lab, *plays[name]) for name in names}
            slow.append(done["both"].time_us / done["high"].time_us)
            slow_without.append(done["without"].time_us / done["high"].time_us)
            left = done["normal"].rates["low"] - done["both"].rates["high"]
            share.append(done["both"].rates["low"] / left)
            alone_share.append(done["low"].rates["low"] / done["normal"].rates["low"])
            print(f"    turn {turn}: slow-down {slow[-1]:.3f} (without priorities {slow_without[-1]:.3f}), the low job has {share[-1]:.3f} "
                  f"of what is left; alone {alone_share[-1]:.3f} of what a normal one has", flush=True)
    command = "bench/lab/priority.py"

    def add(name, values, unit, must=None, aim=None, better="lower", note=None):
        rows.add(f"job.priority.{name}", median(values), unit, must, aim, better, len(values), spread(values), command, note)

    add("slow_down", slow, "ratio", 1.15, 1.08)
    add("slow_down.without", slow_without, "ratio", note="the same two jobs, both of normal priority")
    add("low_share", share, "of what is left", 0.8, 0.95, "higher")
    add("low_alone", alone_share, "of a normal job's rate", None, None, "higher")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("priority-lab")
    ROWS.measure([("job.priority.slow_down", "ratio", 1.15, 1.08), ("job.priority.low_share", "of what is left", 0.8, 0.95, "higher")],
                 priority)
    sys.exit(ROWS.finish())

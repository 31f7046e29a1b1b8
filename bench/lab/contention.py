#!/usr/bin/env python3
"""contention.py [NAME...]: jobs that meet on the trunks of the lab: against static ECMP, against as many connections round robin.

Two jobs of 4 ranks each, all on the same 4 hosts of two leaves, 2 NICs a host; host links are 1.5 times as fast as trunks. Each draw
of source ports plays all variants one after the other, in an order of its own. A rank's throughput is what it received in the middle
of the run; the two jobs' ranks count alike.

ecmp        the reference plugin, one connection a pair and channel: what NCCL's sockets do unless told otherwise
spread      the reference plugin with as many connections a pair as ours has lanes, round robin
failover    ours without traffic control: round robin over its lanes, no repath
full        ours
"""
import random
import sys
import time

from job import FABRIC, NS, PLUGIN, REFERENCE, Job
from world import Lab, Missing, Rows, median, need_root, quantile, runs, seconds, spread

NAME = "bench-contention"
DRAWS = 10
LANES = 4
VARIANTS = {
    "ecmp": (REFERENCE, {}),
    "spread": (REFERENCE, {"REFERENCE_NTHREADS": "1", "REFERENCE_NSOCKS_PERTHREAD": str(LANES)}),
    "failover": (PLUGIN, {"FOLIOT_MODE": "failover", "FOLIOT_LANES_PER_SET": str(LANES)}),
    "full": (PLUGIN, {"FOLIOT_MODE": "full", "FOLIOT_LANES_PER_SET": str(LANES)}),
}


class Trial:
    """One run of one variant: its ranks' rates in Mbit/s, of both jobs."""

    def __init__(self, lab, operation, variant, jobs=2, hosts="0,1,2,3"):
        plugin, environment = VARIANTS[variant]
        last = seconds(6)
        with Job(lab, last, operation, hosts, plugin, jobs=jobs, **environment) as job:
            pass
        begin, end = job.span()
        if end - begin < NS * last // 2:
            raise Missing("the jobs ran too short a time together")
        begin += (end - begin) // 3  # traffic control has its time to settle
        self.rates = []
        for times, sums in job.receives:
            inside = [i for i, at in enumerate(times) if begin <= at < end]
            got = sums[inside[-1]] - sums[inside[0]] if len(inside) > 1 else 0
            self.rates.append(8e3 * got / (end - begin))
        self.mean = sum(self.rates) / len(self.rates)
        self.slowest = min(self.rates)


def two_jobs(rows, operation, name):
    """One row of the table for an operation: all variants, draw by draw."""
    order = random.Random(1)
    found = {variant: [] for variant in VARIANTS}
    with Lab(NAME, FABRIC, agents=False) as lab:
        for draw in range(runs(DRAWS)):
            turn = list(VARIANTS)
            order.shuffle(turn)
            for variant in turn:
                found[variant].append(Trial(lab, operation, variant))
            print(f"    {name}, draw {draw}: " + ", ".join(f"{v} {found[v][-1].mean:.1f} (slowest {found[v][-1].slowest:.1f})"
                                                      for v in VARIANTS) + " Mbit/s a rank", flush=True)
    command = f"bench/lab/contention.py {name}"

    def ratios(one, other):
        return [a.mean / b.mean for a, b in zip(found[one], found[other])]

    def worst(variant):
        return min(trial.slowest for trial in found[variant])

    def add(row, values, must, aim, note=""):
        rows.add(f"contention.{name}.{row}", median(values), "ratio", must, aim, "higher", len(values), spread(values), command, note)

    add("ecmp_mean", ratios("full", "ecmp"), 1.5, None, f"mean of all ranks; {median([t.mean for t in found['ecmp']]):.1f} → "
        f"{median([t.mean for t in found['full']]):.1f} Mbit/s")
    add("ecmp_slowest", [worst("full") / max(worst("ecmp"), 0.1)], 2.36, None, f"slowest rank in the worst draw; {worst('ecmp'):.1f} → "
        f"{worst('full'):.1f} Mbit/s")
    add("spread", ratios("full", "spread"), 1.15, 1.35, f"against {LANES} connections a pair, round robin")
    add("spread.no_repath", ratios("failover", "spread"), None, None, "the same with our traffic control off")
    add("repath", ratios("full", "failover"), None, None, "traffic control on against off")
    add("fairness", [t.slowest / t.mean for t in found["full"]], 0.9, 0.97, "slowest rank over the mean")


def all_to_all(rows):
    """two all-to-all jobs"""
    two_jobs(rows, "alltoall", "all_to_all")


def all_reduce(rows):
    """two all-reduce jobs"""
    two_jobs(rows, "all_reduce", "all_reduce")


def row_list(name):
    return [(f"contention.{name}.ecmp_mean", "ratio", 1.5, None, "higher"), (f"contention.{name}.ecmp_slowest", "ratio", 2.36, None, "higher"),
            (f"contention.{name}.spread", "ratio", 1.15, 1.35, "higher"), (f"contention.{name}.fairness", "ratio", 0.9, 0.97, "higher")]


def brownout(rows):
    """one trunk at 10 % of its rate under one all-reduce: job's rate against the capacity that is left"""
    shares = []
    with Lab(NAME, FABRIC, agents=False) as lab:
        for turn in range(runs(5)):
            last = seconds(20)
            with Job(lab, last, "all_reduce", "0,2") as job:
                time.sleep(last * 0.5)
                lab.fault("brownout", f"trunk 0-{turn % 4}", "--rate_mbps", "5", "--for", f"{last * 0.4:.0f}s")
            onset = [e["after_raw_ns"] + job.shift for e in lab.events("brownout", "on")][-1]
            before, after = job.rate(onset - 3 * NS, onset), job.rate(onset + NS, onset + int(last * 0.35 * NS))
            shares.append(after / before)
    rows.add("brownout.job", median(shares), "of before", 0.95 * 155 / 200, None, "higher", len(shares), spread(shares),
             "bench/lab/contention.py brownout", "capacity of 4 trunks with one at 10 % is 155 of 200; from 1 s after its onset")


def gray_loss(rows):
    """1 % and 10 % loss on one of four paths: goodput against the three clean ones, from 2 s on"""
    for percent in (1, 10):
        shares = []
        with Lab(NAME, FABRIC, agents=False) as lab:
            for turn in range(runs(5)):
                last = seconds(20)
                with Job(lab, last, "all_reduce", "0,2") as job:
                    time.sleep(last * 0.4)
                    lab.fault("loss", f"trunk 0-{turn % 4}", "--loss", f"{percent}%", "--for", f"{last * 0.5:.0f}s")
                onset = [e["after_raw_ns"] + job.shift for e in lab.events("loss", "on")][-1]
                before, after = job.rate(onset - 3 * NS, onset), job.rate(onset + 2 * NS, onset + int(last * 0.45 * NS))
                shares.append(after / before / 0.75)
        rows.add(f"grayloss.{percent}pct", median(shares), "of 3 clean paths", 0.9, 0.97, "higher", len(shares), spread(shares),
                 "bench/lab/contention.py gray_loss", "the bound of three of four paths is 0.75 of before, or more where host links limit")


MEASURES = {
    "all_to_all": (all_to_all, row_list("all_to_all")),
    "all_reduce": (all_reduce, row_list("all_reduce")),
    "brownout": (brownout, [("brownout.job", "of before", 0.736, None, "higher")]),
    "gray_loss": (gray_loss, [("grayloss.1pct", "of 3 clean paths", 0.9, 0.97, "higher"),
                              ("grayloss.10pct", "of 3 clean paths", 0.9, 0.97, "higher")]),
}

if __name__ == "__main__":
    need_root()
    ROWS = Rows("contention-lab")
    for chosen in sys.argv[1:] or MEASURES:
        ROWS.measure(MEASURES[chosen][1], MEASURES[chosen][0])
    sys.exit(ROWS.finish())

#!/usr/bin/env python3
"""contention.py [NAME...] [soak]: jobs that share the trunks of the lab, compared with static ECMP, and with as many
connections in round robin.

Two jobs of 4 ranks each, all on the same 4 hosts of two leaves, with 2 NICs a host. Host links are 1.5 times as fast as
trunks. Each draw of source ports plays all variants one after the other, in its own order. A rank's throughput is measured at
the receiver, in the middle of the run. The ranks of both jobs count equally.

ecmp        the reference plugin, one connection for each pair and channel: the default of NCCL's sockets
spread      the reference plugin with as many connections for each pair as Foliot has lanes, round robin
failover    Foliot without traffic control: round robin over its lanes, no repath
full        Foliot
balanced    as ecmp, in a fabric that balances load itself (balance.bpf.c)
slow_full, slow_balanced: the same two with one uplink at 10 %

parts_*: round robin over lanes, then choice by lateness, credit and repath, each with those before it.
badstart: all connections between two hosts begin on one trunk (badstart.bpf.c), and one trunk has half its rate.

Two draws. `contention.py NAME… soak`: ten draws of ecmp and full, of which the worst counts, and three of all variants.
"""
import contextlib
import os
import random
import sys
import time

from balance import BadStart, Balance
from bound import Fabric, pairs
from job import FABRIC as JOB_FABRIC
from job import NS, PLUGIN, REFERENCE, Job
from world import ASKED, Lab, Missing, Rows, median, need_root, quantile, runs, seconds, spread

NAME = "bench-contention"
FABRIC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "contention.yaml")
TRUNK_MBPS, BUFFER_BYTES = 30, 120000  # as in that fabric
LANES = 4
SIZES = {"alltoall": "8M", "all_reduce": "4M"}  # a connection of the reference carries 1 and 3 MB of it each time
WAIT_US = 500  # pause between polls without progress: eight ranks that poll each 50 us would use a processor
SLOW_UPLINK = 1
SHORT = {"alltoall": "all_to_all", "all_reduce": "all_reduce"}
ECMP = (REFERENCE, {})
FULL = (PLUGIN, {"FOLIOT_MODE": "full", "FOLIOT_LANES_PER_SET": str(LANES)})
# The parts of traffic control, each together with those above it. Pacing affects only jobs of low priority: `job.priority`.
PARTS = {
    "round_robin": (PLUGIN, {"FOLIOT_MODE": "failover", "FOLIOT_LANES_PER_SET": str(LANES)}),
    "lateness": (PLUGIN, {"FOLIOT_LANES_PER_SET": str(LANES), "FOLIOT_CREDIT": "0", "FOLIOT_REPATH": "0"}),
    "credit": (PLUGIN, {"FOLIOT_LANES_PER_SET": str(LANES), "FOLIOT_REPATH": "0"}),
    "repath": FULL,
}
VARIANTS = {
    "ecmp": ECMP,
    "spread": (REFERENCE, {"REFERENCE_NTHREADS": "1", "REFERENCE_NSOCKS_PERTHREAD": str(LANES)}),
    "failover": (PLUGIN, {"FOLIOT_MODE": "failover", "FOLIOT_LANES_PER_SET": str(LANES)}),
    "full": FULL,
    "balanced": ECMP,
    "slow_full": FULL,
    "slow_balanced": ECMP,
}


@contextlib.contextmanager
def fabric_of(lab, variant):
    """The fabric of a variant."""
    slow = variant.startswith("slow_")
    with contextlib.ExitStack() as stack:
        if slow:
            lab.fault("brownout", f"trunk 0-{SLOW_UPLINK}", "--rate_mbps", str(TRUNK_MBPS / 10))
            stack.callback(lab.undo)
        if variant.endswith("balanced"):
            stack.enter_context(Balance(lab, rate_mbps=TRUNK_MBPS, buffer_bytes=BUFFER_BYTES, slow=SLOW_UPLINK if slow else -1))
        yield


class Trial:
    """One run of one variant: its ranks' rates in Mbit/s, of both jobs; in-band delays and message times in ms, p50 and p99."""

    def __init__(self, lab, operation, variant, jobs=2, hosts="0,1,2,3"):
        plugin, environment = VARIANTS[variant] if variant in VARIANTS else PARTS[variant]
        last = seconds(6)
        with fabric_of(lab, variant), Busy() as busy, \
                Job(lab, last, operation, hosts, plugin, jobs=jobs, true=True, iterations=1, wait_us=WAIT_US, size=SIZES[operation],
                    **environment) as job:
            pass
        self.busy = busy.share
        begin, end = job.span()
        if end - begin < NS * last // 2:
            raise Missing("the jobs ran too short a time together")
        begin += (end - begin) // 3  # traffic control needs time to settle
        self.rates = []
        for times, sums in job.receives:
            inside = [i for i, at in enumerate(times) if begin <= at < end]
            got = sums[inside[-1]] - sums[inside[0]] if len(inside) > 1 else 0
            self.rates.append(8e3 * got / (end - begin))
        self.mean = sum(self.rates) / len(self.rates)
        self.slowest = min(self.rates)
        messages = list(job.messages(begin, end))
        self.message_ms = [(quantile([whole for whole, _ in messages], p) or 0) / 1e6 for p in (0.5, 0.99)]
        # The reference reports no delays; when it is done with a send, its kernel has just taken the last byte.
        self.delay_ms = [(quantile([wire for _, wire in messages], p) or 0) / 1e6 if plugin == REFERENCE else job.pages.delay_ms(p)
                         for p in (0.5, 0.99)]


class Busy:
    """How busy the machine's processors were. Above nine tenths the run measures the processors."""

    def read(self):
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
        return sum(ticks) - ticks[3] - ticks[4], sum(ticks)

    def __enter__(self):
        self.before = self.read()
        return self

    def __exit__(self, *_):
        used, total = (after - before for after, before in zip(self.read(), self.before))
        self.share = used / max(1, total)


class Comparison:
    """All variants of an operation, draw by draw, as rows."""

    def __init__(self, rows, operation, name):
        self.rows, self.name, self.found = rows, name, {variant: [] for variant in VARIANTS}
        order = random.Random(1)
        with Lab(NAME, FABRIC, agents=False) as lab:
            for draw in range(runs(10, 2)):
                turn = list(VARIANTS) if draw < runs(3, 2) else ["ecmp", "full"]
                order.shuffle(turn)
                for variant in turn:
                    self.found[variant].append(Trial(lab, operation, variant))
                print(f"    {name}, draw {draw}: " + ", ".join(f"{v} {self.found[v][-1].mean:.1f} (slowest {self.found[v][-1].slowest:.1f})"
                                                          for v in turn) + " Mbit/s a rank", flush=True)

    def ratios(self, one, other):
        return [a.mean / b.mean for a, b in zip(self.found[one], self.found[other])]

    def worst(self, variant):
        return min(trial.slowest for trial in self.found[variant])

    def add(self, row, values, must, aim, note="", better="higher"):
        self.rows.add(f"contention.{self.name}.{row}", median(values), "ratio", must, aim, better, len(values), spread(values),
                      f"bench/lab/contention.py {self.name}", note)

    def rates(self):
        found = self.found
        self.add("ecmp_mean", self.ratios("full", "ecmp"), 1.5, None, f"mean of all ranks; {median([t.mean for t in found['ecmp']]):.1f} → "
                 f"{median([t.mean for t in found['full']]):.1f} Mbit/s")
        self.add("ecmp_slowest", [self.worst("full") / max(self.worst("ecmp"), 0.1)], 2.36, None,
                 f"slowest rank in the worst of {len(found['ecmp'])} draws; {self.worst('ecmp'):.1f} → {self.worst('full'):.1f} Mbit/s")
        self.add("spread", self.ratios("full", "spread"), 1.15, 1.35, f"against {LANES} connections a pair, round robin")
        self.add("spread.no_repath", self.ratios("failover", "spread"), None, None, "the same with our traffic control off")
        self.add("repath", self.ratios("full", "failover"), None, None, "traffic control on against off")
        self.add("fairness", [t.slowest / t.mean for t in found["full"]], 0.9, 0.97, "slowest rank over the mean")
        self.add("balanced", self.ratios("full", "balanced"), 0.97, 1.15, "against load balancing in the fabric, exact queues; healthy")
        self.rows.add(f"contention.{self.name}.busy", max(t.busy for trials in found.values() for t in trials), "of the processors", 0.9, None,
                      command=f"bench/lab/contention.py {self.name}", note="the busiest trial: above this it is processors that are measured")
        self.add("balanced.slow_uplink", self.ratios("slow_full", "slow_balanced"), 1.25, 1.4, "the same, one uplink at 10 %")

    def delays(self):
        for what, musts in (("delay", ((0.75, 0.1), (0.5, None))), ("message", ((0.75, 0.5), (0.6, None)))):
            for i, p in enumerate(("p50", "p99")):
                pairs = [(getattr(a, what + "_ms")[i], getattr(b, what + "_ms")[i]) for a, b in
                         zip(self.found["full"], self.found["ecmp"])]
                pairs = [(ours, theirs) for ours, theirs in pairs if ours and theirs]
                self.add(f"ecmp_{what}_{p}", [ours / theirs for ours, theirs in pairs], *musts[i],
                         f"{median([b for _, b in pairs]):.1f} → {median([a for a, _ in pairs]):.1f} ms" + (
                             "; in-band one-way delay; the reference's: from done at the sender, when the kernel has taken all, to done at the receiver"
                             if what == "delay" else "; from isend to done at the receiver"), "lower")


def two_jobs(rows, operation, name):
    comparison = Comparison(rows, operation, name)
    comparison.rates()
    comparison.delays()


def all_to_all(rows):
    """two all-to-all jobs"""
    two_jobs(rows, "alltoall", "all_to_all")


def all_reduce(rows):
    """two all-reduce jobs"""
    two_jobs(rows, "all_reduce", "all_reduce")


def parts(rows, operation, name):
    """Two jobs with one part of traffic control after the other, draw by draw; and their share of the links' bound, over all
    draws."""
    order, found = random.Random(1), {part: [] for part in ("ecmp", *PARTS)}
    with Lab(NAME, FABRIC, agents=False) as lab:
        for draw in range(runs(5, 2)):
            turn = list(found)
            order.shuffle(turn)
            for part in turn:
                found[part].append(Trial(lab, operation, part))
            print(f"    {name}, draw {draw}: " + ", ".join(f"{part} {trials[-1].mean:.1f}" for part, trials in found.items()) +
                  " Mbit/s a rank", flush=True)
    flows = pairs(operation, range(4))
    bound, cut = Fabric(FABRIC).bound(2 * flows)
    whole = bound * len(flows) / 4
    rates = [trial.mean / whole for trial in found["repath"]]
    rows.add(f"contention.of_bound.{name}", sum(rates) / len(rates), "of the bound", 0.9, 0.95, "higher", len(rates), spread(rates),
             f"bench/lab/contention.py parts_{name}", f"mean of all draws and ranks, worst draw {min(rates):.2f}; the bound is {whole:.1f} Mbit/s "
             f"a rank and job, by {cut}")
    for before, part in zip(("ecmp", *PARTS), PARTS):
        ratios = [a.mean / b.mean for a, b in zip(found[part], found[before])]
        means = [sum(t.mean for t in found[p]) / len(ratios) for p in (before, part)]
        rows.add(f"contention.parts.{name}.{part}", means[1] / means[0], "ratio", None if before == "ecmp" else 0.98, None, "higher",
                 len(ratios), spread(ratios), f"bench/lab/contention.py parts_{name}",
                 f"against {before}, means of all draws: {means[0]:.1f} → {means[1]:.1f} Mbit/s a rank; draw by draw {min(ratios):.2f} to "
                 f"{max(ratios):.2f}")


def parts_all_to_all(rows):
    """two all-to-all jobs, with one part of traffic control after the other"""
    parts(rows, "alltoall", "all_to_all")


def parts_all_reduce(rows):
    """two all-reduces, with one part of traffic control after the other"""
    parts(rows, "all_reduce", "all_reduce")


def badstart(rows):
    """an all-to-all whose connections between two hosts begin on one trunk, one trunk at half its rate: with and without repath"""
    flows, slow = pairs("alltoall", range(4)), 2
    left, cut = Fabric(FABRIC, {f"trunk 0-{slow}": TRUNK_MBPS / 2}).bound(flows)
    last, ratios, found = seconds(10), [], {"credit": [], "repath": []}
    with Lab(NAME, FABRIC, agents=False) as lab:
        lab.fault("brownout", f"trunk 0-{slow}", "--rate_mbps", str(TRUNK_MBPS / 2))
        for draw in range(runs(5, 2)):
            for part in ("repath", "credit") if draw % 2 else ("credit", "repath"):
                until = time.monotonic_ns() + int(5 * NS)  # ranks have met by then, and made all their connections
                plugin, environment = PARTS[part]
                with BadStart(lab, draw, until), \
                        Job(lab, last + 5, "alltoall", plugin=plugin, size=SIZES["alltoall"], wait_us=WAIT_US, iterations=1,
                            **environment) as job:
                    pass
                begin, end = job.span()
                if begin > until:
                    raise Missing("the ranks met too late: no draw was bad")
                found[part].append(job.rate(until + NS, end) * 8e-6 / len(flows) / left)
            ratios.append(found["repath"][-1] / found["credit"][-1])
            print(f"    draw {draw}: {found['credit'][-1]:.2f} → {found['repath'][-1]:.2f} of {left:.1f} Mbit/s a pair ({cut})", flush=True)
    rows.add("contention.badstart", median(ratios), "ratio", 1.3, 1.8, "higher", len(ratios), spread(ratios),
             "bench/lab/contention.py badstart", f"repath on against off, from 1 s after paths differ again; "
             f"{median(found['credit']):.2f} → {median(found['repath']):.2f} of the bound of {left:.1f} Mbit/s a pair of ranks, by {cut}; "
             f"worst draw {min(ratios):.2f}")


def row_list(name):
    higher = (("ecmp_mean", 1.5, None), ("ecmp_slowest", 2.36, None), ("spread", 1.15, 1.35), ("spread.no_repath", None, None),
              ("repath", None, None), ("fairness", 0.9, 0.97), ("balanced", 0.97, 1.15), ("balanced.slow_uplink", 1.25, 1.4))
    lower = (("ecmp_delay_p50", 0.75, 0.1), ("ecmp_delay_p99", 0.5, None), ("ecmp_message_p50", 0.75, 0.5), ("ecmp_message_p99", 0.6, None))
    return [(f"contention.{name}.{row}", "ratio", must, aim, "higher") for row, must, aim in higher] + \
        [(f"contention.{name}.{row}", "ratio", must, aim) for row, must, aim in lower]


def part_list(name):
    return [(f"contention.of_bound.{name}", "of the bound", 0.9, 0.95, "higher")] + \
        [(f"contention.parts.{name}.{part}", "ratio", None if part == "round_robin" else 0.98, None, "higher") for part in PARTS]


def brownout(rows):
    """one trunk at 10 % of its rate during one all-reduce: the job's rate compared with before, and with the remaining bound"""
    shares, rates, flows = [], [], pairs("all_reduce", (0, 2))
    with Lab(NAME, JOB_FABRIC, agents=False) as lab:
        for turn in range(runs(5, 1)):
            last = seconds(20)
            with Job(lab, last, "all_reduce", "0,2") as job:
                time.sleep(last * 0.5)
                lab.fault("brownout", f"trunk 0-{turn % 4}", "--rate_mbps", "5", "--for", f"{last * 0.4:.0f}s")
            onset = [e["after_raw_ns"] + job.shift for e in lab.events("brownout", "on")][-1]
            before, after = job.rate(onset - 3 * NS, onset), job.rate(onset + NS, onset + int(last * 0.35 * NS))
            shares.append(after / before)
            rates.append(after * 8e-6 / len(flows))
    left, cut = Fabric(JOB_FABRIC, {"trunk 0-0": 5}).bound(flows)
    rows.add("contention.brownout", median(shares), "of before", 0.95 * 155 / 200, None, "higher", len(shares), spread(shares),
             "bench/lab/contention.py brownout", "capacity of 4 trunks with one at 10 % is 155 of 200; from 1 s after its onset; "
             f"{median(rates) / left:.2f} of the bound of what is left, {left:.0f} Mbit/s a rank by {cut}; each turn: "
             + ", ".join(f"{share:.2f}" for share in shares))


def gray_loss(rows):
    """1 % and 10 % loss on one of four paths: the job's rate compared with the bound of the three clean paths, from 2 s on"""
    flows = pairs("all_reduce", (0, 2))
    for percent in (1, 10):
        shares, befores = [], []
        with Lab(NAME, JOB_FABRIC, agents=False) as lab:
            for turn in range(runs(5, 1)):
                last = seconds(20)
                with Job(lab, last, "all_reduce", "0,2") as job:
                    time.sleep(last * 0.4)
                    lab.fault("loss", f"trunk 0-{turn % 4}", "--loss", f"{percent}%", "--for", f"{last * 0.5:.0f}s")
                onset = [e["after_raw_ns"] + job.shift for e in lab.events("loss", "on")][-1]
                befores.append(job.rate(onset - 3 * NS, onset) * 8e-6 / len(flows))
                shares.append(job.rate(onset + 2 * NS, onset + int(last * 0.45 * NS)) * 8e-6 / len(flows))
        left, cut = Fabric(JOB_FABRIC, {"trunk 0-0": 0}).bound(flows)
        shares = [share / left for share in shares]
        rows.add(f"contention.grayloss.{percent}pct", median(shares), "of the bound", 0.9, 0.97, "higher", len(shares), spread(shares),
                 "bench/lab/contention.py gray_loss", f"{left:.0f} Mbit/s a rank over three clean paths of four, by {cut}; {left * median(shares):.0f}, and "
                 f"{median(befores):.0f} before")


def nic_brownout(rows):
    """one NIC of eight at 5 % of its rate for 20 s during an all-to-all: the job's rate compared with the remaining bound"""
    flows, shares, before = pairs("alltoall", range(4)), [], []
    whole = Fabric(FABRIC)
    rate = 0.05 * whole.link_mbps
    with Lab(NAME, FABRIC, agents=False) as lab:
        for turn in range(runs(5, 2)):
            last, host, nic = seconds(20), turn % 4, turn // 4 % 2 ^ 1
            with Job(lab, last + seconds(12), "alltoall", size="64M", wait_us=WAIT_US, iterations=1) as job:
                time.sleep(seconds(9))
                lab.fault("brownout", f"host{host}/nic{nic}", "--rate_mbps", str(rate), "--for", f"{last:.0f}s")
            onset = [e["after_raw_ns"] + job.shift for e in lab.events("brownout", "on")][-1]
            end = min(onset + int(last * NS), job.span()[1])
            left, cut = Fabric(FABRIC, {f"nic {host}.{nic}": rate}).bound(flows)
            # Only pairs with the slow host: the others are ahead of it within a step, and wait for it at the step's end.
            its = [r for rank, came in enumerate(job.arrivals) for r in came if host in (rank, r[3])]
            got = sum(r[1] for r in its if onset + NS <= r[0] < end) * 8e3 / (end - onset - NS) / 6
            before.append(job.rate(onset - int(seconds(5) * NS), onset) * 8e-6 / len(flows) / whole.bound(flows)[0])
            shares.append(got / left)
            print(f"    host {host}, NIC {nic}: {got:.1f} of {left:.1f} Mbit/s a pair ({cut})", flush=True)
    rows.add("contention.nic_brownout", median(shares), "of the bound", 0.9, 0.97, "higher", len(shares), spread(shares),
             "bench/lab/contention.py nic_brownout", f"{left:.1f} Mbit/s a pair of ranks, by {cut}; from 1 s after its onset; "
             f"{median(before):.2f} of the bound of all links before")


MEASURES = {
    "all_to_all": (all_to_all, row_list("all_to_all")),
    "all_reduce": (all_reduce, row_list("all_reduce")),
    "brownout": (brownout, [("contention.brownout", "of before", 0.736, None, "higher")]),
    "parts_all_to_all": (parts_all_to_all, part_list("all_to_all")),
    "parts_all_reduce": (parts_all_reduce, part_list("all_reduce")),
    "badstart": (badstart, [("contention.badstart", "ratio", 1.3, 1.8, "higher")]),
    "nic_brownout": (nic_brownout, [("contention.nic_brownout", "of the bound", 0.9, 0.97, "higher")]),
    "gray_loss": (gray_loss, [("contention.grayloss.1pct", "of the bound", 0.9, 0.97, "higher"),
                              ("contention.grayloss.10pct", "of the bound", 0.9, 0.97, "higher")]),
}

if __name__ == "__main__":
    need_root()
    ROWS = Rows("contention-lab")
    for chosen in ASKED or MEASURES:
        ROWS.measure(MEASURES[chosen][1], MEASURES[chosen][0])
    sys.exit(ROWS.finish())

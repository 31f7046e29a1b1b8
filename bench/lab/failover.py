#!/usr/bin/env python3
"""failover.py [NAME...] [soak]: an all-reduce in the lab while links, NICs and paths die under it.

The job is `foliot perf all_reduce` of 4 hosts on both leaves, with messages of 64 KiB and two rings. A fault's gap is the
longest interval between two completed receives, at the worst rank, that overlaps the second after the fault began or the
second after it ended. Nothing is subtracted. The row's note has the p99 of equal windows without a fault.
"""
import sys
import time

from bound import Fabric, pairs
from job import FABRIC, NS, Job
from world import ASKED, Lab, Missing, Rows, median, need_root, quantile, runs, seconds

NAME = "bench-failover"
WINDOW = NS
FAULTS = runs(500, 3)
LAST_S, QUIET_S = 1.2, 2.5  # windows for gaps: the second after a fault, and one far from any fault


class Plan:
    """Faults one after the other, each with quiet time before and after it."""

    def __init__(self, lab, count, last, quiet):
        self.lab, self.count, self.last, self.quiet = lab, count, last, quiet

    def duration(self):
        return self.count * (self.last + self.quiet) + 4

    def play(self, act):
        time.sleep(3)  # by then lanes are up, and rates are known
        for turn in range(self.count):
            begun = time.monotonic()
            act(turn, self.last)
            time.sleep(max(self.quiet, begun + self.last + self.quiet - time.monotonic()))


def onsets(lab, job, kind):
    return [e["before_raw_ns"] + job.shift for e in lab.events(kind, "on")], \
           [e["after_raw_ns"] + job.shift for e in lab.events(kind, "off")]


def gaps(job, begins, ends, quiet):
    """Gaps in the second after each fault began (and after it ended), and the p99 of seconds far from any fault."""
    first, last = job.span()
    marks = sorted(begins + ends)
    calm = []
    at = first + NS
    while at + WINDOW < last:
        if all(mark < at - quiet * NS * 0.6 or mark > at + WINDOW for mark in marks):
            calm.append(job.gap_ms(at, at + WINDOW))
        at += WINDOW // 2
    base = quantile(calm, 0.99)
    if base is None:
        raise Missing("no second without faults")
    return [job.gap_ms(t, t + WINDOW) for t in begins if t < last], [job.gap_ms(t, t + WINDOW) for t in ends if t + WINDOW < last], base


def measure_gap(rows, name, kind, act, count, must, aim, note=""):
    """One row: a kind of fault, `count` times in one job."""
    with Lab(NAME, FABRIC, agents=False) as lab:
        plan = Plan(lab, count, LAST_S, QUIET_S)
        with Job(lab, plan.duration()) as job:
            plan.play(lambda turn, last: act(lab, turn, last))
        begins, ends = onsets(lab, job, kind)
    down, up, base = gaps(job, begins, ends, plan.quiet)
    rows.add(f"failover.{name}.gap_ms", quantile(down + up, 0.99), "ms", must, aim, runs=len(down), spread=max(down + up) - min(down + up),
             command=f"bench/lab/failover.py {name}",
             note=f"begun: p50 {median(down):.0f}, worst {max(down):.0f}; ended: p50 {median(up) or 0:.0f}, worst {max(up, default=0):.0f}; "
             f"seconds without a fault: p99 {base:.0f}; wrong {job.wrong()}" + (f"; {note}" if note else ""))
    return job


def nic_of(turn):
    """Each of all eight after the others: a NIC that flapped a moment ago is held back, and would have no traffic to lose."""
    return f"nic {(turn * 3 + 1) % 4}.{turn // 4 % 2}"


def trunk_of(turn):
    return f"trunk {turn % 2}-{turn // 2 % 4}"


def carrier(rows):
    """a host's link goes down: carrier off at the switch's end"""
    measure_gap(rows, "carrier", "carrier", lambda lab, turn, last: lab.fault("carrier", nic_of(turn), "--for", f"{last}s"), FAULTS, 50, 10)


def trunk(rows):
    """a trunk goes down; leaves avoid it after 200 ms, as with a routing protocol"""
    measure_gap(rows, "trunk", "trunk", lambda lab, turn, last: lab.fault("trunk", trunk_of(turn), "--for", f"{last}s",
                                                                          "--reroute", "200ms"), FAULTS, 100, 20)


def blackhole_path(rows):
    """a trunk drops everything, carrier stays"""
    measure_gap(rows, "blackhole_path", "blackhole", lambda lab, turn, last: lab.fault("blackhole", trunk_of(turn), "--for",
                                                                                       f"{last}s"), FAULTS, 250, 50)


def blackhole_nic(rows):
    """a NIC's link drops everything in both directions, carrier stays"""
    measure_gap(rows, "blackhole_nic", "blackhole", lambda lab, turn, last: lab.fault("blackhole", nic_of(turn), "--for", f"{last}s"),
                FAULTS, 250, 50)


def blackhole_one_way(rows):
    """a NIC's link drops one direction"""
    measure_gap(rows, "blackhole_one_way", "blackhole", lambda lab, turn, last: lab.fault(
        "blackhole", nic_of(turn // 2), "--direction", "up" if turn % 2 else "down", "--for", f"{last}s"), FAULTS, 250, 50)


def carrier_late(rows):
    """a host's link goes down and its carrier event comes a second late, as plain NICs' do"""
    def act(lab, turn, last):
        lab.fault("blackhole", nic_of(turn), "--for", f"{last}s")
        time.sleep(1)
        lab.fault("carrier", nic_of(turn), "--for", f"{last - 1:.1f}s")
    measure_gap(rows, "carrier_late", "blackhole", act, FAULTS, 100, 20, "silent for a second, then the carrier")


def two_nics(rows):
    """two NICs of different hosts and rails within 300 ms"""
    def act(lab, turn, last):
        lab.fault("carrier", f"nic {turn % 4}.{turn // 4 % 2}", "--for", f"{last}s")
        time.sleep(0.1)
        lab.fault("carrier", f"nic {(turn + 2) % 4}.{1 - turn // 4 % 2}", "--for", f"{last}s")
    measure_gap(rows, "two_nics", "carrier", act, -(-FAULTS // 2), 100, 20)


def lost(rows):
    """a NIC of two is lost for 10 s: goodput meanwhile, and seconds lost"""
    shares, areas, before, flows = [], [], [], pairs("all_reduce", range(4))
    with Lab(NAME, FABRIC, agents=False) as lab:
        plan = Plan(lab, runs(5, 2), 10, 8)
        with Job(lab, plan.duration()) as job:
            plan.play(lambda turn, last: lab.fault("carrier", nic_of(turn), "--for", f"{last}s"))
        begins, ends = onsets(lab, job, "carrier")
    last = job.span()[1]
    for begin, end in zip(begins, ends):
        full = job.rate(begin - 3 * NS, begin)
        if end + 5 * NS > last:
            continue
        before.append(full)
        shares.append(job.rate(begin + NS, end))
        areas.append(((end + 5 * NS - begin) / NS) - job.bytes(begin, end + 5 * NS) / full)
    left, cut = Fabric(FABRIC, {"nic 1.0": 0}).bound(flows)  # any host: all are the same
    found = [share * 8e-6 / len(flows) / left for share in shares]
    rows.add("failover.lost.goodput", median(found), "of the bound", 0.95, 0.99, "higher", len(found), max(found) - min(found),
             "bench/lab/failover.py lost", f"{left:.0f} Mbit/s a pair of ranks with one NIC of two, by {cut}; {median(shares) / median(before):.2f} of the rate before, "
             f"which was {median(before) * 8e-6 / len(flows) / Fabric(FABRIC).bound(flows)[0]:.2f} of its bound")
    rows.add("failover.lost.seconds", median(areas), "s", 5.5, 5.05, runs=len(areas), spread=max(areas) - min(areas),
             command="bench/lab/failover.py lost", note="area of the dip over the rate before; 10 s of one NIC of two are 5 s")


def back_after(job, flaps):
    """Seconds from the carrier's return to the first half second in which all those flaps together are at 99 % of the 2 s
    before each."""
    last = job.span()[1]
    flaps = [(begin, end) for begin, end in flaps if end + 5 * NS <= last]
    full = sum(job.rate(begin - 2 * NS, begin) for begin, _ in flaps)
    if full <= 0:
        raise Missing("no flap with 5 s after it")
    after = 0
    while after < 4.5 * NS and sum(job.rate(end + after, end + after + NS // 2) for _, end in flaps) < 0.99 * full:
        after += NS // 50
    return after / NS


def flap(rows):
    """one flap of 2 s, again and again: when the job is back at full speed after each

    One by itself is a draw: other lanes have moved meanwhile, so the job is a little faster or slower than before. So the note has all of
    them taken together, too."""
    with Lab(NAME, FABRIC, agents=False) as lab:
        plan = Plan(lab, runs(24, 8), 2, 5)
        with Job(lab, plan.duration()) as job:
            plan.play(lambda turn, last: lab.fault("carrier", nic_of(turn), "--for", f"{last}s"))
        flaps_seen = list(zip(*onsets(lab, job, "carrier")))
    single = [back_after(job, [one]) for one in flaps_seen if one[1] + 5 * NS <= job.span()[1]]
    rows.add("failover.flap.back_s", max(single), "s", 2, 0.5, runs=len(single), spread=max(single) - min(single),
             command="bench/lab/failover.py flap", note="the worst of the flaps, each by itself: first half second at 99 % of the 2 s before (4.5: not within "
             f"that); median {median(single):.2f}; all flaps taken together {back_after(job, flaps_seen):.2f}")


def flaps(rows):
    """20 flaps in a minute on one NIC, compared with that NIC absent"""
    count = max(4, int(seconds(20)))
    moved = {}
    for absent in (False, True):
        with Lab(NAME, FABRIC, agents=False) as lab:
            with Job(lab, count * 3 + 16) as job:
                time.sleep(3)
                if absent:
                    lab.fault("carrier", "nic 1.0", "--for", f"{count * 3 + 10}s")
                else:
                    lab.fault("flap", "nic 1.0", "--count", str(count), "--down", "1.5s", "--up", "1.5s")
                time.sleep(count * 3 + 8)
            begin = onsets(lab, job, "carrier" if absent else "flap")[0][0]
        moved[absent] = job.bytes(begin, begin + (count * 3 + 10) * NS)
    rows.add("failover.flaps.time_ratio", moved[True] / moved[False], "ratio", 1.05, 0.9, runs=1, command="bench/lab/failover.py flaps",
             note=f"{count} flaps of 1.5 s each 3 s; bytes moved from the first flap to the last + 10 s")


MEASURES = {
    "carrier": (carrier, [("failover.carrier.gap_ms", "ms", 50, 10)]),
    "carrier_late": (carrier_late, [("failover.carrier_late.gap_ms", "ms", 100, 20)]),
    "two_nics": (two_nics, [("failover.two_nics.gap_ms", "ms", 100, 20)]),
    "trunk": (trunk, [("failover.trunk.gap_ms", "ms", 100, 20)]),
    "blackhole_path": (blackhole_path, [("failover.blackhole_path.gap_ms", "ms", 250, 50)]),
    "blackhole_nic": (blackhole_nic, [("failover.blackhole_nic.gap_ms", "ms", 250, 50)]),
    "blackhole_one_way": (blackhole_one_way, [("failover.blackhole_one_way.gap_ms", "ms", 250, 50)]),
    "lost": (lost, [("failover.lost.goodput", "of the bound", 0.95, 0.99, "higher"), ("failover.lost.seconds", "s", 5.5, 5.05)]),
    "flap": (flap, [("failover.flap.back_s", "s", 2, 0.5)]),
    "flaps": (flaps, [("failover.flaps.time_ratio", "ratio", 1.05, 0.9)]),
}

if __name__ == "__main__":
    need_root()
    ROWS = Rows("failover-lab")
    for chosen in ASKED or [name for name in MEASURES if name != "flaps"]:  # flaps takes minutes: only in the soak
        ROWS.measure(MEASURES[chosen][1], MEASURES[chosen][0])
    sys.exit(ROWS.finish())

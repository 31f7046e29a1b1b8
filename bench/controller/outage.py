#!/usr/bin/env python3
"""outage.py [SECONDS]: the controller away that long (an hour in `make soak`), with real agents; then its history must have no
gap, and the hosts' clocks must not have noticed: looked at as often with the controller there, for a machine that is short of
processors puts clocks into HOLDOVER by itself. Reports come each second, so that 360 s are as many reports as
an hour's at the default rate."""
import math
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import load  # noqa: E402
from world import AGENT, BUILD, Rows, TOP, need_root  # noqa: E402

sys.path.insert(0, os.path.join(TOP, "test", "controller"))
import fleet  # noqa: E402


class Bench(fleet.Fleet):
    HOSTS = 2
    AGENT, FOLIOT = AGENT, os.path.join(BUILD, "src", "app", "foliot")
    CONTROLLER = load.CONTROLLER

    def runTest(self):  # noqa: N802
        pass


LATE_S = 10  # a clock may need so long to be in step again after its agent had to wait for a processor


class Watch:
    """What the hosts' clocks say meanwhile, and whether their agents got the processor when they wanted it."""

    def __init__(self, bench):
        self.bench, self.late, self.late_at = bench, {}, {}
        self.samples, self.starved, self.off = 0, 0, []

    def look(self):
        now = time.monotonic()
        for host in ("h0", "h1"):
            answer = self.bench.ask(host)
            late = answer["cost"]["late_ticks"]
            if late > self.late.get(host, late):
                self.late_at[host] = now
            self.late[host] = late
            self.samples += 1
            if answer["clock_status"] == "SYNCED":
                continue
            if any(now - at < LATE_S for at in self.late_at.values()):  # its own, or that of the one that it is in step with
                self.starved += 1
            else:
                self.off.append(f"{host}'s clock: {answer['clock_status']}: {answer['clock']['why']}")

    def go_on(self, seconds, flaps):
        """Looks for so long; a link is cut for a second each time until `flaps` times. How often it was."""
        begin, done = time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            self.look()
            if done < flaps:  # what happened meanwhile is history, too
                self.bench.ip("c", "link", "set", "p1x1", "down")
                time.sleep(1)
                self.bench.ip("c", "link", "set", "p1x1", "up")
                done += 1
            time.sleep(min(2, seconds / 20))
        return done

    def words(self):
        return (f"{len(self.off) + self.starved} of {self.samples} looks not SYNCED, {self.starved} of them within {LATE_S} s of an agent "
                "that waited for a processor")


def noticed(there, away):
    """Looks at which a clock was out of step for no reason of its own, beyond the share that it is with the controller there, too."""
    return max(0, len(away.off) - math.ceil(len(there.off) / max(there.samples, 1) * away.samples))


def outage(rows, seconds):
    """with the controller, without it, and with it again"""
    need_root()
    bench = Bench()
    bench.setUp()
    begin = None
    try:
        c = bench.start()
        bench.members(0, 1)
        bench.wait(lambda: all(bench.ask(h)["clock_status"] == "SYNCED" for h in ("h0", "h1")), 90, lambda: str(bench.ask("h0")["clock"]))
        time.sleep(15)
        there, away = Watch(bench), Watch(bench)
        before = there.go_on(min(seconds, 60), 10)  # the same, to compare with: same machine, same flaps
        bench.wait(lambda: sum(e["word"] == "down" for e in bench.events(kind="link", host="h1")) >= before, 20, "the flaps before")
        begin = time.time()
        c.stop()
        flaps = away.go_on(seconds, 10)
        back = time.time()
        bench.controller()

        def downs():
            return [e for e in bench.events(kind="link", host="h1") if e["word"] == "down"][:-before or None]  # newest first

        def missing():
            values = bench.get(f"/api/v1/series?metric=port_state&nic=0&step_s=10&since_utc_ns={int(begin * 1e9)}"
                               f"&until_utc_ns={int(back * 1e9)}")["values"]
            return sum(v is None for v in values[1:-1])
        bench.wait(lambda: len(downs()) >= flaps and missing() == 0, 120, lambda: f"{len(downs())} downs, {missing()} missing")
        delivered = time.time() - back
        gaps = bench.events(word="history-gap") + bench.events(word="reports-lost")
        found = sorted(e["at_utc_ns"] for e in downs())
        outside = [t for t in found if not begin - 2 <= t / 1e9 <= back + 2]
        wrong = len(gaps) + abs(len(found) - flaps) + len(outside)
    finally:
        bench.tearDown()
        bench.doCleanups()
    command = f"outage.py {seconds:.0f}"
    rows.add("controller.outage_gaps", wrong, "", 0, None, command=command,
             note=f"{seconds:.0f} s of reports each second, {flaps} flaps meanwhile, all at their time")
    rows.add("controller.outage_noticed", noticed(there, away), "", 0, None, command=command,
             note=f"away: {away.words()}; with it there: {there.words()}" + "".join("; " + w for w in away.off[:2]))
    rows.add("controller.outage_delivered_s", delivered, "s", None, None, command=command, note="all of it, after it was back")


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 360
    rows = Rows("controller-outage")

    def away(rows):
        """the controller away, with it again"""
        outage(rows, seconds)
    rows.measure([("controller.outage_gaps", "", 0, None)], away)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main())

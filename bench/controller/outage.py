#!/usr/bin/env python3
"""outage.py [SECONDS]: the controller away that long (an hour in `make soak`), with real agents; then its history must have no
gap, and clock, mesh and links of the hosts must not have noticed. Reports come each second, so that 360 s are as many reports as
an hour's at the default rate."""
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


def outage(rows, seconds):
    """without a controller, and with it again"""
    need_root()
    bench = Bench()
    bench.setUp()
    worst, begin = [], None
    try:
        c = bench.start()
        bench.members(0, 1)
        bench.wait(lambda: all(bench.ask(h)["clock_status"] == "SYNCED" for h in ("h0", "h1")), 90, lambda: str(bench.ask("h0")["clock"]))
        time.sleep(15)
        begin = time.time()
        c.stop()
        flaps = 0
        while time.time() - begin < seconds:
            for host in ("h0", "h1"):
                clock = bench.ask(host)["clock_status"]
                if clock != "SYNCED":
                    worst.append(f"{host}'s clock: {clock}")
            if flaps < 10:  # what happened meanwhile is history, too
                bench.ip("c", "link", "set", "p1x1", "down")
                time.sleep(1)
                bench.ip("c", "link", "set", "p1x1", "up")
                flaps += 1
            time.sleep(min(2, seconds / 20))
        back = time.time()
        bench.controller()

        def downs():
            return [e for e in bench.events(kind="link", host="h1") if e["word"] == "down"]

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
    rows.add("controller.outage_noticed", len(worst), "", 0, None, command=command, note="; ".join(worst[:3]) or "clocks stayed SYNCED")
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

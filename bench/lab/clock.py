#!/usr/bin/env python3
"""clock.py: the clocks of a lab compared with the truth: idle, loaded, with greedy flows; their bounds; a restart; a step.

8 hosts x 2 NICs, each host with its own oscillator (offset, frequency, wander), and software stamps of the kernel. 8 agents,
the traffic and the switches share both processors.
"""
import csv
import os
import sys
import tempfile
import threading
import time

from world import ASKED, SOAK, Lab, Missing, Rows, Traffic, median, need_root, raw_ns, runs, seconds, spread

NAME = "bench-clock"


def settle(lab):
    lab.wait_synced()
    time.sleep(seconds(20))


def pair_rows(rows, id, result, must, aim, command):
    blocks = result["pair_error_p99_ns_blocks"]
    pairs = result["pair_error_ns"]
    synced = result["complete_instants"] / max(1, result["instants"])
    if not pairs["count"]:
        raise Missing("no two hosts were SYNCED")
    rows.add(id, pairs["p99"], "ns", must, aim, runs=max(1, len(blocks)), spread=spread(blocks), command=command,
             note=f"p50 {pairs['p50']}, max {pairs['max']} ns; blocks of 10 s {min(blocks or [0])} to {max(blocks or [0])} ns; "
                  f"all hosts SYNCED {synced:.1%} of the time")


def bound_rows(rows, id, result, width_must, width_aim, command):
    hard, statistical = result["hard"], result["statistical"]
    rows.add(f"clock.lab.hard.violations{id}", hard["broken"], "of " + str(hard["judged"]), 0, 0, "lower", command=command,
             note=f"worst excess {hard['worst_excess_ns']} ns")
    rows.add(f"clock.lab.hard.width{id}", hard["width_ns"]["p50"] / 1000, "us", width_must, width_aim, command=command,
             note=f"p99 {hard['width_ns']['p99'] / 1000:.1f} us")
    rows.add(f"clock.lab.statistical.violations{id}", statistical["broken"] / max(1, statistical["judged"]), "share", 1e-4, 1e-5,
             command=command, note=f"{statistical['broken']} of {statistical['judged']}, worst use {statistical['worst_share']:.0%}; "
             "samples of one run aren't independent: the simulator's rows judge the rate")
    p99 = result["pair_error_ns"]["p99"]
    rows.add(f"clock.lab.statistical.width{id}", statistical["width_ns"]["p50"] / max(1, p99), "x p99", 8, 4, command=command)
    rows.add(f"clock.lab.backwards{id}", result["backwards"], "times", 0, 0, "lower", command=command)


def steady(rows):
    """two host clocks, idle; with every link at 80 %; in the soak with one greedy TCP flow for each NIC"""
    with Lab(NAME) as lab:
        settle(lab)
        command = "foliot lab up && foliot lab eval --wait 60 --warmup 20 --seconds 60"
        idle = lab.eval(seconds(60))
        pair_rows(rows, "clock.lab.idle.p99_ns", idle, 300, 80, command)
        bound_rows(rows, "", idle, 30, 5, command)
        with Traffic(lab, "--pattern", "fill", "--load", "80") as traffic:
            time.sleep(seconds(10))
            loaded = lab.eval(seconds(40))
        command = "foliot lab traffic --pattern fill --load 80 & foliot lab eval --warmup 10 --seconds 40"
        pair_rows(rows, "clock.lab.loaded.p99_ns", loaded, 2000, 300, command)
        bound_rows(rows, ".loaded", loaded, None, None, command)
        if traffic.report:
            rows.add("clock.lab.loaded.traffic_share", traffic.report["received_mbps"] / traffic.report["offered_mbps"], "of 80 %",
                     better="higher", command=command)
        if not SOAK:
            return
        with Traffic(lab, "--pattern", "cross", "--greedy"):
            time.sleep(seconds(10))
            greedy = lab.eval(seconds(20))
        pair_rows(rows, "clock.lab.greedy.p99_ns", greedy, None, None,
                  "foliot lab traffic --pattern cross --greedy & foliot lab eval --warmup 10 --seconds 20")


class Series(threading.Thread):
    """`foliot lab eval --series` during a fault: each reading of each host."""

    def __init__(self, lab, duration, *arguments):
        super().__init__(daemon=True)
        self.lab, self.duration, self.arguments = lab, duration, arguments
        self.file = tempfile.mktemp(prefix="foliot-series-")
        self.result, self.rows = None, []
        self.start()

    def run(self):
        self.result = self.lab.eval(self.duration, "--interval", "5", "--series", self.file, *self.arguments)
        with open(self.file, newline="", encoding="ascii") as source:
            self.rows = [(int(r["raw_ns"]), int(r["clock"][4:]), r["status"], int(r["error_ns"]) if r["error_ns"] else None,
                          int(r["hard_ns"]) if r["hard_ns"] else None, int(r["statistical_ns"]) if r["statistical_ns"] else None)
                         for r in csv.DictReader(source) if "." not in r["clock"]]
        os.unlink(self.file)

    def of(self, host):
        self.join()
        return [row for row in self.rows if row[1] == host]


def good_from(readings, after_ns, hold_ns=1_000_000_000):
    """The first instant from which on, for a second, a host was SYNCED and within its statistical bound."""
    begin = None
    for at, _, status, error, _, statistical in readings:
        if at < after_ns:
            continue
        if status == "SYNCED" and error is not None and abs(error) <= statistical:
            begin = begin or at
            if at - begin >= hold_ns:
                return begin
        else:
            begin = None
    return None


def restart(rows):
    """an agent killed and started again: until its host is SYNCED by the new one"""
    found = []
    with Lab(NAME) as lab:
        settle(lab)
        for turn in range(runs(5)):
            host = (3 * turn + 1) % 8
            page = f"{lab.folder}/host{host}/clock.page"
            series = Series(lab, 10)
            time.sleep(1)
            old = os.stat(page).st_ino
            lab.fault("agent-kill", f"host{host}", "--for", "200ms")
            begin = None
            while begin is None and series.is_alive():
                begin = raw_ns() if os.path.exists(page) and os.stat(page).st_ino != old else None
                time.sleep(0.001)
            started = [e["after_raw_ns"] for e in lab.events("agent-kill", "off")][-1]
            good = good_from(series.of(host), begin or 0) if begin else None
            if good is None:
                raise Missing(f"host{host} wasn't SYNCED within 8 s of its agent's start")
            found.append((good - started) / 1e6)
    rows.add("clock.restart.lab_ms", median(found), "ms", 2000, 500, runs=len(found), spread=spread(found),
             command="foliot lab fault agent-kill host1 --for 200ms, foliot lab eval --series", note=f"slowest {max(found):.0f} ms")


def step(rows):
    """the clock of one host steps by 1 ms: until it is marked, until it is back in bounds, and disturbed hosts"""
    marked, back, outside, left, unmarked_wrong = [], [], 0, 0, 0
    with Lab(NAME) as lab:
        settle(lab)
        for turn in range(runs(5)):
            host = (3 * turn + 2) % 8
            series = Series(lab, 12, "--excuse", host)
            time.sleep(1)
            lab.fault("clock-step", f"host{host}", "--step", "1ms" if turn % 2 == 0 else "-1ms")
            at = lab.events("clock-step", "on")[-1]["before_raw_ns"] + 5_000_000
            own = series.of(host)
            mark = next((t for t, _, status, *_ in own if t >= at and status != "SYNCED"), None)
            good = good_from(own, mark or at)
            if mark is None or good is None:
                raise Missing(f"host{host} was {'never marked' if mark is None else 'not back within 11 s'}")
            marked.append((mark - at) / 1e6)
            back.append((good - at) / 1e6)
            outside += series.result["hard"]["broken"] + series.result["statistical"]["broken"]
            left += sum(c["status"] != "SYNCED" and c["clock"] != f"host{host}" and c["raw_ns"] > at for c in series.result["changes"])
    command = "foliot lab fault clock-step host2 --step 1ms, foliot lab eval --excuse 2 --series"
    rows.add("clock.step.lab.marked_ms", median(marked), "ms", 1000, 200, runs=len(marked), spread=spread(marked), command=command,
             note=f"slowest {max(marked):.0f} ms")
    rows.add("clock.step.lab.back_ms", median(back), "ms", 5000, 1000, runs=len(back), spread=spread(back), command=command,
             note=f"slowest {max(back):.0f} ms")
    rows.add("clock.step.lab.others_outside", outside, "readings", 0, 0, "lower", runs=len(back), command=command,
             note=f"other hosts left SYNCED {left} times")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("clock-lab")
    if not ASKED or "steady" in ASKED:
        ROWS.measure([("clock.lab.idle.p99_ns", "ns", 300, 80), ("clock.lab.loaded.p99_ns", "ns", 2000, 300),
                      ("clock.lab.hard.violations", "", 0, 0, "lower"),
                      ("clock.lab.hard.width", "us", 30, 5)], steady)
    if not ASKED or "restart" in ASKED:
        ROWS.measure([("clock.restart.lab_ms", "ms", 2000, 500)], restart)
    if not ASKED or "step" in ASKED:
        ROWS.measure([("clock.step.lab.marked_ms", "ms", 1000, 200), ("clock.step.lab.back_ms", "ms", 5000, 1000),
                      ("clock.step.lab.others_outside", "readings", 0, 0, "lower")], step)
    sys.exit(ROWS.finish())

#!/usr/bin/env python3
"""false.py [soak]: nothing is broken except agents, so every finding about links, paths and clocks is wrong.

Every link is at 95 %. Agents are starved, stopped for seconds, and restarted, one after another. A host that sends nothing may
be reported as silent, and an agent without CPU may report that: these findings are true. 2 minutes in the bench, 30 in the
soak.
"""
import json
import sys
import time

from world import SOAK, Lab, Rows, Traffic, Watch, need_root, seconds

NAME = "bench-false"
TRUE = ("peer-silent", "sensing-late", "clock-disrupted")  # of agents that were stopped


def disturb(lab, until):
    """Starves, stops and restarts agents, again and again."""
    turn = 0
    while time.monotonic() < until:
        host = (3 * turn) % 8
        lab.fault("agent-starve", f"host{host}", "--share", "80%", "--for", "8s")
        time.sleep(10)
        lab.fault("agent-stop", f"host{(host + 1) % 8}", "--for", "3s")
        time.sleep(8)
        if turn % 3 == 1:
            lab.fault("agent-restart", "all", "--every", "2s")
            time.sleep(22)
        turn += 1
    return turn


def verdicts(rows, duration, id):
    said = {}
    with Lab(NAME) as lab:
        lab.wait_synced()
        time.sleep(20)
        with Traffic(lab, "--pattern", "fill", "--load", "95"):
            time.sleep(5)
            begin = time.monotonic()
            watches = {host: Watch(lab, "findings", host, "--json") for host in range(8)}
            stop = begin + duration
            turns = 0
            while time.monotonic() < stop:
                turns += disturb(lab, min(stop, time.monotonic() + 30))
                for host, watch in watches.items():  # a watcher ends with its agent
                    if watch.process.poll() is not None:
                        said.setdefault(host, []).extend(watch.lines)
                        watches[host] = Watch(lab, "findings", host, "--json")
            time.sleep(5)
            for host, watch in watches.items():
                said.setdefault(host, []).extend(watch.lines)
            clock = lab.eval(5)
    wrong, true = {}, set()
    for host, lines in said.items():
        for _, line in lines:
            finding = json.loads(line) if line.startswith("{") else {}
            if finding.get("kind") != "finding":
                continue
            if finding["finding"] in TRUE:
                true.add((host, finding["id"]))
            else:
                wrong[host, finding["id"], finding["finding"]] = finding.get("text")
    for text in list(wrong.values())[:20]:
        print(f"    {text}")
    kinds = {}
    for _, _, kind in wrong:
        kinds[kind] = kinds.get(kind, 0) + 1
    rows.add(id, len(wrong), "verdicts", 0, 0, "lower", command="bench/lab/false.py",
             note=f"{duration:.0f} s of `foliot lab traffic --pattern fill --load 95`, {turns} rounds; " + (", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none") +
             f"; {len(true)} true ones of stopped agents; hard bounds broken afterwards {clock['hard']['broken']}")


def bench(rows):
    """2 minutes at 95 % load with agents starved, stopped and restarted"""
    verdicts(rows, seconds(120), "false.lab.verdicts.2min")


def soak(rows):
    """30 minutes of the same"""
    verdicts(rows, seconds(1800), "false.lab.verdicts")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("false-lab")
    ROWS.measure([("false.lab.verdicts" + ("" if SOAK else ".2min"), "verdicts", 0, 0, "lower")], soak if SOAK else bench)
    sys.exit(ROWS.finish())

#!/usr/bin/env python3
"""links.py: the time from carrier loss to the line that a person reads; flaps are counted, and none may be missed."""
import re
import sys
import time

from world import ASKED, Lab, Missing, Rows, Watch, median, need_root, runs, spread

NAME = "bench-links"


def detect(rows):
    """carrier off at the switch's end, until the line in `foliot links --watch`"""
    found, missed = [], 0
    with Lab(NAME) as lab:
        time.sleep(5)  # agents are up; links need no clock
        for turn in range(runs(20)):
            host, nic = (5 * turn + 1) % 8, turn % 2
            watch = Watch(lab, "links", host)
            time.sleep(0.5)
            lab.fault("carrier", f"nic {host}.{nic}", "--for", "1s")
            at = lab.events("carrier", "on")[-1]["before_raw_ns"]
            line = watch.first(at, lambda text, nic=nic: f"nic{nic}" in text and re.search(r"\b(down|lost|flap)", text), 3)
            if line is None:
                missed += 1
            else:
                found.append((line[0] - at) / 1e6)
                print(f"    host{host}/nic{nic}: {found[-1]:.1f} ms: {line[1]}")
            time.sleep(1.2)
            watch.stop()
    if not found:
        raise Missing("no line came")
    rows.add("links.detect_ms", median(found), "ms", 1000, 50, runs=len(found) + missed, spread=spread(found),
             command="foliot links --watch --host host1 & foliot lab fault carrier 'nic 1.0' --for 1s",
             note=f"slowest {max(found):.1f} ms, missed {missed}; a veth whose number is its peer's (host0/nic1) isn't urgent to the "
                  "kernel's link watch, which may hold its event back for a second")


def flaps_of(lab, host, nic):
    answer = lab.ask("links", host)[host]
    return next(n for n in answer["nics"] if n["name"] == f"nic{nic}")


def counted(rows):
    """1,000 flaps at up to 50 a second"""
    total = 0
    plan = [(200, "10ms", "10ms"), (300, "12ms", "13ms"), (300, "15ms", "18ms"), (200, "20ms", "30ms")]
    with Lab(NAME) as lab:
        time.sleep(5)  # agents are up; links need no clock
        before = flaps_of(lab, 2, 0)
        for count, down, up in plan:
            lab.fault("flap", "nic 2.0", "--count", count, "--down", down, "--up", up)
            while len(lab.events("flap", "off")) < total + count:
                time.sleep(0.2)
            total += count
        time.sleep(3)
        after = flaps_of(lab, 2, 0)
        findings = lab.ask("findings", 2)[2]["findings"]
    seen = after["flaps_total"] - before["flaps_total"]
    rows.add("links.flaps.counted", total - abs(seen - total), f"of {total}", 1000, None, "higher", command="foliot lab fault flap 'nic 2.0' "
             "--count 1000 --down 10ms --up 10ms; foliot links --json",
             note=f"carrier_down_count grew by {after['carrier_down_count'] - before['carrier_down_count']}")
    rows.add("links.flaps.said", int(any("flapped more than" in f["what"] for f in findings)), "yes/no", 1, None, "higher",
             command="the same; foliot findings --json: 'link has flapped more than 8 times within the past hour'")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("links-lab")
    if not ASKED or "detect" in ASKED:
        ROWS.measure([("links.detect_ms", "ms", 1000, 50)], detect)
    if not ASKED or "counted" in ASKED:
        ROWS.measure([("links.flaps.counted", "of 1000", 1000, None, "higher"), ("links.flaps.said", "yes/no", 1, None, "higher")], counted)
    sys.exit(ROWS.finish())

#!/usr/bin/env python3
"""owd.py: 50 us more on one direction of one path: how much is measured, and does the other direction stay?

The lab's relay is in that path before and after. It stamps the delay that it really adds: the truth.
"""
import mmap
import struct
import subprocess
import sys
import time

from world import Lab, Missing, Rows, median, need_root, raw_ns, seconds

NAME = "bench-owd"
SOURCE, SINK, SPINE = (0, 0), (5, 1), 2
BASE_US = 300  # the delay before: longer than the relay ever takes to wake up, so each packet leaves on time
ADDED_US = 50
HEAD, SAMPLES = 32, 16384  # lab/relay.h: struct relay_log


PAIR_NS = 1_000_000  # packets closer than this are a pair


class Relay:
    """The relay's measurements of its own delay: for each pair of probes the lower one, as an agent takes it. The first probe
    of a pair finds the relay asleep and waits 30 us for it; the second doesn't."""

    def __init__(self, lab):
        fault = lab.events("delay", "on")[-1]["fault"]
        with open(f"{lab.folder}/relay-{fault}-0", "rb") as file:
            self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def median_ns(self, begin, end):
        count = struct.unpack_from("<Q", self.map, 24)[0]
        samples = sorted(struct.unpack_from("<qq", self.map, HEAD + 16 * i) for i in range(min(count, SAMPLES)))
        delays, last = [], None
        for at, delay in samples:
            if begin <= at <= end:
                if last is not None and at - last < PAIR_NS:
                    delays[-1] = min(delays[-1], delay)
                else:
                    delays.append(delay)
                last = at
        if not delays:
            raise Missing("no probe went through the relay")
        return median(delays), len(delays)


def find(lab, host, local, peer):
    answer = lab.ask("mesh", host)[host]
    for edge in answer["edges"]:
        if edge["local_nic"] == local and edge["peer_nic"] == peer:
            return edge
    raise Missing(f"NIC {local} doesn't probe NIC {peer}")


def spine_of(lab, port):
    """The spine to which the leaf's kernel sends probes of this source port."""
    out = subprocess.run(["ip", "-n", f"foliot-{lab.name}-leaf0", "route", "get", "to", f"10.{SINK[0]}.{SINK[1]}.2", "from",
                          f"10.{SOURCE[0]}.{SOURCE[1]}.2", "iif", f"h{SOURCE[0]}n{SOURCE[1]}", "ipproto", "udp", "sport", str(port),
                          "dport", "7637"], capture_output=True, text=True, check=True).stdout.split()
    return out[out.index("dev") + 1]


def watch(lab, duration):
    """Medians over a time of p50s, polled each second: out by path number, in by path number; and the path over the spine."""
    out, back, ours = {}, {}, None
    begin = raw_ns()
    end = time.monotonic() + duration
    while time.monotonic() < end:
        edge = find(lab, SOURCE[0], SOURCE[0] * 2 + SOURCE[1], SINK[0] * 2 + SINK[1])
        for path in edge["paths"]:
            for way, into in (("out", out), ("in", back)):
                if path[way]["owd_ns_p50"] is not None:
                    into.setdefault(path["path"], []).append(path[way]["owd_ns_p50"])
            if spine_of(lab, path["port"]) == f"spine{SPINE}":
                ours = path["path"]
        time.sleep(1)
    return ({k: median(v) for k, v in out.items()}, {k: median(v) for k, v in back.items()}, ours, begin, raw_ns())


def added(rows):
    """50 us on one direction of one path"""
    edge = f"edge {SOURCE[0]}.{SOURCE[1]}>{SINK[0]}.{SINK[1]} path {SPINE}"
    with Lab(NAME) as lab:
        lab.wait_synced()
        time.sleep(45)  # by then paths are discovered
        lab.fault("delay", edge, "--delay", f"{BASE_US}us")
        relay = Relay(lab)
        time.sleep(15)  # p50 is of the last 10 s
        before = watch(lab, seconds(30))
        lab.fault("delay", edge, "--delay", f"{BASE_US + ADDED_US}us")
        time.sleep(15)
        after = watch(lab, seconds(30))
        truth_before, _ = relay.median_ns(*before[3:])
        truth_after, count = relay.median_ns(*after[3:])
    path = after[2]
    if path is None or path not in before[0] or path not in after[0]:
        raise Missing(f"no path by way of spine {SPINE} was found")
    seen = (after[0][path] - before[0][path]) / 1000
    truth = (truth_after - truth_before) / 1000
    moved = {k: abs(after[1][k] - before[1][k]) / 1000 for k in after[1] if k in before[1]}
    others = [abs(after[0][k] - before[0][k]) / 1000 for k in after[0] if k in before[0] and k != path]
    command = f"foliot lab fault delay '{edge}' --delay {BASE_US}us, later {BASE_US + ADDED_US}us; foliot mesh --json; medians of 30 s"
    rows.add("owd.lab.added_us", abs(seen - truth), "us off", 2, 0.2, command=command,
             note=f"seen {seen:+.2f} us, the relay stamped {truth:+.2f} us ({count} pairs)")
    rows.add("owd.lab.other_direction_us", max(moved.values()), "us", 2, 0.2, runs=len(moved), command=command,
             note=f"the most that any of {len(moved)} paths back moved; the other {len(others)} paths out by at most {max(others or [0]):.2f} us")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("owd-lab")
    ROWS.measure([("owd.lab.added_us", "us off", 2, 0.2), ("owd.lab.other_direction_us", "us", 2, 0.2)], added)
    sys.exit(ROWS.finish())

#!/usr/bin/env python3
"""One fault is one incident, although each host reports it in its own way. usage: test_faults.py CONTROLLER AGENT FOLIOT"""
import os
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402
import wire  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))
ROUTERS = ["leaf0", "leaf1", "leaf2", "spine0", "spine1"]
NIC, SPINE, TRUNK = 2, 4, 6  # enum element_kind
AT_NIC, AT_LEAF, AT_SPINE = 2, 3, 4  # enum place_kind
ALIVE, DEAD = 1, 4


def place(kind, number):
    return wire.number(1, kind) + wire.number(2, number + 1)


def element(kind, a, b=None):
    return wire.number(1, kind) + wire.data(3, a) + (wire.data(4, b) if b else b"")


def way(sender, receiver, port):
    """Routers from NIC to NIC: both NICs of host i are on leaf i % 3."""
    a, b = sender // 2 % 3, receiver // 2 % 3
    return [a] if a == b else [a, 3 + port % 2, b]


def finding(number, sender, receiver, port, suspect, sure, at):
    body = wire.varint(1 << 3 | 5) + (7).to_bytes(4, "little") + wire.number(2, number) + wire.data(3, "path-dead")
    body += wire.number(5, sender + 1) + wire.number(6, receiver + 1) + wire.number(9, 2) + wire.number(10, port)
    body += wire.number(12, at << 1) + wire.number(18, sure) + wire.data(26, suspect)
    return wire.number(1, 1) + wire.number(2, at << 1) + wire.data(4, body)


class TestFaults(fleet.Fleet):
    HOSTS = 6

    def paths(self, host):
        """The paths to this host, as its report has them, for each (sender, receiver, port)."""
        return [(2 * k + rail, 2 * host + rail, port) for rail in (0, 1) for k in range(6) if k != host for port in range(7640, 7644)]

    def table(self, host):
        own, out = self.paths(host), [(2 * host + rail, 2 * k + rail, port) for rail in (0, 1) for k in range(6) if k != host for port in range(7640, 7644)]
        ways = [way(*p) for p in out]
        return (wire.fixed64(1, 99) + wire.packed(2, [p[1] for p in own]) + wire.packed(3, [p[0] for p in own]) + wire.packed(4, [p[2] for p in own]) +
                wire.data(5, bytes(8 * len(own))) + wire.packed(6, [p[0] for p in out]) + wire.packed(7, [p[1] for p in out]) +
                wire.packed(8, [p[2] for p in out]) + wire.packed(9, [len(w) for w in ways]) +
                wire.packed(10, [r + 1 for w in ways for r in w]) + b"".join(wire.data(11, name) for name in ROUTERS))

    def say(self, host, events=()):
        """A report of now. Its time is from a clock that runs on."""
        self.numbers[host] += 1
        states = [DEAD if self.lost(*p) else ALIVE for p in self.paths(host)]
        rollup = wire.fixed64(1, 99) + wire.packed(2, [65] * len(states), True) + wire.packed(3, [65] * len(states), True) + wire.packed(5, states)
        extra = wire.data(5, wire.number(1, 1)) + wire.data(7, self.table(host)) + wire.data(8, rollup)
        ports = [wire.number(1, 2 * host + rail) + wire.number(2, 1) + wire.number(15, 2) for rail in (0, 1)]
        now = time.monotonic_ns()
        body = wire.batch([(self.numbers[host], wire.report(events, at=now, covers=1000, ports=ports, extra=extra))], oldest=self.numbers[host], now=now)
        self.assertEqual(self.post("/agent/v1/report", body, **self.identity(f"h{host}"))[0], 200)

    def lost(self, sender, receiver, port):
        return any(fault(sender, receiver, port) for fault in self.broken)

    def incidents(self):
        return [i for i in self.get("/api/v1/incidents")["items"] if i["state"] not in ("resolved", "merged")]

    def report_until(self, check, seconds, tell):
        """All hosts report again and again, as agents do."""
        over = threading.Event()

        def all_hosts():
            while not over.wait(0.3):
                for host in range(6):
                    self.say(host)
        thread = threading.Thread(target=all_hosts)
        thread.start()
        try:
            return self.wait(check, seconds, tell)
        finally:
            over.set()
            thread.join()

    def test_two_faults_are_two_incidents(self):
        # they report more often, so a pause of the machine makes none silent or late
        controller = self.start(report="5s", beat="20s")
        self.numbers, self.broken = [0] * 6, []
        for host in range(6):
            self.join(host)
        for host in range(6):
            self.say(host)
        trunk = lambda s, r, port: {(0, 4)} & set(zip(way(s, r, port), way(s, r, port)[1:]))  # leaf0 -> spine1
        sender = lambda s, r, port: s == 3                                                    # h1's second NIC can't send
        self.broken = [trunk, sender]
        at = time.monotonic_ns()
        # each host alone takes it for something else: its own trunk, the spine, one of many NICs
        for host in (1, 2, 4, 5):
            own = element(TRUNK, place(AT_LEAF, host % 3), place(AT_SPINE, 1))
            said = [finding(1, 0, 2 * host, 7641, own if host < 3 else element(SPINE, place(AT_SPINE, 1)), host < 3, at)]
            if host != 1:
                said.append(finding(2, 3, 2 * host + 1, 7640, element(NIC, place(AT_NIC, 2 * host + 1)), host == 2, at))
            self.say(host, said)
        for host in (0, 3):
            self.say(host, [finding(2, 3, 2 * host + 1, 7640, element(NIC, place(AT_NIC, 2 * host + 1)), 0, at)])

        def named():
            elements = [i["element"] for i in self.incidents()]
            kinds = sorted(e["kind"] for e in elements)
            return kinds == ["nic", "trunk"] and elements
        elements = self.report_until(named, 10, lambda: str([(i["element"], i["text"]) for i in self.incidents()]))
        nic, = [e for e in elements if e["kind"] == "nic"]
        one, = [e for e in elements if e["kind"] == "trunk"]
        self.assertEqual(nic["name"], "h1/nic1")
        self.assertEqual((one["name"], one["direction"]), ("trunk leaf0 - spine1", "out"))
        # a host that only sees the fault is ok; the host that can't send isn't
        self.report_until(lambda: {h["name"]: h["health"] for h in self.get("/api/v1/hosts")["items"]} ==
                          {f"h{i}": "bad" if i == 1 else "ok" for i in range(6)}, 10, lambda: str(self.get("/api/v1/hosts")))
        # a restart during the faults: single hosts' findings don't count until all hosts have reported again
        before = {(i["incident"], i["element"]["name"]) for i in self.incidents()}
        self.assertEqual(controller.stop(), 0)
        self.controller()
        seen, ill = set(), set()
        for _ in range(12):
            seen |= {(i["incident"], i["element"]["name"]) for i in self.incidents()}
            ill |= {h["name"] for h in self.get("/api/v1/hosts")["items"] if h["health"] == "bad"}
            for host in range(6):
                self.say(host)
            time.sleep(0.5)
        self.assertEqual(seen, before)
        self.assertEqual(ill, {"h1"})


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)

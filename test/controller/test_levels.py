#!/usr/bin/env python3
"""Service levels over reports that the test makes. usage: test_levels.py CONTROLLER AGENT FOLIOT"""
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402
import wire  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))

LEVELS = """
pods: {a: [leaf1, leaf2]}
levels:
  - {name: rack-delay, owd_p99: 10us, within: leaf, for: 1s}
  - {name: pod-hops, hops: 3, within: pod, for: 1s}
  - {name: rail-loss, loss: 0.1%, within: rail, for: 1s}
  - {name: everywhere, owd_p50: 1ms, for: 1s}
"""


def code(ns):
    """delay_encode of core/fleet/delay_code.h: exact below 128, then 64 steps an octave."""
    if ns < 64:
        return ns + 1
    shift = ns.bit_length() - 7
    return (shift << 6) + (ns >> shift) + 1


class TestLevels(fleet.Fleet):
    numbers = {}

    def foliot(self, *arguments, status=0):
        done = subprocess.run(["ip", "netns", "exec", self.space("c"), self.FOLIOT, *arguments], text=True, check=False,
                              capture_output=True, env=dict(os.environ, FOLIOT_TOKEN=self.admin))
        if status is None:
            return done.returncode, done.stdout + done.stderr
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def say(self, i, delays, hops=(), loss=0):
        """h<i> reports the paths into its nic0, {from NIC: p99 in ns}, and the hops of its own packets."""
        pairs = sorted(delays)
        own = 2 * i
        table = (wire.fixed64(1, 99) + wire.packed(2, [own] * len(pairs)) + wire.packed(3, pairs) + wire.packed(4, [7640] * len(pairs)) +
                 wire.data(5, bytes(8 * len(pairs))) + wire.packed(6, [own] * len(hops)) + wire.packed(7, [to for to, _ in hops]) +
                 wire.packed(8, [7640] * len(hops)) + wire.packed(9, [n for _, n in hops]))
        codes = [code(delays[p]) for p in pairs]
        rollup = wire.fixed64(1, 99) + wire.packed(2, codes, True) + wire.packed(3, codes, True)
        if loss:
            rollup += wire.packed(4, [loss] * len(pairs))
        number = self.numbers[i] = self.numbers.get(i, 0) + 1
        report = wire.report(covers=1000, extra=wire.data(7, table) + wire.data(8, rollup))
        status, body = self.post("/agent/v1/report", wire.batch([(number, report)], oldest=number), **self.identity(f"h{i}"))
        self.assertEqual(status, 200, body)

    def level(self, name):
        return next(x for x in self.get("/api/v1/levels")["items"] if x["name"] == name)

    def test_levels(self):
        self.numbers = {}
        self.write("levels.yaml", LEVELS)
        c = self.start(extra=f"levels: {self.path('levels.yaml')}\n", report="2s", beat="10s")  # a round of judging each report; silence after three
        for i, leaf in enumerate(("leaf1", "leaf1", "leaf2")):
            self.join(i, leaf=leaf)

        def all_say(slow=4000, hops=3, loss=0):
            self.say(0, {2: 4000, 4: 6000}, [(2, 1), (4, 3)])
            self.say(1, {0: slow, 4: 6000}, [(0, 1), (4, 3)], loss)
            self.say(2, {0: 6000, 2: 6000}, [(0, 3), (2, hops)])

        def holds(true, **more):
            """Waits for true() with fresh reports of all hosts: a pause of the machine makes them silent."""
            def again():
                all_say(**more)
                return true()
            return self.wait(again, 20, lambda: str(self.get("/api/v1/levels")))

        def until(name, state, **more):
            holds(lambda: self.level(name)["state"] == state, **more)
        self.assertEqual({x["state"] for x in self.get("/api/v1/levels")["items"]}, {"unknown"})
        self.foliot("levels", status=1)
        for name in ("rack-delay", "pod-hops", "rail-loss", "everywhere"):
            until(name, "met")
        holds(lambda: [(x["paths"], x["paths_unmeasured"]) for x in self.get("/api/v1/levels")["items"]] == [(2, 0)] + [(6, 0)] * 3)
        holds(lambda: self.foliot("levels", status=None)[0] == 0)
        # One slow direction within the rack breaks that level and no other; the answer names the path and its hosts.
        until("rack-delay", "broken", slow=94000)
        rack = holds(lambda: (found := self.level("rack-delay")) and found["state"] == "broken" and found["paths_unmeasured"] == 0 and found, slow=94000)
        self.assertEqual((rack["worst"]["from"], rack["worst"]["to"], rack["paths_beyond"]), ("h0/nic0", "h1/nic0", 1))
        self.assertAlmostEqual(rack["worst"]["value"], 94000, delta=94000 * 0.02)
        self.assertEqual({x["nic"] for x in rack["by"]}, {"h0/nic0", "h1/nic0"})
        until("everywhere", "met", slow=94000)
        status, text = holds(lambda: "worst: h0/nic0 -> h1/nic0" in (told := self.foliot("levels", status=None))[1] and told, slow=94000)
        self.assertEqual(status, 1, text)
        holds(lambda: [a for a in self.get("/api/v1/alerts")["items"] if a["rule"] == "level-broken"], slow=94000)
        until("rack-delay", "met")
        until("pod-hops", "broken", hops=5)
        holds(lambda: (worst := self.level("pod-hops")["worst"]) and (worst["from"], worst["value"]) == ("h2/nic0", 5), hops=5)
        until("rail-loss", "broken", loss=2000)
        words = [e["word"] for e in self.events(kind="controller")]
        self.assertLessEqual({"level-broken", "level-met"}, set(words))
        # A file with a mistake: the old levels stay, and the error is reported. Another file: a level that both have goes on.
        self.write("levels.yaml", LEVELS.replace("10us", "10"))
        c.process.send_signal(signal.SIGHUP)
        self.wait(lambda: "levels.yaml:4:" in (self.get("/api/v1/levels")["error"] or ""), 5, c.log)
        self.assertEqual(len(self.get("/api/v1/levels")["items"]), 4)
        self.write("levels.yaml", "levels: [{name: everywhere, owd_p50: 1ms, for: 1s}]\n")
        c.process.send_signal(signal.SIGHUP)
        self.wait(lambda: len(self.get("/api/v1/levels")["items"]) == 1, 5, c.log)
        self.assertIsNone(self.get("/api/v1/levels")["error"])
        until("everywhere", "met")
        # All hosts are silent: no level is met.
        self.wait(lambda: self.level("everywhere")["state"] == "unknown", 40, lambda: str(self.get("/api/v1/levels")))


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)

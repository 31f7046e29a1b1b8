#!/usr/bin/env python3
"""The switches of audit.yaml: a host takes part in nothing, a check sends no packets; before an audit and during it.
usage: test_inspection_off.py CONTROLLER AGENT FOLIOT"""
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402
import own_hosts  # noqa: E402
import wire  # noqa: E402
from own_hosts import RUNS  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))
LOOK, MATRIX, PERF = 14, 15, 16  # of an answer
OFF = "switched off by anna: on the bench"


class TestOff(own_hosts.OwnHosts):
    HOSTS, NICS, via = 3, 2, 0
    OS = ("os", "os.kernel\tvalue\t\t1\t/x\n", b"")

    def tls(self, certificate=None, key=None, i=0):
        return super().tls(certificate, key, self.via)

    def settings(self, text=""):
        self.write("audit.yaml", "version: 1\n" + text)

    def begin_fleet(self, text=""):
        self.settings(text)
        self.start(extra=f"audit: {self.path('audit.yaml')}\n")
        self.said = [0] * self.HOSTS
        for i in range(self.HOSTS):
            self.join(i)

    def speak(self, i, extra=b""):
        self.via = i  # each has its own address
        self.said[i] += 1
        return self.say(self.said[i], extra, features=31, host=f"h{i}", fleet_ns=time.time_ns(), covers=1000)

    def begin_run(self, wish, not_read=()):
        """Begins an audit that leaves no other host out. If the machine pauses, hosts are silent for a moment: then it tries
        again."""
        self.looks, self.matrices, self.tests, self.first_tests = {}, {}, {}, {}

        def begun():
            for i in range(self.HOSTS):
                self.speak(i)
            run = self.request("POST", RUNS, wish)[2].get("run")
            if run and {o["host"] for o in self.get(f"{RUNS}/{run}")["not_read"]} == set(not_read):
                return int(run)
            if run:
                self.request("DELETE", f"{RUNS}/{run}")
            return None
        return self.wait(begun, 30, lambda: str(self.get(RUNS)))

    def answer(self, i, run, fields):
        """A host reports, and answers these fields of its requests."""
        told = self.speak(i)
        for field, plans in ((LOOK, self.looks), (MATRIX, self.matrices), (PERF, self.tests)):
            if field in told:
                plans[i] = wire.fields(told[field][0])
        if PERF in told:
            self.first_tests.setdefault(i, self.tests[i])  # tests of a NIC that all fail are repeated once
        if LOOK in told and LOOK in fields:
            self.speak(i, self.sheet(run, self.looks[i][2][0], self.OS))
        if MATRIX in told and MATRIX in fields:
            plan = self.matrices[i]
            hosts, rails = plan[3][0], plan[4][0]
            rounds = hosts - 1 + hosts % 2 + (rails - 1 + rails % 2) * hosts
            for nic in list(plan[5][0]):
                if nic and (nic - 1) // self.NICS == i:
                    self.speak(i, self.row(plan[1][0], nic - 1, b"\5" * rounds, b"\5" * rounds, b"\x40\0" * rounds))
        if PERF in told and PERF in fields:
            self.speak(i, wire.data(15, wire.fixed64(1, self.tests[i][1][0]) + wire.number(2, 2**32 - 1) + wire.number(3, 3) + wire.data(4, "no way")))
        return told

    def drive(self, run, state, fields=(LOOK, MATRIX, PERF), also=None):
        """All hosts report, and answer these fields, until the audit has come so far, and also() holds."""
        def reached():
            told = [self.answer(i, run, fields) for i in range(self.HOSTS)]
            return self.get(f"{RUNS}/{run}")["state"] == state and (also is None or also(told))
        self.wait(reached, 30, lambda: str(self.get(f"{RUNS}/{run}")))
        return self.get(f"{RUNS}/{run}")

    def notes(self, run):
        return {(n["host"], n["note"]) for n in self.get(f"{RUNS}/{run}/matrix")["nics"]}

    def steps(self, i):
        """(ranks, ways) of each step of its plan."""
        return [((f := wire.fields(step)).get(2, [0])[0], f.get(8, [0])[0]) for step in self.first_tests[i][6]]

    def test_one_of_three_is_off(self):
        """That host is not read, no host tries to reach it, and it is in no round and no test."""
        self.begin_fleet("off: {hosts: {h2: 'anna: on the bench'}}\n")
        run = self.begin_run({"matrix": True, "bandwidth": True}, ["h2"])
        done = self.drive(run, "done")
        self.assertEqual([set(plans) for plans in (self.looks, self.matrices, self.tests)], [{0, 1}] * 3)
        self.assertEqual([wire.fields(peer)[1] for peer in self.looks[0][4]], [[b"h1"]])
        self.assertEqual(list(self.matrices[0][5][0])[4:], [0, 0])  # whom its rounds are with
        self.assertEqual(self.steps(0), [(2, 0), (2, 1)] * 2)       # as a fleet of two has them: a pair, and its ways
        self.assertEqual([(o["host"], o["note"]) for o in done["not_read"]], [("h2", OFF)])
        self.assertEqual(self.notes(run), {("h0", None), ("h1", None), ("h2", OFF)})
        marks = {n["host"]: set(n["marks"]) for n in self.get(f"{RUNS}/{run}/nodes")["items"]}
        self.assertEqual(marks["h2"], {"S"})

    def under_way(self, wish, state, part):
        """Waits until a run is in that state and all hosts have got their part."""
        run = self.begin_run(wish)
        self.drive(run, state, (LOOK,), lambda told: all(part in t for t in told))
        return run

    def test_meanwhile(self):
        """A host leaves a running matrix, and another host leaves a running test. Each leaves with its next beat, and no host
        waits for it."""
        self.begin_fleet()
        run = self.under_way({"matrix": True, "bandwidth": True}, "measuring", MATRIX)
        self.settings("off: {hosts: {h2: 'anna: on the bench'}}\n")
        self.drive(run, "measuring", (), lambda told: [MATRIX in t for t in told] == [True, True, False])
        self.drive(run, "testing", (MATRIX,), lambda told: [PERF in t for t in told] == [True, True, False])
        self.assertEqual(self.steps(0), [(2, 0), (2, 1)] * 2)
        self.settings("off: {hosts: {h1: 'anna: on the bench', h2: 'anna: on the bench'}}\n")
        self.drive(run, "testing", (), lambda told: [PERF in t for t in told] == [True, False, False])
        done = self.drive(run, "done")
        self.assertEqual((done["not_read"], self.notes(run)), ([], {("h0", None), ("h1", None), ("h2", OFF)}), done)
        found = {(r["host"], r["check"]): r for r in self.get(f"{RUNS}/{run}/results?limit=1000&status=unknown")["items"]}
        self.assertEqual({h: found[h, "be.bw.pair"]["note"] for h in ("h0", "h1", "h2")},
                         {"h0": "failed: no way", "h1": f"refused: {OFF}", "h2": f"refused: {OFF}"})
        self.assertEqual({h for h, check in found if check == "be.matrix.reach"}, {"h2"})

    def test_checks(self):
        """A check that is off sends nothing: marks, ways, pairs, packets over the front end."""
        self.begin_fleet("checks: {be.roce.dscp_path: {off: anna}, be.bw.path: {off: anna}, fe.reach: {off: anna}, fe.path_mtu: {off: anna}}\n")
        run = self.begin_run({"matrix": True, "bandwidth": True})
        self.drive(run, "done")
        self.assertEqual([4 in self.looks[0], 13 in self.matrices[0], {ways for _, ways in self.steps(0)}], [False, False, {0}])
        self.settings("checks: {be.bw.pair: {off: anna}}\n")
        run = self.begin_run({"bandwidth": True})
        self.assertEqual((self.drive(run, "done")["tests_why"], self.tests), ("such tests are switched off by anna", {}))

    def test_checks_meanwhile(self):
        """Switching a check off ends the sending of its packets."""
        self.begin_fleet()
        run = self.under_way({"matrix": True}, "measuring", MATRIX)
        self.assertEqual(self.matrices[0][13], [26])
        self.settings("checks: {be.roce.dscp_path: {off: anna}}\n")
        self.drive(run, "done", ())
        self.assertEqual({note for _, note in self.notes(run)}, {"its marked packets are switched off by anna"})
        self.settings()
        run = self.under_way({"matrix": True}, "measuring", MATRIX)
        self.settings("off: {classes: {packets: anna}}\n")
        self.drive(run, "done", ())
        self.assertEqual({note for _, note in self.notes(run)}, {"packets are switched off by anna"})
        self.settings()
        run = self.under_way({"bandwidth": True}, "testing", PERF)
        self.settings("checks: {be.bw.pair: {off: anna}}\n")
        self.assertEqual(self.drive(run, "done", ())["tests_why"], "such tests are switched off by anna")


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)

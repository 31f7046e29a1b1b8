#!/usr/bin/env python3
"""An audit with all stages and made-up sheets, rows and test results. It is stopped in each stage, and its controller is killed
while tests run.
usage: test_inspection_stages.py CONTROLLER AGENT FOLIOT"""
import os
import signal
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402
import test_inspection_matrix as matrix  # noqa: E402
import wire  # noqa: E402
from own_hosts import RUNS  # noqa: E402

CELLS = 6 * 10 * 2  # of six hosts with two NICs, both ways


class Stages(matrix.TestMeanwhile):
    FEATURES, WISH = 23, {"matrix": True, "nccl": True}
    RATE, SLOW = 10 ** 10, 6 * 10 ** 9
    slow = None  # a host: all tests with it carry less
    test_controller_killed_at_every_stage = test_hosts_that_leave_and_come = None
    tested = None  # hosts that get a plan; None: all
    hold = None  # (hosts, steps): these hosts report only the first steps of the plan

    def tell_tests(self, i, plan):
        """Sends this host's results of the plan, each once. Hosts with the same leader in a step are one group."""
        name = plan[1][0]
        plans = self.plans.setdefault(name, {})
        plans[i] = [wire.fields(p) for p in plan[6]] if 6 in plan else plans.get(i, [])
        for step, part in enumerate(plans[i] if len(plans) == (self.tested or self.HOSTS) else ()):
            if part.get(2, [0])[0] == 0 or (name, i, step) in self.tested_by or (self.hold and (i in self.hold[0] or step >= self.hold[1])):
                continue
            group = {k for k in plans if plans[k][step].get(2, [0])[0] > 0 and plans[k][step].get(3, [0]) == part.get(3, [0])}
            self.tested_by[name, i, step] = group
            self.speak(i, self.result_of(name, step, self.SLOW if self.slow in group else self.RATE))

    def begin(self):
        self.begin_fleet()
        return self.begin_again()

    def begin_again(self):
        self.told, self.tested_by, self.plans, self.hold = 0, {}, {}, None
        return self.begin_all()

    def end(self, run, state):
        self.wait(lambda: self.state(run) == state, 60, lambda: str(self.get(f"{RUNS}/{run}")))
        return self.get(f"{RUNS}/{run}")

    def results(self, run):
        """{(check, host): (status, reason, note)}"""
        found, cursor = {}, ""
        while cursor is not None:
            page = self.get(f"{RUNS}/{run}/results?limit=1000{cursor}")
            for r in page["items"]:
                found.setdefault((r["check"], r["host"]), (r["status"], r["reason"], r["note"]))
            cursor = page["next"] and f"&cursor={page['next']}"
        return found


class TestStopped(Stages):
    """The audit ends, reports how far it came, and is judged by what it measured. Everything else is unknown."""
    WHY = "the audit was stopped: admin stopped it"

    def stop(self, run):
        """Stops it by the command, which waits until the results are judged."""
        done = subprocess.run(["ip", "netns", "exec", self.space("c"), self.FOLIOT, "audit", "stop", str(run)], text=True, check=False,
                              capture_output=True, env=dict(os.environ, FOLIOT_TOKEN=self.admin, FOLIOT_API="http://127.0.0.1:7639"))
        self.assertEqual((done.returncode, done.stdout.splitlines()[:1]), (0, [f"audit {run}: admin stopped it"]), done.stdout + done.stderr)
        now = self.get(f"{RUNS}/{run}")
        self.assertEqual((now["state"], now["why"], now["matrix"], now["nccl"]), ("stopped", "admin stopped it", True, True), now)
        self.assertEqual(sum(now["counts"].values()), self.HOSTS, now)
        self.assertEqual(now["counts"]["pass"], 0, now)  # no host was completely measured
        covered = now["covered"]
        self.assertIn(f"  covered   {covered['sheets']['done']} of 6 sheets, {covered['cells']['done']} of {CELLS} cells of the matrix, "
                      f"{covered['tests']['done']} of {covered['tests']['of']} tests\n", done.stdout)
        for i in range(self.HOSTS):
            gate = self.get(f"/api/v1/audit/hosts/h{i}/gate")
            self.assertEqual((gate["status"], gate["text"]), ("unknown", "it was never audited"), gate)
        self.assertEqual({n["gate"] for n in self.get(f"{RUNS}/{run}/nodes")["items"]} & {"pass", "skip"}, set())
        self.assertEqual(self.request("DELETE", f"{RUNS}/{run}")[0], 409)
        return covered, self.results(run), {o["host"]: (o["reason"], o["note"]) for o in now["not_read"]}

    def unknown_tests(self, found, hosts):
        for host in hosts:
            for check in ("be.bw.pair", "nccl.bisect", "nccl.straggler", "nccl.busbw.q1"):
                self.assertEqual(found.get((check, host), ())[:2], ("unknown", "not_run"), (check, host, len(found)))
                self.assertIn(self.WHY, found[check, host][2], check)

    def test_while_reading(self):
        run = self.begin()
        self.drive(run, lambda: self.get(f"{RUNS}/{run}")["unanswered"] == 2, hosts=(0, 1, 2, 3))
        covered, found, unread = self.stop(run)
        self.assertEqual((covered["sheets"], covered["cells"], covered["tests"]["done"]), ({"done": 4, "of": 6}, {"done": 0, "of": CELLS}, 0), covered)
        self.assertEqual(unread, {"h4": ("not_run", self.WHY), "h5": ("not_run", self.WHY)})
        self.assertEqual({r for (_, host), r in found.items() if host in ("h4", "h5")}, {("unknown", "not_run", self.WHY)})
        for host in ("h0", "h1", "h2", "h3"):
            for check in ("be.matrix.reach", "be.matrix.loss", "be.matrix.path", "be.matrix.delay"):
                self.assertEqual(found.get((check, host), ())[:2], ("unknown", "not_run"), (check, host, len(found)))
        self.unknown_tests(found, ("h0", "h1", "h2", "h3"))
        self.assertEqual(self.request("GET", f"{RUNS}/{run}/matrix")[0], 404)

    def test_in_the_matrix(self):
        run = self.begin()
        self.until(run, ("measuring",), 1)
        self.drive(run, lambda: self.told >= 6, hosts=(0, 1, 2))
        covered, found, unread = self.stop(run)
        self.assertEqual((covered["sheets"], unread, covered["cells"]), ({"done": 6, "of": 6}, {}, {"done": 3 * 2 * 4, "of": CELLS}), covered)
        for host in ("h3", "h4", "h5"):
            self.assertEqual(found.get(("be.matrix.reach", host)), ("unknown", "not_run", "the audit was stopped before"), found)
        self.assertNotIn(("be.matrix.reach", "h0"), found)  # it passes by what was measured
        self.unknown_tests(found, [f"h{i}" for i in range(6)])

    def test_in_the_tests(self):
        """h4 is late in the matrix, and slow beside its first partner, once."""
        run = self.begin()
        self.hold = ((4, 5), 1)
        self.drive(run, lambda: self.state(run) == "testing" and self.tested_by)
        self.wait(lambda: self.get(f"{RUNS}/{run}").get("tests_done") == len(self.tested_by), 60, lambda: str(self.get(f"{RUNS}/{run}")))
        planned = self.get(f"{RUNS}/{run}")["tests_planned"]
        covered, found, unread = self.stop(run)
        self.assertEqual(covered, {"sheets": {"done": 6, "of": 6}, "cells": {"done": CELLS, "of": CELLS}, "tests": {"done": len(self.tested_by), "of": planned}})
        self.assertEqual(unread, {})
        self.assertEqual({h: r for (c, h), r in found.items() if c == "be.matrix.delay"},
                         {"h4": ("unknown", "not_run", "it failed at the first look, and the audit was stopped before the second")})
        self.unknown_tests(found, [f"h{i}" for i in range(6)])

    def test_before_the_second_look(self):
        """A finding of one look alone fails no host. The matrix was complete, so it is shown. The next audit runs, and decides
        the gate."""
        self.WISH = {"matrix": True}
        run = self.begin()
        self.drive(run, lambda: self.get(f"{RUNS}/{run}")["look"] > 1, hosts=range(self.HOSTS))
        self.assertEqual(self.request("DELETE", f"{RUNS}/{run}")[0], 200)
        stopped = self.end(run, "stopped")
        self.assertEqual((stopped["covered"]["cells"], stopped["covered"]["tests"]), ({"done": CELLS, "of": CELLS}, None), stopped)
        status, reason, note = self.results(run)["be.matrix.delay", "h4"]
        self.assertEqual((status, reason, note[:9]), ("unknown", "not_run", "it failed"), note)
        self.assertEqual(self.get(f"{RUNS}/{run}/matrix")["measured"], CELLS)
        # h4 had no second look, so its facts of the first look are kept: later looks are compared with them.
        with sqlite3.connect(self.path("data", "store.db")) as store:
            self.assertEqual(store.execute("SELECT count(DISTINCT host) FROM host_part WHERE part = 'now'").fetchone()[0], self.HOSTS)
        whole = self.begin_again()
        self.drive(whole, lambda: self.state(whole) == "done")
        gates = [self.get(f"/api/v1/audit/hosts/h{i}/gate") for i in range(self.HOSTS)]
        self.assertEqual({int(g["run"]) for g in gates}, {whole}, gates)
        last = self.begin_again()
        self.drive(last, lambda: self.get(f"{RUNS}/{last}")["unanswered"] <= 3)
        self.assertEqual(self.request("DELETE", f"{RUNS}/{last}")[0], 200)
        self.end(last, "stopped")

        def same():
            return [g | {"age_s": 0} for g in (self.get(f"/api/v1/audit/hosts/h{i}/gate") for i in range(self.HOSTS))] == [g | {"age_s": 0} for g in gates]
        self.assertTrue(same(), "one that was stopped took nothing from it")
        self.running.stop(signal.SIGKILL)
        self.controller()
        self.assertTrue(same(), "nor over a restart")


class TestGated(Stages):
    """A host that fails a blocking check is not tested, and its results give that reason. The other hosts are tested."""
    WISH, OS = {"nccl": True}, ("os", "os.product\tvalue\t\tMade up\t/x\n", b"")
    tested = 5

    def parts(self, i):
        broken = (("gpu", "gpu\tvalue\tgpu0\tgpu0\t/x\n", b""), ("now", "os.log_xid\tvalue\t\t79\t/x\nos.log_lost\tvalue\t\t0\t/x\n", b""))
        return (self.OS,) + (broken if i == 3 else ())

    def test_blocked_hosts_are_not_tested(self):
        run = self.begin()
        self.drive(run, lambda: self.state(run) == "done")
        done, found = self.get(f"{RUNS}/{run}"), self.results(run)
        self.assertEqual(done["tests_why"], None, done)
        self.assertEqual({h for group in self.tested_by.values() for h in group}, {0, 1, 2, 4, 5})
        self.assertEqual(found["cfg.gpu.xid", "h3"][0], "fail", found)
        why = "refused: cfg.gpu.xid fails here, and blocks jobs"
        for check in ("be.bw.pair", "nccl.busbw.q1", "nccl.bisect"):
            self.assertEqual(found.get((check, "h3")), ("unknown", "not_run", why), check)
            self.assertFalse([h for (c, h), r in found.items() if c == check and r[2] == why and h != "h3"], check)


class TestKilled(Stages):
    WISH, OS = {"nccl": True}, ("os", "os.product\tvalue\t\tMade up\t/x\n", b"")
    slow = 2

    def rows(self):
        """The reported results of tests of all hosts together."""
        return [key for key, group in self.tested_by.items() if len(group) == self.HOSTS]

    def test_controller_killed_in_the_tests(self):
        """They begin again, with pairs, and have the same result in the end."""
        self.begin_fleet()
        controller = self.running
        for stage in ("half of the first pairs have told", "collectives run"):
            run = self.begin_again()
            self.drive(run, lambda stage=stage: self.state(run) == "testing" and (len(self.tested_by) > self.HOSTS if stage[0] == "h" else len(self.rows()) > self.HOSTS))
            before = set(self.plans)
            controller.stop(signal.SIGKILL)
            controller = self.controller()
            self.drive(run, lambda: self.state(run) == "done")
            first = min(set(self.plans) - before)
            self.assertGreater(first, max(before), stage)
            self.assertEqual({len(group) for (name, _, _), group in self.tested_by.items() if name == first}, {2}, stage)
            done, found = self.get(f"{RUNS}/{run}"), self.results(run)
            self.assertEqual((done["not_read"], done["tests_why"], [n["host"] for n in done["tests"]["named"]]), ([], None, ["h2"]), (stage, done))
            self.assertEqual({row["outcome"] for row in done["tests"]["rows"]}, {"done"}, (stage, done))
            nics = done["tests"]["nics"]
            self.assertEqual(({n["host"] for n in nics if n["verdict"] == "slower"}, len(nics)), ({"h2"}, self.HOSTS * self.NICS), (stage, nics))
            self.assertEqual(done["covered"]["tests"]["done"], done["covered"]["tests"]["of"], (stage, done))
            self.assertEqual({(c, h) for (c, h), r in found.items() if r[0] == "fail" and c in ("be.bw.pair", "nccl.bisect")},
                             {("be.bw.pair", "h2"), ("nccl.bisect", "h2")}, (stage, found))


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)

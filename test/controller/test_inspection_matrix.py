#!/usr/bin/env python3
"""Matrices of an audit with made-up rows. A matrix that finds something is repeated. Meanwhile hosts leave, and the controller is
killed.
usage: test_inspection_matrix.py CONTROLLER AGENT FOLIOT"""
import os
import signal
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


class TestAgain(own_hosts.OwnHosts):
    """Matrices with made-up rows: a finding of one matrix alone fails no host."""
    HOSTS, NICS, LATE = 6, 2, 9000
    FEATURES, WISH = 7, {"matrix": True}
    OS = ("os", "os.kernel\tvalue\t\t1\t/x\n", b"")

    def code(self, ns):
        """A delay in two bytes (core/fleet/delay_code.h)."""
        shift = max(ns.bit_length() - 7, 0)
        return (1 + ns if ns < 64 else 1 + (shift + 1) * 64 + (ns >> shift & 63)).to_bytes(2, "little")

    def speak(self, i, extra=b"", status=1):
        self.said[i] += 1
        clock = wire.data(5, wire.number(1, status)) if status is not None else b""
        return self.say(self.said[i], extra + clock, features=self.FEATURES, host=f"h{i}", fleet_ns=time.time_ns(), covers=1000)

    def tell(self, plan, late):
        """Rows of all hosts of this plan, all with one delay. The host `late` receives later."""
        name, nics, hosts, rails = plan[1][0], list(plan[5][0]), plan[3][0], plan[4][0]
        rounds = hosts - 1 + hosts % 2 + (rails - 1 + rails % 2) * hosts
        told = set()
        for i in range(self.HOSTS):
            for nic in nics:
                if nic and (nic - 1) // self.NICS == i:
                    told.add(i)
                    self.speak(i, self.row(name, nic - 1, b"\5" * rounds, b"\5" * rounds, self.code(3000 + (self.LATE if i == late else 0)) * rounds))
        return told

    def until(self, run, states, look=0):
        """All hosts report, and answer this look, until the audit has come so far: a host that pauses would be left out as
        silent."""
        def reached():
            for i in range(self.HOSTS):
                if self.speak(i).get(14) and look:
                    self.speak(i, self.sheet(run, look, self.OS))
            return self.get(f"{RUNS}/{run}")["state"] in states
        self.wait(reached, 30, lambda: str(self.get(f"{RUNS}/{run}")))

    def begin_all(self):
        """Begins an audit of all hosts. If the machine pauses, hosts are silent for a moment and left out: then it tries
        again."""
        def begun():
            for i in range(self.HOSTS):
                self.speak(i)
            run = self.request("POST", RUNS, self.WISH)[2].get("run")
            if run and not self.get(f"{RUNS}/{run}")["not_read"]:
                return int(run)
            if run:
                self.request("DELETE", f"{RUNS}/{run}")
            return None
        return self.wait(begun, 30, lambda: str(self.get(RUNS)))

    def measure(self, lates, second=True):
        """Two looks with a matrix each. lates: for each look the hosts that are late in it. Returns the results of
        be.matrix.delay, by host."""
        run, told = self.begin_all(), []
        for look, late in enumerate(lates, 1):
            if not second and look == 2:
                break
            self.until(run, ("measuring",), look)
            plan = self.wait(lambda: next((wire.fields(m[0]) for i in range(self.HOSTS) if (m := self.speak(i).get(15))), None), 10, "no plan")
            self.left(run)
            told.append(self.tell(plan, late))
            self.until(run, ("reading", "judging", "done"))
        self.until(run, ("done",), len(lates))
        results = self.get(f"{RUNS}/{run}/results?limit=1000")["items"]
        return told, {r["host"]: r for r in results if r["check"] == "be.matrix.delay"}

    def left(self, run):
        """The end of the matrix is known: of this run, and before it began."""
        cost, now = self.get("/api/v1/audit/cost"), self.get(f"{RUNS}/{run}")
        if now["state"] == "measuring":
            self.assertTrue(0 <= now["left_ns"] <= now["stage_ns"] + cost["lead_ns"], (now, cost))
            self.assertEqual((now["stage_ns"], cost["nics"]), (cost["matrix"]["ns"], self.HOSTS * self.NICS), cost)

    def begin_fleet(self):
        self.start(extra=f"audit: {self.write('audit.yaml', 'version: 1' + chr(10))}\n")
        self.said = [0] * self.HOSTS
        for i in range(self.HOSTS):
            self.join(i)
            self.speak(i)

    def test_once_is_no_failure(self):
        self.begin_fleet()
        told, found = self.measure([4, None])
        self.assertEqual(told, [set(range(self.HOSTS))] * 2)
        self.assertEqual({h: (r["status"], r["note"]) for h, r in found.items()}, {"h4": ("warn", "seen once: a second look did not find it")})
        self.tenant_counts_its_own()

    def tenant_counts_its_own(self):
        """A tenant of two of six hosts: no number includes cells between its NICs and other tenants'."""
        run = self.get(RUNS)["items"][0]["run"]
        made = self.request("POST", "/api/v1/tokens", {"name": "tenant", "role": "viewer", "scope": "h0,h1"})[2]["token"]
        whole, own = self.get(f"{RUNS}/{run}/matrix"), self.get(f"{RUNS}/{run}/matrix", token=made)
        self.assertEqual({n["cells"] for n in whole["nics"]}, {2 * self.NICS * (self.HOSTS - 1)})
        self.assertEqual([(n["host"], n["cells"], n["unmeasured"], n["lost_out"], n["dead_in"], n["late_cells"]) for n in own["nics"]],
                         [(h, 2 * self.NICS, 0, 0, 0, None) for h in ("h0", "h0", "h1", "h1")])
        self.assertEqual({n["sent"] for n in own["nics"]}, {5 * self.NICS})
        self.assertEqual([own[key] for key in ("rounds", "round_us", "near_ns", "far_ns", "limit_ns")], [None] * 5)
        self.assertNotIn(None, [whole[key] for key in ("rounds", "round_us", "limit_ns")])
        # The same for an accepted audit, beside its host's facts.
        self.assertEqual(self.request("POST", "/api/v1/audit/baselines", {"run": str(run), "name": "as delivered"})[0], 200)
        whole, own = (self.get("/api/v1/audit/hosts/h0/facts", token=t)["accepted"] for t in (self.admin, made))
        self.assertIn("matrix", {f["fact"] for f in whole["facts"]}, whole)
        self.assertIn("as delivered", whole["run"])
        self.assertNotIn("matrix", {f["fact"] for f in own["facts"]}, own)
        self.assertNotIn("run", own)

    def test_twice_is_one(self):
        self.begin_fleet()
        _, found = self.measure([4, 4])
        self.assertEqual({h: r["status"] for h, r in found.items()}, {"h4": "fail"})
        self.assertRegex(found["h4"]["found"], "^0 ns more than others sending, (89|90)[0-9]{2} ns receiving$")  # in two bytes: by 1.6 %

    def test_young_clock(self):
        """The clock came into step some seconds ago, so its error may explain the delays: the result is unknown. (A wrong clock
        makes one direction later and the other one earlier. So a sum that is 9 us too large wouldn't come from a clock.)"""
        self.LATE = 1500
        self.begin_fleet()
        real = self.begin_all

        def begin_all():
            run = real()
            self.speak(4, status=0)  # as late as possible: a minute later it is no longer young
            self.speak(4)
            return run
        self.begin_all = begin_all
        _, found = self.measure([4], second=False)
        self.assertEqual({h: (r["status"], r["reason"]) for h, r in found.items()}, {"h4": ("unknown", "young")}, found)

    def test_not_again(self):
        """Packets are switched off between the matrices: nothing is measured twice, so the result is unknown."""
        self.begin_fleet()
        self.off = False
        real = self.tell

        def tell(plan, late):
            told = real(plan, late)
            self.write("audit.yaml", "version: 1\noff: {classes: {packets: 'anna: enough'}}\n")
            return told
        self.tell = tell
        _, found = self.measure([4, None], second=False)
        self.assertEqual({h: (r["status"], r["reason"]) for h, r in found.items()}, {"h4": ("unknown", "not_run")}, found)


class TestMeanwhile(TestAgain):
    """Events of the fleet and the controller during an audit. One host is late in each of its matrices."""
    test_once_is_no_failure = test_twice_is_one = test_young_clock = test_not_again = None
    HOSTS, JOINS = 7, 6

    def setUp(self):
        super().setUp()
        self.HOSTS = self.JOINS  # pylint: disable=invalid-name

    def tearDown(self):
        del self.HOSTS
        super().tearDown()

    def parts(self, _):
        """Of a host's sheet."""
        return (self.OS,)

    def drive(self, run, there, late=4, hosts=None):
        """Hosts report, and answer each request, until there() holds."""
        def step():
            for i in hosts or range(self.HOSTS):
                told = self.speak(i)
                if 14 in told:
                    self.speak(i, self.sheet(run, wire.fields(told[14][0])[2][0], *self.parts(i)))
                plan = wire.fields(told[15][0]) if 15 in told else {}
                if 5 in plan:
                    self.rows_of(i, plan, late)
                if 16 in told:
                    self.tell_tests(i, wire.fields(told[16][0]))
                if there():
                    return True
            return there()
        self.wait(step, 60, lambda: str(self.get(f"{RUNS}/{run}")))

    def rows_of(self, i, plan, late):
        name, nics, hosts, rails = plan[1][0], list(plan[5][0]), plan[3][0], plan[4][0]
        rounds = hosts - 1 + hosts % 2 + (rails - 1 + rails % 2) * hosts
        for nic in nics:
            if nic and (nic - 1) // self.NICS == i:
                self.speak(i, self.row(name, nic - 1, b"\5" * rounds, b"\5" * rounds, self.code(3000 + (self.LATE if i == late else 0)) * rounds))
                self.told += 1

    def tell_tests(self, i, plan):
        raise AssertionError("nobody asked for tests")

    def state(self, run):
        return self.get(f"{RUNS}/{run}")["state"]

    def found(self, run):
        results = self.get(f"{RUNS}/{run}/results?limit=1000")["items"]
        return {r["host"]: r["status"] for r in results if r["check"] == "be.matrix.delay"}

    def test_controller_killed_at_every_stage(self):
        """The audit goes on from the first look and has the same result in the end, with all hosts."""
        self.begin_fleet()
        controller = self.running
        for stage in ("half of the hosts have answered", "a plan is out", "half of the rows are there", "the second look", "the second plan", "all has been told"):
            run = self.begin_all()

            def there():
                now = self.get(f"{RUNS}/{run}")
                second, measuring = now["look"] > 1, now["state"] == "measuring"
                return now["state"] == "done" or {"half of the hosts have answered": now["unanswered"] <= 3, "a plan is out": measuring, "half of the rows are there": self.told > 5,
                                                  "the second look": second, "the second plan": second and measuring, "all has been told": now["state"] == "judging"}[stage]
            self.told = 0
            self.drive(run, there)
            controller.stop(signal.SIGKILL)
            controller = self.controller()
            self.drive(run, lambda: self.state(run) == "done")
            done = self.get(f"{RUNS}/{run}")
            self.assertEqual((done["hosts"], done["not_read"], done["matrix"]), (self.HOSTS, [], True), (stage, done))
            self.assertEqual(self.found(run), {"h4": "fail"}, stage)

    def begin_fleet(self):
        self.running = self.start(extra=f"audit: {self.write('audit.yaml', 'version: 1' + chr(10))}\n")
        self.said = [0] * (self.HOSTS + 1)
        for i in range(self.HOSTS):
            self.join(i)
            self.speak(i)

    def test_hosts_that_leave_and_come(self):
        """A host leaves while hosts are asked, a host leaves during the rounds, and a host joins. The audit reports each, and
        waits for none."""
        self.begin_fleet()
        self.told = 0
        run = self.begin_all()
        self.drive(run, lambda: self.get(f"{RUNS}/{run}")["unanswered"] == 1, hosts=(0, 1, 2, 3, 4))
        self.assertEqual(self.request("DELETE", "/api/v1/hosts/h5")[0], 200)
        self.drive(run, lambda: self.state(run) == "measuring", hosts=(0, 1, 2, 3, 4))
        self.assertEqual([(o["host"], o["reason"], o["note"]) for o in self.get(f"{RUNS}/{run}")["not_read"]],
                         [("h5", "not_run", "it has left the fleet meanwhile")])
        self.join(self.JOINS)
        self.assertEqual(self.request("DELETE", "/api/v1/hosts/h3")[0], 200)
        self.drive(run, lambda: self.state(run) == "done", hosts=(0, 1, 2, 4))
        done = self.get(f"{RUNS}/{run}")
        self.assertEqual(done["hosts"], 6, done)
        nodes = {n["host"]: n["status"] for n in self.get(f"{RUNS}/{run}/nodes")["items"]}
        self.assertEqual(set(nodes), {f"h{i}" for i in range(6)}, nodes)
        self.assertEqual([n["note"] for n in self.get(f"{RUNS}/{run}/matrix")["nics"] if n["host"] == "h3"], ["it has left the fleet meanwhile"] * 2)
        results = self.get(f"{RUNS}/{run}/results?limit=1000")["items"]
        self.assertEqual({r["status"] for r in results if r["host"] == "h5"}, {"unknown"})
        self.assertEqual({(r["host"], r["status"]) for r in results if r["check"] == "be.matrix.reach" and r["host"] == "h3"}, {("h3", "unknown")})


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)

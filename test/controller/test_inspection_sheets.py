#!/usr/bin/env python3
"""Sheets and rows of an audit from a host that the test plays: strange, old, too many. Audits that begin by themselves, switches,
baselines, a full disk. usage: test_inspection_sheets.py CONTROLLER AGENT FOLIOT"""
import contextlib
import json
import os
import re
import sqlite3
import subprocess
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


class TestSheets(own_hosts.OwnHosts):
    """Sheets from a host that the test plays."""
    HOSTS = 3

    def test_strange(self):
        self.start()
        self.join(0)
        self.say(1)
        run = self.begin()
        look = wire.fields(self.say(2)[14][0])
        self.assertEqual((look[1], look[2]), ([run], [1]))
        self.assertNotIn(14, self.say(3, features=1))  # one of the version before is not asked
        # of another audit, of another look: not taken
        self.say(4, self.sheet(run + 1, 1, ("os", "os.kernel\tvalue\t\t1\t/x\n", b"")))
        self.say(5, self.sheet(run, 2, ("os", "os.kernel\tvalue\t\t1\t/x\n", b"")))
        self.assertEqual(self.get(f"{RUNS}/{run}")["unanswered"], 1)
        # a hash of a part that was never sent: the controller asks for the whole sheet
        self.say(6, self.sheet(run, 1, ("os", b"", bytes(32))))
        self.assertEqual(wire.fields(self.say(7)[14][0])[3], [1])
        # markup, a broken line, a line of a later release, a hash that isn't the content's
        lines = b"os.kernel\tvalue\t\t<b>6.1</b>\t/x\nnonsense\nos.later\tvalue\t\t1\t/x\nos.uptime\tvalue\t\t99999\t/y\n\xff\0\t\n"
        self.say(8, self.sheet(run, 1, ("os", lines, b"\7" * 32), ("later", b"x", b""), ("now", b"os.uptime\tvalue\t\t5\t/y\n", b"")))
        self.wait(lambda: self.get(f"{RUNS}/{run}")["state"] == "done", 10, lambda: str(self.get(f"{RUNS}/{run}")))
        facts = {f["fact"]: f for f in self.get("/api/v1/audit/hosts/h0/facts")["facts"]}
        self.assertEqual(set(facts), {"os.kernel", "os.uptime"}, facts)
        self.assertEqual(facts["os.kernel"]["state"], "garbled")
        self.assertEqual(self.get("/api/v1/audit/hosts/h0/gate")["status"], "unknown")
        # more than a part may hold is not taken, and said
        # more devices than a sheet may have: its own checks are unknown, and the audit ends
        many = b"".join(b"net\tvalue\teth%d\teth%d\t/x\n" % (i, i) for i in range(30000))
        run = self.begin()
        body = wire.batch([(9, wire.report(extra=self.sheet(run, 1, ("nic", many, b""))))], oldest=9, sealed=wire.squeeze)
        self.assertEqual(self.post("/agent/v1/report", body + wire.number(17, 2), **self.identity("h0"))[0], 200)
        done = self.wait(lambda: (r := self.get(f"{RUNS}/{run}"))["state"] == "done" and r, 10, lambda: str(self.get(f"{RUNS}/{run}")))
        self.assertEqual((done["counts"]["unknown"], sum(c["counts"]["pass"] for c in done["checks"])), (1, 0), done["counts"])
        run = self.begin()
        body = wire.batch([(10, wire.report(extra=self.sheet(run, 1, ("os", b"x" * ((1 << 20) + 1), b""))))], oldest=10, sealed=wire.squeeze)
        self.assertEqual(self.post("/agent/v1/report", body + wire.number(17, 2), **self.identity("h0"))[0], 200)
        self.assertEqual(self.get(f"{RUNS}/{run}")["unanswered"], 1)
        self.say(11, self.sheet(run, 1, refused="its reader <script>\x1b[2J"))
        self.wait(lambda: self.get(f"{RUNS}/{run}")["state"] == "done", 10, lambda: str(self.get(f"{RUNS}/{run}")))
        self.assertEqual(self.get(f"{RUNS}/{run}")["not_read"][0]["note"].startswith("its reader <script>"), True)
        self.assertNotIn("\x1b", json.dumps(self.get(f"{RUNS}/{run}"), ensure_ascii=False))

    def test_kept_once(self):
        """A sheet has rows of its own: the report with it is stored without it."""
        self.start()
        self.join(0)
        self.say(1, covers=1000)
        run = self.begin()
        lines = "".join(f"module\tvalue\tm{i}\t{os.urandom(60).hex()}\t/x\n" for i in range(60))
        self.say(2, self.sheet(run, 1, ("os", lines, b"")), covers=1000)
        self.wait(lambda: self.get(f"{RUNS}/{run}")["state"] == "done", 30, lambda: str(self.get(f"{RUNS}/{run}")))
        with contextlib.closing(sqlite3.connect(self.path("data", "store.db"))) as store:
            self.assertGreater(store.execute("SELECT max(length(body)) FROM fact_body").fetchone()[0], 3000)
            count, largest = store.execute("SELECT count(*), max(length(body)) FROM report").fetchone()
        self.assertEqual(count, 2)
        self.assertLess(largest, 1000)

    def begin_matrix(self):
        """An audit of h0 and h1 that waits for the rows of its matrix."""
        now = time.time_ns()
        for i in (0, 1):
            self.join(i)
            self.say(1, features=7, host=f"h{i}", fleet_ns=now)
        run = int(self.request("POST", RUNS, {"matrix": True})[2]["run"])
        for i in (0, 1):
            self.say(2, self.sheet(run, 1, ("os", "os.kernel\tvalue\t\t1\t/x\n", b"")), features=7, host=f"h{i}", fleet_ns=now)
        self.wait(lambda: self.get(f"{RUNS}/{run}")["state"] == "measuring", 10, lambda: str(self.get(f"{RUNS}/{run}")))
        return run

    def test_strange_rows(self):
        """Rows of a matrix from hosts that lie: a row counts only for its own host, with this plan, and with known words."""
        self.start()
        run = self.begin_matrix()
        self.assertNotIn(15, self.say(3, features=3, host="h1"))  # an agent of the version before gets no question that is new
        plan = wire.fields(self.say(3, features=7)[15][0])
        name, nics, rounds = plan[1][0], list(plan[5][0]), 3
        self.assertEqual((plan[3], plan[4], len(nics), min(nics)), ([2], [2], 4, 1))
        good = (b"\5" * rounds, b"\5" * rounds, b"\x40\0" * rounds)
        self.say(4, self.row(name, nics[0] - 1, b"\5" * 7, *good[1:]), features=7)     # another length
        self.say(5, self.row(name + 1, nics[0] - 1, *good), features=7)                 # another plan
        self.say(6, self.row(name, nics[2] - 1, *good), features=7)                     # another host's NIC
        self.say(7, self.row(name, nics[0] - 1, b"\xff" * rounds, b"\xf7" * rounds, b"\xff\x7f" * rounds), features=7)
        self.say(8, self.row(name, nics[0] - 1, *good), features=7)                     # a second time: the first one stays
        self.assertEqual(self.get(f"{RUNS}/{run}")["state"], "measuring")
        self.say(9, self.row(name, nics[1] - 1, *good), features=7)
        self.say(4, self.row(name, 0, b"", b"", b"", refused="no\x1b[2J<b>"), features=7, host="h1")
        self.done(run)
        matrix = self.get(f"{RUNS}/{run}/matrix")
        self.assertEqual((matrix["cells"], matrix["measured"]), (8, 0), matrix)
        self.assertEqual(matrix["unmeasured"], {"refused": 6, "silent": 2}, matrix)  # unknown words are not counted
        self.assertEqual({n["note"] for n in matrix["nics"]}, {None, "no\\x1b[2J<b>"}, matrix["nics"])

    def test_older_agent(self):
        """An older agent takes no part in tests, and its host's checks have that reason. With only one agent of this version
        there are no tests."""
        now, said, features = time.time_ns(), iter(range(1, 1000)), (31, 15, 31)
        self.start()

        def tell(hosts, extra=lambda i: b""):
            return [self.say(next(said), extra(i), features=features[i], host=f"h{i}", fleet_ns=now) for i in hosts]

        def begin(hosts):
            tell(hosts)
            run = int(self.request("POST", RUNS, {"bandwidth": True})[2]["run"])
            tell(hosts, lambda _: self.sheet(run, 1, ("os", "os.kernel\tvalue\t\t1\t/x\n", b"")))
            return run

        self.join(0)
        self.join(1)
        self.assertEqual(self.done(begin((0, 1)))["tests_why"], "fewer than two hosts can take part: 1 agents are too old")
        self.join(2)
        run = begin((0, 1, 2))
        self.wait(lambda: self.get(f"{RUNS}/{run}")["state"] == "testing", 10, lambda: str(self.get(f"{RUNS}/{run}")))
        answers = tell((0, 1, 2))
        self.assertNotIn(16, answers[1])
        plan = wire.fields(answers[0][16][0])
        steps = [wire.fields(step) for step in plan[6]]
        # for each NIC a pair, and its ways in the first turn
        self.assertEqual([(step[2], step.get(8)) for step in steps], 2 * [([2], None), ([2], [1])])
        tell((0, 2), lambda _: wire.data(15, wire.fixed64(1, plan[1][0]) + wire.number(2, 2**32 - 1) + wire.number(3, 3) + wire.data(4, "no <way>")))
        self.done(run)
        for check in ("be.bw.path", "be.bw.pair"):
            found = {r["host"]: (r["reason"], r["note"]) for r in self.get(f"{RUNS}/{run}/results?limit=1000&status=unknown")["items"] if r["check"] == check}
            self.assertEqual(found.pop("h1"), ("old_agent", "its agent is too old to take part: update it"), check)
            self.assertEqual(found, {h: ("not_run", "failed: no <way>") for h in ("h0", "h2")}, check)

    def audit_of(self, first, *parts):
        """An audit of h0 alone. Its sheet has no failure, so there is no second look."""
        run = self.begin()
        self.say(first, self.sheet(run, 1, *parts))
        self.done(run)
        return run

    def test_who_leaves_while_tested(self):
        """The audit doesn't wait for its results, and its checks have that reason."""
        now, said = time.time_ns(), iter(range(1, 1000))
        self.start(report="60s", beat="60s")

        def tell(hosts, extra=lambda i: b""):
            return [self.say(next(said), extra(i), features=31, host=f"h{i}", fleet_ns=now) for i in hosts]

        for i in range(self.HOSTS):
            self.join(i)
        tell((0, 1, 2))
        run = int(self.request("POST", RUNS, {"nccl": True})[2]["run"])
        tell((0, 1, 2), lambda _: self.sheet(run, 1, ("os", "os.kernel\tvalue\t\t1\t/x\n", b"")))
        self.wait(lambda: self.get(f"{RUNS}/{run}")["state"] == "testing", 10, lambda: str(self.get(f"{RUNS}/{run}")))
        self.assertEqual(self.request("DELETE", "/api/v1/hosts/h1")[0], 200)
        begun, plans = time.monotonic(), set()

        def over():
            for answer in tell((0, 2)):
                plans.update(wire.fields(p)[1][0] for p in answer.get(16, []))
            for plan in plans:  # all steps: no connections
                tell((0, 2), lambda _, plan=plan: wire.data(15, wire.fixed64(1, plan) + wire.number(2, 2**32 - 1) + wire.number(3, 3) + wire.data(4, "no way")))
            return self.get(f"{RUNS}/{run}")["state"] == "done"

        self.wait(over, 60, lambda: str(self.get(f"{RUNS}/{run}")))
        self.assertLess(time.monotonic() - begun, 180)  # the plan begins 181 s ahead: nothing waited for its results
        results = self.get(f"{RUNS}/{run}/results?limit=1000")["items"]
        found = {(r["host"], r["check"]): r for r in results}
        self.assertEqual(found["h1", "be.bw.pair"]["note"], "refused: it has left the fleet meanwhile", found["h1", "be.bw.pair"])
        self.assertEqual(found["h0", "be.bw.pair"]["note"], "failed: no way", found["h0", "be.bw.pair"])

    def test_far_fleet_time(self):
        """One host's wrong fleet time must not name an audit so that all later ones sort before it."""
        self.start()
        self.join(0)
        self.say(1, fleet_ns=2**63 - 1)
        first = self.audit_of(2, ("os", "os.kernel\tvalue\t\t1\t/x\n", b""))
        self.assertLess(abs(first - time.time_ns()), 600 * 10**9)
        self.say(3, fleet_ns=5)
        second = self.audit_of(4, ("os", "os.kernel\tvalue\t\t2\t/x\n", b""))
        self.assertGreater(second, first)
        self.assertEqual(self.get(RUNS)["items"][0]["run"], str(second))

    def test_two_beside_a_third(self):
        """Two audits are compared. One of them is in memory, and makes room for the other."""
        self.start()
        self.join(0)
        self.say(1)
        runs = [self.audit_of(2 + i, ("os", f"os.kernel\tvalue\t\t6.{i}\t/x\n", b"")) for i in range(3)]
        diff = self.get(f"{RUNS}/{runs[0]}/diff?with={runs[1]}")
        self.assertEqual((diff["hosts"], [(f["was"], f["is"]) for f in diff["facts"]]), (1, [("6.1", "6.0")]), diff)

    def test_first_look_at_an_end(self):
        """As soon as an audit is done, its measurements are in the answers, before the next commit."""
        self.start()
        self.join(0)
        self.say(1)
        runs = []
        for rate in (200000, 150000):
            parts = (("job", "test\tvalue\tallreduce-q4.txt\tallreduce-q4.txt\t/x\n", b""),
                     ("now", f"test.rate\tvalue\tallreduce-q4\t{rate}\t/t\ntest.runs\tvalue\tallreduce-q4\t5\t/t\n", b""))
            runs.append(self.begin())
            self.say(2 + len(runs), self.sheet(runs[-1], 1, *parts))
            self.wait(lambda: self.until_done(runs[-1]), 10, lambda: str(self.get(f"{RUNS}/{runs[-1]}")))
        diff = self.get(f"{RUNS}/{runs[1]}/diff?with={runs[0]}")
        self.assertEqual([(m["was"], m["is"]) for m in diff["measured"]], [("200.000", "150.000")], diff)

    def until_done(self, run):
        """Asks again and again without a pause, some times."""
        return any(self.get(f"{RUNS}/{run}")["state"] == "done" for _ in range(50))

    def test_what_was_measured(self):
        """Compared with the accepted audit, in a comparison of two, and judged again with another limit."""
        def parts(rate):
            return (("os", "os.product\tvalue\t\tMade up\t/x\n", b""), ("job", "test\tvalue\tallreduce-q4.txt\tallreduce-q4.txt\t/x\n", b""),
                    ("now", f"os.uptime\tvalue\t\t99999\t/y\ntest.rate\tvalue\tallreduce-q4\t{rate}\t/t\ntest.runs\tvalue\tallreduce-q4\t5\t/t\n", b""))
        self.start()
        self.join(0)
        self.say(1)
        first = self.audit_of(2, *parts(200000))
        self.assertEqual(self.request("POST", "/api/v1/audit/baselines", {"run": str(first), "name": "delivered"})[0], 200)
        second = self.audit_of(3, *parts(150000))
        found = [r for r in self.get(f"{RUNS}/{second}/results?check=nccl.busbw.q4")["items"] if r["status"] == "warn"]
        self.assertEqual([(r["found"], r["expected"]) for r in found], [("150.000", "200.000, less 7.0 %")], found)
        self.assertRegex(found[0]["baseline"], rf"^audit {first} delivered, accepted 20\d\d-\d\d-\d\d$")
        self.assertEqual(len({e["at_utc_ns"] for e in found[0]["evidence"] if e["fact"] == "test.rate"}), 2, found)
        diff = self.get(f"{RUNS}/{second}/diff?with=baseline")
        self.assertEqual(diff["measured"], [{"host": "h0", "check": "nccl.busbw.q4", "subject": "", "was": "200.000", "is": "150.000"}], diff)
        sheets = self.get(f"{RUNS}/{second}/facts")
        self.assertEqual([(s["host"], s["accepted"]["facts"][0]["value"]) for s in sheets["items"]], [("h0", "200000")], sheets)
        done = subprocess.run(["ip", "netns", "exec", self.space("c"), self.FOLIOT, "audit", "test", "--fleet", "nccl.busbw.q4", "--fail", "0.3", "--json"], text=True,
                              check=False, capture_output=True, env=dict(os.environ, FOLIOT_TOKEN=self.admin, FOLIOT_API="http://127.0.0.1:7639"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([[(c["was"], c["is"]) for c in p["changed"]] for p in json.loads(done.stdout)["paths"]], [[], [("warn", "pass")]], done.stdout)

    def test_clock_that_went_back(self):
        """Results with a time after now, by the controller's clock, don't stay fresh for ever."""
        controller = self.start()
        self.join(0)
        self.say(1)
        self.audit_of(2, ("os", "os.kernel\tvalue\t\t1\t/x\n", b""))
        self.assertIsNone(self.get("/api/v1/audit/hosts/h0/gate")["reason"])
        controller.stop()
        with sqlite3.connect(self.path("data", "store.db")) as store:
            store.execute("UPDATE audit_host SET at_ns = at_ns + 86400000000000 * 400")
        self.controller()
        gate = self.get("/api/v1/audit/hosts/h0/gate")
        self.assertEqual((gate["status"], gate["reason"]), ("unknown", "stale"), gate)

    def test_many_devices(self):
        """If a host has more results than the store reads back, the controller starts nevertheless."""
        controller = self.start()
        self.join(0)
        self.say(1)
        for first, count in ((2, 1500), (4, 8000)):
            lines = "".join(f"port\tvalue\tx{i}/1\t1\t/s\n" for i in range(count))
            self.audit_of(first, ("rdma", lines, b""))
            self.assertEqual(self.get("/api/v1/audit/hosts/h0/gate")["status"], "unknown")
        controller.stop()
        self.controller()
        self.assertEqual(self.get("/api/v1/audit/hosts/h0/gate")["status"], "unknown")

    def test_disk_full(self):
        """The store has no room for the results. They are shown, the audit reports why it has not ended, and it ends when there
        is room."""
        os.makedirs(self.path("data"))
        fleet.run("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", self.path("data"))
        self.addCleanup(subprocess.run, ["umount", "-l", self.path("data")], check=False)
        controller = self.start(extra="record_mib: 0\n")
        run = self.begin_matrix()
        plan = wire.fields(self.say(3, features=7)[15][0])
        with open(self.path("data", "filler"), "wb") as filler, contextlib.suppress(OSError):
            while True:
                os.write(filler.fileno(), bytes(4096))
        for i in (0, 1):
            with contextlib.suppress(AssertionError):  # of the answer: it can't be stored
                self.say(4, self.row(plan[1][0], 0, b"", b"", b"", refused="no"), features=7, host=f"h{i}")
        controller.wait_log("can't be stored: ", 30)
        told = self.wait(lambda: (r := self.get(f"{RUNS}/{run}"))["state"] == "judging" and r["why"] and r, 30, lambda: str(self.get(f"{RUNS}/{run}")))
        self.assertEqual((told["why"], told["ended_utc_ns"]), ("its results are not stored yet: the store can't be written", None))
        self.assertEqual(self.get("/api/v1/audit/hosts/h0/gate")["status"], "unknown")
        self.assertEqual(self.request("POST", RUNS, {})[2]["error"]["code"], "busy")
        os.unlink(self.path("data", "filler"))
        self.wait(lambda: self.get(f"{RUNS}/{run}")["state"] == "done", 30, lambda: str(self.get(f"{RUNS}/{run}")))
        found = self.get(f"{RUNS}/{run}/results?limit=1000&status=unknown")["items"]
        self.assertIn(("be.matrix.reach", "h1"), {(r["check"], r["host"]) for r in found})
        controller.stop()
        self.controller()
        self.assertEqual((self.get(f"{RUNS}/{run}")["state"], self.get(f"{RUNS}/{run}/results?limit=1000&status=unknown")["items"]), ("done", found))

    WRONG = (("storage", "mount\tvalue\t/data\tnfs\t/x\nmount.answers\tvalue\t/data\t0\t/x\n", b""),
             ("rdma", "port\tvalue\tmlx5_0/1\t1\t/s\nport.physical\tvalue\tmlx5_0/1\t2: Polling\t/s\n"
                      "port.state\tvalue\tmlx5_0/1\t1: DOWN\t/s\nport.net\tvalue\tmlx5_0/1\tnic0\t/s\n", b""),
             ("now", "os.uptime\tvalue\t\t99999\t/y\n", b""))

    def settings(self, text):
        self.write("audit.yaml", "version: 1\n" + text)

    said = 0

    def speak(self, extra=b""):
        self.said += 1
        return self.say(self.said, extra, covers=1000)

    def asked(self, look):
        """h0 reports until it is asked for this look: the audit's name."""
        return self.wait(lambda: (told := self.speak()) and 14 in told and (f := wire.fields(told[14][0]))[2] == [look] and f[1][0], 30,
                         lambda: str(self.get(RUNS)))

    def test_calendar_and_switches(self):
        """Audits begin by themselves. Their findings become an incident and a metric. Switches end audits, and are shown."""
        self.settings("every: 3s\nmatrix: true\n")
        self.start(extra=f"audit: {self.path('audit.yaml')}\n")
        self.join(0)
        run = self.asked(1)
        self.settings("every: 1h\n")
        self.speak(self.sheet(run, 1, *self.WRONG))
        self.assertEqual(self.asked(2), run)
        self.speak(self.sheet(run, 2, *self.WRONG))
        done = self.done(run)
        self.assertEqual((done["who"], done["whole"], done["off"], done["suspect"]), ("the calendar", True, [], []), done)
        self.assertIn(done["matrix_why"], ("fleet time is not known", "fewer than two hosts can take part"), "a matrix is tried")
        failed = {r["check"]: r for r in self.get(f"{RUNS}/{run}/results?status=fail&limit=100")["items"]}
        self.assertLessEqual({"node.mounts", "be.link.initialized"}, set(failed))
        self.assertEqual((failed["be.link.initialized"]["interface"], failed["node.mounts"]["interface"]), ("nic0", None))
        metrics = self.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})[2]
        self.check_metrics(metrics)
        metrics = metrics.decode()
        for line in ('foliot_host_audit_gate{host="h0",foliot_host_audit_gate="fail"} 1', 'foliot_audit_off 0',
                     'foliot_audit_results{check="node.mounts",status="fail"} 1', "foliot_audit_run_timestamp_seconds 1"):
            self.assertIn(line, metrics)
        # opened by the host's next report: a mount belongs to the host, a port to its NIC
        rules = {"audit-blocked", "audit-links"}
        def firing():
            self.speak()
            alerts = [a for a in self.get("/api/v1/alerts")["items"] if a["rule"] in rules and a["state"] == "firing"]
            return {a["rule"] for a in alerts} == rules and alerts
        alerts = self.wait(firing, 15, lambda: str(self.get("/api/v1/alerts")))
        self.assertEqual({(a["rule"], a["host"], a["nic"]) for a in alerts}, {("audit-blocked", "h0", None), ("audit-links", "h0", "h0/nic0")})
        # only of these rules: unknown checks are an incident of their own
        def causes():
            ids = {a["incident"] for a in firing() or ()}
            return {i["cause"] for i in self.get("/api/v1/incidents")["items"] if i["incident"] in ids}
        self.assertLessEqual(self.wait(causes, 15, lambda: str(self.get("/api/v1/incidents"))), {"h0", "h0/nic0"})
        self.switches()
        self.baselines(run)

    def away(self):
        """h0 is silent until an event reports it. Then it reports again."""
        def told(word):
            return sum(e["word"] == word for e in self.events(kind="host"))
        silent, heard = told("silent"), told("heard")
        # an absence is counted from that event: the host's shown state is up to a second ahead of it
        self.wait(lambda: told("silent") > silent, 30, lambda: str(self.host("h0")))
        time.sleep(1.2)  # not less than `returns`
        self.wait(lambda: self.speak() and told("heard") > heard, 30, "h0 is not heard again")

    def test_return(self):
        """A host that comes back after a long absence is audited alone, if the settings ask for it. A short absence doesn't
        count."""
        self.start(extra=f"audit: {self.path('audit.yaml')}\n", report="4s", beat="4s")  # silent after 12 s: this machine pauses for less
        for text in ("", "returns: 1h\n", "returns: 1s\noff: {fleet: 'anna: maintenance'}\n"):
            self.settings(text)
            if not self.said:
                self.join(0)
                self.join(1)  # never heard: it is not asked
                self.wait(self.speak, 10, "no answer")
            self.away()
            self.assertEqual(self.get(RUNS)["items"], [], text)
        self.settings("returns: 1s\nyoung: 0s\n")  # what was due meanwhile
        run = self.asked(1)
        self.speak(self.sheet(run, 1, self.WRONG[2]))
        done = self.done(run)
        self.assertEqual((done["who"], done["whole"], done["not_read"]), ("its return", False, []), done)
        self.assertEqual(len(self.get(RUNS)["items"]), 1)

    def switches(self):
        """A check, a class and a host that are switched off: the run reports them as skipped. The fleet: no audit begins, and a
        running one ends."""
        self.settings("off: {hosts: {h0: 'anna: on the bench'}, classes: {bandwidth: 'ben: rebuilt'}}\n")
        self.speak()
        run = self.done(int(self.request("POST", RUNS, {"nccl": True})[2]["run"]))
        self.assertEqual((run["tests_why"], run["tests"]), ("such tests are switched off by ben: rebuilt", None), run)
        self.assertEqual([(o["host"], o["note"]) for o in run["not_read"]], [("h0", "switched off by anna: on the bench")], run)
        self.assertEqual({(o["kind"], o["name"]) for o in run["off"]}, {("host", "h0"), ("class", "bandwidth")}, run["off"])
        self.assertEqual((run["counts"]["skip"], self.get("/api/v1/audit/hosts/h0/gate")["status"]), (1, "unknown"), run["counts"])
        self.assertIn("foliot_audit_off 2", str(self.request("GET", "/metrics")[2]))
        self.settings("checks: {node.mounts: {off: 'anna: known'}}\n")
        run = self.begin_live()
        self.settings("off: {fleet: 'anna: maintenance'}\n")
        stopped = self.wait(lambda: (r := self.get(f"{RUNS}/{run}"))["state"] == "stopped" and r, 10, lambda: str(self.get(RUNS)))
        self.assertEqual(stopped["why"], "audits are switched off by anna: maintenance")
        status, _, answer = self.request("POST", RUNS, {})
        self.assertEqual((status, answer["error"]["code"]), (409, "audits-off"), answer)
        self.settings("off: {hosts: [h0]}\n")  # refused: the earlier settings stay
        self.assertEqual(self.request("POST", RUNS, {})[2]["error"]["code"], "bad-settings")
        self.settings("")

    def baselines(self, run):
        """A person accepts it, with the date. Another run is compared with it. It is kept longer than others."""
        paths = "/api/v1/audit/baselines"
        self.assertEqual(self.get(paths)["items"], [])
        self.assertEqual(self.request("GET", f"{RUNS}/latest/diff?with=baseline")[0], 404)
        made = self.request("POST", "/api/v1/tokens", {"name": "operator", "role": "operator"})[2]["token"]
        self.assertEqual(self.request("POST", paths, {"run": str(run)}, token=made)[0], 403)
        self.assertEqual(self.request("POST", paths, {"run": "latest"})[2]["error"]["code"], "not-done")
        self.assertEqual(self.request("POST", paths, {"run": "7"})[0], 404)
        accepted = self.request("POST", paths, {"run": str(run), "name": "as <b>delivered</b>"})[2]["items"]
        self.assertEqual([(b["run"], b["name"], b["hosts"], b["measured"]) for b in accepted], [(str(run), "as <b>delivered</b>", 1, 1)], accepted)
        again = self.begin_live()
        self.speak(self.sheet(again, 1, ("nic", "net\tvalue\tnic7\tnic7\t/s\n", b""), self.WRONG[2]))
        self.done(again)
        diff = self.get(f"{RUNS}/latest/diff?with=baseline")
        self.assertIn(("net", "nic7"), {(f["fact"], f["subject"]) for f in diff["facts"]}, diff)
        self.assertEqual(self.request("DELETE", f"{paths}/{run}")[2]["items"], [])

    def begin_live(self):
        """Begins an audit that asks h0. If the machine pauses, h0 is silent for a moment: then it tries again."""
        def begun():
            self.speak()
            run = self.request("POST", RUNS, {})[2].get("run")
            return run and self.get(f"{RUNS}/{run}")["state"] == "reading" and int(run)
        return self.wait(begun, 30, lambda: str(self.get(RUNS)))

    def test_tenants_neighbour(self):
        """Two hosts with the same machine id, one of them a tenant's. The tenant sees neither the other host's name nor the names
        of hosts that its own host measures."""
        self.start()
        for i in (0, 1):
            self.join(i)
            self.say(1, host=f"h{i}")
        run = self.begin()
        lines = "os.machine_id\tvalue\t\tabcdefabcdefabcdefabcdefabcdef00\t/x\nos.product\tvalue\t\tbox\t/x\n"
        edge = "edge\tvalue\teth0 h1 eth0\trail 1\tagent: mesh\n"
        for look in (1, 2):
            for i in (0, 1):
                self.say(1 + look, self.sheet(run, look, ("own", lines, b""), ("os", lines, b""), ("now", edge, b"")), host=f"h{i}")
        self.done(run)
        self.assertIn("so has h1", self.get("/api/v1/audit/hosts/h0/gate")["text"])
        made = self.request("POST", "/api/v1/tokens", {"name": "tenant", "role": "viewer", "scope": "h0"})[2]["token"]
        for path in (f"runs/{run}", f"runs/{run}/nodes", f"runs/{run}/results?limit=1000", "hosts/h0/gate", "hosts/h0/facts"):
            answer = json.dumps(self.get(f"/api/v1/audit/{path}", token=made))
            self.assertIsNone(re.search(r"\bh1\b|as 2 of 2|median", answer), answer)
        gates = [self.get("/api/v1/audit/hosts/h0/gate", token=made)["text"],
                 self.get(f"/api/v1/audit/runs/{run}/nodes", token=made)["items"][0]["gate_text"]]
        self.assertRegex(gates[0], r"^[a-z]+(\.[a-z0-9_]+)+$")
        self.assertEqual(gates[1], gates[0])
        self.assertTrue(self.get("/api/v1/audit/hosts/h0/gate")["text"].startswith(gates[0] + ": "), gates)
        own = [int(r["run"]) for r in self.get(RUNS, token=made)["items"]]
        # The same for what a person has accepted of other tenants' hosts.
        other = self.request("POST", "/api/v1/tokens", {"name": "other", "role": "viewer", "scope": "z-*"})[2]["token"]
        self.assertEqual(self.request("POST", "/api/v1/audit/baselines", {"run": str(run), "name": "as delivered"})[0], 200)
        self.assertEqual([[b["hosts"] for b in self.get("/api/v1/audit/baselines", token=t)["items"]] for t in (made, other)], [[1], []])
        strangers = int(self.request("POST", RUNS, {"hosts": ["h1"]})[2]["run"])
        self.assertEqual(self.request("DELETE", f"{RUNS}/{strangers}")[0], 200)
        page = self.get(f"{RUNS}?limit={len(own)}", token=made)  # h0's tenant can't see an audit of h1 alone
        self.assertEqual([int(r["run"]) for r in page["items"]], own)
        self.assertEqual(int(self.get(f"{RUNS}/latest", token=made)["run"]), run)
        for more in ("", "/results", "/nodes", "/diff?with=" + str(run), "/matrix"):
            self.assertEqual(self.request("GET", f"{RUNS}/{strangers}{more}", token=made)[0], 404, more)
        self.assertEqual(self.request("GET", f"{RUNS}/{run}/diff?with={strangers}", token=made)[0], 404)


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)

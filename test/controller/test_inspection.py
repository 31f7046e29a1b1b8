#!/usr/bin/env python3
"""An audit of a fleet through its controller. Hosts are asked, read themselves by foliot-inspect, and are judged together. What
each caller sees; a restart; hosts that can't be read. usage: test_inspection.py CONTROLLER AGENT FOLIOT INSPECT"""
import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "audit"))
import fleet  # noqa: E402
import machine  # noqa: E402

INSPECT = os.path.abspath(sys.argv.pop(4))
fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))
RUNS = "/api/v1/audit/runs"
SILENT = "it is silent"  # note of a host that was left out


class TestInspection(fleet.Fleet):
    HOSTS = 6

    def members(self, *numbers):
        """Each host reads a machine that is a tree of files."""
        for i in numbers:
            machine.build(self.path(f"root-h{i}"), machine.files("roce", i + 1))
            self.join(i)
            self.write(f"h{i}.yaml", self.read(self.path(f"h{i}.yaml")) +
                       f"inspect: {INSPECT}\ninspect_root: {self.path(f'root-h{i}')}\nperf: {self.path('foliot-perf')}\n")
        agents = {i: self.agent(i) for i in numbers}
        for i in numbers:
            self.wait(lambda: (self.host(f"h{i}") or {}).get("paths") is not None, 15, lambda: str(self.host(f"h{i}")))
        return agents

    def change(self, i, path, text):
        whole = self.path(f"root-h{i}") + path
        with open(whole, "wb" if isinstance(text, bytes) else "w") as file:  # pylint: disable=unspecified-encoding
            file.write(text)

    def foliot(self, *arguments, token="admin"):
        done = subprocess.run(["ip", "netns", "exec", self.space("c"), self.FOLIOT, "audit", *arguments], text=True, check=False,
                              capture_output=True, env=dict(os.environ, FOLIOT_TOKEN=self.admin if token == "admin" else token,
                                                            FOLIOT_API="http://127.0.0.1:7639"))
        return done.returncode, done.stdout + done.stderr

    gone = ()  # hosts that are no longer heard

    def heard(self):
        """Waits until all present hosts are live: an audit leaves out a host as silent if it pauses for some seconds."""
        self.wait(lambda: all(h["freshness"] == "live" for h in self.get("/api/v1/hosts")["items"] if h["name"] not in self.gone), 10,
                  lambda: str(self.get("/api/v1/hosts")))

    def audit(self, *hosts):
        told = []

        def read():  # the readers yield to all other processes: on a busy machine a sheet may be too late
            self.heard()
            status, out = self.foliot("run", "--fleet", "--json", *hosts)
            self.assertEqual(out[0], "{", out)
            run = json.loads(out)
            told[:] = [o for o in run["not_read"] if o["host"] not in self.gone and (o["reason"] == "timeout" or o["note"] == SILENT)]
            return not told and (status, run)
        return self.wait(read, 30, lambda: f"sheets that come in time: {told}")

    @staticmethod
    def of(run, status):
        return {(r["check"], r["host"]) for r in run["results"] if r["status"] == status}

    def rows(self, text):
        with sqlite3.connect(self.path("data", "store.db")) as store:
            return store.execute(text).fetchall()

    def never_looked_at(self, agents):
        """The first audit is stopped before a host answers: no host passes its gate by that."""
        self.hold(agents, *agents)
        run = self.request("POST", RUNS, {})[2]["run"]
        self.assertEqual(self.foliot("stop", run)[0], 0)
        for agent in agents.values():
            agent.process.send_signal(signal.SIGCONT)
        self.heard()
        self.assertEqual({self.foliot("gate", "--fleet", f"h{i}")[0] for i in range(6)}, {3})

    def healthy_then_one_wrong(self):
        status, run = self.audit()
        self.assertEqual((run["state"], run["hosts"], run["not_read"]), ("done", 6, []), run)
        self.assertEqual(self.of(run, "fail"), set(), run)
        before = run["run"]
        bodies = self.rows("SELECT count(DISTINCT hash) FROM host_part WHERE part <> 'now'")[0][0]
        parts = self.rows("SELECT count(*) FROM host_part WHERE part <> 'now'")[0][0]
        self.assertLess(bodies, parts)  # hosts of one kind share parts
        # one host has another driver, and a port of one NIC is down
        self.change(3, "/proc/sys/kernel/osrelease", "6.8.0-58-generic\n")
        self.change(4, "/sys/class/infiniband/mlx5_1/ports/1/state", "2: INIT\n")
        status, run = self.audit()
        self.assertEqual(status, 1)
        self.assertEqual(self.of(run, "fail"), {("cfg.sw.kernel", "h3"), ("be.link.active", "h4")}, self.of(run, "fail"))
        self.assertEqual(run["look"], 1)
        self.changed(before, run["run"])
        found = [r for r in run["results"] if r["check"] == "cfg.sw.kernel" and r["host"] == "h3"][0]
        self.assertEqual((found["found"], found["remedy"] is not None), ("6.8.0-58-generic", True), found)
        # unchanged parts were not sent again
        self.assertLess(self.rows("SELECT count(*) FROM host_part WHERE part <> 'now'")[0][0], parts + 6)
        return run

    def changed(self, was, run):
        """A fact and its checks changed: the diff shows it in both directions, and an event reports it."""
        status, out = self.foliot("diff", "--json", was, run)
        diff = json.loads(out)
        self.assertEqual((status, diff["hosts"], diff["cut"]), (1, 6, False), diff)
        facts = {(f["host"], f["fact"], f["subject"], f["was"], f["is"]) for f in diff["facts"]}
        self.assertEqual(facts, {("h3", "os.kernel", "", "6.8.0-60-generic", "6.8.0-58-generic"),
                                 ("h4", "port.state", "mlx5_1/1", "4: ACTIVE", "2: INIT")}, diff)
        self.assertLessEqual({("h3", "cfg.sw.kernel", "pass", "fail"), ("h4", "be.link.active", "pass", "fail")},
                             {(r["host"], r["check"], r["was"], r["is"]) for r in diff["results"]})
        # If a reader was late on a busy machine, a result becomes unknown, but no fact changes.
        self.assertEqual({r["host"] for r in diff["results"] if "unknown" not in (r["was"], r["is"])}, {"h3", "h4"}, diff)
        events = [e for e in self.events(kind="host", word="fact-changed")]
        self.assertEqual({(e["host"], e["detail"]["fact"], e["detail"]["is"]) for e in events},
                         {("h3", "os.kernel", "6.8.0-58-generic"), ("h4", "port.state", "2: INIT")}, events)
        self.assertEqual(self.foliot("diff", run, run)[0], 0)
        self.assertEqual(self.request("GET", f"{RUNS}/{run}/diff?with=7")[0], 404)
        self.assertEqual(self.request("GET", f"{RUNS}/{run}/diff")[0], 400)

    # Checks that need more than the hosts' facts: the incidents, and the first look's failures that the second look did not
    # confirm.
    OF_FLEET = {"node.history"}

    def one_evaluator(self, run):
        """`foliot audit show` of the facts by which the controller judged: each result is the same, to the last byte."""
        folder = self.path("sheets")
        os.makedirs(folder)
        for i in range(self.HOSTS):
            self.write(f"sheets/h{i}.json", json.dumps(self.get(f"/api/v1/audit/hosts/h{i}/facts")))
        status, out = self.foliot("show", folder, "--json", "--all")
        two_looks = {(r["check"], r["host"]) for r in run["results"] if r["seen_once"] or r["note"].startswith("it failed")}

        def told(results):
            return {(r["check"], r["host"], r["subject"]): json.dumps(r) for r in results if r["status"] not in ("pass", "skip")
                    and r["check"] not in self.OF_FLEET and (r["check"], r["host"]) not in two_looks}
        results = json.loads(out)["results"]
        self.assertEqual((status, told(run["results"])), (1, told(results)))
        self.assertGreaterEqual(len(told(results)), 2)
        checks, order, marks = [c["check"] for c in run["checks"]], ("fail", "unknown", "warn", "pass", "skip"), {}
        for r in results:  # of passes only the worst status of a check is kept
            at = r["check"], r["host"]
            marks[at] = min(marks.get(at, 4), order.index(r["status"]))
        for n in self.get(f"{RUNS}/{run['run']}/nodes")["items"]:
            both = {c: (m, "FUWPS"[marks[c, n["host"]]]) for c, m in zip(checks, n["marks"]) if c not in self.OF_FLEET and (c, n["host"]) not in two_looks}
            self.assertEqual({c: pair for c, pair in both.items() if pair[0] != pair[1]}, {}, n["host"])
            self.assertGreater(len(both), 140)

    ARRIVE = ("be.conn.", "be.matrix.reach", "be.matrix.path", "be.matrix.loss")

    def connectivity(self, run):
        """What the audit's own checks found decides. Only where it has none, the mesh tells how it is now. Returns {host: status}
        of those that the audit found."""
        checks, found = [c["check"] for c in run["checks"]], {}
        for n in self.get(f"{RUNS}/{run['run']}/nodes")["items"]:
            worst = min(("FUWPS".index(m) for c, m in zip(checks, n["marks"]) if c.startswith(self.ARRIVE)), default=4)
            self.assertEqual(n["connectivity_now"], worst == 4, n)
            if worst < 4:
                found[n["host"]] = n["connectivity"]
                self.assertEqual(n["connectivity"], ("fail", "unknown", "warn", "pass")[worst], n)
        return found

    def shown(self, run):
        self.connectivity(run)
        status, out = self.foliot("show", "--fleet")
        self.assertEqual((status, "cfg.sw.kernel  h3" in out, "be.link.active  h4 mlx5_1/1" in out), (1, True, True), out)
        status, out = self.foliot("nodes", "--json")
        nodes = {n["host"]: n for n in json.loads(out)}
        lines = self.foliot("nodes")[1].splitlines()
        self.assertEqual((lines[1].split()[0], lines[-1]), ("h4", "gate, may a host take a job: 1 fail, 5 pass"), lines)
        self.assertEqual({h for h in nodes if nodes[h]["status"] == "fail"}, {"h3", "h4"}, nodes)
        # the worst first, also over pages: a host that takes no job, a host that fails, the others as the fleet has them
        paged, cursor = [], ""
        while cursor is not None:
            page = self.get(f"{RUNS}/{run['run']}/nodes?limit=2{cursor}")
            paged += [n["host"] for n in page["items"]]
            cursor = page["next"] and f"&cursor={page['next']}"
        self.assertEqual((paged[:2], sorted(paged)), (["h4", "h3"], [f"h{i}" for i in range(self.HOSTS)]), nodes)
        self.assertEqual((nodes["h4"]["active"], nodes["h3"]["active"]), ("fail", "pass"), nodes)
        self.wait(lambda: {n["host"]: n for n in json.loads(self.foliot("nodes", "--json")[1])}["h3"]["agent"] == "live", 5, str(nodes))
        self.assertEqual([self.foliot("gate", "--fleet", h)[0] for h in ("h4", "h3", "h0")], [2, 0, 0], nodes)
        self.assertEqual(self.foliot("gate", "--fleet", "--format", "slurm", "h4")[0], 1)
        self.assertEqual(self.foliot("gate", "--fleet", "h9")[0], 3)
        gate = self.get("/api/v1/audit/hosts/h0/gate?age_s=1")
        self.wait(lambda: self.get("/api/v1/audit/hosts/h0/gate?age_s=1")["reason"] == "stale", 3, str(gate))
        facts = self.get("/api/v1/audit/hosts/h3/facts")
        kept = self.write("h3.json", json.dumps(facts))
        self.assertEqual((facts["host"], len(facts["facts"]) > 200), ("h3", True))
        self.assertIn(self.foliot("show", kept)[0], (0, 1, 3))
        self.assertEqual(len(self.get("/api/v1/audit/checks")["items"]), len(run["checks"]))
        self.assertEqual(self.get(RUNS)["items"][0]["run"], run["run"])
        page = self.get(f"{RUNS}/{run['run']}/results?limit=1&status=fail")
        self.assertEqual(len(page["items"]), 1, page)
        # a page at a time: each result once, in the order of one answer
        for query in ("", "&status=fail", "&check=cfg.sw.kernel", "&host=h4"):
            whole, paged, cursor = self.get(f"{RUNS}/{run['run']}/results?limit=1000{query}")["items"], [], ""
            while cursor is not None:
                page = self.get(f"{RUNS}/{run['run']}/results?limit=7{query}{cursor}")
                self.assertLessEqual(len(page["items"]), 7)
                paged += page["items"]
                cursor = page["next"] and f"&cursor={page['next']}"
            self.assertEqual(paged, whole, query)
            self.assertGreater(len(whole), 0, query)

    def tenants(self, run):
        made = self.request("POST", "/api/v1/tokens", {"name": "tenant", "role": "viewer", "scope": "h0,h4"})[2]["token"]
        self.assertEqual(self.request("POST", RUNS, {}, token=made)[0], 403)
        self.assertEqual(self.request("DELETE", f"{RUNS}/{run['run']}", token=made)[0], 403)
        whole = self.get(f"{RUNS}/{run['run']}", token=made)
        self.assertEqual((whole["hosts"], sum(whole["counts"].values())), (2, 2), whole)
        for what in ("results", "nodes"):
            hosts = {i["host"] for i in self.get(f"{RUNS}/{run['run']}/{what}?limit=1000", token=made)["items"]}
            self.assertEqual(hosts | {"h0"}, {"h0", "h4"}, what)  # h0 has nothing but passes
        for path in ("h3/gate", "h3/facts"):
            self.assertEqual(self.request("GET", f"/api/v1/audit/hosts/{path}", token=made)[0], 404)
        self.assertEqual(self.request("GET", "/api/v1/audit/hosts/h4/gate", token=made)[0], 200)

    def refused(self, run):
        self.assertEqual(self.request("POST", RUNS, {"hosts": ["h9"]})[0], 404)
        self.assertEqual(self.request("POST", RUNS, {"hosts": "h1"})[0], 400)
        self.assertEqual(self.request("DELETE", f"{RUNS}/{run['run']}")[0], 409)
        for path in ("7", "no", "7/results", f"{run['run']}/nothing", f"{run['run']}x"):
            self.assertEqual(self.request("GET", f"{RUNS}/{path}")[0], 404, path)
        self.write("audit.yaml", "version: 1\nchecks:\n  cfg.no.such: {off: me}\n")
        status, _, answer = self.request("POST", RUNS, {})
        self.assertEqual((status, answer["error"]["code"]), (409, "bad-settings"), answer)
        self.assertIn("audit.yaml:3", answer["error"]["message"])
        self.write("audit.yaml", "version: 1\nchecks:\n  cfg.sw.kernel: {off: 'anna: new ones come'}\n")
        status, again = self.audit("h3")
        self.assertEqual((again["hosts"], self.of(again, "fail")), (1, set()), again)
        self.write("audit.yaml", "version: 1\n")

    def not_read(self, agents):
        """An agent that can't read, one that is gone, one of the version before: each has its reason, and none passes."""
        agents[5].stop(signal.SIGKILL)
        self.gone = ("h5",)
        self.wait(lambda: self.host("h5")["freshness"] == "stale", 15, lambda: str(self.host("h5")))
        os.rename(self.path("root-h2"), self.path("elsewhere"))
        _, run = self.audit("h2", "h5", "h0")
        reasons = {o["host"]: o["reason"] for o in run["not_read"]}
        self.assertEqual(reasons, {"h2": "no_source", "h5": "not_run"}, run["not_read"])
        self.assertEqual(run["left_out"], run["not_read"])  # older programs read this field
        self.assertEqual({r["status"] for r in run["results"] if r["host"] in ("h2", "h5")}, {"unknown"})
        self.assertEqual([self.foliot("gate", "--fleet", h)[0] for h in ("h2", "h5")], [3, 3])
        note = {o["host"]: o["note"] for o in run["not_read"]}["h5"]
        self.assertEqual(self.foliot("gate", "--fleet", "h5")[1], f"h5: unknown: not read (not_run): {note}\n")
        # hosts that were not read are listed first, and don't count as changes
        status, out = self.foliot("show", "--fleet", run["run"])
        self.assertIn(f"  not read  h5 (not_run): {note}\n", out)
        self.assertLess(out.index("not read  h5"), out.index("configuration"))
        before = next(r["run"] for r in self.get(RUNS)["items"] if r["hosts"] == 6)
        status, out = self.foliot("diff", before, run["run"])
        self.assertEqual((status, [line for line in out.splitlines() if line.startswith("h5: ")]),
                         (1, [f"h5: was not read in the second audit (not_run): {note}"]), out)
        self.assertEqual(self.foliot("gate", "--fleet", "--format", "slurm", "h5")[0], 1)
        os.rename(self.path("elsewhere"), self.path("root-h2"))

    def every_nic(self):
        """h5 is gone: its cells have that reason. All others are measured, or have a reason of their own."""
        self.wait(lambda: all(self.host(f"h{i}")["clock"]["status"] == "SYNCED" for i in range(5)), 30, lambda: str(self.host("h0")))
        def measured():  # all agents may have had no processor at their rounds
            out = self.foliot("run", "--fleet", "--matrix", "--json")[1]
            run = json.loads(out)
            self.assertEqual((run["state"], run["matrix"], run["matrix_why"]), ("done", True, None), out[:500])
            matrix = self.get(f"{RUNS}/{run['run']}/matrix")
            return matrix["measured"] > 0 and (run, matrix)
        run, matrix = self.wait(measured, 30, "a cell that is measured")
        self.assertEqual((matrix["cells"], matrix["measured"] + sum(matrix["unmeasured"].values())), (120, 120), matrix["unmeasured"])
        self.assertGreater(matrix["measured"], 0, matrix["unmeasured"])
        hosts = [n["host"] for n in matrix["nics"]]
        for a, row in zip(hosts, matrix["why"]):
            for b, why in zip(hosts, row):
                self.assertEqual(why == "same-host", a == b, matrix["why"])
                if a != b and "h5" in (a, b):
                    self.assertIn(why, ("silent", "late", "clock", "refused"))
                elif a != b:
                    self.assertIn(why, (None, "late", "clock", "refused"))  # beside other tests an agent may have no processor
        self.assertEqual({why for a, row in zip(hosts, matrix["why"]) for b, why in zip(hosts, row) if a == "h5" != b}, {"silent"})
        self.assertLessEqual({n["note"] for n in matrix["nics"] if n["host"] != "h5"}, {None, "it has begun already", "this host has no fleet time"})
        self.assertEqual(self.connectivity(run)["h5"], "unknown")
        found = {r["host"]: r["reason"] for r in run["results"] if r["check"].startswith("be.matrix.") and r["status"] == "unknown"}
        self.assertEqual(found.get("h5"), "not_run", found)
        self.assertIn("of 120 cells measured", self.foliot("matrix")[1])
        made = self.request("POST", "/api/v1/tokens", {"name": "one", "role": "viewer", "scope": "h0,h1"})[2]["token"]
        seen = self.get(f"{RUNS}/{run['run']}/matrix", token=made)
        self.assertEqual(({n["host"] for n in seen["nics"]}, len(seen["delay_ns"]), "cells" in seen), ({"h0", "h1"}, 4, False))
        self.assertEqual(self.request("POST", RUNS, {"matrix": 1})[0], 400)
        self.assertEqual(self.request("POST", RUNS, {"matrix": True, "family": 5})[0], 400)

    def hold(self, agents, *numbers):
        """These hosts pause while all but h5 are live: no audit of them ends."""
        self.heard()
        for i in numbers:
            agents[i].process.send_signal(signal.SIGSTOP)

    def over_a_restart(self, controller, agents):
        """The controller is killed while hosts are asked: the audit goes on with all of them."""
        before = self.get(RUNS)["items"][0]["run"]
        matrix = self.get(f"{RUNS}/{before}/matrix")

        def killed():
            nonlocal controller
            self.hold(agents, 0)
            status, _, run = self.request("POST", RUNS, {"hosts": ["h0", "h1", "h3", "h4"]})
            self.assertEqual((status, run["state"]), (200, "reading"), run)
            self.assertEqual(self.request("POST", RUNS, {})[0], 409)  # one at a time
            controller.stop(signal.SIGKILL)
            agents[0].process.send_signal(signal.SIGCONT)
            self.assertEqual(self.rows("SELECT count(*) FROM audit_run WHERE ended_ns = 0")[0][0], 1)
            controller = self.controller()
            controller.wait_log("audit .* goes on")
            self.assertEqual(self.get(f"{RUNS}/{before}/matrix"), matrix)
            done = self.wait(lambda: (r := self.get(f"{RUNS}/{run['run']}"))["state"] == "done" and r, 30, lambda: str(self.get(RUNS)))
            return all(o["reason"] != "timeout" for o in done["not_read"]) and done
        done = self.wait(killed, 30, "sheets that come in time")
        self.assertEqual((done["hosts"], done["not_read"], done["counts"]["fail"]), (4, [], 2), done)
        self.assertGreater(int(done["run"]), int(before))
        self.assertEqual(self.foliot("gate", "--fleet", "h4")[0], 2)
        return controller

    def stopped(self, agents):
        """h4 has answered, h0 and h1 have not. The audit is judged by that, and doesn't change the gate."""
        before = {h: self.foliot("gate", "--fleet", h) for h in ("h0", "h1", "h4")}

        def answered():
            self.hold(agents, 0, 1)
            status, _, run = self.request("POST", RUNS, {"hosts": ["h0", "h1", "h4"]})
            self.assertEqual(status, 200)
            now = self.wait(lambda: (r := self.get(f"{RUNS}/{run['run']}"))["unanswered"] == 2 and r, 60, lambda: str(self.get(RUNS)["items"][0]))
            if now["not_read"]:  # h4's sheet was too late
                self.assertEqual([(o["host"], o["reason"]) for o in now["not_read"]], [("h4", "timeout")])
                self.foliot("stop", run["run"])
                for i in (0, 1):
                    agents[i].process.send_signal(signal.SIGCONT)
                return None
            return run
        run = self.wait(answered, 30, "a sheet that comes in time")
        status, out = self.foliot("stop", run["run"])
        self.assertEqual((status, "stopped it" in out, "  covered   1 of 3 sheets\n" in out), (0, True, True), out)
        stopped = self.get(f"{RUNS}/{run['run']}")
        self.assertEqual((stopped["state"], stopped["covered"], stopped["counts"]["unknown"]), ("stopped", {"sheets": {"done": 1, "of": 3}, "cells": None, "tests": None}, 3), stopped)
        self.assertEqual(self.foliot("show", "--fleet", run["run"])[0], 3)
        nodes = {n["host"]: n for n in self.get(f"{RUNS}/{run['run']}/nodes")["items"]}
        self.assertEqual((set(nodes["h0"]["marks"]), set(nodes["h1"]["marks"]), "P" in nodes["h4"]["marks"]), ({"U"}, {"U"}, True), nodes)
        found = [r for r in self.get(f"{RUNS}/{run['run']}/results?host=h4&limit=1000")["items"] if r["check"] == "be.link.active"]
        self.assertEqual([(r["status"], r["reason"], r["found"]) for r in found], [("unknown", "not_run", "INIT")], "one look fails nobody")
        self.assertEqual({h: self.foliot("gate", "--fleet", h) for h in before}, before)
        for i in (0, 1):
            agents[i].process.send_signal(signal.SIGCONT)

    def refused_over_a_restart(self, controller, agents):
        """audit.yaml is damaged meanwhile: the audit ends and gives the reason. The next one can begin."""
        self.hold(agents, 0)
        run = self.request("POST", RUNS, {"hosts": ["h0"]})[2]["run"]
        controller.stop(signal.SIGKILL)
        self.write("audit.yaml", "version: 2\n")
        self.controller()
        ended = self.get(f"{RUNS}/{run}")
        self.assertEqual((ended["state"], "audit.yaml:1" in ended["why"]), ("stopped", True), ended)
        self.write("audit.yaml", "version: 1\n")
        self.assertEqual(self.request("POST", RUNS, {"hosts": ["h0"]})[0], 200)
        agents[0].process.send_signal(signal.SIGCONT)

    def test_audit(self):
        controller = self.start(extra=f"audit: {self.write('audit.yaml', 'version: 1' + chr(10))}\n", report="5s", beat="1s")
        agents = self.members(*range(self.HOSTS))
        self.never_looked_at(agents)
        run = self.healthy_then_one_wrong()
        self.one_evaluator(run)
        self.shown(run)
        self.tenants(run)
        self.refused(run)
        self.not_read(agents)
        self.every_nic()
        controller = self.over_a_restart(controller, agents)
        self.stopped(agents)
        self.refused_over_a_restart(controller, agents)


FAILS = ("fe.reach", "fe.path_mtu")  # by real packets: test/audit/test_shown.py


class TestFrontEnd(TestInspection):
    """Real packets over the network between agents and controller."""
    HOSTS = 6
    test_audit = None

    def marks(self, run):
        """{check: {host: letter}} of the front end."""
        checks = [c["check"] for c in self.get(f"{RUNS}/{run['run']}")["checks"]]
        nodes = {n["host"]: n["marks"] for n in self.get(f"{RUNS}/{run['run']}/nodes")["items"]}
        return {check: {host: marks[checks.index(check)] for host, marks in nodes.items()} for check in ("fe.reach", "fe.path_mtu", "node.history")}

    def test_front_end(self):
        self.start(extra=f"audit: {self.write('audit.yaml', 'version: 1' + chr(10))}\n", report="5s", beat="1s")
        self.members(*range(self.HOSTS))
        all_pass = {f"h{i}": "P" for i in range(self.HOSTS)}
        run = self.audit()[1]
        self.assertEqual(self.marks(run), {"fe.reach": all_pass, "fe.path_mtu": all_pass, "node.history": all_pass}, run["results"])
        others = [f"10.90.0.{10 + i}/32" for i in range(self.HOSTS) if i != 2]
        for address in others:  # a filter that drops packets
            self.ip("h2", "route", "add", "blackhole", address)
        status, run = self.audit()
        self.assertEqual((status, self.of(run, "fail")), (1, {(FAILS[0], "h2")}), run["results"])
        self.assertEqual({host for host, mark in self.marks(run)["fe.reach"].items() if mark == "P"} & {"h2"}, set())
        self.assertEqual(self.marks(run)["fe.path_mtu"]["h2"], "U")  # short ones aren't answered either
        self.assertEqual(self.foliot("gate", "--fleet", "h2")[0], 2)
        for address in others:
            self.ip("h2", "route", "del", "blackhole", address)
        # it takes no packet of the others' full size; its own packets arrive
        self.ip("h2", "link", "set", "mgmt", "mtu", "1300")
        status, run = self.audit()
        self.assertEqual((status, self.of(run, "fail")), (1, {(FAILS[1], "h2")}), run["results"])
        found = [r for r in run["results"] if r["check"] == "fe.path_mtu" and r["host"] == "h2" and r["status"] == "fail"]
        self.assertRegex(found[0]["found"], "^[234] of [34] neighbours find it here$")
        self.ip("h2", "link", "set", "mgmt", "mtu", "1500")
        run = self.audit("h2")[1]  # an audit of this host alone: the other hosts' reports of the audit before are no evidence
        self.assertEqual(self.of(run, "fail"), set(), run["results"])
        self.write("audit.yaml", "version: 1\noff: {classes: {packets: 'anna: enough'}}\n")
        run = self.audit()[1]
        self.assertEqual({mark for check in ("fe.reach", "fe.path_mtu") for mark in self.marks(run)[check].values()}, {"S"})


class TestInUse(TestInspection):
    """Tests of bandwidth don't disturb a program that uses a host, with or without the page of a job."""
    HOSTS = 3
    test_audit = None

    @staticmethod
    def programs(agent):
        """The tests that it runs now."""
        found = set()
        with contextlib.suppress(OSError), open(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children", encoding="utf-8") as file:
            for child in file.read().split():
                with contextlib.suppress(OSError), open(f"/proc/{child}/cmdline", encoding="utf-8") as line:
                    if line.read().split("\0")[1:3] == ["perf", "--agent"]:
                        found.add(child)
        return found

    def begin_tests(self, **more):
        status, _, run = self.request("POST", RUNS, {"bandwidth": True, **more})
        self.assertEqual(status, 200, run)
        return run["run"]

    def has_ended(self, run):
        return self.get(f"{RUNS}/{run}")["state"] in ("done", "stopped")

    def preempted(self, agents):
        """The page of a job comes while a test runs: the test ends and gives the reason. The page is a link to the page of a
        running job, so that it is complete at once."""
        jobs = self.path("run-h0", "jobs")

        def tried():
            runtime = tempfile.mkdtemp(dir=self.folder)
            pages = os.path.join(runtime, "jobs")
            os.mkdir(pages)
            job = fleet.Process(self, "job", self.space("h0"), self.FOLIOT, *"perf --ranks 2 -b 64K -e 64K --duration 3000 -c 0 --wait 1000".split(),
                                environment={"FOLIOT_RUNTIME_DIR": runtime, "FOLIOT_NIC": "lo"})
            self.wait(lambda: len(os.listdir(pages)) == 2, 10, job.log)
            run, under, over, look = self.begin_tests(hosts=["h0", "h1"]), set(), False, 0.0
            while not over:
                if not under and (under := self.programs(agents[0])):
                    for page in os.listdir(pages):
                        os.link(os.path.join(pages, page), os.path.join(jobs, page))
                if time.monotonic() >= look:
                    over, look = self.has_ended(run), time.monotonic() + 0.5
                time.sleep(0.005)
            self.assertEqual(under & self.programs(agents[0]), set())
            job.stop()
            found = {r["reason"] for r in self.get(f"{RUNS}/{run}/results?limit=1000&host=h0&check=be.bw.pair")["items"]}
            return found == {"preempted"}  # else it came between two tests, or no test began in time
        self.wait(tried, 30, agents[0].log)
        agents[0].wait_log("a job begins: an audit's test is ended")

    def left_alone(self, controller, agents):
        """No controller could end these tests any more: they end by themselves."""
        run = self.begin_tests()
        self.wait(lambda: any(self.programs(agent) for agent in agents.values()), 30, agents[1].log)
        controller.process.send_signal(signal.SIGSTOP)
        try:
            for agent in agents.values():
                agent.wait_log("an audit's tests are ended: the controller is silent")
                self.wait(lambda agent=agent: not self.programs(agent), 1, agent.log)
        finally:
            controller.process.send_signal(signal.SIGCONT)
        self.request("DELETE", f"{RUNS}/{run}")
        self.wait(lambda: self.has_ended(run), 30, lambda: str(self.get(f"{RUNS}/{run}")))

    def pairs(self):
        """{host: (reason, note)} of a run of tests. No host has the program for them."""
        def told():
            status, out = self.foliot("run", "--fleet", "--bandwidth", "--json")
            run = json.loads(out)
            self.assertEqual((status in (1, 3), run["state"], run["tests_why"]), (True, "done", None), out[:500])
            found = {r["host"]: (r["reason"], r["note"]) for r in run["results"] if r["check"] == "be.bw.pair"}
            late = ("no processor", "no fleet time", "silent")  # effects of a busy machine, which aren't judged here
            return not any(word in (note or "") for _, note in found.values() for word in late) and found
        return self.wait(told, 30, "tests that begin in time")

    def test_hosts_in_use(self):
        controller = self.start(report="5s", beat="1s")
        agents = self.members(*range(self.HOSTS))
        self.wait(lambda: all(self.host(f"h{i}")["clock"]["status"] == "SYNCED" for i in range(self.HOSTS)), 30, lambda: str(self.host("h0")))
        os.symlink("/dev/nvidia2", self.path("root-h1") + "/proc/911/fd/7")
        self.change(1, "/dev/nvidia2", "x")
        found = self.pairs()
        self.assertEqual(found["h1"], ("busy", "busy: a process uses a GPU"), found)
        for host in ("h0", "h2"):
            self.assertEqual(found[host][0], "not_run", found)
            self.assertIn("systemctl enable --now foliot-perf.socket", found[host][1])
        os.unlink(self.path("root-h1") + "/proc/911/fd/7")
        os.chmod(self.folder, 0o711)  # the tests run as the user nobody
        os.symlink(self.FOLIOT, self.path("foliot-perf"))
        self.preempted(agents)
        self.left_alone(controller, agents)
        os.unlink(self.path("foliot-perf"))
        os.rename(self.path("root-h0") + "/proc/911/fd", self.path("root-h0") + "/proc/911/kept")  # it can't be read
        os.symlink("!13", self.path("root-h0") + "/proc/911/fd")
        found = self.pairs()
        self.assertEqual(found["h0"], ("busy", "busy: whether a process uses a GPU is not known"), found)
        over = threading.Event()
        with fleet.within(self.space("h2"), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as s:
            def send():
                while not over.is_set():
                    s.sendto(bytes(60000), ("10.89.0.12", 9))
            sender = threading.Thread(target=send)
            sender.start()
            try:
                found = self.pairs()
            finally:
                over.set()
                sender.join()
        told = ("busy", "busy: a link carried traffic within the last minute that is of no known job")
        self.assertEqual({host: words for host, words in found.items() if words == told}, {"h1": told, "h2": told}, found)


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)

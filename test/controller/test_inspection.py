#!/usr/bin/env python3
"""An audit of a fleet through its controller: hosts are asked, read themselves by foliot-inspect, are judged together; what is
shown to whom; over a restart; what can't be looked at. usage: test_inspection.py CONTROLLER AGENT FOLIOT INSPECT"""
import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "audit"))
import fleet  # noqa: E402
import machine  # noqa: E402
import wire  # noqa: E402

INSPECT = os.path.abspath(sys.argv.pop(4))
fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))
MRRS = "/sys/devices/pci0000:39/0000:39:01.0/0000:3b:00.0/config"
RUNS = "/api/v1/audit/runs"


class TestInspection(fleet.Fleet):
    HOSTS = 6

    def members(self, *numbers):
        """Each reads a machine that is a tree of files."""
        for i in numbers:
            machine.build(self.path(f"root-h{i}"), machine.files("roce", i + 1))
            self.join(i)
            self.write(f"h{i}.yaml", self.read(self.path(f"h{i}.yaml")) +
                       f"inspect: {INSPECT}\ninspect_root: {self.path(f'root-h{i}')}\n")
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

    def audit(self, *hosts):
        status, out = self.foliot("run", "--fleet", "--json", *hosts)
        self.assertEqual(out[0], "{", out)
        return status, json.loads(out)

    @staticmethod
    def of(run, status):
        return {(r["check"], r["host"]) for r in run["results"] if r["status"] == status}

    def rows(self, text):
        with sqlite3.connect(self.path("data", "store.db")) as store:
            return store.execute(text).fetchall()

    def healthy_then_one_wrong(self):
        status, run = self.audit()
        self.assertEqual((run["state"], run["hosts"], run["left_out"]), ("done", 6, []), run)
        self.assertEqual(self.of(run, "fail"), set(), run)
        before = run["run"]
        bodies = self.rows("SELECT count(*) FROM fact_body")[0][0]
        parts = self.rows("SELECT count(*) FROM host_part")[0][0]
        self.assertLess(bodies, parts)  # hosts of one kind share
        # one host's driver is another, and one NIC's port is down
        self.change(3, "/proc/sys/kernel/osrelease", "6.8.0-58-generic\n")
        self.change(4, "/sys/class/infiniband/mlx5_1/ports/1/state", "2: INIT\n")
        status, run = self.audit()
        self.assertEqual(status, 1)
        self.assertEqual(self.of(run, "fail"), {("cfg.sw.kernel", "h3"), ("be.link.active", "h4")}, self.of(run, "fail"))
        self.assertEqual(run["look"], 1)
        self.changed(before, run["run"])
        found = [r for r in run["results"] if r["check"] == "cfg.sw.kernel" and r["host"] == "h3"][0]
        self.assertEqual((found["found"], found["remedy"] is not None), ("6.8.0-58-generic", True), found)
        # what is as it was, was not sent again
        self.assertLess(self.rows("SELECT count(*) FROM host_part")[0][0], parts + 6)
        return run

    def changed(self, was, run):
        """One fact and its checks: told by the diff, and as an event; the other way round, too."""
        status, out = self.foliot("diff", "--json", was, run)
        diff = json.loads(out)
        self.assertEqual((status, diff["hosts"], diff["cut"]), (1, 6, False), diff)
        facts = {(f["host"], f["fact"], f["subject"], f["was"], f["is"]) for f in diff["facts"]}
        self.assertEqual(facts, {("h3", "os.kernel", "", "6.8.0-60-generic", "6.8.0-58-generic"),
                                 ("h4", "port.state", "mlx5_1/1", "4: ACTIVE", "2: INIT")}, diff)
        self.assertLessEqual({("h3", "cfg.sw.kernel", "pass", "fail"), ("h4", "be.link.active", "pass", "fail")},
                             {(r["host"], r["check"], r["was"], r["is"]) for r in diff["results"]})
        self.assertEqual({r["host"] for r in diff["results"]}, {"h3", "h4"}, diff)
        events = [e for e in self.events(kind="host", word="fact-changed")]
        self.assertEqual({(e["host"], e["detail"]["fact"], e["detail"]["is"]) for e in events},
                         {("h3", "os.kernel", "6.8.0-58-generic"), ("h4", "port.state", "2: INIT")}, events)
        self.assertEqual(self.foliot("diff", run, run)[0], 0)
        self.assertEqual(self.request("GET", f"{RUNS}/{run}/diff?with=7")[0], 404)
        self.assertEqual(self.request("GET", f"{RUNS}/{run}/diff")[0], 400)

    def shown(self, run):
        status, out = self.foliot("show", "--fleet")
        self.assertEqual((status, "cfg.sw.kernel  h3" in out, "be.link.active  h4 mlx5_1/1" in out), (1, True, True), out)
        status, out = self.foliot("nodes", "--json")
        nodes = {n["host"]: n for n in json.loads(out)}
        lines = self.foliot("nodes")[1].splitlines()
        self.assertEqual((lines[1].split()[0], lines[-1]), ("h4", "gate, may a host take a job: 1 fail, 5 pass"), lines)
        self.assertEqual({h for h in nodes if nodes[h]["status"] == "fail"}, {"h3", "h4"}, nodes)
        self.assertEqual((nodes["h4"]["active"], nodes["h3"]["active"], nodes["h3"]["agent"]), ("fail", "pass", "live"), nodes)
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

    def left_out(self, agents):
        """An agent that can't read, one that is gone, one of the version before: each with its reason, and never a pass."""
        agents[5].stop(signal.SIGKILL)
        self.wait(lambda: self.host("h5")["freshness"] == "stale", 15, lambda: str(self.host("h5")))
        os.rename(self.path("root-h2"), self.path("elsewhere"))
        _, run = self.audit("h2", "h5", "h0")
        reasons = {o["host"]: o["reason"] for o in run["left_out"]}
        self.assertEqual(reasons, {"h2": "no_source", "h5": "not_run"}, run["left_out"])
        self.assertEqual({r["status"] for r in run["results"] if r["host"] in ("h2", "h5")}, {"unknown"})
        self.assertEqual([self.foliot("gate", "--fleet", h)[0] for h in ("h2", "h5")], [3, 3])
        note = {o["host"]: o["note"] for o in run["left_out"]}["h5"]
        self.assertEqual(self.foliot("gate", "--fleet", "h5")[1], f"h5: unknown: not read (not_run): {note}\n")
        # who was not read is told first, and is no change of the host
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
        """h5 is gone: its cells have that reason, all others are measured or have one of their own."""
        self.wait(lambda: all(self.host(f"h{i}")["clock"]["status"] == "SYNCED" for i in range(5)), 30, lambda: str(self.host("h0")))
        status, out = self.foliot("run", "--fleet", "--matrix", "--json")
        run = json.loads(out)
        self.assertEqual((run["state"], run["matrix"], run["matrix_why"]), ("done", True, None), out[:500])
        matrix = self.get(f"{RUNS}/{run['run']}/matrix")
        self.assertEqual((matrix["cells"], matrix["measured"] + sum(matrix["unmeasured"].values())), (120, 120), matrix["unmeasured"])
        self.assertGreater(matrix["measured"], 0, matrix["unmeasured"])
        hosts = [n["host"] for n in matrix["nics"]]
        for a, row in zip(hosts, matrix["why"]):
            for b, why in zip(hosts, row):
                self.assertEqual(why == "same-host", a == b, matrix["why"])
                if a != b and "h5" in (a, b):
                    self.assertEqual(why, "silent")
                elif a != b:
                    self.assertIn(why, (None, "late", "clock"))  # beside other tests an agent may have no processor
        found = {r["host"]: r["reason"] for r in run["results"] if r["check"].startswith("be.matrix.") and r["status"] == "unknown"}
        self.assertEqual(found.get("h5"), "not_run", found)
        self.assertIn("of 120 cells measured", self.foliot("matrix")[1])
        made = self.request("POST", "/api/v1/tokens", {"name": "one", "role": "viewer", "scope": "h0,h1"})[2]["token"]
        seen = self.get(f"{RUNS}/{run['run']}/matrix", token=made)
        self.assertEqual(({n["host"] for n in seen["nics"]}, len(seen["delay_ns"]), "cells" in seen), ({"h0", "h1"}, 4, False))
        self.assertEqual(self.request("POST", RUNS, {"matrix": 1})[0], 400)
        self.assertEqual(self.request("POST", RUNS, {"matrix": True, "family": 5})[0], 400)

    def hold(self, agents, *numbers):
        """These hosts stand still while all but h5 are live: no audit of them ends."""
        self.wait(lambda: all(self.host(f"h{i}")["freshness"] == "live" for i in range(5)), 10, lambda: str(self.get("/api/v1/hosts")))
        for i in numbers:
            agents[i].process.send_signal(signal.SIGSTOP)

    def over_a_restart(self, controller, agents):
        """Killed while hosts are asked: it goes on, and forgets nobody."""
        before = self.get(RUNS)["items"][0]["run"]
        matrix = self.get(f"{RUNS}/{before}/matrix")
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
        self.assertEqual((done["hosts"], done["counts"]["fail"]), (4, 2), done)
        self.assertGreater(int(done["run"]), int(before))
        self.assertEqual(self.foliot("gate", "--fleet", "h4")[0], 2)
        return controller

    def stopped(self, agents):
        self.hold(agents, 0, 1)
        status, _, run = self.request("POST", RUNS, {"hosts": ["h0", "h1"]})
        self.assertEqual(status, 200)
        status, out = self.foliot("stop", run["run"])
        self.assertEqual((status, "stopped it" in out), (0, True), out)
        self.assertEqual(self.get(f"{RUNS}/{run['run']}")["state"], "stopped")
        for i in (0, 1):
            agents[i].process.send_signal(signal.SIGCONT)

    def refused_over_a_restart(self, controller, agents):
        """audit.yaml was spoilt meanwhile: the audit ends, and says why; the next one can begin."""
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
        controller = self.start(extra=f"audit: {self.write('audit.yaml', 'version: 1' + chr(10))}\n", report="2s")
        agents = self.members(*range(self.HOSTS))
        run = self.healthy_then_one_wrong()
        self.shown(run)
        self.tenants(run)
        self.refused(run)
        self.left_out(agents)
        self.every_nic()
        controller = self.over_a_restart(controller, agents)
        self.stopped(agents)
        self.refused_over_a_restart(controller, agents)


class TestFrontEnd(TestInspection):
    """Real packets over the network by which the agents talk to the controller."""
    HOSTS = 6
    test_audit = None

    def marks(self, run):
        """{check: {host: letter}} of the front end."""
        checks = [c["check"] for c in self.get(f"{RUNS}/{run['run']}")["checks"]]
        nodes = {n["host"]: n["marks"] for n in self.get(f"{RUNS}/{run['run']}/nodes")["items"]}
        return {check: {host: marks[checks.index(check)] for host, marks in nodes.items()} for check in ("fe.reach", "fe.path_mtu", "node.history")}

    def test_front_end(self):
        self.start(extra=f"audit: {self.write('audit.yaml', 'version: 1' + chr(10))}\n", report="2s")
        self.members(*range(self.HOSTS))
        all_pass = {f"h{i}": "P" for i in range(self.HOSTS)}
        run = self.audit()[1]
        self.assertEqual(self.marks(run), {"fe.reach": all_pass, "fe.path_mtu": all_pass, "node.history": all_pass}, run["results"])
        others = [f"10.90.0.{10 + i}/32" for i in range(self.HOSTS) if i != 2]
        for address in others:  # a filter that swallows
            self.ip("h2", "route", "add", "blackhole", address)
        status, run = self.audit()
        self.assertEqual((status, self.of(run, "fail")), (1, {("fe.reach", "h2")}), run["results"])
        self.assertEqual({host for host, mark in self.marks(run)["fe.reach"].items() if mark == "P"} & {"h2"}, set())
        self.assertEqual(self.marks(run)["fe.path_mtu"]["h2"], "U")  # nothing comes back for short ones either
        self.assertEqual(self.foliot("gate", "--fleet", "h2")[0], 2)
        for address in others:
            self.ip("h2", "route", "del", "blackhole", address)
        # it takes no packet of the others' full size; its own go out
        self.ip("h2", "link", "set", "mgmt", "mtu", "1300")
        status, run = self.audit()
        self.assertEqual((status, self.of(run, "fail")), (1, {("fe.path_mtu", "h2")}), run["results"])
        found = [r for r in run["results"] if r["check"] == "fe.path_mtu" and r["host"] == "h2" and r["status"] == "fail"]
        self.assertRegex(found[0]["found"], "^[234] of [34] neighbours find it here$")
        self.ip("h2", "link", "set", "mgmt", "mtu", "1500")
        run = self.audit("h2")[1]  # of it alone: what the others told in the audit before is no evidence
        self.assertEqual(self.of(run, "fail"), set(), run["results"])
        self.write("audit.yaml", "version: 1\noff: {classes: {packets: 'anna: enough'}}\n")
        run = self.audit()[1]
        self.assertEqual({mark for check in ("fe.reach", "fe.path_mtu") for mark in self.marks(run)[check].values()}, {"S"})


class TestInUse(TestInspection):
    """Who uses a host without a page of a job is not disturbed by tests of bandwidth."""
    HOSTS = 3
    test_audit = None

    def pairs(self):
        """{host: (reason, note)} of a run of tests. No host has the program that would make them."""
        status, out = self.foliot("run", "--fleet", "--bandwidth", "--json")
        run = json.loads(out)
        self.assertEqual((status in (1, 3), run["state"], run["tests_why"]), (True, "done", None), out[:500])
        return {r["host"]: (r["reason"], r["note"]) for r in run["results"] if r["check"] == "be.bw.pair"}

    def test_hosts_in_use(self):
        self.start(report="2s")
        self.members(*range(self.HOSTS))
        self.wait(lambda: all(self.host(f"h{i}")["clock"]["status"] == "SYNCED" for i in range(self.HOSTS)), 30, lambda: str(self.host("h0")))
        os.symlink("/dev/nvidia2", self.path("root-h1") + "/proc/911/fd/7")
        self.change(1, "/dev/nvidia2", "x")
        found = self.pairs()
        self.assertEqual(found["h1"], ("busy", "busy: a process uses a GPU"), found)
        for host in ("h0", "h2"):
            self.assertEqual(found[host][0], "not_run", found)
            self.assertIn("enable foliot-perf.socket", found[host][1])
        os.unlink(self.path("root-h1") + "/proc/911/fd/7")
        os.rename(self.path("root-h0") + "/proc/911/fd", self.path("root-h0") + "/proc/911/kept")  # nobody can look
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


class OwnHosts(fleet.Fleet):
    """Hosts of our own making, that tell what a test wants."""

    def init(self, **options):
        super().init(**({"report": "20s", "beat": "20s"} | options))

    def say(self, number, extra=b"", features=2, host="h0", fleet_ns=0, covers=0):
        body = wire.batch([(number, wire.report(extra=extra, covers=covers))], oldest=number, sealed=wire.squeeze) + wire.number(17, features)
        status, answer = self.post("/agent/v1/report", body + (wire.number(6, fleet_ns) if fleet_ns else b""), **self.identity(host))
        self.assertEqual(status, 200, answer)
        return wire.fields(wire.unsqueeze(answer) if answer[:4] == b"\x28\xb5\x2f\xfd" else answer)

    @staticmethod
    def sheet(run, number, *parts, refused=""):
        body = wire.fixed64(1, run) + wire.number(2, number) + (wire.data(3, refused) if refused else b"")
        for name, content, digest in parts:
            body += wire.data(5, wire.data(1, name) + (wire.data(2, digest) if digest else b"") + wire.data(3, content))
        return wire.data(13, body)

    def begin(self):
        return int(self.request("POST", RUNS, {})[2]["run"])

    def done(self, run):
        self.wait(lambda: self.get(f"{RUNS}/{run}")["state"] == "done", 10, lambda: str(self.get(f"{RUNS}/{run}")))
        return self.get(f"{RUNS}/{run}")

    @staticmethod
    def row(plan, nic, sent, heard, delay, refused=""):
        return wire.data(14, wire.fixed64(1, plan) + wire.number(2, nic) + (wire.data(3, refused) if refused else b"") +
                         wire.data(4, sent) + wire.data(5, heard) + wire.data(6, delay) + wire.number(7, 100))


class TestAgain(OwnHosts):
    """A matrix whose rows are made up: what one alone finds fails nobody."""
    HOSTS, NICS, LATE = 6, 2, 9000
    OS = ("os", "os.kernel\tvalue\t\t1\t/x\n", b"")

    def code(self, ns):
        """A delay in two bytes (core/fleet/delay_code.h)."""
        shift = max(ns.bit_length() - 7, 0)
        return (1 + ns if ns < 64 else 1 + (shift + 1) * 64 + (ns >> shift & 63)).to_bytes(2, "little")

    def speak(self, i, extra=b"", status=1):
        self.said[i] += 1
        clock = wire.data(5, wire.number(1, status)) if status is not None else b""
        return self.say(self.said[i], extra + clock, features=7, host=f"h{i}", fleet_ns=time.time_ns(), covers=1000)

    def tell(self, plan, late):
        """Rows of all hosts of this plan: all of one delay; the host `late` receives later."""
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
        """All hosts report, and answer this look, until the audit is so far: a host that pauses is left out as silent."""
        def reached():
            for i in range(self.HOSTS):
                if self.speak(i).get(14) and look:
                    self.speak(i, self.sheet(run, look, self.OS))
            return self.get(f"{RUNS}/{run}")["state"] in states
        self.wait(reached, 30, lambda: str(self.get(f"{RUNS}/{run}")))

    def begin_all(self):
        """One that leaves nobody out: a machine that pauses makes hosts silent in between."""
        def begun():
            for i in range(self.HOSTS):
                self.speak(i)
            run = self.request("POST", RUNS, {"matrix": True})[2].get("run")
            if run and not self.get(f"{RUNS}/{run}")["left_out"]:
                return int(run)
            if run:
                self.request("DELETE", f"{RUNS}/{run}")
            return None
        return self.wait(begun, 30, lambda: str(self.get(RUNS)))

    def measure(self, lates, second=True):
        """Two looks, and a matrix each. lates: who is late in them. Results of be.matrix.delay, by host."""
        run, told = self.begin_all(), []
        for look, late in enumerate(lates, 1):
            if not second and look == 2:
                break
            self.until(run, ("measuring",), look)
            plan = self.wait(lambda: next((wire.fields(m[0]) for i in range(self.HOSTS) if (m := self.speak(i).get(15))), None), 10, "no plan")
            told.append(self.tell(plan, late))
            self.until(run, ("reading", "judging", "done"))
        self.until(run, ("done",), len(lates))
        results = self.get(f"{RUNS}/{run}/results?limit=1000")["items"]
        return told, {r["host"]: r for r in results if r["check"] == "be.matrix.delay"}

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

    def test_twice_is_one(self):
        self.begin_fleet()
        _, found = self.measure([4, 4])
        self.assertEqual({h: r["status"] for h, r in found.items()}, {"h4": "fail"})
        self.assertRegex(found["h4"]["found"], "^0 ns more than others sending, (89|90)[0-9]{2} ns receiving$")  # in two bytes: by 1.6 %

    def test_young_clock(self):
        """It came into step some seconds ago, and a clock may explain its delays: nobody knows yet. (A clock that is off makes
        one side later and the other one earlier, so 9 us more of both together would be no clock's.)"""
        self.LATE = 1500
        self.begin_fleet()
        self.speak(4, status=0)
        self.speak(4)
        _, found = self.measure([4], second=False)
        self.assertEqual({h: (r["status"], r["reason"]) for h, r in found.items()}, {"h4": ("unknown", "young")}, found)

    def test_not_again(self):
        """Packets are switched off meanwhile: nobody has measured it twice, and nobody knows."""
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
    """What happens to the fleet and to the controller in the middle of an audit. One host is late in each of its matrices."""
    test_once_is_no_failure = test_twice_is_one = test_young_clock = test_not_again = None
    HOSTS, JOINS = 7, 6

    def setUp(self):
        super().setUp()
        self.HOSTS = self.JOINS  # pylint: disable=invalid-name

    def tearDown(self):
        del self.HOSTS
        super().tearDown()

    def drive(self, run, there, late=4, hosts=None):
        """Hosts report, and answer what they are asked, until that is so."""
        def step():
            for i in hosts or range(self.HOSTS):
                told = self.speak(i)
                if 14 in told:
                    self.speak(i, self.sheet(run, wire.fields(told[14][0])[2][0], self.OS))
                plan = wire.fields(told[15][0]) if 15 in told else {}
                if 5 in plan:
                    self.rows_of(i, plan, late)
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

    def state(self, run):
        return self.get(f"{RUNS}/{run}")["state"]

    def found(self, run):
        results = self.get(f"{RUNS}/{run}/results?limit=1000")["items"]
        return {r["host"]: r["status"] for r in results if r["check"] == "be.matrix.delay"}

    def test_controller_killed_at_every_stage(self):
        """It goes on from the first look, and finds what it would have found: never less, and nobody is forgotten."""
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
            self.assertEqual((done["hosts"], done["left_out"], done["matrix"]), (self.HOSTS, [], True), (stage, done))
            self.assertEqual(self.found(run), {"h4": "fail"}, stage)

    def begin_fleet(self):
        self.running = self.start(extra=f"audit: {self.write('audit.yaml', 'version: 1' + chr(10))}\n")
        self.said = [0] * (self.HOSTS + 1)
        for i in range(self.HOSTS):
            self.join(i)
            self.speak(i)

    def test_hosts_that_leave_and_come(self):
        """One leaves while it is asked, one while rounds are under way, one comes: each is told, and nobody is waited for."""
        self.begin_fleet()
        self.told = 0
        run = self.begin_all()
        self.drive(run, lambda: self.get(f"{RUNS}/{run}")["unanswered"] == 1, hosts=(0, 1, 2, 3, 4))
        self.assertEqual(self.request("DELETE", "/api/v1/hosts/h5")[0], 200)
        self.drive(run, lambda: self.state(run) == "measuring", hosts=(0, 1, 2, 3, 4))
        self.assertEqual([(o["host"], o["reason"], o["note"]) for o in self.get(f"{RUNS}/{run}")["left_out"]],
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


class TestStrange(OwnHosts):
    """Sheets as a host of our own making sends them."""
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
        # a hash without the content that nobody sent: all is asked for
        self.say(6, self.sheet(run, 1, ("os", b"", bytes(32))))
        self.assertEqual(wire.fields(self.say(7)[14][0])[3], [1])
        # markup, a line that is none, one of a later release, a hash that isn't the content's
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
        self.assertEqual(self.get(f"{RUNS}/{run}")["left_out"][0]["note"].startswith("its reader <script>"), True)
        self.assertNotIn("\x1b", json.dumps(self.get(f"{RUNS}/{run}"), ensure_ascii=False))

    def test_strange_rows(self):
        """Rows of a matrix from hosts that lie: each is its own host's, of this plan, and of known words, or it is nothing."""
        self.start()
        now = time.time_ns()
        for i in (0, 1):
            self.join(i)
            self.say(1, features=7, host=f"h{i}", fleet_ns=now)
        run = int(self.request("POST", RUNS, {"matrix": True})[2]["run"])
        for i in (0, 1):
            self.say(2, self.sheet(run, 1, ("os", "os.kernel\tvalue\t\t1\t/x\n", b"")), features=7, host=f"h{i}", fleet_ns=now)
        self.wait(lambda: self.get(f"{RUNS}/{run}")["state"] == "measuring", 10, lambda: str(self.get(f"{RUNS}/{run}")))
        self.assertNotIn(15, self.say(3, features=3, host="h1"))  # one of the version before is asked nothing it doesn't know
        plan = wire.fields(self.say(3, features=7)[15][0])
        name, nics, rounds = plan[1][0], list(plan[5][0]), 3
        self.assertEqual((plan[3], plan[4], len(nics), min(nics)), ([2], [2], 4, 1))
        good = (b"\5" * rounds, b"\5" * rounds, b"\x40\0" * rounds)
        self.say(4, self.row(name, nics[0] - 1, b"\5" * 7, *good[1:]), features=7)     # another length
        self.say(5, self.row(name + 1, nics[0] - 1, *good), features=7)                 # another plan
        self.say(6, self.row(name, nics[2] - 1, *good), features=7)                     # another host's NIC
        self.say(7, self.row(name, nics[0] - 1, b"\xff" * rounds, b"\xf7" * rounds, b"\xff\x7f" * rounds), features=7)
        self.say(8, self.row(name, nics[0] - 1, *good), features=7)                     # once more: the first one stays
        self.assertEqual(self.get(f"{RUNS}/{run}")["state"], "measuring")
        self.say(9, self.row(name, nics[1] - 1, *good), features=7)
        self.say(4, self.row(name, 0, b"", b"", b"", refused="no\x1b[2J<b>"), features=7, host="h1")
        self.done(run)
        matrix = self.get(f"{RUNS}/{run}/matrix")
        self.assertEqual((matrix["cells"], matrix["measured"]), (8, 0), matrix)
        self.assertEqual(matrix["unmeasured"], {"refused": 6, "silent": 2}, matrix)  # words that nobody knows are none
        self.assertEqual({n["note"] for n in matrix["nics"]}, {None, "no\\x1b[2J<b>"}, matrix["nics"])

    def test_older_agent(self):
        """An agent of before takes no part in tests, and its host's checks have that reason. With one of today there are no tests."""
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
        self.assertEqual([(step[2], step.get(8)) for step in steps], 2 * [([2], None), ([2], [1])])  # of each NIC a pair, and its ways in the first turn
        tell((0, 2), lambda _: wire.data(15, wire.fixed64(1, plan[1][0]) + wire.number(2, 2**32 - 1) + wire.number(3, 3) + wire.data(4, "no <way>")))
        self.done(run)
        for check in ("be.bw.path", "be.bw.pair"):
            found = {r["host"]: (r["reason"], r["note"]) for r in self.get(f"{RUNS}/{run}/results?limit=1000&status=unknown")["items"] if r["check"] == check}
            self.assertEqual(found.pop("h1"), ("old_agent", "its agent is too old to take part: update it"), check)
            self.assertEqual(found, {h: ("not_run", "failed: no <way>") for h in ("h0", "h2")}, check)

    def audit_of(self, first, *parts):
        """One of h0 alone, whose sheet fails nothing: without a second look."""
        run = self.begin()
        self.say(first, self.sheet(run, 1, *parts))
        self.done(run)
        return run

    def test_far_fleet_time(self):
        """One host's word of fleet time doesn't name an audit that all later ones come before."""
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
        """Two audits are compared of which one is in memory, and makes room for the other."""
        self.start()
        self.join(0)
        self.say(1)
        runs = [self.audit_of(2 + i, ("os", f"os.kernel\tvalue\t\t6.{i}\t/x\n", b"")) for i in range(3)]
        diff = self.get(f"{RUNS}/{runs[0]}/diff?with={runs[1]}")
        self.assertEqual((diff["hosts"], [(f["was"], f["is"]) for f in diff["facts"]]), (1, [("6.1", "6.0")]), diff)

    def test_clock_that_went_back(self):
        """What was found after now, by the controller's clock, is not fresh for ever."""
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
        """Results of one host that are more than the store reads back don't keep the controller from starting."""
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
        """There is no room for what an audit found: it is known, the audit says why it has not ended, and it ends when there is room."""
        os.makedirs(self.path("data"))
        fleet.run("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", self.path("data"))
        self.addCleanup(subprocess.run, ["umount", "-l", self.path("data")], check=False)
        controller = self.start(extra="record_mib: 0\n")
        now = time.time_ns()
        for i in (0, 1):
            self.join(i)
            self.say(1, features=7, host=f"h{i}", fleet_ns=now)
        run = int(self.request("POST", RUNS, {"matrix": True})[2]["run"])
        for i in (0, 1):
            self.say(2, self.sheet(run, 1, ("os", "os.kernel\tvalue\t\t1\t/x\n", b"")), features=7, host=f"h{i}", fleet_ns=now)
        self.wait(lambda: self.get(f"{RUNS}/{run}")["state"] == "measuring", 10, lambda: str(self.get(f"{RUNS}/{run}")))
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
        """Audits begin by themselves; what they found is an incident and a metric; switches end them, and are told."""
        self.settings("every: 3s\n")
        self.start(extra=f"audit: {self.path('audit.yaml')}\n")
        self.join(0)
        run = self.asked(1)
        self.settings("every: 1h\n")
        self.speak(self.sheet(run, 1, *self.WRONG))
        self.assertEqual(self.asked(2), run)
        self.speak(self.sheet(run, 2, *self.WRONG))
        done = self.done(run)
        self.assertEqual((done["who"], done["whole"], done["off"], done["suspect"]), ("the calendar", True, [], []), done)
        failed = {r["check"]: r for r in self.get(f"{RUNS}/{run}/results?status=fail&limit=100")["items"]}
        self.assertLessEqual({"node.mounts", "be.link.initialized"}, set(failed))
        self.assertEqual((failed["be.link.initialized"]["interface"], failed["node.mounts"]["interface"]), ("nic0", None))
        metrics = self.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})[2]
        self.check_metrics(metrics)
        metrics = metrics.decode()
        for line in ('foliot_host_audit_gate{host="h0",foliot_host_audit_gate="fail"} 1', 'foliot_audit_off 0',
                     'foliot_audit_results{check="node.mounts",status="fail"} 1', "foliot_audit_run_timestamp_seconds 1"):
            self.assertIn(line, metrics)
        # told with the host's next report: a mount is the host's, a port its NIC's
        rules = {"audit-blocked", "audit-links"}
        def firing():
            self.speak()
            alerts = [a for a in self.get("/api/v1/alerts")["items"] if a["rule"] in rules and a["state"] == "firing"]
            return {a["rule"] for a in alerts} == rules and alerts
        alerts = self.wait(firing, 15, lambda: str(self.get("/api/v1/alerts")))
        self.assertEqual({(a["rule"], a["host"], a["nic"]) for a in alerts}, {("audit-blocked", "h0", None), ("audit-links", "h0", "h0/nic0")})
        causes = self.wait(lambda: self.speak() and [i["cause"] for i in self.get("/api/v1/incidents")["items"]], 15, "no incident")
        self.assertTrue(set(causes) <= {"h0", "h0/nic0"}, causes)
        self.switches()
        self.baselines(run)

    def away(self):
        """h0 is silent until that is told, and then heard again."""
        def heard():
            return sum(e["word"] == "heard" for e in self.events(kind="host"))
        before = heard()
        self.wait(lambda: self.host("h0")["freshness"] == "stale", 30, lambda: str(self.host("h0")))
        time.sleep(1.2)  # not less than `returns`
        self.wait(lambda: self.speak() and heard() > before, 30, "h0 is not heard again")

    def test_return(self):
        """A host that was away is audited when it is back, alone, if that is wanted; a short absence is none."""
        self.start(extra=f"audit: {self.path('audit.yaml')}\n")
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
        self.assertEqual((done["who"], done["whole"], done["left_out"]), ("its return", False, []), done)
        self.assertEqual(len(self.get(RUNS)["items"]), 1)

    def switches(self):
        """A check, a class, a host: skips, told by the run. The fleet: none begins, and one under way ends."""
        self.settings("off: {hosts: {h0: 'anna: on the bench'}, classes: {bandwidth: 'ben: rebuilt'}}\n")
        self.speak()
        run = self.done(int(self.request("POST", RUNS, {"nccl": True})[2]["run"]))
        self.assertEqual((run["tests_why"], run["tests"]), ("such tests are switched off by ben: rebuilt", None), run)
        self.assertEqual([(o["host"], o["note"]) for o in run["left_out"]], [("h0", "switched off by anna: on the bench")], run)
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
        self.settings("off: {hosts: [h0]}\n")  # refused: what was in force stays
        self.assertEqual(self.request("POST", RUNS, {})[2]["error"]["code"], "bad-settings")
        self.settings("")

    def baselines(self, run):
        """Accepted by a person, dated; another run is compared with it; it outlasts the others."""
        paths = "/api/v1/audit/baselines"
        self.assertEqual(self.get(paths)["items"], [])
        self.assertEqual(self.request("GET", f"{RUNS}/latest/diff?with=baseline")[0], 404)
        made = self.request("POST", "/api/v1/tokens", {"name": "operator", "role": "operator"})[2]["token"]
        self.assertEqual(self.request("POST", paths, {"run": str(run)}, token=made)[0], 403)
        self.assertEqual(self.request("POST", paths, {"run": "latest"})[2]["error"]["code"], "not-done")
        self.assertEqual(self.request("POST", paths, {"run": "7"})[0], 404)
        accepted = self.request("POST", paths, {"run": str(run), "name": "as <b>delivered</b>"})[2]["items"]
        self.assertEqual([(b["run"], b["name"], b["hosts"]) for b in accepted], [(str(run), "as <b>delivered</b>", 1)], accepted)
        again = self.begin_live()
        self.speak(self.sheet(again, 1, ("nic", "net\tvalue\tnic7\tnic7\t/s\n", b""), self.WRONG[2]))
        self.done(again)
        diff = self.get(f"{RUNS}/latest/diff?with=baseline")
        self.assertIn(("net", "nic7"), {(f["fact"], f["subject"]) for f in diff["facts"]}, diff)
        self.assertEqual(self.request("DELETE", f"{paths}/{run}")[2]["items"], [])

    def begin_live(self):
        """An audit that asks h0: a machine that pauses makes it silent in between."""
        def begun():
            self.speak()
            run = self.request("POST", RUNS, {})[2].get("run")
            return run and self.get(f"{RUNS}/{run}")["state"] == "reading" and int(run)
        return self.wait(begun, 30, lambda: str(self.get(RUNS)))

    def test_tenants_neighbour(self):
        """Two clones, one a tenant's: he isn't told whose the other is, nor whom his host measures."""
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


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)

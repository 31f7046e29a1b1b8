#!/usr/bin/env python3
"""An audit of a fleet through its controller: hosts are asked, read themselves by foliot-inspect, are judged together; what is
shown to whom; over a restart; what can't be looked at. usage: test_inspection.py CONTROLLER AGENT FOLIOT INSPECT"""
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
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
        self.assertEqual((run["state"], run["hosts"], run["not_read"]), ("done", 6, []), run)
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

    def not_read(self, agents):
        """An agent that can't read, one that is gone, one of the version before: each with its reason, and never a pass."""
        agents[5].stop(signal.SIGKILL)
        self.wait(lambda: self.host("h5")["freshness"] == "stale", 15, lambda: str(self.host("h5")))
        os.rename(self.path("root-h2"), self.path("elsewhere"))
        _, run = self.audit("h2", "h5", "h0")
        reasons = {o["host"]: o["reason"] for o in run["not_read"]}
        self.assertEqual(reasons, {"h2": "no_source", "h5": "not_run"}, run["not_read"])
        self.assertEqual(run["left_out"], run["not_read"])  # as programs know it that are older
        self.assertEqual({r["status"] for r in run["results"] if r["host"] in ("h2", "h5")}, {"unknown"})
        self.assertEqual([self.foliot("gate", "--fleet", h)[0] for h in ("h2", "h5")], [3, 3])
        note = {o["host"]: o["note"] for o in run["not_read"]}["h5"]
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
        self.not_read(agents)
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


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)

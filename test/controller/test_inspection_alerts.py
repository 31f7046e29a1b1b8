#!/usr/bin/env python3
"""Alerts of audits, by the built-in rules: each fires, and ends with its cause. A bad leaf is one incident.
usage: test_inspection_alerts.py CONTROLLER AGENT FOLIOT"""
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
LOOK = 14  # of an answer


class TestAlerts(own_hosts.OwnHosts):
    HOSTS = 3
    DOWN = "port\tvalue\tmlx5_0/1\t1\t/s\nport.physical\tvalue\tmlx5_0/1\t{}\t/s\nport.state\tvalue\tmlx5_0/1\t{}\t/s\nport.net\tvalue\tmlx5_0/1\tnic0\t/s\n"

    def settings(self, text=""):
        self.write("audit.yaml", "version: 1\n" + text)

    def begin_fleet(self, text="", leaf=None):
        self.settings(text)
        self.start(extra=f"audit: {self.path('audit.yaml')}\n")
        self.said = [0] * self.HOSTS
        for i in range(self.HOSTS):
            self.join(i, leaf=leaf)

    def speak(self, i, extra=b""):
        self.said[i] += 1
        return self.say(self.said[i], extra, host=f"h{i}", fleet_ns=time.time_ns(), covers=1000)

    def speak_all(self):
        for i in range(self.HOSTS):
            self.speak(i)

    def sheet_of(self, i, run, look, kind="box", link="5: LinkUp", state="4: ACTIVE", used=10):
        lines = {"os": f"os.kernel\tvalue\t\t1\t/x\nos.product\tvalue\t\t{kind}\t/x\n", "rdma": self.DOWN.format(link, state),
                 "storage": "disk\tvalue\t/\text4\t/x\n", "now": f"disk.used\tvalue\t/\t{used}\t/x\nos.uptime\tvalue\t\t99999\t/y\n"}
        self.speak(i, self.sheet(run, look, *((part, text, b"") for part, text in lines.items())))

    def audit(self, of):
        """All hosts answer. of: the special values in the sheet of host i."""
        def begun():
            self.speak_all()
            run = self.request("POST", RUNS, {})[2].get("run")
            if run and not self.get(f"{RUNS}/{run}")["not_read"]:
                return int(run)
            if run:
                self.request("DELETE", f"{RUNS}/{run}")
            return None
        run = self.wait(begun, 30, lambda: str(self.get(RUNS)))

        def done():
            for i in range(self.HOSTS):
                told = self.speak(i)
                if LOOK in told:
                    self.sheet_of(i, run, wire.fields(told[LOOK][0])[2][0], **of(i))
            return self.get(f"{RUNS}/{run}")["state"] == "done"
        self.wait(done, 30, lambda: str(self.get(f"{RUNS}/{run}")))
        return run

    def firing(self, rule):
        return {(a["host"], a["nic"]) for a in self.get("/api/v1/alerts")["items"] if a["rule"] == rule and a["state"] == "firing"}

    def fires(self, rule, where):
        self.wait(lambda: self.speak_all() or self.firing(rule) == where, 15, lambda: f"{rule}: {self.get('/api/v1/alerts')}")

    def test_calendar_and_switches(self):
        """An audit that is due by the calendar does not end. A check is switched off."""
        self.begin_fleet("every: 3s\nchecks: {node.procs: {off: anna}}\n")
        self.fires("audit-old", {(None, None)})
        self.fires("audit-off", {(None, None)})
        self.settings("every: 1h\n")
        self.fires("audit-off", set())
        self.fires("audit-old", set())

    def test_one_host(self):
        """A failure that needs a drain, and blocking checks without a result."""
        self.begin_fleet()
        run = self.audit(lambda i: {"used": 97 if i == 1 else 10})
        self.fires("audit-failed", {("h1", None)})
        results = self.get(f"{RUNS}/{run}/results?limit=1000&status=unknown")["items"]
        self.assertLessEqual({f"h{i}" for i in range(self.HOSTS)}, {r["host"] for r in results})
        self.fires("audit-unknown", {(f"h{i}", None) for i in range(self.HOSTS)})
        self.audit(lambda i: {})
        self.fires("audit-failed", set())

    def test_a_check_that_is_suspect(self):
        """All hosts of a kind would fail the check: none fails, and an alert names the check."""
        self.begin_fleet()
        run = self.audit(lambda i: {"used": 97})
        self.assertEqual(self.get(f"{RUNS}/{run}")["suspect"], ["node.disk"])
        self.fires("audit-suspect", {(None, None)})
        self.assertEqual(self.firing("audit-failed"), set())
        self.audit(lambda i: {})
        self.fires("audit-suspect", set())

    def test_one_bad_leaf_is_one_incident(self):
        """Three NICs of one leaf have no link, each at a host of another kind. One incident names the leaf."""
        self.begin_fleet(leaf="east")
        self.audit(lambda i: {"kind": f"box{i}", "link": "2: Polling", "state": "1: DOWN"})
        self.fires("audit-links", {(f"h{i}", f"h{i}/nic0") for i in range(self.HOSTS)})

        def of_links():
            self.speak_all()
            ids = {a["incident"] for a in self.get("/api/v1/alerts")["items"] if a["rule"] == "audit-links"}
            return [i for i in self.get("/api/v1/incidents")["items"] if i["incident"] in ids]
        self.wait(lambda: [i["cause"] for i in of_links()] == ["east"], 15, lambda: str(of_links()))


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)

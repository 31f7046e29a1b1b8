#!/usr/bin/env python3
"""The fleet's configuration: applied, tried by some hosts, taken back automatically; `observe` reaches the switch that jobs read.
usage: test_config.py CONTROLLER AGENT FOLIOT"""
import http.client
import os
import re
import sqlite3
import struct
import subprocess
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


class Agents(threading.Thread):
    """The test's own agents for h0 … They are well unless a test changes that, and pauses of the machine don't touch them."""

    def __init__(self, case, count):
        super().__init__(daemon=True)
        self.case, self.beating, self.down, self.over = case, set(range(count)), set(), threading.Event()
        self.number, self.runs, self.trouble = [0] * count, [None] * count, None
        case.addCleanup(self.join)
        case.addCleanup(self.over.set)
        self.start()

    def run(self):
        due = [0.0] * len(self.number)  # of each one's next report
        while not self.over.wait(0.3):
            for i in sorted(self.beating):
                try:
                    report = time.monotonic() >= due[i]
                    due[i] = time.monotonic() + 1 if report else due[i]
                    self.beat(i, report)
                except (OSError, http.client.HTTPException):
                    pass  # no controller at the moment
                except AssertionError as error:  # refused: the test's message shows it if it matters
                    self.trouble = str(error)

    def beat(self, i, report):
        ports = [wire.number(1, nic) + wire.number(2, 2 if nic in self.down else 1) + wire.number(15, 1) for nic in (2 * i, 2 * i + 1)]
        synced = wire.data(5, wire.number(1, 1))
        number = self.number[i] + 1  # sent again until it is answered: the controller takes each number in its turn
        reports = [(number, wire.report(covers=1000, ports=ports, extra=synced))] if report else []
        told = self.case.beat(i, self.runs[i], reports=reports)
        self.number[i] += report
        if told is not None:
            self.runs[i] = (told[1][0], told.get(7, [0])[0])


class TestConfig(fleet.Fleet):
    def foliot(self, *arguments, status=0):
        done = subprocess.run(["ip", "netns", "exec", self.space("c"), self.FOLIOT, "config", *arguments], text=True, check=False,
                              capture_output=True, env=dict(os.environ, FOLIOT_TOKEN=self.admin))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def config(self):
        return self.get("/api/v1/config")

    def runs(self, name):
        return self.host(name)["config"]["version"]

    def switch(self, name):
        """The switch as a job reads it."""
        with open(self.path(f"run-{name}", "switch.page"), "rb") as file:
            magic, version, word = struct.unpack("<8sQQ", file.read(24))
        self.assertEqual((magic, version), (b"FOSWTCH1", 1))
        return ["unset", "off", "observe", "failover", "full"][word & 0xff]

    def all_run(self, version, hosts=3):
        self.wait(lambda: all(self.runs(f"h{i}") == version for i in range(hosts)), 5, lambda: str(self.config()))

    def alerts(self, rule):
        return [a for a in self.get("/api/v1/alerts")["items"] if a["rule"] == rule]

    def test_apply_observe_and_back(self):
        c = self.start()
        agents = self.members(0, 1, 2)
        self.assertIsNone(self.config()["active"])
        self.assertEqual(self.runs("h0"), None)
        one = self.write("one.yaml", "mode: failover\nflap_limit: 5\nring_peers: 12\n")
        self.assertIn("ring_peers   (as each host has it) -> 12", self.foliot("diff", one, status=1))
        self.assertIsNone(self.config()["active"])
        self.assertIn("version 1 is in force", self.foliot("apply", one, "--why", "first"))
        self.all_run(1)
        self.assertEqual([self.switch(f"h{i}") for i in range(3)], ["failover"] * 3)
        self.assertEqual(self.ask("h1")["mode"], "failover")
        self.wait(lambda: self.config()["hosts_behind"] == 0, 3, lambda: str(self.config()))
        self.foliot("diff", one)
        # One command stops everything that moves traffic, on all hosts, and changes nothing else.
        self.foliot("observe", "on")
        self.wait(lambda: [self.switch(f"h{i}") for i in range(3)] == ["observe"] * 3, 3, lambda: str(self.config()))
        self.wait(lambda: self.config()["hosts_observing"] == 3, 3, lambda: str(self.config()))
        self.assertIn("OBSERVE since", self.foliot("show"))
        # It survives the controller, and an agent's restart without one.
        c.stop()
        agents[2].stop()
        agents[2] = self.agent(2)
        agents[2].wait_log("host h2, 2 NICs")
        self.assertEqual(self.switch("h2"), "observe")
        self.assertEqual(self.ask("h2")["controller"]["config_version"], 1)
        c = self.controller()
        self.assertTrue(self.config()["observe"])
        self.foliot("observe", "off")
        self.wait(lambda: [self.switch(f"h{i}") for i in range(3)] == ["failover"] * 3, 3, lambda: str(self.config()))
        # A host may do less than the fleet, and never more.
        self.write("h0.yaml", self.read(self.path("h0.yaml")) + "mode: off\n")
        agents[0].process.send_signal(1)
        self.wait(lambda: self.switch("h0") == "off", 3, agents[0].log)
        # A second version, and back to the first one's text.
        two = self.write("two.yaml", "mode: full\nreport: 2s\n")
        self.foliot("apply", two)
        self.all_run(2)
        self.assertEqual(self.switch("h1"), "full")
        self.assertIn("version 3 is in force", self.foliot("rollback"))
        self.all_run(3)
        self.assertEqual(self.switch("h1"), "failover")
        self.assertEqual(self.config()["active"]["text"], self.read(one))
        self.assertIn("no such version", self.foliot("rollback", "99", status=2))
        history = self.foliot("history")
        self.assertRegex(history, r"(?m)^3 +active .*back to version 1$")
        self.assertRegex(history, r"(?m)^2 +replaced ")
        # Mistakes are reported with their place, and change nothing.
        for text, words in (("mode: sideways\n", ":1:7: expected one of"), ("ring_peers: 13\n", "expected an even number"),
                            ("ring_peers: 2\n", "expected a whole number from 4 to 24"), ("beat: 1h\n", ":1:7: expected"),
                            ("unknown: 1\n", "expected one of the keys"), ("mode: [", "1:")):
            self.assertIn(words, self.foliot("apply", self.write("bad.yaml", text), status=2))
        self.assertEqual(self.config()["active"]["version"], 3)
        viewer = self.request("POST", "/api/v1/tokens", {"name": "eve", "role": "viewer"})[2]["token"]
        operator = self.request("POST", "/api/v1/tokens", {"name": "otto", "role": "operator"})[2]["token"]
        for path, body in (("/api/v1/config", {"text": ""}), ("/api/v1/config/rollback", {}), ("/api/v1/config/observe", {"on": True})):
            self.assertEqual(self.request("POST", path, body, token=viewer)[0], 403)
        self.assertEqual(self.request("POST", "/api/v1/config", {"text": ""}, token=operator)[0], 403)
        self.assertEqual(self.request("POST", "/api/v1/config/observe", {"on": False}, token=operator)[0], 200)
        self.assertEqual({a["what"] for a in self.get("/api/v1/audit")["items"]} & {"config.apply", "config.observe"},
                         {"config.apply", "config.observe"})
        words = {e["word"] for e in self.events(kind="controller")}
        self.assertLessEqual({"config-applied", "observe-on", "observe-off"}, words)

    def beat(self, i, version=None, extra=b"", **more):
        """Sends a beat as the agent of h<i>. Returns the settings in the answer, or None."""
        known = wire.number(7, self.get("/api/v1/status")["fleet_version"])  # else the whole fleet comes, packed
        told = b"" if version is None else wire.number(9, version[0]) + wire.number(12, version[1])
        status, body = self.post("/agent/v1/report", wire.batch(**more) + known + told + extra, **self.identity(f"h{i}"))
        self.assertEqual(status, 200)
        settings = wire.fields(body).get(7)
        return wire.fields(settings[0]) if settings else None

    def test_text_of_another_version(self):
        """A stored text has one value that this version refuses: the rest of it holds, above all the mode."""
        c = self.start(report="20s", beat="10s")
        self.join(0)
        self.foliot("apply", self.write("x.yaml", "mode: observe\nflap_limit: 5\nring_peers: 12\n"))
        self.assertEqual({k: self.beat(0)[k] for k in (4, 5, 6)}, {4: [2], 5: [12], 6: [5]})
        c.stop()
        with sqlite3.connect(self.path("data", "store.db")) as store:
            store.execute("UPDATE setting SET value = CAST(replace(CAST(value AS TEXT), 'ring_peers: 12', 'ring_peers: 2') AS BLOB) "
                          "WHERE name = 'config'")
        c = self.controller()
        told = self.beat(0)
        self.assertEqual((told[4], told.get(5, [0]), told[6]), ([2], [0], [5]))
        wide = self.write("wide.yaml", "mode: observe\nring_peers: 24\n")
        self.assertIn("needs one value in the whole fleet", self.foliot("apply", wide, "--canary", "5%", status=2))
        self.assertIsNone(self.config()["trial"])
        c.wait_log(r"another version of Foliot: .*a whole number from 4 to 24, found '2': the rest of it is in force")

    def test_canaries_that_stay_well(self):
        """The test plays the agents: pauses of a slow machine would look like signs of trouble."""
        self.start(report="20s", beat="10s")
        for i in range(3):
            self.join(i)
            self.beat(i, reports=[(1, wire.report(covers=1000))])
        said = self.foliot("apply", self.write("good.yaml", "flap_limit: 6\n"), "--canary", "5%", "--watch", "20s")
        self.assertIn("version 1 is on trial on 1 hosts", said)
        canary = int(self.config()["trial"]["hosts"][0][1:])
        runs = {}

        def over():  # the canary must report within these 20 s that it runs the version; a slow machine may need many of them
            time.sleep(0.3)
            for i in range(3):
                told = self.beat(i, runs.get(i))
                if told is not None:
                    runs[i] = (told[1][0], told.get(7, [0])[0])
                    self.assertIn(6 if runs[i][1] else 0, told.get(6, [0]))
            self.assertLessEqual({i for i in runs if runs[i][1] == 1} if self.config()["trial"] else set(), {canary})
            return self.config()["trial"] is None
        self.wait(over, 30, lambda: str(self.config()))
        self.assertEqual((self.config()["active"] or {}).get("version"), 1, self.get("/api/v1/config/versions"))
        self.wait(lambda: over() and all(self.runs(f"h{i}") == 1 for i in range(3)), 5, lambda: str(runs))
        self.assertLessEqual({"config-tried", "config-applied"}, {e["word"] for e in self.events(kind="controller")})

    def test_canaries_that_do_not(self):
        c = self.start(report="5s", beat="10s")  # a host is silent after thirty seconds, and none is late before
        for i in range(3):
            self.join(i)
        agents = Agents(self, 3)
        self.wait(lambda: all(self.host(f"h{i}")["health"] == "ok" for i in range(3)), 5, lambda: str(self.host("h0")))
        self.foliot("apply", self.write("base.yaml", "flap_limit: 7\n"))
        self.all_run(1)
        file = self.write("next.yaml", "flap_limit: 9\n")
        # The canary's agent dies: it becomes silent.
        self.foliot("apply", file, "--canary", "5%", "--watch", "600s")
        canary = self.config()["trial"]["hosts"][0]
        i = int(canary[1:])
        self.wait(lambda: self.runs(canary) == 2, 5, lambda: str(self.config()))
        self.assertEqual([self.runs(f"h{k}") for k in range(3) if k != i], [1, 1])
        self.assertIn("is being tried", self.foliot("apply", file, status=1))
        c.stop()  # and the trial outlives the controller
        c = self.controller()
        self.assertEqual(self.config()["trial"]["hosts"], [canary])
        self.wait(lambda: self.config()["trial"]["confirmed"] == 1 and self.host(canary)["health"] == "ok", 5, lambda: str(self.config()))
        agents.beating.remove(i)
        self.wait(lambda: self.config()["trial"] is None, 10, lambda: str(self.config()))
        taken = self.get("/api/v1/config/versions")["items"][0]
        self.assertEqual((taken["version"], taken["state"], taken["ended_why"]), (2, "taken-back", f"a canary fell silent: {canary}"))
        self.assertEqual(self.config()["active"]["version"], 1)
        self.wait(lambda: self.alerts("config-taken-back"), 5, lambda: str(self.get("/api/v1/alerts")))
        self.assertTrue(self.config()["rolled_back"])
        agents.beating.add(i)
        self.all_run(1)
        # A port of the canary goes down: its health gets worse, and stays so.
        self.wait(lambda: all(self.host(f"h{k}")["health"] == "ok" for k in range(3)), 5,
                  lambda: f"{agents.trouble}, {[self.host(f'h{k}') for k in range(3)]}")
        self.foliot("apply", file, "--canary", "5%", "--watch", "600s")
        self.wait(lambda: not self.alerts("config-taken-back"), 5, lambda: str(self.get("/api/v1/alerts")))
        canary = self.config()["trial"]["hosts"][0]
        self.wait(lambda: self.config()["trial"]["confirmed"] == 1, 5, lambda: str(self.config()))
        agents.down.add(2 * int(canary[1:]))
        self.wait(lambda: self.config()["trial"] is None, 30, lambda: str(self.config()) + str(self.get("/api/v1/alerts")))
        taken = self.get("/api/v1/config/versions")["items"][0]
        self.assertRegex(taken["ended_why"], f"(an alert fires on a canary that wasn't there before|a canary's health got worse): {canary}")
        agents.down.clear()
        self.all_run(1)
        self.wait(lambda: all(self.host(f"h{k}")["health"] == "ok" for k in range(3)), 5, lambda: str(self.host(canary)))
        # By hand.
        self.foliot("apply", file, "--canary", "100%", "--watch", "600s")
        self.foliot("rollback")
        self.assertIsNone(self.config()["trial"])
        self.all_run(1)

    def test_a_canary_that_refuses(self):
        """The test plays the agent: any agent may send such a refusal."""
        c = self.start(report="20s", beat="10s")
        self.join(0)
        self.assertIn("no host is live", self.foliot("apply", self.write("x.yaml", "flap_limit: 3\n"), "--canary", "5%", status=1))
        self.beat(0, reports=[(1, wire.report(covers=1000))])
        self.foliot("apply", self.path("x.yaml"), "--canary", "5%")
        told = self.beat(0)
        self.assertEqual((told[6], told[7]), ([3], [1]))
        self.assertIsNone(self.beat(0, (told[1][0], 0)))  # it has the settings: they aren't sent again
        self.beat(0, (told[1][0], 0), wire.data(13, "flap_limit 3 doesn't suit <b>me</b>"))
        self.wait(lambda: self.config()["trial"] is None, 5, lambda: str(self.config()))
        self.assertIn("a canary refused it: h0", self.get("/api/v1/config/versions")["items"][0]["ended_why"])
        self.assertIn("taken back: a canary refused it", c.log())
        # and it gets the earlier settings
        self.assertEqual(self.beat(0, (told[1][0], 0)).get(7, [0]), [0])


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)

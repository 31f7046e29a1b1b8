#!/usr/bin/env python3
"""The dashboard of a real controller with real agents, in a real browser.
usage: test_dashboard.py CONTROLLER AGENT FOLIOT WEB PLUGIN"""
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "controller"))
import fleet  # noqa: E402
import wire  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PLUGIN = os.path.abspath(sys.argv.pop(5))
WEB = os.path.abspath(sys.argv.pop(4))
fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))


LEVELS = """
levels:
  - {name: at-once, owd_p50: 1ns, for: 0s}
  - {name: always, owd_p50: 10s, for: 0s}
  - {name: by-racks, owd_p99: 1ms, within: leaf, for: 0s}
"""

DECLARED = """
leaves: [leaf0]
hosts:
  h9: {nic0: {rail: 0, leaf: leaf0}}
"""


class TestDashboard(fleet.Fleet):
    HOSTS = 2

    def test_browser(self):
        self.write("levels.yaml", LEVELS)
        controller = self.start(extra=f"levels: {self.path('levels.yaml')}\n")
        self.members(0, 1)
        self.wait(lambda: any(p["state"] == "alive" for p in self.get("/api/v1/paths?from=2&to=0")["items"]), 30, "a path")
        self.assertEqual(self.request("POST", "/api/v1/topology", {"text": DECLARED})[0], 200)
        job = subprocess.Popen(  # a real, light job that lasts until the browser has seen all
            ["ip", "netns", "exec", self.space("h0"), self.FOLIOT, "perf", "--plugin", PLUGIN, "-b", "64K", "-e", "64K", "--duration", "3000",
             "-c", "0", "--wait", "2000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "FOLIOT_RUNTIME_DIR": self.path("run-h0"), "FOLIOT_NIC": "lo", "FOLIOT_JOB": "4711"})
        self.addCleanup(job.wait)
        self.addCleanup(os.killpg, job.pid, signal.SIGKILL)
        self.wait(lambda: any(j["job"] == "4711" and j["worst"] for j in self.get("/api/v1/jobs")["items"]), 30,
                  lambda: str(self.get("/api/v1/jobs")) + str(self.ask("h0")))
        self.browse("browser.mjs", {"down": lambda: self.ip("c", "link", "set", "p1x0", "down"), "controller-stop": controller.stop})

    def test_what_nobody_watches(self):
        """The test plays these hosts: a real host doesn't lose its sockets on command."""
        controller = self.start(report="3s", beat="3s")  # they report more often: a machine that pauses makes none silent
        for i in range(2):
            self.join(i)
        said = {"some": False, "silence": False}
        numbers = {"h0": 0, "h1": 0}

        def speak():  # each second, as agents do
            while not said["silence"]:
                for i in range(2):
                    numbers[f"h{i}"] += 1
                    some = said["some"]
                    ports = [wire.number(1, 2 * i) + wire.number(2, 1) + wire.number(15, 0 if some and i == 0 else 2) +
                             (wire.data(16, "<b>no socket</b>") if some and i == 0 else b""),
                             wire.number(1, 2 * i + 1) + wire.number(2, 0 if some and i == 0 else 1) + wire.number(15, 2)]
                    off = b"".join(wire.data(12, word) for word in ("routers can't be heard", "link state can't be read") if some and i == 1)
                    body = wire.report(covers=1000, ports=ports, extra=wire.data(5, wire.number(1, 1)) + off)
                    number = numbers[f"h{i}"]
                    self.post("/agent/v1/report", wire.batch([(number, body)], oldest=number), **self.identity(f"h{i}"))
                time.sleep(0.5)
        speaker = threading.Thread(target=speak)
        speaker.start()
        self.addCleanup(speaker.join)
        self.addCleanup(said.update, silence=True)
        self.wait(lambda: self.get("/api/v1/status")["watching"]["nics_unknown"] == 0, 5, "reports")

        def silence():
            said.update(silence=True)
            speaker.join()
        self.browse("watching.mjs", {"some": lambda: said.update(some=True), "silence": silence, "controller-stop": controller.stop})

    def test_over_tls(self):
        """The controller's own certificate: by the name of `init --address`, and by an address of api_names. An older
        controller's folder has no api-* files: they are made. For another name they are made anew."""
        self.ip("c", "address", "add", "10.90.0.3/24", "dev", "br1")
        self.init(address="controller.example:7638")
        for name in os.listdir(self.path("data")):
            if name.startswith("api-") and name != "api-name":
                os.unlink(self.path("data", name))
        text = self.read(self.path("controller.yaml")).replace("127.0.0.1:7639", "0.0.0.0:7639")
        self.write("controller.yaml", text)
        first = self.controller()
        before = self.read(self.path("data", "api-authority.pem")), self.read(self.path("data", "api-server.pem"))
        first.stop()
        self.write("controller.yaml", text + "api_names: [10.90.0.1]\n")
        self.controller()
        authority = self.path("data", "api-authority.pem")
        self.assertEqual(self.read(authority), before[0])
        self.assertNotEqual(self.read(self.path("data", "api-server.pem")), before[1])
        store = self.path(".pki", "nssdb")

        def trust():
            os.makedirs(store)
            fleet.run("certutil", "-N", "--empty-password", "-d", f"sql:{store}")
            fleet.run("certutil", "-A", "-n", "foliot", "-t", "C,,", "-i", authority, "-d", f"sql:{store}")
        self.browse("tls.mjs", {"trust": trust}, "https://controller.example:7639", "https://10.90.0.1:7639", "https://localhost:7639",
                    "https://10.90.0.3:7639")

    def browse(self, script, wishes, url="http://127.0.0.1:7639", *others):
        """Runs a script in the browser, and does what the script asks for. The namespace's own addresses must exist before:
        Chromium drops its requests when an address appears."""
        self.wait(lambda: not self.ip("c", "-6", "address", "show", "tentative").stdout.strip(), 10, "addresses that are nobody else's")
        browser = subprocess.Popen(["ip", "netns", "exec", self.space("c"), "node", os.path.join(HERE, script),
                                    url, self.admin, os.path.join(WEB, "node_modules"), *others],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env=dict(os.environ, HOME=self.folder))
        failures = []
        for line in browser.stdout:
            print(line, end="", flush=True)
            if line.startswith("WANT "):
                wishes[line.split()[1]]()
                browser.stdin.write("\n")
                browser.stdin.flush()
            elif not line.startswith("ok "):
                failures.append(line)
        browser.stdin.close()
        browser.stdout.close()
        self.assertEqual((browser.wait(fleet.IO_S), failures), (0, []))


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    if shutil.which(os.environ.get("CHROMIUM", "chromium")) is None:
        print("skipped: there is no chromium")
        sys.exit(77)
    unittest.main(verbosity=2)

#!/usr/bin/env python3
"""A cut link becomes one notice at a webhook. It can be acknowledged and silenced, and after a restart no notice is sent again.
usage: test_alerts.py CONTROLLER AGENT FOLIOT"""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402
import hook  # noqa: E402
import wire  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))

ALERTS = """
rules:
  - {name: link-down-long, finding: link-down, for: 10s, severity: page}
receivers:
  - name: hook
    webhook: {url: "http://127.0.0.1:9095/secret-in-url"}
routes:
  - {severity: warning, to: [hook]}
engine: {keep: 1s}
link: https://foliot.example:7639
"""

ALERTMANAGER = fleet.program("prometheus-alertmanager")


class TestAlerts(fleet.Fleet):
    HOSTS = 2

    def setUp(self):
        super().setUp()
        self.hook = hook.Hook(self.space("c"))

    def tearDown(self):
        self.hook.close()
        super().tearDown()

    def begin(self):
        os.environ["no_proxy"] = "127.0.0.1"
        self.write("alerts.yaml", ALERTS)
        controller = self.start(extra=f"alerts: {self.path('alerts.yaml')}\n")
        return controller, self.members(0, 1)

    def notices(self, **fields):
        return self.hook.of(kind="incident", **fields)

    def foliot(self, *arguments, status=0):
        """Runs the command line in the controller's namespace."""
        done = subprocess.run(["ip", "netns", "exec", self.space("c"), self.FOLIOT, "alerts", *arguments], text=True, check=False,
                              capture_output=True, env=dict(os.environ, FOLIOT_TOKEN=self.admin))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def test_command_line(self):
        controller, _ = self.begin()
        self.foliot("check", self.path("alerts.yaml"))
        self.assertIn("link.downs", self.foliot("metrics"))
        self.assertIn("alert: FoliotLinkFlaps", self.foliot("export", "--prometheus"))
        self.ip("c", "link", "set", "p1x0", "down")
        self.wait(lambda: self.notices(event="opened", cause="h1/nic0"), 5, lambda: controller.log())
        self.assertIn("h1/nic0", self.foliot("list", status=1))
        number = str(self.notices(cause="h1/nic0")[0][1]["incident"])
        self.foliot("ack", "999", status=2)
        self.assertIn("acknowledged by", self.foliot("ack", number))
        self.assertIn("silence 1, until", self.foliot("silence", "--host", "h?", "--for", "90min", "--why", "trial"))
        self.assertIn("trial", self.foliot("silences"))
        self.assertEqual([row["detail"] for row in self.get("/api/v1/audit")["items"] if row["what"] == "silence.make"],
                         ["silence 1: host h? for 90 min: trial"])
        self.foliot("unsilence", "1")
        self.assertTrue(json.loads(self.foliot("list", "--json"))["items"])
        # The same rule over the past few minutes: it finds the cut again.
        past = self.foliot("test", "link-down", "--since", "10min")
        self.assertRegex(past, r"incident 1 opened: h1/nic0: link is down")
        self.assertRegex(past, r"rule link-down: \d+ facts, \d notifications, 0 pages")
        self.assertIn("0 pages", self.foliot("test", "clock-bound", "--since", "10min"))
        self.assertIn("0 pages", self.foliot("test", "agent-cpu", "--since", "10min"))
        self.assertIn("0 pages", self.foliot("test", "host-silent", "--since", "10min"))
        self.foliot("test", "certificate-expires", status=2)

    def firing(self, rule):
        return [a for a in self.get("/api/v1/alerts")["items"] if a["rule"] == rule and a["state"] == "firing"]

    def test_jobs_and_certificates(self):
        """Alerts that belong to no link: a job that sends too little, a certificate that ends within 30 days."""
        self.write("alerts.yaml", "rules:\n  - {name: job-slow, value: job.throughput, per: job, below: 400Mbit/s, severity: warning}\n")
        self.start(extra=f"alerts: {self.path('alerts.yaml')}\n", beat="10s")
        controller = self.processes[-1]
        self.join(0)
        controller.stop()
        self.write("controller.yaml", self.read(self.path("controller.yaml")) + "certificate_life: 29d\n")
        self.controller()
        self.join(1)
        number = {"h0": 0, "h1": 0}

        def say(name, rank, rate, state=1):
            number[name] += 1
            job = wire.data(11, wire.job_process("train", rank, 2, state=state, rate=rate))
            body = wire.batch([(number[name], wire.report(covers=1000, extra=job))], stream=50 + rank)
            self.assertEqual(self.post("/agent/v1/report", body, **self.identity(name))[0], 200)

        def both(rate, state=1):
            say("h0", 0, rate, state)
            say("h1", 1, rate, state)
            return True
        # Until the second rank is heard, the job's rate is unknown. The rate of both together is enough.
        end = time.monotonic() + 12
        while time.monotonic() < end:
            say("h0", 0, 3 * 10**8)
            time.sleep(0.5)
        self.assertEqual(self.firing("job-slow"), [])
        self.wait(lambda: both(3 * 10**8) and [a["host"] for a in self.firing("certificate-expires")] == ["h1"], 5,
                  lambda: str(self.get("/api/v1/alerts")))
        self.assertEqual(self.firing("certificate-expires")[0]["severity"], "warning")
        self.assertEqual(self.firing("job-slow"), [])
        slow = self.wait(lambda: both(10**8) and self.firing("job-slow"), 10, lambda: str(self.get("/api/v1/alerts")))[0]
        self.assertEqual(slow["job"], "train")
        self.assertIn("job train: throughput of the job is 200 Mbit/s, below 400 Mbit/s", slow["text"])
        tenant = self.request("POST", "/api/v1/tokens", {"name": "t", "role": "viewer", "scope": "h1"})[2]["token"]
        self.assertEqual([a for a in self.get("/api/v1/alerts", token=tenant)["items"] if a["job"]], [])
        both(0, state=4)  # it has ended
        self.wait(lambda: self.firing("job-slow") == [], 10, lambda: str(self.get("/api/v1/alerts")))

    @staticmethod
    def with_its_files(program):
        """Debian's program reads a file in /usr/share. For an unpacked one the file is put there, in the mounts that `ip netns
        exec` makes for it."""
        share = os.path.join(os.path.dirname(os.path.dirname(program)), "share")
        if os.path.exists("/usr/share/prometheus/alertmanager/default.tmpl") or not os.path.exists(f"{share}/prometheus/alertmanager"):
            return (program,)
        return ("sh", "-c", 'mount --bind "$0" /usr/share && exec "$@"', share, program)

    @unittest.skipUnless(ALERTMANAGER, "no prometheus-alertmanager: tools/install-deps test")
    def test_the_real_alertmanager(self):
        os.environ["no_proxy"] = "127.0.0.1"
        self.write("am.yaml", "route: {receiver: none}\nreceivers: [{name: none}]\n")
        manager = fleet.Process(self, "alertmanager", self.space("c"), *self.with_its_files(ALERTMANAGER),
                                "--config.file", self.path("am.yaml"), "--storage.path", self.path("am"),
                                "--web.listen-address", "127.0.0.1:9093", "--cluster.listen-address=")
        self.write("alerts.yaml", "receivers: [{name: am, alertmanager: {url: 'http://127.0.0.1:9093'}}]\n"
                   "routes: [{severity: warning, to: [am]}]\ndeadman: {every: 1s, to: [am]}\nengine: {keep: 1s}\n")
        controller = self.start(extra=f"alerts: {self.path('alerts.yaml')}\n")
        self.members(0, 1)
        ask = ("import json, urllib.request as u; print(json.dumps(json.load(u.urlopen("
               "'http://127.0.0.1:9093/api/v2/alerts'))))")

        def there(name):
            done = subprocess.run(["ip", "netns", "exec", self.space("c"), sys.executable, "-c", ask], text=True, check=False,
                                  capture_output=True)
            found = json.loads(done.stdout) if done.returncode == 0 else []
            return [a for a in found if a["labels"]["alertname"] == name]

        self.wait(lambda: there("FoliotAlive"), 20, lambda: manager.log() + controller.log())
        self.ip("c", "link", "set", "p1x0", "down")
        alert = self.wait(lambda: [a for a in there("FoliotIncident") if a["labels"].get("element") == "h1/nic0"], 5, lambda: controller.log())[0]
        self.assertEqual(alert["status"]["state"], "active")
        self.assertIn("h1/nic0: link is down", alert["annotations"]["summary"])
        self.assertEqual((alert["labels"]["element"], alert["labels"]["host"]), ("h1/nic0", "h1"))
        self.ip("c", "link", "set", "p1x0", "up")
        self.wait(lambda: not [a for a in there("FoliotIncident") if a["annotations"]["cause"] == "h1/nic0"], 15,
                  lambda: f"{there('FoliotIncident')}\n{self.get('/api/v1/incidents')}\n{self.get('/api/v1/findings')}\n{controller.log()}")
        self.assertEqual(manager.stop(), 0)

    def test_a_cut_link(self):
        controller, _ = self.begin()
        self.ip("c", "link", "set", "p1x0", "down")
        opened = self.wait(lambda: self.notices(event="opened", cause="h1/nic0"), 5, lambda: controller.log())
        body, headers = opened[0][1], opened[0][2]
        self.assertEqual((body["severity"], body["page"]), ("warning", False))
        self.assertEqual(headers["Idempotency-Key"], body["key"])
        self.assertIn("h1/nic0: link is down", body["text"])
        self.assertTrue(body["link"].startswith("https://foliot.example:7639/#/alerts?incident="))
        # It lasts: now one page is sent, for the same incident.
        self.wait(lambda: self.notices(event="worse", page=True), 8, lambda: controller.log())
        number = body["incident"]
        incident = self.get(f"/api/v1/incidents/{number}")
        self.assertEqual((incident["state"], incident["severity"], incident["pages"]), ("open", "page", 1))
        self.assertTrue(any(a["rule"] == "link-down" and a["nic"] == "h1/nic0" for a in self.get("/api/v1/alerts")["items"]))
        self.assertGreater(len(self.get("/api/v1/alert-rules")["items"]), 20)
        self.assertIn(b"foliot_alert_pages_total 1", self.get("/metrics"))
        # Acknowledged: only an operator may, and the audit trail has it.
        viewer = self.request("POST", "/api/v1/tokens", {"name": "eve", "role": "viewer"})[2]["token"]
        self.assertEqual(self.request("POST", f"/api/v1/incidents/{number}", {"acknowledge": True}, token=viewer)[0], 403)
        self.assertEqual(self.request("POST", f"/api/v1/incidents/{number}", {"acknowledge": True})[0], 200)
        self.assertEqual(self.request("POST", "/api/v1/incidents/999", {"acknowledge": True})[0], 404)
        self.wait(lambda: self.notices(event="acknowledged", incident=number), 3, "the acknowledgement")
        self.assertIn("incident.acknowledge", [a["what"] for a in self.get("/api/v1/audit")["items"]])
        self.assertTrue([e for e in self.events(kind="incident") if e["word"] == "opened"])
        # After a restart, also a forced one, no notice is sent again, and the alert is still acknowledged.
        time.sleep(1.2)
        count = len(self.notices(incident=number))
        for how in (signal.SIGTERM, signal.SIGKILL):
            controller.stop(how)
            controller = self.controller()
            self.wait(lambda: self.host("h1")["freshness"] == "live", 8, "h1")
            time.sleep(1.5)
            self.assertEqual(len(self.notices(incident=number)), count, str(self.notices()[count:]) + controller.log())
            self.assertIsNotNone(self.get(f"/api/v1/incidents/{number}")["acknowledged_by"])
        self.ip("c", "link", "set", "p1x0", "up")
        self.wait(lambda: self.notices(event="resolved", incident=number), 10, lambda: controller.log() +
                  str(self.get("/api/v1/links?host=h1")) + str(self.get(f"/api/v1/incidents/{number}")))
        self.assertNotIn("secret-in-url", controller.log())

    def test_silences_and_a_refused_file(self):
        controller, _ = self.begin()
        self.assertEqual(self.request("POST", "/api/v1/silences", {"minutes": 5})[0], 400)
        status, _, silence = self.request("POST", "/api/v1/silences", {"minutes": 5, "host": "h1", "why": "new cables"})
        self.assertEqual(status, 200)
        self.ip("c", "link", "set", "p1x1", "down")
        self.wait(lambda: [i for i in self.get("/api/v1/incidents?open=true")["items"] if i["silenced"]], 5,
                  lambda: str(self.get("/api/v1/incidents")) + controller.log())
        time.sleep(1)
        self.assertEqual(self.notices(cause="h1/nic1"), [])
        self.assertEqual([s["why"] for s in self.get("/api/v1/silences")["items"]], ["new cables"])
        self.assertEqual(self.request("DELETE", f"/api/v1/silences/{silence['id']}")[0], 200)
        self.wait(lambda: self.notices(event="opened", cause="h1/nic1"), 5, lambda: controller.log())
        # A file with a mistake is refused; the earlier rules stay, and an alert reports it.
        self.write("alerts.yaml", ALERTS + "rulez: []\n")
        controller.process.send_signal(signal.SIGHUP)
        controller.wait_log(r"alerts.yaml:\d+:1: expected one of the keys")
        self.wait(lambda: self.notices(event="opened", cause="the rule file"), 5, lambda: controller.log())
        self.write("alerts.yaml", ALERTS)
        controller.process.send_signal(signal.SIGHUP)
        controller.wait_log("receivers in force")
        count = len(self.notices(event="opened", cause="h1/nic1"))
        time.sleep(1)
        self.assertEqual(len(self.notices(event="opened", cause="h1/nic1")), count)


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("network namespaces can't be made here: root is needed")
        sys.exit(77)
    unittest.main(verbosity=2)

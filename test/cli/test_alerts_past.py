#!/usr/bin/env python3
"""`foliot alerts test` against a made-up past. usage: test_alerts_past.py FOLIOT"""
import calendar
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

FOLIOT = os.path.abspath(sys.argv.pop(1))
S = 10**9
NOW = time.time_ns()
RULES = """
rules:
  - {name: job-slow, value: job.throughput, per: job, below: 400Mbit/s, for: 1min, severity: warning}
  - {name: job-late, value: job.delay_p99, per: job, above: 1ms, severity: page}
  - {name: lossy, value: path.loss, per: path, above: 1%, severity: page}
  - {name: blink, absent: host.report, within: 10s, severity: warning}
  - {name: sender, rate: link.tx_bytes, above: 100MiB, within: 1min, severity: warning}
"""


def ago(seconds):
    return NOW - seconds * S


class Past(http.server.BaseHTTPRequestHandler):
    """A controller's answers. `series(metric, subject, age of the step's begin in s)` is a value or None."""
    hosts, jobs, events, paths = ["h0", "h1"], [], [], []
    nics = ["h0/nic0", "h1/nic0"]
    joined = ago(10**6)

    @staticmethod
    def series(metric, subject, age):
        return None

    def page(self, items):
        return {"items": items, "next": None}

    def find(self, path, query):
        if path == "/api/v1/hosts":
            return self.page([{"name": h, "member": True, "joined_utc_ns": self.joined} for h in self.hosts])
        if path == "/api/v1/nics":
            return self.page([{"nic": i, "host": n[:2], "name": n[3:], "leaf": "leaf1", "rail": 0}
                              for i, n in enumerate(self.nics)])
        if path == "/api/v1/paths":
            return self.page(self.paths)
        if path == "/api/v1/jobs":
            return self.page([{k: v for k, v in j.items() if k != "past"} for j in self.jobs])
        if path.startswith("/api/v1/jobs/"):
            return next(j for j in self.jobs if j["job"] == urllib.parse.unquote(path[13:]) and str(j["user"]) == query["user"])
        if path == "/api/v1/events":
            since = int(query["since_utc_ns"])
            return self.page([e for e in self.events if e["kind"] == query["kind"] and e["at_utc_ns"] >= since][::-1])
        assert path == "/api/v1/series"
        begin, end = int(query["since_utc_ns"]), int(query["until_utc_ns"])
        step = int(query["step_s"]) * S if "step_s" in query else max((end - begin) // 4000 // (10 * S), 1) * 10 * S
        begin -= begin % step
        whose = query.get("host") or query.get("nic") or query["to"]
        values = [self.series(query["metric"], whose, (NOW - at) / S) for at in range(begin, end, step)]
        assert len(values) <= 20001
        return {"from_utc_ns": begin, "step_ns": step, "values": values}

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        body = json.dumps(self.find(url.path, dict(urllib.parse.parse_qsl(url.query)))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class TestPast(unittest.TestCase):
    def setUp(self):
        self.past = type("P", (Past,), {})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.past)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def foliot(self, *arguments, status=0):
        done = subprocess.run([FOLIOT, "alerts", "test", "--controller", f"http://127.0.0.1:{self.server.server_port}", *arguments],
                              capture_output=True, text=True, check=False, timeout=300,
                              env=dict(os.environ, FOLIOT_TOKEN="x", no_proxy="127.0.0.1"))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def told(self, text):
        """[(age in s, event, rest)]"""
        out = []
        for line in text.splitlines():
            m = re.match(r"(\S+ \S+) UTC  incident \d+ (.*?): (.*)", line)
            if m:
                at = time.strptime(m[1][:19], "%Y-%m-%d %H:%M:%S")
                out.append((NOW / S - calendar.timegm(at), m[2], m[3]))
        return out

    def own(self, *arguments, **options):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(RULES)
            file.flush()
            return self.foliot("--file", file.name, *arguments, **options)

    def test_a_host_that_was_silent(self):
        gaps = [(3600, 2400), (1500, 1440)]  # 20 min, 1 min
        self.past.series = staticmethod(lambda metric, host, age: None if host == "h1" and any(a >= age > b for a, b in gaps) else 1)
        told = self.told(self.foliot("host-silent", "--since", "2h"))
        self.assertEqual([(e, t.split(":")[0]) for _, e, t in told], [("opened", "h1"), ("resolved", "h1")], told)
        self.assertAlmostEqual(told[0][0], 3600 - 120, delta=60)
        self.assertLess(told[1][0], 2400 + 1)
        self.assertEqual([e for _, e, _ in self.told(self.foliot("host-silent-long", "--since", "2h"))], ["opened (page)", "resolved"])

    def test_a_host_that_never_spoke(self):
        self.past.series = staticmethod(lambda metric, host, age: None if host == "h1" else 1)
        self.assertEqual([e for _, e, _ in self.told(self.foliot("host-silent", "--since", "1h"))], ["opened"])
        self.past.joined = NOW
        self.assertEqual(self.told(self.foliot("host-silent", "--since", "1h")), [])

    def test_an_absence_that_history_cannot_show(self):
        self.assertIn("expected 'within' of 20s or more", self.own("blink", status=2))
        self.assertIn("try --since 55h", self.foliot("host-silent", "--since", "40d", status=2))

    def test_agents(self):
        self.past.series = staticmethod(lambda metric, host, age: (
            150000 if metric == "agent_cpu_ppm" and host == "h1" and 9000 > age > 3600 else 7 if age < 1000 and host == "h0" else 5))
        told = self.told(self.foliot("agent-cpu", "--since", "4h"))
        self.assertEqual([(e, t.split(":")[0]) for _, e, t in told], [("opened", "h1"), ("resolved", "h1")], told)
        self.assertAlmostEqual(told[0][0], 9000 - 1800, delta=60)
        self.assertEqual(len(self.told(self.foliot("agent-cpu", "--since", "6d"))), 2)  # in steps of 120 s
        told = self.told(self.foliot("reports-lost", "--since", "4h"))
        self.assertEqual([(e, t.split(":")[0]) for _, e, t in told], [("opened", "h0")], told)

    def test_counters_of_links(self):
        self.past.series = staticmethod(lambda metric, nic, age: (
            (age < 1800 and nic == "1") * int((1800 - age) * 2) if metric == "rx_errors_count" else 2 * 10**9 if 900 > age > 600 else 0))
        self.assertEqual([(e, t.split(":")[0]) for _, e, t in self.told(self.foliot("link-error-rate", "--since", "1h"))],
                         [("opened", "h1/nic0")])
        told = self.told(self.own("sender", "--since", "1h"))  # 2 Gbit/s for five minutes, out of bits a second
        self.assertEqual(sorted(e for _, e, _ in told), ["opened", "opened", "resolved", "resolved"], told)

    def test_paths_of_one_nic(self):
        """The tenants of these hosts are unknown. So no page is left out because one tenant alone would get it."""
        self.past.nics = ["h0/nic0", "h1/nic0", "h1/nic1", "h1/nic2"]
        self.past.paths = [{"from": 0, "to": to, "port": 7640} for to in (1, 2, 3)]
        self.past.series = staticmethod(lambda metric, nic, age: 500000 if metric == "loss_ppm" and age < 1800 else 0)
        told = self.told(self.own("lossy", "--since", "1h"))
        self.assertEqual([e for _, e, _ in told], ["opened (page)"], told)
        self.assertIn("h0/nic0", told[0][2])

    def test_jobs(self):
        rates = [10**9] * 60 + [10**8] * 60 + [10**9] * 60  # of ten seconds each
        job = {"job": "train 1/2", "user": 1000, "state": "running", "heard_utc_ns": NOW,
               "past": {"from_utc_ns": ago(1800), "step_ns": 10 * S, "rate_bps": rates, "owd_ns_p50": [], "owd_ns_p99": [None] * 5 + [4 * 10**6]}}
        ended = {**job, "job": "short", "state": "ended", "heard_utc_ns": ago(1200), "past": {**job["past"], "rate_bps": [10**8] * 60, "owd_ns_p99": []}}
        self.past.jobs = [job, ended]
        told = self.told(self.own("job-slow", "--since", "1h"))
        self.assertEqual(sorted((e, re.search("train 1/2|short", t)[0]) for _, e, t in told),
                         [("opened", "short"), ("opened", "train 1/2"), ("resolved", "short"), ("resolved", "train 1/2")], told)
        at = {(e, re.search("train|short", t)[0]): age for age, e, t in told}
        self.assertAlmostEqual(at["opened", "train"], 1200 - 60, delta=30)
        self.assertLess(at["resolved", "short"], 1200)
        self.assertEqual([e for _, e, _ in self.told(self.own("job-late", "--since", "1h"))], ["opened (page)", "resolved"])

    def test_alerts_about_the_controller(self):
        self.past.events = [{"kind": "controller", "word": w, "at_utc_ns": ago(a), "host": "", "detail": {"level": n}}
                            for a, w, n in ((3000, "level-broken", "x"), (2900, "level-broken", "y"), (2800, "level-met", "x"),
                                            (2700, "level-unknown", "y"), (2600, "config-tried", ""), (2500, "config-taken-back", ""))]
        told = self.told(self.foliot("level-broken", "--since", "1h"))
        self.assertEqual([e for _, e, _ in told], ["opened", "resolved"], told)
        self.assertLess(told[1][0], 2700)
        self.assertEqual([e for _, e, _ in self.told(self.foliot("config-taken-back", "--since", "1h"))], ["opened"])

    def test_alerts_that_are_not_kept(self):
        for rule, words in (("certificate-expires", "no history of certificate.days_left is kept"), ("topology-differs", "foliot topology")):
            self.assertIn(words, self.foliot(rule, status=2))


if __name__ == "__main__":
    unittest.main()

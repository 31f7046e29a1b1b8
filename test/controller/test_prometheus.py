#!/usr/bin/env python3
"""Everything for Prometheus is given to the real one: /metrics by promtool and by scraping, rules by promtool, remote write by
its own receiver (and VictoriaMetrics' where that is installed). The shipped rules and Grafana's dashboard name only metrics that
exist.
usage: test_prometheus.py CONTROLLER AGENT FOLIOT"""
import http.client
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402
import wire  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAME = re.compile(r"foliot_[a-z0-9_]+")


PROMETHEUS, PROMTOOL, VICTORIA = map(fleet.program, ("prometheus", "promtool", "victoria-metrics"))


def need(what):
    return unittest.skipUnless(what, "not installed: tools/install-deps test")


class TestPrometheus(fleet.Fleet):
    HOSTS = 2

    def http(self, port, path, accept=None):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.sock = fleet.connect(self.space("c"), "127.0.0.1", port)
        connection.request("GET", path, headers={"Accept": accept} if accept else {})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.getheader("Content-Type"), body

    def query(self, port, text):
        try:
            body = json.loads(self.http(port, "/api/v1/query?query=" + urllib.parse.quote(text))[1])
        except (OSError, ValueError):
            return []
        return body["data"]["result"] if body.get("status") == "success" else []

    def agent_metrics(self, accept=None):
        sock = fleet.connect(self.space("h0"), "10.90.0.10", 7636)
        sock.sendall(b"GET /metrics HTTP/1.0\r\n" + (f"Accept: {accept}\r\n".encode() if accept else b"") + b"\r\n")
        text = b""
        while part := sock.recv(65536):
            text += part
        sock.close()
        return text.split(b"\r\n\r\n", 1)[1].decode()

    def begin(self, remote):
        self.init(extra=f"metrics_open: yes\n{remote}")
        c = self.controller()
        for i in range(2):
            self.join(i)
            self.write(f"h{i}.yaml", self.read(self.path(f"h{i}.yaml")) + f"metrics_listen: 10.90.0.{10 + i}:7636\n")
            self.agent(i)
        self.wait(lambda: all((self.host(f"h{i}") or {}).get("paths") for i in range(2)), fleet.IO_S, c.log)
        return c

    def prometheus(self):
        self.write("prometheus.yml", "global: {scrape_interval: 1s}\nscrape_configs:\n"
                   "- {job_name: controller, static_configs: [{targets: ['127.0.0.1:7639']}]}\n"
                   "- {job_name: agents, static_configs: [{targets: ['10.90.0.10:7636', '10.90.0.11:7636']}]}\n"
                   f"rule_files: ['{self.path('rules.yaml')}']\n")
        self.write("rules.yaml", self.rules())
        return fleet.Process(self, "prometheus", self.space("c"), PROMETHEUS, "--web.enable-remote-write-receiver",
                             f"--config.file={self.path('prometheus.yml')}", f"--storage.tsdb.path={self.path('tsdb')}",
                             "--web.listen-address=127.0.0.1:9090", "--log.level=warn")

    def rules(self):
        return fleet.run(self.FOLIOT, "alerts", "export", "--prometheus").stdout

    # ---- promtool's verdict ----

    @need(PROMTOOL)
    def test_promtool(self):
        self.begin("")
        own = self.http(7639, "/metrics")[1].decode()
        fresh = dict(re.findall(r'^foliot_hosts_by_freshness{freshness="(\w+)"} (\d+)$', own, re.M))
        self.assertEqual((set(fresh), sum(map(int, fresh.values()))), ({"never", "live", "late", "stale"}, 2))
        self.assertGreater(float(re.search(r"^foliot_controller_memory_bytes (\S+)$", own, re.M)[1]), 1e6)
        self.assertGreater(float(re.search(r"^foliot_controller_cpu_seconds_total (\S+)$", own, re.M)[1]), 0)
        for name, text in (("controller", self.http(7639, "/metrics")[1].decode()), ("agent", self.agent_metrics())):
            told = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
            self.assertEqual((told.returncode, told.stdout + told.stderr), (0, ""), name)
        self.write("rules.yaml", self.rules())
        told = fleet.run(PROMTOOL, "check", "rules", self.path("rules.yaml"), check=False)
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
        shipped = fleet.run(PROMTOOL, "check", "rules", os.path.join(TOP, "packaging", "prometheus-rules.yaml"), check=False)
        self.assertEqual(shipped.returncode, 0, shipped.stdout + shipped.stderr)

    # ---- the real server ----

    @need(PROMETHEUS)
    def test_prometheus(self):
        c = self.begin("remote_write: {url: 'http://127.0.0.1:9090/api/v1/write?secret=in-url', paths: yes}\n")
        c.wait_log("Samples wait and are sent again", fleet.IO_S)  # no receiver listens yet
        server = self.prometheus()

        def waited(text, true=lambda values: True, seconds=fleet.IO_S):
            return self.wait(lambda: (r := self.query(9090, text)) and true(r) and r, seconds,
                             lambda: f"{text}: {self.query(9090, text)}\n{server.log()}{c.log()}")
        # remote write, from the very first report on, although no receiver listened then
        waited('foliot_port_up{host="h0",nic="nic0"} == 1')
        waited('foliot_path_owd_seconds{from="h0/nic0",to="h1/nic0",quantile="0.5"}')
        waited('foliot_clock_status{host="h1",foliot_clock_status="SYNCED"}')
        # scraped: controller and agents, in OpenMetrics as Prometheus asks for it
        waited('up == 1', lambda r: len(r) == 3)
        waited('foliot_host_health{host="h0"}')
        waited('count(foliot_port_up{job="agents"}) == 4')
        # what changes arrives
        self.ip("c", "link", "set", "p1x0", "down")
        waited('foliot_port_up{host="h1",nic="nic0"} == 0')
        # every series of a shipped panel or rule is there
        names = {name for name in self.names()}

        def missing():  # the incident of the cut link opens a moment later, and is scraped another one later
            return sorted(names - set(json.loads(self.http(9090, "/api/v1/label/__name__/values")[1])["data"]))
        self.wait(lambda: not missing(), fleet.IO_S, lambda: f"series that nobody brings: {missing()}")
        for expression in self.expressions():
            body = json.loads(self.http(9090, "/api/v1/query?query=" + urllib.parse.quote(expression))[1])
            self.assertEqual(body["status"], "success", f"{expression}: {body}")
        # away and back: nothing is dropped
        server.stop(signal.SIGKILL)
        shutil.rmtree(self.path("tsdb", "lock"), ignore_errors=True)
        self.ip("c", "link", "set", "p1x0", "up")
        self.wait(lambda: self.metric("foliot_remote_requests_failed_total") > 1, fleet.IO_S, c.log)
        server = self.prometheus()
        waited('foliot_port_up{host="h1",nic="nic0"} == 1')
        self.assertEqual(self.metric("foliot_remote_samples_dropped_total"), 0, c.log())
        self.assertNotIn("secret", c.log())
        self.assertEqual(c.stop(), 0)

    def metric(self, name):
        text = self.http(7639, "/metrics")[1].decode()
        return float(re.search(rf"^{name} (\S+)$", text, re.M)[1])

    def test_a_receiver_that_refuses(self):
        c = self.begin("remote_write: {url: 'http://127.0.0.1:7639/no-receiver'}\n")
        c.wait_log("remote_write: HTTP status 404.*These samples are dropped", fleet.IO_S)
        self.wait(lambda: self.metric("foliot_remote_samples_dropped_total") > 0, fleet.IO_S, c.log)
        self.assertEqual(c.stop(), 0)

    @need(VICTORIA)
    def test_victoria_metrics(self):
        c = self.begin("remote_write: {url: 'http://127.0.0.1:8428/api/v1/write'}\n")
        fleet.Process(self, "victoria", self.space("c"), VICTORIA, "-httpListenAddr=127.0.0.1:8428",
                      f"-storageDataPath={self.path('vm')}", "-search.latencyOffset=0s")
        self.wait(lambda: self.query(8428, 'last_over_time(foliot_port_up{host="h0",nic="nic0"}[5m])'), fleet.IO_S, c.log)

    # ---- the shipped files ----

    @staticmethod
    def board():
        with open(os.path.join(TOP, "packaging", "grafana-dashboard.json"), encoding="utf-8") as file:
            return json.load(file)

    def expressions(self):
        board = self.board()
        found = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
        found += [re.search(r"foliot_\w+", v["query"])[0] for v in board["templating"]["list"] if v["type"] == "query"]
        shipped = self.read(os.path.join(TOP, "packaging", "prometheus-rules.yaml"))
        found += [m[1].replace("''", "'") for m in re.finditer(r"expr: '?(.*?)'?$", shipped, re.M)]
        return [self.filled(e) for e in found]

    @staticmethod
    def filled(expression):
        """As Grafana sends it."""
        return expression.replace("$host", ".*").replace("$__rate_interval", "20s")

    def names(self):
        return {name for text in self.expressions() for name in NAME.findall(re.sub(r"\{[^}]*\}", "", text))}

    def test_what_is_shipped_exists(self):
        self.begin("remote_write: {url: 'http://127.0.0.1:1/', paths: yes}\n")
        there = set(NAME.findall(self.http(7639, "/metrics")[1].decode() + self.agent_metrics()))
        with open(os.path.join(TOP, "src", "service", "controller", "history", "remote.c"), encoding="utf-8") as file:
            there |= set(re.findall(r'"(foliot_[a-z0-9_]+)"', file.read()))
        self.assertGreater(len(self.names()), 10)
        self.assertLessEqual(self.names(), there, sorted(self.names() - there))
        with open(os.path.join(TOP, "packaging", "prometheus-rules.yaml"), encoding="utf-8") as file:
            self.assertEqual(file.read(), self.rules(), "packaging/prometheus-rules.yaml: foliot alerts export --prometheus")
        # a client that asks for OpenMetrics gets it; others get the format that every Prometheus and promtool reads
        kind, text = self.http(7639, "/metrics", "application/openmetrics-text; version=1.0.0")
        self.assertTrue(kind.startswith("application/openmetrics-text"))
        self.check_metrics(text)
        self.assertTrue(self.http(7639, "/metrics")[0].startswith("text/plain; version=0.0.4"))


# The shipped rules wait minutes and hours: the same rules with other numbers, by the same export.
SOON = """rules:
  - {name: link-flaps, count: link.downs, above: 1, within: 10min, severity: page}
  - {name: host-silent, absent: host.report, within: 6s, severity: warning}
  - {name: host-silent-long, absent: host.report, within: 8s, severity: page}
  - {name: clock-out, value: clock.synced, below: 1, for: 1s, severity: page}
  - {name: clock-bound, value: clock.hard_bound, above: 1us, for: 1s, severity: warning}
  - {name: nic-unwatched, value: link.watched, below: 1, for: 1s, severity: warning}
  - {name: reports-lost, count: agent.reports_lost, above: 0, within: 30s, severity: warning}
  - {name: agent-cpu, value: agent.cpu, above: 0.01%, for: 1s, severity: warning}
"""


class Values(dict):
    """A missing value is neither more nor less than anything."""

    def __missing__(self, key):
        return math.nan


class TestOnAFault(TestPrometheus):
    """Prometheus scrapes the controller as docs/prometheus.md describes, and nothing else. Cables are cut, an agent is killed,
    one host reports trouble: every panel and every rule shows its fault."""
    HOSTS = 3
    test_promtool = test_prometheus = test_a_receiver_that_refuses = test_victoria_metrics = None
    test_what_is_shipped_exists = None

    def rules(self):
        text = fleet.run(self.FOLIOT, "alerts", "export", "--prometheus", "--file", self.write("soon.yaml", SOON)).stdout
        shipped = self.read(os.path.join(TOP, "packaging", "prometheus-rules.yaml"))
        of = lambda rules: re.findall(r"alert: (\w+)", rules)  # noqa: E731
        self.assertEqual(of(text), of(shipped))
        return text.replace("for: 2m", "for: 1s")

    def scrape(self):
        """The documented file. Only the address and the token's place are this machine's."""
        text = self.read(os.path.join(TOP, "docs", "prometheus.md"))
        config = re.search(r"```yaml\n(scrape_configs:.*?)```", text, re.S)[1]
        for mine, theirs in (("/etc/prometheus/foliot-token", self.write("token", self.admin)), ("controller:7639", "127.0.0.1:7639"),
                             ("/usr/share/foliot/prometheus-rules.yaml", self.write("rules.yaml", self.rules()))):
            self.assertIn(mine, config)
            config = config.replace(mine, theirs)
        return "global: {scrape_interval: 1s, evaluation_interval: 1s}\n" + config

    def prometheus(self):
        return fleet.Process(self, "prometheus", self.space("c"), PROMETHEUS,
                             f"--config.file={self.write('prometheus.yml', self.scrape())}", f"--storage.tsdb.path={self.path('tsdb')}",
                             "--web.listen-address=127.0.0.1:9090", "--log.level=warn")

    def alerts(self):
        """What fires: {name: [labels]}."""
        try:
            body = json.loads(self.http(9090, "/api/v1/alerts")[1])
        except (OSError, ValueError):
            return {}
        found = {}
        for alert in body["data"]["alerts"]:
            if alert["state"] == "firing":
                found.setdefault(alert["labels"]["alertname"], []).append(alert["labels"])
        return found

    def fires(self, name, kept=lambda: True, **labels):
        """Waits until an alert with these labels fires; returns all alerts of that name. kept() keeps it firing."""
        found = self.wait(lambda: kept() and (all_of := self.alerts().get(name, [])) and any(labels.items() <= a.items() for a in all_of) and all_of, fleet.IO_S,
                          lambda: f"{name} {labels}: {json.dumps(self.alerts(), indent=1)}{self.logs()}")
        self.fired.add(name)
        return found

    def shows(self, title, true, part=0):
        """Waits until true(values) holds for the panel's query; returns {labels as text: value}."""
        panel = next(p for p in self.board()["panels"] if p["title"] == title)
        text = self.filled(panel["targets"][part]["expr"])

        def values():
            found = [(" ".join(v for k, v in sorted(r["metric"].items()) if k not in ("__name__", "job", "instance")), float(r["value"][1]))
                     for r in self.query(9090, text)]
            self.assertEqual(len(dict(found)), len(found), f"{title}: lines that look the same: {found}")
            return Values(found)
        self.wait(lambda: (v := values()) and true(v), fleet.IO_S, lambda: f"{title}: {text}: {values()}{self.logs()}")
        self.shown.add((title, part))

    def logs(self):
        return "".join(f"\n== {p.name}\n{p.log()[-3000:]}" for p in self.processes)

    def say(self, number, lost, bad, drops):
        """h2 has no agent: it reports by hand, with its own certificate."""
        ports = [wire.number(1, nic) + wire.number(2, 1) + wire.number(11, bad) + wire.number(13, drops) + wire.number(15, nic % 2)
                 for nic in (4, 5)]
        body = wire.report(at=1000 * number, covers=1000, ports=ports, extra=wire.data(10, wire.number(7, lost)))
        status, _ = self.post("/agent/v1/report", wire.batch([(number, body)], oldest=number), **self.identity("h2"))
        self.assertEqual(status, 200)

    @need(PROMETHEUS)
    def test_every_panel_and_rule(self):
        self.shown, self.fired, self.said = set(), set(), 0
        self.init()
        c = self.controller()
        self.prometheus()
        agents = self.members(0, 1)
        # all is well
        self.shows("Hosts by health", lambda v: v.get("ok", 0) >= 1)
        self.shows("Links down", lambda v: v == {"": 0})
        self.shows("Clocks that are not in sync", lambda v: v == {"": 0})
        self.shows("p99 one-way delay, the slowest path into a host", lambda v: 0 < max(v.values()) < 1)
        self.shows("Dead paths", lambda v: v == {"": 0})
        self.shows("Audit: hosts by their gate", lambda v: v.get("unknown", 0) >= 2)  # not yet audited
        self.shows("Audit: hosts that must not take a job", lambda v: v.get("h0") == 1)
        self.wait(lambda: "FoliotIncident" not in self.alerts(), fleet.IO_S, self.logs)
        # one path loses everything in one direction: it gets another route, to a neighbour that doesn't exist
        def path():
            return next((e["paths"][0] for e in self.ask("h0", "mesh")["edges"]
                         if (e["local_name"], e["peer_host"], e["peer_name"]) == ("nic0", "h1", "nic0")), None)
        # its receiver has heard it: a path that was never heard is in no report
        self.wait(lambda: (p := path()) and p["out"]["state"] == "alive" and p["out"]["sent"] > 50, fleet.IO_S, lambda: str(path()))
        rule = ("to", "10.89.0.12", "ipproto", "udp", "sport", str(path()["port"]), "table", "77")
        self.ip("h0", "route", "add", "10.89.0.12", "via", "10.89.0.99", "dev", "nic0", "table", "77")
        self.ip("h0", "neigh", "add", "10.89.0.99", "lladdr", "02:00:00:00:00:99", "nud", "permanent", "dev", "nic0")
        self.ip("h0", "rule", "add", *rule)
        self.shows("Dead paths", lambda v: v[""] >= 1)
        self.shows("Loss, the worst path into a host", lambda v: v.get("h1", 0) > 0.5)
        self.ip("h0", "rule", "del", *rule)
        self.shows("Dead paths", lambda v: v == {"": 0})
        # a cut cable
        self.ip("c", "link", "set", "p1x0", "down")
        self.shows("Links down", lambda v: v == {"": 1})
        self.shows("Open incidents", lambda v: v.get("h1/nic0 h1 warning") == 1)
        found = self.fires("FoliotIncident", element="h1/nic0", host="h1")
        self.assertEqual({a["severity"] for a in found} - {"page", "warning", "info"}, set())
        self.shows("Open findings", lambda v: v[""] >= 1)
        for _ in range(3):  # a loose one
            for state in ("up", "down"):
                seen = self.metric_of("foliot_port_up", 'host="h1",nic="nic0"')
                self.ip("c", "link", "set", "p1x0", state)
                self.wait(lambda: self.metric_of("foliot_port_up", 'host="h1",nic="nic0"') != seen, fleet.IO_S, self.logs)
        self.shows("Carrier losses", lambda v: v.get("h1 nic0", 0) > 1)
        self.fires("FoliotLinkFlaps", host="h1", nic="nic0", severity="page")
        # a host cut off: its clock is out
        self.ip("c", "link", "set", "p1x1", "down")
        self.shows("Links down", lambda v: v == {"": 2})
        self.shows("Clocks that are not in sync", lambda v: v[""] >= 1)
        self.shows("Hosts by health", lambda v: v.get("bad", 0) >= 1)
        self.fires("FoliotClockOut", host="h1", severity="page")
        self.fires("FoliotClockBound", host="h1")
        self.shows("Hard bound of the clock, worst hosts", lambda v: v["h1"] > v["h0"] > 0)
        self.shows("Processor time of agents", lambda v: v["h0"] > 0)
        self.fires("FoliotAgentCpu", host="h0")
        # trouble that a host reports about itself
        self.join(2)
        end = {"lost": 0, "bad": 0, "drops": 0}

        def worse():
            self.said += 1
            self.say(self.said, **end)
            end.update(lost=end["lost"] + 3, bad=end["bad"] + 50, drops=end["drops"] + 70)
            if self.said % 4 == 0:  # and some of them are lost on the way, or are no reports
                self.said += 5
            self.post("/agent/v1/report", b"\xff\xff", **self.identity("h2"))
            return True
        for title, part, least in (("Errors and drops", 0, 1), ("Errors and drops", 1, 1)):
            self.shows(title, lambda v, least=least: worse() and v.get("h2", 0) > least, part)
        for part in range(3):
            self.shows("Controller: reports", lambda v: worse() and max(v.values()) > 0, part)
        self.fires("FoliotReportsLost", worse, host="h2")
        self.fires("FoliotNicUnwatched", worse, host="h2")
        # traffic, and the controller itself
        self.shows("Received", lambda v: v["h0"] > 0)
        self.shows("Sent", lambda v: v["h0"] > 0)
        self.shows("Controller: store", lambda v: v[""] > 0)
        self.shows("Controller: store", lambda v: v == {"": 0}, 1)
        self.shows("Controller: size of the store", lambda v: v[""] > 4096)
        self.shows("Controller: connections", lambda v: v[""] >= 2)
        self.shows("Controller: connections", lambda v: v == {"": 3}, 1)
        # its agent is gone
        agents[1].stop(signal.SIGKILL)
        self.shows("Seconds since a host was heard", lambda v: v["h1"] > 8 > v["h0"])
        self.fires("FoliotHostSilent", host="h1", severity="warning")
        self.fires("FoliotHostSilentLong", host="h1", severity="page")
        self.assertEqual(c.stop(), 0)
        self.fires("FoliotNothingHeard", severity="page")
        # none was forgotten
        self.assertEqual({(p["title"], i) for p in self.board()["panels"] for i in range(len(p["targets"]))}, self.shown)
        self.assertEqual(set(re.findall(r"alert: (\w+)", self.rules())), self.fired)

    def metric_of(self, name, labels):
        text = self.request("GET", "/metrics")[2].decode()
        found = re.search(rf"^{name}{{{labels}}} (\S+)$", text, re.M)
        return found and float(found[1])


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)

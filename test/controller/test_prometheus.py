#!/usr/bin/env python3
"""What is told to Prometheus, told to the real one: /metrics by promtool and by scraping, rules by promtool, remote write
by its own receiver (and VictoriaMetrics' where that is installed); the shipped rules and Grafana's dashboard name nothing
that doesn't exist. usage: test_prometheus.py CONTROLLER AGENT FOLIOT"""
import http.client
import json
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

    # ---- what promtool says ----

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
        c.wait_log("Samples wait and are sent again", fleet.IO_S)  # nobody is there yet
        server = self.prometheus()

        def waited(text, true=lambda values: True, seconds=fleet.IO_S):
            return self.wait(lambda: (r := self.query(9090, text)) and true(r) and r, seconds,
                             lambda: f"{text}: {self.query(9090, text)}\n{server.log()}{c.log()}")
        # remote write, from the very first report on, though nobody listened then
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
        # every series that we ship a picture or a rule of is there
        names = {name for name in self.names()}
        listed = json.loads(self.http(9090, "/api/v1/label/__name__/values")[1])["data"]
        self.assertLessEqual(names, set(listed), sorted(names - set(listed)))
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

    # ---- what is shipped ----

    def expressions(self):
        with open(os.path.join(TOP, "packaging", "grafana-dashboard.json"), encoding="utf-8") as file:
            board = json.load(file)
        found = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
        found += [re.search(r"foliot_\w+", v["query"])[0] for v in board["templating"]["list"] if v["type"] == "query"]
        with open(os.path.join(TOP, "packaging", "prometheus-rules.yaml"), encoding="utf-8") as file:
            found += [m[1].replace("''", "'") for m in re.finditer(r"expr: '?(.*?)'?$", file.read(), re.M)]
        return [e.replace("$host", ".*").replace("$__rate_interval", "1m") for e in found]

    def names(self):
        return {name for text in self.expressions() for name in NAME.findall(re.sub(r"\{[^}]*\}", "", text))}

    def test_what_is_shipped_exists(self):
        self.begin("remote_write: {url: 'http://127.0.0.1:1/', paths: yes}\n")
        there = set(NAME.findall(self.http(7639, "/metrics")[1].decode() + self.agent_metrics()))
        with open(os.path.join(TOP, "src", "service", "controller", "remote.c"), encoding="utf-8") as file:
            there |= set(re.findall(r'"(foliot_[a-z0-9_]+)"', file.read()))
        self.assertGreater(len(self.names()), 10)
        self.assertLessEqual(self.names(), there, sorted(self.names() - there))
        with open(os.path.join(TOP, "packaging", "prometheus-rules.yaml"), encoding="utf-8") as file:
            self.assertEqual(file.read(), self.rules(), "packaging/prometheus-rules.yaml: foliot alerts export --prometheus")
        # who asks for OpenMetrics gets it, others what every Prometheus and promtool reads
        kind, text = self.http(7639, "/metrics", "application/openmetrics-text; version=1.0.0")
        self.assertTrue(kind.startswith("application/openmetrics-text"))
        self.check_metrics(text)
        self.assertTrue(self.http(7639, "/metrics")[0].startswith("text/plain; version=0.0.4"))


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)

#!/usr/bin/env python3
"""load.py: the load that one controller carries: a fleet of agents (bench/fleet_load.c: real protocol, real TLS) and a real
controller on this machine, while the API is called. The load's own processor time does not count for the controller."""
import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lab"))
from world import BUILD, Missing, QUICK, Rows, free_port, quantile  # noqa: E402

CONTROLLER = os.path.join(BUILD, "src", "app", "foliot-controller")
LOAD = os.path.join(BUILD, "bench", "fleet_load")
FILL = os.path.join(BUILD, "bench", "history_fill")
HOSTS, NICS, PEERS, PATHS = (200 if QUICK else 2000), 8, 20, 4
REPORT_S = 10
WARM, SECONDS = (15, 20) if QUICK else (20, 45)


class Fleet:
    """A controller in its own folder, and the load; both end with the block."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="foliot-load-bench-")
        config = os.path.join(self.folder, "controller.yaml")
        with open(config, "w", encoding="utf-8") as file:
            self.agents, self.api = free_port(), free_port()  # the same after each restart
            file.write(f"data_dir: {self.folder}/data\nlisten: 127.0.0.1:{self.agents}\napi_listen: 127.0.0.1:{self.api}\n")
        text = subprocess.run([CONTROLLER, "--config", config, "init", "--uses", "100000"], check=True, capture_output=True,
                              text=True).stdout
        self.token, self.admin = re.search(r"flj_\S+", text)[0], re.search(r"fla_\S+", text)[0]
        self.log = open(os.path.join(self.folder, "log"), "w+", encoding="utf-8")
        self.config = config
        self.load = None
        self.start()
        return self

    def start(self, look_s=0.1):
        ports = os.path.join(self.folder, "data", "ports")
        if os.path.exists(ports):
            os.unlink(ports)
        self.controller = subprocess.Popen([CONTROLLER, "--config", self.config], stdout=self.log, stderr=self.log)
        for _ in range(int(10 / look_s)):
            time.sleep(look_s)
            if os.path.exists(ports):
                return
        raise Missing("the controller does not start")

    def stop(self, how=signal.SIGTERM):
        self.controller.send_signal(how)
        self.controller.wait()

    def begin(self, hosts, report_ms=10000, beat_ms=2000, folder=None, join_s=180):
        self.load = subprocess.Popen([LOAD, f"127.0.0.1:{self.agents}", self.token, str(hosts), str(NICS), str(PEERS),
                                      str(PATHS), str(report_ms), str(beat_ms), "100000", *([folder] if folder else [])],
                                     stdout=subprocess.PIPE, text=True)
        self.line = {}

        def read():
            for line in self.load.stdout:
                words = line.split()
                self.line = {"at": float(words[0]), **{words[i]: float(words[i + 1]) for i in range(1, len(words) - 1, 2)}}
        threading.Thread(target=read, daemon=True).start()
        end = time.monotonic() + join_s
        while self.line.get("reporting", 0) < hosts:
            if time.monotonic() > end or self.load.poll() is not None:
                raise Missing(f"the load did not come up: {self.line}")
            time.sleep(0.2)

    def __exit__(self, *_):
        for process in (self.load, self.controller):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        for folder in os.listdir("/tmp"):
            if folder.startswith("foliot-load-") and not folder.startswith("foliot-load-bench"):
                shutil.rmtree(os.path.join("/tmp", folder), ignore_errors=True)

    def cpu_s(self, process=None):
        """Of the controller, or of another process."""
        with open(f"/proc/{(process or self.controller).pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self):
        with open(f"/proc/{self.controller.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) / 1024

    def get(self, path, keep=None):
        connection = keep or http.client.HTTPConnection("127.0.0.1", self.api, timeout=30)
        begin = time.perf_counter()
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.admin}"})
        answer = connection.getresponse()
        body = answer.read()
        took = (time.perf_counter() - begin) * 1000
        if answer.status != 200:
            raise Missing(f"{path}: {answer.status} {body[:100]}")
        return took, body


def ask(fleet, path, count, pause):
    keep = http.client.HTTPConnection("127.0.0.1", fleet.api, timeout=30)
    times = []
    for i in range(count):
        times.append(fleet.get(path(i), keep)[0])
        time.sleep(pause)
    return times


def carried(hosts, freshness, reports):
    """How many of so many hosts the controller carries: it hears them in time, and takes their reports as fast as they come."""
    return min(freshness["live"], hosts if reports >= 0.98 * hosts / REPORT_S else int(reports * REPORT_S))


def carries(rows):
    """hosts that report at default rates, and their cost"""
    with Fleet() as fleet:
        fleet.begin(HOSTS)
        time.sleep(WARM)
        begin, cpu, load = time.monotonic(), fleet.cpu_s(), dict(fleet.line)
        paths = json.loads(fleet.get("/api/v1/paths?limit=50")[1])["items"]
        state, series, acks = [], [], []
        while time.monotonic() - begin < SECONDS:
            state += ask(fleet, lambda i: f"/api/v1/hosts/load{(37 * i) % HOSTS}", 10, 0.02)
            series += ask(fleet, lambda i: "/api/v1/series?metric=owd_ns_p50&from={from}&to={to}&port={port}".format(
                **paths[i % len(paths)]), 3, 0.02)
            acks.append(fleet.line.get("ack_ms_p99", 0))
            time.sleep(0.5)
        passed, cpu = time.monotonic() - begin, fleet.cpu_s() - cpu
        now = dict(fleet.line)
        status = json.loads(fleet.get("/api/v1/status")[1])
        matrix = [fleet.get("/api/v1/latency") for _ in range(3)]
        command = f"fleet_load ADDRESS TOKEN {HOSTS} {NICS} {PEERS} {PATHS} 10000 2000"
        reports = (now["acknowledged"] - load["acknowledged"]) / passed
        rows.add("controller.hosts", carried(HOSTS, status["freshness"], reports), "hosts × 8 NICs", 2000, 12500, "higher", command=command,
                 note=f"{reports:.0f} reports/s acknowledged, wanted {HOSTS / 10:.0f}; {status['freshness']}; "
                      f"errors {now['errors'] - load['errors']:.0f}")
        rows.add("controller.cpu", cpu / passed * 100, "% of a core", 60, None, command=command)
        rows.add("controller.memory", fleet.memory_mib(), "MiB", 1024, None, command=command)
        rows.add("controller.report_bytes", (now["sent_bytes"] - load["sent_bytes"]) / passed / HOSTS, "bytes/s and host", 4096,
                 1024, command=command, note="bodies; delays made up of random ones compress worse than real ones")
        rows.add("controller.ack_ms_p99", quantile(acks, 0.99), "ms", None, None, command=command)
        rows.add("controller.api_state_p99", quantile(state, 0.99), "ms", 20, 5, runs=len(state),
                 command="GET /api/v1/hosts/NAME beside that load")
        rows.add("controller.api_recent_series_p99", quantile(series, 0.99), "ms", 100, 20, runs=len(series),
                 command="GET /api/v1/series, the last hour of one path, beside that load",
                 note="of a store that is minutes old: the row of 24 h is controller.api_day_p99")
        rows.add("controller.matrix_ms", min(m[0] for m in matrix), "ms", None, None, runs=3,
                 command="GET /api/v1/latency", note=f"{len(matrix[0][1]) / 1e6:.1f} MB, {HOSTS * NICS} NICs")
        fabric(rows, fleet)
        a_day(rows, fleet)
        shrinking(rows, fleet)


def fabric(rows, fleet):
    """The picture of leaves, spines and trunks: computed again once each report interval, otherwise the last one."""
    times, begin = [], time.monotonic()
    while time.monotonic() - begin < (8 if QUICK else 32):
        took, body = fleet.get("/api/v1/fabric")
        times.append(took)
        time.sleep(0.25)
    picture = json.loads(body)
    whole = [fleet.get("/api/v1/fabric?limit=65536") for _ in range(3)]
    trunks = json.loads(whole[0][1])["trunks"]
    good = sum(t["state"] == "good" for t in trunks)
    rows.add("controller.api_fabric_p99", quantile(times, 0.99), "ms", 20, 5, runs=len(times), command="GET /api/v1/fabric beside that load",
             note=f"{picture['ways_known']} ways, {len(picture['switches'])} switches, {len(trunks)} trunks, {good} of them good; the median "
                  f"{quantile(times, 0.5):.1f} ms; with all trunks ({len(whole[0][1]) / 1e6:.1f} MB) {min(w[0] for w in whole):.0f} ms")


def shrinking(rows, fleet):
    """The API while retention deletes old data and gives space back to the disk: events of a year ago, 40 MB of them."""
    fleet.stop()
    with sqlite3.connect(os.path.join(fleet.folder, "data", "store.db")) as base:
        at = time.time_ns() - 400 * 86400 * 10**9
        base.executemany("INSERT INTO event(at_ns, fleet_ns, host, kind, word, body) VALUES(?, 0, 0, 'controller', 'trial', ?)",
                         [(at, '{"x":"' + "x" * 50000 + '"}')] * 800)
    base.close()
    fleet.start()

    def size():
        return json.loads(fleet.get("/api/v1/status")[1])["store"]["file_bytes"]
    end, first = time.monotonic() + 60, size()
    while size() >= first and time.monotonic() < end:  # events are deleted first
        time.sleep(0.2)
    times, begin, first = [], time.monotonic(), size()
    while time.monotonic() - begin < (8 if QUICK else 30):
        times += ask(fleet, lambda i: f"/api/v1/hosts/load{(37 * i) % HOSTS}", 10, 0.02)
    last = size()
    if last >= first:
        raise Missing(f"the store doesn't shrink: {first} to {last} bytes")
    rows.add("controller.api_state_shrink_p99", quantile(times, 0.99), "ms", 20, 5, runs=len(times),
             command="GET /api/v1/hosts/NAME beside that load, while the store gives room back to the disk",
             note=f"{first / 1e6:.1f} MB to {last / 1e6:.1f} MB meanwhile")


def large(rows):
    """as many hosts as one controller is meant for, at default rates"""
    hosts = 1250 if QUICK else 12500
    with Fleet() as fleet:
        begin = time.monotonic()
        fleet.begin(hosts, join_s=1200)
        joined = time.monotonic() - begin
        time.sleep(2 * REPORT_S)
        begin, cpu, acknowledged, errors, live = time.monotonic(), fleet.cpu_s(), fleet.line["acknowledged"], fleet.line["errors"], []
        load_cpu = fleet.cpu_s(fleet.load)
        while time.monotonic() - begin < SECONDS:
            live.append(json.loads(fleet.get("/api/v1/status")[1])["freshness"])
            time.sleep(2)
        passed = time.monotonic() - begin
        reports = (fleet.line["acknowledged"] - acknowledged) / passed
        state = ask(fleet, lambda i: f"/api/v1/hosts/load{(37 * i) % hosts}", 200, 0.02)
        command = f"load.py large: fleet_load ADDRESS TOKEN {hosts} {NICS} {PEERS} {PATHS} 10000 2000"
        worst = min(live, key=lambda f: f["live"])
        rows.add("controller.large_hosts", carried(hosts, worst, reports), "hosts × 8 NICs", None, 12500, "higher", command=command,
                 note=f"{reports:.0f} reports/s acknowledged, wanted {hosts / REPORT_S:.0f}; {worst} at the worst look of {len(live)}; "
                      f"errors {fleet.line['errors'] - errors:.0f}; joined in {joined:.0f} s; the load itself took "
                      f"{(fleet.cpu_s(fleet.load) - load_cpu) / passed * 100:.0f} % of a core")
        rows.add("controller.large_cpu", (fleet.cpu_s() - cpu) / passed * 100, "% of a core", None, None, command=command)
        rows.add("controller.large_memory", fleet.memory_mib(), "MiB", None, None, command=command)
        rows.add("controller.large_api_state_p99", quantile(state, 0.99), "ms", None, 20, runs=len(state), command=command)


def a_day(rows, fleet):
    """The same controller with a day of history of ten hosts, because one series reads only one host's history."""
    hosts = [f"load{i}" for i in range(10)]
    nics = {name: json.loads(fleet.get(f"/api/v1/nics?host={name}")[1])["items"][0]["nic"] for name in hosts}
    index = {name: json.loads(fleet.get(f"/api/v1/hosts/{name}")[1])["index"] for name in hosts}
    paths = [p for name in hosts for p in json.loads(fleet.get(f"/api/v1/paths?host={name}&limit=20")[1])["items"]]
    fleet.stop()
    chunks = bytes_ = samples = 0
    for name in hosts:
        words = subprocess.run([FILL, os.path.join(fleet.folder, "data", "store.db"), str(index[name] + 1), str(nics[name]),
                                str(HOSTS * NICS), str(NICS), str(PEERS), str(PATHS), "24", str(int(time.time()) - 600)],
                               check=True, capture_output=True, text=True).stdout.split()
        chunks, bytes_, samples = chunks + int(words[1]), bytes_ + int(words[3]), samples + int(words[5])
    fleet.start()
    time.sleep(15)
    times, points = [], 0
    since = (int(time.time()) - 86400) * 10**9
    for i in range(100):
        path = paths[(7 * i) % len(paths)]
        took, body = fleet.get("/api/v1/series?metric=owd_ns_p50&from={from}&to={to}&port={port}".format(**path) +
                               f"&since_utc_ns={since}&step_s=10")
        times.append(took)
        points = sum(v is not None for v in json.loads(body)["values"])
        time.sleep(0.05)
    rows.add("controller.api_day_p99", quantile(times, 0.99), "ms", 100, 20, runs=len(times),
             command="GET /api/v1/series, 24 h of one path in steps of 10 s, beside that load", note=f"{points} values")
    rows.add("store.bytes_per_sample", bytes_ / samples, "bytes", None, None, runs=chunks, command="history_fill",
             note=f"{chunks} chunks; delays made up of random ones, 60 ns wide medians, 900 ns wide p99s")
    rows.add("store.disk_per_nic_day", bytes_ / len(hosts) / NICS / 1e6, "MB", 2, 0.5, command="history_fill",
             note=f"{PEERS * PATHS} paths a NIC, 10 s values of a day; coarser tiers add 1/30")


def sealing(rows):
    """the API in the minute after a ten-minute boundary, when each host's last ten minutes become a chunk"""
    with Fleet() as fleet:
        fleet.begin(HOSTS)
        time.sleep(600 - time.time() % 600 + 5)
        times, begin = [], time.monotonic()
        while time.monotonic() - begin < 60:
            times += ask(fleet, lambda i: f"/api/v1/hosts/load{(37 * i) % HOSTS}", 10, 0.02)
        sealed = re.search(r"^foliot_chunks_sealed_total (\S+)", fleet.get("/metrics")[1].decode(), re.M)[1]
    rows.add("controller.api_state_sealing_p99", quantile(times, 0.99), "ms", 20, 5, runs=len(times),
             command="GET /api/v1/hosts/NAME beside that load, from 5 s after a full ten minutes", note=f"{sealed} chunks sealed")


def comes_back(rows):
    """killed under load: until it answers again, and until all hosts are live"""
    hosts = HOSTS // 4
    back, live = [], []
    with Fleet() as fleet:
        fleet.begin(hosts)
        time.sleep(12)
        for _ in range(3 if QUICK else 5):
            fleet.stop(signal.SIGKILL)
            begin = time.monotonic()
            fleet.start()
            fleet.get("/api/v1/status")
            back.append(time.monotonic() - begin)
            while json.loads(fleet.get("/api/v1/status")[1])["freshness"]["live"] < hosts and time.monotonic() - begin < 30:
                time.sleep(0.1)
            live.append(time.monotonic() - begin)
            time.sleep(5)
        gaps = json.loads(fleet.get("/api/v1/events?word=history-gap")[1])["items"]
    rows.add("controller.back_s", max(back), "s", 2, None, runs=len(back), command=f"kill -9 under the load of {hosts} hosts")
    rows.add("controller.live_s", max(live), "s", None, None, runs=len(live), command="the same, until all hosts are live again",
             note=f"gaps in the history: {len(gaps)}")


AUDIT_TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INSPECT = os.path.join(BUILD, "src", "app", "foliot-inspect")


def write_sheet(folder, large=True):
    """The largest machine of the tests, or the usual one, as parts: each host has its own machine id and GUIDs, each fiftieth
    another kernel."""
    sys.path.insert(0, os.path.join(AUDIT_TOP, "test", "audit"))
    import machine  # pylint: disable=import-outside-toplevel
    root = os.path.join(folder, "root")
    machine.build(root, machine.files("roce", 1, large=large))
    sheet = json.loads(subprocess.run([INSPECT, "--root", root], check=True, capture_output=True, text=True).stdout)
    with open(os.path.join(AUDIT_TOP, "src", "core", "audit", "facts.h"), encoding="utf-8") as file:
        keep = {name: kind.lower() for kind, name in re.findall(r'F\(\w+, \w+, (OWN|NOW), \w+, "([^"]+)"', file.read())}
    parts = {}
    for f in sheet["facts"]:
        part = keep.get(f["fact"], f["section"])
        value = "@HOST@." + f.get("value", "")[:8] if f["fact"] in ("os.machine_id", "rdma.guid") else f.get("value", "")
        line = "\t".join((f["fact"], f.get("state", "value"), f["subject"], value, f["source"])) + "\n"
        parts[part] = parts.get(part, "") + line
    parts["os.odd"] = parts["os"].replace("-generic", "-other", 1)
    for part, text in parts.items():
        with open(os.path.join(folder, part), "w", encoding="utf-8") as file:
            file.write(text)
    return len(sheet["facts"])


def audit_run(fleet):
    """One audit of all hosts, to its end: its seconds, and its name."""
    keep = http.client.HTTPConnection("127.0.0.1", fleet.api, timeout=30)
    begin = time.monotonic()
    keep.request("POST", "/api/v1/audit/runs", "{}", {"Authorization": f"Bearer {fleet.admin}", "Content-Type": "application/json"})
    answer = keep.getresponse()
    body = json.loads(answer.read())
    if answer.status != 200:
        raise Missing(f"no audit: {body}")
    path, worst = f"/api/v1/audit/runs/{body['run']}", []
    while True:
        worst.append(fleet.get("/api/v1/status", keep)[0])  # the wait of other callers meanwhile
        state = json.loads(fleet.get(path, keep)[1])
        if state["state"] not in ("reading", "judging"):
            return time.monotonic() - begin, state, worst
        time.sleep(0.05)


def audit(rows):
    """the cost of one audit of the fleet for its controller"""
    with Fleet() as fleet:
        sheet = os.path.join(fleet.folder, "sheet")
        os.makedirs(sheet)
        facts = write_sheet(sheet)
        os.environ["FOLIOT_LOAD_SHEET"] = sheet
        fleet.begin(HOSTS)
        time.sleep(WARM)

        def store_mb():
            """Of the pages in use. SQLite's log beside them is used again after each checkpoint."""
            with contextlib.closing(sqlite3.connect(f"file:{fleet.folder}/data/store.db?mode=ro", uri=True)) as store:
                pages, free, size = (store.execute("PRAGMA " + what).fetchone()[0] for what in ("page_count", "freelist_count", "page_size"))
            return (pages - free) * size / 1e6

        size, cpu, begin = store_mb(), fleet.cpu_s(), time.monotonic()
        time.sleep(30 if not QUICK else 10)  # three reports of each host
        idle = (fleet.cpu_s() - cpu) / (time.monotonic() - begin)
        history = (store_mb() - size) / (time.monotonic() - begin)
        size, cpu, begin = store_mb(), fleet.cpu_s(), time.monotonic()
        took, state, beside = audit_run(fleet)
        time.sleep(max(0, (60 if not QUICK else 10) - (time.monotonic() - begin)))
        passed = time.monotonic() - begin
        more = (fleet.cpu_s() - cpu) / passed - idle
        history *= passed
        grown = store_mb() - size - history
        pages = []
        run = f"/api/v1/audit/runs/{state['run']}"
        for path in (run, f"{run}/results?limit=200", f"{run}/results?limit=200&cursor=1000", f"{run}/results?limit=200&check=cfg.sw.kernel",
                     f"{run}/nodes?limit=200", f"{run}/results?host=load{HOSTS - 1}"):
            times = ask(fleet, lambda i, path=path: path, 30, 0.02)
            print(f"  {path[len(run):] or '(run)'}: p50 {quantile(times, 0.5):.1f} p99 {quantile(times, 0.99):.1f} ms", file=sys.stderr)
            pages += times
    command = f"load.py audit: {HOSTS} hosts, a sheet of {facts} facts each"
    note = f"{state['counts']}, {took:.1f} s; hosts are read and judged, no matrix and no tests are in this run; beside it /api/v1/status took at most {max(beside):.0f} ms"
    rows.add("audit.controller.cpu_pct", 100 * more, "% of a core", 20, 5, command=command, note=note)
    rows.add("audit.controller.disk_mb", grown, "MB", 20, 5, command=command, note=f"the store grew by that and by {history:.0f} MB, by the half minute before: history; no matrix and no tests are in the run")
    rows.add("audit.controller.api_p99_ms", quantile(pages, 0.99), "ms", 50, 10, runs=len(pages), command=command,
             note="the run, pages of 200 results and hosts; no matrix and no tests are in the run")


def draw_changes(folder, hosts, count, seed=19):
    """Changes of some hosts' sheets, as files PART.HOST: changed values, removed devices, added devices.

    Returns the expected differences: (host, fact, subject, was, is)."""
    drawn, told, parts = random.Random(seed), set(), {}
    identity = {"os.machine_id", "rdma.guid"}
    for part in sorted(os.listdir(folder)):
        if "." not in part and part not in ("now", "root"):
            with open(os.path.join(folder, part), encoding="utf-8") as file:
                parts[part] = [line.split("\t") for line in file.read().splitlines()]
    values = [(part, i) for part, lines in parts.items() for i, line in enumerate(lines)
              if line[1] == "value" and line[0] not in identity and (re.fullmatch(r"\d+", line[3]) or line[0].endswith(("driver", "firmware", "kernel", "bios")))]
    devices = [(part, i) for part, lines in parts.items() for i, line in enumerate(lines) if line[0] in ("module", "mount", "net") and line[1] == "value"]
    for number, host in enumerate(drawn.sample(range(hosts), count)):
        name = f"load{host}"
        part, at = drawn.choice(devices if number % 4 == 3 else values)
        lines = [list(line) for line in parts[part]]
        fact, _, subject, was, source = lines[at]
        if number % 8 == 7:  # an added device
            lines.append([fact, "value", "other7", "other7", source])
            told.add((name, fact, "other7", None, "other7"))
        elif number % 4 == 3:  # a removed device, with all its facts
            lines = [line for line in lines if line[2] != subject or line[0].split(".")[0] != fact]
            told.add((name, fact, subject, was, None))
        else:
            now = str(int(was) + 1) if was.isdigit() else was + "-other"
            lines[at][3] = now
            told.add((name, fact, subject, was, now))
        with open(os.path.join(folder, f"{part}.{name}"), "w", encoding="utf-8") as file:
            file.write("".join("\t".join(line) + "\n" for line in lines))
    return told


def differences(rows):
    """40 changes between two audits of 200 hosts: which does the comparison report?"""
    hosts, count = 200, 40
    with Fleet() as fleet:
        sheet, kept = os.path.join(fleet.folder, "sheet"), os.path.join(fleet.folder, "kept")
        os.makedirs(sheet)
        os.makedirs(kept)
        write_sheet(sheet)
        os.environ["FOLIOT_LOAD_SHEET"] = sheet
        os.remove(os.path.join(sheet, "os.odd"))
        fleet.begin(hosts, report_ms=2000, folder=kept)
        time.sleep(5)
        _, before, _ = audit_run(fleet)
        fleet.load.send_signal(signal.SIGTERM)
        fleet.load.wait()
        told = draw_changes(sheet, hosts, count)
        fleet.begin(hosts, report_ms=2000, folder=kept)
        time.sleep(5)
        _, after, _ = audit_run(fleet)
        answers = [fleet.get(f"/api/v1/audit/runs/{after['run']}/diff?with={before['run']}") for _ in range(9)]
        diff = json.loads(answers[0][1])
    found = [(f["host"], f["fact"], f["subject"], f["was"], f["is"]) for f in diff["facts"]]
    for line in sorted(told ^ set(found), key=str)[:20]:
        print(f"  {'not told' if line in told else 'told too'}: {line}", file=sys.stderr)
    command = f"load.py differences: {hosts} hosts"
    if diff["hosts"] != hosts or diff["cut"] or before["not_read"] or after["not_read"]:
        raise Missing(f"{diff['hosts']} hosts compared, cut: {diff['cut']}")
    rows.add("audit.diff.lines", len(told & set(found)), "", count, None, "higher", count, command=command, note="sheets made up; each as one line, with both values")
    rows.add("audit.diff.other", len(found) - len(told & set(found)), "", 0, runs=count, command=command)
    took = sorted(ms for ms, _ in answers)
    rows.add("audit.diff.ms", took[len(took) // 2], "ms", None, runs=len(took), command=command, note=f"from {took[0]:.0f} to {took[-1]:.0f}")


def main():
    rows = Rows("controller" if len(sys.argv) < 2 else "audit-controller" if "audit" in sys.argv[1:] else f"controller-{sys.argv[1]}")
    for program in (CONTROLLER, LOAD):
        if not os.path.exists(program):
            print(f"{program} is not built: skipped")
            return 77
    measures = {"carries": ([("controller.hosts", "hosts", 2000, 12500, "higher"), ("controller.cpu", "% of a core", 60, None)], carries),
                "large": ([("controller.large_hosts", "hosts × 8 NICs", None, 12500, "higher")], large),
                "comes_back": ([("controller.back_s", "s", 2, None)], comes_back),
                "audit": ([("audit.controller.cpu_pct", "% of a core", 20, 5), ("audit.controller.disk_mb", "MB", 20, 5),
                           ("audit.controller.api_p99_ms", "ms", 50, 10)], audit),
                "differences": ([("audit.diff.lines", "", 40, None, "higher"), ("audit.diff.other", "", 0, None)], differences),
                "sealing": ([("controller.api_state_sealing_p99", "ms", 20, 5)], sealing)}
    for name in sys.argv[1:] or ("carries", "comes_back"):  # one alone is for people who change this script
        rows.measure(*measures[name])
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main())

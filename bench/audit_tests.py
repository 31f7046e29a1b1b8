#!/usr/bin/env python3
"""audit_tests.py BUILD [--named N] [--busy N] [--preempt N] [--whole]: rows audit.lab.* of an audit's tests of bandwidth and
collectives.

They run in the default lab: real packets between network namespaces, which share this machine's processors. If the processors
are busy, the tests measure them and not the links. --named plants a fault N times of each kind. Each takes a minute or two, so
it is for make soak."""
import argparse
import contextlib
import glob
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lab"))
from world import free_port, need_root  # noqa: E402

NAME = f"audittests-{os.getpid()}"
parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("--named", type=int, default=0)
parser.add_argument("--kinds", default="nic,trunk,host")
parser.add_argument("--busy", type=int, default=0)
parser.add_argument("--preempt", type=int, default=0)
parser.add_argument("--whole", action="store_true")
parser.add_argument("--mbps", type=int, default=None, help="of each NIC and trunk; 200, as in the default lab; with --named LINKS")
parser.add_argument("--seed", type=int, default=1)
arguments = parser.parse_args()
build = os.path.abspath(arguments.build)
foliot = os.path.join(build, "src", "app", "foliot")
rows = []


def row(name, value, unit, must, aim=None, better="lower", runs=1, note=""):
    rows.append({"id": f"audit.lab.{name}", "value": value, "unit": unit, "must": must, "aim": aim, "better": better, "runs": runs, "spread": None,
                 "command": "bench/audit_tests.py " + " ".join([os.path.basename(build), *sys.argv[2:]]), "note": note})
    print(f"lab.{name:16} {value} {unit}  must {must}  {note}", flush=True)


# Mbit/s at which tests measure the links and not this machine's processors, also where these are busy (docs/bench-log.md). Trains of
# packets take too long on slower ones.
LINKS = {"nic": 20, "trunk": 40, "host": 20}


class Lab:
    def __init__(self, mbps=200):
        self.mbps = arguments.mbps or mbps

    def command(self, *words):
        return subprocess.run([foliot, "lab", "--name", NAME, *words], capture_output=True, text=True, check=True)

    def __enter__(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
            file.write("name: tests\nwhy: what carries less in tests\nworld: lab\nduration: 30s\n"
                       f"fabric: {{hosts: 8, nics_per_host: 2, leaves: 2, spines: 4, link_mbps: {self.mbps}}}\n")
            file.flush()
            self.command("up", file.name, f"--controller={free_port()}")
        self.folder = f"/run/foliot-lab/{NAME}/"
        with open(self.folder + "dashboard", encoding="utf-8") as address, open(self.folder + "token", encoding="utf-8") as token:
            self.address, self.token = address.read().strip(), token.read().strip()
        self.hosts = sorted(os.path.basename(path) for path in glob.glob(self.folder + "host*"))
        try:
            self.until(lambda: sum(h["freshness"] == "live" and (h["clock"] or {}).get("status") == "SYNCED" for h in self.ask("hosts")["items"]) == len(self.hosts))
        except BaseException:
            self.command("down")
            raise
        return self

    def __exit__(self, *_):
        self.command("down")

    def until(self, true, seconds=90, pause=0.2, what="the lab is not ready"):
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end:
                raise TimeoutError(what)
            time.sleep(pause)

    def ask(self, path, body=None):
        request = urllib.request.Request(self.address + "api/v1/" + path, headers={"Authorization": "Bearer " + self.token, "Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return json.load(answer)

    def audit(self, meanwhile=lambda run: None, **wish):
        """The run at its end, its results without the passes, and its duration."""
        begin = time.monotonic()
        run = self.ask("audit/runs", wish)["run"]
        body = {}

        def over():
            body.clear()
            body.update(self.ask("audit/runs/" + run))
            if body["state"] in ("done", "stopped"):
                return True
            meanwhile(body)
            return False
        self.until(over, 1800, 0.05, "an audit of eight hosts did not end within half an hour")
        took = time.monotonic() - begin
        results = [r for status in ("fail", "warn", "unknown") for r in self.ask(f"audit/runs/{run}/results?limit=1000&status={status}")["items"]]
        return body, results, took

    def agent(self, host):
        with open(f"{self.folder}{host}/agent.pid", encoding="utf-8") as file:
            return int(file.read())

    def test_of(self, host):
        """The process of a test that runs on the host now; None: there is none."""
        with contextlib.suppress(OSError):
            with open(f"/proc/{self.agent(host)}/task/{self.agent(host)}/children", encoding="utf-8") as file:
                for child in file.read().split():
                    with contextlib.suppress(OSError), open(f"/proc/{child}/cmdline", encoding="utf-8") as line:
                        if line.read().split("\0")[1:3] == ["perf", "--agent"]:
                            return int(child)
        return None


class Job:
    """A job of two ranks on one host: it has job pages there, and almost no traffic."""

    def __init__(self, lab, host):
        number = host.removeprefix("host")
        self.pages = f"{lab.folder}{host}/jobs/job-*"
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen([foliot, "perf", "--lab", NAME, "--hosts", f"{number},{number}", "--ranks", "2", "-b", "64K", "--duration", "900", "-c", "0", "--wait", "1000"],
                                        env={**os.environ, "FOLIOT_RUNTIME_DIR": f"{lab.folder}{host}"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def began(self):
        return bool(glob.glob(self.pages))

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Progress:
    """Ends a row after several audits without a result: a test that is refused each time would never fill the row."""
    IN_VAIN_MOST = 5

    def __init__(self):
        self.count = self.in_vain = 0

    def look(self, count, results):
        self.in_vain = 0 if count > self.count else self.in_vain + 1
        self.count = count
        if self.in_vain == self.IN_VAIN_MOST:
            raise TimeoutError(f"{self.in_vain} audits brought nothing: { {(r['reason'], r.get('note')) for r in results if r['check'] == 'be.bw.pair'} }")


def busy(lab, wanted):
    """Steps of tests that were due while a job had a page on the host; and those that began nevertheless."""
    tries = started = 0
    progress = Progress()
    while tries < wanted:
        victims = lab.hosts[:-2]
        jobs = [Job(lab, host) for host in victims]
        try:
            lab.until(lambda: all(job.began() for job in jobs))
            time.sleep(0.3)
            seen = set()

            def look(_, seen=seen):
                seen.update(pid for pid in map(lab.test_of, victims) if pid)
            _, results, _ = lab.audit(look, bandwidth=True)
            started += len(seen)
            tries += 4 * sum(r["check"] == "be.bw.pair" and r["reason"] == "busy" for r in results)
            progress.look(tries, results)
        finally:
            for job in jobs:
                job.end()
    row("busy_started", started, "", 0, runs=tries, note="steps of pairs on hosts with a job; programs are looked for twenty times a second")


def preempt(lab, wanted, draw):
    """A job begins at any time of a test. Measures from the job's first page until the test's program has ended."""
    waits = []

    def one(host):
        end = time.monotonic() + 30
        while lab.test_of(host) is None and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(draw.uniform(0, 0.8))
        test = lab.test_of(host)
        job = Job(lab, host)
        try:
            lab.until(lambda: job.began() or job.process.poll() is not None, 60, 0.002, "the job has no page")
            began = time.monotonic()
            if test is not None and lab.test_of(host) == test:  # the job's page came while the test ran
                try:
                    lab.until(lambda: not os.path.exists(f"/proc/{test}") or lab.test_of(host) != test, 60, 0.002, "the test did not end")
                finally:
                    waits.append(time.monotonic() - began)  # also if the test never ended
        finally:
            job.end()
    progress = Progress()
    while len(waits) < wanted:
        threads = []

        def begin(body, threads=threads):
            if body["state"] == "testing" and not threads:
                threads += [threading.Thread(target=one, args=(host,)) for host in lab.hosts[::2]]
                for thread in threads:
                    thread.start()
        _, results, _ = lab.audit(begin, bandwidth=True)
        for thread in threads:
            thread.join()
        progress.look(len(waits), results)
    waits.sort()
    row("preempt_s", waits[min(len(waits) - 1, int(0.99 * len(waits)))], "s", 1, 0.3, runs=len(waits),
        note=f"median {waits[len(waits) // 2]:.3f} s; from the page of the job to the end of the test's program")


def whole(lab):
    body, results, took = lab.audit(matrix=True, nccl=True)
    tests = body["tests"] or {}
    measured = sum(r["outcome"] == "done" for r in tests.get("rows", []))
    row("run_s", took if body["state"] == "done" else None, "s", 120, 60, note=f"all stages; {measured} of 8 rows of collectives, {tests.get('rounds')} rounds of the search")
    row("nccl_s", tests["rows_ms"] / 1000 if measured == 8 else None, "s", 60, note="of it the eight rows")
    print([(r["host"], r["check"], r["status"], r.get("note")) for r in results if r["check"].startswith(("be.bw", "nccl."))], file=sys.stderr)


class Starved:
    """A host whose tests get a fifth of a processor: they are stopped for 40 ms of each 50 ms."""

    def __init__(self, lab, host):
        self.over = False
        self.thread = threading.Thread(target=self.run, args=(lab, host))
        self.thread.start()

    def run(self, lab, host):
        while not self.over:
            test = lab.test_of(host)
            if test is None:
                time.sleep(0.02)
                continue
            with contextlib.suppress(ProcessLookupError):
                os.kill(test, signal.SIGSTOP)
                time.sleep(0.04)
                os.kill(test, signal.SIGCONT)
                time.sleep(0.01)

    def end(self):
        self.over = True
        self.thread.join()


# Which checks name which fault; test/audit/test_shown.py: what was shown in the lab.
FAILS = {"nic": ("be.bw.pair",), "trunk": ("be.bw.path",), "host": ("be.bw.pair", "nccl.bisect")}


def named_by(results):
    return {r["host"] for r in results if r["status"] == "fail" and r["check"] in (*FAILS["host"], "nccl.straggler")}


def plant(lab, kind, draw):
    """A fault: its function to end it, and whether an audit named it and nothing else."""
    if kind == "host":
        host = draw.choice(lab.hosts)
        fault = Starved(lab, host)
        return fault.end, lambda results: named_by(results) == {host}
    if kind == "nic":
        host, nic = draw.choice(lab.hosts), f"nic{draw.randrange(2)}"
        lab.command("fault", "brownout", f"{host}/{nic}", "--rate_mbps", str(0.8 * lab.mbps))
        return lambda: lab.command("fault", "undo", "all"), lambda results: named_by(results) == {host} and any(
            r["check"] in FAILS["nic"] and r["note"].startswith(nic + ":") for r in results if r["status"] == "fail")
    trunk = f"leaf{draw.randrange(2)}/spine{draw.randrange(4)}"
    lab.command("fault", "brownout", trunk, "--rate_mbps", str(0.5 * lab.mbps))
    return lambda: lab.command("fault", "undo", "all"), lambda results: not named_by(results) and {
        r["subject"] for r in results if r["check"] in FAILS["trunk"] and r["status"] == "fail"} == {trunk}


SUSPECT = "so many hosts of its kind would fail that the check itself is suspect"


def named(lab, kind, tries, draw):
    right = wrong = 0
    for _ in range(tries):
        end, is_named = plant(lab, kind, draw)
        try:
            body, results, took = lab.audit(nccl=True)
        finally:
            end()
        good = is_named(results)
        told = [r for r in results if r["check"].startswith(("be.bw", "nccl")) and (r["status"] == "fail" or not good) and r["note"] != SUSPECT]
        right, wrong = right + good, wrong + (not good and bool(named_by(results)))
        print(f"{kind}: {'named' if good else 'not named'}; {sorted(named_by(results))}; {took:.0f} s; {body['tests_why'] or ''} "
              f"{[(r['host'], r['check'], r['status'], r['subject'], r.get('found'), r.get('note')) for r in told]}", flush=True)
        if not good:
            print([(n["host"], n["nic"], n["rate"] and round(n["rate"] * 8e-6, 1), n["usual"] and round(n["usual"] * 8e-6, 1), n["partners"], n["retests"], n["slower_1e4"],
                    n["verdict"]) for n in (body["tests"] or {"nics": []})["nics"]], flush=True)
            print("of rows lanes, MB/s, share in % in which processors may have been the limit:",
                  [(r["lanes"], r["busbw"] and round(r["busbw"] * 1e-6, 2), r["busy_1e4"] and r["busy_1e4"] / 100) for r in (body["tests"] or {"rows": []})["rows"]], flush=True)
        time.sleep(3)
    what = {"nic": "one NIC at 80 %", "trunk": "one trunk of four at 50 %", "host": "a host whose tests run a fifth of the time"}[kind]
    load = os.getloadavg()[1]
    row(f"nccl.named.{kind}", 100 * right / tries, "%", 95, 100, "higher", tries,
        f"{what}; others named {wrong} times; links of {lab.mbps} Mbit/s; at the end a load of {load:.0f} on {os.cpu_count()} processors")
    return 100 * right / tries


def main():
    need_root()
    draw = random.Random(arguments.seed)
    if arguments.whole or arguments.preempt or arguments.busy:
        with Lab() as lab:
            if arguments.whole:
                whole(lab)
            if arguments.preempt:
                preempt(lab, arguments.preempt, draw)
            if arguments.busy:
                busy(lab, arguments.busy)
    if arguments.named:
        shares = {}
        for kind in arguments.kinds.split(","):
            with Lab(LINKS[kind]) as lab:
                shares[kind] = named(lab, kind, arguments.named, draw)
        row("nccl.named", min(shares.values()), "%", 95, 100, "higher", arguments.named * len(shares), f"the worst of {shares}")
    target = os.environ.get("FOLIOT_BENCH", os.path.join(build, "bench"))
    os.makedirs(target, exist_ok=True)
    with open(os.path.join(target, "audit_named.json" if arguments.named else "audit_tests.json"), "w", encoding="utf-8") as output:
        json.dump(rows, output, indent=1)


main()

#!/usr/bin/env python3
"""audit_matrix.py [whole] [troubled]: rows audit.lab.matrix*: every NIC with every NIC, real packets, rounds of 100 ms.

`whole`: 16 hosts with 4 NICs. A delay is the difference of two clocks' readings, so its error is the difference of their
errors. The lab knows these (`foliot lab eval`). The worst error of the whole audit is compared with the bound that the
receiver reports. `troubled`: 6 hosts with 12 NICs: too many for a matrix together with a job. While the rounds run, one agent
is killed, one is stopped, one host's clock steps, and one host gets a job. Each missing cell needs the reason of one of its
two hosts."""
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from world import ASKED, FOLIOT, Lab, Missing, Rows, need_root

FILE = "name: matrix\nwhy: every NIC with every NIC\nworld: lab\nduration: 30s\n" \
    "fabric: {{hosts: {}, nics_per_host: {}, leaves: 4, spines: 4, wiring: rail}}\nclocks: {{stamps: software}}\n"
ROUND_S, AHEAD_S = 0.1, 2.5  # the lab's controller begins rounds three beats and a second after all sheets came
KILLED, STOPPED, STEPPED, BUSY = "host1", "host2", "host3", "host4"
# A host that is stopped for longer than its clock may run alone has no clock when it comes back.
BUSY_MACHINE = {"late", "clock"}  # an agent without a processor is late, and its clock may leave SYNCED
REASONS = {KILLED: {"silent"}, STOPPED: {"late", "clock"}, STEPPED: {"clock"}, BUSY: {"busy"}}


class Audited:
    """A lab with a controller; all its hosts have joined."""

    def __init__(self, name, hosts, nics):
        self.folder = tempfile.TemporaryDirectory(prefix="foliot-bench-")
        file = os.path.join(self.folder.name, "matrix.yaml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(FILE.format(hosts, nics))
        self.lab, self.hosts = Lab(name, file, controller=0), hosts

    def __enter__(self):
        self.lab.__enter__()
        try:
            with open(f"{self.lab.folder}/dashboard", encoding="utf-8") as address, open(f"{self.lab.folder}/token", encoding="utf-8") as token:
                self.address, self.token = address.read().strip(), token.read().strip()
            self.lab.wait_synced()
            end = time.monotonic() + 60
            while sum(h["freshness"] == "live" and (h["clock"] or {}).get("status") == "SYNCED" for h in self.ask("hosts")["items"]) < self.hosts:
                if time.monotonic() > end:
                    raise Missing("the controller does not hear all hosts")
                time.sleep(0.2)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.lab.__exit__(None, None, None)
        self.folder.cleanup()

    def ask(self, path, body=None):
        request = urllib.request.Request(self.address + "api/v1/" + path, headers={"Authorization": "Bearer " + self.token, "Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return json.load(answer)

    def matrix(self, meanwhile=None):
        """The audit's cells, and its duration. meanwhile: called when a third of the rounds is over."""
        begin, measuring, times = time.monotonic(), None, {}
        run = self.ask("audit/runs", {"matrix": True})["run"]
        while True:
            body = self.ask(f"audit/runs/{run}")
            times.setdefault(body["state"], round(time.monotonic() - begin, 2))
            if body["state"] in ("done", "stopped"):
                break
            measuring = measuring or (time.monotonic() if body["state"] == "measuring" else None)
            if meanwhile and measuring and time.monotonic() > measuring + AHEAD_S + 3:
                meanwhile()
                meanwhile = None
            time.sleep(0.05)
        took = time.monotonic() - begin
        if body["state"] != "done" or meanwhile:
            raise Missing(f"the audit ended {body['state']}: {body}")
        return self.ask(f"audit/runs/{run}/matrix"), took, times


class Clocks:
    """All hosts' clock errors while the block lasts: the largest difference between two hosts' errors."""

    def __init__(self, lab):
        self.lab, self.file = lab, tempfile.mktemp(prefix="foliot-series-")

    def __enter__(self):
        self.process = self.lab.start("eval", "--json", "--seconds", 300, "--interval", 20, "--series", self.file)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        instants, self.off = {}, {}
        with open(self.file, newline="", encoding="ascii") as source:
            for r in csv.DictReader(source):
                if r["error_ns"]:
                    instants.setdefault(r["raw_ns"], {})[r["clock"]] = int(r["error_ns"])
        os.unlink(self.file)
        self.count = len(instants)
        for errors in instants.values():
            for a, one in errors.items():
                for b, other in errors.items():
                    self.off[a, b] = max(self.off.get((a, b), 0), abs(one - other))


def cells_of(found):
    """For all pairs of NICs of two hosts, in each direction: both NICs, the delay, or the reason why it is missing."""
    nics = found["nics"]
    for a, why, delays in zip(nics, found["why"], found["delay_ns"]):
        for b, word, delay in zip(nics, why, delays):
            if a["host"] != b["host"]:
                yield a, b, delay, word


def whole(rows):
    """16 hosts with 4 NICs, all well: cells, duration, truth"""
    with Audited("matrix64", 16, 4) as audited:
        with Clocks(audited.lab) as clocks:
            found, took, times = audited.matrix()
    wrong = judged = 0
    use = 0
    for a, b, delay, word in cells_of(found):
        if word is None and delay is not None and delay != -1 and b["bound_ns"] is not None:
            off = clocks.off.get((a["host"], b["host"]))
            judged += off is not None
            wrong += off is not None and (off > b["bound_ns"] or delay + b["bound_ns"] < 0)
            use = max(use, (off or 0) / b["bound_ns"])
    schedule = found["rounds"] * ROUND_S + AHEAD_S
    rows.add("audit.lab.matrix64.cells", 100 * found["measured"] / found["cells"], "%", 99.9, 100, "higher", command="bench/lab/audit_matrix.py",
             note=f"of {found['cells']}, both directions; {found['unmeasured']}")
    rows.add("audit.lab.matrix64.wrong", wrong if judged else None, "", 0, runs=judged, command="bench/lab/audit_matrix.py",
             note=f"by the difference of both clocks' errors in {clocks.count} readings of all clocks; at most {use:.0%} of the bound was used")
    rows.add("audit.lab.matrix64.s", took, "s", 15, command="bench/lab/audit_matrix.py",
             note=f"the whole audit; {schedule:.1f} s are the schedule: {found['rounds']} rounds and {AHEAD_S} s before them. States from: {times}")


def troubled(rows):
    """6 hosts with 12 NICs, four of them in trouble during the rounds"""
    with Audited("matrix72", 6, 12) as audited:
        lab, number = audited.lab, BUSY.removeprefix("host")
        jobs = []

        def trouble():
            stopped = lab.agent_pid(STOPPED.removeprefix("host"))
            os.kill(lab.agent_pid(KILLED.removeprefix("host")), signal.SIGKILL)
            os.kill(stopped, signal.SIGSTOP)
            jobs.append(subprocess.Popen([FOLIOT, "perf", "--lab", lab.name, "--hosts", f"{number},{number}", "--ranks", "2", "-b", "64K", "--duration", "900", "-c", "0",
                                          "--wait", "1000"], env={**os.environ, "FOLIOT_RUNTIME_DIR": f"{lab.folder}/{BUSY}"}, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL))
            lab.fault("clock-step", STEPPED, "--step", "1ms")
            time.sleep(1.5)
            os.kill(stopped, signal.SIGCONT)

        try:
            found, _, _ = audited.matrix(trouble)
        finally:
            for job in jobs:
                job.terminate()
                job.wait()
    missing, chance, unnamed, seen = 0, {}, [], {host: {} for host in REASONS}
    for a, b, delay, word in cells_of(found):
        if word is None and delay is not None:
            continue
        missing += 1
        why = [host for host in {a["host"], b["host"]} if word in REASONS.get(host, ())]
        for host in why:
            seen[host][word] = seen[host].get(word, 0) + 1
        if not why and word in BUSY_MACHINE:
            chance[word] = chance.get(word, 0) + 1
        elif not why:
            unnamed.append((a["host"], b["host"], word))
    none = [host for host, words in seen.items() if not words]
    rows.add("audit.lab.matrix.unmeasured_named", len(unnamed) if not none else None, "", 0, runs=missing, command="bench/lab/audit_matrix.py",
             note=f"of {found['cells']} cells; killed, stopped for 1.5 s, a step of 1 ms, a job: {seen}; by others, as the machine is busy: {chance}; without a fitting reason: {unnamed[:4]}"
             + (f"; nothing was missing by {none}" if none else "") + ". An agent that is too old: test/unit/audit/test_matrix.c")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("audit-matrix")
    if not ASKED or "whole" in ASKED:
        ROWS.measure([("audit.lab.matrix64.cells", "%", 99.9, 100, "higher"), ("audit.lab.matrix64.wrong", "", 0, None), ("audit.lab.matrix64.s", "s", 15, None)], whole)
    if not ASKED or "troubled" in ASKED:
        ROWS.measure([("audit.lab.matrix.unmeasured_named", "", 0, None)], troubled)
    sys.exit(ROWS.finish())

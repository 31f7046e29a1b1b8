"""job.py: a job of `foliot perf` in a lab, and what its receives tell: gaps, rates, what a fault cost."""
import bisect
import json
import os
import shutil
import struct
import subprocess
import tempfile
import threading
import time

from world import BUILD, FOLIOT, Missing

PLUGIN = os.path.join(BUILD, "src", "plugin", "libnccl-net-foliot.so")
REFERENCE = os.path.join(BUILD, "test", "reference", "libnccl-net-reference.so")
FABRIC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jobs.yaml")
NS = 1_000_000_000


def raw_to_mono_ns():
    """What is added to a time of the lab's records (raw) to compare it with a job's (monotonic)."""
    best = None
    for _ in range(20):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        raw = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2 - raw)
    return best[1]


class Job:
    """One `foliot perf` on the hosts of a lab, for a while; `with` waits for its end."""

    def __init__(self, lab, duration, operation="all_reduce", hosts="0,1,2,3", plugin=PLUGIN, size="4M", message="64K",
                 channels=2, wait_us=50, jobs=1, **environment):
        self.folder = tempfile.mkdtemp(prefix="foliot-job-")
        self.lines = []  # of the plugin and of perf: (monotonic ns, text)
        self.jobs, self.hosts = jobs, hosts.split(",")
        self.words = [FOLIOT, "perf", operation, "--lab", lab.name, "--hosts", hosts, "--ranks", str(len(self.hosts)),
                      "--plugin", plugin, "--message", message, "--channels", str(channels), "-b", size, "-e", size, "-c", "1",
                      "-T", "60", "--duration", str(duration), "--wait", str(wait_us), "--jobs", str(jobs),
                      "-J", os.path.join(self.folder, "json"), "--trace", self.folder]
        self.environment = {**os.environ, "NCCL_DEBUG": "INFO", **environment}
        self.process, self.receives, self.status = None, [], None

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                        env=self.environment, text=True, errors="replace")
        self.reader = threading.Thread(target=self.listen, daemon=True)
        self.reader.start()
        return self

    def listen(self):
        for line in self.process.stderr:
            self.lines.append((time.clock_gettime_ns(time.CLOCK_MONOTONIC), line.rstrip()))

    def __exit__(self, kind, *_):
        try:
            if kind is not None:
                self.process.terminate()
            self.status = self.process.wait(timeout=180)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.status = self.process.wait()
        self.reader.join(timeout=5)
        self.shift = raw_to_mono_ns()
        try:
            if kind is None:
                self.read()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def read(self):
        for job in range(self.jobs):
            name = os.path.join(self.folder, "json" + (f".{job}" if self.jobs > 1 else ""))
            if self.status != 0 or not os.path.exists(name):
                raise Missing("the job failed: " + "; ".join(text for _, text in self.lines if "WARN" in text or "perf:" in text)[:400])
            self.report = json.load(open(name, encoding="utf-8"))
            for rank in range(len(self.hosts)):
                data = open(f"{self.folder}/job{job}-rank{rank}.trace", "rb").read()
                records = list(struct.iter_unpack("<qII", data))
                times = [r[0] for r in records]
                total, sums = 0, []
                for r in records:
                    total += r[1]
                    sums.append(total)
                self.receives.append((times, sums))

    def wrong(self):
        return sum(row["out_of_place"]["nwrong"] or 0 for row in self.report["results"])

    def span(self):
        """All ranks are at it: from, to (monotonic ns)."""
        return max(t[0] for t, _ in self.receives), min(t[-1] for t, _ in self.receives)

    def gap_ms(self, begin, end):
        """The longest interval between two receives done that touches [begin, end], at the worst rank."""
        worst = 0
        for times, _ in self.receives:
            i = max(bisect.bisect_right(times, begin), 1)
            while i < len(times) and times[i - 1] <= end:
                worst = max(worst, times[i] - times[i - 1])
                i += 1
        return worst / 1e6

    def bytes(self, begin, end):
        """Received in [begin, end) by all ranks."""
        total = 0
        for times, sums in self.receives:
            a, b = bisect.bisect_left(times, begin), bisect.bisect_left(times, end)
            total += (sums[b - 1] if b else 0) - (sums[a - 1] if a else 0)
        return total

    def rate(self, begin, end):
        """Bytes per second."""
        return self.bytes(begin, end) / ((end - begin) / NS)

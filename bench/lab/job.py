"""job.py: a job of `foliot perf` in a lab, and results from its receives: gaps, rates, the cost of a fault."""
import bisect
import json
import os
import shutil
import struct
import subprocess
import tempfile
import threading
import time

from pages import Pages
from world import BUILD, FOLIOT, Missing

PLUGIN = os.path.join(BUILD, "src", "plugin", "libnccl-net-foliot.so")
REFERENCE = os.path.join(BUILD, "test", "reference", "libnccl-net-reference.so")
TRUE_CLOCK = os.path.join(BUILD, "bench", "true_clock")
FABRIC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jobs.yaml")
NS = 1_000_000_000


def raw_to_mono_ns():
    """The difference to add to a time of the lab's records (raw) to get a job's time (monotonic)."""
    best = None
    for _ in range(20):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        raw = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2 - raw)
    return best[1]


class Job:
    """One `foliot perf` on the hosts of a lab, for a while; `with` waits for its end.

    true: its messages' stamps are the machine's own time, the truth. With that or `pages` its in-band delays are known
    (pages.py)."""

    def __init__(self, lab, duration, operation="all_reduce", hosts="0,1,2,3", plugin=PLUGIN, size="4M", message="64K",
                 channels=2, wait_us=50, jobs=1, iterations=20, true=False, pages=False, more=(), **environment):
        self.folder = tempfile.mkdtemp(prefix="foliot-job-")
        self.lines = []  # of the plugin and of perf: (monotonic ns, text)
        self.lab, self.jobs, self.hosts, self.true = lab, jobs, hosts.split(","), true
        self.words = [FOLIOT, "perf", operation, "--ranks", str(len(self.hosts)),
                      "--plugin", plugin, "--message", message, "--channels", str(channels), "-b", size, "-e", size, "-c", "1",
                      "-n", str(iterations), "-T", "60", "--duration", str(duration), "--wait", str(wait_us), "--trace", self.folder, *more]
        self.environment = {**os.environ, "NCCL_DEBUG": "INFO", "REFERENCE_WAIT_US": str(wait_us), **environment}
        self.pages = Pages(self.folder) if true or pages else None
        if self.pages is not None:
            self.environment["FOLIOT_JOB_DIR"] = self.pages.folder
        self.processes, self.receives, self.status = [], [], None
        self.sends, self.arrivals = [], []  # for each rank: records as in `man foliot-perf`

    def commands(self):
        """Of the whole by itself; with true time of each rank, for the lab would give it its host's clock."""
        json_file = os.path.join(self.folder, "json")
        if not self.true:
            yield [*self.words, "--lab", self.lab.name, "--hosts", ",".join(self.hosts), "--jobs", str(self.jobs), "-J", json_file]
            return
        for job in range(self.jobs):
            for rank, host in enumerate(self.hosts):
                yield [*self.lab.words("exec", f"host{host}"), "env", "-u", "FOLIOT_LAB_OSCILLATOR", f"FOLIOT_RUNTIME_DIR={self.folder}",
                       f"FOLIOT_PERF_HOST=host{host}", *self.words, "--rank", str(rank), "--job", str(job), "--meet",
                       f"unix:{self.folder}/meet.{job}", "-J", json_file + (f".{job}" if self.jobs > 1 else "")]

    def __enter__(self):
        self.clock = subprocess.Popen([TRUE_CLOCK, self.folder]) if self.true else None
        if self.true:
            time.sleep(0.2)
        self.readers = []
        for words in self.commands():
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                       env=self.environment, text=True, errors="replace")
            self.processes.append(process)
            self.readers.append(threading.Thread(target=self.listen, args=(process,), daemon=True))
            self.readers[-1].start()
        if self.pages is not None:
            self.pages.start()
        return self

    def listen(self, process):
        for line in process.stderr:
            self.lines.append((time.clock_gettime_ns(time.CLOCK_MONOTONIC), line.rstrip()))

    def wait(self, stop):
        """Exit status, 0 if all were."""
        worst = 0
        end = time.monotonic() + 180
        for process in self.processes:
            try:
                if stop:
                    process.terminate()
                worst = process.wait(timeout=max(1, end - time.monotonic())) or worst
            except subprocess.TimeoutExpired:
                process.kill()
                worst = process.wait()
        return worst

    def __exit__(self, kind, *_):
        self.status = self.wait(kind is not None)
        for reader in self.readers:
            reader.join(timeout=5)
        if self.pages is not None:
            self.pages.stop()
        if self.clock is not None:
            self.clock.kill()
            self.clock.wait()
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
                records = list(struct.iter_unpack("<qIHH", data))
                times = [r[0] for r in records]
                total, sums = 0, []
                for r in records:
                    total += r[1]
                    sums.append(total)
                self.receives.append((times, sums))
                self.arrivals.append(records)
                self.sends.append(list(struct.iter_unpack("<qIHH", open(f"{self.folder}/job{job}-rank{rank}.sends", "rb").read())))

    def wrong(self):
        return sum(row["out_of_place"]["nwrong"] or 0 for row in self.report["results"])

    def messages(self, begin, end):
        """For every message sent in [begin, end): the time from isend to done at its receiver, and from done at its sender to
        done at its receiver, ns. Each connection's messages are matched by their order."""
        count = len(self.hosts)
        for job in range(self.jobs):
            came = {}
            for rank in range(count):
                for at, _, channel, peer in self.arrivals[job * count + rank]:
                    came.setdefault((peer, rank, channel), []).append(at)
            for rank in range(count):
                sent = {}
                for at, us, channel, peer in self.sends[job * count + rank]:
                    k = sent[peer, channel] = sent.get((peer, channel), -1) + 1
                    done = came.get((rank, peer, channel), [])
                    if begin <= at < end and k < len(done):
                        yield done[k] - at, done[k] - at - us * 1000

    def span(self):
        """The time when all ranks work: from, to (monotonic ns)."""
        return max(t[0] for t, _ in self.receives), min(t[-1] for t, _ in self.receives)

    def gap_ms(self, begin, end):
        """The longest interval between two completed receives that overlaps [begin, end], at the worst rank."""
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

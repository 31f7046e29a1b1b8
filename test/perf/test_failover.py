#!/usr/bin/env python3
"""An all-reduce in a lab goes on while links, NICs and paths die under it, and ends in an orderly way when no path is left.

usage: test_failover.py FOLIOT PLUGIN.so. Needs root (skipped without). bench/lab/failover.py measures how long a job stands
still. Here a fault stays until the job goes on, at whatever speed the machine has.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time

from interrupt import interrupt

FOLIOT, PLUGIN = (os.path.abspath(path) for path in sys.argv[1:3])
NAME = f"failover{os.getpid()}"
FABRIC = """name: failover
why: a job with two NICs a host
fabric: {hosts: 2, nics_per_host: 2, leaves: 2, spines: 2, link_mbps: 60, trunk_mbps: 60, buffer_bytes: 200000}
"""
NS = 1_000_000_000
PATIENCE_S = 300
DOWN, UP = r"lane .*: down \(", r"lane .*: up$"
GOES_ON = 4_000_000  # bytes that must arrive: more than all queues hold when a job stands still


def lab(*arguments, check=True):
    done = subprocess.run([FOLIOT, "lab", "--name", NAME, *arguments], capture_output=True, text=True, timeout=120, check=False,
                          stdin=subprocess.DEVNULL)
    assert not check or done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def start(folder, **environment):
    """A job that goes on until it is interrupted."""
    words = [FOLIOT, "perf", "all_reduce", "--lab", NAME, "--hosts", "0,1", "--ranks", "2", "--plugin", PLUGIN, "--message", "64K",
             "--channels", "2", "-b", "1M", "-e", "1M", "-c", "1", "-T", "60", "--duration", "7200", "--wait", "100",
             "-J", folder + "/json", "--trace", folder]
    environment = {**os.environ, "NCCL_DEBUG": "TRACE", **environment}
    environment.pop("FOLIOT_NIC", None)
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                            env=environment)


def listen(process, lines):
    def run():
        for line in process.stdout:
            lines.append((time.monotonic(), line.rstrip()))
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def worst_gap(folder):
    """The longest interval between two completed receives of a rank, and the number of receives of all ranks."""
    worst, count = 0, 0
    for rank in range(2):
        times = [r[0] for r in struct.iter_unpack("<qII", open(f"{folder}/job0-rank{rank}.trace", "rb").read())]
        worst = max(worst, max(b - a for a, b in zip(times, times[1:])))
        count += len(times)
    return worst / NS, count


def arrived():
    """Bytes that arrived at the NICs of host 1."""
    return sum(int(word) for word in lab("exec", "host1", "sh", "-c", "cat /sys/class/net/nic?/statistics/rx_bytes").split())


def until(process, lines, true, what):
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert process.poll() is None and time.monotonic() < end, f"{what}\n" + "\n".join(line for _, line in lines)
        time.sleep(0.1)


def goes_on(process, lines, what):
    begin = arrived()
    until(process, lines, lambda: arrived() >= begin + GOES_ON, f"the job stands still: {what}")


def count(lines, pattern):
    return sum(re.search(pattern, line) is not None for _, line in lines)


def all_up(lines):
    """True if the last line about each lane, at either end, is that it is up. On a busy machine lanes may be up before the lines
    are counted."""
    words = [m.groups() for _, line in list(lines) if (m := re.search(r"^(\S+) .*?\blane (\d+)\.\d+ .*: (up$|down \()", line))]
    return all(word == "up" for word in {(process, lane): word for process, lane, word in words}.values())


def wait_for(process, lines, pattern, times):
    until(process, lines, lambda: count(lines, pattern) >= times, f"expected {pattern!r} {times} times in:")


def job_lives():
    """carrier off and on, a path and a NIC that drop everything: the job doesn't notice"""
    faults = [("carrier", "nic 0.0"), ("blackhole", "trunk 0-0"), ("blackhole", "nic 1.1"), ("carrier", "nic 1.1"),
              ("blackhole", "nic 0.1", "--direction", "up")]
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        process = start(folder)
        reader = listen(process, lines)
        goes_on(process, lines, "it begins")
        for fault in faults:
            downs = count(lines, DOWN)
            lab("fault", *fault)
            wait_for(process, lines, DOWN, downs + 1)
            goes_on(process, lines, fault)
            ups = count(lines, UP)
            lab("fault", "undo", "all")
            until(process, lines, lambda ups=ups: count(lines, UP) > ups or all_up(lines), "a lane that comes back")
        interrupt(process)
        status = process.wait(timeout=300)
        reader.join(timeout=60)
        text = "\n".join(line for _, line in lines)
        assert status == 0, text
        assert json.load(open(folder + "/json", encoding="utf-8"))["results"][0]["out_of_place"]["nwrong"] == 0, text
        assert "WARN" not in text, text
        # each fault had an effect: else this test shows nothing
        for reason in ("carrier", "timeout"):
            assert f"down ({reason})" in text, text
        assert re.search(r"survived: [1-9]\d* failures? of a lane", text), text
        gap, receives = worst_gap(folder)
        print(f"worst gap {gap * 1000:.0f} ms of {receives} receives")
        assert receives > 100, (receives, text)


def nothing_left():
    """all NICs of a host are gone: both ends wait for the patience, then name the lost peer"""
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        process = start(folder, FOLIOT_PATIENCE="8")
        reader = listen(process, lines)
        goes_on(process, lines, "it begins")
        began = time.monotonic()
        lab("fault", "carrier", "nic 1.0")
        lab("fault", "carrier", "nic 1.1")
        status = process.wait(timeout=300)
        reader.join(timeout=60)
        text = "\n".join(line for _, line in lines)
        warned = [(at - began, line) for at, line in lines if "WARN" in line and "not reached" in line]
        print("after", [f"{at:.1f} s" for at, _ in warned])
        assert status != 0, text
        assert len({line.split()[0] for _, line in warned}) == 2, text  # both processes
        for at, line in warned:
            assert 7.5 < at, (at, line)
            assert re.search(r"host \S+, NIC nic[01] \(10\.[01]\.[01]\.2:\d+\), process \d+", line), line
        lab("fault", "undo", "all")


if os.geteuid() != 0:
    print("the lab needs root: skipped")
    sys.exit(77)
lab("down", check=False)
with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
    file.write(FABRIC)
    file.flush()
    lab("up", file.name, "--no-agents")
try:
    for test in (job_lives, nothing_left):
        test()
        print("ok", test.__name__, flush=True)
finally:
    lab("down", check=False)

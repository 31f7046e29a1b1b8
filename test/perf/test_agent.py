#!/usr/bin/env python3
"""`foliot perf --agent`, as an agent starts it for a test of an audit: one line of numbers in, one line of figures out.
usage: test_agent.py FOLIOT"""
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import unittest

FOLIOT = os.path.abspath(sys.argv.pop(1))
RATE = r"^rate (\d+) runs 5 spread \d+ wrong 0 init \d+ network \S+ work( \d+){40} late \d{1,5}( parts( \d{1,5}){10})?$"


def free_port():
    """A free port outside the range from which kernels choose: another connection may have a port of that range, and an early
    rank may connect to itself."""
    for port in random.sample(range(20000, 32768), 100):
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise AssertionError("no port is free")


def cpu_s(process):
    """The processor time that it has used, s."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Agent(unittest.TestCase):
    def play(self, ranks, **more):
        """Runs a test over this machine's loopback. Returns the line that each rank prints."""
        port = free_port()
        plan = {"lanes": 1, "run": 100, "patience": 20, "ways": 0, "turn": 0, "incast": 0, "alltoall": 0} | more
        words = " ".join(f"{key} {value}" for key, value in plan.items())
        started = []
        with tempfile.TemporaryDirectory() as folder:
            for rank in range(ranks):
                ours, theirs = socket.socketpair()
                # pylint: disable-next=consider-using-with
                process = subprocess.Popen([FOLIOT, "perf", "--agent"], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL)
                theirs.close()
                ours.sendall(f"rank {rank} of {ranks} port {port} {words} at 127.0.0.1 nics =lo folder {folder} secret {'ab' * 16}\n".encode())
                started.append((ours, process))
            told = []
            for ours, process in started:
                with ours.makefile("r") as lines:
                    told.append(lines.readline())
                process.wait(60)
                ours.close()
        return told

    def test_collectives(self):
        for alltoall in (0, 1):
            for told in self.play(3, alltoall=alltoall):
                self.assertRegex(told, RATE)
                self.assertGreater(int(told.split()[1]), 10 ** 6)

    def memory(self, run, before=()):
        """Runs a test of memory. Returns its line, and the time that it took."""
        ours, theirs = socket.socketpair()
        began = time.monotonic()
        with subprocess.Popen([*before, FOLIOT, "perf", "--agent"], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL) as process:
            theirs.close()
            ours.sendall(f"memory run {run}\n".encode())
            with ours, ours.makefile("r") as lines:
                told = lines.readline()
            process.wait(60)
        return told, time.monotonic() - began

    def test_memory(self):
        told, took = self.memory(500)
        self.assertRegex(told, r"^(memory rate \d+ runs [345] spread \d+|busy \d+)$", told)
        self.assertLess(took, 30)  # on a busy machine: three seconds, and the time until its threads end
        if told.startswith("memory"):  # else this machine is in use
            self.assertGreater(int(told.split()[2]), 10 ** 8)

    def test_memory_that_is_starved(self):
        """Another program uses the processor, and this test yields to it. The result must not be a slow memory."""
        processor = min(os.sched_getaffinity(0))
        pinned = ["taskset", "-c", str(processor)]
        with subprocess.Popen([*pinned, sys.executable, "-c", "while True: pass"]) as other:
            try:
                told, _ = self.memory(500, pinned)
            finally:
                other.kill()
        self.assertRegex(told, r"^busy \d+$")
        self.assertGreater(int(told.split()[1]), 1000)

    def test_memory_that_is_ended(self):
        """A job begins: the agent closes the input, and the test must end at once. The processor time shows that: the test uses
        all that it can get, and a machine that pauses gives it none."""
        ours, theirs = socket.socketpair()
        with subprocess.Popen([FOLIOT, "perf", "--agent"], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL) as process:
            theirs.close()
            ours.sendall(b"memory run 60000\n")
            while cpu_s(process) < 0.2:  # it runs
                self.assertIsNone(process.poll())
                time.sleep(0.05)
            before = cpu_s(process)
            ours.close()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertLess(usage.ru_utime + usage.ru_stime - before, 0.5)

    def test_plans_that_are_none(self):
        self.assertRegex(self.memory(0)[0], "^failed ")
        self.assertRegex(self.memory(60001)[0], "^failed ")
        for more in ({"alltoall": 2}, {"alltoall": -1}, {"alltoall": 1, "ways": 10}, {"alltoall": 1, "incast": 3}):
            for told in self.play(2, **more):
                self.assertRegex(told, "^(failed .*)?$")


unittest.main(verbosity=2)

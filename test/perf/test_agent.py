#!/usr/bin/env python3
"""`foliot perf --agent`, as an agent starts it for an audit's test: one line of numbers in, one line of figures out. usage: test_agent.py FOLIOT"""
import os
import socket
import subprocess
import sys
import tempfile
import unittest

FOLIOT = os.path.abspath(sys.argv.pop(1))
RATE = r"^rate (\d+) runs 5 spread \d+ wrong 0 init \d+ network \S+ work( \d+){40}$"


class Agent(unittest.TestCase):
    def play(self, ranks, **more):
        """What each rank of a test over this machine's loopback tells."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
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

    def test_plans_that_are_none(self):
        for more in ({"alltoall": 2}, {"alltoall": -1}, {"alltoall": 1, "ways": 10}, {"alltoall": 1, "incast": 3}):
            for told in self.play(2, **more):
                self.assertRegex(told, "^(failed .*)?$")


unittest.main(verbosity=2)
